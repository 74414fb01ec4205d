"""What stands behind the rules of src/linksweep/defaults.py: each function by the methods that could be its default.

    python benchmarks/defaults.py [--quick] [--json FILE]

One thread, batches of 1024. The methods of a robot take turns, one call at a time, so that a busy moment meets all of
them; each figure is the best call, in nanoseconds per sample. The table of docs/defaults.md is printed by this, and
tests/functions/test_defaults.py reads it there.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from measure import alternate, example, heading, table, write_json

import linksweep as ls
from linksweep.errors import ModelWarning

BATCH = 1024
FILES = {
    "UR5": "ur5_robot", "Kinova": "kinova", "Z1": "z1", "xArm7": "xarm7", "Panda": "panda", "Tiago": "tiago_no_hand",
    "Baxter": "baxter", "Talos": "talos_reduced", "G1": "g1_29dof_rev_1_0", "iCub": "icub_reduced",
    "Allegro hand": "allegro_right_hand", "Solo12": "solo12", "ANYmal with arm": "anymal-kinova", "Bolt": "bolt",
    "Go2": "go2",
}  # fmt: skip
FORWARD = ("composite", "fd3", "fd4", "filter_smoother")
CASES: dict[str, tuple[str, tuple[str, ...], tuple[str, ...]]] = {
    "forward dynamics, arms and hands": (
        "forward_dynamics", FORWARD,
        ("puma560", "stanford", "UR5", "Kinova", "Z1", "xArm7", "Panda", "Allegro hand", "Tiago", "Baxter"),
    ),
    "forward dynamics, legs": (
        "forward_dynamics", FORWARD,
        ("Solo12", "ANYmal with arm", "Talos", "G1", "iCub", "Bolt, floating", "Solo12, floating", "Go2, floating",
         "UR5, floating", "ANYmal with arm, floating", "Talos, floating"),
    ),
    "forward dynamics, random chains": (
        "forward_dynamics", FORWARD, tuple(f"chain({n})" for n in (2, 4, 6, 8, 9, 10, 12, 16, 20)),
    ),
    "forward dynamics, loops": ("forward_dynamics", FORWARD[1:], ("chain(80)", "chain(200)")),
    "inverse dynamics": (
        "inverse_dynamics", ("khalil_kleinfinger", "newton_euler", "boundary_value", "kane"),
        ("puma560", "UR5", "Panda", "Talos", "Talos, floating", "chain(6)", "chain(80)"),
    ),
    "mass matrix": (
        "mass_matrix", ("composite", "covariance"), ("puma560", "UR5", "Panda", "Talos, floating", "chain(12)"),
    ),
    "inverse of the mass matrix": (
        "mass_matrix_inverse", ("factorization", "costate_covariance"),
        ("puma560", "UR5", "xArm7", "chain(4)", "chain(8)", "chain(16)", "chain(24)"),
    ),
}  # fmt: skip


def robot_of(name: str) -> ls.Robot:
    """A robot by its name in the tables."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ModelWarning)
        if name.startswith("chain("):
            return ls.robots.chain(int(name[6:-1]))
        stem, _, base = name.partition(", ")
        if stem in FILES:
            return ls.load(example(f"{FILES[stem]}.urdf"), base=base or "fixed")
        return getattr(ls.robots, stem)()


def measured(robot: ls.Robot, function: str, methods: tuple[str, ...], rounds: int) -> dict[str, float]:
    """Nanoseconds per sample of each method, the program as `compile` makes it."""
    rng = np.random.default_rng(0)
    sides: list[Callable[[], Any]] = []
    for method in methods:
        compiled = robot.compile(function, method=method, dtype="float64")
        vectors = [rng.uniform(-1, 1, (BATCH, robot.nv)) for _ in compiled.inputs[1:]]
        q = np.stack([robot.random(rng) for _ in range(BATCH)])
        sides.append(lambda f=compiled, args=(q, *vectors): f(*args))
    seconds = alternate(sides, rounds, at_least=0.0)
    return {method: 1e9 * s / BATCH for method, s in zip(methods, seconds, strict=True)}


def rows_of(title: str, rounds: int) -> list[dict[str, Any]]:
    function, methods, names = CASES[title]
    rows = []
    for name in names:
        robot = robot_of(name)
        found = measured(robot, function, methods, rounds)
        chosen = robot.methods(function)[0]
        rows.append({"table": title, "robot": name, "depth": robot.canonical.depth, "chosen": chosen, "ns": found})
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="fewer rounds: a look, not a result")
    parser.add_argument("--json", metavar="FILE", type=Path, help="write the rows, and what they ran on, here")
    options = parser.parse_args()

    print(heading())
    everything = []
    for title, (_, methods, _) in CASES.items():
        rows = rows_of(title, 50 if options.quick else 1500)
        everything += rows
        cells = [
            (
                row["robot"], str(row["depth"]), *(f"{row['ns'][m]:.1f}" for m in methods), row["chosen"],
                f"{row['ns'][row['chosen']] / min(row['ns'].values()):.2f}",
            )
            for row in rows
        ]  # fmt: skip
        print("\n" + table([(title, "depth", *methods, "default", "of best"), *cells]), flush=True)
    write_json(options.json and str(options.json), everything)


if __name__ == "__main__":
    main()
