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
    from linksweep import robots as robots
    from linksweep.checking import check as check
    from linksweep.coupling import CoupledRobot as CoupledRobot
    from linksweep.errors import ArgumentError as ArgumentError
    from linksweep.errors import BackendError as BackendError
    from linksweep.errors import DescriptionError as DescriptionError
    from linksweep.errors import LinksweepError as LinksweepError
    from linksweep.errors import ModelWarning as ModelWarning
    from linksweep.errors import SingularError as SingularError
    from linksweep.loading import load as load
    from linksweep.robot import Robot as Robot
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
    "check": "linksweep.checking",
    "load": "linksweep.loading",
    "operators": "linksweep.spatial_operators",
}
_SUBPACKAGES = ("conventions", "motion", "robots")

__all__ = [
    "ArgumentError",
    "BackendError",
    "CoupledRobot",
    "DescriptionError",
    "LinksweepError",
    "ModelWarning",
    "Robot",
    "SingularError",
    "__version__",
    "check",
    "conventions",
    "load",
    "motion",
    "operators",
    "robots",
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
    return sorted({*globals(), *__all__})
