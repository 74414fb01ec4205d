"""Functions as SymPy expressions: they evaluate to the numeric functions, and a two-link arm is the textbook's."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
import sympy as sp

import linksweep as ls
from linksweep.backends.symbolic import as_fraction
from linksweep.robots.general_arm import GeneralArm

FUNCTIONS = [
    "mass_matrix", "mass_matrix_inverse", "inverse_dynamics", "forward_dynamics", "bias_forces", "gravity_forces",
    "effective_inertia", "inertia_power", "coriolis_matrix", "kinetic_energy", "potential_energy", "center_of_mass",
    ("pose", "tool"), ("jacobian", "tool"), ("jacobian", "tool", "local"),
]  # fmt: skip


@pytest.fixture(autouse=True)
def interpreted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("linksweep.support.settings.backend", "interpreter")


def name_of(item: Any) -> str:
    return item if isinstance(item, str) else "-".join(item)


def sliding_arm() -> ls.Robot:
    """A turn and a slide across it, with decimals, armature and an angle offset of no simple fraction of a turn."""
    rows = [
        {"d": 0.3, "theta": 0.4, "mass": 2.5, "com": (0.1, 0, 0.02), "inertia": (0.03, 0.04, 0.05), "armature": 0.07},
        {"alpha": np.pi / 2, "a": 0.25, "joint": "P", "mass": 1.2, "com": (0, 0.03, 0.15), "inertia": (0.01,) * 3},
    ]
    return ls.Robot.from_dh(rows, convention="modified")


ROBOTS = {"planar2": ls.robots.planar(2), "planar3": ls.robots.planar(3), "turn and slide": sliding_arm()}


@pytest.mark.parametrize("simplify", [False, True], ids=["written", "simplified"])
@pytest.mark.parametrize("item", FUNCTIONS, ids=name_of)
@pytest.mark.parametrize("robot", ROBOTS.values(), ids=ROBOTS)
def test_equals_the_numeric_function(robot: ls.Robot, item: Any, simplify: bool):
    found = robot.symbolic(item, simplify=simplify, parameters=())
    numeric = robot.compile(item)
    assert tuple(found.symbols) == numeric.inputs
    inputs = np.random.default_rng(3).uniform(-2, 2, (len(found.symbols), 4, robot.nv))
    expected = numeric(*inputs)
    assert np.abs(found.lambdify()(*inputs) - expected).max() <= 1e-12 * np.abs(expected).max()


@pytest.mark.parametrize("method", ls.robots.planar(2).methods("inverse_dynamics"))
def test_every_method_gives_the_same_torques(method: str):
    """Not to rounding: the same polynomial, coefficient by coefficient."""
    robot = ls.robots.planar(2)
    one, other = (robot.symbolic("inverse_dynamics", m, simplify=True, parameters=()) for m in (method, "newton_euler"))
    assert one.expressions == other.expressions


def two_links() -> tuple[ls.Robot, sp.Matrix, sp.Symbol]:
    """A planar arm with unequal links, and the textbook's mass matrix for it."""
    l1, c1, c2 = 0.5, 0.2, 0.3
    m1, m2, I1, I2 = 2.0, 1.5, 0.03, 0.02
    model = ls.robots.planar_model(2)
    links = []
    for link, m, c, I in zip(model.links, (m1, m2), (c1, c2), (I1, I2), strict=True):  # noqa: E741
        inertial = replace(link.inertial, mass=m, com=(c, 0.0, 0.0), inertia=((0.0, 0, 0), (0, I, 0), (0, 0, I)))
        links.append(replace(link, inertial=inertial))
    outer = links[1].joint
    links[1] = replace(links[1], joint=replace(outer, placement=replace(outer.placement, position=(l1, 0.0, 0.0))))
    q2 = sp.Symbol("q2", real=True)
    l1, c1, c2, m1, m2, I1, I2 = (sp.Rational(str(x)) for x in (l1, c1, c2, m1, m2, I1, I2))
    m12 = I2 + m2 * (c2**2 + l1 * c2 * sp.cos(q2))
    m22 = I2 + m2 * c2**2
    m11 = I1 + m1 * c1**2 + I2 + m2 * (l1**2 + c2**2 + 2 * l1 * c2 * sp.cos(q2))
    return ls.Robot(replace(model, links=tuple(links))), sp.Matrix([[m11, m12], [m12, m22]]), q2


@pytest.mark.parametrize("simplify", [False, True], ids=["written", "simplified"])
def test_two_link_arm_is_the_textbooks(simplify: bool):
    """M, and Rodriguez's wish: explicit scalar elements of its inverse. Equal as expressions, not as numbers."""
    robot, M, _ = two_links()
    inverse = sp.Matrix([[M[1, 1], -M[0, 1]], [-M[1, 0], M[0, 0]]]) / (M[0, 0] * M[1, 1] - M[0, 1] ** 2)
    for name, expected in (("mass_matrix", M), ("effective_inertia", M), ("mass_matrix_inverse", inverse)):
        difference = robot.symbolic(name, simplify=simplify, parameters=()).expressions - expected
        assert difference.applyfunc(lambda x: sp.simplify(sp.expand_trig(x))) == sp.zeros(2, 2), name


def test_inertias_as_symbols():
    """The same arm with its bodies left as letters: M is linear in them."""
    robot, _, q2 = two_links()
    letters = robot.symbolic("mass_matrix", parameters=("inertia",), simplify=True)
    m2, mx2, my2, ZZ1, ZZ2 = sp.symbols("m2 mx2 my2 ZZ1 ZZ2", real=True)
    l1 = sp.Rational(1, 2)
    m12 = ZZ2 + l1 * (mx2 * sp.cos(q2) - my2 * sp.sin(q2))
    assert sp.expand(
        letters.expressions - sp.Matrix([[ZZ1 + m2 * l1**2 + 2 * m12 - ZZ2, m12], [m12, ZZ2]])
    ) == sp.zeros(2)
    assert set(letters.symbols) == {"q", "inertia"} and len(letters.symbols["inertia"]) == 20
    with_gravity = robot.symbolic("gravity_forces", parameters=("gravity",)).expressions
    assert {str(s) for s in with_gravity.free_symbols} >= {"gx", "gy"}


@pytest.mark.slow
def test_arm_of_letters():
    """Two parallel axes with every number a letter: the textbook's matrix, and its determinant below the inverse."""
    arm = GeneralArm("RR", (0, 0))
    a2, m1, m2, cx1, cy1, cx2, cy2, ZZ1, ZZ2, q2 = sp.symbols("a2 m1 m2 cx1 cy1 cx2 cy2 ZZ1 ZZ2 q2", real=True)
    m22 = ZZ2 + m2 * (cx2**2 + cy2**2)
    m12 = m22 + m2 * a2 * (cx2 * sp.cos(q2) - cy2 * sp.sin(q2))
    m11 = ZZ1 + m1 * (cx1**2 + cy1**2) + m2 * a2**2 + 2 * m12 - m22
    M = arm.symbolic("mass_matrix", simplify=True).expressions
    assert (M - sp.Matrix([[m11, m12], [m12, m22]])).applyfunc(sp.expand) == sp.zeros(2)
    inverse = arm.symbolic("mass_matrix_inverse", simplify=True).expressions
    below = [sp.fraction(sp.together(x))[1] for x in inverse]
    assert all(sp.expand(x - below[0]) == 0 for x in below)
    assert sp.simplify(sp.expand(inverse[0, 0] * (m11 * m22 - m12**2) - m22)) == 0


def test_coriolis_terms_are_christoffel_symbols_of_the_textbooks_matrix():
    robot, M, q2 = two_links()
    q = (sp.Symbol("q1", real=True), q2)
    P = robot.symbolic("inertia_power", simplify=True, parameters=()).expressions
    for i in range(2):
        for j in range(2):
            for k in range(2):
                symbol = (M[i, j].diff(q[k]) + M[i, k].diff(q[j]) - M[j, k].diff(q[i])) / 2
                assert sp.simplify((P[i, j, k] + P[i, k, j]) / 2 - symbol) == 0


def test_simplified_puts_equal_terms_together():
    robot = ls.robots.planar(2)
    q1, q2 = sp.symbols("q1 q2", real=True)
    pose = robot.symbolic(("pose", "tool"), simplify=True, parameters=()).expressions
    assert pose[0, 0] == sp.cos(q1 + q2) and pose[0, 3] == sp.cos(q1) + sp.cos(q1 + q2)
    M = robot.symbolic("mass_matrix", simplify=True, parameters=()).expressions
    assert M[0, 0] == sp.cos(q2) + sp.Rational(5, 3)
    written, short = (
        robot.symbolic("inverse_dynamics", "kane", simplify=s, parameters=()).operations for s in (False, True)
    )
    assert short < written


@pytest.mark.slow
def test_inverse_has_one_denominator():
    """The determinant of M but for a number, and M times the inverse is the identity: in exact fractions."""
    robot = ls.robots.planar(3)
    M, inverse = (robot.symbolic(name, simplify=True, parameters=()) for name in ("mass_matrix", "mass_matrix_inverse"))
    assert len({sp.fraction(x)[1] for x in inverse.flat}) == 1
    angles = [2 * sp.atan(sp.Rational(k, 5)) for k in (1, -2, 7)]  # their sines and cosines are fractions
    values = dict(zip(M.symbols["q"], angles, strict=True))
    a, b = (sp.expand_trig(found.expressions).subs(values) for found in (M, inverse))
    assert (a * b).applyfunc(sp.nsimplify) == sp.eye(3)


def test_names_and_numbers():
    robot = ls.robots.planar(2)
    by_joint = robot.symbolic("inverse_dynamics", names="joints", parameters=())
    assert [str(s) for s in by_joint.symbols["qdd"]] == ["qdd_joint1", "qdd_joint2"]
    assert robot.symbolic("mass_matrix", parameters=()).expressions.atoms(sp.Float) == set()
    assert robot.symbolic("mass_matrix", numbers="float", parameters=()).expressions.atoms(sp.Float)
    floats = robot.symbolic("mass_matrix", numbers="float", simplify=True, parameters=())
    assert abs(float(floats.expressions[1, 1]) - 1 / 3) < 1e-15
    with pytest.warns(ls.ModelWarning, match="root_joint"):  # a base without mass
        free = ls.robots.planar(1).with_base("floating")
    names = [str(s) for s in free.symbolic("potential_energy", names="joints", parameters=()).symbols["q"]]
    assert names[:2] == ["q_root_joint_1", "q_root_joint_2"] and names[-1] == "q_joint1"


@pytest.mark.parametrize(
    ("number", "fraction"),
    [
        (1 / 3, Fraction(1, 3)),
        (0.03 + 2 * 0.04, Fraction(11, 100)),
        (0.1 + 0.2, Fraction(3, 10)),
        (9.81, Fraction(981, 100)),
        (-4.8 * 0.4318, Fraction(-207264, 100000)),
        (np.sqrt(2), Fraction("1.4142135623730951")),
        (1.5 - 81 / 62, Fraction(6, 31)),
        (0.0, Fraction(0)),
    ],
)
def test_fractions(number: float, fraction: Fraction):
    assert as_fraction(number) == fraction
    assert abs(float(fraction) - number) <= 1e-14 * abs(number)


@pytest.mark.parametrize(
    ("arguments", "options", "words"),
    [
        (("mass_matrix",), {"limit": 5}, "operations as a formula, more than limit=5"),
        (("mass_matrix_inverse",), {"limit": 3, "simplify": True}, "terms, more than limit=3"),
        (("mass_matrix",), {"limit": 0}, "limit is 0, expected a whole number"),
        (("mass_matrix",), {"limit": "many"}, "limit is 'many'"),
        (("mass_matrix",), {"numbers": "decimal"}, "expected 'rational' or 'float'"),
        (("mass_matrix",), {"names": "links"}, "expected 'numbers'"),
        (("mass_matrx",), {}, "did you mean 'mass_matrix'"),
        (("inverse_dynamics", "kain"), {}, "did you mean 'kane'"),
        ((("pose", "hand"),), {}, "no frame 'hand'"),
    ],
)
def test_bad_arguments(arguments: tuple[Any, ...], options: dict[str, Any], words: str):
    with pytest.raises(ls.ArgumentError) as error:
        ls.robots.planar(3).symbolic(*arguments, **options, parameters=())
    assert words in str(error.value) and "\n" not in str(error.value)


def test_arms_that_are_too_large_say_so():
    with pytest.raises(ls.ArgumentError, match=r"takes [\d,]+ operations as a formula, more than limit=20,000"):
        ls.robots.puma560().symbolic("mass_matrix_inverse")


def test_without_sympy():
    code = (
        "import sys; sys.modules['sympy'] = None\nimport linksweep as ls\n"
        "try:\n    ls.robots.planar(2).symbolic('mass_matrix')\n"
        "except ls.BackendError as error:\n    print(error)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "pip install 'linksweep[symbolic]'" in done.stdout


@pytest.mark.parametrize("inputs", [(), (1.0, 2.0), (np.zeros(3), np.zeros(2)), (np.zeros(2),) * 3])
def test_lambdify_says_which_arrays_it_takes(inputs: tuple[object, ...]):
    function = ls.robots.planar(2).symbolic("bias_forces", parameters=()).lambdify()
    with pytest.raises(ls.ArgumentError, match=r"expected q \(\.\.\., 2\), qd \(\.\.\., 2\)"):
        function(*inputs)
