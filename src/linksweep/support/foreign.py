"""Arrays of other packages that NumPy would take and get wrong: masked ones, PyTorch's tensors, JAX's tracers.

Nothing is imported here: an array is known by its class.
"""

from __future__ import annotations

import functools

from ..errors import ArgumentError

_MASKED = (
    "is a masked array, whose masked entries would count as numbers, expected a plain one: fill them with "
    "np.ma.filled, or select rows without any"
)
_TENSOR = (
    "is a PyTorch tensor, whose gradients and device would be lost, expected a NumPy array: pass "
    "x.detach().cpu().numpy(), or call linksweep.torch.wrap(robot.compile(...)) with tensors"
)
_TRACER = (
    "is a tracer of JAX, which has no numbers yet, expected a NumPy array: call this outside jit, grad and vmap, with "
    "np.asarray(x), or call linksweep.jax.wrap(robot.compile(...)) inside of them"
)
_REFUSED = {("numpy", "MaskedArray"): _MASKED, ("torch", "Tensor"): _TENSOR, ("jax", "Tracer"): _TRACER}
_NESTED = 8  # lists within lists that are looked through


def refuse_foreign(what: str, value: object, tensors: bool = False) -> None:
    """Raise where `value`, or an entry of a list or tuple, is such an array; `what` begins the sentence.

    tensors: those of PyTorch are taken.
    """
    said = _foreign(value, _NESTED)
    if said and not (tensors and said is _TENSOR):
        raise ArgumentError(f"{what} {said}.") from None


def _foreign(value: object, deep: int) -> str:
    kind = type(value)
    if not isinstance(value, (list, tuple)) or kind not in (list, tuple):
        return _of_kind(kind)
    kinds = set(map(type, value))  # of a million numbers there is one
    said = next(filter(None, map(_of_kind, kinds)), "")
    if said or not deep or not kinds & {list, tuple}:
        return said
    return next(filter(None, (_foreign(entry, deep - 1) for entry in value)), "")


@functools.lru_cache(maxsize=256)
def _of_kind(kind: type) -> str:
    for base in kind.__mro__:
        said = _REFUSED.get((str(base.__module__).partition(".")[0], base.__name__))
        if said:
            return said
    return ""
