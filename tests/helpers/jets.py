"""Numbers that carry their gradient and Hessian, and dynamics over them: references for derivatives in frameworks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import robots_for_tests as oracle

import linksweep as ls


class Jet:
    """A value with its gradient (N,) and its Hessian (N, N)."""

    __slots__ = ("g", "h", "v")

    def __init__(self, v: float, g: Any = 0.0, h: Any = 0.0):
        self.v, self.g, self.h = v, g, h

    def _through(self, value: float, first: float, second: float) -> Jet:
        """A function of this number, by its first and second derivative."""
        return Jet(value, first * self.g, first * self.h + second * np.multiply.outer(self.g, self.g))

    def __add__(self, b: Any) -> Jet:
        if isinstance(b, np.ndarray):  # which goes entry by entry
            return NotImplemented
        return Jet(self.v + b.v, self.g + b.g, self.h + b.h) if isinstance(b, Jet) else Jet(self.v + b, self.g, self.h)

    def __mul__(self, b: Any) -> Jet:
        if isinstance(b, np.ndarray):
            return NotImplemented
        if not isinstance(b, Jet):
            return Jet(self.v * b, self.g * b, self.h * b)
        mixed = np.multiply.outer(self.g, b.g)
        return Jet(self.v * b.v, self.v * b.g + b.v * self.g, self.v * b.h + b.v * self.h + mixed + mixed.T)

    def __neg__(self) -> Jet:
        return self * -1.0

    def __sub__(self, b: Any) -> Jet:
        return self.__add__(-b)

    def __rsub__(self, b: Any) -> Jet:
        return -self + b

    def inverse(self) -> Jet:
        return self._through(1 / self.v, -1 / self.v**2, 2 / self.v**3)

    def __truediv__(self, b: Any) -> Jet:
        return self * (b.inverse() if isinstance(b, Jet) else 1 / b)

    def sin(self) -> Jet:
        return self._through(np.sin(self.v), np.cos(self.v), -np.sin(self.v))

    def cos(self) -> Jet:
        return self._through(np.cos(self.v), -np.sin(self.v), -np.cos(self.v))

    __radd__, __rmul__ = __add__, __mul__


def jets(x: np.ndarray) -> np.ndarray:
    """The entries of x as variables: an array of objects."""
    flat = np.empty(x.size, dtype=object)
    for k, value in enumerate(x.ravel()):
        flat[k] = Jet(float(value), np.eye(x.size)[k], np.zeros((x.size, x.size)))
    return flat.reshape(x.shape)


def forward_dynamics(bot: ls.Robot) -> Callable[..., np.ndarray]:
    """q, qd, tau -> qdd over any numbers, by the oracle's mass matrix and Gaussian elimination."""

    def forward(q: Any, qd: Any, tau: Any) -> np.ndarray:
        M = oracle.mass_matrix(bot.model, q)
        b, n = tau - oracle.inverse_dynamics(bot.model, q, qd), len(q)
        for k in range(n):
            for i in range(k + 1, n):
                factor = M[i, k] / M[k, k]
                M[i], b[i] = M[i] - M[k] * factor, b[i] - b[k] * factor
        for k in reversed(range(n)):
            b[k] = (b[k] - (M[k, k + 1 :] * b[k + 1 :]).sum()) / M[k, k]
        return b

    return forward


def rollout(forward: Callable[..., np.ndarray], dt: float) -> Callable[..., tuple[np.ndarray, np.ndarray]]:
    """q0, qd0, tau (steps, n) -> all states, by the classical Runge-Kutta method."""

    def roll(q0: Any, qd0: Any, tau: Any) -> tuple[np.ndarray, np.ndarray]:
        n, states = len(q0), [np.concatenate([q0, qd0])]
        for held in tau:

            def rate(x: np.ndarray, held: np.ndarray = held) -> np.ndarray:
                return np.concatenate([x[n:], forward(x[:n], x[n:], held)])

            x = states[-1]
            a = rate(x)
            b = rate(x + a * (dt / 2))
            c = rate(x + b * (dt / 2))
            d = rate(x + c * dt)
            states.append(x + (a + b * 2 + c * 2 + d) * (dt / 6))
        path = np.stack(states)
        return path[:, :n], path[:, n:]

    return roll
