"""A whole step as one Program: every stage runs the robot's own algorithm on the stage's coordinates."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from ..functions.computation import Computation, RobotFunction, Tracing
from ..mechanism.canonical import CanonicalModel
from ..mechanism.coordinates import Values, moved, normalized
from ..tracing.passes import optimise
from ..tracing.program import Array, Program
from ..tracing.rolled import Stages
from .controllers import ControlLaw
from .dynamics import Dynamics, LoopedDynamics, TracedDynamics
from .friction import Rest, resting_step
from .integrators import INTEGRATORS, STAGES, added

QUICK = (
    30_000  # operations of a step with constraints: beyond, 4 % fewer are not worth an eighth of the time to compile
)

Torque = Callable[[Values, Values, dict[str, Values]], Values]


@dataclass(frozen=True)
class TimeStep(Computation):
    """A time step: q, qd, dt, signals and constants of the controller -> q_next, qd_next, qdd, tau.

    forward_dynamics: with its method and dissipation.
    """

    forward_dynamics: RobotFunction
    integrator: str = "rk4"
    law: ControlLaw = field(default_factory=ControlLaw)
    rest: Rest | None = None
    push: ControlLaw = field(default_factory=ControlLaw)  # of the world: felt in every stage, and no driving torque
    gains: tuple[float, float] | None = None  # Baumgarte's of the constraints, in the place of projection
    loops: bool = False  # dynamics as loops over the links

    @property
    def model(self) -> CanonicalModel:
        return self.forward_dynamics.model

    @property
    def name(self) -> str:
        return "step"

    @property
    def inputs(self) -> tuple[Array, ...]:
        """q, qd, dt, then each signal at each moment of the step, then the constants."""
        nq, nv = self.model.nq, self.model.nv
        sizes = {"q": nq, "v": nv}
        signals, constants = self.signals(), self.constants()
        arrays = [Array("q", (nq,)), Array("qd", (nv,)), Array("dt", (1,))]
        for name, size in signals.items():
            arrays += [
                Array(f"{name}_at{stage}", (size if isinstance(size, int) else sizes[size],))
                for stage in range(STAGES[self.integrator])
            ]
        return (
            *arrays,
            *(Array(name, (size if isinstance(size, int) else sizes[size],)) for name, size in constants.items()),
        )

    def signals(self) -> dict[str, int]:
        return self.law.signals() | {f"push_{name}": size for name, size in self.push.signals().items()}

    def constants(self) -> dict[str, int]:
        return self.law.constants() | {f"push_{name}": size for name, size in self.push.constants().items()}

    @property
    def outputs(self) -> tuple[Array, ...]:
        q, qd = self.inputs[:2]
        return Array("q_next", q.shape), Array("qd_next", qd.shape), Array("qdd", qd.shape), Array("tau", qd.shape)

    def trace(self) -> Program:
        if self.loops:
            return traced_loops(self)
        return super().trace()

    @property
    def quick_above(self) -> int | None:
        return QUICK if self.model.ties else None

    def values(self, tracing: Tracing) -> tuple[Values, ...]:
        columns = [tracing.leaves[array.name] for array in self.inputs]
        return self.step(TracedDynamics(self.forward_dynamics), columns)

    def step(self, dynamics: Dynamics, columns: Sequence[Values], torque: Torque | None = None) -> tuple[Values, ...]:
        """The outputs from the inputs, over any scalar. `torque`: in the place of the law's."""
        named = dict(zip((array.name for array in self.inputs), columns, strict=True))

        def given(form: ControlLaw, stage: int, prefix: str) -> dict[str, Values]:
            found = {name: named[f"{prefix}{name}_at{stage}"] for name in form.signals()}
            return found | {name: named[f"{prefix}{name}"] for name in form.constants()}

        def driven(stage: int, q: Values, qd: Values) -> Values:
            own = given(self.law, stage, "")
            return torque(q, qd, own) if torque else self.law.torque(dynamics, q, qd, own)

        def pushed(stage: int, q: Values, qd: Values, tau: Values) -> Values:
            if self.push.controller is None:
                return tau
            return added(tau, self.push.torque(dynamics, q, qd, given(self.push, stage, "push_")))

        def accelerate(stage: int, q: Values, qd: Values) -> tuple[Values, Values]:
            tau = driven(stage, q, qd)
            qdd = dynamics.forward(q, qd, pushed(stage, q, qd, tau))
            return qdd if self.gains is None else dynamics.stabilized(self.gains, q, qd, qdd), tau

        start = named["q"], named["qd"], named["dt"][0]
        integrator = INTEGRATORS[self.integrator]
        if self.rest is None:
            q, qd, qdd, tau = integrator(self.model, accelerate, *start)
        else:
            q, qd, qdd, tau = resting_step(self.rest, dynamics, integrator, (driven, pushed), *start)
        if self.model.ties and self.gains is None:  # back onto the constraints, the shortest way in the metric of M
            q = normalized(self.model, moved(self.model, q, dynamics.correction(q)))
            qd = dynamics.allowed(q, qd)
        return q, qd, qdd, tau


@functools.lru_cache(maxsize=2)
def traced_loops(step: TimeStep) -> Program:
    """The step with its dynamics as loops over the links; an ArgumentError where they cannot be."""
    stages = Stages(step.inputs)
    columns = [[stages.graph.leaf("input", (k, i)) for i in range(x.size)] for k, x in enumerate(stages.inputs)]
    results = step.step(LoopedDynamics(step.forward_dynamics, stages), columns)
    program = stages.program("step", list(zip(step.outputs, results, strict=True)))
    return optimise(program)
