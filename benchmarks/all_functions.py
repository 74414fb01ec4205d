"""Every function of robot.functions on five robots, beside Pinocchio in C++ and from Python, and the store bandwidth.

    python benchmarks/all_functions.py [--robot NAME ...] [--function NAME ...] [--quick] [--json FILE]

One thread, results written into `out=`. A row passes if linksweep is ten times as fast as Pinocchio, or writes its
results at 70 % of the bandwidth of plain stores to memory, measured in turns with it; LOSS marks the others, SLOWER
what is slower than Pinocchio. Pinocchio is its C++ in a C++ loop that drops its results (native.py), where that can be
built, and else called from Python. Functions that Pinocchio lacks are held against the bandwidth alone.

"new" is `x = f(...)` in a loop without `out=`; NEW marks rows where it takes more than 1.3 times as long. "kept" is the
same where all results are kept, and "copied" a plain copy of the result into new memory that is kept.
"""

from __future__ import annotations

import argparse
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import native
import numpy as np
import pinocchio as pin
from measure import alternate, example, heading, table, time_of, write_json

import linksweep as ls
from linksweep.robot import conventions

ROBOTS = {
    "UR5": ("ur5_robot.urdf", None), "Panda": ("panda.urdf", None), "ANYmal": ("anymal.urdf", None),
    "Talos": ("talos_reduced.urdf", None), "Talos, free": ("talos_reduced.urdf", "floating"),
}  # fmt: skip
BATCH, LARGEST = 4096, 64 * 2**20  # samples, and bytes of a result
SPREAD, PART = 512 * 2**20, 16 * 2**20  # bytes of memory that is written, and of a turn
TIMES, SHARE = 10.0, 0.7  # of Pinocchio's time, of the store bandwidth
NEW = 1.3  # of the time with `out=`: a result in a new array
ROWS, TURN = 64, 0.006  # of Pinocchio, and seconds: some calls of the largest batch, so that a turn is mostly its own
FRAMED = ("pose", "jacobian", "jacobian_derivative", "point_jacobian", "point_jacobian_derivative", "first_influence",
          "second_influence", "frame_velocity", "frame_acceleration", "jacobian_bias",
          "operational_inertia_inverse")  # fmt: skip
ALIKE = {  # what native_pinocchio.cpp calls, where it has no function of that name
    "packed_regressor": "regressor", "point_jacobian": "jacobian", "first_influence": "jacobian",
    "point_jacobian_derivative": "jacobian_derivative", "jacobian_bias": "frame_acceleration",
    "effective_inertia": "mass_matrix",
}  # fmt: skip

Rival = Callable[[Any, Any, Any, Any, Any], Any]
RIVALS: dict[str, Rival] = {  # of model, data, q, v and a third vector
    "inverse_dynamics": lambda m, d, q, v, x: pin.rnea(m, d, q, v, x),
    "forward_dynamics": lambda m, d, q, v, x: pin.aba(m, d, q, v, x),
    "mass_matrix": lambda m, d, q, v, x: pin.crba(m, d, q),
    "mass_matrix_inverse": lambda m, d, q, v, x: pin.computeMinverse(m, d, q),
    "bias_forces": lambda m, d, q, v, x: pin.nonLinearEffects(m, d, q, v),
    "gravity_forces": lambda m, d, q, v, x: pin.computeGeneralizedGravity(m, d, q),
    "coriolis_matrix": lambda m, d, q, v, x: pin.computeCoriolisMatrix(m, d, q, v),
    "regressor": lambda m, d, q, v, x: pin.computeJointTorqueRegressor(m, d, q, v, x),
    "packed_regressor": lambda m, d, q, v, x: pin.computeJointTorqueRegressor(m, d, q, v, x),
    "center_of_mass": lambda m, d, q, v, x: pin.centerOfMass(m, d, q),
    "momentum": lambda m, d, q, v, x: pin.computeCentroidalMomentum(m, d, q, v),
    "centroidal_momentum_matrix": lambda m, d, q, v, x: pin.computeCentroidalMap(m, d, q),
    "kinetic_energy": lambda m, d, q, v, x: pin.computeKineticEnergy(m, d, q, v),
    "potential_energy": lambda m, d, q, v, x: pin.computePotentialEnergy(m, d, q),
    "pose": lambda m, d, q, v, x: pin.framesForwardKinematics(m, d, q),
    "poses": lambda m, d, q, v, x: pin.framesForwardKinematics(m, d, q),
    "jacobian": lambda m, d, q, v, x: pin.computeJointJacobian(m, d, q, m.njoints - 1),
    "jacobians": lambda m, d, q, v, x: pin.computeJointJacobians(m, d, q),
}


class Stores:
    """Plain stores to memory that is too large for any cache: a call writes the next part of it."""

    def __init__(self) -> None:
        self._parts = list(np.zeros((SPREAD // PART, PART // 8)))
        self._next = 0

    def __call__(self) -> None:
        self._parts[self._next].fill(1.0)
        self._next = (self._next + 1) % len(self._parts)


class Latest:
    """x = f(...) in a loop: the previous result is dropped when the next one is there."""

    def __init__(self, function: Callable[..., Any], args: list[np.ndarray]):
        self._function, self._args = function, args
        self._result: Any = None

    def __call__(self) -> None:
        self._result = self._function(*self._args)


class Kept:
    """Results that stay, up to a gigabyte of them."""

    def __init__(self, make: Callable[[], np.ndarray]):
        self._make = make
        self._results: list[np.ndarray] = []

    def __call__(self) -> None:
        self._results.append(self._make())
        if self._results[-1].nbytes * len(self._results) > 2**30:
            self._results.clear()


def load(name: str) -> tuple[ls.Robot, Any]:
    file, base = ROBOTS[name]
    path: Path = example(file)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ls.ModelWarning)
        robot = ls.load(path, base=base) if base else ls.load(path)
    return robot, pin.buildModelFromUrdf(str(path), *([pin.JointModelFreeFlyer()] if base else []))


def rivals(robot: ls.Robot, model: Any, function: str, q: np.ndarray, rng: np.random.Generator) -> dict[str, Any]:
    """Pinocchio's sides of a function, ROWS samples a turn."""
    few = q[:ROWS]
    v, a = rng.uniform(-1, 1, (2, len(few), robot.nv))
    q, v, a = (np.ascontiguousarray(x) for x in conventions.to_pinocchio(robot, model, q=few, v=v, a=a))
    found: dict[str, Any] = {}
    if function in RIVALS:
        data, rows = model.createData(), list(zip(q, v, a, strict=True))
        found["python"] = lambda: [RIVALS[function](model, data, *row) for row in rows]
    try:
        side, name = native.Native(model, robot.link_names[-1]), ALIKE.get(function, function)
    except native.Unavailable:
        return found
    if side.has(name, q, v, a):
        found["native"] = lambda: side(name, q, v, a)
    return found


def measured(robot: ls.Robot, model: Any, function: str, stores: Stores, rounds: int) -> dict[str, Any]:
    """Seconds for one sample of each side, and what bounds ours. An error in words where it does not apply."""
    item: Any = (function, robot.link_names[-1]) if function in FRAMED else function
    began = time.perf_counter()
    compiled = robot.compile(item)
    size = sum(int(np.prod(shape)) for shape in (a.shape for a in compiled.signature.outputs)) * 8
    batch = int(max(8, min(BATCH, LARGEST // size)))
    rng = np.random.default_rng(0)
    q = np.stack([robot.random(rng) for _ in range(batch)])
    given: dict[str, np.ndarray] = {"q": q} | {
        array.name: rng.uniform(-1, 1, (batch, *array.shape))
        for array in compiled.signature.inputs
        if array.name != "q"
    }
    args = [given[name] for name in compiled.inputs]
    out = compiled(*args)
    first = time.perf_counter() - began
    sides: dict[str, Callable[[], Any]] = {"ours": lambda: compiled(*args, out=out), "new": Latest(compiled, args)}
    sides |= {"kept": Kept(lambda: compiled(*args)), "copied": Kept(out.copy)}
    sides |= {"stores": stores, **rivals(robot, model, function, q, rng)}
    seconds = dict(zip(sides, alternate(list(sides.values()), rounds, TURN, warm=True), strict=True))
    bandwidth = PART / seconds["stores"]
    found: dict[str, Any] = {name: seconds[name] / batch for name in ("ours", "new", "kept", "copied")}
    found |= {name: seconds[name] / min(ROWS, batch) for name in ("python", "native") if name in seconds}
    found |= {"bytes": size, "bandwidth": bandwidth, "first_call": first}
    found["share"] = size / found["ours"] / bandwidth
    theirs = found.get("native", found.get("python"))
    return found if theirs is None else found | {"ratio": theirs / found["ours"]}


def verdict(row: dict[str, Any]) -> str:
    if row.get("ratio", TIMES) < 1.0:
        return "SLOWER"
    return "" if row.get("ratio", 0.0) >= TIMES or row["share"] >= SHARE else "LOSS" if "ratio" in row else "-"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--robot", nargs="*", choices=list(ROBOTS), default=list(ROBOTS))
    parser.add_argument("--function", nargs="*", default=[])
    parser.add_argument("--quick", action="store_true", help="fewer rounds")
    parser.add_argument("--json", metavar="FILE")
    options = parser.parse_args()
    print(heading())
    stores = Stores()
    print(f"one thread, out=, up to {BATCH} samples\n")
    rows: list[dict[str, Any]] = []
    for name in options.robot:
        robot, model = load(name)
        for function in options.function or robot.functions:
            try:
                found = measured(robot, model, function, stores, 5 if options.quick else 100)
            except (ls.LinksweepError, KeyError, ValueError) as error:
                found = {"error": str(error).splitlines()[0][:80]}
            rows.append({"robot": name, "function": function, **found})
            print("  ", *cells(rows[-1]), file=sys.stderr, flush=True)  # for whoever waits
    print()
    head = ("", "linksweep", "new", "kept", "copied", "C++", "Python", "ratio", "of stores", "")
    print(table([head, *map(cells, rows)]))
    bandwidths = [row["bandwidth"] / 1e9 for row in rows if "bandwidth" in row]
    print(f"plain stores: {min(bandwidths):.1f} to {max(bandwidths):.1f} GB/s, median {np.median(bandwidths):.1f}")
    marks = [verdict(row) for row in rows if "error" not in row]
    losses, slower, alone = (marks.count(mark) for mark in ("LOSS", "SLOWER", "-"))
    print(f"{len(marks)} rows: {losses} LOSS, {slower} SLOWER, {alone} without a peer and below the share (-)")
    new = sorted(row["new"] / row["ours"] for row in rows if "error" not in row)
    print(f"new array over out=: median {np.median(new):.2f}, largest {new[-1]:.2f}, {sum(x > NEW for x in new)} NEW")
    if options.json:
        Path(options.json).parent.mkdir(parents=True, exist_ok=True)
    write_json(options.json, rows)


def cells(row: dict[str, Any]) -> tuple[str, ...]:
    title = f"{row['robot']}: {row['function']}"
    if "error" in row:
        return title, "refused", *[""] * 8
    theirs = (time_of(row[name]) if name in row else "-" for name in ("native", "python"))
    ratio = f"{row['ratio']:.1f}x" if "ratio" in row else "-"
    own = (time_of(row[name]) for name in ("ours", "new", "kept", "copied"))
    marks = " ".join(filter(None, [verdict(row), "NEW" if row["new"] > NEW * row["ours"] else ""]))
    return title, *own, *theirs, ratio, f"{row['share']:.0%}", marks


if __name__ == "__main__":
    main()
