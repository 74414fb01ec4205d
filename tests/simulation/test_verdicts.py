"""What is said of runs that diverge: the joint, the time, and a step or gains with which the same run stays finite."""

from __future__ import annotations

import functools
import re
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from oracles import FILES

import linksweep as ls
from linksweep.errors import ModelWarning, SingularWarning
from linksweep.simulation import (
    PD,
    Constant,
    JointStops,
    Sampled,
    SampledController,
    Simulation,
    SimulationWarning,
    Surface,
    saturated,
)
from linksweep.simulation.diagnosis import without_warnings

HOME = np.array([0.0, 0.0, 0.0, -1.5, 0.0, 1.5, 0.0, 0.0, 0.0])
WORST = "panda_joint7"  # 0.0015 kg m^2 while the other joints give way, 1e-3 of what it carries


@functools.cache
def panda(mimic: str = "free") -> ls.Robot:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ModelWarning)
        return ls.load(FILES["panda_description/urdf/panda.urdf"], mimic=mimic)


def said(*arguments: Any, **options: Any) -> tuple[Simulation, list[warnings.WarningMessage]]:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        run = ls.simulate(*arguments, **options)
    return run, caught


def numbers(text: str, name: str) -> list[float]:
    return [float(x) for x in re.findall(rf"\b{name} = ([-+.\de]+)\b", text)]


def one_divergence(*arguments: Any, **options: Any) -> tuple[Simulation, str]:
    run, caught = said(*arguments, **options)
    assert [each.category for each in caught] == [SimulationWarning]
    return run, str(caught[0].message)


LAWS: dict[str, Callable[[np.ndarray, float], Any]] = {
    "pd": lambda q, share: PD(q, 400.0 * share, 40.0 * share),
    "sum": lambda q, share: PD(q, 200.0 * share, 20.0 * share) + PD(q, 200.0 * share, 20.0 * share, gravity=False),
    "saturated": lambda q, share: saturated(PD(q, 400.0 * share, 40.0 * share), 1e9),
    "function": lambda q, share: lambda t, at, rate: -400.0 * (at - q) - 40.0 * rate,
}


@pytest.mark.parametrize("integrator", ["rk4", "semi_implicit_euler"])
@pytest.mark.parametrize("law", list(LAWS))
@pytest.mark.parametrize("mimic", ["free", "couple"])
def test_stiff_feedback_names_joint_time_and_what_is_stable(mimic: str, law: str, integrator: str):
    """A uniform PD on a Panda: its light wrist and fingers are too quick for 1 ms."""
    robot = panda(mimic)
    home = HOME[: robot.nq]
    start = home + np.r_[np.full(7, 0.05), np.full(robot.nq - 7, 0.01)]
    arguments = {"integrator": integrator, "duration": 0.3}
    run, text = one_divergence(robot, start, None, LAWS[law](home, 1.0), **arguments)
    assert f"joint {WORST} " in text
    onset, gone = (float(x) for x in re.findall(r"from t = ([-+.\de]+) s on", text))
    speed = np.abs(run.qd) * 1e-3
    assert onset == run.t[(~(speed < 1.0)).any(axis=1).argmax()] < gone == run.t[np.isnan(run.q).any(axis=1).argmax()]
    tried, stable = numbers(text, "dt")
    assert tried == 1e-3 and 1e-5 < stable < 1e-3
    assert gone < 0.05
    steady = arguments | {"duration": 0.1}  # twice as long as the run that diverged
    assert said(robot, start, None, LAWS[law](home, 1.0), dt=stable, **steady)[1] == []
    share = re.search(r"all gains multiplied by ([.\d]+)\b", text)
    if share is not None:
        assert said(robot, start, None, LAWS[law](home, float(share[1])), **arguments)[1] == []
    assert (share is None and not numbers(text, "kp")) == (law == "function")


def test_gains_of_few_joints_are_listed():
    """Only the wrist and the gripper are too stiff, and the run with the listed gains there stays finite."""
    robot = panda("couple")
    home, kp, kd = HOME[:8], np.full(8, 400.0), np.full(8, 40.0)
    _, text = one_divergence(robot, home + 0.02, None, PD(home, kp, kd), 0.3)
    listed = re.findall(r"kp = ([.\d]+), kd = ([.\d]+) at (\w+)", text)
    assert 0 < len(listed) <= 3 and WORST in [name for *_, name in listed]
    for p, d, name in listed:
        place = robot.joint_names.index(name)
        kp[place], kd[place] = float(p), float(d)
    assert said(robot, home + 0.02, None, PD(home, kp, kd), 0.3)[1] == []


def test_gains_of_the_rollout_that_diverges():
    robot = panda()
    kp, kd = np.full((2, 3, 9), 40.0), np.full((2, 3, 9), 4.0)
    kp[1, 2], kd[1, 2] = 800.0, 80.0
    _, text = one_divergence(robot, np.tile(HOME + 0.01, (2, 3, 1)), None, PD(HOME, kp, kd), 0.1)
    assert text.startswith(f"1 of 6 rollouts of panda diverged: joint {WORST} of rollout (1, 2) ")
    stable = numbers(text, "dt")[1]
    assert said(robot, np.tile(HOME + 0.01, (2, 3, 1)), None, PD(HOME, kp, kd), 0.1, dt=stable)[0].finite.all()


def test_sampled_control_names_its_period():
    robot = panda()
    _, text = one_divergence(robot, HOME + 0.01, None, SampledController(PD(HOME, 200.0, 20.0), 0.004), 0.2)
    tried, stable = numbers(text, "control_period")
    assert tried == 0.004
    run, caught = said(robot, HOME + 0.01, None, SampledController(PD(HOME, 200.0, 20.0), stable), 0.2, dt=stable)
    assert run.finite and caught == []


def test_stiff_stops():
    robot = panda()
    _, text = one_divergence(robot, HOME + 0.01, None, None, 0.5, disturbance=JointStops(1e6, 1e3))
    stable = numbers(text, "dt")[1]
    assert said(robot, HOME + 0.01, None, None, 0.35, disturbance=JointStops(1e6, 1e3), dt=stable, every=1000)[0].finite


@pytest.mark.slow
def test_a_joint_that_flies_off_is_named_with_its_limits():
    """Undriven, without stops: fingers leave the hand, and the energy grows without any work."""
    robot = panda()
    _, text = one_divergence(robot, robot.neutral(), None, None, 20.0, integrator="semi_implicit_euler", every=10)
    assert "panda_finger_joint" in text and "JointStops()" in text and "0 to 0.04" in text
    q0 = robot.neutral()
    q0[3], q0[5] = -0.07, 0.0
    assert (
        said(
            robot,
            q0,
            None,
            None,
            20.0,
            disturbance=JointStops(),
            integrator="semi_implicit_euler",
            every=10,
        )[1]
        == []
    )


@pytest.mark.parametrize(
    ("torque", "options"),
    [
        (PD(np.zeros(6), -400.0, -40.0), {}),
        (Constant(np.full(6, 1e5)), {}),
        (Sampled(np.full((2001, 6), 1e6)), {}),
        (ls.simulation.Policy(lambda t, q, qd: 40.0 * qd), {}),
        (None, {"disturbance": Surface("link6", [0.0, 0.0, 3.0], stiffness=1e12)}),
    ],
)
def test_what_no_step_would_hold(torque: Any, options: dict[str, Any]):
    """Torques that drive a robot away are not called feedback that is too stiff, and a policy is not called again."""
    _, text = one_divergence(ls.robots.puma560(), np.full(6, 0.05), None, torque, 2.0, **options)
    assert "joint joint" in text and "too stiff" not in text


def test_a_run_that_ends_before_the_first_nan():
    """Speeds that no robot has are said, though they are numbers."""
    run, text = one_divergence(panda(), HOME + 0.01, None, PD(HOME, 400.0, 40.0), 0.004)
    assert run.finite and np.abs(run.qd).max() > 1e6 and f"joint {WORST}" in text


def test_singular_poses_after_a_divergence_are_not_said():
    """A slider along the axis of a roll joint: far out, the mass makes the roll joint look singular."""
    from linksweep.model.assembly import Part, assemble
    from linksweep.model.model import Inertial, Joint

    axis, turn = (1.0, 0.0, 0.0), ((0.1, 0.0, 0.0), (0.0, 0.1, 0.0), (0.0, 0.0, 0.1))
    parts = [
        Part("roll", "base", Joint("roll", "revolute", axis), Inertial()),
        Part("slide", "roll", Joint("slide", "prismatic", axis), Inertial(1.0, (0.0, 0.0, 0.0), turn)),
    ]
    robot = ls.Robot(assemble("slider", parts, base="base"))
    assert robot.can_be_singular and robot.singular([0.0, 1e8])[0]
    run, text = one_divergence(robot, [0.1, 1.0], None, PD([0.0, 0.0], 10.0, [10.0, 4000.0]), 1.0)
    assert np.nanmax(np.abs(run.q[:, 1])) > 1e8 and "joint slide" in text and "too stiff" in text
    _, caught = said(robot, [0.1, 1e8], None, PD([0.0, 0.0], 10.0, [10.0, 4000.0]), 1.0)  # singular from the start
    assert {each.category for each in caught} == {SimulationWarning, SingularWarning}


def test_without_warnings_is_of_one_thread():
    import threading

    other: list[warnings.WarningMessage] = []
    with without_warnings():
        assert said(panda(), HOME + 0.01, None, PD(HOME, 400.0, 40.0), 0.1)[1] == []

        def simulate() -> None:
            other.extend(said(panda(), HOME + 0.01, None, PD(HOME, 400.0, 40.0), 0.1)[1])

        thread = threading.Thread(target=simulate)
        thread.start()
        thread.join()
    assert [each.category for each in other] == [SimulationWarning]
