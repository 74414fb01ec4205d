"""Operation counts against execution: the exported C, run over scalars that count, does exactly what `counts` reports.

Every function by every method, rolled and unrolled, on a chain, on trees and with every joint type. The C text is
translated to Python statement by statement, because a C++ compiler takes thirty times as long for the same result. One
function is compiled with g++ as well, with a class in place of `double` whose operators count. Results are compared
too, so that the counted text is the function.
"""

from __future__ import annotations

import ctypes
import math
import re
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pin_models import ALL_KINDS, random_robot
from robots_for_tests import close, robot
from scale import at_scale

import linksweep as ls
from linksweep.backends.c import c_source
from linksweep.backends.printer import Interface
from linksweep.errors import ArgumentError
from linksweep.functions.c_export import c_files
from linksweep.functions.compiled import CompiledFunction
from linksweep.functions.functions import FUNCTIONS
from linksweep.tracing.count import Counts

NUMBER = re.compile(r"(?<![\w.])(\d+\.\d*(?:e[+-]?\d+)?|\d+e[+-]?\d+)")
COMMENT = re.compile(r"/\*.*?\*/|^#.*?$", re.DOTALL | re.MULTILINE)


# ---- in Python -------------------------------------------------------------------------------------------------

executed = dict.fromkeys(("mul", "add", "div", "sqrt"), 0)
angles = set[float]()  # whose sine or cosine was taken; random ones are all different


class Scalar(float):
    """A number whose arithmetic operations count; negation and comparison are free."""

    def __mul__(self, other: float) -> Scalar:
        executed["mul"] += 1
        return Scalar(float(self) * float(other))

    def __add__(self, other: float) -> Scalar:
        executed["add"] += 1
        return Scalar(float(self) + float(other))

    def __sub__(self, other: float) -> Scalar:
        executed["add"] += 1
        return Scalar(float(self) - float(other))

    def __truediv__(self, other: float) -> Scalar:
        executed["div"] += 1
        return Scalar(float(self) / float(other))

    def __neg__(self) -> Scalar:
        return Scalar(-float(self))


def sqrt(x: Scalar) -> Scalar:
    executed["sqrt"] += 1
    return Scalar(math.sqrt(x))


def sin(x: Scalar) -> Scalar:
    angles.add(float(x))
    return Scalar(math.sin(x))


def cos(x: Scalar) -> Scalar:
    angles.add(float(x))
    return Scalar(math.cos(x))


TOKEN = re.compile(
    r"\s*(?:(?P<for>for \((?:int )?(?P<i>\w+) = (?P<start>[^;]+); (?P<condition>[^;]+); (?P<update>[^)]+)\))"
    r"|if \((?P<if>[^{}]*?)\)(?=\s*continue;)|switch \((?P<switch>[^()]+)\)|(?P<case>(?:case \d+:\s*|default:\s*)+)"
    r"|(?P<brace>[{}])|(?:static )?(?:const )?(?:int |Scalar )?(?P<statement>[^;{}]+);)"
)
ARRAY = re.compile(r"(\w+)\[(\d+)\](?: = \[(.*)\])?")  # a declaration


def conditional(statement: str) -> str:
    """Translate `target = condition ? a : b`, where a choice is the whole right side or inside brackets."""

    def choice(text: str) -> str:
        condition, mark, rest = text.partition(" ? ")
        if not mark:
            return text
        if_true, if_false = rest.split(" : ")
        return f"{if_true} if {condition} else {if_false}"

    target, expression = statement.split(" = ")
    levels = [""]
    for part in re.split(r"([()])", expression):
        if part == "(":
            levels.append("")
        elif part == ")":
            inner = choice(levels.pop())
            levels[-1] += f"({inner})"
        else:
            levels[-1] += part
    return f"{target} = {choice(levels[0])}"


def python_source(c: str) -> str:
    """Translate the body of an exported C function to Python, with `Scalar` around every literal."""
    text = re.sub(r"= \{([^{}]*)\}", r"= [\1]", re.sub(r"\bdouble\b", "Scalar", COMMENT.sub("", c)))
    prototype, body = re.split(r"\)\s*\{", text[text.index("\nvoid ") :], maxsplit=1)
    body = " ".join(NUMBER.sub(r"Scalar(\1)", body[: body.index("\n}")]).split())
    parameters = re.findall(r"(\w+)\[", prototype)
    lines = [f"def run({', '.join(parameters)}):"]
    blocks = [("function", "")]  # open blocks, and a loop's update
    header: tuple[str, str] | None = None  # of the block or the statement that follows
    depth, end = 1, 0
    for token in TOKEN.finditer(body):
        assert not body[end : token.start()].strip(), body[end : token.end()]
        end = token.end()
        if token["for"]:
            lines += [
                " " * depth + f"{token['i']} = {token['start']}",
                " " * depth + f"while {token['condition']}:",
            ]
            update = re.sub(r"(\+|-)\1(\w+)", r"\2 \1= 1", token["update"])
            header = ("loop", update)
        elif token["if"]:
            loop = next(update for kind, update in reversed(blocks) if kind == "loop")
            condition = token["if"].replace("&&", "and").replace("||", "or")
            lines += [" " * depth + f"if {condition}:", " " * (depth + 1) + loop]
            header = ("if", "")
        elif token["switch"]:
            header = ("switch", token["switch"])
        elif token["case"]:
            cases, first = re.findall(r"\d+", token["case"]), blocks[-1][0] == "switch"
            condition = f"{blocks[-1][1]} in ({', '.join(cases)},)" if "default" not in token["case"] else "True"
            lines.append(" " * depth + f"{'if' if first else 'elif'} {condition}:")
            blocks[-1] = ("cases", blocks[-1][1])
            header = ("case", "")
        elif token["brace"] == "{":
            if header is None:  # a plain block
                header = ("block", "")
                lines.append(" " * depth + "if True:")
            blocks.append(header)
            if header[0] != "switch":
                depth += 1
                lines.append(" " * depth + "pass")
            header = None
        elif token["brace"]:
            kind, update = blocks.pop()
            if kind == "loop":
                lines.append(" " * depth + update)
            depth -= kind != "cases"
        else:
            statement = token["statement"]
            if array := ARRAY.fullmatch(statement):
                name, size, values = array.groups()
                count = values.count(",") + 1
                statement = f"{name} = [{values}]" + (f" * {size}" if count == 1 else "")
                assert count in (1, int(size))
            elif "?" in statement:
                statement = conditional(statement)
            inner = depth + (header is not None)
            if statement != "break":
                lines.append(" " * inner + statement)
            if header and header[0] == "loop":
                lines.append(" " * inner + header[1])
            header = None
    assert not body[end:].strip() and len(blocks) == 1
    return "\n".join(lines)


def run_in_python(function: CompiledFunction, inputs: list[np.ndarray]) -> tuple[Counts, list[np.ndarray]]:
    """Return the operations that the exported C of a function executes, and its results."""
    name = "counted"
    scope: dict[str, Any] = {"sin": sin, "cos": cos, "sqrt": sqrt, "Scalar": Scalar}
    scope[f"{name}_shifted"] = lambda angle, offset: angle + offset  # angles of this test are below a turn
    exec(python_source(c_source(function.program, Interface(name), f"{name}.h")), scope)
    arguments = [[Scalar(x) for x in array.flat] for array in inputs]
    results = [[math.nan] * max(1, math.prod(argument.shape)) for argument in function.signature.outputs]
    executed.update(dict.fromkeys(executed, 0))
    angles.clear()
    scope["run"](*arguments, *results)
    return Counts(**executed, trig=len(angles)), [np.array(result, float) for result in results]


def everything(bot: ls.Robot, rolled: bool) -> Iterator[tuple[str, CompiledFunction]]:
    """Every function by every method, with external forces and friction if it takes them, and three together."""
    for name in bot.functions:
        function = FUNCTIONS[name]
        item = (name, bot.frame_names[-1]) if function.needs_frame else name
        options: dict[str, Any] = {key: True for key in function.takes}
        for method in bot.methods(name) or [None]:
            for extras in (options, {}) if name == "forward_dynamics" else (options,):
                try:
                    compiled = bot.compile(item, method=method, rolled=rolled, backend="interpreter", **extras)
                except ArgumentError as error:
                    assert "cannot run as a loop" in str(error) or "no method supports this" in str(error)
                    continue
                yield f"{name} {method or ''} {'with' if extras else 'without'} extras", compiled
    together = ["mass_matrix", "bias_forces", ("jacobian", bot.frame_names[-1])]
    yield "three together", bot.compile(together, rolled=rolled, backend="interpreter")


ROBOTS: dict[str, Callable[[], ls.Robot]] = {
    "chain": lambda: robot("mixed3"),
    "tree": lambda: robot("tree4"),
    "ball joint": lambda: random_robot(("spherical", "revolute", "helical"), tree=True),
    "PUMA": lambda: robot("puma560"),
    "large tree": lambda: robot(at_scale("tree9", "tree14")),
    "tree with every joint type": lambda: random_robot(at_scale(ALL_KINDS, (*ALL_KINDS, *ALL_KINDS[1:])), tree=True),
}


@pytest.mark.slow
@pytest.mark.parametrize("rolled", [True, False], ids=["rolled", "unrolled"])
@pytest.mark.parametrize("name", ROBOTS)
def test_executed_is_claimed(name: str, rolled: bool):
    bot, rng = ROBOTS[name](), np.random.default_rng(5)
    differing, number = [], 0
    for what, function in everything(bot, rolled):
        inputs = [rng.uniform(-1.5, 1.5, argument.shape) for argument in function.signature.inputs]
        inputs[0] = bot.random(rng)
        counts, results = run_in_python(function, inputs)
        if counts != function.counts:
            differing.append(f"{what}: claimed {function.counts}, executed {counts}")
        expected = function(*inputs)
        for result, reference in zip(results, expected if isinstance(expected, tuple) else (expected,), strict=True):
            assert close(result.reshape(reference.shape), reference, 1e-9), what
        number += 1
    assert not differing, "\n".join(differing)
    assert number > (15 if rolled else 25)


# ---- compiled --------------------------------------------------------------------------------------------------

PRELUDE = """
#include <cmath>
#include <set>
static long muls, adds, divs, sqrts;
static std::set<double> angles;
struct Scalar { double value; };
static Scalar operator*(Scalar a, Scalar b) { ++muls; return {a.value * b.value}; }
static Scalar operator+(Scalar a, Scalar b) { ++adds; return {a.value + b.value}; }
static Scalar operator-(Scalar a, Scalar b) { ++adds; return {a.value - b.value}; }
static Scalar operator/(Scalar a, Scalar b) { ++divs; return {a.value / b.value}; }
static Scalar operator-(Scalar a) { return {-a.value}; }
static void operator+=(Scalar& a, Scalar b) { ++adds; a.value += b.value; }
static bool operator>(Scalar a, Scalar b) { return a.value > b.value; }
static Scalar fabs(Scalar a) { return {std::fabs(a.value)}; }
static Scalar atan2(Scalar a, Scalar b) { return {std::atan2(a.value, b.value)}; }  // of angles that no test has
static Scalar sin(Scalar a) { angles.insert(a.value); return {std::sin(a.value)}; }
static Scalar cos(Scalar a) { angles.insert(a.value); return {std::cos(a.value)}; }
static Scalar sqrt(Scalar a) { ++sqrts; return {std::sqrt(a.value)}; }
"""
RUN = """
extern "C" void run(const Scalar* q, const Scalar* qd, const Scalar* tau, Scalar* qdd, long* counts) {
    counted(q, qd, tau, qdd);
    counts[0] = muls; counts[1] = adds; counts[2] = divs; counts[3] = sqrts; counts[4] = (long)angles.size();
}
"""


@pytest.mark.skipif(shutil.which("g++") is None, reason="no C++ compiler here")
def test_a_chain_of_sixty_one(tmp_path: Path):
    """The files that `linksweep export` writes, compiled; the count was once wrong by the 27 additions of each link."""
    bot = ls.robots.chain(61)
    function = bot.compile("forward_dynamics", method="filter_smoother", backend="interpreter")
    counts = function.counts
    assert function.program.rolled
    text, header = c_files(function, "counted")
    claim = f"mul {counts.mul}, add {counts.add}, div {counts.div}, sqrt {counts.sqrt},"
    assert claim in re.sub(r"\s+\*?\s*", " ", header)
    text = NUMBER.sub(r"Scalar{\1}", re.sub(r"\bdouble\b", "Scalar", COMMENT.sub("", text).replace("restrict", "")))
    assert "fma" not in text
    source, library = tmp_path / "counting.cpp", tmp_path / "counting.so"
    source.write_text(PRELUDE + text + RUN)
    build = ["g++", "-std=c++17", "-O0", "-w", "-fPIC", "-shared", "-o", str(library), str(source)]
    done = subprocess.run(build, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[:2000]
    rng = np.random.default_rng(0)
    inputs, qdd, numbers = [rng.uniform(-1, 1, 61) for _ in range(3)], np.full(61, np.nan), (ctypes.c_long * 5)()
    ctypes.CDLL(str(library)).run(*(ctypes.c_void_p(x.ctypes.data) for x in (*inputs, qdd)), numbers)
    assert Counts(*numbers) == counts and counts.add == 12605  # 14252 were executed
    assert close(qdd, function(*inputs), 1e-9)
    assert run_in_python(function, inputs)[0] == counts
