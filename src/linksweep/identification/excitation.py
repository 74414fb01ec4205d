"""`excite`: a trajectory within a robot's limits that determines its parameters well.

A log barrier keeps every sample within position, velocity, acceleration and effort limits, above the floor, and inside
or outside of boxes. BFGS with exact gradients descends from the best of some random trajectories while the weight of
the barrier falls. The same seed gives the same trajectory. Links are represented by the origins of their frames, so
self-collision is not checked.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from linksweep.errors import ArgumentError
from linksweep.identification.base_form import BaseForm, base_form
from linksweep.identification.regressor import Regressor
from linksweep.identification.threads import one_thread
from linksweep.motion.trajectories import FloatArray, JointMotion, Motion
from linksweep.support.checks import one_of, real_number, whole_number
from linksweep.support.messages import nearest, shown

if TYPE_CHECKING:
    from linksweep.robot.robot import Robot

KINDS = ("fourier", "spline")
CRITERIA = ("condition", "determinant")
BARRIER_WEIGHTS = (0.1, 0.01, 0.001)  # one after the other
MARGIN = 0.02  # of each limit, at the samples, because a trajectory exceeds them a little in between
FINE = 8  # times as many samples for the last check
CANDIDATES = 64  # random trajectories, of which the best are improved
MAX_TRIES = 2000  # random configurations for a start
SAMPLED = 400  # random configurations that determine which frames can be above the floor
FLOOR = 0.05  # m above the mounting surface
BASE_WIDTH = 0.1  # of the reach: half the width of the robot's base
SHARPNESS = 6  # s of the Schatten norms, which exceed the largest singular value by a factor below size^(1 / 2s)
DISTANCE = 0.5  # m, unit of distances to the floor and to boxes
FRICTION_WIDTH = 0.02  # of the velocity limit: width of smoothed Coulomb friction, which must be differentiable here

Box = Sequence[ArrayLike]  # lower and upper corner, (3,) each
Corners = tuple[np.ndarray, np.ndarray]
Gradients = tuple[np.ndarray, np.ndarray, np.ndarray]  # with respect to q, qd, qdd
Slack = tuple[np.ndarray, tuple[np.ndarray | None, ...]]  # distance to a limit, and derivatives wrt q, qd and qdd


# ---- trajectories
# --------------------------------------------------------------------------------------------------------


class Basis:
    """Basis functions Phi of trajectories q(t) = Phi(t) C with coefficients C (size, n), at rest at both ends.

    A call returns Phi and its first two derivatives at times t (rows,), three arrays (rows, size). oscillations: number
    of oscillations of the fastest function.
    """

    size: int
    duration: float
    oscillations: int

    def __call__(self, t: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        raise NotImplementedError


class FourierBasis(Basis):
    """A constant, and combinations of sin(l w t) and cos(l w t) for l up to `harmonics` that are at rest at t = 0.

    The base frequency is 1 / duration (J. Swevers, C. Ganseman, D. B. Tuekel, J. de Schutter, H. Van Brussel, "Optimal
    robot excitation and identification", 1997). The series is periodic, so it is at rest at the end too.
    """

    def __init__(self, harmonics: int, duration: float) -> None:
        self.oscillations, self.duration = harmonics, duration
        l = np.arange(1, harmonics + 1)  # noqa: E741  (Swevers's index)
        self.frequency = 2.0 * np.pi / duration * l  # rad/s
        # columns of sines, then cosines, in units of velocity: sin(l w t) / (l w), cos(l w t) / (l w)
        velocity = np.concatenate([np.ones(harmonics), np.zeros(harmonics)])  # at t = 0
        acceleration = np.concatenate([np.zeros(harmonics), self.frequency])  # at t = 0, up to its sign
        _, _, right = np.linalg.svd(np.stack([velocity, acceleration / np.linalg.norm(acceleration)]))
        self.at_rest: FloatArray = right[2:].T  # null space
        self.size = 1 + self.at_rest.shape[1]

    def __call__(self, t: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        w = self.frequency
        s, c = np.sin(t[:, None] * w), np.cos(t[:, None] * w)
        zero = np.zeros((len(t), 1))
        parts = ((s / w, c / w), (c, -s), (-s * w, -c * w))
        q, qd, qdd = (
            np.concatenate([constant, np.concatenate(pair, axis=1) @ self.at_rest], axis=1)
            for constant, pair in zip((zero + 1.0, zero, zero), parts, strict=True)
        )
        return q, qd, qdd


class SplineBasis(Basis):
    """Quintic B-splines on `pieces` even pieces; equal first and last three coefficients put both ends at rest."""

    DEGREE = 5

    def __init__(self, pieces: int, duration: float) -> None:
        from scipy.interpolate import BSpline

        self.oscillations, self.duration = pieces, duration
        knots = np.concatenate([[0.0] * self.DEGREE, np.linspace(0.0, duration, pieces + 1), [duration] * self.DEGREE])
        count = pieces + self.DEGREE
        coefficients = np.zeros((count, count - 4))
        coefficients[range(count), np.clip(np.arange(count) - 2, 0, count - 5)] = 1.0
        self.size = coefficients.shape[1]
        spline = BSpline(knots, coefficients, self.DEGREE)
        self._splines = spline, spline.derivative(1), spline.derivative(2)

    def __call__(self, t: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        q, qd, qdd = (spline(t) for spline in self._splines)
        return q, qd, qdd


def make_basis(kind: str, harmonics: int, duration: float) -> Basis:
    return FourierBasis(harmonics, duration) if kind == "fourier" else SplineBasis(4 * harmonics, duration)


class BasisMotion(Motion):
    """The motion Phi(t) C; before its start and after its end it is at rest."""

    def __init__(self, basis: Basis, coefficients: FloatArray) -> None:
        self.basis, self.coefficients = basis, coefficients
        self.start, self.end, self.width = 0.0, basis.duration, coefficients.shape[1]

    def _at(self, t: FloatArray) -> JointMotion:
        values = (phi @ self.coefficients for phi in self.basis(t.ravel()))
        return JointMotion(*(x.reshape(*t.shape, self.width) for x in values))


# ---- criteria and limits
# -------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Limits:
    """Limits of the joints (nv,) and of frames in the base frame.

    boxes: frame -> corners (3,) of the box in which its origin stays. floor: (rows of robot.frame_names, height):
    frames whose origins stay above a height. keep_out: (rows, boxes): frames whose origins stay outside of boxes.
    """

    lower: np.ndarray
    upper: np.ndarray
    velocity: np.ndarray
    acceleration: np.ndarray
    effort: np.ndarray
    boxes: Mapping[str, Corners]
    floor: tuple[tuple[int, ...], float] = ((), -np.inf)
    keep_out: tuple[tuple[int, ...], tuple[Corners, ...]] = ((), ())


class Criterion:
    """Criterion of a trajectory at samples (rows, nv), and its derivatives.

    W is the regressor of the base parameters with rows divided by the noise of their joint. "condition": the condition
    number of W, smoothed by Schatten norms, log(|W|_2s |W^-1|_2s). "determinant": minus log det(W^T W) (D-optimality).
    Both depend on A = W^T W alone. With dJ = 2 <W K, dW>, d(W K : Y)/dq is the derivative of inverse dynamics with the
    rows of W K as inertial parameters.
    """

    def __init__(self, base: BaseForm, criterion: str, limits: Limits, noise: np.ndarray) -> None:
        self.base, self.regressor, self.criterion = base, base.regressor, criterion
        robot = self.regressor.full
        self.row_weights = 1.0 / noise
        self.friction_width = FRICTION_WIDTH * np.where(np.isfinite(limits.velocity), limits.velocity, 1.0)
        self.drive_width = np.abs(self.regressor.transmission) @ self.friction_width
        torque = robot.compile("inverse_dynamics", parameters=("inertia",), dtype="float64")
        self.torque_derivatives = [torque.derivative(wrt) for wrt in ("q", "qd", "qdd")]
        self.links = len(robot.link_names)

    def condition(self, q: np.ndarray, qd: np.ndarray, qdd: np.ndarray) -> float:
        """Return the condition number of W, with exact Coulomb friction."""
        singular = np.linalg.svd(self._regressor(q, qd, qdd, smooth=False), compute_uv=False)
        return float(singular[0] / singular[-1]) if singular[-1] > 0.0 else np.inf

    def __call__(self, q: np.ndarray, qd: np.ndarray, qdd: np.ndarray) -> tuple[float, Gradients]:
        """Return the criterion, and its derivatives (rows, nv) with respect to q, qd and qdd."""
        W = self._regressor(q, qd, qdd, smooth=True) / np.sqrt(len(q))
        eigenvalues, vectors = np.linalg.eigh(W.T @ W)
        eigenvalues = np.maximum(eigenvalues, 1e-14 * eigenvalues[-1])
        low, high = eigenvalues[0], eigenvalues[-1]
        if self.criterion == "determinant":
            size = len(eigenvalues)
            value, derivative = -float(np.sum(np.log(eigenvalues))) / size, -1.0 / eigenvalues / size
        else:
            s = SHARPNESS
            up, down = np.sum((eigenvalues / high) ** s), np.sum((low / eigenvalues) ** s)
            value = 0.5 * float(np.log(high / low) + (np.log(up) + np.log(down)) / s)
            of_high = (eigenvalues / high) ** (s - 1) / (high * up)
            of_low = (low / eigenvalues) ** (s + 1) / (low * down)
            derivative = 0.5 * (of_high - of_low)
        K = (vectors * derivative) @ vectors.T  # dJ = tr(K dA) = 2 <W K, dW>
        G = (2.0 / np.sqrt(len(q)) * (W @ K) @ self.base.from_base.T).reshape(len(q), -1, len(self.base.pivots))
        return value, self._gradients(q, qd, qdd, G * self.row_weights[:, None])

    def _regressor(self, q: np.ndarray, qd: np.ndarray, qdd: np.ndarray, smooth: bool) -> np.ndarray:
        pivots = np.array(self.base.pivots)
        motion = self.regressor.at(q, qd, qdd)
        if smooth and "coulomb" in motion.drive_torques:
            motion.drive_torques["coulomb"] = np.tanh(qd @ self.regressor.transmission.T / self.drive_width).T
        Y = np.stack([motion.of_joint(joint, pivots).T for joint in range(self.regressor.nv)], axis=1)
        return (Y * self.row_weights[:, None] @ self.base.from_base).reshape(-1, len(self.base))

    def _gradients(self, q: np.ndarray, qd: np.ndarray, qdd: np.ndarray, G: np.ndarray) -> Gradients:
        """Return the derivatives of <G, Y> with respect to q, qd and qdd; G (rows, nv, pivots)."""
        regressor, nv = self.regressor, self.regressor.nv
        x = np.zeros((len(q), nv, len(regressor)))
        x[..., list(self.base.pivots)] = G
        bodies = np.swapaxes(x @ regressor.to_standard[: 10 * self.links].T, 0, 1).reshape(nv, len(q), self.links, 10)
        joints = np.arange(nv)
        by_q, by_qd, by_qdd = (
            np.sum(derivative(q[None], qd[None], qdd[None], bodies)[joints, :, joints], axis=0)
            for derivative in self.torque_derivatives
        )
        tanh = np.tanh(qd @ regressor.transmission.T / self.drive_width)
        for k, parameter in enumerate(regressor.parameters):
            if parameter.is_body:
                continue
            drive = parameter.index
            row = regressor.transmission[drive]
            weight = x[..., k] @ row  # of the torque of the drive
            if parameter.what == "armature":
                by_qdd += weight[:, None] * row
            elif parameter.what == "viscous":
                by_qd += weight[:, None] * row
            elif parameter.what == "coulomb":
                by_qd += (weight * ((1.0 - tanh[:, drive] ** 2) / self.drive_width[drive]))[:, None] * row
        return by_q, by_qd, by_qdd


class Barrier:
    """Log barrier of the limits, as slacks (constraints,) relative to their range, which stay above `margin`."""

    def __init__(self, limits: Limits, criterion: Criterion, margin: float) -> None:
        self.limits, self.criterion, self.margin = limits, criterion, margin
        self.robot = criterion.regressor.full
        standard = self.robot.standard_parameters
        self.inertia = np.array(standard[: 10 * criterion.links]).reshape(-1, 10)
        self.armature = np.array(standard[10 * criterion.links :])
        self.effort_limited = np.flatnonzero(np.isfinite(limits.effort))

    def slacks(self, q: np.ndarray, qd: np.ndarray, qdd: np.ndarray) -> np.ndarray:
        """Return all slacks in one row: 1 in the middle of the allowed range, 0 at a limit."""
        return np.concatenate([slack.ravel() for slack, _ in self._slacks(q, qd, qdd, gradients=False)])

    def usage(self, motion: Sequence[np.ndarray]) -> float:
        """Return the largest share of any limit that a trajectory uses; above 1 it violates the limit."""
        return float(1.0 - self.slacks(*motion).min())

    def __call__(self, q: np.ndarray, qd: np.ndarray, qdd: np.ndarray) -> tuple[float, Gradients]:
        """Return -sum of log(slack - margin) per row, and its derivatives."""
        total, gradients = 0.0, [np.zeros_like(q) for _ in range(3)]
        for slack, derivatives in self._slacks(q, qd, qdd, gradients=True):
            slack = slack - self.margin
            total -= float(np.sum(np.log(slack)))
            for into, derivative in zip(gradients, derivatives, strict=True):
                if derivative is None:
                    continue
                if derivative.ndim == slack.ndim:
                    into -= derivative / slack
                else:
                    into -= np.einsum("tc,tcj->tj", 1.0 / slack, derivative)
        rows = len(q)
        return total / rows, (gradients[0] / rows, gradients[1] / rows, gradients[2] / rows)

    def _slacks(self, q: np.ndarray, qd: np.ndarray, qdd: np.ndarray, gradients: bool) -> Iterator[Slack]:
        """Yield slacks and their derivatives with respect to q, qd, qdd.

        Derivatives are (rows, nv) for limits of each joint, (rows, constraints, nv), or None for zero.
        """
        limits = self.limits
        half, middle = 0.5 * (limits.upper - limits.lower), 0.5 * (limits.upper + limits.lower)
        for sign in (1.0, -1.0):
            yield 1.0 - sign * (q - middle) / half, (-sign / half + 0.0 * q, None, None)
            yield 1.0 - sign * qd / limits.velocity, (None, -sign / limits.velocity + 0.0 * q, None)
            yield 1.0 - sign * qdd / limits.acceleration, (None, None, -sign / limits.acceleration + 0.0 * q)
        if len(self.effort_limited):
            yield from self._effort_slacks(q, qd, qdd, gradients)
        for frame, (lower, upper) in limits.boxes.items():
            yield from self._box_slacks(q, frame, lower, upper, gradients)
        frames = sorted({*limits.floor[0], *(limits.keep_out[0] if limits.keep_out[1] else ())})
        if frames:
            yield from self._workspace_slacks(q, frames, gradients)

    def _effort_slacks(self, q: np.ndarray, qd: np.ndarray, qdd: np.ndarray, gradients: bool) -> Iterator[Slack]:
        joints, width = self.effort_limited, self.criterion.friction_width
        tanh = np.tanh(qd / width)
        friction, damping = self.robot.friction, self.robot.damping
        tau = (self.robot.inverse_dynamics(q, qd, qdd) + damping * qd + friction * tanh)[:, joints]
        effort = self.limits.effort[joints]
        by: list[np.ndarray] = []
        if gradients:
            derivatives = self.criterion.torque_derivatives
            by = [derivative(q, qd, qdd, self.inertia)[:, joints] / effort[:, None] for derivative in derivatives]
            of_friction = (damping + friction * (1.0 - tanh**2) / width)[:, :, None] * np.eye(q.shape[1])
            by[1] = by[1] + of_friction[:, joints] / effort[:, None]
            by[2] = by[2] + np.diag(self.armature)[joints] / effort[:, None]
        for sign in (1.0, -1.0):
            yield 1.0 - sign * tau / effort, tuple(-sign * one for one in by) or (None, None, None)

    def _box_slacks(
        self, q: np.ndarray, frame: str, lower: np.ndarray, upper: np.ndarray, gradients: bool
    ) -> Iterator[Slack]:
        origin = self.robot.pose(q, frame)[:, :3, 3]
        J = self.robot.jacobian(q, frame)[:, 3:] if gradients else None
        for sign, corner in ((1.0, upper), (-1.0, lower)):
            bounded = np.flatnonzero(np.isfinite(corner))
            half = np.where(np.isfinite(upper - lower), 0.5 * (upper - lower), 1.0)[bounded]
            slack = sign * (corner[bounded] - origin[:, bounded]) / half
            yield slack, (None if J is None else -sign * J[:, bounded] / half[:, None], None, None)

    def _workspace_slacks(self, q: np.ndarray, frames: list[int], gradients: bool) -> Iterator[Slack]:
        """Yield heights above the floor, and distances from boxes, measured at the face that is farthest behind."""
        origins = self.robot.poses(q)[..., :3, 3][:, frames]
        J = self.robot.jacobians(q)[:, frames, 3:] if gradients else None
        above, height = self.limits.floor
        at = [frames.index(frame) for frame in above]
        if at:
            slack = (origins[:, at, 2] - height) / DISTANCE
            yield slack, (None if J is None else J[:, at, 2] / DISTANCE, None, None)
        outside, boxes = self.limits.keep_out
        at = [frames.index(frame) for frame in outside]
        for lower, upper in boxes if at else ():
            distances = np.concatenate([origins[:, at] - upper, lower - origins[:, at]], axis=-1)  # (rows, frames, 6)
            face = np.argmax(distances, axis=-1)[..., None]
            slack = np.take_along_axis(distances, face, axis=-1)[..., 0] / DISTANCE
            derivative = None
            if J is not None:
                of_faces = np.concatenate([J[:, at], -J[:, at]], axis=2)  # (rows, frames, 6, nv)
                derivative = np.take_along_axis(of_faces, face[..., None], axis=2)[:, :, 0] / DISTANCE
            yield slack, (derivative, None, None)


# ---- the search
# ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Excitation:
    """An excitation trajectory, and how well it determines the parameters.

    Attributes
    ----------
    robot : Robot
        The robot that was excited.
    motion : Motion
        The trajectory; `motion(t)` returns q, qd and qdd.
    criterion : str
        "condition" or "determinant".
    condition : float
        Condition number of the regressor of the base parameters, with rows divided by the noise of their joint.
    start : float
        Condition number of the best random trajectory, before it was improved.
    used : float
        Largest share of any limit that the trajectory uses, at most 1.
    limits : Limits
        Limits that the trajectory respects.
    evaluations : int
        Number of evaluations of the criterion.
    lowest : float
        Lowest height (m, z of the base frame) of the origin of any moving frame. Self-collision is not checked.
    """

    robot: Robot
    motion: BasisMotion
    criterion: str
    condition: float
    start: float
    used: float
    limits: Limits
    evaluations: int
    lowest: float

    @property
    def duration(self) -> float:
        """Duration in seconds."""
        return self.motion.duration

    def samples(self, rate: float = 100.0) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """Return t (rows,), q, qd and qdd (rows, nv) at `rate` rows per second."""
        t = np.arange(round(self.duration * real_number("rate", rate, above=0.0)) + 1) / rate
        q, qd, qdd = self.motion(np.minimum(t, self.duration))
        return t, q, qd, qdd

    def to_csv(self, path: str | Path, rate: float = 100.0) -> None:
        """Write columns t, q.NAME, qd.NAME, qdd.NAME, which `linksweep inverse` and `linksweep simulate` read."""
        from linksweep.files import block_columns, write_table

        t, q, qd, qdd = self.samples(rate)
        table = np.column_stack([t, q, qd, qdd])
        write_table(Path(path), block_columns(self.robot.model, ("q", "qd", "qdd")), [table], {})

    def __repr__(self) -> str:
        return (
            f"<Excitation of {self.robot.name}: {self.duration:g} s, condition number {self.condition:.4g} (best "
            f"random start {self.start:.4g}), {100 * self.used:.0f} % of limits, lowest point {self.lowest:.3g} m, "
            f"self-collision not checked>"
        )


@one_thread()
def excite(
    robot: Robot, duration: float = 10.0, *, kind: str = "fourier", harmonics: int = 5, criterion: str = "condition",
    unknown: Sequence[str] = ("inertia",), drives: Mapping[str, Mapping[str, float]] | ArrayLike | None = None,
    noise: ArrayLike | None = None, acceleration: ArrayLike | None = None, velocity: ArrayLike | None = None,
    effort: ArrayLike | None = None, boxes: Mapping[str, Box] | None = None, seed: int = 0, starts: int = 2,
    iterations: int = 100, floor: float | None = FLOOR, keep_out: Sequence[Box] | None = None,
) -> Excitation:  # fmt: skip
    """Find an excitation trajectory that determines the parameters of a robot well.

    The trajectory is at rest at both ends and respects position, velocity, acceleration and effort limits. Frames are
    represented by their origins, so keep the floor and boxes as far away as links are thick. Self-collision is not
    checked: look at the trajectory before you run it.

    Parameters
    ----------
    robot : Robot
        A robot with 1-DOF joints and without mimic joints.
    duration : float
        Duration in seconds.
    kind : {"fourier", "spline"}
        Finite Fourier series, or quintic spline.
    harmonics : int
        Number of harmonics of 1 / duration; a spline has four times as many pieces.
    criterion : {"condition", "determinant"}
        Minimise the condition number of the regressor, or maximise the determinant of the information matrix.
    unknown, drives
        Parameters to be determined, as in `identify`. Friction needs no special excitation and is omitted by default.
    noise : array_like, optional
        Torque noise of each joint (N m) by which rows are divided. Equal by default.
    velocity, acceleration, effort : array_like, optional
        Limits that replace those of the robot model, one number or (nv,). Without limits in the model, ±π rad and 1
        rad/s are used for revolute joints; the acceleration limit is 4 times the velocity limit per second.
    boxes : mapping, optional
        {frame: (lower corner, upper corner)} in which the origin of a frame stays, in metres in the base frame.
    seed : int
        Seed of the random trajectories.
    starts : int
        Number of random trajectories that are improved, each by `iterations` steps for each weight of the barrier.
    iterations : int
        Steps of the optimiser.
    floor : float or None
        Height (m, z of the base frame) above which the origins of all moving frames stay; None for no floor. The
        default applies to frames that can be above it.
    keep_out : sequence, optional
        Boxes (lower corner, upper corner) that no such origin enters. By default one around the robot's base; () for
        none.

    Returns
    -------
    Excitation
        The trajectory, its condition number, and methods to sample and write it.

    Examples
    --------
    >>> motion = ls.excite(robot, 10.0, acceleration=5.0)
    >>> t, q, qd, qdd = motion.samples(rate=500.0)
    """
    one_of("kind", kind, KINDS)
    one_of("criterion", criterion, CRITERIA)
    harmonics = whole_number("harmonics", harmonics, at_least=2, at_most=200)
    starts = whole_number("starts", starts, at_least=0, at_most=10_000)
    iterations = whole_number("iterations", iterations, at_least=0, at_most=10**6)
    seed = whole_number("seed", seed, at_least=0)
    regressor = Regressor(robot, unknown, drives)
    if robot.couplings:
        raise ArgumentError(f"{robot.name} has mimic joints, which excite does not support: use robot.uncoupled.")
    unsupported = [
        p.kind for p in regressor.parameters if not p.is_body and p.what not in ("armature", "viscous", "coulomb")
    ]
    if unsupported:
        raise ArgumentError(
            f"unknown has {unsupported[0]!r}, expected inertia, payload, armature, viscous or coulomb for excite."
        )
    limits = _joint_and_frame_limits(robot, velocity, acceleration, effort, boxes, floor, keep_out)
    basis = make_basis(kind, harmonics, real_number("duration", duration, above=0.0))
    cost = Criterion(base_form(regressor), criterion, limits, _per_joint("noise", noise, np.ones(regressor.nv)))
    barrier = Barrier(limits, cost, MARGIN)
    phi = basis(np.linspace(0.0, basis.duration, 20 * basis.oscillations + 1)[:-1])
    rng = np.random.default_rng(seed)
    candidates = [random_coefficients(basis, phi, barrier, rng) for _ in range(max(CANDIDATES, starts))]
    conditions = [cost.condition(*(one @ C for one in phi)) for C in candidates]
    order = np.argsort(conditions)
    evaluations, best_value, best = 0, np.inf, candidates[order[0]]
    for k in order[: max(1, starts)]:
        C, count = _improved(candidates[k], phi, cost, barrier, iterations)
        C = _within_limits(C, basis, barrier)
        evaluations += count
        value = cost(*(one @ C for one in phi))[0]
        if value < best_value:
            best_value, best = value, C
    fine = tuple(one @ best for one in basis(_fine_times(basis)))
    return Excitation(
        robot, BasisMotion(basis, best), criterion, cost.condition(*(one @ best for one in phi)),
        float(conditions[order[0]]), barrier.usage(fine), limits, evaluations, _lowest_point(robot, fine[0]),
    )  # fmt: skip


def random_coefficients(
    basis: Basis, phi: Sequence[np.ndarray], barrier: Barrier, rng: np.random.Generator
) -> np.ndarray:
    """Return the coefficients of a random trajectory, as large as the limits allow."""
    limits = barrier.limits
    constant = _constant(phi)
    for _ in range(MAX_TRIES):
        center = limits.lower + (limits.upper - limits.lower) * rng.uniform(0.25, 0.75, len(limits.lower))
        C = rng.normal(size=(basis.size, len(center))) * np.minimum(limits.velocity, 1e3)
        C -= np.outer(constant, (phi[0] @ C).mean(axis=0))
        offset = np.outer(constant, center)
        if barrier.slacks(center[None], *np.zeros((2, 1, len(center)))).min() <= 1.5 * MARGIN:
            continue
        size = 1.0
        for _ in range(200):
            if barrier.slacks(*(one @ (offset + size * C) for one in phi)).min() > 1.5 * MARGIN:
                return offset + size * C
            size *= 0.9
        return offset + 0.0 * C
    raise ArgumentError(
        "excite finds no configuration within the effort limits, above the floor and inside or outside of the boxes: "
        "check floor, boxes and keep_out (metres, base frame), and the effort limits against gravity."
    )


def _constant(phi: Sequence[np.ndarray]) -> np.ndarray:
    """Return the coefficients of the constant 1."""
    return np.linalg.lstsq(phi[0], np.ones(len(phi[0])), rcond=None)[0]


def _improved(
    C: np.ndarray, phi: Sequence[np.ndarray], criterion: Criterion, barrier: Barrier, iterations: int
) -> tuple[np.ndarray, int]:
    """Minimise criterion + weight * barrier by BFGS for one weight after the other; return also the evaluations."""
    count = 0
    metric = np.linalg.cholesky(
        sum(one.T @ one / np.trace(one.T @ one) for one in phi) + 1e-6 * np.eye(phi[0].shape[1])
    )
    scale = np.minimum(barrier.limits.velocity, 1e3)
    shape = C.shape

    def coefficients(y: np.ndarray) -> np.ndarray:
        return np.linalg.solve(metric.T, y.reshape(shape)) * scale

    def cost(y: np.ndarray, weight: float) -> tuple[float, np.ndarray]:
        nonlocal count
        count += 1
        C = coefficients(y)
        motion = [one @ C for one in phi]
        if barrier.slacks(*motion).min() <= MARGIN:
            return np.inf, y
        value, gradients = criterion(*motion)
        barrier_value, barrier_gradients = barrier(*motion)
        gradient = sum(one.T @ (a + weight * b) for one, a, b in zip(phi, gradients, barrier_gradients, strict=True))
        return value + weight * barrier_value, np.linalg.solve(metric, gradient * scale).ravel()

    y = (metric.T @ (C / scale)).ravel()
    for weight in BARRIER_WEIGHTS:
        y = _bfgs(lambda y, w=weight: cost(y, w), y, iterations)
    return coefficients(y), count


def _bfgs(cost: Callable[[np.ndarray], tuple[float, np.ndarray]], y: np.ndarray, iterations: int) -> np.ndarray:
    """Minimise by the method of Broyden, Fletcher, Goldfarb and Shanno; steps that leave the limits are halved."""
    value, gradient = cost(y)
    inverse = np.eye(len(y)) / max(1e-12, float(np.linalg.norm(gradient)))
    for _ in range(iterations):
        step = -inverse @ gradient
        decrease = float(gradient @ step)
        if decrease > -1e-10:
            break
        size = 1.0
        while size > 1e-8:
            trial = y + size * step
            trial_value, trial_gradient = cost(trial)
            if trial_value <= value + 1e-4 * size * decrease:
                break
            size *= 0.5
        else:
            break
        dy, dg = trial - y, trial_gradient - gradient
        curvature = float(dy @ dg)
        if curvature > 1e-12 * float(np.linalg.norm(dy) * np.linalg.norm(dg)):
            along = inverse @ dg
            inverse += (1.0 + dg @ along / curvature) * np.outer(dy, dy) / curvature
            inverse -= (np.outer(along, dy) + np.outer(dy, along)) / curvature
        y, value, gradient = trial, trial_value, trial_gradient
    return y


def _fine_times(basis: Basis) -> np.ndarray:
    return np.linspace(0.0, basis.duration, FINE * 20 * basis.oscillations + 1)


def _within_limits(C: np.ndarray, basis: Basis, barrier: Barrier) -> np.ndarray:
    """Return the trajectory, scaled down about its mean where it violates a limit between the samples."""
    phi = basis(_fine_times(basis))
    offset = np.outer(_constant(phi), (phi[0] @ C).mean(axis=0))
    for size in np.linspace(1.0, 0.0, 201):
        scaled = offset + size * (C - offset)
        if barrier.slacks(*(one @ scaled for one in phi)).min() > 0.0:
            return scaled
    return offset


def _joint_and_frame_limits(
    robot: Robot, velocity: ArrayLike | None, acceleration: ArrayLike | None, effort: ArrayLike | None,
    boxes: Mapping[str, Box] | None, floor: float | None = None, keep_out: Sequence[Box] | None = (),
) -> Limits:  # fmt: skip
    model = robot.limits
    turns = np.array([joint.type.turns for joint in robot.model.joints])
    unlimited = ~(np.isfinite(model.lower) & np.isfinite(model.upper))
    if (unlimited & ~turns).any():
        name = robot.joint_names[int(np.argmax(unlimited & ~turns))]
        raise ArgumentError(f"prismatic joint {name!r} has no limits, expected some: set them with robot.with_limits.")
    lower, upper = np.where(unlimited, -np.pi, model.lower), np.where(unlimited, np.pi, model.upper)
    if not (lower < upper).all():
        name = robot.joint_names[int(np.argmin(upper - lower))]
        raise ArgumentError(f"the limits of joint {name!r} are equal, expected lower < upper: lock it, or widen them.")
    velocities = _per_joint(
        "velocity", velocity, np.where(np.isfinite(model.velocity) & (model.velocity > 0), model.velocity, 1.0)
    )
    origins = None
    if floor is not None or keep_out is None or len(keep_out):  # origins (configurations, frames, 3) of all frames
        rng = np.random.default_rng(7)
        origins = robot.poses(lower + (upper - lower) * rng.uniform(size=(SAMPLED, len(lower))))[:, :, :3, 3]
    return Limits(
        lower, upper, velocities, _per_joint("acceleration", acceleration, 4.0 * velocities),
        _per_joint("effort", effort, np.where(model.effort > 0, model.effort, np.inf)), _checked_boxes(robot, boxes),
        _floor_frames(robot, floor, origins), _keep_out_frames(keep_out, floor, origins),
    )  # fmt: skip


def _floor_frames(robot: Robot, floor: float | None, origins: np.ndarray | None) -> tuple[tuple[int, ...], float]:
    """Return the frames that can be above and below the floor, and its height."""
    if floor is None or origins is None:
        return (), -np.inf
    if isinstance(floor, bool) or not isinstance(floor, (int, float, np.number)) or not np.isfinite(floor):
        raise ArgumentError(f"floor is {shown(floor)}, expected a height in metres in the base frame, or None.")
    z = origins[..., 2]
    moves = np.ptp(z, axis=0) > 1e-6
    below = np.flatnonzero(moves & (z.max(axis=0) <= floor))
    if len(below) and floor != FLOOR:  # the default is a guess: a robot may hang from its mounting surface
        name, top = robot.frame_names[below[0]], float(z[:, below[0]].max())
        raise ArgumentError(
            f"floor is {floor:g} m, but the origin of {name!r} is never higher than about {top:.3g} m: excite finds no "
            f"configuration above it; expected a lower height in the base frame, or None."
        )
    both = (z.max(axis=0) > floor + 0.05) & (z.min(axis=0) < floor + 0.05)
    return tuple(np.flatnonzero(both & moves).tolist()), float(floor)


def _keep_out_frames(
    keep_out: Sequence[Box] | None, floor: float | None, origins: np.ndarray | None
) -> tuple[tuple[int, ...], tuple[Corners, ...]]:
    """Return the frames that can be outside of the boxes, and the boxes; by default one around the robot's base."""
    if origins is None or (keep_out is not None and not len(keep_out)):
        return (), ()
    if keep_out is not None:
        boxes = tuple(_checked_box(f"keep_out[{k}]", corners) for k, corners in enumerate(keep_out))
    else:
        reach = float(np.linalg.norm(origins, axis=2).max())
        fixed = np.ptp(origins, axis=0).max(axis=1) < 1e-6 * max(reach, 1e-300)  # on the first axis
        radius = np.linalg.norm(origins[0, :, :2], axis=1)
        top = float(origins[0, fixed & (radius < BASE_WIDTH * reach), 2].max(initial=0.0))
        if top <= (floor or 0.0):
            return (), ()
        half = BASE_WIDTH * reach
        boxes = ((np.array([-half, -half, -np.inf]), np.array([half, half, top])),)
    outside = np.ones(origins.shape[1], bool)
    for lower, upper in boxes:
        out = ((origins < lower) | (origins > upper)).any(axis=2)
        outside &= out.mean(axis=0) > 0.5  # other frames belong to the base or to an object in the box
    moves = np.ptp(origins, axis=0).max(axis=1) > 1e-6
    return tuple(np.flatnonzero(outside & moves).tolist()), boxes


def _lowest_point(robot: Robot, q: np.ndarray) -> float:
    """Return the lowest z of the origins of moving frames."""
    origins = robot.poses(q)[:, :, :3, 3]
    moves = np.ptp(origins, axis=0).max(axis=1) > 1e-9
    return float(origins[:, moves, 2].min()) if moves.any() else 0.0


def _per_joint(name: str, value: ArrayLike | None, default: np.ndarray) -> np.ndarray:
    if value is None:
        return default
    array = np.asarray(value, dtype=float)
    if array.shape not in ((), default.shape) or not (array > 0).all():
        raise ArgumentError(f"{name} is {shown(value)}, expected a number above 0, or {len(default)} of them.")
    return np.broadcast_to(array, default.shape).astype(float)


def _checked_boxes(robot: Robot, boxes: Mapping[str, Box] | None) -> dict[str, Corners]:
    checked = {}
    for frame, corners in dict(boxes or {}).items():
        if frame not in robot.frame_names:
            raise ArgumentError(
                f"boxes: {robot.name} has no frame {shown(frame)}{nearest(frame, robot.frame_names)}, expected one of "
                f"robot.frame_names."
            )
        checked[frame] = _checked_box(f"the box of {frame!r}", corners)
    return checked


def _checked_box(what: str, corners: Box) -> Corners:
    try:
        lower, upper = (np.asarray(corner, dtype=float) for corner in corners)
    except (TypeError, ValueError):
        lower = upper = np.zeros(0)
    if lower.shape != (3,) or upper.shape != (3,) or not (lower < upper).all():
        raise ArgumentError(f"{what} is {shown(corners)}, expected two corners of three numbers, the lower one first.")
    return lower, upper
