"""Operation counts of a Program, by the papers' convention.

Sines and cosines are listed separately, negation is free, and operations on parameters are done offline and free. A
fused multiply-add is a multiplication and an addition. A loop's body counts once for every link that runs it, and so
does each addition to the parent's sum.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from ..support.display import html_table
from .expression import ONLINE
from .program import Add, Block, Body, Loop, PairLoop, Program

_MUL = ("mul", "fma", "fms", "fnma")
_ADD = ("add", "sub", "fma", "fms", "fnma")


@dataclass(frozen=True, slots=True)
class Counts:
    """Multiplications, additions or subtractions, divisions, square roots, and angles whose sine or cosine is taken."""

    mul: int = 0
    add: int = 0
    div: int = 0
    sqrt: int = 0
    trig: int = 0

    @property
    def total(self) -> int:
        """Multiplications, additions, divisions and square roots together."""
        return self.mul + self.add + self.div + self.sqrt

    def __add__(self, other: Counts) -> Counts:
        return Counts(
            self.mul + other.mul, self.add + other.add, self.div + other.div, self.sqrt + other.sqrt,
            self.trig + other.trig,
        )  # fmt: skip

    def _repr_html_(self) -> str:
        row = (self.mul, self.add, self.div, self.sqrt, self.trig)
        headings = ("multiplications", "additions", "divisions", "square roots", "angles")
        return html_table("operations for one sample", headings, [row])

    def times(self, count: int) -> Counts:
        return Counts(self.mul * count, self.add * count, self.div * count, self.sqrt * count, self.trig * count)


def count(program: Program) -> Counts:
    """Return the operations of one sample."""
    total, links = Counts(), Counter(program.kinds)
    for step in program.steps:
        if isinstance(step, Block):
            total = total + _count_body(step.body)
        elif isinstance(step, Loop):
            for kind, body in enumerate(step.bodies):
                total = total + _count_body(body).times(links[kind])
        else:
            pairs = _pairs_by_kind(program, step)
            for kind, (start, later) in enumerate(zip(step.starts, step.steps, strict=True)):
                total = total + _count_body(start).times(links[kind]) + _count_body(later).times(pairs[kind])
    return total


def _pairs_by_kind(program: Program, step: PairLoop) -> Counter[int]:
    """Return how often the pair loop visits ancestors of each kind: once for each of their descendants in it."""
    own = [int(kind in step.kinds) for kind in program.kinds]
    subtree = list(own)
    pairs: Counter[int] = Counter()
    for link in reversed(range(len(own))):
        pairs[program.kinds[link]] += subtree[link] - own[link]
        if program.parents[link] >= 0:
            subtree[program.parents[link]] += subtree[link]
    return pairs


def _count_body(body: Body) -> Counts:
    ops = Counter(node.op for node in body.nodes if node.level == ONLINE)
    angles = {node.args[0] for node in body.nodes if node.op in ("sin", "cos") and node.level == ONLINE}
    sums = sum(isinstance(effect, Add) for effect in body.effects)
    additions = sums + sum(ops[op] for op in _ADD)
    return Counts(sum(ops[op] for op in _MUL), additions, ops["div"], ops["sqrt"], len(angles))
