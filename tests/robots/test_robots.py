"""The bundled robots: published numbers, through Pinocchio."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pinocchio as pin
import pytest

import linksweep as ls
from linksweep import Robot, robots
from linksweep.errors import ArgumentError, DescriptionError, ModelWarning
from linksweep.model.lint import lint
from linksweep.model.model import BASE, Model


def to_pinocchio(model: Model) -> pin.Model:
    """The same robot built joint by joint, in the order of `model.links`; armature left out."""
    out = pin.Model()
    out.gravity = pin.Motion(np.array(model.gravity), np.zeros(3))
    for link in model.links:
        joint = link.joint
        axis = np.array(joint.axis)
        kinds = {"revolute": pin.JointModelRevoluteUnaligned, "prismatic": pin.JointModelPrismaticUnaligned}
        at = pin.SE3(np.array(joint.placement.rotation), np.array(joint.placement.position))
        index = out.addJoint(0 if link.parent == BASE else link.parent + 1, kinds[joint.kind](axis), at, joint.name)
        body = pin.Inertia(link.inertial.mass, np.array(link.inertial.com), np.array(link.inertial.inertia))
        out.appendBodyToJoint(index, body, pin.SE3.Identity())
    return out


def torques(model: Model, q: np.ndarray, qd: np.ndarray, qdd: np.ndarray) -> np.ndarray:
    built = to_pinocchio(model)
    return pin.rnea(built, built.createData(), q, qd, qdd)


def frame_position(model: Model, q: np.ndarray, name: str) -> np.ndarray:
    built = to_pinocchio(model)
    data = built.createData()
    pin.forwardKinematics(built, data, q)
    frame = next(f for f in model.frames if f.name == name)
    return data.oMi[frame.link + 1].act(np.array(frame.placement.position))


@pytest.mark.quick
def test_puma_gives_the_check_torques_without_any_warning():
    model = robots.puma560_model()
    x = np.full(6, np.pi / 4)
    bare = [
        2.238157754673,
        -30.036853618722,
        -7.929710964721,
        0.012953977972,
        -0.007350032161,
        0.000066344845,
    ]
    full = [3.133511660946, -26.33762826912, -7.280186683591, 0.170033610651, 0.133236239088, 0.151648190381]
    got = torques(model, x, x, x)
    assert np.allclose(got, bare, rtol=0, atol=1e-11)
    armature = np.array([link.joint.armature for link in model.links])
    assert np.allclose(got + armature * x, full, rtol=0, atol=1e-11)
    zero = np.zeros(6)
    assert np.allclose(torques(model, zero, zero, zero), [0, -36.98580915, 0.24892875, 0, 0, 0], rtol=0, atol=1e-11)


def test_puma_carries_torque_and_friction_limits():
    joints = [link.joint for link in robots.puma560_model().links]
    assert [j.limits.effort for j in joints] == [97.6, 186.4, 89.4, 24.2, 20.1, 21.3]
    assert [j.friction for j in joints] == [6.3, 5.5, 2.6, 1.3, 1.0, 1.2]


def published_puma() -> Robot:
    """Armstrong, Khatib & Burdick 1986 as printed: link 1 without mass, link 3 with moments that no body has."""
    model = robots.puma560_model()
    printed = {
        "link1": (0.0, (0.0, 0.0, 0.35)),
        "link2": (17.40, (0.130, 0.524, 0.539)),
        "link3": (4.80, (0.066, 0.0125, 0.086)),
    }
    links = []
    for link in model.links:
        mass, moments = printed.get(link.name, (link.inertial.mass, np.diagonal(link.inertial.inertia)))
        inertia = tuple(map(tuple, np.diag(moments).tolist()))
        links.append(replace(link, inertial=replace(link.inertial, mass=mass, inertia=inertia)))
    return Robot(replace(model, links=tuple(links)))


def test_puma_moves_as_its_published_numbers_do():
    ours, printed = robots.puma560(), published_puma()
    q, qd, qdd = np.random.default_rng(3).uniform(-3, 3, (3, 50, 6))
    base = np.random.default_rng(4).uniform(-1, 1, 9)
    for gravity in ((0.0, 0.0, -9.81), (3.0, -5.0, 7.0)):
        a, b = ours.with_gravity(gravity), printed.with_gravity(gravity)
        tau = b.inverse_dynamics(q, qd, qdd, base_motion=base)
        np.testing.assert_allclose(
            a.inverse_dynamics(q, qd, qdd, base_motion=base), tau, rtol=0, atol=1e-12 * np.abs(tau).max()
        )
    np.testing.assert_allclose(ours.mass_matrix(q), printed.mass_matrix(q), rtol=0, atol=1e-14)


def test_puma_costs_what_its_published_numbers_cost_but_for_the_mass_of_link_1():
    """Three methods look at that mass; for the published numbers their counts are what they were."""
    ours, printed = robots.puma560(), published_puma()
    for method in printed.methods("inverse_dynamics"):
        same = printed.operation_count("inverse_dynamics", method) == ours.operation_count("inverse_dynamics", method)
        assert same == (method != "influence")
    counts = printed.operation_count("inverse_dynamics", "influence")
    assert (counts.mul, counts.add) == (743, 697)


def test_puma_is_made_of_bodies_that_exist(tmp_path: Path):
    robot = robots.puma560()
    assert not lint(robot.model)
    (tmp_path / "puma560.urdf").write_text(robot.to_urdf(), encoding="utf-8")
    ls.load(tmp_path / "puma560.urdf")  # warnings are errors here
    assert {finding.where for finding in lint(published_puma().model)} == {("link1",), ("link3",)}


def test_puma_has_the_limits_of_the_arm():
    limits = robots.puma560().limits
    np.testing.assert_allclose(np.degrees(limits.lower), [-160, -225, -45, -110, -100, -266])
    np.testing.assert_allclose(np.degrees(limits.upper), [160, 45, 225, 170, 100, 266])
    np.testing.assert_allclose(limits.velocity, [1.92, 1.51, 2.40, 5.34, 5.09, 5.74], atol=1e-3)
    stretched = robots.puma560().pose([0, 0, np.pi / 2, 0, 0, 0], "link4")[:3, 3]  # the middle of the elbow's range
    np.testing.assert_allclose(stretched[[0, 2]], [0.4318 + 0.4331, 0.0203], atol=1e-12)


def test_puma_right_angles_are_exact():
    entries = {x for link in robots.puma560_model().links for row in link.joint.placement.rotation for x in row}
    assert entries == {0.0, 1.0, -1.0}


def test_stanford_gives_the_two_static_values_that_survive():
    model = robots.stanford_model()
    assert [link.joint.kind[0] for link in model.links] == list("rrprrr")
    still = np.zeros(6)
    start = np.array([0, np.pi / 2, 0, 0, 0, 0])
    assert abs(torques(model, start, still, still)[1]) == pytest.approx(13.6948, abs=5e-5)
    rates = np.array([np.pi / 30, -np.pi / 60, -0.01, np.pi / 30, np.pi / 30, np.pi / 30])  # d3 = -b3
    assert abs(torques(model, start + 10 * rates, still, still)[2]) == pytest.approx(29.9205, abs=5e-5)


def test_six_axis_warns_of_its_published_inertia_and_starts_on_the_stated_line():
    with pytest.warns(ModelWarning, match=r"six_axis\.toml: the inertia of 'link1' violates the triangle") as caught:
        model = robots.six_axis_model()
    assert len(caught) == 1
    start = np.radians([0, 68.5, -135, 93.6, 90, 90])
    x, y, z = frame_position(model, start, "tool")
    assert (x, y, z) == pytest.approx((1.33, 0.0, 1.7915), abs=0.01)
    start[3] = np.radians(39.6)
    assert frame_position(model, start, "tool")[2] == pytest.approx(1.2376, abs=5e-5)


@pytest.mark.quick
def test_planar_rods_are_a_pendulum():
    """One rod: inertia m l^2 / 3 about its end, weight at half its length."""
    model = robots.planar_model(1, length=2.0, mass=3.0, gravity=10.0)
    zero = np.zeros(1)
    assert torques(model, zero, zero, zero) == pytest.approx([3.0 * 10.0 * 1.0])
    assert torques(model, zero, zero, np.ones(1)) == pytest.approx([30.0 + 3.0 * 4.0 / 3.0])
    assert torques(model, np.array([np.pi / 2]), zero, zero) == pytest.approx([0.0], abs=1e-14)


def test_planar_tool_is_the_free_end():
    q = np.array([0.3, -0.7, 1.1])
    angles = np.cumsum(q)
    expected = [np.cos(angles).sum(), np.sin(angles).sum(), 0.0]
    assert frame_position(robots.planar_model(3), q, "tool") == pytest.approx(expected)


@pytest.mark.parametrize("joints", ["R", "mixed"])
def test_chains_are_general_valid_and_repeatable(joints: str):
    model = robots.chain_model(12, seed=3, joints=joints)
    assert model == robots.chain_model(12, seed=3, joints=joints)
    assert model != robots.chain_model(12, seed=4, joints=joints)
    kinds = {link.joint.kind for link in model.links}
    assert kinds == ({"revolute"} if joints == "R" else {"revolute", "prismatic"})
    for link in model.links:
        moments = np.linalg.eigvalsh(np.array(link.inertial.inertia))
        assert moments[0] > 0 and moments[0] + moments[1] > moments[2]
        assert all(x != 0 for row in link.inertial.inertia for x in row)
        assert all(x != 0 for x in link.joint.placement.position)
        assert np.array(link.joint.placement.rotation)[[0, 1, 2], [0, 1, 2]].all()
    built = to_pinocchio(model)
    mass_matrix = pin.crba(built, built.createData(), np.random.default_rng(0).normal(size=12))
    full = np.triu(mass_matrix) + np.triu(mass_matrix, 1).T
    assert np.linalg.cond(full) < 1e6


@pytest.mark.parametrize("seed", range(20))
def test_mixed_chains_have_both_kinds_from_two_links(seed: int):
    assert {link.joint.kind for link in robots.chain_model(2, seed, "mixed").links} == {
        "revolute",
        "prismatic",
    }
    assert robots.chain_model(1, seed, "mixed").links[0].joint.kind == "revolute"


@pytest.mark.slow
def test_ten_thousand_links_build():
    assert len(robots.chain_model(10_000, joints="mixed").links) == 10_000


@pytest.mark.quick
def test_bundled_names():
    assert {"panda", "ur5e", "ur10e", "iiwa14", "gen3", "puma560", "six_axis", "stanford"} <= set(robots.names())
    assert robots.model("puma560") == robots.puma560_model()
    assert robots.model("stanford").name == "stanford"


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: robots.model("puma650"), r"no bundled robot is called 'puma650' .did you mean 'puma560'"),
        (lambda: robots.model("../x"), r"no bundled robot is called '../x'"),
        (lambda: robots.chain_model(0), r"n is 0, expected an integer of at least 1"),
        (lambda: robots.chain_model(2.5), r"n is 2.5"),  # type: ignore[arg-type]
        (lambda: robots.chain_model(3, seed=-1), r"seed is -1, expected an integer of at least 0"),
        (lambda: robots.chain_model(3, joints="P"), r"joints is 'P'.*expected 'R' or 'mixed'"),
        (lambda: robots.planar_model(True), r"n is True"),
    ],
)
def test_bad_arguments(call, message: str):
    with pytest.raises(ArgumentError, match=message):
        call()


@pytest.mark.parametrize("option", ["length", "mass", "gravity"])
def test_planar_refuses_impossible_rods(option: str):
    with pytest.raises(DescriptionError, match="expected"):
        robots.planar_model(2, **{option: float("nan")})


def test_the_list_of_robots_needs_no_numpy():
    code = "import linksweep.robots as r, sys; r.names(); sys.exit('numpy' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
