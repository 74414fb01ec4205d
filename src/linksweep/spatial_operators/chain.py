"""A tree of links in the base's directions, and the stacking of its vectors from the tips to the base.

The paper writes its operators without coordinates. Here every vector is along the axes of the base, at the origin O(k)
of its link: then phi(k+1, k) is [[1, l~], [0, 1]] as printed, with no rotation in it, and a change of link is a shift.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..algorithms.whole_robot.kinematics import WORLD, poses
from ..description.model import BASE
from ..mechanism.canonical import CanonicalModel
from ..mechanism.joints import Coordinates, Span
from ..mechanism.sweeps import LinkView, Records, Unrolled
from ..spatial.algebra import Force, Inertia, Inward, Motion, Sym, Vec, leaves
from ..spatial.scalars import Values
from ..spatial.transforms import Pose, Shift


class TurnedLink:
    """A link as a step sees it, in the base's directions and at its own origin: what LinkView is in its frame."""

    __slots__ = ("H_T", "M", "_shift", "armature", "l")

    def __init__(self, link: LinkView, at: Pose, inner_origin: Vec):
        self.l = at.p - inner_origin  # l(k+1, k)
        self._shift = Shift(self.l)
        self.H_T = Span([Motion(at.turn(h.angular), at.turn(h.linear)) for h in link.H_T.columns])  # (2.16), (2.31)
        axes = np.array([list(at.x), list(at.y), list(at.z)])
        i = (axes.T @ np.array([list(row) for row in link.M.I.rows()]) @ axes).tolist()
        inertia = Sym(i[0][0], i[1][1], i[2][2], i[0][1], i[0][2], i[1][2])
        self.M = Inertia(link.M.mass, at.turn(link.M.mp), inertia)  # (2.15)
        self.armature = link.armature

    def phi(self, f: Inward) -> Inward:
        """phi(k+1, k): a Force or inertia of this link, at the origin of link k+1."""
        return self._shift.to_parent(f)

    def phi_T(self, motion: Motion) -> Motion:
        """phi^T(k+1, k): a Motion of link k+1, at the origin of this link."""
        return self._shift.to_link(motion)

    def H(self, f: Force) -> Coordinates:
        return self.H_T.transpose_times(f)


class TurnedChain(Unrolled):
    """The sweeps of `Unrolled` over links in the base's directions; `poses` are those of the links' frames."""

    def __init__(self, model: CanonicalModel, q: Sequence[float]):
        super().__init__(model, q)
        self.poses = list(poses(self))
        # O(k+1) of the link that carries this one; O(N+1) is the origin of the base frame
        inner = [WORLD.p if link.parent == BASE else self.poses[link.parent].p for link in model.links]
        self.links: list[Any] = [TurnedLink(*of_link) for of_link in zip(self.links, self.poses, inner, strict=True)]
        sixes = (6,) * len(self.links)
        self.forces, self.motions = Stack(force, sixes), Stack(motion, sixes)
        self.joints = Stack(Coordinates, tuple(len(link.H_T.columns) for link in reversed(self.links)))


@dataclass(frozen=True, slots=True)
class Stack:
    """Vectors (the sum of widths,), or columns of them, as one record for each link.

    Blocks stand in the paper's order, k = 1 ... N, outer links before those that carry them; records in that of the
    code, i = 0 ... n-1 from base to tip: k = n - i.
    """

    record: Callable[[Values], Force | Motion | Coordinates]
    widths: tuple[int, ...]

    @property
    def size(self) -> int:
        return sum(self.widths)

    def split(self, x: np.ndarray) -> Records[Any]:
        """Scalars of the records are numbers, or for several columns arrays of one number for each."""
        x = np.asarray(x, dtype=np.result_type(x.dtype, np.float64))
        rows = x.tolist() if x.ndim == 1 else list(x)
        ends = list(itertools.accumulate(self.widths))
        blocks = zip(ends, self.widths, strict=True)
        return Records(self.record(rows[end - width : end]) for end, width in reversed(list(blocks)))


def join(records: Sequence[object], like: np.ndarray) -> np.ndarray:
    """Records of the links, base to tip, stacked from tip to base, with as many columns as `like`."""
    rows = leaves(list(reversed(records)))
    dtype = np.result_type(like.dtype, np.float64)
    if like.ndim == 1:
        return np.array(rows, dtype=dtype)
    out = np.empty((len(rows), like.shape[1]), dtype=dtype)
    for i, row in enumerate(rows):
        out[i] = row  # a block that is zero for every column is one number
    return out


def force(rows: Values) -> Force:
    return Force(Vec(*rows[:3]), Vec(*rows[3:]))


def motion(rows: Values) -> Motion:
    return Motion(Vec(*rows[:3]), Vec(*rows[3:]))
