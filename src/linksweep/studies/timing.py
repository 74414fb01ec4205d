"""Evaluations per second, as the papers report their programs."""

from __future__ import annotations

import platform
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any


def evaluations_per_second(call: Callable[[], Any], samples: int = 1, seconds: float = 0.02, rounds: int = 3) -> float:
    """Samples per second of `call`, which computes `samples` of them: the best of some rounds of about `seconds`."""
    call()
    began = time.perf_counter()
    call()
    repeats = range(max(1, round(seconds / max(time.perf_counter() - began, 1e-7))))
    best = float("inf")
    for _ in range(rounds):
        began = time.perf_counter()
        for _ in repeats:
            call()
        best = min(best, (time.perf_counter() - began) / len(repeats))
    return samples / best


def machine() -> str:
    """The processor's name and Python's version."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        lines = []
    cpu = next((line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")), platform.machine())
    return f"{cpu}, Python {platform.python_version()}"
