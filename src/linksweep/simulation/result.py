"""The result of a simulation: states, accelerations, torques, energy, limits, comparisons, and files."""

from __future__ import annotations

import csv
import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, NotRequired, TypedDict, Unpack, cast

import numpy as np
from numpy.typing import ArrayLike

from ..errors import ArgumentError, LinksweepError
from ..files import joint_columns
from ..files.limit_watch import QUANTITIES, LimitWatch
from ..model.formats.stored import model_data, model_from_data
from ..robot.robot import Robot
from ..support.checks import as_list, check_memory, one_of, real_number
from ..support.display import Cell, html_table
from ..support.files import write_atomically
from ..support.lazy import lazy
from ..support.messages import shown
from .checks import real_array
from .controllers import path_samples

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from ..robot.options import ViewOptions
    from .controllers import Reference


class SimulationWarning(UserWarning):
    """The simulation ended early, diverged, or chatters."""


class LimitCrossing(NamedTuple):
    """The first time (s) at which a joint of a rollout is beyond its "lower" or "upper" position limit."""

    joint: str
    bound: str
    time: float
    rollout: tuple[int, ...] = ()


class Settings(TypedDict):
    """Settings of a run as plain JSON values; controllers and other objects by their representation."""

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
    failure: NotRequired[str]  # why the run ended early


class Event(NamedTuple):
    """Times (n,) at which a user's event happened, and the states then: (n, nq) and (n, nv)."""

    t: np.ndarray
    q: np.ndarray
    qd: np.ndarray


@dataclass
class Simulation:
    """Result of a simulation: t (k,), q (k, ..., nq), and qd, qdd, tau (k, ..., nv) at k recorded times.

    tau are the driving torques. `settings` are those of the run. After an adaptive run, `events` contains one Event per
    event function, and `dense(t)` returns (q, qd) at any times.
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
    found_crossings: tuple[LimitCrossing, ...] | None = field(default=None, repr=False)  # located by events

    @property
    def batch(self) -> tuple[int, ...]:
        return self.q.shape[1:-1]

    @property
    def ended_early(self) -> str:
        """Why an adaptive run failed before its end; "" if it did not, or if an event or a limit ended it."""
        return str(self.settings.get("failure", ""))

    @lazy
    def finite(self) -> np.ndarray:
        """Whether each rollout (...) stayed finite; a rollout that did not is NaN from then on."""
        state = np.concatenate([self.q, self.qd], axis=-1)
        return np.asarray(np.isfinite(state).all(axis=(0, -1)))

    @lazy
    def kinetic_energy(self) -> np.ndarray:
        """Kinetic energy (k, ...) in J, including motor inertias."""
        return self.robot.kinetic_energy(self.q, self.qd)

    @lazy
    def potential_energy(self) -> np.ndarray:
        """Potential energy (k, ...) of gravity in J."""
        return self.robot.potential_energy(self.q)

    @property
    def energy(self) -> np.ndarray:
        """Sum of kinetic and potential energy (k, ...) in J."""
        return self.kinetic_energy + self.potential_energy

    @property
    def energy_drift(self) -> np.ndarray:
        """Largest change of energy of each rollout (...), relative to the range of its potential energy.

        It measures the error of the integrator only if no torque or dissipation acts on the robot.
        """
        energy, potential = self.energy, self.potential_energy
        span = potential.max(axis=0) - potential.min(axis=0)
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.abs(energy - energy[0]).max(axis=0) / span

    @lazy
    def constraint_drift(self) -> np.ndarray:
        """Largest constraint error of each rollout (...) in m or rad; 0 without constraints."""
        if not self.robot.model.constraints:
            return np.zeros(self.batch)
        return np.abs(self.robot.constraint_error(self.q)).max(axis=(0, -1))

    @lazy
    def limit_crossings(self) -> tuple[LimitCrossing, ...]:
        """First times at which joints of each rollout are beyond their position limits, the earliest first.

        With fixed steps, times are interpolated linearly between records.
        """
        if self.found_crossings is not None:
            return self.found_crossings
        crossings = []
        q = self._rollouts("q")
        for joint, index, bounds in limited_joints(self.robot):
            for bound, value, outward in (("lower", bounds[0], -1.0), ("upper", bounds[1], 1.0)):
                beyond = (q[:, :, index] - value) * outward  # above 0 outside; NaN is not outside
                outside = beyond > 0.0
                for rollout in np.flatnonzero(outside.any(axis=0)):
                    k = int(outside[:, rollout].argmax())
                    when = float(self.t[k])
                    if k:
                        before, after = beyond[k - 1, rollout], beyond[k, rollout]
                        when = float(self.t[k - 1] - before / (after - before) * (self.t[k] - self.t[k - 1]))
                    crossings.append(LimitCrossing(joint, bound, when, self.rollout_index(rollout)))
        return tuple(sorted(crossings, key=lambda crossing: crossing.time))

    def rollout_index(self, number: int | np.integer) -> tuple[int, ...]:
        """Return the index in the batch of a rollout, from its number in a flat batch."""
        return tuple(int(i) for i in np.unravel_index(number, self.batch)) if self.batch else ()

    def _rollouts(self, name: str) -> np.ndarray:
        """Return one of the arrays with a flat batch, (k, n, size)."""
        array = getattr(self, name)
        return array.reshape(len(self.t), -1, array.shape[-1])

    def show(self, *, rollouts: ArrayLike | None = None, **options: Unpack[ViewOptions]):
        """Show the run in the browser, with plots.

        rollouts: indices of the rollouts of a batch to show; the first few if omitted. Options are those of
        `linksweep.viewer.show`.
        """
        from ..viewer import show_run

        return show_run(self, rollouts=rollouts, **options)

    @property
    def work(self) -> np.ndarray:
        """Mechanical work (...) of the driving torques in J: the integral of tau qd over the records."""
        return np.trapezoid(np.sum(self.tau * self.qd, axis=-1), self.t, axis=0)

    def table(self) -> Table:
        """Initial and final value, minimum, maximum and RMS of every coordinate, velocity and torque; `print` it."""
        rows = []
        for block in ("q", "qd", "tau"):
            columns = np.moveaxis(self._rollouts(block), -1, 0)
            for name, values in zip(joint_columns(self.robot.model, block), columns, strict=True):
                ends = (float(values[0, 0]), float(values[-1, 0])) if not self.batch else ("", "")
                squares = np.square(values, dtype=float)
                rms = float(np.sqrt(np.nanmean(squares))) if np.isfinite(values).any() else float("nan")
                rows.append((name, *ends, _min(values), _max(values), rms))
        return Table(repr(self).strip("<>"), ("", "first", "last", "min", "max", "rms"), tuple(rows))

    def limits(self) -> tuple[LimitExcess, ...]:
        """Return violations of position, velocity and effort limits: the largest per joint, quantity and rollout."""
        blocks = {name: self._rollouts(name) for name in QUANTITIES}
        violations = []
        for rollout in range(blocks["q"].shape[1]):
            watch = LimitWatch(self.robot.model, simulated=True)
            watch.add(self.t, **{name: values[:, rollout] for name, values in blocks.items()})
            index = self.rollout_index(rollout)
            violations += [
                LimitExcess(index, x.joint, x.quantity, x.limit, x.value, x.by, x.t, x.first, x.unit)
                for x in watch.excesses
            ]
        return tuple(violations)

    def tracking_error(self, reference: Reference | ArrayLike) -> TrackingError:
        """Return the deviation from a path, or from coordinates (..., nq) to hold."""
        robot = self.robot
        if callable(reference):
            q_ref = path_samples("tracking_error", reference, robot, self.t)[0]
            q_ref = q_ref.reshape(len(self.t), *(1,) * len(self.batch), robot.nq)
        else:
            q_ref = robot.normalize(real_array("tracking_error: reference", reference, robot.nq))
        q = self.q.astype(float)
        try:
            q_ref = np.broadcast_to(q_ref, q.shape)
        except ValueError:
            raise ArgumentError(
                f"tracking_error: reference has shape {q_ref.shape}, expected one that broadcasts to {q.shape}."
            ) from None
        finite = np.isfinite(q).all(axis=-1, keepdims=True)
        error = np.where(finite, robot.difference(np.where(finite, q, robot.neutral()), q_ref), np.nan)
        return TrackingError(error, np.sqrt(np.mean(error**2, axis=0)), np.abs(error).max(axis=0))

    def settling_time(self, goal: Reference | ArrayLike | None = None, within: float = 0.02) -> np.ndarray:
        """Return the times (..., nv) from which joints stay within `within` (rad, m) of the goal; infinite if never.

        goal: coordinates (..., nq) or a path; by default the final coordinates.
        """
        within = real_number("settling_time: within", within, above=0.0)
        error = self.tracking_error(self.q[-1] if goal is None else goal).error
        outside = ~(np.abs(error) <= within)
        last = len(self.t) - 1 - np.argmax(outside[::-1], axis=0)  # the last record outside
        after = np.append(self.t[1:], np.inf)[last]
        return np.where(outside.any(axis=0), after, self.t[0])

    def plot(self, show: str = "q", reference: Reference | ArrayLike | None = None) -> Figure:
        """Return a figure of q, qd, qdd or tau over time, one panel per joint; `linksweep.plots.save` writes it."""
        from .. import plots

        values = self._rollouts(one_of("plot: show", show, _ARRAYS[1:]))[:, :MAX_PLOTTED]
        curves = {f"rollout {k}" if self.batch else "simulated": values[:, k] for k in range(values.shape[1])}
        if reference is not None:
            if show != "q" or not callable(reference):
                raise ArgumentError(f"plot: show is {show!r}, expected 'q' and a path as reference.")
            curves["reference"] = path_samples("plot", reference, self.robot, self.t)[0]
        return plots.time_series(self.robot, self.t, curves if len(curves) > 1 else next(iter(curves.values())), show)

    def to_csv(self, path: str | Path) -> None:
        """Write a CSV file with one row per record: t, then q, qd, qdd, tau of every joint by name, and the energy.

        The rollouts of a batch follow each other, with their numbers in the first column.
        """
        write_csv(self, Path(path))

    def to_npz(self, path: str | Path) -> None:
        """Write the arrays, the robot and the settings to an NPZ file, which `linksweep.simulation.load` reads."""
        write_npz(self, Path(path))

    def to_parquet(self, path: str | Path) -> None:
        """Write the columns of `to_csv` to a Parquet file; needs pyarrow."""
        write_parquet(self, Path(path))

    def _repr_html_(self) -> str:
        blocks = [(name, getattr(self, name)) for name in ("q", "qd", "tau")]
        names = [column for block, _ in blocks for column in joint_columns(self.robot.model, block)]
        columns = [column for _, values in blocks for column in np.moveaxis(values, -1, 0)]
        if self.batch:
            rows = [(name, _min(x), _max(x)) for name, x in zip(names, columns, strict=True)]
            headings: tuple[str, ...] = ("", "min", "max")
        else:
            rows = [(name, float(x[0]), float(x[-1]), _min(x), _max(x)) for name, x in zip(names, columns, strict=True)]
            headings = ("", "first", "last", "min", "max")
        notes = [f"{name}: {value}" for name, value in self.settings.items() if name != "linksweep"]
        return html_table(repr(self).strip("<>"), headings, rows, notes)

    def __repr__(self) -> str:
        rollouts = f", {self.batch} rollouts" if self.batch else ""
        return f"<Simulation of {self.robot.name}: {self.t[-1]:g} s, {len(self.t)} records{rollouts}>"


def _min(x: np.ndarray) -> float:
    return float(np.fmin.reduce(x, axis=None))


def _max(x: np.ndarray) -> float:
    return float(np.fmax.reduce(x, axis=None))


def limited_joints(robot: Robot) -> list[tuple[str, int, tuple[float, float]]]:
    """Return the coordinates with limits: the name of the joint, the index in q, (lower, upper)."""
    joints = []
    for link, described in zip(robot.canonical.links, robot.model.links, strict=True):
        limits = described.joint.limits
        if link.leads and link.type.limited and (np.isfinite(limits.lower) or np.isfinite(limits.upper)):
            bounds = float(limits.lower), float(limits.upper)
            joints += [(described.joint.name, index, bounds) for index, _ in link.pairs]
    return joints


MAX_PLOTTED = 8  # rollouts of one figure


class LimitExcess(NamedTuple):
    """A limit violation of a joint.

    rollout: index in the batch. quantity: "position", "velocity" or "effort". value, by, t: the furthest value, its
    distance from the limit, and its time (s). first: time of the first violation (s).
    """

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
    """Deviation from a reference: error (k, ..., nv) from q to the reference, and its RMS and maximum over time."""

    error: np.ndarray
    rms: np.ndarray
    largest: np.ndarray


@dataclass(frozen=True)
class Table:
    """A table that prints as text, and as HTML in a notebook; `rows` contains the numbers."""

    title: str
    headings: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]

    def __str__(self) -> str:
        cells = [self.headings, *(tuple(_text(x) for x in row) for row in self.rows)]
        widths = [max(len(row[k]) for row in cells) for k in range(len(self.headings))]
        rest = [list(zip(row[1:], widths[1:], strict=True)) for row in cells]
        lines = [
            "  ".join([row[0].ljust(widths[0]), *(cell.rjust(w) for cell, w in pairs)])
            for row, pairs in zip(cells, rest, strict=True)
        ]
        return "\n".join(line.rstrip() for line in [self.title, lines[0], "-" * len(lines[0]), *lines[1:]])

    def _repr_html_(self) -> str:
        return html_table(self.title, self.headings, self.rows, [])


def _text(x: object) -> str:
    return f"{x:.6g}" if isinstance(x, float) else str(x)


def compare(
    runs: Mapping[str, Simulation] | Sequence[Simulation], reference: Reference | ArrayLike | None = None,
    within: float = 0.02,
) -> Table:  # fmt: skip
    """Compare runs in a table with one row each: tracking error, settling time, torques, work, limit violations.

    runs: {name: Simulation}, or a list. reference: a path or coordinates to track; if omitted, errors are left out, and
    settling is relative to the final coordinates of each run. within: as in `Simulation.settling_time`.
    """
    if not isinstance(runs, Mapping):
        runs = {str(k): cast("Simulation", run) for k, run in enumerate(as_list(runs))}
    named = dict(runs)
    if not named or not all(isinstance(run, Simulation) for run in named.values()):
        raise ArgumentError(
            f"compare got {shown(runs)}, expected simulations: a list of them, or {{name: simulation}}."
        )
    headings = (
        "", "duration s", "rms error", "largest error", "settles s", "largest torque", "work J", "beyond limits",
    )  # fmt: skip
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
    return Table(f"{len(rows)} runs", headings, tuple(rows))


_ARRAYS = ("t", "q", "qd", "qdd", "tau")
_ROWS = 4096  # written at a time


def header(simulation: Simulation) -> list[str]:
    """Return the names of the columns of a table."""
    model = simulation.robot.model
    names = [name for block in _ARRAYS[1:] for name in joint_columns(model, block)]
    return [*(["rollout"] if simulation.batch else []), "t", *names, "energy"]


def _tables(simulation: Simulation) -> Iterator[tuple[int, np.ndarray]]:
    """Yield the number of each rollout and its values (k, columns)."""
    blocks = [simulation._rollouts(name) for name in _ARRAYS[1:]]
    energy = simulation.energy.reshape(len(simulation.t), -1)
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
        with to.open("wb") as file:  # savez would append .npz to a name
            np.savez(file, **arrays, metadata=np.array(_metadata(simulation)))

    write_atomically(path, write)


def load(path: str | Path) -> Simulation:
    """Read a simulation with its robot from a file that `to_npz` wrote. Files of others are safe to read."""
    if not isinstance(path, str | os.PathLike):  # open() would take an integer for a file descriptor, and close it
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
    except Exception as error:  # zipfile, zlib, NumPy and json raise many kinds for damaged files
        raise ArgumentError(f"the file {path} is not a simulation, expected one that to_npz wrote.") from error
    robot = Robot(model_from_data(robot_data, str(path)))
    _check_arrays(path, robot, arrays)
    return Simulation(robot, *arrays.values(), settings=settings)


def _check_arrays(path: str | Path, robot: Robot, arrays: dict[str, np.ndarray]) -> None:
    """Raise ArgumentError unless the arrays have the types and shapes of a simulation."""
    batch = arrays["q"].shape[1:-1]
    sizes = {"q": robot.nq, "qd": robot.nv, "qdd": robot.nv, "tau": robot.nv}
    times = arrays["t"].shape[:1]
    shapes = {"t": times, **{name: (*times, *batch, size) for name, size in sizes.items()}}
    for name, array in arrays.items():
        if array.dtype not in (np.float64, np.float32) or array.shape != shapes[name] or times in ((), (0,)):
            raise ArgumentError(
                f"the file {path} is not a simulation of {robot.name}: {name} is {array.dtype} of shape {array.shape}, "
                f"expected floating-point numbers of shape {shapes[name]}."
            )


def _metadata(simulation: Simulation) -> str:
    return json.dumps({"robot": model_data(simulation.robot.model), "settings": simulation.settings})
