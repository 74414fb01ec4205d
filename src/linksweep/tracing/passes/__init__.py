"""Programs rewritten into cheaper ones: every way to a Program ends in `optimise`."""

from __future__ import annotations

from ..program import Program
from .dead_and_fused import remove_dead
from .factoring import factor_sums

PASSES = (remove_dead, factor_sums)  # multiply-adds are fused later, where the target has them


def optimise(program: Program) -> Program:
    """The same results with fewer operations; verified, so that machine code may run it."""
    for rewrite in PASSES:
        program = rewrite(program)
    return program.verify()
