"""Sine and cosine as LLVM IR: both for a vector of angles, in one branch-free evaluation.

    k = round(x 2/pi),   r - low = x - k pi/2,   |r| <= pi/4 (a little more),   quadrant = k mod 4

An offset is added after the reduction, r - low = (x - k pi/2) + offset with k = round((x + offset) 2/pi), because
x + offset would round the offset to the last place of a large x.

Two polynomials in z = r^2 give sin r and cos r; the quadrant swaps them and sets their signs. At most 2 ulp
(measured: 1.2 in float64, 1.4 without fma, 1.6 in float32) for |x| <= FAR, next to multiples of pi/2 too;
subnormals and signed zeros are exact. Lanes beyond FAR, infinities and NaN take libm's result, in a cold
function, lane by lane. Every lane runs the same operations for any number of lanes, and no fast-math flag
is set, so that a result does not depend on other lanes.
"""

import ctypes
import struct
from collections.abc import Sequence
from functools import cache

from linksweep.errors import BackendError

from .target import symbol_addresses

Dtype = str  # "float64" or "float32"

FAR = 1e5  # |k| <= 63662 < 2^16 up to here, which the splittings of pi/2 below rely on

_hex = float.fromhex

# Splittings pi/2 = C1 + C2 + C3; the rest is below an ulp of the last part. All parts are positive: with k =
# +0, x = -0 then stays -0 in every step below.
#
# float64 with fma. C1 has all 53 bits, so it is a multiple of 2^-52. Where k != 0, |x| > 1/2, so x - k C1 is
# a multiple of 2^-53 and below 1: fma(-k, C1, x) is exact. C2 has 36 bits, so k C2 is a double, and x - k C1
# is a multiple of its ulp. Then r = fl((x - k C1) - k C2) and its rounding error k C2 + (r - (x - k C1)) both
# come out exactly (Dekker's fast two-sum). That error and k C3 are carried on as `low`: near a multiple of
# pi/2, r is short and `low` holds the remaining digits.
PI_2_FLOAT64_FMA = tuple(map(_hex, ("0x1.921fb54442d18p+0", "0x1.1a62633140000p-54", "0x1.701b839a25205p-92")))
# float64 without fma. C1 and C2 have 36 bits: k C1 and k C2 are exact as plain products, the rest is as
# above.
PI_2_FLOAT64 = tuple(map(_hex, ("0x1.921fb54440000p+0", "0x1.68c234c4c0000p-39", "0x1.98a2e03707345p-77")))
# float32 with fma. C1 has 24 bits, x - k C1 is exact as above. r = fl((x - k C1) - k C2) has one rounding,
# and none where it cancels below 2^-23, since C2 is a multiple of 2^-47. low = k C3.
PI_2_FLOAT32_FMA = tuple(map(_hex, ("0x1.921fb4p+0", "0x1.4442d0p-24", "0x1.84698ap-48")))
# float32 without fma is computed in float64 lanes: k C1 and x - k C1 are exact, k C2 is off by 2^-76 at most,
# far below the smallest |r| (2^-28, at k = 161) of any float32 up to FAR.
PI_2_FLOAT32 = tuple(map(_hex, ("0x1.921fb54440000p+0", "0x1.68c234c4c6629p-39")))

# Near-minimax coefficients, lowest power first (Remez exchange in mpmath; coefficients rounded one after the
# other from the lowest power, the rest fitted anew each time). tests/backends/test_trig.py computes the optimum and
# compares.
#     sin r = r - z r S(z),   cos r = 1 - z (1/2 + z C(z)),   z = r^2
# Relative errors: 3.8e-18 and 5.7e-20 (float64), 4.2e-9 and 1.3e-10 (float32).
SIN_FLOAT64 = (
    0.1666666666666663,
    -0.00833333333332184,
    0.00019841269829358522,
    -2.7557313538511096e-06,
    2.50507343886477e-08,
    -1.5895433249209559e-10,
)
COS_FLOAT64 = (
    -0.041666666666666595,
    0.0013888888888873342,
    -2.48015872890021e-05,
    2.75573142170547e-07,
    -2.0875705399856273e-09,
    1.135874953278121e-11,
)
SIN_FLOAT32 = (0.16666653752326965, -0.008332106284797192, 0.00019507895922288299)
COS_FLOAT32 = (-0.04166664555668831, 0.0013887305976822972, -2.4431650672340766e-05)

TWO_OVER_PI = {"double": 0.6366197723675814, "float": _hex("0x1.45f306p-1")}
# Adding 1.5 2^52 (2^23) rounds to an integer, whose two's complement then stands in the low bits.
ROUNDER = {"double": 1.5 * 2.0**52, "float": 1.5 * 2.0**23}


class _Lines:
    """Straight-line IR over vectors of one floating type; methods emit operations and return their values."""

    def __init__(self, lanes: int, scalar: str, fma: bool):
        self.lanes, self.scalar, self.has_fma = lanes, scalar, fma
        self.bits = 64 if scalar == "double" else 32
        self.real, self.integer = f"<{lanes} x {scalar}>", f"<{lanes} x i{self.bits}>"
        self.text: list[str] = []

    def emit(self, operation: str) -> str:
        self.text.append(f"  %v{len(self.text)} = {operation}")
        return f"%v{len(self.text) - 1}"

    def _splat(self, scalar: str, value: str) -> str:
        return "<" + ", ".join([f"{scalar} {value}"] * self.lanes) + ">"

    def constant(self, value: float) -> str:
        # LLVM writes float constants, too, as the bits of the equal double.
        return self._splat(self.scalar, f"0x{struct.unpack('<Q', struct.pack('<d', value))[0]:016X}")

    def whole(self, value: int) -> str:
        return self._splat(f"i{self.bits}", str(value))

    def real_op(self, op: str, a: str, b: str) -> str:
        return self.emit(f"{op} {self.real} {a}, {b}")

    def int_op(self, op: str, a: str, b: str) -> str:
        return self.emit(f"{op} {self.integer} {a}, {b}")

    def to_bits(self, a: str) -> str:
        return self.emit(f"bitcast {self.real} {a} to {self.integer}")

    def mul_add(self, a: str, b: str, c: str) -> str:
        """a b + c, rounded once with fma, twice without."""
        if not self.has_fma:
            return self.real_op("fadd", self.real_op("fmul", a, b), c)
        r = self.real
        return self.emit(f"call {r} @llvm.fma.v{self.lanes}f{self.bits}({r} {a}, {r} {b}, {r} {c})")

    def sub_mul(self, a: str, b: str, c: str) -> str:
        """c - a b."""
        if not self.has_fma:
            return self.real_op("fsub", c, self.real_op("fmul", a, b))
        return self.mul_add(self.emit(f"fneg {self.real} {a}"), b, c)

    def polynomial(self, z: str, coefficients: Sequence[float]) -> str:
        value = self.constant(coefficients[-1])
        for c in reversed(coefficients[:-1]):
            value = self.mul_add(z, value, self.constant(c))
        return value

    def round_quarters(self, x: str) -> tuple[str, str]:
        """k = round(x 2/pi) as a real, and integer lanes whose two low bits are k mod 4."""
        rounder = self.constant(ROUNDER[self.scalar])
        shifted = self.mul_add(x, self.constant(TWO_OVER_PI[self.scalar]), rounder)
        return self.real_op("fsub", shifted, rounder), self.to_bits(shifted)

    def cosine(self, z: str, coefficients: Sequence[float]) -> str:
        return self.sub_mul(z, self.polynomial(z, (0.5, *coefficients)), self.constant(1.0))

    def by_quadrant(self, quadrant: str, sin: str, cos: str) -> tuple[str, str]:
        """sin and cos of the angle, from those of the reduced angle."""
        odd = self.int_op("shl", quadrant, self.whole(self.bits - 1))  # the sign bit says: swap
        swap = self.emit(f"icmp slt {self.integer} {odd}, zeroinitializer")
        half = self.int_op("shl", quadrant, self.whole(self.bits - 2))
        sin_sign = self.int_op("and", half, self.whole(-(1 << (self.bits - 1))))
        cos_sign = self.int_op("xor", sin_sign, odd)
        mask, real = f"<{self.lanes} x i1>", self.real

        def signed(even: str, odd: str, sign: str) -> str:
            value = self.emit(f"select {mask} {swap}, {real} {odd}, {real} {even}")
            flipped = self.int_op("xor", self.to_bits(value), sign)
            return self.emit(f"bitcast {self.integer} {flipped} to {real}")

        return signed(sin, cos, sin_sign), signed(cos, sin, cos_sign)


def _near(lines: _Lines, x: str, offset: str) -> tuple[str, str]:
    """sin and cos of x (plus an offset, if there is one), |x| <= FAR, in the lanes' own precision."""
    double = lines.scalar == "double"
    pi_2 = PI_2_FLOAT32_FMA if not double else PI_2_FLOAT64_FMA if lines.has_fma else PI_2_FLOAT64
    c1, c2, c3 = map(lines.constant, pi_2)
    k, quadrant = lines.round_quarters(lines.real_op("fadd", x, offset) if offset else x)
    first = lines.sub_mul(k, c1, x)
    r = lines.sub_mul(k, c2, first)
    if offset:  # the sum is rounded to the last place of 1 anyhow: what `low` would hold is less
        r, low = lines.real_op("fadd", r, offset), lines.constant(0.0)
    elif double:
        low = lines.mul_add(k, c3, lines.mul_add(k, c2, lines.real_op("fsub", r, first)))
    else:
        low = lines.real_op("fmul", k, c3)
    z = lines.real_op("fmul", r, r)
    # r - (z r S + low), with low = +0 for k = 0, is -0 for r = -0; r + (...) would be +0.
    s = lines.polynomial(z, SIN_FLOAT64 if double else SIN_FLOAT32)
    sin = lines.real_op("fsub", r, lines.mul_add(lines.real_op("fmul", z, r), s, low))
    cos = lines.cosine(z, COS_FLOAT64 if double else COS_FLOAT32)
    return lines.by_quadrant(quadrant, sin, cos)


def _near_widened(lines: _Lines, x: str, offset: str) -> tuple[str, str]:
    """sin and cos of float32 lanes x (plus an offset) through float64 lanes, on which `lines` works."""
    narrow = f"<{lines.lanes} x float>"
    x = lines.emit(f"fpext {narrow} {x} to {lines.real}")
    if offset:  # exact enough here: the sum of two float32 has 53 bits to round to
        x = lines.real_op("fadd", x, lines.emit(f"fpext {narrow} {offset} to {lines.real}"))
    c1, c2 = map(lines.constant, PI_2_FLOAT32)
    k, quadrant = lines.round_quarters(x)
    r = lines.sub_mul(k, c2, lines.sub_mul(k, c1, x))
    z = lines.real_op("fmul", r, r)
    # r (1 - z S) keeps the sign of zero; its further rounding is far below float32's.
    s = lines.sub_mul(z, lines.polynomial(z, SIN_FLOAT32), lines.constant(1.0))
    sin, cos = lines.by_quadrant(quadrant, lines.real_op("fmul", r, s), lines.cosine(z, COS_FLOAT32))
    sin = lines.emit(f"fptrunc {lines.real} {sin} to {narrow}")
    return sin, lines.emit(f"fptrunc {lines.real} {cos} to {narrow}")


def _types(lanes: int, dtype: Dtype) -> tuple[str, str, str]:
    """Scalar type, its vector, and the vector's name in intrinsics: double, <4 x double>, v4f64."""
    scalar, bits = ("double", 64) if dtype == "float64" else ("float", 32)
    return scalar, f"<{lanes} x {scalar}>", f"v{lanes}f{bits}"


def _far(name: str, lanes: int, dtype: Dtype, shifted: bool) -> str:
    """Return the cold function: lanes in the mask take libm's sine and cosine, the others keep their values."""
    scalar, real, _ = _types(lanes, dtype)
    suffix, mask = "" if dtype == "float64" else "f", f"<{lanes} x i1>"
    pair, given = f"{{ {real}, {real} }}", f"{real} %x, {real} %sin, {real} %cos, {mask} %far"
    lines, last = [], {"sin": "poison", "cos": "poison"}

    def both(vector: str, i: int, of: str) -> None:
        lines.append(f"  %{of}{i} = extractelement {real} {vector}, i32 {i}")
        for f in ("sin", "cos"):
            lines.append(f"  %{f}_{of}{i} = call {scalar} @{f}{suffix}({scalar} %{of}{i})")

    for i in range(lanes):
        both("%x", i, "x")
        results = {"sin": f"%sin_x{i}", "cos": f"%cos_x{i}"}
        if shifted:  # sin(x + o) = sin x cos o + cos x sin o, cos(x + o) = cos x cos o - sin x sin o
            both("%offset", i, "o")
            for f, other, op in (("sin", "cos", "fadd"), ("cos", "sin", "fsub")):
                lines.append(f"  %one_{f}{i} = fmul {scalar} %{f}_x{i}, %cos_o{i}")
                lines.append(f"  %two_{f}{i} = fmul {scalar} %{other}_x{i}, %sin_o{i}")
                lines.append(f"  %{f}{i} = {op} {scalar} %one_{f}{i}, %two_{f}{i}")
                results[f] = f"%{f}{i}"
        for f, value in results.items():
            lines.append(f"  %all_{f}{i} = insertelement {real} {last[f]}, {scalar} {value}, i32 {i}")
            last[f] = f"%all_{f}{i}"
    body = "\n".join(lines)
    return f"""\
define internal {pair} @{name}_far({given}{f", {real} %offset" * shifted}) cold noinline nounwind {{
{body}
  %s = select {mask} %far, {real} {last["sin"]}, {real} %sin
  %c = select {mask} %far, {real} {last["cos"]}, {real} %cos
  %r0 = insertvalue {pair} poison, {real} %s, 0
  %r1 = insertvalue {pair} %r0, {real} %c, 1
  ret {pair} %r1
}}
"""


def sincos_declarations(lanes: int, dtype: Dtype, fma: bool) -> tuple[str, ...]:
    """Return the declarations that `sincos_ir` needs, one line each, for modules that have other declarations."""
    scalar, real, suffix = _types(lanes, dtype)
    tail = "" if dtype == "float64" else "f"
    lines = [
        f"declare {scalar} @sin{tail}({scalar})",
        f"declare {scalar} @cos{tail}({scalar})",
        f"declare {real} @llvm.fabs.{suffix}({real})",
        f"declare i1 @llvm.vector.reduce.or.v{lanes}i1(<{lanes} x i1>)",
    ]
    return (*lines, f"declare {real} @llvm.fma.{suffix}({real}, {real}, {real})") if fma else tuple(lines)


def sincos_ir(
    lanes: int, dtype: Dtype, fma: bool, *, name: str = "sincos", declare: bool = True, shifted: bool = False
) -> str:
    """Return the IR of `{ <W x T>, <W x T> } @name(<W x T>)`, sine and cosine of each lane, in radians.

    `fma` says whether the target has fused multiply-adds; without them results differ in the last place. `shifted`: a
    second argument is the offset that is added to the reduced angle. `declare=False` leaves out
    `sincos_declarations`. The JIT resolves what remains through `libm_addresses`.
    """
    scalar, real, suffix = _types(lanes, dtype)
    widened = dtype == "float32" and not fma
    lines = _Lines(lanes, "double" if widened else scalar, fma)
    sin, cos = (_near_widened if widened else _near)(lines, "%x", "%offset" if shifted else "")
    body, mask, pair = "\n".join(lines.text), f"<{lanes} x i1>", f"{{ {real}, {real} }}"
    limit = _Lines(lanes, scalar, fma).constant(FAR)
    declarations = "\n".join(sincos_declarations(lanes, dtype, fma)) + "\n\n" if declare else ""
    further = f", {real} %offset" * shifted
    # `ugt` holds for NaN as well. The call of a cold function tells the code generator which way is rare.
    return f"""\
{declarations}{_far(name, lanes, dtype, shifted)}
define internal {pair} @{name}({real} %x{further}) nounwind {{
{body}
  %size = call {real} @llvm.fabs.{suffix}({real} %x)
  %far = fcmp ugt {real} %size, {limit}
  %any = call i1 @llvm.vector.reduce.or.v{lanes}i1({mask} %far)
  br i1 %any, label %some_far, label %all_near
some_far:
  %libm = tail call {pair} @{name}_far({real} %x, {real} {sin}, {real} {cos}, {mask} %far{further})
  ret {pair} %libm
all_near:
  %r0 = insertvalue {pair} poison, {real} {sin}, 0
  %r1 = insertvalue {pair} %r0, {real} {cos}, 1
  ret {pair} %r1
}}
"""


@cache
def libm_addresses() -> dict[str, int]:
    """Return the addresses of the C functions that generated code may call, by symbol name.

    fma and fmaf are called where `llvm.fma` meets a target without the instruction.
    """
    names = ("sin", "cos", "sinf", "cosf", "fma", "fmaf")
    # The running process (None) has them where libm is linked in or part of libc: Python's math module needs
    # it. `ctypes.util.find_library` would start a subprocess.
    for library in (None, "libm.so.6", "libm.so", "libSystem.dylib", "ucrtbase"):
        try:
            return symbol_addresses(ctypes.CDLL(library), names)
        except (OSError, AttributeError, TypeError):  # TypeError: None on Windows
            continue
    raise BackendError(
        "generated code needs sin, cos and fma of the C library, which was not found (libm.so.6 or similar): set "
        "LINKSWEEP_BACKEND=interpreter."
    )
