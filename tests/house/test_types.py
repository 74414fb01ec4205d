"""How often the source says Any, and why it still does: the figures may only fall."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import linksweep

ROOT = Path(linksweep.__file__).parent
IN_ALL = 99
# room: lines of code that say Any, imports included, and what they are; of a room that is not named here, none
MOST = {
    "support": (6, "TOML's and JSON's values; the owner of a lazy property; values that are fingerprinted"),
    "spatial": (16, "operators of Scalar, whose other side is any scalar of the same run; records of any shape"),
    "mechanism": (7, "fields of PerLink, whose names are not known; Pairs"),
    "algorithms": (2, "columns of several types that are walked side by side"),
    "tracing": (10, "the same fields in Rolled; rules, which look at operands of any kind; data of leaves"),
    "exact": (6, "exact numbers in the place of floats; options of requests"),
    "catalogue": (2, "records of algorithms"),
    "compiled": (5, "results, of which the caller knows how many; CasADi"),
    "backends": (4, "llvmlite, which has no types; values of the interpreter"),
    "analysis": (4, "models of Pinocchio and MuJoCo; SymPy's expressions"),
    "spatial_operators": (10, "operands of scipy's LinearOperator; links in two kinds of frames"),
    "motion": (4, "lines that run over floats, arrays and symbols alike"),
    "tables": (4, "pyarrow, which has no types"),
    "interop": (2, "tensors of PyTorch and arrays of JAX, which are extras"),
    "plots": (2, "Matplotlib's mplot3d, which has no types"),
    "viewer": (4, "viser and trimesh, which are extras"),
    "simulation": (2, "Dask, which has no types"),
    "formats": (7, "MuJoCo, which has no types; fields of a stored model"),
    "description": (2, "what constraints are made from, before it is checked"),
}  # fmt: skip


def lines_with_any(path: Path) -> set[int]:
    """Lines on which the name stands as code: docstrings and comments do not count."""
    tree = ast.parse(path.read_text())
    named = {node.lineno for node in ast.walk(tree) if isinstance(node, ast.Name) and node.id == "Any"}
    imported = {node.lineno for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) and node.module == "typing"
                and any(alias.name == "Any" for alias in node.names)}  # fmt: skip
    return named | imported


def lines_of(room: str) -> dict[Path, set[int]]:
    """Of a room, or of a module beside the rooms."""
    path = ROOT / room
    return {file.relative_to(ROOT): lines_with_any(file) for file in (path.rglob("*.py") if path.is_dir() else [path])}


ROOMS = sorted(path.name for path in ROOT.iterdir() if path.suffix == ".py" or (path / "__init__.py").exists())


@pytest.mark.parametrize("room", ROOMS)
def test_any_does_not_come_back(room: str):
    found = lines_of(room)
    most, why = MOST.get(room, (0, "none"))
    count = sum(map(len, found.values()))
    assert count <= most, f"{why}: {[name for name, lines in found.items() if lines]}"
    assert count == most, f"{room} says Any {count} times: lower its figure"


def test_any_in_all():
    assert MOST.keys() <= set(ROOMS)
    assert sum(most for most, _ in MOST.values()) == IN_ALL <= 150


def test_what_users_compile_says_what_it_takes():
    """No Any in the arguments of compiled functions; several results are a named type, for which the caller knows."""
    from linksweep.compiled.function import CompiledFunction

    for name, member in vars(CompiledFunction).items():
        if callable(member) and not name.startswith("_"):
            assert "Any" not in map(str, getattr(member, "__annotations__", {}).values()), name
