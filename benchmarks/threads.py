"""Two threads against one on UR5: 4096 samples, which are too few to share, and 65,536.

    python benchmarks/threads.py [--rounds 400]

Single calls take turns; the best of each side is compared. While one thread works the other goes to sleep, so every
call of two wakes it. The ratio "in a row" is of calls that follow calls of their kind, in which it is awake. Both cores
must be free at one moment for the best, so medians and load are printed beside: on a busy machine they say how busy it
was, not how good the threads are. The last column is what two processes that share nothing reach side by side, against
one alone: what the two cores have to give.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
import time

import numpy as np
from measure import example, heading, load_quietly, table, time_of

BATCHES, FUNCTIONS, BARS = (4096, 65_536), ("inverse_dynamics", "forward_dynamics"), (">= 1.0x", ">= 1.8x")


SECONDS = 2.0  # that processes run side by side


def alone(function: str, begin: float) -> None:
    """A process of its own, from a moment that others know: prints the middle time of its calls."""
    f = load_quietly(example("ur5_robot.urdf")).compile(function)
    x = np.random.default_rng(0).uniform(-1, 1, (3, BATCHES[-1], 6))
    out, kept = np.empty(x.shape[1:]), []
    f(*x, out=out)
    while time.time() < begin:
        pass
    while time.time() < begin + SECONDS:
        began = time.perf_counter()
        f(*x, out=out)
        kept.append(time.perf_counter() - began)
    print(statistics.median(kept))


def two_processes(function: str) -> float:
    """How much more two processes do at one time than one."""

    def side_by_side(count: int) -> list[float]:
        command = [sys.executable, __file__, "--alone", function, "--begin", str(time.time() + 3.0)]
        started = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(count)]
        return [float(process.communicate()[0]) for process in started]

    (one,) = side_by_side(1)
    return sum(one / took for took in side_by_side(2))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=400)
    parser.add_argument("--alone", choices=FUNCTIONS, help=argparse.SUPPRESS)
    parser.add_argument("--begin", type=float, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.alone:
        alone(options.alone, options.begin)
        return
    robot = load_quietly(example("ur5_robot.urdf"))
    cells = [(
        "UR5, a sample", "samples", "one thread", "two", "ratio of the best", "of the medians", "in a row", "bar",
        "two processes",
    )]  # fmt: skip
    print(heading())
    for function in FUNCTIONS:
        sides = [robot.compile(function, threads=threads) for threads in (1, 2)]
        for batch, bar in zip(BATCHES, BARS, strict=True):
            x = np.random.default_rng(0).uniform(-1, 1, (3, batch, robot.nv))
            out = np.empty((batch, robot.nv))
            times: list[list[list[float]]] = [[[], []], [[], []]]
            for k in range(options.rounds):
                for side, kept in zip(sides, times, strict=True):
                    for row in (False, True, True) if k % 4 == 0 else (False,):
                        began = time.perf_counter()
                        side(*x, out=out)
                        kept[row].append((time.perf_counter() - began) / batch)
            best, middle = [min(t[0]) for t in times], [statistics.median(t[0]) for t in times]
            in_a_row = [min(t[1]) for t in times]
            ceiling = f"{two_processes(function):.2f}x" if batch == BATCHES[-1] else ""
            cells.append((
                function, f"{batch:,}", time_of(best[0]), time_of(best[1]), f"{best[0] / best[1]:.2f}x",
                f"{middle[0] / middle[1]:.2f}x", f"{in_a_row[0] / in_a_row[1]:.2f}x", bar, ceiling,
            ))  # fmt: skip
    print(table(cells))


if __name__ == "__main__":
    main()
