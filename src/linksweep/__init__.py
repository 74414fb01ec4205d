"""Robot dynamics from published recursions, compiled for one robot, in front of NumPy.

The public names are loaded on first use, so that `import linksweep` and `linksweep --help` are quick.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

__version__ = "0.1.0"

if TYPE_CHECKING:
    from linksweep import conventions as conventions
    from linksweep import motion as motion
    from linksweep import plots as plots
    from linksweep import robots as robots
    from linksweep import simulation as simulation
    from linksweep import studies as studies
    from linksweep.checking import check as check
    from linksweep.coupling import CoupledRobot as CoupledRobot
    from linksweep.errors import ArgumentError as ArgumentError
    from linksweep.errors import BackendError as BackendError
    from linksweep.errors import DescriptionError as DescriptionError
    from linksweep.errors import LinksweepError as LinksweepError
    from linksweep.errors import ModelWarning as ModelWarning
    from linksweep.errors import SingularError as SingularError
    from linksweep.errors import SingularWarning as SingularWarning
    from linksweep.exact import prove as prove
    from linksweep.loading import load as load
    from linksweep.motion import follow as follow
    from linksweep.motion import inverse_kinematics as inverse_kinematics
    from linksweep.parameters import body as body
    from linksweep.robot import Robot as Robot
    from linksweep.simulation import simulate as simulate
    from linksweep.spatial_operators import operators as operators

_HOMES = {
    "ArgumentError": "linksweep.errors",
    "BackendError": "linksweep.errors",
    "CoupledRobot": "linksweep.coupling",
    "DescriptionError": "linksweep.errors",
    "LinksweepError": "linksweep.errors",
    "ModelWarning": "linksweep.errors",
    "Robot": "linksweep.robot",
    "SingularError": "linksweep.errors",
    "SingularWarning": "linksweep.errors",
    "body": "linksweep.parameters",
    "check": "linksweep.checking",
    "follow": "linksweep.motion",
    "inverse_kinematics": "linksweep.motion",
    "load": "linksweep.loading",
    "operators": "linksweep.spatial_operators",
    "prove": "linksweep.exact",
    "simulate": "linksweep.simulation",
}
_SUBPACKAGES = ("conventions", "motion", "plots", "robots", "simulation", "studies")

__all__ = [
    "ArgumentError",
    "BackendError",
    "CoupledRobot",
    "DescriptionError",
    "LinksweepError",
    "ModelWarning",
    "Robot",
    "SingularError",
    "SingularWarning",
    "__version__",
    "body",
    "check",
    "conventions",
    "follow",
    "inverse_kinematics",
    "load",
    "motion",
    "operators",
    "plots",
    "prove",
    "robots",
    "simulate",
    "simulation",
    "studies",
]


if not TYPE_CHECKING:  # a type checker would take every misspelt name for an object

    def __getattr__(name):
        """Import a public name when it is first asked for (PEP 562)."""
        if name in _SUBPACKAGES:
            return import_module(f"linksweep.{name}")
        if name in _HOMES:
            value = getattr(import_module(_HOMES[name]), name)
            globals()[name] = value
            return value
        raise AttributeError(f"module 'linksweep' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)  # what `linksweep.` completes: neither helpers nor modules that happen to be imported
