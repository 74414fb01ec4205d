"""Dynamics of a robot over any scalar, for the formulas of controllers and time steps."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike

from ..errors import ArgumentError
from ..functions.compiled import CompiledFunction, compiled
from ..functions.computation import RobotFunction, Together, is_written_out, regrouped
from ..functions.defaults import default_method
from ..mechanism.canonical import CanonicalModel
from ..mechanism.coordinates import Values, joined
from ..robot.robot import Robot
from ..spatial.scalars import Scalar, where
from ..support.checks import as_array, checked_flag, described, refuse_foreign
from ..tracing.rolled import RolledStage, Stages


def by_default_method(function: str, model: CanonicalModel, dissipation: bool = False) -> RobotFunction:
    """Return a function of the robot by its default method."""
    return RobotFunction(model, function, default_method(function, model), dissipation=dissipation)


def forward_dynamics_of(robot: Robot, method: str | None, dissipation: bool) -> RobotFunction:
    """Return the forward dynamics that a simulation uses, checked."""
    dissipation = checked_flag("dissipation", dissipation)
    (function,) = robot.recipe("forward_dynamics", method=method, dissipation=dissipation).parts
    assert isinstance(function, RobotFunction)
    return function


def without_friction(model: CanonicalModel) -> CanonicalModel:
    """Return the model without Coulomb friction; damping stays."""
    if not any(link.friction for link in model.links):
        return model
    return replace(model, links=tuple(replace(link, friction=0.0) for link in model.links))


class Dynamics:
    """Dynamics of one robot; `value` evaluates its functions over some scalar.

    forward_dynamics: with its method and dissipation.
    """

    def __init__(self, forward_dynamics: RobotFunction):
        self.model = forward_dynamics.model
        self.dissipation = forward_dynamics.dissipation
        self.forward_dynamics = forward_dynamics
        self._smooth = without_friction(self.model) if self.dissipation else self.model

    def value(self, function: RobotFunction, *arguments: Values) -> list[Scalar]:
        """Return the result, flat."""
        raise NotImplementedError

    def of(self, model: CanonicalModel) -> Dynamics:
        raise NotImplementedError

    def forward(self, q: Values, qd: Values, tau: Values) -> Values:
        return self.value(self.forward_dynamics, q, qd, tau)

    def forward_without_friction(self, q: Values, qd: Values, tau: Values) -> Values:
        """Forward dynamics without Coulomb friction; damping stays if dissipation is included."""
        return self.value(replace(self.forward_dynamics, model=self._smooth), q, qd, tau)

    def inverse(self, q: Values, qd: Values, qdd: Values) -> Values:
        function = by_default_method("inverse_dynamics", self.model, self.dissipation)
        if self.model.ties:
            function = replace(function, function="tree_dynamics")
        return self.value(replace(function, model=self._smooth), q, qd, qdd)

    def gravity(self, q: Values) -> Values:
        return self.value(by_default_method("gravity_forces", self.model), q)

    def motors(self, q: Values, tau: Values) -> Values:
        if self.model.ties:
            return self.value(RobotFunction(self.model, "motor_torques"), q, tau)
        return at_motors(self.model, tau)

    def correction(self, q: Values) -> Values:
        """Return the displacement (nv) back onto the constraints, the shortest in the metric of M."""
        return self.value(RobotFunction(self.model, "constraint_correction"), q)

    def allowed(self, q: Values, qd: Values) -> Values:
        """Return the nearest velocities that the constraints allow."""
        return self.value(RobotFunction(self.model, "allowed_rates"), q, qd)

    def stabilized(self, gains: tuple[float, float], q: Values, qd: Values, qdd: Values) -> Values:
        """Return accelerations with which the constraint error e obeys e'' + kd e' + kp e = 0 (Baumgarte 1972)."""
        kp, kd = gains
        correction, allowed = self.correction(q), self.allowed(q, qd)
        return [a + c * kp + (r - v) * kd for a, c, r, v in zip(qdd, correction, allowed, qd, strict=True)]

    def mass_matrix(self, q: Values) -> list[list[Scalar]]:
        flat = self.value(by_default_method("mass_matrix", self.model), q)
        return _rows(flat, round(len(flat) ** 0.5))

    def pose(self, frame: str, q: Values) -> list[list[Scalar]]:
        return _rows(self.value(RobotFunction(self.model, "pose", frame=frame), q), 4)

    def jacobian(self, frame: str, q: Values) -> list[list[Scalar]]:
        jacobian = RobotFunction(self.model, "jacobian", frame=frame, reference="world_aligned")
        return _rows(self.value(jacobian, q), 6)

    def frame_bias(self, frame: str, q: Values, qd: Values) -> Values:
        """Return dJ/dt qd, the acceleration of the frame while no joint accelerates."""
        return self.value(RobotFunction(self.model, "jacobian_bias", frame=frame, reference="world_aligned"), q, qd)


class TracedDynamics(Dynamics):
    """Dynamics over expressions, unrolled."""

    def value(self, function: RobotFunction, *arguments: Values) -> list[Scalar]:
        return function.evaluate(*arguments)

    def of(self, model: CanonicalModel) -> TracedDynamics:
        return TracedDynamics(replace(self.forward_dynamics, model=model, method=""))


class LoopedDynamics(Dynamics):
    """Dynamics over expressions as loops over the links, for functions with one result per velocity."""

    def __init__(self, forward_dynamics: RobotFunction, stages: Stages):
        super().__init__(forward_dynamics)
        self._stages = stages

    def value(self, function: RobotFunction, *arguments: Values) -> list[Scalar]:
        if is_written_out(function):
            function = replace(function, method=default_method(function.function, function.model, loops=True))
            if is_written_out(function):
                links = len(function.model.links)
                raise ArgumentError(f"{function.function} of {links} links cannot run as loops over them.")
        stage = RolledStage(self._stages, regrouped(function), function.inputs, arguments)
        function.write(stage, 0)
        return stage.results[0]

    def of(self, model: CanonicalModel) -> LoopedDynamics:
        return LoopedDynamics(replace(self.forward_dynamics, model=model), self._stages)


class CompiledDynamics(Dynamics):
    """Dynamics over columns: one array (n,) per coordinate for n samples."""

    def __init__(self, forward_dynamics: RobotFunction, dtype: str, backend: str):
        super().__init__(forward_dynamics)
        self._dtype, self._backend = dtype, backend
        self._functions: dict[RobotFunction, CompiledFunction] = {}

    def value(self, function: RobotFunction, *arguments: Values) -> list[Scalar]:
        call = self._functions.get(function)
        if call is None:
            call = self._functions[function] = compiled(Together((function,)), self._dtype, 1, self._backend)
        result = call(*(stacked(columns) for columns in arguments))
        flat = result.reshape(*result.shape[: result.ndim - len(call.signature.outputs[0].shape)], -1)
        return [flat[..., i] for i in range(flat.shape[-1])]

    def of(self, model: CanonicalModel) -> CompiledDynamics:
        other = CompiledDynamics(replace(self.forward_dynamics, model=model), self._dtype, self._backend)
        other._functions = self._functions
        return other


def checked_torque(function: Callable[..., ArrayLike], t: float, q: np.ndarray, qd: np.ndarray) -> np.ndarray:
    """Return the result (nv,) of the user's function torque(t, q, qd), checked."""
    result = function(t, q.copy(), qd.copy())
    refuse_foreign("the result of torque(t, q, qd)", result)
    tau = as_array(result)
    if tau.shape != qd.shape or tau.dtype.kind not in "iufb":
        raise ArgumentError(
            f"torque(t, q, qd) returned {described(result, tau)} at t = {t:g}, expected {len(qd)} real numbers."
        )
    return tau


def tracking_error(model: CanonicalModel, q: Values, reference: Values) -> list[Scalar]:
    """Return the error (nv) that proportional gains multiply: the displacement of each joint from q to its reference.

    For a ball joint it is twice the vector part of the quaternion between them, which is the rotation vector for small
    angles. Free joints have no motor, and their error is 0.
    """
    return joined(
        (k.rates, [0.0] * k.nv if k.type.floats else k.type.error(q[k.coordinates], reference[k.coordinates]))
        for k in model.joints
    )


def at_motors(model: CanonicalModel, tau: Values) -> list[Scalar]:
    """Return the torques with 0 at passive joints, including free ones."""
    return joined((k.rates, tau[k.rates] if k.actuated else [0.0] * k.nv) for k in model.joints)


def added(a: Values, b: Values) -> list[Scalar]:
    return [x + y for x, y in zip(a, b, strict=True)]


def between(lower: Scalar, x: Scalar, upper: Scalar) -> Scalar:
    """Return x clipped to the bounds."""
    return where(x < lower, lower, where(upper < x, upper, x))


def stacked(columns: Values) -> np.ndarray:
    """Return columns (n,) as one array (n, size)."""
    return np.stack(np.broadcast_arrays(*map(np.asarray, columns)), axis=-1)


def _rows(flat: list[Scalar], count: int) -> list[list[Scalar]]:
    width = len(flat) // count
    return [flat[k * width : (k + 1) * width] for k in range(count)]
