"""From base parameters to a robot: the consistent numbers that say the same, nearest to the description, set in it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from linksweep.catalogue.parameters import TEN
from linksweep.description.quantities import from_ten
from linksweep.identification.estimate.least_squares import Estimate
from linksweep.identification.model.columns import NOT_NEGATIVE, Columns
from linksweep.identification.model.grouping import Grouping
from linksweep.identification.physical.consistency import (
    Problem,
    entropic,
    log_cholesky,
    made_consistent,
    pseudo_inertia,
)
from linksweep.identification.threads import one_thread

if TYPE_CHECKING:
    from linksweep.robot.robot import Robot

CERTAIN = 1e-4  # of the torque: a log that says more is not believed, so that numbers of all sizes stay in one equation
SOLVERS = {"entropic": entropic, "log_cholesky": log_cholesky}


@dataclass(frozen=True)
class Physical:
    """x (columns,): every unknown, consistent. invented: links whose description has no body that could be a start.

    left_out: what of the fit a Robot has no place for.
    """

    columns: Columns
    x: np.ndarray
    invented: tuple[str, ...]
    left_out: tuple[str, ...]

    @property
    def robot(self) -> Robot:
        """The description with these numbers in it."""
        full = _with_numbers(self.columns, self.x)
        return full.with_couplings(self.columns.robot.couplings) if self.columns.robot.couplings else full

    @property
    def smallest(self) -> dict[str, float]:
        """Of each unknown body the smallest eigenvalue of its pseudo-inertia: above 0 where it is consistent."""
        owners, places = _bodies(self.columns)
        return {
            owner: float(np.linalg.eigvalsh(pseudo_inertia(self.x[at]))[0])
            for owner, at in zip(owners, places, strict=True)
        }


@one_thread()
def consistent(
    columns: Columns, group: Grouping, found: Estimate, method: str, torque: float, prior_weight: float
) -> Physical:
    """The numbers of a fit by `method`, "entropic" or "log_cholesky"."""
    owners, bodies = _bodies(columns)
    prior, invented = _prior(columns, group, bodies, owners, torque)
    positive = np.array([k for k, column in enumerate(columns.columns) if column.what in NOT_NEGATIVE], int)
    # one factor for all joints: their weights against each other stay; a joint without rows has no noise
    least = float(np.min(found.noise, where=found.freedoms > 0.0, initial=np.inf))
    certain = min(1.0, least / (CERTAIN * torque) if torque else 1.0)
    problem = Problem(
        certain * found.root, certain * found.target, group.matrix, bodies, positive, prior,
        float(prior_weight),
    )  # fmt: skip
    return Physical(columns, SOLVERS[method](problem), invented, _left_out(columns))


def _bodies(columns: Columns) -> tuple[list[str], np.ndarray]:
    """The owners of unknown bodies, and (bodies, 10) where their numbers stand."""
    owners = list(dict.fromkeys((c.kind, c.owner) for c in columns.columns if c.is_body))
    places = [
        [next(k for k, c in enumerate(columns.columns) if (c.kind, c.owner, c.what) == (*own, what)) for what in TEN]
        for own in owners
    ]
    return [owner for _, owner in owners], np.array(places, int).reshape(-1, len(TEN))


def _prior(
    columns: Columns, group: Grouping, bodies: np.ndarray, owners: list[str], torque: float
) -> tuple[np.ndarray, tuple[str, ...]]:
    """The description's numbers, moved into the cone where they are not; who had to be moved from nothing."""
    prior = columns.prior.copy()
    masses = columns.full.standard_parameters[: 10 * columns.links : 10]
    usual = float(masses[masses > 0].mean()) if (masses > 0).any() else 1.0
    invented = []
    for owner, places in zip(owners, bodies, strict=True):
        prior[places], moved = made_consistent(prior[places], 0.05 * usual, 0.05)
        if moved:
            invented.append(owner)
    for k, column in enumerate(columns.columns):
        if column.what in NOT_NEGATIVE and not prior[k] > 0.0:
            share = np.abs(group.matrix[:, k]) @ group.sizes
            prior[k] = 0.02 * max(torque, 1e-9) / share if share > 0.0 else 1e-6
    return prior, tuple(invented)


def _left_out(columns: Columns) -> tuple[str, ...]:
    coupled = {columns.drive_names[d] for d, row in enumerate(columns.rates) if np.count_nonzero(row) > 1}
    return tuple(c.name for c in columns.columns if c.what == "stribeck" or (c.owner in coupled and c.what != "offset"))


def _with_numbers(columns: Columns, x: np.ndarray) -> Robot:
    robot = columns.full
    by_name = {column.name: value for column, value in zip(columns.columns, x.tolist(), strict=True)}
    owners, bodies = _bodies(columns)
    kinds = {c.owner: c.kind for c in columns.columns if c.is_body}
    inertia = {o: x[places] for o, places in zip(owners, bodies, strict=True) if kinds[o] == "inertia"}
    if inertia:
        robot = robot.with_inertia(inertia)
    robot = robot.with_armature(_of_joints(columns, by_name, "armature", robot.armature))
    damping = _of_joints(columns, by_name, "viscous", robot.damping)
    for owner in {c.owner for c in columns.columns if c.what == "coulomb+"}:
        # two sides are a mean, and a constant half difference
        ahead, back = by_name[f"{owner}.coulomb+"], by_name[f"{owner}.coulomb-"]
        by_name[f"{owner}.coulomb"] = 0.5 * (ahead + back)
        by_name[f"{owner}.offset"] = by_name.get(f"{owner}.offset", 0.0) + 0.5 * (ahead - back)
    friction = _of_joints(columns, by_name, "coulomb", robot.friction)
    offset = _of_joints(columns, by_name, "offset", robot.torque_offset)
    robot = robot.with_dissipation(damping, friction, offset)
    for owner, places in zip(owners, bodies, strict=True):
        if kinds[owner] == "payload":
            load = from_ten(x[places])
            robot = robot.with_payload(owner, load.mass, load.com, load.inertia)
    return robot


def _of_joints(columns: Columns, by_name: Mapping[str, float], what: str, described: np.ndarray) -> np.ndarray:
    """A drive's number at each joint: the diagonal of T^T diag(number) T, of offsets T^T number; the model's where none
    is unknown.
    """
    values = np.array([by_name.get(f"{name}.{what}", np.nan) for name in columns.drive_names])
    found = np.zeros(len(described))
    for joint in range(len(described)):
        acting = np.flatnonzero((columns.rates[:, joint] != 0.0) & np.isfinite(values))
        rates = columns.rates[acting, joint]
        share = {"offset": rates, "coulomb": np.abs(rates)}.get(what, np.square(rates))
        found[joint] = np.sum(share * values[acting])
        if not len(acting):
            found[joint] = described[joint]
    return found
