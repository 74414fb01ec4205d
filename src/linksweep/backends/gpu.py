"""OpenCL and CUDA: kernels with one thread per sample, over arrays on the device.

Element k of sample i is at index k * count + i (structure of arrays), so that neighbouring threads read neighbouring
addresses. Inputs that a batch shares, such as gains, are plain arrays. Work items beyond `count` return at once.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from ..tracing.program import Program
from .c import KEYWORDS, LIBRARY, CDialect
from .printer import GLUE, Interface

_WORDS = """
    kernel global local constant private read_only write_only read_write half uchar ushort uint ulong size_t ptrdiff_t
    sampler_t image2d_t image3d_t event_t pipe vec_step get_global_id get_global_size get_local_id get_group_id barrier
    blockIdx blockDim threadIdx gridDim warpSize dim3 half2 float2 float3 float4 double2 double3 double4 int2 int4
    sincos sincosf rsqrt mad dot cross length normalize clamp mix step sign select count sample
"""


class _Gpu(CDialect):
    """What both languages share."""

    reserved = KEYWORDS | LIBRARY | frozenset(_WORDS.split())
    reserved_pattern = re.compile(rf"{CDialect.reserved_pattern.pattern}|CL[KA-Z_]\w*|__\w+")
    opening: tuple[str, ...]  # lines before the kernel
    device_function: str  # words before a function that a kernel calls
    kernel: str  # words before the name of a kernel
    pointer: str  # an argument: {} for its type
    constant: str  # words before the type of a table
    thread: str  # the index of the thread
    rolled_above = 2000  # longer straight-line code spills registers: benchmarks/cuda_registers.py
    calling = (
        "One thread computes one sample: element k of sample i is at index k * count + i of an array. Results must not "
        "overlap inputs."
    )

    def source(self, program: Program, interface: Interface) -> str:
        function, dtype = self.function(program, interface), interface.dtype
        inputs = [f"{self.pointer.format(f'const {dtype}')}{name}" for name in function.inputs]
        outputs = [f"{self.pointer.format(dtype)}{name}" for name in function.outputs]
        arguments = ", ".join(text.replace(" ", GLUE) for text in ("const int count", *inputs, *outputs))
        shift = self.shift_function(function.shift, dtype, self.device_function) if function.shift else []
        lines = [
            *self.heading(interface.about),
            *(line for line in self.opening if dtype == "double" or "fp64" not in line),
            *shift,
            *(line.removeprefix(self.indent) for line in function.tables),
            *self.wrapped(f"{self.kernel}{interface.name}({arguments})", ""),
            "{",
            f"{self.indent}const int sample = {self.thread};",
            f"{self.indent}if (sample >= count)",
            f"{self.indent * 2}return;",
            *function.workspace,
            *function.lines,
            "}",
        ]
        return "\n".join(lines) + "\n"

    def argument(self, array: str, index: str | int, shared: bool) -> str:
        if shared:
            return self.element(array, index)
        text = str(index)
        if text.isdigit():
            return f"{array}[{f'{text} * count + ' * (text != '0')}sample]"
        return f"{array}[({text}) * count + sample]"

    def table(self, name: str, values: Sequence[str], dtype: str) -> str:
        return f"{self.constant} {dtype} {name}[{len(values)}] = {{ {', '.join(values)} }};"

    def clear(self, array: str, size: int, dtype: str) -> Iterator[str]:
        yield f"{self.indent}for (int i = 0; i < {size}; ++i)"
        yield f"{self.indent * 2}{self.argument(array, 'i', False)} = {self.literal(0.0, dtype)};"


class _OpenCL(_Gpu):
    language = "opencl"
    suffix = ".cl"
    opening = ("#pragma OPENCL EXTENSION cl_khr_fp64 : enable", "")
    device_function, kernel, thread = "", "__kernel void ", "(int)get_global_id(0)"
    pointer, constant = "__global {} *restrict ", "__constant"

    def call(self, function: str, arguments: Sequence[str], dtype: str) -> str:
        return f"{function}({', '.join(arguments)})"  # overloaded for float and double


class _Cuda(_Gpu):
    language = "cuda"
    suffix = ".cu"
    opening = ()
    device_function, kernel = "__device__ ", 'extern "C" __global__ void '
    thread = "(int)(blockIdx.x * blockDim.x + threadIdx.x)"
    pointer, constant = "{} *__restrict__ ", "__device__ const"


OPENCL, CUDA = _OpenCL(), _Cuda()
