"""Closed mechanisms for tests, and their dynamics written out densely: poses and Jacobians of frames, and one solve.

Nothing here uses what it checks: rows of constraints are made from the Jacobians of the two frames, and their drift by
differences of sixth order along the motion.
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
from pin_models import random_robot

import linksweep as ls

AXES = {
    "rigid": ((0, 1, 2), (0, 1, 2)), "point": ((), (0, 1, 2)), "slider": ((0, 1, 2), (0, 1)), "plane": ((), (2,)),
    "line": ((), (0, 1)), "soft_finger": ((2,), (0, 1, 2)),
}  # fmt: skip


def matrix(placement: Any) -> np.ndarray:
    T = np.eye(4)
    T[:3, :3], T[:3, 3] = placement.rotation, placement.position
    return T


def across(J: np.ndarray, d: np.ndarray) -> np.ndarray:
    """w x d for each column w of J (..., 3, nv)."""
    return np.cross(np.swapaxes(J, -1, -2), d[..., None, :]).swapaxes(-1, -2)


def dense_rows(robot: ls.Robot, q: np.ndarray) -> np.ndarray:
    """K (..., rows, nv) from the Jacobians of the frames."""
    rows = []
    for tie in robot.constraints:
        a, on = robot.pose(q, tie.a), robot.pose(q, tie.b or robot.model.base)
        b = on @ matrix(tie.at)
        J_a, J_b = robot.jacobian(q, tie.a), robot.jacobian(q, tie.b or robot.model.base)
        v_b = J_b[..., 3:, :] + across(J_b[..., :3, :], b[..., :3, 3] - on[..., :3, 3])
        d = a[..., :3, 3] - b[..., :3, 3]
        spin = J_a[..., :3, :] - J_b[..., :3, :]
        slide = J_a[..., 3:, :] - v_b - across(J_b[..., :3, :], d)
        axes = np.swapaxes(b[..., :3, :3], -1, -2)
        if tie.kind == "distance":
            rows.append(d[..., None, :] @ slide / tie.length)
        elif tie.kind == "hinge":
            rows += [axes[..., :2, :] @ across(spin, a[..., :3, 2]), axes @ slide]
        else:
            turning, sliding = AXES[tie.kind]
            rows += [axes[..., list(turning), :] @ spin, axes[..., list(sliding), :] @ slide]
    return np.concatenate(rows, axis=-2)


def dense_drift(robot: ls.Robot, q: np.ndarray, qd: np.ndarray, h: float = 2e-3) -> np.ndarray:
    """d(K qd)/dt with constant rates, by differences of sixth order: h^6 is 6e-17."""
    total: Any = 0.0
    for step, weight in {1: 3 / 4, 2: -3 / 20, 3: 1 / 60}.items():
        after, before = (dense_rows(robot, robot.integrate(q, qd * (s * h))) for s in (step, -step))
        total = total + weight * ((after - before) @ qd[..., None])[..., 0]
    return total / h


def dense_solution(robot: ls.Robot, q: np.ndarray, qd: np.ndarray, tau: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """qdd, and K^T lambda, which is unique where lambda is not: x nearest to the free one in the metric of M."""
    K, k = dense_rows(robot, q), dense_drift(robot, q, qd)
    root = np.linalg.cholesky(robot.mass_matrix(q))
    Y_T = np.swapaxes(np.linalg.solve(root, np.swapaxes(K, -1, -2)), -1, -2)
    free = np.linalg.solve(root, (tau - robot.bias_forces(q, qd))[..., None])
    x = free - np.linalg.pinv(Y_T, rcond=1e-9) @ (Y_T @ free + k[..., None])
    return np.linalg.solve(np.swapaxes(root, -1, -2), x)[..., 0], (root @ (free - x))[..., 0]


def placed_arm(joints: int, seed: int) -> ls.Robot:
    T = np.eye(4)
    T[:3, :3] = np.linalg.qr(np.random.default_rng(seed).normal(size=(3, 3)))[0]
    T[:3, :3] *= np.sign(np.linalg.det(T[:3, :3]))
    T[:3, 3] = np.random.default_rng(seed + 1).normal(size=3)
    return ls.robots.chain(joints, seed=seed).placed(T)


BODY = ls.body(12.0, (0.1, -0.05, 0.2), (0.3, 0.45, 0.25))


@functools.cache
def grasp_case(joints: tuple[int, ...], models: tuple[str, ...], seed: int, singular: bool = False) -> tuple[Any, ...]:
    """A grasp, the coordinates of its arms, and the object's pose: the contacts are where the arms' frames stand."""
    rng = np.random.default_rng(seed)
    if singular:
        arms = [ls.robots.puma560().placed(_at(rng)) for _ in joints]
        q = [np.r_[rng.uniform(-1, 1, 4), 0.0, rng.uniform(-1, 1)] for _ in joints]
    else:
        arms = [placed_arm(n, seed + 10 * k) for k, n in enumerate(joints)]
        q = [arm.random(rng) for arm in arms]
    pose = _at(rng)
    at = [np.linalg.inv(pose) @ arm.pose(own, "tool") for arm, own in zip(arms, q, strict=True)]
    contacts = [
        ls.Contact(arm, "tool", T, model, friction=0.6, spin=0.01)
        for arm, T, model in zip(arms, at, models, strict=True)
    ]
    return ls.Grasp(BODY, contacts), q, pose


def _at(rng: np.random.Generator) -> np.ndarray:
    T = np.eye(4)
    T[:3, :3] = np.linalg.qr(rng.normal(size=(3, 3)))[0]
    T[:3, :3] *= np.sign(np.linalg.det(T[:3, :3]))
    T[:3, 3] = rng.normal(size=3)
    return T


@functools.cache
def tree_case(
    kinds: tuple[str, ...], ties: tuple[tuple[str, str, str], ...], seed: int, armature: float = 0.05
) -> tuple[ls.Robot, np.ndarray]:
    """A random tree with constraints that a random pose meets."""
    robot = random_robot(kinds, tree=True, seed=seed, armature=armature)
    q = robot.random(np.random.default_rng(seed))
    made = []
    for kind, a, b in ties:
        T_a, T_b = robot.pose(q, a), robot.pose(q, b) if b else np.eye(4)
        if kind == "distance":
            made.append(ls.Constraint(kind, a, b or None, length=float(np.linalg.norm(T_a[:3, 3] - T_b[:3, 3]))))
        else:
            made.append(ls.Constraint(kind, a, b or None, at=np.linalg.inv(T_b) @ T_a))
    return robot.with_constraints(made), q


__all__ = ["BODY", "dense_drift", "dense_rows", "dense_solution", "grasp_case", "placed_arm", "tree_case"]
