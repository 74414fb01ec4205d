"""Draw the animation of the README: `make pictures` writes docs/assets/panda.gif.

It shows the bundled Panda in the viewer, moving through four configurations and back, beside the torques of the motion
up to the time shown. It needs Chromium, chromedriver and the extra `test`.
"""

from __future__ import annotations

import io
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

import linksweep as ls
from linksweep.plots.figures import line_style, new_figure, style
from linksweep.viewer import Scene
from linksweep.viewer.server import _page

ASSETS = Path(__file__).parent.parent / "docs" / "assets"
CONFIGURATIONS = [
    [0.0, -0.5, 0.0, -2.2, 0.0, 1.8, 0.8],
    [0.9, 0.3, 0.3, -1.6, 0.2, 1.9, 0.3],
    [0.2, 0.6, -0.2, -1.1, -0.6, 1.7, 1.4],
    [-0.9, -0.1, -0.3, -2.4, 0.5, 2.3, 0.0],
]
FRAMES, SECONDS = 56, 5.6
SIZE = 432  # pixels, height and half of the width


def motion() -> tuple[Any, np.ndarray, np.ndarray, np.ndarray]:
    """Return the robot, times (FRAMES,), positions (FRAMES, 7) and torques (FRAMES, 7)."""
    robot = ls.load("panda")
    path = ls.motion.QuinticSpline([*CONFIGURATIONS, CONFIGURATIONS[0]], np.linspace(0.0, SECONDS, 5))
    t = np.linspace(0.0, SECONDS, FRAMES)
    q, qd, qdd = path(t)
    return robot, t, q, robot.inverse_dynamics(q, qd, qdd)


def robot_frames(robot: Any, q: np.ndarray) -> Iterator[Any]:
    """Yield an image of the robot in the viewer for each configuration."""
    from PIL import Image

    with Scene() as scene:
        shown = scene.add(robot, q[0])
        scene.frame_camera()
        camera = scene.server.initial_camera
        camera.position, camera.look_at = (1.75, -1.45, 1.15), (0.12, 0.0, 0.46)
        with _page(scene.server, SIZE, SIZE) as client:
            for _ in range(3):  # until all objects have arrived
                client.get_render(SIZE, SIZE, transport_format="jpeg", timeout=300.0)
            for row in q:
                shown.q = row
                scene.server.flush()
                pixels = client.get_render(SIZE, SIZE, transport_format="png", timeout=300.0)
                image = Image.fromarray(pixels)
                paper = Image.new("RGB", image.size, "white")
                paper.paste(image, mask=image.getchannel("A") if image.mode == "RGBA" else None)
                yield paper


def frames() -> list[Any]:
    """Return the images of the GIF: the robot on the left, its torques on the right."""
    from PIL import Image

    robot, t, q, tau = motion()
    figure = new_figure(SIZE / 80, SIZE / 80)
    figure.set_layout_engine("none")
    axes = figure.add_axes((0.15, 0.26, 0.8, 0.66))
    lines = [axes.plot([], [], label=f"joint {k + 1}", **line_style(k))[0] for k in range(robot.nv)]
    axes.set(xlim=(0, SECONDS), ylim=(tau.min() - 5, tau.max() + 5), xlabel="time (s)", ylabel="torque (N m)")
    axes.set_title("robot.inverse_dynamics(q, qd, qdd)", fontsize=10, family="monospace")
    figure.legend(handles=lines, loc="lower center", bbox_to_anchor=(0.55, 0.02), ncols=4, fontsize=8, frameon=False)
    style(axes)
    images = []
    for k, left in enumerate(robot_frames(robot, q[:-1])):  # the last configuration is the first again
        for j, line in enumerate(lines):
            line.set_data(t[: k + 1], tau[: k + 1, j])
        buffer = io.BytesIO()
        figure.savefig(buffer, format="png", dpi=80)
        image = Image.new("RGB", (2 * SIZE, SIZE), "white")
        image.paste(left, (0, 0))
        image.paste(Image.open(buffer).convert("RGB").resize((SIZE, SIZE)), (SIZE, 0))
        images.append(image)
    return images


def animation() -> None:
    from PIL import Image

    images, path = frames(), ASSETS / "panda.gif"
    middle, palette = images[len(images) // 2], Image.new("P", (1, 1))
    robot = middle.crop((0, 0, SIZE, SIZE)).quantize(200, method=Image.Quantize.MEDIANCUT)
    # MAXCOVERAGE keeps the colours of thin curves, which are rare among the pixels
    curves = images[-1].crop((SIZE, 0, 2 * SIZE, SIZE)).quantize(55, method=Image.Quantize.MAXCOVERAGE)
    palette.putpalette([255, 255, 255, *robot.getpalette()[:600], *curves.getpalette()[:165]])
    few = [image.quantize(palette=palette, dither=0) for image in images]
    few[0].save(path, save_all=True, append_images=few[1:], duration=round(1000 * SECONDS / FRAMES), loop=0)
    print(f"wrote {path}: {len(few)} frames, {path.stat().st_size / 1e6:.2f} MB")


def main() -> None:
    begun = time.monotonic()
    animation()
    print(f"{time.monotonic() - begun:.0f} s")


if __name__ == "__main__":
    main()
