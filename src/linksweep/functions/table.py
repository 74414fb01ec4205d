"""The declaration of a robot function: its inputs, result and methods, and how it is traced."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

Item = str | tuple[object, ...]  # what `compile` takes: a name, or a tuple that begins with one (items.py)
Record = Any  # what an algorithm returns: a dataclass with a field for each quantity that it names
Algorithm = Callable[..., Record]  # (tracer, what it reads)
Traced = Callable[..., None]  # (tracer, RobotFunction, output index): writes the result


@dataclass(frozen=True, slots=True)
class Method:
    """An algorithm and its requirements: a serial chain, 1-DOF joints, unrolled code unless constraints are few."""

    algorithm: Algorithm
    serial: bool = False
    single: bool = False
    written_out: bool = False
    few_rows: bool = False  # of constraints: then a program may be loops, too
    linear: bool = False  # in the ten parameters of each link about its origin: base parameters may stand for them
    filters: bool = False  # takes one joint after the other: none of them may follow another


@dataclass(frozen=True, slots=True)
class Function:
    """inputs by name, the result's name and axes, and its methods.

    axes: "v" is nv, "links" all links, "packed" what a regressor holds beside its zeros, "frames" all frames, "six" six
    for each frame asked for, "rows" of constraints, "ties" these, or a number. references: as seen from where, the
    default first.
    """

    inputs: tuple[str, ...]
    result: str
    axes: tuple[int | str, ...]
    methods: dict[str, Method]
    trace: Traced
    dynamics: bool = True
    invertible: bool = False  # needs every joint to move some inertia
    needs_frame: bool = False
    several: bool = False  # frames, as a tuple
    references: tuple[str, ...] = ()
    takes: tuple[str, ...] = field(default=())  # of f_ext, dissipation, base_motion
    public: bool = True
    closed: bool = False  # of robots with constraints only
    closed_methods: dict[str, Method] = field(default_factory=dict)  # of robots with constraints, for the others
    coupled_methods: dict[str, Method] = field(default_factory=dict)  # of robots with joints that follow others, too
