"""Every transformation of JAX times every derivative, type and kind of call, on one core: right, or a clear error."""

from __future__ import annotations

import functools
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import jax_combinations
import numpy as np
import pytest
from jax_combinations import CHAINED, QUANTITIES, ROBOTS, TRANSFORMATIONS, Loss, derivatives, reference, transformed
from robots_for_tests import robot

jax = pytest.importorskip("jax", reason="linksweep.jax needs jax, which is not installed")

TOLERANCE = {"float64": 1e-8, "float32": 1e-4}
ONE_CORE = ("taskset", "-c", "0") if shutil.which("taskset") else ()


@functools.cache
def results(kind: str, dtype: str) -> dict[str, np.ndarray]:
    """All quantities under all transformations, from a process on one core. It must not hang."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "results.npz"
        command = [*ONE_CORE, sys.executable, jax_combinations.__file__, kind, dtype, str(file)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=300)
        assert done.returncode == 0, done.stderr[-3000:]
        with np.load(file) as found:
            return dict(found)


@pytest.mark.slow
@pytest.mark.parametrize("quantity", QUANTITIES)
@pytest.mark.parametrize("dtype", TOLERANCE)
@pytest.mark.parametrize("transformation", TRANSFORMATIONS)
@pytest.mark.parametrize("kind", ["function", "rollout"])
def test_combination(kind: str, transformation: str, dtype: str, quantity: str):
    for name in ROBOTS:
        found = results(kind, dtype)[f"{transformation} {name} {quantity}"]
        check(found, kind, transformation, dtype, quantity, name)


def check(found: np.ndarray, kind: str, transformation: str, dtype: str, quantity: str, name: str) -> None:
    expected = reference(kind, transformation in CHAINED, name).get(quantity)
    if expected is None:  # docs/frameworks.md names it
        assert "lax.scan" in str(found)
    else:
        assert found.dtype == dtype and found.shape == expected.shape
        assert np.abs(found - expected).max() <= TOLERANCE[dtype] * np.abs(expected).max()


@pytest.mark.parametrize(
    ("transformation", "quantity"), [("scan", "hessian"), ("fori_loop", "grad of grad"), ("lax.map", "hvp")]
)
def test_second_derivatives_through_loops(transformation: str, quantity: str):
    """Some of the combinations, in this process."""
    before = jax.config.jax_enable_x64
    jax.config.update("jax_enable_x64", True)
    try:
        from linksweep.jax import wrap

        bot = robot("planar2")
        loss = Loss("function", wrap(bot.compile("forward_dynamics")), bot.nv, jax.numpy)
        function = derivatives(jax, transformed(jax, loss, transformation), loss.way)[quantity]
        found = np.asarray(jax.jit(function)(loss.x))
    finally:
        jax.config.update("jax_enable_x64", before)
    check(found, "function", transformation, "float64", quantity, "planar2")
