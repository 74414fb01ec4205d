"""The explicit dynamic model I*, P* as the direct sum over the links.

H.-J. Kang, "Computationally Efficient KIC-Based Dynamic Modeling of Robot Manipulators", (9) and (10), the method of
M. Thomas and D. Tesar 1982: of every link the first- and second-order influence coefficients of its center of mass,
O(n^4). The check of explicit_model.py. All is in the base's directions. Links are a plain loop: each has a sweep of its
own.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass

from ...spatial.scalars import Scalar
from ...mechanism.sweeps import Unrolled
from .augmented_bodies import turned
from .explicit_model import Power, Triples
from .influence import influence, joint_axes
from ..rigid_body.kinematics import poses


class DirectPower(Power):
    """P* by all elements of its three terms; missing elements are 0."""

    def p1(self, i: int, j: int, k: int) -> Scalar:
        return self.P1[i, j, k]

    def p2(self, i: int, j: int, k: int) -> Scalar:
        return self.P2[i, j, k]

    def p3(self, i: int, j: int, k: int) -> Scalar:
        return self.P3[i, j, k]


@dataclass(slots=True)
class Result:
    """I[i, k] with armature and P[i, j, k], by links."""

    I: dict[tuple[int, int], Scalar]  # noqa: E741  (the paper's symbol)
    P: DirectPower


def explicit_model_direct(sweep: Unrolled) -> Result:
    joints = range(len(sweep.links))
    I: dict[tuple[int, int], Scalar] = {place: 0.0 for place in itertools.product(joints, joints)}  # noqa: E741
    P = DirectPower(Triples(), Triples(), Triples())
    at = poses(sweep)
    every = joint_axes(sweep, at)
    for end, link in enumerate(sweep.links):
        path = sweep.model.path(end)
        m, II, c = link.M.mass, turned(link.I_com, at[end]), at[end].point(link.com)
        kic = influence(sweep, every, sweep.marked(path), c)
        g = kic.G.angular
        gc = kic.G.linear
        II_g = [II @ v for v in g]
        for i, k in itertools.product(path, path):
            I[i, k] = I[i, k] + (gc[i].dot(gc[k] * m) + g[i].dot(II_g[k]))                       # (9)
        for j, k in itertools.product(path, path):
            H = kic.second(j, k)
            Hc = H.linear * m
            for i in path:
                place = i, j, k
                P.P1[place] = P.P1[place] + gc[i].dot(Hc)                                        # (10) first term
                P.P2[place] = P.P2[place] + II_g[i].dot(H.angular)                               # (10) second term
                P.P3[place] = P.P3[place] + g[i].cross(g[j]).dot(II_g[k])                        # (10) third term
    for i, link in enumerate(sweep.links):
        I[i, i] = I[i, i] + link.armature
    return Result(I, P)
