"""What mkdocs does for this site besides turning Markdown into pages (`hooks:` of mkdocs.yml).

Generated pages: the reference (from docstrings), tutorials (notebooks, run), studies (their reports), changes.
Completed pages: formulas become MathML, markers become tables (tables.py).
"""

from __future__ import annotations

import functools
import re
import sys
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
ROOT = HERE.parent.parent
sys.path.insert(0, str(HERE))

import figures  # noqa: E402
import formulas  # noqa: E402
import notebooks  # noqa: E402
import reference  # noqa: E402
import studies_pages  # noqa: E402
import tables  # noqa: E402
from made import kept  # noqa: E402

SPEED = re.compile(r"<!-- speed: README.md -->")
PARTS = {  # what makes each part of the site, and from which files besides the package
    "figures": (
        figures.made,
        ("tools/docs/figures.py", "tools/docs/guide_figures.py", "benchmarks/drawn.py", "docs/benchmarks.md"),
    ),
    "reference": (reference.made, ("tools/docs/reference.py", "tools/docs/cells.py", "tools/docs/examples")),
    "studies": (studies_pages.made, ("tools/docs/studies_pages.py",)),
    "tutorials": (notebooks.made, ("tools/docs/notebooks.py", "tools/docs/cells.py", "examples/notebooks")),
}


def on_config(config: Any) -> Any:
    """Put the generated pages of the Python API into the navigation."""
    api = ["reference/index.md", *({page.title: page.uri} for page in reference.pages())]
    for section in config.nav:
        for entry in section.get("Reference", []):
            if "Python API" in entry:
                entry["Python API"] = api
    return config


def on_files(files: Any, config: Any) -> Any:
    from mkdocs.structure.files import File

    texts, written = {"changes.md": changes()}, {}
    for name, (make, sources) in PARTS.items():
        part = kept(ROOT / "build" / "docs" / name, make, sources)
        texts |= part.texts
        written |= part.files
    for uri, text in texts.items():
        files.append(File.generated(config, uri, content=text))
    for uri, path in written.items():
        files.append(File.generated(config, uri, abs_src_path=str(path)))
    return files


def on_page_markdown(markdown: str, page: Any, config: Any, files: Any) -> str:
    return tables.with_tables(SPEED.sub(speed_table, markdown), generated_tables())


@functools.cache
def generated_tables() -> dict[str, str]:
    return kept(ROOT / "build" / "docs" / "tables", tables.made, ("tools/docs/tables.py", "docs")).texts


def on_page_content(html: str, page: Any, config: Any, files: Any) -> str:
    return formulas.as_mathml(html)


def speed_table(_: re.Match[str]) -> str:
    """The speed table of the README."""
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    table = re.search(r"<!-- SPEED TABLE.*?-->\n(.*?)\n\n", text, re.DOTALL)
    assert table, "README.md has no table of speed"
    return table[1]


def changes() -> str:
    """CHANGELOG.md as a page."""
    text = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    return re.sub(r"\]\(docs/", "](", text)
