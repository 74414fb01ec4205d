"""A folder of files that survive the process: compiled code, so that a new process need not compile again.

Two kinds of entry are stored, each under a key of its own.

- An *object* is machine code, under a hash of the LLVM IR it was compiled from (`backends/llvm.py`). Editing a source
  file that does not change the IR recompiles nothing.
- A *function* names the object of a function of a robot, under a hash of everything that tracing depends on, all
  sources included (`functions/function.py`). It saves tracing.

Code that is read back is executed, so it must be complete (SHA-256 over everything) and only this user can have
written it (private folder, no symbolic links). Anything else is a cache miss, never an exception. `LINKSWEEP_CACHE`
moves the folder, or turns the cache off ("off", "0" or empty).
"""

from __future__ import annotations

import contextlib
import dataclasses
import errno
import hashlib
import json
import os
import stat
import struct
import sys
import time
from functools import cache, lru_cache

from .files import Table
from .interrupts import Uninterrupted
from .settings import __version__

Meta = Table  # as JSON has it
_HEADER = struct.Struct("<8sIIQQ")  # magic, format version, lengths of key, meta and payload
_MAGIC = b"lnksweep"
_VERSION = 1
_DIGEST = hashlib.sha256().digest_size
_SUFFIX = ".object"
_TEMPORARY = ".partial"
SCAN_EVERY = 32  # 10,000 files take 30 ms to scan, the write itself 0.1 ms
_STALE = 3600.0  # seconds after which a temporary file was left behind by a process that died


class DiskCache:
    """A folder of verified entries: key -> (meta, payload).

    `folder=None` follows LINKSWEEP_CACHE and the platform's custom. When the folder is scanned, entries beyond
    `max_bytes` or `max_files` are removed, least recently used first. One write in `SCAN_EVERY` scans, so the folder
    may exceed its limits by that many entries. Safe for any number of processes at once.
    """

    def __init__(
        self,
        folder: str | os.PathLike[str] | None = None,
        *,
        max_bytes: int = 512 * 2**20,
        max_files: int = 10_000,
    ):
        self.folder, self._off = default_folder() if folder is None else (_absolute(os.fspath(folder)), "")
        if not self._off and not hasattr(os, "geteuid"):
            self._off = "off: file ownership cannot be checked on this platform"
        self._max_bytes = max_bytes
        self._max_files = max_files

    def status(self) -> str:
        """ "on: <folder>", or "off: <why>"."""
        if self._off:
            return self._off
        try:
            os.close(self._open_folder(make=False))
        except FileNotFoundError:
            return f"on: {self.folder} (not made yet)"
        except OSError as error:
            return f"off: {self.folder}: {error.strerror or error}"
        return f"on: {self.folder}"

    def get(self, key: str) -> tuple[Meta, bytes] | None:
        """What was put under `key`, verified, or None. A file that fails verification is removed."""
        if self._off:
            return None
        try:
            folder = self._open_folder(make=False)
        except OSError:
            return None
        try:
            return self._read(folder, key)
        except (OSError, MemoryError):
            return None
        finally:
            os.close(folder)

    def put(self, key: str, meta: Meta, payload: bytes) -> bool:
        """Store JSON `meta` and `payload` under `key`; False if that was not possible."""
        content, name = _packed(key, meta, payload), _file_name(key)
        if self._off or len(content) > self._max_bytes:
            return False
        try:
            folder = self._open_folder(make=True)
        except OSError:
            return False
        try:
            with Uninterrupted():
                _write(folder, name, content)
            if int(name[:8], 16) % SCAN_EVERY == 0:  # names are hashes: no process has to count its writes
                self._prune(folder, keep=name)
            return True
        except OSError:
            return False
        finally:
            os.close(folder)

    def _open_folder(self, *, make: bool) -> int:
        """A descriptor of the folder, through which files are reached: nobody can exchange it meanwhile."""
        if make:
            os.makedirs(os.path.dirname(self.folder), mode=0o700, exist_ok=True)
            with contextlib.suppress(FileExistsError):
                os.mkdir(self.folder, 0o700)
        folder = os.open(self.folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
        found = os.fstat(folder)
        why = ""
        if found.st_uid != os.geteuid():
            why = "the folder belongs to another user"
        elif found.st_mode & 0o077:
            mode = stat.S_IMODE(found.st_mode)
            why = f"the folder's mode is {mode:04o}, which lets others in, run chmod 700 on it"
        if why:
            os.close(folder)
            raise PermissionError(errno.EPERM, why)
        return folder

    def _read(self, folder: int, key: str) -> tuple[Meta, bytes] | None:
        name = _file_name(key)
        content = None
        try:
            # O_NONBLOCK: a named pipe in the place of the file must not make us wait
            file = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=folder)
        except OSError as error:
            if error.errno != errno.ELOOP:
                return None
        else:
            try:
                found = os.fstat(file)
                private = found.st_uid == os.geteuid() and not found.st_mode & 0o077
                if stat.S_ISREG(found.st_mode) and private and found.st_size <= self._max_bytes:
                    with open(file, "rb", closefd=False) as stream:
                        content = _unpacked(stream.read(found.st_size + 1), key)
                if content is not None:
                    with contextlib.suppress(OSError):
                        os.utime(file)  # recently used: pruned last
            finally:
                os.close(file)
        if content is None:
            os.unlink(name, dir_fd=folder)
        return content

    def _prune(self, folder: int, keep: str) -> None:
        entries = []
        total = count = 0
        with os.scandir(folder) as listing:
            for entry in listing:
                with contextlib.suppress(OSError):  # another process may have removed it
                    found = entry.stat(follow_symlinks=False)
                    if entry.name.endswith(_TEMPORARY) and time.time() - found.st_mtime > _STALE:
                        os.unlink(entry.name, dir_fd=folder)
                    elif entry.name.endswith(_SUFFIX):
                        total, count = total + found.st_size, count + 1
                        if entry.name != keep:
                            entries.append((found.st_mtime, found.st_size, entry.name))
        for _, size, name in sorted(entries):
            if total <= self._max_bytes and count <= self._max_files:
                break
            with contextlib.suppress(FileNotFoundError):
                os.unlink(name, dir_fd=folder)
            total, count = total - size, count - 1


def default_cache() -> DiskCache:
    """The cache in the folder that LINKSWEEP_CACHE names now."""
    return _default_cache(os.environ.get("LINKSWEEP_CACHE"))


@lru_cache(maxsize=4)
def _default_cache(setting: str | None) -> DiskCache:
    return DiskCache()


def default_folder() -> tuple[str, str]:
    """The folder for this user, and why there is none."""
    chosen = os.environ.get("LINKSWEEP_CACHE")
    if chosen is not None:
        if chosen.strip().lower() in ("", "0", "off"):
            return "", f"off: LINKSWEEP_CACHE is {chosen!r}"
        return _absolute(chosen), ""
    base = os.environ.get("XDG_CACHE_HOME", "")
    if not os.path.isabs(base):  # the XDG specification: relative paths are to be ignored
        base = os.path.expanduser("~/Library/Caches" if sys.platform == "darwin" else "~/.cache")
    if not os.path.isabs(base):
        return "", "off: this user has no home folder"
    return os.path.join(os.path.normpath(base), "linksweep"), ""


def _absolute(path: str) -> str:
    # Without a trailing slash, behind which O_NOFOLLOW would follow a link.
    return os.path.abspath(os.path.expanduser(path))


def _file_name(key: str) -> str:
    # Hashed, so that no key can name a path.
    return hashlib.sha256(key.encode("utf-8", "surrogatepass")).hexdigest() + _SUFFIX


def _packed(key: str, meta: Meta, payload: bytes) -> bytes:
    """Header, SHA-256 of all the rest, key, meta, payload."""
    parts = key.encode("utf-8", "surrogatepass"), json.dumps(meta, sort_keys=True).encode(), bytes(payload)
    header = _HEADER.pack(_MAGIC, _VERSION, *map(len, parts))
    body = b"".join(parts)
    return header + hashlib.sha256(header + body).digest() + body


def _unpacked(content: bytes, key: str) -> tuple[Meta, bytes] | None:
    """Meta and payload, or None unless every byte is as it was packed for this very key."""
    start = _HEADER.size + _DIGEST
    if len(content) < start:
        return None
    magic, version, key_length, meta_length, payload_length = _HEADER.unpack_from(content)
    if magic != _MAGIC or version != _VERSION or len(content) != start + key_length + meta_length + payload_length:
        return None
    header, digest, body = content[: _HEADER.size], content[_HEADER.size : start], content[start:]
    if hashlib.sha256(header + body).digest() != digest:
        return None
    if body[:key_length] != key.encode("utf-8", "surrogatepass"):
        return None
    meta_end = key_length + meta_length
    return json.loads(body[key_length:meta_end]), body[meta_end:]


def _write(folder: int, name: str, content: bytes) -> None:
    """Write under another name, then rename: readers see the whole file or none."""
    temporary = f"{name}.{os.getpid()}.{os.urandom(8).hex()}{_TEMPORARY}"
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW
    file = os.open(temporary, flags, 0o600, dir_fd=folder)
    try:
        with open(file, "wb") as stream:
            os.fchmod(file, 0o600)  # whatever the umask
            stream.write(content)
        os.replace(temporary, name, src_dir_fd=folder, dst_dir_fd=folder)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(temporary, dir_fd=folder)
        raise


@cache
def source_hash() -> str:
    """SHA-256 over names and contents of the package's Python files: changed code never meets old objects.

    Where the sources cannot be read (a zip file, compiled files only) it is random: nothing is reused.
    """
    package = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    try:
        names = sorted(
            os.path.join(folder, file)
            for folder, _, files in os.walk(package)
            for file in files
            if file.endswith(".py")
        )
        total = hashlib.sha256()
        for name in names:
            with open(name, "rb", buffering=0) as stream:
                content = stream.read()
            path = os.path.relpath(name, package).encode("utf-8", "surrogateescape")
            total.update(struct.pack("<QQ", len(path), len(content)) + path + content)
    except OSError:
        names = []
    return total.hexdigest() if names else os.urandom(32).hex()


def make_key(*, llvmlite: str, llvm: object, cpu: str, features: object, **parts: object) -> str:
    """The key of an object: SHA-256 over `parts` and everything else the machine code depends on.

    `llvmlite` and `llvm` are their versions, `cpu` and `features` the host's as LLVM names them. Parts are
    numbers, strings, bytes, None, arrays, dataclasses (by class name and fields), sequences, sets and dicts
    of these. 1, 1.0, True, "1" and 0.0, -0.0 all differ; a list and a tuple of the same entries do not.
    """
    import numpy  # whoever makes keys has it loaded already

    surroundings = {
        "version": __version__,
        "source": source_hash(),
        "python": (sys.implementation.cache_tag, getattr(sys, "abiflags", ""), sys.byteorder, sys.maxsize),
        "platform": (sys.platform, os.uname().machine if hasattr(os, "uname") else ""),
        "numpy": numpy.__version__,
        "llvm": (llvmlite, llvm),
        "host": (cpu, features),
    }
    return hashlib.sha256(canonical([surroundings, parts]).encode("utf-8", "surrogatepass")).hexdigest()


def canonical(value: object) -> str:
    """An unambiguous text of `value`, as `make_key` says: equal texts mean equal values."""
    if value is None or isinstance(value, bool):
        return str(value)
    if isinstance(value, float):
        return float.__repr__(value)
    if isinstance(value, str):
        return json.dumps(str.__str__(value))
    if isinstance(value, int):
        return hex(value)
    if isinstance(value, tuple | list):
        return "[" + ",".join(map(canonical, value)) + "]"
    if isinstance(value, dict):
        return "{" + ",".join(sorted(f"{canonical(k)}:{canonical(v)}" for k, v in value.items())) + "}"
    if isinstance(value, set | frozenset):
        return "set{" + ",".join(sorted(map(canonical, value))) + "}"
    if isinstance(value, bytes):
        return f"bytes({value.hex()})"
    if isinstance(value, type):
        return f"class {value.__module__}.{value.__qualname__}"
    if dataclasses.is_dataclass(value):
        fields = {f.name: getattr(value, f.name) for f in dataclasses.fields(value)}
        return f"{type(value).__qualname__}({canonical(fields)})"
    dtype, tobytes = getattr(value, "dtype", None), getattr(value, "tobytes", None)
    if dtype is not None and tobytes is not None and dtype.kind in "biufc":
        return f"array({dtype.str},{list(getattr(value, 'shape', ()))},{tobytes().hex()})"
    raise TypeError(f"a cache key cannot hold a {type(value).__name__}")
