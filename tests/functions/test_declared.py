"""Declared functions: what follows from a declaration, for which one file of functions/catalog/ is enough."""

from __future__ import annotations

import inspect
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import linksweep as ls
from linksweep.functions.functions import FUNCTIONS
from linksweep.functions.items import PUBLIC

NEW = """
from linksweep.algorithms.rigid_body.kinematics import poses
from linksweep.functions.catalog.frames import frame_pose
from linksweep.functions.declaration import Function, Method
from linksweep.spatial.algebra import Vec


def trace(tracer, computation, output):
    frame = tracer.model.frame(computation.frames[0])
    tracer.write(output, [Vec(*tracer.read_flat("direction")).dot(frame_pose(tracer, poses(tracer), frame).p)])


DECLARED = {
    "height": Function(
        ("q", "direction"), "height", (), {"": Method(poses)}, trace, "Height of a frame along a direction.",
        shapes={"direction": (3,)}, dynamics=False, needs_frame=True,
    )
}
"""
USE = """
import sys
import linksweep.functions.catalog as catalog
catalog.__path__.append(sys.argv[1])
import numpy as np
import linksweep as ls
robot, q, up = ls.robots.planar(2), np.array([0.3, 0.4]), np.array([0.0, 1.0, 0.0])
height = np.sin(0.3) + np.sin(0.7)
assert "height" in robot.functions and "height" in dir(robot)
assert np.isclose(robot.height(q, up, "tool"), height)
assert np.isclose(robot.height(q, direction=up, frame="tool"), height)
f = robot.compile(("height", "tool"), backend="interpreter")
assert f.inputs == ("q", "direction") and np.isclose(f(q, up), height)
gradient = robot.compile(("derivative", ("height", "tool"), "q"), backend="interpreter")(q, up)
assert np.allclose(gradient, [np.cos(0.3) + np.cos(0.7), np.cos(0.7)])
assert "direction" in f.c_source() and robot.operation_count(("height", "tool")).trig > 0
"""


def test_one_file_is_enough(tmp_path: Path):
    (tmp_path / "height.py").write_text(NEW)
    subprocess.run([sys.executable, "-c", USE, str(tmp_path)], check=True, timeout=120)


@pytest.mark.quick
def test_every_public_function_is_a_method_of_a_robot():
    arm = ls.robots.planar(2)
    for name in PUBLIC:
        method = "influence" if name.endswith("influence") else name
        assert FUNCTIONS[name].doc and callable(getattr(arm, method)) and name in dir(arm)
    with pytest.raises(AttributeError, match="no attribute 'multipliers'"):  # only with constraints
        arm.multipliers  # type: ignore[attr-defined]  # noqa: B018


@pytest.mark.quick
def test_methods_that_follow_from_declarations():
    arm, rng = ls.robots.planar(2), np.random.default_rng(0)
    q, point, out = rng.normal(size=(3, 2)), rng.normal(size=3), np.empty((3, 6, 2))
    call = arm.point_jacobian
    assert str(inspect.signature(call)) == "(q, point, frame, out=None, *, reference='world_aligned')"
    for reference in ("local", "world"):
        expected = arm.jacobian(q, "tool", reference=reference, point=point)
        assert call(q, point, "tool", out, reference=reference) is out and (out == expected).all()
    direct = arm.effective_inertia(q, method="direct")
    assert np.allclose(direct, arm.mass_matrix(q), rtol=1e-12)
    with pytest.raises(TypeError, match="point"):
        call(q, frame="tool")
