"""Reproductions of the papers' experiments: `run("puma560", "out")` writes tables, plots and a report into a folder.

This module does not import NumPy, so that the command line lists the studies quickly.
"""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

from linksweep.errors import ArgumentError
from linksweep.support.messages import is_one_of, nearest, shown

if TYPE_CHECKING:
    from linksweep.papers.studies.report import Written

STUDIES = {
    "puma560": "Kozłowski 1990, section 5: inverse and forward dynamics of a moving PUMA 560 by every method",
    "stanford": "Angeles, Ma & Rojas 1988, example 1: torques of a Stanford arm (Figs 4 and 5)",
    "six_axis": "Angeles, Ma & Rojas 1988, example 2: a six-axis arm follows a straight line (Figs 6 to 8)",
    "rates": "Kozłowski 1990, section 5: evaluations per second from operation counts, predicted and measured",
    "sine_table": "Kozłowski 1990, section 5: torque errors caused by a sine table with a step of 0.1°",
    "planar": "Rodriguez 1987, section XII: operation counts of filter and composite methods (Fig. 4)",
    "kang": "Kang: operations saved by augmented bodies (44 %), and actuator sizing for a constant tip speed",
    "statistics": "Rodriguez 1987, sections IX and XI: inertias of a PUMA 560 as covariances of random forces (Fig. 3)",
    "identify": "Identification of a simulated PUMA 560 with friction, noise and quantised encoders",
    "two_arms": "Two PUMA 560 carry a box along a line: internal force, friction cone and slip",
    "four_bar": "IFToMM benchmark A02: N four-bar linkages through singular configurations, drift after 10 s",
}

__all__ = ["STUDIES", "run"]


def __dir__() -> list[str]:
    return sorted(__all__)


def run(name: str, out: str | Path, **options: object) -> Written:
    """Run the study `name` and write its files into the folder `out`, all of them or none.

    options: keywords of the study's `study` function, such as samples= for fewer samples than in the paper.
    """
    if not is_one_of(name, STUDIES):
        known = ", ".join(STUDIES)
        raise ArgumentError(f"there is no study {shown(name)}{nearest(name, STUDIES)}: expected one of {known}.")
    return import_module(f"linksweep.papers.studies.{name}").study(**options).write(Path(out))
