"""Robots for the tests, and mechanics written out plainly: the oracle that knows nothing of linksweep's frames.

The oracle works in the base's directions, about mass centres, on the links as described: none of the choices (link
frames, spatial vectors, recursions of forces) that the library makes. Its numbers are floats, or elements of a field.
"""

from __future__ import annotations

import functools
import warnings
from dataclasses import dataclass
from typing import Any

import mpmath
import numpy as np

import linksweep as ls
from linksweep.errors import ModelWarning
from linksweep.functions.compiled import CompiledFunction
from linksweep.mechanism.bias import BaseMotion
from linksweep.model.assembly import Part, assemble
from linksweep.model.formats.urdf import read_urdf
from linksweep.model.model import BASE, Inertial, Joint, Limits, Model, Placement, symmetric
from linksweep.spatial.algebra import ZERO_VEC, Vec

URDF = """<robot name="sample">
  <link name="ground"/>
  <link name="arm"><inertial><origin xyz="0.1 0.02 -0.03" rpy="0.2 0 0.4"/><mass value="3"/>
    <inertia ixx="0.2" ixy="0.01" ixz="0" iyy="0.3" iyz="0.02" izz="0.25"/></inertial></link>
  <link name="hand"><inertial><origin xyz="0 0 0.1"/><mass value="1.2"/>
    <inertia ixx="0.02" ixy="0" ixz="0.001" iyy="0.03" iyz="0" izz="0.025"/></inertial></link>
  <link name="camera"><inertial><origin xyz="0.02 0 0"/><mass value="0.3"/>
    <inertia ixx="0.002" ixy="0" ixz="0" iyy="0.003" iyz="0" izz="0.0025"/></inertial></link>
  <link name="side"><inertial><origin xyz="0.1 0 0.1"/><mass value="0.8"/>
    <inertia ixx="0.02" ixy="0" ixz="0" iyy="0.03" iyz="0" izz="0.02"/></inertial></link>
  <joint name="slide" type="prismatic"><parent link="arm"/><child link="hand"/>
    <origin xyz="0.4 0.1 0" rpy="0.3 0 1.5707963267948966"/><axis xyz="0 1 0"/>
    <dynamics damping="0.4" friction="0.2"/><limit lower="-1" upper="1" effort="9" velocity="2"/></joint>
  <joint name="turn" type="continuous"><parent link="ground"/><child link="arm"/>
    <origin xyz="0 0 0.5"/><axis xyz="0 0.6 0.8"/></joint>
  <joint name="glue" type="fixed"><parent link="hand"/><child link="camera"/>
    <origin xyz="0 0 0.2" rpy="0 0.5 0"/></joint>
  <joint name="branch" type="revolute"><parent link="arm"/><child link="side"/>
    <origin xyz="0 0.3 0" rpy="0 0 0.7"/><axis xyz="-1 0 0"/><dynamics damping="2.5" friction="0.7"/>
    <limit lower="-1" upper="1" effort="9" velocity="2"/></joint>
</robot>"""

BUNDLED = ("puma560", "stanford", "six_axis", "planar3")
CHAINS = (*(f"mixed{n}" for n in (1, 2, 3, 5, 8, 12)), "chain1", "chain7")
TREES = ("tree4", "tree9", "tree14", "urdf")
ROBOTS = BUNDLED + CHAINS + TREES


# ---- robots --------------------------------------------------------------------------------------------------


@functools.cache
def robot(name: str) -> ls.Robot:
    """A robot by a short name, the same object every time: "puma560", "mixed5", "chain7", "tree9", "urdf" ..."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ModelWarning)  # six_axis: published data
        return ls.Robot(_model(name))


@functools.cache
def compiled(name: str, functions: Any, **options: Any) -> CompiledFunction:
    """`robot(name).compile(...)`, compiled once for all tests."""
    return robot(name).compile(list(functions) if isinstance(functions, frozenset) else functions, **options)


def _model(name: str) -> Model:
    stem, digits = name.rstrip("0123456789"), name[len(name.rstrip("0123456789")) :]
    if stem == "chain":
        return ls.robots.chain_model(int(digits), seed=int(digits))
    if stem == "mixed":
        return ls.robots.chain_model(int(digits), seed=100 + int(digits), joints="mixed")
    if stem == "planar":
        return ls.robots.planar_model(int(digits))
    if stem == "tree":
        return tree_model(int(digits), seed=int(digits))
    return read_urdf(URDF) if name == "urdf" else ls.robots.model(name)


def random_rotation(random: np.random.Generator) -> np.ndarray:
    turn, _ = np.linalg.qr(random.normal(size=(3, 3)))
    return turn * np.sign(np.linalg.det(turn))


def nested(matrix: Any) -> Any:
    return tuple(tuple(row) for row in np.asarray(matrix, dtype=float).tolist())


def random_inertial(random: np.random.Generator, size: float = 1.0) -> Inertial:
    """A body whose mass is spread over all directions, so that every mass matrix is well conditioned."""
    mass = random.uniform(0.5, 2.0)
    spread = random.uniform(0.05, 0.2, 3) ** 2 * mass
    turn = random_rotation(random)
    inertia = turn @ (np.diag(spread.sum() - spread)) @ turn.T
    centre = random.uniform(-0.2, 0.2, 3)
    return Inertial(size * mass, tuple(centre.tolist()), nested(size * (inertia + inertia.T) / 2))


AXES = ((1.0, 0.0, 0.0), (0.0, -1.0, 0.0), (0.0, 0.0, 1.0), (0.0, 0.0, -1.0))


def tree_model(count: int, seed: int, prismatic: float = 0.3) -> Model:
    """A random branched tree: axes in any direction, joints in a shuffled document, a fixed link, all the terms."""
    random = np.random.default_rng(seed)
    parts = []
    for i in range(count):
        parent = f"link{random.integers(max(0, i - 3), i)}" if i and random.random() > 0.1 else "base"
        axis = AXES[random.integers(4)] if random.random() < 0.5 else tuple(random.normal(size=3).tolist())
        turn = np.eye(3) if random.random() < 0.3 else random_rotation(random)
        joint = Joint(
            f"joint{i}",
            "prismatic" if random.random() < prismatic else "revolute",
            axis,
            Placement(nested(turn), tuple(random.uniform(-0.4, 0.4, 3).tolist())),
            armature=random.choice((0.0, 0.1)),
            damping=random.uniform(0, 1),
            friction=random.uniform(0, 1),
        )
        parts.append(Part(f"link{i}", parent, joint, random_inertial(random)))
    camera = Placement(nested(random_rotation(random)), (0.1, -0.2, 0.05))
    parts.append(
        Part("camera", f"link{count // 2}", Joint("mount", "fixed", placement=camera), random_inertial(random))
    )
    random.shuffle(parts)  # type: ignore[arg-type]
    return assemble(f"tree{count}", parts, base="base", gravity=(0.3, -1.0, -9.7))


def samples(bot: ls.Robot, *shape: int, seed: int = 0, count: int = 3) -> list[np.ndarray]:
    """q, qd, qdd (or tau): `count` arrays (*shape, nv), in turn over all angles."""
    random = np.random.default_rng(seed)
    return [random.uniform(-3.0, 3.0, (*shape, bot.nv)) for _ in range(count)]


def close(got: Any, expected: Any, tolerance: float = 1e-10) -> bool:
    """Equal to `tolerance` of the largest entry expected."""
    got, expected = np.asarray(got), np.asarray(expected)
    assert got.shape == expected.shape, (got.shape, expected.shape)
    return float(np.abs(got - expected).max()) <= tolerance * max(1e-3, float(np.abs(expected).max()))


# ---- the oracle ----------------------------------------------------------------------------------------------


@dataclass
class Body:
    """One link in the base frame: pose, mass centre, joint axis, and their rates."""

    R: np.ndarray
    p: np.ndarray
    axis: np.ndarray
    c: np.ndarray
    w: np.ndarray
    v: np.ndarray
    dw: np.ndarray
    dv: np.ndarray


def turned(axis: np.ndarray, angle: float) -> np.ndarray:
    """Rodrigues' formula."""
    k = np.cross(np.eye(3), axis)
    return np.eye(3) + np.sin(angle) * k + (1 - np.cos(angle)) * k @ k


def kinematics(model: Model, q: Any, qd: Any = None, qdd: Any = None) -> list[Body]:
    """Every link in the base frame; q, qd, qdd in document order. Rates are those of the link's own origin."""
    n = len(model.links)
    q, qd, qdd = (np.zeros(n) if x is None else np.asarray(x) for x in (q, qd, qdd))
    place = {link: k for k, link in enumerate(model.document_order)}
    zero = np.zeros(3)
    base = Body(np.eye(3), zero, zero, zero, zero, zero, zero, zero)
    bodies: list[Body] = []
    for i, link in enumerate(model.links):
        a = base if link.parent == BASE else bodies[link.parent]
        x, xd, xdd = (u[place[i]] for u in (q, qd, qdd))
        local, at = np.array(link.joint.axis), link.joint.placement
        R = a.R @ np.array(at.rotation)
        axis = R @ local
        slides = link.joint.kind == "prismatic"
        arm = a.R @ np.array(at.position) + (axis * x if slides else 0)
        v, dv = a.v + np.cross(a.w, arm), a.dv + np.cross(a.dw, arm) + np.cross(a.w, np.cross(a.w, arm))
        w, dw = a.w, a.dw
        if slides:
            v, dv = v + axis * xd, dv + axis * xdd + 2 * np.cross(a.w, axis * xd)
        else:
            w, dw, R = a.w + axis * xd, a.dw + axis * xdd + np.cross(a.w, axis * xd), R @ turned(local, x)
        p = a.p + arm
        bodies.append(Body(R, p, axis, p + R @ np.array(link.inertial.com), w, v, dw, dv))
    return bodies


def frame_pose(model: Model, bodies: list[Body], name: str) -> np.ndarray:
    """The 4x4 matrix of a named frame."""
    frame = next(f for f in model.frames if f.name == name)
    T = np.eye(4)
    T[:3, :3], T[:3, 3] = np.array(frame.placement.rotation), np.array(frame.placement.position)
    if frame.link != BASE:
        outer = np.eye(4)
        outer[:3, :3], outer[:3, 3] = bodies[frame.link].R, bodies[frame.link].p
        T = outer @ T
    return T


def joint_motion(model: Model, bodies: list[Body], i: int, point: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Angular and linear velocity of `point` for a unit rate of the joint of link i."""
    if model.links[i].joint.kind == "prismatic":
        return np.zeros(3), bodies[i].axis
    return bodies[i].axis, np.cross(bodies[i].axis, point - bodies[i].p)


def path(model: Model, link: int) -> list[int]:
    """The links from `link` to the base."""
    found = []
    while link != BASE:
        found.append(link)
        link = model.links[link].parent
    return found


def inverse_dynamics(
    model: Model, q: Any, qd: Any = None, qdd: Any = None, f_ext: Any = None, dissipation: bool = False
) -> np.ndarray:
    """Joint forces by virtual power: every body's Newton-Euler balance times what each joint moves of it.

    f_ext: {frame: [moment; force] in that frame at its origin}.
    """
    n = len(model.links)
    bodies = kinematics(model, q, qd, qdd)
    place = {link: k for k, link in enumerate(model.document_order)}
    tau: list[Any] = [0.0] * n
    for b, (link, body) in enumerate(zip(model.links, bodies, strict=True)):
        r = body.c - body.p
        dv = body.dv + np.cross(body.dw, r) + np.cross(body.w, np.cross(body.w, r)) - np.array(model.gravity)
        I = body.R @ np.array(link.inertial.inertia) @ body.R.T  # noqa: E741
        force = link.inertial.mass * dv
        moment = I @ body.dw + np.cross(body.w, I @ body.w)
        for i in path(model, b):
            angular, linear = joint_motion(model, bodies, i, body.c)
            tau[place[i]] = tau[place[i]] + (angular @ moment + linear @ force)
    for name, f in (f_ext or {}).items():
        T = frame_pose(model, bodies, name)
        for i in path(model, next(frame.link for frame in model.frames if frame.name == name)):
            angular, linear = joint_motion(model, bodies, i, T[:3, 3])
            tau[place[i]] = tau[place[i]] - (angular @ T[:3, :3] @ f[:3] + linear @ T[:3, :3] @ f[3:])
    joints = [model.links[i].joint for i in model.document_order]
    rates, rises = (np.zeros(n) if x is None else np.asarray(x) for x in (qd, qdd))
    found = np.array(tau) + np.array([j.armature for j in joints]) * rises
    if dissipation:
        found += np.array([j.damping for j in joints]) * rates + np.array([j.friction for j in joints]) * np.sign(rates)
    return found


def mass_matrix(model: Model, q: Any) -> np.ndarray:
    """Sum of J^T I J over the bodies, by the Jacobians of their mass centres."""
    bodies = kinematics(model, q)
    place = {link: k for k, link in enumerate(model.document_order)}
    n = len(model.links)
    M = np.diag([model.links[i].joint.armature for i in model.document_order])
    for b, (link, body) in enumerate(zip(model.links, bodies, strict=True)):
        rows: list[Any] = [(np.zeros(3), np.zeros(3))] * n
        for i in path(model, b):
            rows[place[i]] = joint_motion(model, bodies, i, body.c)
        angular, linear = (np.array(columns) for columns in zip(*rows, strict=True))
        I = body.R @ np.array(link.inertial.inertia) @ body.R.T  # noqa: E741
        M = M + (link.inertial.mass * linear @ linear.T + angular @ I @ angular.T)
    return M


def jacobian(model: Model, q: Any, name: str) -> np.ndarray:
    bodies = kinematics(model, q)
    point = frame_pose(model, bodies, name)[:3, 3]
    place = {link: k for k, link in enumerate(model.document_order)}
    J = np.zeros((6, len(model.links)))
    for i in path(model, next(frame.link for frame in model.frames if frame.name == name)):
        J[:, place[i]] = np.concatenate(joint_motion(model, bodies, i, point))
    return J


def forward_dynamics(model: Model, q: Any, qd: Any, tau: Any, **options: Any) -> np.ndarray:
    """The joint accelerations, by solving with the mass matrix."""
    return np.linalg.solve(mass_matrix(model, q), tau - inverse_dynamics(model, q, qd, **options))


def condition(model: Model, q: Any) -> float:
    """The condition of M after each joint got the unit in which its own inertia is 1: by it rounding grows."""
    M = mass_matrix(model, q)
    return float(np.linalg.cond(M / np.sqrt(np.outer(np.diag(M), np.diag(M)))))


def energies(model: Model, q: Any, qd: Any) -> tuple[float, float]:
    """Kinetic (armature included) and potential energy."""
    kinetic = potential = 0.0
    for link, body in zip(model.links, kinematics(model, q, qd), strict=True):
        v = body.v + np.cross(body.w, body.c - body.p)
        w = body.R.T @ body.w
        kinetic += 0.5 * link.inertial.mass * v @ v + 0.5 * w @ np.array(link.inertial.inertia) @ w
        potential -= link.inertial.mass * np.array(model.gravity) @ body.c
    armature = np.array([model.links[i].joint.armature for i in model.document_order])
    return float(kinetic + 0.5 * armature @ np.asarray(qd) ** 2), float(potential)


def at_rest(gravity: Vec) -> BaseMotion:
    """What the algorithms take of a base that does not move."""
    return BaseMotion(ZERO_VEC, ZERO_VEC, -gravity)


# ---- numbers of 50 digits ------------------------------------------------------------------------------------


class Big:
    """An mpmath number that brings its own functions, as linksweep.spatial.scalars asks of every scalar."""

    __slots__ = ("x",)
    context: Any = mpmath.MPContext()

    def __init__(self, x: Any):
        self.x = x.x if isinstance(x, Big) else Big.context.mpf(x)

    def __add__(self, b: Any) -> Big:
        return Big(self.x + Big(b).x)

    def __sub__(self, b: Any) -> Big:
        return Big(self.x - Big(b).x)

    def __rsub__(self, b: Any) -> Big:
        return Big(Big(b).x - self.x)

    def __mul__(self, b: Any) -> Big:
        return Big(self.x * Big(b).x)

    def __truediv__(self, b: Any) -> Big:
        return Big(self.x / Big(b).x)

    def __rtruediv__(self, b: Any) -> Big:
        return Big(Big(b).x / self.x)

    def __neg__(self) -> Big:
        return Big(-self.x)

    def __lt__(self, b: Any) -> bool:
        return bool(self.x < Big(b).x)

    def __gt__(self, b: Any) -> bool:
        return bool(self.x > Big(b).x)

    __radd__, __rmul__ = __add__, __mul__

    def sin(self) -> Big:
        return Big(Big.context.sin(self.x))

    def cos(self) -> Big:
        return Big(Big.context.cos(self.x))

    def sqrt(self) -> Big:
        return Big(Big.context.sqrt(self.x))

    def __float__(self) -> float:
        return float(self.x)


Big.context.dps = 50


def big(values: Any) -> list[Big]:
    return [Big(float(x)) for x in values]


def floats(values: Any) -> np.ndarray:
    return np.array([float(x) for x in values])


def freely_moving() -> ls.Robot:
    """A free body with a ball joint, a slide and a planar joint on it, every link of general inertia."""
    random = np.random.default_rng(5)
    kinds = {"body": "free", "arm": "spherical", "hand": "prismatic", "fin": "planar"}
    parents = {"body": "base", "arm": "body", "hand": "arm", "fin": "body"}
    parts = []
    for link, kind in kinds.items():
        place = Placement(nested(random_rotation(random)), tuple(random.uniform(-0.4, 0.4, 3).tolist()))
        joint = Joint(f"to {link}", kind, placement=place, armature=0.1, damping=0.3)
        parts.append(Part(link, parents[link], joint, random_inertial(random)))
    return ls.Robot(assemble("free", parts, base="base"))


def robot_of(kinds: list[str], parents: list[int], gravity: tuple[float, float, float], seed: int = 0) -> ls.Robot:
    """Bodies of random shape on these joints, each on the body with the number of its parent (-1: the base)."""
    rng = np.random.default_rng(seed)
    parts = []
    for i, (kind, parent) in enumerate(zip(kinds, parents, strict=True)):
        points, masses = rng.normal(size=(8, 3)) * 0.2, rng.uniform(0.1, 0.3, 8)
        com = masses @ points / masses.sum()
        arms = points - com
        inertia = sum(m * (x @ x * np.eye(3) - np.outer(x, x)) for m, x in zip(masses, arms, strict=True))
        turn, _ = np.linalg.qr(rng.normal(size=(3, 3)))
        turn = turn * np.linalg.det(turn)
        axis = tuple(rng.normal(size=3).tolist()) if kind in ("revolute", "prismatic") else (0.0, 0.0, 1.0)
        placement = Placement(tuple(map(tuple, turn.tolist())), tuple(rng.normal(size=3) * 0.3))  # type: ignore
        inertial = Inertial(float(masses.sum()), tuple(com), tuple(map(tuple, np.asarray(inertia).tolist())))  # type: ignore
        on = "base" if parent < 0 else f"body{parent}"
        parts.append(Part(f"body{i}", on, Joint(f"joint{i}", kind, axis, placement), inertial))  # type: ignore
    return ls.Robot(assemble("flyer", parts, base="base", gravity=gravity))


GRAVITY = (0.0, 0.0, -9.81)


def step(n: int, k: int, size: float) -> np.ndarray:
    return size * np.eye(n)[k]


def interpreted(bot: ls.Robot, functions: Any, **options: Any) -> Any:
    return bot.compile(functions, backend="interpreter", **options)


def difference(f: Any, q: np.ndarray, size: float = 1e-5) -> np.ndarray:
    """df/dq by central differences of the fourth order, the last axis by coordinate."""
    n = len(q)

    def central(k: int, h: float) -> np.ndarray:
        return (f(q + step(n, k, h)) - f(q - step(n, k, h))) / (2 * h)

    return np.stack([(4 * central(k, size) - central(k, 2 * size)) / 3 for k in range(n)], axis=-1)


BODY = Inertial(1.0, (0.1, 0.0, 0.05), symmetric(0.1, 0.12, 0.13, 0.01, 0.0, 0.02))


def whole() -> ls.Robot:
    """A floating base, a ball joint, a slide and an elbow, in an order that is not that of the tree."""
    parts = [
        Part("hand", "arm", Joint("elbow", limits=Limits(-1.0, 2.0, 3.0, 4.0), damping=0.5, friction=0.6), BODY),
        Part("trunk", "ground", Joint("root", "free", armature=0.7), BODY),
        Part("arm", "trunk", Joint("ball", "spherical", damping=0.1, friction=0.2, armature=0.3), BODY),
        Part("rail", "trunk", Joint("slide", "prismatic", limits=Limits(0.0, 0.5), armature=0.9), BODY),
    ]
    return ls.Robot(assemble("whole", parts, base="ground"))
