"""How influence coefficients, the explicit model and the regressor are traced, element by element."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import TYPE_CHECKING

from ..algorithms.explicit.influence import influence, joint_axes
from ..algorithms.whole_robot.kinematics import WORLD, poses
from ..algorithms.whole_robot.regressor import regressor
from ..mechanism.bias import BaseMotion
from ..mechanism.joints import Coordinates
from ..mechanism.sweeps import Adds, PerLink, Unrolled
from ..spatial.algebra import Vec, leaves
from ..spatial.scalars import Scalar
from ..tracing.tracer import Tracer, UnrolledRun
from .table import Algorithm

if TYPE_CHECKING:
    from .computation import RobotFunction

NAMES_VALUES = True  # of its steps: see tracing/labels.py


def joint_groups(tracer: Tracer | Unrolled) -> list[list[int]]:
    """The links that move with each rate, in the order of coordinates: one, unless joints are coupled."""
    groups: dict[int, list[int]] = {}
    for index, link in enumerate(tracer.model.links):
        groups.setdefault(link.start, []).append(index)
    return [groups[start] for start in sorted(groups)]


def summed_over(groups: list[list[int]], count: int, entry: Callable[..., Adds]) -> list[Adds]:
    """Of each choice of `count` rates the sum of entry(*links) over the links that move with them."""
    found = []
    for chosen in itertools.product(groups, repeat=count):
        first, *others = (entry(*links) for links in itertools.product(*chosen))
        for other in others:
            first = first + other
        found.append(first)
    return found


def trace_influence(tracer: UnrolledRun, computation: RobotFunction, output: int) -> None:
    """Influence coefficients of a point of the frame, (6, nv) or, H_{j;k} at [:, j, k], (6, nv, nv)."""
    frame = tracer.model.frame(computation.frames[0])
    at, path = poses(tracer), tracer.model.path(frame.link)
    axes = [Vec(*row) for row in frame.placement.rotation]
    offset = Vec(*tracer.read_flat("point"))
    pose = at[frame.link] if path else WORLD
    point = pose.point(Vec(*(row.dot(offset) for row in axes)) + Vec(*frame.placement.position))
    found, groups = influence(tracer, joint_axes(tracer, at), tracer.marked(path), point), joint_groups(tracer)
    motions = summed_over(groups, 1, lambda k: found.G[k])
    if computation.function == "second_influence":
        motions = summed_over(groups, 2, found.second)
    tracer.write(output, [value for row in zip(*(leaves(motion) for motion in motions), strict=True) for value in row])


def trace_explicit(algorithm: Algorithm, tracer: UnrolledRun, computation: RobotFunction, output: int) -> None:
    """I*, P*, or C with C_ik = sum_j (P*_ijk + P*_ikj) / 2 qd_j, by which dM/dt - 2 C is skew."""
    model, groups = algorithm(tracer), joint_groups(tracer)
    if computation.function == "effective_inertia":
        values = summed_over(groups, 2, lambda i, k: model.I[i, k])
    elif computation.function == "inertia_power":
        values = summed_over(groups, 3, lambda i, j, k: model.P[i, j, k])
    else:
        qd, every = tracer.read("qd"), [j for group in groups for j in group]

        def moved(i: int, k: int) -> Scalar:
            return sum((model.P.christoffel(i, j, k) * qd[j][0] for j in every), 0.0)

        values = summed_over(groups, 2, moved)
    tracer.write(output, values)


def trace_regressor(
    tracer: Tracer, qd: PerLink[Coordinates], qdd: PerLink[Coordinates], base: BaseMotion, output: int, packed: bool
) -> None:
    """Y, a row for each rate: ten columns for each link in document order, then one for each joint's armature."""
    tracer.write_parameters(output, regressor(tracer, qd, qdd, base), packed)
