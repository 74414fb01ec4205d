"""Frames that do not turn with their joints, so that one rotation serves several parallel axes.

Of joints 2, 3, 4 with parallel axes each would turn every vector that crosses it. Where links 2 and 3 have frames that
only move along with them, their turns add up, q2 + q3 + q4, and joint 4 takes all of them at once. Then the inertias of
links 2 and 3 depend on q, and so does the way to the next joint: worth it where more than one vector crosses, as in
sweeps over pairs.
"""

from __future__ import annotations

from ..description.model import BASE
from ..spatial.transforms import keeps_z
from .canonical_model import CanonicalModel


def still_links(model: CanonicalModel) -> frozenset[int]:
    """Links that carry one with a parallel axis, and are themselves carried by one whose axis is not parallel: in a
    plane vectors have two entries, and there is little to turn."""
    found = {link.parent for i, link in enumerate(model.links) if _turns(model, i) and _is_parallel(model, i)}
    return frozenset(i for i in found if any(not _is_parallel(model, k) for k in model.path(i)[:-1]))


def _turns(model: CanonicalModel, i: int) -> bool:
    """Whether its joint turns it about z and nothing else."""
    kind = model.links[i].type
    return kind.nv == 1 and kind.turns and kind.commutes


def _is_parallel(model: CanonicalModel, i: int) -> bool:
    """Whether this link and the one that carries it turn about parallel axes."""
    parent = model.links[i].parent
    return parent != BASE and _turns(model, parent) and all(keeps_z(factor) for factor in model.links[i].factors)
