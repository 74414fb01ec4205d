"""The methods of a Robot about its inertial parameters and what its functions cost."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ..catalogue.parameters import TEN, body
from ..compiled.function import Recipe, chosen_backend, make_function
from ..description.model import inverse, moved
from ..support.lazy import lazy
from ..tracing.count import Counts, count

if TYPE_CHECKING:
    from ..analysis.base_parameters import BaseParameters

MACHINE_CODE_UP_TO = 1200  # entries of a regressor


class ParameterMethods:
    """Mixed into Robot."""

    if TYPE_CHECKING:
        model: Any
        link_names: Any
        joint_names: Any
        nv: int

        def recipe(self, functions: Any, **options: Any) -> Recipe: ...

    def operation_count(
        self, function: Any, method: str | None = None, base_parameters: bool | None = None, **options: Any
    ) -> Counts:
        """Operations for one sample, by the papers' convention: Counts(mul, add, div, sqrt, trig).

        Arguments as of `compile`; sines and cosines are listed apart, negation and work among constants are free.
        """
        return count(self.recipe(function, method=method, base_parameters=base_parameters, **options).trace())

    @lazy
    def standard_parameters(self) -> np.ndarray:
        """(11 links): mass, m c (3) and inertia about the origin (xx, yy, zz, xy, xz, yz) of each link, in its frame
        and in document order; then the armature of each joint. Their names are `standard_parameter_names`."""
        frames = {frame.name: inverse(frame.placement) for frame in self.model.frames}
        links = [self.model.links[i] for i in self.model.document_order]
        bodies = [moved(link.inertial, frames[link.name]) for link in links]
        tens = [body(part.mass, part.com, part.inertia) for part in bodies]
        joints = [link.joint.armature for link in links]
        return np.concatenate([*tens, np.array(joints, dtype=float)])

    @property
    def standard_parameter_names(self) -> tuple[str, ...]:
        """What each entry of `standard_parameters` is, such as "link1.m"."""
        inertial = [f"{link}.{name}" for link in self.link_names for name in TEN]
        return (*inertial, *(f"{joint}.armature" for joint in self.joint_names))

    def regressor(self, q: Any, qd: Any, qdd: Any, out: Any = None) -> np.ndarray:
        """Y (..., nv, 11 links): joint forces are Y @ standard_parameters."""
        return self._regressor(q, qd, qdd) if out is None else self._regressor(q, qd, qdd, out=out)

    @lazy
    def _regressor(self) -> Any:
        entries = self.nv * len(self.standard_parameter_names)
        # LLVM takes a minute for the 11,000 entries of a humanoid; the interpreter starts at once
        backend = chosen_backend("interpreter" if entries > MACHINE_CODE_UP_TO else None)
        return make_function(self.recipe("regressor"), None, 1, backend)

    def base_parameters(self, method: str = "symbolic") -> BaseParameters:
        """The fewest numbers on which joint forces depend, for this base and gravity, with the map from the standard
        ones. method: "symbolic" (Khalil's regrouping, then QR for what is left) or "numeric" (QR alone)."""
        from ..analysis.base_parameters import base_parameters

        return base_parameters(self, method)  # type: ignore[arg-type]
