"""External wrenches from joint torques: estimates at a frame with covariance, and the momentum observer.

With M qdd + h(q, qd) = tau + J^T w, the torque residual r = M qdd + h - tau is J^T w plus noise. For noise of
covariance S the best estimate is by weighted least squares, w = P J S^-1 r with covariance
P = (J S^-1 J^T + P0^-1)^-1 and prior covariance P0. This is an innovation and its gain, as in the filter of Rodriguez
(1987) for the dynamics of a chain.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from ..errors import ArgumentError
from ..functions.c_export import default_name, export_c
from ..functions.compiled import compiled
from ..functions.computation import Computation, RobotFunction, Tracing
from ..mechanism.canonical import CanonicalModel
from ..spatial.factorization import dot
from ..spatial.scalars import Scalar, where
from ..support.checks import as_array, checked_flag, real_array, real_number, refuse_foreign
from ..support.messages import shown
from ..tracing.program import Array
from .robot import Robot

RANK = 1e-10  # relative singular value below which a direction of the wrench is unobservable


class Wrench(NamedTuple):
    """An estimated external wrench.

    Attributes
    ----------
    wrench : (..., 6)
        [moment; force] on the robot at the frame's origin.
    covariance : (..., 6, 6)
    mismatch : (...)
        Squared residual of the torques in standard deviations of their noise. If the residual is noise only, it has a
        chi-square distribution with nv - 6 degrees of freedom. A larger value means that the contact is elsewhere or
        the model is wrong.
    """

    wrench: np.ndarray
    covariance: np.ndarray
    mismatch: np.ndarray


def wrench_from_torques(
    robot: Robot,
    q: ArrayLike,
    qd: ArrayLike,
    tau: ArrayLike,
    frame: str,
    qdd: ArrayLike | None,
    noise: ArrayLike,
    prior: ArrayLike | None,
    reference: str,
    dissipation: bool,
) -> Wrench:
    """See `Robot.wrench_from_torques`."""
    qdd = np.zeros(robot.nv) if qdd is None else qdd
    explained = robot.inverse_dynamics(q, qd, qdd, dissipation=dissipation)
    residual = explained - _fitting("wrench_from_torques: tau", tau, explained.shape)
    return wrench_from_residual(robot, q, residual, frame, noise=noise, prior=prior, reference=reference)


def wrench_from_residual(
    robot: Robot, q: ArrayLike, residual: ArrayLike, frame: str, *, noise: ArrayLike = 1.0,
    prior: ArrayLike | None = None,
    reference: str = "world_aligned",
) -> Wrench:  # fmt: skip
    """Return the wrench that explains torque residuals (..., nv) of the model."""
    sigma, expected = _deviations("wrench_from_torques: noise", noise, robot.nv), None
    if prior is not None:
        expected = _deviations("wrench_from_torques: prior", prior, 6)
    if expected is None and robot.nv < 6:
        raise ArgumentError(
            f"wrench_from_torques: {robot.name} has {robot.nv} degrees of freedom, which do not observe all six "
            f"components of a wrench; pass prior=, their prior standard deviations (N m, N)."
        )
    J = robot.jacobian(q, frame, reference=reference)
    A = np.swapaxes(J, -1, -2) / sigma[:, None]  # torques in standard deviations
    b = np.asarray(residual, float) / sigma
    A = np.broadcast_arrays(A, b[..., None])[0]
    b = np.broadcast_to(b, A.shape[:-1])
    if expected is not None:
        A = np.concatenate([A, np.broadcast_to(np.diag(1.0 / expected), (*A.shape[:-2], 6, 6))], axis=-2)
        b = np.concatenate([b, np.zeros((*b.shape[:-1], 6))], axis=-1)
    finite = np.isfinite(A).all(axis=(-2, -1), keepdims=True)  # LAPACK would raise an error for all samples
    U, S, Vt = np.linalg.svd(np.where(finite, A, np.eye(*A.shape[-2:])), full_matrices=False)
    if (S[..., -1] <= RANK * S[..., 0]).any():
        first = tuple(int(i) for i in np.argwhere(np.atleast_1d(S[..., -1] <= RANK * S[..., 0]))[0])
        raise ArgumentError(
            f"wrench_from_torques: {robot.name} is in a singular configuration in sample {first}, and its torques do "
            f"not observe the whole wrench at {frame}; pass prior=, prior standard deviations of the wrench."
        )
    scaled = np.swapaxes(Vt, -1, -2) / np.where(finite, S[..., None, :], np.nan)
    w = np.einsum("...ij,...kj,...k->...i", scaled, U, b)
    left = b - np.einsum("...ij,...j->...i", A, w)
    return Wrench(w, scaled @ np.swapaxes(scaled, -1, -2), np.einsum("...i,...i->...", left, left))


def _fitting(name: str, value: ArrayLike, shape: tuple[int, ...]) -> np.ndarray:
    """Return real numbers (..., size) that broadcast with `shape`."""
    array = real_array(name, value, (..., shape[-1]))
    try:
        np.broadcast_shapes(array.shape, shape)
    except ValueError:
        raise ArgumentError(f"{name} has shape {array.shape}, expected one that broadcasts with {shape}.") from None
    return array


def _deviations(name: str, value: ArrayLike, size: int) -> np.ndarray:
    refuse_foreign(name, value)
    try:
        array = np.broadcast_to(np.asarray(value, float), (size,))
    except (TypeError, ValueError, OverflowError):
        array = np.array([-1.0])
    if not (np.isfinite(array).all() and (array > 0.0).all()):
        raise ArgumentError(f"{name} is {shown(value)}, expected a positive standard deviation, or {size} of them.")
    return array


class MomentumObserver:
    """Momentum observer: external torques from q, qd and tau, without accelerations.

    De Luca and Mattone, "Sensorless robot collision detection and hybrid force/motion control" (ICRA 2005): with the
    momentum p = M qd and p' = tau + C^T qd - g + r, the residual r follows the external torques like a first-order
    low-pass filter of bandwidth `gain` (1/s). Call the observer at every sample, dt apart, with the state (..., nv) and
    the torques applied since the last sample. `collided` compares |r| with a threshold.
    """

    def __init__(self, robot: Robot, dt: float, gain: float = 50.0, dissipation: bool = False):
        self.robot = robot
        self.dt = real_number("MomentumObserver: dt", dt, above=0.0)
        self.gain = real_number("MomentumObserver: gain", gain, above=0.0)
        self.dissipation = checked_flag("MomentumObserver: dissipation", dissipation)
        self._terms = robot.compile(["mass_matrix", "coriolis_matrix", "bias_forces"], dissipation=self.dissipation)
        self.reset()

    def reset(self) -> None:
        """Reset the observer to its initial state."""
        self.residual: np.ndarray | None = None
        self._integral: float | np.ndarray = 0.0
        self._before: tuple[np.ndarray, np.ndarray] | None = None

    def __call__(self, q: ArrayLike, qd: ArrayLike, tau: ArrayLike) -> np.ndarray:
        """Return the estimated external torques (..., nv); tau was applied since the last call."""
        qd = real_array("MomentumObserver: qd", qd, (..., self.robot.nv))
        M, C, h = self._terms(q, qd)
        tau = _fitting("MomentumObserver: tau", tau, h.shape)
        p = np.einsum("...ij,...j->...i", M, qd)
        # C^T qd - g as dM/dt qd - h, where h includes dissipation and dampers between frames
        model_rate = np.einsum("...ij,...j->...i", C + np.swapaxes(C, -1, -2), qd) - h
        if self._before is not None and p.shape != self._first.shape:
            raise ArgumentError(
                f"MomentumObserver: the batch shape is {p.shape[:-1]} after {self._first.shape[:-1]}, expected the "
                f"same; reset() starts a new one."
            )
        if self._before is None:
            self._first, r = p, np.zeros_like(p)
            self._before = model_rate, r
        else:
            # trapezoidal rule for the model, implicit Euler for r, which is stable for every gain
            self._integral = self._integral + self.dt * (tau + 0.5 * (model_rate + self._before[0]))
            r = self.gain * (p - self._first - self._integral - self._before[1]) / (1.0 + self.gain * self.dt)
            self._before = model_rate, self._before[1] + self.dt * r
        self.residual = r
        return r

    def collided(self, threshold: ArrayLike) -> np.ndarray:
        """Return whether the residual of some joint (...) exceeds the threshold, a number or (nv,)."""
        if self.residual is None:
            raise ArgumentError("MomentumObserver: collided needs at least one call with q, qd and tau.")
        limit = as_array(threshold)
        if limit.dtype.kind not in "iuf" or limit.shape not in ((), (self.robot.nv,)):
            raise ArgumentError(
                f"MomentumObserver: threshold is {shown(threshold)}, expected one number, or {self.robot.nv} of them."
            )
        return np.asarray((np.abs(self.residual) > limit).any(axis=-1))

    def to_c(
        self, path: str | Path, *, name: str | None = None, dtype: str = "double"
    ) -> tuple[Path, Path]:  # fmt: skip
        """Write the observer as a C99 source file, and its header beside it.

        The function takes q, qd, tau, its state (zeros before the first call), gain and dt. It returns the residual and
        the next state. `<name>_tuned` has this gain and dt built in.

        Parameters
        ----------
        path : path
            Must end in .c.
        name : str
            Name of the function, <robot>_<file> by default.
        dtype : "double" or "float"
        """
        return _export(self.robot, self.dt, self.gain, self.dissipation, path, name, dtype)


# ---- the observer as a computation, and as C

TERMS = ("mass_matrix", "coriolis_matrix", "bias_forces")


@dataclass(frozen=True)
class Observer(Computation):
    """q, qd, tau, state, gain, dt -> residual, state: see `MomentumObserver`. `terms` are the functions TERMS.

    The state holds the momentum that the model and the residual explain, the model's rate of it at the last call, and
    a 1 once there was one: all zeros before.
    """

    terms: tuple[RobotFunction, ...]

    @property
    def model(self) -> CanonicalModel:
        return self.terms[0].model

    @property
    def name(self) -> str:
        return "observer"

    @property
    def inputs(self) -> tuple[Array, ...]:
        nq, nv = self.model.nq, self.model.nv
        return (
            Array("q", (nq,)), Array("qd", (nv,)), Array("tau", (nv,)), Array("state", (2 * nv + 1,)),
            Array("gain", (1,)), Array("dt", (1,)),
        )  # fmt: skip

    @property
    def outputs(self) -> tuple[Array, ...]:
        inputs = self.inputs
        return Array("residual", inputs[1].shape), Array("state", inputs[3].shape)

    def values(self, tracing: Tracing) -> Sequence[Sequence[Scalar]]:
        nv = self.model.nv
        q, qd, tau, state, (gain,), (dt,) = (tracing.leaves[array.name] for array in self.inputs)
        arguments = {"q": q, "qd": qd}
        M, C, h = (term.evaluate(*(arguments[array.name] for array in term.inputs)) for term in self.terms)
        started, before = state[2 * nv] > 0.0, state[nv : 2 * nv]
        residual: list[Scalar] = []
        explained: list[Scalar] = []
        known: list[Scalar] = []
        for i in range(nv):
            p = dot(M[i * nv : (i + 1) * nv], qd)
            known.append(dot([C[i * nv + j] + C[j * nv + i] for j in range(nv)], qd) - h[i])
            after = state[i] + dt * (tau[i] + 0.5 * (known[i] + before[i]))
            r = gain * (p - after) / (1.0 + gain * dt)
            residual.append(where(started, r, 0.0))
            explained.append(where(started, after + dt * r, p))
        return residual, [*explained, *known, 1.0]


def _export(
    robot: Robot, dt: float, gain: float, dissipation: bool, path: str | Path, name: str | None, dtype: str
) -> tuple[Path, Path]:
    """See `MomentumObserver.to_c`."""
    terms = robot.recipe(list(TERMS), dissipation=dissipation).parts
    observer = Observer(tuple(term for term in terms if isinstance(term, RobotFunction)))
    function = compiled(observer, "float64", 1, "interpreter")
    return export_c(
        function, path, name=name or default_name(robot.name, path), dtype=dtype, robot=robot,
        what="external torques by the momentum observer", values={"gain": np.array([gain]), "dt": np.array([dt])},
    )  # fmt: skip
