"""Two threads against one on UR5: 4096 samples, which are too few to share, and 65,536.

    python benchmarks/threads.py [--rounds 400]

Single calls take turns; the best of each side is compared. Both cores must be free at one moment for that, so medians
and load are printed beside: on a busy machine they say how busy it was, not how good the threads are.
"""

from __future__ import annotations

import argparse
import statistics
import time

import numpy as np
from measure import example, heading, load_quietly, table, time_of

BATCHES, FUNCTIONS, BARS = (4096, 65_536), ("inverse_dynamics", "forward_dynamics"), (">= 1.0x", ">= 1.8x")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=400)
    options = parser.parse_args()
    robot = load_quietly(example("ur5_robot.urdf"))
    cells = [("UR5, a sample", "samples", "one thread", "two", "ratio of the best", "of the medians", "bar")]
    print(heading())
    for function in FUNCTIONS:
        sides = [robot.compile(function, threads=threads) for threads in (1, 2)]
        for batch, bar in zip(BATCHES, BARS, strict=True):
            x = np.random.default_rng(0).uniform(-1, 1, (3, batch, robot.nv))
            out = np.empty((batch, robot.nv))
            times: list[list[float]] = [[], []]
            for _ in range(options.rounds):
                for side, kept in zip(sides, times, strict=True):
                    began = time.perf_counter()
                    side(*x, out=out)
                    kept.append((time.perf_counter() - began) / batch)
            best, middle = [min(t) for t in times], [statistics.median(t) for t in times]
            cells.append((
                function, f"{batch:,}", time_of(best[0]), time_of(best[1]), f"{best[0] / best[1]:.2f}x",
                f"{middle[0] / middle[1]:.2f}x", bar,
            ))  # fmt: skip
    print(table(cells))


if __name__ == "__main__":
    main()
