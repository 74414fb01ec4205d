"""From logged torques to a robot: `identify` fits its numbers, `excite` makes the motions that show them."""

from .excitation import Excitation, excite
from .fit import Fit, identify

__all__ = ["Excitation", "Fit", "excite", "identify"]
