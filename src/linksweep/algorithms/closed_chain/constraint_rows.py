"""Rows of a constraint between two frames: residual, wrench and second time derivative of each row.

All quantities are relative to frame b, so a common motion of both frames has no effect and its columns are 0. Each row
is a wrench W at the origin of a, along the base axes. W . [u; s] is the time derivative of the row, with the angular
and linear velocity u and s of a relative to b. The constraint force is a multiple of +W on a and -W on b. Terms with u
and s in the second derivative appear where a contact slides or rotates.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ...spatial.algebra import ZERO_FORCE, ZERO_VEC, Force, Motion, Vec
from ...spatial.scalars import Scalar
from ...spatial.transforms import Pose

ZERO: Scalar = 0.0
TURN, ALIGN, SLIDE, REACH = "turn", "align", "slide", "reach"
ROWS = {  # for each kind: what is constrained, along which axes of b
    "rigid": ((TURN, "xyz"), (SLIDE, "xyz")),
    "point": ((SLIDE, "xyz"),),
    "hinge": ((ALIGN, "xy"), (SLIDE, "xyz")),
    "slider": ((TURN, "xyz"), (SLIDE, "xy")),
    "plane": ((SLIDE, "z"),),
    "line": ((SLIDE, "xy"),),
    "distance": ((REACH, "z"),),
    "soft_finger": ((TURN, "z"), (SLIDE, "xyz")),
}


@dataclass(slots=True)
class Row:
    """One row of a constraint: the constrained quantity, the axis of b, and the wrench at the origin of a."""

    held: str
    axis: Vec
    wrench: Force


def rows(kind: str, a: Pose, b: Pose, length: Scalar) -> list[Row]:
    """Return the rows of a constraint with their wrenches."""
    found: list[Row] = []
    for held, axes in ROWS[kind]:
        for name in axes:
            axis = getattr(b, name)
            if held == TURN:
                wrench = Force(axis, ZERO_VEC)
            elif held == ALIGN:
                wrench = Force(a.z.cross(axis), ZERO_VEC)
            elif held == SLIDE:
                wrench = Force(ZERO_VEC, axis)
            else:
                wrench = Force(ZERO_VEC, (a.p - b.p) * (1.0 / length))
            found.append(Row(held, axis, wrench))
    return found


def errors(kind: str, a: Pose, b: Pose, length: Scalar) -> list[Scalar]:
    """Return the residual of each row: radians (as 2 tan of half the angle) and meters.

    The rotation of a soft finger has residual 0: it constrains a velocity, not an angle (nonholonomic).
    """
    d = a.p - b.p
    turned = b.x.cross(a.x) + b.y.cross(a.y) + b.z.cross(a.z)
    cosines = b.x.dot(a.x) + b.y.dot(a.y) + b.z.dot(a.z)
    found: list[Scalar] = []
    for row in rows(kind, a, b, length):
        if row.held == TURN and kind == "soft_finger":
            found.append(0.0)
        elif row.held == TURN:
            found.append(row.axis.dot(turned) * 2.0 / (1.0 + cosines))
        elif row.held == ALIGN:
            found.append(row.axis.dot(a.z) * 2.0 / (1.0 + b.z.dot(a.z)))
        elif row.held == SLIDE:
            found.append(row.axis.dot(d))
        else:
            found.append((d.dot(d) - length * length) * (0.5 / length))
    return found


def gap(kind: str, a: Pose, b: Pose, length: Scalar, reach: Scalar) -> Scalar:
    """Return the squared residual of the constraint, angles in radians and lengths relative to `reach`."""
    d, turns, slides = a.p - b.p, ZERO, ZERO
    held = dict(ROWS[kind])
    if held.get(TURN) == "xyz":
        turned = b.x.cross(a.x) + b.y.cross(a.y) + b.z.cross(a.z)  # twice the sine, along the axis
        turns = turned.dot(turned) * 0.25
    elif ALIGN in held:
        turned = b.z.cross(a.z)
        turns = turned.dot(turned)
    if REACH in held:
        open_by = (d.dot(d) - length * length) * (0.5 / length)
        slides = open_by * open_by
    elif held[SLIDE] == "xyz":
        slides = d.dot(d)
    else:
        for name in held[SLIDE]:
            along = getattr(b, name).dot(d)
            slides = slides + along * along
    return turns + slides * (1.0 / (reach * reach))


def is_angular(kind: str) -> list[bool]:
    """Return for each row whether it constrains an angle; the others constrain a length."""
    return [held in (TURN, ALIGN) for held, axes in ROWS[kind] for _ in axes]


def second_derivatives(
    kind: str, a: Pose, b: Pose, length: Scalar, relative: Motion, of_a: Motion, of_b: Motion, spin_b: Vec
) -> list[Scalar]:
    """Return the second time derivative of each row.

    relative: [u; s]. of_a, of_b: accelerations of a and b at the origin of a; common terms such as gravity cancel.
    spin_b: angular velocity of b.
    """
    u, s = relative.angular, relative.linear
    turning = of_a.angular - of_b.angular - spin_b.cross(u)  # du/dt seen from b
    sliding = of_a.linear - of_b.linear - spin_b.cross(s) * 2.0  # d2(p_a)/dt2 seen from b: less Coriolis'
    found: list[Scalar] = []
    for row in rows(kind, a, b, length):
        if row.held == TURN:
            found.append(row.axis.dot(turning))
        elif row.held == ALIGN:
            found.append(row.wrench.moment.dot(turning) + row.axis.dot(u.cross(u.cross(a.z))))
        elif row.held == SLIDE:
            found.append(row.axis.dot(sliding))
        else:
            found.append(row.wrench.force.dot(sliding) + s.dot(s) * (1.0 / length))
    return found


def combined(wrenches: Sequence[Force], values: Sequence[Scalar]) -> Force:
    """Return the sum of wrenches, each multiplied by its value."""
    total = ZERO_FORCE
    for wrench, value in zip(wrenches, values, strict=True):
        total = total + wrench * value
    return total
