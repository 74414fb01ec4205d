"""Rollouts in machine code against a Python loop of Pinocchio's aba with the same RK4, and the figures of the PUMA.

The sample of rollouts that Pinocchio runs must end where ours do.
"""

from __future__ import annotations

import argparse
import time
from typing import Any

import numpy as np
from measure import alternate, example, heading, load_quietly, table, time_of, write_json

import linksweep as ls
from linksweep.motion import Quintic
from linksweep.papers.studies.puma560 import PUMA_DURATION, PUMA_RANGES_DEG, PUMA_SAMPLES
from linksweep.simulation import FeedForward, Sampled

ROLLOUTS, STEPS, DT, RECORD = 4096, 1000, 1e-3, 100


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", help="write the figures to this file")
    parser.add_argument("--quick", action="store_true", help="fewer turns: a first look and no result")
    arguments = parser.parse_args()
    print(heading())
    rows = [*accuracy(), *speed(3 if arguments.quick else 9)]
    cells = [("", "figure", "bar"), *((r["what"], r["shown"], r["bar"]) for r in rows)]
    print(table(cells))
    write_json(arguments.json, rows)


def accuracy() -> list[dict[str, Any]]:
    """Kozłowski's motion by feed-forward, and the PUMA let go, armature in."""
    robot = ls.robots.puma560()
    start, end = np.radians(PUMA_RANGES_DEG).T
    path = Quintic([start, end], [0.0, PUMA_DURATION])
    samples = np.linspace(0.0, PUMA_DURATION, PUMA_SAMPLES)
    sampled = Sampled(robot.inverse_dynamics(*path(samples)), samples)
    rows = []
    for what, law, bar in (("at the stages", FeedForward(path), 1e-9), ("cubic, 300 samples", sampled, 1e-5)):
        run = ls.simulate(robot, start, None, law, PUMA_DURATION, dt=DT)
        rows.append(
            _row(f"puma560, 4 s by torques {what}: final error, rad", float(np.abs(run.q[-1] - end).max()), bar)
        )
    drift = float(ls.simulate(robot, np.zeros(6), None, None, 10.0, dt=DT).energy_drift)
    rows.append(_row("puma560, let go for 10 s: energy drift over range of potential energy", drift, 1e-10))
    return rows


def speed(rounds: int) -> list[dict[str, Any]]:
    import pinocchio as pin

    path = example("ur5_robot.urdf")
    robot, model = load_quietly(path), pin.buildModelFromUrdf(str(path))
    data = model.createData()
    rng = np.random.default_rng(0)
    q0, qd0 = rng.uniform(-1.0, 1.0, (ROLLOUTS, 6)), rng.uniform(-1.0, 1.0, (ROLLOUTS, 6))
    tau = rng.uniform(-5.0, 5.0, (ROLLOUTS, 6))
    law = ls.simulation.Constant(tau)

    def ours(threads: int = 2) -> ls.simulation.Simulation:
        return ls.simulate(
            robot,
            q0,
            qd0,
            law,
            STEPS * DT,
            dt=DT,
            every=RECORD,
            integrator=ls.simulation.RK4(threads=threads, progress=False),
        )

    def theirs(k: int = 0, steps: int = STEPS) -> tuple[np.ndarray, np.ndarray]:
        q, v, u = q0[k], qd0[k], tau[k]
        for _ in range(steps):
            a1 = pin.aba(model, data, q, v, u)
            v2 = v + 0.5 * DT * a1
            a2 = pin.aba(model, data, q + 0.5 * DT * v, v2, u)
            v3 = v + 0.5 * DT * a2
            a3 = pin.aba(model, data, q + 0.5 * DT * v2, v3, u)
            v4 = v + DT * a3
            a4 = pin.aba(model, data, q + DT * v3, v4, u)
            q = q + DT / 6.0 * (v + 2.0 * v2 + 2.0 * v3 + v4)
            v = v + DT / 6.0 * (a1 + 2.0 * a2 + 2.0 * a3 + a4)
        return q, v

    began = time.perf_counter()
    ls.simulate(robot, q0[:1], qd0[:1], ls.simulation.Constant(tau[:1]), DT)
    first = time.perf_counter() - began
    found = ours()
    short = ls.simulate(robot, q0[:4], qd0[:4], ls.simulation.Constant(tau[:4]), 0.1, dt=DT)
    apart = max(float(np.abs(short.q[-1, k] - theirs(k, 100)[0]).max()) for k in range(4))
    two, one, pinocchio = alternate([ours, lambda: ours(1), theirs], rounds)
    per_step = [two / ROLLOUTS / STEPS, one / ROLLOUTS / STEPS, pinocchio / STEPS]
    size = f"UR5, {ROLLOUTS} rollouts x {STEPS} RK4 steps"
    assert found.finite.all()
    return [
        {"what": "UR5: first call (traced and compiled, or from the cache)", "shown": time_of(first), "bar": ""},
        {"what": f"{size}, 2 threads", "shown": time_of(two), "bar": ""},
        {"what": "  per step", "shown": time_of(per_step[0]), "bar": ""},
        {"what": "  per step, 1 thread", "shown": time_of(per_step[1]), "bar": ""},
        {"what": "  per step, Python loop of pin.aba (one rollout)", "shown": time_of(per_step[2]), "bar": ""},
        {"what": "  ratio, 2 threads", "shown": f"{per_step[2] / per_step[0]:.0f}x", "bar": ">= 100x"},
        {"what": "  ratio, 1 thread", "shown": f"{per_step[2] / per_step[1]:.0f}x", "bar": ""},
        {"what": "  4 rollouts, 100 steps: farthest from Pinocchio's, rad", "shown": f"{apart:.1e}", "bar": ""},
    ]


def _row(what: str, value: float, bar: float) -> dict[str, Any]:
    return {"what": what, "shown": f"{value:.1e}", "bar": f"<= {bar:.0e}"}


if __name__ == "__main__":
    main()
