"""The web server behind a scene: viser, by default for this machine only, protected by a token in the address.

Any web page in the user's browser can send requests to local servers, and any process of the machine can connect to
them. So a request must contain the token, which only the printed address has. Its Origin must be the host it was sent
to, and a server for this machine only answers to names of this machine.
"""

from __future__ import annotations

import contextlib
import io
import logging
import os
import secrets
import socket
import sys
import threading
import webbrowser
from collections.abc import Callable, Iterator
from dataclasses import replace
from http import HTTPStatus
from typing import Any
from urllib.parse import urlsplit

from linksweep.errors import ArgumentError, BackendError
from linksweep.support.display import in_notebook
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
