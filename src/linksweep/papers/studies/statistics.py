"""Rodriguez 1987, sections IX and XI: inertias as covariances, by random forces on the links of a PUMA 560."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from linksweep import robots
from linksweep.motion.trajectories import FloatArray
from linksweep.papers.spatial_operators import operators
from linksweep.papers.studies.report import Check, Study, at_most, markdown_table

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from linksweep.robot.robot import Robot

SAMPLES, SEED = 40_000, 1
POSE = (0.3, -0.6, 1.2, 0.2, 0.5, 0.1)  # rad
NUMBERS = (100, 300, 1000, 3000, 10_000, 40_000)  # of samples, at which the covariance is estimated
TABLE_1 = [
    ["states", "x(k)", "spatial forces"],
    ["costates", "λ(k)", "spatial accelerations"],
    ["measurements", "τ(k)", "active joint moments"],
    ["transition matrix", "φ(k, k−1)", "spatial Jacobian"],
    ["process error covariance", "M(k)", "spatial inertia"],
    ["known input", "b(k)", "spatial bias force"],
    ["state-to-output map", "H(k)", "state-to-joint-axis map"],
]
SIGMAS = 6.0  # tolerance of the checks in standard deviations of the sample statistics


@dataclass(frozen=True, slots=True)
class Results:
    """Torques and innovations of n random samples (n, 6), the mass matrix, its inverse and D; base joint first.

    spread: error of the torques' covariance for each of `numbers`, measured and expected. given_outer, given_all:
    variance of each torque if the outer or all other torques are known. prediction, smoothed: errors of the covariances
    of x - z and of x - x̂ against P and S, of the worst link. updated: largest entry of H P⁺.
    """

    robot: Robot
    numbers: list[int]
    spread: FloatArray
    torques: FloatArray
    innovations: FloatArray
    M: FloatArray
    M_inverse: FloatArray
    D: FloatArray
    given_outer: FloatArray
    given_all: FloatArray
    prediction: float
    smoothed: float
    updated: float
    accelerations: float


def compute(samples: int = SAMPLES, seed: int = SEED) -> Results:
    """Draw D'Alembert forces of covariance M(k) on each link; compute their torques, filter and smooth them."""
    robot = robots.puma560().with_gravity((0.0, 0.0, 0.0)).with_armature([0.0] * 6)
    q, still = np.array(POSE), np.zeros(6)
    o, rng = operators(robot, q), np.random.default_rng(seed)
    phi, H = o.phi.todense(), o.H.todense()
    w = rng.normal(size=(samples, phi.shape[0])) @ _root(o.M.todense()).T  # (53)
    x = w @ phi.T  # (52), all links; from the tip, along the base's axes
    tau = (x @ H.T)[:, np.argsort(o.order)]  # of joints from the base
    M, M_inverse = robot.mass_matrix(q), robot.mass_matrix_inverse(q)

    qdd, at = robot.forward_dynamics(q, still, tau, method="filter_smoother", details=True)
    _, closed = robot.forward_dynamics(q, still, tau[:1], method="closed_form", details=True)
    turn = np.stack([np.kron(np.eye(2), robot.pose(q, name)[:3, :3].T) for name in robot.link_names])
    states = np.einsum("kij,nkj->nki", turn, x.reshape(samples, 6, 6)[:, ::-1])  # base first, in the links' frames
    left = states - at.z
    costate = np.einsum("...kij,...kj->...ki", at.P, at.costate)
    numbers = [n for n in NUMBERS if n <= samples]
    return Results(
        robot, numbers, np.array([_spread(tau[:n], M) for n in numbers]), tau, at.innovation, M, M_inverse, at.D[0],
        np.array([_residual_variance(tau[:, k], tau[:, k + 1 :]) for k in range(6)]),
        np.array([_residual_variance(tau[:, k], np.delete(tau, k, axis=1)) for k in range(6)]),
        _worst(left, at.P[0]), _worst(left - costate, closed.S[0]), float(np.abs(at.P_plus[0][:, 2, :]).max()),
        _spread(qdd, M_inverse)[0] / _spread(qdd, M_inverse)[1],
    )  # fmt: skip


def _root(covariance: FloatArray) -> FloatArray:
    """A square root L of a covariance, L Lᵀ; it may be singular."""
    values, vectors = np.linalg.eigh(covariance)
    return vectors * np.sqrt(np.maximum(values, 0.0))


def _spread(samples: FloatArray, covariance: FloatArray) -> tuple[float, float]:
    """The relative error of the samples' covariance, and its expectation for this number of Gaussian samples."""
    n, size = len(samples), np.linalg.norm(covariance)
    error = np.linalg.norm(samples.T @ samples / n - covariance) / size
    return float(error), float(np.sqrt((size**2 + np.trace(covariance) ** 2) / n) / size)


def _residual_variance(y: FloatArray, known: FloatArray) -> float:
    """The variance of y if the columns of `known` are known."""
    if not known.shape[1]:
        return float(y @ y / len(y))
    residual = y - known @ np.linalg.lstsq(known, y, rcond=None)[0]
    return float(residual @ residual / (len(y) - known.shape[1]))


def _worst(errors: FloatArray, covariances: FloatArray) -> float:
    """The error of the covariances of (n, links, 6) over its expectation, of the worst link."""
    ratios = []
    for k, covariance in enumerate(covariances):
        scale = 1.0 / np.sqrt(np.maximum(np.diagonal(covariance), 1e-12 * np.diagonal(covariance).max()))
        measured, expected = _spread(errors[:, k] * scale, covariance * np.outer(scale, scale))
        ratios.append(measured / expected)
    return max(ratios)


def correlation(samples: FloatArray) -> FloatArray:
    covariance = samples.T @ samples / len(samples)
    scale = 1.0 / np.sqrt(np.diagonal(covariance))
    return covariance * np.outer(scale, scale)


def study(samples: int = SAMPLES, seed: int = SEED) -> Study:
    results = compute(samples, seed)
    white = correlation(results.innovations) - np.eye(6)
    torques = correlation(results.torques) - np.eye(6)
    sigma = 1.0 / np.sqrt(samples)
    variances = np.concatenate([
        results.innovations.var(axis=0) / results.D, results.given_outer / results.D,
        results.given_all * np.diagonal(results.M_inverse),
    ])  # fmt: skip
    error, expected = results.spread[-1]
    bar = SIGMAS * sigma
    checks = [
        at_most("error of the torques' covariance (the mass matrix), over its expectation", error / expected,
                2.0),
        at_most("correlation of two innovations", np.abs(white).max(), bar),
        Check("correlation of two torques", float(np.abs(torques).max()), f"above {bar:.2g}",
              bool(np.abs(torques).max() > bar)),
        at_most("relative error of the variances D and 1/(M⁻¹)ₖₖ", np.abs(variances - 1).max(),
                SIGMAS * np.sqrt(2.0) * sigma),
        at_most("error of the covariance of x - z⁻ (P⁻), over its expectation", results.prediction, 3.0),
        at_most("error of the covariance of x - x̂ (S), over its expectation", results.smoothed, 3.0),
        at_most("error of the accelerations' covariance (M⁻¹), over its expectation", results.accelerations,
                2.0),
        at_most("H P⁺ (kg m²)", results.updated, 1e-14),
    ]  # fmt: skip
    names = results.robot.joint_names
    inertias = [[name, *row] for name, row in zip(names, _inertias(results), strict=True)]
    tables = {
        "statistics": (["joint", "M_kk", "D_k", "1/(M^-1)_kk", "var", "var_given_outer", "var_given_all"], inertias),
        "statistics_covariance": (
            ["samples", "error", "expected"],
            [[n, *row] for n, row in zip(results.numbers, results.spread.tolist(), strict=True)],
        ),
    }
    return Study("statistics", _report(results, samples), tables, _figures(results), checks)


def _inertias(results: Results) -> FloatArray:
    mechanics = [np.diagonal(results.M), results.D, 1.0 / np.diagonal(results.M_inverse)]
    samples = [(results.torques**2).mean(axis=0), results.given_outer, results.given_all]
    return np.column_stack([*mechanics, *samples])


def _figures(results: Results) -> dict:
    from linksweep import plots

    names = list(results.robot.joint_names)
    errors, expected = results.spread.T
    locked, outer, free, _, given_outer, given_all = _inertias(results).T
    curves = {
        "inertia: outer joints free, D": outer / locked,
        "variance: outer torques known": given_outer / locked,
        "inertia: all others free, 1/(M⁻¹)": free / locked,
        "variance: all others known": given_all / locked,
    }

    def correlations(samples: FloatArray, title: str):
        return plots.heat(correlation(samples), x=names, y=names, title=title, label="correlation")

    return {
        "statistics_fig3": ("Fig. 3: filter and smoother; the numbers are those of section XI.", filter_diagram),
        "statistics_covariance": (
            "The covariance of the torques approaches the mass matrix.",
            lambda: plots.lines(
                results.numbers, {"measured": errors, "expected of Gaussian samples": expected}, markers=True, log="xy",
                title="Covariance of the torques against the mass matrix", x_label="samples", y_label="relative error",
            ),
        ),
        "statistics_torques": (
            "Correlations of the torques.",
            lambda: correlations(results.torques, "Torques of random forces on the links"),
        ),
        "statistics_innovations": (
            "Correlations of the innovations: the filter makes the torques white.",
            lambda: correlations(results.innovations, "Their innovations"),
        ),
        "statistics_inertias": (
            "Effective inertia of each joint and variance of its torque, over the inertia with all others locked.",
            lambda: plots.lines(
                range(1, 7), curves, markers=True, x_label="joint", y_label="inertia / inertia with all others locked",
                title="Effective inertia of a joint, and variance of its torque",
            ),
        ),
    }  # fmt: skip


def _report(results: Results, samples: int) -> str:
    head = ["joint", "all others locked, Mₖₖ", "variance", "outer joints free, Dₖ", "given outer torques",
            "all others free, 1/(M⁻¹)ₖₖ", "given all others"]  # fmt: skip
    rows = [
        [name, *(f"{row[k]:.4g}" for k in (0, 3, 1, 4, 2, 5))]
        for name, row in zip(results.robot.joint_names, _inertias(results), strict=True)
    ]
    covariance = [
        [f"{n:,}", f"{error:.1%}", f"{expected:.1%}"]
        for n, (error, expected) in zip(results.numbers, results.spread.tolist(), strict=True)
    ]
    return f"""# Inertia is covariance

G. Rodriguez, *Kalman filtering, smoothing, and recursive robot arm forward and inverse dynamics* (1987), sections IX
and XI. The paper reads the dynamics of an arm as an estimation problem: an observer at a joint does not know the
D'Alembert force of the next link, and takes it for white noise whose covariance is the link's inertia. This study
draws {samples:,} such forces for a PUMA 560 in one configuration, at rest and without gravity, and compares sample
statistics with the results of the recursions. As in the paper, the arm has no motor inertias; they would be noise of
the measured torques.

Table I of the paper compares the two theories term by term:

{markdown_table(["estimation", "symbol", "robot dynamics"], TABLE_1)}

{{figure:statistics_fig3}}

## The mass matrix is the covariance of the torques

Forces add up from the tip to the base, x(k) = φ(k, k−1) x(k−1) + w(k), and each joint measures τ(k) = H(k) x(k),
equations (52) and (53). The covariance of the six torques approaches the mass matrix as the number of samples grows:

{markdown_table(["samples", "error of the covariance", "expected on average"], covariance)}

{{figure:statistics_covariance}}

Torques with the covariance M produce accelerations M⁻¹τ with the covariance M⁻¹. That is one of the checks below.

## The filter makes the torques white

The torques of neighbouring joints are correlated, because they carry the same links. The innovations, each torque
less what the outer torques predict, are not:

{{figure:statistics_torques}}

{{figure:statistics_innovations}}

## Three inertias, three variances

The effective inertia of a joint depends on whether the other joints are locked or free. Each case is the variance of
the joint's torque if some other torques are known, estimated by regression over the samples (kg m²):

{markdown_table(head, rows)}

{{figure:statistics_inertias}}

A known torque corresponds to a free joint: it reduces the variance of the other torques, and the effective inertia. Dₖ
is the variance of the innovation, (57), and the pivot of M = (I + HΦL) D (I + HΦL)ᵀ of Rodriguez & Kreutz.

## States and their errors

For each link the covariance of x(k) − z⁻(k) is compared with P⁻(k), (56), and that of x(k) − x̂(k), the error of the
smoothed state, with S(k) = P − PΔP, (65). Both agree within the statistical error of {samples:,} samples. After the
update the measured component is known exactly, H P⁺ = 0. (The paper prints H P⁻ = 0 in section XI.)
"""


# ---- Fig. 3: filter and smoother as a block diagram -------------------------------------------------------------

BLUE, ORANGE, INK = "#0072B2", "#D55E00", "0.15"
LEGEND = (
    (1, "prediction across link k"), (2, "bias force"), (3, "predicted moment"), (4, "measured moment"),
    (5, "innovation"), (6, "gain"), (7, "correction"), (8, "bias of the acceleration"), (9, "residual"),
    (10, "joint acceleration"), (11, "spatial acceleration"), (12, "transpose of the prediction"),
)  # fmt: skip


def filter_diagram() -> Figure:
    """Fig. 3: filtering from joint k - 1 to joint k on the left, smoothing from joint k to k - 1 on the right."""
    from linksweep.plots.figures import new_figure

    figure = new_figure(9.6, 6.6)
    axes = figure.add_subplot()
    axes.set_aspect("equal")
    axes.axis("off")
    _filter(axes)
    _smoother(axes)
    axes.plot([0, 0], [0.35, 8.3], color="0.7", linewidth=1.0, linestyle=(0, (8, 4)))
    axes.text(-3.1, 8.75, "filtering: inward, from the tip", color=BLUE, ha="center", fontsize=12, weight="bold")
    axes.text(3.1, 8.75, "smoothing: outward, from the base", color=ORANGE, ha="center", fontsize=12, weight="bold")
    rows = [LEGEND[k : k + 3] for k in range(0, len(LEGEND), 3)]
    for row, entries in enumerate(rows):
        for column, (number, text) in enumerate(entries):
            x, y = -5.2 + 3.9 * column, -0.35 - 0.42 * row
            _number(axes, x, y, number)
            axes.text(x + 0.28, y, text, va="center", fontsize=9, color=INK)
    axes.set(xlim=(-6.3, 6.3), ylim=(-2.0, 9.2))
    return figure


def _filter(axes: Axes) -> None:
    """z⁺(k-1) at the bottom, z⁺(k) at the top; the innovation in the middle."""
    x, side = -4.4, -1.5
    axes.text(x, 0.35, r"$z^+(k-1)$", ha="center", va="center", fontsize=12, color=BLUE)
    _arrow(axes, (x, 0.6), (x, 1.15), BLUE)
    _box(axes, x, 1.5, r"$\phi(k,k-1)$", BLUE, 1)
    _arrow(axes, (x, 1.85), (x, 2.45), BLUE)
    _sum(axes, x, 2.7, BLUE)
    _input(axes, (-6.0, 2.7), (x - 0.25, 2.7), r"$b(k)$", BLUE, 2)
    _arrow(axes, (x, 2.95), (x, 6.25), BLUE)
    axes.text(x - 0.15, 4.6, r"$z^-(k)$", ha="right", va="center", fontsize=12, color=BLUE)
    axes.plot([x, side], [3.35, 3.35], color=BLUE, linewidth=1.6)
    _arrow(axes, (side, 3.35), (side, 3.55), BLUE)
    _box(axes, side, 3.9, r"$H(k)$", BLUE)
    _arrow(axes, (side, 4.25), (side, 4.75), BLUE, 3)
    _sum(axes, side, 5.0, BLUE)
    axes.text(side + 0.16, 4.62, "$-$", fontsize=12, color=BLUE)
    _input(axes, (-0.35, 5.0), (side + 0.25, 5.0), r"$\tau(k)$", BLUE, 4)
    axes.plot([side, side], [5.25, 5.75], color=BLUE, linewidth=1.6)
    axes.text(side + 0.12, 6.08, r"$e^-(k)$", fontsize=12, color=BLUE, va="center")
    _number(axes, side + 1.12, 6.08, 5)
    axes.plot([side, -2.4], [5.75, 5.75], color=BLUE, linewidth=1.6)
    _box(axes, -2.85, 5.75, r"$G(k)$", BLUE, 6, width=0.9)
    axes.plot([-3.3, -3.6, -3.6], [5.75, 5.75, 6.5], color=BLUE, linewidth=1.6)
    _arrow(axes, (-3.6, 6.5), (x + 0.25, 6.5), BLUE)
    _number(axes, -3.82, 6.15, 7)
    _sum(axes, x, 6.5, BLUE)
    _input(axes, (-6.0, 6.5), (x - 0.25, 6.5), r"$P^+n$", BLUE, 8)
    _arrow(axes, (x, 6.75), (x, 7.55), BLUE)
    axes.text(x, 7.85, r"$z^+(k)$", ha="center", va="center", fontsize=12, color=BLUE)
    _arrow(axes, (side, 5.75), (side, 6.55), BLUE)
    _box(axes, side, 6.9, r"$D^{-1}(k)$", BLUE)
    axes.plot([side, side, 0.0], [7.25, 7.6, 7.6], color=BLUE, linewidth=1.6)
    axes.text(-0.55, 7.82, r"$e^+(k)$", ha="center", fontsize=12, color=BLUE)
    _number(axes, -1.2, 7.82, 9)


def _smoother(axes: Axes) -> None:
    """λ⁺(k) at the top, λ⁺(k-1) at the bottom; the joint acceleration in the middle."""
    x, side = 4.4, 1.5
    axes.text(x, 7.85, r"$\lambda^+(k)$", ha="center", va="center", fontsize=12, color=ORANGE)
    _arrow(axes, (x, 7.55), (x, 6.75), ORANGE)
    _sum(axes, x, 6.5, ORANGE)
    _input(axes, (6.0, 6.5), (x + 0.25, 6.5), r"$n(k)$", ORANGE)
    _arrow(axes, (x, 6.25), (x, 2.95), ORANGE)
    axes.plot([x, 3.35], [5.75, 5.75], color=ORANGE, linewidth=1.6)
    _box(axes, 2.9, 5.75, r"$G^T(k)$", ORANGE, width=0.9)
    _arrow(axes, (2.45, 5.75), (side + 0.25, 5.75), ORANGE)
    axes.text(side + 0.42, 5.88, "$-$", fontsize=12, color=ORANGE)
    _sum(axes, side, 5.75, ORANGE)
    axes.plot([0.0, side], [7.6, 7.6], color=ORANGE, linewidth=1.6)
    _arrow(axes, (side, 7.6), (side, 6.0), ORANGE)
    _arrow(axes, (side, 5.5), (side, 4.25), ORANGE)
    axes.plot([side, 0.55], [5.0, 5.0], color=ORANGE, linewidth=1.6)
    _arrow(axes, (0.75, 5.0), (0.45, 5.0), ORANGE)
    axes.text(0.5, 5.22, r"$a(k)$", ha="center", fontsize=12, color=ORANGE)
    _number(axes, 1.05, 5.24, 10)
    _box(axes, side, 3.9, r"$H^T(k)$", ORANGE)
    axes.plot([side, side], [3.55, 2.7], color=ORANGE, linewidth=1.6)
    _arrow(axes, (side, 2.7), (x - 0.25, 2.7), ORANGE)
    _sum(axes, x, 2.7, ORANGE)
    _arrow(axes, (x, 2.45), (x, 1.85), ORANGE)
    axes.text(x + 0.15, 2.15, r"$\lambda^-(k)$", va="center", fontsize=12, color=ORANGE)
    _number(axes, x + 1.35, 2.15, 11)
    _box(axes, x, 1.5, r"$\phi^T(k,k-1)$", ORANGE, 12)
    _arrow(axes, (x, 1.15), (x, 0.6), ORANGE)
    axes.text(x, 0.35, r"$\lambda^+(k-1)$", ha="center", va="center", fontsize=12, color=ORANGE)


def _arrow(axes: Axes, start: tuple[float, float], end: tuple[float, float], color: str, number: int = 0) -> None:
    style = {"arrowstyle": "-|>", "color": color, "linewidth": 1.6, "shrinkA": 0, "shrinkB": 0}
    axes.annotate("", end, start, arrowprops=style)
    if number:
        _number(axes, (start[0] + end[0]) / 2 - 0.3, (start[1] + end[1]) / 2, number)


def _input(
    axes: Axes, start: tuple[float, float], end: tuple[float, float], text: str, color: str, number: int = 0
) -> None:
    """An arrow from outside, with what comes in above its start."""
    _arrow(axes, start, end, color)
    middle = (start[0] + end[0]) / 2
    axes.text(middle, start[1] + 0.22, text, ha="center", fontsize=12, color=color)
    if number:
        _number(axes, middle - 0.55 if middle < -2 else middle + 0.1, start[1] - 0.3, number)


def _box(axes: Axes, x: float, y: float, text: str, color: str, number: int = 0, width: float = 1.7) -> None:
    from matplotlib.patches import FancyBboxPatch

    axes.add_patch(
        FancyBboxPatch((x - width / 2, y - 0.35), width, 0.7, boxstyle="round,pad=0,rounding_size=0.08",
                       facecolor="white", edgecolor=color, linewidth=1.5, zorder=3)
    )  # fmt: skip
    axes.text(x, y, text, ha="center", va="center", fontsize=11, zorder=4)
    if number:
        _number(axes, x + (width / 2 + 0.28) * (-1 if width > 1 else 0), y + (0 if width > 1 else 0.6), number)


def _sum(axes: Axes, x: float, y: float, color: str) -> None:
    axes.plot(x, y, "o", markersize=15, markerfacecolor="white", markeredgecolor=color, markeredgewidth=1.5, zorder=3)
    axes.text(x, y, "+", ha="center", va="center", fontsize=12, zorder=4)


def _number(axes: Axes, x: float, y: float, number: int) -> None:
    circle = {"boxstyle": "circle,pad=0.22", "facecolor": "white", "edgecolor": INK, "linewidth": 0.8}
    axes.text(x, y, str(number), ha="center", va="center", fontsize=7.5, color=INK, zorder=5, bbox=circle)
