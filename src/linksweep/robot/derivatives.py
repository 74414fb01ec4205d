"""Derivatives of inverse and forward dynamics; `compile` makes those of other functions."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from ..errors import ArgumentError
from ..functions.arrays import Results
from ..functions.compiled import CompiledFunction
from ..functions.computation import Derivative, wants_loops
from ..support import settings
from .constraints import REDUNDANCY, filled, warn_if_constraints_singular
from .core import Core, Extras
from .singular import threshold, warn_if_singular

Partials = tuple[np.ndarray, np.ndarray, np.ndarray]  # (..., nv, nv) with respect to q, qd and the last input


INVERSE, FORWARD = "inverse_dynamics_derivatives", "forward_dynamics_derivatives"  # keys of calls without options


class Derivatives:
    """Derivatives of torques with respect to q, qd and qdd, and of accelerations with respect to q, qd and tau."""

    def __init__(self, core: Core):
        self.core = core

    def of_inverse(self, args: tuple[ArrayLike, ...], more: Extras | None, out: Partials | None) -> Partials:
        """Derivatives of the torques, at args (q, qd, qdd)."""
        if more is None and out is None and (plain := self.core.calls[settings.backend].get(INVERSE)):
            return plain(*args)  # pyright: ignore[reportReturnType]
        if self.core.model.constraints:
            raise ArgumentError(
                f"inverse_dynamics_derivatives: the torques of {self.core.name} are a choice among many, because "
                f"it has constraints, expected a robot without: differentiate forward dynamics."
            )
        return self._of("inverse_dynamics", args, "qdd", more, out, plain=INVERSE)

    def of_forward(self, args: tuple[ArrayLike, ...], more: Extras | None, out: Partials | None) -> Partials:
        """Derivatives of the accelerations, at args (q, qd, tau): -M^-1 times those of the torques."""
        if more is None and out is None and (plain := self.core.calls[settings.backend].get(FORWARD)):
            return plain(*args)  # pyright: ignore[reportReturnType]
        core = self.core
        # All derivatives of the torques are written out for little more than one of them; Talos on a free base: 241 us
        # for a call by NumPy, 35 by the program
        if wants_loops([Derivative(core.internal("inverse_dynamics"), "q")]) and not core.model.constraints:
            qdd = core.call("forward_dynamics", args, None, more)  # it warns at singular configurations
            by_q, by_qd, M = self._of("inverse_dynamics", (*args[:2], qdd), "qdd", more, None)
            inverse = np.linalg.inv(M)
            inverse = 0.5 * (inverse + inverse.swapaxes(-1, -2))
            derivatives = (-(inverse @ by_q), -(inverse @ by_qd), inverse)
            if out is None:
                return derivatives
            for target, array in zip(out, derivatives, strict=True):
                np.copyto(target, array)
            return out
        if core.model.constraints:
            return self._of_constrained(args, more, out)
        if core.least_ratio > threshold("float32"):
            return self._of("forward_dynamics", args, "tau", more, out, plain=FORWARD)
        derivatives = self._of("forward_dynamics", args, "tau", more, out)
        warn_if_singular(core, "forward_dynamics_derivatives", np.asarray(args[0]))
        return derivatives

    def _of_constrained(self, args: tuple[ArrayLike, ...], more: Extras | None, out: Partials | None) -> Partials:
        """Derivatives of the accelerations under constraints, with a warning where these are singular."""
        *derivatives, redundancy = self._of("forward_dynamics", args, "tau", more, None)
        warn_if_constraints_singular(self.core, "forward_dynamics_derivatives", args[0], redundancy)
        if out is None:
            return derivatives[0], derivatives[1], derivatives[2]
        for target, array in zip(out, derivatives, strict=True):
            filled("forward_dynamics_derivatives", array, target, redundancy.ndim - 2)
        return out

    def _of(
        self, item: str, args: tuple[ArrayLike, ...], last: str, more: Extras | None, out: Partials | None,
        plain: str = "",
    ) -> Results:  # fmt: skip
        """The derivatives of an item; `plain` is the key of its call without options, where nothing is watched."""
        core = self.core

        def make() -> CompiledFunction:
            items = [("derivative", item, wrt) for wrt in ("q", "qd", last)]
            constrained = core.model.constraints and item == "forward_dynamics"
            watched = (core.internal(REDUNDANCY),) if constrained else ()
            return core.function(*core.parts(items, None, more), *watched)

        key = plain if plain and more is None else ("derivatives", item, () if more is None else more.key())
        function = core.call_of(key, make)
        if more is not None:
            args = (*args, *more.arguments(core.model))
        return function(*args) if out is None else function(*args, out=out)
