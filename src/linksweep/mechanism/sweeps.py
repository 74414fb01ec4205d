"""The only loops that an algorithm has.

An algorithm is written as steps, and a sweep carries each step over the tree:

    outward   base -> tips: step(link, parent_state, *own) -> (kept, to_children)
    inward    tips -> base: step(link, sum_from_children, *own) -> (kept, to_parent)
    pairs     for each link i: start(link_i, *own_i) -> (out_ii, carry for i's parent); then for every ancestor j of i,
              up to the base: step(link_j, carry, *own_j) -> (out_ij, carry for j's parent)

A step sees one link, its own values and what comes in. It never indexes another link and never branches on a value.
A record is any dataclass or tuple of scalars; what a sweep carries has the shape of its `base` (or `zero`) at every
link, unless the base is None, of which a step makes the first state. What it keeps comes back as one record per link,
and `kept.field` is that field of every link.

`Unrolled` runs the steps link by link over any scalar, constants folded where the scalar can. `tracing/rolled.py` runs
each step once per kind of joint and makes a loop of it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Any, Protocol

from ..description.model import BASE
from ..spatial.algebra import Force, Inertia, Mat, Sym, Transform, Vec, add_records
from ..spatial.scalars import Scalar, is_zero, sign
from ..spatial.transforms import Rotation, Shift
from ..spatial.tree_matrix import TreeMatrix
from .canonical import CanonicalLink, CanonicalModel
from .joints import Coordinates, Span

PerLink = Any  # one record for each link: a list when unrolled, a handle when rolled
Step = Callable[..., Any]


class LinkView:
    """One link as a step sees it, in its canonical frame."""

    __slots__ = ("H_T", "I_com", "M", "X", "_kept", "_link", "armature", "com", "damping", "friction", "joint")

    def __init__(self, link: CanonicalLink, kept: Sequence[Scalar]):
        self._link = link
        self.joint, self._kept = link.type, kept
        motion = self.joint.motion(kept, link.quarters, link.turn, link.slide, link.pitch)
        self.X = Transform((*link.factors, *motion))
        self.H_T = Span(self.joint.columns(kept, link.pitch))
        self.M = Inertia(link.mass, Vec(*link.mp), Sym(*link.I))
        self.com = Vec(*link.com)
        self.I_com = Sym(*link.I_com)
        self.armature = link.armature
        self.damping = link.damping
        self.friction = link.friction

    @property
    def foot(self) -> Vec:
        """Where the way from the parent's origin reaches the joint's axis, in the parent's frame."""
        *inner, last = self.X.factors
        return Transform((*inner, last.without_slide())).origin()

    @property
    def offset(self) -> Vec:
        """From there to the link's origin, along the axis, in the link's frame."""
        return self.X.factors[-1].slide()

    def phi_T(self, motion: Any) -> Any:
        """A^-1 phi^T(k+1, k): the parent's Motion or Compliance, at this link's origin and in its frame."""
        return self.X.to_link(motion)

    def phi(self, f: Any) -> Any:
        """phi(k+1, k) A: a Force or inertia of this link, at the parent's origin and in its frame."""
        return self.X.to_parent(f)

    def H_T_rate(self, qd: Coordinates) -> Span:
        """The derivative of H^T in time, seen in this link's frame."""
        return Span(self.joint.column_rates(self._kept, qd))

    def H(self, f: Force) -> Coordinates:
        """The force along the joint's freedoms."""
        return self.H_T.transpose_times(f)

    def dissipative_force(self, qd: Coordinates) -> Coordinates:
        """-phi_d, Angeles, Ma & Rojas (24), (40): what viscous damping and Coulomb friction take from the joint."""
        if is_zero(self.friction):
            return qd * self.damping
        return Coordinates(rate * self.damping + sign(rate) * self.friction for rate in qd)

    def from_described_frame(self, f: Force) -> Force:
        """A force given in the link frame of the description, in the canonical frame."""
        return self.described.to_parent(f)

    @property
    def described(self) -> Transform:
        """Where the link frame of the description stands in the canonical frame."""
        axes = Mat(*(Vec(*row) for row in self._link.axes))
        return Transform((Shift(Vec(*self._link.origin)), Rotation(axes)))


class Sweep(Protocol):
    def outward(self, step: Step, base: Any, *own: PerLink) -> PerLink: ...

    def inward(self, step: Step, zero: Any, *own: PerLink) -> tuple[PerLink, Any]: ...

    def pairs(self, start: Step, step: Step, *own: PerLink) -> Any: ...

    def same(self, value: Any) -> PerLink: ...

    def zeros(self) -> PerLink: ...

    def subtract(self, a: PerLink, b: PerLink) -> PerLink: ...

    def unzip(self, per_link: PerLink) -> tuple[PerLink, ...]: ...

    def solve(self, elements: Any, b: PerLink) -> PerLink: ...

    def marked(self, links: Collection[int]) -> PerLink: ...

    def at(self, per_link: PerLink, link: int) -> Any: ...


class Records(list[Any]):
    """One record for each link; an attribute of it is that field of every record."""

    def __getattr__(self, name: str) -> Records:
        return Records(getattr(record, name) for record in self)


class Unrolled:
    """The sweeps written out, link by link. `q` is a flat sequence of coordinates in document order."""

    def __init__(self, model: CanonicalModel, q: Sequence[Scalar]):
        self.model = model
        self.links = []
        for link in model.links:
            self.links.append(LinkView(link, link.type.kept(q[link.coordinates], link.angle)))

    def outward(self, step: Step, base: Any, *own: PerLink) -> PerLink:
        kept, states = Records(), []
        for i, link in enumerate(self.links):
            parent = self.model.links[i].parent
            keep, state = step(link, base if parent == BASE else states[parent], *(o[i] for o in own))
            kept.append(keep)
            states.append(state)
        return kept

    def inward(self, step: Step, zero: Any, *own: PerLink) -> tuple[PerLink, Any]:
        count = len(self.links)
        sums, kept = [zero] * (count + 1), Records([None] * count)  # the last sum is what reaches the base
        for i in reversed(range(count)):
            kept[i], up = step(self.links[i], sums[i], *(o[i] for o in own))
            parent = self.model.links[i].parent
            sums[parent] = up if sums[parent] is zero else add_records(sums[parent], up)
        return kept, sums[BASE]

    def pairs(self, start: Step, step: Step, *own: PerLink) -> dict[tuple[int, int], Any]:
        out: dict[tuple[int, int], Any] = {}
        for i, link in enumerate(self.links):
            out[i, i], carry = start(link, *(o[i] for o in own))
            j = self.model.links[i].parent
            while j != BASE:
                out[i, j], carry = step(self.links[j], carry, *(o[j] for o in own))
                j = self.model.links[j].parent
        return out

    def same(self, value: Any) -> PerLink:
        return Records([value] * len(self.links))

    def zeros(self) -> PerLink:
        """0 for every freedom of every joint."""
        return Records(Coordinates([0.0] * len(link.H_T.columns)) for link in self.links)

    def subtract(self, a: PerLink, b: PerLink) -> PerLink:
        """The difference of two records of Coordinates, link by link."""
        return Records(x - y for x, y in zip(a, b, strict=True))

    def unzip(self, per_link: PerLink) -> tuple[PerLink, ...]:
        """Records of tuples as a tuple of records."""
        return tuple(Records(entry) for entry in zip(*per_link, strict=True))

    def marked(self, links: Collection[int]) -> PerLink:
        """1 for these links, 0 for the others."""
        return Records(1.0 if i in links else 0.0 for i in range(len(self.links)))

    def at(self, per_link: PerLink, link: int) -> Any:
        """What was kept for one link, for use in a later sweep over all."""
        return per_link[link]

    def tree_matrix(self, elements: dict[tuple[int, int], Any]) -> TreeMatrix:
        """A matrix from its pairs, its rows the freedoms of the links one after the other."""
        first, parents = [], []
        for i, link in enumerate(self.links):
            above = self.model.links[i].parent
            first.append(len(parents))
            for freedom in range(len(link.H_T.columns)):
                last_above = -1 if above == BASE else first[above] + len(self.links[above].H_T.columns) - 1
                parents.append(first[i] + freedom - 1 if freedom else last_above)
        entries = {}
        for (i, j), block in elements.items():
            for a, row in enumerate(block):
                for b, value in enumerate(row):
                    if i != j or a <= b:
                        entries[first[i] + b, first[j] + a] = value
        return TreeMatrix(parents, entries)

    def split(self, flat: Sequence[Scalar]) -> PerLink:
        """Coordinates in document order, one record for each link."""
        return Records(Coordinates(flat[link.rates]) for link in self.model.links)

    def join(self, per_link: PerLink) -> list[Scalar]:
        """The reverse of `split`."""
        flat: list[Scalar] = [0.0] * sum(len(values) for values in per_link)
        for link, values in zip(self.model.links, per_link, strict=True):
            flat[link.start : link.start + len(values)] = list(values)
        return flat

    def solve(self, elements: dict[tuple[int, int], Any], b: PerLink) -> PerLink:
        """The solution x of M x = b, M given by its elements from `pairs`."""
        x = iter(self.tree_matrix(elements).solve([value for values in b for value in values]))
        return Records(Coordinates(next(x) for _ in values) for values in b)

    def join_pairs(self, elements: dict[tuple[int, int], Any], mirrored: bool = True) -> list[Scalar]:
        """The square matrix of these pairs, row by row: block (j, i) and, mirrored, its transpose at (i, j)."""
        n = self.model.nv
        flat: list[Scalar] = [0.0] * (n * n)
        for (i, j), block in elements.items():
            for a, row in enumerate(block):
                for b, value in enumerate(row):
                    p, r = self.model.links[j].start + a, self.model.links[i].start + b
                    flat[p * n + r] = value
                    if mirrored:
                        flat[r * n + p] = value
        return flat
