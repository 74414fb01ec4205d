"""Parts of messages: a value in one line, a list of names, and a suggestion for an unknown name."""

from __future__ import annotations

import difflib
import heapq
from collections.abc import Container, Iterable, Sequence
from typing import TypeGuard

MAX_NAMES = 500  # known names that are compared, and
MAX_LENGTH = 60  # characters of each: difflib takes time proportional to the product of the lengths


def shown(value: object, length: int = 60) -> str:
    """Return the value's repr in one line, shortened to `length` characters."""
    try:
        text = " ".join(repr(value).split())
    except (ValueError, RecursionError):  # an integer of 5,000 digits, a list in a list in a list
        text = f"a {type(value).__name__} too large to show"
    return text if len(text) <= length else text[: length - 3] + "..."


def is_one_of(value: object, known: Container[str]) -> TypeGuard[str]:
    """Whether `value` is one of these names. Arrays and lists, which `in` cannot compare or hash, are not."""
    return isinstance(value, str) and value in known


def nearest(name: object, known: Iterable[str]) -> str:
    """Return " (did you mean 'x'?)" with the known name nearest to `name`, or "" if none is near."""
    word = (name if isinstance(name, str) else shown(name))[:MAX_LENGTH]
    alike = heapq.nsmallest(MAX_NAMES, set(known), key=lambda other: (abs(len(other) - len(word)), other))
    matches = difflib.get_close_matches(word, [other[:MAX_LENGTH] for other in alike], n=1)
    suggestion = next((other for other in alike if matches and other[:MAX_LENGTH] == matches[0]), None)
    return "" if suggestion is None else f" (did you mean {shown(suggestion, 80)}?)"


def listing(names: Iterable[str], most: int = 8, quoted: bool = True) -> str:
    """Return the first `most` names, separated by commas, and the number of the others."""
    words: Sequence[str] = list(names)
    text = ", ".join(shown(name) if quoted else name for name in words[:most])
    return text if len(words) <= most else f"{text} and {len(words) - most} more"
