"""Where a mesh lies that a description names: package://, file://, model://, or a path beside the description.

A package is looked for in the folders of ROS_PACKAGE_PATH and AMENT_PREFIX_PATH, then from the description's own
folder upward: a folder of its name, a folder whose package.xml says its name, and last, where a package was renamed,
the rest of the path alone. Nothing is ever fetched from a network.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import unquote

SCHEMES = ("package", "model", "file")
LARGEST_MANIFEST = 100_000


def is_address(filename: str) -> bool:
    """Whether a name is one of something that is no file of this machine, such as https://."""
    scheme, separator, _ = filename.strip().partition("://")
    return bool(separator) and scheme.lower() not in SCHEMES


def find_mesh(filename: str, description: Path | None) -> Path | None:
    """The file, or None where there is none. `description`: the file that names it."""
    for place in _places(filename, description):
        try:
            if place.is_file():
                return place
        except (OSError, ValueError):  # a name that the system does not take
            continue
    return None


def _places(filename: str, description: Path | None) -> Iterator[Path]:
    filename = filename.strip().replace("\\", "/")
    scheme, separator, rest = filename.partition("://")
    scheme = scheme.lower() if separator else ""
    if scheme and scheme not in SCHEMES:
        return
    folder = description.parent if description is not None else Path()
    if scheme == "file":
        rest = unquote(rest.removeprefix("localhost"))
        yield Path(rest) if rest.startswith("/") else folder / rest
        return
    if not scheme:
        yield Path(filename) if filename.startswith("/") else folder / filename
        return
    package, _, inside = unquote(rest).strip("/").partition("/")
    if not package or not inside:
        return
    for root in _package_roots(package, folder):
        yield root / inside
    for above in (folder, *folder.parents):
        yield above / inside


def _package_roots(package: str, folder: Path) -> Iterator[Path]:
    for entry in filter(None, os.environ.get("ROS_PACKAGE_PATH", "").split(os.pathsep)):
        path = Path(entry)
        yield path / package
        if _is_package(path, package):
            yield path
    for entry in filter(None, os.environ.get("AMENT_PREFIX_PATH", "").split(os.pathsep)):
        yield Path(entry) / "share" / package
    for above in (folder, *folder.parents):
        if _is_package(above, package):
            yield above
        yield above / package


def _is_package(folder: Path, package: str) -> bool:
    if folder.name == package:
        return True
    manifest = folder / "package.xml"
    try:
        if not manifest.is_file() or manifest.stat().st_size > LARGEST_MANIFEST:
            return False
        found = re.search(rb"<name>\s*([^<\s]+)\s*</name>", manifest.read_bytes())
    except OSError:
        return False
    return found is not None and found[1].decode("utf-8", "replace") == package
