"""Simulation: `simulate` integrates forward dynamics in time; controllers, contact models, results, ensembles."""

from .contacts import Disturbance, JointStops, Push, Surface
from .controllers import (
    PD,
    ComputedTorque,
    Constant,
    Controller,
    FeedForward,
    FrictionCompensation,
    GravityCompensation,
    Sampled,
    Signal,
    Zero,
    saturated,
)
from .ensembles import Ensemble, Rollouts, ensemble
from .gradient import Rollout, rollout
from .integrators import RK4, Adaptive, Integrator, SemiImplicitEuler
from .result import (
    Event,
    LimitCrossing,
    LimitExcess,
    Simulation,
    SimulationWarning,
    Table,
    TrackingError,
    compare,
    load,
)
from .run import simulate
from .sampled_control import Motor, Policy, SampledController, Sampling
from .stepper import State, Stepper, stepper
from .task_space import Admittance, OperationalSpace

__all__ = [
    "PD",
    "RK4",
    "Adaptive",
    "Admittance",
    "ComputedTorque",
    "Constant",
    "Controller",
    "Disturbance",
    "Ensemble",
    "Event",
    "FeedForward",
    "FrictionCompensation",
    "GravityCompensation",
    "Integrator",
    "JointStops",
    "LimitCrossing",
    "LimitExcess",
    "Motor",
    "OperationalSpace",
    "Policy",
    "Push",
    "Rollout",
    "Rollouts",
    "Sampled",
    "SampledController",
    "Sampling",
    "SemiImplicitEuler",
    "Signal",
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
