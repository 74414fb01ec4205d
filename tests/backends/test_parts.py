"""Long programs are compiled in parts: same results, any lanes and batch; time that grows with the length."""

from __future__ import annotations

import numpy as np
import pytest
from robots_for_tests import close, robot

import linksweep as ls
from linksweep.backends import parts
from linksweep.backends.emitter import straight_body
from linksweep.backends.interpreter import Interpreter
from linksweep.backends.llvm import MachineKernel, kernel_module
from linksweep.backends.target import Target, host_target

ITEMS = ["forward_dynamics", ("derivative", "forward_dynamics", "q"), ("jacobian", "tool")]


@pytest.mark.quick
@pytest.mark.parametrize("longest", [40, 150, 300])
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_parts_compute_what_the_whole_does(monkeypatch: pytest.MonkeyPatch, longest: int, dtype: str):
    f = robot("puma560").compile(ITEMS, backend="interpreter", parameters=("payload", "gravity"))
    monkeypatch.setattr(parts, "CUT", {16: 0, 32: 0})
    monkeypatch.setattr(parts, "LONGEST", longest)
    assert parts.is_long(f.program, host_target())
    module = kernel_module(f.program, dtype, host_target())
    assert module.ir.count("define internal void @part") == -(
        -len(parts.PartEmitter(f.program, dtype, host_target()).work) // longest
    )
    kernel, random = MachineKernel(module.machine_code(), module.workspace), np.random.default_rng(0)
    for n in (1, 5, 2 * host_target().lanes(dtype)):
        sizes = [argument.size for argument in f.program.inputs]
        shared = [1 if array.level < 2 else n for array in f.program.inputs]
        inputs = [random.uniform(-1, 1, (rows, size)).astype(dtype) for rows, size in zip(shared, sizes, strict=True)]
        found, expected = ([np.empty((n, array.size), dtype) for array in f.program.outputs] for _ in range(2))
        kernel(inputs, found)
        Interpreter(f.program)(inputs, expected)
        for a, b in zip(found, expected, strict=True):
            assert close(a, b, 1e-10 if dtype == "float64" else 1e-3)  # float32: M is ill conditioned with such loads
    inputs[0][0, 0] = np.nan
    kernel(inputs, found)
    assert all(np.isnan(x[0]).all() and np.isfinite(x[1:]).all() for x in found)


@pytest.mark.cases(1)
@pytest.mark.parametrize("longest", [1, 2, 5, 30])
def test_comparisons_are_made_again_where_another_part_needs_them(monkeypatch: pytest.MonkeyPatch, longest: int):
    """Truth values have no place in the workspace; friction takes its sign by them."""
    rubbing = ls.robots.puma560().with_dissipation(damping=0.1, friction=[0.3] * 6)
    items = ["inverse_dynamics", ("derivative", "inverse_dynamics", "qd")]
    f = rubbing.compile(items, backend="interpreter", dissipation=True, parameters=("payload",))
    assert any(node.op == "lt" for node in straight_body(f.program).nodes)
    monkeypatch.setattr(parts, "CUT", {16: 0, 32: 0})
    monkeypatch.setattr(parts, "LONGEST", longest)
    module = kernel_module(f.program, "float64", host_target())
    random = np.random.default_rng(0)
    inputs = [random.uniform(-1, 1, (1 if array.level < 2 else 9, array.size)) for array in f.program.inputs]
    found, expected = ([np.empty((9, array.size)) for array in f.program.outputs] for _ in range(2))
    MachineKernel(module.machine_code(), module.workspace)(inputs, found)
    Interpreter(f.program)(inputs, expected)
    assert all(close(a, b, 1e-12) for a, b in zip(found, expected, strict=True))


def test_places_are_used_again(monkeypatch: pytest.MonkeyPatch):
    f = robot("puma560").compile(("derivative", "forward_dynamics", "q"), backend="interpreter")
    monkeypatch.setattr(parts, "LONGEST", len(straight_body(f.program).nodes))
    whole = parts.PartEmitter(f.program, "float64", host_target())
    assert len(whole.parts) == 1
    monkeypatch.setattr(parts, "LONGEST", 100)
    cut = parts.PartEmitter(f.program, "float64", host_target())
    assert len(set(cut.places.values())) < len(cut.places) and whole.workspace < cut.workspace < len(cut.work)


def test_a_part_is_as_long_as_it_may_be_at_most():
    f = ls.robots.chain(7, seed=1).compile(ITEMS, backend="interpreter")
    lengths = [len(steps) for steps in parts.PartEmitter(f.program, "float64", host_target()).parts]
    assert max(lengths) <= parts.LONGEST and max(lengths) - min(lengths) <= 1


@pytest.mark.parametrize("wide", [False, True])
def test_what_is_cut_depends_on_the_registers_and_on_what_is_stored(wide: bool):
    registers = Target("x86_64-unknown-linux-gnu", "x86-64", "", 64 if wide else 32, True)
    assert registers.registers == (32 if wide else 16)
    arm = ls.robots.chain(7, seed=1)
    assert parts.is_long(arm.compile(ITEMS, backend="interpreter").program, registers) is not wide
    assert not parts.is_long(robot("puma560").compile("inverse_dynamics", backend="interpreter").program, registers)
    jacobians = ls.robots.chain(20, seed=1).compile("jacobians", backend="interpreter", rolled=False).program
    assert sum(len(body.nodes) for body in jacobians.bodies()) > parts.CUT[16]
    assert not parts.is_long(jacobians, registers)
