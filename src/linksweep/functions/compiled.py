"""Compiled functions: from a computation to something to call.

A `CompiledFunction` takes NumPy arrays of any batch shape. It depends on a computation, not on a Robot: it outlives the
robot it came from, survives fork, and pickles as its computation. `compiled` makes each of them once in a process.
"""

from __future__ import annotations

import functools
import types
import warnings
import weakref
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, DTypeLike

from ..backends import threads
from ..backends.entry import Plan
from ..backends.registry import AnyKernel, KernelRequest, backend_named
from ..errors import ArgumentError
from ..support.lazy import Making, Once, lazy
from ..support.messages import shown
from ..tracing.count import Counts, count
from ..tracing.expression import PARAMETER
from ..tracing.program import Program
from . import arrays
from .computation import Computation, Derivative

if TYPE_CHECKING:
    import pyopencl as cl

    from .c_export import RobotNames
    from .casadi_export import CasadiFunction
    from .opencl import OpenCLFunction

_FLOAT32 = np.dtype(np.float32)
_NAMES: dict[object, str] = {np.dtype(name): name for name in ("float64", "float32")}
Call = Callable[..., arrays.Results]
_Key = tuple[Computation, str | None, int, str]  # computation, dtype, threads, backend
MEANINGS = {
    "q": "one per coordinate", "qd": "one per velocity", "qdd": "one per velocity", "tau": "one per velocity",
    "point": "a point in the frame", "f_ext": "one row [moment; force] per moving link",
    "payload": "mass, m c, inertia about the frame's origin", "armature": "one per joint",
}  # fmt: skip


def compiled(
    computation: Computation, dtype: str | None = None, thread_count: int = 1, backend: str | None = None,
    at_once: bool = True,
) -> CompiledFunction:  # fmt: skip
    """Return the compiled function of a computation, the same object for equal arguments as long as it is in use.

    dtype: "float64", "float32", or None to follow the arguments. thread_count: threads for large batches. backend: None
    takes the default. at_once: compile it now, else when it is first called.
    """
    key = (computation, dtype, thread_count, chosen_backend(backend))
    function = _remembered(key) or _remember(key, CompiledFunction(*key))
    if at_once and not function._is_ready:
        _preparing.get(key, function._prepare)
    return function


# The only memo of compiled functions, by the hash of their keys. References are weak: a function lives as long as
# someone holds it, and with it its machine code and its model. A Robot holds those of its methods and the last ones
# that it compiled. References have no callbacks, as those of weakref.WeakValueDictionary do: a Ctrl-C that arrives in a
# callback is lost.
_functions: dict[int, list[weakref.ref[CompiledFunction]]] = {}
_preparing: Making[None] = Making()  # one thread compiles a function while others wait for it


def _remembered(key: _Key) -> CompiledFunction | None:
    """Return the compiled function of a key if it is in use."""
    for reference in _functions.get(hash(key), ()):
        function = reference()
        if function is not None and function._key == key:
            return function
    return None


def _remember(key: _Key, function: CompiledFunction) -> CompiledFunction:
    """Return the function of a key: the first one that a thread has entered."""
    for code, references in list(_functions.items()):
        for reference in [reference for reference in references if reference() is None]:
            with suppress(ValueError):  # another thread has removed it
                references.remove(reference)
        if not references:
            _functions.pop(code, None)
    _functions.setdefault(hash(key), []).append(weakref.ref(function))
    return _remembered(key) or function


class _Calls:
    """The calls of a compiled function: checked arrays in, arrays out, by kernels that are made at first use.

    It does not refer to its CompiledFunction: the fast entry falls back on it, and would make a cycle of objects.
    """

    def __init__(self, computation: Computation, dtype: str | None, thread_count: int, backend: str):
        self.computation, self.dtype, self.threads, self.backend = computation, dtype, thread_count, backend
        self.signature = arrays.Signature(
            computation.name,
            tuple(arrays.Argument(a.name, a.shape, MEANINGS.get(a.name, "")) for a in computation.inputs),
            tuple(arrays.Argument(a.name, a.shape) for a in computation.outputs),
        )
        self.plan: Plan | None = None  # of the fast entry
        self._run = functools.partial(threads.run_chunks, threads=thread_count) if thread_count > 1 else None
        self._kernels: Once[AnyKernel] = Once()  # by floating type

    @property
    def shapes(self) -> tuple[list[tuple[int, ...]], list[tuple[int, ...]]]:
        return [a.shape for a in self.signature.inputs], [a.shape for a in self.signature.outputs]

    @lazy
    def program(self) -> Program:
        return self.computation.trace()

    def kernel(self, dtype: DTypeLike) -> AnyKernel:
        name = _NAMES.get(dtype) or np.dtype(dtype).name  # NumPy makes its name anew each time
        kernel = self._kernels.get(name)
        return self._kernels.made(name, lambda: self._make_kernel(name)) if kernel is None else kernel

    def _make_kernel(self, dtype: str) -> AnyKernel:
        request = KernelRequest(
            self.computation.name, self.computation, lambda: self.program, *self.shapes, self.computation.loop()
        )
        return backend_named(self.backend).kernel(request, dtype)

    def entry(self, fallback: Call, whole: bool = True) -> Call | None:
        """Return a builtin for plain arrays, or None if the backend has none; `fallback` takes all other arguments.

        whole: the fallback does not have to see calls with float32.
        """
        shared = len(self._shared)
        made = backend_named(self.backend).fast_entry(self.signature.function, *self.shapes, shared, fallback)
        if made is None:
            return None
        builtin, plan = made
        dtype = self.dtype or "float64"
        kernel = self.kernel(dtype)
        if self.threads > 1:
            plan.use_threads(self.threads)
        plan.add_kernel(dtype, kernel)
        if whole:
            self.plan = plan
        return builtin

    @lazy
    def _shared(self) -> range:
        """The inputs that are parameters of the robot and shared by a batch."""
        inputs, parameters = self.computation.inputs, self.computation.roles.parameters
        shared = parameters if all(array.level == PARAMETER for array in parameters) else ()
        return range(len(inputs) - len(shared), len(inputs))

    @lazy
    def _varied(self) -> CompiledFunction:
        """The function to which parameters are inputs like any other, for parameters with a batch shape."""
        return compiled(self.computation.with_varied_parameters(), self.dtype, self.threads, self.backend)

    def __call__(self, *args: ArrayLike, out: arrays.Out | None = None, **named: ArrayLike) -> arrays.Results:
        """Take what the fast entry does not; all calls where there is none."""
        if named:
            args = arrays.in_order(self.signature, args, named)
        cores = self.signature.input_cores
        if len(args) == len(cores) and any(
            arrays.axes(self.signature, k, args[k]) > len(cores[k][0]) for k in self._shared
        ):
            return self._varied(*args) if out is None else self._varied(*args, out=out)
        if self.plan is not None and self.dtype is None and args and getattr(args[0], "dtype", None) is _FLOAT32:
            self.plan.add_kernel("float32", self.kernel("float32"))  # once: the entry takes the next one
        return self._checked_call(*args, out=out)

    def _checked_call(self, *args: ArrayLike, out: arrays.Out | None = None) -> arrays.Results:
        return arrays.call(self.signature, self.kernel, args, out=out, dtype=self.dtype, run=self._run)


_SLOTS = ["__call__", "__weakref__", "_calls", "_is_ready"]  # not in the class, where a type checker would see a slot


class CompiledFunction:
    """A compiled function. Call it with arrays (..., size) in the order of `inputs`, or by their names.

    It takes one sample or any batch shape; arguments broadcast. Several results come as a tuple. `out=` takes a result.
    """

    # Python looks `__call__` up in the class. As a slot it is a C descriptor that returns this function's entry, so
    # that a call goes to machine code without a Python frame (which would cost as much as inverse dynamics of an arm).
    __slots__ = tuple(_SLOTS)

    if TYPE_CHECKING:

        def __call__(self, *args: ArrayLike, out: arrays.Out | None = None, **named: ArrayLike) -> arrays.Results: ...

    def __init__(self, computation: Computation, dtype: str | None, thread_count: int, backend: str):
        self._calls = _Calls(computation, dtype, thread_count, backend)
        object.__setattr__(self, "__call__", self._calls)
        self._is_ready = False

    def _prepare(self) -> None:
        """Compile it now, and use the fast entry from now on if the backend has one."""
        if not self._is_ready:
            object.__setattr__(self, "__call__", self._calls.entry(self._calls) or self._calls)
            self._is_ready = True

    @property
    def _key(self) -> _Key:
        return self.computation, self.dtype, self.threads, self.backend

    @property
    def computation(self) -> Computation:
        """The computation, with everything that the program depends on."""
        return self._calls.computation

    @property
    def dtype(self) -> str | None:
        """The floating type, or None if it follows the arguments."""
        return self._calls.dtype

    @property
    def threads(self) -> int:
        """The number of threads that a large batch is split over."""
        return self._calls.threads

    @property
    def backend(self) -> str:
        """The name of its backend."""
        return self._calls.backend

    @property
    def signature(self) -> arrays.Signature:
        """The names and shapes of arguments and results."""
        return self._calls.signature

    @property
    def name(self) -> str:
        """The name of its computation."""
        return self.signature.function

    @property
    def __name__(self) -> str:  # Dask and others call their tasks by it
        return self.name

    @property
    def inputs(self) -> tuple[str, ...]:
        """The names of its arguments, in order."""
        return tuple(argument.name for argument in self.signature.inputs)

    @property
    def outputs(self) -> tuple[str, ...]:
        """The names of its results, in order."""
        return tuple(argument.name for argument in self.signature.outputs)

    @property
    def program(self) -> Program:
        """The traced Program, before multiply-adds are fused."""
        return self._calls.program

    @property
    def counts(self) -> Counts:
        """Operations for one sample: multiplications, additions, divisions, square roots, angles."""
        return count(self.program)

    @property
    def llvm_ir(self) -> str:
        """The LLVM IR that the machine code is made from."""
        from ..backends.ir import kernel_ir
        from ..backends.llvm import for_target
        from ..backends.target import host_target

        target = host_target()
        return kernel_ir(for_target(self.program, target), self.dtype or "float64", target)[0]

    def c_source(self, name: str | None = None, dtype: str = "double", robot: RobotNames | None = None) -> str:
        """The function as C99, for `double` or `float`; `robot` names it and its joints in the comment on top."""
        from .c_export import c_files

        return c_files(self, name, dtype, robot)[0]

    def c_header(self, name: str | None = None, dtype: str = "double", robot: RobotNames | None = None) -> str:
        """The header file that goes with `c_source`."""
        from .c_export import c_files

        return c_files(self, name, dtype, robot)[1]

    def source(
        self, language: str, name: str | None = None, dtype: str = "double", robot: RobotNames | None = None
    ) -> str:
        """Return the function as source text.

        Parameters
        ----------
        language : {"c", "javascript", "matlab", "opencl", "cuda"}
            C99; an ES module over Float64Array; a function file for MATLAB or Octave; a kernel with one thread per
            sample, element k of sample i at index k * count + i.
        name : str, optional
            Name of the function; by default that of the robot and the function.
        dtype : {"double", "float"}
            Floating type; JavaScript has only "double".
        robot : Robot, optional
            Names the robot and its joints in the comment at the top.
        """
        from .c_export import source_text

        return source_text(self, language, name, dtype, robot)

    def opencl(self, queue: cl.CommandQueue, dtype: str = "float64") -> OpenCLFunction:
        """Return the function on the device of an OpenCL queue. Needs the extra opencl.

        It takes and returns `pyopencl.array.Array`s with the batch axis last, (size, count). dtype: "float64" or
        "float32".
        """
        from .opencl import OpenCLFunction

        return OpenCLFunction(self, queue, dtype)

    def casadi(
        self, name: str | None = None, *, hessian: bool = True, folder: str | Path | None = None
    ) -> CasadiFunction:
        """The function in CasADi, with its Jacobian and, unless `hessian` is False, exact second derivatives.

        It is the exported C, compiled by the system's C compiler; `folder` keeps the source and the library. Vectors
        are columns; derivatives are with respect to the components of q. Needs the package casadi.
        """
        from .casadi_export import casadi_function

        return casadi_function(self, name, hessian=hessian, folder=folder)

    def derivative(self, by: str) -> CompiledFunction:
        """The partial derivatives of the result with respect to one input, (..., result size, input size).

        Those with respect to q are along joint velocities.
        """
        if by not in self.inputs or len(self.outputs) != 1:
            raise ArgumentError(
                f"{self.name} cannot be differentiated with respect to {shown(by)}: expected one of "
                f"{', '.join(self.inputs)}, of a function with one result."
            )
        computation = self.computation.each(lambda part: Derivative(part, by))
        return compiled(computation, self.dtype, self.threads, self.backend)

    def kernel(self, dtype: DTypeLike) -> AnyKernel:
        """The kernel for this floating type, compiled or from the cache at first use."""
        return self._calls.kernel(dtype)

    def __getattr__(self, name: str) -> Computation:
        if name != "recipe":
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        warnings.warn("CompiledFunction.recipe is now CompiledFunction.computation.", DeprecationWarning, stacklevel=2)
        return self.computation

    def __reduce__(self) -> tuple[object, ...]:
        return compiled, (self.computation, self.dtype, self.threads, self.backend)

    def __repr__(self) -> str:
        shown = ", ".join(f"{a.name}{a.wanted}" for a in self.signature.inputs)
        results = ", ".join(f"{a.name}{a.wanted}" for a in self.signature.outputs)
        return f"<{self.name}({shown}) -> {results}>"


def entry_before(function: CompiledFunction, fallback: Call) -> Call:
    """Return a call of the function's machine code for plain float64 arrays; `fallback` takes all other calls."""
    return function._calls.entry(fallback, whole=False) or fallback


def builtin_of(call: Call) -> Call:
    """Return the fast entry of a function, which must live as long; without one, the function itself."""
    entry = call.__call__
    return entry if isinstance(entry, types.BuiltinFunctionType) else call


def chosen_backend(backend: str | None) -> str:
    """The backend by argument, by `use_backend`, by LINKSWEEP_BACKEND, or LLVM."""
    return backend_named(backend).name
