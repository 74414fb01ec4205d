"""A sample's result is the same to the bit wherever it stands in a batch, and bad samples spoil only themselves."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from abuse_helpers import SIMD, close, function, in_process, interpreted, results, robot, same_bits, samples

from linksweep.functions.functions import FUNCTIONS

CASES = [
    ("puma560", "inverse_dynamics"), ("mixed7", "forward_dynamics"), ("tree7", "mass_matrix"), ("tree5", "several"),
    ("chain5", "jacobian"), ("mixed3", "d_inverse_dynamics"), ("mixed3", "pose"), ("tree5", "inverse_with_forces"),
    ("tree7", "inverse_dynamics_rolled"), ("mixed5", "forward_dynamics_rolled"), ("tree5", "several_rolled"),
    ("tree5", "inverse_with_forces_rolled"),
]  # fmt: skip
ODD = (np.nan, np.inf, -np.inf, 1e300, -1e30, 1e6, 5e-324, -0.0)  # what neighbours may hold


def take(value, index) -> list[np.ndarray]:
    return [np.ascontiguousarray(y[index]) for y in results(value)]


def anywhere(name: str, wanted: str, dtype: str) -> None:
    """Every sample alone gives the reference; then batches in which it must come out the same."""
    compiled = function(robot(name), wanted, dtype=dtype)
    args = samples(compiled, 40, dtype)
    single = [results(compiled(*[a[k] for a in args])) for k in range(40)]  # the fast entry, where there is one
    alone = [np.stack([s[i] for s in single]) for i in range(len(single[0]))]

    for count in range(1, 41):  # every batch length, and so every lane
        assert same_bits(results(compiled(*[a[:count] for a in args])), [y[:count] for y in alone]), count
        assert same_bits(results(compiled(*[a[-count:] for a in args])), [y[-count:] for y in alone]), count
    order = np.random.default_rng(1).permutation(40)
    assert same_bits(take(compiled(*[a[order] for a in args]), np.argsort(order)), alone)

    for odd in ODD:  # whatever the neighbours are
        for offset in range(5):
            spoiled = [a.copy() for a in args]
            with np.errstate(over="ignore"):
                for a in spoiled:
                    a[offset::5] = odd
            good = [k for k in range(40) if k % 5 != offset]
            assert same_bits(take(compiled(*spoiled), good), take(alone, good)), odd

    gaps = [np.repeat(a, 2, axis=0)[::2] for a in args]  # rows apart
    reversed_rows = [a[::-1].copy()[::-1] for a in args]
    columns = [np.asfortranarray(a) for a in args]
    deep = [a.reshape(2, 5, 4, *a.shape[1:]) for a in args]
    for layout in (gaps, reversed_rows, columns, [a.tolist() for a in args], [a.astype(">f8") for a in args]):
        assert same_bits(results(compiled(*layout)), alone)
    assert same_bits([y.reshape(40, *y.shape[3:]) for y in results(compiled(*deep))], alone)
    repeated = compiled(*[np.broadcast_to(a[7], (11, *a.shape[1:])) for a in args])  # stride 0
    assert same_bits(results(repeated), [np.repeat(y[7:8], 11, axis=0) for y in alone])

    out = [np.full_like(y, 3.0) for y in alone]
    compiled(*args, out=tuple(out) if len(out) > 1 else out[0])
    assert same_bits(out, alone)
    wide = [np.full((40, 2, *y.shape[1:]), 3.0, dtype)[:, 0] for y in alone]  # rows apart
    compiled(*args, out=tuple(wide) if len(wide) > 1 else wide[0])
    assert same_bits(wide, alone)

    count = 2311  # three chunks of 512 or more, of unequal length
    many = [np.resize(a, (count, *a.shape[1:])) for a in args]
    for threads in (1, 2, 3):
        found = function(robot(name), wanted, dtype=dtype, threads=threads)(*many)
        assert same_bits(results(found), [np.resize(y, (count, *y.shape[1:])) for y in alone]), threads


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize(("name", "wanted"), CASES)
def test_a_sample_is_the_same_anywhere(name: str, wanted: str, dtype: str):
    anywhere(name, wanted, dtype)


def anywhere_all(dtype: str) -> None:
    for name, wanted in CASES:
        anywhere(name, wanted, dtype)


@pytest.mark.slow
@pytest.mark.parametrize("simd", SIMD[1:])
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_a_sample_is_the_same_anywhere_with_narrower_vectors(dtype: str, simd: str):
    in_process(anywhere_all, dtype, LINKSWEEP_SIMD=simd)


# ---- samples that are not finite


PUBLIC = [name for name, function in FUNCTIONS.items() if function.public]


NON_FINITE = [*CASES, ("puma560", "gravity_forces"), ("puma560", "bias_forces"), ("puma560", "mass_matrix"),
              ("planar2", "jacobian"), ("planar2", "gravity_forces_rolled"), ("tree7", "jacobian_rolled")]  # fmt: skip


def spoil_each(name: str, wanted: str, dtype: str, backend: str) -> None:
    compiled = function(robot(name), wanted, dtype=dtype, backend=backend)
    count = 19
    args = samples(compiled, count, dtype)
    clean = results(compiled(*args))
    assert all(np.isfinite(y).all() for y in clean)
    bad = itertools.cycle((np.nan, np.inf, -np.inf))
    sample = itertools.cycle(range(count))
    for which, array in enumerate(args):
        for element in range(array[0].size):
            k = next(sample)
            spoiled = [a.copy() for a in args]
            spoiled[which].reshape(count, -1)[k, element] = next(bad)
            found = results(compiled(*spoiled))
            assert all(np.isnan(y[k]).all() for y in found), (which, element)
            others = np.arange(count) != k
            assert same_bits(take(found, others), take(clean, others)), (which, element)
            alone = results(compiled(*[a[k] for a in spoiled]))
            assert all(np.isnan(y).all() for y in alone), (which, element)


@pytest.mark.quick
@pytest.mark.parametrize("backend", ["llvm", "interpreter"])
@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize(("name", "wanted"), NON_FINITE)
def test_one_bad_element_spoils_its_sample_and_no_other(name: str, wanted: str, dtype: str, backend: str):
    spoil_each(name, wanted, dtype, backend)


def spoil_every_method() -> None:
    """Every public function by every method, chains and trees."""
    for arm in (robot("puma560"), robot("tree5")):
        for name in PUBLIC:
            if FUNCTIONS[name].needs_frame:
                continue
            for method in arm.methods(name) or (None,):
                compiled = arm.compile(name, method=method)
                args = samples(compiled, 5)
                clean = results(compiled(*args))
                for a in args:
                    before = a[3, 0].copy()
                    a[3, 0] = np.inf
                    found = results(compiled(*args))
                    a[3, 0] = before
                    assert all(np.isnan(y[3]).all() for y in found), (name, method)
                    assert same_bits(take(found, [0, 1, 2, 4]), take(clean, [0, 1, 2, 4])), (name, method)


@pytest.mark.slow
def test_every_method_knows_bad_samples():
    in_process(spoil_every_method)


@pytest.mark.quick
def test_an_input_that_folding_drops_is_checked_too():
    """PUMA's torques do not depend on q1."""
    compiled = robot("puma560").compile("inverse_dynamics")
    q, first = np.zeros(6), np.eye(6)[0]
    assert same_bits(compiled(q, q, q), compiled(first, q, q))
    assert np.isnan(compiled(np.where(first, np.nan, 0.0), q, q)).all()
    assert np.isnan(robot("puma560").inverse_dynamics(np.where(first, np.inf, 0.0), q, q)).all()


@pytest.mark.quick
def test_a_shared_row_that_is_bad_spoils_every_sample():
    compiled = robot("puma560").compile("inverse_dynamics")
    q = np.zeros((20, 6))
    assert np.isnan(compiled(q, np.full(6, np.inf), q)).all()


def huge(dtype: str) -> None:
    """Huge and tiny finite numbers do not crash; far angles take libm's way and agree with the interpreter."""
    large = 1e300 if dtype == "float64" else 1e38
    tiny = 5e-324 if dtype == "float64" else 1e-45
    for name, wanted in NON_FINITE:
        compiled = function(robot(name), wanted, dtype=dtype)
        for value in (large, -large, tiny, -tiny, 1e-310, 1e20, 1e6, -1e5, 123456.789):
            args = samples(compiled, 21, dtype)
            clean = results(compiled(*args))
            for a in args:
                a[::2] = value
            found = results(compiled(*args))
            assert same_bits(take(found, slice(1, None, 2)), take(clean, slice(1, None, 2))), value
            assert same_bits(take(found, 4), results(compiled(*[a[4] for a in args]))), value
        far = samples(compiled, 21, dtype)
        far[0][...] *= 1e6
        if dtype == "float64":
            close(results(compiled(*far)), interpreted(compiled, far), 1e-7)  # the largest angle is off by 1e-10


@pytest.mark.slow
@pytest.mark.cases(1)
@pytest.mark.parametrize("simd", SIMD)
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_huge_and_tiny_numbers(dtype: str, simd: str):
    in_process(huge, dtype, LINKSWEEP_SIMD=simd)


def test_subnormal_results_are_not_flushed_to_zero():
    """tau = I qdd with gravity off: half of the smallest normal number stays what it is."""
    arm = robot("planar1").with_gravity((0, 0, 0))
    inertia = arm.mass_matrix([0.0])[0, 0]
    compiled = arm.compile("inverse_dynamics")
    for qdd in (2.0**-1030, -(2.0**-1060)):
        found = compiled([0.0], [0.0], [qdd])[0]
        assert found != 0 and found == pytest.approx(inertia * qdd, rel=1e-6, abs=0)
