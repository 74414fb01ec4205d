"""Motions in TOML files: kind, positions of the joints, times, and sampling."""

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
KEYS = {
    "quintic": ("times",),
    "cycloid": ("duration",),
    "cubic_spline": ("times", "ends"),
    "quintic_spline": ("times", "ends"),
    "trapezoid": ("velocity", "acceleration", "start"),
}
OPTIONAL = ("degrees", "samples", "step", "ends", "start")
MAX_SAMPLES = 10_000_000


def read_motion(path: Path, model: Model) -> Motion:
    """Return the motion that a file describes."""
    return _read(path, model)[1]


def read_samples(path: Path, model: Model) -> tuple[Motion, np.ndarray]:
    """Return the motion that a file describes, and the times at which the file samples it."""
    file, motion = _read(path, model)
    return motion, file.times(motion)


def _read(path: Path, model: Model) -> tuple[_MotionFile, Motion]:
    try:
        settings = tomllib.loads(path.read_bytes().decode("utf-8"))
    except OSError as reason:
        raise unreadable(path, reason) from reason
    except UnicodeDecodeError as reason:
        raise ArgumentError(f"{path} is not UTF-8 text, expected a motion in TOML.") from reason
    except tomllib.TOMLDecodeError as reason:
        raise ArgumentError(f"{path} is not TOML ({reason}), expected a motion.") from reason
    file = _MotionFile(path, settings, model)
    file.check_keys()
    try:
        return file, file.motion()
    except ArgumentError as reason:
        prefix = "" if str(reason).startswith(str(path)) else f"{path}: "
        raise ArgumentError(f"{prefix}{reason}") from reason


class _MotionFile:
    """The settings of a motion file, for a robot."""

    def __init__(self, path: Path, settings: Table, model: Model):
        self.path, self.settings, self.model = path, settings, model
        self.joints = model.joints
        self.kind: str = settings.get("motion", "")

    def refuse(self, what: str) -> NoReturn:
        raise ArgumentError(f"{self.path} {what}.")

    def check_keys(self) -> None:
        if not isinstance(self.kind, str) or self.kind not in KEYS:
            got = f"has motion = {shown(self.kind)}{nearest(self.kind, KEYS)}" if self.kind else "has no key 'motion'"
            self.refuse(f"{got}, expected one of {', '.join(KEYS)}")
        known = (*COMMON, *KEYS[self.kind])
        for key in self.settings:
            if key not in known:
                self.refuse(f"has the key {shown(key)}{nearest(key, known)}, expected some of {', '.join(known)}")
        for key in known:
            if key not in self.settings and key not in OPTIONAL:
                self.refuse(f"has no key {key!r}, expected {', '.join(key for key in known if key not in OPTIONAL)}")

    def motion(self) -> Motion:
        points = self.points()
        match self.kind:
            case "quintic":
                return Quintic(points, self.settings["times"])
            case "cycloid":
                if len(points) != 2:
                    self.refuse(f"has {len(points)} points, expected two for a cycloid")
                return Cycloid.between(points[0], points[1], self.settings["duration"])
            case "trapezoid":
                limits = (self.limits(key) for key in ("velocity", "acceleration"))
                return Trapezoid(points, *limits, start=self.settings.get("start", 0.0))
            case "cubic_spline":
                return CubicSpline(points, self.settings["times"], self.settings.get("ends", "rest"))
            case _:
                return QuinticSpline(points, self.settings["times"], self.settings.get("ends", "rest"))

    def points(self) -> np.ndarray:
        """Return the positions (points, joints) in radians and meters."""
        positions = self.by_joint("joints")
        lists = {name: value for name, value in positions.items() if isinstance(value, list)}
        if not lists:
            self.refuse("has no joint with several positions in [joints], expected one that moves, such as [0.0, 1.0]")
        first, count = next((name, len(value)) for name, value in lists.items())
        columns = []
        for name, value in positions.items():
            column = value if isinstance(value, list) else [value] * count
            if len(column) != count:
                self.refuse(
                    f"has {len(column)} positions of {name} and {count} of {first}, expected as many, or one number "
                    "for a joint that does not move"
                )
            columns.append([self.number(entry, f"a position of {name}") for entry in column])
        return np.array(columns).T * self.units()

    def limits(self, key: str) -> np.ndarray:
        """Return one limit for all joints, or one for each, in radians and meters."""
        limit = self.settings[key]
        if not isinstance(limit, dict):
            return self.number(limit, key) * self.units()
        values = self.by_joint(key)
        return np.array([self.number(value, f"{key} of {name}") for name, value in values.items()]) * self.units()

    def by_joint(self, key: str) -> Table:
        """Return a table whose keys are the names of the joints, in the robot's order."""
        table, names = self.settings[key], [joint.name for joint in self.joints]
        if any(joint.type.nq > 1 for joint in self.joints):
            self.refuse(f"is for joints of one coordinate, but {self.model.name} has others, expected CSV for it")
        if not isinstance(table, dict):
            self.refuse(f"has {key} = {shown(table)}, expected a table [{key}] of joint names")
        for name in table:
            if name not in names:
                known = ", ".join(names[:6])
                self.refuse(f"has {shown(name)} in [{key}], no joint{nearest(name, names)}, expected {known}")
        for name in names:
            if name not in table:
                self.refuse(f"has no {name!r} in [{key}], expected every joint of {self.model.name}")
        return {name: table[name] for name in names}

    def units(self) -> np.ndarray:
        """Return the factor of each joint to radians and meters."""
        degrees = self.settings.get("degrees", False)
        if not isinstance(degrees, bool):
            self.refuse(f"has degrees = {shown(degrees)}, expected true or false")
        return np.array([math.pi / 180 if degrees and joint.type.turns else 1.0 for joint in self.joints])

    def number(self, value: object, what: str) -> float:
        if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value):
            self.refuse(f"has {shown(value)} as {what}, expected a finite number")
        return float(value)

    def times(self, motion: Motion) -> np.ndarray:
        """Return `samples` times from start to end, or one every `step` seconds."""
        if ("samples" in self.settings) == ("step" in self.settings):
            both = "both samples and step" if "samples" in self.settings else "neither samples nor step"
            self.refuse(f"has {both}, expected one of them")
        if "samples" in self.settings:
            count = self.settings["samples"]
            if isinstance(count, bool) or not isinstance(count, int) or not 2 <= count <= MAX_SAMPLES:
                self.refuse(f"has samples = {shown(count)}, expected a whole number from 2 to {MAX_SAMPLES}")
            return np.linspace(motion.start, motion.end, count)
        step = self.number(self.settings["step"], "step")
        if not motion.duration / MAX_SAMPLES <= step <= motion.duration:
            self.refuse(
                f"has step = {step:g} for a motion of {motion.duration:g} s, expected a step that fits between once "
                f"and {MAX_SAMPLES} times"
            )
        # rounding must neither lose the last time nor exceed the end
        count = math.floor(motion.duration / step * (1 + 1e-12))
        return np.minimum(motion.start + step * np.arange(count + 1), motion.end)
