"""Atomic writing of result files: readers see a complete file or none."""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

from linksweep.errors import ArgumentError
from linksweep.support.interrupts import Uninterrupted

Table = dict[str, Any]  # read from TOML or JSON: strings, numbers, booleans, lists and tables of these
Json: TypeAlias = "str | float | Sequence[Json] | Mapping[str, Json] | None"  # to be written
Facts = dict[str, Json]


def write_atomically(path: Path, write: Callable[[Path], None], sync: bool = False) -> None:
    """Call `write` with a temporary file beside `path`, then rename that file to `path` in one step.

    If anything fails, `path` is unchanged, and the temporary file and folders created for it are removed. A signal can
    interrupt `write`, but not the clean-up. A symbolic link is kept, and the file that it leads to is replaced. sync:
    flush the file to disk before it is renamed, so that it is complete after a power failure.
    """
    path = real_output(path)
    with Uninterrupted() as signals:
        created = [folder for folder in path.parents if not folder.exists()]
        temporary = None
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            # The same suffix: Matplotlib chooses the format by it.
            handle, name = tempfile.mkstemp(prefix=f".{path.stem}.", suffix=path.suffix, dir=path.parent)
            os.close(handle)
            temporary = Path(name)
            signals.interruptible(write, temporary)
            temporary.chmod(0o666 & ~_umask())
            if sync:
                _sync(temporary, os.O_RDWR)
            temporary.replace(path)
            if sync:
                with contextlib.suppress(OSError):  # not every system can open folders
                    _sync(path.parent, os.O_RDONLY)
        except OSError as reason:
            expected = "a writable folder" if temporary is None else "free space and permission"
            raise ArgumentError(
                f"The file {path} cannot be written ({reason.strerror}), expected {expected}."
            ) from reason
        finally:
            if temporary is not None:
                temporary.unlink(missing_ok=True)
            for folder in created:  # only empty ones are removed, when no file was written
                with contextlib.suppress(OSError):
                    folder.rmdir()


def real_output(path: Path) -> Path:
    """Return the file that a path leads to through symbolic links. Devices and pipes raise `ArgumentError`."""
    target = Path(os.path.realpath(path)) if path.is_symlink() else path
    if target.is_symlink() or (target.exists() and not target.is_file() and not target.is_dir()):
        kind = "a link that leads to itself" if target.is_symlink() else "a device or pipe"
        raise ArgumentError(f"The output {path} is {kind}, expected a file.")
    return target


def _sync(path: Path, flags: int) -> None:
    handle = os.open(path, flags)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _umask() -> int:
    """Return the umask of the process: mkstemp creates private files, but results are ordinary ones."""
    mask = os.umask(0o077)
    os.umask(mask)
    return mask
