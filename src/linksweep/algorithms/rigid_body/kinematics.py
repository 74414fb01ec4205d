"""Poses, velocities, Jacobians and their derivatives in time.

The pose of a link is that of its parent carried through the factors of its transform. The Jacobian of a frame is
J = B^T phi^T H^T of G. Rodriguez and K. Kreutz 1988, (3.7), column by column: joint k moves the frame with angular
velocity h(k) and linear velocity h(k) x l(k, 0), or h(k) for a prismatic joint. Its columns are fixed in
their links, so their derivative is w(k) x h(k), and the arm l(k, 0) changes with the velocities of its ends.
"""

from __future__ import annotations

from dataclasses import dataclass

from ...mechanism.joints import Coordinates
from ...spatial.algebra import ZERO_MOTION, Motion, Vec
from ...mechanism.sweeps import LinkView, PerJoint, PerLink, Sweep
from ...spatial.scalars import Scalar
from ...spatial.transforms import WORLD, Pose


@dataclass(slots=True)
class Column:
    """The motion of the frame for each unit velocity of one joint."""

    motions: tuple[Motion, ...]



@dataclass(slots=True)
class Observer:
    """The point of a Jacobian with its velocity, and the axes with their angular velocity, in the base frame.

    Only the directions of `axes` are used.
    """

    point: Vec
    velocity: Vec
    axes: Pose
    spin: Vec


def poses(sweep: Sweep) -> PerLink[Pose]:
    """The Pose of every link's canonical frame in the base frame."""

    def step(link: LinkView, parent: Pose) -> tuple[Pose, Pose]:
        pose = parent.through(link.X)
        return pose, pose

    return sweep.outward(step, WORLD)


def velocities(sweep: Sweep, qd: PerJoint) -> PerLink[Motion]:
    """V(k) of every link, in its own frame, (2.25) on a base at rest."""

    def step(link: LinkView, V_parent: Motion, qd: Coordinates) -> tuple[Motion, Motion]:
        V = link.phi_T(V_parent) + link.H_T @ qd                                                     # (2.25)
        return V, V

    return sweep.outward(step, ZERO_MOTION, qd)


def jacobian(
    sweep: Sweep, at: PerLink[Pose], on_path: PerLink[Scalar], point: Vec, axes: Pose = WORLD
) -> PerLink[Column]:
    """Columns of the Jacobian at `point` (in the base frame) along `axes`: (3.7) of Rodriguez & Kreutz.

    at: the pose of every link; on_path: 1 for links between the base and the frame, 0 for the others.
    """

    def step(link: LinkView, nothing: tuple[()], at: Pose, on_path: Scalar) -> tuple[Column, tuple[()]]:
        motions = (_moved(h, at, on_path, point) for h in link.H_T.columns)
        return Column(tuple(Motion(axes.turn_back(m.angular), axes.turn_back(m.linear)) for m in motions)), nothing

    return sweep.outward(step, (), at, on_path)


def jacobian_derivative(
    sweep: Sweep, at: PerLink[Pose], V: PerLink[Motion], qd: PerJoint, on_path: PerLink[Scalar], observer: Observer
) -> PerLink[Column]:
    """Columns of dJ/dt, the time derivative of each entry of `jacobian`; V from `velocities`."""
    o, axes = observer, observer.axes

    def step(
        link: LinkView, nothing: tuple[()], at: Pose, V: Motion, qd: Coordinates, on_path: Scalar
    ) -> tuple[Column, tuple[()]]:
        w, v = at.turn(V.angular), at.turn(V.linear)
        motions: list[Motion] = []
        for h, h_rate in zip(link.H_T.columns, link.H_T_rate(qd).columns, strict=True):
            now = _moved(h, at, on_path, o.point)
            slide = at.turn(h.linear) * on_path
            angular = w.cross(now.angular)
            linear = w.cross(slide) + angular.cross(o.point - at.p) + now.angular.cross(o.velocity - v)
            own = _moved(h_rate, at, on_path, o.point)  # where the axes move in their link
            angular = angular + own.angular - o.spin.cross(now.angular)
            linear = linear + own.linear - o.spin.cross(now.linear)
            motions.append(Motion(axes.turn_back(angular), axes.turn_back(linear)))
        return Column(tuple(motions)), nothing

    return sweep.outward(step, (), at, V, qd, on_path)


def column(h: Motion, at: Pose, point: Vec) -> Motion:
    """Return the motion of a point, in the base frame, for a unit velocity along h, a column of H^T of a link."""
    return _moved(h, at, 1.0, point)


def _moved(h: Motion, at: Pose, on_path: Scalar, point: Vec) -> Motion:
    """Return the motion of a point, in base axes, for a unit velocity along h, a column of H^T of a link."""
    angular = at.turn(h.angular) * on_path
    return Motion(angular, at.turn(h.linear) * on_path + angular.cross(point - at.p))                # (3.7)
