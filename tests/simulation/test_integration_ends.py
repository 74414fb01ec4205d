"""Every integration ends: steps have a budget, and a run that ends early or chatters says so."""

from __future__ import annotations

import subprocess
import sys
import warnings
from dataclasses import replace

import numpy as np
import pytest

import linksweep as ls
from linksweep.errors import ArgumentError
from linksweep.model.assembly import Part, assemble
from linksweep.model.model import Inertial, Joint
from linksweep.simulation import PD, SimulationWarning
from linksweep.simulation import friction as resting
from linksweep.simulation.checks import MOST_STEPS

BODY = Inertial(1.0, (0.2, 0.0, 0.0), ((0.01, 0.0, 0.0), (0.0, 0.01, 0.0), (0.0, 0.0, 0.01)))
LOAD = 9.81 * 0.2  # N m, of the arm held out


def arm(friction: float = 6 * LOAD, damping: float = 0.0) -> ls.Robot:
    joint = Joint("hinge", "revolute", (0.0, 1.0, 0.0), friction=friction, damping=damping)
    return ls.Robot(assemble("arm", [Part("link", "base", joint, BODY)], base="base"))


@pytest.fixture
def not_held(monkeypatch: pytest.MonkeyPatch) -> None:
    """As on robots of so many rates that friction does not hold them."""
    monkeypatch.setattr(resting, "MAX_VELOCITIES", 0)


@pytest.mark.slow
def test_adaptive_steps_under_friction_at_rest_end():
    """In a process of its own: without a budget it never ends."""
    code = (
        "import sys, warnings; sys.path[:0] = ['tests']\n"
        "from test_integration_ends import *\n"
        "warnings.simplefilter('ignore'); resting.MAX_VELOCITIES = 0\n"
        "run = ls.simulate(arm(), [0.0], [1.0], None, 1.0, dt=0.01, dissipation=True, integrator='adaptive',"
        " max_steps=300)\n"
        "print(run.ended_early)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0 and "300 steps from t = 0 s reached only" in done.stdout, done


@pytest.mark.usefixtures("not_held")
def test_what_a_run_that_ends_early_leaves():
    """It is right up to there: the arm slows down by friction, and rests after 0.005 s."""
    bot = arm()
    with pytest.warns(SimulationWarning, match="the simulation of arm ended early: 200 steps from t = 0.005 s") as said:
        run = ls.simulate(
            bot, [0.0], [1.0], None, 0.1, dt=1e-3, dissipation=True,
            integrator=ls.simulation.Adaptive(max_steps=200, events=[lambda t, q, qd: qd[0] - 0.5]),
        )  # fmt: skip
    assert len(said) == 1 and said[0].filename == __file__
    assert len(run.t) == 101 and not run.finite and np.isfinite(run.q[:5]).all() and np.isnan(run.q[6:]).all()
    assert run.settings.get("failure") == run.ended_early and run.settings.get("max_steps") == 200
    slowing = (6 * LOAD - LOAD) / (0.01 + 0.04)
    assert run.qd[3, 0] == pytest.approx(1.0 - slowing * 0.003, rel=1e-3)
    assert len(run.events) == 1 and run.events[0].t == pytest.approx(0.5 / slowing, rel=1e-3)
    assert run.dense is not None and run.dense(0.002)[1].shape == (1,)
    with pytest.raises(ArgumentError, match="expected 0 to 0"):
        run.dense(0.09)


def test_events_and_limits_still_end_a_run():
    def level(t: float, q: np.ndarray, qd: np.ndarray) -> float:
        return q[0] - 0.5

    level.terminal = True  # type: ignore[attr-defined]
    run = ls.simulate(arm(0.0), [0.0], None, None, 1.0, dt=0.1, integrator=ls.simulation.Adaptive(events=[level]))
    assert run.ended_early == "" and run.q[-1, 0] == pytest.approx(0.5, abs=1e-9) and len(run.events) == 1
    assert len(run.events[0].t) == 1 and run.t[-1] == run.events[0].t[0]


def test_few_records_have_the_budget_that_they_need():
    """A long swing recorded at its end takes hundreds of steps for one record, and more are refused."""
    swing = arm(0.0)
    run = ls.simulate(swing, [0.0], None, None, 20.0, dt=20.0, integrator="adaptive")
    assert run.ended_early == "" and run.finite
    with pytest.warns(SimulationWarning, match="ended early: 50 steps from t = 0 s"):
        short = ls.simulate(
            swing,
            [0.0],
            None,
            None,
            20.0,
            dt=20.0,
            integrator=ls.simulation.Adaptive(max_steps=50),
        )
    assert np.isfinite(short.q[0]).all() and np.isnan(short.q[1]).all()
    with pytest.raises(ArgumentError, match="max_steps is 0, expected an integer of at least 1"):
        ls.simulate(swing, [0.0], None, None, 1.0, integrator=ls.simulation.Adaptive(max_steps=0))


def test_fixed_steps_have_a_budget_too():
    with pytest.raises(ArgumentError, match=r"takes 1e\+10 steps of dt=1e-06, expected at most 1,000,000,000"):
        ls.simulate(arm(), [0.0], None, None, 1e4, dt=1e-6, every=10**6)
    assert MOST_STEPS == 10**9


@pytest.mark.usefixtures("not_held")
@pytest.mark.parametrize("integrator", ["rk4", "semi_implicit_euler"])
@pytest.mark.parametrize("every", [1, 7])
@pytest.mark.parametrize("speed", [0.0, 1.0])
def test_a_joint_that_chatters_about_rest_is_named(integrator: str, every: int, speed: float):
    """Friction six times the load holds a real arm: here it creeps by hundredths of a radian, and that is said."""
    bot = arm()
    with pytest.warns(SimulationWarning, match=r"joint hinge of arm chatters about rest from t = 0\.?\d* s on") as said:
        run = ls.simulate(bot, [0.0], [speed], None, 0.7, dt=1e-3, dissipation=True, integrator=integrator, every=every)
    assert len(said) == 1 and abs(run.q[-1, 0]) > 1e-3
    with pytest.warns(SimulationWarning, match=r"of rollout 1 on"):
        ls.simulate(
            bot,
            [[0.0], [0.0]],
            [[100.0], [0.0]],
            None,
            0.7,
            dt=1e-3,
            dissipation=True,
            integrator=integrator,
            every=every,
        )  # the first is still on its way


@pytest.mark.usefixtures("not_held")
def test_without_holding_friction_it_creeps():
    """docs/simulation.md quotes the number under "Friction at rest"."""
    with pytest.warns(SimulationWarning, match="chatters about rest"):
        run = ls.simulate(arm(), [0.0], None, None, 1.0, dt=1e-3, dissipation=True)
    assert run.q[-1, 0] == pytest.approx(0.04, abs=0.005)


def test_a_joint_that_only_turns_round_does_not_chatter():
    """Swings with friction, a slow motion that a controller drives, damping alone: no warning (they are errors)."""
    for friction, damping in ((0.2, 0.0), (0.2, 0.5), (0.0, 5.0)):
        ls.simulate(arm(friction, damping), [0.0], None, None, 1.5, dt=1e-3, dissipation=True)
    held = PD([0.4], kp=400.0, kd=40.0)
    ls.simulate(arm(0.0, 1.0), [0.0], None, held, 1.0, dt=1e-3, dissipation=True)
    ls.simulate(arm(0.0), [np.pi / 2], None, None, 0.5, dt=1e-3, dissipation=True)  # at rest, and nothing moves it
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        still = replace(arm().model, gravity=(0.0, 0.0, 0.0))
        ls.simulate(ls.Robot(still), [0.0], None, None, 0.5, dt=1e-3, dissipation=True)
