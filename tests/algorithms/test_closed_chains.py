"""Constrained dynamics against a dense solve written only here, Pinocchio, and differences along the motion.

Programs run in the interpreter, batches at once: machine code of the same programs is compared with it below.
"""

# pyright: reportArgumentType=false, reportCallIssue=false
from __future__ import annotations

from typing import Any

import numpy as np
import pinocchio as pin
import pytest
from closed_chain_cases import dense_rows, dense_solution, grasp_case, tree_case
from pin_models import pin_model, places, their_q, their_v

import linksweep as ls
from linksweep.errors import ArgumentError, DescriptionError

GRASPS = {
    "two rigid": ((6, 7), ("rigid", "rigid"), 1),
    "rigid and soft": ((5, 4), ("rigid", "soft_finger"), 2),
    "three fingers": ((4, 4, 5), ("point", "point", "soft_finger"), 3),
    "four arms, all models": ((3, 4, 4, 5), ("frictionless", "point", "soft_finger", "rigid"), 4),
    "short arms": ((5, 3), ("rigid", "point"), 6),
}
TREES = {
    "loop of every joint": (
        ("revolute", "spherical", "planar", "helical", "prismatic", "revolute", "revolute"),
        (("point", "flange5", "flange6"),), 1,
    ),
    "free base, sliding": (
        ("free", "revolute", "revolute", "revolute", "spherical", "revolute", "revolute"),
        (("slider", "flange3", "flange6"), ("plane", "flange5", ""), ("line", "flange2", "flange4")), 2,
    ),
    "hinge and distance": (
        ("free", "revolute", "spherical", "revolute", "planar", "revolute"),
        (("hinge", "flange2", "flange4"), ("distance", "flange1", ""), ("distance", "flange3", "flange5")), 7,
    ),
    "welded and redundant": (
        ("free", "revolute", "revolute", "spherical", "planar"),
        (("rigid", "flange4", ""), ("point", "flange4", ""), ("soft_finger", "flange4", "")), 3,
    ),
}  # fmt: skip
SAMPLES = 56


@pytest.fixture(autouse=True)
def _interpreted(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("LINKSWEEP_BACKEND", "interpreter")


def mechanism(name: str) -> tuple[ls.Robot, np.ndarray]:
    if name in TREES:
        return tree_case(*TREES[name])
    grasp, q, pose = grasp_case(*GRASPS[name])
    return grasp.robot, grasp._q(q, pose)


def states(robot: ls.Robot, q: np.ndarray, count: int = SAMPLES) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Poses around q that meet the constraints, rates that keep them, and torques."""
    rng = np.random.default_rng(1)
    near = robot.project(robot.integrate(q, 0.05 * rng.normal(size=(count, robot.nv))))
    return (
        near,
        robot.project_velocity(near, rng.normal(size=(count, robot.nv))),
        5 * rng.normal(size=(count, robot.nv)),
    )


def off(ours: np.ndarray, theirs: np.ndarray) -> float:
    return float((np.abs(ours - theirs).max(axis=-1) / np.abs(theirs).max(axis=-1)).max())


@pytest.mark.slow
@pytest.mark.cases(1)
@pytest.mark.parametrize("name", [*GRASPS, *TREES])
def test_accelerations_and_forces_are_those_of_a_dense_solve(name: str):
    """9 mechanisms, 56 states each: 504 cases."""
    robot, start = mechanism(name)
    q, qd, tau = states(robot, start)
    assert np.abs(robot.constraint_error(q)).max() < 1e-10
    np.testing.assert_allclose(robot.constraint_jacobian(q), dense_rows(robot, q), atol=1e-9)  # the gap times a lever
    qdd, details = robot.forward_dynamics(q, qd, tau, details=True)
    theirs, force = dense_solution(robot, q, qd, tau)
    ours = (np.swapaxes(robot.constraint_jacobian(q), -1, -2) @ details.multipliers[..., None])[..., 0]
    assert off(qdd, theirs) < 1e-9
    assert off(ours, force) < 1e-9
    assert off(robot.forward_dynamics(q, qd, tau), qdd) < 1e-11  # another program: factors are shared otherwise


@pytest.mark.slow
def test_singular_poses_of_regular_arms():
    grasp, q, pose = grasp_case((6, 6), ("rigid", "rigid"), 7, singular=True)
    robot, at = grasp.robot, grasp._q(q, pose)
    for arm, own in zip(grasp.arms, q, strict=True):
        assert arm.manipulability(own, "tool") < 1e-12
    rng = np.random.default_rng(0)
    qd, tau = robot.project_velocity(at, rng.normal(size=(20, robot.nv))), rng.normal(size=(20, robot.nv))
    qdd, details = robot.forward_dynamics(at, qd, tau, details=True)
    theirs, force = dense_solution(robot, np.broadcast_to(at, (20, len(at))), qd, tau)
    assert off(qdd, theirs) < 1e-9
    assert off(details.multipliers @ robot.constraint_jacobian(at), force) < 1e-9


@pytest.mark.parametrize("name", [*GRASPS, *TREES])
@pytest.mark.slow
def test_the_error_stays_along_the_motion(name: str):
    """The second derivative of the error itself, from poses alone, is 0 with these accelerations."""
    robot, start = mechanism(name)
    q, qd, tau = states(robot, start, 6)
    qdd = robot.forward_dynamics(q, qd, tau)
    h = 1e-3 / (1.0 + np.sqrt(np.abs(qdd).max(axis=-1, keepdims=True)))
    ahead, here, back = (robot.constraint_error(robot.integrate(q, qd * s + qdd * (s * s / 2))) for s in (h, 0 * h, -h))
    second = (ahead - 2 * here + back) / h**2
    assert np.abs(second).max() < 1e-4 * (1 + np.abs(qdd).max())  # differences of second order
    assert np.abs(ahead - back).max() < 1e-5


@pytest.mark.parametrize("name", ["two rigid", "loop of every joint"])
def test_rigid_mechanisms_as_in_pinocchio(name: str):
    robot, q = mechanism(name)  # links in depth-first order, which the factor there assumes
    rng = np.random.default_rng(0)
    qd, tau = robot.project_velocity(q, rng.normal(size=robot.nv)), rng.normal(size=robot.nv)
    for link in robot.model.links:  # armature is another attribute there
        assert link.joint.armature in (0.0, 0.05)
    model = pin_model(robot)
    where = places(robot, model)
    model.armature = their_v(where, np.array([link.joint.armature for link in _by_rate(robot)]))
    found, datas = pin.StdVec_RigidConstraintModel(), pin.StdVec_RigidConstraintData()
    for tie in robot.constraints:
        kind = {"rigid": pin.ContactType.CONTACT_6D, "point": pin.ContactType.CONTACT_3D}[tie.kind]
        ends = [_joint_and_place(robot, model, tie, end) for end in ("a", "b")]
        found.append(pin.RigidConstraintModel(kind, model, *ends[0], *ends[1], pin.ReferenceFrame.LOCAL))
        datas.append(found[-1].createData())
    data = model.createData()
    pin.initConstraintDynamics(model, data, found, datas)
    settings = pin.ProximalSettings(1e-14, 1e-12, 50)
    args = (their_q(robot, model, q), their_v(where, qd), their_v(where, tau))
    theirs = pin.constraintDynamics(model, data, *args, found, datas, settings)[where]
    assert off(robot.forward_dynamics(q, qd, tau), theirs) < 1e-8


def _by_rate(robot: ls.Robot) -> list[Any]:
    from linksweep.joints import KINDS

    links = [robot.model.links[i] for i in robot.model.document_order]
    return [link for link in links for _ in range(KINDS[link.joint.kind].nv)]


def _joint_and_place(robot: ls.Robot, model: Any, tie: Any, end: str) -> tuple[int, Any]:
    name = getattr(tie, end)
    frame = next((f for f in robot.frames if f.name == name), None)
    at = pin.SE3.Identity()
    joint = 0
    if frame is not None:
        joint = 0 if frame.link == -1 else model.getJointId(robot.model.links[frame.link].joint.name)
        at = pin.SE3(np.array(frame.placement.rotation), np.array(frame.placement.position))
    if end == "b":
        at = at * pin.SE3(np.array(tie.at.rotation), np.array(tie.at.position))
    return joint, at


@pytest.mark.slow
def test_machine_code_and_float32():
    robot, start = mechanism("loop of every joint")
    q, qd, tau = states(robot, start, 9)
    wanted = ["forward_dynamics", "multipliers", "constraint_forces"]
    reference = robot.compile(wanted, backend="interpreter")(q, qd, tau)
    for dtype, tolerance in (("float64", 1e-11), ("float32", 2e-3)):
        found = robot.compile(wanted, backend="llvm", dtype=dtype)(*(a.astype(dtype) for a in (q, qd, tau)))
        for ours, theirs in zip(found, reference, strict=True):
            np.testing.assert_allclose(ours, theirs, rtol=tolerance, atol=tolerance * np.abs(theirs).max())
    assert "multipliers" in robot.compile(wanted, backend="interpreter").c_source(robot=robot)
    assert robot.functions[-1] == "constraint_forces" and robot.methods("forward_dynamics") == ("closed_chain",)


@pytest.mark.quick
@pytest.mark.parametrize("name", ["four bars", pytest.param("welded and redundant", marks=pytest.mark.slow)])
def test_derivatives(name: str):
    robot = ls.robots.four_bars(1)
    q = robot.project(np.array([1.2, 1.2, -1.2]))
    if name != "four bars":
        robot, q = mechanism(name)
    qd, tau = robot.project_velocity(q, np.ones(robot.nv)), np.ones(robot.nv)
    by_tau = robot.compile("forward_dynamics").derivative("tau")(q, qd, tau)
    by_q, by_qd, again = robot.forward_dynamics_derivatives(q, qd, tau)
    np.testing.assert_allclose(by_tau, again, atol=1e-12)
    h = 1e-3
    for k in range(robot.nv):
        step = np.eye(robot.nv)[k] * h
        change = robot.forward_dynamics(q, qd, tau + step) - robot.forward_dynamics(q, qd, tau - step)
        np.testing.assert_allclose(by_tau[:, k], change / (2 * h), atol=1e-7)
        step = step * 1e-3  # second order in q and qd
        moved = [robot.forward_dynamics(robot.integrate(q, sign * step), qd, tau) for sign in (1, -1)]
        faster = [robot.forward_dynamics(q, qd + sign * step, tau) for sign in (1, -1)]
        for found, (up, down) in ((by_q, moved), (by_qd, faster)):
            scale = np.abs(found).max()
            np.testing.assert_allclose(found[:, k], (up - down) / (2e-3 * h), atol=1e-6 * scale)
    with pytest.raises(ArgumentError, match="a choice among many"):
        robot.inverse_dynamics_derivatives(q, qd, tau)


@pytest.mark.slow
def test_inverse_dynamics_undoes_forward_dynamics():
    for name in ("two rigid", "free base, sliding", "hinge and distance", "welded and redundant"):
        robot, start = mechanism(name)
        q, qd, tau = states(robot, start, 3)
        free = [link.joint.name for link in robot.model.links if link.joint.kind == "free"]
        places_ = sorted(robot.canonical.links, key=lambda link: link.row)
        for link, joint in zip(places_, robot.joint_names, strict=True):
            if joint in free:
                tau[:, link.start : link.start + 6] = 0.0
        qdd = robot.forward_dynamics(q, qd, tau)
        least = robot.inverse_dynamics(q, qd, qdd)
        np.testing.assert_allclose(robot.forward_dynamics(q, qd, least), qdd, atol=1e-8 * np.abs(qdd).max())
        assert (np.linalg.norm(least, axis=-1) <= np.linalg.norm(tau, axis=-1) * (1 + 1e-9)).all()
        for k in range(3):
            back = robot.inverse_dynamics(q[k], qd[k], qdd[k], preferred=tau[k])
            np.testing.assert_allclose(back, tau[k], atol=1e-7)  # rounding times the condition of K


@pytest.mark.slow
@pytest.mark.quick
def test_mobility_and_tangent_basis():
    robot, q = mechanism("welded and redundant")
    found = robot.mobility(q)
    assert found.rows == 13 and found.rank == robot.nv - found.degrees_of_freedom and len(found.redundant) == 7
    assert not found.singular and found.redundant[0].endswith(": x")
    basis = robot.tangent_basis(q)
    np.testing.assert_allclose(basis.T @ basis, np.eye(found.degrees_of_freedom), atol=1e-12)
    assert np.abs(robot.constraint_jacobian(q) @ basis).max() < 1e-10
    moved = robot.project(robot.integrate(q, 1e-3 * basis[:, 0]))
    assert np.abs(robot.tangent_basis(moved, near=basis) - basis).max() < 1e-2
    # motion on the basis: B^T M B is the inertia of it
    push = np.ones(found.degrees_of_freedom)
    qdd = robot.forward_dynamics(q, np.zeros(robot.nv), robot.gravity_forces(q) + basis @ push)
    np.testing.assert_allclose(basis.T @ qdd, np.linalg.solve(robot.tangent_mass_matrix(q), push), atol=1e-9)


@pytest.mark.quick
def test_springs_are_forces_and_energy():
    plain, q = tree_case(("free", "revolute", "spherical", "revolute"), (), 4)
    robot = plain.with_springs([
        ls.Spring("flange1", "flange3", 50.0, 0.3, 2.0), ls.Spring("flange2", None, 20.0, 0.0, 1.0, at=np.eye(4)),
    ])  # fmt: skip
    rng = np.random.default_rng(0)
    qd, tau = rng.normal(size=(2, robot.nv))
    power = 0.0
    force = np.zeros(robot.nv)
    for a, b, k, length, c in (("flange1", "flange3", 50.0, 0.3, 2.0), ("flange2", "base", 20.0, 0.0, 1.0)):
        d = robot.pose(q, a)[:3, 3] - robot.pose(q, b)[:3, 3]
        J = (robot.jacobian(q, a) - robot.jacobian(q, b))[3:]
        n = d / np.linalg.norm(d)
        pull = k * d + c * (J @ qd) if length == 0 else n * (k * (np.linalg.norm(d) - length) + c * n @ J @ qd)
        force -= J.T @ pull
        power += pull @ J @ qd
    np.testing.assert_allclose(plain.bias_forces(q, qd) - robot.bias_forces(q, qd), force, atol=1e-11)
    np.testing.assert_allclose(
        robot.forward_dynamics(q, qd, tau), plain.forward_dynamics(q, qd, tau + force), atol=1e-10
    )
    h = 1e-5
    energy = [float(r.potential_energy(r.integrate(q, s * qd))) for r in (robot, plain) for s in (h, -h)]
    change = ((energy[0] - energy[1]) - (energy[2] - energy[3])) / (2 * h)
    damping = power - change
    assert damping > 0
    rolled = robot.compile("forward_dynamics", rolled=True)(q, qd, tau)
    np.testing.assert_allclose(rolled, robot.forward_dynamics(q, qd, tau), atol=1e-10)


@pytest.mark.cases(1)
@pytest.mark.parametrize("damping", [0.0, 2.0])
def test_gravity_forces_hold_against_springs(damping: float):
    """g(q) = h(q, 0) = dU/dq, by every method, as loops, with details and derivatives."""
    robot = ls.robots.planar(2).with_springs(ls.Spring("tool", "base", 10.0, 0.1, damping))
    q, still = np.array([0.3, 0.4]), np.zeros(2)
    held = robot.bias_forces(q, still)
    np.testing.assert_allclose(robot.compile(("derivative", "potential_energy", "q"))(q), held, atol=1e-12)
    for method in robot.methods("gravity_forces"):
        np.testing.assert_allclose(robot.gravity_forces(q, method=method), held, atol=1e-12)
    np.testing.assert_allclose(robot.compile("gravity_forces", rolled=True)(q), held, atol=1e-12)
    for method in robot.methods("inertia_power"):
        np.testing.assert_allclose(robot.explicit_model(q, method)[2], held, atol=1e-12)
    slopes = [robot.compile(("derivative", name, "q")) for name in ("gravity_forces", "bias_forces")]
    np.testing.assert_allclose(slopes[0](q), slopes[1](q, still), atol=1e-12)
    assert ls.check(robot).ok

    run = ls.simulate(robot, q, None, ls.simulation.GravityCompensation(), 0.5)
    assert np.abs(run.q - q).max() < 1e-12


@pytest.mark.parametrize("damping", [0.0, 2.0])
def test_an_observer_knows_the_springs(damping: float):
    robot = ls.robots.planar(2).with_springs(ls.Spring("tool", "base", 10.0, 0.1, damping))
    run = ls.simulate(robot, [0.3, 0.4], [1.0, -0.5], None, 0.4)
    observer = robot.momentum_observer(1e-3, 50.0)
    seen = [observer(q, qd, np.zeros(2)) for q, qd in zip(run.q, run.qd, strict=True)]
    assert np.abs(seen).max() < 0.05  # nothing pushes: the error of trapezoids, where the spring pulls up to 7 N m


@pytest.mark.parametrize("rolled", [False, True])
def test_a_spring_between_origins_that_coincide_is_one_sentence(rolled: bool):
    tied = ls.robots.planar(2).with_springs(ls.Spring("base", "link1", 10.0, 0.1))
    with pytest.raises(ls.DescriptionError, match="origins of 'base' and 'link1' always coincide"):
        tied.compile("inverse_dynamics", rolled=rolled)(*np.zeros((3, 2)))
    plain, loose = ls.robots.planar(2), ls.robots.planar(2).with_springs(ls.Spring("base", "link1", 10.0))
    np.testing.assert_allclose(loose.gravity_forces([0.1, 0.2]), plain.gravity_forces([0.1, 0.2]), atol=1e-14)


def test_mistakes():
    robot = tree_case(TREES["loop of every joint"][0], (), 1)[0]
    made = [
        (lambda: ls.Constraint("weld", "a"), "unknown constraint 'weld'"),
        (lambda: ls.Constraint("rigid", "a", "a"), "constrained to itself"),
        (lambda: ls.Constraint("distance", "a", "b"), "expected a positive number"),
        (lambda: ls.Constraint("point", "a", length=3.0), "has no length"),
        (lambda: ls.Constraint("point", "a", at=np.zeros((4, 4))), "not a rotation"),
        (lambda: robot.with_constraints([ls.Constraint("rigid", "flange5", "nowhere")]), "no frame 'nowhere'"),
        (lambda: robot.with_constraints([ls.Constraint("rigid", "flange5", "link5")]), "are on the same link"),
        (lambda: robot.with_constraints([ls.Constraint("rigid", "base")]), "are on the same link"),
        (lambda: robot.with_constraints(["rigid"]), "expected a Constraint"),
        (lambda: robot.constraint_error(robot.neutral()), "no constraints"),
        (lambda: robot.inverse_dynamics(*[np.zeros(robot.nv)] * 3, actuated=["joint0"]), "no constraints"),
    ]
    for call, sentence in made:
        with pytest.raises((ArgumentError, DescriptionError), match=sentence):
            call()
    far = robot.with_constraints(
        [ls.Constraint("point", "flange0", at=[[1, 0, 0, 90], [0, 1, 0, 0], [0, 0, 1, 0], [0, 0, 0, 1]])]
    )
    with pytest.raises(ArgumentError, match=r"the constraint residual is"):
        far.project(far.neutral())
    closed, q = mechanism("loop of every joint")
    qd = np.zeros(closed.nv)
    with pytest.raises(ArgumentError, match="qdd violates the constraints"):
        closed.inverse_dynamics(q, qd, np.ones(closed.nv))
    with pytest.raises(ArgumentError, match="passive joints would need"):
        closed.inverse_dynamics(q, qd, closed.project_acceleration(q, qd, np.ones(closed.nv)), actuated=["joint0"])
    with pytest.raises(ArgumentError, match="knows no constraints"):
        closed.forward_dynamics(q, qd, qd, method="fd1")
