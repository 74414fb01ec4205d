"""Data flows one way: description → Model → algorithm → Program → backend → Robot. Imports too."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

pytestmark = pytest.mark.quick

PACKAGE = Path(__file__).parents[2] / "src" / "linksweep"
MODULES = sorted(PACKAGE.rglob("*.py"))

# In the order in which data flows: a room imports from itself and from rooms before it.
ROOMS = (
    "errors",
    "support",
    "spatial",
    "joints",
    "model",
    "mechanism",
    "algorithms",
    "tracing",
    "backends",
    "functions",
    "explain",
    "robot",
    "loaders",
    "robots",
    "motion",
    "files",
    "simulation",
    "plots",
    "identification",
    "jax",
    "torch",
    "papers",
    "viewer",
    "cli",
    "__main__",
)
# A room that sees less than what stands before it, and why.
SEES_ONLY = {
    "algorithms": {"spatial", "model.model", "mechanism"},  # they never know their scalar
    # they see only Programs
    "backends": {"errors", "support", "tracing.expression", "tracing.program", "tracing.count", "tracing.passes"},
}
# (importer, imported): convenience methods of Robot and of a run, which import when they are called. Their return types
# are inferred, so that no type is imported upwards.
LAZILY = {
    ("robot.loading", "loaders"),  # names of robot_descriptions
    ("robot.robot", "motion"),
    ("robot.robot", "viewer"),
    ("simulation.result", "viewer"),  # run.show()
    ("simulation.result", "plots"),  # run.plot()
}


def own_name(path: Path) -> str:
    """`tracing.program` for src/linksweep/tracing/program.py, `` for the package itself."""
    parts = path.relative_to(PACKAGE).with_suffix("").parts
    return ".".join(part for part in parts if part != "__init__")


def imports_of(path: Path, when_imported: bool = False) -> set[str]:
    """Modules of linksweep (dotted, below linksweep) that a file imports anywhere in it, for its types too.

    `when_imported`: only those that its own import brings, not what its functions import when called, nor types.
    """
    found: set[str] = set()

    def visit(node: ast.AST) -> None:
        if isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING":
            for child in node.orelse if when_imported else [*node.body, *node.orelse]:
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
    """`from linksweep import robots` imports a module, `from linksweep.errors import X` a name of one."""
    inside = PACKAGE.joinpath(*below(f"{module}.{name}").split("."))
    is_module = inside.with_suffix(".py").exists() or (inside / "__init__.py").exists()
    return below(f"{module}.{name}" if is_module else module)


def starts_with(module: str, prefix: str) -> bool:
    return module == prefix or module.startswith(prefix + ".")


def room_of(module: str) -> str:
    return module.partition(".")[0]


@pytest.mark.cases(len(MODULES))
@pytest.mark.parametrize("path", MODULES, ids=lambda path: own_name(path) or "linksweep")
def test_layers(path: Path):
    module, imported = own_name(path), imports_of(path)
    if not module:
        return  # the package itself imports lazily, by name
    room = room_of(module)
    assert room in ROOMS, f"{module} stands in no room of ROOMS: find it one"
    seen = ROOMS[: ROOMS.index(room) + 1]
    upward = {other for other in imported if room_of(other) not in seen and (module, other) not in LAZILY}
    assert not upward, f"{module} imports {sorted(upward)}, which come after {room}"
    if room in SEES_ONLY:
        allowed = {room, *SEES_ONLY[room]}
        seen_too = {other for other in imported if not any(starts_with(other, name) for name in allowed)}
        assert not seen_too, f"{module} may see {sorted(allowed)}, but imports {sorted(seen_too)}"


def test_exceptions_are_needed_and_lazy():
    for module, other in LAZILY:
        path = PACKAGE.joinpath(*module.split(".")).with_suffix(".py")
        assert other in imports_of(path), f"{module} imports {other or 'the package'} no more: drop the exception"
        assert other not in imports_of(path, when_imported=True)


def test_types_are_not_imported_upwards():
    for path in MODULES:
        module, order = own_name(path), ROOMS.index
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if not (isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"):
                continue
            for each in ast.walk(node):
                above = absolute(path, each) if isinstance(each, ast.ImportFrom) else ""
                if module and is_own(above) and room_of(below(above)):
                    assert order(room_of(below(above))) <= order(room_of(module)), f"{module} imports {above}"


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


def test_the_graph_reader_reads():
    # A reader that found nothing would make every test above pass.
    assert imports_of(PACKAGE / "motion" / "closed_form.py") == {"motion.trajectories"}
    assert "papers.studies.puma560" in imports_of(PACKAGE / "cli" / "reproduce.py") - imports_of(
        PACKAGE / "cli" / "reproduce.py", True
    )
    assert "robot" not in imports_of(PACKAGE / "papers" / "studies" / "report.py")
    assert resolve("linksweep", "motion") == "motion" and resolve("linksweep", "__version__") == ""
