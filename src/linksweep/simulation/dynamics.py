"""The dynamics of a robot as expressions: what steps and laws are traced with."""

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
from ..robot.robot import Robot
from ..spatial.scalars import Scalar
from ..support.checks import as_array, checked_flag, described, refuse_foreign
from ..tracing.rolled import RolledStage, Stages
from .integrators import Values, at_motors


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
    """The same robot whose joints have damping, but no Coulomb friction."""
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
        """With damping, where there is dissipation at all."""
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
        """The way back onto the constraints, the shortest in the metric of M."""
        return self.value(RobotFunction(self.model, "constraint_correction"), q)

    def allowed(self, q: Values, qd: Values) -> Values:
        """The nearest rates that the constraints allow."""
        return self.value(RobotFunction(self.model, "allowed_rates"), q, qd)

    def stabilized(self, gains: tuple[float, float], q: Values, qd: Values, qdd: Values) -> Values:
        """Accelerations that take the constraints' error e away by e'' + kd e' + kp e = 0 (Baumgarte 1972)."""
        kp, kd = gains
        way, rates = self.correction(q), self.allowed(q, qd)
        return [a + w * kp + (r - v) * kd for a, w, r, v in zip(qdd, way, rates, qd, strict=True)]

    def mass_matrix(self, q: Values) -> list[list[Scalar]]:
        flat = self.value(by_default_method("mass_matrix", self.model), q)
        return _rows(flat, round(len(flat) ** 0.5))

    def pose(self, frame: str, q: Values) -> list[list[Scalar]]:
        return _rows(self.value(RobotFunction(self.model, "pose", frame=frame), q), 4)

    def jacobian(self, frame: str, q: Values) -> list[list[Scalar]]:
        jacobian = RobotFunction(self.model, "jacobian", frame=frame, reference="world_aligned")
        return _rows(self.value(jacobian, q), 6)

    def frame_bias(self, frame: str, q: Values, qd: Values) -> Values:
        """dJ/dt qd: the frame's acceleration while no joint accelerates."""
        return self.value(RobotFunction(self.model, "jacobian_bias", frame=frame, reference="world_aligned"), q, qd)


class TracedDynamics(Dynamics):
    """Over expressions: the algorithm itself runs on them."""

    def value(self, function: RobotFunction, *arguments: Values) -> list[Scalar]:
        return function.evaluate(*arguments)

    def of(self, model: CanonicalModel) -> TracedDynamics:
        return TracedDynamics(replace(self.forward_dynamics, model=model, method=""))


class LoopedDynamics(Dynamics):
    """Over expressions, as loops over the links: of functions with a number for each rate."""

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
    """The dynamics of a robot on columns: one array (n,) for each coordinate."""

    def __init__(self, forward_dynamics: RobotFunction, dtype: str, backend: str):
        super().__init__(forward_dynamics)
        self._dtype, self._backend = dtype, backend
        self._held: dict[RobotFunction, CompiledFunction] = {}  # they live as long as this

    def value(self, function: RobotFunction, *arguments: Values) -> list[Scalar]:
        made = self._held.get(function)
        if made is None:
            made = self._held[function] = compiled(Together((function,)), self._dtype, 1, self._backend)
        result = made(*(stacked(columns) for columns in arguments))
        flat = result.reshape(*result.shape[: result.ndim - len(made.signature.outputs[0].shape)], -1)
        return [flat[..., i] for i in range(flat.shape[-1])]

    def of(self, model: CanonicalModel) -> CompiledDynamics:
        other = CompiledDynamics(replace(self.forward_dynamics, model=model), self._dtype, self._backend)
        other._held = self._held
        return other


def checked_torque(function: Callable[..., ArrayLike] | None, t: float, q: np.ndarray, qd: np.ndarray) -> np.ndarray:
    """What the user's torque(t, q, qd) gives, if it is one number for each rate."""
    assert function is not None
    given = function(t, q.copy(), qd.copy())
    refuse_foreign("what torque(t, q, qd) gives", given)
    tau = as_array(given)
    if tau.shape != qd.shape or tau.dtype.kind not in "iufb":
        raise ArgumentError(
            f"torque(t, q, qd) returned {described(given, tau)} at t = {t:g}, expected {len(qd)} real numbers."
        )
    return tau


def stacked(columns: Values) -> np.ndarray:
    return np.stack(np.broadcast_arrays(*map(np.asarray, columns)), axis=-1)


def _rows(flat: list[Scalar], count: int) -> list[list[Scalar]]:
    width = len(flat) // count
    return [flat[k * width : (k + 1) * width] for k in range(count)]
