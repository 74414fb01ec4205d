"""The regressor: joint forces as a matrix times the inertial parameters, tau = Y pi.

C. G. Atkeson, C. H. An and J. M. Hollerbach, "Estimation of inertial parameters of manipulator loads and links", 1986:
the force that a body of unit parameter needs, carried from its link to every joint that moves it. The paper is not
among our sources: steps are named, not numbered. A link has ten parameters in its described frame, mass, first moment
and inertia about the frame's origin, and its joint an armature.
"""

from __future__ import annotations

from typing import Any

from ...mechanism.bias import BaseMotion
from ...spatial.algebra import ZERO_VEC, Inertia, Sym, Vec
from ...mechanism.sweeps import LinkView, PerLink, Sweep
from ..inverse.khalil_kleinfinger import State, inertial_force, motion_of_links


def regressor(sweep: Sweep, qd: PerLink, qdd: PerLink, base: BaseMotion) -> Any:
    """For link i and joint j that moves it: ten Coordinates, what each parameter of link i asks of joint j."""

    def start(link: LinkView, at: State) -> tuple[Any, Any]:
        forces = [inertial_force(at, link.from_described_body(body)) for body in unit_bodies()]  # step: unit bodies
        return tuple(link.H(f) for f in forces), tuple(link.phi(f) for f in forces)

    def step(link: LinkView, forces: Any, at: State) -> tuple[Any, Any]:
        return tuple(link.H(f) for f in forces), tuple(link.phi(f) for f in forces)              # step: along the chain

    return sweep.pairs(start, step, motion_of_links(sweep, qd, qdd, base))


def unit_bodies() -> list[Inertia]:
    """Ten bodies, each with one parameter of 1: m, mx, my, mz, XX, YY, ZZ, XY, XZ, YZ."""
    rows = [[1.0 if i == k else 0.0 for i in range(10)] for k in range(10)]
    return [Inertia(row[0], Vec(*row[1:4]) if any(row[1:4]) else ZERO_VEC, Sym(*row[4:])) for row in rows]
