"""The base form of the whole: the fewest numbers on which torques depend, links and drives together, and what is in
each.

Columns of the regressor that depend on others at every motion can only be found together with them. By QR (M. Gautier,
"Numerical calculation of the base inertial parameters of robots", 1991): columns are taken one after the other, those
that stand out of the ones before are kept, and the rest are combinations of these; the same combinations say what is
grouped into each number that is kept. By rule: the links' numbers are regrouped as `robot.base_parameters()` does
(Khalil & Kleinfinger 1987) and keep those names; drives join them where QR finds that they depend (the armature of a
first joint with ZZ1).
"""

from __future__ import annotations

import copy
import functools
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from linksweep.analysis.base_parameters import PREFERENCE, independent_columns
from linksweep.errors import ArgumentError
from linksweep.identification.model.columns import Columns
from linksweep.support.lazy import lazy
from linksweep.support.messages import is_one_of, shown

if TYPE_CHECKING:
    from linksweep.analysis.base_parameters import BaseParameters
    from linksweep.robot.robot import Robot

SAMPLES = 40
ROUNDED = 1e-3  # entries of joint rotations that are this close to 0 and 1 are taken for these
SMALL = 1e-9  # a share of a number below this is rounding


@dataclass(frozen=True)
class Grouping:
    """values = matrix @ x for the numbers x of `columns`; Y x = Y[:, pivots] @ from_base @ values.

    names: (base,). matrix: (base, columns). pivots: columns of Y on which all others depend. from_base: (base, base).
    sizes: (base,), the torque that each number of 1 makes at a reference motion: its natural unit is 1 / size.
    seen: (nv, base), whether a pivot's column is anything but zero at a joint.
    """

    columns: Columns
    method: str
    names: tuple[str, ...]
    matrix: np.ndarray
    pivots: tuple[int, ...]
    from_base: np.ndarray
    sizes: np.ndarray
    seen: np.ndarray

    def __len__(self) -> int:
        return len(self.names)

    @lazy
    def seen_pivots(self) -> list[np.ndarray]:
        """For each joint the pivots that it sees, as columns of Y."""
        return [np.array(self.pivots)[seen] for seen in self.seen]

    def standard(self, values: np.ndarray) -> np.ndarray:
        """Numbers x (columns,) that make the same torques: the pivots' alone."""
        x = np.zeros(len(self.columns))
        x[list(self.pivots)] = self.from_base @ values
        return x

    def text(self, name: str) -> str:
        """What is grouped into a number: "link_1.ZZ + joint_1.armature + 0.0506 link_2.m"."""
        row = self.matrix[self.names.index(name)]
        terms = []
        for k in sorted(np.flatnonzero(np.abs(row) > SMALL), key=lambda k: (row[k] != 1.0, k)):
            size = "" if abs(abs(row[k]) - 1.0) < SMALL else f"{abs(row[k]):.4g} "
            sign = ("-" if row[k] < 0 else "") if not terms else (" - " if row[k] < 0 else " + ")
            terms.append(f"{sign}{size}{self.columns.names[k]}")
        return "".join(terms)

    @property
    def never(self) -> tuple[str, ...]:
        """Numbers that no motion of this robot on this base shows."""
        shown = np.abs(self.matrix).max(axis=0, initial=0.0) > SMALL
        return tuple(name for k, name in enumerate(self.columns.names) if not shown[k])


def grouping(columns: Columns, method: str = "rule") -> Grouping:
    """The base form by "rule" or by "qr". Where no link is wholly unknown, and where both disagree, it is QR's."""
    if not is_one_of(method, ("rule", "qr")):
        raise ArgumentError(f"grouping is {shown(method)}, expected 'rule' or 'qr'.")
    columns, given = _exact(columns), columns
    Y = _sampled(columns)
    sizes = _natural_sizes(columns, np.sqrt(np.mean(np.square(Y), axis=(0, 1))))
    order = _preferred(columns)
    pivots, matrix = _kept(Y, sizes, order)
    names = tuple(columns.names[k] for k in pivots)
    from_base = np.eye(len(pivots))
    found = _by_rule(columns, Y, sizes) if method == "rule" else None
    if found is not None and len(found[0]) == len(pivots):
        names, matrix = found
        from_base = np.linalg.inv(matrix[:, pivots])  # numbers with pivots alone: values = matrix[:, pivots] @ pivots
    else:
        method = "qr"
    chosen = Y[..., pivots]
    unit = np.sqrt(np.mean(np.square(chosen @ from_base), axis=(0, 1)))
    return Grouping(
        given, method, names, matrix, tuple(pivots), from_base, np.where(unit > 0, unit, 1.0),
        np.abs(chosen).max(axis=0) > 0.0,
    )  # fmt: skip


def _exact(columns: Columns) -> Columns:
    """The same unknowns of the robot whose axes a file rounded (1.5708 for a right angle).

    By rounding alone, numbers that belong together would be told apart, and no log is that exact.
    """
    full = columns.full.snapped(ROUNDED)
    if full.model == columns.full.model:
        return columns
    found = copy.copy(columns)
    found.full = full
    return found


def _sampled(columns: Columns) -> np.ndarray:
    """Y (samples, nv, columns) at random motions, beyond the joints' limits."""
    rng = np.random.default_rng(21)
    count = max(SAMPLES, -(-4 * len(columns) // columns.nv))
    q = rng.uniform(-np.pi, np.pi, (count, columns.nv))
    qd, qdd = rng.normal(size=(2, count, columns.nv)) * np.array([2.0, 6.0])[:, None, None]  # rad/s, rad/s^2
    if "stribeck" in columns.terms:  # it is zero at such rates: half of the motions as slow as it acts
        acts = np.where(columns.acts, np.where(np.isfinite(columns.speeds), columns.speeds, np.inf)[:, None], np.inf)
        qd[::2] *= 0.5 * np.minimum(acts.min(axis=0), 2.0)
    return columns.regressor(q, qd, qdd)


def _natural_sizes(columns: Columns, norms: np.ndarray) -> np.ndarray:
    """Of a link's number the largest of all links, of a drive's its own: what rounding is relative to."""
    groups: dict[str | tuple[str, int], float] = {}
    keys = [
        (c.kind, 0 if c.what == "m" else 1 if c.what in ("mx", "my", "mz") else 2) if c.is_body else c.name
        for c in columns.columns
    ]
    for key, norm in zip(keys, norms, strict=True):
        groups[key] = max(groups.get(key, 0.0), float(norm))
    return np.array([groups[key] or 1.0 for key in keys])


def _kept(Y: np.ndarray, sizes: np.ndarray, order: list[int]) -> tuple[list[int], np.ndarray]:
    """The columns that are kept, and (kept, columns) what of each column belongs to them."""
    flat = Y.reshape(-1, Y.shape[-1]) / np.sqrt(Y.shape[0] * Y.shape[1])
    kept, shares = independent_columns(flat[:, order] / sizes[order])
    chosen = [order[k] for k in kept]
    matrix = np.zeros((len(kept), Y.shape[-1]))
    matrix[:, order] = shares * sizes[order] / sizes[chosen][:, None]
    in_place = np.argsort(chosen)
    return [chosen[k] for k in in_place], _clean(matrix[in_place])


def _preferred(columns: Columns) -> list[int]:
    """Links' numbers in Khalil's preference, from the base outward; then drives, offsets last."""

    def rank(k: int) -> tuple[int, int, int]:
        column = columns.columns[k]
        if column.is_body:
            return (0 if column.kind == "inertia" else 1), PREFERENCE.index(column.what), k
        return 2, int(column.what == "offset"), k

    return sorted(range(len(columns)), key=rank)


def _by_rule(columns: Columns, Y: np.ndarray, sizes: np.ndarray) -> tuple[tuple[str, ...], np.ndarray] | None:
    """Names and matrix with the links' numbers regrouped by rule; None where not all of them are unknown."""
    own = [k for k, column in enumerate(columns.columns) if column.kind == "inertia"]
    if columns.robot.couplings or len(own) != 10 * columns.links:
        return None
    base = _base_parameters(columns.full)
    others = [k for k in range(len(columns)) if k not in set(own)]
    joined = np.concatenate([Y[..., own] @ base.standard, Y[..., others]], axis=-1)
    unit = np.sqrt(np.mean(np.square(joined), axis=(0, 1)))
    unit = np.where(unit > 0, unit, 1.0)
    kept, shares = _kept(joined, unit, list(range(joined.shape[-1])))
    if not set(range(len(base))) <= set(kept):
        return None  # so nearly degenerate that the two ways see different ranks
    names = (*base.names, *(columns.names[k] for k in others))
    inside = np.zeros((joined.shape[-1], len(columns)))
    inside[: len(base), own] = base.matrix
    inside[range(len(base), joined.shape[-1]), others] = 1.0
    return tuple(names[k] for k in kept), _clean(shares @ inside)


@functools.lru_cache(maxsize=16)
def _base_parameters(robot: Robot) -> BaseParameters:
    """Found by rule once for a robot: half a second for an arm."""
    return robot.base_parameters()


def _clean(matrix: np.ndarray) -> np.ndarray:
    """Without what rounding left of zeros and ones."""
    rounded = np.round(matrix)
    return np.where(np.abs(matrix - rounded) < 1e-11, rounded, matrix) + 0.0
