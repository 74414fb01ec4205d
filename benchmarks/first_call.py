"""How long the first call takes: tracing and compiling, and from the disk cache in a new process.

    python benchmarks/first_call.py [--runs N] [--json FILE]

Every run is a process of its own, with its imports done and the robot loaded before the clock starts; what it times is
`robot.forward_dynamics(q, qd, tau)`, LLVM's own start included. The cache is a folder that is new for each robot.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

ROBOTS = ("ur5_robot.urdf", "panda.urdf", "talos_reduced.urdf")


def run_once(name: str) -> None:
    """In the child: time the first call, print seconds in all, in tracing, and how often it traced."""
    import llvmlite.binding  # noqa: F401
    import numpy as np
    from measure import example, load_quietly

    from linksweep.backends import entry, ir, llvm, target  # noqa: F401
    from linksweep.functions.computation import Together

    robot = load_quietly(example(name))
    q, qd, tau = np.random.default_rng(0).uniform(-1, 1, (3, 16, robot.nv))
    traced: list[float] = []
    trace = Together.trace

    def timed(self: Together) -> Any:
        began = time.perf_counter()
        program = trace(self)
        traced.append(time.perf_counter() - began)
        return program

    Together.trace = timed
    began = time.perf_counter()
    robot.forward_dynamics(q, qd, tau)
    print(json.dumps({"total": time.perf_counter() - began, "trace": sum(traced), "traces": len(traced)}))


def child(name: str, folder: str) -> dict[str, float]:
    environment = {**os.environ, "LINKSWEEP_CACHE": folder}
    command = [sys.executable, __file__, "--child", name]
    return json.loads(subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout)


def measured(name: str, runs: int) -> dict[str, Any]:
    fresh, cached = [], []
    for _ in range(runs):
        with tempfile.TemporaryDirectory() as folder:
            fresh.append(child(name, folder))
            cached.append(child(name, folder))
    assert all(run["traces"] for run in fresh) and not any(run["traces"] for run in cached)
    best = min(fresh, key=lambda run: run["total"])
    return {
        "robot": Path(name).stem,
        "fresh": best["total"],
        "trace": best["trace"],
        "compile": best["total"] - best["trace"],
        "fresh_median": statistics.median(run["total"] for run in fresh),
        "cached": min(run["total"] for run in cached),
        "cached_median": statistics.median(run["total"] for run in cached),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=7)
    parser.add_argument("--json", metavar="FILE")
    parser.add_argument("--child", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        run_once(options.child)
        return
    from measure import heading, table, time_of, write_json

    print(heading())
    rows = [measured(name, options.runs) for name in ROBOTS]
    columns = ("fresh", "trace", "compile", "fresh_median", "cached", "cached_median")
    names = ("trace + compile", "trace", "compile", "median", "from the cache", "median")
    print(table([("", *names), *((row["robot"], *(time_of(row[column]) for column in columns)) for row in rows)]))
    print(f"Forward dynamics, best of {options.runs} processes. Bars for UR5: <= 0.4 s, and <= 20 ms from the cache.")
    write_json(options.json, rows)


if __name__ == "__main__":
    main()
