"""Readers of robot descriptions; `load_model` chooses one by the suffix and imports it when needed."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from linksweep.errors import DescriptionError
from linksweep.model import Model

LARGEST_FILE = 20_000_000
"""Bytes; the largest URDF of example-robot-data (tiago_dual) has 0.2 MB."""


def load_model(path: str | os.PathLike[str]) -> Model:
    """Read a robot from a URDF file or from a DH table in TOML.

    Raises `DescriptionError`, with file and line, where the description cannot be a robot.
    """
    if not isinstance(path, (str, os.PathLike)):
        raise DescriptionError(f"the path is {path!r}, expected text or a Path: give the name of a file.")
    file = Path(path)
    suffix = file.suffix.lower()
    if suffix == ".toml":
        from linksweep.formats.toml import read_toml

        return read_toml(file)
    if suffix in (".urdf", ".xml", ".xacro"):
        from linksweep.formats.urdf import read_urdf

        return read_urdf(file)
    if not file.exists():
        read_bytes(file)
    raise DescriptionError(
        f"{file}: the suffix {file.suffix!r} is not known, expected .urdf, .xml or .toml: rename the file or "
        "convert it."
    )


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
