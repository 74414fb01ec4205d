"""Programs as loops over the links (rolled) against programs written out (unrolled), on random chains.

python benchmarks/rolled.py [--quick] [--json FILE]
"""

from __future__ import annotations

import argparse
import os
import time
from typing import Any

import numpy as np
from measure import alternate, heading, table, time_of, write_json

import linksweep as ls

FUNCTIONS = ("inverse_dynamics", "forward_dynamics")
SHORT, LONG = 30, 1000
BATCH = 1024  # hides the cost of a call at 12 links


def states(n: int, batch: int) -> np.ndarray:
    return np.random.default_rng(0).uniform(-1, 1, (3, batch, n))


def crossover(sizes: tuple[int, ...], rounds: int) -> list[dict[str, Any]]:
    """Both forms of both functions, per sample, and how far apart their results are."""
    rows = []
    for n in sizes:
        robot, x = ls.robots.chain(n), states(n, BATCH)
        for name in FUNCTIONS:
            rolled, unrolled = (robot.compile(name, rolled=form) for form in (True, False))
            a, b = rolled(*x), unrolled(*x)
            loops, written = (
                t / BATCH for t in alternate([lambda r=rolled, x=x: r(*x), lambda u=unrolled, x=x: u(*x)], rounds)
            )
            difference = float(np.abs(a - b).max() / np.abs(b).max())
            rows.append({"n": n, "function": name, "rolled": loops, "unrolled": written, "difference": difference})
    return rows


def long_chain(rounds: int) -> list[dict[str, Any]]:
    """Trace and compile for 1000 links; time per link and sample against 30 links, both rolled."""
    rows = []
    short, long = ls.robots.chain(SHORT), ls.robots.chain(LONG)
    for name in FUNCTIONS:
        began = time.perf_counter()
        many = long.compile(name, rolled=True)
        many(*states(LONG, 1))
        compiled = time.perf_counter() - began
        few = short.compile(name, rolled=True)
        x, y = states(SHORT, BATCH), states(LONG, BATCH)
        at_30, at_1000 = alternate([lambda f=few, x=x: f(*x), lambda f=many, y=y: f(*y)], rounds)
        at_30, at_1000 = at_30 / (SHORT * BATCH), at_1000 / (LONG * BATCH)
        rows.append({"function": name, "compile": compiled, f"per_link_{SHORT}": at_30, f"per_link_{LONG}": at_1000})
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="few rounds, short chains")
    parser.add_argument("--json", metavar="FILE")
    options = parser.parse_args()
    os.environ["LINKSWEEP_CACHE"] = "off"  # compile times are measured here
    rounds, sizes = (3, (12, 20)) if options.quick else (9, (12, 20, 30, 45, 60, 80, 100))

    print(heading())
    lengths = long_chain(rounds)
    print(
        table(
            [
                (f"rolled, chain({LONG})", "trace + compile", f"per link, n = {SHORT}", f"n = {LONG}", "ratio"),
                *(
                    (
                        row["function"],
                        time_of(row["compile"]),
                        time_of(row[f"per_link_{SHORT}"]),
                        time_of(row[f"per_link_{LONG}"]),
                        f"{row[f'per_link_{LONG}'] / row[f'per_link_{SHORT}']:.2f}x",
                    )
                    for row in lengths
                ),
            ]
        )
    )
    print("Bars: <= 2 s, <= 1.3x\n")
    rows = crossover(sizes, rounds)
    print(
        table(
            [
                ("chain(n), per sample", "n", "rolled", "unrolled", "rolled / unrolled", "difference"),
                *(
                    (
                        row["function"],
                        str(row["n"]),
                        time_of(row["rolled"]),
                        time_of(row["unrolled"]),
                        f"{row['rolled'] / row['unrolled']:.2f}x",
                        f"{row['difference']:.0e}",
                    )
                    for row in rows
                ),
            ]
        )
    )
    print("Bar for n = 12: <= 1.4x")
    write_json(options.json, [*lengths, *rows])


if __name__ == "__main__":
    main()
