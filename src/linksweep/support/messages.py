"""How messages show a value, list names, and what they suggest for a name that was not found."""

from __future__ import annotations

import difflib
import heapq
from collections.abc import Container, Iterable, Sequence
from typing import TypeGuard

MOST_COMPARED = 500  # of the names that are known, and
LONGEST_COMPARED = 60  # of their characters: difflib takes the product of the lengths for each


def shown(value: object, length: int = 60) -> str:
    """The value's repr in one line, shortened: messages are one sentence, whatever was passed."""
    try:
        text = " ".join(repr(value).split())
    except (ValueError, RecursionError):  # an integer of 5,000 digits, a list in a list in a list
        text = f"a {type(value).__name__} too large to show"
    return text if len(text) <= length else text[: length - 3] + "..."


def is_one_of(value: object, known: Container[str]) -> TypeGuard[str]:
    """Whether `value` is one of these names. Arrays and lists, which `in` may neither compare nor hash, are not."""
    return isinstance(value, str) and value in known


def nearest(name: object, known: Iterable[str]) -> str:
    """ " (did you mean 'x'?)", or nothing."""
    word = (name if isinstance(name, str) else shown(name))[:LONGEST_COMPARED]
    alike = heapq.nsmallest(MOST_COMPARED, set(known), key=lambda other: (abs(len(other) - len(word)), other))
    found = difflib.get_close_matches(word, [other[:LONGEST_COMPARED] for other in alike], n=1)
    meant = next((other for other in alike if found and other[:LONGEST_COMPARED] == found[0]), None)
    return "" if meant is None else f" (did you mean {shown(meant, 80)}?)"


def listing(names: Iterable[str], most: int = 8, quoted: bool = True) -> str:
    """Names for a message, cut where they would fill the screen."""
    given: Sequence[str] = list(names)
    text = ", ".join(shown(name) if quoted else name for name in given[:most])
    return text if len(given) <= most else f"{text} and {len(given) - most} more"
