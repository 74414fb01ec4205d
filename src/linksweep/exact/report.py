"""What was proved, with the chance of an error; what was refuted; what had to be left out."""

from __future__ import annotations

import math
from dataclasses import dataclass

from ..support.files import Facts
from .field import PRIME
from .statements import Excluded

ENOUGH = 1e-12  # the chance of an error below which a statement counts as proved


@dataclass(frozen=True, slots=True)
class Outcome:
    """A statement after all trials. wrong: entries that differ, of `entries`; degree: of their differences."""

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
        """That it was not refuted though it is false: at most this.

        Schwartz and Zippel: a polynomial of degree d that is not zero vanishes at most at d / PRIME of all points. In
        the parameters t of the circle's points the degree is at most twice that in their coordinates.
        """
        return min(1.0, 2.0 * self.degree / PRIME) ** self.trials

    def __str__(self) -> str:
        return f"{self.statement}{f' ({self.what})' if self.what else ''}"


@dataclass(frozen=True)
class Proof:
    """What `prove` found. `ok`: nothing was refuted. `outcomes`, `excluded`: what the table is made of."""

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
        """That any one false statement was not refuted: at most this."""
        return max((outcome.chance for outcome in self.outcomes), default=0.0)

    @property
    def verdict(self) -> str:
        """One sentence."""
        if self.refuted:
            number = len(self.refuted)
            said = f"{number} of {len(self.outcomes)} statements {'is' if number == 1 else 'are'} false"
        elif self.outcomes:
            trials = "one random point" if self.trials == 1 else f"{self.trials} random points"
            said = (
                f"{len(self.outcomes)} statements proved at {trials} of the field of {PRIME} elements: degree at most "
                f"{self.degree}, the chance that a false one was missed is below {above(self.chance)}"
            )
        else:
            said = "nothing could be proved"
        return f"{self.name}: {said} ({self.seconds:.1f} s)."

    def rows(self) -> list[tuple[str, str, str, str, str]]:
        """The table, statements of one kind together: what, for what, degree, chance, "proved" or "REFUTED"."""
        groups: dict[str, list[Outcome]] = {}
        for outcome in self.outcomes:
            groups.setdefault(outcome.statement, []).append(outcome)
        return [_row(statement, found) for statement, found in groups.items()]

    def remarks(self) -> list[str]:
        """What was refuted and what was left out, one line each."""
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
        return "\n".join([*(lines if self.outcomes else []), *self.remarks(), self.verdict])


HEADINGS = ("statement", "for", "degree", "chance", "")


def _row(statement: str, found: list[Outcome]) -> tuple[str, str, str, str, str]:
    wrong = sum(1 for outcome in found if not outcome.ok)
    said = "proved" if not wrong else f"REFUTED {wrong} of {len(found)}"
    return (
        statement, _subject(found), str(max(outcome.degree for outcome in found)),
        f"< {above(max(outcome.chance for outcome in found))}", said,
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
