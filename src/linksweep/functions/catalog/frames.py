"""Frames and the whole robot: poses, Jacobians, velocities, center of mass, momentum, energy, springs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...algorithms.inverse.khalil_kleinfinger import State, motion_of_links
from ...algorithms.rigid_body.kinematics import (
    WORLD,
    Column,
    Observer,
    jacobian,
    jacobian_derivative,
    poses,
    velocities,
)
from ...algorithms.rigid_body.momentum import composite_inertias, kinetic_energy, momentum, momentum_matrix, seen_from
from ...errors import DescriptionError
from ...mechanism.bias import BaseMotion
from ...mechanism.joints import Coordinates
from ...mechanism.sweeps import LinkView, PerLink
from ...model.model import BASE, Frame
from ...spatial.algebra import ZERO_MOTION, ZERO_VEC, Force, Motion, Vec, leaves
from ...spatial.scalars import Scalar, is_zero, sqrt
from ...spatial.transforms import Pose
from ...tracing.tracer import Tracer
from ..declaration import Function, Method

if TYPE_CHECKING:
    from ..computation import RobotFunction

NAMES_VALUES = True  # of its steps: see tracing/labels.py

REFERENCES = ("world_aligned", "local", "world")  # of Jacobians, the default first
ABOUT = ("center_of_mass", "base")  # of momentum
REST = BaseMotion(ZERO_VEC, ZERO_VEC, ZERO_VEC)
ROUNDING = 1e-12  # m, rounding error of a distance of 0


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


def trace_frame_velocity(tracer: Tracer, computation: RobotFunction, output: int) -> None:
    frame, at = tracer.model.frame(computation.frames[0]), poses(tracer)
    pose = frame_pose(tracer, at, frame)
    V = moving_frame(tracer, at, velocities(tracer, tracer.read("qd")), frame, pose.p)
    tracer.write(output, leaves(_velocity_seen(computation.reference, pose, V)))


def trace_frame_acceleration(tracer: Tracer, computation: RobotFunction, output: int) -> None:
    """J qdd + Jdot qd; without qdd the bias alone."""
    frame, at, qd = tracer.model.frame(computation.frames[0]), poses(tracer), tracer.read("qd")
    qdd = tracer.read("qdd") if computation.function == "frame_acceleration" else tracer.zeros()
    pose = frame_pose(tracer, at, frame)
    V = moving_frame(tracer, at, velocities(tracer, qd), frame, pose.p)
    A = accelerated_frame(tracer, at, motion_of_links(tracer, qd, qdd, REST), frame, pose.p, ZERO_VEC)
    w, v = V.angular, V.linear
    if computation.reference == "local":  # the derivative of what is seen from the frame itself
        A = Motion(A.angular, A.linear - w.cross(v))
    elif computation.reference == "world":  # at the base's origin: v - w x p
        A = Motion(A.angular, A.linear - A.angular.cross(pose.p) - w.cross(v))
    turned = pose if computation.reference == "local" else WORLD
    tracer.write(output, leaves(Motion(turned.turn_back(A.angular), turned.turn_back(A.linear))))


def moving_frame(tracer: Tracer, at: PerLink[Pose], V: PerLink[Motion], frame: Frame, point: Vec) -> Motion:
    """The velocity [w; v] of a frame at `point`, along the base's axes."""
    if frame.link == BASE:
        return ZERO_MOTION
    link, velocity = tracer.at(at, frame.link), tracer.at(V, frame.link)
    w = link.turn(velocity.angular)
    return Motion(w, link.turn(velocity.linear) + w.cross(point - link.p))


def accelerated_frame(
    tracer: Tracer, at: PerLink[Pose], states: PerLink[State], frame: Frame, point: Vec, base: Vec
) -> Motion:
    """The acceleration [dw; dv] of a frame at `point`, along the base axes; base: dv of frames on the base."""
    if frame.link == BASE:
        return Motion(ZERO_VEC, base)
    link, own = tracer.at(at, frame.link), tracer.at(states, frame.link)
    arm = link.turn_back(point - link.p)
    state = State(own.w, own.dw, own.dv)
    return Motion(link.turn(state.dw), link.turn(state.dv + state.U @ arm))


def _velocity_seen(reference: str, pose: Pose, V: Motion) -> Motion:
    if reference == "world":
        return Motion(V.angular, V.linear - V.angular.cross(pose.p))
    axes = pose if reference == "local" else WORLD
    return Motion(axes.turn_back(V.angular), axes.turn_back(V.linear))


def _center_of_mass(tracer: Tracer) -> Vec:
    return composite_inertias(tracer)[1].mp * (1.0 / moving_mass(tracer))


def moving_mass(tracer: Tracer) -> Scalar:
    """Return the total mass of the moving links."""
    mass = sum((link.mass for link in tracer.model.links), 0.0)
    if mass == 0.0:
        raise DescriptionError(
            "the total mass of the moving links is zero: the center of mass is undefined, expected some mass."
        )
    return mass


def _observer(reference: str, pose: Pose, point: Vec) -> Observer:
    """Return the point and axes of the Jacobian of a frame, at rest; in "world", the base origin."""
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
    """Return the point of the frame: its origin, unless the function takes one."""
    if not computation.function.startswith("point_"):
        return ZERO_VEC
    return Vec(*tracer.read_flat("point"))


def with_springs(tracer: Tracer, forces: PerLink[Force], qd: PerLink[Coordinates]) -> PerLink[Force]:
    """Return the forces on the links with those of the springs between frames added."""
    at, V = poses(tracer), velocities(tracer, qd)
    for spring in tracer.model.springs:
        a, b = (frame_pose(tracer, at, frame) for frame in (spring.a, spring.b))
        rate = moving_frame(tracer, at, V, spring.a, a.p).linear - moving_frame(tracer, at, V, spring.b, b.p).linear
        if _always_zero(a.p - b.p) and not is_zero(spring.numbers[1]):
            raise DescriptionError(
                f"the origins of {spring.a.name!r} and {spring.b.name or 'the world'!r} always coincide, expected a "
                f"distance along which the spring between them can act: remove it, or connect other frames."
            )
        pull = _pull(a.p - b.p, rate, *spring.numbers)
        for frame, pose, force in ((spring.a, a, -pull), (spring.b, b, pull)):
            if frame.link != BASE:
                forces = _with_force(tracer, forces, frame.link, tracer.at(at, frame.link), pose.p, force)
    return forces


def _always_zero(d: Vec) -> bool:
    """Return whether a vector is 0 in every configuration, except for rounding."""
    return all(is_zero(x) or (isinstance(x, (float, int)) and abs(x) < ROUNDING) for x in leaves(d))


def _with_force(
    tracer: Tracer, forces: PerLink[Force], link: int, pose: Pose, point: Vec, force: Vec
) -> PerLink[Force]:
    turned = pose.turn_back(force)
    own = Force(pose.turn_back(point - pose.p).cross(turned), turned)

    def step(view: LinkView, nothing: tuple[()], before: Force, here: Scalar) -> tuple[Force, tuple[()]]:
        return before + own * here, nothing

    return tracer.outward(step, (), forces, tracer.marked({link}))


def _pull(d: Vec, rate: Vec, stiffness: Scalar, length: Scalar, damping: Scalar) -> Vec:
    """The force with which a spring from b to a, d apart, pulls b."""
    if is_zero(length):
        return d * stiffness + rate * damping
    reach = sqrt(d.dot(d))
    return d * ((stiffness * (reach - length) + d.dot(rate) * damping / reach) / reach)


POSE, JACOBIAN, RATE = {"": Method(poses)}, {"": Method(jacobian)}, {"": Method(jacobian_derivative)}
VELOCITY, INERTIA = {"": Method(velocities)}, {"": Method(composite_inertias)}

DECLARED: dict[str, Function] = {
    "center_of_mass": Function(
        ("q",), "com", (3,), INERTIA, trace_center_of_mass, "Center of mass of all moving links."
    ),
    "momentum": Function(
        ("q", "qd"), "h", (6,), {"": Method(momentum)}, trace_momentum, "Momentum of all moving links.",
        references=ABOUT
    ),
    "centroidal_momentum_matrix": Function(
        ("q",), "A", (6, "v"), {"": Method(momentum_matrix)}, trace_momentum_matrix,
        "Matrix that maps qd to the centroidal momentum."
    ),
    "kinetic_energy": Function(
        ("q", "qd"), "energy", (), {"": Method(kinetic_energy)}, trace_kinetic_energy, "Kinetic energy."
    ),
    "potential_energy": Function(
        ("q",), "energy", (), INERTIA, trace_potential_energy, "Potential energy of gravity and springs."
    ),
    "pose": Function(
        ("q",), "T", (4, 4), POSE, trace_pose, "Pose of a frame in the base frame.", dynamics=False, needs_frame=True
    ),
    "poses": Function(("q",), "T", ("frames", 4, 4), POSE, trace_poses, "Poses of all frames.", dynamics=False),
    "jacobian": Function(
        ("q",), "J", (6, "v"), JACOBIAN, trace_jacobian, "Geometric Jacobian of a frame.", dynamics=False,
        needs_frame=True, references=REFERENCES
    ),
    "point_jacobian": Function(
        ("q", "point"), "J", (6, "v"), JACOBIAN, trace_jacobian, "Geometric Jacobian of a point of a frame.",
        dynamics=False, needs_frame=True, references=REFERENCES
    ),
    "jacobian_derivative": Function(
        ("q", "qd"), "dJ", (6, "v"), RATE, trace_jacobian_derivative, "Time derivative of the Jacobian of a frame.",
        dynamics=False, needs_frame=True, references=REFERENCES
    ),
    "point_jacobian_derivative": Function(
        ("q", "qd", "point"), "dJ", (6, "v"), RATE, trace_jacobian_derivative,
        "Time derivative of the Jacobian of a point of a frame.", dynamics=False, needs_frame=True,
        references=REFERENCES
    ),
    "jacobians": Function(
        ("q",), "J", ("frames", 6, "v"), JACOBIAN, trace_jacobians, "Geometric Jacobians of all frames.",
        dynamics=False, references=REFERENCES
    ),
    "frame_velocity": Function(
        ("q", "qd"), "V", (6,), VELOCITY, trace_frame_velocity, "Velocity of a frame.", dynamics=False,
        needs_frame=True, references=REFERENCES
    ),
    "frame_acceleration": Function(
        ("q", "qd", "qdd"), "a", (6,), VELOCITY, trace_frame_acceleration, "Acceleration of a frame.", dynamics=False,
        needs_frame=True, references=REFERENCES
    ),
    "jacobian_bias": Function(
        ("q", "qd"), "a", (6,), VELOCITY, trace_frame_acceleration,
        "Acceleration of a frame at zero joint acceleration.", dynamics=False, needs_frame=True, references=REFERENCES
    ),
}  # fmt: skip
