"""Closed chains: constraints, their forces, motor torques, and the operational space of frames."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...algorithms.closed_chain.mechanism import Mechanism
from ...algorithms.closed_chain.motors import motor_torques
from ...algorithms.closed_chain.operational_space import Place, operational_space
from ...algorithms.closed_chain.swept import constrained
from ...algorithms.inverse.khalil_kleinfinger import State, motion_of_links
from ...algorithms.mass_matrix.coupled import coupled_operational_space
from ...algorithms.rigid_body.kinematics import poses
from ...mechanism.sweeps import PerLink
from ...model.model import BASE, Frame
from ...spatial.algebra import ZERO_VEC, Mat, Transform, Vec, leaves
from ...spatial.scalars import Scalar
from ...spatial.transforms import Pose, Rotation, Shift
from ...tracing.tracer import Tracer, UnrolledRun
from ..declaration import OPTIONS, Axis, Function, Method, Traced
from .dynamics import CLOSED, document_order, record_of, write_motors
from .frames import REFERENCES, REST, frame_columns

if TYPE_CHECKING:
    from ..computation import RobotFunction

DAMPED = 1e-4  # relative to the size of a row: near a singular configuration, rounding errors would cause large steps


def _trace_operational(tracer: UnrolledRun, computation: RobotFunction, output: int) -> None:
    at = poses(tracer) if computation.reference != "local" else None
    frames = [tracer.model.frame(name) for name in computation.frames]
    if tracer.model.is_coupled:
        at = poses(tracer)
        columns = [frame_columns(tracer, computation.reference, at, frame).motions for frame in frames]
        tracer.write(output, [x for row in coupled_operational_space(tracer, columns) for x in row])
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


def _axes_on_link(tracer: Tracer, at: PerLink[Pose] | None, frame: Frame, reference: str) -> Transform:
    """Return the placement on the link of the axes in which the motion of a frame is expressed."""
    rotation, position = frame.placement.rotation, Vec(*frame.placement.position)
    if at is None or reference == "local" or frame.link == BASE:
        return Transform((Shift(position), Rotation(Mat(*(Vec(*row) for row in rotation)))))
    pose = tracer.at(at, frame.link)
    axes = Rotation(Mat(pose.x, pose.y, pose.z))  # the base's axes in the link's frame: the transpose of its pose
    if reference == "world":
        return Transform((Rotation(axes.R), Shift(-pose.p)))
    return Transform((Shift(position), axes))


def _trace_constraint_error(tracer: UnrolledRun, computation: RobotFunction, output: int) -> None:
    tracer.write(output, Mechanism(tracer).errors())


def _trace_constraint_jacobian(tracer: UnrolledRun, computation: RobotFunction, output: int) -> None:
    order = document_order(tracer)
    tracer.write(output, [row[k] for row in Mechanism(tracer).K for k in order])


def _trace_constraint_bias(tracer: UnrolledRun, computation: RobotFunction, output: int) -> None:
    qd = tracer.read("qd")
    states = motion_of_links(tracer, qd, tracer.zeros(), REST)
    tracer.write(output, Mechanism(tracer).drift(qd, states, State(ZERO_VEC, ZERO_VEC, ZERO_VEC)))


def _trace_correction(tracer: Tracer, computation: RobotFunction, output: int) -> None:
    """Write the step, along velocities, that removes the constraint error to first order, smallest in the metric M.

    The damping is relative to the sizes of rows; weaker directions are not corrected.
    """
    damping = tracer.read_flat("damping")[0] if computation.function == "damped_correction" else DAMPED
    mechanism = constrained(tracer, damping)
    tracer.write_rates(output, mechanism.solve(None, mechanism.errors())[0])


def _trace_redundancy(tracer: Tracer, computation: RobotFunction, output: int) -> None:
    tracer.write(output, constrained(tracer).redundancies())


def _trace_allowed_rates(tracer: Tracer, computation: RobotFunction, output: int) -> None:
    """Write the velocities that the constraints allow, nearest in the metric M."""
    mechanism, qd = constrained(tracer), tracer.read("qd")
    change = mechanism.solve(None, [-rate for rate in mechanism.rates(qd)])[0]
    tracer.write_rates(output, tracer.subtract(qd, change))


def _trace_motors(tracer: UnrolledRun, computation: RobotFunction, output: int) -> None:
    write_motors(tracer, tracer.summed(tracer.read_forces("tau")), output)


def _trace_multipliers(tracer: Tracer, computation: RobotFunction, output: int) -> None:
    record = record_of(tracer, computation)
    tracer.write(output, record.multipliers if computation.function == "multipliers" else leaves(record.wrenches))


def _of_constraints(
    inputs: tuple[str, ...], result: str, axes: tuple[Axis, ...], trace: Traced, doc: str, M: bool = False
) -> Function:
    method = Method(Mechanism, written_out=True, few_rows=M)
    return Function(inputs, result, axes, {"": method}, trace, doc, dynamics=M, public=False, closed=True)


def _of_forces(result: str, axes: tuple[Axis, ...], doc: str) -> Function:
    return Function(
        ("q", "qd", "tau"), result, axes, CLOSED, _trace_multipliers, doc, invertible=True, takes=OPTIONS,
        public=False, closed=True
    )  # fmt: skip


DECLARED: dict[str, Function] = {
    "operational_inertia_inverse": Function(
        ("q",), "Omega", ("six", "six"), {"": Method(operational_space, written_out=True)}, _trace_operational,
        "Inverse of the operational-space inertia of frames, J M^-1 J^T.", invertible=True, needs_frame=True,
        several=True, references=REFERENCES
    ),
    "constraint_error": _of_constraints(("q",), "e", ("rows",), _trace_constraint_error, "Constraint residuals."),
    "constraint_jacobian": _of_constraints(
        ("q",), "K", ("rows", "v"), _trace_constraint_jacobian, "Jacobian of the constraints."
    ),
    "constraint_bias": _of_constraints(
        ("q", "qd"), "k", ("rows",), _trace_constraint_bias, "Time derivative of the constraint Jacobian, times qd."
    ),
    "constraint_correction": _of_constraints(
        ("q",), "step", ("v",), _trace_correction, "Step that removes the constraint residuals.", M=True
    ),
    "damped_correction": _of_constraints(
        ("q", "damping"), "step", ("v",), _trace_correction, "Damped step towards the constraints.", M=True
    ),
    "constraint_redundancy": _of_constraints(
        ("q",), "redundancy", (2, "rows"), _trace_redundancy, "Redundancy of each row of the constraints.", M=True
    ),
    "allowed_rates": _of_constraints(
        ("q", "qd"), "qd_allowed", ("v",), _trace_allowed_rates, "Nearest velocities that satisfy the constraints.",
        M=True
    ),
    "motor_torques": Function(
        ("q", "tau"), "tau_motors", ("v",), {"": Method(motor_torques, written_out=True)}, _trace_motors,
        "Motor torques equivalent to torques of the kinematic tree.", dynamics=False, public=False, closed=True
    ),
    "multipliers": _of_forces("multipliers", ("rows",), "Lagrange multipliers of the constraints."),
    "constraint_forces": _of_forces("f", ("ties", 6), "Wrench of each constraint on its frame a."),
}  # fmt: skip
