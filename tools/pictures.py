"""The moving picture of the README: `make pictures` writes docs/assets/puma560.gif, the one picture in the repository.

A PUMA 560 moves through four poses and back; beside it stand the torques that this takes, up to the moment shown.
"""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import numpy as np

import linksweep as ls
from linksweep.plots.drawing import Scene
from linksweep.plots.figures import line_style, new_figure, style

PATH = Path(__file__).parent.parent / "docs" / "assets" / "puma560.gif"
POSES = [
    [0.0, -0.9, 0.3, 0.0, 0.6, 0.0],
    [1.2, -0.3, -0.2, 0.8, -0.4, 0.5],
    [0.3, -1.6, 0.9, -0.6, 0.9, 1.0],
    [-1.0, -0.5, 0.1, 0.4, 0.3, -0.8],
]
PICTURES, SECONDS, COLORS = 48, 4.8, 160


def pictures() -> list[Any]:
    from PIL import Image

    robot = ls.robots.puma560()
    motion = ls.motion.QuinticSpline([*POSES, POSES[0]], np.linspace(0.0, SECONDS, len(POSES) + 1))
    t = np.linspace(0.0, SECONDS, PICTURES)
    q, qd, qdd = motion(t)
    tau = robot.inverse_dynamics(q, qd, qdd)
    figure = new_figure(8.4, 4.2)
    figure.set_layout_engine("none")
    scene = Scene(robot, q, axes=False, frames=(robot.ee,), com=False)
    scene.figure(None, "")
    scene.axes = figure.add_axes((-0.04, -0.03, 0.56, 1.06), projection="3d", computed_zorder=False)
    beside = figure.add_axes((0.58, 0.26, 0.39, 0.64))
    drawn = [beside.plot([], [], label=name, **line_style(k))[0] for k, name in enumerate(robot.joint_names)]
    beside.set(xlim=(0, SECONDS), ylim=(tau.min() - 5, tau.max() + 5), xlabel="time (s)", ylabel="torque (N m)")
    beside.set_title("robot.inverse_dynamics(q, qd, qdd)", fontsize=10, family="monospace")
    figure.legend(handles=drawn, loc="lower center", bbox_to_anchor=(0.775, 0.0), ncols=3, fontsize=8, frameon=False)
    style(beside)
    found = []
    for k in range(PICTURES - 1):  # the last is the first again
        scene.draw(k)
        scene.axes.set(xlabel="", ylabel="", zlabel="")  # there is no room for them
        for j, line in enumerate(drawn):
            line.set_data(t[: k + 1], tau[: k + 1, j])
        buffer = io.BytesIO()
        figure.savefig(buffer, format="png", dpi=80)
        found.append(Image.open(buffer).convert("RGB"))
    return found


def main() -> None:
    from PIL import Image

    found = pictures()
    # the widest spread of colours, not the commonest ones: thin curves keep theirs
    palette = found[len(found) // 2].quantize(COLORS, method=Image.Quantize.MAXCOVERAGE)
    few = [picture.quantize(palette=palette, dither=0) for picture in found]
    few[0].save(
        PATH, save_all=True, append_images=few[1:], duration=round(1000 * SECONDS / PICTURES), loop=0, optimize=True
    )
    print(f"{PATH}: {len(few)} pictures, {PATH.stat().st_size / 1e6:.2f} MB")


if __name__ == "__main__":
    main()
