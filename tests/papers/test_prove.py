"""`linksweep.prove` and `check --exact`: what is proved, what is refuted by name, what is left out, what is refused."""

# pyright: reportAttributeAccessIssue=false
from __future__ import annotations

import json
import math
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from robots_for_tests import URDF, robot
from typer.testing import CliRunner

import linksweep as ls
from linksweep.algorithms.forward import composite, fd4, filter_smoother
from linksweep.algorithms.inverse import kane, khalil_kleinfinger, newton_euler
from linksweep.algorithms.mass_matrix import composite_inertia as mass_matrix
from linksweep.cli import app
from linksweep.errors import ArgumentError
from linksweep.functions.computation import RobotFunction, Together
from linksweep.functions.functions import FUNCTIONS
from linksweep.mechanism import bias
from linksweep.mechanism.canonical import canonical
from linksweep.papers.exact import Proof, Structure, patterns
from linksweep.papers.exact.field import PRIME, Residue, lifted
from linksweep.papers.exact.points import (
    Draw,
    Point,
    Rational,
    exact_canonical,
    exact_model,
    rational_point,
    rational_rotation,
)
from linksweep.robots import puma560_model
from linksweep.spatial.algebra import Motion, Vec, leaves
from linksweep.spatial.transforms import Screw
from linksweep.tracing.count import count

TREE = "F(RRR)(RPR)(RR)(RP)S"


def refuted(proof: Proof) -> set[str]:
    return {str(outcome) for outcome in proof.refuted}


# ---- what is proved ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text", [*(p.text for p in patterns(3)), "RPRRP", "HRH", "E(RP)S", "F", "F(RR)(PS)", "(RP)(PR)", TREE]
)
def test_structures(text: str):
    proof = ls.prove(text)
    assert proof.ok and not proof.refuted, refuted(proof)
    assert proof.chance < 1e-12 and len(proof.outcomes) > 50
    assert proof.trials == 1 and proof.degree < 1e6


@pytest.mark.slow
@pytest.mark.parametrize("text", [p.text for p in patterns(5) if len(p.text) > 3] + ["R" * 12, "PR" * 6, "SSSS", "FS"])
def test_more_structures(text: str):
    proof = ls.prove(text)
    assert proof.ok and proof.chance < 1e-12, refuted(proof)


def test_all_patterns_are_listed():
    assert len(patterns(5)) == 62 == len({p.text for p in patterns(5)})
    assert sorted(p.text for p in patterns(2)) == ["P", "PP", "PR", "R", "RP", "RR"]


@pytest.fixture(scope="module")
def puma() -> Proof:
    return ls.prove(robot("puma560"))


@pytest.mark.slow
def test_puma560(puma: Proof):
    assert puma.ok and puma.chance < 1e-12 and puma.trials == 1
    said = {outcome.statement for outcome in puma.outcomes}
    assert said >= {
        "inverse_dynamics", "bias_forces", "gravity_forces", "forward_dynamics", "mass_matrix", "mass_matrix_inverse",
        "forward after inverse = 1", "M symmetric", "M M^-1 = 1", "dM/dt - 2 C skew", "base parameters",
        "regressor Y pi = tau", "I* both ways", "P* both ways", "Rodriguez & Kreutz 1988",
    }  # fmt: skip
    equations = {o.what.split(",")[0] for o in puma.outcomes if o.statement == "Rodriguez & Kreutz 1988"}
    assert equations >= {f"(a.{k})" for k in range(1, 52)}
    forward = {o.what for o in puma.outcomes if o.statement == "forward_dynamics"}
    able = set(FUNCTIONS["forward_dynamics"].methods) - {"filter_smoother_ud", "filter_smoother"}
    assert forward == {f"{method} = filter_smoother" for method in able}
    chosen = {"inertia_ratio", "closeness"}  # which hold a choice by sign
    assert {f"programs of {function}" for function in FUNCTIONS} - {f"programs of {name}" for name in chosen} <= said
    stages = {o.what.removeprefix("kane, ") for o in puma.outcomes if o.statement == "programs of inverse_dynamics"}
    assert stages >= {"traced", "factored", "fused", "rolled", "rolled, without dead work", "rolled, fused"}
    assert {(e.statement, e.what) for e in puma.excluded} == {
        ("Coulomb friction", ""), ("forward_dynamics", "filter_smoother_ud"),
        *((name, "") for name in chosen),
    }  # fmt: skip


@pytest.mark.parametrize("name", ["stanford", "six_axis", "urdf", "tree4"])
def test_robots(name: str):
    proof = ls.prove(robot(name), programs=False)
    assert proof.ok and proof.chance < 1e-12, refuted(proof)


@pytest.mark.slow
def test_a_floating_robot_with_more_than_twelve_links():
    proof = ls.prove(robot("tree14").with_base("floating"))
    assert proof.ok and proof.chance < 1e-12, refuted(proof)
    assert any(e.statement == "programs" for e in proof.excluded)


def test_trials_multiply():
    once, thrice = ls.prove("RP", trials=1), ls.prove("RP", trials=3)
    assert once.degree == thrice.degree and thrice.trials == 3
    assert math.isclose(thrice.chance, once.chance**3)
    assert once.chance == max(2 * outcome.degree / PRIME for outcome in once.outcomes)


def test_more_trials_where_one_is_not_enough(monkeypatch: pytest.MonkeyPatch):
    from linksweep.papers.exact import proof

    monkeypatch.setattr(proof, "ENOUGH", 1e-30)
    assert ls.prove("R").trials == 2


def test_a_degree_beyond_the_field_is_no_proof(monkeypatch: pytest.MonkeyPatch):
    """chain(40): the bound doubles with every joint. What it cannot carry is listed, and the rest is proved."""
    from linksweep.papers.exact import proof

    monkeypatch.setattr(proof, "HOPELESS", 1e-17)
    monkeypatch.setattr(proof, "ENOUGH", 3e-17)
    found = ls.prove("RR")
    assert found.ok and found.trials == 1
    beyond = [e for e in found.excluded if "too large for this field" in e.reason]
    assert {e.statement for e in beyond} >= {"forward_dynamics"}
    assert not {(e.statement, e.what) for e in beyond} & {(o.statement, o.what) for o in found.outcomes}


def test_seeds_draw_other_points():
    models = [Structure("RR").model(Draw(seed)) for seed in (0, 0, 1)]
    assert leaves(models[0].links[0].com) == leaves(models[1].links[0].com) != leaves(models[2].links[0].com)
    other: Any = np.int64(7)
    assert ls.prove("R", seed=other).ok


@pytest.mark.filterwarnings("ignore::linksweep.errors.ModelWarning")
def test_without_inertia_only_kinematics():
    bare = ls.Robot(replace(robot("planar3").model, links=tuple(
        replace(link, inertial=type(link.inertial)()) for link in robot("planar3").model.links)))  # fmt: skip
    proof = ls.prove(bare, programs=False)
    assert proof.ok and {o.statement for o in proof.outcomes} >= {"d pose / dt = J qd"}
    assert "inverse_dynamics" not in {o.statement for o in proof.outcomes}
    assert ("dynamics", "needs mass or inertia") in {(e.statement, e.reason) for e in proof.excluded}


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::linksweep.errors.ModelWarning")
def test_a_joint_that_moves_no_inertia():
    model = robot("planar3").model
    last = replace(model.links[-1], inertial=type(model.links[-1].inertial)())
    light = ls.Robot(replace(model, links=(*model.links[:-1], last)))
    assert light.singular_joints
    proof = ls.prove(light)
    assert proof.ok, refuted(proof)
    said = {o.statement for o in proof.outcomes}
    assert "inverse_dynamics" in said and "forward_dynamics" not in said and "programs of forward_dynamics" not in said


# ---- what is refuted ----------------------------------------------------------------------------------------------


def test_a_wrong_sliding_bias_is_refuted(monkeypatch: pytest.MonkeyPatch):
    """(2.32) of Rodriguez & Kreutz as printed, without its 2."""

    def printed(link: Any, V_plus: Motion, qd: Any) -> Motion:
        right = bias.joint_bias_acceleration(link, V_plus, qd)
        return Motion(right.angular, V_plus.angular.cross((link.H_T @ qd).linear))

    monkeypatch.setattr(newton_euler, "joint_bias_acceleration", printed)
    assert ls.prove("RR").ok
    proof = ls.prove("RPR")
    wrong = {f"{function} (newton_euler = khalil_kleinfinger)" for function in ("inverse_dynamics", "bias_forces")}
    assert refuted(proof) == wrong
    line = "refuted: inverse_dynamics (newton_euler = khalil_kleinfinger) is false for RPR: "
    assert any(remark.startswith(line) for remark in proof.remarks())
    assert not proof.ok and "statements are false" in proof.verdict


def test_a_wrong_first_method_is_refuted_against_all(monkeypatch: pytest.MonkeyPatch):
    """Gravity forgotten in the method that the others are compared with."""
    right = khalil_kleinfinger.motion_of_links

    def weightless(sweep: Any, qd: Any, qdd: Any, base: Any) -> Any:
        return right(sweep, qd, qdd, replace(base, a=Vec(0.0, 0.0, 0.0)))

    monkeypatch.setattr(khalil_kleinfinger, "motion_of_links", weightless)
    proof = ls.prove("RR")
    others = set(FUNCTIONS["inverse_dynamics"].methods) - {"khalil_kleinfinger"}
    assert {f"gravity_forces ({method} = khalil_kleinfinger)" for method in others} <= refuted(proof)
    assert "M symmetric (d tau / d qdd)" not in refuted(proof)


@pytest.mark.parametrize(
    ("module", "name", "broken", "expected"),
    [
        (fd4, "classical_bias_force", lambda right: lambda link, V: right(link, V) * 2.0, "forward_dynamics (fd4 ="),
        (
            filter_smoother,
            "updated_inertia",
            lambda right: lambda form, P, *rest: P,
            "forward after inverse = 1 (filter",
        ),
        (kane, "rotation_tensor", lambda right: lambda w, dw: right(dw, w), "inverse_dynamics (kane ="),
        (mass_matrix, "propagate", lambda right: lambda link, x: x, "M = d tau / d qdd"),
        (composite, "mass_matrix", lambda right: lambda sweep: right(sweep, False), ""),  # another way, and right
    ],
)
def test_broken_algorithms(module: Any, name: str, broken: Any, expected: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(module, name, broken(getattr(module, name)))
    found = refuted(ls.prove("RRP"))
    assert any(line.startswith(expected) for line in found) if expected else not found


def test_a_fault_that_floats_would_pass():
    """A torque that is off by 1e-13 of itself: check's tolerance grants it, a field does not."""
    point = Point(Structure("RR").model(Draw(1)), Draw(2))
    tau = point.evaluate(RobotFunction(point.model, "inverse_dynamics", "kane"))
    off = [x * lifted(Fraction(10**13 + 1, 10**13)) for x in tau]
    assert tau != off and abs(Fraction(10**13 + 1, 10**13) - 1) < 1e-12


# ---- a robot's numbers --------------------------------------------------------------------------------------------


def test_decimals_of_the_puma_are_fractions():
    """Frames are chosen over fractions: 0.2435 - 0.016 is 2275/10000, and not the float next to it."""
    model = exact_canonical(puma560_model())
    assert 0.2435 - 0.016 != 0.2275 and model.links[1].com[2] == Fraction(2275, 10**4)
    assert [link.slide for link in model.links] == [0, 0, Fraction(1501, 10**4), Fraction(4331, 10**4), 0, 0]
    assert [link.mass for link in model.links] == [
        Fraction(x) for x in ("13", "17.40", "4.80", "0.82", "0.34", "0.09")
    ]  # fmt: skip
    # link 2 in its canonical frame, which stands 0.2435 further in: m (com + d)
    assert model.links[1].mp[2] == Fraction("17.40") * (Fraction("-0.016") + Fraction("0.2435"))
    assert model.gravity == (0, 0, Fraction("-9.81"))
    twists = [(float(link.factors[0].c), float(link.factors[0].s)) for link in model.links[1:]]  # type: ignore
    assert twists == [(0, -1), (1, 0), (0, 1), (0, -1), (0, 1)]
    for link in exact_model(model).links:
        assert not any(isinstance(x, float) and x != 0.0 for x in leaves((link.mp, link.I, link.com, link.slide)))


@pytest.mark.parametrize("name", ["puma560", "stanford", "six_axis", "planar3", "mixed5", "tree9", "urdf"])
def test_the_exact_robot_is_the_robot(name: str):
    """The same numbers to rounding, the same zeros, and angles that are points of the circle."""
    floats, exact = canonical(robot(name).model), exact_canonical(robot(name).model)
    for a, b in zip(floats.links, exact.links, strict=True):
        assert (a.parent, a.kind, a.quarters, a.row) == (b.parent, b.kind, b.quarters, b.row)
        for part in ("factors", "turn", "slide", "mass", "com", "I_com", "armature", "axes", "origin"):
            for x, y in zip(leaves(getattr(a, part)), leaves(getattr(b, part)), strict=True):
                assert x == y if isinstance(x, str) else float(y) == pytest.approx(x, rel=1e-12, abs=1e-13)  # type: ignore
                assert isinstance(x, str) or (x == 0) == (y == 0)
    for link in exact_model(exact).links:
        for c, s in (link.turn, *((f.c, f.s) for f in link.factors if isinstance(f, Screw))):
            assert c * c + s * s == 1
        rows = np.array(link.axes, dtype=object)
        assert ((rows @ rows.T) == np.eye(3)).all()
        assert (link.angle.quarter_turns(link.quarters).c, link.angle.quarter_turns(link.quarters).s) == link.turn  # type: ignore


@pytest.mark.slow
def test_the_exact_trace_is_the_trace():
    """Exact constants fold as floats do: the programs that are proved have the operations of those compiled."""
    bot = robot("puma560")
    smooth = replace(bot.canonical, links=tuple(replace(link, friction=0.0) for link in bot.canonical.links))
    exact = exact_model(exact_canonical(bot.model))
    for function in ("inverse_dynamics", "forward_dynamics", "mass_matrix"):
        for method in FUNCTIONS[function].methods:
            if method in ("filter_smoother_ud", "influence"):  # 3 sums differ: by floats some zeros are 1e-17
                continue
            terms: dict[str, Any] = dict.fromkeys(FUNCTIONS[function].takes, True)
            counts = [
                count(Together((RobotFunction(model, function, method, **terms),), False, False).trace())
                for model in (smooth, exact)
            ]
            assert counts[0] == counts[1], method


def test_rational_numbers():
    x = Rational("0.1")
    assert isinstance(x + 0.5, Rational) and x + 0.5 == Fraction(6, 10) and 1.0 - x == Fraction(9, 10)
    assert 2.0 / x == 20 and isinstance(0.0 * x, Rational) and isinstance(-x, Rational) and isinstance(abs(x), Rational)
    assert Rational(3).hypot(4) == 5 and Rational("0.6").on_circle(Rational("0.8")) == (x * 6, x * 8)
    for angle in np.linspace(-7.0, 7.0, 101):
        c, s = rational_point(math.cos(angle), math.sin(angle))
        assert c * c + s * s == 1 and abs(float(c) - math.cos(angle)) < 1e-15
    assert rational_point(0.0, -1.0) == (0, -1)
    turn = np.array(rational_rotation(((0.36, 0.48, -0.8), (-0.8, 0.6, 0.0), (0.48, 0.64, 0.6))), dtype=object)
    assert ((turn @ turn.T) == np.eye(3)).all() and abs(float(turn[0, 1]) - 0.48) < 1e-14


def test_field_results_are_those_of_floats():
    """The same algorithm over fractions' residues and over floats: a torque with decimals comes out as that decimal."""
    model = exact_model(exact_canonical(robot("planar3").model))
    still = {"q": [lifted(0)] * 3}
    from linksweep.papers.exact.field import Angle

    still["q"] = [Angle(lifted(1), 0.0)] * 3
    tau = RobotFunction(model, "gravity_forces", "newton_euler").evaluate(still["q"], base_parameters=False)
    expected = robot("planar3").gravity_forces(np.zeros(3))
    for x, y in zip(tau, expected, strict=True):
        assert lifted(x) == lifted(Fraction(str(round(y, 9))))
    assert isinstance(lifted(tau[0]), Residue)


# ---- structures as text -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "joints", "parents"),
    [
        ("RRP", "RRP", (-1, 0, 1)),
        ("F(RR)(RP)S", "FRRRPS", (-1, 0, 1, 0, 3, 0)),
        ("(R)(P(R)S)", "RPRS", (-1, -1, 1, 1)),
        (TREE, "FRRRRPRRRRPS", (-1, 0, 1, 2, 0, 4, 5, 0, 7, 0, 9, 0)),
    ],
)
def test_letters(text: str, joints: str, parents: tuple[int, ...]):
    structure = Structure(text)
    assert (structure.joints, structure.parents) == (joints, parents)
    model = structure.model(Draw(0))
    assert [link.parent for link in model.links] == list(parents)
    assert sorted(link.row for link in model.links) == list(range(len(joints)))


@pytest.mark.parametrize("text", ["", "RX", "R(", "R)", "()", "r", "R" * 13, "R R", "puma560"])
def test_other_letters_are_refused(text: str):
    with pytest.raises(ArgumentError, match=r"the structure is .* expected up to 12 letters"):
        ls.prove(text)


@pytest.mark.parametrize(
    ("target", "options", "message"),
    [
        (3, {}, "prove got 3, expected a Robot, or joints as letters"),
        ("R", {"trials": 0}, "trials is 0, expected an integer from 1 to 50"),
        ("R", {"trials": True}, "trials is True"),
        ("R", {"seed": -1}, "seed is -1"),
        ("R", {"seed": 1.5}, "seed is 1.5"),
        ("R", {"programs": "yes"}, "programs is 'yes', expected True, False or None"),
    ],
)
def test_other_arguments_are_refused(target: Any, options: dict[str, Any], message: str):
    with pytest.raises(ArgumentError, match=message):
        ls.prove(target, **options)


def test_a_long_chain_is_refused():
    with pytest.raises(ArgumentError, match="chain65 has 65 links, expected at most 64"):
        ls.prove(ls.robots.chain(65))


# ---- the report and the command line -------------------------------------------------------------------------------


@pytest.mark.slow
def test_the_report(puma: Proof):
    text = str(puma).splitlines()
    assert text[0] == puma.verdict and text[1].split() == ["statement", "for", "degree", "chance"]
    row = next(line for line in text if line.startswith("inverse_dynamics"))
    assert "5 methods, 10 pairs" in row and row.endswith("proved")
    assert any(line.startswith("not proved: forward_dynamics by filter_smoother_ud, which branches") for line in text)
    assert f"{len(puma.outcomes)} statements proved at one random point" in puma.verdict
    assert "the chance that a false one was missed is below" in puma.verdict and " s)." in puma.verdict
    found = json.loads(json.dumps(puma.as_dict(), allow_nan=False))
    assert found["ok"] and found["field"] == PRIME and len(found["statements"]) == len(puma.outcomes)


def run(*arguments: str) -> Any:
    return CliRunner().invoke(app, ["check", *arguments])


@pytest.mark.slow
def test_check_exact(tmp_path: Any):
    result = run("R(P)S", "--exact")
    assert result.exit_code == 0 and "R(P)S: " in result.output and "proved" in result.output
    result = run("RP", "--exact", "--json", "--trials", "2", "--seed", "3")
    found = json.loads(result.output)
    assert result.exit_code == 0 and found["trials"] == 2 and found["seed"] == 3 and found["chance"] < 1e-24
    (tmp_path / "arm.urdf").write_text(URDF, encoding="utf-8")
    result = run(str(tmp_path / "arm.urdf"), "--exact")
    assert result.exit_code == 0, result.output
    assert "sample: " in result.output and "programs of regressor" in result.output


def test_check_exact_refutes(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(kane, "rotation_tensor", lambda w, dw: bias.rotation_tensor(dw, w))
    result = run("RR", "--exact")
    assert result.exit_code == 1
    assert "REFUTED" in result.output
    assert (
        "refuted: inverse_dynamics (kane = khalil_kleinfinger) is false for RR: 2 of 2 entries differ" in result.output
    )


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("RR", "--exact", "--samples", "3"), "--samples does not apply to --exact"),
        (("puma560", "--trials", "3"), "--trials applies only to --exact"),
        (("RQ", "--exact"), "There is no robot 'RQ'"),
        (("R(", "--exact"), "the structure is 'R('"),
        (("RR",), "There is no robot 'RR'"),
    ],
)
def test_check_exact_refusals(arguments: tuple[str, ...], message: str):
    with pytest.raises(ls.LinksweepError, match=message.replace("(", r"\(")):
        CliRunner().invoke(app, ["check", *arguments], standalone_mode=False, catch_exceptions=False)
