"""Conversion of coordinates, velocities and forces to and from Pinocchio and MuJoCo, joint by joint, by name.

Neither package is imported. The functions take a `pin.Model` or a `mujoco.MjModel` of the same robot and read only its
numbers and names. Quantities are passed by keyword and returned in the order q, v, a, tau, f_ext: one result as an
array, several as a tuple. Arrays have any leading batch shape.

    here        free: q = [quaternion xyzw, position], v = [w; v] in the body's axes. f_ext: a row [moment; force] for
                each moving link, in its frame at its origin. Continuous joints have one coordinate.
    Pinocchio   free: q = [position, quaternion xyzw], v = [v; w] in the body's axes. f_ext: a row [force; moment] for
                each joint (the first is the universe's), in its frame: `[pin.Force(row) for row in f_ext]`.
                Continuous joints hold (cos, sin), planar ones (x, y, cos, sin).
    MuJoCo      free: qpos = [position, quaternion wxyz], qvel = [v along the world's axes; w along the body's].
                f_ext: xfrc_applied, a row [force; moment] for each body, along the world's axes at its center of mass.

Because MuJoCo's free joint mixes axes, v, a, tau and f_ext need q beside them, and a needs v. Accelerations are the
derivatives of the velocities, so those of Pinocchio convert like v.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Protocol, cast, overload

import numpy as np
from numpy.typing import ArrayLike

from ..errors import ArgumentError
from ..model.formats.mjcf_compiled import body_names, joint_names
from ..model.model import BASE
from ..model.quantities import link_forces
from ..support.checks import refuse_foreign
from ..support.messages import shown
from .robot import Robot, checked_robot

if TYPE_CHECKING:
    from ..mechanism.canonical import CanonicalLink
    from ..spatial.scalars import Values

    Joints = list[tuple[CanonicalLink, "Foreign"]]

SWAPPED = (3, 4, 5, 0, 1, 2)
_FREE, _BALL = 0, 1  # mjtJoint

Foreign = Any  # what their packages make, and have no types for
Converted = np.ndarray | tuple[np.ndarray, ...]


class Converter(Protocol):
    """Return one array alone, several as a tuple."""

    @overload
    def __call__(self, robot: Robot, model: Foreign, *, q: ArrayLike) -> np.ndarray: ...
    @overload
    def __call__(self, robot: Robot, model: Foreign, *, v: ArrayLike) -> np.ndarray: ...
    @overload
    def __call__(self, robot: Robot, model: Foreign, *, a: ArrayLike) -> np.ndarray: ...
    @overload
    def __call__(self, robot: Robot, model: Foreign, *, tau: ArrayLike) -> np.ndarray: ...
    @overload
    def __call__(self, robot: Robot, model: Foreign, *, f_ext: ArrayLike) -> np.ndarray: ...
    @overload
    def __call__(
        self, robot: Robot, model: Foreign, *, q: ArrayLike | None = None, v: ArrayLike | None = None,
        a: ArrayLike | None = None, tau: ArrayLike | None = None, f_ext: ArrayLike | None = None,
    ) -> tuple[np.ndarray, ...]: ...  # fmt: skip


def _converter(function: Callable[..., Converted]) -> Converter:
    return cast(Converter, function)


__all__ = ["from_mujoco", "from_pinocchio", "to_mujoco", "to_pinocchio"]


def __dir__() -> list[str]:
    return sorted(__all__)


@_converter
def to_pinocchio(
    robot: Robot, model: Foreign, *, q: ArrayLike | None = None, v: ArrayLike | None = None,
    a: ArrayLike | None = None, tau: ArrayLike | None = None, f_ext: ArrayLike | None = None,
) -> Converted:  # fmt: skip
    """Convert coordinates, velocities, accelerations, torques or external forces of `robot` to Pinocchio.

    Parameters
    ----------
    robot : Robot
    model : pin.Model of the same robot
    q, v, a, tau, f_ext : arrays
        At least one of them. Results are in this order.
    """
    joints = _pinocchio_joints(robot, model)

    def coordinates(ours: np.ndarray) -> np.ndarray:
        theirs = np.empty((*ours.shape[:-1], model.nq))
        for link, joint in joints:
            own = ours[..., link.coordinates]
            theirs[..., joint.idx_q : joint.idx_q + joint.nq] = _rearranged(link.type.to_pinocchio, own, joint.nq)
        return theirs

    order = _pinocchio_order(joints)

    def rates(ours: np.ndarray) -> np.ndarray:
        theirs = np.empty(ours.shape)
        theirs[..., order] = ours
        return theirs

    def forces(ours: np.ndarray) -> np.ndarray:
        theirs = np.zeros((*ours.shape[:-2], model.njoints, 6))
        for link, joint in joints:
            placed = _carried(ours[..., link.row, :], *_named_frame(robot, link))
            theirs[..., joint.id, :] = placed[..., SWAPPED]
        return theirs

    nq, nv, rows = robot.nq, robot.nv, (len(robot.link_names), 6)
    return _results(
        _converted("q", q, (nq,), coordinates), _converted("v", v, (nv,), rates), _converted("a", a, (nv,), rates),
        _converted("tau", tau, (nv,), rates), _converted("f_ext", f_ext, rows, forces),
    )  # fmt: skip


@_converter
def from_pinocchio(
    robot: Robot, model: Foreign, *, q: ArrayLike | None = None, v: ArrayLike | None = None,
    a: ArrayLike | None = None, tau: ArrayLike | None = None, f_ext: ArrayLike | None = None,
) -> Converted:  # fmt: skip
    """Convert arrays of Pinocchio to those of `robot`: the inverse of `to_pinocchio`."""
    joints = _pinocchio_joints(robot, model)

    def coordinates(theirs: np.ndarray) -> np.ndarray:
        ours = np.empty((*theirs.shape[:-1], robot.nq))
        for link, joint in joints:
            own = theirs[..., joint.idx_q : joint.idx_q + joint.nq]
            ours[..., link.coordinates] = _rearranged(link.type.from_pinocchio, own)
        return ours

    order = _pinocchio_order(joints)

    def rates(theirs: np.ndarray) -> np.ndarray:
        return theirs[..., order]

    def forces(theirs: np.ndarray) -> np.ndarray:
        ours = np.zeros((*theirs.shape[:-2], len(robot.link_names), 6))
        for link, joint in joints:
            rotation, position = _named_frame(robot, link)
            ours[..., link.row, :] = _carried(
                theirs[..., joint.id, :][..., SWAPPED], rotation.T, -rotation.T @ position
            )
        return ours

    nq, nv, rows = model.nq, model.nv, (model.njoints, 6)
    return _results(
        _converted("q", q, (nq,), coordinates), _converted("v", v, (nv,), rates), _converted("a", a, (nv,), rates),
        _converted("tau", tau, (nv,), rates), _converted("f_ext", f_ext, rows, forces),
    )  # fmt: skip


@_converter
def to_mujoco(
    robot: Robot, model: Foreign, *, q: ArrayLike | None = None, v: ArrayLike | None = None,
    a: ArrayLike | None = None, tau: ArrayLike | None = None, f_ext: ArrayLike | None = None,
) -> Converted:  # fmt: skip
    """Convert arrays of `robot` to MuJoCo: qpos, qvel, qacc, qfrc and xfrc_applied.

    Parameters
    ----------
    robot : Robot
    model : mujoco.MjModel of the same robot
    q, v, a, tau, f_ext : arrays
        At least one of them. v, a, tau and f_ext of a floating base also need q. Results are in this order.
    """
    joints = _mujoco_joints(robot, model)
    at = _Turns(robot, joints, q, v, a, tau, f_ext)

    def coordinates(ours: np.ndarray) -> np.ndarray:
        theirs = np.empty((*ours.shape[:-1], model.nq))
        for link, j in joints:
            own = ours[..., link.coordinates]
            if link.type.has_quaternion:
                own = np.concatenate([own[..., 4:], own[..., 3:4], own[..., :3]], axis=-1)
            theirs[..., model.jnt_qposadr[j] : model.jnt_qposadr[j] + own.shape[-1]] = own
        return theirs

    def rates(ours: np.ndarray, rate: np.ndarray | None = None) -> np.ndarray:
        """Also for torques, which rotate alike; `rate`: for accelerations, with d(R v)/dt = R (a + w x v)."""
        theirs = np.empty((*at.batch(ours), model.nv))
        for link, j in joints:
            own, place = ours[..., link.rates], model.jnt_dofadr[j]
            if link.type.floats:
                linear = own[..., 3:]
                if rate is not None:
                    w, v = rate[..., link.start : link.start + 3], rate[..., link.start + 3 : link.start + 6]
                    linear = linear + np.cross(w, v)
                theirs[..., place : place + 3] = at.turned(link, linear)
                theirs[..., place + 3 : place + 6] = own[..., :3]
            else:
                theirs[..., place : place + own.shape[-1]] = own
        return theirs

    def forces(ours: np.ndarray) -> np.ndarray:
        bodies = {name: index for index, name in enumerate(body_names(model))}
        poses = robot.poses(at.q)
        theirs = np.zeros((*at.batch(ours, 2), model.nbody, 6))
        for row, name in enumerate(robot.link_names):
            if name not in bodies:
                if np.any(ours[..., row, :]):
                    raise ArgumentError(
                        f"f_ext: MuJoCo's model has no body {name!r} for the force on it, expected a link that is "
                        f"one of its bodies."
                    )
                continue
            pose = poses[..., robot.frame_names.index(name), :3, :3]
            arm = -np.asarray(model.body_ipos[bodies[name]])
            seen = _carried(ours[..., row, :], np.eye(3), arm)
            theirs[..., bodies[name], :3] = _times(pose, seen[..., 3:])
            theirs[..., bodies[name], 3:] = _times(pose, seen[..., :3])
        return theirs

    nq, nv, rows = robot.nq, robot.nv, (len(robot.link_names), 6)
    return _results(
        _converted("q", q, (nq,), coordinates), _converted("v", v, (nv,), rates),
        _converted("a", a, (nv,), lambda x: rates(x, at.v)), _converted("tau", tau, (nv,), rates),
        _converted("f_ext", f_ext, rows, forces),
    )  # fmt: skip


@_converter
def from_mujoco(
    robot: Robot, model: Foreign, *, q: ArrayLike | None = None, v: ArrayLike | None = None,
    a: ArrayLike | None = None, tau: ArrayLike | None = None, f_ext: ArrayLike | None = None,
) -> Converted:  # fmt: skip
    """Convert arrays of MuJoCo to those of `robot`: the inverse of `to_mujoco`.

    Forces on bodies that are fixed to another act on the link that carries them.
    """
    joints = _mujoco_joints(robot, model)

    def coordinates(theirs: np.ndarray) -> np.ndarray:
        ours = np.empty((*theirs.shape[:-1], robot.nq))
        for link, j in joints:
            place, count = model.jnt_qposadr[j], link.nq
            own = theirs[..., place : place + count]
            if link.type.has_quaternion:
                w = count - 4
                own = np.concatenate([own[..., w + 1 :], own[..., w : w + 1], own[..., :w]], axis=-1)
            ours[..., link.q_start : link.q_start + count] = own
        return ours

    ours_q = _converted("q", q, (model.nq,), coordinates)
    at = _Turns(robot, joints, ours_q, v, a, tau, f_ext)

    def rates(theirs: np.ndarray, rate: np.ndarray | None = None) -> np.ndarray:
        ours = np.empty((*at.batch(theirs), robot.nv))
        for link, j in joints:
            place, count = model.jnt_dofadr[j], link.nv
            own = theirs[..., place : place + count]
            if link.type.floats:
                linear = at.turned_back(link, own[..., :3])
                if rate is not None:
                    linear = linear - np.cross(
                        rate[..., place + 3 : place + 6], at.turned_back(link, rate[..., place : place + 3])
                    )
                own = np.concatenate(np.broadcast_arrays(own[..., 3:], linear), axis=-1)
            ours[..., link.start : link.start + count] = own
        return ours

    def forces(theirs: np.ndarray) -> np.ndarray:
        poses, by_frame = robot.poses(at.q), {}
        links = {frame.name: frame.link for frame in robot.model.frames}
        for body, name in enumerate(body_names(model)):
            if links.get(name, BASE) == BASE:
                continue  # a force on what stands still moves nothing
            back = np.swapaxes(poses[..., robot.frame_names.index(name), :3, :3], -1, -2)
            own = [_times(back, theirs[..., body, part]) for part in (slice(3, 6), slice(0, 3))]
            by_frame[name] = _carried(
                np.concatenate(own, axis=-1), np.eye(3), np.asarray(model.body_ipos[body], dtype=float)
            )
        return link_forces(robot.model, by_frame)

    rate = None if a is None else _array("v", v, (model.nv,))
    return _results(
        ours_q, _converted("v", v, (model.nv,), rates), _converted("a", a, (model.nv,), lambda x: rates(x, rate)),
        _converted("tau", tau, (model.nv,), rates), _converted("f_ext", f_ext, (model.nbody, 6), forces),
    )  # fmt: skip


class _Turns:
    """Return the orientations of the free joints, if velocities or forces need them."""

    def __init__(
        self, robot: Robot, joints: Joints, q: ArrayLike | None, v: ArrayLike | None,
        a: ArrayLike | None, tau: ArrayLike | None, f_ext: ArrayLike | None,
    ):  # fmt: skip
        free = any(link.type.floats for link, _ in joints)
        for name, given in (("v", v), ("a", a), ("tau", tau), ("f_ext", f_ext)):
            if given is not None and q is None and (free or name == "f_ext"):
                raise ArgumentError(f"{name} depends on the orientation of the base; pass q= as well.")
        if a is not None and v is None and free:
            raise ArgumentError("a depends on how the free base moves: give v beside it.")
        # NaN where nobody asks for them
        self.q = np.full(robot.nq, np.nan) if q is None else _array("q", q, (robot.nq,))
        self.v = np.full(robot.nv, np.nan) if v is None or a is None else _array("v", v, (robot.nv,))

    def batch(self, x: np.ndarray, axes: int = 1) -> tuple[int, ...]:
        return np.broadcast_shapes(x.shape[:-axes], self.q.shape[:-1])

    def turned(self, link: CanonicalLink, v: np.ndarray) -> np.ndarray:
        return _turned(self.q[..., link.q_start : link.q_start + 4], v)

    def turned_back(self, link: CanonicalLink, v: np.ndarray) -> np.ndarray:
        quaternion = self.q[..., link.q_start : link.q_start + 4]
        return _turned(quaternion * np.array([-1.0, -1.0, -1.0, 1.0]), v)


def _turned(quaternion: np.ndarray, v: np.ndarray) -> np.ndarray:
    """Return v rotated by a quaternion xyzw of any length but 0."""
    axis, w = quaternion[..., :3], quaternion[..., 3:]
    twice = 2.0 * np.cross(axis, v) / (quaternion * quaternion).sum(axis=-1, keepdims=True)
    return v + w * twice + np.cross(axis, twice)


def _times(matrix: np.ndarray, v: np.ndarray) -> np.ndarray:
    return (matrix @ v[..., None])[..., 0]


def _carried(force: np.ndarray, rotation: np.ndarray, position: np.ndarray) -> np.ndarray:
    """Transform [moment; force] from a frame at (rotation, position) to the outer frame."""
    linear = force[..., 3:] @ rotation.T
    return np.concatenate([force[..., :3] @ rotation.T + np.cross(position, linear), linear], axis=-1)


def _named_frame(robot: Robot, link: CanonicalLink) -> tuple[np.ndarray, np.ndarray]:
    """Return the placement of the frame named after the link in the frame of its joint."""
    placement = next(frame.placement for frame in robot.model.frames if frame.name == link.name)
    return np.array(placement.rotation, dtype=float), np.array(placement.position, dtype=float)


def _rearranged(convert: Callable[..., Values], own: np.ndarray, *options: int) -> np.ndarray:
    """Return the coordinates of a joint (..., n), computed by a function of their columns."""
    columns = convert([own[..., k : k + 1] for k in range(own.shape[-1])], *options)
    return np.concatenate(cast("Sequence[np.ndarray]", columns), axis=-1)


def _pinocchio_order(joints: Joints) -> np.ndarray:
    """Return the index in their velocities of each of ours."""
    order = np.empty(sum(joint.nv for _, joint in joints), dtype=int)
    for link, joint in joints:
        order[link.rates] = [joint.idx_v + i for i in link.type.pinocchio_rates()]
    return order


def _pinocchio_joints(robot: Robot, model: Foreign) -> Joints:
    """Return each link with the joint of the other model that has its joint's name."""
    _check_models(robot, model, "pinocchio.Model", ("names", "joints", "nq", "nv"))
    theirs = {name: model.joints[index] for index, name in enumerate(model.names) if index}
    return _matched(robot, theirs, "Pinocchio", lambda joint: joint.nv)


def _check_models(robot: Robot, model: object, kind: str, fields: tuple[str, ...]) -> None:
    checked_robot(robot, "conventions")
    if isinstance(model, type) or not all(hasattr(model, field) for field in fields):
        raise ArgumentError(f"model is {shown(model)}, expected a {kind} of {robot.name}.")


def _mujoco_joints(robot: Robot, model: Foreign) -> Joints:
    _check_models(robot, model, "mujoco.MjModel", ("names", "jnt_type", "nq", "nv"))
    sizes = {_FREE: 6, _BALL: 3}
    theirs = {name: index for index, name in enumerate(joint_names(model))}
    return _matched(robot, theirs, "MuJoCo", lambda index: sizes.get(int(model.jnt_type[index]), 1))


def _matched(robot: Robot, theirs: dict[str, Foreign], package: str, dof: Callable[[Foreign], int]) -> Joints:
    if robot.couplings:
        raise ArgumentError(
            f"{robot.name} has mimic joints and fewer coordinates than {package}'s model; convert for robot.uncoupled, "
            f"with robot.expand(q), robot.expand_rates(qd) and robot.reduce_forces(tau)."
        )
    links = robot.canonical.links
    ours = {robot.joint_names[link.row]: link for link in links}
    for name in sorted(ours.keys() ^ theirs.keys()):
        where, other = (robot.name, f"{package}'s model") if name in ours else (f"{package}'s model", robot.name)
        raise ArgumentError(f"joint {name!r} of {where} is not in {other}, expected the same joints in both.")
    for name, link in ours.items():
        if dof(theirs[name]) != link.nv:
            raise ArgumentError(
                f"joint {name!r} has {link.nv} degrees of freedom here and {dof(theirs[name])} in {package}'s model, "
                f"expected the same."
            )
    return [(link, theirs[name]) for name, link in ours.items()]


def _array(name: str, value: ArrayLike | None, shape: tuple[int, ...]) -> np.ndarray:
    refuse_foreign(name, value)
    try:
        array = np.asarray(value, dtype=float)
    except (TypeError, ValueError):
        array = np.empty(0)
    if array.shape[-len(shape) :] != shape:
        wanted = ", ".join(map(str, shape))
        raise ArgumentError(f"{name} has shape {array.shape}, expected (..., {wanted}).")
    return array


def _converted(
    name: str, value: ArrayLike | None, shape: tuple[int, ...], convert: Callable[[np.ndarray], np.ndarray]
) -> np.ndarray | None:
    return None if value is None else convert(_array(name, value, shape))


def _results(*converted: np.ndarray | None) -> Converted:
    given = tuple(result for result in converted if result is not None)
    if not given:
        raise ArgumentError("nothing was given to convert: pass q, v, a, tau or f_ext by keyword.")
    return given[0] if len(given) == 1 else given
