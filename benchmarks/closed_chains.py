"""Arms that hold one object rigidly: accelerations and contact forces, here and by a loop of pin.constraintDynamics.

    python benchmarks/closed_chains.py [--arms 2 4] [--batch 1024]

One thread, both sides in the same run, alternating, best of several. The arms have seven revolute joints of general
geometry; both sides are given the same states and must agree.
"""

# pyright: reportMissingImports=false
from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

import numpy as np
import pinocchio as pin

sys.path.insert(0, str(Path(__file__).parent.parent / "tests" / "helpers"))

from closed_chain_cases import grasp_case
from pin_models import pin_model, places, their_q, their_v

ROUNDS = 7


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--arms", type=int, nargs="*", default=[2, 4])
    parser.add_argument("--batch", type=int, default=1024)
    options = parser.parse_args()
    for arms in options.arms:
        measure(arms, options.batch)


def measure(arms: int, batch: int) -> None:
    grasp, q, pose = grasp_case((7,) * arms, ("rigid",) * arms, 1)
    robot, at = grasp.robot, grasp._q(q, pose)
    rng = np.random.default_rng(0)
    Q = np.ascontiguousarray(np.broadcast_to(at, (batch, robot.nq)))
    V = robot.project_velocity(Q, rng.normal(size=(batch, robot.nv)))
    T = rng.normal(size=(batch, robot.nv))
    function = robot.compile(["forward_dynamics", "multipliers"])
    ours, _ = function(Q, V, T)

    model = pin_model(robot)
    where = places(robot, model)
    found, datas = pin.StdVec_RigidConstraintModel(), pin.StdVec_RigidConstraintData()
    for tie in robot.constraints:
        ends = []
        for name in (tie.a, tie.b):
            frame = next(frame for frame in robot.frames if frame.name == name)
            at_joint = pin.SE3(np.array(frame.placement.rotation), np.array(frame.placement.position))
            ends += [model.getJointId(robot.model.links[frame.link].joint.name), at_joint]
        kind = pin.ContactType.CONTACT_6D
        found.append(pin.RigidConstraintModel(kind, model, *ends, pin.ReferenceFrame.LOCAL))
        datas.append(found[-1].createData())
    data, settings = model.createData(), pin.ProximalSettings(1e-12, 1e-10, 5)
    pin.initConstraintDynamics(model, data, found, datas)
    theirs = [(their_q(robot, model, q), their_v(where, v), their_v(where, t)) for q, v, t in zip(Q, V, T, strict=True)]
    check = pin.constraintDynamics(model, data, *theirs[0], found, datas, settings)[where]
    off = np.abs(ours[0] - check).max() / np.abs(check).max()

    def loop() -> None:
        for state in theirs:
            pin.constraintDynamics(model, data, *state, found, datas, settings)

    one = Q[0], V[0], T[0]

    def single() -> None:
        for _ in range(batch):
            function(*one)

    best = {"batch": np.inf, "single": np.inf, "pinocchio": np.inf}
    for _ in range(ROUNDS):
        for name, call in (("batch", lambda: function(Q, V, T)), ("single", single), ("pinocchio", loop)):
            began = time.perf_counter()
            call()
            best[name] = min(best[name], (time.perf_counter() - began) / batch)
    print(f"{arms} arms of 7 joints and an object (nv {robot.nv}, {sum(grasp.rows)} rows), batch {batch}:")
    print(f"  batch {best['batch'] * 1e9:8.0f} ns a sample, one call {best['single'] * 1e6:6.2f} us, "
          f"pin.constraintDynamics {best['pinocchio'] * 1e6:6.2f} us")  # fmt: skip
    print(f"  batch {best['pinocchio'] / best['batch']:.1f} times as fast, one call takes "
          f"{best['single'] / best['pinocchio']:.2f} of its time; they agree to {off:.1e}")  # fmt: skip
    print(f"  operations: {function.counts}")


if __name__ == "__main__":
    main()
