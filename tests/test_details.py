"""details=True: every quantity that a method names, with the shape, the row and the frame that a reader expects."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from robots_for_tests import close, kinematics, path, robot, samples

import linksweep as ls
from linksweep.errors import ArgumentError

LINK = {"V", "alpha", "costate", "f", "x", "n", "z", "z_plus", "G", "zeta", "y", "a", "d"}  # (links, 6)
LINK |= {"b", "moments", "forces", "accelerations"}  # of the closed form: b(k), and the sums over i < k of (70)
VECTOR = {"w", "dw", "dv", "pdd", "moment", "force"}  # (links, 3)
MATRIX = {"P", "P_plus", "Delta", "S"}  # (links, 6, 6)
JOINT = {"tau", "qdd", "D", "innovation", "residual", "nu", "T_free", "a1", "a2", "a3", "c"}  # (nv,)
JOINT |= {"inertial", "velocity", "gravity"}  # of the influence coefficients
NAMES = {
    "khalil_kleinfinger": {"tau", "w", "dw", "dv", "moment", "force"},
    "newton_euler": {"tau", "V", "alpha", "f"},
    "boundary_value": {"tau", "V", "costate", "x"},
    "kane": {"tau", "w", "dw", "pdd", "moment", "force"},
    "filter_smoother": {
        "qdd", "costate", "V", "n", "z", "z_plus", "P", "P_plus", "D", "G", "innovation", "residual",
    },
    "filter_smoother_ud": {"qdd", "costate", "z", "P", "D", "G", "innovation", "residual"},
    "fd1": {"qdd", "alpha", "costate", "V", "zeta", "T_free", "P", "D", "G", "z", "innovation", "nu"},
    "fd3": {"qdd", "alpha", "costate", "V", "zeta", "y", "P", "D", "G", "innovation", "nu"},
    "fd4": {"qdd", "alpha", "V", "a", "z", "P", "D", "G", "innovation", "nu"},
    "composite": {"qdd", "T_free"},
    "closed_form": {"qdd", "a1", "a2", "a3", "c", "d", "Delta", "S", "P", "P_plus", "D", "G"},
}  # fmt: skip
NAMES["filter_smoother_50"] = NAMES["filter_smoother_51"] = NAMES["filter_smoother"]
NAMES["fd2"] = NAMES["fd1"]
FUNCTIONS = ("inverse_dynamics", "forward_dynamics")


@pytest.fixture(autouse=True)
def interpreted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LINKSWEEP_BACKEND", "interpreter")  # programs of all details take long to compile


@pytest.mark.parametrize("name", ["stanford", "mixed3", "tree4"])
@pytest.mark.parametrize("function", FUNCTIONS)
def test_names_and_shapes_of_every_method(name: str, function: str):
    bot = robot(name)
    args = samples(bot, 2, 3, seed=4)
    for method in bot.methods(function):
        result, details = getattr(bot, function)(*args, method=method, details=True)
        plain = getattr(bot, function)(*args, method=method)
        assert close(result, plain, 1e-8), method  # in other frames, so rounded otherwise
        assert NAMES.get(method, set()) <= set(details), method
        for quantity, values in details.items():
            assert values.shape == (2, 3, *shape_of(quantity, bot)), (method, quantity)
            assert np.isfinite(values).all()
        assert details["tau" if function == "inverse_dynamics" else "qdd"] is result


def shape_of(quantity: str, bot: ls.Robot) -> tuple[int, ...]:
    if quantity == "alpha_tip":
        return (6,)
    assert quantity in LINK | VECTOR | MATRIX | JOINT, f"say in this test what {quantity} is"
    rest = (6,) if quantity in LINK else (3,) if quantity in VECTOR else (6, 6) if quantity in MATRIX else ()
    return (bot.nv, *rest)


def test_machine_code_gives_the_same_details(monkeypatch: pytest.MonkeyPatch):
    bot = ls.robots.chain(2, seed=4, joints="mixed")
    q, qd, tau = samples(bot, 5, seed=4)
    _, interpreted = bot.forward_dynamics(q, qd, tau, details=True)
    monkeypatch.setenv("LINKSWEEP_BACKEND", "llvm")
    _, compiled = bot.forward_dynamics(q, qd, tau, details=True)
    assert list(compiled) == list(interpreted)
    for quantity in compiled:
        assert close(compiled[quantity], interpreted[quantity], 1e-11), quantity


def test_quantities_are_attributes_too():
    bot = robot("mixed3")
    q, qd, qdd = samples(bot)
    _, details = bot.inverse_dynamics(q, qd, qdd, details=True)
    assert details.V is details["V"]
    with pytest.raises(AttributeError, match="no quantity 'nothing': there are tau, V, alpha, f, alpha_tip"):
        details.nothing  # noqa: B018


def test_out_is_refused():
    bot = robot("mixed3")
    q, qd, qdd = samples(bot)
    with pytest.raises(ArgumentError, match=r"out= does not go with details=True"):
        bot.inverse_dynamics(q, qd, qdd, details=True, out=np.empty(3))


# ---- rows and frames -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["tree9", "urdf", "mixed5", "stanford"])
def test_rows_follow_the_link_names_and_frames_are_the_descriptions(name: str):
    """V and alpha are those of the link's own origin, in its own directions, also where joints are shuffled."""
    bot = robot(name)
    q, qd, qdd = samples(bot, seed=6)
    _, details = bot.inverse_dynamics(q, qd, qdd, details=True)
    _, kane = bot.inverse_dynamics(q, qd, qdd, method="kane", details=True)
    bodies = kinematics(bot.model, q, qd, qdd)
    for row, i in enumerate(bot.model.document_order):
        body, R = bodies[i], bodies[i].R.T
        assert bot.link_names[row] == bot.model.links[i].name
        assert close(details.V[row], [*R @ body.w, *R @ body.v], 1e-12)
        dv = body.dv - np.array(bot.gravity)
        assert close(details.alpha[row], [*R @ body.dw, *R @ dv], 1e-12)
        assert close(kane.w[row], R @ body.w, 1e-12)
        r = body.c - body.p
        pdd = dv + np.cross(body.dw, r) + np.cross(body.w, np.cross(body.w, r))
        assert close(kane.pdd[row], R @ pdd, 1e-12)
        assert close([*kane.moment[row], *kane.force[row]], details.f[row], 1e-12)


@pytest.mark.parametrize("name", ["tree9", "mixed5", "puma560"])
def test_joint_force_is_the_projection_of_the_links_force(name: str):
    bot = robot(name)
    q, qd, qdd = samples(bot, seed=8)
    tau, details = bot.inverse_dynamics(q, qd, qdd, details=True)
    for row, i in enumerate(bot.model.document_order):
        joint = bot.model.links[i].joint
        part = details.f[row][3:] if joint.kind == "prismatic" else details.f[row][:3]
        assert abs(np.dot(joint.axis, part) + joint.armature * qdd[row] - tau[row]) <= 1e-11 * np.abs(tau).max()


@pytest.mark.parametrize("method", ["filter_smoother", "filter_smoother_50", "filter_smoother_51", "fd1", "fd4"])
def test_inertias_of_the_tips_are_their_links_own(method: str):
    bot = robot("tree9")
    q, qd, tau = samples(bot, seed=9)
    _, details = bot.forward_dynamics(q, qd, tau, method=method, details=True)
    parents = {link.parent for link in bot.model.links}
    tips = [(row, i) for row, i in enumerate(bot.model.document_order) if i not in parents]
    assert tips
    for row, i in tips:
        inertial = bot.model.links[i].inertial
        p = np.cross(np.eye(3), np.array(inertial.com))
        m = inertial.mass
        M = np.block([[np.array(inertial.inertia) - m * p @ p, m * p], [-m * p, m * np.eye(3)]])
        assert close(details.P[row], M, 1e-13)
    assert close(details.P, np.swapaxes(details.P, -1, -2), 1e-15)


def test_gains_innovations_and_residuals_belong_together():
    """(38)-(42) hold between the arrays: D = H P H^T + R, G = P H^T / D, e⁺ = e⁻ / D, P⁺ = P - G (P H^T)^T."""
    bot = robot("tree9")
    q, qd, tau = samples(bot, seed=10)
    _, details = bot.forward_dynamics(q, qd, tau, details=True)
    for row, i in enumerate(bot.model.document_order):
        joint = bot.model.links[i].joint
        h = np.array([0, 0, 0, *joint.axis] if joint.kind == "prismatic" else [*joint.axis, 0, 0, 0])
        P = details.P[row]
        assert close(details.D[row], h @ P @ h + joint.armature, 1e-12)
        assert close(details.G[row] * details.D[row], P @ h, 1e-12)
        assert close(details.innovation[row], tau[row] - h @ details.z[row], 1e-11)
        assert close(details.residual[row] * details.D[row], details.innovation[row], 1e-12)
        rest = P - np.outer(details.G[row], P @ h) - details.P_plus[row]
        assert np.abs(rest).max() <= 1e-12 * np.abs(P).max()


def test_options_reach_the_details():
    bot = robot("tree4")
    q, qd, tau = samples(bot, seed=11)
    f_ext = np.random.default_rng(1).normal(size=(bot.nv, 6))
    base = np.random.default_rng(2).normal(size=9)
    options: dict[str, Any] = {"f_ext": f_ext, "base_motion": base, "dissipation": True}
    for method in bot.methods("forward_dynamics"):
        qdd, details = bot.forward_dynamics(q, qd, tau, method=method, details=True, **options)
        assert close(qdd, bot.forward_dynamics(q, qd, tau, method=method, **options), 1e-10)
    _, plain = bot.forward_dynamics(q, qd, tau, details=True)
    _, details = bot.forward_dynamics(q, qd, tau, details=True, **options)
    assert not close(details.V, plain.V, 1e-3)
    by_name = dict(zip(bot.link_names, f_ext, strict=True))
    _, named = bot.forward_dynamics(q, qd, tau, details=True, **{**options, "f_ext": by_name})
    assert close(named.z, details.z, 1e-12)
    first = [row for row, i in enumerate(bot.model.document_order) if len(path(bot.model, i)) == 1]
    for row in first:  # on the base: its turning is the base's, and the joint's own
        i = bot.model.document_order[row]
        joint = bot.model.links[i].joint
        w = kinematics(bot.model, q)[i].R.T @ base[:3]
        w = w + (np.array(joint.axis) * qd[row] if joint.kind == "revolute" else 0)
        assert close(details.V[row][:3], w, 1e-12)
