"""The operational space: the robot as a task at a frame sees it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from ..errors import ArgumentError, SingularError
from ..support.messages import is_one_of, shown
from .core import Core, Item
from .singular import warn_if_singular

RANK = 1e-12  # of the largest eigenvalue of Omega with a unit diagonal; below, its inverse has no digits left
ROWS = {"all": slice(0, 6), "angular": slice(0, 3), "linear": slice(3, 6)}


@dataclass(frozen=True)
class OperationalSpace:
    """The robot at some frames: m rows, six [angular; linear] for each frame in their order.

    omega (..., m, m) is J M^-1 J^T; inertia, its inverse Lambda (where damping was asked for, that of Omega +
    damping); rank (...) of omega. A task force F = inertia @ a + bias + gravity gives the frames the acceleration a,
    with tau = jacobian^T F; what (1 - jacobian^T consistent_inverse^T) leaves of other torques does not accelerate
    them. Where the rank is not full, what needs Lambda is NaN; where omega is not finite, the rank is 0.
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


def operational_inertia(omega: np.ndarray, frame: str | Sequence[str], damping: float | None) -> np.ndarray:
    """Lambda, the inverse of Omega (..., m, m); an error where there is none, unless Omega is damped."""
    if damping is not None:
        return of_finite(np.linalg.inv, _damped(omega, damping))
    finite = np.isfinite(omega).all(axis=(-2, -1))
    rank = np.where(finite, rank_of(omega), omega.shape[-1])  # what is not finite gives NaN, and is no reason to stop
    least = int(rank.min()) if rank.size else omega.shape[-1]
    if least < omega.shape[-1]:
        where = f" at sample {np.unravel_index(int(rank.argmin()), rank.shape)}" if rank.ndim else ""
        raise SingularError(
            f"operational_inertia of {shown(frame)}: J M^-1 J^T has rank {least}{where}, expected "
            f"{omega.shape[-1]}: use operational_inertia_inverse, which is right there too, or give a damping."
        )
    return of_finite(_inverse, omega)


def operational_space(
    core: Core, q: ArrayLike, qd: ArrayLike, frames: str | Sequence[str], damping: float | None, reference: str
) -> OperationalSpace:
    """The operational space of one or several frames, in one compiled function and some products of matrices."""
    wanted = as_key(frames)
    names = wanted if isinstance(wanted, tuple) else (wanted,)
    items: list[Item] = [("operational_inertia_inverse", wanted, reference), "mass_matrix_inverse"]
    items += ["bias_forces", "gravity_forces"]
    for kind in ("jacobian", "jacobian_bias"):
        items += [(kind, name, reference) for name in names]
    omega, M_inv, h, g, *rest = core.function(core.requests(items))(q, qd)
    warn_if_singular(core, "operational_space", q)
    batch, count = h.shape[:-1], len(names)
    omega, M_inv, g = _spread(omega, batch, 2), _spread(M_inv, batch, 2), _spread(g, batch, 1)
    J = np.concatenate([_spread(each, batch, 2) for each in rest[:count]], axis=-2)
    drift = np.concatenate([_spread(each, batch, 1) for each in rest[count:]], axis=-1)
    rank = rank_of(omega)
    if damping is not None:
        inertia = of_finite(np.linalg.inv, _damped(omega, damping))
    else:
        inertia = np.full(omega.shape, np.nan, omega.dtype)
        full = rank == omega.shape[-1]
        inertia[full] = _inverse(omega[full])

    def at_task(force: np.ndarray) -> np.ndarray:
        return (np.swapaxes(spread, -1, -2) @ force[..., None])[..., 0]

    with np.errstate(invalid="ignore"):  # an infinite M^-1 of a singular pose, of which it was warned
        spread = M_inv @ np.swapaxes(J, -1, -2)
        consistent = spread @ inertia
        projector = np.eye(J.shape[-1], dtype=J.dtype) - consistent @ J
        bias = (inertia @ (at_task(h - g) - drift)[..., None])[..., 0]
        gravity = (inertia @ at_task(g)[..., None])[..., 0]
    return OperationalSpace(names, omega, inertia, bias, gravity, J, consistent, projector, rank)


def manipulability(jacobian: np.ndarray, rows: str) -> np.ndarray:
    """sqrt(det(J J^T)) of these rows of Jacobians (..., 6, nv)."""
    if not is_one_of(rows, ROWS):
        raise ArgumentError(f"rows is {shown(rows)}, expected 'all', 'angular' or 'linear': choose one of them.")

    def measure(jacobian: np.ndarray) -> np.ndarray:
        J = jacobian[..., ROWS[rows], :]
        if J.shape[-1] < J.shape[-2]:
            return np.zeros(J.shape[:-2], J.dtype)
        return np.prod(np.linalg.svd(J, compute_uv=False), axis=-1)

    return of_finite(measure, jacobian)


def rank_of(omega: np.ndarray, tolerance: float | None = None) -> np.ndarray:
    """The rank (...) of symmetric matrices (..., m, m), their rows scaled alike: units do not matter.

    0 where a matrix is not finite.
    """
    if not omega.shape[-1]:
        return np.zeros(omega.shape[:-2], int)
    eigenvalues = of_finite(_scaled_eigenvalues, omega)
    least = tolerance or (RANK if omega.dtype == np.float64 else 1e-5)
    return (eigenvalues > least * np.maximum(eigenvalues[..., -1:], 1e-300)).sum(axis=-1)


def of_finite(function: Callable[[np.ndarray], np.ndarray], matrices: np.ndarray) -> np.ndarray:
    """The function of the matrices (..., m, n) that are finite, NaN for the others: LAPACK would refuse them all."""
    finite = np.isfinite(matrices).all(axis=(-2, -1))
    if finite.all():
        return function(matrices)
    found = function(matrices[finite])
    everywhere = np.full((*finite.shape, *found.shape[1:]), np.nan, found.dtype)
    everywhere[finite] = found
    return everywhere


def _scaled_eigenvalues(omega: np.ndarray) -> np.ndarray:
    diagonal = np.einsum("...ii->...i", omega)
    largest = diagonal.max(axis=-1, keepdims=True)
    scale = 1.0 / np.sqrt(np.where(diagonal > largest * 1e-14, diagonal, np.inf))
    return np.linalg.eigvalsh(omega * scale[..., :, None] * scale[..., None, :])


def _inverse(omega: np.ndarray) -> np.ndarray:
    inverse = np.linalg.inv(omega)
    return (inverse + np.swapaxes(inverse, -1, -2)) * 0.5


def _damped(omega: np.ndarray, damping: float) -> np.ndarray:
    if isinstance(damping, bool) or not isinstance(damping, (int, float, np.number)) or not 0 < damping < np.inf:
        raise ArgumentError(f"damping is {shown(damping)}, expected a positive number, added to the diagonal of Omega.")
    return omega + np.eye(omega.shape[-1], dtype=omega.dtype) * omega.dtype.type(damping)


def as_key(frames: str | Sequence[str]) -> str | tuple[str, ...]:
    """One frame, or several, as they stand in a request."""
    return tuple(frames) if isinstance(frames, list) else frames  # pyright: ignore[reportReturnType]


def _spread(array: np.ndarray, batch: tuple[int, ...], axes: int) -> np.ndarray:
    return np.broadcast_to(array, (*batch, *array.shape[array.ndim - axes :]))
