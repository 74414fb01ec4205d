"""Rodriguez 1987, Fig. 3: filter and smoother as one block diagram. The numbers are those of the paper's text."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.figure import Figure

BLUE, ORANGE, INK = "#0072B2", "#D55E00", "0.15"
LEGEND = (
    (1, "prediction across link k"), (2, "bias force"), (3, "predicted moment"), (4, "measured moment"),
    (5, "innovation"), (6, "gain"), (7, "correction"), (8, "bias of the acceleration"), (9, "residual"),
    (10, "joint acceleration"), (11, "spatial acceleration"), (12, "transpose of the prediction"),
)  # fmt: skip


def filter_diagram() -> Figure:
    """Fig. 3: filtering from joint k - 1 to joint k on the left, smoothing from joint k to k - 1 on the right."""
    from linksweep.plots.figures import new_figure

    figure = new_figure(9.6, 6.6)
    axes = figure.add_subplot()
    axes.set_aspect("equal")
    axes.axis("off")
    _filter(axes)
    _smoother(axes)
    axes.plot([0, 0], [0.35, 8.3], color="0.7", linewidth=1.0, linestyle=(0, (8, 4)))
    axes.text(-3.1, 8.75, "filtering: inward, from the tip", color=BLUE, ha="center", fontsize=12, weight="bold")
    axes.text(3.1, 8.75, "smoothing: outward, from the base", color=ORANGE, ha="center", fontsize=12, weight="bold")
    rows = [LEGEND[k : k + 3] for k in range(0, len(LEGEND), 3)]
    for row, entries in enumerate(rows):
        for column, (number, text) in enumerate(entries):
            x, y = -5.2 + 3.9 * column, -0.35 - 0.42 * row
            _number(axes, x, y, number)
            axes.text(x + 0.28, y, text, va="center", fontsize=9, color=INK)
    axes.set(xlim=(-6.3, 6.3), ylim=(-2.0, 9.2))
    return figure


def _filter(axes: Any) -> None:
    """z⁺(k-1) at the bottom, z⁺(k) at the top; the innovation in the middle."""
    x, side = -4.4, -1.5
    axes.text(x, 0.35, r"$z^+(k-1)$", ha="center", va="center", fontsize=12, color=BLUE)
    _arrow(axes, (x, 0.6), (x, 1.15), BLUE)
    _box(axes, x, 1.5, r"$\phi(k,k-1)$", BLUE, 1)
    _arrow(axes, (x, 1.85), (x, 2.45), BLUE)
    _sum(axes, x, 2.7, BLUE)
    _input(axes, (-6.0, 2.7), (x - 0.25, 2.7), r"$b(k)$", BLUE, 2)
    _arrow(axes, (x, 2.95), (x, 6.25), BLUE)
    axes.text(x - 0.15, 4.6, r"$z^-(k)$", ha="right", va="center", fontsize=12, color=BLUE)
    axes.plot([x, side], [3.35, 3.35], color=BLUE, linewidth=1.6)
    _arrow(axes, (side, 3.35), (side, 3.55), BLUE)
    _box(axes, side, 3.9, r"$H(k)$", BLUE)
    _arrow(axes, (side, 4.25), (side, 4.75), BLUE, 3)
    _sum(axes, side, 5.0, BLUE)
    axes.text(side + 0.16, 4.62, "$-$", fontsize=12, color=BLUE)
    _input(axes, (-0.35, 5.0), (side + 0.25, 5.0), r"$\tau(k)$", BLUE, 4)
    axes.plot([side, side], [5.25, 5.75], color=BLUE, linewidth=1.6)
    axes.text(side + 0.12, 6.08, r"$e^-(k)$", fontsize=12, color=BLUE, va="center")
    _number(axes, side + 1.12, 6.08, 5)
    axes.plot([side, -2.4], [5.75, 5.75], color=BLUE, linewidth=1.6)
    _box(axes, -2.85, 5.75, r"$G(k)$", BLUE, 6, width=0.9)
    axes.plot([-3.3, -3.6, -3.6], [5.75, 5.75, 6.5], color=BLUE, linewidth=1.6)
    _arrow(axes, (-3.6, 6.5), (x + 0.25, 6.5), BLUE)
    _number(axes, -3.82, 6.15, 7)
    _sum(axes, x, 6.5, BLUE)
    _input(axes, (-6.0, 6.5), (x - 0.25, 6.5), r"$P^+n$", BLUE, 8)
    _arrow(axes, (x, 6.75), (x, 7.55), BLUE)
    axes.text(x, 7.85, r"$z^+(k)$", ha="center", va="center", fontsize=12, color=BLUE)
    _arrow(axes, (side, 5.75), (side, 6.55), BLUE)
    _box(axes, side, 6.9, r"$D^{-1}(k)$", BLUE)
    axes.plot([side, side, 0.0], [7.25, 7.6, 7.6], color=BLUE, linewidth=1.6)
    axes.text(-0.55, 7.82, r"$e^+(k)$", ha="center", fontsize=12, color=BLUE)
    _number(axes, -1.2, 7.82, 9)


def _smoother(axes: Any) -> None:
    """λ⁺(k) at the top, λ⁺(k-1) at the bottom; the joint acceleration in the middle."""
    x, side = 4.4, 1.5
    axes.text(x, 7.85, r"$\lambda^+(k)$", ha="center", va="center", fontsize=12, color=ORANGE)
    _arrow(axes, (x, 7.55), (x, 6.75), ORANGE)
    _sum(axes, x, 6.5, ORANGE)
    _input(axes, (6.0, 6.5), (x + 0.25, 6.5), r"$n(k)$", ORANGE)
    _arrow(axes, (x, 6.25), (x, 2.95), ORANGE)
    axes.plot([x, 3.35], [5.75, 5.75], color=ORANGE, linewidth=1.6)
    _box(axes, 2.9, 5.75, r"$G^T(k)$", ORANGE, width=0.9)
    _arrow(axes, (2.45, 5.75), (side + 0.25, 5.75), ORANGE)
    axes.text(side + 0.42, 5.88, "$-$", fontsize=12, color=ORANGE)
    _sum(axes, side, 5.75, ORANGE)
    axes.plot([0.0, side], [7.6, 7.6], color=ORANGE, linewidth=1.6)
    _arrow(axes, (side, 7.6), (side, 6.0), ORANGE)
    _arrow(axes, (side, 5.5), (side, 4.25), ORANGE)
    axes.plot([side, 0.55], [5.0, 5.0], color=ORANGE, linewidth=1.6)
    _arrow(axes, (0.75, 5.0), (0.45, 5.0), ORANGE)
    axes.text(0.5, 5.22, r"$a(k)$", ha="center", fontsize=12, color=ORANGE)
    _number(axes, 1.05, 5.24, 10)
    _box(axes, side, 3.9, r"$H^T(k)$", ORANGE)
    axes.plot([side, side], [3.55, 2.7], color=ORANGE, linewidth=1.6)
    _arrow(axes, (side, 2.7), (x - 0.25, 2.7), ORANGE)
    _sum(axes, x, 2.7, ORANGE)
    _arrow(axes, (x, 2.45), (x, 1.85), ORANGE)
    axes.text(x + 0.15, 2.15, r"$\lambda^-(k)$", va="center", fontsize=12, color=ORANGE)
    _number(axes, x + 1.35, 2.15, 11)
    _box(axes, x, 1.5, r"$\phi^T(k,k-1)$", ORANGE, 12)
    _arrow(axes, (x, 1.15), (x, 0.6), ORANGE)
    axes.text(x, 0.35, r"$\lambda^+(k-1)$", ha="center", va="center", fontsize=12, color=ORANGE)


def _arrow(axes: Any, start: Any, end: Any, color: str, number: int = 0) -> None:
    style = {"arrowstyle": "-|>", "color": color, "linewidth": 1.6, "shrinkA": 0, "shrinkB": 0}
    axes.annotate("", end, start, arrowprops=style)
    if number:
        _number(axes, (start[0] + end[0]) / 2 - 0.3, (start[1] + end[1]) / 2, number)


def _input(axes: Any, start: Any, end: Any, text: str, color: str, number: int = 0) -> None:
    """An arrow from outside, with what comes in above its start."""
    _arrow(axes, start, end, color)
    middle = (start[0] + end[0]) / 2
    axes.text(middle, start[1] + 0.22, text, ha="center", fontsize=12, color=color)
    if number:
        _number(axes, middle - 0.55 if middle < -2 else middle + 0.1, start[1] - 0.3, number)


def _box(axes: Any, x: float, y: float, text: str, color: str, number: int = 0, width: float = 1.7) -> None:
    from matplotlib.patches import FancyBboxPatch

    axes.add_patch(
        FancyBboxPatch((x - width / 2, y - 0.35), width, 0.7, boxstyle="round,pad=0,rounding_size=0.08",
                       facecolor="white", edgecolor=color, linewidth=1.5, zorder=3)
    )  # fmt: skip
    axes.text(x, y, text, ha="center", va="center", fontsize=11, zorder=4)
    if number:
        _number(axes, x + (width / 2 + 0.28) * (-1 if width > 1 else 0), y + (0 if width > 1 else 0.6), number)


def _sum(axes: Any, x: float, y: float, color: str) -> None:
    axes.plot(x, y, "o", markersize=15, markerfacecolor="white", markeredgecolor=color, markeredgewidth=1.5, zorder=3)
    axes.text(x, y, "+", ha="center", va="center", fontsize=12, zorder=4)


def _number(axes: Any, x: float, y: float, number: int) -> None:
    circle = {"boxstyle": "circle,pad=0.22", "facecolor": "white", "edgecolor": INK, "linewidth": 0.8}
    axes.text(x, y, str(number), ha="center", va="center", fontsize=7.5, color=INK, zorder=5, bbox=circle)
