"""What a robot can compute: the declaration of each function (inputs, result, methods) and how it is traced."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NamedTuple

from ..algorithms.closed_chain.closed_chain import closed_chain
from ..algorithms.closed_chain.mechanism import Mechanism
from ..algorithms.closed_chain.motors import motor_torques
from ..algorithms.explicit.coriolis_matrix import coriolis_matrix
from ..algorithms.explicit.explicit_model import explicit_model
from ..algorithms.explicit.explicit_model_direct import explicit_model_direct
from ..algorithms.explicit.influence import influence
from ..algorithms.forward.closed_form import closed_form
from ..algorithms.forward.composite import composite
from ..algorithms.forward.fd1 import fd1
from ..algorithms.forward.fd2 import fd2
from ..algorithms.forward.fd3 import fd3
from ..algorithms.forward.fd4 import fd4
from ..algorithms.forward.filter_smoother import filter_smoother
from ..algorithms.forward.filter_smoother_ud import filter_smoother_ud
from ..algorithms.inverse.boundary_value import boundary_value
from ..algorithms.inverse.influence_dynamics import influence_dynamics
from ..algorithms.inverse.kane import kane
from ..algorithms.inverse.khalil_kleinfinger import khalil_kleinfinger
from ..algorithms.inverse.newton_euler import newton_euler
from ..algorithms.mass_matrix.composite_inertia import mass_matrix
from ..algorithms.mass_matrix.coupled import coupled_inverse
from ..algorithms.mass_matrix.factorization import factorization
from ..algorithms.mass_matrix.inverse import mass_matrix_inverse
from ..algorithms.whole_robot.kinematics import jacobian, jacobian_derivative, poses
from ..algorithms.whole_robot.momentum import composite_inertias, kinetic_energy, momentum, momentum_matrix
from ..algorithms.whole_robot.regressor import regressor
from ..errors import ArgumentError
from ..mechanism.bias import BaseMotion
from ..mechanism.joints import Coordinates
from ..mechanism.sweeps import LinkView, PerLink
from ..spatial.algebra import ZERO_FORCE, ZERO_VEC, Force, Vec, leaves
from ..spatial.scalars import Values, sqrt, where
from ..spatial.tree_matrix import congruence
from ..tracing.expression import Operand
from ..tracing.tracer import Tracer, UnrolledRun
from .body_traces import (
    ABOUT,
    REFERENCES,
    trace_center_of_mass,
    trace_jacobian,
    trace_jacobian_derivative,
    trace_jacobians,
    trace_kinetic_energy,
    trace_momentum,
    trace_momentum_matrix,
    trace_pose,
    trace_poses,
    trace_potential_energy,
)
from .closed_chain_functions import CLOSED_CHAIN, with_springs
from .explicit_traces import trace_explicit, trace_influence, trace_regressor
from .factor_traces import FACTORS
from .table import Algorithm, Function, Method, Record, Traced

if TYPE_CHECKING:
    from .computation import RobotFunction

NAMES_VALUES = True  # of its steps: see tracing/labels.py


class Undriven(NamedTuple):
    """Squared forces that passive joints may lack: a part of all of them, and this much besides."""

    part: float
    least: float


UNDRIVEN = Undriven(1e-8, 1e-20)
CHOICES = 100_000  # operations, some: of the choice among torques where motors outnumber the freedoms
INPUT_ORDER = ("q", "qd", "qdd", "tau", "point", "damping", "f_ext", "base_motion")


def method_of(computation: RobotFunction) -> Method:
    function = FUNCTIONS[computation.function]
    return (function.methods | function.closed_methods | function.coupled_methods)[computation.method]


def _base_motion(tracer: Tracer, computation: RobotFunction) -> BaseMotion:
    gravity = Vec(*tracer.model.gravity)
    if not computation.base_motion:
        return BaseMotion(ZERO_VEC, ZERO_VEC, -gravity)
    given = tracer.read_flat("base_motion")
    return BaseMotion(Vec(*given[:3]), Vec(*given[3:6]), Vec(*given[6:]) - gravity)


def _external_forces(tracer: Tracer, computation: RobotFunction, qd: PerLink[Coordinates]) -> PerLink[Force]:
    """Each link's Force in its canonical frame: what the springs exert, and what is given."""
    given = _given_forces(tracer, computation)
    return with_springs(tracer, given, qd) if tracer.model.springs else given


def _given_forces(tracer: Tracer, computation: RobotFunction) -> PerLink[Force]:
    """From rows [moment; force] in each link's described frame."""
    if not computation.f_ext:
        return tracer.same(ZERO_FORCE)
    rows = tracer.read_rows("f_ext", 6)

    def step(link: LinkView, nothing: tuple[()], row: Values) -> tuple[Force, tuple[()]]:
        return link.from_described_frame(Force(Vec(*row[:3]), Vec(*row[3:]))), nothing

    return tracer.outward(step, (), rows)


def record_of(
    tracer: Tracer, computation: RobotFunction, algorithm: Callable[[Algorithm], Algorithm] | None = None
) -> Record:
    """Run the algorithm of inverse or forward dynamics, or one made from it: the record of every quantity it names.

    Rates and accelerations that are no input of the function are zero, and fold.
    """
    given = FUNCTIONS[computation.function].inputs
    names = ("qd", "tau") if "tau" in given else ("qd", "qdd")
    reads = (tracer.read, tracer.read_forces if "tau" in given else tracer.read)
    first, second = (read(name) if name in given else tracer.zeros() for read, name in zip(reads, names, strict=True))
    forces, base = _external_forces(tracer, computation, first), _base_motion(tracer, computation)
    own = method_of(computation).algorithm
    chosen = algorithm(own) if algorithm else own
    return chosen(tracer, first, second, forces, base, dissipation=computation.dissipation)


def _dynamics(tracer: Tracer, computation: RobotFunction, output: int) -> None:
    if tracer.model.ties and computation.function == "inverse_dynamics":
        assert isinstance(tracer, UnrolledRun)
        _write_motors(tracer, tracer.summed(record_of(tracer, computation).tau), output, strict=True)
        return
    result = FUNCTIONS[computation.function].result
    write = tracer.write_rates if result == "qdd" else tracer.write_forces
    write(output, getattr(record_of(tracer, computation), result))


def _trace_motors(tracer: UnrolledRun, computation: RobotFunction, output: int) -> None:
    _write_motors(tracer, tracer.summed(tracer.read_forces("tau")), output)


def _write_motors(tracer: UnrolledRun, forces: Sequence[Operand], output: int, strict: bool = False) -> None:
    """The torques of motors for these forces at all joints, link after link; strict: NaN where there are none."""
    driven = [link.actuated for link in tracer.model.links if link.leads for _ in range(link.nv)]
    rows, motors = sum(tie.rows for tie in tracer.model.ties), sum(driven)
    free = max(rows - len(driven) + motors, 0)
    if free * min(free, motors) * (free + motors) > CHOICES:
        raise ArgumentError(
            f"the torques of {motors} motors under {rows} rows of constraints are a choice among too many to be "
            f"compiled: name the motors, robot.with_actuated([...]), or use the method robot.inverse_dynamics."
        )
    found = motor_torques(forces, Mechanism(tracer).K, driven)
    tau = found.tau
    if strict and not all(driven):
        size: Operand = UNDRIVEN.least
        for force in forces:
            size = size + force * force * UNDRIVEN.part
        can = sqrt(where(found.left > size, -1.0, 1.0))  # 1, or NaN
        tau = [x * can if motor else can - 1.0 for x, motor in zip(tau, driven, strict=True)]
    tracer.write(output, [tau[k] for k in _document_order(tracer)])


def _trace_multipliers(tracer: Tracer, computation: RobotFunction, output: int) -> None:
    record = record_of(tracer, computation)
    tracer.write(output, record.multipliers if computation.function == "multipliers" else leaves(record.wrenches))


def _pairs(tracer: Tracer, computation: RobotFunction, output: int) -> None:
    tracer.write_pairs(output, method_of(computation).algorithm(tracer).elements)


def _inverse_by_factors(tracer: UnrolledRun) -> list[list[Operand]]:
    """M^-1 = (I - H Psi L)^T D^-1 (I - H Psi L), Theorem 4.1, on any tree."""
    result = factorization(tracer)
    diagonal = [value for values in result.gain.D for value in values]
    return congruence(tracer.tree_matrix(result.inverse), diagonal)


def _trace_inverse_matrix(tracer: UnrolledRun, computation: RobotFunction, output: int) -> None:
    if computation.method == "costate_covariance":
        _pairs(tracer, computation, output)
        return
    full = coupled_inverse(tracer) if computation.method == "composite" else _inverse_by_factors(tracer)
    flat = _document_order(tracer)
    tracer.write(output, [full[a][b] for a in flat for b in flat])


def _document_order(tracer: UnrolledRun) -> list[int]:
    """For each rate in the document's order, its place when links stand one after the other."""
    places = tracer.places()
    return sorted(range(len(places)), key=places.__getitem__)


def _of_frame(inputs: tuple[str, ...], result: str, algorithm: Algorithm, traced: Traced) -> Function:
    return Function(
        inputs, result, (6, "v"), {"": Method(algorithm)}, traced, dynamics=False, needs_frame=True,
        references=REFERENCES,
    )  # fmt: skip


def _of_parameters(*axes: str) -> Function:
    methods = {"": Method(regressor)}
    return Function(("q", "qd", "qdd"), "Y", axes, methods, _trace_regressor, dynamics=False, takes=("base_motion",))


def _of_ties(result: str, axes: tuple[int | str, ...]) -> Function:
    """What forward dynamics finds of the constraints."""
    return Function(
        ("q", "qd", "tau"), result, axes, CLOSED, _trace_multipliers,
        invertible=True, takes=ALL, public=False, closed=True
    )  # fmt: skip


def _trace_explicit(tracer: UnrolledRun, computation: RobotFunction, output: int) -> None:
    if method_of(computation).algorithm is coriolis_matrix:
        tracer.write_pair_blocks(coriolis_matrix(tracer, tracer.read("qd")), {output: "C"})
    elif method_of(computation).algorithm is mass_matrix:
        _pairs(tracer, computation, output)
    else:
        trace_explicit(method_of(computation).algorithm, tracer, computation, output)


def _trace_regressor(tracer: Tracer, computation: RobotFunction, output: int) -> None:
    qd, qdd = tracer.read("qd"), tracer.read("qdd")
    trace_regressor(
        tracer, qd, qdd, _base_motion(tracer, computation), output, computation.function == "packed_regressor"
    )


def _form(update: str) -> Method:
    return Method(functools.partial(filter_smoother, update=update), filters=True)


INVERSE = {
    "khalil_kleinfinger": Method(khalil_kleinfinger, linear=True), "newton_euler": Method(newton_euler, linear=True),
    "boundary_value": Method(boundary_value, linear=True), "kane": Method(kane),
}  # fmt: skip
INVERSE["influence"] = Method(influence_dynamics, single=True, written_out=True)
FORWARD = {
    "filter_smoother": Method(filter_smoother, filters=True),
    "filter_smoother_50": _form("50"), "filter_smoother_51": _form("51"),
    "filter_smoother_ud": Method(filter_smoother_ud, serial=True, single=True, filters=True),
    "fd1": Method(fd1, filters=True), "fd2": Method(fd2, filters=True), "fd3": Method(fd3, filters=True),
    "fd4": Method(fd4, filters=True),
    "composite": Method(composite, written_out=True, linear=True),
    "closed_form": Method(closed_form, serial=True, single=True, filters=True),
}  # fmt: skip
CLOSED = {"closed_chain": Method(closed_chain, written_out=True, few_rows=True, linear=True)}
ALL = ("f_ext", "dissipation", "base_motion")
FACTOR = {"factorization": Method(factorization, written_out=True, filters=True)}
LINEAR = (*(name for name, method in INVERSE.items() if method.linear), "composite", "covariance")
EXPLICIT = {
    "augmented_bodies": Method(explicit_model, single=True, written_out=True),
    "direct": Method(explicit_model_direct, single=True, written_out=True),
}
EFFECTIVE = {**EXPLICIT, "composite": Method(mass_matrix, linear=True)}  # I* is M
CORIOLIS = {"composite": Method(coriolis_matrix, linear=True), "augmented_bodies": EXPLICIT["augmented_bodies"]}
INFLUENCE = {"": Method(influence, single=True, written_out=True)}

FUNCTIONS: dict[str, Function] = {
    "inverse_dynamics": Function(
        ("q", "qd", "qdd"), "tau", ("v",), INVERSE, _dynamics, takes=ALL
    ),
    "forward_dynamics": Function(
        ("q", "qd", "tau"), "qdd", ("v",), FORWARD, _dynamics, invertible=True, takes=ALL,
        closed_methods=CLOSED
    ),
    "mass_matrix": Function(
        ("q",), "M", ("v", "v"), {"composite": Method(mass_matrix, linear=True),
        "covariance": Method(functools.partial(mass_matrix, ten_parameters=False), linear=True)}, _pairs
    ),
    "mass_matrix_inverse": Function(
        ("q",), "Minv", ("v", "v"),
        {"costate_covariance": Method(mass_matrix_inverse, serial=True, filters=True), **FACTOR},
        _trace_inverse_matrix, invertible=True,
        coupled_methods={"composite": Method(coupled_inverse, written_out=True, linear=True)}
    ),
    "bias_forces": Function(
        ("q", "qd"), "tau", ("v",), INVERSE, _dynamics, takes=ALL
    ),
    "gravity_forces": Function(("q",), "tau", ("v",), INVERSE, _dynamics),
    "tree_dynamics": Function(("q", "qd", "qdd"), "tau", ("v",), INVERSE, _dynamics, takes=ALL, public=False),
    "center_of_mass": Function(("q",), "com", (3,), {"": Method(composite_inertias)}, trace_center_of_mass),
    "momentum": Function(("q", "qd"), "h", (6,), {"": Method(momentum)}, trace_momentum, references=ABOUT),
    "centroidal_momentum_matrix": Function(
        ("q",), "A", (6, "v"), {"": Method(momentum_matrix)}, trace_momentum_matrix
    ),
    "kinetic_energy": Function(("q", "qd"), "energy", (), {"": Method(kinetic_energy)}, trace_kinetic_energy),
    "potential_energy": Function(("q",), "energy", (), {"": Method(composite_inertias)}, trace_potential_energy),
    "pose": Function(("q",), "T", (4, 4), {"": Method(poses)}, trace_pose, dynamics=False, needs_frame=True),
    "poses": Function(("q",), "T", ("frames", 4, 4), {"": Method(poses)}, trace_poses, dynamics=False),
    "jacobian": _of_frame(("q",), "J", jacobian, trace_jacobian),
    "point_jacobian": _of_frame(("q", "point"), "J", jacobian, trace_jacobian),
    "jacobian_derivative": _of_frame(("q", "qd"), "dJ", jacobian_derivative, trace_jacobian_derivative),
    "point_jacobian_derivative": _of_frame(("q", "qd", "point"), "dJ", jacobian_derivative, trace_jacobian_derivative),
    "jacobians": Function(
        ("q",), "J", ("frames", 6, "v"), {"": Method(jacobian)}, trace_jacobians, dynamics=False, references=REFERENCES
    ),
    "first_influence": Function(
        ("q", "point"), "G", (6, "v"), INFLUENCE, trace_influence, dynamics=False, needs_frame=True
    ),
    "second_influence": Function(
        ("q", "point"), "H", (6, "v", "v"), INFLUENCE, trace_influence, dynamics=False, needs_frame=True
    ),
    "regressor": _of_parameters("v", "parameters"),
    "packed_regressor": _of_parameters("packed"),
    "effective_inertia": Function(("q",), "I", ("v", "v"), EFFECTIVE, _trace_explicit),
    "inertia_power": Function(("q",), "P", ("v", "v", "v"), EXPLICIT, _trace_explicit),
    "coriolis_matrix": Function(("q", "qd"), "C", ("v", "v"), CORIOLIS, _trace_explicit),
    **FACTORS,
    **CLOSED_CHAIN,
    "motor_torques": Function(
        ("q", "tau"), "tau_motors", ("v",), {"": Method(motor_torques, written_out=True)}, _trace_motors,
        dynamics=False, public=False, closed=True
    ),
    "multipliers": _of_ties("multipliers", ("rows",)),
    "constraint_forces": _of_ties("f", ("ties", 6)),
}  # fmt: skip
