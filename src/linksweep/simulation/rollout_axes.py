"""What rollouts in JAX and PyTorch share: where a mapped axis goes, and the sum over axes that were shared.

q0, qd0 are (..., size) and their slopes too; torques, states and weights have moments first: (moments, ..., size).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from .gradient import Rollout

Array = Any  # of JAX or PyTorch: an array, a tracer, a tensor, or what autograd hands over
NAMES = "q0", "qd0", "tau"
FIRST = 0, 0, 1, 1, 1, 1, 1  # the first leading axis of q0, qd0, tau (and their slopes), the weights, the states


def result_shapes(roll: Rollout, shapes: Sequence[Array]) -> list[tuple[int, ...]]:
    """Of q, qd from the shapes of q0, qd0, tau; with those of weights and states, of the three slopes."""
    nq, nv, steps = roll.robot.nq, roll.robot.nv, shapes[2][0]
    if len(shapes) == 3:
        batch = roll.batch(*map(tuple, shapes))
        return [(steps + 1, *batch, nq), (steps + 1, *batch, nv)]
    batch = roll.backward_batch(*map(tuple, shapes[:5]))
    return [(*batch, nq), (*batch, nv), (steps, *batch, nv)]


def pulled_back(roll: Rollout) -> Callable[..., Array]:
    """q0, qd0, tau, weights of q, qd, q, qd -> slopes."""
    return lambda *given: roll.backward(*given[:5], states=given[5:])


def mapped_first(
    arrays: Sequence[Array], mapped: Sequence[bool], moved: Callable[[Array, int, int], Array],
    firsts: Sequence[int] = FIRST,
) -> list[Array]:  # fmt: skip
    """Arrays of which some have a mapped axis at 0: it becomes the first leading one of all. `moved`: moveaxis."""
    leading = [x.ndim - first - 1 - is_mapped for x, first, is_mapped in zip(arrays, firsts, mapped, strict=False)]
    placed = []
    for x, first, is_mapped, own in zip(arrays, firsts, mapped, leading, strict=False):
        if is_mapped:
            x = moved(x, 0, first)
            x = x.reshape(*x.shape[: first + 1], *(1,) * (max(leading) - own), *x.shape[first + 1 :])
        placed.append(x)
    return placed


def summed(slope: Array, shape: Sequence[int], first: int) -> Array:
    """Over the leading axes along which an argument of this shape was shared."""
    extra = len(slope.shape) - len(shape)
    shared = [*range(first, first + extra)]
    shared += [k + extra for k in range(first, len(shape) - 1) if shape[k] == 1 and slope.shape[k + extra] != 1]
    return slope.sum(tuple(shared)).reshape(tuple(shape)) if shared else slope
