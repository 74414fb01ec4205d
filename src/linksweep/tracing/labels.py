"""Readable names for the values of a Program, by a second and slower trace that observes the algorithm.

Only source export, printing and count tables use it; an ordinary trace pays nothing. While `labelled` runs, each new
node records the line of the algorithm that computes it, whose trailing comment is the equation. When a function of an
algorithm returns, its local variables and the fields of its result name the nodes in them: `angular.x` of the local
variable `alpha` of link 3 becomes `alpha_angular_x` of that link. A name cannot be recorded when the node is made,
because the variable is assigned afterwards; this is why returns are observed by `sys.setprofile`.
"""

# pyright: reportPrivateUsage=false
# (the frames of callers show which line makes a node)

from __future__ import annotations

import ast
import functools
import linecache
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import CodeType, FrameType
from typing import cast

from .expression import ONLINE, Data, Graph, Node, Operand, graph_class
from .program import Label, Program

_PACKAGES = Path(__file__).parent.parent
_ALGORITHM, _HELPER, _ARGUMENT, _NEGATED = range(4)  # quality of a name, best first
_EQUATION = re.compile(r"\([0-9][0-9A-Za-z.]*'?\)")


@dataclass(frozen=True, slots=True)
class _Statement:
    target: str
    text: str
    comment: str


class _Labelling(Graph):
    """A Graph that records for each node its origin, and the node that it replaces after a pass."""

    def __init__(self) -> None:
        super().__init__()
        self.origins: dict[Node, Label] = {}
        self.after: dict[Node, Node] = {}  # the node after a pass, by the node before it
        self.before: dict[Node, Node] = {}  # the reverse

    def leaf(self, op: str, data: Data, level: int = ONLINE) -> Node:
        node = super().leaf(op, data, level)
        old = _renewed(sys._getframe(1))
        if old is not None and old.op == op and old is not node:
            self.before.setdefault(node, old)
        return node

    def make(self, op: str, *args: Operand, order: int | None = None) -> Node:
        new = len(self.nodes)
        node = super().make(op, *args, order=order)
        old = _renewed(sys._getframe(1))
        if old is None:
            if len(self.nodes) > new:
                self.origins[node] = _origin(sys._getframe(1))
        elif old is not node:
            origin = old.graph.origins.get(old) if isinstance(old.graph, _Labelling) else None
            if origin is not None:
                self.origins.setdefault(node, origin)
            if order is not None or old.graph is not self:  # the last that a pass makes for a node takes its place
                self.before.pop(self.after.get(old, node), None)
                self.after[old] = node
                self.before.setdefault(node, old)
        return node


class _Watch:
    """Names by node. `see` is the profile function that collects them."""

    def __init__(self) -> None:
        self.names: dict[Node, tuple[int, Label]] = {}

    def see(self, frame: FrameType, event: str, returned: object) -> None:
        if event != "return":
            return
        code = frame.f_code
        rank = _rank(frame)
        if rank is None or code.co_name.startswith("<"):
            return
        link, of = _links(frame)
        local = frame.f_locals
        arguments = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
        for name in code.co_varnames[len(arguments) :]:
            self.enter(rank, link, of, name, local.get(name))
        if rank == _ALGORITHM:
            for record in cast("tuple[object, ...]", returned) if isinstance(returned, tuple) else (returned,):
                if type(record).__module__.startswith("linksweep.algorithms"):
                    self.enter(rank, link, of, "", record)
        elif code.co_name == "rotation_entries":
            self.enter(_ARGUMENT, link, of, "rotation", returned)
        for name in arguments:
            if name not in ("self", "sweep", "tracer"):
                self.enter(_ARGUMENT, link, of, name, local.get(name), only="" if rank == _ALGORITHM else "table")

    def enter(self, rank: int, link: str, of: str, name: str, record: object, only: str = "") -> None:
        for path, node in _walk(name, record):
            if node.op == "input" or (node.op == "load" and node.data[2] == "parent") or only not in ("", node.op):
                continue
            # a load is named after the argument that passes it, a table after the property of the link
            known_elsewhere = (node.op == "load" and rank != _ARGUMENT) or (node.op == "table" and name != "link")
            self._name(node, _NEGATED if known_elsewhere else rank, Label(path, link=link, of=of))
            if node.op == "neg":  # signs fold into the operations that use the value; the value itself is left
                self._name(node.args[0], _NEGATED, Label(f"minus_{path}", link=link, of=of))

    def _name(self, node: Operand, rank: int, label: Label) -> None:
        if not isinstance(node, Node):
            return
        known = self.names.get(node)
        if known is None or known[0] > rank:
            self.names[node] = rank, label


def labelled(trace: Callable[[], Program]) -> Program:
    """Return the Program of `trace()`, with a Label for every node that an algorithm computes."""
    watch, profile = _Watch(), sys.getprofile()
    token = graph_class.set(_Labelling)
    sys.setprofile(watch.see)
    try:
        program = trace()
    finally:
        sys.setprofile(profile)
        graph_class.reset(token)
    labels = ((node, _label(node, watch)) for body in program.bodies() for node in body.nodes)
    return replace(program, labels={node: label for node, label in labels if label != Label()})


def _label(node: Node, watch: _Watch) -> Label:
    graph = node.graph
    assert isinstance(graph, _Labelling)
    origin = graph.origins.get(node, Label())
    _, name = watch.names.get(node, (0, Label()))
    if not name.quantity and node in graph.before:
        name = _label(graph.before[node], watch)
    quantity = node.op if node.op in ("sin", "cos") else name.quantity
    of = name.of if name.quantity else origin.of
    return replace(origin, quantity=quantity, link=name.link or origin.link, of=of)


def _renewed(frame: FrameType | None) -> Node | None:
    """Return the node that a pass works on while it makes another one."""
    while frame is not None and _of_tracing(frame.f_code.co_filename):
        if "node" in frame.f_code.co_varnames and isinstance(node := frame.f_locals.get("node"), Node):
            return node
        frame = frame.f_back
    return None


def _origin(frame: FrameType | None) -> Label:
    """Return the origin of a node: the innermost line of an algorithm, then the functions around it."""
    helper = statement = None
    link = of = step = equation = ""
    while frame is not None:
        code = frame.f_code
        rank = _rank(frame)
        if rank is not None:
            found = _statements(code.co_filename).get(frame.f_lineno)
            if rank == _HELPER:
                helper = helper or found
            else:
                statement = statement or found
                of_link = "link" in code.co_varnames
                if not equation and (of_link or not step):
                    equation = _equation(code, found)
                if of_link:
                    step = code.co_name
        if not link and "link" in code.co_varnames:
            link, of = _links(frame)
        frame = frame.f_back
    said = statement or helper or _Statement("", "", "")
    text = statement.text if statement is not None else ""
    title = step.strip("_").replace("_", " ") + (f" of {of}" if of else "")
    return Label("", said.target, link, of, link, title, equation, text)


def _equation(code: CodeType, statement: _Statement | None) -> str:
    """Return the comment of the statement, or the equation numbers in the docstring of its function."""
    if statement is not None and statement.comment:
        return statement.comment
    description = code.co_consts[0] if code.co_consts and isinstance(code.co_consts[0], str) else ""
    numbers = _EQUATION.findall(description) if "link" in code.co_varnames else []  # a step, or a part of one
    return ", ".join(dict.fromkeys(numbers))


def _links(frame: FrameType) -> tuple[str, str]:
    """Return the link of a frame or of a caller, and in a sweep over pairs the link where the pair begins."""
    at = frame
    link = _name_of(at)
    while at.f_back is not None and _rank(at) is not None:
        at = at.f_back
        if not link and _rank(at) is not None:
            link = _name_of(at)
    of = _name_of(at) if at.f_code.co_name == "pairs" else ""
    return link, of if of != link else ""


def _name_of(frame: FrameType) -> str:
    seen = frame.f_locals.get("link") if "link" in frame.f_code.co_varnames else None
    return getattr(getattr(seen, "_link", seen), "name", None) or ""


@functools.cache
def _package(filename: str) -> str:
    """Return the package of linksweep that a file belongs to."""
    path = Path(filename)
    return path.relative_to(_PACKAGES).parts[0] if path.is_relative_to(_PACKAGES) else ""


def _of_tracing(filename: str) -> bool:
    return _package(filename) == "tracing"


def _rank(frame: FrameType) -> int | None:
    """Return the rank of names in a frame. Modules with NAMES_VALUES name values that algorithms do not name."""
    if _package(frame.f_code.co_filename) == "algorithms":
        return _ALGORITHM
    return _HELPER if "NAMES_VALUES" in frame.f_globals else None


@functools.cache
def _statements(filename: str) -> dict[int, _Statement]:
    """Return the statement of each line; {} if the source is not available."""
    lines = linecache.getlines(filename)
    found: dict[int, _Statement] = {}
    parts = (part for node in ast.walk(ast.parse("".join(lines))) for _, part in ast.iter_fields(node))
    for block in parts:
        below = ""  # a statement without a comment belongs to the next one that has one
        nodes = cast("list[object]", block) if isinstance(block, list) else []
        for node in reversed(nodes):
            if not isinstance(node, ast.stmt) or hasattr(node, "body"):
                continue
            last = node.end_lineno or node.lineno
            comments = {number: _comment(lines[number - 1]) for number in range(node.lineno, last + 1)}
            text = "" if last > node.lineno else lines[last - 1].partition("  #")[0].strip()
            own = next(filter(None, comments.values()), "")
            below = own or below
            for number, comment in comments.items():
                found[number] = _Statement(_target(node), text, comment or below)
        above = ""
        for node in nodes:
            if isinstance(node, ast.stmt) and node.lineno in found and not hasattr(node, "body"):
                above = found[node.lineno].comment or above
                for number in range(node.lineno, (node.end_lineno or node.lineno) + 1):
                    found[number] = replace(found[number], comment=found[number].comment or above)
    return found


def _comment(line: str) -> str:
    comment = line.partition("  #")[2].strip()
    return "" if comment.startswith(("noqa", "type:", "pyright:")) else comment


def _target(statement: ast.stmt) -> str:
    if isinstance(statement, ast.Assign) and len(statement.targets) == 1:
        target = statement.targets[0]
        if isinstance(target, ast.Name):
            return target.id
        if isinstance(target, ast.Subscript) and isinstance(target.value, ast.Name):
            return target.value.id
    return ""


def _walk(path: str, record: object) -> Iterator[tuple[str, Node]]:
    """Yield the nodes in a record with the path of fields to each; the only entry of a row has no index."""
    kind = type(record)
    if isinstance(record, Node):
        yield path, record
    elif kind in (float, int, str, bool, type(None)) or kind.__name__ == "Records":
        return  # Records of a sweep are named link by link, when they are kept
    elif isinstance(record, (tuple, list)):
        row = cast("Sequence[object]", record)
        for index, item in enumerate(row):
            yield from _walk(path if len(row) == 1 else _join(path, index), item)
    elif isinstance(record, dict):
        for key, item in cast("dict[object, object]", record).items():
            keys = cast("tuple[object, ...]", key) if isinstance(key, tuple) else (key,)
            yield from _walk(_join(path, *keys), item)
    elif hasattr(record, "_link"):  # a LinkView: only its tables have no other name
        for name in ("M", "com", "I_com", "armature", "damping", "friction", "torque_offset", "X"):
            yield from (entry for entry in _walk(name, getattr(record, name, None)) if entry[1].op == "table")
    elif kind.__module__.startswith("linksweep") and not kind.__module__.startswith("linksweep.tracing"):
        fields = getattr(record, "__dataclass_fields__", None) or getattr(kind, "__slots__", ())
        for name in fields:
            yield from _walk(path if name in ("columns", "rows") else _join(path, name), getattr(record, name, None))


def _join(path: str, *further: object) -> str:
    return "_".join(str(part) for part in (path, *further) if part != "")


__all__ = ["labelled"]
