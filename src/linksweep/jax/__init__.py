"""Compiled functions in JAX: `linksweep.jax.wrap(robot.compile("forward_dynamics"))` (extra `jax`)."""

from ..interop.jax_functions import export as export
from ..interop.jax_functions import wrap as wrap

__all__ = ["export", "wrap"]
