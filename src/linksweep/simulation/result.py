"""The result of a simulation: states, accelerations, torques, energy, limits, comparisons, and files."""

from __future__ import annotations

import csv
import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, Unpack, cast

import numpy as np
from numpy.typing import ArrayLike

from ..errors import ArgumentError, LinksweepError
from ..files import joint_columns
from ..files.limit_watch import QUANTITIES, LimitWatch
from ..model.formats.stored import model_data, model_from_data
from ..robot.robot import Robot
from ..support.checks import as_list, check_memory
from ..support.display import Cell, html_table
from ..support.files import write_atomically
from ..support.lazy import lazy
from ..support.messages import is_one_of, shown
from .checks import positive, real_array
from .controllers import along

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from ..robot.options import ViewOptions
    from ..viewer import Viewer
    from .controllers import Reference
    from .options import Settings


class SimulationWarning(UserWarning):
    """The simulation ended early, diverged, or chatters."""


class LimitCrossing(NamedTuple):
    """A joint that left its limits for the first time: "lower" or "upper", when, and in which rollout of the batch."""

    joint: str
    bound: str
    time: float
    rollout: tuple[int, ...] = ()


class Event(NamedTuple):
    """The moments (n,) at which a user's event happened, and the states there: (n, nq) and (n, nv)."""

    t: np.ndarray
    q: np.ndarray
    qd: np.ndarray


@dataclass
class Simulation:
    """Arrays over time: t (moments,), q (moments, ..., nq), and qd, qdd, tau (moments, ..., nv).

    qdd and tau are the accelerations and the driving torques at that moment. `settings` says how it was made. From an
    adaptive run, `events` holds one Event for each event function and `dense(t)` gives (q, qd) at any times.
    """

    robot: Robot
    t: np.ndarray
    q: np.ndarray
    qd: np.ndarray
    qdd: np.ndarray
    tau: np.ndarray
    settings: Settings
    events: tuple[Event, ...] = ()
    dense: Callable[[ArrayLike], tuple[np.ndarray, np.ndarray]] | None = None
    found_crossings: tuple[LimitCrossing, ...] | None = field(default=None, repr=False)  # exact ones, by events

    @property
    def batch(self) -> tuple[int, ...]:
        return self.q.shape[1:-1]

    @property
    def ended_early(self) -> str:
        """Why an adaptive run did not come to its end; nothing if it did, or if an event or a limit ended it."""
        return str(self.settings.get("failure", ""))

    @lazy
    def finite(self) -> np.ndarray:
        """Whether each rollout (...) stayed finite; where not, everything is NaN from there on."""
        state = np.concatenate([self.q, self.qd], axis=-1)
        return np.asarray(np.isfinite(state).all(axis=(0, -1)))

    @lazy
    def kinetic_energy(self) -> np.ndarray:
        """(moments, ...), motor inertias included."""
        return self.robot.kinetic_energy(self.q, self.qd)

    @lazy
    def potential_energy(self) -> np.ndarray:
        """(moments, ...), against gravity."""
        return self.robot.potential_energy(self.q)

    @property
    def energy(self) -> np.ndarray:
        """Kinetic and potential energy together, (moments, ...)."""
        return self.kinetic_energy + self.potential_energy

    @property
    def energy_drift(self) -> np.ndarray:
        """How much each rollout (...) left its first energy at most, over the range of its potential energy.

        An error only where nothing drives and nothing brakes the robot: otherwise energy comes and goes.
        """
        energy, potential = self.energy, self.potential_energy
        span = potential.max(axis=0) - potential.min(axis=0)
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.abs(energy - energy[0]).max(axis=0) / span

    @lazy
    def constraint_drift(self) -> np.ndarray:
        """How far each rollout (...) was from meeting its constraints at most, metres and radians; 0 without any."""
        if not self.robot.model.constraints:
            return np.zeros(self.batch)
        return np.abs(self.robot.constraint_error(self.q)).max(axis=(0, -1))

    @lazy
    def limit_crossings(self) -> tuple[LimitCrossing, ...]:
        """The first time that each joint of each rollout is outside its limits, the earliest first.

        Of fixed steps, from the recorded moments, with the time between two of them by a straight line.
        """
        if self.found_crossings is not None:
            return self.found_crossings
        found = []
        q = self.q.reshape(len(self.t), -1, self.q.shape[-1])
        for joint, place, bounds in limited_joints(self.robot):
            for bound, value, outward in (("lower", bounds[0], -1.0), ("upper", bounds[1], 1.0)):
                beyond = (q[:, :, place] - value) * outward  # above 0 outside; NaN is not outside
                outside = beyond > 0.0
                for rollout in np.flatnonzero(outside.any(axis=0)):
                    k = int(outside[:, rollout].argmax())
                    when = float(self.t[k])
                    if k:
                        before, after = beyond[k - 1, rollout], beyond[k, rollout]
                        when = float(self.t[k - 1] - before / (after - before) * (self.t[k] - self.t[k - 1]))
                    index = tuple(int(i) for i in np.unravel_index(rollout, self.batch)) if self.batch else ()
                    found.append(LimitCrossing(joint, bound, when, index))
        return tuple(sorted(found, key=lambda crossing: crossing.time))

    def show(self, *, rollouts: ArrayLike | None = None, **options: Unpack[ViewOptions]) -> Viewer:
        """Show the run in the browser, with plots: of a batch these rollouts, or the first few.

        Options are those of `linksweep.viewer.show`.
        """
        from ..viewer import show_run

        return show_run(self, rollouts=rollouts, **options)

    @property
    def work(self) -> np.ndarray:
        """Mechanical work of the driving torques (...), J: the integral of tau qd over the records."""
        return np.trapezoid(np.sum(self.tau * self.qd, axis=-1), self.t, axis=0)

    def table(self) -> Table:
        """Initial and final value, minimum, maximum and RMS of every coordinate, velocity and torque; `print` it."""
        rows = []
        for block in ("q", "qd", "tau"):
            columns = np.moveaxis(getattr(self, block), -1, 0).reshape(getattr(self, block).shape[-1], len(self.t), -1)
            for name, values in zip(joint_columns(self.robot.model, block), columns, strict=True):
                ends = (float(values[0, 0]), float(values[-1, 0])) if not self.batch else ("", "")
                size = (
                    float(np.sqrt(np.nanmean(np.square(values, dtype=float))))
                    if np.isfinite(values).any()
                    else float("nan")
                )
                rows.append((name, *ends, _least(values), _most(values), size))
        return Table(repr(self).strip("<>"), ("", "first", "last", "least", "most", "rms"), tuple(rows))

    def limits(self) -> tuple[LimitExcess, ...]:
        """Violations of position, velocity and effort limits: the furthest of every joint, quantity and rollout."""
        blocks = {
            name: getattr(self, name).reshape(len(self.t), -1, getattr(self, name).shape[-1]) for name in QUANTITIES
        }
        found = []
        for rollout in range(blocks["q"].shape[1]):
            watch = LimitWatch(self.robot.model, simulated=True)
            watch.add(self.t, **{name: values[:, rollout] for name, values in blocks.items()})
            index = tuple(int(i) for i in np.unravel_index(rollout, self.batch)) if self.batch else ()
            found += [
                LimitExcess(index, x.joint, x.quantity, x.limit, x.value, x.by, x.t, x.first, x.unit)
                for x in watch.excesses
            ]
        return tuple(found)

    def tracking_error(self, reference: Reference | ArrayLike) -> TrackingError:
        """Return the deviation from a path, or from coordinates (..., nq) to hold."""
        robot = self.robot
        if callable(reference):
            wanted = along("tracking_error", reference, robot, self.t)[0]
            wanted = wanted.reshape(len(self.t), *(1,) * len(self.batch), robot.nq)
        else:
            wanted = robot.normalize(real_array("tracking_error: reference", reference, robot.nq))
        q = self.q.astype(float)
        axes = zip(wanted.shape[::-1], q.shape[::-1], strict=False)
        if not all(n in (1, m) for n, m in axes) or wanted.ndim > q.ndim:
            raise ArgumentError(
                f"tracking_error: reference has shape {wanted.shape}, expected one that broadcasts to {q.shape}."
            )
        fine = np.isfinite(q).all(axis=-1, keepdims=True)
        error = robot.difference(np.where(fine, q, robot.neutral()), np.broadcast_to(wanted, q.shape))
        error = np.where(fine, error, np.nan)
        return TrackingError(error, np.sqrt(np.mean(error**2, axis=0)), np.abs(error).max(axis=0))

    def settling_time(self, goal: Reference | ArrayLike | None = None, within: float = 0.02) -> np.ndarray:
        """Time from which each joint (..., nv) stays within `within` (rad, m) of the goal; infinite if it never does.

        goal: coordinates (..., nq) or a path; by default the final coordinates.
        """
        within = positive("settling_time: within", within)
        error = self.tracking_error(self.q[-1] if goal is None else goal).error
        outside = ~(np.abs(error) <= within)
        last = len(self.t) - 1 - np.argmax(outside[::-1], axis=0)  # the last moment outside
        after = np.append(self.t[1:], np.inf)[last]
        return np.where(outside.any(axis=0), after, self.t[0])

    def plot(self, show: str = "q", reference: Reference | ArrayLike | None = None) -> Figure:
        """Return a figure of q, qd, qdd or tau over time, one panel per joint; `linksweep.plots.save` writes it."""
        from .. import plots

        if not is_one_of(show, ("q", "qd", "qdd", "tau")):
            raise ArgumentError(f"plot: show is {shown(show)}, expected q, qd, qdd or tau.")
        values = getattr(self, show).reshape(len(self.t), -1, getattr(self, show).shape[-1])[:, :MOST_PLOTTED]
        curves = {f"rollout {k}" if self.batch else "found": values[:, k] for k in range(values.shape[1])}
        if reference is not None:
            if show != "q" or not callable(reference):
                raise ArgumentError(
                    "plot: a reference is a path, and shown with coordinates: pass show='q' and a path."
                )
            curves["wanted"] = along("plot", reference, self.robot, self.t)[0]
        return plots.time_series(self.robot, self.t, curves if len(curves) > 1 else next(iter(curves.values())), show)

    def to_csv(self, path: str | Path) -> None:
        """One row for each moment: t, then q, qd, qdd, tau of every joint by name, and the energy; in a batch all
        moments of one rollout after the other, with its number in the first column."""
        write_csv(self, Path(path))

    def to_npz(self, path: str | Path) -> None:
        """The arrays, and with them the robot and the settings: `linksweep.simulation.load` reads it again."""
        write_npz(self, Path(path))

    def to_parquet(self, path: str | Path) -> None:
        """The columns of `to_csv` as a Parquet file; needs pyarrow."""
        write_parquet(self, Path(path))

    def _repr_html_(self) -> str:
        blocks = [(name, getattr(self, name)) for name in ("q", "qd", "tau")]
        names = [column for block, _ in blocks for column in joint_columns(self.robot.model, block)]
        columns = [column for _, values in blocks for column in np.moveaxis(values, -1, 0)]
        if self.batch:
            rows = [(name, _least(x), _most(x)) for name, x in zip(names, columns, strict=True)]
            headings: tuple[str, ...] = ("", "least", "most")
        else:
            rows = [
                (name, float(x[0]), float(x[-1]), _least(x), _most(x)) for name, x in zip(names, columns, strict=True)
            ]
            headings = ("", "first", "last", "least", "most")
        notes = [f"{name}: {value}" for name, value in self.settings.items() if name != "linksweep"]
        return html_table(repr(self).strip("<>"), headings, rows, notes)

    def __repr__(self) -> str:
        rollouts = f", {self.batch} rollouts" if self.batch else ""
        return f"<Simulation of {self.robot.name}: {self.t[-1]:g} s, {len(self.t)} moments{rollouts}>"


def _least(x: np.ndarray) -> float:
    return float(np.fmin.reduce(x, axis=None))


def _most(x: np.ndarray) -> float:
    return float(np.fmax.reduce(x, axis=None))


def limited_joints(robot: Robot) -> list[tuple[str, int, tuple[float, float]]]:
    """Coordinates with a finite bound: the joint's name, place in q, (lower, upper)."""
    found = []
    for link, described in zip(robot.canonical.links, robot.model.links, strict=True):
        limits = described.joint.limits
        if link.leads and link.type.limited and (np.isfinite(limits.lower) or np.isfinite(limits.upper)):
            bounds = float(limits.lower), float(limits.upper)
            found += [(described.joint.name, place, bounds) for place, _ in link.pairs]
    return found


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


def compare(
    runs: Mapping[str, Simulation] | Sequence[Simulation],
    reference: Reference | ArrayLike | None = None,
    within: float = 0.02,
) -> Table:
    """Runs side by side, one row each: errors against the reference, settling, torques, work, limits.

    runs: {name: Simulation}, or a list. reference: a path or coordinates that all should follow; without, the errors
    are left out, and settling is to each run's own end.
    """

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
        error = None if reference is None else run.tracking_error(reference)
        settles = float(np.max(run.settling_time(reference, within)))
        rows.append((
            name, float(run.t[-1]), "" if error is None else float(np.sqrt(np.mean(error.error**2))),
            "" if error is None else float(error.largest.max()), "never" if np.isinf(settles) else settles,
            float(np.fmax.reduce(np.abs(run.tau), axis=None)), float(np.mean(run.work)),
            len(run.limits()) or "none",
        ))  # fmt: skip
    return Table(f"{len(rows)} runs", tuple(headings), tuple(rows))


_ARRAYS = ("t", "q", "qd", "qdd", "tau")
_ROWS = 4096  # written at a time


def header(simulation: Simulation) -> list[str]:
    model = simulation.robot.model
    names = [name for block in _ARRAYS[1:] for name in joint_columns(model, block)]
    return [*(["rollout"] if simulation.batch else []), "t", *names, "energy"]


def _tables(simulation: Simulation) -> Iterator[tuple[int, np.ndarray]]:
    """The numbers of each rollout, (moments, columns) without the rollout's own number."""
    moments = len(simulation.t)
    blocks = [x.reshape(moments, -1, x.shape[-1]) for x in (getattr(simulation, name) for name in _ARRAYS[1:])]
    energy = simulation.energy.reshape(moments, -1)
    for rollout in range(energy.shape[1]):
        yield rollout, np.column_stack([simulation.t, *(x[:, rollout] for x in blocks), energy[:, rollout]])


def write_csv(simulation: Simulation, path: Path) -> None:
    def write(to: Path) -> None:
        with to.open("w", newline="", encoding="utf-8") as file:
            writer = csv.writer(file, lineterminator="\n")
            writer.writerow(header(simulation))
            for rollout, table in _tables(simulation):
                for first in range(0, len(table), _ROWS):
                    rows = table[first : first + _ROWS].tolist()
                    writer.writerows([[rollout, *row] for row in rows] if simulation.batch else rows)

    write_atomically(path, write)


def write_parquet(simulation: Simulation, path: Path) -> None:
    try:
        import pyarrow  # pyright: ignore[reportMissingImports]
        import pyarrow.parquet  # pyright: ignore[reportMissingImports]
    except ImportError as error:
        raise ArgumentError(
            "to_parquet needs pyarrow, which is not installed: pip install pyarrow, or use to_csv or to_npz."
        ) from error
    names = header(simulation)

    def write(to: Path) -> None:
        writer = None
        try:
            for rollout, table in _tables(simulation):
                columns = [np.full(len(table), rollout), *table.T] if simulation.batch else list(table.T)
                part = pyarrow.table(dict(zip(names, map(np.ascontiguousarray, columns), strict=True)))
                part = part.replace_schema_metadata({"linksweep": _metadata(simulation)})
                writer = writer or pyarrow.parquet.ParquetWriter(to, part.schema)
                writer.write_table(part)
        finally:
            if writer is not None:
                writer.close()

    write_atomically(path, write)


def write_npz(simulation: Simulation, path: Path) -> None:
    arrays = {name: getattr(simulation, name) for name in _ARRAYS}

    def write(to: Path) -> None:
        with to.open("wb") as file:  # an open file keeps its name: savez would add an ending
            np.savez(file, **arrays, metadata=np.array(_metadata(simulation)))

    write_atomically(path, write)


def load(path: str | Path) -> Simulation:
    """A simulation that `to_npz` wrote, with its robot. A file from elsewhere is read with the same care as any."""

    if not isinstance(path, str | os.PathLike):  # open() would take an integer as a descriptor, and close it
        raise ArgumentError(f"load got {shown(path)}, expected the path of a file that to_npz wrote.")
    try:
        with open(path, "rb") as file, np.load(file, allow_pickle=False) as stored:
            check_memory(f"the file {path}", (sum(entry.file_size for entry in stored.zip.infolist()),), 1)
            arrays = {name: stored[name] for name in _ARRAYS}
            metadata = json.loads(str(stored["metadata"]))
        settings = cast("Settings", dict(metadata["settings"]))
        robot_data = metadata["robot"]
    except LinksweepError:
        raise
    except OSError as error:
        reason = error.strerror or "it is damaged"
        raise ArgumentError(f"the file {path} cannot be read ({reason}), expected one that to_npz wrote.") from error
    except Exception as error:  # whatever zipfile, zlib, NumPy and json make of bytes that are no simulation
        raise ArgumentError(f"the file {path} is no simulation, expected one that to_npz wrote.") from error
    robot = Robot(model_from_data(robot_data, str(path)))
    _check_arrays(path, robot, arrays)
    return Simulation(robot, *arrays.values(), settings=settings)


def _check_arrays(path: str | Path, robot: Robot, arrays: dict[str, np.ndarray]) -> None:
    """Times (moments,), and for each moment and rollout nq or nv numbers."""
    batch = arrays["q"].shape[1:-1]
    sizes = {"q": robot.nq, "qd": robot.nv, "qdd": robot.nv, "tau": robot.nv}
    moments = arrays["t"].shape[:1]
    wanted = {"t": moments, **{name: (*moments, *batch, size) for name, size in sizes.items()}}
    for name, array in arrays.items():
        if array.dtype not in (np.float64, np.float32) or array.shape != wanted[name] or moments in ((), (0,)):
            raise ArgumentError(
                f"the file {path} is no simulation of {robot.name}: {name} holds {array.dtype} of shape {array.shape}, "
                f"expected floating-point numbers of shape {wanted[name]}."
            )


def _metadata(simulation: Simulation) -> str:
    return json.dumps({"robot": model_data(simulation.robot.model), "settings": simulation.settings})
