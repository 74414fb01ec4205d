"""Rollouts in JAX: all steps as one foreign function of XLA, its gradient by the compiled adjoint.

    _roll       q0, qd0, tau -> q, qd ("states"), or with weights and states -> gradients ("gradients")
    _tangent    tangents of q0, qd0, tau -> tangents of q, qd. It exists to be transposed; nothing computes it.

Long rollouts run in the threads of XLA's own pool.
"""

# pyright: reportMissingImports=false, reportAttributeAccessIssue=false
from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from typing import NoReturn

import jax
import jax.numpy as jnp
import numpy as np
from jax.extend.core import Primitive
from jax.interpreters import ad, batching, mlir

from ..backends.registry import backend_named
from ..backends.xla import Buffer, Place, Plan
from ..errors import ArgumentError, BackendError
from ..functions.frameworks import unique_name
from ..simulation.gradient import FIRST, NAMES, Rollout, mapped_first, result_shapes, summed
from ..simulation.gradient import FrameworkArray as Array
from .targets import as_arrays, bind, register, result_type, target_names

TWICE = (
    "a rollout in JAX has first derivatives in reverse mode (grad, jacrev, vjp). For jvp, jacfwd, hessian or a second "
    "grad, write the steps as jax.lax.scan over a wrapped function, such as forward_dynamics."
)
GIVEN = len(NAMES)
RESULTS = {"states": (1, 1), "gradients": (0, 0, 1)}  # the first leading axis of each result


class JaxRollout:
    """A rollout over JAX arrays, q0, qd0, tau -> q, qd: see `linksweep.jax.wrap`."""

    def __init__(self, roll: Rollout):
        if not backend_named(roll.backend).machine_code:
            raise BackendError(f"wrap got {roll!r} of the interpreter, expected machine code: leave backend= out.")
        self.rollout = roll
        self.__name__ = self.__qualname__ = "rollout"
        self.__doc__ = f"{roll!r} in JAX."
        self._node = _node(roll)

    def __call__(self, q0: Array, qd0: Array, tau: Array) -> Array:
        arrays = as_arrays("rollout", NAMES, (q0, qd0, tau))
        self.rollout.batch(*(x.shape for x in arrays))  # an error when it is traced, not when it runs
        return tuple(bind(_roll, *arrays, node=self._node, what="states"))

    @property
    def target(self) -> str:
        """What the names of its targets in XLA begin with."""
        return self._node.name

    def register(self, exported: Array) -> None:
        """Register the machine code that a program from `jax.export` calls."""
        for name in target_names(exported.mlir_module()):
            base, what, dtype = name.split("/")
            if base == self.target:
                self._node.registered(what, dtype)

    def __reduce__(self) -> tuple[object, ...]:
        return JaxRollout, (self.rollout,)

    def __repr__(self) -> str:
        return f"{self.rollout!r} in JAX"


class _Node:
    """A rollout as a parameter of primitives, compared by identity: one for each rollout of a process."""

    def __init__(self, roll: Rollout, name: str):
        self.roll, self.name = roll, name
        nq, nv = roll.robot.nq, roll.robot.nv
        self.plans = {"states": ("step", _states(nq, nv)), "gradients": ("adjoint", _gradients(nq, nv))}
        self.run = {what: jax.jit(functools.partial(_roll.bind, node=self, what=what)) for what in RESULTS}

    def registered(self, what: str, dtype: str) -> str:
        kind, plan = self.plans[what]
        return register(f"{self.name}/{what}/{dtype}", self.roll.functions[kind], dtype, plan)

    def __repr__(self) -> str:
        return self.name


_nodes: dict[str, _Node] = {}


def _node(roll: Rollout) -> _Node:
    name = f"linksweep_{unique_name('rollout', roll.content)}"
    return _nodes.setdefault(name, _nodes.get(name) or _Node(roll, name))


def _states(nq: int, nv: int) -> Plan:
    """q0, qd0, dt, tau -> q, qd: a step writes the states that the next one reads."""
    start = (Buffer("arg0", nq), Buffer("arg1", nv), Buffer("arg2", 1), Buffer("arg3", nv, 0))
    q, qd = Buffer("ret0", nq, 1), Buffer("ret1", nv, 1)
    return Plan(
        (*start, q, qd),
        ((Place("ret0"), Place("arg0")), (Place("ret1"), Place("arg1"))),
        (Place("ret0", 0, 1), Place("ret1", 0, 1), Place("arg2"), Place("arg3", 0, 1)),
        (Place("ret0", 1, 1), Place("ret1", 1, 1)),
    )


def _gradients(nq: int, nv: int) -> Plan:
    """Weights, states, dt, tau -> gradients, from the last step to the first: lambda stays where it is."""
    weights, states = (Buffer("arg0", nq, 1), Buffer("arg1", nv, 1)), (Buffer("arg2", nq, 1), Buffer("arg3", nv, 1))
    gradients = Buffer("ret0", nq), Buffer("ret1", nv), Buffer("ret2", nv, 0)
    by_q, by_qd = Place("ret0"), Place("ret1")
    return Plan(
        (*weights, *states, Buffer("arg4", 1), Buffer("arg5", nv, 0), *gradients),
        ((by_q, Place("arg0", -1)), (by_qd, Place("arg1", -1))),
        (
            by_q, by_qd, Place("arg2", -2, -1), Place("arg3", -2, -1), Place("arg4"), Place("arg5", -1, -1),
            Place("arg0", -2, -1), Place("arg1", -2, -1),
        ),
        (by_q, by_qd, Place("ret2", -1, -1)),
    )  # fmt: skip


# ---- the rollout, and its adjoint -----------------------------------------------------------------------------------

_roll = Primitive("linksweep_rollout")
_roll.multiple_results = True


@_roll.def_impl
def _run(*args: Array, node: _Node, what: str) -> Array:
    return node.run[what](*args)


@_roll.def_abstract_eval
def _result_types(*args: Array, node: _Node, what: str) -> Array:
    shapes = result_shapes(node.roll, [x.shape for x in args])
    return [result_type(args, shape, 0) for shape in shapes]


def _derivative(primals: Array, tangents: Array, *, node: _Node, what: str) -> Array:
    if what == "gradients":
        raise ArgumentError(TWICE)
    states = bind(_roll, *primals, node=node, what=what)
    moved = [ad.instantiate_zeros(tangent) for tangent in tangents]
    return states, bind(_tangent, *primals, *states, *moved, node=node)


def _mapped(primitive: Array, firsts: Sequence[int], args: Array, dims: Array, **options: Array) -> Array:
    """Under vmap: one call, with a leading axis more."""
    fronted = [x if dim is None else jnp.moveaxis(x, dim, 0) for x, dim in zip(args, dims, strict=True)]
    placed = mapped_first(fronted, [dim is not None for dim in dims], jnp.moveaxis, firsts)
    results = bind(primitive, *placed, **options)
    return results, RESULTS[options.get("what", "states")]


def _foreign(*args: Array, node: _Node, what: str) -> Array:
    """The foreign call, its arguments and results with their leading axes as one."""
    shapes, (q0, qd0, tau, *moving) = result_shapes(node.roll, [x.shape for x in args]), args
    firsts, dtype = RESULTS[what], q0.dtype
    batch = shapes[0][firsts[0] : -1]
    dt = np.full((1, 1), node.roll.dt, dtype)
    if what == "states":
        rows = *(_in_rows(x, batch, 0, True) for x in (q0, qd0)), dt, _in_rows(tau, batch, 1)
    else:
        whole = (True, True, False, False)
        rows = *(_in_rows(x, batch, 1, w) for x, w in zip(moving, whole, strict=True)), dt, _in_rows(tau, batch, 1)
    flat = [(*shape[:first], math.prod(batch), shape[-1]) for shape, first in zip(shapes, firsts, strict=True)]
    results = _rows.bind(*rows, node=node, what=what, shapes=tuple(flat))
    return [x.reshape(shape) for x, shape in zip(results, shapes, strict=True)]


def _in_rows(x: Array, batch: tuple[int, ...], first: int, whole: bool = False) -> Array:
    """Leading axes, which begin at `first`, as one of all rollouts; of length 1 where they share x, unless `whole`."""
    moments, own, size = x.shape[:first], x.shape[first:-1], x.shape[-1]
    if math.prod(own) == 1 and not whole:
        return x.reshape(*moments, 1, size)
    aligned = x.reshape(*moments, *(1,) * (len(batch) - len(own)), *own, size)
    return jnp.broadcast_to(aligned, (*moments, *batch, size)).reshape(*moments, math.prod(batch), size)


_rows = Primitive("linksweep_rollout_rows")  # only ever inside the lowering of `_roll`
_rows.multiple_results = True


@_rows.def_abstract_eval
def _row_types(*args: Array, shapes: tuple[tuple[int, ...], ...], **_: Array) -> Array:
    return [result_type(args, shape, 0) for shape in shapes]


def _lowered_rows(context: Array, *operands: Array, node: _Node, what: str, shapes: Array) -> Array:
    return jax.ffi.ffi_lowering(node.registered(what, context.avals_out[0].dtype.name))(context, *operands)


mlir.register_lowering(_rows, _lowered_rows)
ad.primitive_jvps[_roll] = _derivative
batching.primitive_batchers[_roll] = functools.partial(_mapped, _roll, FIRST)
mlir.register_lowering(_roll, mlir.lower_fun(_foreign, multiple_results=True))


# ---- tangents: q0, qd0, tau, q, qd, then the tangents of the first three -------------------------------------------

_tangent = Primitive("linksweep_rollout_tangent")
_tangent.multiple_results = True


@_tangent.def_abstract_eval
def _tangent_types(*args: Array, node: _Node) -> Array:
    firsts = (*FIRST[:5], *FIRST[:3])
    batch: Array = jnp.broadcast_shapes(*(x.shape[first:-1] for x, first in zip(args, firsts, strict=True)))
    return [result_type(args, (x.shape[0], *batch, x.shape[-1]), 0) for x in args[GIVEN : GIVEN + 2]]


def _tangent_transpose(cotangents: Array, *args: Array, node: _Node) -> Array:
    given, states, tangents = args[:GIVEN], args[GIVEN:-GIVEN], args[-GIVEN:]
    weights = [ad.instantiate_zeros(ct) for ct in cotangents]
    gradients = bind(_roll, *given, *weights, *states, node=node, what="gradients")
    pulled = [
        summed(gradient, x.aval.shape, first) if ad.is_undefined_primal(x) else None
        for gradient, x, first in zip(gradients, tangents, FIRST, strict=False)
    ]
    return [None] * (len(args) - GIVEN) + pulled


def _refused(*_: Array, **__: Array) -> NoReturn:
    raise ArgumentError(TWICE)


_tangent.def_impl(_refused)
ad.primitive_jvps[_tangent] = _refused
ad.primitive_transposes[_tangent] = _tangent_transpose
batching.primitive_batchers[_tangent] = functools.partial(_mapped, _tangent, (*FIRST[:5], *FIRST[:3]))
mlir.register_lowering(_tangent, _refused)
