"""Errata of the explicit model and of the operators, over the field: printed forms refuted, corrected ones proved.

Those of the recursions are decided in test_errata.py, on floats and over the field.
"""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

from linksweep.algorithms.explicit.augmented_bodies import augmented_bodies
from linksweep.algorithms.explicit.explicit_model import explicit_model
from linksweep.algorithms.explicit.explicit_model_direct import explicit_model_direct
from linksweep.algorithms.rigid_body.kinematics import poses
from linksweep.functions.computation import RobotFunction
from linksweep.mechanism.sweeps import Unrolled
from linksweep.papers.exact.field import Residue
from linksweep.papers.exact.points import Draw, Point, Structure
from linksweep.papers.exact.proof import ExactOperators
from linksweep.spatial.algebra import Vec

CHAINS = ("RRRRR", "RPRRP", "PRPR")


def sweep_of(text: str) -> tuple[Point, Unrolled]:
    draw = Draw(text)
    point = Point(Structure(text).model(draw), draw)
    return point, Unrolled(point.model, point.values["q"])


def triples(n: int) -> list[tuple[int, int, int]]:
    return list(itertools.product(range(n), range(n), range(n)))


@pytest.mark.parametrize("text", CHAINS)
def test_kang_properties_as_corrected(text: str):
    """(P2)-(P10) of the direct terms of (10); i is the torque."""
    direct = explicit_model_direct(sweep_of(text)[1])
    P1, P2, P3, n = direct.P.p1, direct.P.p2, direct.P.p3, len(text)
    assert all(direct.I[i, k] == direct.I[k, i] for i, k in direct.I)  # (P2)
    for i, j, k in triples(n):
        assert P1(i, j, k) == P1(i, k, j)  # (P3)
        assert j > min(i, k) or P1(i, j, k) == -P1(k, j, i)  # (P4)
        assert not ((i == k and j <= i) or (i == j and k <= i)) or P1(i, j, k) == 0  # (P5)
        assert j < k or P2(i, j, k) == 0  # (P6)
        assert P3(i, j, k) == -P3(j, i, k)  # (P7), (P8)
        assert i >= j or P3(i, j, k) == P2(k, i, j)  # (P9), (P10)


def test_kang_properties_as_printed():
    direct = explicit_model_direct(sweep_of("RRRRR")[1])
    P1, P2, P3 = direct.P.p1, direct.P.p2, direct.P.p3
    places = triples(5)
    assert any(P1(i, j, k) != -P1(j, k, i) for i, j, k in places if j <= k < i)  # (P4)
    assert any(P2(i, j, k) != 0 for i, j, k in places if j <= k)  # (P6)
    assert any(P3(i, j, k) != -P2(k, i, j) for i, j, k in places if k < j and i < j)  # (P9)
    assert any(P3(j, i, k) != -P2(k, i, j) for i, j, k in places if j < k < i)  # (P10)


@pytest.mark.parametrize("text", CHAINS)
def test_kang_split_of_the_power_array(text: str):
    """ "Identical", says the paper: from three turning joints on only what stands at each product of rates is."""
    _, sweep = sweep_of(text)
    a, b = explicit_model(sweep).P, explicit_model_direct(sweep).P
    assert all(a.of_product(*place) == b.of_product(*place) for place in triples(len(text)))
    assert any(a[place] != b[place] for place in triples(len(text))) == (text.count("R") >= 3)


@pytest.mark.parametrize("text", CHAINS)
def test_kang_28_mass_centres_and_17_momentum(text: str):
    point, sweep = sweep_of(text)
    at = poses(sweep)
    bodies = augmented_bodies(sweep, at)
    centres, masses = [p.point(link.com) for p, link in zip(at, sweep.links, strict=True)], [
        link.M.mass for link in sweep.links
    ]  # fmt: skip
    for k in range(len(text) - 1):
        C, M = bodies[k].C, bodies[k].M
        right = sum((c * m for c, m in zip(centres[k + 1 :], masses[k + 1 :], strict=True)), centres[k] * masses[k])
        assert right == C * M  # (28) as corrected
        assert (centres[k] + bodies[k + 1].C) != C * M  # as printed, without the masses
    rates = [rates[0] for rates in sweep.split(point.values["qd"])]
    h = point.evaluate(RobotFunction(point.model, "momentum", reference="base"))
    linear = total(body.P * rate for body, rate in zip(bodies, rates, strict=True))
    about_centres = total(body.L * rate for body, rate in zip(bodies, rates, strict=True))
    about_origin = about_centres + total(body.C.cross(body.P) * rate for body, rate in zip(bodies, rates, strict=True))
    assert list(linear) == h[3:] and list(about_origin) == h[:3]  # (17) as corrected
    assert "R" not in text or list(about_centres) != h[:3]  # as printed


def total(vectors: Any) -> Vec:
    first, *others = vectors
    for vector in others:
        first = first + vector
    return first


@pytest.mark.parametrize("text", ["RRR", "RPRP"])
def test_what_armature_changes_in_appendix_a(text: str):
    """(a.1), (a.47) and (3.20) need R once a joint has armature; the structure gives it to every second one."""
    draw = Draw(text)
    o = ExactOperators(Point(Structure(text).model(draw), draw), draw)
    x = np.array(draw.numbers(6 * o.N), dtype=object)
    y = x[: o.N]
    assert ((o.D @ y) != (o.H @ o.P @ o.H.T) @ y).any()
    assert ((o.D @ y) == (o.H @ o.P @ o.H.T + o.R) @ y).all()
    assert ((o.mass @ y) != (o.H @ o.phi @ o.M @ o.phi.T @ o.H.T) @ y).any()
    printed = o.P + o.psi_tilde @ o.P + o.P @ o.psi_tilde.T
    assert ((o.psi @ o.M @ o.psi.T) @ x != printed @ x).any()
    assert isinstance((o.D @ y)[0], Residue)
