"""Regressor of links and drives: torques as a linear function of the unknown parameters.

    tau = Y(q, qd, qdd) x + known(q, qd, qdd)

A link has ten inertial parameters: mass, first moment of mass, and inertia about the origin of its frame (C. G.
Atkeson, C. H. An, J. M. Hollerbach 1986). A drive turns with velocity v = T qd, where T is the constant transmission
matrix (one row for each drive), and its torque acts on the joints through T^T (virtual work). By default each joint has
one drive with T = 1. Coupled wrists, differentials and belts have rows with several entries. The torque of a drive is

    armature * dv/dt + viscous * v + coulomb * sign(v) + offset + stribeck * sign(v) * exp(-(v / speed)^2)

with one Coulomb parameter, or one for each direction. The Stribeck term (B. Armstrong-Helouvry 1991) is linear because
its speed is given.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from linksweep.errors import ArgumentError
from linksweep.functions.parameters import TEN, body
from linksweep.robot.robot import Robot, checked_robot
from linksweep.support.checks import as_array
from linksweep.support.messages import nearest, shown

if TYPE_CHECKING:
    from linksweep.model.model import Joint

DEFAULT_UNKNOWN = ("inertia", "armature", "viscous", "coulomb", "offset")
KINDS = ("inertia", "payload", "armature", "viscous", "coulomb", "coulomb_sides", "stribeck", "offset")
NON_NEGATIVE = ("armature", "viscous", "coulomb", "coulomb+", "coulomb-")
DRY_FRICTION = ("coulomb", "coulomb+", "coulomb-", "stribeck")
JOINT_FIELDS = {"armature": "armature", "viscous": "damping", "coulomb": "friction", "offset": "torque_offset"}


@dataclass(frozen=True)
class Parameter:
    """One unknown parameter, a column of the regressor.

    kind: one of KINDS. owner: name of a link, frame (payload) or drive. what: one of the ten inertial parameters, or a
    term of a drive. index: index of the link or drive.
    """

    kind: str
    owner: str
    what: str
    index: int

    @property
    def name(self) -> str:
        return f"{'payload.' if self.kind == 'payload' else ''}{self.owner}.{self.what}"

    @property
    def is_body(self) -> bool:
        return self.kind in ("inertia", "payload")

    @property
    def standard_index(self) -> int:
        """Index of a link's parameter among the robot's standard parameters."""
        return 10 * self.index + TEN.index(self.what)


class Regressor:
    """Regressor of the unknown parameters of a robot. Arrays over rows of a log have shape (rows, nv).

    robot: the robot whose independent coordinates the log holds. unknown: names such as "inertia", "inertia:link",
    "payload:frame", "armature", "coulomb:drive". All other parameters are taken from the robot model. drives:
    {name: {joint: factor}} in addition to one drive for each joint (a joint's name replaces its drive), or the
    transmission matrix (drives, joints). stribeck: speed of the Stribeck term in rad/s or m/s.
    """

    def __init__(
        self,
        robot: Robot,
        unknown: Sequence[str] = DEFAULT_UNKNOWN,
        drives: Mapping[str, Mapping[str, float]] | ArrayLike | None = None,
        stribeck: ArrayLike | None = None,
    ) -> None:
        self.robot = checked_robot(robot, "identification")
        self.full: Robot = robot.uncoupled
        _check_joints(self.full)
        springs = self.full.model.springs
        self.without_springs = type(robot)(replace(self.full.model, springs=())) if springs else None
        self.links = len(self.full.link_names)
        self.drive_names, self.transmission = _transmission(self.full.joint_names, drives)
        self.stribeck_speeds = _stribeck_speeds(stribeck, len(self.drive_names))
        # velocity of each drive below which dry friction is proportional to velocity instead of its sign
        self.dead_band = np.zeros(len(self.drive_names))
        self.parameters = self._parameters(unknown)
        self.names = tuple(parameter.name for parameter in self.parameters)
        # (full coordinates, nv): velocities of the full robot from those of the log; the transpose maps torques back
        self.expansion = robot.expand_rates(np.eye(robot.nv)).T
        self.drive_terms = tuple(dict.fromkeys(p.what for p in self.parameters if not p.is_body))
        self.standard_indices = np.array([p.standard_index if p.kind == "inertia" else -1 for p in self.parameters])
        self.to_standard = self._to_standard()
        self.known_standard = np.array(self.full.standard_parameters)
        self.known_standard[self.standard_indices[self.standard_indices >= 0]] = 0.0
        joints = self.full.model.joints
        self.known_standard[10 * self.links :] = self._known(joints, "armature")
        self.known_damping, self.known_friction, self.known_offset = (
            self._known(joints, what) for what in ("viscous", "coulomb", "offset")
        )
        self.prior = np.array([self._model_value(parameter, joints) for parameter in self.parameters])

    def __len__(self) -> int:
        return len(self.parameters)

    @property
    def nv(self) -> int:
        return self.robot.nv

    @property
    def has_dry_friction(self) -> bool:
        """Whether torques depend on the sign of a velocity."""
        return bool(self.known_friction.any()) or any(p.what in DRY_FRICTION for p in self.parameters)

    @property
    def has_known(self) -> bool:
        """Whether some torques come from parameters that are not unknown."""
        drives = self.known_damping.any() or self.known_friction.any() or self.known_offset.any()
        return bool(self.known_standard.any() or drives or self.without_springs)

    def at(self, q: np.ndarray, qd: np.ndarray, qdd: np.ndarray) -> MotionRegressor:
        """Evaluate the regressor at rows of a motion."""
        return MotionRegressor(self, self.robot.expand(q), self.robot.expand_rates(qd), self.robot.expand_rates(qdd))

    def regressor(self, q: np.ndarray, qd: np.ndarray, qdd: np.ndarray) -> np.ndarray:
        """Return Y (rows, nv, parameters)."""
        motion = self.at(q, qd, qdd)
        every = np.arange(len(self))
        return np.stack([motion.of_joint(joint, every).T for joint in range(self.nv)], axis=1)

    def drive_velocities(self, qd: np.ndarray) -> np.ndarray:
        """Return the velocities (rows, drives) of the drives."""
        return self.robot.expand_rates(qd) @ self.transmission.T

    @property
    def max_dead_band(self) -> np.ndarray:
        """Largest dead band (drives,): a quarter of the speed of an unknown Stribeck term, otherwise infinity."""
        stribeck = {p.index for p in self.parameters if p.what == "stribeck"}
        return np.array(
            [0.25 * self.stribeck_speeds[d] if d in stribeck else np.inf for d in range(len(self.drive_names))]
        )

    @property
    def acts(self) -> np.ndarray:
        """Flags (drives, nv): whether a drive acts on a coordinate of the log."""
        return np.abs(self.transmission) @ np.abs(self.expansion) != 0.0

    def _to_standard(self) -> np.ndarray:
        """Return the matrix (standard, parameters) from unknown to standard parameters; zero for those of drives."""
        matrix = np.zeros((len(self.full.standard_parameters), len(self.parameters)))
        payloads = {p.owner: _payload_map(self.full, p.owner) for p in self.parameters if p.kind == "payload"}
        for k, parameter in enumerate(self.parameters):
            if parameter.kind == "inertia":
                matrix[parameter.standard_index, k] = 1.0
            elif parameter.kind == "payload":
                rows = slice(10 * parameter.index, 10 * parameter.index + 10)
                matrix[rows, k] = payloads[parameter.owner][:, TEN.index(parameter.what)]
        return matrix

    def _known(self, joints: Sequence[Joint], what: str) -> np.ndarray:
        """Return the model's value of a drive term for each joint, zero where it is unknown."""
        unknown = {p.index for p in self.parameters if not p.is_body and p.what.rstrip("+-") == what}
        return np.array(
            [0.0 if self._joint_drive(k) in unknown else getattr(j, JOINT_FIELDS[what]) for k, j in enumerate(joints)]
        )

    def _joint_drive(self, joint: int) -> int | None:
        """Return the index of the drive that turns with this joint alone."""
        alone = (self.transmission[:, joint] == 1.0) & (np.count_nonzero(self.transmission, axis=1) == 1)
        return int(np.argmax(alone)) if alone.any() else None

    def _model_value(self, parameter: Parameter, joints: Sequence[Joint]) -> float:
        """Return the value of an unknown parameter in the robot model."""
        if parameter.kind == "inertia":
            return float(self.full.standard_parameters[parameter.standard_index])
        if parameter.kind == "payload" or np.count_nonzero(self.transmission[parameter.index]) != 1:
            return 0.0
        joint = joints[int(np.flatnonzero(self.transmission[parameter.index])[0])]
        field = JOINT_FIELDS.get(parameter.what.rstrip("+-"))
        return float(getattr(joint, field)) if field else 0.0

    def _parameters(self, unknown: str | Sequence[str]) -> tuple[Parameter, ...]:
        names = (unknown,) if isinstance(unknown, str) else unknown
        if not isinstance(names, (tuple, list)) or not names or not all(isinstance(name, str) for name in names):
            raise ArgumentError(f"unknown is {shown(unknown)}, expected names such as ('inertia', 'coulomb').")
        parameters: list[Parameter] = []
        for name in names:
            kind, _, owner = name.partition(":")
            if kind not in KINDS:
                raise ArgumentError(
                    f"unknown: there is no {shown(name)}{nearest(kind, KINDS)}, expected some of {', '.join(KINDS)}. "
                    f"Append :NAME to select one link, frame or drive."
                )
            parameters += self._of_kind(kind, owner)
        if len(set(parameters)) < len(parameters):
            raise ArgumentError(f"unknown is {shown(unknown)}, which names a parameter twice, expected each once.")
        has_stribeck = any(p.what == "stribeck" for p in parameters)
        if has_stribeck and not np.isfinite(self.stribeck_speeds).all():
            raise ArgumentError("unknown has 'stribeck', expected its speed in stribeck= (rad/s or m/s).")
        if not has_stribeck and np.isfinite(self.stribeck_speeds).any():
            raise ArgumentError(f"stribeck= is given, but unknown is {shown(unknown)}, expected 'stribeck' in it.")
        return tuple(sorted(parameters, key=lambda p: KINDS.index(p.kind)))

    def _of_kind(self, kind: str, owner: str) -> list[Parameter]:
        if kind == "payload":
            frame = owner or self.full.ee
            return [Parameter(kind, frame, what, _carrier(self.full, frame)) for what in TEN]
        owners = self.full.link_names if kind == "inertia" else self.drive_names
        if owner and owner not in owners:
            raise ArgumentError(
                f"unknown: {self.full.name} has no {'link' if kind == 'inertia' else 'drive'} {shown(owner)}"
                f"{nearest(owner, owners)}, expected one of {', '.join(owners)}."
            )
        selected = [k for k, name in enumerate(owners) if owner in ("", name)]
        terms = TEN if kind == "inertia" else ("coulomb+", "coulomb-") if kind == "coulomb_sides" else (kind,)
        return [Parameter(kind, owners[k], what, k) for k in selected for what in terms]


class MotionRegressor:
    """The regressor at rows of a motion, which is given in the coordinates of the full (uncoupled) robot."""

    def __init__(self, regressor: Regressor, q: np.ndarray, qd: np.ndarray, qdd: np.ndarray) -> None:
        self.regressor, self.q, self.qd = regressor, q, qd
        v, dv = regressor.transmission @ qd.T, regressor.transmission @ qdd.T
        dead_band = regressor.dead_band
        sign = np.clip(v / np.maximum(dead_band, 1e-300)[:, None], -1.0, 1.0) if dead_band.any() else np.sign(v)
        speeds = regressor.stribeck_speeds
        # (drives, rows): torque of each drive for a parameter of 1
        self.drive_torques = {what: _drive_torque(what, v, dv, sign, speeds) for what in regressor.drive_terms}
        bodies = regressor.to_standard.any() or regressor.known_standard.any()
        self.standard = regressor.full.regressor(q, qd, qdd) if bodies else np.zeros((len(q), regressor.full.nv, 0))

    def of_joint(self, joint: int, parameters: np.ndarray) -> np.ndarray:
        """Return Y^T (parameters, rows) of one coordinate of the log, for parameters given by their indices."""
        factors = self.regressor.expansion[:, joint]
        coupled = np.flatnonzero(factors)
        out = self._of_full_joint(int(coupled[0]), parameters, float(factors[coupled[0]]))
        for follower in coupled[1:]:  # virtual work of mimic joints
            out += self._of_full_joint(int(follower), parameters, float(factors[follower]))
        return out

    def _of_full_joint(self, joint: int, parameters: np.ndarray, factor: float) -> np.ndarray:
        regressor = self.regressor
        out = np.zeros((len(parameters), len(self.qd)))
        standard = regressor.standard_indices[parameters]
        links = int(np.count_nonzero(standard >= 0))  # parameters of links come first
        out[:links] = self.standard[:, joint].T[standard[:links]]
        for k, index in enumerate(parameters[links:].tolist(), links):
            parameter = regressor.parameters[index]
            if parameter.kind == "payload":
                out[k] = self.standard[:, joint] @ regressor.to_standard[:, index]
            elif regressor.transmission[parameter.index, joint]:
                torque = self.drive_torques[parameter.what][parameter.index]
                out[k] = regressor.transmission[parameter.index, joint] * torque
        return out if factor == 1.0 else factor * out

    def torques(self, x: np.ndarray) -> np.ndarray:
        """Return Y x (sets, rows, nv) for sets of parameters x (sets, parameters), without forming Y."""
        regressor = self.regressor
        tau = np.zeros((len(x), *self.qd.shape))
        if regressor.to_standard.any():
            flat = self.standard.reshape(-1, self.standard.shape[-1])
            tau += (x @ regressor.to_standard.T @ flat.T).reshape(tau.shape)
        for what, torque in self.drive_torques.items():
            columns = [k for k, parameter in enumerate(regressor.parameters) if parameter.what == what]
            drives = [regressor.parameters[k].index for k in columns]
            for values, out in zip(x[:, columns], tau, strict=True):
                out += ((regressor.transmission[drives].T * values) @ torque[drives]).T
        return tau @ regressor.expansion if regressor.robot.couplings else tau

    def known_friction(self) -> np.ndarray:
        """Return known damping, friction and offsets of the joints (rows, full coordinates)."""
        regressor = self.regressor
        friction = np.sign(self.qd) * regressor.known_friction
        return self.qd * regressor.known_damping + friction + regressor.known_offset

    def known(self) -> np.ndarray:
        """Return the torques (rows, nv) of all parameters that are not unknown."""
        regressor = self.regressor
        tau = self.known_friction()
        if regressor.known_standard.any():
            tau += self.standard @ regressor.known_standard
        if regressor.without_springs:
            tau += regressor.full.bias_forces(self.q, self.qd) - regressor.without_springs.bias_forces(self.q, self.qd)
        return tau @ regressor.expansion


def _drive_torque(what: str, v: np.ndarray, dv: np.ndarray, sign: np.ndarray, speeds: np.ndarray) -> np.ndarray:
    """Return the torque (drives, rows) of a drive term with parameter 1."""
    match what:
        case "armature":
            return dv
        case "viscous":
            return v
        case "coulomb":
            return sign
        case "coulomb+":
            return np.maximum(sign, 0.0)
        case "coulomb-":
            return np.minimum(sign, 0.0)
        case "stribeck":
            return sign * np.exp(-np.square(v / speeds[:, None]))
    return np.ones_like(v)  # offset


def _check_joints(robot: Robot) -> None:
    if robot.model.constraints:
        raise ArgumentError(
            f"{robot.name} has constraints ({robot.model.constraints[0].label}), expected a robot without closed "
            f"loops: open the loops and use robot.without_constraints()."
        )
    for joint in robot.model.joints:
        if joint.type.nv > 1:
            raise ArgumentError(
                f"joint {joint.name!r} of {robot.name} is {joint.kind}, expected 1-DOF joints: lock it or cut "
                f"out a chain (robot.lock, robot.subchain)."
            )


def _transmission(
    joints: Sequence[str], drives: Mapping[str, Mapping[str, float]] | ArrayLike | None
) -> tuple[tuple[str, ...], np.ndarray]:
    """Return the names of the drives and the transmission matrix (drives, joints)."""
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
        raise ArgumentError(f"drives is {shown(drives)}, expected finite factors, at least one nonzero for each drive.")
    return names, matrix


def _stribeck_speeds(stribeck: ArrayLike | None, drives: int) -> np.ndarray:
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


def _carrier(robot: Robot, frame: str) -> int:
    """Return the index of the link that carries a frame, in the order of `robot.link_names`."""
    matches = [f for f in robot.frames if f.name == frame]
    if not matches or matches[0].link < 0:
        raise ArgumentError(
            f"unknown: {robot.name} has no moving frame {shown(frame)}{nearest(frame, robot.frame_names)} for a "
            f"payload, expected one of robot.frame_names."
        )
    return robot.model.document_order.index(matches[0].link)


def _payload_map(robot: Robot, frame: str) -> np.ndarray:
    """Return the matrix (10, 10) from the parameters of a body at the frame to those that it adds to its link."""
    link = _carrier(robot, frame)
    payloads = [(1.0, com, np.zeros((3, 3))) for com in ((0, 0, 0), (1, 0, 0), (0, 1, 0), (0, 0, 1))]
    for i, j in ((0, 0), (1, 1), (2, 2), (0, 1), (0, 2), (1, 2)):
        inertia = 2.0 * np.eye(3)
        inertia[i, j] = inertia[j, i] = inertia[i, j] + 1.0
        payloads.append((1.0, (0, 0, 0), inertia))
    added = []
    for payload in payloads:
        loaded = robot.with_payload(frame, *payload).standard_parameters
        added.append((loaded - robot.standard_parameters)[10 * link : 10 * link + 10])
    return np.linalg.solve(np.array([body(*payload) for payload in payloads]), np.array(added)).T
