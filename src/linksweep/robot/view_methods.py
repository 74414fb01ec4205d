"""What users call to see a robot."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from numpy.typing import ArrayLike

if TYPE_CHECKING:
    from ..viewer import Viewer


class ViewMethods:
    """The part of `Robot` that shows it in the browser."""

    def show(self, q: ArrayLike | None = None, t: ArrayLike | None = None, **options: Any) -> Viewer:
        """Show the robot in the browser at q (nq,), or along q (samples, nq) at times t.

        Options: see `linksweep.viewer.show`.
        """
        from ..viewer import show

        return show(self, q, t, **options)
