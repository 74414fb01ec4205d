"""One step in time, over any scalar: the same lines are traced into machine code and run on NumPy columns.

Coordinates and rates are flat lists in the order of the robot's coordinates; what they are to each other says each
kind of joint (joints/).

`rk4` is the classical method on (q, qd); a rotation does not depend on its quaternion's length, so the stages leave it
alone and the step ends with a normalised one, which keeps the fourth order. `semi_implicit_euler` takes qd first and
then moves with it by the exponential of the group, as `Robot.integrate` does.
"""

from __future__ import annotations

from collections.abc import Callable

from ..mechanism.canonical import CanonicalModel
from ..mechanism.coordinates import Values, joined, moved, normalized
from ..spatial.scalars import Scalar, where

Accelerate = Callable[[int, Values, Values], tuple[Values, Values]]  # (stage, q, qd) -> (qdd, tau)


def rk4(model: CanonicalModel, accelerate: Accelerate, q: Values, qd: Values, dt: Scalar) -> tuple[Values, ...]:
    """q and qd after dt; qdd and tau at its beginning. Stages 0, 1, 2: its beginning, middle and end."""
    half = dt * 0.5
    r1, (a1, tau) = coordinate_rates(model, q, qd), accelerate(0, q, qd)
    q2, v2 = _along(q, half, r1), _along(qd, half, a1)
    r2, (a2, _) = coordinate_rates(model, q2, v2), accelerate(1, q2, v2)
    q3, v3 = _along(q, half, r2), _along(qd, half, a2)
    r3, (a3, _) = coordinate_rates(model, q3, v3), accelerate(1, q3, v3)
    q4, v4 = _along(q, dt, r3), _along(qd, dt, a3)
    r4, (a4, _) = coordinate_rates(model, q4, v4), accelerate(2, q4, v4)
    sixth = dt * (1.0 / 6.0)
    q_end, v_end = _along(q, sixth, _simpson(r1, r2, r3, r4)), _along(qd, sixth, _simpson(a1, a2, a3, a4))
    return normalized(model, q_end), v_end, a1, tau


def semi_implicit_euler(
    model: CanonicalModel, accelerate: Accelerate, q: Values, qd: Values, dt: Scalar
) -> tuple[Values, ...]:
    """q and qd after dt; qdd and tau at its beginning."""
    qdd, tau = accelerate(0, q, qd)
    after = _along(qd, dt, qdd)
    return normalized(model, moved(model, q, [v * dt for v in after])), after, qdd, tau


INTEGRATORS: dict[str, Callable[..., tuple[Values, ...]]] = {"rk4": rk4, "semi_implicit_euler": semi_implicit_euler}
STAGES = {"rk4": 3, "semi_implicit_euler": 1}  # moments of a step at which a law is evaluated
EVALUATIONS = {"rk4": 4, "semi_implicit_euler": 1}  # of the dynamics


def _along(start: Values, dt: Scalar, rates: Values) -> list[Scalar]:
    return [x + dt * r for x, r in zip(start, rates, strict=True)]


def _simpson(a: Values, b: Values, c: Values, d: Values) -> list[Scalar]:
    return [(w + z) + (x + y) * 2.0 for w, x, y, z in zip(a, b, c, d, strict=True)]


def coordinate_rates(model: CanonicalModel, q: Values, v: Values) -> list[Scalar]:
    """q' of the rates v."""
    return joined((k.coordinates, k.type.derivative(q[k.coordinates], v[k.rates])) for k in model.joints)


def tracking_error(model: CanonicalModel, q: Values, wanted: Values) -> list[Scalar]:
    """How far each joint is from where it should be, along its rates: what a proportional gain multiplies.

    For a ball joint twice the vector part of the quaternion that is missing, which is the rotation vector for small
    angles; 0 for a free joint, which has no motor.
    """
    return joined(
        (k.rates, [0.0] * k.nv if k.type.floats else k.type.error(q[k.coordinates], wanted[k.coordinates]))
        for k in model.joints
    )


def at_motors(model: CanonicalModel, tau: Values) -> list[Scalar]:
    """The torques with 0 at passive joints, free ones among them."""
    return joined((k.rates, tau[k.rates] if k.actuated else [0.0] * k.nv) for k in model.joints)


def added(a: Values, b: Values) -> list[Scalar]:
    return [x + y for x, y in zip(a, b, strict=True)]


def between(lower: Scalar, x: Scalar, upper: Scalar) -> Scalar:
    """x clipped to the bounds."""
    return where(x < lower, lower, where(upper < x, upper, x))
