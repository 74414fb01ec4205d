"""A bar for runs that take long: on a terminal or in a notebook, and only once half a second has passed."""

from __future__ import annotations

import sys
import time
from html import escape
from types import TracebackType
from typing import TYPE_CHECKING

from .notebook import in_notebook
from .numbers import checked_flag

if TYPE_CHECKING:
    from IPython.display import DisplayHandle  # pyright: ignore[reportMissingImports]
    from rich.progress import Progress

_PATIENCE = 0.5  # seconds
_REDRAWN = 0.1


class ProgressBar:
    """Call it with the fraction that is done."""

    def __init__(self, title: str, wanted: bool):
        self.title = title
        self._in_notebook = in_notebook()
        self.on = checked_flag("progress", wanted) and (self._in_notebook or sys.stderr.isatty())
        self._began = time.perf_counter()
        self._bar: Progress | None = None  # on a terminal
        self._element: DisplayHandle | None = None  # in a notebook
        self._drawn = 0.0

    def __call__(self, fraction: float) -> None:
        begun = self._bar is not None or self._element is not None
        if not self.on or (not begun and time.perf_counter() - self._began < _PATIENCE):
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
        """An element of HTML that is drawn again: rich would need ipywidgets, and a terminal's codes mean nothing."""
        from IPython.display import HTML, display  # pyright: ignore[reportMissingImports]

        bar = HTML(f'<progress value="{fraction:.4f}" max="1"></progress> {escape(self.title)}, {fraction:.0%}')
        if self._element is None:
            self._element = display(bar, display_id=True)
        elif time.perf_counter() - self._drawn > _REDRAWN or fraction >= 1.0:
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

            self._element.update(HTML(""))  # as on a terminal, nothing is left of it
