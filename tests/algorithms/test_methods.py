"""Every algorithm of the papers gives one answer, which is Pinocchio's; the papers' proofs hold link by link."""

from __future__ import annotations

import functools
import re
import warnings
from dataclasses import replace
from typing import Any

import numpy as np
import pinocchio as pin
import pytest
from robots_for_tests import (
    Big,
    big,
    close,
    floats,
    joint_motion,
    kinematics,
    nested,
    path,
    random_inertial,
    random_rotation,
    robot,
    tree_model,
)

import linksweep as ls
from linksweep.algorithms.explicit.articulated_parameters import articulated_parameters
from linksweep.algorithms.mass_matrix.factorization import gains
from linksweep.errors import ArgumentError, ModelWarning
from linksweep.functions.functions import FUNCTIONS
from linksweep.mechanism.canonical import canonical
from linksweep.mechanism.sweeps import Unrolled
from linksweep.model.assembly import Part, assemble
from linksweep.model.model import BASE, Joint, Model, Placement
from linksweep.robot.checking import random_states
from linksweep.spatial.algebra import leaves

BAR = 1e-10  # relative, scaled by conditioning where M is inverted
SAMPLES = 3
CHAINS = [f"random{k}" for k in range(50)]
TREES = [f"branched{n}" for n in (2, 3, 4, 6, 9, 12)] + ["urdf"]
BUNDLED = ["puma560", "stanford", "six_axis", "planar3"]
AS_MACHINE_CODE = ["random3", "branched4"]


@pytest.fixture(autouse=True)
def interpreted(monkeypatch: pytest.MonkeyPatch) -> None:
    """Programs of all details take long to compile, and machine code of every method has a test of its own."""
    monkeypatch.setattr("linksweep.support.settings.backend", "interpreter")


# ---- robots and what Pinocchio says of them ------------------------------------------------------------------


@functools.cache
def bot(name: str) -> ls.Robot:
    """random7: a mixed chain of 8 links, with armature, damping and friction; branched4: a tree.

    random0 to random11 have 1 to 12 links, the others 1 to 6: they are for the variety of joints and axes.
    """
    number = int(re.sub(r"\D", "", name) or 0)
    if name.startswith("random"):
        model = ls.robots.chain_model(1 + number % (12 if number < 12 else 6), seed=number, joints="mixed")
        return ls.Robot(_with_motors(model, number))
    return ls.Robot(tree_model(number, seed=200 + number)) if name.startswith("branched") else robot(name)


def _with_motors(model: Model, seed: int) -> Model:
    random = np.random.default_rng(seed)
    links = [
        replace(
            link,
            joint=replace(
                link.joint,
                armature=float(random.choice([0.0, 0.05, 0.3])),
                damping=float(random.uniform(0, 1)),
                friction=float(random.uniform(0, 1)),
            ),
        )
        for link in model.links
    ]
    return replace(model, links=tuple(links))


@functools.cache
def result(name: str, function: str, method: str) -> np.ndarray:
    """By the interpreter, on `states`; rolled for every other robot, where the method can be."""
    rolled = not FUNCTIONS[function].methods[method].written_out and ("0" + name)[-1] in "13579"
    return computed(name, function, method, states(name), rolled=rolled)


@functools.cache
def states(name: str) -> dict[str, np.ndarray]:
    """q, qd, qdd, f_ext, base_motion, and the torques of newton_euler for them, all terms on."""
    found = random_states(bot(name), SAMPLES, seed=5)
    found["tau"] = computed(name, "inverse_dynamics", "newton_euler", found)
    return found


def computed(name: str, function: str, method: str, given: dict[str, np.ndarray], **options: Any) -> np.ndarray:
    """With all terms on, by the interpreter unless said otherwise."""
    options = {"backend": "interpreter", **dict.fromkeys(FUNCTIONS[function].takes, True), **options}
    compiled = bot(name).compile(function, method=method, **options)
    return compiled(*(given[key] for key in compiled.inputs))


def _depth_first(model: Model) -> list[int]:
    order, waiting = [], [i for i, link in enumerate(model.links) if link.parent == BASE]
    while waiting:
        order.append(waiting.pop())
        waiting += [i for i, link in enumerate(model.links) if link.parent == order[-1]]
    return order


class Pinocchio:
    """The same robot there, on a free-flying base of no mass, so that a base motion can be prescribed."""

    def __init__(self, model: Model):
        self.model: Any = pin.Model()
        self.model.gravity.linear = np.array(model.gravity, dtype=float)
        root = self.model.addJoint(0, pin.JointModelFreeFlyer(), pin.SE3.Identity(), "root")
        ids: dict[int, int] = {}
        for i in _depth_first(model):  # its algorithms take the links of a subtree to be neighbours
            link = model.links[i]
            kind = (
                pin.JointModelRevoluteUnaligned if link.joint.kind == "revolute" else pin.JointModelPrismaticUnaligned
            )
            place = pin.SE3(np.array(link.joint.placement.rotation), np.array(link.joint.placement.position))
            parent = root if link.parent == BASE else ids[link.parent]
            ids[i] = self.model.addJoint(parent, kind(np.array(link.joint.axis)), place, link.joint.name)
            body = pin.Inertia(link.inertial.mass, np.array(link.inertial.com), np.array(link.inertial.inertia))
            self.model.appendBodyToJoint(ids[i], body, pin.SE3.Identity())
        joints = [model.links[i].joint for i in model.document_order]
        self.ids = [ids[i] for i in model.document_order]
        self.places = np.array([self.model.joints[k].idx_v for k in self.ids])
        self.armature, self.damping, self.friction = (
            np.array([getattr(joint, what) for joint in joints]) for what in ("armature", "damping", "friction")
        )
        self.data: Any = self.model.createData()

    def _vector(self, first: Any, rest: np.ndarray, size: int) -> np.ndarray:
        out = np.zeros(size)
        out[: len(first)] = first
        out[self.places + (size - self.model.nv)] = rest
        return out

    def inverse(self, q: Any, qd: Any, qdd: Any, f_ext: Any, base: Any) -> np.ndarray:
        forces = pin.StdVec_Force()
        forces.extend([pin.Force.Zero()] * self.model.njoints)
        for k, row in zip(self.ids, f_ext, strict=True):
            forces[k] = pin.Force(row[3:], row[:3])
        still = [0, 0, 0, *base[:3]]
        tau = pin.rnea(
            self.model, self.data, self._vector([0, 0, 0, 0, 0, 0, 1], q, self.model.nq),
            self._vector(still, qd, self.model.nv), self._vector([*base[6:], *base[3:6]], qdd, self.model.nv), forces,
        )  # fmt: skip
        return tau[self.places] + self.armature * qdd + self.damping * qd + self.friction * np.sign(qd)

    def mass_matrix(self, q: Any) -> np.ndarray:
        upper = np.triu(pin.crba(self.model, self.data, self._vector([0, 0, 0, 0, 0, 0, 1], q, self.model.nq)))
        return (upper + np.triu(upper, 1).T)[np.ix_(self.places, self.places)] + np.diag(self.armature)


@functools.cache
def pinocchio(name: str) -> Pinocchio:
    return Pinocchio(bot(name).model)


@functools.cache
def expected(name: str) -> dict[str, np.ndarray]:
    """What Pinocchio says: tau of qdd, qdd of tau, M and M^-1; and the scale of differences of accelerations."""
    given, other = states(name), pinocchio(name)
    rows = [dict(zip(given, values, strict=True)) for values in zip(*given.values(), strict=True)]
    tau = np.array([other.inverse(*(row[k] for k in ("q", "qd", "qdd", "f_ext", "base_motion"))) for row in rows])
    bias = np.array([other.inverse(r["q"], r["qd"], 0 * r["qdd"], r["f_ext"], r["base_motion"]) for r in rows])
    M = np.array([other.mass_matrix(q) for q in given["q"]])
    inverse = np.linalg.inv(M)
    qdd = (inverse @ (given["tau"] - bias)[..., None])[..., 0]
    spread = (np.abs(inverse) @ np.sqrt(np.diagonal(M, axis1=-2, axis2=-1))[..., None])[..., 0]
    torque = (np.abs(M) @ np.abs(qdd)[..., None])[..., 0] + np.abs(bias) + np.abs(given["tau"])
    return {
        "inverse_dynamics": tau, "forward_dynamics": qdd, "mass_matrix": M, "mass_matrix_inverse": inverse,
        "reach": (np.abs(inverse) @ torque[..., None])[..., 0],
        "conditioning": spread[..., :, None] * spread[..., None, :],
    }  # fmt: skip


def scaled(name: str, function: str, difference: np.ndarray) -> float:
    """The largest difference, relative; of accelerations and M^-1 in units of what relative errors of the torques and
    of M do to them, element by element (as in checking.py)."""
    right = expected(name)
    scales = {"forward_dynamics": right["reach"], "mass_matrix_inverse": right["conditioning"]}
    scale = scales.get(function, np.abs(right[function]).max() if function in right else 1.0)
    return float((np.abs(difference) / scale).max())


# ---- agreement -----------------------------------------------------------------------------------------------


@pytest.mark.cases(1)
@pytest.mark.parametrize("function", ["inverse_dynamics", "forward_dynamics", "mass_matrix", "mass_matrix_inverse"])
@pytest.mark.parametrize("name", BUNDLED + CHAINS + TREES)
def test_every_method_agrees_with_pinocchio_and_the_others(name: str, function: str):
    """External forces, armature, dissipation and a moving base, all on."""
    results = {}
    for method in bot(name).methods(function):
        results[method] = result(name, function, method)
        assert scaled(name, function, results[method] - expected(name)[function]) <= BAR, method
    for a in results:
        for b in results:
            assert scaled(name, function, results[a] - results[b]) <= BAR, (a, b)


@pytest.mark.parametrize("name", BUNDLED + CHAINS + TREES)
def test_forward_is_the_inverse_of_inverse_and_M_times_its_inverse_is_one(name: str):
    given = states(name)
    M = result(name, "mass_matrix", "composite")
    for method in bot(name).methods("mass_matrix_inverse"):
        inverse = result(name, "mass_matrix_inverse", method)
        size = np.abs(M) @ np.abs(inverse)
        assert (np.abs(M @ inverse - np.eye(M.shape[-1])) / np.maximum(size, 1.0)).max() <= BAR
    for method in ("filter_smoother", "composite"):
        back = result(name, "forward_dynamics", method)
        assert scaled(name, "forward_dynamics", back - given["qdd"]) <= BAR


@pytest.mark.cases(1)
@pytest.mark.parametrize("function", ["inverse_dynamics", "forward_dynamics", "mass_matrix", "mass_matrix_inverse"])
@pytest.mark.parametrize("name", AS_MACHINE_CODE)
def test_every_method_as_machine_code(name: str, function: str):
    for method in bot(name).methods(function):
        got = computed(name, function, method, states(name), backend="llvm")
        assert scaled(name, function, got - expected(name)[function]) <= BAR, method


@pytest.mark.cases(1)
@pytest.mark.parametrize("name", ["random4", "random6", "branched4"])
@pytest.mark.slow
def test_rolled_and_written_out_programs_agree(name: str):
    for function in ("inverse_dynamics", "forward_dynamics", "mass_matrix", "mass_matrix_inverse"):
        for method in bot(name).methods(function):
            if not FUNCTIONS[function].methods[method].written_out:
                a, b = (computed(name, function, method, states(name), rolled=rolled) for rolled in (False, True))
                assert scaled(name, function, a - b) <= BAR, (function, method)


def test_methods_that_need_a_chain_say_so_of_a_tree():
    tree = bot("branched4")
    refused = 0
    for function in ("inverse_dynamics", "forward_dynamics", "mass_matrix_inverse"):
        for method, properties in FUNCTIONS[function].methods.items():
            if properties.serial:
                refused += 1
                said = (
                    rf"^{function}: method '{method}' needs a serial chain, but tree4 branches: use one of [\w, ]+\.$"
                )
                with pytest.raises(ArgumentError, match=said):
                    tree.compile(function, method=method)
                assert method not in tree.methods(function)
    assert refused >= 3  # closed_form, filter_smoother_ud, costate_covariance


# ---- Kozłowski: the two formulations of inverse dynamics are equal, link by link ------------------------------


@pytest.mark.parametrize("name", ["random2", "random5", "random11", "stanford", "branched6"])
def test_kozlowski_equality_of_the_formulations(name: str):
    """(3.24)-(3.44): x equal, and alpha = lambda + [0; w x v]: they are derivatives in different frames (ERRATA)."""
    given = states(name)
    args = [given[key] for key in ("q", "qd", "qdd")]
    options = {"f_ext": given["f_ext"], "base_motion": given["base_motion"], "details": True}
    _, ours = bot(name).inverse_dynamics(*args, method="boundary_value", **options)
    _, classical = bot(name).inverse_dynamics(*args, method="newton_euler", **options)
    assert close(ours.V, classical.V, 1e-12)
    assert close(ours.x, classical.f, 1e-12)
    turning = np.cross(ours.V[..., :3], ours.V[..., 3:])
    assert np.abs(turning).max() > 0.1  # the printed equality of the two lambda would be off by this
    moved = ours.costate + np.concatenate([np.zeros_like(turning), turning], axis=-1)
    assert close(moved, classical.alpha, 1e-12)


@pytest.mark.parametrize("name", ["random5", "random11", "stanford", "branched6"])
@pytest.mark.parametrize("method", ["boundary_value", "newton_euler", "kane"])
def test_gravity_as_a_force_equals_gravity_through_the_base(name: str, method: str):
    """F_c(k) = m g at every mass centre, or the base accelerated by -g: the same x at every joint."""
    arm = bot(name)
    q, qd, qdd = (states(name)[key][0] for key in ("q", "qd", "qdd"))
    bodies = kinematics(arm.model, q)
    weights = np.zeros((arm.nv, 6))
    for row, i in enumerate(arm.model.document_order):
        inertial = arm.model.links[i].inertial
        force = bodies[i].R.T @ np.array(arm.gravity) * inertial.mass
        weights[row] = [*np.cross(inertial.com, force), *force]
    floating = ls.Robot(arm.model.with_gravity((0.0, 0.0, 0.0)))
    tau, through_base = arm.inverse_dynamics(q, qd, qdd, method=method, details=True)
    again, by_force = floating.inverse_dynamics(q, qd, qdd, method=method, f_ext=weights, details=True)
    assert close(again, tau, 1e-12)
    for quantity in {"x", "f", "moment", "force"} & set(through_base):
        assert close(by_force[quantity], through_base[quantity], 1e-12)


# ---- Angeles, Ma & Rojas: partial velocities and the direct sum -----------------------------------------------


@pytest.mark.quick
@pytest.mark.parametrize("name", ["random2", "random7", "random11", "stanford", "six_axis", "branched6"])
def test_kane_equals_the_direct_sum_of_partial_velocities(name: str):
    """A_j, B_j by (32)-(36) are the Jacobians of link j's turning and of its mass centre; (37) is what kane gives."""
    arm = bot(name)
    q, qd, qdd = (states(name)[key][0] for key in ("q", "qd", "qdd"))
    bodies = kinematics(arm.model, q, qd, qdd)
    place = {link: k for k, link in enumerate(arm.model.document_order)}
    joints = [arm.model.links[i].joint for i in arm.model.document_order]
    tau = np.array([j.damping * x + j.friction * np.sign(x) for j, x in zip(joints, qd, strict=True)])  # -phi_d
    tau += np.array([j.armature for j in joints]) * qdd
    for j, (link, body) in enumerate(zip(arm.model.links, bodies, strict=True)):
        A, B = np.zeros((3, arm.nv)), np.zeros((3, arm.nv))
        for i in path(arm.model, j):
            A[:, place[i]], B[:, place[i]] = joint_motion(arm.model, bodies, i, body.c)  # e_i, e_i x s_ji; 0, e_i
        J = arm.jacobian(q, link.name)
        at = arm.pose(q, link.name)
        centre = at[:3, :3] @ _com_in_named_frame(arm.model, j)
        assert close(A, J[:3], 1e-12)  # (31)
        assert close(B, J[3:] - np.cross(centre, J[:3], axisb=0).T, 1e-12)  # (31): velocity of the mass centre
        r = body.c - body.p
        pdd = body.dv + np.cross(body.dw, r) + np.cross(body.w, np.cross(body.w, r)) - np.array(arm.gravity)  # (41)
        I = body.R @ np.array(link.inertial.inertia) @ body.R.T  # noqa: E741
        hd = I @ body.dw + np.cross(body.w, I @ body.w)
        tau += A.T @ hd + B.T @ (link.inertial.mass * pdd)  # (37)
    assert close(arm.inverse_dynamics(q, qd, qdd, method="kane", dissipation=True), tau, 1e-12)


def _com_in_named_frame(model: Model, link: int) -> np.ndarray:
    """The mass centre in the frame that bears the link's name (standard DH puts it at the far end)."""
    placement = next(frame.placement for frame in model.frames if frame.name == model.links[link].name)
    rotation = np.array(placement.rotation)
    return rotation.T @ (np.array(model.links[link].inertial.com) - np.array(placement.position))


# ---- Rodriguez & Kreutz: vectors, links' and tip's accelerations ----------------------------------------------


@pytest.mark.quick
@pytest.mark.parametrize("name", ["random2", "random7", "random11", "puma560", "stanford"])
def test_newton_euler_equals_the_vector_equations(name: str):
    """(2.1)-(2.13) in the base's directions, sliding joints as corrected: w, v, dw, dv, N(k), F(k) and T(k)."""
    arm = bot(name)
    q, qd, qdd = (states(name)[key][0] for key in ("q", "qd", "qdd"))
    tau, details = arm.inverse_dynamics(q, qd, qdd, details=True)
    n = arm.nv
    place = kinematics(arm.model, q)  # where the links are; their motion is found here
    origins = [np.zeros(3), *(body.p for body in place)]
    w = v = dw = np.zeros(3)
    dv = -np.array(arm.gravity)  # (2.1)
    forces = []
    for i, body in enumerate(place):
        link, h = arm.model.links[i], body.axis
        arm_vector = origins[i + 1] - origins[i]
        v, dv = v + np.cross(w, arm_vector), dv + np.cross(dw, arm_vector) + np.cross(w, np.cross(w, arm_vector))
        if link.joint.kind == "prismatic":
            v, dv = v + h * qd[i], dv + h * qdd[i] + 2 * np.cross(w, h * qd[i])  # (2.3), (2.5) with ERRATA's 2
        else:
            w, dw = w + h * qd[i], dw + h * qdd[i] + np.cross(w, h * qd[i])  # (2.2), (2.4)
        p = body.c - body.p
        dvc = dv + np.cross(dw, p) + np.cross(w, np.cross(w, p))  # (2.6)
        I = body.R @ np.array(link.inertial.inertia) @ body.R.T  # noqa: E741
        forces.append((I @ dw + np.cross(w, I @ w), link.inertial.mass * dvc, p))  # (2.9), (2.10)
        turn = body.R.T
        assert close(details.V[i], [*turn @ w, *turn @ v], 1e-12)
        assert close(details.alpha[i], [*turn @ dw, *turn @ dv], 1e-12)
    N = F = np.zeros(3)  # (2.8)
    for i in reversed(range(n)):
        moment, force, p = forces[i]
        l = origins[i + 2] - origins[i + 1] if i + 1 < n else np.zeros(3)  # noqa: E741
        N = N + np.cross(l, F) + np.cross(p, force) + moment  # (2.12)
        F = F + force  # (2.11)
        link, turn = arm.model.links[i], place[i].R.T
        assert close(details.f[i], [*turn @ N, *turn @ F], 1e-12)
        T = place[i].axis @ (F if link.joint.kind == "prismatic" else N) + link.joint.armature * qdd[i]  # (2.13)
        assert close(tau[i], T, 1e-11)


@pytest.mark.parametrize("name", ["random2", "random7", "random11", "stanford", "puma560"])
@pytest.mark.parametrize("method", ["fd1", "fd2", "fd3", "fd4"])
def test_link_and_tip_accelerations(name: str, method: str):
    """(4.22b), (5.6), (5.7) are the accelerations that Newton-Euler has for the same qdd."""
    given = states(name)
    q, qd, tau = (given[key] for key in ("q", "qd", "tau"))
    options: dict[str, Any] = {"f_ext": given["f_ext"], "base_motion": given["base_motion"], "dissipation": True}
    qdd, forward = bot(name).forward_dynamics(q, qd, tau, method=method, details=True, **options)
    _, inverse = bot(name).inverse_dynamics(q, qd, qdd, details=True, **options)
    assert close(forward.alpha, inverse.alpha, 1e-10)
    assert close(forward.alpha_tip, inverse.alpha_tip, 1e-10)
    if "costate" in forward:
        assert close(forward.alpha, forward.costate + forward.zeta, 1e-12)


@pytest.mark.parametrize("name", ["random2", "random7", "random11", "stanford"])
def test_tip_acceleration_is_the_second_derivative_of_the_tip(name: str):
    """alpha(0) against differences of the tip frame's motion, eighth order in the step."""
    arm = bot(name)
    q, qd, tau = (states(name)[key][0] for key in ("q", "qd", "tau"))
    qdd, details = arm.forward_dynamics(q, qd, tau, method="fd2", details=True)
    tip = arm.frame_names[-1]
    step = 2e-2 / max(1.0, np.abs(qd).max(), np.sqrt(np.abs(qdd).max()))
    times = np.arange(-4, 5)[:, None] * step
    motion = q + qd * times + qdd * times**2 / 2
    second = np.array([-1 / 560, 8 / 315, -1 / 5, 8 / 5, -205 / 72, 8 / 5, -1 / 5, 8 / 315, -1 / 560]) / step**2
    first = np.array([1 / 280, -4 / 105, 1 / 5, -4 / 5, 0, 4 / 5, -1 / 5, 4 / 105, -1 / 280]) / step
    linear = second @ arm.pose(motion, tip)[:, :3, 3] - np.array(arm.gravity)
    rates = (arm.jacobian(motion, tip)[:, :3] @ (qd + qdd * times)[..., None])[..., 0]
    last = kinematics(arm.model, q)[-1].R.T
    assert close(details.alpha_tip, [*last @ (first @ rates), *last @ linear], 1e-7)


# ---- Rodriguez: the closed form, and the articulated body's parameters ----------------------------------------


@pytest.mark.cases(1)
@pytest.mark.parametrize("name", ["random1", "random2", "random7", "random11", "stanford", "puma560"])
def test_closed_form_components(name: str):
    """(69)-(72): a1 is M^-1 tau, the three make up qdd, and c is the diagonal of M^-1."""
    given = states(name)
    q, qd, tau = (given[key] for key in ("q", "qd", "tau"))
    qdd, details = bot(name).forward_dynamics(q, qd, tau, method="closed_form", details=True)
    inverse = np.linalg.inv(bot(name).mass_matrix(q))
    assert close(details.a1, (inverse @ tau[..., None])[..., 0], 1e-9)
    assert close(details.a1 + details.a2 + details.a3, qdd, 1e-12)
    assert close(details.c, np.diagonal(inverse, axis1=-2, axis2=-1), 1e-9)
    bias = bot(name).bias_forces(q, qd)
    assert close(details.a2 + details.a3, -(inverse @ bias[..., None])[..., 0], 1e-9)
    still, at_rest = (
        bot(name).with_gravity((0, 0, 0)).forward_dynamics(q, 0 * qd, tau, method="closed_form", details=True)
    )
    assert not at_rest.a2.any() and not at_rest.a3.any() and close(at_rest.a1, still, 1e-15)


@pytest.mark.parametrize("name", ["random2", "random7", "random11", "puma560", "branched6"])
def test_articulated_parameters_are_the_articulated_inertia(name: str):
    """(84) with the errata settled: [[J, C rho], [rho C^T, rho]] is P of (43), revolute and prismatic joints."""
    model = canonical(bot(name).model)
    sweep = Unrolled(model, states(name)["q"][0].tolist())
    given, found = gains(sweep), articulated_parameters(sweep)
    assert {link.kind for link in model.links} == {"revolute", "prismatic"} or name == "puma560"
    for gain, body, after, D in zip(given, found.body, found.body_plus, found.D, strict=True):
        scale = np.abs(np.array(leaves(gain.P), dtype=float)).max()
        assert close(leaves(body.J) + leaves(body.Y) + leaves(body.rho), leaves(gain.P), 1e-13)
        assert abs(D[0][0] - gain.D[0]) <= 1e-13 * scale
        P_plus = gain.P.minus_outer(gain.G[0], gain.G[0] * gain.D[0])
        parameters = np.array(leaves(after.J) + leaves(after.Y) + leaves(after.rho), dtype=float)
        assert np.abs(parameters - np.array(leaves(P_plus), dtype=float)).max() <= 1e-13 * scale


def test_articulated_parameters_of_joints_with_several_freedoms():
    random = np.random.default_rng(5)
    parts, parent = [], "base"
    for kind in ("free", "spherical", "helical", "planar", "revolute"):
        place = Placement(nested(random_rotation(random)), tuple(random.uniform(-0.4, 0.4, 3).tolist()))
        joint = Joint(f"to {kind}", kind, placement=place, armature=0.1, pitch=0.2 if kind == "helical" else 0.0)
        parts.append(Part(kind, parent, joint, random_inertial(random)))
        parent = kind
    arm = ls.Robot(assemble("free", parts, base="base"))
    sweep = Unrolled(canonical(arm.model), arm.random(random).tolist())
    for gain, body in zip(gains(sweep), articulated_parameters(sweep).body, strict=True):
        assert close(leaves(body.J) + leaves(body.Y) + leaves(body.rho), leaves(gain.P), 1e-13)


def test_articulated_mass_and_mass_centre_have_their_meaning():
    """The last link's rho is its mass and C its mass centre, until its joint gives way; a slide makes rho singular."""
    arm = ls.robots.chain(4, seed=12, joints="mixed")
    assert [link.joint.kind for link in arm.model.links].count("prismatic")
    model = canonical(arm.model)
    found = articulated_parameters(Unrolled(model, [0.3, -0.4, 0.5, 1.2]))
    last = found.body[-1]
    m, p = model.links[-1].mass, np.array(model.links[-1].com)
    assert close(_symmetric(last.rho), m * np.eye(3), 1e-15)
    C = _matrix(last.Y) @ np.linalg.inv(_symmetric(last.rho))
    assert close(C, np.cross(np.eye(3), p), 1e-14)  # the matrix of p x ( )
    for link, after in zip(model.links, found.body_plus, strict=True):
        smallest, *_, largest = np.linalg.eigvalsh(_symmetric(after.rho))
        assert smallest > -1e-14 * largest
        assert (smallest < 1e-14 * largest) == (link.kind == "prismatic")
        h = np.array([0.0, 0.0, 1.0])  # the joint's axis: what has given way has no inertia along it
        along = _symmetric(after.rho) @ h if link.kind == "prismatic" else _symmetric(after.J) @ h
        assert np.abs(along).max() <= 1e-14 * max(largest, np.abs(_symmetric(after.J)).max())


def test_articulated_parameters_over_another_scalar():
    """Numbers of 50 digits come out as such; constants of the robot are multiplied as floats before they meet."""
    sweep = Unrolled(canonical(bot("puma560").model), big(states("puma560")["q"][0]))
    given, found = gains(sweep), articulated_parameters(sweep)
    assert isinstance(found.D[0][0][0], Big)
    for gain, body in zip(given, found.body, strict=True):
        ours = floats(leaves(body.J) + leaves(body.Y) + leaves(body.rho))
        assert close(ours, floats(leaves(gain.P)), 1e-15)


def _matrix(a: Any) -> np.ndarray:
    return np.array([list(row) for row in (a.x, a.y, a.z)], dtype=float)


def _symmetric(a: Any) -> np.ndarray:
    return np.array([list(row) for row in a.rows()], dtype=float)


@pytest.mark.slow
def test_ill_conditioned_robots_still_agree_within_their_conditioning():
    """Mass ratios to 1e8: the bar holds because it grants what the conditioning takes, and no more."""
    random = np.random.default_rng(3)
    model = ls.robots.chain_model(6, seed=8, joints="mixed")
    sizes = 10.0 ** random.uniform(-4, 4, 6)
    links = tuple(
        replace(
            link,
            inertial=replace(
                link.inertial,
                mass=link.inertial.mass * size,
                inertia=tuple(tuple(x * size for x in row) for row in link.inertial.inertia),
            ),
        )
        for link, size in zip(model.links, sizes, strict=True)
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ModelWarning)
        report = ls.check(ls.Robot(replace(model, links=links)))
    assert report.ok and report.worst < 1e-12, str(report)
