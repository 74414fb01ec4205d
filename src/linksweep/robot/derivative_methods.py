"""What users call for derivatives of inverse and forward dynamics; others are requests of `compile`."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ..analysis.singular import threshold
from ..catalogue.functions import Request, wants_loops
from ..catalogue.requests import checked_flag, make_requests
from ..compiled.function import CompiledFunction
from ..errors import ArgumentError
from ..support import settings
from ..support.numbers import Named


class DerivativeMethods:
    """The part of `Robot` about derivatives."""

    canonical: Any
    forward_dynamics: Any
    model: Any
    nv: Any
    warn_if_singular: Any
    _functions: Any
    _least_ratio: Any
    _inverse_slopes: Any = None  # functions of plain calls, found without a look-up
    _forward_slopes: Any = None

    def _function(self, requests: Any) -> CompiledFunction:
        raise NotImplementedError  # Robot finds the compiled function

    def _extra_arguments(self, options: tuple[Any, ...]) -> tuple[Any, ...]:
        raise NotImplementedError

    def inverse_dynamics_derivatives(
        self,
        q: ArrayLike,
        qd: ArrayLike,
        qdd: ArrayLike,
        f_ext: Named | None = None,
        out: tuple[np.ndarray, np.ndarray, np.ndarray] | None = None,
        dissipation: bool = False,
        base_motion: ArrayLike | None = None,
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The derivatives (..., nv, nv) of the torques by q, by qd and by qdd, which is the mass matrix.

        By q they are along the rates of joints: entry [i, k] is what torque i changes by when joint k moves with rate
        1, also for free and ball joints. f_ext is fixed to the links. out: three arrays.
        """
        if (
            self._inverse_slopes is not None
            and f_ext is None
            and out is None
            and base_motion is None
            and not dissipation
        ):
            return self._inverse_slopes(q, qd, qdd)
        if self.model.constraints:
            raise ArgumentError(
                f"inverse_dynamics_derivatives: the torques of {self.model.name} are a choice among many, because "
                f"it has constraints, expected a robot without: differentiate forward dynamics."
            )
        found = self._derivatives("inverse_dynamics", (q, qd, qdd), "qdd", (f_ext, dissipation, base_motion), out)
        self._inverse_slopes = self._plain_slopes("inverse_dynamics")
        return found

    def forward_dynamics_derivatives(
        self,
        q: ArrayLike,
        qd: ArrayLike,
        tau: ArrayLike,
        f_ext: Named | None = None,
        out: tuple[np.ndarray, np.ndarray, np.ndarray] | None = None,
        dissipation: bool = False,
        base_motion: ArrayLike | None = None,
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The derivatives (..., nv, nv) of the accelerations by q, by qd and by tau, which is the inverse of M where
        there are no constraints.

        As -M^-1 times the derivatives of the torques, at the accelerations: in one program, or for large robots with M
        inverted by NumPy. Arguments as of `inverse_dynamics_derivatives`.
        """
        if (
            self._forward_slopes is not None
            and f_ext is None
            and out is None
            and base_motion is None
            and not dissipation
        ):
            return self._forward_slopes(q, qd, tau)
        options = (f_ext, dissipation, base_motion)
        torques = [Request("inverse_dynamics", by=(by,)) for by in ("q", "qd", "qdd")]
        if wants_loops(self.canonical, torques) and not self.model.constraints:
            qdd = self.forward_dynamics(
                q, qd, tau, f_ext=f_ext, dissipation=dissipation, base_motion=base_motion
            )  # which warns where a pose is singular
            by_q, by_qd, M = self._derivatives("inverse_dynamics", (q, qd, qdd), "qdd", options, None)
            inverse = np.linalg.inv(M)
            inverse = 0.5 * (inverse + inverse.swapaxes(-1, -2))
            found = (-(inverse @ by_q), -(inverse @ by_qd), inverse)
            if out is None:
                return found
            for target, array in zip(out, found, strict=True):
                np.copyto(target, array)
            return out
        found = self._derivatives("forward_dynamics", (q, qd, tau), "tau", options, out)
        if self._least_ratio > threshold("float32"):  # no pose is singular: nothing has to be watched
            self._forward_slopes = self._plain_slopes("forward_dynamics")
        else:
            self.warn_if_singular("forward_dynamics_derivatives", np.asarray(q))
        return found

    def _plain_slopes(self, item: str) -> Any:
        """The function of a call without options, if it is there already."""
        return self._functions.get(("derivatives", item, (False, False, False), settings.backend))

    def _derivatives(
        self, item: str, args: tuple[Any, ...], last: str, options: tuple[Any, ...], out: Any
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        f_ext, dissipation, base_motion = options
        given = (f_ext is not None, checked_flag("dissipation", dissipation), base_motion is not None)
        key = ("derivatives", item, given, settings.backend)
        function = self._functions.get(key)
        if function is None:
            wanted = [("derivative", item, by) for by in ("q", "qd", last)]
            taken = dict(zip(("f_ext", "dissipation", "base_motion"), given, strict=True))
            own: Any = self
            function = self._functions[key] = self._function(make_requests(own, wanted, None, **taken))
        args = (*args, *self._extra_arguments(options))
        return function(*args) if out is None else function(*args, out=out)
