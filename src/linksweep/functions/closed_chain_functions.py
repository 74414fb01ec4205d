"""How the operational space, the motion of frames and constrained dynamics are traced."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ..algorithms.closed_chain.mechanism import Mechanism
from ..algorithms.closed_chain.operational_space import Place, operational_space
from ..algorithms.closed_chain.swept import constrained
from ..algorithms.inverse.khalil_kleinfinger import State, motion_of_links
from ..algorithms.mass_matrix.coupled import coupled_operational_space
from ..algorithms.whole_robot.kinematics import WORLD, poses, velocities
from ..errors import DescriptionError
from ..mechanism.bias import BaseMotion
from ..mechanism.joints import Coordinates
from ..mechanism.sweeps import LinkView, PerLink
from ..model.model import BASE, Frame
from ..spatial.algebra import ZERO_MOTION, ZERO_VEC, Force, Mat, Motion, Transform, Vec, leaves
from ..spatial.scalars import Scalar, is_zero, sqrt
from ..spatial.transforms import Pose, Rotation, Shift
from ..tracing.tracer import Tracer, UnrolledRun
from .body_traces import REFERENCES, frame_columns, frame_pose
from .table import Function, Method, Traced

if TYPE_CHECKING:
    from .computation import RobotFunction

DAMPED = 1e-4  # of a row's size: near a singular pose, rounding of the error would be a large step of no sense
ROUNDING = 1e-12  # m, what placements leave of a distance of 0
REST = BaseMotion(ZERO_VEC, ZERO_VEC, ZERO_VEC)


def _trace_operational(tracer: UnrolledRun, computation: RobotFunction, output: int) -> None:
    at = poses(tracer) if computation.reference != "local" else None
    frames = [tracer.model.frame(name) for name in computation.frames]
    if tracer.model.is_coupled:
        tracer.write(output, [x for row in _coupled_operational(tracer, frames, computation.reference) for x in row])
        return
    places = [Place(frame.link, _axes_on_link(tracer, at, frame, computation.reference)) for frame in frames]
    blocks = operational_space(tracer, places, [link.parent for link in tracer.model.links]).blocks
    size = 6 * len(places)
    full: list[list[Scalar]] = [[0.0] * size for _ in range(size)]
    for (i, j), motions in blocks.items():
        for b, motion in enumerate(motions):
            for a, value in enumerate(leaves(motion)):
                full[6 * i + a][6 * j + b] = full[6 * j + b][6 * i + a] = value
    tracer.write(output, [value for row in full for value in row])


def _coupled_operational(tracer: UnrolledRun, frames: Sequence[Frame], reference: str) -> list[list[Scalar]]:
    at = poses(tracer)
    return coupled_operational_space(tracer, [frame_columns(tracer, reference, at, frame).motions for frame in frames])


def _axes_on_link(tracer: Tracer, at: PerLink[Pose] | None, frame: Frame, reference: str) -> Transform:
    """Where the axes in which a frame's motion is told stand on its link."""
    rotation, position = frame.placement.rotation, Vec(*frame.placement.position)
    if at is None or reference == "local" or frame.link == BASE:
        return Transform((Shift(position), Rotation(Mat(*(Vec(*row) for row in rotation)))))
    pose = tracer.at(at, frame.link)
    axes = Rotation(Mat(pose.x, pose.y, pose.z))  # the base's axes in the link's frame: the transpose of its pose
    if reference == "world":
        return Transform((Rotation(axes.R), Shift(-pose.p)))
    return Transform((Shift(position), axes))


def _trace_frame_velocity(tracer: Tracer, computation: RobotFunction, output: int) -> None:
    frame, at = tracer.model.frame(computation.frames[0]), poses(tracer)
    pose = frame_pose(tracer, at, frame)
    V = moving_frame(tracer, at, velocities(tracer, tracer.read("qd")), frame, pose.p)
    tracer.write(output, leaves(_velocity_seen(computation.reference, pose, V)))


def _trace_frame_acceleration(tracer: Tracer, computation: RobotFunction, output: int) -> None:
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
    link, own = tracer.at(at, frame.link), tracer.at(V, frame.link)
    w = link.turn(own.angular)
    return Motion(w, link.turn(own.linear) + w.cross(point - link.p))


def accelerated_frame(
    tracer: Tracer, at: PerLink[Pose], states: PerLink[State], frame: Frame, point: Vec, base: Vec
) -> Motion:
    """The acceleration [dw; dv] of a frame at `point`, along the base's axes; base: dv of what stands on the base."""
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


def _trace_constraint_error(tracer: UnrolledRun, computation: RobotFunction, output: int) -> None:
    tracer.write(output, Mechanism(tracer).errors())


def _trace_constraint_jacobian(tracer: UnrolledRun, computation: RobotFunction, output: int) -> None:
    places = tracer.places()
    order = sorted(range(len(places)), key=places.__getitem__)
    tracer.write(output, [row[k] for row in Mechanism(tracer).K for k in order])


def _trace_constraint_bias(tracer: UnrolledRun, computation: RobotFunction, output: int) -> None:
    qd = tracer.read("qd")
    states = motion_of_links(tracer, qd, tracer.zeros(), REST)
    tracer.write(output, Mechanism(tracer).drift(qd, states, State(ZERO_VEC, ZERO_VEC, ZERO_VEC)))


def correction(tracer: Tracer, damping: Scalar = DAMPED) -> PerLink[Coordinates]:
    """The step (along rates) that takes the constraints' error away, to first order, the least one in the metric M.

    damping: relative to the sizes of rows; directions that are weaker are left as they are.
    """
    mechanism = constrained(tracer, damping)
    return mechanism.solve(None, mechanism.errors())[0]


def allowed_rates(tracer: Tracer, qd: PerLink[Coordinates]) -> PerLink[Coordinates]:
    """The rates that the constraints allow, the nearest in the metric M."""
    mechanism = constrained(tracer)
    return tracer.subtract(qd, mechanism.solve(None, [-rate for rate in mechanism.rates(qd)])[0])


def _trace_correction(tracer: Tracer, computation: RobotFunction, output: int) -> None:
    tracer.write_rates(output, correction(tracer))


def _trace_damped_correction(tracer: Tracer, computation: RobotFunction, output: int) -> None:
    tracer.write_rates(output, correction(tracer, tracer.read_flat("damping")[0]))


def _trace_redundancy(tracer: Tracer, computation: RobotFunction, output: int) -> None:
    tracer.write(output, constrained(tracer).redundancies())


def _trace_allowed_rates(tracer: Tracer, computation: RobotFunction, output: int) -> None:
    tracer.write_rates(output, allowed_rates(tracer, tracer.read("qd")))


def with_springs(tracer: Tracer, forces: PerLink[Force], qd: PerLink[Coordinates]) -> PerLink[Force]:
    """Forces on the links, and what the springs between frames add to them."""
    at, V = poses(tracer), velocities(tracer, qd)
    for spring in tracer.model.springs:
        a, b = (frame_pose(tracer, at, frame) for frame in (spring.a, spring.b))
        rate = moving_frame(tracer, at, V, spring.a, a.p).linear - moving_frame(tracer, at, V, spring.b, b.p).linear
        if _always_zero(a.p - b.p) and not is_zero(spring.numbers[1]):
            raise DescriptionError(
                f"the origins of {spring.a.name!r} and {spring.b.name or 'the world'!r} always coincide, expected a "
                f"distance along which the spring between them can act: remove it, or tie other frames."
            )
        pull = _pull(a.p - b.p, rate, *spring.numbers)
        for frame, pose, force in ((spring.a, a, -pull), (spring.b, b, pull)):
            if frame.link != BASE:
                forces = _with_force(tracer, forces, frame.link, tracer.at(at, frame.link), pose.p, force)
    return forces


def _always_zero(d: Vec) -> bool:
    """Whether it is 0 in every pose, but for rounding."""
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


def _of_frame(inputs: tuple[str, ...], result: str, trace: Traced) -> Function:
    return Function(
        inputs, result, (6,), {"": Method(velocities)}, trace, dynamics=False, needs_frame=True, references=REFERENCES
    )


def _of_constraints(
    inputs: tuple[str, ...], result: str, axes: tuple[int | str, ...], trace: Traced, M: bool = False
) -> Function:
    method = Method(Mechanism, written_out=True, few_rows=M)
    return Function(inputs, result, axes, {"": method}, trace, dynamics=M, public=False, closed=True)


CLOSED_CHAIN: dict[str, Function] = {
    "operational_inertia_inverse": Function(
        ("q",), "Omega", ("six", "six"), {"": Method(operational_space, written_out=True)}, _trace_operational,
        invertible=True, needs_frame=True, several=True, references=REFERENCES
    ),
    "frame_velocity": _of_frame(("q", "qd"), "V", _trace_frame_velocity),
    "frame_acceleration": _of_frame(("q", "qd", "qdd"), "a", _trace_frame_acceleration),
    "jacobian_bias": _of_frame(("q", "qd"), "a", _trace_frame_acceleration),
    "constraint_error": _of_constraints(("q",), "e", ("rows",), _trace_constraint_error),
    "constraint_jacobian": _of_constraints(("q",), "K", ("rows", "v"), _trace_constraint_jacobian),
    "constraint_bias": _of_constraints(("q", "qd"), "k", ("rows",), _trace_constraint_bias),
    "constraint_correction": _of_constraints(("q",), "step", ("v",), _trace_correction, True),
    "damped_correction": _of_constraints(("q", "damping"), "step", ("v",), _trace_damped_correction, True),
    "constraint_redundancy": _of_constraints(("q",), "redundancy", (2, "rows"), _trace_redundancy, True),
    "allowed_rates": _of_constraints(("q", "qd"), "qd_allowed", ("v",), _trace_allowed_rates, True),
}  # fmt: skip
