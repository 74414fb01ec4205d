"""What a request is, and what the catalogue says of a function and of a method."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

from ..errors import ArgumentError

Item = str | tuple[object, ...]  # what `compile` takes: a name, or a tuple that begins with one (requests.py)
Record = Any  # what an algorithm returns: a dataclass with a field for each quantity that it names
Algorithm = Callable[..., Record]  # (tracer, what it reads)
Traced = Callable[..., None]  # (tracer, request, output): writes what a request asks for


@dataclass(frozen=True, slots=True)
class Request:
    """One function of a robot with its options, all that a Program depends on besides the robot."""

    function: str
    method: str = ""
    frame: str | tuple[str, ...] = ""  # several only where a function takes several
    reference: str = ""
    f_ext: bool = False
    dissipation: bool = False
    base_motion: bool = False
    by: tuple[str, ...] = ()  # differentiated by these inputs, one after the other
    coordinates: bool = False  # by the numbers of q, not along the rates
    product: str = ""  # before that: its derivatives times tangents (jvp), or weights times its derivatives (vjp)
    moved: tuple[str, ...] = ()  # by these inputs: one of a vjp, one or several of a jvp
    along: tuple[str, ...] = ()  # after all that: its derivatives with respect to these inputs times tangents

    @property
    def frames(self) -> tuple[str, ...]:
        """Its frames, one or several."""
        return (self.frame,) if isinstance(self.frame, str) else self.frame

    @property
    def slope(self) -> bool:
        """Whether it is something other than the values of a function."""
        return bool(self.by or self.product or self.along)

    def differentiated(self, by: tuple[str, ...], **options: bool) -> Request:
        """Its derivative with respect to these inputs, one after the other."""
        if self.along:
            raise ArgumentError(
                f"{self.function} is a jvp of a derivative or product here, which cannot be differentiated further: "
                f"take the derivative first, and the jvp of it."
            )
        return replace(self, by=(*self.by, *by), **options)

    @property
    def plain(self) -> Request:
        """The values that it is a derivative of."""
        return replace(self, by=(), coordinates=False, product="", moved=(), along=())


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
