"""The backends, which turn a Program into a kernel that runs.

A backend is an object with the methods of `Backend`. `BACKENDS` lists one line per backend; the module is imported when
the backend is first used. No code outside this package compares the name of a backend.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ..errors import BackendError
from ..support import settings
from ..support.messages import shown

if TYPE_CHECKING:
    from ..tracing.program import Program
    from .entry import Plan
    from .ir import Until

Shapes = Sequence[tuple[int, ...]]  # of one sample of each input or output
AnyKernel = Any  # called with 2-D arrays (inputs, outputs); machine code has more: see `MachineKernel`

BACKENDS = {  # name: module and object
    "llvm": (".llvm", "BACKEND"),
    "interpreter": (".interpreter", "BACKEND"),
}


@dataclass(frozen=True, slots=True)
class KernelRequest:
    """A kernel to make.

    name: of the function, for messages. key: a value that determines the program (see `disk_cache.canonical`); compiled
    code is cached under it. trace: returns the program; not called if the code is in the cache. inputs, outputs: shapes
    that the kernel is called with. loop: the program is one step of this loop.
    """

    name: str
    key: object
    trace: Callable[[], Program]
    inputs: Shapes
    outputs: Shapes
    loop: Until | None = None


class Backend:
    """The interface of a backend. Subclasses define `kernel`."""

    name: str
    machine_code: bool = False  # kernels are `MachineKernel`s, which XLA and PyTorch can call without Python

    def kernel(self, request: KernelRequest, dtype: str) -> AnyKernel:
        """Return a kernel that computes the program in float32 or float64, for a batch of samples."""
        raise NotImplementedError

    def fast_entry(
        self, name: str, inputs: Shapes, outputs: Shapes, shared: int, fallback: Callable[..., object]
    ) -> tuple[Callable[..., object], Plan] | None:
        """Return a builtin that takes plain arrays, and its plan, to which kernels are added; None if there is none.

        shared: number of last inputs that have no batch axes. fallback: called with all other arguments.
        """
        return None


def backend_named(name: object = None) -> Backend:
    """Return the backend of this name, by default the one set by `use_backend` or LINKSWEEP_BACKEND."""
    chosen = settings.backend if name is None else name
    if not isinstance(chosen, str) or chosen not in BACKENDS:
        expected = " or ".join(map(repr, BACKENDS))
        raise BackendError(f"the backend is {shown(chosen)}, expected {expected}: set backend= or LINKSWEEP_BACKEND.")
    module, attribute = BACKENDS[chosen]
    return getattr(importlib.import_module(module, __package__), attribute)


def use_backend(name: str) -> None:
    """Choose the backend of functions that are compiled from now on.

    name: "llvm" (machine code) or "interpreter" (operation by operation over NumPy arrays, without executable memory).
    The environment variable LINKSWEEP_BACKEND, read when linksweep is imported, sets the initial value.
    """
    settings.backend = backend_named(name).name
