"""What is computed once and given to everybody cannot be changed by one of them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import linksweep as ls
from linksweep import motion, simulation


def objects() -> dict[str, Any]:
    """Everything public that holds arrays for later. What a call returns belongs to its caller, and is not here."""
    robot = ls.robots.puma560()
    points, times = np.array([[0.0] * 6, [1.0] * 6, [0.5] * 6]), [0.0, 1.0, 3.0]
    start, end = np.eye(4), np.eye(4)
    end[:3, 3] = (1.0, 1.0, 0.0)
    return {
        "robot": robot,
        "compiled function": robot.compile("inverse_dynamics"),
        "base parameters": robot.base_parameters(),
        "numeric base parameters": robot.base_parameters("numeric"),
        "operators": ls.operators(robot, np.zeros(6)),
        "Quintic": motion.Quintic(points, times),
        "NormalSpline": motion.NormalSpline(points, times),
        "CubicSpline": motion.CubicSpline(points, times),
        "QuinticSpline": motion.QuinticSpline(points, times),
        "Trapezoid": motion.Trapezoid(points, 1.0, 2.0),
        "Cycloid": motion.Cycloid(points[0], points[1], 1.0),
        "Line": motion.Line(start, end, 1.0),
        "Arc": motion.Arc(start, [1.0, 0.0, 0.0], end, 1.0),
        "Arc.around": motion.Arc.around(start, [1.0, 0.0, 0.0], [0.0, 0.0, 2.0], 1.0, 1.0),
    }


def shared_arrays(thing: Any) -> list[str]:
    """Public attributes that give the same writable memory twice."""
    found = []
    for name in dir(thing):
        if name.startswith("_"):
            continue
        first, second = getattr(thing, name, None), getattr(thing, name, None)
        if isinstance(first, np.ndarray) and np.shares_memory(first, second) and first.flags.writeable:
            found.append(name)
    return found


@pytest.mark.slow
@pytest.mark.cases(1)
@pytest.mark.filterwarnings("ignore:.*is deprecated:DeprecationWarning")  # former names are attributes, too
@pytest.mark.parametrize("name", objects())
def test_shared_arrays_are_read_only(name: str):
    assert not shared_arrays(objects()[name])


def test_energies_are_read_only():
    run = ls.simulate(ls.robots.planar(2), np.zeros((3, 2)), duration=0.01)
    owned = {"t", "q", "qd", "qdd", "tau"}  # the result itself
    assert set(shared_arrays(run)) <= owned
    before = run.energy.copy()
    with pytest.raises(ValueError, match="read-only"):
        run.kinetic_energy[:] = 0.0
    with pytest.raises(ValueError, match="read-only"):
        run.potential_energy.fill(1.0)
    assert np.array_equal(run.energy, before)


def test_parameters_are_read_only():
    robot = ls.robots.puma560()
    before = robot.standard_parameters.copy()
    with pytest.raises(ValueError, match="read-only"):
        robot.standard_parameters[0] = 1.0
    assert np.array_equal(robot.standard_parameters, before)
    assert not any(places.flags.writeable for places in robot.regressor_places)


def test_arguments_are_not_kept():
    """An array that is changed after it was given changes nothing."""
    robot, q = ls.robots.puma560(), np.zeros(6)
    operators = ls.operators(robot, q)
    q += 1.0
    assert not operators.q.any()
    tau, times = np.zeros((3, 6)), np.arange(3.0)
    law = simulation.Sampled(tau, times)
    tau += 1.0
    times += 1.0
    assert not law.tau.any() and law.times is not None and law.times[0] == 0.0


@pytest.mark.parametrize(
    "signal", [np.zeros((11, 2)), np.zeros((5, 3)), np.zeros((0, 3))], ids=["narrow", "short", "empty"]
)
def test_a_law_with_wrong_signals(signal: np.ndarray):
    """Somebody's own law: machine code would read beyond its arrays."""

    class Own(simulation.Controller):
        def inputs(self, robot: Any) -> dict[str, Any]:
            return {"tau": simulation.Signal(3, lambda t, grid: signal, held=True)}

        def formula(self, dynamics: Any, q: Any, qd: Any, inputs: Any) -> Any:
            return inputs["tau"]

    with pytest.raises(ls.ArgumentError, match="tau_at0 of shape"):
        ls.simulate(ls.robots.chain(3), np.zeros(3), None, Own(), 0.01, dt=0.001, integrator="semi_implicit_euler")
