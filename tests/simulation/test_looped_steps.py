"""Simulation steps of large robots: dynamics as loops over the links inside one compiled step."""

# pyright: reportArgumentType=false
from __future__ import annotations

import numpy as np
import pin_models
import pytest

import linksweep as ls
from linksweep.functions.defaults import predicted_operations
from linksweep.simulation import fixed_step
from linksweep.simulation.dynamics import forward_dynamics_of
from linksweep.simulation.fixed_step import LOOPED_UP_TO, STEP_UNROLLED, traced_loops
from linksweep.simulation.integrators import RK4
from linksweep.tracing.program import Block

pytestmark = pytest.mark.filterwarnings("ignore:simulate. .* is deprecated:DeprecationWarning")  # options by name


@pytest.fixture
def in_loops(monkeypatch: pytest.MonkeyPatch):
    fixed_step._unrolled_or_looped.cache_clear()
    monkeypatch.setattr(fixed_step, "STEP_UNROLLED", 0)
    yield
    fixed_step._unrolled_or_looped.cache_clear()


def rolled_out(robot: ls.Robot, q0: np.ndarray, qd0: np.ndarray, **options: object) -> np.ndarray:
    run = ls.simulate(robot, q0, qd0, duration=0.03, dt=0.01, **options)
    return np.concatenate([run.q, run.qd, run.qdd, run.tau], axis=-1)


@pytest.mark.cases(1)
@pytest.mark.parametrize("backend", ["llvm", "interpreter"])
@pytest.mark.parametrize("integrator", ["rk4", "semi_implicit_euler"])
def test_loops_are_the_step_written_out(backend: str, integrator: str, request: pytest.FixtureRequest):
    """Every kind of joint, friction and damping, in a tree."""
    robot = pin_models.random_robot(("free", "revolute", "spherical", "prismatic", "revolute"), tree=True, seed=2)
    rng = np.random.default_rng(0)
    q0, qd0 = np.stack([robot.random(rng) for _ in range(3)]), rng.normal(size=(3, robot.nv))
    options = {"backend": backend, "integrator": integrator, "dissipation": True}
    expected = rolled_out(robot, q0, qd0, **options)
    request.getfixturevalue("in_loops")
    assert np.allclose(rolled_out(robot, q0, qd0, **options), expected, rtol=0, atol=1e-11 * np.abs(expected).max())


def test_one_program_whose_loops_stand_once(in_loops: None):
    """The loops of all stages are the same, so that machine code holds them once."""
    robot = ls.robots.chain(9)
    kernel = ls.stepper(robot, 0.01).kernel
    assert not isinstance(kernel, fixed_step.ColumnKernel)
    steps = traced_loops(fixed_step.replace(_recipe(robot), loops=True)).steps
    loops = [step for step in steps if not isinstance(step, Block)]
    once = len(loops) // 4
    assert once and all(loops[k * once : (k + 1) * once] == loops[:once] for k in range(4))


def _recipe(robot: ls.Robot) -> fixed_step.TimeStep:
    return fixed_step.TimeStep(forward_dynamics_of(robot, None, False))


def test_where_the_bounds_are():
    chain = ls.robots.chain(60).canonical
    assert RK4.stages * predicted_operations(chain, "forward_dynamics", 0) > STEP_UNROLLED
    assert LOOPED_UP_TO >= 61
