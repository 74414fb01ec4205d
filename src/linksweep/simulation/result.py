"""What a simulation found: states, accelerations, torques, energy, limits, and files of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, Unpack

import numpy as np
from numpy.typing import ArrayLike

from ..robot.robot import Robot
from ..support.lazy import lazy
from ..support.notebook import html_table
from ..tables import joint_columns

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from ..robot.options import ViewOptions
    from ..viewer import Viewer
    from .answers import LimitExcess, Table, TrackingError
    from .control.signals import Reference
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
        """What the driving torques gave and took back, (...), J: the integral of tau qd over the records."""
        from .answers import work_of

        return work_of(self)

    def table(self) -> Table:
        """Every coordinate, rate and torque: first, last, least, most, root mean square; `print` it."""
        from .answers import table_of

        return table_of(self)

    def limits(self) -> tuple[LimitExcess, ...]:
        """Who is beyond a limit of position, velocity or effort at a recorded moment: by how much, when, when first."""
        from .answers import limits_of

        return limits_of(self)

    def tracking_error(self, reference: Reference | ArrayLike) -> TrackingError:
        """(error (moments, ..., nv), rms (..., nv), largest (..., nv)) against a path, or coordinates to hold."""
        from .answers import tracking_error

        return tracking_error(self, reference)

    def settling_time(self, goal: Reference | ArrayLike | None = None, within: float = 0.02) -> np.ndarray:
        """From when on each joint (..., nv) stays within so many rad or m of the goal: coordinates, a path, or the end.

        Infinite where it never does.
        """
        from .answers import settling_time

        return settling_time(self, goal, within)

    def plot(self, show: str = "q", reference: Reference | ArrayLike | None = None) -> Figure:
        """A figure of q, qd, qdd or tau over time, one panel for each joint; `linksweep.plots.save` writes it."""
        from .answers import plot_of

        return plot_of(self, show, reference)

    def to_csv(self, path: str | Path) -> None:
        """One row for each moment: t, then q, qd, qdd, tau of every joint by name, and the energy; in a batch all
        moments of one rollout after the other, with its number in the first column."""
        from .storage import write_csv

        write_csv(self, Path(path))

    def to_npz(self, path: str | Path) -> None:
        """The arrays, and with them the robot and the settings: `linksweep.simulation.load` reads it again."""
        from .storage import write_npz

        write_npz(self, Path(path))

    def to_parquet(self, path: str | Path) -> None:
        """The columns of `to_csv` as a Parquet file; needs pyarrow."""
        from .storage import write_parquet

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
