"""The explicit dynamic model I*, P* through generalized augmented bodies.

H.-J. Kang, "Computationally Efficient KIC-Based Dynamic Modeling of Robot Manipulators", (23)-(29), with equations and
properties as corrected in docs/errata.md: T = I* phi'' + phi'^T P* phi'. The momenta of body k give the independent
elements, those of (i, j, k) with i, j <= k, and the properties (P2)-(P10) give the others. The parts I1, I2 and P1, P2,
P3 differ from those of the direct sums (9)-(10), and so does the split of P* over (j, k) and (k, j); I* and
phi'^T P* phi' are the same.

As in the paper all is described in the frame of the first joint, so that nothing depends on its coordinate. Serial
chains only. Bodies and pairs of joints are sweeps; triples of joints are plain loops over what the pairs left.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from ...description.model import BASE
from ...spatial.scalars import Scalar
from ...spatial.algebra import Motion, Vec
from ...mechanism.sweeps import LinkView, Pairs, PerLink, Sweep, Unrolled
from ...spatial.transforms import Pose
from .augmented_bodies import Body, augmented_bodies
from .influence import Axis, first_order, joint_axes, second_order
from ..whole_robot.kinematics import WORLD

Triples = dict[tuple[int, int, int], Scalar]


@dataclass(slots=True)
class Pair:
    """Joint j and body k: g_j at C_k; H_{j;k}, M_k H^c*_{j;k} and III^k H_{j;k}; the elements I1, I2 of (j, k)."""

    g: Motion
    H: Vec
    MHc: Vec
    IIIH: Vec
    I1: Scalar
    I2: Scalar


@dataclass(slots=True)
class Power:
    """P* by its independent elements P1, P2, P3, those of (i, j, k) with i, j <= k; i is the torque."""

    P1: Triples
    P2: Triples
    P3: Triples

    def __getitem__(self, place: tuple[int, int, int]) -> Scalar:
        """P*_{i,j;k}."""
        return self.p1(*place) + (self.p2(*place) + self.p3(*place))                             # step 7

    def of_product(self, i: int, j: int, k: int) -> Scalar:
        """What stands at phi'_j phi'_k in torque i, however P* is split."""
        return self[i, j, k] if j == k else self[i, j, k] + self[i, k, j]

    def christoffel(self, i: int, j: int, k: int) -> Scalar:
        """P* made symmetric in the rates: Christoffel's symbol of the first kind."""
        return self[i, j, k] if j == k else self.of_product(i, j, k) * 0.5

    def p1(self, i: int, j: int, k: int) -> Scalar:
        if j > k:
            return self.p1(i, k, j)                                                              # (P3)
        return self.P1[i, j, k] if i <= k else -self.P1[k, j, i]                                 # (P4)

    def p2(self, i: int, j: int, k: int) -> Scalar:
        if j >= k:
            return 0.0                                                                           # (P6)
        return self.P2[i, j, k] if i <= k else self.P3[j, k, i]                                  # (P10)

    def p3(self, i: int, j: int, k: int) -> Scalar:
        if i >= j:
            return 0.0 if i == j else -self.p3(j, i, k)                                          # (P8), (P7)
        return self.P3[i, j, k] if j <= k else self.P2[k, i, j]                                  # (P9)


@dataclass(slots=True)
class Result:
    """I[i, k] with armature and P[i, j, k], by links along the chain; the bodies and pairs that they come from."""

    I: dict[tuple[int, int], Scalar]  # noqa: E741  (the paper's symbol)
    P: Power
    bodies: PerLink[Body]
    pairs: Pairs


def explicit_model(sweep: Unrolled, base: Axis | None = None) -> Result:
    """`base`: the direction about which the base turns, a joint before the first with the number BASE in P."""
    at = first_joint_poses(sweep)                                                                # step 1
    bodies = augmented_bodies(sweep, at)                                                         # step 2
    pairs: dict[tuple[int, int], Pair] = joint_pairs(sweep, joint_axes(sweep, at), bodies)       # steps 3-5
    inertia: dict[tuple[int, int], Scalar] = {}
    for (k, i), found in pairs.items():
        armature = sweep.links[k].armature if i == k else 0.0
        inertia[i, k] = inertia[k, i] = found.I1 + found.I2 + armature                           # (P2)
    if base is not None:
        pairs = pairs | {(k, BASE): joint_pair(base, body) for k, body in enumerate(bodies)}
    power = independent_elements(pairs, bodies, 0 if base is None else BASE)                     # step 6
    return Result(inertia, power, bodies, pairs)


def first_joint_poses(sweep: Sweep) -> PerLink[Pose]:
    """The pose of every link in the frame of the first one."""

    def step(link: LinkView, parent: Pose | None) -> tuple[Pose, Pose]:
        pose = WORLD if parent is None else parent.through(link.X)
        return pose, pose

    return sweep.outward(step, None)


def joint_pairs(sweep: Sweep, axes: PerLink[Axis], bodies: PerLink[Body]) -> Pairs:
    """The Pair of every body k and joint j <= k, by (k, j)."""

    def start(link: LinkView, axis: Axis, body: Body) -> tuple[Pair, Body]:
        return joint_pair(axis, body), body

    def step(link: LinkView, outer: Body, axis: Axis, body: Body) -> tuple[Pair, Body]:
        return joint_pair(axis, outer), outer

    return sweep.pairs(start, step, axes, bodies)


def joint_pair(axis: Axis, body: Body) -> Pair:
    g = first_order(axis, body.C)
    H = second_order(g, body.g).angular
    MHc = axis.g.cross(body.P)
    I1, I2 = g.linear.dot(body.P), axis.g.dot(body.L)                                            # (23), (24)
    return Pair(g, H, MHc, body.III @ H, I1, I2)


def independent_elements(pairs: Pairs, bodies: Iterable[Body], first: int = 0) -> Power:
    """P1, P2, P3 for i and j from `first` to k."""
    P1: Triples = {}
    P2: Triples = {}
    P3: Triples = {}
    for k, body in enumerate(bodies):
        for j in range(first, k + 1):
            for i in range(first, k + 1):
                g = pairs[k, i].g
                P1[i, j, k] = 0.0 if i == k else g.linear.dot(pairs[k, j].MHc)                   # (25), (P5)
                P2[i, j, k] = 0.0 if j == k else g.angular.dot(pairs[k, j].IIIH)                 # (26), (P6)
                if i <= j:
                    P3[i, j, k] = 0.0 if i == j else pairs[j, i].H.dot(body.L)                   # (27), (P8)
                    P3[j, i, k] = -P3[i, j, k]                                                   # (P7)
    return Power(P1, P2, P3)
