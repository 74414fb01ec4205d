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

# pyright: reportConstantRedefinition=false
# (capital letters are the papers' symbols, and no constants)

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, Concatenate, Protocol, Self, TypeVar

from ..model.model import BASE
from ..spatial.algebra import Force, Inertia, Inward, Mat, Motion, Outward, Sym, Transform, Vec, add_records
from ..spatial.scalars import Rows, Scalar, Values, is_zero, sign
from ..spatial.transforms import Rotation, Screw, Shift, taken_through
from ..spatial.tree_matrix import TreeMatrix
from .canonical import CanonicalLink, CanonicalModel
from .joints import Coordinates, Span


class Summand(Protocol):
    def __add__(self, b: Any, /) -> Self: ...


T = TypeVar("T")  # a record
K = TypeVar("K")  # what a step keeps
S = TypeVar("S")  # the state that a sweep carries
T_co = TypeVar("T_co", covariant=True)
Adds = TypeVar("Adds", bound=Summand)  # the entry of a joint force, or a column of a Jacobian
Pairs = Any  # what `pairs` found, of all pairs of links: only the tracer that made it looks inside
Start = Callable[..., tuple[K, S]]  # (link, *own)
Step = Callable[Concatenate["LinkView", S, ...], tuple[K, S]]  # (link, what comes in, *own)


class PerLink(Protocol[T_co]):
    """One record for each link: a list when unrolled, a handle when rolled; `per_link.field` is that of every link."""

    def __getitem__(self, place: int, /) -> T_co: ...
    def __iter__(self) -> Iterator[T_co]: ...
    def __getattr__(self, field: str, /) -> PerLink[Any]: ...


PerJoint = PerLink[Coordinates]  # qd, qdd, tau: for every link the values of its joint


class LinkView:
    """One link as a step sees it, in its canonical frame; or, `still`, in one that has not taken the joint's turn.

    untaken: that turn, for the next link to take; `inner` is the parent's.
    """

    __slots__ = (
        "H_T", "I_com", "M", "X", "_kept", "_link", "armature", "com", "damping", "friction", "joint",
        "torque_offset", "untaken",
    )  # fmt: skip

    def __init__(self, link: CanonicalLink, kept: Values, inner: Screw | None = None, still: bool = False):
        self._link = link
        self.joint, self._kept = link.type, kept
        self.untaken: Screw | None = None
        factors = (*link.factors, *self.joint.motion(kept, link.quarters, link.turn, link.slide, link.pitch))
        if inner is not None:
            factors = taken_through(inner, factors)
        if still:
            *before, turn = factors
            assert isinstance(turn, Screw)
            self.untaken, factors = turn.without_slide(), (*before, Shift(turn.slide()))
        self.X = Transform(factors)
        columns = self.joint.columns(kept, link.pitch)
        self.H_T = Span(columns if link.leads else [column * link.ratio for column in columns])
        self.M = Inertia(link.mass, Vec(*link.mp), Sym(*link.I))
        self.com = Vec(*link.com)
        self.I_com = Sym(*link.I_com)
        if self.untaken is not None:
            self.M, self.com = self.M.turned(self.untaken), self.untaken.turn(self.com)
            self.I_com = self.untaken.turn_sym(self.I_com)
        self.armature = link.armature
        self.damping = link.damping
        self.friction = link.friction
        self.torque_offset = link.torque_offset

    @property
    def foot(self) -> Vec:
        """The foot of the common normal on the joint axis, in the frame of the parent."""
        *inner, last = self.X.factors
        return Transform((*inner, last.without_slide())).origin()

    @property
    def offset(self) -> Vec:
        """The vector from `foot` to the origin of the link, along the axis, in the frame of the link."""
        return self.X.factors[-1].slide()

    def phi_T(self, motion: Outward) -> Outward:
        """A^-1 phi^T(k+1, k): the parent's Motion or Compliance, at this link's origin and in its frame."""
        return self.X.to_link(motion)

    def phi(self, f: Inward) -> Inward:
        """phi(k+1, k) A: a Force or inertia of this link, at the parent's origin and in its frame."""
        return self.X.to_parent(f)

    def H_T_rate(self, qd: Coordinates) -> Span[Motion]:
        """The derivative of H^T in time, seen in this link's frame."""
        return Span(self.joint.column_rates(self._kept, qd))

    def H(self, f: Force) -> Coordinates:
        """The force along the joint's degrees of freedom."""
        return self.H_T.transpose_times(f)

    def dissipative_force(self, qd: Coordinates) -> Coordinates:
        """-phi_d, Angeles, Ma & Rojas (24), (40): what viscous damping and Coulomb friction take from the joint, and
        its constant torque offset.
        """
        lost = qd * self.damping
        if not is_zero(self.friction):
            lost = Coordinates(rate * self.damping + sign(rate) * self.friction for rate in qd)
        if is_zero(self.torque_offset):
            return lost
        return Coordinates(force + self.torque_offset for force in lost)

    def from_described_frame(self, f: Force) -> Force:
        """Return a force in the link frame of the robot model as one in the canonical frame."""
        return self.described.to_parent(f)

    @property
    def described(self) -> Transform:
        """The pose of the link frame of the robot model in the canonical frame."""
        axes = Mat(*(Vec(*row) for row in self._link.axes))
        turns = () if self.untaken is None else (self.untaken,)
        return Transform((*turns, Shift(Vec(*self._link.origin)), Rotation(axes)))


class Sweep(Protocol):
    """The interface that carries an algorithm's steps over the tree, see the module docstring."""

    def outward(self, step: Step[S, K], base: S, *own: PerLink[object]) -> PerLink[K]: ...

    def inward(self, step: Step[S, K], zero: S, *own: PerLink[object]) -> tuple[PerLink[K], S]: ...

    def pairs(self, start: Start[K, S], step: Step[S, K], *own: PerLink[object]) -> Pairs: ...

    def same(self, value: T) -> PerLink[T]:
        """The same record for every link."""
        ...

    def zeros(self) -> PerLink[Coordinates]:
        """0 for every degree of freedom."""
        ...

    def subtract(self, a: PerLink[Coordinates], b: PerLink[Coordinates]) -> PerLink[Coordinates]:
        """The difference, link by link."""
        ...

    def unzip(self, per_link: PerLink[tuple[object, ...]]) -> tuple[PerLink[Any], ...]:
        """Records of tuples as a tuple of records."""
        ...

    def solve(self, elements: Pairs, b: PerLink[Coordinates]) -> PerLink[Coordinates]:
        """The solution x of M x = b, M given by its elements from `pairs`."""
        ...

    def marked(self, links: Collection[int]) -> PerLink[Scalar]:
        """1 for these links, 0 for the others."""
        ...

    def at(self, per_link: PerLink[T], link: int) -> T:
        """Return the record of one link, for use in a later sweep over all links."""
        ...

    def held(self, values: Values) -> list[Scalar]:
        """Return values computed between sweeps, for use in later sweeps."""
        ...


class Records(list[T]):
    """One record for each link; an attribute of it is that field of every record."""

    def __getattr__(self, name: str) -> Records[Any]:
        return Records(getattr(record, name) for record in self)


class SquareSum:
    """A square matrix, row by row, to whose entries values are added."""

    def __init__(self, size: int):
        self.size = size
        self.flat: list[Scalar] = [0.0] * (size * size)
        self._known: set[int] = set()

    def add(self, row: int, column: int, value: Scalar) -> None:
        place = row * self.size + column
        self.flat[place] = self.flat[place] + value if place in self._known else value
        self._known.add(place)


class Unrolled:
    """Unrolled sweeps, link by link. `q` is a flat sequence of coordinates in document order.

    A mimic joint shares the velocities of its leader. Each link has its own record; in a flat vector, coupled joints
    have the same velocities and their forces add up (virtual work).
    """

    differentiated = False  # whether what is computed will be differentiated

    def __init__(self, model: CanonicalModel, q: Values):
        self.model = model
        self.links: list[LinkView] = []
        for i, link in enumerate(model.links):
            own = q[link.coordinates]
            if not link.leads:
                own = [own[0] * link.ratio + link.shift]
            inner = None if link.parent == BASE else self.links[link.parent].untaken
            self.links.append(LinkView(link, link.type.kept(own, link.angle), inner, i in model.still))
        leading = [i for i, link in enumerate(model.links) if link.leads]
        self.rates = {model.links[i].start: i for i in leading}  # the link whose joint has the rates from there on

    def outward(self, step: Step[S, K], base: S, *own: PerLink[object]) -> Records[K]:
        kept, states = Records[K](), list[S]()
        for i, link in enumerate(self.links):
            parent = self.model.links[i].parent
            keep, state = step(link, base if parent == BASE else states[parent], *(o[i] for o in own))
            kept.append(keep)
            states.append(state)
        return kept

    def inward(self, step: Step[S, K], zero: S, *own: PerLink[object]) -> tuple[Records[K], S]:
        count = len(self.links)
        sums, kept = [zero] * (count + 1), Records[K]()  # the last sum is what reaches the base
        for i in reversed(range(count)):
            keep, up = step(self.links[i], sums[i], *(o[i] for o in own))
            kept.append(keep)
            parent = self.model.links[i].parent
            sums[parent] = up if sums[parent] is zero else add_records(sums[parent], up)
        kept.reverse()
        return kept, sums[BASE]

    def pairs(self, start: Start[K, S], step: Step[S, K], *own: PerLink[object]) -> dict[tuple[int, int], K]:
        out: dict[tuple[int, int], K] = {}
        for i, link in enumerate(self.links):
            out[i, i], carry = start(link, *(o[i] for o in own))
            j = self.model.links[i].parent
            while j != BASE:
                out[i, j], carry = step(self.links[j], carry, *(o[j] for o in own))
                j = self.model.links[j].parent
        return out

    def same(self, value: T) -> Records[T]:
        return Records([value] * len(self.links))

    def zeros(self) -> Records[Coordinates]:
        return Records(Coordinates([0.0] * len(link.H_T.columns)) for link in self.links)

    def subtract(self, a: PerLink[Coordinates], b: PerLink[Coordinates]) -> Records[Coordinates]:
        return Records(x - y for x, y in zip(a, b, strict=True))

    def unzip(self, per_link: PerLink[tuple[object, ...]]) -> tuple[Records[Any], ...]:
        return tuple(Records(entry) for entry in zip(*per_link, strict=True))

    def marked(self, links: Collection[int]) -> Records[Scalar]:
        return Records(1.0 if i in links else 0.0 for i in range(len(self.links)))

    def at(self, per_link: PerLink[T], link: int) -> T:
        return per_link[link]

    def held(self, values: Values) -> list[Scalar]:
        return list(values)

    def leaders(self) -> list[int]:
        """Return, for each link, the link with its coordinates: itself, or the leader of a mimic joint."""
        return [self.rates[link.start] for link in self.model.links]

    def places(self) -> list[int]:
        """Return the index in document order of each velocity, link after link."""
        return [link.start + f for link in self.model.links if link.leads for f in range(link.nv)]

    def summed(self, per_link: PerLink[Iterable[Adds]]) -> list[Adds]:
        """Return the forces or columns of every velocity, link after link."""
        if not self.model.is_coupled:
            return [value for values in per_link for value in values]
        totals: dict[int, list[Adds]] = {}
        for leader, values in zip(self.leaders(), per_link, strict=True):
            known = totals.get(leader)
            totals[leader] = list(values) if known is None else [a + b for a, b in zip(known, values, strict=True)]
        return [value for leader in sorted(totals) for value in totals[leader]]

    def shared(self, flat: Values) -> Records[Coordinates]:
        """Return velocities, which are ordered link after link, as one record per link."""
        rates = iter(flat)
        own = {i: Coordinates(next(rates) for _ in link.H_T.columns) for i, link in enumerate(self.links)
               if self.model.links[i].leads}  # fmt: skip
        return Records(own[leader] for leader in self.leaders())

    def tree_matrix(self, elements: Mapping[tuple[int, int], Rows]) -> TreeMatrix:
        """Return the matrix of these pairs, with a row per velocity, link after link."""
        if self.model.is_coupled:
            return self._coupled_matrix(elements)
        first, parents = list[int](), list[int]()
        for i, link in enumerate(self.links):
            above = self.model.links[i].parent
            first.append(len(parents))
            for freedom in range(len(link.H_T.columns)):
                last_above = -1 if above == BASE else first[above] + len(self.links[above].H_T.columns) - 1
                parents.append(first[i] + freedom - 1 if freedom else last_above)
        entries: dict[tuple[int, int], Scalar] = {}
        for (i, j), block in elements.items():
            for a, row in enumerate(block):
                for b, value in enumerate(row):
                    if i != j or a <= b:
                        entries[first[i] + b, first[j] + a] = value
        return TreeMatrix(parents, entries)

    def _coupled_matrix(self, elements: Mapping[tuple[int, int], Rows]) -> TreeMatrix:
        """G^T M G: coupled joints are one row, which may tie branches that M does not; their tree is that of its
        factor (`elimination_tree`)."""
        leaders, places = self.leaders(), {place: row for row, place in enumerate(self.places())}
        entries: dict[tuple[int, int], Scalar] = {}
        for (i, j), block in elements.items():
            rows, columns = (places[self.model.links[leaders[k]].start] for k in (i, j))
            for a, row in enumerate(block):
                for b, value in enumerate(row):
                    if i != j or a <= b:
                        p, r = rows + b, columns + a
                        added = value + value if i != j and p == r else value
                        key = (max(p, r), min(p, r))
                        entries[key] = entries[key] + added if key in entries else added
        return TreeMatrix.of_entries(len(places), entries)

    def split(self, flat: Values) -> Records[Coordinates]:
        """Return velocities, which are in document order, as one record per link."""
        return Records(Coordinates(flat[link.rates]) for link in self.model.links)

    def split_forces(self, flat: Values) -> Records[Coordinates]:
        """Return forces, which are in document order, as one record per link; mimic joints have none."""
        given = zip(self.split(flat), self.model.links, strict=True)
        return Records(values if link.leads else Coordinates([0.0] * len(values)) for values, link in given)

    def join(self, per_link: PerLink[Iterable[Adds]]) -> list[Adds]:
        """Return the forces or columns of every velocity, in document order."""
        return self._in_order(self.summed(per_link))

    def join_rates(self, per_link: PerLink[Values]) -> list[Scalar]:
        """The reverse of `split`."""
        led = zip(per_link, self.model.links, strict=True)
        return self._in_order([value for values, link in led if link.leads for value in values])

    def _in_order(self, values: Sequence[T]) -> list[T]:
        flat = list(values)
        for place, value in zip(self.places(), values, strict=True):
            flat[place] = value
        return flat

    def solve(self, elements: Mapping[tuple[int, int], Rows], b: PerLink[Coordinates]) -> Records[Coordinates]:
        return self.shared(self.tree_matrix(elements).solve(self.summed(b)))

    def join_pairs(self, elements: Mapping[tuple[int, int], Rows], mirrored: bool = True) -> list[Scalar]:
        """The square matrix of these pairs, row by row: block (j, i) and, mirrored, its transpose at (i, j)."""
        found = SquareSum(self.model.nv)
        for (i, j), block in elements.items():
            for a, row in enumerate(block):
                for b, value in enumerate(row):
                    if mirrored and i == j and a < b:
                        continue  # the mirror of a block's lower half
                    p, r = self.model.links[j].start + a, self.model.links[i].start + b
                    found.add(p, r, value)
                    if mirrored and (i != j or a != b):
                        found.add(r, p, value)
        return found.flat
