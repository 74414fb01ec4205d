"""Reduction of a log of any length to one small triangular matrix for each joint.

The R factor of the QR decomposition of [X tau] (R^T R = [X tau]^T [X tau]) is computed chunk by chunk. It contains all
that least squares needs for any weights of the joints: estimates, residual sums of squares, and fits that leave out a
part.

Before, `every` rows of the log are summed on both sides of tau = Y x, which keeps the equation exact whatever friction
does within a sum. Sums are divided by the root of the number of rows, so that white noise stays white with the same
standard deviation. (This is Gautier's parallel filtering and decimation with a moving sum as the filter.)
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from scipy.linalg import get_lapack_funcs

from linksweep.identification.base_form import BaseForm
from linksweep.identification.samples import Samples

CHUNK = 1024  # rows of the log at a time, whose regressor fits into the cache
BUFFER = 4096  # sums that are decomposed at a time, together with the R factor of all before
MAX_BLOCKS, MIN_BLOCK = 24, 0.4  # seconds: residuals are nearly uncorrelated after this time

Parts = list[list[tuple[int, int]]]  # parts of a log, each a list of (first, last + 1) rows


@dataclass(frozen=True)
class SummedRows:
    """Summed rows of a chunk, for each joint: X (pivots seen by the joint, sums), tau (sums,), their first rows."""

    X: list[np.ndarray]
    tau: list[np.ndarray]
    first: list[np.ndarray]


@dataclass(frozen=True)
class RFactors:
    """Upper triangular R[part][joint] (seen + 1, seen + 1), and the count[part, joint] of sums in it.

    `seen` are the pivots that affect a joint, as in `BaseForm`. every: rows in a sum.
    """

    base: BaseForm
    R: tuple[tuple[np.ndarray, ...], ...]
    count: np.ndarray
    every: int

    @property
    def parts(self) -> int:
        return len(self.R)

    def joined(self, parts: list[int] | None = None) -> RFactors:
        """Return the R factors of some parts together, by default of all."""
        parts = list(range(self.parts)) if parts is None else parts
        joints = range(self.base.regressor.nv)
        R = tuple(_r_factor(np.concatenate([self.R[part][j] for part in parts])) for j in joints)
        return RFactors(self.base, (R,), self.count[parts].sum(axis=0, keepdims=True), self.every)

    def gram(self, part: int, joint: int) -> np.ndarray:
        """Return [X tau]^T [X tau] of a part and joint, for all pivots, extra unknowns, and tau last."""
        seen, R = self.base.seen[joint], self.R[part][joint]
        at = np.concatenate([np.flatnonzero(seen), np.arange(len(seen), len(seen) + R.shape[1] - int(seen.sum()))])
        gram = np.zeros((at[-1] + 1, at[-1] + 1))
        gram[np.ix_(at, at)] = R.T @ R
        return gram

    def base_rows(self, part: int, joint: int) -> np.ndarray:
        """Return R with its columns in terms of base parameters, (seen + 1, base + 1)."""
        R, seen = self.R[part][joint], self.base.seen[joint]
        rows = np.zeros((len(R), len(self.base) + 1))
        rows[:, :-1] = R[:, :-1] @ self.base.from_base[seen]
        rows[:, -1] = R[:, -1]
        return rows

    def residual_squares(self, part: int, values: np.ndarray) -> np.ndarray:
        """Return the sums of squared residuals (nv,) of base parameters in one part."""
        x = self.base.from_base @ values
        residuals = [R[:, -1] - R[:, :-1] @ x[seen] for R, seen in zip(self.R[part], self.base.seen, strict=True)]
        return np.array([float(residual @ residual) for residual in residuals])


def rows_per_sum(dt: float, cutoff: float) -> int:
    """Return the rows in a quarter of the cut-off's period, over which sums lose little of the band."""
    return max(1, int(0.25 / (dt * cutoff))) if np.isfinite(cutoff) else 1


def validation_parts(samples: Samples, count: int = 5) -> Parts:
    """Return the parts that cross-validation leaves out: trajectories, or `count` equal parts of a single one."""
    trajectories = max(samples.trajectory) + 1
    if trajectories > 1:
        segments = list(zip(samples.bounds, samples.trajectory, strict=True))
        return [[bounds for bounds, index in segments if index == k] for k in range(trajectories)]
    parts = []
    for a, b in pairwise(np.linspace(0, len(samples), count + 1).astype(int)):
        clipped = [(max(a, c), min(b, d)) for c, d in samples.bounds if max(a, c) < min(b, d)]
        parts.append([(int(c), int(d)) for c, d in clipped])
    return parts


def split_blocks(parts: Parts, every: int, dt: float) -> tuple[Parts, list[int]]:
    """Split parts into about MAX_BLOCKS blocks of at least MIN_BLOCK seconds; return also the part of each block."""
    total = sum(end - start for pieces in parts for start, end in pieces)
    size = max(16, round(MIN_BLOCK / dt), -(-total // MAX_BLOCKS))
    size = -(-size // every) * every
    blocks, owner = [], []
    for index, pieces in enumerate(parts):
        for start, end in pieces:
            count = max(1, (end - start) // size)
            edges = [start + k * ((end - start) // count // every * every) for k in range(count)] + [end]
            blocks += [[(a, b)] for a, b in pairwise(edges)]
            owner += [index] * count
    return blocks, owner


def summed_rows(
    base: BaseForm,
    samples: Samples,
    every: int,
    parts: Parts,
    scale: np.ndarray | None = None,
    extra: np.ndarray | None = None,
) -> Iterator[SummedRows]:
    """Iterate over the sums of the log in chunks.

    scale: (rows, nv) factors of the sums, taken at their first rows. extra: (rows, nv) column of one more unknown,
    which comes last.
    """
    size = max(1, CHUNK // every) * every
    for pieces in parts:
        for start, end in pieces:
            for a in range(start, end, size):
                yield _summed_chunk(base, samples, every, slice(a, min(a + size, end)), scale, extra)


def _summed_chunk(
    base: BaseForm, samples: Samples, every: int, rows: slice, scale: np.ndarray | None, extra: np.ndarray | None
) -> SummedRows:
    motion = base.regressor.at(samples.q[rows], samples.qd[rows], samples.qdd[rows])
    tau = samples.tau[rows]
    if base.regressor.has_known:
        tau = tau - motion.known()
    chunk = SummedRows([], [], [])
    firsts = np.arange(0, len(tau), every)
    for joint, pivots in enumerate(base.seen_pivots):
        weight = samples.weight[rows, joint].astype(np.float64)
        total = _sums(weight, every)
        used = total > 0.0
        X = motion.of_joint(joint, pivots)
        if extra is not None:
            X = np.concatenate([X, extra[None, rows, joint]])
        X *= weight
        factor = 1.0 / np.sqrt(total[used])  # rows have noise 1 / sqrt(weight), their weighted sum sqrt(total)
        if scale is not None:
            factor *= scale[rows.start + firsts[used], joint]
        chunk.X.append(_sums(X, every)[:, used] * factor)
        chunk.tau.append(_sums(tau[:, joint] * weight, every)[used] * factor)
        chunk.first.append(rows.start + firsts[used])
    return chunk


def _sums(x: np.ndarray, every: int) -> np.ndarray:
    """Return sums over `every` entries of the last axis; the last sum may have fewer."""
    if every == 1:
        return x
    whole = x.shape[-1] // every * every
    sums = x[..., :whole].reshape(*x.shape[:-1], -1, every).sum(axis=-1)
    return sums if whole == x.shape[-1] else np.concatenate([sums, x[..., whole:].sum(axis=-1, keepdims=True)], axis=-1)


def reduce_log(
    base: BaseForm,
    samples: Samples,
    every: int,
    parts: Parts,
    scale: np.ndarray | None = None,
    extra: np.ndarray | None = None,
) -> RFactors:
    """Return the R factors of each part of the log; scale and extra as in `summed_rows`."""
    widths = [int(seen.sum()) + 1 + (extra is not None) for seen in base.seen]
    factors, counts = [], []
    for pieces in parts:
        stacks = [_RowStack(width) for width in widths]
        for rows in summed_rows(base, samples, every, [pieces], scale, extra):
            for stack, X, tau in zip(stacks, rows.X, rows.tau, strict=True):
                stack.add(X, tau)
        factors.append(tuple(stack.r_factor() for stack in stacks))
        counts.append([stack.count for stack in stacks])
    return RFactors(base, tuple(factors), np.array(counts), every)


class _RowStack:
    """Buffer of rows [X tau] below the R factor of all rows before."""

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
        self.rows[:width] = _r_factor(self.rows[: self.used])
        self.used = width

    def r_factor(self) -> np.ndarray:
        self._reduce()
        return np.array(self.rows[: self.rows.shape[1]])


def _r_factor(rows: np.ndarray) -> np.ndarray:
    """Return R (columns, columns) of the QR decomposition of rows, which are at least as many as columns."""
    width = rows.shape[1]
    (geqrf,) = get_lapack_funcs(("geqrf",), (rows,))
    packed, *_ = geqrf(rows)
    return np.triu(packed[:width])
