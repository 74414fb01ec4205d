"""Scaling laws without a clock: operations of a program, and predictions of them from the robot's structure."""

from __future__ import annotations

import importlib.metadata
import warnings
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import linksweep as ls
from linksweep.errors import ModelWarning
from linksweep.functions.defaults import OPERATIONS, WRITTEN_OUT, predicted_operations
from linksweep.tracing.count import count

LINEAR = (
    "inverse_dynamics",
    "bias_forces",
    "gravity_forces",
    "forward_dynamics",
    "momentum",
    "kinetic_energy",
    "poses",
)
BY_PAIRS = ("mass_matrix", "coriolis_matrix", "regressor", "packed_regressor")


def operations(robot: ls.Robot, function: str, rolled: bool) -> int:
    return count(robot.recipe(function, rolled=rolled).trace()).total


def beginning(chain: ls.Robot, n: int) -> ls.Robot:
    """Its first n links: other chains would fold other numbers by chance."""
    model = chain.model
    frames = tuple(frame for frame in model.frames if frame.link < n)
    order = tuple(i for i in model.document_order if i < n)
    return ls.Robot(replace(model, links=model.links[:n], frames=frames, document_order=order))


@pytest.mark.parametrize("function", LINEAR)
def test_operations_per_link_are_constant(function: str):
    """One chain and its beginnings, of 25, 50 and 75 links: as many for each further link."""
    chain = ls.robots.chain(75)
    few, some, many = (operations(beginning(chain, n), function, True) for n in (25, 50, 75))
    if function == "poses":  # a Block writes the frames out, whose zeros and ones fold: 12 operations of 1,231
        assert many - some == pytest.approx(some - few, rel=0.02)
    else:
        assert many - some == some - few > 0


@pytest.mark.parametrize("function", LINEAR[:4])
def test_written_out_too(function: str):
    chain, method = ls.robots.chain(24), "fd3" if function == "forward_dynamics" else None  # else one by length
    few, some, many = (
        count(beginning(chain, n).recipe(function, method=method, rolled=False).trace()).total for n in (8, 16, 24)
    )
    assert many - some == some - few > 0


@pytest.mark.parametrize("function", BY_PAIRS)
def test_operations_per_pair_are_constant(function: str):
    """a n + b n (n - 1) / 2 on one chain and its beginnings: second differences over equal steps of n are equal."""
    chain = ls.robots.chain(50)
    a, b, c, d = (operations(beginning(chain, n), function, True) for n in (20, 30, 40, 50))
    assert d - 2 * c + b == c - 2 * b + a > 0


@pytest.mark.cases(1)
@pytest.mark.parametrize("function", list(OPERATIONS))
def test_the_table_says_what_loops_run(function: str):
    """Two numbers for each function leave out what the first link saves, whose parent stands still: 6 % at 20 links."""
    per_link, per_pair = OPERATIONS[function]
    for n, near in ((20, 0.06), (40, 0.04)):
        found = operations(ls.robots.chain(n), function, True)
        assert per_link * n + per_pair * n * (n - 1) / 2 == pytest.approx(found, rel=near)


def talos(**options: Any) -> ls.Robot:
    files = importlib.metadata.files("example-robot-data") or []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ModelWarning)
        return ls.load(Path(str(next(f.locate() for f in files if str(f).endswith("talos_reduced.urdf")))), **options)


@pytest.mark.cases(1)
@pytest.mark.parametrize(
    "function", ["inverse_dynamics", "forward_dynamics", "mass_matrix", "coriolis_matrix", "packed_regressor"]
)
def test_predictions_of_a_real_robot(function: str):
    """Of a humanoid on a free base, within a factor of two; its matrices are written out, its regressor is loops
    where all its zeros are results too."""
    robot = talos(base="floating")
    found = operations(robot, function, False)
    assert found / 2 <= predicted_operations(robot.canonical, function, 0) <= 2 * found
    assert predicted_operations(robot.canonical, function, 0) < WRITTEN_OUT
    assert robot.recipe("regressor").trace().rolled and not robot.recipe(function).trace().rolled
