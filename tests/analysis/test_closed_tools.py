"""check, prove, explain, details and info of robots with constraints: they work and say what they cover, or refuse."""

from __future__ import annotations

import json
from pathlib import Path

import linkages
import numpy as np
import pytest

import linksweep as ls
from linksweep import ArgumentError
from linksweep.cli.inspection import _facts, _lines


@pytest.mark.cases(1)
@pytest.mark.parametrize("make", [linkages.five_bar, linkages.gripper, ls.robots.andrews])
def test_check_compares_constrained_accelerations(make):
    report = ls.check(make(), samples=4)
    assert report.ok
    rows = [row for row in report.differences if row.function == "constrained forward_dynamics"]
    assert {row.against for row in rows} >= {"dense solution"} and max(row.value for row in rows) < 1e-12
    assert any(row.function == "K qdd + k = 0" for row in report.differences)
    assert any(row.function == "inverse_dynamics" and row.method == "kane" for row in report.differences)  # of the tree
    assert any("constrained" in line for line in report.remarks())
    json.dumps(report.as_dict())


def test_check_without_a_pose_that_meets_the_constraints():
    robot = ls.robots.planar(2).with_constraints([ls.Constraint("distance", "tool", length=5.0)])
    report = ls.check(robot, samples=2)
    assert any(skipped.function == "constrained dynamics" for skipped in report.skipped)


def test_a_proof_says_that_it_is_of_the_tree():
    robot = ls.robots.planar(2).with_constraints([ls.Constraint("line", "tool", at=np.eye(4))])
    proof = ls.prove(robot, programs=False)
    assert proof.ok and "without its constraints" in proof.name
    assert any(excluded.statement == "constrained dynamics" for excluded in proof.excluded)
    assert "constrain" not in ls.prove(robot.without_constraints(), programs=False).name


def test_explanations_are_of_the_tree_or_refused():
    robot, q = linkages.five_bar(), linkages.five_bar().project(linkages.FIVE_BAR)
    for function in ("inverse_dynamics", "bias_forces", "gravity_forces"):
        found = robot.explain(function, q=q)
        assert "without its constraints" in str(found)
        expected = robot.explain(function, method="kane", q=q).quantities["tau"]
        np.testing.assert_allclose(found.quantities["tau"], expected, atol=1e-12)
    for method in (None, "closed_chain", "fd1"):
        with pytest.raises(ArgumentError, match="constraints"):
            robot.explain("forward_dynamics", method, q=q)


def test_details_of_constrained_dynamics_belong_together():
    robot, q = linkages.five_bar(), linkages.five_bar().project(linkages.FIVE_BAR)
    qd = robot.project_velocity(q, np.ones(4))
    qdd, at = robot.forward_dynamics(q, qd, np.arange(4.0), details=True)
    K, M = robot.constraint_jacobian(q), robot.mass_matrix(q)
    np.testing.assert_allclose(M @ qdd + K.T @ at.multipliers, np.arange(4.0) - robot.bias_forces(q, qd), atol=1e-10)
    assert at.constraint_forces.shape == (1, 6)
    tau, at = robot.inverse_dynamics(q, qd, qdd, actuated=["left1", "right1"], details=True)
    np.testing.assert_allclose(tau, at.tree + K.T @ at.multipliers, atol=1e-10)
    np.testing.assert_allclose(at.tree, robot.without_constraints().inverse_dynamics(q, qd, qdd), atol=1e-12)
    with pytest.raises(ArgumentError, match="constraints"):
        robot.forward_dynamics(q, qd, tau, method="filter_smoother", details=True)


def test_info_lists_constraints_and_passive_joints():
    robot = linkages.gripper().with_actuated(["shoulder", "elbow", "wrist", "left_crank"])
    facts = _facts(robot)
    assert [(tie["kind"], tie["rows"]) for tie in facts["constraints"]] == [("line", 2), ("line", 2)]
    assert facts["actuated"] == ["shoulder", "elbow", "wrist", "left_crank"]
    text = "\n".join(_lines(facts))
    assert all(word in text for word in ("left linkage", "right linkage", "left_pad", "4 rows of constraints"))
    assert "right linkage" in robot._repr_html_() and "left_pad" in robot._repr_html_()
    plain = _facts(ls.robots.puma560())
    assert plain["constraints"] == [] and "constraint" not in "\n".join(_lines(plain))


def test_experiments_name_motors(tmp_path: Path):
    from linksweep.cli.experiment import read_experiment

    file = tmp_path / "experiment.toml"
    file.write_text(
        'robot = "puma560"\nduration = 0.01\nactuated = ["joint2"]\n[[controller]]\nkind = "pd"\nkp = 10\nkd = 1\n'
    )
    experiment = read_experiment(file)
    assert experiment.robot.actuated == ("joint2",)
