"""`prove`: statements about a robot or a joint structure, evaluated at random points in exact arithmetic."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace

from ...errors import ArgumentError
from ...model.lint import lint
from ...robot.robot import Robot
from ...support.checks import whole_number
from ...support.files import Facts
from ...support.messages import listing, shown
from .field import PRIME, lifted
from .points import Draw, Point, Structure, exact_canonical, exact_model
from .statements import LARGEST_EXPLICIT, Excluded, Mechanics, Tried, appendix_a, optimised

ENOUGH = 1e-12  # a statement counts as proved if the chance of an error is below this


@dataclass(frozen=True, slots=True)
class Outcome:
    """A statement after all trials. wrong: number of `entries` that differ; degree: bound of their differences."""

    statement: str
    what: str
    entries: int
    wrong: int
    degree: int
    trials: int

    @property
    def ok(self) -> bool:
        return self.wrong == 0

    @property
    def chance(self) -> float:
        """Upper bound of the probability that a false statement was not refuted.

        Schwartz and Zippel: a nonzero polynomial of degree d vanishes at most at d / PRIME of all points. In the
        parameters t of the circle's points the degree is at most twice that in their coordinates.
        """
        return min(1.0, 2.0 * self.degree / PRIME) ** self.trials

    def __str__(self) -> str:
        return f"{self.statement}{f' ({self.what})' if self.what else ''}"


@dataclass(frozen=True)
class Proof:
    """The result of `prove`. `ok`: nothing was refuted. `outcomes`: all statements; `excluded`: those not evaluated."""

    name: str
    seed: int
    trials: int
    seconds: float
    outcomes: tuple[Outcome, ...]
    excluded: tuple[Excluded, ...]

    @property
    def refuted(self) -> tuple[Outcome, ...]:
        return tuple(outcome for outcome in self.outcomes if not outcome.ok)

    @property
    def proved(self) -> tuple[Outcome, ...]:
        return tuple(outcome for outcome in self.outcomes if outcome.ok)

    @property
    def ok(self) -> bool:
        return not self.refuted

    @property
    def degree(self) -> int:
        """The largest of all statements."""
        return max((outcome.degree for outcome in self.outcomes), default=0)

    @property
    def chance(self) -> float:
        """Upper bound of the probability that any one false statement was not refuted."""
        return max((outcome.chance for outcome in self.outcomes), default=0.0)

    @property
    def verdict(self) -> str:
        """One sentence."""
        if self.refuted:
            number = len(self.refuted)
            text = f"{number} of {len(self.outcomes)} statements {'is' if number == 1 else 'are'} false"
        elif self.outcomes:
            trials = "one random point" if self.trials == 1 else f"{self.trials} random points"
            text = (
                f"{len(self.outcomes)} statements proved at {trials} of the field of {PRIME} elements: degree at most "
                f"{self.degree}, the chance that a false one was missed is below {above(self.chance)}"
            )
        else:
            text = "nothing could be proved"
        return f"{self.name}: {text} ({self.seconds:.1f} s)."

    def rows(self) -> list[tuple[str, str, str, str, str]]:
        """Rows of the table, one for each kind of statement: name, subject, degree, chance, "proved" or "REFUTED"."""
        groups: dict[str, list[Outcome]] = {}
        for outcome in self.outcomes:
            groups.setdefault(outcome.statement, []).append(outcome)
        return [_row(statement, outcomes) for statement, outcomes in groups.items()]

    def remarks(self) -> list[str]:
        """Refuted and excluded statements, one line each."""
        lines = [
            f"refuted: {outcome} is false for {self.name}: {outcome.wrong} of {outcome.entries} entries differ"
            for outcome in self.refuted
        ]
        return lines + [
            f"not proved: {e.statement}{f' by {e.what}' if e.what else ''}, which {e.reason}" for e in self.excluded
        ]

    def as_dict(self) -> Facts:
        """Plain JSON values."""
        return {
            "robot": self.name,
            "ok": self.ok,
            "verdict": self.verdict,
            "field": PRIME,
            "seed": self.seed,
            "trials": self.trials,
            "seconds": self.seconds,
            "degree": self.degree,
            "chance": self.chance,
            "statements": [
                {
                    "statement": o.statement,
                    "what": o.what,
                    "ok": o.ok,
                    "entries": o.entries,
                    "wrong": o.wrong,
                    "degree": o.degree,
                    "chance": o.chance,
                }
                for o in self.outcomes
            ],
            "excluded": [{"statement": e.statement, "what": e.what, "reason": e.reason} for e in self.excluded],
        }

    def __str__(self) -> str:
        rows = [HEADINGS, *self.rows()]
        widths = [max(len(row[k]) for row in rows) for k in range(len(HEADINGS))]
        lines = ["  ".join(word.ljust(width) for word, width in zip(row, widths, strict=True)).rstrip() for row in rows]
        return "\n".join([self.verdict, *(lines if self.outcomes else []), *self.remarks()])


HEADINGS = ("statement", "for", "degree", "chance", "")


def _row(statement: str, found: list[Outcome]) -> tuple[str, str, str, str, str]:
    wrong = sum(1 for outcome in found if not outcome.ok)
    state = "proved" if not wrong else f"REFUTED {wrong} of {len(found)}"
    return (
        statement, _subject(found), str(max(outcome.degree for outcome in found)),
        f"< {above(max(outcome.chance for outcome in found))}", state,
    )  # fmt: skip


def _subject(found: list[Outcome]) -> str:
    if all(" = " in outcome.what for outcome in found):
        count = len(found) + 1
        pairs = count * (count - 1) // 2
        return f"{count} methods, {pairs} pair{'' if pairs == 1 else 's'}"
    if len(found) > 1:
        return f"{len(found)} cases"
    return found[0].what


def above(chance: float) -> str:
    """Two digits, rounded up."""
    if chance == 0.0:
        return "1e-300"
    power = math.floor(math.log10(chance)) - 1
    return f"{math.ceil(chance / 10.0**power * (1 + 1e-9)) * 10.0**power:.1e}"


# ---- proving ----------------------------------------------------------------------------------------------------

MOST_TRIALS = 50
HOPELESS = 1e-3  # if the chance of an error in one trial is above this, more trials are not worth their time
LARGEST_ROBOT = 64  # maximum number of links
LARGEST_TRACED = 12  # links up to which programs are proved by default: tracing all of them takes minutes


def prove(
    target: Robot | Structure | str, *, trials: int | None = None, seed: int = 0, programs: bool | None = None
) -> Proof:
    """Prove in exact arithmetic that all algorithms of a robot function compute the same function.

    Parameters
    ----------
    target : a Robot, or a joint structure such as "RRPR" or "F(RR)(RP)S" (see `Structure`)
        A structure stands for every robot with these joints. For a robot with constraints, statements are about the
        tree without them.
    trials : number of random points; by default as many as bring the chance of an error below 1e-12
    seed : seed of the random points
    programs : whether to prove traced and optimised programs as well; by default for robots of up to 12 links
    """
    start = time.perf_counter()
    whole_number("prove: seed", seed, at_least=0, at_most=2**63)
    if trials is not None:
        whole_number("prove: trials", trials, at_least=1, at_most=MOST_TRIALS)
    if programs is not None and not isinstance(programs, bool):
        raise ArgumentError(f"prove: programs is {shown(programs)}, expected True, False or None.")
    subject = _Subject(target, programs)
    outcomes: dict[tuple[str, str], Outcome] = {}
    excluded: list[Excluded] = []
    done = 0
    while done < (trials or MOST_TRIALS) and (trials or not done or any(map(_undecided, outcomes.values()))):
        excluded.clear()  # the same in every trial
        for tried in subject.statements(Draw(f"{subject.name} {seed} {done}"), excluded):
            _record(outcomes, tried)
        done += 1
    for outcome in outcomes.values():
        if outcome.ok and outcome.chance > ENOUGH and trials is None:
            reason = f"has a degree of up to {outcome.degree:.1e}, too large for this field"
            excluded.append(Excluded(outcome.statement, outcome.what, reason))
    decided = (o for o in outcomes.values() if not o.ok or o.chance <= ENOUGH or trials is not None)
    return Proof(subject.name, seed, done, time.perf_counter() - start, tuple(decided), tuple(excluded))


class _Subject:
    """A structure with random parameters in each trial, or a robot with its own parameters."""

    def __init__(self, target: str | Structure | Robot, programs: bool | None):
        self.structure = self.robot = None
        if isinstance(target, (str, Structure)):
            self.structure = Structure(target) if isinstance(target, str) else target
            self.name, self.programs = self.structure.text, bool(programs)
            return
        self.robot = _checked_robot(target)
        self.name = self.robot.name + (" without its constraints" if self.robot.constraints else "")
        self.model = exact_model(exact_canonical(self.robot.model))
        self.programs = len(self.model.links) <= LARGEST_TRACED if programs is None else programs

    def statements(self, draw: Draw, excluded: list[Excluded]) -> Iterator[Tried]:
        if self.structure is not None:
            mechanics = Mechanics(Point(self.structure.model(draw), draw), excluded)
        else:
            assert self.robot is not None
            singular = bool(self.robot.has_inertia and self.robot.singular_joints)
            mechanics = Mechanics(Point(self.model, draw), excluded, singular, self.robot.has_inertia)
        mechanics.exclude("Coulomb friction", "", "contains the sign of a velocity")
        if self.robot is not None and self.robot.constraints:
            labels = listing([constraint.label for constraint in self.robot.constraints])
            mechanics.exclude(
                "constrained dynamics",
                "",
                f"depends on {labels}: statements are about the tree",
            )
        if self.robot is not None and self.robot.model.springs:
            mechanics.exclude("springs between frames", "", "are not part of these statements")
        if not self.programs:
            mechanics.exclude("programs", "", f"are traced by default only for robots of up to {LARGEST_TRACED} links")
        yield from mechanics
        yield from _operators(mechanics, draw)
        if self.programs:
            yield from optimised(mechanics)


def _operators(mechanics: Mechanics, draw: Draw) -> Iterator[Tried]:
    model, name = mechanics.model, "Rodriguez & Kreutz 1988"
    if not model.is_serial or not model.is_single or len(model.links) > LARGEST_EXPLICIT:
        mechanics.exclude(name, "", f"is about chains of up to {LARGEST_EXPLICIT} 1-DOF joints")
    elif mechanics.singular or not mechanics.dynamic:
        mechanics.exclude(name, "", "needs inertia at every joint")
    else:
        for equation, left, right in appendix_a(mechanics.point, draw):
            yield Tried(name, equation, left, right)


def _record(outcomes: dict[tuple[str, str], Outcome], tried: Tried) -> None:
    differences = [lifted(a - b) for a, b in zip(tried.left, tried.right, strict=True)]
    wrong = sum(1 for x in differences if x.v)
    degree = max((x.n for x in differences), default=0)
    key = tried.statement, tried.what
    before = outcomes.get(key, Outcome(*key, len(differences), 0, 0, 0))
    outcomes[key] = replace(
        before, wrong=max(wrong, before.wrong), degree=max(degree, before.degree), trials=before.trials + 1
    )


def _undecided(outcome: Outcome) -> bool:
    return outcome.ok and ENOUGH < outcome.chance <= HOPELESS


def _checked_robot(target: Robot) -> Robot:
    if not isinstance(target, Robot):
        raise ArgumentError(
            f"prove got {shown(target)}, expected a Robot, or joints as letters such as 'RRPR': use linksweep.load, "
            f"linksweep.robots, or such a string."
        )
    count = len(target.model.links)
    if count > LARGEST_ROBOT:
        raise ArgumentError(
            f"prove: {target.name} has {count} links, expected at most {LARGEST_ROBOT}: use a part of it "
            f"(robot.subchain), or linksweep.check, which compares random states."
        )
    if any(finding.fatal for finding in lint(target.model)):
        raise ArgumentError(
            f"prove: parameters of {target.name} are not finite or not usable; linksweep.check lists them."
        )
    return target
