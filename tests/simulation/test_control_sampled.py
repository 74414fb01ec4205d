"""Policies in batches, sampled laws, delays, encoders, noise, motors; the stepper."""

# pyright: reportArgumentType=false, reportCallIssue=false
from __future__ import annotations

import copy
import pickle
import tracemalloc

import numpy as np
import pytest

import linksweep as ls
from linksweep.errors import ArgumentError
from linksweep.robots.mechanisms import four_bars_upright
from linksweep.simulation import PD, Constant, Motor, Sampled, Sampling, Simulation

pytestmark = pytest.mark.filterwarnings("ignore:simulate. .* is deprecated:DeprecationWarning")  # options by name


@pytest.fixture(scope="module")
def puma() -> ls.Robot:
    return ls.robots.puma560()


def starts(count: int = 5) -> np.ndarray:
    return np.random.default_rng(2).uniform(-0.5, 0.5, (count, 6))


def test_a_policy_sees_whole_batches_at_control_instants(puma: ls.Robot):
    calls = []

    def policy(t: float, q: np.ndarray, qd: np.ndarray) -> np.ndarray:
        calls.append((t, q.shape, qd.shape))
        return -30.0 * q - 3.0 * qd

    q0 = starts(6).reshape(2, 3, 6)
    run = ls.simulate(
        puma,
        q0,
        torque=ls.simulation.SampledController(ls.simulation.Policy(policy), 0.01),
        duration=0.1,
        dt=1e-3,
        every=5,
    )
    assert [round(t, 9) for t, *_ in calls] == [round(0.01 * k, 9) for k in range(10)]
    assert all(q == qd == (2, 3, 6) for _, q, qd in calls)
    q, qd = q0, np.zeros((2, 3, 6))
    for k in range(10):
        tau = -30.0 * q - 3.0 * qd
        assert np.array_equal(run.tau[2 * k], tau) and np.array_equal(run.tau[2 * k + 1], tau)
        part = ls.simulate(puma, q, qd, Constant(tau), 0.01)
        q, qd = part.q[-1], part.qd[-1]
        assert np.array_equal(run.q[2 * k + 2], q)
    assert np.allclose(run.qdd[-1], puma.forward_dynamics(q, qd, run.tau[-1]), rtol=1e-11)


def test_a_law_held_is_the_policy_that_computes_it(puma: ls.Robot):
    law = PD(np.zeros(6), 30.0, 5.0)
    by_law = ls.simulate(puma, starts(), None, ls.simulation.SampledController(law, 0.01), 0.2, dt=2e-3)
    by_policy = ls.simulate(
        puma,
        starts(),
        torque=ls.simulation.SampledController(ls.simulation.Policy(lambda t, q, qd: law.torque(t, q, qd, puma)), 0.01),
        duration=0.2,
        dt=2e-3,
    )
    by_function = ls.simulate(
        puma,
        starts(),
        None,
        ls.simulation.SampledController(lambda t, q, qd: law.torque(t, q, qd, puma), 0.01),
        0.2,
        dt=2e-3,
    )
    assert np.array_equal(by_law.q, by_policy.q) and np.allclose(by_law.q, by_function.q, rtol=1e-13, atol=1e-14)


@pytest.mark.parametrize("every", [1, 2, 4, 8, 16])
def test_records_do_not_change_the_run(puma: ls.Robot, every: int):
    law, options = PD(np.zeros(6), 30.0, 5.0), {"dt": 1e-3, "control_period": 8e-3, "sampling": Sampling(delay=4e-3)}
    if every == 8:
        options["threads"] = 2
    whole = ls.simulate(
        puma,
        starts(),
        None,
        ls.simulation.SampledController(law, 8e-3, Sampling(delay=4e-3)),
        0.064,
        dt=1e-3,
    )
    some = ls.simulate(puma, starts(), None, law, 0.064, every=every, **options)
    for name in ("q", "qd", "qdd", "tau"):
        assert np.array_equal(getattr(some, name)[:-1], getattr(whole, name)[::every][:-1])
    assert np.array_equal(some.q[-1], whole.q[-1])


def test_a_delay_shifts_torques(puma: ls.Robot):
    law = Sampled(np.arange(11.0)[:, None] * np.ones(6), np.arange(11) * 0.01, hold="zero")
    run = ls.simulate(
        puma,
        np.zeros(6),
        None,
        ls.simulation.SampledController(law, 0.01, Sampling(delay=0.013)),
        0.1,
        dt=1e-3,
    )
    wanted = np.maximum(0, (np.arange(101) - 13) // 10)
    assert np.array_equal(run.tau[:-1, 0], wanted[:-1])


def test_encoders_and_differences(puma: ls.Robot):
    seen = []

    def policy(t: float, q: np.ndarray, qd: np.ndarray) -> np.ndarray:
        seen.append((q, qd))
        return np.zeros_like(q)

    sampling = Sampling(encoder=0.01, rates="difference")
    run = ls.simulate(
        puma,
        starts(2),
        torque=ls.simulation.SampledController(ls.simulation.Policy(policy), 0.01, sampling),
        duration=0.1,
    )
    for k, (q, qd) in enumerate(seen):
        assert np.allclose(q, np.round(run.q[10 * k] / 0.01) * 0.01, atol=1e-15)
        assert np.allclose(qd, (q - seen[k - 1][0]) / 0.01 if k else 0.0, atol=1e-12)


def test_noise_has_its_size_and_its_seed(puma: ls.Robot):
    def observed(seed: int) -> np.ndarray:
        seen = []

        def policy(t: float, q: np.ndarray, qd: np.ndarray) -> np.ndarray:
            seen.append(np.stack([q, qd]))
            return np.zeros_like(q)

        sampling = Sampling(q_noise=0.1, qd_noise=[0.2] * 6, seed=seed)
        run = ls.simulate(
            puma,
            np.zeros((400, 6)),
            torque=ls.simulation.SampledController(ls.simulation.Policy(policy), 1e-3, sampling),
            duration=5e-3,
        )
        return np.array(seen) - np.stack([run.q[:-1], run.qd[:-1]], axis=1)

    noise = observed(1)
    assert np.array_equal(noise, observed(1)) and not np.array_equal(noise, observed(2))
    # 12,000 samples: the mean is off by 0.009 of the deviation, and that by 0.0065 of itself, in one of three cases
    assert np.allclose(noise.std(axis=(0, 2, 3)), [0.1, 0.2], rtol=0.03) and np.abs(noise.mean()) < 0.01


def test_torques_stay_within_effort_rate_and_motor(puma: ls.Robot):
    def bang(t: float, q: np.ndarray, qd: np.ndarray) -> np.ndarray:
        return np.full(6, 1e3 if t < 0.05 else -1e3)

    def run_with(robot: ls.Robot, sampling: Sampling) -> Simulation:
        policy = ls.simulation.SampledController(ls.simulation.Policy(bang), 1e-3, sampling)
        return ls.simulate(robot, np.zeros(6), None, policy, 0.1)

    bounded = run_with(puma, Sampling(effort=[9, 8, 7, 6, 5, 4]))
    assert (np.abs(bounded.tau).max(axis=0) == [9, 8, 7, 6, 5, 4]).all()
    slow = run_with(puma, Sampling(effort_rate=2e4))
    assert np.abs(np.diff(slow.tau, axis=0)).max() <= 20.0 + 1e-9 and slow.tau[-1, 0] == pytest.approx(0.0, abs=1e-9)
    motor = Motor(gear=50.0, torque_constant=0.1, rotor_inertia=2e-4, current=4.0, voltage=24.0, resistance=2.0)
    driven = motor.driven(puma)
    assert np.allclose(
        np.diag(driven.mass_matrix(np.zeros(6)) - puma.mass_matrix(np.zeros(6))), 2500 * 2e-4, rtol=1e-12
    )
    run = run_with(driven, Sampling(motor=motor))
    assert np.abs(motor.currents(run.tau)).max() <= 4.0 + 1e-12
    # V = k qd + R i: what the supply would have to give never exceeds it
    assert np.abs(5.0 * run.qd[:-1] + 2.0 * motor.currents(run.tau[:-1])).max() <= 24.0 * (1 + 1e-12)


def test_float32_and_the_interpreter(puma: ls.Robot):
    law = PD(np.zeros(6), 30.0, 5.0)
    wanted = ls.simulate(puma, starts(), None, ls.simulation.SampledController(law, 2e-3), 0.02)
    slow = ls.simulate(
        puma,
        starts(),
        None,
        ls.simulation.SampledController(law, 2e-3),
        0.02,
        integrator=ls.simulation.RK4(backend="interpreter"),
    )
    single = ls.simulate(
        puma,
        starts(),
        None,
        ls.simulation.SampledController(law, 2e-3),
        0.02,
        integrator=ls.simulation.RK4(dtype="float32"),
    )
    assert np.allclose(slow.q, wanted.q, rtol=1e-12, atol=1e-13) and single.q.dtype == np.float32
    assert np.allclose(single.q, wanted.q, atol=1e-5)


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"policy": 3}, "policy is 3, expected a function"),
        ({"policy": lambda t, q, qd: q[..., :2]}, r"returned float64 of shape \(2, 2\) at t = 0, expected .* \(2, 6\)"),
        ({"policy": lambda t, q, qd: "no"}, "policy.* returned"),
        ({"policy": lambda t, q, qd: q, "control_period": 1.5e-3}, "is 1.5 steps of dt=0.001, expected a whole number"),
        ({"policy": lambda t, q, qd: q, "control_period": -1.0}, "control_period is -1.0"),
        ({"policy": lambda t, q, qd: q, "torque": np.zeros(6)}, "policy and torque are both"),
        ({"policy": lambda t, q, qd: q, "integrator": "adaptive"}, "need fixed steps"),
        ({"sampling": Sampling()}, "sampling needs control_period"),
        ({"policy": lambda t, q, qd: q, "sampling": 3}, "sampling is 3, expected"),
        ({"policy": lambda t, q, qd: q, "control_period": 2e-3, "every": 5}, "expected one to divide the other"),
        ({"policy": lambda t, q, qd: q, "sampling": Sampling(effort=[1, 2])}, "effort is .*(..., 6)"),
    ],
)
def test_what_cannot_be_sampled_is_said(puma: ls.Robot, options: dict, sentence: str):
    with pytest.raises(ArgumentError, match=sentence):
        ls.simulate(puma, starts(2), duration=0.01, **options)


@pytest.mark.parametrize(
    "options",
    [
        {"delay": -1.0},
        {"delay": "1"},
        {"rates": "guess"},
        {"seed": -1},
        {"q_noise": -1.0},
        {"motor": 3},
        {"encoder": "x"},
    ],
)
def test_a_sampling_checks_its_numbers(options: dict):
    with pytest.raises(ArgumentError, match="Sampling: "):
        Sampling(**options)


@pytest.mark.parametrize("options", [{"gear": 0.0}, {"voltage": 3.0}, {"current": -1.0}])
def test_a_motor_checks_its_numbers(options: dict):
    with pytest.raises(ArgumentError, match="Motor: "):
        Motor(**options)


# ---- the stepper -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("backend", ["llvm", "interpreter"])
@pytest.mark.parametrize("threads", [1, 2])
def test_a_stepper_steps_as_simulate_does(puma: ls.Robot, backend: str, threads: int):
    q0 = starts(1100 if threads == 2 else 5)
    tau = np.random.default_rng(3).normal(size=(10, *q0.shape))
    run = ls.simulate(
        puma,
        q0,
        None,
        Sampled(tau, hold="zero"),
        0.1,
        dt=0.01,
        integrator=ls.simulation.RK4(backend=backend),
    )
    step = ls.stepper(puma, 0.01, backend=backend, threads=threads)
    state = step.start(q0)
    for k in range(10):
        assert step(state, tau[k]) is state
        assert np.array_equal(state.q, run.q[k + 1]) and np.array_equal(state.qd, run.qd[k + 1])
        assert np.array_equal(state.qdd, run.qdd[k]) and np.array_equal(state.tau, tau[k])
    assert state.t == pytest.approx(0.1, rel=1e-15)


def test_a_step_makes_no_array(puma: ls.Robot):
    step = ls.stepper(puma, 0.01)
    state, tau = step.start(starts(2000)), np.zeros((2000, 6))
    own = [x.ctypes.data for x in (state.q, state.qd, state.qdd, state.tau)]
    step(state, tau)
    tracemalloc.start()
    for _ in range(20):
        step(state, tau)
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert most < 4096  # a state has 2000 x 24 numbers
    assert own == [x.ctypes.data for x in (state.q, state.qd, state.qdd, state.tau)]


def test_a_stepper_takes_one_state_resets_and_float32(puma: ls.Robot):
    step = ls.stepper(puma, 0.01, dtype="float32")
    state = step.start(np.zeros(6))
    step(state, 0.0)
    first = state.q.copy()
    step(state, np.ones(6))
    state.q[:], state.qd[:] = 0.0, 0.0
    step(state, np.zeros(6))
    assert np.array_equal(state.q, first) and state.q.dtype == np.float32


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda r: ls.stepper(3, 0.01), "stepper got 3, expected a Robot"),
        (lambda r: ls.stepper(r, 0.0), "dt is 0.0"),
        (lambda r: ls.stepper(r, 0.01, integrator="adaptive"), "integrator is 'adaptive'"),
        (lambda r: ls.stepper(r, 0.01, dtype="int32"), "dtype is '?int32"),
        (lambda r: ls.stepper(r, 0.01)(3, np.zeros(6)), "step got 3, expected a State"),
        (
            lambda r: ls.stepper(r, 0.01)(ls.stepper(r, 0.01).start(np.zeros(6)), np.zeros(5)),
            "expected real numbers",
        ),
        (lambda r: ls.stepper(r, 0.01)(ls.stepper(r, 0.01).start(np.zeros(6)), "x"), "expected real numbers"),
        (lambda r: ls.stepper(r, 0.01).start(np.zeros(5)), r"q0 has shape \(5,\)"),
    ],
)
def test_a_stepper_says_what_it_cannot(puma: ls.Robot, call: object, sentence: str):
    with pytest.raises(ArgumentError, match=sentence):
        call(puma)  # type: ignore[operator]


# ---- states: assigned, edited in place, copied, pickled; each belongs to one stepper -------------------------------

STEPPERS = {
    "machine": {},
    "interpreter": {"backend": "interpreter"},
    "single": {"dtype": "float32"},
    "threads": {"threads": 2},
}


@pytest.mark.parametrize("batch", [(), (5,), (2, 3)])
@pytest.mark.parametrize("options", STEPPERS.values(), ids=STEPPERS)
def test_assigned_states_are_stepped(puma: ls.Robot, options: dict[str, object], batch: tuple[int, ...]):
    rng = np.random.default_rng(4)
    q, qd, tau = rng.uniform(-0.5, 0.5, (3, *batch, 6))
    step = ls.stepper(puma, 0.01, **options)
    expected = step(step.start(q, qd), tau)
    assigned, in_place = step.start(0 * q), step.start(0 * q)
    assigned.q, assigned.qd = q, qd
    in_place.q[...], in_place.qd[...] = q, qd
    added = step.start(0 * q)
    added.q += q.astype(added.q.dtype)
    added.qd += qd.astype(added.qd.dtype)
    for state in (assigned, in_place, added):
        step(state, tau)
        for name in ("q", "qd", "qdd", "tau"):
            assert np.array_equal(getattr(state, name), getattr(expected, name))
    assigned.q = np.zeros(6)  # for all
    assert not assigned.q.any() and assigned.q.shape == (*batch, 6)


@pytest.mark.parametrize("name", ["q", "qd"])
@pytest.mark.parametrize("value", [np.zeros(5), np.zeros((7, 6)), np.full(6, np.nan), "x", None, [[1], [2, 3]]])
def test_what_is_no_state_is_not_assigned(puma: ls.Robot, name: str, value: object):
    state = ls.stepper(puma, 0.01).start(starts())
    before = state.q.copy(), state.qd.copy()
    with pytest.raises(ArgumentError):
        setattr(state, name, value)
    assert np.array_equal(state.q, before[0]) and np.array_equal(state.qd, before[1])


@pytest.mark.parametrize("name", ["qdd", "tau", "t", "Q", "dt"])
def test_other_attributes_of_a_state_are_not_assigned(puma: ls.Robot, name: str):
    with pytest.raises(AttributeError):
        setattr(ls.stepper(puma, 0.01).start(starts()), name, np.zeros(6))


def test_a_state_belongs_to_one_stepper(puma: ls.Robot):
    step = ls.stepper(puma, 0.01)
    others = [
        ls.stepper(puma, 0.02), ls.stepper(puma.with_payload("link6", 1.0), 0.01),
        ls.stepper(puma, 0.01, integrator="semi_implicit_euler"), ls.stepper(puma, 0.01, dissipation=True),
        ls.stepper(puma, 0.01, dtype="float32"),
    ]  # fmt: skip
    state = step.start(starts())
    before = state.q.copy()
    for other in others:
        with pytest.raises(ArgumentError, match="got a state of"):
            other(state, np.zeros(6))
    assert np.array_equal(state.q, before) and state.t == 0.0
    ls.stepper(puma, 0.01)(state, np.zeros(6))  # the same, made anew
    assert state.t == 0.01


def test_states_and_steppers_are_copied_and_pickled(puma: ls.Robot):
    for options in ({}, {"dtype": "float32"}, {"stops": (1e3, 10.0), "integrator": "semi_implicit_euler"}):
        step = ls.stepper(puma.with_limits(lower=-2.0, upper=2.0), 0.01, **options)
        state = step(step.start(starts()), 1.0)
        again_step = pickle.loads(pickle.dumps(step))
        copies = [copy.copy(state), copy.deepcopy(state), pickle.loads(pickle.dumps(state))]
        step(state, 2.0)
        for other in copies:
            assert not np.array_equal(other.q, state.q) and other.t == 0.01
            again_step(other, 2.0)
            assert np.array_equal(other.q, state.q) and np.array_equal(other.qd, state.qd) and other.t == state.t


def test_coordinates_that_are_assigned_are_normalized():
    robot = ls.robots.puma560().with_base("floating")
    step = ls.stepper(robot, 0.01)
    q = robot.random(np.random.default_rng(0))
    expected = step(step.start(q), 0.0)
    state = step.start(robot.neutral())
    wrong = q.copy()
    wrong[:4] *= 3.0
    state.q = wrong
    assert np.allclose(step(state, 0.0).q, expected.q, atol=1e-14)


@pytest.mark.parametrize("backend", ["llvm", "interpreter"])
def test_a_state_that_opens_a_loop_is_refused(backend: str):
    """As `simulate` does: at the start, when assigned, and when written in place."""
    robot = ls.robots.four_bars(1)
    q, qd = four_bars_upright(robot)
    step = ls.stepper(robot, 1e-3, backend=backend)
    for wrong_q, wrong_qd in ((q + 0.1 * np.eye(3)[0], qd), (q, qd + 0.1 * np.eye(3)[0])):
        with pytest.raises(ArgumentError, match="constraints"):
            ls.simulate(robot, wrong_q, wrong_qd, duration=1e-3)
        with pytest.raises(ArgumentError, match="constraints"):
            step.start(wrong_q, wrong_qd)
        state = step.start(np.tile(q, (3, 1)), qd)
        state.q, state.qd = wrong_q, wrong_qd
        with pytest.raises(ArgumentError, match="constraints"):
            step(state, 0.0)
        state.q, state.qd = q, qd
        step(state, 0.0)
        state.q[1], state.qd[1] = wrong_q, wrong_qd
        with pytest.raises(ArgumentError, match="constraints"):
            step(state, 0.0)
        state.q[1], state.qd[1] = q, qd
        step(state, 0.0)
    run = ls.simulate(robot, q, qd, duration=1e-3, integrator=ls.simulation.RK4(backend=backend))
    assert np.array_equal(step(step.start(q, qd), 0.0).q, run.q[-1])


def test_a_state_beyond_a_hard_stop_is_refused():
    robot = ls.robots.planar(2).with_limits(lower=-1.0, upper=1.0)
    step = ls.stepper(robot, 1e-3, stops="inelastic")
    with pytest.raises(ArgumentError, match="outside the limits"):
        step.start([0.0, 1.5])
    state = step.start([0.0, 0.5])
    state.q = [0.0, 1.5]
    with pytest.raises(ArgumentError, match="outside the limits"):
        step(state, 0.0)


# ---- masked arrays and lists that are no array ----------------------------------------------------------------------

MASKED = np.ma.masked_array(np.ones(6), mask=[0, 0, 1, 0, 0, 0])


@pytest.mark.parametrize("value", [MASKED, [MASKED] * 5, list(MASKED)])
def test_masked_entries_are_no_torques(puma: ls.Robot, value: object):
    step = ls.stepper(puma, 0.01)
    state = step.start(starts())
    with pytest.raises(ArgumentError, match="masked"):
        step(state, value)
    assert state.t == 0.0 and not state.tau.any()
    for name in ("q", "qd"):
        with pytest.raises(ArgumentError, match="masked"):
            setattr(state, name, value)
    with pytest.raises(ArgumentError, match="masked"):
        ls.simulate(puma, starts(), torque=ls.simulation.Policy(lambda t, q, qd: value), duration=0.01)
    with pytest.raises(ArgumentError, match="masked"):
        ls.simulate(puma, starts(), None, lambda t, q, qd: value, 0.01)


@pytest.mark.parametrize("value", [np.ma.masked, [[1.0], [1.0, 2.0]], 1j, np.complex128(1j), "x", None, [1.0]])
def test_events_that_are_no_numbers(puma: ls.Robot, value: object):
    with pytest.raises(ArgumentError, match="event"):
        ls.simulate(
            puma,
            np.zeros(6),
            duration=0.01,
            integrator=ls.simulation.Adaptive(events=[lambda t, q, qd: value]),
        )


@pytest.mark.parametrize(
    "value", [[[1.0], [1.0, 2.0]], [1.0, [2.0], 3, 4, 5, 6], "text", None, [1.0] * 5, 1j * np.ones(6)]
)
@pytest.mark.parametrize("integrator", ["rk4", "adaptive"])
def test_torques_that_are_no_numbers(puma: ls.Robot, integrator: str, value: object):
    with pytest.raises(ArgumentError, match="torque"):
        ls.simulate(puma, np.zeros(6), None, lambda t, q, qd: value, 0.01, integrator=integrator)
    with pytest.raises(ArgumentError, match=r"policy|torque"):
        ls.simulate(puma, np.zeros(6), torque=ls.simulation.Policy(lambda t, q, qd: value), duration=0.01)
