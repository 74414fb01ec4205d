"""How messages show a value, and what they suggest for a name that was not found."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from typing import Any


def shown(value: Any, length: int = 60) -> str:
    """The value's repr in one line, shortened: messages are one sentence, whatever was passed."""
    text = " ".join(repr(value).split())
    return text if len(text) <= length else text[: length - 3] + "..."


def nearest(name: Any, known: Iterable[str]) -> str:
    """ " (did you mean 'x'?)", or nothing."""
    found = difflib.get_close_matches(str(name), list(known), n=1)
    return f" (did you mean {found[0]!r}?)" if found else ""
