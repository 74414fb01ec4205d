"""Compiled functions on OpenCL devices: arrays on the device in, arrays on the device out.

Arrays have their batch axis last, (..., count), so that neighbouring threads read neighbouring addresses.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ..errors import ArgumentError, BackendError
from ..support.messages import shown
from ..tracing.expression import ONLINE

try:
    import pyopencl as cl
    import pyopencl.array as cl_array
except ImportError as error:
    raise ImportError("f.opencl(queue) needs pyopencl: pip install 'linksweep[opencl]'.") from error

if TYPE_CHECKING:
    from .compiled import CompiledFunction

DTYPES = {"float64": "double", "float32": "float"}
LARGEST = 2**31 - 1  # kernels compute indices in 32 bits


class OpenCLFunction:
    """A function on an OpenCL device: call it with arrays (size, count) there, one per input.

    Several results come as a tuple. A call is queued, and the queue runs it; `get()` of a result waits for it.
    """

    def __init__(self, function: CompiledFunction, queue: cl.CommandQueue, dtype: str):
        if dtype not in DTYPES:
            raise ArgumentError(f"dtype is {shown(dtype)}, expected 'float64' or 'float32'.")
        if not isinstance(queue, cl.CommandQueue):
            raise ArgumentError(f"queue is {shown(queue)}, expected a pyopencl.CommandQueue.")
        if dtype == "float64" and "cl_khr_fp64" not in queue.device.extensions:
            raise BackendError(f"the device {queue.device.name} has no double precision: use dtype='float32'.")
        self.queue, self.dtype = queue, np.dtype(dtype)
        self.inputs, self.outputs = function.signature.inputs, function.signature.outputs
        self.source = function.source("opencl", "linksweep_kernel", DTYPES[dtype])
        self._shared = [array.level < ONLINE for array in function.computation.inputs]
        try:
            self._kernel = cl.Program(queue.context, self.source).build().linksweep_kernel
        except cl.RuntimeError as error:
            raise BackendError(f"the OpenCL compiler of {queue.device.name} failed: {error}") from error

    def to_device(self, x: np.ndarray) -> cl_array.Array:
        """Return a NumPy batch (count, ...) on the device, as (..., count)."""
        batch = np.moveaxis(np.asarray(x, self.dtype), 0, -1)
        return cl_array.to_device(self.queue, np.ascontiguousarray(batch))

    def to_host(self, x: cl_array.Array) -> np.ndarray:
        """Return a device array (..., count) as a NumPy batch (count, ...)."""
        return np.moveaxis(x.get(), -1, 0)

    def __call__(
        self, *args: cl_array.Array, out: cl_array.Array | tuple[cl_array.Array, ...] | None = None
    ) -> cl_array.Array | tuple[cl_array.Array, ...]:
        if len(args) != len(self.inputs):
            names = ", ".join(argument.name for argument in self.inputs)
            raise ArgumentError(f"{len(args)} arguments, expected {len(self.inputs)}: {names}.")
        batched = [x for x, shared in zip(args, self._shared, strict=True) if not shared]
        counts = {x.shape[-1] for x in batched if isinstance(x, cl_array.Array) and x.ndim}
        count = max(counts, default=1)
        for x, argument, shared in zip(args, self.inputs, self._shared, strict=True):
            self._check(argument.name, x, argument.shape if shared else (*argument.shape, count))
        shapes = [(*argument.shape, count) for argument in self.outputs]
        if out is None:
            results = tuple(cl_array.empty(self.queue, shape, self.dtype) for shape in shapes)
        else:
            results = out if isinstance(out, tuple) else (out,)
            if len(results) != len(shapes):
                raise ArgumentError(f"out has {len(results)} arrays, expected {len(shapes)}.")
            for argument, x, shape in zip(self.outputs, results, shapes, strict=True):
                self._check(f"out {argument.name}", x, shape)
                if any(x.base_data == y.base_data for y in args):
                    raise ArgumentError(f"out {argument.name} is also an input, expected memory of its own.")
        if max(x.size for x in (*args, *results)) > LARGEST:
            raise ArgumentError(f"an array has more than {LARGEST} elements: split the batch.")
        if count:
            memory = [x.base_data for x in (*args, *results)]
            self._kernel(self.queue, (count,), None, np.int32(count), *memory)
        return results[0] if len(self.outputs) == 1 else results

    def _check(self, name: str, x: object, shape: tuple[int, ...]) -> None:
        if not isinstance(x, cl_array.Array):
            raise ArgumentError(f"{name} is {shown(x)}, expected a pyopencl.array.Array: see to_device.")
        if x.shape != shape or x.dtype != self.dtype:
            raise ArgumentError(f"{name} has shape {x.shape} and type {x.dtype}, expected {shape} and {self.dtype}.")
        if not x.flags.c_contiguous or x.offset:
            raise ArgumentError(f"{name} is a view of another array, expected a contiguous array: use x.copy().")

    def __repr__(self) -> str:
        return f"<OpenCL function on {self.queue.device.name}: {', '.join(x.name for x in self.inputs)}>"
