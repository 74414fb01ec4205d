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
    "foreign": {"errors"},
    "model": {"errors"},
    "scalars": set(),
    "spatial": {"scalars"},
    "transforms": {"scalars", "spatial"},
    "canonical": {"joints", "model"},
    "tree_matrix": {"scalars"},
    "square_root": {"scalars"},
    "bias": {"joints", "spatial", "sweeps"},
    "joints": {"scalars", "spatial", "transforms"},
    "sweeps": {"canonical", "errors", "joints", "model", "scalars", "spatial", "transforms", "tree_matrix"},
    "algorithms": {
        "algorithms",
        "bias",
        "joints",
        "model",
        "scalars",
        "spatial",
        "square_root",
        "sweeps",
        "transforms",
        "tree_matrix",
    },
    "tracing": {"errors", "notebook", "scalars", "tracing"},
    "tracing.unrolled": {"canonical", "joints", "model", "spatial", "sweeps", "tracing"},
    "tracing.rolled": {"canonical", "errors", "joints", "model", "scalars", "spatial", "sweeps", "tracing"},
    "backends": {"backends", "errors", "foreign", "interrupts", "lazy", "tracing.expression", "tracing.program"},
    "spatial_operators": {
        "algorithms",
        "bias",
        "canonical",
        "errors",
        "foreign",
        "joints",
        "lazy",
        "spatial",
        "spatial_operators",
        "sweeps",
        "transforms",
    },
    "regrouping": {"canonical", "model", "scalars", "spatial", "transforms"},
    "parameters": {"canonical", "errors", "model", "names", "quantities", "scalars", "spatial", "tips", "transforms"},
    "explicit_traces": {"algorithms", "body_traces", "spatial"},
    "base_parameters": {"compiled", "errors", "model", "names", "parameters", "regrouping", "spatial"},
    "parameter_methods": {"base_parameters", "compiled", "joints", "lazy", "model", "parameters", "tracing"},
    "description_methods": {
        "assembly",
        "errors",
        "foreign",
        "joints",
        "model",
        "names",
        "notebook",
        "parameters",
        "tips",
    },
    "functions": {
        "algorithms",
        "bias",
        "body_traces",
        "canonical",
        "defaults",
        "errors",
        "explicit_traces",
        "factor_traces",
        "joints",
        "model",
        "parameters",
        "regrouping",
        "spatial",
        "tracing",
        "tree_matrix",
    },
    "details": {"algorithms", "canonical", "functions", "joints", "spatial", "sweeps", "tracing"},
    "compiled": {
        "backends",
        "c_export",
        "canonical",
        "details",
        "errors",
        "functions",
        "lazy",
        "parameters",
        "tracing",
    },
    "requests": {"defaults", "errors", "functions", "names", "parameters"},
    "coordinates": {"canonical", "errors", "foreign", "joints", "model"},
    "factor": {"errors", "foreign", "functions", "joints", "lazy", "requests"},
    "lazy": {"interrupts"},
    "names": set(),
    "notebook": set(),
    "external_forces": {"errors", "foreign", "model", "names"},
    "quantities": {"errors", "foreign", "model", "names"},
    "assembly": {"errors", "model", "names", "quantities"},
    "formats": {"assembly", "errors", "formats", "model", "names", "quantities"},
    "body_traces": {"algorithms", "errors", "model", "spatial", "transforms"},
    "body_methods": set(),
    "kinematics_methods": {"motion"},
    "conventions": {"errors", "external_forces", "foreign", "formats.mujoco_names", "joints", "model"},
    "editing": {"assembly", "canonical", "errors", "foreign", "joints", "model", "names"},
    "edit_methods": {"description_methods", "editing", "formats", "model", "snapping"},
    "timing": set(),
    "snapping": {"errors", "model", "names"},
    "coupling": {"errors", "foreign", "joints", "model", "names"},
    "motion": {"coordinates", "errors", "foreign", "joints", "lazy", "model", "motion", "names"},
    "simulation": {
        "",
        "backends",
        "canonical",
        "compiled",
        "defaults",
        "errors",
        "files",
        "foreign",
        "formats.stored",
        "functions",
        "joints",
        "lazy",
        "model",
        "names",
        "notebook",
        "requests",
        "scalars",
        "simulation",
        "spatial",
        "sweeps",
        "tables",
        "tracing",
    },
    "tips": {"model"},
    "lint": {"model"},
    "checking": {"compiled", "defaults", "errors", "functions", "joints", "lint", "names", "notebook"},
    "symbolic": {"errors", "foreign", "names", "symbolic_fractions", "tracing.expression", "tracing.program"},
    "symbolic_fractions": {"errors", "tracing.expression", "tracing.program"},
    "analysis_methods": {"canonical", "compiled", "errors", "joints", "names", "parameters", "symbolic", "tracing"},
    "published_counts": set(),
    "counting": {"errors", "functions", "published_counts", "robots", "tracing"},
    "planar_counts": {
        "algorithms",
        "bias",
        "canonical",
        "counting",
        "published_counts",
        "robots",
        "spatial",
        "tracing",
    },
    "count_tables": {"counting", "planar_counts", "published_counts", "tracing"},
    "files": {"errors", "interrupts"},
    "tables": {"errors", "files", "interrupts", "joints", "model", "motion", "names", "tables"},
    "c_export": {"", "backends", "errors", "files", "interrupts", "joints", "names", "tracing"},
    "plots": {"errors", "files", "foreign", "joints", "model", "names", "plots", "tips"},
    "interrupts": set(),
    "defaults": {"canonical", "joints", "model"},
    "factor_traces": {"algorithms", "bias", "body_traces", "spatial"},
    "singular": {"algorithms", "canonical", "compiled", "errors", "functions", "joints", "lazy", "model", "sweeps"},
    "exact": {
        "algorithms",
        "backends.interpreter",
        "canonical",
        "errors",
        "exact",
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
    },
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
