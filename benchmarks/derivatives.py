"""Derivatives of inverse and forward dynamics against Pinocchio's, both from Python, in one process, taking turns.

    python benchmarks/derivatives.py [--quick] [--talos]

Values and all first derivatives (M or its inverse among them). Pinocchio's side is a loop over rows that were cut
beforehand; its results stay in `data`. Ours takes and returns whole arrays, into `out=` where it says so.
"""

from __future__ import annotations

import argparse
import time
from typing import Any

import numpy as np
import pinocchio as pin
from measure import alternate, example, load_quietly, time_of

import linksweep as ls

ID, FD = "inverse_dynamics", "forward_dynamics"


def items(function: str) -> list[Any]:
    return [function, *(("derivative", function, by) for by in ("q", "qd", "qdd" if function == ID else "tau"))]


def compare(name: str, robot: ls.Robot, model: Any, count: int, rounds: int) -> None:
    data = model.createData()
    rng = np.random.default_rng(0)
    rows = [pin.randomConfiguration(model, -np.ones(model.nq), np.ones(model.nq)) for _ in range(count)]
    theirs = [(q, *rng.uniform(-1, 1, (2, model.nv))) for q in rows]
    q = np.stack([robot.random(rng) for _ in range(count)])
    qd, x = rng.uniform(-1, 1, (2, count, robot.nv))
    for function, their_function in ((ID, pin.computeRNEADerivatives), (FD, pin.computeABADerivatives)):
        start = time.perf_counter()
        compiled = robot.compile(items(function))
        out = compiled(q, qd, x)
        first = time.perf_counter() - start
        operations = compiled.counts

        def loop(their_function: Any = their_function) -> None:
            for row in theirs:
                their_function(model, data, *row)

        def ours(compiled: Any = compiled, out: Any = out) -> None:
            compiled(q, qd, x, out=out)

        a, b = alternate([ours, loop], rounds)
        print(
            f"{name}, {function}, batch {count}, out=: {time_of(a / count)} ours, {time_of(b / count)} theirs, "
            f"{b / a:.1f}x; {operations.mul + operations.add} operations, first call {first:.1f} s"
        )
        method = getattr(robot, f"{function}_derivatives")
        one, row = (q[0], qd[0], x[0]), theirs[0]
        a, b = alternate(
            [lambda f=method, one=one: f(*one), lambda f=their_function, row=row: f(model, data, *row)], rounds
        )
        print(f"{name}, {function}_derivatives, one call: {time_of(a)} ours, {time_of(b)} theirs, {a / b:.2f}")


def second(robot: ls.Robot, rounds: int) -> None:
    """5 KB a sample: a thousand of them stay in the caches, four thousand do not."""
    wanted = [("derivative", ("derivative", ID, a), b) for a, b in (("q", "q"), ("q", "qd"), ("qd", "qd"))]
    compiled = robot.compile(wanted)
    operations = compiled.counts
    for count in (1024, 4096):
        args = np.random.default_rng(0).uniform(-1, 1, (3, count, robot.nv))
        out = compiled(*args)
        (a,) = alternate([lambda args=args, out=out: compiled(*args, out=out)], rounds)
        print(
            f"UR5, second derivatives by q and qd, batch {count}, out=: {time_of(a / count)} a sample; "
            f"{operations.mul + operations.add} operations"
        )


def products(robot: ls.Robot, count: int, rounds: int) -> None:
    """jvp and vjp of forward dynamics by all inputs, in multiples of the function itself."""
    rng, inputs = np.random.default_rng(0), ("q", "qd", "tau")
    state = (np.stack([robot.random(rng) for _ in range(count)]), *rng.uniform(-1, 1, (2, count, robot.nv)))
    vectors = rng.uniform(-1, 1, (3, count, robot.nv))
    asked: list[tuple[str, Any, Any]] = [
        ("forward_dynamics", FD, state),
        ("jvp", ("jvp", FD, *inputs), (*state, *vectors)),
        ("vjp", [("vjp", FD, by) for by in inputs], (*state, vectors[0])),
    ]
    functions = [(name, robot.compile(item), args) for name, item, args in asked]
    outs = [f(*args) for _, f, args in functions]
    sides = [lambda f=f, a=args, out=out: f(*a, out=out) for (_, f, args), out in zip(functions, outs, strict=True)]
    times = alternate(sides, rounds)
    own, plain = times[0], functions[0][1].counts.total
    for (name, f, _), seconds in zip(functions, times, strict=True):
        print(
            f"Talos + free base, {name}, batch {count}: {time_of(seconds / count)}, {seconds / own:.2f}x; "
            f"{f.counts.total} operations, {f.counts.total / plain:.2f}x"
        )


def rollout(robot: ls.Robot, rounds: int) -> None:
    roll, rng = ls.rollout(robot, 1e-3), np.random.default_rng(0)
    q0, qd0 = rng.uniform(-1, 1, (2, 256, robot.nv))
    tau, weights = rng.uniform(-5, 5, (1000, 256, robot.nv)), rng.uniform(-1, 1, (1001, 256, robot.nv))
    forward, back = alternate([lambda: roll(q0, qd0, tau), lambda: roll.vjp(q0, qd0, tau, weights, weights)], rounds)
    print(f"UR5, 256 rollouts of 1000 steps: {time_of(forward)}, their gradient {time_of(back)}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--talos", action="store_true", help="Talos on a floating base too (long to compile)")
    options = parser.parse_args()
    rounds = 3 if options.quick else 10
    for name, file in (("UR5", "ur5_robot.urdf"), ("Panda", "panda.urdf")):
        path = example(file)
        compare(name, load_quietly(path), pin.buildModelFromUrdf(str(path)), 4096, rounds)
    second(load_quietly(example("ur5_robot.urdf")), rounds)
    rollout(load_quietly(example("ur5_robot.urdf")), min(rounds, 3))
    if options.talos:
        path = example("talos_reduced.urdf")
        robot = ls.load(path, base="floating")
        compare("Talos + free base", robot, pin.buildModelFromUrdf(str(path), pin.JointModelFreeFlyer()), 256, rounds)
        products(robot, 256, rounds)


if __name__ == "__main__":
    main()
