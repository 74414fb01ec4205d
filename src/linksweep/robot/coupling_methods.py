"""What users call for joints that follow others: gears, belts, mimic joints. q = G q_r + c with a constant G.

The robot has the coordinates of the joints that lead, q_r. With rates G v_r, by virtual work tau_r = G^T tau and
M_r = G^T M G: G is folded in where a program is traced (mechanism/sweeps.py), and everything that a Robot can do knows
it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from ..description.couplings import coupled
from ..description.model import Coupling
from ..support.lazy import lazy
from ..support.numbers import real_vectors

if TYPE_CHECKING:
    from ..description.model import Model
    from ..mechanism.canonical import CanonicalModel
    from .robot import Robot


class CouplingMethods:
    """The part of `Robot` that knows joints that follow others."""

    if TYPE_CHECKING:
        model: Model
        canonical: Any
        nq: Any
        nv: Any

        def _edited(self, model: Model) -> Robot: ...

    @property
    def couplings(self) -> tuple[Coupling, ...]:
        """Who follows whom; leaders follow none."""
        return self.model.couplings

    def with_couplings(self, couplings: Sequence[Coupling]) -> Robot:
        """The same robot, some of whose joints follow others: its coordinates are those of the joints that lead.

        `linksweep.Coupling(joint, leader, multiplier, offset)` says q[joint] = multiplier q[leader] + offset. A leader
        may follow another joint. Rows of f_ext stay those of `link_names`, all links.
        """
        return self._edited(coupled(self.model, couplings))

    @lazy
    def uncoupled(self) -> Robot:
        """The robot in which every joint is free; itself, where none follows another."""
        return self._edited(replace(self.model, couplings=()) if self.model.couplings else self.model)

    def expand(self, q: ArrayLike) -> np.ndarray:
        """Coordinates (..., nq) of `uncoupled`: G q + c."""
        own = real_vectors("q", q, self.nq)
        to_q, _, shift = self._expansion
        return own @ to_q.T.astype(own.dtype) + shift.astype(own.dtype)

    def expand_rates(self, v: ArrayLike) -> np.ndarray:
        """Rates or accelerations (..., nv) of `uncoupled`: G v."""
        own = real_vectors("v", v, self.nv)
        return own @ self._expansion[1].T.astype(own.dtype)

    def reduce_forces(self, tau: ArrayLike) -> np.ndarray:
        """Joint forces (..., nv) that do the same work as these of `uncoupled`: G^T tau."""
        full = real_vectors("tau", tau, len(self._expansion[1]))
        return full @ self._expansion[1].astype(full.dtype)

    @lazy
    def _expansion(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """G of coordinates, G of rates, and c."""
        return expansion(self.canonical)


def expansion(model: CanonicalModel) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    q_blocks, v_blocks, shifts = [], [], []
    for link in sorted(model.links, key=lambda link: link.row):
        for blocks, count, start, size in (
            (q_blocks, link.nq, link.q_start, model.nq), (v_blocks, link.nv, link.start, model.nv),
        ):  # fmt: skip
            block = np.zeros((count, size))
            block[:, start : start + count] = np.eye(count) * float(link.ratio)
            blocks.append(block)
        shifts += [float(link.shift)] * link.nq
    return np.concatenate(q_blocks), np.concatenate(v_blocks), np.array(shifts)
