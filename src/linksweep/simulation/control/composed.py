"""Laws made of laws, and laws that stand beside others in a sum: gravity, friction, impedance at a frame."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar

import numpy as np
from numpy.typing import ArrayLike

from ...errors import ArgumentError
from ...robot.robot import Robot
from ...support.messages import nearest, shown
from ...support.numbers import checked_flag
from ..checks import positive, real_array
from ..laws import Function, Law
from .forms import Form, Gravity, Saturated, SmoothFriction, Sum, SurfaceAt, TaskSpace, WrenchAt
from .signals import Grid, Reference, Signal, along, check_alike, checked_controller, gain

T = TypeVar("T")
Path = Callable[[np.ndarray], ArrayLike | tuple[ArrayLike, ArrayLike]]  # poses, or with their twists
Target = Path | ArrayLike


class GravityCompensation(Law):
    """tau = g(q): what holds the robot still against gravity."""

    def __init__(self, *, controller_robot: Robot | None = None, actuated: Sequence[str] | None = None):
        self.controller_robot = checked_controller("GravityCompensation", controller_robot)
        self.actuated = actuated

    def check(self, robot: Robot) -> None:
        check_alike(self, robot)

    def form(self, robot: Robot) -> Form:
        return self._seen(Gravity(), robot)


class FrictionCompensation(Law):
    """tau = damping v + friction v / sqrt(v^2 + width^2): what friction takes, without its jump at rest.

    reference: a path whose rates are v; without one, the measured rates. friction, damping: (..., nv), those of the
    robot's description unless said. width: the rate (rad/s, m/s) below which the Coulomb part fades; at 7 times of it,
    99 % are there.
    """

    def __init__(
        self, reference: Reference | None = None, *, friction: ArrayLike | None = None,
        damping: ArrayLike | None = None, width: float = 0.01, controller_robot: Robot | None = None,
        actuated: Sequence[str] | None = None,
    ):  # fmt: skip
        name = "FrictionCompensation"
        if reference is not None and not callable(reference):
            raise ArgumentError(
                f"{name}: reference is {shown(reference)}, expected a path, or None for measured rates."
            )
        self.reference, self.width = reference, positive(f"{name}: width", width)
        self.friction = None if friction is None else real_array(f"{name}: friction", friction)
        self.damping = None if damping is None else real_array(f"{name}: damping", damping)
        self.controller_robot, self.actuated = checked_controller(name, controller_robot), actuated

    def check(self, robot: Robot) -> None:
        check_alike(self, robot)

    def form(self, robot: Robot) -> Form:
        return self._seen(SmoothFriction(self.reference is not None), robot)

    def signals(self, robot: Robot, grid: Grid) -> dict[str, Signal]:
        if self.reference is None:
            return {}
        return {"qd_ref": Signal(along(type(self).__name__, self.reference, robot, grid.times)[1], grid.rows)}

    def at(self, robot: Robot, grid: Grid) -> Callable[[float], dict[str, np.ndarray]]:
        if self.reference is None:
            return lambda t: {}
        path = self.reference
        return lambda t: {"qd_ref": along(type(self).__name__, path, robot, np.array([t]))[1][0]}

    def constants(self, robot: Robot) -> dict[str, np.ndarray]:
        found = {"width": np.array([self.width])}
        for name in ("friction", "damping"):
            described = np.zeros(robot.nv)
            for link in self.known(robot).canonical.links:
                described[link.rates] += getattr(link, name)
            found[name] = described if getattr(self, name) is None else gain(self, name, robot.nv)
        return found


class OperationalSpace(Law):
    """tau = J^T (stiffness * error + damping * (wanted twist - twist)) + g(q), and a posture that the frame ignores.

    frame: by name. target: its pose (..., 4, 4) in the base, or a path of poses: target(t) of an array of times gives
    poses (n, 4, 4), alone or with twists (n, 6). stiffness, damping: one number, or six, [angular; linear] in the
    base's directions. posture: coordinates (..., nq) to which springs kp_posture and dampers kd_posture draw the
    joints, in the null space of the frame (Khatib 1987): they do not accelerate it. gravity=False leaves g(q) out.

    decoupled=True: stiffness (1/s^2) and damping (1/s) make accelerations of the frame, tau = J^T Lambda (stiffness *
    error + damping * ... - dJ/dt qd) + h(q, qd): each direction moves by itself, whatever the inertia of the robot.
    """

    def __init__(
        self, frame: str, target: Target, stiffness: ArrayLike, damping: ArrayLike, *,
        posture: ArrayLike | None = None, kp_posture: ArrayLike = 10.0, kd_posture: ArrayLike = 2.0,
        gravity: bool = True, decoupled: bool = False, controller_robot: Robot | None = None,
        actuated: Sequence[str] | None = None,
    ):  # fmt: skip
        name = "OperationalSpace"
        self.frame, self.gravity = frame, checked_flag(f"{name}: gravity", gravity)
        self.decoupled = checked_flag(f"{name}: decoupled", decoupled)
        self.target: Path | np.ndarray = target if callable(target) else _poses(name, target)
        self.stiffness = real_array(f"{name}: stiffness", stiffness)
        self.damping = real_array(f"{name}: damping", damping)
        self.posture = None if posture is None else real_array(f"{name}: posture", posture)
        self.kp_posture = real_array(f"{name}: kp_posture", kp_posture)
        self.kd_posture = real_array(f"{name}: kd_posture", kd_posture)
        self.controller_robot, self.actuated = checked_controller(name, controller_robot), actuated

    def check(self, robot: Robot) -> None:
        check_alike(self, robot)
        _check_frame(self, self.known(robot), self.frame)
        if robot.constraints and (self.decoupled or self.posture is not None):
            raise ArgumentError(
                f"{type(self).__name__}: decoupled=True and posture= need the inertia that a frame of a tree has, but "
                f"{robot.name} has constraints: use stiffness and damping alone."
            )

    def form(self, robot: Robot) -> Form:
        return self._seen(TaskSpace(self.frame, self.posture is not None, self.gravity, self.decoupled), robot)

    def signals(self, robot: Robot, grid: Grid) -> dict[str, Signal]:
        if callable(self.target):
            poses, twists = _along(self.target, grid.times)
            return {"pose_ref": Signal(poses, grid.rows), "twist_ref": Signal(twists, grid.rows)}
        return {"pose_ref": Signal(self.target[None], 0), "twist_ref": Signal(np.zeros((1, 6)), 0)}

    def at(self, robot: Robot, grid: Grid) -> Callable[[float], dict[str, np.ndarray]]:
        target = self.target
        if not callable(target):
            fixed = {"pose_ref": target, "twist_ref": np.zeros(6)}
            return lambda t: fixed

        def values(t: float) -> dict[str, np.ndarray]:
            poses, twists = _along(target, np.array([t]))
            return {"pose_ref": poses[0], "twist_ref": twists[0]}

        return values

    def constants(self, robot: Robot) -> dict[str, np.ndarray]:
        found = {"stiffness": gain(self, "stiffness", 6), "damping": gain(self, "damping", 6)}
        if self.posture is not None:
            found["posture"] = robot.normalize(real_array("OperationalSpace: posture", self.posture, robot.nq))
            found |= {name: gain(self, name, robot.nv) for name in ("kp_posture", "kd_posture")}
        return found

    def __repr__(self) -> str:
        return f"OperationalSpace({self.frame!r}, stiffness={shown(self.stiffness.tolist())})"


class Push(Law):
    """A wrench of the world on a frame, from `start` to `end` (s): [moment; force] (..., 6) in the base's directions.

    Several pushes add up (+). Fixed steps feel it for a whole step or not at all.
    """

    def __init__(self, frame: str, wrench: ArrayLike, start: float = 0.0, end: float = np.inf):
        self.frame, self.wrench = frame, real_array("Push: wrench", wrench, 6)
        times = isinstance(start, (int, float)) and isinstance(end, (int, float)) and start < end
        if not times or max(abs(start), 0.0 if end == np.inf else abs(end)) > 1e300:
            raise ArgumentError(
                f"Push: it goes from {shown(start)} to {shown(end)}, expected two times, the later one last."
            )
        self.start, self.end = float(start), float(end)

    def check(self, robot: Robot) -> None:
        _check_frame(self, robot, self.frame)

    def form(self, robot: Robot) -> Form:
        return WrenchAt(self.frame)

    def signals(self, robot: Robot, grid: Grid) -> dict[str, Signal]:
        on = self._on(grid.times[:: grid.rows] + 1e-9 * grid.dt).reshape(-1, *(1,) * self.wrench.ndim)
        return {"wrench": Signal(np.where(on, self.wrench, 0.0), 1)}

    def at(self, robot: Robot, grid: Grid) -> Callable[[float], dict[str, np.ndarray]]:
        return lambda t: {"wrench": np.where(self._on(np.array(t)), self.wrench, 0.0)}

    def _on(self, t: np.ndarray) -> np.ndarray:
        return (t >= self.start) & (t < self.end)

    def __repr__(self) -> str:
        return f"Push({self.frame!r}, {shown(self.wrench.tolist())}, {self.start:g}, {self.end:g})"


class Admittance(OperationalSpace):
    """The frame moves like a body on a spring and a damper that the measured wrench pushes, whatever the robot weighs:

        mass * acceleration = stiffness * error + damping * (wanted twist - twist) + wrench

    mass, stiffness, damping: one number or six, [angular (kg m^2, N m/rad, N m s/rad); linear (kg, N/m, N s/m)] in the
    base's directions. wrench: what a sensor at the frame's origin reads, [moment; force] in the same directions: six
    numbers, a function of an array of times that gives (n, 6), or the `Push` that the simulation has. In C it is an
    input. target, posture and the others are those of `OperationalSpace`; stiffness 0 is for hand guiding.
    """

    def __init__(
        self, frame: str, target: Target, mass: ArrayLike, stiffness: ArrayLike, damping: ArrayLike,
        wrench: Push | Callable[[np.ndarray], ArrayLike] | ArrayLike, *, posture: ArrayLike | None = None,
        kp_posture: ArrayLike = 10.0, kd_posture: ArrayLike = 2.0, gravity: bool = True,
        controller_robot: Robot | None = None, actuated: Sequence[str] | None = None,
    ):  # fmt: skip
        super().__init__(
            frame, target, stiffness, damping, posture=posture, kp_posture=kp_posture, kd_posture=kd_posture,
            gravity=gravity, decoupled=True, controller_robot=controller_robot, actuated=actuated,
        )  # fmt: skip
        self.mass = real_array("Admittance: mass", mass)
        if not (self.mass > 0.0).all():
            raise ArgumentError(f"Admittance: mass is {shown(mass)}, expected numbers above 0.")
        if isinstance(wrench, Push) and wrench.frame != frame:
            raise ArgumentError(
                f"Admittance: wrench is a push at {wrench.frame!r}, expected one at the law's frame {frame!r}."
            )
        self.wrench: Push | Callable[[np.ndarray], ArrayLike] | np.ndarray
        if isinstance(wrench, Push) or callable(wrench):
            self.wrench = wrench
        else:
            self.wrench = real_array("Admittance: wrench", wrench, 6)

    def form(self, robot: Robot) -> Form:
        return self._seen(TaskSpace(self.frame, self.posture is not None, self.gravity, True, True), robot)

    def signals(self, robot: Robot, grid: Grid) -> dict[str, Signal]:
        if isinstance(self.wrench, Push):
            sensed = self.wrench.signals(robot, grid)["wrench"]
        elif callable(self.wrench):
            sensed = Signal(_sensed(self.wrench, grid.times), grid.rows)
        else:
            sensed = Signal(self.wrench[None], 0)
        return super().signals(robot, grid) | {"wrench": sensed}

    def at(self, robot: Robot, grid: Grid) -> Callable[[float], dict[str, np.ndarray]]:
        wanted, wrench = super().at(robot, grid), self.wrench
        if isinstance(wrench, Push):
            pushed = wrench.at(robot, grid)
            return lambda t: wanted(t) | pushed(t)
        if callable(wrench):
            return lambda t: wanted(t) | {"wrench": _sensed(wrench, np.array([t]))[0]}
        return lambda t: wanted(t) | {"wrench": wrench}

    def constants(self, robot: Robot) -> dict[str, np.ndarray]:
        return super().constants(robot) | {"mass": gain(self, "mass", 6)}

    def __repr__(self) -> str:
        return f"Admittance({self.frame!r}, mass={shown(self.mass.tolist())})"


class Surface(Law):
    """A flat table under a tool: it pushes the origin of a frame out, and lets it go.

    point, normal: three numbers each in the base; the normal points to where the tool may be. stiffness (N/m) and
    damping (N s/m) act while the frame is below; the surface never pulls. friction: Coulomb's coefficient, smooth
    within sliding speeds of `width` (m/s). Part of `disturbance=`, alone or added to pushes. Steps of dt resolve it
    where stiffness dt^2 is small against the mass that the frame carries.
    """

    def __init__(
        self, frame: str, point: ArrayLike = (0.0, 0.0, 0.0), normal: ArrayLike = (0.0, 0.0, 1.0), *,
        stiffness: float = 1e4, damping: float = 100.0, friction: float = 0.0, width: float = 1e-3,
    ):  # fmt: skip
        self.frame, self.point = frame, real_array("Surface: point", point, 3)
        self.normal = real_array("Surface: normal", normal, 3)
        length = np.linalg.norm(self.normal, axis=-1, keepdims=True)
        if not (length > 0.0).all():
            raise ArgumentError(f"Surface: normal is {shown(normal)}, expected a direction, such as (0, 0, 1).")
        self.normal = self.normal / length
        self.stiffness, self.width = positive("Surface: stiffness", stiffness), positive("Surface: width", width)
        self.damping, self.friction = real_array("Surface: damping", damping), real_array("Surface: friction", friction)
        for name in ("damping", "friction"):
            if (getattr(self, name) < 0.0).any():
                raise ArgumentError(f"Surface: {name} is {shown(getattr(self, name).tolist())}, expected 0 or more.")

    def check(self, robot: Robot) -> None:
        _check_frame(self, robot, self.frame)

    def form(self, robot: Robot) -> Form:
        return SurfaceAt(self.frame)

    def constants(self, robot: Robot) -> dict[str, np.ndarray]:
        found = {"point": self.point, "normal": self.normal}
        for name in ("stiffness", "damping", "friction", "width"):
            found[name] = np.asarray(getattr(self, name), dtype=float)[..., None]
        return found

    def __repr__(self) -> str:
        return f"Surface({self.frame!r}, {shown(self.point.tolist())}, {shown(self.normal.tolist())})"


class SumOfLaws(Law):
    """What `a + b` makes: the torques of every one together."""

    def __init__(self, laws: Sequence[Law]):
        self.laws = tuple(laws)

    def check(self, robot: Robot) -> None:
        for law in self.laws:
            law.check(robot)

    def form(self, robot: Robot) -> Form:
        return Sum(tuple(law.form(robot) for law in self.laws))

    def signals(self, robot: Robot, grid: Grid) -> dict[str, Signal]:
        return _numbered([law.signals(robot, grid) for law in self.laws])

    def constants(self, robot: Robot) -> dict[str, np.ndarray]:
        return _numbered([law.constants(robot) for law in self.laws])

    def at(self, robot: Robot, grid: Grid) -> Callable[[float], dict[str, np.ndarray]]:
        each = [law.at(robot, grid) for law in self.laws]
        return lambda t: _numbered([at(t) for at in each])

    @property
    def controller_robot(self) -> Robot | None:  # pyright: ignore[reportIncompatibleVariableOverride]
        return next((law.controller_robot for law in self.laws if law.controller_robot is not None), None)

    def __repr__(self) -> str:
        return " + ".join(map(repr, self.laws))


class SaturatedLaw(Law):
    """What `saturated(law)` makes: torques within effort limits, and none at all where one of them would be NaN."""

    def __init__(self, law: Law, limits: ArrayLike | None = None):
        self.law = law
        self.limits = None if limits is None else real_array("saturated: limits", limits)
        if self.limits is not None and (self.limits < 0.0).any():
            raise ArgumentError("saturated: limits holds a negative number, expected sizes of at least 0.")

    def check(self, robot: Robot) -> None:
        self.law.check(robot)
        if self.limits is None and not np.isfinite(effort_limits(robot)).any():
            raise ArgumentError(
                f"saturated: {robot.name} has no effort limits in its description, expected some: pass limits=."
            )

    def form(self, robot: Robot) -> Form:
        return Saturated(self.law.form(robot))

    def signals(self, robot: Robot, grid: Grid) -> dict[str, Signal]:
        return self.law.signals(robot, grid)

    def constants(self, robot: Robot) -> dict[str, np.ndarray]:
        most = effort_limits(robot) if self.limits is None else gain(self, "limits", robot.nv)
        # an input that is not finite would make the whole sample NaN: where there is no limit, no torque is beyond
        return self.law.constants(robot) | {"effort_limit": np.minimum(most, 1e30)}

    def at(self, robot: Robot, grid: Grid) -> Callable[[float], dict[str, np.ndarray]]:
        return self.law.at(robot, grid)

    @property
    def controller_robot(self) -> Robot | None:  # pyright: ignore[reportIncompatibleVariableOverride]
        return self.law.controller_robot

    def __repr__(self) -> str:
        return f"saturated({self.law!r})"


def saturated(law: object, limits: ArrayLike | None = None) -> Law:
    """The law with every torque within its limits: (..., nv), or the effort limits of the robot's description.

    A measurement that is NaN or infinite, so that some torque is NaN, gives torques of 0, in Python and in C.
    """
    part = _part("saturated", law)
    # a sum of one names the inner limits apart from the outer ones
    return SaturatedLaw(SumOfLaws([part]) if isinstance(part, SaturatedLaw) else part, limits)


def summed(a: object, b: object) -> Law:
    parts = [_part("a sum", law) for law in (a, b)]
    return SumOfLaws([law for part in parts for law in (part.laws if isinstance(part, SumOfLaws) else (part,))])


def effort_limits(robot: Robot) -> np.ndarray:
    """The largest torque of each rate (nv,), infinite where the description says nothing."""
    most = np.full(robot.nv, np.inf)
    for link, described in zip(robot.canonical.links, robot.model.links, strict=True):
        if link.leads:
            most[link.rates] = float(described.joint.limits.effort)
    return most


def _check_frame(law: Law, robot: Robot, frame: object) -> None:
    names = robot.frame_names
    if not isinstance(frame, str) or frame not in names:
        raise ArgumentError(
            f"{type(law).__name__}: {robot.name} has no frame {shown(frame)}{nearest(frame, names)}: expected one of "
            f"{', '.join(names[:8])} (robot.frame_names)."
        )


def _part(where: str, law: object) -> Law:
    if isinstance(law, Law) and not isinstance(law, Function):
        return law
    raise ArgumentError(
        f"{where} of laws got {shown(law)}, expected a law: arrays go in as Constant or Sampled, and a Python function "
        f"is a policy, which calls law.torque(t, q, qd) itself."
    )


def _numbered(parts: Sequence[Mapping[str, T]]) -> dict[str, T]:
    return {f"{name}_{k}": value for k, part in enumerate(parts) for name, value in part.items()}


def _along(target: Path, t: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Poses and twists of a path at these times."""
    name, found = "OperationalSpace: what target(t) gives", target(t)
    found, twists = found if isinstance(found, tuple) and len(found) == 2 else (found, np.zeros((len(t), 6)))
    poses, twists = _poses(name, found), real_array(f"{name} as twists", twists, 6)
    for what, array in (("poses", poses), ("twists", twists)):
        if array.ndim != 2 or len(array) != len(t):
            raise ArgumentError(
                f"{name} as {what} has {array.shape[:-1]} of them at {len(t)} times, expected ({len(t)},)."
            )
    return poses, twists


def _sensed(wrench: Callable[[np.ndarray], ArrayLike], t: np.ndarray) -> np.ndarray:
    found = real_array("Admittance: what wrench(t) gives", wrench(t), 6)
    if found.ndim != 2 or len(found) != len(t):
        raise ArgumentError(f"Admittance: wrench(t) gives shape {found.shape}, expected ({len(t)}, 6).")
    return found


def _poses(name: str, value: ArrayLike) -> np.ndarray:
    """Poses (..., 4, 4) as (..., 12): the rotation row by row, then the position."""
    T = real_array(f"{name}: target" if ":" not in name else name, value)
    if T.shape[-2:] != (4, 4):
        raise ArgumentError(f"{name}: poses have shape {T.shape}, expected (..., 4, 4).")
    R = T[..., :3, :3]
    if np.abs(R @ np.swapaxes(R, -1, -2) - np.eye(3)).max(initial=0.0) > 1e-6 or (np.linalg.det(R) < 0.0).any():
        raise ArgumentError(
            f"{name}: a pose's upper left 3 x 3 is no rotation, expected orthonormal, right-handed axes."
        )
    return np.concatenate([R.reshape(*T.shape[:-2], 9), T[..., :3, 3]], axis=-1)
