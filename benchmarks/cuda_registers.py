"""Compile CUDA kernels without a GPU and print their registers and spilled bytes.

    pip install nvidia-cuda-nvrtc nvidia-cuda-nvcc
    python benchmarks/cuda_registers.py

NVRTC compiles the source to PTX, and ptxas assembles it. Both come from PyPI. No kernel is run.
"""

from __future__ import annotations

import ctypes
import importlib.util
import re
import subprocess
import tempfile
from pathlib import Path

from measure import example, load_quietly

ARCHITECTURES = ("sm_80", "sm_90")


def package_file(pattern: str) -> Path:
    """Return a file of NVIDIA's packages, such as libnvrtc.so.13."""
    spec = importlib.util.find_spec("nvidia")
    for folder in (spec.submodule_search_locations or ()) if spec is not None else ():
        for path in sorted(Path(folder).rglob(pattern)):
            return path
    raise FileNotFoundError(f"no {pattern} here: pip install nvidia-cuda-nvrtc nvidia-cuda-nvcc")


def ptx_of(source: str, architecture: str) -> str:
    """Compile CUDA C to PTX by NVRTC."""
    nvrtc = ctypes.CDLL(str(package_file("libnvrtc.so.*")))
    program, size = ctypes.c_void_p(), ctypes.c_size_t()

    def check(code: int) -> None:
        if code:
            nvrtc.nvrtcGetProgramLogSize(program, ctypes.byref(size))
            log = ctypes.create_string_buffer(size.value)
            nvrtc.nvrtcGetProgramLog(program, log)
            raise RuntimeError(f"NVRTC failed with code {code}: {log.value.decode()}")

    check(nvrtc.nvrtcCreateProgram(ctypes.byref(program), source.encode(), b"kernel.cu", 0, None, None))
    options = (ctypes.c_char_p * 1)(f"--gpu-architecture=compute_{architecture.removeprefix('sm_')}".encode())
    check(nvrtc.nvrtcCompileProgram(program, 1, options))
    check(nvrtc.nvrtcGetPTXSize(program, ctypes.byref(size)))
    ptx = ctypes.create_string_buffer(size.value)
    check(nvrtc.nvrtcGetPTX(program, ptx))
    nvrtc.nvrtcDestroyProgram(ctypes.byref(program))
    return ptx.value.decode()


def registers_and_spills(source: str, architecture: str) -> tuple[int, int]:
    """Return the registers of a thread and the bytes that it spills, as ptxas reports them."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "kernel.ptx"
        path.write_text(ptx_of(source, architecture))
        command = [str(package_file("ptxas")), "-v", f"-arch={architecture}", str(path), "-o", f"{folder}/kernel.cubin"]
        log = subprocess.run(command, capture_output=True, text=True, check=True).stderr
    registers, spills = re.search(r"Used (\d+) registers", log), re.search(r"(\d+) bytes spill stores", log)
    assert registers and spills, log
    return int(registers[1]), int(spills[1])


def main() -> None:
    files = {"UR5": "ur5_robot.urdf", "Panda": "panda.urdf", "Talos": "talos_reduced.urdf"}
    robots = {name: load_quietly(example(file)) for name, file in files.items()}
    print(f"{'robot':10} {'function':18} {'type':7} {'form':9}", *(f"{a:>14}" for a in ARCHITECTURES))
    for name, robot in robots.items():
        for function in ("inverse_dynamics", "forward_dynamics", "mass_matrix"):
            for dtype in ("float", "double"):
                source = robot.compile(function).source("cuda", "kernel", dtype)
                form = "loops" if "for (int link" in source else "unrolled"
                table = (registers_and_spills(source, architecture) for architecture in ARCHITECTURES)
                print(f"{name:10} {function:18} {dtype:7} {form:9}", *(f"{r:5} / {s:6}" for r, s in table))


if __name__ == "__main__":
    main()
