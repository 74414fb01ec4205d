"""Inverse and forward dynamics, the mass matrix and its inverse."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NamedTuple

from ...algorithms.closed_chain.closed_chain import closed_chain
from ...algorithms.closed_chain.mechanism import Mechanism
from ...algorithms.closed_chain.motors import motor_torques
from ...algorithms.forward.closed_form import closed_form
from ...algorithms.forward.composite import composite
from ...algorithms.forward.fd1 import fd1
from ...algorithms.forward.fd2 import fd2
from ...algorithms.forward.fd3 import fd3
from ...algorithms.forward.fd4 import fd4
from ...algorithms.forward.filter_smoother import filter_smoother
from ...algorithms.forward.filter_smoother_ud import filter_smoother_ud
from ...algorithms.inverse.boundary_value import boundary_value
from ...algorithms.inverse.influence_dynamics import influence_dynamics
from ...algorithms.inverse.kane import kane
from ...algorithms.inverse.khalil_kleinfinger import khalil_kleinfinger
from ...algorithms.inverse.newton_euler import newton_euler
from ...algorithms.mass_matrix.composite_inertia import mass_matrix
from ...algorithms.mass_matrix.coupled import coupled_inverse
from ...algorithms.mass_matrix.factorization import factorization
from ...algorithms.mass_matrix.inverse import mass_matrix_inverse
from ...errors import ArgumentError
from ...mechanism.bias import BaseMotion
from ...mechanism.joints import Coordinates
from ...mechanism.sweeps import LinkView, PerLink
from ...spatial.algebra import ZERO_FORCE, ZERO_VEC, Force, Vec
from ...spatial.scalars import Values, sqrt, where
from ...spatial.tree_matrix import congruence
from ...tracing.expression import Operand
from ...tracing.tracer import Tracer, UnrolledRun
from ..declaration import OPTIONS, Algorithm, Function, Method, Record, Rule
from .frames import with_springs

if TYPE_CHECKING:
    from ..computation import RobotFunction

NAMES_VALUES = True  # of its steps: see tracing/labels.py


class Undriven(NamedTuple):
    """Largest squared forces of passive joints: relative to those of all joints, and absolute."""

    relative: float
    absolute: float


UNDRIVEN = Undriven(1e-8, 1e-20)
CHOICES = 100_000  # operations, approximately, that select the torques if there are more motors than DOF
DEEP = 9  # DOF between base and tip; beyond, the solve with M costs more than a filter (benchmarks/defaults.py)


def base_motion(tracer: Tracer, computation: RobotFunction) -> BaseMotion:
    gravity = Vec(*tracer.model.gravity)
    if not computation.base_motion:
        return BaseMotion(ZERO_VEC, ZERO_VEC, -gravity)
    motion = tracer.read_flat("base_motion")
    return BaseMotion(Vec(*motion[:3]), Vec(*motion[3:6]), Vec(*motion[6:]) - gravity)


def _external_forces(tracer: Tracer, computation: RobotFunction, qd: PerLink[Coordinates]) -> PerLink[Force]:
    """Return the force on each link in its canonical frame: f_ext, rows [moment; force], and springs."""

    def step(link: LinkView, nothing: tuple[()], row: Values) -> tuple[Force, tuple[()]]:
        return link.from_described_frame(Force(Vec(*row[:3]), Vec(*row[3:]))), nothing

    forces = tracer.same(ZERO_FORCE)
    if computation.f_ext:
        forces = tracer.outward(step, (), tracer.read_rows("f_ext", 6))
    return with_springs(tracer, forces, qd) if tracer.model.springs else forces


def record_of(
    tracer: Tracer, computation: RobotFunction, algorithm: Callable[[Algorithm], Algorithm] | None = None
) -> Record:
    """Run the algorithm of inverse or forward dynamics, or one made from it, and return its record.

    Velocities and accelerations that are not inputs of the function are zero and fold.
    """
    inputs = computation.declared.inputs
    qd, qdd = (tracer.read(name) if name in inputs else tracer.zeros() for name in ("qd", "qdd"))
    second = tracer.read_forces("tau") if "tau" in inputs else qdd
    forces, base = _external_forces(tracer, computation, qd), base_motion(tracer, computation)
    run = computation.declared_method.algorithm
    if algorithm:
        run = algorithm(run)
    return run(tracer, qd, second, forces, base, dissipation=computation.dissipation)


def trace_dynamics(tracer: Tracer, computation: RobotFunction, output: int) -> None:
    if tracer.model.ties and computation.function == "inverse_dynamics":
        assert isinstance(tracer, UnrolledRun)
        write_motors(tracer, tracer.summed(record_of(tracer, computation).tau), output, strict=True)
        return
    result = computation.declared.result
    write = tracer.write_rates if result == "qdd" else tracer.write_forces
    write(output, getattr(record_of(tracer, computation), result))


def write_motors(tracer: UnrolledRun, forces: Sequence[Operand], output: int, strict: bool = False) -> None:
    """Write the motor torques for these forces at all joints, link by link; strict: NaN if there are none."""
    driven = [link.actuated for link in tracer.model.links if link.leads for _ in range(link.nv)]
    rows, motors = sum(tie.rows for tie in tracer.model.ties), sum(driven)
    free = max(rows - len(driven) + motors, 0)
    if free * min(free, motors) * (free + motors) > CHOICES:
        raise ArgumentError(
            f"{motors} motors under {rows} rows of constraints need too many operations to be compiled: select "
            f"the motors with robot.with_actuated([...]), or call robot.inverse_dynamics."
        )
    solution = motor_torques(forces, Mechanism(tracer).K, driven)
    tau = solution.tau
    if strict and not all(driven):
        size: Operand = UNDRIVEN.absolute
        for force in forces:
            size = size + force * force * UNDRIVEN.relative
        can = sqrt(where(solution.left > size, -1.0, 1.0))  # 1, or NaN
        tau = [x * can if motor else can - 1.0 for x, motor in zip(tau, driven, strict=True)]
    tracer.write(output, [tau[k] for k in document_order(tracer)])


def trace_pairs(tracer: Tracer, computation: RobotFunction, output: int) -> None:
    tracer.write_pairs(output, computation.declared_method.algorithm(tracer).elements)


def _inverse_by_factors(tracer: UnrolledRun) -> list[list[Operand]]:
    """M^-1 = (I - H Psi L)^T D^-1 (I - H Psi L), Theorem 4.1, on any tree."""
    result = factorization(tracer)
    diagonal = [value for values in result.gain.D for value in values]
    return congruence(tracer.tree_matrix(result.inverse), diagonal)


def _trace_inverse_matrix(tracer: UnrolledRun, computation: RobotFunction, output: int) -> None:
    if computation.method == "costate_covariance":
        trace_pairs(tracer, computation, output)
        return
    full = coupled_inverse(tracer) if computation.method == "composite" else _inverse_by_factors(tracer)
    flat = document_order(tracer)
    tracer.write(output, [full[a][b] for a in flat for b in flat])


def document_order(tracer: UnrolledRun) -> list[int]:
    """Return, for each velocity in document order, its index when links follow one another."""
    places = tracer.places()
    return sorted(range(len(places)), key=places.__getitem__)


def _filter(update: str) -> Method:
    return Method(functools.partial(filter_smoother, update=update), filters=True)


INVERSE = {
    "khalil_kleinfinger": Method(khalil_kleinfinger, linear=True), "newton_euler": Method(newton_euler, linear=True),
    "boundary_value": Method(boundary_value, linear=True), "kane": Method(kane),
    "influence": Method(influence_dynamics, single=True, written_out=True),
}  # fmt: skip
FORWARD = {
    "filter_smoother": Method(filter_smoother, filters=True),
    "filter_smoother_50": _filter("50"), "filter_smoother_51": _filter("51"),
    "filter_smoother_ud": Method(filter_smoother_ud, serial=True, single=True, filters=True),
    "fd1": Method(fd1, filters=True), "fd2": Method(fd2, filters=True), "fd3": Method(fd3, filters=True),
    "fd4": Method(fd4, filters=True),
    "composite": Method(composite, written_out=True, linear=True),
    "closed_form": Method(closed_form, serial=True, single=True, filters=True),
}  # fmt: skip
CLOSED = {"closed_chain": Method(closed_chain, written_out=True, few_rows=True, linear=True)}
MIMIC = Rule("composite", "for robots with mimic joints", lambda s: s.coupled)

DECLARED: dict[str, Function] = {
    "inverse_dynamics": Function(
        ("q", "qd", "qdd"), "tau", ("v",), INVERSE, trace_dynamics,
        "Joint torques and forces that produce accelerations qdd.", operations=(177, 0), takes=OPTIONS
    ),
    "forward_dynamics": Function(
        ("q", "qd", "tau"), "qdd", ("v",), FORWARD, trace_dynamics, "Joint accelerations that torques produce.",
        rules=(
            MIMIC, Rule("fd4", "in rolled programs", lambda s: s.loops),
            Rule(
                "composite", f"for robots with at most {DEEP} DOF between the base and any tip",
                lambda s: s.depth <= DEEP
            ),
            Rule("fd3", "otherwise"),
        ),
        operations=(443, 0), invertible=True, takes=OPTIONS, closed_methods=CLOSED
    ),
    "mass_matrix": Function(
        ("q",), "M", ("v", "v"),
        {"composite": Method(mass_matrix, linear=True),
         "covariance": Method(functools.partial(mass_matrix, ten_parameters=False), linear=True)},
        trace_pairs, "Joint-space mass matrix, including armature.", operations=(125, 32)
    ),
    "mass_matrix_inverse": Function(
        ("q",), "Minv", ("v", "v"),
        {"costate_covariance": Method(mass_matrix_inverse, serial=True, filters=True),
         "factorization": Method(factorization, written_out=True, filters=True)},
        _trace_inverse_matrix, "Inverse of the mass matrix.",
        rules=(
            MIMIC,
            Rule("costate_covariance", "in rolled programs of serial chains", lambda s: s.loops and s.chain),
            Rule("factorization", "otherwise"),
        ),
        operations=(474, 48), invertible=True,
        coupled_methods={"composite": Method(coupled_inverse, written_out=True, linear=True)}
    ),
    "bias_forces": Function(
        ("q", "qd"), "tau", ("v",), INVERSE, trace_dynamics, "Joint torques at zero acceleration.",
        operations=(177, 0), takes=OPTIONS
    ),
    "gravity_forces": Function(
        ("q",), "tau", ("v",), INVERSE, trace_dynamics, "Joint torques that compensate gravity and springs.",
        operations=(172, 0)
    ),
    "tree_dynamics": Function(
        ("q", "qd", "qdd"), "tau", ("v",), INVERSE, trace_dynamics, "Inverse dynamics without constraints.",
        takes=OPTIONS, public=False
    ),
}  # fmt: skip
