"""General charts: curves, errors on a logarithmic axis, bars, confidence intervals, tables as colours."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from linksweep.errors import ArgumentError
from linksweep.plots.figures import (
    COLORS,
    ESTIMATE,
    GREY,
    MODEL,
    as_floats,
    curves_of_length,
    legend_below,
    line_style,
    new_figure,
    style,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from matplotlib.ticker import FixedLocator

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
    """Plot each of `curves` (samples,) over x (samples,), with a legend. log: logarithmic axes, "x", "y" or "xy"."""
    x = as_floats("x", x)
    figure = new_figure(7.5, 4.2)
    axes = figure.subplots()
    for index, (label, curve) in enumerate(curves_of_length(curves, len(x)).items()):
        marker = {"marker": _MARKERS[index % len(_MARKERS)], "markersize": 4.5} if markers else {}
        axes.plot(x, curve, label=label, **line_style(index, label), **marker)
    for name in log:
        getattr(axes, f"set_{name}scale")("log")
    if "x" not in log and np.array_equal(x, np.rint(x)):
        axes.locator_params(axis="x", integer=True)  # ticks at integers only
    axes.set(title=title, xlabel=x_label, ylabel=y_label)
    axes.margins(x=0.02)
    style(axes)
    if len(curves) > 1:
        axes.legend(frameon=False, handlelength=3.2)
    return figure


def errors(
    t: ArrayLike, curves: Mapping[str, ArrayLike], *, title: str = "", y_label: str = "error", bar: float | None = None
) -> Figure:
    """Plot the sizes of errors (samples,) over time on a logarithmic axis; `bar` draws their upper bound.

    Errors of exactly zero cannot be shown on a logarithmic axis and are omitted.
    """
    t = as_floats("t", t)
    figure = new_figure(8.0, 4.2)
    axes = figure.subplots()
    for index, (label, curve) in enumerate(curves_of_length(curves, len(t)).items()):
        sizes = np.abs(curve)
        style_of_curve = {**line_style(index, label), "linewidth": 1.0}
        axes.plot(t, np.where(sizes > 0.0, sizes, np.nan), label=label, **style_of_curve)
    if bar is not None:
        axes.axhline(bar, color=GREY, linewidth=1.6)
        axes.annotate(f"bound {bar:.0e}", (0.01, bar), (0, 3), xycoords=("axes fraction", "data"),
                      textcoords="offset points", color=GREY, fontsize="small")  # fmt: skip
    axes.set_yscale("log")
    axes.set(title=title, xlabel="time (s)", ylabel=y_label)
    axes.margins(x=0.0)
    style(axes)
    axes.legend(loc="upper left", bbox_to_anchor=(1.01, 1.0), frameon=False, fontsize="small", handlelength=3.2)
    return figure


def bars(values: Mapping[str, float], *, title: str = "", x_label: str = "", groups: Sequence[str] = ()) -> Figure:
    """Plot positive numbers as bars on a logarithmic axis; bars of one group, named per bar, share their pattern."""
    sizes = list(values.values())
    if not sizes or min(sizes) <= 0.0:
        raise ArgumentError("bars got no numbers, or one that is not positive, which a logarithmic axis cannot show.")
    kinds = list(dict.fromkeys(groups))
    figure = new_figure(8.0, 0.3 * len(sizes) + 1.3)
    axes = figure.subplots()
    axes.set_xscale("log")
    hatches = ("", "///", "...", "xxx")
    for k, value in enumerate(sizes):
        kind = kinds.index(groups[k]) if groups else 0
        axes.barh(k, value, color=(COLORS[2], "white", COLORS[5], COLORS[6])[kind % 4], edgecolor="black",
                  hatch=hatches[kind % 4], height=0.7)  # fmt: skip
        axes.annotate(f"{value:,.3g}" if value < 1000 else f"{float(f'{value:.3g}'):,.0f}", (value, k), (4, 0),
                      textcoords="offset points", va="center", fontsize="small")  # fmt: skip
    axes.set_yticks(range(len(sizes)), list(values))
    axes.invert_yaxis()
    axes.set_xlim(min(sizes) / 3, max(sizes) * 12)
    axes.set(title=title, xlabel=x_label)
    style(axes)
    axes.grid(visible=False, axis="y")
    return figure


def intervals(
    names: Sequence[str], values: ArrayLike, halves: ArrayLike, described: ArrayLike | None = None, *, title: str = "",
    x_label: str = "", logarithmic: bool = True,
) -> Figure:  # fmt: skip
    """Plot parameters as dots with confidence intervals of `halves` on either side.

    described: values of the robot model, as rings. A parameter with an infinite half is not identifiable: a grey cross
    without an interval. The axis is linear near 0 and logarithmic beyond, or linear with logarithmic=False.
    """
    values, halves = (np.asarray(x, dtype=float) for x in (values, halves))
    columns = -(-len(names) // 40)
    rows = -(-len(names) // columns)
    figure = new_figure(4.6 * columns + 1.2, 0.19 * rows + 1.5)
    figure.suptitle(title)
    sizes = np.abs(np.concatenate([values, halves[np.isfinite(halves)]]))
    linear = max(float(np.quantile(sizes[sizes > 0.0], 0.1)) if (sizes > 0.0).any() else 1.0, 1e-9)
    identified = np.isfinite(halves)
    for k, axes in enumerate(np.atleast_1d(figure.subplots(1, columns, squeeze=False)[0])):
        indices = np.arange(k * rows, min((k + 1) * rows, len(names)))
        heights, sure = np.arange(len(indices)), identified[indices]
        axes.axvline(0.0, color="0.75", linewidth=0.8)
        axes.errorbar(values[indices][sure], heights[sure], xerr=halves[indices][sure], fmt="o", color=COLORS[ESTIMATE],
                      markersize=3.5, elinewidth=1.2, capsize=2.0, label="estimated, 95 % interval")  # fmt: skip
        if not identified.all():
            axes.plot(values[indices][~sure], heights[~sure], "x", color=GREY, markersize=5, label="not identifiable")
        if described is not None:
            axes.plot(np.asarray(described)[indices], heights, "o", markerfacecolor="none", markersize=6.5,
                      markeredgecolor=COLORS[MODEL], label="robot model")  # fmt: skip
        if logarithmic:
            axes.set_xscale("symlog", linthresh=linear)
            axes.xaxis.set_major_locator(_few_decades(linear, max(float(sizes.max(initial=linear)), 10.0 * linear)))
        axes.set_yticks(heights, [names[i] for i in indices.tolist()], fontsize="x-small")
        axes.set_ylim(len(indices) - 0.4, -0.6)
        axes.set_xlabel(x_label)
        style(axes)
    legend_below(figure, figure.axes[:1])
    return figure


def _few_decades(smallest: float, largest: float) -> FixedLocator:
    """Return ticks at 0 and at some powers of ten on both sides: all of them would overlap."""
    from matplotlib.ticker import FixedLocator

    first, last = int(np.ceil(np.log10(smallest))), int(np.ceil(np.log10(largest)))
    step = max(1, -(-(last - first) // 3))
    powers = 10.0 ** np.arange(first, last + 1, step)
    return FixedLocator([*(-powers[::-1]), 0.0, *powers])


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
    """Plot a table (rows, columns) as colours; entries that are not finite stay white.

    x, y: positions of columns and rows, the first row lowest; or their names, the first row highest, and then each
    number is written into its cell. label: the quantity of the colours. Tables with both signs are white at zero.
    """
    table = as_floats("values", values)
    if table.ndim != 2 or (len(table), len(table[0])) != (len(np.asarray(y)), len(np.asarray(x))):
        raise ArgumentError(
            f"heat got values of shape {table.shape}, expected one row for each y and a column for each x."
        )
    named = np.asarray(x).dtype.kind in "US"
    largest = float(np.nanmax(np.abs(table), initial=0.0))
    signed = bool(np.nanmin(table, initial=0.0) < 0.0)
    lowest, highest = (-largest, largest) if signed else (None, None)
    palette = "RdBu_r" if signed else "viridis"
    shape = 1.0 if named else np.ptp(as_floats("x", x)) / max(np.ptp(as_floats("y", y)), 1e-300)
    figure = new_figure(min(max(4.2 * shape + 2.2, 4.0), 9.0), 4.9)
    axes = figure.subplots()
    if named:
        decimals = max(0, 2 - math.floor(math.log10(largest))) if largest else 0
        image = axes.imshow(table, cmap=palette, vmin=lowest, vmax=highest)
        axes.set_xticks(range(len(table[0])), list(np.asarray(x)))
        axes.set_yticks(range(len(table)), list(np.asarray(y)))
        for row, column in np.ndindex(*table.shape):
            dark = abs(table[row, column]) > 0.6 * largest if signed else table[row, column] < 0.6 * largest
            axes.text(column, row, f"{table[row, column]:z.{decimals}f}", ha="center", va="center", fontsize="small",
                      color="white" if dark else "black")  # fmt: skip
    else:
        image = axes.pcolormesh(
            as_floats("x", x), as_floats("y", y), table, shading="nearest", cmap=palette, vmin=lowest, vmax=highest
        )
        axes.set_aspect("equal")
    figure.colorbar(image, ax=axes, label=label)
    axes.set(title=title, xlabel=x_label, ylabel=y_label)
    return figure
