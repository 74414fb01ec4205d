"""Grasps: several arms that hold one object, as one constrained robot.

Arm i has M qdd + h + J^T f = tau, the object M_o dV/dt + b_o = F + sum A_i^T f_i, and a contact constrains the arm's
frame to the object's contact frame. This is the problem of Part II of G. Rodriguez and K. Kreutz 1988, of which we have
the table of contents only; the method is that of algorithms/closed_chain. Contact forces f = S lambda lie in the wrench
basis S of the contact model. A contact that slides or rotates keeps its point and its normal fixed in the object.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Sequence, Sized
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from ..errors import ArgumentError
from ..model.constraints import Constraint, as_placement
from ..support.messages import is_one_of, nearest, shown
from .closed_chains import ClosedChain
from .constraints import REDUNDANCY, warn_if_constraints_singular
from .loading import body_inertial, scene
from .operational_space import rank_of
from .robot import Robot

KINDS = {"rigid": "rigid", "point": "point", "soft_finger": "soft_finger", "frictionless": "plane"}
OBJECT = "object"


@dataclass(frozen=True, eq=False)
class Contact:
    """A contact between a frame of an arm and the object.

    Parameters
    ----------
    robot : Robot
    frame : one of `robot.frame_names`
    at : (4, 4)
        The contact frame in the object frame, with z along the inward normal. Identity by default.
    model : "rigid", "point", "soft_finger" or "frictionless"
        Transmits a full wrench, three forces, three forces and the moment about the normal, or the normal force.
    friction : float
        Bound of |tangential force| / normal force; no bound by default.
    spin : float
        Bound of |moment about the normal| / normal force (m); no bound by default.
    """

    robot: Robot
    frame: str
    at: ArrayLike | None = None
    model: str = "rigid"
    friction: float | None = None
    spin: float | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.robot, Robot):
            raise ArgumentError(f"robot of the contact is {shown(self.robot)}, expected a Robot.")
        if not is_one_of(self.model, KINDS):
            raise ArgumentError(
                f"unknown contact model {shown(self.model)}{nearest(self.model, KINDS)}, expected one of "
                f"{', '.join(KINDS)}."
            )
        if not is_one_of(self.frame, self.robot.frame_names):
            raise ArgumentError(
                f"{self.robot.name} has no frame {shown(self.frame)}{nearest(self.frame, self.robot.frame_names)}; "
                f"robot.with_frame adds one."
            )
        for name in ("friction", "spin"):
            value = getattr(self, name)
            if value is not None and not (isinstance(value, (int, float)) and 0 <= value < np.inf):
                raise ArgumentError(f"{name} of the contact is {shown(value)}, expected a non-negative number or None.")


class Grasp:
    """An object held by arms, as one constrained Robot.

    The attribute `robot` combines all arms (arm0/..., arm1/...) and the object. Arrays have any leading batch shape.

    Parameters
    ----------
    body : (10,)
        Inertial parameters of the object in its frame, from `linksweep.body`.
    contacts : sequence of Contact
        Contacts of the same Robot object are fingers of one arm. `arms` has the robots in the order of their first
        contact.
    gravity : (3,)
        In the world frame (m/s^2). By default that of the arms, which must agree.
    """

    def __init__(self, body: ArrayLike, contacts: Sequence[Contact], gravity: Sequence[float] | None = None):
        self.contacts = tuple(contacts) if isinstance(contacts, Sequence) else (contacts,)
        if not self.contacts or not all(isinstance(contact, Contact) for contact in self.contacts):
            raise ArgumentError(f"a grasp got contacts {shown(contacts)}, expected at least one linksweep.Contact.")
        inertial = body_inertial(body, "the object")
        self.mass, self.com = inertial.mass, np.array(inertial.com)
        self.inertia = np.array(inertial.inertia)
        self.arms: list[Robot] = []
        for contact in self.contacts:
            if not any(arm is contact.robot for arm in self.arms):
                self.arms.append(contact.robot)
        self.of_arm = [next(i for i, arm in enumerate(self.arms) if arm is c.robot) for c in self.contacts]
        tree = scene(
            {**{f"arm{i}": arm for i, arm in enumerate(self.arms)}, OBJECT: body}, gravity=gravity, name="grasp"
        )
        self.at = [as_placement(contact.at, f"at of contact {k}") for k, contact in enumerate(self.contacts)]
        constraints = []
        for k, (contact, arm) in enumerate(zip(self.contacts, self.of_arm, strict=True)):
            tree = tree.with_frame(f"contact{k}", OBJECT, contact.at)
            constraints.append(
                Constraint(KINDS[contact.model], f"arm{arm}/{contact.frame}", f"contact{k}", name=f"contact {k}")
            )
        self.robot = tree.with_constraints(constraints)
        self._core = self.robot._core
        self.rows = [constraint.rows for constraint in constraints]

    # coordinates of the combined robot

    def _q(self, q: Sequence[ArrayLike], pose: ArrayLike) -> np.ndarray:
        from scipy.spatial.transform import Rotation

        poses = np.asarray(pose, float)
        if poses.shape[-2:] != (4, 4):
            raise ArgumentError(f"object_pose has shape {poses.shape}, expected (..., 4, 4).")
        flat = Rotation.from_matrix(poses[..., :3, :3].reshape(-1, 3, 3)).as_quat().reshape(*poses.shape[:-2], 4)
        return self._side_by_side("q", q, [arm.nq for arm in self.arms], np.concatenate([flat, poses[..., :3, 3]], -1))

    def _rates(self, name: str, values: Sequence[ArrayLike], of_object: np.ndarray) -> np.ndarray:
        return self._side_by_side(name, values, [arm.nv for arm in self.arms], of_object)

    def _side_by_side(
        self, name: str, values: Sequence[ArrayLike], sizes: list[int], of_object: np.ndarray
    ) -> np.ndarray:
        if not isinstance(values, (list, tuple)) or len(values) != len(sizes):
            raise ArgumentError(
                f"{name} has {_count(values)}, expected a list of {len(sizes)}, one array for each arm."
            )
        arrays = [np.asarray(value, float) for value in values]
        for k, (array, size) in enumerate(zip(arrays, sizes, strict=True)):
            if array.ndim == 0 or array.shape[-1] != size:
                raise ArgumentError(f"{name} of arm {k} has shape {array.shape}, expected (..., {size}).")
        batch = np.broadcast_shapes(*(array.shape[:-1] for array in (*arrays, of_object)))
        return np.concatenate([np.broadcast_to(a, (*batch, a.shape[-1])) for a in (*arrays, of_object)], axis=-1)

    def _split(self, values: np.ndarray) -> list[np.ndarray]:
        ends = np.cumsum([arm.nv for arm in self.arms])
        return [values[..., start:end] for start, end in zip([0, *ends[:-1]], ends, strict=True)]

    def _object_rates(self, R: np.ndarray, twist: np.ndarray) -> np.ndarray:
        """Return [w; v] of the object's origin in its frame, from the twist of its center of mass in the world."""
        w, v = twist[..., :3], twist[..., 3:]
        back = np.swapaxes(R, -1, -2)
        return np.concatenate([turn(back, w), turn(back, v - cross(w, turn(R, self.com)))], axis=-1)

    def _object_acceleration(self, R: np.ndarray, rates: np.ndarray, change: np.ndarray) -> np.ndarray:
        """Return [dw; dv] of the center of mass along the world axes, from the derivatives of the rates."""
        w, v, dw, dv = rates[..., :3], rates[..., 3:], change[..., :3], change[..., 3:]
        at_com = dv + cross(w, v) + cross(dw, self.com) + cross(w, cross(w, self.com))
        return np.concatenate([turn(R, dw), turn(R, at_com)], axis=-1)

    def _object_change(self, R: np.ndarray, rates: np.ndarray, acceleration: np.ndarray) -> np.ndarray:
        """The reverse of `_object_acceleration`."""
        back, w, v = np.swapaxes(R, -1, -2), rates[..., :3], rates[..., 3:]
        dw, dv = turn(back, acceleration[..., :3]), turn(back, acceleration[..., 3:])
        return np.concatenate([dw, dv - cross(w, v) - cross(dw, self.com) - cross(w, cross(w, self.com))], axis=-1)

    # dynamics

    def forward_dynamics(
        self, q: Sequence[ArrayLike], qd: Sequence[ArrayLike], tau: Sequence[ArrayLike], object_pose: ArrayLike,
        object_twist: ArrayLike | None,
        wrench: ArrayLike | None = None, *, check: bool = True,
    ) -> GraspDynamics:  # fmt: skip
        """Return the accelerations of arms and object, and the contact forces.

        The contacts hold even outside their friction cones; `slipping` of the result reports those.

        Parameters
        ----------
        q, qd, tau : lists of arrays
            Coordinates (..., nq), velocities (..., nv) and torques (..., nv) of each arm.
        object_pose : (..., 4, 4)
            Pose of the object in the world.
        object_twist, wrench : (..., 6)
            [angular; linear] velocity, and external [moment; force] without gravity, at the center of mass along the
            world axes. Zero by default.
        check : bool
            Raise ArgumentError for states that violate a contact.

        Returns
        -------
        GraspDynamics
        """
        R, twist, force = self._object_state(object_pose, object_twist, wrench)
        rates = self._object_rates(R, twist)
        local_force = turn(np.swapaxes(R, -1, -2), force[..., 3:])
        moment = turn(np.swapaxes(R, -1, -2), force[..., :3]) + cross(self.com, local_force)
        Q, V = self._q(q, object_pose), self._rates("qd", qd, rates)
        T = self._rates("tau", tau, np.concatenate([moment, local_force], axis=-1))
        if check:
            self._check(Q, V)
        names = ("forward_dynamics", "multipliers", "constraint_forces")
        parts = (*self._core.parts(names), self._core.internal(REDUNDANCY))
        qdd, multipliers, forces, redundancy = self._core.function(*parts)(Q, V, T)
        warn_if_constraints_singular(self._core, "forward_dynamics", Q, redundancy)
        acceleration = self._object_acceleration(R, rates, qdd[..., -6:])
        return GraspDynamics(self, self._split(qdd[..., :-6]), acceleration, -forces, multipliers, (Q, V, qdd, R))

    def inverse_dynamics(
        self, q: Sequence[ArrayLike], qd: Sequence[ArrayLike], object_pose: ArrayLike,
        object_twist: ArrayLike | None, object_acceleration: ArrayLike,
        wrench: ArrayLike | None = None, *, internal: ArrayLike | None = None,
        sharing: ArrayLike | None = None, qdd: Sequence[ArrayLike] | None = None,
        check: bool = True,
    ) -> tuple[list[np.ndarray], np.ndarray]:  # fmt: skip
        """Return torques of each arm for a desired motion of the object, and the contact forces on it.

        Parameters
        ----------
        q, qd, object_pose, object_twist, wrench, check
            As in `forward_dynamics`.
        object_acceleration : (..., 6)
            [angular; linear] acceleration of the center of mass along the world axes.
        internal : (..., contacts, 6)
            Contact forces whose internal part (without effect on the object) is added.
        sharing : (contacts,)
            Positive weights: the share of the load that each contact takes. Equal by default.
        qdd : list of arrays
            Accelerations (..., nv) of the arms. By default the smallest that follow the object.

        Raises
        ------
        ArgumentError
            If the arms cannot follow the object, or if the contacts cannot transmit the necessary wrench.
        """
        R, twist, force = self._object_state(object_pose, object_twist, wrench)
        rates = self._object_rates(R, twist)
        change = self._object_change(R, rates, np.asarray(object_acceleration, float))
        Q, V = self._q(q, object_pose), self._rates("qd", qd, rates)
        if check:
            self._check(Q, V)
        K, k = self.robot.constraint_jacobian(Q), self.robot.constraint_bias(Q, V)
        if qdd is None:
            needed = -k - (K[..., -6:] @ change[..., None])[..., 0]
            arms = (np.linalg.pinv(K[..., :-6], rcond=1e-10) @ needed[..., None])[..., 0]
        else:
            arms = self._rates("qdd", qdd, change)[..., :-6]
        left = np.abs((K[..., :-6] @ arms[..., None] + K[..., -6:] @ change[..., None])[..., 0] + k).max(initial=0.0)
        if left > 1e-6 * (1.0 + np.abs(change).max(initial=0.0) + np.abs(k).max(initial=0.0)):
            raise ArgumentError(
                f"inverse_dynamics: the arms cannot follow the object; the acceleration residual at the contacts is "
                f"{left:.3g} (m/s^2, rad/s^2)."
            )
        whole = np.concatenate([np.broadcast_to(arms, (*k.shape[:-1], arms.shape[-1])),
                                np.broadcast_to(change, (*k.shape[:-1], 6))], axis=-1)  # fmt: skip
        tree = ClosedChain(self._core).tree_torques(Q, V, whole)
        load = np.concatenate([turn(R, tree[..., -6:-3]), turn(R, tree[..., -3:])], axis=-1)  # at the object's origin
        load[..., :3] -= cross(turn(R, self.com), load[..., 3:])
        S = wrench_basis(self, R)
        G = grasp_map(self, R, S)
        multipliers = self._shared(G, load - force, sharing)
        if internal is not None:
            requested = np.asarray(internal, float)
            if requested.shape[-2:] != (len(self.contacts), 6):
                raise ArgumentError(f"internal has shape {requested.shape}, expected (..., {len(self.contacts)}, 6).")
            components = np.einsum("...kij,...ki->...kj", _stacked(S), requested)
            components = np.concatenate([components[..., c, :n] for c, n in enumerate(self.rows)], axis=-1)
            basis = null_basis(G)
            multipliers = multipliers + np.einsum("...ij,...kj,...k->...i", basis, basis, components)
        torques = tree + (np.swapaxes(K, -1, -2) @ multipliers[..., None])[..., 0]
        starts = np.cumsum([0, *self.rows])
        forces = np.stack(
            [(s @ multipliers[..., starts[c] : starts[c + 1], None])[..., 0] for c, s in enumerate(S)], axis=-2
        )
        return self._split(torques[..., :-6]), forces

    def _shared(self, G: np.ndarray, load: np.ndarray, sharing: ArrayLike | None) -> np.ndarray:
        shares = np.ones(len(self.contacts)) if sharing is None else np.asarray(sharing, float)
        if shares.shape != (len(self.contacts),) or not (shares > 0).all():
            raise ArgumentError(f"sharing is {shown(sharing)}, expected {len(self.contacts)} positive numbers.")
        weight = np.sqrt(np.repeat(shares, self.rows))
        multipliers = weight * (np.linalg.pinv(G * weight, rcond=1e-10) @ load[..., None])[..., 0]
        left = np.abs((G @ multipliers[..., None])[..., 0] - load).max(initial=0.0)
        if left > 1e-8 * (1.0 + np.abs(load).max(initial=0.0)):
            raise ArgumentError(
                f"inverse_dynamics: the contacts cannot transmit the wrench that the object needs; the residual is "
                f"{left:.3g} (N, N m)."
            )
        return multipliers

    def consistent_velocities(
        self, q: Sequence[ArrayLike], object_pose: ArrayLike, object_twist: ArrayLike | None
    ) -> list[np.ndarray]:
        """Return the smallest velocities (..., nv) of each arm that keep the contacts for an object twist."""
        R, twist, _ = self._object_state(object_pose, object_twist, None)
        K = self.robot.constraint_jacobian(self._q(q, object_pose))
        needed = -(K[..., -6:] @ self._object_rates(R, twist)[..., None])
        rates = np.linalg.pinv(K[..., :-6], rcond=1e-10) @ needed
        left = np.abs(K[..., :-6] @ rates - needed).max(initial=0.0)
        if left > 1e-8 * (1.0 + np.abs(twist).max(initial=0.0)):
            raise ArgumentError(
                f"consistent_velocities: the arms cannot follow this twist; the velocity residual at the contacts is "
                f"{left:.3g} (m/s, rad/s)."
            )
        return self._split(rates[..., 0])

    def grasp_map(self, object_pose: ArrayLike) -> np.ndarray:
        """Return G (..., 6, rows), which maps contact force components to the wrench at the center of mass."""
        R = np.asarray(object_pose, float)[..., :3, :3]
        return grasp_map(self, R, wrench_basis(self, R))

    def internal_force_basis(self, object_pose: ArrayLike) -> np.ndarray:
        """Return an orthonormal basis (..., count, contacts, 6) of the contact forces without effect on the object."""
        R = np.asarray(object_pose, float)[..., :3, :3]
        S = wrench_basis(self, R)
        basis, starts = null_basis(grasp_map(self, R, S)), np.cumsum([0, *self.rows])
        parts = [s @ basis[..., starts[c] : starts[c + 1], :] for c, s in enumerate(S)]
        return np.moveaxis(np.stack(parts, axis=-3), -1, -3)

    def _object_state(
        self, pose: ArrayLike, twist: ArrayLike | None, wrench: ArrayLike | None
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        R = np.asarray(pose, float)
        if R.shape[-2:] != (4, 4):
            raise ArgumentError(f"object_pose has shape {R.shape}, expected (..., 4, 4).")
        V = np.zeros(6) if twist is None else np.asarray(twist, float)
        F = np.zeros(6) if wrench is None else np.asarray(wrench, float)
        for name, array in (("object_twist", V), ("wrench", F)):
            if array.shape[-1:] != (6,):
                raise ArgumentError(f"{name} has shape {array.shape}, expected (..., 6).")
        batch = np.broadcast_shapes(R.shape[:-2], V.shape[:-1], F.shape[:-1])
        return (np.broadcast_to(R[..., :3, :3], (*batch, 3, 3)), np.broadcast_to(V, (*batch, 6)),
                np.broadcast_to(F, (*batch, 6)))  # fmt: skip

    def _check(self, Q: np.ndarray, V: np.ndarray) -> None:
        """Raise ArgumentError if a contact is open, or if its frames move apart."""
        starts = np.cumsum([0, *self.rows])
        error, K = self.robot.constraint_error(Q), self.robot.constraint_jacobian(Q)
        speed = (K @ np.broadcast_to(V, (*K.shape[:-2], K.shape[-1]))[..., None])[..., 0]
        for c, contact in enumerate(self.contacts):
            lengths = slice(starts[c + 1] - min(3, self.rows[c]), starts[c + 1])  # a rigid contact may be rotated
            gap = float(np.abs(error[..., lengths]).max(initial=0.0))
            if not gap < 1e-5:
                raise ArgumentError(
                    f"contact {c}: the frame {contact.frame!r} is {gap:.3g} m from the contact on the object, expected "
                    f"less than 1e-5 m (check=False omits this check)."
                )
            slip = float(np.abs(speed[..., starts[c] : starts[c + 1]]).max(initial=0.0))
            if not slip < 1e-6 * (1.0 + np.abs(V).max(initial=0.0)):
                raise ArgumentError(
                    f"contact {c}: the arm and the object move apart at {slip:.3g} (m/s, rad/s); consistent_velocities "
                    f"computes velocities that keep the contacts (check=False omits this check)."
                )

    def __repr__(self) -> str:
        kinds = ", ".join(contact.model for contact in self.contacts)
        return f"<Grasp: {len(self.arms)} arms, contacts {kinds}>"


def _stacked(S: list[np.ndarray]) -> np.ndarray:
    """Return the wrench bases (..., contacts, 6, 6), padded with zero columns."""
    return np.stack([np.pad(s, [(0, 0)] * (s.ndim - 1) + [(0, 6 - s.shape[-1])]) for s in S], axis=-3)


def _count(values: object) -> str:
    return f"{len(values)} entries" if isinstance(values, Sized) else shown(values)


# ---- Results, and the algebra of contact wrenches

COLUMNS = {  # of the wrench basis, [moment; force] along the contact frame's axes, as the rows of the constraints
    "rigid": (0, 1, 2, 3, 4, 5), "point": (3, 4, 5), "soft_finger": (2, 3, 4, 5), "frictionless": (5,),
}  # fmt: skip


class GraspDynamics:
    """Accelerations and forces of a grasp.

    Attributes
    ----------
    qdd : list of arrays (..., nv)
        Accelerations of each arm.
    object_acceleration : (..., 6)
        [angular; linear] of the center of mass along the world axes.
    contact_forces : (..., contacts, 6)
        [moment; force] on the object, at the contact, along the world axes.
    internal_forces : (..., contacts, 6)
        The part of the contact forces without effect on the object.
    margins : (..., contacts)
        Distance of the contact force to its friction cone (N): the smaller of the normal force and friction times the
        normal force minus the tangential force. Infinite for a contact without limits, negative where it would slip or
        pull off.
    spin_margins : (..., contacts)
        `spin` times the normal force minus the moment about the normal (N m), negative where the contact would spin.
    slipping : (..., contacts)
        Where a margin is negative. The solution holds these contacts nevertheless.
    rank : (...)
        Rank of S^T (Omega + A M^-1 A^T) S of the contacts.
    residual : (...)
        Largest acceleration residual of the contacts.
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
        """The part (..., contacts, 6) of the contact forces without effect on the object."""
        S = wrench_basis(self.grasp, self._state[3])
        basis = null_basis(grasp_map(self.grasp, self._state[3], S))
        inner = np.einsum("...ij,...kj,...k->...i", basis, basis, self.multipliers)
        starts = np.cumsum([0, *self.grasp.rows])
        return np.stack([(s @ inner[..., starts[c] : starts[c + 1], None])[..., 0] for c, s in enumerate(S)], axis=-2)

    @functools.cached_property
    def rank(self) -> np.ndarray:
        """Rank (...) of the contacts' matrix S^T (Omega + A M^-1 A^T) S."""
        K = self.grasp.robot.constraint_jacobian(self._state[0])
        return rank_of(K @ self.grasp.robot.mass_matrix_inverse(self._state[0]) @ np.swapaxes(K, -1, -2))

    @functools.cached_property
    def residual(self) -> np.ndarray:
        """Largest acceleration residual (...) of the contacts."""
        q, qd, qdd, _ = self._state
        robot = self.grasp.robot
        residual = (robot.constraint_jacobian(q) @ qdd[..., None])[..., 0] + robot.constraint_bias(q, qd)
        return np.abs(residual).max(axis=-1)

    @functools.cached_property
    def margins(self) -> np.ndarray:
        """Distance (..., contacts) of contact forces to their friction cone (N), infinite for rigid contacts."""
        margins = []
        for contact, force in zip(self.grasp.contacts, self._by_contact(), strict=True):
            margin = force[..., -1] if contact.model != "rigid" else np.full(force.shape[:-1], np.inf)
            if contact.friction is not None and contact.model not in ("rigid", "frictionless"):
                across = np.hypot(force[..., -3], force[..., -2])
                margin = np.minimum(margin, contact.friction * force[..., -1] - across)
            margins.append(margin)
        return np.stack(margins, axis=-1)

    @functools.cached_property
    def spin_margins(self) -> np.ndarray:
        """Distance (..., contacts) of moments about the normal to their bound (N m)."""
        margins = []
        for contact, force in zip(self.grasp.contacts, self._by_contact(), strict=True):
            if contact.spin is not None and contact.model == "soft_finger":
                margins.append(contact.spin * force[..., -1] - np.abs(force[..., 0]))
            else:
                margins.append(np.full(force.shape[:-1], np.inf))
        return np.stack(margins, axis=-1)

    def _by_contact(self) -> list[np.ndarray]:
        starts = np.cumsum([0, *self.grasp.rows])
        return [self.multipliers[..., a:b] for a, b in itertools.pairwise(starts)]

    @property
    def slipping(self) -> np.ndarray:
        """Contacts (..., contacts) whose force is outside its friction cone."""
        return (self.margins < 0) | (self.spin_margins < 0)

    def __repr__(self) -> str:
        slips = [k for k in range(len(self.grasp.contacts)) if np.any(self.slipping[..., k])]
        verdict = f"contacts {slips} are outside their friction cones" if slips else "all contacts inside their cones"
        return f"<GraspDynamics of {self.grasp!r}: {verdict}>"


def wrench_basis(grasp: Grasp, R: np.ndarray) -> list[np.ndarray]:
    """Return S (..., 6, rows) of each contact, at the contact along the world axes; R: rotation of the object."""
    columns = []
    for contact, at in zip(grasp.contacts, grasp.at, strict=True):
        axes = R @ np.array(at.rotation)
        full = np.zeros((*axes.shape[:-2], 6, 6))
        full[..., :3, :3] = full[..., 3:, 3:] = axes
        columns.append(full[..., list(COLUMNS[contact.model])])
    return columns


def grasp_map(grasp: Grasp, R: np.ndarray, S: list[np.ndarray]) -> np.ndarray:
    """Return [A_1^T S_1 ... A_p^T S_p] (..., 6, rows), from contact forces to wrenches at the center of mass."""
    columns = []
    for at, s in zip(grasp.at, S, strict=True):
        arm = turn(R, np.array(at.position) - grasp.com)
        moments = s[..., :3, :] + np.cross(arm[..., None, :], np.swapaxes(s[..., 3:, :], -1, -2)).swapaxes(-1, -2)
        columns.append(np.concatenate([moments, s[..., 3:, :]], axis=-2))
    return np.concatenate(columns, axis=-1)


def null_basis(G: np.ndarray) -> np.ndarray:
    """Return an orthonormal basis (..., rows, count) of the null space; for the largest rank in the batch."""
    _, values, v = np.linalg.svd(G, full_matrices=True)
    largest = max(float(values.max(initial=0.0)), 1e-300)
    rank = int((values > 1e-10 * largest).sum(axis=-1).max(initial=0))
    return np.swapaxes(v[..., rank:, :], -1, -2)


def turn(R: np.ndarray, v: ArrayLike) -> np.ndarray:
    return (R @ np.asarray(v)[..., None])[..., 0]


def cross(a: ArrayLike, b: ArrayLike) -> np.ndarray:
    return np.cross(np.asarray(a), np.asarray(b))
