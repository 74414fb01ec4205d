"""Talos on a floating base: forward dynamics of 1024 samples against a Python loop of pin.aba, and time to compile.

    python benchmarks/whole_robots.py

One thread. Times are the best of several runs, interleaved. Bars of issue 4: 20 times faster than the loop; 3 s to
compile cold, 40 ms from the cache with imports done.
"""

from __future__ import annotations

import importlib.metadata
import os
import tempfile
import time
import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pinocchio as pin

import linksweep as ls
from linksweep.robot import conventions

BATCH = 1024
ROUNDS = 7


def talos() -> Path:
    files = importlib.metadata.files("example-robot-data") or []
    return Path(str(next(file.locate() for file in files if str(file).endswith("talos_reduced.urdf"))))


def seconds(call: Callable[[], object]) -> float:
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


def main() -> None:
    warnings.simplefilter("ignore", ls.ModelWarning)
    file = talos()
    with tempfile.TemporaryDirectory() as folder:
        os.environ["LINKSWEEP_CACHE"] = folder
        ls.robots.planar(2).forward_dynamics(np.zeros(2), np.zeros(2), np.zeros(2))  # imports, LLVM's own start
        robot = ls.load(file, base="floating")
        cold = seconds(lambda: robot.compile("forward_dynamics"))
        again = ls.load(file, base="floating")
        cached = min(seconds(lambda: again.compile("forward_dynamics")) for _ in range(3))
        forward = robot.compile("forward_dynamics")

    rng = np.random.default_rng(0)
    q = np.stack([robot.random(rng) for _ in range(BATCH)])
    qd, tau = rng.uniform(-1, 1, (2, BATCH, robot.nv))
    model = pin.buildModelFromUrdf(str(file), pin.JointModelFreeFlyer())
    data = model.createData()
    theirs = conventions.to_pinocchio(robot, model, q=q, v=qd, tau=tau)

    def loop() -> np.ndarray:
        return np.array([pin.aba(model, data, *sample) for sample in zip(*theirs, strict=True)])

    error = np.abs(conventions.from_pinocchio(robot, model, a=loop()) - forward(q, qd, tau)).max()
    ours, pinocchio = np.inf, np.inf
    for _ in range(ROUNDS):
        ours = min(ours, *(seconds(lambda: forward(q, qd, tau)) for _ in range(5)))
        pinocchio = min(pinocchio, seconds(loop))
    print(f"{robot.name}, {robot.nv} rates, forward dynamics, batch {BATCH}, one thread")
    print(f"  linksweep {ours / BATCH * 1e9:8.0f} ns a sample")
    print(f"  pin.aba   {pinocchio / BATCH * 1e9:8.0f} ns a sample, in a Python loop")
    print(f"  ratio     {pinocchio / ours:8.1f}   (bar: 20)")
    print(f"  largest difference of accelerations {error:.1e}")
    print(f"compile: cold {cold:.2f} s (bar: 3), from the cache {cached * 1e3:.1f} ms (bar: 40)")


if __name__ == "__main__":
    main()
