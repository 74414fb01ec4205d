"""Arms that hold one object rigidly, against a loop of pin.constraintDynamics; and N four-bars for ten seconds.

    python benchmarks/closed_chains.py [--arms 2 4] [--batch 1024] [--four-bars 2 10 40]

Arms: accelerations and contact forces; one thread, both sides in the same run, alternating, each twice in a row so that
its code is in the caches, best of several, in time of the thread on a processor, which is the time that passes where
nothing else runs. The arms have seven revolute joints of
general geometry; both sides are given the same states and must agree. Four-bars (IFToMM benchmark A02): RK4 of 1 ms,
how far B0 is from where its one freedom takes it after 10 s, how far the loops open, and what it takes.
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

import linksweep as ls
from linksweep.papers.studies.four_bar import single_dof_solution
from linksweep.robots.mechanisms import four_bars_upright

ROUNDS = 15


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--arms", type=int, nargs="*", default=[2, 4])
    parser.add_argument("--batch", type=int, default=1024)
    parser.add_argument("--four-bars", type=int, nargs="*", default=[2, 10, 40])
    options = parser.parse_args()
    for arms in options.arms:
        measure(arms, options.batch)
    for windows in options.four_bars:
        swing(windows)


def swing(windows: int) -> None:
    robot = ls.robots.four_bars(windows)
    start = four_bars_upright(robot)
    began = time.perf_counter(), time.process_time()
    ls.simulate(robot, *start, duration=1e-3, integrator=ls.simulation.RK4(progress=False))
    ready = time.perf_counter(), time.process_time()
    run = ls.simulate(robot, *start, duration=10.0, every=20, integrator=ls.simulation.RK4(progress=False))
    done = time.perf_counter(), time.process_time()
    off = np.linalg.norm(robot.pose(run.q, "B0")[:, :2, 3] - single_dof_solution(windows, run.t), axis=1)
    (compiling, own), (running, used) = ([b - a for a, b in zip(*ends, strict=True)]
                                         for ends in ((began, ready), (ready, done)))  # fmt: skip
    print(f"{windows} four-bars (nv {robot.nv}, {2 * windows} rows), 10 s by RK4 of 1 ms:")
    print(f"  B0 off by {off[-1]:.1e} m at the end, {off.max():.1e} at most; loops open by "
          f"{run.constraint_drift:.1e} m; energy by {run.energy_drift:.1e}")  # fmt: skip
    print(f"  the first step, traced and compiled if not cached, {compiling:.1f} s ({own:.1f} s of a processor); "
          f"10 000 steps {running:.2f} s ({used:.2f} s)")  # fmt: skip


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
            for _ in range(2):
                began = time.thread_time()
                call()
                best[name] = min(best[name], (time.thread_time() - began) / batch)
    print(f"{arms} arms of 7 joints and an object (nv {robot.nv}, {sum(grasp.rows)} rows), batch {batch}:")
    print(f"  batch {best['batch'] * 1e9:8.0f} ns a sample, one call {best['single'] * 1e6:6.2f} us, "
          f"pin.constraintDynamics {best['pinocchio'] * 1e6:6.2f} us")  # fmt: skip
    print(f"  batch {best['pinocchio'] / best['batch']:.1f} times as fast, one call takes "
          f"{best['single'] / best['pinocchio']:.2f} of its time; they agree to {off:.1e}")  # fmt: skip
    print(f"  operations: {function.counts}")


if __name__ == "__main__":
    main()
