"""The spatial operators of a serial chain as scipy LinearOperators: G. Rodriguez and K. Kreutz 1988, Part I.

The package is not called `operators`, because importing a submodule sets it as an attribute of linksweep, where
`linksweep.operators` is the function.
"""

from .operators import SpatialOperators, operators

__all__ = ["SpatialOperators", "operators"]
