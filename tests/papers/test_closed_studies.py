"""The studies of closed chains: their checks are met, and the report says what would slip."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from linksweep.papers import studies
from linksweep.papers.studies import four_bar, two_arms


@pytest.fixture(autouse=True)
def interpreted(monkeypatch: pytest.MonkeyPatch):
    """A few samples: machine code of two arms takes longer to make."""
    monkeypatch.setattr("linksweep.support.settings.backend", "interpreter")


@pytest.mark.slow
def test_two_arms_carry_and_a_finger_would_slip(tmp_path: Path):
    written = studies.run("two_arms", tmp_path, samples=5)
    assert written.ok and len(written.checks) == 11
    report = (tmp_path / "two_arms.md").read_text(encoding="utf-8")
    assert "the finger would slip from t = 0.00 s on" in report and "NOT MET" not in str(written)
    table = np.genfromtxt(tmp_path / "two_arms.csv", delimiter=",", names=True)
    assert len(table) == 5 and np.allclose(table["squeeze"], 60.0, rtol=0, atol=1e-8)


@pytest.mark.slow
def test_a_finger_that_is_pressed_hard_holds():
    results = two_arms.compute(samples=3, squeeze=80.0, loose=70.0)
    assert not results.loose[1].slipping.any()
    assert "holds as well" in two_arms._report(results, 80.0, 70.0)


def test_four_bars_stay_closed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("linksweep.support.settings.backend", "llvm")
    written = studies.run("four_bar", tmp_path, windows=1, duration=0.5)
    assert written.ok and "constraint error" in str(written)
    exact = four_bar.single_dof_solution(2, np.array([0.0, 10.0]))[-1]
    np.testing.assert_allclose(exact, (0.328458111536, 0.944518538180), atol=1e-11)  # as published
