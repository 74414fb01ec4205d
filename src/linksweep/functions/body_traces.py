"""How the functions of frames and of the whole robot are traced: poses, Jacobians, mass centre, momentum, energy.

A tracer (see tracing/) carries the algorithms' sweeps; a computation says which frame and as seen from where.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..algorithms.whole_robot.kinematics import (
    WORLD,
    Column,
    Observer,
    jacobian,
    jacobian_derivative,
    poses,
    velocities,
)
from ..algorithms.whole_robot.momentum import composite_inertias, kinetic_energy, momentum, momentum_matrix, seen_from
from ..errors import DescriptionError
from ..mechanism.sweeps import PerLink
from ..model.model import BASE, Frame
from ..spatial.algebra import ZERO_MOTION, ZERO_VEC, Vec, leaves
from ..spatial.scalars import Scalar, sqrt
from ..spatial.transforms import Pose
from ..tracing.tracer import Tracer

if TYPE_CHECKING:
    from .computation import RobotFunction

NAMES_VALUES = True  # of its steps: see tracing/labels.py

REFERENCES = ("world_aligned", "local", "world")  # of Jacobians, the default first
ABOUT = ("center_of_mass", "base")  # of momentum


def trace_pose(tracer: Tracer, computation: RobotFunction, output: int) -> None:
    tracer.write(output, _matrix(frame_pose(tracer, poses(tracer), tracer.model.frame(computation.frames[0]))))


def trace_poses(tracer: Tracer, computation: RobotFunction, output: int) -> None:
    at = poses(tracer)
    tracer.write(output, [x for frame in tracer.model.frames for x in _matrix(frame_pose(tracer, at, frame))])


def trace_jacobian(tracer: Tracer, computation: RobotFunction, output: int) -> None:
    _write_jacobian(tracer, computation, output, poses(tracer), tracer.model.frame(computation.frames[0]))


def trace_jacobians(tracer: Tracer, computation: RobotFunction, output: int) -> None:
    at = poses(tracer)
    for frame in tracer.model.frames:
        _write_jacobian(tracer, computation, output, at, frame)


def _write_jacobian(tracer: Tracer, computation: RobotFunction, output: int, at: PerLink[Pose], frame: Frame) -> None:
    point = _point(tracer, computation)
    tracer.write_columns(output, frame_columns(tracer, computation.reference, at, frame, point).motions)


def frame_columns(
    tracer: Tracer, reference: str, at: PerLink[Pose], frame: Frame, point: Vec = ZERO_VEC
) -> PerLink[Column]:
    """The columns of a frame's Jacobian, or of a point of it."""
    pose = frame_pose(tracer, at, frame)
    o = _observer(reference, pose, pose.point(point))
    return jacobian(tracer, at, tracer.marked(tracer.model.path(frame.link)), o.point, o.axes)


def trace_jacobian_derivative(tracer: Tracer, computation: RobotFunction, output: int) -> None:
    frame, at, qd = tracer.model.frame(computation.frames[0]), poses(tracer), tracer.read("qd")
    V = velocities(tracer, qd)
    pose = frame_pose(tracer, at, frame)
    o = _observer(computation.reference, pose, pose.point(_point(tracer, computation)))
    link, own = (WORLD, ZERO_MOTION) if frame.link == BASE else (tracer.at(at, frame.link), tracer.at(V, frame.link))
    spin = link.turn(own.angular)
    if computation.reference != "world":
        o.velocity = link.turn(own.linear) + spin.cross(o.point - link.p)
    if computation.reference == "local":
        o.spin = spin
    columns = jacobian_derivative(tracer, at, V, qd, tracer.marked(tracer.model.path(frame.link)), o)
    tracer.write_columns(output, columns.motions)


def trace_center_of_mass(tracer: Tracer, computation: RobotFunction, output: int) -> None:
    tracer.write(output, leaves(_center_of_mass(tracer)))


def trace_momentum(tracer: Tracer, computation: RobotFunction, output: int) -> None:
    point = _center_of_mass(tracer) if computation.reference == "center_of_mass" else ZERO_VEC
    tracer.write(output, leaves(seen_from(point, momentum(tracer, tracer.read("qd")))))


def trace_momentum_matrix(tracer: Tracer, computation: RobotFunction, output: int) -> None:
    columns = momentum_matrix(tracer, poses(tracer), composite_inertias(tracer)[0], _center_of_mass(tracer))
    tracer.write_columns(output, columns.momenta)


def trace_kinetic_energy(tracer: Tracer, computation: RobotFunction, output: int) -> None:
    tracer.write(output, [kinetic_energy(tracer, tracer.read("qd"))])


def trace_potential_energy(tracer: Tracer, computation: RobotFunction, output: int) -> None:
    energy = (-Vec(*tracer.model.gravity)).dot(composite_inertias(tracer)[1].mp)
    for spring in tracer.model.springs:
        at, (stiffness, length, _) = poses(tracer), spring.numbers
        d = frame_pose(tracer, at, spring.a).p - frame_pose(tracer, at, spring.b).p
        stretch = sqrt(d.dot(d)) - length
        energy = energy + stretch * stretch * (0.5 * stiffness)
    tracer.write(output, [energy])


def _center_of_mass(tracer: Tracer) -> Vec:
    mass = sum((link.mass for link in tracer.model.links), 0.0)
    if mass == 0.0:
        raise DescriptionError(
            "the total mass of the moving links is zero: the center of mass is undefined, expected some mass."
        )
    return composite_inertias(tracer)[1].mp * (1.0 / mass)


def _observer(reference: str, pose: Pose, point: Vec) -> Observer:
    """Where a frame's Jacobian is taken, as if at rest; seen from the world, at the base's origin."""
    if reference == "world":
        return Observer(ZERO_VEC, ZERO_VEC, WORLD, ZERO_VEC)
    return Observer(point, ZERO_VEC, pose if reference == "local" else WORLD, ZERO_VEC)


def frame_pose(tracer: Tracer, at: PerLink[Pose], frame: Frame) -> Pose:
    pose = WORLD if frame.link == BASE else tracer.at(at, frame.link)
    x, y, z = (pose.turn(Vec(*column)) for column in zip(*frame.placement.rotation, strict=True))
    return Pose(x, y, z, pose.point(Vec(*frame.placement.position)))


def _matrix(pose: Pose) -> list[Scalar]:
    rows = zip(pose.x, pose.y, pose.z, pose.p, strict=True)
    return [*(value for row in rows for value in row), 0.0, 0.0, 0.0, 1.0]


def _point(tracer: Tracer, computation: RobotFunction) -> Vec:
    """The point of the frame that is asked about: its origin, unless the function takes one."""
    if not computation.function.startswith("point_"):
        return ZERO_VEC
    return Vec(*tracer.read_flat("point"))
