"""The identities of G. Rodriguez and K. Kreutz 1988, Part I: Appendix A, (a.1)-(a.51), and the facts that rest on it.

Each is a list of equations between operators (or matrices) of one chain: the two sides, and further terms against whose
size rounding is to be judged. They hold as stated (docs/errata.md); with armature (a.1), (a.47) and (3.20) gain R.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

import numpy as np

from .chain import Operand, SpatialOperator
from .operators import SpatialOperators

Equations = list[tuple[Operand, ...]]


def block(a: np.ndarray, k: int, j: int) -> np.ndarray:
    """Block (k, j) of a 6N by 6N matrix, numbered from 1 as in the paper."""
    return a[6 * k - 6 : 6 * k, 6 * j - 6 : 6 * j]


def diagonal(blocks: list[np.ndarray]) -> np.ndarray:
    out = np.zeros((6 * len(blocks), 6 * len(blocks)), dtype=np.result_type(*blocks))
    for k, x in enumerate(blocks, start=1):
        block(out, k, k)[:] = x
    return out


def differences(o: SpatialOperators, left: str, right: str) -> np.ndarray:
    """(a.19), (a.29): T(k, m) = sum of [left(k, i+1) right(i+1, m) - left(k, i) right(i, m)], k > m.

    On a tree, i + 1 is the link that carries link i, on the way from m inward to k.
    """
    a, b = o.dense(getattr(o, left)), o.dense(getattr(o, right))
    out = np.zeros_like(a)
    for m in range(1, o.N + 1):
        way = inward(o, m)
        for n, k in enumerate(way[1:], start=1):
            for i, next_i in pairwise(way[: n + 1]):
                block(out, k, m)[:] += block(a, k, next_i) @ block(b, next_i, m) - block(a, k, i) @ block(b, i, m)
    return out


def inward(o: SpatialOperators, k: int) -> list[int]:
    """The links from k to the base."""
    way = [k]
    while o.carriers[way[-1] - 1] <= o.N:
        way.append(o.carriers[way[-1] - 1])
    return way


def gain_sum(o: SpatialOperators, left: str, right: str) -> np.ndarray:
    """(a.21), (a.31): sum of left(k, i+1) L(i) H(i) right(i, m), k > m."""
    a, b, through = o.dense(getattr(o, left)), o.dense(getattr(o, right)), o.dense(o.L @ o.H)
    out = np.zeros_like(a)
    for m in range(1, o.N + 1):
        way = inward(o, m)
        for n, k in enumerate(way[1:], start=1):
            for i, next_i in pairwise(way[: n + 1]):
                block(out, k, m)[:] += block(a, k, next_i) @ block(through, i, i) @ block(b, i, m)
    return out


def covariance(o: SpatialOperators, left: Operand, right: Operand) -> np.ndarray:
    """(a.44): r(k+1) = left(k+1, k) r(k) right^T(k+1, k) + M(k+1), r(0) = 0; on a tree the sum over outer links."""
    left, right, M = o.dense(left), o.dense(right), o.dense(o.M)
    blocks = [block(M, k, k).copy() for k in range(1, o.N + 1)]
    for k, carrier in enumerate(o.carriers, start=1):
        if carrier <= o.N:
            blocks[carrier - 1] = blocks[carrier - 1] + block(left, k, k) @ blocks[k - 1] @ block(right, k, k).T
    return diagonal(blocks)


def steps(o: SpatialOperators) -> np.ndarray:
    """diag phi(k+1, k): blocks below the diagonal of phi, and of links on the base from E."""
    phi, E = o.dense(o.phi), o.dense(o.E)
    of_base = [E[6 * k - 6 : 6 * k].T for k in range(1, o.N + 1)]
    carried = enumerate(o.carriers, start=1)
    return diagonal([block(phi, carrier, k) if carrier <= o.N else of_base[k - 1] for k, carrier in carried])


def a44(o: SpatialOperators) -> Equations:
    middle = o.dense(o.psi @ o.M @ o.phi.T)
    return [
        (covariance(o, o.Delta_psi, o.Delta_phi), o.P),
        (diagonal([block(middle, k, k) for k in range(1, o.N + 1)]), o.P),
    ]


def lemma_a1(o: SpatialOperators) -> Equations:
    """(a.45) for the paper's psi, and for phi with phi (Corollary A.1)."""
    r, c = (covariance(o, left, o.Delta_phi) for left in (o.Delta_psi, o.Delta_phi))
    r, c = (SpatialOperator("r", a.shape, a.__matmul__, a.T.__matmul__) for a in (r, c))
    return [
        (o.psi @ o.M @ o.phi.T, r + o.psi_tilde @ r + r @ o.phi_tilde.T),
        (o.phi @ o.M @ o.phi.T, c + o.phi_tilde @ c + c @ o.phi_tilde.T),
    ]


def a49(o: SpatialOperators) -> Equations:
    theta = o.S @ o.Delta_phi @ o.P @ o.H.T @ o.D_inv @ o.H @ o.P @ o.Delta_phi.T @ o.S.T
    pi = o.M - theta
    return [
        (o.P, o.S @ o.Delta_phi @ o.P @ o.Delta_phi.T @ o.S.T + pi),
        (o.phi @ pi @ o.phi.T, o.P + o.phi_tilde @ o.P + o.P @ o.phi_tilde.T),
        (o.phi @ theta @ o.phi.T, o.phi_tilde @ o.P @ o.H.T @ o.D_inv @ o.H @ o.P @ o.phi_tilde.T, o.phi @ o.P),
    ]


def a47(o: SpatialOperators) -> Equations:
    """With armature the gains bring its noise in: M + S L R L^T S^T in place of M, docs/errata.md on (51)."""
    noise = o.M + o.S @ o.L @ o.R @ o.L.T @ o.S.T
    return [(o.psi @ noise @ o.psi.T, o.P + o.psi_tilde @ o.P + o.P @ o.psi_tilde.T)]


def a50_left(o: SpatialOperators) -> Operand:
    return o.factor_inverse.T @ o.D_inv @ o.H


IDENTITIES: dict[str, Callable[[SpatialOperators], Equations]] = {
    "(a.1)": lambda o: [(o.D, o.H @ o.P @ o.H.T + o.R)],
    "(a.2)": lambda o: [(o.G, o.P @ o.H.T @ o.D_inv), (o.D @ o.D_inv, o.I_N)],
    "(a.3)": lambda o: [(o.phi_tilde, o.phi - o.I), (o.phi_tilde, o.dense(o.phi) - np.eye(6 * o.N))],
    "(a.4)": lambda o: [(o.Delta_phi, steps(o))],
    "(a.5)": lambda o: [(o.Delta_psi, o.Delta_phi - o.L @ o.H)],
    "(a.6)": lambda o: [(o.Phi, o.phi @ o.S)],
    "(a.7)": lambda o: [(o.Psi, o.psi @ o.S)],
    "(a.8)": lambda o: [(o.Psi @ o.Delta_psi, o.psi_tilde)],
    "(a.9)": lambda o: [(o.Phi @ o.Delta_phi, o.phi_tilde)],
    "(a.10)": lambda o: [
        ((o.I - o.S @ o.Delta_psi) @ o.psi, o.I, o.psi), (o.psi @ (o.I - o.S @ o.Delta_psi), o.I, o.psi),
    ],
    "(a.11)": lambda o: [
        ((o.I - o.S @ o.Delta_phi) @ o.phi, o.I, o.phi), (o.phi @ (o.I - o.S @ o.Delta_phi), o.I, o.phi),
    ],
    "(a.12)": lambda o: [(o.L, o.Delta_phi @ o.G)],
    "(a.13)": lambda o: [(o.phi_tilde @ o.G, o.Phi @ o.L)],
    "(a.14)": lambda o: [(o.phi, o.psi @ (o.I + o.S @ o.L @ o.H @ o.phi))],
    "(a.15)": lambda o: [(o.psi, (o.I - o.Psi @ o.L @ o.H) @ o.phi, o.phi)],
    "(a.16)": lambda o: [(o.Phi, o.Psi @ (o.I + o.L @ o.H @ o.Phi))],
    "(a.17)": lambda o: [(o.Psi, (o.I - o.Psi @ o.L @ o.H) @ o.Phi, o.Phi)],
    "(a.18)": lambda o: [
        (o.phi - o.psi, o.Psi @ o.L @ o.H @ o.phi, o.phi), (o.phi - o.psi, o.psi @ o.S @ o.L @ o.H @ o.phi, o.phi),
    ],
    "(a.19)": lambda o: [(differences(o, "psi", "phi"), gain_sum(o, "psi", "phi"), o.phi)],
    "(a.20)": lambda o: [(differences(o, "psi", "phi"), o.phi - o.psi, o.phi)],
    "(a.21)": lambda o: [(gain_sum(o, "psi", "phi"), o.phi - o.psi, o.phi)],
    "(a.22)": lambda o: [(o.phi, (o.I + o.Phi @ o.L @ o.H) @ o.psi)],
    "(a.23)": lambda o: [(o.psi, o.phi @ (o.I - o.S @ o.L @ o.H @ o.psi), o.phi)],
    "(a.24)": lambda o: [(o.Phi, (o.I + o.Phi @ o.L @ o.H) @ o.Psi)],
    "(a.25)": lambda o: [(o.Psi, o.Phi @ (o.I - o.L @ o.H @ o.Psi), o.Phi)],
    "(a.26)": lambda o: [(o.Phi @ o.L @ o.H @ o.psi, o.Psi @ o.L @ o.H @ o.phi)],
    "(a.27)": lambda o: [(o.Phi @ o.L @ o.H @ o.Psi, o.Psi @ o.L @ o.H @ o.Phi)],
    "(a.28)": lambda o: [
        (o.phi - o.psi, o.Phi @ o.L @ o.H @ o.psi, o.phi), (o.phi - o.psi, o.phi @ o.S @ o.L @ o.H @ o.psi, o.phi),
    ],
    "(a.29)": lambda o: [(differences(o, "phi", "psi"), -gain_sum(o, "phi", "psi"), o.phi)],
    "(a.30)": lambda o: [(differences(o, "phi", "psi"), o.psi - o.phi, o.phi)],
    "(a.31)": lambda o: [(-gain_sum(o, "phi", "psi"), o.psi - o.phi, o.phi)],
    "(a.32)": lambda o: [(o.H @ o.phi, (o.I_N + o.H @ o.Phi @ o.L) @ o.H @ o.psi)],
    "(a.33)": lambda o: [(o.H @ o.Phi, (o.I_N + o.H @ o.Phi @ o.L) @ o.H @ o.Psi)],
    "(a.34)": lambda o: [(o.H @ o.Psi, o.H @ o.Phi @ (o.I - o.L @ o.H @ o.Psi), o.H @ o.Phi)],
    "(a.35)": lambda o: [(o.H @ o.psi, (o.I_N - o.H @ o.Psi @ o.L) @ o.H @ o.phi, o.H @ o.phi)],
    "(a.36)": lambda o: [(o.H @ o.Psi, (o.I_N - o.H @ o.Psi @ o.L) @ o.H @ o.Phi, o.H @ o.Phi)],
    "(a.37)": lambda o: [(o.H @ o.Phi, o.H @ o.Psi @ (o.I + o.L @ o.H @ o.Phi))],
    "(a.38)": lambda o: [(o.H @ o.Phi @ o.L @ o.H @ o.Psi, o.H @ o.Psi @ o.L @ o.H @ o.Phi)],
    "(a.39)": lambda o: [(o.Phi @ o.L, o.Psi @ o.L @ (o.I_N + o.H @ o.Phi @ o.L))],
    "(a.40)": lambda o: [(o.Psi @ o.L, (o.I - o.Psi @ o.L @ o.H) @ o.Phi @ o.L, o.Phi @ o.L)],
    "(a.41)": lambda o: [(o.Psi @ o.L, o.Phi @ o.L @ (o.I_N - o.H @ o.Psi @ o.L), o.Phi @ o.L)],
    "(a.42)": lambda o: [(o.Phi @ o.L, (o.I + o.Phi @ o.L @ o.H) @ o.Psi @ o.L)],
    "(a.43)": lambda o: [(o.Psi @ o.L @ o.H @ o.Phi @ o.L, o.Phi @ o.L @ o.H @ o.Psi @ o.L)],
    "(a.44)": a44,
    "(a.45)": lemma_a1,
    "(a.46)": lambda o: [(o.psi @ o.M @ o.phi.T, o.P + o.psi_tilde @ o.P + o.P @ o.phi_tilde.T)],
    "(a.47)": a47,
    "(a.48)": lambda o: [(
        o.phi @ o.M @ o.phi.T,
        o.P + o.phi_tilde @ o.P + o.P @ o.phi_tilde.T
        + o.phi_tilde @ o.P @ o.H.T @ o.D_inv @ o.H @ o.P @ o.phi_tilde.T,
    )],
    "(a.49)": a49,
    "(a.50)": lambda o: [(
        a50_left(o) @ o.psi @ o.M @ o.phi.T,
        a50_left(o) @ o.psi_tilde @ o.P + o.L.T @ o.Psi.T @ (o.I - o.G @ o.H).T + o.G.T,
        a50_left(o) @ o.P,
    )],
    "(a.51)": lambda o: [(
        a50_left(o) @ o.P + a50_left(o) @ o.P @ o.phi_tilde.T, o.L.T @ o.Psi.T @ (o.I - o.G @ o.H).T + o.G.T,
        a50_left(o) @ o.P,
    )],
    "Fact 4.1": lambda o: [
        (o.mass, (o.I_N + o.H @ o.Phi @ o.L) @ o.D @ (o.I_N + o.H @ o.Phi @ o.L).T),
        (o.mass, o.factor @ o.D @ o.factor.T),
        (np.triu(o.dense(o.factor)), np.eye(o.I_N.shape[0])),
    ],
    "Fact 4.2": lambda o: [
        ((o.I_N + o.H @ o.Phi @ o.L) @ (o.I_N - o.H @ o.Psi @ o.L), o.I_N, o.factor),
        (o.factor_inverse @ o.factor, o.I_N, o.factor),
    ],
    "Theorem 4.1": lambda o: [
        (o.mass_inverse, (o.I_N - o.H @ o.Psi @ o.L).T @ o.D_inv @ (o.I_N - o.H @ o.Psi @ o.L)),
        (o.mass @ o.mass_inverse, o.I_N, np.abs(o.dense(o.mass)) @ np.abs(o.dense(o.mass_inverse))),
    ],
    "Identity 5.1, (5.4)": lambda o: [((o.I_N - o.H @ o.Psi @ o.L) @ o.H @ o.phi, o.H @ o.psi, o.H @ o.phi)],
    "(5.3)": lambda o: [(o.Psi, o.psi @ o.S)],
    "(5.11)": lambda o: [(o.psi_tilde, o.psi - o.I)],
    "(3.20)": lambda o: [(o.mass, o.H @ o.phi @ o.M @ o.phi.T @ o.H.T + o.R), (o.J.T, o.H @ o.phi @ o.B)],
}  # fmt: skip
