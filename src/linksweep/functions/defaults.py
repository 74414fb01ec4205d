"""Defaults used when an option is omitted: the method of each function, and whether it is rolled into loops.

Rules depend on the structure of the robot; nothing is traced to choose. Inertias are regrouped wherever that changes no
result (`computation.may_regroup`). docs/defaults.md shows the rules and the measurements behind them, and
tests/functions/test_defaults.py compares them with operation counts.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from ..algorithms.closed_chain.elimination import elimination_order
from ..algorithms.closed_chain.swept import LONG, can_be_swept
from ..mechanism.canonical import CanonicalLink, CanonicalModel, still_links
from ..model.model import BASE
from ..spatial.transforms import Screw
from .declaration import Rule, Structure
from .functions import FUNCTIONS

ROLL_ABOVE = 60  # links; below, a written-out program of real geometry is faster (benchmarks/rolled.py)
WRITTEN_OUT = 30_000  # operations; LLVM takes some seconds for a written-out program of so many
IN_LOOP = 5000  # operations of M^-1 times the columns of derivatives, from which on they run as a loop over columns.
# All derivatives of forward dynamics, batch 512, in a loop and written out: Solo (18 freedoms, 7,128) 0.78 us and 0.81,
# 1.1 s to compile and 2.8; Panda with fingers (9, 1,260) 0.26 us and 0.19
OPERATIONS = {name: function.operations for name, function in FUNCTIONS.items() if function.operations}
OTHERS, RESULT = (200, 0), 3  # of what is not listed, and for each entry of its results
DERIVATIVE = (606, 90)  # of torques, by one input
FOLDED = 0.4  # of the operations that are left where axes are parallel or at right angles
COMMON_FRAME = {"regressor": 0.6, "packed_regressor": 0.6}  # less of them folds: all meet in one frame
TORQUES = ("inverse_dynamics", "bias_forces", "gravity_forces", "forward_dynamics", "mass_matrix")
SHALLOW = 6  # freedoms; up to there differentiated torques cost less where only the derivative by q is asked for


RULES = {
    name: function.rules or (Rule(next(iter(function.methods))),)
    for name, function in FUNCTIONS.items()
    if function.public and "" not in function.methods
}
COLUMN = 50  # operations of a column of a constraint
CARRIED = 55  # operations of a row of a constraint at a freedom, where it is swept
SOLVES = 6  # a multiplication and an addition in each of three solves
CLOSED = {name: next(iter(f.closed_methods)) for name, f in FUNCTIONS.items() if f.closed_methods}
DETAILED = {"inverse_dynamics": "newton_euler", "forward_dynamics": "filter_smoother"}  # the quantities of the papers


def default_method(function: str, model: CanonicalModel, loops: bool = False) -> str:
    """Return the default method of a function, "" if it has only one. loops: in a rolled program."""
    if model.ties and function in CLOSED:
        return CLOSED[function]
    structure = Structure(model.depth, model.is_serial, loops, model.is_coupled)
    return next((rule.method for rule in RULES.get(function, ()) if rule.holds(structure)), "")


def predicted_operations(
    model: CanonicalModel, function: str, results: int, derivative: bool = False, loops: bool = False
) -> float:
    """Return the number of operations of the unrolled program, estimated from the structure of the robot.

    results: number of entries of the results. loops: of the rolled program, for which the geometry does not matter.
    tests/tracing/test_scaling.py compares it with programs.
    """
    per_link, per_pair = DERIVATIVE if derivative else OPERATIONS.get(function, OTHERS)
    folded = COMMON_FRAME.get(function, FOLDED)
    general = 1.0 if function not in COMMON_FRAME else folded
    share = [1.0 if loops else general if _is_general(link) else folded for link in model.links]
    inner: list[int] = []  # freedoms between the base and a link
    listed = function in OPERATIONS and function != "regressor"  # whose zeros are written one by one, or by loops
    total = 0.0 if listed or derivative else float(RESULT * results)
    if function == "jacobians" and not derivative:  # most of it is written only: joints that do not carry the frame
        carrying = sum(model.links[i].nv for frame in model.frames for i in model.path(frame.link))
        total = float(results + RESULT * 6 * carrying)
    for link, part in zip(model.links, share, strict=True):
        inner.append(0 if link.parent == BASE else inner[link.parent] + model.links[link.parent].nv)
        total += part * (per_link + per_pair * inner[-1] * link.nv)
    return total + (closing_operations(model) if function in CLOSED else 0.0)


def closing_operations(model: CanonicalModel) -> float:
    """Return the operations that constraints add to forward dynamics: columns, Omega, and its factor with fill-in."""
    paths = [{frozenset(model.path(frame.link)) for frame in (tie.a, tie.b)} for tie in model.ties]
    moved = [frozenset.union(*ends) - frozenset.intersection(*ends) for ends in paths]
    if model.depth > LONG and can_be_swept(model):
        on_path = [frozenset.union(*ends) for ends in paths]
        rows = [tie.rows for tie in model.ties]
        return float(
            sum(CARRIED * r * sum(model.links[i].nv for i in own) for r, own in zip(rows, on_path, strict=True))
        )
    order, near = elimination_order([frozenset().union(*ends) for ends in paths])
    total = 0.0
    for k in order:
        rows, freedoms = model.ties[k].rows, sum(model.links[i].nv for i in moved[k])
        beside = sum(model.ties[other].rows for other in near[k])
        total += COLUMN * freedoms + rows * freedoms**2 + rows * (rows + 2 * beside) * freedoms  # K, Y, Omega
        total += rows * (rows + beside) ** 2 + SOLVES * rows * (rows + 2 * beside)  # factor, and its uses
    return total


def _is_general(link: CanonicalLink) -> bool:
    """Return whether the joint axis is neither parallel nor perpendicular to that of the parent."""
    return any(isinstance(factor, Screw) and factor.c != 0.0 and factor.s != 0.0 for factor in link.factors)


def sweeps_serve(model: CanonicalModel, by: Collection[str]) -> bool:
    """Return whether derivatives of inverse dynamics with respect to these inputs are computed by analytical sweeps.

    They share most of their work; a single derivative may cost less by differentiating the torques.
    """
    return "qd" in by or "qdd" in by or model.depth > SHALLOW


def columns_in_loop(model: CanonicalModel) -> bool:
    """Return whether M^-1 times the columns of two derivatives of joint forces runs as a loop over the columns."""
    inner: list[int] = []  # freedoms between the base and a link, its own joint's among them
    pairs = 0  # of a freedom and one between it and the base
    for link in model.links:
        above = 0 if link.parent == BASE else inner[link.parent]
        inner.append(above + link.nv)
        pairs += above * link.nv + link.nv * (link.nv - 1) // 2
    return 4 * model.nv * pairs >= IN_LOOP


def with_still_frames(model: CanonicalModel, functions: Collection[str]) -> CanonicalModel:
    """Return the model with frames that do not turn between parallel axes, where that saves operations.

    It does for derivatives of joint forces and accelerations, if nothing else is computed. Springs and constraints need
    frames that turn.
    """
    serves = all(function in TORQUES for function in functions)
    return replace(model, still=still_links(model)) if serves and not (model.ties or model.springs) else model
