"""Every function of robot.functions on five robots, beside Pinocchio from Python and the machine's store bandwidth.

    python benchmarks/all_functions.py [--robot NAME ...] [--function NAME ...] [--quick] [--json FILE]

One thread, results written into `out=`. A row passes if linksweep is ten times as fast as Pinocchio, or writes its
results at 70 % of the bandwidth of plain stores measured in the same run; LOSS marks the others, SLOWER what is slower
than Pinocchio. Functions that Pinocchio has not are held against the bandwidth alone.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pinocchio as pin
from measure import alternate, example, heading, table, time_of, write_json

import linksweep as ls
from linksweep.analysis import conventions

ROBOTS = {
    "UR5": ("ur5_robot.urdf", None), "Panda": ("panda.urdf", None), "ANYmal": ("anymal.urdf", None),
    "Talos": ("talos_reduced.urdf", None), "Talos, free": ("talos_reduced.urdf", "floating"),
}  # fmt: skip
BATCH, LARGEST = 4096, 256 * 2**20  # samples, and bytes of a result
TIMES, SHARE = 10.0, 0.7  # of Pinocchio's time, of the store bandwidth
FRAMED = ("pose", "jacobian", "jacobian_derivative", "point_jacobian", "point_jacobian_derivative", "first_influence",
          "second_influence", "frame_velocity", "frame_acceleration", "jacobian_bias")  # fmt: skip

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
    "jacobian": lambda m, d, q, v, x: pin.computeFrameJacobian(m, d, q, m.nframes - 1, pin.LOCAL_WORLD_ALIGNED),
    "jacobians": lambda m, d, q, v, x: pin.computeJointJacobians(m, d, q),
}


def store_bandwidth() -> float:
    """Bytes a second of plain stores to memory that is too large for any cache."""
    target = np.empty(LARGEST // 8)
    target.fill(0.0)
    (seconds,) = alternate([lambda: target.fill(1.0)], 5)
    return target.nbytes / seconds


def load(name: str) -> tuple[ls.Robot, Any]:
    file, base = ROBOTS[name]
    path: Path = example(file)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ls.ModelWarning)
        robot = ls.load(path, base=base) if base else ls.load(path)
    return robot, pin.buildModelFromUrdf(str(path), *([pin.JointModelFreeFlyer()] if base else []))


def measured(robot: ls.Robot, model: Any, function: str, bandwidth: float, rounds: int) -> dict[str, Any]:
    """Seconds for one sample of each side, and what bounds ours. An error in words where it does not apply."""
    item: Any = (function, robot.model.frames[-1].name) if function in FRAMED else function
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
    sides = [lambda: compiled(*args, out=out)]
    rows: list[Any] = []
    if function in RIVALS:
        data, v, a = model.createData(), *rng.uniform(-1, 1, (2, batch, robot.nv))
        rows = list(zip(*(x[:256] for x in conventions.to_pinocchio(robot, model, q=q, v=v, a=a)), strict=True))
        sides.append(lambda: [RIVALS[function](model, data, *row) for row in rows])
    seconds = alternate(sides, rounds)
    ours = seconds[0] / batch
    found = {"ours": ours, "bytes": size, "share": size / ours / bandwidth, "first_call": first}
    if rows:
        found |= {"theirs": seconds[1] / len(rows), "ratio": seconds[1] / len(rows) / ours}
    return found


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
    bandwidth = store_bandwidth()
    print(f"plain stores: {bandwidth / 1e9:.1f} GB/s; one thread, out=, up to {BATCH} samples\n")
    rows: list[dict[str, Any]] = []
    for name in options.robot:
        robot, model = load(name)
        for function in options.function or robot.functions:
            try:
                found = measured(robot, model, function, bandwidth, 2 if options.quick else 5)
            except (ls.LinksweepError, KeyError, ValueError) as error:
                found = {"error": str(error).splitlines()[0][:80]}
            rows.append({"robot": name, "function": function, **found})
            print(cells(rows[-1])[0], cells(rows[-1])[1], flush=True)
    print()
    print(table([("", "linksweep", "Pinocchio", "ratio", "of stores", "first call", ""), *map(cells, rows)]))
    if options.json:
        Path(options.json).parent.mkdir(parents=True, exist_ok=True)
    write_json(options.json, [{"robot": "", "function": "plain stores", "bandwidth": bandwidth}, *rows])


def cells(row: dict[str, Any]) -> tuple[str, ...]:
    title = f"{row['robot']}: {row['function']}"
    if "error" in row:
        return title, row["error"], "", "", "", "", ""
    theirs, ratio = (time_of(row["theirs"]), f"{row['ratio']:.1f}x") if "ratio" in row else ("", "")
    share, first = f"{row['share']:.0%}", time_of(row["first_call"])
    return title, time_of(row["ours"]), theirs, ratio, share, first, verdict(row)


if __name__ == "__main__":
    main()
