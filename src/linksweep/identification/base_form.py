"""Base form of the regressor: the smallest set of parameters on which torques depend, for links and drives together.

Columns of the regressor that depend linearly on others at every motion can only be identified together with them. QR
(M. Gautier, "Numerical calculation of the base inertial parameters of robots", 1991) selects independent columns
(pivots) one after the other; the other columns are combinations of these, which also determines the parameters that are
grouped into each base parameter. By rule, the links' parameters are grouped as `robot.base_parameters()` does (Khalil &
Kleinfinger 1987) and keep those names; drives join them where QR finds a dependency (the armature of a first joint with
ZZ1).
"""

from __future__ import annotations

import copy
import functools
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from linksweep.identification.regressor import Regressor
from linksweep.robot.base_parameters import PREFERENCE, independent_columns
from linksweep.support.checks import one_of
from linksweep.support.lazy import lazy

if TYPE_CHECKING:
    from linksweep.robot.base_parameters import BaseParameters
    from linksweep.robot.robot import Robot

SAMPLES = 40
SNAP = 1e-3  # entries of joint rotations this close to 0 and 1 are rounded
ROUNDING = 1e-9  # smaller coefficients are rounding errors
REFERENCE = np.array([2.0, 6.0])  # rad/s, rad/s^2: standard deviations of velocities and accelerations


@dataclass(frozen=True)
class BaseForm:
    """Base parameters `values = matrix @ x` of regressor parameters x, with Y x = Y[:, pivots] @ from_base @ values.

    names: (base,). matrix: (base, parameters). pivots: indices of the independent columns of Y. from_base: (base,
    base). sizes: (base,) RMS torque of a base parameter of 1 at a reference motion (2 rad/s, 6 rad/s²); 1 / size is its
    natural unit. seen: (nv, base) whether the column of a pivot is nonzero for a joint.
    """

    regressor: Regressor
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
        """Indices of the columns of Y that are pivots and nonzero, for each joint."""
        return [np.array(self.pivots)[seen] for seen in self.seen]

    def standard(self, values: np.ndarray) -> np.ndarray:
        """Return parameters x (parameters,) with the same torques as base parameters; all but the pivots are zero."""
        x = np.zeros(len(self.regressor))
        x[list(self.pivots)] = self.from_base @ values
        return x

    def text(self, name: str) -> str:
        """Return the grouped parameters as text: "link_1.ZZ + joint_1.armature + 0.0506 link_2.m"."""
        row = self.matrix[self.names.index(name)]
        terms = []
        for k in sorted(np.flatnonzero(np.abs(row) > ROUNDING), key=lambda k: (row[k] != 1.0, k)):
            factor = "" if abs(abs(row[k]) - 1.0) < ROUNDING else f"{abs(row[k]):.4g} "
            sign = ("-" if row[k] < 0 else "") if not terms else (" - " if row[k] < 0 else " + ")
            terms.append(f"{sign}{factor}{self.regressor.names[k]}")
        return "".join(terms)

    @property
    def unidentifiable(self) -> tuple[str, ...]:
        """Names of parameters that do not affect torques in any motion of this robot on this base."""
        used = np.abs(self.matrix).max(axis=0, initial=0.0) > ROUNDING
        return tuple(name for k, name in enumerate(self.regressor.names) if not used[k])


def base_form(regressor: Regressor, method: str = "rule") -> BaseForm:
    """Return the base form by "rule" or by "qr".

    QR is also used if the parameters of some link are known, or if both methods find different numbers of parameters.
    """
    one_of("grouping_by", method, ("rule", "qr"))
    exact = _snapped(regressor)
    Y = _sampled(exact)
    sizes = _natural_sizes(exact, np.sqrt(np.mean(np.square(Y), axis=(0, 1))))
    pivots, matrix = _pivots(Y, sizes, _preferred_order(exact))
    names = tuple(exact.names[k] for k in pivots)
    from_base = np.eye(len(pivots))
    by_rule = _by_rule(exact, Y) if method == "rule" else None
    if by_rule is not None and len(by_rule[0]) == len(pivots):
        names, matrix = by_rule
        from_base = np.linalg.inv(
            matrix[:, pivots]
        )  # if only pivots are nonzero: values = matrix[:, pivots] @ x[pivots]
    else:
        method = "qr"
    chosen = Y[..., pivots]
    unit = np.sqrt(np.mean(np.square(chosen @ from_base), axis=(0, 1)))
    return BaseForm(
        regressor, method, names, matrix, tuple(pivots), from_base, np.where(unit > 0, unit, 1.0),
        np.abs(chosen).max(axis=0) > 0.0,
    )  # fmt: skip


def _snapped(regressor: Regressor) -> Regressor:
    """Return the regressor of the robot with exact axes where its file has rounded ones (1.5708 for a right angle).

    With rounded axes, dependent columns would look independent, at a level that no log can resolve.
    """
    full = regressor.full.snapped(SNAP)
    if full.model == regressor.full.model:
        return regressor
    exact = copy.copy(regressor)
    exact.full = full
    return exact


def _sampled(regressor: Regressor) -> np.ndarray:
    """Return Y (samples, nv, parameters) at random motions, which ignore joint limits."""
    rng = np.random.default_rng(21)
    count = max(SAMPLES, -(-4 * len(regressor) // regressor.nv))
    q = rng.uniform(-np.pi, np.pi, (count, regressor.nv))
    qd, qdd = rng.normal(size=(2, count, regressor.nv)) * REFERENCE[:, None, None]
    if "stribeck" in regressor.drive_terms:  # the term vanishes at high speed: every second motion is slow
        speeds = np.where(np.isfinite(regressor.stribeck_speeds), regressor.stribeck_speeds, np.inf)
        qd[::2] *= 0.5 * np.minimum(np.where(regressor.acts, speeds[:, None], np.inf).min(axis=0), 2.0)
    return regressor.regressor(q, qd, qdd)


def _natural_sizes(regressor: Regressor, norms: np.ndarray) -> np.ndarray:
    """Return the scale of each column, to which rounding is relative.

    It is the largest norm of all links for a link's parameter (mass, first moments, inertias), and the column's own
    norm for a drive's.
    """
    groups: dict[str | tuple[str, int], float] = {}
    keys = [
        (p.kind, 0 if p.what == "m" else 1 if p.what in ("mx", "my", "mz") else 2) if p.is_body else p.name
        for p in regressor.parameters
    ]
    for key, norm in zip(keys, norms, strict=True):
        groups[key] = max(groups.get(key, 0.0), float(norm))
    return np.array([groups[key] or 1.0 for key in keys])


def _pivots(Y: np.ndarray, sizes: np.ndarray, order: list[int]) -> tuple[list[int], np.ndarray]:
    """Return the independent columns of Y, taken in this order, and the matrix (pivots, columns) of the grouping."""
    flat = Y.reshape(-1, Y.shape[-1]) / np.sqrt(Y.shape[0] * Y.shape[1])
    independent, coefficients = independent_columns(flat[:, order] / sizes[order])
    pivots = [order[k] for k in independent]
    matrix = np.zeros((len(pivots), Y.shape[-1]))
    matrix[:, order] = coefficients * sizes[order] / sizes[pivots][:, None]
    ascending = np.argsort(pivots)
    return [pivots[k] for k in ascending], _cleaned(matrix[ascending])


def _preferred_order(regressor: Regressor) -> list[int]:
    """Return the links' parameters in Khalil's preference from the base outward, then those of drives, offsets last."""

    def rank(k: int) -> tuple[int, int, int]:
        parameter = regressor.parameters[k]
        if parameter.is_body:
            return (0 if parameter.kind == "inertia" else 1), PREFERENCE.index(parameter.what), k
        return 2, int(parameter.what == "offset"), k

    return sorted(range(len(regressor)), key=rank)


def _by_rule(regressor: Regressor, Y: np.ndarray) -> tuple[tuple[str, ...], np.ndarray] | None:
    """Return names and matrix with the links' parameters grouped by rule; None unless all of them are unknown."""
    links = [k for k, parameter in enumerate(regressor.parameters) if parameter.kind == "inertia"]
    if regressor.robot.couplings or len(links) != 10 * regressor.links:
        return None
    base = _base_parameters(regressor.full)
    others = [k for k in range(len(regressor)) if k not in set(links)]
    joined = np.concatenate([Y[..., links] @ base.standard, Y[..., others]], axis=-1)
    unit = np.sqrt(np.mean(np.square(joined), axis=(0, 1)))
    unit = np.where(unit > 0, unit, 1.0)
    pivots, coefficients = _pivots(joined, unit, list(range(joined.shape[-1])))
    if not set(range(len(base))) <= set(pivots):
        return None  # nearly degenerate: the two methods find different ranks
    names = (*base.names, *(regressor.names[k] for k in others))
    grouping = np.zeros((joined.shape[-1], len(regressor)))
    grouping[: len(base), links] = base.matrix
    grouping[range(len(base), joined.shape[-1]), others] = 1.0
    return tuple(names[k] for k in pivots), _cleaned(coefficients @ grouping)


@functools.lru_cache(maxsize=16)
def _base_parameters(robot: Robot) -> BaseParameters:
    """Return the base parameters of a robot; cached because they take half a second for an arm."""
    return robot.base_parameters()


def _cleaned(matrix: np.ndarray) -> np.ndarray:
    """Return the matrix with rounding errors removed from integer entries."""
    rounded = np.round(matrix)
    return np.where(np.abs(matrix - rounded) < 1e-11, rounded, matrix) + 0.0
