"""What users see says what it takes and gives: no Any in a public signature, not behind a name of its own either.

Read from the source: the public functions and classes of `linksweep`, the classes that their annotations name, and so
on; in each the annotations of public methods and fields, aliases followed to what they stand for.
"""

from __future__ import annotations

import ast
import functools
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import NamedTuple

import pytest

import linksweep

ROOT = Path(linksweep.__file__).parent
# Aliases of Any that public signatures may name: things of packages that type checkers cannot see, one for each.
FOREIGN = {
    "linksweep.robot.conventions.Foreign": "models of Pinocchio and MuJoCo",
    "linksweep.backends.symbolic.Expression": "SymPy's",
    "linksweep.functions.casadi_export.CasadiFunction": "CasADi's",
    "linksweep.simulation.ensembles.Client": "Dask's",
    "linksweep.viewer.server.Handle": "viser's",
}
# What else is Any, and why: each should go one day.
LEFT = {
    "linksweep.functions.arrays.Results": "an array, or a tuple of as many as were asked for: the caller knows",
    "linksweep.backends.registry.AnyKernel": "of whichever backend",
    "linksweep.model.constraints.Given": "what constraints are made from, and after that what it stands for",
    "linksweep.papers.spatial_operators.chain.Operand": "what the operators of scipy's LinearOperator take and give",
    "linksweep.spatial.scalars.Scalar": "its operators, whose other side is any scalar of the same run",
    "linksweep.papers.exact.field.Exact": "a number of any exact kind",
    "linksweep.functions.declaration.Record": "the result of an algorithm: a dataclass with its quantities",
    "linksweep.mechanism.sweeps.Pairs": "records of steps, whose type each algorithm chooses",
    "linksweep.mechanism.sweeps.PerLink": "records of steps, whose type each algorithm chooses",
    "linksweep.mechanism.sweeps.Records": "records of steps, whose type each algorithm chooses",
    "linksweep.mechanism.sweeps.Summand": "records of steps, whose type each algorithm chooses",
    "linksweep.mechanism.sweeps.Sweep": "records of steps, whose type each algorithm chooses",
    "linksweep.mechanism.sweeps.Unrolled": "records of steps, whose type each algorithm chooses",
    "linksweep.tracing.rules.Rule": "a function of a graph and one to three operands",
    "linksweep.tracing.expression.Data": "which element of what, by the kind of leaf",
    "linksweep.tracing.expression.Value": "an operand that was just made: a node, unless it folded",
}


class Place(NamedTuple):
    module: str
    name: str

    def __str__(self) -> str:
        return f"{self.module}.{self.name}"


@functools.cache
def source(module: str) -> ast.Module | None:
    path = ROOT.parent.joinpath(*module.split("."))
    for file in (path.with_suffix(".py"), path / "__init__.py"):
        if file.exists():
            return ast.parse(file.read_text(encoding="utf-8"))
    return None


@functools.cache
def definitions(module: str) -> dict[str, ast.AST | Place]:
    """What each name of a module is: a definition, or a place elsewhere; within `if` (TYPE_CHECKING) too."""
    found: dict[str, ast.AST | Place] = {}
    tree = source(module)
    is_package = (ROOT.parent.joinpath(*module.split(".")) / "__init__.py").exists()

    def enter(statements: list[ast.stmt]) -> None:
        for node in statements:
            if isinstance(node, ast.FunctionDef | ast.ClassDef):
                found.setdefault(node.name, node)  # of overloads the first
            elif isinstance(node, ast.Assign):
                found.update({target.id: node.value for target in node.targets if isinstance(target, ast.Name)})
            elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name) and node.value is not None:
                found[node.target.id] = node.value
            elif isinstance(node, ast.ImportFrom):
                parts = module.split(".")
                above = parts[: len(parts) - node.level + is_package] if node.level else []
                origin = ".".join([*above, *([node.module] if node.module else [])])
                found.update({alias.asname or alias.name: Place(origin, alias.name) for alias in node.names})
            elif isinstance(node, ast.If):
                enter(node.body)
                enter(node.orelse)

    enter([] if tree is None else tree.body)
    return found


def resolved(place: Place) -> tuple[Place, ast.AST | None]:
    """The definition behind imports, None where it is not ours, and where it stands."""
    seen = {place}
    while place.module.split(".")[0] == "linksweep":
        known = definitions(place.module).get(place.name)
        if not isinstance(known, Place):
            return place, known
        assert known not in seen, f"{known} is imported from itself"
        seen.add(known)
        place = known
    return place, None


def annotated(node: ast.AST) -> Iterator[tuple[str, ast.expr]]:
    """Of a function those of its arguments and its result; of a class those of what is public in it."""
    if isinstance(node, ast.FunctionDef):
        given = (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs, node.args.vararg, node.args.kwarg)
        yield from ((arg.arg, arg.annotation) for arg in given if arg is not None and arg.annotation is not None)
        if node.returns is not None:
            yield "its result", node.returns
    elif isinstance(node, ast.ClassDef):
        yield from (("its base", base) for base in node.bases)
        for member in node.body:
            if isinstance(member, ast.FunctionDef):
                if not member.name.startswith("_") or member.name.endswith("__"):
                    yield from ((f"{member.name}: {name}", found) for name, found in annotated(member))
            elif isinstance(member, ast.AnnAssign) and isinstance(member.target, ast.Name):
                yield from () if member.target.id.startswith("_") else ((member.target.id, member.annotation),)


def names(expression: ast.AST) -> Iterator[str]:
    """The names of an annotation, inside texts too."""
    for node in ast.walk(expression):
        if isinstance(node, ast.Name):
            yield node.id
        elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            yield f"{node.value.id}.{node.attr}"
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and not node.value.startswith("_"):
            try:
                yield from names(ast.parse(node.value, mode="eval"))
            except SyntaxError:
                continue  # an entry of Literal


def public_places() -> Iterator[Place]:
    for name in linksweep.__all__:
        value = getattr(linksweep, name)
        if isinstance(value, type(linksweep)):
            home = import_module(value.__name__)
            yield from (Place(value.__name__, each) for each in getattr(home, "__all__", ()))
        else:
            yield Place("linksweep", name)


@functools.cache
def walked() -> tuple[dict[Place, ast.AST], dict[Place, str]]:
    """What public signatures name, itself and through what they name; and where Any was met, first."""
    seen: dict[Place, ast.AST] = {}
    met: dict[Place, str] = {}
    waiting = [(place, str(place)) for place in public_places()]
    while waiting:
        place, reached = waiting.pop(0)
        place, node = resolved(place)
        if node is None or place in seen:
            continue
        seen[place] = node
        found = list(annotated(node))
        if isinstance(node, ast.expr):  # an alias, or another value
            found = [("", node)]
        for what, expression in found:
            for name in names(expression):
                head, _, attribute = name.partition(".")
                other = definitions(place.module).get(head)
                if other is None:
                    continue
                inside = Place(place.module, head)
                if attribute and isinstance(other, Place):  # a name of an imported module
                    inside = Place(f"{other.module}.{other.name}", attribute)
                end, _ = resolved(inside)
                if end == Place("typing", "Any"):
                    met.setdefault(place, f"{reached} {what}".strip())
                else:
                    waiting.append((inside, f"{place} {what}".strip()))
    return seen, met


@pytest.mark.slow
def test_public_signatures_hold_no_any():
    _, met = walked()
    known = FOREIGN | LEFT
    wrong = [f"{place} says Any, reached from {reached}" for place, reached in met.items() if str(place) not in known]
    assert not wrong, "\n".join(wrong)


@pytest.mark.slow
def test_exceptions_are_needed():
    _, met = walked()
    assert (FOREIGN | LEFT).keys() == {str(place) for place in met}


@pytest.mark.slow
def test_the_walk_walks():
    # One that reached nothing would make every test above pass.
    seen, _ = walked()
    reached = {str(place) for place in seen}
    assert {
        "linksweep.robot.robot.Robot",
        "linksweep.simulation.result.Simulation",
        "linksweep.robot.grasps.Grasp",
        "linksweep.functions.compiled.CompiledFunction",
        "linksweep.robot.factor.Factor",
        "linksweep.simulation.result.Settings",
        "linksweep.model.formats.dh.DHTable",
    } <= reached
    assert len(reached) > 100
