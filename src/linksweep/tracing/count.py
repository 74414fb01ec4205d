"""Operation counts of a Program, by the papers' convention.

Sines and cosines are listed apart, negation is free, and work among parameters is done off-line and free. A fused
multiply-add is a multiplication and an addition. A loop's body counts once for every link that runs it, and so does
each addition to the parent's sum.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from ..support.notebook import html_table
from .expression import ONLINE
from .program import Add, Block, Body, Loop, Program

_MUL = ("mul", "fma", "fms", "fnma")
_ADD = ("add", "sub", "fma", "fms", "fnma")


@dataclass(frozen=True, slots=True)
class Counts:
    """Multiplications, additions (or subtractions), divisions, square roots, and angles of which a sine is taken."""

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
    """What one sample costs."""
    total = Counts()
    runs = Counter(program.kinds)
    for step in program.steps:
        if isinstance(step, Block):
            total = total + _count_body(step.body)
        elif isinstance(step, Loop):
            for kind, body in enumerate(step.bodies):
                total = total + _count_body(body).times(runs[kind])
        else:
            links = [i for i, kind in enumerate(program.kinds) if kind in step.kinds]
            above = Counter(program.kinds[j] for i in links for j in _ancestors(program, i))
            for kind, (start, later) in enumerate(zip(step.starts, step.steps, strict=True)):
                total = total + _count_body(start).times(runs[kind]) + _count_body(later).times(above[kind])
    return total


def _count_body(body: Body) -> Counts:
    ops = Counter(node.op for node in body.nodes if node.level == ONLINE)
    angles = {node.args[0] for node in body.nodes if node.op in ("sin", "cos") and node.level == ONLINE}
    sums = sum(isinstance(effect, Add) for effect in body.effects)
    additions = sums + sum(ops[op] for op in _ADD)
    return Counts(sum(ops[op] for op in _MUL), additions, ops["div"], ops["sqrt"], len(angles))


def _ancestors(program: Program, link: int) -> list[int]:
    found: list[int] = []
    while (link := program.parents[link]) >= 0:
        found.append(link)
    return found
