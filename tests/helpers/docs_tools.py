"""The modules of tools/docs, which build the documentation and import one another by name."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from typing import Any

TOOLS = Path(__file__).parents[2] / "tools" / "docs"


def load_tool(name: str) -> Any:
    sys.path.insert(0, str(TOOLS))
    try:
        return importlib.import_module(name)
    finally:
        sys.path.remove(str(TOOLS))
