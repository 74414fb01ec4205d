"""Checks of the errors that linksweep raises."""

from __future__ import annotations

import re
import traceback
from collections.abc import Callable
from typing import Any

import pytest

from linksweep.errors import LinksweepError


def refused(kind: type[LinksweepError], pattern: str, call: Callable[[], Any], *, cause: bool = False) -> None:
    """The call raises exactly this class, with a message that matches, and without a traceback of another error."""
    with pytest.raises(kind) as caught:
        call()
    error, text = caught.value, str(caught.value)
    assert type(error) is kind and isinstance(error, LinksweepError)
    assert re.search(pattern, text), text
    assert text == text.strip(), repr(text)
    if not cause:
        shown = "".join(traceback.format_exception(error))
        assert "During handling" not in shown and "direct cause" not in shown, shown
