"""Words of C: identifiers that are free, numbers that read back as they are, comments that end where they should."""

from __future__ import annotations

import re
import struct
import textwrap
from collections.abc import Iterable, Sequence

from ..errors import ArgumentError, BackendError
from ..support.messages import shown

WIDTH = 100
GLUE, WEAK = "\0", "\1"  # spaces at which no line is broken; the weak one if it need not be
LONGEST = 63  # characters of a name that every C99 compiler tells apart
LONG_LINK = 20  # a robot with longer names of links gets numbers instead
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
# of the standard library: compilers know them by themselves, and refuse a function of that name
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
# of math.h and of compilers: they stand for something else wherever they occur
MACRO = re.compile(
    r"M_[A-Z0-9_]+(l|f\d*x?)?|FP_[A-Z0-9_]+|HUGE_VAL\w*|S?NAN([FL]\w*)?|INFINITY|MAXFLOAT|MATH_ERR\w+|NULL|EXIT_\w+"
    r"|RAND_MAX|MB_CUR_MAX|(BIG|LITTLE|PDP)_ENDIAN|BYTE_ORDER|linux|unix|i386|sun|vax"
)


class Names:
    """Identifiers given so far: each is new."""

    def __init__(self, taken: Iterable[str] = ()):
        self.taken = set(taken) | KEYWORDS
        self.last: dict[str, int] = {}

    def new(self, wanted: str) -> str:
        """The wanted identifier, with a number behind it where it is taken."""
        stem = identifier(wanted)[:LONGEST]
        stem = name = f"{stem}_q" if stem in KEYWORDS or MACRO.fullmatch(stem) else stem
        number = self.last.get(stem, 1)
        while name in self.taken:
            number += 1
            name = f"{stem[: LONGEST - 8]}_{number}"
        self.last[stem] = number
        self.taken.add(name)
        return name

    def numbered(self, stem: str) -> str:
        """stem1, stem2 and so on."""
        stem = identifier(stem)[: LONGEST - 8]
        number = self.last.get(stem, 0)
        while (name := f"{stem}{number + 1}") in self.taken:
            number += 1
        self.last[stem] = number + 1
        self.taken.add(name)
        return name


def identifier(text: str) -> str:
    """The text with an underscore for every character that C does not allow in a name."""
    name = re.sub(r"[^0-9A-Za-z_]", "_", text).strip("_") or "x"
    return f"x{name}" if name[0].isdigit() else name


def checked_name(name: object) -> str:
    """A function's name that a user chose."""
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
    if len(name) > LONGEST:
        raise ArgumentError(
            f"the name of the C function has {len(name)} characters, expected at most {LONGEST}, which every compiler "
            f"tells apart: choose a shorter one."
        )
    return name


def link_names(links: Sequence[str]) -> dict[str, str]:
    """An identifier for each link: its name, or its number if some link has a long one."""
    if any(len(identifier(link)) > LONG_LINK for link in links):
        return {link: f"link{number}" for number, link in enumerate(links, 1)}
    names = Names()
    return {link: names.new(link if link[:1].isalpha() else f"link_{link}") for link in links}


def literal(value: float, dtype: str) -> str:
    """The shortest decimal that reads back as the same number of this type."""
    if dtype == "double":
        text, suffix = repr(float(value)), ""
    else:
        text, suffix = _short(float(value)), "f"
    if not re.search(r"[.e]", text):
        text += ".0"
    return text + suffix


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


def printable(text: str) -> str:
    """Text for a comment: plain ASCII on one line that neither ends nor begins a comment."""
    plain = "".join(c if " " <= c <= "~" else " " if c.isspace() else "?" for c in text).replace("\\", "/")
    # a space between any two of them: replacing pairs from the left would leave a trigraph of "???/"
    return re.sub(r"\*(?=/)|/(?=\*)|\?(?=\?)", lambda match: match[0] + " ", plain)


def comment(text: str, indent: str = "") -> list[str]:
    return _wrapped(f"/* {printable(text)} */", indent, "   ")


def wrapped(text: str, indent: str) -> list[str]:
    """A statement, broken at spaces where it is too long."""
    return _wrapped(text, indent, "    ")


def _wrapped(text: str, indent: str, further: str) -> list[str]:
    lines = textwrap.wrap(
        text, WIDTH, initial_indent=indent, subsequent_indent=indent + further, break_long_words=False,
        break_on_hyphens=False,
    )  # fmt: skip
    if WEAK in text and any(len(line) > WIDTH for line in lines):
        return _wrapped(text.replace(WEAK, " "), indent, further)
    return [line.replace(GLUE, " ").replace(WEAK, " ") for line in lines]
