"""What users call for the forces of the environment, read from torques."""

from __future__ import annotations

from typing import TYPE_CHECKING

from numpy.typing import ArrayLike

if TYPE_CHECKING:
    from ..analysis.wrench import MomentumObserver, Wrench


class ContactMethods:
    """The part of `Robot` that says what pushes it."""

    def wrench_from_torques(
        self,
        q: ArrayLike,
        qd: ArrayLike,
        tau: ArrayLike,
        frame: str,
        qdd: ArrayLike | None = None,
        *,
        noise: ArrayLike = 1.0,
        prior: ArrayLike | None = None,
        reference: str = "world_aligned",
        dissipation: bool = False,
    ) -> Wrench:
        """The wrench on a frame that explains measured torques: (wrench, covariance, mismatch), batches as elsewhere.

        wrench (..., 6): [moment; force] that the environment applies at the frame's origin, in the base's directions
        (or as `reference` says, as of Jacobians). qdd: accelerations, 0 unless given: for robots that hold still or
        move evenly. noise: standard deviations of the torques, one or (nv,), which weigh them and give the covariance
        (..., 6, 6). prior: standard deviations of the wrench as expected beforehand, one or six; needed where the
        joints do not show all of it. mismatch (...): what is left, squared, in deviations of the noise. dissipation:
        with damping and friction in the model.
        """
        from ..analysis.wrench import wrench_from_torques

        terms = {"noise": noise, "prior": prior, "reference": reference, "dissipation": dissipation}
        return wrench_from_torques(self, q, qd, tau, frame, qdd, **terms)  # pyright: ignore[reportArgumentType]

    def momentum_observer(self, dt: float, gain: float = 50.0, dissipation: bool = False) -> MomentumObserver:
        """An observer of external torques by momentum, without accelerations: call it every dt with (q, qd, tau).

        gain: 1/s, how fast it follows. It needs joints of one freedom.
        """
        from ..analysis.wrench import MomentumObserver

        return MomentumObserver(self, dt, gain, dissipation)  # type: ignore[arg-type]
