"""Kang's explicit model I*, P*, its properties (P1)-(P10) as corrected, and the inverse dynamics by it."""

from __future__ import annotations

import collections
import dataclasses
import functools
import itertools
from typing import Any

import numpy as np
import pytest
from robots_for_tests import CHAINS, at_rest, big, close, difference, floats, interpreted, kinematics, robot, samples

import linksweep as ls
from linksweep.algorithms.explicit.augmented_bodies import augmented_bodies
from linksweep.algorithms.explicit.explicit_model import explicit_model
from linksweep.algorithms.explicit.explicit_model_direct import explicit_model_direct
from linksweep.algorithms.inverse.influence_dynamics import influence_dynamics
from linksweep.algorithms.rigid_body.kinematics import poses
from linksweep.errors import ArgumentError
from linksweep.mechanism.canonical import canonical
from linksweep.mechanism.sweeps import Unrolled
from linksweep.model.assembly import Part, assemble
from linksweep.model.model import Inertial
from linksweep.spatial.algebra import ZERO_FORCE, Vec

SERIAL = ("puma560", "stanford", "six_axis", "planar3", *CHAINS[:5])
TREES = ("tree4", "tree9", "urdf")
SHUFFLE = [2, 0, 3, 1]  # joints of a chain as its document may list them


# ---- the two models --------------------------------------------------------------------------------------------


@functools.cache
def models(name: str) -> tuple[Any, Any, Unrolled]:
    """The model by augmented bodies and by the direct sum at one configuration, on floats."""
    bot = robot(name)
    (q,) = samples(bot, count=1, seed=3)
    sweep = Unrolled(canonical(bot.model), q.tolist())
    return explicit_model(sweep), explicit_model_direct(sweep), sweep


def array(power: Any, n: int) -> np.ndarray:
    element = power if callable(power) else lambda *place: power[place]
    return np.array([[[element(i, j, k) for k in range(n)] for j in range(n)] for i in range(n)])


def symmetrised(P: np.ndarray) -> np.ndarray:
    return (P + np.swapaxes(P, -1, -2)) / 2


def christoffel(dM: np.ndarray) -> np.ndarray:
    """Of the first kind, from dM[..., i, j, k] = dM_ij/dq_k."""
    return (dM + np.swapaxes(dM, -1, -2) - np.moveaxis(dM, -1, -3)) / 2


@pytest.mark.parametrize("name", (*SERIAL, *TREES))
def test_two_ways_agree(name: str):
    """I* at once, P* once it is symmetrised: its split over (j, k) and (k, j) differs."""
    bot = robot(name)
    (q,) = samples(bot, 5, count=1)
    names = ["effective_inertia", "inertia_power"]
    I, P = interpreted(bot, names, method="augmented_bodies")(q)  # noqa: E741
    I_direct, P_direct = interpreted(bot, names, method="direct")(q)
    assert close(I, bot.mass_matrix(q), 1e-11) and close(I_direct, I, 1e-11)
    assert close(symmetrised(P), symmetrised(P_direct), 1e-11)


def test_a_base_with_several_trees():
    """Each has its own first joint, and in the rates of the base its own axis."""
    arms = {name: (robot(kind), np.eye(4)) for name, kind in (("a", "tree4"), ("b", "stanford"), ("c", "mixed3"))}
    arms["b"][1][:3, 3] = 1.0, -2.0, 0.5
    arms["b"][1][:3, :3] = [[0, -1, 0], [1, 0, 0], [0, 0, 1]]
    bot = ls.scene(arms, gravity=(0.3, -1.0, -9.7))
    q, qd, qdd = samples(bot, 5)
    options = {"base_motion": True, "f_ext": True}
    rng = np.random.default_rng(2)
    moved = rng.normal(size=(len(q), len(bot.model.links), 6)), rng.normal(size=(len(q), 9))
    tau = interpreted(bot, "inverse_dynamics", method="influence", **options)(q, qd, qdd, *moved)
    assert close(tau, interpreted(bot, "inverse_dynamics", **options)(q, qd, qdd, *moved), 1e-10)
    names = ["effective_inertia", "inertia_power"]
    I, P = interpreted(bot, names, method="augmented_bodies")(q)  # noqa: E741
    assert close(I, bot.mass_matrix(q), 1e-11)
    assert close(symmetrised(P), symmetrised(interpreted(bot, names, method="direct")(q)[1]), 1e-11)


@pytest.mark.parametrize("name", (*SERIAL, *TREES))
def test_power_array_is_christoffels(name: str):
    bot = robot(name)
    (q,) = samples(bot, 5, count=1)
    dM = interpreted(bot, "mass_matrix").derivative("q")(q)
    P = interpreted(bot, "inertia_power")(q)
    assert close(symmetrised(P), christoffel(dM), 1e-11)


@pytest.mark.parametrize("name", ["puma560", "mixed5", "tree4"])
def test_against_finite_differences(name: str):
    bot = robot(name)
    (q,) = samples(bot, count=1)
    mass_matrix = functools.partial(bot.mass_matrix, method="covariance" if name == "mixed5" else "composite")
    P = symmetrised(bot.explicit_model(q)[1])
    assert np.abs(P - christoffel(difference(mass_matrix, q))).max() <= 1e-6


def test_the_split_of_the_power_array_differs():
    """ "Identical", says the paper: only after symmetrising."""
    by_bodies, direct, _ = models("mixed5")
    assert np.abs(array(by_bodies.P, 5) - array(direct.P, 5)).max() > 1e-3


@pytest.mark.parametrize("name", CHAINS[:6])
def test_number_of_independent_elements(name: str):
    model, _, sweep = models(name)
    n = len(sweep.links)
    assert len(model.pairs) == n * (n + 1) // 2
    for part in (model.P.P1, model.P.P2, model.P.P3):
        assert len(part) == n * (n + 1) * (2 * n + 1) // 6
        assert all(i <= k and j <= k for i, j, k in part)
    nonzero = [value for (i, _, k), value in model.P.P1.items() if i != k]
    assert len(nonzero) == (n**3 - n) // 3  # without the zeros of (P5)


@pytest.mark.parametrize("name", ["puma560", "stanford", "mixed3", "mixed5", "mixed8", "chain7"])
class TestProperties:
    """(P1)-(P10) of the direct terms of (10), which know nothing of them, as corrected; i is the torque."""

    def parts(self, name: str) -> tuple[int, np.ndarray, np.ndarray, np.ndarray]:
        _, direct, sweep = models(name)
        n = len(sweep.links)
        return n, array(direct.P.p1, n), array(direct.P.p2, n), array(direct.P.p3, n)

    def test_p1_positive_definite(self, name: str):
        _, direct, sweep = models(name)
        n = len(sweep.links)
        assert np.linalg.eigvalsh([[direct.I[i, k] for k in range(n)] for i in range(n)]).min() > 0

    def test_p2_symmetric(self, name: str):
        _, direct, _ = models(name)
        assert all(abs(direct.I[i, k] - direct.I[k, i]) < 1e-13 for i, k in direct.I)

    def test_p3_first_term_symmetric(self, name: str):
        _, P1, _, _ = self.parts(name)
        assert close(P1, np.swapaxes(P1, 1, 2), 1e-13)

    def test_p4_first_term_skew_in_torque_and_outer_rate(self, name: str):
        n, P1, _, _ = self.parts(name)
        for i, j, k in itertools.product(range(n), repeat=3):
            if j <= min(i, k):
                assert P1[i, j, k] == pytest.approx(-P1[k, j, i], abs=1e-13)

    def test_p5_zeros_of_the_first_term(self, name: str):
        n, P1, _, _ = self.parts(name)
        for i, j, k in itertools.product(range(n), repeat=3):
            if (i == k and j <= i) or (i == j and k <= i):
                assert abs(P1[i, j, k]) < 1e-13

    def test_p6_zeros_of_the_second_term(self, name: str):
        n, _, P2, _ = self.parts(name)
        assert not any(P2[i, j, k] for i, j, k in itertools.product(range(n), repeat=3) if j >= k)

    def test_p7_third_term_skew(self, name: str):
        _, _, _, P3 = self.parts(name)
        assert close(P3, -np.swapaxes(P3, 0, 1), 1e-13)

    def test_p8_zeros_of_the_third_term(self, name: str):
        n, _, _, P3 = self.parts(name)
        assert not any(P3[i, i, k] for i, k in itertools.product(range(n), repeat=2))

    def test_p9_p10_third_term_by_the_second(self, name: str):
        n, _, P2, P3 = self.parts(name)
        for i, j, k in itertools.product(range(n), repeat=3):
            if i < j:
                assert P3[i, j, k] == pytest.approx(P2[k, i, j], abs=1e-13)


def test_properties_as_printed_do_not_hold():
    """What the corrections of (P4), (P6), (P9), (P10) replace."""
    _, P1, P2, P3 = TestProperties().parts("chain7")
    triples = list(itertools.product(range(7), repeat=3))
    assert max(abs(P1[i, j, k] + P1[j, k, i]) for i, j, k in triples if j <= k < i) > 1e-2  # (P4)
    assert max(abs(P2[i, j, k]) for i, j, k in triples if j <= k) > 1e-2  # (P6)
    assert max(abs(P3[i, j, k] + P2[k, i, j]) for i, j, k in triples if k < j and i < j) > 1e-2  # (P9)
    assert max(abs(P3[j, i, k] + P2[k, i, j]) for i, j, k in triples if j < k < i) > 1e-2  # (P10)


@pytest.mark.parametrize("name", ["mixed5", "chain7"])
def test_properties_fill_the_rest(name: str):
    """Each term of the augmented bodies has its own properties too, so what they fill is consistent with (25)-(27)."""
    model, _, sweep = models(name)
    n = len(sweep.links)
    for part, filled in ((model.P.P1, model.P.p1), (model.P.P2, model.P.p2), (model.P.P3, model.P.p3)):
        for place, value in part.items():
            assert filled(*place) == pytest.approx(value, abs=1e-13)
    assert close(array(model.P.p1, n), np.swapaxes(array(model.P.p1, n), 1, 2), 1e-13)


# ---- augmented bodies ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["puma560", "stanford", "mixed5", "chain7", *TREES])
def test_augmented_bodies_and_partial_momenta(name: str):
    """M_k, C_k, III^k by their sums (15), (18); momenta (11), (16), (17) against the sum over the links."""
    bot = robot(name)
    q, qd = samples(bot, count=2)
    sweep = Unrolled(canonical(bot.model), q.tolist())
    bodies = augmented_bodies(sweep, poses(sweep))
    rates = [values[0] for values in sweep.split(qd.tolist())]
    links = list(zip(bot.model.links, kinematics(bot.model, q, qd), strict=True))
    linear, angular = np.zeros(3), np.zeros(3)
    for link, at in links:
        v = at.v + np.cross(at.w, at.c - at.p)
        linear += link.inertial.mass * v
        spin = at.R @ np.array(link.inertial.inertia) @ at.R.T @ at.w
        angular += spin + link.inertial.mass * np.cross(at.c, v)
    P = sum(rate * np.array(list(body.P)) for rate, body in zip(rates, bodies, strict=True))
    L = sum(
        rate * (np.array(list(body.L)) + np.cross(np.array(list(body.C)), np.array(list(body.P))))
        for rate, body in zip(rates, bodies, strict=True)
    )
    assert close(P, linear, 1e-12) and close(L, angular, 1e-12)

    for k, body in enumerate(bodies):
        carried = [pair for i, pair in enumerate(links) if k in sweep.model.path(i)]
        masses = np.array([link.inertial.mass for link, _ in carried])
        centres = np.array([at.c for _, at in carried])
        C = masses @ centres / masses.sum()
        III = sum(at.R @ np.array(link.inertial.inertia) @ at.R.T for link, at in carried)
        for m, r in zip(masses, centres - C, strict=True):
            III = III + m * (r @ r * np.eye(3) - np.outer(r, r))  # (18): m_j and r_j, not m_k
        assert pytest.approx(masses.sum()) == body.M
        assert close(list(body.C), C, 1e-12)
        assert close([list(row) for row in body.III.rows()], III, 1e-12)


# ---- dynamics --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("n", range(1, 9))
@pytest.mark.parametrize("seed", range(3))
def test_inverse_dynamics_on_random_chains(n: int, seed: int):
    bot = ls.robots.chain(n, seed=100 * seed + n, joints="mixed" if seed else "R")
    q, qd, qdd = samples(bot, 8)
    rng = np.random.default_rng(seed)
    f_ext, base = rng.normal(size=(8, n, 6)), rng.normal(size=(8, 9))
    options = {"f_ext": True, "base_motion": True, "dissipation": True}
    tau = interpreted(bot, "inverse_dynamics", method="influence", **options)(q, qd, qdd, f_ext, base)
    assert close(tau, interpreted(bot, "inverse_dynamics", **options)(q, qd, qdd, f_ext, base), 1e-10)


@pytest.mark.parametrize("name", ["puma560", "stanford", "six_axis", "planar3", "mixed5", *TREES])
def test_inverse_dynamics_of_bundled_robots(name: str):
    bot = robot(name)
    q, qd, qdd = samples(bot, 16)
    tau = bot.inverse_dynamics(q, qd, qdd, method="influence")
    assert close(tau, bot.inverse_dynamics(q, qd, qdd), 1e-10)
    assert close(bot.bias_forces(q, qd, method="influence"), bot.bias_forces(q, qd), 1e-10)
    assert close(bot.gravity_forces(q, method="influence"), bot.gravity_forces(q), 1e-10)


def test_parts_of_the_torque():
    bot = robot("puma560")
    q, qd, qdd = samples(bot, 4)
    tau, parts = bot.inverse_dynamics(q, qd, qdd, method="influence", details=True)
    assert close(parts.inertial, np.einsum("...ij,...j->...i", bot.mass_matrix(q), qdd), 1e-11)
    assert close(parts.gravity, bot.gravity_forces(q), 1e-11)
    assert close(parts.inertial + parts.velocity + parts.gravity, tau, 1e-12)


@pytest.mark.parametrize("name", ["puma560", "mixed5", "tree4"])
def test_explicit_model_gives_the_torques(name: str):
    bot = robot(name)
    q, qd, qdd = samples(bot, 6)
    for method in bot.methods("inertia_power"):
        I, P, g = bot.explicit_model(q, method)  # noqa: E741
        tau = np.einsum("bij,bj->bi", I, qdd) + np.einsum("bj,bijk,bk->bi", qd, P, qd) + g
        assert close(tau, bot.inverse_dynamics(q, qd, qdd), 1e-10)


@pytest.mark.parametrize("name", ["puma560", "stanford", "mixed5", "planar3", "tree4", "urdf"])
def test_coriolis_matrix(name: str):
    bot = robot(name)
    q, qd = samples(bot, 6, count=2)
    C = bot.coriolis_matrix(q, qd)
    assert close(np.einsum("bij,bj->bi", C, qd), bot.bias_forces(q, qd) - bot.gravity_forces(q), 1e-10)
    rate = np.einsum("bijk,bk->bij", interpreted(bot, "mass_matrix").derivative("q")(q), qd)
    skew = rate - 2 * C
    assert np.abs(skew + np.swapaxes(skew, -1, -2)).max() <= 1e-11 * max(1.0, np.abs(rate).max())
    assert np.abs(rate).max() > 1e-3


def test_any_scalar():
    """In 50 digits, from the same constants in double precision."""
    bot = robot("mixed5")
    q, qd, qdd = samples(bot)
    sweep = Unrolled(canonical(bot.model), big(q))
    rates, rises = sweep.split(big(qd)), sweep.split(big(qdd))
    tau = sweep.join(influence_dynamics(sweep, rates, rises, sweep.same(ZERO_FORCE), at_rest(Vec(*bot.gravity))).tau)
    assert close(floats(tau), bot.inverse_dynamics(q, qd, qdd), 1e-13)


def test_links_without_mass():
    """A last link without mass, and one with inertia alone: C_k is not determined, and does not matter."""
    chain = ls.robots.chain_model(4, seed=2)
    light = Inertial(0.0, (0.0, 0.0, 0.0), ((0.01, 0.0, 0.0), (0.0, 0.01, 0.0), (0.0, 0.0, 0.01)))
    empty = Inertial(0.0, (0.0, 0.0, 0.0), ((0.0, 0.0, 0.0), (0.0, 0.0, 0.0), (0.0, 0.0, 0.0)))
    for change in ({3: light}, {1: empty}, {1: empty, 3: light}):
        links = [dataclasses.replace(link, inertial=change.get(i, link.inertial)) for i, link in enumerate(chain.links)]
        bot = ls.Robot(dataclasses.replace(chain, links=tuple(links)))
        q, qd, qdd = samples(bot, 5)
        tau = interpreted(bot, "inverse_dynamics", method="influence")(q, qd, qdd)
        assert close(tau, bot.inverse_dynamics(q, qd, qdd), 1e-10)


def test_armature_is_on_the_diagonal():
    chain = ls.robots.chain_model(3, seed=2)
    links = [dataclasses.replace(link, joint=dataclasses.replace(link.joint, armature=0.5)) for link in chain.links]
    bare, bot = ls.Robot(chain), ls.Robot(dataclasses.replace(chain, links=tuple(links)))
    q, qd, qdd = samples(bot, 5)
    for method in ("augmented_bodies", "direct"):
        extra = bot.explicit_model(q, method)[0] - bare.explicit_model(q, method)[0]
        assert np.allclose(extra, 0.5 * np.eye(3), atol=1e-14)
    assert close(bot.inverse_dynamics(q, qd, qdd, method="influence"), bot.inverse_dynamics(q, qd, qdd), 1e-11)


def test_joints_in_any_order_of_the_document():
    chain = ls.robots.chain_model(4, seed=5, joints="mixed")
    parts = [
        Part(link.name, chain.links[i - 1].name if i else "base", link.joint, link.inertial)
        for i, link in enumerate(chain.links)
    ]
    ordered, shuffled = (
        ls.Robot(assemble("chain", some, base="base")) for some in (parts, [parts[i] for i in SHUFFLE])
    )
    q, qd, qdd = samples(ordered, 5)
    place = [ordered.joint_names.index(name) for name in shuffled.joint_names]
    assert place == SHUFFLE
    x = [v[:, place] for v in (q, qd, qdd)]
    assert close(
        shuffled.inverse_dynamics(*x, method="influence"), ordered.inverse_dynamics(q, qd, qdd)[:, place], 1e-11
    )
    P = ordered.explicit_model(q)[1][:, place][:, :, place][:, :, :, place]
    assert close(shuffled.explicit_model(x[0])[1], P, 1e-11)
    G, H = ordered.influence(q, "link4")
    assert close(shuffled.influence(x[0], "link4")[0], G[:, :, place], 1e-11)
    assert close(shuffled.influence(x[0], "link4")[1], H[:, :, place][:, :, :, place], 1e-11)


def test_operation_count():
    """For general geometry, fewer than the paper counts: 1647 multiplications and 1621 additions (docs/errata.md)."""
    program = interpreted(ls.robots.chain(6, seed=1), ["effective_inertia", "inertia_power"]).program
    counts = collections.Counter(node.op for node in program.steps[0].body.nodes)
    assert counts["mul"] <= 1647 and counts["add"] + counts["sub"] <= 1621


# ---- what is refused -------------------------------------------------------------------------------------------


def test_refusals():
    free, arm = robot("tree4").with_base("floating"), robot("puma560")
    q, rates = np.zeros(free.nq), np.zeros(free.nv)
    with pytest.raises(ArgumentError, match="needs 1-DOF joints"):
        free.inverse_dynamics(q, rates, rates, method="influence")
    with pytest.raises(ArgumentError, match="needs 1-DOF joints"):
        free.explicit_model(q, "augmented_bodies")
    with pytest.raises(ArgumentError, match="no method"):
        arm.coriolis_matrix(np.zeros(6), np.zeros(6), method="augmented")
