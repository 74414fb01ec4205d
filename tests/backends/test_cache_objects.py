"""Real machine code in the cache: whatever stands in the folder, the answer is right; a hit does not trace."""

from __future__ import annotations

import os
import shutil
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from abuse_helpers import PATIENCE, close, function, in_process, interpreted, results, robot, same_bits, samples

import linksweep as ls
from linksweep.backends import entry, llvm
from linksweep.backends.target import host_target
from linksweep.functions import compiled as memo
from linksweep.functions.computation import Together
from linksweep.support import disk_cache as cache

ROOT = os.geteuid() == 0


@pytest.fixture
def folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    monkeypatch.setenv("LINKSWEEP_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


def answer(name: str = "mixed3", wanted: str = "inverse_dynamics", **options) -> list[np.ndarray]:
    """Results of a function made anew, checked against the interpreter."""
    memo._functions.clear()
    compiled = function(ls.Robot(robot(name).model), wanted, **options)  # which remembers nothing
    args = samples(compiled, 11)
    found = results(compiled(*args))
    close(found, interpreted(compiled, args), 1e-10)
    return found


KINDS = ("function", "object")


def stored(folder: Path) -> dict[str, Path]:
    """The two entries of the one function in the folder; the fast entry's object, which all functions share, aside."""
    shared = cache._file_name(llvm.IRModule(entry.entry_ir(), host_target()).key)
    small, large = sorted((file for file in folder.iterdir() if file.name != shared), key=lambda f: f.stat().st_size)
    return {"function": small, "object": large}


def rewrite(file: Path, content: bytes) -> None:
    file.write_bytes(content)
    file.chmod(0o600)


# ---- hits


@pytest.mark.parametrize(
    "wanted", ["inverse_dynamics", "forward_dynamics", "several", "d_inverse_dynamics", "mass_matrix_rolled", "pose"]
)
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_a_hit_does_not_trace(folder: Path, monkeypatch: pytest.MonkeyPatch, wanted: str, dtype: str):
    first = function(robot("tree5"), wanted, dtype=dtype)
    args = samples(first, 11)
    expected = results(first(*args))
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert all(stat.S_IMODE(file.stat().st_mode) == 0o600 for file in folder.iterdir())

    def refuse(*_):
        raise AssertionError("traced")

    monkeypatch.setattr(Together, "trace", refuse)
    again = function(ls.Robot(robot("tree5").model), wanted, dtype=dtype)
    assert same_bits(results(again(*args)), expected)
    assert same_bits(results(again(*[a[3] for a in args])), [y[3] for y in expected])


def test_a_hit_in_another_process(folder: Path):
    expected = answer()
    before = [file.stat().st_ino for file in stored(folder).values()]
    printed = in_process(show)
    assert printed == expected[0].tobytes().hex() + "\n"
    assert [file.stat().st_ino for file in stored(folder).values()] == before  # read, not written again


def show() -> None:
    print(answer()[0].tobytes().hex())


@pytest.mark.parametrize("setting", ["off", "0", "", " OFF "])
def test_switched_off(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, setting: str):
    monkeypatch.setenv("LINKSWEEP_CACHE", setting)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    monkeypatch.chdir(tmp_path)
    answer()
    assert list(tmp_path.iterdir()) == []


# ---- what may stand in the place of the object


def damaged_bytes(folder: str, count: int, kind: str) -> None:
    expected = answer()
    file = stored(Path(folder))[kind]
    whole = file.read_bytes()
    rng = np.random.default_rng(7)
    positions = [*range(0, 120, 8), *rng.integers(0, len(whole), count), len(whole) - 1]
    for position in positions:
        damaged = bytearray(whole)
        damaged[position] ^= int(rng.integers(1, 256))
        rewrite(file, bytes(damaged))
        assert same_bits(answer(), expected), position
        assert file.read_bytes() == whole, position  # made anew


@pytest.mark.cases(1)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.slow
def test_damage_at_any_byte(folder: Path, kind: str):
    in_process(damaged_bytes, str(folder), 20, kind)


def cut(folder: str, kind: str) -> None:
    expected = answer()
    file = stored(Path(folder))[kind]
    whole = file.read_bytes()
    for length in (0, 1, 8, 31, 32, 63, 64, 65, 200, len(whole) // 2, len(whole) - 1):
        for content in (whole[:length], whole[:length] + bytes(len(whole) - length), whole[length:]):
            rewrite(file, content)
            assert same_bits(answer(), expected), length
    rewrite(file, whole + b"\0")
    assert same_bits(answer(), expected)
    rewrite(file, os.urandom(len(whole)))
    assert same_bits(answer(), expected)


@pytest.mark.cases(1)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.slow
def test_truncated_and_empty(folder: Path, kind: str):
    in_process(cut, str(folder), kind)


def planted(folder: str, kind: str) -> None:
    """An object that is whole, of another function or robot, under this one's name."""
    place = Path(folder)
    expected = answer()
    file = stored(place)[kind]
    own = file.read_bytes()
    for other in (("mixed3", "forward_dynamics"), ("chain3", "inverse_dynamics"), ("mixed3", "mass_matrix_rolled")):
        before = set(place.iterdir())
        answer(*other)
        new = sorted(set(place.iterdir()) - before, key=lambda f: f.stat().st_size)
        shutil.copy(new[KINDS.index(kind)], file)
        assert same_bits(answer(), expected)
        assert file.read_bytes() == own


@pytest.mark.cases(1)
@pytest.mark.parametrize("kind", KINDS)
def test_planted_entries_of_other_functions(folder: Path, kind: str):
    in_process(planted, str(folder), kind)


def in_its_place(folder: str, kind: str) -> None:
    expected = answer()
    file = stored(Path(folder))[kind]
    whole = file.read_bytes()
    file.unlink()
    file.mkdir()
    (file / "inside").touch()
    assert same_bits(answer(), expected) and file.is_dir()
    shutil.rmtree(file)
    elsewhere = Path(folder).parent / "elsewhere"
    rewrite(elsewhere, whole)
    file.symlink_to(elsewhere)
    assert same_bits(answer(), expected) and elsewhere.read_bytes() == whole and not file.is_symlink()
    file.unlink()
    file.symlink_to("/dev/zero")
    assert same_bits(answer(), expected)
    file.unlink(missing_ok=True)
    os.mkfifo(file, 0o600)
    assert same_bits(answer(), expected)
    file.unlink(missing_ok=True)
    rewrite(file, whole)
    file.chmod(0o666)  # others may have written it
    assert same_bits(answer(), expected)


@pytest.mark.cases(1)
@pytest.mark.parametrize("kind", KINDS)
def test_folders_links_and_pipes_in_the_place_of_the_file(folder: Path, kind: str):
    in_process(in_its_place, str(folder), kind)


@pytest.mark.parametrize("mode", [0o755, 0o770, 0o777, 0o500, 0o000])
def test_folders_that_cannot_be_used(folder: Path, mode: int):
    folder.mkdir()
    folder.chmod(mode)
    try:
        answer()
        if mode & 0o077 or not ROOT:
            assert ROOT is False or list(folder.iterdir()) == []
    finally:
        folder.chmod(0o700)


def test_a_file_or_a_link_in_the_place_of_the_folder(folder: Path, tmp_path: Path):
    folder.write_text("not a folder")
    expected = answer()
    folder.unlink()
    real = tmp_path / "real"
    real.mkdir(mode=0o700)
    folder.symlink_to(real)
    assert same_bits(answer(), expected)
    assert list(real.iterdir()) == []


@pytest.mark.slow
def test_processes_at_once(folder: Path):
    code = "import test_cache_objects as t; t.show()"
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    running = [
        subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment)
        for _ in range(4)
    ]
    printed = [process.communicate(timeout=PATIENCE) for process in running]
    assert [process.returncode for process in running] == [0] * 4, printed
    assert printed == [(answer()[0].tobytes().hex().encode() + b"\n", b"")] * 4
    assert stored(folder) and len(list(folder.iterdir())) == 3  # nothing partial is left


# ---- keys


def key(compiled, dtype: str = "float64") -> str:
    return llvm.cache_key(compiled.computation, dtype, host_target())


def test_no_two_functions_share_a_key(monkeypatch: pytest.MonkeyPatch):
    arm = robot("puma560")
    recipes = [
        function(other, wanted, backend="interpreter")
        for other in (
            arm, robot("mixed6"), robot("chain6"), robot("planar6"), robot("tree6"), arm.with_gravity((0, 0, 9.81)),
            arm.with_gravity((0, 0, -9.81 + 1e-15)), arm.with_gravity((-0.0, 0, -1)), arm.with_gravity((0, 0, -1)),
            arm.with_payload("tool", 1.0), arm.with_payload("tool", np.nextafter(1.0, 2.0)),
        )
        for wanted in ("inverse_dynamics", "mass_matrix_rolled", "pose")
    ]  # fmt: skip
    options: tuple[dict[str, Any], ...] = (
        {"f_ext": True}, {"dissipation": True}, {"f_ext": True, "dissipation": True}, {"rolled": False}
    )  # fmt: skip
    recipes += [arm.compile("inverse_dynamics", backend="interpreter", **given) for given in options]
    for name in ("inverse_dynamics", "forward_dynamics", "bias_forces", "gravity_forces"):
        methods = arm.methods(name)
        recipes += [arm.compile(name, method=method, backend="interpreter") for method in methods[1:]]
    recipes += [arm.compile("inverse_dynamics", base_parameters=b, backend="interpreter") for b in (False, True)]
    for names in (("payload",), ("gravity",), ("gravity", "armature"), ("inertia:link2",), ("inertia:link3",)):
        recipes.append(arm.compile("inverse_dynamics", parameters=names, backend="interpreter"))
        recipes.append(recipes[-1]._calls._varied)
    recipes += [arm.compile(("jacobian", frame), backend="interpreter") for frame in arm.frame_names]
    recipes += [arm.compile(["mass_matrix", "bias_forces"], backend="interpreter")]
    recipes += [arm.compile(["bias_forces", "mass_matrix"], backend="interpreter")]
    recipes += [arm.compile("inverse_dynamics", backend="interpreter").derivative(by) for by in ("q", "qd", "qdd")]
    found = [key(r, dtype) for r in recipes for dtype in ("float64", "float32")]
    for simd in ("avx2", "sse2"):
        monkeypatch.setenv("LINKSWEEP_SIMD", simd)
        found.append(key(recipes[0]))
    assert len(set(found)) == len(found)


def test_the_same_function_has_the_same_key():
    a, b = (robot("mixed3").compile("inverse_dynamics", backend="interpreter") for _ in range(2))
    assert key(a) == key(b)


@pytest.mark.parametrize("what", ["version", "source", "llvmlite", "numpy"])
def test_another_version_has_other_keys(folder: Path, monkeypatch: pytest.MonkeyPatch, what: str):
    expected = answer()
    before, old = set(folder.iterdir()), stored(folder)
    if what == "version":
        monkeypatch.setattr(cache, "__version__", "99.0")
    elif what == "source":
        monkeypatch.setattr(cache, "source_hash", lambda: "other")
    elif what == "llvmlite":
        monkeypatch.setattr("llvmlite.__version__", "99.0")
    else:
        monkeypatch.setattr(np, "__version__", "99.0")
    assert same_bits(answer(), expected)
    new = set(folder.iterdir()) - before
    assert len(new) == (2 if what == "llvmlite" else 1)  # another compiler compiles again, the others only trace
    assert all(file.exists() for file in old.values())


def test_changed_sources_trace_again_and_compile_nothing(folder: Path, monkeypatch: pytest.MonkeyPatch):
    expected = answer()

    def refuse(*_: object) -> bytes:
        raise AssertionError("compiled")

    monkeypatch.setattr(llvm, "_emit_object", refuse)
    monkeypatch.setattr(cache, "source_hash", lambda: "other")
    assert same_bits(answer(), expected)
    stored_files = len(list(folder.iterdir()))
    monkeypatch.setattr(cache, "source_hash", lambda: "yet another")
    assert same_bits(answer(), expected) and len(list(folder.iterdir())) == stored_files + 1


def test_a_function_whose_object_is_gone_is_compiled_again(folder: Path):
    expected = answer()
    stored(folder)["object"].unlink()
    assert same_bits(answer(), expected) and stored(folder)["object"].exists()
