"""How much a motion shows, and what it uses of the robot's limits, both with exact derivatives by q, qd and qdd.

The regressor W of the base parameters, rows over each joint's noise. "condition": the ratio of its largest and smallest
singular values, made smooth by Schatten norms, log(|W|_2s |W^-1|_2s). "determinant": minus log det(W^T W)
(D-optimality). Both are functions of A = W^T W alone; with dJ = 2 <W K, dW> the rows of W K say for which bodies
torques must be differentiated: d(W K : Y)/dq is the derivative of inverse dynamics with those numbers as inertias.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from linksweep.identification.model.columns import Columns
from linksweep.identification.model.grouping import Grouping

CRITERIA = ("condition", "determinant")
SHARPNESS = 6  # s of the Schatten norms: they differ from the largest by a factor below size^(1 / 2s)
ROOM = 0.5  # m, by which distances to a floor or a box are measured
SLOW = 0.02  # of the velocity limit: the width of the step in Coulomb friction, which must have a slope here


Slack = tuple[np.ndarray, tuple[np.ndarray | None, ...]]  # room to a limit, and its slopes by q, qd and qdd


@dataclass(frozen=True)
class Limits:
    """Of each joint, (nv,); of frames, in the base frame.

    boxes: frame -> (lower, upper) corners (3,) of where its origin may be. floor: (rows of robot.frame_names, height):
    which origins stay above which z. keep_out: (rows, ((lower, upper), ...)): which origins stay out of which boxes.
    """

    lower: np.ndarray
    upper: np.ndarray
    velocity: np.ndarray
    acceleration: np.ndarray
    effort: np.ndarray
    boxes: Mapping[str, tuple[np.ndarray, np.ndarray]]
    floor: tuple[tuple[int, ...], float] = ((), -np.inf)
    keep_out: tuple[tuple[int, ...], tuple[tuple[np.ndarray, np.ndarray], ...]] = ((), ())


Slopes = tuple[np.ndarray, np.ndarray, np.ndarray]  # by q, qd, qdd


class Worth:
    """The criterion of a motion at samples (rows, nv)."""

    def __init__(self, group: Grouping, criterion: str, limits: Limits, noise: np.ndarray) -> None:
        self.group, self.columns, self.criterion = group, group.columns, criterion
        robot = self.columns.full
        self.rows = 1.0 / noise
        self.width = SLOW * np.where(np.isfinite(limits.velocity), limits.velocity, 1.0)
        torque = robot.compile("inverse_dynamics", parameters=("inertia",), dtype="float64")
        self.torque_slopes = [torque.derivative(by) for by in ("q", "qd", "qdd")]
        self.links = len(robot.link_names)

    def singular_values(self, q: np.ndarray, qd: np.ndarray, qdd: np.ndarray, true: bool = True) -> np.ndarray:
        """Of W, with friction as it is."""
        return np.linalg.svd(self._regressor(q, qd, qdd, smooth=not true), compute_uv=False)

    def condition(self, q: np.ndarray, qd: np.ndarray, qdd: np.ndarray) -> float:
        sizes = self.singular_values(q, qd, qdd)
        return float(sizes[0] / sizes[-1]) if sizes[-1] > 0.0 else np.inf

    def __call__(self, q: np.ndarray, qd: np.ndarray, qdd: np.ndarray) -> tuple[float, Slopes]:
        """The criterion, and its derivatives (rows, nv) by q, qd and qdd."""
        W = self._regressor(q, qd, qdd, smooth=True) / np.sqrt(len(q))
        sizes, vectors = np.linalg.eigh(W.T @ W)
        sizes = np.maximum(sizes, 1e-14 * sizes[-1])
        if self.criterion == "determinant":
            value, bend = -float(np.sum(np.log(sizes))) / len(sizes), -1.0 / sizes / len(sizes)
        else:
            s = SHARPNESS
            up, down = np.sum((sizes / sizes[-1]) ** s), np.sum((sizes[0] / sizes) ** s)
            value = 0.5 * float(np.log(sizes[-1] / sizes[0]) + (np.log(up) + np.log(down)) / s)
            high = (sizes / sizes[-1]) ** (s - 1) / (sizes[-1] * up)
            low = (sizes[0] / sizes) ** (s + 1) / (sizes[0] * down)
            bend = 0.5 * (high - low)
        K = (vectors * bend) @ vectors.T  # dJ = tr(K dA) = 2 <W K, dW>
        G = (2.0 / np.sqrt(len(q)) * (W @ K) @ self.group.from_base.T).reshape(len(q), -1, len(self.group.pivots))
        return value, self._slopes(q, qd, qdd, G * self.rows[:, None])

    def _regressor(self, q: np.ndarray, qd: np.ndarray, qdd: np.ndarray, smooth: bool) -> np.ndarray:
        pivots = np.array(self.group.pivots)
        here = self.columns.at(q, qd, qdd)
        if smooth and "coulomb" in here.asked:
            rates = qd @ self.columns.rates.T
            here.asked["coulomb"] = np.tanh(rates / self._drive_width).T
        Y = np.stack([here.of_joint(joint, pivots).T for joint in range(self.columns.nv)], axis=1)
        return (Y * self.rows[:, None] @ self.group.from_base).reshape(-1, len(self.group))

    @property
    def _drive_width(self) -> np.ndarray:
        return np.abs(self.columns.rates) @ self.width

    def _slopes(self, q: np.ndarray, qd: np.ndarray, qdd: np.ndarray, G: np.ndarray) -> Slopes:
        """Derivatives of <G, Y> by q, qd and qdd; G (rows, nv, pivots)."""
        columns, nv = self.columns, self.columns.nv
        x = np.zeros((len(q), nv, len(columns)))
        x[..., list(self.group.pivots)] = G
        bodies = np.swapaxes(x @ columns.to_standard[: 10 * self.links].T, 0, 1).reshape(nv, len(q), self.links, 10)
        joints = np.arange(nv)
        found = [
            np.sum(slope(q[None], qd[None], qdd[None], bodies)[joints, :, joints], axis=0)
            for slope in self.torque_slopes
        ]
        self._add_drives(x, qd, found)
        return found[0], found[1], found[2]

    def _add_drives(self, x: np.ndarray, qd: np.ndarray, found: list[np.ndarray]) -> None:
        rates = self.columns.rates
        step = np.tanh(qd @ rates.T / self._drive_width)
        for k, column in enumerate(self.columns.columns):
            if column.is_body:
                continue
            row = rates[column.place]
            weight = x[..., k] @ row  # of the drive's own torque
            if column.what == "armature":
                found[2] += weight[:, None] * row
            elif column.what == "viscous":
                found[1] += weight[:, None] * row
            elif column.what == "coulomb":
                bent = (1.0 - step[:, column.place] ** 2) / self._drive_width[column.place]
                found[1] += (weight * bent)[:, None] * row


class Barrier:
    """Limits as slacks (constraints,) that must stay above 0, each in parts of its own range; `margin` is kept free."""

    def __init__(self, columns: Columns, limits: Limits, worth: Worth, margin: float) -> None:
        self.margin = margin
        self.columns, self.limits, self.robot, self.worth = columns, limits, columns.full, worth
        self.own = np.array(self.robot.standard_parameters[: 10 * worth.links]).reshape(-1, 10)
        self.armature = np.array(self.robot.standard_parameters[10 * worth.links :])
        self.strong = np.flatnonzero(np.isfinite(limits.effort))
        self.frames = [(frame, *corners) for frame, corners in limits.boxes.items()]

    def slacks(self, q: np.ndarray, qd: np.ndarray, qdd: np.ndarray) -> np.ndarray:
        """All slacks in one row: 1 at the middle of what is allowed, 0 at a limit."""
        return np.concatenate([slack.ravel() for slack, *_ in self._parts(q, qd, qdd, slopes=False)])

    def __call__(self, q: np.ndarray, qd: np.ndarray, qdd: np.ndarray) -> tuple[float, Slopes]:
        """-sum of log(slack - margin) per row, and its derivatives."""
        total, found = 0.0, [np.zeros_like(q) for _ in range(3)]
        for slack, slopes in self._parts(q, qd, qdd, slopes=True):
            slack = slack - self.margin
            total -= float(np.sum(np.log(slack)))
            for into, slope in zip(found, slopes, strict=True):
                if slope is None:
                    continue
                if slope.ndim == slack.ndim:
                    into -= slope / slack
                else:
                    into -= np.einsum("tc,tcj->tj", 1.0 / slack, slope)
        rows = len(q)
        return total / rows, (found[0] / rows, found[1] / rows, found[2] / rows)

    def _parts(self, q: np.ndarray, qd: np.ndarray, qdd: np.ndarray, slopes: bool) -> Iterator[Slack]:
        """(slack, (by q, by qd, by qdd)): entry by entry (rows, nv), or (rows, constraints, nv), or None for zero."""
        limits = self.limits
        half, middle = 0.5 * (limits.upper - limits.lower), 0.5 * (limits.upper + limits.lower)
        for sign in (1.0, -1.0):
            yield 1.0 - sign * (q - middle) / half, (-sign / half + 0.0 * q, None, None)
            yield 1.0 - sign * qd / limits.velocity, (None, -sign / limits.velocity + 0.0 * q, None)
            yield 1.0 - sign * qdd / limits.acceleration, (None, None, -sign / limits.acceleration + 0.0 * q)
        if len(self.strong):
            yield from self._efforts(q, qd, qdd, slopes)
        for frame, lower, upper in self.frames:
            yield from self._box(q, frame, lower, upper, slopes)
        rows = sorted({*self.limits.floor[0], *(self.limits.keep_out[0] if self.limits.keep_out[1] else ())})
        if rows:
            yield from self._workspace(q, rows, slopes)

    def _efforts(self, q: np.ndarray, qd: np.ndarray, qdd: np.ndarray, slopes: bool) -> Iterator[Slack]:
        step = np.tanh(qd / self.worth.width)
        dry, damping = self.robot.friction, self.robot.damping
        tau = (self.robot.inverse_dynamics(q, qd, qdd) + damping * qd + dry * step)[:, self.strong]
        effort = self.limits.effort[self.strong]
        by: list[np.ndarray] = []
        if slopes:
            by = [slope(q, qd, qdd, self.own)[:, self.strong] / effort[:, None] for slope in self.worth.torque_slopes]
            bent = (damping + dry * (1.0 - step**2) / self.worth.width)[:, :, None] * np.eye(q.shape[1])
            by[1] = by[1] + bent[:, self.strong] / effort[:, None]
            by[2] = by[2] + np.diag(self.armature)[self.strong] / effort[:, None]
        for sign in (1.0, -1.0):
            yield 1.0 - sign * tau / effort, tuple(-sign * one for one in by) or (None, None, None)

    def _box(self, q: np.ndarray, frame: str, lower: np.ndarray, upper: np.ndarray, slopes: bool) -> Iterator[Slack]:
        place = self.robot.pose(q, frame)[:, :3, 3]
        J = self.robot.jacobian(q, frame)[:, 3:] if slopes else None
        for sign, corner in ((1.0, upper), (-1.0, lower)):
            kept = np.flatnonzero(np.isfinite(corner))
            wide = np.where(np.isfinite(upper - lower), 0.5 * (upper - lower), 1.0)[kept]
            slack = sign * (corner[kept] - place[:, kept]) / wide
            yield slack, (None if J is None else -sign * J[:, kept] / wide[:, None], None, None)

    def _workspace(self, q: np.ndarray, rows: list[int], slopes: bool) -> Iterator[Slack]:
        """Frames above the floor, and outside of boxes: beyond the face from which they are farthest."""
        places = self.robot.poses(q)[..., :3, 3][:, rows]
        J = self.robot.jacobians(q)[:, rows, 3:] if slopes else None
        above, height = self.limits.floor
        at = [rows.index(row) for row in above]
        if at:
            slack = (places[:, at, 2] - height) / ROOM
            yield slack, (None if J is None else J[:, at, 2] / ROOM, None, None)
        outside, boxes = self.limits.keep_out
        at = [rows.index(row) for row in outside]
        for lower, upper in boxes if at else ():
            faces = np.concatenate([places[:, at] - upper, lower - places[:, at]], axis=-1)  # (rows, frames, 6)
            face = np.argmax(faces, axis=-1)[..., None]
            slack = np.take_along_axis(faces, face, axis=-1)[..., 0] / ROOM
            slope = None
            if J is not None:
                both = np.concatenate([J[:, at], -J[:, at]], axis=2)  # (rows, frames, 6, nv)
                slope = np.take_along_axis(both, face[..., None], axis=2)[:, :, 0] / ROOM
            yield slack, (slope, None, None)


def usage(barrier: Barrier, motion: Sequence[np.ndarray]) -> float:
    """The largest part of any limit that a motion uses; above 1 it goes beyond."""
    return float(1.0 - barrier.slacks(*motion).min())
