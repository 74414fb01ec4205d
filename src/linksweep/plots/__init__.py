"""Plots of results and of robots. Needs the extra `plot` (Matplotlib), no screen, and touches no global state.

Every function gives a Matplotlib Figure, `animate` an Animation; `save` writes it whole or not at all. Curves differ in
line style as well as in colour, and the colours are those of Okabe and Ito: legible in grey and to the colour-blind.
"""

from linksweep.plots.animation import Animation, animate
from linksweep.plots.channels import Channel, channels
from linksweep.plots.charts import bars, errors, heat, lines
from linksweep.plots.figures import save
from linksweep.plots.identified import fitted_torques, intervals, spectra
from linksweep.plots.series import overlaid, panels, phase, time_series, torque_figure
from linksweep.plots.sketch import sketch

__all__ = [
    "Animation",
    "Channel",
    "animate",
    "bars",
    "channels",
    "errors",
    "fitted_torques",
    "heat",
    "intervals",
    "lines",
    "overlaid",
    "panels",
    "phase",
    "save",
    "sketch",
    "spectra",
    "time_series",
    "torque_figure",
]


def __dir__() -> list[str]:
    return sorted(__all__)
