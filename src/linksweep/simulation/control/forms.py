"""What laws of control compute, over any scalar: one definition, run on floats, traced into a step, exported as C.

A form is the structure of a law without its numbers: which signals (sampled in time) and constants it reads, each with
its size, "q", "v" or a number of entries, and the torques that it makes of them in a state (q, qd).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from ...mechanism.canonical import CanonicalModel
from ...spatial.dense import dot, transpose_times
from ...spatial.scalars import Scalar, is_zero, sqrt, where
from ..stepping import Values, at_motors, tracking_error
from .task_space import TaskInertia, frame_impedance

Given = Mapping[str, Values]
Sizes = dict[str, str | int]


class Dynamics(Protocol):
    """What a step or a law asks of a robot, over whatever scalar it runs on."""

    model: CanonicalModel

    def forward(self, q: Values, qd: Values, tau: Values) -> Values: ...

    def forward_without_friction(self, q: Values, qd: Values, tau: Values) -> Values: ...

    def inverse(self, q: Values, qd: Values, qdd: Values) -> Values:
        """Forces at all joints of the tree, with damping where the simulation has dissipation, but without Coulomb
        friction, which jumps at rest."""
        ...

    def gravity(self, q: Values) -> Values: ...

    def motors(self, q: Values, tau: Values) -> Values:
        """The torques of the motors that do what these forces at all joints do: through the constraints, or else those
        at motors alone; 0 at passive joints."""
        ...

    def correction(self, q: Values) -> Values: ...

    def allowed(self, q: Values, qd: Values) -> Values: ...

    def stabilized(self, gains: tuple[float, float], q: Values, qd: Values, qdd: Values) -> Values: ...

    def mass_matrix(self, q: Values) -> list[list[Scalar]]: ...

    def pose(self, frame: str, q: Values) -> list[list[Scalar]]: ...

    def jacobian(self, frame: str, q: Values) -> list[list[Scalar]]: ...

    def frame_bias(self, frame: str, q: Values, qd: Values) -> Values:
        """dJ/dt qd."""
        ...

    def of(self, model: CanonicalModel) -> Dynamics:
        """The dynamics of another robot, over the same scalars."""
        ...


@dataclass(frozen=True)
class Form:
    """No torque at all; the base of the others.

    bounded: torques are finite, whatever is measured.
    """

    @property
    def bounded(self) -> bool:
        return False

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
        wanted: Sizes = {"q_ref": "q", "qd_ref": "v"}
        return wanted | {"qdd_ref": "v"} if self.kind == "computed_torque" else wanted

    def constants(self) -> Sizes:
        return {"kp": "v", "kd": "v"}

    def torque(self, dynamics: Dynamics, q: Values, qd: Values, given: Given) -> Values:
        error = tracking_error(dynamics.model, q, given["q_ref"])
        feedback: list[Scalar] = [
            kp * e + kd * (wanted - rate)
            for kp, e, kd, wanted, rate in zip(given["kp"], error, given["kd"], given["qd_ref"], qd, strict=True)
        ]
        if self.kind == "computed_torque":
            return dynamics.motors(q, dynamics.inverse(q, qd, added(given["qdd_ref"], feedback)))
        own = at_motors(dynamics.model, feedback)
        return added(dynamics.motors(q, dynamics.gravity(q)), own) if self.kind == "pd_gravity" else own


@dataclass(frozen=True)
class Gravity(Form):
    def torque(self, dynamics: Dynamics, q: Values, qd: Values, given: Given) -> Values:
        return dynamics.motors(q, dynamics.gravity(q))


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
        return dynamics.motors(q, tau)


@dataclass(frozen=True)
class TaskSpace(Form):
    """A spring and a damper between a frame and where it should be; a posture where the frame does not notice.

    decoupled: they give accelerations of the frame, each row its own, whatever the robot's inertia and rates.
    admits: and so does a measured wrench, as on a body of the given masses: m a = stiffness e + damping e' + wrench.
    """

    frame: str
    posture: bool
    gravity: bool
    decoupled: bool = False
    admits: bool = False

    def signals(self) -> Sizes:
        wanted: Sizes = {"pose_ref": 12, "twist_ref": 6}
        return wanted | {"wrench": 6} if self.admits else wanted

    def constants(self) -> Sizes:
        gains: Sizes = {"stiffness": 6, "damping": 6}
        gains |= {"mass": 6} if self.admits else {}
        return gains | {"posture": "q", "kp_posture": "v", "kd_posture": "v"} if self.posture else gains

    def torque(self, dynamics: Dynamics, q: Values, qd: Values, given: Given) -> Values:
        J, T = dynamics.jacobian(self.frame, q), dynamics.pose(self.frame, q)
        F = frame_impedance(J, T, qd, given)
        if self.admits:
            F = [(f + w) / m for f, w, m in zip(F, given["wrench"], given["mass"], strict=True)]
        inertia = TaskInertia(J, dynamics.mass_matrix(q)) if self.posture or self.decoupled else None
        if inertia is not None and self.decoupled:
            bias = dynamics.frame_bias(self.frame, q, qd)
            F = inertia.force([a - b for a, b in zip(F, bias, strict=True)])
        if self.admits:  # which the frame feels by itself
            F = [f - w for f, w in zip(F, given["wrench"], strict=True)]
        tau: Values = transpose_times(J, F)  # Khatib (5)
        if inertia is not None and self.posture:
            error = tracking_error(dynamics.model, q, given["posture"])
            gains = zip(given["kp_posture"], error, given["kd_posture"], qd, strict=True)
            own = at_motors(dynamics.model, [kp * e - kd * rate for kp, e, kd, rate in gains])
            tau = added(tau, inertia.unnoticed(own))
        if self.decoupled:
            tau = added(tau, dynamics.inverse(q, qd, [0.0] * len(qd)))
        if self.gravity != self.decoupled:  # inverse dynamics has it already
            weight = dynamics.gravity(q)
            tau = added(tau, weight if self.gravity else [-x for x in weight])
        return dynamics.motors(q, tau)


@dataclass(frozen=True)
class WrenchAt(Form):
    """J^T wrench: what a wrench [moment; force] in the base's directions at a frame's origin does to the joints."""

    frame: str

    def signals(self) -> Sizes:
        return {"wrench": 6}

    def torque(self, dynamics: Dynamics, q: Values, qd: Values, given: Given) -> Values:
        return transpose_times(dynamics.jacobian(self.frame, q), given["wrench"])


@dataclass(frozen=True)
class SurfaceAt(Form):
    """J^T f: the force of a flat, unilateral surface on the origin of a frame.

    f = n N + t; N = max(0, stiffness depth - damping speed) along the normal while the depth is positive, and
    t = -friction N v / sqrt(v^2 + width^2) against the sliding v.
    """

    frame: str

    def constants(self) -> Sizes:
        return {"point": 3, "normal": 3, "stiffness": 1, "damping": 1, "friction": 1, "width": 1}

    def torque(self, dynamics: Dynamics, q: Values, qd: Values, given: Given) -> Values:
        J, T = dynamics.jacobian(self.frame, q)[3:], dynamics.pose(self.frame, q)
        n = given["normal"]
        depth = dot(n, [p - T[k][3] for k, p in enumerate(given["point"])])
        v = [dot(row, qd) for row in J]
        speed = dot(n, v)
        pressed = given["stiffness"][0] * depth - given["damping"][0] * speed
        N = where(depth > 0.0, where(pressed > 0.0, pressed, 0.0), 0.0)
        sliding = [x - speed * y for x, y in zip(v, n, strict=True)]
        width = given["width"][0]
        grip = given["friction"][0] * N / sqrt(dot(sliding, sliding) + width * width)
        return transpose_times(J, [N * y - grip * x for x, y in zip(sliding, n, strict=True)])


@dataclass(frozen=True)
class Sum(Form):
    """Several together; what the k-th reads is named with _k behind."""

    parts: tuple[Form, ...]

    @property
    def bounded(self) -> bool:
        return all(part.bounded for part in self.parts)

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
    """Each torque between -effort_limit and effort_limit; all 0 if any of them is NaN."""

    part: Form

    @property
    def bounded(self) -> bool:
        return True

    def signals(self) -> Sizes:
        return self.part.signals()

    def constants(self) -> Sizes:
        return self.part.constants() | {"effort_limit": "v"}

    def torque(self, dynamics: Dynamics, q: Values, qd: Values, given: Given) -> Values:
        tau = self.part.torque(dynamics, q, qd, given)
        number: Scalar = 1.0  # 0 if one is NaN: neither comparison holds
        for x in tau:
            number = where(x < 1.0, number, where(x > 0.0, number, 0.0))
        bounds = [between(-most, x, most) for x, most in zip(tau, given["effort_limit"], strict=True)]
        return [x if is_zero(x) else where(number > 0.5, x, 0.0) for x in bounds]


@dataclass(frozen=True)
class OnModel(Form):
    """A law that computes with another robot than the one that it drives."""

    part: Form
    model: CanonicalModel

    @property
    def bounded(self) -> bool:
        return self.part.bounded

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
