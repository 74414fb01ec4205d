"""The cache gives back exactly what was put, or nothing; never raises; trusts nothing others could write."""

from __future__ import annotations

import errno
import os
import stat
import subprocess
import sys
import textwrap
import time
from collections import namedtuple
from dataclasses import dataclass

import numpy as np
import pytest
from abuse_helpers import PATIENCE
from hypothesis import given, settings
from hypothesis import strategies as st

from linksweep.support import disk_cache as module
from linksweep.support.disk_cache import DiskCache, canonical, default_folder, make_key, source_hash

KEY = "a" * 64
META = {"function": "inverse_dynamics", "sizes": [6, 6], "nested": {"x": 1.5, "y": None}}
PAYLOAD = bytes(range(256)) * 4
ROOT = os.geteuid() == 0


@pytest.fixture
def cache(tmp_path):
    return DiskCache(tmp_path / "deep" / "cache")


def only_file(cache):
    (name,) = os.listdir(cache.folder)
    return os.path.join(cache.folder, name)


def stored(cache):
    assert cache.put(KEY, META, PAYLOAD)
    return only_file(cache)


# ---- round trip


@pytest.mark.quick
def test_round_trip(cache):
    assert cache.get(KEY) is None
    assert cache.status() == f"on: {cache.folder} (not made yet)"
    stored(cache)
    assert cache.get(KEY) == (META, PAYLOAD)
    assert cache.get("b" * 64) is None
    assert cache.put(KEY, {}, b"") and cache.get(KEY) == ({}, b"")
    assert cache.status() == f"on: {cache.folder}"


@settings(max_examples=60, deadline=None)
@given(st.text(max_size=20), st.dictionaries(st.text(), st.integers() | st.text() | st.none()), st.binary())
def test_round_trip_of_anything(tmp_path_factory, key, meta, payload):
    cache = DiskCache(tmp_path_factory.getbasetemp() / "anything")
    assert cache.put(key, meta, payload)
    assert cache.get(key) == (meta, payload)


@pytest.mark.parametrize("key", ["../../escape", "/etc/passwd", "", ".", "a\0b", "x" * 5000, "\udc80"])
def test_keys_never_name_paths(cache, tmp_path, key):
    assert cache.put(key, META, PAYLOAD)
    assert cache.get(key) == (META, PAYLOAD)
    assert os.path.dirname(only_file(cache)) == cache.folder
    assert os.listdir(tmp_path) == ["deep"]


def test_private_whatever_the_umask(cache):
    for umask in (0, 0o277):
        before = os.umask(umask)
        try:
            file = stored(cache)
        finally:
            os.umask(before)
        assert stat.S_IMODE(os.stat(file).st_mode) == 0o600
        assert stat.S_IMODE(os.stat(cache.folder).st_mode) == 0o700


# ---- damage


def rewrite(file, content):
    with open(file, "wb") as stream:
        stream.write(content)


@pytest.mark.quick
def test_every_damaged_byte_is_noticed(cache):
    assert cache.put(KEY, {"m": 1}, b"payload")
    file = only_file(cache)
    with open(file, "rb") as stream:
        whole = stream.read()
    for position in range(len(whole)):
        for flip in (0x01, 0x80):
            rewrite(file, whole[:position] + bytes([whole[position] ^ flip]) + whole[position + 1 :])
            assert cache.get(KEY) is None
            assert not os.path.exists(file)
            with open(os.open(file, os.O_CREAT | os.O_WRONLY, 0o600), "wb"):
                pass
    rewrite(file, whole)
    assert cache.get(KEY) == ({"m": 1}, b"payload")


@pytest.mark.quick
@pytest.mark.parametrize("keep", [0, 1, 8, 31, 32, 63, 64, 100, -1])
def test_truncated(cache, keep):
    file = stored(cache)
    with open(file, "r+b") as stream:
        stream.truncate(keep if keep >= 0 else os.path.getsize(file) + keep)
    assert cache.get(KEY) is None and not os.path.exists(file)


def test_shifted_lengths(cache):
    """Lengths that still sum to the file's: the end of meta would pass for the beginning of the payload."""
    file = stored(cache)
    with open(file, "rb") as stream:
        whole = stream.read()
    magic, version, key, meta, payload = module._HEADER.unpack_from(whole)
    header = module._HEADER.pack(magic, version, key, meta - 1, payload + 1)
    rewrite(file, header + whole[len(header) :])
    assert cache.get(KEY) is None and not os.path.exists(file)


def test_extended_or_not_ours(cache):
    file = stored(cache)
    with open(file, "ab") as stream:
        stream.write(b"\0")
    assert cache.get(KEY) is None and not os.path.exists(file)
    stored(cache)
    rewrite(file, os.urandom(1000))
    assert cache.get(KEY) is None and not os.path.exists(file)


@pytest.mark.quick
def test_planted_under_another_key(cache):
    file = stored(cache)
    other = os.path.join(cache.folder, module._file_name("b" * 64))
    os.rename(file, other)
    assert cache.get("b" * 64) is None
    assert not os.path.exists(other)


@pytest.mark.parametrize("mode", [0o644, 0o660, 0o606, 0o620])
def test_file_that_others_may_touch(cache, mode):
    file = stored(cache)
    os.chmod(file, mode)
    assert cache.get(KEY) is None and not os.path.exists(file)


@pytest.mark.quick
def test_symlinked_file(cache, tmp_path):
    file = stored(cache)
    os.rename(file, tmp_path / "elsewhere")
    os.symlink(tmp_path / "elsewhere", file)
    assert cache.get(KEY) is None
    assert not os.path.lexists(file) and os.path.exists(tmp_path / "elsewhere")
    os.symlink(tmp_path / "elsewhere", file)
    before = (tmp_path / "elsewhere").read_bytes()
    assert cache.put(KEY, {}, b"new")  # replaces the link, does not write through it
    assert (tmp_path / "elsewhere").read_bytes() == before and cache.get(KEY) == ({}, b"new")


def test_pipe_or_folder_in_the_place_of_a_file(cache):
    file = stored(cache)
    os.unlink(file)
    os.mkfifo(file, 0o600)
    assert cache.get(KEY) is None and not os.path.exists(file)
    os.mkdir(file, 0o700)
    descriptors = len(os.listdir("/proc/self/fd")) if os.path.isdir("/proc/self/fd") else None
    assert cache.get(KEY) is None and not cache.put(KEY, META, PAYLOAD)
    assert os.listdir(cache.folder) == [os.path.basename(file)]  # no temporary file stays
    if descriptors is not None:
        assert len(os.listdir("/proc/self/fd")) == descriptors


# ---- the folder


@pytest.mark.parametrize("mode", [0o755, 0o770, 0o701, 0o777])
def test_folder_that_others_may_enter(cache, mode):
    stored(cache)
    os.chmod(cache.folder, mode)
    assert cache.get(KEY) is None and not cache.put(KEY, META, PAYLOAD)
    assert f"{mode:04o}" in cache.status() and cache.status().startswith("off: ")
    os.chmod(cache.folder, 0o700)
    assert cache.get(KEY) == (META, PAYLOAD)


@pytest.mark.parametrize("ending", ["", "/", "/.", "//"])
def test_symlinked_folder(tmp_path, ending):
    stored(DiskCache(tmp_path / "real"))
    os.symlink(tmp_path / "real", tmp_path / "link")
    cache = DiskCache(f"{tmp_path}/link{ending}")
    assert cache.get(KEY) is None and not cache.put(KEY, META, PAYLOAD)
    assert cache.status().startswith("off: ")


def test_folder_of_another_user(cache, monkeypatch):
    stored(cache)
    monkeypatch.setattr(os, "geteuid", lambda: os.getuid() + 1)
    assert cache.get(KEY) is None and not cache.put(KEY, META, PAYLOAD)
    assert "another user" in cache.status()


def test_file_of_another_user(cache):
    file = stored(cache)
    if not ROOT:
        pytest.skip("only root can give files away")
    os.chown(file, 12345, -1)
    assert cache.get(KEY) is None and not os.path.exists(file)


def test_folder_is_a_file(tmp_path):
    (tmp_path / "file").write_text("")
    for path in (tmp_path / "file", tmp_path / "file" / "below"):
        cache = DiskCache(path)
        assert cache.get(KEY) is None and not cache.put(KEY, META, PAYLOAD)
        assert cache.status().startswith("off: ")


@pytest.mark.skipif(ROOT, reason="root may write anywhere")
def test_read_only_folder(cache):
    stored(cache)
    os.chmod(cache.folder, 0o500)
    try:
        assert not cache.put("b" * 64, META, PAYLOAD)
        assert cache.get(KEY) == (META, PAYLOAD)
    finally:
        os.chmod(cache.folder, 0o700)


@pytest.mark.parametrize("failing", ["replace", "open", "mkdir", "scandir", "utime", "unlink"])
def test_errors_of_the_file_system_are_no_cache(cache, monkeypatch, failing):
    def fail(*args, **options):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, failing, fail)
    cache.put(KEY, META, PAYLOAD)
    assert cache.get(KEY) in (None, (META, PAYLOAD))
    monkeypatch.undo()
    if failing not in ("open", "mkdir"):
        left = [name for name in os.listdir(cache.folder) if name.endswith(".partial")]
        assert not left
    assert cache.put(KEY, META, PAYLOAD) and cache.get(KEY) == (META, PAYLOAD)


def test_read_only_file_system(cache, monkeypatch):
    stored(cache)
    real = os.open

    def read_only(path, flags, *args, **options):
        if flags & (os.O_CREAT | os.O_WRONLY | os.O_RDWR):
            raise OSError(errno.EROFS, "Read-only file system")
        return real(path, flags, *args, **options)

    def fail(*args, **options):
        raise OSError(errno.EROFS, "Read-only file system")

    monkeypatch.setattr(os, "open", read_only)
    monkeypatch.setattr(os, "utime", fail)
    monkeypatch.setattr(os, "unlink", fail)
    assert not cache.put("b" * 64, META, PAYLOAD)
    assert cache.get(KEY) == (META, PAYLOAD)


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no /dev/full here")
def test_disk_full(cache, monkeypatch):
    stored(cache)
    real = os.open

    def full(path, flags, *args, **options):
        if flags & os.O_CREAT:
            os.close(real(path, flags, *args, **options))
            return real("/dev/full", os.O_WRONLY)
        return real(path, flags, *args, **options)

    monkeypatch.setattr(os, "open", full)
    monkeypatch.setattr(os, "fchmod", lambda *args: None)
    assert not cache.put(KEY, {}, b"x" * 100_000)
    monkeypatch.undo()
    assert cache.get(KEY) == (META, PAYLOAD)
    assert len(os.listdir(cache.folder)) == 1


# ---- LINKSWEEP_CACHE


@pytest.mark.parametrize("value", ["off", "OFF", "0", "", " "])
def test_switched_off(monkeypatch, tmp_path, value):
    monkeypatch.setenv("LINKSWEEP_CACHE", value)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    cache = DiskCache()
    assert not cache.put(KEY, META, PAYLOAD) and cache.get(KEY) is None
    assert cache.status() == f"off: LINKSWEEP_CACHE is {value!r}"
    assert not os.listdir(tmp_path)


def test_moved(monkeypatch, tmp_path):
    monkeypatch.setenv("LINKSWEEP_CACHE", str(tmp_path / "here"))
    assert DiskCache().put(KEY, META, PAYLOAD)
    assert DiskCache().status() == f"on: {tmp_path / 'here'}"
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("LINKSWEEP_CACHE", "here/")
    assert DiskCache().get(KEY) == (META, PAYLOAD)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("LINKSWEEP_CACHE", "~/here")
    assert DiskCache().get(KEY) == (META, PAYLOAD)


def test_usual_places(monkeypatch, tmp_path):
    monkeypatch.delenv("LINKSWEEP_CACHE", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    assert default_folder() == (str(tmp_path / "xdg" / "linksweep"), "")
    assert DiskCache().put(KEY, META, PAYLOAD)
    for relative in ("", "relative"):
        monkeypatch.setenv("XDG_CACHE_HOME", relative)
        monkeypatch.setattr(sys, "platform", "linux")
        assert default_folder() == (str(tmp_path / ".cache" / "linksweep"), "")
        monkeypatch.setattr(sys, "platform", "darwin")
        assert default_folder() == (str(tmp_path / "Library" / "Caches" / "linksweep"), "")
    monkeypatch.setattr(os.path, "expanduser", lambda path: path)
    assert DiskCache().status() == "off: this user has no home folder"
    assert DiskCache().get(KEY) is None and not DiskCache().put(KEY, META, PAYLOAD)


def test_platform_without_owners(monkeypatch, tmp_path):
    monkeypatch.delattr(os, "geteuid")
    cache = DiskCache(tmp_path / "cache")
    assert not cache.put(KEY, META, PAYLOAD) and cache.get(KEY) is None
    assert cache.status().startswith("off: ")


# ---- size


@pytest.fixture
def always_scanned(monkeypatch):
    monkeypatch.setattr(module, "SCAN_EVERY", 1)


def test_least_recently_used_files_go(tmp_path, always_scanned):
    cache = DiskCache(tmp_path / "cache", max_files=3)
    for index, key in enumerate("abc"):
        assert cache.put(key, {}, b"x")
        os.utime(os.path.join(cache.folder, module._file_name(key)), (1000 + index, 1000 + index))
    assert cache.get("a")  # used again: now the newest
    assert cache.put("d", {}, b"x")
    assert [key for key in "abcd" if cache.get(key)] == ["a", "c", "d"]
    for key in "acd":  # as by a clock that was wrong: still, what was just put stays
        os.utime(os.path.join(cache.folder, module._file_name(key)), (2e10, 2e10))
    assert cache.put("e", {}, b"x") and cache.get("e")


def test_bytes_are_bounded(tmp_path, always_scanned):
    cache = DiskCache(tmp_path / "cache", max_bytes=10_000)
    for index in range(20):
        assert cache.put(str(index), {}, b"x" * 3000)
        assert sum(entry.stat().st_size for entry in os.scandir(cache.folder)) <= 10_000
    assert cache.get("19") and not cache.get("0")
    assert not cache.put("large", {}, b"x" * 20_000)
    assert cache.get("19")


def test_only_own_files_are_removed(tmp_path, always_scanned):
    cache = DiskCache(tmp_path / "cache", max_files=1)
    stored(cache)
    for name, age in (("thesis.tex", 10_000), ("new.partial", 0), ("old.partial", 10_000)):
        path = os.path.join(cache.folder, name)
        rewrite(path, b"")
        os.utime(path, (time.time() - age, time.time() - age))
    assert cache.put("b", {}, b"")
    left = set(os.listdir(cache.folder))
    assert left == {"thesis.tex", "new.partial", module._file_name("b")}


def test_few_writes_scan_the_folder(tmp_path, monkeypatch):
    cache, scans = DiskCache(tmp_path / "cache", max_files=40), []
    scandir = os.scandir
    monkeypatch.setattr(os, "scandir", lambda folder: (scans.append(folder), scandir(folder))[1])
    for index in range(400):
        assert cache.put(str(index), {}, b"x")
    assert 1 <= len(scans) <= 2 * 400 / module.SCAN_EVERY
    monkeypatch.undo()
    assert len(os.listdir(cache.folder)) <= 40 + 8 * module.SCAN_EVERY


# ---- several processes


def test_processes_at_once(tmp_path):
    """Writers, readers and pruners of the same few keys: everything read is whole."""
    code = """
    import sys
    from linksweep.support.disk_cache import DiskCache
    cache = DiskCache(sys.argv[1], max_files=3)
    hits = 0
    for turn in range(150):
        key = str(turn % 5)
        found = cache.get(key)
        if found:
            hits += 1
            assert found[0]["key"] == key and found[1] == found[1][:1] * 20_000, found
        assert cache.put(key, {"key": key}, sys.argv[2].encode() * 20_000)
    print(hits)
    """
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    command = [sys.executable, "-c", textwrap.dedent(code), str(tmp_path / "cache")]
    running = [
        subprocess.Popen([*command, mark], env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        for mark in "abc"
    ]
    for process in running:
        _, errors = process.communicate(timeout=PATIENCE)
        assert process.returncode == 0 and not errors, errors
    names = os.listdir(tmp_path / "cache")
    assert names and not [name for name in names if name.endswith(".partial")]


# ---- keys


HOST = {"llvmlite": "0.50.0", "llvm": (20, 1, 8), "cpu": "znver3", "features": "+avx2,+fma"}


@dataclass(frozen=True)
class Box:
    size: object


@dataclass(frozen=True)
class Crate:
    size: object


Pair = namedtuple("Pair", "a b")

DIFFERENT = [
    None, True, False, 0, 1, -1, 2**80, 0.0, -0.0, 1.0, 0.1, 0.1 + 2**-56, np.inf, -np.inf, np.nan,
    "", "1", "1.0", "None", "True", "nan", "[]", '"', "\\", '","', "a,b", "\udc80", b"", b"1",
    [], [[]], [1], [1.0], [[1]], [1, 2, 3], [[1, 2], 3], [1, [2, 3]], ["1,2"], ["1", "2"], ["a", "b"],
    {}, {1: 2}, {"1": 2}, {1: "2"}, {(1, 2): 3}, {"a": {"b": 1}}, {"a": 1, "b": 1}, {None: 1},
    frozenset(), {1}, {"1"}, Box(1), Crate(1), Box(1.0), Box(Box(1)), {"size": 1},
    np.zeros(2), np.zeros(2, "f4"), np.zeros(1), np.zeros((2, 1)), np.zeros(2, "i8"), -np.zeros(2),
    np.float32(1),
]  # fmt: skip


def test_different_values_have_different_texts():
    texts = [canonical(value) for value in DIFFERENT]
    assert len(set(texts)) == len(texts)
    assert len({make_key(**HOST, part=value) for value in DIFFERENT}) == len(texts)


def test_equal_values_have_equal_texts():
    for same in [
        ((1, (2, 3)), [1, [2, 3]], Pair(1, (2, 3))),
        (1.5, np.float64(1.5)),
        ({"a": 1, "b": 2}, {"b": 2, "a": 1}),
        ({3, 1, 2}, frozenset([1, 2, 3])),
        (np.arange(6.0).reshape(2, 3), np.asfortranarray(np.arange(6.0).reshape(2, 3))),
    ]:
        assert len(set(map(canonical, same))) == 1


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=4),
    lambda x: st.lists(x, max_size=3) | st.dictionaries(st.text(max_size=3), x, max_size=3),
    max_leaves=8,
)


@settings(max_examples=150, deadline=None)
@given(JSON, JSON)
def test_texts_are_unambiguous(a, b):
    assert (canonical(a) == canonical(b)) == (repr_sorted(a) == repr_sorted(b))


def repr_sorted(value):
    if isinstance(value, dict):
        return repr(sorted((k, repr_sorted(v)) for k, v in value.items())) + "dict"
    return repr([repr_sorted(v) for v in value]) if isinstance(value, list) else repr(value)


@pytest.mark.parametrize("value", [object(), len, 1j, np.zeros(1, object), [object()], {1: object()}])
def test_what_has_no_text(value):
    with pytest.raises(TypeError, match="a cache key cannot hold a"):
        canonical(value)


def test_classes_are_told_apart_by_their_full_names():
    assert canonical(Box) != canonical(Crate) and canonical(Box) != canonical("Box")


def test_keys_know_their_surroundings(monkeypatch):
    keys = {make_key(**HOST, dtype="float64")}
    keys.add(make_key(**HOST, dtype="float32"))
    keys.add(make_key(**HOST, dtypes="float64"))
    for name in HOST:
        keys.add(make_key(**{**HOST, name: "other"}, dtype="float64"))
    monkeypatch.setattr(np, "__version__", "9.9")
    keys.add(make_key(**HOST, dtype="float64"))
    monkeypatch.undo()
    monkeypatch.setattr(module, "source_hash", lambda: "other")
    keys.add(make_key(**HOST, dtype="float64"))
    monkeypatch.undo()
    monkeypatch.setattr(sys, "platform", "other")
    keys.add(make_key(**HOST, dtype="float64"))
    monkeypatch.undo()
    monkeypatch.setattr(module, "__version__", "other")
    keys.add(make_key(**HOST, dtype="float64"))
    monkeypatch.undo()
    assert len(keys) == 11
    assert make_key(dtype="float64", **HOST) in keys
    assert all(len(key) == 64 for key in keys)


def in_new_process(code, **environment):
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path)), **environment}
    command = [sys.executable, "-c", textwrap.dedent(code)]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout.strip()


def test_keys_are_the_same_in_another_process():
    code = """
    from linksweep.support.disk_cache import make_key
    print(make_key(llvmlite="", llvm="", cpu="", features="", x={"b", "a"}))
    """
    source_hash.cache_clear()
    here = make_key(llvmlite="", llvm="", cpu="", features="", x={"a", "b"})
    assert in_new_process(code, PYTHONHASHSEED="7") == here


def test_source_hash(monkeypatch, tmp_path):
    package = tmp_path / "linksweep"
    (package / "backends").mkdir(parents=True)
    monkeypatch.setattr(module, "__file__", str(package / "backends" / "cache.py"))

    def fresh():
        source_hash.cache_clear()
        return source_hash()

    try:
        assert fresh() != fresh()  # no sources: nothing may be reused
        (package / "a.py").write_text("x = 1")
        first = fresh()
        assert fresh() == first and len(first) == 64
        (package / "note.txt").write_text("not code")
        assert fresh() == first
        (package / "a.py").write_text("x = 2")
        second = fresh()
        (package / "a.py").rename(package / "b.py")
        third = fresh()
        (package / "backends" / "c.py").write_text("")
        assert len({first, second, third, fresh()}) == 4
        (package / "broken.py").symlink_to("nowhere")
        assert fresh() != fresh()
    finally:
        monkeypatch.undo()
        source_hash.cache_clear()


def test_light_imports():
    code = """
    import sys, linksweep.support.disk_cache
    print(*{"numpy", "llvmlite", "platform"} & set(sys.modules))
    """
    assert in_new_process(code) == ""
