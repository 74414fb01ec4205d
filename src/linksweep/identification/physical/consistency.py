"""Physically consistent fits: numbers that bodies can have, by two ways that need no solver of semidefinite programs.

A body's ten numbers belong to a distribution of mass exactly if its pseudo-inertia J = [[Sigma, h], [h^T, m]], Sigma =
tr(I)/2 - I, is positive definite (P. M. Wensing, S. Kim, J.-J. E. Slotine, "Linear matrix inequalities for physically
consistent inertial parameter identification", 2018). Armatures and friction are not negative.

Entropic: the misfit plus the log-determinant (Bregman, Kullback-Leibler) divergence from the description (T. Lee, P. M.
Wensing, F. C. Park, "Geometric robot dynamic identification: a convex programming approach", 2020). It is convex and
keeps J inside its cone by itself, so that Newton's method with exact second derivatives solves it.

Log-Cholesky: J = U U^T with the ten entries of U free numbers (C. Rucker, P. M. Wensing, "Smooth parameterization of
rigid-body inertia", 2022), by Levenberg's and Marquardt's method with exact derivatives.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

UPPER = ((0, 0), (1, 1), (2, 2), (0, 1), (1, 2), (0, 2), (0, 3), (1, 3), (2, 3))  # d1 d2 d3 s12 s23 s13 t1 t2 t3
STEPS = 200


@dataclass(frozen=True)
class Problem:
    """Minimise |root @ matrix @ x - target|^2 / 2 over x (columns,) with consistent bodies.

    bodies: (bodies, 10), where in x each body's numbers stand. positive: numbers that are not negative. prior:
    (columns,) with consistent bodies and positive numbers; weight: what one nat of divergence from it costs, in units
    of the misfit.
    """

    root: np.ndarray
    target: np.ndarray
    matrix: np.ndarray
    bodies: np.ndarray
    positive: np.ndarray
    prior: np.ndarray
    weight: float = 1.0


def _basis() -> np.ndarray:
    """(10, 4, 4): what each of a body's ten numbers adds to its pseudo-inertia."""
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
# back: the ten numbers as linear forms of the sixteen entries of J
FORMS = np.linalg.pinv(BASIS.reshape(10, 16)).T.reshape(10, 4, 4)


def pseudo_inertia(ten: np.ndarray) -> np.ndarray:
    """J (..., 4, 4) of bodies (..., 10)."""
    return np.tensordot(ten, BASIS, axes=1)


def ten_of(J: np.ndarray) -> np.ndarray:
    """The ten numbers (..., 10) of pseudo-inertias (..., 4, 4)."""
    return np.einsum("...ij,kij->...k", J, FORMS)


def divergence(J: np.ndarray, J0: np.ndarray) -> np.ndarray:
    """tr(J0^-1 J) - log det(J0^-1 J) - 4, of pseudo-inertias (..., 4, 4). Lee, Wensing & Park 2020, (19)."""
    ratio = np.linalg.solve(J0, J)
    return np.trace(ratio, axis1=-2, axis2=-1) - np.linalg.slogdet(ratio)[1] - 4.0


def entropic(problem: Problem) -> np.ndarray:
    """x (columns,) that minimises misfit + weight * divergence from the prior.

    By Newton's method, with a heavier weight first that falls tenfold (the central path of an interior-point method),
    so that a minimum close to the cone's boundary is reached from inside.
    """
    B = problem.root @ problem.matrix
    x = problem.prior.copy()
    rest = B @ x - problem.target
    weight = max(problem.weight, 0.1 * float(rest @ rest) / max(1, len(x)))
    while True:
        x = _newton(replace(problem, weight=weight), B, x)
        if weight == problem.weight:
            return x
        weight = max(problem.weight, 0.1 * weight)


def _newton(problem: Problem, B: np.ndarray, x: np.ndarray) -> np.ndarray:
    curvature = B.T @ B
    inverse_prior = np.linalg.inv(pseudo_inertia(problem.prior[problem.bodies]))
    value = _cost(problem, B, x)
    for _ in range(STEPS):
        gradient, hessian = B.T @ (B @ x - problem.target), curvature.copy()
        J_inverse = np.linalg.inv(pseudo_inertia(x[problem.bodies]))
        for places, own, first in zip(problem.bodies, J_inverse, inverse_prior, strict=True):
            gradient[places] += problem.weight * np.tensordot(BASIS, first - own, axes=2)
            half = own @ BASIS  # (10, 4, 4): J^-1 E_k
            hessian[np.ix_(places, places)] += problem.weight * np.einsum("kij,lji->kl", half, half)
        at = problem.positive
        gradient[at] += problem.weight * (1.0 / problem.prior[at] - 1.0 / x[at])
        hessian[at, at] += problem.weight / x[at] ** 2
        step, decrease = _newton_step(hessian, gradient)
        if decrease <= 1e-12 * (1.0 + abs(value)):
            break
        x, value, moved = _descended(problem, B, x, value, step, decrease)
        if not moved:
            break
    return x


def _newton_step(hessian: np.ndarray, gradient: np.ndarray) -> tuple[np.ndarray, float]:
    """-H^-1 g, and the decrease that it promises twice over; units are taken out first."""
    from scipy.linalg import LinAlgError, cho_factor, cho_solve

    size = np.diag(hessian)
    unit = 1.0 / np.sqrt(
        np.where(size > 0.0, size, 1.0)
    )  # 0: a number that nothing holds, such as an offset never shown
    scaled = hessian * unit[:, None] * unit
    ridge = 1e-14
    while True:
        scaled[np.diag_indices(len(unit))] += ridge
        try:
            factor = cho_factor(scaled)
            break
        except LinAlgError:  # rounding, close to the boundary
            ridge *= 100.0
    step = -unit * cho_solve(factor, unit * gradient)
    return step, float(-gradient @ step)


def _descended(
    problem: Problem, B: np.ndarray, x: np.ndarray, value: float, step: np.ndarray, decrease: float
) -> tuple[np.ndarray, float, bool]:
    size = 1.0
    while size > 1e-12:
        trial = x + size * step
        found = _cost(problem, B, trial)
        if found <= value - 1e-4 * size * decrease:
            return trial, found, True
        size *= 0.5
    return x, value, False


def _cost(problem: Problem, B: np.ndarray, x: np.ndarray) -> float:
    """Infinite where a body is not consistent."""
    scalars = x[problem.positive]
    J = pseudo_inertia(x[problem.bodies])
    if (scalars <= 0.0).any() or (len(J) and np.linalg.eigvalsh(J)[:, 0].min() <= 0.0):
        return np.inf
    rest = B @ x - problem.target
    ratio = scalars / problem.prior[problem.positive]
    far = np.sum(ratio - np.log(ratio) - 1.0)
    if len(J):
        far += np.sum(divergence(J, pseudo_inertia(problem.prior[problem.bodies])))
    return float(0.5 * rest @ rest + problem.weight * far)


def log_cholesky(problem: Problem) -> np.ndarray:
    """x (columns,) that minimises the misfit alone over consistent bodies; what is not seen stays near the prior."""
    B = problem.root @ problem.matrix
    theta0 = _to_theta(problem, problem.prior)
    theta, damping = _to_theta(problem, entropic(problem)), 1e-3  # inside the cone, and not far from the end
    x, jacobian = _from_theta(problem, theta)
    near = np.sqrt(problem.weight)  # holds what the log does not show: a quadratic stand-in for the divergence
    value = _theta_cost(problem, B, x, near * (theta - theta0))
    for _ in range(STEPS):
        slope = B @ jacobian
        rest = B @ x - problem.target
        gradient = slope.T @ rest + near**2 * (theta - theta0)
        normal = slope.T @ slope
        normal[np.diag_indices(len(theta))] += near**2
        improved = False
        while damping < 1e12:
            step = -np.linalg.solve(normal + damping * np.diag(np.diag(normal)), gradient)
            step *= min(1.0, 2.0 / np.abs(step[_logarithms(problem)]).max(initial=1e-300))  # e^2 in one step at most
            trial = theta + step
            found, slopes = _from_theta(problem, trial)
            cost = _theta_cost(problem, B, found, near * (trial - theta0))
            if cost < value:
                improved = value - cost > 1e-10 * (1.0 + value)
                theta, x, jacobian, value, damping = trial, found, slopes, cost, max(1e-12, 0.2 * damping)
                break
            damping *= 5.0
        if not improved:
            break
    return x


def _theta_cost(problem: Problem, B: np.ndarray, x: np.ndarray, off: np.ndarray) -> float:
    rest = B @ x - problem.target
    return float(0.5 * rest @ rest + 0.5 * off @ off)


def _logarithms(problem: Problem) -> np.ndarray:
    return np.concatenate([problem.bodies[:, :4].ravel(), problem.positive])


def theta_of(J: np.ndarray) -> np.ndarray:
    """(alpha, d1, d2, d3, s12, s23, s13, t1, t2, t3) of a pseudo-inertia. Rucker & Wensing 2022."""
    U = np.linalg.cholesky(J[::-1, ::-1])[::-1, ::-1]  # upper: J = U U^T
    U = U / U[3, 3]
    entries = [U[i, j] for i, j in UPPER]
    alpha = 0.5 * np.log(J[3, 3])
    return np.array([alpha, *np.log(entries[:3]), *entries[3:]])


def body_of(theta: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The ten numbers of a body from its log-Cholesky parameters, and their derivatives (10, 10)."""
    scale = np.exp(theta[0])
    U = np.zeros((4, 4))
    U[3, 3] = 1.0
    entries = [*np.exp(theta[1:4]), *theta[4:]]
    for (i, j), entry in zip(UPPER, entries, strict=True):
        U[i, j] = entry
    J = scale**2 * (U @ U.T)
    slopes = [2.0 * J]  # by alpha
    for k, (i, j) in enumerate(UPPER):
        dU = np.zeros((4, 4))
        dU[i, j] = entries[k] if k < 3 else 1.0
        half = scale**2 * (dU @ U.T)
        slopes.append(half + half.T)
    return ten_of(J), ten_of(np.array(slopes)).T


def _to_theta(problem: Problem, x: np.ndarray) -> np.ndarray:
    theta = x.copy()
    theta[problem.positive] = np.log(x[problem.positive])
    for places in problem.bodies:
        theta[places] = theta_of(pseudo_inertia(x[places]))
    return theta


def _from_theta(problem: Problem, theta: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """x and its derivatives by theta, (columns, columns)."""
    x, slopes = theta.copy(), np.eye(len(theta))
    with np.errstate(over="ignore"):
        x[problem.positive] = np.exp(theta[problem.positive])
    slopes[problem.positive, problem.positive] = x[problem.positive]
    for places in problem.bodies:
        x[places], slopes[np.ix_(places, places)] = body_of(theta[places])
    return x, slopes


def made_consistent(ten: np.ndarray, mass: float, radius: float) -> tuple[np.ndarray, bool]:
    """A body nearby that is well inside the cone, and whether it had to be moved there.

    mass, radius: of the ball that a body without any inertia is taken for.
    """
    if not ten[0] > 1e-3 * mass:
        return ten_of(mass * np.diag([radius**2 / 5.0] * 3 + [1.0])), True
    J = pseudo_inertia(ten)
    about = J[:3, :3] - np.outer(J[:3, 3], J[:3, 3]) / J[3, 3]  # second moments about the mass centre
    sizes, axes = np.linalg.eigh(about)
    least = 1e-6 * max(sizes[-1], ten[0] * radius**2)
    if sizes[0] > least:
        return ten, False
    J[:3, :3] += (axes * (np.maximum(sizes, 1e3 * least) - sizes)) @ axes.T
    return ten_of(J), True
