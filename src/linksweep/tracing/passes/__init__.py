"""Programs rewritten into cheaper ones: every way to a Program ends in `optimise`."""

from __future__ import annotations

from ..program import Program
from .dead_and_fused import remove_dead
from .factoring import factor_sums

PASSES = (remove_dead, factor_sums)  # multiply-adds are fused later, where the target has them


def optimise(program: Program, quick: bool = False) -> Program:
    """The same results with fewer operations; verified, so that machine code may run it.

    quick: without taking out common factors, which takes as long as tracing did.
    """
    for rewrite in PASSES[:1] if quick else PASSES:
        program = rewrite(program)
    return program.verify()
