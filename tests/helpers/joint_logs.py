"""Synthetic joint logs of real arms whose truth is known, and ways in which such logs go wrong.

A log is simulated from a robot that differs from its description: masses, friction, armature and offsets. Positions are
those of encoders, torques carry noise. `CORRUPTIONS` has the errors that people make, `polled` the errors of a program
that asks a controller for its state without knowing its clock.
"""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from oracles import FILES
from scipy.signal import lfilter

import linksweep as ls

HELD = {
    "panda": ("finger",), "kinova": ("finger",), "ur5": (), "ur3": (), "ur10": (), "z1": ("jointGripper",),
    "xarm7": ("drive_joint", "finger", "knuckle"), "talos_left_arm": ("gripper",), "so100": ("gripper", "Jaw", "6"),
}  # fmt: skip
NAMES = {"ur5": "ur5_robot", "ur3": "ur3_robot", "ur10": "ur10_robot"}


@functools.cache
def arm(name: str) -> ls.Robot:
    """A bundled arm, or one of example-robot-data with its fingers locked."""
    if name in ("puma560", "stanford", "six_axis"):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ls.ModelWarning)  # of the published inertias of six_axis
            return getattr(ls.robots, name)()
    path = next(path for file, path in FILES.items() if file.endswith(f"/{NAMES.get(name, name)}.urdf"))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ls.ModelWarning)
        robot = ls.load(path)
        held = [joint for joint in robot.joint_names if any(word in joint for word in HELD[name])]
        return robot.lock(held) if held else robot


@dataclass(frozen=True)
class JointLog:
    """robot: the description. t (rows,), q, qd, tau (rows, nv): as measured. exact_tau: torques without noise."""

    robot: ls.Robot
    t: np.ndarray
    q: np.ndarray
    qd: np.ndarray
    tau: np.ndarray
    exact_tau: np.ndarray
    period: float

    def rows(self, which: slice | np.ndarray) -> JointLog:
        return replace(
            self, t=self.t[which], q=self.q[which], qd=self.qd[which], tau=self.tau[which],
            exact_tau=self.exact_tau[which],
        )  # fmt: skip

    def arrays(self, velocities: bool = False) -> tuple[np.ndarray, ...]:
        return (self.t, self.q, self.tau, self.qd) if velocities else (self.t, self.q, self.tau)


def motion(
    robot: ls.Robot, t: np.ndarray, rng: np.random.Generator, speed: float, pace: float = 0.1, kind: str = "fourier"
) -> tuple[np.ndarray, ...]:
    """q, qd, qdd inside position limits and `speed` times the velocity limits.

    kind: "fourier", a series of five multiples of about `pace` Hz for each joint, or "moves" from pose to pose by
    quintics, each of about 0.3 / pace seconds.
    """
    lower, upper, velocity, _ = robot.limits
    wide = ~(np.isfinite(lower) & np.isfinite(upper)) | (upper - lower > 2.0 * np.pi)
    low, high = np.where(wide, -1.0, lower), np.where(wide, 1.0, upper)
    middle = np.where(wide, rng.uniform(-1.0, 1.0, robot.nv), 0.5 * (low + high))
    half = np.where(wide, 0.9 * np.pi, 0.45 * (high - low))
    velocity = np.where(np.isfinite(velocity) & (velocity > 0.0), velocity, 2.0)
    if kind == "fourier":
        q, qd, qdd = np.zeros((3, len(t), robot.nv))
        for joint in range(robot.nv):
            w = 2.0 * np.pi * pace * np.arange(1, 6) * rng.uniform(0.9, 1.1)
            a, phase = rng.normal(size=5) / np.arange(1, 6) ** 0.5, rng.uniform(0.0, 2.0 * np.pi, 5)
            angle = w * t[:, None] + phase
            q[:, joint], qd[:, joint] = np.sin(angle) @ a, np.cos(angle) @ (a * w)
            qdd[:, joint] = -np.sin(angle) @ (a * w * w)
    else:
        q, qd, qdd = _moves(t - t[0], rng, robot.nv, 0.3 / pace)
    size = np.minimum(half / np.abs(q).max(axis=0), speed * velocity / np.abs(qd).max(axis=0))
    return size * q + middle, size * qd, size * qdd


def _moves(t: np.ndarray, rng: np.random.Generator, nv: int, duration: float) -> tuple[np.ndarray, ...]:
    times = np.concatenate([[0.0], np.cumsum(rng.uniform(0.7, 1.3, int(t[-1] / duration / 0.7) + 2) * duration)])
    poses = rng.uniform(-1.0, 1.0, (len(times), nv))
    k = np.searchsorted(times, t, side="right") - 1
    T = np.diff(times)[k]
    s = (t - times[k]) / T
    step = np.diff(poses, axis=0)[k]
    shape = s**3 * (10 - 15 * s + 6 * s**2), 30 * s**2 * (1 - s) ** 2 / T, 60 * s * (1 - s) * (1 - 2 * s) / T**2
    return poses[k] + step * shape[0][:, None], step * shape[1][:, None], step * shape[2][:, None]


def true_robot(robot: ls.Robot, rng: np.random.Generator, spread: float, dry: float, armature: bool) -> ls.Robot:
    """The arm that is logged: every mass off by a factor of about 1 + spread, friction, armature, and offsets apart."""
    bodies = {}
    for index in robot.model.document_order:
        link = robot.model.links[index]
        k = robot.link_names.index(link.name)
        bodies[link.name] = robot.standard_parameters[10 * k : 10 * k + 10] * np.exp(spread * rng.normal())
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ls.ModelWarning)  # as of `arm`
        true = robot.with_inertia({name: ten for name, ten in bodies.items() if ten[0] > 0})
    return true.with_armature(rng.uniform(0.05, 0.3, robot.nv) if armature else robot.armature)


def clean_log(
    name: str, seed: int = 0, *, rate: float = 1000.0, duration: float = 20.0, noise: float = 0.02, dry: float = 0.1,
    spread: float = 0.1, speed: float = 0.5, encoder: float = 2.0 * np.pi / 2**17, armature: bool = True,
    truth: int | None = None, offset: bool = True, model: str = "sign", pace: float = 0.1, kind: str = "fourier",
    colour: float = 0.0,
) -> JointLog:  # fmt: skip
    """A log without faults.

    noise: of torques, in parts of each joint's rms torque. dry: Coulomb friction in the same unit, and as much viscous
    friction at the largest velocity. truth: seed of the true robot; logs with the same one are of the same arm.
    model: of dry friction, "sign", "tanh" or "stribeck". pace, kind: of the motion. colour: seconds over which the
    noise of torques is correlated.
    """
    robot = arm(name)
    of_robot, rng = np.random.default_rng([seed if truth is None else truth, 1]), np.random.default_rng([seed, 2])
    true = true_robot(robot, of_robot, spread, dry, armature)
    usual_q, usual_qd, usual_qdd = motion(robot, np.linspace(0.0, 10.0, 400), np.random.default_rng(5), speed)
    torque = np.sqrt(np.mean(np.square(true.inverse_dynamics(usual_q, usual_qd, usual_qdd)), axis=0))
    torque = np.maximum(torque, 0.02 * torque.max())
    coulomb = dry * torque * of_robot.uniform(0.5, 1.5, robot.nv)
    viscous = dry * torque / np.abs(usual_qd).max(axis=0) * of_robot.uniform(0.5, 1.5, robot.nv)
    shift = 0.05 * torque * of_robot.normal(size=robot.nv) * offset
    t = np.arange(round(duration * rate)) / rate
    q, qd, qdd = motion(robot, t, rng, speed, pace, kind)
    slow = 0.01 * np.abs(qd).max(axis=0)
    side = np.sign(qd) if model == "sign" else np.tanh(qd / slow)
    if model == "stribeck":
        side = side * (1.0 + 0.3 * np.exp(-np.square(qd / (3.0 * slow))))
    exact = true.inverse_dynamics(q, qd, qdd) + viscous * qd + coulomb * side + shift
    white = rng.normal(size=q.shape)
    if colour:
        keep = np.exp(-1.0 / (rate * colour))
        white = lfilter([np.sqrt(1.0 - keep**2)], [1.0, -keep], white, axis=0)
    tau = exact + noise * torque * white
    seen = np.round(q / encoder) * encoder if encoder else q
    rates = qd + 0.002 * np.abs(qd).max(axis=0) * rng.normal(size=q.shape)
    return JointLog(robot, t, seen, rates, tau, exact, 1.0 / rate)


# ---- a polled controller ---------------------------------------------------------------------------------------------


def polled(log: JointLog, seed: int = 0, *, repeated: float = 0.06, gap: float = 0.008, every: float = 0.5) -> JointLog:
    """Rows as a client gets them that polls the controller at its own rate and stamps them with its own clock.

    Each poll takes the controller's last row; about `repeated` of the polls find the same row again, as many rows are
    skipped, and every `every` seconds or so the client stalls for `gap` seconds.
    """
    rng = np.random.default_rng(seed)
    count, period = len(log.t), log.period
    jitter = _jitter_for(repeated)
    wanted = (np.arange(count) + 0.5 + jitter * rng.normal(size=count)) * period
    stamps = np.maximum.accumulate(wanted)
    stamps += 1e-6 * np.arange(count) * period  # no two at the same time
    stalls = np.cumsum(rng.uniform(0.5, 1.5, int(count * period / every) + 1) * every)
    keep = np.ones(count, bool)
    for at in stalls:
        keep &= (stamps < at) | (stamps >= at + gap)
    stamps = stamps[keep]
    source = np.clip((stamps / period).astype(int), 0, count - 1)
    found = log.rows(source)
    return replace(found, t=stamps + log.t[0])


def _jitter_for(repeated: float) -> float:
    """Jitter of polls, in periods, at which this part of them finds a row again."""
    rng = np.random.default_rng(0)
    unit = rng.normal(size=40_000)
    low, high = 0.0, 2.0
    for _ in range(30):
        size = 0.5 * (low + high)
        ticks = np.floor(np.maximum.accumulate(np.arange(len(unit)) + 0.5 + size * unit))
        low, high = (size, high) if np.mean(np.diff(ticks) == 0) < repeated else (low, size)
    return high


def held(log: JointLog, seed: int = 0, *, repeated: float = 0.06, gap: float = 0.008, every: float = 0.5) -> JointLog:
    """Rows on the controller's own even times, some of which hold what the row before holds, and some are missing."""
    rng = np.random.default_rng(seed)
    source = np.arange(len(log.t))
    stale = rng.uniform(size=len(source)) < repeated
    stale[0] = False
    source = np.maximum.accumulate(np.where(stale, 0, source))
    found = replace(log.rows(source), t=log.t)
    keep = np.ones(len(log.t), bool)
    for at in np.cumsum(rng.uniform(0.5, 1.5, int(log.t[-1] / every) + 1) * every):
        keep &= (log.t < at) | (log.t >= at + gap - 0.5 * log.period)
    return found.rows(keep)


# ---- errors that people make -----------------------------------------------------------------------------------------


def late(log: JointLog, seconds: float, joints: list[int] | None = None) -> JointLog:
    """Torques that are late; their noise stays."""
    tau, noise = log.exact_tau.copy(), log.tau - log.exact_tau
    for joint in range(tau.shape[1]) if joints is None else joints:
        tau[:, joint] = np.interp(log.t - seconds, log.t, tau[:, joint])
    return replace(log, tau=tau + noise, exact_tau=tau)


def scaled_torques(log: JointLog, factor: float | np.ndarray) -> JointLog:
    return replace(log, tau=log.tau * factor, exact_tau=log.exact_tau * factor)


def flipped_torque(log: JointLog, joint: int) -> JointLog:
    nv = log.q.shape[1]
    return scaled_torques(log, np.where(np.arange(nv) == joint % nv, -1.0, 1.0))


def flipped_position(log: JointLog, joint: int) -> JointLog:
    sign = np.where(np.arange(log.q.shape[1]) == joint, -1.0, 1.0)
    return replace(log, q=log.q * sign, qd=log.qd * sign)


def swapped(log: JointLog, a: int, b: int, what: str = "both") -> JointLog:
    """Two joints in the place of each other: in "both" positions and torques, in "torques" or in "positions" alone."""
    order = np.arange(log.q.shape[1])
    order[[a, b]] = b, a
    q, qd = (log.q, log.qd) if what == "torques" else (log.q[:, order], log.qd[:, order])
    tau, exact = (log.tau, log.exact_tau) if what == "positions" else (log.tau[:, order], log.exact_tau[:, order])
    return replace(log, q=q, qd=qd, tau=tau, exact_tau=exact)


def scaled_time(log: JointLog, factor: float) -> JointLog:
    """t in another unit; measured velocities stay as they are."""
    return replace(log, t=log.t * factor, period=log.period * factor)


def held_torques(log: JointLog, rows: int) -> JointLog:
    """Torques that are updated less often than positions."""
    source = np.arange(len(log.t)) // rows * rows
    return replace(log, tau=log.tau[source], exact_tau=log.exact_tau[source])


def degrees(log: JointLog, what: str) -> JointLog:
    return replace(log, **{what: np.degrees(getattr(log, what))})


# ---- forty logs with a fault, and forty without ---------------------------------------------------------------------

ARMS = ("ur5", "panda", "ur3", "kinova", "z1", "puma560", "stanford", "ur10", "six_axis", "xarm7")


@dataclass(frozen=True)
class Case:
    """A log to fit. names: the remarks of which one must be made, "error" for an error; none: none may be made."""

    label: str
    arm: str
    options: dict[str, Any]
    velocities: bool
    cutoff: float | None
    fault: Callable[[JointLog], JointLog] = lambda log: log
    names: frozenset[str] = frozenset()

    def log(self) -> JointLog:
        return self.fault(clean_log(self.arm, **self.options))


def _options(k: int, seed: int) -> tuple[str, dict[str, Any], bool, float | None]:
    """An arm, and how it is logged: rates, noise, friction and motions as they are found."""
    rng = np.random.default_rng([k, seed])
    options = {
        "seed": int(rng.integers(1 << 30)), "rate": float(rng.choice([100, 125, 250, 500, 1000])),
        "duration": float(rng.choice([15, 20, 30])), "noise": float(rng.choice([0.005, 0.01, 0.02, 0.05])),
        "dry": float(rng.choice([0.05, 0.1, 0.2])), "spread": float(rng.choice([0.0, 0.1, 0.2])),
        "speed": float(rng.choice([0.4, 0.6])), "encoder": 2.0 * np.pi / 2 ** int(rng.choice([16, 18, 20])),
        "armature": bool(rng.integers(2)), "model": str(rng.choice(["sign", "tanh", "stribeck"])),
        "pace": float(rng.choice([0.1, 0.15])), "colour": float(rng.choice([0.0, 0.01])),
    }  # fmt: skip
    return ARMS[k % len(ARMS)], options, bool(rng.integers(2)), [None, 10.0, 15.0][int(rng.integers(3))]


def clean_cases(count: int = 40, seed: int = 1) -> list[Case]:
    cases = []
    for k in range(count):
        name, options, velocities, cutoff = _options(k, seed)
        cases.append(Case(f"clean-{k}-{name}", name, options, velocities, cutoff))
    return cases


SIGNS, ORDER, DELAY = frozenset({"signs"}), frozenset({"order"}), frozenset({"delay"})
SCALE, TIME, STALE = frozenset({"scale"}), frozenset({"time", "rates", "speeds"}), frozenset({"stale"})
FAULTS: tuple[tuple[str, Callable[[JointLog], JointLog], frozenset[str]], ...] = (
    ("last torque turned round", lambda log: flipped_torque(log, -1), SIGNS),
    ("torque before the last turned round", lambda log: flipped_torque(log, -2), SIGNS),
    ("third torque turned round", lambda log: flipped_torque(log, 2), SIGNS),
    ("all torques turned round", lambda log: scaled_torques(log, -1.0), SIGNS),
    ("third position turned round", lambda log: flipped_position(log, 2), SIGNS),
    ("joints 2 and 3 swapped", lambda log: swapped(log, 1, 2), ORDER),
    ("joints 1 and 2 swapped", lambda log: swapped(log, 0, 1), ORDER),
    ("torques of joints 2 and 3 swapped", lambda log: swapped(log, 1, 2, "torques"), ORDER),
    ("positions of joints 2 and 3 swapped", lambda log: swapped(log, 1, 2, "positions"), ORDER),
    ("torques of the last two joints swapped", lambda log: swapped(log, -2, -1, "torques"), ORDER),
    ("torques 2 ms late", lambda log: late(log, 0.002), DELAY),
    ("torques 4 ms late", lambda log: late(log, 0.004), DELAY),
    ("torques 8 ms early", lambda log: late(log, -0.008), DELAY),
    ("torques 20 ms late", lambda log: late(log, 0.020), DELAY),
    ("torques 30 ms late", lambda log: late(log, 0.030), DELAY),
    ("torque of joint 2 10 ms late", lambda log: late(log, 0.010, [1]), DELAY),
    ("time x 10", lambda log: scaled_time(log, 10.0), TIME),
    ("time / 10", lambda log: scaled_time(log, 0.1), TIME),
    ("torques x 0.3", lambda log: scaled_torques(log, 0.3), SCALE),
    ("torques in N mm", lambda log: scaled_torques(log, 1000.0), SCALE),
    ("torques before the gear", lambda log: scaled_torques(log, 0.01), SCALE),
    ("torque of joint 2 x 3", lambda log: scaled_torques(log, np.where(np.arange(log.q.shape[1]) == 1, 3, 1)), SCALE),
    ("time in milliseconds", lambda log: scaled_time(log, 1000.0), frozenset({"error"})),
    ("velocities in degrees", lambda log: degrees(log, "qd"), frozenset({"rates"})),
    ("polled", polled, STALE),
    ("held rows", held, STALE),
    ("held torques", lambda log: held_torques(log, 5), STALE),
)


def corrupted_cases(count: int = 40, seed: int = 2) -> list[Case]:
    cases = []
    for k in range(count):
        name, options, velocities, cutoff = _options(k, seed)
        label, fault, names = FAULTS[k % len(FAULTS)]
        factor = {"time x 10": 10.0, "time / 10": 0.1}.get(label, 1.0)
        velocities = velocities or label == "velocities in degrees"
        cutoff = None if cutoff is None else cutoff / factor
        cases.append(Case(f"{label}-{k}-{name}", name, options, velocities, cutoff, fault, names))
    return cases
