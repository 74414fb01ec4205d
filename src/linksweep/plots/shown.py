"""A figure that notebooks show, whether or not pyplot was ever imported. Importing this imports Matplotlib."""

from __future__ import annotations

import io

from matplotlib.figure import Figure


class ShownFigure(Figure):
    """A Figure with a picture of its own: IPython has one for Matplotlib's only after `%matplotlib inline`."""

    def _repr_png_(self) -> bytes:
        picture = io.BytesIO()
        self.savefig(picture, format="png", dpi=96)
        return picture.getvalue()
