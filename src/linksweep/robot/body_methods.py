"""What users call for frames and for the whole robot: poses, Jacobians, mass centre, momentum, energy."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike


class BodyMethods:
    """The part of `Robot` about frames and the whole robot. Everything is in the base frame unless said otherwise."""

    def _dynamics(
        self, item: Any, args: tuple[Any, ...], method: str | None, options: tuple[Any, ...], out: Any
    ) -> np.ndarray:
        raise NotImplementedError  # Robot finds the compiled function

    def pose(self, q: ArrayLike, frame: str, out: np.ndarray | None = None) -> np.ndarray:
        """The frame's homogeneous matrix (..., 4, 4) in the base frame."""
        return self._dynamics(("pose", frame), (q,), None, (), out)

    def poses(self, q: ArrayLike, out: np.ndarray | None = None) -> np.ndarray:
        """The homogeneous matrices (..., frames, 4, 4) of all frames, in the order of `frame_names`."""
        return self._dynamics("poses", (q,), None, (), out)

    def jacobian(
        self,
        q: ArrayLike,
        frame: str,
        out: np.ndarray | None = None,
        *,
        reference: str = "world_aligned",
        point: ArrayLike | None = None,
    ) -> np.ndarray:
        """The frame's Jacobian (..., 6, nv): times qd it is the frame's velocity [angular; linear].

        Zero where no joint moves the frame, as the base's: the tool is `robot.ee`, not the last of `frame_names`.
        reference: "world_aligned", at the frame's origin along the base's axes; "local", at its origin along its own
        axes; "world", at the base's origin along the base's axes. point: (..., 3) in the frame, in the place of its
        origin; seen from the world it makes no difference.
        """
        if point is None:
            return self._dynamics(("jacobian", frame, reference), (q,), None, (), out)
        return self._dynamics(("point_jacobian", frame, reference), (q, point), None, (), out)

    def jacobian_derivative(
        self,
        q: ArrayLike,
        qd: ArrayLike,
        frame: str,
        out: np.ndarray | None = None,
        *,
        reference: str = "world_aligned",
        point: ArrayLike | None = None,
    ) -> np.ndarray:
        """The time derivative (..., 6, nv) of each entry of `jacobian` while the joints move with qd."""
        if point is None:
            return self._dynamics(("jacobian_derivative", frame, reference), (q, qd), None, (), out)
        return self._dynamics(("point_jacobian_derivative", frame, reference), (q, qd, point), None, (), out)

    def jacobians(self, q: ArrayLike, out: np.ndarray | None = None, *, reference: str = "world_aligned") -> np.ndarray:
        """The Jacobians (..., frames, 6, nv) of all frames, in the order of `frame_names`."""
        return self._dynamics(("jacobians", reference), (q,), None, (), out)

    def center_of_mass(self, q: ArrayLike, out: np.ndarray | None = None) -> np.ndarray:
        """The mass centre (..., 3) of all moving links."""
        return self._dynamics("center_of_mass", (q,), None, (), out)

    def momentum(
        self, q: ArrayLike, qd: ArrayLike, out: np.ndarray | None = None, *, about: str = "center_of_mass"
    ) -> np.ndarray:
        """The momentum (..., 6) of all moving links, [angular; linear], along the base's axes.

        about: the angular part is about the mass centre (centroidal momentum), or with "base" about the base's origin.
        """
        return self._dynamics(("momentum", about), (q, qd), None, (), out)

    def centroidal_momentum_matrix(self, q: ArrayLike, out: np.ndarray | None = None) -> np.ndarray:
        """The matrix (..., 6, nv) that takes qd to the momentum about the mass centre."""
        return self._dynamics("centroidal_momentum_matrix", (q,), None, (), out)

    def kinetic_energy(self, q: ArrayLike, qd: ArrayLike, out: np.ndarray | None = None) -> np.ndarray:
        """qd^T M qd / 2 (...), motor inertias included."""
        return self._dynamics("kinetic_energy", (q, qd), None, (), out)

    def potential_energy(self, q: ArrayLike, out: np.ndarray | None = None) -> np.ndarray:
        """The energy (...) of all moving links against gravity, 0 with the mass centre at the base's origin."""
        return self._dynamics("potential_energy", (q,), None, (), out)
