"""Arrays that this machine cannot hold, refused before a page of them is touched."""

from __future__ import annotations

import math
import os

from ..errors import ArgumentError


def check_memory(
    what: str, shape: tuple[int, ...], itemsize: int = 8,
    advice: str = "simulate fewer rollouts at a time, or record less often (every=...)",
) -> None:  # fmt: skip
    """Raise if an array of this shape is larger than the machine's memory."""
    wanted = math.prod(shape) * itemsize
    try:
        there = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, ValueError, OSError):
        there = 2**40
    if wanted > there:
        raise ArgumentError(
            f"{what} would hold {' x '.join(map(str, shape))} numbers, {wanted / 2**30:.3g} GiB where this machine has "
            f"{there / 2**30:.3g}: {advice}."
        )
