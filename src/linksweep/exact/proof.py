"""`prove`: statements about a robot or a joint structure, tried in exact arithmetic until there is no doubt left."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from ..description.lint import lint
from ..errors import ArgumentError
from ..robot.robot import Robot
from ..support.messages import listing, shown
from .field import lifted
from .operators import appendix_a
from .points import Draw, Point, Structure, exact_model
from .programs import optimised
from .rational import exact_canonical
from .report import ENOUGH, Outcome, Proof
from .statements import LARGEST_EXPLICIT, Excluded, Mechanics, Tried

MOST_TRIALS = 50
HOPELESS = 1e-3  # the chance of an error in one trial beyond which more of them are not worth their time
LARGEST_ROBOT = 64  # links
LARGEST_TRACED = 12  # links of a robot whose programs are proved unasked: tracing them all takes minutes


def prove(
    target: Robot | Structure | str, *, trials: int | None = None, seed: int = 0, programs: bool | None = None
) -> Proof:
    """Prove that all formulations of a robot's mechanics are the same functions, in exact arithmetic.

    target: a Robot; or joints as letters, such as "RRPR" or "F(RR)(RP)S" (see `Structure`), for every robot that has
    these. trials: random points at which to try; None takes as many as bring the chance of an error below 1e-12.
    programs: whether the traced and optimised programs are proved too; None does for robots of up to 12 links. Of a
    robot with constraints, the tree without them is proved, and the proof's name and remarks say so.
    """
    start = time.perf_counter()
    _check_whole(seed, "seed", 0, 2**63)
    if trials is not None:
        _check_whole(trials, "trials", 1, MOST_TRIALS)
    if programs is not None and not isinstance(programs, bool):
        raise ArgumentError(f"prove: programs is {shown(programs)}, expected True, False or None.")
    subject = _Subject(target, programs)
    outcomes: dict[tuple[str, str], Outcome] = {}
    excluded: list[Excluded] = []
    done = 0
    while done < (trials or MOST_TRIALS) and (trials or not done or any(map(_undecided, outcomes.values()))):
        excluded.clear()  # it is the same in every trial
        for tried in subject.statements(Draw(f"{subject.name} {seed} {done}"), excluded):
            _record(outcomes, tried)
        done += 1
    for outcome in outcomes.values():
        if outcome.ok and outcome.chance > ENOUGH and trials is None:
            reason = f"has a bound of {outcome.degree:.1e} on its degree, beyond what this field can tell apart"
            excluded.append(Excluded(outcome.statement, outcome.what, reason))
    kept = (o for o in outcomes.values() if not o.ok or o.chance <= ENOUGH or trials is not None)
    return Proof(subject.name, seed, done, time.perf_counter() - start, tuple(kept), tuple(excluded))


class _Subject:
    """A structure, all of whose numbers are drawn in each trial, or a robot with its own."""

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
        mechanics.exclude("Coulomb friction", "", "has the sign of a rate in it")
        if self.robot is not None and self.robot.constraints:
            labels = listing([tie.label for tie in self.robot.constraints])
            mechanics.exclude("constrained dynamics", "", f"has {labels} in it: every statement is of the tree alone")
        if self.robot is not None and self.robot.model.springs:
            mechanics.exclude("springs between frames", "", "are no part of these statements")
        if not self.programs:
            mechanics.exclude("programs", "", f"are traced unasked for robots of up to {LARGEST_TRACED} links")
        yield from mechanics
        yield from _operators(mechanics, draw)
        if self.programs:
            yield from optimised(mechanics)


def _operators(mechanics: Mechanics, draw: Draw) -> Iterator[Tried]:
    model, name = mechanics.model, "Rodriguez & Kreutz 1988"
    if not model.is_serial or not model.is_single or len(model.links) > LARGEST_EXPLICIT:
        mechanics.exclude(name, "", f"is about chains of one-freedom joints, here up to {LARGEST_EXPLICIT}")
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
            f"prove: {target.name} has {count} links, expected at most {LARGEST_ROBOT}: take a part of it "
            f"(robot.subchain), or linksweep.check, which samples."
        )
    if any(finding.fatal for finding in lint(target.model)):
        raise ArgumentError(
            f"prove: {target.name} has numbers of which nothing can be computed: linksweep.check says which."
        )
    return target


def _check_whole(value: object, name: str, least: int, most: int) -> None:
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or not least <= value <= most:
        raise ArgumentError(f"prove: {name} is {shown(value)}, expected a whole number from {least} to {most}.")
