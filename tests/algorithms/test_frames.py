"""Poses and Jacobians of any frame and point, in every reference, and their derivatives in time."""

from __future__ import annotations

import numpy as np
import pytest
from robots_for_tests import GRAVITY, robot_of

import linksweep as ls
from linksweep.errors import ArgumentError

ROBOT = robot_of(["free", "spherical", "revolute", "planar", "prismatic"], [-1, 0, 1, 0, 3], GRAVITY)
FRAME = "body4"
POINT = np.array([0.1, -0.2, 0.3])
REFERENCES = ["world_aligned", "local", "world"]


def state(seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    return ROBOT.random(rng), rng.uniform(-1, 1, ROBOT.nv)


def slope(function, q: np.ndarray, v: np.ndarray, step: float = 1e-5) -> np.ndarray:
    return (function(ROBOT.integrate(q, v, step)) - function(ROBOT.integrate(q, v, -step))) / (2 * step)


@pytest.mark.quick
@pytest.mark.parametrize("point", [None, POINT])
def test_jacobian_is_the_velocity_of_the_pose(point: np.ndarray | None):
    q, v = state()
    p = np.zeros(3) if point is None else point
    T = ROBOT.pose(q, FRAME)
    rate = slope(lambda q: ROBOT.pose(q, FRAME), q, v)
    spin = rate[:3, :3] @ T[:3, :3].T
    angular, linear = np.array([spin[2, 1], spin[0, 2], spin[1, 0]]), rate[:3] @ np.append(p, 1.0)
    aligned = ROBOT.jacobian(q, FRAME, point=point) @ v
    np.testing.assert_allclose(aligned, np.concatenate([angular, linear]), atol=1e-8)
    local = ROBOT.jacobian(q, FRAME, reference="local", point=point) @ v
    np.testing.assert_allclose(local, np.concatenate([T[:3, :3].T @ angular, T[:3, :3].T @ linear]), atol=1e-8)
    world = ROBOT.jacobian(q, FRAME, reference="world", point=point) @ v
    at = (T @ np.append(p, 1.0))[:3]
    np.testing.assert_allclose(world, np.concatenate([angular, linear - np.cross(angular, at)]), atol=1e-8)


@pytest.mark.quick
@pytest.mark.parametrize("reference", REFERENCES)
@pytest.mark.parametrize("point", [None, POINT])
def test_derivative_is_the_slope_of_the_jacobian(reference: str, point: np.ndarray | None):
    q, v = state(1)
    expected = slope(lambda q: ROBOT.jacobian(q, FRAME, reference=reference, point=point), q, v)
    found = ROBOT.jacobian_derivative(q, v, FRAME, reference=reference, point=point)
    np.testing.assert_allclose(found, expected, atol=1e-8)


@pytest.mark.cases(1)
@pytest.mark.parametrize("rolled", [False, True])
@pytest.mark.parametrize("backend", ["llvm", "interpreter"])
@pytest.mark.slow
def test_all_frames_from_one_program(rolled: bool, backend: str):
    q, v = state(2)
    functions = ["poses", *(("jacobians", reference) for reference in REFERENCES)]
    poses, *jacobians = ROBOT.compile(functions, rolled=rolled, backend=backend)(q)
    for k, frame in enumerate(ROBOT.frame_names):
        np.testing.assert_allclose(poses[k], ROBOT.pose(q, frame), atol=1e-14)
        for found, reference in zip(jacobians, REFERENCES, strict=True):
            np.testing.assert_allclose(found[k], ROBOT.jacobian(q, frame, reference=reference), atol=1e-14)
    derivative = ROBOT.compile(("jacobian_derivative", FRAME, "local"), rolled=rolled, backend=backend)(q, v)
    np.testing.assert_allclose(derivative, ROBOT.jacobian_derivative(q, v, FRAME, reference="local"), atol=1e-13)
    np.testing.assert_allclose(ROBOT.poses(q), poses, atol=1e-14)
    np.testing.assert_allclose(ROBOT.jacobians(q), jacobians[0], atol=1e-14)


def test_batches_of_points_broadcast():
    q, _ = state()
    points = np.random.default_rng(0).normal(size=(5, 3))
    found = ROBOT.jacobian(q, FRAME, point=points)
    assert found.shape == (5, 6, ROBOT.nv)
    np.testing.assert_allclose(found[3], ROBOT.jacobian(q, FRAME, point=points[3]), atol=1e-14)


def test_frames_of_the_base_do_not_move():
    q, v = state()
    assert not ROBOT.jacobian(q, "base").any() and not ROBOT.jacobian_derivative(q, v, "base").any()


def test_mistakes_are_named():
    robot = ls.robots.planar(2)
    tool = robot.frame_names[-1]
    with pytest.raises(ArgumentError, match=r"cannot be expressed in 'body'.*world_aligned, local, world"):
        robot.jacobian(np.zeros(2), tool, reference="body")
    with pytest.raises(ArgumentError, match="pose takes nothing besides its frame, got 'local'"):
        robot.compile(("pose", tool, "local"))
    with pytest.raises(ArgumentError, match="takes no frame"):
        robot.compile(("center_of_mass", tool))
    with pytest.raises(ArgumentError, match="point"):
        robot.jacobian(np.zeros(2), tool, point=np.zeros(2))
