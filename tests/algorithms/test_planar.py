"""Rodriguez 1987, section XII: the planar chain. The tracer finds the paper's 3x3 specialisation by itself.

The section's equations (85), (86) and its scalar updates stand here in NumPy, as printed; what the general recursion
gives for `ls.robots.planar(n)` must be the same, and must not cost more than Table II says the specialisation does.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest
from robots_for_tests import close

import linksweep as ls
from linksweep.algorithms.forward.filter_smoother import filter_smoother
from linksweep.algorithms.mass_matrix.composite_inertia import mass_matrix
from linksweep.mechanism.bias import BaseMotion
from linksweep.mechanism.canonical import canonical
from linksweep.model.model import Model
from linksweep.spatial.algebra import ZERO_FORCE, ZERO_VEC, Vec
from linksweep.tracing.passes import remove_dead
from linksweep.tracing.program import Array, Program
from linksweep.tracing.tracer import UnrolledTrace


@pytest.fixture(autouse=True)
def interpreted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("linksweep.support.settings.backend", "interpreter")  # details take long to compile


def different_links(n: int, seed: int = 0) -> Model:
    """The planar robot with links of different lengths, masses and inertias, mass centres on the line of the joints."""
    random = np.random.default_rng(seed)
    model = ls.robots.planar_model(n)
    lengths = random.uniform(0.5, 1.5, n)
    links = []
    for i, link in enumerate(model.links):
        m, across = random.uniform(0.5, 3.0), random.uniform(0.01, 0.2)
        tensor = ((across / 2, 0.0, 0.0), (0.0, across, 0.0), (0.0, 0.0, across))
        inertial = replace(link.inertial, mass=m, com=(lengths[i] * random.uniform(0.3, 0.7), 0.0, 0.0), inertia=tensor)
        position = (lengths[i - 1] if i else 0.0, 0.0, 0.0)
        joint = replace(link.joint, placement=replace(link.joint.placement, position=position))
        links.append(replace(link, joint=joint, inertial=inertial))
    return replace(model, links=tuple(links))


# ---- section XII in NumPy --------------------------------------------------------------------------------------


@dataclass
class PlanarLink:
    """l: length, m: mass, I: inertia about the inner joint, p: distance of the mass centre from it; q: its angle."""

    l: float  # noqa: E741  (the paper's symbol)
    m: float
    I: float  # noqa: E741
    p: float

    @property
    def M(self) -> np.ndarray:
        m, p = self.m, self.p
        return np.array([[self.I, 0, -m * p], [0, m, 0], [-m * p, 0, m]])  # (85)

    @property
    def phi(self) -> np.ndarray:
        return np.array([[1, 0, -self.l], [0, 1, 0], [0, 0, 1]])  # (85)


def planar_links(model: Model) -> list[PlanarLink]:
    """From base to tip. The last link's length does not matter: nothing hangs on its end."""
    found = []
    for i, link in enumerate(model.links):
        after = model.links[i + 1].joint.placement.position[0] if i + 1 < len(model.links) else 1.0
        m, p = link.inertial.mass, link.inertial.com[0]
        found.append(PlanarLink(after, m, link.inertial.inertia[2][2] + m * p**2, p))
    return found


def turn(q: float) -> np.ndarray:
    """Components in the next inner link's frame, of what is given in a frame turned by q about the joint's axis."""
    c, s = np.cos(q), np.sin(q)
    return np.array([[1, 0, 0], [0, c, -s], [0, s, c]])


@dataclass
class Scalars:
    """What the section's scalar equations give for one link, after propagation and after update."""

    P: np.ndarray  # P(1) … P(6)
    P_plus: np.ndarray
    g: tuple[float, float]
    D: float
    e_minus: float
    e_plus: float


def section_twelve(links: list[PlanarLink], q: np.ndarray, tau: np.ndarray) -> tuple[np.ndarray, list[Scalars]]:
    """Joint accelerations without bias terms, by the scalar equations as printed; lists from base to tip."""
    n = len(links)
    kept: list[Any] = [None] * n
    z, P = np.zeros(3), np.zeros(6)
    for i in reversed(range(n)):
        link = links[i]
        l, m, I, p = link.l, link.m, link.I, link.p  # noqa: E741
        z1 = z[0] - l * z[2]  # state propagation; z(2), z(3) unchanged
        before = np.array(  # inertia propagation: P(1) = P(2) = P(4) = 0 before it
            [l**2 * P[5] + I, -l * P[4], P[2] + m, -l * P[5] - m * p, P[4], P[5] + m]
        )
        D = before[0]
        g2, g3 = before[1] / D, before[3] / D  # gain
        e = tau[i] - z1  # innovations
        after = np.array([0, 0, before[2] - g2 * before[1], 0, before[4] - g3 * before[1], before[5] - g3 * before[3]])
        kept[i] = Scalars(before, after, (g2, g3), D, e, e / D)
        z = turn(q[i]) @ np.array([tau[i], z[1] + g2 * e, z[2] + g3 * e])  # state update, coordinate transformation
        P = _six(turn(q[i]) @ _matrix(after) @ turn(q[i]).T)
    qdd, costate = np.zeros(n), np.zeros(3)
    for i in range(n):
        costate = turn(q[i]).T @ costate  # to this link's frame
        g2, g3 = kept[i].g
        qdd[i] = kept[i].e_plus - costate[0] - g2 * costate[1] - g3 * costate[2]  # joint acceleration
        costate[0] += qdd[i]  # costate update
        costate[2] -= links[i].l * costate[0]  # costate propagation
    return qdd, kept


def _matrix(P: np.ndarray) -> np.ndarray:
    return np.array([[P[0], P[1], P[3]], [P[1], P[2], P[4]], [P[3], P[4], P[5]]])  # (86)


def _six(P: np.ndarray) -> np.ndarray:
    return np.array([P[0, 0], P[0, 1], P[1, 1], P[0, 2], P[1, 2], P[2, 2]])


def planar_part(quantity: np.ndarray) -> np.ndarray:
    """Of a force or an inertia: moment about the axis and the two forces, in the section's directions.

    Its x is the axis, here z; its y points from the outer joint to the inner one, here -x; so its z is -y.
    """
    sign = np.array([1.0, -1.0, -1.0])
    if quantity.ndim == 1:
        return quantity[[2, 3, 4]] * sign
    return quantity[np.ix_([2, 3, 4], [2, 3, 4])] * np.outer(sign, sign)


MODELS = [ls.robots.planar_model(n) for n in (1, 2, 3, 6)] + [different_links(n, seed=n) for n in (2, 4, 7)]


def without_bias(model: Model) -> ls.Robot:
    return ls.Robot(model.with_gravity((0.0, 0.0, 0.0)))


@pytest.mark.parametrize("model", MODELS, ids=lambda model: model.name)
def test_general_recursion_gives_the_sections_numbers(model: Model):
    """P(1) … P(6) before and after the update, gains, innovations, residuals and accelerations."""
    n = len(model.links)
    random = np.random.default_rng(n)
    q, tau = random.uniform(-3, 3, n), random.normal(size=n)
    expected, scalars = section_twelve(planar_links(model), q, tau)
    qdd, details = without_bias(model).forward_dynamics(q, np.zeros(n), tau, details=True)
    assert close(qdd, expected, 1e-11)
    for i, scalar in enumerate(scalars):
        assert close(planar_part(details.P[i]), _matrix(scalar.P), 1e-12)
        scale = np.abs(scalar.P).max()
        assert np.abs(planar_part(details.P_plus[i]) - _matrix(scalar.P_plus)).max() <= 1e-12 * scale
        assert close(planar_part(details.G[i]), [1.0, *scalar.g], 1e-12)
        assert close(
            [details.D[i], details.innovation[i], details.residual[i]], [scalar.D, scalar.e_minus, scalar.e_plus]
        )


@pytest.mark.parametrize("model", MODELS[1:], ids=lambda model: model.name)
def test_matrices_of_85_propagate_the_inertia(model: Model):
    """P -> phi P phi^T + M with (85); M(k) is P(k) where nothing hangs on the link."""
    n = len(model.links)
    q = np.random.default_rng(n).uniform(-3, 3, n)
    _, details = without_bias(model).forward_dynamics(q, np.zeros(n), np.zeros(n), details=True)
    links = planar_links(model)
    assert close(planar_part(details.P[-1]), links[-1].M, 1e-14)
    for i in range(n - 1):
        outer = turn(q[i + 1]) @ planar_part(details.P_plus[i + 1]) @ turn(q[i + 1]).T
        assert close(planar_part(details.P[i]), links[i].phi @ outer @ links[i].phi.T + links[i].M, 1e-12)


def test_nothing_leaves_the_plane():
    """Forces along the axis and moments in the plane are zero for every link."""
    model = different_links(5, seed=3)
    q, qd, tau = np.random.default_rng(1).normal(size=(3, 5))
    _, details = ls.Robot(model).forward_dynamics(q, qd, tau, details=True)
    assert not details.z[:, [0, 1, 5]].any() and not details.costate[:, [0, 1, 5]].any()


# ---- with the bias terms: Kozłowski's extension ----------------------------------------------------------------


def planar_forward(
    links: list[PlanarLink], q: np.ndarray, qd: np.ndarray, tau: np.ndarray, gravity: np.ndarray
) -> np.ndarray:
    """Filter and smoother of 3-vectors with b and n: Kozłowski (3.7), (3.14) in the plane; gravity (y, z) at the base.

    In the plane w is along the axis: w x (y, z) = w (-z, y).
    """
    n = len(links)

    def around(v: np.ndarray) -> np.ndarray:
        return np.array([-v[1], v[0]])

    V, velocity, bias = np.zeros(3), [], []
    for i in range(n):
        V = turn(q[i]).T @ V
        bias.append(np.array([0.0, *(-qd[i] * around(V[1:]))]))  # v x h qd = -qd h x v
        V = V + np.array([qd[i], 0, 0])
        velocity.append(V)
        V = links[i].phi.T @ V
    kept: list[Any] = [None] * n
    z, P = np.zeros(3), np.zeros((3, 3))
    for i in reversed(range(n)):
        link, (w, v) = links[i], (velocity[i][0], velocity[i][1:])
        mp = link.m * np.array([-link.p, 0.0])  # the mass centre lies towards the outer joint
        w_x_v = w * around(v)
        b = np.array([mp[0] * w_x_v[1] - mp[1] * w_x_v[0], *(link.m * w_x_v - w**2 * mp)])
        z, P = link.phi @ z + b, link.phi @ P @ link.phi.T + link.M
        D, e = P[0, 0], tau[i] - z[0]
        G = P[:, 0] / D
        P = P - np.outer(G, P[0])
        kept[i] = (G, e / D)
        z = turn(q[i]) @ (z + G * e + P @ bias[i])
        P = turn(q[i]) @ P @ turn(q[i]).T
    qdd, costate = np.zeros(n), np.array([0.0, *-gravity])
    for i in range(n):
        G, residual = kept[i]
        costate = turn(q[i]).T @ costate + bias[i]
        qdd[i] = residual - G @ costate
        costate = links[i].phi.T @ (costate + np.array([qdd[i], 0, 0]))
    return qdd


@pytest.mark.parametrize("model", MODELS, ids=lambda model: model.name)
def test_with_bias_terms(model: Model):
    n = len(model.links)
    random = np.random.default_rng(n + 50)
    q, qd, tau = random.uniform(-3, 3, n), random.uniform(-2, 2, n), random.normal(size=n)
    arm = ls.Robot(model.with_gravity((2.0, -9.0, 0.0)))
    expected = planar_forward(planar_links(model), q, qd, tau, np.array([-2.0, 9.0]))  # its y and z are -x and -y
    for method in arm.methods("forward_dynamics"):
        assert close(arm.forward_dynamics(q, qd, tau, method=method), expected, 1e-10), method


# ---- operations ------------------------------------------------------------------------------------------------


def forward_program(model: Model, bias: bool) -> Program:
    """Forward dynamics as it is compiled; without bias terms there is no qd at all, and no gravity."""
    n = len(model.links)
    arrays = [Array("q", (n,)), Array("tau", (n,)), *([Array("qd", (n,))] if bias else [])]
    tracer = UnrolledTrace(canonical(model), arrays)
    qd = tracer.read("qd") if bias else tracer.zeros()
    base = BaseMotion(ZERO_VEC, ZERO_VEC, -Vec(*model.gravity) if bias else ZERO_VEC)
    tracer.write_rates(0, filter_smoother(tracer, qd, tracer.read("tau"), tracer.same(ZERO_FORCE), base).qdd)
    return remove_dead(tracer.program("planar", [Array("qdd", (n,))])).verify()


def operations(program: Program) -> np.ndarray:
    """Multiplications, additions and subtractions, divisions."""
    count = Counter(node.op for body in program.bodies() for node in body.nodes)
    assert not {"neg", "sqrt", "where"} & set(count)
    return np.array([count["mul"], count["add"] + count["sub"], count["div"]])


TABLE_2 = np.array([26, 28, 3])  # multiply, add, divide, for each link


@pytest.mark.parametrize("seed", [0, 1])
def test_cost_without_bias_is_that_of_the_sections_table_2(seed: int):
    """For each further link 29 multiplications, 28 additions and 1 division.

    The table has 26, 28 and 3: the same operations, its three divisions by D made one reciprocal and three products.
    So the traced 6x6 recursion is the 3x3 one, without anyone having written that. Ends are cheaper: n links cost
    less than n times the table, additions and divisions always, the sum of products and divisions up to 50 links.
    """
    counts = {n: operations(forward_program(different_links(n, seed), bias=False)) for n in (1, 2, 3, 4, 5, 8, 12)}
    for n in (3, 4):
        assert (counts[n + 1] - counts[n]).tolist() == [29, 28, 1]
    assert ((counts[12] - counts[8]) / 4).tolist() == [29, 28, 1]
    one_reciprocal = np.array([TABLE_2[0] + TABLE_2[2], TABLE_2[1], 1])
    assert one_reciprocal.tolist() == [29, 28, 1]
    for n, count in counts.items():
        assert (count <= n * one_reciprocal).all()
        assert count[0] + count[2] <= n * (TABLE_2[0] + TABLE_2[2])


def test_cost_of_equal_links_of_unit_length_is_below_table_2():
    """Of the bundled planar(n) lengths and masses are 1, which the table does not use: 24, 28, 1."""
    counts = {n: operations(forward_program(ls.robots.planar_model(n), bias=False)) for n in (4, 5, 9)}
    assert (counts[5] - counts[4]).tolist() == [24, 28, 1]
    for n, count in counts.items():
        assert (count <= n * TABLE_2).all()


def test_cost_with_bias():
    """Kozłowski's extension adds 18 multiplications and 14 additions for each link: 47, 42, 1."""
    counts = {n: operations(forward_program(different_links(n), bias=True)) for n in (4, 5, 9)}
    assert (counts[5] - counts[4]).tolist() == [47, 42, 1]
    assert ((counts[9] - counts[5]) / 4).tolist() == [47, 42, 1]


@pytest.mark.parametrize("n", [2, 3, 5, 8])
def test_cost_of_assembling_the_mass_matrix_is_at_most_table_3(n: int):
    """Table III: 4 N + 5 N (N + 1) / 2 multiplications and 6 N + 3 N (N + 1) / 2 additions, together 2 N (2 N + 7):
    N (2 N + 7) multiply-add pairs, not the printed 2 N (N + 5) (ERRATA)."""
    tracer = UnrolledTrace(canonical(different_links(n)), [Array("q", (n,))])
    tracer.write_pairs(0, mass_matrix(tracer).elements)
    mul, add, div = operations(remove_dead(tracer.program("M", [Array("M", (n, n))])).verify())
    table = 4 * n + 5 * n * (n + 1) // 2, 6 * n + 3 * n * (n + 1) // 2
    assert sum(table) == 2 * n * (2 * n + 7)
    assert mul <= table[0] and add <= table[1] and div == 0
    # as published: filtering and smoothing, 27 N flops, costs less than assembly, factors and solution from N = 5 on
    flops = n**3 / 3 + n**2 + n * (2 * n + 7)
    assert (27 * n < flops) == (n >= 5)
