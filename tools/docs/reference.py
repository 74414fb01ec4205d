"""The reference: every public name with its signature, its docstring, and an example that is run here.

Examples are cells of examples/*.py, `# %% Robot.pose` and then the code; the cell `# %% setup` of a file comes before
each of its examples. What an example shows is what came out when the site was built.
"""

from __future__ import annotations

import contextlib
import dataclasses
import enum
import functools
import importlib
import importlib.util
import inspect
import re
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import cells
import docstrings
from made import Made

EXAMPLES = Path(__file__).parent / "examples"
ONE_BY_ONE = ("Robot", "Grasp", "CompiledFunction")  # classes whose members each have an example
RESULTS = {  # what calls return, which has no name in `linksweep` of its own
    "CompiledFunction": "linksweep.functions.compiled",
    "BaseParameters": "linksweep.robot.base_parameters",
    "Counts": "linksweep.tracing.count",
    "Details": "linksweep.functions.details",
    "Explanation": "linksweep.explain.explanation",
    "Factor": "linksweep.robot.factor",
    "Symbolic": "linksweep.backends.symbolic",
}
NEEDS = {r"\bmujoco\b": "mujoco", r"\bpinocchio\b": "pinocchio", r"\bviewer\b": "viser", r"\bplots\b": "matplotlib"}
NEEDS |= {r"\bsymbolic\b": "sympy", r"\bcasadi\b": "casadi", r"\bensemble\b": "pyarrow", r"\bpyopencl\b": "pyopencl"}


@dataclass(frozen=True)
class Name:
    """A public name: as it is written after `linksweep.`, or `Class.member`; and what it is."""

    full: str
    value: Any

    @property
    def anchor(self) -> str:
        return re.sub(r"[^\w\- ]", "", self.full.lower()).strip("_")  # __x__ would be strong text


@dataclass(frozen=True)
class Page:
    title: str
    uri: str
    about: str
    parts: tuple[tuple[str, tuple[Name, ...]], ...]


# ---- what is public -----------------------------------------------------------------------------------------


@functools.cache
def pages() -> tuple[Page, ...]:
    """Every public name, once."""
    import linksweep as ls

    modules = [name for name in ls.__all__ if inspect.ismodule(getattr(ls, name))]
    package = [Name(n, getattr(ls, n)) for n in ls.__all__ if n not in modules and n not in ONE_BY_ONE]
    elsewhere = {id(name.value) for name in package}
    errors = [n for n in package if inspect.isclass(n.value) and issubclass(n.value, Exception)]
    found = [
        Page("linksweep", "reference/linksweep.md", "What `import linksweep as ls` brings.", (
            ("Functions and records", tuple(n for n in package if n not in errors)),
            ("Errors and warnings", tuple(errors)),
            ("Modules", tuple(Name(m, getattr(ls, m)) for m in modules)),
        )),
        _robot_page("Robot", ls.Robot, "Arrays have any leading batch shape, written (...)."),
        _class_page("Grasp", ls.Grasp),
        _class_page("CompiledFunction", _result("CompiledFunction")),
        Page("Results", "reference/results.md", "Records that calls return.", (
            ("Records", tuple(Name(n, _result(n)) for n in RESULTS if n not in ONE_BY_ONE)),
        )),
    ]  # fmt: skip
    for m in modules:
        module = getattr(ls, m)
        own = [n for n in module.__all__ if id(getattr(module, n)) not in elsewhere]
        names = tuple(Name(f"{m}.{n}", getattr(module, n)) for n in own)
        found.append(Page(f"linksweep.{m}", f"reference/{m}.md", first_line(module), (("Names", names),)))
    return tuple(found)


def _result(name: str) -> Any:
    return getattr(importlib.import_module(RESULTS[name]), name)


def _robot_page(title: str, cls: type, about: str) -> Page:
    """Members under the headings that the class has in its source, `# ---- What it is`, in their order."""
    parts: dict[str, list[Name]] = {title: [Name(title, cls)]}
    public, seen = set(members(cls)), set[str]()
    for heading, name in re.findall(r"^    (?:# ---- (.+)|def (\w+))", inspect.getsource(cls), re.M):
        if heading:
            parts[heading] = []
        elif name in public and name not in seen:
            seen.add(name)
            parts[next(reversed(parts))].append(Name(f"{title}.{name}", inspect.getattr_static(cls, name)))
    first = [Name(f"{title}.{name}", inspect.getattr_static(cls, name)) for name in sorted(public - seen)]
    parts[title] += first
    return Page(title, f"reference/{title.lower()}.md", about, tuple((k, tuple(v)) for k, v in parts.items() if v))


def _class_page(title: str, cls: type) -> Page:
    own = tuple(Name(f"{title}.{name}", inspect.getattr_static(cls, name)) for name in members(cls))
    return Page(title, f"reference/{title.lower()}.md", "", ((title, (Name(title, cls),)), ("Members", own)))


def members(cls: type) -> list[str]:
    """Public members of a class, those of records first and in their order."""
    fields = [f.name for f in dataclasses.fields(cls)] if dataclasses.is_dataclass(cls) else []
    fields += [f for f in getattr(cls, "_fields", ()) if f not in fields]
    hidden = set(dir(tuple)) | set(dir(Exception)) if issubclass(cls, (tuple, Exception)) else set()
    rest = sorted(n for n in dir(cls) if not n.startswith("_") and n not in fields and n not in hidden)
    return [f for f in fields if not f.startswith("_")] + rest


def names() -> Iterator[Name]:
    for page in pages():
        for _, part in page.parts:
            yield from part


# ---- examples -----------------------------------------------------------------------------------------------


@functools.cache
def examples() -> dict[str, tuple[str, str]]:
    """(set-up, code) of the example of each name."""
    found: dict[str, tuple[str, str]] = {}
    for file in sorted(EXAMPLES.glob("*.py")):
        setup = ""
        for title, code in re.findall(r"^# %% ([^\n]+)\n(.*?)(?=^# %% |\Z)", file.read_text("utf-8"), re.M | re.S):
            if title == "setup":
                setup = code.strip()
                continue
            for name in title.split(", "):
                assert name not in found, f"{file.name} has a second example of {name}"
                found[name] = (setup, code.strip())
    return found


def missing_package(code: str) -> str:
    """A package that the example runs on and that is not installed here; the tests' environment has all."""
    for pattern, package in NEEDS.items():
        if re.search(pattern, code) and importlib.util.find_spec(package) is None:
            return package
    return ""


@functools.cache
def _prepared(setup: str) -> dict[str, Any]:
    namespace: dict[str, Any] = {"__name__": "__main__"}
    exec(setup, namespace)
    return namespace


@functools.cache
def ran(setup: str, code: str) -> tuple[cells.Shown, ...]:
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):  # some write files
        return tuple(cells.run(code, dict(_prepared(setup)), "example"))


# ---- pages --------------------------------------------------------------------------------------------------


def made(folder: Path) -> Made:
    """The pages."""
    written = {page.uri: _page(page) for page in pages()}
    rows = ["| name | |", "|---|---|"]
    for page in pages():
        for _, part in page.parts:
            for n in part:
                rows.append(f"| [`{n.full}`]({Path(page.uri).name}#{n.anchor}) | {cell(first_line(n.value))} |")
    count = sum(1 for _ in names())
    about = (
        f"# Reference\n\nEvery public name, {count} in all, with its docstring and an example. Examples "
        "run when this site is built, with their output below.\n\nArrays have any leading batch shape, written (...). "
        "Units are SI, angles are in radians. "
        "See [Conventions](../conventions.md) for frames and signs.\n\n"
    )
    return Made({"reference/index.md": about + "\n".join(rows) + "\n", **written}, {})


def _page(page: Page) -> str:
    lines = [f"# {page.title}", page.about]
    setups: list[str] = []
    for title, part in page.parts:
        if title != page.title:
            lines.append(f"## {title}")
        for name in part:
            lines += _entry(name, setups)
    return "\n\n".join(line for line in lines if line) + "\n"


def _entry(name: Name, setups: list[str]) -> list[str]:
    lines = [f"### `{name.full}` {{ #{name.anchor} }}"]
    call = signature(name)
    if call:
        lines.append(f"```python\n{call}\n```")
    table = inspect.isclass(name.value) and name.full not in ONE_BY_ONE and not issubclass(name.value, Exception)
    own = members(name.value) if table else []
    prose, said = docstrings.parted(own_doc(name.value), {*docstrings.arguments(name.value), *own})
    common = docstrings.COMMON if name.full.startswith("Robot.") else docstrings.EVERYWHERE
    listed = docstrings.listed(name.value, {**common, **said}, without=own)  # the table has members
    lines += [escaped(prose), escaped(listed)]
    if table:
        lines.append(member_table(name.value, said))
    if name.full in examples():
        setup, code = examples()[name.full]
        if setup and setup not in setups:
            setups.append(setup)
            lines += ["Examples of this page begin with", f"```python\n{setup}\n```"]
        lines.append(f"```python\n{code}\n```")
        if not missing_package(setup + code):
            lines += [as_markdown(each) for each in ran(setup, code)]
    return lines


def as_markdown(shown: cells.Shown) -> str:
    if shown.kind == "latex":
        return f"$$\n{shown.content}\n$$"
    if shown.kind == "png":
        import base64

        return f"![Output of the example](data:image/png;base64,{base64.b64encode(shown.content).decode()})"
    import html

    if shown.kind == "html":
        flat = re.sub(r"\n\s*", " ", shown.content)
        return f'<div class="output">{flat}</div>'
    return f'<div class="output"><pre>{html.escape(shown.content).replace(chr(10), "&#10;")}</pre></div>'


def signature(name: Name) -> str:
    value = name.value
    if isinstance(value, (classmethod, staticmethod)):
        value = value.__func__
    if not callable(value) or (inspect.isclass(value) and issubclass(value, (Exception, enum.Enum))):
        return ""
    try:
        text = str(inspect.signature(value))
    except (TypeError, ValueError):
        return ""
    # annotations are strings in the source, defaults are strings when called
    text = re.sub(r"(?<=: |> )'([^']*)'", r"\1", re.sub(r"ForwardRef\('(.*?)'\)", r"\1", text))
    text = re.sub(r": Any\b(?! \|)", "", text).replace("(self, ", "(").replace("(self)", "()").replace("(cls, ", "(")
    call = name.full.split(".")[-1] + text
    if len(call) <= 88:
        return call
    inside, result = call.partition("(")[2].rpartition(")")[::2]
    lines, depth, start = [], 0, 0
    for k, sign in enumerate(inside):
        depth += (sign in "([{") - (sign in ")]}")
        if sign == "," and depth == 0:
            lines.append(inside[start:k].strip())
            start = k + 1
    lines.append(inside[start:].strip())
    return f"{call.partition('(')[0]}(\n" + "".join(f"    {line},\n" for line in lines) + f"){result}"


def own_doc(value: Any) -> str:
    """The docstring, unless it is that of a builtin type or one that dataclasses make."""
    if not (callable(value) or inspect.ismodule(value) or isinstance(value, property) or hasattr(value, "__func__")):
        return "" if type(value).__module__ in ("builtins", "numpy") else _without_made(value)
    return _without_made(value)


def _without_made(value: Any) -> str:
    doc = inspect.getdoc(value) or ""
    if type(value).__name__ == "member_descriptor" or re.match(r"^\w+\(.*\)( -> None)?$", doc):
        return ""
    return doc.split(">>>")[0].rstrip()


def escaped(doc: str) -> str:
    return re.sub(r"(?<![`\w])([*_<])", r"\\\1", re.sub(r"(?m)^ {4,}", "  ", doc))


def first_line(value: Any) -> str:
    return own_doc(value).split("\n\n")[0].replace("\n", " ")


def cell(text: str) -> str:
    return (
        re.sub(r"(?<![`\w])([*_<])", r"\\\1", text).replace("|", r"\|") if "`" not in text else text.replace("|", r"\|")
    )


def member_table(cls: type, said: dict[str, str]) -> str:
    rows = ["| member | |", "|---|---|"]
    for name in members(cls):
        about = said.get(name) or first_line(inspect.getattr_static(cls, name, ""))
        kind = str(inspect.get_annotations(cls).get(name, "")) if not about else ""
        rows.append(f"| `{name}` | {cell(about) or (kind and f'`{kind}`'.replace('|', chr(92) + '|'))} |")
    return "\n".join(rows) if len(rows) > 2 else ""
