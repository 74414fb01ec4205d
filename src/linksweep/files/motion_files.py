"""A motion in TOML: its kind, the joints' points and times, and at how many instants it is sampled."""

from __future__ import annotations

import math
import tomllib
from pathlib import Path
from typing import NoReturn

import numpy as np

from linksweep.errors import ArgumentError
from linksweep.files.csv_files import unreadable
from linksweep.model.model import Model
from linksweep.motion import CubicSpline, Cycloid, Motion, Quintic, QuinticSpline, Trapezoid
from linksweep.support.files import Table
from linksweep.support.messages import nearest, shown

COMMON = ("motion", "joints", "degrees", "samples", "step")
OWN = {
    "quintic": ("times",),
    "cycloid": ("duration",),
    "cubic_spline": ("times", "ends"),
    "quintic_spline": ("times", "ends"),
    "trapezoid": ("velocity", "acceleration", "start"),
}
OPTIONAL = ("degrees", "samples", "step", "ends", "start")
MOST_SAMPLES = 10_000_000


def read_motion(path: Path, model: Model) -> Motion:
    """The motion that a file describes, at whatever times."""
    return _read(path, model)[1]


def read_samples(path: Path, model: Model) -> tuple[Motion, np.ndarray]:
    """The motion that a file describes, and the times at which it wants to be sampled."""
    file, motion = _read(path, model)
    return motion, file.times(motion)


def _read(path: Path, model: Model) -> tuple[_MotionFile, Motion]:
    try:
        given = tomllib.loads(path.read_bytes().decode("utf-8"))
    except OSError as reason:
        raise unreadable(path, reason) from reason
    except UnicodeDecodeError as reason:
        raise ArgumentError(f"{path} is no text in UTF-8, expected a motion in TOML: save it so.") from reason
    except tomllib.TOMLDecodeError as reason:
        raise ArgumentError(f"{path} is not TOML ({reason}), expected a motion: correct that line.") from reason
    file = _MotionFile(path, given, model)
    file.check_keys()
    try:
        return file, file.motion()
    except ArgumentError as reason:
        prefix = "" if str(reason).startswith(str(path)) else f"{path}: "
        raise ArgumentError(f"{prefix}{reason}") from reason


class _MotionFile:
    """What was read from a file, for a robot."""

    def __init__(self, path: Path, given: Table, model: Model):
        self.path, self.given, self.model = path, given, model
        self.joints = model.joints
        self.kind: str = given.get("motion", "")

    def refuse(self, what: str) -> NoReturn:
        raise ArgumentError(f"{self.path} {what}: correct it.")

    def check_keys(self) -> None:
        if not isinstance(self.kind, str) or self.kind not in OWN:
            got = f"has motion = {shown(self.kind)}{nearest(self.kind, OWN)}" if self.kind else "has no key 'motion'"
            self.refuse(f"{got}, expected one of {', '.join(OWN)}")
        known = (*COMMON, *OWN[self.kind])
        for key in self.given:
            if key not in known:
                self.refuse(f"has the key {shown(key)}{nearest(key, known)}, expected some of {', '.join(known)}")
        for key in known:
            if key not in self.given and key not in OPTIONAL:
                self.refuse(f"has no key {key!r}, expected {', '.join(key for key in known if key not in OPTIONAL)}")

    def motion(self) -> Motion:
        points = self.points()
        match self.kind:
            case "quintic":
                return Quintic(points, self.given["times"])
            case "cycloid":
                if len(points) != 2:
                    self.refuse(f"has {len(points)} points, expected two for a cycloid")
                return Cycloid.between(points[0], points[1], self.given["duration"])
            case "trapezoid":
                limits = (self.limits(key) for key in ("velocity", "acceleration"))
                return Trapezoid(points, *limits, start=self.given.get("start", 0.0))
            case "cubic_spline":
                return CubicSpline(points, self.given["times"], self.given.get("ends", "rest"))
            case _:
                return QuinticSpline(points, self.given["times"], self.given.get("ends", "rest"))

    def points(self) -> np.ndarray:
        """Positions (points, joints) in radians and metres."""
        given = self.by_joint("joints")
        lists = {name: value for name, value in given.items() if isinstance(value, list)}
        if not lists:
            self.refuse("has no joint with several positions in [joints], expected one that moves, such as [0.0, 1.0]")
        first, count = next((name, len(value)) for name, value in lists.items())
        columns = []
        for name, value in given.items():
            column = value if isinstance(value, list) else [value] * count
            if len(column) != count:
                self.refuse(
                    f"has {len(column)} positions of {name} and {count} of {first}, expected as many, or one number "
                    "for a joint that stands still"
                )
            columns.append([self.number(entry, f"a position of {name}") for entry in column])
        return np.array(columns).T * self.units()

    def limits(self, key: str) -> np.ndarray:
        """One limit for all joints, or one for each, in radians and metres."""
        given = self.given[key]
        if not isinstance(given, dict):
            return self.number(given, key) * self.units()
        values = self.by_joint(key)
        return np.array([self.number(value, f"{key} of {name}") for name, value in values.items()]) * self.units()

    def by_joint(self, key: str) -> Table:
        """A table whose keys are the joints' names, in the robot's order."""
        given, names = self.given[key], [joint.name for joint in self.joints]
        if any(joint.type.nq > 1 for joint in self.joints):
            self.refuse(f"is for joints of one coordinate, but {self.model.name} has others, expected CSV for it")
        if not isinstance(given, dict):
            self.refuse(f"has {key} = {shown(given)}, expected a table [{key}] of joint names")
        for name in given:
            if name not in names:
                known = ", ".join(names[:6])
                self.refuse(f"has {shown(name)} in [{key}], no joint{nearest(name, names)}, expected {known}")
        for name in names:
            if name not in given:
                self.refuse(f"has no {name!r} in [{key}], expected every joint of {self.model.name}")
        return {name: given[name] for name in names}

    def units(self) -> np.ndarray:
        """What turns each joint's numbers into radians and metres."""
        degrees = self.given.get("degrees", False)
        if not isinstance(degrees, bool):
            self.refuse(f"has degrees = {shown(degrees)}, expected true or false")
        return np.array([math.pi / 180 if degrees and joint.type.turns else 1.0 for joint in self.joints])

    def number(self, value: object, what: str) -> float:
        if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value):
            self.refuse(f"has {shown(value)} as {what}, expected a finite number")
        return float(value)

    def times(self, motion: Motion) -> np.ndarray:
        """`samples` instants from start to end, or one every `step` seconds."""
        if ("samples" in self.given) == ("step" in self.given):
            both = "both samples and step" if "samples" in self.given else "neither samples nor step"
            self.refuse(f"has {both}, expected one of them")
        if "samples" in self.given:
            count = self.given["samples"]
            if isinstance(count, bool) or not isinstance(count, int) or not 2 <= count <= MOST_SAMPLES:
                self.refuse(f"has samples = {shown(count)}, expected a whole number from 2 to {MOST_SAMPLES}")
            return np.linspace(motion.start, motion.end, count)
        step = self.number(self.given["step"], "step")
        if not motion.duration / MOST_SAMPLES <= step <= motion.duration:
            self.refuse(
                f"has step = {step:g} for a motion of {motion.duration:g} s, expected a step that fits between once "
                f"and {MOST_SAMPLES} times"
            )
        # rounding must neither lose the last instant nor go past the end
        count = math.floor(motion.duration / step * (1 + 1e-12))
        return np.minimum(motion.start + step * np.arange(count + 1), motion.end)
