"""Suggestions for a name that was not found."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from typing import Any


def nearest(name: Any, known: Iterable[str]) -> str:
    """ " (did you mean 'x'?)", or nothing."""
    found = difflib.get_close_matches(str(name), list(known), n=1)
    return f" (did you mean {found[0]!r}?)" if found else ""
