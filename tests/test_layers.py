"""Data flows one way: description → Model → algorithm → Program → backend → Robot. Imports too."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parent.parent / "src" / "linksweep"
MODULES = sorted(PACKAGE.rglob("*.py"))

# folder or module, dotted, below linksweep (the longest that fits counts) -> what of linksweep it may import
ALLOWED = {
    "errors": set(),
    "model": {"errors"},
    "scalars": set(),
    "spatial": {"scalars"},
    "transforms": {"scalars", "spatial"},
    "canonical": {"model", "joints"},
    "tree_matrix": {"scalars"},
    "square_root": {"scalars"},
    "bias": {"joints", "spatial", "sweeps"},
    "joints": {"scalars", "spatial", "transforms"},
    "sweeps": {"scalars", "spatial", "transforms", "joints", "model", "canonical", "tree_matrix", "errors"},
    # an algorithm may build on another one, as its paper does (FD2 on FD1), but never on what runs it
    "algorithms": {
        "algorithms",
        "model",
        "joints",
        "spatial",
        "transforms",
        "sweeps",
        "scalars",
        "bias",
        "square_root",
        "tree_matrix",
    },
    "tracing": {"tracing", "scalars", "errors"},
    "tracing.unrolled": {"tracing", "sweeps", "canonical", "joints", "spatial", "model"},
    "tracing.rolled": {"tracing", "sweeps", "canonical", "joints", "scalars", "spatial", "model", "errors"},
    "backends": {"backends", "tracing.program", "tracing.expression", "errors"},
    "spatial_operators": {
        "spatial_operators",
        "algorithms",
        "sweeps",
        "canonical",
        "joints",
        "spatial",
        "transforms",
        "bias",
        "errors",
    },
    "regrouping": {"canonical", "model", "scalars", "spatial", "transforms"},
    "parameters": {"canonical", "errors", "model", "names", "quantities", "scalars", "spatial", "transforms"},
    "explicit_traces": {"algorithms", "body_traces", "spatial"},
    "base_parameters": {"compiled", "errors", "model", "names", "parameters", "regrouping", "spatial"},
    "parameter_methods": {"base_parameters", "compiled", "joints", "lazy", "parameters", "tracing"},
    "functions": {
        "algorithms",
        "explicit_traces",
        "parameters",
        "regrouping",
        "body_traces",
        "tracing",
        "canonical",
        "joints",
        "spatial",
        "model",
        "bias",
        "tree_matrix",
        "errors",
    },
    "details": {"functions", "tracing", "canonical", "joints", "spatial", "sweeps"},
    "compiled": {
        "c_export",
        "functions",
        "parameters",
        "details",
        "backends",
        "tracing",
        "canonical",
        "lazy",
        "errors",
    },
    "requests": {"functions", "names", "errors"},
    "coordinates": {"canonical", "joints", "model", "errors"},
    "factor": {"errors"},
    "lazy": set(),
    "names": set(),
    "external_forces": {"model", "names", "errors"},
    "quantities": {"model", "errors"},
    "assembly": {"quantities", "model", "errors"},
    "formats": {"formats", "assembly", "quantities", "model", "errors"},
    "body_traces": {"algorithms", "spatial", "transforms", "model", "errors"},
    "body_methods": set(),
    "kinematics_methods": {"motion"},
    "conventions": {"formats.mujoco_names", "external_forces", "joints", "model", "errors"},
    "editing": {"assembly", "canonical", "joints", "model", "names", "errors"},
    "edit_methods": {"editing", "formats", "model", "snapping"},
    "timing": set(),
    "snapping": {"model", "names", "errors"},
    "coupling": {"joints", "model", "names", "errors"},
    "motion": {"motion", "coordinates", "joints", "lazy", "model", "names", "errors"},
    "simulation": {
        "",  # its version, and Robot by name when a file is loaded
        "simulation",
        "tables",
        "backends",
        "canonical",
        "compiled",
        "errors",
        "files",
        "functions",
        "joints",
        "lazy",
        "model",
        "names",
        "requests",
        "scalars",
        "spatial",
        "sweeps",
        "tracing",
    },
    "lint": {"model"},
    "checking": {"compiled", "functions", "joints", "lint", "names", "errors"},
    # runs the same algorithms, traces and interpreter over another scalar
    "exact": {
        "exact",
        "algorithms",
        "backends.interpreter",
        "canonical",
        "functions",
        "joints",
        "lint",
        "model",
        "names",
        "parameters",
        "regrouping",
        "scalars",
        "spatial",
        "spatial_operators",
        "sweeps",
        "tracing",
        "transforms",
        "errors",
    },
    "symbolic": {"symbolic_fractions", "tracing.program", "tracing.expression", "names", "errors"},
    "symbolic_fractions": {"tracing.program", "tracing.expression", "errors"},
    "analysis_methods": {"symbolic", "compiled", "canonical", "joints", "parameters", "tracing", "names", "errors"},
    "published_counts": set(),
    "counting": {"published_counts", "functions", "robots", "tracing", "errors"},
    "planar_counts": {
        "counting",
        "published_counts",
        "algorithms",
        "bias",
        "canonical",
        "robots",
        "spatial",
        "tracing",
    },
    "count_tables": {"counting", "planar_counts", "published_counts", "tracing"},
    "files": {"errors"},
    "tables": {"tables", "motion", "files", "names", "joints", "model", "errors"},
    "c_export": {"", "backends", "tracing", "joints", "files", "names", "errors"},
    "plots": {"plots", "files", "joints", "model", "names", "errors"},
}
MAY_IMPORT_ROBOT = {"", "__main__", "cli", "loading", "studies", "robots"}


def own_name(path: Path) -> str:
    """`tracing.program` for src/linksweep/tracing/program.py, `` for the package itself."""
    parts = path.relative_to(PACKAGE).with_suffix("").parts
    return ".".join(part for part in parts if part != "__init__")


def imports_of(path: Path, when_imported: bool = False) -> set[str]:
    """Modules of linksweep (dotted, below linksweep) that a file imports at run time, anywhere in it.

    `when_imported`: only those that its own import brings, not what its functions import when called.
    """
    found: set[str] = set()

    def visit(node: ast.AST) -> None:
        if isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING":
            for child in node.orelse:  # what only a type checker reads is no dependency
                visit(child)
            return
        if when_imported and isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            return
        if isinstance(node, ast.Import):
            found.update(below(alias.name) for alias in node.names if is_own(alias.name))
        elif isinstance(node, ast.ImportFrom):
            module = absolute(path, node)
            if is_own(module):
                found.update(resolve(module, alias.name) for alias in node.names)
        for child in ast.iter_child_nodes(node):
            visit(child)

    visit(ast.parse(path.read_text(encoding="utf-8")))
    return found


def absolute(path: Path, node: ast.ImportFrom) -> str:
    """The module that `from ... import` names, with leading dots resolved."""
    if node.level == 0:
        return node.module or ""
    folder = path.parents[node.level - 1].relative_to(PACKAGE.parent)
    return ".".join((*folder.parts, *((node.module,) if node.module else ())))


def is_own(module: str) -> bool:
    return module == "linksweep" or module.startswith("linksweep.")


def below(module: str) -> str:
    return module.removeprefix("linksweep").removeprefix(".")


def resolve(module: str, name: str) -> str:
    """`from linksweep import robots` imports a module, `from linksweep.model import Model` a name of one."""
    inside = PACKAGE.joinpath(*below(f"{module}.{name}").split("."))
    is_module = inside.with_suffix(".py").exists() or (inside / "__init__.py").exists()
    return below(f"{module}.{name}" if is_module else module)


def starts_with(module: str, prefix: str) -> bool:
    return module == prefix or module.startswith(prefix + ".")


@pytest.mark.parametrize("path", MODULES, ids=lambda path: own_name(path) or "linksweep")
def test_layers(path: Path):
    module, imported = own_name(path), imports_of(path)
    layer = max((layer for layer in ALLOWED if starts_with(module, layer)), key=len, default=None)
    if layer is not None:
        allowed = ALLOWED[layer]
        forbidden = {other for other in imported if not any(starts_with(other, name) for name in allowed)}
        assert not forbidden, f"{module} may import {sorted(allowed)}, but imports {sorted(forbidden)}"
    if module.partition(".")[0] not in MAY_IMPORT_ROBOT and module != "robot":
        assert "robot" not in imported, f"{module} imports robot, the façade, which nothing below it may"


def test_every_module_has_a_layer():
    """Only what sits on top of everything may import everything."""
    top = {"robot", *MAY_IMPORT_ROBOT}
    loose = {own_name(path).partition(".")[0] for path in MODULES} - top - set(ALLOWED)
    assert not loose, f"say in ALLOWED what {sorted(loose)} may import"


def test_import_graph_has_no_cycle():
    graph = {own_name(path): imports_of(path, when_imported=True) for path in MODULES}
    done: set[str] = set()

    def visit(module: str, above: tuple[str, ...]) -> None:
        assert module not in above, "import cycle: " + " → ".join((*above[above.index(module) :], module))
        if module not in done:
            for other in sorted(graph.get(module, ())):
                if other not in ("", module):  # the package itself imports lazily
                    visit(other, (*above, module))
            done.add(module)

    for module in graph:
        visit(module, ())


@pytest.mark.parametrize("path", MODULES, ids=lambda path: own_name(path) or "linksweep")
def test_no_file_above_400_lines(path: Path):
    lines = len(path.read_text(encoding="utf-8").splitlines())
    assert lines <= 400, f"{path.name} has {lines} lines and wants splitting"


def test_the_graph_reader_reads():
    # A reader that found nothing would make every test above pass.
    assert imports_of(PACKAGE / "motion" / "quintic.py") == {"motion.base"}
    assert "studies.round_trip" in imports_of(PACKAGE / "cli" / "demo.py") - imports_of(
        PACKAGE / "cli" / "demo.py", True
    )
    assert "robot" not in imports_of(PACKAGE / "studies" / "round_trip.py")
    assert resolve("linksweep", "motion") == "motion" and resolve("linksweep", "__version__") == ""
