"""docs/installation.md says what pyproject.toml says; a wheel of this tree holds what is needed."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "installation.md").read_text(encoding="utf-8")
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def packages(requirements: list[str]) -> list[str]:
    return [re.match(r"[A-Za-z0-9-]+", requirement)[0] for requirement in requirements]  # type: ignore[index]


def test_the_table_of_extras_is_that_of_the_project():
    table = PAGE[PAGE.index("<!-- EXTRAS") :]
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in table.splitlines() if line.startswith("| ")]
    found = {row[0].strip("`"): row[1].split(", ") for row in rows[1:]}
    extras = PROJECT["optional-dependencies"]
    assert found == {"none": packages(PROJECT["dependencies"])} | {name: packages(extras[name]) for name in extras}
    assert all(row[2] for row in rows)


@pytest.mark.parametrize("extra", ["plot", "mjcf", "symbolic", "arrow"])
def test_what_is_missing_names_its_extra(extra: str):
    """Messages name the extra or the package, so that the table can be found from them."""
    (package,) = packages(PROJECT["optional-dependencies"][extra])
    sources = "\n".join(path.read_text(encoding="utf-8") for path in (ROOT / "src").rglob("*.py"))
    assert f"linksweep[{extra}]" in sources or f"pip install {package}" in sources


def test_a_wheel_has_every_module_and_the_robots(tmp_path: Path):
    pytest.importorskip("hatchling", reason="the build backend is not installed, and nothing is downloaded here")
    command = [sys.executable, "-m", "pip", "wheel", "--no-deps", "--no-build-isolation", "--wheel-dir", str(tmp_path)]
    subprocess.run([*command, str(ROOT)], check=True, capture_output=True)
    (wheel,) = tmp_path.glob("linksweep-*-py3-none-any.whl")
    names = set(zipfile.ZipFile(wheel).namelist())
    source = ROOT / "src"
    files = [path for ending in ("*.py", "*.toml", "py.typed") for path in source.rglob(ending)]
    assert {str(path.relative_to(source)) for path in files} <= names
