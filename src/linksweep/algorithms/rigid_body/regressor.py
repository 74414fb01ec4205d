"""The regressor: joint forces as a matrix times the inertial parameters, tau = Y pi.

C. G. Atkeson, C. H. An and J. M. Hollerbach, "Estimation of inertial parameters of manipulator loads and links", 1986:
the force that a body of unit parameter needs, along every joint that moves it. The paper is not among our sources:
steps are named, not numbered. A link has ten parameters in its described frame, mass, first moment and inertia about
the frame's origin, and its joint an armature.

Forces and joints meet in the frame of the link on the base: a pair of a link and a joint is ten products, and nothing
is carried from joint to joint. Six of the ten forces are moments alone.
"""

from __future__ import annotations

from dataclasses import dataclass

from ...mechanism.bias import BaseMotion
from ...mechanism.joints import Coordinates
from ...mechanism.sweeps import LinkView, Pairs, PerJoint, Sweep
from ...spatial.algebra import ZERO_VEC, Force, Inertia, Motion, Sym, Vec
from ...spatial.scalars import Values
from ...spatial.transforms import Pose
from ..explicit.influence import first_joint_poses
from ..inverse.khalil_kleinfinger import State, moment_of, motion_of_links

@dataclass(slots=True)
class Unit:
    """Forces of links with mass, mx, my or mz of 1, and moments of links with XX, YY, ZZ, XY, XZ or YZ of 1."""

    forces: tuple[Force, ...]
    moments: tuple[Vec, ...]


@dataclass(slots=True)
class Elements:
    """Entries of link i and joint j: force of joint j per unit of each parameter of i and, if i is j, of armature."""

    columns: tuple[Coordinates, ...]
    motor: Values


def regressor(sweep: Sweep, qd: PerJoint, qdd: PerJoint, base: BaseMotion) -> Pairs:
    """The Elements of every link and joint that moves it. qd, qdd: nv scalars per link."""

    def axes_step(link: LinkView, nothing: tuple[()], at: Pose) -> tuple[tuple[Motion, ...], tuple[()]]:
        return tuple(in_frame_of(at, h) for h in link.H_T.columns), nothing                      # step: joints

    def start(
        link: LinkView, moving: State, at: Pose, S: tuple[Motion, ...], qdd: Coordinates
    ) -> tuple[Elements, Unit]:
        unit = unit_forces(in_described_frame(link, moving), at.through(link.described))         # step: unit bodies
        return Elements(asked(S, unit), qdd), unit

    def step(
        link: LinkView, unit: Unit, moving: State, at: Pose, S: tuple[Motion, ...], qdd: Coordinates
    ) -> tuple[Elements, Unit]:
        return Elements(asked(S, unit), ()), unit                                                # step: along the joint

    at = first_joint_poses(sweep)
    S = sweep.outward(axes_step, (), at)
    return sweep.pairs(start, step, motion_of_links(sweep, qd, qdd, base), at, S, qdd)


def in_frame_of(at: Pose, h: Motion) -> Motion:
    """A motion of a link's frame in the frame in which `at` is its pose."""
    angular = at.turn(h.angular)
    return Motion(angular, at.turn(h.linear) + at.p.cross(angular))


def in_described_frame(link: LinkView, at: State) -> State:
    """The link's motion in its described frame, at the origin of that frame."""
    X = link.described
    return State(X.turn_back(at.w), X.turn_back(at.dw), X.turn_back(at.dv + at.U @ X.origin()))


def unit_forces(moving: State, at: Pose) -> Unit:
    """The forces of ten bodies, each with one parameter of 1, in the frame in which `at` is the pose of theirs."""
    dv, U = at.turn(moving.dv), moving.U.T
    forces = [Force(at.p.cross(dv), dv)]                                                         # step: m
    for axis, column in zip((at.x, at.y, at.z), (U.x, U.y, U.z), strict=True):
        force = at.turn(column)
        forces.append(Force(axis.cross(dv) + at.p.cross(force), force))                          # step: mx, my, mz
    moments = [at.turn(moment_of(moving, moving.U, J)) for J in unit_inertias()]                 # step: XX ... YZ
    return Unit(tuple(forces), tuple(moments))


def unit_inertias() -> list[Sym]:
    """The second moments of mass of six bodies, each with one of XX, YY, ZZ, XY, XZ, YZ of 1."""
    tensors = [Sym(*(1.0 if i == k else 0.0 for i in range(6))) for k in range(6)]
    return [Inertia(0.0, ZERO_VEC, tensor).second_moments() for tensor in tensors]


def asked(S: tuple[Motion, ...], unit: Unit) -> tuple[Coordinates, ...]:
    """Return each force along the degrees of freedom of the joint."""
    moments = (Force(moment, ZERO_VEC) for moment in unit.moments)
    return tuple(Coordinates(f.dot(s) for s in S) for f in (*unit.forces, *moments))
