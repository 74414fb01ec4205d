"""The errata of the papers, decided again: each printed form misses, each corrected one agrees with an oracle.

docs/errata.md names the tests of this file. The recursions stand in errata_arms.py.
"""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from errata_arms import (
    GRAVITY,
    arm,
    bias_acceleration,
    bias_force,
    classical_acceleration,
    classical_force,
    classical_torque,
    covariances,
    det,
    filtered_torque,
    gains,
    hartenberg_denavit,
    inv,
    inward,
    kane,
    listed,
    local_torque,
    missed,
    operators,
    outward,
    shift,
    skew,
    stacked,
    turning_bias,
    vanishes,
    zeros,
)
from pin_models import random_robot
from robots_for_tests import kinematics

from linksweep.papers.published_counts import KANG, KANG_PRINTED_ADDITIONS

ROOT = Path(__file__).parents[2]
AGREES, MISSES = 1e-10, 1e-3  # of the largest entry
ARMATURE = 0.5

ARMS = [(4, "R", 1), (5, "mixed", 7), (7, "mixed", 3), (4, "R", 1, True), (5, "mixed", 7, True)]
FLOATS = ARMS[:3]  # the others are over the field: there AGREES means equal, MISSES different


def named(which: Any) -> str:
    return f"{which[1]}{which[0]}{' exact' * (len(which) > 3)}"


arms = pytest.mark.parametrize("which", ARMS, ids=named)
mixed = pytest.mark.parametrize("which", [which for which in ARMS if which[1] == "mixed"], ids=named)
exactly = pytest.mark.parametrize("exact", [False, True], ids=["floats", "exact"])


def decide(printed: Any, corrected: Any, right: Any) -> None:
    assert missed(corrected, right) <= AGREES
    assert missed(printed, right) >= MISSES


# ---- Rodriguez 1987 ------------------------------------------------------------------------------------------


@arms
def test_rodriguez_7_bias_force(which: Any):
    a = arm(*which)
    printed = listed(bias_force, a)
    for k in range(a.n):
        printed[k] = printed[k].copy()
        printed[k][3:] = a.m[k] * (np.cross(a.w[k], a.com[k]) + np.cross(a.w[k], a.v[k]))
    decide(local_torque(a, b=printed), local_torque(a), a.tau)
    ours = a.robot.inverse_dynamics(a.q[::-1], a.qd[::-1], a.qdd[::-1], method="boundary_value")
    assert missed(ours[::-1], a.tau) <= AGREES


@arms
def test_rodriguez_9_translation(which: Any):
    """The force on a link moved by its own joint's acceleration: m times that of the mass centre; Kozlowski (3.22)."""
    a = arm(*which)
    w, v, dw, c, m = a.w[:-1], a.v[:-1], a.dw[:-1], a.com, a.m[:, None]
    wc = np.cross(w, c)
    right = m * (a.dv[:-1] + np.cross(dw, c) + np.cross(w, wc))
    local = a.dv[:-1] - np.cross(w, v)  # v' as seen in the link
    printed = m * (wc + local + np.cross(w, v))
    corrected = m * (local + np.cross(dw, c) + np.cross(w, v) + np.cross(w, wc))
    decide(printed, corrected, right)
    scanned = m * local + m * dw + m * np.cross(np.cross(w, v), wc)  # (3.22)
    assert missed(scanned, right) >= MISSES


@mixed
def test_rodriguez_15_sliding_joint(which: Any):
    """lambda is the derivative seen in the link, alpha - [0; w x v]: (15) is right for R, and not meant for P."""
    a = arm(*which)
    right = [stacked(a.dw[k], a.dv[k] - np.cross(a.w[k], a.v[k])) for k in range(a.n)]
    printed = [turning_bias(a.phi[k].T @ stacked(a.w[k + 1], a.v[k + 1]), a.h[k] * a.qd[k]) for k in range(a.n)]
    decide(outward(a, printed, np.zeros(6)), outward(a, listed(bias_acceleration, a), np.zeros(6)), right)


@exactly
def test_rodriguez_15_turning_joint(exact: bool):
    a = arm(4, "R", 1, exact)
    right = [stacked(a.dw[k], a.dv[k] - np.cross(a.w[k], a.v[k])) for k in range(a.n)]
    assert missed(outward(a, listed(bias_acceleration, a), np.zeros(6)), right) <= AGREES


@pytest.mark.parametrize("k", [1, 3, 6])
def test_rodriguez_26_and_78_limits_of_sums(k: int):
    N = 6
    first = {(i, j) for j in range(1, k + 1) for i in range(j, N + 1)}
    assert first == {(i, j) for i in range(1, N + 1) for j in range(1, min(i, k) + 1)}
    second = {(i, j) for i in range(k + 1, N + 1) for j in range(1, i)}
    assert second == {(i, j) for j in range(1, N) for i in range(max(k + 1, j + 1), N + 1)}
    assert second != {(i, j) for j in range(1, N) for i in range(max(k + 1, j + 1), N)} or k == N  # (78) as printed


@arms
def test_rodriguez_41_needs_43_first(which: Any):
    a = arm(*which)
    g = gains(a)
    decide(filtered_torque(a, g, g.P), filtered_torque(a, g, g.P_plus), a.qdd)
    ours = a.robot.forward_dynamics(a.q[::-1], a.qd[::-1], a.tau[::-1], method="filter_smoother")
    assert missed(ours[::-1], a.qdd) <= AGREES


@pytest.mark.parametrize("which", FLOATS, ids=named)  # a Cholesky factor has roots in it
def test_rodriguez_60_estimate(which: Any):
    """x itself is not what the torques tell of it: the estimate has the same torques and less than x's covariance."""
    a = arm(*which)
    o = operators(a)
    X = o.phi @ o.M @ o.phi.T
    x = o.phi @ np.linalg.cholesky(o.M) @ np.random.default_rng(3).normal(size=6 * a.n)  # a state that w could cause
    gain = X @ o.H.T @ inv(o.H @ X @ o.H.T)
    assert missed(o.H @ gain @ (o.H @ x), o.H @ x) <= AGREES
    assert missed(x, gain @ (o.H @ x)) >= MISSES  # (60) as printed would have them equal


@arms
def test_rodriguez_68_transposes(which: Any):
    """S = P - P Delta P is the covariance of x(k) given all tau: conditioned here without any filter."""
    a = arm(*which)
    g, o = gains(a), operators(a)
    X = o.phi @ o.M @ o.phi.T  # covariance of all x
    given = X - X @ o.H.T @ inv(o.H @ X @ o.H.T) @ o.H @ X
    right = [given[6 * k : 6 * k + 6, 6 * k : 6 * k + 6] for k in range(a.n)]
    printed, corrected = (
        [P - P @ d @ P for P, d in zip(g.P, covariances(a, g, which)[1], strict=True)] for which in ("(68)", "")
    )
    decide(printed, corrected, right)


@arms
def test_rodriguez_72_order_of_product(which: Any):
    """(73) without bias: z^-(N) is the sum of psi(N^-, i^+) G(i) tau(i)."""
    a = arm(*which)
    g, last = gains(a), a.n - 1
    z = np.zeros(6)
    for k in range(last):
        z = (a.phi[k - 1] @ z if k else z) + 0.0
        z = z + g.G[k] * (a.tau[k] - a.H[k] @ z)
    right = a.phi[last - 1] @ z
    sums = []
    for inner_first in (False, True):  # as printed j rises to the right; right is j = k-1 leftmost
        total = np.zeros(6)
        for i in range(last):
            psi = np.eye(6)
            for j in range(i + 1, last):
                factor = (np.eye(6) - np.outer(g.G[j], a.H[j])) @ a.phi[j - 1]
                psi = factor @ psi if inner_first else psi @ factor
            total = total + a.phi[last - 1] @ psi @ g.G[i] * a.tau[i]
        sums.append(total)
    decide(sums[0], sums[1], right)


@arms
@pytest.mark.parametrize("printed", ["phi", "HH^T", "alpha"])
def test_rodriguez_83_inverse(which: Any, printed: str):
    a = arm(*which)

    def inverse(wrong: str) -> np.ndarray:
        g, out = gains(a), zeros(a, a.n, a.n)
        plus, _ = covariances(a, g, wrong)
        for i in range(a.n):
            out[i, i] = 1 / g.D[i] + g.G[i] @ plus[i] @ g.G[i]
            alpha = plus[i] @ g.G[i] - out[i, i] * a.H[i]
            for k in reversed(range(i)):
                alpha = (a.phi[k] if wrong == "alpha" else a.phi[k].T) @ alpha
                out[k, i] = out[i, k] = g.G[k] @ alpha
                alpha = alpha - a.H[k] * (g.G[k] @ alpha)
        return out

    right = inv(a.mass)
    decide(inverse(printed), inverse(""), right)
    ours = a.robot.mass_matrix_inverse(a.q[::-1], method="costate_covariance")
    assert missed(ours[::-1, ::-1], right) <= AGREES


@mixed
def test_rodriguez_84_sliding_joint(which: Any):
    """J, Y = C rho, rho of the articulated body; the printed update is that of a turning joint."""
    a = arm(*which)
    g = gains(a)

    def parameters(printed: bool) -> np.ndarray:
        J, Y, rho = np.zeros((3, 3)), np.zeros((3, 3)), np.zeros((3, 3))
        for k in range(a.n):
            l = skew(a.p[k - 1] - a.p[k]) if k else np.zeros((3, 3))  # noqa: E741
            J = J + a.I[k] + Y @ l.T + l @ Y.T + l @ rho @ l.T
            Y = Y + l @ rho + a.m[k] * skew(a.com[k])
            rho = rho + a.m[k] * np.eye(3)
            if k == a.n - 1:
                break
            hh = np.outer(a.h[k], a.h[k])
            if a.slides[k] and not printed:
                D = a.h[k] @ rho @ a.h[k]
                J, Y, rho = J - Y @ hh @ Y.T / D, Y - Y @ hh @ rho / D, rho - rho @ hh @ rho / D
            else:
                D = a.h[k] @ J @ a.h[k]
                J, Y, rho = J - J @ hh @ J / D, Y - J @ hh @ Y / D, rho - Y.T @ hh @ Y / D
        return np.block([[J, Y], [Y.T, rho]])

    decide(parameters(True), parameters(False), g.P[-1])
    first = a.slides.index(True)
    assert vanishes(det(g.P_plus[first][3:, 3:]))  # rho has no inverse, so C = Y / rho is not defined


@arms
def test_rodriguez_section_XI_updated_inertia_vanishes(which: Any):
    a = arm(*which)
    g = gains(a)
    assert all(vanishes(H @ P) for H, P in zip(a.H, g.P_plus, strict=True))
    assert not any(vanishes(H @ P, MISSES) for H, P in zip(a.H, g.P, strict=True))


def test_rodriguez_section_XII_count():
    """Tables II and III, a flop being a multiplication and an addition."""
    for N in range(1, 12):
        pairs = Fraction(N * (N + 1), 2)
        assembly = (10 * N + (1 + 1 + 2 + 4) * pairs) / 2
        assert assembly == N * (2 * N + 7) and (assembly != 2 * N * (N + 5))
        solve = Fraction(N**3, 3) + N**2
        assert (solve + assembly > 27 * N) == (N >= 5)  # as the paper says
        assert (solve + 2 * N * (N + 5) > 27 * N) == (N >= 4)  # what its own formula says


@arms
def test_rodriguez_51_with_armature(which: Any):
    a = arm(*which, armature=ARMATURE)
    printed, corrected, first = (gains(a, form) for form in ("51", "51 with R", "43"))
    decide(filtered_torque(a, printed, printed.P_plus), filtered_torque(a, corrected, corrected.P_plus), a.qdd)
    assert missed(corrected.P_plus, first.P_plus) <= AGREES
    assert not vanishes(a.H[0] @ first.P_plus[0], MISSES)  # H P^+ is not 0 any more
    rooted = ("filter_smoother_ud",) if which in FLOATS else ()  # it chooses by signs, which a field has not
    for method in ("filter_smoother", "filter_smoother_50", "filter_smoother_51", *rooted):
        ours = a.robot.forward_dynamics(a.q[::-1], a.qd[::-1], a.tau[::-1], method=method)
        assert missed(ours[::-1], a.qdd) <= AGREES, method


# ---- Rodriguez & Kreutz 1988 ---------------------------------------------------------------------------------


@mixed
def test_rodriguez_kreutz_2_32_sliding_bias(which: Any):
    a = arm(*which)
    right = listed(classical_acceleration, a)
    first, second = list(right), list(right)
    for k in range(a.n):
        if a.slides[k]:
            w, l = a.w[k + 1], a.p[k] - a.p[k + 1]  # noqa: E741
            first[k] = stacked(np.zeros(3), np.cross(w, np.cross(w, l) + a.h[k] * a.qd[k]))
            second[k] = stacked(np.zeros(3), np.cross(w, np.cross(w, l) + a.w[k]))
    decide(classical_torque(a, first), classical_torque(a, right), a.tau)
    decide(classical_torque(a, second), classical_torque(a, right), a.tau)
    ours = a.robot.inverse_dynamics(a.q[::-1], a.qd[::-1], a.qdd[::-1], method="newton_euler")
    assert missed(ours[::-1], a.tau) <= AGREES


@arms
def test_rodriguez_kreutz_3_8_gravity(which: Any):
    """a -> a + E g: the last block of E is phi^T(N+1, N), not phi."""
    a = arm(*which)
    bias = listed(classical_acceleration, a)
    results = []
    for block in (a.phi[-1], a.phi[-1].T):
        lifted = [*bias[:-1], bias[-1] + block @ a.base]
        results.append(inward(a, outward(a, lifted, np.zeros(6)), listed(classical_force, a)))
    decide(results[0], results[1], a.tau)


@arms
def test_rodriguez_kreutz_4_4_to_4_6_gains(which: Any):
    """L(1) takes phi(2, 1), not the block of Phi, which is 1; and D(N) belongs to the factors."""
    a = arm(*which)
    o, one = operators(a), np.eye(a.n)
    wrong = o.L.copy()
    wrong[:6, 0] = gains(a).G[0]
    products = [(one + o.H @ o.Phi @ L) @ o.D @ (one + o.H @ o.Phi @ L).T for L in (wrong, o.L)]
    decide(products[0], products[1], a.mass)
    determinant = det(a.mass)
    decide([np.prod(np.diag(o.D)[:-1])], [np.prod(np.diag(o.D))], [determinant])
    ours = np.exp(a.robot.factor(a.q[::-1]).logdet()) if which in FLOATS else a.robot.determinant(a.q[::-1])
    assert missed(ours, determinant) <= AGREES


@arms
def test_rodriguez_kreutz_4_20_innovation(which: Any):
    a = arm(*which)
    o, one = operators(a), np.eye(a.n)
    bias = inward(a, outward(a, listed(classical_acceleration, a), a.base, 0 * a.qdd), listed(classical_force, a))
    free = a.tau - bias
    back = (one - o.H @ o.Psi @ o.L).T @ inv(o.D)
    estimate = o.H @ o.Psi @ o.L @ free  # H z of (4.20)
    decide(back @ (a.tau - estimate), back @ (free - estimate), a.qdd)
    ours = a.robot.forward_dynamics(a.q[::-1], a.qd[::-1], a.tau[::-1], method="fd1")
    assert missed(ours[::-1], a.qdd) <= AGREES


@arms
def test_rodriguez_kreutz_fd3_proof(which: Any):
    a = arm(*which)
    o, one = operators(a), np.eye(a.n)
    W = one - o.H @ o.Psi @ o.L
    decide(inv(W) @ inv(o.D) @ W, W.T @ inv(o.D) @ W, inv(a.mass))
    ours = a.robot.forward_dynamics(a.q[::-1], a.qd[::-1], a.tau[::-1], method="fd3")
    assert missed(ours[::-1], a.qdd) <= AGREES


@arms
def test_rodriguez_kreutz_5_13_velocities(which: Any):
    """V of every link is phi^T H^T qd; with B^T in front it is that of the tip alone, 6 numbers."""
    a = arm(*which)
    o = operators(a)
    right = np.concatenate([stacked(a.w[k], a.v[k]) for k in range(a.n)])
    B = np.zeros((6 * a.n, 6))
    B[:6] = shift(np.array([0.25, -0.5, 0.75]))  # phi(1, 0): some tip
    V = o.phi.T @ o.H.T @ a.qd
    decide(np.tile(B.T @ V, a.n), V, right)
    ours = a.robot.forward_dynamics(a.q[::-1], a.qd[::-1], a.tau[::-1], method="fd4")
    assert missed(ours[::-1], a.qdd) <= AGREES


@arms
def test_rodriguez_kreutz_5_17_start(which: Any):
    """(5.16)-(5.17) with lambda(N+1) = 0, gravity going into a(N) by (3.21)."""
    a = arm(*which)
    g, acceleration = gains(a), listed(classical_acceleration, a)
    acceleration[-1] = acceleration[-1] + a.phi[-1].T @ a.base
    z, nu, qdd, inner = np.zeros(6), zeros(a, a.n), zeros(a, a.n), np.zeros(6)
    for k in range(a.n):
        z = (a.phi[k - 1] @ z if k else z) + classical_force(a, k)
        innovation = a.tau[k] - a.H[k] @ z
        nu[k] = innovation / g.D[k]
        z = z + g.G[k] * innovation + g.P_plus[k] @ acceleration[k]
    for k in reversed(range(a.n)):
        carried = (a.phi[k].T @ inner) + acceleration[k]
        qdd[k] = nu[k] - g.G[k] @ carried
        inner = carried + a.H[k] * qdd[k]
    assert missed(qdd, a.qdd) <= AGREES


@exactly
@pytest.mark.parametrize("n", [2, 3, 6])
def test_rodriguez_kreutz_abstract_inverse(n: int, exact: bool):
    """Phi instead of Psi in the inverse cannot be seen up to two links."""
    a = arm(n, "R", 11, exact)
    o, one = operators(a), np.eye(n)
    printed, corrected = (
        (one - o.H @ middle @ o.L).T @ inv(o.D) @ (one - o.H @ middle @ o.L) for middle in (o.Phi, o.Psi)
    )
    assert missed(corrected, inv(a.mass)) <= AGREES
    assert (missed(printed, inv(a.mass)) >= MISSES) == (n >= 3)
    ours = a.robot.mass_matrix_inverse(a.q[::-1], method="factorization")
    assert missed(ours[::-1, ::-1], inv(a.mass)) <= AGREES


def test_rodriguez_kreutz_appendix_b_dimensions():
    """theta(k) of joints 1 ... N-1 is one number: with seven each, theta would have 7 N and not N + 6. The base's
    acceleration, from rest, is dW/dt: the six numbers [dw; dv], not [ddq; ddl] with a quaternion's four."""
    for N in (2, 3, 5):
        free = random_robot(("free", *["revolute"] * (N - 1))).with_gravity((0, 0, 0))
        assert (free.nq, free.nv) == (N - 1 + 7, N + 5) == (N + 6, N + 5) and (N - 1) * 7 + 7 != N + 6
        rng = np.random.default_rng(N)
        W_dot = rng.normal(size=free.nv)
        _, at = free.inverse_dynamics(free.random(rng), np.zeros(free.nv), W_dot, method="newton_euler", details=True)
        assert missed(at.alpha[0], W_dot[:6]) <= AGREES


# ---- Kozlowski 1990 ------------------------------------------------------------------------------------------


@pytest.mark.cases(1)
@pytest.mark.parametrize("which", FLOATS, ids=named)
def test_kozlowski_equality_of_costates(which: Any):
    """x is equal in both formulations; lambda_k = lambda^-_k + [0; w x v]."""
    a = arm(*which)
    state = (a.q[::-1], a.qd[::-1], a.qdd[::-1])
    _, newton = a.robot.inverse_dynamics(*state, method="newton_euler", details=True)
    _, two_point = a.robot.inverse_dynamics(*state, method="boundary_value", details=True)
    assert missed(two_point.x, newton.f) <= AGREES
    w, v = newton.V[:, :3], newton.V[:, 3:]
    corrected = two_point.costate + np.hstack([np.zeros((a.n, 3)), np.cross(w, v)])
    decide(two_point.costate, corrected, newton.alpha)
    bodies = kinematics(a.robot.model, *state)
    right = [stacked(b.R.T @ b.dw, b.R.T @ (b.dv - GRAVITY)) for b in bodies]
    assert missed(newton.alpha, right) <= AGREES


@arms
def test_kozlowski_gravity_sign(which: Any):
    """The base's acceleration is minus gravity, in (3.6) and in (3.55); it equals gravity through F_ck."""
    a = arm(*which)
    decide(local_torque(a, start=-a.base), local_torque(a), a.tau)
    weights = [b - stacked(m * np.cross(c, GRAVITY), m * GRAVITY) for b, m, c in zip(
        listed(bias_force, a), a.m, a.com, strict=True)]  # fmt: skip
    assert missed(local_torque(a, start=np.zeros(6), b=weights), a.tau) <= AGREES
    g = gains(a)
    decide(filtered_torque(a, g, g.P_plus, start=-a.base), filtered_torque(a, g, g.P_plus), a.qdd)


@arms
def test_kozlowski_3_5_accelerations(which: Any):
    a = arm(*which)
    decide(local_torque(a, rise=a.qd), local_torque(a), a.tau)


@arms
def test_kozlowski_3_42_cross_product(which: Any):
    a = arm(*which)
    printed, corrected, right = [], [], []
    for k in (k for k in range(a.n) if not a.slides[k]):
        w, v_plus = a.w[k + 1], (a.phi[k].T @ stacked(a.w[k + 1], a.v[k + 1]))[3:]
        turned = np.cross(w, a.p[k] - a.p[k + 1])
        rest = np.cross(w, a.v[k + 1]) - np.cross(a.w[k], a.v[k])
        printed.append(w + turned + rest)
        corrected.append(np.cross(w, turned) + rest)
        right.append(np.cross(v_plus, a.h[k] * a.qd[k]))
    decide(printed, corrected, right)


@arms
def test_kozlowski_3_56_costate_propagation(which: Any):
    """As printed lambda^+ of the next link is never set: (3.57) would go on with the base's."""
    a = arm(*which)
    g = gains(a)
    decide(filtered_torque(a, g, g.P_plus, carry=False), filtered_torque(a, g, g.P_plus), a.qdd)


def test_kozlowski_table_2():
    """Additions of its rows, n to the first power and constant."""
    others = [(44, -58), (12, -21), (1, 0), (39, -47), (85, -139), (6, -10), (6, -3), (9, -18)]
    rest = tuple(sum(column) for column in zip(*others, strict=True))
    assert (rest[0] + 62, rest[1] - 115) == (264, -411)
    assert rest[0] + 22 != 264
    multiplications = [(74, -83), (6, -10), (56, -104), (46, -56), (55, -56), (6, -10), (5, -2), (16, -28)]
    assert tuple(sum(column) for column in zip(*multiplications, strict=True)) == (264, -349)
    assert 264 + 264 + 6 == 534 and 349 + 411 + 10 == 770


def test_kozlowski_more_efficient_for_any_n():
    def filtering(n: int) -> Fraction:
        return Fraction(534 * n - 770)

    def composite(n: int) -> Fraction:
        return Fraction(n**3, 3) + Fraction(41, 2) * n**2 + Fraction(2047, 6) * n - 395

    assert [(filtering(n), composite(n)) for n in (3, 4, 5)] == [(832, 822), (1366, 1319), (1900, 1865)]
    assert [n for n in range(1, 40) if filtering(n) > composite(n)] == [3, 4, 5]
    assert (filtering(6), composite(6)) == (2434, 2462)


@arms
def test_kozlowski_filtering_needs_3_54(which: Any):
    """Filtering "based on (3.46)-(3.53)": with P^+ = P^-, for want of (3.54), it does not find the accelerations."""
    a = arm(*which)
    g, printed = gains(a), gains(a, update="none")
    decide(filtered_torque(a, printed, printed.P_plus), filtered_torque(a, g, g.P_plus), a.qdd)


# ---- Angeles, Ma & Rojas 1988 --------------------------------------------------------------------------------


@exactly
@pytest.mark.parametrize("kinds", ["RPR", "RRPRP"])
@pytest.mark.parametrize("printed", ["(35)", "stage_1", "stage_2", "sums"])
def test_angeles_signs_and_sums(kinds: str, printed: str, exact: bool):
    """(8) with +e_i; stage 1 against (8); the minus of stage 2; sums from j = 1 in (42)-(44)."""
    t = hartenberg_denavit(kinds, exact)
    decide(kane(t, **{printed: True}), kane(t), t.right)


@exactly
@pytest.mark.parametrize("kinds", ["PRR", "PRPR"])
def test_angeles_first_joint_prismatic(kinds: str, exact: bool):
    t = hartenberg_denavit(kinds, exact)
    decide(kane(t, first_joint=True), kane(t), t.right)


@pytest.mark.parametrize("kinds", ["RRR", "RPR", "PRPR"])
def test_angeles_library(kinds: str):
    """The library's kane, by d = -b, on the same rows."""
    t = hartenberg_denavit(kinds)
    sign = np.where(t.slides, -1.0, 1.0)
    q = np.random.default_rng(5).uniform(-1.4, 1.4, (5, len(kinds)))[2]
    ours = t.robot.inverse_dynamics(q, sign * t.rate, sign * t.rise, method="kane")
    assert missed(ours, sign * t.right) <= AGREES


def test_angeles_counts():
    """M and A by their stages: 4 p and 2 p for p prismatic joints; the steps of stage 2 add up to n 50 - 37."""
    stages_M, stages_A = [(0, 2, 0), (50, 2, -47), (55, 0, -62)], [(0, 0, 0), (46, 2, -47), (44, 0, -58)]
    assert [tuple(sum(x) for x in zip(*rows, strict=True)) for rows in (stages_M, stages_A)] == [
        (105, 4, -109), (90, 2, -105)
    ]  # fmt: skip
    later, first = (8 + 10 + 6 + 26, 5 + 7 + 9 + 25), (1 + 12, 9)
    assert (later[0], first[0] - later[0]) == (50, -37) and (later[1], first[1] - later[1]) == (46, -37)
    # Z0 = Z1, O0 = O1: of the first step's 12 m + 9 a only W1 rho1 is left where gravity is along that axis
    assert (521 - (12 - 4), 435 - (9 - 2)) == (513, 428)  # 432 is printed


# ---- Kang ----------------------------------------------------------------------------------------------------


def test_kang_totals():
    """3362 in the introduction is 1647 + 1715, 3363 in the conclusion is not; by the polynomial and the steps less."""
    M, A = KANG.total.mul(6), KANG.total.add(6)
    assert M == 1647 == sum(row.count.mul(6) for row in KANG.rows)
    assert A == 1621 == sum(row.count.add(6) for row in KANG.rows) and KANG_PRINTED_ADDITIONS(6) == 1615
    assert (M + 1715, M + KANG_PRINTED_ADDITIONS(6), M + A) == (3362, 3262, 3268)


# ---- the page ------------------------------------------------------------------------------------------------
