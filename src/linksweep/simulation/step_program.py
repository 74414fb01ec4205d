"""A whole step as one Program: every stage runs the robot's own algorithm on the stage's coordinates."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from ..catalogue.closed_chain_functions import allowed_rates, correction
from ..catalogue.defaults import default_method
from ..catalogue.functions import Request, record_of, regrouped
from ..compiled.arrays import Argument, Signature
from ..compiled.function import Recipe
from ..mechanism.canonical import CanonicalModel
from ..mechanism.joints import KINDS
from ..mechanism.sweeps import PerLink, Unrolled
from ..tracing.expression import Graph
from ..tracing.program import Array, Program, block_program
from .laws import GIVEN, Dynamics, torque_of
from .stepping import INTEGRATORS, STAGES, Values, moved, normalized

Torque = Callable[[Values, Values, dict[str, Values]], Values]


class _Stage(Unrolled):
    """The sweeps at one stage: the inputs of the algorithm are values of the same graph."""

    def __init__(self, model: CanonicalModel, **values: Values):
        self.inputs = tuple(Array(name, (len(value),)) for name, value in values.items())
        self.values = tuple(values.values())
        super().__init__(model, values["q"])

    def read(self, source: int) -> PerLink:
        return self.split(self.values[source])


def law_request(function: str, model: CanonicalModel, dissipation: bool = False) -> Request:
    """What a law of torques computes, by the function's default method."""
    return Request(function, default_method(function, model), dissipation=dissipation)


class TracedDynamics:
    """The dynamics of a robot as expressions."""

    def __init__(self, model: CanonicalModel, request: Request):
        self.model = model
        self.request = request

    def forward(self, q: Values, qd: Values, tau: Values) -> Values:
        return self._run(self.request, "qdd", q=q, qd=qd, tau=tau)

    def inverse(self, q: Values, qd: Values, qdd: Values) -> Values:
        request = law_request("inverse_dynamics", self.model, self.request.dissipation)
        return self._run(request, "tau", q=q, qd=qd, qdd=qdd)

    def gravity(self, q: Values) -> Values:
        return self._run(law_request("gravity_forces", self.model), "tau", q=q)

    def correction(self, q: Values) -> Values:
        stage = _Stage(regrouped(self.model, [self.request]), q=q)
        return stage.join(correction(stage))

    def allowed(self, q: Values, qd: Values) -> Values:
        stage = _Stage(regrouped(self.model, [self.request]), q=q, qd=qd)
        return stage.join(allowed_rates(stage, stage.read(1)))

    def _run(self, request: Request, result: str, **values: Values) -> Values:
        stage = _Stage(regrouped(self.model, [request]), **values)
        return stage.join(getattr(record_of(stage, request), result))


@dataclass(frozen=True)
class StepRecipe(Recipe):
    """A step: `requests` holds forward dynamics with its options."""

    integrator: str = "rk4"
    law: str = "zero"

    def inputs(self) -> tuple[Array, ...]:
        """q, qd, dt, then each signal at each moment of the step, then the constants."""
        nq, nv = (sum(getattr(KINDS[link.kind], name) for link in self.model.links) for name in ("nq", "nv"))
        sizes = {"q": nq, "v": nv, "1": 1}
        signals, constants = GIVEN[self.law]
        arrays = [Array("q", (nq,)), Array("qd", (nv,)), Array("dt", (1,))]
        for name, size in signals.items():
            arrays += [Array(f"{name}_{stage}", (sizes[size],)) for stage in range(STAGES[self.integrator])]
        return (*arrays, *(Array(name, (sizes[size],)) for name, size in constants.items()))

    def outputs(self) -> tuple[Array, ...]:
        q, qd = self.inputs()[:2]
        return Array("q_next", q.shape), Array("qd_next", qd.shape), Array("qdd", qd.shape), Array("tau", qd.shape)

    def trace(self) -> Program:
        inputs, graph = self.inputs(), Graph()
        columns = [[graph.leaf("input", (k, i)) for i in range(array.size)] for k, array in enumerate(inputs)]
        results = self.step(TracedDynamics(self.model, self.requests[0]), columns)
        return block_program("step", inputs, list(zip(self.outputs(), results, strict=True))).verify()

    def step(self, dynamics: Dynamics, columns: Sequence[Values], torque: Torque | None = None) -> tuple[Values, ...]:
        """The outputs from the inputs, over any scalar. `torque`: in the place of the law's."""
        named = dict(zip((array.name for array in self.inputs()), columns, strict=True))
        signals, constants = GIVEN[self.law]

        def accelerate(stage: int, q: Values, qd: Values) -> tuple[Values, Values]:
            given = {name: named[f"{name}_{stage}"] for name in signals} | {name: named[name] for name in constants}
            tau = torque(q, qd, given) if torque else torque_of(self.law, dynamics, q, qd, given)
            return dynamics.forward(q, qd, tau), tau

        q, qd, qdd, tau = INTEGRATORS[self.integrator](self.model, accelerate, named["q"], named["qd"], named["dt"][0])
        if self.model.ties:  # back onto the constraints, the shortest way in the metric of M
            q = normalized(self.model, moved(self.model, q, dynamics.correction(q)))
            qd = dynamics.allowed(q, qd)
        return q, qd, qdd, tau

    def signature(self) -> Signature:
        return Signature(
            "step",
            tuple(Argument(array.name, array.shape) for array in self.inputs()),
            tuple(Argument(array.name, array.shape) for array in self.outputs()),
        )
