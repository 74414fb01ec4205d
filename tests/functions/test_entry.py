"""The fast entry takes plain calls of every kind, bit for bit as the road through Python, and hands on the rest."""

from __future__ import annotations

import itertools
import threading
from typing import Any

import numpy as np
import pytest

import linksweep as ls
from linksweep.backends import entry
from linksweep.errors import ArgumentError
from linksweep.functions.compiled import _Calls

pytestmark = pytest.mark.skipif(not entry.supported(), reason="no fast entry on this Python")
ARM = ls.robots.puma560()
RNG = np.random.default_rng(5)


class Behind(Exception):
    """The call went to Python."""


def plain(function: Any) -> Any:
    """The same function without its entry."""
    return function._calls


@pytest.fixture
def guarded(monkeypatch: pytest.MonkeyPatch):
    def refuse(*_: Any, **__: Any) -> None:
        raise Behind

    def make(function: Any) -> Any:
        monkeypatch.setattr(_Calls, "_checked_call", refuse)
        return function

    return make


def states(shapes: Any, dtype: Any = np.float64) -> list[np.ndarray]:
    return [RNG.uniform(-1, 1, (*shape, 6)).astype(dtype) for shape in shapes]


@pytest.mark.quick
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("batches", list(itertools.product([(), (1,), (7,)], repeat=3)), ids=str)
@pytest.mark.parametrize("asked", ["inverse_dynamics", ["inverse_dynamics", "mass_matrix"]], ids=["one", "two"])
def test_broadcasting(asked: Any, batches: Any, dtype: Any, guarded: Any):
    function = ARM.compile(asked)
    args = states(batches, dtype)
    expected = plain(function)(*args)  # and the kernel for float32 is there
    expected = expected if isinstance(expected, tuple) else (expected,)
    found = guarded(function)(*args)
    found = found if isinstance(found, tuple) else (found,)
    assert len(found) == len(expected)
    for ours, theirs in zip(found, expected, strict=True):
        assert ours.shape == theirs.shape and ours.dtype == theirs.dtype
        assert np.array_equal(ours, theirs)
        assert ours.flags.c_contiguous and ours.flags.writeable and ours.flags.owndata


def test_strides(guarded: Any):
    function = ARM.compile("inverse_dynamics")
    wide = RNG.uniform(-1, 1, (9, 3, 6))
    everything = [wide[::2, k] for k in range(3)]
    once = [np.broadcast_to(wide[0, 0], (5, 6)), *everything[1:]]
    expected = [plain(function)(*args) for args in (everything, once)]
    for args, right in zip((everything, once), expected, strict=True):
        assert np.array_equal(guarded(function)(*args), right)


@pytest.mark.quick
def test_out(guarded: Any):
    one, two = ARM.compile("inverse_dynamics"), ARM.compile(["inverse_dynamics", "mass_matrix"])
    args = states([(4,), (), (4,)])
    right, (_, matrix) = plain(one)(*args), plain(two)(*args)
    guarded(one)
    out, square = np.empty((4, 6)), np.empty((4, 6, 6))
    assert one(*args, out=out) is out and np.array_equal(out, right)
    assert np.array_equal(one(*args, out=None), right)
    for both in ((np.empty((4, 6)), square), [np.empty((4, 6)), square]):
        assert two(*args, out=both) is both
        assert np.array_equal(both[0], right) and np.array_equal(square, matrix)


@pytest.mark.quick
@pytest.mark.parametrize(
    "wrong",
    [
        lambda a: ((a[0].tolist(), *a[1:]), {}),
        lambda a: ((a[0][None], *a[1:]), {}),  # two batch axes
        lambda a: ((a[0].astype(np.float32), *a[1:]), {}),
        lambda a: (tuple(x[:, ::-1] for x in a), {}),  # backwards within a sample
        lambda a: (tuple(x[::-1] for x in a), {}),
        lambda a: (a, {"out": np.empty((6, 4)).T}),
        lambda a: (a, {"out": a[0]}),  # the result over an argument
        lambda a: (a, {"out": np.empty((8, 6))[::2]}),
        lambda a: (a[:2], {"qdd": a[2]}),
        lambda a: ((np.asfortranarray(a[0]), *a[1:]), {}),
        lambda a: (tuple(x.astype(">f8") for x in a), {}),
        lambda a: (tuple(x[:0] for x in a), {}),
    ],
)
def test_what_is_handed_on_is_right_too(wrong: Any):
    function = ARM.compile("inverse_dynamics")
    args, named = wrong(tuple(states([(4,)] * 3)))
    separate = [np.array(x, dtype=float) for x in (*args, *(v for k, v in named.items() if k != "out"))]
    right = ARM.compile("inverse_dynamics", backend="interpreter")(*separate)
    assert np.allclose(function(*args, **named), right, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(
    ("args", "named"),
    [
        ((np.zeros(6), np.zeros(6)), {}),
        ((np.zeros(6), np.zeros(6), np.zeros(5)), {}),
        ((np.zeros((2, 6)), np.zeros((3, 6)), np.zeros(6)), {}),
        ((np.zeros(6), np.zeros(6), np.zeros(6)), {"out": np.zeros(5)}),
        ((np.zeros(6), np.zeros(6), np.zeros(6)), {"out": (np.zeros(6),)}),
        ((np.zeros(6), np.zeros(6), np.zeros(6)), {"out": np.zeros((1, 6))}),
        ((np.zeros(6), np.zeros(6), np.zeros(6)), {"result": np.zeros(6)}),
        ((), {}),
        ((None, None, None), {}),
    ],
)
def test_what_is_wrong_is_said(args: Any, named: Any):
    with pytest.raises(ArgumentError):
        ARM.compile("inverse_dynamics")(*args, **named)


def test_results_that_overlap_are_refused():
    function, memory = ARM.compile(["bias_forces", "gravity_forces"]), np.empty(10)
    with pytest.raises(ArgumentError, match="shares memory"):
        function(np.zeros(6), np.zeros(6), out=(memory[:6], memory[4:]))
    with pytest.raises(ArgumentError, match="read-only"):
        locked = np.zeros(6)
        locked.flags.writeable = False
        function(np.zeros(6), np.zeros(6), out=(locked, np.zeros(6)))


def test_parameters_that_a_batch_shares(guarded: Any):
    function = ARM.compile("inverse_dynamics", parameters=["payload"])
    body = ls.body(2.0, (0.0, 0.1, 0.2), (0.01, 0.02, 0.03))
    args = q, qd, qdd = states([(5,), (), (5,)])
    carrying = ARM.with_payload(ARM.ee, 2.0, (0.0, 0.1, 0.2), np.diag([0.01, 0.02, 0.03]))
    right, alone = carrying.inverse_dynamics(q, qd, qdd), carrying.inverse_dynamics(q[0], qd, qdd[0])
    each = function(*args, np.stack([body] * 5))
    guarded(function)
    assert np.allclose(function(*args, body), right, rtol=1e-10, atol=1e-10)
    assert np.allclose(function(q[0], qd, qdd[0], body), alone, rtol=1e-10, atol=1e-10)
    assert np.allclose(each, right, rtol=1e-10, atol=1e-10)


def test_a_list_of_results_may_be_emptied_meanwhile():
    function = ARM.compile(["inverse_dynamics", "mass_matrix"])
    args = states([(20000,)] * 3)
    right = function(*args)
    for _ in range(20):
        results = [np.empty((20000, 6)), np.empty((20000, 6, 6))]
        kept = list(results)
        other = threading.Thread(target=results.clear)
        other.start()
        try:
            function(*args, out=results)
        except ArgumentError:  # it was empty before the call saw it
            continue
        finally:
            other.join()
        assert all(np.array_equal(a, b) for a, b in zip(kept, right, strict=True))
