"""Joints that follow others: a Robot in the coordinates that are left, against Pinocchio's expanded model and G.

The reference of every function is Pinocchio on the tree in which all joints are free (or, where it has no such
function, this package on that tree, which other tests hold against Pinocchio), with q = G q_r + c put in by NumPy.
"""

from __future__ import annotations

import ctypes
import functools
import itertools
import shutil
import subprocess
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import oracles
import pinocchio as pin
import pytest

import linksweep as ls
from linksweep.errors import ModelWarning
from linksweep.functions.c_export import export_c
from linksweep.model.constraints import coupled

PANDA = oracles.FILES["panda_description/urdf/panda.urdf"]
BAXTER = oracles.FILES["baxter_description/urdf/baxter.urdf"]
LAWS = (
    ls.Coupling("joint3", "joint2", -0.5, 0.2), ls.Coupling("joint5", "joint3", 2.0, -0.1),
    ls.Coupling("joint6", "joint1", 1.5),
)  # fmt: skip
FINGER = '<limit lower="0" upper="0.8" effort="50" velocity="2"/><dynamics damping="0.02" friction="0.01"/>'
CASES = ("panda", "baxter", "robotiq", "puma560", "floating")


def robotiq_like() -> str:
    """A wrist and two fingers of three links each: five joints follow one, some backwards, one with an offset."""
    body = (
        '<inertial><origin xyz="0.01 0.02 {z}"/><mass value="{m}"/>'
        '<inertia ixx="2e-4" iyy="3e-4" izz="2e-4" ixy="1e-5" ixz="0" iyz="2e-5"/></inertial>'
    )
    links = [("base", 0.0, 1.0), ("palm", 0.05, 0.4)]
    joints = [("wrist", "revolute", "base", "palm", "0 0 0.1", "0 0 1", "")]
    for side, sign in (("left", 1.0), ("right", -1.0)):
        on = "palm"
        for name, ratio, offset in (("knuckle", 1.0, 0.0), ("finger", -0.7, 0.1), ("tip", 0.35, 0.0)):
            own = f"{side}_{name}"
            links.append((own, 0.02 * sign, 0.05))
            leads = own == "left_knuckle"
            law = "" if leads else f'<mimic joint="left_knuckle_joint" multiplier="{ratio * sign}" offset="{offset}"/>'
            joints.append((f"{own}_joint", "revolute", on, own, f"{0.03 * sign} 0 0.04", "1 0 0.2", law))
            on = own
    text = ['<robot name="gripper">']
    text += [f'<link name="{name}">{body.format(z=z, m=m)}</link>' for name, z, m in links]
    for name, kind, parent, child, at, axis, law in joints:
        text.append(
            f'<joint name="{name}" type="{kind}"><origin xyz="{at}" rpy="0.1 0 0"/><parent link="{parent}"/>'
            f'<child link="{child}"/><axis xyz="{axis}"/>{FINGER}{law}</joint>'
        )
    return "".join([*text, "</robot>"])


@pytest.fixture(autouse=True)
def interpreted(monkeypatch: pytest.MonkeyPatch):
    """Where machine code is meant, a test says so."""
    monkeypatch.setattr("linksweep.support.settings.backend", "interpreter")


@functools.lru_cache
def robot_of(case: str) -> ls.Robot:
    if case == "puma560":
        return ls.robots.puma560().with_armature(0.3).with_dissipation(0.4, 0.2).with_couplings(LAWS)
    if case == "robotiq":
        from linksweep.model.formats.urdf import read_urdf

        return ls.Robot(read_urdf(robotiq_like(), couple=True)).with_armature(1e-3)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ModelWarning)
        path = BAXTER if case == "baxter" else PANDA
        return ls.load(path, mimic="couple", base="floating" if case == "floating" else "fixed")


class Reference:
    """The tree of free joints in Pinocchio, and G."""

    def __init__(self, robot: ls.Robot):
        full = robot.uncoupled
        floats = "root_joint" in full.joint_names
        text = (full.with_base("fixed") if floats else full).to_urdf()
        self.model: Any = pin.buildModelFromXML(text, *([pin.JointModelFreeFlyer()] if floats else []))
        self.model.gravity.linear = np.array(full.gravity)
        for name, value in zip(full.joint_names, _by_joint(full, full.armature), strict=True):
            joint = self.model.joints[self.model.getJointId(name)]
            self.model.armature[joint.idx_v : joint.idx_v + joint.nv] = value
        self.data: Any = self.model.createData()
        self.robot, self.full = robot, full
        by_name = {law.joint: law for law in robot.couplings}
        self.G, self.c = np.zeros((full.nv, robot.nv)), np.zeros(full.nv)
        place = {name: k for k, name in enumerate(_rates(robot))}
        for row, name in enumerate(_rates(full)):
            law = by_name.get(name)
            self.G[row, place[name if law is None else law.leader]] = 1.0 if law is None else law.multiplier
            self.c[row] = 0.0 if law is None else law.offset

    def state(self, q: np.ndarray, *rates: np.ndarray) -> tuple[np.ndarray, ...]:
        """In Pinocchio's layout, by this package's converters of the free tree."""
        full_q = self.robot.expand(q)
        if self.full.nq == self.full.nv:
            assert np.allclose(full_q, q @ self.G.T + self.c, rtol=0, atol=1e-14)  # G by another way
        values = [ls.conventions.to_pinocchio(self.full, self.model, q=full_q)]
        for rate in rates:
            values.append(ls.conventions.to_pinocchio(self.full, self.model, q=full_q, v=rate @ self.G.T)[1])
        return tuple(values)

    def reduced(self, q: np.ndarray, tau: np.ndarray) -> np.ndarray:
        full_q = ls.conventions.to_pinocchio(self.full, self.model, q=self.robot.expand(q))
        return ls.conventions.from_pinocchio(self.full, self.model, q=full_q, tau=tau)[1] @ self.G


def _rates(robot: ls.Robot) -> list[str]:
    names = zip(robot.joint_names, robot.canonical.joints, strict=True)
    return [f"{name}{k or ''}" for name, link in names for k in range(6 if link.kind == "free" else 1)]


def _by_joint(robot: ls.Robot, values: np.ndarray) -> list[float]:
    return [float(values[link.start]) for link in robot.canonical.joints]


def states(robot: ls.Robot, *shape: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(3)
    count = int(np.prod(shape))
    q = np.array([robot.random(rng) for _ in range(count)]).reshape(*shape, robot.nq)
    return (q, *rng.uniform(-1, 1, (2, *shape, robot.nv)))


def near(found: Any, wanted: Any, tolerance: float = 1e-10) -> None:
    assert np.shape(found) == np.shape(wanted)
    assert np.abs(np.asarray(found) - wanted).max() <= tolerance * np.abs(wanted).max()


@pytest.mark.quick
@pytest.mark.parametrize("case", CASES)
def test_dynamics_as_pinocchio_on_the_expanded_model(case: str):
    robot = robot_of(case)
    reference, (q, qd, qdd) = Reference(robot), states(robot, 4)
    G = reference.G
    for k in range(len(q)):
        full = reference.state(q[k], qd[k], qdd[k])
        tau = reference.reduced(q[k], pin.rnea(reference.model, reference.data, *full))
        for method in robot.methods("inverse_dynamics"):
            near(robot.inverse_dynamics(q[k], qd[k], qdd[k], method=method), tau)
        bias = reference.reduced(q[k], pin.nonLinearEffects(reference.model, reference.data, *full[:2]))
        gravity = reference.reduced(q[k], pin.computeGeneralizedGravity(reference.model, reference.data, full[0]))
        near(robot.bias_forces(q[k], qd[k]), bias)
        near(robot.gravity_forces(q[k]), gravity)
        units = np.eye(robot.nv)
        M = np.array([robot.reduce_forces(robot.uncoupled.mass_matrix(robot.expand(q[k])) @ G @ e) for e in units]).T
        columns = [
            reference.reduced(q[k], pin.rnea(reference.model, reference.data, full[0], 0 * full[1], a))
            - gravity for a in (reference.state(q[k], e)[1] for e in units)
        ]  # fmt: skip
        near(M, np.array(columns).T, 1e-9 if case == "floating" else 1e-10)  # less gravity: rounding of larger numbers
        for method in robot.methods("mass_matrix"):
            near(robot.mass_matrix(q[k], method=method), M)
        assert robot.methods("forward_dynamics") == ("composite",)
        near(robot.forward_dynamics(q[k], qd[k], tau), np.linalg.solve(M, tau - bias), 1e-10 * np.linalg.cond(M) ** 0.5)
        inverse = np.linalg.inv(M)
        near(robot.mass_matrix_inverse(q[k]), inverse)
        near(robot.kinetic_energy(q[k], qd[k]), 0.5 * qd[k] @ M @ qd[k])


@pytest.mark.cases(1)
@pytest.mark.parametrize("case", CASES)
@pytest.mark.slow
def test_frames_energies_and_the_operational_space(case: str):
    robot = robot_of(case)
    full, (q, qd, qdd) = robot.uncoupled, states(robot, 3)
    Q, V, A = robot.expand(q), robot.expand_rates(qd), robot.expand_rates(qdd)
    G = robot.expand_rates(np.eye(robot.nv)).T
    for frame in robot.tips[:3]:
        near(robot.pose(q, frame), full.pose(Q, frame))
        near(robot.frame_velocity(q, qd, frame), full.frame_velocity(Q, V, frame))
        near(robot.frame_acceleration(q, qd, qdd, frame), full.frame_acceleration(Q, V, A, frame))
        near(robot.jacobian_bias(q, qd, frame), full.jacobian_bias(Q, V, frame))
        for reference in ("world_aligned", "local", "world"):
            J = full.jacobian(Q, frame, reference=reference) @ G
            near(robot.jacobian(q, frame, reference=reference), J)
            dJ = full.jacobian_derivative(Q, V, frame, reference=reference) @ G
            near(robot.jacobian_derivative(q, qd, frame, reference=reference), dJ)
            omega = J @ np.linalg.solve(robot.mass_matrix(q), np.swapaxes(J, -1, -2))
            near(robot.operational_inertia_inverse(q, frame, reference=reference), omega)
    frames = list(robot.tips[:2])
    J = np.concatenate([full.jacobian(Q, frame) @ G for frame in frames], axis=-2)
    omega = J @ np.linalg.solve(robot.mass_matrix(q), np.swapaxes(J, -1, -2))
    near(robot.operational_inertia_inverse(q, frames), omega)
    near(robot.poses(q), full.poses(Q))
    near(robot.jacobians(q), full.jacobians(Q) @ G)
    near(robot.center_of_mass(q), full.center_of_mass(Q))
    near(robot.momentum(q, qd), full.momentum(Q, V))
    near(robot.centroidal_momentum_matrix(q), full.centroidal_momentum_matrix(Q) @ G)
    near(robot.potential_energy(q), full.potential_energy(Q))
    near(robot.regressor(q, qd, qdd) @ robot.standard_parameters, robot.inverse_dynamics(q, qd, qdd))
    assert len(robot.standard_parameter_names) == len(robot.standard_parameters)


@pytest.mark.slow
@pytest.mark.cases(1)
@pytest.mark.parametrize("case", ["panda", "robotiq", "puma560", "floating"])
def test_derivatives(case: str):
    robot = robot_of(case)
    full, (q, qd, qdd) = robot.uncoupled, states(robot, 3)
    Q, V, A = robot.expand(q), robot.expand_rates(qd), robot.expand_rates(qdd)
    G = robot.expand_rates(np.eye(robot.nv)).T
    f_ext = np.random.default_rng(5).normal(size=(3, len(robot.link_names), 6))
    options: dict[str, Any] = {"f_ext": f_ext, "dissipation": True}
    for own, whole in zip(
        robot.inverse_dynamics_derivatives(q, qd, qdd, **options),
        full.inverse_dynamics_derivatives(Q, V, A, **options), strict=True,
    ):  # fmt: skip
        near(own, G.T @ whole @ G)
    tau = robot.inverse_dynamics(q, qd, qdd, **options)
    by_q, by_qd, by_tau = robot.forward_dynamics_derivatives(q, qd, tau, **options)
    inverse = np.linalg.inv(robot.mass_matrix(q))
    near(by_tau, inverse)
    own = robot.inverse_dynamics_derivatives(q, qd, qdd, **options)
    scale = 1e-10 * np.linalg.cond(robot.mass_matrix(q)).max() ** 0.5
    near(by_q, -inverse @ own[0], scale)
    near(by_qd, -inverse @ own[1], scale)
    plain = robot.compile(("derivative", ("jacobian", robot.tips[0]), "q"))(q)
    whole = full.compile(("derivative", ("jacobian", robot.tips[0]), "q"))(Q)
    near(plain, np.einsum("...aij,ib,jc->...abc", whole, G, G))


def test_the_explicit_model_and_influence_coefficients():
    robot = robot_of("puma560")
    full, (q, qd, qdd) = robot.uncoupled, states(robot, 3)
    Q, V = robot.expand(q), robot.expand_rates(qd)
    G = robot.expand_rates(np.eye(robot.nv)).T
    for method in ("augmented_bodies", "direct"):
        I, P, g = robot.explicit_model(q, method)  # noqa: E741  (the paper's symbol)
        near(np.einsum("...ij,...j->...i", I, qdd) + np.einsum("...j,...ijk,...k->...i", qd, P, qd) + g,
             robot.inverse_dynamics(q, qd, qdd))  # fmt: skip
        near(I, robot.mass_matrix(q))
    for method in robot.methods("coriolis_matrix"):
        near(robot.coriolis_matrix(q, qd, method), G.T @ full.coriolis_matrix(Q, V) @ G)
    first, second = robot.influence(q, "tool")
    whole = full.influence(Q, "tool")
    near(first, whole[0] @ G)
    near(second, np.einsum("...aij,ib,jc->...abc", whole[1], G, G))


def test_factors_of_the_mass_matrix():
    robot = robot_of("robotiq")
    q, x, _ = states(robot, 3)
    M, factor = robot.mass_matrix(q), robot.factor(q)
    near((factor.L * factor.D[..., None, :]) @ np.swapaxes(factor.L, -1, -2), M)
    near(factor.L_inverse @ factor.L, np.broadcast_to(np.eye(robot.nv), M.shape))
    near(factor.solve(x), np.linalg.solve(M, x[..., None])[..., 0])
    near(factor.logdet(), np.linalg.slogdet(M)[1])
    near(factor.whiten(factor.colour(x)), x)
    assert not robot.singular(q).any() and robot.singular_joints == ()


@pytest.mark.cases(1)
@pytest.mark.parametrize("case", ["panda", "robotiq", "puma560"])
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_machine_code_as_the_interpreter(case: str, dtype: str):
    robot = robot_of(case)
    q, qd, qdd = (x.astype(dtype) for x in states(robot, 5))
    names = ["inverse_dynamics", "mass_matrix", "forward_dynamics"]
    inputs = {"q": q, "qd": qd, "qdd": qdd, "tau": qdd}
    fast, slow = (robot.compile(names, backend=backend) for backend in ("llvm", "interpreter"))
    for a, b in zip(*(f(*(inputs[name] for name in f.inputs)) for f in (fast, slow)), strict=True):
        assert a.dtype == dtype
        near(a, b, 1e-10 if dtype == "float64" else 1e-3)
    assert (
        0
        < robot.operation_count("inverse_dynamics").mul
        <= 1.2 * robot.uncoupled.operation_count("inverse_dynamics").mul + 20
    )


@pytest.mark.cases(1)
@pytest.mark.skipif(shutil.which("gcc") is None, reason="needs a C compiler")
@pytest.mark.parametrize("case", ["panda", "baxter", "robotiq"])
@pytest.mark.slow
def test_the_c_export_computes_the_same(case: str, tmp_path: Path):
    robot = robot_of(case)
    q, qd, qdd = states(robot)
    for function, third in (("inverse_dynamics", qdd), ("forward_dynamics", qdd)):
        compiled = robot.compile(function, dtype="float64", backend="interpreter")
        code, library = tmp_path / f"{function}.c", tmp_path / f"{function}.so"
        source, _ = export_c(compiled, code, name="f", robot=robot)
        assert "* q[" in source.read_text()  # where its comment says who follows whom
        subprocess.run(["gcc", "-O1", "-shared", "-fPIC", str(code), "-o", str(library), "-lm"], check=True)
        out = np.empty(robot.nv)
        pointers = [x.ctypes.data_as(ctypes.POINTER(ctypes.c_double)) for x in (q, qd, third, out)]
        ctypes.CDLL(str(library)).f(*pointers)
        near(out, compiled(q, qd, third))


def test_parameters_are_inputs_too():
    robot = robot_of("puma560")
    q, qd, qdd = states(robot, 3)
    function = robot.compile("inverse_dynamics", parameters=("armature", "payload:tool"))
    armature = np.linspace(0.1, 0.6, 6)
    changed = robot.uncoupled.with_armature(armature).with_payload("tool", 2.0).with_couplings(robot.couplings)
    near(function(q, qd, qdd, armature, ls.body(2.0)), changed.inverse_dynamics(q, qd, qdd))
    total = robot.expand_rates(np.eye(3)) ** 2 @ np.array([0.3] * 6)
    assert np.allclose(robot.armature, total, rtol=0, atol=1e-14)
    assert np.allclose(robot.with_armature(robot.armature).mass_matrix(q), robot.mass_matrix(q), rtol=0, atol=1e-12)


def test_details_and_explanations():
    robot = robot_of("puma560")
    q, qd, qdd = states(robot)
    tau, details = robot.inverse_dynamics(q, qd, qdd, details=True)
    near(tau, robot.inverse_dynamics(q, qd, qdd))
    back, details = robot.forward_dynamics(q, qd, tau, details=True)
    near(back, qdd, 1e-9)
    near(details.T_free, robot.mass_matrix(q) @ back)
    near(details.M, robot.mass_matrix(q))
    assert "tau" in str(robot.explain("inverse_dynamics", q=q, qd=qd, qdd=qdd))


@pytest.mark.slow
def test_simulation_conserves_energy_and_follows_the_gear(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("linksweep.support.settings.backend", "llvm")
    robot = robot_of("robotiq").with_dissipation(0.0, 0.0)
    run = ls.simulate(robot, [0.3, 0.4], [1.0, -0.5], None, 0.5, dt=1e-3)
    energy = robot.kinetic_energy(run.q, run.qd) + robot.potential_energy(run.q)
    assert np.abs(energy - energy[0]).max() < 1e-9 and run.q.shape[-1] == 2
    rough = ls.simulate(robot_of("robotiq"), [0.3, 0.4], [1.0, -0.5], None, 0.5, dt=1e-3, dissipation=True)
    assert np.isfinite(rough.q).all()


def test_inverse_kinematics_with_a_joint_that_moves_two_links():
    """Three freedoms of a PUMA whose elbow follows its shoulder."""
    robot = robot_of("puma560")
    q = np.array([0.4, -0.6, 0.9])
    goal = robot.pose(q, "tool")
    found = ls.inverse_kinematics(robot, goal, "tool", q0=q + 0.05)
    assert np.abs(robot.pose(found.q, "tool") - goal).max() < 1e-6


@pytest.mark.slow
def test_a_check_of_all_methods():
    report = ls.check(robot_of("robotiq"), samples=5)
    assert report.ok, str(report)


def test_fingers_move_together_as_in_pinocchio():
    """Pinocchio's own mimic joints."""
    robot = robot_of("panda")
    assert robot.nv == 8 and robot.uncoupled.nv == 9 and "panda_finger_joint2" not in robot.joint_names
    model: Any = pin.buildModelFromUrdf(str(PANDA), mimic=True)
    data = model.createData()
    assert [model.names[i] for i in range(1, 9)] == list(robot.joint_names)
    q, qd, qdd = states(robot)
    tau = pin.rnea(model, data, q, qd, qdd)
    near(robot.inverse_dynamics(q, qd, qdd), tau)
    upper = np.triu(pin.crba(model, data, q))
    near(robot.mass_matrix(q), upper + np.triu(upper, 1).T)


def test_laws_of_laws_with_offsets():
    """A chain of followers: q5 = 2 q3 - 0.1 = 2 (-0.5 q2 + 0.2) - 0.1."""
    robot = ls.robots.puma560().with_couplings(LAWS)
    assert robot.joint_names == ("joint1", "joint2", "joint4") and len(robot.link_names) == 6
    full = robot.expand([1.0, 2.0, 3.0])
    assert full == pytest.approx([1.0, 2.0, -0.8, 3.0, -1.7, 1.5])
    assert robot.expand_rates([1.0, 2.0, 3.0]) == pytest.approx([1.0, 2.0, -1.0, 3.0, -2.0, 1.5])
    plain = ls.robots.puma560()
    assert plain.uncoupled is plain and plain.expand(np.arange(6)) == pytest.approx(np.arange(6.0))


def test_coordinates_on_a_floating_base():
    robot = robot_of("floating")
    assert robot.joint_names[0] == "root_joint" and robot.nq == robot.nv + 1
    q, qd, _ = states(robot)
    assert np.allclose(robot.difference(q, robot.integrate(q, qd)), qd, rtol=0, atol=1e-13)
    assert np.allclose(robot.normalize(q), q, rtol=0, atol=1e-15) and np.isfinite(robot.neutral()).all()


def test_edited_robots_stay_coupled():
    robot = robot_of("panda")
    q, _, _ = states(robot)
    assert not robot.with_gravity((0, 0, 0)).gravity_forces(q).any()
    heavier = robot.with_payload("panda_leftfinger", 1.0)
    assert np.abs(heavier.gravity_forces(q) - robot.gravity_forces(q)).max() > 1
    assert robot.with_base("floating").nv == 14
    two = ls.scene({"a": robot, "b": (robot, np.eye(4))})
    assert two.nv == 16 and two.couplings[1].leader == "b/panda_finger_joint1"
    near(two.mass_matrix(np.concatenate([q, q]))[8:, 8:], robot.mass_matrix(q))
    placed = robot.placed(np.eye(4))
    near(placed.mass_matrix(q), robot.mass_matrix(q))


def test_a_long_row_of_followers_is_walked_once():
    arm = ls.robots.chain(400)
    laws = [ls.Coupling(b, a, 1.01, 0.001) for a, b in itertools.pairwise(arm.joint_names)]
    found = {law.joint: law for law in coupled(arm.model, reversed(laws)).couplings}
    last = found[arm.joint_names[-1]]
    assert last.leader == arm.joint_names[0]
    assert last.multiplier == pytest.approx(1.01**399, rel=1e-12)
    assert last.offset == pytest.approx(0.001 * (1.01**399 - 1) / 0.01, rel=1e-11)


def test_products_that_overflow_and_circles_name_the_robot():
    arm = ls.robots.chain(20)
    steep = [ls.Coupling(b, a, 1e20) for a, b in itertools.pairwise(arm.joint_names)]
    with pytest.raises(
        ls.DescriptionError, match="of 'chain20' follows 'joint1' through others by a multiplier of inf"
    ):
        arm.with_couplings(steep)
    names = arm.joint_names[:3]
    with pytest.raises(ls.DescriptionError, match="of 'chain20' follow each other in a circle"):
        arm.with_couplings([ls.Coupling(a, b) for a, b in zip(names, names[1:] + names[:1], strict=True)])


def test_a_locked_leader_holds_those_that_follow():
    robot = ls.robots.puma560().with_couplings(LAWS)
    held = robot.lock({"joint2": 0.7})
    assert held.joint_names == ("joint1", "joint4") and [law.joint for law in held.couplings] == ["joint6"]
    q = np.array([0.3, 0.7, -0.4])
    near(held.pose(q[[0, 2]], "tool"), robot.pose(q, "tool"))
    near(held.mass_matrix(q[[0, 2]]), robot.mass_matrix(q)[np.ix_([0, 2], [0, 2])])
    with pytest.raises(ls.ArgumentError, match=r"'joint3' of 'puma560' is a mimic joint of 'joint2'; lock the leader"):
        robot.lock("joint3")
    with pytest.raises(ls.ArgumentError, match="'joint6' of the chain mimics 'joint1', which is not part of it"):
        robot.subchain("link1", "tool")
    chain = robot_of("panda").subchain("panda_link0", "panda_link8")
    assert chain.nv == 7 and chain.couplings == ()


def test_files_keep_the_laws(tmp_path: Path):
    robot = robot_of("robotiq")
    file = tmp_path / "gripper.urdf"
    file.write_text(robot.to_urdf())
    again = ls.load(file, mimic="couple")
    assert again.couplings == robot.couplings
    q, qd, qdd = states(robot, 2)
    near(again.inverse_dynamics(q, qd, qdd), robot.inverse_dynamics(q, qd, qdd))
    run = ls.simulate(robot, [0.3, 0.4], [0.0, 0.0], None, 0.01, dt=1e-3)
    run.to_npz(tmp_path / "run.npz")
    assert ls.simulation.load(tmp_path / "run.npz").robot.couplings == robot.couplings
    with pytest.raises(ls.ArgumentError, match="follow others, which a DH table does not have"):
        ls.robots.puma560().with_couplings(LAWS).to_dh("modified")


def test_constraints_between_links_of_coupled_joints():
    """A loop through a gear: against a dense KKT of the expanded tree, reduced by G."""
    free = ls.robots.planar(4)
    robot = free.with_couplings([ls.Coupling("joint3", "joint2", -2.0, 0.3)])
    at = np.eye(4)
    at[:3, 3] = robot.pose(np.array([0.3, 0.5, 0.2]), robot.tip)[:3, 3]
    closed = robot.with_constraints([ls.Constraint("line", robot.tip, at=at)])
    loop = free.with_constraints([ls.Constraint("line", robot.tip, at=at)])
    q, qd = np.array([0.3, 0.5, 0.2]), np.array([0.4, -0.2, 0.7])
    qd = closed.project_velocity(q, qd)
    tau = np.array([1.0, 2.0, -1.0])
    G, Q, V = robot.expand_rates(np.eye(3)).T, robot.expand(q), robot.expand_rates(qd)
    K, k = loop.constraint_jacobian(Q) @ G, loop.constraint_bias(Q, V)
    near(closed.constraint_jacobian(q), K)
    M, h = G.T @ free.mass_matrix(Q) @ G, free.bias_forces(Q, V) @ G
    rows = np.linalg.matrix_rank(K)
    dense = np.block([[M, K.T], [K, np.zeros((len(K), len(K)))]])
    solution = np.linalg.lstsq(dense, np.concatenate([tau - h, -k]), rcond=1e-12)[0]
    assert rows == 2
    near(closed.forward_dynamics(q, qd, tau), solution[:3], 1e-9)
    assert np.abs(K @ qd).max() < 1e-12


def test_what_it_cannot_is_said():
    robot = robot_of("panda")
    q, qd, qdd = states(robot)
    with pytest.raises(ls.ArgumentError, match="'filter_smoother' does not support mimic joints"):
        robot.forward_dynamics(q, qd, qdd, method="filter_smoother")
    with pytest.raises(ls.ArgumentError, match="mimic joints cannot run as a loop"):
        robot.compile("inverse_dynamics", rolled=True)
    with pytest.raises(ls.ArgumentError, match=r"q has shape \(9,\), expected \(\.\.\., 8\)"):
        robot.expand(np.zeros(9))
    with pytest.raises(ls.ArgumentError, match=r"operators: .*mimic"):
        ls.operators(ls.robots.puma560().with_couplings(LAWS), np.zeros(3))
    with pytest.raises(ls.ArgumentError, match=r"convert for robot\.uncoupled"):
        ls.conventions.to_pinocchio(robot, pin.buildModelFromUrdf(str(PANDA)), q=q)


@pytest.mark.parametrize(
    ("laws", "sentence"),
    [
        ([("joint3", "joint2"), ("joint2", "joint4"), ("joint4", "joint3")], "follow each other in a circle"),
        ([("joint3", "elbow")], "no joint 'elbow'"),
        ([("joint3", "joint3")], "follows itself"),
        ([("joint3", "joint2"), ("joint3", "joint1")], "follows 'joint2' already"),
        ([("joint3", "joint2", float("nan"))], "nan"),
    ],
)
def test_laws_that_cannot_be_followed(laws: list[tuple[Any, ...]], sentence: str):
    with pytest.raises(ls.LinksweepError, match=sentence):
        ls.robots.puma560().with_couplings([ls.Coupling(*law) for law in laws])


def test_load_says_what_it_takes(tmp_path: Path):
    file = tmp_path / "arm.urdf"
    file.write_text(ls.robots.stanford().to_urdf())
    assert ls.load(file, mimic="couple").couplings == ()  # nobody mimics anybody
    with pytest.raises(ls.ArgumentError, match=r"mimic is 'follow'.*expected 'free' or 'couple'"):
        ls.load(file, mimic="follow")
    with pytest.warns(ModelWarning, match="'panda_finger_joint2' mimic others"):
        assert ls.load(PANDA).nv == 9


def test_massless_followers_are_singular_together():
    robot = ls.robots.planar(2).with_payload("link2", 1.0).with_couplings([ls.Coupling("joint2", "joint1", -1.0)])
    q = np.zeros(1)
    assert robot.forward_dynamics(q, q, q).shape == (1,)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        empty = ls.Robot.from_dh([{"a": 1.0}, {"a": 1.0, "mass": 1.0}], "modified")
        still = empty.with_couplings([ls.Coupling("joint1", "joint2", 0.0)])
    assert still.singular_joints == ("joint2",)
    with pytest.raises(ls.SingularError):
        still.forward_dynamics(q, q, q)
