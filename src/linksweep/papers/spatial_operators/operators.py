"""The spatial operators of Rodriguez & Kreutz 1988 at one configuration; each product is a sweep over the links.

G. Rodriguez and K. Kreutz, "Recursive Mass Matrix Factorization and Inversion: An Operator Approach to Open- and
Closed-Chain Multibody Dynamics", 1988, Part I, sections 3-5 and Appendix A.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ...algorithms.mass_matrix.factorization import Gain, gains
from ...errors import ArgumentError, DescriptionError, SingularError
from ...mechanism.bias import classical_bias_force
from ...mechanism.canonical import CanonicalModel, canonical
from ...mechanism.joints import Coordinates, JointInertia, Span
from ...mechanism.sweeps import PerLink
from ...model.model import BASE
from ...robot.robot import Robot, checked_robot
from ...spatial.algebra import ZERO_MOTION, Force, Motion, Vec, centripetal
from ...spatial.transforms import Shift
from ...support.checks import refuse_foreign
from ...support.lazy import lazy as cached_property
from ...support.messages import listing, nearest, shown
from .chain import (
    Carry,
    SpatialOperator,
    Stack,
    TurnedChain,
    TurnedLink,
    carry_nothing,
    carry_nothing_T,
    carry_phi,
    carry_phi_T,
    carry_psi,
    carry_psi_T,
    causal,
    from_base,
    from_tips,
    identity,
    join,
    memoryless,
    strictly_causal,
)


def operators(robot: Robot, q: ArrayLike, tip: str | Sequence[str] | None = None) -> SpatialOperators:
    """Spatial operators of a robot at the configuration q (nq,), for any tree and joint types.

    tip: the frame whose origin is the paper's O(0), or several frames, whose forces and motions are stacked in B and J;
    by default the last frame of the last link.
    """
    return SpatialOperators(robot, q, tip)


class SpatialOperators:
    """phi, H, M ... as LinearOperators. All vectors are in the paper's order, from tip to base, k = 1 ... N.

    A spatial vector (6N,) stacks [angular; linear] or [moment; force] of each link, along the axes of the base, at the
    origin O(k) of the link's joint frame in the robot model. A joint vector (N,) has theta(k). `to_paper` and
    `from_paper` convert between this order and that of robot.joint_names; `links` names the links in the paper's order.
    """

    def __init__(self, robot: Robot, q: ArrayLike, tip: str | Sequence[str] | None = None):
        checked_robot(robot, "operators")
        if robot.couplings:
            raise ArgumentError(
                f"operators: {robot.name} has coupled (mimic) joints, expected independent joints: use "
                f"robot.uncoupled, at robot.expand(q)."
            )
        # the origins O(k) are those of the joints in the robot model, not those for which the recursions are cheapest
        model = canonical(robot.model, described_frames=True)
        self.robot = robot
        self.q = _checked_vector("operators: q", q, robot.nq).copy()
        self.tip = _checked_tip(robot, model, tip)
        self._chain = TurnedChain(model, self.q.tolist())
        self.N = len(model.links)
        self.links = tuple(link.name for link in reversed(model.links))
        # the index of theta(k) among the robot's velocities
        self.order = np.array([link.start + f for link in reversed(model.links) for f in range(link.nv)])
        self.q.flags.writeable = self.order.flags.writeable = False
        self._tips: list[tuple[int, Vec]] = []  # link and l(1, 0) of each tip
        for name in (self.tip,) if isinstance(self.tip, str) else self.tip:
            frame = model.frame(name)
            pose = self._chain.poses[frame.link]
            self._tips.append((frame.link, pose.point(Vec(*frame.placement.position)) - pose.p))
        self._none = self._chain.same(None)

    def __repr__(self) -> str:
        return f"<spatial operators of {self.robot.name}, N = {self.N}, tip {self.tip}>"

    @cached_property
    def carriers(self) -> tuple[int, ...]:
        """The parent of each link k = 1 ... N, which is k + 1 in a chain; N + 1 is the base."""
        parents = [link.parent for link in reversed(self._chain.model.links)]
        return tuple(self.N - parent if parent != BASE else self.N + 1 for parent in parents)

    def dense(self, a: SpatialOperator | np.ndarray) -> np.ndarray:
        """The matrix of an operator; a matrix is returned unchanged."""
        return a if isinstance(a, np.ndarray) else a.todense()

    # the paper's order and the robot's

    def to_paper(self, x: ArrayLike) -> np.ndarray:
        """Joint vectors (..., nv) in the order of robot.joint_names, as theta(1) ... theta(N)."""
        return _vectors(x)[..., self.order]

    def from_paper(self, x: ArrayLike) -> np.ndarray:
        """Joint vectors (..., nv) theta(1) ... theta(N), in the order of robot.joint_names."""
        return _vectors(x)[..., np.argsort(self.order)]

    # section 3

    @cached_property
    def I(self) -> SpatialOperator:  # noqa: E743  (the paper's symbol)
        """The identity of spatial vectors, 6N by 6N."""
        return identity("I", 6 * self.N)

    @cached_property
    def I_N(self) -> SpatialOperator:
        """The identity of joint vectors, nv by nv, which is N by N if every joint has one DOF."""
        return identity("I_N", self._chain.joints.size)

    @cached_property
    def phi(self) -> SpatialOperator:
        """(3.4), lower block triangular: block (i, j) is phi(i, j) of (3.1)."""
        return causal("phi", self._chain, carry_phi, carry_phi_T, self._none)

    @cached_property
    def H(self) -> SpatialOperator:
        """(3.5): diag H(k), N by 6N."""

        def project(link: TurnedLink, f: Force, at: None) -> Coordinates:
            return link.H(f)

        def spread(link: TurnedLink, rates: Coordinates, at: None) -> Motion:
            return link.H_T @ rates

        chain = self._chain
        return memoryless("H", chain, (chain.forces, project), (chain.joints, spread), self._none)

    @cached_property
    def M(self) -> SpatialOperator:
        """(3.6): diag M(k), the spatial inertias (2.15) of the links."""
        self._check_inertia()

        def times(link: TurnedLink, v: Motion, at: None) -> Force:
            return link.M @ v

        return self._symmetric("M", self._chain.motions, times, self._none)

    @cached_property
    def B(self) -> SpatialOperator:
        """(3.7): a force at the tip as one on its link, 6N by 6: [phi(1, 0); 0 ... 0]; of several, 6 for each."""
        return from_tips("B", self._chain, [(link, Shift(arm)) for link, arm in self._tips])

    @cached_property
    def E(self) -> SpatialOperator:
        """(3.8) as corrected: an acceleration of the base as one of link N, 6N by 6: [0 ... 0; phi^T(N+1, N)]."""
        return from_base("E", self._chain)

    @cached_property
    def J(self) -> SpatialOperator:
        """(3.13): the Jacobian of the tip, 6 by N: B^T phi^T H^T."""
        return (self.B.T @ self.phi.T @ self.H.T).named("J")

    @cached_property
    def R(self) -> SpatialOperator:
        """diag R(k), the joints' armatures: the measurement noise of the filter. The paper has none."""

        def times(link: TurnedLink, x: Coordinates, at: None) -> Coordinates:
            return x * link.armature

        return self._symmetric("R", self._chain.joints, times, self._none)

    @cached_property
    def mass(self) -> SpatialOperator:
        """(3.20): the mass operator, N by N: H phi M phi^T H^T, plus R."""
        return (self.H @ self.phi @ self.M @ self.phi.T @ self.H.T + self.R).named("mass")

    @property
    def g(self) -> np.ndarray:
        """(3.21): the acceleration (6,) of the base that represents gravity, [0; minus gravity]."""
        return np.concatenate([np.zeros(3), -np.array(self.robot.gravity, dtype=float)])

    def V(self, thetadot: ArrayLike) -> np.ndarray:
        """(3.12): the links' spatial velocities (6N,), phi^T H^T thetadot."""
        return self._velocity_terms(thetadot)[0]

    def a(self, thetadot: ArrayLike) -> np.ndarray:
        """(2.19), (2.32) as corrected: the links' bias accelerations (6N,), without gravity."""
        return self._velocity_terms(thetadot)[1]

    def b(self, thetadot: ArrayLike) -> np.ndarray:
        """(2.23): the links' bias forces (6N,)."""
        return self._velocity_terms(thetadot)[2]

    def a0(self, thetadot: ArrayLike) -> np.ndarray:
        """(2.7), (2.27): the tip's bias acceleration (6,), [0; w(1) x (w(1) x l(1, 0))]; of several, (6 m,)."""
        V, found = self.V(thetadot), []
        for link, arm in self._tips:
            start = 6 * (self.N - 1 - link)
            w = Vec(*V[start : start + 3].tolist())
            found += [0.0, 0.0, 0.0, *centripetal(w, arm)]
        return np.array(found)

    def Jdot_thetadot(self, thetadot: ArrayLike) -> np.ndarray:
        """Before (3.18): what the tip accelerates (6,) while no joint does, B^T phi^T a + a(0)."""
        return (self.B.T @ self.phi.T) @ self.a(thetadot) + self.a0(thetadot)

    def C(self, thetadot: ArrayLike) -> np.ndarray:
        """(3.20): centrifugal and Coriolis torques (N,), H phi (M phi^T a + b)."""
        _, a, b = self._velocity_terms(thetadot)
        return (self.H @ self.phi) @ ((self.M @ self.phi.T) @ a + b)

    def gravity_forces(self) -> np.ndarray:
        """(3.21) in (3.20): the torques (N,) that hold the robot still, H phi M phi^T E g."""
        return (self.H @ self.phi @ self.M @ self.phi.T @ self.E) @ self.g

    # section 4

    @cached_property
    def P(self) -> SpatialOperator:
        """(4.5), (4.8): diag P(k), the articulated inertias."""

        def times(link: TurnedLink, v: Motion, at: Gain) -> Force:
            return at.P @ v

        return self._symmetric("P", self._chain.motions, times, self._gains)

    @cached_property
    def D(self) -> SpatialOperator:
        """(4.6), (a.1): diag D(k), the inertias that the joints see, H P H^T + R."""

        def times(link: TurnedLink, x: Coordinates, at: Gain) -> Coordinates:
            return Coordinates(sum((d * e for d, e in zip(row, x, strict=True)), 0.0) for row in at.block)

        return self._symmetric("D", self._chain.joints, times, self._gains)

    @cached_property
    def D_inv(self) -> SpatialOperator:
        """The inverse of D."""

        def over(link: TurnedLink, x: Coordinates, at: Gain) -> Coordinates:
            return JointInertia.of(at.block).solve(x)

        return self._symmetric("D_inv", self._chain.joints, over, self._gains)

    @cached_property
    def L(self) -> SpatialOperator:
        """(4.6), (4.8): diag L(k) = phi(k+1, k) G(k), 6N by N, k = N included."""

        def spread(link: TurnedLink, x: Coordinates, at: Gain) -> Force:
            return link.phi(Span(at.G) @ x)

        def project(link: TurnedLink, v: Motion, at: Gain) -> Coordinates:
            return Span(at.G).transpose_times(link.phi_T(v))

        chain = self._chain
        return memoryless("L", chain, (chain.joints, spread), (chain.motions, project), self._gains)

    @cached_property
    def Phi(self) -> SpatialOperator:
        """(4.9), strictly lower block triangular: block (i, j) is phi(i, j+1)."""
        return strictly_causal("Phi", self._chain, carry_phi, carry_phi_T, self._none)

    @cached_property
    def Psi(self) -> SpatialOperator:
        """(4.10), strictly lower block triangular: block (i, j) is psi(i, j+1)."""
        return strictly_causal("Psi", self._chain, carry_psi, carry_psi_T, self._gains)

    @cached_property
    def factor(self) -> SpatialOperator:
        """(4.11): I + H Phi L, lower triangular; mass = factor D factor^T."""
        return (self.I_N + self.H @ self.Phi @ self.L).named("factor")

    @cached_property
    def factor_inverse(self) -> SpatialOperator:
        """(4.14): I - H Psi L, the inverse of `factor`."""
        return (self.I_N - self.H @ self.Psi @ self.L).named("factor_inverse")

    @cached_property
    def mass_inverse(self) -> SpatialOperator:
        """(4.16), Theorem 4.1: (I - H Psi L)^T D^-1 (I - H Psi L)."""
        return (self.factor_inverse.T @ self.D_inv @ self.factor_inverse).named("mass_inverse")

    # section 5 and Appendix A

    @cached_property
    def psi(self) -> SpatialOperator:
        """(5.1), lower block triangular: block (i, j) is psi(i, j) of (4.7)."""
        return causal("psi", self._chain, carry_psi, carry_psi_T, self._gains)

    @cached_property
    def S(self) -> SpatialOperator:
        """(5.2): the shift, (S x)(k) = x(k-1)."""
        return strictly_causal("S", self._chain, carry_nothing, carry_nothing_T, self._none)

    @cached_property
    def psi_tilde(self) -> SpatialOperator:
        """(5.11): psi - I."""
        return (self.psi - self.I).named("psi_tilde")

    @cached_property
    def phi_tilde(self) -> SpatialOperator:
        """(a.3): phi - I."""
        return (self.phi - self.I).named("phi_tilde")

    @cached_property
    def G(self) -> SpatialOperator:
        """(5.12): diag G(k) = P H^T D^-1, 6N by N: the gains of the filter."""

        def spread(link: TurnedLink, x: Coordinates, at: Gain) -> Force:
            return Span(at.G) @ x

        def project(link: TurnedLink, v: Motion, at: Gain) -> Coordinates:
            return Span(at.G).transpose_times(v)

        chain = self._chain
        return memoryless("G", chain, (chain.joints, spread), (chain.motions, project), self._gains)

    @cached_property
    def Delta_phi(self) -> SpatialOperator:
        """(a.4): diag phi(k+1, k), k = 1 ... N."""
        chain = self._chain
        return memoryless("Delta_phi", chain, (chain.forces, carry_phi), (chain.motions, carry_phi_T), self._none)

    @cached_property
    def Delta_psi(self) -> SpatialOperator:
        """(a.5): diag psi(k+1, k), k = 1 ... N."""
        chain = self._chain
        return memoryless("Delta_psi", chain, (chain.forces, carry_psi), (chain.motions, carry_psi_T), self._gains)

    # what the operators are made of

    @cached_property
    def _gains(self) -> PerLink:
        """P, D and G of each link: (4.4)-(4.6)."""
        self._check_inertia()
        filter_gains = gains(self._chain)
        is_singular = self.robot.singular(self.q)
        joints = [name for name, so in zip(self.robot.joint_names, is_singular, strict=True) if so]
        if joints:
            raise SingularError(
                f"operators: the effective inertia of joint {', '.join(joints)} of {self.robot.name} is near zero in "
                f"this configuration, so D has no inverse: choose another configuration, or give the link an inertia "
                f"or the joint an armature."
            )
        return filter_gains

    def _symmetric(self, name: str, stack: Stack, times: Carry, per_link: PerLink) -> SpatialOperator:
        return memoryless(name, self._chain, (stack, times), (stack, times), per_link)

    def _velocity_terms(self, thetadot: ArrayLike) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """V, a and b of every link, stacked."""
        rates = _checked_vector("thetadot", thetadot, self._chain.joints.size)

        def step(link: Any, inner: Motion, rate: Coordinates) -> tuple[tuple[Motion, Motion, Force], Motion]:
            joint = link.H_T @ rate
            V = link.phi_T(inner) + joint  # (2.25)
            w = inner.angular
            # (2.19), (2.32) as corrected, and (b.7) of a joint that both turns and slides
            a_linear = centripetal(w, link.l) + (w * 2.0 + joint.angular).cross(joint.linear)
            b = classical_bias_force(link, V)  # (2.23)
            return (V, Motion(w.cross(joint.angular), a_linear), b), V

        terms = self._chain.outward(step, ZERO_MOTION, self._chain.joints.split(rates))
        V, a, b = (join(term, rates) for term in self._chain.unzip(terms))
        return V, a, b

    def _check_inertia(self) -> None:
        if not any(link.mass or any(link.I) or link.armature for link in self._chain.model.links):
            raise DescriptionError(
                f"operators: {self.robot.name} has no mass or inertia; only phi, Phi, H, B, E, S, J and Delta_phi can "
                f"be computed."
            )


def _vectors(x: ArrayLike) -> np.ndarray:
    refuse_foreign("operators: the vector", x)
    return np.asarray(x)


def _checked_vector(what: str, x: ArrayLike, size: int) -> np.ndarray:
    refuse_foreign(what, x)
    try:
        vector = np.asarray(x, dtype=float)
    except (TypeError, ValueError):
        raise ArgumentError(f"{what} is {type(x).__name__}, expected {size} numbers.") from None
    if vector.shape != (size,) or not np.isfinite(vector).all():
        got = f"has shape {vector.shape}" if vector.shape != (size,) else "is not finite"
        raise ArgumentError(f"{what} {got}, expected ({size},), finite: operators are those of one configuration.")
    return vector


def _checked_tip(robot: Robot, model: CanonicalModel, tip: object) -> str | tuple[str, ...]:
    """One frame on a moving link, or a tuple of several; by default the last frame of the last link."""
    moving = [frame.name for frame in model.frames if frame.link != BASE]
    last = [frame.name for frame in model.frames if frame.link == len(model.links) - 1]
    if tip is None:
        return last[-1]
    names = (tip,) if isinstance(tip, str) else tuple(tip) if isinstance(tip, (list, tuple)) else (tip,)
    found: list[str] = []
    for name in names:
        if not isinstance(name, str) or name not in moving:
            raise ArgumentError(
                f"operators: tip is {shown(name)}{nearest(name, moving)}, expected a frame on a moving link of "
                f"{robot.name}, or several: choose one of {listing(moving, quoted=False)}."
            )
        found.append(name)
    return found[0] if isinstance(tip, str) else tuple(found)
