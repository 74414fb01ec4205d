"""docs/conventions.md, statement by statement, against independent mechanics written out here."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import linksweep as ls

RNG = np.random.default_rng(20)

# Joints deliberately not in the order of the tree, one fixed, one continuous, one prismatic; a branch.
TREE = """<robot name="tree">
  <link name="ground"/>
  {links}
  <joint name="slide" type="prismatic"><parent link="upper"/><child link="hand"/>
    <origin xyz="0.4 0.1 0" rpy="0.3 0 0"/><axis xyz="0 1 0"/>
    <limit lower="-1" upper="1" effort="9" velocity="2"/></joint>
  <joint name="turn" type="continuous"><parent link="ground"/><child link="upper"/>
    <origin xyz="0 0 0.5"/><axis xyz="0 0 1"/></joint>
  <joint name="glue" type="fixed"><parent link="hand"/><child link="tip"/>
    <origin xyz="0 0 0.2" rpy="0 0.5 0"/></joint>
  <joint name="branch" type="revolute"><parent link="upper"/><child link="side"/>
    <origin xyz="0 0.3 0" rpy="0 0 0.7"/><axis xyz="1 0 0"/><dynamics damping="2.5" friction="0.7"/>
    <limit lower="-1" upper="1" effort="9" velocity="2"/></joint>
</robot>"""
LINK = """<link name="{name}"><inertial><origin xyz="{com}"/><mass value="{mass}"/>
  <inertia ixx="0.2" ixy="0.01" ixz="0" iyy="0.3" iyz="0.02" izz="0.25"/></inertial></link>"""
MASSES = {"upper": 3.0, "hand": 1.5, "tip": 0.5, "side": 2.0}


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> ls.Robot:
    links = "".join(LINK.format(name=name, com="0.1 0.05 -0.1", mass=mass) for name, mass in MASSES.items())
    path: Path = tmp_path_factory.mktemp("conventions") / "tree.urdf"
    path.write_text(TREE.format(links=links))
    return ls.load(path)


@pytest.fixture(scope="module")
def puma() -> ls.Robot:
    return ls.robots.puma560()


def derivative(function, x: np.ndarray, step: float = 1e-6) -> np.ndarray:
    """Central differences along the last axis of the result: (..., len(x))."""
    columns = [(function(x + step * e) - function(x - step * e)) / (2 * step) for e in np.eye(len(x))]
    return np.stack(columns, axis=-1)


def potential_energy(robot: ls.Robot, q: np.ndarray) -> float:
    """−Σ m g·c of the tree, its mass centres taken from the file's text."""
    total = 0.0
    for name, mass in MASSES.items():
        centre = robot.pose(q, name) @ [0.1, 0.05, -0.1, 1.0]
        total -= mass * np.dot(robot.gravity, centre[:3])
    return total


def test_joints_stand_in_document_order_without_fixed_ones(tree: ls.Robot):
    assert tuple(tree.joint_names) == ("slide", "turn", "branch")
    assert tree.nq == tree.nv == 3


def test_link_i_is_moved_by_joint_i(tree: ls.Robot):
    assert tuple(tree.link_names) == ("hand", "upper", "side")


def test_a_continuous_joint_has_one_coordinate_which_is_its_angle(tree: ls.Robot):
    turn = tree.pose([0.0, 0.3, 0.0], "upper")
    np.testing.assert_allclose(turn[:2, :2], [[np.cos(0.3), -np.sin(0.3)], [np.sin(0.3), np.cos(0.3)]])


def test_pose_takes_frame_coordinates_to_the_base(tree: ls.Robot):
    slide, turn = 0.25, 0.4
    roll, c, s = 0.3, np.cos(0.4), np.sin(0.4)
    in_upper = np.array([0.4, 0.1 + np.cos(roll) * slide, np.sin(roll) * slide])
    expected = np.array([c * in_upper[0] - s * in_upper[1], s * in_upper[0] + c * in_upper[1], in_upper[2] + 0.5])
    np.testing.assert_allclose(tree.pose([slide, turn, 0.0], "hand")[:3, 3], expected, atol=1e-15)
    np.testing.assert_array_equal(tree.pose([slide, turn, 0.0], "hand")[3], [0.0, 0.0, 0.0, 1.0])


@pytest.mark.parametrize("frame", ["hand", "tip", "side"])
def test_jacobian_is_angular_then_linear_along_the_axes_of_the_base(tree: ls.Robot, frame: str):
    q = RNG.uniform(-1, 1, 3)
    jacobian = tree.jacobian(q, frame)
    rate = derivative(lambda x: tree.pose(x, frame), q)
    np.testing.assert_allclose(jacobian[3:], rate[:3, 3], atol=1e-9)
    rotation = tree.pose(q, frame)[:3, :3]
    for column in range(3):
        skew = rate[:3, :3, column] @ rotation.T  # Ṙ Rᵀ = [ω×]
        np.testing.assert_allclose(jacobian[:3, column], [skew[2, 1], skew[0, 2], skew[1, 0]], atol=1e-9)


def test_gravity_is_an_acceleration_down_the_z_axis_by_default(tree: ls.Robot):
    np.testing.assert_array_equal(tree.gravity, [0.0, 0.0, -9.81])


@pytest.mark.parametrize("gravity", [(0.0, 0.0, -9.81), (3.0, -2.0, 1.0)])
def test_gravity_forces_hold_the_robot_still(tree: ls.Robot, gravity: tuple[float, float, float]):
    robot = tree.with_gravity(gravity)
    q = RNG.uniform(-1, 1, 3)
    slope = derivative(lambda x: np.array(potential_energy(robot, x)), q)
    np.testing.assert_allclose(robot.gravity_forces(q), slope, atol=1e-7)
    np.testing.assert_allclose(robot.forward_dynamics(q, np.zeros(3), robot.gravity_forces(q)), 0.0, atol=1e-12)
    np.testing.assert_array_equal(tree.gravity, [0.0, 0.0, -9.81])  # with_gravity made a new robot


def test_equation_of_motion(puma: ls.Robot):
    q, qd, qdd = RNG.uniform(-1, 1, (3, 6))
    tau = puma.inverse_dynamics(q, qd, qdd)
    np.testing.assert_allclose(puma.mass_matrix(q) @ qdd + puma.bias_forces(q, qd), tau, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(puma.forward_dynamics(q, qd, tau), qdd, rtol=1e-10, atol=1e-10)
    np.testing.assert_allclose(puma.bias_forces(q, np.zeros(6)), puma.gravity_forces(q), atol=1e-12)


def test_units_are_radians(puma: ls.Robot):
    q = RNG.uniform(-1, 1, 6)
    turned = puma.gravity_forces(q + 2 * np.pi)
    np.testing.assert_allclose(turned, puma.gravity_forces(q), atol=1e-12)


def test_armature_stands_on_the_diagonal_of_the_mass_matrix():
    row = {"alpha": 0.0, "a": 0.0, "d": 0.0, "mass": 2.0, "com": (0.5, 0.0, 0.0), "inertia": (0.0, 0.1, 0.1)}
    bare = ls.Robot.from_dh([row, {**row, "a": 1.0}], convention="modified")
    geared = ls.Robot.from_dh([{**row, "armature": 0.7}, {**row, "a": 1.0}], convention="modified")
    np.testing.assert_allclose(geared.mass_matrix([0.3, 0.4]) - bare.mass_matrix([0.3, 0.4]), np.diag([0.7, 0.0]))


def test_dissipation_acts_only_where_it_is_asked_for(tree: ls.Robot):
    q, qd, qdd = RNG.uniform(0.1, 1, (3, 3))
    without = tree.inverse_dynamics(q, qd, qdd)
    with_it = tree.inverse_dynamics(q, qd, qdd, dissipation=True)
    np.testing.assert_allclose(with_it - without, [0.0, 0.0, 2.5 * qd[2] + 0.7], atol=1e-12)


@pytest.mark.parametrize("frame", ["hand", "tip", "side"])
def test_external_force_acts_on_the_robot_in_its_frame_at_its_origin(tree: ls.Robot, frame: str):
    """Virtual work: the torques it saves are Jᵀ times the wrench, turned to the axes of the base."""
    q, qd, qdd = RNG.uniform(-1, 1, (3, 3))
    wrench = RNG.uniform(-1, 1, 6)
    rotation = tree.pose(q, frame)[:3, :3]
    saved = tree.jacobian(q, frame).T @ np.concatenate([rotation @ wrench[:3], rotation @ wrench[3:]])
    without = tree.inverse_dynamics(q, qd, qdd)
    np.testing.assert_allclose(without - tree.inverse_dynamics(q, qd, qdd, f_ext={frame: wrench}), saved, atol=1e-12)
    np.testing.assert_allclose(tree.forward_dynamics(q, qd, without - saved, f_ext={frame: wrench}), qdd, atol=1e-10)


def test_external_forces_by_link_are_in_the_order_of_the_links(tree: ls.Robot):
    q, qd, qdd = RNG.uniform(-1, 1, (3, 3))
    wrenches = RNG.uniform(-1, 1, (3, 6))
    by_row = tree.inverse_dynamics(q, qd, qdd, f_ext=wrenches)
    by_name = tree.inverse_dynamics(q, qd, qdd, f_ext=dict(zip(tree.link_names, wrenches, strict=True)))
    np.testing.assert_allclose(by_row, by_name, atol=1e-13)


def screw_x(angle: float, length: float) -> np.ndarray:
    c, s = np.cos(angle), np.sin(angle)
    return np.array([[1, 0, 0, length], [0, c, -s, 0], [0, s, c, 0], [0, 0, 0, 1.0]])


def screw_z(angle: float, length: float) -> np.ndarray:
    c, s = np.cos(angle), np.sin(angle)
    return np.array([[c, -s, 0, 0], [s, c, 0, 0], [0, 0, 1, length], [0, 0, 0, 1.0]])


@pytest.mark.parametrize("convention", ["modified", "standard"])
def test_denavit_hartenberg(convention: str):
    numbers = RNG.uniform(-1, 1, (3, 3))
    body = {"mass": 1.0, "com": (0.0, 0.0, 0.0), "inertia": (0.1, 0.1, 0.1)}
    rows = [{"alpha": alpha, "a": a, "d": d, **body} for alpha, a, d in numbers]
    robot = ls.Robot.from_dh(rows, convention=convention)
    q = RNG.uniform(-1, 1, 3)
    expected = np.eye(4)
    for (alpha, a, d), theta in zip(numbers, q, strict=True):
        if convention == "modified":
            expected = expected @ screw_x(alpha, a) @ screw_z(theta, d)
        else:
            expected = expected @ screw_z(theta, d) @ screw_x(alpha, a)
    np.testing.assert_allclose(robot.pose(q, robot.link_names[-1]), expected, atol=1e-14)


def test_denavit_hartenberg_convention_has_no_default():
    row = {"alpha": 0.0, "a": 0.0, "d": 0.0, "mass": 1.0, "com": (0.0, 0.0, 0.0), "inertia": (0.1, 0.1, 0.1)}
    with pytest.raises(ls.DescriptionError, match="convention"):
        ls.Robot.from_dh([row])  # pyright: ignore[reportCallIssue]


def test_rows_of_external_forces_are_in_the_frames_that_bear_the_links_names():
    """Seen with a standard table, where that frame is not at the link's joint."""
    body = {"mass": 1.0, "com": (0.0, 0.0, 0.0), "inertia": (0.1, 0.1, 0.1)}
    robot = ls.Robot.from_dh([{"alpha": 0.4, "a": 0.7, "d": 0.2, **body}] * 2, convention="standard")
    q, qd, qdd = RNG.uniform(-1, 1, (3, 2))
    wrenches = RNG.uniform(-1, 1, (2, 6))
    saved = np.zeros(2)
    for link, wrench in zip(robot.link_names, wrenches, strict=True):
        rotation = robot.pose(q, link)[:3, :3]
        saved += robot.jacobian(q, link).T @ np.concatenate([rotation @ wrench[:3], rotation @ wrench[3:]])
    without = robot.inverse_dynamics(q, qd, qdd)
    np.testing.assert_allclose(without - robot.inverse_dynamics(q, qd, qdd, f_ext=wrenches), saved, atol=1e-12)
