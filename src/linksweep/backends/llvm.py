"""The LLVM backend: Program -> IR -> object bytes -> a kernel that runs.

Object bytes are stored in the disk cache under a hash of their IR; loading them needs neither the Program nor the
optimiser. A `MachineKernel` owns its code: the code stays mapped as long as anything can call it.
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
from ..support.disk_cache import default_cache, make_key
from ..support.interrupts import Uninterrupted, uncollected
from ..support.lazy import Making, Once, lazy
from ..tracing.count import count
from ..tracing.passes import fuse
from ..tracing.program import Program
from . import entry
from .entry import data_address
from .ir import kernel_ir, until_ir
from .parts import has_long_block, is_long
from .registry import Backend, KernelRequest, Shapes
from .target import Target, host_target, initialized_llvm
from .trig import libm_addresses


@dataclass(frozen=True)
class IRModule:
    """The text of an LLVM module, and everything else that determines its machine code."""

    ir: str
    target: Target
    opt: int = 2  # the level of LLVM's code generator
    workspace: int = 0  # bytes that a call of its kernel needs

    @lazy
    def key(self) -> str:
        """The key of the machine code in the disk cache."""
        import llvmlite

        versions = llvmlite.__version__, initialized_llvm().llvm_version_info
        text = json.dumps(["object", self.ir, astuple(self.target), self.opt, versions])
        return hashlib.sha256(text.encode()).hexdigest()

    def machine_code(self) -> bytes:
        """Return object bytes, from the disk cache if the same text was compiled before."""
        store = default_cache()
        stored = store.get(self.key)
        if stored is not None:
            return stored[1]
        with Uninterrupted():  # an interrupt could leave llvmlite's lock held, and block every other thread
            code = _emit_object(self.ir, self.target, self.opt)
        store.put(self.key, {}, code)
        return code


def kernel_module(program: Program, dtype: str, target: Target, extra: Callable[[int], str] | None = None) -> IRModule:
    """Return the module of a program. `extra` returns further IR for it, from the bytes of workspace."""
    ir, workspace = kernel_ir(program.verify(), dtype, target)
    if extra is not None:
        ir += extra(workspace)
    # level 1 omits the second scheduling, a fifth of the compile time of Talos' derivatives, which run as fast
    opt = 1 if is_long(program, target) or has_long_block(program) else 2
    return IRModule(ir, target, opt, workspace)


def emit_object(ir: str, target: Target, opt: int = 2) -> bytes:
    """Return the object bytes of a module."""
    return IRModule(ir, target, opt).machine_code()


def _emit_object(ir: str, target: Target, opt: int) -> bytes:
    machine = target.machine(opt)
    module = initialized_llvm().parse_assembly(ir)
    module.triple = target.triple
    module.data_layout = str(machine.target_data)
    module.verify()
    return machine.emit_object(module)


class LoadedCode:
    """Object bytes loaded as code: addresses of its exports by name.

    After the last reference is gone, the next load unmaps it. A `__del__` would unmap it at once but lose a Ctrl-C that
    arrives in it: Python prints what a destructor raises and continues.

    JITLink allocates the sections of an object side by side. RuntimeDyld allocates each separately, and if large arrays
    fill the address space, sections are more than 2 GiB apart, which ends the process.
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
                f"machine code could not be loaded ({error}); LINKSWEEP_BACKEND=interpreter runs without it."
            ) from error

    def __getitem__(self, name: str) -> int:
        return self._library[name]


class Closed(Protocol):
    def close(self) -> None: ...


_mapped: dict[weakref.ref[LoadedCode], Closed] = {}


def _unmap_dropped() -> None:
    for owner in [owner for owner in list(_mapped) if owner() is None]:
        library = _mapped.pop(owner, None)  # another thread may have removed it
        if library is not None:
            library.close()


Addresses = ctypes.Array[ctypes.c_void_p]
Integers = ctypes.Array[ctypes.c_int64]
_KERNEL = ctypes.CFUNCTYPE(None, ctypes.c_int64, *[ctypes.c_void_p] * 6, ctypes.c_int64)


class MachineKernel:
    """Loaded machine code: a kernel over 2-D arrays that releases the GIL while it runs.

    workspace: bytes that a call needs. cost: predicted nanoseconds per sample, None if unknown.
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
        """Return a run over these arrays in blocks of `block` samples, whole groups of lanes."""
        return SharedRun(self._run, self, inputs, outputs, block)


class SharedRun:
    """A run of machine code over one batch, a `SharedWork` (threads.py)."""

    def __init__(
        self, function: Callable[..., None], kernel: MachineKernel, inputs: Sequence[np.ndarray],
        outputs: Sequence[np.ndarray], block: int,
    ):  # fmt: skip
        self._function = function
        self._owned = kernel, (*inputs, *outputs)  # keeps alive the code and the arrays behind the addresses below
        self._workspace = kernel.workspace
        self._count = outputs[0].shape[0]
        self._arrays = (*_pointers(inputs, self._count), *_pointers(outputs, self._count))
        self._counter = ctypes.c_int64(0)
        self._block = block

    def run(self) -> None:
        work, place = aligned(self._workspace)
        self._function(self._count, *self._arrays, place, ctypes.addressof(self._counter), self._block)
        del work  # it had to live until here

    def together(self, helpers: int) -> None:
        """Run everything, in this thread and in at most `helpers` native threads (helpers.py)."""
        from .helpers import process_helpers

        work, place = aligned(self._workspace)
        address = self._owned[0].address("kernel")
        process_helpers().run(helpers, address, self._count, self._arrays, place, self._block, self._workspace)
        del work  # it had to live until here

    def stop(self) -> None:
        self._counter.value = self._count

    def again(self) -> SharedRun:
        """Return the same run, from the first sample, over the present contents of the arrays."""
        self._counter.value = 0
        return self


def _pointers(arrays: Sequence[np.ndarray], count: int) -> tuple[Addresses, Integers]:
    """Return base addresses and row strides in elements; a shared row has stride 0."""
    bases, strides = _array_kinds(len(arrays))
    steps = [0 if len(a) == 1 and count != 1 else a.strides[0] // a.itemsize for a in arrays]
    return bases(*map(data_address, arrays)), strides(*steps)


@functools.cache
def _array_kinds(count: int) -> tuple[type[Addresses], type[Integers]]:
    return ctypes.c_void_p * count, ctypes.c_int64 * count


def aligned(size: int) -> tuple[np.ndarray | None, int | None]:
    """Return memory with a cache-aligned block of `size` bytes, and the address of the block."""
    if size == 0:
        return None, None
    memory = np.empty(size + 64, np.uint8)
    address = memory.__array_interface__["data"][0]
    return memory, address + (-address % 64)


class _LLVMBackend(Backend):
    name = "llvm"
    machine_code = True

    def kernel(self, request: KernelRequest, dtype: str) -> MachineKernel:
        target = host_target()
        key = cache_key(request.key, dtype, target)

        def make() -> tuple[IRModule, float]:
            return uncollected(_requested_module, request, dtype, target)

        return MachineKernel(*_compiling.get(key, lambda: cached_code(key, make)))

    def fast_entry(
        self, name: str, inputs: Shapes, outputs: Shapes, shared: int, fallback: Callable[..., object]
    ) -> tuple[Callable[..., object], entry.Plan] | None:
        if not entry.supported() or not entry.fits(inputs, outputs):
            return None
        return entry.make_builtin(name, inputs, outputs, shared, fallback, _entry_code.made("entry", _load_entry))


BACKEND = _LLVMBackend()
_compiling: Making[tuple[bytes, int, float]] = Making()
_entry_code: Once[LoadedCode] = Once()


def _load_entry() -> LoadedCode:
    """Load the fast entry, which all functions of the process share."""
    return LoadedCode(emit_object(entry.entry_ir(), host_target()), ("entry",), entry.entry_symbols())


def _requested_module(request: KernelRequest, dtype: str, target: Target) -> tuple[IRModule, float]:
    """Return the module of a kernel, and the predicted time of a sample in nanoseconds."""
    program = request.trace()
    cost = predicted_cost(program, target.lanes(dtype))
    if request.loop is not None:
        ir, workspace = until_ir(for_target(program.verify(), target), request.loop, target)
        return IRModule(ir, target, workspace=workspace), cost
    shapes = [a.shape for a in program.inputs], [a.shape for a in program.outputs]
    if shapes != (list(request.inputs), list(request.outputs)):
        raise BackendError(f"{request.name} is traced with other shapes than it is called with: please report this.")
    return kernel_module(for_target(program, target), dtype, target), cost


def cached_code(key: str, make: Callable[[], tuple[IRModule, float]]) -> tuple[bytes, int, float]:
    """Return machine code, bytes of workspace and predicted cost (ns per sample): from the disk cache, or by `make()`.

    The entry under `key` names the entry of the object, which all functions with the same IR share.
    """
    store = default_cache()
    stored = store.get(key)
    if stored is not None:
        meta, _ = stored
        shared = store.get(str(meta["object"]))
        if shared is not None:
            return shared[1], int(meta["workspace"]), float(meta["cost"])
    module, cost = make()
    code = module.machine_code()
    store.put(key, {"object": module.key, "workspace": module.workspace, "cost": cost}, b"")
    return code, module.workspace, cost


def cache_key(recipe: object, dtype: str, target: Target) -> str:
    """Return the key of a function in the disk cache. `recipe` determines its program."""
    import llvmlite

    return make_key(
        llvmlite=llvmlite.__version__, llvm=initialized_llvm().llvm_version_info, cpu=target.cpu,
        features=target.features, triple=target.triple, recipe=recipe, dtype=dtype,
    )  # fmt: skip


def predicted_cost(program: Program, lanes: int) -> float:
    """Return the predicted nanoseconds of one sample, accurate enough to decide about threads.

    It counts arithmetic operations and elements that are read and written.
    """
    one, elements = count(program), sum(array.size for array in (*program.inputs, *program.outputs))
    arithmetic = 0.16 * (one.mul + one.add) + 3.0 * (one.div + one.sqrt) + 10.0 * one.trig
    return (arithmetic + 0.6 * elements) / lanes


def for_target(program: Program, target: Target) -> Program:
    """Fuse multiply-adds if the processor has the instruction; without it, each would be a function call."""
    return fuse(program) if target.fma else program
