"""Shared parts of all plots: channels with units and limits, figures without pyplot, line styles, panels, files."""

from __future__ import annotations

import functools
import io
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, TypedDict

import numpy as np
from numpy.typing import ArrayLike

from linksweep.errors import ArgumentError, BackendError
from linksweep.joints.kind import unit_of
from linksweep.model.model import Joint, Model
from linksweep.robot.robot import Robot, checked_robot
from linksweep.support.checks import real_array
from linksweep.support.files import write_atomically
from linksweep.support.messages import is_one_of, nearest, shown

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Okabe and Ito's colours without the yellow, which is hard to see on white paper.
COLORS = ("#000000", "#D55E00", "#0072B2", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")
# Six dash patterns and seven colours: 42 different lines.
DASHES = ("-", (0, (5, 1.5)), (0, (1.2, 1.2)), (0, (6, 1.5, 1.2, 1.5)), (0, (10, 2)), (0, (4, 1.2, 1, 1.2, 1, 1.2)))
GREY = "0.45"  # limits, thresholds, remarks
DATA, MODEL, ESTIMATE, RESIDUAL = 0, 1, 2, 4  # indices of COLORS that mean the same in every figure
ROLES = {
    "measured": DATA, "simulated": DATA, "reference": MODEL, "robot model": MODEL, "predicted": ESTIMATE,
    "estimated": ESTIMATE, "residual": RESIDUAL,
}  # fmt: skip
TITLES = {"q": "joint positions", "qd": "joint velocities", "qdd": "joint accelerations", "tau": "joint torques"}
QUANTITIES = {
    "rad": "angle", "m": "position", "rad/s": "velocity", "m/s": "velocity", "rad/s²": "acceleration",
    "m/s²": "acceleration", "N m": "torque", "N": "force",
}  # fmt: skip


# ---- channels ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Channel:
    """A plotted signal: its name, unit, limits, and the quantity that labels its axis, such as "torque".

    The unit may be empty and limits infinite. By default the quantity follows from the unit.
    """

    name: str
    unit: str = ""
    low: float = -math.inf
    high: float = math.inf
    quantity: str = ""

    @property
    def label(self) -> str:
        """The label of the axis: quantity and unit."""
        quantity = self.quantity or QUANTITIES.get(self.unit, self.name)
        return f"{quantity} ({self.unit})" if self.unit else quantity


def model_of(robot: Robot) -> Model:
    """Return the model of a Robot; raise ArgumentError for anything else."""
    return checked_robot(robot, "a plot").model


def channels(robot: Robot, quantity: str) -> tuple[Channel, ...]:
    """Return a Channel for each component of q, qd, qdd or tau, in order, with the joint's limits."""
    if not is_one_of(quantity, TITLES):
        raise ArgumentError(
            f"the quantity is {shown(quantity)}{nearest(quantity, TITLES)}, expected one of {', '.join(TITLES)}."
        )
    joints = {link.joint.name: link.joint for link in model_of(robot).links}
    return tuple(channel for name in robot.joint_names for channel in _joint_channels(joints[name], quantity))


def _joint_channels(joint: Joint, quantity: str) -> tuple[Channel, ...]:
    bounds = _limits(joint, quantity) if joint.type.euclidean else (-math.inf, math.inf)
    components = joint.type.coordinates if quantity == "q" else joint.type.rates
    units = [unit_of(component, quantity) for component in components]
    return tuple(
        Channel(f"{joint.name} {component.title}".rstrip(), unit, *bounds, QUANTITIES.get(unit, "quaternion"))
        for component, unit in zip(components, units, strict=True)
    )


def _limits(joint: Joint, quantity: str) -> tuple[float, float]:
    limits = joint.limits
    if quantity == "q":
        return (limits.lower, limits.upper) if joint.type.limited else (-math.inf, math.inf)
    largest = {"qd": limits.velocity, "tau": limits.effort}.get(quantity, math.inf)
    return -largest, largest


# ---- figures -------------------------------------------------------------------------------------------------------


class LineStyle(TypedDict):
    """Keywords of `Axes.plot`."""

    color: str
    linestyle: str | tuple[int, tuple[float, ...]]
    linewidth: float


def line_style(index: int, label: str = "") -> LineStyle:
    """Return colour and dashes of the curve with this index, or of the role that its label names (`ROLES`)."""
    if label in ROLES:
        return {"color": COLORS[ROLES[label]], "linestyle": DASHES[min(ROLES[label], 1)], "linewidth": 1.4}
    return {"color": COLORS[index % len(COLORS)], "linestyle": DASHES[index % len(DASHES)], "linewidth": 1.4}


def as_floats(name: str, value: ArrayLike) -> np.ndarray:
    """Return plotted data as a float64 array."""
    return real_array(f"plot: {name}", value, dtype=float)


def curves_of_length(curves: Mapping[str, ArrayLike], count: int) -> dict[str, np.ndarray]:
    """Return curves by label as arrays (count,)."""
    arrays = {label: as_floats(label, curve) for label, curve in curves.items()}
    for label, curve in arrays.items():
        if curve.shape != (count,):
            raise ArgumentError(f"a plot got a curve {label!r} of shape {curve.shape}, expected ({count},).")
    return arrays


def plain(name: str) -> str:
    """Escape a name for Matplotlib: `$` would start a formula, a leading `_` would hide it from the legend."""
    return (" " if name.startswith("_") else "") + name.replace("$", r"\$")


def new_figure(width: float, height: float) -> Figure:
    """Return a figure, in inches, that pyplot does not know and that notebooks display."""
    try:
        from matplotlib.figure import Figure
    except ImportError as missing:
        raise BackendError(
            "Plotting needs Matplotlib, which is not installed: run pip install 'linksweep[plot]'."
        ) from missing
    figure = Figure(figsize=(width, height), layout="constrained")
    # IPython displays Matplotlib's figures only after `%matplotlib inline`; it finds this method in any case
    vars(figure)["_repr_png_"] = functools.partial(_png, figure)
    return figure


def _png(figure: Figure) -> bytes:
    data = io.BytesIO()
    figure.savefig(data, format="png", dpi=96)
    return data.getvalue()


def panel_grid(count: int) -> tuple[int, int]:
    """Return columns and rows for a number of panels: up to three columns for an arm, up to six for a humanoid."""
    few = {1: 1, 2: 2, 4: 2}
    columns = few.get(count) or next((c for c, largest in ((3, 9), (4, 16), (5, 25)) if count <= largest), 6)
    return columns, -(-count // columns)


def panel_axes(figure: Figure, count: int, x_label: str = "", *, share: bool = True) -> Iterator[Axes]:
    """Yield the axes of `count` panels on a grid, styled; the lowest of each column carries the label of x."""
    columns, rows = panel_grid(count)
    grid = list(figure.subplots(rows, columns, squeeze=False, sharex=share).flat)
    for index, axes in enumerate(grid):
        if index >= count:
            axes.remove()
            continue
        style(axes)
        if x_label and index >= count - columns:
            axes.set_xlabel(x_label)
            axes.tick_params(labelbottom=True)
        yield axes


def legend_below(figure: Figure, axes: Sequence[Axes], columns: int = 6) -> None:
    """Put one legend for the curves of all these axes below the panels."""
    by_label = {}
    for each in axes:
        by_label |= {label: handle for handle, label in zip(*each.get_legend_handles_labels(), strict=True)}
    figure.legend(
        list(by_label.values()), list(by_label), loc="outside lower center", ncols=min(len(by_label), columns),
        frameon=False,
    )  # fmt: skip


def style(axes: Axes) -> None:
    """Draw a light grid, and only the two spines that carry numbers."""
    axes.grid(color="0.9", linewidth=0.6)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)


def save(figure: Figure, path: str | Path, dpi: float = 150) -> None:
    """Write the figure as .png, .svg or .pdf, chosen by the suffix of `path`; the same figure gives the same bytes."""
    import matplotlib

    path = Path(path)
    if not hasattr(figure, "savefig"):
        raise ArgumentError(f"save got {shown(figure)}, expected a figure: pass it first, then the path.")
    formats = figure.canvas.get_supported_filetypes()
    suffix = path.suffix.lower().removeprefix(".")
    if suffix not in formats:
        raise ArgumentError(
            f"the plot {path} has the suffix {path.suffix!r}{nearest(suffix, formats)}, expected a format that "
            f"Matplotlib writes, such as .png, .svg or .pdf."
        )
    undated: dict[str, dict[str, str | None]] = {"svg": {"Date": None}, "pdf": {"CreationDate": None}}

    def write(to: Path) -> None:
        with matplotlib.rc_context({"svg.hashsalt": "linksweep"}):  # otherwise names inside an SVG are random
            figure.savefig(to, dpi=dpi, metadata=undated.get(suffix))

    write_atomically(path, write)
