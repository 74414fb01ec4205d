"""What users call for closed chains: constraints and springs between frames, and the dynamics with them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from ..catalogue.details import Details
from ..catalogue.requests import make_requests
from ..description.constraints import Constraint, Spring
from ..errors import ArgumentError
from ..support.messages import listing, nearest, shown
from ..support.numbers import Named
from .operational_methods import OperationalMethods

if TYPE_CHECKING:
    from ..description.model import Model
    from .robot import Robot

CLOSES = 1e-10  # of metres and radians: as far as `project` goes on
NAMES = {
    "rigid": ("rx", "ry", "rz", "x", "y", "z"), "point": ("x", "y", "z"), "hinge": ("rx", "ry", "x", "y", "z"),
    "slider": ("rx", "ry", "rz", "x", "y"), "plane": ("z",), "line": ("x", "y"), "distance": ("length",),
    "soft_finger": ("rz", "x", "y", "z"),
}  # fmt: skip


@dataclass(frozen=True)
class Mobility:
    """How the constraints leave a pose free to move.

    freedoms: nv - rank, ways to move at this pose. rank: of the constraints' Jacobian. redundant: rows that say nothing
    new after those before them. fixed: joints that cannot move at all. generic: the rank at poses nearby; where it is
    larger, this pose is `singular`.
    """

    freedoms: int
    rank: int
    rows: int
    redundant: tuple[str, ...]
    fixed: tuple[str, ...]
    generic: int

    @property
    def singular(self) -> bool:
        return self.rank < self.generic


class ConstraintMethods(OperationalMethods):
    """The part of `Robot` that knows constraints and springs between frames."""

    if TYPE_CHECKING:
        model: Model
        canonical: Any
        nq: Any
        nv: Any
        joint_names: Any

        def _edited(self, model: Model) -> Robot: ...
        def _extra_arguments(self, options: tuple[Any, ...]) -> tuple[Any, ...]: ...
        def integrate(self, q: ArrayLike, v: ArrayLike, dt: Any = 1.0) -> np.ndarray: ...
        def normalize(self, q: ArrayLike) -> np.ndarray: ...
        def mass_matrix(self, q: ArrayLike, method: str | None = None, out: np.ndarray | None = None) -> np.ndarray: ...

    def with_constraints(self, constraints: Sequence[Constraint]) -> Robot:
        """The same robot, its coordinates unchanged, with these constraints between its frames besides its own.

        forward_dynamics, simulate and inverse_dynamics then know them; the mass matrix, bias forces and the operational
        space stay those of the tree. See `linksweep.Constraint`.
        """
        return self._edited(
            replace(self.model, constraints=(*self.model.constraints, *self._ties(constraints, Constraint)))
        )

    def without_constraints(self) -> Robot:
        """The tree alone, without the constraints between its frames; springs stay."""
        return self._edited(replace(self.model, constraints=()) if self.model.constraints else self.model)

    def with_springs(self, springs: Sequence[Spring]) -> Robot:
        """The same robot with springs and dampers between its frames, see `linksweep.Spring`.

        They act in inverse and forward dynamics, bias forces and energy; gravity forces are without them.
        """
        return self._edited(replace(self.model, springs=(*self.model.springs, *self._ties(springs, Spring))))

    @property
    def constraints(self) -> tuple[Constraint, ...]:
        """The ties between its frames; see `with_constraints`."""
        return self.model.constraints

    def _ties(self, ties: Any, kind: type) -> list[Any]:
        given = [ties] if isinstance(ties, kind) else list(ties) if isinstance(ties, (list, tuple)) else [ties]
        known = {frame.name: frame for frame in self.model.frames}
        for tie in given:
            if not isinstance(tie, kind):
                raise ArgumentError(
                    f"got {shown(tie)}, expected a {kind.__name__}: make it with linksweep.{kind.__name__}."
                )
            for name in (tie.a, *((tie.b,) if tie.b else ())):
                if name not in known:
                    raise ArgumentError(
                        f"{self.name} has no frame {shown(name)}{nearest(name, known)}: expected one of "
                        f"{listing(known)} (robot.frame_names), or with_frame to name another."
                    )
            if known[tie.a].link == (known[tie.b].link if tie.b else -1):
                raise ArgumentError(
                    f"the frames {tie.a!r} and {tie.b or 'the world'!r} stand on one link of {self.name}, expected two "
                    f"that move against each other: remove this {kind.__name__.lower()}."
                )
        return given

    # what the constraints ask

    def constraint_error(self, q: ArrayLike, out: np.ndarray | None = None) -> np.ndarray:
        """How far the pose is from meeting its constraints, (..., rows): metres, and radians along the axes of b."""
        return self._dynamics("constraint_error", (q,), None, (), out)

    def constraint_jacobian(self, q: ArrayLike, out: np.ndarray | None = None) -> np.ndarray:
        """K (..., rows, nv): K qd are the rates of `constraint_error`, which the constraints hold at 0."""
        return self._dynamics("constraint_jacobian", (q,), None, (), out)

    def constraint_bias(self, q: ArrayLike, qd: ArrayLike, out: np.ndarray | None = None) -> np.ndarray:
        """k = dK/dt qd (..., rows): accelerations meet K qdd + k = 0."""
        return self._dynamics("constraint_bias", (q, qd), None, (), out)

    def constraint_forces(
        self,
        q: ArrayLike,
        qd: ArrayLike,
        tau: ArrayLike,
        f_ext: Named | None = None,
        dissipation: bool = False,
        base_motion: ArrayLike | None = None,
    ) -> np.ndarray:
        """What each constraint exerts on its frame a, (..., constraints, 6): [moment; force] at its origin, along the
        base's axes."""
        return self._dynamics("constraint_forces", (q, qd, tau), None, (f_ext, dissipation, base_motion), None)

    def project(self, q: ArrayLike, tolerance: float = CLOSES, iterations: int = 100) -> np.ndarray:
        """The pose (..., nq) that meets the constraints, reached from q by Newton steps that are least in the metric M.

        An error says the gap where there is none to be found.
        """
        q = self.normalize(q) + 0.0
        gap = np.abs(self.constraint_error(q)).max(axis=-1)
        for _ in range(iterations):
            if not (gap > tolerance).any():
                return q if not gap.any() else self._polished(q, gap)
            step = self._dynamics("constraint_correction", (q,), None, (), None)
            size = np.abs(step).max(axis=-1, keepdims=True)
            step = step * np.minimum(1.0, 0.5 / np.maximum(size, 1e-300))  # half a radian, half a metre
            after, moved = q, gap
            for _ in range(8):  # shorter, until it is better
                after = self.integrate(q, step)
                moved = np.abs(self.constraint_error(after)).max(axis=-1)
                worse = moved > gap
                if not worse.any():
                    break
                step = np.where(worse[..., None], step * 0.5, step)
            q, gap = after, moved
        raise ArgumentError(
            f"the constraints of {self.name} cannot be met from this pose: a gap of {float(np.max(gap)):.3g} is left, "
            f"expected at most {tolerance:g}: start nearer, or check their frames and lengths."
        )

    def _polished(self, q: np.ndarray, gap: np.ndarray) -> np.ndarray:
        """One step more, to rounding, where it helps."""
        after = self.integrate(q, self._dynamics("constraint_correction", (q,), None, (), None))
        better = np.abs(self.constraint_error(after)).max(axis=-1) < gap
        return np.where(better[..., None], after, q)

    def project_velocity(self, q: ArrayLike, qd: ArrayLike, out: np.ndarray | None = None) -> np.ndarray:
        """The rates (..., nv) that the constraints allow, nearest to qd in the metric M: what an impact leaves."""
        return self._dynamics("allowed_rates", (q, qd), None, (), out)

    def mobility(self, q: ArrayLike, tolerance: float = 1e-9) -> Mobility:
        """Rank, freedoms, redundant rows and singular poses of the constraints at one pose (nq,)."""
        q = self.normalize(q)
        if q.ndim != 1:
            raise ArgumentError(f"mobility takes one pose ({self.nq},), got shape {q.shape}: ask for them one by one.")
        K = self.constraint_jacobian(q)
        rank = _rank(K, tolerance)
        labels = [f"{tie.label}: {name}" for tie in self.model.constraints for name in NAMES[tie.kind]]
        redundant, kept = [], np.zeros((0, K.shape[1]))
        for label, row in zip(labels, K, strict=True):
            more = np.vstack([kept, row])
            if _rank(more, tolerance) > len(kept):
                kept = more
            else:
                redundant.append(label)
        basis = _null_space(K, rank)
        still = np.logical_not((np.abs(basis) > 1e-9).any(axis=1))
        fixed = tuple(
            name for name, link in zip(self.joint_names, self.canonical.joints, strict=True)
            if still[link.rates].all()
        )  # fmt: skip
        return Mobility(
            self.nv - rank, rank, len(K), tuple(redundant), fixed, max(rank, self._generic_rank(q, tolerance))
        )

    def _generic_rank(self, q: np.ndarray, tolerance: float) -> int:
        """The rank at poses a little away that meet the constraints too."""
        best, rng = 0, np.random.default_rng(0)
        for _ in range(4):
            try:
                near = self.project(self.integrate(q, 1e-2 * rng.normal(size=self.nv)))
            except ArgumentError:
                continue
            best = max(best, _rank(self.constraint_jacobian(near), tolerance))
        return best

    def tangent_basis(self, q: ArrayLike, near: ArrayLike | None = None) -> np.ndarray:
        """An orthonormal basis (nv, freedoms) of the rates that the constraints allow at one pose.

        It is turned, within the space that it spans, as near as it can be to `near`, a basis of before (which makes it
        continuous along a motion without singular poses), or without one to the unit vectors of the rates that can be
        chosen freely, found by pivoting.
        """
        K = self.constraint_jacobian(q)
        basis = _null_space(K, _rank(K, 1e-9))
        if near is None:
            from scipy.linalg import qr

            pivots: Any = qr(basis.T, pivoting=True)
            order = pivots[2][: basis.shape[1]]
            near = np.eye(self.nv)[:, np.sort(order)]
        goal = np.asarray(near, dtype=float)
        if goal.shape != basis.shape:
            raise ArgumentError(
                f"near has shape {goal.shape}, expected {basis.shape}: the pose has {basis.shape[1]} freedoms."
            )
        u, _, v = np.linalg.svd(basis.T @ goal)
        return basis @ (u @ v)

    def tangent_mass_matrix(self, q: ArrayLike, near: ArrayLike | None = None) -> np.ndarray:
        """The mass matrix (freedoms, freedoms) on `tangent_basis`."""
        basis = self.tangent_basis(q, near)
        return basis.T @ self.mass_matrix(q) @ basis

    # dynamics

    def _closed_details(
        self, item: str, args: tuple[Any, ...], method: str | None, options: tuple[Any, ...], out: Any
    ) -> tuple[np.ndarray, Details]:
        """Accelerations, with the multipliers and the forces of the constraints."""
        if out is not None:
            raise ArgumentError(f"{item}: out= does not go with details=True: take the arrays that are returned.")
        f_ext, dissipation, base_motion = options or (None, False, None)
        given = {"f_ext": f_ext is not None, "dissipation": dissipation, "base_motion": base_motion is not None}
        names = ("forward_dynamics", "multipliers", "constraint_forces")
        function = self._function(make_requests(self, names, method, **given))  # type: ignore[arg-type]
        arrays = function(*args, *self._extra_arguments(options))
        return arrays[0], Details(zip(("qdd", "multipliers", "constraint_forces"), arrays, strict=True))

    def closed_inverse_dynamics(
        self,
        q: ArrayLike,
        qd: ArrayLike,
        qdd: ArrayLike,
        f_ext: Named | None = None,
        dissipation: bool = False,
        base_motion: ArrayLike | None = None,
        details: bool = False,
        *,
        actuated: Sequence[str] | None = None,
        weights: ArrayLike | None = None,
        preferred: Any = None,
        tolerance: float = 1e-6,
    ) -> Any:
        """Joint torques (..., nv) that produce qdd under the constraints; by details=True with the multipliers.

        Where constraints leave a choice: the torques of the `actuated` joints (names; None: all but free ones) nearest
        to `preferred` (nv,) (None: 0) in the norm with these positive `weights` (nv,). Joints that are not actuated get
        none, and an error says so where the motion asks for one. qdd must meet the constraints to `tolerance`.
        """
        if not self.model.constraints:
            raise ArgumentError(f"inverse_dynamics: {self.name} has no constraints: actuated, weights and preferred "
                                f"are for closed chains.")  # fmt: skip
        options = (f_ext, dissipation, base_motion)
        given = {"f_ext": f_ext is not None, "dissipation": dissipation, "base_motion": base_motion is not None}
        names = ("inverse_dynamics", "constraint_jacobian", "constraint_bias")
        function = self._function(make_requests(self, names, None, **given))  # type: ignore[arg-type]
        tree, K, k = function(q, qd, qdd, *self._extra_arguments(options))
        acceleration = np.broadcast_to(np.asarray(qdd, float), tree.shape)
        off = np.abs((K @ acceleration[..., None])[..., 0] + k).max() if k.size else 0.0
        scale = 1.0 + np.abs(K).max(initial=0.0) * np.abs(acceleration).max(initial=0.0)
        if off > tolerance * scale:
            raise ArgumentError(
                f"inverse_dynamics: qdd breaks the constraints by {off:.3g}, expected K qdd + k = 0: take it from a "
                f"motion that meets them, or project it (project_acceleration)."
            )
        driven = self._driven(actuated)
        w = np.ones(self.nv) if weights is None else np.asarray(weights, float)
        goal = np.zeros(self.nv) if preferred is None else np.asarray(preferred, float)
        if w.shape != (self.nv,) or not (w > 0).all() or goal.shape != (self.nv,):
            raise ArgumentError(f"weights and preferred are ({self.nv},) numbers, weights positive: correct them.")
        batch = tree.shape[:-1]
        flat, Ks = tree.reshape(-1, self.nv), np.broadcast_to(K, (*batch, *K.shape[-2:])).reshape(-1, *K.shape[-2:])
        found = [_least(t, row, driven, np.sqrt(w), goal, self) for t, row in zip(flat, Ks, strict=True)]
        tau = np.reshape([x[0] for x in found], tree.shape)
        if not details:
            return tau
        return tau, Details(tau=tau, multipliers=np.reshape([x[1] for x in found], (*batch, K.shape[-2])))

    def project_acceleration(self, q: ArrayLike, qd: ArrayLike, qdd: ArrayLike) -> np.ndarray:
        """The accelerations (..., nv) that the constraints allow at qd, nearest to qdd in the metric M."""
        moving = self.forward_dynamics(q, qd, self._tree_torques(q, qd, qdd))  # type: ignore[attr-defined]
        return moving

    def _tree_torques(self, q: Any, qd: Any, qdd: Any) -> np.ndarray:
        return self._function(make_requests(self, ("inverse_dynamics",), None))(q, qd, qdd)  # type: ignore[arg-type]

    def _driven(self, actuated: Sequence[str] | None) -> np.ndarray:
        driven = np.zeros(self.nv, bool)
        if actuated is not None:
            unknown = [name for name in actuated if name not in self.joint_names]
            if unknown:
                raise ArgumentError(
                    f"actuated names {shown(unknown[0])}{nearest(unknown[0], self.joint_names)}, expected joints of "
                    f"{self.name} (robot.joint_names)."
                )
        for name, link in zip(self.joint_names, self.canonical.joints, strict=True):
            if (not link.type.floats) if actuated is None else (name in actuated):
                driven[link.rates] = True
        return driven


def _least(
    tree: np.ndarray, K: np.ndarray, driven: np.ndarray, root: np.ndarray, goal: np.ndarray, robot: Any
) -> tuple[np.ndarray, np.ndarray]:
    """tau = tree + K^T lambda, 0 where nothing drives, else as near to the goal as can be; and lambda."""
    loose, free = K[:, ~driven].T, np.eye(len(K))
    start = np.zeros(len(K))
    if len(loose):
        start = np.linalg.lstsq(loose, -tree[~driven], rcond=1e-12)[0]
        left = np.abs(loose @ start + tree[~driven]).max()
        if left > 1e-8 * (1.0 + np.abs(tree).max()):
            raise ArgumentError(
                f"inverse_dynamics: joints of {robot.name} without a motor would need a torque of {left:.3g} for these "
                f"accelerations, expected 0: give other accelerations, or name them in actuated."
            )
        free = _null_space(loose, _rank(loose, 1e-12))
    held = (root[:, None] * K.T)[driven]
    wanted = root[driven] * (goal - tree - K.T @ start)[driven]
    multipliers = start + free @ np.linalg.lstsq(held @ free, wanted, rcond=1e-12)[0]
    tau = tree + K.T @ multipliers
    return np.where(driven, tau, 0.0), multipliers


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
