"""What pushes a robot, read from its torques: wrenches at a frame with their covariance, and an observer of momentum.

M qdd + h(q, qd) = tau + J^T w: torques that the model does not explain, r = M qdd + h - tau, are J^T w and noise. With
noise of covariance S the best estimate is that of weighted least squares, w = P J S^-1 r with covariance
P = (J S^-1 J^T + P0^-1)^-1, P0 that of what is expected beforehand: an innovation and its gain, as in the filter by
which Rodriguez (1987) reads the dynamics of a chain.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from ..errors import ArgumentError
from ..robot.robot import Robot
from ..support.foreign import refuse_foreign
from ..support.messages import shown
from ..support.numbers import as_array, checked_flag, real_vectors

if TYPE_CHECKING:
    from pathlib import Path


RANK = 1e-10  # of the largest singular value: below, a direction cannot be told from noise


class Wrench(NamedTuple):
    """wrench (..., 6), [moment; force] on the robot at the frame's origin, and its covariance (..., 6, 6).

    mismatch (...): the squared length of what is left, in standard deviations of the torques' noise. If only noise is
    left, that is a chi-square variable of nv - 6 freedoms: more says that the push is elsewhere, or the model wrong.
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
    """Arguments as of `Robot.wrench_from_torques`."""
    qdd = np.zeros(robot.nv) if qdd is None else qdd
    explained = robot.inverse_dynamics(q, qd, qdd, dissipation=dissipation)
    residual = explained - _fitting("wrench_from_torques: tau", tau, explained.shape)
    return wrench_from_residual(robot, q, residual, frame, noise=noise, prior=prior, reference=reference)


def wrench_from_residual(
    robot: Robot, q: ArrayLike, residual: ArrayLike, frame: str, *, noise: ArrayLike = 1.0,
    prior: ArrayLike | None = None,
    reference: str = "world_aligned",
) -> Wrench:  # fmt: skip
    """The wrench that explains torques (..., nv) which the model does not."""
    sigma, expected = _deviations("wrench_from_torques: noise", noise, robot.nv), None
    if prior is not None:
        expected = _deviations("wrench_from_torques: prior", prior, 6)
    if expected is None and robot.nv < 6:
        raise ArgumentError(
            f"wrench_from_torques: {robot.name} has {robot.nv} rates, which do not show all six components of a "
            f"wrench: pass prior=, their standard deviations as expected beforehand (N m, N)."
        )
    J = robot.jacobian(q, frame, reference=reference)
    A = np.swapaxes(J, -1, -2) / sigma[:, None]  # torques in standard deviations
    b = np.asarray(residual, float) / sigma
    A = np.broadcast_arrays(A, b[..., None])[0]
    b = np.broadcast_to(b, A.shape[:-1])
    if expected is not None:
        A = np.concatenate([A, np.broadcast_to(np.diag(1.0 / expected), (*A.shape[:-2], 6, 6))], axis=-2)
        b = np.concatenate([b, np.zeros((*b.shape[:-1], 6))], axis=-1)
    finite = np.isfinite(A).all(axis=(-2, -1), keepdims=True)  # LAPACK would refuse the others, and all beside them
    U, S, Vt = np.linalg.svd(np.where(finite, A, np.eye(*A.shape[-2:])), full_matrices=False)
    if (S[..., -1] <= RANK * S[..., 0]).any():
        first = tuple(int(i) for i in np.argwhere(np.atleast_1d(S[..., -1] <= RANK * S[..., 0]))[0])
        raise ArgumentError(
            f"wrench_from_torques: in state {first} of the batch {robot.name} is singular, and its torques do not show "
            f"the whole wrench at {frame}: leave it out, or pass prior=, standard deviations as expected beforehand."
        )
    scaled = np.swapaxes(Vt, -1, -2) / np.where(finite, S[..., None, :], np.nan)
    w = np.einsum("...ij,...kj,...k->...i", scaled, U, b)
    left = b - np.einsum("...ij,...j->...i", A, w)
    return Wrench(w, scaled @ np.swapaxes(scaled, -1, -2), np.einsum("...i,...i->...", left, left))


def _fitting(name: str, value: ArrayLike, shape: tuple[int, ...]) -> np.ndarray:
    """Real numbers (..., size) whose batch broadcasts with that of `shape`."""
    array = real_vectors(name, value, shape[-1])
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
        raise ArgumentError(f"{name} is {shown(value)}, expected one standard deviation above 0, or {size} of them.")
    return array


class MomentumObserver:
    """External torques from q, qd and tau alone, without accelerations: r' = gain (p' - p' by the model - r).

    De Luca and Mattone, "Sensorless robot collision detection and hybrid force/motion control" (ICRA 2005): with the
    momentum p = M qd and p' = tau + C^T qd - g + r, the residual r follows the external torques as a first-order filter
    of `gain` (1/s) does. Call it at every sample, dt apart, with states (..., size) and the torques that held since the
    last one. `collided` says where |r| is beyond a threshold.
    """

    def __init__(self, robot: Robot, dt: float, gain: float = 50.0, dissipation: bool = False):
        for name, value in (("dt", dt), ("gain", gain)):
            if not (isinstance(value, (int, float, np.floating)) and np.isfinite(value) and value > 0.0):
                raise ArgumentError(f"MomentumObserver: {name} is {shown(value)}, expected a finite number above 0.")
        self.robot, self.dt, self.gain = robot, float(dt), float(gain)
        self.dissipation = checked_flag("MomentumObserver: dissipation", dissipation)
        self._terms = robot.compile(["mass_matrix", "coriolis_matrix", "bias_forces"], dissipation=self.dissipation)
        self.reset()

    def reset(self) -> None:
        """Forget what was observed."""
        self.residual: np.ndarray | None = None
        self._integral: float | np.ndarray = 0.0
        self._before: tuple[np.ndarray, np.ndarray] | None = None

    def __call__(self, q: ArrayLike, qd: ArrayLike, tau: ArrayLike) -> np.ndarray:
        """The external torques (..., nv) as they are known by now; tau is what held since the last call."""
        qd = real_vectors("MomentumObserver: qd", qd, self.robot.nv)
        M, C, h = self._terms(q, qd)
        tau = _fitting("MomentumObserver: tau", tau, h.shape)
        p = np.einsum("...ij,...j->...i", M, qd)
        # C^T qd - g, as dM/dt qd - h: h has what dissipates too, dampers between frames among it
        known = np.einsum("...ij,...j->...i", C + np.swapaxes(C, -1, -2), qd) - h
        if self._before is not None and p.shape != self._first.shape:
            raise ArgumentError(
                f"MomentumObserver: got a batch {p.shape[:-1]} after one of {self._first.shape[:-1]}, expected the "
                f"same: call reset() for another one."
            )
        if self._before is None:
            self._first, r = p, np.zeros_like(p)
            self._before = known, r
        else:
            # the trapezoid of what the model knows; of r itself implicitly, which is stable for every gain
            self._integral = self._integral + self.dt * (tau + 0.5 * (known + self._before[0]))
            r = self.gain * (p - self._first - self._integral - self._before[1]) / (1.0 + self.gain * self.dt)
            self._before = known, self._before[1] + self.dt * r
        self.residual = r
        return r

    def collided(self, threshold: ArrayLike) -> np.ndarray:
        """Whether some joint (...) feels more than the threshold, one number or (nv,)."""
        if self.residual is None:
            raise ArgumentError("MomentumObserver: nothing was observed yet, expected a call with q, qd and tau first.")
        limit = as_array(threshold)
        if limit.dtype.kind not in "iuf" or limit.shape not in ((), (self.robot.nv,)):
            raise ArgumentError(
                f"MomentumObserver: threshold is {shown(threshold)}, expected one number, or {self.robot.nv} of them."
            )
        return np.asarray((np.abs(self.residual) > limit).any(axis=-1))

    def to_c(
        self, path: str | Path, *, name: str | None = None, dtype: str = "double"
    ) -> tuple[Path, Path]:  # fmt: skip
        """Write the observer as C99 to `path`, which ends in .c, and the header beside it.

        The function takes q, qd, tau, its state (zeros before the first call), gain and dt. It returns the residual and
        the next state, which goes into the next call. `<name>_tuned` has this gain and dt. name: <robot>_<file> by
        default.
        """
        from .observer import export_observer

        return export_observer(self.robot, self.dt, self.gain, self.dissipation, path, name, dtype)
