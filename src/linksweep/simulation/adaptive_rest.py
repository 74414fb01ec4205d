"""Adaptive steps of robots that friction holds and stops end: smooth motion between events, a mode for each joint.

A joint slides one way or the other, or it is held, by friction or at a stop. Modes stay between events: a rate that
comes to 0, a holding force beyond what friction can give, a stop that is reached or left. At an event the joints at
rest are asked again (resting.py) what moves and what holds.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import numpy as np

from ..robot.robot import Robot
from .resting import FAR, Rest, resting_acceleration, settled

if TYPE_CHECKING:
    from scipy.integrate import OdeSolution
    from scipy.optimize import OptimizeResult


class Watched(Protocol):
    """A function of time and state that `solve_ivp` follows through 0, upward (1), downward (-1) or either way (0)."""

    @property
    def terminal(self) -> bool: ...
    @property
    def direction(self) -> float: ...
    def __call__(self, t: float, y: np.ndarray, /) -> float: ...


@dataclass(frozen=True)
class Crossing:
    """An event; `let_go`: the joint that can be held no more there, and which way it goes."""

    function: Callable[[float, np.ndarray], float]
    terminal: bool = True
    direction: float = -1
    let_go: tuple[int, float] | None = None

    def __call__(self, t: float, y: np.ndarray, /) -> float:
        return self.function(t, y)


class Modes:
    """The joints' modes, and accelerations while they last. `torque(t, q, qd)` is what drives, (nv,)."""

    def __init__(self, robot: Robot, rest: Rest, forward: Callable[..., np.ndarray], torque: Callable[..., np.ndarray]):
        self.rest, self.nq, self.nv = rest, robot.nq, robot.nv
        self._robot, self._forward, self._torque = robot, forward, torque
        self.friction = np.array(rest.friction)
        self.sliding, self.held = np.zeros(self.nv), np.zeros(self.nv, bool)
        self.least, self.most = np.zeros(self.nv), np.zeros(self.nv)  # what can hold a joint
        self._last: tuple[tuple[float, bytes, bytes], tuple[np.ndarray, np.ndarray]] | None = None

    def _pushed(self, t: float, q: np.ndarray, qd: np.ndarray, sliding: np.ndarray) -> np.ndarray:
        spring = np.array(self.rest.spring_torque(q.tolist(), qd.tolist()))
        return self._torque(t, q, qd) + spring - self.friction * sliding

    def asked(self, t: float, q: np.ndarray, qd: np.ndarray) -> np.ndarray:
        """The accelerations in a state whose joints at rest have rates of exactly 0."""
        M = self._robot.mass_matrix(q).tolist()
        free = self._forward(q, qd, self._pushed(t, q, qd, np.sign(qd)))
        return np.array(resting_acceleration(self.rest, M, free.tolist(), q.tolist(), qd.tolist())[0])

    def choose(self, t: float, q: np.ndarray, qd: np.ndarray, let_go: tuple[int, float] | None = None) -> None:
        """Modes from here on. let_go: a joint that can be held no more, and which way it goes."""
        qdd = self.asked(t, q, qd)
        if let_go is not None and qd[let_go[0]] == 0.0 and qdd[let_go[0]] == 0.0:
            qdd[let_go[0]] = let_go[1]  # at the event itself its acceleration is 0, but for rounding
        low, high = (np.array(bound, float) for bound in self.rest.bounds(q.tolist(), qd.tolist()))
        still = (qd == 0.0) & (qdd == 0.0)
        self.held = still & ((self.friction > 0.0) | (low == 0.0) | (high == 0.0))
        self.sliding = np.where(qd != 0.0, np.sign(qd), np.where(self.held, 0.0, np.sign(qdd)))
        self.least = np.where(high == 0.0, -np.inf, -self.friction)
        self.most = np.where(low == 0.0, np.inf, self.friction)
        self._last = None

    def accelerations(self, t: float, q: np.ndarray, qd: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """In the modes of now: accelerations, and the forces that hold joints."""
        key = (t, q.tobytes(), qd.tobytes())
        if self._last is not None and self._last[0] == key:
            return self._last[1]
        qdd, force = self._forward(q, qd, self._pushed(t, q, qd, self.sliding)), np.zeros(self.nv)
        if self.held.any() and np.isfinite(qdd).all():
            held = np.flatnonzero(self.held)
            columns = np.linalg.solve(self._robot.mass_matrix(q), np.eye(self.nv)[:, held])
            force[held] = -np.linalg.solve(columns[held], qdd[held])
            qdd = qdd + columns @ force[held]
            qdd[held] = 0.0
        self._last = (key, (qdd, force))
        return qdd, force

    def events(self) -> list[Crossing]:
        """Functions that cross 0 where a mode ends."""
        found: list[Crossing] = []
        for i in range(self.nv):
            if self.held[i]:
                found += [self._holding(i, sign) for sign in (-1.0, 1.0)]
            elif self.friction[i] > 0.0 and self.sliding[i]:
                found.append(Crossing(lambda t, y, i=i, s=self.sliding[i]: s * y[self.nq + i]))
        for place, rate, lower, upper in self.rest.stops if self.rest.spring is None else ():
            if not self.held[rate]:
                if upper < FAR:
                    found.append(Crossing(lambda t, y, k=place, u=upper: u - y[k]))
                if lower > -FAR:
                    found.append(Crossing(lambda t, y, k=place, u=lower: y[k] - u))
        return found

    def _holding(self, i: int, sign: float) -> Crossing:
        bound = self.most[i] if sign > 0.0 else -self.least[i]

        def spare(t: float, y: np.ndarray) -> float:
            return 1.0 if bound == np.inf else bound - sign * self.accelerations(t, y[: self.nq], y[self.nq :])[1][i]

        return Crossing(spare, let_go=(i, -sign))

    def after(self, y: np.ndarray) -> np.ndarray:
        """The state behind an event: at rest what came to rest, speed taken at a stop, by impulses that all feel."""
        q, qd = y[: self.nq].copy(), y[self.nq :].copy()
        tiny = 1e-9 * max(1.0, float(np.abs(qd).max()))
        qd[(self.friction > 0.0) & (np.abs(qd) <= tiny) & (self.sliding * qd <= tiny * 1e-3)] = 0.0
        for place, rate, lower, upper in self.rest.stops if self.rest.spring is None else ():
            for bound, outward in ((upper, 1.0), (lower, -1.0)):
                if (
                    abs(bound) < FAR
                    and abs(q[place] - bound) <= 1e-9 * max(1.0, abs(bound))
                    and outward * qd[rate] >= 0.0
                ):
                    q[place] = bound
        if self.rest.stops and self.rest.spring is None:
            zero = [0.0] * self.nv
            M, bounds = self._robot.mass_matrix(q).tolist(), self.rest.bounds(q.tolist())
            qd = np.array(settled(M, qd.tolist(), zero, zero, *bounds))
        return np.concatenate([q, qd])


class Pieces:
    """The motion of all segments, at any times."""

    def __init__(self, pieces: Sequence[OdeSolution]):
        self._pieces = pieces
        self._starts = np.array([piece.ts[0] for piece in pieces])
        self.ts = np.concatenate([piece.ts for piece in pieces])

    def __call__(self, t: np.ndarray) -> np.ndarray:
        which = np.clip(np.searchsorted(self._starts, t, side="right") - 1, 0, len(self._pieces) - 1)
        return np.stack([self._pieces[k](time) for k, time in zip(which, t, strict=True)], axis=-1)


def solve_in_modes(
    modes: Modes, rate: Callable[..., np.ndarray], duration: float, start: np.ndarray, t_eval: np.ndarray,
    watched: Sequence[Watched], most: int, *, rtol: float, atol: float,
) -> OptimizeResult:  # fmt: skip
    """What `solve_ivp` gives, of one segment after the other; `modes` have been chosen at the start."""
    from scipy.integrate import solve_ivp
    from scipy.optimize import OptimizeResult

    times, states, pieces = [t_eval[:1]], [start[None]], []
    moments: list[list[float]] = [[] for _ in watched]
    at: list[list[np.ndarray]] = [[] for _ in watched]
    now, y, status, message, short = 0.0, start, 0, "", 0
    while True:
        changes = modes.events()
        part = solve_ivp(
            rate, (now, duration), y, method="DOP853", t_eval=t_eval[t_eval > now], events=[*watched, *changes],
            dense_output=True, rtol=rtol, atol=atol,
        )  # fmt: skip
        if part.sol is not None:
            pieces.append(part.sol)
        found = np.asarray(part.y).T.reshape(-1, len(start))
        times.append(np.asarray(part.t))
        states.append(found)
        for k in range(len(watched)):
            moments[k] += list(part.t_events[k])
            at[k] += list(np.asarray(part.y_events[k]).reshape(-1, len(start)))
        ended = [k for k, event in enumerate(watched) if event.terminal and len(part.t_events[k])]
        if part.status != 1 or ended:
            status, message = part.status, part.message
            break
        own = [k for k, m in enumerate(part.t_events[len(watched) :]) if len(m)]
        end = float(part.t_events[len(watched) + own[0]][-1])
        short = short + 1 if end - now <= 1e-12 * duration else 0
        if short > 50 or len(pieces) > most:
            status, message = -1, f"modes of the joints change for ever from t = {now:g} s on"
            break
        y = modes.after(np.asarray(part.y_events[len(watched) + own[0]][-1]))
        now = end
        modes.choose(now, y[: modes.nq], y[modes.nq :], changes[own[0]].let_go)
        if now >= duration:
            break
    return OptimizeResult(
        t=np.concatenate(times), y=np.concatenate(states).T, sol=Pieces(pieces) if pieces else None, status=status,
        message=message, t_events=[np.array(m) for m in moments],
        y_events=[np.array(y).reshape(-1, len(start)) for y in at],
    )  # fmt: skip
