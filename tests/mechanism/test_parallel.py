"""Frames that do not turn between parallel axes: the same derivatives, with fewer operations."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import linksweep as ls
from linksweep.functions import computation
from linksweep.functions.compiled import CompiledFunction
from linksweep.mechanism.canonical import canonical, still_links
from linksweep.model.assembly import Part, assemble
from linksweep.model.model import Inertial, Joint, Placement

ID, FD = "inverse_dynamics", "forward_dynamics"
UP, DOWN, ACROSS = (0.0, 0.0, 1.0), (0.0, 0.0, -1.0), (0.0, 1.0, 0.0)


def arm(*joints: tuple[str, str, tuple[float, float, float]], base: str = "base") -> ls.Robot:
    """Links by name: (parent, kind of joint, axis), offset from each other and with inertias of no symmetry."""
    rng, parts = np.random.default_rng(0), []
    for k, (parent, kind, axis) in enumerate(joints):
        place = Placement(position=tuple(rng.uniform(-0.5, 0.5, 3)))
        points = rng.uniform(-0.2, 0.2, (8, 3))
        x, y, z = map(tuple, (np.sum(points**2) * np.eye(3) - points.T @ points).tolist())
        body = Inertial(2.0 + k, tuple(rng.uniform(-0.2, 0.2, 3)), (x, y, z))
        parts.append(Part(f"l{k}", parent, Joint(f"j{k}", kind, axis, place, pitch=0.1 * (kind == "helical")), body))
    return ls.Robot(assemble("arm", parts, base=base))


ROBOTS = {
    "three parallel": arm(("base", "revolute", UP), ("l0", "revolute", ACROSS), ("l1", "revolute", ACROSS),
                          ("l2", "revolute", ACROSS), ("l3", "revolute", UP)),
    "turned round": arm(("base", "revolute", ACROSS), ("l0", "revolute", UP), ("l1", "revolute", DOWN),
                        ("l2", "revolute", UP), ("l3", "revolute", ACROSS)),
    "branches": arm(("base", "revolute", ACROSS), ("l0", "revolute", UP), ("l1", "revolute", UP),
                    ("l1", "revolute", DOWN), ("l1", "revolute", ACROSS), ("l2", "revolute", ACROSS),
                    ("l3", "prismatic", UP)),
    "screws and a slider": arm(("base", "revolute", ACROSS), ("l0", "helical", UP), ("l1", "helical", UP),
                               ("l2", "prismatic", UP), ("l3", "revolute", UP)),
    "a free base": arm(("base", "free", UP), ("l0", "revolute", UP), ("l1", "revolute", UP),
                       ("l2", "revolute", ACROSS)),
}  # fmt: skip


def test_which_links_are_still():
    found = {name: sorted(still_links(canonical(robot.model))) for name, robot in ROBOTS.items()}
    assert found == {
        "three parallel": [1, 2], "turned round": [1, 2], "branches": [1], "screws and a slider": [1],
        "a free base": [1],
    }  # fmt: skip
    assert not still_links(canonical(ls.robots.planar_model(4)))  # nothing but a plane
    assert not still_links(canonical(ls.robots.stanford_model()))


@pytest.mark.cases(1)
@pytest.mark.parametrize("name", ROBOTS)
@pytest.mark.parametrize(
    "options", [{}, {"f_ext": True, "dissipation": True, "base_motion": True}], ids=["plain", "all"]
)
def test_derivatives_are_those_of_turning_frames(name: str, options: dict[str, Any], monkeypatch: pytest.MonkeyPatch):
    robot = ROBOTS[name]
    for function, last in ((ID, "qdd"), (FD, "tau")):
        items = [function, *(("derivative", function, by) for by in ("q", "qd", last))]
        items += [("derivative", ("derivative", function, "q"), "qd")] if function == ID else []
        still = ls.Robot(robot.model).compile(items, backend="interpreter", **options)
        with monkeypatch.context() as patch:
            patch.setattr(computation, "with_still_frames", lambda model, requests: model)
            turning = CompiledFunction(still.computation, None, 1, "interpreter")  # not the one that `compile` keeps
            assert turning.program != still.program
        rng = np.random.default_rng(1)
        given = [rng.uniform(-1, 1, (5, *argument.shape)) for argument in still.signature.inputs]
        given[0] = np.stack([robot.random(rng) for _ in range(5)])
        for a, b in zip(still(*given), turning(*given), strict=True):
            np.testing.assert_allclose(a, b, rtol=0, atol=1e-11 * max(1.0, np.abs(b).max()))


def test_fewer_operations_where_all_first_derivatives_are_asked_for(monkeypatch: pytest.MonkeyPatch):
    for name in ("three parallel", "turned round", "screws and a slider"):
        items = [ID, *(("derivative", ID, by) for by in ("q", "qd", "qdd"))]
        still = ls.Robot(ROBOTS[name].model).operation_count(items)
        with monkeypatch.context() as patch:
            patch.setattr(computation, "with_still_frames", lambda model, requests: model)
            turning = ls.Robot(ROBOTS[name].model).operation_count(items)
        assert still.mul + still.add < turning.mul + turning.add
