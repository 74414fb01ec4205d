"""From logged torques to a robot: `identify` fits its parameters, `excite` makes motions that determine them."""

from .excitation import Excitation, excite
from .fit import Fit, Validation, identify

__all__ = ["Excitation", "Fit", "Validation", "excite", "identify"]
