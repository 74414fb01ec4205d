"""Closed chains: constraints and springs between frames, and the dynamics with them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, TypedDict, TypeVar

import numpy as np
from numpy.typing import ArrayLike

from ..algorithms.closed_chain.motors import motor_torques
from ..catalogue.details import Details
from ..description.constraints import Constraint, Spring
from ..description.model import Model
from ..errors import ArgumentError
from ..mechanism import coordinates
from ..mechanism.canonical import canonical
from ..support.messages import listing, nearest, shown
from ..support.numbers import as_array, described, real_vectors
from .constraints import (
    CLOSES,
    NAMES,
    REDUNDANCY,
    filled,
    generic_rank,
    project,
    ranks,
    row_labels,
    uncertain_rows,
    warn_if_constraints_singular,
)
from .core import Core, Extras, refuse_out
from .editing import with_actuated


@dataclass(frozen=True)
class Mobility:
    """How the constraints leave a pose free to move.

    freedoms: nv - rank, ways to move at this pose. rank: of the constraints' Jacobian. redundant: rows that say nothing
    new after those before them. fixed: joints that cannot move at all. generic: the rank at poses nearby; where it is
    larger, this pose is `singular`. uncertain: rows that are neither independent nor redundant to working precision.
    """

    freedoms: int
    rank: int
    rows: int
    redundant: tuple[str, ...]
    fixed: tuple[str, ...]
    generic: int
    uncertain: tuple[str, ...] = ()

    @property
    def singular(self) -> bool:
        return self.rank < self.generic or bool(self.uncertain)


class Digits(NamedTuple):
    """What is told from rounding: torques where nothing drives, and accelerations of constraints."""

    left: float
    meets: float


DIGITS = {"float64": Digits(1e-8, 0.0), "float32": Digits(1e-3, 1e-4)}


class Choice(TypedDict, total=False):
    """Which of the torques that give one motion are wanted: see `Robot.closed_inverse_dynamics`."""

    actuated: Sequence[str] | None
    weights: ArrayLike | None
    preferred: ArrayLike | None
    tolerance: float


Tie = TypeVar("Tie", Constraint, Spring)


def checked_ties(model: Model, ties: Sequence[Tie] | Tie, kind: type[Tie]) -> tuple[Tie, ...]:
    """One or several constraints or springs, whose frames there are and move against each other."""
    given = [ties] if isinstance(ties, kind) else list(ties) if isinstance(ties, (list, tuple)) else [ties]
    known = {frame.name: frame for frame in model.frames}
    found: list[Tie] = []
    for tie in given:
        if not isinstance(tie, kind):
            raise ArgumentError(
                f"got {shown(tie)}, expected a {kind.__name__}: make it with linksweep.{kind.__name__}."
            )
        for name in (tie.a, *((tie.b,) if tie.b else ())):
            if name not in known:
                raise ArgumentError(
                    f"{model.name} has no frame {shown(name)}{nearest(name, known)}: expected one of "
                    f"{listing(known)} (robot.frame_names), or with_frame to name another."
                )
        if known[tie.a].link == (known[tie.b].link if tie.b else -1):
            raise ArgumentError(
                f"the frames {tie.a!r} and {tie.b or 'the world'!r} stand on one link of {model.name}, expected two "
                f"that move against each other: remove this {kind.__name__.lower()}."
            )
        found.append(tie)
    return tuple(found)


class ClosedChain:
    """Poses, rates, accelerations and torques of a robot under the constraints between its frames."""

    def __init__(self, core: Core):
        self.core = core

    def error(self, q: ArrayLike) -> np.ndarray:
        return self.core.call("constraint_error", (q,))

    def jacobian(self, q: ArrayLike) -> np.ndarray:
        return self.core.call("constraint_jacobian", (q,))

    def project(self, q: ArrayLike, tolerance: float = CLOSES, iterations: int = 100) -> np.ndarray:
        return project(self.core, q, tolerance, iterations)

    def mobility(self, q: ArrayLike, tolerance: float | None) -> Mobility:
        """Rank, freedoms, redundant rows and singular poses of the constraints at one pose (nq,)."""
        core = self.core
        q = coordinates.normalize(core.canonical, q)
        K, labels = self._jacobian_of_one("mobility", q), row_labels(core)
        if tolerance is None:
            redundancy = core.call("constraint_redundancy", (q,))
            rank, uncertain = int(ranks(redundancy)), np.flatnonzero(uncertain_rows(redundancy))
            generic = generic_rank(core, q)
        else:
            rank, uncertain = _rank(K, tolerance), np.zeros(0, int)
            generic = generic_rank(core, q, lambda near: _rank(self.jacobian(near), tolerance))
        scaled = self._scaled(K, q)
        basis = self._null_space(scaled, q, rank)
        still = np.logical_not((np.abs(basis) > 1e-9).any(axis=1))
        joints = zip(core.joint_names, core.canonical.joints, strict=True)
        fixed = tuple(name for name, link in joints if still[link.rates].all())
        redundant = tuple(labels[i] for i in _dependent(scaled, rank))
        return Mobility(core.nv - rank, rank, len(K), redundant, fixed, generic, tuple(labels[i] for i in uncertain))

    def _scaled(self, K: np.ndarray, q: np.ndarray) -> np.ndarray:
        """K with rows of lengths in units of the robot's size, and columns by the inertias that joints move."""
        reach = sum(float(np.linalg.norm(link.joint.placement.position)) for link in self.core.model.links)
        reach = reach or 1.0
        lengths = [not name.startswith("r") for tie in self.core.model.constraints for name in NAMES[tie.kind]]
        rows = K / np.where(lengths, reach, 1.0)[:, None]
        return np.linalg.solve(self._root(q), rows.T).T

    def _root(self, q: np.ndarray) -> np.ndarray:
        """The Cholesky factor of M."""
        if not self.core.has_inertia:
            return np.eye(self.core.nv)
        return np.linalg.cholesky(self.core.call("mass_matrix", (q,)))

    def _null_space(self, scaled: np.ndarray, q: np.ndarray, rank: int) -> np.ndarray:
        """An orthonormal basis (nv, nv - rank) of the velocities that constraints of this rank allow."""
        basis = np.linalg.svd(scaled)[2][rank:].T
        return np.linalg.qr(np.linalg.solve(self._root(q).T, basis))[0]

    def _jacobian_of_one(self, who: str, q: ArrayLike) -> np.ndarray:
        """K (rows, nv) of the one pose that is allowed."""
        K = self.jacobian(q)
        if K.ndim != 2:
            raise ArgumentError(
                f"{who} takes one pose ({self.core.nq},), got shape {np.shape(q)}: ask for them one by one."
            )
        if not np.isfinite(K).all():
            raise ArgumentError(
                f"{who} takes one pose ({self.core.nq},), got {shown(q)}, expected finite numbers: correct them."
            )
        return K

    def tangent_basis(self, q: ArrayLike, near: ArrayLike | None) -> np.ndarray:
        """An orthonormal basis (nv, freedoms) of the rates that the constraints allow at one pose."""
        K = self._jacobian_of_one("a tangent basis", q)
        q = coordinates.normalize(self.core.canonical, q)
        basis = self._null_space(self._scaled(K, q), q, int(ranks(self.core.call("constraint_redundancy", (q,)))))
        if near is None:
            from scipy.linalg import qr

            order = np.asarray(qr(basis.T, mode="r", pivoting=True)[-1])
            near = np.eye(self.core.nv)[:, np.sort(order[: basis.shape[1]])]
        goal = as_array(near)
        if goal.shape != basis.shape or goal.dtype.kind not in "iufb" or not np.isfinite(goal).all():
            raise ArgumentError(
                f"tangent_basis: near is {described(near, goal)}, expected finite real numbers of shape {basis.shape}: "
                f"the pose has {basis.shape[1]} degrees of freedom."
            )
        u, _, v = np.linalg.svd(basis.T @ goal)
        return basis @ (u @ v)

    # dynamics

    def forward_details(
        self, args: tuple[ArrayLike, ...], method: str | None, more: Extras | None, out: np.ndarray | None
    ) -> tuple[np.ndarray, Details]:
        """Accelerations, with multipliers, forces, residual K qdd + k (..., rows) and rank of the constraints."""
        refuse_out("forward_dynamics", out)
        more = more or Extras()
        names = ("forward_dynamics", "multipliers", "constraint_forces", "constraint_jacobian", "constraint_bias")
        requests = (*self.core.requests(names, method, more), REDUNDANCY)
        qdd, multipliers, forces, K, k, redundancy = self.core.function(requests)(
            *args, *more.arguments(self.core.model)
        )
        warn_if_constraints_singular(self.core, "forward_dynamics", args[0], redundancy)
        residual = (K @ qdd[..., None])[..., 0] + k
        return qdd, Details(
            qdd=qdd, multipliers=multipliers, constraint_forces=forces, residual=residual, rank=ranks(redundancy)
        )

    def tree_torques(self, q: ArrayLike, qd: ArrayLike, qdd: ArrayLike) -> np.ndarray:
        """Inverse dynamics without the constraints."""
        return self.core.function(self.core.requests(["tree_dynamics"], internal=True))(q, qd, qdd)

    def inverse_dynamics(
        self, args: tuple[ArrayLike, ...], more: Extras, actuated: Sequence[str] | None, weights: ArrayLike | None,
        preferred: ArrayLike | None, tolerance: float, method: str | None, out: np.ndarray | None,
    ) -> Details:  # fmt: skip
        """Torques "tau" that produce args (q, qd, qdd) under the constraints, "multipliers", and "tree", the joint
        forces that the motion needs without the constraints: tau = tree + K^T multipliers.

        method: of the tree's inverse dynamics. A sample that is not finite gives NaN.
        """
        core, nv = self.core, self.core.nv
        if not core.model.constraints:
            raise ArgumentError(f"inverse_dynamics: {core.name} has no constraints: actuated, weights and preferred "
                                f"are for closed chains.")  # fmt: skip
        own = core.requests(["inverse_dynamics"], method, more)[0].method  # says what is wrong with it
        requests = core.requests(("tree_dynamics", "constraint_jacobian", "constraint_bias"), own, more, internal=True)
        tree, K, k = core.function(requests)(*args, *more.arguments(core.model))
        batch, rows, digits = tree.shape[:-1], K.shape[-2], DIGITS[tree.dtype.name]

        def listed(array: np.ndarray, *one: int) -> np.ndarray:
            return np.broadcast_to(array, (*batch, *one)).reshape(-1, *one).astype(float)

        taus, qdds = listed(tree, nv), listed(np.asarray(args[2], float), nv)
        Ks, ks = listed(K, rows, nv), listed(k, rows)
        sane = np.isfinite(taus).all(axis=-1) & np.isfinite(Ks).all(axis=(-2, -1)) & np.isfinite(ks).all(axis=-1)
        off = np.abs(np.einsum("nij,nj->ni", Ks[sane], qdds[sane]) + ks[sane]).max(initial=0.0)
        scale = 1.0 + np.abs(Ks[sane]).max(initial=0.0) * np.abs(qdds[sane]).max(initial=0.0)
        if off > max(tolerance, digits.meets) * scale:
            raise ArgumentError(
                f"inverse_dynamics: qdd breaks the constraints by {off:.3g}, expected K qdd + k = 0: take it from a "
                f"motion that meets them, or project it (project_acceleration)."
            )
        driven = self._driven(actuated)
        w = np.ones(nv) if weights is None else real_vectors("inverse_dynamics: weights", weights, nv)
        goal = np.zeros(nv) if preferred is None else real_vectors("inverse_dynamics: preferred", preferred, nv)
        if w.shape != (nv,) or not (w > 0).all() or goal.shape != (nv,) or not np.isfinite([w, goal]).all():
            raise ArgumentError(
                f"inverse_dynamics: weights are {shown(weights)} and preferred {shown(preferred)}, expected ({nv},) "
                f"finite numbers each, weights above 0."
            )
        tau, multipliers = np.full_like(taus, np.nan), np.full_like(ks, np.nan)
        own = taus[sane]
        entries = np.moveaxis(Ks[sane], 0, -1)
        columns = [[x if x.any() else 0.0 for x in row] for row in entries]
        found = motor_torques(
            list(own.T), columns, driven, w.tolist(), goal.tolist(), self._passive(Ks[sane][:1], driven)
        )
        lacking = np.sqrt(np.broadcast_to(np.asarray(found.left, float), len(own)))
        if (lacking > digits.left * (1.0 + np.abs(own).max(axis=-1, initial=0.0))).any():
            raise ArgumentError(
                f"inverse_dynamics: joints of {core.name} without a motor would need a torque of {lacking.max():.3g} "
                f"for these accelerations, expected 0: give other accelerations, or name them in actuated."
            )
        for target, values in ((tau, found.tau), (multipliers, found.multipliers)):
            for k, value in enumerate(values):
                target[sane, k] = value
        tau, multipliers = tau.reshape(tree.shape), multipliers.reshape(*batch, rows)
        tau = tau.astype(tree.dtype)
        tau = tau if out is None else filled("inverse_dynamics", tau, out, tau.ndim - 1)
        return Details(tau=tau, multipliers=multipliers.astype(tree.dtype), tree=tree)

    def undriven(self) -> tuple[str, ...]:
        """See `Robot.undriven_joints`."""
        core, rng = self.core, np.random.default_rng(0)
        passive = [(name, link) for name, link in zip(core.joint_names, core.canonical.joints, strict=True)
                   if not link.actuated]  # fmt: skip
        if not passive or not core.model.constraints:
            return tuple(name for name, _ in passive)
        columns = [j for _, link in passive for j in range(link.start, link.start + link.nv)]
        found: tuple[str, ...] = ()
        starts = [coordinates.neutral(core.canonical)]
        starts += [coordinates.random(core.canonical, core.model, rng) for _ in range(7)]
        for start in starts:
            try:
                K = self.jacobian(self.project(start))[:, columns]
            except ArgumentError:
                continue
            moves = np.abs(_null_space(K, _rank(K, 1e-9))).max(axis=1, initial=0.0) > 1e-9
            free = {j for j, own in zip(columns, moves.tolist(), strict=True) if own}
            found = tuple(name for name, link in passive if free & set(range(link.start, link.start + link.nv)))
            if not found:
                return ()
        return found

    def _passive(self, K: np.ndarray, driven: Sequence[bool]) -> list[int]:
        """The rates without motors, independent columns of K (samples, rows, nv) first, as at its first sample."""
        passive = np.flatnonzero(~np.array(driven))
        if not len(K) or not len(passive):
            return passive.tolist()
        from scipy.linalg import qr

        return passive[np.asarray(qr(K[0][:, passive], mode="r", pivoting=True)[-1])].tolist()

    def _driven(self, actuated: Sequence[str] | None) -> list[bool]:
        """Of each rate, whether a motor drives it."""
        model = canonical(with_actuated(self.core.model, actuated)) if actuated is not None else self.core.canonical
        driven = [False] * self.core.nv
        for link in model.joints:
            driven[link.rates] = [link.actuated] * link.nv
        return driven


def _rank(K: np.ndarray, tolerance: float) -> int:
    """The rank of a matrix whose rows are scaled alike."""
    if not K.size:
        return 0
    sizes = np.linalg.norm(K, axis=1, keepdims=True)
    rows = K / np.where(sizes > 1e-12 * sizes.max(), sizes, np.inf)
    singular = np.linalg.svd(rows, compute_uv=False)
    return int((singular > tolerance * max(singular[0], 1e-300)).sum())


def _null_space(K: np.ndarray, rank: int) -> np.ndarray:
    sizes = np.linalg.norm(K, axis=1, keepdims=True)
    return np.linalg.svd(K / np.where(sizes > 0, sizes, 1.0))[2][rank:].T


def _dependent(rows: np.ndarray, rank: int) -> list[int]:
    """So many rows as there are beyond the rank: those of which the ones before them leave least."""
    left = np.ones(len(rows))
    basis = np.zeros((0, rows.shape[1]))
    for i, row in enumerate(rows):
        rest = row - basis.T @ (basis @ row)
        rest = rest - basis.T @ (basis @ rest)
        left[i] = np.linalg.norm(rest)
        if left[i] > 1e-12 and len(basis) < rank:
            basis = np.vstack([basis, rest / left[i]])
    return sorted(np.argsort(left, kind="stable")[: len(rows) - rank].tolist())
