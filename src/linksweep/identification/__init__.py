"""System identification: `identify` fits parameters to logged torques, `excite` finds excitation trajectories."""

from .excitation import Excitation, excite
from .fit import Fit, Validation, identify

__all__ = ["Excitation", "Fit", "Validation", "excite", "identify"]
