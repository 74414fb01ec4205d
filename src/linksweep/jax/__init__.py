"""Compiled functions in JAX: `linksweep.jax.wrap(robot.compile("forward_dynamics"))` (extra `jax`)."""

from .functions import export as export
from .functions import wrap as wrap

__all__ = ["export", "wrap"]
