"""linksweep against Pinocchio, both from Python, in one process, taking turns.

    python benchmarks/against_pinocchio.py [--robot FILE.urdf] [--quick] [--json FILE]

Pinocchio's side of a batch is a loop of pin.rnea or pin.aba over rows that were cut beforehand; its results are not
even collected. Ours takes and returns whole NumPy arrays, allocation of the result included.
"""

from __future__ import annotations

import argparse
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pinocchio as pin
from measure import alternate, example, heading, load_quietly, table, time_of, write_json

import linksweep as ls

BATCH, LARGE = 4096, 65536
EXTRA = ("panda.urdf", "talos_reduced.urdf")


@dataclass
class Row:
    """One comparison: seconds of each side (per sample where it is a batch), `ratio` as the bar counts it."""

    robot: str
    what: str
    ours: float
    theirs: float
    ratio: float
    bar: str = ""

    def cells(self) -> tuple[str, ...]:
        return f"{self.robot}: {self.what}", time_of(self.ours), time_of(self.theirs), f"{self.ratio:.2f}x", self.bar


class Contest:
    """A robot on both sides, at the same random states; Pinocchio's arrays stand in its own order of joints."""

    def __init__(self, path: Path, count: int, rounds: int):
        self.robot: ls.Robot = load_quietly(path)
        self.model: Any = pin.buildModelFromUrdf(str(path))
        self.data: Any = self.model.createData()
        self.name, self.rounds, self.count = path.stem, rounds, count
        self.q, self.qd, self.qdd = np.random.default_rng(0).uniform(-1, 1, (3, count, self.robot.nv))
        self.tau = self.qdd  # torques as good as any other: the arm falls

    def theirs(self, *vectors: np.ndarray) -> list[tuple[np.ndarray, ...]]:
        """q and some vectors of the tangent space, as rows for Pinocchio."""
        joints = [self.model.joints[self.model.getJointId(name)] for name in self.robot.joint_names]
        configuration = np.empty((self.count, self.model.nq))
        for value, joint in zip(self.q.T, joints, strict=True):
            turned = value[:, None] if joint.nq == 1 else np.column_stack([np.cos(value), np.sin(value)])
            configuration[:, joint.idx_q : joint.idx_q + joint.nq] = turned
        places = np.argsort([joint.idx_v for joint in joints])
        ordered = [np.ascontiguousarray(v[:, places]) for v in vectors]
        return list(zip(configuration, *ordered, strict=True))

    def batches(self, inverse_bar: str, forward_bar: str) -> list[Row]:
        rows = []
        for what, call, rival, last, bar in (
            ("inverse dynamics", self.robot.inverse_dynamics, pin.rnea, self.qdd, inverse_bar),
            ("forward dynamics", self.robot.forward_dynamics, pin.aba, self.tau, forward_bar),
        ):
            cut, model, data = self.theirs(self.qd, last), self.model, self.data

            def loop(rival: Any = rival, cut: Any = cut, model: Any = model, data: Any = data) -> None:
                for q, qd, x in cut:
                    rival(model, data, q, qd, x)

            def ours(call: Any = call, last: Any = last) -> None:
                call(self.q, self.qd, last)

            fast, slow = (t / self.count for t in alternate([ours, loop], self.rounds))
            rows.append(Row(self.name, f"{what}, batch {self.count}, per sample", fast, slow, slow / fast, bar))
        return rows

    def one_sample(self) -> list[Row]:
        q, qd, qdd = self.q[0].copy(), self.qd[0].copy(), self.qdd[0].copy()
        function, method, rnea = self.robot.compile("inverse_dynamics"), self.robot.inverse_dynamics, pin.rnea
        model, data, state = self.model, self.data, self.theirs(self.qd, self.qdd)[0]
        their_q, their_qd, their_qdd = state
        compiled, public, theirs = alternate(
            [
                lambda: function(q, qd, qdd),
                lambda: method(q, qd, qdd),
                lambda: rnea(model, data, their_q, their_qd, their_qdd),
            ],
            3 * self.rounds,
        )
        what = "inverse dynamics, one sample"
        return [
            Row(self.name, f"{what}, compiled f", compiled, theirs, compiled / theirs, "<= 0.45x"),
            Row(self.name, f"{what}, public method", public, theirs, public / theirs, "<= 0.7x"),
        ]

    def single_precision(self) -> tuple[list[Row], list[str]]:
        rows, errors = [], []
        for what, call, last in (
            ("inverse dynamics", self.robot.inverse_dynamics, self.qdd),
            ("forward dynamics", self.robot.forward_dynamics, self.tau),
        ):
            single = [x.astype(np.float32) for x in (self.q, self.qd, last)]
            double = [x.astype(np.float64) for x in single]
            fast, slow = (
                t / self.count
                for t in alternate([lambda c=call, x=single: c(*x), lambda c=call, x=double: c(*x)], self.rounds)
            )
            rows.append(Row(self.name, f"{what}, float32 | float64", fast, slow, slow / fast, ">= 1.6x"))
            errors.append(f"{self.name}: {what}, float32: error {_error(call, single):.1e} of the largest output")
        errors += self.held_up()
        return rows, errors

    def held_up(self) -> list[str]:
        """The ill-conditioned case: torques that nearly cancel gravity, so that small accelerations are left."""
        call, tau = self.robot.forward_dynamics, self.robot.inverse_dynamics(self.q, self.qd, self.qdd)
        single = [x.astype(np.float32) for x in (self.q, self.qd, tau)]
        q, qd, rounded = (x.astype(np.float64) for x in single)
        moved = np.abs(call(q, qd, rounded) - self.qdd).max()
        largest = np.abs(tau).max()
        return [
            f"  and {_error(call, single):.1e} with torques up to {largest:.0f} that leave accelerations up to 1;",
            f"  rounding these inputs to float32 alone moves the exact result by {moved:.1e}",
        ]

    def two_threads(self, count: int) -> Row:
        q, qd, tau = (np.resize(x, (count, self.robot.nv)) for x in (self.q, self.qd, self.tau))
        one, two = (self.robot.compile("forward_dynamics", threads=n) for n in (1, 2))
        fast, slow = (t / count for t in alternate([lambda: two(q, qd, tau), lambda: one(q, qd, tau)], 2 * self.rounds))
        what = f"forward dynamics, batch {count}, 2 threads | 1"
        return Row(self.name, what, fast, slow, slow / fast, ">= 1.7x")


def _error(call: Any, single: list[np.ndarray]) -> float:
    """The largest difference between float32 and float64 on the same numbers, of the largest output."""
    exact = call(*(x.astype(np.float64) for x in single))
    return float(np.abs(call(*single) - exact).max() / np.abs(exact).max())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--robot", type=Path, help="a URDF file instead of UR5, Panda and Talos")
    parser.add_argument("--quick", action="store_true", help="fewer rounds and a smaller batch: a look, not a result")
    parser.add_argument("--json", metavar="FILE", help="write the rows, and what they ran on, here")
    options = parser.parse_args()

    rounds, count, large = (3, 512, 8192) if options.quick else (9, BATCH, LARGE)
    print(heading())
    contest = Contest(options.robot or example("ur5_robot.urdf"), count, rounds)
    rows = contest.batches(">= 40x", ">= 45x") + contest.one_sample()
    precision, errors = contest.single_precision()
    rows += [*precision, contest.two_threads(large)]
    for name in () if options.robot else EXTRA:
        rows += Contest(example(name), count, rounds).batches("", "")
    if options.robot or options.quick:
        rows = [replace(row, bar="") for row in rows]  # the bars are for UR5 and the whole batch
    print(table([("", "linksweep", "the other side", "ratio", "bar"), *(row.cells() for row in rows)]))
    print("\n".join([*errors, "Bar for the error: 5e-6 of the largest output."]))
    print("The other side: Pinocchio, or what stands after the |. Ratio: of speeds; for one sample, of times.")
    write_json(options.json, [asdict(row) for row in rows])


if __name__ == "__main__":
    main()
