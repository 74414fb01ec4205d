"""The explicit dynamic model I*, P* through generalized augmented bodies.

H.-J. Kang, "Computationally Efficient KIC-Based Dynamic Modeling of Robot Manipulators", (23)-(29), with equations and
properties as corrected in docs/errata.md: T = I* phi'' + phi'^T P* phi'. The momenta of body k give the independent
elements, those of (i, j, k) with i, j <= k, and the properties (P2)-(P10) give the others. The parts I1, I2 and P1, P2,
P3 differ from those of the direct sums (9)-(10), and so does the split of P* over (j, k) and (k, j); I* and
phi'^T P* phi' are the same.

As in the paper all is described in the frame of the first joint, so that nothing depends on its coordinate. The paper
has chains. In a tree i, j <= k are joints between the base and k, which carry it; an element of joints that are not on
one way to the base is 0, and each tree of the base has its own first joint. Bodies and pairs of joints are sweeps;
triples of joints are plain loops over what the pairs left.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from ...model.model import BASE
from ...spatial.scalars import Scalar
from ...spatial.algebra import Motion, Vec
from ...mechanism.sweeps import LinkView, Pairs, PerLink, Sweep, Unrolled
from .augmented_bodies import Body, augmented_bodies
from .influence import Axis, first_joint_poses, first_order, joint_axes, second_order


class Triples(dict[tuple[int, int, int], Scalar]):
    """Elements by three joints; missing elements are 0."""

    def __missing__(self, place: tuple[int, int, int]) -> Scalar:
        return 0.0


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

    def element(self, i: int, j: int, k: int) -> Scalar:
        """P*_{i,j;k}, as `p1`, `p2` and `p3` give its terms."""
        return self[i, j, k]

    def of_product(self, i: int, j: int, k: int) -> Scalar:
        """Return the coefficient of phi'_j phi'_k in torque i, which does not depend on how P* is split."""
        return self[i, j, k] if j == k else self[i, j, k] + self[i, k, j]

    def christoffel(self, i: int, j: int, k: int) -> Scalar:
        """Return P* made symmetric in the velocities, the Christoffel symbol of the first kind."""
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


def explicit_model(sweep: Unrolled, base: PerLink[Axis] | None = None) -> Result:
    """`base`: the direction about which the base turns, in the frame of each link's first joint: one more joint before
    that, with the number BASE in P."""
    at = first_joint_poses(sweep)                                                                # step 1
    bodies = augmented_bodies(sweep, at)                                                         # step 2
    pairs: dict[tuple[int, int], Pair] = joint_pairs(sweep, joint_axes(sweep, at), bodies)       # steps 3-5
    joints = range(len(sweep.links))
    inertia: dict[tuple[int, int], Scalar] = dict.fromkeys(itertools.product(joints, joints), 0.0)
    for (k, i), found in pairs.items():
        armature = sweep.links[k].armature if i == k else 0.0
        inertia[i, k] = inertia[k, i] = found.I1 + found.I2 + armature                           # (P2)
    ways = [sweep.model.path(k)[::-1] for k in joints]
    if base is not None:
        pairs = pairs | {(k, BASE): joint_pair(base[k], body) for k, body in enumerate(bodies)}
        ways = [[BASE, *way] for way in ways]
    return Result(inertia, independent_elements(pairs, bodies, ways), bodies, pairs)             # step 6


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


def independent_elements(pairs: Pairs, bodies: Iterable[Body], ways: Sequence[Sequence[int]]) -> Power:
    """P1, P2, P3 for i and j on the way from the base to each body k."""
    P1, P2, P3 = Triples(), Triples(), Triples()
    for k, (body, way) in enumerate(zip(bodies, ways, strict=True)):
        for j in way:
            for i in way:
                g = pairs[k, i].g
                P1[i, j, k] = 0.0 if i == k else g.linear.dot(pairs[k, j].MHc)                   # (25), (P5)
                P2[i, j, k] = 0.0 if j == k else g.angular.dot(pairs[k, j].IIIH)                 # (26), (P6)
                if i <= j:
                    P3[i, j, k] = 0.0 if i == j else pairs[j, i].H.dot(body.L)                   # (27), (P8)
                    P3[j, i, k] = -P3[i, j, k]                                                   # (P7)
    return Power(P1, P2, P3)
