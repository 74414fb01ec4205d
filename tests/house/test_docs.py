"""Every code block of README.md and docs/ runs, every link and anchor leads somewhere, every example runs."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from linksweep.papers import studies

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
EXAMPLES = sorted((ROOT / "examples").glob("*.py"))
NEEDS = {
    "viewer.md": "viser",
    "languages.md": "pyopencl",
}  # pages about an extra, which `make` installs and others may not have


def skip_without_extra(page: Path) -> None:
    if page.name in NEEDS:
        package = NEEDS[page.name]
        pytest.importorskip(package, reason=f"{page.name} runs on {package}: pip install {package}")


@dataclass(frozen=True)
class Block:
    language: str
    line: int  # of the first line of code, counted from 1
    code: str


def blocks_of(text: str) -> list[Block]:
    """Fenced code blocks in order."""
    blocks: list[Block] = []
    start, language, inside = 0, "", False
    lines = text.splitlines()
    for number, line in enumerate(lines):
        if line.startswith("```"):
            if inside:
                blocks.append(Block(language, start + 1, "\n".join(lines[start:number])))
            else:
                start, language = number + 1, line[3:].strip()
            inside = not inside
    assert not inside, "a code block is never closed"
    return blocks


def without_blocks(text: str) -> str:
    return re.sub(r"^```.*?^```", "", text, flags=re.MULTILINE | re.DOTALL)


def anchors_of(page: Path) -> set[str]:
    """Anchors of headings: lower case, without punctuation, spaces as hyphens; or the id in `{#id}`."""
    headings = re.findall(r"^#+ +(.+)$", without_blocks(page.read_text(encoding="utf-8")), flags=re.MULTILINE)
    chosen = {match[1] for heading in headings if (match := re.search(r"\{#([\w-]+)\}$", heading))}
    return chosen | {re.sub(r"[^\w\- ]", "", heading.lower()).strip().replace(" ", "-") for heading in headings}


def relative(page: Path) -> str:
    return str(page.relative_to(ROOT))


@pytest.mark.parametrize("page", PAGES, ids=relative)
def test_python_blocks_run(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """In order, in one namespace per page: later blocks may use what earlier ones made."""
    skip_without_extra(page)
    monkeypatch.chdir(tmp_path)
    namespace: dict[str, object] = {"__name__": "__main__"}
    for block in blocks_of(page.read_text(encoding="utf-8")):
        if block.language == "python":
            # Blank lines in front, so that a traceback shows the line of the page.
            exec(compile("\n" * (block.line - 1) + block.code, str(page), "exec"), namespace)


def commands_of(page: Path) -> list[str]:
    """Lines that start with `$ linksweep` in console and bash blocks."""
    blocks = (block for block in blocks_of(page.read_text(encoding="utf-8")) if block.language in ("console", "bash"))
    return [line for block in blocks for line in block.code.splitlines() if line.startswith("$ linksweep")]


# The shortest first: that is the one case which `make test` runs.
WITH_COMMANDS: list[Path] = sorted(filter(commands_of, PAGES), key=lambda page: len(commands_of(page)))


@pytest.mark.cases(1)
@pytest.mark.parametrize("page", WITH_COMMANDS, ids=relative)
def test_commands_run(page: Path, tmp_path: Path):
    skip_without_extra(page)
    for line in commands_of(page):
        command = [sys.executable, "-m", "linksweep", *shlex.split(line)[2:]]
        run = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
        assert run.returncode == 0, f"{line}: {run.stderr}"


def made_by_the_build(file: Path) -> bool:
    """Whether `make docs` makes this page or picture (tools/docs)."""
    if not file.is_relative_to(ROOT / "docs"):
        return False
    room, name = (*file.relative_to(ROOT / "docs").parts, "")[:2]
    if room == "figures":
        text = (ROOT / "tools" / "docs" / "figures.py").read_text(encoding="utf-8")
        return f'"{Path(name).stem}": ' in text
    tutorial = room == "tutorials" and (ROOT / "examples" / "notebooks" / name).with_suffix(".ipynb").exists()
    return room in ("changes.md", "reference") or tutorial or (room == "studies" and Path(name).stem in studies.STUDIES)


@pytest.mark.cases(1000)
@pytest.mark.parametrize("page", PAGES, ids=relative)
def test_links_lead_somewhere(page: Path):
    """Relative links point at files that exist, and their anchors at headings."""
    for target in re.findall(r"\]\(([^)\s]+)\)", without_blocks(page.read_text(encoding="utf-8"))):
        if re.match(r"[a-z]+:", target):
            continue  # the network is not ours to test
        path, _, anchor = target.partition("#")
        file = (page.parent / path).resolve() if path else page
        if made_by_the_build(file):
            continue  # mkdocs checks its anchors
        assert file.exists(), f"{relative(page)} links to {target}, which does not exist"
        if anchor:
            assert anchor in anchors_of(file), f"{relative(page)} links to {target}, but there is no such heading"


@pytest.mark.cases(1)
@pytest.mark.parametrize("example", EXAMPLES, ids=relative)
def test_examples_run(example: Path, tmp_path: Path):
    environment = {**os.environ, "PYTHONWARNINGS": "error"}
    run = subprocess.run([sys.executable, str(example)], cwd=tmp_path, capture_output=True, text=True, env=environment)
    assert run.returncode == 0, run.stderr
    assert run.stdout.strip(), "an example shows something"


def test_the_page_reader_reads():
    text = "# A b, c!\n```python\nx = 1\n```\n```console\n$ linksweep --version\n```\n"
    assert blocks_of(text) == [Block("python", 3, "x = 1"), Block("console", 6, "$ linksweep --version")]
    assert len(EXAMPLES) >= 2
