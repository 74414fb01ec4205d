"""Screenshots as PNG, and recordings of motions as one HTML file that plays without Python or network.

A page draws the screenshot: one that is open, or one in a headless browser that is started for it.
"""

from __future__ import annotations

import contextlib
import io
import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path

import numpy as np

from linksweep.errors import ArgumentError, BackendError
from linksweep.support.checks import whole_number
from linksweep.support.files import write_atomically

from .server import Handle, address_of

BROWSERS = (
    "chromium",
    "chromium-browser",
    "google-chrome",
    "google-chrome-stable",
    "chrome",
    "microsoft-edge",
    "brave",
)
FLAGS = (
    "--headless", "--no-first-run", "--no-default-browser-check", "--disable-background-networking",
    "--disable-component-update", "--disable-sync", "--disable-quic", "--hide-scrollbars", "--mute-audio",
    "--use-gl=angle", "--use-angle=swiftshader", "--enable-unsafe-swiftshader",
)  # fmt: skip
PATIENCE = 300.0  # seconds: rendering without graphics hardware is slow
MOST_FRAMES = 20_000


def screenshot(server: Handle, path: str | Path, width: int, height: int, transparent: bool = False) -> None:
    """Write the scene, without the controls, as PNG."""
    path = Path(path)
    if path.suffix.lower() != ".png":
        raise ArgumentError(f"the screenshot {path} has the suffix {path.suffix!r}, expected .png.")
    for name, value in (("width", width), ("height", height)):
        whole_number(f"screenshot: {name}", value, at_least=16, at_most=8192)
    with _page(server, width, height) as client:
        try:
            # twice: the first image may be drawn before all objects have arrived
            client.get_render(height, width, transport_format="jpeg", timeout=PATIENCE)
            pixels = client.get_render(height, width, transport_format="png", timeout=PATIENCE)
        except (RuntimeError, TimeoutError) as error:
            raise BackendError(f"the page drew no image ({error}): is it open and visible?") from error
    write_atomically(path, lambda to: _write_png(to, pixels, transparent))


def _write_png(to: Path, pixels: np.ndarray, transparent: bool) -> None:
    import imageio.v3 as imageio  # pyright: ignore[reportMissingImports]

    if pixels.shape[-1] == 4 and not transparent:
        opacity = pixels[..., 3:].astype(float) / 255.0
        pixels = (pixels[..., :3] * opacity + 255.0 * (1.0 - opacity)).round().astype(np.uint8)
    data = io.BytesIO()
    imageio.imwrite(data, pixels, extension=".png")
    to.write_bytes(data.getvalue())


@contextlib.contextmanager
def _page(server: Handle, width: int, height: int) -> Iterator[Handle]:
    """Yield an open page, or one in a headless browser that is closed afterwards."""
    clients = server.get_clients()
    if clients:
        yield next(iter(clients.values()))
        return
    browser = next(filter(None, (shutil.which(name) for name in BROWSERS)), None)
    if browser is None:
        raise BackendError(
            f"a screenshot needs a browser, and none is open or installed ({', '.join(BROWSERS[:3])}, ...): open "
            f"{address_of(server)}, or install one."
        )
    with tempfile.TemporaryDirectory(prefix="linksweep-browser-", ignore_cleanup_errors=True) as folder:
        command = [browser, *FLAGS, *_sandbox(), f"--user-data-dir={folder}", f"--window-size={width},{height + 120}"]
        process = subprocess.Popen(
            [*command, address_of(server)],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, stdin=subprocess.DEVNULL,
        )  # fmt: skip
        try:
            deadline = time.monotonic() + PATIENCE
            while not server.get_clients():
                if process.poll() is not None or time.monotonic() > deadline:
                    raise BackendError(
                        f"{browser} did not open {address_of(server)}: open it in a browser, then try again."
                    )
                time.sleep(0.05)
            yield next(iter(server.get_clients().values()))
        finally:
            process.terminate()
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def _sandbox() -> tuple[str, ...]:
    """Chromium does not run as root with its sandbox; the page that it opens here is our own."""
    return ("--no-sandbox",) if hasattr(os, "geteuid") and os.geteuid() == 0 else ()


def record(
    server: Handle, path: str | Path, times: np.ndarray, draw: Callable[[float], None], dark: bool = False,
    plots: str = "",
) -> None:  # fmt: skip
    """Write the scene as HTML: as it is, or as `draw` draws it at each of the times (seconds).

    plots: HTML to show beside the scene.
    """
    path = Path(path)
    if path.suffix.lower() not in (".html", ".htm"):
        raise ArgumentError(f"the recording {path} has the suffix {path.suffix!r}, expected .html.")
    if len(times) > MOST_FRAMES:
        raise ArgumentError(
            f"the recording would have {len(times):,} frames, expected at most {MOST_FRAMES:,}: reduce fps."
        )
    if len(times):
        draw(float(times[0]))
    serializer = server.get_scene_serializer()
    try:
        for before, now in pairwise(times):
            serializer.insert_sleep(float(now - before))
            draw(float(now))
    except BaseException:
        serializer.serialize()  # ends the recording
        raise
    html = serializer.as_html(dark_mode=dark).replace("<title>Viser</title>", "<title>linksweep</title>", 1)
    if plots:
        before, end, after = html.rpartition("</body>")
        html = before + plots + end + after if end else html + plots

    def write(to: Path) -> None:
        to.write_text(html, encoding="utf-8")

    write_atomically(path, write)
