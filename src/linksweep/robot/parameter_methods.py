"""The methods of a Robot about its inertial parameters and what its functions cost."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from ..catalogue.parameters import TEN, body
from ..compiled.function import Recipe, chosen_backend, make_function
from ..description.model import BASE, inverse, moved
from ..errors import ArgumentError
from ..support.lazy import lazy
from ..tracing.count import Counts, count
from ..tracing.places import parameter_places

if TYPE_CHECKING:
    from ..analysis.base_parameters import BaseParameters


class ParameterMethods:
    """Mixed into Robot."""

    if TYPE_CHECKING:
        name: str
        model: Any
        canonical: Any
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
        return (*inertial, *(f"{self.model.links[i].joint.name}.armature" for i in self.model.document_order))

    def regressor(
        self, q: ArrayLike, qd: ArrayLike, qdd: ArrayLike, out: np.ndarray | None = None, packed: bool = False
    ) -> np.ndarray:
        """Y (..., nv, 11 links): joint forces are Y @ standard_parameters.

        packed: only what is not zero by the structure of the robot (a link asks nothing of joints that do not move it),
        (..., count); `regressor_places` says where each number stands in Y.
        """
        if packed and self.canonical.is_coupled:
            raise ArgumentError(
                f"{self.name}: regressor(packed=True) got a robot whose joints follow others, expected one whose rows "
                f"are of one joint each: leave packed to False, or take robot.uncoupled."
            )
        compiled = self._packed_regressor if packed else self._regressor
        return compiled(q, qd, qdd) if out is None else compiled(q, qd, qdd, out=out)

    @lazy
    def regressor_places(self) -> tuple[np.ndarray, np.ndarray]:
        """Row and column in Y of each number of `regressor(..., packed=True)`."""
        dense, packed = (parameter_places(self.canonical, form) for form in (False, True))
        places = np.empty(packed.size, int)
        for i, link in enumerate(self.canonical.links):
            for f in range(link.nv):
                places[packed.motor[i] + f * packed.motor_row] = dense.motor[i] + f * dense.motor_row
            j = i
            while j != BASE:
                at, to = (table.of_link[i] + table.of_joint[j] for table in (packed, dense))
                for f in range(self.canonical.links[j].nv):
                    ten = np.arange(10)
                    places[at + f * packed.row + ten] = to + f * dense.row + ten
                j = self.canonical.links[j].parent
        rows, columns = np.divmod(places, dense.row)
        return rows, columns

    @lazy
    def _regressor(self) -> Any:
        return make_function(self.recipe("regressor"), None, 1, chosen_backend(None))

    @lazy
    def _packed_regressor(self) -> Any:
        return make_function(self.recipe("packed_regressor"), None, 1, chosen_backend(None))

    def base_parameters(self, method: str = "symbolic") -> BaseParameters:
        """The fewest numbers on which joint forces depend, for this base and gravity, with the map from the standard
        ones. method: "symbolic" (Khalil's regrouping, then QR for what is left) or "numeric" (QR alone)."""
        from ..analysis.base_parameters import base_parameters

        return base_parameters(self, method)  # type: ignore[arg-type]
