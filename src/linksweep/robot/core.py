"""The core of a Robot: its model, canonical frames, names, and the compiled functions behind its methods.

Methods of a Robot are implemented by classes and functions that take a Core (closed_chains.py, derivatives.py, ...) or
by functions from one Model to another (editing.py, properties.py).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from inspect import Parameter, Signature
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from ..backends.threads import default_threads
from ..errors import ArgumentError
from ..functions.compiled import CompiledFunction, builtin_of, compiled
from ..functions.computation import Computation, RobotFunction, Together, input_order, internal_function
from ..functions.declaration import Item
from ..functions.defaults import DETAILED, default_method
from ..functions.details import Details, WithDetails
from ..functions.functions import FUNCTIONS
from ..functions.items import RobotModel, computations
from ..mechanism import coordinates
from ..mechanism.canonical import CanonicalModel, canonical
from ..model.model import Model
from ..model.quantities import link_forces
from ..support import settings
from ..support.checks import Named, checked_flag
from ..support.lazy import lazy
from .singular import least_ratio, singular_joints, slide_of, warn_if_singular, watched

Items = Item | Sequence[Item]  # one of them, or a list
Run = Callable[..., np.ndarray]  # arrays in, an array out
FLAGS = ("f_ext", "dissipation", "base_motion")
RECENT = 64  # functions that `compile` returned last and that a robot holds


def listed(functions: Items) -> list[Item]:
    """Return a list of items; a tuple is one item."""
    return functions if isinstance(functions, list) else [functions]  # pyright: ignore[reportReturnType]


def argument_key(argument: object) -> tuple[type, object]:
    """Return an argument as part of a key: lists as tuples, with the type, which tells 1 from True."""
    return type(argument), tuple(argument) if isinstance(argument, list) else argument


class Extras(NamedTuple):
    """Options of a call of dynamics besides its arrays."""

    f_ext: Named | None = None
    dissipation: bool = False
    base_motion: ArrayLike | None = None

    def flags(self) -> dict[str, bool]:
        """Return which options are used."""
        dissipation = checked_flag("dissipation", self.dissipation)
        return {
            "f_ext": self.f_ext is not None, "dissipation": dissipation, "base_motion": self.base_motion is not None,
        }  # fmt: skip

    def key(self) -> tuple[bool, ...]:
        return tuple(self.flags().values())

    def arguments(self, model: Model) -> tuple[ArrayLike, ...]:
        """Return external forces by link and the motion of the base, if there are any."""
        forces = link_forces(model, self.f_ext) if isinstance(self.f_ext, Mapping) else self.f_ext
        return tuple(extra for extra in (forces, self.base_motion) if extra is not None)


def extras(f_ext: Named | None, dissipation: bool, base_motion: ArrayLike | None) -> Extras | None:
    """Return the options, or None if all have their default values: such calls need one look-up only."""
    plain = f_ext is None and base_motion is None and dissipation is False
    return None if plain else Extras(f_ext, dissipation, base_motion)


@dataclass(frozen=True, eq=False, repr=False)
class Core(RobotModel):
    """A robot model, and the compiled functions that its Robot uses."""

    # Functions live as long as someone holds them (functions/compiled.py): those of methods as long as the robot, of
    # those that `compile` returned the last ones, so that what is compiled again and again is compiled once.
    held: set[CompiledFunction] = field(default_factory=set)
    recent: dict[object, CompiledFunction] = field(default_factory=dict)  # by the arguments of `compile`
    # By backend: the call behind each method, by its item and options. A call of a control loop finds its machine code
    # by one look-up: making its computation and asking the memo takes longer than the call (benchmarks/one_call.py).
    calls: defaultdict[str, dict[object, Run]] = field(default_factory=lambda: defaultdict(dict))
    generic_ranks: set[int] = field(default_factory=set)  # of its constraints, see robot/constraints.py

    @classmethod
    def of(cls, model: Model) -> Core:
        frames, joints = canonical(model), tuple(joint.name for joint in model.joints)
        has_inertia = any(
            link.joint.armature or link.inertial.mass or any(any(row) for row in link.inertial.inertia)
            for link in model.links
        )
        return cls(
            model, frames, joints, tuple(model.links[i].name for i in model.document_order),
            tuple(frame.name for frame in model.frames), has_inertia, singular_joints(frames, model, joints),
        )  # fmt: skip

    @property
    def nq(self) -> int:
        return self.model.nq

    @property
    def nv(self) -> int:
        return self.model.nv

    @lazy
    def described(self) -> CanonicalModel:
        """The model with links in the frames of its joints, for `details`."""
        return canonical(self.model, described_frames=True)

    @lazy
    def least_ratio(self) -> float:
        """Lower bound of the inertia that a joint moves, in any configuration: see robot/singular.py."""
        slides = [slide_of(link.joint) for link in self.model.links]
        return least_ratio(self.canonical, coordinates.neutral(self.canonical), slides)

    # ---- from items to functions

    def parts(
        self, items: Sequence[Item], method: str | None = None, more: Extras | None = None, *, internal: bool = False
    ) -> tuple[Computation, ...]:
        """Return the checked computation of each item of one program: see functions/items.py."""
        flags = more.flags() if more else dict.fromkeys(FLAGS, False)
        return computations(
            self, items, method, internal=internal, f_ext=flags["f_ext"], dissipation=flags["dissipation"],
            base_motion=flags["base_motion"],
        )  # fmt: skip

    def part(self, item: Item, method: str | None = None, more: Extras | None = None) -> RobotFunction:
        """Return the computation of one item that is a function of the robot."""
        (part,) = self.parts([item], method, more)
        assert isinstance(part, RobotFunction)
        return part

    def internal(self, function: str) -> RobotFunction:
        """Return the computation of a function that is not public."""
        return internal_function(self.canonical, function)

    def function(self, *parts: Computation) -> CompiledFunction:
        """Return the function of these computations in one program. It lives as long as the robot."""
        function = compiled(Together(parts), None, default_threads())
        self.held.add(function)
        return function

    def recently_compiled(self, key: object, make: Callable[[], CompiledFunction]) -> CompiledFunction:
        """Return one of the last functions that `compile` returned, by its arguments, or a new one."""
        try:
            hash(key)
        except TypeError:  # frames in a list; or arguments that cannot be right, about which `make` raises an error
            key = None
        function = self.recent.pop(key, None) or make()
        self.recent[function if key is None else key] = function
        if len(self.recent) > RECENT:
            self.recent.pop(next(iter(self.recent)), None)
        return function

    def call(
        self, item: Item, args: tuple[ArrayLike, ...], method: str | None = None, more: Extras | None = None,
        out: np.ndarray | None = None,
    ) -> np.ndarray:  # fmt: skip
        """Return the result of one function, which is compiled at its first call."""
        key = item if method is None and more is None else (item, method, () if more is None else more.key())
        try:
            function = self.calls[settings.backend].get(key)
        except TypeError:  # a name that cannot be hashed: an error message follows below
            function = None
        if function is None:
            function = self.calls[settings.backend][key] = self._watched(item, method, more)
        if more is not None:
            args = (*args, *more.arguments(self.model))
        return function(*args) if out is None else function(*args, out=out)

    def _watched(self, item: Item, method: str | None, more: Extras | None) -> Run:
        """Return the call of an item, which warns at singular configurations."""
        (part,) = self.parts([item], method, more)
        return builtin_of(watched(self, part))

    def call_of(self, key: object, make: Callable[[], CompiledFunction]) -> Run:
        """Return the call behind a method by this key, made at first use."""
        table = self.calls[settings.backend]
        function = table.get(key)
        if function is None:
            function = table[key] = builtin_of(make())
        return function

    def details(
        self, item: str, args: tuple[ArrayLike, ...], method: str | None, more: Extras | None, out: np.ndarray | None
    ) -> tuple[np.ndarray, Details]:
        """Return the result, and every intermediate quantity of the method."""
        refuse_out(item, out)
        more = more or Extras()
        if method is None:
            method = default_method(item, self.canonical) if self.model.couplings else DETAILED[item]
        described = replace(self.part(item, method, more), model=self.described)
        function = self.function(WithDetails(described))
        arrays = function(*args, *more.arguments(self.model))
        if item == "forward_dynamics":
            warn_if_singular(self, item, args[0])
        return arrays[0], Details(zip(function.outputs, arrays, strict=True))


def declared_call(core: Core, name: str) -> Run:
    """Return the method of Robot that follows from the declaration of a function.

    Its arguments are the inputs, the frame if there is one, `out`, and by keyword `method`, `reference` and options.
    """
    function = FUNCTIONS[name]
    inputs = sorted(function.inputs, key=input_order)
    options: dict[str, object] = {"method": None} if "" not in function.methods else {}
    options |= {"reference": function.references[0]} if function.references else {}
    options |= {option: False if option == "dissipation" else None for option in function.takes}
    signature = Signature([
        *(Parameter(each, Parameter.POSITIONAL_OR_KEYWORD) for each in (*inputs, *["frame"] * function.needs_frame)),
        Parameter("out", Parameter.POSITIONAL_OR_KEYWORD, default=None),
        *(Parameter(option, Parameter.KEYWORD_ONLY, default=default) for option, default in options.items()),
    ])  # fmt: skip

    def call(*args: ArrayLike, **named: ArrayLike) -> np.ndarray:
        bound = signature.bind(*args, **named)
        bound.apply_defaults()
        values = bound.arguments
        item = (name, *(values[each] for each in ("frame", "reference") if each in values))
        more = extras(values.get("f_ext"), values.get("dissipation", False), values.get("base_motion"))
        arrays = tuple(values[each] for each in inputs)
        return core.call(item if len(item) > 1 else name, arrays, values.get("method"), more, values["out"])

    call.__name__, call.__doc__ = name, function.doc
    call.__signature__ = signature  # pyright: ignore[reportFunctionMemberAccess]
    return call


def refuse_out(item: str, out: np.ndarray | None) -> None:
    if out is not None:
        raise ArgumentError(f"{item}: out= and details=True cannot be combined.")
