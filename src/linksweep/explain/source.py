"""What the source of an algorithm says: its statements with their equations, its symbols with their meanings.

An algorithm's lines carry the numbers of their equations, its records' fields what they mean. Both are read here from
the source itself, so that nothing is said about an algorithm that is not written in it.
"""

from __future__ import annotations

import ast
import functools
import io
import linecache
import re
import sys
import tokenize
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

from .. import algorithms
from ..errors import BackendError

ALGORITHMS = Path(str(algorithms.__file__)).parent
CITES = re.compile(r"\([A-Z]?\d|\bstage \d|\bsteps?\b|Appendix| = 0$")  # what a comment has that names an equation
NOT_SAID = ("noqa", "type:", "pyright:")


@dataclass(frozen=True, eq=False)
class Statement:
    """A simple statement: its comment, the names it makes, itself in one line."""

    node: ast.stmt
    comment: str
    targets: tuple[str, ...]
    text: str


@functools.cache
def is_algorithm(filename: str) -> bool:
    return ALGORITHMS in Path(filename).parents


@functools.cache
def statements(filename: str) -> dict[int, Statement]:
    """The simple statement of each line of a file."""
    source = _source(filename)
    said = _comments(source)
    found: dict[int, Statement] = {}
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.stmt) and not hasattr(node, "body"):
            lines = range(node.lineno, (node.end_lineno or node.lineno) + 1)
            comment = ", ".join(said[line] for line in lines if line in said)
            statement = Statement(node, comment, _targets(node), _text(node))
            found.update(dict.fromkeys(lines, statement))
    return found


def citation(module: ModuleType) -> str:
    """What a module says about where its algorithm comes from: its description."""
    return ast.get_docstring(ast.parse(_source(str(module.__file__)))) or ""


def meanings(module: ModuleType) -> dict[str, str]:
    """The comment of each field of the module's records, or of those it takes from others; the first one counts."""
    found: dict[str, str] = {}
    for part in (module, *borrowed_from(module)):
        found = _own_meanings(str(part.__file__)) | found
    return found


def borrowed_from(module: ModuleType) -> list[ModuleType]:
    """The algorithms whose records or sweeps the module uses."""
    names = {getattr(value, "__module__", "") for value in vars(module).values()} - {module.__name__}
    modules = [sys.modules[name] for name in sorted(filter(None, names)) if name in sys.modules]
    return [part for part in modules if is_algorithm(str(getattr(part, "__file__", "")))]


def _own_meanings(filename: str) -> dict[str, str]:
    source = _source(filename)
    said, found = _comments(source), {}
    for node in ast.parse(source).body:
        for field in node.body if isinstance(node, ast.ClassDef) else ():
            if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name) and field.lineno in said:
                found.setdefault(field.target.id, said[field.lineno])
    return found


@functools.cache
def _comments(source: str) -> dict[int, str]:
    tokens = tokenize.generate_tokens(io.StringIO(source).readline)
    said = {t.start[0]: t.string.lstrip("# ") for t in tokens if t.type == tokenize.COMMENT}
    said = {line: text.partition("# ")[2] if text.startswith(NOT_SAID) else text for line, text in said.items()}
    return {line: text for line, text in said.items() if text}


def _source(filename: str) -> str:
    source = "".join(linecache.getlines(filename))
    if not source:
        raise BackendError(
            f"the source {Path(filename).name} cannot be read, expected it beside the package: what is explained is "
            f"read from there."
        )
    return source


def _text(node: ast.stmt) -> str:
    """The statement in one line; of a pair that a step returns, what goes on to the next link."""
    shown: ast.AST = node
    if isinstance(node, ast.Return) and node.value is not None:
        shown = node.value.elts[-1] if isinstance(node.value, ast.Tuple) else node.value
    return " ".join(ast.unparse(shown).split())


def _targets(node: ast.stmt) -> tuple[str, ...]:
    """The names that a statement makes, in order; of x.append(...) it is x."""
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
