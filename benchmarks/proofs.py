"""How long exact proofs take: a robot with its programs, every chain of R and P joints up to five, a floating tree.

python benchmarks/proofs.py [--json FILE]
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from typing import Any

from measure import heading, table, write_json

import linksweep as ls
from linksweep.papers.exact import Proof, patterns

TREE = "F(RRR)(RPR)(RR)(RP)S"  # 12 links, 19 freedoms


def measured(title: str, run: Callable[[], list[Proof]]) -> dict[str, Any]:
    wall, processor = time.perf_counter(), time.process_time()
    proofs = run()
    wall, processor = time.perf_counter() - wall, time.process_time() - processor
    return {
        "what": title,
        "statements": sum(len(proof.outcomes) for proof in proofs),
        "refuted": sum(len(proof.refuted) for proof in proofs),
        "degree": max(proof.degree for proof in proofs),
        "chance": max(proof.chance for proof in proofs),
        "seconds": wall,
        "processor": processor,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", metavar="FILE", help="write the figures as JSON too")
    options = parser.parse_args()
    print(heading())
    rows = [
        measured("puma560 with its programs", lambda: [ls.prove(ls.robots.puma560())]),
        measured("62 chains of R and P to n = 5", lambda: [ls.prove(pattern) for pattern in patterns(5)]),
        measured(TREE, lambda: [ls.prove(TREE)]),
    ]
    cells = [
        (row["what"], str(row["statements"]), str(row["refuted"]), str(row["degree"]), f"{row['chance']:.1e}",
         f"{row['seconds']:.1f} s", f"{row['processor']:.1f} s") for row in rows
    ]  # fmt: skip
    print(table([("proved", "statements", "refuted", "degree <=", "chance <", "time", "of processor"), *cells]))
    total, processor = (sum(row[key] for row in rows) for key in ("seconds", "processor"))
    print(f"Together {total:.1f} s ({processor:.1f} s of processor). Bar: 60 s")
    write_json(options.json, rows)


if __name__ == "__main__":
    main()
