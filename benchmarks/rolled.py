"""Programs as loops over the links (rolled) against programs written out (unrolled), and what was predicted of both.

    python benchmarks/rolled.py [--quick] [--table NAME ...] [--json FILE]

The last table is about the rule (docs/defaults.md): operations as `predicted_operations` has them from the robot's
structure, those of the programs, and the time of a sample. Beyond LARGEST operations nothing is written out.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
import warnings
from typing import Any

import numpy as np
from measure import alternate, example, heading, table, time_of, write_json

import linksweep as ls
from linksweep.functions.defaults import predicted_operations

FUNCTIONS = ("inverse_dynamics", "forward_dynamics")
SHORT, LONG = 30, 1000
BATCH = 1024  # hides the cost of a call at 12 links
COSTED = ("inverse_dynamics", "forward_dynamics", "mass_matrix", "mass_matrix_inverse", "coriolis_matrix", "regressor")
LARGEST = 15_000  # operations that LLVM is given in one piece here; it takes some ten seconds for twice as many
TABLES = ("lengths", "forms", "cost")
FEW, TURN = 64, 0.002  # samples, and seconds: short beside a time slice, so that a busy machine leaves good turns


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


def cost_robots(quick: bool) -> dict[str, ls.Robot]:
    talos = example("talos_reduced.urdf")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ls.ModelWarning)
        found = {"UR5": ls.load(example("ur5_robot.urdf")), "Talos": ls.load(talos)}
        found["Talos, free"] = ls.load(talos, base="floating")
    return found | {f"chain({n})": ls.robots.chain(n) for n in ((12,) if quick else (12, 30, 60))}


def by_cost(rounds: int, quick: bool) -> list[dict[str, Any]]:
    """Every robot and function: operations predicted and counted, and the time of both forms."""
    rows = []
    for name, robot in cost_robots(quick).items():
        rng = np.random.default_rng(0)
        q = np.stack([robot.random(rng) for _ in range(FEW)])
        v, x = rng.uniform(-1, 1, (2, FEW, robot.nv))
        for function in COSTED:
            predicted = predicted_operations(robot.canonical, function, 0)
            row: dict[str, Any] = {"robot": name, "function": function, "predicted": predicted}
            row["loops"] = predicted_operations(robot.canonical, function, 0, loops=True)
            args = (q, v, x)[: 1 if function.startswith("mass") else 2 if function == "coriolis_matrix" else 3]
            forms = {"rolled": True} | ({"unrolled": False} if predicted <= LARGEST else {})
            compiled = {form: f for form, loops in forms.items() if (f := _compiled(robot, function, loops))}
            outs = {form: f(*args) for form, f in compiled.items()}
            sides = [lambda f=f, o=outs[form], a=args: f(*a, out=o) for form, f in compiled.items()]
            row |= {form: t / FEW for form, t in zip(compiled, alternate(sides, rounds, TURN), strict=True)}
            if "unrolled" in compiled:
                row["counted"] = compiled["unrolled"].counts.total
            row["taken"] = "loops" if robot.compile(function).program.rolled else "written out"
            rows.append(row)
            print(f"  {name} {function}", file=sys.stderr, flush=True)
    return rows


def _compiled(robot: ls.Robot, function: str, loops: bool) -> Any:
    """None where the method has no form as loops."""
    try:
        return robot.compile(function, rolled=loops)
    except ls.ArgumentError:
        return None


def cost_table(rows: list[dict[str, Any]]) -> str:
    cells = [("", "predicted", "counted", "written out", "predicted", "loops", "loops / written out", "taken")]
    for row in rows:
        loops, written = (time_of(row[form]) if form in row else "-" for form in ("rolled", "unrolled"))
        cells.append((
            f"{row['robot']}: {row['function']}", f"{row['predicted']:,.0f}",
            f"{row['counted']:,}" if "counted" in row else "-", written, f"{row['loops']:,.0f}", loops,
            f"{row['rolled'] / row['unrolled']:.2f}x" if "-" not in (loops, written) else "-", row["taken"],
        ))  # fmt: skip
    return table(cells)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="few rounds, short chains")
    parser.add_argument("--table", nargs="*", choices=TABLES, default=TABLES)
    parser.add_argument("--json", metavar="FILE")
    options = parser.parse_args()
    if "lengths" in options.table:
        os.environ["LINKSWEEP_CACHE"] = "off"  # compile times are measured here
    rounds, sizes = (3, (12, 20)) if options.quick else (9, (12, 20, 30, 45, 60, 80, 100))

    print(heading())
    rows = []
    if "lengths" in options.table:
        rows += _print_lengths(long_chain(rounds))
    if "forms" in options.table:
        rows += _print_forms(crossover(sizes, rounds))
    if "cost" in options.table:
        costs = by_cost(4 * rounds, options.quick)
        print(cost_table(costs))
        rows += costs
    write_json(options.json, rows)


def _print_lengths(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    cells = [(f"rolled, chain({LONG})", "trace + compile", f"per link, n = {SHORT}", f"n = {LONG}", "ratio")]
    for row in rows:
        short, long = row[f"per_link_{SHORT}"], row[f"per_link_{LONG}"]
        cells.append((row["function"], time_of(row["compile"]), time_of(short), time_of(long), f"{long / short:.2f}x"))
    print(table(cells))
    print("Bars: <= 2 s, <= 1.3x\n")
    return rows


def _print_forms(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    cells = [("chain(n), per sample", "n", "rolled", "unrolled", "rolled / unrolled", "difference")]
    for row in rows:
        loops, written = row["rolled"], row["unrolled"]
        cells.append((
            row["function"], str(row["n"]), time_of(loops), time_of(written), f"{loops / written:.2f}x",
            f"{row['difference']:.0e}",
        ))  # fmt: skip
    print(table(cells))
    print("Bar for n = 12: <= 1.4x\n")
    return rows


if __name__ == "__main__":
    main()
