"""Which elements of a Program's results can differ from zero, known before any number is."""

from __future__ import annotations

from collections.abc import Iterator

from .program import Block, Body, Loop, Output, PairLoop, PairOutput, Program


def nonzeros(program: Program) -> list[list[int]]:
    """For each result, in order, the elements (row by row) that something other than 0 is written to."""
    found: list[set[int]] = [set() for _ in program.outputs]
    for output, element in _written(program):
        found[output].add(element)
    return [sorted(elements) for elements in found]


def _written(program: Program) -> Iterator[tuple[int, int]]:
    for step in program.steps:
        if isinstance(step, Block):
            yield from _of_link(program, step.body, 0)
        elif isinstance(step, Loop):
            for link, kind in enumerate(program.kinds):
                yield from _of_link(program, step.bodies[kind], link)
        else:
            yield from _of_pairs(program, step)


def _of_link(program: Program, body: Body, link: int) -> Iterator[tuple[int, int]]:
    for effect in body.effects:
        if isinstance(effect, Output) and not _zero(effect.value):
            where = effect.where
            yield effect.output, where[0] if len(where) == 1 else program.offsets[where[0]][link] + where[1]


def _of_pairs(program: Program, step: PairLoop) -> Iterator[tuple[int, int]]:
    for first, kind in enumerate(program.kinds):
        if kind in step.kinds:
            link, body = first, step.starts[kind]
            while link >= 0:
                for effect in body.effects:
                    if isinstance(effect, PairOutput) and not _zero(effect.value):
                        of_first, of_link, component = effect.where
                        place = program.offsets[of_first][first] + program.offsets[of_link][link] + component
                        yield effect.output, place
                link = program.parents[link]
                body = step.steps[program.kinds[link]]


def _zero(value: object) -> bool:
    return isinstance(value, (int, float)) and value == 0
