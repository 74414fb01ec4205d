"""Joints that follow others: gears, belts, mimic joints. q = G q_r + c with a constant G.

The robot has the coordinates of the joints that lead, q_r. With rates G v_r, by virtual work tau_r = G^T tau and
M_r = G^T M G: G is folded in where a program is traced (mechanism/sweeps.py), and everything that a Robot can do knows
it.
"""

from __future__ import annotations

import numpy as np

from ..mechanism.canonical import CanonicalModel


def expansion(model: CanonicalModel) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """G of coordinates, G of rates, and c."""
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
