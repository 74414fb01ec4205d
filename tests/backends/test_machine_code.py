"""Machine code touches nothing but its arrays: every batch length, flush against pages that nobody may touch."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from abuse_helpers import SIMD, Guarded, close, function, in_process, interpreted, results, robot, same_bits, samples

import linksweep as ls
from linksweep.backends.target import host_target

# every size of a row against every width of a vector: below, equal to, between and above powers of two
SIZES = ("chain1", "planar2", "mixed3", "chain5", "puma560", "mixed7", "chain8", "mixed9", "chain13")
CASES = {
    "inverse": [(name, "inverse_dynamics") for name in SIZES],
    "gravity": [(name, "gravity_forces") for name in SIZES],
    "forward": [(name, "forward_dynamics") for name in ("chain1", "mixed3", "puma560", "tree7")],
    "matrices": [(name, "mass_matrix") for name in ("chain1", "mixed3", "tree7", "mixed9")],
    "jacobian": [("chain1", "jacobian"), ("chain5", "jacobian"), ("tree7", "jacobian"), ("mixed3", "pose")],
    "several": [("puma560", "several"), ("tree5", "several")],
    "derivative": [(name, "d_inverse_dynamics") for name in ("planar2", "chain5")] + [("mixed3", "d_forward_dynamics")],
    "forces": [("mixed3", "inverse_with_forces"), ("tree7", "inverse_with_forces")],
    "rolled inverse": [(name, "inverse_dynamics_rolled") for name in ("chain1", "planar2", "tree8", "chain13")],
    "rolled forward": [(name, "forward_dynamics_rolled") for name in ("chain1", "mixed7", "tree9")],
    "rolled matrices": [("chain1", "mass_matrix_rolled"), ("tree7", "mass_matrix_rolled"), ("tree9", "pose_rolled")],
    "large": [("chain66", "mass_matrix_rolled"), ("planar27", "d_jacobian")],  # spare rows beyond the stack's
    "rolled several": [("tree5", "several_rolled"), ("tree9", "inverse_with_forces_rolled")],
}  # fmt: skip


def guard(case: str, dtype: str) -> None:
    for name, wanted in CASES[case]:
        compiled = function(robot(name), wanted, dtype=dtype)
        guard_single(compiled, dtype)
        lanes = host_target().lanes(dtype)
        lengths = (1, lanes - 1, lanes + 1, 2 * lanes) if case == "large" else range(1, 3 * lanes + 2)
        args = samples(compiled, lengths[-1], dtype)
        whole = results(compiled(*args))
        close(whole, interpreted(compiled, args), 1e-9 if dtype == "float64" else 5e-3)
        shared = [args[0][:1], *args[1:]]  # the first input is one row for all samples
        broadcast = results(compiled(np.repeat(shared[0], lengths[-1], axis=0), *args[1:]))
        memory = [Guarded(4 * a.nbytes) for a in (*args, *whole)]
        for length in lengths:
            for at_end, gap in ((True, 0), (False, 0), (True, 3), (False, 1)):
                _guarded_run(compiled, args, whole, memory, length, at_end, gap)
                _guarded_run(compiled, shared, broadcast, memory, length, at_end, gap)


def _guarded_run(compiled, args, expected, memory, length: int, at_end: bool, gap: int) -> None:
    """Run the kernel over the first samples, rows `gap` elements apart; an input of one row gets stride 0."""
    dtype = expected[0].dtype
    inputs = []
    for place, array in zip(memory, args, strict=False):
        rows = array.reshape(len(array), -1)[:length]
        size = rows.shape[1]
        stride = 0 if len(array) == 1 else size + gap
        inputs.append(place.place((length, size), dtype, stride, at_end))
        inputs[-1][:] = rows
    outputs = [
        place.place((length, y[0].size), dtype, y[0].size + gap, at_end)
        for place, y in zip(memory[len(args) :], expected, strict=True)
    ]
    before = [x.copy() for x in inputs]
    compiled.kernel(dtype)(inputs, outputs)
    wanted = [y.reshape(len(y), -1)[:length] for y in expected]
    assert same_bits(outputs, wanted), (compiled, length, at_end, gap)
    assert same_bits(before, inputs)
    assert all(m.untouched() for m in memory), (compiled, length, at_end, gap)


def guard_single(compiled, dtype: str) -> None:
    """The entry for single samples, and the checked call with out=, on arrays at guard pages."""
    args = samples(compiled, 4, dtype)
    whole = results(compiled(*args))
    memory = [Guarded(a.nbytes) for a in (*args, *whole)]
    for k, at_end in itertools.product(range(4), (True, False)):
        placed = [
            place.place((1, *a.shape[1:]), dtype, a[0].size, at_end)
            for place, a in zip(memory, (*args, *whole), strict=True)
        ]
        for view, array in zip(placed, args, strict=False):
            view[0] = array[k]
        rows = [view[0] for view in placed[: len(args)]]
        assert all(type(row) is np.ndarray and row.flags.c_contiguous for row in rows)
        expected = [y[k] for y in whole]
        for _ in range(3):
            assert same_bits(compiled(*rows), expected), compiled
        out = placed[len(args) :]
        compiled(*placed[: len(args)], out=tuple(out) if len(out) > 1 else out[0])
        assert same_bits([y[0] for y in out], expected), compiled
        assert all(m.untouched() for m in memory), compiled


@pytest.mark.cases(1)
@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("case", CASES)
def test_nothing_outside_the_arrays_is_touched(case: str, dtype: str):
    in_process(guard, case, dtype)


@pytest.mark.slow
@pytest.mark.cases(1)
@pytest.mark.parametrize("simd", SIMD[1:])
@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("case", ["gravity", "several", "rolled inverse", "rolled matrices"])
def test_nothing_outside_the_arrays_is_touched_with_narrower_vectors(case: str, dtype: str, simd: str):
    in_process(guard, case, dtype, LINKSWEEP_SIMD=simd)


def read_beyond() -> None:
    array = Guarded(100).place((2, 3), "float64", 3, at_end=True)
    print(np.lib.stride_tricks.as_strided(array, (3, 3))[2, 0])


def test_guard_pages_guard():
    with pytest.raises(AssertionError, match="exit status -11"):
        in_process(read_beyond)


def test_a_number_beyond_float32_is_refused():
    row = {"alpha": 0.3, "mass": 1e29, "com": (1e6, 2e6, 3e6), "inertia": (1.0, 1.0, 1.0)}
    heavy = ls.Robot.from_dh([row, row], "modified")
    assert np.isfinite(heavy.compile("inverse_dynamics")(np.ones(2), np.ones(2), np.ones(2))).all()
    with pytest.raises(ls.BackendError, match="does not fit into float32: compile with dtype='float64'"):
        heavy.compile("inverse_dynamics", dtype="float32")(np.ones(2), np.ones(2), np.ones(2))
