"""A simulation that runs while one looks at it, driven towards a target that can be dragged.

A law is asked for by its target: `law(q)` gives what `linksweep.simulate` takes as torque (an object of
`linksweep.simulation`, a function torque(t, q, qd), or None) to bring the robot to q. It is asked again whenever the
target moves, so any law that holds a configuration will do.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from linksweep.errors import ArgumentError, LinksweepError
from linksweep.support.messages import shown

if TYPE_CHECKING:
    from linksweep.robot.robot import Robot
    from linksweep.simulation.options import Torque

STEP = 1e-3  # seconds
LONGEST = 0.05  # seconds simulated at once: a page that was held up does not leap
QUICKNESS = 8.0  # 1/s: how fast errors decay under the laws given here

Law = Callable[[np.ndarray], "Torque"]


def tracking(robot: Robot, quickness: float = QUICKNESS) -> Law:
    """Computed torque towards the target; for a robot with a free base springs and dampers, and gravity held."""
    from linksweep.simulation import PD, ComputedTorque

    if not any(link.joint.type.floats for link in robot.model.links):
        return lambda target: ComputedTorque(target, quickness**2, 2.0 * quickness)
    inertia = np.diag(robot.mass_matrix(robot.neutral()))
    return lambda target: PD(target, quickness**2 * inertia, 2.0 * quickness * inertia)


class LiveSimulation:
    """A robot's state (q, qd) in time, under a law that leads to `target`."""

    def __init__(self, robot: Robot, q: ArrayLike, law: Law | None = None):
        if law is not None and not callable(law):
            raise ArgumentError(
                f"law is {shown(law)}, expected a function that gives a law for a target: lambda q: ..."
            )
        self.robot = robot
        self.law = law
        self.q, self.qd = np.array(q, dtype=float), np.zeros(robot.nv)
        self.tau = np.zeros(robot.nv)
        self.target = self.q.copy()
        self.t = 0.0

    def set_target(self, q: ArrayLike) -> None:
        self.target = np.array(q, dtype=float)

    def stop(self) -> None:
        """Bring the robot to rest where it stands."""
        self.qd = np.zeros(self.robot.nv)

    def _torque(self) -> Torque:
        """What `simulate` takes; a function of time goes on from now."""
        torque = None if self.law is None else self.law(self.target)
        return _later(torque, self.t) if callable(torque) and not hasattr(torque, "signals") else torque

    def advance(self, seconds: float) -> None:
        """Simulate so many seconds, at most LONGEST; raises LinksweepError where the robot cannot be simulated."""
        from linksweep.simulation import SimulationWarning, simulate

        steps = max(1, round(min(seconds, LONGEST) / STEP))
        with warnings.catch_warnings():
            warnings.simplefilter("error", SimulationWarning)
            try:
                found = simulate(
                    self.robot, self.q, self.qd, self._torque(), steps * STEP, dt=STEP,
                    integrator="semi_implicit_euler", every=steps, limits="ignore", progress=False,
                )  # fmt: skip
            except SimulationWarning:
                raise LinksweepError("the simulation left the finite numbers: choose a gentler law.") from None
        self.q, self.qd, self.tau = found.q[-1], found.qd[-1], found.tau[-1]
        self.t += steps * STEP


def _later(torque: Callable[..., ArrayLike], start: float) -> Callable[..., ArrayLike]:
    """A function of time whose time has run for a while."""
    return lambda t, q, qd: torque(start + t, q, qd)
