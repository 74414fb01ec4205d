"""What users call for the motion of frames and for the operational space: the robot as a task at a frame sees it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from ..catalogue.requests import make_requests
from ..errors import ArgumentError, SingularError
from ..support.messages import shown
from .body_methods import BodyMethods

if TYPE_CHECKING:
    from ..compiled.function import CompiledFunction

RANK = 1e-12  # of the largest eigenvalue of Omega with a unit diagonal; below, its inverse has no digits left
ROWS = {"all": slice(0, 6), "angular": slice(0, 3), "linear": slice(3, 6)}


@dataclass(frozen=True)
class OperationalSpace:
    """The robot at some frames: m rows, six [angular; linear] for each frame in their order.

    omega (..., m, m) is J M^-1 J^T; inertia, its inverse Lambda (where damping was asked for, that of Omega +
    damping); rank (...) of omega. A task force F = inertia @ a + bias + gravity gives the frames the acceleration a,
    with tau = jacobian^T F; what (1 - jacobian^T consistent_inverse^T) leaves of other torques does not accelerate
    them. Where the rank is not full, what needs Lambda is NaN.
    """

    frames: tuple[str, ...]
    omega: np.ndarray
    inertia: np.ndarray
    bias: np.ndarray
    gravity: np.ndarray
    jacobian: np.ndarray
    consistent_inverse: np.ndarray
    null_space: np.ndarray
    rank: np.ndarray


class OperationalMethods(BodyMethods):
    """The part of `Robot` about the motion of frames and what a force at them meets."""

    if TYPE_CHECKING:
        name: Any

        def _function(self, requests: Any) -> CompiledFunction: ...

    def frame_velocity(
        self,
        q: ArrayLike,
        qd: ArrayLike,
        frame: str,
        out: np.ndarray | None = None,
        *,
        reference: str = "world_aligned",
    ) -> np.ndarray:
        """The frame's velocity (..., 6), [angular; linear]: the Jacobian of the same reference times qd."""
        return self._dynamics(("frame_velocity", frame, reference), (q, qd), None, (), out)

    def frame_acceleration(
        self,
        q: ArrayLike,
        qd: ArrayLike,
        qdd: ArrayLike,
        frame: str,
        out: np.ndarray | None = None,
        *,
        reference: str = "world_aligned",
    ) -> np.ndarray:
        """The frame's acceleration (..., 6), the time derivative of `frame_velocity`; gravity is no part of it."""
        return self._dynamics(("frame_acceleration", frame, reference), (q, qd, qdd), None, (), out)

    def jacobian_bias(
        self,
        q: ArrayLike,
        qd: ArrayLike,
        frame: str,
        out: np.ndarray | None = None,
        *,
        reference: str = "world_aligned",
    ) -> np.ndarray:
        """dJ/dt qd (..., 6): the acceleration of the frame while no joint accelerates."""
        return self._dynamics(("jacobian_bias", frame, reference), (q, qd), None, (), out)

    def operational_inertia_inverse(
        self,
        q: ArrayLike,
        frame: str | Sequence[str],
        out: np.ndarray | None = None,
        *,
        reference: str = "world_aligned",
    ) -> np.ndarray:
        """Omega = J M^-1 J^T (..., 6, 6): the acceleration of the frame for each unit of force at it.

        By recursion, in any pose. frame: several give (..., 6 m, 6 m) with the blocks between them.
        """
        return self._dynamics(("operational_inertia_inverse", _frames(frame), reference), (q,), None, (), out)

    def operational_inertia(
        self,
        q: ArrayLike,
        frame: str | Sequence[str],
        damping: float | None = None,
        *,
        reference: str = "world_aligned",
    ) -> np.ndarray:
        """Lambda = (J M^-1 J^T)^-1 (..., 6, 6): the inertia that a force at the frame meets.

        At a singular pose, and with fewer than six joints, it does not exist: an error says the rank, unless a damping
        is given, which is added to the diagonal of Omega.
        """
        omega = self.operational_inertia_inverse(q, frame, reference=reference)
        if damping is not None:
            return np.linalg.inv(_damped(omega, damping))
        rank = rank_of(omega)
        least = int(rank.min()) if rank.size else omega.shape[-1]
        if least < omega.shape[-1]:
            where = f" at sample {np.unravel_index(int(rank.argmin()), rank.shape)}" if rank.ndim else ""
            raise SingularError(
                f"operational_inertia of {shown(frame)}: J M^-1 J^T has rank {least}{where}, expected "
                f"{omega.shape[-1]}: use operational_inertia_inverse, which is right there too, or give a damping."
            )
        return _inverse(omega)

    def operational_space(
        self, q: ArrayLike, qd: ArrayLike, frames: str | Sequence[str], damping: float | None = None, *,
        reference: str = "world_aligned",
    ) -> OperationalSpace:  # fmt: skip
        """The operational space of one or several frames: see `OperationalSpace` for its fields."""
        wanted = _frames(frames)
        names = wanted if isinstance(wanted, tuple) else (wanted,)
        items: list[Any] = [("operational_inertia_inverse", wanted, reference), "mass_matrix_inverse"]
        items += ["bias_forces", "gravity_forces"]
        for kind in ("jacobian", "jacobian_bias"):
            items += [(kind, name, reference) for name in names]
        omega, M_inv, h, g, *rest = self._function(make_requests(self, items, None))(q, qd)  # pyright: ignore
        omega, M_inv, g, *rest = (_spread(a, h.shape[:-1], k) for a, k in _with_axes(omega, M_inv, g, rest, len(names)))
        J = np.concatenate(rest[: len(names)], axis=-2)
        drift = np.concatenate(rest[len(names) :], axis=-1)
        rank = rank_of(omega)
        if damping is not None:
            inertia = np.linalg.inv(_damped(omega, damping))
        else:
            inertia = np.full(omega.shape, np.nan, omega.dtype)
            full = rank == omega.shape[-1]
            inertia[full] = _inverse(omega[full])
        spread = M_inv @ np.swapaxes(J, -1, -2)
        consistent = spread @ inertia
        projector = np.eye(J.shape[-1], dtype=J.dtype) - consistent @ J

        def at_task(force: np.ndarray) -> np.ndarray:
            return (np.swapaxes(spread, -1, -2) @ force[..., None])[..., 0]

        bias = (inertia @ (at_task(h - g) - drift)[..., None])[..., 0]
        gravity = (inertia @ at_task(g)[..., None])[..., 0]
        return OperationalSpace(names, omega, inertia, bias, gravity, J, consistent, projector, rank)

    def manipulability(
        self, q: ArrayLike, frame: str, *, rows: str = "all", reference: str = "world_aligned"
    ) -> np.ndarray:
        """Yoshikawa's measure (...), sqrt(det(J J^T)): 0 at a singular pose, and with fewer joints than rows.

        rows: "all" six, mixing radians and metres, or the "angular" or "linear" three alone.
        """
        if rows not in ROWS:
            raise ArgumentError(f"rows is {shown(rows)}, expected 'all', 'angular' or 'linear': choose one of them.")
        J = self.jacobian(q, frame, reference=reference)[..., ROWS[rows], :]
        if J.shape[-1] < J.shape[-2]:
            return np.zeros(J.shape[:-2], J.dtype)
        return np.prod(np.linalg.svd(J, compute_uv=False), axis=-1)


def rank_of(omega: np.ndarray, tolerance: float | None = None) -> np.ndarray:
    """The rank (...) of symmetric matrices (..., m, m), their rows scaled alike: units do not matter."""
    if not omega.shape[-1]:
        return np.zeros(omega.shape[:-2], int)
    diagonal = np.einsum("...ii->...i", omega)
    largest = diagonal.max(axis=-1, keepdims=True)
    scale = 1.0 / np.sqrt(np.where(diagonal > largest * 1e-14, diagonal, np.inf))
    eigenvalues = np.linalg.eigvalsh(omega * scale[..., :, None] * scale[..., None, :])
    least = tolerance or (RANK if omega.dtype == np.float64 else 1e-5)
    return (eigenvalues > least * np.maximum(eigenvalues[..., -1:], 1e-300)).sum(axis=-1)


def _inverse(omega: np.ndarray) -> np.ndarray:
    inverse = np.linalg.inv(omega)
    return (inverse + np.swapaxes(inverse, -1, -2)) * 0.5


def _damped(omega: np.ndarray, damping: Any) -> np.ndarray:
    if isinstance(damping, bool) or not isinstance(damping, (int, float, np.number)) or not 0 < damping < np.inf:
        raise ArgumentError(f"damping is {shown(damping)}, expected a positive number, added to the diagonal of Omega.")
    return omega + np.eye(omega.shape[-1], dtype=omega.dtype) * omega.dtype.type(damping)


def _frames(frames: Any) -> Any:
    return tuple(frames) if isinstance(frames, list) else frames


def _with_axes(omega: Any, M_inv: Any, g: Any, rest: list[Any], count: int) -> list[tuple[np.ndarray, int]]:
    """Each result with the number of axes it has besides the batch's."""
    return [(omega, 2), (M_inv, 2), (g, 1), *((a, 2) for a in rest[:count]), *((a, 1) for a in rest[count:])]


def _spread(array: np.ndarray, batch: tuple[int, ...], axes: int) -> np.ndarray:
    return np.broadcast_to(array, (*batch, *array.shape[array.ndim - axes :]))
