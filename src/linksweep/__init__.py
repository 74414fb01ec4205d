"""Robot dynamics from published recursions, compiled for one robot, in front of NumPy.

The public names are loaded on first use, so that `import linksweep` and `linksweep --help` are quick.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from linksweep.support import former_names
from linksweep.support.settings import __version__ as __version__

if TYPE_CHECKING:
    from linksweep import identification as identification
    from linksweep import motion as motion
    from linksweep import plots as plots
    from linksweep import robots as robots
    from linksweep import simulation as simulation
    from linksweep import viewer as viewer
    from linksweep.backends.registry import use_backend as use_backend
    from linksweep.errors import ArgumentError as ArgumentError
    from linksweep.errors import BackendError as BackendError
    from linksweep.errors import DescriptionError as DescriptionError
    from linksweep.errors import LinksweepError as LinksweepError
    from linksweep.errors import LogWarning as LogWarning
    from linksweep.errors import ModelWarning as ModelWarning
    from linksweep.errors import SingularError as SingularError
    from linksweep.errors import SingularWarning as SingularWarning
    from linksweep.files import JointLog as JointLog
    from linksweep.files import read_log as read_log
    from linksweep.files.streaming import stream as stream
    from linksweep.functions.parameters import body as body
    from linksweep.identification import excite as excite
    from linksweep.identification import identify as identify
    from linksweep.model.constraints import Constraint as Constraint
    from linksweep.model.constraints import Spring as Spring
    from linksweep.model.model import Coupling as Coupling
    from linksweep.motion import follow as follow
    from linksweep.motion import inverse_kinematics as inverse_kinematics
    from linksweep.papers import studies as studies
    from linksweep.papers.exact import prove as prove
    from linksweep.papers.spatial_operators import operators as operators
    from linksweep.robot import conventions as conventions
    from linksweep.robot.checking import check as check
    from linksweep.robot.grasps import Contact as Contact
    from linksweep.robot.grasps import Grasp as Grasp
    from linksweep.robot.loading import load as load
    from linksweep.robot.loading import scene as scene
    from linksweep.robot.robot import Robot as Robot
    from linksweep.simulation import ensemble as ensemble
    from linksweep.simulation import rollout as rollout
    from linksweep.simulation import simulate as simulate
    from linksweep.simulation import stepper as stepper

_HOMES = {
    "ArgumentError": "linksweep.errors",
    "BackendError": "linksweep.errors",
    "Constraint": "linksweep.model.constraints",
    "Contact": "linksweep.robot.grasps",
    "Coupling": "linksweep.model.model",
    "DescriptionError": "linksweep.errors",
    "Grasp": "linksweep.robot.grasps",
    "JointLog": "linksweep.files",
    "LinksweepError": "linksweep.errors",
    "LogWarning": "linksweep.errors",
    "ModelWarning": "linksweep.errors",
    "Robot": "linksweep.robot.robot",
    "SingularError": "linksweep.errors",
    "SingularWarning": "linksweep.errors",
    "Spring": "linksweep.model.constraints",
    "body": "linksweep.functions.parameters",
    "check": "linksweep.robot.checking",
    "ensemble": "linksweep.simulation",
    "excite": "linksweep.identification",
    "follow": "linksweep.motion",
    "identify": "linksweep.identification",
    "inverse_kinematics": "linksweep.motion",
    "load": "linksweep.robot.loading",
    "operators": "linksweep.papers.spatial_operators",
    "prove": "linksweep.papers.exact",
    "read_log": "linksweep.files",
    "rollout": "linksweep.simulation",
    "scene": "linksweep.robot.loading",
    "simulate": "linksweep.simulation",
    "use_backend": "linksweep.backends.registry",
    "stepper": "linksweep.simulation",
    "stream": "linksweep.files.streaming",
}
_MODULES = {"conventions": "linksweep.robot.conventions", "studies": "linksweep.papers.studies"}
_SUBPACKAGES = ("identification", "motion", "plots", "robots", "simulation", "viewer")

__all__ = [
    "ArgumentError",
    "BackendError",
    "Constraint",
    "Contact",
    "Coupling",
    "DescriptionError",
    "Grasp",
    "JointLog",
    "LinksweepError",
    "LogWarning",
    "ModelWarning",
    "Robot",
    "SingularError",
    "SingularWarning",
    "Spring",
    "__version__",
    "body",
    "check",
    "conventions",
    "ensemble",
    "excite",
    "follow",
    "identification",
    "identify",
    "inverse_kinematics",
    "load",
    "motion",
    "operators",
    "plots",
    "prove",
    "read_log",
    "robots",
    "rollout",
    "scene",
    "simulate",
    "simulation",
    "stepper",
    "stream",
    "studies",
    "use_backend",
    "viewer",
]


former_names.install()

if not TYPE_CHECKING:  # a type checker would take every misspelt name for an object

    def __getattr__(name):
        """Import a public name when it is first asked for (PEP 562)."""
        if name in _MODULES or name in _SUBPACKAGES:
            return import_module(_MODULES.get(name, f"linksweep.{name}"))
        if name in _HOMES:
            value = getattr(import_module(_HOMES[name]), name)
            globals()[name] = value
            return value
        raise AttributeError(f"module 'linksweep' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)  # what `linksweep.` completes: neither helpers nor modules that happen to be imported
