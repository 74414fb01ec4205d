"""Evaluations per second as the operation count predicts them, beside those measured.

    python benchmarks/rates.py [--json FILE] [--quick]

The papers multiply a count by the time of one operation. Here that time is measured: of straight-line multiply-adds
by the same compiler, and of the sine and cosine of one angle. A prediction knows nothing of loads, stores and registers
that do not suffice.
"""

from __future__ import annotations

import argparse
from collections import Counter

import measure
import numpy as np

import linksweep as ls
from linksweep.backends.llvm import MachineKernel, kernel_module
from linksweep.backends.target import host_target
from linksweep.tracing.expression import Graph, Operand
from linksweep.tracing.passes.dead_and_fused import fuse
from linksweep.tracing.program import Array, Program, block_program

SAMPLES = 1024
CHAINS, LENGTH = 12, 64  # as many results under way as hide the time of one multiply-add
ANGLES = 8
FREE = ("input", "neg")
CASES = [
    ("inverse_dynamics", "khalil_kleinfinger"),
    ("inverse_dynamics", "newton_euler"),
    ("inverse_dynamics", "kane"),
    ("forward_dynamics", "filter_smoother"),
    ("forward_dynamics", "composite"),
    ("mass_matrix", "composite"),
    ("mass_matrix_inverse", "factorization"),
]


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


def kernel_of(program: Program) -> MachineKernel:
    module = kernel_module(program, "float64", host_target())
    return MachineKernel(module.machine_code(), module.workspace)


def seconds(kernels: list[tuple[MachineKernel, Program]], rounds: int) -> list[float]:
    """The best seconds per sample of each kernel, in turns that are short beside a time slice."""
    rng = np.random.default_rng(0)
    sides = []
    for kernel, program in kernels:
        inputs = [rng.uniform(-1, 1, (SAMPLES, array.size)) for array in program.inputs]
        outputs = [np.empty((SAMPLES, array.size)) for array in program.outputs]
        sides.append(lambda kernel=kernel, inputs=inputs, outputs=outputs: kernel(inputs, outputs))
    return [best / SAMPLES for best in measure.alternate(sides, rounds, at_least=0.0005)]


def instructions(program: Program) -> int:
    """Operations after multiply-adds are fused, sines apart."""
    ops = Counter(node.op for body in fuse(program).bodies() for node in body.nodes)
    return sum(number for op, number in ops.items() if op not in (*FREE, "sin", "cos"))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", help="write the figures to this file")
    parser.add_argument("--quick", action="store_true", help="a first look and no result")
    given = parser.parse_args()
    robots = [ls.robots.puma560(), ls.robots.chain(6)]
    functions = [(robot, robot.compile(f, method=m)) for robot in robots for f, m in CASES]
    reference = [arithmetic(), sines()]
    kernels = [(kernel_of(program), program) for program in reference]
    kernels += [(function.kernel("float64"), function.program) for _, function in functions]
    multiply_add, angles, *measured = seconds(kernels, 30 if given.quick else 400)
    one, angle = multiply_add / (CHAINS * LENGTH), angles / ANGLES
    print(measure.heading())
    print(f"one multiply-add {one * 1e9:.3f} ns ({2 / one / 1e9:.1f} Gflop/s), one angle {angle * 1e9:.2f} ns\n")
    rows, facts = [], []
    for ((robot, function), (f, m)), best in zip(
        zip(functions, CASES * len(robots), strict=True), measured, strict=True
    ):
        counts, work = function.counts, instructions(function.program)
        predicted = work * one + counts.trig * angle
        rows.append(
            [
                f"{robot.name} {f} {m}", str(counts.mul), str(counts.add), str(counts.div), str(work), str(counts.trig),
                f"{1e-6 / predicted:.1f}", f"{1e-6 / best:.1f}", f"{best / predicted:.2f}",
            ]
        )  # fmt: skip
        facts.append({"robot": robot.name, "function": f, "method": m, "predicted": predicted, "measured": best})
    heading = ["", "mul", "add", "div", "fused", "angles", "predicted, M/s", "measured, M/s", "time ratio"]
    print(measure.table([heading, *rows]))
    measure.write_json(given.json, facts)


if __name__ == "__main__":
    main()
