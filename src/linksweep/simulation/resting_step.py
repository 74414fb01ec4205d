"""A step with friction that holds and joints that end at stops, over any scalar: around any integrator of fixed steps.

At its beginning the joints at rest are asked what holds them; that force, and the friction of those that move, stay for
the step, so that it keeps its order while joints slide or stick. At its end, rates that friction or a stop would not
allow are settled (resting.py); of a joint that comes through rest, for the part of the step that is left then.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from ..mechanism.moving import Values, moved
from ..spatial.scalars import Scalar, where
from .control.forms import Dynamics, added, between
from .resting import Rest, resting_acceleration, settled

if TYPE_CHECKING:
    from ..mechanism.canonical import CanonicalModel

# (stage, q, qd) -> driving torques, and (stage, q, qd, those) -> with what the world pushes
Torques = tuple[Callable[..., Values], Callable[..., Values]]


def resting_step(
    rest: Rest, dynamics: Dynamics, integrator: Callable[..., tuple[Values, ...]], torques: Torques, q: Values,
    qd: Values, dt: Scalar,
) -> tuple[Values, ...]:  # fmt: skip
    """q and qd after dt; qdd and the driving torques at its beginning."""
    model, (driven, by_world) = dynamics.model, torques
    if not rest.is_hard:  # springs at the stops, and no friction: a torque like any other

        def pushed(stage: int, at: Values, rate: Values) -> tuple[Values, Values]:
            tau = driven(stage, at, rate)
            felt = added(by_world(stage, at, rate, tau), rest.spring_torque(at, rate))
            return dynamics.forward(at, rate, felt), tau

        return integrator(model, pushed, q, qd, dt)
    M = dynamics.mass_matrix(q)
    sliding = [-f * where(v > 0.0, 1.0, where(v < 0.0, -1.0, 0.0)) for f, v in zip(rest.friction, qd, strict=True)]
    kept: dict[str, Values] = {}

    def accelerate(stage: int, at: Values, rate: Values) -> tuple[Values, Values]:
        tau = driven(stage, at, rate)
        pushed = added(by_world(stage, at, rate, tau), rest.spring_torque(at, rate))
        if "force" not in kept:
            free = dynamics.forward_without_friction(at, rate, added(pushed, sliding))
            qdd, force, kept["felt"] = resting_acceleration(rest, M, free, at, rate)
            kept["force"] = added(sliding, force)
            return qdd, tau
        return dynamics.forward_without_friction(at, rate, added(pushed, kept["force"])), tau

    q_end, v_end, qdd, tau = integrator(model, accelerate, q, qd, dt)
    left = [dt * _left(*rates) for rates in zip(rest.friction, qd, v_end, strict=True)]
    p = [f * time for f, time in zip(rest.friction, left, strict=True)]
    v_new = settled(M, v_end, kept["felt"], p, *rest.bounds(q_end))
    q_new = moved(model, q_end, [(new - old) * time * 0.5 for new, old, time in zip(v_new, v_end, left, strict=True)])
    return _at_rest(rest, model, q, qd, q_new, v_new), v_new, qdd, tau


def _left(friction: float, before: Scalar, after: Scalar) -> Scalar:
    """What of the step is left when a joint comes to rest, from where on friction holds it or turns with it; else 1."""
    if not friction:
        return 1.0
    turns = before * after
    return where(turns < 0.0, after / where(turns < 0.0, after - before, 1.0), 1.0)


def _at_rest(rest: Rest, model: CanonicalModel, q: Values, qd: Values, q_new: Values, v_new: Values) -> list[Scalar]:
    """Where a joint with q' = v rests at both ends of the step it has not moved; none is beyond a hard stop."""
    out = list(q_new)
    stops = {place: (lower, upper) for place, _, lower, upper in rest.stops} if rest.spring is None else {}
    for link in model.links:
        for place, rate in link.pairs:
            if rest.friction[rate] > 0.0:
                energy = v_new[rate] * v_new[rate] + qd[rate] * qd[rate]
                out[place] = where(energy > 0.0, out[place], q[place])
            if place in stops:
                out[place] = between(stops[place][0], out[place], stops[place][1])
    return out
