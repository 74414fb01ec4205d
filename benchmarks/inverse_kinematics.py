"""Inverse kinematics of random reachable poses of UR5, Panda and PUMA 560: how many are solved, and how quickly.

    python benchmarks/inverse_kinematics.py

Poses are those of random joint coordinates within the limits, by Pinocchio, which also checks the solutions. Times are
the best of several runs. Bars: of 4096 poses from nothing 99.9 % solved to 1e-9, in 5 us each; one solve, called from
Python with limits on, from within 0.1 rad of its end in 8 us.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pinocchio as pin
from measure import alternate, example, heading, load_quietly, table, time_of, write_json

import linksweep as ls

COUNT, FEW, SEED, ROUNDS, NEAR = 4096, 200, 2024, 7, 0.1
ARMS = {"UR5": ("ur5_robot.urdf", "tool0"), "Panda": ("panda.urdf", "panda_hand_tcp"), "PUMA 560": ("", "tool")}


def forward(robot: ls.Robot, model: Any, frame: str) -> Callable[[np.ndarray], np.ndarray]:
    """Poses (N, 4, 4) by Pinocchio."""
    data, place = model.createData(), model.getFrameId(frame)
    joints = [model.joints[model.getJointId(name)] for name in robot.joint_names]

    def poses(q: np.ndarray) -> np.ndarray:
        out, theirs = np.empty((len(q), 4, 4)), np.empty(model.nq)
        for k, sample in enumerate(q):
            for joint, value in zip(joints, sample, strict=True):
                wide = joint.nq == 2  # a joint without limits holds (cos, sin)
                theirs[joint.idx_q : joint.idx_q + joint.nq] = (np.cos(value), np.sin(value)) if wide else value
            pin.framesForwardKinematics(model, data, theirs)
            out[k] = data.oMf[place].homogeneous
        return out

    return poses


def limits_of(robot: ls.Robot) -> np.ndarray:
    joints = [robot.model.links[i].joint for i in robot.model.document_order]
    return np.array([(joint.limits.lower, joint.limits.upper) for joint in joints]).T


def processor_time(call: Callable[[], Any]) -> float:
    """The least that it took of a processor, whatever else runs."""
    times = []
    for _ in range(ROUNDS):
        start = time.process_time()
        call()
        times.append(time.process_time() - start)
    return min(times)


def measure(name: str, file: str, frame: str) -> dict[str, Any]:
    robot = load_quietly(example(file)) if file else ls.robots.puma560()
    text = example(file).read_text() if file else robot.to_urdf()
    poses = forward(robot, pin.buildModelFromXML(text, mimic=False), frame)
    rng = np.random.default_rng(SEED)
    q = np.stack([robot.random(rng) for _ in range(COUNT)])
    wanted = poses(q)
    found = robot.inverse_kinematics(wanted, frame)
    reached = poses(found.q)
    distance = np.linalg.norm(reached[:, :3, 3] - wanted[:, :3, 3], axis=1)
    turns = np.swapaxes(reached[:, :3, :3], 1, 2) @ wanted[:, :3, :3]
    angle = np.array([np.linalg.norm(pin.log3(turn)) for turn in turns])
    lower, upper = limits_of(robot)
    inside = ((found.q >= lower) & (found.q <= upper)).all(axis=1)
    right = inside & (distance <= 1e-9) & (angle <= 1e-9)
    if (found.solved & ~right).any():
        raise SystemExit(f"{name}: a solution is reported that is none.")
    try:
        branches = robot.inverse_kinematics_branches(wanted, frame).count.mean()
    except ls.ArgumentError:  # seven joints
        branches = 0.0
    starts = np.clip(q + rng.uniform(-NEAR, NEAR, q.shape), lower, upper)
    cases = list(zip(wanted[:FEW], starts[:FEW], strict=True))
    cold, warm, near, single = alternate(
        (
            lambda: robot.inverse_kinematics(wanted, frame),
            lambda: robot.inverse_kinematics(wanted, frame, q + 0.05, limits=False),
            lambda: [robot.inverse_kinematics(pose, frame, start) for pose, start in cases],
            lambda: [robot.inverse_kinematics(pose, frame) for pose in wanted[:20]],
        ),
        ROUNDS,
    )
    closed = processor_time(lambda: robot.inverse_kinematics_branches(wanted, frame)) if branches else 0.0
    return {
        "robot": name, "solved": float(right.mean()), "distance": float(distance[right].max()),
        "angle": float(angle[right].max()), "restarts": float(found.restarts.mean()), "cold": cold / COUNT,
        "warm": warm / COUNT, "near": near / FEW, "single": single / 20, "branches": float(branches),
        "closed": closed / COUNT,
    }  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", metavar="FILE", help="also write the figures here")
    options = parser.parse_args()
    print(heading())
    print(f"{COUNT:,} random poses of each robot, within its joint limits, tolerance 1e-10 (m, rad)\n")
    results = [measure(name, *arm) for name, arm in ARMS.items()]
    columns = (
        "robot",
        "solved",
        "worst (m)",
        "worst (rad)",
        "restarts",
        "cold",
        "warm",
        "one, near",
        "one, cold",
        "all branches",
    )
    rows = [
        (
            row["robot"], f"{100 * row['solved']:.2f} %", f"{row['distance']:.1e}", f"{row['angle']:.1e}",
            f"{row['restarts']:.2f}", *(time_of(row[key]) for key in ("cold", "warm", "near", "single")),
            f"{row['branches']:.1f} in {time_of(row['closed'])}" if row["branches"] else "no closed form",
        )
        for row in results
    ]  # fmt: skip
    print(table([columns, *rows]))
    print(
        "\nper pose; cold: from nothing; warm: from 0.05 rad (m) off in every joint, limits off; restarts: mean, cold\n"
        "one: each by a call of its own; near: from up to 0.1 rad (m) off in every joint, limits on\n"
        "all branches: how many, in processor time"
    )
    write_json(options.json, results)


if __name__ == "__main__":
    main()
