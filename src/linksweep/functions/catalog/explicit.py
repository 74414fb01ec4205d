"""The explicit model: influence coefficients, I*, P*, the Coriolis matrix, and the regressor."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import TYPE_CHECKING

from ...algorithms.explicit.coriolis_matrix import coriolis_matrix
from ...algorithms.explicit.explicit_model import explicit_model
from ...algorithms.explicit.explicit_model_direct import explicit_model_direct
from ...algorithms.explicit.influence import influence, joint_axes
from ...algorithms.mass_matrix.composite_inertia import mass_matrix
from ...algorithms.rigid_body.kinematics import WORLD, poses
from ...algorithms.rigid_body.regressor import regressor
from ...mechanism.sweeps import Adds, Unrolled
from ...spatial.algebra import Vec, leaves
from ...spatial.scalars import Scalar
from ...tracing.tracer import Tracer, UnrolledRun
from ..declaration import Function, Method
from .dynamics import base_motion, trace_pairs

if TYPE_CHECKING:
    from ..computation import RobotFunction

NAMES_VALUES = True  # of its steps: see tracing/labels.py


def joint_groups(tracer: Tracer | Unrolled) -> list[list[int]]:
    """Return the links that move with each velocity, in order: one, unless there are mimic joints."""
    groups: dict[int, list[int]] = {}
    for index, link in enumerate(tracer.model.links):
        groups.setdefault(link.start, []).append(index)
    return [groups[start] for start in sorted(groups)]


def summed_over(groups: list[list[int]], count: int, entry: Callable[..., Adds]) -> list[Adds]:
    """Return, for each choice of `count` velocities, the sum of entry(*links) over the links that move with them."""
    sums = []
    for chosen in itertools.product(groups, repeat=count):
        first, *others = (entry(*links) for links in itertools.product(*chosen))
        for other in others:
            first = first + other
        sums.append(first)
    return sums


def trace_influence(tracer: UnrolledRun, computation: RobotFunction, output: int) -> None:
    """Influence coefficients of a point of the frame, (6, nv) or, H_{j;k} at [:, j, k], (6, nv, nv)."""
    frame = tracer.model.frame(computation.frames[0])
    at, path = poses(tracer), tracer.model.path(frame.link)
    axes = [Vec(*row) for row in frame.placement.rotation]
    offset = Vec(*tracer.read_flat("point"))
    pose = at[frame.link] if path else WORLD
    point = pose.point(Vec(*(row.dot(offset) for row in axes)) + Vec(*frame.placement.position))
    groups = joint_groups(tracer)
    coefficients = influence(tracer, joint_axes(tracer, at), tracer.marked(path), point)
    motions = summed_over(groups, 1, lambda k: coefficients.G[k])
    if computation.function == "second_influence":
        motions = summed_over(groups, 2, coefficients.second)
    tracer.write(output, [value for row in zip(*(leaves(motion) for motion in motions), strict=True) for value in row])


def trace_explicit(tracer: UnrolledRun, computation: RobotFunction, output: int) -> None:
    """Write I*, P*, or C with C_ik = sum_j (P*_ijk + P*_ikj) / 2 qd_j, by which dM/dt - 2 C is skew-symmetric."""
    algorithm = computation.declared_method.algorithm
    if algorithm is coriolis_matrix:
        tracer.write_pair_blocks(coriolis_matrix(tracer, tracer.read("qd")), {output: "C"})
        return
    if algorithm is mass_matrix:
        trace_pairs(tracer, computation, output)
        return
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


def trace_regressor(tracer: Tracer, computation: RobotFunction, output: int) -> None:
    """Write Y, a row for each velocity: ten columns for each link in document order, then one for each armature."""
    Y = regressor(tracer, tracer.read("qd"), tracer.read("qdd"), base_motion(tracer, computation))
    tracer.write_parameters(output, Y, computation.function == "packed_regressor")


INFLUENCE = {"": Method(influence, single=True, written_out=True)}
EXPLICIT = {
    "augmented_bodies": Method(explicit_model, single=True, written_out=True),
    "direct": Method(explicit_model_direct, single=True, written_out=True),
}

DECLARED: dict[str, Function] = {
    "first_influence": Function(
        ("q", "point"), "G", (6, "v"), INFLUENCE, trace_influence,
        "First-order influence coefficients of a point of a frame.", dynamics=False, needs_frame=True
    ),
    "second_influence": Function(
        ("q", "point"), "H", (6, "v", "v"), INFLUENCE, trace_influence,
        "Second-order influence coefficients of a point of a frame.", dynamics=False, needs_frame=True
    ),
    "regressor": Function(
        ("q", "qd", "qdd"), "Y", ("v", "parameters"), {"": Method(regressor)}, trace_regressor,
        "Regressor of the standard inertial parameters.", operations=(293, 78), dynamics=False, takes=("base_motion",)
    ),
    "packed_regressor": Function(
        ("q", "qd", "qdd"), "Y", ("packed",), {"": Method(regressor)}, trace_regressor,
        "Nonzero entries of the regressor.", operations=(293, 78), dynamics=False, takes=("base_motion",)
    ),
    "effective_inertia": Function(
        ("q",), "I", ("v", "v"), {"composite": Method(mass_matrix, linear=True), **EXPLICIT}, trace_explicit,
        "Coefficients I* of the accelerations in the explicit model, the mass matrix."
    ),
    "inertia_power": Function(
        ("q",), "P", ("v", "v", "v"), EXPLICIT, trace_explicit,
        "Coefficients P* of products of velocities in the explicit model."
    ),
    "coriolis_matrix": Function(
        ("q", "qd"), "C", ("v", "v"),
        {"composite": Method(coriolis_matrix, linear=True), "augmented_bodies": EXPLICIT["augmented_bodies"]},
        trace_explicit, "Coriolis matrix.", operations=(373, 83)
    ),
}  # fmt: skip
