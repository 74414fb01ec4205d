"""Controllers of a frame's motion: impedance, operational-space control and admittance.

O. Khatib, "A unified approach for motion and force control of robot manipulators: the operational space formulation",
IEEE J. Robotics and Automation RA-3(1), 1987: tau = J^T F (5); torques that leave the frame alone are those of
[I - J^T Jbar^T] with the dynamically consistent inverse Jbar = M^-1 J^T Lambda, Lambda = (J M^-1 J^T)^-1 (51)-(53).

Jacobians have rows [angular; linear] along the base axes at the origin of the frame.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import ArrayLike

from ..errors import ArgumentError
from ..mechanism.coordinates import Values
from ..robot.robot import Robot
from ..spatial.algebra import Vec
from ..spatial.factorization import Rows, dot, inward, ldl, solved, transpose_times
from ..spatial.scalars import Scalar
from ..support.checks import checked_flag
from ..support.messages import shown
from .checks import real_array
from .contacts import Push
from .controllers import Controller, Input, Inputs, Signal, cached_last, check_frame
from .dynamics import Dynamics, added, at_motors, tracking_error

Path = Callable[[np.ndarray], ArrayLike | tuple[ArrayLike, ArrayLike]]  # poses, or poses and twists, at times (n,)
Target = Path | ArrayLike
REGULAR = 1e-10  # of the mean of Lambda^-1's diagonal, added to it: torques stay finite in singular configurations


class OperationalSpace(Controller, name="operational_space"):
    """tau = J^T (stiffness * error + damping * (twist_ref - twist)) + g(q), and a posture in the null space.

    frame: name of the frame. target: its pose (..., 4, 4) in the base frame, or a path of poses: target(t) of times
    (n,) returns poses (n, 4, 4), alone or with twists (n, 6). stiffness, damping: one number, or six, [angular; linear]
    along the base axes. posture: coordinates (..., nq) to which springs kp_posture and dampers kd_posture pull the
    joints, in the null space of the frame (Khatib 1987), so that they do not accelerate it. gravity=False omits g(q).

    decoupled=True: stiffness (1/s^2) and damping (1/s) determine accelerations of the frame, tau = J^T Lambda
    (stiffness * error + damping * ... - dJ/dt qd) + h(q, qd), independent of the robot's inertia.
    """

    structure = ("frame", "has_posture", "gravity", "decoupled", "has_sensor")
    has_sensor: bool = False  # whether a measured wrench is an input, see `Admittance`

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
        self.has_posture = posture is not None
        self.kp_posture = real_array(f"{name}: kp_posture", kp_posture)
        self.kd_posture = real_array(f"{name}: kd_posture", kd_posture)
        self._robot_and_motors(controller_robot, actuated)

    def check(self, robot: Robot) -> None:
        super().check(robot)
        check_frame(self, self.model_robot(robot), self.frame)
        if robot.constraints and (self.decoupled or self.has_posture):
            raise ArgumentError(
                f"{type(self).__name__}: decoupled=True and posture= need a robot without constraints, but "
                f"{robot.name} has {len(robot.constraints)}: use only stiffness and damping."
            )

    def inputs(self, robot: Robot) -> dict[str, Input]:
        target = self.target
        if callable(target):
            path = cached_last(lambda t: _poses_and_twists(target, t))
            inputs: dict[str, Input] = {
                "pose_ref": Signal(12, lambda t, grid: path(t)[0]),
                "twist_ref": Signal(6, lambda t, grid: path(t)[1]),
            }
        else:
            inputs = {"pose_ref": Signal(12, fixed=target), "twist_ref": Signal(6, fixed=np.zeros(6))}
        inputs |= {"stiffness": self._gain("stiffness", 6), "damping": self._gain("damping", 6)}
        inputs |= self._sensor_inputs(robot)
        if self.posture is not None:
            inputs["posture"] = robot.normalize(real_array("OperationalSpace: posture", self.posture, robot.nq))
            inputs |= {name: self._gain(name, robot.nv) for name in ("kp_posture", "kd_posture")}
        return inputs

    def _sensor_inputs(self, robot: Robot) -> dict[str, Input]:
        return {}

    def formula(self, dynamics: Dynamics, q: Values, qd: Values, inputs: Inputs) -> Values:
        J, T = dynamics.jacobian(self.frame, q), dynamics.pose(self.frame, q)
        F = _impedance(J, T, qd, inputs)
        if self.has_sensor:
            F = [(f + w) / m for f, w, m in zip(F, inputs["wrench"], inputs["mass"], strict=True)]
        inertia = _TaskInertia(J, dynamics.mass_matrix(q)) if self.has_posture or self.decoupled else None
        if inertia is not None and self.decoupled:
            bias = dynamics.frame_bias(self.frame, q, qd)
            F = inertia.force([a - b for a, b in zip(F, bias, strict=True)])
        if self.has_sensor:  # the wrench itself acts on the frame
            F = [f - w for f, w in zip(F, inputs["wrench"], strict=True)]
        tau: Values = transpose_times(J, F)  # Khatib (5)
        if inertia is not None and self.has_posture:
            error = tracking_error(dynamics.model, q, inputs["posture"])
            gains = zip(inputs["kp_posture"], error, inputs["kd_posture"], qd, strict=True)
            posture = at_motors(dynamics.model, [kp * e - kd * v for kp, e, kd, v in gains])
            tau = added(tau, inertia.null_space(posture))
        if self.decoupled:
            tau = added(tau, dynamics.inverse(q, qd, [0.0] * len(qd)))
        if self.gravity != self.decoupled:  # inverse dynamics includes gravity
            weight = dynamics.gravity(q)
            tau = added(tau, weight if self.gravity else [-x for x in weight])
        return dynamics.motors(q, tau)

    def __repr__(self) -> str:
        return f"OperationalSpace({self.frame!r}, stiffness={shown(self.stiffness.tolist())})"


class Admittance(OperationalSpace, name="admittance"):
    """Admittance control: the frame moves like a body on a spring and a damper under the measured wrench.

        mass * acceleration = stiffness * error + damping * (twist_ref - twist) + wrench

    mass, stiffness, damping: one number or six, [angular (kg m^2, N m/rad, N m s/rad); linear (kg, N/m, N s/m)] along
    the base axes. wrench: measured by a sensor at the origin of the frame, [moment; force] along the base axes. It is
    an array (6,), a function of times (n,) that returns (n, 6), or the `Push` of the simulation. In C it is an input.
    Other arguments are those of `OperationalSpace`. Use stiffness 0 for hand guiding.
    """

    has_sensor = True

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
                f"Admittance: wrench is a push at {wrench.frame!r}, expected one at the controller's frame {frame!r}."
            )
        self.wrench: Push | Callable[[np.ndarray], ArrayLike] | np.ndarray
        if isinstance(wrench, Push) or callable(wrench):
            self.wrench = wrench
        else:
            self.wrench = real_array("Admittance: wrench", wrench, 6)

    def _sensor_inputs(self, robot: Robot) -> dict[str, Input]:
        wrench = self.wrench
        if isinstance(wrench, Push):
            sensor = wrench.inputs(robot)["wrench"]
        elif callable(wrench):
            sensor = Signal(6, lambda t, grid: _measured(wrench, t))
        else:
            sensor = Signal(6, fixed=wrench)
        return {"wrench": sensor, "mass": self._gain("mass", 6)}

    def __repr__(self) -> str:
        return f"Admittance({self.frame!r}, mass={shown(self.mass.tolist())})"


def _impedance(J: Rows, T: Rows, qd: Values, inputs: Inputs) -> list[Scalar]:
    """Return stiffness * error + damping * (twist_ref - J qd), [angular; linear] along the base axes.

    T: pose of the frame (4 x 4). pose_ref: the reference rotation row by row, then the position. The rotation error is
    half the sum of the cross products of the axes with the reference axes, which is the rotation axis times the sine
    of the angle.
    """
    reference = inputs["pose_ref"]
    turn = Vec(0.0, 0.0, 0.0)
    for k in range(3):
        turn = turn + Vec(T[0][k], T[1][k], T[2][k]).cross(Vec(reference[k], reference[3 + k], reference[6 + k]))
    error = [turn.x * 0.5, turn.y * 0.5, turn.z * 0.5, *(reference[9 + k] - T[k][3] for k in range(3))]
    twist = [dot(row, qd) for row in J]
    gains = zip(inputs["stiffness"], error, inputs["damping"], inputs["twist_ref"], twist, strict=True)
    return [k * e + d * (v_ref - v) for k, e, d, v_ref, v in gains]


class _TaskInertia:
    """Lambda = (J M^-1 J^T)^-1, by M = L D L^T, (51)."""

    def __init__(self, J: Rows, M: Rows):
        self.J = J
        self.L, pivots = ldl(M)
        whitened = [inward(self.L, row) for row in J]  # columns of L^-1 J^T
        self.scaled = [[x / pivot for x, pivot in zip(column, pivots, strict=True)] for column in whitened]
        self.inverse = [[dot(a, b) for b in self.scaled] for a in whitened]
        mean = sum((self.inverse[k][k] for k in range(1, 6)), self.inverse[0][0]) * (REGULAR / 6.0)
        for k in range(6):
            self.inverse[k][k] = self.inverse[k][k] + mean

    def force(self, acceleration: Values) -> list[Scalar]:
        """Return Lambda a, the force that accelerates the frame by a."""
        return solved(self.inverse, acceleration)

    def null_space(self, tau: Values) -> list[Scalar]:
        """Return tau - J^T Lambda J M^-1 tau, the part of tau that does not accelerate the frame, (53)."""
        whitened = inward(self.L, tau)
        force = self.force([dot(column, whitened) for column in self.scaled])
        return [x - y for x, y in zip(tau, transpose_times(self.J, force), strict=True)]


def _poses_and_twists(target: Path, t: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return poses (n, 12) and twists (n, 6) of a path at times t (n,)."""
    name, result = "OperationalSpace: the result of target(t)", target(t)
    poses, twists = result if isinstance(result, tuple) and len(result) == 2 else (result, np.zeros((len(t), 6)))
    arrays = _poses(name, poses), real_array(f"{name}, twists", twists, 6)
    for array in arrays:
        if array.ndim != 2 or len(array) != len(t):
            raise ArgumentError(f"{name} has batch shape {array.shape[:-1]} at {len(t)} times, expected ({len(t)},).")
    return arrays


def _measured(wrench: Callable[[np.ndarray], ArrayLike], t: np.ndarray) -> np.ndarray:
    values = real_array("Admittance: the result of wrench(t)", wrench(t), 6)
    if values.ndim != 2 or len(values) != len(t):
        raise ArgumentError(f"Admittance: wrench(t) has shape {values.shape}, expected ({len(t)}, 6).")
    return values


def _poses(name: str, value: ArrayLike) -> np.ndarray:
    """Return poses (..., 4, 4) as (..., 12): the rotation row by row, then the position."""
    T = real_array(f"{name}: target" if ":" not in name else name, value)
    if T.shape[-2:] != (4, 4):
        raise ArgumentError(f"{name}: poses have shape {T.shape}, expected (..., 4, 4).")
    R = T[..., :3, :3]
    if np.abs(R @ np.swapaxes(R, -1, -2) - np.eye(3)).max(initial=0.0) > 1e-6 or (np.linalg.det(R) < 0.0).any():
        raise ArgumentError(
            f"{name}: the upper left 3 x 3 block of a pose is not a rotation, expected orthonormal, right-handed axes."
        )
    return np.concatenate([R.reshape(*T.shape[:-2], 9), T[..., :3, 3]], axis=-1)
