"""ROS packages: where they are looked for, and paths such as package://name/urdf/arm.urdf and file:///opt/arm.urdf.

The process that expands xacro files (xacro_child.py) imports this module too.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Sequence
from urllib.parse import unquote

from linksweep.errors import ArgumentError
from linksweep.support.messages import shown

MANIFESTS = ("package.xml", "manifest.xml")
MAX_DEPTH = 8  # folders between a search folder and a package
_NAME = re.compile(rb"<name>\s*([^<\s]+)\s*</name>")
_LARGEST_MANIFEST = 1_000_000


def checked_folders(packages: object) -> list[str]:
    """Return the argument `packages` as absolute paths."""
    entries = [packages] if isinstance(packages, (str, os.PathLike)) else packages
    if not isinstance(entries, Sequence) or not all(
        isinstance(entry, (str, os.PathLike)) and os.path.isdir(entry) for entry in entries
    ):
        raise ArgumentError(f"packages is {shown(packages)}, expected existing folders that contain ROS packages.")
    return [os.path.abspath(entry) for entry in entries]


def search_folders() -> list[str]:
    """Return the folders of ROS_PACKAGE_PATH, and `share` of those of AMENT_PREFIX_PATH, if they exist."""
    ros = os.environ.get("ROS_PACKAGE_PATH", "").split(os.pathsep)
    ament = [os.path.join(prefix, "share") for prefix in _entries("AMENT_PREFIX_PATH")]
    return [os.path.abspath(folder) for folder in (*ros, *ament) if folder and os.path.isdir(folder)]


def _entries(variable: str) -> list[str]:
    return [entry for entry in os.environ.get(variable, "").split(os.pathsep) if entry]


def packages_around(file: str) -> list[str]:
    """Return the folders above a file that are ROS packages, the nearest first."""
    folders, folder = [], os.path.dirname(os.path.abspath(file))
    while True:
        if package_name(folder) is not None:
            folders.append(folder)
        if folder == os.path.dirname(folder):
            return folders
        folder = os.path.dirname(folder)


def package_name(folder: str) -> str | None:
    """Return the name of the ROS package in a folder, or None if it has no manifest."""
    manifest = os.path.join(folder, MANIFESTS[0])
    try:
        if os.path.isfile(manifest):
            with open(manifest, "rb") as stream:
                name = _NAME.search(stream.read(_LARGEST_MANIFEST))
            return name[1].decode("utf-8", "replace") if name else os.path.basename(folder)
        return os.path.basename(folder) if os.path.isfile(os.path.join(folder, MANIFESTS[1])) else None
    except OSError:
        return None


def find_package(name: str, folders: Iterable[str]) -> str | None:
    """Return the folder of a ROS package: one of `folders`, or below one of them, at most MAX_DEPTH deep."""
    if not name or "/" in name or "\\" in name or name in (".", ".."):
        return None
    folders = list(dict.fromkeys(folders))
    for folder in folders:  # the usual places first, because a search of a workspace takes long
        for candidate in (os.path.join(folder, name), folder):
            if package_name(candidate) == name:
                return candidate
    for folder in folders:
        for candidate in _packages_below(folder, MAX_DEPTH):
            if package_name(candidate) == name:
                return candidate
    return next((path for folder in folders if os.path.isdir(path := os.path.join(folder, name))), None)


def _packages_below(folder: str, depth: int) -> Iterator[str]:
    """Yield the folders with a manifest; packages do not contain packages."""
    if any(os.path.isfile(os.path.join(folder, manifest)) for manifest in MANIFESTS):
        yield folder
        return
    if depth == 0:
        return
    try:
        with os.scandir(folder) as entries:
            inner = sorted(entry.path for entry in entries if entry.is_dir() and not entry.name.startswith("."))
    except OSError:
        return
    for path in inner:
        yield from _packages_below(path, depth - 1)


def resolved_uri(path: str, folders: Iterable[str] = ()) -> str | None:
    """Return the file that a package:// or file:// URI names, `path` itself without a scheme, None if there is none.

    Packages are looked for in `folders`, then in those of ROS_PACKAGE_PATH and AMENT_PREFIX_PATH.
    """
    scheme, separator, rest = path.partition("://")
    if not separator or scheme.lower() not in ("package", "file"):
        return path
    rest = unquote(rest)
    if scheme.lower() == "file":
        return rest.removeprefix("localhost")
    name, _, inside = rest.strip("/").partition("/")
    folder = find_package(name, [*folders, *search_folders()])
    return None if folder is None or not inside else os.path.join(folder, inside)
