"""Grasps: Newton's law of the object and of each arm, the primal form, internal forces, friction, and bad input.

Programs run in the interpreter; tests/algorithms/test_closed_chains.py compares machine code with it.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from closed_chain_cases import BODY, grasp_case

import linksweep as ls
from linksweep.errors import ArgumentError

CASES = {
    "two rigid": ((6, 6), ("rigid", "rigid"), 1),
    "fingers": ((3, 4, 4), ("point", "soft_finger", "frictionless"), 2),
}


@pytest.fixture(autouse=True)
def _interpreted(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("LINKSWEEP_BACKEND", "interpreter")


def state(name: str, seed: int = 0) -> tuple[Any, ...]:
    """A grasp and a consistent state, with contacts that slide and turn as far as they can."""
    grasp, q, pose = grasp_case(*CASES[name])
    rng = np.random.default_rng(seed)
    V = grasp.robot.project_velocity(grasp._q(q, pose), rng.normal(size=grasp.robot.nv))
    R = pose[:3, :3]
    w, v = R @ V[-6:-3], R @ V[-3:]
    twist = np.r_[w, v + np.cross(w, R @ grasp.com)]
    tau = [rng.normal(size=arm.nv) * 5 for arm in grasp.arms]
    return grasp, q, grasp._split(V[:-6]), tau, pose, twist, rng.normal(size=6)


def shift(r: np.ndarray) -> np.ndarray:
    """A: from the object's twist to that of a contact, r away from the mass centre."""
    A = np.eye(6)
    A[3:, :3] = -np.array([[0, -r[2], r[1]], [r[2], 0, -r[0]], [-r[1], r[0], 0]])
    return A


@pytest.mark.slow
@pytest.mark.cases(1)
@pytest.mark.parametrize("name", CASES)
def test_newtons_law_of_object_and_arms_and_power(name: str):
    grasp, q, qd, tau, pose, twist, wrench = state(name)
    r = grasp.forward_dynamics(q, qd, tau, pose, twist, wrench)
    R = pose[:3, :3]
    inertia, w = R @ grasp.inertia @ R.T, twist[:3]
    total = wrench + np.r_[0, 0, 0, np.array(grasp.robot.gravity) * grasp.mass]
    power = wrench @ twist
    for k, contact in enumerate(grasp.contacts):
        arm_at = pose @ contact.at
        total = total + shift(arm_at[:3, 3] - pose[:3] @ np.r_[grasp.com, 1]).T @ r.contact_forces[k]
    momentum_rate = np.r_[
        inertia @ r.object_acceleration[:3] + np.cross(w, inertia @ w), grasp.mass * r.object_acceleration[3:]
    ]
    np.testing.assert_allclose(momentum_rate, total, atol=1e-9 * np.abs(total).max())
    for k, (arm, own) in enumerate(zip(grasp.arms, q, strict=True)):
        J = arm.jacobian(own, "tool")
        needed = arm.inverse_dynamics(own, qd[k], r.qdd[k]) + J.T @ r.contact_forces[k]
        np.testing.assert_allclose(needed, tau[k], atol=1e-9 * (1 + np.abs(r.contact_forces).max()))
        power += tau[k] @ qd[k]
    # what motors and the wrench give is what the energies take: contacts do no work
    whole = grasp.robot
    Q, V = grasp._q(q, pose), np.concatenate([*qd, grasp._object_rates(R, twist)])
    qdd = r._state[2]
    gained = V @ (whole.mass_matrix(Q) @ qdd + whole.bias_forces(Q, V))
    assert gained == pytest.approx(power, abs=1e-9 * (1 + abs(power) + np.abs(r.contact_forces).max()))
    assert r.residual < 1e-9 * (1 + np.abs(qdd).max()) and r.rank == sum(grasp.rows)
    # internal forces do nothing to the object
    G = grasp.grasp_map(pose)
    inner = sum(
        shift((pose @ c.at)[:3, 3] - pose[:3] @ np.r_[grasp.com, 1]).T @ f
        for c, f in zip(grasp.contacts, r.internal_forces, strict=True)
    )
    np.testing.assert_allclose(inner, 0, atol=1e-9 * (1 + np.abs(r.contact_forces).max()))
    basis = grasp.internal_force_basis(pose)
    assert len(basis) == G.shape[1] - np.linalg.matrix_rank(G)


@pytest.mark.slow
def test_the_primal_form_gives_the_same():
    """(M_o + sum A^T Lambda A) dV/dt = F - b_o + sum A^T Lambda (a_free - beta), by operational spaces of the arms."""
    grasp, q, qd, tau, pose, twist, wrench = state("two rigid")
    r = grasp.forward_dynamics(q, qd, tau, pose, twist, wrench)
    R, w = pose[:3, :3], twist[:3]
    inertia = R @ grasp.inertia @ R.T
    left = np.zeros((6, 6))
    left[:3, :3], left[3:, 3:] = inertia, np.eye(3) * grasp.mass
    right = wrench + np.r_[-np.cross(w, inertia @ w), np.array(grasp.robot.gravity) * grasp.mass]
    parts = []
    for arm, own, rates, torque, contact in zip(grasp.arms, q, qd, tau, grasp.contacts, strict=True):
        arm_ = (pose @ contact.at)[:3, 3] - pose[:3] @ np.r_[grasp.com, 1]
        A, Lambda = shift(arm_), arm.operational_inertia(own, "tool")
        free = arm.frame_acceleration(own, rates, arm.forward_dynamics(own, rates, torque), "tool")
        drive = free - np.r_[0, 0, 0, np.cross(w, np.cross(w, arm_))]
        left, right = left + A.T @ Lambda @ A, right + A.T @ Lambda @ drive
        parts.append((A, Lambda, drive))
    change = np.linalg.solve(left, right)
    np.testing.assert_allclose(r.object_acceleration, change, rtol=1e-9, atol=1e-9 * np.abs(change).max())
    for k, (A, Lambda, drive) in enumerate(parts):
        force = Lambda @ (drive - A @ change)
        np.testing.assert_allclose(r.contact_forces[k], force, atol=1e-8 * np.abs(force).max())  # Lambda's condition


@pytest.mark.cases(1)
@pytest.mark.parametrize("name", CASES)
def test_inverse_dynamics_moves_the_object_as_wanted(name: str):
    grasp, q, qd, _, pose, twist, wrench = state(name, 3)
    wanted = np.arange(1.0, 7.0) if name == "two rigid" else np.zeros(6)
    if name == "fingers":  # what three of them can make, with joints that can follow
        r = grasp.forward_dynamics(q, qd, [np.ones(arm.nv) for arm in grasp.arms], pose, twist, wrench)
        wanted = r.object_acceleration
    squeeze = 10 * np.random.default_rng(5).normal(size=(len(grasp.contacts), 6))
    given = {} if name == "two rigid" else {"qdd": r.qdd}
    tau, forces = grasp.inverse_dynamics(q, qd, pose, twist, wanted, wrench, internal=squeeze, **given)
    back = grasp.forward_dynamics(q, qd, tau, pose, twist, wrench)
    np.testing.assert_allclose(back.object_acceleration, wanted, atol=1e-7)  # through the inverse of K and back
    np.testing.assert_allclose(back.contact_forces, forces, atol=1e-6 * (1 + np.abs(forces).max()))
    if name == "two rigid":
        less, _ = grasp.inverse_dynamics(q, qd, pose, twist, wanted, wrench)
        assert np.abs(back.internal_forces).max() > 1 and not np.allclose(less[0], tau[0])
        rates = grasp.consistent_velocities(q, pose, twist)
        grasp.forward_dynamics(q, rates, tau, pose, twist)  # which would be refused otherwise
        first = grasp.inverse_dynamics(q, qd, pose, twist, wanted, wrench, sharing=(1.0, 9.0))[1]
        even = grasp.inverse_dynamics(q, qd, pose, twist, wanted, wrench)[1]
        assert np.linalg.norm(first[0]) < np.linalg.norm(even[0])


@pytest.mark.slow
def test_batches_are_their_samples():
    grasp, q, qd, tau, pose, twist, wrench = state("fingers")
    many = grasp.forward_dynamics(q, qd, [np.stack([t, 2 * t, -t]) for t in tau], pose, twist, wrench)
    for k, factor in enumerate((1, 2, -1)):
        one = grasp.forward_dynamics(q, qd, [factor * t for t in tau], pose, twist, wrench)
        names = ("object_acceleration", "contact_forces", "margins", "spin_margins", "internal_forces", "slipping")
        for name in names:
            np.testing.assert_allclose(getattr(many, name)[k], getattr(one, name), atol=1e-9)


def test_friction_cones_are_reported():
    """A finger that carries a weight by friction: inside the cone it holds, outside the result says so."""
    T = np.eye(4)
    arm = ls.robots.chain(6, seed=3)
    q = arm.random(np.random.default_rng(0))
    pose = np.eye(4)
    pose[:3, 3] = arm.pose(q, "tool")[:3, 3]
    for friction, slips in ((1e-6, True), (None, False)):
        grasp = ls.Grasp(BODY, [ls.Contact(arm, "tool", T, "point", friction=friction)])
        up = [arm.gravity_forces(q) + arm.jacobian(q, "tool").T @ np.r_[0, 0, 0, 1.0, 0, 120.0]]
        r = grasp.forward_dynamics([q], [np.zeros(6)], up, pose, np.zeros(6))
        normal, across = r.contact_forces[0, 5], np.linalg.norm(r.contact_forces[0, 3:5])
        assert normal > 0 and bool(r.slipping[0]) == slips
        assert r.margins[0] == pytest.approx(normal if friction is None else friction * normal - across)
        assert ("outside their friction cones" in repr(r)) == slips


@pytest.mark.cases(1)
@pytest.mark.parametrize(("spin", "turns"), [(0.05, True), (10.0, False)])
def test_margins_of_forces_and_of_moments_are_apart(spin: float, turns: bool):
    """A soft finger that is twisted: what it lacks is in N m, and not in the margin of forces, which is in N."""
    arm = ls.robots.chain(6, seed=3)
    q = arm.random(np.random.default_rng(0))
    pose = np.eye(4)
    pose[:3, 3] = arm.pose(q, "tool")[:3, 3]
    grasp = ls.Grasp(BODY, [ls.Contact(arm, "tool", np.eye(4), "soft_finger", friction=5.0, spin=spin)])
    up = [arm.gravity_forces(q) + arm.jacobian(q, "tool").T @ np.r_[0, 0, 40.0, 1.0, 0, 120.0]]
    r = grasp.forward_dynamics([q], [np.zeros(6)], up, pose, np.zeros(6))
    moment, force = r.contact_forces[0, :3], r.contact_forces[0, 3:]
    across = np.linalg.norm(force[:2])
    assert r.spin_margins[0] == pytest.approx(spin * force[2] - abs(moment[2]))
    assert r.margins[0] == pytest.approx(min(force[2], 5.0 * force[2] - across)) and r.margins[0] > 0
    assert bool(r.slipping[0]) == turns == bool(r.spin_margins[0] < 0)
    rigid = ls.Grasp(BODY, [ls.Contact(arm, "tool", np.eye(4))]).forward_dynamics(
        [q], [np.zeros(6)], up, pose, np.zeros(6)
    )
    assert np.isinf(rigid.margins).all() and np.isinf(rigid.spin_margins).all() and not rigid.slipping.any()


@pytest.mark.slow
def test_scenes_and_frames():
    puma = ls.robots.puma560()
    T = np.eye(4)
    T[:3, 3] = 1, 2, 3
    both = ls.scene({"left": (puma, T), "right": puma.placed(T), "box": BODY})
    assert both.nv == 18 and both.joint_names[-1] == "box" and both.joint_names[0] == "left/joint1"
    q = np.r_[np.full(6, 0.3), np.full(6, 0.3), 0, 0, 0, 1, 0, 0, 0]
    np.testing.assert_allclose(both.pose(q, "left/tool"), T @ puma.pose(q[:6], "tool"), atol=1e-14)
    np.testing.assert_allclose(both.pose(q, "right/tool"), both.pose(q, "left/tool"), atol=1e-14)
    torques = both.inverse_dynamics(q, np.ones(18), np.ones(18))
    np.testing.assert_allclose(torques[:6], puma.inverse_dynamics(q[:6], np.ones(6), np.ones(6)), atol=1e-11)
    tilted = np.diag([1.0, -1.0, -1.0, 1.0])  # hung from the ceiling: gravity is the world's
    np.testing.assert_allclose(
        puma.placed(tilted).gravity_forces(q[:6]), puma.with_gravity((0, 0, 9.81)).gravity_forces(q[:6]), atol=1e-12
    )
    with_grip = puma.with_frame("grip", "link6", T)
    np.testing.assert_allclose(with_grip.pose(q[:6], "grip"), puma.pose(q[:6], "link6") @ T, atol=1e-14)


def test_mistakes():
    puma = ls.robots.puma560()
    grasp, q, qd, tau, pose, twist, _ = state("two rigid")
    moved = pose.copy()
    moved[0, 3] += 0.1
    for call, sentence in [
        (lambda: grasp.forward_dynamics(q, qd, tau, moved, twist), "is 0.*m from the contact"),
        (lambda: grasp.forward_dynamics(q, qd, tau, pose, twist + 1), "move apart"),
        (lambda: grasp.forward_dynamics(q[:1], qd, tau, pose, twist), "one array for each arm"),
        (lambda: grasp.forward_dynamics(q, qd, tau, np.eye(3), twist), "object_pose has shape"),
        (lambda: grasp.forward_dynamics(q, qd, tau, pose, [1, 2]), "object_twist has shape"),
        (lambda: ls.Contact(puma, "tool", model="glue"), "unknown contact model .glue."),
        (lambda: ls.Contact(puma, "hand"), "no frame 'hand'"),
        (lambda: ls.Contact(puma, "tool", friction=-1.0), "friction of the contact"),
        (lambda: ls.Grasp(BODY, []), "at least one"),
        (lambda: ls.Grasp(np.zeros(10), [ls.Contact(puma, "tool")]), "mass 0.0"),
        (lambda: grasp.inverse_dynamics(q, qd, pose, twist, np.zeros(6), sharing=(1.0, -1.0)), "positive numbers"),
        (lambda: puma.with_frame("tool", "link6"), "already"),
        (lambda: puma.with_frame("grip", "link9"), "no frame 'link9'"),
        (lambda: puma.placed(np.zeros((4, 4))), "not a rotation"),
        (lambda: ls.scene({}), "expected a dict"),
        (lambda: ls.scene({"a": puma, "b": puma.with_gravity((0, 0, 0))}), "different gravity"),
        (lambda: ls.scene({"a": 3.0}), "inertial parameters"),
    ]:
        with pytest.raises(ArgumentError, match=sentence):
            call()
