"""Shared by all tests: compiled code goes to a folder of this run, never to the user's cache."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

# A test's own settings count beside these. On a busy machine an example takes as long as it takes.
settings.register_profile("patient", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("patient")

_OWN_CACHE: str | None = None


# Tests stand in the rooms of the source and share helpers; subprocesses that tests start in other folders see the same.
HERE = Path(__file__).parent
SEEN = [str(HERE.parent / "src"), *(str(room) for room in sorted(HERE.iterdir()) if room.is_dir())]
sys.path.extend(SEEN[1:])


def pytest_configure(config: pytest.Config) -> None:
    # Workers of pytest-xdist inherit the variable from the process that started them and share its folder.
    global _OWN_CACHE
    if not hasattr(config, "workerinput"):
        _OWN_CACHE = tempfile.mkdtemp(prefix="linksweep-test-cache-")
        os.environ["LINKSWEEP_CACHE"] = _OWN_CACHE
        os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [*SEEN, os.environ.get("PYTHONPATH")]))


def pytest_unconfigure(config: pytest.Config) -> None:
    if _OWN_CACHE is not None:
        shutil.rmtree(_OWN_CACHE, ignore_errors=True)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """`@pytest.mark.sampled(k)`: of a test's cases, every k-th runs in `make test`, all of them in `make test-all`."""
    seen: dict[str, int] = {}
    for item in items:
        marker = item.get_closest_marker("sampled")
        if marker is not None:
            name = item.nodeid.split("[")[0]
            seen[name] = seen.get(name, -1) + 1
            if seen[name] % marker.args[0]:
                item.add_marker(pytest.mark.slow)
