"""Tables of the documentation that come from the source and from traced programs, generated when the site is built.

A page asks for a table by a comment on a line of its own:

    <!-- equations: FILE ... -->             lines of algorithm files that carry an equation number
    <!-- costs: FUNCTION METHOD, ... -->     operations of the traced programs, and their rank among all methods
    <!-- role: FUNCTION METHOD -->           for which functions, and when, a method is the default
    <!-- rules: all -->                      the default methods
    <!-- explicit: all -->                   the cost of Kang's I* and P*
    <!-- table: NAME -->                     a table of `linksweep count --tables`
    <!-- quantities: FUNCTION METHOD -->     the quantities that `details=True` returns
    <!-- first_call: all -->                 the modules that a first call enters
"""

from __future__ import annotations

import ast
import functools
import importlib.metadata
import inspect
import io
import re
import subprocess
import sys
import tempfile
import tokenize
import warnings
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

from formulas import formula_of
from made import Made

ROOT = Path(__file__).parent.parent.parent
PACKAGE = ROOT / "src" / "linksweep"
MARKER = re.compile(r"^<!-- (\w+): (.*?) -->$", re.MULTILINE)
LEGEND = (
    "Each row is a line of the source in `src/linksweep/algorithms/`. Subscript *inner* marks the value of the link "
    "nearer to the base. *outer* is the sum over the outer links, carried to this link's joint. R is the armature."
)
EQUATION = re.compile(r"\(\d+(?:\.\d+)?[a-z']?\)|step: .*|stage \d")


def made(folder: Path) -> Made:
    """Every table that some page asks for, by the text of its marker."""
    text = "\n".join(page.read_text(encoding="utf-8") for page in sorted((ROOT / "docs").rglob("*.md")))
    markers = {match[0]: match for match in MARKER.finditer(text) if match[1] in GENERATORS}
    return Made({marker: GENERATORS[match[1]](match[2]) for marker, match in markers.items()}, {})


def with_tables(markdown: str, tables: dict[str, str]) -> str:
    return MARKER.sub(lambda match: f"\n{tables[match[0]]}\n" if match[1] in GENERATORS else match[0], markdown)


# ---- equations of algorithm files --------------------------------------------------------------------------


def cited_lines(path: Path) -> list[tuple[str, int, str]]:
    """(equations, line number, code) of every line whose comment cites an equation.

    Several statements may share a line; a statement of several lines is shown by the one that carries the number.
    """
    text = path.read_text(encoding="utf-8")
    lines = text.splitlines()
    cited = []
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT and EQUATION.search(token.string):
            number, column = token.start
            cited.append((token.string.lstrip("# "), number, lines[number - 1][:column].strip()))
    return cited


def equation_table(files: str) -> str:
    rows = ["| equation | formula | line | source |", "|---|---|--:|---|"]
    for file in files.split():
        name = "" if len(files.split()) == 1 else f"{file} "
        for equation, line, code in cited_lines(next((PACKAGE / "algorithms").rglob(file))):
            source = code.replace("|", r"\|")
            rows.append(f"| {escaped(equation)} | {formula_of(code)} | {name}{line} | `{source}` |")
    return f'{LEGEND}\n\n<div class="equations" markdown>\n\n' + "\n".join(rows) + "\n\n</div>\n"


def escaped(text: str) -> str:
    """Plain text whose special characters Markdown would interpret."""
    return re.sub(r"([*_<|\[\]^])", r"\\\1", text)


# ---- operation counts and defaults -------------------------------------------------------------------------


@functools.cache
def counted_robots() -> dict[str, Any]:
    import linksweep as ls

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ls.ModelWarning)
        files = importlib.metadata.files("example-robot-data") or []
        ur5 = next(file for file in files if str(file).endswith("/ur5_robot.urdf"))
        return {
            "PUMA 560": ls.robots.puma560(),
            "UR5": ls.load(Path(str(ur5.locate()))),
            "general chain, 6 R": ls.robots.chain(6),
        }


@functools.cache
def operations(robot: str, function: str, method: str, base_parameters: bool = False) -> Any:
    """Counts of the traced program, before multiply-adds are fused."""
    from linksweep.functions.computation import RobotFunction, Together
    from linksweep.functions.functions import FUNCTIONS
    from linksweep.tracing.count import count

    arm = counted_robots()[robot]
    if FUNCTIONS[function].public:
        return arm.operation_count(function, method, base_parameters=base_parameters, rolled=False)
    return count(Together((RobotFunction(arm.canonical, function, method),), rolled=False).trace())


@functools.cache
def rank(robot: str, function: str, method: str) -> str:
    """The rank of a method among all of its function, each as it is compiled: with base parameters where they apply."""
    from linksweep.functions.functions import FUNCTIONS

    methods = FUNCTIONS[function].methods
    totals = {name: operations(robot, function, name, methods[name].linear).total for name in methods}
    return f"{1 + sum(total < totals[method] for total in totals.values())} of {len(totals)}"


def cost_table(requests: str) -> str:
    from linksweep.functions.functions import FUNCTIONS

    robots = list(counted_robots())
    rows = [f"| | {' | '.join(robots)} |", "|---|" + "--:|" * len(robots)]
    for request in requests.split(","):
        function, method = request.split()
        linear = FUNCTIONS[function].methods[method].linear
        for base in (False, True) if linear else (False,):
            cells = []
            for robot in robots:
                counts = operations(robot, function, method, base)
                ranked = FUNCTIONS[function].public and base == linear
                place = f"; {rank(robot, function, method)}" if ranked else ""
                cells.append(f"{counts.mul} mul, {counts.add} add, {counts.div} div{place}")
            name = f"`{method if FUNCTIONS[function].public else function}`{', base parameters' if base else ''}"
            rows.append(f"| {name} | {' | '.join(cells)} |")
    return "\n".join(rows) + "\n"


def role(request: str) -> str:
    """For which functions a method is the default, and when."""
    from linksweep.functions.defaults import DETAILED, RULES
    from linksweep.functions.functions import FUNCTIONS

    function, method = request.split()
    if method not in [rule.method for rule in RULES[function]]:
        detailed = f" It is also the default of `{function}(..., details=True)`."
        return f'Select it with `method="{method}"`.{detailed if DETAILED.get(function) == method else ""}\n'
    same = [name for name, rules in RULES.items() if rules == RULES[function]]
    names = [f"`{name}`" for name in same if FUNCTIONS[name].methods == FUNCTIONS[function].methods]
    rules = RULES[function]
    when = [rule.words for rule in rules if rule.method == method]
    before = rules[: [rule.method for rule in rules].index(method)]
    if when == ["always"]:
        clause = ""
    elif when == ["otherwise"]:
        clause = ", except " + " and ".join(f"{rule.words} (`{rule.method}`)" for rule in before)
    else:
        clause = " " + " and ".join(when)
    return f"It is the default of {', '.join(names[:-1])}{' and ' * (len(names) > 1)}{names[-1]}{clause}.\n"


def rules_table(_: str) -> str:
    from linksweep.functions.defaults import RULES

    rows = ["| function | method | when |", "|---|---|---|"]
    for function, rules in RULES.items():
        rows += [f"| {'' if k else f'`{function}`'} | `{rule.method}` | {rule.words} |" for k, rule in enumerate(rules)]
    return "\n".join(rows) + "\n"


def explicit_table(_: str) -> str:
    """I* and P* together, by both methods, and inverse dynamics by influence coefficients beside Newton-Euler's."""
    from linksweep.papers.operation_counts import general_arm

    arms = {"general arm, 6 R": general_arm(6), **{name: counted_robots()[name] for name in ("PUMA 560", "UR5")}}
    rows = [f"| | {' | '.join(arms)} |", "|---|" + "--:|" * len(arms)]
    for name, function, method in (
        ("I\\* and P\\* by `augmented_bodies`", ["effective_inertia", "inertia_power"], "augmented_bodies"),
        ("I\\* and P\\* by `direct`", ["effective_inertia", "inertia_power"], "direct"),
        ("inverse dynamics by `influence`", "inverse_dynamics", "influence"),
        ("inverse dynamics by `newton_euler`", "inverse_dynamics", "newton_euler"),
    ):
        counts = [arm.operation_count(function, method, False) for arm in arms.values()]
        rows.append(f"| {name} | {' | '.join(f'{c.mul} mul, {c.add} add' for c in counts)} |")
    return "\n".join(rows) + "\n"


def count_table(name: str) -> str:
    from linksweep.papers.operation_counts import TABLES

    return TABLES[name]().markdown()


# ---- quantities of details=True ----------------------------------------------------------------------------

TIP = "acceleration of the last frame of a serial chain, in the directions of the last link"


@functools.cache
def detailed_robots() -> tuple[Any, Any]:
    """A chain, and a tree with 4 links and 13 DOF, in which no two axes of a quantity have the same length."""
    import numpy as np

    import linksweep as ls
    from linksweep.model.assembly import Part, assemble
    from linksweep.model.model import Inertial, Joint, Placement

    chain = ls.robots.chain(5, seed=105, joints="mixed")
    body = Inertial(1.0, (0.1, 0.0, 0.0), tuple(map(tuple, np.eye(3).tolist())))
    kinds = {"body": ("free", "base"), "arm": ("spherical", "body"), "hand": ("prismatic", "arm"),
             "fin": ("planar", "body")}  # fmt: skip
    parts = [
        Part(link, parent, Joint(f"to {link}", kind, placement=Placement(position=(0.0, 0.1, 0.2))), body)
        for link, (kind, parent) in kinds.items()
    ]
    return chain, ls.Robot(assemble("free", parts, base="base"))


def record(robot: Any, function: str, method: str) -> tuple[Any, list[Any]]:
    from linksweep.functions.computation import RobotFunction
    from linksweep.functions.details import quantities
    from linksweep.functions.functions import record_of
    from linksweep.mechanism.canonical import canonical
    from linksweep.tracing.tracer import UnrolledTrace

    computation = RobotFunction(canonical(robot.model, described_frames=True), function, method)
    tracer = UnrolledTrace(computation.model, computation.inputs)
    traced = record_of(tracer, computation)
    return traced, quantities(tracer, traced, computation.outputs[0].name)


def cited_names(module: ModuleType, step: ast.FunctionDef | None = None) -> dict[str, str]:
    """The equations of each name that is assigned on a line with an equation; the first such line counts."""
    from linksweep.explain.steps import statements

    names: dict[str, str] = {}
    for line, statement in sorted(statements(str(module.__file__)).items()):
        if step is None or step.lineno <= line <= (step.end_lineno or 0):
            numbers = EQUATION.findall(statement.comment)
            for name in statement.targets if numbers else ():
                names.setdefault(name, ", ".join(numbers))
    return names


def equations_of(module: ModuleType) -> dict[str, str]:
    """From the lines of its steps, and from the rest of the module where steps do not cite an equation."""
    from linksweep.explain.steps import borrowed_from

    names: dict[str, str] = {}
    for part in (module, *borrowed_from(module)):
        tree = ast.walk(ast.parse(inspect.getsource(part)))
        steps = [node for node in tree if isinstance(node, ast.FunctionDef) and node.name.endswith("_step")]
        for step in (*steps, None):
            names = cited_names(part, step) | names
    return names


def shape_text(quantity: Any, chain: Any, general: Any | None) -> str:
    names = {4: "links", 13: "nv"}
    shape = quantity.shape if general is None else general.shape
    if general is None:  # as many links as degrees of freedom
        names = {chain.nv: "nv" if quantity.frame == "joints" else "links"}
    text = ", ".join(names.get(size, str(size)) for size in shape)
    return "nv or nv, nv" if general is not None and len(general.shape) != len(quantity.shape) else text


def quantity_table(request: str) -> str:
    from linksweep.explain.steps import meanings

    function, method = request.split()
    chain, general = detailed_robots()
    traced, listed = record(chain, function, method)
    several: dict[str, Any] = {}
    if method in general.methods(function):
        several = {q.name: q for q in record(general, function, method)[1]}
    module = sys.modules[type(traced).__module__]
    meaning, equations = meanings(module), equations_of(module)
    rows = ["| name | shape | of | what | equation |", "|---|---|---|---|---|"]
    for quantity in listed:
        what, equation = meaning.get(quantity.name, ""), equations.get(quantity.name, "")
        if quantity.name == "alpha_tip":
            what, equation = TIP, "(4.23), (5.7)"
        if not equation and EQUATION.search(what):
            equation = ", ".join(EQUATION.findall(what))
        shape = shape_text(quantity, chain, several.get(quantity.name))
        cells = (f"`{quantity.name}`", shape, quantity.frame, escaped(what), escaped(equation))
        rows.append(f"| {' | '.join(cells)} |")
    return "\n".join(rows) + "\n"


# ---- the modules that a first call enters ------------------------------------------------------------------

CALL = """
import sys
import numpy as np
import linksweep as ls

robot, zero, root, visited = ls.robots.puma560(), np.zeros(6), ls.__path__[0], {}

def visit(frame, event, _):
    if event == "call" and frame.f_code.co_filename.startswith(root):
        visited.setdefault(frame.f_code.co_filename[len(root) + 1 : -3])

sys.setprofile(visit)
robot.inverse_dynamics(zero, zero, zero)
sys.setprofile(None)
print(*visited, sep="\\n")
"""


def first_call_table(_: str) -> str:
    """The modules that a first call enters, in order, with an empty cache; `support` serves all and is left out."""
    with tempfile.TemporaryDirectory() as cache:
        environment = {"PYTHONPATH": str(PACKAGE.parent), "LINKSWEEP_CACHE": cache, "PATH": "/usr/bin:/bin"}
        run = subprocess.run([sys.executable, "-c", CALL], capture_output=True, text=True, env=environment, check=True)
    stays: list[list[str]] = []
    for module in (name for name in run.stdout.split() if not name.startswith("support/")):
        if not stays or stays[-1][-1].split("/")[0] != module.split("/")[0]:
            stays.append([])
        stays[-1].append(module)
    lines = ["| package | modules, in the order of their first call |", "|---|---|"]
    for stay in stays:
        listed = "; ".join(f"`{module.split('/', 1)[1]}`: {first_sentence(module)}" for module in stay)
        lines.append(f"| `{stay[0].split('/')[0]}/` | {listed} |")
    return "\n".join(lines) + "\n"


def first_sentence(module: str) -> str:
    """The first sentence of a module's docstring."""
    text = ast.get_docstring(ast.parse((PACKAGE / f"{module}.py").read_text(encoding="utf-8"))) or ""
    return text.split("\n\n")[0].replace("\n", " ").removesuffix(".").replace("|", "\\|")


GENERATORS: dict[str, Callable[[str], str]] = {
    "equations": equation_table,
    "costs": cost_table,
    "role": role,
    "rules": rules_table,
    "explicit": explicit_table,
    "table": count_table,
    "quantities": quantity_table,
    "first_call": first_call_table,
}
