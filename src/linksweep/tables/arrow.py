"""pyarrow, where it is installed: it reads and writes CSV several times faster, and it alone knows Parquet."""

from __future__ import annotations

from importlib import import_module
from typing import Any

Arrow = Any  # a module of pyarrow, which has no types, or None


def arrow_module(name: str = "pyarrow") -> Arrow:
    """pyarrow or a module of it; None where it is not installed."""
    try:
        return import_module(name)
    except ImportError:
        return None
