"""The web server behind a scene: viser, by default for this machine only, protected by a token in the address.

Any web page in the user's browser can send requests to local servers, and any process of the machine can connect to
them. So a request must contain the token, which only the printed address has. Its Origin must be the host it was sent
to, and a server for this machine only answers to names of this machine.

Screenshots are drawn by a page: one that is open, or one in a headless browser that is started for it. Recordings are
HTML files that play without Python or network.
"""

from __future__ import annotations

import contextlib
import io
import logging
import os
import secrets
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time
import webbrowser
from collections.abc import Callable, Iterator
from dataclasses import replace
from http import HTTPStatus
from itertools import pairwise
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import numpy as np

from linksweep.errors import ArgumentError, BackendError
from linksweep.support.checks import whole_number
from linksweep.support.display import in_notebook
from linksweep.support.files import write_atomically
from linksweep.support.messages import shown

Handle = Any  # an object of viser, which is optional: a server, an element of the page, an event
LOCAL = "127.0.0.1"
FIRST_PORT = 8080  # the search for a free port starts here
BRAND = (0, 114, 178)
TOKEN = 16  # random bytes in an address
OWN_NAMES = ("localhost", "127.0.0.1", "::1")
_starting = threading.Lock()


def start_server(host: str = LOCAL, port: int | None = None) -> Handle:
    """Start a viser.ViserServer; by default on the first free port from 8080."""
    viser = viser_module()
    _check_address(host, port)
    logging.getLogger("websockets.server").addFilter(_is_relevant)
    guard = Guard(host)
    with quiet(), _guarded_by(guard):
        server = viser.ViserServer(host=host, port=FIRST_PORT if port is None else port, verbose=False)
    if not guard.in_place:
        with quiet():
            server.stop()
        raise BackendError("This version of viser cannot be protected by a token: install viser 1.1.")
    server.linksweep_token = guard.token
    server.request_share_url = _refuse_sharing  # a page must not be able to publish the scene
    server.gui.configure_theme(show_logo=False, show_share_button=False, control_width="large", brand_color=BRAND)
    return server


class Guard:
    """Access control: only requests with the token, from a page of the server itself, reach the server."""

    def __init__(self, host: str):
        self.token = secrets.token_urlsafe(TOKEN)
        self.names = (*OWN_NAMES, host.lower())
        self.local = host in OWN_NAMES or host.startswith("127.")
        self.in_place = False

    def refusal(self, path: str, hosts: list[str], origins: list[str]) -> str:
        """Return why a request with this path and these Host and Origin headers is refused, or "" if it is allowed."""
        first = path.partition("?")[0].strip("/").partition("/")[0]
        if not secrets.compare_digest(first.encode(), self.token.encode()):
            return "open the address that linksweep printed, which ends in a token"
        if len(hosts) != 1 or len(origins) > 1:
            return "the request names several hosts or origins"
        try:
            name = urlsplit(f"//{hosts[0]}").hostname or ""
            origin = urlsplit(origins[0]).netloc.lower() if origins else hosts[0].lower()
        except ValueError:
            return "the request names no host"
        if not name or "@" in hosts[0]:
            return "the request names no host"
        if self.local and name not in self.names and not name.endswith(".localhost"):
            return "this viewer answers only to names of its own machine"
        if origin != hosts[0].lower():
            return "the request comes from another page"
        return ""

    def guarded(self, answer: Callable[[Handle, Handle], Handle]) -> Callable[[Handle, Handle], Handle]:
        """Wrap viser's `answer(connection, request)` with this check; the token is removed from the path."""
        self.in_place = True

        def checked(connection: Handle, request: Handle) -> Handle:
            reason = self.refusal(request.path, request.headers.get_all("Host"), request.headers.get_all("Origin"))
            if reason:
                return connection.respond(HTTPStatus.FORBIDDEN, f"Refused: {reason}.\n")
            path = request.path.removeprefix(f"/{self.token}") or "/"
            response = answer(connection, replace(request, path=path))
            if response is not None:
                response.headers["Referrer-Policy"] = "no-referrer"  # keeps the token from linked pages
                response.headers["X-Content-Type-Options"] = "nosniff"
            return response

        return checked


@contextlib.contextmanager
def _guarded_by(guard: Guard) -> Iterator[None]:
    """Protect the server that viser starts in this context: viser has no parameter for a request handler.

    The handler that viser passes to `websockets.serve` is wrapped. Servers of other packages are left alone.
    """
    from websockets.asyncio import server as websockets  # pyright: ignore[reportMissingImports]

    with _starting:
        serve = websockets.serve

        def guarded_serve(*args: Handle, **options: Handle) -> Handle:
            answer: Handle = options.get("process_request")
            if str(getattr(answer, "__module__", "")).startswith("viser."):
                options["process_request"] = guard.guarded(answer)
            return serve(*args, **options)

        websockets.serve = guarded_serve
        try:
            yield
        finally:
            websockets.serve = serve


def viser_module() -> Handle:
    """Return the module viser; raise BackendError if it is not installed."""
    try:
        import viser  # pyright: ignore[reportMissingImports]
    except ImportError as missing:
        raise BackendError(
            "The viewer needs viser, which is not installed: pip install 'linksweep[viewer]'."
        ) from missing
    return viser


def _is_relevant(record: logging.LogRecord) -> bool:
    """Filter messages about connections that browsers open and do not use, which websockets logs as errors."""
    return record.getMessage() not in ("opening handshake failed", "connection rejected (200 OK)")


def _refuse_sharing(*args: object, **options: object) -> None:
    return None


def _check_address(host: object, port: object) -> None:
    """Raise if the address cannot be bound: viser would try a thousand other ports, or wait forever."""
    if not isinstance(host, str) or not host:
        raise ArgumentError(f"host is {shown(host)}, expected a name or address, such as '127.0.0.1' or '0.0.0.0'.")
    if port is not None and (isinstance(port, bool) or not isinstance(port, int) or not 0 <= port < 65536):
        raise ArgumentError(f"port is {shown(port)}, expected an integer from 1 to 65535, or None for any free port.")
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(host, port or 0, type=socket.SOCK_STREAM)[0]
        with socket.socket(family, kind, protocol) as trial:
            trial.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            trial.bind(address)
    except (OSError, UnicodeError) as error:
        reason = getattr(error, "strerror", None) or error
        where = f"host {shown(host)}" + ("" if port is None else f", port {port}")
        raise ArgumentError(
            f"the viewer cannot listen on {where} ({reason}), expected an address of this machine and a free port."
        ) from None


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """Suppress what viser prints when it starts and stops, also in notebooks, where rich bypasses stdout."""
    import rich

    console = rich.get_console()
    before, console.quiet = console.quiet, True
    try:
        with contextlib.redirect_stdout(io.StringIO()):
            yield
    finally:
        console.quiet = before


def address_of(server: Handle) -> str:
    """Return the address of the page for a browser on this machine."""
    host = server.get_host()
    host = "localhost" if host in ("0.0.0.0", "::", "") else host
    return f"http://{f'[{host}]' if ':' in host else host}:{server.get_port()}/{server.linksweep_token}/"


def directions(server: Handle) -> str:
    """Return instructions for opening the page, including a tunnel for users connected by SSH."""
    port = server.get_port()
    text = f"Viewer: {address_of(server)}"
    if server.get_host() != LOCAL:
        return f"{text} (open to everyone who can reach {server.get_host()} and has this address)"
    if os.environ.get("SSH_CONNECTION"):
        connection = os.environ["SSH_CONNECTION"].split()
        machine = connection[2] if len(connection) > 2 else socket.gethostname()
        text += f"\nFirst run on your own machine: ssh -L {port}:{LOCAL}:{port} {machine}"
    return text


def open_browser(server: Handle, wanted: bool | None) -> None:
    """Open the page in a browser; by default only if there is a display and no notebook that shows the page."""
    if wanted is None:
        screen = sys.platform in ("darwin", "win32") or os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY")
        wanted = bool(screen) and not os.environ.get("SSH_CONNECTION") and not in_notebook()
    if wanted:
        webbrowser.open(address_of(server))


# ---- screenshots and recordings -----------------------------------------------------------------------------------

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
