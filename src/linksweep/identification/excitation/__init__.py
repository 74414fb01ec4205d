"""Motions that show a robot's numbers."""

from .search import Excitation, excite

__all__ = ["Excitation", "excite"]
