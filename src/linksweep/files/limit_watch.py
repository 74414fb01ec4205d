"""Violations of joint limits along a trajectory that is read or computed in blocks."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass

import numpy as np

from linksweep.files.columns import joint_columns
from linksweep.joints.kind import TURN, unit_of
from linksweep.model.model import Joint, Model
from linksweep.support.files import Facts

QUANTITIES = {"q": "position", "qd": "velocity", "tau": "effort"}
ROUNDING = 1e-9  # of the limit, or of 1: the digits of a file may exceed a limit by this much
TURNS = 4  # full turns: larger angles of joints without limits are probably in degrees


@dataclass(frozen=True, slots=True)
class Excess:
    """A violated joint limit: the most extreme value, its excess, its time t, and the time of the first violation."""

    joint: str
    quantity: str  # "position", "velocity", "effort"
    limit: float
    value: float
    by: float
    t: float
    first: float
    unit: str

    def __str__(self) -> str:
        size = "" if self.quantity == "position" else "±"
        since = f", first at {self.first:.4g} s" if self.first != self.t else ""
        return (
            f"{self.joint}: {self.quantity} {self.value:.6g} {self.unit} at {self.t:.4g} s, {self.by:.4g} beyond "
            f"{size}{self.limit:.6g}{since}"
        )


class LimitWatch:
    """The largest limit violation of each joint in the blocks of samples that are passed to `add`.

    simulated: only the first positions are an input that may be in degrees by mistake; the others are computed.
    """

    def __init__(self, model: Model, simulated: bool = False):
        self._simulated, self._started = simulated, False
        self._turning: list[tuple[int, Joint]] = []
        self._bounds: dict[str, tuple[np.ndarray, np.ndarray]] = {}
        self._names: dict[str, list[str]] = {}
        self._units: dict[str, list[str]] = {}
        joints = model.joints
        for block in QUANTITIES:
            rows = [row for joint in joints for row in _entries(joint, block)]
            self._bounds[block] = np.array([row[0] for row in rows]), np.array([row[1] for row in rows])
            self._units[block] = [row[2] for row in rows]
            self._names[block] = [name.partition(".")[2] for name in joint_columns(model, block)]
        nq = 0
        for joint in joints:
            for k, entry in enumerate(joint.type.coordinates, nq):
                if entry.measures == TURN and joint.type.euclidean:
                    self._turning.append((k, joint))
            nq += joint.type.nq
        self._excesses: dict[tuple[str, int, int], Excess] = {}
        self._min = np.full(nq, np.inf)
        self._max = np.full(nq, -np.inf)

    def add(self, t: np.ndarray, **blocks: np.ndarray) -> None:
        """Add times (samples,) and q, qd, tau (samples, width); NaN is ignored."""
        if not len(t):
            return
        for block, values in blocks.items():
            columns = np.ascontiguousarray(values.T)  # ten times as fast as along the rows
            lowest, highest = np.fmin.reduce(columns, axis=1), np.fmax.reduce(columns, axis=1)
            if block == "q" and not self._simulated:
                self._min, self._max = np.fmin(self._min, lowest), np.fmax(self._max, highest)
            elif block == "q" and not self._started:
                self._min, self._max = np.fmin(self._min, values[0]), np.fmax(self._max, values[0])
                self._started = True
            lower, upper = self._bounds[block]
            slack = ROUNDING * np.maximum(1.0, np.abs(self._bounds[block]))
            for column in np.flatnonzero((lowest < lower - slack[0]) | (highest > upper + slack[1])):
                self._check_column(block, int(column), t, columns[column], slack[:, column])

    def _check_column(self, block: str, column: int, t: np.ndarray, values: np.ndarray, slack: np.ndarray) -> None:
        """Record the violations of a column that exceeds a limit somewhere."""
        lower, upper = (bounds[column] for bounds in self._bounds[block])
        sides = ((0, lower - values), (1, values - upper)) if block == "q" else ((1, np.abs(values) - upper),)
        for side, beyond in sides:
            outside = beyond > slack[side]  # NaN is not
            if outside.any():
                row, first = int(np.where(outside, beyond, 0.0).argmax()), int(outside.argmax())
                self._record((block, column, side), values[row], beyond[row], t[row], t[first])

    def _record(self, key: tuple[str, int, int], value: float, by: float, t: float, first: float) -> None:
        block, column, side = key
        before = self._excesses.get(key)
        if before is None or before.by < by:
            self._excesses[key] = Excess(
                self._names[block][column], QUANTITIES[block], float(self._bounds[block][side][column]), float(value),
                float(by), float(t), float(first) if before is None else before.first, self._units[block][column],
            )  # fmt: skip

    @property
    def excesses(self) -> tuple[Excess, ...]:
        """The largest violation of each joint, quantity and side: positions first, in the order of the joints."""
        blocks = list(QUANTITIES)
        return tuple(
            self._excesses[key] for key in sorted(self._excesses, key=lambda key: (blocks.index(key[0]), key[1:]))
        )

    @property
    def degrees(self) -> str:
        """A hint if positions are probably in degrees, otherwise an empty string."""
        far = [(max(-self._min[k], self._max[k]), k, joint) for k, joint in self._turning]
        far = [entry for entry in far if entry[0] > 2.0 * math.pi]
        if not far:
            return ""
        limited = [(k, joint) for k, joint in self._turning if _is_limited(joint)]
        if limited:
            outside = [
                (size, k, joint) for size, k, joint in far if _is_limited(joint) and not self._fits(k, joint, 1.0)
            ]
            fits = all(self._fits(k, joint, math.pi / 180.0) for k, joint in limited)
            if not outside or not fits:
                return ""
            size, _, joint = max(outside, key=lambda entry: entry[0])
        else:
            size, _, joint = max(far, key=lambda entry: entry[0])
            if size <= 2.0 * math.pi * TURNS:
                return ""
        return (
            f"These positions look like degrees ({joint.name} goes to {size:.4g}), expected radians: multiply them by "
            f"pi/180."
        )

    def _fits(self, index: int, joint: Joint, unit: float) -> bool:
        """Whether the joint stays within its limits if its positions are in this unit."""
        slack = ROUNDING * max(1.0, self._max[index] * unit)
        limits = joint.limits
        return limits.lower - slack <= self._min[index] * unit and self._max[index] * unit <= limits.upper + slack

    def lines(self, limit: int = 12) -> list[str]:
        """Return lines to print: the first violations, the number of others, and the hint."""
        excesses = self.excesses
        lines = [f"beyond limits: {excess}" for excess in excesses[:limit]]
        if len(excesses) > limit:
            lines.append(f"beyond limits: {len(excesses) - limit} more, which --json lists")
        return [*lines, *filter(None, [self.degrees])]

    def as_dict(self) -> Facts:
        return {"beyond_limits": [asdict(excess) for excess in self.excesses], "hint": self.degrees or None}


def _is_limited(joint: Joint) -> bool:
    return math.isfinite(joint.limits.lower) or math.isfinite(joint.limits.upper)


def _entries(joint: Joint, block: str) -> list[tuple[float, float, str]]:
    """Return the lower bound, upper bound and unit of each entry of a joint in a block."""
    if block == "q" and not joint.type.limited:
        return [(-math.inf, math.inf, "")] * joint.type.nq
    size = joint.limits.velocity if block == "qd" else joint.limits.effort
    bounds = (joint.limits.lower, joint.limits.upper) if block == "q" else (-size, size)
    entries = joint.type.coordinates if block == "q" else joint.type.rates
    return [(*bounds, unit_of(entry, block)) for entry in entries]
