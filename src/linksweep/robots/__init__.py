"""Bundled robots. Each function gives a Robot; the `*_model` ones give its frozen description."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from linksweep.formats.bundled import model, names

if TYPE_CHECKING:
    from linksweep.description.model import Model
    from linksweep.robot.robot import Robot
    from linksweep.robots.general_arm import GeneralArm

__all__ = [
    "andrews",
    "chain",
    "chain_model",
    "four_bars",
    "general",
    "model",
    "names",
    "planar",
    "planar_model",
    "puma560",
    "puma560_model",
    "six_axis",
    "six_axis_model",
    "stanford",
    "stanford_model",
]


def __dir__() -> list[str]:
    return sorted(__all__)


def puma560() -> Robot:
    """PUMA 560, six revolute joints, with motor inertias (Armstrong, Khatib & Burdick 1986)."""
    return _robot(puma560_model())


def stanford() -> Robot:
    """Stanford arm, RRPRRR (Angeles, Ma & Rojas 1988, section 7.1, reconstructed)."""
    return _robot(stanford_model())


def six_axis() -> Robot:
    """Six-axis industrial arm (Angeles, Ma & Rojas 1988, section 7.2); warns of a published odd inertia."""
    return _robot(six_axis_model())


def planar(n: int, *, length: float = 1.0, mass: float = 1.0, gravity: float = 9.81) -> Robot:
    """`n` equal rods in the x-y plane, see `planar_model`."""
    return _robot(planar_model(n, length=length, mass=mass, gravity=gravity))


def chain(n: int, seed: int = 0, joints: str = "R") -> Robot:
    """A random chain of general geometry; `joints` is "R" or "mixed"."""
    return _robot(chain_model(n, seed, joints))


def general(joints: str = "RRRRRR", twist: str | Sequence[int | None] = "any") -> GeneralArm:
    """An arm of revolute (R) and prismatic (P) joints with its geometry and inertia as parameters, not numbers.

    twist: "any" angles between neighbouring axes, "right" ones, or one of None, 0, 90, -90, 180 degrees for each joint.
    """
    from linksweep.robots.general_arm import GeneralArm

    return GeneralArm(joints, twist)


def four_bars(windows: int = 1, *, length: float = 1.0, mass: float = 1.0, gravity: float = 9.81) -> Robot:
    """Rods in a row that form closed windows, see `linksweep.robots.closed_chains.four_bars`."""
    from linksweep.robots.closed_chains import four_bars

    return four_bars(windows, length=length, mass=mass, gravity=gravity)


def andrews() -> Robot:
    """Andrews' squeezing mechanism, see `linksweep.robots.closed_chains.andrews`."""
    from linksweep.robots.closed_chains import andrews

    return andrews()


def puma560_model() -> Model:
    """The description of `puma560`."""
    return model("puma560")


def stanford_model() -> Model:
    """The description of `stanford`."""
    return model("stanford")


def six_axis_model() -> Model:
    """The description of `six_axis`."""
    return model("six_axis")


def planar_model(n: int, *, length: float = 1.0, mass: float = 1.0, gravity: float = 9.81) -> Model:
    """Rodriguez 1987, section XII: `n` equal links in a plane.

    Uniform rods along x at q = 0, turning about z; gravity pulls along -y. "tool" is the free end of the last
    rod.
    """
    from linksweep.description.assembly import Part, assemble
    from linksweep.description.model import Inertial, Joint, Placement
    from linksweep.description.quantities import as_number
    from linksweep.robots.random_chains import check_count

    check_count(n, "n")
    length, mass, gravity = (
        as_number(value, what) for value, what in ((length, "length"), (mass, "mass"), (gravity, "gravity"))
    )
    across = mass * length**2 / 12
    rod = Inertial(mass, (length / 2, 0.0, 0.0), ((0.0, 0.0, 0.0), (0.0, across, 0.0), (0.0, 0.0, across)))
    end = Placement(position=(length, 0.0, 0.0))
    parts = [
        Part(
            f"link{i + 1}",
            f"link{i}" if i else "base",
            Joint(f"joint{i + 1}", placement=end if i else Placement()),
            rod,
        )
        for i in range(n)
    ]
    parts.append(Part("tool", f"link{n}", Joint("tool mount", "fixed", placement=end)))
    return assemble(f"planar{n}", parts, base="base", gravity=(0.0, -gravity, 0.0))


def chain_model(n: int, seed: int = 0, joints: str = "R") -> Model:
    """See `linksweep.robots.random_chains.chain_model`."""
    from linksweep.robots import random_chains

    return random_chains.chain_model(n, seed, joints)


def _robot(description: Model) -> Robot:
    from linksweep.robot.robot import Robot

    return Robot(description)
