"""The faults of tools/mutations.py, which `make test-all` seeds, fit the sources as they are."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
pytestmark = pytest.mark.quick


@pytest.fixture(scope="module")
def tool() -> Any:
    """By its path: tests/helpers has a module of the same name."""
    spec = importlib.util.spec_from_file_location("seeded_faults", ROOT / "tools" / "mutations.py")
    assert spec is not None and spec.loader is not None
    module = sys.modules[spec.name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_text_of_every_fault_occurs_once(tool: Any):
    assert tool.misplaced(tool.FAULTS) == {}
    assert len({fault.name for fault in tool.FAULTS}) == len(tool.FAULTS) == tool.REQUIRED["test-all"]


def test_every_fault_changes_valid_code_and_names_tests(tool: Any):
    for fault in tool.FAULTS:
        text = (ROOT / "src" / "linksweep" / fault.file).read_text(encoding="utf-8")
        assert fault.new != fault.old
        compile(text.replace(fault.old, fault.new), fault.file, "exec")
        assert fault.tests and all((ROOT / "tests" / file).is_file() for file in fault.tests), fault.name
