"""Closed chains: constraints and springs between frames, and the dynamics with them."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, TypedDict, TypeVar

import numpy as np
from numpy.typing import ArrayLike

from ..algorithms.closed_chain.motors import motor_torques
from ..errors import ArgumentError
from ..functions.details import Details
from ..mechanism import coordinates
from ..mechanism.canonical import canonical
from ..model.constraints import Constraint, Spring
from ..model.model import Model
from ..support.checks import as_array, described, real_array
from ..support.messages import listing, nearest, shown
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
    """Mobility of a constrained robot at one configuration.

    Attributes
    ----------
    degrees_of_freedom : int
        nv - rank.
    rank, rows : int
        Rank and number of rows of the constraint Jacobian.
    redundant : names
        Rows that depend on the rows before them.
    fixed : names
        Joints that cannot move.
    generic : int
        Rank at configurations nearby. If it is larger than `rank`, this configuration is singular.
    uncertain : names
        Rows that are neither independent nor redundant to working precision.
    """

    degrees_of_freedom: int
    rank: int
    rows: int
    redundant: tuple[str, ...]
    fixed: tuple[str, ...]
    generic: int
    uncertain: tuple[str, ...] = ()

    @property
    def singular(self) -> bool:
        """Whether the constraints are singular to working precision at this configuration."""
        return self.rank < self.generic or bool(self.uncertain)

    @property
    def freedoms(self) -> int:
        """Deprecated name of `degrees_of_freedom`."""
        warnings.warn("Mobility.freedoms is now Mobility.degrees_of_freedom", DeprecationWarning, stacklevel=2)
        return self.degrees_of_freedom


class Tolerance(NamedTuple):
    """Relative size of rounding errors: in torques of passive joints, and in accelerations of constraints."""

    torque: float
    acceleration: float


TOLERANCES = {"float64": Tolerance(1e-8, 0.0), "float32": Tolerance(1e-3, 1e-4)}


class Choice(TypedDict, total=False):
    """Options that select among torques with the same motion: see `Robot.closed_inverse_dynamics`."""

    actuated: Sequence[str] | None
    weights: ArrayLike | None
    preferred: ArrayLike | None
    tolerance: float


Connection = TypeVar("Connection", Constraint, Spring)


def checked_connections(
    model: Model, connections: Sequence[Connection] | Connection, kind: type[Connection]
) -> tuple[Connection, ...]:
    """Return one or several constraints or springs; raise ArgumentError unless they connect frames of two links."""
    known = {frame.name: frame for frame in model.frames}
    checked: list[Connection] = []
    for each in connections if isinstance(connections, (list, tuple)) else [connections]:
        if not isinstance(each, kind):
            raise ArgumentError(f"got {shown(each)}, expected a {kind.__name__} (linksweep.{kind.__name__}).")
        for name in (each.a, *((each.b,) if each.b else ())):
            if name not in known:
                raise ArgumentError(
                    f"{model.name} has no frame {shown(name)}{nearest(name, known)}: expected one of "
                    f"{listing(known)} (robot.frame_names); robot.with_frame adds one."
                )
        if known[each.a].link == (known[each.b].link if each.b else -1):
            raise ArgumentError(
                f"the frames {each.a!r} and {each.b or 'the world'!r} are on the same link of {model.name}; a "
                f"{kind.__name__.lower()} needs frames of two links."
            )
        checked.append(each)
    return tuple(checked)


class ClosedChain:
    """Configurations, velocities, accelerations and torques of a robot with constraints between its frames."""

    def __init__(self, core: Core):
        self.core = core

    def error(self, q: ArrayLike) -> np.ndarray:
        return self.core.call("constraint_error", (q,))

    def jacobian(self, q: ArrayLike) -> np.ndarray:
        return self.core.call("constraint_jacobian", (q,))

    def project(self, q: ArrayLike, tolerance: float = CLOSES, iterations: int = 100) -> np.ndarray:
        return project(self.core, q, tolerance, iterations)

    def mobility(self, q: ArrayLike, tolerance: float | None) -> Mobility:
        """See `Robot.mobility`."""
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
        """Return K with lengths in units of the robot's size, and columns scaled by the Cholesky factor of M."""
        reach = sum(float(np.linalg.norm(link.joint.placement.position)) for link in self.core.model.links)
        reach = reach or 1.0
        lengths = [not name.startswith("r") for tie in self.core.model.constraints for name in NAMES[tie.kind]]
        rows = K / np.where(lengths, reach, 1.0)[:, None]
        return np.linalg.solve(self._root(q), rows.T).T

    def _root(self, q: np.ndarray) -> np.ndarray:
        """Return the Cholesky factor of M."""
        if not self.core.has_inertia:
            return np.eye(self.core.nv)
        return np.linalg.cholesky(self.core.call("mass_matrix", (q,)))

    def _null_space(self, scaled: np.ndarray, q: np.ndarray, rank: int) -> np.ndarray:
        """Return an orthonormal basis (nv, nv - rank) of the velocities that constraints of this rank allow."""
        basis = np.linalg.svd(scaled)[2][rank:].T
        return np.linalg.qr(np.linalg.solve(self._root(q).T, basis))[0]

    def _jacobian_of_one(self, caller: str, q: ArrayLike) -> np.ndarray:
        """Return K (rows, nv); raise ArgumentError unless q is one finite configuration."""
        K = self.jacobian(q)
        if K.ndim != 2:
            raise ArgumentError(f"{caller}: q has shape {np.shape(q)}, expected one configuration ({self.core.nq},).")
        if not np.isfinite(K).all():
            raise ArgumentError(f"{caller}: q is {shown(q)}, expected finite numbers.")
        return K

    def tangent_basis(self, q: ArrayLike, near: ArrayLike | None) -> np.ndarray:
        """See `Robot.tangent_basis`."""
        K = self._jacobian_of_one("tangent_basis", q)
        q = coordinates.normalize(self.core.canonical, q)
        basis = self._null_space(self._scaled(K, q), q, int(ranks(self.core.call("constraint_redundancy", (q,)))))
        if near is None:
            from scipy.linalg import qr

            order = np.asarray(qr(basis.T, mode="r", pivoting=True)[-1])
            near = np.eye(self.core.nv)[:, np.sort(order[: basis.shape[1]])]
        goal = as_array(near)
        if goal.shape != basis.shape or goal.dtype.kind not in "iufb" or not np.isfinite(goal).all():
            raise ArgumentError(
                f"tangent_basis: near is {described(near, goal)}, expected finite real numbers of shape {basis.shape} "
                f"for {basis.shape[1]} degrees of freedom."
            )
        u, _, v = np.linalg.svd(basis.T @ goal)
        return basis @ (u @ v)

    # dynamics

    def forward_details(
        self, args: tuple[ArrayLike, ...], method: str | None, more: Extras | None, out: np.ndarray | None
    ) -> tuple[np.ndarray, Details]:
        """Return accelerations, and multipliers, forces, residuals K qdd + k (..., rows) and rank."""
        refuse_out("forward_dynamics", out)
        more = more or Extras()
        names = ("forward_dynamics", "multipliers", "constraint_forces", "constraint_jacobian", "constraint_bias")
        parts = (*self.core.parts(names, method, more), self.core.internal(REDUNDANCY))
        qdd, multipliers, forces, K, k, redundancy = self.core.function(*parts)(*args, *more.arguments(self.core.model))
        warn_if_constraints_singular(self.core, "forward_dynamics", args[0], redundancy)
        residual = (K @ qdd[..., None])[..., 0] + k
        return qdd, Details(
            qdd=qdd, multipliers=multipliers, constraint_forces=forces, residual=residual, rank=ranks(redundancy)
        )

    def tree_torques(self, q: ArrayLike, qd: ArrayLike, qdd: ArrayLike) -> np.ndarray:
        """Return the torques of the kinematic tree, without the constraints."""
        return self.core.function(*self.core.parts(["tree_dynamics"], internal=True))(q, qd, qdd)

    def inverse_dynamics(
        self, args: tuple[ArrayLike, ...], more: Extras, actuated: Sequence[str] | None, weights: ArrayLike | None,
        preferred: ArrayLike | None, tolerance: float, method: str | None, out: np.ndarray | None,
    ) -> Details:  # fmt: skip
        """Return torques "tau" that produce args (q, qd, qdd), "multipliers", and "tree", the torques of the tree.

        tau = tree + K^T multipliers. method: of the tree's inverse dynamics. A sample that is not finite gives NaN.
        """
        core, nv = self.core, self.core.nv
        if not core.model.constraints:
            raise ArgumentError(f"inverse_dynamics: {core.name} has no constraints; actuated, weights and "
                                f"preferred apply to closed chains only.")  # fmt: skip
        method = core.part("inverse_dynamics", method, more).method  # raises ArgumentError if it is unknown
        names = ("tree_dynamics", "constraint_jacobian", "constraint_bias")
        parts = core.parts(names, method, more, internal=True)
        tree, K, k = core.function(*parts)(*args, *more.arguments(core.model))
        batch, rows, rounding = tree.shape[:-1], K.shape[-2], TOLERANCES[tree.dtype.name]

        def listed(array: np.ndarray, *one: int) -> np.ndarray:
            return np.broadcast_to(array, (*batch, *one)).reshape(-1, *one).astype(float)

        taus, qdds = listed(tree, nv), listed(np.asarray(args[2], float), nv)
        Ks, ks = listed(K, rows, nv), listed(k, rows)
        finite = np.isfinite(taus).all(axis=-1) & np.isfinite(Ks).all(axis=(-2, -1)) & np.isfinite(ks).all(axis=-1)
        off = np.abs(np.einsum("nij,nj->ni", Ks[finite], qdds[finite]) + ks[finite]).max(initial=0.0)
        scale = 1.0 + np.abs(Ks[finite]).max(initial=0.0) * np.abs(qdds[finite]).max(initial=0.0)
        if off > max(tolerance, rounding.acceleration) * scale:
            raise ArgumentError(
                f"inverse_dynamics: qdd violates the constraints, the residual of K qdd + k = 0 is {off:.3g}; "
                f"robot.project_acceleration returns consistent accelerations."
            )
        driven = self._driven(actuated)
        w = np.ones(nv) if weights is None else real_array("inverse_dynamics: weights", weights, (..., nv))
        goal = np.zeros(nv) if preferred is None else real_array("inverse_dynamics: preferred", preferred, (..., nv))
        if w.shape != (nv,) or not (w > 0).all() or goal.shape != (nv,) or not np.isfinite([w, goal]).all():
            raise ArgumentError(
                f"inverse_dynamics: weights are {shown(weights)} and preferred {shown(preferred)}, expected ({nv},) "
                f"finite numbers each, weights above 0."
            )
        tau, multipliers = np.full_like(taus, np.nan), np.full_like(ks, np.nan)
        of_tree = taus[finite]
        entries = np.moveaxis(Ks[finite], 0, -1)
        columns = [[x if x.any() else 0.0 for x in row] for row in entries]
        solution = motor_torques(
            list(of_tree.T), columns, driven, w.tolist(), goal.tolist(), self._passive(Ks[finite][:1], driven)
        )
        residual = np.sqrt(np.broadcast_to(np.asarray(solution.left, float), len(of_tree)))
        if (residual > rounding.torque * (1.0 + np.abs(of_tree).max(axis=-1, initial=0.0))).any():
            raise ArgumentError(
                f"inverse_dynamics: the motors of {core.name} cannot produce these accelerations, passive joints would "
                f"need a torque of {residual.max():.3g}; choose another qdd, or more joints in actuated="
            )
        for target, values in ((tau, solution.tau), (multipliers, solution.multipliers)):
            for k, value in enumerate(values):
                target[finite, k] = value
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
        undriven: tuple[str, ...] = ()
        starts = [coordinates.neutral(core.canonical)]
        starts += [coordinates.random(core.canonical, core.model, rng) for _ in range(7)]
        for start in starts:
            try:
                K = self.jacobian(self.project(start))[:, columns]
            except ArgumentError:
                continue
            moves = np.abs(_null_space(K, _rank(K, 1e-9))).max(axis=1, initial=0.0) > 1e-9
            free = {j for j, moving in zip(columns, moves.tolist(), strict=True) if moving}
            undriven = tuple(name for name, link in passive if free & set(range(link.start, link.start + link.nv)))
            if not undriven:
                return ()
        return undriven

    def _passive(self, K: np.ndarray, driven: Sequence[bool]) -> list[int]:
        """Return the indices of velocities without motors, independent columns of K (samples, rows, nv) first."""
        passive = np.flatnonzero(~np.array(driven))
        if not len(K) or not len(passive):
            return passive.tolist()
        from scipy.linalg import qr

        return passive[np.asarray(qr(K[0][:, passive], mode="r", pivoting=True)[-1])].tolist()

    def _driven(self, actuated: Sequence[str] | None) -> list[bool]:
        """Return for each velocity whether it has a motor."""
        model = canonical(with_actuated(self.core.model, actuated)) if actuated is not None else self.core.canonical
        driven = [False] * self.core.nv
        for link in model.joints:
            driven[link.rates] = [link.actuated] * link.nv
        return driven


def _rank(K: np.ndarray, tolerance: float) -> int:
    """Return the rank of a matrix after normalizing its rows."""
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
    """Return the indices of the len(rows) - rank rows that depend most on the rows before them."""
    left = np.ones(len(rows))
    basis = np.zeros((0, rows.shape[1]))
    for i, row in enumerate(rows):
        rest = row - basis.T @ (basis @ row)
        rest = rest - basis.T @ (basis @ rest)
        left[i] = np.linalg.norm(rest)
        if left[i] > 1e-12 and len(basis) < rank:
            basis = np.vstack([basis, rest / left[i]])
    return sorted(np.argsort(left, kind="stable")[: len(rows) - rank].tolist())
