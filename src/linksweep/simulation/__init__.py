"""Integrating forward dynamics in time: `simulate`, the laws that drive the joints, and what comes out."""

from .laws import PD, ComputedTorque, Constant, FeedForward, Sampled, Zero
from .result import Event, LimitCrossing, Simulation, SimulationWarning
from .run import simulate
from .storage import load

__all__ = [
    "PD",
    "ComputedTorque",
    "Constant",
    "Event",
    "FeedForward",
    "LimitCrossing",
    "Sampled",
    "Simulation",
    "SimulationWarning",
    "Zero",
    "load",
    "simulate",
]


def __dir__() -> list[str]:
    return sorted(__all__)
