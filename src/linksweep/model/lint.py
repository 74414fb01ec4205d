"""Findings about wrong or doubtful values of a model.

Readers raise for most of these already. A Model that was built or changed in Python is checked here for the first time.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from .model import Link, Model

ROUNDING = 1e-9  # relative to the largest moment; values rounded to six digits are farther from zero
TRIANGLE = 1e-6  # rods written with six digits are fine
HUGE_RATIO = 1e6  # of masses; beyond it float64 accelerations lose more digits than users expect


@dataclass(frozen=True, slots=True)
class Finding:
    """A finding. level: "error" or "warning"; where: the links or joints; fatal: dynamics cannot be computed."""

    level: str
    what: str
    where: tuple[str, ...]
    fatal: bool = False

    def __str__(self) -> str:
        names = ", ".join(self.where[:8]) + (f" and {len(self.where) - 8} more" if len(self.where) > 8 else "")
        return f"{self.level}: {names}: {self.what}"


def lint(model: Model, singular_joints: Sequence[str] = ()) -> tuple[Finding, ...]:
    """Return the findings, errors first, each with all links or joints that it applies to.

    singular_joints: joints that move no inertia in any configuration. Finding them takes dynamics.
    """
    links = [model.links[i] for i in model.document_order]
    findings = []
    for level, what, fatal, name, holds in RULES:
        where = tuple(name(link) for link in links if holds(link))
        if where:
            findings.append(Finding(level, what, where, fatal))
    if singular_joints:
        what = "no inertia moves with this joint, so forward dynamics and the inverse of M do not exist"
        findings.append(Finding("warning", what, tuple(singular_joints)))
    masses = [float(link.inertial.mass) for link in links if link.inertial.mass > 0]
    if masses and max(masses) > HUGE_RATIO * min(masses):
        extremes = tuple(
            next(link.name for link in links if float(link.inertial.mass) == mass)
            for mass in (max(masses), min(masses))
        )
        what = f"masses differ by a factor of {max(masses) / min(masses):.0e}, so accelerations lose digits"
        findings.append(Finding("warning", what, extremes))
    return tuple(sorted(findings, key=lambda finding: finding.level != "error"))


def _joint_name(link: Link) -> str:
    return link.joint.name


def _link_name(link: Link) -> str:
    return link.name


def _moments(link: Link) -> np.ndarray:
    """The principal moments, ascending."""
    return np.linalg.eigvalsh(np.array(link.inertial.inertia, dtype=float))


def _not_finite(link: Link) -> bool:
    joint, inertial = link.joint, link.inertial
    numbers = [
        *joint.axis, *joint.placement.position, *np.ravel(joint.placement.rotation), joint.armature, joint.damping,
        joint.friction, joint.torque_offset, inertial.mass, *inertial.com, *np.ravel(inertial.inertia),
    ]  # fmt: skip
    return not np.isfinite(np.array(numbers, dtype=float)).all()


def _bad_axis(link: Link) -> bool:
    if not link.joint.type.has_axis:
        return False
    return not abs(np.linalg.norm(np.array(link.joint.axis, dtype=float)) - 1.0) <= 1e-9


def _bad_rotation(link: Link) -> bool:
    rotation = np.array(link.joint.placement.rotation, dtype=float)
    return not (np.abs(rotation @ rotation.T - np.eye(3)).max() <= 1e-6 and np.linalg.det(rotation) > 0)


def _lopsided(link: Link) -> bool:
    inertia = np.array(link.inertial.inertia, dtype=float)
    return bool(np.abs(inertia - inertia.T).max() > ROUNDING * np.abs(inertia).max())


def _indefinite(link: Link) -> bool:
    moments = _moments(link)
    return bool(moments[0] < -ROUNDING * abs(moments).max())


def _axis_moment_only(link: Link) -> bool:
    """Whether a link has no mass and one moment, about its joint: enough for a link that only spins about it."""
    if link.joint.type.slides or link.joint.type.nv > 1:
        return False
    axis = np.array(link.joint.axis, dtype=float)
    inertia = np.array(link.inertial.inertia, dtype=float)
    along = float(axis @ inertia @ axis)
    return (
        link.inertial.mass == 0
        and along > 0
        and bool(np.abs(inertia - along * np.outer(axis, axis)).max() < 1e-12 * along)
    )


def _thin(link: Link) -> bool:
    moments = _moments(link)
    flat = link.inertial.mass > 0 and abs(moments[0]) <= ROUNDING * moments[2]
    return bool(flat) and not _breaks_triangle(link)


def _breaks_triangle(link: Link) -> bool:
    moments = _moments(link)
    excess = moments[2] - moments[1] - moments[0]
    return bool(excess > TRIANGLE * moments[2]) and not _indefinite(link) and not _axis_moment_only(link)


def _massless(link: Link) -> bool:
    return link.inertial.mass == 0 and not np.any(np.array(link.inertial.inertia, dtype=float))


def _moments_without_mass(link: Link) -> bool:
    return link.inertial.mass == 0 and not _massless(link) and not _axis_moment_only(link)


RULES: tuple[tuple[str, str, bool, Callable[[Link], str], Callable[[Link], bool]], ...] = (
    # level, text, fatal, name to report, condition
    ("error", "a value is infinite or NaN", True, _link_name, _not_finite),
    ("error", "the joint's axis is not of length 1", True, _joint_name, _bad_axis),
    ("error", "the joint's placement is not a proper rotation", True, _joint_name, _bad_rotation),
    ("error", "the mass is negative", False, _link_name, lambda link: link.inertial.mass < 0),
    ("error", "the armature is negative", False, _joint_name, lambda link: link.joint.armature < 0),
    ("error", "the inertia is not symmetric", False, _link_name, _lopsided),
    ("error", "the inertia has a negative principal moment: not physically realisable", False, _link_name, _indefinite),
    ("warning", "the inertia violates the triangle inequality", False, _link_name, _breaks_triangle),
    ("warning", "the inertia is not positive definite: a thin rod or a point", False, _link_name, _thin),
    ("warning", "the link moves and has neither mass nor inertia", False, _link_name, _massless),
    ("warning", "the link has moments of inertia but no mass", False, _link_name, _moments_without_mass),
    ("warning", "the only inertia is a moment about its own joint", False, _link_name, _axis_moment_only),
    ("warning", "the damping is negative and accelerates the joint", False, _joint_name,
     lambda link: link.joint.damping < 0),
    ("warning", "the lower limit is above the upper", False, _joint_name,
     lambda link: link.joint.limits.lower > link.joint.limits.upper),
)  # fmt: skip


__all__ = ["Finding", "lint"]
