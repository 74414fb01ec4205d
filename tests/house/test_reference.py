"""Every public name stands in the reference, with an example that runs."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from docs_tools import load_tool

reference = load_tool("reference")
PUBLIC = [name.full for name in reference.names()]


def files() -> list[str]:
    return sorted(path.stem for path in reference.EXAMPLES.glob("*.py"))


def test_every_public_name_has_an_example():
    missing = [name for name in PUBLIC if name not in reference.examples()]
    assert not missing, f"tools/docs/examples has no cell for {missing}"
    assert len(PUBLIC) == len(set(PUBLIC)) > 250


def test_every_example_is_of_a_public_name():
    assert set(reference.examples()) <= set(PUBLIC)


def test_every_public_name_says_what_it_is():
    bare = [name.full for name in reference.names() if not reference.first_line(name.value)]
    assert bare == ["__version__", "Robot.snapping", "studies.STUDIES", "viewer.LAYERS"]  # they are plain values


@pytest.mark.cases(1)
@pytest.mark.parametrize("file", files())
def test_examples_run(file: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """All of one file, each after the file's set-up; most show what came out, some assert."""
    monkeypatch.chdir(tmp_path)
    text = (reference.EXAMPLES / f"{file}.py").read_text(encoding="utf-8")
    missing = set()
    for title in re.findall(r"^# %% (.+)$", text, flags=re.MULTILINE):
        if title != "setup":
            setup, code = reference.examples()[title.split(", ")[0]]
            package = reference.missing_package(setup + code)
            missing |= {package} if package else set()
            if not package:
                reference.ran(setup, code)
    if missing:
        pytest.skip(f"some examples of {file} run on {', '.join(sorted(missing))}: pip install them")


def test_formulas_of_source_lines():
    formulas = load_tool("formulas")
    assert formulas.formula_of("V = link.phi_T(inner.V) + link.H_T @ qd").startswith("$V = ")
    assert formulas.formula_of("kept, _ = sweep.inward(step, 0)") == "" == formulas.formula_of(")")


def test_accents_stay_above_their_letters():
    pytest.importorskip("latex2mathml", reason="formulas are converted by latex2mathml: pip install latex2mathml")
    page = load_tool("formulas").as_mathml('<span class="arithmatex">\\(\\ddot{q} + \\dot\\omega\\)</span>')
    assert "<mtext>··</mtext></mover>" in page and "<mtext>·</mtext></mover>" in page and "arithmatex" not in page
