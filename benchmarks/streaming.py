"""Inverse dynamics of the UR5 from disk to disk: ten million samples, beside the same in memory.

    python benchmarks/streaming.py [--samples 10000000] [--folder /tmp]

Each side runs in a process of its own, whose peak of resident memory is printed. In memory: results in arrays that the
function allocates. Bars of issue 14: at most 600 MB resident, at least 60 % of the speed in memory.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from measure import example, heading, load_quietly

import linksweep as ls

NAMES, ROUNDS = ("q", "qd", "qdd"), 3


def side(kind: str, folder: Path) -> None:
    """In a process of its own."""
    f = load_quietly(example("ur5_robot.urdf")).compile("inverse_dynamics")
    files = {name: folder / f"{name}.npy" for name in NAMES}
    times = []
    arrays = [np.load(path) for path in files.values()] if kind == "memory" else []
    for _ in range(ROUNDS):
        began, spent = time.perf_counter(), time.process_time()
        if kind == "memory":
            f(*arrays)
        else:
            ls.stream(f, files, folder / "tau.npy", progress=False)
        times.append((time.perf_counter() - began, time.process_time() - spent))
    status = Path("/proc/self/status").read_text()  # getrusage would give the parent's peak, if that was higher
    peak = int(status.partition("VmHWM:")[2].split()[0]) / 1024
    print(json.dumps({"seconds": min(t[0] for t in times), "processor": min(t[1] for t in times), "peak": peak}))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--samples", type=int, default=10_000_000)
    parser.add_argument("--folder", default=None)
    parser.add_argument("--side", nargs=2)
    options = parser.parse_args()
    if options.side:
        side(options.side[0], Path(options.side[1]))
        return
    print(heading())
    with tempfile.TemporaryDirectory(dir=options.folder) as place:
        folder, rng = Path(place), np.random.default_rng(0)
        for name in NAMES:
            table = np.lib.format.open_memmap(folder / f"{name}.npy", "w+", np.float64, (options.samples, 6))
            for k in range(0, options.samples, 100_000):
                table[k : k + 100_000] = rng.uniform(-2.0, 2.0, table[k : k + 100_000].shape)
            table.flush()
            del table
        found = {}
        for kind in ("memory", "disk"):
            run = subprocess.run(
                [sys.executable, __file__, "--side", kind, place], capture_output=True, text=True, check=True
            )
            found[kind] = json.loads(run.stdout)
            print(
                f"{kind:7} {found[kind]['seconds']:7.2f} s  (processor {found[kind]['processor']:.2f} s), "
                f"{found[kind]['peak']:6.0f} MB resident"
            )
        share = found["memory"]["seconds"] / found["disk"]["seconds"]
        print(f"speed from disk to disk: {100 * share:.0f} % of that in memory")


if __name__ == "__main__":
    main()
