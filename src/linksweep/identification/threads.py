"""One thread for the linear algebra of a fit.

Its matrices are tall and narrow, and come by the thousand. OpenBLAS, which the wheels of NumPy and SciPy carry, shares
each of them out among all cores and then waits for the slowest: on idle cores that gains nothing, beside other work it
costs tens of times the work itself (benchmarks/identification.py).
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path

import numpy as np
import scipy

NAMES = ("scipy_openblas_{}64_", "scipy_openblas_{}", "openblas_{}64_", "openblas_{}")


@contextmanager
def one_thread() -> Iterator[None]:
    """Within, OpenBLAS has one thread, in the whole process; other libraries stay as they are."""
    before = [(setter, getter()) for setter, getter in _libraries()]
    for setter, _ in before:
        setter(1)
    try:
        yield
    finally:
        for setter, count in before:
            setter(count)


@cache
def _libraries() -> tuple[tuple[Callable[[int], None], Callable[[], int]], ...]:
    """What sets and gets the number of threads of each OpenBLAS in a wheel; none where they are linked otherwise."""
    found = []
    for package in (np, scipy):
        folder = Path(str(package.__file__)).parent
        for path in sorted(folder.with_name(f"{folder.name}.libs").glob("*openblas*")):
            try:
                library = ctypes.CDLL(str(path))  # the one that is loaded already
            except OSError:
                continue
            for name in NAMES:
                setter = getattr(library, name.format("set_num_threads"), None)
                getter = getattr(library, name.format("get_num_threads"), None)
                if setter is not None and getter is not None:
                    setter.argtypes, setter.restype = (ctypes.c_int,), None
                    getter.argtypes, getter.restype = (), ctypes.c_int
                    found.append((setter, getter))
                    break
    return tuple(found)
