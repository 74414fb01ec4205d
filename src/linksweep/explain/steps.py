"""The statements of an algorithm: their equations and symbols from the source, and their values link by link.

Lines of an algorithm carry the numbers of their equations as comments, and the fields of its records carry their
meanings. Both are read from the source, so an explanation contains nothing that the source does not.

The algorithm itself runs, over floats or symbols. Meanwhile Python's trace function sees each finished line and
records the values that it assigned. Quantities of a link are expressed in its frame as the robot model defines it, as
`details=True` does, so both give the same numbers.
"""

from __future__ import annotations

import ast
import functools
import io
import linecache
import re
import sys
import tokenize
from dataclasses import dataclass, field, fields
from pathlib import Path
from types import FrameType, ModuleType
from typing import TYPE_CHECKING, TypeGuard

import numpy as np

from .. import algorithms
from ..errors import BackendError
from ..functions.catalog.explicit import joint_groups, summed_over
from ..functions.computation import RobotFunction
from ..functions.declaration import Record
from ..functions.details import RATES, VECTORS, axes_of, turned
from ..functions.functions import record_of
from ..mechanism.joints import Coordinates, JointInertia, Span
from ..mechanism.sweeps import Records, Unrolled
from ..model.model import BASE
from ..spatial.algebra import Force, Mat, Motion, Vec
from ..tracing.expression import Node
from ..tracing.tracer import UnrolledRun

if TYPE_CHECKING:
    from _typeshed import DataclassInstance, TraceFunction

IDENTITY = Mat(Vec(1.0, 0.0, 0.0), Vec(0.0, 1.0, 0.0), Vec(0.0, 0.0, 1.0))
SWEEPS = ("outward", "inward", "pairs")
IN_INNER_FRAME = "inner frame"  # in the comment of a line whose result is in the frame of the inner link
IN_FIRST_FRAME = ("augmented_bodies", "explicit_model", "influence")  # modules that use the first link's frame
KEPT, PASSED = "kept", "passed on"
Numbers = dict[str, np.ndarray]
ALGORITHMS = Path(str(algorithms.__file__)).parent
CITES = re.compile(r"\([A-Z]?\d|\bstage \d|\bsteps?\b|Appendix| = 0$")  # comments that cite an equation
PRAGMAS = ("noqa", "type:", "pyright:")


# ---- source --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Statement:
    """A simple statement: its syntax tree, comment, assigned names, and source in one line."""

    node: ast.stmt
    comment: str
    targets: tuple[str, ...]
    text: str


@functools.cache
def is_algorithm(filename: str) -> bool:
    """Return whether a source file is in the package of algorithms."""
    return ALGORITHMS in Path(filename).parents


@functools.cache
def statements(filename: str) -> dict[int, Statement]:
    """Return the simple statement of each line of a file, by line number."""
    source = _source(filename)
    comments = _comments(source)
    by_line: dict[int, Statement] = {}
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.stmt) and not hasattr(node, "body"):
            lines = range(node.lineno, (node.end_lineno or node.lineno) + 1)
            comment = ", ".join(comments[line] for line in lines if line in comments)
            statement = Statement(node, comment, _targets(node), _one_line(node))
            by_line.update(dict.fromkeys(lines, statement))
    return by_line


def citation(module: ModuleType) -> str:
    """Return the docstring of an algorithm's module, which cites its paper."""
    return ast.get_docstring(ast.parse(_source(str(module.__file__)))) or ""


def meanings(module: ModuleType) -> dict[str, str]:
    """Return the meaning of each field of the records of a module, and of those that it imports."""
    by_name: dict[str, str] = {}
    for part in (module, *borrowed_from(module)):
        by_name = _field_comments(str(part.__file__)) | by_name
    return by_name


def borrowed_from(module: ModuleType) -> list[ModuleType]:
    """Return the algorithms whose records or sweeps a module uses."""
    names = {getattr(value, "__module__", "") for value in vars(module).values()} - {module.__name__}
    modules = [sys.modules[name] for name in sorted(filter(None, names)) if name in sys.modules]
    return [part for part in modules if is_algorithm(str(getattr(part, "__file__", "")))]


def _field_comments(filename: str) -> dict[str, str]:
    source = _source(filename)
    comments, by_name = _comments(source), {}
    for node in ast.parse(source).body:
        for entry in node.body if isinstance(node, ast.ClassDef) else ():
            if isinstance(entry, ast.AnnAssign) and isinstance(entry.target, ast.Name) and entry.lineno in comments:
                by_name.setdefault(entry.target.id, comments[entry.lineno])
    return by_name


@functools.cache
def _comments(source: str) -> dict[int, str]:
    tokens = tokenize.generate_tokens(io.StringIO(source).readline)
    comments = {t.start[0]: t.string.lstrip("# ") for t in tokens if t.type == tokenize.COMMENT}
    plain = {line: text.partition("# ")[2] if text.startswith(PRAGMAS) else text for line, text in comments.items()}
    return {line: text for line, text in plain.items() if text}


def _source(filename: str) -> str:
    source = "".join(linecache.getlines(filename))
    if not source:
        raise BackendError(
            f"the source {Path(filename).name} cannot be read: explanations need the Python sources of linksweep."
        )
    return source


def _one_line(node: ast.stmt) -> str:
    """Return a statement in one line; of the pair that a step returns, the value for the next link."""
    part: ast.AST = node
    if isinstance(node, ast.Return) and node.value is not None:
        part = node.value.elts[-1] if isinstance(node.value, ast.Tuple) else node.value
    return " ".join(ast.unparse(part).split())


def _targets(node: ast.stmt) -> tuple[str, ...]:
    """Return the names that a statement assigns, in order; x.append(...) assigns x."""
    targets: list[ast.expr] = []
    if isinstance(node, ast.Assign):
        targets = node.targets
    elif isinstance(node, ast.AnnAssign) and node.value is not None:
        targets = [node.target]
    elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
        called = node.value.func
        if isinstance(called, ast.Attribute) and called.attr == "append":
            targets = [called.value]
    flat = [part for target in targets for part in (target.elts if isinstance(target, ast.Tuple) else [target])]
    names = [part.value if isinstance(part, ast.Subscript) else part for part in flat]
    return tuple(name.id for name in names if isinstance(name, ast.Name))


# ---- execution -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Line:
    """An executed statement: its equation numbers, source, and assigned values by name.

    frame: the frame of the values: "link" (its own), "inner" (the inner link's), "first" (the first link's), "base",
    or "joints". use: of a returned value, KEPT for later sweeps, or PASSED to the inner link.
    """

    equation: str
    statement: Statement
    values: Numbers
    frame: str = "link"
    use: str = ""


@dataclass
class Part:
    """The lines executed at one link; in a sweep over pairs of links, `of` is the link from which it started."""

    link: str = ""
    of: str = ""
    lines: list[Line] = field(default_factory=list)


@dataclass
class Stage:
    """One sweep over the links, or statements for the whole robot before and after it (direction "")."""

    name: str
    direction: str = ""
    equation: str = ""
    parts: list[Part] = field(default_factory=list)


@dataclass(frozen=True)
class _Location:
    """The location of an interpreter frame: its sweep, its link, and the other link of a pair."""

    sweep: FrameType | None = None
    link: int = BASE
    of: int = BASE


def trace_steps(run: UnrolledRun, request: RobotFunction) -> tuple[list[Stage], Record]:
    """Run a request over floats or symbols; return the executed stages and the algorithm's record."""
    tracer = _StepTracer(run)
    before = sys.gettrace()
    sys.settrace(tracer.called)
    try:
        record = record_of(run, request)
    finally:
        sys.settrace(before)
    return [stage for stage in tracer.stages if any(part.lines for part in stage.parts)], record


class _StepTracer:
    """Collects executed lines, and sorts them into stages."""

    def __init__(self, run: Unrolled):
        self.run = run
        self.names = [link.name for link in run.model.links]
        self.index = {id(view): k for k, view in enumerate(run.links)}
        self.stages: list[Stage] = []
        self._sweep: FrameType | None = None  # the interpreter frame that runs the last stage
        self._once: dict[tuple[FrameType, Statement], tuple[Part, int]] = {}

    def called(self, frame: FrameType, event: str, _: object) -> TraceFunction | None:
        """Trace function for calls: follow the functions of algorithms line by line."""
        code = frame.f_code
        if event != "call" or code.co_name.startswith("<") or not is_algorithm(code.co_filename):
            return None
        by_line, location = statements(code.co_filename), self._locate(frame)
        last: Statement | None = None

        def local(frame: FrameType, event: str, value: object) -> TraceFunction:
            nonlocal last
            if event == "line":
                here = by_line.get(frame.f_lineno)
                if last is not None and last is not here:
                    self._record(frame, location, last)
                last = here
            elif event == "return" and last is not None:
                self._record(frame, location, last, value)
                last = None
            elif event == "exception":
                last = None
            return local

        return local

    def _locate(self, frame: FrameType) -> _Location:
        """Find the link of the nearest calling function that has one, and the sweep that calls that function."""
        link, at = BASE, frame
        while at is not None:
            seen = at.f_locals.get("link") if is_algorithm(at.f_code.co_filename) else None
            if link == BASE and seen is not None:
                link = self.index.get(id(seen), BASE)
            code = at.f_code
            if code.co_name in SWEEPS and isinstance(at.f_locals.get("self"), Unrolled):
                of = at.f_locals["i"] if code.co_name == "pairs" else BASE
                return _Location(at, at.f_locals["i"] if link == BASE else link, of)
            if at.f_back is None:
                break
            at = at.f_back
        return _Location()

    # executed lines

    def _record(self, frame: FrameType, location: _Location, statement: Statement, returned: object = None) -> None:
        if location.sweep is None:
            self._record_for_robot(frame, statement)
            return
        step = "link" in frame.f_code.co_varnames[: frame.f_code.co_argcount]
        step = step and self._frame_of(frame, statement) != "first"  # there only equations state the frame of a value
        if isinstance(statement.node, ast.Return):
            self._record_return(frame, location, statement, returned)
            return
        if not statement.targets or not (step or CITES.search(statement.comment)):
            return
        where = self._frame_of(frame, statement)
        axes = self._axes(location, where)
        assigned = {name: frame.f_locals[name] for name in statement.targets if name != "_" and name in frame.f_locals}
        values = {
            key: value
            for name, record in assigned.items()
            if statement.comment or not _is_record(record)  # a record without an equation repeats earlier values
            for key, value in numbers(name, record, axes).items()
        }
        if values or statement.comment:
            self._append(frame, statement, Line(statement.comment, statement, values, where), self._part(location))

    def _record_return(self, frame: FrameType, location: _Location, statement: Statement, returned: object) -> None:
        """Record what a step stores and has not shown yet, what it passes inward, and results of its functions."""
        assert location.sweep is not None
        where = self._frame_of(frame, statement)
        axes, direction = self._axes(location, where), location.sweep.f_code.co_name
        lines = []
        if frame.f_back is location.sweep and isinstance(returned, tuple) and len(returned) == 2:
            stored, passed = returned
            part = self._part(location)
            seen = {name for line in part.lines for name in line.values}
            values = {} if direction != "pairs" and not _is_record(stored) else numbers("", stored, axes)
            values = {name: value for name, value in values.items() if name not in seen and where != "first"}
            if values:
                lines.append(Line("", statement, values, where, KEPT))
            if direction != "outward" and where != "first":
                values = numbers("", passed, self._axes(location, "inner"))
                lines.append(Line(statement.comment, statement, values, "inner", PASSED))
            part.lines += [line for line in lines if line.values]
        elif CITES.search(statement.comment):
            values = numbers(frame.f_code.co_name.strip("_"), returned, axes)
            self._append(frame, statement, Line(statement.comment, statement, values, where), self._part(location))

    def _frame_of(self, frame: FrameType, statement: Statement) -> str:
        module = str(frame.f_globals.get("__name__", "")).rpartition(".")[2]
        if module in IN_FIRST_FRAME:
            return "first"
        return "inner" if IN_INNER_FRAME in statement.comment else "link"

    def _axes(self, location: _Location, where: str) -> Mat:
        links = self.run.model.links
        k = {"first": 0, "link": location.link, "inner": links[location.link].parent}[where]
        return IDENTITY if k == BASE else axes_of(links[k])

    def _append(self, frame: FrameType, statement: Statement, line: Line, part: Part) -> None:
        """Append a line; a line that repeats within one call of its function is shown once, with its last values."""
        if (frame, statement) in self._once:
            part, at = self._once[frame, statement]
            part.lines[at] = line
            return
        if not line.values and any(each.statement is statement for each in part.lines):
            return
        part.lines.append(line)
        self._once[frame, statement] = part, len(part.lines) - 1

    def _part(self, location: _Location) -> Part:
        stage = self._stage(location.sweep)
        link = self.names[location.link]
        of = self.names[location.of] if location.of not in (BASE, location.link) else ""
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
                step_name = getattr(step, "__name__", "step")
                name = caller.f_code.co_name if step_name in ("step", "start") else step_name
                name = name.strip("_").replace("_", " ")
            direction = sweep.f_code.co_name if sweep is not None else ""
            self.stages.append(Stage(name, direction, equation, [] if sweep is not None else [Part()]))
        return self.stages[-1]

    def _record_for_robot(self, frame: FrameType, statement: Statement) -> None:
        """Record a line for the whole robot if it cites an equation and does not only start a sweep."""
        if not CITES.search(statement.comment) or isinstance(statement.node, ast.Return):
            return
        values: Numbers = {}
        where = "joints"
        for name in statement.targets:
            record = frame.f_locals.get(name)
            if _is_record(record) and not isinstance(record, (Records, dict)):
                where = "base"
                values |= numbers(name, record, IDENTITY)
            else:
                values |= _joined(self.run, name, record)
        if values or not _mentions(statement.node, "sweep"):
            line = Line(statement.comment, statement, values, where)
            self._append(frame, statement, line, self._stage(None).parts[-1])


def _mentions(node: ast.AST, name: str) -> bool:
    return any(isinstance(part, ast.Name) and part.id == name for part in ast.walk(node))


def _is_record(value: object) -> TypeGuard[DataclassInstance]:
    """Return whether a value is a record of an algorithm: a dataclass with quantities as fields."""
    return hasattr(value, "__dataclass_fields__") and type(value) not in VECTORS


def numbers(name: str, record: object, axes: Mat) -> Numbers:
    """Return the values of a quantity, or of the fields of a record, by name; empty for other objects."""
    value: object = record.block if isinstance(record, JointInertia) else record
    value = value.columns if isinstance(value, Span) else value
    if type(value) in VECTORS:
        return {name: _array(turned(axes, value)).reshape(VECTORS[type(value)])}
    if _is_scalar(value):
        return {name: _array(value)}
    if isinstance(value, tuple) and value:  # lists are skipped: their frames are unknown
        if all(isinstance(entry, (Force, Motion)) for entry in value):
            return {name: _array([turned(axes, entry) for entry in value])}
        rows = [list(row) if isinstance(row, tuple) else [row] for row in value]
        if len({len(row) for row in rows}) == 1 and all(_is_scalar(x) for row in rows for x in row):
            return {name: _array(value)}
        return {}
    if _is_record(record):
        values: Numbers = {}
        for key in (entry.name for entry in fields(record)):
            values |= numbers(f"{name}.{key}" if name else key, getattr(record, key), axes)
        return values
    return {}


def _is_scalar(value: object) -> bool:
    return isinstance(value, (float, int, Node)) and not isinstance(value, bool)


def _array(values: object) -> np.ndarray:
    """Return an array of floats, or of objects if there are symbols."""
    array = np.array(values, dtype=object)
    if any(isinstance(x, Node) for x in array.ravel()):
        return array
    return array.astype(float) + 0.0  # no -0


def _joined(run: Unrolled, name: str, value: object) -> Numbers:
    """Return values for all joints as one array: a vector with a component per DOF, or a matrix."""
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
