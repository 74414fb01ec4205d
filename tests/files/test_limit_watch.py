"""Who goes beyond its limits, when and by how much; and positions that are in degrees by mistake."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pytest
from robots_for_tests import URDF, robot, whole

import linksweep as ls
from linksweep.files.limit_watch import Excess, LimitWatch

ARM = robot("urdf")  # slide in [-1, 1] m, turn without limits, branch in [-1, 1] rad; 2 m/s, rad/s; 9 N, N m
T = np.linspace(0.0, 1.0, 11)


def watched(**blocks: np.ndarray) -> LimitWatch:
    watch = LimitWatch(ARM.model)
    watch.add(T, **blocks)
    return watch


def test_nothing_to_say():
    still = np.zeros((11, 3))
    assert watched(q=still, qd=still, tau=still).lines() == []
    on_the_limit = np.tile([1.0 + 1e-12, 50.0, -1.0], (11, 1))
    assert watched(q=on_the_limit).lines() == []  # with the digits of a file; and "turn" has no limit


def test_who_when_and_by_how_much():
    q, qd, tau = np.zeros((3, 11, 3))
    q[:, 0] = np.linspace(0.0, 1.5, 11)  # beyond 1 from the eighth on
    q[4, 2] = -1.25
    qd[3:, 2] = -2.0 - T[3:]
    tau[:, 0] = [9.0, *[0.0] * 8, -12.0, 10.0]
    found = watched(q=q, qd=qd, tau=tau).excesses
    assert [(e.joint, e.quantity, e.limit, e.value, e.t, e.first, e.unit) for e in found] == [
        ("slide", "position", 1.0, 1.5, 1.0, T[7], "m"),
        ("branch", "position", -1.0, -1.25, 0.4, 0.4, "rad"),
        ("branch", "velocity", 2.0, -3.0, 1.0, T[3], "rad/s"),
        ("slide", "effort", 9.0, -12.0, T[9], T[9], "N"),
    ]
    np.testing.assert_allclose([e.by for e in found], [0.5, 0.25, 1.0, 3.0])
    assert str(found[0]) == "slide: position 1.5 m at 1 s, 0.5 beyond 1, first at 0.7 s"
    assert str(found[3]) == "slide: effort -12 N at 0.9 s, 3 beyond ±9"


def test_blocks_are_as_good_as_the_whole():
    random = np.random.default_rng(0)
    q, qd, tau = random.normal(size=(3, 1000, 3)) * [[[2.0]], [[3.0]], [[9.0]]]
    t = np.arange(1000.0)
    together, in_blocks = LimitWatch(ARM.model), LimitWatch(ARM.model)
    together.add(t, q=q, qd=qd, tau=tau)
    for rows in np.array_split(np.arange(1000), 17):
        in_blocks.add(t[rows], q=q[rows], qd=qd[rows], tau=tau[rows])
    assert in_blocks.excesses == together.excesses and len(together.excesses) == 8


def test_nan_and_nothing_are_passed_over():
    q = np.zeros((11, 3))
    q[5] = math.nan
    q[6, 0] = 2.0
    assert [e.t for e in watched(q=q).excesses] == [T[6]]
    watch = LimitWatch(ARM.model)
    watch.add(np.empty(0), q=np.empty((0, 3)))
    assert watch.lines() == []


def test_joints_of_several_freedoms():
    one = whole().with_limits(velocity={"root": 1.0, "ball": 2.0}, effort={"root": 5.0})
    watch = LimitWatch(one.model)
    qd, tau = np.zeros((2, 1, one.nv))
    qd[0, 1:7] = [0.5, 0.0, 0.0, 0.0, -1.5, 0.0]
    qd[0, 9] = 2.5
    tau[0, 1] = 6.0
    watch.add(np.zeros(1), q=np.full((1, one.nq), 0.2), qd=qd, tau=tau)
    assert [(e.joint, e.quantity, e.value, e.unit) for e in watch.excesses] == [
        ("root.vy", "velocity", -1.5, "m/s"),
        ("ball.wz", "velocity", 2.5, "rad/s"),
        ("root.wx", "effort", 6.0, "N m"),
    ]


@pytest.mark.parametrize(
    ("q", "simulated", "hint"),
    [
        ([0.0, 0.0, 45.0], False, True),  # 0.79 rad is within the limits, 45 rad is not
        ([0.0, 0.0, 60.0], False, False),  # not within them as 60 degrees either
        ([0.0, 400.0, 0.5], False, False),  # "turn" may go round
        ([0.0, 90.0, 30.0], False, True),
        ([5.0, 90.0, 30.0], False, True),  # a slide is in metres
        ([0.0, 0.0, 3.0], False, False),  # beyond the limit, but no more than a turn
        ([0.0, 0.0, 45.0], True, True),
    ],
)
def test_degrees(q: list[float], simulated: bool, hint: bool):
    watch = LimitWatch(ARM.model, simulated)
    watch.add(T[:1], q=np.array([q]))
    assert bool(watch.degrees) == hint
    assert not hint or watch.degrees.startswith("These positions look like degrees (branch goes to")


def test_degrees_without_limits():
    puma = ls.robots.puma560().with_limits(-np.inf, np.inf).model
    for angle, simulated, hint in ((150.0, False, True), (20.0, False, False), (150.0, True, True)):
        watch = LimitWatch(puma, simulated)
        watch.add(T[:1], q=np.array([[angle, *[0.0] * 5]]))
        assert bool(watch.degrees) == hint
    watch = LimitWatch(puma, True)  # an arm that falls may wind up
    watch.add(T[:2], q=np.array([[0.0] * 6, [150.0] * 6]))
    assert not watch.degrees


def test_many_are_cut():
    model = ls.robots.chain(20).with_limits(-0.1, 0.1).model
    watch = LimitWatch(model)
    watch.add(np.zeros(1), q=np.ones((1, 20)))
    lines = watch.lines()
    assert len(lines) == 13 and lines[-1] == "beyond limits: 8 more, which --json lists"
    assert len(json.loads(json.dumps(watch.as_dict()))["beyond_limits"]) == 20


# ---- on the command line


MOTION = """motion = "quintic"
times = [0.0, 1.0]
samples = 100
degrees = DEGREES
[joints]
slide = [0.0, 1.25]
turn = [0.0, 30]
branch = [0.0, 30]
"""


def test_inverse_says_it(run):
    Path("arm.urdf").write_text(URDF)
    Path("m.toml").write_text(MOTION.replace("DEGREES", "true"))
    lines = run("inverse", "arm.urdf", "-t", "m.toml", "-o", "tau.csv").out.splitlines()
    said = [line for line in lines if line.startswith("beyond limits: ")]
    assert said[0] == "beyond limits: slide: position 1.25 m at 1 s, 0.25 beyond 1, first at 0.6768 s"
    assert not any("degrees" in line for line in lines)
    Path("m.toml").write_text(MOTION.replace("DEGREES", "false"))
    outcome = run("inverse", "arm.urdf", "-t", "m.toml")
    assert outcome.code == 0
    assert outcome.out.splitlines()[-1].startswith(
        "These positions look like degrees (branch goes to 30), expected rad"
    )
    facts = json.loads(run("inverse", "arm.urdf", "-t", "m.toml", "--json").out)
    assert facts["hint"].startswith("These positions look like degrees")
    first = facts["beyond_limits"][0]
    assert first.pop("first") == pytest.approx(67 / 99)
    assert first == {
        "joint": "slide", "quantity": "position", "limit": 1.0, "value": 1.25, "by": 0.25, "t": 1.0, "unit": "m"
    }  # fmt: skip


def test_forward_and_simulate_say_it(run):
    Path("arm.urdf").write_text(URDF)
    Path("tau.csv").write_text("t,q.slide,q.turn,q.branch,qd.slide,qd.turn,qd.branch,tau.slide,tau.turn,tau.branch\n")
    with Path("tau.csv").open("a") as file:
        file.write("0,0,0,0,0,0,0,0,0,0\n0.5,0,0,-1.5,0,0,2.5,-10,0,0\n")
    lines = run("forward", "arm.urdf", "-t", "tau.csv", "-o", "qdd.csv").out.splitlines()
    assert lines[1:] == [
        "beyond limits: branch: position -1.5 rad at 0.5 s, 0.5 beyond -1",
        "beyond limits: branch: velocity 2.5 rad/s at 0.5 s, 0.5 beyond ±2",
        "beyond limits: slide: effort -10 N at 0.5 s, 1 beyond ±9",
    ]
    outcome = run("simulate", "arm.urdf", "--duration", "1", "--q0", "branch=45")
    assert "beyond limits: branch: position 4" in outcome.out
    assert outcome.out.splitlines()[-1].startswith("These positions look like degrees (branch goes to 45)")
    facts = json.loads(run("simulate", "arm.urdf", "--duration", "2", "--json").out)
    run_again = ls.simulate(ARM, np.zeros(3), duration=2.0)
    found = {(e["joint"], e["quantity"]): Excess(**e) for e in facts["beyond_limits"]}
    for place, joint, bound in ((0, "slide", 1.0), (2, "branch", 1.0)):
        size = np.abs(run_again.q[:, place]).max()
        if size > bound:
            assert found[joint, "position"].by == pytest.approx(size - bound)
        speed = np.abs(run_again.qd[:, place]).max()
        if speed > 2.0:
            assert found[joint, "velocity"].by == pytest.approx(speed - 2.0)
    assert found and facts["limit_crossings"]
