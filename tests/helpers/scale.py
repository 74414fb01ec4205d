"""The size of tests at scale: fuzzing, calibration over many runs, hundreds of mechanisms.

`make test-all` runs them at the first size; `LINKSWEEP_SOAK=1 make test-all` at the second, which takes hours.
"""

from __future__ import annotations

import os
from typing import TypeVar

T = TypeVar("T")


def at_scale(usual: T, soak: T) -> T:
    """`soak` where LINKSWEEP_SOAK is set, `usual` elsewhere."""
    return soak if os.environ.get("LINKSWEEP_SOAK") else usual
