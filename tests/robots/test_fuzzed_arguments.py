"""Random arguments, most of them wrong, for public calls: each returns, or raises an error of ours.

Every call begins as one that works and is short; one or two of its arguments are then changed. A missing or unknown
argument may raise Python's own TypeError. A failure shows the call.
"""

from __future__ import annotations

import contextlib
import inspect
import random
import re
import traceback
import types
import warnings
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from abuse_helpers import interrupted
from scale import at_scale

import linksweep as ls
from linksweep import motion, plots, simulation

SIGNATURE = re.compile(r"takes .*argument|missing \d+ required|unexpected keyword argument|multiple values for")
SECONDS = 2.0  # of one call, which is interrupted then
Call = tuple[Callable[..., Any], dict[str, Any]]


class NotAnArray:
    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        raise ValueError("no")


ODD: tuple[Callable[[Any], Any], ...] = (
    lambda _: None, lambda _: "", lambda _: "abc", lambda _: "tool", lambda _: b"x", lambda _: True, lambda _: 0,
    lambda _: -1, lambda _: 3, lambda _: 1.5, lambda _: -0.0, lambda _: np.nan, lambda _: np.inf, lambda _: -np.inf,
    lambda _: 1e308, lambda _: 1e-308, lambda _: 10**30, lambda _: 10**400, lambda _: 1j, lambda _: [], lambda _: (),
    lambda _: {}, lambda _: set(), lambda _: {1, 2}, lambda _: {"a": 1}, lambda _: {"joint1": np.nan},
    lambda _: {"joint1": "x"}, lambda _: {1: 2}, lambda _: [[1, 2], [3]], lambda _: [1, [2]], lambda _: [None, None],
    lambda _: ["a", "b"], lambda _: object(), lambda _: len, lambda _: int, lambda _: ..., lambda _: slice(2),
    lambda _: iter([1, 2]), lambda _: range(2), lambda _: NotAnArray(), lambda _: np.zeros(0),
    lambda _: np.zeros((0, 2)), lambda _: np.zeros(3), lambda _: np.zeros((3, 2)),
    lambda _: np.zeros((2, 3, 2)), lambda _: np.zeros((4, 4)),
    lambda _: np.eye(4), lambda _: np.eye(3), lambda _: np.array([1, None], object), lambda _: np.array([1j, 2]),
    lambda _: np.array([True, False]), lambda _: np.array(["a", "b"]), lambda _: np.array([1, 2], "M8[s]"),
    lambda _: np.ma.masked_array([1.0, 2.0], [True, False]), lambda _: np.array(2.0), lambda _: np.float32(0.5),
    lambda _: np.zeros(2, [("a", "f8")]), lambda _: [10**400, 0], lambda _: "é🤖", lambda _: "a\0b", lambda _: "\udcff",
    lambda _: "x" * 1000, lambda _: Path("/nonexistent/x"), lambda _: np.random.default_rng(0), lambda _: [np.nan, 0],
    lambda _: [np.inf, 0], lambda _: [1e200, -1e200], lambda _: [1e-320, 0], lambda _: np.full((1, 2), np.nan),
    lambda _: ("tool", "tool"), lambda _: ["tool"], lambda _: ls.robots.planar(2), lambda _: ls.robots.planar,
    lambda x: [x], lambda x: [x, x], lambda x: (x,), lambda x: np.asarray(x)[..., None], lambda x: str(x),
    lambda x: np.asarray(x, object), lambda x: {"x": x}, lambda x: lambda *_: x,
    lambda x: np.asarray(x) * np.nan, lambda x: np.asarray(x) * 1e300, lambda x: -np.asarray(x),
)  # fmt: skip


def wrong(chance: random.Random, value: Any) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        while True:
            with contextlib.suppress(Exception):  # not every one can be made of every value
                return chance.choice(ODD)(value)


def calls(folder: Path) -> list[Call]:
    """Public functions and methods, with arguments that they take."""
    arm, four = ls.robots.planar(2), ls.robots.four_bars(1)
    t = np.arange(40) * 0.05
    q = np.stack([np.sin(2 * t), np.cos(3 * t)], axis=1)
    qd = np.stack([2 * np.cos(2 * t), -3 * np.sin(3 * t)], axis=1)
    steps, compiled, rollout = ls.stepper(arm, 1e-3), arm.compile("inverse_dynamics"), ls.rollout(arm, 1e-3)
    run = ls.simulate(arm, [0.1, 0.2], None, None, 0.01)
    line = motion.Line(arm.pose([0.1, 0.2], "tool"), arm.pose([0.1, 0.3], "tool"), 1.0)
    values: dict[str, Any] = {
        "q": [0.1, 0.2], "qd": [0.3, 0.4], "qdd": [0.5, 0.6], "tau": [0.7, 0.8], "v": [0.1, 0.2], "q0": [0.1, 0.2],
        "q1": [0.3, 0.4], "frame": "tool", "frames": "tool", "function": "gravity_forces", "functions": "mass_matrix",
        "path": line, "times": [0.0, 0.5], "target": arm.pose([0.1, 0.2], "tool"), "joints": ["joint1"], "dt": 1e-3,
        "point": "tool", "pose": np.eye(4), "rng": np.random.default_rng(0), "base": "base", "tip": "tool",
        "what": "f", "armature": [0.1, 0.1], "constraints": [], "couplings": [], "springs": [], "name": "new",
        "on": "tool", "gravity": [0, 0, -1], "inertia": np.eye(6), "link": "tool", "mass": 1.0,
        "rows": [[0.1, 0, 0, 0]], "names": {"joint1": 0.1, "joint2": 0.2}, "vector": [0.1, 0.2],
    }  # fmt: skip
    unlike = {  # where a name means something else
        "with_base": {"base": "floating"}, "symbolic": {"numbers": "decimal"}, "manipulability": {"rows": "linear"},
        "from_dh": {"rows": [[0.3, 0.0, 0.0, 0.0]], "convention": "standard"}, "methods": {"function": "mass_matrix"},
        "jacobian": {"point": [0.0, 0.0, 0.1]}, "jacobian_derivative": {"point": [0.0, 0.0, 0.1]},
        "with_inertia": {"inertia": [np.eye(6), np.eye(6)]}, "explain": {"function": "gravity_forces"},
    }  # fmt: skip
    found: list[Call] = []
    for robot, own in ((arm, values), (four, values | {name: np.zeros(four.nv) for name in ("qd", "qdd", "tau", "v")})):
        if robot is four:
            own |= dict.fromkeys(("q", "q0", "q1"), robot.project(np.full(robot.nq, 0.3)))
            own |= {"joints": [robot.joint_names[0]], "base": robot.link_names[0], "tip": robot.link_names[1]}
            own |= dict.fromkeys(("frame", "frames", "on", "link", "point"), robot.frame_names[-1])
        for name in dir(robot):
            if name[0] == "_" or name in ("show", "symbolic") or isinstance(getattr(ls.Robot, name, None), property):
                continue
            method = getattr(robot, name)
            if not isinstance(method, types.MethodType | types.FunctionType):
                continue
            if robot is four and "constraint" not in name and "tangent" not in name and "project" not in name:
                continue
            taken = inspect.signature(method).parameters.values()
            required = {
                p.name: own.get(p.name, np.ones(3))
                for p in taken
                if p.default is p.empty and p.kind is not p.VAR_KEYWORD
            }
            found.append((method, required | unlike.get(name, {})))
    PD = simulation.PD([0, 0], 10.0, 1.0)
    found += [
        (ls.Constraint, {"kind": "point", "a": "tool", "at": [0, 0, 0]}),
        (ls.Coupling, {"joint": "joint2", "leader": "joint1"}),
        (ls.Contact, {"robot": arm, "frame": "tool"}), (ls.Spring, {"a": "tool", "stiffness": 1.0}),
        (ls.Grasp, {"body": ls.body(1.0), "contacts": [ls.Contact(arm, "tool")]}),
        (ls.body, {"mass": 1.0, "com": [0, 0, 0], "inertia": np.eye(3)}), (ls.Robot, {"model": arm.model}),
        (ls.check, {"robot": arm, "samples": 1}), (ls.load, {"path": "puma560", "base": "fixed", "mimic": "free"}),
        (ls.excite, {"robot": arm, "duration": 2.0, "harmonics": 1, "floor": None, "keep_out": ()}),
        (ls.identify, {"robot": arm, "t": t, "q": q, "tau": qd, "qd": qd, "cutoff": 3.0}),
        (ls.follow, {"robot": arm, "frame": "tool", "path": line, "times": [0.0, 0.1], "position_only": True}),
        (ls.inverse_kinematics, {"robot": arm, "target": values["target"], "frame": "tool", "restarts": 1}),
        (ls.operators, {"robot": arm, "q": [0.1, 0.2]}), (ls.prove, {"target": "RR", "trials": 1}),
        (ls.rollout, {"robot": arm, "dt": 1e-3, "integrator": "rk4"}), (ls.stepper, {"robot": arm, "dt": 1e-3}),
        (ls.scene, {"parts": {"a": arm}}), (ls.use_backend, {"name": "llvm"}),
        (ls.simulate, {"robot": arm, "q0": [0, 0], "qd0": [0, 0], "torque": PD, "duration": 0.003, "dt": 1e-3}),
        (ls.simulate, {"robot": arm, "q0": [0, 0], "torque": lambda t, q, qd: [0, 0], "duration": 0.003}),
        (ls.simulate, {"robot": arm, "q0": [0, 0], "duration": 0.003, "control_period": 1e-3, "torque": PD,
                       "sampling": simulation.Sampling(delay=1e-3),
                       "disturbance": simulation.Push("tool", np.ones(6))}),
        (ls.stream, {"function": compiled, "source": np.zeros((3, 6)), "sink": folder / "out.npy", "progress": False}),
        (ls.ensemble, {"experiment": lambda rng, first, count: {"x": np.zeros(count)}, "samples": 2, "chunk": 1,
                       "folder": folder / "ensemble", "progress": False}),
        (simulation.PD, {"reference": [0, 0], "kp": 1.0, "kd": 1.0}), (simulation.Constant, {"tau": [0, 0]}),
        (simulation.ComputedTorque, {"reference": [0, 0], "kp": 1.0, "kd": 1.0}),
        (simulation.Sampling, {"delay": 1e-3}), (simulation.Push, {"frame": "tool", "wrench": np.ones(6)}),
        (simulation.Surface, {"frame": "tool", "point": [0, 0, 0]}), (simulation.Sampled, {}), (simulation.Motor, {}),
        (simulation.FrictionCompensation, {}), (simulation.FeedForward, {}), (simulation.OperationalSpace, {}),
        (simulation.Admittance, {}), (simulation.Table, {}), (simulation.load, {"path": folder / "run.npz"}),
        (simulation.saturated, {}), (simulation.compare, {}), (run.plot, {}), (run.limits, {}),
        (run.tracking_error, {}),
        (steps, {"q": [0, 0], "qd": [0, 0], "tau": [0, 0]}), (rollout, {}), (compiled, {}),
        (motion.Line, {}), (motion.Arc, {}), (motion.Quintic, {"points": [[0, 0], [1, 1]], "times": [0, 1]}),
        (motion.CubicSpline, {"points": [[0, 0], [1, 1], [0, 1]], "times": [0, 1, 2]}), (motion.Trapezoid, {}),
        (motion.QuinticSpline, {}), (motion.NormalSpline, {}), (motion.Cycloid, {}),
        (ls.conventions.to_mujoco, {}), (ls.conventions.from_mujoco, {}), (ls.conventions.to_pinocchio, {}),
        (ls.conventions.from_pinocchio, {}), (arm.factor([0.1, 0.2]).solve, {}), (line, {}),
        (ls.robots.planar, {}), (ls.robots.chain, {}), (ls.robots.four_bars, {}), (ls.robots.six_axis, {}),
        (plots.time_series, {"robot": arm, "t": t, "values": q}), (plots.sketch, {}),
        (ls.studies.run, {"name": "planr", "out": folder}),
    ]  # fmt: skip
    named = dict(robot=arm, reference=[0, 0], **values)
    complete: list[Call] = []
    for function, given in found:
        try:
            taken = inspect.signature(function).parameters
        except (TypeError, ValueError):
            taken = {}
        missing = {n: named.get(n, [0.0, 0.0]) for n, p in taken.items() if p.default is p.empty and p.kind in (1, 3)}
        complete.append((function, missing | given))
    return complete


def fault(function: Callable[..., Any], given: dict[str, Any], counts: dict[str, int]) -> str:
    """The error that is not one of ours, or a message that is not one sentence."""
    try:
        with interrupted(SECONDS):
            function(**given)
        counts["returned"] += 1
    except ls.LinksweepError as error:
        counts["refused"] += 1
        if "\n" in str(error) or len(str(error)) < 20:
            return repr(error)
    except TypeError as error:
        if SIGNATURE.search(str(error)):  # also of a given function
            counts["refused"] += 1
        else:
            return "".join(traceback.format_exception(error)[-5:])
    except KeyboardInterrupt:
        counts["interrupted"] += 1
        counts[f"{getattr(function, '__qualname__', function)} {given}"[:300]] = 1
    except Exception as error:
        return "".join(traceback.format_exception(error)[-5:])
    return ""


def returned_or_refused(folder: Path, count: int, seed: int) -> None:
    counts, faults = {"returned": 0, "refused": 0, "interrupted": 0}, []
    known, called = calls(folder), Counter[str]()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for k in range(count):
            function, given = known[k % len(known)]
            given, name = dict(given), getattr(function, "__qualname__", type(function).__name__)
            chance = random.Random(f"{seed} {name} {called[name]}")  # a new function changes no other call
            called[name] += 1
            try:
                names = [n for n, p in inspect.signature(function).parameters.items() if p.kind in (1, 3)]
            except (TypeError, ValueError):
                names = list(given)
            for _ in range(chance.choice((1, 1, 2))):
                changed = chance.choice([*names, *given] or ["x"])
                given[changed] = wrong(chance, given.get(changed, 1.0))
            found = fault(function, given, counts)
            if found:
                faults.append(f"{name} {given!r:.300}\n{found}")
    assert not faults, f"{len(faults)} faults:\n" + "\n".join(faults)
    assert (
        counts["returned"] >= count / 30 and counts["refused"] > count / 3 and counts["interrupted"] <= count / 100
    ), counts


def test_odd_arguments(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)  # a call may write a file "tool"
    returned_or_refused(tmp_path, 60, 0)


@pytest.mark.slow
def test_many_odd_arguments(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    returned_or_refused(tmp_path, at_scale(500, 2000), 1)
