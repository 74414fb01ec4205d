"""What a robot can compute: each function's inputs, results and methods, and how its Program is traced.

A request names one function with its options; a Program serves one or several requests, which share their work.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from .algorithms.filter_smoother import filter_smoother
from .algorithms.kinematics import WORLD, jacobian, poses
from .algorithms.mass_matrix import mass_matrix
from .algorithms.newton_euler import newton_euler
from .canonical import CanonicalModel
from .joints import KINDS, Coordinates
from .model import BASE
from .spatial import ZERO_FORCE, Force, Vec
from .tracing.passes import remove_dead
from .tracing.program import Array, Program
from .tracing.rolled import Rolled
from .tracing.unrolled import UnrolledTrace

INPUT_ORDER = ("q", "qd", "qdd", "tau", "f_ext")
ROLL_ABOVE = 60  # links; below, a written-out program of real geometry is faster (benchmarks/rolled.py)


@dataclass(frozen=True, slots=True)
class Request:
    """One function of a robot with its options, all that a Program depends on besides the robot."""

    function: str
    method: str = ""
    frame: str = ""
    f_ext: bool = False
    dissipation: bool = False


@dataclass(frozen=True, slots=True)
class Function:
    """inputs by name, the result's name and axes ("v": nv, or a number), and its methods, the default first."""

    inputs: tuple[str, ...]
    result: str
    axes: tuple[Any, ...]
    methods: dict[str, Callable[..., Any]]
    trace: Callable[[Any, Request, int], None]
    dynamics: bool = True
    needs_frame: bool = False
    takes_f_ext: bool = False
    shared: bool = False  # a method named for another function of the same program is no mistake
    public: bool = True


def trace(model: CanonicalModel, requests: Sequence[Request], rolled: bool | None = None) -> Program:
    """The Program that computes these requests. `rolled`: as loops over the links; None chooses by size."""
    inputs, outputs = signature(model, requests)
    if rolled is None:
        rolled = len(model.links) > ROLL_ABOVE
    tracer = (Rolled if rolled else UnrolledTrace)(model, inputs)
    for index, request in enumerate(requests):
        FUNCTIONS[request.function].trace(tracer, request, index)
    name = "_".join(request.function for request in requests)
    return remove_dead(tracer.program(name, outputs)).verify()


def signature(model: CanonicalModel, requests: Sequence[Request]) -> tuple[tuple[Array, ...], tuple[Array, ...]]:
    """Inputs and results of a program for these requests, known without tracing it."""
    nq = sum(KINDS[link.kind].nq for link in model.links)
    nv = sum(KINDS[link.kind].nv for link in model.links)
    shapes = {"q": (nq,), "qd": (nv,), "qdd": (nv,), "tau": (nv,), "f_ext": (len(model.links), 6)}
    wanted = {name for request in requests for name in FUNCTIONS[request.function].inputs}
    if any(request.f_ext for request in requests):
        wanted.add("f_ext")
    inputs = tuple(Array(name, shapes[name]) for name in INPUT_ORDER if name in wanted)
    outputs = []
    for request in requests:
        function = FUNCTIONS[request.function]
        outputs.append(Array(function.result, tuple(nv if axis == "v" else axis for axis in function.axes)))
    return inputs, tuple(outputs)


def _coordinates(tracer: Any, name: str) -> Any:
    return tracer.split(next(k for k, array in enumerate(tracer.inputs) if array.name == name))


def _gravity(tracer: Any) -> Vec:
    return Vec(*tracer.model.gravity)


def _external_forces(tracer: Any, request: Request) -> Any:
    """Each link's Force in its canonical frame, from rows [moment; force] in its described frame."""
    if not request.f_ext:
        return tracer.same(ZERO_FORCE)
    source = next(k for k, array in enumerate(tracer.inputs) if array.name == "f_ext")
    rows = tracer.split_rows(source, 6)

    def step(link: Any, nothing: Any, row: Any) -> Any:
        return link.from_described_frame(Force(Vec(*row[:3]), Vec(*row[3:]))), nothing

    return tracer.outward(step, (), rows)


def _trace_inverse(tracer: Any, request: Request, output: int) -> None:
    qd, qdd = _coordinates(tracer, "qd"), _coordinates(tracer, "qdd")
    _inverse(tracer, request, output, qd, qdd)


def _trace_bias(tracer: Any, request: Request, output: int) -> None:
    _inverse(tracer, request, output, _coordinates(tracer, "qd"), None)


def _trace_gravity(tracer: Any, request: Request, output: int) -> None:
    _inverse(tracer, request, output, None, None)


def _inverse(tracer: Any, request: Request, output: int, qd: Any, qdd: Any) -> None:
    algorithm = FUNCTIONS[request.function].methods[request.method]
    zero = tracer.same(Coordinates((0.0,)))
    forces = _external_forces(tracer, request)
    result = algorithm(tracer, qd or zero, qdd or zero, forces, _gravity(tracer), dissipation=request.dissipation)
    tracer.join(output, result.tau)


def _trace_forward(tracer: Any, request: Request, output: int) -> None:
    algorithm = FUNCTIONS[request.function].methods[request.method]
    qd, tau = _coordinates(tracer, "qd"), _coordinates(tracer, "tau")
    forces = _external_forces(tracer, request)
    result = algorithm(tracer, qd, tau, forces, _gravity(tracer), dissipation=request.dissipation)
    tracer.join(output, result.qdd)


def _trace_mass_matrix(tracer: Any, request: Request, output: int) -> None:
    tracer.join_pairs(output, mass_matrix(tracer).elements)


def _trace_pose(tracer: Any, request: Request, output: int) -> None:
    frame = tracer.model.frame(request.frame)
    pose = WORLD if frame.link == BASE else tracer.at(poses(tracer), frame.link)
    axes = [pose.turn(Vec(*column)) for column in zip(*frame.placement.rotation, strict=True)]
    columns = [*axes, pose.point(Vec(*frame.placement.position))]
    rows = [[getattr(column, name) for column in columns] for name in "xyz"]
    tracer.write(output, [*rows[0], *rows[1], *rows[2], 0.0, 0.0, 0.0, 1.0])


def _trace_jacobian(tracer: Any, request: Request, output: int) -> None:
    frame = tracer.model.frame(request.frame)
    at = poses(tracer)
    pose = WORLD if frame.link == BASE else tracer.at(at, frame.link)
    path, link = set(), frame.link
    while link != BASE:
        path.add(link)
        link = tracer.model.links[link].parent
    point = pose.point(Vec(*frame.placement.position))
    columns = jacobian(tracer, at, tracer.marked(path), point)
    tracer.join_columns(output, columns.motions, 6)


def _trace_joint_inertia(tracer: Any, request: Request, output: int) -> None:
    zero = tracer.same(Coordinates((0.0,)))
    result = filter_smoother(tracer, zero, zero, tracer.same(ZERO_FORCE), _gravity(tracer))
    tracer.join(output, result.filtered.D)


FUNCTIONS: dict[str, Function] = {
    "inverse_dynamics": Function(
        ("q", "qd", "qdd"), "tau", ("v",), {"newton_euler": newton_euler}, _trace_inverse, takes_f_ext=True
    ),
    "forward_dynamics": Function(
        ("q", "qd", "tau"),
        "qdd",
        ("v",),
        {"filter_smoother": filter_smoother},
        _trace_forward,
        takes_f_ext=True,
    ),
    "mass_matrix": Function(("q",), "M", ("v", "v"), {"composite": mass_matrix}, _trace_mass_matrix, shared=True),
    "bias_forces": Function(
        ("q", "qd"), "tau", ("v",), {"newton_euler": newton_euler}, _trace_bias, takes_f_ext=True, shared=True
    ),
    "gravity_forces": Function(("q",), "tau", ("v",), {"newton_euler": newton_euler}, _trace_gravity, shared=True),
    "joint_inertia": Function(
        ("q",), "D", ("v",), {"filter_smoother": filter_smoother}, _trace_joint_inertia, public=False
    ),
    "pose": Function(("q",), "T", (4, 4), {"": poses}, _trace_pose, dynamics=False, needs_frame=True),
    "jacobian": Function(("q",), "J", (6, "v"), {"": jacobian}, _trace_jacobian, dynamics=False, needs_frame=True),
}
