"""Bundled and generated robots. Functions return a Robot; those named `*_model` return its Model."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from typing import TYPE_CHECKING

from ..model.formats.bundled import model, names

if TYPE_CHECKING:
    from ..model.model import Model
    from ..robot.robot import Robot
    from .general_arm import GeneralArm
    from .mechanisms import andrews as andrews
    from .mechanisms import chain_model as chain_model
    from .mechanisms import four_bars as four_bars
    from .mechanisms import planar_model as planar_model

__all__ = [
    "andrews",
    "chain",
    "chain_model",
    "four_bars",
    "gen3",
    "general",
    "iiwa14",
    "model",
    "names",
    "panda",
    "planar",
    "planar_model",
    "puma560",
    "puma560_model",
    "six_axis",
    "six_axis_model",
    "stanford",
    "stanford_model",
    "ur5e",
    "ur10e",
]


if not TYPE_CHECKING:  # `names` needs no NumPy: the module of mechanisms is imported when it is first used

    def __getattr__(name):
        if name in ("andrews", "chain_model", "four_bars", "planar_model"):
            return getattr(import_module(".mechanisms", __name__), name)
        raise AttributeError(f"module 'linksweep.robots' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)


def panda() -> Robot:
    """Return the Franka Emika Panda without hand: seven joints, dynamics identified by Gaz et al. 2019."""
    return _robot(model("panda"))


def ur5e() -> Robot:
    """Return the Universal Robots UR5e: six joints, parameters as in the manufacturer's ROS package."""
    return _robot(model("ur5e"))


def ur10e() -> Robot:
    """Return the Universal Robots UR10e: six joints, parameters as in the manufacturer's ROS package."""
    return _robot(model("ur10e"))


def iiwa14() -> Robot:
    """Return the KUKA LBR iiwa 14 R820: seven joints, with the inertial parameters of Drake's model."""
    return _robot(model("iiwa14"))


def gen3() -> Robot:
    """Return the Kinova Gen3 with vision module: seven joints, parameters as in the manufacturer's ROS package."""
    return _robot(model("gen3"))


def puma560() -> Robot:
    """Return the PUMA 560: six revolute joints, with motor inertias (Armstrong, Khatib & Burdick 1986)."""
    return _robot(puma560_model())


def stanford() -> Robot:
    """Return the Stanford arm, RRPRRR (Angeles, Ma & Rojas 1988, section 7.1, reconstructed)."""
    return _robot(stanford_model())


def six_axis() -> Robot:
    """Return a six-axis industrial arm (Angeles, Ma & Rojas 1988, section 7.2); warns about a published inertia."""
    return _robot(six_axis_model())


def planar(n: int, *, length: float = 1.0, mass: float = 1.0, gravity: float = 9.81) -> Robot:
    """Return a chain of `n` equal rods in the x-y plane: see `planar_model`."""
    from .mechanisms import planar_model

    return _robot(planar_model(n, length=length, mass=mass, gravity=gravity))


def chain(n: int, seed: int = 0, joints: str = "R") -> Robot:
    """Return a random chain of general geometry: see `chain_model`."""
    from .mechanisms import chain_model

    return _robot(chain_model(n, seed, joints))


def general(joints: str = "RRRRRR", twist: str | Sequence[int | None] = "any") -> GeneralArm:
    """Return an arm of revolute (R) and prismatic (P) joints with symbolic geometry and inertia.

    Parameters
    ----------
    joints : str
        One letter for each joint, R or P.
    twist : "any", "right" or a sequence
        Angles between neighbouring axes: arbitrary, right angles, or one of None (arbitrary), 0, 90, -90 and 180
        degrees for each joint.
    """
    from .general_arm import GeneralArm

    return GeneralArm(joints, twist)


def puma560_model() -> Model:
    """Return the Model of `puma560`."""
    return model("puma560")


def stanford_model() -> Model:
    """Return the Model of `stanford`."""
    return model("stanford")


def six_axis_model() -> Model:
    """Return the Model of `six_axis`."""
    return model("six_axis")


def _robot(model: Model) -> Robot:
    from ..robot.robot import Robot

    return Robot(model)
