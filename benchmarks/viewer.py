"""How long the viewer's server works on one frame: Talos (32 joints) scrubbed through a run of 10,000 samples.

A page is stood for by a client that reads what the server sends and draws nothing. A frame is what happens when
the time slider is moved: poses of all links and the messages about them, the mark in the plots, every tenth of a second
the joints' sliders.
"processor time" counts all threads of this process, encoding and sending included.
"""

from __future__ import annotations

import argparse
import threading
import time
from typing import Any

import numpy as np
from measure import example, heading, load_quietly, table, write_json

from linksweep.viewer import LAYERS, Viewer, show

SAMPLES, BAR = 10_000, 20.0  # ms


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--robot", default=str(example("talos_reduced.urdf")), help="a URDF or MJCF file")
    parser.add_argument("--frames", type=int, default=600)
    parser.add_argument("--json", metavar="FILE")
    arguments = parser.parse_args()
    print(heading())
    robot = load_quietly(arguments.robot)
    t = np.linspace(0.0, 10.0, SAMPLES)
    motion = swing(robot, t)
    began = time.perf_counter()
    viewer = show(robot, **motion, browser=False)
    opened = time.perf_counter() - began
    client = Client(viewer)
    rows: list[dict[str, Any]] = [measured(viewer, t, arguments.frames, "links alone")]
    for layer in LAYERS:
        if layer != "forces":
            viewer.show_layer(layer)
    rows.append(measured(viewer, t, arguments.frames, "with every layer"))
    received = client.bytes
    viewer.close()
    print(
        f"{robot.name}: {robot.nv} joints, {SAMPLES} samples; opened in {opened:.1f} s, {received / 1e6:.0f} MB sent\n"
    )
    print(table([list(rows[0])] + [[str(value) for value in row.values()] for row in rows]))
    slowest = max(float(row["median (ms)"]) for row in rows)
    print(f"\na frame takes {slowest:.1f} ms (median), bar {BAR:.0f} ms; the worst ones waited for a busy machine")
    write_json(arguments.json, rows)


def swing(robot: Any, t: np.ndarray) -> dict[str, Any]:
    """Every joint swings with its own period, and the torques for it."""
    rng = np.random.default_rng(0)
    amplitude, period, phase = (
        rng.uniform(0.1, 0.4, robot.nv),
        rng.uniform(1.0, 4.0, robot.nv),
        rng.uniform(0, 6, robot.nv),
    )
    w = 2 * np.pi / period
    q = amplitude * np.sin(w * t[:, None] + phase)
    qd, qdd = amplitude * w * np.cos(w * t[:, None] + phase), -amplitude * w**2 * np.sin(w * t[:, None] + phase)
    return {"t": t, "q": q, "qd": qd, "qdd": qdd, "tau": robot.inverse_dynamics(q, qd, qdd)}


def measured(viewer: Viewer, t: np.ndarray, frames: int, what: str) -> dict[str, Any]:
    """To and fro through the run, as a hand on the slider would go."""
    moments = np.interp(np.abs(np.linspace(-1, 1, frames)), [0, 1], [t[0], t[-1]]) + 0.37e-3
    for moment in moments[:20]:
        viewer._show_time(moment)
    times, cpu = [], time.process_time()
    for moment in moments:
        began = time.perf_counter()
        viewer._show_time(moment)
        times.append(time.perf_counter() - began)
        time.sleep(0.005)  # the thread that sends gets its turn, as between frames
    cpu = time.process_time() - cpu
    ms = 1e3 * np.array(times)
    return {
        "what": what, "median (ms)": f"{np.median(ms):.2f}", "95 % below (ms)": f"{np.percentile(ms, 95):.2f}",
        "worst frame (ms)": f"{ms.max():.2f}", "processor time (ms)": f"{1e3 * cpu / frames:.2f}",
    }  # fmt: skip


class Client:
    """A page that reads and draws nothing."""

    def __init__(self, viewer: Viewer):
        import viser  # pyright: ignore[reportMissingImports]
        from websockets.sync.client import connect

        address = viewer.url.replace("http://", "ws://")
        protocol: Any = f"viser-v{viser.__version__}"
        self.socket = connect(address, subprotocols=[protocol], max_size=None, compression=None)
        self.bytes = 0
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        try:
            for message in self.socket:
                self.bytes += len(message)
        except Exception:  # the server has ended
            return


if __name__ == "__main__":
    main()
