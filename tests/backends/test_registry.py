"""Backends by name: each makes kernels from the same request, and they agree."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import linksweep as ls
from linksweep.backends.registry import BACKENDS, KernelRequest, backend_named
from linksweep.errors import BackendError
from linksweep.tracing.program import Program

PUMA = ls.robots.puma560()


def request() -> KernelRequest:
    function = PUMA.compile("inverse_dynamics", backend="interpreter")
    inputs, outputs = ([a.shape for a in side] for side in (function.program.inputs, function.program.outputs))
    return KernelRequest(
        "inverse_dynamics", ("registry", function.computation), lambda: function.program, inputs, outputs
    )


@pytest.mark.quick
@pytest.mark.cases(2)
@pytest.mark.parametrize("name", BACKENDS)
def test_every_backend_makes_a_kernel(name: str):
    backend = backend_named(name)
    assert backend.name == name
    q, qd, qdd = np.random.default_rng(5).normal(size=(3, 11, 6))
    tau = np.empty((11, 6))
    backend.kernel(request(), "float64")([q, qd, qdd], [tau])
    np.testing.assert_allclose(tau, PUMA.inverse_dynamics(q, qd, qdd), rtol=1e-12, atol=1e-12)


def test_cached_code_needs_no_trace():
    made = request()
    backend_named("llvm").kernel(made, "float64")

    def refuse() -> Program:
        raise AssertionError("traced although its code is cached")

    again = KernelRequest(made.name, made.key, refuse, made.inputs, made.outputs)
    assert backend_named("llvm").kernel(again, "float64").workspace == 0


def test_shapes_other_than_the_program_has():
    made = request()
    wrong = KernelRequest(made.name, ("wrong", made.key), made.trace, made.inputs[:2], made.outputs)
    with pytest.raises(BackendError, match="other shapes"):
        backend_named("llvm").kernel(wrong, "float64")


def test_the_fast_entry_takes_plain_arrays_and_leaves_the_rest():
    made, left = request(), []
    found = backend_named("llvm").fast_entry(made.name, made.inputs, made.outputs, 0, lambda *args: left.append(args))
    assert found is not None
    builtin: Any = found[0]
    plan = found[1]
    plan.add_kernel("float64", backend_named("llvm").kernel(made, "float64"))
    q, qd, qdd = np.random.default_rng(6).normal(size=(3, 6))
    assert np.array_equal(builtin(q, qd, qdd), PUMA.inverse_dynamics(q, qd, qdd))
    builtin(list(q), qd, qdd)
    assert len(left) == 1
    assert backend_named("interpreter").fast_entry(made.name, made.inputs, made.outputs, 0, print) is None


@pytest.mark.parametrize("name", ["gcc", "", 3, b"llvm"])
def test_unknown_backends(name: object):
    with pytest.raises(BackendError, match="expected 'llvm' or 'interpreter'"):
        backend_named(name)
