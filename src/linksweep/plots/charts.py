"""Curves of anything over anything, errors on a logarithmic axis, bars, and tables of numbers as colours."""

from __future__ import annotations

import math
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
    log: str = "",
) -> Figure:
    """Each of `curves` (samples,) over x (samples,), with a legend beside them. log: "x", "y" or "xy"."""
    x = numbers("x", x)
    figure = new_figure(7.5, 4.2)
    axes = figure.subplots()
    for index, (label, curve) in enumerate(_of_length(curves, len(x)).items()):
        marker = {"marker": _MARKERS[index % len(_MARKERS)], "markersize": 4.5} if markers else {}
        axes.plot(x, curve, label=label, **line_style(index), **marker)
    for name in log:
        getattr(axes, f"set_{name}scale")("log")
    if "x" not in log and np.array_equal(x, np.rint(x)):
        axes.locator_params(axis="x", integer=True)  # counts have no halves
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


def heat(
    values: ArrayLike,
    *,
    x: Sequence[str] | ArrayLike = (),
    y: Sequence[str] | ArrayLike = (),
    title: str = "",
    x_label: str = "",
    y_label: str = "",
    label: str = "",
) -> Figure:
    """Numbers (rows, columns) as colours; what is not finite stays white.

    x, y: where the columns and rows are, the first row lowest; or names of them, the first row highest, and then each
    number is written into its cell. label: what the colours mean. Numbers of both signs are white at zero.
    """
    table = numbers("values", values)
    if table.ndim != 2 or (len(table), len(table[0])) != (len(np.asarray(y)), len(np.asarray(x))):
        raise ArgumentError(
            f"heat got values of shape {table.shape}, expected one row for each y and a column for each x."
        )
    named = np.asarray(x).dtype.kind in "US"
    largest = float(np.nanmax(np.abs(table), initial=0.0))
    signed = bool(np.nanmin(table, initial=0.0) < 0.0)
    lowest, highest = (-largest, largest) if signed else (None, None)
    palette = "RdBu_r" if signed else "viridis"
    shape = 1.0 if named else np.ptp(numbers("x", x)) / max(np.ptp(numbers("y", y)), 1e-300)
    figure = new_figure(min(max(4.2 * shape + 2.2, 4.0), 9.0), 4.9)
    axes = figure.subplots()
    if named:
        decimals = max(0, 2 - math.floor(math.log10(largest))) if largest else 0
        shown = axes.imshow(table, cmap=palette, vmin=lowest, vmax=highest)
        axes.set_xticks(range(len(table[0])), list(np.asarray(x)))
        axes.set_yticks(range(len(table)), list(np.asarray(y)))
        for row, column in np.ndindex(*table.shape):
            dark = abs(table[row, column]) > 0.6 * largest if signed else table[row, column] < 0.6 * largest
            axes.text(column, row, f"{table[row, column]:z.{decimals}f}", ha="center", va="center", fontsize="small",
                      color="white" if dark else "black")  # fmt: skip
    else:
        shown = axes.pcolormesh(
            numbers("x", x), numbers("y", y), table, shading="nearest", cmap=palette, vmin=lowest, vmax=highest
        )
        axes.set_aspect("equal")
    figure.colorbar(shown, ax=axes, label=label)
    axes.set(title=title, xlabel=x_label, ylabel=y_label)
    return figure


def _of_length(curves: Mapping[str, ArrayLike], count: int) -> dict[str, np.ndarray]:
    arrays = {label: numbers(label, curve) for label, curve in curves.items()}
    for label, curve in arrays.items():
        if curve.shape != (count,):
            raise ArgumentError(f"a plot got a curve {label!r} of shape {curve.shape}, expected ({count},).")
    return arrays
