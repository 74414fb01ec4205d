"""Lines and arcs of a frame: ends, geometry, twists and accelerations against differences, bad input."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pinocchio as pin
import pytest
from scipy.spatial.transform import Rotation, Slerp

from linksweep import ArgumentError
from linksweep.motion import Arc, Cycloid, Line, NormalSpline, Path, Quintic, Trapezoid
from linksweep.motion.cartesian import checked_poses, rotation_of, rotation_vector


def pose(seed: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    matrix = np.eye(4)
    matrix[:3, :3] = Rotation.random(rng=rng).as_matrix()
    matrix[:3, 3] = rng.normal(size=3)
    return matrix


START, END, VIA = pose(1), pose(2), np.array([0.3, -0.4, 0.8])
PATHS: dict[str, Callable[[], Path]] = {
    "line": lambda: Line(START, END, 2.0),
    "line by a normal spline": lambda: Line(START, END, NormalSpline([[0.0], [1.0]], [1.0, 3.0])),
    "line without turning": lambda: Line(START, np.block([[START[:3, :3], END[:3, 3:]], [START[3:]]]), 1.0),
    "arc": lambda: Arc(START, VIA, END, Cycloid([0.0], [0.5], np.pi)),
    "circle": lambda: Arc.around(START, [0.1, 0.2, 0.3], [1.0, 2.0, -1.0], 2.0 * np.pi, 3.0),
}


@pytest.fixture(params=PATHS)
def path(request: pytest.FixtureRequest) -> Path:
    return PATHS[request.param]()


@pytest.mark.quick
def test_twist_and_acceleration_are_the_derivatives(path: Path):
    t, step = np.linspace(path.start, path.end, 61)[1:-1] + 1e-3 * np.pi, 1e-4
    t = t[t < path.end - 2 * step]
    at, near = path(t), path(t[:, None] + step * np.array([-2.0, -1.0, 1.0, 2.0]))
    weights = np.array([1.0, -8.0, 8.0, -1.0]) / (12.0 * step)

    def slope(value: np.ndarray) -> np.ndarray:
        return np.einsum("tk...,k->t...", value, weights)

    # differences of order 4 over 1e-4: rounding of 1e-16 over 1e-4, times a few
    scale = np.abs(at.twist).max()
    np.testing.assert_allclose(slope(near.pose[..., :3, 3]), at.twist[:, 3:], rtol=0, atol=1e-10 * scale)
    turning = slope(near.pose[..., :3, :3]) @ np.swapaxes(at.pose[:, :3, :3], 1, 2)  # the matrix of omega
    spin = np.array([[matrix[2, 1], matrix[0, 2], matrix[1, 0]] for matrix in turning])
    np.testing.assert_allclose(spin, at.twist[:, :3], rtol=0, atol=1e-10 * scale)
    scale = np.abs(at.acceleration).max()
    if not isinstance(path.time_scaling, NormalSpline):  # its acceleration has corners: checked below
        np.testing.assert_allclose(slope(near.twist), at.acceleration, rtol=0, atol=1e-9 * scale)


def test_starts_and_ends_where_it_should(path: Path):
    motion = path([path.start, path.end, path.start - 1.0, path.end + 1.0])
    np.testing.assert_allclose(motion.pose[0], START, atol=1e-15)
    np.testing.assert_array_equal(motion.pose[2:], motion.pose[:2])
    np.testing.assert_allclose(motion.twist, 0.0, atol=1e-13)
    assert path.duration == path.end - path.start
    goal = {Line: END, Arc: START if getattr(path, "angle", 0) == 2.0 * np.pi else END}[type(path)].copy()
    if np.allclose(motion.pose[1, :3, :3], START[:3, :3]):
        goal[:3, :3] = START[:3, :3]
    np.testing.assert_allclose(motion.pose[1], goal, atol=1e-14)


def test_any_shape_of_times(path: Path):
    t = np.random.default_rng(2).uniform(path.start, path.end, (2, 3))
    motion = path(t)
    assert motion.pose.shape == (2, 3, 4, 4) and motion.twist.shape == motion.acceleration.shape == (2, 3, 6)
    np.testing.assert_allclose(motion.pose[1, 2], path(t[1, 2]).pose, atol=1e-15)
    checked_poses("test", "pose", motion.pose)  # rotations stay rotations


@pytest.mark.quick
def test_line_is_straight_and_turns_like_slerp():
    path = Line(START, END, Trapezoid([[0.0], [1.0]], 0.7, 2.0))
    t = np.linspace(0.0, path.end, 40)
    s, motion = path.time_scaling(t).q, path(t)
    np.testing.assert_allclose(motion.pose[:, :3, 3], START[:3, 3] + s * (END[:3, 3] - START[:3, 3]), atol=1e-15)
    between = Slerp([0.0, 1.0], Rotation.from_matrix([START[:3, :3], END[:3, :3]]))
    np.testing.assert_allclose(motion.pose[:, :3, :3], between(s[:, 0]).as_matrix(), atol=1e-14)


def test_line_of_the_six_axis_arm():
    """Angeles, Ma & Rojas 7.2: x = 1.33, z = 1.80, y = s(t), the orientation constant, over one second."""
    start, end = np.eye(4), np.eye(4)
    start[:3, 3], end[:3, 3] = (1.33, 0.0, 1.80), (1.33, 1.0, 1.80)
    motion = Line(start, end, NormalSpline([[0.0], [1.0]], [0.0, 1.0]))([0.0, 1 / 3, 0.5, 2 / 3, 1.0])
    np.testing.assert_allclose(motion.pose[:, 1, 3], [0.0, 1 / 6, 0.5, 5 / 6, 1.0], atol=1e-15)
    np.testing.assert_allclose(motion.twist[:, 4], [0.0, 1.5, 2.25, 1.5, 0.0], atol=1e-14)
    np.testing.assert_allclose(motion.acceleration[:, 4], [0.0, 9.0, 0.0, -9.0, 0.0], atol=1e-13)
    np.testing.assert_array_equal(motion.twist[:, [0, 1, 2, 3, 5]], 0.0)


@pytest.mark.parametrize("swap", [False, True])
def test_arc_passes_its_middle_on_a_circle(swap: bool):
    first, last = (END, START) if swap else (START, END)
    path = Arc(first, VIA, last, 1.0)
    places = path(np.linspace(0.0, 1.0, 20001)).pose[:, :3, 3]
    np.testing.assert_allclose(np.linalg.norm(places - path.center, axis=1), path.radius, rtol=1e-13)
    np.testing.assert_allclose((places - path.center) @ path.axis, 0.0, atol=1e-13)
    assert np.linalg.norm(places - VIA, axis=1).min() < 2.0 * path.radius * path.angle / 20000
    assert np.linalg.norm(VIA - path.center) == pytest.approx(path.radius, rel=1e-13)


def test_arc_around_an_axis_is_a_rigid_rotation():
    center, axis, angle = np.array([0.1, 0.2, 0.3]), np.array([0.0, 3.0, 4.0]), 1.3
    end = Arc.around(START, center, axis, angle, 1.0)(1.0).pose
    carried = pin.SE3(pin.exp3(angle * axis / 5.0), np.zeros(3))
    shift = pin.SE3(np.eye(3), center)
    np.testing.assert_allclose(end, (shift * carried * shift.inverse() * pin.SE3(START)).homogeneous, atol=1e-14)


@pytest.mark.quick
@pytest.mark.parametrize("angle", [0.0, 1e-13, 1e-8, 0.5, 3.0, 3.001, np.pi - 1e-9, np.pi])
def test_rotation_vectors(angle: float):
    axes = np.random.default_rng(0).normal(size=(50, 3))
    vectors = angle * axes / np.linalg.norm(axes, axis=1, keepdims=True)
    matrices = Rotation.from_rotvec(vectors).as_matrix()
    np.testing.assert_allclose(rotation_of(vectors), matrices, atol=2e-15)
    back = rotation_vector(matrices)
    np.testing.assert_allclose(np.linalg.norm(back, axis=1), angle, atol=5e-15)
    np.testing.assert_allclose(Rotation.from_rotvec(back).as_matrix(), matrices, atol=5e-15)


def reflected() -> np.ndarray:
    matrix = START.copy()
    matrix[:3, 0] *= -1.0
    return matrix


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: Line(np.eye(3), END, 1.0), r"Line got start of shape \(3, 3\), expected homogeneous matrices"),
        (lambda: Line([START, END], END, 1.0), r"start of shape \(2, 4, 4\), expected one pose"),
        (lambda: Line(START, np.full((4, 4), np.nan), 1.0), "end with NaN"),
        (lambda: Line(START, END.T, 1.0), "last row is not 0 0 0 1"),
        (lambda: Line(START, np.diag([1.0, 1.0, 1.1, 1.0]), 1.0), "not a rotation"),
        (lambda: Line(reflected(), END, 1.0), "or R is a reflection"),
        (lambda: Line(START, END, 0.0), "time_scaling 0.0, expected a one-coordinate trajectory or a duration above 0"),
        (lambda: Line(START, END, Quintic([[0.0, 0.0], [1.0, 1.0]], [0.0, 1.0])), "a time_scaling of 2 coordinates"),
        (lambda: Arc(START, VIA[:2], END, 1.0), r"via of shape \(2,\), expected \(3,\)"),
        (lambda: Arc(START, 0.5 * (START + END)[:3, 3], END, 1.0), "three points on one line"),
        (lambda: Arc(START, VIA, START, 1.0), "three points on one line"),
        (lambda: Arc.around(START, VIA, [0.0, 0.0, 0.0], 1.0, 1.0), "axis of length 0"),
        (lambda: Arc.around(START, VIA, [0.0, 0.0, 1.0], [1.0], 1.0), r"angle of shape \(1,\)"),  # pyright: ignore
        (lambda: Line(START, END, "fast"), "time_scaling of type"),  # pyright: ignore
    ],
)
def test_bad_input(make: Callable[[], Any], says: str):
    with pytest.raises(ArgumentError, match=says) as caught:
        make()
    assert "\n" not in str(caught.value)


def test_a_rounded_rotation_becomes_exact():
    rounded = START.copy()
    rounded[:3, :3] = np.round(START[:3, :3], 7)
    exact = checked_poses("test", "pose", rounded)
    np.testing.assert_allclose(exact[:3, :3] @ exact[:3, :3].T, np.eye(3), atol=1e-15)
    np.testing.assert_allclose(exact, START, atol=2e-7)


def test_the_former_name_of_time_scaling():
    with pytest.warns(DeprecationWarning, match="time_scaling"):
        path = Line(np.eye(4), np.eye(4), law=2.0)
    with pytest.warns(DeprecationWarning, match="time_scaling"):
        assert path.law is path.time_scaling and path.duration == 2.0
