"""What Robot inherits: the methods that give an edited robot, or write the description in another format."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from numpy.typing import ArrayLike

from ..description.model import Model
from ..description.snapping import snapped
from . import editing
from .description_methods import DescriptionMethods

if TYPE_CHECKING:
    from .robot import Robot


class EditMethods(DescriptionMethods):
    """The part of `Robot` that gives an edited robot, or its description in another format."""

    snapping: Mapping[str, float] = MappingProxyType({})  # what `snapped` moved

    def _edited(self, model: Model) -> Robot:
        raise NotImplementedError  # Robot makes one

    def with_base(self, base: str) -> Robot:
        """The same robot on a "floating" or a "fixed" base.

        A floating base is a link on a free joint, "root_joint", whose coordinates come first; the new base is "world".
        Gravity keeps its direction in the world.
        """
        return self._edited(editing.with_base(self.model, base))

    def lock(self, joints: Any, at: Any = None) -> Robot:
        """The same robot with joints held: their links are folded, with inertia and frames, into what carries them.

        joints: a name or several, or {joint: coordinates}. at: {joint: coordinates}, or one entry for each joint;
        neutral where not said.
        """
        return self._edited(editing.lock(self.model, joints, at))

    def subchain(self, base: str, tip: str, fold: bool = True) -> Robot:
        """The serial chain from one link or frame, the new base, outward to another.

        fold: what branches off is locked at neutral and folded in with its inertia; False drops it.
        """
        return self._edited(editing.subchain(self.model, base, tip, fold))

    def placed(self, pose: ArrayLike) -> Robot:
        """The same robot with its base at `pose` (4, 4) in the world, in which poses, Jacobians and gravity then are.

        The world is its new base; its former base stays as a frame.
        """
        from .scenes import placed

        return self._edited(placed(self.model, pose))

    def with_frame(self, name: str, on: str, pose: ArrayLike | None = None) -> Robot:
        """The same robot with one named frame more, at `pose` (4, 4) in the link or frame `on`."""
        from .scenes import with_frame

        return self._edited(with_frame(self.model, name, on, pose))

    def snapped(self, tolerance: float = 1e-5) -> Robot:
        """The same robot with nearly special joint directions made exact, which saves operations.

        tolerance: entries of joint rotations and axes this close to 0, 1 and -1 are meant so. `.snapping` of the new
        robot says by what angle (rad) each joint that moved has turned. Inertias and positions stay.
        """
        model, moved = snapped(self.model, tolerance)
        robot = self._edited(model)
        if robot is not self:
            robot.snapping = moved
        return robot

    def to_urdf(self) -> str:
        """URDF text of the same dynamics; gravity is not part of it, and motor inertia is an attribute of our own."""
        from ..formats.urdf_writer import to_urdf

        return to_urdf(self.model)

    def to_dh(self, convention: str | None = None, tip: str | None = None) -> dict[str, Any]:
        """Arguments of `Robot.from_dh` for a serial chain: its Denavit-Hartenberg rows, mount and tool."""
        from ..formats.dh_writer import to_dh

        return to_dh(self.model, convention, tip)
