"""Run times of calls, measured so that they can be compared."""

from __future__ import annotations

import platform
import time
from collections.abc import Callable, Sequence
from pathlib import Path


def best_seconds(calls: Sequence[Callable[[], object]], seconds: float = 0.01, rounds: int = 5) -> list[float]:
    """Return the best time of each call in s. Calls alternate, about `seconds` each, so that other load affects all."""
    repeats = []
    for call in calls:
        call()  # the first one may compile
        began = time.perf_counter()
        call()
        repeats.append(max(1, round(seconds / max(time.perf_counter() - began, 1e-7))))
    best = [float("inf")] * len(calls)
    for _ in range(rounds):
        for k, call in enumerate(calls):
            began = time.perf_counter()
            for _ in range(repeats[k]):
                call()
            best[k] = min(best[k], (time.perf_counter() - began) / repeats[k])
    return best


def machine() -> str:
    """Return the processor's name and the version of Python."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        lines = []
    cpu = next((line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")), platform.machine())
    return f"{cpu}, Python {platform.python_version()}"
