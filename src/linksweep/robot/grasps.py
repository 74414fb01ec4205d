"""Several arms and one object: grasps by name, on one constrained robot of all of them.

Arm i has M qdd + h + J^T f = tau, the object M_o dV/dt + b_o = F + sum A_i^T f_i, and a contact ties the arm's frame to
the object's contact frame. It is the problem of Part II of G. Rodriguez and K. Kreutz 1988, of which we have the table
of contents only; the method is that of algorithms/closed_chain. Contact forces f = S lambda lie in the wrench basis S
of the contact's model; a contact that slides or turns keeps its point and its normal in the object.
"""

from __future__ import annotations

from collections.abc import Sequence, Sized
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from ..description.constraints import Constraint, as_placement
from ..errors import ArgumentError
from ..support.messages import is_one_of, nearest, shown
from .closed_chains import ClosedChain
from .constraints import REDUNDANCY, warn_if_constraints_singular
from .grasp_results import GraspDynamics, cross, grasp_map, null_basis, turn, wrench_basis
from .robot import Robot
from .scenes import body_inertial, scene

KINDS = {"rigid": "rigid", "point": "point", "soft_finger": "soft_finger", "frictionless": "plane"}
OBJECT = "object"


@dataclass(frozen=True, eq=False)
class Contact:
    """Where an arm touches the object.

    frame: of the robot. at: (4, 4), the contact frame in the object's, z the inward normal. model: "rigid", "point"
    (three forces), "soft_finger" (and a moment about the normal) or "frictionless" (the normal force alone). friction:
    |tangential force| <= friction * normal force; spin: |moment about the normal| <= spin * normal force; None: no
    bound.
    """

    robot: Robot
    frame: str
    at: ArrayLike | None = None
    model: str = "rigid"
    friction: float | None = None
    spin: float | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.robot, Robot):
            raise ArgumentError(f"a contact got {shown(self.robot)}, expected a Robot: use linksweep.load.")
        if not is_one_of(self.model, KINDS):
            raise ArgumentError(
                f"there is no contact model {shown(self.model)}{nearest(self.model, KINDS)}: expected one of "
                f"{', '.join(KINDS)}."
            )
        if not is_one_of(self.frame, self.robot.frame_names):
            raise ArgumentError(
                f"{self.robot.name} has no frame {shown(self.frame)}{nearest(self.frame, self.robot.frame_names)}: "
                f"name one with robot.with_frame."
            )
        for name in ("friction", "spin"):
            value = getattr(self, name)
            if value is not None and not (isinstance(value, (int, float)) and 0 <= value < np.inf):
                raise ArgumentError(f"{name} of the contact is {shown(value)}, expected a number from 0 on, or None.")


class Grasp:
    """An object held by arms. `robot` is all of them as one constrained Robot: arm0/..., arm1/..., and the object.

    body: the ten numbers of `linksweep.body`, in the object's frame. Contacts of the same Robot object are fingers of
    one arm; `arms` are the robots in the order in which contacts name them. Arrays have any leading batch shape.
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
        ties = []
        for k, (contact, arm) in enumerate(zip(self.contacts, self.of_arm, strict=True)):
            tree = tree.with_frame(f"contact{k}", OBJECT, contact.at)
            ties.append(
                Constraint(KINDS[contact.model], f"arm{arm}/{contact.frame}", f"contact{k}", name=f"contact {k}")
            )
        self.robot = tree.with_constraints(ties)
        self._core = self.robot._core
        self.rows = [tie.rows for tie in ties]

    # the forest's coordinates

    def _q(self, q: Sequence[ArrayLike], pose: ArrayLike) -> np.ndarray:
        from scipy.spatial.transform import Rotation

        poses = np.asarray(pose, float)
        if poses.shape[-2:] != (4, 4):
            raise ArgumentError(f"object_pose has shape {poses.shape}, expected (..., 4, 4): the object in the world.")
        flat = Rotation.from_matrix(poses[..., :3, :3].reshape(-1, 3, 3)).as_quat().reshape(*poses.shape[:-2], 4)
        return self._side_by_side("q", q, [arm.nq for arm in self.arms], np.concatenate([flat, poses[..., :3, 3]], -1))

    def _rates(self, name: str, values: Sequence[ArrayLike], own: np.ndarray) -> np.ndarray:
        return self._side_by_side(name, values, [arm.nv for arm in self.arms], own)

    def _side_by_side(self, name: str, values: Sequence[ArrayLike], sizes: list[int], own: np.ndarray) -> np.ndarray:
        if not isinstance(values, (list, tuple)) or len(values) != len(sizes):
            raise ArgumentError(
                f"{name} has {_count(values)}, expected a list of {len(sizes)}, one array for each arm."
            )
        arrays = [np.asarray(value, float) for value in values]
        for k, (array, size) in enumerate(zip(arrays, sizes, strict=True)):
            if array.ndim == 0 or array.shape[-1] != size:
                raise ArgumentError(f"{name} of arm {k} has shape {array.shape}, expected (..., {size}).")
        batch = np.broadcast_shapes(*(array.shape[:-1] for array in (*arrays, own)))
        return np.concatenate([np.broadcast_to(a, (*batch, a.shape[-1])) for a in (*arrays, own)], axis=-1)

    def _split(self, values: np.ndarray) -> list[np.ndarray]:
        ends = np.cumsum([arm.nv for arm in self.arms])
        return [values[..., start:end] for start, end in zip([0, *ends[:-1]], ends, strict=True)]

    def _object_rates(self, R: np.ndarray, twist: np.ndarray) -> np.ndarray:
        """[w; v] of the object's origin in its own frame, from those of its mass centre along the world's axes."""
        w, v = twist[..., :3], twist[..., 3:]
        back = np.swapaxes(R, -1, -2)
        return np.concatenate([turn(back, w), turn(back, v - cross(w, turn(R, self.com)))], axis=-1)

    def _object_acceleration(self, R: np.ndarray, rates: np.ndarray, change: np.ndarray) -> np.ndarray:
        """[dw; dv] of the mass centre along the world's axes, from the derivatives of the rates."""
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
        """Accelerations of arms and object, and contact forces; q, qd, tau: one array for each arm.

        object_twist, wrench: [angular; linear] and [moment; force] at the mass centre along the world's axes; gravity
        is not part of the wrench. check: refuse states that break the contacts. The contacts hold whatever their
        friction cones say: `slipping` tells which would not.
        """
        R, twist, force = self._object_state(object_pose, object_twist, wrench)
        rates = self._object_rates(R, twist)
        own_force = turn(np.swapaxes(R, -1, -2), force[..., 3:])
        moment = turn(np.swapaxes(R, -1, -2), force[..., :3]) + cross(self.com, own_force)
        Q, V = self._q(q, object_pose), self._rates("qd", qd, rates)
        T = self._rates("tau", tau, np.concatenate([moment, own_force], axis=-1))
        if check:
            self._check(Q, V)
        names = ("forward_dynamics", "multipliers", "constraint_forces")
        requests = (*self._core.requests(names), REDUNDANCY)
        qdd, multipliers, forces, redundancy = self._core.function(requests)(Q, V, T)
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
        """Torques for each arm that move the object as wanted, and the contact forces (..., contacts, 6) on it.

        internal: contact forces (contacts, 6) whose part that does nothing to the object is held. sharing: (contacts,)
        positive numbers, how much of the load each contact takes. qdd: of the arms; None takes the least that follows
        the object.
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
                f"inverse_dynamics: the arms cannot follow the object, {left:.3g} of its acceleration is left at a "
                f"contact: choose another motion, or qdd that follow it."
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
            given = np.asarray(internal, float)
            if given.shape[-2:] != (len(self.contacts), 6):
                raise ArgumentError(f"internal has shape {given.shape}, expected (..., {len(self.contacts)}, 6).")
            own = np.einsum("...kij,...ki->...kj", _stacked(S), given)
            own = np.concatenate([own[..., c, :n] for c, n in enumerate(self.rows)], axis=-1)
            basis = null_basis(G)
            multipliers = multipliers + np.einsum("...ij,...kj,...k->...i", basis, basis, own)
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
        found = weight * (np.linalg.pinv(G * weight, rcond=1e-10) @ load[..., None])[..., 0]
        left = np.abs((G @ found[..., None])[..., 0] - load).max(initial=0.0)
        if left > 1e-8 * (1.0 + np.abs(load).max(initial=0.0)):
            raise ArgumentError(
                f"inverse_dynamics: the contacts cannot make the wrench that the object needs, {left:.3g} of it is "
                f"left: add contacts, or ask for another motion."
            )
        return found

    def consistent_velocities(
        self, q: Sequence[ArrayLike], object_pose: ArrayLike, object_twist: ArrayLike | None
    ) -> list[np.ndarray]:
        """Rates of each arm, the least ones that keep its contacts while the object moves with object_twist."""
        R, twist, _ = self._object_state(object_pose, object_twist, None)
        K = self.robot.constraint_jacobian(self._q(q, object_pose))
        needed = -(K[..., -6:] @ self._object_rates(R, twist)[..., None])
        rates = np.linalg.pinv(K[..., :-6], rcond=1e-10) @ needed
        left = np.abs(K[..., :-6] @ rates - needed).max(initial=0.0)
        if left > 1e-8 * (1.0 + np.abs(twist).max(initial=0.0)):
            raise ArgumentError(
                f"consistent_velocities: the arms cannot follow this twist, {left:.3g} of it is left at a contact: "
                f"choose another twist, or another pose of the arms."
            )
        return self._split(rates[..., 0])

    def grasp_map(self, object_pose: ArrayLike) -> np.ndarray:
        """G (..., 6, rows): from the contacts' own forces to the wrench at the mass centre along the world's axes."""
        R = np.asarray(object_pose, float)[..., :3, :3]
        return grasp_map(self, R, wrench_basis(self, R))

    def internal_force_basis(self, object_pose: ArrayLike) -> np.ndarray:
        """Contact forces (..., count, contacts, 6) that do nothing to the object, an orthonormal basis of them."""
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
            raise ArgumentError(f"object_pose has shape {R.shape}, expected (..., 4, 4): the object in the world.")
        V = np.zeros(6) if twist is None else np.asarray(twist, float)
        F = np.zeros(6) if wrench is None else np.asarray(wrench, float)
        for name, array in (("object_twist", V), ("wrench", F)):
            if array.shape[-1:] != (6,):
                raise ArgumentError(f"{name} has shape {array.shape}, expected (..., 6), at the mass centre.")
        batch = np.broadcast_shapes(R.shape[:-2], V.shape[:-1], F.shape[:-1])
        return (np.broadcast_to(R[..., :3, :3], (*batch, 3, 3)), np.broadcast_to(V, (*batch, 6)),
                np.broadcast_to(F, (*batch, 6)))  # fmt: skip

    def _check(self, Q: np.ndarray, V: np.ndarray) -> None:
        """Refuse what breaks a contact from the start: its gap, or its speed."""
        starts = np.cumsum([0, *self.rows])
        error, K = self.robot.constraint_error(Q), self.robot.constraint_jacobian(Q)
        speed = (K @ np.broadcast_to(V, (*K.shape[:-2], K.shape[-1]))[..., None])[..., 0]
        for c, contact in enumerate(self.contacts):
            own = slice(
                starts[c + 1] - min(3, self.rows[c]), starts[c + 1]
            )  # the rows of lengths; a weld may be turned
            gap = float(np.abs(error[..., own]).max(initial=0.0))
            if not gap < 1e-5:
                raise ArgumentError(
                    f"contact {c}: the frame {contact.frame!r} stands {gap:.3g} m from the contact on the object, "
                    f"expected it there: correct q, object_pose or at (check=False goes on)."
                )
            slip = float(np.abs(speed[..., starts[c] : starts[c + 1]]).max(initial=0.0))
            if not slip < 1e-6 * (1.0 + np.abs(V).max(initial=0.0)):
                raise ArgumentError(
                    f"contact {c}: the arm and the object move apart at {slip:.3g}, expected one velocity along what "
                    f"the contact holds: use consistent_velocities (check=False goes on)."
                )

    def __repr__(self) -> str:
        kinds = ", ".join(contact.model for contact in self.contacts)
        return f"<Grasp: {len(self.arms)} arms, contacts {kinds}>"


def _stacked(S: list[np.ndarray]) -> np.ndarray:
    """Wrench bases (..., contacts, 6, 6), columns that a contact does not have being 0."""
    return np.stack([np.pad(s, [(0, 0)] * (s.ndim - 1) + [(0, 6 - s.shape[-1])]) for s in S], axis=-3)


def _count(values: object) -> str:
    return f"{len(values)} entries" if isinstance(values, Sized) else shown(values)
