"""Constraints near singular configurations, with redundant and vacuous rows, against a solve to 50 digits.

Programs run in the interpreter; machine code of some is compared with it at the end.
"""

from __future__ import annotations

import functools
import warnings
from typing import Any

import numpy as np
import pytest
from closed_chain_cases import bennett, precise_solution, singular_case, singular_cases, singular_ratio, tied
from scale import at_scale

import linksweep as ls
from linksweep.errors import ArgumentError, SingularWarning
from linksweep.model.assembly import Part, assemble
from linksweep.model.model import Inertial, Joint, Placement

SAMPLE = [
    ("two arms, all rows twice", 1, 1e-5), ("stretched, a row of zeros", 2, 1e-6), ("stretched", 3, 1e-8),
    ("wrist, vacuous rows", 1, 1e-6), ("four-bar, hinge in space", 2, 1e-5), ("four-bar, hinge in space", 1, 1e-7),
    ("Bennett", 1, 1.0), ("Bennett", 2, 1e-6), ("Bennett", 3, 1e-8), ("point near an axis", 1, 1e-6),
]  # fmt: skip


@pytest.fixture(autouse=True)
def _interpreted(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("LINKSWEEP_BACKEND", "interpreter")


def warned(call: Any) -> tuple[Any, bool]:
    """What a call gives, and whether it warned of a singular configuration."""
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        result = call()
    return result, any(issubclass(one.category, SingularWarning) for one in found)


@functools.lru_cache(maxsize=4)
def made(family: str, seed: int, ratio: float) -> tuple[ls.Robot, np.ndarray, float]:
    robot, q = singular_case(family, seed, ratio)
    return robot, q, singular_ratio(robot.constraint_jacobian(q), 1e-11)


def check_accelerations(family: str, seed: int, wanted: float) -> None:
    """Right to 1e-9 down to a singular ratio of 1e-5, to 1e-6 at 1e-6; beyond, right or a warning."""
    robot, q, ratio = made(family, seed, wanted)
    rng, tree = np.random.default_rng(seed), robot.without_constraints()
    K = robot.constraint_jacobian(q)
    values, basis = np.linalg.svd(K)[1:]
    free = basis[int((values > 1e-11 * values[0]).sum()) :].T
    qd, tau = free @ rng.normal(size=free.shape[1]), 5.0 * rng.normal(size=robot.nv)
    M, force = tree.mass_matrix(q), tau - tree.bias_forces(q, qd)
    precise, _ = precise_solution(M, K, force, robot.constraint_bias(q, qd))
    (qdd, details), singular = warned(lambda: robot.forward_dynamics(q, qd, tau, details=True))
    size = max(np.abs(precise).max(), np.abs(np.linalg.solve(M, force)).max())
    off = np.abs(qdd - precise).max() / size
    regular = ratio > 0.9e-6 * (0.6 if "body" in family else 1.0)  # of a body, ratios are of its arms alone
    assert not (singular and regular)
    assert off <= (1e-9 if ratio > 0.9e-5 else 1e-6) or singular
    assert np.abs(details.residual).max() <= (1e-13 if regular else 1e-9) * (np.abs(K).max() * size)


def check_story(family: str, seed: int, wanted: float) -> None:
    """mobility, forward_dynamics, project and simulate agree on what can move."""
    robot, q, _ = made(family, seed, wanted)
    tree, rest, rng = robot.without_constraints(), np.zeros(robot.nv), np.random.default_rng(seed)
    found = robot.mobility(q)
    _, rank = precise_solution(tree.mass_matrix(q), robot.constraint_jacobian(q), rest, np.zeros(found.rows))
    held, singular = warned(lambda: robot.forward_dynamics(q, rest, tree.gravity_forces(q)))
    assert singular == found.singular
    assert found.rank == rank or found.singular
    if not found.singular:
        root = np.linalg.cholesky(tree.mass_matrix(q))
        moved = robot.forward_dynamics(q, rest, tree.gravity_forces(q) + np.eye(robot.nv)) - held
        parts = np.linalg.eigvalsh(root.T @ (0.5 * (moved + moved.T)) @ root)  # a projection: 0 and 1
        assert int((parts > 0.5).sum()) == found.degrees_of_freedom and np.abs(parts * (parts - 1.0)).max() < 1e-6
        assert robot.tangent_basis(q).shape == (robot.nv, found.degrees_of_freedom)
        for name, link in zip(robot.joint_names, robot.canonical.joints, strict=True):
            if name in found.fixed:
                assert np.abs(moved[:, link.rates]).max() < 1e-6 * np.abs(np.linalg.inv(tree.mass_matrix(q))).max()
    near = robot.project(robot.integrate(q, 1e-3 * rng.normal(size=robot.nv)))
    assert np.abs(robot.constraint_error(near)).max() <= 1e-10
    run, seen = warned(
        lambda: ls.simulate(robot, q, duration=2e-3, integrator="semi_implicit_euler")
    )  # fmt: skip
    assert seen or not singular
    assert run.constraint_drift < 1e-8
    if not found.degrees_of_freedom and not found.singular:
        assert np.abs(run.q - run.q[0]).max() < 1e-8


@pytest.fixture
def interpreted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("linksweep.support.settings.backend", "interpreter")


@pytest.mark.parametrize(("family", "seed", "ratio"), SAMPLE)
def test_accelerations_are_as_precise_as_the_configuration_allows(family: str, seed: int, ratio: float):
    check_accelerations(family, seed, ratio)


# Steps through the 540 cases that meet all families, seeds and ratios; in the interpreter, since each is called once.
@pytest.mark.slow
@pytest.mark.parametrize(("family", "seed", "ratio"), at_scale(singular_cases()[1::7], singular_cases()))
def test_accelerations_of_many_mechanisms(family: str, seed: int, ratio: float, interpreted: None):
    check_accelerations(family, seed, ratio)


@pytest.mark.parametrize(("family", "seed", "ratio"), SAMPLE[1::2])
def test_mobility_dynamics_projection_and_simulation_agree(family: str, seed: int, ratio: float):
    check_story(family, seed, ratio)


@pytest.mark.slow
@pytest.mark.parametrize(("family", "seed", "ratio"), at_scale(singular_cases()[::23], singular_cases()))
def test_the_same_of_many_mechanisms(family: str, seed: int, ratio: float, interpreted: None):
    check_story(family, seed, ratio)


def test_rows_that_joints_satisfy_change_nothing():
    """A point constraint between neighbouring links of a PUMA, at 20 configurations."""
    arm, rng = ls.robots.puma560(), np.random.default_rng(0)
    tied_arm = tied(arm, np.zeros(6), [("point", "link2", "link1"), ("point", "link5", "link4")])
    q, qd, tau = rng.uniform(-2.0, 2.0, (20, 6)), rng.normal(size=(20, 6)), rng.normal(size=(20, 6))
    (qdd, details), singular = warned(lambda: tied_arm.forward_dynamics(q, qd, tau, details=True))
    free = arm.forward_dynamics(q, qd, tau)
    assert not singular and not details.rank.any()
    np.testing.assert_allclose(qdd, free, rtol=0, atol=1e-12 * np.abs(free).max())
    assert np.abs(details.multipliers).max() < 1e-4


@pytest.mark.parametrize("kind", ["rigid", "point", "hinge", "slider"])
def test_rows_of_zeros(kind: str):
    """A planar arm in its plane: what a constraint asks across it, no joint changes."""
    arm, q = ls.robots.planar(3), np.array([0.4, 0.5, -0.3])
    robot, plain = (tied(arm, q, [(one, "tool", "")]) for one in (kind, "line"))
    freedoms = {"rigid": 0, "slider": 0}.get(kind, 1)
    assert robot.mobility(q).degrees_of_freedom == freedoms
    qdd = robot.forward_dynamics(q, np.zeros(3), np.ones(3))
    wanted = plain.forward_dynamics(q, np.zeros(3), np.ones(3)) if freedoms else np.zeros(3)
    np.testing.assert_allclose(qdd, wanted, atol=1e-11)


def parallelogram(off: float) -> ls.Robot:
    """Three parallel posts under one bar, redundant but for the length of the third, which is `off` too long."""
    rod = Inertial(1.0, (0.5, 0.0, 0.0), ((0.0, 0.0, 0.0), (0.0, 1 / 12, 0.0), (0.0, 0.0, 1 / 12)))
    parts, ties = [], []
    for k, x in enumerate((0.0, 0.7, 1.6)):
        at = Placement(position=(x, 0.0, 0.0))
        parts.append(Part(f"post{k}", "ground", Joint(f"post{k}", placement=at), rod))
        top = Placement(position=(1.0 + off * (k == 2), 0.0, 0.0))
        parts.append(Part(f"top{k}", f"post{k}", Joint(f"top{k}", "fixed", placement=top)))
    parts.append(Part("bar", "top0", Joint("bar"), rod))
    for k, x in ((1, 0.7), (2, 1.6)):
        mount = Joint(f"mount{k}", "fixed", placement=Placement(position=(x, 0.0, 0.0)))
        parts.append(Part(f"end{k}", "bar", mount))
        ties.append(ls.Constraint("line", f"end{k}", f"top{k}"))
    return ls.Robot(assemble("parallelogram", parts, base="ground", gravity=(0.0, -9.81, 0.0))).with_constraints(ties)


@pytest.mark.slow
def test_constraints_that_are_redundant_but_for_the_rounding_of_a_file():
    exact, rounded = parallelogram(0.0), parallelogram(1e-8)
    q = np.where(np.array(exact.joint_names) == "bar", -1.1, 1.1)
    assert exact.mobility(q).degrees_of_freedom == 1 and exact.mobility(q).rank == 3
    with pytest.raises(ArgumentError):
        rounded.project(q)
    near = rounded.project(q, tolerance=1e-7)
    assert 1e-10 < np.abs(rounded.constraint_error(near)).max() < 1e-8
    assert rounded.mobility(near).degrees_of_freedom == 1 and not rounded.mobility(near).singular
    qdd, singular = warned(lambda: rounded.forward_dynamics(near, np.zeros(4), np.zeros(4)))
    wanted = exact.forward_dynamics(q, np.zeros(4), np.zeros(4))
    assert not singular and np.abs(qdd - wanted).max() < 1e-6 * np.abs(wanted).max()
    run, same = (ls.simulate(robot, at, duration=0.01) for robot, at in ((rounded, near), (exact, q)))
    assert np.abs(run.q[-1] - same.q[-1]).max() < 1e-6 and run.constraint_drift < 1e-7


@pytest.mark.slow
def test_an_overconstrained_linkage_moves():
    """Bennett's: its rows are dependent only where it is closed, which stages of a step are not."""
    robot, pose = bennett(1)
    robot = robot.with_gravity((0.0, 0.0, -9.81))
    assert robot.mobility(pose(1.0)).degrees_of_freedom == 1
    start = robot.project(pose(1.0) + np.array([0.01, -0.02, 0.015]))
    assert np.abs(robot.constraint_error(start)).max() < 1e-14
    run = ls.simulate(robot, start, duration=0.05, dt=1e-3)
    assert run.constraint_drift < 1e-12 and run.energy_drift < 1e-9
    np.testing.assert_allclose(run.q[:, 2], -run.q[:, 0], atol=1e-10)
    assert np.abs(run.qd[-1]).max() > 0.02


@pytest.mark.slow
def test_derivatives_of_an_overconstrained_linkage():
    robot, pose = bennett(2)
    tau, h = np.array([0.3, -0.2, 0.5]), 1e-4

    def velocity(angle: float) -> np.ndarray:
        found = robot.project_velocity(pose(angle), np.ones(3))
        return found / found[0]

    def at(angle: float) -> np.ndarray:
        return robot.forward_dynamics(pose(angle), velocity(angle), tau)

    q, qd = pose(0.8), velocity(0.8)
    by_q, by_qd, by_tau = robot.forward_dynamics_derivatives(q, qd, tau)
    along = (at(0.8 + h) - at(0.8 - h)) / (2 * h)
    bend = (velocity(0.8 + h) - velocity(0.8 - h)) / (2 * h)
    np.testing.assert_allclose(by_q @ qd + by_qd @ bend, along, atol=1e-6 * np.abs(along).max())
    moved = robot.forward_dynamics(q, qd, tau + np.eye(3)) - robot.forward_dynamics(q, qd, tau)
    np.testing.assert_allclose(by_tau.T, moved, atol=1e-9)
    weights = np.array([1.0, 2.0, 3.0])
    back = robot.compile(("vjp", "forward_dynamics", "q"))(q, qd, tau, weights)
    np.testing.assert_allclose(back, weights @ by_q, atol=1e-6 * np.abs(by_q).max())


def test_warnings_name_mechanism_and_sample():
    robot = ls.robots.four_bars(1)
    upright = np.where([name.startswith("coupler") for name in robot.joint_names], -np.pi / 2, np.pi / 2)
    q = np.stack([upright, upright, np.zeros(3)])
    with pytest.warns(SingularWarning, match=r"1-four-bar.*sample 2"):
        robot.forward_dynamics(q, np.zeros(3), np.zeros(3))
    for call in (
        lambda: robot.project_velocity(q, np.ones(3)),
        lambda: robot.forward_dynamics_derivatives(q, np.zeros(3), np.zeros(3)),
        lambda: robot.constraint_forces(q, np.zeros(3), np.zeros(3)),
        lambda: ls.simulate(robot, np.zeros(3), duration=1e-3),
    ):
        assert warned(call)[1]
    out = np.empty((2, 3))
    assert robot.forward_dynamics(q[:2], np.zeros(3), np.zeros(3), out=out) is out
    np.testing.assert_array_equal(out, robot.forward_dynamics(q[:2], np.zeros(3), np.zeros(3)))


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_machine_code_of_redundant_rows(dtype: str):
    robot, pose = bennett(3)
    q = np.stack([pose(angle) for angle in (0.3, 0.7, 1.1, 1.9, 2.5)])
    tau = np.random.default_rng(0).normal(size=(5, 3))
    rest = np.zeros(3)
    reference = robot.compile("forward_dynamics", backend="interpreter")(q, rest, tau)
    function = robot.compile("forward_dynamics", backend="llvm", dtype=dtype)
    found = function(*(x.astype(dtype) for x in (q, rest, tau)))
    tolerance = {"float64": 1e-11, "float32": 1e-3}[dtype]
    np.testing.assert_allclose(found, reference, rtol=0, atol=tolerance * np.abs(reference).max())
