"""The mass matrix as a covariance, through composite bodies of ten parameters.

G. Rodriguez, "Kalman filtering, smoothing and recursive robot arm forward and inverse dynamics", 1987, (28)-(33): r(i)
is the covariance of the forces that links outboard of joint i would make if their accelerations were white noise, and
the inertia of those links welded together.
"""

from __future__ import annotations

from dataclasses import dataclass

from ...spatial.algebra import ZERO_ARTICULATED, ZERO_INERTIA, ArticulatedInertia, Force, Inertia
from ...spatial.scalars import Rows, Scalar
from ...mechanism.sweeps import LinkView, Pairs, PerLink, Sweep

Composite = Inertia | ArticulatedInertia


@dataclass(slots=True)
class Result:
    """elements: m(k, i) for each link i and every k from i to the base; r: composite inertia of each link."""

    elements: Pairs
    r: PerLink[Composite]


def mass_matrix(sweep: Sweep, ten_parameters: bool = True, loads: PerLink[Inertia] | None = None) -> Result:
    """Elements of M, the block of joints (k, i) in entry [a][b] for degree of freedom a of k and b of i.

    ten_parameters: r as a composite rigid body, (33); otherwise as a covariance of 21 numbers, (28).
    loads: an Inertia that each link carries besides its own, in its frame; only with ten parameters.
    """

    def composite_step(link: LinkView, outer: Composite, *load: Inertia) -> tuple[Composite, Composite]:
        ten = isinstance(outer, Inertia)
        r = sum(load, outer + link.M) if ten else outer + link.M.articulated()                   # (33), (29)
        return r, link.phi(r)

    def start(link: LinkView, r: Composite) -> tuple[Rows, tuple[Force, ...]]:
        x = (r @ link.H_T).columns                                                               # (32) initialize
        block = inertia_elements(link, x)
        for freedom, row in enumerate(block):
            row[freedom] = row[freedom] + link.armature
        return block, propagate(link, x)

    def step(link: LinkView, x: tuple[Force, ...], r: Composite) -> tuple[Rows, tuple[Force, ...]]:
        return inertia_elements(link, x), propagate(link, x)

    zero = ZERO_INERTIA if ten_parameters else ZERO_ARTICULATED
    carried = () if loads is None else (loads,)
    r, _ = sweep.inward(composite_step, zero, *carried)                                          # (32) r(0) = 0
    return Result(sweep.pairs(start, step, r), r)


def propagate(link: LinkView, x: tuple[Force, ...]) -> tuple[Force, ...]:
    """x(k) = phi(k, k-1) x(k-1), (32)."""
    return tuple(link.phi(column) for column in x)


def inertia_elements(link: LinkView, x: tuple[Force, ...]) -> list[list[Scalar]]:
    """m(k, i) = H(k) x(k), (32)."""
    return [list(row) for row in zip(*(link.H(column) for column in x), strict=True)]


__all__ = ["Result", "mass_matrix"]
