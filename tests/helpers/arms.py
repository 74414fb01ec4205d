"""Arms, motions and logs for the tests of identification; the truth is computed apart from what is tested."""

from __future__ import annotations

import functools
import os
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from oracles import FILES

import linksweep as ls

TX40 = Path(os.environ.get("LINKSWEEP_TX40", Path(__file__).parents[3] / "shared" / "data" / "tx40"))


@functools.cache
def arm(name: str) -> ls.Robot:
    """ "puma560" (with no limits but those of torque), "ur5" or "panda" (its fingers held)."""
    if name == "puma560":
        return ls.robots.puma560().with_limits(-np.inf, np.inf, np.inf)
    path = next(
        path for file, path in FILES.items() if file.endswith({"ur5": "ur5_robot", "panda": "panda"}[name] + ".urdf")
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ls.ModelWarning)
        robot = ls.load(path)
    return robot.lock([joint for joint in robot.joint_names if "finger" in joint])


def lively(nv: int, duration: float, rate: float, seed: int = 0, size: float = 0.6) -> tuple[np.ndarray, ...]:
    """t, q, qd, qdd: sums of sines whose derivatives are written out."""
    rng = np.random.default_rng(seed)
    t = np.arange(round(duration * rate)) / rate
    q, qd, qdd = np.zeros((3, len(t), nv))
    for joint in range(nv):
        for k in range(1, 6):
            w = 2.0 * np.pi * 0.1 * k * (1.0 + 0.02 * joint)
            a, phase = size * rng.normal() / k**0.5, rng.uniform(0, 6)
            q[:, joint] += a * np.sin(w * t + phase)
            qd[:, joint] += a * w * np.cos(w * t + phase)
            qdd[:, joint] -= a * w**2 * np.sin(w * t + phase)
    return t, q, qd, qdd


@dataclass(frozen=True)
class Case:
    """A log whose truth is known: torques of links, armature, friction and offset, written out."""

    robot: ls.Robot
    t: np.ndarray
    q: np.ndarray
    qd: np.ndarray
    qdd: np.ndarray
    tau: np.ndarray
    armature: np.ndarray
    viscous: np.ndarray
    coulomb: np.ndarray
    offset: np.ndarray

    def truth(self, fit: Any) -> np.ndarray:
        """The true base parameters of a fit."""
        own = dict(zip(self.robot.standard_parameter_names, self.robot.standard_parameters, strict=True))
        for k, name in enumerate(self.robot.joint_names):
            own[f"{name}.armature"] = self.armature[k]
            own[f"{name}.viscous"], own[f"{name}.coulomb"] = self.viscous[k], self.coulomb[k]
            own[f"{name}.coulomb+"] = own[f"{name}.coulomb-"] = self.coulomb[k]
            own[f"{name}.offset"] = self.offset[k]
        return fit.grouping.matrix @ np.array([own[name] for name in fit.columns.names])

    def off(self, fit: Any) -> np.ndarray:
        """Errors in torque at a reference motion."""
        return (fit.values - self.truth(fit)) * fit.grouping.sizes


@functools.cache
def case(name: str, duration: float = 12.0, rate: float = 200.0, seed: int = 0) -> Case:
    robot = arm(name)
    t, q, qd, qdd = lively(robot.nv, duration, rate, seed)
    ends = np.nan_to_num(np.stack(robot.limits[:2]), posinf=0.0, neginf=0.0)
    q = q + ends.mean(axis=0)  # within the limits
    rng = np.random.default_rng(seed + 1000)
    armature, viscous, coulomb = rng.uniform(0.1, 1.0, (3, robot.nv))
    offset = rng.normal(size=robot.nv) * 0.2
    bare = robot.inverse_dynamics(q, qd, qdd) - qdd * robot.armature
    tau = bare + armature * qdd + viscous * qd + coulomb * np.sign(qd) + offset
    return Case(robot, t, q, qd, qdd, tau, armature, viscous, coulomb, offset)
