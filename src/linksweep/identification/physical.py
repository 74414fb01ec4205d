"""Physically consistent parameters, by two methods that need no semidefinite programming solver.

The ten inertial parameters of a body belong to a distribution of mass exactly if its pseudo-inertia
J = [[Sigma, h], [h^T, m]], Sigma = tr(I)/2 - I, is positive definite (P. M. Wensing, S. Kim, J.-J. E. Slotine, "Linear
matrix inequalities for physically consistent inertial parameter identification", 2018). Armatures and friction must not
be negative.

Entropic: the sum of squares plus the log-determinant (Bregman, Kullback-Leibler) divergence from the robot model (T.
Lee, P. M. Wensing, F. C. Park, "Geometric robot dynamic identification: a convex programming approach", 2020). The
problem is convex and the divergence keeps J inside its cone, so Newton's method with exact second derivatives solves
it.

Log-Cholesky: J = U U^T, parameterised by the ten entries of U (C. Rucker, P. M. Wensing, "Smooth parameterization of
rigid-body inertia", 2022), by the Levenberg-Marquardt method with exact derivatives.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from linksweep.functions.parameters import TEN
from linksweep.identification.base_form import BaseForm
from linksweep.identification.estimate import Estimate
from linksweep.identification.regressor import NON_NEGATIVE, Regressor
from linksweep.identification.threads import one_thread
from linksweep.model.quantities import from_ten

if TYPE_CHECKING:
    from linksweep.robot.robot import Robot

UPPER = ((0, 0), (1, 1), (2, 2), (0, 1), (1, 2), (0, 2), (0, 3), (1, 3), (2, 3))  # d1 d2 d3 s12 s23 s13 t1 t2 t3
MAX_STEPS = 200
MIN_NOISE = 1e-4  # of the torque: smaller noise is raised to this, which keeps the problem well conditioned


# ---- pseudo-inertia
# ------------------------------------------------------------------------------------------------------


def _basis() -> np.ndarray:
    """Return the derivatives (10, 4, 4) of the pseudo-inertia with respect to the ten inertial parameters."""
    basis = np.zeros((10, 4, 4))
    basis[0, 3, 3] = 1.0
    for k in range(3):
        basis[1 + k, k, 3] = basis[1 + k, 3, k] = 1.0
        basis[4 + k, range(3), range(3)] = 0.5
        basis[4 + k, k, k] = -0.5
    for k, (i, j) in enumerate(((0, 1), (0, 2), (1, 2))):
        basis[7 + k, i, j] = basis[7 + k, j, i] = -1.0
    return basis


BASIS = _basis()
INVERSE_BASIS = np.linalg.pinv(BASIS.reshape(10, 16)).T.reshape(10, 4, 4)


def pseudo_inertia(ten: np.ndarray) -> np.ndarray:
    """Return the pseudo-inertias J (..., 4, 4) of inertial parameters (..., 10)."""
    return np.tensordot(ten, BASIS, axes=1)


def inertial_parameters(J: np.ndarray) -> np.ndarray:
    """Return the inertial parameters (..., 10) of pseudo-inertias (..., 4, 4)."""
    return np.einsum("...ij,kij->...k", J, INVERSE_BASIS)


def divergence(J: np.ndarray, J0: np.ndarray) -> np.ndarray:
    """Return tr(J0^-1 J) - log det(J0^-1 J) - 4 of pseudo-inertias (..., 4, 4). Lee, Wensing & Park 2020, (19)."""
    ratio = np.linalg.solve(J0, J)
    return np.trace(ratio, axis1=-2, axis2=-1) - np.linalg.slogdet(ratio)[1] - 4.0


def to_log_cholesky(J: np.ndarray) -> np.ndarray:
    """Return (alpha, d1, d2, d3, s12, s23, s13, t1, t2, t3) of a pseudo-inertia. Rucker & Wensing 2022."""
    U = np.linalg.cholesky(J[::-1, ::-1])[::-1, ::-1]  # upper triangular: J = U U^T
    U = U / U[3, 3]
    entries = [U[i, j] for i, j in UPPER]
    alpha = 0.5 * np.log(J[3, 3])
    return np.array([alpha, *np.log(entries[:3]), *entries[3:]])


def from_log_cholesky(theta: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the inertial parameters (10,) of log-Cholesky parameters, and their Jacobian (10, 10)."""
    scale = np.exp(theta[0])
    U = np.zeros((4, 4))
    U[3, 3] = 1.0
    entries = [*np.exp(theta[1:4]), *theta[4:]]
    for (i, j), entry in zip(UPPER, entries, strict=True):
        U[i, j] = entry
    J = scale**2 * (U @ U.T)
    derivatives = [2.0 * J]  # with respect to alpha
    for k, (i, j) in enumerate(UPPER):
        dU = np.zeros((4, 4))
        dU[i, j] = entries[k] if k < 3 else 1.0
        half = scale**2 * (dU @ U.T)
        derivatives.append(half + half.T)
    return inertial_parameters(J), inertial_parameters(np.array(derivatives)).T


def nearby_consistent(ten: np.ndarray, mass: float, radius: float) -> tuple[np.ndarray, bool]:
    """Return inertial parameters well inside the consistent cone, and whether they differ from the given ones.

    mass, radius: of the ball that replaces a body without mass.
    """
    if not ten[0] > 1e-3 * mass:
        return inertial_parameters(mass * np.diag([radius**2 / 5.0] * 3 + [1.0])), True
    J = pseudo_inertia(ten)
    about_com = J[:3, :3] - np.outer(J[:3, 3], J[:3, 3]) / J[3, 3]  # second moments about the center of mass
    moments, axes = np.linalg.eigh(about_com)
    lower = 1e-6 * max(moments[-1], ten[0] * radius**2)
    if moments[0] > lower:
        return ten, False
    J[:3, :3] += (axes * (np.maximum(moments, 1e3 * lower) - moments)) @ axes.T
    return inertial_parameters(J), True


# ---- solvers
# -------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class ConsistencyProblem:
    """Minimise |root @ matrix @ x - target|^2 / 2 over parameters x with consistent bodies.

    bodies: (bodies, 10) indices in x of the inertial parameters of each body. positive: indices of parameters that must
    be positive. prior: x with consistent bodies and positive parameters. weight: cost of one nat of divergence from the
    prior.
    """

    root: np.ndarray
    target: np.ndarray
    matrix: np.ndarray
    bodies: np.ndarray
    positive: np.ndarray
    prior: np.ndarray
    weight: float = 1.0


def entropic(problem: ConsistencyProblem) -> np.ndarray:
    """Return x that minimises the sum of squares plus weight * divergence from the prior.

    Newton's method starts with a larger weight that falls tenfold (the central path of an interior-point method), so
    that a minimum near the boundary of the cone is approached from inside.
    """
    B = problem.root @ problem.matrix
    x = problem.prior.copy()
    residual = B @ x - problem.target
    weight = max(problem.weight, 0.1 * float(residual @ residual) / max(1, len(x)))
    while True:
        x = _newton(replace(problem, weight=weight), B, x)
        if weight == problem.weight:
            return x
        weight = max(problem.weight, 0.1 * weight)


def _newton(problem: ConsistencyProblem, B: np.ndarray, x: np.ndarray) -> np.ndarray:
    normal = B.T @ B
    inverse_prior = np.linalg.inv(pseudo_inertia(problem.prior[problem.bodies]))
    value = _entropic_cost(problem, B, x)
    for _ in range(MAX_STEPS):
        gradient, hessian = B.T @ (B @ x - problem.target), normal.copy()
        inverse = np.linalg.inv(pseudo_inertia(x[problem.bodies]))
        for at, J_inverse, J0_inverse in zip(problem.bodies, inverse, inverse_prior, strict=True):
            gradient[at] += problem.weight * np.tensordot(BASIS, J0_inverse - J_inverse, axes=2)
            half = J_inverse @ BASIS  # (10, 4, 4): J^-1 E_k
            hessian[np.ix_(at, at)] += problem.weight * np.einsum("kij,lji->kl", half, half)
        at = problem.positive
        gradient[at] += problem.weight * (1.0 / problem.prior[at] - 1.0 / x[at])
        hessian[at, at] += problem.weight / x[at] ** 2
        step, decrease = _newton_step(hessian, gradient)
        if decrease <= 1e-12 * (1.0 + abs(value)):
            break
        size = 1.0
        while size > 1e-12:  # backtracking line search
            trial = x + size * step
            cost = _entropic_cost(problem, B, trial)
            if cost <= value - 1e-4 * size * decrease:
                x, value = trial, cost
                break
            size *= 0.5
        else:
            break
    return x


def _newton_step(hessian: np.ndarray, gradient: np.ndarray) -> tuple[np.ndarray, float]:
    """Return -H^-1 g and -g^T step, twice the predicted decrease; H is scaled to a unit diagonal first."""
    from scipy.linalg import LinAlgError, cho_factor, cho_solve

    diagonal = np.diag(hessian)
    unit = 1.0 / np.sqrt(np.where(diagonal > 0.0, diagonal, 1.0))  # 0: a parameter without effect on the cost
    scaled = hessian * unit[:, None] * unit
    ridge = 1e-14
    while True:
        scaled[np.diag_indices(len(unit))] += ridge
        try:
            factor = cho_factor(scaled)
            break
        except LinAlgError:  # rounding errors near the boundary
            ridge *= 100.0
    step = -unit * cho_solve(factor, unit * gradient)
    return step, float(-gradient @ step)


def _entropic_cost(problem: ConsistencyProblem, B: np.ndarray, x: np.ndarray) -> float:
    """Return the cost, infinite for inconsistent bodies."""
    scalars = x[problem.positive]
    J = pseudo_inertia(x[problem.bodies])
    if (scalars <= 0.0).any() or (len(J) and np.linalg.eigvalsh(J)[:, 0].min() <= 0.0):
        return np.inf
    residual = B @ x - problem.target
    ratio = scalars / problem.prior[problem.positive]
    distance = np.sum(ratio - np.log(ratio) - 1.0)
    if len(J):
        distance += np.sum(divergence(J, pseudo_inertia(problem.prior[problem.bodies])))
    return float(0.5 * residual @ residual + problem.weight * distance)


def log_cholesky(problem: ConsistencyProblem) -> np.ndarray:
    """Return x that minimises the sum of squares over consistent bodies.

    A quadratic penalty in log-Cholesky parameters replaces the divergence; it keeps undetermined parameters near the
    prior.
    """
    B = problem.root @ problem.matrix
    prior_theta = _to_theta(problem, problem.prior)
    theta, damping = _to_theta(problem, entropic(problem)), 1e-3  # start inside the cone and near the minimum
    x, jacobian = _from_theta(problem, theta)
    logarithms = np.concatenate([problem.bodies[:, :4].ravel(), problem.positive])
    penalty = np.sqrt(problem.weight)

    def cost(x: np.ndarray, deviation: np.ndarray) -> float:
        residual = B @ x - problem.target
        return float(0.5 * residual @ residual + 0.5 * deviation @ deviation)

    value = cost(x, penalty * (theta - prior_theta))
    for _ in range(MAX_STEPS):
        derivative = B @ jacobian
        gradient = derivative.T @ (B @ x - problem.target) + penalty**2 * (theta - prior_theta)
        normal = derivative.T @ derivative
        normal[np.diag_indices(len(theta))] += penalty**2
        improved = False
        while damping < 1e12:
            step = -np.linalg.solve(normal + damping * np.diag(np.diag(normal)), gradient)
            step *= min(1.0, 2.0 / np.abs(step[logarithms]).max(initial=1e-300))  # at most a factor of e^2 in one step
            trial = theta + step
            trial_x, trial_jacobian = _from_theta(problem, trial)
            trial_value = cost(trial_x, penalty * (trial - prior_theta))
            if trial_value < value:
                improved = value - trial_value > 1e-10 * (1.0 + value)
                theta, x, jacobian, value = trial, trial_x, trial_jacobian, trial_value
                damping = max(1e-12, 0.2 * damping)
                break
            damping *= 5.0
        if not improved:
            break
    return x


def _to_theta(problem: ConsistencyProblem, x: np.ndarray) -> np.ndarray:
    theta = x.copy()
    theta[problem.positive] = np.log(x[problem.positive])
    for at in problem.bodies:
        theta[at] = to_log_cholesky(pseudo_inertia(x[at]))
    return theta


def _from_theta(problem: ConsistencyProblem, theta: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return x and its Jacobian (parameters, parameters) with respect to theta."""
    x, jacobian = theta.copy(), np.eye(len(theta))
    with np.errstate(over="ignore"):
        x[problem.positive] = np.exp(theta[problem.positive])
    jacobian[problem.positive, problem.positive] = x[problem.positive]
    for at in problem.bodies:
        x[at], jacobian[np.ix_(at, at)] = from_log_cholesky(theta[at])
    return x, jacobian


SOLVERS = {"entropic": entropic, "log_cholesky": log_cholesky}


# ---- robots
# --------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Physical:
    """Physically consistent parameters of a fit, and the robot that has them.

    Attributes
    ----------
    x : numpy.ndarray
        Values (parameters,) of all unknown parameters.
    invented : tuple of str
        Links whose inertia in the robot model is missing or inconsistent. The fit started from another body.
    left_out : tuple of str
        Parameters that a Robot cannot store: those of coupled drives, and Stribeck friction.
    """

    regressor: Regressor
    x: np.ndarray
    invented: tuple[str, ...]
    left_out: tuple[str, ...]

    @property
    def robot(self) -> Robot:
        """The robot model with these parameters."""
        full = _with_parameters(self.regressor, self.x)
        return full.with_couplings(self.regressor.robot.couplings) if self.regressor.robot.couplings else full

    @property
    def smallest(self) -> dict[str, float]:
        """Smallest eigenvalue of the pseudo-inertia of each unknown body; positive if the body is consistent."""
        owners, bodies = _bodies(self.regressor)
        return {
            owner: float(np.linalg.eigvalsh(pseudo_inertia(self.x[at]))[0])
            for owner, at in zip(owners, bodies, strict=True)
        }


@one_thread()
def consistent_parameters(
    base: BaseForm, estimate: Estimate, method: str, torque: float, prior_weight: float
) -> Physical:
    """Return the consistent parameters of an estimate by `method`, "entropic" or "log_cholesky"."""
    regressor = base.regressor
    owners, bodies = _bodies(regressor)
    prior, invented = _consistent_prior(base, bodies, owners, torque)
    positive = np.array([k for k, p in enumerate(regressor.parameters) if p.what in NON_NEGATIVE], int)
    # one factor for all joints keeps their relative weights; joints without rows have no noise
    noise = float(np.min(estimate.noise, where=estimate.dof > 0.0, initial=np.inf))
    factor = min(1.0, noise / (MIN_NOISE * torque) if torque else 1.0)
    problem = ConsistencyProblem(
        factor * estimate.root, factor * estimate.target, base.matrix, bodies, positive, prior, float(prior_weight)
    )
    coupled = np.count_nonzero(regressor.transmission, axis=1) > 1
    left_out = tuple(
        p.name
        for p in regressor.parameters
        if p.what == "stribeck" or (not p.is_body and coupled[p.index] and p.what != "offset")
    )
    return Physical(regressor, SOLVERS[method](problem), invented, left_out)


def _bodies(regressor: Regressor) -> tuple[list[str], np.ndarray]:
    """Return the owners of unknown bodies, and the indices (bodies, 10) of their parameters."""
    index = {(p.kind, p.owner, p.what): k for k, p in enumerate(regressor.parameters)}
    owners = list(dict.fromkeys((p.kind, p.owner) for p in regressor.parameters if p.is_body))
    bodies = [[index[*owner, what] for what in TEN] for owner in owners]
    return [owner for _, owner in owners], np.array(bodies, int).reshape(-1, len(TEN))


def _consistent_prior(
    base: BaseForm, bodies: np.ndarray, owners: list[str], torque: float
) -> tuple[np.ndarray, tuple[str, ...]]:
    """Return the model's parameters, made consistent and positive, and the bodies that had to be changed."""
    regressor = base.regressor
    prior = regressor.prior.copy()
    masses = regressor.full.standard_parameters[: 10 * regressor.links : 10]
    mean_mass = float(masses[masses > 0].mean()) if (masses > 0).any() else 1.0
    invented = []
    for owner, at in zip(owners, bodies, strict=True):
        prior[at], changed = nearby_consistent(prior[at], 0.05 * mean_mass, 0.05)
        if changed:
            invented.append(owner)
    for k, parameter in enumerate(regressor.parameters):
        if parameter.what in NON_NEGATIVE and not prior[k] > 0.0:
            size = np.abs(base.matrix[:, k]) @ base.sizes
            prior[k] = 0.02 * max(torque, 1e-9) / size if size > 0.0 else 1e-6
    return prior, tuple(invented)


def _with_parameters(regressor: Regressor, x: np.ndarray) -> Robot:
    robot = regressor.full
    values = dict(zip(regressor.names, x.tolist(), strict=True))
    owners, bodies = _bodies(regressor)
    kinds = {p.owner: p.kind for p in regressor.parameters if p.is_body}
    inertia = {owner: x[at] for owner, at in zip(owners, bodies, strict=True) if kinds[owner] == "inertia"}
    if inertia:
        robot = robot.with_inertia(inertia)
    robot = robot.with_armature(_joint_values(regressor, values, "armature", robot.armature))
    damping = _joint_values(regressor, values, "viscous", robot.damping)
    for owner in {p.owner for p in regressor.parameters if p.what == "coulomb+"}:
        # friction that differs by direction is its mean, plus half the difference as an offset
        forward, backward = values[f"{owner}.coulomb+"], values[f"{owner}.coulomb-"]
        values[f"{owner}.coulomb"] = 0.5 * (forward + backward)
        values[f"{owner}.offset"] = values.get(f"{owner}.offset", 0.0) + 0.5 * (forward - backward)
    friction = _joint_values(regressor, values, "coulomb", robot.friction)
    offset = _joint_values(regressor, values, "offset", robot.torque_offset)
    robot = robot.with_dissipation(damping, friction, offset)
    for owner, at in zip(owners, bodies, strict=True):
        if kinds[owner] == "payload":
            load = from_ten(x[at])
            robot = robot.with_payload(owner, load.mass, load.com, load.inertia)
    return robot


def _joint_values(regressor: Regressor, values: Mapping[str, float], what: str, model: np.ndarray) -> np.ndarray:
    """Return a drive term at each joint: the diagonal of T^T diag(value) T, for offsets T^T value.

    Joints without a drive that has this term unknown keep the value of the model.
    """
    of_drives = np.array([values.get(f"{name}.{what}", np.nan) for name in regressor.drive_names])
    out = np.array(model, dtype=float)
    for joint in range(len(model)):
        acting = np.flatnonzero((regressor.transmission[:, joint] != 0.0) & np.isfinite(of_drives))
        factors = regressor.transmission[acting, joint]
        shares = {"offset": factors, "coulomb": np.abs(factors)}.get(what, np.square(factors))
        if len(acting):
            out[joint] = np.sum(shares * of_drives[acting])
    return out
