"""Closed mechanisms with motors at some of their joints: a five-bar, delta robots, four-bars, a gripper."""

from __future__ import annotations

import functools

import numpy as np

import linksweep as ls
from linksweep.model.assembly import Part, assemble
from linksweep.model.model import Inertial, Joint, Limits, Placement

X, Y, Z = (1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0)


def rod(mass: float, length: float) -> Inertial:
    across = mass * length**2 / 12.0
    return Inertial(mass, (length / 2.0, 0.0, 0.0), ((across / 50.0, 0.0, 0.0), (0.0, across, 0.0), (0.0, 0.0, across)))


def ball(mass: float, inertia: float) -> Inertial:
    return Inertial(mass, (0.0, 0.0, 0.0), ((inertia, 0.0, 0.0), (0.0, inertia, 0.0), (0.0, 0.0, inertia)))


def fixed(name: str, on: str, *position: float) -> Part:
    return Part(name, on, Joint(f"{name} mount", "fixed", placement=Placement(position=position)))  # type: ignore[arg-type]


@functools.cache
def five_bar() -> ls.Robot:
    """Two arms of two links in a plane whose ends meet; motors at left1 and right1."""
    parts = []
    for side, x in (("left", -0.1), ("right", 0.1)):
        base = Joint(f"{side}1", placement=Placement(position=(x, 0.0, 0.0)), limits=Limits(velocity=6.0, effort=20.0))
        parts.append(Part(f"{side}_upper", "ground", base, rod(0.5, 0.25)))
        elbow = Joint(f"{side}2", placement=Placement(position=(0.25, 0.0, 0.0)))
        parts.append(Part(f"{side}_lower", f"{side}_upper", elbow, rod(0.4, 0.3)))
        parts.append(fixed(f"{side}_tip", f"{side}_lower", 0.3, 0.0, 0.0))
    robot = ls.Robot(assemble("five-bar", parts, base="ground", gravity=(0.0, -9.81, 0.0)))
    return robot.with_constraints([ls.Constraint("line", "right_tip", "left_tip", name="loop")])


FIVE_BAR = np.array([2.2, -1.1, 0.9, 1.1])  # near a pose that meets the constraints, elbows out


@functools.cache
def delta(rods: bool = False) -> ls.Robot:
    """A delta robot: three motors, and a platform on passive slides, or on the rods themselves.

    rods=False: the rods are distances without a mass. rods=True: bodies on universal joints at the elbows, whose ends
    are points of the platform.
    """
    parts = [
        Part("carriage_x", "base", Joint("x", "prismatic", axis=X, placement=Placement(position=(0.0, 0.0, -0.35)))),
        Part("carriage_y", "carriage_x", Joint("y", "prismatic", axis=Y)),
        Part("platform", "carriage_y", Joint("z", "prismatic", axis=Z), ball(0.3, 1e-4)),
    ]  # fmt: skip
    ties = []
    for k in range(3):
        c, s = np.cos(2.0 * np.pi * k / 3.0), np.sin(2.0 * np.pi * k / 3.0)
        around = ((c, -s, 0.0), (s, c, 0.0), (0.0, 0.0, 1.0))
        motor = Joint(f"motor{k}", axis=Y, placement=Placement(around, (0.12 * c, 0.12 * s, 0.0)), armature=1e-3)
        parts.append(Part(f"arm{k}", "base", motor, rod(0.2, 0.2)))
        parts.append(fixed(f"corner{k}", "platform", 0.04 * c, 0.04 * s, 0.0))
        if rods:
            elbow = Joint(f"elbow{k}", axis=Y, placement=Placement(position=(0.2, 0.0, 0.0)))
            parts.append(
                Part(
                    f"cross{k}",
                    f"arm{k}",
                    elbow,
                    ball(0.01, 1e-6),
                )
            )
            parts.append(Part(f"rod{k}", f"cross{k}", Joint(f"side{k}", axis=Z), rod(0.1, 0.4)))
            parts.append(fixed(f"end{k}", f"rod{k}", 0.4, 0.0, 0.0))
            ties.append(ls.Constraint("point", f"end{k}", f"corner{k}", name=f"rod {k}"))
        else:
            parts.append(fixed(f"elbow{k}", f"arm{k}", 0.2, 0.0, 0.0))
            ties.append(ls.Constraint("distance", f"elbow{k}", f"corner{k}", length=0.4, name=f"rod {k}"))
    return ls.Robot(assemble("delta with rods" if rods else "delta", parts, base="base")).with_constraints(ties)


def delta_pose(rods: bool = False) -> np.ndarray:
    """Coordinates that meet the constraints, with the platform below the middle."""
    robot = delta(rods)
    start = {"z": -0.05, **{f"motor{k}": 0.3 for k in range(3)}, **{f"elbow{k}": 1.6 for k in range(3)}}
    return robot.project(np.array([start.get(name, 0.0) for name in robot.joint_names]))


@functools.cache
def gripper() -> ls.Robot:
    """An arm of three joints with two fingers: the second mirrors the first (mimic), each on a four-bar linkage."""
    parts = [
        Part("upper", "base", Joint("shoulder", axis=Z), rod(2.0, 0.4)),
        Part("lower", "upper", Joint("elbow", axis=Z, placement=Placement(position=(0.4, 0.0, 0.0))), rod(1.5, 0.4)),
        Part("hand", "lower", Joint("wrist", axis=Z, placement=Placement(position=(0.4, 0.0, 0.0))), rod(0.5, 0.1)),
    ]
    ties, width = [], 0.03
    for side, y in (("left", 1.0), ("right", -1.0)):
        crank = Joint(f"{side}_crank", axis=Z, placement=Placement(position=(0.1, y * width, 0.0)))
        parts.append(Part(f"{side}_crank_link", "hand", crank, rod(0.05, 0.06)))
        pad = Joint(f"{side}_pad", axis=Z, placement=Placement(position=(0.06, 0.0, 0.0)))
        parts.append(Part(f"{side}_finger", f"{side}_crank_link", pad, rod(0.05, 0.05)))
        parts.append(fixed(f"{side}_tip", f"{side}_finger", 0.05, 0.0, 0.0))
        follower = Joint(f"{side}_follower", axis=Z, placement=Placement(position=(0.1, y * (width + 0.02), 0.0)))
        parts.append(Part(f"{side}_follower_link", "hand", follower, rod(0.03, 0.06)))
        parts.append(fixed(f"{side}_follower_end", f"{side}_follower_link", 0.06, 0.0, 0.0))
        parts.append(fixed(f"{side}_heel", f"{side}_finger", 0.0, y * 0.02, 0.0))
        ties.append(ls.Constraint("line", f"{side}_follower_end", f"{side}_heel", name=f"{side} linkage"))
    robot = ls.Robot(assemble("gripper", parts, base="base", gravity=(0.0, -9.81, 0.0)))
    return robot.with_constraints(ties).with_couplings([ls.Coupling("right_crank", "left_crank", -1.0)])


GRIPPER = {"shoulder": 0.4, "elbow": 0.7, "wrist": -0.5, "left_crank": 0.3, "left_pad": -0.3, "left_follower": 0.3,
           "right_pad": 0.3, "right_follower": -0.3}  # fmt: skip


def gripper_pose() -> np.ndarray:
    robot = gripper()
    return robot.project(np.array([GRIPPER[name] for name in robot.joint_names]))


MOTORS = {
    "five-bar": ("left1", "right1"),
    "delta": ("motor0", "motor1", "motor2"),
    "delta with rods": ("motor0", "motor1", "motor2"),
    "1-four-bar": ("post0",),
    "gripper": ("shoulder", "elbow", "wrist", "left_crank"),
}
