"""Spatial vectors, inertias and transforms against dense 3x3 and 6x6 matrices."""

# Arguments that are wrong on purpose, or numbers over any scalar:
# pyright: reportArgumentType=false, reportCallIssue=false
from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from linksweep.spatial.algebra import (
    ZERO_ARTICULATED,
    ZERO_COMPLIANCE,
    ZERO_FORCE,
    ZERO_INERTIA,
    ZERO_MOTION,
    ArticulatedInertia,
    Compliance,
    Force,
    Inertia,
    Mat,
    Motion,
    Sym,
    Transform,
    Vec,
    add_records,
    centripetal,
    leaves,
    map_leaves,
    rebuild,
    skew,
)
from linksweep.spatial.transforms import Pose, Screw, Shift
from linksweep.tracing.expression import Graph
from linksweep.tracing.program import Array, block_program

pytestmark = pytest.mark.quick

RNG = np.random.default_rng(1)
TOLERANCE = 1e-14  # a handful of products of numbers of order one


def vec() -> Vec:
    return Vec(*RNG.normal(size=3).tolist())


def sym() -> Sym:
    return Sym(*RNG.normal(size=6).tolist())


def mat() -> Mat:
    return Mat(vec(), vec(), vec())


def inertia() -> Inertia:
    return Inertia(float(RNG.uniform(0.5, 2)), vec(), sym())


def articulated() -> ArticulatedInertia:
    return ArticulatedInertia(sym(), mat(), sym())


def compliance() -> Compliance:
    return Compliance(sym(), mat(), sym())


def dense(x: Any) -> np.ndarray:
    """Any spatial quantity as a vector or matrix of NumPy."""
    if isinstance(x, Vec):
        return np.array(list(x))
    if isinstance(x, Sym):
        return np.array([[x.xx, x.xy, x.xz], [x.xy, x.yy, x.yz], [x.xz, x.yz, x.zz]])
    if isinstance(x, Mat):
        return np.array([list(x.x), list(x.y), list(x.z)])
    if isinstance(x, (Motion, Force)):
        return np.array(leaves(x))
    if isinstance(x, Inertia):
        h = cross_matrix(dense(x.mp))
        return np.block([[dense(x.I), h], [h.T, x.mass * np.eye(3)]])
    if isinstance(x, Compliance):
        return np.block([[dense(x.A), dense(x.Y).T], [dense(x.Y), dense(x.C)]])
    assert isinstance(x, ArticulatedInertia)
    return np.block([[dense(x.J), dense(x.Y)], [dense(x.Y).T, dense(x.rho)]])


def cross_matrix(v: np.ndarray) -> np.ndarray:
    x, y, z = v
    return np.array([[0, -z, y], [z, 0, -x], [-y, x, 0]])


def placed(R: np.ndarray, p: np.ndarray) -> np.ndarray:
    """The 6x6 matrix that takes a motion of the parent to a frame at R, p."""
    return np.block([[R.T, np.zeros((3, 3))], [-R.T @ cross_matrix(p), R.T]])


def same(got: Any, expected: Any, tolerance: float = TOLERANCE) -> bool:
    got = got if isinstance(got, (np.ndarray, float)) else dense(got)
    return bool(np.allclose(got, expected, rtol=tolerance, atol=20 * tolerance))


# ---- 3-vectors and 3x3 matrices ------------------------------------------------------------------------------


def test_vectors():
    a, b, s = vec(), vec(), 1.7
    A, B = dense(a), dense(b)
    assert same(a + b, A + B) and same(a - b, A - B) and same(-a, -A) and same(a * s, A * s) and same(a / s, A / s)
    assert same(a.cross(b), np.cross(A, B)) and same(a.dot(b), A @ B)
    assert same(centripetal(a, b), np.cross(A, np.cross(A, B)))
    assert same(skew(a) @ b, np.cross(A, B)) and same(skew(a), cross_matrix(A))
    assert list(a) == leaves(a)


def test_matrices():
    s, t, m, k, v, a, b = sym(), sym(), mat(), mat(), vec(), vec(), vec()
    assert same(s + t, dense(s) + dense(t)) and same(s @ v, dense(s) @ dense(v))
    assert same(m + k, dense(m) + dense(k)) and same(m @ v, dense(m) @ dense(v))
    assert same(m.transpose_times(v), dense(m).T @ dense(v)) and same(m.T, dense(m).T)
    assert same(m.minus_outer(a, b), dense(m) - np.outer(dense(a), dense(b)))
    assert same(s.minus_outer(a, a * 2.0), dense(s) - 2 * np.outer(dense(a), dense(a)))
    assert same(Mat(*s.rows()), dense(s))


# ---- motions, forces, inertias -------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [Motion, Force])
def test_spatial_vectors_add_and_scale(kind: type):
    a, b = kind(vec(), vec()), kind(vec(), vec())
    A, B = dense(a), dense(b)
    assert same(a + b, A + B) and same(a - b, A - B) and same(-a, -A) and same(a * 1.7, 1.7 * A)
    assert all(isinstance(x, kind) for x in (a + b, a - b, -a, a * 1.7))


def test_power_is_the_dot_product():
    f, v = Force(vec(), vec()), Motion(vec(), vec())
    assert same(f.dot(v), dense(f) @ dense(v)) and same(f / 1.7, dense(f) / 1.7)


@pytest.mark.parametrize("make", [inertia, articulated])
def test_an_inertia_takes_a_motion_to_a_force(make: Any):
    a, b, v = make(), make(), Motion(vec(), vec())
    assert isinstance(a @ v, Force)
    assert same(a @ v, dense(a) @ dense(v)) and same(a + b, dense(a) + dense(b))


def test_a_rigid_inertia_is_an_articulated_one():
    a = inertia()
    assert same(a.articulated(), dense(a))


def test_minus_outer_of_an_articulated_inertia():
    a, f = articulated(), Force(vec(), vec())
    assert same(a.minus_outer(f * 0.3, f), dense(a) - 0.3 * np.outer(dense(f), dense(f)))


def test_a_compliance_takes_a_force_to_a_motion():
    c, f, v = compliance(), Force(vec(), vec()), Motion(vec(), vec())
    assert isinstance(c @ f, Motion) and same(c @ f, dense(c) @ dense(f))
    assert same(c.minus_outer(v * 0.3, v), dense(c) - 0.3 * np.outer(dense(v), dense(v)))
    with pytest.raises(AttributeError):
        _ = c @ v  # pyright: ignore[reportOperatorIssue]


def test_zeros_are_zero():
    for zero in (ZERO_MOTION, ZERO_FORCE, ZERO_INERTIA, ZERO_ARTICULATED, ZERO_COMPLIANCE):
        assert not np.any(dense(zero))


@pytest.mark.parametrize("make", [inertia, articulated])
def test_an_inertia_does_not_take_a_force(make: Any):
    with pytest.raises(TypeError):
        _ = make() @ Force(vec(), vec())


def test_motions_and_forces_do_not_mix():
    f: Any = Force(vec(), vec())  # the type checker knows this too, and must not stop the test
    v: Any = Motion(vec(), vec())
    for mix in (lambda: f + v, lambda: v + f, lambda: f - v, lambda: v - f, lambda: f.dot(f)):
        with pytest.raises(AttributeError):
            mix()
    assert not hasattr(v, "dot")


# ---- transforms ----------------------------------------------------------------------------------------------

QUARTERS = [(1.0, 0.0), (0.0, 1.0), (-1.0, 0.0), (0.0, -1.0)]
ANGLES = [*QUARTERS, *((float(np.cos(x)), float(np.sin(x))) for x in (0.3, -2.1, 3.0))]
SCREWS = [Screw(axis, c, s, t) for axis in range(3) for c, s in ANGLES for t in (0.0, -0.4)]
SHIFTS = [Shift(Vec(0.3, -0.2, 0.5)), Shift(Vec(0.0, 0.0, 0.0)), Shift(Vec(0.0, 0.7, 0.0))]
PRODUCTS = [
    (SHIFTS[0], SCREWS[9], SCREWS[39]),
    (Screw(0, 0.0, 1.0, 0.2), Screw(2, *ANGLES[4], -0.1)),
    (Screw(2, *ANGLES[5], 0.3), Screw(0, *ANGLES[6], 0.2), Screw(2, *ANGLES[4], 0.1)),
    (),
]
TRANSFORMS = [Transform((factor,)) for factor in (*SCREWS, *SHIFTS)] + [Transform(factors) for factors in PRODUCTS]


def matrices(transform: Transform) -> tuple[np.ndarray, np.ndarray]:
    """R and p of the link in its parent, by multiplying 4x4 matrices of the factors."""
    T = np.eye(4)
    for factor in transform.factors:
        F = np.eye(4)
        if isinstance(factor, Shift):
            F[:3, 3] = dense(factor.p)
        else:
            assert isinstance(factor, Screw)
            i, j, k = (factor.axis + 1) % 3, (factor.axis + 2) % 3, factor.axis
            F[i, i] = F[j, j] = factor.c
            F[i, j], F[j, i], F[k, 3] = -factor.s, factor.s, factor.t
        T = T @ F
    return T[:3, :3], T[:3, 3]


@pytest.mark.cases(1000)
@pytest.mark.parametrize("transform", TRANSFORMS, ids=lambda t: f"{len(t.factors)}")
def test_transforms(transform: Transform):
    R, p = matrices(transform)
    X = placed(R, p)
    v, f, m, u, a = Motion(vec(), vec()), Force(vec(), vec()), inertia(), vec(), articulated()
    assert same(transform.to_link(v), X @ dense(v))
    assert same(transform.to_parent(f), X.T @ dense(f))
    assert same(transform.to_parent(m), X.T @ dense(m) @ X, 1e-13)
    assert same(transform.to_parent(a), X.T @ dense(a) @ X, 1e-13)
    assert isinstance(transform.to_parent(m), Inertia)
    c = compliance()
    assert same(transform.to_link(c), X @ dense(c) @ X.T, 1e-13)
    assert same(transform.turn(u), R @ dense(u)) and same(transform.turn_back(u), R.T @ dense(u))
    assert same(transform.point(u), R @ dense(u) + p) and same(transform.origin(), p)


@pytest.mark.cases(1000)
@pytest.mark.parametrize("transform", TRANSFORMS, ids=lambda t: f"{len(t.factors)}")
def test_poses_are_carried_through(transform: Transform):
    R, p = matrices(PRODUCT)
    x, y, z, origin = (Vec(*row) for row in [*R.T.tolist(), p.tolist()])
    pose = Pose(x, y, z, origin).through(transform)
    r, s = matrices(transform)
    u = vec()
    assert same(np.column_stack([dense(pose.x), dense(pose.y), dense(pose.z)]), R @ r)
    assert same(pose.p, R @ s + p) and same(pose.turn(u), R @ r @ dense(u))
    assert same(pose.point(u), R @ (r @ dense(u) + s) + p)


PRODUCT = Transform(PRODUCTS[2])


def test_power_does_not_depend_on_the_frame():
    v, f = Motion(vec(), vec()), Force(vec(), vec())
    assert same(PRODUCT.to_parent(f).dot(v), f.dot(PRODUCT.to_link(v)), 1e-13)


@pytest.mark.parametrize("axis", range(3))
@pytest.mark.parametrize("pair", QUARTERS)
def test_quarter_turns_cost_nothing(axis: int, pair: tuple[float, float]):
    graph = Graph()

    def traced(template: Any, source: int) -> Any:
        values = [graph.leaf("input", (source, i)) for i in range(len(leaves(template)))]
        return rebuild(template, values)

    screw = Screw(axis, *pair, 0.0)
    turned = [screw.to_link(traced(ZERO_MOTION, 0)), screw.to_parent(traced(ZERO_ARTICULATED, 1))]
    inputs = (Array("v", (6,)), Array("P", (21,)))
    program = block_program("turn", inputs, [(Array("out", (27,)), leaves(turned))]).verify()
    assert {node.op for body in program.bodies() for node in body.nodes} <= {"input", "neg"}


# ---- records -------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class Record:
    a: Any
    b: Any
    nothing: Any = None


def test_leaves_come_in_the_order_of_the_fields():
    record = Record(Vec(1.0, 2.0, 3.0), (4.0, [5.0, Vec(6.0, 7.0, 8.0)], ()))
    assert leaves(record) == [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0]


def test_rebuild_is_the_inverse_of_leaves():
    record = Record(Motion(vec(), vec()), (inertia(), [articulated()], ()))
    again = rebuild(record, leaves(record))
    assert again == record and again is not record
    assert isinstance(again.b, tuple) and isinstance(again.b[1], list) and again.nothing is None
    doubled = rebuild(record, [2 * x for x in leaves(record)])
    assert doubled == map_leaves(lambda x: 2 * x, record) and leaves(doubled) == [2 * x for x in leaves(record)]


def test_records_add_leaf_by_leaf():
    a, b = Record(vec(), (1.0, vec())), Record(vec(), (2.0, vec()))
    assert leaves(add_records(a, b)) == [x + y for x, y in zip(leaves(a), leaves(b), strict=True)]
    assert add_records((), ()) == ()
