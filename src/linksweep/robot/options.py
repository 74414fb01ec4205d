"""Named options that a Robot passes on, as type checkers and editors see them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Protocol, TypedDict

import numpy as np
from numpy.typing import ArrayLike

if TYPE_CHECKING:
    from pathlib import Path

    from ..model.model import Inertial, Placement
    from ..support.checks import Named

Row = Mapping[str, object] | Sequence[float]  # of a DH table


class FramePath(Protocol):
    """A motion of a frame: pose (..., 4, 4), twist (..., 6) and acceleration (..., 6) at times t (...)."""

    def __call__(self, t: np.ndarray, /) -> tuple[np.ndarray, np.ndarray, np.ndarray]: ...


class Flags(TypedDict, total=False):
    """What a compiled function takes as further arguments, or adds."""

    f_ext: bool
    dissipation: bool
    base_motion: bool


class TracingOptions(Flags, total=False):
    rolled: bool | None
    parameters: Sequence[str]


class TableOptions(TypedDict, total=False):
    name: str
    gravity: Sequence[float]
    base: str
    tool: Placement | None
    mount: Placement | None
    base_inertial: Inertial | None
    source: str | None


class FollowOptions(TypedDict, total=False):
    position_only: bool
    limits: bool
    tolerance: float


class SearchOptions(FollowOptions, total=False):
    restarts: int
    iterations: int
    seed: int


class ViewOptions(TypedDict, total=False):
    tau: ArrayLike | None
    qd: ArrayLike | None
    qdd: ArrayLike | None
    f_ext: Named | None
    quantities: Mapping[str, ArrayLike] | None
    others: Sequence[object]
    placement: ArrayLike | None
    law: Callable[[np.ndarray], object] | None
    frame: str | None
    visuals: str | Path | None
    opacity: float
    host: str
    port: int | None
    browser: bool | None
    plain: bool
