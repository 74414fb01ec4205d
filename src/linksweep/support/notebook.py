"""What notebooks show: HTML tables, and whether this is a notebook at all. Nothing is imported that is not there."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from html import escape

MOST_ROWS = 60  # of a table; a humanoid has some forty joints


Cell = str | float | None


def html_table(caption: str, headings: Sequence[str], rows: Sequence[Sequence[Cell]], notes: Iterable[str] = ()) -> str:
    """A table with its caption above and notes below; every word is escaped, numbers stand flush right."""
    head = "".join(f"<th>{escape(word)}</th>" for word in headings)
    body = "".join(f"<tr>{''.join(map(_cell, row))}</tr>" for row in rows[:MOST_ROWS])
    more = [f"{len(rows) - MOST_ROWS} more rows"] if len(rows) > MOST_ROWS else []
    below = "".join(f"<div>{escape(note)}</div>" for note in (*more, *notes))
    table = f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
    return f"<div><strong>{escape(caption)}</strong></div>{table}{below}"


def _cell(value: Cell) -> str:
    if isinstance(value, str):
        return f'<td style="text-align: left">{escape(value)}</td>'
    text = "–" if value is None or abs(value) == float("inf") else f"{value:.6g}"
    return f'<td style="text-align: right">{text}</td>'


def in_notebook() -> bool:
    """Whether this runs in a kernel with a front end that can show things, as Jupyter's."""
    get_shell = getattr(sys.modules.get("IPython"), "get_ipython", None)
    shell = None if get_shell is None else get_shell()
    return shell is not None and getattr(shell, "kernel", None) is not None
