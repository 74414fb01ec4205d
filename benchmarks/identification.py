"""What identification takes: a million rows of a 7-joint arm, consistent fits, and an excitation trajectory.

    python benchmarks/identification.py [--rows N] [--runs N] [--json FILE]

The arm is a Panda whose fingers are held. Each fit of the long log is a process of its own: seconds, and those of the
processor, from arrays in memory (or from the CSV file, reading included) to a Fit with weights of joints, standard
deviations and validation; and the largest resident set of the whole process, with Python, the compiler and the log in
it. Machine code is in the disk cache. The consistent fit has 7 x 5,599 rows and 115 columns: links, a payload,
armatures, friction on both sides, offsets.
"""

from __future__ import annotations

import argparse
import os
import resource
import subprocess
import sys
import tempfile
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from measure import example, heading, load_quietly, table, write_json

import linksweep as ls
from linksweep.files import block_columns, write_table
from linksweep.identification.base_form import base_form
from linksweep.identification.excitation import MARGIN, Barrier, Criterion, random_coefficients
from linksweep.identification.physical import consistent_parameters
from linksweep.identification.regressor import Regressor

RATE = 1000.0
ALL = ("inertia", "payload:panda_hand", "armature", "viscous", "coulomb_sides", "offset")


def panda() -> ls.Robot:
    robot = load_quietly(example("panda.urdf"))
    return robot.lock([joint for joint in robot.joint_names if "finger" in joint])


def log(robot: ls.Robot, rows: int, rate: float = RATE) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """A motion of five harmonics within the limits, its torques with friction and noise, positions with noise."""
    rng = np.random.default_rng(0)
    t = np.arange(rows) / rate
    q, qd, qdd = np.zeros((3, rows, robot.nv))
    q += 0.5 * (robot.limits.lower + robot.limits.upper)
    for joint in range(robot.nv):
        for k in range(1, 6):
            w, (a, b) = 2.0 * np.pi * 0.1 * k, rng.normal(size=2) * 0.25
            s, c = np.sin(w * t), np.cos(w * t)
            q[:, joint] += a * s + b * c
            qd[:, joint] += w * (a * c - b * s)
            qdd[:, joint] -= w**2 * (a * s + b * c)
    tau = robot.inverse_dynamics(q, qd, qdd) + 0.5 * qd + 0.3 * np.sign(qd) + 0.2 * rng.normal(size=q.shape)
    return t, q + 1e-5 * rng.normal(size=q.shape), tau


def child(kind: str, path: Path, every: int) -> None:
    """In a process of its own: fit, then print seconds and the peak in megabytes."""
    robot = panda()
    options: dict[str, Any] = {"cutoff": 20.0, **({"every": every} if every else {})}
    if kind == "arrays":
        with np.load(path) as arrays:
            t, q, tau = arrays["t"], arrays["q"], arrays["tau"]
        ls.identify(robot, t[:3000], q[:3000], tau[:3000], **options)  # imports and machine code
        began, used = time.perf_counter(), time.process_time()
        fit = ls.identify(robot, t, q, tau, **options)
    else:
        began, used = time.perf_counter(), time.process_time()
        fit = ls.identify(robot, ls.read_log(path, robot), **options)
    seconds, used = time.perf_counter() - began, time.process_time() - used
    assert np.allclose(fit.rms, 0.2, rtol=0.02), fit
    print(seconds, used, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)


def measured(kind: str, path: Path, every: int, runs: int) -> tuple[float, float, float]:
    command = [sys.executable, __file__, "--child", kind, str(path), str(every)]
    found = [subprocess.run(command, check=True, capture_output=True, text=True).stdout.split() for _ in range(runs)]
    times, used, peaks = np.array(found, dtype=float).T
    return float(times.min()), float(used.min()), float(peaks.max())


def long_logs(rows: int, runs: int) -> list[dict[str, Any]]:
    robot = panda()
    with tempfile.TemporaryDirectory(dir=os.environ.get("TMPDIR")) as folder:
        t, q, tau = log(robot, rows)
        arrays, text = Path(folder) / "log.npz", Path(folder) / "log.csv"
        np.savez(arrays, t=t, q=q, tau=tau)
        table_ = np.column_stack([t, q, tau])
        blocks = (table_[a : a + 100_000] for a in range(0, rows, 100_000))
        write_table(text, block_columns(robot.model, ("q", "tau")), blocks, {})
        del t, q, tau, table_
        found = []
        for what, kind, path, every, bar in (
            ("from arrays, 12 rows to a sum", "arrays", arrays, 0, "<= 10 s, 1 GB"),
            ("from arrays, every row by itself", "arrays", arrays, 1, "<= 10 s, 1 GB"),
            (f"from CSV of {text.stat().st_size / 1e6:.0f} MB, 12 rows to a sum", "csv", text, 0, "<= 20 s, 1 GB"),
        ):
            seconds, used, peak = measured(kind, path, every, runs)
            shown = f"{seconds:.2f} s ({used:.2f} s), {peak:.0f} MB"
            found.append(_row(f"{rows:,} rows of 7 joints, {what}", shown, bar))
    return found


def consistency(runs: int) -> list[dict[str, Any]]:
    robot = panda()
    t, q, tau = log(robot, 5599, 500.0)
    found = []
    for method in ("entropic", "log_cholesky"):
        best, least, alone, fit = np.inf, np.inf, np.inf, None
        for _ in range(runs + 1):  # the first compiles
            began, used = time.perf_counter(), time.process_time()
            fit = ls.identify(robot, t, q, tau, cutoff=20.0, every=1, method=method, unknown=ALL)
            best, least = min(best, time.perf_counter() - began), min(least, time.process_time() - used)
            began = time.perf_counter()
            torque, weight = fit.settings["torque"], fit.settings["prior_weight"]
            physical = consistent_parameters(fit.grouping, fit.estimate, method, torque, weight)
            alone = min(alone, time.perf_counter() - began)
        assert fit is not None and len(fit.columns) == 115
        assert min(physical.smallest.values()) > 0.0
        size = f"{5599 * 7:,} x {len(fit.columns)}"
        found.append(_row(f"consistent fit, {size}, {method}", f"{best:.2f} s ({least:.2f} s)", "<= 3 s"))
        found.append(_row("  its solver alone", f"{1e3 * alone:.0f} ms", ""))
    return found


def excitation() -> list[dict[str, Any]]:
    robot = panda()
    began = time.perf_counter()
    motion = ls.excite(robot, 10.0)
    seconds = time.perf_counter() - began
    criterion = Criterion(base_form(Regressor(robot, ("inertia",))), "condition", motion.limits, np.ones(7))
    barrier = Barrier(motion.limits, criterion, MARGIN)
    basis = motion.motion.basis
    phi = basis(np.linspace(0.0, 10.0, 101)[:-1])
    rng = np.random.default_rng(99)
    random = [
        criterion.condition(*(one @ C for one in phi))
        for C in (random_coefficients(basis, phi, barrier, rng) for _ in range(1000))
    ]
    ratio = motion.condition / min(random)
    shown = f"{motion.condition:.2f} / {min(random):.2f} = {ratio:.2f}"
    return [
        _row("Panda, 10 s: condition number over the best of 1,000 random Fourier motions", shown, "<= 0.5"),
        _row("  time to find it, with compiling", f"{seconds:.1f} s", ""),
    ]


def _row(what: str, shown: str, bar: str) -> dict[str, Any]:
    return {"what": what, "shown": shown, "bar": bar}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--json", metavar="FILE", help="write the rows, and what they ran on, here")
    parser.add_argument("--child", nargs=3, help=argparse.SUPPRESS)
    options = parser.parse_args()
    warnings.simplefilter("ignore", ls.ModelWarning)
    if options.child:
        kind, path, every = options.child
        child(kind, Path(path), int(every))
        return
    print(heading())
    rows = [*long_logs(options.rows, options.runs), *consistency(options.runs), *excitation()]
    print(table([("", "figure", "bar"), *((r["what"], r["shown"], r["bar"]) for r in rows)]))
    write_json(options.json, rows)


if __name__ == "__main__":
    main()
