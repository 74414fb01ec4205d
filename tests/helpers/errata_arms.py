"""Chains in motion and the papers' recursions over them, with the place of an erratum left open: for test_errata.py.

Everything is written out in NumPy, in the base's directions, from the positions and velocities that
`robots_for_tests.kinematics` finds; its virtual power and its mass matrix are the oracle. Links are numbered as in the
papers, from the tip (here 0) to the base (here n is the base itself). An arm's numbers are floats, or elements of the
field of papers/exact/field.py, where nothing is rounded: there a printed form is refuted, and a corrected one proved.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from robots_for_tests import inverse_dynamics, kinematics, mass_matrix

import linksweep as ls
from linksweep.functions.computation import RobotFunction
from linksweep.functions.functions import FUNCTIONS
from linksweep.mechanism.canonical import CanonicalLink, CanonicalModel
from linksweep.model.model import IDENTITY3, ZERO3, Inertial, Joint, Link, Model, Placement
from linksweep.papers.exact.field import Angle
from linksweep.papers.exact.points import Draw, exact_body
from linksweep.spatial.algebra import Vec
from linksweep.spatial.transforms import Screw, Shift

GRAVITY = np.array([1.5, -2.5, -9.0])


def skew(v: np.ndarray) -> np.ndarray:
    return np.cross(np.eye(3), v)  # rows e_i x v: the transpose of -v~, which is v~


def stacked(angular: Any, linear: Any) -> np.ndarray:
    return np.concatenate([angular, linear])


def shift(arm: np.ndarray) -> np.ndarray:
    """phi of (2): [U, l~; 0, U]."""
    return np.block([[np.eye(3), skew(arm)], [np.zeros((3, 3)), np.eye(3)]])


def missed(found: Any, right: Any) -> float:
    """The largest difference, of the largest entry; over the field 1 if there is any difference at all."""
    found, right = np.asarray(found), np.asarray(right)
    if found.dtype == object or right.dtype == object:
        return float((found != right).any())
    return float(np.abs(found - right).max() / np.abs(right).max())


def vanishes(x: Any, within: float = 1e-12) -> bool:
    """Over the field, whatever `within`: is 0."""
    x = np.asarray(x)
    return not x.any() if x.dtype == object else float(np.abs(x).max()) <= within


def zeros(a: Any, *shape: int) -> np.ndarray:
    """Zeros among which numbers of this arm can stand."""
    return np.zeros(shape, dtype=a.M[0].dtype)


def inv(matrix: np.ndarray) -> np.ndarray:
    return np.linalg.inv(matrix) if matrix.dtype != object else _reduced(matrix)[0]


def det(matrix: np.ndarray) -> Any:
    return np.linalg.det(matrix) if matrix.dtype != object else _reduced(matrix)[1]


def _reduced(matrix: np.ndarray) -> tuple[np.ndarray, Any]:
    """The inverse and the determinant, by elimination in a field."""
    n, determinant = len(matrix), 1.0
    work = np.hstack([matrix, np.eye(n).astype(object)])
    for k in range(n):
        pivot = next((i for i in range(k, n) if work[i, k] != 0), None)
        if pivot is None:
            return work[:, n:], 0.0
        if pivot != k:
            work[[k, pivot]] = work[[pivot, k]]
            determinant = -determinant
        determinant = determinant * work[k, k]
        work[k] = work[k] * (1.0 / work[k, k])
        for i in range(n):
            if i != k:
                work[i] = work[i] - work[k] * work[i, k]
    return work[:, n:], determinant


@dataclass
class Arm:
    """A chain in motion, tip first. H holds the rows H(k); tau and mass are the oracle's."""

    robot: Any  # a Robot, or a FieldRobot
    n: int
    slides: list[bool]
    h: np.ndarray
    p: np.ndarray  # p[k] to p[n], the base
    m: np.ndarray
    com: np.ndarray  # from the joint
    I: np.ndarray  # noqa: E741  (about the joint)
    q: np.ndarray
    qd: np.ndarray
    qdd: np.ndarray
    w: np.ndarray
    v: np.ndarray
    dw: np.ndarray
    dv: np.ndarray
    tau: np.ndarray
    mass: np.ndarray
    phi: list[np.ndarray]  # phi[k] = phi(k+1, k)
    M: list[np.ndarray]
    H: list[np.ndarray]
    R: float  # armature

    @property
    def base(self) -> np.ndarray:
        """The acceleration of the base that stands for gravity."""
        return stacked(np.zeros(3), -GRAVITY)


@functools.cache
def arm(n: int = 5, joints: str = "mixed", seed: int = 7, exact: bool = False, armature: float = 0.0) -> Arm:
    chain = ls.robots.chain_model(n, seed, joints).with_gravity(tuple(GRAVITY.tolist()))
    model = replace(
        chain, links=tuple(replace(link, joint=replace(link.joint, armature=armature)) for link in chain.links)
    )
    q, qd, qdd = np.random.default_rng(seed).uniform(-1.5, 1.5, (3, n))
    robot: Any = ls.Robot(model)
    if exact:
        kinds = "".join("P" if link.joint.kind == "prismatic" else "R" for link in model.links)
        draw = Draw(f"{kinds} {seed}")
        robot = FieldRobot.general(kinds, draw, armature)
        model, (q, qd, qdd) = robot.model, robot.state(draw)
    return in_motion(robot, model, q, qd, qdd, armature)


def in_motion(robot: Any, model: Model, q: Any, qd: Any, qdd: Any, armature: float) -> Arm:
    n = len(model.links)
    bodies = kinematics(model, q, qd, qdd)[::-1]
    inertials = [link.inertial for link in model.links][::-1]
    slides = [link.joint.kind == "prismatic" for link in model.links][::-1]
    h, w, v, dw, dv, p = (np.array([getattr(b, x) for b in bodies]) for x in ("axis", "w", "v", "dw", "dv", "p"))
    m, com = np.array([i.mass for i in inertials]), np.array([b.c - b.p for b in bodies])
    centre = np.array([b.R @ np.array(i.inertia) @ b.R.T for b, i in zip(bodies, inertials, strict=True)])
    I = np.array([c + mass * (skew(r) @ skew(r).T) for c, mass, r in zip(centre, m, com, strict=True)])  # noqa: E741
    p = np.vstack([p, np.zeros(3)])
    phi = [shift(p[k] - p[k + 1]) for k in range(n)]
    M = [
        np.block([[i, mass * skew(r)], [mass * -skew(r), mass * np.eye(3)]])
        for i, mass, r in zip(I, m, com, strict=True)
    ]
    H = [stacked(*((np.zeros(3), x) if slide else (x, np.zeros(3)))) for x, slide in zip(h, slides, strict=True)]
    tau = inverse_dynamics(model, q, qd, qdd)[::-1]
    zero = np.zeros((1, 3))
    w, v, dw, dv = (np.vstack([x, zero]) for x in (w, v, dw, dv))
    mass = mass_matrix(model, q)[::-1, ::-1]
    state = (q[::-1], qd[::-1], qdd[::-1])
    return Arm(robot, n, slides, h, p, m, com, I, *state, w, v, dw, dv, tau, mass, phi, M, H, armature)


# ---- arms over the field --------------------------------------------------------------------------------------


@dataclass
class FieldRobot:
    """A general chain whose numbers are drawn from the field: as described, for the oracle, and as the library has it.

    Link i stands at Shift(p) Rz Rx Rz in its parent, its joint turns about or slides along z. Results are those of the
    library's algorithms, run as they are written.
    """

    model: Model
    canonical: CanonicalModel

    @classmethod
    def general(cls, kinds: str, draw: Draw, armature: float = 0.0) -> FieldRobot:
        places = [(draw.numbers(3), Angle(*draw.circle()), Angle(*draw.circle()), Angle(*draw.circle())) for _ in kinds]
        return cls.of(kinds, places, draw, armature)

    @classmethod
    def of(cls, kinds: str, places: Any, draw: Draw, armature: float) -> FieldRobot:
        described, links = [], []
        for i, (letter, (p, a, b, c)) in enumerate(zip(kinds, places, strict=True)):
            kind = "prismatic" if letter == "P" else "revolute"
            body = exact_body(draw.number(), draw.numbers(3), draw.numbers(6))
            xx, yy, zz, xy, xz, yz = body["I_com"]
            inertial = Inertial(body["mass"], body["com"], ((xx, xy, xz), (xy, yy, yz), (xz, yz, zz)))
            placement = Placement((about_z(a) @ about_x(b) @ about_z(c)).tolist(), p)
            described.append(
                Link(f"link{i}", i - 1, Joint(f"joint{i}", kind, (0.0, 0.0, 1.0), placement, armature), inertial)
            )
            factors = (Shift(Vec(*p)), Screw(2, a.c, a.s, 0.0), Screw(0, b.c, b.s, 0.0))
            links.append(
                CanonicalLink(
                    f"link{i}", i - 1, kind, factors, 0, c, (c.c, c.s), 0.0, 0.0, **body, armature=armature,
                    damping=0.0, friction=0.0, axes=IDENTITY3, origin=ZERO3, row=i, q_start=i, start=i,
                )
            )  # fmt: skip
        gravity = tuple(GRAVITY.tolist())
        order = tuple(range(len(kinds)))
        return cls(Model("field", tuple(described), order, (), gravity), CanonicalModel(tuple(links), (), gravity))

    def state(self, draw: Draw) -> Any:
        """q, qd, qdd: an angle for each turning joint, a number for each sliding one."""
        turning = [link.kind == "revolute" for link in self.canonical.links]
        q = np.array([draw.angle() if turns else draw.number() for turns in turning], dtype=object)
        return q, np.array(draw.numbers(len(turning))), np.array(draw.numbers(len(turning)))

    def _result(self, function: str, method: str | None, **values: Any) -> np.ndarray:
        computation = RobotFunction(self.canonical, function, method or next(iter(FUNCTIONS[function].methods)))
        arguments = [list(values[array.name]) for array in computation.inputs]
        return np.array(computation.evaluate(*arguments, base_parameters=False), dtype=object)

    def inverse_dynamics(self, q: Any, qd: Any, qdd: Any, method: str | None = None) -> np.ndarray:
        return self._result("inverse_dynamics", method, q=q, qd=qd, qdd=qdd)

    def forward_dynamics(self, q: Any, qd: Any, tau: Any, method: str | None = None) -> np.ndarray:
        return self._result("forward_dynamics", method, q=q, qd=qd, tau=tau)

    def mass_matrix_inverse(self, q: Any, method: str | None = None) -> np.ndarray:
        return self._result("mass_matrix_inverse", method, q=q).reshape(len(q), len(q))

    def determinant(self, q: Any) -> Any:
        """Of the mass matrix, by the product of its D."""
        return np.prod(self._result("joint_inertia", None, q=q))


def about_z(a: Any) -> np.ndarray:
    return np.array([[a.c, -a.s, 0.0], [a.s, a.c, 0.0], [0.0, 0.0, 1.0]])


def about_x(a: Any) -> np.ndarray:
    return np.array([[1.0, 0.0, 0.0], [0.0, a.c, -a.s], [0.0, a.s, a.c]])


# ---- the recursions, with the place of the erratum open ------------------------------------------------------


def bias_force(a: Arm, k: int) -> np.ndarray:
    """b(k) of (7) as corrected, Kozlowski (3.14), without external forces."""
    w, p, m = a.w[k], a.com[k], a.m[k]
    wv = np.cross(w, a.v[k])
    return stacked(np.cross(w, a.I[k] @ w) + m * np.cross(p, wv), m * (wv + np.cross(w, np.cross(w, p))))


def bias_acceleration(a: Arm, k: int) -> np.ndarray:
    """n(k) of (15) for a turning joint, (3.7') for a sliding one."""
    V = a.phi[k].T @ stacked(a.w[k + 1], a.v[k + 1])
    rate = a.h[k] * a.qd[k]
    return stacked(np.zeros(3), np.cross(V[:3], rate)) if a.slides[k] else turning_bias(V, rate)


def turning_bias(V: np.ndarray, rate: np.ndarray) -> np.ndarray:
    return stacked(np.cross(V[:3], rate), np.cross(V[3:], rate))


def classical_acceleration(a: Arm, k: int) -> np.ndarray:
    """a(k) of (2.19) and, as corrected, (2.32)."""
    w, rate, l = a.w[k + 1], a.h[k] * a.qd[k], a.p[k] - a.p[k + 1]  # noqa: E741
    turned = np.cross(w, np.cross(w, l))
    return stacked(np.zeros(3), turned + 2 * np.cross(w, rate)) if a.slides[k] else stacked(np.cross(w, rate), turned)


def classical_force(a: Arm, k: int) -> np.ndarray:
    w = a.w[k]
    return stacked(np.cross(w, a.I[k] @ w), a.m[k] * np.cross(w, np.cross(w, a.com[k])))


def outward(a: Arm, bias: list[np.ndarray], start: np.ndarray, rise: np.ndarray | None = None) -> list[np.ndarray]:
    """lambda(k) = phi^T lambda(k+1) + H^T qdd + bias."""
    out: list[Any] = [None] * a.n + [start]
    for k in reversed(range(a.n)):
        out[k] = a.phi[k].T @ out[k + 1] + a.H[k] * (a.qdd if rise is None else rise)[k] + bias[k]
    return out[: a.n]


def inward(a: Arm, accelerations: list[np.ndarray], bias: list[np.ndarray]) -> np.ndarray:
    """x(k) = phi x(k-1) + M lambda + b, and tau = H x."""
    x, tau = np.zeros(6), zeros(a, a.n)
    for k in range(a.n):
        x = (a.phi[k - 1] @ x if k else x) + a.M[k] @ accelerations[k] + bias[k]
        tau[k] = a.H[k] @ x
    return tau + a.R * a.qdd


def listed(function: Any, a: Arm) -> list[np.ndarray]:
    return [function(a, k) for k in range(a.n)]


def local_torque(a: Arm, **other: Any) -> np.ndarray:
    n, b = other.get("n") or listed(bias_acceleration, a), other.get("b") or listed(bias_force, a)
    return inward(a, outward(a, n, other.get("start", a.base), other.get("rise")), b)


def classical_torque(a: Arm, bias: list[np.ndarray]) -> np.ndarray:
    return inward(a, outward(a, bias, a.base), listed(classical_force, a))


@dataclass
class Gains:
    P: list[np.ndarray]
    P_plus: list[np.ndarray]
    D: np.ndarray
    G: list[np.ndarray]


def gains(a: Arm, update: str = "43") -> Gains:
    P_plus: Any = np.zeros((6, 6))
    found = Gains([], [], zeros(a, a.n), [])
    for k in range(a.n):
        P = (a.phi[k - 1] @ P_plus @ a.phi[k - 1].T if k else P_plus) + a.M[k]
        D = a.H[k] @ P @ a.H[k] + a.R
        G = P @ a.H[k] / D
        keep = np.eye(6) - np.outer(G, a.H[k])
        P_plus = {"43": keep @ P, "none": P}.get(update, keep @ P @ keep.T)
        if update == "51 with R":
            P_plus = P_plus + a.R * np.outer(G, G)
        found.P.append(P)
        found.P_plus.append(P_plus)
        found.D[k] = D
        found.G.append(G)
    return found


def filtered_torque(a: Arm, g: Gains, use: list[np.ndarray], carry: bool = True, start: Any = None) -> np.ndarray:
    """(35)-(47); `use` is what multiplies n in (41); without `carry`, (3.56) as printed leaves lambda^+ alone."""
    n, b, z, residual = listed(bias_acceleration, a), listed(bias_force, a), np.zeros(6), zeros(a, a.n)
    for k in range(a.n):
        z = (a.phi[k - 1] @ z if k else z) + b[k]
        innovation = a.tau[k] - a.H[k] @ z
        z = z + g.G[k] * innovation + use[k] @ n[k]
        residual[k] = innovation / g.D[k]
    qdd, inner = zeros(a, a.n), a.base if start is None else start
    for k in reversed(range(a.n)):
        plus = a.phi[k].T @ inner + n[k]
        qdd[k] = residual[k] - g.G[k] @ plus
        inner = plus + a.H[k] * qdd[k] if carry else inner
    return qdd


def covariances(a: Arm, g: Gains, printed: str = "") -> tuple[list[np.ndarray], list[np.ndarray]]:
    """Delta^+ and Delta^- of (81)-(82) and (83), with one misprint if wanted."""
    plus, minus = [np.zeros((6, 6))] * a.n, [np.zeros((6, 6))] * a.n
    for k in reversed(range(a.n)):
        if k < a.n - 1:
            phi = a.phi[k]
            plus[k] = (phi if printed == "phi" else phi.T) @ minus[k + 1] @ phi
        keep = np.eye(6) - np.outer(g.G[k], a.H[k])
        keep = keep.T if printed == "(68)" else keep
        own = np.eye(6) * (a.H[k] @ a.H[k]) if printed == "HH^T" else np.outer(a.H[k], a.H[k])
        minus[k] = keep.T @ plus[k] @ keep + own / g.D[k]
    return plus, minus


@dataclass
class Operators:
    phi: np.ndarray
    Phi: np.ndarray
    Psi: np.ndarray
    psi: np.ndarray
    H: np.ndarray
    M: np.ndarray
    L: np.ndarray
    D: np.ndarray


def operators(a: Arm) -> Operators:
    """(3.4)-(3.6), (4.6)-(4.10), (5.1), dense."""
    n, g = a.n, gains(a)
    steps = a.phi
    filters = [steps[k] @ (np.eye(6) - np.outer(g.G[k], a.H[k])) for k in range(n)]

    def triangle(chain: list[np.ndarray], strict: bool) -> np.ndarray:
        out = zeros(a, 6 * n, 6 * n)
        for j in range(n):
            block = np.eye(6)
            for i in range(j + strict, n):
                if i > j + strict:
                    block = chain[i - 1] @ block
                out[6 * i : 6 * i + 6, 6 * j : 6 * j + 6] = block
        return out

    H, L, M = zeros(a, n, 6 * n), zeros(a, 6 * n, n), zeros(a, 6 * n, 6 * n)
    for k in range(n):
        own = slice(6 * k, 6 * k + 6)
        H[k, own], L[own, k], M[own, own] = a.H[k], steps[k] @ g.G[k], a.M[k]
    phi, psi = triangle(steps, False), triangle(filters, False)
    return Operators(phi, triangle(steps, True), triangle(filters, True), psi, H, M, L, np.diag(g.D))


# ---- Angeles, Ma & Rojas: joints from the base, in Hartenberg-Denavit parameters ----------------------------


@dataclass
class Table:
    """Hartenberg-Denavit rows in Angeles' b, motion in b, and the oracle's forces for it; joints from the base."""

    robot: Any
    alpha: np.ndarray
    a: np.ndarray
    b: np.ndarray
    theta: np.ndarray
    slides: list[bool]
    rate: np.ndarray
    rise: np.ndarray
    m: np.ndarray
    rho: np.ndarray
    I: np.ndarray  # noqa: E741
    right: np.ndarray


def hartenberg_denavit(kinds: str, exact: bool = False, seed: int = 5) -> Table:
    if exact:
        return _field_table(kinds)
    n, random = len(kinds), np.random.default_rng(seed)
    alpha, theta, q, qd, qdd = random.uniform(-1.4, 1.4, (5, n))
    a, d = random.uniform(0.1, 0.5, (2, n))
    m, rho = random.uniform(0.5, 2.0, n), random.uniform(-0.2, 0.2, (n, 3))
    root = random.normal(size=(n, 3, 3)) * 0.2
    I = root @ root.transpose(0, 2, 1)  # noqa: E741
    I = np.array([np.trace(i) * np.eye(3) - i for i in I])  # noqa: E741  (what a rigid body can have)
    slides = [kind == "P" for kind in kinds]
    rows = [
        {"alpha": alpha[i], "a": a[i], "d": d[i], "theta": theta[i], "joint": "prismatic" if slides[i] else "revolute",
         "mass": m[i], "com": rho[i], "inertia": I[i]} for i in range(n)
    ]  # fmt: skip
    robot = ls.Robot.from_dh(rows, convention="modified").with_gravity(tuple(GRAVITY.tolist()))
    tau = inverse_dynamics(robot.model, q, qd, qdd)
    sign = np.where(slides, -1.0, 1.0)  # b = -d, so forces along b are minus those along d
    b = -(d + np.where(slides, q, 0.0))
    at = theta + np.where(slides, 0.0, q)
    return Table(robot, alpha, a, b, at, slides, sign * qd, sign * qdd, m, rho, I, sign * tau)


def _field_table(kinds: str) -> Table:
    """Modified DH rows over the field: Rx(alpha) Tx(a) Rz(theta) Tz(d)."""
    draw = Draw(kinds)
    n, none = len(kinds), Angle(1.0, 0.0)
    alpha, theta = ([Angle(*draw.circle()) for _ in kinds] for _ in range(2))
    a, d = draw.numbers(n), draw.numbers(n)
    places = [((x, -(d_ * b.s), d_ * b.c), none, b, c) for x, d_, b, c in zip(a, d, alpha, theta, strict=True)]
    robot = FieldRobot.of(kinds, places, draw, 0.0)
    q, qd, qdd = robot.state(draw)
    tau = inverse_dynamics(robot.model, q, qd, qdd)
    slides = [kind == "P" for kind in kinds]
    sign = np.where(slides, -1.0, 1.0)
    b = -(np.array(d) + np.where(slides, q, 0.0))
    at = np.array([c if slide else x + c for c, x, slide in zip(theta, q, slides, strict=True)], dtype=object)
    bodies = [link.inertial for link in robot.model.links]
    m, rho, I = (np.array([getattr(body, x) for body in bodies]) for x in ("mass", "com", "inertia"))  # noqa: E741
    return Table(
        robot, np.array(alpha, dtype=object), np.array(a), b, at, slides, sign * qd, sign * qdd, m, rho, I, sign * tau
    )


def kane(t: Table, **printed: bool) -> np.ndarray:
    """Stages 1 to 3, each vector in its link's frame; the misprints that are named are made."""
    n, e = len(t.b), np.array([0.0, 0.0, 1.0])
    Q, arm_of, w, W, pdd, hd, dw = [], [], [], [], [], [], []
    inner = (np.zeros(3), np.zeros(3), np.zeros((3, 3)), -GRAVITY, np.zeros(3))
    for i in range(n):
        ca, sa, ct, st = np.cos(t.alpha[i]), np.sin(t.alpha[i]), np.cos(t.theta[i]), np.sin(t.theta[i])
        Q.append(np.array([[ct, -st, 0], [ca * st, ca * ct, -sa], [sa * st, sa * ct, ca]]))  # (7)
        s = -1.0 if printed.get("stage_1") else 1.0
        arm_of.append(np.array([t.a[i], s * t.b[i] * sa, -s * t.b[i] * ca]))  # (8)
        slides = t.slides[i] and not (printed.get("first_joint") and i == 0)
        turn = 0.0 if slides else 1.0
        w0, dw0, W0, p0, rho0 = inner
        w.append(Q[i].T @ w0 + t.rate[i] * (turn * e))
        dw.append(Q[i].T @ dw0 + turn * (np.cross(w[i], t.rate[i] * e) + t.rise[i] * e))
        W.append(skew(dw[i]) + skew(w[i]) @ skew(w[i]))
        sign = -1.0 if printed.get("stage_2") and i else 1.0
        pdd.append(Q[i].T @ (p0 + sign * W0 @ (arm_of[i] - rho0)) + W[i] @ t.rho[i])
        if slides:
            pdd[i] = pdd[i] - 2 * np.cross(w[i], t.rate[i] * e) - t.rise[i] * e  # (20)
        hd.append(t.I[i] @ dw[i] + np.cross(w[i], t.I[i] @ w[i]))
        inner = (w[i], dw[i], W[i], pdd[i], t.rho[i])
    turned, origin, frames = np.eye(3), np.zeros(3), []
    for i in range(n):
        origin, turned = origin + turned @ arm_of[i], turned @ Q[i]
        frames.append((turned, origin))
    tau: list[Any] = [0.0] * n
    for i, (R, own) in enumerate(frames):
        axis = R @ e
        for j in range(0 if printed.get("sums") else i, n):  # (42), (43)
            Rj, Oj = frames[j]
            force = Rj @ (t.m[j] * pdd[j])
            moment = Rj @ hd[j] + np.cross(Oj + Rj @ t.rho[j] - own, force)
            along = 1.0 if printed.get("(35)") else -1.0
            tau[i] = tau[i] + (along * (axis @ force) if t.slides[i] else axis @ moment)
    return np.array(tau)
