"""Plots of a fit: torques and what is left of them, spectra of what is left, numbers with their intervals."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from linksweep.plots.channels import channels
from linksweep.plots.figures import COLORS, GREY, line_style, new_figure, style
from linksweep.plots.series import grid_of, panels

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from matplotlib.ticker import FixedLocator

    from linksweep.robot.robot import Robot


def fitted_torques(robot: Robot, t: ArrayLike, measured: ArrayLike, predicted: ArrayLike, title: str = "") -> Figure:
    """Measured and predicted torques (rows, nv), and their difference, a panel for each joint; NaN breaks the
    curves.
    """
    curves = {"measured": measured, "predicted": predicted, "difference": np.asarray(measured) - np.asarray(predicted)}
    return panels(channels(robot, "tau"), t, curves, title)


def spectra(
    robot: Robot,
    frequencies: ArrayLike,
    curves: Mapping[str, ArrayLike],
    *,
    title: str = "",
    cutoff: float | None = None,
) -> Figure:
    """Amplitude densities (frequencies, nv) on logarithmic axes, a panel for each joint; the cut-off as a line."""
    wanted = channels(robot, "tau")
    columns, rows = grid_of(len(wanted))
    figure = new_figure(3.5 * columns + 0.3, 2.25 * rows + 0.6)
    figure.suptitle(title)
    places = list(figure.subplots(rows, columns, squeeze=False, sharex=True).flat)
    for k, (channel, axes) in enumerate(zip(wanted, places, strict=False)):
        for index, (label, curve) in enumerate(curves.items()):
            density = np.asarray(curve)[:, k]
            axes.plot(frequencies, np.where(density > 0.0, density, np.nan), label=label, **line_style(index))
        if cutoff is not None:
            axes.axvline(cutoff, color=GREY, linewidth=1.2, linestyle=":")
        axes.set(xscale="log", yscale="log")
        axes.set_title(channel.name, loc="left", fontsize="medium")
        axes.set_ylabel(f"{channel.unit} / √Hz")
        axes.margins(x=0.0)
        style(axes)
        if k >= len(wanted) - columns:
            axes.set_xlabel("frequency (Hz)")
            axes.tick_params(labelbottom=True)
    for axes in places[len(wanted) :]:
        axes.remove()
    handles, labels = places[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=len(labels), frameon=False)
    return figure


def intervals(
    names: Sequence[str], values: ArrayLike, halves: ArrayLike, described: ArrayLike | None = None, *, title: str = "",
    x_label: str = "", logarithmic: bool = True,
) -> Figure:  # fmt: skip
    """Numbers as dots with a bar of `halves` on either side, on an axis that is linear near 0 and logarithmic beyond.

    described: other values, as rings. An infinite half is a dot without a bar, in grey: not determined.
    """
    values, halves = (np.asarray(x, dtype=float) for x in (values, halves))
    columns = -(-len(names) // 40)
    rows = -(-len(names) // columns)
    figure = new_figure(4.6 * columns + 1.2, 0.19 * rows + 1.5)
    figure.suptitle(title)
    sizes = np.abs(np.concatenate([values, halves[np.isfinite(halves)]]))
    near = max(float(np.quantile(sizes[sizes > 0.0], 0.1)) if (sizes > 0.0).any() else 1.0, 1e-9)
    known = np.isfinite(halves)
    for k, axes in enumerate(np.atleast_1d(figure.subplots(1, columns, squeeze=False)[0])):
        own = np.arange(k * rows, min((k + 1) * rows, len(names)))
        places = np.arange(len(own))
        axes.axvline(0.0, color="0.75", linewidth=0.8)
        sure = known[own]
        axes.errorbar(values[own][sure], places[sure], xerr=halves[own][sure], fmt="o", color=COLORS[2], markersize=3.5,
                      elinewidth=1.2, capsize=2.0, label="found, 95 %")  # fmt: skip
        if not known.all():
            axes.plot(values[own][~sure], places[~sure], "x", color=GREY, markersize=5, label="not determined")
        if described is not None:
            axes.plot(np.asarray(described)[own], places, "o", markerfacecolor="none", markeredgecolor=COLORS[1],
                      markersize=6.5, label="description")  # fmt: skip
        if logarithmic:
            axes.set_xscale("symlog", linthresh=near)
            axes.xaxis.set_major_locator(_few_decades(near, max(float(sizes.max(initial=near)), 10.0 * near)))
        axes.set_yticks(places, [names[i] for i in own.tolist()], fontsize="x-small")
        axes.set_ylim(len(own) - 0.4, -0.6)
        axes.set_xlabel(x_label)
        style(axes)
    handles, labels = figure.axes[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=len(labels), frameon=False)
    return figure


def _few_decades(near: float, far: float) -> FixedLocator:
    """Ticks at 0 and at some powers of ten on both sides: all of them would overlap."""
    from matplotlib.ticker import FixedLocator

    first, last = int(np.ceil(np.log10(near))), int(np.ceil(np.log10(far)))
    step = max(1, -(-(last - first) // 3))
    powers = 10.0 ** np.arange(first, last + 1, step)
    return FixedLocator([*(-powers[::-1]), 0.0, *powers])
