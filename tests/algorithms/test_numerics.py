"""Rounding in the inertia updates: Joseph's form, and the errors of all forms on chains that are hard to compute."""

from __future__ import annotations

import importlib.util
import sys
from fractions import Fraction
from pathlib import Path
from typing import Any

import mpmath
import numpy as np
import pytest

from linksweep.mechanism.joints import JointInertia, Span, joseph, updated_inertia
from linksweep.spatial.algebra import ArticulatedInertia, Force, Motion, Vec, leaves

ROOT = Path(__file__).parents[2]
HARD = "heavy tip, 1e+08, almost points"


# ---- Joseph's form ---------------------------------------------------------------------------------------------


def of_dense(p: Any) -> ArticulatedInertia:
    return ArticulatedInertia.of_rows([list(row) for row in p])


def dense(P: ArticulatedInertia) -> np.ndarray:
    columns = [leaves(P @ unit(k)) for k in range(6)]
    return np.array(columns, dtype=object).T


def unit(k: int) -> Motion:
    entries = [1.0 if i == k else 0.0 for i in range(6)]
    return Motion(Vec(*entries[:3]), Vec(*entries[3:]))


def force(entries: Any) -> Force:
    return Force(Vec(*entries[:3]), Vec(*entries[3:]))


def fractions(rng: np.random.Generator, *shape: int) -> np.ndarray:
    return np.vectorize(lambda x: Fraction(int(x), 16), otypes=[object])(rng.integers(-40, 40, shape))


@pytest.mark.parametrize("freedoms", [(2,), (5,), (0, 1, 2), (0, 1, 2, 3, 4, 5)], ids=str)
@pytest.mark.parametrize("armature", [Fraction(0), Fraction(3, 8)], ids=str)
def test_joseph_is_the_product_it_says(freedoms: tuple[int, ...], armature: Fraction):
    """(I - G H) P (I - G H)^T + G R G^T, exactly, for any gain: all numbers are whole sixteenths, none is rounded."""
    rng = np.random.default_rng(len(freedoms))
    S, G = fractions(rng, 6, 6), fractions(rng, 6, len(freedoms))
    P = S @ S.T
    H = np.array([[Fraction(int(i == f)) for i in range(6)] for f in freedoms], dtype=object)
    keep = np.array([[Fraction(int(i == j)) for j in range(6)] for i in range(6)], dtype=object) - G @ H
    right = keep @ P @ keep.T + armature * (G @ G.T)
    gain, h_t = Span([force(column) for column in G.T]), Span([unit(f) for f in freedoms])
    found = dense(joseph(of_dense(P), h_t, gain, armature))
    assert (found == right).all()


def test_joseph_bears_an_inexact_gain():
    """With a gain off by 1e-4, (51) is off by the square of that and stays nonnegative; (43) does neither."""
    rng = np.random.default_rng(4)
    S = rng.normal(size=(6, 6))
    P, h_t, armature = of_dense(S @ S.T), Span([unit(2)]), 0.2
    P_H = P @ h_t
    exact = P_H.over(JointInertia(h_t, P_H, armature))
    off = Span([g + force(1e-4 * rng.normal(size=6)) for g in exact.columns])
    right = dense(updated_inertia("43", P, h_t, P_H, exact, armature)).astype(float)
    errors = {
        form: np.abs(dense(updated_inertia(form, P, h_t, P_H, off, armature)).astype(float) - right).max()
        for form in ("43", "51")
    }
    assert errors["51"] < 1e-6 < 1e-5 < errors["43"]
    thin = S[:, :3] @ S[:, :3].T  # a singular inertia: three directions in which nothing moves
    P, P_H = of_dense(thin), of_dense(thin) @ h_t
    off = Span([g * 1.01 for g in P_H.over(JointInertia(h_t, P_H, 0.0)).columns])
    least = {
        form: np.linalg.eigvalsh(dense(updated_inertia(form, P, h_t, P_H, off, 0.0)).astype(float)).min()
        for form in ("43", "51")
    }
    assert least["51"] >= -1e-14 * np.abs(thin).max() and least["43"] < -1e-3


def test_joseph_leaves_nothing_along_a_joint_without_armature():
    rng = np.random.default_rng(5)
    S = rng.normal(size=(6, 6))
    P, h_t = of_dense(S @ S.T), Span([unit(5)])
    P_H = P @ h_t
    P_plus = dense(joseph(P, h_t, P_H.over(JointInertia(h_t, P_H, 0.0)), 0.0)).astype(float)
    assert (P_plus[5] == 0).all() and (P_plus[:, 5] == 0).all()


# ---- errors of the forms --------------------------------------------------------------------------------------


@pytest.mark.slow
def test_errors_of_the_forms_on_two_chains():
    """Two states of two chains: D of the factored form, and accelerations near the yardstick."""
    sys.path.insert(0, str(ROOT / "benchmarks"))
    try:
        spec = importlib.util.spec_from_file_location("updates", ROOT / "benchmarks" / "updates.py")
        assert spec is not None and spec.loader is not None
        updates = importlib.util.module_from_spec(spec)
        sys.modules["updates"] = updates  # its dataclasses look there
        spec.loader.exec_module(updates)
    finally:
        sys.path.pop(0)
    chains = updates.chains()
    with mpmath.workdps(updates.DIGITS):
        hard, plain = (updates.compared(name, chains[name], 2) for name in (HARD, "equal masses"))
    for form in ("filter_smoother", "filter_smoother_50", "filter_smoother_51"):
        assert hard.D[form] > 20 * hard.D["filter_smoother_ud"]
    for row in (hard, plain):
        assert row.least > 0 and max(row.qdd.values()) <= 5 * row.torques
