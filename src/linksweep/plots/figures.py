"""What all plots share: figures without pyplot, line styles, and writing them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, TypedDict

import numpy as np
from numpy.typing import ArrayLike

from linksweep.errors import ArgumentError, BackendError
from linksweep.support.files import write_atomically
from linksweep.support.foreign import refuse_foreign
from linksweep.support.messages import nearest, shown

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Okabe and Ito's colours without the yellow, which white paper swallows.
COLORS = ("#000000", "#D55E00", "#0072B2", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")
# As many dashes as share no factor with the colours: 42 different lines.
DASHES = ("-", (0, (5, 1.5)), (0, (1.2, 1.2)), (0, (6, 1.5, 1.2, 1.5)), (0, (10, 2)), (0, (4, 1.2, 1, 1.2, 1, 1.2)))
GREY = "0.45"


class LineStyle(TypedDict):
    """As `Axes.plot` takes it."""

    color: str
    linestyle: str | tuple[int, tuple[float, ...]]
    linewidth: float


def line_style(index: int) -> LineStyle:
    """Colour and dashes of the curve with this number."""
    return {"color": COLORS[index % len(COLORS)], "linestyle": DASHES[index % len(DASHES)], "linewidth": 1.4}


def numbers(what: str, value: ArrayLike) -> np.ndarray:
    """What is plotted, as float64."""
    refuse_foreign(f"a plot: {what}", value)
    try:
        return np.asarray(value, dtype=float)
    except (TypeError, ValueError, OverflowError):
        raise ArgumentError(f"a plot got {what} = {shown(value)}, expected an array of real numbers.") from None


def plain(name: str) -> str:
    """A name as Matplotlib shows it: no formula between dollars, and in the legend though it begins with _."""
    return (" " if name.startswith("_") else "") + name.replace("$", r"\$")


def new_figure(width: float, height: float) -> Figure:
    """A figure in inches that belongs to nobody else: pyplot, its windows and its list of figures stay out of it."""
    try:
        import matplotlib.figure  # noqa: F401
    except ImportError as missing:
        raise BackendError(
            "Plotting needs Matplotlib, which is not installed: run pip install 'linksweep[plot]'."
        ) from missing
    from linksweep.plots.shown import ShownFigure

    return ShownFigure(figsize=(width, height), layout="constrained")


def save(figure: Figure, path: str | Path, dpi: float = 150) -> None:
    """Write the figure as .png, .svg or .pdf, by the ending of `path`; the same figure gives the same file."""
    import matplotlib

    path = Path(path)
    if not hasattr(figure, "savefig"):
        raise ArgumentError(f"save got {shown(figure)}, expected a figure: pass it first, then the path.")
    known = figure.canvas.get_supported_filetypes()
    ending = path.suffix.lower().removeprefix(".")
    if ending not in known:
        raise ArgumentError(
            f"the plot {path} has the ending {path.suffix!r}{nearest(ending, known)}, expected a format that "
            f"Matplotlib writes, such as .png, .svg or .pdf."
        )
    undated: dict[str, dict[str, str | None]] = {"svg": {"Date": None}, "pdf": {"CreationDate": None}}

    def write(to: Path) -> None:
        with matplotlib.rc_context({"svg.hashsalt": "linksweep"}):  # otherwise names inside an SVG are random
            figure.savefig(to, dpi=dpi, metadata=undated.get(ending))

    write_atomically(path, write)


def style(axes: Axes) -> None:
    """A light grid and only the two spines that carry numbers."""
    axes.grid(color="0.9", linewidth=0.6)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)
