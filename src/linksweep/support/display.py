"""Output for people: HTML tables for notebooks, and progress bars for terminals and notebooks."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable, Sequence
from html import escape
from types import TracebackType
from typing import TYPE_CHECKING

from .checks import checked_flag

if TYPE_CHECKING:
    from IPython.display import DisplayHandle  # pyright: ignore[reportMissingImports]
    from rich.progress import Progress

MAX_ROWS = 60  # of a table; a humanoid has about forty joints
_DELAY = 0.5  # seconds before a progress bar appears
_REDRAW = 0.1  # seconds between two updates in a notebook

Cell = str | float | None


def html_table(caption: str, headings: Sequence[str], rows: Sequence[Sequence[Cell]], notes: Iterable[str] = ()) -> str:
    """Return a table as HTML, with its caption above and notes below. Text is escaped, numbers are right-aligned."""
    head = "".join(f"<th>{escape(word)}</th>" for word in headings)
    body = "".join(f"<tr>{''.join(map(_cell, row))}</tr>" for row in rows[:MAX_ROWS])
    more = [f"{len(rows) - MAX_ROWS} more rows"] if len(rows) > MAX_ROWS else []
    below = "".join(f"<div>{escape(note)}</div>" for note in (*more, *notes))
    table = f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
    return f"<div><strong>{escape(caption)}</strong></div>{table}{below}"


def _cell(value: Cell) -> str:
    if isinstance(value, str):
        return f'<td style="text-align: left">{escape(value)}</td>'
    text = "–" if value is None or abs(value) == float("inf") else f"{value:.6g}"
    return f'<td style="text-align: right">{text}</td>'


def in_notebook() -> bool:
    """Whether this runs in a kernel with a front end that can display objects, such as Jupyter. Imports nothing."""
    get_shell = getattr(sys.modules.get("IPython"), "get_ipython", None)
    shell = None if get_shell is None else get_shell()
    return shell is not None and getattr(shell, "kernel", None) is not None


class ProgressBar:
    """A progress bar on a terminal or in a notebook, shown after half a second. Call it with the completed fraction."""

    def __init__(self, title: str, enabled: bool):
        self.title = title
        self._in_notebook = in_notebook()
        self.on = checked_flag("progress", enabled) and (self._in_notebook or sys.stderr.isatty())
        self._began = time.perf_counter()
        self._bar: Progress | None = None  # on a terminal
        self._element: DisplayHandle | None = None  # in a notebook
        self._drawn = 0.0

    def __call__(self, fraction: float) -> None:
        begun = self._bar is not None or self._element is not None
        if not self.on or (not begun and time.perf_counter() - self._began < _DELAY):
            return
        if self._in_notebook:
            self._show(fraction)
            return
        if self._bar is None:
            from rich.console import Console
            from rich.progress import Progress

            self._bar = Progress(console=Console(stderr=True), transient=True)
            self._bar.add_task(self.title, total=1.0)
            self._bar.start()
        self._bar.update(self._bar.task_ids[0], completed=fraction)

    def _show(self, fraction: float) -> None:
        """Draw the bar as an HTML element. Rich would need ipywidgets in a notebook."""
        from IPython.display import HTML, display  # pyright: ignore[reportMissingImports]

        bar = HTML(f'<progress value="{fraction:.4f}" max="1"></progress> {escape(self.title)}, {fraction:.0%}')
        if self._element is None:
            self._element = display(bar, display_id=True)
        elif time.perf_counter() - self._drawn > _REDRAW or fraction >= 1.0:
            self._element.update(bar)
        else:
            return
        self._drawn = time.perf_counter()

    def __enter__(self) -> ProgressBar:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._bar is not None:
            self._bar.stop()
        if self._element is not None:
            from IPython.display import HTML  # pyright: ignore[reportMissingImports]

            self._element.update(HTML(""))  # removed when done, as on a terminal
