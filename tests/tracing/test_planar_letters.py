"""Planar arms with letters for their numbers: the textbook's formulas, and the robot's numbers behind them."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import linksweep as ls
from linksweep.functions.parameters import dimensions, is_planar

sp = pytest.importorskip("sympy", reason="letters are SymPy's: pip install sympy")


@pytest.fixture(autouse=True)
def interpreted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("linksweep.support.settings.backend", "interpreter")


def letters(names: str) -> Any:
    return sp.symbols(names, real=True)


def uneven(turned: bool = False) -> ls.Robot:
    """Three links that have nothing in common but the plane, hung from a base that stands elsewhere; with armature.

    turned: about x instead of z, with rods along y, one axis backwards, and mass centres beside the rods.
    """
    model = ls.robots.planar_model(3)
    links = []
    for k, link in enumerate(model.links):
        length, m, across = 0.37 + 0.1 * k, 1.3 + 0.2 * k, 0.043 + 0.01 * k
        along, beside = 0.41 * length, 0.05 if turned else 0.0
        com = (0.0, along, beside) if turned else (along, beside, 0.0)
        spread = (across, 0.01, 0.02) if turned else (0.01, 0.02, across)
        inertial = replace(link.inertial, mass=m, com=com, inertia=tuple(map(tuple, np.diag(spread).tolist())))
        before = 0.27 + 0.1 * k
        at = replace(link.joint.placement, position=(0.0, before, 0.0) if turned else (before, 0.0, 0.0))
        axis = ((1.0 if k != 1 else -1.0), 0.0, 0.0) if turned else (0.0, 0.0, 1.0)
        links.append(
            replace(link, joint=replace(link.joint, placement=at, axis=axis, armature=0.1 + k), inertial=inertial)
        )
    gravity = (0.0, 0.0, -9.81) if turned else (0.0, -9.81, 0.0)
    return ls.Robot(replace(model, links=tuple(links), gravity=gravity))


ROBOTS = {"planar2": ls.robots.planar(2), "uneven": uneven(), "turned": uneven(turned=True)}
FUNCTIONS = ["mass_matrix", "inverse_dynamics", "gravity_forces", "kinetic_energy", "potential_energy",
             "coriolis_matrix", "center_of_mass", ("pose", "tool"), ("jacobian", "tool")]  # fmt: skip


def test_two_links_are_the_textbooks():
    """Spong's and everybody's 2R arm: M, gravity, Coriolis terms, equal as expressions."""
    L1, m1, m2, c1, c2, I1, I2, g, q1, q2, qd1, qd2 = letters("L1 m1 m2 c1 c2 I1 I2 g q1 q2 qd1 qd2")
    robot = ls.robots.planar(2)
    m22 = I2 + m2 * c2**2
    m12 = m22 + m2 * L1 * c2 * sp.cos(q2)
    m11 = I1 + m1 * c1**2 + I2 + m2 * (L1**2 + c2**2 + 2 * L1 * c2 * sp.cos(q2))
    M = robot.symbolic("mass_matrix", simplify=True)
    assert (M.expressions - sp.Matrix([[m11, m12], [m12, m22]])).applyfunc(sp.expand) == sp.zeros(2)
    held = robot.symbolic("gravity_forces", simplify=True).expressions
    second = m2 * g * c2 * sp.cos(q1 + q2)
    assert (held - sp.Matrix([(m1 * c1 + m2 * L1) * g * sp.cos(q1) + second, second])).applyfunc(sp.expand) == sp.zeros(
        2, 1
    )
    moving = robot.symbolic("bias_forces", simplify=True).expressions - held
    h = m2 * L1 * c2 * sp.sin(q2)
    assert (moving - sp.Matrix([-h * (2 * qd1 * qd2 + qd2**2), h * qd1**2])).applyfunc(sp.expand) == sp.zeros(2, 1)


def test_inverse_has_the_determinant_below():
    robot = ls.robots.planar(2)
    M = robot.symbolic("mass_matrix", simplify=True).expressions
    inverse = robot.symbolic("mass_matrix_inverse", simplify=True).expressions
    assert (M * inverse).applyfunc(lambda x: sp.simplify(sp.expand_trig(x))) == sp.eye(2)
    assert str(inverse[0, 0]).startswith("(I2 + c2**2*m2)/(I1*I2 + ")  # not minus over minus


@pytest.mark.parametrize("simplify", [False, True], ids=["written", "simplified"])
@pytest.mark.parametrize("item", FUNCTIONS, ids=str)
@pytest.mark.parametrize("robot", ROBOTS.values(), ids=ROBOTS)
def test_own_numbers_give_the_numeric_function(robot: ls.Robot, item: Any, simplify: bool):
    found = robot.symbolic(item, simplify=simplify)
    numeric = robot.compile(item)
    assert tuple(found.symbols) == (*numeric.inputs, "dimensions")
    inputs = np.random.default_rng(3).uniform(-2, 2, (len(numeric.inputs), 4, robot.nv))
    expected = numeric(*inputs)
    assert np.abs(found.lambdify()(*inputs) - expected).max() <= 1e-12 * np.abs(expected).max()
    own = np.array([float(found.values[symbol]) for symbol in found.symbols["dimensions"]])
    assert np.array_equal(found.lambdify()(*inputs, own), found.lambdify()(*inputs))


def test_other_numbers_give_another_robot():
    """The letters mean what they say: a longer first link by L1 is a longer first link."""
    f = ls.robots.planar(2).symbolic("mass_matrix", simplify=True)
    q = np.random.default_rng(0).uniform(-3, 3, (5, 2))
    heavy = {"m1": 3.0, "m2": 3.0, "I1": 3 * 0.49 / 12, "I2": 3 * 0.49 / 12, "c1": 0.35, "c2": 0.35, "L1": 0.7}
    own = [heavy.get(str(s), float(f.values[s])) for s in f.symbols["dimensions"]]
    expected = ls.robots.planar(2, length=0.7, mass=3.0).mass_matrix(q)
    assert np.abs(f.lambdify()(q, own) - expected).max() <= 1e-13 * expected.max()


@pytest.mark.parametrize("robot", ROBOTS.values(), ids=ROBOTS)
def test_compiled_with_dimensions(robot: ls.Robot):
    found = dimensions(robot.canonical)
    assert found is not None and set(found.meanings) == set(found.letters)
    inputs = np.random.default_rng(5).uniform(-2, 2, (3, 7, robot.nv))
    f = robot.compile("inverse_dynamics", parameters=("dimensions",))
    expected = robot.inverse_dynamics(*inputs)
    assert np.abs(f(*inputs, found.values) - expected).max() <= 1e-12 * np.abs(expected).max()


@pytest.mark.parametrize("method", ["kane", "newton_euler", "khalil_kleinfinger"])
@pytest.mark.parametrize("robot", [ROBOTS["planar2"], ls.robots.planar(1)], ids=["planar2", "planar1"])
def test_explained_with_letters(robot: ls.Robot, method: str):
    found = robot.explain("inverse_dynamics", method, symbols=True)
    numbers = robot.explain("inverse_dynamics", method, symbols=True, parameters=())
    known = robot.symbolic("mass_matrix").values
    for a, b in zip(found.result[1], numbers.result[1], strict=True):
        assert sp.expand(sp.expand_trig(a.subs(known) - b)) == 0
    assert {"L1", "m1", "c1", "I1", "g"} <= set(map(str, found.given["dimensions"])) <= set(found.symbols)
    assert "length of link 1" in str(found) and "L_{1}" in found.markdown() and "length of link 1" in found.html()


@pytest.mark.slow
@pytest.mark.cases(1)
@pytest.mark.parametrize("method", ["kane", "newton_euler"])
def test_explained_in_described_frames(method: str):
    """Frames of the description are others than those of the recursion: letters stand for what is not 0 in them."""
    robot = uneven(turned=True)
    found = robot.explain("gravity_forces", method, symbols=True, limit=10**6)
    numeric = robot.gravity_forces([0.3, -0.4, 0.8])
    known = {s: value for s, value in zip(found.given["q"], (0.3, -0.4, 0.8), strict=True)}
    from linksweep.mechanism.canonical import canonical

    own = dimensions(canonical(robot.model, described_frames=True))
    assert own is not None
    known |= dict(zip(found.given["dimensions"], own.values, strict=True))
    inserted = np.array([float(x.subs(known)) for x in found.result[1]])
    assert np.abs(inserted - numeric).max() <= 1e-12 * np.abs(numeric).max()


def test_what_is_planar():
    assert is_planar(ls.robots.planar(5).canonical) and is_planar(uneven(turned=True).canonical)
    for robot in (ls.robots.puma560(), ls.robots.stanford(), ls.robots.chain(2), ls.robots.four_bars()):
        assert not is_planar(robot.canonical)
        assert dimensions(robot.canonical) is None
    model = ls.robots.planar_model(2)
    lifted = replace(model.links[1].inertial, com=(0.5, 0.0, 0.1))
    raised = replace(model, links=(model.links[0], replace(model.links[1], inertial=lifted)))
    assert not is_planar(ls.Robot(raised).canonical)
    assert "dimensions" not in ls.robots.chain(2).symbolic("gravity_forces").symbols


def test_gravity_askew_and_none():
    names = [str(s) for s in ls.robots.planar(1, gravity=0.0).symbolic("inverse_dynamics").symbols["dimensions"]]
    assert not any(name.startswith("g") for name in names)
    model = replace(ls.robots.planar_model(1), gravity=(math.sqrt(0.5), -math.sqrt(0.5), 0.0))
    assert {"gx", "gy"} <= {str(s) for s in ls.Robot(model).symbolic("gravity_forces").expressions.free_symbols}


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: ls.robots.puma560().symbolic("mass_matrix", parameters=("dimensions",)), "needs a planar arm"),
        (lambda: ls.robots.planar(2).symbolic("mass_matrix", parameters=("gravity", "dimensions")), "put them first"),
        (lambda: ls.robots.planar(2).symbolic("mass_matrix", parameters=("dimensions", "inertia")), "payloads only"),
        (lambda: ls.robots.planar(2).explain("inverse_dynamics", parameters=()), "needs symbols=True"),
        (lambda: ls.robots.planar(3).symbolic("forward_dynamics", simplify=True), "for letters (parameters=())"),
        (lambda: ls.robots.planar(3).symbolic("mass_matrix", limit=5), "numbers for letters (parameters=())"),
        (lambda: ls.robots.planar(2).compile("mass_matrix", parameters=("dimension",)), "did you mean 'dimensions'"),
        (lambda: ls.robots.planar(2).symbolic("bias_forces").lambdify()(np.zeros(2)), "expected q (..., 2), qd (..."),
    ],
)  # fmt: skip
def test_mistakes(call: Any, words: str):
    with pytest.raises(ls.ArgumentError) as error:
        call()
    assert words in str(error.value) and "\n" not in str(error.value)
