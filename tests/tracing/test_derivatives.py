"""Derivatives as requests: against Pinocchio by name, along rates, nested, by parameters, and what is refused."""

# pyright: reportArgumentType=false, reportCallIssue=false
from __future__ import annotations

import functools
from typing import Any

import numpy as np
import pinocchio as pin
import pytest
from oracles import FILES
from pin_models import ALL_KINDS, pin_model, places, random_robot, their_q, their_v
from robots_for_tests import big, close, floats, robot, samples

import linksweep as ls
from linksweep.algorithms.inverse.newton_euler import newton_euler
from linksweep.errors import ArgumentError, SingularError
from linksweep.mechanism.sweeps import Unrolled
from linksweep.spatial.algebra import ZERO_FORCE

ID, FD = "inverse_dynamics", "forward_dynamics"
FIRST = [("derivative", ID, by) for by in ("q", "qd", "qdd")]
FLOATING = {
    f"{k}": (kinds, tree)
    for k, (kinds, tree) in enumerate(
        [
            (("free",), False), (("free", "revolute"), False), (("free", "prismatic", "revolute"), True),
            (("free", *["revolute"] * 5), True), (("spherical", "revolute", "spherical"), False),
            (("revolute", "spherical", "prismatic"), False), (("planar", "revolute", "helical"), False),
            (("free", "spherical", "planar"), True), (ALL_KINDS, False), (ALL_KINDS, True),
        ]
    )
}  # fmt: skip


def state(bot: ls.Robot, seed: int = 0) -> list[np.ndarray]:
    rng = np.random.default_rng(seed)
    return [bot.random(rng), *rng.uniform(-1, 1, (2, bot.nv))]


def agrees_with_pinocchio(bot: ls.Robot, model: Any, seed: int = 0, scale: float = 1e-9) -> None:
    data, where = model.createData(), places(bot, model)
    q, qd, x = state(bot, seed)
    theirs = (their_q(bot, model, q), their_v(where, qd), their_v(where, x))
    pin.computeRNEADerivatives(model, data, *theirs)
    M = np.triu(data.M) + np.triu(data.M, 1).T
    for ours, expected in zip(bot.inverse_dynamics_derivatives(q, qd, x), (data.dtau_dq, data.dtau_dv, M), strict=True):
        assert close(ours, expected[np.ix_(where, where)], scale)
    pin.computeABADerivatives(model, data, *theirs)
    Minv = np.triu(data.Minv) + np.triu(data.Minv, 1).T
    for ours, expected in zip(
        bot.forward_dynamics_derivatives(q, qd, x), (data.ddq_dq, data.ddq_dv, Minv), strict=True
    ):
        assert close(ours, expected[np.ix_(where, where)], scale * max(1.0, 1e-4 * np.linalg.cond(M)))


@pytest.mark.quick
@pytest.mark.parametrize("case", FLOATING)
@pytest.mark.parametrize("seed", [1, 2])
def test_every_joint_against_pinocchio_by_name(case: str, seed: int):
    """computeRNEADerivatives and computeABADerivatives, in the tangent space, on twenty robots."""
    kinds, tree = FLOATING[case]
    bot = random_robot(kinds, tree=tree, seed=10 * seed + len(kinds))
    agrees_with_pinocchio(bot, pin_model(bot), seed)


@pytest.mark.cases(1)
@pytest.mark.parametrize("name", ["ur_description/urdf/ur5_robot.urdf", "solo_description/robots/solo12.urdf"])
@pytest.mark.slow
def test_files_on_a_floating_base(name: str):
    bot = ls.load(FILES[name], base="floating")
    model = pin.buildModelFromUrdf(str(FILES[name]), pin.JointModelFreeFlyer())
    model.names[1] = bot.joint_names[0]
    agrees_with_pinocchio(bot, model)


@pytest.mark.cases(1)
@pytest.mark.parametrize("rolled", [False, True])
@pytest.mark.parametrize("backend", ["llvm", "interpreter"])
@pytest.mark.slow
def test_loops_and_written_out_give_the_same(rolled: bool, backend: str):
    bot = random_robot(ALL_KINDS, tree=True, seed=3)
    q, qd, x = state(bot, 3)
    function = bot.compile([ID, *FIRST], rolled=rolled, backend=backend, f_ext=True, dissipation=True)
    force = np.random.default_rng(4).normal(size=(len(bot.link_names), 6))
    tau, dq, dqd, M = function(q, qd, x, force)
    assert function.program.rolled == rolled
    assert close(tau, bot.inverse_dynamics(q, qd, x, f_ext=force, dissipation=True), 1e-11)
    assert close(M, bot.mass_matrix(q), 1e-11)
    h = 1e-6

    def torques(direction: np.ndarray, rate: np.ndarray) -> np.ndarray:
        return bot.inverse_dynamics(bot.integrate(q, direction), qd + rate, x, f_ext=force, dissipation=True)

    for k, unit in enumerate(h * np.eye(bot.nv)):  # truncation h^2 and rounding 1e-16 / h, times the size of torques
        assert close(dq[:, k], (torques(unit, 0 * unit) - torques(-unit, 0 * unit)) / (2 * h), 1e-6)
        assert close(dqd[:, k], (torques(0 * unit, unit) - torques(0 * unit, -unit)) / (2 * h), 1e-6)


def test_one_program_shares_its_work():
    bot = ls.robots.puma560()
    together = bot.compile([ID, *FIRST], backend="interpreter")
    alone = [bot.compile(item, backend="interpreter") for item in (ID, *FIRST)]
    cost = [f.counts.mul + f.counts.add for f in (together, *alone)]
    assert cost[0] < 0.8 * sum(cost[1:]) and together.outputs == ("tau", "dtau_dq", "dtau_dqd", "dtau_dqdd")
    args = samples(bot, 4, seed=1)
    for got, f in zip(together(*args), alone, strict=True):
        assert close(got, f(*args), 1e-12)


def big_torques(bot: ls.Robot, args: list[Any]) -> np.ndarray:
    from robots_for_tests import at_rest

    from linksweep.spatial.algebra import Vec

    sweep = Unrolled(bot.canonical, args[0])
    qd, qdd = (sweep.split(x) for x in args[1:])
    result = newton_euler(sweep, qd, qdd, sweep.same(ZERO_FORCE), at_rest(Vec(*bot.gravity)))
    return np.array(sweep.join(result.tau), dtype=object)


@functools.cache
def second_differences(first: int, second: int) -> tuple[list[np.ndarray], np.ndarray]:
    """d2 tau / d first d second of the PUMA by differences of 50 digits: (nv, nv, nv)."""
    bot, h = ls.robots.puma560(), big([1e-12])[0]
    args = samples(bot, seed=21)
    n = bot.nv
    result = np.empty((n, n, n))
    for i in range(n):
        for j in range(n):
            total: Any = 0
            for a in (1, -1):
                for b in (1, -1):
                    moved = [big(x) for x in args]
                    moved[first][i] = moved[first][i] + h * a
                    moved[second][j] = moved[second][j] + h * b
                    total = total + big_torques(bot, moved) * (a * b)
            result[:, i, j] = floats(total / (h * h * 4))
    return args, result


@pytest.mark.slow
@pytest.mark.cases(1)
@pytest.mark.parametrize("bys", [("q", "q"), ("q", "qd"), ("qd", "qd"), ("qdd", "q")])
def test_second_derivatives_against_fifty_digits(bys: tuple[str, str]):
    names = ("q", "qd", "qdd")
    args, expected = second_differences(names.index(bys[0]), names.index(bys[1]))
    item = ("derivative", ("derivative", ID, bys[0]), bys[1])
    got = ls.robots.puma560().compile(item)(*args)
    assert got.shape == (6, 6, 6) and close(got, expected, 1e-9)


def test_the_symmetric_half_is_computed_once():
    program = ls.robots.puma560().compile(("derivative", ("derivative", ID, "q"), "q"), backend="interpreter").program
    values = {e.where[0]: e.value for body in program.bodies() for e in body.effects}  # type: ignore[union-attr]
    for i in range(6):
        for j in range(6):
            for k in range(6):
                a, b = values[36 * i + 6 * j + k], values[36 * i + 6 * k + j]
                assert a is b or a == b


def test_second_derivatives_of_a_free_body_are_derivatives_of_derivatives():
    bot = random_robot(("free", "revolute"), seed=5)
    q, qd, x = state(bot, 5)
    first = bot.compile(("derivative", ID, "q"))
    second = bot.compile(("derivative", ("derivative", ID, "q"), "q"))(q, qd, x)
    h = 1e-5
    for k, unit in enumerate(h * np.eye(bot.nv)):
        slope = (first(bot.integrate(q, unit), qd, x) - first(bot.integrate(q, -unit), qd, x)) / (2 * h)
        assert close(second[..., k], slope, 1e-7)  # h^2 and 1e-16 / h


@pytest.mark.slow
def test_poses_momentum_and_energy_along_rates():
    bot = random_robot(("free", "spherical", "revolute"), seed=6)
    q, qd, _ = state(bot, 6)
    frame = bot.frame_names[-1]
    J = bot.jacobian(q, frame)
    dT = bot.compile(("derivative", ("pose", frame), "q"))(q)
    assert close(dT[:3, 3], J[3:], 1e-12)
    com, dcom = bot.compile(["center_of_mass", ("derivative", "center_of_mass", "q")])(q)
    mass = sum(link.inertial.mass for link in bot.model.links)
    assert close(mass * dcom @ qd, bot.momentum(q, qd)[3:], 1e-11)
    assert close(com, bot.center_of_mass(q), 1e-13)
    dh = bot.compile(("derivative", "momentum", "qd"))(q, qd)
    assert close(dh, bot.centroidal_momentum_matrix(q), 1e-11)
    slope = bot.compile(("derivative", "potential_energy", "q"))(q)
    assert close(slope, bot.gravity_forces(q), 1e-11)
    velocity = bot.compile(("derivative", ("jacobian", frame, "local"), "q"))(q) @ qd
    assert close(velocity, bot.jacobian_derivative(q, qd, frame, reference="local"), 1e-11)


def test_by_the_numbers_of_q():
    bot = random_robot(("free", "revolute"), seed=7)
    q, qd, x = state(bot, 7)
    along, by_number = bot.compile([("derivative", ID, "q"), ("derivative", ID, "q", "coordinates")])(q, qd, x)
    assert along.shape == (7, 7) and by_number.shape == (7, 8)
    for k, unit in enumerate(np.eye(7)):
        assert close(by_number @ bot.coordinate_rates(q, unit), along[:, k], 1e-11)


@pytest.mark.quick
def test_by_parameters():
    bot = ls.robots.puma560()
    q, qd, x = samples(bot, seed=8)
    load = ls.body(1.5, (0.1, 0.0, 0.2))
    items = [ID, ("derivative", ID, "payload"), ("derivative", ID, "gravity"), ("derivative", ID, "q")]
    tau, by_load, by_gravity, by_q = bot.compile(items, parameters=("payload", "gravity"))(
        q, qd, x, load, np.array(bot.gravity)
    )
    still = bot.with_gravity((0, 0, 0))
    assert close(tau, bot.inverse_dynamics(q, qd, x) + by_load @ load, 1e-11)
    loaded = [b.with_payload(b.ee, 1.5, (0.1, 0.0, 0.2)) for b in (bot, still)]
    assert close(tau - loaded[1].inverse_dynamics(q, qd, x), by_gravity @ np.array(bot.gravity), 1e-10)
    assert close(by_q, loaded[0].inverse_dynamics_derivatives(q, qd, x)[0], 1e-10)
    by_armature = bot.compile(("derivative", ID, "armature"), parameters=("armature",))(q, qd, x, np.zeros(6))
    assert close(by_armature, np.diag(x), 1e-12)


@pytest.mark.quick
def test_batches_types_and_out():
    bot = ls.robots.puma560()
    q, qd, x = samples(bot, 12, seed=9)
    many = bot.inverse_dynamics_derivatives(q.reshape(3, 4, 6), qd.reshape(3, 4, 6), x.reshape(3, 4, 6))
    assert [a.shape for a in many] == [(3, 4, 6, 6)] * 3
    out = tuple(np.empty((12, 6, 6)) for _ in range(3))
    given = bot.inverse_dynamics_derivatives(q, qd, x, out=out)
    assert all(a is b for a, b in zip(given, out, strict=True))
    for a, b in zip(many, out, strict=True):
        assert np.array_equal(a.reshape(12, 6, 6), b)
    single = bot.forward_dynamics_derivatives(*(a.astype(np.float32) for a in (q, qd, x)))
    assert {a.dtype for a in single} == {np.dtype(np.float32)}
    assert close(single[2], bot.mass_matrix_inverse(q), 1e-4)  # float32


@pytest.mark.slow
def test_methods_stay_what_they_are():
    """A method that is asked for computes the values; derivatives do not depend on it."""
    bot = ls.robots.puma560()
    args = samples(bot, 3, seed=10)
    for name, methods in ((ID, ("newton_euler", "kane")), (FD, ("fd3", "filter_smoother"))):
        expected = bot.compile([name, ("derivative", name, "q")])(*args)
        for method in methods:
            got = bot.compile([name, ("derivative", name, "q")], method=method)(*args)
            assert np.array_equal(got[0], bot.compile(name, method=method)(*args)) or close(got[0], expected[0], 1e-11)
            assert close(got[1], expected[1], 1e-9)


BAD = {
    "expected one of its inputs q, qd, qdd": ("derivative", ID, "tau"),
    "did you mean|expected one of": ("derivative", "inverse_dynamic", "q"),
    "cannot be differentiated with respect to 3": ("derivative", ID, 3),
    r"expected \('derivative', function, input\)": ("derivative", ID),
    "expected 'coordinates' or nothing": ("derivative", ID, "q", "rates"),
    "in all or none": ("derivative", ("derivative", ID, "q", "coordinates"), "q"),
    "has no frame": ("derivative", ("pose", "nowhere"), "q"),
    r"pose needs a frame.*expected \('pose', 'tool'\)": ("derivative", "pose", "q"),
    "jacobian needs a frame": ("jvp", "jacobian", "q"),
}


@pytest.mark.parametrize("message", BAD)
def test_bad_requests(message: str):
    with pytest.raises(ArgumentError, match=message):
        ls.robots.puma560().compile(BAD[message])


def test_what_cannot_roll_and_what_is_singular():
    with pytest.raises(ArgumentError, match="cannot run as a loop"):
        robot("mixed3").compile(("derivative", FD, "q"), rolled=True)
    with pytest.warns(ls.ModelWarning):
        light = _massless()
    with pytest.raises(SingularError):
        light.forward_dynamics_derivatives([0.0, 0.0], [0.0, 0.0], [0.0, 0.0])


def _massless() -> ls.Robot:
    from linksweep.model.assembly import Part, assemble
    from linksweep.model.model import Inertial, Joint

    parts = [
        Part("a", "base", Joint("j0", "revolute", (0.0, 0.0, 1.0)), Inertial(1.0, (0.1, 0.0, 0.0))),
        Part("b", "a", Joint("j1", "revolute", (0.0, 0.0, 1.0)), Inertial()),
    ]
    return ls.Robot(assemble("light", parts, base="base"))


def test_figures_of_the_page():
    """Operations in docs/algorithms/derivatives.md."""
    ur5 = ls.load(FILES["ur_description/urdf/ur5_robot.urdf"])
    for bot, inverse, forward in ((ls.robots.puma560(), 1407, 2352), (ur5, 993, 1842)):
        for name, last, figure in ((ID, "qdd", inverse), (FD, "tau", forward)):
            items = [name, *(("derivative", name, by) for by in ("q", "qd", last))]
            counts = bot.compile(items, backend="interpreter").counts
            assert counts.mul + counts.add == figure
    second = [("derivative", ("derivative", ID, a), b) for a, b in (("q", "q"), ("q", "qd"), ("qd", "qd"))]
    counts = ur5.compile(second, backend="interpreter").counts
    assert counts.mul + counts.add == 2018


@pytest.mark.slow
def test_large_robots_take_loops():
    """Beyond WRITTEN_OUT operations: inverse dynamics by loops, forward dynamics from them with M inverted by NumPy."""
    bot = random_robot(("free", *["revolute"] * 20), tree=True, seed=11)
    assert bot.compile(FIRST).program.rolled
    agrees_with_pinocchio(bot, pin_model(bot))
    q, qd, x = state(bot)
    out = tuple(np.empty((bot.nv, bot.nv)) for _ in range(3))
    found = bot.forward_dynamics_derivatives(q, qd, x)
    bot.forward_dynamics_derivatives(q, qd, x, out=out)
    assert all(np.array_equal(a, b) for a, b in zip(found, out, strict=True))
