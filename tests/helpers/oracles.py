"""The same robot here and in Pinocchio, with the conversions between their layouts; everything goes by name."""

from __future__ import annotations

import functools
import importlib.metadata
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pinocchio as pin

import linksweep as ls
from linksweep.errors import ModelWarning

FILES = {
    str(file).split("robots/", 1)[1]: Path(str(file.locate()))
    for file in importlib.metadata.files("example-robot-data") or []
    if str(file).endswith(".urdf")
}
NOT_ROBOTS = {  # nothing moves on a fixed base; ur3.urdf holds no link
    "hector_description/robots/quadrotor_base.urdf",
    "iris_description/robots/iris_simple.urdf",
    "ur_description/urdf/ur3.urdf",
}
LOADABLE = sorted(FILES.keys() - NOT_ROBOTS)


def load_quietly(path: Path) -> ls.Robot:
    """The robot, its model warnings (mimic joints, odd inertias) being the business of other tests."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ModelWarning)
        return ls.load(path)


class Twin:
    """A robot and Pinocchio's model of the same file; joints that mimic others are free in both.

    Pinocchio's joints stand in another order, its continuous joints hold (cos, sin), and its spatial vectors are
    [linear; angular].
    """

    def __init__(self, path: Path):
        self.robot = load_quietly(path)
        self.model: Any = pin.buildModelFromUrdf(str(path), mimic=False)
        self.data: Any = self.model.createData()
        joints = [self.model.joints[self.model.getJointId(name)] for name in self.robot.joint_names]
        self.places = np.array([joint.idx_v for joint in joints])  # theirs, for each of our coordinates
        self._starts = [(joint.idx_q, joint.nq) for joint in joints]

    def configuration(self, q: np.ndarray) -> np.ndarray:
        theirs = np.empty(self.model.nq)
        for value, (start, width) in zip(q, self._starts, strict=True):
            theirs[start : start + width] = value if width == 1 else (np.cos(value), np.sin(value))
        return theirs

    def velocity(self, v: np.ndarray) -> np.ndarray:
        """Also accelerations and torques."""
        theirs = np.empty(self.model.nv)
        theirs[self.places] = v
        return theirs

    def ours(self, v: np.ndarray) -> np.ndarray:
        """Their vector, or square matrix, in our order of joints."""
        return v[self.places] if v.ndim == 1 else v[np.ix_(self.places, self.places)]

    def mass_matrix(self, q: np.ndarray) -> np.ndarray:
        upper = np.triu(pin.crba(self.model, self.data, self.configuration(q)))
        return self.ours(upper + np.triu(upper, 1).T)

    def frame(self, name: str) -> int:
        return self.model.getFrameId(name, pin.FrameType.BODY)

    def jacobian(self, q: np.ndarray, name: str) -> np.ndarray:
        theirs = pin.computeFrameJacobian(
            self.model, self.data, self.configuration(q), self.frame(name), pin.ReferenceFrame.LOCAL_WORLD_ALIGNED
        )
        return theirs[[3, 4, 5, 0, 1, 2]][:, self.places]

    def pose(self, q: np.ndarray, name: str) -> np.ndarray:
        pin.framesForwardKinematics(self.model, self.data, self.configuration(q))
        return self.data.oMf[self.frame(name)].homogeneous

    def states(self, count: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """q, qd, qdd, each (count, nv)."""
        q, qd, qdd = np.random.default_rng(seed).uniform(-1, 1, (3, count, self.robot.nv)) * np.array(
            [3.0, 2.0, 4.0]
        ).reshape(3, 1, 1)
        return q, qd, qdd


@functools.lru_cache(maxsize=4)
def twin(name: str) -> Twin:
    """The robot of this file of example-robot-data."""
    return Twin(FILES[name])


def relative(ours: np.ndarray, theirs: np.ndarray) -> float:
    """The largest difference, relative to the largest element."""
    assert ours.shape == theirs.shape
    return float(np.abs(ours - theirs).max() / max(np.abs(theirs).max(), 1e-300))


def relative_through(mass_matrix: np.ndarray, tau: np.ndarray, ours: np.ndarray, theirs: np.ndarray) -> float:
    """The largest difference of accelerations, in units of what a torque error of the size of max |tau| would do.

    qdd = M^-1 (tau - h): a relative error of the torques by e changes joint i's acceleration by up to
    e sum_j |M^-1|_ij max |tau|. This is the conditioning of forward dynamics, and all that is granted to it.
    """
    reach = np.abs(np.linalg.inv(mass_matrix)).sum(axis=-1) * np.abs(tau).max(axis=-1, keepdims=True)
    return float((np.abs(ours - theirs) / reach).max())


NOT_READ = {  # by name, with the reason
    "ur_description/urdf/ur3.urdf": "an empty file of macros, without a name or a link: Pinocchio refuses it too",
}
READ = sorted(FILES.keys() - NOT_READ.keys())
