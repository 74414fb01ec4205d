"""A bar for runs that take long: on a terminal, and only once half a second has passed."""

from __future__ import annotations

import sys
import time
from types import TracebackType
from typing import Any

_PATIENCE = 0.5  # seconds


class ProgressBar:
    """Call it with the fraction that is done."""

    def __init__(self, title: str, wanted: bool):
        self.title = title
        self.on = wanted and sys.stderr.isatty()
        self._began = time.perf_counter()
        self._bar: Any = None
        self._task: Any = None

    def __call__(self, fraction: float) -> None:
        if not self.on or (self._bar is None and time.perf_counter() - self._began < _PATIENCE):
            return
        if self._bar is None:
            from rich.console import Console
            from rich.progress import Progress

            self._bar = Progress(console=Console(stderr=True), transient=True)
            self._task = self._bar.add_task(self.title, total=1.0)
            self._bar.start()
        self._bar.update(self._task, completed=fraction)

    def __enter__(self) -> ProgressBar:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._bar is not None:
            self._bar.stop()
