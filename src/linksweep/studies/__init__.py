"""The papers' experiments, runnable: `run("puma560", "out")` writes numbers, plots and a report into a folder.

Nothing here imports NumPy: the command line lists the studies without it.
"""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

from linksweep.errors import ArgumentError
from linksweep.support.messages import is_one_of, nearest, shown

if TYPE_CHECKING:
    from linksweep.studies.report import Written

STUDIES = {
    "puma560": "Kozłowski 1990, section 5: torques of a PUMA 560, and its accelerations back, by every method",
    "stanford": "Angeles, Ma & Rojas 1988, example 1: torques and force of a Stanford arm (Figs 4 and 5)",
    "six_axis": "Angeles, Ma & Rojas 1988, example 2: a straight line by a six-axis arm (Figs 6 to 8)",
    "rates": "Kozłowski 1990, section 5: evaluations per second from operation counts, predicted and measured",
    "sine_table": "Kozłowski 1990, section 5: sines from a table with a step of 0.1°, and what they do to the torques",
    "planar": "Rodriguez 1987, section XII: operations of filter and composite methods by number of links (Fig. 4)",
    "kang": "Kang: what augmented bodies save (44 %), and actuators for a constant tip speed by I*, P* and H",
    "statistics": "Rodriguez 1987, sections IX and XI: inertias as covariances of random forces on a PUMA 560 (Fig. 3)",
    "identify": "A simulated PUMA 560 with friction, noise and quantised encoders: what its log tells, and its error",
    "two_arms": "Two PUMA 560 carry a box along a line and squeeze it; the same with a finger that would slip",
    "four_bar": "IFToMM benchmark A02: N four-bars for 10 s, through singular poses, against their one freedom",
}

__all__ = ["STUDIES", "run"]


def __dir__() -> list[str]:
    return sorted(__all__)


def run(name: str, out: str | Path, **options: object) -> Written:
    """Run the study `name` and write its files into the folder `out`: all of them, or none.

    options: what the study's own `study` function takes, such as samples= for fewer samples than the paper's.
    """
    if not is_one_of(name, STUDIES):
        known = ", ".join(STUDIES)
        raise ArgumentError(f"there is no study {shown(name)}{nearest(name, STUDIES)}: expected one of {known}.")
    return import_module(f"linksweep.studies.{name}").study(**options).write(Path(out))
