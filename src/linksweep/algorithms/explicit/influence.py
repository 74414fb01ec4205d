"""Kinematic influence coefficients of the first and second order.

H.-J. Kang, "Computationally Efficient KIC-Based Dynamic Modeling of Robot Manipulators", Appendix 1, after M. Thomas
and D. Tesar 1982. With phi the joint coordinates, a point P of a link has the velocity u' = G phi' and the acceleration
u'' = G phi'' + phi'^T H phi': the column g_k of G is what joint k does to P, and H_{j;k} = dg_k/dphi_j (the columns of
the tables as settled in docs/errata.md).

One axis serves every kind of joint: a revolute one has the direction S^k in g and 0 in s, a prismatic one 0 in g and
S^k in s. Then the rows of the tables are two lines: g_k = [g; g x (P - O) + s], and H_{j;k} = g_j x g_k with j the
inner joint, of which the rotational half is there only for j < k.
"""

from __future__ import annotations

from dataclasses import dataclass

from ...spatial.algebra import ZERO_MOTION, ZERO_VEC, Motion, Vec
from ...mechanism.sweeps import LinkView, Pairs, PerLink, Sweep
from ...spatial.scalars import Scalar
from ...spatial.transforms import WORLD, Pose


@dataclass(slots=True)
class Axis:
    """One joint in a common frame: the direction g it turns about, the direction s it slides along, its origin O."""

    g: Vec
    s: Vec
    O: Vec  # noqa: E741  (the paper's symbol)


@dataclass(slots=True)
class Result:
    """G: the column g_k of each link's joint; H: by pairs (k, j) of a joint and one of its ancestors, or itself.

    The linear half of H[k, j] is both H_{j;k} and H_{k;j}; the angular half is H_{j;k}, and that of H_{k;j} is 0.
    """

    G: PerLink[Motion]
    H: Pairs

    def second(self, j: int, k: int) -> Motion:
        """H_{j;k} = dg_k/dphi_j; 0 where neither joint carries the other."""
        found = self.H.get((max(j, k), min(j, k)), ZERO_MOTION)
        return found if j < k else Motion(ZERO_VEC, found.linear)


def first_joint_poses(sweep: Sweep) -> PerLink[Pose]:
    """The pose of every link in the frame of the first one."""

    def step(link: LinkView, parent: Pose | None) -> tuple[Pose, Pose]:
        pose = WORLD if parent is None else parent.through(link.X)
        return pose, pose

    return sweep.outward(step, None)


def joint_axes(sweep: Sweep, at: PerLink[Pose]) -> PerLink[Axis]:
    """The Axis of every joint, in the frame in which `at` gives the poses of the links."""

    def step(link: LinkView, nothing: tuple[()], at: Pose) -> tuple[Axis, tuple[()]]:
        h = link.H_T.columns[0]
        return Axis(at.turn(h.angular), at.turn(h.linear), at.p), nothing

    return sweep.outward(step, (), at)


def first_order(axis: Axis, point: Vec) -> Motion:
    """g_k at a point that the joint moves: [angular; linear] for a unit rate."""
    return Motion(axis.g, axis.g.cross(point - axis.O) + axis.s)                                 # Appendix 1, 1st order


def second_order(inner: Motion, outer: Motion) -> Motion:
    """H_{j;k} = dg_k/dphi_j of the inner joint j and the outer joint k > j: what turns with j, turns about j."""
    angular = inner.angular.cross(outer.angular)                                                 # Appendix 1, rotation
    return Motion(angular, inner.angular.cross(outer.linear))                                    # Appendix 1, translat.


def influence(sweep: Sweep, axes: PerLink[Axis], on_path: PerLink[Scalar], point: Vec) -> Result:
    """Both orders at `point`; on_path: 1 for the links that carry the point, 0 for the others (k > n of the tables)."""

    def first_step(link: LinkView, nothing: tuple[()], axis: Axis, on_path: Scalar) -> tuple[Motion, tuple[()]]:
        return first_order(axis, point) * on_path, nothing                                       # (2)

    def start(link: LinkView, g: Motion) -> tuple[Motion, Motion]:
        return Motion(ZERO_VEC, g.angular.cross(g.linear)), g                                    # Appendix 1, j = k

    def step(link: LinkView, outer: Motion, g: Motion) -> tuple[Motion, Motion]:
        return second_order(g, outer), outer                                                     # (4)

    G = sweep.outward(first_step, (), axes, on_path)
    return Result(G, sweep.pairs(start, step, G))
