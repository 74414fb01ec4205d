"""Options of `simulate`: integrators, the names of its keyword arguments, and the settings that a run records."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, ClassVar, NotRequired, TypeAlias, TypedDict

import numpy as np
from numpy.typing import ArrayLike, DTypeLike

from ..backends.threads import checked_threads
from ..errors import ArgumentError, warn_user
from ..support.messages import is_one_of, nearest, shown
from .checks import positive, whole
from .contacts import JointStops
from .sampled_control import Policy, SampledController

if TYPE_CHECKING:
    from .controllers import Controller
    from .friction import Stops
    from .sampled_control import Sampling

# constants, samples over time, a controller, a function torque(t, q, qd), or nothing
Torque: TypeAlias = "Controller | SampledController | Policy | Callable[..., ArrayLike] | ArrayLike | None"
LIMITS = ("record", "stop", "ignore")


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
    method: str | None = None
    constraints: str | Sequence[float] = "project"
    limits: str = "record"
    dtype: DTypeLike = "float64"
    threads: int = 1
    backend: str | None = None
    progress: bool = True

    def __post_init__(self) -> None:
        _check_name("limits", self.limits, LIMITS)
        if self.limits == "stop" and not isinstance(self, Adaptive):
            raise ArgumentError("limits='stop' needs integrator='adaptive': fixed steps report crossings only.")
        dtype = self.dtype if isinstance(self.dtype, str) else _dtype_name(self.dtype)
        object.__setattr__(self, "dtype", _check_name("dtype", dtype, ("float64", "float32")))
        object.__setattr__(self, "threads", checked_threads(self.threads))


@dataclass(frozen=True, kw_only=True)
class RK4(Integrator):
    """Classical Runge-Kutta steps of dt, of whole batches at once. Options are those of `Integrator`."""

    name = "rk4"


@dataclass(frozen=True, kw_only=True)
class SemiImplicitEuler(Integrator):
    """Semi-implicit (symplectic) Euler steps of dt, of whole batches at once. Options are those of `Integrator`."""

    name = "semi_implicit_euler"


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
            object.__setattr__(self, name, positive(name, getattr(self, name)))
        object.__setattr__(self, "max_steps", whole("max_steps", self.max_steps))


INTEGRATORS: dict[str, type[Integrator]] = {kind.name: kind for kind in (RK4, SemiImplicitEuler, Adaptive)}


def as_integrator(integrator: str | Integrator) -> Integrator:
    """The integrator object of a name."""
    if isinstance(integrator, Integrator):
        return integrator
    return INTEGRATORS[_check_name("integrator", integrator, INTEGRATORS)]()


class SimulateOptions(TypedDict, total=False):
    """Keyword arguments of `simulate`."""

    duration: float
    dt: float
    integrator: str | Integrator
    every: int
    dissipation: bool
    disturbance: Controller | None


class DeprecatedOptions(TypedDict, total=False):
    """Deprecated keyword arguments of `simulate`, which are now options of the objects it takes."""

    limits: str
    method: str | None
    dtype: DTypeLike
    threads: int
    backend: str | None
    progress: bool
    constraints: str | Sequence[float]
    events: Sequence[Callable[..., float]]
    rtol: float
    atol: float
    max_steps: int
    policy: Callable[..., object] | None
    control_period: float | None
    sampling: Sampling | None
    stops: Stops | None


def with_deprecated(
    options: DeprecatedOptions, torque: Torque, integrator: Integrator, disturbance: Controller | None
) -> tuple[Torque, Integrator, Controller | None]:
    """The objects that deprecated keyword arguments stand for; warn of each."""
    unknown = [name for name in options if name not in DeprecatedOptions.__annotations__]
    if unknown:
        raise TypeError(f"simulate() got an unexpected keyword argument {unknown[0]!r}")
    warn_user(f"simulate: {'; '.join(_replacement(name, integrator) for name in options)}", DeprecationWarning)
    policy, period, sampling = (options.get(name) for name in ("policy", "control_period", "sampling"))
    if policy is not None and torque is not None:
        raise ArgumentError(
            "policy and torque are both given, expected one: a policy may call controller.torque itself."
        )
    if policy is None and period is None and sampling is not None:
        raise ArgumentError("sampling is given without control_period, expected seconds between two control instants.")
    if (policy is not None or period is not None) and not isinstance(torque, SampledController):
        torque = SampledController(torque if policy is None else Policy(policy), period, sampling)
    stops = options.get("stops")
    if stops is not None:
        joint_stops = JointStops() if isinstance(stops, str) and stops == "inelastic" else JointStops.springs(stops)
        disturbance = joint_stops if disturbance is None else disturbance + joint_stops
    if options.get("events") and not isinstance(integrator, Adaptive):
        raise ArgumentError("events needs integrator='adaptive': fixed steps report crossings, but do not stop.")
    names = [field.name for field in fields(integrator)]
    return torque, replace(integrator, **{k: v for k, v in options.items() if k in names}), disturbance


def _replacement(name: str, integrator: Integrator) -> str:
    if name in ("policy", "control_period", "sampling"):
        new = "torque=SampledController(controller or Policy(function), period, Sampling(...))"
    elif name == "stops":
        new = "disturbance=JointStops(...)"
    else:
        adaptive = name in ("events", "rtol", "atol", "max_steps")
        new = f"integrator={'Adaptive' if adaptive else type(integrator).__name__}({name}=...)"
    return f"{name}= is deprecated, use {new}"


class Settings(TypedDict):
    """How a run was computed, as plain JSON values; controllers and the like by their representation."""

    integrator: str
    duration: float
    dt: float
    every: int
    torque: str
    dissipation: bool
    method: str
    dtype: str
    linksweep: str  # the version
    control_period: NotRequired[float]
    sampling: NotRequired[str]
    stops: NotRequired[str]
    disturbance: NotRequired[str]
    constraints: NotRequired[str | list[float]]  # "project", or Baumgarte's gains
    rtol: NotRequired[float]
    atol: NotRequired[float]
    max_steps: NotRequired[int]
    failure: NotRequired[str]  # why it ended early


def _check_name(name: str, value: object, known: Sequence[str] | dict[str, type[Integrator]]) -> str:
    if not is_one_of(value, known):
        raise ArgumentError(f"{name} is {shown(value)}{nearest(value, known)}, expected one of {', '.join(known)}.")
    return str(value)


def _dtype_name(dtype: DTypeLike) -> object:
    try:
        return np.dtype(dtype).name
    except TypeError:
        return dtype
