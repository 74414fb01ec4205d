"""Plots of results. Needs the extra `plot` (Matplotlib), no screen, and touches no global state."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from linksweep.errors import BackendError
from linksweep.files import write_atomically

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from linksweep.motion.quintic import FloatArray


def torque_figure(title: str, names: Sequence[str], units: Sequence[str], t: FloatArray, tau: FloatArray) -> Figure:
    """One panel per joint: tau (samples, n) over t (samples,), its peak marked; legible in grey."""
    try:
        from matplotlib.figure import Figure
    except ImportError as missing:
        raise BackendError(
            "Plotting needs Matplotlib, which is not installed: run pip install 'linksweep[plot]'."
        ) from missing

    columns = min(3, len(names))
    rows = -(-len(names) // columns)
    figure = Figure(figsize=(3.6 * columns, 2.4 * rows + 0.5), layout="constrained")
    figure.suptitle(title)
    panels = iter(figure.subplots(rows, columns, squeeze=False, sharex=True).flat)
    for name, unit, torque, panel in zip(names, units, tau.T, panels, strict=False):
        peak = np.abs(torque).argmax()
        panel.axhline(0.0, color="0.7", linewidth=0.8)
        panel.plot(t, torque, color="black", linewidth=1.4)
        panel.plot(t[peak], torque[peak], "o", color="black", markersize=4)
        panel.set_title(f"{name}: peak {torque[peak]:.3g} {unit} at {t[peak]:.2f} s", fontsize="medium")
        panel.set_ylabel(unit)
        panel.margins(x=0.0)
        panel.grid(color="0.9")
        panel.set_xlabel("time (s)")
        panel.tick_params(labelbottom=True)
    for panel in panels:  # those left over in the last row
        panel.remove()
    return figure


def save(figure: Figure, path: Path) -> None:
    """Write the figure; the ending of `path` chooses the format."""
    write_atomically(path, lambda to: figure.savefig(to, dpi=150))
