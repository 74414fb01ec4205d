"""Integrators of `simulate` with their options, and the formulas of their steps over any scalar.

The formulas are traced into machine code and run on NumPy columns alike. Coordinates and velocities are flat lists in
the order of the robot's joints; each joint type (joints/) relates its own.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import DTypeLike

from ..backends.threads import checked_threads
from ..errors import ArgumentError
from ..mechanism.canonical import CanonicalModel
from ..mechanism.coordinates import Values, joined, moved, normalized
from ..spatial.scalars import Scalar
from ..support.checks import one_of, real_number, whole_number
from ..support.messages import shown

Accelerate = Callable[[int, Values, Values], tuple[Values, Values]]  # (stage, q, qd) -> (qdd, tau)


@dataclass(frozen=True, kw_only=True)
class Integrator:
    """How a simulation is computed; use `RK4`, `SemiImplicitEuler` or `Adaptive`.

    method: of forward dynamics. constraints: "project" returns a robot with constraints onto them after each step,
    along the shortest correction in the metric of M; (kp, kd) are Baumgarte's gains instead, with which the constraint
    error e obeys e'' + kd e' + kp e = 0. limits: "record" crossings of joint limits, "ignore" them, or "stop" at the
    first (`Adaptive` only). dtype: "float64" or "float32". threads: native threads that share a batch. backend: of the
    compiled step. progress: show a bar on long runs if stderr is a terminal.
    """

    name: ClassVar[str] = ""
    stages: ClassVar[int] = 3  # times of a step at which a controller is evaluated: beginning, middle, end
    evaluations: ClassVar[int] = 1  # of the dynamics in a step
    method: str | None = None
    constraints: str | Sequence[float] = "project"
    limits: str = "record"
    dtype: DTypeLike = "float64"
    threads: int = 1
    backend: str | None = None
    progress: bool = True

    def __post_init__(self) -> None:
        one_of("limits", self.limits, ("record", "stop", "ignore"))
        if self.limits == "stop" and not isinstance(self, Adaptive):
            raise ArgumentError("limits='stop' needs integrator='adaptive': fixed steps report crossings only.")
        dtype: object = self.dtype
        if not isinstance(dtype, str):
            with contextlib.suppress(TypeError):  # reported below
                dtype = np.dtype(self.dtype).name
        object.__setattr__(self, "dtype", one_of("dtype", dtype, ("float64", "float32")))
        object.__setattr__(self, "threads", checked_threads(self.threads))

    @staticmethod
    def step(model: CanonicalModel, accelerate: Accelerate, q: Values, qd: Values, dt: Scalar) -> tuple[Values, ...]:
        """Return q and qd after dt, and qdd and tau at the beginning of the step."""
        raise NotImplementedError


@dataclass(frozen=True, kw_only=True)
class RK4(Integrator):
    """Classical Runge-Kutta steps of dt, of whole batches at once. Options are those of `Integrator`."""

    name = "rk4"
    evaluations = 4

    @staticmethod
    def step(model: CanonicalModel, accelerate: Accelerate, q: Values, qd: Values, dt: Scalar) -> tuple[Values, ...]:
        # A rotation does not depend on the length of its quaternion. Normalising it only at the end of the step keeps
        # the fourth order.
        half = dt * 0.5
        r1, (a1, tau) = coordinate_rates(model, q, qd), accelerate(0, q, qd)
        q2, v2 = _along(q, half, r1), _along(qd, half, a1)
        r2, (a2, _) = coordinate_rates(model, q2, v2), accelerate(1, q2, v2)
        q3, v3 = _along(q, half, r2), _along(qd, half, a2)
        r3, (a3, _) = coordinate_rates(model, q3, v3), accelerate(1, q3, v3)
        q4, v4 = _along(q, dt, r3), _along(qd, dt, a3)
        r4, (a4, _) = coordinate_rates(model, q4, v4), accelerate(2, q4, v4)
        sixth = dt * (1.0 / 6.0)
        q_end, v_end = _along(q, sixth, _simpson(r1, r2, r3, r4)), _along(qd, sixth, _simpson(a1, a2, a3, a4))
        return normalized(model, q_end), v_end, a1, tau


@dataclass(frozen=True, kw_only=True)
class SemiImplicitEuler(Integrator):
    """Semi-implicit (symplectic) Euler steps of dt, of whole batches at once. Options are those of `Integrator`."""

    name = "semi_implicit_euler"
    stages = 1

    @staticmethod
    def step(model: CanonicalModel, accelerate: Accelerate, q: Values, qd: Values, dt: Scalar) -> tuple[Values, ...]:
        # q moves with the new velocity by the exponential map, as in `Robot.integrate`
        qdd, tau = accelerate(0, q, qd)
        after = _along(qd, dt, qdd)
        return normalized(model, moved(model, q, [v * dt for v in after])), after, qdd, tau


@dataclass(frozen=True, kw_only=True)
class Adaptive(Integrator):
    """Adaptive steps of one rollout by DOP853 to the tolerances rtol and atol, recorded every dt.

    max_steps: between two records; a run that needs more ends there with a warning. events: functions event(t, q, qd)
    with SciPy's attributes `terminal` and `direction`. Other options are those of `Integrator`.
    """

    name = "adaptive"
    rtol: float = 1e-9
    atol: float = 1e-9
    max_steps: int = 5_000
    events: Sequence[Callable[..., float]] = ()

    def __post_init__(self) -> None:
        super().__post_init__()
        if not isinstance(self.events, (list, tuple)):
            raise ArgumentError(f"events is {shown(self.events)}, expected a list of functions event(t, q, qd).")
        object.__setattr__(self, "events", tuple(self.events))
        for name in ("rtol", "atol"):
            object.__setattr__(self, name, real_number(name, getattr(self, name), above=0.0))
        object.__setattr__(self, "max_steps", whole_number("max_steps", self.max_steps, at_least=1))


FIXED_STEP: dict[str, type[Integrator]] = {kind.name: kind for kind in (RK4, SemiImplicitEuler)}
INTEGRATORS: dict[str, type[Integrator]] = {**FIXED_STEP, Adaptive.name: Adaptive}


def as_integrator(integrator: str | Integrator) -> Integrator:
    """Return the integrator with this name, or the object itself."""
    if isinstance(integrator, Integrator):
        return integrator
    return INTEGRATORS[one_of("integrator", integrator, INTEGRATORS)]()


def coordinate_rates(model: CanonicalModel, q: Values, v: Values) -> list[Scalar]:
    """Return the time derivative of q at velocities v."""
    return joined((k.coordinates, k.type.derivative(q[k.coordinates], v[k.rates])) for k in model.joints)


def _along(start: Values, dt: Scalar, rates: Values) -> list[Scalar]:
    return [x + dt * r for x, r in zip(start, rates, strict=True)]


def _simpson(a: Values, b: Values, c: Values, d: Values) -> list[Scalar]:
    return [(w + z) + (x + y) * 2.0 for w, x, y, z in zip(a, b, c, d, strict=True)]
