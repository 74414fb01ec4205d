"""`Rollouts`: a simulation as the experiment of an ensemble: starts, gains and payloads that vary."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike

from ..errors import ArgumentError
from ..robot.robot import Robot
from ..support.foreign import refuse_foreign
from ..support.memory import check_memory
from ..support.messages import is_one_of, nearest, shown
from ..support.numbers import as_array
from .checks import positive, real_array, whole
from .control.composed import SaturatedLaw, SumOfLaws
from .laws import Law
from .options import SimulateOptions

IN_MEMORY = 1 << 26  # bytes of records at a time
VARIED = ("q0", "qd0", "kp", "kd")
TIMES = {"duration": 1.0, "dt": 1e-3}  # as in `simulate`
SPREADS = ("normal", "uniform")


@dataclass(frozen=True)
class Rollouts:
    """simulate(robot, q0, qd0, law, **options) from scattered starts, with scattered gains and one of several payloads.

    vary: for any of q0, qd0 (added to the start), kp, kd (factors of the law's gains; of a sum or a
    saturated law, those of the one inside that has them), ("normal" or "uniform", size):
    its standard deviation, or the most that it goes either way; one number, or one for each joint. payloads: masses
    (kg) held in `frame` with their mass centre in its origin; sample i has the i-th of them, again and again. The
    columns of a sample are what was drawn, q and qd in the end, and the largest recorded torque of each joint.
    """

    robot: Robot
    q0: ArrayLike
    qd0: ArrayLike | None = None
    law: Law | None = None
    options: SimulateOptions = field(default_factory=SimulateOptions)
    vary: Mapping[str, tuple[str, ArrayLike]] = field(default_factory=dict)
    payloads: tuple[float, ...] = ()
    frame: str | None = None

    def __post_init__(self) -> None:
        for name, value in self.vary.items():
            if not is_one_of(name, VARIED):
                raise ArgumentError(f"vary has {shown(name)}{nearest(name, VARIED)}, expected {', '.join(VARIED)}.")
            if not isinstance(value, (tuple, list)) or len(value) != 2 or value[0] not in SPREADS:
                raise ArgumentError(f"vary: {name} is {shown(value)}, expected ('normal' or 'uniform', size).")
            size = _from_zero(f"vary: {name}", value[1])
            if size is None or size.shape not in ((), (self.robot.nv,)):
                raise ArgumentError(
                    f"vary: {name} has size {shown(value[1])}, expected numbers from 0 on: one, or {self.robot.nv} of "
                    f"them."
                )
            if name in ("kp", "kd"):
                _check_gain(self.law, name)
        masses = _from_zero("payloads", self.payloads)
        if masses is None or masses.ndim != 1:
            raise ArgumentError(f"payloads is {shown(self.payloads)}, expected masses (kg) from 0 on.")
        object.__setattr__(self, "payloads", tuple(masses.tolist()))
        if masses.any():
            self._robot(int(masses.argmax()))  # whether there is such a frame
        one_start(self.robot, self.q0, self.qd0)
        self._at_once()

    def __call__(self, rng: np.random.Generator, first: int, count: int) -> dict[str, np.ndarray]:
        check_memory("a chunk", (count, 2 * self.robot.nv), advice="choose a smaller chunk")
        drawn = {name: self._drawn(rng, name, count) for name in VARIED if name in self.vary}
        columns: dict[str, np.ndarray] = {"sample": first + np.arange(count), **drawn}
        numbers, kinds = first + np.arange(count), max(len(self.payloads), 1)
        if self.payloads:
            columns["payload"] = np.asarray(self.payloads, float)[numbers % kinds]
        for kind in range(kinds):
            every = np.flatnonzero(numbers % kinds == kind)
            robot, at_once = self._robot(kind), self._at_once()
            for start in range(0, len(every), at_once):
                which = every[start : start + at_once]
                for name, values in self._simulated(robot, which, drawn).items():
                    columns.setdefault(name, np.empty((count, *values.shape[1:])))[which] = values
        return columns

    def _at_once(self) -> int:
        """So many rollouts that their records fit into memory; a rollout does not depend on those beside it."""
        duration, dt = (positive(name, self.options.get(name, default)) for name, default in TIMES.items())
        steps = duration / dt / whole("every", self.options.get("every", 1))
        return max(int(IN_MEMORY / (8 * (steps + 1) * (self.robot.nq + 3 * self.robot.nv))), 64)

    def _drawn(self, rng: np.random.Generator, name: str, count: int) -> np.ndarray:
        spread, size = self.vary[name]
        shape = (count, self.robot.nv)
        values = rng.normal(size=shape) if spread == "normal" else rng.uniform(-1.0, 1.0, shape)
        return values * np.asarray(size, float) + (1.0 if name in ("kp", "kd") else 0.0)

    def _simulated(self, robot: Robot, which: np.ndarray, drawn: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        from .run import simulate

        law, count = self.law, len(which)
        q0 = np.broadcast_to(np.asarray(self.q0, float), (count, robot.nq))
        qd0 = np.broadcast_to(0.0 if self.qd0 is None else np.asarray(self.qd0, float), (count, robot.nv))
        if "q0" in drawn:
            q0 = robot.integrate(q0, drawn["q0"][which], 1.0)
        if "qd0" in drawn:
            qd0 = qd0 + drawn["qd0"][which]
        for name in ("kp", "kd"):
            if law is not None and name in drawn:
                law = _scaled(law, name, drawn[name][which])
        options: SimulateOptions = {"limits": "ignore", **self.options, "progress": False}
        found = simulate(robot, q0, qd0, law, **options)
        return {"q": found.q[-1], "qd": found.qd[-1], "tau_peak": np.abs(found.tau).max(axis=0)}

    def _robot(self, kind: int) -> Robot:
        if not self.payloads or self.payloads[kind] == 0.0:
            return self.robot
        try:
            frame = self.robot.ee if self.frame is None else self.frame
        except ArgumentError as error:
            raise ArgumentError(f"payloads have no frame, and {error}") from None
        return self.robot.with_payload(frame, self.payloads[kind], (0.0, 0.0, 0.0))


def one_start(robot: Robot, q0: ArrayLike, qd0: ArrayLike | None) -> tuple[np.ndarray, np.ndarray | None]:
    """q0 (nq,) and qd0 (nv,), checked: one rollout, not a batch."""
    found = real_array("q0", q0, robot.nq), None if qd0 is None else real_array("qd0", qd0, robot.nv)
    for name, start in zip(("q0", "qd0"), found, strict=True):
        if start is not None and start.ndim > 1:
            raise ArgumentError(
                f"{name} has shape {start.shape}, expected {start.shape[-1:]}: give one start, vary scatters it."
            )
    return found


def _from_zero(name: str, value: ArrayLike) -> np.ndarray | None:
    """Finite numbers from 0 on, or None."""
    refuse_foreign(name, value)
    array = as_array(value)
    real = array.dtype.kind in "fiu" and bool(np.isfinite(array).all())
    return array if real and (array >= 0).all() else None


def _parts(law: Law | None) -> list[Law]:
    """The laws of which one is made."""
    if isinstance(law, SumOfLaws):
        return [part for one in law.laws for part in _parts(one)]
    if isinstance(law, SaturatedLaw):
        return _parts(law.law)
    return [] if law is None else [law]


def _check_gain(law: Law | None, name: str) -> None:
    """One of the laws has this gain, and only one."""
    found = [part for part in _parts(law) if hasattr(part, name)]
    if not found:
        raise ArgumentError(f"vary: {name} is a gain, expected a law that has it, such as PD.")
    if len(found) > 1:
        laws = ", ".join(type(part).__name__ for part in found)
        raise ArgumentError(
            f"vary: {name} is a gain of {len(found)} laws ({laws}), expected one that has it: leave {name} out."
        )


def _scaled(law: Law, name: str, factors: np.ndarray) -> Law:
    """The law with other gains where it has them."""
    own = copy.copy(law)
    if isinstance(own, SumOfLaws):
        own.laws = tuple(_scaled(part, name, factors) for part in own.laws)
    elif isinstance(own, SaturatedLaw):
        own.law = _scaled(own.law, name, factors)
    elif hasattr(own, name):
        setattr(own, name, getattr(own, name) * factors)
    return own
