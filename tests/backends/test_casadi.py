"""Compiled functions in CasADi: values, derivatives, patterns, and problems that IPOPT solves with exact Hessians."""

from __future__ import annotations

import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from robots_for_tests import nested, robot
from typer.testing import CliRunner

import linksweep as ls
from linksweep.cli import app
from linksweep.errors import ArgumentError, BackendError
from linksweep.functions import casadi_export
from linksweep.functions.casadi_export import casadi_source, export_casadi
from linksweep.model.model import BASE
from linksweep.tracing.program import nonzeros

GCC = ("gcc", "-std=c99", "-Wall", "-Wextra", "-Werror", "-pedantic", "-O0", "-shared", "-fPIC")
BOUND = 0.3  # of torques, in parts of what the motors have


@pytest.fixture(scope="module")
def ca():
    found = pytest.importorskip("casadi", reason="f.casadi needs casadi, which is not installed")
    if shutil.which("cc") is None and shutil.which("gcc") is None:
        pytest.skip("f.casadi needs a C compiler, and there is none here")
    return found


def small_arm() -> ls.Robot:
    """The first three joints of the PUMA: second derivatives compile in a moment."""
    return robot("puma560").lock({"joint4": 0.1, "joint5": 0.2, "joint6": 0.3})


def lagrange(ca, bot: ls.Robot):
    """The torques as CasADi's own expressions: d/dt dL/dqd - dL/dq, from the kinetic energy of bodies."""
    model = bot.model
    q, qd, qdd = (ca.SX.sym(name, bot.nv) for name in ("q", "qd", "qdd"))
    poses, energy = [], 0
    for i, link in enumerate(model.links):
        R, p = (ca.SX.eye(3), ca.SX.zeros(3)) if link.parent == BASE else poses[link.parent]
        at, x = link.joint.placement, q[i]
        p, R, axis = p + R @ ca.DM(at.position), R @ ca.DM(nested(at.rotation)), ca.DM(link.joint.axis)
        if link.joint.kind == "prismatic":
            p = p + R @ axis * x
        else:
            R = R @ (ca.SX.eye(3) + ca.sin(x) * ca.skew(axis) + (1 - ca.cos(x)) * ca.skew(axis) @ ca.skew(axis))
        poses.append((R, p))
        c = p + R @ ca.DM(link.inertial.com)
        v = ca.jtimes(c, q, qd)
        w = ca.inv_skew(R.T @ ca.reshape(ca.jtimes(ca.vec(R), q, qd), 3, 3))
        energy += link.inertial.mass * (ca.dot(v, v) / 2 + ca.dot(ca.DM(model.gravity), c))
        energy += ca.dot(w, ca.DM(nested(link.inertial.inertia)) @ w) / 2 + link.joint.armature * qd[i] ** 2 / 2
    slope = ca.gradient(energy, qd)
    tau = ca.jtimes(slope, q, qd) + ca.jtimes(slope, qd, qdd) - ca.gradient(energy, q)
    return ca.Function("own", [q, qd, qdd], [tau])


def swing(ca, inverse, nv: int, limits: np.ndarray):
    """From rest to rest in one second with the least torque, within bounds, by 12 constant accelerations."""
    steps, h = 12, 1.0 / 12
    goal = np.linspace(0.9, -0.5, nv)
    qdd = ca.MX.sym("qdd", nv, steps)
    q, qd, cost, torques = ca.MX.zeros(nv), ca.MX.zeros(nv), 0, []
    for k in range(steps):
        tau = inverse(q, qd, qdd[:, k]) / limits
        torques.append(tau)
        cost += ca.sumsqr(tau) * h
        q, qd = q + h * qd + h**2 / 2 * qdd[:, k], qd + h * qdd[:, k]
    problem = {"x": ca.vec(qdd), "f": cost, "g": ca.vertcat(*torques, q, qd)}
    options = {"ipopt.print_level": 0, "print_time": False, "ipopt.sb": "yes", "ipopt.tol": 1e-11}
    solver = ca.nlpsol("solver", "ipopt", problem, options)
    lower = np.concatenate([np.full(nv * steps, -BOUND), goal, np.zeros(nv)])
    upper = np.concatenate([np.full(nv * steps, BOUND), goal, np.zeros(nv)])
    found = solver(x0=0, lbg=lower, ubg=upper)
    assert solver.stats()["success"], solver.stats()["return_status"]
    return np.array(found["x"]).ravel(), np.array(found["g"]).ravel()[: nv * steps], solver.stats()["iter_count"]


def test_ipopt_finds_what_it_finds_with_casadis_own_expressions(ca):
    bot = small_arm()
    inverse, own = bot.compile("inverse_dynamics").casadi("arm"), lagrange(ca, bot)
    limits = np.array([60.0, 120.0, 40.0])
    found, torques, iterations = swing(ca, inverse, 3, limits)
    expected, _, iterations_own = swing(ca, own, 3, limits)
    assert np.abs(found - expected).max() <= 1e-8 * np.abs(expected).max()
    assert np.abs(torques).max() > BOUND - 1e-6  # the bounds are at work
    assert iterations == iterations_own < 50  # as Newton with exact Hessians


def test_values_jacobian_and_hessian(ca):
    bot = robot("urdf")
    f = bot.compile(["inverse_dynamics", "mass_matrix"])
    made = f.casadi("sample")
    random = np.random.default_rng(1)
    given = random.uniform(-1, 1, (3, bot.nv))
    for found, expected in zip(made(*given), f(*given), strict=True):
        assert np.allclose(np.array(found).reshape(expected.shape), expected, rtol=1e-13, atol=1e-13)
    J = made.jacobian()(*given, 0, 0)
    slope = bot.compile(("derivative", "mass_matrix", "q"))(given[0])
    assert np.allclose(np.array(J[3]), slope.reshape((bot.nv**2, bot.nv), order="F"), atol=1e-13)
    x, weight = ca.MX.sym("x", 3 * bot.nv), random.uniform(-1, 1, bot.nv)
    tau, M = made(*ca.vertsplit(x, bot.nv))
    hessian, gradient = ca.hessian(ca.dot(weight, tau) + ca.sumsqr(M), x)
    both = ca.Function("both", [x], [hessian, gradient])
    point, step = given.ravel(), 1e-5
    differences = [np.array(both(point + d)[1] - both(point - d)[1]).ravel() / (2 * step) for d in np.eye(9) * step]
    assert np.allclose(np.array(both(point)[0]), differences, atol=1e-8)  # 1e-5**2 and rounding / 1e-5


def test_floating_base_and_null_arguments(ca):
    bot = robot("puma560").with_base("floating")
    f = bot.compile("kinetic_energy")
    made = f.casadi("floating", hessian=False)
    q, qd = bot.random(np.random.default_rng(0)), np.linspace(-1, 1, bot.nv)
    J = made.jacobian()(q, qd, 0)
    expected = bot.compile(("derivative", "kinetic_energy", "q", "coordinates"))(q, qd)
    assert np.allclose(np.array(J[0]).ravel(), expected, atol=1e-12)
    assert float(made.call({"q": q})["energy"]) == 0.0  # qd is not there: zeros
    assert np.allclose(np.array(made.map(2)(np.stack([q, q], 1), np.stack([qd, qd], 1))), f(q, qd))


def test_matrices_and_parameters_as_arguments(ca):
    bot = robot("urdf")
    f = bot.compile("bias_forces", f_ext=True, parameters=("payload:hand",))
    made = f.casadi("loaded", hessian=False)
    random = np.random.default_rng(2)
    given = [random.uniform(-1, 1, argument.shape) for argument in f.signature.inputs]
    assert np.allclose(np.array(made(*given)).ravel(), f(*given), atol=1e-12)
    J = made.jacobian()(*given, 0)
    step = 1e-6
    for k, x in enumerate(given):
        columns = []
        for place in range(x.size):
            delta = np.zeros(x.size)
            delta[place] = step
            moved = delta.reshape(x.shape, order="F")
            up, down = ([*given[:k], x + s * moved, *given[k + 1 :]] for s in (1, -1))
            columns.append((f(*up) - f(*down)) / (2 * step))
        assert np.allclose(np.array(J[k]), np.array(columns).T, atol=1e-6)  # 1e-16 / 1e-6, times forces of 100


def test_patterns_say_what_is_never_anything_but_zero():
    bot = robot("tree9")
    written, looped = (bot.compile("mass_matrix", rolled=rolled, backend="interpreter") for rolled in (False, True))
    M = np.any(written(np.random.default_rng(0).uniform(-3, 3, (3, bot.nq))) != 0, axis=0)
    assert nonzeros(written.program) == [np.flatnonzero(M).tolist()] and not M.all()
    related = [[a == b or _carries(bot, a, b) or _carries(bot, b, a) for b in range(bot.nv)] for a in range(bot.nv)]
    assert nonzeros(looped.program) == [np.flatnonzero(related).tolist()]  # a loop does not see geometry
    assert set(nonzeros(written.program)[0]) <= set(nonzeros(looped.program)[0])


def _carries(bot: ls.Robot, below: int, above: int) -> bool:
    """Whether the joint `above`, in the order of the document, carries `below`."""
    order = bot.model.document_order
    link = order[below]
    while link != BASE and link != order[above]:
        link = bot.model.links[link].parent
    return link != BASE


@pytest.mark.skipif(shutil.which("gcc") is None, reason="no C compiler here")
@pytest.mark.parametrize("integer", ["", "-Dcasadi_int=int"])
def test_compiles_without_a_warning_also_as_acados_wants_it(tmp_path: Path, integer: str):
    source = export_casadi(robot("urdf").compile("inverse_dynamics"), tmp_path / "sample.c", robot=robot("urdf"))
    options = [integer] if integer else []
    done = subprocess.run([*GCC, *options, "-o", tmp_path / "s.so", source, "-lm"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    names = subprocess.run(["nm", "-D", tmp_path / "s.so"], capture_output=True, text=True).stdout
    assert "jac_jac_sample_inverse_dynamics_sparsity_out" in names


def test_command_line(tmp_path: Path):
    file = tmp_path / "puma.c"
    arguments = ["export", "puma560", "gravity_forces", "--language", "casadi", "--name", "arm", "-o", str(file)]
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == 0, result.output
    assert "int jac_jac_arm(" in file.read_text() and not file.with_suffix(".h").exists()


@pytest.mark.parametrize("name", ["jac_f", "a__b", "x" * 40, "1f", "tail_", "hess"])
def test_names_that_casadi_refuses(name: str):
    with pytest.raises(ArgumentError):
        casadi_source(robot("planar3").compile("gravity_forces"), name)


def test_what_was_compiled_once_is_kept(ca, monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    """Source and library are in the cache: a second call neither traces nor compiles."""
    f = small_arm().compile("forward_dynamics")
    first = f.casadi("kept")

    def called(*_: object, **__: object) -> None:
        raise AssertionError("called")

    monkeypatch.setattr(casadi_export, "casadi_source", called)
    monkeypatch.setattr(subprocess, "run", called)
    second = f.casadi("kept", folder=tmp_path)
    state = np.random.default_rng(0).uniform(-1, 1, (3, 3))
    assert np.array_equal(np.array(first(*state)), np.array(second(*state)))
    assert "int kept(" in (tmp_path / "kept.c").read_text() and (tmp_path / "kept.so").exists()
    with pytest.raises(AssertionError, match="called"):
        f.casadi("other")


def test_large_programs_are_not_optimised(ca, monkeypatch: pytest.MonkeyPatch):
    commands, run = [], subprocess.run
    monkeypatch.setattr(subprocess, "run", lambda *args, **named: commands.append(args[0]) or run(*args, **named))
    small_arm().compile("gravity_forces").casadi("small", hessian=False)
    monkeypatch.setattr(casadi_export, "OPTIMISED", 100)
    small_arm().compile("gravity_forces").casadi("large", hessian=False)
    assert "-O1" in commands[0] and "-O0" in commands[1]


def test_the_compiler_is_the_one_that_is_named(ca, monkeypatch: pytest.MonkeyPatch):
    f = small_arm().compile("gravity_forces")
    for wrong in ("/nonexistent", "gcc-999 -m64", "'"):
        monkeypatch.setenv("CC", wrong)
        with pytest.raises(BackendError, match="CC is "):
            f.casadi("named")
    monkeypatch.setenv("CC", f"{shutil.which('gcc') or 'cc'} -DUNUSED=1")
    assert f.casadi("named", hessian=False).n_in() == 1


@pytest.mark.parametrize("name", ["jac", "fwd1", "null", "hess"])
def test_robots_whose_names_mean_something_to_casadi(ca, tmp_path: Path, name: str):
    model = replace(small_arm().model, name=name)
    bot = ls.Robot(model)
    f = bot.compile("gravity_forces")
    export_casadi(f, tmp_path / "f.c", robot=bot, hessian=False)
    subprocess.run([*GCC, "-o", tmp_path / "f.so", tmp_path / "f.c", "-lm"], check=True)
    chosen = casadi_export._checked_name(f, None, bot)
    loaded = ca.external(chosen, str(tmp_path / "f.so"))
    assert np.allclose(np.array(loaded(np.ones(3))).ravel(), f(np.ones(3)))
    assert np.array(loaded.jacobian()(np.ones(3), 0)).shape == (3, 3)
