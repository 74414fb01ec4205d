"""Shared by all tests: which cases each tier runs, where compiled code is cached, where helpers are found.

`make test` runs at most CASES cases of each parametrised test, spread over its parameters, `make test-all` all of them.
`@pytest.mark.cases(n)` sets another number for one test. Tests marked `slow` run only in `make test-all`; tests marked
`quick` also run in `make quick`.
"""

from __future__ import annotations

import gc
import hashlib
import os
import signal
import sys
from importlib.metadata import version
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

# A test's own settings count beside these. On a busy machine an example takes as long as it takes.
settings.register_profile("patient", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("patient")

CASES = 1
# Subprocesses that tests start in other folders see the same modules.
HERE = Path(__file__).parent
PATHS = [str(HERE.parent / "src"), *(str(folder) for folder in sorted(HERE.iterdir()) if folder.is_dir())]
sys.path.extend(PATHS[1:])
pytest_plugins = ("command_line", "rule_patterns")  # modules of tests/helpers with fixtures


def pytest_configure(config: pytest.Config) -> None:
    gc.set_threshold(50_000, 20, 20)  # tracing makes millions of small objects: by default a tenth of the time is gc's
    # Shells make background jobs ignore SIGINT, and nohup SIGHUP: processes that tests interrupt would inherit it.
    for number, handler in ((signal.SIGINT, signal.default_int_handler), (signal.SIGHUP, lambda *_: None)):
        if signal.getsignal(number) == signal.SIG_IGN:
            signal.signal(number, handler)
    if hasattr(config, "workerinput"):  # workers of pytest-xdist inherit the environment
        return
    # Objects are cached by the text of their kernels, so they serve until the text changes; `make clean` removes them.
    os.environ["LINKSWEEP_CACHE"] = str(HERE.parent / "build" / "test-cache")
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [*PATHS, os.environ.get("PYTHONPATH")]))
    # Without bytecode each of the thousand processes that tests start would compile the package again.
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    sys.dont_write_bytecode = False


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Garbage collections skip what earlier files keep, robots and programs in caches: they would take 1.5 s each."""
    if item.path not in _files_seen:
        _files_seen.add(item.path)
        gc.collect()
        gc.freeze()


_files_seen: set[Path] = set()


@pytest.fixture(autouse=True)
def _ctrl_c_raises() -> None:
    """Every test starts with Python's own handler of Ctrl-C, whatever a command that ran here before has left."""
    if signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def spread(count: int, wanted: int) -> list[int]:
    """`wanted` indices below `count`: far apart, and without a period that a product of parameters could share."""
    return sorted(range(count), key=lambda k: k * 0.6180339887498949 % 1.0)[:wanted]


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    cases: dict[str, list[pytest.Item]] = {}
    for item in items:
        if item.get_closest_marker("slow") is None:
            cases.setdefault(item.nodeid.split("[")[0], []).append(item)
    for same in cases.values():
        marker = same[0].get_closest_marker("cases")
        chosen = spread(len(same), CASES if marker is None else marker.args[0])
        for index, item in enumerate(same):
            if index not in chosen:
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
