"""One algorithm, any scalar: floats, NumPy arrays, 50 digits, traced; and the sweeps themselves on simple steps."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from robots_for_tests import at_rest, big, close, compiled, condition, floats, path, robot, samples

from linksweep.algorithms.forward.filter_smoother import filter_smoother
from linksweep.algorithms.inverse.newton_euler import newton_euler
from linksweep.algorithms.mass_matrix.composite_inertia import mass_matrix
from linksweep.algorithms.rigid_body.kinematics import jacobian, poses
from linksweep.backends.interpreter import Interpreter
from linksweep.mechanism.sweeps import Records, Unrolled
from linksweep.spatial.algebra import ZERO_FORCE, Force, Vec, leaves
from linksweep.tracing.program import Array
from linksweep.tracing.rolled import Rolled
from linksweep.tracing.tracer import UnrolledTrace

ARMS = ("puma560", "stanford", "mixed5", "chain7", "tree9", "urdf")


def run(bot: Any, algorithm: str, q: Any, qd: Any, x: Any, *, dissipation: bool = False) -> list[Any]:
    """The algorithm itself, over whatever scalars q, qd and x (qdd or tau) hold."""
    sweep = Unrolled(bot.canonical, q)
    if algorithm == "mass_matrix":
        return sweep.join_pairs(mass_matrix(sweep).elements)
    gravity, still = at_rest(Vec(*bot.gravity)), sweep.same(ZERO_FORCE)
    if algorithm == "newton_euler":
        result = newton_euler(sweep, sweep.split(qd), sweep.split(x), still, gravity, dissipation=dissipation)
        return sweep.join(result.tau)
    result = filter_smoother(sweep, sweep.split(qd), sweep.split(x), still, gravity, dissipation=dissipation)
    return sweep.join(result.qdd)


ALGORITHMS = {
    "newton_euler": ("inverse_dynamics", ("q", "qd", "qdd")),
    "filter_smoother": ("forward_dynamics", ("q", "qd", "tau")),
    "mass_matrix": ("mass_matrix", ("q",)),
}


@pytest.mark.parametrize("algorithm", ALGORITHMS)
@pytest.mark.parametrize("name", ARMS)
def test_one_algorithm_over_every_scalar(name: str, algorithm: str):
    bot = robot(name)
    batch = samples(bot, 4, seed=3)
    function, inputs = ALGORITHMS[algorithm]
    over_arrays = run(bot, algorithm, *(list(x.T) for x in batch))
    shape = (4, bot.nv, bot.nv) if algorithm == "mass_matrix" else (4, bot.nv)
    over_arrays = np.stack([np.broadcast_to(x, 4) for x in over_arrays], axis=-1).reshape(shape)
    traced = compiled(name, function, backend="interpreter")(*batch[: len(inputs)])
    machine = compiled(name, function)(*batch[: len(inputs)])
    for k in range(4):
        args = [x[k].tolist() for x in batch]
        plain = floats(run(bot, algorithm, *args)).reshape(shape[1:])
        exact = floats(run(bot, algorithm, *(big(x) for x in args))).reshape(shape[1:])
        # forward dynamics solves with M: rounding grows with its condition
        tolerance = 1e-12 if algorithm != "filter_smoother" else 1e-14 * max(100.0, condition(bot.model, args[0]))
        for got in (plain, over_arrays[k], traced[k], machine[k]):
            assert close(got, exact, tolerance)


def test_dissipation_over_every_scalar():
    bot = robot("tree9")
    q, qd, x = samples(bot, seed=4)
    qd[0] = 0.0  # friction of a joint at rest is nothing
    for algorithm, function in (("newton_euler", "inverse_dynamics"), ("filter_smoother", "forward_dynamics")):
        exact = floats(run(bot, algorithm, big(q), big(qd), big(x), dissipation=True))
        over_arrays = run(bot, algorithm, *([np.array([v]) for v in u] for u in (q, qd, x)), dissipation=True)
        machine = compiled("tree9", function, dissipation=True)(q, qd, x)
        for got in (floats(run(bot, algorithm, q.tolist(), qd.tolist(), x.tolist(), dissipation=True)), machine):
            assert close(got, exact, 1e-11)  # cond(M) of this tree is a few hundred
        assert close(np.array(over_arrays)[:, 0], exact, 1e-11)


# ---- the sweeps themselves -----------------------------------------------------------------------------------


@dataclass
class Count:
    number: Any


def described(tracer: Any, write: Any) -> None:
    """Depth, size of each subtree, sum of q towards the tips, and products of pairs, all from simple steps."""
    q = tracer.read("q") if not isinstance(tracer, PlainSweep) else tracer.split(tracer.q)

    def deeper(link: Any, parent: Count) -> tuple[Count, Count]:
        own = Count(parent.number + 1.0)
        return own, own

    def gather(link: Any, outer: Count, at: Count, q: Any) -> tuple[Any, Count]:
        total = Count(outer.number + 1.0)
        return (total, Count(at.number * q[0])), total

    def start(link: Any, q: Any) -> tuple[Any, Any]:
        return [[q[0]]], (q[0],)

    def step(link: Any, carry: Any, q: Any) -> tuple[Any, Any]:
        return [[carry[0] * q[0]]], (carry[0] + q[0],)

    depth = tracer.outward(deeper, Count(0.0))
    kept, base = tracer.inward(gather, Count(0.0), depth, q)
    write(depth, kept, base, tracer.pairs(start, step, q))


class PlainSweep(Unrolled):
    def __init__(self, model: Any, q: Any):
        super().__init__(model, q)
        self.q = q


def expected(bot: Any, q: np.ndarray) -> tuple[list[float], list[float], np.ndarray]:
    """Depths and subtree sizes in the order of the links, and the pairs' matrix in document order."""
    model = bot.model
    n = bot.nv
    paths = [path(model, i) for i in range(n)]
    depth = [float(len(p)) for p in paths]
    size = [float(sum(i in p for p in paths)) for i in range(n)]
    place = {link: k for k, link in enumerate(model.document_order)}
    pairs = np.zeros((n, n))
    for i in range(n):
        carry = 0.0
        for j in paths[i]:
            value = q[place[i]] if i == j else carry * q[place[j]]
            pairs[place[i], place[j]] = pairs[place[j], place[i]] = value
            carry += q[place[j]]
    return depth, size, pairs


@pytest.mark.parametrize("name", ["tree4", "tree9", "tree14", "mixed1", "mixed8", "urdf"])
def test_sweeps_reach_every_link_and_pair(name: str):
    bot = robot(name)
    q = samples(bot, seed=6)[0]
    depth, size, pairs = expected(bot, q)
    sweep = PlainSweep(bot.canonical, q.tolist())

    def write(got_depth: Any, kept: Any, base: Any, got_pairs: Any) -> None:
        assert [record.number for record in got_depth] == depth
        assert [total.number for total, _ in kept] == size
        assert base.number == bot.nv
        assert close(np.array(sweep.join_pairs(got_pairs)).reshape(pairs.shape), pairs, 1e-14)

    described(sweep, write)


@pytest.mark.parametrize("name", ["tree4", "tree9", "tree14", "mixed1", "mixed8", "chain7"])
@pytest.mark.parametrize("tracer", [Rolled, UnrolledTrace])
def test_sweeps_as_loops_and_written_out(name: str, tracer: Any):
    bot = robot(name)
    n = bot.nv
    q = samples(bot, 5, seed=6)[0]
    order = list(bot.model.document_order)
    trace = tracer(bot.canonical, (Array("q", (n,)),))

    def write(depth: Any, kept: Any, base: Any, pairs: Any) -> None:
        if tracer is Rolled:
            trace.write_rates(0, type(depth)(tuple((record.number,) for record in depth.records)))
            trace.write_rates(1, type(depth)(tuple((total.number,) for total, _ in kept.records)))
        else:
            trace.write_rates(0, [(record.number,) for record in depth])
            trace.write_rates(1, [(total.number,) for total, _ in kept])
        trace.write_pairs(2, pairs)
        trace.write(3, [base.number])

    described(trace, write)
    outputs = (Array("depth", (n,)), Array("size", (n,)), Array("pairs", (n, n)), Array("links", (1,)))
    program = trace.program("described", outputs).verify()
    results = [np.full((5, array.size), np.nan) for array in outputs]
    Interpreter(program)([q], results)
    for k in range(5):
        depth, size, pairs = expected(bot, q[k])
        assert results[0][k].tolist() == [depth[i] for i in order]
        assert results[1][k].tolist() == [size[i] for i in order]
        assert close(results[2][k].reshape(n, n), pairs, 1e-14)
        assert results[3][k] == [n]


def test_records_hand_out_their_fields():
    records = Records([Count(1.0), Count(2.0)])
    assert records.number == [1.0, 2.0] and isinstance(records.number, Records)


def test_split_and_join_are_inverse():
    bot = robot("tree9")
    sweep = Unrolled(bot.canonical, [0.0] * 9)
    flat = list(range(9))
    assert sweep.join(sweep.split(flat)) == flat
    assert sweep.marked({0, 3}) == [1.0, 0.0, 0.0, 1.0] + [0.0] * 5
    assert sweep.at(sweep.marked({3}), 3) == 1.0


def test_forces_of_a_described_frame():
    """[moment; force] of the described frame at its origin is the same force at the canonical origin."""
    bot = robot("tree9")
    q = samples(bot, seed=7)[0]
    sweep = Unrolled(bot.canonical, q.tolist())
    at = poses(sweep)
    random = np.random.default_rng(0)
    for i, link in enumerate(bot.model.links):
        f = random.normal(size=6)
        moved = np.array(leaves(sweep.links[i].from_described_frame(Force(Vec(*f[:3]), Vec(*f[3:])))))
        T = bot.pose(q, link.name)
        R = np.array([list(at[i].x), list(at[i].y), list(at[i].z)]).T
        force = T[:3, :3] @ f[3:]
        moment = T[:3, :3] @ f[:3] + np.cross(T[:3, 3] - list(at[i].p), force)
        assert close(R @ moved[3:], force, 1e-13) and close(R @ moved[:3], moment, 1e-13)


def test_jacobian_over_50_digits():
    bot = robot("mixed8")
    q = samples(bot, seed=8)[0]
    sweep = Unrolled(bot.canonical, big(q))
    at = poses(sweep)
    frame = bot.canonical.frame("tool")
    point = at[frame.link].point(Vec(*frame.placement.position))
    columns = jacobian(sweep, at, sweep.same(1.0), point)
    exact = np.array([floats(leaves(column)) for column in columns])
    order = list(bot.model.document_order)
    assert close(bot.jacobian(q, "tool"), exact[order].T, 1e-13)
