"""From operation counts to evaluations per second: Kozłowski 1990, section 5, and the same on this machine.

The paper divides the speed of its computer by the number of operations. Here the time of one operation is measured with
straight-line multiply-adds by the same compiler, and with the sine and cosine of one angle. Such a prediction does not
include loads, stores and register spills.
"""

from __future__ import annotations

import functools
from collections import Counter
from dataclasses import dataclass

import numpy as np

from linksweep import robots
from linksweep.backends.llvm import MachineKernel, kernel_module
from linksweep.backends.target import host_target
from linksweep.papers.published_counts import KOZLOWSKI_1, KOZLOWSKI_2
from linksweep.papers.studies.puma560 import PAPER_HZ
from linksweep.papers.studies.report import Check, Study, markdown_table
from linksweep.support.timing import best_seconds, machine
from linksweep.tracing.count import Counts
from linksweep.tracing.expression import Graph, Operand
from linksweep.tracing.passes import fuse
from linksweep.tracing.program import Array, Program, block_program

SAMPLES = 1024
CHAINS, LENGTH = 12, 64  # enough independent chains to hide the latency of a multiply-add
ANGLES = 8
FREE = ("input", "neg")
WITHIN = 3.0  # allowed factor between prediction and measurement, on a machine with other load
CASES = [
    ("inverse_dynamics", "khalil_kleinfinger"),
    ("inverse_dynamics", "boundary_value"),
    ("inverse_dynamics", "kane"),
    ("forward_dynamics", "filter_smoother"),
    ("forward_dynamics", "composite"),
    ("mass_matrix", "composite"),
    ("mass_matrix_inverse", "factorization"),
]


@dataclass(frozen=True, slots=True)
class Row:
    """One function: its counts, instructions after multiply-adds are fused, and seconds per sample."""

    robot: str
    function: str
    method: str
    counts: Counts
    fused: int
    predicted: float
    measured: float

    @property
    def name(self) -> str:
        return f"{self.robot}, {self.function}, {self.method}"


@dataclass(frozen=True, slots=True)
class Results:
    """multiply_add, angle: seconds that one takes."""

    multiply_add: float
    angle: float
    rows: list[Row]


def arithmetic() -> Program:
    """CHAINS x LENGTH multiply-adds and nothing else."""
    graph = Graph()
    factor, term, *rest = (graph.leaf("input", (0, k)) for k in range(CHAINS + 2))
    values: list[Operand] = [*rest]
    for _ in range(LENGTH):
        values = [graph.make("add", term, graph.make("mul", factor, value)) for value in values]
    array = Array("x", (CHAINS + 2,))
    return fuse(block_program("arithmetic", [array], [(Array("y", (CHAINS,)), values)]))


def sines() -> Program:
    """The sine and cosine of ANGLES angles; their sums are next to nothing beside."""
    graph = Graph()
    angles = [graph.leaf("input", (0, k)) for k in range(ANGLES)]
    values = [graph.make("add", graph.make("sin", a), graph.make("cos", a)) for a in angles]
    return block_program("sines", [Array("x", (ANGLES,))], [(Array("y", (ANGLES,)), values)])


def instructions(program: Program) -> int:
    """Number of operations after multiply-adds are fused, without sines."""
    ops = Counter(node.op for body in fuse(program).bodies() for node in body.nodes)
    return sum(number for op, number in ops.items() if op not in (*FREE, "sin", "cos"))


def kernel_of(program: Program) -> MachineKernel:
    module = kernel_module(program, "float64", host_target())
    return MachineKernel(module.machine_code(), module.workspace)


def compute(seconds: float = 0.001, rounds: int = 40) -> Results:
    """Measure the kernels in turns of about `seconds` each; the best of `rounds` counts."""
    arms = [robots.puma560(), robots.chain(6)]
    functions = [(arm, *case, arm.compile(case[0], method=case[1])) for arm in arms for case in CASES]
    kernels = [(kernel_of(program), program) for program in (arithmetic(), sines())]
    kernels += [(function.kernel("float64"), function.program) for *_, function in functions]
    rng, calls = np.random.default_rng(0), []
    for kernel, program in kernels:
        inputs = [rng.uniform(-1, 1, (SAMPLES, array.size)) for array in program.inputs]
        outputs = [np.empty((SAMPLES, array.size)) for array in program.outputs]
        calls.append(functools.partial(kernel, inputs, outputs))
    multiply_adds, angles, *measured = (best / SAMPLES for best in best_seconds(calls, seconds, rounds))
    one, angle = multiply_adds / (CHAINS * LENGTH), angles / ANGLES
    rows = []
    for (arm, function, method, compiled), best in zip(functions, measured, strict=True):
        fused = instructions(compiled.program)
        predicted = fused * one + compiled.counts.trig * angle
        rows.append(Row(arm.name, function, method, compiled.counts, fused, predicted, best))
    return Results(one, angle, rows)


def study(seconds: float = 0.001, rounds: int = 40) -> Study:
    results = compute(seconds, rounds)
    ratios = [row.measured / row.predicted for row in results.rows]
    worst = max(ratios, key=lambda ratio: abs(np.log(ratio)))
    checks = [
        Check(
            "measured over predicted time, the ratio farthest from 1", worst, f"within a factor of {WITHIN:g}",
            bool(1 / WITHIN <= worst <= WITHIN),
        )
    ]  # fmt: skip
    header = ["robot", "function", "method", "mul", "add", "div", "fused", "angles", "predicted_s", "measured_s"]
    table = [
        [row.robot, row.function, row.method, row.counts.mul, row.counts.add, row.counts.div, row.fused,
         row.counts.trig, row.predicted, row.measured]
        for row in results.rows
    ]  # fmt: skip
    return Study("rates", _report(results), {"rates": (header, table)}, _figures(results), checks)


def _figures(results: Results) -> dict:
    from linksweep import plots

    rows = sorted(results.rows, key=lambda row: row.predicted)
    bars, groups = {}, []
    for row in (row for row in rows if row.robot == "puma560"):
        for kind, seconds in (("predicted", row.predicted), ("measured", row.measured)):
            bars[f"{row.function}, {row.method}: {kind}"] = 1e-6 / seconds
            groups.append(kind)
    ordered = sorted(rows, key=lambda row: row.fused)
    arithmetic_only = [1e9 * row.fused * results.multiply_add for row in ordered]
    curves = {
        "measured": [1e9 * row.measured for row in ordered],
        "predicted": [1e9 * row.predicted for row in ordered],
        "predicted, without sines": arithmetic_only,
    }
    return {
        "rates_bars": (
            "PUMA 560: evaluations per second, predicted from the operation count and measured.",
            lambda: plots.bars(bars, groups=groups, x_label="million evaluations per second, one thread",
                               title="PUMA 560: from operation counts to rates"),
        ),
        "rates_times": (
            "Time of one evaluation by the number of operations.",
            lambda: plots.lines(
                [row.fused for row in ordered], curves, markers=True, x_label="operations, multiply-adds fused",
                y_label="time of one sample (ns)", title="Time by operation count",
            ),
        ),
    }  # fmt: skip


def _report(results: Results) -> str:
    totals = {"inverse_dynamics": KOZLOWSKI_1["right"].total, "forward_dynamics": KOZLOWSKI_2.total}
    counted = {name: int(total.mul(6) + total.add(6) + total.div(6)) for name, total in totals.items()}
    then = [
        [function, counted[function], f"{hertz:.0f}", f"{hertz * counted[function]:,.0f}"]
        for function, hertz in PAPER_HZ.items()
    ]
    ours = []
    for row in results.rows:
        c = row.counts
        ours.append([
            row.name, f"{c.mul} / {c.add} / {c.div}", row.fused, c.trig, f"{1e-6 / row.predicted:.1f}",
            f"{1e-6 / row.measured:.1f}", f"{row.measured / row.predicted:.2f}",
            f"{c.trig * results.angle / row.predicted:.0%}",
        ])  # fmt: skip
    head = ["", "mul / add / div", "fused", "angles", "predicted (10⁶/s)", "measured (10⁶/s)", "time ratio", "sines"]
    speed = 2e-9 / results.multiply_add
    return f"""# From operation counts to rates

K. Kozłowski, *New computational algorithms for a discrete Kalman filter in robot dynamics* (1990), section 5: "The
frequency calculated from these data, i.e. the number of arithmetic operations and the clock frequency, is the same as
the frequency obtained experimentally".

## Then

The paper's rates on an 80386 with an 80387, times its operation counts for six joints (inverse dynamics by Table 1
with right angles, forward dynamics by Table 2):

{markdown_table(["", "operations", "rate (Hz)", "operations per second"], then)}

The paper does not print the clock frequency, so its prediction cannot be repeated. Its two rates are consistent within
about 25 %, which is also the accuracy of predictions from counts here.

## Now

The machine is {machine()}, with one thread, float64 and a batch of {SAMPLES}. One multiply-add takes
{1e9 * results.multiply_add:.3f} ns ({speed:.0f} Gflop/s), the sine and cosine of one angle
{1e9 * results.angle:.2f} ns. The prediction is the sum of both. *Fused* counts operations after fusing multiply-adds.
*Sines* is their share of the predicted time.

{markdown_table(head, ours)}

{{figure:rates_bars}}

{{figure:rates_times}}

Counts predict the rate of long programs best. A processor with adders beside its multiply-add units is faster than
predicted. A program with few operations and many results, such as a mass matrix, is slower, because stores are not
counted.
"""
