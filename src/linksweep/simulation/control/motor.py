"""Motors at joints: gears, torque constants, rotor inertias, and what current and voltage allow."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike

from ...errors import ArgumentError
from ...robot.robot import Robot
from ...support.messages import shown
from ...support.numbers import as_array
from ..checks import real_array


@dataclass(frozen=True)
class Motor:
    """One electric motor at each joint; every number is one for all, or one for each rate (nv,).

    gear: turns of the motor for one of the joint. torque_constant: N m/A at the motor, which is also its V s/rad.
    rotor_inertia: kg m^2 at the motor, gear^2 of it at the joint (`driven`). current: the largest, A. voltage (V) and
    resistance (ohm): the faster the motor turns, the less voltage is left to drive a current.
    """

    gear: ArrayLike = 1.0
    torque_constant: ArrayLike = 1.0
    rotor_inertia: ArrayLike = 0.0
    current: ArrayLike = math.inf
    voltage: ArrayLike | None = None
    resistance: ArrayLike | None = None

    def __post_init__(self) -> None:
        if (self.voltage is None) != (self.resistance is None):
            raise ArgumentError("Motor: voltage and resistance go together, got one of them: give both, or none.")
        for name in ("gear", "torque_constant", "rotor_inertia", "current", "voltage", "resistance"):
            value = getattr(self, name)
            if value is None or (name == "current" and _is_unlimited(value)):
                continue
            array = real_array(f"Motor: {name}", value)
            if (array < 0.0).any() or (name != "rotor_inertia" and (array == 0.0).any()):
                raise ArgumentError(f"Motor: {name} is {shown(value)}, expected numbers above 0.")

    @property
    def torque_per_current(self) -> np.ndarray:
        """N m at the joint for 1 A."""
        return np.asarray(self.gear, float) * np.asarray(self.torque_constant, float)

    def currents(self, tau: ArrayLike) -> np.ndarray:
        """A, for torques (..., nv) at the joints."""
        return np.asarray(tau, float) / self.torque_per_current

    def limited(self, tau: np.ndarray, qd: np.ndarray) -> np.ndarray:
        """The torques that current and voltage leave of those wanted, at joint rates qd."""
        k = self.torque_per_current
        most = k * np.asarray(self.current, float)
        low, high = -most, most
        if self.voltage is not None:
            R, V = np.asarray(self.resistance, float), np.asarray(self.voltage, float)
            induced = k * qd  # the gear and the constant again: V = k qd + R i
            low, high = np.maximum(low, k * (-V - induced) / R), np.minimum(high, k * (V - induced) / R)
        return np.minimum(np.maximum(tau, np.minimum(low, high)), np.maximum(low, high))

    def driven(self, robot: Robot) -> Robot:
        """The robot with the rotors' inertia at its joints, in addition to the armature that is described."""
        added = np.broadcast_to(np.asarray(self.gear, float) ** 2 * np.asarray(self.rotor_inertia, float), (robot.nv,))
        links = []
        for described, link in zip(robot.model.links, robot.canonical.links, strict=True):
            armature = float(described.joint.armature) + (float(added[link.start]) if link.leads else 0.0)
            links.append(replace(described, joint=replace(described.joint, armature=armature)))
        return type(robot)(replace(robot.model, links=tuple(links)))


def _is_unlimited(current: ArrayLike) -> bool:
    array = as_array(current)
    return array.dtype.kind == "f" and bool(np.all(np.isposinf(array)))
