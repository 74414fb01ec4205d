"""Machine code for 64-bit ARM, run by qemu: the numbers of this machine, lanes, angles, loops and descents included.

Needs qemu-aarch64 and a C compiler for the little main around a kernel (Debian: qemu-user,
gcc-aarch64-linux-gnu, libc6-dev-arm64-cross); skipped without them. What runs on Python, the entry and the cache, does
not run here: see docs/portability.md.
"""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from abuse_helpers import PATIENCE

import linksweep as ls
from linksweep.backends import llvm
from linksweep.backends.ir import kernel_ir, until_ir
from linksweep.backends.target import Target, initialized_llvm
from linksweep.motion.inverse import chain_of
from linksweep.tracing.passes import fuse

QEMU = shutil.which("qemu-aarch64") or shutil.which("qemu-aarch64-static")
CC = shutil.which("aarch64-linux-gnu-gcc")
LIBC = CC and subprocess.run([CC, "-print-file-name=libc.a"], capture_output=True, text=True).stdout.strip()
AARCH64 = Target("aarch64-unknown-linux-gnu", "generic", "+neon", 16, True)
MAIN = r"""
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
void kernel(int64_t, void **, int64_t *, void **, int64_t *, void *, int64_t *, int64_t);
int main(void) {
  int64_t n = N, counter = 0, in_strides[] = {IN}, out_strides[] = {OUT};
  int inputs = sizeof in_strides / 8, outputs = sizeof out_strides / 8;
  void *in[16], *out[16];
  for (int k = 0; k < inputs; k++) {
    in[k] = malloc(n * in_strides[k] * sizeof(REAL));
    if (fread(in[k], sizeof(REAL), n * in_strides[k], stdin) != n * in_strides[k]) return 1;
  }
  for (int k = 0; k < outputs; k++) out[k] = malloc(n * out_strides[k] * sizeof(REAL));
  kernel(n, in, in_strides, out, out_strides, aligned_alloc(64, WORK), &counter, n);
  for (int k = 0; k < outputs; k++) fwrite(out[k], sizeof(REAL), n * out_strides[k], stdout);
  return 0;
}
"""

pytestmark = pytest.mark.skipif(
    QEMU is None or not LIBC or not Path(LIBC).is_absolute(),  # a name without a folder: it has no such file
    reason="needs qemu-aarch64 and aarch64-linux-gnu-gcc with its C library: apt install qemu-user "
    "gcc-aarch64-linux-gnu libc6-dev-arm64-cross",
)  # fmt: skip


def run_there(folder: Path, function: Any, args: list[np.ndarray], dtype: str = "float64") -> list[np.ndarray]:
    """A compiled function's results (n, size), by code for the other processor."""
    initialized_llvm().initialize_all_targets()
    initialized_llvm().initialize_all_asmprinters()
    program, loop = fuse(function.program.verify()), function.computation.loop()
    ir, workspace = kernel_ir(program, dtype, AARCH64) if loop is None else until_ir(program, loop, AARCH64)
    (folder / "kernel.o").write_bytes(llvm.emit_object(ir, AARCH64))
    (folder / "main.c").write_text(MAIN)
    sizes = [[int(np.prod(a.shape)) for a in side] for side in (function.signature.inputs, function.signature.outputs)]
    defined = {
        "N": len(args[0]), "IN": ",".join(map(str, sizes[0])), "OUT": ",".join(map(str, sizes[1])),
        "REAL": "double" if dtype == "float64" else "float", "WORK": max(-(-workspace // 64) * 64, 64),
    }  # fmt: skip
    options = [f"-D{name}={value}" for name, value in defined.items()]
    build = [CC, "-O1", "-static", *options, "main.c", "kernel.o", "-lm", "-o", "run"]
    subprocess.run(build, cwd=folder, check=True, timeout=PATIENCE)
    given = b"".join(np.ascontiguousarray(a, dtype).tobytes() for a in args)
    done = subprocess.run([str(QEMU), "./run"], cwd=folder, input=given, capture_output=True, timeout=PATIENCE)
    assert done.returncode == 0, done.stderr
    flat, results = np.frombuffer(done.stdout, dtype), []
    for size in sizes[1]:
        results.append(flat[: len(args[0]) * size].reshape(len(args[0]), size))
        flat = flat[len(args[0]) * size :]
    return results


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("name", ["inverse_dynamics", "forward_dynamics", "mass_matrix"])
def test_dynamics(name: str, dtype: str, tmp_path: Path):
    f = ls.robots.puma560().compile(name, dtype=dtype)
    rng = np.random.default_rng(0)
    args = [rng.uniform(-3.0, 3.0, (7, *a.shape)) for a in f.signature.inputs]  # no whole number of lanes
    wanted = f(*[a.astype(dtype) for a in args])
    (found,) = run_there(tmp_path, f, args, dtype)
    size = np.abs(wanted).max()
    assert np.abs(found.reshape(wanted.shape) - wanted).max() <= (1e-12 if dtype == "float64" else 2e-4) * size


def test_angles_of_any_size(tmp_path: Path):
    """Sines near multiples of a quarter turn, large ones, and those beyond the reach of the polynomial."""
    robot = ls.robots.planar(1)
    f = robot.compile(("pose", robot.frame_names[-1]))
    quarters = np.arange(-40, 41) * (np.pi / 2)
    angles = np.concatenate([quarters, np.nextafter(quarters, 9e9), [1e-300, 1e5, 1e10, 1e17, 1e300, -1e22]])
    (found,) = run_there(tmp_path, f, [angles[:, None]])
    np.testing.assert_allclose(found.reshape(-1, 4, 4), f(angles[:, None]), rtol=1e-14, atol=1e-15)


def test_loops_over_links(tmp_path: Path):
    f = ls.robots.chain(12, seed=2).compile("forward_dynamics", rolled=True)
    args = [np.random.default_rng(1).normal(size=(5, 12)) for _ in range(3)]
    (found,) = run_there(tmp_path, f, args)
    wanted = f(*args)
    assert np.abs(found - wanted).max() <= 1e-10 * np.abs(wanted).max()


def test_descents(tmp_path: Path):
    robot = ls.robots.puma560()
    f = chain_of(robot, "tool").descent(False, True)
    rng = np.random.default_rng(4)
    q = np.stack([robot.random(rng) for _ in range(9)])
    args = [robot.pose(q, "tool").reshape(9, 16), np.tile([1e-10, 30.0], (9, 1)), q + rng.uniform(-0.1, 0.1, q.shape)]
    found, report = run_there(tmp_path, f, args)
    assert (report[:, 0] == 1.0).all()
    np.testing.assert_allclose(robot.pose(found, "tool"), robot.pose(q, "tool"), atol=1e-9)
