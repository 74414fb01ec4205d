"""details=True: every quantity that a method names, with the shape, the row and the frame that a reader expects."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from robots_for_tests import close, kinematics, path, robot, samples

import linksweep as ls
from linksweep.errors import ArgumentError

LINK = {"V", "V_plus", "alpha", "costate", "costate_plus", "carried", "f", "f_link", "x", "n", "z", "z_plus", "b"}
LINK |= {"zeta", "y", "y_plus", "a", "G", "d", "r1", "r2", "r3", "rest", "moments", "forces", "accelerations"}
VECTOR = {"w", "dw", "dv", "dv_foot", "pdd", "rho", "hd", "u", "k", "moment", "force"}  # (links, 3)
VECTOR |= {"C", "P_k", "L_k"}  # of augmented bodies
TENSOR = {"W", "III"}  # (links, 3, 3)
MATRIX = {"P", "P_plus", "Delta", "Delta_plus", "S", "U_plus"}  # (links, 6, 6)
JOINT = {"tau", "qdd", "D", "innovation", "residual", "nu", "T_free", "T_bias", "a1", "a2", "a3", "c"}  # (nv,)
JOINT |= {"inertial", "velocity", "gravity", "applied", "M"}  # of the influence coefficients; M is of links
OTHERS = {  # the same letter for other things
    ("khalil_kleinfinger", "U"): (3, 3), ("filter_smoother_ud", "U"): (6, 6), ("filter_smoother_ud", "d_plus"): (6,),
}  # fmt: skip
NAMES = {
    "khalil_kleinfinger": {"tau", "w", "dw", "dv", "dv_foot", "U", "f_link", "moment", "force"},
    "newton_euler": {"tau", "V", "V_plus", "a", "alpha", "b", "f"},
    "boundary_value": {"tau", "V", "V_plus", "n", "costate", "costate_plus", "b", "x"},
    "kane": {"tau", "w", "dw", "W", "pdd", "rho", "hd", "u", "k", "moment", "force"},
    "influence": {
        "tau", "inertial", "velocity", "gravity", "applied", "I", "P", "P1", "P2", "P3", "M", "C", "III", "P_k", "L_k",
    },
    "filter_smoother": {
        "qdd", "costate", "carried", "V", "V_plus", "n", "b", "z", "z_plus", "P", "P_plus", "D", "G", "innovation",
        "residual",
    },
    "filter_smoother_ud": {
        "qdd", "costate", "carried", "V", "V_plus", "n", "b", "z", "z_plus", "P", "U", "d", "U_plus", "d_plus", "D",
        "G", "innovation", "residual",
    },
    "fd1": {
        "qdd", "alpha", "costate", "carried", "V", "V_plus", "a", "zeta", "b", "f", "T_free", "P", "P_plus", "D", "G",
        "z", "innovation", "nu",
    },
    "fd3": {
        "qdd", "alpha", "costate", "carried", "V", "V_plus", "a", "zeta", "b", "y", "y_plus", "P", "P_plus", "D", "G",
        "innovation", "nu",
    },
    "fd4": {
        "qdd", "alpha", "carried", "V", "V_plus", "a", "b", "z", "z_plus", "P", "P_plus", "D", "G", "innovation", "nu",
    },
    "composite": {"qdd", "T_bias", "T_free", "M"},
    "closed_form": {
        "qdd", "V", "V_plus", "n", "b", "a1", "a2", "a3", "c", "d", "r1", "r2", "r3", "rest", "Delta", "Delta_plus",
        "S", "P", "P_plus", "D", "G", "moments", "forces", "accelerations",
    },
}  # fmt: skip
NAMES["filter_smoother_50"] = NAMES["filter_smoother_51"] = NAMES["filter_smoother"]
NAMES["fd2"] = NAMES["fd1"]
FUNCTIONS = ("inverse_dynamics", "forward_dynamics")


@pytest.fixture(autouse=True)
def interpreted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("linksweep.support.settings.backend", "interpreter")  # details take long to compile


@pytest.mark.cases(1)
@pytest.mark.parametrize("name", ["stanford", "mixed3", "tree4"])
@pytest.mark.parametrize("function", FUNCTIONS)
def test_names_and_shapes_of_every_method(name: str, function: str):
    bot = robot(name)
    args = samples(bot, 2, 3, seed=4)
    for method in bot.methods(function):
        result, details = getattr(bot, function)(*args, method=method, details=True)
        plain = getattr(bot, function)(*args, method=method)
        assert close(result, plain, 1e-8), method  # in other frames, so rounded otherwise
        assert NAMES[method] == set(details) - {"alpha_tip"}, method
        for quantity, values in details.items():
            assert values.shape == (2, 3, *shape_of(method, quantity, bot)), (method, quantity)
            assert np.isfinite(values).all()
        assert details["tau" if function == "inverse_dynamics" else "qdd"] is result


def shape_of(method: str, quantity: str, bot: ls.Robot) -> tuple[int, ...]:
    """Of robots whose joints have one freedom each."""
    if quantity == "alpha_tip":
        return (6,)
    if (method, quantity) in (("composite", "M"), ("influence", "I")):
        return (bot.nv, bot.nv)
    if method == "influence" and quantity in ("P", "P1", "P2", "P3"):
        return (bot.nv,) * 3
    if (method, quantity) in OTHERS:
        return (bot.nv, *OTHERS[method, quantity])
    assert quantity in LINK | VECTOR | TENSOR | MATRIX | JOINT, f"say in this test what {quantity} is"
    kinds = ((LINK, (6,)), (VECTOR, (3,)), (TENSOR, (3, 3)), (MATRIX, (6, 6)), (JOINT, ()))
    return (bot.nv, *next(rest for names, rest in kinds if quantity in names))


def test_machine_code_gives_the_same_details(monkeypatch: pytest.MonkeyPatch):
    bot = ls.robots.chain(2, seed=4, joints="mixed")
    q, qd, tau = samples(bot, 5, seed=4)
    _, interpreted = bot.forward_dynamics(q, qd, tau, details=True)
    monkeypatch.setattr("linksweep.support.settings.backend", "llvm")
    _, compiled = bot.forward_dynamics(q, qd, tau, details=True)
    assert list(compiled) == list(interpreted)
    for quantity in compiled:
        assert close(compiled[quantity], interpreted[quantity], 1e-11), quantity


def test_quantities_are_attributes_too():
    bot = robot("mixed3")
    q, qd, qdd = samples(bot)
    _, details = bot.inverse_dynamics(q, qd, qdd, details=True)
    assert details.V is details["V"]
    with pytest.raises(
        AttributeError, match="no quantity 'nothing': there are tau, V, alpha, f, V_plus, a, b, alpha_tip"
    ):
        details.nothing  # noqa: B018


def test_out_is_refused():
    bot = robot("mixed3")
    q, qd, qdd = samples(bot)
    with pytest.raises(ArgumentError, match=r"out= and details=True"):
        bot.inverse_dynamics(q, qd, qdd, details=True, out=np.empty(3))


# ---- rows and frames -------------------------------------------------------------------------------------------


@pytest.mark.cases(1)
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


@pytest.mark.slow
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


# ---- multi-DOF joints ------------------------------------------------------------------------------------


def several_freedoms() -> ls.Robot:
    from robots_for_tests import freely_moving

    return freely_moving()


COLUMNS = {"free": range(6), "spherical": range(3), "planar": (2, 3, 4), "prismatic": (5,)}  # of H^T, about and along z


@pytest.mark.parametrize("method", ["filter_smoother", "filter_smoother_50", "fd1", "fd3", "fd4"])
def test_blocks_belong_together(method: str):
    """(38)-(43) between the arrays of a robot with a free base, a ball joint, a slide and a planar joint."""
    bot = several_freedoms()
    random = np.random.default_rng(3)
    q = bot.random(random)
    qd, tau = random.normal(size=(2, bot.nv))
    _, at = bot.forward_dynamics(q, qd, tau, method=method, details=True)
    assert at.D.shape == (bot.nv, bot.nv) and at.G.shape == (bot.nv, 6)
    inside = np.zeros_like(at.D, bool)
    start = 0
    for row, i in enumerate(bot.model.document_order):
        joint = bot.model.links[i].joint
        H = np.eye(6)[list(COLUMNS[joint.kind])]
        own = slice(start, start := start + len(H))
        inside[own, own] = True
        P, D, G = at.P[row], at.D[own, own], at.G[own].T
        assert close(D, H @ P @ H.T + joint.armature * np.eye(len(H)), 1e-12)
        assert close(G @ D, P @ H.T, 1e-12)
        assert close(at.P_plus[row], P - G @ D @ G.T, 1e-11)
        nu = at["residual" if "residual" in at else "nu"][own]
        assert close(D @ nu, at.innovation[own], 1e-11)
        assert close(at.V[row] - at.V_plus[row], H.T @ qd[own], 1e-12)
        acceleration = at["costate" if "costate" in at else "alpha"][row]
        assert close(acceleration - at.carried[row], H.T @ at.qdd[own], 1e-11)
    assert not at.D[~inside].any()
    assert close(at.D, bot.factor(q).D, 1e-12)


@pytest.mark.slow
def test_factor_and_details_have_the_same_D():
    bot = robot("tree9")
    q, qd, tau = samples(bot, 2, seed=5)
    for method in bot.methods("forward_dynamics"):
        _, at = bot.forward_dynamics(q, qd, tau, method=method, details=True)
        if "D" in at:
            assert close(at.D, bot.factor(q).D, 1e-11)


def test_bias_terms_are_what_they_are_called():
    """a, b, n by the velocities alone; W, hd, u, k by Kane's definitions."""
    bot = robot("mixed5")
    q, qd, qdd = samples(bot, seed=12)
    _, newton = bot.inverse_dynamics(q, qd, qdd, details=True)
    _, two_point = bot.inverse_dynamics(q, qd, qdd, method="boundary_value", details=True)
    _, kane = bot.inverse_dynamics(q, qd, qdd, method="kane", details=True)
    _, rest = bot.inverse_dynamics(q, qd, 0 * qdd, details=True)
    for row, i in enumerate(bot.model.document_order):
        inertial = bot.model.links[i].inertial
        m, c, about = inertial.mass, np.array(inertial.com), np.array(inertial.inertia)
        w, v = newton.V[row][:3], newton.V[row][3:]
        J = about + m * (c @ c * np.eye(3) - np.outer(c, c))
        b = np.concatenate([np.cross(w, J @ w), m * np.cross(w, np.cross(w, c))])
        assert close(newton.b[row], b, 1e-12)  # (2.23)
        turning = np.cross(w, v)
        assert close(two_point.b[row], b + np.concatenate([m * np.cross(c, turning), m * turning]), 1e-12)  # (3.14)
        dw = kane.dw[row]
        tilde = [np.cross(np.eye(3), x) for x in (w, dw)]
        assert close(kane.W[row], tilde[1] + tilde[0] @ tilde[0], 1e-12)  # (53)
        assert close(kane.rho[row], c, 1e-14) and close(kane.u[row], m * kane.pdd[row], 1e-13)
        assert close(kane.hd[row], about @ dw + np.cross(w, about @ w), 1e-11)
        assert close(kane.k[row], kane.hd[row] + np.cross(c, kane.u[row]), 1e-11)  # (47)
        assert close(two_point.costate[row] - two_point.costate_plus[row] - two_point.n[row], along(bot, i) * qdd[row])
    # what the bias acceleration adds is what is left of alpha where nothing accelerates, and gravity is not there
    still = ls.Robot(bot.model.with_gravity((0.0, 0.0, 0.0)))
    _, drift = still.inverse_dynamics(q, qd, 0 * qdd, details=True)
    first = next(row for row, i in enumerate(bot.model.document_order) if bot.model.links[i].parent < 0)
    assert close(drift.alpha[first], rest.a[first], 1e-12)


@pytest.mark.cases(1)
@pytest.mark.parametrize("name", ["tree9", "puma560", "mixed5"])
def test_augmented_bodies_momenta_and_the_terms_of_the_power_array(name: str):
    """Kang: (15), (18) by sums over what link k carries, (14), (16), (17) by the robot's momentum, P* by P1, P2, P3."""
    bot = robot(name)
    q, qd, qdd = samples(bot, seed=13)
    _, at = bot.inverse_dynamics(q, qd, qdd, method="influence", details=True)
    model, bodies = bot.model, kinematics(bot.model, q, qd)
    momentum = np.zeros(6)
    for row, k in enumerate(model.document_order):
        carried = [i for i in range(len(model.links)) if k in path(model, i)]
        masses = np.array([model.links[i].inertial.mass for i in carried])
        R, p = bodies[k].R, bodies[k].p
        C = masses @ [bodies[i].c for i in carried] / masses.sum()
        III = np.zeros((3, 3))
        for i, m in zip(carried, masses, strict=True):
            r = bodies[i].c - C
            III += bodies[i].R @ np.array(model.links[i].inertial.inertia) @ bodies[i].R.T
            III += m * (r @ r * np.eye(3) - np.outer(r, r))
        assert close(at.M[row], masses.sum(), 1e-13) and close(at.C[row], R.T @ (C - p), 1e-12)
        assert close(at.III[row], R.T @ III @ R, 1e-11)
        linear = R @ at.P_k[row]
        momentum += np.concatenate([R @ at.L_k[row] + np.cross(C, linear), linear])
    assert close(momentum, bot.momentum(q, qd, about="base"), 1e-11)
    assert close(at.P1 + at.P2 + at.P3, at.P, 1e-13)
    assert close(at.P, bot.explicit_model(q)[1], 1e-11)
    assert close(at.P1, np.swapaxes(at.P1, -1, -2), 1e-13)  # (P3)
    assert close(at.P3, -np.swapaxes(at.P3, 0, 1), 1e-13)  # (P7)
    if list(model.document_order) == list(range(len(model.links))):
        assert not np.tril(at.P2).any()  # (P6): j >= k


def along(bot: ls.Robot, link: int) -> np.ndarray:
    joint = bot.model.links[link].joint
    return np.array([0, 0, 0, *joint.axis] if joint.kind == "prismatic" else [*joint.axis, 0, 0, 0], float)


def test_two_quantities_of_one_name_are_refused():
    """What is dropped silently is what this module is against."""
    from dataclasses import dataclass

    from linksweep.functions.computation import RobotFunction
    from linksweep.functions.details import quantities
    from linksweep.functions.functions import record_of
    from linksweep.mechanism.canonical import canonical
    from linksweep.mechanism.sweeps import Records
    from linksweep.tracing.tracer import UnrolledTrace

    @dataclass
    class Doubled:
        tau: Records
        V: Records
        inner: Records

    model = canonical(robot("mixed3").model, described_frames=True)
    request = RobotFunction(model, "inverse_dynamics", "newton_euler")
    tracer = UnrolledTrace(model, request.inputs)
    found = record_of(tracer, request)

    @dataclass
    class Inner:
        V: object

    twice = Doubled(found.tau, found.V, Records(Inner(a) for a in found.alpha))
    with pytest.raises(AssertionError, match="two quantities V"):
        quantities(tracer, twice, "tau")
    with pytest.raises(AssertionError, match="do not know what inner is"):
        quantities(tracer, Doubled(found.tau, found.V, Records("abc")), "tau")
