"""The regressor of real joints against torques that are written out, and its base form."""

from __future__ import annotations

import numpy as np
import pytest
from arms import arm, lively
from robots_for_tests import robot as small_robot

import linksweep as ls
from linksweep.identification.base_form import base_form
from linksweep.identification.regressor import Regressor
from linksweep.model.model import Coupling

ALL = ("inertia", "armature", "viscous", "coulomb_sides", "stribeck", "offset")


def motion(nv: int, rows: int = 40) -> np.ndarray:
    return np.random.default_rng(4).normal(size=(3, rows, nv))


@pytest.mark.quick
def test_every_term_of_a_drive_is_what_it_says():
    robot = arm("puma560")
    q, qd, qdd = motion(6)
    regressor = Regressor(robot, ALL, drives={"motor_6": {"joint5": 1.0, "joint6": 2.0}}, stribeck=0.5)
    numbers = dict(zip(regressor.names, np.random.default_rng(5).uniform(0.5, 2.0, len(regressor)), strict=True))
    expected = (robot.regressor(q, qd, qdd)[..., :60] @ [numbers[name] for name in regressor.names[:60]]).copy()
    rows = {name: np.eye(6)[k] for k, name in enumerate(robot.joint_names)} | {
        "motor_6": np.array([0, 0, 0, 0, 1.0, 2.0])
    }
    for name, row in rows.items():
        v, dv = qd @ row, qdd @ row
        own = {
            what: numbers[f"{name}.{what}"]
            for what in ("armature", "viscous", "coulomb+", "coulomb-", "stribeck", "offset")
        }
        asked = own["armature"] * dv + own["viscous"] * v + own["offset"]
        asked += np.where(v > 0, own["coulomb+"], -own["coulomb-"]) + own["stribeck"] * np.sign(v) * np.exp(
            -((v / 0.5) ** 2)
        )
        expected += asked[:, None] * row
    x = np.array([numbers[name] for name in regressor.names])
    assert np.allclose(regressor.regressor(q, qd, qdd) @ x, expected, rtol=0, atol=1e-12 * np.abs(expected).max())
    torques = regressor.at(q, qd, qdd).torques(np.stack([x, 2.0 * x]))
    assert np.allclose(torques, [expected, 2.0 * expected], rtol=0, atol=1e-12 * np.abs(expected).max())


def test_what_is_not_unknown_comes_from_the_description():
    robot = arm("puma560").with_dissipation([1, 2, 3, 4, 5, 6], [6, 5, 4, 3, 2, 1], [0.5, -1, 2, 0.1, -0.2, 0.3])
    q, qd, qdd = motion(6)
    whole = robot.inverse_dynamics(q, qd, qdd, dissipation=True)
    for unknown in (("payload:tool",), ("inertia:link6",), ("viscous",), ("armature:joint2", "coulomb"), ALL):
        regressor = Regressor(robot, unknown, stribeck=1.0 if unknown is ALL else None)
        found = regressor.regressor(q, qd, qdd) @ regressor.prior + regressor.at(q, qd, qdd).known()
        assert np.allclose(found, whole, rtol=0, atol=1e-12 * np.abs(whole).max()), unknown


def test_a_payload_is_the_derivative_by_it():
    robot = arm("panda")
    q, qd, qdd = motion(7)
    by = robot.compile("inverse_dynamics", parameters=("payload:panda_hand",)).derivative("payload:panda_hand")
    found = Regressor(robot, ("payload:panda_hand",)).regressor(q, qd, qdd)
    expected = by(q, qd, qdd, np.zeros(10))
    assert np.allclose(found, expected, rtol=0, atol=1e-12 * np.abs(expected).max())


def test_coupled_joints_are_seen_by_virtual_work():
    robot = small_robot("planar3")
    names = robot.joint_names
    coupled = robot.with_couplings([Coupling(names[2], names[0], -0.5, 0.1)])
    regressor = Regressor(coupled, ("inertia", "armature", "viscous"))
    q, qd, qdd = motion(2)
    x = np.concatenate([robot.standard_parameters, [0.1, 0.2, 0.3]])
    full = coupled.expand(q), coupled.expand_rates(qd), coupled.expand_rates(qdd)
    expected = coupled.reduce_forces(robot.inverse_dynamics(*full) + full[1] * [0.1, 0.2, 0.3])
    assert np.allclose(regressor.regressor(q, qd, qdd) @ x, expected, rtol=0, atol=1e-12)
    assert np.allclose(regressor.at(q, qd, qdd).torques(x[None])[0], expected, rtol=0, atol=1e-12)


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"unknown": ("inertias",)}, "no 'inertias'.*did you mean 'inertia'"),
        ({"unknown": ()}, "expected names"),
        ({"unknown": ("coulomb", "coulomb:joint1")}, "names a parameter twice"),
        ({"unknown": ("inertia:link9",)}, "no link 'link9'"),
        ({"unknown": ("payload:hand",)}, "no moving frame 'hand'"),
        ({"unknown": ("stribeck",)}, "expected its speed"),
        ({"stribeck": -1.0}, "speed above 0"),
        ({"drives": {"m": {"elbow": 1}}}, "expected .joint: factor"),
        ({"drives": np.ones((2, 5))}, r"shape \(2, 5\), expected \(drives, 6\)"),
        ({"drives": np.zeros((1, 6))}, "at least one nonzero for each drive"),
    ],
)
def test_mistakes_are_one_sentence(options: dict, sentence: str):
    with pytest.raises(ls.ArgumentError, match=sentence):
        Regressor(arm("puma560"), **options)


def test_joints_of_several_freedoms_are_refused():
    with pytest.raises(ls.ArgumentError, match="is free, expected 1-DOF joints"):
        Regressor(arm("puma560").with_base("floating"))


# ---- the base form ---------------------------------------------------------------------------------------------


@pytest.mark.cases(1)
@pytest.mark.parametrize("method", ["rule", "qr"])
@pytest.mark.parametrize("name", ["puma560", "ur5", "panda"])
def test_the_base_form_makes_the_same_torques(name: str, method: str):
    robot = arm(name)
    regressor = Regressor(robot, ALL, stribeck=0.3)
    base = base_form(regressor, method)
    assert base.method == method
    _, q, qd, qdd = lively(robot.nv, 2.0, 50.0)
    x = np.random.default_rng(8).normal(size=len(regressor))
    Y = regressor.regressor(q, qd, qdd)
    again = Y[..., list(base.pivots)] @ base.from_base @ (base.matrix @ x)
    assert np.abs(Y @ x - again).max() <= 1e-11 * np.abs(Y @ x).max()
    W = (Y[..., list(base.pivots)] @ base.from_base).reshape(-1, len(base))
    assert np.linalg.matrix_rank(W / np.linalg.norm(W, axis=0)) == len(base)  # as few as can be


@pytest.mark.cases(1)
@pytest.mark.parametrize("name", ["mixed3", "mixed5", "chain7", "tree4", "tree9", "urdf", "stanford"])
def test_both_ways_find_as_many_numbers(name: str):
    robot = small_robot(name)
    if any(link.joint.kind in ("free", "spherical", "planar") for link in robot.model.links):
        pytest.skip("multi-DOF joints cannot be identified from a log of positions")
    regressor = Regressor(robot)
    assert len(base_form(regressor, "rule")) == len(base_form(regressor, "qr"))


def test_names_say_what_is_grouped():
    base = base_form(Regressor(arm("puma560")))
    assert len(base) == 36 + 4 * 6 - 2  # the armatures of joints 1 and 2 turn with ZZ1 and ZZ2 alone
    assert "joint1.armature" in base.text("ZZ1") and "0.2094 link6.m" in base.text("ZZ1")
    assert "joint2.armature" in base.text("ZZ2")
    assert base.text("joint3.coulomb") == "joint3.coulomb"
    assert {"link1.mx", "link1.XX", "link1.m"} <= set(base.unidentifiable)  # link 1 turns about the vertical
    # the values are those of the robot's own base parameters, with the armatures of joints 1 and 2
    own = arm("puma560").base_parameters()
    found = dict(zip(base.names, base.matrix @ base.regressor.prior, strict=True))
    assert np.isclose(found["ZZ1"], own["ZZ1"] + arm("puma560").armature[0], rtol=1e-12)
    assert np.isclose(found["MX2"], own["MX2"], rtol=1e-12)


def test_an_offset_is_part_of_friction_on_two_sides():
    base = base_form(Regressor(arm("puma560"), ("inertia", "coulomb_sides", "offset")))
    assert base.text("joint4.coulomb+") == "joint4.coulomb+ + joint4.offset"
    assert base.text("joint4.coulomb-") == "joint4.coulomb- - joint4.offset"
    assert "joint4.offset" not in base.names


def test_a_tilted_base_shows_more():
    upright = base_form(Regressor(arm("puma560")))
    tilted = base_form(Regressor(arm("puma560").with_gravity((3.0, 0.0, -9.0))))
    assert set(tilted.names) - set(upright.names) == {"MX1", "MY1"}
