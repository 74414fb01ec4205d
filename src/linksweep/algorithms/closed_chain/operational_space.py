"""The operational space: Omega = J M^-1 J^T of frames of a tree, by the filter's own quantities.

G. Rodriguez, "Kalman Filtering, Smoothing, and Recursive Robot Arm Forward and Inverse Dynamics", 1987, (81)-(82): the
covariance Delta of the costates is J M^-1 J^T of each link at its origin. With a block D(k) it holds for any joint, and
outward from the base on any tree. The blocks between two frames are G. Rodriguez and K. Kreutz, "Recursive Mass Matrix
Factorization and Inversion", 1988: a force at a frame is carried inward by psi = phi (1 - G H), (4.7), and the forces
of two frames meet in Omega of the link from which their ways part. O(n) for one frame, O(n + m d + m^2) for m frames
at depth d.
"""

from __future__ import annotations

from dataclasses import dataclass

from ...model.model import BASE
from ...mechanism.joints import JointInertia, Span
from ...mechanism.sweeps import LinkView, PerLink, Sweep
from ...spatial.algebra import ZERO_COMPLIANCE, ZERO_FORCE, ZERO_VEC, Compliance, Force, Motion, Transform, Vec
from ...spatial.scalars import Scalar
from ..mass_matrix.factorization import Gain, gains

AXES = (Vec(1.0, 0.0, 0.0), Vec(0.0, 1.0, 0.0), Vec(0.0, 0.0, 1.0))
UNITS = (*(Force(axis, ZERO_VEC) for axis in AXES), *(Force(ZERO_VEC, axis) for axis in AXES))

Forces = tuple[Force, ...]


@dataclass(slots=True)
class Place:
    """A frame: the link that carries it, and its axes and point in the frame of that link."""

    link: int
    at: Transform


@dataclass(slots=True)
class Result:
    """blocks[i, j], i <= j: Omega between frame i and frame j, the six Motions of i for unit Forces at j."""

    blocks: dict[tuple[int, int], list[Motion]]


def operational_space(sweep: Sweep, places: list[Place], parents: list[int]) -> Result:
    """Omega of every pair of frames; parents: of each link."""
    kept = gains(sweep)
    Omega = compliances(sweep, kept)
    carried: dict[int, PerLink[Forces]] = {}
    blocks: dict[tuple[int, int], list[Motion]] = {}
    for i, own in enumerate(places):
        for j in range(i, len(places)):
            link = _parting(parents, own.link, places[j].link)
            if link == BASE:
                blocks[i, j] = [Motion(ZERO_VEC, ZERO_VEC)] * 6
            elif i == j:
                at_frame = own.at.to_link(sweep.at(Omega, link))                                 # (82), shifted to it
                blocks[i, j] = [at_frame @ unit for unit in UNITS]
            else:
                for k in {i, j} - carried.keys():
                    carried[k] = _inward(sweep, kept, places[k])
                rows = sweep.at(carried[i], link)
                motions = [sweep.at(Omega, link) @ force for force in sweep.at(carried[j], link)]
                blocks[i, j] = [_seen(rows, motion) for motion in motions]
    return Result(blocks)


def compliances(sweep: Sweep, kept: PerLink[Gain]) -> PerLink[Compliance]:
    """Omega(k) = psi^T Omega(parent) psi + H^T D^-1 H of every link, at its origin and in its frame."""

    def step(link: LinkView, inner: Compliance, at: Gain) -> tuple[Compliance, Compliance]:
        H, G, D = link.H_T.columns, Span(at.G), JointInertia.of(at.block)
        Omega_plus = link.phi_T(inner)                                                           # (81)
        Omega_G = [Omega_plus @ g for g in G.columns]
        unit = [[1.0 if a == b else 0.0 for b in range(len(H))] for a in range(len(H))]
        Omega = Omega_plus
        for a, h in enumerate(H):
            c = D.solve(unit[a]) + G.transpose_times(Omega_G[a])                                 # (71)
            alpha = Omega_G[a] - link.H_T @ c                                                    # (71)
            Omega = Omega.minus_outer(h, alpha).minus_outer(Omega_G[a], h)                       # (82)
        return Omega, Omega

    return sweep.outward(step, ZERO_COMPLIANCE, kept)                                            # Omega(base) = 0


def _inward(sweep: Sweep, kept: PerLink[Gain], place: Place) -> PerLink[Forces]:
    """Unit Forces at a frame as they arrive at each link between it and the base, with the joints between free."""
    start = tuple(place.at.to_parent(unit) for unit in UNITS)

    def step(link: LinkView, outer: Forces, at: Gain, here: Scalar) -> tuple[Forces, Forces]:
        forces = tuple(f + unit * here for f, unit in zip(outer, start, strict=True))
        return forces, tuple(link.phi(f - Span(at.G) @ link.H(f)) for f in forces)               # (4.7) psi

    forces, _ = sweep.inward(step, (ZERO_FORCE,) * 6, kept, sweep.marked({place.link}))
    return forces


def _parting(parents: list[int], a: int, b: int) -> int:
    """Return the link farthest from the base that carries both."""
    above: set[int] = set()
    while a != BASE:
        above.add(a)
        a = parents[a]
    while b != BASE and b not in above:
        b = parents[b]
    return b


def _seen(rows: tuple[Force, ...], motion: Motion) -> Motion:
    """The six products of a Motion with unit Forces: that Motion at their frame."""
    entries = [force.dot(motion) for force in rows]
    return Motion(Vec(*entries[:3]), Vec(*entries[3:]))


__all__ = ["Place", "Result", "compliances", "operational_space"]
