"""OpenCL and CUDA: kernels run on the CPU by PoCL, and are compiled for NVIDIA's GPUs without one."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import linksweep as ls
from linksweep.errors import ArgumentError
from linksweep.functions.compiled import CompiledFunction

PUMA, CHAIN = ls.robots.puma560(), ls.robots.chain(5)
CASES = [
    (PUMA, "inverse_dynamics", {}), (PUMA, "forward_dynamics", {}), (PUMA, "mass_matrix", {}),
    (PUMA, ("derivative", "forward_dynamics", "q"), {}), (PUMA, "inverse_dynamics", {"parameters": ("payload",)}),
    (CHAIN, "inverse_dynamics", {"rolled": True}), (CHAIN, "mass_matrix", {"rolled": True}),
    (CHAIN, "regressor", {"rolled": True}),
]  # fmt: skip


@pytest.fixture(scope="module")
def queue():
    cl = pytest.importorskip("pyopencl", reason="no pyopencl here: pip install 'linksweep[opencl]'")
    if not cl.get_platforms():
        pytest.skip("no OpenCL device here: pip install pocl-binary-distribution")
    return cl.CommandQueue(cl.Context([cl.get_platforms()[0].get_devices()[0]]))


def arguments(function: CompiledFunction, count: int) -> list[np.ndarray]:
    """Random inputs: a batch of each, but one of parameters, which a batch shares."""
    rng = np.random.default_rng(count)
    shared = [array.level < 2 for array in function.computation.inputs]
    return [
        rng.uniform(-1.2, 1.2, argument.shape if one else (count, *argument.shape))
        for argument, one in zip(function.signature.inputs, shared, strict=True)
    ]


@pytest.mark.cases(2)
@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case[1]}-{'-'.join(case[2])}")
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_opencl_agrees_with_numpy(queue, case, dtype: str):
    robot, item, options = case
    function = robot.compile(item, backend="interpreter", **options)
    on_device = function.opencl(queue, dtype)
    for count in (1, 37):
        inputs = arguments(function, count)
        expected = function(*inputs)
        moved = [
            on_device.to_device(x) if x.ndim > len(argument.shape) else on_device.to_device(x[None])[..., 0].copy()
            for x, argument in zip(inputs, function.signature.inputs, strict=True)
        ]
        answer = on_device(*moved)
        assert not isinstance(answer, tuple)
        result = on_device.to_host(answer)
        scale = np.abs(expected).max()
        assert np.abs(result - expected).max() <= scale * (1e-12 if dtype == "float64" else 1e-5)  # 24 bits of float32


def test_results_in_arrays_of_the_caller_and_mistakes(queue):
    function = PUMA.compile("inverse_dynamics", backend="interpreter")
    on_device = function.opencl(queue)
    q, qd, qdd = (on_device.to_device(x) for x in arguments(function, 20))
    tau = on_device(q, qd, qdd)
    assert not isinstance(tau, tuple)
    out = tau.copy()
    out.fill(0.0)
    assert on_device(q, qd, qdd, out=out) is out and np.array_equal(out.get(), tau.get())
    mistakes = [
        ((q, qd), {}, "2 arguments, expected 3"),
        ((q, qd, qdd.get()), {}, "qdd is .*expected a pyopencl.array.Array"),
        ((q, qd, qdd[:5].copy()), {}, r"qdd has shape \(5, 20\)"),
        ((q, qd, qdd.astype(np.float32)), {}, "type float32, expected"),
        ((q[:, ::2], qd[:, ::2], qdd[:, ::2]), {}, "view of another array"),
        ((q, qd, qdd), {"out": q}, "out tau is also an input"),
    ]
    for args, options, message in mistakes:
        with pytest.raises(ArgumentError, match=message):
            on_device(*args, **options)
    with pytest.raises(ArgumentError, match="dtype is 'float16'"):
        function.opencl(queue, "float16")
    with pytest.raises(ArgumentError, match=r"expected a pyopencl\.CommandQueue"):
        function.opencl(None)  # pyright: ignore[reportArgumentType]


def load_benchmark(monkeypatch: pytest.MonkeyPatch) -> Any:
    path = Path(__file__).parents[2] / "benchmarks" / "cuda_registers.py"
    monkeypatch.syspath_prepend(str(path.parent))  # benchmarks share a module
    spec = importlib.util.spec_from_file_location("cuda_registers", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["cuda_registers"] = module
    spec.loader.exec_module(module)
    try:
        for name in ("ptxas", "libnvrtc.so.*"):
            module.package_file(name)
    except FileNotFoundError as error:
        pytest.skip(str(error))
    return module


@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["float", "double"])
@pytest.mark.parametrize("name", ["inverse_dynamics", "forward_dynamics"])
def test_cuda_kernels_of_an_arm_need_no_spills(name: str, dtype: str, monkeypatch: pytest.MonkeyPatch):
    benchmark = load_benchmark(monkeypatch)
    source = PUMA.compile(name, backend="interpreter").source("cuda", "kernel_of_puma", dtype)
    for architecture in benchmark.ARCHITECTURES:
        registers, spilled = benchmark.registers_and_spills(source, architecture)
        assert 0 < registers <= 255 and spilled == 0


@pytest.mark.slow
def test_cuda_kernels_of_a_long_robot_are_loops(monkeypatch: pytest.MonkeyPatch):
    benchmark = load_benchmark(monkeypatch)
    source = ls.robots.chain(40).compile("forward_dynamics", backend="interpreter").source("cuda", "kernel_of_chain")
    assert "for (int link" in source
    assert benchmark.registers_and_spills(source, "sm_80")[1] == 0


def test_names_of_links_cannot_end_a_comment_or_redefine_a_word():
    rows = [{"a": 0.3, "alpha": 0.2, "d": 0.1, "mass": 1.0, "com": (0.1, 0.0, 0.0), "inertia": (0.1, 0.2, 0.3)}] * 3
    names = ["*/ } __kernel void g() { /*", "blockIdx", "get_global_id"]
    robot = ls.Robot.from_dh([row | {"link": name} for row, name in zip(rows, names, strict=True)], "modified")
    function = robot.compile("inverse_dynamics", backend="interpreter")
    for language in ("opencl", "cuda"):
        text = function.source(language, "f", robot=robot)
        assert text.count("*/") == text.count("/*") and "\n} __kernel" not in text
        with pytest.raises(ArgumentError, match="reserved word"):
            function.source(language, "threadIdx" if language == "cuda" else "kernel")
