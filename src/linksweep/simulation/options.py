"""What `simulate` is told and what a run says of itself, by name, as type checkers and editors see it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NotRequired, TypeAlias, TypedDict

from numpy.typing import ArrayLike

if TYPE_CHECKING:
    from numpy.typing import DTypeLike

    from .control.sampled import Sampling
    from .laws import Law
    from .resting import Stops

# constants, samples over time, a law, a function torque(t, q, qd), or nothing
Torque: TypeAlias = "Law | Callable[..., ArrayLike] | ArrayLike | None"


class SimulateOptions(TypedDict, total=False):
    """The named arguments of `simulate`."""

    duration: float
    dt: float
    integrator: str
    every: int
    dissipation: bool
    limits: str
    method: str | None
    dtype: DTypeLike
    threads: int
    backend: str | None
    events: Sequence[Callable[..., float]]
    rtol: float
    atol: float
    max_steps: int
    progress: bool
    policy: Callable[..., object] | None
    control_period: float | None
    sampling: Sampling | None
    stops: Stops | None
    disturbance: Law | None
    constraints: str | Sequence[float]


class Settings(TypedDict):
    """How a run was made, as plain JSON values; laws and the like by what they print."""

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
