"""Checks of the errors that linksweep raises."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from typing import Any

import pytest

from linksweep.errors import LinksweepError


def refused(kind: type[LinksweepError], pattern: str, call: Callable[[], Any], *, cause: bool = False) -> None:
    """The call raises exactly this class, with a message that matches, and without a traceback of another error."""
    handled = sys.exception()  # a test that interrupts the interpreter may leave one behind
    with pytest.raises(kind) as caught:
        call()
    error, text = caught.value, str(caught.value)
    assert type(error) is kind and isinstance(error, LinksweepError)
    assert re.search(pattern, text), text
    assert text == text.strip(), repr(text)
    if not cause:
        assert error.__cause__ is None and (error.__suppress_context__ or error.__context__ is handled)
