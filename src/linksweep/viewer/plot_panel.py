"""Plots beside the scene: a line marks the time shown, and a click goes to another time.

viser draws the plots with uPlot and does not report clicks. A script in the page finds viser's charts, moves a line
over each to the value of the time slider, and sends the time of a click back as the value of a hidden input. The line
moves whenever the slider does, before the page is painted, so the two never differ. Without a time slider the line
follows a hidden element. If a later viser hides its charts from scripts, the plots remain, without line and clicks.
The script also stretches the timeline over the width of the scene, and keeps arrow keys from turning the camera.

Recordings have no panels; `recorded_plots` draws the same curves there.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from linksweep.plots.figures import COLORS, TITLES, Channel, channels

from .playback import Motion, TimeControls
from .server import Handle

if TYPE_CHECKING:
    from linksweep.robot.robot import Robot

MOST_POINTS = 3000  # of a curve in the page
MOST_RECORDED = 600  # of a curve in a recording
MOST_NAMED = 12  # curves in one legend
ALL = "all joints"

SCRIPT = """
const now = () => document.getElementById("linksweep-now");
const serial = {n: 0};
const send = (message) => window.__viserMutable.sendMessage(message);
const attach = (chart) => {
  const mark = document.createElement("div");
  mark.className = "linksweep-mark";
  mark.style.cssText = "position:absolute;top:0;bottom:0;left:0;width:2px;background:#737373;pointer-events:none";
  chart.over.appendChild(mark);
  let pressed = null;
  chart.over.addEventListener("mousedown", (e) => { pressed = [e.clientX, e.clientY]; });
  chart.over.addEventListener("click", (e) => {
    if (pressed && Math.hypot(e.clientX - pressed[0], e.clientY - pressed[1]) > 4) return;  // a zoom was drawn
    const left = e.clientX - chart.over.getBoundingClientRect().left;
    serial.n += 1;
    const updates = {value: [chart.posToVal(left, "x"), serial.n]};
    send({type: "GuiUpdateMessage", uuid: now().dataset.seek, updates});
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
const stretch = () => {  // the timeline takes the width of the scene
  const thumb = slider(), canvas = document.querySelector("canvas");
  const pane = thumb && thumb.closest("[data-floating-window]");
  if (!pane || !canvas) return;
  const width = `${Math.max(Math.round(canvas.getBoundingClientRect().width) - 24, 240)}px`;
  if (pane.style.width !== width) pane.style.width = width;
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
  stretch();
  requestAnimationFrame(follow);
};
const step = (e) => {
  const uuid = now() && {ArrowLeft: now().dataset.back, ArrowRight: now().dataset.forward}[e.key];
  const typing = e.target.closest && e.target.closest("input, textarea, select, [role=slider]");
  if (!uuid || typing || e.ctrlKey || e.metaKey || e.altKey || e.shiftKey) return;
  e.preventDefault();
  e.stopImmediatePropagation();
  send({type: "CommandTriggerMessage", uuid});
};
if (!window.linksweepFollows) { window.linksweepFollows = true; requestAnimationFrame(follow); }
if (!window.linksweepKeys) { window.linksweepKeys = true; window.addEventListener("keydown", step, true); }
"""

RECORDED = """
<div id="linksweep-plots" style="position:fixed;left:1em;top:1em;width:26em;max-width:45vw;background:#fffd;color:#222;
border:1px solid #ccc;border-radius:4px;padding:0.5em;font:12px system-ui,sans-serif;z-index:5">
<select aria-label="quantity" style="width:100%"></select><svg viewBox="0 0 360 230" width="100%"></svg>
<div class="legend" style="line-height:1.5"></div></div>
<script type="application/json" id="linksweep-data">DATA</script>
<script>
(() => {
  const data = JSON.parse(document.getElementById("linksweep-data").textContent);
  const root = document.getElementById("linksweep-plots"), select = root.querySelector("select");
  const svg = root.querySelector("svg"), legend = root.querySelector(".legend");
  const [left, right, top, bottom] = [46, 352, 8, 200];
  const add = (tag, attributes, text) => {
    const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
    for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
    if (text !== undefined) element.textContent = text;
    return svg.appendChild(element);
  };
  const ticks = (low, high) => {
    const raw = (high - low) / 4, power = 10 ** Math.floor(Math.log10(raw));
    const step = [1, 2, 5, 10].map((m) => m * power).find((s) => s >= raw);
    const out = [];
    for (let x = Math.ceil(low / step); x * step <= high + 1e-9 * step; x += 1) out.push(x * step);
    return out;
  };
  const text = (x) => String(parseFloat(x.toPrecision(6)));
  let mark, at;
  const draw = () => {
    const plot = data[select.selectedIndex], all = plot.curves.flatMap((c) => c.values).filter((x) => x !== null);
    let low = Math.min(...all), high = Math.max(...all);
    if (!(high - low > 1e-12 * Math.max(Math.abs(low), Math.abs(high), 1e-300))) { low -= 1; high += 1; }
    const start = plot.t[0], end = plot.t[plot.t.length - 1];
    at = (t) => left + (right - left) * (t - start) / (end - start);
    const y = (v) => bottom - (bottom - top) * (v - low) / (high - low);
    svg.replaceChildren();
    legend.replaceChildren();
    for (const x of ticks(start, end)) {
      add("line", {x1: at(x), x2: at(x), y1: top, y2: bottom, stroke: "#e5e5e5"});
      add("text", {x: at(x), y: bottom + 12, "font-size": 9, "text-anchor": "middle"}, text(x));
    }
    for (const v of ticks(low, high)) {
      add("line", {x1: left, x2: right, y1: y(v), y2: y(v), stroke: "#e5e5e5"});
      add("text", {x: left - 4, y: y(v) + 3, "font-size": 9, "text-anchor": "end"}, text(v));
    }
    add("text", {x: (left + right) / 2, y: bottom + 26, "font-size": 10, "text-anchor": "middle"}, "time (s)");
    const middle = (top + bottom) / 2;
    add("text", {x: 10, y: middle, "font-size": 10, "text-anchor": "middle", transform: `rotate(-90 10 ${middle})`},
        plot.label);
    for (const curve of plot.curves) {
      let path = "", pen = "M";
      curve.values.forEach((v, k) => {
        if (v === null) { pen = "M"; return; }
        path += `${pen}${at(plot.t[k]).toFixed(2)} ${y(v).toFixed(2)}`;
        pen = "L";
      });
      add("path", {d: path, fill: "none", stroke: curve.color, "stroke-width": 1.3});
      const name = legend.appendChild(document.createElement("span"));
      name.textContent = `■ ${curve.name}  `;
      name.style.color = curve.color;
    }
    mark = add("line", {y1: top, y2: bottom, stroke: "#737373", "stroke-width": 1.5});
  };
  for (const plot of data) select.appendChild(document.createElement("option")).textContent = plot.title;
  select.addEventListener("change", draw);
  draw();
  const follow = () => {
    const thumb = document.querySelector("#root [role=slider], [role=slider]");
    const t = data[0].t[0] + (thumb ? parseFloat(thumb.getAttribute("aria-valuenow")) || 0 : 0);
    mark.setAttribute("x1", at(t));
    mark.setAttribute("x2", at(t));
    requestAnimationFrame(follow);
  };
  requestAnimationFrame(follow);
})();
</script>
"""


class Plots:
    """A panel with plots of the motion of the first robot. `seek(t)` is called when the user clicks into one."""

    def __init__(self, gui: Handle, robot: Robot, motion: Motion, seek: Callable[[float], None], time: TimeControls):
        """time: the timeline, whose slider holds the time that the line marks."""
        self.gui, self.motion = gui, motion
        self.signals = {name: _channels(robot, name, values) for name, values in motion.quantities.items()}
        first = first_quantity(motion)
        self.clicked = gui.add_vector2("clicked", (0.0, 0.0), visible=False)
        self.clicked.on_update(lambda event: seek(float(self.clicked.value[0])))
        self._uuids = (
            f'data-seek="{self.clicked._impl.uuid}" data-slider="{time.slider._impl.uuid}" '
            f'data-back="{time.commands["arrowleft"]._impl.uuid}" '
            f'data-forward="{time.commands["arrowright"]._impl.uuid}"'
        )
        titles = tuple(_title(name) for name in self.signals)
        self.quantity = gui.add_dropdown("quantity", titles, initial_value=_title(first))
        self.joint = gui.add_dropdown("joint", (ALL, *self._labels(first)), initial_value=ALL)
        self.chart: Handle = None
        self.now = gui.add_html("")
        gui.add_html(script_tag(SCRIPT))
        self.quantity.on_update(lambda event: self._choose_quantity())
        self.joint.on_update(lambda event: self._draw())
        self._draw()
        gui.add_markdown("*Click: go to that time. Drag: zoom. Double click: reset the zoom.*")
        self.mark(float(motion.t[0]))

    def mark(self, t: float) -> None:
        """Store the time for pages without a time slider."""
        self.now.content = f'<span id="linksweep-now" data-t="{t!r}" {self._uuids}></span>'

    def _chosen(self) -> str:
        return next(name for name in self.signals if _title(name) == self.quantity.value)

    def _labels(self, name: str) -> tuple[str, ...]:
        labels = (f"{each.name} ({each.unit})" if each.unit else each.name for each in self.signals[name])
        return tuple(label.replace("<", "‹").replace(">", "›") for label in labels)  # names are not markup

    def _choose_quantity(self) -> None:
        self.joint.options = (ALL, *self._labels(self._chosen()))
        self._draw()

    def _draw(self) -> None:
        name = self._chosen()
        values = self.motion.quantities[name].reshape(len(self.motion.t), -1)
        labels = self._labels(name)
        which = range(len(labels)) if self.joint.value == ALL else [labels.index(self.joint.value)]
        t, columns = thinned(self.motion.t, values[:, list(which)])
        series: list[dict[str, object]] = [{"label": "time (s)"}]
        for k in which:
            series.append({"label": labels[k], "stroke": COLORS[k % len(COLORS)], "width": 1.5})
        y_label = _axis_label(name, self.signals[name])
        arguments: dict[str, object] = {
            "data": (t, *columns.T.copy()), "series": tuple(series), "title": _title(name),
            "legend": {"show": len(series) <= MOST_NAMED + 1}, "scales": {"x": {"time": False}},
            "axes": ({"label": "time (s)", "labelSize": 18}, {"label": y_label, "labelSize": 18}),
            "cursor": {"drag": {"x": True, "y": False}},
        }  # fmt: skip
        old, self.chart = self.chart, None
        if old is not None:
            old.remove()
        self.chart = self.gui.add_uplot(**arguments, aspect=1.35, padding=(10, 18, 0, 0), order=self.now.order - 0.5)


def recorded_plots(robot: Robot, motion: Motion) -> str:
    """Return HTML with plots of all quantities, for a recording; a line marks the time that it plays."""
    first = first_quantity(motion)
    plots = []
    for name, values in sorted(motion.quantities.items(), key=lambda entry: entry[0] != first):
        signals = _channels(robot, name, values)
        t, columns = thinned(motion.t, values.reshape(len(motion.t), -1), MOST_RECORDED)
        curves = [
            {
                "name": channel.name,
                "color": COLORS[k % len(COLORS)],
                "values": [float(f"{x:.5g}") if np.isfinite(x) else None for x in column.tolist()],
            }
            for k, (channel, column) in enumerate(zip(signals, columns.T, strict=True))
        ]
        plots.append({"title": _title(name), "label": _axis_label(name, signals), "t": t.tolist(), "curves": curves})
    return RECORDED.replace("DATA", json.dumps(plots).replace("<", "\\u003c"))  # names are not markup


def first_quantity(motion: Motion) -> str:
    """Return the quantity plotted first: torques, if there are any."""
    return "tau" if np.any(motion.quantities.get("tau", 0.0)) else "q"


def _channels(robot: Robot, name: str, values: np.ndarray) -> tuple[Channel, ...]:
    if name in TITLES:
        return channels(robot, name)
    if values.ndim == 1 or values.shape[1] == 1:
        return (Channel(name),)
    return tuple(Channel(f"{name} {k + 1}") for k in range(values.shape[1]))


def _title(name: str) -> str:
    return TITLES.get(name, name)


def _axis_label(name: str, signals: tuple[Channel, ...]) -> str:
    """Return quantity and unit if all signals share them, otherwise the units, otherwise the name."""
    labels = {signal.label for signal in signals}
    units = list(dict.fromkeys(signal.unit for signal in signals if signal.unit))
    return labels.pop() if len(labels) == 1 else ", ".join(units) or name


def thinned(t: np.ndarray, values: np.ndarray, most: int = MOST_POINTS) -> tuple[np.ndarray, np.ndarray]:
    """Reduce long curves to at most `most` samples (m,), (m, k), keeping the extremes of each interval."""
    if len(t) <= most:
        return t, values
    intervals = max(most // 2, 1)
    edges = np.linspace(0, len(t), intervals + 1).astype(int)
    low = np.fmin.reduceat(values, edges[:-1], axis=0)
    high = np.fmax.reduceat(values, edges[:-1], axis=0)
    first, last = t[edges[:-1]], t[edges[1:] - 1]
    rising = values[edges[1:] - 1] >= values[edges[:-1]]
    extremes = np.empty((2 * intervals, values.shape[1]))
    extremes[0::2], extremes[1::2] = np.where(rising, low, high), np.where(rising, high, low)
    times = np.empty(2 * intervals)
    times[0::2], times[1::2] = first, np.maximum(last, first)
    increasing = np.concatenate([[True], np.diff(times) > 0])
    return times[increasing], extremes[increasing]


def script_tag(source: str) -> str:
    """Return HTML that runs a script when viser inserts it: a <script> element would not run."""
    code = base64.b64encode(source.encode()).decode()
    return f'<img src="data:," style="display:none" onerror="new Function(atob(\'{code}\'))()">'
