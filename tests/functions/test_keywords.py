"""Compiled functions by the names of their inputs, and what `linksweep.` completes."""

from __future__ import annotations

import pickle
import subprocess
import sys
from typing import Any

import numpy as np
import pytest
from error_checks import refused

import linksweep as ls
from linksweep.errors import ArgumentError

PUMA = ls.robots.puma560()
Q, QD, TAU = np.random.default_rng(0).uniform(-1, 1, (3, 6))


@pytest.mark.parametrize("options", [{}, {"dtype": "float32"}, {"threads": 2}, {"backend": "interpreter"}])
def test_by_name(options: dict[str, Any]):
    f = PUMA.compile("forward_dynamics", **options)
    wanted = f(Q, QD, TAU)
    assert f.inputs == ("q", "qd", "tau")
    for found in (f(q=Q, qd=QD, tau=TAU), f(tau=TAU, q=Q, qd=QD), f(Q, tau=TAU, qd=QD), f(Q, QD, tau=TAU)):
        np.testing.assert_array_equal(found, wanted)
        assert found.dtype == wanted.dtype
    out = np.empty(6, wanted.dtype)
    assert f(q=Q, qd=QD, tau=TAU, out=out) is out
    np.testing.assert_array_equal(out, wanted)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(f))(tau=TAU, q=Q, qd=QD), wanted)


def test_by_name_in_batches_and_float32():
    f = PUMA.compile("forward_dynamics")
    q = np.random.default_rng(1).uniform(-1, 1, (5, 6))
    np.testing.assert_array_equal(f(qd=QD, q=q, tau=TAU), f(q, QD, TAU))
    single = [x.astype(np.float32) for x in (Q, QD, TAU)]
    found = f(**dict(zip(f.inputs, single, strict=True)))
    assert found.dtype == np.float32
    np.testing.assert_array_equal(found, f(*single))


def test_parameters_and_several_results_by_name():
    f = PUMA.compile("inverse_dynamics", parameters=("payload", "gravity"))
    load = ls.body(2.0, (0.0, 0.0, 0.1))
    wanted = f(Q, QD, TAU, load, (0, 0, -9.81))
    np.testing.assert_array_equal(f(Q, QD, qdd=TAU, gravity=(0, 0, -9.81), payload=load), wanted)
    batch = np.stack([Q, QD])
    shared = f(q=batch, qd=QD, qdd=TAU, gravity=(0, 0, -9.81), payload=load)
    np.testing.assert_array_equal(shared, f(batch, QD, TAU, load, (0, 0, -9.81)))
    both = PUMA.compile(["mass_matrix", "bias_forces"])
    for found, expected in zip(both(qd=QD, q=Q), both(Q, QD), strict=True):
        np.testing.assert_array_equal(found, expected)
    placed = PUMA.compile("gravity_forces", parameters=("payload:tool",))
    np.testing.assert_array_equal(placed(Q, **{"payload:tool": load}), placed(Q, load))


REFUSED = {
    "a misspelt name": (lambda f: f(q=Q, qd=QD, tua=TAU), "there is no argument 'tua', expected q, qd, tau, or out"),
    "another function's": (lambda f: f(q=Q, qd=QD, qdd=TAU), "there is no argument 'qdd', expected q, qd, tau, or out"),
    "twice": (lambda f: f(Q, QD, TAU, q=Q), "q is given by position and by name, expected it once"),
    "one missing": (lambda f: f(q=Q, tau=TAU), "qd is missing, expected q, qd, tau"),
    "two missing": (lambda f: f(tau=TAU), "q, qd is missing, expected q, qd, tau"),
    "wrong shape": (lambda f: f(q=Q[:5], qd=QD, tau=TAU), "q has 5 entries in its last axis"),
    "wrong by position": (lambda f: f(Q, QD), r"got 2 arguments, expected 3 \(q, qd, tau\), pass tau too"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_one_sentence(case: str):
    call, says = REFUSED[case]
    refused(ArgumentError, f"forward_dynamics: {says}", lambda: call(PUMA.compile("forward_dynamics")))


def test_only_public_names_are_completed():
    code = (
        "import linksweep as ls\n"
        "assert dir(ls) == sorted(ls.__all__), dir(ls)\n"
        "ls.robots.puma560().gravity_forces([0.0] * 6)\n"
        "assert dir(ls) == sorted(ls.__all__), 'what is imported meanwhile is not public'\n"
        "for part in (ls.conventions, ls.motion, ls.plots, ls.robots, ls.simulation, ls.studies):\n"
        "    assert dir(part) == sorted(part.__all__), part\n"
        "    assert all(hasattr(part, name) for name in part.__all__), part\n"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
