"""The regressor of real joints: what each unknown number of the links and of their drives asks of each joint.

    tau = Y(q, qd, qdd) x + known(q, qd, qdd)

A link has ten numbers (mass, first moment, inertia about its frame's origin: C. G. Atkeson, C. H. An, J. M. Hollerbach
1986). A drive turns at the rate v = T qd, T a constant row for each drive, and what it asks of itself reaches the
joints by T^T (virtual work): a joint's own drive has T = 1 there; coupled wrists, differentials and belts have more
entries. Of a drive: armature * dv/dt, viscous * v, coulomb * sign(v) or one number for each side, an offset, and
Stribeck's stribeck * sign(v) * exp(-(v / speed)^2) (B. Armstrong-Helouvry 1991), linear where the speed is given.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from linksweep.catalogue.parameters import TEN, body
from linksweep.errors import ArgumentError
from linksweep.support.messages import nearest, shown
from linksweep.support.numbers import as_array

from ...robot.robot import Robot, checked_robot

if TYPE_CHECKING:
    from linksweep.description.model import Joint

USUAL = ("inertia", "armature", "viscous", "coulomb", "offset")
OF_DRIVES = ("armature", "viscous", "coulomb", "coulomb_sides", "stribeck", "offset")
KINDS = ("inertia", "payload", *OF_DRIVES)
NOT_NEGATIVE = ("armature", "viscous", "coulomb", "coulomb+", "coulomb-")


@dataclass(frozen=True)
class Column:
    """One unknown number: `owner` is a link, a frame (payload) or a drive, `what` one of TEN or a drive's term."""

    kind: str
    owner: str
    what: str
    place: int  # of the link or drive

    @property
    def name(self) -> str:
        return f"{'payload.' if self.kind == 'payload' else ''}{self.owner}.{self.what}"

    @property
    def is_body(self) -> bool:
        return self.kind in ("inertia", "payload")

    @property
    def standard(self) -> int:
        """Of a link's number: its place among the robot's standard parameters."""
        return 10 * self.place + TEN.index(self.what)


class Columns:
    """Which numbers are unknown, and their regressor. Arrays are (rows, nv), columns in the order of `names`.

    robot: the log holds its coordinates, those of the joints that follow none. unknown: names such as "inertia",
    "inertia:link", "payload:frame", "armature", "coulomb:drive". drives: {name: {joint: factor}} in addition to each
    joint's own (a joint's name replaces its own), or an array (drives, joints). What is not unknown is taken from the
    description.
    """

    def __init__(
        self,
        robot: Robot,
        unknown: Sequence[str] = USUAL,
        drives: Mapping[str, Mapping[str, float]] | ArrayLike | None = None,
        stribeck: ArrayLike | None = None,
    ) -> None:
        self.robot = checked_robot(robot, "identification")
        self.full: Robot = robot.uncoupled
        _check_joints(self.full)
        springs = self.full.model.springs
        self.bare = type(robot)(replace(self.full.model, springs=())) if springs else None  # to tell what these ask
        self.links = len(self.full.link_names)
        self.drive_names, self.rates = _drives(self.full.joint_names, drives)
        self.speeds = _speeds(stribeck, len(self.drive_names))
        self.slow = np.zeros(len(self.drive_names))  # rates below which the sign of a rate is not believed
        self.columns = self._wanted(unknown)
        self.names = tuple(column.name for column in self.columns)
        # (full coordinates, nv): rates of the full robot from those of the log, and its transpose back for torques
        self.into = robot.expand_rates(np.eye(robot.nv)).T
        self.terms = tuple(dict.fromkeys(column.what for column in self.columns if not column.is_body))
        self.link_entries = np.array([c.standard if c.kind == "inertia" else -1 for c in self.columns])
        self.to_standard = self._to_standard()
        self.known_standard = np.array(self.full.standard_parameters)
        for column in self.columns:
            if column.kind == "inertia":
                self.known_standard[column.standard] = 0.0
        own = {c.place for c in self.columns if c.what == "armature"}
        joints = self.full.model.joints
        self.known_standard[10 * self.links :] = [
            0.0 if self._own_drive(k) in own else joint.armature for k, joint in enumerate(joints)
        ]
        unknown_kinds = {(c.place, c.what) for c in self.columns}
        self.known_damping, self.known_friction, self.known_offset = (
            np.array([0.0 if self._has(k, words, unknown_kinds) else getattr(j, what) for k, j in enumerate(joints)])
            for what, words in (
                ("damping", ("viscous",)), ("friction", ("coulomb", "coulomb+")), ("torque_offset", ("offset",)),
            )
        )  # fmt: skip
        self.prior = np.array([self._described(column, joints) for column in self.columns])

    def __len__(self) -> int:
        return len(self.columns)

    @property
    def nv(self) -> int:
        return self.robot.nv

    @property
    def has_dry_friction(self) -> bool:
        """Whether torques depend on the sign of a rate."""
        words = ("coulomb", "coulomb+", "stribeck")
        return bool(self.known_friction.any()) or any(c.what in words for c in self.columns)

    def at(self, q: np.ndarray, qd: np.ndarray, qdd: np.ndarray) -> AtMotion:
        """The regressor at rows of a motion."""
        return AtMotion(self, self.robot.expand(q), self.robot.expand_rates(qd), self.robot.expand_rates(qdd))

    def regressor(self, q: np.ndarray, qd: np.ndarray, qdd: np.ndarray) -> np.ndarray:
        """Y (rows, nv, columns)."""
        here = self.at(q, qd, qdd)
        every = np.arange(len(self))
        return np.stack([here.of_joint(joint, every).T for joint in range(self.nv)], axis=1)

    @property
    def has_known(self) -> bool:
        drives = self.known_damping.any() or self.known_friction.any() or self.known_offset.any()
        known = self.known_standard.any() or drives
        return bool(known or self.bare)

    def drive_rates(self, qd: np.ndarray) -> np.ndarray:
        """Rates (rows, drives)."""
        return self.robot.expand_rates(qd) @ self.rates.T

    @property
    def slowest(self) -> np.ndarray:
        """(drives,) rates that a fit must include: a quarter of the speed of an unknown Stribeck term, or infinity."""
        wanted = {c.place for c in self.columns if c.what == "stribeck"}
        return np.array([0.25 * self.speeds[d] if d in wanted else np.inf for d in range(len(self.drive_names))])

    @property
    def acts(self) -> np.ndarray:
        """(drives, nv): whether a drive acts on a coordinate of the log."""
        return np.abs(self.rates) @ np.abs(self.into) != 0.0

    def _to_standard(self) -> np.ndarray:
        """(standard, columns): what of the robot's standard parameters each unknown is; zero for those of drives."""
        matrix = np.zeros((len(self.full.standard_parameters), len(self.columns)))
        payloads = {c.owner: _payload_map(self.full, c.owner) for c in self.columns if c.kind == "payload"}
        for k, column in enumerate(self.columns):
            if column.kind == "inertia":
                matrix[column.standard, k] = 1.0
            elif column.kind == "payload":
                ten = slice(10 * column.place, 10 * column.place + 10)
                matrix[ten, k] = payloads[column.owner][:, TEN.index(column.what)]
        return matrix

    def _own_drive(self, joint: int) -> int | None:
        """The drive that turns with this joint alone."""
        found = [d for d, row in enumerate(self.rates) if row[joint] == 1.0 and np.count_nonzero(row) == 1]
        return found[0] if found else None

    def _has(self, joint: int, words: Sequence[str], unknown: set[tuple[int, str]]) -> bool:
        drive = self._own_drive(joint)
        return any((drive, word) in unknown for word in words)

    def _described(self, column: Column, joints: Sequence[Joint]) -> float:
        """The description's value of an unknown."""
        if column.kind == "inertia":
            return float(self.full.standard_parameters[column.standard])
        if column.kind == "payload" or np.count_nonzero(self.rates[column.place]) != 1:
            return 0.0
        joint = joints[int(np.flatnonzero(self.rates[column.place])[0])]
        words = {"armature": "armature", "viscous": "damping", "coulomb": "friction", "offset": "torque_offset"}
        field = words.get(column.what.rstrip("+-"))
        return float(getattr(joint, field)) if field else 0.0

    def _wanted(self, unknown: str | Sequence[str]) -> tuple[Column, ...]:
        names = (unknown,) if isinstance(unknown, str) else unknown
        if not isinstance(names, (tuple, list)) or not names or not all(isinstance(name, str) for name in names):
            raise ArgumentError(f"unknown is {shown(unknown)}, expected names such as ('inertia', 'coulomb').")
        found: list[Column] = []
        for name in names:
            kind, _, where = name.partition(":")
            if kind not in KINDS:
                raise ArgumentError(
                    f"unknown: there is no {shown(name)}{nearest(kind, KINDS)}, expected some of {', '.join(KINDS)}, "
                    f"with a link, frame or drive behind a colon where only one is meant."
                )
            found += self._of_kind(kind, where)
        if len(set(found)) < len(found):
            raise ArgumentError(f"unknown names one number twice in {shown(unknown)}, expected each once.")
        asked = any(c.what == "stribeck" for c in found)
        if asked and not np.isfinite(self.speeds).all():
            raise ArgumentError("unknown has 'stribeck', expected its speed: give stribeck= in rad/s or m/s.")
        if not asked and np.isfinite(self.speeds).any():
            raise ArgumentError(
                f"stribeck= is given, but unknown is {shown(unknown)}, expected 'stribeck' in it: add it, or leave out "
                f"stribeck=."
            )
        return tuple(sorted(found, key=lambda c: KINDS.index(c.kind)))

    def _of_kind(self, kind: str, where: str) -> list[Column]:
        if kind == "payload":
            frame = where or self.full.ee
            host = _host(self.full, frame)
            return [Column(kind, frame, what, host) for what in TEN]
        owners = self.full.link_names if kind == "inertia" else self.drive_names
        if where and where not in owners:
            what = "link" if kind == "inertia" else "drive"
            raise ArgumentError(
                f"unknown: {self.full.name} has no {what} {shown(where)}{nearest(where, owners)}, expected one of "
                f"{', '.join(owners)}."
            )
        chosen = [k for k, owner in enumerate(owners) if where in ("", owner)]
        words = TEN if kind == "inertia" else ("coulomb+", "coulomb-") if kind == "coulomb_sides" else (kind,)
        return [Column(kind, owners[k], what, k) for k in chosen for what in words]


class AtMotion:
    """What the unknowns ask at rows of a motion, given in the full robot's coordinates."""

    def __init__(self, columns: Columns, q: np.ndarray, qd: np.ndarray, qdd: np.ndarray) -> None:
        self.columns, self.q, self.qd = columns, q, qd
        v, dv = columns.rates @ qd.T, columns.rates @ qdd.T
        # below its slow rate a drive's dry friction is in proportion: at rest it is anything between its two sides
        side = np.clip(v / np.maximum(columns.slow, 1e-300)[:, None], -1.0, 1.0) if columns.slow.any() else np.sign(v)
        self.asked = {what: _asked(what, v, dv, side, columns.speeds) for what in columns.terms}  # (drives, rows)
        bodies = columns.to_standard.any() or columns.known_standard.any()
        self.standard = columns.full.regressor(q, qd, qdd) if bodies else np.zeros((len(q), columns.full.nv, 0))

    def of_joint(self, joint: int, wanted: np.ndarray) -> np.ndarray:
        """(wanted, rows): what those columns ask of one coordinate of the log; a column's rows lie side by side."""
        factors = self.columns.into[:, joint]
        moved = np.flatnonzero(factors)
        found = self._of_full_joint(int(moved[0]), wanted, float(factors[moved[0]]))
        for other in moved[1:]:  # joints that follow this one: by virtual work
            found += self._of_full_joint(int(other), wanted, float(factors[other]))
        return found

    def _of_full_joint(self, joint: int, wanted: np.ndarray, factor: float) -> np.ndarray:
        columns = self.columns
        out = np.zeros((len(wanted), len(self.qd)))
        own = columns.link_entries[wanted]
        links = int(np.count_nonzero(own >= 0))  # they stand first
        out[:links] = self.standard[:, joint].T[own[:links]]
        for k, c in enumerate(wanted[links:].tolist(), links):
            column = columns.columns[c]
            if column.kind == "payload":
                out[k] = self.standard[:, joint] @ columns.to_standard[:, c]
            elif columns.rates[column.place, joint]:
                out[k] = columns.rates[column.place, joint] * self.asked[column.what][column.place]
        return out if factor == 1.0 else factor * out

    def torques(self, x: np.ndarray) -> np.ndarray:
        """Y x (sets, rows, nv) for sets of numbers x (sets, columns), without Y."""
        columns = self.columns
        tau = np.zeros((len(x), *self.qd.shape))
        if columns.to_standard.any():
            flat = self.standard.reshape(-1, self.standard.shape[-1])
            tau += (x @ columns.to_standard.T @ flat.T).reshape(tau.shape)
        for what, asked in self.asked.items():
            places = [k for k, column in enumerate(columns.columns) if column.what == what]
            drives = [columns.columns[k].place for k in places]
            for own, one in zip(x[:, places], tau, strict=True):
                one += ((columns.rates[drives].T * own) @ asked[drives]).T
        return tau @ columns.into if columns.robot.couplings else tau

    def known_losses(self) -> np.ndarray:
        """(rows, full coordinates): known damping, friction and offsets, of joints and not of drives."""
        columns = self.columns
        return self.qd * columns.known_damping + np.sign(self.qd) * columns.known_friction + columns.known_offset

    def known(self) -> np.ndarray:
        """Torques (rows, nv) of what is not unknown: the description's."""
        columns = self.columns
        tau = self.known_losses()
        if columns.known_standard.any():
            tau += self.standard @ columns.known_standard
        if columns.bare:
            tau += columns.full.bias_forces(self.q, self.qd) - columns.bare.bias_forces(self.q, self.qd)
        return tau @ columns.into


def _asked(what: str, v: np.ndarray, dv: np.ndarray, side: np.ndarray, speeds: np.ndarray) -> np.ndarray:
    """What a number of 1 asks of its drive, (drives, rows)."""
    match what:
        case "armature":
            return dv
        case "viscous":
            return v
        case "coulomb":
            return side
        case "coulomb+":
            return np.maximum(side, 0.0)
        case "coulomb-":
            return np.minimum(side, 0.0)
        case "stribeck":
            return side * np.exp(-np.square(v / speeds[:, None]))
    return np.ones_like(v)  # an offset


def _check_joints(robot: Robot) -> None:
    if robot.model.constraints:
        raise ArgumentError(
            f"{robot.name} has constraints between its frames ({robot.model.constraints[0].label}), expected a tree, "
            f"whose joints alone bear its torques: open the loops, and give robot.without_constraints()."
        )
    for joint in robot.model.joints:
        if joint.type.nv > 1:
            raise ArgumentError(
                f"joint {joint.name!r} of {robot.name} is {joint.kind}, expected 1-DOF joints: lock it or cut "
                f"out a chain (robot.lock, robot.subchain)."
            )


def _drives(
    joints: Sequence[str], drives: Mapping[str, Mapping[str, float]] | ArrayLike | None
) -> tuple[tuple[str, ...], np.ndarray]:
    rows = {name: {name: 1.0} for name in joints}
    if isinstance(drives, Mapping):
        for name, row in drives.items():
            unknown = [joint for joint in row if joint not in joints] if isinstance(row, Mapping) else [row]
            if unknown or not row:
                raise ArgumentError(
                    f"drives: {shown(name)} turns with {shown(unknown[0] if unknown else row)}"
                    f"{nearest(unknown[0], joints) if unknown else ''}, expected {{joint: factor}} of "
                    f"{', '.join(joints)}."
                )
            rows[str(name)] = dict(row)
        names = tuple(rows)
        matrix = np.array([[float(rows[name].get(joint, 0.0)) for joint in joints] for name in names])
    elif drives is None:
        names, matrix = tuple(rows), np.eye(len(joints))
    else:
        matrix = np.array(drives, dtype=float, ndmin=2)
        if matrix.shape[1:] != (len(joints),):
            raise ArgumentError(
                f"drives has shape {matrix.shape}, expected (drives, {len(joints)}): a row for each drive."
            )
        square = len(matrix) == len(joints)
        names = tuple(joints) if square else tuple(f"drive_{k + 1}" for k in range(len(matrix)))
    if not np.isfinite(matrix).all() or not matrix.any(axis=1).all():
        raise ArgumentError(f"drives is {shown(drives)}, expected finite numbers, and no drive that turns nothing.")
    return names, matrix


def _speeds(stribeck: ArrayLike | None, drives: int) -> np.ndarray:
    if stribeck is None:
        return np.full(drives, np.nan)
    speeds = as_array(stribeck)
    if (
        speeds.dtype.kind not in "iuf"
        or speeds.shape not in ((), (drives,))
        or not (np.isfinite(speeds) & (speeds > 0)).all()
    ):
        raise ArgumentError(f"stribeck is {shown(stribeck)}, expected a speed above 0, or one for each drive.")
    return np.broadcast_to(speeds.astype(float), (drives,))


def _host(robot: Robot, frame: str) -> int:
    """The row of the link that carries a frame."""
    found = [f for f in robot.frames if f.name == frame]
    if not found or found[0].link < 0:
        raise ArgumentError(
            f"unknown: {robot.name} has no moving frame {shown(frame)}{nearest(frame, robot.frame_names)} for a "
            f"payload, expected one of robot.frame_names."
        )
    return robot.model.document_order.index(found[0].link)


def _payload_map(robot: Robot, frame: str) -> np.ndarray:
    """(10, 10): what a body at the frame adds to the ten numbers of the link that carries it."""
    row = _host(robot, frame)
    tens, added = [], []
    for com in ((0, 0, 0), (1, 0, 0), (0, 1, 0), (0, 0, 1)):
        tens.append((1.0, com, np.zeros((3, 3))))
    for i, j in ((0, 0), (1, 1), (2, 2), (0, 1), (0, 2), (1, 2)):
        inertia = 2.0 * np.eye(3)
        inertia[i, j] = inertia[j, i] = inertia[i, j] + 1.0
        tens.append((1.0, (0, 0, 0), inertia))
    for mass, com, inertia in tens:
        loaded = robot.with_payload(frame, mass, com, inertia).standard_parameters
        added.append((loaded - robot.standard_parameters)[10 * row : 10 * row + 10])
    return np.linalg.solve(np.array([body(*ten) for ten in tens]), np.array(added)).T
