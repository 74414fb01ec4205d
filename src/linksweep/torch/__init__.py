"""Compiled functions in PyTorch: `linksweep.torch.wrap(robot.compile("inverse_dynamics"))` (extra `torch`)."""

from .functions import wrap as wrap

__all__ = ["wrap"]
