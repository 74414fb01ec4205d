"""Writing result files so that a reader never sees half of one."""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

from linksweep.errors import ArgumentError
from linksweep.support.interrupts import Uninterrupted

Table = dict[str, Any]  # read from TOML or JSON: texts, numbers, truth values, lists and tables of these
Json: TypeAlias = "str | float | Sequence[Json] | Mapping[str, Json] | None"  # to be written so
Facts = dict[str, Json]


def write_atomically(path: Path, write: Callable[[Path], None], sync: bool = False) -> None:
    """Let `write` fill a temporary file beside `path`, then move it into place in one step.

    If anything fails, `path` is as it was before and the temporary file is gone, and so are folders made for it. A
    signal may end `write`, and nothing else: not the tidying up after a first one. A symbolic link stays, and the file
    it leads to is replaced. sync: the file is on the disk before it is moved, and is whole after a power failure.
    """
    path = real_output(path)
    with Uninterrupted() as signals:
        made = [folder for folder in path.parents if not folder.exists()]
        temporary = None
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            # The same ending: Matplotlib chooses the format by it.
            handle, name = tempfile.mkstemp(prefix=f".{path.stem}.", suffix=path.suffix, dir=path.parent)
            os.close(handle)
            temporary = Path(name)
            signals.interruptible(write, temporary)
            temporary.chmod(0o666 & ~_umask())
            if sync:
                _sync(temporary, os.O_RDWR)
            temporary.replace(path)
            if sync:
                with contextlib.suppress(OSError):  # not every system lets folders be opened
                    _sync(path.parent, os.O_RDONLY)
        except OSError as reason:
            expected = "a folder that takes files" if temporary is None else "room and permission"
            raise ArgumentError(
                f"The file {path} cannot be written ({reason.strerror}), expected {expected}: choose another folder."
            ) from reason
        finally:
            if temporary is not None:
                temporary.unlink(missing_ok=True)
            for folder in made:  # only empty ones go: those of a file that was not written
                with contextlib.suppress(OSError):
                    folder.rmdir()


def real_output(path: Path) -> Path:
    """The file that a path leads to through symbolic links. Refuse devices and pipes, which a file would replace."""
    target = Path(os.path.realpath(path)) if path.is_symlink() else path
    if target.is_symlink() or (target.exists() and not target.is_file() and not target.is_dir()):
        kind = "a link that leads to itself" if target.is_symlink() else "a device or pipe"
        raise ArgumentError(f"The output {path} is {kind}, expected a file: choose another.")
    return target


def _sync(path: Path, flags: int) -> None:
    handle = os.open(path, flags)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _umask() -> int:
    """The process's umask; mkstemp makes files private, and a result is an ordinary file."""
    mask = os.umask(0o077)
    os.umask(mask)
    return mask
