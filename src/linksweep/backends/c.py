"""C99: one function of plain arrays, no dependency but math.h, no globals, no allocation.

A Program with loops becomes loops over static const tables; values that links keep are in arrays on the stack. The
second half wraps such functions for CasADi.
"""

from __future__ import annotations

import itertools
import re
import struct
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

from ..errors import ArgumentError, BackendError
from ..support.messages import shown
from ..tracing.expression import LARGE
from ..tracing.program import Program
from .printer import GLUE, Dialect, Interface

_WORDS = """
    auto break case char const continue default do double else enum extern float for goto if inline int long
    register restrict return short signed sizeof static struct switch typedef union unsigned void volatile while
    _Bool _Complex _Imaginary asm typeof true false bool class delete new operator private protected public template
    this throw try catch virtual using namespace friend explicit export mutable and or not xor main NULL
    alignas alignof and_eq bitand bitor char8_t char16_t char32_t compl concept const_cast consteval constexpr constinit
    co_await co_return co_yield decltype dynamic_cast noexcept not_eq nullptr or_eq reinterpret_cast requires
    static_assert static_cast thread_local typeid typename typeof_unqual wchar_t xor_eq
    sin cos sqrt fma sinf cosf sqrtf fmaf own parent link first
"""
KEYWORDS = frozenset(_WORDS.split())
# names of the standard library: compilers have built-in versions and reject another function of that name
_LIBRARY = """
    abort abs atan atan2 atexit atof atoi atol atoll bsearch calloc clearerr clock ctime difftime div exit fclose feof
    ferror fflush fgetc fgets fopen fprintf fputc fputs fread free freopen fscanf fseek ftell fwrite getc getchar getenv
    gets gmtime isalnum isalpha isblank iscntrl isdigit isgraph islower isprint ispunct isspace isupper isxdigit labs
    ldiv llabs lldiv localtime longjmp malloc mblen memchr memcmp memcpy memmove memset mktime perror printf putc
    putchar puts qsort raise rand realloc remove rename rewind scanf setbuf setjmp setvbuf signal snprintf sprintf
    srand sscanf strcat strchr strcmp strcoll strcpy strcspn strerror strftime strlen strncat strncmp strncpy strpbrk
    strrchr strspn strstr strtod strtof strtok strtol strtold strtoll strtoul strtoull strxfrm system time tmpfile
    tmpnam tolower toupper ungetc va_arg va_copy va_end va_start vfprintf vfscanf vprintf vscanf vsnprintf vsprintf
    vsscanf aligned_alloc alloca bcmp bcopy bzero dcgettext dgettext execl execle execlp execv execve execvp
    feclearexcept fegetenv fegetexceptflag fegetround feholdexcept feraiseexcept fesetenv fesetexceptflag fesetround
    fetestexcept feupdateenv ffs ffsimax ffsl ffsll fork fpclassify fprintf_unlocked fputc_unlocked fputs_unlocked
    fwrite_unlocked gamma_r gammaf_r gammal_r gettext imaxabs index isascii iscanonical iseqsig isfinite isgreater
    isgreaterequal isless islessequal islessgreater isnormal issignaling issubnormal isunordered iswalnum iswalpha
    iswblank iswcntrl iswdigit iswgraph iswlower iswprint iswpunct iswspace iswupper iswxdigit iszero lgamma_r
    lgammaf_r lgammal_r math_errhandling mempcpy posix_memalign printf_unlocked putc_unlocked putchar_unlocked
    puts_unlocked rindex signgam stpcpy stpncpy strcasecmp strdup strfmon strncasecmp strndup strnlen toascii towlower
    towupper
"""
_MATH = """
    acos acosh asin asinh atan atan2 atanh cbrt ceil copysign cos cosh erf erfc exp exp2 expm1 fabs fdim floor fma fmax
    fmin fmod frexp hypot ilogb ldexp lgamma llrint llround log log10 log1p log2 logb lrint lround modf nan nearbyint
    nextafter nexttoward pow remainder remquo rint round scalbln scalbn sin sinh sqrt tan tanh tgamma trunc
    cabs cacos cacosh carg casin casinh catan catanh ccos ccosh cexp cimag clog clog10 conj cpow cproj creal csin csinh
    csqrt ctan ctanh drem exp10 finite gamma isinf isnan j0 j1 jn pow10 roundeven scalb signbit significand sincos y0 y1
    yn
"""
_KINDS = ("", "f", "l", "f16", "f32", "f64", "f128", "f32x", "f64x", "d32", "d64", "d128")
LIBRARY = frozenset(_LIBRARY.split()) | {name + kind for name in _MATH.split() for kind in _KINDS}
# macros of math.h and of compilers: they are replaced wherever they occur
MACRO = re.compile(
    r"M_[A-Z0-9_]+(l|f\d*x?)?|FP_[A-Z0-9_]+|HUGE_VAL\w*|S?NAN([FL]\w*)?|INFINITY|MAXFLOAT|MATH_ERR\w+|NULL|EXIT_\w+"
    r"|RAND_MAX|MB_CUR_MAX|(BIG|LITTLE|PDP)_ENDIAN|BYTE_ORDER|linux|unix|i386|sun|vax"
)


class CDialect(Dialect):
    """C99, and what languages with its syntax share with it."""

    language = "c"
    suffix = ".c"
    reserved = KEYWORDS
    reserved_pattern = MACRO

    def source(self, program: Program, interface: Interface) -> str:
        return c_source(program, interface, f"{interface.name}.h")

    def literal(self, value: float, dtype: str) -> str:
        """Return the shortest decimal that reads back as the same number of this type."""
        text, suffix = (repr(float(value)), "") if dtype == "double" else (_short(float(value)), "f")
        return f"{text if re.search(r'[.e]', text) else f'{text}.0'}{suffix}"

    def call(self, function: str, arguments: Sequence[str], dtype: str) -> str:
        return f"{function}{'f' * (dtype == 'float')}({', '.join(arguments)})"

    def shift_function(self, name: str, dtype: str, words: str = "static ") -> list[str]:
        """Return the function that adds an offset to an angle; `words` come before its type."""
        sine, cosine, size = (self.call(function, ["angle"], dtype) for function in ("sin", "cos", "fabs"))
        return [
            *self.comment("a large angle is reduced to a turn: its last place would round the offset away"),
            *self.wrapped(f"{words}{dtype} {name}({dtype} angle, {dtype} offset)", ""),
            "{",
            f"{self.indent}if ({size} > {self.literal(LARGE, dtype)})",
            f"{self.indent * 2}angle = {self.call('atan2', [sine, cosine], dtype)};",
            f"{self.indent}return angle + offset;",
            "}",
            "",
        ]


C = CDialect()


def _short(value: float) -> str:
    try:
        (single,) = struct.unpack("<f", struct.pack("<f", value))
    except OverflowError:
        raise BackendError(
            f"{value!r} in the robot's description does not fit into float: export with dtype='double'."
        ) from None
    for digits in range(1, 9):
        text = f"{single:.{digits}g}"
        if struct.unpack("<f", struct.pack("<f", float(text)))[0] == single:
            return text
    return f"{single:.9g}"


def checked_name(name: object) -> str:
    """Return the name of a function that a user chose, after checking it."""
    if not isinstance(name, str) or not re.fullmatch(r"[A-Za-z][0-9A-Za-z_]*", name):
        raise ArgumentError(
            f"the name of the C function is {shown(name)}, expected a C identifier such as puma_torques: letters, "
            f"digits and underscores, a letter first."
        )
    if name in KEYWORDS | LIBRARY or MACRO.fullmatch(name):
        raise ArgumentError(
            f"the name of the C function is {name!r}, which C or its library has already, expected a name such as "
            f"puma_torques."
        )
    if len(name) > C.longest_name:
        raise ArgumentError(
            f"the name of the C function has {len(name)} characters, expected at most {C.longest_name}, which every "
            f"compiler tells apart."
        )
    return name


def c_header(program: Program, interface: Interface) -> str:
    """Return the header file."""
    guard = f"LINKSWEEP_{interface.name}_H"  # as it is written: names may differ by case alone
    lines = [
        *C.heading(interface.about), f"#ifndef {guard}", f"#define {guard}", "", "#ifdef __cplusplus", 'extern "C" {',
        "#endif", "", *C.wrapped(f"{_prototype(program, interface, '')};", ""),
        *_constants_declared(program, interface), "", "#ifdef __cplusplus", "}", "#endif", "", f"#endif /* {guard} */",
    ]  # fmt: skip
    return "\n".join(lines) + "\n"


def c_source(program: Program, interface: Interface, header: str) -> str:
    """Return the source file; `header` is the name of the header file, which was checked (see `export_c`)."""
    function = c_function(program, interface)
    math = ["#include <math.h>", ""] if re.search(r"\b(sin|cos|sqrt|fma)f?\(", function) else []
    lines = [
        *C.heading(interface.about), f'#include "{header}"', "", *math, function, "",
        *_constants_defined(program, interface),
    ]  # fmt: skip
    return "\n".join(lines)


def c_function(program: Program, interface: Interface, static: bool = False) -> str:
    """Return the function alone, with the one that it calls."""
    function = C.function(program, interface)
    shift = C.shift_function(function.shift, interface.dtype) if function.shift else []
    prototype = f"{'static ' * static}{_prototype(program, interface, f'restrict{GLUE}')}"
    body = "\n".join([*function.tables, *function.workspace, *[""] * program.rolled, *function.lines])
    unused = [f"{C.indent}(void){name};" for name in function.unused]
    return "\n".join([*shift, *C.wrapped(prototype, ""), "{", *unused, body.lstrip("\n"), "}"])


def _prototype(program: Program, interface: Interface, qualifier: str, without: Collection[str] = ()) -> str:
    """The prototype of the function; `without` some arguments, that of the function that supplies their values."""
    inputs, outputs = C.parameters(program)
    arguments = [
        f"const{GLUE}{interface.dtype}{GLUE}{name}[{qualifier}{max(array.size, 1)}]"
        for name, array in zip(inputs, program.inputs, strict=True)
        if name not in without
    ]
    arguments += [
        f"{interface.dtype}{GLUE}{name}[{qualifier}{max(array.size, 1)}]"
        for name, array in zip(outputs, program.outputs, strict=True)
    ]
    return f"void {_tuned_name(interface) if without else interface.name}({', '.join(arguments)})"


def stack_bytes(program: Program, dtype: str) -> int:
    """Return the bytes on the stack that the loops of a program keep for their links."""
    return sum(program.arrays) * (len(program.parents) + 1) * (4 if dtype == "float" else 8) if program.rolled else 0


# ---- inputs whose values are known, such as gains ----


def constant_names(program: Program, interface: Interface) -> dict[str, str]:
    """Return the name of the constant in C for each parameter whose value is known."""
    known, names = dict(interface.values), C.names([interface.name, _tuned_name(interface)])
    return {
        parameter: names.new(f"{interface.name}_{parameter}")
        for parameter, array in zip(C.parameters(program)[0], program.inputs, strict=True)
        if array.name in known
    }


def _tuned_name(interface: Interface) -> str:
    return C.derived_name(interface.name, "_tuned")


def _constants_declared(program: Program, interface: Interface) -> list[str]:
    """Declarations of the values, and of the function that uses them."""
    constants = constant_names(program, interface)
    if not constants:
        return []
    sizes = dict(zip(C.parameters(program)[0], (array.size for array in program.inputs), strict=True))
    return [
        "",
        *C.comment(f"Values of the constants. Pass these to {interface.name}, or others."),
        *(f"extern const {interface.dtype} {name}[{sizes[parameter]}];" for parameter, name in constants.items()),
        "",
        *C.comment(f"{interface.name} with these values."),
        *C.wrapped(f"{_prototype(program, interface, '', set(constants))};", ""),
    ]


def _constants_defined(program: Program, interface: Interface) -> list[str]:
    constants, known = constant_names(program, interface), dict(interface.values)
    if not constants:
        return []
    inputs, outputs = C.parameters(program)
    lines: list[str] = []
    for parameter, array in zip(inputs, program.inputs, strict=True):
        if parameter in constants:
            values = ", ".join(C.literal(value, interface.dtype) for value in known[array.name])
            lines += C.wrapped(f"const {interface.dtype} {constants[parameter]}[{array.size}] = {{ {values} }};", "")
    arguments = ", ".join([*(constants.get(name, name) for name in inputs), *outputs])
    return [
        *lines,
        "",
        *C.wrapped(_prototype(program, interface, f"restrict{GLUE}", set(constants)), ""),
        "{",
        *C.wrapped(f"{interface.name}({arguments});", C.indent),
        "}",
        "",
    ]


# ---- functions as CasADi loads them (`casadi.external`) and acados links them, around functions of plain arrays ----
#
# CasADi's matrices are stored column by column, without their structural zeros. `casadi_int` can be another type by a
# macro, as acados requires.

OPENING = """
#include <math.h>

#ifndef casadi_real
#define casadi_real double
#endif
#ifndef casadi_int
#define casadi_int long long int
#endif
#ifndef CASADI_SYMBOL_EXPORT
#if defined(_WIN32)
#define CASADI_SYMBOL_EXPORT __declspec(dllexport)
#elif defined(__GNUC__)
#define CASADI_SYMBOL_EXPORT __attribute__((visibility("default")))
#else
#define CASADI_SYMBOL_EXPORT
#endif
#endif
"""


@dataclass(frozen=True, slots=True)
class Matrix:
    """An argument or a result.

    entries: (row, column, index) of each element that can differ from zero, column by column; the index counts all
    elements that the function of plain arrays takes, or returns.
    """

    name: str
    rows: int
    columns: int
    entries: tuple[tuple[int, int, int], ...]

    def sparsity(self) -> list[int]:
        """Return the sparsity in CasADi's form: compressed columns, or a 1 if it is dense."""
        if len(self.entries) == self.rows * self.columns and self.entries:
            return [self.rows, self.columns, 1]
        starts = [sum(column < k for _, column, _ in self.entries) for k in range(self.columns + 1)]
        return [self.rows, self.columns, *starts, *(row for row, _, _ in self.entries)]


@dataclass(frozen=True, slots=True)
class External:
    """A function for CasADi around `calls`, a function of plain arrays.

    takes, gives: sizes of its inputs and outputs. Arguments that it does not take are last and ignored.
    """

    name: str
    calls: str
    takes: tuple[int, ...]
    gives: tuple[int, ...]
    inputs: tuple[Matrix, ...]
    outputs: tuple[Matrix, ...]


def c_external(external: External) -> str:
    """Return the function, and the functions by which CasADi queries it."""
    lines = [*_patterns(external), *_call(external), *_answers(external)]
    return "\n".join(lines)


def _call(external: External) -> Iterator[str]:
    name, taken = external.name, sum(external.takes)
    for k, matrix in enumerate(external.outputs):
        if (places := [place for _, _, place in matrix.entries]) and not _run(places):
            yield from C.wrapped(f"static const int {name}_place{k}[] = {{ {', '.join(map(str, places))} }};", "")
    yield ""
    yield from C.wrapped(
        f"CASADI_SYMBOL_EXPORT int {name}(const casadi_real **arg, casadi_real **res, casadi_int *iw, casadi_real *w, "
        f"int mem)",
        "",
    )
    yield "{"
    yield f"{C.indent}int i;"
    yield f"{C.indent}(void)iw;"
    yield f"{C.indent}(void)mem;"
    places, start = [], 0
    for k, (size, matrix) in enumerate(zip(external.takes, external.inputs, strict=False)):
        order = [place for _, _, place in matrix.entries]
        places.append(f"w + {start}")
        if _run(order):
            yield f"{C.indent}for (i = 0; i < {size}; ++i)"
            yield f"{C.indent * 2}w[{start} + i] = arg[{k}] ? arg[{k}][i] : 0.0;"
        else:  # a matrix, row by row
            rows, columns = matrix.rows, matrix.columns
            yield f"{C.indent}for (i = 0; i < {size}; ++i)"
            yield (f"{C.indent * 2}w[{start} + i] = arg[{k}] ? arg[{k}][i % {columns} * {rows} + i / {columns}] : 0.0;")
        start += size
    for size in external.gives:
        places.append(f"w + {start}")
        start += size
    yield from C.wrapped(f"{external.calls}({', '.join(places)});", C.indent)
    for k, matrix in enumerate(external.outputs):
        if matrix.entries:
            order = [place for _, _, place in matrix.entries]
            where = f"{taken + order[0]} + i" if _run(order) else f"{taken} + {name}_place{k}[i]"
            yield f"{C.indent}if (res[{k}])"
            yield f"{C.indent * 2}for (i = 0; i < {len(order)}; ++i)"
            yield f"{C.indent * 3}res[{k}][i] = w[{where}];"
    yield f"{C.indent}return 0;"
    yield "}"


def _run(places: Sequence[int]) -> bool:
    """Return whether these are consecutive."""
    return all(b == a + 1 for a, b in itertools.pairwise(places))


def _patterns(external: External) -> Iterator[str]:
    for pattern, name in _named_patterns(external).items():
        yield from C.wrapped(f"static const casadi_int {name}[] = {{ {', '.join(map(str, pattern))} }};", "")


def _named_patterns(external: External) -> dict[tuple[int, ...], str]:
    found = dict.fromkeys(tuple(matrix.sparsity()) for matrix in (*external.inputs, *external.outputs))
    return {pattern: f"{external.name}_pattern{k}" for k, pattern in enumerate(found)}


def _answers(external: External) -> Iterator[str]:
    name, patterns = external.name, _named_patterns(external)
    for side, matrices in (("in", external.inputs), ("out", external.outputs)):
        yield from _one_line(f"casadi_int {name}_n_{side}(void)", f"return {len(matrices)};")
        for kind, question, answers in (
            ("const char *", "name", [f'"{matrix.name}"' for matrix in matrices]),
            ("const casadi_int *", "sparsity", [patterns[tuple(matrix.sparsity())] for matrix in matrices]),
        ):
            cases = [f"case {k}: return {answer};" for k, answer in enumerate(answers)]
            yield f"CASADI_SYMBOL_EXPORT {kind}{name}_{question}_{side}(casadi_int i)"
            yield from ("{", f"{C.indent}switch (i) {{", *(f"{C.indent}{case}" for case in cases))
            yield from (f"{C.indent}default: return 0;", f"{C.indent}}}", "}")
    sizes = {
        "arg": len(external.inputs), "res": len(external.outputs), "iw": 0,
        "w": sum(external.takes) + sum(external.gives),
    }  # fmt: skip
    arguments = ", ".join(f"casadi_int *sz_{of}" for of in sizes)
    yield f"CASADI_SYMBOL_EXPORT int {name}_work({arguments})"
    yield "{"
    for of, size in sizes.items():
        yield f"{C.indent}if (sz_{of})"
        yield f"{C.indent * 2}*sz_{of} = {size};"
    yield from (f"{C.indent}return 0;", "}")


def _one_line(prototype: str, body: str) -> Iterator[str]:
    yield from (f"CASADI_SYMBOL_EXPORT {prototype}", "{", f"{C.indent}{body}", "}")
