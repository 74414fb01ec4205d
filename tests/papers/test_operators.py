"""The spatial operators: what they are, and that every identity of Rodriguez & Kreutz 1988, Part I, holds.

Blocks are written out here from positions, axes and inertias of the plain oracle, in the base's directions. Identities
are stated with operators, applied as sweeps, and compared as matrices.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest
from robots_for_tests import (
    Body,
    frame_pose,
    inverse_dynamics,
    kinematics,
    mass_matrix,
    nested,
    random_inertial,
    random_rotation,
    robot,
)
from scipy.sparse.linalg import LinearOperator, aslinearoperator, cg

import linksweep as ls
from linksweep.errors import ArgumentError, DescriptionError, ModelWarning, SingularError
from linksweep.model.assembly import Part, assemble
from linksweep.model.model import Inertial, Joint, Model, Placement
from linksweep.papers.spatial_operators import SpatialOperators
from linksweep.papers.spatial_operators.chain import TurnedChain
from linksweep.papers.spatial_operators.identities import IDENTITIES, block, diagonal

TOLERANCE = 1e-11
LENGTHS = range(1, 13)
OPERATORS = (
    "I", "I_N", "phi", "Phi", "psi", "Psi", "H", "M", "B", "E", "S", "P", "D", "D_inv", "R", "G", "L", "Delta_phi",
    "Delta_psi", "phi_tilde", "psi_tilde", "J", "mass", "factor", "factor_inverse", "mass_inverse",
)  # fmt: skip


# ---- chains ---------------------------------------------------------------------------------------------------


def with_armature(model: Model, seed: int) -> Model:
    random = np.random.default_rng(seed)
    links = tuple(replace(link, joint=replace(link.joint, armature=random.uniform(0.01, 0.5))) for link in model.links)
    return replace(model, links=links)


@functools.cache
def operators_of(n: int, kind: str) -> SpatialOperators:
    """Of a random chain at a random configuration, gravity in no special direction; kind: "R", "mixed", "armature"."""
    model = ls.robots.chain_model(n, seed=n, joints="R" if kind == "R" else "mixed").with_gravity((0.7, -1.3, -9.6))
    if kind == "armature":
        model = with_armature(model, n)
    tool = replace(model.frames[-1], placement=Placement(position=(0.1, -0.2, 0.3)))
    model = replace(model, frames=(*model.frames[:-1], tool))
    q = np.random.default_rng(1000 + n).uniform(-3.0, 3.0, n)
    return ls.operators(ls.Robot(model), q)


KINDS = ("R", "mixed", "armature")
PAPERS_KINDS = KINDS[:2]  # the paper has no armature


def dense(a: Any) -> np.ndarray:
    return a if isinstance(a, np.ndarray) else a.todense()


def assert_equal(left: Any, right: Any, *terms: Any, tolerance: float = TOLERANCE) -> None:
    """Equal relative to the largest entry of either side, or of a term that was added up."""
    left, right = dense(left), dense(right)
    assert left.shape == right.shape
    scale = max(float(np.abs(dense(x)).max()) for x in (left, right, *terms))
    assert float(np.abs(left - right).max()) <= tolerance * scale


# ---- what the operators are, from the oracle ---------------------------------------------------------------------


def cross(v: np.ndarray) -> np.ndarray:
    return np.cross(np.eye(3), v)


@functools.cache
def bodies_of(o: SpatialOperators) -> list[Body]:
    """bodies[k-1] is link k: tip to base."""
    return kinematics(o.robot.model, o.q)[::-1]


@functools.cache
def phi_of(o: SpatialOperators, i: int, j: int) -> np.ndarray:
    """(3.1): phi(i, j) from l(i, j) = O(j) - O(i); 0 is the tip, N+1 the base."""
    bodies = bodies_of(o)
    tip = frame_pose(o.robot.model, bodies[::-1], str(o.tip))[:3, 3]
    origins = [tip, *(body.p for body in bodies), np.zeros(3)]
    return np.block([[np.eye(3), cross(origins[j] - origins[i])], [np.zeros((3, 3)), np.eye(3)]])


def H_of(o: SpatialOperators) -> np.ndarray:
    """(2.16), (2.31), (3.5)."""
    out = np.zeros((o.N, 6 * o.N))
    for k, (body, link) in enumerate(zip(bodies_of(o), o.robot.model.links[::-1], strict=True)):
        first = 6 * k + (3 if link.joint.kind == "prismatic" else 0)
        out[k, first : first + 3] = body.axis
    return out


def M_of(o: SpatialOperators) -> np.ndarray:
    """(2.15), (3.6)."""
    blocks = []
    for body, link in zip(bodies_of(o), o.robot.model.links[::-1], strict=True):
        m, p = link.inertial.mass, body.c - body.p
        about_centre = body.R @ np.array(link.inertial.inertia) @ body.R.T
        about_origin = about_centre - m * cross(p) @ cross(p)
        blocks.append(np.block([[about_origin, m * cross(p)], [-m * cross(p), m * np.eye(3)]]))
    return diagonal(blocks)


def causal_of(step: Callable[[int], np.ndarray], n: int, strict: bool = False) -> np.ndarray:
    """(3.4), (5.1), or strict (4.9), (4.10): blocks as products of step(k) = phi(k+1, k)."""
    out = np.zeros((6 * n, 6 * n))
    for j in range(1, n + 1):
        at = np.eye(6)
        for k in range(j + strict, n + 1):
            block(out, k, j)[:] = at
            at = step(k) @ at
    return out


@functools.cache
def filter_of(o: SpatialOperators) -> dict[str, Any]:
    """(4.4)-(4.7) as written, on matrices."""
    M, H, R = M_of(o), H_of(o), np.diag([link.joint.armature for link in o.robot.model.links[::-1]])
    P, D, L, G, psi = [], [], np.zeros((6 * o.N, o.N)), np.zeros((6 * o.N, o.N)), []
    for k in range(1, o.N + 1):
        h = H[k - 1 : k, 6 * k - 6 : 6 * k]
        inner = block(M, k, k)
        if k > 1:
            before, carry = P[-1], phi_of(o, k, k - 1)
            h_before = H[k - 2 : k - 1, 6 * k - 12 : 6 * k - 6]
            inner = carry @ (before - before @ h_before.T @ h_before @ before / D[-1]) @ carry.T + inner  # (4.5)
        P.append(inner)
        D.append((h @ inner @ h.T).item() + R[k - 1, k - 1])  # (4.6)
        gain = inner @ h.T / D[-1]  # (5.12)
        carry = phi_of(o, k + 1, k)
        G[6 * k - 6 : 6 * k, k - 1 : k], L[6 * k - 6 : 6 * k, k - 1 : k] = gain, carry @ gain  # (4.6)
        psi.append(carry - carry @ gain @ h)  # (4.7)
    return {"P": diagonal(P), "D": np.diag(D), "D_inv": np.diag(1 / np.array(D)), "L": L, "G": G, "R": R, "psi": psi}


DEFINITIONS: dict[str, Callable[[SpatialOperators], np.ndarray]] = {
    "(3.4) phi": lambda o: np.block(
        [[phi_of(o, i, j) if i >= j else np.zeros((6, 6)) for j in range(1, o.N + 1)] for i in range(1, o.N + 1)]
    ),
    "(3.5) H": H_of,
    "(3.6) M": M_of,
    "(3.7) B": lambda o: np.vstack([phi_of(o, 1, 0), np.zeros((6 * o.N - 6, 6))]),
    "(3.8) E": lambda o: np.vstack([np.zeros((6 * o.N - 6, 6)), phi_of(o, o.N + 1, o.N).T]),
    "(4.6) D": lambda o: filter_of(o)["D"],
    "(4.6) L": lambda o: filter_of(o)["L"],
    "(4.5) P": lambda o: filter_of(o)["P"],
    "(4.9) Phi": lambda o: causal_of(lambda k: phi_of(o, k + 1, k), o.N, strict=True),
    "(4.10) Psi": lambda o: causal_of(lambda k: filter_of(o)["psi"][k - 1], o.N, strict=True),
    "(5.1) psi": lambda o: causal_of(lambda k: filter_of(o)["psi"][k - 1], o.N),
    "(5.2) S": lambda o: np.kron(np.eye(o.N, k=-1), np.eye(6)),
    "(5.12) G": lambda o: filter_of(o)["G"],
    "(a.4) Delta_phi": lambda o: diagonal([phi_of(o, k + 1, k) for k in range(1, o.N + 1)]),
    "(a.5) Delta_psi": lambda o: diagonal(filter_of(o)["psi"]),
    "D_inv": lambda o: filter_of(o)["D_inv"],
    "R": lambda o: filter_of(o)["R"],
    "I": lambda o: np.eye(6 * o.N),
    "I_N": lambda o: np.eye(o.N),
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("what", DEFINITIONS)
def test_definition(what: str, kind: str):
    for n in (1, 2, 3, 5, 8):
        o = operators_of(n, kind)
        assert_equal(getattr(o, what.split()[-1]), DEFINITIONS[what](o), np.ones(1))


# ---- Appendix A, Facts 4.1 and 4.2, Theorem 4.1, Identity 5.1 ------------------------------------------------------


def test_every_identity_is_listed():
    assert {f"(a.{i})" for i in range(1, 52)} <= set(IDENTITIES)


@pytest.mark.cases(1)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("identity", IDENTITIES)
def test_identity(identity: str, kind: str):
    for n in LENGTHS:
        for left, right, *terms in IDENTITIES[identity](operators_of(n, kind)):
            assert_equal(left, right, *terms)


@pytest.mark.parametrize("n", (2, 5))
def test_what_armature_changes(n: int):
    """(a.1), (a.47) and (3.20) as printed hold without armature only; all others hold as they are with it."""
    for kind in PAPERS_KINDS:
        o = operators_of(n, kind)
        assert not o.R.todense().any()
    o = operators_of(n, "armature")
    # without R both miss, and by far more than rounding: loose makes these two harder to pass
    assert not np.allclose(o.D.todense(), (o.H @ o.P @ o.H.T).todense(), rtol=1e-3)
    assert not np.allclose(o.mass.todense(), (o.H @ o.phi @ o.M @ o.phi.T @ o.H.T).todense(), rtol=1e-3)
    printed = o.P + o.psi_tilde @ o.P + o.P @ o.psi_tilde.T
    assert np.abs((o.psi @ o.M @ o.psi.T - printed).todense()).max() > 1e-3
    assert np.abs((o.H @ (o.I - o.G @ o.H) @ o.P).todense()).max() > 1e-3  # H P^+ is not 0


# ---- forward dynamics in operator form -----------------------------------------------------------------------------


@dataclass
class Motion:
    """A state with torques and a tip force, in the paper's order, and the acceleration the oracle finds."""

    rate: np.ndarray
    T: np.ndarray
    f0: np.ndarray
    a: np.ndarray
    b: np.ndarray
    expected: np.ndarray

    @classmethod
    def of(cls, o: SpatialOperators) -> Motion:
        random = np.random.default_rng(o.N)
        rate, T = random.uniform(-2, 2, (2, o.N))
        f0 = random.uniform(-2, 2, 6)
        model, bodies = o.robot.model, kinematics(o.robot.model, o.q)
        turn = frame_pose(model, bodies, str(o.tip))[:3, :3]
        on_robot = -np.concatenate([turn.T @ f0[:3], turn.T @ f0[3:]])  # f(0) acts on the environment
        bias = inverse_dynamics(model, o.q, o.from_paper(rate), f_ext={o.tip: on_robot})
        expected = np.linalg.solve(mass_matrix(model, o.q), o.from_paper(T) - bias)
        return cls(rate, T, f0, o.a(rate) + o.E @ o.g, o.b(rate), o.to_paper(expected))  # (3.21)


def fd1(o: SpatialOperators, at: Motion) -> np.ndarray:
    free = at.T - (o.H @ o.phi) @ ((o.M @ o.phi.T) @ at.a + at.b + o.B @ at.f0)  # (4.17)
    return (o.factor_inverse.T @ o.D_inv @ o.factor_inverse) @ free  # (4.18)


def fd3(o: SpatialOperators, at: Motion) -> np.ndarray:
    zeta = o.phi.T @ at.a  # (5.8)
    innovation = at.T - (o.H @ o.psi) @ ((o.S @ o.L) @ at.T + o.M @ zeta + at.b + o.B @ at.f0)  # (5.9)
    return (o.factor_inverse.T @ o.D_inv) @ innovation  # (5.10)


def fd4(o: SpatialOperators, at: Motion) -> np.ndarray:
    outer = o.factor_inverse @ at.T - (o.H @ o.psi_tilde @ o.P) @ at.a - (o.H @ o.psi) @ (at.b + o.B @ at.f0)
    nu = o.D_inv @ outer  # (5.14)
    return o.factor_inverse.T @ nu - (o.L.T @ o.Psi.T @ (o.I - o.G @ o.H).T + o.G.T) @ at.a  # (5.15)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("method", (fd1, fd3, fd4), ids=lambda method: method.__name__.upper())
def test_forward_dynamics(method: Callable[..., np.ndarray], kind: str):
    for n in LENGTHS:
        o = operators_of(n, kind)
        at = Motion.of(o)
        condition = np.linalg.cond(o.mass.todense())
        assert_equal(method(o, at), at.expected, tolerance=1e-13 * max(condition, 10.0))
        bias = (o.H @ o.phi) @ ((o.M @ o.phi.T) @ at.a + at.b + o.B @ at.f0)
        acceleration = method(o, at)
        terms = (np.abs(o.mass.todense()) @ np.abs(acceleration), bias)
        assert_equal(o.mass @ acceleration + bias, at.T, *terms)  # (3.19)


@pytest.mark.parametrize("kind", KINDS)
def test_forward_dynamics_FD2(kind: str):
    """Accelerations of the links (5.6) and of the tip (5.7); without gravity the latter is J thetadd + Jdot thetad."""
    for n in LENGTHS:
        o = operators_of(n, kind)
        at = Motion.of(o)
        free = at.T - (o.H @ o.phi) @ ((o.M @ o.phi.T) @ at.a + at.b + o.B @ at.f0)  # (5.5)
        alpha = (o.psi.T @ o.H.T @ o.D_inv @ o.factor_inverse) @ free + o.phi.T @ at.a  # (5.6)
        tip = o.B.T @ alpha + o.a0(at.rate)  # (5.7)
        tolerance = 1e-13 * max(np.linalg.cond(o.mass.todense()), 10.0)
        assert_equal(alpha, (o.phi.T @ o.H.T) @ at.expected + o.phi.T @ at.a, tolerance=tolerance)  # (3.15)
        expected = o.J @ at.expected + o.Jdot_thetadot(at.rate) + o.g
        assert_equal(tip, expected, tolerance=tolerance)
        bodies = kinematics(o.robot.model, o.q, o.from_paper(at.rate), o.from_paper(at.expected))[::-1]
        true = np.concatenate([np.concatenate([body.dw, body.dv]) for body in bodies])
        assert_equal(alpha - np.tile(o.g, n), true, alpha, tolerance=tolerance)


# ---- against the robot's own methods -------------------------------------------------------------------------------

ROBOTS = ("puma560", "stanford", "planar3", "mixed1", "mixed5", "mixed12", "chain7")


def sample(name: str) -> tuple[ls.Robot, SpatialOperators, np.ndarray]:
    bot = robot(name)
    random = np.random.default_rng(5)
    q, qd = random.uniform(-3, 3, (2, bot.nv))
    return bot, ls.operators(bot, q), qd


@pytest.mark.quick
@pytest.mark.parametrize("name", ROBOTS)
def test_mass_operator_is_the_mass_matrix(name: str):
    bot, o, _ = sample(name)
    M = bot.mass_matrix(o.q)
    assert_equal(o.mass, M[np.ix_(o.order, o.order)])
    assert_equal(o.mass @ o.mass_inverse, o.I_N, M, o.mass_inverse)


@pytest.mark.parametrize("name", ROBOTS)
def test_J_is_the_jacobian_of_the_tip(name: str):
    bot, o, _ = sample(name)
    assert o.tip == "tool"
    assert_equal(o.J, bot.jacobian(o.q, "tool")[:, o.order])
    last = bot.link_names[-1]
    assert_equal(ls.operators(bot, o.q, tip=last).J, bot.jacobian(o.q, last)[:, o.order])


@pytest.mark.parametrize("name", ROBOTS)
def test_Jdot_thetadot_by_finite_differences(name: str):
    bot, o, qd = sample(name)
    h = 1e-5
    after, before = (bot.jacobian(o.q + step * qd, "tool") @ qd for step in (h, -h))
    assert_equal(o.Jdot_thetadot(o.to_paper(qd)), (after - before) / (2 * h), np.ones(6), tolerance=1e-7)


@pytest.mark.parametrize("name", ROBOTS)
def test_C_is_bias_minus_gravity(name: str):
    bot, o, qd = sample(name)
    bias = bot.bias_forces(o.q, qd)
    assert_equal(o.from_paper(o.C(o.to_paper(qd))), bias - bot.gravity_forces(o.q), bias)


@pytest.mark.parametrize("name", ROBOTS)
def test_gravity_by_3_21(name: str):
    bot, o, _ = sample(name)
    assert_equal(o.from_paper(o.gravity_forces()), bot.gravity_forces(o.q))
    a = o.E @ o.g  # (3.21) with no rates
    assert_equal((o.H @ o.phi @ o.M @ o.phi.T) @ a, o.gravity_forces())


@pytest.mark.quick
@pytest.mark.parametrize("name", ROBOTS)
def test_inverse_dynamics_in_operator_form(name: str):
    """(3.18) with (3.21), plus the armature's R thetadd."""
    bot, o, qd = sample(name)
    rate, acceleration = o.to_paper(qd), np.linspace(-1, 1, o.N)
    a = o.a(rate) + o.E @ o.g
    alpha = o.phi.T @ (o.H.T @ acceleration + a)
    T = (o.H @ o.phi) @ (o.M @ alpha + o.b(rate)) + o.R @ acceleration
    assert_equal(o.from_paper(T), bot.inverse_dynamics(o.q, qd, o.from_paper(acceleration)))


@pytest.mark.parametrize("n", (2, 5))
def test_velocities_3_12(n: int):
    o = operators_of(n, "mixed")
    rate = np.linspace(-1, 2, n)
    assert_equal(o.V(rate), (o.phi.T @ o.H.T) @ rate)
    bodies = kinematics(o.robot.model, o.q, o.from_paper(rate))[::-1]
    assert_equal(o.V(rate), np.concatenate([np.concatenate([body.w, body.v]) for body in bodies]))


# ---- what the errata changed ------------------------------------------------------------------------------------


def test_E_as_printed_3_8_misses_gravity():
    """The printed last block is phi(N+1, N): it gives the base's force, not its acceleration, to link N."""
    o = operators_of(4, "R")
    printed = np.zeros((24, 6))
    printed[18:] = phi_of(o, 5, 4)
    torques = (o.H @ o.phi @ o.M @ o.phi.T) @ (printed @ o.g)
    assert np.abs(torques - o.gravity_forces()).max() > 0.1
    upright = o.robot.with_gravity((9.81 * bodies_of(o)[-1].p).tolist())  # gravity along l(N+1, N)
    o = ls.operators(upright, o.q)
    assert_equal((o.H @ o.phi @ o.M @ o.phi.T) @ (printed @ o.g), o.gravity_forces())


@pytest.mark.parametrize("n", LENGTHS)
def test_inverse_as_printed_in_the_abstract_misses_from_N_3(n: int):
    """The abstract of Part I has Phi in place of Psi: Phi and Psi differ only where two joints lie between."""
    o = operators_of(n, "R")
    wrong = o.I_N - o.H @ o.Phi @ o.L
    difference = np.abs((wrong.T @ o.D_inv @ wrong - o.mass_inverse).todense()).max()
    assert difference < 1e-11 * np.abs(o.mass_inverse.todense()).max() if n <= 2 else difference > 1e-3


# ---- as LinearOperators ------------------------------------------------------------------------------------------


def composites(o: SpatialOperators) -> dict[str, Any]:
    return {
        "product": o.H @ o.phi @ o.M, "sum": o.phi + 2.0 * o.Psi, "difference": o.I - o.S @ o.Delta_psi,
        "scaled": -3 * o.L, "over": o.G / 4.0, "transposed": (o.H @ o.Phi @ o.L).T, "adjoint": o.J.H, "twice": o.P.T.T,
    }  # fmt: skip


@pytest.mark.parametrize("n", (1, 2, 6))
@pytest.mark.parametrize("symbol", (*OPERATORS, *composites(operators_of(1, "R"))))
def test_products_and_adjoints(symbol: str, n: int):
    o = operators_of(n, "armature")
    A = composites(o).get(symbol) or getattr(o, symbol)
    assert issubclass(type(A), LinearOperator)
    matrix, random = A.todense(), np.random.default_rng(7)
    rows, columns = A.shape
    assert matrix.shape == A.shape and A.dtype == np.float64
    x, y, X, Y = (random.normal(size=s) for s in (columns, rows, (columns, 3), (rows, 4)))
    scale = np.abs(matrix).max() * columns
    for got, expected in (
        (A @ x, matrix @ x), (A.matvec(x), matrix @ x), (A.matvec(x[:, None]), (matrix @ x)[:, None]),
        (A.rmatvec(y), matrix.T @ y), (A.T @ y, matrix.T @ y), (A.H @ y, matrix.T @ y), (y @ A, y @ matrix),
        (A @ X, matrix @ X), (A.T @ Y, matrix.T @ Y), (A.rmatmat(Y), matrix.T @ Y), (A @ X[:, :0], matrix @ X[:, :0]),
        (A @ (x + 1j * x[::-1]), matrix @ (x + 1j * x[::-1])), (A @ (X * 1j), matrix @ X * 1j),
        (A @ np.arange(columns), matrix @ np.arange(columns)), (A.T.todense(), matrix.T),
    ):  # fmt: skip
        assert got.shape == expected.shape and got.dtype == np.result_type(expected, 1.0)
        assert np.abs(got - expected).max(initial=0.0) <= 1e-13 * max(scale, 1e-300) * 10
    assert abs((A @ x) @ y - x @ (A.T @ y)) <= 1e-13 * scale * rows


def test_algebra_keeps_operators_that_can_be_written_out():
    o = operators_of(3, "mixed")
    for A in composites(o).values():
        assert A.todense().shape == A.shape
    assert (np.float64(2.0) * o.phi).todense()[0, 0] == 2.0 and (o.phi * 2).todense()[0, 0] == 2.0
    assert repr(o.H @ (o.I - o.Psi @ o.L @ o.H)) == "<3x18 spatial operator H (I - Psi L H)>"
    assert repr((o.H @ o.phi).T) == "<18x3 spatial operator (H phi)^T>" and o.H.T.T.name == "H"
    assert repr(o) == "<spatial operators of chain3, N = 3, tip tool>"


def test_other_linear_operators_mix():
    o = operators_of(3, "mixed")
    other = aslinearoperator(np.arange(9.0).reshape(3, 3))
    x = np.ones(3)
    assert_equal((o.mass @ other) @ x, o.mass.todense() @ (other @ x))
    assert_equal((other @ o.mass) @ x, other @ (o.mass @ x))
    assert_equal((o.mass + other) @ x, o.mass @ x + other @ x)
    assert_equal((o.mass - other) @ x, o.mass @ x - other @ x)


def test_S_only_moves():
    """What is not finite in one block stays one block."""
    x = np.zeros(24)
    x[0] = np.inf
    expected = np.zeros(24)
    expected[6] = np.inf
    assert (operators_of(4, "R").S @ x == expected).all()


def test_scipy_solves_with_the_mass_operator():
    o = operators_of(6, "R")
    T = np.linspace(-1, 1, 6)
    found, failed = cg(o.mass, T, rtol=1e-14, M=o.mass_inverse)
    assert failed == 0
    assert_equal(found, o.mass_inverse @ T, tolerance=1e-9)


@pytest.mark.parametrize("symbol", OPERATORS)
def test_a_product_is_of_order_n(symbol: str, monkeypatch: pytest.MonkeyPatch):
    """Steps over links: twice as many for twice the links, and no more for several columns."""
    calls = 0

    def counted(original: Any) -> Any:
        def sweep(self: Any, step: Any, *args: Any) -> Any:
            def one(*own: Any) -> Any:
                nonlocal calls
                calls += 1
                return step(*own)

            return original(self, one, *args)

        return sweep

    for name in ("inward", "outward"):
        monkeypatch.setattr(TurnedChain, name, counted(getattr(TurnedChain, name)))

    def steps(n: int, apply: Callable[[Any], Any]) -> int:
        nonlocal calls
        o = operators_of(n, "mixed")
        A = getattr(o, symbol)  # what it is made of is kept
        calls = 0
        apply(A)
        return calls

    for apply in (lambda A: A @ np.ones(A.shape[1]), lambda A: A.T @ np.ones(A.shape[0])):
        assert steps(12, apply) == 2 * steps(6, apply) <= 12 * 14
    once = steps(12, lambda A: A @ np.ones(A.shape[1]))
    assert steps(12, lambda A: A @ np.ones((A.shape[1], 50))) == once
    if symbol in ("phi", "psi", "Phi", "Psi"):
        assert once == 12


# ---- the paper's order and the robot's ----------------------------------------------------------------------------


def shuffled_chain() -> ls.Robot:
    """A chain whose document names its joints in another order than base to tip, with axes in any direction."""
    random = np.random.default_rng(3)
    parts = []
    for i in range(5):
        place = Placement(nested(random_rotation(random)), tuple(random.uniform(-0.4, 0.4, 3).tolist()))
        kind = "prismatic" if i in (1, 3) else "revolute"
        joint = Joint(f"joint{i}", kind, tuple(random.normal(size=3).tolist()), place, armature=0.1 * i)
        parts.append(Part(f"link{i}", f"link{i - 1}" if i else "base", joint, random_inertial(random)))
    document = [parts[i] for i in (3, 0, 4, 1, 2)]
    return ls.Robot(assemble("shuffled", document, base="base", gravity=(0.3, -1.0, -9.7)))


def test_order_of_a_shuffled_document():
    bot = shuffled_chain()
    assert bot.joint_names == ("joint3", "joint0", "joint4", "joint1", "joint2")
    random = np.random.default_rng(1)
    q, qd = random.uniform(-2, 2, (2, 5))
    o = ls.operators(bot, q)
    assert o.links == ("link4", "link3", "link2", "link1", "link0")  # paper k = n - i
    assert [bot.link_names[i] for i in o.order] == list(o.links)
    assert list(o.to_paper(bot.joint_names)) == ["joint4", "joint3", "joint2", "joint1", "joint0"]
    assert (o.from_paper(o.to_paper(np.arange(10.0).reshape(2, 5))) == np.arange(10.0).reshape(2, 5)).all()
    assert_equal(o.mass, bot.mass_matrix(q)[np.ix_(o.order, o.order)])
    assert_equal(o.J, bot.jacobian(q, str(o.tip))[:, o.order])
    bias = bot.bias_forces(q, qd)
    assert_equal(o.from_paper(o.C(o.to_paper(qd)) + o.gravity_forces()), bias)
    V = o.V(o.to_paper(qd)).reshape(5, 6)
    for k, link in enumerate(o.links):  # block k of a spatial vector is that link, in the base's directions
        assert_equal(V[k], bot.jacobian(q, link) @ qd)


# ---- what is refused ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("q", "message"),
    [
        (np.zeros((2, 3)), r"q has shape \(2, 3\), expected \(3,\)"),
        (np.zeros(4), r"q has shape \(4,\), expected \(3,\)"),
        ([0.0, np.nan, 0.0], "q is not finite"),
        ("abc", "q is str, expected 3 numbers"),
    ],
)
def test_a_wrong_configuration_is_refused(q: Any, message: str):
    with pytest.raises(ArgumentError, match=message):
        ls.operators(operators_of(3, "R").robot, q)


def test_wrong_arguments_are_refused():
    o = operators_of(3, "R")
    with pytest.raises(ArgumentError, match=r"operators got Model\(.*, expected a Robot"):
        ls.operators(o.robot.model, o.q)  # pyright: ignore[reportArgumentType]
    with pytest.raises(ArgumentError, match=r"tip is 'base', expected a frame on a moving link of .*, or several"):
        ls.operators(o.robot, o.q, tip="base")
    with pytest.raises(ArgumentError, match=r"tip is 'link9' \(did you mean"):
        ls.operators(o.robot, o.q, tip=["link1", "link9"])
    with pytest.raises(ArgumentError, match=r"phi got an array of shape \(3,\), expected \(18,\)"):
        _ = o.phi @ np.zeros(3)
    with pytest.raises(ArgumentError, match=r"phi\^T got an array of shape \(3, 2\), expected \(18, columns\)"):
        _ = o.phi.T @ np.zeros((3, 2))
    with pytest.raises(ArgumentError, match=r"H got an array of shape \(18,\), expected \(3,\)"):
        o.H.rmatvec(np.zeros(18))
    with pytest.raises(ArgumentError, match=r"H got an array of shape \(18, 1\), expected \(3, columns\)"):
        o.H.rmatmat(np.zeros((18, 1)))
    with pytest.raises(ArgumentError, match="phi H: 18x18 times 3x18"):
        _ = o.phi @ o.H
    with pytest.raises(ArgumentError, match=r"I_N .* 3x3 plus 18x18"):
        _ = o.I_N + o.phi
    with pytest.raises(ArgumentError, match=r"thetadot has shape \(2,\), expected \(3,\)"):
        o.C([1.0, 2.0])


def massless(n: int, inertia: tuple[bool, ...]) -> ls.Robot:
    random = np.random.default_rng(2)
    parts = []
    for i in range(n):
        joint = Joint(f"joint{i}", placement=Placement(position=(0.3, 0.0, 0.1)))
        body = random_inertial(random) if inertia[i] else Inertial()
        parts.append(Part(f"link{i}", f"link{i - 1}" if i else "base", joint, body))
    with pytest.warns(ModelWarning):
        return ls.Robot(assemble("bare", parts, base="base"))


def test_a_joint_without_inertia_is_refused():
    o = ls.operators(massless(2, (True, False)), np.zeros(2))
    assert o.mass.todense().shape == (2, 2)  # needs no inverse of D
    for symbol in ("P", "D", "psi", "mass_inverse"):
        with pytest.raises(SingularError, match="operators: the effective inertia of joint joint1 of bare"):
            getattr(o, symbol)


def test_a_robot_without_inertia_has_kinematics_only():
    o = ls.operators(massless(2, (False, False)), np.zeros(2))
    assert o.J.todense().shape == (6, 2)
    for symbol in ("M", "mass", "psi"):
        with pytest.raises(DescriptionError, match="bare has no mass or inertia"):
            getattr(o, symbol)


def test_the_function_stays_after_its_package_is_imported():
    import linksweep.papers.spatial_operators as package

    assert ls.operators is package.operators
