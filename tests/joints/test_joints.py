"""Joints: their motion, their bias terms by differentiating velocities, and the small matrices of their freedoms."""

# Arguments that are wrong on purpose, or numbers over any scalar:
# pyright: reportArgumentType=false, reportCallIssue=false
from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from robots_for_tests import at_rest, close, robot, samples
from scipy.spatial.transform import Rotation

from linksweep.algorithms.forward.filter_smoother import filter_smoother
from linksweep.algorithms.inverse.newton_euler import newton_euler
from linksweep.joints import KINDS
from linksweep.joints.multi_dof import Free, Planar, Spherical
from linksweep.joints.screws import Helical, Prismatic, Revolute
from linksweep.mechanism.bias import joint_bias_acceleration, local_bias_acceleration
from linksweep.mechanism.joints import Coordinates, JointInertia, Span, updated_inertia
from linksweep.mechanism.sweeps import Unrolled
from linksweep.spatial.algebra import (
    ZERO_FORCE,
    ZERO_VEC,
    ArticulatedInertia,
    Force,
    Mat,
    Motion,
    Sym,
    Transform,
    Vec,
    leaves,
)

pytestmark = pytest.mark.quick

RNG = np.random.default_rng(2)
STEP = 1e-30  # of the complex step: no difference is taken, so it can be this small


def vec() -> Vec:
    return Vec(*RNG.normal(size=3).tolist())


def motion() -> Motion:
    return Motion(vec(), vec())


def dense(x: Any) -> Any:
    return np.array(leaves(x))


# ---- motion --------------------------------------------------------------------------------------------------


TURN, PITCH = (np.cos(0.3), np.sin(0.3)), 0.35


def moved(kind: Any, q: Any, quarters: int = 0, slide: float = 0.2) -> Transform:
    return Transform(kind.motion(kind.kept(q, 0.1), quarters, TURN, slide, PITCH))


@pytest.mark.parametrize("quarters", range(4))
def test_a_revolute_joint_turns_about_z(quarters: int):
    x = 0.7 + 0.1 + quarters * np.pi / 2
    R = np.array([[np.cos(x), -np.sin(x), 0], [np.sin(x), np.cos(x), 0], [0, 0, 1]])
    v = vec()
    found = moved(Revolute, [0.7], quarters, slide=-0.3).point(v)
    assert np.allclose(np.array([*found]), R @ list(v) + [0, 0, -0.3], rtol=0, atol=1e-15)


def test_a_prismatic_joint_slides_along_z():
    R = np.array([[TURN[0], -TURN[1], 0], [TURN[1], TURN[0], 0], [0, 0, 1]])
    v = vec()
    found = moved(Prismatic, [0.7], slide=-0.3).point(v)
    assert np.allclose(np.array([*found]), R @ list(v) + [0, 0, 0.7 - 0.3], rtol=0, atol=1e-15)


def test_a_helical_joint_climbs_as_it_turns():
    found, turned = moved(Helical, [0.7]).point(Vec(0.0, 0.0, 0.0)), moved(Revolute, [0.7]).point(Vec(0.0, 0.0, 0.0))
    assert np.allclose(np.array([*(found - turned)]), [0, 0, 0.7 * PITCH], rtol=0, atol=1e-15)


@pytest.mark.parametrize("length", [1.0, 0.01, 30.0])
def test_a_quaternion_of_any_length_turns_like_scipy(length: float):
    q = Rotation.random(rng=RNG).as_quat()
    v = vec()
    spherical = moved(Spherical, list(q * length)).point(v)
    free = moved(Free, [*(q * length), 1.0, 2.0, 3.0]).point(v)
    assert np.allclose(np.array([*spherical]), Rotation.from_quat(q).apply(list(v)), rtol=0, atol=1e-14)
    assert np.allclose(
        np.array([*free]), Rotation.from_quat(q).apply(list(v)) + np.array([1, 2, 3]), rtol=0, atol=1e-14
    )


def at_rest_and_rate(kind: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Coordinates, rates, and the coordinates' own rates dq/dt = Omega(q) v, written out by hand."""
    v = RNG.normal(size=kind.nv)
    if kind in (Spherical, Free):
        quaternion = Rotation.random(rng=RNG).as_quat()
        x, y, z, w = quaternion
        omega = 0.5 * np.array([[w, -z, y], [z, w, -x], [-y, x, w], [-x, -y, -z]])  # (b.3)
        if kind is Spherical:
            return quaternion, v, omega @ v[:3]
        position = RNG.normal(size=3)
        linear = Rotation.from_quat(quaternion).apply(v[3:])
        return np.concatenate([quaternion, position]), v, np.concatenate([omega @ v[:3], linear])
    if kind is Planar:
        q = RNG.normal(size=3)
        c, s = np.cos(q[0]), np.sin(q[0])
        return q, v, np.array([v[0], c * v[1] - s * v[2], s * v[1] + c * v[2]])
    return RNG.normal(size=kind.nq), v, v


def view(kind: Any, q: Any) -> Any:
    """A link on such a joint, as far as a bias looks at it."""
    kept = kind.kept(list(q), 0.0)
    rate = lambda qd: Span(kind.column_rates(kept, qd))  # noqa: E731
    return SimpleNamespace(joint=kind, H_T=Span(kind.columns(kept, PITCH)), H_T_rate=rate)


@pytest.mark.cases(1000)
@pytest.mark.parametrize("kind", KINDS.values())
def test_the_subspace_is_the_rate_of_the_motion(kind: Any):
    """H^T v is what the link does at the rates v, here by a complex step of where it puts a point."""
    q, v, dq = at_rest_and_rate(kind)
    point = vec()
    rate = Vec(*(np.imag(np.array([*moved(kind, list(q + 1j * STEP * dq)).point(point)])) / STEP))
    own = Span(kind.columns(kind.kept(list(q), 0.0), PITCH)) @ v
    expected = np.cross(dense(own.angular), list(point)) + dense(own.linear)
    assert np.allclose(np.array([*moved(kind, list(q)).turn_back(rate)]), expected, rtol=0, atol=1e-13)


@pytest.mark.cases(1000)
@pytest.mark.parametrize("kind", KINDS.values())
def test_bias_is_the_rate_of_the_carried_velocity(kind: Any):
    """n(k) = d/dt (phi^T V) in the link's own frame, where the parent's V stays: Kozlowski (3.7), (3.7')."""
    q, v, dq = at_rest_and_rate(kind)
    V = motion()
    link: Any = view(kind, q)
    n = local_bias_acceleration(link, moved(kind, list(q)).to_link(V), Coordinates(v))
    later = list(q + 1j * STEP * dq)
    own = Span(kind.columns(kind.kept(later, 0.0), PITCH)) @ v  # where H moves it counts too
    expected = dense(moved(kind, later).to_link(V) + own).imag / STEP
    assert np.allclose(dense(n), expected, rtol=0, atol=1e-13)


@pytest.mark.cases(1000)
@pytest.mark.parametrize("kind", KINDS.values())
def test_the_two_biases_differ_by_the_frame_of_the_derivative(kind: Any):
    """alpha = lambda + [0; w x v] on both sides of the joint, hence the classical bias from the local one."""
    q, v, _ = at_rest_and_rate(kind)
    V_plus = motion()
    link: Any = view(kind, q)
    V = V_plus + link.H_T @ v
    local = local_bias_acceleration(link, V_plus, Coordinates(v))
    classical = joint_bias_acceleration(link, V_plus, Coordinates(v))
    crossed = V.angular.cross(V.linear) - V_plus.angular.cross(V_plus.linear)
    assert np.allclose(dense(classical.angular), dense(local.angular), rtol=0, atol=1e-14)
    assert np.allclose(dense(classical.linear), dense(local.linear + crossed), rtol=0, atol=1e-13)


@pytest.mark.parametrize("name", ["mixed5", "mixed8", "tree9", "chain7", "stanford"])
def test_accelerations_are_the_rates_of_the_velocities(name: str):
    """Both algorithms' accelerations against a complex step in time through the velocities alone."""
    bot = robot(name)
    q, qd, qdd = samples(bot, seed=5)

    def sweep_at(time: complex) -> tuple[Unrolled, Any]:
        sweep = Unrolled(bot.canonical, (q + qd * time + qdd * time**2 / 2).tolist())
        return sweep, newton_euler(
            sweep,
            sweep.split((qd + qdd * time).tolist()),
            sweep.split(qdd.tolist()),
            sweep.same(ZERO_FORCE),
            at_rest(ZERO_VEC),
        )

    sweep, now = sweep_at(0.0)
    _, later = sweep_at(1j * STEP)
    forward = filter_smoother(
        sweep, sweep.split(qd.tolist()), sweep.split(sweep.join(now.tau)), sweep.same(ZERO_FORCE), at_rest(ZERO_VEC)
    )
    for V, alpha, rate, costate in zip(now.V, now.alpha, later.V, forward.costate, strict=True):
        own = dense(rate).imag / STEP  # as seen in the link's frame: the costate of the filter and smoother
        w, v = np.split(dense(V).real, 2)
        assert close(dense(costate).real, own, 1e-9)  # forward dynamics multiplies rounding by cond(M)
        inertial = own + np.concatenate([np.zeros(3), np.cross(w, v)])  # as seen from the base
        assert close(dense(alpha).real, inertial, 1e-12)


# ---- coordinates and spans -----------------------------------------------------------------------------------


def test_coordinates_add_entry_by_entry():
    a, b = Coordinates((1.0, 2.0)), Coordinates((0.5, 4.0))
    assert a + b == (1.5, 6.0) and a - b == (0.5, -2.0) and a * 2.0 == (2.0, 4.0)
    assert all(isinstance(x, Coordinates) for x in (a + b, a - b, a * 2.0))
    with pytest.raises(ValueError):
        _ = a + Coordinates((1.0,))


def articulated(matrix: np.ndarray) -> ArticulatedInertia:
    def sym(m: np.ndarray) -> Sym:
        return Sym(*(float(m[i, j]) for i, j in ((0, 0), (1, 1), (2, 2), (0, 1), (0, 2), (1, 2))))

    return ArticulatedInertia(
        sym(matrix[:3, :3]), Mat(*(Vec(*row) for row in matrix[:3, 3:].tolist())), sym(matrix[3:, 3:])
    )


def symmetric(a: ArticulatedInertia) -> np.ndarray:
    """The 6x6 matrix, column by column through its products."""
    columns = [a @ Motion(Vec(*e[:3]), Vec(*e[3:])) for e in np.eye(6).tolist()]
    return np.column_stack([dense(column) for column in columns])


@pytest.mark.parametrize("freedoms", range(1, 7))
@pytest.mark.parametrize("armature", [0.0, 0.3])
def test_joints_of_several_freedoms(freedoms: int, armature: float):
    """D = H P H^T + R, its L D L^T, the gain and the update, for joints of 1 to 6 freedoms."""
    root = RNG.normal(size=(6, 6))
    P = root @ root.T + np.eye(6)
    H_T = RNG.normal(size=(6, freedoms))
    a = articulated(P)
    assert np.allclose(symmetric(a), P, rtol=0, atol=1e-14)
    h_t = Span([Motion(Vec(*column[:3]), Vec(*column[3:])) for column in H_T.T.tolist()])
    p_h_t = a @ h_t
    assert isinstance(p_h_t, Span) and all(isinstance(column, Force) for column in p_h_t.columns)
    D = H_T.T @ P @ H_T + armature * np.eye(freedoms)
    inertia = JointInertia(h_t, p_h_t, armature)
    scale = 1e-14 * np.linalg.cond(D) * np.abs(D).max()
    assert np.allclose(np.array(inertia.rows), D, rtol=1e-13, atol=1e-13)
    b, v = RNG.normal(size=freedoms), motion()
    assert np.allclose(np.array(inertia.solve(Coordinates(b.tolist()))), np.linalg.solve(D, b), rtol=0, atol=scale)
    assert np.allclose(dense(h_t @ b.tolist()), H_T @ b, rtol=0, atol=1e-14)
    gain = p_h_t.over(inertia)
    G = P @ H_T @ np.linalg.inv(D)
    assert np.allclose(np.column_stack([dense(c) for c in gain.columns]), G, rtol=0, atol=scale)
    assert np.allclose(np.array(gain.transpose_times(v)), G.T @ dense(v), rtol=0, atol=scale)
    f = Force(vec(), vec())
    assert np.allclose(np.array(h_t.transpose_times(f)), H_T.T @ dense(f), rtol=0, atol=1e-14)
    for form in ("43", "50", "51"):
        updated = symmetric(updated_inertia(form, a, h_t, p_h_t, gain, armature))
        assert np.allclose(updated, P - G @ D @ G.T, rtol=0, atol=10 * scale), form
        if armature == 0.0:  # a free joint carries no inertia along its freedoms: H P+ = 0
            assert np.allclose(H_T.T @ updated, 0, rtol=0, atol=10 * scale), form
    again = JointInertia.of(inertia.block)
    assert again.rows == inertia.rows


def test_kinds_agree_with_their_columns():
    for kind in KINDS.values():
        assert kind.nv == len(kind.columns(kind.kept([0.5] * kind.nq, 0.0), 0.5))
