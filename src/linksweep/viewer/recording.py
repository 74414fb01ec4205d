"""Pictures as PNG, and motions as one HTML file that needs neither Python nor a network to be watched.

Pictures are drawn by a page: one that is open, or a browser of this machine that is started for it, without a window.
"""

from __future__ import annotations

import contextlib
import io
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from linksweep.errors import ArgumentError, BackendError
from linksweep.support.files import write_atomically

from .server import address_of

if TYPE_CHECKING:
    from .server import Handle

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
PATIENCE = 300.0  # seconds: drawing without graphics hardware is slow
MOST_MOMENTS = 20_000


def screenshot(server: Handle, path: str | Path, width: int, height: int, transparent: bool = False) -> None:
    """Write what the pages show, without their controls, as PNG."""
    path = Path(path)
    if path.suffix.lower() != ".png":
        raise ArgumentError(f"the picture {path} ends in {path.suffix!r}, expected .png: name it so.")
    for name, value in (("width", width), ("height", height)):
        if isinstance(value, bool) or not isinstance(value, int) or not 16 <= value <= 8192:
            raise ArgumentError(f"{name} is {value!r}, expected pixels, a whole number from 16 to 8192.")
    with _page(server, width, height) as client:
        try:
            # twice: the first picture may be drawn before everything in it has arrived
            client.get_render(height, width, transport_format="jpeg", timeout=PATIENCE)
            pixels = client.get_render(height, width, transport_format="png", timeout=PATIENCE)
        except (RuntimeError, TimeoutError) as error:
            raise BackendError(f"the page drew no picture ({error}): see whether it is open and in front.") from error
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
    """A page that is open, or one in a browser that is started for it and ended afterwards."""
    clients = server.get_clients()
    if clients:
        yield next(iter(clients.values()))
        return
    browser = next(filter(None, (shutil.which(name) for name in BROWSERS)), None)
    if browser is None:
        raise BackendError(
            f"a picture is drawn by a browser, and none is open or found ({', '.join(BROWSERS[:3])}, ...): open "
            f"{address_of(server)}, or install one."
        )
    with tempfile.TemporaryDirectory(prefix="linksweep-browser-", ignore_cleanup_errors=True) as folder:
        command = [browser, *FLAGS, *_sandbox(), f"--user-data-dir={folder}", f"--window-size={width},{height + 120}"]
        process = subprocess.Popen(
            [*command, address_of(server)],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            stdin=subprocess.DEVNULL,
        )
        try:
            until = time.monotonic() + PATIENCE
            while not server.get_clients():
                if process.poll() is not None or time.monotonic() > until:
                    raise BackendError(
                        f"{browser} did not open {address_of(server)}: open it yourself, then try again."
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
    """Chromium refuses to run as root with its sandbox; the page it opens here is our own."""
    import os

    return ("--no-sandbox",) if hasattr(os, "geteuid") and os.geteuid() == 0 else ()


def record(
    server: Handle, path: str | Path, moments: np.ndarray, draw: Callable[[float], None], dark: bool = False
) -> None:
    """Write the scene as HTML: as it stands, or as `draw` draws it at each of the moments (seconds)."""
    path = Path(path)
    if path.suffix.lower() not in (".html", ".htm"):
        raise ArgumentError(f"the recording {path} ends in {path.suffix!r}, expected .html: name it so.")
    if len(moments) > MOST_MOMENTS:
        raise ArgumentError(
            f"the recording would have {len(moments):,} moments, expected at most {MOST_MOMENTS:,}: take fewer fps."
        )
    if len(moments):
        draw(float(moments[0]))
    serializer = server.get_scene_serializer()
    try:
        for before, now in pairwise(moments):
            serializer.insert_sleep(float(now - before))
            draw(float(now))
    except BaseException:
        serializer.serialize()  # or it would go on recording for ever
        raise
    html = serializer.as_html(dark_mode=dark).replace("<title>Viser</title>", "<title>linksweep</title>", 1)
    write_atomically(path, lambda to: _write_text(to, html))


def _write_text(to: Path, text: str) -> None:
    to.write_text(text, encoding="utf-8")
