"""Which elements of a program's results are written where, and which are 0 whatever the sample."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..tracing.expression import Node
from ..tracing.program import Output, PairLoop, PairOutput, Program


def paired_outputs(program: Program) -> list[int]:
    """Results that pairs of links write: of links on different branches there is no pair, and their elements are 0."""
    return sorted({e.output for b in program.bodies() for e in b.effects if isinstance(e, PairOutput)})


def unwritten(program: Program, output: int) -> np.ndarray:
    """The elements of a result that no pair writes."""
    written = np.zeros(program.outputs[output].size, bool)
    tables = [np.array(offsets) for offsets in program.offsets]
    for step in program.steps:
        if not isinstance(step, PairLoop):
            continue
        above: list[tuple[list[int], list[int]]] = [([], []) for _ in step.steps]
        own: list[list[int]] = [[] for _ in step.starts]
        for i, kind in enumerate(program.kinds):
            j = program.parents[i] if kind in step.kinds else -1
            if kind in step.kinds:
                own[kind].append(i)
            while j >= 0:
                above[program.kinds[j]][0].append(i)
                above[program.kinds[j]][1].append(j)
                j = program.parents[j]
        runs = [*zip(step.starts, ((links, links) for links in own), strict=True), *zip(step.steps, above, strict=True)]
        for body, (firsts, links) in runs:
            for effect in body.effects if links else ():
                if isinstance(effect, PairOutput) and effect.output == output:
                    of_i, of_j, component = effect.where
                    written[tables[of_i][firsts] + tables[of_j][links] + component] = True
    return np.flatnonzero(~written)


def constant_zeros(program: Program, output: int) -> list[int]:
    """The elements of a result that are the number 0, in a program without loops."""
    effects = [e for body in program.bodies() for e in body.effects if isinstance(e, Output) and e.output == output]
    return [e.where[0] for e in effects if not isinstance(e.value, Node) and e.value == 0.0]


def neighbours(components: Sequence[int]) -> list[list[int]]:
    """Numbers that follow on each other, together."""
    runs: list[list[int]] = []
    for component in sorted(components):
        if runs and component == runs[-1][-1] + 1:
            runs[-1].append(component)
        else:
            runs.append([component])
    return runs
