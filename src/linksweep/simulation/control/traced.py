"""The dynamics of a robot as expressions: what steps and laws are traced with."""

from __future__ import annotations

from dataclasses import replace

from ...catalogue.defaults import default_method
from ...catalogue.functions import FUNCTIONS, Request, regrouped, signature, written_out
from ...errors import ArgumentError
from ...mechanism.canonical import CanonicalModel
from ...spatial.scalars import Scalar
from ...tracing.rolled_stage import RolledStage, Stages
from ...tracing.unrolled import UnrolledRun
from ..stepping import Values, at_motors
from .forms import Dynamics

FORWARD = Request("forward_dynamics")


def law_request(function: str, model: CanonicalModel, dissipation: bool = False) -> Request:
    """What a law of torques computes, by the function's default method."""
    return Request(function, default_method(function, model), dissipation=dissipation)


def without_friction(model: CanonicalModel) -> CanonicalModel:
    """The same robot whose joints have damping, but no Coulomb friction."""
    if not any(link.friction for link in model.links):
        return model
    return replace(model, links=tuple(replace(link, friction=0.0) for link in model.links))


class AskedDynamics:
    """Dynamics of one robot by requests; `value` says over which scalars."""

    def __init__(self, model: CanonicalModel, dissipation: bool, request: Request = FORWARD):
        self.model = model
        self.dissipation = dissipation
        self.request = request
        self._smooth = without_friction(model) if dissipation else model

    def value(self, model: CanonicalModel, request: Request, *given: Values) -> list[Scalar]:
        """The result, flat."""
        raise NotImplementedError

    def of(self, model: CanonicalModel) -> Dynamics:
        raise NotImplementedError

    def forward(self, q: Values, qd: Values, tau: Values) -> Values:
        return self.value(self.model, self.request, q, qd, tau)

    def forward_without_friction(self, q: Values, qd: Values, tau: Values) -> Values:
        """With damping, where there is dissipation at all."""
        return self.value(self._smooth, self.request, q, qd, tau)

    def inverse(self, q: Values, qd: Values, qdd: Values) -> Values:
        request = law_request("inverse_dynamics", self.model, self.dissipation)
        if self.model.ties:
            request = replace(request, function="tree_dynamics")
        return self.value(self._smooth, request, q, qd, qdd)

    def gravity(self, q: Values) -> Values:
        return self.value(self.model, law_request("gravity_forces", self.model), q)

    def motors(self, q: Values, tau: Values) -> Values:
        if self.model.ties:
            return self.value(self.model, Request("motor_torques"), q, tau)
        return at_motors(self.model, tau)

    def correction(self, q: Values) -> Values:
        """The way back onto the constraints, the shortest in the metric of M."""
        return self.value(self.model, Request("constraint_correction"), q)

    def allowed(self, q: Values, qd: Values) -> Values:
        """The nearest rates that the constraints allow."""
        return self.value(self.model, Request("allowed_rates"), q, qd)

    def stabilized(self, gains: tuple[float, float], q: Values, qd: Values, qdd: Values) -> Values:
        """Accelerations that take the constraints' error e away by e'' + kd e' + kp e = 0 (Baumgarte 1972)."""
        kp, kd = gains
        way, rates = self.correction(q), self.allowed(q, qd)
        return [a + w * kp + (r - v) * kd for a, w, r, v in zip(qdd, way, rates, qd, strict=True)]

    def mass_matrix(self, q: Values) -> list[list[Scalar]]:
        flat = self.value(self.model, law_request("mass_matrix", self.model), q)
        return _rows(flat, round(len(flat) ** 0.5))

    def pose(self, frame: str, q: Values) -> list[list[Scalar]]:
        return _rows(self.value(self.model, Request("pose", frame=frame), q), 4)

    def jacobian(self, frame: str, q: Values) -> list[list[Scalar]]:
        return _rows(self.value(self.model, Request("jacobian", frame=frame, reference="world_aligned"), q), 6)

    def frame_bias(self, frame: str, q: Values, qd: Values) -> Values:
        """dJ/dt qd: the frame's acceleration while no joint accelerates."""
        request = Request("jacobian_bias", frame=frame, reference="world_aligned")
        return self.value(self.model, request, q, qd)


class TracedDynamics(AskedDynamics):
    """Over expressions: the algorithm itself runs on them."""

    def value(self, model: CanonicalModel, request: Request, *given: Values) -> list[Scalar]:
        run = UnrolledRun(regrouped(model, [request]), signature(model, [request])[0], given)
        FUNCTIONS[request.function].trace(run, request, 0)
        return list(run.results[0])

    def of(self, model: CanonicalModel) -> TracedDynamics:
        return TracedDynamics(model, self.dissipation)


class LoopedDynamics(AskedDynamics):
    """Over expressions, as loops over the links: of functions with a number for each rate."""

    def __init__(self, model: CanonicalModel, dissipation: bool, request: Request, stages: Stages):
        super().__init__(model, dissipation, request)
        self._stages = stages

    def value(self, model: CanonicalModel, request: Request, *given: Values) -> list[Scalar]:
        if written_out(model, request):
            request = replace(request, method=default_method(request.function, model, loops=True))
            if written_out(model, request):
                raise ArgumentError(f"{request.function} of {len(model.links)} links cannot run as loops over them.")
        stage = RolledStage(self._stages, regrouped(model, [request]), signature(model, [request])[0], given)
        FUNCTIONS[request.function].trace(stage, request, 0)
        return stage.results[0]

    def of(self, model: CanonicalModel) -> LoopedDynamics:
        return LoopedDynamics(model, self.dissipation, self.request, self._stages)


def _rows(flat: list[Scalar], count: int) -> list[list[Scalar]]:
    width = len(flat) // count
    return [flat[k * width : (k + 1) * width] for k in range(count)]
