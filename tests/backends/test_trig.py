"""Sine and cosine in generated code: accuracy, special values, lanes, targets."""

import ctypes
import math
from collections.abc import Callable
from fractions import Fraction
from functools import cache

import llvmlite.binding as llvm
import mpmath
import numpy as np
import pytest

from linksweep.backends import trig
from linksweep.backends.llvm import LoadedCode

DTYPES: tuple[trig.Dtype, ...] = ("float64", "float32")
BITS = {"float64": 53, "float32": 24}
SSE2 = "-sse3,-ssse3,-sse4.1,-sse4.2,-avx,-avx2,-fma,-avx512f"

llvm.initialize_all_targets()
llvm.initialize_all_asmprinters()


def loop_ir(lanes: int, dtype: trig.Dtype, fma: bool, offset: str = "") -> str:
    """A module with run(x, sin, cos, n) over arrays whose length n is a multiple of lanes; `offset` is added to x."""
    scalar = "double" if dtype == "float64" else "float"
    v = f"<{lanes} x {scalar}>"
    further = f", {v} splat ({scalar} {offset})" if offset else ""
    return f"""{trig.sincos_ir(lanes, dtype, fma, shifted=bool(offset))}
define void @run(ptr %x, ptr %sin, ptr %cos, i64 %n) {{
entry:
  br label %loop
loop:
  %i = phi i64 [0, %entry], [%next, %loop]
  %px = getelementptr {scalar}, ptr %x, i64 %i
  %ps = getelementptr {scalar}, ptr %sin, i64 %i
  %pc = getelementptr {scalar}, ptr %cos, i64 %i
  %v = load {v}, ptr %px, align 4
  %both = call {{ {v}, {v} }} @sincos({v} %v{further})
  %s = extractvalue {{ {v}, {v} }} %both, 0
  %c = extractvalue {{ {v}, {v} }} %both, 1
  store {v} %s, ptr %ps, align 4
  store {v} %c, ptr %pc, align 4
  %next = add i64 %i, {lanes}
  %more = icmp ult i64 %next, %n
  br i1 %more, label %loop, label %done
done:
  ret void
}}
"""


def compiled(ir: str, triple: str, cpu: str, features: str) -> tuple[bytes, str]:
    machine = llvm.Target.from_triple(triple).create_target_machine(
        cpu=cpu, features=features, opt=2, reloc="pic", codemodel="small"
    )
    module = llvm.parse_assembly(ir)
    module.triple, module.data_layout = triple, str(machine.target_data)
    module.verify()
    return machine.emit_object(module), machine.emit_assembly(module)


@cache
def sincos(lanes: int, dtype: trig.Dtype, fma: bool, sse2: bool = False, offset: str = "") -> Callable:
    """x (n,) -> sin (n,), cos (n,) through generated code; sse2 masks off everything newer."""
    if sse2 and not llvm.get_process_triple().startswith("x86_64"):
        pytest.skip("SSE2 is x86-64")
    cpu = "x86-64" if sse2 else llvm.get_host_cpu_name()
    features = SSE2 if sse2 else llvm.get_host_cpu_features().flatten()
    code, _ = compiled(loop_ir(lanes, dtype, fma, offset), llvm.get_process_triple(), cpu, features)
    tracker = LoadedCode(code, ("run",), trig.libm_addresses())
    run = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * 3, ctypes.c_int64)(tracker["run"])

    def call(x, alive=tracker):
        full = np.zeros(-(-len(x) // lanes) * lanes, dtype)
        full[: len(x)] = x
        sin, cos = np.empty_like(full), np.empty_like(full)
        run(full.ctypes.data, sin.ctypes.data, cos.ctypes.data, len(full))
        return sin[: len(x)], cos[: len(x)]

    return call


@cache
def angles(dtype: str) -> np.ndarray:
    """About 20,000 angles up to FAR: neighbours of k pi/2 (3 each side), of k pi/4, random ones."""
    rng = np.random.default_rng(5)
    k = np.unique(np.concatenate([np.arange(1, 300), rng.integers(300, 63662, 1200), [63661]]))
    with mpmath.workprec(100):
        centre = np.array([float(mpmath.pi / 2 * int(i)) for i in k]).astype(dtype)
    sets, below, above = [centre], centre, centre
    for _ in range(3):
        below, above = np.nextafter(below, np.zeros_like(below)), np.nextafter(above, above * 2)
        sets += [-below, above]
    sets.append((np.arange(1.0, 4000.0, 2) * (math.pi / 4)).astype(dtype))
    sets.append(rng.uniform(-4, 4, 4000).astype(dtype))
    sets.append(rng.uniform(-trig.FAR, trig.FAR, 3000).astype(dtype))
    sets.append((10.0 ** rng.uniform(-12, 5, 1500)).astype(dtype))
    sets.append(np.array([trig.FAR, -trig.FAR], dtype))
    return np.concatenate(sets)


@cache
def exact(dtype: str) -> list[tuple[np.ndarray, np.ndarray]]:
    """sin and cos of angles(dtype) by mpmath, each as an unevaluated sum of two doubles."""
    result = []
    with mpmath.workprec(200):
        for function in (mpmath.sin, mpmath.cos):
            values = [function(mpmath.mpf(float(x))) for x in angles(dtype)]
            high = np.array([float(v) for v in values])
            result.append((high, np.array([float(v - h) for v, h in zip(values, high, strict=True)])))
    return result


@pytest.mark.cases(1)
@pytest.mark.parametrize("sse2", [False, True])
@pytest.mark.parametrize("fma", [True, False])
@pytest.mark.parametrize("dtype", DTYPES)
def test_within_two_ulp(dtype, fma, sse2):
    """The bar is 2 ulp; the limits here are a little above what is measured."""
    limit = {"float64": 1.2 if fma else 1.5, "float32": 1.6 if fma else 0.6}[dtype]
    results = sincos(2 if sse2 else 4, dtype, fma, sse2)(angles(dtype))
    for got, (high, low) in zip(results, exact(dtype), strict=True):
        ulp = 2.0 ** (np.frexp(high)[1] - BITS[dtype])
        error = np.abs((got.astype(float) - high) - low) / ulp
        assert error.max() <= limit, f"{error.max()} ulp at {angles(dtype)[error.argmax()]!r}"


@pytest.mark.quick
@pytest.mark.parametrize("sse2", [False, True])
@pytest.mark.parametrize("fma", [True, False])
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("offset", [0.75, -0.015625, 0.5, -5.5])
def test_an_offset_behind_the_reduction(offset, dtype, fma, sse2):
    """Within 1.5 units of the last place of 1 at any size, where x + offset would be off by half a unit of x; a sum of
    up to 8 between (a loop's offset has whole quarters in it) has units four times as large."""
    x = np.concatenate([angles(dtype)[::7], np.array([2e5, -3e6, 1e8, 1e15, -7e15], dtype)])
    shifted = sincos(2 if sse2 else 4, dtype, fma, sse2, str(offset))
    with mpmath.workprec(200):
        for got, function in zip(shifted(x), (mpmath.sin, mpmath.cos), strict=True):
            right = [function(mpmath.mpf(float(angle)) + offset) for angle in x]
            error = np.array([float(abs(mpmath.mpf(float(g)) - r)) for g, r in zip(got, right, strict=True)])
            assert error.max() <= (1.5 if abs(offset) < 1 else 6.0) * 2.0 ** (1 - BITS[dtype])


@pytest.mark.quick
@pytest.mark.parametrize("fma", [True, False])
@pytest.mark.parametrize("dtype", DTYPES)
def test_zeros_and_tiny_values_are_exact(dtype, fma):
    info = np.finfo(dtype)
    tiny = info.smallest_subnormal
    x = np.array([0.0, tiny, 3 * tiny, info.tiny, info.tiny - tiny, info.tiny * 7, info.eps / 1024], dtype)
    x = np.concatenate([x, -x])
    sin, cos = sincos(4, dtype, fma)(x)
    assert sin.tobytes() == x.tobytes()  # the sign of zero included
    assert (cos == 1).all()


@pytest.mark.parametrize("fma", [True, False])
@pytest.mark.parametrize("dtype", DTYPES)
def test_far_lanes_take_libm_and_the_others_do_not_notice(dtype, fma):
    c_type, suffix = (ctypes.c_double, "") if dtype == "float64" else (ctypes.c_float, "f")
    largest, next_to_far = np.finfo(dtype).max, np.nextafter(trig.FAR, np.inf, dtype=dtype)
    far = np.array([next_to_far, -123456.7, 1e15, 1e30, -largest, largest], dtype)
    near = np.linspace(-trig.FAR, trig.FAR, 6 * 16).astype(dtype)
    f = sincos(8, dtype, fma)
    mixed = near.copy()
    mixed[::16] = far
    got, alone = f(mixed), f(near)
    for function, mine, undisturbed in zip(("sin", "cos"), got, alone, strict=True):
        libm = ctypes.CFUNCTYPE(c_type, c_type)(trig.libm_addresses()[function + suffix])
        assert mine[::16].tobytes() == np.array([libm(x) for x in far.tolist()], dtype).tobytes()
        rest = np.arange(len(near)) % 16 != 0
        assert mine[rest].tobytes() == undisturbed[rest].tobytes()


@pytest.mark.quick
@pytest.mark.parametrize("fma", [True, False])
@pytest.mark.parametrize("dtype", DTYPES)
def test_not_finite_gives_nan_in_its_own_lane(dtype, fma):
    x = np.array([1, np.nan, 2, np.inf, 3, 4, -np.inf, 5], dtype)
    for values in sincos(4, dtype, fma)(x):
        assert np.isnan(values).tolist() == (~np.isfinite(x)).tolist()


@pytest.mark.parametrize("fma", [True, False])
@pytest.mark.parametrize("dtype", DTYPES)
def test_bits_do_not_depend_on_lane_number_or_machine(dtype, fma):
    x = np.concatenate([angles(dtype)[::5], np.array([2e5, -1e12], dtype)])
    expected = np.array(sincos(4, dtype, fma)(x))
    for lanes in (1, 2, 3, 8, 16):
        assert np.array(sincos(lanes, dtype, fma)(x)).tobytes() == expected.tobytes()
    order = np.random.default_rng(1).permutation(len(x))
    assert np.array(sincos(4, dtype, fma)(x[order])).tobytes() == expected[:, order].tobytes()
    # With fma=True this one calls the C library's fma.
    assert np.array(sincos(2, dtype, fma, True)(x)).tobytes() == expected.tobytes()


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("lanes", [1, 2, 4, 8, 16])
@pytest.mark.parametrize(
    ("triple", "cpu", "fma"),
    [
        ("aarch64-linux-gnu", "generic", True),
        ("arm64-apple-macosx", "apple-m1", True),
        ("x86_64-linux-gnu", "skylake-avx512", True),
        ("x86_64-linux-gnu", "znver4", True),
        ("x86_64-linux-gnu", "haswell", True),
        ("x86_64-linux-gnu", "x86-64", False),
    ],
)
def test_compiles_for_other_targets(triple, cpu, fma, lanes, dtype):
    code, assembly = compiled(loop_ir(lanes, dtype, fma), triple, cpu, "")
    assert code
    calls = {word.split("@")[0].lstrip("_") for word in assembly.split()}
    assert not calls & {"fma", "fmaf"}
    assert ("vfmadd" in assembly or "fmla" in assembly or "fmadd" in assembly) == fma


@pytest.mark.parametrize(
    ("parts", "exact_terms", "bits"),
    [
        (trig.PI_2_FLOAT64_FMA, [1], 53),
        (trig.PI_2_FLOAT64, [0, 1], 53),
        (trig.PI_2_FLOAT32_FMA, [], 24),
        (trig.PI_2_FLOAT32, [0], 53),
    ],
)
def test_splittings_of_half_pi(parts, exact_terms, bits):
    with mpmath.workprec(400):
        rest = mpmath.pi / 2 - sum(map(mpmath.mpf, parts))
        assert abs(rest) <= abs(parts[-1]) * 2.0**-bits
    for part in parts:  # representable in the lanes' precision
        assert part > 0
        assert Fraction(part).numerator.bit_length() <= bits
    for i in exact_terms:  # times k < 2^16 it stays so
        assert Fraction(parts[i]).numerator.bit_length() + 16 <= bits


def remez_error(f, weight, high, terms: int):
    """Largest weighted error of the best polynomial with this many terms on (0, high]."""
    nodes = [high * (1 - mpmath.cos(mpmath.pi * (2 * i + 1) / (2 * terms + 2))) / 2 for i in range(terms + 1)]
    grid = [high * (1 - mpmath.cos(mpmath.pi * i / 200)) / 2 for i in range(1, 201)]
    levelled = mpmath.mpf(0)
    for _ in range(4):
        rows = [[weight(z) * z**j for j in range(terms)] + [(-1) ** i] for i, z in enumerate(nodes)]
        solution = mpmath.lu_solve(mpmath.matrix(rows), mpmath.matrix([weight(z) * f(z) for z in nodes]))
        levelled = abs(solution[terms])
        coefficients = list(solution)[:terms][::-1]
        errors = [weight(z) * (f(z) - mpmath.polyval(coefficients, z)) for z in grid]
        peaks: list[int] = []  # the largest error of each run of one sign
        for i, error in enumerate(errors):
            if not peaks or error * errors[peaks[-1]] < 0:
                peaks.append(i)
            elif abs(error) > abs(errors[peaks[-1]]):
                peaks[-1] = i
        if len(peaks) != terms + 1:
            break
        nodes = [grid[i] for i in peaks]
    return levelled


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("function", ["sin", "cos"])
def test_coefficients_are_near_minimax(function, dtype):
    coefficients = getattr(trig, f"{function.upper()}_{dtype.upper()}")
    with mpmath.workprec(200):
        # float32's k is off by up to 4e-8 of 63662, so |r| goes a little beyond pi/4.
        high = (mpmath.pi / 4 + (1e-8 if dtype == "float64" else 0.0041)) ** 2

        def target(z):
            r = mpmath.sqrt(z)
            return (r - mpmath.sin(r)) / r**3 if function == "sin" else ((1 - mpmath.cos(r)) / z - 0.5) / z

        def relative(z):
            r = mpmath.sqrt(z)
            return r**3 / mpmath.sin(r) if function == "sin" else z * z / mpmath.cos(r)

        grid = [high * i / 500 for i in range(1, 501)]
        error = max(abs(relative(z) * (target(z) - mpmath.polyval(coefficients[::-1], z))) for z in grid)
        assert error <= 1.15 * remez_error(target, relative, high, len(coefficients))
        assert error <= 0.08 * 2.0 ** -BITS[dtype]


def test_literals_are_exact_and_declarations_separable():
    text = trig.sincos_ir(4, "float32", True, name="sincos_v4f32", declare=False)
    assert "declare" not in text
    assert "@sincos_v4f32(<4 x float> %x)" in text
    merged = "\n".join(trig.sincos_declarations(4, "float32", True)) + "\n" + text
    llvm.parse_assembly(merged).verify()
    for value in (*trig.SIN_FLOAT32, *trig.COS_FLOAT32, *trig.PI_2_FLOAT32_FMA):
        assert float(np.float32(value)) == value
