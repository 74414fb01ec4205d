"""One sample through the public methods, against Pinocchio from Python, both in one process, taking turns.

    python benchmarks/one_call.py [--quick] [--json FILE]

A control loop calls with one state at a time: what counts is the way to the machine code and back.
"""

from __future__ import annotations

import argparse
import time

import numpy as np
import pinocchio as pin
from measure import alternate, example, heading, load_quietly, table, time_of, write_json

import linksweep as ls


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--json")
    options = parser.parse_args()
    rounds = 10 if options.quick else 60
    path = example("ur5_robot.urdf")
    robot, model = load_quietly(path), pin.buildModelFromUrdf(str(path))
    data = model.createData()
    q, qd, a = np.random.default_rng(0).uniform(-1, 1, (3, 6))
    frame, at = "ee_link", model.getFrameId("ee_link")
    out, payload = np.empty(6), ls.body(2.0, (0.0, 0.0, 0.1), (0.01, 0.01, 0.01))
    both = robot.compile(["inverse_dynamics", "mass_matrix"])
    carrying = robot.compile("inverse_dynamics", parameters=[f"payload:{frame}"])
    many = np.broadcast_to(q, (8, 6)) + 0.0

    def pose() -> None:
        pin.framesForwardKinematics(model, data, q)
        np.asarray(data.oMf[at])

    def two() -> None:
        pin.rnea(model, data, q, qd, a)
        pin.crba(model, data, q)

    sides = [
        ("inverse_dynamics", lambda: robot.inverse_dynamics(q, qd, a), lambda: pin.rnea(model, data, q, qd, a), 0.6),
        ("forward_dynamics", lambda: robot.forward_dynamics(q, qd, a), lambda: pin.aba(model, data, q, qd, a), 0.6),
        ("mass_matrix", lambda: robot.mass_matrix(q), lambda: pin.crba(model, data, q), 0.6),
        (
            "mass_matrix_inverse",
            lambda: robot.mass_matrix_inverse(q),
            lambda: pin.computeMinverse(model, data, q),
            0.6,
        ),
        (
            "gravity_forces",
            lambda: robot.gravity_forces(q),
            lambda: pin.computeGeneralizedGravity(model, data, q),
            0.6,
        ),
        (
            "jacobian",
            lambda: robot.jacobian(q, frame),
            lambda: pin.computeFrameJacobian(model, data, q, at, pin.LOCAL_WORLD_ALIGNED),
            0.9,
        ),
        ("pose", lambda: robot.pose(q, frame), pose, 0.9),
        (
            "inverse_dynamics, out=",
            lambda: robot.inverse_dynamics(q, qd, a, out=out),
            lambda: pin.rnea(model, data, q, qd, a),
            0.5,
        ),
        ("inverse dynamics and M", lambda: both(q, qd, a), two, 0.5),
        ("payload as an argument", lambda: carrying(q, qd, a, payload), lambda: pin.rnea(model, data, q, qd, a), 0.6),
        (
            "8 samples, one payload",
            lambda: carrying(many, qd, a, payload),
            lambda: [pin.rnea(model, data, q, qd, a) for _ in range(8)],
            0.6,
        ),
    ]
    rows = []
    for what, ours, theirs, bar in sides:
        mine, other = alternate([ours, theirs], rounds, 0.01)
        rows.append({"what": what, "ours": mine, "theirs": other, "ratio": mine / other, "bar": bar})
    began = time.perf_counter()
    for _ in range(100):
        robot.compile("inverse_dynamics")
    again = (time.perf_counter() - began) / 100
    print(heading())
    print(
        table(
            [
                ("UR5, one sample", "linksweep", "Pinocchio", "ratio", "bar"),
                *(
                    (
                        r["what"],
                        time_of(r["ours"]),
                        time_of(r["theirs"]),
                        f"{r['ratio']:.2f}",
                        f"<= {r['bar']}",
                    )
                    for r in rows
                ),
            ]
        )
    )
    print(f"an identical second compile: {time_of(again)}")
    write_json(options.json, rows)


if __name__ == "__main__":
    main()
