"""Against Pinocchio on every robot of example-robot-data, and against MuJoCo on arms with motor inertias.

Bars are relative to the largest element. Two things stand between us and Pinocchio's numbers: rounding, and rotation
entries within 1e-11 of 0 and ±1, which our loader makes exact. So each robot is compared as loaded, to 1e-10, and as
it would load without that, to 1e-12. Accelerations are granted their conditioning, see `relative_through`.
"""

from __future__ import annotations

from typing import Any

import mujoco as untyped_mujoco
import numpy as np
import pinocchio as pin
import pytest
from oracles import FILES, LOADABLE, Twin, relative, relative_through, twin

import linksweep as ls
from linksweep.errors import SingularError
from linksweep.model import model as description
from linksweep.model.assembly import Part, assemble
from linksweep.model.model import BASE, Inertial, Joint, Placement

mujoco: Any = untyped_mujoco  # its names come from a compiled module that pyright cannot see
UR5, PANDA = "ur_description/urdf/ur5_robot.urdf", "panda_description/urdf/panda.urdf"
COMPILED = [
    UR5,
    PANDA,
    "ur_description/urdf/ur3_robot.urdf",
    "ur_description/urdf/ur10_robot.urdf",
    "kinova_description/robots/kinova.urdf",
    "xarm_description/urdf/xarm7.urdf",
    "z1_description/urdf/z1.urdf",
    "so_arm_description/urdf/so100.urdf",
    "baxter_description/urdf/baxter.urdf",
    "allegro_hand_description/urdf/allegro_right_hand.urdf",
    "tiago_description/robots/tiago_no_hand.urdf",
    "talos_data/robots/talos_left_arm.urdf",
    "talos_data/robots/talos_reduced.urdf",
    "tiago_description/robots/tiago_dual.urdf",  # 101 joints: as loops
]
SINGULAR = {  # links without any inertia hang on these joints, so that M is singular in every pose
    "romeo_description/urdf/romeo.urdf": "LFinger12",
    "romeo_description/urdf/romeo_laas_small.urdf": "l_gripper_joint",
}
SAMPLES = 3


def compare(pair: Twin, backend: str, bar: float) -> None:
    """Everything that both sides compute, at random states."""
    robot, model, data = pair.robot, pair.model, pair.data
    q, qd, qdd = pair.states(SAMPLES)
    zero = np.zeros(robot.nv)
    dynamics = robot.compile(["inverse_dynamics", "mass_matrix", "bias_forces", "gravity_forces"], backend=backend)
    tau, mass_matrix, bias, gravity = dynamics(q, qd, qdd)

    def rnea(q: np.ndarray, qd: np.ndarray, qdd: np.ndarray) -> np.ndarray:
        return pair.ours(pin.rnea(model, data, pair.configuration(q), pair.velocity(qd), pair.velocity(qdd)))

    expected = np.array([rnea(*state) for state in zip(q, qd, qdd, strict=True)])
    assert relative(tau, expected) <= bar
    assert relative(bias, np.array([rnea(q[k], qd[k], zero) for k in range(SAMPLES)])) <= bar
    assert relative(gravity, np.array([rnea(q[k], zero, zero) for k in range(SAMPLES)])) <= bar
    assert relative(mass_matrix, np.array([pair.mass_matrix(x) for x in q])) <= bar

    names = robot.frame_names
    frames = [*dict.fromkeys(names[int(k)] for k in np.linspace(0, len(names) - 1, 6))]
    kinematics = robot.compile([(what, f) for f in frames for what in ("pose", "jacobian")], backend=backend)(q)
    for k, frame in enumerate(frames):
        assert relative(kinematics[2 * k], np.array([pair.pose(x, frame) for x in q])) <= bar, frame
        jacobian = np.array([pair.jacobian(x, frame) for x in q])
        assert np.abs(kinematics[2 * k + 1] - jacobian).max() <= bar * max(1.0, np.abs(jacobian).max()), frame

    if robot.singular_joints:
        with pytest.raises(SingularError, match=robot.singular_joints[0]):
            robot.compile("forward_dynamics", backend=backend)
        return
    accelerations = robot.compile("forward_dynamics", backend=backend)(q, qd, expected)
    aba = [
        pair.ours(pin.aba(model, data, pair.configuration(q[k]), pair.velocity(qd[k]), pair.velocity(expected[k])))
        for k in range(SAMPLES)
    ]
    assert relative_through(mass_matrix, expected, accelerations, np.array(aba)) <= bar
    assert relative_through(mass_matrix, expected, accelerations, qdd) <= bar


@pytest.mark.parametrize("name", LOADABLE)
def test_every_robot_is_that_of_pinocchio(name: str):
    pair = twin(name)
    assert bool(pair.robot.singular_joints) == (name in SINGULAR)
    if name in SINGULAR:
        assert SINGULAR[name] in pair.robot.singular_joints
    compare(pair, "interpreter", 1e-10)


@pytest.mark.slow
@pytest.mark.parametrize("name", LOADABLE)
def test_without_snapping_only_rounding_is_left(name: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(description, "SNAP", 0.0)
    compare(Twin(FILES[name]), "interpreter", 1e-12)


@pytest.mark.cases(1)
@pytest.mark.parametrize("name", COMPILED)
def test_machine_code_is_pinocchio(name: str):
    compare(twin(name), "llvm", 1e-10)


@pytest.mark.quick
@pytest.mark.parametrize("name", [UR5, PANDA, "allegro_hand_description/urdf/allegro_right_hand.urdf"])
def test_external_forces(name: str):
    """On every link by rows, and at the last frame alone by name."""
    pair = twin(name)
    robot = pair.robot
    q, qd, qdd = pair.states(SAMPLES)
    forces = np.random.default_rng(1).uniform(-5, 5, (SAMPLES, robot.nv, 6))
    expected = []
    for k in range(SAMPLES):
        theirs = pin.StdVec_Force()
        theirs.extend([pin.Force.Zero() for _ in range(pair.model.njoints)])
        for joint, force in zip(robot.joint_names, forces[k], strict=True):
            theirs[pair.model.getJointId(joint)] = pin.Force(force[3:], force[:3])
        state = (pair.configuration(q[k]), pair.velocity(qd[k]), pair.velocity(qdd[k]))
        expected.append(pair.ours(pin.rnea(pair.model, pair.data, *state, theirs)))
    tau = robot.inverse_dynamics(q, qd, qdd, f_ext=forces)
    assert relative(tau, np.array(expected)) <= 1e-10
    back = robot.forward_dynamics(q, qd, tau, f_ext=forces)
    assert relative_through(robot.mass_matrix(q), tau, back, qdd) <= 1e-10

    frame = next(frame.name for frame in reversed(robot.model.frames) if frame.link != BASE)
    force = forces[:, 0]
    rotation = robot.pose(q, frame)[:, :3, :3]
    in_base = np.einsum("kij,ksj->ksi", rotation, force.reshape(SAMPLES, 2, 3)).reshape(SAMPLES, 6)
    pushed = np.einsum("kij,ki->kj", robot.jacobian(q, frame), in_base)  # J^T f, which the joints need not give
    difference = robot.inverse_dynamics(q, qd, qdd, f_ext={frame: force}) - robot.inverse_dynamics(q, qd, qdd)
    assert relative(difference, -pushed) <= 1e-10


@pytest.mark.parametrize("name", [UR5, PANDA])
def test_derivatives_of_inverse_dynamics(name: str):
    pair = twin(name)
    q, qd, qdd = pair.states(SAMPLES)
    function = pair.robot.compile("inverse_dynamics")
    ours = {by: function.derivative(by)(q, qd, qdd) for by in ("q", "qd", "qdd")}
    for k in range(SAMPLES):
        state = (pair.configuration(q[k]), pair.velocity(qd[k]), pair.velocity(qdd[k]))
        by_q, by_qd, by_qdd = pin.computeRNEADerivatives(pair.model, pair.data, *state)
        assert relative(ours["q"][k], pair.ours(by_q)) <= 1e-9
        assert relative(ours["qd"][k], pair.ours(by_qd)) <= 1e-9
        assert relative(ours["qdd"][k], pair.ours(np.triu(by_qdd) + np.triu(by_qdd, 1).T)) <= 1e-9


@pytest.mark.quick
def test_derivatives_of_forward_dynamics():
    pair = twin(UR5)
    q, qd, tau = pair.states(SAMPLES)
    function = pair.robot.compile("forward_dynamics")
    ours = {by: function.derivative(by)(q, qd, tau) for by in ("q", "qd", "tau")}
    for k in range(SAMPLES):
        state = (pair.configuration(q[k]), pair.velocity(qd[k]), pair.velocity(tau[k]))
        by_q, by_qd, by_tau = pin.computeABADerivatives(pair.model, pair.data, *state)
        assert relative(ours["q"][k], pair.ours(by_q)) <= 1e-9
        assert relative(ours["qd"][k], pair.ours(by_qd)) <= 1e-9
        assert relative(ours["tau"][k], pair.ours(by_tau)) <= 1e-9


def test_damping_and_friction_count_only_when_asked_for():
    """Pinocchio's rnea ignores them, as do we: the comparisons above include robots that have them."""
    pair = twin(PANDA)
    robot = pair.robot
    joints = [next(link.joint for link in robot.model.links if link.joint.name == n) for n in robot.joint_names]
    damping, friction = np.array([joint.damping for joint in joints]), np.array([joint.friction for joint in joints])
    assert damping.min() > 0
    q, qd, qdd = pair.states(SAMPLES)
    tau = robot.inverse_dynamics(q, qd, qdd, dissipation=True)
    expected = robot.inverse_dynamics(q, qd, qdd) + damping * qd + friction * np.sign(qd)
    assert relative(tau, expected) <= 1e-14
    back = robot.forward_dynamics(q, qd, tau, dissipation=True)
    assert relative_through(robot.mass_matrix(q), tau, back, qdd) <= 1e-13


@pytest.mark.quick
@pytest.mark.parametrize("name", [UR5, PANDA])
def test_single_precision(name: str):
    robot = twin(name).robot
    q, qd, qdd = (x.astype(np.float32) for x in twin(name).states(500))
    tau = robot.inverse_dynamics(q, qd, qdd)
    assert tau.dtype == np.float32
    assert relative(tau, robot.inverse_dynamics(q.astype(float), qd.astype(float), qdd.astype(float))) <= 5e-6
    back = robot.forward_dynamics(q, qd, tau)
    exact = robot.forward_dynamics(q.astype(float), qd.astype(float), tau.astype(float))
    assert relative_through(robot.mass_matrix(q.astype(float)), tau, back, exact) <= 5e-6
    if name == UR5:
        assert relative(back, exact) <= 5e-6


# ---- MuJoCo: armature, prismatic joints, gravity in any direction ------------------------------------------------

ARMS = {  # kind, axis, place and turn (about x, degrees) in the parent, mass, com, inertia, armature
    "3R": [
        ("revolute", (0, 0, 1), (0, 0, 0.4), 0.0, 3.0, (0.01, 0.02, 0.1), (0.05, 0.06, 0.02), 0.3),
        ("revolute", (0, 1, 0), (0.1, 0, 0.2), 30.0, 2.0, (0.2, 0.0, 0.03), (0.01, 0.04, 0.045), 0.2),
        ("revolute", (0.6, 0, 0.8), (0.4, 0.05, 0), -70.0, 1.0, (0.1, -0.02, 0.01), (0.004, 0.01, 0.012), 0.05),
    ],
    "RPR": [
        ("revolute", (0, 0, 1), (0, 0, 0.3), 0.0, 4.0, (0.0, 0.05, 0.2), (0.08, 0.07, 0.03), 0.4),
        ("prismatic", (1, 0, 0), (0.2, 0, 0.1), 20.0, 2.0, (0.15, 0.01, 0.0), (0.01, 0.03, 0.035), 1.5),
        ("revolute", (0, -1, 0), (0.3, 0, 0), 0.0, 1.5, (0.0, 0.0, 0.12), (0.02, 0.018, 0.006), 0.1),
    ],
}
GRAVITY = (1.0, -2.0, -9.0)


def turn_x(degrees: float) -> np.ndarray:
    c, s = np.cos(np.radians(degrees)), np.sin(np.radians(degrees))
    return np.array([[1, 0, 0], [0, c, -s], [0, s, c]])


def ours_of(arm: str) -> ls.Robot:
    parts = []
    for k, (kind, axis, place, turn, mass, com, inertia, armature) in enumerate(ARMS[arm]):
        rows: Any = tuple(map(tuple, turn_x(turn).tolist()))
        joint = Joint(f"joint{k}", kind, axis, Placement(rows, place), armature=armature)
        xx, yy, zz = inertia
        body = Inertial(mass, com, description.symmetric(xx, yy, zz))
        parts.append(Part(f"link{k}", f"link{k - 1}" if k else "base", joint, body))
    return ls.Robot(assemble(arm, parts, base="base", gravity=GRAVITY))


def mujoco_of(arm: str) -> Any:
    def words(numbers: tuple[float, ...]) -> str:
        return " ".join(map(str, numbers))

    body = ""
    for k, (kind, axis, place, turn, mass, com, inertia, armature) in reversed(list(enumerate(ARMS[arm]))):
        kind = "hinge" if kind == "revolute" else "slide"
        body = f"""<body name="link{k}" pos="{words(place)}" euler="{turn} 0 0">
            <joint type="{kind}" axis="{words(axis)}" armature="{armature}"/>
            <inertial pos="{words(com)}" mass="{mass}" diaginertia="{words(inertia)}"/>{body}</body>"""
    options = f'<compiler angle="degree"/><option gravity="{words(GRAVITY)}"/>'
    return mujoco.MjModel.from_xml_string(f"<mujoco>{options}<worldbody>{body}</worldbody></mujoco>")


@pytest.mark.quick
@pytest.mark.parametrize("arm", ARMS)
def test_arms_with_armature_are_those_of_mujoco(arm: str):
    robot, model = ours_of(arm), mujoco_of(arm)
    data = mujoco.MjData(model)
    q, qd, qdd = np.random.default_rng(2).uniform(-2, 2, (3, 5, 3))
    tau, mass_matrix, bias = robot.compile(["inverse_dynamics", "mass_matrix", "bias_forces"])(q, qd, qdd)
    accelerations, pose = robot.forward_dynamics(q, qd, tau), robot.pose(q, "link2")
    jacobian = robot.jacobian(q, "link2")
    for k in range(len(q)):
        data.qpos[:], data.qvel[:], data.qfrc_applied[:] = q[k], qd[k], tau[k]
        mujoco.mj_forward(model, data)
        column = np.empty(3)
        for j in range(3):
            mujoco.mj_mulM(model, data, column, np.eye(3)[j])
            assert relative(mass_matrix[k, j], column) <= 1e-13
        assert relative(bias[k], data.qfrc_bias) <= 1e-13
        assert relative(accelerations[k], data.qacc) <= 1e-12
        assert relative(pose[k, :3, 3], data.body("link2").xpos) <= 1e-13
        assert relative(pose[k, :3, :3], data.body("link2").xmat.reshape(3, 3)) <= 1e-13
        linear, angular = np.empty((3, 3)), np.empty((3, 3))
        mujoco.mj_jacBody(model, data, linear, angular, data.body("link2").id)
        assert relative(jacobian[k], np.vstack([angular, linear])) <= 1e-13
        data.qacc[:] = qdd[k]
        mujoco.mj_inverse(model, data)
        assert relative(tau[k], data.qfrc_inverse) <= 1e-12
