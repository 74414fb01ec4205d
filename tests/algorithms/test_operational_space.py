"""The operational space by recursion against J M^-1 J^T, Pinocchio, and the accelerations that forces make."""

# pyright: reportArgumentType=false
from __future__ import annotations

import numpy as np
import pinocchio as pin
import pytest
from pin_models import ALL_KINDS, pin_model, places, random_robot, their_q, their_v

import linksweep as ls
from linksweep.errors import ArgumentError, SingularError

REFERENCES = ("world_aligned", "local", "world")
TREE = random_robot((*ALL_KINDS, "revolute", "revolute", "revolute", "revolute"), tree=True, seed=3, armature=0.1)
TIPS = ("flange3", "flange7", "flange9", "link2")


def state(robot: ls.Robot, seed: int = 0) -> tuple[np.ndarray, ...]:
    rng = np.random.default_rng(seed)
    return (robot.random(rng), *rng.normal(size=(2, robot.nv)))


def dense(robot: ls.Robot, q: np.ndarray, frames: tuple[str, ...], reference: str = "world_aligned") -> np.ndarray:
    J = np.vstack([robot.jacobian(q, frame, reference=reference) for frame in frames])
    return J @ np.linalg.solve(robot.mass_matrix(q), J.T)


def off(ours: np.ndarray, theirs: np.ndarray) -> float:
    return float(np.abs(ours - theirs).max() / np.abs(theirs).max())


@pytest.mark.slow
@pytest.mark.cases(1)
@pytest.mark.parametrize("reference", REFERENCES)
@pytest.mark.parametrize("backend", ["llvm", "interpreter"])
def test_four_tips_of_a_tree_of_every_joint(reference: str, backend: str):
    q = state(TREE)[0]
    function = TREE.compile(("operational_inertia_inverse", (*TIPS, "base"), reference), backend=backend)
    omega = function(q)
    assert off(omega, dense(TREE, q, (*TIPS, "base"), reference)) < 1e-13
    assert np.array_equal(omega, omega.T)
    assert not omega[-6:].any()  # a frame on the base does not move


@pytest.mark.cases(1)
@pytest.mark.parametrize("links", [1, 2, 7, 20, 50])
def test_chains(links: int):
    robot = ls.robots.chain(links, seed=links)
    q, tip = state(robot)[0], robot.frame_names[-1]
    assert off(robot.operational_inertia_inverse(q, tip), dense(robot, q, (tip,))) < 1e-10


@pytest.mark.slow
def test_operations_are_linear_in_the_links():
    totals = []
    for links in (10, 20, 30, 40):
        robot = ls.robots.chain(links)
        totals.append(robot.operation_count(("operational_inertia_inverse", robot.frame_names[-1])).total)
    assert len(set(np.diff(totals))) == 1


@pytest.mark.slow
@pytest.mark.cases(1)
@pytest.mark.parametrize("reference", REFERENCES)
def test_frames_move_as_their_jacobians_say_and_as_in_pinocchio(reference: str):
    q, qd, qdd = state(TREE)
    model = pin_model(TREE)
    data, where = model.createData(), places(TREE, model)
    theirs = (their_q(TREE, model, q), their_v(where, qd), their_v(where, qdd))
    pin.forwardKinematics(model, data, *theirs)
    joint = model.getJointId("joint9")
    for frame in (*TIPS, "link9", "base"):
        J, dJ = (
            TREE.jacobian(q, frame, reference=reference),
            TREE.jacobian_derivative(q, qd, frame, reference=reference),
        )
        given = {"reference": reference}
        np.testing.assert_allclose(TREE.frame_velocity(q, qd, frame, **given), J @ qd, atol=1e-12)
        np.testing.assert_allclose(TREE.jacobian_bias(q, qd, frame, **given), dJ @ qd, atol=1e-12)
        np.testing.assert_allclose(TREE.frame_acceleration(q, qd, qdd, frame, **given), J @ qdd + dJ @ qd, atol=1e-12)
    seen = {"world_aligned": pin.LOCAL_WORLD_ALIGNED, "local": pin.LOCAL, "world": pin.WORLD}[reference]
    velocity = pin.getVelocity(model, data, joint, seen)
    ours = TREE.frame_velocity(q, qd, "link9", reference=reference)
    np.testing.assert_allclose(ours, np.r_[velocity.angular, velocity.linear], atol=1e-12)
    if reference != "world_aligned":  # theirs is spatial: in these two it is the derivative of the velocity
        found = pin.getAcceleration(model, data, joint, seen)
    else:
        found = pin.getClassicalAcceleration(model, data, joint, seen)
    ours = TREE.frame_acceleration(q, qd, qdd, "link9", reference=reference)
    np.testing.assert_allclose(ours, np.r_[found.angular, found.linear], atol=1e-11)


def test_accelerations_by_numerical_differentiation():
    q, qd, qdd = state(TREE, 1)
    h = 1e-5
    for reference in REFERENCES:
        before, after = (
            TREE.frame_velocity(
                TREE.integrate(q, qd * s + qdd * (s * s / 2)), qd + qdd * s, "flange7", reference=reference
            )
            for s in (-h, h)
        )
        ours = TREE.frame_acceleration(q, qd, qdd, "flange7", reference=reference)
        np.testing.assert_allclose((after - before) / (2 * h), ours, atol=1e-6)  # h^2 and rounding / h


@pytest.mark.slow
def test_the_record_moves_the_frames():
    """Torques J^T F with F = Lambda a + bias + gravity give a; what the null space lets through gives none."""
    robot = random_robot(("revolute", "prismatic", "spherical", "revolute", "revolute", "helical", "revolute"), seed=5)
    q, qd, other = state(robot)
    tip = "flange6"
    space = robot.operational_space(q, qd, tip)
    wanted = np.arange(1.0, 7.0)
    force = space.inertia @ wanted + space.bias + space.gravity
    tau = space.jacobian.T @ force + space.null_space.T @ other
    qdd = robot.forward_dynamics(q, qd, tau)
    np.testing.assert_allclose(robot.frame_acceleration(q, qd, qdd, tip), wanted, atol=1e-9)
    assert space.rank == 6 and space.frames == (tip,)
    np.testing.assert_allclose(space.jacobian @ space.consistent_inverse, np.eye(6), atol=1e-10)
    np.testing.assert_allclose(robot.operational_inertia(q, tip), space.inertia, rtol=1e-12)
    np.testing.assert_allclose(space.inertia @ robot.operational_inertia_inverse(q, tip), np.eye(6), atol=1e-9)


@pytest.mark.slow
def test_several_frames_in_a_batch():
    rng = np.random.default_rng(0)
    q = np.stack([TREE.random(rng) for _ in range(5)])
    qd = rng.normal(size=TREE.nv)
    batch = TREE.operational_space(q, qd, ["flange9", "flange7"])
    for index in range(5):
        one = TREE.operational_space(q[index], qd, ["flange9", "flange7"])
        for name in ("omega", "inertia", "bias", "gravity", "jacobian", "consistent_inverse", "null_space", "rank"):
            # the inverse of a 12 by 12 matrix, batched or alone: rounding times its condition
            np.testing.assert_allclose(getattr(batch, name)[index], getattr(one, name), rtol=1e-7, atol=1e-9)
    assert batch.omega.shape == (5, 12, 12)


def test_singular_poses_say_their_rank():
    puma = ls.robots.puma560()
    straight = np.array([0.3, 0.4, -0.2, 0.5, 0.0, 0.1])
    np.testing.assert_allclose(
        puma.operational_inertia_inverse(straight, "tool"), dense(puma, straight, ("tool",)), atol=1e-12
    )
    with pytest.raises(SingularError, match="rank 5, expected 6"):
        puma.operational_inertia(straight, "tool")
    assert np.isfinite(puma.operational_inertia(straight, "tool", damping=1e-3)).all()
    space = puma.operational_space(np.stack([straight, straight + 0.3]), np.zeros(6), "tool")
    assert space.rank.tolist() == [5, 6]
    assert np.isnan(space.inertia[0]).all() and np.isfinite(space.inertia[1]).all()
    with pytest.raises(SingularError, match=r"rank 3"):
        ls.robots.planar(3).operational_inertia(np.array([0.1, 0.2, 0.3]), "tool")
    assert puma.manipulability(straight, "tool") < 1e-14 < puma.manipulability(straight + 0.3, "tool")
    J = puma.jacobian(straight + 0.3, "tool")
    assert puma.manipulability(straight + 0.3, "tool") == pytest.approx(abs(np.linalg.det(J)), rel=1e-12)
    assert puma.manipulability(straight, "tool", rows="linear") > 1e-3


def test_mistakes():
    puma, q = ls.robots.puma560(), np.zeros(6)
    for frames, sentence in [
        ("tol", "no frame 'tol'"), (["tool", "tool"], "named twice"), ([], "no frame is named"), (3, "no frame 3"),
    ]:  # fmt: skip
        with pytest.raises(ArgumentError, match=sentence):
            puma.operational_inertia_inverse(q, frames)
    for call in (
        lambda: puma.operational_inertia(q, "tool", damping=-1.0),
        lambda: puma.manipulability(q, "tool", rows="x"),
    ):
        with pytest.raises(ArgumentError, match="expected"):
            call()
    with pytest.raises(ArgumentError, match="cannot be expressed in"):
        puma.frame_velocity(q, q, "tool", reference="elsewhere")


@pytest.mark.parametrize("bad", [np.nan, np.inf])
@pytest.mark.parametrize("damping", [None, 1e-3])
def test_a_sample_that_is_not_finite_changes_no_other(bad: float, damping: float | None):
    puma, z = ls.robots.puma560(), np.zeros(6)
    good = np.full((3, 6), 0.3)
    q = good.copy()
    q[1, 2] = bad
    fields = ("omega", "inertia", "bias", "gravity", "jacobian", "consistent_inverse", "null_space")
    spaces = [puma.operational_space(x, z, "tool", damping) for x in (q, good)]
    found = [[getattr(space, name) for name in fields] for space in spaces]
    for each, x in zip(found, (q, good), strict=True):
        each.append(puma.operational_inertia(x, "tool", damping))
        each.extend(puma.manipulability(x, "tool", rows=rows) for rows in ("all", "angular", "linear"))
    for ours, fine in zip(*found, strict=True):
        assert np.isnan(ours[1]).all() and np.array_equal(ours[::2], fine[::2])
    assert spaces[0].rank.tolist() == [6, 0, 6]
    assert np.isnan(puma.operational_inertia(q[1], "tool", damping)).all()
    assert np.isnan(puma.manipulability(q[1], "tool"))


def test_a_sample_that_is_not_finite_hides_no_singular_one():
    puma = ls.robots.puma560()
    straight = np.array([0.3, 0.4, -0.2, 0.5, 0.0, 0.1])
    with pytest.raises(SingularError, match=r"at sample \(1,\), .* rank 5, expected 6"):
        puma.operational_inertia(np.stack([straight * np.nan, straight, straight + 0.3]), "tool")


def test_manipulability_with_few_joints_is_nan_where_the_pose_is():
    q = np.array([[0.1, 0.2, 0.3], [0.1, np.nan, 0.3]])
    for rows in ("all", "linear"):
        found = ls.robots.planar(3).manipulability(q, "tool", rows=rows)
        assert found[0] == 0.0 and np.isnan(found[1])


@pytest.mark.parametrize("damping", [None, 1e-3])
def test_poses_that_move_no_inertia(damping: float | None):
    """The arm of docs/singular_poses.md: M^-1 is not finite in the second pose."""
    bars = [{"name": "shoulder"}, {"name": "elbow", "a": 1.0, "mass": 1.0, "com": (1.0, 0.0, 0.0)}]
    arm = ls.Robot.from_dh(bars, "modified")
    q = np.array([[0.0, 1.0], [0.0, 0.0]])
    with pytest.warns(ls.SingularWarning, match="operational_space: joint shoulder .* in sample 1") as said:
        space = arm.operational_space(q, np.zeros(2), "tool", damping)
    assert len(said) == 1
    assert space.rank.tolist() == [2, 0] and np.isnan(space.inertia[1]).all()
    assert np.isfinite(space.inertia[0]).all() == (damping is not None)
    with pytest.warns(ls.SingularWarning):
        if damping is None:
            with pytest.raises(SingularError, match=r"at sample \(0,\), .* rank 2, expected 6"):
                arm.operational_inertia(q, "tool")
        else:
            np.testing.assert_array_equal(arm.operational_inertia(q, "tool", damping), space.inertia)
