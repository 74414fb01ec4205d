"""Closed mechanisms for tests, and their dynamics written out densely: poses and Jacobians of frames, and one solve.

Nothing here uses what it checks: rows of constraints are made from the Jacobians of the two frames, and their drift by
differences of sixth order along the motion.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
from mpmath import mp
from pin_models import random_inertial, random_robot

import linksweep as ls
from linksweep.model.assembly import Part, assemble
from linksweep.model.model import Joint, Placement

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


# ---- mechanisms near singular configurations, with redundant and vacuous rows ------------------------------------


def tied(robot: ls.Robot, q: np.ndarray, ties: Sequence[tuple[str, str, str]]) -> ls.Robot:
    """The robot with constraints (kind, a, b) that q meets."""
    made = []
    for kind, a, b in ties:
        T_a, T_b = robot.pose(q, a), robot.pose(q, b) if b else np.eye(4)
        length = float(np.linalg.norm(T_a[:3, 3] - T_b[:3, 3])) if kind == "distance" else None
        at = None if kind == "distance" else np.linalg.inv(T_b) @ T_a
        made.append(ls.Constraint(kind, a, b or None, at=at, length=length))
    return robot.with_constraints(made)


def singular_ratio(K: np.ndarray, noise: float = 1e-12) -> float:
    """The smallest singular value over the largest, without those that are rounding."""
    values = np.linalg.svd(K, compute_uv=False)
    return float(values[values > noise * values[0]][-1] / values[0])


def _smallest(K: np.ndarray) -> float:
    values = np.linalg.svd(K, compute_uv=False)
    return float(values[-1] / values[0])


def _reached(ratio: Callable[[float], float], target: float, most: float) -> float:
    """Where a ratio that grows from 0 at 0 reaches the target, at most `most`."""
    if ratio(most) <= target:
        return most
    low, high = 0.0, most
    while low == 0.0:  # powers of ten first: it grows in proportion near 0
        low, high = (high * 0.1, high) if ratio(high * 0.1) < target else (0.0, high * 0.1)
    for _ in range(60):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if ratio(middle) < target else (low, middle)
    return 0.5 * (low + high)


def _rigid_rows(robot: ls.Robot, q: np.ndarray, arms: int) -> np.ndarray:
    """K of tools that are tied rigidly, each to the one before, wherever they stand."""
    names = [f"arm{k}/tool" for k in range(arms)]
    jacobians, places = ([f(q, name) for name in names] for f in (robot.jacobian, robot.pose))
    rows = []
    for J_a, J_b, T_a, T_b in zip(jacobians[1:], jacobians, places[1:], places, strict=False):
        moved = J_b[..., 3:, :] + across(J_b[..., :3, :], T_a[..., :3, 3] - T_b[..., :3, 3])
        rows.append(J_a - np.concatenate([J_b[..., :3, :], moved], axis=-2))
    return np.concatenate(rows, axis=-2)


@functools.cache
def _arms(counts: tuple[int, ...], seed: int) -> tuple[list[ls.Robot], ls.Robot, np.ndarray, np.ndarray]:
    """Arms with as many joints as there are rows if their tools are tied, a configuration in which these rows are
    singular, and a way out of it."""
    arms = [placed_arm(n, seed + 50 * k) for k, n in enumerate(counts)]
    scene = ls.scene({f"arm{k}": arm for k, arm in enumerate(arms)})
    rng = np.random.default_rng(seed)
    for _ in range(100):
        start, way = scene.random(rng), scene.random(rng) - scene.random(rng)
        low, high = 0.0, 1.0
        for _ in range(13):  # between two of 16 places its sign changes
            places = np.linspace(low, high, 17)
            values = np.linalg.det(_rigid_rows(scene, start + places[:, None] * way, len(arms)))
            changes = np.flatnonzero(values[:-1] * values[1:] < 0.0)
            if not len(changes):
                break
            low, high = places[changes[0]], places[changes[0] + 1]
        else:
            return arms, scene, start + 0.5 * (low + high) * way, way
    raise AssertionError("no singular configuration was found")


def _near_singular_arms(counts: tuple[int, ...], seed: int, target: float) -> np.ndarray:
    arms, scene, at, way = _arms(counts, seed)
    return at + _reached(lambda s: _smallest(_rigid_rows(scene, at + s * way, len(arms))), target, 0.1) * way


def _tied_arms(counts: tuple[int, ...], seed: int, target: float, more: Sequence[tuple[str, str, str]] = ()) -> Any:
    """Two arms tied rigidly, six joints together: they have no freedom but in a singular configuration."""
    q = _near_singular_arms(counts, seed, target)
    return tied(_arms(counts, seed)[1], q, [("rigid", *TOOLS), *more]), q


def _held_body(counts: tuple[int, ...], seed: int, target: float) -> Any:
    """Arms that hold a body rigidly, with as many joints as rows."""
    q, arms = _near_singular_arms(counts, seed, target), _arms(counts, seed)[0]
    pose, each = _at(np.random.default_rng(seed)), np.split(q, np.cumsum(counts)[:-1])
    contacts = [
        ls.Contact(arm, "tool", np.linalg.inv(pose) @ arm.pose(own, "tool"), "rigid")
        for arm, own in zip(arms, each, strict=True)
    ]
    grasp = ls.Grasp(BODY, contacts)
    return grasp.robot, grasp._q(each, pose)


def _stretched(kind: str, seed: int, target: float) -> Any:
    """A planar arm with its tool held, next to its stretched configuration; a third row is 0 for "point"."""
    arm = ls.robots.planar(2)
    turn = np.random.default_rng(seed).uniform(-3.0, 3.0)
    elbow = _reached(lambda s: _smallest(arm.jacobian(np.array([turn, s]), "tool")[3:5]), target, 1.5)
    q = np.array([turn, elbow])
    return tied(arm, q, [(kind, "tool", "")]), q


def _wrist(seed: int, target: float, more: Sequence[tuple[str, str, str]] = ()) -> Any:
    """A PUMA with its tool welded to the world, next to a straight wrist."""
    arm = ls.robots.puma560()
    q = np.random.default_rng(seed).uniform(-1.0, 1.0, 6)

    def at(s: float) -> np.ndarray:
        return np.r_[q[:4], s, q[5]]

    q = at(_reached(lambda s: _smallest(arm.jacobian(at(s), "tool")), target, 0.8))
    return tied(arm, q, [("rigid", "tool", ""), *more]), q


def _doubled(counts: tuple[int, int], seed: int, target: float, more: str = "") -> Any:
    """Two arms tied at two points that are close to each other: rotations are constrained weakly."""
    base = ls.scene({"a": placed_arm(counts[0], seed), "b": placed_arm(counts[1], seed + 50)})
    q = base.random(np.random.default_rng(seed))

    def made(apart: float) -> ls.Robot:
        T, on = np.eye(4), np.linalg.inv(base.pose(q, "b/tool")) @ base.pose(q, "a/tool")
        T[:3, 3] = apart * np.array([0.6, 0.64, 0.48])
        scene = base.with_frame("a2", "a/tool", T).with_frame("b1", "b/tool", on).with_frame("b2", "b/tool", on @ T)
        ties = [ls.Constraint("point", "a/tool", "b1"), ls.Constraint("point", "a2", "b2")]
        return scene.with_constraints([*ties, *([ls.Constraint(more, "a/tool", "b1")] if more else [])])

    if target > 0.01:
        return made(target), q
    apart = target
    for _ in range(4):  # in proportion
        apart *= target / singular_ratio(made(apart).constraint_jacobian(q))
    return made(apart), q


def _four_bar(kind: str, seed: int, target: float, placed: bool = False) -> Any:
    """A parallelogram next to its flat configuration, closed by a constraint that may be more than is needed."""
    tree = ls.robots.four_bars(1).without_constraints()
    tree = tree.placed(_at(np.random.default_rng(seed))) if placed else tree
    couplers = np.array([name.startswith("coupler") for name in tree.joint_names])

    def made(angle: float) -> tuple[ls.Robot, np.ndarray]:
        q = np.where(couplers, -angle, angle) * (1 if seed % 2 else -1)
        return tied(tree, q, [(kind, "end1", "B1")]), q

    if target > 0.1:
        return made(1.2)
    angle = target
    for _ in range(4):
        robot, q = made(angle)
        angle *= target / singular_ratio(robot.constraint_jacobian(q))
    return made(angle)


def bennett(seed: int) -> tuple[ls.Robot, Callable[[float], np.ndarray]]:
    """Bennett's linkage: four hinges in space, one freedom although its rows leave none but where it is closed.

    And its configuration for the angle of the first joint.
    """
    rng = np.random.default_rng(seed)
    a, alpha = rng.uniform(0.3, 0.6), rng.uniform(0.5, 0.9)
    beta = rng.uniform(1.0, 1.4)
    b = a * np.sin(beta) / np.sin(alpha)

    def after(length: float, twist: float) -> Placement:
        c, s = float(np.cos(twist)), float(np.sin(twist))
        return Placement(((1.0, 0.0, 0.0), (0.0, c, -s), (0.0, s, c)), (float(length), 0.0, 0.0))

    parts = []
    for k, place in enumerate((Placement(), after(a, alpha), after(b, beta))):
        parent = "base" if k == 0 else f"link{k - 1}"
        parts.append(Part(f"link{k}", parent, Joint(f"joint{k}", placement=place), random_inertial(rng)))
    parts.append(Part("end", "link2", Joint("end mount", "fixed", placement=after(a, alpha))))
    tree = ls.Robot(assemble("Bennett", parts, base="base"))
    back = matrix(after(b, beta))
    closed = tree.with_constraints([ls.Constraint("hinge", "end", at=np.linalg.inv(back))])
    factor = np.sin((alpha + beta) / 2) / np.sin((beta - alpha) / 2)

    def pose(angle: float) -> np.ndarray:
        second = 2.0 * np.arctan2(factor, np.tan(angle / 2.0))
        return np.array([angle, second, -angle])

    return closed, pose


def _bennett(seed: int, target: float) -> Any:
    """Bennett's linkage with its first link held by a short lever."""
    robot, pose = bennett(seed)
    q = pose(np.random.default_rng(seed).uniform(0.2, 2.0))
    turned = np.array([[0.0, 0.0, 1.0], [1.0, 0.0, 0.0], [0.0, 1.0, 0.0]])  # z along the y of link 0

    def made(lever: float) -> ls.Robot:
        T = np.eye(4)
        T[:3, :3], T[0, 3] = turned.T, lever
        framed = robot.with_frame("lever", "link0", T)
        return framed.with_constraints([ls.Constraint("plane", "lever", at=framed.pose(q, "lever"))])

    lever = min(target, 0.5)
    for _ in range(4 if target < 0.1 else 0):
        lever *= target / singular_ratio(made(lever).constraint_jacobian(q))
    return made(lever), q


def _near_axis(seed: int, target: float) -> Any:
    """A PUMA whose third link is held at a point next to the axis of joint 3, and at its tool in a plane."""
    arm = ls.robots.puma560()
    q = np.random.default_rng(seed).uniform(-1.0, 1.0, 6)

    def made(apart: float) -> ls.Robot:
        T = np.eye(4)
        T[:3, 3] = (apart, 0.0, 0.1)
        return tied(arm.with_frame("beside", "link3", T), q, [("point", "beside", "link2"), ("plane", "tool", "")])

    apart = min(0.3, target)
    for _ in range(4 if target < 0.1 else 0):
        apart *= target / singular_ratio(made(apart).constraint_jacobian(q))
    return made(apart), q


TOOLS = ("arm0/tool", "arm1/tool")
FAMILIES: dict[str, Callable[[int, float], Any]] = {
    "two arms": lambda seed, target: _tied_arms((3, 3), seed, target),
    "two arms, a row twice": lambda seed, target: _tied_arms((2, 4), seed, target, [("plane", *TOOLS)]),
    "two arms, all rows twice": lambda seed, target: _tied_arms((3, 3), seed, target, [("rigid", *TOOLS)]),
    "two arms and a body": lambda seed, target: _held_body((3, 3), seed, target),
    "three arms and a body": lambda seed, target: _held_body((6, 3, 3), seed, target),
    "stretched": lambda seed, target: _stretched("line", seed, target),
    "stretched, a row of zeros": lambda seed, target: _stretched("point", seed, target),
    "wrist": lambda seed, target: _wrist(seed, target),
    "wrist, vacuous rows": lambda seed, target: _wrist(seed, target, [("point", "link2", "link1")]),
    "points close together": lambda seed, target: _doubled((4, 5), seed, target),
    "points close together, redundant": lambda seed, target: _doubled((6, 7), seed, target, "point"),
    "four-bar": lambda seed, target: _four_bar("line", seed, target),
    "four-bar, hinge in space": lambda seed, target: _four_bar("hinge", seed, target, placed=True),
    "Bennett": _bennett,
    "point near an axis": _near_axis,
}
RATIOS = tuple(10.0**-k for k in range(9))
SEEDS = range(1, 5)


def singular_cases(seeds: Iterable[int] = SEEDS, ratios: Iterable[float] = RATIOS) -> list[tuple[str, int, float]]:
    """Family, seed and wanted singular ratio of mechanisms from regular to singular to working precision: 540."""
    return list(itertools.product(FAMILIES, seeds, ratios))


def singular_case(family: str, seed: int, ratio: float) -> tuple[ls.Robot, np.ndarray]:
    """A mechanism and a configuration that closes it."""
    return FAMILIES[family](seed, ratio)


def precise_solution(
    M: np.ndarray, K: np.ndarray, force: np.ndarray, k: np.ndarray, noise: float = 1e-12
) -> tuple[np.ndarray, int]:
    """x of M x + K^T lambda = force, K x + k = 0 to 50 digits, and the rank: of rows below `noise` nothing is asked.

    Pivoted Gram-Schmidt in the metric M^-1, on rows in units of what they are made of: K is rounded itself.
    """
    with mp.workdps(50):
        root = mp.cholesky(mp.matrix((0.5 * (M + M.T)).tolist()))
        n = len(M)

        def inward(b: Iterable[float]) -> list[Any]:
            x = [mp.mpf(float(value)) for value in b]
            for i in range(n):
                x[i] = (x[i] - mp.fsum(root[i, j] * x[j] for j in range(i))) / root[i, i]
            return x

        rows, drift, x, rank = [inward(row) for row in K], [mp.mpf(float(v)) for v in k], inward(force), 0
        sizes = [mp.sqrt(mp.fsum(v * v for v in inward(np.full(n, np.abs(K).max()))))] * len(rows)
        left = set(range(len(rows)))
        while left:
            squares = {i: mp.fsum(v * v for v in rows[i]) for i in left}
            i = max(left, key=lambda i: squares[i] / sizes[i] ** 2)
            if mp.sqrt(squares[i]) < noise * sizes[i]:
                break
            left.remove(i)
            rank += 1
            own, square = rows[i], squares[i]
            share = (mp.fsum(a * b for a, b in zip(own, x, strict=True)) + drift[i]) / square
            x = [a - share * b for a, b in zip(x, own, strict=True)]
            for j in left:
                share = mp.fsum(a * b for a, b in zip(own, rows[j], strict=True)) / square
                rows[j] = [a - share * b for a, b in zip(rows[j], own, strict=True)]
                drift[j] -= share * drift[i]
        for i in reversed(range(n)):
            x[i] = (x[i] - mp.fsum(root[j, i] * x[j] for j in range(i + 1, n))) / root[i, i]
        return np.array([float(value) for value in x]), rank


__all__ = [
    "BODY", "FAMILIES", "RATIOS", "bennett", "dense_drift", "dense_rows", "dense_solution", "grasp_case", "placed_arm",
    "precise_solution", "singular_case", "singular_cases", "singular_ratio", "tied", "tree_case",
]  # fmt: skip
