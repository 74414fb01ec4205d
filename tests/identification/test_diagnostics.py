"""Named remarks: every fault of a log is remarked, and none of a log that is as it should be."""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from joint_logs import (
    Case,
    JointLog,
    arm,
    clean_cases,
    clean_log,
    corrupted_cases,
    flipped_torque,
    late,
    scaled_time,
    scaled_torques,
    swapped,
)

import linksweep as ls
from linksweep.identification.log_tests import covariance_of_sum, critical_value


def remarks_of(log: JointLog, velocities: bool = False, **options: Any) -> dict[str, str]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ls.LogWarning)
        try:
            return dict(ls.identify(log.robot, *log.arrays(velocities), **options).remarks)
        except ls.ArgumentError as error:
            return {"error": str(error)}


def labels(cases: list[Case]) -> list[Any]:
    return [pytest.param(case, id=case.label) for case in cases]


@pytest.mark.slow
@pytest.mark.parametrize("case", labels(corrupted_cases()))
def test_a_fault_is_remarked(case: Case):
    found = remarks_of(case.log(), case.velocities, cutoff=case.cutoff)
    assert case.names & found.keys(), found


@pytest.mark.slow
@pytest.mark.parametrize("case", labels(clean_cases()))
def test_a_good_log_has_no_remark(case: Case):
    assert not remarks_of(case.log(), case.velocities, cutoff=case.cutoff)


def log(name: str = "ur5", seed: int = 0, **options: Any) -> JointLog:
    return clean_log(name, seed, **{"duration": 10.0, "rate": 500.0, **options})


def test_a_wrist_torque_of_the_other_sign():
    found = remarks_of(flipped_torque(log(dry=0.2), 4), cutoff=10.0)
    assert "wrist_2_joint" in found["signs"]
    assert not remarks_of(log(dry=0.2), cutoff=10.0)


def test_friction_that_drives_is_impossible():
    """Without gravity and with joints that do not feel each other only friction tells."""
    robot = ls.robots.planar(2).with_gravity((0, 0, 0)).lock("joint2")
    t = np.arange(4000) / 500.0
    q, qd, qdd = (x[:, None] for x in (np.sin(2 * t) + np.sin(3.3 * t), *np.zeros((2, len(t)))))
    qd[:, 0], qdd[:, 0] = 2 * np.cos(2 * t) + 3.3 * np.cos(3.3 * t), -4 * np.sin(2 * t) - 3.3**2 * np.sin(3.3 * t)
    tau = robot.inverse_dynamics(q, qd, qdd) - 0.4 * qd - 0.5 * np.sign(qd)
    tau = tau + 0.05 * np.random.default_rng(0).normal(size=tau.shape)
    found = remarks_of(JointLog(robot, t, q, qd, tau, tau, 0.002), cutoff=20.0)
    assert "joint1.viscous = -0.4" in found["impossible"] and "joint1" in found["signs"]


@pytest.mark.parametrize("milliseconds", [2.0, -4.0, 20.0])
def test_torques_that_are_late(milliseconds: float):
    found = remarks_of(late(log(), 1e-3 * milliseconds), cutoff=10.0)
    assert list(found) == ["delay"]
    assert abs(1e3 * float(found["delay"].rpartition("delay=")[2].split()[0]) - milliseconds) < 0.3


def test_joints_in_the_place_of_each_other():
    found = remarks_of(swapped(log(), 1, 2), cutoff=10.0)
    assert "positions and torques of shoulder_lift_joint and elbow_joint" in found["order"]
    found = remarks_of(swapped(log(), 1, 2, "torques"), cutoff=10.0)
    assert "the torques of shoulder_lift_joint and elbow_joint" in found["order"]


@pytest.mark.slow
def test_time_and_torques_in_other_units():
    for factor, word in ((10.0, "large"), (0.1, "small")):
        found = remarks_of(scaled_time(log(), factor), cutoff=10.0 / factor)
        assert 8.0 < float(found["time"].partition(" times too " + word)[0].split()[-1]) < 12.0
    found = remarks_of(scaled_torques(log(), 0.3), cutoff=10.0)
    assert 0.2 < float(found["scale"].partition(" times those")[0].split()[-1]) < 0.4
    found = remarks_of(scaled_torques(log(), np.array([1, 1, 3, 1, 1, 1])), cutoff=10.0)
    assert "elbow_joint are about 3 times" in found["scale"]


def test_velocities_that_no_drive_reaches():
    fast = replace(log(), t=log().t / 8.0)
    assert "speeds" in remarks_of(fast, cutoff=80.0)


@pytest.mark.slow
def test_rounded_axes_do_not_make_numbers_unknown():
    """1.5708 for a right angle tells two inertias apart that no log can."""
    own = log("xarm7")
    fit = ls.identify(own.robot, *own.arrays(), cutoff=10.0)
    assert fit.determined.all() and not fit.remarks


@pytest.mark.slow
def test_a_stribeck_term_far_below_the_speeds_of_the_motion():
    own = log(model="stribeck")
    unknown = ("inertia", "armature", "viscous", "coulomb", "stribeck", "offset")
    plain = ls.identify(own.robot, *own.arrays(), cutoff=10.0)
    for speed in (0.2, 0.02, 0.002):
        fit = ls.identify(own.robot, *own.arrays(), cutoff=10.0, unknown=unknown, stribeck=speed)
        others = [k for k, name in enumerate(fit.names) if "stribeck" not in name]
        assert fit.determined[others].all() and (fit.rms < 1.1 * plain.rms).all()
    with pytest.raises(ls.ArgumentError, match="expected 'stribeck' in it"):
        ls.identify(own.robot, *own.arrays(), cutoff=10.0, stribeck=0.02)


def test_warnings_name_the_line_that_called():
    own = late(log(), 0.01)
    with pytest.warns(ls.LogWarning, match="delay") as caught:
        ls.identify(own.robot, *own.arrays(), cutoff=10.0)
    assert {warning.filename for warning in caught} == {__file__}


def test_errors_from_blocks_count_autocorrelation():
    """Of white rows, and of rows that remember for longer than a block, the variance of a sum is right or too large."""
    rng = np.random.default_rng(0)
    for memory in (0.0, 0.9):
        ratios = []
        for _ in range(300):
            rows = rng.normal(size=(24, 10))
            flat = rows.ravel()
            for k in range(1, len(flat)):
                flat[k] = memory * flat[k - 1] + np.sqrt(1 - memory**2) * flat[k]
            blocks = rows.sum(axis=1)
            ratios.append(blocks.sum() / np.sqrt(covariance_of_sum(blocks[:, None])[0, 0]))
        assert 0.8 < np.std(ratios) < 1.3
        assert np.mean(np.abs(ratios) > critical_value(24)) < 0.02
    assert critical_value(24, 6) > critical_value(24) > critical_value(1000) > 3.8


@pytest.mark.cases(1)
@pytest.mark.parametrize("name", ["ur5", "panda"])
def test_a_robot_keeps_the_offsets(name: str):
    own, other = log(name), log(name, 1, truth=0)
    fit = ls.identify(own.robot, *own.arrays(), cutoff=10.0)
    smooth = fit.samples
    used = smooth.weight > 0
    torques = fit.robot.inverse_dynamics(smooth.q, smooth.qd, smooth.qdd, dissipation=True)
    rest = np.sqrt(np.mean(np.square(torques - smooth.tau), axis=0, where=used))
    assert (rest < 1.05 * fit.rms).all() and np.abs(fit.robot.torque_offset).min() > 0.0
    without = fit.robot.with_dissipation(torque_offset=0.0)
    assert not fit.physical_parameters.left_out and arm(name).torque_offset.any() == 0
    torques = without.inverse_dynamics(smooth.q, smooth.qd, smooth.qdd, dissipation=True)
    assert (np.sqrt(np.mean(np.square(torques - smooth.tau), axis=0, where=used)) > 1.5 * rest).any()
    found = fit.validate(other.t, other.q, other.tau)
    assert (found.rms < 1.5 * fit.rms).all() and found.predicted.shape == other.tau.shape
