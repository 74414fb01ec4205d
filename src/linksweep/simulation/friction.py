"""Joints that friction holds and stops end, over any scalar.

Coulomb friction p and bounds make of the rates v that a step would have without them those of the convex problem

    minimise  1/2 (v - v_free)^T M (v - v_free) + sum_i p_i (|v_i| - s_i v_i),   low <= v <= high,

J. J. Moreau's time stepping ("Unilateral contact and dry friction in finite freedom dynamics", 1988) in joint space. p
is friction times dt and -s the part of it, from -1 to 1, that v_free has felt already: where a joint slides on, s is
the sign of its rate and nothing changes. A rate that friction can hold is exactly 0, so a joint at rest does not creep.
Without dt the same problem gives accelerations: what of a joint at rest begins to move, and which force holds it.

Sweeps over the joints (projected Gauss-Seidel) find which are held; one elimination gives the rates of the others.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ..errors import ArgumentError
from ..mechanism.canonical import CanonicalModel
from ..mechanism.coordinates import moved
from ..robot.robot import Robot
from ..spatial.factorization import Rows, Values, dot, solved
from ..spatial.scalars import Scalar, is_zero, sign, where
from ..support.messages import shown
from .dynamics import Dynamics
from .integrators import added, between

if TYPE_CHECKING:
    from ..mechanism.canonical import CanonicalModel

SWEEPS, MANY = 16, 12  # of robots with at most so many rates; of larger ones, whose programs are long, 10
FAR = 1e30  # a bound that no rate reaches
MOST = 40  # rates: beyond, a program with all their couplings is too large, and friction does not hold


Stops = str | Sequence[float] | None  # "inelastic", or (stiffness, damping) of springs


@dataclass(frozen=True)
class Rest:
    """Of a robot: the friction of each rate, and where stops are: (place in q, place in v, lower, upper).

    spring: stiffness and damping of the stops; without, they are hard and take all speed (inelastic).
    """

    friction: tuple[float, ...]
    stops: tuple[tuple[int, int, float, float], ...] = ()
    spring: tuple[float, float] | None = None

    @property
    def is_hard(self) -> bool:
        """Whether anything holds joints; springs only push."""
        return any(self.friction) or bool(self.stops and self.spring is None)

    def spring_torque(self, q: Values, qd: Values) -> list[Scalar]:
        """What elastic stops push with: never towards them."""
        tau: list[Scalar] = [0.0] * len(qd)
        if self.spring is None:
            return tau
        k, d = self.spring
        for place, rate, lower, upper in self.stops:
            if upper < FAR:
                push = k * (upper - q[place]) - d * qd[rate]
                tau[rate] = tau[rate] + where(q[place] > upper, where(push < 0.0, push, 0.0), 0.0)
            if lower > -FAR:
                push = k * (lower - q[place]) - d * qd[rate]
                tau[rate] = tau[rate] + where(q[place] < lower, where(push > 0.0, push, 0.0), 0.0)
        return tau

    def bounds(self, q: Values, qd: Values | None = None) -> tuple[list[Scalar], list[Scalar]]:
        """Of rates at q: none into a hard stop that is reached. With qd, of accelerations of joints that rest there."""
        size = len(self.friction)
        low: list[Scalar] = [-FAR] * size
        high: list[Scalar] = [FAR] * size
        if self.spring is not None:
            return low, high
        for place, rate, lower, upper in self.stops:
            if upper < FAR:
                high[rate] = where(q[place] < upper, FAR, 0.0 if qd is None else where(qd[rate] < 0.0, FAR, 0.0))
            if lower > -FAR:
                low[rate] = where(q[place] > lower, -FAR, 0.0 if qd is None else where(qd[rate] > 0.0, -FAR, 0.0))
        return low, high


def friction_of(model: CanonicalModel) -> tuple[float, ...]:
    """Of each rate."""
    friction = [0.0] * model.nv
    for link in model.links:
        for rate in range(link.start, link.start + link.nv):
            friction[rate] += float(link.friction)
    return tuple(friction)


def settled(M: Rows, free: Values, s: Values, p: Values, low: Values, high: Values) -> list[Scalar]:
    """The rates v of the problem above."""
    n = len(free)
    v = list(free)
    inverse = [1.0 / M[i][i] for i in range(n)]
    for _ in range(1 if n == 1 else SWEEPS if n <= MANY else 10):
        for i in range(n):
            rest = M[i][i] * free[i]
            for j in range(n):
                if j != i:
                    rest = rest + M[i][j] * (free[j] - v[j])
            v[i] = _one(rest, inverse[i], s[i], p[i], low[i], high[i])
    if n > 1:
        v = _eliminated(M, free, s, p, v, _fixed(v, p, low, high))
    touched = _touched(free, s, p, low, high)
    return [where(touched > 0.0, new, old) for new, old in zip(v, free, strict=True)]


def _one(rest: Scalar, inverse: Scalar, s: Scalar, p: Scalar, low: Scalar, high: Scalar) -> Scalar:
    """The rate of one joint while the others keep theirs: M_ii v + p (sign(v) - s) = rest."""
    up, down = rest - p * (1.0 - s), rest + p * (1.0 + s)
    v = where(up > 0.0, up * inverse, where(down < 0.0, down * inverse, 0.0))
    return where(v < low, low, where(v > high, high, v))


def _fixed(v: Values, p: Values, low: Values, high: Values) -> list[Scalar]:
    """1 for a joint that friction holds or a stop ends, 0 for others."""
    found = []
    for own, friction, least, most in zip(v, p, low, high, strict=True):
        ended = where(own < most, where(own > least, 0.0, 1.0), 1.0)
        held = where(own > 0.0, 0.0, where(own < 0.0, 0.0, 1.0))
        found.append(where(friction > 0.0, where(held > 0.0, 1.0, ended), ended))
    return found


def _eliminated(M: Rows, free: Values, s: Values, p: Values, v: Values, fixed: Values) -> list[Scalar]:
    """The same rates, those of joints that are not fixed exact; as they were where a sign would change by that."""
    n = len(v)
    loose = [1.0 - x for x in fixed]
    A = [[M[i][j] * (loose[i] * loose[j]) for j in range(i)] + [M[i][i]] for i in range(n)]
    b = []
    for i in range(n):
        felt = p[i] * (sign(v[i]) - s[i])
        for j in range(n):
            if j != i:
                felt = felt + M[i][j] * ((v[j] - free[j]) * fixed[j])
        b.append(-felt * loose[i])
    exact = [x + y for x, y in zip(free, solved(A, b), strict=True)]
    wrong: Scalar = 0.0
    for i in range(n):
        turned = where(exact[i] * v[i] > 0.0, 0.0, loose[i])
        wrong = wrong + where(p[i] > 0.0, turned, 0.0)
    return [where(f > 0.0, old, where(wrong > 0.0, old, new)) for f, old, new in zip(fixed, v, exact, strict=True)]


def _touched(free: Values, s: Values, p: Values, low: Values, high: Values) -> Scalar:
    """Above 0 where friction or a stop changes anything: elsewhere the free rates are the rates, to the bit."""
    total: Scalar = 0.0
    for v, felt, friction, least, most in zip(free, s, p, low, high, strict=True):
        slides = where(felt * felt < 1.0, 0.0, where(v * felt > 0.0, 1.0, 0.0))
        total = total + where(friction > 0.0, 1.0 - slides, 0.0)
        total = total + where(v > most, 1.0, where(v < least, 1.0, 0.0))
    return total


def resting_acceleration(
    rest: Rest, M: Rows, free: Values, q: Values, qd: Values
) -> tuple[list[Scalar], list[Scalar], list[Scalar]]:
    """Accelerations, the force that holds or drives each joint, and the part of its friction that is felt (s).

    free: accelerations by all forces, friction of the joints that move among them, but none of those at rest.
    """
    moving = [sign(v) for v in qd]
    p = [f * (1.0 - m * m) for f, m in zip(rest.friction, moving, strict=True)]
    qdd = settled(M, free, [0.0] * len(free), p, *rest.bounds(q, qd))
    change = [a - b for a, b in zip(qdd, free, strict=True)]
    force, felt = [], []
    for row, f, m in zip(M, rest.friction, moving, strict=True):
        own = dot(row, change)
        force.append(own)
        if is_zero(f):
            felt.append(0.0)
            continue
        part = own * (-1.0 / f)
        held = where(part < -1.0, -1.0, where(part > 1.0, 1.0, part))
        felt.append(where(m * m > 0.0, m, held))
    return qdd, force, felt


def rest_of(robot: Robot, dissipation: bool, stops: Stops | None = None) -> Rest | None:
    """What holds and ends the joints of this robot; None where nothing does.

    stops: None, "inelastic", or (stiffness, damping) of springs.
    """
    places: list[tuple[int, int, float, float]] = []
    spring = None
    if stops is not None:
        if not (isinstance(stops, str) and stops == "inelastic"):
            spring = _spring(stops)
        for link, described in zip(robot.canonical.links, robot.model.links, strict=True):
            lower, upper = float(described.joint.limits.lower), float(described.joint.limits.upper)
            if link.leads and link.type.limited and (lower > -FAR or upper < FAR):
                places += [(*pair, max(lower, -FAR), min(upper, FAR)) for pair in link.pairs]
        if not places:
            raise ArgumentError(
                f"stops is given, but no joint of {robot.name} has limits, expected some: leave it out."
            )
    friction = friction_of(robot.canonical) if dissipation else (0.0,) * robot.nv
    found = Rest(friction, tuple(places), spring)
    if found.is_hard and robot.nv > MOST:
        if found.stops and spring is None:
            raise ArgumentError(
                f"stops='inelastic' is for robots of at most {MOST} rates, {robot.name} has {robot.nv}: use springs, "
                f"stops=(stiffness, damping)."
            )
        found = Rest((0.0,) * robot.nv, tuple(places), spring)
    return found if found.stops or any(found.friction) else None


def _spring(stops: str | Sequence[float]) -> tuple[float, float]:
    try:
        k, d = (float(x) for x in stops)
    except (TypeError, ValueError, OverflowError):
        k = d = -1.0
    if isinstance(stops, str) or not (0.0 < k < FAR and 0.0 <= d < FAR):
        raise ArgumentError(
            f"stops is {shown(stops)}, expected 'inelastic', or (stiffness, damping) of springs at the joints' limits."
        )
    return k, d


def check_inside(robot: Robot, rest: Rest | None, q0: np.ndarray, name: str = "q0") -> None:
    """Refuse a start beyond a hard stop."""
    if rest is None or rest.spring is not None:
        return
    names = {
        link.q_start: described.joint.name
        for link, described in zip(robot.canonical.links, robot.model.links, strict=True)
        if link.leads
    }
    for place, _, lower, upper in rest.stops:
        if (q0[..., place] < lower).any() or (q0[..., place] > upper).any():
            raise ArgumentError(
                f"{name} is outside the limits {lower:g} to {upper:g} of joint {names[place]}, where it has "
                f"hard stops: start inside, or use springs, stops=(stiffness, damping)."
            )


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
