"""An explanation of a recursion, link by link, as text, in a notebook, and as an HTML or Markdown page."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from html import escape
from pathlib import Path
from textwrap import wrap

import numpy as np

from ..errors import ArgumentError
from ..support.files import write_atomically
from ..support.messages import is_one_of, nearest, shown
from .formula import Tree, equations, escaped, latex, latex_of, mathml, symbol
from .steps import KEPT, PASSED, Line, Numbers, Part, Stage

DIRECTIONS = {
    "outward": "from the base to the tips (forward pass)", "inward": "from the tips to the base (backward pass)",
    "pairs": "from every link to the base", "": "for the whole robot",
}  # fmt: skip
FRAMES = {"inner": "in the inner link's frame", "first": "in the first link's frame", "base": "in the base frame"}
NOTE = (
    "Quantities of a link are in its frame, as the robot model defines it. The inner link is the parent, towards the "
    "base; outer is the sum of what the child links have passed on. Gravity is subtracted from accelerations."
)
LINE_WIDTH = 80  # characters of expressions in one line
STYLE = """
body { font-family: system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem; line-height: 1.5; }
""".strip()
LOOK = """
.linksweep-explained table { border-collapse: collapse; width: 100%; margin: 0.3rem 0 0.8rem; }
.linksweep-explained td { padding: 0.15rem 0.6rem; vertical-align: top; text-align: left; border-top: 1px solid #8884; }
.linksweep-explained td.equation { white-space: nowrap; opacity: 0.75; width: 9rem; }
.linksweep-explained td.numbers { font-family: ui-monospace, monospace; white-space: pre; font-size: 0.85em; }
.linksweep-explained div.scroll { overflow-x: auto; }
.linksweep-explained summary { cursor: pointer; font-weight: 600; }
""".strip()


@dataclass(frozen=True)
class Explanation:
    """The computation of a method for one sample, step by step.

    stages: its sweeps, with a part for each link, and in each part lines with equation, statement and values. given:
    the inputs by name. quantities: every quantity of the method, as `details=True` returns them, the result first.
    Printing gives text, notebooks show formulas, and `save` writes HTML (.html), Markdown (.md) or text (.txt).
    """

    robot: str
    function: str
    method: str
    source: str
    given: Numbers
    stages: tuple[Stage, ...]
    quantities: Numbers
    meanings: Mapping[str, str]
    joints: Mapping[str, str] = field(default_factory=dict)  # description of the joint of each link
    links: tuple[str, ...] = ()  # links to show; all if empty

    # contents

    def of(self, *links: str) -> Explanation:
        """Return the explanation restricted to these links."""
        for link in links:
            if not is_one_of(link, self.joints):
                raise ArgumentError(
                    f"explain: {self.robot} has no link {shown(link)}{nearest(link, self.joints)}, expected one of "
                    f"robot.link_names."
                )
        return replace(self, links=tuple(links))

    @property
    def lines(self) -> Iterator[tuple[Stage, Part, Line]]:
        """Every line that is shown, with its stage and part."""
        for stage in self.stages:
            for part in stage.parts:
                if not self.links or part.link in self.links:
                    yield from ((stage, part, line) for line in part.lines)

    @property
    def title(self) -> str:
        """Heading of the explanation."""
        return f"{self.function.replace('_', ' ').capitalize()} of {self.robot} by {self.method}"

    @property
    def symbols(self) -> dict[str, str]:
        """Meanings of the names in the lines, and of the letters for parameters of the robot."""
        used = {name for _, _, line in self.lines for name in line.values}
        used |= {str(letter) for letter in self.given.get("dimensions", ())}
        return {name: meaning for name, meaning in self.meanings.items() if name in used}

    @property
    def result(self) -> tuple[str, np.ndarray]:
        """Name and value of the result."""
        return next(iter(self.quantities.items()))

    def _shown(self) -> list[tuple[Stage, list[Part]]]:
        shown_stages = []
        for stage in self.stages:
            parts = [part for part in stage.parts if part.lines and (not self.links or part.link in self.links)]
            if parts:
                shown_stages.append((stage, parts))
        return shown_stages

    # text

    def __str__(self) -> str:
        out = [self.title, "=" * len(self.title), "", self.source, "", *wrap(NOTE, 118), "", "Inputs:"]
        out += _aligned(self.given, 2)
        if self.symbols:
            width = max(map(len, self.symbols))
            out += ["", "Symbols:", *(f"  {name:<{width}}  {meaning}" for name, meaning in self.symbols.items())]
        for number, (stage, parts) in enumerate(self._shown(), start=1):
            out += ["", _heading(number, stage)]
            for part in parts:
                out += ["", f"  {self._about(part)}"] if part.link else [""]
                for line in part.lines:
                    out += _line_text(line)
        name, value = self.result
        return "\n".join([*out, "", "Result:", *_aligned({name: value}, 2), ""])

    def __repr__(self) -> str:
        return f"<Explanation: {self.title}, {sum(1 for _ in self.lines)} lines; print it, or save it as .html or .md>"

    def _about(self, part: Part) -> str:
        if part.of:
            return f"{part.link}, of {part.of}"
        return f"{part.link} ({self.joints[part.link]})" if part.link in self.joints else part.link

    # formulas

    def _repr_html_(self) -> str:
        return f'<style>{LOOK}</style><div class="linksweep-explained">{self._body()}</div>'

    def _repr_latex_(self) -> str:
        rows = [
            rf"{_latex_word(part.link)} & {latex(formula)} & {_latex_word(line.equation)}"
            for _, part, line in self.lines
            for formula in equations(line.statement.node)
            if line.use != KEPT
        ]
        return "$$\\begin{array}{lll}\n" + " \\\\\n".join(rows) + "\n\\end{array}$$"

    def html(self) -> str:
        """Return a self-contained HTML page with formulas in MathML, which browsers render."""
        title = escape(self.title)
        return (
            f'<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8"><title>{title}</title>'
            f'<meta name="viewport" content="width=device-width, initial-scale=1"><meta name="color-scheme" '
            f'content="light dark"><style>{STYLE}\n{LOOK}</style></head>\n<body class="linksweep-explained">'
            f"<h1>{title}</h1>{self._body()}</body></html>\n"
        )

    def _body(self) -> str:
        paragraphs = "".join(f"<p>{escape(text)}</p>" for text in (*self.source.split("\n\n"), NOTE))
        given = _html_table([("", f"<math>{mathml(symbol(name))}</math>", _grid(v)) for name, v in self.given.items()])
        named = [(f"<math>{mathml(symbol(n))}</math>", f"<code>{escape(n)}</code>", m) for n, m in self.symbols.items()]
        symbols = _html_table([(sign, name, escape(meaning)) for sign, name, meaning in named], numbers=False)
        out = [paragraphs, f"<h2>Inputs</h2>{given}", f"<h2>Symbols</h2>{symbols}" if self.symbols else ""]
        for number, (stage, parts) in enumerate(self._shown(), start=1):
            out.append(f"<h2>{escape(_heading(number, stage))}</h2>")
            for k, part in enumerate(parts):
                rows = [(escape(line.equation), _formulas(line), _numbers_html(line)) for line in part.lines]
                table = _html_table(rows)
                opened = " open" if k == 0 or self.links else ""
                about = escape(self._about(part))
                out.append(f"<details{opened}><summary>{about}</summary>{table}</details>" if part.link else table)
        name, value = self.result
        out.append(f"<h2>Result</h2>{_html_table([('', f'<math>{mathml(symbol(name))}</math>', _grid(value))])}")
        return "".join(out)

    def markdown(self) -> str:
        """Return Markdown with formulas in LaTeX between dollar signs."""
        out = [f"# {_markdown(self.title)}", *map(_markdown, self.source.split("\n\n")), NOTE, "## Inputs"]
        out += [f"$${latex(symbol(name))} = {_latex_numbers(value)}$$" for name, value in self.given.items()]
        if self.symbols:
            rows = [f"| ${latex(symbol(n))}$ | `{n}` | {_markdown(m)} |" for n, m in self.symbols.items()]
            out += ["## Symbols", "\n".join(["| symbol | in the source | meaning |", "|---|---|---|", *rows])]
        for number, (stage, parts) in enumerate(self._shown(), start=1):
            out.append(f"## {_markdown(_heading(number, stage))}")
            for part in parts:
                out += [f"### {_markdown(self._about(part))}"] if part.link else []
                for line in part.lines:
                    note = " ".join(filter(None, (line.equation, _note(line))))
                    formulas = [] if line.use == KEPT else list(map(latex, equations(line.statement.node)))
                    values = [f"{latex(_named(name))} = {_latex_numbers(value)}" for name, value in line.values.items()]
                    out.append(f"{_markdown(note)}\n\n$${_stacked(formulas + values)}$$")
        name, value = self.result
        out += ["## Result", f"$${latex(symbol(name))} = {_latex_numbers(value)}$$"]
        return "\n\n".join(out) + "\n"

    def save(self, path: str | Path) -> None:
        """Write HTML (.html), Markdown (.md) or text (.txt), chosen by the suffix of `path`."""
        path = Path(path)
        writers: dict[str, Callable[[], str]] = {".html": self.html, ".md": self.markdown, ".txt": self.__str__}
        check_suffix(path)
        text = writers[path.suffix.lower()]()

        def write(to: Path) -> None:
            to.write_text(text, encoding="utf-8")

        write_atomically(path, write)


def check_suffix(path: Path) -> None:
    """Raise unless `Explanation.save` can write a file with this suffix."""
    if path.suffix.lower() not in (".html", ".md", ".txt"):
        raise ArgumentError(f"The explanation {path} has the suffix {path.suffix!r}, expected .html, .md or .txt.")


def _heading(number: int, stage: Stage) -> str:
    name = (stage.name or "relations").capitalize()
    return f"{number}. {name}, {DIRECTIONS[stage.direction]}{f': {stage.equation}' if stage.equation else ''}"


def _note(line: Line) -> str:
    if line.use == PASSED:
        return "passed to the inner link, in its frame"
    return "stored for later sweeps" if line.use == KEPT else FRAMES.get(line.frame, "")


def _line_text(line: Line) -> list[str]:
    """Return equation and statement, and below them the values, as lines of text."""
    text = "stored:" if line.use == KEPT else line.statement.text
    note = _note(line) if line.use != KEPT else ""
    out = [f"    {line.equation:<18} {text}{f'   [{note}]' if note else ''}"]
    return out + _aligned({name or line.use: value for name, value in line.values.items()}, 23)


def _aligned(values: Mapping[str, np.ndarray], indent: int) -> list[str]:
    width = max(map(len, values), default=0)
    out = []
    for name, value in values.items():
        for k, row in enumerate(_rows(value)):
            out.append(f"{' ' * indent}{name if k == 0 else '':<{width}} {'=' if k == 0 else ' '} {row}")
    return out


def _text(x: object) -> str:
    return f"{x:.6g}" if isinstance(x, float) else str(x)  # a SymPy expression


def _rows(value: np.ndarray) -> list[str]:
    """Return an array as lines of text, in columns."""
    if value.ndim == 0:
        return [_text(value.item())]
    if value.ndim > 2:
        return [row for k, block in enumerate(value) for row in (f"[{k}]", *_rows(block))]
    if value.dtype == object:
        return [line for row in np.atleast_2d(value).tolist() for line in _wrapped([_text(x) for x in row])]
    cells = [[_text(x) for x in row] for row in np.atleast_2d(value).tolist()]
    widths = [max(len(row[k]) for row in cells) for k in range(len(cells[0]))] if value.ndim == 2 else None
    rows = [" ".join(x.rjust(w) for x, w in zip(row, widths or map(len, row), strict=True)) for row in cells]
    return [f"[{row}]" for row in rows]


def _wrapped(cells: list[str]) -> list[str]:
    """Return expressions in one line, or below each other if they are too long."""
    if sum(map(len, cells)) < LINE_WIDTH:
        return [f"[{', '.join(cells)}]"]
    return [f"{' ' if k else '['}{cell}{',' if k + 1 < len(cells) else ']'}" for k, cell in enumerate(cells)]


def _grid(value: np.ndarray) -> str:
    return escape("\n".join(_rows(value)))


def _formulas(line: Line) -> str:
    note = f"<br><small>{escape(_note(line))}</small>" if _note(line) else ""
    if line.use == KEPT:
        return note
    formulas = "<br>".join(f"<math>{mathml(formula)}</math>" for formula in equations(line.statement.node))
    return f'<span title="{escape(line.statement.text)}">{formulas}</span>{note}'


def _numbers_html(line: Line) -> str:
    names = {name or line.use: value for name, value in line.values.items()}
    return escape("\n".join(_aligned(names, 0)))


def _html_table(rows: list[tuple[str, str, str]], numbers: bool = True) -> str:
    kind = ' class="numbers"' if numbers else ""
    body = "".join(f'<tr><td class="equation">{a}</td><td>{b}</td><td{kind}>{c}</td></tr>' for a, b, c in rows)
    return f'<div class="scroll"><table>{body}</table></div>'


def _named(name: str) -> Tree:
    return symbol(name.rpartition(".")[2] or "passed")


def _latex_word(text: str) -> str:
    return rf"\mathrm{{{escaped(text)}}}" if text else ""


def _latex_numbers(value: np.ndarray) -> str:
    def number(x: object) -> str:
        if not isinstance(x, float):
            return latex_of(x)
        mantissa, exponent = f"{_text(x)}e".split("e")[:2]
        return rf"{mantissa}\cdot 10^{{{int(exponent)}}}" if exponent else mantissa

    if value.ndim == 0:
        return number(value.item())
    if value.ndim > 2:
        return r",\; ".join(_latex_numbers(block) for block in value)
    rows = [" & ".join(number(x) for x in row) for row in np.atleast_2d(value).tolist()]
    return r"\begin{bmatrix}" + r" \\ ".join(rows) + r"\end{bmatrix}"


def _stacked(lines: list[str]) -> str:
    return lines[0] if len(lines) == 1 else r"\begin{gathered}" + r" \\ ".join(lines) + r"\end{gathered}"


def _markdown(text: str) -> str:
    """Escape the markup characters of Markdown."""
    for sign in "\\`*_[]<>|$#~^":
        text = text.replace(sign, f"\\{sign}")
    return text
