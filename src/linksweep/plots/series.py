"""Time series: one panel per joint, or overlaid; and phase portraits."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from linksweep.errors import ArgumentError
from linksweep.plots.channels import QUANTITIES, TITLES, Channel, channels
from linksweep.plots.figures import GREY, line_style, new_figure, numbers, plain, style
from linksweep.support.numbers import Named, checked_flag

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from linksweep.robot.robot import Robot

LONGEST = 40  # characters of a remark: a longer one would leave no room for the panel


def time_series(
    robot: Robot, t: ArrayLike, values: Named, quantity: str = "tau", *, overlay: bool = False, limits: bool = True,
    title: str | None = None,
) -> Figure:  # fmt: skip
    """What `robot` does over the times t (samples,): q, qd, qdd or tau, each (samples, joints).

    values: an array, or {label: array} to compare several. One panel per joint with the joint's limits shaded, or all
    joints in one panel for each unit with overlay=True.
    """
    wanted = channels(robot, quantity)
    if not checked_flag("time_series: limits", limits):
        wanted = tuple(replace(channel, low=-math.inf, high=math.inf) for channel in wanted)
    heading = f"{plain(robot.name)}: {TITLES[quantity]}" if title is None else title
    if not checked_flag("time_series: overlay", overlay):
        return panels(wanted, t, values, heading)
    if isinstance(values, Mapping):
        raise ArgumentError("time_series: overlay=True takes one array, got several by name: plot them one by one.")
    return overlaid(wanted, t, values, heading)


def panels(wanted: Sequence[Channel], t: ArrayLike, values: Named, title: str = "") -> Figure:
    """One panel per channel over the same times; several curves, {label: (samples, channels)}, share each panel."""
    t, curves = _checked(wanted, t, values)
    columns, rows = grid_of(len(wanted))
    figure = new_figure(3.5 * columns + 0.3, 2.25 * rows + 0.6)
    figure.suptitle(title)
    places = list(figure.subplots(rows, columns, squeeze=False, sharex=True).flat)
    largest = _largest(wanted, curves)
    for k, (channel, axes) in enumerate(zip(wanted, places, strict=False)):
        own = [curve[:, k] for curve in curves.values()]
        for index, (label, curve) in enumerate(zip(curves, own, strict=True)):
            axes.plot(t, curve, label=label, **line_style(index))
        floor = 1e-12 * largest[channel.unit]
        facts = [_shade_limits(axes, channel, own, floor), coincident(list(curves), own, floor)]
        _heading(axes, channel, t, own, ", ".join(fact for fact in facts if fact), floor)
        axes.set_xlim(t[0], t[-1] if len(t) > 1 else None)
        axes.set_ylabel(_axis_label(channel.quantity, channel.unit))
        # every number whole: a common factor above the axis would meet the heading
        axes.yaxis.set_major_formatter(lambda value, place: f"{value:.6g}".replace("-", "−"))
        style(axes)
    last = len(wanted) - columns  # the lowest panel of each column
    for k, axes in enumerate(places[: len(wanted)]):
        if k >= last:
            axes.set_xlabel("time (s)")
            axes.tick_params(labelbottom=True)
    for axes in places[len(wanted) :]:
        axes.remove()
    if len(curves) > 1:
        handles, labels = places[0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside lower center", ncols=min(len(labels), 2 * columns), frameon=False)
    return figure


def overlaid(wanted: Sequence[Channel], t: ArrayLike, values: Named, title: str = "") -> Figure:
    """All channels (samples, channels) of one unit in one panel, panels of different units above each other."""
    t, curves = _checked(wanted, t, values)
    (curve,) = curves.values()
    units = list(dict.fromkeys(channel.unit for channel in wanted))
    most = max(sum(channel.unit == unit for channel in wanted) for unit in units)
    figure = new_figure(8.0 + 1.8 * ((most - 1) // 16), max(3.6, 2.8 * len(units)) + 0.5)
    figure.suptitle(title)
    for unit, axes in zip(units, figure.subplots(len(units), 1, squeeze=False, sharex=True).flat, strict=True):
        own = [k for k, channel in enumerate(wanted) if channel.unit == unit]
        for k in own:
            axes.plot(t, curve[:, k], label=plain(wanted[k].name), **line_style(k))
        quantities = {wanted[k].quantity for k in own}
        axes.set_ylabel(_axis_label(quantities.pop() if len(quantities) == 1 else "", unit))
        axes.set_xlim(t[0], t[-1] if len(t) > 1 else None)
        names, drawn = [plain(wanted[k].name) for k in own], [curve[:, k] for k in own]
        axes.set_title(coincident(names, drawn, 0.0), loc="left", fontsize="small", color=GREY)
        axes.tick_params(labelbottom=True)
        style(axes)
        axes.legend(
            loc="upper left", bbox_to_anchor=(1.01, 1.0), frameon=False, ncols=-(-len(own) // 16), fontsize="small",
            handlelength=3.2, borderaxespad=0.0,
        )  # fmt: skip
        axes.set_xlabel("time (s)" if unit == units[-1] else "")
    return figure


def phase(robot: Robot, q: ArrayLike, qd: ArrayLike, *, title: str | None = None) -> Figure:
    """Velocity against position, a panel for each 1-DOF joint; a ring where it starts, a dot where it ends."""
    position, velocity = channels(robot, "q"), channels(robot, "qd")
    names = {channel.name: k for k, channel in enumerate(velocity)}
    pairs = [(k, names[channel.name]) for k, channel in enumerate(position) if channel.name in names and channel.unit]
    q, qd = (numbers(what, x) for what, x in (("q", q), ("qd", qd)))
    for name, array, wanted in (("q", q, position), ("qd", qd, velocity)):
        if array.ndim != 2 or array.shape[1] != len(wanted) or len(array) != len(q):
            raise ArgumentError(f"phase got {name} of shape {array.shape}, expected ({len(q)}, {len(wanted)}).")
    columns, rows = grid_of(len(pairs))
    figure = new_figure(3.1 * columns + 0.3, 2.7 * rows + 0.6)
    figure.suptitle(f"{plain(robot.name)}: velocity against position" if title is None else title)
    places = list(figure.subplots(rows, columns, squeeze=False).flat)
    for (a, b), axes in zip(pairs, places, strict=False):
        axes.plot(q[:, a], qd[:, b], color="black", linewidth=1.3)
        axes.plot(q[0, a], qd[0, b], "o", markerfacecolor="white", markeredgecolor="black", markersize=6)
        axes.plot(q[-1, a], qd[-1, b], "o", color="black", markersize=4)
        axes.set_title(plain(position[a].name), fontsize="medium")
        axes.set_xlabel(_axis_label("position", position[a].unit))
        axes.set_ylabel(_axis_label("velocity", velocity[b].unit))
        style(axes)
    for axes in places[len(pairs) :]:
        axes.remove()
    return figure


def torque_figure(title: str, names: Sequence[str], units: Sequence[str], t: ArrayLike, tau: Named) -> Figure:
    """One panel per joint: tau (samples, n) over t (samples,), its peak marked."""
    wanted = [Channel(name, unit, quantity=QUANTITIES.get(unit, "")) for name, unit in zip(names, units, strict=True)]
    return panels(wanted, t, tau, title)


def _checked(wanted: Sequence[Channel], t: ArrayLike, values: Named) -> tuple[np.ndarray, dict[str, np.ndarray]]:
    t = numbers("t", t)
    named = values if isinstance(values, Mapping) else {"": values}
    curves = {str(label): numbers(str(label) or "the values", value) for label, value in named.items()}
    if t.ndim != 1 or not len(t):
        raise ArgumentError(f"a plot got times of shape {t.shape}, expected (samples,) with at least one sample.")
    if not curves or not wanted:
        raise ArgumentError("a plot got no curves, expected at least one array (samples, joints).")
    for label, curve in curves.items():
        if curve.shape != (len(t), len(wanted)):
            which = f" {label!r}" if label else ""
            raise ArgumentError(
                f"a plot got an array{which} of shape {curve.shape}, expected ({len(t)}, {len(wanted)}): a row for "
                f"each time, a column for each of {wanted[0].name} ... {wanted[-1].name}."
            )
    return t, curves


def grid_of(count: int) -> tuple[int, int]:
    """Columns and rows: up to three columns for an arm, up to six for a humanoid."""
    few = {1: 1, 2: 2, 4: 2}
    columns = few.get(count) or next((c for c, most in ((3, 9), (4, 16), (5, 25)) if count <= most), 6)
    return columns, -(-count // columns)


def coincident(labels: Sequence[str], curves: Sequence[np.ndarray], floor: float) -> str:
    """Which curves lie on each other, so that only one is seen: within 1e-3 of what the panel spans."""
    finite = np.concatenate([curve[np.isfinite(curve)] for curve in curves])
    near = max(1e-3 * float(np.ptp(finite)), floor) if finite.size else 0.0
    groups: list[list[int]] = []
    for k, curve in enumerate(curves):
        for group in groups:
            first = curves[group[0]]
            if (
                np.array_equal(np.isnan(curve), np.isnan(first))
                and (np.nan_to_num(np.abs(curve - first)) <= near).all()
            ):
                group.append(k)
                break
        else:
            groups.append([k])
    same = [group for group in groups if len(group) > 1]
    if same and len(same[0]) == len(curves):
        return "both coincide" if len(curves) == 2 else "all coincide"
    named = ", ".join(" and ".join(labels[k] for k in group) + " coincide" for group in same)
    numbered = ", ".join(f"{len(group)} of {len(curves)} coincide" for group in same)
    return named if len(named) <= LONGEST else numbered


def _axis_label(name: str, unit: str) -> str:
    return f"{name} ({unit})" if name and unit else name or unit


def _heading(axes: Axes, channel: Channel, t: np.ndarray, curves: list[np.ndarray], unseen: str, floor: float) -> None:
    """The channel's name; below it the peak of a single curve, which gets a dot, and limits that are out of view."""
    facts = []
    if len(curves) == 1 and np.isfinite(curves[0]).any():
        (curve,) = curves
        peak = np.nanargmax(np.abs(curve))
        size = float(curve[peak])
        if abs(size) > floor:
            digits = f"{size:.3g}" if abs(size) < 1000.0 else f"{size:.4g}"
            facts.append(f"peak {digits} {channel.unit}".rstrip() + f" at {t[peak]:.2f} s")
            axes.plot(t[peak], size, "o", color="black", markersize=4, clip_on=False)
        else:  # rounding has no peak
            facts.append(f"0 {channel.unit}".rstrip())
    if unseen:
        facts.append(unseen)
    axes.set_title(plain(channel.name), loc="left", fontsize="medium", pad=16 if facts else 4)
    axes.annotate(
        ", ".join(facts).replace("-", "−"), (0, 1), (0, 3), xycoords="axes fraction", textcoords="offset points",
        fontsize="small", color=GREY,
    )  # fmt: skip


def _largest(wanted: Sequence[Channel], curves: Mapping[str, np.ndarray]) -> dict[str, float]:
    """The largest size of each unit: what is below 1e-12 of it is rounding, and is not blown up to fill a panel."""
    found: dict[str, float] = {}
    for k, channel in enumerate(wanted):
        for curve in curves.values():
            sizes = np.abs(curve[np.isfinite(curve[:, k]), k])
            found[channel.unit] = max(found.get(channel.unit, 0.0), float(sizes.max(initial=0.0)))
    return found


def _shade_limits(axes: Axes, channel: Channel, curves: list[np.ndarray], floor: float) -> str:
    """Shade what lies beyond the limits where the curves come near them; otherwise give the limits in words."""
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
