"""Which joints go beyond their limits along a trajectory that streams by: when, and by how much."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass

import numpy as np

from linksweep.files.columns import joint_columns
from linksweep.joints.kind import TURN, unit_of
from linksweep.model.model import Joint, Model
from linksweep.support.files import Facts

QUANTITIES = {"q": "position", "qd": "velocity", "tau": "effort"}
ROUNDING = 1e-9  # of the limit, or of 1: a limit that is reached, with the digits of a file, is kept
TURNS = 4  # whole turns beyond which an angle without a limit is more likely in degrees


@dataclass(frozen=True, slots=True)
class Excess:
    """A joint beyond one of its limits: the furthest value, when, by how much, and when it was first beyond."""

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
    """Show it every block of samples; it remembers the furthest excess of each joint.

    simulated: positions are computed, all but the first, so that only these can be in degrees by mistake.
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
        place = 0
        for joint in joints:
            for k, entry in enumerate(joint.type.coordinates, place):
                if entry.measures == TURN and joint.type.euclidean:
                    self._turning.append((k, joint))
            place += joint.type.nq
        self._found: dict[tuple[str, int, int], Excess] = {}
        self._least = np.full(place, np.inf)
        self._most = np.full(place, -np.inf)

    def add(self, t: np.ndarray, **blocks: np.ndarray) -> None:
        """Times (samples,) and q, qd, tau (samples, width) of them; what is not finite is passed over."""
        if not len(t):
            return
        for block, values in blocks.items():
            columns = np.ascontiguousarray(values.T)  # ten times as fast as along the rows
            least, most = np.fmin.reduce(columns, axis=1), np.fmax.reduce(columns, axis=1)
            if block == "q" and not self._simulated:
                self._least, self._most = np.fmin(self._least, least), np.fmax(self._most, most)
            elif block == "q" and not self._started:
                self._least, self._most = np.fmin(self._least, values[0]), np.fmax(self._most, values[0])
                self._started = True
            lower, upper = self._bounds[block]
            slack = ROUNDING * np.maximum(1.0, np.abs(self._bounds[block]))
            for column in np.flatnonzero((least < lower - slack[0]) | (most > upper + slack[1])):
                self._look(block, int(column), t, columns[column], slack[:, column])

    def _look(self, block: str, column: int, t: np.ndarray, values: np.ndarray, slack: np.ndarray) -> None:
        """A column that somewhere goes beyond a limit."""
        lower, upper = (bounds[column] for bounds in self._bounds[block])
        sides = ((0, lower - values), (1, values - upper)) if block == "q" else ((1, np.abs(values) - upper),)
        for side, beyond in sides:
            outside = beyond > slack[side]  # NaN is not
            if outside.any():
                row, first = int(np.where(outside, beyond, 0.0).argmax()), int(outside.argmax())
                self._note((block, column, side), values[row], beyond[row], t[row], t[first])

    def _note(self, key: tuple[str, int, int], value: float, by: float, t: float, first: float) -> None:
        block, column, side = key
        before = self._found.get(key)
        if before is None or before.by < by:
            self._found[key] = Excess(
                self._names[block][column], QUANTITIES[block], float(self._bounds[block][side][column]), float(value),
                float(by), float(t), float(first) if before is None else before.first, self._units[block][column],
            )  # fmt: skip

    @property
    def excesses(self) -> tuple[Excess, ...]:
        """The furthest of each joint, quantity and side: positions first, in the order of the joints."""
        blocks = list(QUANTITIES)
        return tuple(self._found[key] for key in sorted(self._found, key=lambda key: (blocks.index(key[0]), key[1:])))

    @property
    def degrees(self) -> str:
        """A sentence where positions look like degrees; nothing where they may be radians."""
        far = [(max(-self._least[k], self._most[k]), k, joint) for k, joint in self._turning]
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

    def _fits(self, place: int, joint: Joint, unit: float) -> bool:
        """Whether the joint stays within its limits when its numbers are in this unit."""
        slack = ROUNDING * max(1.0, self._most[place] * unit)
        limits = joint.limits
        return limits.lower - slack <= self._least[place] * unit and self._most[place] * unit <= limits.upper + slack

    def lines(self, most: int = 12) -> list[str]:
        """What to print: one line each, and the hint."""
        found = self.excesses
        said = [f"beyond limits: {excess}" for excess in found[:most]]
        if len(found) > most:
            said.append(f"beyond limits: {len(found) - most} more, which --json lists")
        return [*said, *filter(None, [self.degrees])]

    def as_dict(self) -> Facts:
        return {"beyond_limits": [asdict(excess) for excess in self.excesses], "hint": self.degrees or None}


def _is_limited(joint: Joint) -> bool:
    return math.isfinite(joint.limits.lower) or math.isfinite(joint.limits.upper)


def _entries(joint: Joint, block: str) -> list[tuple[float, float, str]]:
    """Lower bound, upper bound and unit of each entry of a joint in a block."""
    if block == "q" and not joint.type.limited:
        return [(-math.inf, math.inf, "")] * joint.type.nq
    size = joint.limits.velocity if block == "qd" else joint.limits.effort
    bounds = (joint.limits.lower, joint.limits.upper) if block == "q" else (-size, size)
    entries = joint.type.coordinates if block == "q" else joint.type.rates
    return [(*bounds, unit_of(entry, block)) for entry in entries]
