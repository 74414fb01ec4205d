"""The core of a Robot: its frozen description, what recursions see of it, its names, and the functions made for it.

Everything that a Robot can do is done by a part that takes a Core (closed_chains.py, derivatives.py, ...) or by a
function from one Model to another (editing.py, joint_numbers.py). A Core knows none of them.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from ..backends.threads import default_threads
from ..catalogue.defaults import DETAILED, default_method
from ..catalogue.details import Details
from ..catalogue.functions import Request
from ..catalogue.parameters import ParameterSet
from ..catalogue.requests import make_requests
from ..catalogue.table import Item
from ..compiled.function import CompiledFunction, Recipe, builtin_of, chosen_backend, make_function
from ..description.external_forces import link_forces
from ..description.model import Model
from ..errors import ArgumentError
from ..mechanism import coordinates
from ..mechanism.canonical import CanonicalModel, canonical
from ..support import settings
from ..support.lazy import Once, lazy
from ..support.numbers import Named, checked_flag
from .singular import least_ratio, singular_joints, slide_of, warn_if_singular, watched

Items = Item | Sequence[Item]  # one of them, or a list
Run = Callable[..., np.ndarray]  # arrays in, an array out
MOST_KEPT = 64  # functions of `compile`: one that is asked for again is there


def listed(functions: Items) -> list[Item]:
    """One item or a list of them; a tuple is one."""
    return functions if isinstance(functions, list) else [functions]  # pyright: ignore[reportReturnType]


class Extras(NamedTuple):
    """What a call of dynamics may have besides its arrays."""

    f_ext: Named | None = None
    dissipation: bool = False
    base_motion: ArrayLike | None = None

    def flags(self) -> dict[str, bool]:
        """Which of them there are, as a Request wants to know."""
        dissipation = checked_flag("dissipation", self.dissipation)
        return {
            "f_ext": self.f_ext is not None, "dissipation": dissipation, "base_motion": self.base_motion is not None,
        }  # fmt: skip

    def arguments(self, model: Model) -> tuple[ArrayLike, ...]:
        """External forces by link, and the base's motion, where they are given."""
        forces = link_forces(model, self.f_ext) if isinstance(self.f_ext, Mapping) else self.f_ext
        return tuple(extra for extra in (forces, self.base_motion) if extra is not None)


def extras(f_ext: Named | None, dissipation: bool, base_motion: ArrayLike | None) -> Extras | None:
    """None where nothing is given: such calls find their function by a look-up."""
    plain = f_ext is None and base_motion is None and dissipation is False
    return None if plain else Extras(f_ext, dissipation, base_motion)


@dataclass(frozen=True, eq=False, repr=False)
class Core:
    """A Model, the canonical one, names, and functions by what they were asked for: each is compiled once."""

    model: Model
    canonical: CanonicalModel
    joint_names: tuple[str, ...]
    link_names: tuple[str, ...]
    frame_names: tuple[str, ...]
    has_inertia: bool
    singular_joints: tuple[str, ...]
    functions: Once[CompiledFunction] = field(default_factory=Once)
    watched: dict[object, Run] = field(default_factory=dict)  # functions behind methods; some look at poses
    plain: defaultdict[str, dict[object, Run]] = field(default_factory=lambda: defaultdict(dict))  # by backend
    compiled: dict[Hashable, CompiledFunction] = field(default_factory=dict)  # what `compile` gave last
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
    def name(self) -> str:
        return self.model.name

    @property
    def nq(self) -> int:
        return self.model.nq

    @property
    def nv(self) -> int:
        return self.model.nv

    @lazy
    def least_ratio(self) -> float:
        """Below which the inertia that a joint moves does not fall, in any pose: see robot/singular.py."""
        slides = [slide_of(link.joint) for link in self.model.links]
        return least_ratio(self.canonical, coordinates.neutral(self.canonical), slides)

    # from what is asked to a function

    def requests(
        self, items: Sequence[Item], method: str | None = None, more: Extras | None = None, *,
        rolled: bool | None = None, parameters: Sequence[ParameterSet] = (), internal: bool = False,
        f_ext: bool = False, dissipation: bool = False, base_motion: bool = False,
    ) -> tuple[Request, ...]:  # fmt: skip
        """Functions of one program, checked: see catalogue/requests.py."""
        flags = {"f_ext": f_ext, "dissipation": dissipation, "base_motion": base_motion}
        flags |= more.flags() if more else {}
        return make_requests(self, items, method, rolled=rolled, parameters=parameters, internal=internal, **flags)

    def function(self, requests: tuple[Request, ...]) -> CompiledFunction:
        """The function of some requests, compiled at first use."""

        def make() -> CompiledFunction:
            return make_function(Recipe(self.canonical, requests), None, default_threads(), chosen_backend(None))

        return self.functions.made((requests, settings.backend), make)

    def call(
        self, item: Item, args: tuple[ArrayLike, ...], method: str | None = None, more: Extras | None = None,
        out: np.ndarray | None = None,
    ) -> np.ndarray:  # fmt: skip
        """The result of one function, which is compiled at its first call."""
        if method is None and more is None:
            try:
                plain = self.plain[settings.backend].get(item)
            except TypeError:  # a name that cannot be hashed: the request says what is wrong with it
                plain = None
            if plain is not None:  # here come the calls of a control loop: benchmarks/one_call.py
                return plain(*args) if out is None else plain(*args, out=out)
        found = self._found(item, method, more)
        if more is not None:
            args = (*args, *more.arguments(self.model))
        return found(*args) if out is None else found(*args, out=out)

    def _found(self, item: Item, method: str | None, more: Extras | None) -> Run:
        flags = () if more is None else tuple(more.flags().values())
        backend = settings.backend
        key = (item, backend, method, flags)
        try:
            found = self.watched.get(key)
        except TypeError:
            found = None
        if found is None:
            found = self.watched[key] = watched(self, self.requests([item], method, more)[0])
        if method is None and more is None:
            self.plain[backend][item] = builtin_of(found)
        return found

    def details(
        self, item: str, args: tuple[ArrayLike, ...], method: str | None, more: Extras | None, out: np.ndarray | None
    ) -> tuple[np.ndarray, Details]:
        """The result, and every quantity that the method names on its way."""
        refuse_out(item, out)
        more = more or Extras()
        if method is None:
            method = default_method(item, self.canonical) if self.model.couplings else DETAILED[item]
        request = self.requests([item], method, more)[0]

        def make() -> CompiledFunction:
            recipe = Recipe(canonical(self.model, described_frames=True), (request,), details=True)
            return make_function(recipe, None, default_threads(), chosen_backend(None))

        function = self.functions.made(("details", request, settings.backend), make)
        arrays = function(*args, *more.arguments(self.model))
        if item == "forward_dynamics":
            warn_if_singular(self, item, args[0])
        return arrays[0], Details(zip(function.outputs, arrays, strict=True))

    def keep(self, key: Hashable, made: CompiledFunction) -> None:
        """Remember what `compile` gave, of the last so many; a key of None is none."""
        if key is not None:
            self.compiled[key] = made
            if len(self.compiled) > MOST_KEPT:
                self.compiled.pop(next(iter(self.compiled)), None)


def refuse_out(item: str, out: np.ndarray | None) -> None:
    if out is not None:
        raise ArgumentError(f"{item}: out= does not go with details=True: take the arrays that are returned.")
