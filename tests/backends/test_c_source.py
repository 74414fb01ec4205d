"""Exported C: compiled by gcc without a warning, loaded, and equal to what NumPy computes from the same Program."""

from __future__ import annotations

import ctypes
import re
import shutil
import subprocess
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pinocchio as pin
import pytest
from oracles import FILES
from pin_models import ALL_KINDS, random_robot
from robots_for_tests import close, inverse_dynamics, mass_matrix, robot

import linksweep as ls
from linksweep.backends.c import C, c_header, c_source, checked_name
from linksweep.backends.printer import Interface
from linksweep.errors import ArgumentError, BackendError, ModelWarning
from linksweep.functions.c_export import c_files, export_c
from linksweep.functions.compiled import CompiledFunction
from linksweep.robot import conventions
from linksweep.tracing.expression import PARAMETER, Graph
from linksweep.tracing.program import Array, block_program

GCC = ("gcc", "-std=c99", "-Wall", "-Wextra", "-Wconversion", "-Werror", "-pedantic", "-O2")
needs_gcc = pytest.mark.skipif(shutil.which("gcc") is None, reason="no C compiler here")
ROUNDING = {"double": 1e-13, "float": 2e-5}  # of the largest entry; float: 24 bits, and some hundred operations


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("c")


def run(folder: Path, source: str, header: str, inputs: list[np.ndarray], sizes: list[int], dtype: str) -> list[Any]:
    """Compile the files, call their function `f`, and return its results, flat."""
    place = Path(folder) / f"run{len(list(folder.iterdir()))}"
    place.mkdir()
    (place / "f.c").write_text(source)
    (place / "f.h").write_text(header)
    build = [*GCC, "-fPIC", "-shared", "-o", str(place / "f.so"), str(place / "f.c"), "-lm"]
    done = subprocess.run(build, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    kind = np.float64 if dtype == "double" else np.float32
    given = [np.ascontiguousarray(x, kind) for x in inputs]
    results = [np.full(size, np.nan, kind) for size in sizes]
    ctypes.CDLL(str(place / "f.so")).f(*(ctypes.c_void_p(x.ctypes.data) for x in (*given, *results)))
    return results


def agrees(folder: Path, bot: ls.Robot, function: CompiledFunction, dtype: str = "double", seed: int = 0) -> list[Any]:
    """Check C against NumPy on one state; the results of C."""
    rng = np.random.default_rng(seed)
    inputs = [rng.uniform(-1.5, 1.5, argument.shape) for argument in function.signature.inputs]
    inputs[0] = bot.random(rng)
    source, header = c_files(function, "f", dtype, bot)
    assert max(map(len, source.splitlines())) <= 100 and source.isascii()
    expected = function(*inputs)
    expected = expected if isinstance(expected, tuple) else (expected,)
    results = run(folder, source, header, inputs, [max(1, x.size) for x in expected], dtype)
    for got, wanted in zip(results, expected, strict=True):
        scale = max(1e-3, float(np.abs(wanted).max()))
        assert np.abs(got - wanted.ravel()).max() <= ROUNDING[dtype] * scale
    return [inputs, *results]


def loaded(name: str, base: str) -> ls.Robot:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ModelWarning)
        return ls.load(FILES[name], base=base)


# ---- against NumPy, and against mechanics that are not ours -----------------------------------------------------


@pytest.mark.cases(1)
@needs_gcc
@pytest.mark.parametrize(
    ("name", "dtype"),
    [("puma560", "double"), ("puma560", "float"), ("stanford", "double"), ("mixed5", "double"), ("urdf", "float")],
)
def test_dynamics_of_arms(folder: Path, name: str, dtype: str):
    bot = robot(name)
    (q, qd, qdd), tau = agrees(folder, bot, bot.compile("inverse_dynamics", backend="interpreter"), dtype)
    (p,), M = agrees(folder, bot, bot.compile("mass_matrix", backend="interpreter"), dtype)
    agrees(folder, bot, bot.compile("forward_dynamics", backend="interpreter"), dtype)
    if dtype == "double":
        assert close(tau, inverse_dynamics(bot.model, q, qd, qdd))
        assert close(M.reshape(bot.nv, bot.nv), mass_matrix(bot.model, p))


@pytest.mark.cases(1)
@needs_gcc
@pytest.mark.parametrize(
    ("file", "base"),
    [
        ("ur_description/urdf/ur5_robot.urdf", "fixed"),
        ("panda_description/urdf/panda.urdf", "fixed"),
        ("talos_data/robots/talos_reduced.urdf", "floating"),
    ],
)
def test_inverse_dynamics_against_pinocchio(folder: Path, file: str, base: str):
    bot = loaded(file, base)
    (q, qd, qdd), tau = agrees(folder, bot, bot.compile("inverse_dynamics", backend="interpreter"))
    root = (pin.JointModelFreeFlyer(),) if base == "floating" else ()
    model: Any = pin.buildModelFromUrdf(str(FILES[file]), *root, mimic=False)
    theirs = conventions.to_pinocchio(bot, model, q=q, v=qd, a=qdd)
    expected = conventions.from_pinocchio(bot, model, tau=pin.rnea(model, model.createData(), *theirs))
    assert close(tau, expected)


@pytest.mark.slow
@needs_gcc
def test_every_kind_of_joint_on_a_floating_base(folder: Path):
    bot = random_robot(ALL_KINDS)
    for function in ("forward_dynamics", "center_of_mass"):
        agrees(folder, bot, bot.compile(function, backend="interpreter"))


@needs_gcc
@pytest.mark.parametrize("dtype", ["double", "float"])
@pytest.mark.parametrize("function", ["inverse_dynamics", "forward_dynamics", "mass_matrix", "center_of_mass"])
def test_loops_over_the_links(folder: Path, function: str, dtype: str):
    """100 links in a plane; in float their moments cancel, and what is left is compared where it is large."""
    bot = ls.robots.planar(100) if function != "forward_dynamics" or dtype == "double" else ls.robots.planar(10)
    compiled = bot.compile(function, backend="interpreter", rolled=True)
    assert compiled.program.rolled
    source, _ = c_files(compiled, "f", dtype)
    assert "for (int link" in source and "static const" in source and source.count("\n") < 900
    if dtype == "double":
        agrees(folder, bot, compiled)
    else:
        inputs = [np.linspace(-0.02, 0.03, argument.shape[0]) for argument in compiled.signature.inputs]
        expected = compiled(*inputs)
        (got,) = run(folder, source, c_files(compiled, "f", dtype)[1], inputs, [expected.size], dtype)
        single = compiled(*(x.astype(np.float32) for x in inputs))
        # no closer to the true value than float32 in NumPy is, apart from a factor of two
        bar = max(1e-6 * np.abs(expected).max(), 2 * np.abs(single - expected).max())
        assert np.abs(got - expected.ravel()).max() <= bar


@pytest.mark.cases(1)
@needs_gcc
@pytest.mark.parametrize("rolled", [False, True])
@pytest.mark.parametrize("name", ["tree4", "urdf"])
@pytest.mark.slow
def test_branched_robots_with_every_option(folder: Path, name: str, rolled: bool):
    bot, options = robot(name), dict[str, Any](f_ext=True, dissipation=True, base_motion=True)
    for function in ("inverse_dynamics", "forward_dynamics"):
        compiled = bot.compile(function, backend="interpreter", rolled=rolled, **options)
        assert compiled.inputs[-2:] == ("f_ext", "base_motion")
        agrees(folder, bot, compiled)
    agrees(folder, bot, bot.compile("mass_matrix", backend="interpreter", rolled=rolled))


@pytest.mark.slow
@needs_gcc
def test_every_public_function_of_an_arm(folder: Path):
    bot = robot("urdf")
    for name in bot.functions:
        item: Any = name
        try:
            compiled = bot.compile(item, backend="interpreter")
        except ArgumentError:
            item = (name, "camera")  # the functions of a frame
            compiled = bot.compile(item, backend="interpreter")
        agrees(folder, bot, compiled)


@pytest.mark.slow
@needs_gcc
def test_derivatives_and_several_results(folder: Path):
    bot = robot("puma560")
    agrees(folder, bot, bot.compile("gravity_forces", backend="interpreter").derivative("q"))
    both = bot.compile(["inverse_dynamics", "forward_dynamics", "gravity_forces"], backend="interpreter")
    source, _ = c_files(both, "f")
    assert "double tau_out[restrict 6]" in source and "double qdd_out[restrict 6]" in source
    agrees(folder, bot, both)


@needs_gcc
def test_a_payload_and_gravity_as_arguments(folder: Path):
    bot = robot("puma560")
    compiled = bot.compile("inverse_dynamics", parameters=("payload", "gravity"), backend="interpreter")
    source = compiled.c_source(robot=bot)
    assert "const double payload[restrict 10]" in source and "const double gravity[restrict 3]" in source
    assert "mass times centre" in source and "Gravity in" not in source
    agrees(folder, bot, compiled)


@needs_gcc
def test_parameters_are_ordinary_arguments(folder: Path):
    graph = Graph()
    m, x = graph.leaf("input", (1, 0), PARAMETER), graph.leaf("input", (0, 0))
    program = block_program("spring", [Array("x", (1,)), Array("m", (1,), PARAMETER)], [(Array("y", (1,)), [x / m])])
    interface = Interface("f")
    text = c_source(program, interface, "f.h")
    assert "void f(const double x[restrict 1], const double m[restrict 1], double y[restrict 1])" in text
    (y,) = run(folder, text, c_header(program, interface), [np.array([3.0]), np.array([4.0])], [1], "double")
    assert y[0] == 0.75


@pytest.mark.quick
@needs_gcc
def test_choices_signs_and_unused_inputs(folder: Path):
    graph = Graph()
    a, b = (graph.leaf("input", (0, i)) for i in range(2))
    sign = (a > 0.0).where(1.0, (a < 0.0).where(-1.0, 0.0))
    negative = graph.make("mul", -0.5, b)
    fused = [graph.make(op, a, b, a) for op in ("fma", "fms", "fnma")]
    values = [sign * b, -(a + b) - negative, a - graph.make("neg", b), (a * a).sqrt() / b, *fused, -(-a - b), 7.0]
    arrays = [Array("x", (2,)), Array("unused", (3,))], [(Array("y", (9,)), values)]
    program = block_program("signs", *arrays)
    for dtype in ("double", "float"):
        interface = Interface("f", dtype)
        source = c_source(program, interface, "f.h")
        assert "(void)unused;" in source and "==" not in source
        for first in (-2.0, 0.0, 3.0):
            x = np.array([first, 0.25])
            (y,) = run(folder, source, c_header(program, interface), [x, np.zeros(3)], [9], dtype)
            p, r = x
            products = [p * r + p, p * r - p, p - p * r]
            assert y.tolist() == [np.sign(p) * r, -(p + r) + 0.5 * r, p + r, abs(p) / r, *products, p + r, 7.0]


@pytest.mark.skipif(shutil.which("g++") is None, reason="no C++ compiler here")
def test_the_header_serves_cpp(tmp_path: Path):
    export_c(robot("puma560").compile("mass_matrix", backend="interpreter"), tmp_path / "puma.c", name="puma_mass")
    main = "int main() { double q[6] = {0}, M[36]; puma_mass(q, M); return M[0] > 0.0 ? 0 : 1; }\n"
    (tmp_path / "main.cpp").write_text(f'#include "puma.h"\n#include "puma.h"\n{main}')
    for command in (
        [*GCC, "-c", "puma.c"],
        ["g++", "-std=c++11", "-Wall", "-Wextra", "-Wconversion", "-Werror", "-pedantic", "-c", "main.cpp"],
        ["g++", "main.o", "puma.o", "-lm", "-o", "main"],
        ["./main"],
    ):
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr


# ---- what a reader sees -----------------------------------------------------------------------------------------


def test_names_equations_and_sweep_order():
    bot = robot("puma560")
    source = bot.compile("inverse_dynamics", method="newton_euler", backend="interpreter").c_source(robot=bot)
    for words in ("link3_alpha_angular_x", "link3_f_moment_z", "link3_cos", "link1_tau", "/* (2.26): alpha = ",
                  "/* (2.29): f = outer", "---- link3: outward step ----", "---- link3: inward step ----"):  # fmt: skip
        assert words in source, words
    steps = re.findall(r"---- link(\d): (\w+) step ----", source)
    assert steps == [*((str(i), "outward") for i in range(2, 7)), *((str(i), "inward") for i in range(6, 0, -1))]
    assert [line.strip() for line in source.splitlines()][-7:-1] == [f"tau[{i}] = link{i + 1}_tau;" for i in range(6)]
    assert len(re.findall(r"\bt\d+ =|_t\d+ =", source)) < 0.5 * source.count("const double link")


@pytest.mark.slow
def test_the_code_has_the_operations_that_its_comment_counts():
    for name in ("puma560", "stanford"):
        for function in ("inverse_dynamics", "mass_matrix", "forward_dynamics"):
            compiled = robot(name).compile(function, backend="interpreter")
            source, counts = compiled.c_source(), compiled.counts
            assert re.search(rf"mul {counts.mul}, add {counts.add}, div {counts.div}, sqrt {counts.sqrt}", source)
            code = re.sub(r"/\*.*?\*/", "", source, flags=re.DOTALL)
            code = code[code.index("{") :]
            code = " ".join(code.split())
            assert code.count(" * ") == counts.mul and code.count(" / ") == counts.div
            assert code.count(" + ") + code.count(" - ") == counts.add
            assert code.count("sin(") + code.count("cos(") <= 2 * counts.trig


def test_loops_have_names_too():
    source = ls.robots.planar(70).compile("inverse_dynamics", method="newton_euler", backend="interpreter").c_source()
    for words in ("V_angular_z_of[own] = qd[link] + V_angular_z_of[parent];", "(2.29)", "outer_force_x_of[parent] ="):
        assert words in source, words
    assert "bytes on the stack" in source


def test_the_comment_on_top():
    bot = robot("puma560")
    compiled = bot.compile(("jacobian", "tool", "local"), backend="interpreter")
    for text in (compiled.c_source(robot=bot), compiled.c_header(robot=bot)):
        top = text[: text.index("*/")]
        for words in (f"linksweep {ls.__version__}", "puma560", "jacobian of frame tool (local)", "q[6]", "J[6][6]",
                      "[angular; linear]", "joint4, revolute; link link4", "Inputs are not checked"):  # fmt: skip
            assert words in top, words
    assert "#include" not in compiled.c_header() and "puma560" not in compiled.c_source()


def test_the_source_needs_only_math_h_and_keeps_nothing():
    for compiled in (robot("puma560").compile("forward_dynamics", backend="interpreter"),
                     robot("tree9").compile("mass_matrix", backend="interpreter", rolled=True)):  # fmt: skip
        source = compiled.c_source("f")
        assert re.findall(r"#include (.+)", source) == ['"f.h"', "<math.h>"]
        kept = re.sub(r"static (const|double f_shifted\()", "", source)  # tables, and the function that adds an offset
        assert "malloc" not in source and "static" not in kept
        functions = re.findall(r"^\w.*\($|^\w[^(]*\(", source, flags=re.MULTILINE)
        assert functions[-1] == "void f(" and set(functions[:-1]) <= {"static double f_shifted("}


# ---- names and numbers ------------------------------------------------------------------------------------------


@pytest.mark.quick
def test_numbers_read_back_as_they_are():
    numbers = [0.1, 1 / 3, 1e300, -2.5e-310, 5e-324, 9.81, 1.0, -0.0, 1e16, 123456789.0]
    assert [float(C.literal(x, "double")) for x in numbers] == numbers
    singles = [np.float32(x) for x in (0.1, 1 / 3, 1e30, -2.5e-40, 1.4e-45, 9.81, 16777216.0, 1e10)]
    for x in singles:
        text = C.literal(float(x), "float")
        assert text.endswith("f") and re.search("[.e]", text) and np.float32(text[:-1]) == x
    assert (
        C.literal(0.1, "float") == "0.1f" and C.literal(2.0, "double") == "2.0" and C.literal(1e-60, "float") == "0.0f"
    )
    with pytest.raises(BackendError, match="does not fit into float"):
        C.literal(1e300, "float")


@pytest.mark.quick
def test_identifiers_are_new_and_allowed():
    names = C.names(["q"])
    given = [names.new(x) for x in ("q", "q", "a b", "a-b", "3d", "double", "é", "x" * 90, "x" * 90)]
    assert len(set(given)) == len(given) and all(re.fullmatch(r"[A-Za-z]\w*", x, re.ASCII) for x in given)
    assert max(map(len, given)) <= C.longest_name and "double" not in given
    assert C.link_names(["base link", "base-link", "1st"]) == {
        "base link": "base_link", "base-link": "base_link_2", "1st": "link_1st"
    }  # fmt: skip
    assert C.link_names(["a", "a_very_long_name_of_a_link"]) == {"a": "link1", "a_very_long_name_of_a_link": "link2"}


def test_comments_end_where_they_should():
    assert C.comment("a */ b /* c ??/ \\ \n d é") == ["/* a * / b / * c ? ?/ /   d ? */"]


@needs_gcc
def test_a_robot_with_hostile_names(folder: Path):
    rows = [{"a": 0.3, "alpha": 0.2, "d": 0.1, "mass": 1.0, "com": (0.1, 0.0, 0.0), "inertia": (0.1, 0.2, 0.3)}] * 3
    names = ["*/ int x; /*", "double", "q [0]"]
    bot = ls.Robot.from_dh([row | {"link": name} for row, name in zip(rows, names, strict=True)], "modified", name="é?")
    agrees(folder, bot, bot.compile("inverse_dynamics", backend="interpreter"))


@pytest.mark.slow
@needs_gcc
def test_links_that_are_called_like_macros(folder: Path):
    """With what compilers define unless they are asked for strict C, too."""
    rows = [{"a": 0.3, "alpha": 0.2, "d": 0.1, "mass": 1.0, "com": (0.1, 0.0, 0.0), "inertia": (0.1, 0.2, 0.3)}] * 9
    names = ["NAN", "M_PI", "unix", "linux", "gamma", "isnan", "nullptr", "INFINITY", "signgam"]
    bot = ls.Robot.from_dh(
        [row | {"link": name} for row, name in zip(rows, names, strict=True)], "modified", name="NAN"
    )
    function = bot.compile("inverse_dynamics", backend="interpreter")
    agrees(folder, bot, function)
    source, header = folder / "gnu.c", folder / "gnu.h"
    source.write_text(function.c_source("gnu", robot=bot))
    header.write_text(function.c_header("gnu", robot=bot))
    for standard in ("gnu17", "gnu2x"):
        command = ["gcc", f"-std={standard}", "-Wall", "-Werror", "-fsyntax-only", str(source)]
        done = subprocess.run(command, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr


def test_headers_of_names_that_differ_by_case():
    function = robot("puma560").compile("gravity_forces", backend="interpreter")
    guards = {re.search(r"#ifndef (\w+)", function.c_header(name))[1] for name in ("arm_f", "arm_F", "ARM_f")}  # pyright: ignore[reportOptionalSubscript]
    assert len(guards) == 3


RESERVED = ["isnan", "NAN", "M_PI", "M_PIf64x", "gamma", "gammaf", "unix", "nullptr", "index", "isless", "csqrt"]


@pytest.mark.parametrize("name", ["", "1a", "a b", "a-b", "int", "main", "_x", "é", "a" * 64, 3, *RESERVED])
def test_a_bad_name_for_the_function(name: Any):
    with pytest.raises(ArgumentError, match="name of the C function"):
        checked_name(name)


def test_a_bad_type():
    compiled = robot("puma560").compile("gravity_forces", backend="interpreter")
    with pytest.raises(ArgumentError, match=r"did you mean 'double'.*expected 'double' or 'float'"):
        compiled.c_source(dtype="doubel")
    with pytest.raises(ArgumentError, match="expected 'double' or 'float'"):
        compiled.c_header(dtype="float16")
