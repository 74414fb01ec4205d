"""Linear algebra of a fit in one thread.

A fit decomposes thousands of tall and narrow matrices. OpenBLAS, which the wheels of NumPy and SciPy contain,
distributes each of them over all cores and waits for the slowest. On idle cores this gains nothing; on busy ones it
takes tens of times as long (benchmarks/identification.py).
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
    """Restrict OpenBLAS to one thread, in the whole process, within a `with` block or a decorated function."""
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
    """Return (setter, getter) of the number of threads for each OpenBLAS in the wheels of NumPy and SciPy."""
    libraries = []
    for package in (np, scipy):
        folder = Path(str(package.__file__)).parent
        for path in sorted(folder.with_name(f"{folder.name}.libs").glob("*openblas*")):
            try:
                library = ctypes.CDLL(str(path))  # loaded already
            except OSError:
                continue
            for name in NAMES:
                setter = getattr(library, name.format("set_num_threads"), None)
                getter = getattr(library, name.format("get_num_threads"), None)
                if setter is not None and getter is not None:
                    setter.argtypes, setter.restype = (ctypes.c_int,), None
                    getter.argtypes, getter.restype = (), ctypes.c_int
                    libraries.append((setter, getter))
                    break
    return tuple(libraries)
