"""Dynamics of UR5, Panda and Talos by another checkout of linksweep and by this one, alternating in one process.

    git worktree add /tmp/old COMMIT
    python benchmarks/old_and_new.py /tmp/old/src [--rounds 200]

Both packages are called linksweep: the other one is imported first, its functions are compiled and called once, and its
modules are then put aside. A compiled function that has been called imports nothing more. Results of both must agree.
"""

from __future__ import annotations

import argparse
import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np

ROBOTS, BATCH, TURN = ("ur5_robot.urdf", "panda.urdf", "talos_reduced.urdf"), 4096, 0.001
FUNCTIONS = ("inverse_dynamics", "forward_dynamics")
SAME = 1e-9


def functions(source: str, samples: dict[str, np.ndarray]) -> dict[tuple[str, str], Any]:
    """Compiled by the package in this folder, and called once."""
    for name in [name for name in sys.modules if name.partition(".")[0] in ("linksweep", "measure")]:
        sys.modules[f"aside {source} {name}"] = sys.modules.pop(name)
    sys.path.insert(0, source)
    from measure import example, load_quietly

    import linksweep as ls

    assert Path(str(ls.__file__)).is_relative_to(Path(source).absolute()), f"{ls.__file__} is not in {source}"
    found = {}
    for file in ROBOTS:
        robot = load_quietly(example(file))
        for function in FUNCTIONS:
            f = robot.compile(function)
            if file not in samples:
                samples[file] = np.random.default_rng(0).uniform(-1, 1, (3, BATCH, robot.nv))
            f(*samples[file])
            f(*samples[file], out=np.empty(samples[file][0].shape))
            found[file, function] = f
    sys.path.remove(source)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("source", help="the other checkout's src")
    parser.add_argument("--rounds", type=int, default=200)
    options = parser.parse_args()
    samples: dict[str, np.ndarray] = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        old = functions(options.source, samples)
        new = functions(str(Path(__file__).parent.parent / "src"), samples)
    from measure import alternate, heading, table, time_of

    print(heading())
    cells = [("batch 4096, per sample", "old", "new", "old / new", "difference")]
    for (file, function), before in old.items():
        after, x = new[file, function], samples[file]
        a, b = before(*x), after(*x)
        difference = float(np.abs(a - b).max() / np.abs(b).max())
        assert difference < SAME, f"{file} {function}: results differ by {difference:.0e}"
        out = np.empty(x[0].shape)
        sides = [lambda f=f, x=x, out=out: f(*x, out=out) for f in (before, after)]
        first, second = (t / BATCH for t in alternate(sides, options.rounds, TURN))
        ratio = f"{first / second:.2f}x"
        cells.append((f"{Path(file).stem}: {function}", time_of(first), time_of(second), ratio, f"{difference:.0e}"))
    print(table(cells))


if __name__ == "__main__":
    main()
