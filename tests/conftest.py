"""Shared by all tests: compiled code goes to a folder of this run, never to the user's cache."""

from __future__ import annotations

import hashlib
import os
import shutil
import signal
import sys
import tempfile
from importlib.metadata import version
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
pytest_plugins = ("command_line", "rule_patterns")  # modules of tests/helpers with fixtures


def pytest_configure(config: pytest.Config) -> None:
    # Workers of pytest-xdist inherit the variable from the process that started them and share its folder.
    global _OWN_CACHE
    if not hasattr(config, "workerinput"):
        _OWN_CACHE = tempfile.mkdtemp(prefix="linksweep-test-cache-")
        os.environ["LINKSWEEP_CACHE"] = _OWN_CACHE
        # What shells do to background jobs and nohup to its own would be inherited by processes that tests interrupt.
        for number, handler in ((signal.SIGINT, signal.default_int_handler), (signal.SIGHUP, lambda *_: None)):
            if signal.getsignal(number) == signal.SIG_IGN:
                signal.signal(number, handler)
        os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [*SEEN, os.environ.get("PYTHONPATH")]))


def pytest_unconfigure(config: pytest.Config) -> None:
    if _OWN_CACHE is not None:
        shutil.rmtree(_OWN_CACHE, ignore_errors=True)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """`@pytest.mark.sampled(k)`: of a test's cases, every k-th runs in `make test`, all of them in `make test-all`."""
    seen: dict[str, int] = {}
    for item in items:
        marker = item.get_closest_marker("sampled")
        if marker is not None:
            name = item.nodeid.split("[")[0]
            seen[name] = seen.get(name, -1) + 1
            if seen[name] % marker.args[0]:
                item.add_marker(pytest.mark.slow)
    if config.getoption("--rest"):
        done = set(config.cache.get(PASSED, {}).get(state(), []))  # pyright: ignore[reportOptionalMemberAccess]
        config.hook.pytest_deselected(items=[item for item in items if item.nodeid in done])
        items[:] = [item for item in items if item.nodeid not in done]


# ---- `--rest`: what the last run here, if all of it passed, has not run on these same files -----------------------

PASSED = "linksweep/passed"  # in .pytest_cache: the state, and the tests that passed in it
READ = ("src", "tests", "docs", "examples", "benchmarks", "tools", "README.md", "Makefile", "pyproject.toml")
_passed: dict[str, bool] = {}


def state() -> str:
    """Of all that tests read: the files here, and the packages that numbers come from."""
    digest = hashlib.sha256(repr([sys.version, *map(version, ("numpy", "scipy", "llvmlite"))]).encode())
    for name in READ:
        top = HERE.parent / name
        for path in sorted(top.rglob("*")) if top.is_dir() else [top]:
            if path.is_file() and "__pycache__" not in path.parts:
                digest.update(f"{path.relative_to(HERE.parent)} {path.stat().st_size}\n".encode() + path.read_bytes())
    return digest.hexdigest()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--rest", action="store_true", help="leave out what just passed here, on these same files")


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    _passed[report.nodeid] = _passed.get(report.nodeid, True) and report.passed


def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    config = session.config
    spared = hasattr(config, "workerinput") or config.option.collectonly or config.option.rest
    cache: pytest.Cache | None = getattr(config, "cache", None)  # none with -p no:cacheprovider
    if not spared and cache is not None:
        green = [name for name, passed in _passed.items() if passed] if exitstatus == 0 else []
        cache.set(PASSED, {state(): green})
