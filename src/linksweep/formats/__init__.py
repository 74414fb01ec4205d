"""Readers of robot descriptions; `load_model` chooses one by the suffix and imports it when needed."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from linksweep.description.model import Model
from linksweep.errors import ArgumentError, DescriptionError
from linksweep.support.messages import shown

LARGEST_FILE = 20_000_000
"""Bytes; the largest URDF of example-robot-data (tiago_dual) has 0.2 MB."""

LONGEST_PATH = 4096


def load_model(
    path: str | os.PathLike[str], *, rigid: bool = False, root: str | os.PathLike[str] | None = None,
    couple: bool = False,
) -> Model:  # fmt: skip
    """Read a robot from a URDF or MJCF file or from a DH table in TOML.

    `rigid`: accept a URDF without joints that move, because its base will. `root`: a folder that holds all files of the
    description, see `read_mjcf`. `couple`: joints that the file ties to others follow them. Raises
    `DescriptionError`, with file and line, where this cannot be a robot.
    """
    file = _checked_path(path)
    folder = _checked_root(root, file)
    suffix = file.suffix.lower()
    if suffix == ".toml":
        from linksweep.formats.toml import read_toml

        return read_toml(file)
    if suffix == ".mjcf" or (suffix == ".xml" and _is_mjcf(file)):
        from linksweep.formats.mjcf import read_mjcf

        return read_mjcf(file, root=folder, couple=couple)
    if suffix in (".urdf", ".xml", ".xacro"):
        from linksweep.formats.urdf import read_urdf

        return read_urdf(file, rigid=rigid, couple=couple)
    if not file.exists():
        read_bytes(file)
    raise DescriptionError(
        f"{file}: the suffix {file.suffix!r} is not known, expected .urdf, .xml, .mjcf or .toml: rename the file or "
        "convert it."
    )


def _checked_path(path: object) -> Path:
    if not isinstance(path, (str, os.PathLike)):
        raise DescriptionError(f"the path is {shown(path)}, expected text or a Path: give the name of a file.")
    if len(os.fspath(path)) > LONGEST_PATH:
        raise DescriptionError(f"the path has more than {LONGEST_PATH} characters, expected the name of a file.")
    return Path(path)


def _checked_root(root: object, file: Path) -> Path | None:
    if root is None:
        return None
    folder = Path(root) if isinstance(root, (str, os.PathLike)) else None
    if folder is None or not folder.is_dir() or not Path(os.path.realpath(file)).is_relative_to(folder.resolve()):
        raise ArgumentError(
            f"root is {shown(root)}, expected a folder that holds {shown(os.fspath(file))}: name one above the file."
        )
    return folder


def _is_mjcf(file: Path) -> bool:
    """Whether the root element is MuJoCo's; what is wrong with the file, its reader says."""
    from linksweep.formats.xml import parse

    try:
        return parse(read_bytes(file), str(file)).tag == "mujoco"
    except DescriptionError:
        return b"<mujoco" in read_bytes(file)[:10_000]


def read_bytes(file: Path, largest: int = LARGEST_FILE) -> bytes:
    """The content of a regular file, refusing what would hang or fill memory."""
    try:
        status = os.stat(file)
        if stat.S_ISDIR(status.st_mode):
            raise DescriptionError(f"{file}: this is a directory, expected a file: name the description inside it.")
        if not stat.S_ISREG(status.st_mode):
            raise DescriptionError(f"{file}: this is a device or pipe, expected a regular file: save it to a file.")
        check_size(status.st_size, str(file), largest)
        with open(file, "rb") as stream:
            data = stream.read(largest + 1)
    except FileNotFoundError:
        raise DescriptionError(f"{file}: there is no such file, expected a description: check the path.") from None
    except DescriptionError:  # a ValueError too, but already a sentence
        raise
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise DescriptionError(f"{file}: the file cannot be read ({reason}): check name and permissions.") from None
    check_size(len(data), str(file), largest)
    return data


def check_size(size: int, source: str, largest: int = LARGEST_FILE) -> None:
    if size == 0:
        raise DescriptionError(f"{source}: the description is empty, expected a robot: check how it was written.")
    if size > largest:
        raise DescriptionError(
            f"{source}: the description has {size / 1e6:.0f} MB, expected at most {largest / 1e6:.0f} MB: "
            "remove what is not the robot's mechanics."
        )
