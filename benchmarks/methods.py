"""Every method of a robot, compiled, against Pinocchio from Python, in one process, taking turns.

    python benchmarks/methods.py [--robot FILE.urdf] [--quick] [--json FILE] [--markdown]

One thread, a batch of 4096. Methods that can use base parameters run with them ("base"), as `compile` does where
nothing is said, and again on the description's own inertias ("own"), as the others do. Pinocchio's side is a loop of
pin.rnea (inverse dynamics), pin.aba (forward dynamics), pin.crba (mass matrix) or pin.computeMinverse over rows that
were cut beforehand; its results are not collected. Turns are short, one call of ours and 64 rows of Pinocchio's.
"""

from __future__ import annotations

import argparse
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pinocchio as pin
from against_pinocchio import Contest
from measure import alternate, example, heading, table, time_of, write_json

from linksweep.functions.functions import FUNCTIONS

RIVALS: dict[str, Any] = {
    "inverse_dynamics": pin.rnea,
    "forward_dynamics": pin.aba,
    "mass_matrix": pin.crba,
    "mass_matrix_inverse": pin.computeMinverse,
}
ROWS = 64  # of Pinocchio's loop: its turn takes about as long as ours, and short turns find quiet moments
BARS = {"inverse_dynamics": 30, "forward_dynamics": 30, "mass_matrix": 25, "mass_matrix_inverse": 15}
OTHER_BARS = {
    ("inverse_dynamics", "influence"): 5,
    ("forward_dynamics", "composite"): 25,
    ("forward_dynamics", "closed_form"): 5,
}


@dataclass
class Row:
    """Seconds per sample of each side, how many times faster ours is, and the operations of our program."""

    function: str
    method: str
    inertias: str
    ours: float
    theirs: float
    ratio: float
    bar: int
    error: float
    mul: int
    add: int
    div: int


def measured(contest: Contest, function: str, method: str, base: bool) -> Row:
    compiled = contest.robot.compile(function, method=method, base_parameters=base, dtype="float64", threads=1)
    last = {"inverse_dynamics": contest.qdd, "forward_dynamics": contest.tau}.get(function)
    vectors = () if last is None else (contest.qd, last)
    cut, model, data, rival = contest.theirs(*vectors)[:ROWS], contest.model, contest.data, RIVALS[function]

    def loop() -> None:
        for row in cut:
            rival(model, data, *row)

    def ours() -> None:
        compiled(contest.q, *vectors)

    fast, slow = alternate([ours, loop], contest.rounds, at_least=0.0)
    fast, slow = fast / contest.count, slow / len(cut)
    count = compiled.counts
    bar = OTHER_BARS.get((function, method), BARS[function])
    error = difference(contest, compiled, rival, vectors)
    inertias = "base" if base else "own"
    return Row(function, method, inertias, fast, slow, slow / fast, bar, error, count.mul, count.add, count.div)


def difference(contest: Contest, compiled: Any, rival: Any, vectors: tuple[np.ndarray, ...], count: int = 64) -> float:
    """The largest difference from Pinocchio's result, of its largest entry."""
    joints = [contest.model.joints[contest.model.getJointId(name)] for name in contest.robot.joint_names]
    places = [joint.idx_v for joint in joints]
    results = [rival(contest.model, contest.data, *row).copy() for row in contest.theirs(*vectors)[:count]]
    theirs = np.array([r[places] if r.ndim == 1 else _symmetric(r)[np.ix_(places, places)] for r in results])
    ours = compiled(contest.q[:count], *(v[:count] for v in vectors))
    return float(np.abs(ours - theirs).max() / np.abs(theirs).max())


def _symmetric(matrix: np.ndarray) -> np.ndarray:
    """Pinocchio fills the upper triangle of M and of its inverse."""
    upper = np.triu(matrix)
    return upper + np.triu(matrix, 1).T


def markdown(rows: list[Row]) -> str:
    head = "| function | method | inertias | per sample | Pinocchio | ratio | bar | mul | add | div |"
    lines = [head, "|---|---|---|" + "--:|" * 7]
    lines += [
        f"| {r.function} | {r.method} | {r.inertias} | {time_of(r.ours)} | {time_of(r.theirs)} | {r.ratio:.0f}x "
        f"| {r.bar}x | {r.mul} | {r.add} | {r.div} |"
        for r in rows
    ]
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--robot", type=Path, help="a URDF file instead of UR5")
    parser.add_argument("--quick", action="store_true", help="fewer rounds and a smaller batch: a look, not a result")
    parser.add_argument("--json", metavar="FILE", help="write the rows, and what they ran on, here")
    parser.add_argument("--markdown", action="store_true", help="print the table as the documentation has it")
    options = parser.parse_args()

    rounds, count = (30, 512) if options.quick else (1000, 4096)
    print(heading())
    contest = Contest(options.robot or example("ur5_robot.urdf"), count, rounds)
    rows = [
        measured(contest, function, method, base)
        for function in RIVALS
        for method in contest.robot.methods(function)
        for base in ((True, False) if FUNCTIONS[function].methods[method].linear else (False,))
    ]
    head = ("", "inertias", "linksweep", "Pinocchio", "ratio", "bar", "", "difference", "mul", "add", "div")
    cells = [
        (
            f"{r.function}: {r.method}", r.inertias, time_of(r.ours), time_of(r.theirs), f"{r.ratio:.1f}x",
            f">= {r.bar}x", "ok" if r.ratio >= r.bar else "MISSED", f"{r.error:.0e}",
            *(str(count) for count in (r.mul, r.add, r.div)),
        )
        for r in rows
    ]  # fmt: skip
    print(markdown(rows) if options.markdown else table([head, *cells]))
    write_json(options.json, [asdict(row) for row in rows])


if __name__ == "__main__":
    main()
