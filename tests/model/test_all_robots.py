"""Every URDF of example-robot-data that Pinocchio reads, on a fixed and on a floating base, compared by name.

One program per robot gives inverse dynamics, M, bias, mass centre, momentum and all frames' poses and Jacobians, a
second one forward dynamics and M^-1. Bar: 1e-10 relative to the largest entry; what goes through M^-1 is granted its
conditioning and no more (`relative_through`, and M^-1 |M| M^-1 for the inverse itself).
"""

from __future__ import annotations

import functools
import warnings
from typing import Any

import numpy as np
import pinocchio as pin
import pytest
from oracles import FILES, NOT_READ, READ, relative, relative_through

import linksweep as ls
from linksweep.errors import DescriptionError, ModelWarning, SingularError
from linksweep.robot import conventions

RIGID = {  # nothing moves on a fixed base
    "hector_description/robots/quadrotor_base.urdf": "a quadrotor whose propellers are fixed",
    "iris_description/robots/iris_simple.urdf": "a quadrotor whose propellers are fixed",
}
SINGULAR = {  # joints that move no inertia in any pose: the robot loads with a warning, forward dynamics names them
    "romeo_description/urdf/romeo.urdf": "hands and fingers without mass or inertia",
    "romeo_description/urdf/romeo_laas_small.urdf": "grippers without mass or inertia",
}
MASSLESS_LINKS = {  # moving links without inertia, but always some beyond: nothing is singular
    "human_description/robots/human.urdf": 19,
}
CASES = [(name, base) for name in READ for base in ("fixed", "floating") if base == "floating" or name not in RIGID]
COMPILED = [
    "a1_description/urdf/a1.urdf", "anymal_b_simple_description/robots/anymal.urdf",
    "baxter_description/urdf/baxter.urdf", "double_pendulum_description/urdf/double_pendulum.urdf",
    "hyq_description/robots/hyq_no_sensors.urdf", "iris_description/robots/iris.urdf",
    "kinova_description/robots/kinova.urdf", "panda_description/urdf/panda.urdf",
    "solo_description/robots/solo12.urdf", "talos_data/robots/talos_reduced.urdf",
    "tiago_description/robots/tiago_no_hand.urdf", "ur_description/urdf/ur5_robot.urdf",
]  # fmt: skip
TOGETHER = ["inverse_dynamics", "mass_matrix", "bias_forces", "center_of_mass", "momentum", "poses", "jacobians"]
THROUGH_INVERSE = ["forward_dynamics", "mass_matrix_inverse"]
LINEAR_LAST = [3, 4, 5, 0, 1, 2]
BAR = 1e-10  # right angles that files round at the eleventh digit are made exact here


class Twin:
    """A robot, Pinocchio's model of the same file, and two states in both layouts."""

    def __init__(self, name: str, base: str):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ModelWarning)  # odd inertias and mimic joints have tests of their own
            self.robot = ls.load(FILES[name], base=base)
        root = (pin.JointModelFreeFlyer(),) if base == "floating" else ()
        self.model: Any = pin.buildModelFromUrdf(str(FILES[name]), *root, mimic=False)
        self.data: Any = self.model.createData()
        rng = np.random.default_rng(0)
        self.q = np.stack([self.robot.random(rng) for _ in range(2)])
        self.v, self.a = rng.uniform(-1, 1, (2, 2, self.robot.nv))
        self.theirs = list(
            zip(*conventions.to_pinocchio(self.robot, self.model, q=self.q, v=self.v, a=self.a), strict=True)
        )
        self.order = conventions.from_pinocchio(self.robot, self.model, v=np.arange(self.model.nv)).astype(int)

    def symmetric(self, upper: np.ndarray) -> np.ndarray:
        """Their matrix, of which only the upper half is filled, in our order."""
        upper = np.triu(upper)
        return (upper + np.triu(upper, 1).T)[np.ix_(self.order, self.order)]


@functools.lru_cache(maxsize=2)
def twin(name: str, base: str) -> Twin:
    return Twin(name, base)


def check(twin: Twin, backend: str) -> None:
    robot, model, data, order = twin.robot, twin.model, twin.data, twin.order
    frames = list(robot.frame_names)
    together = robot.compile(TOGETHER, backend=backend)(twin.q, twin.v, twin.a)
    worst: dict[str, float] = {}

    def compare(what: str, ours: np.ndarray, theirs: np.ndarray) -> None:
        worst[what] = max(worst.get(what, 0.0), relative(ours, theirs))

    for k, (q, v, a) in enumerate(twin.theirs):
        tau, M, bias, com, momentum, poses, jacobians = (result[k] for result in together)
        compare("inverse dynamics", tau, pin.rnea(model, data, q, v, a)[order])
        compare("mass matrix", M, twin.symmetric(pin.crba(model, data, q)))
        compare("bias", bias, pin.nonLinearEffects(model, data, q, v)[order])
        compare("mass centre", com, pin.centerOfMass(model, data, q))
        compare("momentum", momentum, pin.computeCentroidalMomentum(model, data, q, v).vector[LINEAR_LAST])
        pin.computeJointJacobians(model, data, q)
        pin.updateFramePlacements(model, data)
        for place, frame in enumerate(frames):
            if frame == robot.model.base and robot.joint_names[0] == "root_joint":
                continue  # the world itself, which Pinocchio has no body for
            index = model.getFrameId(frame, pin.FrameType.BODY)
            compare("poses", poses[place], data.oMf[index].homogeneous)
            jacobian = pin.getFrameJacobian(model, data, index, pin.ReferenceFrame.LOCAL_WORLD_ALIGNED)
            scale = max(np.abs(jacobian).max(), 1.0)  # frames of the base have none
            compare("jacobians", jacobians[place] / scale + 1.0, jacobian[LINEAR_LAST][:, order] / scale + 1.0)
    if not robot.singular_joints:
        tau = together[0]
        qdd, inverse = robot.compile(THROUGH_INVERSE, backend=backend)(twin.q, twin.v, tau)
        for k, (q, v, _) in enumerate(twin.theirs):
            M = together[1][k]
            theirs = pin.aba(model, data, q, v, conventions.to_pinocchio(robot, model, tau=tau[k]))[order]
            error = relative_through(M, tau[k], qdd[k], theirs)
            worst["forward dynamics"] = max(worst.get("forward dynamics", 0.0), error)
            theirs = twin.symmetric(pin.computeMinverse(model, data, q))
            reach = np.abs(inverse[k]) @ np.abs(M) @ np.abs(inverse[k])
            error = float(np.abs(inverse[k] - theirs).max() / reach.max())
            worst["inverse of M"] = max(worst.get("inverse of M", 0.0), error)
    assert all(error <= BAR for error in worst.values()), {what: error for what, error in worst.items() if error > BAR}


def test_all_files_of_pinocchio_are_here():
    assert len(READ) == 68


@pytest.mark.cases(1)
@pytest.mark.parametrize(("name", "base"), CASES, ids=[f"{name}-{base}" for name, base in CASES])
def test_against_pinocchio(name: str, base: str):
    pair = twin(name, base)
    check(pair, "interpreter")
    assert bool(pair.robot.singular_joints) == (name in SINGULAR)


@pytest.mark.cases(1)
@pytest.mark.parametrize("base", ["fixed", "floating"])
@pytest.mark.parametrize("name", COMPILED)
def test_machine_code_against_pinocchio(name: str, base: str):
    check(twin(name, base), "llvm")


@pytest.mark.parametrize("name", sorted(SINGULAR))
@pytest.mark.parametrize("base", ["fixed", "floating"])
def test_singular_robots_say_so(name: str, base: str):
    with warnings.catch_warnings(record=True) as said:  # they have mimic joints and odd inertias too
        warnings.simplefilter("always", ModelWarning)
        robot = ls.load(FILES[name], base=base)
    assert any("no inertia moves with joint" in str(warning.message) for warning in said)
    zeros = np.zeros(robot.nv)
    for call in (
        lambda: robot.forward_dynamics(robot.neutral(), zeros, zeros),
        lambda: robot.mass_matrix_inverse(robot.neutral()),
    ):
        with pytest.raises(SingularError, match=robot.singular_joints[0]):
            call()


@pytest.mark.parametrize("name", MASSLESS_LINKS)
def test_massless_links_with_inertia_beyond_them_are_no_trouble(name: str):
    robot = twin(name, "fixed").robot
    massless = [link for link in robot.model.links if not link.inertial.mass and not np.any(link.inertial.inertia)]
    assert len(massless) == MASSLESS_LINKS[name] and not robot.singular_joints


@pytest.mark.parametrize("name", sorted(RIGID))
def test_rigid_robots_need_a_floating_base(name: str):
    with pytest.raises(DescriptionError, match="none of them moves"):
        ls.load(FILES[name])


@pytest.mark.parametrize("name", sorted(NOT_READ))
def test_what_pinocchio_refuses_is_refused_clearly(name: str):
    with pytest.raises(ValueError):
        pin.buildModelFromUrdf(str(FILES[name]))
    with pytest.raises(DescriptionError):
        ls.load(FILES[name])
