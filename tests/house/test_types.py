"""How often the source of the core says Any, and why it still does: the figures may only fall."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import linksweep

ROOT = Path(linksweep.__file__).parent
# room: lines of code that say Any, imports included, and what they are
MOST = {
    "support": (7, "TOML's and JSON's values; bars of rich and IPython; the owner of a lazy property"),
    "spatial": (16, "operators of Scalar, whose other side is any scalar of the same run; records of any shape"),
    "joints": (0, ""),
    "mechanism": (10, "fields of PerLink, whose names are not known; Pairs; what a Robot gives its methods"),
    "algorithms": (2, "columns of several types that are walked side by side"),
    "tracing": (12, "the same fields in Rolled; rules, which look at operands of any kind; data of leaves"),
    "counts": (2, "arguments of counts in a table"),
    "exact": (9, "exact numbers in the place of floats; options of requests"),
    "catalogue": (11, "records of algorithms; items that users ask for, before they are checked"),
    "compiled": (8, "results, of which the caller knows how many; CasADi; JSON of the cache; what keys are made of"),
    "backends": (4, "llvmlite, which has no types; values of the interpreter"),
    "spatial_operators": (11, "operands of scipy's LinearOperator; links in two kinds of frames"),
    "tables": (4, "pyarrow, which has no types"),
    "interop": (4, "tensors of PyTorch and arrays of JAX, which are extras"),
    "explain": (7, "trees of formulas, SymPy's expressions, Python's trace functions"),
    "formats": (9, "MuJoCo, which has no types; fields of a stored model"),
    "description": (2, "what constraints are made from, before it is checked"),
}  # fmt: skip


def lines_with_any(path: Path) -> set[int]:
    """Lines on which the name stands as code: docstrings and comments do not count."""
    tree = ast.parse(path.read_text())
    named = {node.lineno for node in ast.walk(tree) if isinstance(node, ast.Name) and node.id == "Any"}
    imported = {node.lineno for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) and node.module == "typing"
                and any(alias.name == "Any" for alias in node.names)}  # fmt: skip
    return named | imported


@pytest.mark.parametrize("room", MOST)
def test_any_does_not_come_back(room: str):
    found = {path.relative_to(ROOT): lines_with_any(path) for path in (ROOT / room).rglob("*.py")}
    most, why = MOST[room]
    assert sum(map(len, found.values())) <= most, f"{why}: {[name for name, lines in found.items() if lines]}"


def test_what_users_compile_says_what_it_takes():
    """No Any in the arguments of compiled functions; several results are a named type, for which the caller knows."""
    from linksweep.compiled.function import CompiledFunction

    for name, member in vars(CompiledFunction).items():
        if callable(member) and not name.startswith("_"):
            assert "Any" not in map(str, getattr(member, "__annotations__", {}).values()), name
