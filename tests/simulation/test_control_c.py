"""Controllers and observers in C: several of one robot in one program, with the gains that they were tuned with."""

from __future__ import annotations

import ctypes
import re
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

import linksweep as ls
from linksweep.simulation import PD, ComputedTorque, Constant, FrictionCompensation, GravityCompensation, saturated

needs_gcc = pytest.mark.skipif(shutil.which("gcc") is None, reason="no C compiler here")
STRICT = ("-std=c99", "-Wall", "-Wextra", "-Werror", "-pedantic", "-O1")
MAIN = """
#include <stdio.h>
#include "soft.h"
#include "stiff.h"
#include "sum.h"
#include "observer.h"

static double q[6] = {%s}, qd[6] = {%s}, ref[6] = {%s}, none[6];
static double state[13], next[13], tau[6];

static void print(void)
{
    int i;
    for (i = 0; i < 6; ++i)
        printf("%%.17g ", tau[i]);
    printf("\\n");
}

int main(void)
{
    int k, i;
    puma560_soft_tuned(q, qd, ref, none, tau);
    print();
    puma560_stiff_tuned(q, qd, ref, none, none, tau);
    print();
    puma560_sum_tuned(q, qd, ref, none, tau);
    print();
    puma560_soft(q, qd, ref, none, puma560_soft_kp, none, tau);
    print();
    for (k = 0; k < 4; ++k) {
        puma560_observer_tuned(q, qd, ref, state, tau, next);
        print();
        for (i = 0; i < 13; ++i)
            state[i] = next[i];
        for (i = 0; i < 6; ++i)
            qd[i] += 0.01 * (i + 1);
    }
    return 0;
}
"""


@pytest.mark.cases(1)
@needs_gcc
@pytest.mark.parametrize("compiler", [("gcc", *STRICT), ("g++", "-x", "c++", "-fpermissive", "-Drestrict=", "-w")])
def test_several_controllers_and_an_observer_in_one_program(tmp_path: Path, compiler: tuple[str, ...]):
    robot, random = ls.robots.puma560(), np.random.default_rng(0)
    q, qd, ref = random.uniform(-1, 1, (3, 6))
    soft, stiff = PD(ref, random.uniform(5, 10, 6), 1 / 3), ComputedTorque(ref, random.uniform(50, 100, 6), 20.0)
    total = saturated(PD(ref, 100.0, 3.0) + GravityCompensation() + FrictionCompensation() + Constant(np.ones(6)))
    observer = robot.momentum_observer(2e-3, gain=70.0)
    for law, name in ((soft, "soft"), (stiff, "stiff"), (total, "sum")):
        law.to_c(tmp_path / f"{name}.c", robot)
    observer.to_c(tmp_path / "observer.c")
    numbers = tuple(", ".join(map(repr, x.tolist())) for x in (q, qd, ref))
    (tmp_path / "main.c").write_text(MAIN % numbers)
    files = [f"{name}.c" for name in ("main", "soft", "stiff", "sum", "observer")]
    if shutil.which(compiler[0]) is None:
        pytest.skip(f"{compiler[0]} is not installed")
    if compiler[0] == "g++":  # C for the functions, C++ for the one that includes their headers
        for file in files[1:]:
            subprocess.run(["gcc", "-c", file], check=True, cwd=tmp_path)
        files = ["main.c", "-x", "none", *(file.replace(".c", ".o") for file in files[1:])]
    done = subprocess.run([*compiler, *files, "-o", "main", "-lm"], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    output = subprocess.run([tmp_path / "main"], capture_output=True, text=True, check=True).stdout
    rows = np.array([[float(x) for x in line.split()] for line in output.splitlines()])
    undamped = PD(ref, soft.kp, 0.0)
    expected = [law.torque(0.0, q, qd, robot) for law in (soft, stiff, total, undamped)]
    expected += [observer(q, qd + 0.01 * k * np.arange(1, 7), ref) for k in range(4)]
    assert np.abs(rows - expected).max() <= 1e-12 * np.abs(expected).max()
    assert np.abs(rows[-1]).max() > 1.0  # the observer has something to see


def test_gains_are_documented_with_their_values(tmp_path: Path):
    robot, kp = ls.robots.puma560(), np.array([1 / 3, 2.0, 30.0, 4e5, 0.1, 6.0])
    source, header = PD(np.zeros(6), kp, 2.0).to_c(tmp_path / "tuned.c", robot)
    comment = header.read_text().partition("*/")[0]
    assert re.search(r"in   kp\[6\]: \w+.*puma560_tuned_kp", comment) and "PD(" in comment
    text = re.search(r"puma560_tuned_kp\[6\] = \{(.*?)\}", source.read_text(), re.DOTALL)
    assert text is not None and [float(x) for x in text[1].split(",")] == kp.tolist()
    single, _ = PD(np.zeros(6), kp, 2.0).to_c(tmp_path / "single.c", robot, dtype="float")
    assert "0.33333334f" in single.read_text()
    batch, _ = PD(np.zeros(6), np.ones((3, 6)), 2.0).to_c(tmp_path / "batch.c", robot)  # three of them: no one value
    assert "puma560_batch_kd[6]" in batch.read_text() and "puma560_batch_kp[6]" not in batch.read_text()


@pytest.mark.slow
@needs_gcc
def test_an_observer_of_a_floating_base(tmp_path: Path):
    robot, random = ls.robots.puma560().with_base("floating"), np.random.default_rng(1)
    observer = robot.momentum_observer(1e-3, gain=20.0, dissipation=True)
    source, _ = observer.to_c(tmp_path / "seen.c", name="seen", dtype="double")
    subprocess.run(["gcc", *STRICT, "-fPIC", "-shared", "-o", tmp_path / "seen.so", source, "-lm"], check=True)
    seen = ctypes.CDLL(str(tmp_path / "seen.so")).seen_tuned
    nv = robot.nv
    state, after, residual = np.zeros(2 * nv + 1), np.zeros(2 * nv + 1), np.zeros(nv)
    for _ in range(5):
        q, qd, tau = robot.random(random), random.normal(size=nv), random.normal(size=nv)
        seen(*(ctypes.c_void_p(x.ctypes.data) for x in (q, qd, tau, state, residual, after)))
        state, after = after, state
        expected = observer(q, qd, tau)
        assert np.abs(residual - expected).max() <= 1e-11 * max(np.abs(expected).max(), 1.0)
