"""The spatial operators on any tree: a free base, ball joints, planar joints, branches. Appendix A holds there, too."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
import pytest
from robots_for_tests import nested, random_inertial, random_rotation

import linksweep as ls
from linksweep.model.assembly import Part, assemble
from linksweep.model.model import Joint, Placement
from linksweep.papers.spatial_operators import SpatialOperators
from linksweep.papers.spatial_operators.identities import IDENTITIES

KINDS = ("free", "revolute", "spherical", "prismatic", "revolute", "planar", "helical", "revolute", "spherical")
PARENTS = (-1, 0, 1, 2, 1, 0, 5, 6, 5)


@pytest.fixture(autouse=True)
def interpreted(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("linksweep.support.settings.backend", "interpreter")


@functools.cache
def tree(armature: float = 0.0, kinds: tuple[str, ...] = KINDS) -> ls.Robot:
    random = np.random.default_rng(5)
    parts = []
    for k, (kind, parent) in enumerate(zip(kinds, PARENTS, strict=True)):
        at = Placement(nested(random_rotation(random)), tuple(random.uniform(-0.5, 0.5, 3).tolist()))
        axis = tuple(random.normal(size=3).tolist())
        joint = Joint(f"j{k}", kind, axis, at, armature=armature, pitch=0.1 if kind == "helical" else 0.0)
        parts.append(Part(f"b{k}", "ground" if parent < 0 else f"b{parent}", joint, random_inertial(random)))
    order = [0, 5, 1, 2, 6, 4, 3, 8, 7]  # of the document: not that of the tree
    return ls.Robot(assemble("tree", [parts[k] for k in order], base="ground", gravity=(0.7, -1.3, -9.6)))


@functools.cache
def operators_of(case: str) -> SpatialOperators:
    kinds = ("revolute", *KINDS[1:]) if case == "fixed base" else KINDS
    robot = tree(0.3 if case == "armature" else 0.0, kinds)
    return ls.operators(robot, robot.random(np.random.default_rng(1)), tip=("b3", "b4", "b7"))


def assert_equal(left: Any, right: Any, *terms: Any, tolerance: float = 1e-11) -> None:
    a, b, *others = (x if isinstance(x, np.ndarray) else x.todense() for x in (left, right, *terms))
    scale = max(float(np.abs(x).max(initial=0.0)) for x in (a, b, *others))
    assert a.shape == b.shape and np.abs(a - b).max(initial=0.0) <= tolerance * max(scale, 1e-300)


CASES = ("free base", "fixed base", "armature")


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("identity", IDENTITIES)
def test_identity(identity: str, case: str):
    for left, right, *terms in IDENTITIES[identity](operators_of(case)):
        assert_equal(left, right, *terms)


@pytest.mark.cases(1)
@pytest.mark.parametrize("case", CASES)
def test_they_are_the_robots_own(case: str):
    o = operators_of(case)
    robot, q = o.robot, o.q
    rate = np.random.default_rng(2).normal(size=robot.nv)
    M = robot.mass_matrix(q)[np.ix_(o.order, o.order)]
    assert_equal(o.mass, M)
    assert_equal(o.mass_inverse, np.linalg.inv(M), tolerance=1e-10)
    J = np.concatenate([robot.jacobian(q, frame) for frame in o.tip])
    assert_equal(o.J, J[:, o.order])
    assert_equal(o.J @ o.mass_inverse @ o.J.T, robot.operational_inertia_inverse(q, list(o.tip)), tolerance=1e-10)
    bias, gravity = robot.bias_forces(q, rate), robot.gravity_forces(q)
    assert_equal(o.from_paper(o.C(o.to_paper(rate))), bias - gravity)
    assert_equal(o.from_paper(o.gravity_forces()), gravity)
    drift = np.concatenate([robot.jacobian_bias(q, rate, frame) for frame in o.tip])
    assert_equal(o.Jdot_thetadot(o.to_paper(rate)), drift)


def test_blocks_of_joints_with_several_freedoms():
    o = operators_of("free base")
    D = o.D.todense()
    assert D.shape == (o.robot.nv, o.robot.nv) and o.H.shape == (o.robot.nv, 6 * o.N)
    assert np.linalg.matrix_rank(D[-6:, -6:]) == 6 and not D[:-6, -6:].any()  # the free base is the last block
    names = (*o.links, "ground")
    carried = {name: names[carrier - 1] for name, carrier in zip(o.links, o.carriers, strict=True)}
    assert carried == {f"b{k}": "ground" if parent < 0 else f"b{parent}" for k, parent in enumerate(PARENTS)}
