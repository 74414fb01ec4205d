"""The mass matrix of mimic joints, M_r = G^T M G: its factor, its inverse, and J M_r^-1 J^T.

M by composite bodies, (32) of G. Rodriguez 1987, on the tree in which each joint is free; q = G q_r + c with a constant
G, so that rates are G v_r and, by virtual work, M_r = G^T M G. The filters of the papers take one joint after the
other, and a rate that moves several links is not theirs: M_r = L^T D L with the zeros that G leaves of the tree's.
"""

from __future__ import annotations

from collections.abc import Sequence

from ...mechanism.joints import Coordinates
from ...mechanism.sweeps import LinkView, PerLink, Unrolled
from ...spatial.algebra import Inertia, Motion, leaves
from ...spatial.scalars import Scalar, where
from ...spatial.tree_matrix import TreeMatrix
from .composite_inertia import mass_matrix
from .inertia_ratio import half_trace


def coupled_matrix(sweep: Unrolled) -> TreeMatrix:
    return sweep.tree_matrix(mass_matrix(sweep).elements)                                        # (32), G^T M G


def coupled_inverse(sweep: Unrolled) -> list[list[Scalar]]:
    """M_r^-1, its rows the rates, link after link."""
    M, n = coupled_matrix(sweep), sweep.model.nv
    columns = [M.solve([1.0 if r == c else 0.0 for r in range(n)]) for c in range(n)]
    return [[columns[max(r, c)][min(r, c)] for c in range(n)] for r in range(n)]


def coupled_operational_space(sweep: Unrolled, columns: Sequence[PerLink[Sequence[Motion]]]) -> list[list[Scalar]]:
    """J M_r^-1 J^T of frames, J by the columns of each frame: Y = L^-T J^T, Y^T D^-1 Y."""
    M = coupled_matrix(sweep)
    rows = [row for one in columns for row in zip(*(leaves(c) for c in sweep.summed(one)), strict=True)]
    Y = [M.inward(row) for row in rows]
    pivots = M.pivots()
    scaled = [[value / d for value, d in zip(y, pivots, strict=True)] for y in Y]
    full: list[list[Scalar]] = [[0.0] * len(Y) for _ in Y]
    for a, y in enumerate(Y):
        for b in range(a + 1):
            full[a][b] = full[b][a] = sum((p * q for p, q in zip(y, scaled[b], strict=True)), 0.0)
    return full


def coupled_pivots(sweep: Unrolled) -> list[Scalar]:
    """D of M_r = L^T D L: the inertia that each rate meets while those after it are free."""
    return coupled_matrix(sweep).pivots()


def coupled_ratio(sweep: Unrolled) -> list[Scalar]:
    """D over what its joints have to move, added without cancellation, as in inertia_ratio.py."""
    found = mass_matrix(sweep)

    def step(link: LinkView, nothing: tuple[()], r: Inertia) -> tuple[Coordinates, tuple[()]]:
        turning, sliding = half_trace(r.I), r.mass
        sizes = (h.angular.dot(h.angular) * turning + h.linear.dot(h.linear) * sliding for h in link.H_T.columns)
        return Coordinates(size + link.armature for size in sizes), nothing

    sizes = sweep.summed(sweep.outward(step, (), found.r))
    pivots = sweep.tree_matrix(found.elements).pivots()
    return [d / where(s > 0.0, s, 1.0) for d, s in zip(pivots, sizes, strict=True)]


def coupled_closeness(sweep: Unrolled) -> Scalar:
    """The sum of 1 / ratio^2 over all rates."""
    inverse = [1.0 / ratio for ratio in coupled_ratio(sweep)]
    return sum((x * x for x in inverse), 0.0)


def coupled_colour(sweep: Unrolled, e: Sequence[Scalar]) -> list[Scalar]:
    """L^T e: vectors of covariance M_r from those of covariance D."""
    return coupled_matrix(sweep).outward(e)


def coupled_whiten(sweep: Unrolled, y: Sequence[Scalar]) -> list[Scalar]:
    """L^-T y, the inverse of `coupled_colour`."""
    return coupled_matrix(sweep).inward(y)


def coupled_solve(sweep: Unrolled, b: Sequence[Scalar]) -> list[Scalar]:
    return coupled_matrix(sweep).solve(b)


def coupled_inertia_times(sweep: Unrolled, x: Sequence[Scalar]) -> list[Scalar]:
    """D x."""
    return [d * value for d, value in zip(coupled_pivots(sweep), x, strict=True)]
