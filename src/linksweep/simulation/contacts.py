"""Forces of the environment on a robot, passed to `simulate` as `disturbance=`: external wrenches and contact models.

A contact model is one class: a `Disturbance` with `inputs` and `formula`, as a controller has (controllers.py). A class
with a `name` can be used in TOML experiments as a table of that name. docs/control.md, "Write a contact model", has an
example.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from ..errors import ArgumentError
from ..mechanism.coordinates import Values
from ..robot.robot import Robot
from ..spatial.factorization import dot, transpose_times
from ..spatial.scalars import sqrt, where
from ..support.checks import real_number
from ..support.messages import shown
from .checks import real_array
from .controllers import Controller, Grid, Input, Inputs, Signal, Sum, check_frame
from .dynamics import Dynamics
from .friction import Stops

DISTURBANCES: dict[str, type[Controller]] = {}  # by the name that TOML experiments use


class Disturbance(Controller):
    """Joint torques by forces on a frame of the robot. Recorded driving torques do not include them."""

    registry = DISTURBANCES
    structure = ("frame",)
    uses_model = False
    frame: str

    def check(self, robot: Robot) -> None:
        check_frame(self, robot, self.frame)


class Push(Disturbance, name="push"):
    """An external wrench on a frame from `start` to `end` (s): [moment; force] (..., 6) in the base's directions.

    Several pushes add up (+). With fixed steps, a push acts for whole steps.
    """

    def __init__(self, frame: str, wrench: ArrayLike, start: float = 0.0, end: float = np.inf):
        self.frame, self.wrench = frame, real_array("Push: wrench", wrench, 6)
        self.start, self.end = real_number("Push: start", start), real_number("Push: end", end, finite=False)
        if not self.start < self.end:
            raise ArgumentError(f"Push: start is {shown(start)} and end is {shown(end)}, expected start before end.")

    def inputs(self, robot: Robot) -> dict[str, Input]:
        def wrench(t: np.ndarray, grid: Grid) -> np.ndarray:
            on = ((t >= self.start) & (t < self.end)).reshape(-1, *(1,) * self.wrench.ndim)
            return np.where(on, self.wrench, 0.0)

        return {"wrench": Signal(6, wrench, held=True)}

    def formula(self, dynamics: Dynamics, q: Values, qd: Values, inputs: Inputs) -> Values:
        return transpose_times(dynamics.jacobian(self.frame, q), inputs["wrench"])

    def __repr__(self) -> str:
        return f"Push({self.frame!r}, {shown(self.wrench.tolist())}, {self.start:g}, {self.end:g})"


class Surface(Disturbance, name="surface"):
    """A flat, unilateral, compliant surface that pushes the origin of a frame out.

    The force is n N + t: N = max(0, stiffness depth - damping speed) along the normal while the depth is positive, and
    t = -friction N v / sqrt(v^2 + width^2) against the sliding velocity v.

    point, normal: (3,) in the base frame; the normal points to the free side. stiffness (N/m) and damping (N s/m) act
    while the frame is below; the surface never pulls. friction: Coulomb coefficient, smooth within sliding speeds of
    `width` (m/s). Steps of dt resolve the contact if stiffness dt^2 is small compared with the mass that the frame
    carries.
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
        self.stiffness = real_number("Surface: stiffness", stiffness, above=0.0)
        self.width = real_number("Surface: width", width, above=0.0)
        self.damping, self.friction = real_array("Surface: damping", damping), real_array("Surface: friction", friction)
        for name in ("damping", "friction"):
            if (getattr(self, name) < 0.0).any():
                raise ArgumentError(f"Surface: {name} is {shown(getattr(self, name).tolist())}, expected 0 or more.")

    def inputs(self, robot: Robot) -> dict[str, Input]:
        scalars = ("stiffness", "damping", "friction", "width")
        return {
            "point": self.point,
            "normal": self.normal,
            **{name: np.asarray(getattr(self, name), dtype=float)[..., None] for name in scalars},
        }

    def formula(self, dynamics: Dynamics, q: Values, qd: Values, inputs: Inputs) -> Values:
        J, T = dynamics.jacobian(self.frame, q)[3:], dynamics.pose(self.frame, q)
        n = inputs["normal"]
        depth = dot(n, [p - T[k][3] for k, p in enumerate(inputs["point"])])
        v = [dot(row, qd) for row in J]
        speed = dot(n, v)
        pressure = inputs["stiffness"][0] * depth - inputs["damping"][0] * speed
        N = where(depth > 0.0, where(pressure > 0.0, pressure, 0.0), 0.0)
        sliding = [x - speed * y for x, y in zip(v, n, strict=True)]
        width = inputs["width"][0]
        grip = inputs["friction"][0] * N / sqrt(dot(sliding, sliding) + width * width)
        return transpose_times(J, [N * y - grip * x for x, y in zip(sliding, n, strict=True)])

    def __repr__(self) -> str:
        return f"Surface({self.frame!r}, {shown(self.point.tolist())}, {shown(self.normal.tolist())})"


class JointStops(Disturbance):
    """Mechanical stops at the joint limits of the robot model.

    Without stiffness the stops are hard and inelastic: a joint that reaches its limit loses its velocity. stiffness
    (N m/rad, N/m) and damping (N m s/rad, N s/m): springs beyond the limits, which only push.
    """

    def __init__(self, stiffness: float | None = None, damping: float = 0.0):
        self.stops: str | tuple[float, float] = "inelastic" if stiffness is None else (stiffness, damping)

    @classmethod
    def springs(cls, stops: Stops) -> JointStops:
        """Return stops of a pair (stiffness, damping), which `simulate` checks."""
        joint_stops = cls()
        joint_stops.stops = stops  # type: ignore[assignment]
        return joint_stops

    def check(self, robot: Robot) -> None:
        """Limits are checked with the initial state of a simulation."""

    def __repr__(self) -> str:
        return f"JointStops({'' if self.stops == 'inelastic' else ', '.join(map(repr, self.stops))})"


def without_stops(disturbance: Controller | None) -> tuple[Controller | None, JointStops | None]:
    """Return the forces of a disturbance, and the joint stops that are part of it."""
    parts = disturbance.parts if isinstance(disturbance, Sum) else () if disturbance is None else (disturbance,)
    stops = [part for part in parts if isinstance(part, JointStops)]
    if len(stops) > 1:
        raise ArgumentError(f"disturbance contains {len(stops)} JointStops, expected at most one.")
    if not stops:
        return disturbance, None
    forces = [part for part in parts if not isinstance(part, JointStops)]
    return (None if not forces else forces[0] if len(forces) == 1 else Sum(forces)), stops[0]
