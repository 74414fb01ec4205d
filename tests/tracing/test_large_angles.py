"""Angles of any size: an offset of the robot is added to the reduced angle, whose last place does not round it away."""

from __future__ import annotations

import ctypes
import math
import shutil
import subprocess
from pathlib import Path
from typing import Any

import mpmath
import numpy as np
import pytest
from robots_for_tests import samples

import linksweep as ls
from linksweep.spatial.scalars import LARGE, shifted
from linksweep.tracing.expression import Graph, measured_angle

SIZES = (1.0, 1e1, 1e3, 1e5, 1e6, 1e8, 1e15)
BOT = ls.robots.chain(3)  # every joint has an offset
POSE = ("pose", "tool")
ROUNDING = 2e-15  # of entries up to 1: some ten operations
needs_gcc = pytest.mark.skipif(shutil.which("gcc") is None, reason="no C compiler here")


def reduced(q: np.ndarray) -> np.ndarray:
    """The same angles within half a turn, by many digits."""
    with mpmath.workdps(60):
        turn = 2 * mpmath.pi
        return np.array([float(x - turn * mpmath.nint(x / turn)) for x in map(mpmath.mpf, q.ravel())]).reshape(q.shape)


def angles(size: float, dtype: Any = np.float64) -> np.ndarray:
    return np.random.default_rng(int(size)).uniform(-size, size, (50, 3)).astype(dtype)


def right(q: np.ndarray) -> np.ndarray:
    return BOT.compile(POSE, backend="interpreter")(reduced(q.astype(np.float64)))


def test_the_robot_has_offsets():
    assert all(abs(link.angle) > 0.01 for link in BOT.canonical.links)


@pytest.mark.quick
@pytest.mark.parametrize("rolled", [False, True])
@pytest.mark.parametrize("backend", ["llvm", "interpreter"])
@pytest.mark.parametrize("size", SIZES)
def test_poses(size: float, backend: str, rolled: bool):
    q = angles(size)
    found = BOT.compile(POSE, backend=backend, rolled=rolled)(q)
    assert np.abs(found - right(q)).max() <= ROUNDING
    single = angles(size, np.float32)
    found = BOT.compile(POSE, backend=backend, rolled=rolled)(single)
    assert found.dtype == np.float32 and np.abs(found - right(single)).max() <= 1e-6


@pytest.mark.parametrize("size", SIZES)
def test_dynamics(size: float):
    q = angles(size)
    _, qd, qdd = samples(BOT, 50, seed=1)
    near = reduced(q)
    tau = BOT.inverse_dynamics(near, qd, qdd)
    assert np.abs(BOT.inverse_dynamics(q, qd, qdd) - tau).max() <= 1e-14 * np.abs(tau).max()
    for method in BOT.methods("forward_dynamics"):
        found = BOT.forward_dynamics(q, qd, tau, method=method)
        assert np.abs(found - qdd).max() <= 1e-11, method


def test_one_sample_alone():
    q = angles(1e8)
    assert np.array_equal(BOT.pose(q[7], "tool"), BOT.pose(q, "tool")[7])


@needs_gcc
@pytest.mark.parametrize("rolled", [False, True])
def test_exported_c(tmp_path: Path, rolled: bool):
    function = BOT.compile(POSE, backend="interpreter", rolled=rolled)
    (tmp_path / "f.c").write_text(function.c_source("f"))
    (tmp_path / "f.h").write_text(function.c_header("f"))
    build = ["gcc", "-std=c99", "-Wall", "-Wextra", "-Werror", "-pedantic", "-O2", "-fPIC", "-shared"]
    subprocess.run([*build, "-o", tmp_path / "f.so", tmp_path / "f.c", "-lm"], check=True)
    library = ctypes.CDLL(str(tmp_path / "f.so"))
    for size in SIZES:
        q = angles(size)
        for own, wanted in zip(q, right(q), strict=True):
            found = np.empty((4, 4))
            library.f(ctypes.c_void_p(np.ascontiguousarray(own).ctypes.data), ctypes.c_void_p(found.ctypes.data))
            assert np.abs(found - wanted).max() <= ROUNDING


def test_the_float_path():
    """Operators run the algorithms over Python's own numbers."""
    q, near = np.array([1e8, -3e7, 2e9]), reduced(np.array([1e8, -3e7, 2e9]))
    M = BOT.mass_matrix(near)
    ops = ls.operators(BOT, q)
    dense = (ops.H @ ops.phi @ ops.M @ ops.phi.T @ ops.H.T).todense()
    assert np.abs(dense[::-1, ::-1] - M).max() <= 1e-14 * np.abs(M).max()
    assert (
        shifted(0.5, 0.25) == 0.75 and np.isnan(np.array(shifted(math.nan, 1.0))) and shifted(LARGE, 1.0) == LARGE + 1
    )
    assert shifted(math.inf, 1.0) == math.inf


def test_what_is_measured_and_what_is_added():
    graph = Graph()
    q, table, other = graph.leaf("input", (0, 0)), graph.leaf("table", (0,)), graph.leaf("input", (0, 1))
    assert measured_angle(q + 0.5) == (q, 0.5) and measured_angle(0.5 + q) == (q, 0.5)
    assert measured_angle(q + table) == (q, table) and measured_angle(table + q) == (q, table)
    assert measured_angle(q) == (q, 0.0) and measured_angle(q + other) == (q + other, 0.0)
