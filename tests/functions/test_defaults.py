"""What is taken where nothing is said: the rules of defaults.py against counts and against the printed figures."""

from __future__ import annotations

import functools
import importlib.util
import re
import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from oracles import FILES, NOT_ROBOTS
from pin_models import random_robot
from robots_for_tests import robot

import linksweep as ls
from linksweep.errors import ArgumentError, DescriptionError, ModelWarning
from linksweep.functions import computation, defaults
from linksweep.functions.catalog.dynamics import DEEP
from linksweep.functions.computation import RobotFunction
from linksweep.functions.defaults import DETAILED, ROLL_ABOVE, default_method
from linksweep.functions.functions import FUNCTIONS
from linksweep.functions.items import PUBLIC

ROOT = Path(__file__).parents[2]
PUMA = ls.robots.puma560()
Q = np.zeros(6)


def benchmark() -> Any:
    """benchmarks/defaults.py, which knows the robots of its tables by name."""
    sys.path.insert(0, str(ROOT / "benchmarks"))
    try:
        spec = importlib.util.spec_from_file_location("benchmarks_defaults", ROOT / "benchmarks" / "defaults.py")
        assert spec is not None and spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        return module
    finally:
        sys.path.pop(0)


BENCHMARK = benchmark()


@functools.cache
def named(name: str) -> ls.Robot:
    return BENCHMARK.robot_of(name)


# ---- a method that is not the function's -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: PUMA.mass_matrix(Q, method="kane"), "mass_matrix has no method 'kane': expected one of composite"),
        (lambda: PUMA.gravity_forces(Q, method="fd4"), "gravity_forces has no method 'fd4'"),
        (lambda: PUMA.bias_forces(Q, Q, method="composite"), "bias_forces has no method 'composite'"),
        (lambda: PUMA.mass_matrix_inverse(Q, method="composite"), "mass_matrix_inverse has no method 'composite'"),
        (lambda: PUMA.coriolis_matrix(Q, Q, method="kane"), "coriolis_matrix has no method 'kane'"),
        (lambda: PUMA.explicit_model(Q, method="kane"), "effective_inertia has no method 'kane'"),
        (lambda: PUMA.compile("mass_matrix", method="fd1"), "mass_matrix has no method 'fd1'"),
        (lambda: PUMA.compile(["mass_matrix"], method="fd1"), "mass_matrix has no method 'fd1'"),
        (lambda: PUMA.compile("kinetic_energy", method="kane"), "there is only one method"),
        (lambda: PUMA.compile(("pose", "tool"), method="kane"), "pose has no method 'kane'"),
        (lambda: PUMA.compile(["mass_matrix", "bias_forces"], method="fd4"), "mass_matrix has no method 'fd4'"),
        (lambda: PUMA.compile(["mass_matrix", "bias_forces"], method=""), "mass_matrix has no method ''"),
        (lambda: PUMA.operation_count("mass_matrix", "kane"), "mass_matrix has no method 'kane'"),
        (lambda: ls.robots.general("RRR").operation_count("mass_matrix", "kane"), "mass_matrix has no method 'kane'"),
        (
            lambda: ls.simulate(PUMA, Q, duration=0.01, integrator=ls.simulation.RK4(method="kane")),
            "forward_dynamics has no method 'kane'",
        ),
    ],
)
def test_a_method_of_another_function_is_refused(call: Any, words: str):
    with pytest.raises(ArgumentError) as caught:
        call()
    assert words in str(caught.value) and "\n" not in str(caught.value)


@pytest.mark.cases(6)
@pytest.mark.parametrize(
    ("function", "alias", "method"),
    [
        ("inverse_dynamics", "rnea", "newton_euler"),
        ("gravity_forces", "rnea", "newton_euler"),
        ("forward_dynamics", "aba", "filter_smoother"),
        ("forward_dynamics", "crba", "composite"),
        ("mass_matrix", "crba", "composite"),
    ],
)
def test_common_names_of_methods(function: str, alias: str, method: str):
    assert PUMA._core.part(function, alias) == PUMA._core.part(function, method)


def test_common_names_appear_in_messages():
    with pytest.raises(ArgumentError, match=r"no method 'rneaa' .did you mean 'rnea'.*also rnea = newton_euler"):
        PUMA.inverse_dynamics(Q, Q, Q, method="rneaa")
    with pytest.raises(ArgumentError, match="inverse_dynamics has no method 'aba'"):
        PUMA.inverse_dynamics(Q, Q, Q, method="aba")


def parts_of(function: Any) -> Any:
    return function.computation.parts


def test_a_list_takes_a_method_where_it_belongs():
    both = PUMA.compile(["mass_matrix", "forward_dynamics", ("pose", "tool"), "gravity_forces"], method="fd4")
    assert [part.method for part in parts_of(both)] == ["composite", "fd4", "", "khalil_kleinfinger"]
    with pytest.raises(ArgumentError, match="'closed_form' needs a serial chain"):
        robot("tree4").compile(["mass_matrix", "forward_dynamics"], method="closed_form")


# ---- the rules -------------------------------------------------------------------------------------------------

STRUCTURES = {
    "one joint": lambda: ls.robots.chain(1),
    "short chain": lambda: PUMA,
    "long chain": lambda: ls.robots.chain(12),
    "very long chain": lambda: ls.robots.chain(ROLL_ABOVE + 1),
    "tree": lambda: robot("tree9"),
    "ball joints": lambda: random_robot(("spherical", "revolute", "spherical")),
    "free base": lambda: random_robot(("free", "revolute", "prismatic", "spherical")),
}


@pytest.mark.quick
@pytest.mark.parametrize("name", STRUCTURES)
@pytest.mark.parametrize("function", [name for name in PUBLIC if "" not in FUNCTIONS[name].methods])
def test_every_function_has_a_rule_for_every_structure(name: str, function: str):
    bot = STRUCTURES[name]()
    able = [m for m, properties in FUNCTIONS[function].methods.items()
            if not (properties.serial and not bot.canonical.is_serial)
            and not (properties.single and not bot.canonical.is_single)]  # fmt: skip
    assert set(bot.methods(function)) == set(able)
    if able:
        assert bot._core.part(function).method == bot.methods(function)[0]
    last = defaults.RULES[function][-1]
    assert last.holds(defaults.Structure(99, False, False)) and last.words in ("always", "otherwise")


@pytest.mark.quick
def test_a_free_joint_is_six_deep():
    assert PUMA.canonical.depth == 6 and named("Allegro hand").canonical.depth == 4
    assert named("Solo12, floating").canonical.depth == 6 + 3


def test_loops_take_a_method_that_can_be_a_loop():
    for function in ("forward_dynamics", "mass_matrix_inverse"):
        rolled = PUMA.compile(function, rolled=True, backend="interpreter")
        assert rolled.program.rolled and parts_of(rolled)[0].method != PUMA.methods(function)[0]
    large = ls.robots.chain(ROLL_ABOVE + 1)
    assert not FUNCTIONS["forward_dynamics"].methods[large.methods("forward_dynamics")[0]].written_out
    assert large.methods("mass_matrix_inverse")[0] == "costate_covariance"


def test_nothing_is_traced_to_choose(monkeypatch: pytest.MonkeyPatch):
    traced = []
    real = computation._trace

    def counting(*args: Any) -> Any:
        traced.append(args[0])
        return real(*args)

    monkeypatch.setattr(computation, "_trace", counting)
    bot = ls.robots.stanford()
    for function in PUBLIC:
        bot.methods(function)
    recipe = bot.recipe("inverse_dynamics")
    assert not traced
    recipe.trace()
    assert len(traced) == 1  # not once with and once without base parameters


def test_the_recipe_holds_the_resolved_method():
    """It is the key of the cache: what is chosen by a rule and what is said by name is compiled once."""
    for function in ("inverse_dynamics", "forward_dynamics", "mass_matrix", "mass_matrix_inverse", "coriolis_matrix"):
        assert PUMA.recipe(function) == PUMA.recipe(function, method=PUMA.methods(function)[0])
        (part,) = PUMA.recipe(function).parts
        assert isinstance(part, RobotFunction) and part.method


def test_details_are_those_of_the_papers():
    zero, one = np.zeros(6), np.full(6, 0.3)
    for function, method in DETAILED.items():
        call = getattr(PUMA, function)
        assert set(call(one, zero, one, details=True)[1]) == set(call(one, zero, one, method=method, details=True)[1])


def test_laws_of_simulation_use_the_rule(monkeypatch: pytest.MonkeyPatch):
    """In machine code and in columns: one choice, made in defaults.py."""
    from linksweep.simulation.dynamics import CompiledDynamics, TracedDynamics, by_default_method

    monkeypatch.delitem(defaults.RULES, "gravity_forces")
    request = PUMA._core.part("forward_dynamics")
    columns = CompiledDynamics(request, "float64", "interpreter")
    for broken in (TracedDynamics(request), columns):
        with pytest.raises(KeyError):  # there is no method "" of inverse dynamics
            broken.gravity([np.zeros(1)] * 6)
    monkeypatch.undo()
    assert by_default_method("gravity_forces", PUMA.canonical).method == PUMA.methods("gravity_forces")[0]


# ---- against counts --------------------------------------------------------------------------------------------

COUNTED = ("puma560", "stanford", "UR5", "Kinova", "Panda", "Allegro hand", "Solo12", "UR5, floating", "Bolt, floating",
           "Go2, floating", "chain(2)", "chain(9)", "chain(12)")  # fmt: skip
RECURSIVE = ("filter_smoother", "fd1", "fd3", "fd4")


@functools.cache
def operations(name: str, function: str, method: str, base_parameters: bool | None = None) -> int:
    return named(name).operation_count(function, method, base_parameters, rolled=False).total


@pytest.mark.parametrize("function", ["inverse_dynamics", "bias_forces", "gravity_forces", "mass_matrix"])
@pytest.mark.parametrize("name", COUNTED)
def test_the_default_takes_the_fewest_operations(name: str, function: str):
    chosen, *others = (m for m in named(name).methods(function) if m != "influence")
    fewest = operations(name, function, chosen)
    assert all(fewest <= operations(name, function, other) for other in others)


@pytest.mark.parametrize("name", COUNTED)
def test_composite_takes_the_fewest_operations_up_to_nine_deep(name: str):
    shallow = named(name).canonical.depth <= DEEP
    assert named(name).methods("forward_dynamics")[0] == ("composite" if shallow else "fd3")
    composite = operations(name, "forward_dynamics", "composite")
    others = {method: operations(name, "forward_dynamics", method) for method in RECURSIVE}
    if shallow:
        assert composite < min(others.values())
    else:
        assert composite > min(others.values())
        assert others["fd3"] <= 1.03 * min(others.values())


@pytest.mark.parametrize("name", [*COUNTED, "chain(24)"])
def test_factors_take_the_fewest_operations_for_the_inverse(name: str):
    first, *others = named(name).methods("mass_matrix_inverse")
    assert first == "factorization"
    for other in others:
        assert operations(name, "mass_matrix_inverse", first) <= operations(name, "mass_matrix_inverse", other)


REGROUPED = {
    "inverse_dynamics": "khalil_kleinfinger", "bias_forces": "khalil_kleinfinger", "mass_matrix": "composite",
    "gravity_forces": "khalil_kleinfinger", "forward_dynamics": "composite",
}  # fmt: skip
WORSE = {("asr_twodof_description/urdf/TwoDofs.urdf", "floating")}  # a toy: zeros of its base are filled


@pytest.mark.parametrize("name", COUNTED)
def test_base_parameters_save_operations(name: str):
    """So they are taken wherever they serve, without a second trace to compare with."""
    for function, method in REGROUPED.items():
        plain, regrouped, taken = (operations(name, function, method, base) for base in (False, True, None))
        assert taken == regrouped <= plain, function


def test_default_method_of_what_has_one_way():
    assert default_method("pose", PUMA.canonical) == "" and default_method("regressor", PUMA.canonical) == ""


BASES = ("fixed", "floating")
IMMOBILE = {(file, base) for file in NOT_ROBOTS for base in BASES if base == "fixed" or file.endswith("ur3.urdf")}
NAMES = "g1_29dof_with_hand.*|romeo|romeo_laas_small|talos_full_v2|talos_full_v2_box|tiago|tiago_dual"
# Too large to trace ten times over, or with hands whose links have no inertia.
LARGE = {(file, base) for file in FILES for base in BASES if re.search(f"/({NAMES}).urdf$", file)}


def loaded(file: str, base: str) -> ls.Robot:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ModelWarning)
        return ls.load(FILES[file], base=base)


@pytest.mark.parametrize(("file", "base"), sorted(IMMOBILE | LARGE))
def test_what_has_no_counts(file: str, base: str):
    if (file, base) in IMMOBILE:
        with pytest.raises(DescriptionError):
            loaded(file, base)
    else:
        bot = loaded(file, base)
        assert len(bot.model.links) > 40 or bot.singular_joints


@pytest.mark.slow
@pytest.mark.parametrize(("file", "base"), [(f, b) for f in FILES for b in BASES if (f, b) not in IMMOBILE | LARGE])
def test_base_parameters_save_operations_on_every_robot_but_one(file: str, base: str):
    bot = loaded(file, base)
    worse = []
    for function, method in REGROUPED.items():
        plain, regrouped = (bot.operation_count(function, method, b, rolled=False).total for b in (False, True))
        if regrouped > plain:
            worse.append(function)
    expected = ["inverse_dynamics", "bias_forces", "forward_dynamics"] if (file, base) in WORSE else []
    assert sorted(worse) == sorted(expected)


# ---- what docs/defaults.md and docs/descriptions.md recommend --------------------------------------------------


def test_composite_rounds_more_in_float32():
    """Forward dynamics of the UR5: some 1e-6 of the largest acceleration, where the recursion fd3 has below 4e-7."""
    arm, single = named("UR5"), np.random.default_rng(0).uniform(-1, 1, (3, 1000, 6)).astype(np.float32)
    errors = {}
    for method in ("composite", "fd3"):
        exact = arm.forward_dynamics(*single.astype(float), method=method)
        errors[method] = np.abs(arm.forward_dynamics(*single, method=method) - exact).max() / np.abs(exact).max()
    assert 0.5e-6 < errors["composite"] < 2e-6 and errors["fd3"] < 4e-7


def test_snapped_rotations_save_operations():
    arm = named("xArm7")
    plain, snapped = (
        bot.operation_count("forward_dynamics", "filter_smoother").total for bot in (arm, arm.snapped(1e-5))
    )
    assert snapped < 0.75 * plain


def test_symbolic_output_takes_the_shortest_method():
    arm = ls.robots.planar(2)
    others = [arm.symbolic("inverse_dynamics", method).operations for method in arm.methods("inverse_dynamics")]
    assert arm.symbolic("inverse_dynamics").operations == min(others)


@pytest.mark.parametrize("name", ["puma560", "UR5", "chain(9)"])
def test_the_factored_filter_costs_two_to_three_times_the_plain_one(name: str):
    plain, factored = (
        operations(name, "forward_dynamics", method) for method in ("filter_smoother", "filter_smoother_ud")
    )
    assert 1.9 <= factored / plain <= 3.3
