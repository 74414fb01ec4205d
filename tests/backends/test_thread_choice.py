"""How many threads a batch gets: by the work that is predicted, and LINKSWEEP_THREADS."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import linksweep as ls
from linksweep.backends import threads as module
from linksweep.backends.threads import default_threads, longest_alone, run_chunks
from linksweep.errors import ArgumentError


class Counted:
    """A kernel of a known cost; says in how many pieces and blocks it was asked to run."""

    def __init__(self, cost: float):
        self.cost, self.block = cost, 0

    def __call__(self, inputs: Any, outputs: Any) -> None:
        self.block = -1

    def shared(self, inputs: Any, outputs: Any, block: int) -> Counted:
        self.block = block
        return self

    def run(self) -> None: ...

    def stop(self) -> None: ...


@pytest.mark.parametrize(
    ("cost", "count", "threads", "pieces"),
    [
        (13.0, 4096, 2, 1),  # UR5, 53 us in all: not worth it
        (13.0, 65536, 2, 2),
        (500.0, 1024, 2, 2),  # a humanoid: half a millisecond in few samples
        (500.0, 64, 2, 1),
        (13.0, 65536, 8, 8),
        (13.0, 32768, 8, 8),
        (13.0, 16384, 8, 4),
        (1e9, 8, 4, 4),
    ],
)
def test_pieces_by_work(monkeypatch: pytest.MonkeyPatch, cost: float, count: int, threads: int, pieces: int):
    asked = []
    monkeypatch.setattr(module, "run_shared", lambda work, number: asked.append(number))
    kernel = Counted(cost)
    run_chunks(kernel, [], [np.zeros((count, 1))], threads)
    assert asked == ([pieces] if pieces > 1 else [])
    assert kernel.block == -1 if pieces == 1 else kernel.block % 64 == 0 and kernel.block > 0


def test_the_prediction_follows_the_robot():
    """Costs are stored with the code and come back with it; they need to be right within a small factor only."""
    small, large = ls.robots.planar(2), ls.robots.chain(30, seed=1)
    costs = [robot.compile("forward_dynamics").kernel("float64").cost for robot in (small, large)]
    assert 0.5 < costs[0] < 100.0 and 10.0 < costs[1] / costs[0] < 1000.0
    again = ls.robots.planar(2).compile("forward_dynamics").kernel("float64").cost
    assert again == costs[0]


def test_threads_take_the_fast_entry_for_small_batches_and_give_the_same():
    robot = ls.robots.puma560()
    one, two = (robot.compile("inverse_dynamics", threads=k) for k in (1, 2))
    longest = longest_alone(two.kernel("float64").cost)
    rng = np.random.default_rng(0)
    for count in (1, 64, longest, longest + 1, 3 * longest):
        args = [rng.normal(size=(count, 6)) for _ in range(3)]
        np.testing.assert_array_equal(one(*args), two(*args))


def test_the_environment_says_how_many(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.delenv("LINKSWEEP_THREADS", raising=False)
    assert default_threads() == 1 and ls.robots.puma560().compile("gravity_forces").threads == 1
    monkeypatch.setenv("LINKSWEEP_THREADS", "3")
    robot = ls.robots.puma560()
    assert robot.compile("gravity_forces").threads == 3
    assert robot.compile("gravity_forces", threads=1).threads == 1
    q = np.random.default_rng(0).normal(size=(100_000, 6))
    np.testing.assert_array_equal(robot.gravity_forces(q), robot.compile("gravity_forces", threads=1)(q))
    for wrong in ("0", "two", "1.5"):
        monkeypatch.setenv("LINKSWEEP_THREADS", wrong)
        with pytest.raises(ArgumentError, match=f"LINKSWEEP_THREADS is '{wrong}', expected a whole number from 1"):
            default_threads()
