"""Instrumental variables: noise in the positions, which spoils least squares, does not reach the instruments.

A. Janot, P.-O. Vandanjon and M. Gautier, "A generic instrumental variable approach for industrial robot
identification", 2014 (IDIM-IV): the robot of the last estimate is simulated under control along the same reference, and
the regressor Z of that clean motion stands in for the measured one on the left: Z^T (tau - X values) = 0. A few rounds
are enough; the covariance is (Z^T X)^-1 Z^T Z (X^T Z)^-1 with the noise of each joint.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, cast

import numpy as np
from numpy.typing import ArrayLike

from linksweep.errors import ArgumentError
from linksweep.identification.estimate.least_squares import Estimate
from linksweep.identification.estimate.triangles import Triangles, chunks
from linksweep.identification.log.signals import Samples
from linksweep.motion import QuinticSpline
from linksweep.simulation import PD, ComputedTorque, simulate
from linksweep.support.messages import shown

if TYPE_CHECKING:
    from linksweep.identification.log.reading import Logged
    from linksweep.robot.robot import Robot

ROUNDS = 5
STEP = 1e-3  # seconds, of the simulation at most
BANDWIDTH = 2.0 * np.pi * 5.0  # rad/s of computed torque, where the drives' own gains are not given


Gains = tuple[np.ndarray, np.ndarray] | None  # kp and kd


def instrumented(
    found: Triangles, samples: Samples, first: Estimate, parts: list[list[tuple[int, int]]], reference: np.ndarray,
    control: Gains, robot_of: Callable[[Estimate], Robot],
) -> Estimate:  # fmt: skip
    """The estimate by instruments, from a `first` one by least squares.

    reference: positions (rows, nv) that were asked for, at the rows of `samples`.
    control: (kp, kd) of the drives; None: computed torque. robot_of: the robot of an estimate.
    """
    best = first
    for _ in range(ROUNDS):
        clean = _simulated(robot_of(best), samples, reference, control)
        now = _solved(found, samples, clean, best, parts)
        change = np.abs(now.values - best.values) / np.sqrt(np.maximum(np.diag(now.covariance), 1e-300))
        best = now
        if change[best.known].max(initial=0.0) < 0.05:
            break
    return best


def _solved(
    found: Triangles, samples: Samples, clean: Samples, last: Estimate, parts: list[list[tuple[int, int]]]
) -> Estimate:
    group = found.grouping
    base = len(group)
    ZX, ZZ, Zt = np.zeros((base, base)), np.zeros((base, base)), np.zeros(base)
    both = zip(chunks(group, samples, found.every, parts), chunks(group, clean, found.every, parts), strict=True)
    for measured, instruments in both:
        for joint, seen in enumerate(group.seen):
            into = group.from_base[seen] / last.noise[joint]
            Z, X = into.T @ instruments.X[joint], into.T @ measured.X[joint]
            tau = measured.tau[joint] / last.noise[joint]
            ZX += Z @ X.T
            ZZ += Z @ Z.T
            Zt += Z @ tau
    unit = 1.0 / group.sizes
    known = last.known
    scaled = (ZX * unit[:, None] * unit)[np.ix_(known, known)]
    inverse = np.zeros((base, base))
    inverse[np.ix_(known, known)] = np.linalg.inv(scaled) * unit[known][:, None] * unit[known]
    values = np.where(known, last.values + inverse @ (Zt - ZX @ last.values), last.values)
    pivots = group.from_base @ values
    square = sum(found.squares(part, pivots) for part in range(found.parts))
    noise = np.sqrt(square / np.maximum(found.count.sum(axis=0) - last.freedoms, 1.0))
    return replace(last, values=values, covariance=inverse @ ZZ @ inverse.T, noise=np.maximum(noise, 1e-300))


def _simulated(robot: Robot, samples: Samples, reference: np.ndarray, control: Gains) -> Samples:
    """The same rows as the robot of an estimate moves along the reference."""
    q, qd, qdd = (np.empty_like(samples.q) for _ in range(3))
    fine = max(1, int(np.ceil(samples.dt / STEP)))
    for a, b in samples.bounds:
        times = samples.dt * np.arange(b - a)
        path = QuinticSpline(reference[a:b], times, ends="not-a-knot")
        law = ComputedTorque(path, BANDWIDTH**2, 2.0 * BANDWIDTH) if control is None else PD(path, *control)
        start = path(0.0)
        run = simulate(
            robot, start.q, start.qd, law, times[-1], dt=samples.dt / fine, every=fine, dissipation=True,
            limits="ignore", progress=False,
        )  # fmt: skip
        if not np.isfinite(run.q).all():
            raise ArgumentError(
                "iv: the simulated robot does not follow the reference, expected gains that hold it: check control= "
                "and the reference's units."
            )
        q[a:b], qd[a:b], qdd[a:b] = run.q, run.qd, run.qdd
    return replace(samples, q=q, qd=qd, qdd=qdd)


def checked_reference(reference: Logged, t: Logged, samples: Samples, nv: int) -> np.ndarray:
    """The reference at the rows of the samples."""
    from scipy.interpolate import CubicSpline

    several = isinstance(t, (list, tuple)) and np.ndim(t[0]) == 1
    times = cast("Sequence[ArrayLike]", t if several else [t])
    wanted: object = reference if several else [reference]
    found = np.empty_like(samples.q)
    if not isinstance(wanted, (list, tuple)) or len(wanted) != len(times):
        raise ArgumentError(f"reference is {shown(reference)}, expected positions for each trajectory, as q.")
    for (a, b), own in zip(samples.bounds, samples.trajectory, strict=True):
        rows, at = np.asarray(wanted[own], dtype=float), np.asarray(times[own], dtype=float)
        if rows.shape != (len(at), nv) or not np.isfinite(rows).all():
            raise ArgumentError(
                f"reference has shape {rows.shape}, expected finite positions ({len(at)}, {nv}), a row for each of t."
            )
        fresh = np.concatenate([[True], np.diff(at) > 0])
        found[a:b] = CubicSpline(at[fresh], rows[fresh])(samples.t[a:b])
    return found


def checked_control(control: tuple[ArrayLike, ArrayLike] | None, nv: int) -> tuple[np.ndarray, np.ndarray] | None:
    if control is None:
        return None
    try:
        kp, kd = (np.broadcast_to(np.asarray(gain, dtype=float), (nv,)) for gain in control)
    except (TypeError, ValueError):
        kp = kd = np.full(nv, np.nan)
    if not ((kp > 0) & (kd >= 0) & np.isfinite(kp + kd)).all():
        raise ArgumentError(f"control is {shown(control)}, expected (kp, kd), each a number above 0 or {nv} of them.")
    return kp, kd
