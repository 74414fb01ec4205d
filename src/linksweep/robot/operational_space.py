"""Operational-space dynamics of frames (Khatib), and manipulability."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from ..errors import SingularError
from ..support.checks import one_of, real_number
from ..support.messages import shown
from .core import Core, Item
from .singular import warn_if_singular

RANK = 1e-12  # relative eigenvalue of Omega with unit diagonal, below which its inverse has no correct digits
ROWS = {"all": slice(0, 6), "angular": slice(0, 3), "linear": slice(3, 6)}


@dataclass(frozen=True)
class OperationalSpace:
    """Operational-space dynamics of frames, with m rows: six [angular; linear] for each frame.

    A task force F = inertia @ a + bias + gravity gives the frames the acceleration a, with tau = jacobian^T F. Other
    torques projected by 1 - jacobian^T consistent_inverse^T do not accelerate the frames. Without damping, quantities
    that need Lambda are NaN where the rank is not full.

    Attributes
    ----------
    frames : names
    omega : (..., m, m)
        J M^-1 J^T.
    inertia : (..., m, m)
        Lambda, the inverse of omega (of omega + damping, if there is damping).
    bias, gravity : (..., m)
        Task-space Coriolis and centrifugal forces, and gravity.
    jacobian : (..., m, nv)
    consistent_inverse : (..., nv, m)
        Dynamically consistent inverse of the Jacobian, M^-1 J^T Lambda.
    null_space : (..., nv, nv)
        1 - consistent_inverse @ jacobian.
    rank : (...)
        Rank of omega; 0 where omega is not finite.
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
    """Return Lambda, the inverse of Omega (..., m, m); raise SingularError if there is none and no damping."""
    if damping is not None:
        return of_finite(np.linalg.inv, _damped(omega, damping))
    finite = np.isfinite(omega).all(axis=(-2, -1))
    rank = np.where(finite, rank_of(omega), omega.shape[-1])  # samples that are not finite give NaN, not an error
    least = int(rank.min()) if rank.size else omega.shape[-1]
    if least < omega.shape[-1]:
        sample = tuple(map(int, np.unravel_index(int(rank.argmin()), rank.shape)))
        where = f" at sample {sample}" if rank.ndim else ""
        raise SingularError(
            f"operational_inertia of {shown(frame)}: singular configuration{where}, J M^-1 J^T has rank {least}, "
            f"expected {omega.shape[-1]}; use operational_inertia_inverse, or pass damping=."
        )
    return of_finite(_inverse, omega)


def operational_space(
    core: Core, q: ArrayLike, qd: ArrayLike, frames: str | Sequence[str], damping: float | None, reference: str
) -> OperationalSpace:
    """See `Robot.operational_space`; computed by one compiled function and a few matrix products."""
    key = as_key(frames)
    names = key if isinstance(key, tuple) else (key,)
    items: list[Item] = [("operational_inertia_inverse", key, reference), "mass_matrix_inverse"]
    items += ["bias_forces", "gravity_forces"]
    for kind in ("jacobian", "jacobian_bias"):
        items += [(kind, name, reference) for name in names]
    omega, M_inv, h, g, *rest = core.function(*core.parts(items))(q, qd)
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

    with np.errstate(invalid="ignore"):  # an infinite M^-1 at a singular configuration, for which a warning was issued
        spread = M_inv @ np.swapaxes(J, -1, -2)
        consistent = spread @ inertia
        projector = np.eye(J.shape[-1], dtype=J.dtype) - consistent @ J
        bias = (inertia @ (at_task(h - g) - drift)[..., None])[..., 0]
        gravity = (inertia @ at_task(g)[..., None])[..., 0]
    return OperationalSpace(names, omega, inertia, bias, gravity, J, consistent, projector, rank)


def manipulability(jacobian: np.ndarray, rows: str) -> np.ndarray:
    """Return sqrt(det(J J^T)) of these rows of Jacobians (..., 6, nv)."""
    one_of("rows", rows, ROWS)

    def measure(jacobian: np.ndarray) -> np.ndarray:
        J = jacobian[..., ROWS[rows], :]
        if J.shape[-1] < J.shape[-2]:
            return np.zeros(J.shape[:-2], J.dtype)
        return np.prod(np.linalg.svd(J, compute_uv=False), axis=-1)

    return of_finite(measure, jacobian)


def rank_of(omega: np.ndarray, tolerance: float | None = None) -> np.ndarray:
    """Return the rank (...) of symmetric matrices (..., m, m) with normalized rows; 0 where a matrix is not finite."""
    if not omega.shape[-1]:
        return np.zeros(omega.shape[:-2], int)
    eigenvalues = of_finite(_scaled_eigenvalues, omega)
    least = tolerance or (RANK if omega.dtype == np.float64 else 1e-5)
    return (eigenvalues > least * np.maximum(eigenvalues[..., -1:], 1e-300)).sum(axis=-1)


def of_finite(function: Callable[[np.ndarray], np.ndarray], matrices: np.ndarray) -> np.ndarray:
    """Apply a function to the finite matrices (..., m, n); the others, which LAPACK rejects, give NaN."""
    finite = np.isfinite(matrices).all(axis=(-2, -1))
    if finite.all():
        return function(matrices)
    values = function(matrices[finite])
    results = np.full((*finite.shape, *values.shape[1:]), np.nan, values.dtype)
    results[finite] = values
    return results


def _scaled_eigenvalues(omega: np.ndarray) -> np.ndarray:
    diagonal = np.einsum("...ii->...i", omega)
    largest = diagonal.max(axis=-1, keepdims=True)
    scale = 1.0 / np.sqrt(np.where(diagonal > largest * 1e-14, diagonal, np.inf))
    return np.linalg.eigvalsh(omega * scale[..., :, None] * scale[..., None, :])


def _inverse(omega: np.ndarray) -> np.ndarray:
    inverse = np.linalg.inv(omega)
    return (inverse + np.swapaxes(inverse, -1, -2)) * 0.5


def _damped(omega: np.ndarray, damping: float) -> np.ndarray:
    real_number("damping", damping, above=0.0)
    return omega + np.eye(omega.shape[-1], dtype=omega.dtype) * omega.dtype.type(damping)


def as_key(frames: str | Sequence[str]) -> str | tuple[str, ...]:
    """Return one frame, or several as a tuple, as in a request."""
    return tuple(frames) if isinstance(frames, list) else frames  # pyright: ignore[reportReturnType]


def _spread(array: np.ndarray, batch: tuple[int, ...], axes: int) -> np.ndarray:
    return np.broadcast_to(array, (*batch, *array.shape[array.ndim - axes :]))
