"""`linksweep demo`: the PUMA 560 there and back."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

from linksweep.cli.common import OutputFolder, matplotlib_installed

if TYPE_CHECKING:
    from linksweep.studies.round_trip import RoundTrip


def demo(
    output: OutputFolder = Path("out"),
) -> None:
    """PUMA 560: a motion, its torques by inverse dynamics, the motion back by forward dynamics."""
    from linksweep.studies.round_trip import puma560_round_trip

    trip = puma560_round_trip()
    written = [output / "puma560.csv"]
    trip.write_csv(written[0])
    if matplotlib_installed():
        from linksweep import plots

        title = "PUMA 560: joint torques along a quintic trajectory"
        units = ["N m"] * len(trip.joint_names)
        figure = plots.torque_figure(title, trip.joint_names, units, trip.t, trip.tau)
        written.append(output / "puma560.png")
        plots.save(figure, written[1])
    else:
        print("No plot: Matplotlib is not installed (pip install 'linksweep[plot]').", file=sys.stderr)
    _print_round_trip(trip)
    print("Written:", *written)


def _print_round_trip(trip: RoundTrip) -> None:
    import numpy as np
    from rich.console import Console
    from rich.table import Table

    table = Table(
        title=f"PUMA 560, {len(trip.t)} samples over {trip.t[-1]:g} s: torques and accelerations back",
        title_justify="left",
    )
    table.add_column("joint")
    for heading in ("from (°)", "to (°)", "peak torque\n(N m)", "peak qdd\n(rad/s²)", "difference\n(rad/s²)"):
        table.add_column(heading, justify="right")
    start, end = np.degrees(trip.motion.q[[0, -1]])
    torque, acceleration = np.abs(trip.tau).max(axis=0), np.abs(trip.motion.qdd).max(axis=0)
    for row in zip(trip.joint_names, start, end, torque, acceleration, trip.difference, strict=True):
        name, first, last, peak_torque, peak_qdd, difference = row
        table.add_row(name, f"{first:.0f}", f"{last:.0f}", f"{peak_torque:.4f}", f"{peak_qdd:.4f}", f"{difference:.1e}")
    Console().print(table)
    print(f"Largest difference between accelerations sent and back: {trip.difference.max():.1e} rad/s²")
