"""Derivatives of inverse and forward dynamics; others are requests of `compile`."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike

from ..catalogue.functions import Request, wants_loops
from ..compiled.arrays import Results
from ..compiled.function import CompiledFunction, builtin_of
from ..errors import ArgumentError
from ..support import settings
from .constraints import REDUNDANCY, filled, warn_if_constraints_singular
from .core import Core, Extras
from .singular import threshold, warn_if_singular

Slopes = tuple[np.ndarray, np.ndarray, np.ndarray]  # (..., nv, nv) each: by q, by qd and by the last input


class Derivatives:
    """How torques change with q, qd and qdd, and accelerations with q, qd and tau."""

    def __init__(self, core: Core):
        self.core = core
        self._functions: dict[tuple[str, str, tuple[bool, ...]], CompiledFunction] = {}
        self._plain_inverse: dict[str, Callable[..., Slopes]] = {}  # of calls without options, by backend
        self._plain_forward: dict[str, Callable[..., Slopes]] = {}  # where nothing has to be watched

    def of_inverse(self, args: tuple[ArrayLike, ...], more: Extras | None, out: Slopes | None) -> Slopes:
        """Derivatives of the torques, at args (q, qd, qdd)."""
        if more is None and out is None and (plain := self._plain_inverse.get(settings.backend)):
            return plain(*args)
        if self.core.model.constraints:
            raise ArgumentError(
                f"inverse_dynamics_derivatives: the torques of {self.core.name} are a choice among many, because "
                f"it has constraints, expected a robot without: differentiate forward dynamics."
            )
        found = self._of("inverse_dynamics", args, "qdd", more, out)
        if more is None:
            self._plain_inverse[settings.backend] = builtin_of(self._function("inverse_dynamics", "qdd", None))
        return found

    def of_forward(self, args: tuple[ArrayLike, ...], more: Extras | None, out: Slopes | None) -> Slopes:
        """Derivatives of the accelerations, at args (q, qd, tau): -M^-1 times those of the torques."""
        if more is None and out is None and (plain := self._plain_forward.get(settings.backend)):
            return plain(*args)
        core = self.core
        # All derivatives of the torques are written out for little more than one of them; Talos on a free base: 241 us
        # for a call by NumPy, 35 by the program
        if wants_loops(core.canonical, [Request("inverse_dynamics", by=("q",))]) and not core.model.constraints:
            qdd = core.call("forward_dynamics", args, None, more)  # which warns where a pose is singular
            by_q, by_qd, M = self._of("inverse_dynamics", (*args[:2], qdd), "qdd", more, None)
            inverse = np.linalg.inv(M)
            inverse = 0.5 * (inverse + inverse.swapaxes(-1, -2))
            found = (-(inverse @ by_q), -(inverse @ by_qd), inverse)
            if out is None:
                return found
            for target, array in zip(out, found, strict=True):
                np.copyto(target, array)
            return out
        if core.model.constraints:
            return self._of_constrained(args, more, out)
        found = self._of("forward_dynamics", args, "tau", more, out)
        if core.least_ratio <= threshold("float32"):
            warn_if_singular(core, "forward_dynamics_derivatives", np.asarray(args[0]))
        elif more is None:
            self._plain_forward[settings.backend] = builtin_of(self._function("forward_dynamics", "tau", None))
        return found

    def _of_constrained(self, args: tuple[ArrayLike, ...], more: Extras | None, out: Slopes | None) -> Slopes:
        """Derivatives of the accelerations under constraints, with a warning where these are singular."""
        *found, redundancy = self._of("forward_dynamics", args, "tau", more, None)
        warn_if_constraints_singular(self.core, "forward_dynamics_derivatives", args[0], redundancy)
        if out is None:
            return found[0], found[1], found[2]
        for target, array in zip(out, found, strict=True):
            filled("forward_dynamics_derivatives", array, target, redundancy.ndim - 2)
        return out

    def _of(
        self, item: str, args: tuple[ArrayLike, ...], last: str, more: Extras | None, out: Slopes | None
    ) -> Results:
        function = self._function(item, last, more)
        if more is not None:
            args = (*args, *more.arguments(self.core.model))
        return function(*args) if out is None else function(*args, out=out)

    def _function(self, item: str, last: str, more: Extras | None) -> CompiledFunction:
        key = (item, settings.backend, () if more is None else tuple(more.flags().values()))
        if key not in self._functions:
            wanted = [("derivative", item, by) for by in ("q", "qd", last)]
            requests = self.core.requests(wanted, None, more)
            watched = (REDUNDANCY,) if self.core.model.constraints and item == "forward_dynamics" else ()
            self._functions[key] = self.core.function((*requests, *watched))
        return self._functions[key]
