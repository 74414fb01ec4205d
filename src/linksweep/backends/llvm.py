"""Machine code through llvmlite: Program -> IR -> object bytes -> a kernel that runs.

Object bytes are what the disk cache keeps; loading them needs neither the Program nor the optimiser. A `MachineKernel`
owns its code: as long as anything can call it, the code stays mapped.
"""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..errors import BackendError
from ..tracing.program import Program
from .entry import data_address
from .ir import kernel_ir
from .target import Target, initialized_llvm
from .trig import libm_addresses


def compile_object(
    program: Program, dtype: str, target: Target, extra: Callable[[int], str] | None = None
) -> tuple[bytes, int, str]:
    """Object bytes, the bytes of workspace a call needs, and the IR they were made from.

    `extra` gives further IR for the module, once the workspace is known.
    """
    ir, workspace = kernel_ir(program.verify(), dtype, target)
    if extra is not None:
        ir += extra(workspace)
    llvm = initialized_llvm()
    machine = target.machine()
    module = llvm.parse_assembly(ir)
    module.triple = target.triple
    module.data_layout = str(machine.target_data)
    module.verify()
    return machine.emit_object(module), workspace, ir


_KERNEL = ctypes.CFUNCTYPE(None, ctypes.c_int64, *[ctypes.c_void_p] * 6, ctypes.c_int64)


class MachineKernel:
    """Loaded machine code: a kernel over 2-D arrays that releases the GIL while it runs."""

    def __init__(self, code: bytes, workspace: int, symbols: dict[str, int] | None = None, exports: Sequence[str] = ()):
        llvm = initialized_llvm()
        builder = llvm.JITLibraryBuilder().add_object_img(code)
        for name in ("kernel", *exports):
            builder.export_symbol(name)
        for name, address in {**libm_addresses(), **(symbols or {})}.items():
            builder.import_symbol(name, address)
        try:
            self._code = builder.link(llvm.create_lljit_compiler(), "linksweep")  # dropping this unmaps the code
        except RuntimeError as error:
            raise BackendError(
                f"machine code could not be loaded ({error}); set LINKSWEEP_BACKEND=interpreter to do without."
            ) from error
        self.workspace = workspace
        self._run = _KERNEL(self._code["kernel"])

    def address(self, name: str) -> int:
        return self._code[name]

    def __call__(self, inputs: Sequence[np.ndarray], outputs: Sequence[np.ndarray]) -> None:
        self.shared(inputs, outputs, outputs[0].shape[0])()

    def shared(self, inputs: Sequence[np.ndarray], outputs: Sequence[np.ndarray], block: int) -> Callable[[], None]:
        """One run over these arrays, to be called from as many threads as like: each takes block after block (of so
        many samples, whole groups of lanes) until none is left."""
        count = outputs[0].shape[0]
        arrays = (*_pointers(inputs, count), *_pointers(outputs, count))
        counter = ctypes.c_int64(0)

        def run() -> None:
            work, place = aligned(self.workspace)
            self._run(count, *arrays, place, ctypes.addressof(counter), block)
            del work  # until here it had to live

        return run


def _pointers(arrays: Sequence[np.ndarray], count: int) -> tuple[Any, Any]:
    """Base addresses and row strides in elements; one shared row has stride 0."""
    kinds = _array_kinds(len(arrays))
    bases = kinds[0](*map(data_address, arrays))
    strides = kinds[1](*[0 if a.shape[0] == 1 and count != 1 else a.strides[0] // a.itemsize for a in arrays])
    return bases, strides


@functools.cache
def _array_kinds(count: int) -> tuple[Any, Any]:
    return ctypes.c_void_p * count, ctypes.c_int64 * count


def aligned(size: int) -> tuple[Any, int | None]:
    """Memory that starts at a cache line, and where it starts."""
    if size == 0:
        return None, None
    memory = np.empty(size + 64, np.uint8)
    address = memory.__array_interface__["data"][0]
    return memory, address + (-address % 64)
