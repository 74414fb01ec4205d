"""Answers from runs: tables, limits, settling times, tracking errors, several runs side by side, pictures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple, cast

import numpy as np
from numpy.typing import ArrayLike

from ..errors import ArgumentError
from ..support.messages import is_one_of, shown
from ..support.notebook import Cell, html_table
from ..support.numbers import as_list
from ..tables import joint_columns
from ..tables.limit_watch import QUANTITIES, LimitWatch
from .checks import positive, real_array
from .control.signals import along

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from .control.signals import Reference
    from .result import Simulation

MOST_PLOTTED = 8  # rollouts of one picture


class LimitExcess(NamedTuple):
    """A joint beyond one of its limits: in which rollout, what ("position", "velocity" or "effort"), the limit, the
    furthest value, by how much, when, and when first."""

    rollout: tuple[int, ...]
    joint: str
    quantity: str
    limit: float
    value: float
    by: float
    t: float
    first: float
    unit: str


class TrackingError(NamedTuple):
    """error (moments, ..., nv): wanted minus found, along the rates; its root mean square and its largest size in time,
    (..., nv)."""

    error: np.ndarray
    rms: np.ndarray
    largest: np.ndarray


@dataclass(frozen=True)
class Table:
    """Rows that print as text, and as HTML in a notebook; numbers stay numbers."""

    title: str
    headings: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]

    def __str__(self) -> str:
        cells = [self.headings, *(tuple(_text(x) for x in row) for row in self.rows)]
        widths = [max(len(row[k]) for row in cells) for k in range(len(self.headings))]
        lines = [
            "  ".join(
                cell.ljust(w) if not k else cell.rjust(w) for k, (cell, w) in enumerate(zip(row, widths, strict=True))
            )
            for row in cells
        ]
        return "\n".join(line.rstrip() for line in [self.title, lines[0], "-" * len(lines[0]), *lines[1:]])

    def _repr_html_(self) -> str:
        return html_table(self.title, self.headings, self.rows, [])


def _text(x: object) -> str:
    return f"{x:.6g}" if isinstance(x, float) else str(x)


def table_of(run: Simulation) -> Table:
    """Every coordinate, rate and torque: first, last, least, most and root mean square, over all rollouts."""
    rows = []
    for block in ("q", "qd", "tau"):
        columns = np.moveaxis(getattr(run, block), -1, 0).reshape(getattr(run, block).shape[-1], len(run.t), -1)
        for name, values in zip(joint_columns(run.robot.model, block), columns, strict=True):
            ends = (float(values[0, 0]), float(values[-1, 0])) if not run.batch else ("", "")
            size = (
                float(np.sqrt(np.nanmean(np.square(values, dtype=float))))
                if np.isfinite(values).any()
                else float("nan")
            )
            rows.append(
                (name, *ends, float(np.fmin.reduce(values, axis=None)), float(np.fmax.reduce(values, axis=None)), size)
            )
    return Table(repr(run).strip("<>"), ("", "first", "last", "least", "most", "rms"), tuple(rows))


def limits_of(run: Simulation) -> tuple[LimitExcess, ...]:
    """The furthest of every joint, quantity and rollout beyond a limit of the description, rollout after rollout."""
    blocks = {name: getattr(run, name).reshape(len(run.t), -1, getattr(run, name).shape[-1]) for name in QUANTITIES}
    found = []
    for rollout in range(blocks["q"].shape[1]):
        watch = LimitWatch(run.robot.model, simulated=True)
        watch.add(run.t, **{name: values[:, rollout] for name, values in blocks.items()})
        index = tuple(int(i) for i in np.unravel_index(rollout, run.batch)) if run.batch else ()
        found += [
            LimitExcess(index, x.joint, x.quantity, x.limit, x.value, x.by, x.t, x.first, x.unit)
            for x in watch.excesses
        ]
    return tuple(found)


def tracking_error(run: Simulation, reference: Reference | ArrayLike) -> TrackingError:
    """How far the run is from a path, or from coordinates (..., nq) to hold."""
    robot = run.robot
    if callable(reference):
        wanted = along("tracking_error", reference, robot, run.t)[0]
        wanted = wanted.reshape(len(run.t), *(1,) * len(run.batch), robot.nq)
    else:
        wanted = robot.normalize(real_array("tracking_error: reference", reference, robot.nq))
    q = run.q.astype(float)
    if not all(n in (1, m) for n, m in zip(wanted.shape[::-1], q.shape[::-1], strict=False)) or wanted.ndim > q.ndim:
        raise ArgumentError(
            f"tracking_error: reference has shape {wanted.shape}, expected one that broadcasts to {q.shape}."
        )
    fine = np.isfinite(q).all(axis=-1, keepdims=True)
    error = robot.difference(np.where(fine, q, robot.neutral()), np.broadcast_to(wanted, q.shape))
    error = np.where(fine, error, np.nan)
    return TrackingError(error, np.sqrt(np.mean(error**2, axis=0)), np.abs(error).max(axis=0))


def settling_time(run: Simulation, goal: Reference | ArrayLike | None = None, within: float = 0.02) -> np.ndarray:
    """From when on each rate's coordinate (..., nv) stays within so many rad or m of the goal; or infinity.

    goal: coordinates (..., nq), or a path; without, where the run ends.
    """
    within = positive("settling_time: within", within)
    error = tracking_error(run, run.q[-1] if goal is None else goal).error
    outside = ~(np.abs(error) <= within)
    last = len(run.t) - 1 - np.argmax(outside[::-1], axis=0)  # the last moment outside
    after = np.append(run.t[1:], np.inf)[last]
    return np.where(outside.any(axis=0), after, run.t[0])


def work_of(run: Simulation) -> np.ndarray:
    """The mechanical work of the driving torques (...), positive and negative together, J: the integral of tau qd."""
    return np.trapezoid(np.sum(run.tau * run.qd, axis=-1), run.t, axis=0)


def compare(
    runs: Mapping[str, Simulation] | Sequence[Simulation],
    reference: Reference | ArrayLike | None = None,
    within: float = 0.02,
) -> Table:
    """Runs side by side, one row each: errors against the reference, settling, torques, work, limits.

    runs: {name: Simulation}, or a list. reference: a path or coordinates that all should follow; without, the errors
    are left out, and settling is to each run's own end.
    """
    from .result import Simulation

    if not isinstance(runs, Mapping):
        runs = {str(k): cast("Simulation", run) for k, run in enumerate(as_list(runs))}
    named = dict(runs)
    if not named or not all(isinstance(run, Simulation) for run in named.values()):
        raise ArgumentError(
            f"compare got {shown(runs)}, expected simulations: a list of them, or {{name: simulation}}."
        )
    headings = [
        "",
        "duration s",
        "rms error",
        "largest error",
        "settles s",
        "largest torque",
        "work J",
        "beyond limits",
    ]
    rows = []
    for name, run in named.items():
        error = None if reference is None else tracking_error(run, reference)
        settles = float(np.max(settling_time(run, reference, within)))
        rows.append((
            name, float(run.t[-1]), "" if error is None else float(np.sqrt(np.mean(error.error**2))),
            "" if error is None else float(error.largest.max()), "never" if np.isinf(settles) else settles,
            float(np.fmax.reduce(np.abs(run.tau), axis=None)), float(np.mean(work_of(run))),
            len(limits_of(run)) or "none",
        ))  # fmt: skip
    return Table(f"{len(rows)} runs", tuple(headings), tuple(rows))


def plot_of(run: Simulation, show: str = "q", reference: Reference | ArrayLike | None = None) -> Figure:
    """A figure of matplotlib: one panel for each joint, every rollout up to 8, and the reference of coordinates."""
    from .. import plots

    if not is_one_of(show, ("q", "qd", "qdd", "tau")):
        raise ArgumentError(f"plot: show is {shown(show)}, expected q, qd, qdd or tau.")
    values = getattr(run, show).reshape(len(run.t), -1, getattr(run, show).shape[-1])[:, :MOST_PLOTTED]
    curves = {f"rollout {k}" if run.batch else "found": values[:, k] for k in range(values.shape[1])}
    if reference is not None:
        if show != "q" or not callable(reference):
            raise ArgumentError("plot: a reference is a path, and shown with coordinates: pass show='q' and a path.")
        curves["wanted"] = along("plot", reference, run.robot, run.t)[0]
    return plots.time_series(run.robot, run.t, curves if len(curves) > 1 else next(iter(curves.values())), show)
