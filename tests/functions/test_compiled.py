"""Compiled functions: several results, derivatives, pickling, and what a user meets who asks for the wrong thing."""

from __future__ import annotations

import copy
import gc
import pickle
import warnings
from collections import Counter
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from robots_for_tests import close, compiled, inverse_dynamics, random_inertial, robot, samples

import linksweep as ls
from linksweep.errors import (
    ArgumentError,
    BackendError,
    DescriptionError,
    LinksweepError,
    ModelWarning,
    SingularError,
)
from linksweep.functions.compiled import CompiledFunction, chosen_backend
from linksweep.model.assembly import Part, assemble
from linksweep.model.model import Inertial, Joint, Model, Placement

SEVERAL = ["mass_matrix", "bias_forces", ("jacobian", "tool"), ("pose", "tool")]


def operations(function: CompiledFunction) -> Counter[str]:
    return Counter(node.op for body in function.program.bodies() for node in body.nodes)


# ---- several results -----------------------------------------------------------------------------------------


@pytest.mark.quick
@pytest.mark.parametrize("backend", ["llvm", "interpreter"])
def test_several_results(backend: str):
    bot = robot("puma560")
    together = bot.compile(SEVERAL, backend=backend)
    q, qd, _ = samples(bot, 2, 3, seed=81)
    results = together(q, qd)
    assert isinstance(results, tuple) and together.inputs == ("q", "qd") and together.outputs == ("M", "tau", "J", "T")
    expected = (bot.mass_matrix(q), bot.bias_forces(q, qd), bot.jacobian(q, "tool"), bot.pose(q, "tool"))
    for got, right in zip(results, expected, strict=True):
        assert close(got, right, 1e-12)
    one = together(q[0, 0], qd[0, 0])
    assert [x.shape for x in one] == [(6, 6), (6,), (6, 6), (4, 4)]


def test_several_results_share_their_work():
    bot = robot("puma560")
    together = operations(bot.compile(SEVERAL))
    apart = sum((operations(bot.compile(function)) for function in SEVERAL), Counter())
    assert together["sin"] == together["cos"] == 6, "each sine once, also that of the first joint for the pose"
    assert together["mul"] < 0.95 * apart["mul"] and together["input"] == 12
    twice = operations(bot.compile(["bias_forces", "bias_forces"]))
    assert twice == operations(bot.compile("bias_forces"))


def test_a_list_of_one_is_one_result():
    bot = robot("mixed3")
    q = samples(bot, seed=82)[0]
    alone = bot.compile(["gravity_forces"])(q)
    assert isinstance(alone, np.ndarray) and np.array_equal(alone, bot.gravity_forces(q))


@pytest.mark.quick
def test_out_takes_the_result():
    bot = robot("mixed3")
    function = compiled("mixed3", "inverse_dynamics")
    args = samples(bot, 4, seed=83)
    out = np.empty((4, 3))
    assert function(*args, out=out) is out and np.array_equal(out, function(*args))
    both = bot.compile(["mass_matrix", "gravity_forces"])
    outs = (np.empty((4, 3, 3)), np.empty((4, 3)))
    both(args[0], out=outs)
    assert np.array_equal(outs[0], bot.mass_matrix(args[0])) and close(outs[1], bot.gravity_forces(args[0]), 1e-13)


# ---- what a compiled function says of itself -----------------------------------------------------------------


def test_repr_names_and_inputs():
    function = compiled("mixed3", "inverse_dynamics")
    assert function.name == "inverse_dynamics"
    assert repr(function).startswith("<inverse_dynamics(q(") and "-> tau(" in repr(function)
    both = robot("mixed3").compile(["mass_matrix", "bias_forces"])
    assert both.name == "mass_matrix_and_bias_forces"
    assert repr(robot("mixed3")) == "<Robot chain3: 3 DOF, 3 joints, 5 frames>"


def test_llvm_ir_is_text_of_the_kernel():
    text = compiled("mixed3", "inverse_dynamics").llvm_ir
    assert "define void @kernel(" in text and "fast" not in text and "contract" not in text
    assert "@sincos" in text
    single = compiled("mixed3", "inverse_dynamics", dtype="float32").llvm_ir
    assert "x float>" in single and "x double>" in text
    rolled = compiled("mixed3", "inverse_dynamics", rolled=True).llvm_ir
    assert "define void @kernel(" in rolled


@pytest.mark.quick
def test_dtype_is_followed_or_forced():
    bot = robot("mixed3")
    args = samples(bot, 3, seed=84)
    small = [x.astype(np.float32) for x in args]
    free = compiled("mixed3", "inverse_dynamics")
    assert free(*args).dtype == np.float64 and free(*small).dtype == np.float32
    assert compiled("mixed3", "inverse_dynamics", dtype="float32")(*args).dtype == np.float32
    assert compiled("mixed3", "inverse_dynamics", dtype="float64")(*small).dtype == np.float64
    assert compiled("mixed3", "inverse_dynamics", dtype=np.float32)(*args).dtype == np.float32


@pytest.mark.quick
def test_threads_change_nothing():
    bot = robot("mixed3")
    args = samples(bot, 5000, seed=85)
    one, two = (bot.compile("forward_dynamics", threads=n)(*args) for n in (1, 2))
    assert np.array_equal(one, two)


# ---- life ----------------------------------------------------------------------------------------------------


@pytest.mark.quick
@pytest.mark.parametrize("options", [{}, {"dtype": "float32"}, {"backend": "interpreter"}, {"rolled": True}])
def test_pickled_functions_work(options: dict[str, Any]):
    bot = robot("mixed5")
    function = bot.compile("inverse_dynamics", **options)
    args = samples(bot, 3, seed=86)
    for again in (pickle.loads(pickle.dumps(function)), copy.deepcopy(function)):
        assert np.array_equal(again(*args), function(*args)) and repr(again) == repr(function)
        assert (again.dtype, again.threads, again.backend) == (function.dtype, function.threads, function.backend)
    derivative = function.derivative("q")
    assert np.array_equal(pickle.loads(pickle.dumps(derivative))(*args), derivative(*args))


def test_pickled_robots_are_equal():
    bot = robot("tree9")
    again = pickle.loads(pickle.dumps(bot))
    q = samples(bot, seed=87)[0]
    assert again == bot and hash(again) == hash(bot) and np.array_equal(again.mass_matrix(q), bot.mass_matrix(q))


@pytest.mark.slow
def test_a_function_outlives_its_robot():
    bot = ls.robots.chain(4, seed=1)
    args = samples(bot, 3, seed=88)
    expected = [inverse_dynamics(bot.model, *(x[k] for x in args)) for k in range(3)]
    function = bot.compile("inverse_dynamics")
    del bot
    gc.collect()
    assert close(function(*args), expected, 1e-12)


# ---- wrong requests ------------------------------------------------------------------------------------------


WRONG: dict[str, tuple[Any, type[Exception], str]] = {
    "function": (lambda r: r.compile("inverse_dynamic"), ArgumentError, "inverse_dynamics"),
    "function of a wrong type": (lambda r: r.compile(3), ArgumentError, "3"),
    "no function": (lambda r: r.compile([]), ArgumentError, "empty list"),
    "private function": (lambda r: r.compile("joint_inertia"), ArgumentError, "unknown function"),
    "method": (lambda r: r.compile("inverse_dynamics", method="newton_eulr"), ArgumentError, "newton_euler"),
    "method of a call": (lambda r: r.inverse_dynamics(0, 0, 0, method="x"), ArgumentError, "no method 'x'"),
    "methods of nothing": (lambda r: r.methods("nothing"), ArgumentError, "'nothing'"),
    "frame": (lambda r: r.compile(("pose", "tol")), ArgumentError, "tool"),
    "frame of a call": (lambda r: r.pose([0, 0, 0], "tol"), ArgumentError, "tool"),
    "frame missing": (lambda r: r.compile("jacobian"), ArgumentError, "needs a frame"),
    "frame not wanted": (lambda r: r.compile(("mass_matrix", "tool")), ArgumentError, "takes no frame"),
    "dtype": (lambda r: r.compile("mass_matrix", dtype="float16"), ArgumentError, "float16"),
    "dtype that is none": (lambda r: r.compile("mass_matrix", dtype="number"), ArgumentError, "number"),
    "threads": (lambda r: r.compile("mass_matrix", threads=0), ArgumentError, "threads"),
    "threads of a wrong type": (lambda r: r.compile("mass_matrix", threads="2"), ArgumentError, "threads"),
    "backend": (lambda r: r.compile("mass_matrix", backend="cuda"), BackendError, "'cuda'"),
    "gravity": (lambda r: r.with_gravity((0, 0)), ArgumentError, "three finite numbers"),
    "gravity that is none": (lambda r: r.with_gravity("down"), ArgumentError, "three finite numbers"),
    "gravity without bounds": (lambda r: r.with_gravity((0, 0, np.inf)), ArgumentError, "three finite numbers"),
    "payload": (lambda r: r.with_payload("hand", 1.0), ArgumentError, "no link or frame 'hand'"),
    "force on no frame": (lambda r: r.bias_forces([0] * 3, [0] * 3, f_ext={"x": [0] * 6}), ArgumentError, "frame"),
    "force on the base": (lambda r: r.bias_forces([0] * 3, [0] * 3, f_ext={"base": [0] * 6}), ArgumentError, "base"),
    "force of five": (lambda r: r.bias_forces([0] * 3, [0] * 3, f_ext={"tool": [0] * 5}), ArgumentError, "6"),
    "size": (lambda r: r.inverse_dynamics([0] * 2, [0] * 3, [0] * 3), ArgumentError, "q"),
    "robot of nothing": (lambda r: type(r)("puma"), ArgumentError, "expected a Model"),
}


@pytest.mark.quick
@pytest.mark.parametrize("case", WRONG)
def test_wrong_requests_are_one_sentence(case: str):
    ask, error, says = WRONG[case]
    with pytest.raises(error) as caught:
        ask(robot("mixed3"))
    message = str(caught.value)
    assert isinstance(caught.value, LinksweepError) and says in message
    assert message.endswith(".") and "\n" not in message and len(message) < 400


def test_a_method_for_chains_is_refused_for_trees():
    chains = set(robot("mixed5").methods("forward_dynamics")) - set(robot("tree9").methods("forward_dynamics"))
    for method in chains:
        with pytest.raises(ArgumentError, match="serial"):
            robot("tree9").compile("forward_dynamics", method=method)
    assert "filter_smoother" not in chains and robot("tree9").methods("forward_dynamics")[0] == "composite"


def test_the_backend_by_argument_or_variable(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("linksweep.support.settings.backend", "llvm")
    assert chosen_backend(None) == "llvm" and chosen_backend("interpreter") == "interpreter"
    monkeypatch.setattr("linksweep.support.settings.backend", "interpreter")
    assert chosen_backend(None) == "interpreter" and chosen_backend("llvm") == "llvm"
    bot = ls.robots.chain(2)
    assert bot.compile("mass_matrix").backend == "interpreter"
    monkeypatch.setattr("linksweep.support.settings.backend", "fpga")
    with pytest.raises(BackendError, match="'fpga'"):
        bot.compile("mass_matrix")


# ---- robots that lack inertia --------------------------------------------------------------------------------


def two_links(tip: Inertial, armature: float = 0.0, kind: str = "revolute") -> Model:
    at = Placement(position=(0.4, 0.0, 0.1))
    parts = [
        Part("arm", "base", Joint("shoulder"), random_inertial(np.random.default_rng(0))),
        Part("tip", "arm", Joint("wrist", kind, (0.0, 1.0, 0.0), at, armature=armature), tip),
    ]
    return assemble("two", parts, base="base")


@pytest.mark.parametrize("kind", ["revolute", "prismatic"])
def test_a_tip_without_inertia(kind: str):
    """It loads with a warning that names the joint; inverse dynamics works, what needs its acceleration says why."""
    with pytest.warns(ModelWarning, match="wrist"):
        bot = ls.Robot(two_links(Inertial(), kind=kind))
    q, qd, qdd = samples(bot, seed=89)
    assert close(bot.inverse_dynamics(q, qd, qdd), inverse_dynamics(bot.model, q, qd, qdd), 1e-12)
    assert bot.inverse_dynamics(q, qd, qdd)[1] == 0.0 and not np.any(bot.mass_matrix(q)[1])
    assert bot.singular_joints == ("wrist",)
    for ask in (lambda: bot.forward_dynamics(q, qd, qdd), lambda: bot.compile("forward_dynamics")):
        with pytest.raises(SingularError, match="wrist"):
            ask()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        again = pickle.loads(pickle.dumps(bot))
    assert again == bot


def test_a_point_mass_on_its_own_axis_is_no_inertia():
    with pytest.warns(ModelWarning, match="wrist"):
        bot = ls.Robot(two_links(Inertial(1.0, (0.0, 0.3, 0.0))))
    assert bot.singular_joints == ("wrist",)


def test_a_massless_link_that_carries_another_is_fine():
    model = two_links(random_inertial(np.random.default_rng(1)))
    links = (replace(model.links[0], inertial=Inertial()), model.links[1])
    bot = ls.Robot(replace(model, links=links))
    q, qd, qdd = samples(bot, seed=90)
    assert bot.singular_joints == ()
    assert close(bot.forward_dynamics(q, qd, bot.inverse_dynamics(q, qd, qdd)), qdd, 1e-10)


def test_an_armature_is_inertia_enough():
    bot = ls.Robot(two_links(Inertial(), armature=0.5))
    q, qd, tau = samples(bot, seed=91)
    assert bot.forward_dynamics(q, qd, tau)[1] == pytest.approx(tau[1] / 0.5, rel=1e-14)


def test_a_robot_without_any_inertia_has_no_dynamics():
    model = two_links(Inertial())
    with pytest.warns(ModelWarning, match="no mass or inertia at all"):
        bot = ls.Robot(replace(model, links=tuple(replace(link, inertial=Inertial()) for link in model.links)))
    q = samples(bot, seed=92)[0]
    assert bot.pose(q, "tip").shape == (4, 4) and bot.jacobian(q, "tip").shape == (6, 2)
    for ask in (
        lambda: bot.inverse_dynamics(q, q, q),
        lambda: bot.forward_dynamics(q, q, q),
        lambda: bot.mass_matrix(q),
        lambda: bot.gravity_forces(q),
        lambda: bot.compile("bias_forces"),
    ):
        with pytest.raises(DescriptionError, match="no mass or inertia at all"):
            ask()


@pytest.mark.quick
@pytest.mark.parametrize("kind", ["revolute", "prismatic"])
def test_one_link(kind: str):
    body = random_inertial(np.random.default_rng(3))
    joint = Joint("joint", kind, (0.6, 0.0, 0.8), Placement(position=(0.1, 0.2, 0.3)), armature=0.2)
    bot = ls.Robot(assemble("one", [Part("link", "base", joint, body)], base="base"))
    q, qd, qdd = samples(bot, 5, seed=93)
    tau = bot.inverse_dynamics(q, qd, qdd)
    assert tau.shape == (5, 1)
    for k in range(5):
        assert close(tau[k], inverse_dynamics(bot.model, q[k], qd[k], qdd[k]), 1e-13)
    assert close(bot.forward_dynamics(q, qd, tau), qdd, 1e-12)
    assert bot.mass_matrix(q).shape == (5, 1, 1) and bot.jacobian(q, "link").shape == (5, 6, 1)
    assert (bot.nq, bot.nv, bot.joint_names, bot.link_names) == (1, 1, ("joint",), ("link",))


def test_options_of_a_computation_are_refused():
    arm = ls.robots.planar(2)
    recipe = arm.recipe("mass_matrix")
    assert arm.compile(recipe, backend="interpreter") is arm.compile("mass_matrix", backend="interpreter")
    refused: list[dict[str, Any]] = [
        {"method": "composite"}, {"f_ext": True}, {"rolled": True}, {"parameters": ("payload",)}
    ]  # fmt: skip
    for options in refused:
        with pytest.raises(ArgumentError, match=next(iter(options))):
            arm.compile(recipe, backend="interpreter", **options)


def test_a_second_compile_parses_nothing(monkeypatch: pytest.MonkeyPatch):
    arm = ls.robots.planar(2)
    items = ["mass_matrix", ("jacobian", "tool")]
    first = arm.compile(items, backend="interpreter"), arm.compile("mass_matrix", backend="interpreter")
    monkeypatch.setattr(ls.Robot, "recipe", None)
    assert (arm.compile(list(items), backend="interpreter"), arm.compile("mass_matrix", backend="interpreter")) == first


def test_frames_in_a_list_are_held_too():
    arm = ls.robots.planar(2)
    item = ("operational_inertia_inverse", ["tool", "link1"])
    assert arm.compile(item, backend="interpreter") is arm.compile(item, backend="interpreter")
