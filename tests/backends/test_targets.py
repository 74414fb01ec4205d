"""The same numbers on every kind of processor: vectors narrowed on this host, and code made for others."""

from __future__ import annotations

import os
import platform
import shutil
import struct
import subprocess

import llvmlite.binding as llvm
import numpy as np
import pytest
from abuse_helpers import SIMD, close, function, in_process, interpreted, results, robot, run_python, samples

import linksweep as ls
from linksweep.backends import llvm as backend
from linksweep.backends import target as targets
from linksweep.backends.target import Target, host_target
from linksweep.tracing.passes import fuse

X86 = platform.machine().lower() in ("x86_64", "amd64")
ROBOTS = (("puma560", "float64"), ("mixed7", "float64"), ("tree8", "float64"), ("tree5", "float32"))
FUNCTIONS = (
    "inverse_dynamics", "forward_dynamics", "mass_matrix", "bias_forces", "gravity_forces", "pose", "jacobian",
    "several", "d_inverse_dynamics", "inverse_with_forces",
    "inverse_dynamics_rolled", "forward_dynamics_rolled", "mass_matrix_rolled", "jacobian_rolled", "several_rolled",
)  # fmt: skip


def conformance(name: str, dtype: str) -> None:
    arm = robot(name)
    for wanted in FUNCTIONS:
        compiled = function(arm, wanted, dtype=dtype)
        args = samples(compiled, 37, dtype, seed=5)
        expected = interpreted(compiled, args)
        tolerance = 1e-10 if dtype == "float64" else 3e-3
        close(results(compiled(*args)), expected, tolerance)
        close([y[None] for y in results(compiled(*[a[5] for a in args]))], [y[5:6] for y in expected], tolerance)
    lanes = host_target().lanes(dtype)
    print(lanes, host_target().fma, "vfmadd" in _assembly(arm, dtype))


def _assembly(arm: ls.Robot, dtype: str) -> str:
    target = host_target()
    module = llvm.parse_assembly(arm.compile("gravity_forces", dtype=dtype).llvm_ir)
    module.triple = target.triple
    return target.machine().emit_assembly(module)


@pytest.mark.cases(1)
@pytest.mark.skipif(not X86, reason="LINKSWEEP_SIMD narrows the vectors of x86-64")
@pytest.mark.parametrize("simd", SIMD)
@pytest.mark.parametrize(("name", "dtype"), ROBOTS)
def test_every_function_equals_the_interpreter(name: str, dtype: str, simd: str):
    printed = in_process(conformance, name, dtype, LINKSWEEP_SIMD=simd).split()
    expected = {"sse2": ["2", "False", "False"], "avx2": ["4", "True", "True"]}
    if simd == "sse2" or (simd == "avx2" and llvm.get_host_cpu_features().get("fma")):
        lanes, *rest = expected[simd]
        assert printed == [str(int(lanes) * (2 if dtype == "float32" else 1)), *rest]


def test_an_unknown_setting_is_an_error():
    run = (
        "import linksweep as ls\ntry: ls.robots.planar(1).compile('mass_matrix')\nexcept ls.BackendError as e: print(e)"
    )
    printed = run_python(run, LINKSWEEP_SIMD="mmx")
    assert printed == "LINKSWEEP_SIMD is 'mmx', expected one of sse2, avx2, avx512.\n"


# ---- other processors: machine code is made and looked at, not run


AARCH64 = Target("aarch64-unknown-linux-gnu", "generic", "+neon", 16, True)
AVX512 = Target("x86_64-unknown-linux-gnu", "skylake-avx512", "", 64, True)
ELF_MACHINES = {"aarch64": 183, "x86_64": 62}


@pytest.fixture(scope="module", autouse=True)
def every_processor():
    targets.initialized_llvm()
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()


@pytest.mark.parametrize("target", [AARCH64, AVX512], ids=["aarch64", "avx512"])
@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("wanted", ["inverse_dynamics", "forward_dynamics", "mass_matrix", "several"])
@pytest.mark.parametrize("rolled", [False, True])
def test_code_for_other_processors(wanted: str, rolled: bool, dtype: str, target: Target):
    for name in ("planar3", "tree5"):
        program = function(robot(name), wanted, rolled=rolled, backend="interpreter").program
        module = backend.kernel_module(fuse(program), dtype, target)
        code, ir = module.machine_code(), module.ir
        assert code[:4] == b"\x7fELF" and code[4] == 2  # 64 bits
        assert struct.unpack_from("<H", code, 18)[0] == ELF_MACHINES[target.triple.split("-")[0]]
        assert (module.workspace > 0) == rolled
        lanes = target.vector_bytes // (8 if dtype == "float64" else 4)
        assert f"<{lanes} x {'double' if dtype == 'float64' else 'float'}>" in ir
        text = _assembly_of(ir, target)
        fused = "fmla" if target is AARCH64 else "vfmadd"
        assert fused in text and ("v0." in text if target is AARCH64 else "zmm" in text)


@pytest.mark.slow
@pytest.mark.cases(1)
@pytest.mark.parametrize("target", [AARCH64, AVX512], ids=["aarch64", "avx512"])
def test_other_processors_call_nothing_unknown(target: Target):
    """Undefined symbols are those that loading resolves, and the memory functions of the C library."""
    if shutil.which("nm") is None:
        pytest.skip("no nm here")
    for rolled in (False, True):
        program = function(robot("tree5"), "several", rolled=rolled, backend="interpreter").program
        code = backend.kernel_module(fuse(program), "float64", target).machine_code()
        listed = subprocess.run(["nm", "-u", "-"], input=code, capture_output=True).stdout.decode()
        names = {line.split()[-1] for line in listed.splitlines() if line.strip()}
        assert names <= {"sin", "cos", "memset", "memcpy"}, names


def _assembly_of(ir: str, target: Target) -> str:
    module = llvm.parse_assembly(ir)
    module.triple = target.triple
    return target.machine().emit_assembly(module)


def test_narrowing_keeps_the_bits_of_samples_apart_from_fma():
    """avx2 and avx512 both fuse: a sample is the same to the bit with 4 lanes and with 8."""
    if not (X86 and llvm.get_host_cpu_features().get("avx512f")):
        pytest.skip("needs AVX-512")
    printed = {in_process(show_bits, LINKSWEEP_SIMD=simd) for simd in ("avx2", "avx512", "")}
    assert len(printed) == 1


def show_bits() -> None:
    for dtype in ("float64", "float32"):
        compiled = function(robot("mixed7"), "forward_dynamics", dtype=dtype)
        print(np.asarray(compiled(*samples(compiled, 21, dtype))).tobytes().hex())


def test_the_host_is_what_it_says():
    target = host_target()
    assert target.vector_bytes in (16, 32, 64) and target.lanes("float32") == 2 * target.lanes("float64")
    if "LINKSWEEP_SIMD" not in os.environ and X86:
        features = llvm.get_host_cpu_features()
        assert target.vector_bytes == (64 if features.get("avx512f") else 32 if features.get("avx") else 16)
