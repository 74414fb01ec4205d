"""What users call for inverse kinematics."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from numpy.typing import ArrayLike

if TYPE_CHECKING:
    from ..motion import Branches, Followed, InverseKinematics, Path


class KinematicsMethods:
    """The part of `Robot` that finds joint coordinates for a frame."""

    def inverse_kinematics(
        self, target: ArrayLike, frame: str, q0: ArrayLike | None = None, **options: Any
    ) -> InverseKinematics:
        """Coordinates that put the frame at the targets (..., 4, 4): see `linksweep.motion.inverse_kinematics`."""
        from ..motion import inverse_kinematics

        return inverse_kinematics(self, target, frame, q0, **options)  # pyright: ignore[reportArgumentType]

    def inverse_kinematics_branches(
        self, target: ArrayLike, frame: str, q0: ArrayLike | None = None, **options: Any
    ) -> Branches:
        """All coordinates that put the frame at the targets, in closed form, for arms with a spherical wrist or three
        parallel axes: see `linksweep.motion.inverse_kinematics_branches`."""
        from ..motion import inverse_kinematics_branches

        return inverse_kinematics_branches(self, target, frame, q0, **options)  # pyright: ignore[reportArgumentType]

    def follow(self, path: Path, frame: str, times: ArrayLike, q0: ArrayLike | None = None, **options: Any) -> Followed:
        """The joint motion that leads the frame along a path, at times (k,): see `linksweep.motion.follow`."""
        from ..motion import follow

        return follow(self, frame, path, times, q0, **options)  # pyright: ignore[reportArgumentType]
