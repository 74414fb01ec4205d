"""A simulated step is written out, or has its dynamics as loops, by the operations predicted of both: no clock."""

from __future__ import annotations

import importlib.metadata
import warnings

import numpy as np
import pytest

import linksweep as ls
from linksweep.functions.compiled import CompiledFunction, compiled
from linksweep.functions.defaults import predicted_operations
from linksweep.simulation import fixed_step
from linksweep.simulation.controllers import Constant
from linksweep.simulation.dynamics import forward_dynamics_of
from linksweep.simulation.fixed_step import is_unrolled


def example(name: str) -> ls.Robot:
    files = importlib.metadata.files("example-robot-data") or []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return ls.load(next(str(file.locate()) for file in files if str(file).endswith(f"/{name}")))


@pytest.mark.parametrize("name", ["ur5_robot.urdf", "panda.urdf", "anymal.urdf", "talos_reduced.urdf"])
def test_robots_whose_geometry_folds_are_written_out(name: str):
    model = example(name).canonical
    whole, left = (predicted_operations(model, "forward_dynamics", 0, loops=loops) for loops in (True, False))
    assert left < 0.5 * whole and is_unrolled(model, "rk4")


@pytest.mark.parametrize(("links", "expected"), [(6, True), (9, True), (12, False), (30, False), (61, False)])
def test_chains_of_general_geometry_are_loops_from_a_dozen_links_on(links: int, expected: bool):
    """As benchmarks/steps.py measured both: nothing folds, and loops keep to the cache."""
    model = ls.robots.chain(links).canonical
    assert predicted_operations(model, "forward_dynamics", 0) >= 0.7 * 443 * links
    assert is_unrolled(model, "rk4") == expected


def test_the_choice_is_what_is_compiled(monkeypatch: pytest.MonkeyPatch):
    made = []

    def watched(robot: ls.Robot, step: fixed_step.TimeStep, **options: object) -> CompiledFunction:
        made.append(step.loops)
        return compiled(step, "float64", 1, "interpreter")

    monkeypatch.setattr(ls.Robot, "compile", watched)
    for links in (6, 12):
        robot = ls.robots.chain(links)
        law = Constant(np.zeros(robot.nv))
        forward_dynamics = forward_dynamics_of(robot, None, False)
        fixed_step.Step(robot, law, "rk4", forward_dynamics).kernel("float64", "llvm")
    assert made == [False, True]
