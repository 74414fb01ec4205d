"""Readers of robot models: `load_model` chooses one by suffix or content, and imports it when needed."""

from __future__ import annotations

import io
import os
import re
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO, TypeAlias

from linksweep.errors import ArgumentError, DescriptionError
from linksweep.model.formats.files import LARGEST_FILE, Element, check_size, parse, read_bytes
from linksweep.model.model import Model
from linksweep.support.messages import shown

MAX_PATH = 4096  # characters
SUFFIXES = (".urdf", ".xml", ".mjcf", ".xacro", ".sdf", ".toml")
Folder: TypeAlias = "str | os.PathLike[str]"
Source: TypeAlias = "str | bytes | os.PathLike[str] | IO[str] | IO[bytes]"


def load_model(
    source: Source,
    *,
    rigid: bool = False,
    root: Folder | None = None,
    couple: bool = False,
    xacro_args: Mapping[str, object] | None = None,
    packages: Folder | Sequence[Folder] = (),
) -> Model:
    """Read a robot from a URDF, xacro, MJCF or TOML file, from an open file, or from URDF, xacro or MJCF text.

    Text is a str or bytes that begins with `<`. `rigid`: accept a robot without moving joints, for a base that will
    float. `root`: a folder that contains all files of the model, see `read_mjcf`. `couple`: mimic joints follow their
    leaders. `xacro_args`: arguments of a xacro file. `packages`: folders in which `$(find package)` looks first.
    Raises `DescriptionError` with file and line if this is not a valid robot.
    """
    data, name = text_of(source)
    file = folder = None
    if data is None:
        file = _checked_path(source)
        folder = _checked_root(root, file)
        name, suffix = str(file), file.suffix.lower()
        if suffix == ".toml":
            from linksweep.model.formats.dh import read_toml

            return read_toml(file)
        if suffix not in SUFFIXES:
            if not file.exists():
                read_bytes(file)
            raise DescriptionError(f"{file}: the suffix {file.suffix!r} is not known, expected {', '.join(SUFFIXES)}.")
        if suffix == ".mjcf":
            from linksweep.model.formats.mjcf import read_mjcf

            return read_mjcf(file, root=folder, couple=couple)
        data = read_bytes(file)
    root_element = _root_element(data, name)
    if root_element is not None and root_element.tag == "sdf":
        from linksweep.model.formats.sdf import read_sdf

        return read_sdf(data, name, couple)
    if (root_element is None and b"<mujoco" in data[:10_000]) or (
        root_element is not None and root_element.tag == "mujoco"
    ):
        from linksweep.model.formats.mjcf import read_mjcf

        return read_mjcf(file, root=folder, couple=couple) if file is not None else _read_mjcf_text(data, name, couple)
    from linksweep.model.formats.urdf import read_urdf, uses_xacro

    is_xacro = file is not None and file.suffix.lower() == ".xacro"
    if xacro_args or is_xacro or (root_element is not None and uses_xacro(root_element)):
        from linksweep.model.formats.xacro_files import expand_xacro

        data = expand_xacro(data, name, file, xacro_args or {}, packages, folder)
    return read_urdf(data, rigid=rigid, couple=couple, source=name)


def text_of(source: object) -> tuple[bytes | None, str]:
    """Return the content of text or of an open file as UTF-8, and its name in messages; None for a path."""
    name = "robot model text"
    if isinstance(source, io.IOBase) or (hasattr(source, "read") and not isinstance(source, os.PathLike)):
        name = str(getattr(source, "name", "open file"))
        source = source.read(LARGEST_FILE + 1)  # type: ignore[attr-defined]
        if not isinstance(source, (str, bytes)):
            raise DescriptionError(f"{name}: read() returned {shown(source)}, expected text or bytes.")
    elif not is_text(source):
        return None, ""
    if isinstance(source, str):
        # decoded already, so an encoding in its XML declaration no longer applies
        source = _without_encoding(source.lstrip("\ufeff")).encode("utf-8", "surrogatepass")
    data = bytes(source)  # type: ignore[arg-type]
    check_size(len(data), name)
    return data, name


def is_text(source: object) -> bool:
    """Whether `source` is the text of a robot model rather than a path: str or bytes that begin with `<`."""
    if isinstance(source, (bytes, bytearray)):
        return source[:100].lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"<")
    return isinstance(source, str) and source[:100].lstrip("\ufeff \t\r\n").startswith("<")


def _without_encoding(text: str) -> str:
    return re.sub(r"""^(\s*<\?xml[^>]*?)\s+encoding\s*=\s*("[^"]*"|'[^']*')""", r"\1", text, count=1)


def _root_element(data: bytes, name: str) -> Element | None:
    """Return the root element, or None for invalid XML, which the reader reports."""
    try:
        return parse(data, name)
    except DescriptionError:
        return None


def _read_mjcf_text(data: bytes, name: str, couple: bool) -> Model:
    """Read MJCF text. It cannot refer to other files, because it has no folder."""
    from linksweep.model.formats.mjcf import read_mjcf

    with tempfile.TemporaryDirectory(prefix="linksweep-") as folder:
        file = Path(folder) / "robot.xml"
        file.write_bytes(data)
        try:
            return read_mjcf(file, root=Path(folder), couple=couple)
        except DescriptionError as error:
            raise DescriptionError(str(error).replace(str(file), name)) from None


def _checked_path(path: object) -> Path:
    if not isinstance(path, (str, os.PathLike)):
        raise DescriptionError(
            f"the robot model is {shown(path)}, expected a path, an open file, or text that begins with '<'."
        )
    if len(os.fspath(path)) > MAX_PATH:
        raise DescriptionError(f"the path has more than {MAX_PATH} characters, expected the name of a file.")
    return Path(path)


def _checked_root(root: object, file: Path) -> Path | None:
    if root is None:
        return None
    folder = Path(root) if isinstance(root, (str, os.PathLike)) else None
    if folder is None or not folder.is_dir() or not Path(os.path.realpath(file)).is_relative_to(folder.resolve()):
        raise ArgumentError(f"root is {shown(root)}, expected a folder that contains {shown(os.fspath(file))}.")
    return folder
