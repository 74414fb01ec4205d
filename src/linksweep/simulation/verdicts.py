"""What is to be said of a simulation that ended: too early, beyond the numbers, in a singular pose, or chattering."""

from __future__ import annotations

import numpy as np

from ..errors import warn_user
from .result import Simulation, SimulationWarning

CHATTER = 20  # records in a row: so long a joint that is only turning round does not stay near rest


def warn_of(result: Simulation) -> None:
    """One warning of each kind that there is."""
    bad = ~result.finite
    if result.ended_early:
        _say(f"the simulation of {result.robot.name} ended early: {result.ended_early}, and is NaN from there on.")
    elif bad.any():
        gone = ~np.isfinite(result.q).all(axis=-1) | ~np.isfinite(result.qd).all(axis=-1)
        first = result.t[gone.reshape(len(result.t), -1).any(axis=1).argmax()]
        who = f"{int(bad.sum())} of {bad.size} rollouts" if result.batch else "the simulation"
        _say(
            f"{who} of {result.robot.name} left the finite numbers, the first at t = {first:g} s, and is NaN from "
            f"there on: take shorter steps, or see whether the torques are too large."
        )
    if result.settings.get("dissipation"):
        _warn_of_chatter(result)
    result.robot.warn_if_singular("simulate", result.q, lambda index: _moment(result, *index))


def _warn_of_chatter(result: Simulation) -> None:
    """Coulomb friction has a sign and no sticking: a joint that it brings to rest is thrown to and fro, and creeps.

    So many records in a row its rate is one that its own acceleration, which is no rounding, would undo within two
    steps: a motion that the steps resolve is out of this range after three.
    """
    links = zip(result.robot.canonical.links, result.robot.model.links, strict=True)
    rough = {
        link.start + k: described.joint.name for link, described in links for k in range(link.nv) if link.friction > 0.0
    }
    if not rough or len(result.t) <= CHATTER:
        return
    columns = sorted(rough)
    qd, qdd = (x[..., columns].reshape(len(result.t), -1, len(columns)) for x in (result.qd, result.qdd))
    with np.errstate(invalid="ignore"):
        size = np.abs(qdd)
        near = (np.abs(qd) <= 2.0 * result.settings["dt"] * size) & (size > 1e-6 * np.fmax.reduce(size, axis=0))
    stuck = _in_a_row(near) == CHATTER
    if not stuck.any():
        return
    moment, rollout, column = (int(i) for i in np.argwhere(stuck)[0])
    where = _moment(result, moment, *(np.unravel_index(rollout, result.batch) if result.batch else ()))
    _say(
        f"joint {rough[columns[column]]} of {result.robot.name} chatters about rest from {where.removeprefix('at ')} "
        f"on: Coulomb friction does not hold a joint here, and it creeps (docs/simulation.md, Friction at rest)."
    )


def _in_a_row(marked: np.ndarray) -> np.ndarray:
    """How many of this record and the following ones, CHATTER together, are marked."""
    total = np.concatenate([np.zeros_like(marked[:1], int), np.cumsum(marked, axis=0)])
    return total[CHATTER:] - total[:-CHATTER]


def _moment(result: Simulation, moment: int, *rollout: int | np.integer) -> str:
    of = f" of rollout {int(rollout[0]) if len(rollout) == 1 else tuple(map(int, rollout))}" if rollout else ""
    return f"at t = {result.t[moment]:g} s{of}"


def _say(sentence: str) -> None:
    warn_user(sentence, SimulationWarning)
