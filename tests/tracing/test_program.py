"""Programs: what the verifier refuses, how they print, and work among parameters."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from robots_for_tests import robot

from linksweep.backends.interpreter import Interpreter
from linksweep.backends.llvm import MachineKernel, kernel_module
from linksweep.backends.target import host_target
from linksweep.errors import BackendError
from linksweep.functions.computation import RobotFunction, Together
from linksweep.tracing.expression import ONLINE, PARAMETER, Graph, Node
from linksweep.tracing.passes import fuse
from linksweep.tracing.program import (
    Add,
    Array,
    Block,
    Body,
    Loop,
    Output,
    PairLoop,
    PairOutput,
    Program,
    Store,
    block_program,
)

pytestmark = pytest.mark.quick

X = Array("x", (2,))
Y = Array("y", (2,))


def tiny() -> tuple[Graph, Node, Node, Program]:
    graph = Graph()
    a, b = (graph.leaf("input", (0, i)) for i in range(2))
    return graph, a, b, block_program("tiny", [X], [(Y, [a * b + 1.5, (a - b).sin()])])


# ---- printing ------------------------------------------------------------------------------------------------


def test_a_program_prints_readably():
    _, _, _, program = tiny()
    assert str(program.verify()) == "\n".join(
        [
            "program tiny(x[2]) -> y[2]",
            "block:",
            "  %0 = x[0]",
            "  %1 = x[1]",
            "  %2 = %0 * %1",
            "  %3 = 1.5 + %2",
            "  %4 = %0 - %1",
            "  %5 = sin(%4)",
            "  y[0]= %3",
            "  y[1]= %5",
        ]
    )
    assert "%3 = fma(%0 * %1 + 1.5)" in str(fuse(program)).replace("%2", "%3")


def test_labels_stand_beside_their_values():
    _, a, b, program = tiny()
    labelled = replace(program, labels={a * b: "moment of link 2"})
    assert "  %2 = %0 * %1    # moment of link 2" in str(labelled).splitlines()


def test_a_rolled_program_prints_its_loops():
    chain, tree = (
        str(Together((RobotFunction(robot(name).canonical, "inverse_dynamics", "newton_euler"),), rolled=True).trace())
        for name in ("mixed8", "tree9")
    )
    for text in (chain, tree):
        assert "outward, body 0:" in text and "inward, body 0:" in text
        assert "table" in text and "[parent].0= " in text and "[link] + 0]" in text
    assert "[parent].0 += " in tree and "+=" not in chain  # a link with one child: its sum has one term
    pairs = str(Together((RobotFunction(robot("mixed8").canonical, "mass_matrix", "composite"),), rolled=True).trace())
    assert "pairs, body 0:" in pairs and "[i] + offset" in pairs and "[j] + 0]= " in pairs


# ---- the verifier --------------------------------------------------------------------------------------------


def broken(program: Program, *effects: Any, **changes: Any) -> Program:
    """The tiny program with other effects."""
    return replace(program, steps=(Block(Body.of(effects)),), **changes)


def test_good_programs_pass():
    _, _, _, program = tiny()
    assert program.verify() is program
    for rolled in (False, True):
        model = robot("tree9").canonical
        for function in (
            RobotFunction(model, "inverse_dynamics", "newton_euler", f_ext=True, dissipation=True),
            RobotFunction(model, "forward_dynamics", "filter_smoother"),
            RobotFunction(model, "mass_matrix", "composite"),
            RobotFunction(model, "jacobian", "", "camera"),
        ):
            Together((function,), rolled).trace().verify()


def test_a_value_used_before_it_is_computed():
    _, _, _, program = tiny()
    (block,) = program.steps
    assert isinstance(block, Block)
    backwards = Body(tuple(reversed(block.body.nodes)), block.body.effects)
    with pytest.raises(BackendError, match="runs before its operands"):
        replace(program, steps=(Block(backwards),)).verify()


def test_a_value_that_is_never_computed():
    _, _, _, program = tiny()
    (block,) = program.steps
    assert isinstance(block, Block)
    without = Body(block.body.nodes[:-1], block.body.effects)
    with pytest.raises(BackendError, match="uses a value that is not computed"):
        replace(program, steps=(Block(without),)).verify()


def test_a_wrong_number_of_operands():
    graph, a, b, program = tiny()
    node = graph.make("sin", a, b)
    with pytest.raises(BackendError, match="sin with 2 operands"):
        broken(program, Output(0, (0,), node), Output(0, (1,), 0.0)).verify()


def test_an_unknown_operation():
    graph, a, _, program = tiny()
    with pytest.raises(BackendError, match="tan with 1 operands"):
        broken(program, Output(0, (0,), graph.make("tan", a)), Output(0, (1,), 0.0)).verify()


@pytest.mark.parametrize("element", [-1, 2])
def test_an_element_out_of_range(element: int):
    graph, a, _, program = tiny()
    outside = graph.leaf("input", (0, element))
    with pytest.raises(BackendError):
        broken(program, Output(0, (0,), outside), Output(0, (1,), a)).verify()
    with pytest.raises(BackendError):
        broken(program, Output(0, (0,), a), Output(0, (element,), a)).verify()


def test_a_result_written_twice_or_never():
    _, a, b, program = tiny()
    for effects in (
        [Output(0, (0,), a)],
        [Output(0, (0,), a), Output(0, (0,), b)],
        [Output(0, (0,), a), Output(0, (1,), b), Output(0, (1,), a)],
    ):
        with pytest.raises(BackendError, match="written exactly once"):
            broken(program, *effects).verify()


@pytest.mark.parametrize("number", [math.nan, math.inf, -math.inf])
def test_a_number_that_is_not_finite(number: float):
    graph, a, _, program = tiny()
    with pytest.raises(BackendError):
        broken(program, Output(0, (0,), number), Output(0, (1,), a)).verify()
    with pytest.raises(BackendError):
        broken(program, Output(0, (0,), graph.make("mul", number, a)), Output(0, (1,), a)).verify()


def test_links_out_of_order():
    _, _, _, program = tiny()
    with pytest.raises(BackendError, match="links out of order"):
        replace(program, parents=(-1, 1)).verify()


def test_loops_out_of_range():
    graph = Graph()
    x = graph.leaf("input", (0, 0, 0))
    loaded = graph.leaf("load", (0, 0, "own"))
    good: dict[str, Any] = dict(parents=(-1, 0), kinds=(0, 0), arrays=(1,), offsets=((0, 1),), tables=((1.0, 2.0),))

    def looped(*effects: Any, **changes: Any) -> Program:
        return Program("loop", (X,), (Y,), (Loop(True, (Body.of(effects),)),), **{**good, **changes})

    looped(Store(0, 0, "own", x), Output(0, (0, 0), loaded)).verify()
    for program in (
        looped(Store(0, 1, "own", x)),
        looped(Add(0, -1, x)),
        looped(Output(0, (0, 1), x)),
        looped(Output(0, (0, 0), x), offsets=((0, 2),)),
        looped(Output(0, (0, 0), x), offsets=((0,),)),
        looped(Output(0, (0, 0), graph.leaf("table", (0,))), tables=((1.0,),)),
        looped(Output(0, (0, 0), graph.leaf("load", (0, 3, "own")))),
        looped(Output(0, (0, 0), graph.leaf("load", (0, 0, "child")))),
        looped(Output(0, (0, 0), graph.leaf("load", (0, 0, 2)))),
    ):
        with pytest.raises(BackendError):
            program.verify()


def test_pairs_stay_within_their_result():
    graph = Graph()
    body = Body.of([PairOutput(0, (0, 0, 0), graph.leaf("input", (0, 0, 0)))])  # elements 0 + 0, 1 + 1 and 1 + 0
    for shape, fine in (((2, 2), True), ((3,), True), ((2,), False), ((1, 2), False), ((1, 1), False)):
        program = Program(
            "pairs",
            (X,),
            (Array("M", shape),),
            (PairLoop((body,), (body,), (0,)),),
            parents=(-1, 0),
            kinds=(0, 0),
            offsets=((0, 1),),
        )
        if fine:
            program.verify()
        else:
            with pytest.raises(BackendError):
                program.verify()


def test_sizes():
    assert Array("a", (2, 3)).size == 6 and Array("s", ()).size == 1 and Array("a", (2,)).level == ONLINE


# ---- parameters ----------------------------------------------------------------------------------------------


def parametrised() -> Program:
    """y = (m l sin(l)) x0 + (1 / m) x1, with m and l known before the call."""
    graph = Graph()
    m, length = (graph.leaf("input", (1, i), PARAMETER) for i in range(2))
    a, b = (graph.leaf("input", (0, i)) for i in range(2))
    values = [m * length * length.sin() * a + b / m, (m + length).sqrt()]
    return block_program("parametrised", [X, Array("p", (2,), PARAMETER)], [(Y, values)]).verify()


def expected(x: np.ndarray, p: np.ndarray) -> np.ndarray:
    m, length = p[0]
    first = m * length * np.sin(length) * x[:, 0] + x[:, 1] / m
    return np.column_stack([first, np.full(len(x), np.sqrt(m + length))])


@pytest.mark.parametrize("count", [1, 2, 3, 4, 5, 9])
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_parameters_are_one_row_for_all_samples(count: int, dtype: str):
    program, target = parametrised(), host_target()
    module = kernel_module(fuse(program) if target.fma else program, dtype, target)
    random = np.random.default_rng(0)
    x, p = random.normal(size=(count, 2)).astype(dtype), np.array([[1.3, 0.7]], dtype)
    for kernel in (Interpreter(program), MachineKernel(module.machine_code(), module.workspace)):
        out = np.full((count, 2), np.nan, dtype)
        kernel([x, p], [out])
        tolerance = 1e-15 if dtype == "float64" else 1e-6
        assert np.allclose(out, expected(x, p), rtol=tolerance, atol=tolerance)


def test_work_among_parameters_is_done_before_the_samples():
    ir = kernel_module(parametrised(), "float64", host_target()).ir
    kernel = ir[ir.index("define void @kernel") :]
    before, after = kernel.split("group:", 1)
    assert before.count("fdiv") == 1 and "fdiv" not in after
    assert before.count("@sincos(") == 1 and "@sincos(" not in after
    assert "llvm.sqrt" in before and "llvm.sqrt" not in after
    assert after.count("fmul") >= 1
