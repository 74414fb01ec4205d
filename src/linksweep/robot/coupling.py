"""Joints that mimic others: the robot in the coordinates that are left, q = G q_r + c.

With a constant G the rates are G v_r, so that by virtual work tau_r = G^T tau and M_r = G^T M G. The recursions run on
the full robot; forward dynamics solves M_r, the `composite` method on what is left.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ..description.model import Mimic
from ..errors import ArgumentError, DescriptionError, SingularError
from ..mechanism.joints import KINDS
from ..support.foreign import refuse_foreign
from ..support.messages import shown

if TYPE_CHECKING:
    from ..viewer import Viewer
    from .robot import Robot

REDUCED = ("inverse_dynamics", "forward_dynamics", "bias_forces", "gravity_forces", "mass_matrix", "pose", "jacobian")

REDUCED_LIST = ", ".join(REDUCED)


class NotCoupled(ArgumentError, AttributeError):
    """A method of Robot that a CoupledRobot does not have."""


class CoupledRobot:
    """A robot some of whose joints follow others, in reduced coordinates.

    `robot` is the full one, `laws` say who follows whom. Arrays have any leading batch shape; coordinates follow
    `joint_names`, those of the joints that follow none.
    """

    def __init__(self, robot: Robot, laws: Sequence[Mimic]):
        self.robot = robot
        self.laws = tuple(laws)
        lines = _resolved(robot, self.laws)
        self.joint_names = tuple(name for name in robot.joint_names if name not in lines)
        places = {link.row: link for link in robot.canonical.links}
        by_name = {name: places[row] for row, name in enumerate(robot.joint_names)}
        self.nq = sum(KINDS[by_name[name].kind].nq for name in self.joint_names)
        self.nv = sum(KINDS[by_name[name].kind].nv for name in self.joint_names)
        self._to_q, self._shift = np.zeros((robot.nq, self.nq)), np.zeros(robot.nq)
        self._to_v = np.zeros((robot.nv, self.nv))
        starts: dict[str, tuple[int, int]] = {}
        q_start = start = 0
        for name in self.joint_names:
            link, kind = by_name[name], KINDS[by_name[name].kind]
            starts[name] = q_start, start
            self._to_q[link.q_start : link.q_start + kind.nq, q_start : q_start + kind.nq] = np.eye(kind.nq)
            self._to_v[link.start : link.start + kind.nv, start : start + kind.nv] = np.eye(kind.nv)
            q_start, start = q_start + kind.nq, start + kind.nv
        self._own = self._to_q.argmax(axis=0)  # where each reduced coordinate stands among the full ones
        self._own_rates = self._to_v.argmax(axis=0)
        for name, (leader, multiplier, offset) in lines.items():
            link = by_name[name]
            self._to_q[link.q_start, starts[leader][0]] = multiplier
            self._to_v[link.start, starts[leader][1]] = multiplier
            self._shift[link.q_start] = offset

    # the description

    @property
    def name(self) -> str:
        """The name in its description."""
        return self.robot.name

    @property
    def link_names(self) -> tuple[str, ...]:
        """All moving links of the full robot; rows of f_ext follow them."""
        return self.robot.link_names

    @property
    def frame_names(self) -> tuple[str, ...]:
        """Every named place of the full robot."""
        return self.robot.frame_names

    @property
    def gravity(self) -> tuple[float, float, float]:
        """The acceleration of things that fall, in the base frame (m/s^2)."""
        return self.robot.gravity

    def with_gravity(self, gravity: Sequence[float]) -> CoupledRobot:
        """The same robot under another gravity."""
        return CoupledRobot(self.robot.with_gravity(gravity), self.laws)

    def with_payload(
        self, link: str, mass: float, com: Sequence[float] = (0, 0, 0), inertia: Any = None
    ) -> CoupledRobot:
        """The same robot with a body fixed to a link or frame, as `Robot.with_payload`."""
        return CoupledRobot(self.robot.with_payload(link, mass, com, inertia), self.laws)

    def with_base(self, base: str) -> CoupledRobot:
        """The same robot on a "floating" or a "fixed" base."""
        return CoupledRobot(self.robot.with_base(base), self.laws)

    def methods(self, function: str) -> tuple[str, ...]:
        """The methods by which the reduced robot computes a function: forward dynamics by `composite` alone."""
        if function not in REDUCED:
            raise ArgumentError(f"a coupled robot has no function {shown(function)}, expected one of {REDUCED_LIST}.")
        return ("composite",) if function == "forward_dynamics" else self.robot.methods(function)

    # coordinates

    def expand(self, q: Any) -> np.ndarray:
        """Coordinates (..., robot.nq) of the full robot: G q + c."""
        own = _checked("q", q, self.nq)
        return _times(self._to_q, own) + self._shift.astype(own.dtype)

    def expand_rates(self, v: Any) -> np.ndarray:
        """Rates or accelerations (..., robot.nv) of the full robot: G v."""
        return _times(self._to_v, _checked("v", v, self.nv))

    def reduce_forces(self, tau: Any) -> np.ndarray:
        """Joint forces (..., nv) that do the same work as those of the full robot: G^T tau."""
        return _times(self._to_v.T, _checked("tau", tau, self.robot.nv))

    def neutral(self) -> np.ndarray:
        """The reduced coordinates at which nothing is moved."""
        return self.robot.neutral()[self._own]

    def random(self, rng: np.random.Generator) -> np.ndarray:
        """Random reduced coordinates within finite limits."""
        return self.robot.random(rng)[self._own]

    def normalize(self, q: Any) -> np.ndarray:
        """The same coordinates with quaternions of length 1."""
        return self.robot.normalize(self.expand(q))[..., self._own]

    def integrate(self, q: Any, v: Any, dt: Any = 1.0) -> np.ndarray:
        """Coordinates after moving with the constant rates v for a time dt."""
        return self.robot.integrate(self.expand(q), self.expand_rates(v), dt)[..., self._own]

    def difference(self, q0: Any, q1: Any) -> np.ndarray:
        """The constant rates that lead from q0 to q1 in a time 1."""
        return self.robot.difference(self.expand(q0), self.expand(q1))[..., self._own_rates]

    # dynamics

    def inverse_dynamics(self, q: Any, qd: Any, qdd: Any, method: str | None = None, **options: Any) -> np.ndarray:
        """Forces (..., nv) of the joints that are left; f_ext, dissipation and base_motion as of `Robot`."""
        _refuse("inverse_dynamics", options)
        full = (self.expand(q), self.expand_rates(qd), self.expand_rates(qdd))
        return self.reduce_forces(self.robot.inverse_dynamics(*full, method, **options))

    def bias_forces(self, q: Any, qd: Any, method: str | None = None, **options: Any) -> np.ndarray:
        """Forces that hold the free joints unaccelerated: centrifugal, Coriolis, gravity and external."""
        _refuse("bias_forces", options)
        return self.reduce_forces(self.robot.bias_forces(self.expand(q), self.expand_rates(qd), method, **options))

    def gravity_forces(self, q: Any, method: str | None = None) -> np.ndarray:
        """Forces that hold the robot still against gravity."""
        return self.reduce_forces(self.robot.gravity_forces(self.expand(q), method))

    def mass_matrix(self, q: Any, method: str | None = None) -> np.ndarray:
        """G^T M G, (..., nv, nv)."""
        full = self.robot.mass_matrix(self.expand(q), method)
        g = self._to_v.astype(full.dtype)
        return g.T @ full @ g

    def forward_dynamics(self, q: Any, qd: Any, tau: Any, method: str | None = None, **options: Any) -> np.ndarray:
        """Accelerations (..., nv): solves G^T M G for tau minus the reduced bias."""
        if method not in (None, "composite"):
            raise ArgumentError(
                f"forward_dynamics: method is {shown(method)}, expected 'composite', the only one here."
            )
        force = _checked("tau", tau, self.nv) - self.bias_forces(q, qd, **options)
        try:
            return np.linalg.solve(self.mass_matrix(q), force[..., None])[..., 0]
        except np.linalg.LinAlgError:
            raise SingularError(
                f"forward_dynamics: no inertia moves with some joint of {shown(self.name)}, so its acceleration is not "
                "determined: give the link beyond it an inertia, or the joint an armature."
            ) from None

    def pose(self, q: Any, frame: str) -> np.ndarray:
        """The frame's homogeneous matrix (..., 4, 4) in the base frame."""
        return self.robot.pose(self.expand(q), frame)

    def jacobian(self, q: Any, frame: str, **options: Any) -> np.ndarray:
        """The full robot's Jacobian times G, (..., 6, nv)."""
        full = self.robot.jacobian(self.expand(q), frame, **options)
        return full @ self._to_v.astype(full.dtype)

    def show(self, q: Any = None, t: Any = None, **options: Any) -> Viewer:
        """Show the robot in the browser: see `linksweep.viewer.show`."""
        from ..viewer import show

        return show(self, q, t, **options)

    def __getattr__(self, name: str) -> Any:
        if not name.startswith("_") and hasattr(type(self.robot), name):
            raise NotCoupled(
                f"a coupled robot has no {name}, expected one of {REDUCED_LIST}: use it on .robot, the full one, "
                "or load with mimic='free'."
            )
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def __repr__(self) -> str:
        return f"<CoupledRobot {self.name}: {self.nv} of {self.robot.nv} coordinates>"


def _resolved(robot: Robot, laws: Sequence[Mimic]) -> dict[str, tuple[str, float, float]]:
    """For each joint that follows: the joint that leads in the end, multiplier and offset."""
    direct = {law.joint: law for law in laws}
    known = set(robot.joint_names)
    resolved = {}
    for law in laws:
        leader, multiplier, offset, seen = law.leader, law.multiplier, law.offset, {law.joint}
        while leader in direct:
            if leader in seen:
                raise DescriptionError(
                    f"the joints {', '.join(map(repr, sorted(seen)[:8]))} mimic each other in a circle, expected one "
                    "that follows none: remove one <mimic>."
                )
            seen.add(leader)
            inner = direct[leader]
            leader, offset, multiplier = inner.leader, offset + multiplier * inner.offset, multiplier * inner.multiplier
        if not {law.joint, leader} <= known:
            raise DescriptionError(f"the joint {law.joint!r} mimics {leader!r}, expected joints that move: correct it.")
        resolved[law.joint] = (leader, multiplier, offset)
    return resolved


def _refuse(function: str, options: dict[str, Any]) -> None:
    for name in options:
        if name not in ("f_ext", "dissipation", "base_motion"):
            raise ArgumentError(
                f"{function}: a coupled robot takes no {name!r}, expected f_ext, dissipation or base_motion: use "
                ".robot, the full one."
            )


def _checked(name: str, value: Any, size: int) -> np.ndarray:
    refuse_foreign(name, value)
    try:
        array = np.asarray(value)
    except ValueError:
        array = np.array(None)
    if array.dtype.kind not in "iuf" or array.ndim == 0 or array.shape[-1] != size:
        raise ArgumentError(
            f"{name} has shape {array.shape} and type {array.dtype}, expected real numbers of shape (..., {size})."
        )
    return array if array.dtype.kind == "f" else array.astype(float)


def _times(matrix: np.ndarray, vectors: np.ndarray) -> np.ndarray:
    return vectors @ matrix.T.astype(vectors.dtype)
