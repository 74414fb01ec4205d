"""Forward dynamics by filtering and smoothing, with the inertia factored: P = U diag(d) U^T.

The filter and smoother of G. Rodriguez 1987, (35)-(47), with Kozlowski's bias terms as in filter_smoother.py, in the
square-root form of G. J. Bierman, "Factorization Methods for Discrete Sequential Estimation", 1977, the papers'
reference for stable filters: the prediction (37) is a weighted Gram-Schmidt orthogonalisation, the update (43) is
Bierman's. P stays symmetric and nonnegative whatever the rounding. Serial chains of one-freedom joints.
"""

# pyright: reportConstantRedefinition=false
# (capital letters are the papers' symbols, and no constants)

from __future__ import annotations

from dataclasses import dataclass

from ...mechanism.bias import BaseMotion, local_bias_acceleration, local_bias_force
from ...mechanism.joints import Coordinates
from ...spatial.scalars import Scalar
from ...spatial.algebra import ZERO_ARTICULATED, ZERO_FORCE, ZERO_VEC, ArticulatedInertia, Force, Motion, Vec, leaves
from ...spatial.factorization import bierman_update, factored, orthogonalised
from ...mechanism.sweeps import LinkView, PerJoint, PerLink, Sweep


@dataclass(slots=True)
class Velocity:
    V_plus: Motion  # velocity of the inner link, carried to this one
    V: Motion  # velocity [w; v]
    n: Motion  # bias acceleration of the joint


@dataclass(slots=True)
class Predicted:
    """z, and the columns of U with their weights, so that P = sum of d u u^T."""

    z: Force
    columns: tuple[Force, ...]
    d: tuple[Scalar, ...]


@dataclass(slots=True)
class Filtered:
    b: Force  # bias force: what the link's velocity alone needs, less external forces
    z: Force  # [moment; force] at the link's joint as far as the joints beyond it tell: the predicted state
    z_plus: Force  # the same with what the link's own joint tells: the updated state
    P: ArticulatedInertia  # articulated inertia: the sum of d u u^T over the columns u of U
    U: tuple[Force, ...]  # columns of the factor of P
    d: tuple[Scalar, ...]  # their weights
    U_plus: tuple[Force, ...]  # columns of the factor after the joint's own update
    d_plus: tuple[Scalar, ...]  # their weights
    D: Coordinates  # inertia that the joint meets
    G: Force  # gain
    innovation: Coordinates  # joint force beyond what z holds already
    residual: Coordinates  # innovation / D: the acceleration that it alone would give the joint


@dataclass(slots=True)
class Smoothed:
    carried: Motion  # costate of the inner link, carried to this one, and n
    costate: Motion  # lambda = [dw; dv] less gravity, derivatives seen in the link's own frame
    qdd: Coordinates  # joint acceleration


@dataclass(slots=True)
class Result:
    qdd: PerJoint
    costate: PerLink[Motion]
    velocity: PerLink[Velocity]
    filtered: PerLink[Filtered]
    carried: PerLink[Motion]


def filter_smoother_ud(
    sweep: Sweep, qd: PerJoint, tau: PerJoint, f_ext: PerLink[Force], base: BaseMotion, dissipation: bool = False
) -> Result:
    """Joint accelerations that the joint forces tau produce; arguments as of filter_smoother."""

    def velocity_step(link: LinkView, V_parent: Motion, qd: Coordinates) -> tuple[Velocity, Motion]:
        V_plus = link.phi_T(V_parent)                                                            # (11), (3.1)
        V = V_plus + link.H_T @ qd                                                               # (12), (3.2)
        n = local_bias_acceleration(link, V_plus, qd)                                            # (15), (3.7)
        return Velocity(V_plus, V, n), V

    def filter_step(
        link: LinkView, outer: Predicted, at: Velocity, qd: Coordinates, tau: Coordinates, f_ext: Force
    ) -> tuple[Filtered, Predicted]:
        b = local_bias_force(link, at.V) - f_ext                                                 # (3.14)
        z = outer.z + b                                                                          # (36)
        own, weights = inertia_columns(link)
        squares = [leaves(column) for column in (*outer.columns, *own)]
        U, d = orthogonalised(squares, [*outer.d, *weights])                                     # (37)
        f = [link.H(column)[0] for column in as_forces(U)]
        U_plus, d_plus, D, gain = bierman_update(U, d, f, link.armature)                         # (38), (43)
        G = Force(Vec(*gain[:3]), Vec(*gain[3:]))                                                # (39)
        if dissipation:
            tau = tau - link.dissipative_force(qd)
        innovation = tau - link.H(z)                                                             # (40)
        columns = as_forces(U_plus)
        P_n = ZERO_FORCE
        for column, weight in zip(columns, d_plus, strict=True):
            P_n = P_n + column * (weight * column.dot(at.n))
        z_plus = z + G * innovation[0] + P_n                                                     # (41)
        residual = Coordinates((innovation[0] / D,))                                             # (42)
        up = Predicted(link.phi(z_plus), tuple(link.phi(column) for column in columns), tuple(d_plus))
        P = ZERO_ARTICULATED
        for column, weight in zip(as_forces(U), d, strict=True):
            P = P.minus_outer(column * -weight, column)                                          # (37)
        factors = (tuple(as_forces(U)), tuple(d), tuple(columns), tuple(d_plus))
        return Filtered(b, z, z_plus, P, *factors, Coordinates((D,)), G, innovation, residual), up

    def smoother_step(
        link: LinkView, parent: Motion, at: Velocity, kept: Filtered
    ) -> tuple[Smoothed, Motion]:
        carried = link.phi_T(parent) + at.n                                                      # (45)
        qdd = kept.residual - (kept.G.dot(carried),)                                             # (46)
        costate = carried + link.H_T @ qdd                                                       # (47)
        return Smoothed(carried, costate, qdd), costate

    at = sweep.outward(velocity_step, base.velocity, qd)
    zero = Predicted(ZERO_FORCE, (ZERO_FORCE,) * 6, (0.0,) * 6)                                  # (35)
    filtered, _ = sweep.inward(filter_step, zero, at, qd, tau, f_ext)
    smoothed = sweep.outward(smoother_step, base.acceleration, at, filtered)                     # (44)
    return Result(smoothed.qdd, smoothed.costate, at, filtered, smoothed.carried)


def as_forces(U: list[list[Scalar]]) -> list[Force]:
    """The columns of a 6x6 matrix, given by rows."""
    return [Force(Vec(*column[:3]), Vec(*column[3:])) for column in zip(*U, strict=True)]


def inertia_columns(link: LinkView) -> tuple[list[Force], list[Scalar]]:
    """M(k) as a sum of weighted squares: turning about the center of mass, and moving it."""
    rows = [list(row) for row in link.I_com.rows()]
    U, d = factored(rows)
    turning = [Force(Vec(*column), ZERO_VEC) for column in zip(*U, strict=True)]
    axes = (Vec(1.0, 0.0, 0.0), Vec(0.0, 1.0, 0.0), Vec(0.0, 0.0, 1.0))
    moving = [Force(link.com.cross(axis), axis) for axis in axes]
    return [*turning, *moving], [*d, *[link.M.mass] * 3]
