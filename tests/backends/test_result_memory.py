"""Large results reuse the memory of earlier ones: only of arrays that are gone, within bounds, and nobody else's."""

from __future__ import annotations

import gc
import os
import threading
from typing import Any

import numpy as np
import pytest
from abuse_helpers import in_process
from numpy._core.multiarray import get_handler_name  # type: ignore[attr-defined]

import linksweep as ls
from linksweep.backends import entry, result_memory

BATCH = 60_000  # 2.9 MB of torques
rng = np.random.default_rng(0)


def torques() -> tuple[Any, list[np.ndarray]]:
    f = ls.robots.puma560().compile("inverse_dynamics")
    return f, list(rng.uniform(-1, 1, (3, BATCH, 6)))


def address(array: np.ndarray) -> int:
    return array.__array_interface__["data"][0]


needs_pool = pytest.mark.skipif(result_memory.handler() is None, reason="there is no pool on this system")


@pytest.mark.quick
@needs_pool
def test_a_block_is_used_again_when_its_array_is_gone():
    f, args = torques()
    first = f(*args)
    expected, where = first.copy(), address(first)
    assert first.flags.owndata and first.base is None and get_handler_name(first) == "linksweep"
    second = f(*args)
    assert address(second) != where  # the first one is still there
    del first
    third = f(*args)
    assert address(third) == where
    assert (third == expected).all() and (second == expected).all()


@needs_pool
def test_views_keep_their_block():
    f, args = torques()
    view = f(*args)[::7, 2:]
    expected = view.copy()
    for scale in (0.5, 2.0, 3.0):
        f(*(scale * x for x in args))
        assert (view == expected).all()
    frozen = memoryview(f(*args))
    assert np.asarray(frozen).base is not None
    before = bytes(frozen[:10])
    f(*(2.0 * x for x in args))
    assert bytes(frozen[:10]) == before


@needs_pool
@pytest.mark.parametrize("shape", [(), (BATCH,), (300, 200)], ids=str)
def test_every_way_to_call(shape: tuple[int, ...]):
    """One sample, a batch (by the fast entry), a batch with two axes (by Python), results in several arrays."""
    robot = ls.robots.puma560()
    f = robot.compile(["inverse_dynamics", "mass_matrix"])
    args = list(rng.uniform(-1, 1, (3, *shape, 6)))
    expected = [x.copy() for x in f(*args)]
    for _ in range(5):
        results = f(*args)
        assert all((a == b).all() for a, b in zip(results, expected, strict=True))
        large = [x for x in results if x.nbytes >= entry.POOLED]
        assert all(get_handler_name(x) == "linksweep" for x in large) and len(large) == (2 if shape else 0)


def test_other_arrays_are_not_touched():
    f, args = torques()
    f(*args)
    assert get_handler_name(np.empty(10**6)) == "default_allocator"
    small = f(*(x[0] for x in args))
    assert get_handler_name(small) == "default_allocator"


def bounded() -> None:
    f, args = torques()
    kept = [f(*(x[: BATCH - 400 * k] for x in args)) for k in range(40)]  # forty sizes
    total = sum(x.nbytes for x in kept)
    assert total > 16 * kept[0].nbytes
    kept.clear()
    gc.collect()
    held = result_memory.held_bytes()
    assert 0 < held <= result_memory._limit() and held < total
    for k in range(40):
        f(*(x[: BATCH - 400 * k] for x in args))
        assert 0 <= result_memory.held_bytes() <= result_memory._limit()


@needs_pool
def test_the_pool_is_bounded():
    in_process(bounded)


def resized() -> None:
    f, args = torques()
    for rows in (2 * BATCH, 10, BATCH - 1, 4 * BATCH):
        result = f(*args)
        expected = result.copy()
        result.resize((rows, 6), refcheck=False)
        few = min(rows, BATCH)
        assert (result[:few] == expected[:few]).all()
        result[...] = 1.0
        del result
    assert (f(*args) == expected).all()


@needs_pool
def test_results_can_be_resized():
    in_process(resized)


def forked() -> None:
    f, args = torques()
    expected = f(*args)
    kept = f(*args)
    child = os.fork()
    for _ in range(20):
        assert (f(*args) == expected).all()
    if child == 0:
        del kept
        assert (f(*args) == expected).all()
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
    assert (kept == expected).all()


@needs_pool
def test_forked_children_have_a_pool_of_their_own():
    in_process(forked)


def threaded() -> None:
    f, args = torques()
    expected, wrong = f(*args), []

    def run(k: int) -> None:
        rows = BATCH - 100 * (k % 3)
        for _ in range(30):
            if not (f(*(x[:rows] for x in args)) == expected[:rows]).all():
                wrong.append(k)

    workers = [threading.Thread(target=run, args=(k,)) for k in range(8)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert not wrong


@needs_pool
@pytest.mark.slow
def test_threads_share_the_pool():
    in_process(threaded)


def outlived() -> None:
    import builtins

    f, args = torques()
    builtins.kept = f(*args)  # type: ignore[attr-defined]  # freed at the very end of the process


@needs_pool
def test_arrays_that_live_until_the_end_of_the_process():
    in_process(outlived)


def switched_off() -> None:
    f, args = torques()
    assert result_memory.handler() is None and get_handler_name(f(*args)) == "default_allocator"


def test_it_can_be_switched_off():
    in_process(switched_off, LINKSWEEP_POOL="off")
