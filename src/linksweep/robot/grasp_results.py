"""What comes out of a grasp: contact forces, their internal part, friction margins; and the algebra of wrenches."""

from __future__ import annotations

import functools
import itertools
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from .operational_space import rank_of

if TYPE_CHECKING:
    from .grasps import Grasp

COLUMNS = {  # of the wrench basis, [moment; force] along the contact frame's axes, as the rows of the constraints
    "rigid": (0, 1, 2, 3, 4, 5), "point": (3, 4, 5), "soft_finger": (2, 3, 4, 5), "frictionless": (5,),
}  # fmt: skip


class GraspDynamics:
    """Accelerations and forces of a grasp.

    qdd: one array (..., n) for each arm. object_acceleration (..., 6): [angular; linear] of the mass centre along the
    world's axes. contact_forces (..., contacts, 6): [moment; force] on the object, at the contact, along the world's
    axes; internal_forces: their part that does nothing to the object. margins (..., contacts), in N: how far each
    contact force is inside its friction cone, the lesser of the normal force and friction times it less the tangential
    force. spin_margins (..., contacts), in N m: `spin` times the normal force less the moment about the normal. Both
    are infinite where a contact has no such limit, and negative where it would slip, turn or pull off; slipping: those.
    The solution holds these contacts all the same. rank (...): of the contacts' matrix S^T (Omega + A M^-1 A^T) S;
    residual (...): by how much the contacts' accelerations are missed.
    """

    def __init__(
        self, grasp: Grasp, qdd: list[np.ndarray], acceleration: np.ndarray, forces: np.ndarray,
        multipliers: np.ndarray, state: tuple[np.ndarray, ...],
    ):  # fmt: skip
        self.grasp, self.qdd, self.object_acceleration = grasp, qdd, acceleration
        self.contact_forces, self.multipliers = forces, multipliers
        self._state = state

    @functools.cached_property
    def internal_forces(self) -> np.ndarray:
        S = wrench_basis(self.grasp, self._state[3])
        basis = null_basis(grasp_map(self.grasp, self._state[3], S))
        inner = np.einsum("...ij,...kj,...k->...i", basis, basis, self.multipliers)
        starts = np.cumsum([0, *self.grasp.rows])
        return np.stack([(s @ inner[..., starts[c] : starts[c + 1], None])[..., 0] for c, s in enumerate(S)], axis=-2)

    @functools.cached_property
    def rank(self) -> np.ndarray:
        K = self.grasp.robot.constraint_jacobian(self._state[0])
        return rank_of(K @ self.grasp.robot.mass_matrix_inverse(self._state[0]) @ np.swapaxes(K, -1, -2))

    @functools.cached_property
    def residual(self) -> np.ndarray:
        q, qd, qdd, _ = self._state
        robot = self.grasp.robot
        missed = (robot.constraint_jacobian(q) @ qdd[..., None])[..., 0] + robot.constraint_bias(q, qd)
        return np.abs(missed).max(axis=-1)

    @functools.cached_property
    def margins(self) -> np.ndarray:
        """Of forces, in N (..., contacts); a rigid contact has no cone."""
        found = []
        for contact, own in zip(self.grasp.contacts, self._by_contact(), strict=True):
            margin = own[..., -1] if contact.model != "rigid" else np.full(own.shape[:-1], np.inf)
            if contact.friction is not None and contact.model not in ("rigid", "frictionless"):
                across = np.hypot(own[..., -3], own[..., -2])
                margin = np.minimum(margin, contact.friction * own[..., -1] - across)
            found.append(margin)
        return np.stack(found, axis=-1)

    @functools.cached_property
    def spin_margins(self) -> np.ndarray:
        """Of moments about the normal, in N m (..., contacts)."""
        found = []
        for contact, own in zip(self.grasp.contacts, self._by_contact(), strict=True):
            if contact.spin is not None and contact.model == "soft_finger":
                found.append(contact.spin * own[..., -1] - np.abs(own[..., 0]))
            else:
                found.append(np.full(own.shape[:-1], np.inf))
        return np.stack(found, axis=-1)

    def _by_contact(self) -> list[np.ndarray]:
        starts = np.cumsum([0, *self.grasp.rows])
        return [self.multipliers[..., a:b] for a, b in itertools.pairwise(starts)]

    @property
    def slipping(self) -> np.ndarray:
        """Which contacts (..., contacts) the cone would not hold."""
        return (self.margins < 0) | (self.spin_margins < 0)

    def __repr__(self) -> str:
        slips = [k for k in range(len(self.grasp.contacts)) if np.any(self.slipping[..., k])]
        said = f"contacts {slips} would slip, but are held" if slips else "every contact is inside its cone"
        return f"<GraspDynamics of {self.grasp!r}: {said}>"


def wrench_basis(grasp: Grasp, R: np.ndarray) -> list[np.ndarray]:
    """S (..., 6, rows) of each contact, at the contact along the world's axes; R: of the object."""
    found = []
    for contact, at in zip(grasp.contacts, grasp.at, strict=True):
        axes = R @ np.array(at.rotation)
        full = np.zeros((*axes.shape[:-2], 6, 6))
        full[..., :3, :3] = full[..., 3:, 3:] = axes
        found.append(full[..., list(COLUMNS[contact.model])])
    return found


def grasp_map(grasp: Grasp, R: np.ndarray, S: list[np.ndarray]) -> np.ndarray:
    """[A_1^T S_1 ... A_p^T S_p], (..., 6, rows): wrenches at the contacts as wrenches at the mass centre."""
    found = []
    for at, s in zip(grasp.at, S, strict=True):
        arm = turn(R, np.array(at.position) - grasp.com)
        moments = s[..., :3, :] + np.cross(arm[..., None, :], np.swapaxes(s[..., 3:, :], -1, -2)).swapaxes(-1, -2)
        found.append(np.concatenate([moments, s[..., 3:, :]], axis=-2))
    return np.concatenate(found, axis=-1)


def null_basis(G: np.ndarray) -> np.ndarray:
    """An orthonormal basis (..., rows, count) of the kernel, of the largest count in the batch."""
    _, values, v = np.linalg.svd(G, full_matrices=True)
    largest = max(float(values.max(initial=0.0)), 1e-300)
    rank = int((values > 1e-10 * largest).sum(axis=-1).max(initial=0))
    return np.swapaxes(v[..., rank:, :], -1, -2)


def turn(R: np.ndarray, v: ArrayLike) -> np.ndarray:
    return (R @ np.asarray(v)[..., None])[..., 0]


def cross(a: ArrayLike, b: ArrayLike) -> np.ndarray:
    return np.cross(np.asarray(a), np.asarray(b))
