"""URDF text and DH tables of robots: read again they have the same dynamics, here and in Pinocchio."""

# Arguments that are wrong on purpose, or numbers over any scalar:
# pyright: reportArgumentType=false, reportCallIssue=false, reportOperatorIssue=false, reportTypedDictNotRequiredAccess=false
from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import oracles
import pin_models
import pinocchio as pin
import pytest

import linksweep as ls
from linksweep.errors import ModelWarning
from linksweep.model.assembly import Part, assemble
from linksweep.model.formats.dh import to_dh
from linksweep.model.formats.urdf import read_urdf, rotation_from_rpy, rpy_from_rotation, to_urdf
from linksweep.model.model import Inertial, Joint, Limits, Placement

pytestmark = pytest.mark.quick

UR5 = "ur_description/urdf/ur5_robot.urdf"
PANDA = "panda_description/urdf/panda.urdf"
BODY = Inertial(1.0, (0.1, 0.0, 0.2), ((0.1, 0.0, 0.0), (0.0, 0.1, 0.0), (0.0, 0.0, 0.1)))


def from_data(name: str, *locked: str) -> ls.Robot:
    return quietly(lambda: ls.load(oracles.FILES[name]).lock(locked))


CHAINS: dict[str, Callable[[], ls.Robot]] = {
    "puma560": ls.robots.puma560,
    "stanford": ls.robots.stanford,
    "six_axis": lambda: quietly(ls.robots.six_axis),
    "planar": lambda: ls.robots.planar(4),
    "chain": lambda: ls.robots.chain(9, 3),
    "mixed": lambda: ls.robots.chain(12, 4, "mixed"),
    "single": lambda: ls.robots.chain(1, 5),
    "ur5": lambda: from_data(UR5),
    "panda": lambda: from_data(PANDA, "panda_finger_joint1", "panda_finger_joint2"),
    "kinova": lambda: from_data("kinova_description/robots/kinova.urdf"),
    "any axes": lambda: pin_models.random_robot(("revolute", "prismatic", "revolute", "prismatic", "revolute"), seed=2),
}
TREES: dict[str, Callable[[], ls.Robot]] = {
    "tree": lambda: pin_models.random_robot(("revolute", "prismatic", "planar", "revolute"), tree=True, seed=3),
    "free": lambda: pin_models.random_robot(("free", "revolute", "planar", "prismatic"), tree=True, seed=4),
    "floating": lambda: pin_models.random_robot(("revolute", "prismatic"), tree=True, seed=5).with_base("floating"),
    "talos": lambda: from_data("talos_data/robots/talos_reduced.urdf"),
    "solo": lambda: from_data("solo_description/robots/solo12.urdf"),
    "standard DH": lambda: ls.Robot.from_dh(**ls.robots.chain(5, 6).to_dh("standard")),
}


@pytest.fixture(autouse=True)
def interpreted(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("linksweep.support.settings.backend", "interpreter")


def quietly(make: Callable[[], Any]) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ModelWarning)
        return make()


def same_dynamics(a: ls.Robot, b: ls.Robot, tolerance: float = 1e-10) -> None:
    assert a.joint_names == b.joint_names
    rng = np.random.default_rng(0)
    q = np.stack([a.random(rng) for _ in range(5)])
    qd, qdd = rng.uniform(-2, 2, (2, 5, a.nv))
    ours = a.inverse_dynamics(q, qd, qdd, dissipation=True)
    scale = np.abs(ours).max(axis=0)
    assert (np.abs(ours - b.inverse_dynamics(q, qd, qdd, dissipation=True)) <= tolerance * np.maximum(scale, 1.0)).all()
    m = a.mass_matrix(q)
    assert np.abs(m - b.mass_matrix(q)).max() <= tolerance * np.abs(m).max()


# ---- URDF --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", [*CHAINS, *TREES])
def test_urdf_text_is_the_same_robot(name: str):
    robot = (CHAINS | TREES)[name]()
    again = quietly(lambda: ls.Robot(read_urdf(robot.to_urdf(), gravity=robot.gravity)))  # of gravity it warns
    same_dynamics(robot, again)
    assert [link.joint.limits for link in robot.model.links] == [link.joint.limits for link in again.model.links]
    assert again.model.base_inertial == robot.model.base_inertial
    assert set(robot.frame_names) <= set(again.frame_names)
    q = robot.random(np.random.default_rng(1))
    for frame in robot.frame_names:
        assert np.allclose(robot.pose(q, frame), again.pose(q, frame), rtol=0, atol=1e-12), frame
    assert quietly(again.to_urdf).count("<joint") == quietly(robot.to_urdf).count("<joint")


def test_another_gravity_is_said():
    with pytest.warns(
        ls.ModelWarning, match=r"URDF cannot store gravity, so that of 'planar2', \(0.0, -9.81, 0.0\), is dropped"
    ):
        ls.robots.planar(2).to_urdf()


def test_the_base_has_its_weight_in_a_table():
    weight_of_base = '<inertial><mass value="50"/><inertia ixx="1" iyy="1" izz="1"/></inertial>'
    text = ls.robots.puma560().to_urdf().replace('<link name="base"/>', f'<link name="base">{weight_of_base}</link>')
    heavy = quietly(lambda: ls.Robot(read_urdf(text)))
    assert heavy.model.base_inertial.mass == 50
    again = ls.Robot.from_dh(**heavy.to_dh("modified"))
    q = heavy.with_base("floating").neutral()
    weight = heavy.with_base("floating").gravity_forces(q)
    assert np.allclose(again.with_base("floating").gravity_forces(q), weight, rtol=0, atol=1e-9)


def test_axes_that_are_far_apart_are_no_parallel_ones():
    far = ls.Robot.from_dh([{"mass": 1.0, "inertia": (1, 1, 1)}, {"a": 2e4, "alpha": math.pi / 2, "mass": 1.0,
                            "inertia": (1, 1, 1)}], "modified")  # fmt: skip
    with pytest.raises(ls.ArgumentError, match="normal 20000 m long and 0 m away"):
        far.to_dh("modified")


@pytest.mark.parametrize("name", ["puma560", "chain", "mixed", "ur5", "panda", "floating", "talos"])
def test_pinocchio_reads_the_text(name: str):
    robot = (CHAINS | TREES)[name]().with_gravity((0.0, 0.0, -9.81))
    model = pin.buildModelFromXML(robot.to_urdf())
    data, where = model.createData(), pin_models.places(robot, model)
    rng = np.random.default_rng(2)
    q, qd, qdd = robot.random(rng), *rng.uniform(-1, 1, (2, robot.nv))
    theirs = [pin_models.their_v(where, v) for v in (qd, qdd)]
    tau = pin.rnea(model, data, pin_models.their_q(robot, model, q), *theirs)[where]
    links = pin_models.by_row(robot)
    if robot.nv == len(links):
        tau += np.array([link.armature for link in links]) * qdd  # which URDF proper does not know
    assert np.abs(robot.inverse_dynamics(q, qd, qdd) - tau).max() <= 1e-10 * max(1.0, np.abs(tau).max())


def test_a_written_file_loads(tmp_path: Path):
    file = tmp_path / "arm.urdf"
    file.write_text(ls.robots.stanford().to_urdf(), encoding="utf-8")
    same_dynamics(ls.robots.stanford(), ls.load(file))


@pytest.mark.parametrize("kind", ["spherical", "helical"])
def test_joints_that_urdf_lacks_are_refused(kind: str):
    robot = pin_models.random_robot(("revolute", kind))
    with pytest.raises(ls.ArgumentError, match=rf"joint 'joint1' is {kind}, which URDF does not have"):
        robot.to_urdf()
    assert robot.lock("joint1").to_urdf().startswith("<?xml")


def test_names_are_escaped_and_kept():
    names = ['a"b', "<c>&'d'", "e f", "ñ漢"]
    parts = [Part(f"l{n}", "base" if i == 0 else f"l{names[i - 1]}", Joint(n), BODY) for i, n in enumerate(names)]
    model = assemble('<r "1">', parts, base="base")
    again = read_urdf(to_urdf(model))
    assert again.name == model.name and again.links == model.links
    with pytest.raises(ls.DescriptionError, match=r"'\\x01' contains a line break or another control character"):
        assemble("r", [Part("a", "b", Joint("\x01"), BODY)], base="b")
    with pytest.raises(ls.ArgumentError, match="character that XML cannot"):
        to_urdf(assemble("r", [Part("a", "b", Joint("\ufffe"), BODY)], base="b"))


def test_limits_without_end_stay_so():
    sides = [Limits(), Limits(lower=-1.0), Limits(upper=2.0, effort=3.0), Limits(-1.0, 1.0, 4.0), Limits(velocity=1.0)]
    parts = [
        Part(f"{kind}{i}", "base", Joint(f"j{kind}{i}", kind, limits=limits), BODY)
        for kind in ("revolute", "prismatic")
        for i, limits in enumerate(sides)
    ]
    model = assemble("r", parts, base="base")
    assert read_urdf(to_urdf(model)).links == model.links


def test_rotations_survive_roll_pitch_yaw():
    rng = np.random.default_rng(3)
    near = (0.0, 1e-16, 1e-12, 1e-9, 1e-8, 1e-6, 1e-3, 0.7)
    angles = [math.pi / 2 + sign * d for d in near for sign in (1, -1)] + [0.0, math.pi, *near]
    for pitch in [*angles, *(-a for a in angles)]:
        roll, yaw = rng.uniform(-math.pi, math.pi, 2)
        rotation = rotation_from_rpy(roll, pitch, yaw)
        again = rotation_from_rpy(*rpy_from_rotation(rotation))
        assert np.abs(np.array(rotation) - np.array(again)).max() < 2e-11, pitch  # the size that is snapped
    for _ in range(200):
        rotation = pin.exp3(rng.normal(size=3) * 2)
        again = rotation_from_rpy(*rpy_from_rotation(rotation.tolist()))
        assert np.abs(rotation - np.array(again)).max() < 1e-14


# ---- DH ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("convention", ["modified", "standard"])
@pytest.mark.parametrize("name", list(CHAINS))
def test_dh_rows_are_the_same_robot(name: str, convention: str):
    robot = CHAINS[name]()
    table = robot.to_dh(convention)
    again = ls.Robot.from_dh(**table)
    same_dynamics(robot, again)
    assert again.link_names == robot.link_names and again.gravity == robot.gravity
    assert [link.joint.limits for link in robot.model.links] == [link.joint.limits for link in again.model.links]
    last = [frame.name for frame in robot.model.frames if frame.link == len(robot.model.links) - 1]
    q = robot.random(np.random.default_rng(1))
    tip = "tool" if "tool" in last else last[-1]
    assert np.allclose(robot.pose(q, tip), again.pose(q, "tool"), rtol=0, atol=1e-12)
    other = ls.Robot.from_dh(**robot.to_dh(convention, tip=last[0]))
    assert np.allclose(robot.pose(q, last[0]), other.pose(q, "tool"), rtol=0, atol=1e-12)


@pytest.mark.parametrize("name", ["puma560", "stanford", "six_axis", "chain", "mixed"])
def test_a_modified_table_needs_no_mount_again(name: str):
    robot = CHAINS[name]()
    assert robot.to_dh("modified")["mount"] is None
    # a table of a table is the same table
    once = robot.to_dh("modified")
    twice = ls.Robot.from_dh(**once).to_dh("modified")
    for a, b in zip(once["rows"], twice["rows"], strict=True):
        for key in ("alpha", "a", "d", "theta"):
            assert math.remainder(a[key] - b[key], 2 * math.pi) == pytest.approx(0.0, abs=1e-9), (key, a, b)


def test_a_leaning_base_gets_a_mount():
    robot = pin_models.random_robot(("revolute", "revolute"), seed=9)
    table = robot.to_dh("modified")
    assert isinstance(table["mount"], Placement)
    assert table["rows"][0]["alpha"] == table["rows"][0]["a"] == 0.0


def test_chains_that_have_no_table():
    with pytest.raises(ls.ArgumentError, match=r"'test' branches at 'link\d', expected a serial chain"):
        pin_models.random_robot(("revolute",) * 5, tree=True).to_dh("modified")
    with pytest.raises(ls.ArgumentError, match=r"'test' has a helical joint, expected a serial chain"):
        pin_models.random_robot(("revolute", "helical")).to_dh("modified")
    with pytest.raises(ls.ArgumentError, match=r"the DH convention is None, expected 'modified'"):
        ls.robots.stanford().to_dh()
    with pytest.raises(ls.ArgumentError, match=r"'link2' is not on the last link"):
        ls.robots.stanford().to_dh("modified", tip="link2")


def test_nearly_parallel_axes_are_refused_with_their_names():
    turned = Placement(rotation_from_rpy(1e-7, 0.0, 0.0), (1.0, 1.0, 0.0))
    parts = [Part("a", "base", Joint("first"), BODY), Part("b", "a", Joint("second", placement=turned), BODY)]
    with pytest.raises(ls.ArgumentError, match=r"axes of 'first' and 'second' have a common normal .* m away"):
        to_dh(assemble("r", parts, base="base"), "modified")
