"""What is taken where nothing is said: the method of each function, and whether it runs as loops.

Rules by the robot's structure, written here and nowhere else; nothing is traced to choose. Inertias are regrouped
wherever that changes no result (`functions.may_regroup`). docs/defaults.md has the figures behind the rules, and
tests/test_defaults.py holds them against operation counts and those figures.
"""

from __future__ import annotations

from .canonical import CanonicalModel
from .joints import KINDS
from .model import BASE

ROLL_ABOVE = 60  # links; below, a written-out program of real geometry is faster (benchmarks/rolled.py)
ROLL_RESULTS = 1200  # entries; a written-out program of more takes LLVM many seconds
DEEP = 9  # freedoms between base and tip; beyond, the solve with M costs more than a filter (benchmarks/defaults.py)

INVERSE = ("inverse_dynamics", "bias_forces", "gravity_forces")
EXPLICIT = ("effective_inertia", "inertia_power", "coriolis_matrix")
DETAILED = {"inverse_dynamics": "newton_euler", "forward_dynamics": "filter_smoother"}  # the quantities of the papers


def is_large(model: CanonicalModel, results: int) -> bool:
    """Whether a program with so many entries of results runs as loops over the links."""
    return len(model.links) > ROLL_ABOVE or results > ROLL_RESULTS


def default_method(function: str, model: CanonicalModel, loops: bool = False) -> str:
    """The method of a function, "" where it has only one. loops: the program is to run as loops over the links."""
    chain = model.is_serial and model.is_single
    if function in INVERSE:
        return "khalil_kleinfinger"
    if function == "forward_dynamics":
        if loops:
            return "fd4"
        return "composite" if depth(model) <= DEEP else "fd3"
    if function == "mass_matrix":
        return "composite"
    if function == "mass_matrix_inverse":
        return "costate_covariance" if loops and chain else "factorization"
    if function in EXPLICIT:
        return "augmented_bodies" if chain else "direct"
    return ""


def depth(model: CanonicalModel) -> int:
    """The freedoms that the farthest link has from the base, its own joint's among them."""
    found: list[int] = []
    for link in model.links:
        inner = 0 if link.parent == BASE else found[link.parent]
        found.append(inner + KINDS[link.kind].nv)
    return max(found, default=0)
