"""Arms whose geometry and inertia are arguments: equal to the robot with those numbers, counted as the papers do."""

from __future__ import annotations

import numpy as np
import pytest

import linksweep as ls

ARMS = [("RRRRRR", "any"), ("RPRRPR", "any"), ("RRRR", "right"), ("PRRPR", (0, 90, None, -90, 180))]


@pytest.fixture(params=ARMS, ids=lambda arm: f"{arm[0]} {arm[1]}")
def arm(request: pytest.FixtureRequest) -> ls.robots.GeneralArm:
    return ls.robots.general(*request.param)


@pytest.mark.parametrize(
    "function", ["inverse_dynamics", "forward_dynamics", "mass_matrix", "mass_matrix_inverse", "bias_forces"]
)
def test_equal_to_the_robot_with_those_numbers(arm: ls.robots.GeneralArm, function: str):
    rng = np.random.default_rng(5)
    gravity = (1.0, -2.0, -9.0)
    compiled = arm.compile(function)
    for _ in range(2):  # one program, two arms
        parameters = arm.random(rng)
        robot = arm.robot(parameters, gravity)
        args = [rng.normal(size=(7, arm.nv)) for _ in compiled.inputs[:-2]]
        expected = robot.compile(function)(*args)
        found = compiled(*args, parameters, gravity)
        assert np.abs(found - expected).max() <= 1e-11 * max(1.0, np.abs(expected).max())


@pytest.mark.parametrize("method", ["kane", "boundary_value", "newton_euler", "khalil_kleinfinger", "influence"])
def test_every_inverse_method(method: str):
    arm, rng = ls.robots.general("RRPR"), np.random.default_rng(6)
    parameters, (q, qd, qdd) = arm.random(rng), rng.normal(size=(3, 4))
    robot = arm.robot(parameters)
    found = arm.compile("inverse_dynamics", method=method)(q, qd, qdd, parameters, robot.gravity)
    assert np.allclose(found, robot.inverse_dynamics(q, qd, qdd), rtol=0, atol=1e-12)


@pytest.mark.parametrize(("function", "method"), [
    ("inverse_dynamics", "kane"), ("inverse_dynamics", "khalil_kleinfinger"), ("forward_dynamics", "filter_smoother"),
])  # fmt: skip
def test_a_recursion_costs_the_same_for_every_further_link(function: str, method: str):
    counts = [ls.robots.general("R" * n).operation_count(function, method) for n in range(4, 8)]
    for a, b, c in zip(counts, counts[1:], counts[2:], strict=False):
        assert (c.mul - b.mul, c.add - b.add, c.div - b.div) == (b.mul - a.mul, b.add - a.add, b.div - a.div)


def test_shared_and_varied_parameters_agree():
    arm, rng = ls.robots.general("RRR"), np.random.default_rng(7)
    many = np.stack([arm.random(rng) for _ in range(9)])
    q, qd, qdd = rng.normal(size=(3, 9, 3))
    compiled, gravity = arm.compile("inverse_dynamics"), (0.0, 0.0, -9.81)
    varied = compiled(q, qd, qdd, many, gravity)
    for k, parameters in enumerate(many):
        one = compiled(q[k], qd[k], qdd[k], parameters, gravity)
        shared = compiled(q, qd, qdd, parameters, gravity)[k]
        assert np.allclose(varied[k], one, rtol=0, atol=1e-13)
        assert np.allclose(varied[k], shared, rtol=0, atol=1e-13)


@pytest.mark.parametrize(("arguments", "sentence"), [
    (("RXR",), "joints is 'RXR', expected letters R and P"),
    (("",), "expected letters R and P"),
    ((6,), "joints is 6"),
    (("RR", "left"), "twist is 'left', expected 'any', 'right'"),
    (("RR", (0, 45)), "expected 'any', 'right'"),
    (("RR", (0,)), "2 entries"),
])  # fmt: skip
def test_bad_arms(arguments: tuple, sentence: str):
    with pytest.raises(ls.ArgumentError, match=sentence):
        ls.robots.general(*arguments)


def test_bad_parameters():
    arm = ls.robots.general("RR")
    with pytest.raises(ls.ArgumentError, match=r"shape \(2, 12\), expected finite numbers \(2, 13\)"):
        arm.robot(np.zeros((2, 12)))
    with pytest.raises(ls.ArgumentError, match="parameters"):
        arm.compile("inverse_dynamics")(np.zeros(2), np.zeros(2), np.zeros(2), np.zeros((2, 12)), np.zeros(3))


def test_parameter_names():
    assert ls.robots.general("RP").parameter_names[1][:3] == ("alpha2", "a2", "offset2")
