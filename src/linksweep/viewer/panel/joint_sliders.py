"""A slider for every freedom of a robot, within the joints' limits.

Turns of ball joints and free bases are three angles, roll, pitch and yaw about fixed axes x, y and z.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from linksweep.description.model import Joint
from linksweep.joints.kind import QUATERNION
from linksweep.plots.channels import described

if TYPE_CHECKING:
    from linksweep.robot.robot import Robot

    from ..server import Handle

TURN = math.pi
STEPS = 1000  # of a slider
UNIT = {"turn": "rad", "slide": "m"}


@dataclass(frozen=True, slots=True)
class Freedom:
    """One slider: its label, "turn" or "slide", and its range."""

    label: str
    kind: str
    low: float
    high: float


def freedoms(joint: Joint, reach: float) -> tuple[Freedom, ...]:
    """The sliders of a joint; `reach` bounds slides (m) that have no limits."""
    found = []
    for entry in joint.type.coordinates:
        if entry.measures != QUATERNION:
            kind, largest = ("turn", TURN) if entry.turns else ("slide", reach)
            label = f"{joint.name} {entry.name}".rstrip()
            found.append(Freedom(label, kind, *(_range(joint, largest) if joint.type.limited else (-largest, largest))))
    if joint.type.has_quaternion:
        angles = (("roll", TURN), ("pitch", TURN / 2), ("yaw", TURN))
        found += [Freedom(f"{joint.name} {angle}", "turn", -most, most) for angle, most in angles]
    return tuple(found)


def _range(joint: Joint, reach: float) -> tuple[float, float]:
    low, high = joint.limits.lower, joint.limits.upper
    low = low if math.isfinite(low) else min(-reach, high - reach if math.isfinite(high) else -reach)
    high = high if math.isfinite(high) else max(reach, low + reach)
    return (low, high) if low < high else (low - 1e-3, low + 1e-3)


def to_sliders(joint: Joint, q: np.ndarray) -> list[float]:
    """The values of a joint's sliders at its coordinates."""
    if not joint.type.has_quaternion:
        return [float(x) for x in q]
    from scipy.spatial.transform import Rotation

    matrix = Rotation.from_quat(q[:4] / np.linalg.norm(q[:4])).as_matrix()
    pitch = math.asin(min(max(-matrix[2, 0], -1.0), 1.0))
    if abs(matrix[2, 0]) < 1.0 - 1e-12:
        roll, yaw = math.atan2(matrix[2, 1], matrix[2, 2]), math.atan2(matrix[1, 0], matrix[0, 0])
    else:  # looking straight up or down: roll and yaw turn about the same axis
        roll, yaw = 0.0, math.atan2(-matrix[0, 1], matrix[1, 1])
    return [*(float(x) for x in q[4:]), roll, pitch, yaw]


def from_sliders(joint: Joint, values: list[float]) -> list[float]:
    """A joint's coordinates at the values of its sliders."""
    if not joint.type.has_quaternion:
        return values
    from scipy.spatial.transform import Rotation

    quaternion = Rotation.from_euler("xyz", values[-3:]).as_quat()
    return [*(float(x) for x in quaternion), *values[:-3]]


class JointSliders:
    """The sliders of one robot in the page; `moved(q)` is called when somebody moves one."""

    def __init__(self, gui: Handle, robot: Robot, reach: float, q: np.ndarray, moved: Callable[[np.ndarray], None]):
        model = described(robot)
        by_name = {link.joint.name: link.joint for link in model.links}
        self.joints = [by_name[name] for name in robot.joint_names]
        self.sliders: list[list[Handle]] = []
        self.bounds: list[list[tuple[float, float]]] = []
        self._exact: dict[int, tuple[float, float]] = {}  # by slider: what it shows, and what it stands for
        self._moved = moved
        start = 0
        for joint in self.joints:
            count = joint.type.nq
            values = to_sliders(joint, q[start : start + count])
            start += count
            own = freedoms(joint, reach)
            self.sliders.append([self._slider(gui, joint, f, x) for f, x in zip(own, values, strict=True)])
            # a robot may stand outside its limits, and then may go back there
            self.bounds.append([(min(f.low, x), max(f.high, x)) for f, x in zip(own, values, strict=True)])

    def _slider(self, gui: Handle, joint: Joint, freedom: Freedom, value: float) -> Handle:
        step = 10.0 ** math.floor(math.log10((freedom.high - freedom.low) / STEPS))
        low, high = _outward(freedom.low, step, math.floor), _outward(freedom.high, step, math.ceil)
        low, high = min(low, _outward(value, step, math.floor)), max(high, _outward(value, step, math.ceil))
        hint = f"{joint.kind} joint, {freedom.low:.4g} to {freedom.high:.4g} {UNIT[freedom.kind]}"
        middle = 0.0 if low < 0.0 < high else None
        marks = tuple(float(f"{x:.3g}") for x in (low, middle, high) if x is not None)
        near = _rounded(value, step, low, high)
        slider = gui.add_slider(freedom.label, low, high, step, near, hint=hint, marks=marks)
        slider.on_update(self._changed)
        self._exact[id(slider)] = (near, value)
        return slider

    def _changed(self, event: Handle) -> None:
        if event.client is not None:  # moved by hand, not by `set`
            self._moved(self.q)

    @property
    def q(self) -> np.ndarray:
        """The coordinates (nq,) at which the sliders stand, never beyond the limits that they round."""
        found: list[float] = []
        for joint, row, bounds in zip(self.joints, self.sliders, self.bounds, strict=True):
            values = [min(max(self._value(slider), low), high) for slider, (low, high) in zip(row, bounds, strict=True)]
            found += from_sliders(joint, values)
        return np.array(found)

    def _value(self, slider: Handle) -> float:
        """Where a slider stands: exactly, if it was set and nobody has moved it since."""
        shown, exact = self._exact.get(id(slider), (None, 0.0))
        return exact if shown == slider.value else float(slider.value)

    def set(self, q: np.ndarray) -> None:
        """Move the sliders to q, as far as they go; they show it rounded, and remember it."""
        start = 0
        for joint, row in zip(self.joints, self.sliders, strict=True):
            count = joint.type.nq
            values = to_sliders(joint, q[start : start + count])
            start += count
            for slider, value in zip(row, values, strict=True):
                near = _rounded(value, slider.step, slider.min, slider.max)
                self._exact[id(slider)] = (near, value)
                slider.value = near

    def enable(self, on: bool) -> None:
        for row in self.sliders:
            for slider in row:
                slider.disabled = not on


def _rounded(value: float, step: float, low: float, high: float) -> float:
    """What a slider shows for a value: a point of its grid, in its range, and never -0."""
    return min(max(round(value / step) * step, low), high) + 0.0


def _outward(value: float, step: float, rounding: Callable[[float], int]) -> float:
    """The next point of the slider's grid outside a limit, so that the limit itself can be reached."""
    return rounding(value / step - (1e-9 if rounding is math.ceil else -1e-9)) * step
