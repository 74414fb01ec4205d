"""Plots of results and of robots. Needs the extra `plot` (Matplotlib); needs no display and changes no global state.

Every function returns a Matplotlib Figure, and `animate` an Animation; `save` writes either the whole file or none.
Curves differ in line style as well as in colour. The colours are those of Okabe and Ito, legible in grey and to the
colour-blind. A colour keeps its meaning across figures: black for measured or simulated data, orange for references
and the robot model, blue for estimates and predictions. Overlaid joints have the colours that the viewer gives them.
"""

from linksweep.plots.charts import (
    bars,
    errors,
    fitted_torques,
    heat,
    intervals,
    lines,
    overlaid,
    panels,
    phase,
    spectra,
    time_series,
    torque_figure,
)
from linksweep.plots.drawing import Animation, animate, sketch
from linksweep.plots.figures import Channel, channels, save

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
