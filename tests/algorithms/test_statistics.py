"""The equivalence with estimation theory is real: the mechanics of an arm are the statistics of a Gaussian process.

Rodriguez 1987, section IX, on small arms: spatial forces x(k) driven by noise of covariance M(k) and seen through the
joint moments tau(k) = H(k) x(k), armature being the noise of the measurement. The joint Gaussian of all x and tau is
built densely here from poses and inertias, conditioned by elimination, and compared with what the sweeps call filtered
and smoothed estimates and their covariances. Then the innovations model of Rodriguez & Kreutz 1988, (4.12)-(4.15).
"""

from __future__ import annotations

import functools
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest
from robots_for_tests import close, kinematics

import linksweep as ls
from linksweep.functions.compiled import CompiledFunction, compiled
from linksweep.functions.computation import RobotFunction, Together
from linksweep.model.model import BASE, Model

ARMS = [(n, armature, seed) for n in (1, 2, 3) for armature in (0.0, 0.2) for seed in (1, 2)]


@pytest.fixture(autouse=True)
def interpreted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("linksweep.support.settings.backend", "interpreter")  # details take long to compile


# ---- the Gaussian process of an arm ---------------------------------------------------------------------------


@dataclass
class Process:
    """An arm at q, its torques tau and forces f_ext on the links; the Gaussian of [x; tau] by mean and covariance.

    Links are numbered from the base as in the code: paper k = n - i, so the past of link i are the links beyond it.
    """

    arm: ls.Robot
    q: np.ndarray
    tau: np.ndarray
    f_ext: np.ndarray
    mean: np.ndarray
    covariance: np.ndarray

    def given(self, i: int, past: int) -> tuple[np.ndarray, np.ndarray]:
        """Conditional mean and covariance of x(i), the moments of the joints `past` and beyond being known."""
        n = len(self.q)
        x, seen = slice(6 * i, 6 * i + 6), slice(6 * n + past, 7 * n)
        gain = self.covariance[x, seen] @ np.linalg.pinv(self.covariance[seen, seen])
        mean = self.mean[x] + gain @ (self.tau[past:] - self.mean[seen])
        return mean, self.covariance[x, x] - gain @ self.covariance[seen, x]


@functools.cache
def process(n: int, armature: float, seed: int) -> Process:
    random = np.random.default_rng(100 * n + seed)
    model = ls.robots.chain_model(n, seed=seed, joints="mixed").with_gravity((0.0, 0.0, 0.0))
    links = tuple(replace(link, joint=replace(link.joint, armature=armature)) for link in model.links)
    arm = ls.Robot(replace(model, links=links))
    q, tau, f_ext = random.uniform(-2, 2, n), random.normal(size=n), random.normal(size=(n, 6))
    bodies = kinematics(arm.model, q)
    # (52): x(k) = phi(k, k-1) x(k-1) + w(k), every link in its own frame; x = Phi w
    Phi = np.eye(6 * n)
    for i in reversed(range(n - 1)):  # row i from row i + 1, the tip's first
        inner, outer = bodies[i], bodies[i + 1]
        R = inner.R.T @ outer.R
        phi = np.block([[R, _cross(inner.R.T @ (outer.p - inner.p)) @ R], [np.zeros((3, 3)), R]])
        Phi[6 * i : 6 * i + 6, 6 * i + 6 :] = phi @ Phi[6 * i + 6 : 6 * i + 12, 6 * i + 6 :]
    M, H = np.zeros((6 * n, 6 * n)), np.zeros((n, 6 * n))
    for i, link in enumerate(arm.model.links):
        M[6 * i : 6 * i + 6, 6 * i : 6 * i + 6] = _spatial_inertia(link)
        at = 6 * i + (3 if link.joint.kind == "prismatic" else 0)
        H[i, at : at + 3] = link.joint.axis
    both = np.vstack([Phi, H @ Phi])
    covariance = both @ M @ both.T  # (53)
    covariance[6 * n :, 6 * n :] += armature * np.eye(n)  # the measurement's noise
    return Process(arm, q, tau, f_ext, both @ -f_ext.ravel(), covariance)  # E[w] = b = -f_ext


def _cross(p: np.ndarray) -> np.ndarray:
    return np.cross(np.eye(3), p)


def _spatial_inertia(link: Any) -> np.ndarray:
    m, p = link.inertial.mass, _cross(np.array(link.inertial.com))
    return np.block([[np.array(link.inertial.inertia) - m * p @ p, m * p], [-m * p, m * np.eye(3)]])


def filtered(given: Process, tau: np.ndarray | None = None, f_ext: np.ndarray | None = None) -> Any:
    tau, f_ext = given.tau if tau is None else tau, given.f_ext if f_ext is None else f_ext
    return given.arm.forward_dynamics(given.q, 0 * given.q, tau, f_ext=f_ext, details=True)[1]


def smoothed(given: Process) -> Any:
    return given.arm.forward_dynamics(given.q, 0 * given.q, given.tau, method="closed_form", details=True)[1]


# ---- section IX ------------------------------------------------------------------------------------------------


def test_the_arms_have_both_kinds_of_joints():
    kinds = {link.joint.kind for arm in ARMS for link in process(*arm).arm.model.links}
    assert kinds == {"revolute", "prismatic"}


@pytest.mark.parametrize("arm", ARMS)
def test_measurements_have_the_mass_matrix_for_covariance(arm: Any):
    """M is the covariance of the joint moments, (28)-(32): composite inertias r are the covariances of x."""
    given = process(*arm)
    n = len(given.q)
    assert close(given.covariance[6 * n :, 6 * n :], given.arm.mass_matrix(given.q), 1e-13)


@pytest.mark.parametrize("arm", ARMS)
def test_predicted_state_is_the_conditional_mean_given_the_past(arm: Any):
    """(54), (56): z⁻ = E[x | outer moments], P⁻ its covariance."""
    given, details = process(*arm), filtered(process(*arm))
    for i in range(len(given.q)):
        mean, covariance = given.given(i, past=i + 1)
        assert close(details.z[i], mean, 1e-11)
        assert close(details.P[i], covariance, 1e-11)


@pytest.mark.parametrize("arm", ARMS)
def test_updated_state_is_the_conditional_mean_given_past_and_present(arm: Any):
    """(58), (59): z⁺, P⁺; without armature the moment about the joint is then known exactly, H P⁺ = 0."""
    given, details = process(*arm), filtered(process(*arm))
    for i, link in enumerate(given.arm.model.links):
        mean, covariance = given.given(i, past=i)
        assert close(details.z_plus[i], mean, 1e-11)
        assert np.abs(details.P_plus[i] - covariance).max() <= 1e-11 * np.abs(details.P[i]).max()
        h = np.zeros(6)
        h[3 if link.joint.kind == "prismatic" else 0 :][:3] = link.joint.axis
        known = np.abs(h @ details.P_plus[i]).max() <= 1e-12 * np.abs(details.P[i]).max()
        assert known == (arm[1] == 0.0)


@pytest.mark.parametrize("arm", ARMS)
def test_smoothed_state_is_the_conditional_mean_given_all(arm: Any):
    """(60), (61), (64), (65): x̂ = z + P λ on both sides of the joint, S = P - P Δ P its covariance."""
    given, details, form = process(*arm), filtered(process(*arm)), smoothed(process(*arm))
    for i in range(len(given.q)):
        mean, covariance = given.given(i, past=0)
        assert close(details.z[i] + details.P[i] @ details.costate[i], mean, 1e-11)
        scale = np.abs(details.P[i]).max()
        assert np.abs(form.S[i] - covariance).max() <= 1e-10 * scale
        assert np.abs(details.P[i] - details.P[i] @ form.Delta[i] @ details.P[i] - covariance).max() <= 1e-10 * scale


@pytest.mark.parametrize("arm", ARMS)
def test_smoothed_state_is_the_force_of_inverse_dynamics(arm: Any):
    """x̂(k) is what the joint transmits: Newton-Euler's force for the accelerations that the moments cause."""
    given, details = process(*arm), filtered(process(*arm))
    _, inverse = given.arm.inverse_dynamics(given.q, 0 * given.q, details.qdd, f_ext=given.f_ext, details=True)
    for i in range(len(given.q)):
        assert close(details.z[i] + details.P[i] @ details.costate[i], inverse.f[i], 1e-11)


@pytest.mark.parametrize("arm", ARMS)
def test_innovations_and_costates_have_the_covariances_D_and_Delta(arm: Any):
    """(57), (66): the maps from moments to innovations and costates, applied to moments of covariance M."""
    given = process(*arm)
    n = len(given.q)
    M = given.covariance[6 * n :, 6 * n :]
    units = [filtered(given, tau=row, f_ext=np.zeros((n, 6))) for row in np.eye(n)]
    innovations = np.array([unit.innovation for unit in units]).T
    D = innovations @ M @ innovations.T
    assert np.abs(D - np.diag(units[0].D)).max() <= 1e-11 * np.abs(D).max()  # white
    form = smoothed(given)
    for i in range(n):
        costate = np.array([unit.costate[i] for unit in units]).T
        assert close(costate @ M @ costate.T, form.Delta[i], 1e-9)


# ---- section XI: physical readings -----------------------------------------------------------------------------


def beyond(model: Model, first: int) -> ls.Robot:
    """The links from `first` on, their base held: the arm with its inner joints locked."""
    links = tuple(
        replace(link, parent=BASE if i == 0 else link.parent - first) for i, link in enumerate(model.links[first:])
    )
    frames = tuple(
        replace(frame, link=frame.link - first) for frame in model.frames if frame.link == BASE or frame.link >= first
    )
    frames = (replace(frames[0], link=BASE), *frames[1:])
    return ls.Robot(replace(model, links=links, frames=frames, document_order=tuple(range(len(links)))))


@pytest.mark.parametrize("arm", [*ARMS, (6, 0.0, 3), (6, 0.3, 4)])
def test_residual_is_the_acceleration_with_the_inner_joints_locked(arm: Any):
    given, details = process(*arm), filtered(process(*arm))
    M = given.arm.mass_matrix(given.q)
    bias = given.arm.bias_forces(given.q, 0 * given.q, f_ext=given.f_ext)
    for i in range(len(given.q)):
        locked = beyond(given.arm.model, i)
        qdd = locked.forward_dynamics(given.q[i:], 0 * given.q[i:], given.tau[i:], f_ext=given.f_ext[i:], method="fd4")
        assert close(details.residual[i], qdd[0], 1e-10)
        assert close(details.residual[i], np.linalg.solve(M[i:, i:], (given.tau - bias)[i:])[0], 1e-10)


@pytest.mark.parametrize("arm", [*ARMS, (6, 0.0, 3), (6, 0.3, 4)])
def test_D_is_the_inertia_at_the_joint_with_the_outer_joints_free(arm: Any):
    given, details = process(*arm), filtered(process(*arm))
    M = given.arm.mass_matrix(given.q)
    for i in range(len(given.q)):
        outer = M[i + 1 :, i + 1 :]
        free = M[i, i] - M[i, i + 1 :] @ np.linalg.solve(outer, M[i + 1 :, i])  # inner joints locked, outer ones free
        assert close(details.D[i], free, 1e-10)
        push = np.zeros(len(given.q) - i)
        push[0] = 1.0  # a unit of torque moves it by 1/D
        qdd = beyond(given.arm.model, i).forward_dynamics(given.q[i:], 0 * push, push)
        assert close(1.0 / qdd[0], details.D[i], 1e-10)
        assert details.D[i] <= M[i, i] * (1 + 1e-12)  # locked, the outer links are heavier to move


# ---- the innovations model -------------------------------------------------------------------------------------


def causal_sweep(arm: ls.Robot, function: str) -> CompiledFunction:
    sweep = Together((RobotFunction(arm.canonical, function, "innovations"),))
    return compiled(sweep, "float64", 1, "interpreter")


SAMPLED = {
    "puma560": lambda: ls.robots.puma560(),
    "stanford": lambda: ls.robots.stanford(),
    "mixed5": lambda: ls.robots.chain(5, seed=9, joints="mixed"),
}


@pytest.mark.parametrize("name", SAMPLED)
def test_a_causal_sweep_makes_white_noise_of_covariance_M_and_back(name: str):
    """(4.12)-(4.15). The estimate of a covariance from N samples has the standard error
    sqrt((M_ii M_jj + M_ij^2) / N) (Wishart): five of them are allowed for each of the 21 elements."""
    arm, count = SAMPLED[name](), 200_000
    random = np.random.default_rng(7)
    q = random.uniform(-2, 2, arm.nv)
    factor, M = arm.factor(q), arm.mass_matrix(q)
    white = random.standard_normal((count, arm.nv))
    innovations = np.sqrt(factor.D) * white
    y = causal_sweep(arm, "colour")(q, innovations)
    found = y.T @ y / count
    d = np.diagonal(M)
    error = np.sqrt((np.outer(d, d) + M**2) / count)
    assert (np.abs(found - M) / error).max() < 5.0
    assert (np.abs(found - M) / error).max() > 0.1  # it is a sample
    back = causal_sweep(arm, "whiten")(q, y)
    assert (np.abs(back - innovations) / np.sqrt(d)).max() < 1e-12
    assert close(y, factor.colour(white), 1e-12)
    assert (np.abs(factor.whiten(y) - white) * np.sqrt(factor.D) / np.sqrt(d)).max() < 1e-12


@pytest.mark.parametrize("name", SAMPLED)
def test_sweeps_are_the_factor_matrices(name: str):
    """Fed with unit vectors, the sweeps give the columns of I + H Phi L and I - H Psi L; M, M^-1 are their squares."""
    arm = SAMPLED[name]()
    q = np.random.default_rng(8).uniform(-2, 2, arm.nv)
    factor = arm.factor(q)
    unit = np.eye(arm.nv)
    assert close(causal_sweep(arm, "colour")(q, unit).T, factor.L, 1e-13)
    assert close(causal_sweep(arm, "whiten")(q, unit).T, factor.L_inverse, 1e-13)
    assert close(factor.L @ np.diag(factor.D) @ factor.L.T, arm.mass_matrix(q), 1e-13)
    assert close(factor.L_inverse.T @ np.diag(1 / factor.D) @ factor.L_inverse, arm.mass_matrix_inverse(q), 1e-12)
    assert not np.tril(factor.L, -1).any()  # causal: what a joint feels comes from the joints beyond it
    b = np.random.default_rng(9).normal(size=(4, arm.nv))
    assert close(factor.solve(b), np.linalg.solve(arm.mass_matrix(q), b.T).T, 1e-10)
    assert close(factor.logdet(), np.linalg.slogdet(arm.mass_matrix(q))[1], 1e-12)
