"""How influence coefficients, the explicit model and the regressor are traced, element by element."""

from __future__ import annotations

from typing import Any

from ..algorithms.explicit.influence import influence, joint_axes
from ..algorithms.whole_robot.kinematics import WORLD, poses
from ..algorithms.whole_robot.regressor import regressor
from ..spatial.algebra import Vec, leaves
from .body_traces import source

NAMES_VALUES = True  # of its steps: see tracing/labels.py


def joint_order(tracer: Any) -> list[int]:
    """The links in the order of their coordinates."""
    return sorted(range(len(tracer.links)), key=lambda link: tracer.model.links[link].start)


def trace_influence(tracer: Any, request: Any, output: int) -> None:
    """Influence coefficients of a point of the frame, (6, nv) or, H_{j;k} at [:, j, k], (6, nv, nv)."""
    frame = tracer.model.frame(request.frame)
    at, path = poses(tracer), tracer.model.path(frame.link)
    axes = [Vec(*row) for row in frame.placement.rotation]
    offset = Vec(*tracer.read_flat(source(tracer, "point")))
    pose = at[frame.link] if path else WORLD
    point = pose.point(Vec(*(row.dot(offset) for row in axes)) + Vec(*frame.placement.position))
    found, order = influence(tracer, joint_axes(tracer, at), tracer.marked(path), point), joint_order(tracer)
    motions = [found.G[k] for k in order]
    if request.function == "second_influence":
        motions = [found.second(j, k) for j in order for k in order]
    tracer.write(output, [value for row in zip(*(leaves(motion) for motion in motions), strict=True) for value in row])


def trace_explicit(algorithm: Any, tracer: Any, request: Any, output: int) -> None:
    """I*, P*, or C with C_ik = sum_j (P*_ijk + P*_ikj) / 2 qd_j, by which dM/dt - 2 C is skew."""
    model, order = algorithm(tracer), joint_order(tracer)
    if request.function == "effective_inertia":
        values = [model.I[i, k] for i in order for k in order]
    elif request.function == "inertia_power":
        values = [model.P[i, j, k] for i in order for j in order for k in order]
    else:
        qd = tracer.read(source(tracer, "qd"))
        values = [sum((model.P.christoffel(i, j, k) * qd[j][0] for j in order), 0.0) for i in order for k in order]
    tracer.write(output, values)


def trace_regressor(tracer: Any, qd: Any, qdd: Any, base: Any, output: int, packed: bool) -> None:
    """Y, a row for each rate: ten columns for each link in document order, then one for each joint's armature."""
    tracer.write_parameters(output, regressor(tracer, qd, qdd, base), packed)
