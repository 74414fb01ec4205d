"""Counted is executed: the exported C runs over a scalar that counts, and does exactly what `counts` claims.

C is compiled as C++, with a class in the place of `double` whose operators count themselves. Every function by every
method, as straight code and as loops, on a chain, on trees and with every kind of joint; the results are compared as
well, so that what was counted is the function.
"""

from __future__ import annotations

import ctypes
import re
import shutil
import subprocess
from collections.abc import Iterator
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

needs_gxx = pytest.mark.skipif(shutil.which("g++") is None, reason="no C++ compiler here")

PRELUDE = """
#include <cmath>
#include <set>
static long muls, adds, divs, sqrts;
static std::set<double> angles;  // of which a sine or cosine was taken; random ones are all different
struct Scalar { double value; };
static Scalar operator*(Scalar a, Scalar b) { ++muls; return {a.value * b.value}; }
static Scalar operator+(Scalar a, Scalar b) { ++adds; return {a.value + b.value}; }
static Scalar operator-(Scalar a, Scalar b) { ++adds; return {a.value - b.value}; }
static Scalar operator/(Scalar a, Scalar b) { ++divs; return {a.value / b.value}; }
static Scalar operator-(Scalar a) { return {-a.value}; }
static void operator+=(Scalar& a, Scalar b) { ++adds; a.value += b.value; }
static bool operator<(Scalar a, Scalar b) { return a.value < b.value; }
static bool operator>(Scalar a, Scalar b) { return a.value > b.value; }
static Scalar fabs(Scalar a) { return {std::fabs(a.value)}; }
static Scalar atan2(Scalar a, Scalar b) { return {std::atan2(a.value, b.value)}; }  // of angles that no test has
static Scalar sin(Scalar a) { angles.insert(a.value); return {std::sin(a.value)}; }
static Scalar cos(Scalar a) { angles.insert(a.value); return {std::cos(a.value)}; }
static Scalar sqrt(Scalar a) { ++sqrts; return {std::sqrt(a.value)}; }
"""
NUMBER = re.compile(r"(?<![\w.])(\d+\.\d*(?:e[+-]?\d+)?|\d+e[+-]?\d+)")


def named_source(function: CompiledFunction, name: str) -> str:
    """As `linksweep export` writes it; what its header claims is `counts`."""
    source, header = c_files(function, name)
    counts = function.counts
    claim = f"mul {counts.mul}, add {counts.add}, div {counts.div}, sqrt {counts.sqrt},"
    assert claim in re.sub(r"\s+\*?\s*", " ", header)
    return source


def counting(function: CompiledFunction, name: str, named: bool = False) -> str:
    """The exported C of a function over counting scalars, and name_run(inputs, results, counts), which calls it."""
    interface = Interface(name)  # without the names and comments of `c_files`, for which a slower trace looks
    source = c_source(function.program, interface, f"{name}.h") if not named else named_source(function, name)
    source = re.sub(r"/\*.*?\*/|^#include.*?$", "", source, flags=re.DOTALL | re.MULTILINE)
    source = NUMBER.sub(r"Scalar{\1}", re.sub(r"\bdouble\b", "Scalar", source.replace("restrict", "")))
    assert "fma" not in source and "double" not in source
    call, copies, back = [], [], []
    for k, argument in enumerate(function.signature.inputs):
        size = max(1, int(np.prod(argument.shape)))
        copies.append(f"Scalar in{k}[{size}]; for (int i = 0; i < {size}; ++i) in{k}[i].value = inputs[{k}][i];")
        call.append(f"in{k}")
    for k, argument in enumerate(function.signature.outputs):
        size = max(1, int(np.prod(argument.shape)))
        copies.append(f"Scalar out{k}[{size}];")
        back.append(f"for (int i = 0; i < {size}; ++i) results[{k}][i] = out{k}[i].value;")
        call.append(f"out{k}")
    return f"""
{source.strip()}
extern "C" void {name}_run(const double* const* inputs, double* const* results, long* counts) {{
    {" ".join(copies)}
    muls = adds = divs = sqrts = 0; angles.clear();
    {name}({", ".join(call)});
    counts[0] = muls; counts[1] = adds; counts[2] = divs; counts[3] = sqrts; counts[4] = (long)angles.size();
    {" ".join(back)}
}}"""


def built(folder: Path, functions: dict[str, CompiledFunction], named: bool = False) -> Any:
    """All of them in one library: what the compiler takes for one is mostly its start."""
    source, library = folder / "counting.cpp", folder / "counting.so"
    source.write_text(PRELUDE + "".join(counting(function, name, named) for name, function in functions.items()))
    build = ["g++", "-std=c++17", "-O0", "-w", "-fPIC", "-shared", "-o", str(library), str(source)]
    done = subprocess.run(build, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[:2000]
    return ctypes.CDLL(str(library))


def executed(library: Any, name: str, function: CompiledFunction, inputs: list[np.ndarray]) -> tuple[Counts, list[Any]]:
    outputs = function.signature.outputs
    results = [np.full(max(1, int(np.prod(argument.shape))), np.nan) for argument in outputs]
    counts = (ctypes.c_long * 5)()
    pointers = [(ctypes.c_void_p * len(arrays))(*(x.ctypes.data for x in arrays)) for arrays in (inputs, results)]
    getattr(library, f"{name}_run")(*pointers, counts)
    return Counts(*counts), results


def everything(bot: ls.Robot, rolled: bool) -> Iterator[tuple[str, CompiledFunction]]:
    """Every function by every method, with external forces and friction where it takes them, and three together."""
    for name in bot.functions:
        function = FUNCTIONS[name]
        item = (name, bot.frame_names[-1]) if function.needs_frame else name
        options: dict[str, Any] = {key: True for key in function.takes}
        for method in bot.methods(name) or [None]:
            for extras in (options, {}) if name == "forward_dynamics" else (options,):
                try:
                    compiled = bot.compile(item, method=method, rolled=rolled, backend="interpreter", **extras)
                except ArgumentError as error:
                    assert "cannot run as a loop" in str(error) or "no method for such a robot" in str(error)
                    continue
                yield f"{name} {method or ''} {'with' if extras else 'without'} extras", compiled
    together = ["mass_matrix", "bias_forces", ("jacobian", bot.frame_names[-1])]
    yield "three together", bot.compile(together, rolled=rolled, backend="interpreter")


QUICK = {
    "chain": lambda: robot("mixed3"),
    "tree": lambda: robot("tree4"),
    "ball joint": lambda: random_robot(("spherical", "revolute", "helical"), tree=True),
}
SLOW = {
    "PUMA": lambda: robot("puma560"),
    "large tree": lambda: robot(at_scale("tree9", "tree14")),
    "tree with every kind of joint": lambda: random_robot(at_scale(ALL_KINDS, (*ALL_KINDS, *ALL_KINDS[1:])), tree=True),
}
ROBOTS = [*QUICK, *(pytest.param(name, marks=pytest.mark.slow) for name in SLOW)]


@pytest.mark.slow
@pytest.mark.cases(1)
@needs_gxx
@pytest.mark.parametrize("rolled", [True, False], ids=["loops", "written out"])
@pytest.mark.parametrize("name", ROBOTS)
def test_executed_is_claimed(tmp_path: Path, name: str, rolled: bool):
    bot = (QUICK | SLOW)[name]()
    named = {f"f{k}": found for k, found in enumerate(everything(bot, rolled))}
    library = built(tmp_path, {key: function for key, (_, function) in named.items()})
    rng = np.random.default_rng(5)
    differing = []
    for key, (what, function) in named.items():
        inputs = [rng.uniform(-1.5, 1.5, argument.shape) for argument in function.signature.inputs]
        inputs[0] = bot.random(rng)
        found, results = executed(library, key, function, [np.ascontiguousarray(x) for x in inputs])
        if found != function.counts:
            differing.append(f"{what}: claimed {function.counts}, executed {found}")
        expected = function(*inputs)
        for got, wanted in zip(results, expected if isinstance(expected, tuple) else (expected,), strict=True):
            assert close(got.reshape(wanted.shape), wanted, 1e-9), what
    assert not differing, "\n".join(differing)
    assert len(named) > (15 if rolled else 25)


@needs_gxx
def test_a_chain_of_sixty_one(tmp_path: Path):
    """The count that was wrong by the 27 additions of each link, which on a chain are additions to zero."""
    bot = ls.robots.chain(61)
    function = bot.compile("forward_dynamics", method="filter_smoother", backend="interpreter")
    assert function.program.rolled
    rng = np.random.default_rng(0)
    inputs = [rng.uniform(-1, 1, 61) for _ in range(3)]
    found, _ = executed(built(tmp_path, {"f": function}, named=True), "f", function, inputs)
    assert found == function.counts and found.add == 12605  # 14252 were executed
