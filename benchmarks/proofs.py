"""How long exact proofs take: a robot with its programs, every chain of R and P joints up to five, a floating tree.

    python benchmarks/proofs.py

Prints for each the number of statements, the largest degree, the chance of an error, and seconds (and, on a busy
machine, those of the processor).
"""

from __future__ import annotations

import time
from collections.abc import Callable

import linksweep as ls
from linksweep.exact import Proof, patterns

TREE = "F(RRR)(RPR)(RR)(RP)S"  # 12 links, 19 freedoms


def measured(title: str, run: Callable[[], list[Proof]]) -> tuple[float, float]:
    wall, processor = time.perf_counter(), time.process_time()
    proofs = run()
    wall, processor = time.perf_counter() - wall, time.process_time() - processor
    count = sum(len(proof.outcomes) for proof in proofs)
    refuted = sum(len(proof.refuted) for proof in proofs)
    degree, chance = max(proof.degree for proof in proofs), max(proof.chance for proof in proofs)
    print(
        f"{title:32} {count:6} statements, {refuted} refuted, degree <= {degree:7}, chance of an error < {chance:.1e}, "
        f"{wall:5.1f} s ({processor:.1f} s of processor)"
    )
    return wall, processor


def main() -> None:
    times = [
        measured("puma560 with its programs", lambda: [ls.prove(ls.robots.puma560())]),
        measured("62 chains of R and P to n = 5", lambda: [ls.prove(pattern) for pattern in patterns(5)]),
        measured(f"{TREE}", lambda: [ls.prove(TREE)]),
    ]
    wall, processor = (sum(column) for column in zip(*times, strict=True))
    print(f"{'together':32} {wall:.1f} s ({processor:.1f} s of processor)")


if __name__ == "__main__":
    main()
