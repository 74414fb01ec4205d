"""Singular poses: judged by one threshold, said once, and never looked for where there are none."""

from __future__ import annotations

import functools
import importlib.metadata
import subprocess
import sys
import types
import warnings
from dataclasses import replace
from pathlib import Path
from typing import Any

import mpmath
import numpy as np
import pytest
from robots_for_tests import nested, random_inertial, random_rotation, robot

import linksweep as ls
from linksweep.errors import ArgumentError, ModelWarning, SingularError, SingularWarning
from linksweep.functions.compiled import CompiledFunction, compiled
from linksweep.functions.computation import RobotFunction
from linksweep.functions.functions import FUNCTIONS
from linksweep.mechanism.canonical import canonical
from linksweep.model.assembly import Part, assemble
from linksweep.model.model import Inertial, Joint, Limits, Placement
from linksweep.papers.spatial_operators import operators
from linksweep.robot.singular import Watched, inertia_ratio, least_ratio, threshold, watched
from linksweep.tracing.count import count

Y, Z = (0.0, 1.0, 0.0), (0.0, 0.0, 1.0)
POINT = Inertial(1.0, (1.0, 0.0, 0.0))
FAR = Placement(position=(1.0, 0.0, 0.0))


def chain(name: str, *parts: tuple[Joint, Inertial]) -> ls.Robot:
    links = ["base", *(f"link{k + 1}" for k in range(len(parts)))]
    described = [Part(links[k + 1], links[k], joint, inertial) for k, (joint, inertial) in enumerate(parts)]
    return ls.Robot(assemble(name, described, base="base"))


@functools.cache
def two_links(limit: float = np.inf) -> ls.Robot:
    """Two bars without mass and a point mass at the tip: singular where they are in line."""
    bend = Joint("elbow", "revolute", Y, FAR, limits=Limits(-limit, limit))
    return chain("two links", (Joint("shoulder", "revolute", Y), Inertial()), (bend, POINT))


@functools.cache
def pendulum() -> ls.Robot:
    """A spherical pendulum by two hinges: singular where it stands on the first one's axis."""
    return chain("pendulum", (Joint("around", "revolute", Z), Inertial()), (Joint("down", "revolute", Y), POINT))


@functools.cache
def folded() -> ls.Robot:
    """Two bars of the same length that fold back on the shoulder, where there is no inertia left about it at all."""
    parts = (Joint("around", "revolute", Z), Inertial()), (Joint("shoulder", "revolute", Y), Inertial())
    return chain("folded", *parts, (Joint("elbow", "revolute", Y, FAR), POINT))


@functools.cache
def gimbal() -> ls.Robot:
    """Three hinges that make a ball joint: the first and the last are parallel in the middle one's gimbal lock."""
    body = Inertial(2.0, (0.0, 0.0, 0.3), ((0.02, 0.0, 0.0), (0.0, 0.03, 0.0), (0.0, 0.0, 0.04)))
    axes = {"z": Z, "y": Y, "x": (1.0, 0.0, 0.0)}
    joints = [(Joint(name, "revolute", axis), Inertial()) for name, axis in axes.items()]
    return chain("gimbal", *joints[:2], (joints[2][0], body))


SINGULAR = [
    (two_links, [0.3, 0.0], "shoulder"),
    (two_links, [0.3, np.pi], "shoulder"),
    (two_links, [0.3, 1e-7], "shoulder"),
    (pendulum, [0.7, np.pi / 2], "around"),
    (folded, [0.2, 0.4, np.pi], "shoulder"),
    (gimbal, [0.1, np.pi / 2, 0.4], "z"),
]


@pytest.mark.parametrize(("make", "q", "joint"), SINGULAR)
def test_singular_names_the_joint(make: Any, q: list[float], joint: str):
    bot = make()
    found = bot.singular(q)
    assert found.dtype == bool and found.shape == (bot.nv,)
    assert joint in [name for name, so in zip(bot.joint_names, found, strict=True) if so]
    assert not bot.singular(np.add(q, 0.3)).any()  # and not in general
    assert bot.can_be_singular


def test_singular_takes_batches_and_says_nothing_of_what_is_not_finite():
    bot = two_links()
    q = np.array([[[0.1, 0.0], [0.2, 1.0], [np.nan, 0.0]], [[1.0, 0.5], [0.3, 1e-9], [0.0, np.inf]]])
    expected = np.zeros((2, 3, 2), bool)
    expected[0, 0, 0] = expected[1, 1, 0] = True
    assert np.array_equal(bot.singular(q), expected)
    assert bot.singular(np.empty((0, 2))).shape == (0, 2)
    with pytest.raises(ArgumentError, match="3 entries in its last axis"):
        bot.singular([0.0, 0.0, 0.0])


def test_several_freedoms_count_as_one_joint():
    parts = [
        Part("body", "base", Joint("root", "free"), random_inertial(np.random.default_rng(0))),
        Part("arm", "body", Joint("shoulder", "revolute", Y), Inertial()),
        Part("tip", "arm", Joint("elbow", "revolute", Y, FAR), Inertial(1.0, (0.0, 0.0, 1.0))),
    ]
    bot = ls.Robot(assemble("floating", parts, base="base"))
    q = bot.neutral()
    assert q.shape == (9,) and not bot.singular(q).any()
    q[8] = np.pi / 2
    assert bot.singular(q).tolist() == [False, True, False]
    q[:4], q[8] = 0.0, 1.0  # a rotation of zeros is a mistake, but not this one
    assert not bot.singular(q).any()


# ---- who is told -------------------------------------------------------------------------------------------------


def calls(bot: ls.Robot) -> dict[str, Any]:
    zero = np.zeros(bot.nv)
    return {
        "forward_dynamics": lambda q: bot.forward_dynamics(q, zero, zero),
        "forward_dynamics by composite": lambda q: bot.forward_dynamics(q, zero, zero, method="composite"),
        "forward_dynamics with details": lambda q: bot.forward_dynamics(q, zero, zero, details=True),
        "forward_dynamics with out": lambda q: bot.forward_dynamics(
            q, zero, zero, out=np.empty((*q.shape[:-1], bot.nv))
        ),
        "mass_matrix_inverse": lambda q: bot.mass_matrix_inverse(q),
        "factor": lambda q: bot.factor(q),
    }


@pytest.mark.parametrize("call", list(calls(robot("planar3"))))
def test_public_methods_warn_once_and_name_joint_and_sample(call: str):
    run = calls(two_links())[call]
    for q, said in (
        (np.array([0.3, 0.0]), "shoulder of two links is singular:"),
        (np.array([[0.3, 1.0], [0.1, 1e-8]]), "shoulder of two links is singular in sample 1:"),
        (np.array([[[0.3, 0.0], [0.1, 1e-8]]]), r"is singular in sample \(0, 0\) \(and in 1 more\):"),
    ):
        with (
            pytest.warns(SingularWarning, match=f"^{call.split()[0]}: joint .*{said}") as caught,
            np.errstate(all="ignore"),
        ):
            run(q)
        assert len(caught) == 1 and caught[0].filename == __file__
    run(np.array([[0.3, 1.0], [0.1, 0.2]]))  # warnings are errors here
    run(np.array([[0.3, 1.0], [np.nan, 0.0]]))


def test_the_results_are_what_machine_code_gives():
    """A warning changes no number, and a compiled function does not warn."""
    bot = two_links()
    q = np.array([[0.3, 0.0], [0.1, 1e-8], [0.1, 1.0]])
    with pytest.warns(SingularWarning):
        inverse = bot.mass_matrix_inverse(q)
    assert np.isinf(inverse[0]).all()
    assert np.array_equal(inverse, bot.compile("mass_matrix_inverse")(q))
    with pytest.warns(SingularWarning):
        rates = bot.forward_dynamics(q.tolist(), [0.0, 0.0], [0.0, 0.0])
    assert np.isnan(rates[0]).all() and np.array_equal(
        rates, bot.compile("forward_dynamics")(q, [0.0, 0.0], [0.0, 0.0]), equal_nan=True
    )


def test_what_is_wrong_with_a_call_is_said_as_ever():
    bot = two_links()
    with pytest.raises(ArgumentError, match=r"^forward_dynamics: q has 3 entries"):
        bot.forward_dynamics(np.zeros((4, 3)), np.zeros(2), np.zeros(2))
    with pytest.raises(ArgumentError, match=r"^mass_matrix_inverse: q has 1 entries"):
        bot.mass_matrix_inverse(np.zeros((4, 1)))
    with pytest.raises(ArgumentError, match=r"^mass_matrix_inverse: out"):
        bot.mass_matrix_inverse(np.zeros((4, 2)), out=np.zeros(3))
    assert bot.mass_matrix_inverse(np.zeros((0, 2))).shape == (0, 2, 2)


def test_float32_is_judged_by_its_own_precision():
    """Half a thousandth of a right angle: fine in float64, a matter of rounding in float32."""
    bot = two_links()
    q = np.array([0.3, 1e-3])
    tau = bot.inverse_dynamics(q, np.zeros(2), np.ones(2))
    assert np.abs(bot.forward_dynamics(q, np.zeros(2), tau) - 1.0).max() < 1e-6
    assert threshold("float64") == pytest.approx(3.667e-11, rel=1e-3)
    assert threshold("float32") == pytest.approx(2.422e-5, rel=1e-3)
    q, zero, tau = (x.astype(np.float32) for x in (q, np.zeros(2), tau))
    with pytest.warns(SingularWarning, match="expected more than 2.4e-05"):
        found = bot.forward_dynamics(q, zero, tau)
    assert found.dtype == np.float32
    with pytest.warns(SingularWarning):
        assert bot.singular(q)[0]
        bot.forward_dynamics(q[None], zero[None], tau[None])


def test_simulations_say_when(tmp_path: Path):
    bot = two_links()
    with pytest.warns(SingularWarning, match=r"^simulate: joint shoulder .* at t = 0 s of rollout 1:") as caught:
        warnings.simplefilter("ignore", ls.simulation.SimulationWarning)
        ls.simulate(bot, [[0.0, 1.0], [0.3, 0.0]], None, None, 0.01, dt=1e-3)
    assert len(caught) == 1
    ls.simulate(bot, [0.0, 1.0], None, None, 0.01, dt=1e-3)


def test_the_command_line_says_when(tmp_path: Path):
    from linksweep.model.formats.urdf import to_urdf

    bot = two_links(1.0)
    (tmp_path / "two.urdf").write_text(to_urdf(bot.model))
    t, q = np.arange(5.0), np.array([1.0, 0.5, 1e-9, 1e-9, 0.4])
    header = "t,q.shoulder,q.elbow,qd.shoulder,qd.elbow,tau.shoulder,tau.elbow"
    rows = [f"{a},0.0,{b},0,0,0,0" for a, b in zip(t, q, strict=True)]
    (tmp_path / "way.csv").write_text("\n".join([header, *rows]) + "\n")
    command = [sys.executable, "-m", "linksweep", "forward", "two.urdf", "-t", "way.csv", "-o", "out.csv"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=120)
    said = [line for line in done.stderr.splitlines() if "singular" in line and "warning" in line]
    assert len(said) == 1 and "joint shoulder of two links is singular at t = 2 (and in 1 more)" in said[0], done.stderr


def test_operators_refuse():
    with pytest.raises(SingularError, match="effective inertia of joint shoulder of two links is near zero"):
        operators(two_links(), [0.3, 1e-8]).D  # noqa: B018  (D is 6.9e-17 or so, not 0)
    assert operators(two_links(), [0.3, 1.0]).D is not None


def test_check_does_not_say_that_all_agree():
    report = ls.check(two_links(1e-6), samples=4)
    assert report.ok and report.singular == ("shoulder",) and report.singular_poses == 4
    assert report.verdict.startswith(
        "two links: joint shoulder is singular in 4 of 4 configurations; all other results agree"
    )
    assert "not compared: forward_dynamics, because every configuration is singular" in str(report)
    assert report.as_dict()["singular"] == {"joints": ["shoulder"], "poses": 4}
    some = ls.check(two_links(2e-5), samples=20)
    assert some.ok and 0 < some.singular_poses < 20
    assert "all formulations agree" not in some.verdict
    assert {d.function for d in some.differences} >= {"forward_dynamics", "mass_matrix_inverse"}
    assert ls.check(two_links(), samples=4).verdict.startswith("two links: all formulations agree to ")


# ---- the threshold -----------------------------------------------------------------------------------------------


def exact_accelerations(q: Any, qd: Any, tau: Any) -> np.ndarray:
    """Of `two_links`, from its Lagrangian, with 60 digits."""
    with mpmath.workdps(60):
        (q1, q2), (w1, w2), g = map(mpmath.mpf, q), map(mpmath.mpf, qd), mpmath.mpf(9.81)
        c, s, first, both = mpmath.cos(q2), mpmath.sin(q2), mpmath.cos(q1), mpmath.cos(q1 + q2)
        M = mpmath.matrix([[2 + 2 * c, 1 + c], [1 + c, 1]])
        bias = [-s * (2 * w1 * w2 + w2 * w2) - g * (first + both), s * w1 * w1 - g * both]
        b = mpmath.matrix([mpmath.mpf(t) - h for t, h in zip(tau, bias, strict=True)])
        return np.array([float(x) for x in mpmath.lu_solve(M, b)])


def test_above_the_threshold_digits_are_left():
    """The error grows as eps / ratio, as the documentation says, and is not yet large where the warning begins."""
    bot = two_links()
    random = np.random.default_rng(0)
    eps = np.finfo(float).eps
    judged = {True: 0, False: 0}
    for bend in 10.0 ** random.uniform(-7, 0, 60):
        q, qd = np.array([random.uniform(-3, 3), bend]), random.normal(size=2)
        tau = bot.inverse_dynamics(q, qd, random.normal(size=2))
        ratio = float(inertia_ratio(bot._core, q)[0])
        judged[bool(bot.singular(q)[0])] += 1
        assert bot.singular(q)[0] == (ratio <= threshold())
        expected = exact_accelerations(q, qd, tau)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", SingularWarning)
            for method in bot.methods("forward_dynamics"):
                error = np.abs(bot.forward_dynamics(q, qd, tau, method=method) - expected).max()
                # rounding of the torques alone, of size g, costs ten times eps / ratio of accelerations of order 1
                assert error <= 100 * eps / ratio * max(1.0, np.abs(expected).max()), (method, bend)
    assert min(judged.values()) > 10
    assert 100 * eps / threshold() < 1e-3


def test_the_closeness_misses_nothing():
    bot = folded()
    q = np.random.default_rng(3).uniform(-3, 3, (500, 3)) * np.array([1, 1, 10.0]) ** -5
    q = np.concatenate([q, np.random.default_rng(4).uniform(-3, 3, (500, 3))])
    ratio = bot._core.function(bot._core.internal("inertia_ratio"))(q)
    closeness = bot._core.function(bot._core.internal("closeness"))(q)
    least = ratio.min(axis=-1)
    assert (closeness >= least**-2.0 * (1 - 1e-12)).all() and (closeness <= 3 * least**-2.0 * (1 + 1e-12)).all()


# ---- robots without singular poses -------------------------------------------------------------------------------


def general_robot(seed: int) -> ls.Robot:
    """A random tree of all kinds of joints, some with armature, of links that are small and large."""
    random = np.random.default_rng(seed)
    kinds = ("revolute", "prismatic", "spherical", "helical", "planar", "revolute", "revolute")
    parts = []
    for i in range(random.integers(1, 8)):
        parent = "base" if i == 0 else f"link{random.integers(0, i)}"
        kind = "free" if i == 0 and random.random() < 0.4 else str(random.choice(kinds))
        place = Placement(nested(random_rotation(random)), tuple(random.uniform(-1, 1, 3).tolist()))
        joint = Joint(
            f"joint{i}", kind, tuple(np.eye(3)[random.integers(3)].tolist()), place,
            armature=float(random.choice((0.0, 0.0, 0.3))), pitch=0.2 if kind == "helical" else 0.0,
            limits=Limits(-1.0, 1.0),
        )  # fmt: skip
        parts.append(Part(f"link{i}", parent, joint, random_inertial(random, 10.0 ** random.uniform(-3, 3))))
    return ls.Robot(assemble(f"general{seed}", parts, base="base"))


@pytest.mark.cases(1)
@pytest.mark.parametrize("seed", range(30))
def test_the_bound_holds_in_every_pose(seed: int):
    bot = general_robot(seed)
    random = np.random.default_rng(seed + 1000)
    q = np.array([bot.random(random) for _ in range(50)] + [bot.neutral()])
    ratio = compiled(RobotFunction(bot.canonical, "inertia_ratio"), "float64", 1, "interpreter")(q)
    assert ratio.min() >= bot._core.least_ratio * (1 - 1e-9) > 0.0
    assert ratio.max() < 3.0  # it is a ratio of like to like


@pytest.mark.cases(1)
@pytest.mark.parametrize("seed", range(40))
def test_the_bound_holds_for_mimic_joints(seed: int):
    """Up to three joints of a random tree follow another one, inner or outer."""
    bot = general_robot(seed)
    random = np.random.default_rng(seed + 2000)
    single = [link.joint.name for link in bot.model.links if link.joint.type.nv == 1]
    leader, *others = random.permutation(single).tolist() or [""]
    laws = [ls.Coupling(name, leader, *random.normal(size=2).tolist()) for name in others[:3]]
    if laws:
        bot = bot.with_couplings(laws)
    q = np.array([bot.random(random) for _ in range(50)] + [bot.neutral()])
    ratio = compiled(RobotFunction(bot.canonical, "inertia_ratio"), "float64", 1, "interpreter")(q)
    assert ratio.min() >= bot._core.least_ratio * (1 - 1e-9)


@pytest.mark.parametrize("name", ["panda_description/urdf/panda.urdf", "baxter_description/urdf/baxter.urdf"])
def test_real_robots_with_mimic_joints_are_not_looked_at(name: str):
    """Fingers that run away from the hand do not make its wrist singular."""
    from oracles import FILES

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ModelWarning)
        bot = ls.load(FILES[name], mimic="couple")
    assert bot.couplings and bot._core.least_ratio > 1e-4 and not bot.can_be_singular


def test_doubtful_numbers_prove_nothing():
    """A negative moment, or no inertia about an axis: nothing is proved, and nothing breaks."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ModelWarning)
        for inertial in (Inertial(-1.0, (0.1, 0.0, 0.0)), Inertial(1.0), Inertial(float("nan"))):
            model = robot("chain7").model
            changed = replace(model, links=(replace(model.links[0], inertial=inertial), *model.links[1:]))
            assert least_ratio(canonical(changed), np.zeros(7), [0.0] * 7) == 0.0


@pytest.mark.parametrize("name", ["puma560", "stanford", "six_axis", "planar3", "chain7", "tree9", "urdf"])
def test_robots_of_real_links_are_not_looked_at(name: str):
    """Nothing is between a call and machine code in float64: the function is compiled, or the fast entry of one."""
    bot = robot(name)
    assert not bot.can_be_singular
    for function in ("forward_dynamics", "mass_matrix_inverse"):
        found = watched(bot._core, RobotFunction(bot.canonical, function, bot.methods(function)[0]))
        assert isinstance(found, (CompiledFunction, types.BuiltinFunctionType))
    core = two_links()._core
    assert isinstance(watched(core, core.part("forward_dynamics", "filter_smoother")), Watched)
    assert isinstance(watched(core, core.part("mass_matrix", "composite")), CompiledFunction)


def test_a_robot_that_is_safe_in_float64_only():
    """Its calls in float64 go to machine code; those in float32 are looked at, and are fine here."""
    light = Inertial(1e-5, (0.0, 0.0, 0.0), nested(np.eye(3) * 1e-7))
    bot = chain("light first", (Joint("a", "revolute", Y), light), (Joint("b", "revolute", Y, FAR), POINT))
    assert threshold("float64") < bot._core.least_ratio < threshold("float32")
    straight, bent, zero = np.array([0.3, 0.0]), np.array([0.3, 1.0]), np.zeros(2)
    assert not bot.singular(straight).any() and bot.singular(straight.astype(np.float32))[0]
    bot.forward_dynamics(straight, zero, zero)
    bot.forward_dynamics(np.stack([straight, bent]), zero, zero)
    bot.forward_dynamics(bent.astype(np.float32), zero.astype(np.float32), zero.astype(np.float32))
    for q in (straight, np.stack([bent, straight])):
        with pytest.warns(SingularWarning, match="joint a of light first"):
            bot.forward_dynamics(q.astype(np.float32), zero.astype(np.float32), zero.astype(np.float32))
    assert bot.forward_dynamics(straight, zero, zero).dtype == np.float64


def test_large_robots_are_judged_as_loops():
    """70 pairs of hinges, each pair with a link without inertia between: rolled, and singular where a pair is crossed
    by nothing."""
    body = random_inertial(np.random.default_rng(1))
    parts, before = [], "base"
    for k in range(35):
        place = Placement(position=(0.3, 0.0, 0.0))
        parts.append(Part(f"knuckle{k}", before, Joint(f"first{k}", "revolute", Z, place), Inertial()))
        last = Inertial(1.0, (0.5, 0.0, 0.0)) if k == 34 else body
        parts.append(Part(f"body{k}", f"knuckle{k}", Joint(f"second{k}", "revolute", Y), last))
        before = f"body{k}"
    bot = ls.Robot(assemble("rope", parts, base="base"))
    assert bot.nv == 70 and bot.can_be_singular
    q = np.full((2, 70), 0.2)
    q[1, 69] = np.pi / 2  # the last point mass stands on the axis of the hinge before
    found = bot.singular(q)
    assert [bot.joint_names[k] for k in np.flatnonzero(found[1])] == ["first34"] and not found[0].any()
    with pytest.warns(SingularWarning, match="joint first34 of rope is singular in sample 1"):
        bot.forward_dynamics(q, np.zeros(70), np.zeros(70))


@pytest.mark.slow
def test_real_robots_are_singular_only_where_they_are():
    """Of example-robot-data: icub.urdf in its neutral pose, whose head and neck are point masses."""
    files = [f for f in importlib.metadata.files("example-robot-data") or [] if str(f).endswith(".urdf")]
    assert len(files) > 60
    found = {}
    for file in files:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ModelWarning)
            try:
                bot = ls.load(str(file.locate()))
            except ls.DescriptionError:
                continue
        if bot.nv == 0 or not bot.has_inertia or bot.singular_joints:
            continue
        random = np.random.default_rng(0)
        q = np.array([bot.neutral(), *(bot.random(random) for _ in range(5))])
        function = compiled(RobotFunction(bot.canonical, "inertia_ratio"), "float64", 1, "interpreter")
        ratio = function(q)
        assert ratio.min() >= bot._core.least_ratio * (1 - 1e-9)
        joints = [bot.joint_names[k] for k in np.flatnonzero((ratio <= threshold()).any(axis=0))]
        if joints:
            found[file.name] = joints
        else:
            assert ratio.min() > 1e-5, file.name
    assert found == {"icub.urdf": ["neck_roll"]}


def test_the_singularity_check_costs_less_than_half_of_forward_dynamics():
    file = next(f for f in importlib.metadata.files("example-robot-data") or [] if f.name == "human.urdf")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ModelWarning)
        bot = ls.load(str(file.locate()))
    forward = bot.operation_count("forward_dynamics").total
    assert count(RobotFunction(bot.canonical, "closeness").trace()).total / forward == pytest.approx(0.4, abs=0.05)
    massless = [link for link in bot.canonical.links if not link.mass and not any(link.I)]
    assert bot.nv == 36 and len(massless) == 19


def test_functions_that_need_an_inverse_are_known():
    public = {name for name, function in FUNCTIONS.items() if function.invertible and function.public}
    inverses = {"mass_matrix_inverse", "operational_inertia_inverse"}
    assert public == {"forward_dynamics", "articulated_inertia", *inverses}
