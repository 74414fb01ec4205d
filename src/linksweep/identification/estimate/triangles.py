"""A log of any length as one small triangle for each joint: R with R^T R = [X tau]^T [X tau], by QR chunk by chunk.

Rows of the log are summed over `every` of them on both sides of tau = Y x alike, which keeps the equation exact
whatever the friction does within a sum, and divided by the root of their number, which keeps the noise of a row: white
noise stays white. (Gautier's parallel filtering and decimation, with the plainest of filters.) Everything that a fit
needs, for any weights of the joints, is in the triangles: least squares, residuals, and fits that leave a part out.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from scipy.linalg import get_lapack_funcs

from linksweep.identification.log.signals import Samples
from linksweep.identification.model.grouping import Grouping

CHUNK = 1024  # rows of the log at a time: their regressor stays in the cache
BUFFER = 4096  # sums, beside the triangle, that are decomposed at once
MOST_BLOCKS, SHORTEST_BLOCK = 24, 0.4  # seconds: what a model leaves over has forgotten itself by then, or nearly


@dataclass(frozen=True)
class Rows:
    """A chunk of sums: X[j] (base seen by joint j, sums), tau[j] (sums,), first row of each sum, and the part."""

    X: list[np.ndarray]
    tau: list[np.ndarray]
    first: list[np.ndarray]
    part: int


@dataclass(frozen=True)
class Triangles:
    """R[part][joint] (seen + 1, seen + 1), upper, and count[part, joint] of the sums in it; `seen` as in Grouping."""

    grouping: Grouping
    R: tuple[tuple[np.ndarray, ...], ...]
    count: np.ndarray
    every: int

    @property
    def parts(self) -> int:
        return len(self.R)

    def joined(self, parts: list[int]) -> Triangles:
        """The triangles of some parts taken together."""
        joints = range(self.grouping.columns.nv)
        R = tuple(_triangle(np.concatenate([self.R[part][j] for part in parts])) for j in joints)
        return Triangles(self.grouping, (R,), self.count[parts].sum(axis=0, keepdims=True), self.every)

    def gram(self, part: int, joint: int) -> np.ndarray:
        """[X tau]^T [X tau] of a part and joint, with rows and columns for all pivots, extra unknowns, and tau last."""
        seen, R = self.grouping.seen[joint], self.R[part][joint]
        at = np.concatenate([np.flatnonzero(seen), np.arange(len(seen), len(seen) + R.shape[1] - int(seen.sum()))])
        found = np.zeros((at[-1] + 1, at[-1] + 1))
        found[np.ix_(at, at)] = R.T @ R
        return found

    def squares(self, part: int, x: np.ndarray) -> np.ndarray:
        """Sums of squared residuals (nv,) of the pivots' numbers x in one part."""
        found = []
        for R, seen in zip(self.R[part], self.grouping.seen, strict=True):
            rest = R[:, -1] - R[:, :-1] @ x[seen]
            found.append(float(rest @ rest))
        return np.array(found)


def parts_of(samples: Samples, fewest: int = 5) -> list[list[tuple[int, int]]]:
    """Pieces of the log that are left out in turn: its trajectories, or `fewest` pieces of equal length of only one."""
    count = max(samples.trajectory) + 1
    if count > 1:
        pieces = zip(samples.bounds, samples.trajectory, strict=True)
        listed = list(pieces)
        return [[bounds for bounds, own in listed if own == k] for k in range(count)]
    edges = np.linspace(0, len(samples), fewest + 1).astype(int)
    found = []
    for a, b in pairwise(edges):
        cut = [(max(a, c), min(b, d)) for c, d in samples.bounds if max(a, c) < min(b, d)]
        found.append([(int(c), int(d)) for c, d in cut])
    return found


def blocks_of(
    parts: list[list[tuple[int, int]]], every: int, dt: float
) -> tuple[list[list[tuple[int, int]]], list[int]]:
    """Parts cut into about MOST_BLOCKS blocks of SHORTEST_BLOCK seconds or more, and to which part each belongs."""
    total = sum(end - start for pieces in parts for start, end in pieces)
    size = max(16, round(SHORTEST_BLOCK / dt), -(-total // MOST_BLOCKS))
    size = -(-size // every) * every
    found, owner = [], []
    for index, pieces in enumerate(parts):
        for start, end in pieces:
            count = max(1, (end - start) // size)
            edges = [start + k * ((end - start) // count // every * every) for k in range(count)] + [end]
            found += [[(a, b)] for a, b in pairwise(edges)]
            owner += [index] * count
    return found, owner


def chunks(
    grouping: Grouping,
    samples: Samples,
    every: int,
    parts: list[list[tuple[int, int]]],
    scale: np.ndarray | None = None,
    extra: np.ndarray | None = None,
) -> Iterator[Rows]:
    """All sums of the log.

    scale: (rows, nv), by what at its first row each sum is multiplied. extra: (rows, nv), the entry in each joint's
    row of one unknown more, which comes last.
    """
    size = max(1, CHUNK // every) * every
    for index, pieces in enumerate(parts):
        for start, end in pieces:
            for a in range(start, end, size):
                yield _chunk(grouping, samples, every, slice(a, min(a + size, end)), index, scale, extra)


def _chunk(
    grouping: Grouping, samples: Samples, every: int, rows: slice, part: int, scale: np.ndarray | None,
    extra: np.ndarray | None,
) -> Rows:  # fmt: skip
    here = grouping.columns.at(samples.q[rows], samples.qd[rows], samples.qdd[rows])
    tau = samples.tau[rows]
    if grouping.columns.has_known:
        tau = tau - here.known()
    found = Rows([], [], [], part)
    firsts = np.arange(0, len(tau), every)
    for joint, pivots in enumerate(grouping.seen_pivots):
        w = samples.weight[rows, joint].astype(np.float64)
        size = _summed(w, every)
        used = size > 0.0
        X = here.of_joint(joint, pivots)
        if extra is not None:
            X = np.concatenate([X, extra[None, rows, joint]])
        X *= w
        root = 1.0 / np.sqrt(size[used])  # rows of noise 1 / sqrt(w): the sum of w times them has sqrt(sum w)
        if scale is not None:
            root *= scale[rows.start + firsts[used], joint]
        found.X.append(_summed(X, every)[:, used] * root)
        found.tau.append(_summed(tau[:, joint] * w, every)[used] * root)
        found.first.append(rows.start + firsts[used])
    return found


def _summed(x: np.ndarray, every: int) -> np.ndarray:
    """Sums over `every` entries of the last axis, the last one over what is left."""
    if every == 1:
        return x
    whole = x.shape[-1] // every * every
    sums = x[..., :whole].reshape(*x.shape[:-1], -1, every).sum(axis=-1)
    return sums if whole == x.shape[-1] else np.concatenate([sums, x[..., whole:].sum(axis=-1, keepdims=True)], axis=-1)


def triangles(
    grouping: Grouping,
    samples: Samples,
    every: int,
    parts: list[list[tuple[int, int]]],
    scale: np.ndarray | None = None,
    extra: np.ndarray | None = None,
) -> Triangles:
    """The triangles of the whole log, part by part; scale and extra as of `chunks`."""
    widths = [int(seen.sum()) + 1 + (extra is not None) for seen in grouping.seen]
    found, counts = [], []
    for index in range(len(parts)):
        stacks = [_Stack(width) for width in widths]
        for rows in chunks(grouping, samples, every, parts[index : index + 1], scale, extra):
            for stack, X, tau in zip(stacks, rows.X, rows.tau, strict=True):
                stack.add(X, tau)
        found.append(tuple(stack.triangle() for stack in stacks))
        counts.append([stack.count for stack in stacks])
    return Triangles(grouping, tuple(found), np.array(counts), every)


class _Stack:
    """Rows [X tau] on top of which the triangle of all rows before stands."""

    def __init__(self, width: int) -> None:
        self.rows = np.zeros((BUFFER + width, width), order="F")
        self.used = width
        self.count = 0

    def add(self, X: np.ndarray, tau: np.ndarray) -> None:
        done = 0
        while done < len(tau):
            if self.used == len(self.rows):
                self._reduce()
            fitting = min(len(tau) - done, len(self.rows) - self.used)
            into = slice(self.used, self.used + fitting)
            self.rows[into, :-1] = X[:, done : done + fitting].T
            self.rows[into, -1] = tau[done : done + fitting]
            self.used += fitting
            done += fitting
        self.count += len(tau)

    def _reduce(self) -> None:
        width = self.rows.shape[1]
        self.rows[:width] = _triangle(self.rows[: self.used])
        self.used = width

    def triangle(self) -> np.ndarray:
        self._reduce()
        return np.array(self.rows[: self.rows.shape[1]])


def _triangle(rows: np.ndarray) -> np.ndarray:
    """R of the QR decomposition, (columns, columns); there are at least as many rows."""
    width = rows.shape[1]
    (geqrf,) = get_lapack_funcs(("geqrf",), (rows,))
    packed, *_ = geqrf(rows)
    return np.triu(packed[:width])
