"""A recursion watched at work: every statement of its steps with the numbers it made, link by link.

The algorithm itself runs, over floats or symbols; no copy of it. While it does, Python's trace function sees each line
that is left behind, and looks up what the line made. Quantities of a link are turned into the directions of its frame
as the description has it, as `details=True` does, so the numbers here and there are the same.
"""

from __future__ import annotations

import ast
import sys
from dataclasses import dataclass, field, fields
from types import FrameType
from typing import TYPE_CHECKING, TypeGuard

import numpy as np

from ..catalogue.details import RATES, VECTORS, axes_of, turned
from ..catalogue.explicit_traces import joint_groups, summed_over
from ..catalogue.functions import Request, record_of
from ..catalogue.table import Record
from ..description.model import BASE
from ..mechanism.joints import Coordinates, JointInertia, Span
from ..mechanism.sweeps import Records, Unrolled
from ..spatial.algebra import Force, Mat, Motion, Vec
from ..tracing.expression import Node
from ..tracing.unrolled import UnrolledRun
from .source import CITES, Statement, is_algorithm, statements

if TYPE_CHECKING:
    from _typeshed import DataclassInstance, TraceFunction

UNTURNED = Mat(Vec(1.0, 0.0, 0.0), Vec(0.0, 1.0, 0.0), Vec(0.0, 0.0, 1.0))
SWEEPS = ("outward", "inward", "pairs")
IN_INNER_FRAME = "inner frame"  # what the comment of a line says whose result is not yet carried to its link
IN_FIRST_FRAME = ("augmented_bodies", "explicit_model", "influence")  # modules that describe all in the first link's
KEPT, PASSED = "kept", "passed on"
Numbers = dict[str, np.ndarray]


@dataclass(frozen=True)
class Line:
    """A statement: its equations, itself, and the numbers it made by name.

    frame: whose directions they have: "link" its own, "inner" the inner link's, "first" the first link's, "base", or
    "joints". use: what becomes of a result that is returned: KEPT for later sweeps, or PASSED to the inner link.
    """

    equation: str
    statement: Statement
    values: Numbers
    frame: str = "link"
    use: str = ""


@dataclass
class Part:
    """What a step does at one link; in a sweep over pairs also `of` which link, from which it started."""

    link: str = ""
    of: str = ""
    lines: list[Line] = field(default_factory=list)


@dataclass
class Stage:
    """One sweep over the links, or what is done for the whole robot before and after (direction "")."""

    name: str
    direction: str = ""
    equation: str = ""
    parts: list[Part] = field(default_factory=list)


@dataclass(frozen=True)
class _Place:
    """Where a frame of the interpreter stands: in which sweep, at which link, and of which other one."""

    sweep: FrameType | None = None
    link: int = BASE
    of: int = BASE


def walk(run: UnrolledRun, request: Request) -> tuple[list[Stage], Record]:
    """Run a request over the run's inputs, floats or symbols: what happened, and the algorithm's record."""
    watch = _Watch(run)
    before = sys.gettrace()
    sys.settrace(watch.called)
    try:
        record = record_of(run, request)
    finally:
        sys.settrace(before)
    return [stage for stage in watch.stages if any(part.lines for part in stage.parts)], record


class _Watch:
    """Sees lines go by, and sorts them into stages."""

    def __init__(self, run: Unrolled):
        self.run = run
        self.names = [link.name for link in run.model.links]
        self.index = {id(view): k for k, view in enumerate(run.links)}
        self.stages: list[Stage] = []
        self._sweep: FrameType | None = None  # of the last stage: the frame that runs it
        self._once: dict[tuple[FrameType, Statement], tuple[Part, int]] = {}

    def called(self, frame: FrameType, event: str, _: object) -> TraceFunction | None:
        """The trace function: a function begins."""
        code = frame.f_code
        if event != "call" or code.co_name.startswith("<") or not is_algorithm(code.co_filename):
            return None
        known, place = statements(code.co_filename), self._place(frame)
        last: Statement | None = None

        def local(frame: FrameType, event: str, value: object) -> TraceFunction:
            nonlocal last
            if event == "line":
                here = known.get(frame.f_lineno)
                if last is not None and last is not here:
                    self._done(frame, place, last)
                last = here
            elif event == "return" and last is not None:
                self._done(frame, place, last, value)
                last = None
            elif event == "exception":
                last = None
            return local

        return local

    def _place(self, frame: FrameType) -> _Place:
        """The link is that of the nearest function with one; the sweep is what calls that."""
        link, at = BASE, frame
        while at is not None:
            seen = at.f_locals.get("link") if is_algorithm(at.f_code.co_filename) else None
            if link == BASE and seen is not None:
                link = self.index.get(id(seen), BASE)
            code = at.f_code
            if code.co_name in SWEEPS and isinstance(at.f_locals.get("self"), Unrolled):
                of = at.f_locals["i"] if code.co_name == "pairs" else BASE
                return _Place(at, at.f_locals["i"] if link == BASE else link, of)
            if at.f_back is None:
                break
            at = at.f_back
        return _Place()

    # what a line made

    def _done(self, frame: FrameType, place: _Place, statement: Statement, returned: object = None) -> None:
        if place.sweep is None:
            self._of_all(frame, statement)
            return
        step = "link" in frame.f_code.co_varnames[: frame.f_code.co_argcount]
        step = step and self._frame_of(frame, statement) != "first"  # where only equations say what has which frame
        if isinstance(statement.node, ast.Return):
            self._returned(frame, place, statement, returned)
            return
        if not statement.targets or not (step or CITES.search(statement.comment)):
            return
        where = self._frame_of(frame, statement)
        axes = self._axes(place, where)
        made = {name: frame.f_locals[name] for name in statement.targets if name != "_" and name in frame.f_locals}
        values = {
            key: value
            for name, record in made.items()
            if statement.comment or not _is_record(record)  # which only gathers what has been seen
            for key, value in numbers(name, record, axes).items()
        }
        if values or statement.comment:
            self._append(frame, statement, Line(statement.comment, statement, values, where), self._part(place))

    def _returned(self, frame: FrameType, place: _Place, statement: Statement, returned: object) -> None:
        """What a step keeps and has not named before, what it passes on inward, and results of its own functions."""
        assert place.sweep is not None
        where = self._frame_of(frame, statement)
        own, direction = self._axes(place, where), place.sweep.f_code.co_name
        lines = []
        if frame.f_back is place.sweep and isinstance(returned, tuple) and len(returned) == 2:
            kept, passed = returned
            part = self._part(place)
            seen = {name for line in part.lines for name in line.values}
            values = {} if direction != "pairs" and not _is_record(kept) else numbers("", kept, own)
            values = {name: value for name, value in values.items() if name not in seen and where != "first"}
            if values:
                lines.append(Line("", statement, values, where, KEPT))
            if direction != "outward" and where != "first":
                values = numbers("", passed, self._axes(place, "inner"))
                lines.append(Line(statement.comment, statement, values, "inner", PASSED))
            part.lines += [line for line in lines if line.values]
        elif CITES.search(statement.comment):
            values = numbers(frame.f_code.co_name.strip("_"), returned, own)
            self._append(frame, statement, Line(statement.comment, statement, values, where), self._part(place))

    def _frame_of(self, frame: FrameType, statement: Statement) -> str:
        module = str(frame.f_globals.get("__name__", "")).rpartition(".")[2]
        if module in IN_FIRST_FRAME:
            return "first"
        return "inner" if IN_INNER_FRAME in statement.comment else "link"

    def _axes(self, place: _Place, where: str) -> Mat:
        links = self.run.model.links
        k = {"first": 0, "link": place.link, "inner": links[place.link].parent}[where]
        return UNTURNED if k == BASE else axes_of(links[k])

    def _append(self, frame: FrameType, statement: Statement, line: Line, part: Part) -> None:
        """A line that runs again and again in one call of its function is shown once, as it was the last time."""
        if (frame, statement) in self._once:
            part, at = self._once[frame, statement]
            part.lines[at] = line
            return
        if not line.values and any(known.statement is statement for known in part.lines):
            return
        part.lines.append(line)
        self._once[frame, statement] = part, len(part.lines) - 1

    def _part(self, place: _Place) -> Part:
        stage = self._stage(place.sweep)
        link = self.names[place.link]
        of = self.names[place.of] if place.of not in (BASE, place.link) else ""
        if not stage.parts or (stage.parts[-1].link, stage.parts[-1].of) != (link, of):
            stage.parts.append(Part(link, of))
        return stage.parts[-1]

    def _stage(self, sweep: FrameType | None) -> Stage:
        if not self.stages or self._sweep is not sweep:
            self._sweep = sweep
            name, equation = "", ""
            if sweep is not None and sweep.f_back is not None:
                caller = sweep.f_back
                called = statements(caller.f_code.co_filename).get(caller.f_lineno)
                equation = called.comment if called is not None else ""
                step = sweep.f_locals.get("step")
                own = getattr(step, "__name__", "step")
                name = (caller.f_code.co_name if own in ("step", "start") else own).strip("_").replace("_", " ")
            direction = sweep.f_code.co_name if sweep is not None else ""
            self.stages.append(Stage(name, direction, equation, [] if sweep is not None else [Part()]))
        return self.stages[-1]

    def _of_all(self, frame: FrameType, statement: Statement) -> None:
        """A line for the whole robot, if it cites an equation; those that only start sweeps are seen in them."""
        if not CITES.search(statement.comment) or isinstance(statement.node, ast.Return):
            return
        values: Numbers = {}
        where = "joints"
        for name in statement.targets:
            record = frame.f_locals.get(name)
            if _is_record(record) and not isinstance(record, (Records, dict)):
                where = "base"
                values |= numbers(name, record, UNTURNED)
            else:
                values |= _joined(self.run, name, record)
        if values or not _mentions(statement.node, "sweep"):
            line = Line(statement.comment, statement, values, where)
            self._append(frame, statement, line, self._stage(None).parts[-1])


def _mentions(node: ast.AST, name: str) -> bool:
    return any(isinstance(part, ast.Name) and part.id == name for part in ast.walk(node))


def _is_record(value: object) -> TypeGuard[DataclassInstance]:
    """Whether this is a dataclass of an algorithm, with quantities for its fields."""
    return hasattr(value, "__dataclass_fields__") and type(value) not in VECTORS


def numbers(name: str, record: object, axes: Mat) -> Numbers:
    """The numbers of a record by name, its fields by theirs; none where it is not made of any."""
    value: object = record.block if isinstance(record, JointInertia) else record
    value = value.columns if isinstance(value, Span) else value
    if type(value) in VECTORS:
        return {name: _array(turned(axes, value)).reshape(VECTORS[type(value)])}
    if _is_scalar(value):
        return {name: _array(value)}
    if isinstance(value, tuple) and value:  # a list may hold anything, in any frame
        if all(isinstance(entry, (Force, Motion)) for entry in value):
            return {name: _array([turned(axes, entry) for entry in value])}
        rows = [list(row) if isinstance(row, tuple) else [row] for row in value]
        if len({len(row) for row in rows}) == 1 and all(_is_scalar(x) for row in rows for x in row):
            return {name: _array(value)}
        return {}
    if _is_record(record):
        found: Numbers = {}
        for key in (entry.name for entry in fields(record)):
            found |= numbers(f"{name}.{key}" if name else key, getattr(record, key), axes)
        return found
    return {}


def _is_scalar(value: object) -> bool:
    return isinstance(value, (float, int, Node)) and not isinstance(value, bool)


def _array(values: object) -> np.ndarray:
    """Of floats, or where some are symbols, of objects."""
    array = np.array(values, dtype=object)
    if any(isinstance(x, Node) for x in array.ravel()):
        return array
    return array.astype(float) + 0.0  # no -0


def _joined(run: Unrolled, name: str, value: object) -> Numbers:
    """What belongs to all joints: a number for each rate, or a matrix of them."""
    if isinstance(value, Records) and all(isinstance(entry, Coordinates) for entry in value):
        complete = len(value) == len(run.links)
        return {name: _array(run.join_rates(value) if name in RATES else run.join(value))} if complete else {}
    if isinstance(value, dict) and value and all(isinstance(key, tuple) and len(key) == 2 for key in value):
        entries = list(value.values())
        if all(isinstance(entry, (list, tuple)) for entry in entries):
            nv = run.model.nv
            return {name: _array(run.join_pairs(value)).reshape(nv, nv)}
        if all(_is_scalar(entry) for entry in entries) and len(value) == len(run.links) ** 2:
            entries, nv = summed_over(joint_groups(run), 2, lambda i, k: value[i, k]), run.model.nv
            return {name: _array(entries).reshape(nv, nv)}
    return {}
