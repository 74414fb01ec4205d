"""Least squares from triangles: ordinary, weighted by the noise of each joint, or drawn towards the description.

The unknowns are worked on in natural units, y = size * value: the torque that a number makes at a reference motion. A
direction of y whose standard deviation would exceed the measured torques themselves is one that the log does not show:
there the description's value stays, and the numbers that share in it are called unknown.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from linksweep.identification.estimate.triangles import Triangles

ITERATIONS = 20
ROUNDING = 1e-11  # of the largest singular value


@dataclass(frozen=True)
class Estimate:
    """values (base,), their covariance for white noise, noise (nv,) of a row, and which values the log determines.

    divided: (nv,), by what the rows of each joint were divided: their noise, or one number for all. root: (base, base)
    and target (base,): the log says root @ values = target, with unit noise. freedoms: (nv,), how many of its unknowns
    each joint's rows determined.
    """

    values: np.ndarray
    covariance: np.ndarray
    noise: np.ndarray
    divided: np.ndarray
    known: np.ndarray
    root: np.ndarray
    target: np.ndarray
    freedoms: np.ndarray
    condition: float


def estimate(
    triangles: Triangles, prior: np.ndarray, noise: np.ndarray | None = None, pull: float = 0.0, torque: float = np.inf
) -> Estimate:
    """Least squares in all parts together.

    prior: (base,) the description's values. noise: (nv,) of each joint, None: estimated, again and again until it
    stays. pull: how many rows' worth of certainty the description has in each natural unit (ridge). torque: the
    largest of the measured ones.
    """
    whole = triangles if triangles.parts == 1 else triangles.joined(list(range(triangles.parts)))
    if noise is not None:
        return _solved(whole, prior, noise, pull, torque)
    noise = np.ones(len(whole.count[0]))
    found = _solved(whole, prior, noise, pull, np.inf)
    for _ in range(ITERATIONS):
        before, noise = noise, _noise(whole, found)
        found = _solved(whole, prior, noise, pull, torque)
        if np.allclose(noise, before, rtol=1e-6, atol=0.0):
            break
    return found


def ordinary(triangles: Triangles, prior: np.ndarray, torque: float) -> Estimate:
    """All joints alike; the covariance is that of one noise for all."""
    whole = triangles.joined(list(range(triangles.parts)))
    same = np.ones(len(whole.count[0]))
    first = _solved(whole, prior, same, 0.0, np.inf)
    freedom = max(1.0, float(whole.count.sum() - first.freedoms.sum()))
    size = np.sqrt(whole.squares(0, _pivots(whole, first.values)).sum() / freedom)
    found = _solved(whole, prior, same * max(size, _floor(whole)), 0.0, torque)
    return replace(found, noise=_noise(whole, found))


def _pivots(triangles: Triangles, values: np.ndarray) -> np.ndarray:
    return triangles.grouping.from_base @ values


def _floor(triangles: Triangles) -> float:
    """Rounding: no log is more certain."""
    largest = max(float(np.abs(R).max()) for R in triangles.R[0])
    return 1e-15 * largest / np.sqrt(max(1, triangles.count.max())) + 1e-300


def _noise(whole: Triangles, found: Estimate) -> np.ndarray:
    """The root of the mean squared residual of each joint, per freedom that is left."""
    left = np.maximum(whole.count[0] - found.freedoms, 1.0)
    size = np.sqrt(whole.squares(0, _pivots(whole, found.values)) / left)
    return np.maximum(size, _floor(whole))


def _solved(whole: Triangles, prior: np.ndarray, noise: np.ndarray, pull: float, torque: float) -> Estimate:
    grouping = whole.grouping
    base = len(grouping)
    blocks = []
    for R, seen, size in zip(whole.R[0], grouping.seen, noise, strict=True):
        block = np.zeros((len(R), base + 1))
        block[:, :-1] = R[:, :-1] @ grouping.from_base[seen]
        block[:, -1] = R[:, -1]
        blocks.append(block / size)
    triangle = np.asarray(np.linalg.qr(np.concatenate(blocks), mode="r"))[: base + 1]
    root, target = triangle[:base, :base], triangle[:base, -1]
    natural = root / grouping.sizes
    left, singular, right = np.linalg.svd(natural, full_matrices=False)
    shown = (singular > ROUNDING * singular[0]) & (singular > 1.0 / torque)
    strength = np.where(shown, singular, 0.0)
    # ridge: the description as `pull` further rows for every natural unit (A. E. Hoerl, R. W. Kennard 1970)
    towards = left.T @ (target - root @ prior)
    weight = strength / (strength**2 + pull + (pull == 0.0) * ~shown)
    values = prior + (right.T @ (weight * towards)) / grouping.sizes
    inverse = (right[shown].T / singular[shown] if not pull else right.T * weight) / grouping.sizes[:, None]
    hidden = np.linalg.norm(right[~shown], axis=0) if not shown.all() else np.zeros(base)
    known = hidden < 1e-3
    covariance = inverse @ inverse.T
    freedoms = np.array(
        [float(np.sum(np.square(block[:, :-1] @ (right.T * weight / grouping.sizes[:, None])))) for block in blocks]
    )  # trace of the hat matrix, joint by joint
    scaled = natural / np.maximum(np.linalg.norm(natural, axis=0), 1e-300)
    spread = np.linalg.svd(scaled, compute_uv=False)
    condition = float(spread[0] / spread[-1]) if spread[-1] > 0.0 else np.inf
    return Estimate(values, covariance, noise, noise, known, root, target, freedoms, condition)
