"""The bars of control: a batched policy, operational-space impedance against MuJoCo's rollout, sticking friction.

MuJoCo's side is its easiest: torques computed beforehand, one thread, constraints off, RK4, the same robot with its
fingers fixed. Rollouts of both must end in the same place. Needs the package mujoco.
"""

# pyright: reportAttributeAccessIssue=false
from __future__ import annotations

import argparse
import time
from typing import Any

import numpy as np
from measure import alternate, example, heading, load_quietly, table, time_of, write_json

import linksweep as ls
from linksweep.model.assembly import Part, assemble
from linksweep.model.model import Inertial, Joint
from linksweep.simulation import OperationalSpace, saturated

ROLLOUTS, STEPS, DT = 4096, 1000, 1e-3
THEIRS = 64  # rollouts of MuJoCo: its time is theirs times as many steps, one after the other


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", help="write the figures to this file")
    parser.add_argument("--quick", action="store_true", help="fewer turns: a first look and no result")
    parser.add_argument("--without-mujoco", action="store_true", help="leave the comparison with MuJoCo out")
    arguments = parser.parse_args()
    print(heading())
    rounds = 1 if arguments.quick else 5
    rows = [*policies(rounds), *sticking(), *(impedance(rounds) if not arguments.without_mujoco else [])]
    cells = [("", "figure", "bar"), *((r["what"], r["shown"], r["bar"]) for r in rows)]
    print(table(cells))
    write_json(arguments.json, rows)


def policies(rounds: int) -> list[dict[str, Any]]:
    """10,000 rollouts of UR5, 100 control steps of 10 ms with one RK4 step each."""
    robot = load_quietly(example("ur5_robot.urdf"))
    rng = np.random.default_rng(0)
    q0, goal = rng.uniform(-1, 1, (10_000, 6)), rng.uniform(-1, 1, 6)

    kp, kd = np.array([100, 100, 50, 2, 1, 0.01]), np.array([20, 20, 10, 0.4, 0.2, 0.002])  # bearable in steps of 10 ms

    def policy(t: float, q: np.ndarray, qd: np.ndarray) -> np.ndarray:
        return kp * (goal - q) - kd * qd

    def batched(threads: int = 1) -> Any:
        return ls.simulate(
            robot, q0, torque=ls.simulation.SampledController(ls.simulation.Policy(policy), 0.01), duration=1.0,
            dt=0.01, every=100, integrator=ls.simulation.RK4(threads=threads, progress=False),
        )  # fmt: skip

    few = 200
    assert batched().finite.all()

    def one_at_a_time() -> Any:
        return ls.simulate(
            robot,
            q0[:few],
            None,
            policy,
            1.0,
            dt=0.01,
            every=100,
            integrator=ls.simulation.RK4(progress=False),
        )

    ours, two, before = alternate([batched, lambda: batched(2), one_at_a_time], rounds)
    before *= 10_000 / few
    what = "UR5, 10,000 rollouts x 100 control steps of 10 ms"
    return [
        _row(f"{what}: batched policy, 1 thread", time_of(ours)),
        _row("  the same, 2 threads", time_of(two)),
        _row("  one state at a time, every stage (from 200 of them)", time_of(before)),
        _row("  ratio, 1 thread", f"{before / ours:.0f}x", ">= 50x"),
    ]


def sticking() -> list[dict[str, Any]]:
    body = Inertial(1.0, (0.2, 0.0, 0.0), ((0.01, 0.0, 0.0), (0.0, 0.01, 0.0), (0.0, 0.0, 0.01)))
    joint = Joint("hinge", "revolute", (0.0, 1.0, 0.0), friction=6 * 9.81 * 0.2)
    robot = ls.Robot(assemble("arm", [Part("link", "base", joint, body)], base="base"))
    fixed = ls.simulate(robot, [0.0], None, None, 10.0, dissipation=True)
    ls.simulate(robot, [0.0], [1.0], None, 0.01, dissipation=True, integrator="adaptive")  # SciPy is imported
    began = time.perf_counter()
    ended = ls.simulate(robot, [0.0], [1.0], None, 10.0, dissipation=True, integrator="adaptive", dt=0.01)
    spent = time.perf_counter() - began
    assert not ended.ended_early
    return [
        _row("sticking pendulum, 10 s of 1 ms: creeps, rad", f"{np.abs(fixed.q).max():.1e}", "<= 1e-09"),
        _row("  adaptive, thrown at 1 rad/s, 10 s, 1,000 records", time_of(spent), "<= 1 s"),
    ]


def impedance(rounds: int) -> list[dict[str, Any]]:
    import mujoco
    from mujoco import rollout

    robot = load_quietly(example("panda.urdf")).lock(["panda_finger_joint1", "panda_finger_joint2"])
    rng = np.random.default_rng(0)
    home = np.array([0.0, -0.5, 0.0, -2.0, 0.0, 1.6, 0.8])
    q0 = home + rng.uniform(-0.2, 0.2, (ROLLOUTS, 7))
    target = robot.pose(home, "panda_hand")
    law = saturated(
        OperationalSpace("panda_hand", target, [40] * 3 + [600] * 3, [4] * 3 + [50] * 3, posture=home, kd_posture=1.0)
    )

    def ours() -> Any:
        return ls.simulate(
            robot,
            q0,
            None,
            ls.simulation.SampledController(law, DT),
            STEPS * DT,
            dt=DT,
            every=STEPS,
            integrator=ls.simulation.RK4(progress=False),
        )

    model = mujoco.MjModel.from_xml_string(robot.to_urdf())
    model.opt.integrator, model.opt.timestep = mujoco.mjtIntegrator.mjINT_RK4, DT
    model.opt.disableflags |= int(mujoco.mjtDisableBit.mjDSBL_CONSTRAINT | mujoco.mjtDisableBit.mjDSBL_CONTACT)
    model.dof_damping[:] = 0.0
    sample = ls.simulate(
        robot,
        q0[:THEIRS],
        None,
        ls.simulation.SampledController(law, DT),
        STEPS * DT,
        dt=DT,
        integrator=ls.simulation.RK4(progress=False),
    )
    torques = np.ascontiguousarray(np.swapaxes(sample.tau[:-1], 0, 1))
    start = np.concatenate([np.zeros((THEIRS, 1)), q0[:THEIRS], np.zeros((THEIRS, 7))], axis=1)
    data, spec = mujoco.MjData(model), int(mujoco.mjtState.mjSTATE_QFRC_APPLIED)
    assert mujoco.mj_stateSize(model, mujoco.mjtState.mjSTATE_FULLPHYSICS) == start.shape[1]

    def theirs() -> Any:
        return rollout.rollout(model, data, start, torques, control_spec=spec)[0]

    ends = theirs()[:, -1, 1:8]
    apart = float(np.abs(ends - sample.q[-1]).max())
    mine, mujocos = alternate([ours, theirs], rounds)
    per_step = mine / ROLLOUTS / STEPS, mujocos / THEIRS / STEPS
    settled = float(np.abs(robot.pose(sample.q[-1], "panda_hand")[:, :3, 3] - target[:3, 3]).max())
    what = f"Panda, impedance with posture and effort limits, {ROLLOUTS} x {STEPS} RK4 steps, 1 thread"
    return [
        _row(what, time_of(mine)),
        _row("  per step, law included", time_of(per_step[0])),
        _row(f"  per step, MuJoCo {mujoco.__version__}, torques given ({THEIRS} rollouts)", time_of(per_step[1])),
        _row("  ratio", f"{per_step[1] / per_step[0]:.1f}x", ">= 12x"),
        _row("  farthest from MuJoCo's after 1 s, rad", f"{apart:.1e}"),
        _row("  tool from its target after 1 s, m", f"{settled:.1e}"),
    ]


def _row(what: str, shown: str, bar: str = "") -> dict[str, Any]:
    return {"what": what, "shown": shown, "bar": bar}


if __name__ == "__main__":
    main()
