"""A step of RK4 written out against one whose dynamics are loops over the links: a rollout-step, and the first call.

    python benchmarks/steps.py [--robots FILE ...] [--links 6 12 30 46 60 61] [--written-out-up-to 60] [--json FILE]

Robots of real geometry and chains of general geometry, 64 rollouts, one thread. "taken" is what `simulate` does by
itself (simulation/fixed_step.py). The first call is in seconds of the processor, so that a busy machine does not count.
"""

from __future__ import annotations

import argparse
import os
import time
from dataclasses import replace
from typing import Any

import numpy as np
from measure import alternate, example, heading, load_quietly, table, time_of, write_json

import linksweep as ls
from linksweep.functions.compiled import CompiledFunction
from linksweep.functions.defaults import predicted_operations
from linksweep.simulation import fixed_step
from linksweep.simulation.dynamics import forward_dynamics_of
from linksweep.simulation.integrators import RK4

ROLLOUTS, TOLERANCE = 64, 1e-9
ROBOTS = ["ur5_robot.urdf", "panda.urdf", "anymal.urdf", "talos_reduced.urdf"]


def compiled(recipe: Any, loops: bool) -> tuple[Any, float]:
    began = time.process_time()
    kernel = CompiledFunction(replace(recipe, loops=loops), "float64", 1, "llvm").kernel("float64")
    return kernel, time.process_time() - began


def measured(name: str, robot: ls.Robot, written_out_up_to: int, rounds: int) -> dict[str, Any]:
    n = len(robot.canonical.links)
    recipe = fixed_step.TimeStep(forward_dynamics_of(robot, None, False))
    rng = np.random.default_rng(0)
    inputs = [rng.uniform(-1, 1, (ROLLOUTS, array.size)) for array in recipe.inputs[:2]]
    inputs += [np.full((1, array.size), 1e-3) for array in recipe.inputs[2:]]
    forms = [True, False] if n <= written_out_up_to else [True]
    kernels = [compiled(recipe, loops) for loops in forms]
    outputs = [[np.empty((ROLLOUTS, array.size)) for array in recipe.outputs] for _ in forms]
    sides = [lambda k=k: kernels[k][0](inputs, outputs[k]) for k in range(len(forms))]
    times = [t / ROLLOUTS for t in alternate(sides, rounds, at_least=0.002)]
    if len(forms) == 2:
        for a, b in zip(*outputs, strict=True):
            assert np.allclose(a, b, rtol=0, atol=TOLERANCE * np.abs(b).max())
    stages = RK4.stages * predicted_operations(robot.canonical, "forward_dynamics", 0)
    row = {"robot": name, "n": n, "operations": stages, "loops": times[0], "loops_first": kernels[0][1]}
    if len(forms) == 2:
        row |= {"written": times[1], "written_first": kernels[1][1]}
    return row | {"taken": "written out" if fixed_step.is_unrolled(robot.canonical, "rk4") else "loops"}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--robots", nargs="*", default=ROBOTS)
    parser.add_argument("--links", nargs="*", type=int, default=[6, 12, 30, 46, 60, 61])
    parser.add_argument("--written-out-up-to", type=int, default=60, help="links; LLVM takes half a minute for 60")
    parser.add_argument("--rounds", type=int, default=60)
    parser.add_argument("--json", metavar="FILE")
    options = parser.parse_args()
    os.environ["LINKSWEEP_CACHE"] = "off"
    print(heading())
    robots = {name.removesuffix(".urdf"): load_quietly(example(name)) for name in options.robots}
    robots |= {f"chain({n})": ls.robots.chain(n) for n in options.links}
    rows = [measured(name, robot, options.written_out_up_to, options.rounds) for name, robot in robots.items()]
    cells = [
        ("", "links", "predicted operations", "loops", "written out", "ratio", "first call", "written out", "taken")
    ]
    for row in rows:
        written = "written" in row
        cells.append((
            row["robot"], str(row["n"]), f"{row['operations']:,.0f}", time_of(row["loops"]),
            time_of(row["written"]) if written else "-",
            f"{row['loops'] / row['written']:.2f}x" if written else "-", f"{row['loops_first']:.1f} s",
            f"{row['written_first']:.1f} s" if written else "-", row["taken"],
        ))  # fmt: skip
    print(table(cells))
    write_json(options.json, rows)


if __name__ == "__main__":
    main()
