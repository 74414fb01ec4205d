"""Curves of anything over anything, errors on a logarithmic axis, and bars."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from linksweep.errors import ArgumentError
from linksweep.plots.figures import COLORS, GREY, line_style, new_figure, numbers, style

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_MARKERS = "os^Dv*PX"


def lines(
    x: ArrayLike,
    curves: Mapping[str, ArrayLike],
    *,
    title: str = "",
    x_label: str = "",
    y_label: str = "",
    markers: bool = False,
) -> Figure:
    """Each of `curves` (samples,) over x (samples,), with a legend beside them."""
    x = numbers("x", x)
    figure = new_figure(7.5, 4.2)
    axes = figure.subplots()
    for index, (label, curve) in enumerate(_of_length(curves, len(x)).items()):
        marker = {"marker": _MARKERS[index % len(_MARKERS)], "markersize": 4.5} if markers else {}
        axes.plot(x, curve, label=label, **line_style(index), **marker)
    axes.set(title=title, xlabel=x_label, ylabel=y_label)
    axes.margins(x=0.02)
    style(axes)
    if len(curves) > 1:
        axes.legend(frameon=False, handlelength=3.2)
    return figure


def errors(
    t: ArrayLike, curves: Mapping[str, ArrayLike], *, title: str = "", y_label: str = "error", bar: float | None = None
) -> Figure:
    """Sizes of errors (samples,) over time, on a logarithmic axis; `bar` is what they must stay below.

    Errors of exactly zero have no place there: they are left out.
    """
    t = numbers("t", t)
    figure = new_figure(8.0, 4.2)
    axes = figure.subplots()
    for index, (label, curve) in enumerate(_of_length(curves, len(t)).items()):
        sizes = np.abs(curve)
        axes.plot(t, np.where(sizes > 0.0, sizes, np.nan), label=label, **{**line_style(index), "linewidth": 1.0})
    if bar is not None:
        axes.axhline(bar, color=GREY, linewidth=1.6)
        axes.annotate(f"bar {bar:.0e}", (0.01, bar), (0, 3), xycoords=("axes fraction", "data"),
                      textcoords="offset points", color=GREY, fontsize="small")  # fmt: skip
    axes.set_yscale("log")
    axes.set(title=title, xlabel="time (s)", ylabel=y_label)
    axes.margins(x=0.0)
    style(axes)
    axes.legend(loc="upper left", bbox_to_anchor=(1.01, 1.0), frameon=False, fontsize="small", handlelength=3.2)
    return figure


def bars(values: Mapping[str, float], *, title: str = "", x_label: str = "", groups: Sequence[str] = ()) -> Figure:
    """Positive numbers as bars on a logarithmic axis; `groups` says for each which bars it looks like."""
    numbers = list(values.values())
    if not numbers or min(numbers) <= 0.0:
        raise ArgumentError("bars got no numbers, or one that is not positive, which a logarithmic axis cannot show.")
    kinds = list(dict.fromkeys(groups))
    figure = new_figure(8.0, 0.3 * len(numbers) + 1.3)
    axes = figure.subplots()
    axes.set_xscale("log")
    hatches = ("", "///", "...", "xxx")
    for k, value in enumerate(numbers):
        kind = kinds.index(groups[k]) if groups else 0
        axes.barh(k, value, color=(COLORS[2], "white", COLORS[5], COLORS[6])[kind % 4], edgecolor="black",
                  hatch=hatches[kind % 4], height=0.7)  # fmt: skip
        axes.annotate(f"{value:,.3g}" if value < 1000 else f"{float(f'{value:.3g}'):,.0f}", (value, k), (4, 0),
                      textcoords="offset points", va="center", fontsize="small")  # fmt: skip
    axes.set_yticks(range(len(numbers)), list(values))
    axes.invert_yaxis()
    axes.set_xlim(min(numbers) / 3, max(numbers) * 12)
    axes.set(title=title, xlabel=x_label)
    style(axes)
    axes.grid(visible=False, axis="y")
    return figure


def _of_length(curves: Mapping[str, ArrayLike], count: int) -> dict[str, np.ndarray]:
    arrays = {label: numbers(label, curve) for label, curve in curves.items()}
    for label, curve in arrays.items():
        if curve.shape != (count,):
            raise ArgumentError(f"a plot got a curve {label!r} of shape {curve.shape}, expected ({count},).")
    return arrays
