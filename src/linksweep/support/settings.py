"""The version, and settings of the process: read from the environment once, changed by `linksweep.use_backend`."""

from __future__ import annotations

import os

__version__ = "0.2.0"
backend: str = os.environ.get("LINKSWEEP_BACKEND") or "llvm"
