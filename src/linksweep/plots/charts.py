"""Charts: curves, errors on a logarithmic axis, bars, confidence intervals, matrices, and signals over time."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from linksweep.errors import ArgumentError
from linksweep.plots.figures import (
    COLORS,
    ESTIMATE,
    GREY,
    MODEL,
    TITLES,
    Channel,
    as_floats,
    channels,
    curves_of_length,
    legend_below,
    line_style,
    new_figure,
    panel_axes,
    panel_grid,
    plain,
    style,
)
from linksweep.support.checks import Named, checked_flag

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.ticker import FixedLocator

    from linksweep.robot.robot import Robot

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


# ---- signals over time: one panel per joint, or overlaid; torques with residuals; spectra; phase portraits --------

LONGEST_REMARK = 40  # characters: a longer one leaves no room for the panel
PEAKS = ("torque", "force", "velocity", "acceleration")  # quantities whose largest size matters for a drive
ROUNDING = 1e-12  # relative to the largest value of the same unit in the figure


def time_series(
    robot: Robot, t: ArrayLike, values: Named, quantity: str = "tau", *, overlay: bool = False, limits: bool = True,
    title: str | None = None,
) -> Figure:  # fmt: skip
    """Plot q, qd, qdd or tau of a robot, (samples, components), over times t (samples,).

    values: an array, or {label: array} to compare several. By default each joint has a panel with its limits shaded;
    with overlay=True all joints of one unit share a panel.
    """
    signals = channels(robot, quantity)
    if not checked_flag("time_series: limits", limits):
        signals = tuple(replace(channel, low=-math.inf, high=math.inf) for channel in signals)
    heading = f"{plain(robot.name)}: {TITLES[quantity]}" if title is None else title
    if not checked_flag("time_series: overlay", overlay):
        return panels(signals, t, values, heading)
    if isinstance(values, Mapping):
        raise ArgumentError("time_series: overlay=True takes one array, got several by name: plot them one by one.")
    return overlaid(signals, t, values, heading)


def panels(wanted: Sequence[Channel], t: ArrayLike, values: Named, title: str = "") -> Figure:
    """Plot one panel per channel over the same times; several curves, {label: (samples, channels)}, share each panel.

    A panel reports the peak of a single torque, force, velocity or acceleration, limits that are out of view, and
    curves that coincide.
    """
    t, curves = _checked(wanted, t, values)
    columns, rows = panel_grid(len(wanted))
    figure = new_figure(3.5 * columns + 0.3, 2.25 * rows + 0.6)
    figure.suptitle(title)
    largest = _largest(wanted, curves)
    for k, axes in enumerate(panel_axes(figure, len(wanted), "time (s)")):
        channel, drawn = wanted[k], [curve[:, k] for curve in curves.values()]
        for index, (label, curve) in enumerate(zip(curves, drawn, strict=True)):
            axes.plot(t, curve, label=label, **line_style(index, label))
        floor = ROUNDING * largest[channel.unit]
        remarks = [
            _mark_peak(axes, channel, t, drawn, floor),
            _shade_limits(axes, channel, drawn, floor),
            coincident(list(curves), drawn, floor),
        ]
        _heading(axes, channel, ", ".join(filter(None, remarks)))
        _scale_time(axes, t)
        axes.set_ylabel(channel.label)
    if len(curves) > 1:
        legend_below(figure, figure.axes[:1], 2 * columns)
    return figure


def overlaid(wanted: Sequence[Channel], t: ArrayLike, values: Named, title: str = "") -> Figure:
    """Plot all channels (samples, channels) of one unit in one panel, panels of different units above each other."""
    t, curves = _checked(wanted, t, values)
    (curve,) = curves.values()
    units = list(dict.fromkeys(channel.unit for channel in wanted))
    most = max(sum(channel.unit == unit for channel in wanted) for unit in units)
    figure = new_figure(8.0 + 1.8 * ((most - 1) // 16), max(3.6, 2.8 * len(units)) + 0.5)
    figure.suptitle(title)
    for unit, axes in zip(units, figure.subplots(len(units), 1, squeeze=False, sharex=True).flat, strict=True):
        members = [k for k, channel in enumerate(wanted) if channel.unit == unit]
        for k in members:
            axes.plot(t, curve[:, k], label=plain(wanted[k].name), **line_style(k))
        labels = {wanted[k].label for k in members}
        axes.set_ylabel(labels.pop() if len(labels) == 1 else unit)
        axes.set_xlim(t[0], t[-1] if len(t) > 1 else None)
        names, drawn = [plain(wanted[k].name) for k in members], [curve[:, k] for k in members]
        axes.set_title(coincident(names, drawn, 0.0), loc="left", fontsize="small", color=GREY)
        axes.tick_params(labelbottom=True)
        style(axes)
        axes.legend(
            loc="upper left", bbox_to_anchor=(1.01, 1.0), frameon=False, ncols=-(-len(members) // 16),
            fontsize="small", handlelength=3.2, borderaxespad=0.0,
        )  # fmt: skip
        axes.set_xlabel("time (s)" if unit == units[-1] else "")
    return figure


def phase(robot: Robot, q: ArrayLike, qd: ArrayLike, *, title: str | None = None) -> Figure:
    """Plot velocity against position, a panel for each 1-DOF joint; a ring marks the start, a dot the end."""
    position, velocity = channels(robot, "q"), channels(robot, "qd")
    columns = {channel.name: k for k, channel in enumerate(velocity)}
    pairs = [(k, columns[each.name]) for k, each in enumerate(position) if each.name in columns and each.unit]
    q, qd = as_floats("q", q), as_floats("qd", qd)
    for name, array, signals in (("q", q, position), ("qd", qd, velocity)):
        if array.ndim != 2 or array.shape[1] != len(signals) or len(array) != len(q):
            raise ArgumentError(f"phase got {name} of shape {array.shape}, expected ({len(q)}, {len(signals)}).")
    columns, rows = panel_grid(len(pairs))
    figure = new_figure(3.1 * columns + 0.3, 2.7 * rows + 0.6)
    figure.suptitle(f"{plain(robot.name)}: velocity against position" if title is None else title)
    for (a, b), axes in zip(pairs, panel_axes(figure, len(pairs), share=False), strict=True):
        axes.plot(q[:, a], qd[:, b], color="black", linewidth=1.3)
        axes.plot(q[0, a], qd[0, b], "o", markerfacecolor="white", markeredgecolor="black", markersize=6)
        axes.plot(q[-1, a], qd[-1, b], "o", color="black", markersize=4)
        axes.set_title(plain(position[a].name), fontsize="medium")
        axes.set(xlabel=position[a].label, ylabel=velocity[b].label)
    return figure


def torque_figure(title: str, names: Sequence[str], units: Sequence[str], t: ArrayLike, tau: Named) -> Figure:
    """Plot tau (samples, n) over t (samples,), one panel per joint, with its peak marked."""
    return panels([Channel(name, unit) for name, unit in zip(names, units, strict=True)], t, tau, title)


def fitted_torques(robot: Robot, t: ArrayLike, measured: ArrayLike, predicted: ArrayLike, title: str = "") -> Figure:
    """Plot measured and predicted torques (samples, nv) of each joint, and the residual in a panel below them.

    NaN breaks the curves.
    """
    signals = channels(robot, "tau")
    t, curves = _checked(signals, t, {"measured": measured, "predicted": predicted})
    residual = curves["measured"] - curves["predicted"]
    columns, rows = panel_grid(len(signals))
    figure = new_figure(3.5 * columns + 0.3, 3.0 * rows + 0.6)
    figure.suptitle(title)
    grid = figure.subplots(2 * rows, columns, squeeze=False, sharex=True, height_ratios=(2.2, 1.0) * rows)
    for index in range(rows * columns):
        row, column = divmod(index, columns)
        above, below = grid[2 * row, column], grid[2 * row + 1, column]
        if index >= len(signals):
            above.remove()
            below.remove()
            continue
        channel, joint = signals[index], residual[:, index]
        for label, curve in curves.items():
            width = 0.9 if label == "measured" else 1.6
            above.plot(t, curve[:, index], label=label, **{**line_style(0, label), "linewidth": width})
        below.plot(t, joint, label="residual", **{**line_style(0, "residual"), "linestyle": "-", "linewidth": 0.9})
        below.axhline(0.0, color="0.75", linewidth=0.8, zorder=1)
        finite = joint[np.isfinite(joint)]
        rms = f"residual {np.sqrt(np.mean(finite**2)):.3g} {channel.unit} RMS" if finite.size else ""
        _heading(above, channel, rms)
        for axes, label in ((above, channel.label), (below, f"residual ({channel.unit})")):
            style(axes)
            _scale_time(axes, t)
            axes.set_ylabel(label)
        if index >= len(signals) - columns:
            below.set_xlabel("time (s)")
            below.tick_params(labelbottom=True)
    legend_below(figure, [grid[0, 0], grid[1, 0]])
    return figure


def spectra(
    robot: Robot,
    frequencies: ArrayLike,
    curves: Mapping[str, ArrayLike],
    *,
    title: str = "",
    cutoff: float | None = None,
) -> Figure:
    """Plot amplitude spectral densities (frequencies, nv) on logarithmic axes, a panel for each joint.

    cutoff: the cut-off frequency (Hz) of the low-pass filter, drawn as a dotted line.
    """
    signals = channels(robot, "tau")
    columns, rows = panel_grid(len(signals))
    figure = new_figure(3.5 * columns + 0.3, 2.25 * rows + 0.6)
    figure.suptitle(title)
    for k, axes in enumerate(panel_axes(figure, len(signals), "frequency (Hz)")):
        for index, (label, curve) in enumerate(curves.items()):
            density = np.asarray(curve)[:, k]
            axes.plot(frequencies, np.where(density > 0.0, density, np.nan), label=label, **line_style(index, label))
        if cutoff is not None:
            axes.axvline(cutoff, color=GREY, linewidth=1.2, linestyle=":", label="cut-off")
        axes.set(xscale="log", yscale="log")
        axes.set_title(plain(signals[k].name), loc="left", fontsize="medium")
        axes.set_ylabel(f"{signals[k].quantity} ({signals[k].unit}/√Hz)")
        axes.margins(x=0.0)
    legend_below(figure, figure.axes[:1])
    return figure


def coincident(labels: Sequence[str], curves: Sequence[np.ndarray], floor: float) -> str:
    """Report which curves coincide, so that only one is visible: within 1e-3 of the span of the panel."""
    finite = np.concatenate([curve[np.isfinite(curve)] for curve in curves])
    tolerance = max(1e-3 * float(np.ptp(finite)), floor) if finite.size else 0.0
    groups: list[list[int]] = []
    for k, curve in enumerate(curves):
        for group in groups:
            first = curves[group[0]]
            same_gaps = np.array_equal(np.isnan(curve), np.isnan(first))
            if same_gaps and (np.nan_to_num(np.abs(curve - first)) <= tolerance).all():
                group.append(k)
                break
        else:
            groups.append([k])
    repeated = [group for group in groups if len(group) > 1]
    if repeated and len(repeated[0]) == len(curves):
        return "both coincide" if len(curves) == 2 else "all coincide"
    by_name = ", ".join(" and ".join(labels[k] for k in group) + " coincide" for group in repeated)
    by_count = ", ".join(f"{len(group)} of {len(curves)} coincide" for group in repeated)
    return by_name if len(by_name) <= LONGEST_REMARK else by_count


def _checked(signals: Sequence[Channel], t: ArrayLike, values: Named) -> tuple[np.ndarray, dict[str, np.ndarray]]:
    t = as_floats("t", t)
    by_label = values if isinstance(values, Mapping) else {"": values}
    curves = {str(label): as_floats(str(label) or "the values", value) for label, value in by_label.items()}
    if t.ndim != 1 or not len(t):
        raise ArgumentError(f"a plot got times of shape {t.shape}, expected (samples,) with at least one sample.")
    if not curves or not signals:
        raise ArgumentError("a plot got no curves, expected at least one array (samples, joints).")
    for label, curve in curves.items():
        if curve.shape != (len(t), len(signals)):
            which = f" {label!r}" if label else ""
            raise ArgumentError(
                f"a plot got an array{which} of shape {curve.shape}, expected ({len(t)}, {len(signals)}): a row for "
                f"each time, a column for each of {signals[0].name} ... {signals[-1].name}."
            )
    return t, curves


def _scale_time(axes: Axes, t: np.ndarray) -> None:
    axes.set_xlim(t[0], t[-1] if len(t) > 1 else None)
    # numbers in full: a common factor above the axis would collide with the heading
    axes.yaxis.set_major_formatter(lambda value, position: f"{value:.6g}".replace("-", "−"))


def _heading(axes: Axes, channel: Channel, remarks: str) -> None:
    """Write the channel's name above the panel, and remarks in grey below it."""
    axes.set_title(plain(channel.name), loc="left", fontsize="medium", pad=16 if remarks else 4)
    axes.annotate(
        remarks.replace("-", "−"), (0, 1), (0, 3), xycoords="axes fraction", textcoords="offset points",
        fontsize="small", color=GREY,
    )  # fmt: skip


def _mark_peak(axes: Axes, channel: Channel, t: np.ndarray, curves: list[np.ndarray], floor: float) -> str:
    """Mark the largest size of a single curve with a dot and return it as text, for quantities in PEAKS."""
    if len(curves) != 1 or not channel.label.startswith(PEAKS) or not np.isfinite(curves[0]).any():
        return ""
    peak = np.nanargmax(np.abs(curves[0]))
    value = float(curves[0][peak])
    if abs(value) <= floor:  # rounding errors have no peak
        return f"0 {channel.unit}".rstrip()
    axes.plot(t[peak], value, "o", color="black", markersize=4, clip_on=False)
    digits = f"{value:.3g}" if abs(value) < 1000.0 else f"{value:.4g}"
    return f"peak {digits} {channel.unit}".rstrip() + f" at {t[peak]:.2f} s"


def _largest(signals: Sequence[Channel], curves: Mapping[str, np.ndarray]) -> dict[str, float]:
    """Return the largest size for each unit: values below ROUNDING times it do not fill a panel."""
    largest: dict[str, float] = {}
    for k, channel in enumerate(signals):
        for curve in curves.values():
            sizes = np.abs(curve[np.isfinite(curve[:, k]), k])
            largest[channel.unit] = max(largest.get(channel.unit, 0.0), float(sizes.max(initial=0.0)))
    return largest


def _shade_limits(axes: Axes, channel: Channel, curves: list[np.ndarray], floor: float) -> str:
    """Shade the region beyond the limits if the curves come near them; otherwise return the limits as text."""
    finite = np.concatenate([curve[np.isfinite(curve)] for curve in curves])
    if not finite.size:
        return ""
    low, high = float(finite.min()), float(finite.max())
    if max(abs(low), abs(high)) <= floor:
        low, high = -1.0, 1.0
    span = high - low if high - low > floor else max(abs(high), 1.0)
    near_low, near_high = channel.low > low - 0.8 * span, channel.high < high + 0.8 * span
    bottom = min(low, channel.low if near_low else math.inf) - 0.08 * span
    top = max(high, channel.high if near_high else -math.inf) + 0.08 * span
    if bottom < 0.0 < top:
        axes.axhline(0.0, color="0.75", linewidth=0.8, zorder=1)
    axes.set_ylim(bottom, top)
    hatched = {"facecolor": "0.9", "edgecolor": "0.65", "hatch": "///", "linewidth": 0.0, "zorder": 0.5}
    if near_low:
        axes.axhspan(bottom, channel.low, **hatched)
    if near_high:
        axes.axhspan(channel.high, top, **hatched)
    unseen = [x for x, near in ((channel.low, near_low), (channel.high, near_high)) if not near and math.isfinite(x)]
    if len(unseen) == 2 and unseen[0] == -unseen[1]:
        return f"limits ±{unseen[1]:.4g}"
    return f"limit{'s' * (len(unseen) - 1)} " + " and ".join(f"{x:.4g}" for x in unseen) if unseen else ""
