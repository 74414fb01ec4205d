"""Edited robots: a base set free, joints locked, chains cut out; each against the robot it came from."""

# Arguments that are wrong on purpose, or numbers over any scalar:
# pyright: reportArgumentType=false
from __future__ import annotations

import numpy as np
import pin_models
import pinocchio as pin
import pytest

import linksweep as ls
from linksweep.errors import ModelWarning
from linksweep.joints import KINDS as SIZES
from linksweep.model.assembly import Part, assemble
from linksweep.model.model import BASE, Inertial, Joint, Placement

KINDS = ("revolute", "spherical", "planar", "helical", "prismatic", "revolute")


@pytest.fixture(autouse=True)
def interpreted(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("linksweep.support.settings.backend", "interpreter")


def state(robot: ls.Robot, seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    return (robot.random(rng), *rng.uniform(-1, 1, (2, robot.nv)))


def close(a: np.ndarray, b: np.ndarray, tolerance: float = 1e-11) -> bool:
    return bool(np.abs(a - b).max() <= tolerance * max(1.0, np.abs(b).max()))


# ---- the base ----------------------------------------------------------------------------------------------


@pytest.mark.cases(1)
@pytest.mark.parametrize("tree", [False, True])
def test_a_floating_base_is_pinocchio_s_free_flyer(tree: bool):
    robot = pin_models.random_robot(KINDS, tree=tree, seed=3).with_gravity((0.3, -0.4, -9.0)).with_base("floating")
    assert robot.joint_names[0] == "root_joint" and robot.link_names[0] == "base"
    assert (robot.frame_names[0], robot.model.base, robot.nv) == ("world", "world", 6 + 1 + 3 + 3 + 1 + 1 + 1)
    model = pin_models.pin_model(robot)
    data, where = model.createData(), pin_models.places(robot, model)
    q, qd, qdd = state(robot)
    q[4:7] = (1.0, 2.0, 3.0)
    assert np.allclose(robot.pose(q, "base")[:3, 3], (1.0, 2.0, 3.0), atol=1e-13)
    theirs = pin_models.their_q(robot, model, q)
    tau = pin.rnea(model, data, theirs, pin_models.their_v(where, qd), pin_models.their_v(where, qdd))[where]
    assert close(robot.inverse_dynamics(q, qd, qdd), tau)
    assert close(robot.forward_dynamics(q, qd, tau), qdd, 1e-9)


@pytest.mark.quick
def test_floating_and_back_is_the_same_model():
    robot = pin_models.random_robot(KINDS, tree=True, seed=4).with_gravity((1.0, 2.0, 3.0))
    free = robot.with_base("floating")
    assert free.with_base("fixed") == robot
    assert free.with_base("floating") is free and robot.with_base("fixed") is robot
    assert free.gravity == robot.gravity


@pytest.mark.quick
def test_a_held_floating_base_leaves_the_fixed_robot():
    robot = pin_models.random_robot(KINDS, seed=5)
    free = robot.with_base("floating")
    q, qd, qdd = state(robot)
    still, zero = free.neutral()[:7], np.zeros(6)
    all_q, all_qd, all_qdd = np.r_[still, q], np.r_[zero, qd], np.r_[zero, qdd]
    assert close(free.inverse_dynamics(all_q, all_qd, all_qdd)[6:], robot.inverse_dynamics(q, qd, qdd))
    assert free.lock("root_joint").frame_names[0] == "world"
    assert close(free.lock("root_joint").inverse_dynamics(q, qd, qdd), robot.inverse_dynamics(q, qd, qdd))


def test_the_base_s_weight_is_what_stands_on_it():
    body = Inertial(2.0, (0.1, 0.0, 0.0), ((0.1, 0.0, 0.0), (0.0, 0.1, 0.0), (0.0, 0.0, 0.1)))
    parts = [
        Part("box", "base", Joint("glue", "fixed", placement=Placement(position=(0.0, 1.0, 0.0))), body),
        Part("arm", "base", Joint("turn"), body),
    ]
    robot = ls.Robot(assemble("r", parts, base="base", base_inertial=body))
    assert robot.model.base_inertial.mass == 4.0 and robot.model.base_inertial.com == (0.1, 0.5, 0.0)
    free = robot.with_payload("box", 1.0).with_base("floating")
    weight = free.inverse_dynamics(free.neutral(), np.zeros(7), np.zeros(7))
    assert weight[3:6] == pytest.approx((0.0, 0.0, 7.0 * 9.81))


def test_a_massless_base_under_a_coaxial_joint_is_singular():
    """The Stanford arm turns about its base's z: without inertia of its own the base can turn the other way at will."""
    with pytest.warns(ModelWarning, match="no inertia moves with joint root_joint"):
        robot = ls.robots.stanford().with_base("floating")
    q, qd, qdd = state(robot)
    assert np.isfinite(robot.inverse_dynamics(q, qd, qdd)).all()
    with pytest.raises(ls.SingularError, match="root_joint"):
        robot.forward_dynamics(q, qd, qdd)
    heavy = ls.robots.stanford().with_payload("base", 10.0, inertia=(1.0, 1.0, 1.0)).with_base("floating")
    tau = heavy.inverse_dynamics(q, qd, qdd)
    assert np.allclose(heavy.forward_dynamics(q, qd, tau), qdd, rtol=0, atol=1e-10)


def test_taken_names_get_an_underscore():
    body = pin_models.random_inertial(np.random.default_rng(0))
    arm = Part("arm", "world", Joint("root_joint"), body)
    robot = ls.Robot(assemble("r", [arm], base="world", base_inertial=body)).with_base("floating")
    assert robot.joint_names == ("root_joint_", "root_joint") and robot.frame_names == ("world_", "world", "arm")


def test_fixing_a_free_joint_that_stands_aslant_turns_gravity():
    robot = pin_models.random_robot(("free", "revolute", "prismatic"), seed=6)
    fixed = robot.with_base("fixed")
    q, qd, qdd = state(fixed)
    all_q = np.r_[robot.neutral()[:7], q]
    expected = robot.inverse_dynamics(all_q, np.r_[np.zeros(6), qd], np.r_[np.zeros(6), qdd])[6:]
    assert fixed.model.base == "link0" and close(fixed.inverse_dynamics(q, qd, qdd), expected)
    a, b = np.linalg.inv(robot.pose(all_q, "link0")), fixed.pose(q, "flange2")
    assert np.allclose(a @ robot.pose(all_q, "flange2"), b, atol=1e-13)


def test_bases_that_cannot_be():
    robot = ls.robots.stanford()
    with pytest.raises(ls.ArgumentError, match=r"base is 'flying'.*expected 'fixed' or 'floating'"):
        robot.with_base("flying")
    with pytest.raises(ls.ArgumentError, match="single free body"):
        pin_models.random_robot(("free",)).with_base("fixed")
    heavy = assemble("r", [Part("a", "b", Joint("j"), Inertial(1.0))], base="b", base_inertial=Inertial(-1.0))
    with pytest.warns(ModelWarning), pytest.raises(ls.DescriptionError, match=r"mass of link 'b' is -1.0"):
        ls.Robot(heavy).with_base("floating")


# ---- locked joints -----------------------------------------------------------------------------------------


def embed(robot: ls.Robot, locked: ls.Robot, held: dict[str, np.ndarray], q: np.ndarray, v: np.ndarray):
    """q and v of the locked robot in the full one, and the places of v."""
    links = {name: link for name, link in zip(robot.joint_names, pin_models.by_row(robot), strict=True)}
    full_q, full_v, where = robot.neutral(), np.zeros(robot.nv), []
    for name, value in held.items():
        full_q[links[name].q_start : links[name].q_start + len(value)] = value
    for name, link in zip(locked.joint_names, pin_models.by_row(locked), strict=True):
        sizes, full = SIZES[link.kind], links[name]
        full_q[full.q_start : full.q_start + sizes.nq] = q[link.q_start : link.q_start + sizes.nq]
        full_v[full.start : full.start + sizes.nv] = v[link.start : link.start + sizes.nv]
        where += range(full.start, full.start + sizes.nv)
    return full_q, full_v, np.array(where)


@pytest.mark.quick
@pytest.mark.parametrize("tree", [False, True])
@pytest.mark.parametrize(
    "names", [["joint0"], ["joint1", "joint4"], ["joint5", "joint2", "joint3"], ["joint0", "joint1"]]
)
def test_a_locked_robot_is_the_full_one_with_joints_held(names: list[str], tree: bool):
    robot = pin_models.random_robot(("free", *KINDS), tree=tree, seed=7)
    links = {name: link for name, link in zip(robot.joint_names, pin_models.by_row(robot), strict=True)}
    somewhere = robot.random(np.random.default_rng(1))
    held = {name: somewhere[links[name].q_start : links[name].q_start + SIZES[links[name].kind].nq] for name in names}
    locked = robot.lock(names, at=held)
    assert locked == robot.lock(tuple(names), at=[held[name] for name in names])
    assert set(locked.joint_names) == set(robot.joint_names) - set(names)
    assert locked.frame_names == robot.frame_names
    q, qd, qdd = state(locked)
    full_q, full_qd, where = embed(robot, locked, held, q, qd)
    _, full_qdd, _ = embed(robot, locked, held, q, qdd)
    assert close(locked.inverse_dynamics(q, qd, qdd), robot.inverse_dynamics(full_q, full_qd, full_qdd)[where])
    assert close(locked.mass_matrix(q), robot.mass_matrix(full_q)[np.ix_(where, where)])
    assert close(locked.bias_forces(q, qd), robot.bias_forces(full_q, full_qd)[where])
    for frame in robot.frame_names:
        assert np.allclose(locked.pose(q, frame), robot.pose(full_q, frame), atol=1e-12), frame


def test_locking_defaults_to_neutral_and_takes_one_name():
    robot = ls.robots.puma560()
    assert robot.lock("joint6") == robot.lock(["joint6"], at=[0.0]) == robot.lock(["joint6"], at={"joint6": 0})
    assert robot.lock(["joint5", "joint6"], at={"joint5": 0.3}) == robot.lock(["joint5", "joint6"], at=(0.3, 0.0))
    assert robot.lock("joint6", at=0.5) == robot.lock(["joint6"], at=[0.5])
    assert robot.lock([]) == robot


def test_a_locked_joint_on_the_base_weighs_on_it():
    robot = pin_models.random_robot(("revolute", "revolute"), seed=8)
    total = robot.model.base_inertial.mass + robot.model.links[0].inertial.mass
    assert robot.lock("joint0").model.base_inertial.mass == pytest.approx(total)
    assert robot.lock("joint0").model.links[0].parent == BASE


@pytest.mark.parametrize(
    ("joints", "at", "message"),
    [
        ("elbow", None, r"no joint 'elbow', expected some of 'joint1'"),
        (["joint7"], None, r"no joint 'joint7' .did you mean"),
        (3, None, r"joints is 3, expected names"),
        ([3], None, r"joints is \[3\], expected names"),
        ("joint1", {"joint2": 0.0}, r"at= names 'joint2', expected only joints that are locked"),
        (["joint1", "joint2"], [0.0], r"at= has 1 entries, expected one for each of the 2"),
        ("joint1", [float("nan")], r"joint 'joint1' is nan, expected 1 finite number for a revolute"),
        ("joint1", [[1.0, 2.0]], r"expected 1 finite number for a revolute"),
        ("joint1", ["x"], r"expected 1 finite number"),
        ([f"joint{i}" for i in range(1, 7)], None, r"all 6 joints of 'puma560' would be locked"),
    ],
)
def test_locks_that_cannot_be(joints: object, at: object, message: str):
    with pytest.raises(ls.ArgumentError, match=message):
        ls.robots.puma560().lock(joints, at)


def test_a_ball_cannot_be_locked_at_a_zero_quaternion():
    robot = pin_models.random_robot(("revolute", "spherical"))
    with pytest.raises(ls.ArgumentError, match="quaternion of length 0"):
        robot.lock("joint1", at=[(0.0, 0.0, 0.0, 0.0)])


# ---- chains ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("fold", [True, False])
def test_a_subchain_is_the_rest_locked_or_dropped(fold: bool):
    robot = pin_models.random_robot(("revolute",) * 9, tree=True, seed=11)
    path, index = [], len(robot.model.links) - 1
    while index != BASE:
        path.append(robot.model.links[index].joint.name)
        index = robot.model.links[index].parent
    chain = robot.subchain("base", "flange8", fold)
    assert set(chain.joint_names) == set(path) and ("flange8" in chain.frame_names)
    rest = [name for name in robot.joint_names if name not in path]
    locked = robot.lock(rest)
    q, qd, qdd = state(chain)
    same = chain.inverse_dynamics(q, qd, qdd) - locked.inverse_dynamics(q, qd, qdd)
    assert rest and (np.abs(same).max() < 1e-11) == fold
    assert (set(chain.frame_names) == set(robot.frame_names)) == fold
    assert np.allclose(chain.pose(q, "flange8"), locked.pose(q, "flange8"), atol=1e-13)


def test_a_subchain_from_a_moving_frame_keeps_gravity_of_the_neutral_pose():
    robot = pin_models.random_robot(KINDS, seed=12)
    chain = robot.subchain("flange1", "flange4")
    assert chain.joint_names == ("joint2", "joint3", "joint4") and chain.model.base == "flange1"
    q, qd, qdd = state(chain)
    first, last = 1 + 4, 1 + 4 + 5
    full = robot.neutral()
    full[first:last] = q
    rates, accelerations = np.zeros((2, robot.nv))
    rates[4:9], accelerations[4:9] = qd, qdd
    assert close(chain.inverse_dynamics(q, qd, qdd), robot.inverse_dynamics(full, rates, accelerations)[4:9])
    start = np.linalg.inv(robot.pose(full, "flange1"))
    for frame in ("flange1", "link1", "link3", "flange4", "link5"):
        assert np.allclose(chain.pose(q, frame), start @ robot.pose(full, frame), atol=1e-12), frame
    assert "link0" not in chain.frame_names and chain.model.base_inertial.mass > 0


@pytest.mark.parametrize(
    ("base", "tip", "message"),
    [
        ("link5", "link2", "no joint between 'link5' and 'link2'"),
        ("link2", "link2", "no joint between"),
        ("link9", "link2", "no link or frame 'link9'"),
        ("link2", "tol", "did you mean 'tool'"),
    ],
)
def test_chains_that_are_none(base: str, tip: str, message: str):
    with pytest.raises(ls.ArgumentError, match=message):
        ls.robots.puma560().subchain(base, tip)
