"""The declaration of a robot function: inputs, result, methods, default rule, tracing code, description.

A module of `catalog/` declares functions in its table `DECLARED`. Everything else follows from the declaration:
`robot.compile`, a method of Robot, derivatives, the command line, C, JAX, PyTorch, CasADi and operation counts.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

Item = str | tuple[object, ...]  # an argument of `compile`: a name, or a tuple that begins with one (items.py)
Record = Any  # the result of an algorithm: a dataclass with a field for each quantity that it names
Algorithm = Callable[..., Record]  # (tracer, inputs ...)
Traced = Callable[..., None]  # (tracer, RobotFunction, output index): writes the result
Axis = int | str

INPUTS: dict[str, tuple[Axis, ...]] = {  # in the order of arguments, with their axes
    "q": ("q",), "qd": ("v",), "qdd": ("v",), "tau": ("v",), "point": (3,), "damping": (1,), "f_ext": ("links", 6),
    "base_motion": (9,),
}  # fmt: skip
OPTIONS = ("f_ext", "dissipation", "base_motion")


@dataclass(frozen=True, slots=True)
class Method:
    """An algorithm and its requirements: a serial chain, 1-DOF joints, unrolled code unless constraints are few."""

    algorithm: Algorithm
    serial: bool = False
    single: bool = False
    written_out: bool = False
    few_rows: bool = False  # can be rolled if the constraints have few rows
    linear: bool = False  # in the ten inertial parameters of each link: base parameters give the same result
    filters: bool = False  # processes one joint after the other: not for robots with mimic joints


@dataclass(frozen=True, slots=True)
class Structure:
    """The properties of a robot that default rules depend on.

    depth: DOF from the base to the farthest tip. chain: a serial chain. loops: the program is rolled. coupled: there
    are mimic joints.
    """

    depth: int
    chain: bool
    loops: bool
    coupled: bool = False


@dataclass(frozen=True, slots=True)
class Rule:
    """A method, and when it is the default, in words and as a test. The first rule of a function that holds decides."""

    method: str
    words: str = "always"
    holds: Callable[[Structure], bool] = lambda structure: True


@dataclass(frozen=True, slots=True)
class Function:
    """A robot function: names of its inputs, name and axes of its result, methods by name, and tracing code.

    A function with one method calls it "". Axes are numbers or names: "v" is nv, "q" is nq, "links" and "frames" are
    all of them, "parameters" 11 for each link, "packed" the nonzero entries of a regressor, "six" 6 for each requested
    frame, "ties" the constraints and "rows" their rows.
    """

    inputs: tuple[str, ...]
    result: str
    axes: tuple[Axis, ...]
    methods: dict[str, Method]
    trace: Traced
    doc: str = ""
    shapes: Mapping[str, tuple[Axis, ...]] = field(default_factory=dict)  # axes of inputs that INPUTS does not list
    rules: tuple[Rule, ...] = ()  # the default method; by default the first one
    operations: tuple[int, int] | None = None  # of a rolled program, for each link and for each pair of DOF on a path
    dynamics: bool = True  # depends on inertias
    invertible: bool = False  # needs every joint to move some inertia
    needs_frame: bool = False
    several: bool = False  # takes several frames, as a tuple
    references: tuple[str, ...] = ()  # in which the result can be expressed, the default first
    takes: tuple[str, ...] = ()  # some of OPTIONS
    public: bool = True
    closed: bool = False  # for robots with constraints only
    closed_methods: dict[str, Method] = field(default_factory=dict)  # for robots with constraints, instead of methods
    coupled_methods: dict[str, Method] = field(default_factory=dict)  # for robots with mimic joints, besides methods

    @property
    def all_methods(self) -> dict[str, Method]:
        """The methods for all robots."""
        return self.methods | self.closed_methods | self.coupled_methods
