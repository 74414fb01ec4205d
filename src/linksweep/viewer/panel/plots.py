"""Plots beside the scene that follow the motion: a line marks the moment shown, a click goes to another.

viser draws them with uPlot and does not report where one was clicked. A few lines of script in the page do: they find
viser's charts, move a line over each to the value of the time slider, and send the time of a click back as the value of
a hidden input. The line moves whenever the slider does, before the page is painted, so the two never differ. Where the
page has no time slider, the line is at the time that a hidden element holds. Where a later viser hides its charts from
scripts, the plots stay, without line and clicks.
"""

from __future__ import annotations

import base64
from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from linksweep.plots.channels import TITLES, channels

from .playback import Motion

if TYPE_CHECKING:
    from linksweep.robot.robot import Robot

    from ..server import Handle

MOST_POINTS = 3000  # of a curve in the page
MOST_NAMED = 12  # curves in one legend
COLORS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#8C6D31", "#7B4173", "#637939")
ALL = "all joints"

SCRIPT = """
const now = () => document.getElementById("linksweep-now");
const serial = {n: 0};
const attach = (chart) => {
  const mark = document.createElement("div");
  mark.className = "linksweep-mark";
  mark.style.cssText = "position:absolute;top:0;bottom:0;left:0;width:2px;background:#D55E00;pointer-events:none";
  chart.over.appendChild(mark);
  let pressed = null;
  chart.over.addEventListener("mousedown", (e) => { pressed = [e.clientX, e.clientY]; });
  chart.over.addEventListener("click", (e) => {
    if (pressed && Math.hypot(e.clientX - pressed[0], e.clientY - pressed[1]) > 4) return;  // a zoom was drawn
    const left = e.clientX - chart.over.getBoundingClientRect().left;
    serial.n += 1;
    window.__viserMutable.sendMessage({
      type: "GuiUpdateMessage", uuid: now().dataset.seek, updates: {value: [chart.posToVal(left, "x"), serial.n]},
    });
  });
  return mark;
};
const slider = () => {
  const root = document.getElementById(now().dataset.slider);
  return root && root.querySelector("[role=slider]");
};
const mark_time = () => {
  if (!now()) return;
  const thumb = slider();
  const t = parseFloat(thumb ? thumb.getAttribute("aria-valuenow") : now().dataset.t);
  const charts = (window.__viserTestpoints || {}).uplots || {};
  for (const {chart} of Object.values(charts)) {
    const mark = chart.over.querySelector(".linksweep-mark") || attach(chart);
    const x = chart.valToPos(t, "x");
    mark.style.display = x >= 0 && x <= chart.over.clientWidth ? "block" : "none";
    mark.style.transform = `translateX(${x - 1}px)`;
  }
};
const observer = new MutationObserver(mark_time);
let observed = null;
const follow = () => {
  if (!now()) { window.linksweepFollows = false; observer.disconnect(); return; }
  if (slider() !== observed) {
    observer.disconnect();
    observed = slider();
    if (observed) observer.observe(observed, {attributes: true, attributeFilter: ["aria-valuenow"]});
  }
  mark_time();  // charts are drawn anew, and zoomed
  requestAnimationFrame(follow);
};
if (!window.linksweepFollows) { window.linksweepFollows = true; requestAnimationFrame(follow); }
"""


class Plots:
    """A panel with plots of a motion's first robot. `seek(t)` is called when somebody clicks into one."""

    def __init__(self, gui: Handle, robot: Robot, motion: Motion, seek: Callable[[float], None], slider: Handle):
        """slider: the time slider, whose value the line marks."""
        self.gui, self.motion = gui, motion
        self.names = {name: _labels(robot, name, values) for name, values in motion.quantities.items()}
        first = "tau" if np.any(motion.quantities.get("tau", 0.0)) else "q"
        self.clicked = gui.add_vector2("clicked", (0.0, 0.0), visible=False)
        self.clicked.on_update(lambda event: seek(float(self.clicked.value[0])))
        self._uuids = f'data-seek="{self.clicked._impl.uuid}" data-slider="{slider._impl.uuid}"'
        self.quantity = gui.add_dropdown("quantity", tuple(_title(n) for n in self.names), initial_value=_title(first))
        self.joint = gui.add_dropdown("joint", (ALL, *self._curves(first)), initial_value=ALL)
        self.chart: Handle = None
        self.now = gui.add_html("")
        gui.add_html(_script(SCRIPT))
        self.quantity.on_update(lambda event: self._choose_quantity())
        self.joint.on_update(lambda event: self._draw())
        self._draw()
        gui.add_markdown("*Click: go to that moment. Drag: zoom. Double click: all of it.*")
        self.mark(float(motion.t[0]))

    def mark(self, t: float) -> None:
        """Write the time for pages without a time slider."""
        self.now.content = f'<span id="linksweep-now" data-t="{t!r}" {self._uuids}></span>'

    def _chosen(self) -> str:
        return next(name for name in self.names if _title(name) == self.quantity.value)

    def _curves(self, name: str) -> tuple[str, ...]:
        labels = (f"{label} ({unit})" if unit else label for label, unit in self.names[name])
        return tuple(label.replace("<", "‹").replace(">", "›") for label in labels)  # names are no markup

    def _choose_quantity(self) -> None:
        self.joint.options = (ALL, *self._curves(self._chosen()))
        self._draw()

    def _draw(self) -> None:
        name = self._chosen()
        values = self.motion.quantities[name].reshape(len(self.motion.t), -1)
        labels = self._curves(name)
        which = range(len(labels)) if self.joint.value == ALL else [labels.index(self.joint.value)]
        t, columns = thinned(self.motion.t, values[:, list(which)])
        series: list[dict[str, object]] = [{"label": "t (s)"}]
        for k in which:
            series.append({"label": labels[k], "stroke": COLORS[k % len(COLORS)], "width": 1.5})
        arguments: dict[str, object] = {
            "data": (t, *columns.T.copy()), "series": tuple(series), "title": _title(name),
            "legend": {"show": len(series) <= MOST_NAMED + 1}, "scales": {"x": {"time": False}},
            "cursor": {"drag": {"x": True, "y": False}},
        }  # fmt: skip
        old, self.chart = self.chart, None
        if old is not None:
            old.remove()
        self.chart = self.gui.add_uplot(**arguments, aspect=1.35, padding=(10, 18, 0, 0), order=self.now.order - 0.5)


def _labels(robot: Robot, name: str, values: np.ndarray) -> list[tuple[str, str]]:
    if name in TITLES:
        return [(channel.name, channel.unit) for channel in channels(robot, name)]
    if values.ndim == 1 or values.shape[1] == 1:
        return [(name, "")]
    return [(f"{name} {k + 1}", "") for k in range(values.shape[1])]


def _title(name: str) -> str:
    return TITLES.get(name, name)


def thinned(t: np.ndarray, values: np.ndarray, most: int = MOST_POINTS) -> tuple[np.ndarray, np.ndarray]:
    """Fewer samples (m,), (m, k) of long curves: of each stretch the extremes of every curve, so that peaks stay."""
    if len(t) <= most:
        return t, values
    stretches = max(most // 2, 1)
    edges = np.linspace(0, len(t), stretches + 1).astype(int)
    low = np.fmin.reduceat(values, edges[:-1], axis=0)
    high = np.fmax.reduceat(values, edges[:-1], axis=0)
    first, last = t[edges[:-1]], t[edges[1:] - 1]
    rising = values[edges[1:] - 1] >= values[edges[:-1]]
    out = np.empty((2 * stretches, values.shape[1]))
    out[0::2], out[1::2] = np.where(rising, low, high), np.where(rising, high, low)
    times = np.empty(2 * stretches)
    times[0::2], times[1::2] = first, np.maximum(last, first)
    keep = np.concatenate([[True], np.diff(times) > 0])
    return times[keep], out[keep]


def _script(source: str) -> str:
    """A script as HTML that viser puts into the page: elements run what they do on errors, <script> would not run."""
    code = base64.b64encode(source.encode()).decode()
    return f'<img src="data:," style="display:none" onerror="new Function(atob(\'{code}\'))()">'
