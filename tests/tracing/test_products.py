"""Products with derivatives: jvp forward, vjp in reverse, against the derivatives themselves; what they cost."""

from __future__ import annotations

import numpy as np
import pytest
from oracles import FILES
from robots_for_tests import close, robot

import linksweep as ls
from linksweep.errors import ArgumentError

FD, ID = "forward_dynamics", "inverse_dynamics"


def state(bot: ls.Robot, seed: int = 0) -> tuple[np.ndarray, ...]:
    random = np.random.default_rng(seed)
    return bot.random(random), *random.uniform(-1, 1, (2, bot.nv))


@pytest.mark.quick
@pytest.mark.parametrize("function", [ID, FD])
@pytest.mark.parametrize("name", ["puma560", "mixed3", "tree4", "floating"])
def test_products_are_those_with_the_derivatives(name: str, function: str):
    bot = robot("puma560").with_base("floating") if name == "floating" else robot(name)
    inputs = ("q", "qd", "qdd" if function == ID else "tau")
    given, random = state(bot), np.random.default_rng(7)
    slopes = bot.compile([("derivative", function, by) for by in inputs])(*given)
    tangents, weights = random.uniform(-1, 1, (3, bot.nv)), random.uniform(-1, 1, bot.nv)
    along = bot.compile(("jvp", function, *inputs))
    assert along.inputs == (*inputs, *(f"v_{name}" for name in inputs))
    expected = sum(J @ v for J, v in zip(slopes, tangents, strict=True))
    assert close(along(*given, *tangents), expected, 1e-11)
    reverse = bot.compile([("vjp", function, by) for by in inputs])
    for found, J in zip(reverse(*given, weights), slopes, strict=True):
        assert close(found, weights @ J, 1e-11)
    assert close(bot.compile(("jvp", function, "qd"))(*given, tangents[1]), slopes[1] @ tangents[1], 1e-11)


def test_by_coordinates_and_by_parameters():
    bot = robot("puma560").with_base("floating")
    q, qd, _ = state(bot)
    weights = np.random.default_rng(1).uniform(-1, 1, ())
    slope = bot.compile(("derivative", "kinetic_energy", "q", "coordinates"))(q, qd)
    assert close(bot.compile(("vjp", "kinetic_energy", "q", "coordinates"))(q, qd, weights), weights * slope)
    arm = robot("puma560")
    f = arm.compile([("vjp", ID, "payload"), ("derivative", ID, "payload")], parameters=("payload",))
    given, load, w = state(arm), ls.body(1.0), np.ones(6)
    product, slope = f(*given, w, load)
    assert close(product, w @ slope)


def test_matrices_have_weights_of_their_shape_and_results_of_one_name_have_their_own():
    bot = robot("puma560")
    q, random = state(bot)[0], np.random.default_rng(3)
    f = bot.compile([("vjp", "mass_matrix", "q"), ("vjp", ("pose", "tool"), "q"), ("vjp", ("jacobian", "tool"), "q")])
    assert f.inputs == ("q", "w_M", "w_T", "w_J")
    weights = [random.uniform(-1, 1, argument.shape) for argument in f.signature.inputs[1:]]
    for found, item, w in zip(
        f(q, *weights), ("mass_matrix", ("pose", "tool"), ("jacobian", "tool")), weights, strict=True
    ):
        assert close(found, np.tensordot(w, bot.compile(("derivative", item, "q"))(q), w.ndim))
    two = bot.compile([("vjp", ID, "q"), ("vjp", "gravity_forces", "q")])
    assert two.inputs == ("q", "qd", "qdd", "w_tau", "w_tau_2")


def test_derivative_of_a_vjp_is_what_newton_needs():
    bot = robot("puma560")
    given, weights = state(bot), np.random.default_rng(5).uniform(-1, 1, 6)
    full = bot.compile(("derivative", ("derivative", ID, "q"), "qd"))(*given)
    short = bot.compile(("derivative", ("vjp", ID, "q"), "qd"))
    assert close(short(*given, weights), np.tensordot(weights, full, 1))
    assert short.counts.total < bot.compile(("derivative", ("derivative", ID, "q"), "qd")).counts.total * 2


@pytest.mark.slow
@pytest.mark.cases(1)
@pytest.mark.parametrize("name", ["puma560", "floating"])
def test_a_jvp_of_derivatives_and_products(name: str):
    """Second derivatives along directions, which may differ, and Hessians of weighted sums times vectors."""
    bot = robot("puma560").with_base("floating") if name == "floating" else robot(name)
    given, random = state(bot), np.random.default_rng(5)
    u, v, w, x = random.uniform(-1, 1, (4, bot.nv))
    second = bot.compile(("derivative", ("derivative", FD, "q"), "q"))(*given)  # [result, first, second]
    mixed = bot.compile(("derivative", ("derivative", FD, "q"), "qd"))(*given)
    slope = bot.compile(("derivative", FD, "q"))(*given)
    twice = bot.compile(("jvp", ("jvp", FD, "q"), "q"))
    assert twice.inputs == ("q", "qd", "tau", "v_q", "u_q") and twice.outputs == ("jvp_jvp_qdd",)
    assert close(twice(*given, v, u), np.einsum("ijk,j,k->i", second, v, u), 1e-10)
    both = bot.compile(("jvp", ("jvp", FD, "q"), "q", "qd", "v_q"))(*given, v, u, w, x)
    expected = np.einsum("ijk,j,k->i", second, v, u) + np.einsum("ijk,j,k->i", mixed, v, w) + slope @ x
    assert close(both, expected, 1e-10)
    assert close(
        bot.compile(("jvp", ("vjp", FD, "q"), "q"))(*given, w, u), np.einsum("ijk,i,k->j", second, w, u), 1e-10
    )
    assert close(bot.compile(("jvp", ("derivative", FD, "q"), "q"))(*given, u), second @ u, 1e-10)


@pytest.mark.slow
@pytest.mark.cases(1)
@pytest.mark.parametrize("kind", ["jvp", "vjp"])
def test_talos_costs_at_most_three_times_the_function(kind: str):
    path = FILES["talos_data/robots/talos_reduced.urdf"]
    bot, inputs = ls.load(path, base="floating"), ("q", "qd", "tau")
    items = [("vjp", FD, by) for by in inputs] if kind == "vjp" else [("jvp", FD, *inputs)]
    plain, made = (bot.compile(x, backend="interpreter").counts.total for x in (FD, items))
    assert made <= 3.3 * plain


@pytest.mark.parametrize(
    ("item", "words"),
    [
        (("vjp", ID), "expected \\('vjp'"),
        (("vjp", ID, "q", "qd"), "each input in a request"),
        (("jvp", ID, "tau"), "cannot be differentiated with respect to 'tau'"),
        (("jvp", ID, "q", "q"), "each input once"),
        (("jvp", ("jvp", ID, "q", "coordinates"), "q"), "in all or none"),
        (("jvp", ("jvp", ID, "q"), "v_qd"), "cannot be differentiated with respect to 'v_qd'"),
    ],
)
def test_what_is_no_product_is_refused(item, words: str):
    with pytest.raises(ArgumentError, match=words):
        robot("puma560").compile(item)
