"""What laws of control compute, over any scalar: one definition, run on floats, traced into a step, exported as C.

A form is the structure of a law without its numbers: which signals (sampled in time) and constants it reads, each with
its size, "q", "v" or a number of entries, and the torques that it makes of them in a state (q, qd).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from ...mechanism.canonical import CanonicalModel
from ...spatial.dense import transpose_times
from ...spatial.scalars import Scalar, sqrt, where
from ..stepping import Values, tracking_error, without_motors
from .task_space import frame_impedance, posture_in_null_space

Given = Mapping[str, Values]
Sizes = dict[str, Any]


class Dynamics(Protocol):
    """What a step or a law asks of a robot, over whatever scalar it runs on."""

    model: CanonicalModel

    def forward(self, q: Values, qd: Values, tau: Values) -> Values: ...

    def forward_without_friction(self, q: Values, qd: Values, tau: Values) -> Values: ...

    def inverse(self, q: Values, qd: Values, qdd: Values) -> Values:
        """With damping where the simulation has dissipation, without Coulomb friction, which jumps at rest."""
        ...

    def gravity(self, q: Values) -> Values: ...

    def correction(self, q: Values) -> Values: ...

    def allowed(self, q: Values, qd: Values) -> Values: ...

    def stabilized(self, gains: tuple[float, float], q: Values, qd: Values, qdd: Values) -> Values: ...

    def mass_matrix(self, q: Values) -> list[list[Scalar]]: ...

    def pose(self, frame: str, q: Values) -> list[list[Scalar]]: ...

    def jacobian(self, frame: str, q: Values) -> list[list[Scalar]]: ...

    def of(self, model: CanonicalModel) -> Dynamics:
        """The dynamics of another robot, over the same scalars."""
        ...


@dataclass(frozen=True)
class Form:
    """No torque at all; the base of the others."""

    def signals(self) -> Sizes:
        return {}

    def constants(self) -> Sizes:
        return {}

    def torque(self, dynamics: Dynamics, q: Values, qd: Values, given: Given) -> Values:
        return [0.0] * len(qd)


@dataclass(frozen=True)
class GivenTorque(Form):
    """Torques that are numbers: a signal, or constants. Free joints get theirs too."""

    sampled: bool

    def signals(self) -> Sizes:
        return {"tau": "v"} if self.sampled else {}

    def constants(self) -> Sizes:
        return {} if self.sampled else {"tau": "v"}

    def torque(self, dynamics: Dynamics, q: Values, qd: Values, given: Given) -> Values:
        return given["tau"]


@dataclass(frozen=True)
class PythonFunction(Form):
    """Torques that only Python can compute: they come from outside, at the times that this reads."""

    def signals(self) -> Sizes:
        return {"t": 1}


@dataclass(frozen=True)
class Tracking(Form):
    """kind: "pd", kp e + kd e'; "pd_gravity", g(q) + that; "computed_torque", inverse dynamics of qdd_ref + that."""

    kind: str

    def signals(self) -> Sizes:
        wanted = {"q_ref": "q", "qd_ref": "v"}
        return wanted | {"qdd_ref": "v"} if self.kind == "computed_torque" else wanted

    def constants(self) -> Sizes:
        return {"kp": "v", "kd": "v"}

    def torque(self, dynamics: Dynamics, q: Values, qd: Values, given: Given) -> Values:
        error = tracking_error(dynamics.model, q, given["q_ref"])
        feedback: list[Scalar] = [
            kp * e + kd * (wanted - rate)
            for kp, e, kd, wanted, rate in zip(given["kp"], error, given["kd"], given["qd_ref"], qd, strict=True)
        ]
        tau: Values = feedback
        if self.kind == "pd_gravity":
            tau = added(dynamics.gravity(q), feedback)
        elif self.kind == "computed_torque":
            tau = dynamics.inverse(q, qd, added(given["qdd_ref"], feedback))
        return without_motors(dynamics.model, tau)


@dataclass(frozen=True)
class Gravity(Form):
    def torque(self, dynamics: Dynamics, q: Values, qd: Values, given: Given) -> Values:
        return without_motors(dynamics.model, dynamics.gravity(q))


@dataclass(frozen=True)
class SmoothFriction(Form):
    """damping v + friction v / sqrt(v^2 + width^2) of the rates, or of the wanted ones: no jump at rest."""

    of_reference: bool

    def signals(self) -> Sizes:
        return {"qd_ref": "v"} if self.of_reference else {}

    def constants(self) -> Sizes:
        return {"friction": "v", "damping": "v", "width": 1}

    def torque(self, dynamics: Dynamics, q: Values, qd: Values, given: Given) -> Values:
        rates, width = given["qd_ref"] if self.of_reference else qd, given["width"][0]
        tau = [
            damping * v + friction * (v / sqrt(v * v + width * width))
            for friction, damping, v in zip(given["friction"], given["damping"], rates, strict=True)
        ]
        return without_motors(dynamics.model, tau)


@dataclass(frozen=True)
class TaskSpace(Form):
    """A spring and a damper between a frame and where it should be; a posture where the frame does not notice."""

    frame: str
    posture: bool
    gravity: bool

    def signals(self) -> Sizes:
        return {"pose_ref": 12, "twist_ref": 6}

    def constants(self) -> Sizes:
        gains: Sizes = {"stiffness": 6, "damping": 6}
        return gains | {"posture": "q", "kp_posture": "v", "kd_posture": "v"} if self.posture else gains

    def torque(self, dynamics: Dynamics, q: Values, qd: Values, given: Given) -> Values:
        J, T = dynamics.jacobian(self.frame, q), dynamics.pose(self.frame, q)
        tau = frame_impedance(J, T, qd, given)
        if self.posture:
            error = tracking_error(dynamics.model, q, given["posture"])
            gains = zip(given["kp_posture"], error, given["kd_posture"], qd, strict=True)
            own = without_motors(dynamics.model, [kp * e - kd * rate for kp, e, kd, rate in gains])
            tau = added(tau, posture_in_null_space(J, dynamics.mass_matrix(q), own))
        if self.gravity:
            tau = added(tau, dynamics.gravity(q))
        return without_motors(dynamics.model, tau)


@dataclass(frozen=True)
class WrenchAt(Form):
    """J^T wrench: what a wrench [moment; force] in the base's directions at a frame's origin does to the joints."""

    frame: str

    def signals(self) -> Sizes:
        return {"wrench": 6}

    def torque(self, dynamics: Dynamics, q: Values, qd: Values, given: Given) -> Values:
        return transpose_times(dynamics.jacobian(self.frame, q), given["wrench"])


@dataclass(frozen=True)
class Sum(Form):
    """Several together; what the k-th reads is named with _k behind."""

    parts: tuple[Form, ...]

    def signals(self) -> Sizes:
        return {f"{name}_{k}": size for k, part in enumerate(self.parts) for name, size in part.signals().items()}

    def constants(self) -> Sizes:
        return {f"{name}_{k}": size for k, part in enumerate(self.parts) for name, size in part.constants().items()}

    def torque(self, dynamics: Dynamics, q: Values, qd: Values, given: Given) -> Values:
        total: Values = [0.0] * len(qd)
        for k, part in enumerate(self.parts):
            own = {name: given[f"{name}_{k}"] for name in (*part.signals(), *part.constants())}
            total = added(total, part.torque(dynamics, q, qd, own))
        return total


@dataclass(frozen=True)
class Saturated(Form):
    """Each torque between -effort_limit and effort_limit."""

    part: Form

    def signals(self) -> Sizes:
        return self.part.signals()

    def constants(self) -> Sizes:
        return self.part.constants() | {"effort_limit": "v"}

    def torque(self, dynamics: Dynamics, q: Values, qd: Values, given: Given) -> Values:
        tau = self.part.torque(dynamics, q, qd, given)
        return [between(-most, x, most) for x, most in zip(tau, given["effort_limit"], strict=True)]


@dataclass(frozen=True)
class OnModel(Form):
    """A law that computes with another robot than the one that it drives."""

    part: Form
    model: CanonicalModel

    def signals(self) -> Sizes:
        return self.part.signals()

    def constants(self) -> Sizes:
        return self.part.constants()

    def torque(self, dynamics: Dynamics, q: Values, qd: Values, given: Given) -> Values:
        return self.part.torque(dynamics.of(self.model), q, qd, given)


def added(a: Values, b: Values) -> list[Scalar]:
    return [x + y for x, y in zip(a, b, strict=True)]


def between(least: Scalar, x: Scalar, most: Scalar) -> Scalar:
    """x, or the bound that it is beyond."""
    return where(x < least, least, where(most < x, most, x))
