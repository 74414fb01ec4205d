"""Integrating forward dynamics in time: `simulate`, the laws that drive the joints, and what comes out."""

from .answers import LimitExcess, Table, TrackingError, compare
from .control.composed import (
    Admittance,
    FrictionCompensation,
    GravityCompensation,
    OperationalSpace,
    Push,
    Surface,
    saturated,
)
from .control.motor import Motor
from .control.sampled import Sampling
from .ensembles import Ensemble, ensemble
from .gradient import Rollout, rollout
from .laws import PD, ComputedTorque, Constant, FeedForward, Sampled, Zero
from .result import Event, LimitCrossing, Simulation, SimulationWarning
from .rollouts import Rollouts
from .run import simulate
from .stepper import State, Stepper, stepper
from .storage import load

__all__ = [
    "PD",
    "Admittance",
    "ComputedTorque",
    "Constant",
    "Ensemble",
    "Event",
    "FeedForward",
    "FrictionCompensation",
    "GravityCompensation",
    "LimitCrossing",
    "LimitExcess",
    "Motor",
    "OperationalSpace",
    "Push",
    "Rollout",
    "Rollouts",
    "Sampled",
    "Sampling",
    "Simulation",
    "SimulationWarning",
    "State",
    "Stepper",
    "Surface",
    "Table",
    "TrackingError",
    "Zero",
    "compare",
    "ensemble",
    "load",
    "rollout",
    "saturated",
    "simulate",
    "stepper",
]


def __dir__() -> list[str]:
    return sorted(__all__)
