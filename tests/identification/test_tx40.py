"""A real arm: the log of a Staubli TX40 (figaroh-examples, Apache-2.0), which is not part of this repository.

It is looked for in ../shared/data/tx40 beside the repository, or where LINKSWEEP_TX40 says.
"""

from __future__ import annotations

import functools
import warnings
from typing import Any

import numpy as np
import pytest
from arms import TX40

import linksweep as ls

pytestmark = [
    pytest.mark.skipif(
        not (TX40 / "excitation.csv").is_file(),
        reason=f"the log of a TX40 is not in {TX40}: set LINKSWEEP_TX40 to its folder",
    ),
    pytest.mark.filterwarnings("ignore:(delay|misfit):linksweep.errors.LogWarning"),  # it has both, see below
]
WRIST = {"motor_6": {"joint_5": 1.0, "joint_6": 1.0}}
BARS = np.array([2.4, 2.5, 1.7, 0.75, 1.4, 0.72])  # N m
PUBLISHED = {  # figaroh's values
    "viscous": (8.05, 5.53, 1.97, 1.11), "coulomb": (7.14, 8.26, 6.34, 2.48), "armature": (None, None, 0.0988, 0.0313),
}  # fmt: skip


@functools.cache
def log() -> tuple[ls.Robot, np.ndarray, np.ndarray, np.ndarray]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ls.ModelWarning)  # link 6 has no inertia in the file
        robot = ls.load(TX40 / "tx40.urdf")
    table = np.loadtxt(TX40 / "excitation.csv", delimiter=",", skiprows=1)
    return robot, table[:, 0], table[:, 1:7], table[:, 7:]


def third(t: np.ndarray, which: int) -> tuple[np.ndarray, np.ndarray]:
    """Rows to fit and rows to test: of the moving part blocks of 0.1 s, every third of them to test."""
    moving = (t >= 0.1) & (t < 7.4)
    block = np.floor((t + 1e-9) / 0.1).astype(int) % 3
    return moving & (block != which), moving & (block == which)


@functools.cache
def held_out(which: int, method: str = "weighted", cutoff: float | None = None) -> tuple[np.ndarray, Any]:
    """The rms of unfiltered torques (nv,) in the blocks that were not fitted."""
    robot, t, q, tau = log()
    fitted, tested = third(t, which) if which < 3 else ((t >= 0.1) & (t < 4.9667), (t >= 4.9667) & (t < 7.4))
    fit = ls.identify(robot, t, q, tau, weights=fitted.astype(float), drives=WRIST, cutoff=cutoff, method=method)
    return np.sqrt(np.mean(np.square(tau - fit.predict(t, q))[tested], axis=0)), fit


@pytest.mark.cases(1)
@pytest.mark.parametrize("which", [2, 1, 0])
@pytest.mark.slow
def test_blocks_that_were_not_fitted(which: int):
    rms, fit = held_out(which)
    assert (rms <= BARS).all(), rms
    assert 20.0 < fit.cutoff < 80.0 and fit.determined.all()


@pytest.mark.slow
def test_blocks_that_were_cut_out():
    """The same from a log with gaps of 0.1 s: what the fit does not see, positions too, is not there."""
    robot, t, q, tau = log()
    fitted, tested = third(t, 2)
    with pytest.warns(ls.LogWarning, match="gaps"):
        fit = ls.identify(robot, t[fitted], q[fitted], tau[fitted], drives=WRIST)
    rms = np.sqrt(np.mean(np.square(tau - fit.predict(t, q))[tested], axis=0))
    assert (rms <= BARS).all(), rms


def test_torques_stand_early():
    """By 3 ms: with that put right, unseen blocks are predicted better still."""
    robot, t, q, tau = log()
    with pytest.warns(ls.LogWarning, match="delay: .* ms early"):
        ls.identify(robot, t, q, tau, drives=WRIST, cutoff=50.0)


@pytest.mark.parametrize("method", ["entropic", "log_cholesky"])
def test_consistent_fits_predict_as_well(method: str):
    free, _ = held_out(2, cutoff=35.0)
    rms, fit = held_out(2, method, 35.0)
    assert (rms <= 1.03 * free).all() and (rms <= BARS).all()
    assert min(fit.physical_parameters.smallest.values()) > 0.0
    assert set(fit.physical_parameters.smallest) == {f"link_{k}" for k in range(1, 7)}


def test_the_last_third_is_worse_and_not_by_much():
    rms, _ = held_out(3, cutoff=35.0)
    assert (rms <= 1.25 * BARS).all()


def test_the_numbers_are_those_published():
    robot, t, q, tau = log()
    fit = ls.identify(robot, t, q, tau, drives=WRIST, cutoff=35.0)
    for what, values in PUBLISHED.items():
        for k, value in enumerate(values):
            if value is not None:
                assert abs(fit[f"joint_{k + 1}.{what}"] / value - 1.0) < 0.08, (what, k)
    assert abs(fit["motor_6.coulomb"] - 1.95) < 0.2 and abs(fit["motor_6.viscous"] - 0.616) < 0.03
    assert abs(fit["motor_6.armature"] - 0.00964) < 0.002
    assert fit.physical_parameters.invented == ("link_6",)
    robot = fit.robot
    assert not robot.singular_joints  # the file's robot has one


def test_the_wrist_needs_its_coupling():
    robot, t, q, tau = log()
    fitted, tested = third(t, 2)
    fit = ls.identify(robot, t, q, tau, weights=fitted.astype(float), cutoff=35.0)
    rms = np.sqrt(np.mean(np.square(tau - fit.predict(t, q))[tested], axis=0))
    assert rms[4] > 3.0 and rms[5] > 1.3


def test_stribeck_friction_is_seen():
    robot, t, q, tau = log()
    fitted, tested = third(t, 2)
    fit = ls.identify(
        robot, t, q, tau, weights=fitted.astype(float), drives=WRIST, cutoff=35.0, slow=0.0, stribeck=0.2,
        unknown=("inertia", "armature", "viscous", "coulomb", "stribeck", "offset"),
    )  # fmt: skip
    rms = np.sqrt(np.mean(np.square(tau - fit.predict(t, q))[tested], axis=0))
    assert (rms <= 0.9 * BARS).all()
