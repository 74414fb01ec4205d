"""Simulations against Pinocchio, MuJoCo and mechanics; the loop in machine code against the one in Python."""

from __future__ import annotations

import importlib
from typing import Any

import numpy as np
import pinocchio as pin
import pytest
from oracles import FILES
from pin_models import ALL_KINDS, random_robot

import linksweep as ls
from linksweep.backends.rollout import Feed, Recording, _run_python, run
from linksweep.functions.computation import RobotFunction
from linksweep.motion import Quintic
from linksweep.papers.studies.puma560 import PUMA_DURATION, PUMA_RANGES_DEG, PUMA_SAMPLES
from linksweep.simulation import Constant, FeedForward, Sampled, SimulationWarning, fixed_step
from linksweep.simulation.fixed_step import Step

mujoco: Any = importlib.import_module("mujoco")  # it has no types that pyright could see
UR5 = FILES["ur_description/urdf/ur5_robot.urdf"]
START, END = np.radians(PUMA_RANGES_DEG).T
PATH = Quintic([START, END], [0.0, PUMA_DURATION])


@pytest.fixture(scope="module")
def puma() -> ls.Robot:
    return ls.robots.puma560()


@pytest.fixture(scope="module")
def mixed() -> ls.Robot:
    return random_robot(ALL_KINDS, seed=3, armature=0.1)


def random_state(robot: ls.Robot, seed: int, *batch: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    q = np.array([robot.random(rng) for _ in range(int(np.prod(batch)))]).reshape(*batch, robot.nq)
    return q, rng.normal(size=(*batch, robot.nv))


# ---- what the issue asks for ---------------------------------------------------------------------------------


@pytest.mark.quick
def test_puma_follows_its_path_by_torques_at_the_stages(puma: ls.Robot):
    found = ls.simulate(puma, START, None, FeedForward(PATH), PUMA_DURATION)
    assert np.abs(found.q[-1] - END).max() <= 1e-9
    assert np.allclose(found.tau, puma.inverse_dynamics(*PATH(found.t)), rtol=1e-12, atol=1e-12)
    assert np.allclose(found.qdd, PATH(found.t).qdd, rtol=0, atol=1e-9)


def test_puma_follows_its_path_by_300_samples(puma: ls.Robot):
    t = np.linspace(0.0, PUMA_DURATION, PUMA_SAMPLES)
    law = Sampled(puma.inverse_dynamics(*PATH(t)), t)
    assert np.abs(ls.simulate(puma, START, None, law, PUMA_DURATION).q[-1] - END).max() <= 1e-5


def test_passive_puma_keeps_its_energy(puma: ls.Robot):
    assert any(link.joint.armature for link in puma.model.links)
    found = ls.simulate(puma, np.zeros(6), None, None, 10.0)
    assert found.energy_drift <= 1e-10
    assert np.ptp(found.potential_energy) > 10.0  # it does fall


# ---- others' programs ----------------------------------------------------------------------------------------


def pinocchio_rk4(q: np.ndarray, v: np.ndarray, tau: np.ndarray, dt: float) -> tuple[np.ndarray, np.ndarray]:
    """States after each step; tau (2 steps + 1, 6) at steps and their middles."""
    model: Any = pin.buildModelFromUrdf(str(UR5))
    data = model.createData()

    def f(q: np.ndarray, v: np.ndarray, u: np.ndarray) -> np.ndarray:
        return pin.aba(model, data, q, v, u)

    states = [(q, v)]
    for k in range(0, len(tau) - 1, 2):
        a1 = f(q, v, tau[k])
        v2 = v + 0.5 * dt * a1
        a2 = f(q + 0.5 * dt * v, v2, tau[k + 1])
        v3 = v + 0.5 * dt * a2
        a3 = f(q + 0.5 * dt * v2, v3, tau[k + 1])
        v4 = v + dt * a3
        a4 = f(q + dt * v3, v4, tau[k + 2])
        q, v = q + dt / 6 * (v + 2 * v2 + 2 * v3 + v4), v + dt / 6 * (a1 + 2 * a2 + 2 * a3 + a4)
        states.append((q, v))
    return np.array([s[0] for s in states]), np.array([s[1] for s in states])


@pytest.mark.quick
def test_same_scheme_as_pinocchios_aba_in_a_loop():
    robot = ls.load(UR5)
    assert robot.joint_names == tuple(pin.buildModelFromUrdf(str(UR5)).names)[1:]
    rng = np.random.default_rng(0)
    q0, qd0 = rng.uniform(-1, 1, (3, 6)), rng.uniform(-1, 1, (3, 6))
    tau = rng.uniform(-5, 5, (201, 3, 6))
    found = ls.simulate(robot, q0, qd0, tau, 0.1)
    for k in range(3):
        q, qd = pinocchio_rk4(q0[k], qd0[k], tau[:, k], 1e-3)
        assert np.abs(found.q[:, k] - q).max() <= 1e-9 * np.abs(q).max()
        assert np.abs(found.qd[:, k] - qd).max() <= 1e-9 * np.abs(qd).max()


MJCF = """<mujoco><option timestep="0.002" integrator="{integrator}"><flag contact="disable"/></option>
<compiler angle="radian"/><worldbody>
<body name="a"><joint name="turn" type="hinge" axis="0 1 0" armature="0.05"/>
  <inertial pos="0.2 0.05 0" mass="2" diaginertia="0.02 0.05 0.04"/>
  <body name="b" pos="0.4 0 0.1"><joint name="slide" type="slide" axis="1 0.5 0"/>
    <inertial pos="0.1 0 0.1" mass="1" diaginertia="0.01 0.02 0.02"/>
    <body name="c" pos="0.3 0.1 0"><joint name="{last}" type="{last}"/>
      <inertial pos="0 0.1 0.2" mass="0.7" diaginertia="0.03 0.02 0.01"/></body></body></body>
</worldbody></mujoco>"""


@pytest.mark.parametrize(
    ("theirs", "integrator", "last"),
    [("RK4", "rk4", "hinge"), ("Euler", "semi_implicit_euler", "hinge"), ("Euler", "semi_implicit_euler", "ball")],
)
def test_same_scheme_as_mujocos(theirs: str, integrator: str, last: str, tmp_path: Any):
    """MuJoCo moves a ball joint by the exponential too; its RK4 averages rates otherwise, so that is not compared."""
    text = MJCF.format(integrator=theirs, last=last)
    (tmp_path / "arm.xml").write_text(text)
    robot, model = ls.load(tmp_path / "arm.xml"), mujoco.MjModel.from_xml_string(text)
    data = mujoco.MjData(model)
    rng = np.random.default_rng(1)
    qd0, tau = rng.normal(size=robot.nv), rng.normal(size=robot.nv)
    data.qvel[:], data.qfrc_applied[:] = qd0, tau
    found = ls.simulate(robot, robot.neutral(), qd0, tau, 0.4, dt=0.002, integrator=integrator)
    for k in range(201):
        quaternion = data.qpos[2:] if last == "hinge" else data.qpos[[3, 4, 5, 2]]
        assert np.allclose(found.q[k], [*data.qpos[:2], *quaternion], rtol=1e-9, atol=1e-10)
        assert np.allclose(found.qd[k], data.qvel, rtol=1e-9, atol=1e-10)
        mujoco.mj_step(model, data)


# ---- every kind of joint ---------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.quick
def test_rk4_is_of_fourth_order_on_every_kind_of_joint(mixed: ls.Robot):
    q0, qd0 = random_state(mixed, 5)
    exact = ls.simulate(
        mixed,
        q0,
        qd0,
        None,
        0.4,
        dt=0.1,
        integrator=ls.simulation.Adaptive(rtol=1e-13, atol=1e-13),
    )
    errors = []
    for dt in (0.01, 0.005):
        found = ls.simulate(mixed, q0, qd0, None, 0.4, dt=dt)
        errors.append(np.abs(found.q[-1] - exact.q[-1]).max())
        assert np.allclose(np.linalg.norm(found.q[:, :4], axis=1), 1.0, rtol=1e-15, atol=1e-15)
    assert 12.0 < errors[0] / errors[1] < 20.0  # 16 in the limit
    assert errors[1] < 1e-6


@pytest.mark.quick
def test_semi_implicit_euler_moves_as_integrate_does(mixed: ls.Robot):
    """Also at rates where the rotation of one step is a small angle, and where it is none."""
    q, qd = random_state(mixed, 6, 4)
    qd[1:] *= np.array([[1e-3], [0.0], [30.0]])
    found = ls.simulate(mixed, q, qd, None, 0.02, integrator="semi_implicit_euler")
    for k in range(20):
        qdd = mixed.forward_dynamics(q, qd, np.zeros(mixed.nv))
        qd = qd + 1e-3 * qdd
        q = mixed.integrate(q, qd, 1e-3)
        assert np.allclose(found.q[k + 1], q, rtol=1e-11, atol=1e-12)
        assert np.allclose(found.qd[k + 1], qd, rtol=1e-11, atol=1e-11)


def test_free_body_keeps_its_momentum():
    robot = random_robot(("free",), seed=1).with_gravity((0.0, 0.0, 0.0))
    q0, qd0 = random_state(robot, 2)
    found = ls.simulate(robot, q0, qd0, None, 1.0)
    h = robot.momentum(found.q, found.qd, about="base")
    assert np.abs(h - h[0]).max() <= 1e-11 * np.abs(h[0]).max()


# ---- the loop --------------------------------------------------------------------------------------------------


def recorded(robot: ls.Robot, q0: np.ndarray, qd0: np.ndarray, records: int, every: int) -> Recording:
    states = [np.full((records + 1, *x.shape), 7.0) for x in (q0, qd0)]
    states[0][0], states[1][0] = q0, qd0
    return Recording(states, [np.full((records + 1, *qd0.shape), 7.0) for _ in range(2)], every)


@pytest.mark.quick
@pytest.mark.cases(1000)
@pytest.mark.parametrize("every", [1, 3])
@pytest.mark.parametrize(("count", "threads"), [(1, 1), (5, 1), (9, 2), (70, 1), (131, 2)])
def test_loop_in_machine_code_is_the_one_in_python(puma: ls.Robot, count: int, threads: int, every: int):
    q0, qd0 = random_state(puma, count, count)
    forward = RobotFunction(puma.canonical, "forward_dynamics", "filter_smoother")
    kernel = Step(puma, Sampled(np.zeros((3, 6))), "rk4", forward).kernel("float64", "llvm")
    tau = np.random.default_rng(0).normal(size=(2 * 4 * every + 1, count, 6))
    feeds = [Feed(np.full((1, 1, 1), 1e-3)), *(Feed(tau, offset, 2) for offset in range(3))]
    machine, python = recorded(puma, q0, qd0, 4, every), recorded(puma, q0, qd0, 4, every)
    run(kernel, machine, feeds, 0, 3, threads)
    run(kernel, machine, feeds, 3, 4, threads)
    _run_python(kernel, python, feeds, 0, 4)
    for a, b in zip((*machine.states, *machine.results), (*python.states, *python.results), strict=True):
        assert np.array_equal(a, b)
    assert (machine.results[0][-1] == 7.0).all()  # nothing is written behind the last step


@pytest.mark.quick
def test_rollouts_do_not_depend_on_batch_threads_or_records(puma: ls.Robot):
    q0, qd0 = random_state(puma, 8, 3, 7)
    whole = ls.simulate(puma, q0, qd0, None, 0.05)
    assert whole.q.shape == (51, 3, 7, 6) and whole.tau.shape == (51, 3, 7, 6)
    threaded = ls.simulate(puma, q0, qd0, None, 0.05, integrator=ls.simulation.RK4(threads=2))
    sparse = ls.simulate(puma, q0, qd0, None, 0.05, every=10)
    alone = ls.simulate(puma, q0[2, 4], qd0[2, 4], None, 0.05)
    for name in ("q", "qd", "qdd", "tau"):
        full = getattr(whole, name)
        assert np.array_equal(getattr(threaded, name), full)
        assert np.array_equal(getattr(sparse, name), full[::10])
        assert np.array_equal(getattr(alone, name), full[:, 2, 4])
    assert np.array_equal(sparse.t, whole.t[::10])


def test_accelerations_and_torques_are_those_of_the_same_moment(puma: ls.Robot):
    q0, qd0 = random_state(puma, 9)
    found = ls.simulate(puma, q0, qd0, np.arange(6.0), 0.01)
    assert np.array_equal(found.tau, np.tile(np.arange(6.0), (11, 1)))
    assert np.allclose(found.qdd, puma.forward_dynamics(found.q, found.qd, found.tau), rtol=1e-12, atol=1e-12)


@pytest.mark.cases(1)
@pytest.mark.parametrize("integrator", ["rk4", "semi_implicit_euler"])
@pytest.mark.slow
def test_interpreter_steps_alike(mixed: ls.Robot, integrator: str):
    q0, qd0 = random_state(mixed, 10, 3)
    machine = ls.simulate(mixed, q0, qd0, None, 0.006, integrator=integrator, every=3)
    kinds = {"rk4": ls.simulation.RK4, "semi_implicit_euler": ls.simulation.SemiImplicitEuler}
    slow = kinds[integrator](backend="interpreter")
    interpreted = ls.simulate(mixed, q0, qd0, None, 0.006, integrator=slow, every=3)
    for name in ("q", "qd", "qdd"):
        assert np.allclose(getattr(machine, name), getattr(interpreted, name), rtol=1e-11, atol=1e-11)


def test_robots_too_large_to_be_written_out_step_alike(puma: ls.Robot, monkeypatch: pytest.MonkeyPatch):
    q0, qd0 = random_state(puma, 11, 4)
    written_out = ls.simulate(puma, q0, qd0, Constant(np.ones(6)), 0.01)
    monkeypatch.setattr(fixed_step, "ROLL_ABOVE", 1)
    fixed_step._unrolled_or_looped.cache_clear()
    in_columns = ls.simulate(puma, q0, qd0, Constant(np.ones(6)), 0.01)
    fixed_step._unrolled_or_looped.cache_clear()
    assert np.allclose(in_columns.q, written_out.q, rtol=1e-12, atol=1e-12)
    assert np.allclose(in_columns.qdd, written_out.qdd, rtol=1e-11, atol=1e-11)


@pytest.mark.slow
def test_a_long_chain_keeps_its_energy():
    robot = ls.robots.chain(64, seed=1)
    found = ls.simulate(robot, np.zeros(64), None, None, 0.01, dt=2e-4)
    assert found.energy_drift < 1e-10


def test_float32(puma: ls.Robot):
    q0, qd0 = random_state(puma, 12, 5)
    single, double = (
        ls.simulate(puma, q0, qd0, None, 0.1, integrator=ls.simulation.RK4(dtype=dtype))
        for dtype in ("float32", "float64")
    )
    assert single.q.dtype == single.tau.dtype == np.float32
    assert np.abs(single.q - double.q).max() < 1e-4  # a hundred steps, each rounded to 6e-8


@pytest.mark.quick
def test_divergence_is_nan_from_there_and_said(puma: ls.Robot):
    tau = np.zeros((3, 6))
    tau[1] = 1e250
    with pytest.warns(SimulationWarning, match="1 of 3 rollouts of puma560 diverged: joint .* of rollout 1 "):
        found = ls.simulate(puma, np.zeros((3, 6)), None, Constant(tau), 0.02)
    assert found.finite.tolist() == [True, False, True]
    gone = np.asarray(np.isnan(found.q[:, 1]).all(axis=-1))
    assert not gone[0] and gone[-1] and (np.diff(gone.astype(int)) >= 0).all()
    assert np.array_equal(found.q[:, 0], ls.simulate(puma, np.zeros(6), None, Constant(np.zeros(6)), 0.02).q)


def test_methods_of_forward_dynamics(puma: ls.Robot):
    q0, qd0 = random_state(puma, 13)
    default, other = (
        ls.simulate(puma, q0, qd0, None, 0.01, integrator=ls.simulation.RK4(method=method)) for method in (None, "fd3")
    )
    assert other.settings["method"] == "fd3"
    assert np.allclose(default.q, other.q, rtol=1e-11, atol=1e-11)


def test_deprecated_keywords_warn_and_work(puma: ls.Robot):
    """Former keywords of `simulate` are options of integrators, controllers and disturbances now."""
    q0, law = np.full(6, 0.1), ls.simulation.PD(np.zeros(6), 10.0, 1.0)
    options: dict[str, Any] = {"threads": 2, "dtype": "float32"}
    with pytest.warns(DeprecationWarning, match=r"threads= is deprecated, use integrator=RK4\(threads=...\)"):
        old = ls.simulate(puma, q0, None, law, 0.01, **options)
    new = ls.simulate(puma, q0, None, law, 0.01, integrator=ls.simulation.RK4(**options))
    assert np.array_equal(old.q, new.q) and old.settings == new.settings
    options = {"control_period": 2e-3}
    with pytest.warns(DeprecationWarning, match="control_period= is deprecated, use torque=SampledController"):
        old = ls.simulate(puma, q0, None, law, 0.01, **options)
    new = ls.simulate(puma, q0, None, ls.simulation.SampledController(law, 2e-3), 0.01)
    assert np.array_equal(old.q, new.q) and old.settings == new.settings
    with pytest.raises(TypeError, match="unexpected keyword argument 'thread'"):
        ls.simulate(puma, q0, thread=2)  # type: ignore[call-arg]
