"""Machine code through llvmlite: Program -> IR -> object bytes -> a kernel that runs.

Object bytes are stored in the disk cache under a hash of their IR; loading them needs neither the Program nor the
optimiser. A `MachineKernel` owns its code: as long as anything can call it, the code stays mapped.
"""

from __future__ import annotations

import ctypes
import functools
import hashlib
import json
import weakref
from collections.abc import Callable, Mapping, Sequence
from dataclasses import astuple, dataclass
from typing import Protocol

import numpy as np

from ..errors import BackendError
from ..support.disk_cache import default_cache
from ..support.interrupts import Uninterrupted
from ..support.lazy import lazy
from ..tracing.program import Program
from .entry import data_address
from .ir import kernel_ir
from .long_blocks import has_long_block
from .parts import is_long
from .target import Target, initialized_llvm
from .trig import libm_addresses


@dataclass(frozen=True)
class IRModule:
    """The text of an LLVM module, and everything else that its machine code depends on."""

    ir: str
    target: Target
    opt: int = 2  # the level of LLVM's code generator
    workspace: int = 0  # bytes that a call of its kernel needs

    @lazy
    def key(self) -> str:
        """The key of its machine code in the disk cache."""
        import llvmlite

        versions = llvmlite.__version__, initialized_llvm().llvm_version_info
        text = json.dumps(["object", self.ir, astuple(self.target), self.opt, versions])
        return hashlib.sha256(text.encode()).hexdigest()

    def machine_code(self) -> bytes:
        """Object bytes, from the disk cache if the same text was compiled before."""
        store = default_cache()
        entry = store.get(self.key)
        if entry is not None:
            return entry[1]
        with Uninterrupted():  # llvmlite's lock, once left held, would stop every other thread
            code = _emit_object(self.ir, self.target, self.opt)
        store.put(self.key, {}, code)
        return code


def kernel_module(program: Program, dtype: str, target: Target, extra: Callable[[int], str] | None = None) -> IRModule:
    """The module whose `kernel` runs a program. `extra` gives further IR for it, once the workspace is known."""
    ir, workspace = kernel_ir(program.verify(), dtype, target)
    if extra is not None:
        ir += extra(workspace)
    # 1 leaves out the second scheduling, a fifth of the time for Talos' derivatives, which run as fast without
    opt = 1 if is_long(program, target) or has_long_block(program) else 2
    return IRModule(ir, target, opt, workspace)


def emit_object(ir: str, target: Target, opt: int = 2) -> bytes:
    """Object bytes of a module."""
    return IRModule(ir, target, opt).machine_code()


def _emit_object(ir: str, target: Target, opt: int) -> bytes:
    machine = target.machine(opt)
    module = initialized_llvm().parse_assembly(ir)
    module.triple = target.triple
    module.data_layout = str(machine.target_data)
    module.verify()
    return machine.emit_object(module)


class LoadedCode:
    """Object bytes as code that runs: addresses of its exports by name.

    Once this is dropped, the next code to be loaded unmaps it. A `__del__` would do so at once, and lose the Ctrl-C
    that arrives in it: Python prints what a destructor raises, and goes on.

    By JITLink, which puts the sections of an object side by side. RuntimeDyld asks for each by itself, and where large
    arrays fill the address space they come to stand more than 2 GiB apart, which ends the process.
    """

    def __init__(self, code: bytes, exports: Sequence[str], symbols: Mapping[str, int] | None = None):
        llvm = initialized_llvm()
        builder = llvm.JITLibraryBuilder().add_object_img(code)
        for name in exports:
            builder.export_symbol(name)
        for name, address in (symbols or {}).items():
            builder.import_symbol(name, address)
        try:
            with Uninterrupted():
                _unmap_dropped()
                self._library = builder.link(llvm.create_lljit_compiler(use_jit_link=True), "linksweep")
                owner: weakref.ref[LoadedCode] = weakref.ref(self)
                _mapped[owner] = self._library
        except RuntimeError as error:
            raise BackendError(
                f"machine code could not be loaded ({error}); set LINKSWEEP_BACKEND=interpreter to do without."
            ) from error

    def __getitem__(self, name: str) -> int:
        return self._library[name]


class Closed(Protocol):
    def close(self) -> None: ...


_mapped: dict[weakref.ref[LoadedCode], Closed] = {}


def _unmap_dropped() -> None:
    for owner in [owner for owner in list(_mapped) if owner() is None]:
        library = _mapped.pop(owner, None)  # another thread may have been here
        if library is not None:
            library.close()


Addresses = ctypes.Array[ctypes.c_void_p]
Integers = ctypes.Array[ctypes.c_int64]
_KERNEL = ctypes.CFUNCTYPE(None, ctypes.c_int64, *[ctypes.c_void_p] * 6, ctypes.c_int64)


class MachineKernel:
    """Loaded machine code: a kernel over 2-D arrays that releases the GIL while it runs.

    cost: nanoseconds that a sample is expected to take, where that is known.
    """

    def __init__(self, code: bytes, workspace: int, cost: float | None = None):
        self._code = LoadedCode(code, ("kernel",), libm_addresses())
        self.workspace = workspace
        self.cost = cost
        self._run = _KERNEL(self._code["kernel"])

    def address(self, name: str) -> int:
        return self._code[name]

    def __call__(self, inputs: Sequence[np.ndarray], outputs: Sequence[np.ndarray]) -> None:
        self.shared(inputs, outputs, outputs[0].shape[0]).run()

    def shared(self, inputs: Sequence[np.ndarray], outputs: Sequence[np.ndarray], block: int) -> SharedRun:
        """One run over these arrays in parts of `block` samples, whole groups of lanes."""
        return SharedRun(self._run, self, inputs, outputs, block)


class SharedRun:
    """A run of machine code over one batch: see `SharedWork` in threads.py."""

    def __init__(
        self, function: Callable[..., None], kernel: MachineKernel, inputs: Sequence[np.ndarray],
        outputs: Sequence[np.ndarray], block: int,
    ):  # fmt: skip
        self._function = function
        self._owned = kernel, (*inputs, *outputs)  # the code, and what the addresses below lead to
        self._workspace = kernel.workspace
        self._count = outputs[0].shape[0]
        self._arrays = (*_pointers(inputs, self._count), *_pointers(outputs, self._count))
        self._counter = ctypes.c_int64(0)
        self._block = block

    def run(self) -> None:
        work, place = aligned(self._workspace)
        self._function(self._count, *self._arrays, place, ctypes.addressof(self._counter), self._block)
        del work  # until here it had to live

    def together(self, helpers: int) -> None:
        """The whole run, here and in at most so many helpers, to which Python is nothing."""
        from .helpers import process_helpers

        work, place = aligned(self._workspace)
        address = self._owned[0].address("kernel")
        process_helpers().run(helpers, address, self._count, self._arrays, place, self._block, self._workspace)
        del work  # until here it had to live

    def stop(self) -> None:
        self._counter.value = self._count

    def again(self) -> SharedRun:
        """The same run from the first sample on, over what the arrays hold by now."""
        self._counter.value = 0
        return self


def _pointers(arrays: Sequence[np.ndarray], count: int) -> tuple[Addresses, Integers]:
    """Base addresses and row strides in elements; one shared row has stride 0."""
    bases, strides = _array_kinds(len(arrays))
    steps = [0 if len(a) == 1 and count != 1 else a.strides[0] // a.itemsize for a in arrays]
    return bases(*map(data_address, arrays)), strides(*steps)


@functools.cache
def _array_kinds(count: int) -> tuple[type[Addresses], type[Integers]]:
    return ctypes.c_void_p * count, ctypes.c_int64 * count


def aligned(size: int) -> tuple[np.ndarray | None, int | None]:
    """Memory that starts at a cache line, and where it starts."""
    if size == 0:
        return None, None
    memory = np.empty(size + 64, np.uint8)
    address = memory.__array_interface__["data"][0]
    return memory, address + (-address % 64)
