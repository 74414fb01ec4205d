"""The kinds of operators: causal, strictly causal, memoryless, and those that reach one end of the chain.

A causal operator (lower block triangular) is an inward sweep, from tip to base, in which `carry` takes a force from
link k to link k+1; its adjoint is an outward sweep with the adjoint `carry_T`. A memoryless operator (block diagonal)
is a sweep that carries nothing. `own` is what each step gets of its own link besides its vector.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..algorithms.mass_matrix.factorization import Gain
from ..description.model import BASE
from ..mechanism.joints import Span
from ..mechanism.sweeps import PerLink
from ..spatial.algebra import ZERO_FORCE, ZERO_MOTION, Force, Motion
from ..spatial.transforms import Shift
from .chain import Stack, TurnedChain, TurnedLink, force, join, motion
from .linear import Apply, SpatialOperator

Carry = Callable[[TurnedLink, Any, Any], Any]  # a record of a link and what is its own: another record


def phi(link: TurnedLink, f: Force, at: object) -> Force:
    return link.phi(f)  # (2.16)


def phi_T(link: TurnedLink, v: Motion, at: object) -> Motion:
    return link.phi_T(v)


def psi(link: TurnedLink, f: Force, at: Gain) -> Force:
    return link.phi(f - Span(at.G) @ link.H(f))  # (4.7) phi - L H, with L = phi G


def psi_T(link: TurnedLink, v: Motion, at: Gain) -> Motion:
    v = link.phi_T(v)
    return v - link.H_T @ Span(at.G).transpose_times(v)


def stop(link: TurnedLink, f: Force, at: object) -> Force:
    return ZERO_FORCE


def stop_T(link: TurnedLink, v: Motion, at: object) -> Motion:
    return ZERO_MOTION


def identity(name: str, size: int) -> SpatialOperator:
    def copy(x: np.ndarray) -> np.ndarray:
        return x.astype(np.result_type(x.dtype, np.float64))

    return SpatialOperator(name, (size, size), copy, copy)


def causal(name: str, chain: TurnedChain, carry: Carry, carry_T: Carry, own: PerLink) -> SpatialOperator:
    """y(k) = x(k) + carry(k, k-1) y(k-1)."""

    def inward_step(link: TurnedLink, z: Force, x: Force, at: object) -> tuple[Force, Force]:
        y = z + x
        return y, carry(link, y, at)

    def outward_step(link: TurnedLink, inner: Motion, x: Motion, at: object) -> tuple[Motion, Motion]:
        y = carry_T(link, inner, at) + x
        return y, y

    return _swept(name, chain, inward_step, outward_step, own)


def strictly_causal(name: str, chain: TurnedChain, carry: Carry, carry_T: Carry, own: PerLink) -> SpatialOperator:
    """y(k) = x(k-1) + carry(k, k-1) y(k-1): link k's own x does not reach it, and x(k-1) comes as it is."""

    def inward_step(link: TurnedLink, z: Force, x: Force, at: object) -> tuple[Force, Force]:
        return z, carry(link, z, at) + x

    def outward_step(link: TurnedLink, inner: Motion, x: Motion, at: object) -> tuple[Motion, Motion]:
        return inner, carry_T(link, inner, at) + x

    return _swept(name, chain, inward_step, outward_step, own)


def _swept(name: str, chain: TurnedChain, inward_step: Callable[..., tuple[Force, Force]],
           outward_step: Callable[..., tuple[Motion, Motion]], own: PerLink) -> SpatialOperator:  # fmt: skip
    def forward(x: np.ndarray) -> np.ndarray:
        y, _ = chain.inward(inward_step, ZERO_FORCE, chain.forces.split(x), own)
        return join(y, x)

    def adjoint(x: np.ndarray) -> np.ndarray:
        return join(chain.outward(outward_step, ZERO_MOTION, chain.motions.split(x), own), x)

    return SpatialOperator(name, (chain.forces.size, chain.forces.size), forward, adjoint)


def memoryless(
    name: str, chain: TurnedChain, forward: tuple[Stack, Carry], adjoint: tuple[Stack, Carry], own: PerLink
) -> SpatialOperator:
    """Block diagonal. Each direction: the vectors it takes, and what it makes of one link's."""

    def applied(stack: Stack, block: Carry) -> Apply:
        def step(link: Any, nothing: tuple[()], x: object, at: object) -> tuple[object, tuple[()]]:
            return block(link, x, at), nothing

        return lambda x: join(chain.outward(step, (), stack.split(x), own), x)

    return SpatialOperator(name, (adjoint[0].size, forward[0].size), applied(*forward), applied(*adjoint))


def from_tips(name: str, chain: TurnedChain, places: Sequence[tuple[int, Shift]]) -> SpatialOperator:
    """6N by 6 for each frame: a force at it, carried to its link, nothing on the others.

    places: the link of each frame, and the shift from the link's origin to the frame.
    """
    six = Stack(force, (6,) * len(places))

    def forward(x: np.ndarray) -> np.ndarray:
        out: list[Force] = [ZERO_FORCE] * len(chain.links)
        for (link, carry), given in zip(places, reversed(six.split(x)), strict=True):
            out[link] = out[link] + carry.to_parent(given)
        return join(out, x)

    def adjoint(x: np.ndarray) -> np.ndarray:
        moving = chain.motions.split(x)
        return join([carry.to_link(moving[link]) for link, carry in reversed(places)], x)

    return SpatialOperator(name, (chain.forces.size, six.size), forward, adjoint)


def from_base(name: str, chain: TurnedChain) -> SpatialOperator:
    """6N by 6: a motion of the base, carried to the links that stand on it, nothing on the others."""
    one = Stack(motion, (6,))
    on_base = [link.parent == BASE for link in chain.model.links]

    def forward(x: np.ndarray) -> np.ndarray:
        given = one.split(x)[0]
        return join(
            [link.phi_T(given) if so else ZERO_MOTION for link, so in zip(chain.links, on_base, strict=True)], x
        )

    def adjoint(x: np.ndarray) -> np.ndarray:
        total = ZERO_FORCE
        for link, so, f in zip(chain.links, on_base, chain.forces.split(x), strict=True):
            total = total + link.phi(f) if so else total
        return join([total], x)

    return SpatialOperator(name, (chain.forces.size, 6), forward, adjoint)
