"""Compiled functions of a robot: from a request to something to call, through the disk cache.

A `CompiledFunction` takes NumPy arrays of any batch shape. It is bound to a description, not to a Robot: it outlives
the robot it came from, survives fork, and pickles as the request it was made from.
"""

from __future__ import annotations

import functools
import types
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from ..backends import threads
from ..catalogue.functions import Request, check_options, signature, trace
from ..catalogue.parameters import ParameterSet
from ..errors import ArgumentError, BackendError
from ..mechanism.canonical import CanonicalModel
from ..support import settings
from ..support.collection import uncollected
from ..support.disk_cache import default_cache, make_key
from ..support.lazy import Making, Once, lazy
from ..support.messages import shown
from ..tracing.count import Counts, count
from . import arrays

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import ArrayLike, DTypeLike

    from ..backends.entry import Plan
    from ..backends.llvm import IRModule, LoadedCode
    from ..backends.target import Target
    from ..backends.until import Until
    from ..tracing.program import Program
    from .c_export import RobotNames
    from .casadi_export import CasadiFunction

_FLOAT32 = np.dtype(np.float32)
_NAMES: dict[object, str] = {np.dtype(name): name for name in ("float64", "float32")}
MEANINGS = {
    "q": "one per coordinate", "qd": "one per velocity", "qdd": "one per velocity", "tau": "one per velocity",
    "point": "a point in the frame", "f_ext": "one row [moment; force] per moving link",
    "payload": "mass, m c, inertia about the frame's origin", "armature": "one per joint",
}  # fmt: skip


@dataclass(frozen=True)
class Recipe:
    """All that a compiled function depends on: the key of the cache, and what it pickles as."""

    model: CanonicalModel
    requests: tuple[Request, ...]
    rolled: bool | None = None
    details: bool = False  # every quantity of the algorithm, not only its result
    base_parameters: bool | None = None  # None: wherever they serve
    parameters: tuple[ParameterSet, ...] = ()  # numbers of the model that are arguments
    varied: bool = False  # from sample to sample

    def __post_init__(self) -> None:
        check_options(self.model, self.requests, self.rolled, self.base_parameters, self.parameters)

    def trace(self) -> Program:
        if self.details:
            from ..catalogue.details import trace_details

            return trace_details(self.model, self.requests[0])
        return trace(self.model, self.requests, self.rolled, self.base_parameters, self.parameters, self.varied)

    def loop(self) -> Until | None:
        """The loop that the program is a step of, where it is one."""
        return None

    def signature(self) -> arrays.Signature:
        inputs, outputs = signature(self.model, self.requests, self.parameters, self.varied)
        if self.details:
            outputs = self.trace().outputs
        return arrays.Signature(
            "_and_".join(map(_called, self.requests)),
            tuple(arrays.Argument(a.name, a.shape, MEANINGS.get(a.name, "")) for a in inputs),
            tuple(arrays.Argument(a.name, a.shape) for a in outputs),
        )


def _called(request: Request) -> str:
    product = (request.product, *request.moved, "of") if request.product else ()
    along = ("jvp", *request.along, "of") if request.along else ()
    return "_by_".join(("_".join((*along, *product, request.function)), *request.by))


class CompiledFunction:
    """A function of a robot, compiled. Call it with arrays (..., size) in the order of `inputs`, or by their names.

    One sample, or any batch shape; arguments broadcast. Several results come as a tuple. `out=` takes the result.
    """

    def __init__(self, recipe: Recipe, dtype: str | None, thread_count: int, backend: str):
        self.recipe = recipe
        self.dtype = dtype
        self.threads = thread_count
        self.backend = backend
        self.signature = recipe.signature()
        self._run = functools.partial(threads.run_chunks, threads=thread_count) if thread_count > 1 else None
        self._kernels: Once[arrays.AnyKernel] = Once()
        self._plan: Plan | None = None  # of the fast entry, where there is one

    @property
    def name(self) -> str:
        """What was asked for."""
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

    @lazy
    def program(self) -> Program:
        """The traced Program, before multiply-adds are fused."""
        return self.recipe.trace()

    @property
    def counts(self) -> Counts:
        """Operations for one sample: multiplications, additions, divisions, square roots, angles."""
        return count(self.program)

    @property
    def llvm_ir(self) -> str:
        """The LLVM IR that the machine code is made from."""
        from ..backends.ir import kernel_ir
        from ..backends.target import host_target

        target = host_target()
        return kernel_ir(_for_target(self.program, target), self.dtype or "float64", target)[0]

    def c_source(self, name: str | None = None, dtype: str = "double", robot: RobotNames | None = None) -> str:
        """The function as C99, for `double` or `float`; `robot` names it and its joints in the comment on top."""
        from .c_export import c_files

        return c_files(self, name, dtype, robot)[0]

    def c_header(self, name: str | None = None, dtype: str = "double", robot: RobotNames | None = None) -> str:
        """The header file that goes with `c_source`."""
        from .c_export import c_files

        return c_files(self, name, dtype, robot)[1]

    def casadi(
        self, name: str | None = None, *, hessian: bool = True, folder: str | Path | None = None
    ) -> CasadiFunction:
        """The function in CasADi, with its Jacobian and, unless `hessian` is False, exact second derivatives.

        It is the exported C, compiled by the system's C compiler; `folder` keeps the source and the library. Vectors
        are columns; derivatives by q are by its numbers. Needs the package casadi.
        """
        from .casadi_export import casadi_function

        return casadi_function(self, name, hessian=hessian, folder=folder)

    def derivative(self, by: str) -> CompiledFunction:
        """The partial derivatives of the result by one input, (..., result size, input size); by q along the rates."""
        if by not in self.inputs or len(self.outputs) != 1 or self.recipe.details:
            raise ArgumentError(
                f"{self.name} cannot be differentiated by {shown(by)}: expected one of {', '.join(self.inputs)}, of a "
                f"function with one result."
            )
        request = self.recipe.requests[0]
        recipe = replace(self.recipe, rolled=None, requests=(request.differentiated((by,)),))
        return make_function(recipe, self.dtype, self.threads, self.backend)

    def __call__(self, *args: ArrayLike, out: arrays.Out | None = None, **named: ArrayLike) -> arrays.Results:
        """What the fast entry does not take; all calls where there is none."""
        if named:
            return self(*arrays.in_order(self.signature, args, named), out=out)
        if self._plan is not None and self.dtype is None and args and getattr(args[0], "dtype", None) is _FLOAT32:
            self._plan.add_kernel("float32", self.kernel("float32"))  # once: the entry takes the next one
        return self._checked_call(*args, out=out)

    def _checked_call(self, *args: ArrayLike, out: arrays.Out | None = None) -> arrays.Results:
        return arrays.call(self.signature, self.kernel, args, out=out, dtype=self.dtype, run=self._run)

    def kernel(self, dtype: DTypeLike) -> arrays.AnyKernel:
        """The kernel for this floating type, compiled or from the cache at first use."""
        name = _NAMES.get(dtype) or np.dtype(dtype).name  # NumPy makes its name anew each time
        kernel = self._kernels.get(name)
        return self._kernels.made(name, lambda: _make_kernel(self, name)) if kernel is None else kernel

    def __reduce__(self) -> tuple[object, ...]:
        return make_function, (self.recipe, self.dtype, self.threads, self.backend)

    def __repr__(self) -> str:
        shown = ", ".join(f"{a.name}{a.wanted}" for a in self.signature.inputs)
        results = ", ".join(f"{a.name}{a.wanted}" for a in self.signature.outputs)
        return f"<{self.name}({shown}) -> {results}>"


class ParametricFunction(CompiledFunction):
    """A function whose last arguments are parameters of the robot.

    A batch shares them, and the work among them is done once. Parameters with a batch shape of their own go to a
    function to which they are inputs like any other.
    """

    @lazy
    def _varied(self) -> CompiledFunction:
        return make_function(replace(self.recipe, varied=True), self.dtype, self.threads, self.backend)

    def __call__(self, *args: ArrayLike, out: arrays.Out | None = None, **named: ArrayLike) -> arrays.Results:
        if named:
            return self(*arrays.in_order(self.signature, args, named), out=out)
        cores = self.signature.input_cores
        first = len(cores) - len(self.recipe.parameters)
        if len(args) == len(cores) and any(
            arrays.axes(self.signature, k, args[k]) > len(cores[k][0]) for k in range(first, len(cores))
        ):
            return self._varied(*args) if out is None else self._varied(*args, out=out)
        return super().__call__(*args, out=out)


def make_function(
    recipe: Recipe, dtype: str | None, thread_count: int, backend: str,
    behind: Callable[[CompiledFunction], Callable[..., arrays.Results]] = lambda plain: plain,
) -> CompiledFunction:  # fmt: skip
    """A CompiledFunction, with the fast entry for single samples where there is one.

    behind: makes what takes the calls that the fast entry does not, or all where there is none.
    """
    kind = ParametricFunction if recipe.parameters and not recipe.varied else CompiledFunction
    plain = kind(recipe, dtype, thread_count, backend)
    entry = _fast_entry(plain, behind(plain))
    if entry is None:
        return behind(plain)  # pyright: ignore[reportReturnType]  # it has what its caller asks for
    fast = type(kind.__qualname__, (kind,), {"__call__": entry, "__doc__": kind.__doc__})
    function = fast.__new__(fast)
    function.__dict__ = plain.__dict__  # one function, seen from before and from behind its entry
    return function


def builtin_of(function: Callable[..., arrays.Results]) -> Callable[..., arrays.Results]:
    """The fast entry of a function: one step less than the function, which must live as long. Without, itself."""
    entry = vars(type(function)).get("__call__")
    return entry if isinstance(entry, types.BuiltinFunctionType) else function


def _fast_entry(plain: CompiledFunction, behind: Callable[..., object]) -> Callable[..., object] | None:
    """The builtin for plain calls, or None where it cannot be; `behind` takes whatever it does not."""
    if plain.backend != "llvm":
        return None
    from ..backends import entry

    inputs, outputs = ([a.shape for a in side] for side in (plain.signature.inputs, plain.signature.outputs))
    if not entry.supported() or not entry.fits(inputs, outputs):
        return None
    shared = len(plain.recipe.parameters) if not plain.recipe.varied else 0
    builtin, plan = entry.make_builtin(plain.name, inputs, outputs, shared, behind, _entry_code())
    dtype = plain.dtype or "float64"
    kernel = plain.kernel(dtype)
    if plain.threads > 1:
        plan.use_threads(plain.threads)
    plan.add_kernel(dtype, kernel)
    if behind is plain:  # else what is behind wants to see the calls with float32
        plain._plan = plan
    return builtin


_entries: Once[LoadedCode] = Once()


def _entry_code() -> LoadedCode:
    """The loaded entry, the same for every function of this process."""
    return _entries.made("entry", _load_entry)


def _load_entry() -> LoadedCode:
    from ..backends import entry, llvm
    from ..backends.target import host_target

    return llvm.LoadedCode(llvm.emit_object(entry.entry_ir(), host_target()), ("entry",), entry.entry_symbols())


def _make_kernel(function: CompiledFunction, dtype: str) -> arrays.AnyKernel:
    if function.backend == "interpreter":
        from ..backends.interpreter import Interpreter

        return Interpreter(function.program)
    from ..backends import llvm
    from ..backends.target import host_target

    target = host_target()
    key = _key(function.recipe, dtype, target)
    return llvm.MachineKernel(*_objects.get(key, lambda: _object(function, dtype, target, key)))


_objects: Making[tuple[bytes, int, float]] = Making()


def _object(function: CompiledFunction, dtype: str, target: Target, key: str) -> tuple[bytes, int, float]:
    """Object bytes, the bytes of workspace that a call needs and what a sample costs (ns): cached or compiled."""

    def make() -> tuple[IRModule, float]:
        return uncollected(_kernel_module, function, dtype, target), _predicted_cost(
            function.program, target.lanes(dtype)
        )

    return cached_code(key, make)


def cached_code(key: str, make: Callable[[], tuple[IRModule, float]]) -> tuple[bytes, int, float]:
    """Machine code, workspace and predicted cost by the key of a function: both cached, or made by `make()`.

    The function's entry names the object's entry, which functions with the same kernel text share.
    """
    store = default_cache()
    entry = store.get(key)
    if entry is not None:
        meta, _ = entry
        stored = store.get(str(meta["object"]))
        if stored is not None:
            return stored[1], int(meta["workspace"]), float(meta["cost"])
    module, cost = make()
    code = module.machine_code()
    store.put(key, {"object": module.key, "workspace": module.workspace, "cost": cost}, b"")
    return code, module.workspace, cost


def _predicted_cost(program: Program, lanes: int) -> float:
    """Nanoseconds for one sample, near enough to decide about threads: operations and numbers that come and go."""
    one, numbers = count(program), sum(array.size for array in (*program.inputs, *program.outputs))
    arithmetic = 0.16 * (one.mul + one.add) + 3.0 * (one.div + one.sqrt) + 10.0 * one.trig
    return (arithmetic + 0.6 * numbers) / lanes


def _kernel_module(function: CompiledFunction, dtype: str, target: Target) -> IRModule:
    from ..backends import llvm

    inputs, outputs = ([a.shape for a in side] for side in (function.signature.inputs, function.signature.outputs))
    program = function.program
    loop = function.recipe.loop()
    if loop is not None:
        from ..backends.until import until_ir

        ir, workspace = until_ir(_for_target(program.verify(), target), loop, target)
        return llvm.IRModule(ir, target, workspace=workspace)
    if (inputs, outputs) != ([a.shape for a in program.inputs], [a.shape for a in program.outputs]):
        raise BackendError(f"{function.name} is traced with other shapes than it is called with: please report this.")
    return llvm.kernel_module(_for_target(program, target), dtype, target)


def _for_target(program: Program, target: Target) -> Program:
    """Multiply-adds are fused where the processor has them: elsewhere each would be a call."""
    from ..tracing.passes.dead_and_fused import fuse

    return fuse(program) if target.fma else program


def _key(recipe: object, dtype: str, target: Target) -> str:
    import llvmlite

    from ..backends.target import initialized_llvm

    return make_key(
        llvmlite=llvmlite.__version__, llvm=initialized_llvm().llvm_version_info, cpu=target.cpu,
        features=target.features, triple=target.triple, recipe=recipe, dtype=dtype,
    )  # fmt: skip


def chosen_backend(backend: str | None) -> str:
    """The backend by argument, by `use_backend`, by LINKSWEEP_BACKEND, or LLVM."""
    return settings.checked_backend(settings.backend if backend is None else backend)


__all__: Sequence[str] = ["CompiledFunction", "Recipe", "chosen_backend", "make_function"]
