"""Coulomb friction at rest and joint limit stops, over any scalar.

The velocities v after a step solve the convex problem

    minimise  1/2 (v - v_free)^T M (v - v_free) + sum_i p_i (|v_i| - s_i v_i),   low <= v <= high,

where v_free are the velocities without friction at rest and stops. This is J. J. Moreau's time stepping ("Unilateral
contact and dry friction in finite freedom dynamics", 1988) in joint space. p is friction times dt. -s, from -1 to 1, is
the fraction of it that v_free already includes. For a joint that keeps sliding, s is the sign of its velocity and
nothing changes. A velocity that friction can hold is exactly 0, so a joint at rest does not creep. Without dt, the same
problem yields accelerations: which joints at rest begin to move, and the forces that hold the others.

Projected Gauss-Seidel sweeps find which joints are held. One elimination yields the velocities of the others.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from ..errors import ArgumentError
from ..mechanism.canonical import CanonicalModel
from ..mechanism.coordinates import moved
from ..robot.robot import Robot
from ..spatial.factorization import Rows, Values, dot, solved
from ..spatial.scalars import Scalar, is_zero, sign, where
from ..support.messages import shown
from .dynamics import Dynamics, added, between

SWEEPS, MANY = 16, 12  # sweeps for at most this number of velocities; larger robots, with long programs, have 10
FAR = 1e30  # a bound that no velocity reaches
MAX_VELOCITIES = 40  # of robots with friction at rest: the program would be too large for more


Stops = str | Sequence[float] | None  # "inelastic", or (stiffness, damping) of springs


@dataclass(frozen=True)
class Rest:
    """Coulomb friction (nv) and joint limit stops of a robot.

    stops: (index in q, index in qd, lower limit, upper limit). spring: stiffness and damping of the stops; None for
    hard, inelastic ones.
    """

    friction: tuple[float, ...]
    stops: tuple[tuple[int, int, float, float], ...] = ()
    spring: tuple[float, float] | None = None

    @property
    def is_hard(self) -> bool:
        """Whether friction or hard stops can hold joints."""
        return any(self.friction) or bool(self.hard_stops)

    @property
    def hard_stops(self) -> tuple[tuple[int, int, float, float], ...]:
        return self.stops if self.spring is None else ()

    def spring_torque(self, q: Values, qd: Values) -> list[Scalar]:
        """Return the torques (nv) of elastic stops, which only push."""
        tau: list[Scalar] = [0.0] * len(qd)
        if self.spring is None:
            return tau
        k, d = self.spring
        for i, j, lower, upper in self.stops:
            if upper < FAR:
                push = k * (upper - q[i]) - d * qd[j]
                tau[j] = tau[j] + where(q[i] > upper, where(push < 0.0, push, 0.0), 0.0)
            if lower > -FAR:
                push = k * (lower - q[i]) - d * qd[j]
                tau[j] = tau[j] + where(q[i] < lower, where(push > 0.0, push, 0.0), 0.0)
        return tau

    def bounds(self, q: Values, qd: Values | None = None) -> tuple[list[Scalar], list[Scalar]]:
        """Return bounds (nv) of velocities at q, which do not move a joint into a hard stop that it has reached.

        With qd, return bounds of the accelerations of joints that rest there.
        """
        size = len(self.friction)
        low: list[Scalar] = [-FAR] * size
        high: list[Scalar] = [FAR] * size
        for i, j, lower, upper in self.hard_stops:
            if upper < FAR:
                high[j] = where(q[i] < upper, FAR, 0.0 if qd is None else where(qd[j] < 0.0, FAR, 0.0))
            if lower > -FAR:
                low[j] = where(q[i] > lower, -FAR, 0.0 if qd is None else where(qd[j] > 0.0, -FAR, 0.0))
        return low, high


def settled(M: Rows, free: Values, s: Values, p: Values, low: Values, high: Values) -> list[Scalar]:
    """Return the velocities v of the problem above."""
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
    """Return the velocity of one joint while the others keep theirs: M_ii v + p (sign(v) - s) = rest."""
    up, down = rest - p * (1.0 - s), rest + p * (1.0 + s)
    v = where(up > 0.0, up * inverse, where(down < 0.0, down * inverse, 0.0))
    return where(v < low, low, where(v > high, high, v))


def _fixed(v: Values, p: Values, low: Values, high: Values) -> list[Scalar]:
    """Return 1 for joints that friction or a stop holds, 0 for the others."""
    fixed = []
    for velocity, friction, lower, upper in zip(v, p, low, high, strict=True):
        stopped = where(velocity < upper, where(velocity > lower, 0.0, 1.0), 1.0)
        held = where(velocity > 0.0, 0.0, where(velocity < 0.0, 0.0, 1.0))
        fixed.append(where(friction > 0.0, where(held > 0.0, 1.0, stopped), stopped))
    return fixed


def _eliminated(M: Rows, free: Values, s: Values, p: Values, v: Values, fixed: Values) -> list[Scalar]:
    """Return the velocities with exact ones of the joints that are not fixed, or unchanged if a sign would change."""
    n = len(v)
    loose = [1.0 - x for x in fixed]
    A = [[M[i][j] * (loose[i] * loose[j]) for j in range(i)] + [M[i][i]] for i in range(n)]
    b = []
    for i in range(n):
        impulse = p[i] * (sign(v[i]) - s[i])
        for j in range(n):
            if j != i:
                impulse = impulse + M[i][j] * ((v[j] - free[j]) * fixed[j])
        b.append(-impulse * loose[i])
    exact = [x + y for x, y in zip(free, solved(A, b), strict=True)]
    wrong: Scalar = 0.0
    for i in range(n):
        turned = where(exact[i] * v[i] > 0.0, 0.0, loose[i])
        wrong = wrong + where(p[i] > 0.0, turned, 0.0)
    return [where(f > 0.0, old, where(wrong > 0.0, old, new)) for f, old, new in zip(fixed, v, exact, strict=True)]


def _touched(free: Values, s: Values, p: Values, low: Values, high: Values) -> Scalar:
    """Return a number above 0 if friction or a stop changes anything; otherwise v is exactly v_free."""
    total: Scalar = 0.0
    for v, part, friction, lower, upper in zip(free, s, p, low, high, strict=True):
        slides = where(part * part < 1.0, 0.0, where(v * part > 0.0, 1.0, 0.0))
        total = total + where(friction > 0.0, 1.0 - slides, 0.0)
        total = total + where(v > upper, 1.0, where(v < lower, 1.0, 0.0))
    return total


def resting_acceleration(
    rest: Rest, M: Rows, free: Values, q: Values, qd: Values
) -> tuple[list[Scalar], list[Scalar], list[Scalar]]:
    """Return accelerations, the forces that hold joints, and the fraction s of friction that acts, each (nv).

    free: accelerations by all forces, including the friction of joints that move, but not of those at rest.
    """
    moving = [sign(v) for v in qd]
    p = [f * (1.0 - m * m) for f, m in zip(rest.friction, moving, strict=True)]
    qdd = settled(M, free, [0.0] * len(free), p, *rest.bounds(q, qd))
    change = [a - b for a, b in zip(qdd, free, strict=True)]
    force = [dot(row, change) for row in M]
    s: list[Scalar] = []
    for holding, f, m in zip(force, rest.friction, moving, strict=True):
        if is_zero(f):
            s.append(0.0)
            continue
        part = holding * (-1.0 / f)
        held = where(part < -1.0, -1.0, where(part > 1.0, 1.0, part))
        s.append(where(m * m > 0.0, m, held))
    return qdd, force, s


def rest_of(robot: Robot, dissipation: bool, stops: Stops | None = None) -> Rest | None:
    """Return the friction and the stops of a robot, or None if it has neither.

    stops: None, "inelastic", or (stiffness, damping) of springs.
    """
    limits: list[tuple[int, int, float, float]] = []
    spring = None
    if stops is not None:
        if not (isinstance(stops, str) and stops == "inelastic"):
            spring = _spring(stops)
        for link, described in zip(robot.canonical.links, robot.model.links, strict=True):
            lower, upper = float(described.joint.limits.lower), float(described.joint.limits.upper)
            if link.leads and link.type.limited and (lower > -FAR or upper < FAR):
                limits += [(*pair, max(lower, -FAR), min(upper, FAR)) for pair in link.pairs]
        if not limits:
            raise ArgumentError(f"no joint of {robot.name} has limits, expected some for joint stops: omit the stops.")
    friction = [0.0] * robot.nv
    for link in robot.canonical.links if dissipation else ():
        for i in range(link.start, link.start + link.nv):
            friction[i] += float(link.friction)
    rest = Rest(tuple(friction), tuple(limits), spring)
    if rest.is_hard and robot.nv > MAX_VELOCITIES:
        if rest.hard_stops:
            raise ArgumentError(
                f"{robot.name} has {robot.nv} DOF, expected at most {MAX_VELOCITIES} with inelastic stops: use "
                f"springs, JointStops(stiffness, damping)."
            )
        rest = Rest((0.0,) * robot.nv, tuple(limits), spring)
    return rest if rest.stops or any(rest.friction) else None


def _spring(stops: str | Sequence[float]) -> tuple[float, float]:
    try:
        k, d = (float(x) for x in stops)
    except (TypeError, ValueError, OverflowError):
        k = d = -1.0
    if isinstance(stops, str) or not (0.0 < k < FAR and 0.0 <= d < FAR):
        raise ArgumentError(
            f"stops is {shown(stops)}, expected 'inelastic', or (stiffness, damping) of springs at the joint limits."
        )
    return k, d


def check_inside(robot: Robot, rest: Rest | None, q0: np.ndarray, name: str = "q0") -> None:
    """Raise ArgumentError for initial coordinates beyond a hard stop."""
    for i, _, lower, upper in () if rest is None else rest.hard_stops:
        if (q0[..., i] < lower).any() or (q0[..., i] > upper).any():
            links = zip(robot.canonical.links, robot.model.links, strict=True)
            joint = next(x.joint.name for link, x in links if link.leads and i in dict(link.pairs))
            raise ArgumentError(
                f"{name} is outside the limits {lower:g} to {upper:g} of joint {joint}, which has hard stops: start "
                f"inside, or use springs, JointStops(stiffness, damping)."
            )


# (stage, q, qd) -> driving torques, and (stage, q, qd, tau) -> tau with the torques of disturbances
Torques = tuple[Callable[..., Values], Callable[..., Values]]


def resting_step(
    rest: Rest, dynamics: Dynamics, integrate: Callable[..., tuple[Values, ...]], torques: Torques, q: Values,
    qd: Values, dt: Scalar,
) -> tuple[Values, ...]:  # fmt: skip
    """Return q and qd after dt, and qdd and the driving torques at the beginning of the step."""
    model, (driven, disturbed) = dynamics.model, torques

    def applied(stage: int, x: Values, v: Values) -> tuple[Values, Values]:
        """Return the driving torques, and all torques but friction."""
        tau = driven(stage, x, v)
        return tau, added(disturbed(stage, x, v, tau), rest.spring_torque(x, v))

    if not rest.is_hard:  # springs at the stops, and no friction

        def with_springs(stage: int, x: Values, v: Values) -> tuple[Values, Values]:
            tau, total = applied(stage, x, v)
            return dynamics.forward(x, v, total), tau

        return integrate(model, with_springs, q, qd, dt)
    M = dynamics.mass_matrix(q)
    sliding = [-f * where(v > 0.0, 1.0, where(v < 0.0, -1.0, 0.0)) for f, v in zip(rest.friction, qd, strict=True)]
    first: dict[str, Values] = {}  # friction and holding forces of the first stage, which act in all stages, and s

    def accelerate(stage: int, x: Values, v: Values) -> tuple[Values, Values]:
        tau, total = applied(stage, x, v)
        if not first:
            free = dynamics.forward_without_friction(x, v, added(total, sliding))
            qdd, force, first["s"] = resting_acceleration(rest, M, free, x, v)
            first["force"] = added(sliding, force)
            return qdd, tau
        return dynamics.forward_without_friction(x, v, added(total, first["force"])), tau

    q_end, v_end, qdd, tau = integrate(model, accelerate, q, qd, dt)
    left = [dt * _fraction_left(*rates) for rates in zip(rest.friction, qd, v_end, strict=True)]
    p = [f * time for f, time in zip(rest.friction, left, strict=True)]
    v_new = settled(M, v_end, first["s"], p, *rest.bounds(q_end))
    q_new = moved(model, q_end, [(new - old) * time * 0.5 for new, old, time in zip(v_new, v_end, left, strict=True)])
    return _at_rest(rest, model, q, qd, q_new, v_new), v_new, qdd, tau


def _fraction_left(friction: float, before: Scalar, after: Scalar) -> Scalar:
    """Return the fraction of the step that is left when friction brings a joint to rest; 1 if it does not."""
    if not friction:
        return 1.0
    reverses = before * after
    return where(reverses < 0.0, after / where(reverses < 0.0, after - before, 1.0), 1.0)


def _at_rest(rest: Rest, model: CanonicalModel, q: Values, qd: Values, q_new: Values, v_new: Values) -> list[Scalar]:
    """Return q_new with joints that rest at both ends of the step unmoved, and none beyond a hard stop."""
    out = list(q_new)
    stops = {i: (lower, upper) for i, _, lower, upper in rest.hard_stops}
    for link in model.links:
        for i, j in link.pairs:
            if rest.friction[j] > 0.0:
                energy = v_new[j] * v_new[j] + qd[j] * qd[j]
                out[i] = where(energy > 0.0, out[i], q[i])
            if i in stops:
                out[i] = between(stops[i][0], out[i], stops[i][1])
    return out
