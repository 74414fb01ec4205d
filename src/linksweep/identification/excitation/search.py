"""`excite`: the motion within a robot's limits that determines its parameters best.

A log barrier keeps every sample inside position, velocity, acceleration and effort limits, above the floor, and in and
out of boxes; BFGS with exact gradients descends from the best of some random starts, while the barrier's weight falls.
The same seed gives the same motion. Links are points here, the origins of their frames: collisions of links with each
other are not checked.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from linksweep.errors import ArgumentError
from linksweep.identification.excitation.bases import KINDS, Basis, BasisMotion, basis_of
from linksweep.identification.excitation.criteria import CRITERIA, Barrier, Limits, Worth, usage
from linksweep.identification.model.columns import Columns
from linksweep.identification.model.grouping import grouping
from linksweep.identification.threads import one_thread
from linksweep.support.messages import is_one_of, nearest, shown

if TYPE_CHECKING:
    from linksweep.robot.robot import Robot

WEIGHTS = (0.1, 0.01, 0.001)  # of the barrier, one after the other
MARGIN = 0.02  # of each limit, at the samples: between them a motion goes a little beyond
FINE = 8  # times as many rows for the last check
CANDIDATES = 64  # random starts, of which the best are followed
TRIES = 2000  # random poses for a start
SAMPLED = 400  # random poses that tell which frames can be above the floor
FLOOR = 0.05  # m above the surface that the robot is mounted on
COLUMN = 0.1  # of the reach: half the width of a robot's base


Box = Sequence[ArrayLike]  # its lower and its upper corner, (3,) each


@dataclass(frozen=True)
class Excitation:
    """A motion, and how well it determines the parameters.

    condition: of the regressor of the base parameters, its rows over the noise. start: that of the best of CANDIDATES
    random motions, before it was improved. used: the largest part of any limit. limits: those kept. lowest: the least
    height (m, z of the base frame) of the origin of any moving frame. Self-collision is not checked.
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
        return self.motion.duration

    def samples(self, rate: float = 100.0) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """t, q, qd, qdd at `rate` rows a second."""
        t = np.arange(round(self.duration * _positive("rate", rate)) + 1) / rate
        q, qd, qdd = self.motion(np.minimum(t, self.duration))
        return t, q, qd, qdd

    def to_csv(self, path: str | Path, rate: float = 100.0) -> None:
        """Columns t, q.NAME, qd.NAME, qdd.NAME: a trajectory that `linksweep inverse` and `simulate` read."""
        from linksweep.tables import block_columns, write_table

        t, q, qd, qdd = self.samples(rate)
        table = np.column_stack([t, q, qd, qdd])
        write_table(Path(path), block_columns(self.robot.model, ("q", "qd", "qdd")), [table], {})

    def __repr__(self) -> str:
        return (
            f"<Excitation of {self.robot.name}: {self.duration:g} s, condition {self.condition:.4g} (best random start "
            f"{self.start:.4g}), {100 * self.used:.0f} % of limits, lowest point {self.lowest:.3g} m, self-collision "
            f"not checked>"
        )


@one_thread()
def excite(
    robot: Robot, duration: float = 10.0, *, kind: str = "fourier", harmonics: int = 5, criterion: str = "condition",
    unknown: Sequence[str] = ("inertia",), drives: Mapping[str, Mapping[str, float]] | ArrayLike | None = None,
    noise: ArrayLike | None = None, acceleration: ArrayLike | None = None, velocity: ArrayLike | None = None,
    effort: ArrayLike | None = None, boxes: Mapping[str, Box] | None = None, seed: int = 0, starts: int = 2,
    iterations: int = 100, floor: float | None = FLOOR, keep_out: Sequence[Box] | None = None,
) -> Excitation:  # fmt: skip
    """Find the most exciting motion of `duration` seconds, at rest at both ends.

    kind: "fourier" or "spline", with `harmonics`. criterion: "condition" or "determinant". unknown, drives: what is to
    be shown, as of `identify`; friction shows itself in any motion. noise: N m of each joint's torque, by which rows
    are weighed; all alike where not given. velocity, acceleration, effort: limits that replace the description's
    (acceleration: four times the velocity limit a second, if omitted). starts: how many of the random motions are
    improved, each in `iterations` steps for each weight of the barrier.

    Distances are in the base frame, whose x-y plane is taken for the surface that the robot is mounted on. floor: m, z
    above which the origins of all moving frames stay (those that can, with the default); None: no floor. boxes: {frame:
    (lower corner, upper corner)} in which the origin of a frame stays. keep_out: boxes (lower corner, upper corner)
    that no such origin enters; None: one around the robot's own base; (): none. Links are points: keep the floor and
    the boxes as far away as links are thick. Self-collision is not checked: look at the motion before you run it.
    """
    for name, value, known in (("kind", kind, KINDS), ("criterion", criterion, CRITERIA)):
        if not is_one_of(value, known):
            raise ArgumentError(f"{name} is {shown(value)}{nearest(value, known)}, expected one of {', '.join(known)}.")
    for name, value, least, most in (
        ("harmonics", harmonics, 2, 200), ("starts", starts, 0, 10_000), ("iterations", iterations, 0, 10**6),
        ("seed", seed, 0, None),
    ):  # fmt: skip
        whole = isinstance(value, (int, np.integer)) and not isinstance(value, bool)
        if not whole or value < least or (most is not None and value > most):
            between = f"of at least {least}" if most is None else f"from {least} to {most:,}"
            raise ArgumentError(f"{name} is {shown(value)}, expected a whole number {between}.")
    columns = Columns(robot, unknown, drives)
    if robot.couplings or any(
        c.what not in ("armature", "viscous", "coulomb") for c in columns.columns if not c.is_body
    ):
        raise ArgumentError(
            "excite takes a Robot none of whose joints follows another, and unknowns of links, armature, viscous and "
            "coulomb, expected no others: leave them out, or use robot.uncoupled."
        )
    group = grouping(columns)
    limits = _limits(robot, velocity, acceleration, effort, boxes, floor, keep_out)
    basis = basis_of(kind, int(harmonics), _positive("duration", duration))
    worth = Worth(group, criterion, limits, _of_joints("noise", noise, np.ones(columns.nv)))
    barrier = Barrier(columns, limits, worth, MARGIN)
    phi = basis(np.linspace(0.0, basis.duration, 20 * basis.ripples + 1)[:-1])
    rng = np.random.default_rng(seed)
    found = [random_coefficients(basis, phi, barrier, rng) for _ in range(max(CANDIDATES, starts))]
    worths = [worth.condition(*(one @ C for one in phi)) for C in found]
    order = np.argsort(worths)
    count, best = 0, (np.inf, found[order[0]])
    for k in order[: max(1, starts)]:
        C, used = _descended(found[k], phi, worth, barrier, int(iterations))
        C = _within(C, basis, barrier)
        count += used
        score = worth(*(one @ C for one in phi))[0]
        if score < best[0]:
            best = score, C
    motion = BasisMotion(basis, best[1])
    fine = tuple(one @ best[1] for one in basis(_fine_times(basis)))
    return Excitation(
        robot, motion, criterion, worth.condition(*(one @ best[1] for one in phi)), float(worths[order[0]]),
        usage(barrier, fine), limits, count, _lowest(robot, fine[0]),
    )  # fmt: skip


def random_coefficients(
    basis: Basis, phi: Sequence[np.ndarray], barrier: Barrier, rng: np.random.Generator
) -> np.ndarray:
    """A random motion that stays within the limits: any direction of the coefficients, as far as it goes."""
    limits = barrier.limits
    for _ in range(TRIES):
        where = limits.lower + (limits.upper - limits.lower) * rng.uniform(0.25, 0.75, len(limits.lower))
        C = rng.normal(size=(basis.size, len(where))) * np.minimum(limits.velocity, 1e3)
        middle = phi[0] @ C
        still = np.linalg.lstsq(phi[0], np.ones(len(phi[0])), rcond=None)[0]  # the coefficients of 1
        C -= np.outer(still, middle.mean(axis=0))
        rest = np.outer(still, where)
        if barrier.slacks(where[None], *np.zeros((2, 1, len(where)))).min() <= 1.5 * MARGIN:
            continue
        return rest + _largest(C, rest, phi, barrier) * C
    raise ArgumentError(
        "excite finds no pose within effort limits, above the floor and in and out of boxes, expected some: check "
        "floor, boxes and keep_out, in metres in the base frame, and the effort limits against gravity."
    )


def _largest(C: np.ndarray, rest: np.ndarray, phi: Sequence[np.ndarray], barrier: Barrier) -> float:
    """The largest size, in steps of a tenth, at which a motion about a pose stays within the limits."""
    # positions, velocities and accelerations are linear in the size: the first that is full
    size = 1.0
    for _ in range(200):
        if barrier.slacks(*(one @ (rest + size * C) for one in phi)).min() > 1.5 * MARGIN:
            return size
        size *= 0.9
    return 0.0


def _descended(
    C: np.ndarray, phi: Sequence[np.ndarray], worth: Worth, barrier: Barrier, iterations: int
) -> tuple[np.ndarray, int]:
    """BFGS on criterion + weight * barrier, with the weights one after the other; how often it was evaluated."""
    count = 0
    metric = np.linalg.cholesky(
        sum(one.T @ one / np.trace(one.T @ one) for one in phi) + 1e-6 * np.eye(phi[0].shape[1])
    )
    scale = np.minimum(barrier.limits.velocity, 1e3)

    def of(y: np.ndarray, weight: float) -> tuple[float, np.ndarray]:
        nonlocal count
        count += 1
        C = np.linalg.solve(metric.T, y.reshape(C_shape)) * scale
        motion = [one @ C for one in phi]
        if barrier.slacks(*motion).min() <= MARGIN:
            return np.inf, y
        value, slopes = worth(*motion)
        wall, walls = barrier(*motion)
        by = sum(one.T @ (a + weight * b) for one, a, b in zip(phi, slopes, walls, strict=True))
        return value + weight * wall, np.linalg.solve(metric, by * scale).ravel()

    C_shape = C.shape
    y = (metric.T @ (C / scale)).ravel()
    for weight in WEIGHTS:
        y = _bfgs(lambda y, w=weight: of(y, w), y, iterations)
    return np.linalg.solve(metric.T, y.reshape(C_shape)) * scale, count


def _bfgs(cost: Callable[[np.ndarray], tuple[float, np.ndarray]], y: np.ndarray, iterations: int) -> np.ndarray:
    """Broyden's, Fletcher's, Goldfarb's and Shanno's method; a step that leaves the limits is halved."""
    value, slope = cost(y)
    inverse = np.eye(len(y)) / max(1e-12, float(np.linalg.norm(slope)))
    for _ in range(iterations):
        step = -inverse @ slope
        gain = float(slope @ step)
        if gain > -1e-10:
            break
        size = 1.0
        while size > 1e-8:
            trial = y + size * step
            new, new_slope = cost(trial)
            if new <= value + 1e-4 * size * gain:
                break
            size *= 0.5
        else:
            break
        moved, turned = trial - y, new_slope - slope
        curve = float(moved @ turned)
        if curve > 1e-12 * float(np.linalg.norm(moved) * np.linalg.norm(turned)):
            along = inverse @ turned
            inverse += (1.0 + turned @ along / curve) * np.outer(moved, moved) / curve
            inverse -= (np.outer(along, moved) + np.outer(moved, along)) / curve
        y, value, slope = trial, new, new_slope
    return y


def _fine_times(basis: Basis) -> np.ndarray:
    return np.linspace(0.0, basis.duration, FINE * 20 * basis.ripples + 1)


def _within(C: np.ndarray, basis: Basis, barrier: Barrier) -> np.ndarray:
    """The motion, made smaller about its mean where it goes beyond a limit between the samples."""
    phi = basis(_fine_times(basis))
    still = np.linalg.lstsq(phi[0], np.ones(len(phi[0])), rcond=None)[0]
    rest = np.outer(still, (phi[0] @ C).mean(axis=0))
    for size in np.linspace(1.0, 0.0, 201):
        small = rest + size * (C - rest)
        if barrier.slacks(*(one @ small for one in phi)).min() > 0.0:
            return small
    return rest


def _limits(
    robot: Robot, velocity: ArrayLike | None, acceleration: ArrayLike | None, effort: ArrayLike | None,
    boxes: Mapping[str, Box] | None, floor: float | None = None, keep_out: Sequence[Box] | None = (),
) -> Limits:  # fmt: skip
    own = robot.limits
    turns = np.array([joint.type.turns for joint in robot.model.joints])
    free = ~(np.isfinite(own.lower) & np.isfinite(own.upper))
    if (free & ~turns).any():
        name = robot.joint_names[int(np.argmax(free & ~turns))]
        raise ArgumentError(f"joint {name!r} slides and has no limits, expected some: set them with robot.with_limits.")
    lower, upper = np.where(free, -np.pi, own.lower), np.where(free, np.pi, own.upper)
    if not (lower < upper).all():
        name = robot.joint_names[int(np.argmin(upper - lower))]
        raise ArgumentError(f"joint {name!r} has no room between its limits, expected some: lock it, or widen them.")
    rates = _of_joints(
        "velocity", velocity, np.where(np.isfinite(own.velocity) & (own.velocity > 0), own.velocity, 1.0)
    )
    places = _sampled_places(robot, lower, upper) if floor is not None or keep_out is None or len(keep_out) else None
    return Limits(
        lower, upper, rates, _of_joints("acceleration", acceleration, 4.0 * rates),
        _of_joints("effort", effort, np.where(own.effort > 0, own.effort, np.inf)), _boxes(robot, boxes),
        _floor(robot, floor, places), _keep_out(robot, keep_out, floor, places),
    )  # fmt: skip


def _sampled_places(robot: Robot, lower: np.ndarray, upper: np.ndarray) -> np.ndarray:
    """Origins (poses, frames, 3) of all frames at random poses."""
    rng = np.random.default_rng(7)
    return robot.poses(lower + (upper - lower) * rng.uniform(size=(SAMPLED, len(lower))))[:, :, :3, 3]


def _floor(robot: Robot, floor: float | None, places: np.ndarray | None) -> tuple[tuple[int, ...], float]:
    """The frames that can be above the floor and below it, and its height."""
    if floor is None or places is None:
        return (), -np.inf
    if isinstance(floor, bool) or not isinstance(floor, (int, float, np.number)) or not np.isfinite(floor):
        raise ArgumentError(f"floor is {shown(floor)}, expected a height in metres in the base frame, or None.")
    z = places[..., 2]
    moves = np.ptp(z, axis=0) > 1e-6
    below = np.flatnonzero(moves & (z.max(axis=0) <= floor))
    if len(below) and floor != FLOOR:  # the default is a guess: a robot may hang from the surface that it is mounted on
        name, top = robot.frame_names[below[0]], float(z[:, below[0]].max())
        raise ArgumentError(
            f"excite finds no pose above floor={floor:g}: the origin of {name!r} is never higher than about "
            f"{top:.3g} m, expected a height in the base frame that all moving frames can be above, or None."
        )
    both = (z.max(axis=0) > floor + 0.05) & (z.min(axis=0) < floor + 0.05)
    return tuple(np.flatnonzero(both & moves).tolist()), float(floor)


def _keep_out(
    robot: Robot, keep_out: Sequence[Box] | None, floor: float | None, places: np.ndarray | None
) -> tuple[tuple[int, ...], tuple[tuple[np.ndarray, np.ndarray], ...]]:
    """The frames that can be out of the boxes, and the boxes; by default the robot's own base, up to its shoulder."""
    if places is None or (keep_out is not None and not len(keep_out)):
        return (), ()
    if keep_out is not None:
        boxes = tuple(_corners(f"keep_out[{k}]", corners) for k, corners in enumerate(keep_out))
    else:
        reach = float(np.linalg.norm(places, axis=2).max())
        still = np.ptp(places, axis=0).max(axis=1) < 1e-6 * max(reach, 1e-300)  # on the first axis: the column
        beside = np.linalg.norm(places[0, :, :2], axis=1)
        top = float(places[0, still & (beside < COLUMN * reach), 2].max(initial=0.0))
        if top <= (floor or 0.0):
            return (), ()
        wide = COLUMN * reach
        boxes = ((np.array([-wide, -wide, -np.inf]), np.array([wide, wide, top])),)
    outside = np.ones(places.shape[1], bool)
    for lower, upper in boxes:
        out = ((places < lower) | (places > upper)).any(axis=2)
        outside &= out.mean(axis=0) > 0.5  # others belong to the base or to what is in the box anyway
    moves = np.ptp(places, axis=0).max(axis=1) > 1e-6
    return tuple(np.flatnonzero(outside & moves).tolist()), boxes


def _lowest(robot: Robot, q: np.ndarray) -> float:
    """The least z of the origins of frames that move."""
    places = robot.poses(q)[:, :, :3, 3]
    moves = np.ptp(places, axis=0).max(axis=1) > 1e-9
    return float(places[:, moves, 2].min()) if moves.any() else 0.0


def _of_joints(name: str, value: ArrayLike | None, described: np.ndarray) -> np.ndarray:
    if value is None:
        return described
    array = np.asarray(value, dtype=float)
    if array.shape not in ((), described.shape) or not (array > 0).all():
        raise ArgumentError(f"{name} is {shown(value)}, expected a number above 0, or {len(described)} of them.")
    return np.broadcast_to(array, described.shape).astype(float)


def _boxes(robot: Robot, boxes: Mapping[str, Box] | None) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    found = {}
    for frame, corners in dict(boxes or {}).items():
        if frame not in robot.frame_names:
            raise ArgumentError(
                f"boxes: {robot.name} has no frame {shown(frame)}{nearest(frame, robot.frame_names)}, expected one of "
                f"robot.frame_names."
            )
        found[frame] = _corners(f"the box of {frame!r}", corners)
    return found


def _corners(what: str, corners: Box) -> tuple[np.ndarray, np.ndarray]:
    try:
        lower, upper = (np.asarray(corner, dtype=float) for corner in corners)
    except (TypeError, ValueError):
        lower = upper = np.zeros(0)
    if lower.shape != (3,) or upper.shape != (3,) or not (lower < upper).all():
        raise ArgumentError(f"{what} is {shown(corners)}, expected two corners of three numbers, the lower one first.")
    return lower, upper


def _positive(name: str, value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float, np.number)) or not 0 < value < np.inf:
        raise ArgumentError(f"{name} is {shown(value)}, expected a number above 0.")
    return float(value)
