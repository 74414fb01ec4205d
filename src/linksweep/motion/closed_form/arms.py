"""Three joints that bring a point to a place: e1 e2 e3 p = c.

The third joint's coordinate u is found first: x = e2 e3 p must be a point that joint 1 can bring to c. Two turning
joints ask for Pieper's quartic, which falls apart where their axes meet or are parallel, or the third axis is parallel
to the second.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from ..base import FloatArray
from .screws import EXACT, Screw, both, common_normal, cross, dot, norm, root
from .series import SLACK, Track


class Unsolvable(Exception):
    """Why a chain has no closed form here, as part of a sentence about three of its axes.

    off: how far (m or rad) they are from what is wanted of them; 0 where they are, and something else is missing.
    """

    def __init__(self, reason: str, off: float = 0.0) -> None:
        super().__init__(reason)
        self.off = off


FLAT = "meet in a point, but the other three joints cannot move it out of a surface"


class Place(NamedTuple):
    """What an arm comes to: coordinates of its three joints (3, N, K), and where one of them may be anything."""

    q: FloatArray
    free: np.ndarray


Arm = Callable[[FloatArray, FloatArray], Place]  # of places c (3, N, 1) and coordinates to prefer (3, N, 1)


def arm_of(screws: tuple[Screw, Screw, Screw], point: FloatArray, size: float) -> Arm:
    """A function that solves e1 e2 e3 p = c; Unsolvable where the three joints leave p on a surface or a curve."""
    kinds = "".join("R" if screw.turns else "P" for screw in screws[:2])
    track = Track(screws[2], point)
    return {"RR": _two_turns, "RP": _turn_and_slide, "PR": _slide_and_turn, "PP": _two_slides}[kinds](
        *screws, track, point, size
    )


def _two_turns(first: Screw, second: Screw, third: Screw, track: Track, point: FloatArray, size: float) -> Arm:
    """x is on the circle of c about axis 1 and on that of e3 p about axis 2.

    From the feet of the common normal a n between the axes: x w1 = h, x w2 = L(u), 2 a x n = N(u), |x|^2 = |c|^2.
    """
    r1, r2, n, a, cosine, sine = common_normal(first, second, size)
    L, square = track.along(second.w, r2), track.squared(r2)
    parallel, level, meet = sine == 0.0, L.is_constant(EXACT * size), abs(a) <= EXACT * size
    steady = square.is_constant(EXACT * size * size)  # as far from axis 2 whatever joint 3 does
    if (parallel and (level or meet)) or (steady and (level or meet)):
        raise Unsolvable(FLAT)

    def solve(c: FloatArray, near: FloatArray) -> Place:
        way = c - r1
        h, rho = dot(way, first.w), norm(cross(first.w, way))
        N = (square * -1.0) + (h * h + rho * rho + a * a)
        if parallel:
            u = (L - cosine * h).zeros()
            forward = N.at(u) / (2.0 * a)
            u, sideways = both(u), root((rho - forward) * (rho + forward), SLACK * size * size)
            x = r1 + h * first.w + both(forward) * n + cross(first.w, n) * both(0.0, sideways)
        else:
            if meet:
                u = N.zeros()
                g = _height(sine * rho, L.at(u) - cosine * h, sine, size)
                u, g = both(u), both(0.0, g)
            elif level:
                g = _height(sine * rho, L.at(0.0) - cosine * h, sine, size)
                u = np.concatenate([(N - 2.0 * a * g).zeros(), (N + 2.0 * a * g).zeros()], axis=-1)
                g = N.at(u) / (2.0 * a)
            else:
                off = L - cosine * h
                u = (N * N * sine**2 + off * off * (4.0 * a * a) - 4.0 * a * a * sine**2 * rho * rho).zeros()
                g = N.at(u) / (2.0 * a)
            l = L.at(u)  # noqa: E741
            x = r1 + ((h - cosine * l) * first.w + (l - cosine * h) * second.w) / sine**2 + g * n
        inner = third.moved(u, point)
        q2, free2 = second.angle(inner - r2, x - r2, near[1], size)
        # joint 1 last, by where the wrist now is: what a square root has lost is not lost twice
        q1, free1 = first.angle(second.moved(q2, inner) - r1, way, near[0], size)
        return Place(np.stack(np.broadcast_arrays(q1, q2, u)), free1 | free2)

    return solve


def _height(radius: FloatArray, off: FloatArray, sine: float, size: float) -> FloatArray:
    """How far x stands from the plane of the two axes."""
    return root((radius - off) * (radius + off), SLACK * size * size) / sine


def _turn_and_slide(first: Screw, second: Screw, third: Screw, track: Track, point: FloatArray, size: float) -> Arm:
    """x = e3 p + q2 w2 is as high above axis 1's foot, and as far from it, as c."""
    r1, w2, k = first.r, second.w, float(dot(first.w, second.w).item())
    height, level = track.along(first.w, r1), abs(k) <= EXACT
    if level and height.is_constant(EXACT * size):
        raise Unsolvable(FLAT)

    def solve(c: FloatArray, near: FloatArray) -> Place:
        way = c - r1
        h, square = dot(way, first.w), dot(way, way)
        if level:
            u = (height - h).zeros()
            start = third.moved(u, point) - r1
            middle = dot(start, w2)
            u, q2 = both(u), both(-middle, root(middle**2 - dot(start, start) + square, SLACK * size * size))
        else:
            slide = (height - h) * (-1.0 / k)
            x = [part - o + slide * w for part, o, w in zip(track.parts, r1, w2, strict=True)]
            u = (x[0] * x[0] + x[1] * x[1] + x[2] * x[2] - square).zeros()
            q2 = slide.at(u)
        x = third.moved(u, point) + q2 * w2 - r1
        q1, free = first.angle(x, way, near[0], size)
        return Place(np.stack(np.broadcast_arrays(q1, q2, u)), free | np.zeros_like(u, bool))

    return solve


def _slide_and_turn(first: Screw, second: Screw, third: Screw, track: Track, point: FloatArray, size: float) -> Arm:
    """x = c - q1 w1 is as high above axis 2's foot, and as far from it, as e3 p."""
    r2, w1, k = second.r, first.w, float(dot(first.w, second.w).item())
    height, square, level = track.along(second.w, r2), track.squared(r2), abs(k) <= EXACT
    if level and height.is_constant(EXACT * size):
        raise Unsolvable(FLAT)

    def solve(c: FloatArray, near: FloatArray) -> Place:
        way = c - r2
        h = dot(way, second.w)
        if level:
            u = (height - h).zeros()
            middle = dot(way, w1)
            rest = middle**2 - dot(way, way) + square.at(u)
            u, q1 = both(u), both(np.broadcast_to(middle, rest.shape), root(rest, SLACK * size * size))
        else:
            slide = (height - h) * (-1.0 / k)
            x = [slide * -w + o for o, w in zip(way, w1, strict=True)]
            u = (x[0] * x[0] + x[1] * x[1] + x[2] * x[2] - square).zeros()
            q1 = slide.at(u)
        q2, free = second.angle(third.moved(u, point) - r2, way - q1 * w1, near[1], size)
        return Place(np.stack(np.broadcast_arrays(q1, q2, u)), free)

    return solve


def _two_slides(first: Screw, second: Screw, third: Screw, track: Track, point: FloatArray, size: float) -> Arm:
    """c - e3 p lies in the plane of the two slides."""
    n = cross(first.w, second.w)
    across = track.along(n)
    if across.is_constant(EXACT * size):
        raise Unsolvable(FLAT)
    by_first, by_second = cross(second.w, n), cross(n, first.w)

    def solve(c: FloatArray, near: FloatArray) -> Place:
        u = (across - dot(c, n)).zeros()
        rest = c - third.moved(u, point)
        q1 = dot(rest, by_first) / dot(first.w, by_first)
        q2 = dot(rest, by_second) / dot(second.w, by_second)
        q = np.stack(np.broadcast_arrays(q1, q2, u))
        return Place(q, np.zeros(q.shape[1:], bool))

    return solve
