"""Rodriguez 1987, sections IX and XI: inertias as covariances, by random forces on the links of a PUMA 560."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from linksweep import robots
from linksweep.motion.base import FloatArray
from linksweep.spatial_operators import operators
from linksweep.studies.report import Check, Study, at_most, markdown_table

if TYPE_CHECKING:
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
SIGMAS = 6.0  # of what the finite number of samples explains


@dataclass(frozen=True, slots=True)
class Results:
    """Of n random samples: torques and innovations (n, 6), the mass matrix, its inverse and D; joints from the base.

    spread: for each of `numbers` the error of the torques' covariance, found and expected. prediction, smoothed: errors
    of the covariances of x - z and of x given all torques, against P and S, worst link. updated: what is left of P⁺
    along the joints' axes.
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
    """Random D'Alembert forces of covariance M(k) on each link, their torques, and what filter and smoother make of
    them."""
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
    """The relative error of the samples' covariance, and what it is on average for so many Gaussian samples."""
    n, size = len(samples), np.linalg.norm(covariance)
    found = np.linalg.norm(samples.T @ samples / n - covariance) / size
    return float(found), float(np.sqrt((size**2 + np.trace(covariance) ** 2) / n) / size)


def _residual_variance(y: FloatArray, given: FloatArray) -> float:
    """What is left of the variance of y if the columns of `given` are known."""
    if not given.shape[1]:
        return float(y @ y / len(y))
    left = y - given @ np.linalg.lstsq(given, y, rcond=None)[0]
    return float(left @ left / (len(y) - given.shape[1]))


def _worst(errors: FloatArray, covariances: FloatArray) -> float:
    """Of the links: the error of the covariance (n, links, 6) over what so many samples explain."""
    found = []
    for k, covariance in enumerate(covariances):
        scale = 1.0 / np.sqrt(np.maximum(np.diagonal(covariance), 1e-12 * np.diagonal(covariance).max()))
        seen, average = _spread(errors[:, k] * scale, covariance * np.outer(scale, scale))
        found.append(seen / average)
    return max(found)


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
    found, expected = results.spread[-1]
    bar = SIGMAS * sigma
    checks = [
        at_most("covariance of the torques against the mass matrix, of what so many samples explain", found / expected,
                2.0),
        at_most("correlation of two innovations", np.abs(white).max(), bar),
        Check("correlation of two torques", float(np.abs(torques).max()), f"above {bar:.2g}",
              bool(np.abs(torques).max() > bar)),
        at_most("variances D and 1/(M⁻¹)ₖₖ against those of the samples", np.abs(variances - 1).max(),
                SIGMAS * np.sqrt(2.0) * sigma),
        at_most("covariance of x - z⁻ against P⁻, of what so many samples explain", results.prediction, 3.0),
        at_most("covariance of x - x̂ against S, of what so many samples explain", results.smoothed, 3.0),
        at_most("covariance of the accelerations against M⁻¹, of what so many samples explain", results.accelerations,
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
    from linksweep.studies.filter_diagram import filter_diagram

    names = list(results.robot.joint_names)
    found, expected = results.spread.T
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
                results.numbers, {"found": found, "expected of Gaussian samples": expected}, markers=True, log="xy",
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
            "Inertias of each joint and variances of its torque, of the inertia with all others locked.",
            lambda: plots.lines(
                range(1, 7), curves, markers=True, x_label="joint", y_label="of the inertia with all others locked",
                title="Inertia that a joint meets, and variance of its torque",
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
        [f"{n:,}", f"{found:.1%}", f"{expected:.1%}"]
        for n, (found, expected) in zip(results.numbers, results.spread.tolist(), strict=True)
    ]
    return f"""# Inertia is covariance

G. Rodriguez, *Kalman filtering, smoothing, and recursive robot arm forward and inverse dynamics* (1987), sections IX
and XI. The paper reads the dynamics of an arm as an estimation problem: an observer at a joint does not know the
D'Alembert force of the next link, and takes it for white noise whose covariance is the link's inertia. This study
draws {samples:,} such forces for a PUMA 560 at one pose, at rest and without gravity, and compares sample statistics
with what the recursions compute. The arm has no motor inertias here, as in the paper: they would be noise of the
measured torques.

The paper's Table I, the two theories term by term:

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

The inertia that a motor meets depends on what the other joints do. Each case is the variance of the joint's torque if
other torques are known, estimated here by regression over the samples (kg m²):

{markdown_table(head, rows)}

{{figure:statistics_inertias}}

To know a torque is to let that joint go: it makes the others more certain, and the arm lighter. Dₖ is the variance of
the innovation, (57), and the pivot of M = (I + HΦL) D (I + HΦL)ᵀ of Rodriguez & Kreutz.

## States and their errors

Of each link the covariance of x(k) − z⁻(k) is compared with P⁻(k), (56), and that of x(k) − x̂(k), the error of the
smoothed state, with S(k) = P − PΔP, (65). Both agree as well as {samples:,} samples can tell. The measured component
is known exactly after the update, H P⁺ = 0. (The paper prints H P⁻ = 0 in section XI.)
"""
