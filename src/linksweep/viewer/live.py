"""A simulation that runs in real time and tracks a target, which the user can drag.

A control law is a function of the target: `law(q)` returns what `linksweep.simulate` takes as torque (a controller of
`linksweep.simulation`, a function torque(t, q, qd), or None) to bring the robot to q. It is called again whenever the
target moves, so any controller that holds a configuration can be used.

By default joints have hard stops at their position limits, and every joint has some viscous damping, so that an
unactuated robot comes to rest.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, cast

import numpy as np
from numpy.typing import ArrayLike

from linksweep.errors import ArgumentError, LinksweepError
from linksweep.simulation import JointStops, SemiImplicitEuler, simulate
from linksweep.simulation.diagnosis import diverged, rate_names, without_warnings
from linksweep.simulation.friction import MAX_VELOCITIES
from linksweep.simulation.result import limited_joints
from linksweep.support.messages import shown

if TYPE_CHECKING:
    from linksweep.robot.robot import Robot
    from linksweep.simulation import Simulation
    from linksweep.simulation.run import Torque

STEP = 1e-3  # seconds
LONGEST = 0.05  # seconds simulated at once: a delayed page does not jump ahead
BANDWIDTH = 8.0  # 1/s: decay rate of errors under the default control laws
DAMPING = 0.5  # 1/s: the smallest damping of a joint, as a multiple of its mean inertia
SAMPLES = 16  # configurations over which inertias are averaged

Law = Callable[[np.ndarray], object]  # returns a Torque


def tracking(robot: Robot, bandwidth: float = BANDWIDTH) -> Law:
    """Return the default control law: computed torque, or PD control for robots with a floating base."""
    from linksweep.simulation import PD, ComputedTorque

    if not any(link.joint.type.floats for link in robot.model.links):
        return lambda target: ComputedTorque(target, bandwidth**2, 2.0 * bandwidth)
    inertia = np.diag(robot.mass_matrix(robot.neutral()))
    return lambda target: PD(target, bandwidth**2 * inertia, 2.0 * bandwidth * inertia)


def damped(robot: Robot) -> Robot:
    """Return the robot with viscous damping at every joint except free bases, and without Coulomb friction.

    The damping is that of the model, and at least DAMPING times the joint's mean inertia. It is bounded where a step
    of STEP seconds would be unstable with it.
    """
    random = np.random.default_rng(0)
    poses = np.stack([robot.random(random) for _ in range(SAMPLES)])
    M = robot.compile("mass_matrix", backend="interpreter")(poses)
    try:
        free_inertia = 1.0 / np.diagonal(np.linalg.inv(M), axis1=1, axis2=2).max(
            axis=0
        )  # inertia while the other joints are free
    except np.linalg.LinAlgError:
        free_inertia = np.full(robot.nv, np.inf)
    desired = np.maximum(robot.damping, DAMPING * np.diagonal(M, axis1=1, axis2=2).mean(axis=0))
    damping = np.minimum(desired, 0.5 * np.abs(free_inertia) / STEP)
    damping = np.where(np.isfinite(damping), damping, robot.damping)
    by_joint = {
        name: float(damping[link.rates].min())
        for name, link in zip(robot.joint_names, robot.canonical.joints, strict=True)
        if not link.type.floats and (damping[link.rates] != robot.damping[link.rates]).any()
    }
    return robot.with_dissipation(damping=by_joint, friction=0.0, torque_offset=0.0)


def can_have_stops(robot: Robot) -> bool:
    """Return whether joint limit stops can be simulated: not with constraints, or with more than 40 DOF."""
    return bool(limited_joints(robot)) and robot.nv <= MAX_VELOCITIES and not robot.model.constraints


class LiveSimulation:
    """The state (q, qd) of a robot over time, under a control law that tracks `target`.

    stops: simulate joint limit stops. A joint outside its limits starts at the nearest limit. damping: add viscous
    damping (see `damped`).
    """

    def __init__(self, robot: Robot, q: ArrayLike, law: Law | None = None, *, stops: bool = True, damping: bool = True):
        if law is not None and not callable(law):
            raise ArgumentError(f"law is {shown(law)}, expected a function of the target: lambda q: PD(q, ...).")
        self.stops = "inelastic" if stops and can_have_stops(robot) else None
        self.damping = damping
        self.robot = damped(robot) if damping and robot.has_inertia else robot
        self.law = law
        self.q, self.qd = self._inside(np.array(q, dtype=float)), np.zeros(robot.nv)
        self.tau = np.zeros(robot.nv)
        self.target = self.q.copy()
        self.t = 0.0
        self.remark = ""  # which joints were singular in the last step

    def _inside(self, q: np.ndarray) -> np.ndarray:
        """Clamp joints with stops to their limits."""
        for _, index, (lower, upper) in limited_joints(self.robot) if self.stops else ():
            q[index] = min(max(q[index], lower), upper)
        return q

    def set_target(self, q: ArrayLike) -> None:
        self.target = np.array(q, dtype=float)

    def set_state(self, q: ArrayLike, qd: ArrayLike, t: float) -> None:
        """Continue from another state and time."""
        self.q, self.qd, self.t = self._inside(np.array(q, dtype=float)), np.array(qd, dtype=float), t

    def stop(self) -> None:
        """Set all velocities to zero."""
        self.qd = np.zeros(self.robot.nv)

    def _torque(self) -> Torque:
        """Return the torque argument of `simulate`; functions of time continue at the present time."""
        torque = None if self.law is None else cast("Torque", self.law(self.target))
        return _shifted(torque, self.t) if callable(torque) and not hasattr(torque, "signals") else torque

    def advance(self, seconds: float) -> None:
        """Simulate for this time, at most LONGEST; raises LinksweepError if the simulation fails or diverges.

        Warnings of every frame would fill the terminal, so they are suppressed. `remark` names singular joints.
        """
        self.remark = self._singular()
        steps = max(1, round(min(seconds, LONGEST) / STEP))
        with without_warnings():
            piece = simulate(
                self.robot, self.q, self.qd, self._torque(), steps * STEP, dt=STEP,
                integrator=SemiImplicitEuler(limits="ignore", progress=False), every=steps, dissipation=self.damping,
                disturbance=JointStops() if self.stops else None,
            )  # fmt: skip
        if diverged(piece).any():
            raise LinksweepError(self._divergence(piece))
        self.q, self.qd, self.tau = piece.q[-1], piece.qd[-1], piece.tau[-1]
        self.t += steps * STEP

    def _singular(self) -> str:
        """Return a sentence about joints that are singular at q, or ""."""
        if not self.robot.can_be_singular:
            return ""
        names = np.array(self.robot.joint_names)[self.robot.singular(self.q)].tolist()
        return f"joint {', '.join(names)} is singular in this configuration." if names else ""

    def _divergence(self, piece: Simulation) -> str:
        """Return a message with time and joint of the divergence, and a remedy."""
        robot, qd = self.robot, piece.qd[-1]
        fastest = rate_names(robot)[int(np.argmax(np.where(np.isfinite(qd), np.abs(qd), np.inf)))]
        if self.remark:
            reason = f"{self.remark} Start from another one"
        elif self.law is not None:
            reason = "reduce the controller gains"
        else:
            reason = "turn on joint stops and damping, or start from another configuration"
        return f"the simulation of {robot.name} diverged at t = {self.t:.3g} s (joint {fastest}): {reason}."


def _shifted(torque: Callable[..., ArrayLike], start: float) -> Callable[..., ArrayLike]:
    """Return a function torque(t, q, qd) whose time starts at `start`."""
    return lambda t, q, qd: torque(start + t, q, qd)
