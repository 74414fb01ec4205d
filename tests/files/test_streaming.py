"""`ls.stream`: the same numbers as in memory, from every kind of file to every kind, and never half a sink."""

# pyright: reportArgumentType=false
from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from abuse_helpers import PATIENCE

import linksweep as ls
from linksweep import ArgumentError

ROWS = 1000


@pytest.fixture(scope="module")
def robot() -> ls.Robot:
    return ls.robots.puma560()


@pytest.fixture(scope="module")
def given() -> dict[str, np.ndarray]:
    rng = np.random.default_rng(3)
    return {name: rng.normal(size=(ROWS, 6)) for name in ("q", "qd", "qdd")}


def saved(folder: Path, given: dict[str, np.ndarray]) -> dict[str, Path]:
    for name, values in given.items():
        np.save(folder / f"{name}.npy", values)
    return {name: folder / f"{name}.npy" for name in given}


def table(given: dict[str, np.ndarray], joints: Any = None) -> dict[str, np.ndarray]:
    return {
        f"{name}.{k if joints is None else joints[k]}": values[:, k]
        for name, values in given.items()
        for k in range(values.shape[1])
    }


def write_csv(path: Path, columns: dict[str, np.ndarray]) -> None:
    rows = np.stack(list(columns.values()), axis=1).tolist()
    path.write_text("\n".join([",".join(columns), *(",".join(map(repr, row)) for row in rows)]) + "\n")


@pytest.mark.parametrize("rows", [1, 7, 333, 1000, 5000, None])
def test_arrays_on_disk(robot: ls.Robot, given: dict[str, np.ndarray], tmp_path: Path, rows: int | None):
    f = robot.compile("inverse_dynamics")
    short = {name: values[:50] for name, values in given.items()} if rows == 1 else given
    assert ls.stream(f, saved(tmp_path, short), tmp_path / "tau.npy", rows=rows) == len(short["q"])
    np.testing.assert_array_equal(np.load(tmp_path / "tau.npy"), f(*short.values()))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["q.npy", "qd.npy", "qdd.npy", "tau.npy"]


def test_a_table_in_any_order_by_joint_names(robot: ls.Robot, given: dict[str, np.ndarray], tmp_path: Path):
    f, path = robot.compile("inverse_dynamics"), tmp_path / "in.csv"
    columns = table(given, robot.joint_names)
    write_csv(path, dict(reversed(columns.items())))
    assert ls.stream(f, path, tmp_path / "tau.npy", robot=robot, rows=99) == ROWS
    np.testing.assert_array_equal(np.load(tmp_path / "tau.npy"), f(*given.values()))
    ls.stream(f, path, tmp_path / "tau.csv", robot=robot)
    header = (tmp_path / "tau.csv").read_text().splitlines()[0]
    assert header == ",".join(f"tau.{name}" for name in robot.joint_names)
    np.testing.assert_array_equal(np.loadtxt(tmp_path / "tau.csv", delimiter=",", skiprows=1), f(*given.values()))


def test_parquet_to_parquet(robot: ls.Robot, given: dict[str, np.ndarray], tmp_path: Path):
    pyarrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    f = robot.compile("forward_dynamics")
    named = dict(zip(("q", "qd", "tau"), given.values(), strict=True))
    parquet.write_table(pyarrow.table(table(named)), tmp_path / "in.parquet", row_group_size=128)
    assert ls.stream(f, tmp_path / "in.parquet", tmp_path / "out.parquet", rows=300) == ROWS
    found = parquet.read_table(tmp_path / "out.parquet")
    assert found.column_names == [f"qdd.{k}" for k in range(6)]
    np.testing.assert_array_equal(np.stack([c.to_numpy() for c in found.columns], axis=1), f(*given.values()))


def test_several_results_and_single_precision(robot: ls.Robot, given: dict[str, np.ndarray], tmp_path: Path):
    f = robot.compile(["mass_matrix", "bias_forces"])
    q, qd = (given[name].astype(np.float32) for name in ("q", "qd"))
    names = dict(zip(f.outputs, (tmp_path / "M.npy", tmp_path / "h.npy"), strict=True))
    assert ls.stream(f, {"q": q, "qd": qd}, names, rows=64) == ROWS
    for path, wanted in zip(names.values(), f(q, qd), strict=True):
        got = np.load(path)
        assert got.dtype == np.float32
        np.testing.assert_array_equal(got, wanted)


def test_no_rows(robot: ls.Robot, tmp_path: Path):
    f = robot.compile("gravity_forces")
    assert ls.stream(f, {"q": np.empty((0, 6))}, tmp_path / "g.npy") == 0
    assert np.load(tmp_path / "g.npy").shape == (0, 6)


@pytest.mark.parametrize(
    ("source", "sink", "says"),
    [
        ({"q": np.zeros((3, 6))}, "tau.npy", "The source has q, expected q, qd, qdd"),
        ({name: np.zeros((3, 5)) for name in ("q", "qd", "qdd")}, "tau.npy", r"shape \(3, 5\), expected numbers of"),
        ({"q": np.zeros((3, 6)), "qd": np.zeros((4, 6)), "qdd": np.zeros((3, 6))}, "tau.npy", "q 3, qd 4, qdd 3"),
        ({name: "nowhere.npy" for name in ("q", "qd", "qdd")}, "tau.npy", "nowhere.npy cannot be read"),
        ("in.xls", "tau.npy", "expected .csv or .parquet"),
        (3, "tau.npy", "The source is 3, expected a file's path"),
        ({name: np.zeros((3, 6)) for name in ("q", "qd", "qdd")}, "tau.xls", "The sink tau.xls ends in"),
        ({name: np.zeros((3, 6)) for name in ("q", "qd", "qdd")}, {"M": "M.npy"}, "The sink has M, expected tau"),
    ],
)
def test_mistakes(robot: ls.Robot, source: Any, sink: Any, says: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ArgumentError, match=says):
        ls.stream(robot.compile("inverse_dynamics"), source, sink)
    assert not list(tmp_path.iterdir())


def test_what_is_no_function(robot: ls.Robot, tmp_path: Path):
    with pytest.raises(ArgumentError, match="expected a compiled function"):
        ls.stream(robot.inverse_dynamics, {}, tmp_path / "tau.npy")  # type: ignore[arg-type]
    with pytest.raises(ArgumentError, match="rows is 0, expected an integer"):
        ls.stream(robot.compile("gravity_forces"), {"q": np.zeros((1, 6))}, tmp_path / "g.npy", rows=0)


def test_the_sink_is_no_source(robot: ls.Robot, given: dict[str, np.ndarray], tmp_path: Path):
    files = saved(tmp_path, given)
    with pytest.raises(ArgumentError, match="is a source as well"):
        ls.stream(robot.compile("inverse_dynamics"), files, files["q"])
    np.testing.assert_array_equal(np.load(files["q"]), given["q"])


def test_a_failure_half_way_leaves_the_old_sink(robot: ls.Robot, given: dict[str, np.ndarray], tmp_path: Path):
    """A row of the table that is no number, after blocks that were written."""
    path, sink = tmp_path / "in.csv", tmp_path / "tau.npy"
    write_csv(path, table(given))
    path.write_text(path.read_text() + "oops" + "," * 17 + "\n")
    sink.write_bytes(b"before")
    with pytest.raises(ArgumentError, match="expected a number"):
        ls.stream(robot.compile("inverse_dynamics"), path, sink, rows=10)
    assert sink.read_bytes() == b"before" and len(list(tmp_path.iterdir())) == 2


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="needs limits on the size of files")
@pytest.mark.parametrize("ending", ["npy", "csv"])
def test_a_full_disk_is_one_sentence(ending: str, tmp_path: Path):
    """A limit on the size of files stands for the disk: writing fails in the same place, in the same way."""
    script = textwrap.dedent(f"""
        import resource, signal
        import numpy as np
        import linksweep as ls
        f = ls.robots.puma560().compile("gravity_forces")
        f(np.zeros(6))
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 16, 1 << 16))
        try:
            ls.stream(f, {{"q": np.ones((100_000, 6))}}, "g.{ending}", rows=1000)
        except ls.ArgumentError as error:
            print(error)
    """)
    run = subprocess.run(
        [sys.executable, "-c", script], cwd=tmp_path, capture_output=True, text=True, timeout=PATIENCE, env=os.environ
    )
    assert run.stdout.startswith(f"The file g.{ending} cannot be written (File too large)"), run.stderr
    assert run.stdout.count("\n") == 1 and not list(tmp_path.iterdir())


# ---- every kind of array and map: results are those of a call, and the source is only read ------------------------

LONG = 20_000  # rows: some hundred pages


def mapped(folder: Path, name: str, values: np.ndarray, mode: Any) -> np.ndarray:
    """A memory map in which half of the rows differ from the file it was opened from, where the mode allows it."""
    path = folder / f"{name}_{mode}.npy"
    changed = values.copy()
    if mode != "r":
        changed[::2] += 1.0
    np.save(path, changed)
    array = np.load(path, mmap_mode=mode)
    if mode != "r":
        array[::2] -= 1.0
    return array


def packed(values: np.ndarray) -> np.ndarray:
    """A field of records that are not aligned."""
    records = np.zeros(len(values), [("flag", "u1"), ("x", values.dtype, values.shape[1:])])
    records["x"] = values
    return records["x"]


def doubled(values: np.ndarray) -> np.ndarray:
    return np.repeat(values, 2, axis=0)


KINDS: dict[str, Any] = {
    "plain": lambda folder, name, x: x.copy(),
    "list": lambda folder, name, x: x.tolist(),
    "fortran": lambda folder, name, x: np.asfortranarray(x),
    "every_other": lambda folder, name, x: doubled(x)[::2],
    "backwards": lambda folder, name, x: x[::-1].copy()[::-1],
    "columns": lambda folder, name, x: np.concatenate([x, x], axis=1)[:, :6],
    "one_row": lambda folder, name, x: np.broadcast_to(x[7], x.shape),
    "other_bytes": lambda folder, name, x: x.astype(x.dtype.newbyteorder()),
    "packed": lambda folder, name, x: packed(x),
    "integers": lambda folder, name, x: np.round(10 * x).astype(np.int16),
    "half": lambda folder, name, x: x.astype(np.float16),
    "single": lambda folder, name, x: x.astype(np.float32),
    "long": lambda folder, name, x: x.astype(np.longdouble),
    "map_r": lambda folder, name, x: mapped(folder, name, x, "r"),
    "map_r+": lambda folder, name, x: mapped(folder, name, x, "r+"),
    "map_c": lambda folder, name, x: mapped(folder, name, x, "c"),
    "map_c_single": lambda folder, name, x: mapped(folder, name, x.astype(np.float32), "c"),
    "map_c_view": lambda folder, name, x: mapped(folder, name, np.concatenate([x[:99], x]), "c")[99:],
    "map_c_every_other": lambda folder, name, x: mapped(folder, name, doubled(x), "c")[::2],
    "map_c_base": lambda folder, name, x: np.asarray(mapped(folder, name, x, "c")),
    "map_c_fortran": lambda folder, name, x: mapped(folder, name, np.asfortranarray(x), "c"),
}


@pytest.mark.parametrize("sink", ["tau.npy", "tau.csv", "tau.parquet"])
@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_array(robot: ls.Robot, kind: str, sink: str, tmp_path: Path):
    if sink.endswith(".parquet"):
        pytest.importorskip("pyarrow")
    f, rng = robot.compile("inverse_dynamics"), np.random.default_rng(5)
    length = LONG if sink == "tau.npy" else 700
    source = {n: KINDS[kind](tmp_path, n, rng.normal(size=(length, 6))) for n in ("q", "qd", "qdd")}
    before = {name: np.array(value) for name, value in source.items()}
    expected = f(*before.values())
    for rows in (None, 1 + length // 3):
        assert ls.stream(f, source, tmp_path / sink, rows=rows) == length
        np.testing.assert_array_equal(_read(tmp_path / sink), expected)
        for name, value in before.items():
            np.testing.assert_array_equal(np.asarray(source[name]), value)


def _read(path: Path) -> np.ndarray:
    if path.suffix == ".npy":
        return np.load(path)
    if path.suffix == ".csv":
        return np.loadtxt(path, delimiter=",", skiprows=1)
    return np.stack([c.to_numpy() for c in pytest.importorskip("pyarrow.parquet").read_table(path).columns], axis=1)


@pytest.mark.parametrize(
    "kinds", [("map_c", "plain", "map_r"), ("single", "map_c", "half"), ("integers", "half", "single")]
)
def test_kinds_together(robot: ls.Robot, kinds: tuple[str, ...], tmp_path: Path):
    f, rng = robot.compile("inverse_dynamics"), np.random.default_rng(6)
    names = ("q", "qd", "qdd")
    source = {n: KINDS[k](tmp_path, n, rng.normal(size=(LONG, 6))) for n, k in zip(names, kinds, strict=True)}
    expected = f(*map(np.array, source.values()))
    ls.stream(f, source, tmp_path / "tau.npy")
    found = np.load(tmp_path / "tau.npy")
    assert found.dtype == expected.dtype
    np.testing.assert_array_equal(found, expected)


@pytest.mark.slow
def test_a_private_map_of_many_pages_keeps_its_edits(robot: ls.Robot, tmp_path: Path):
    f, rng = robot.compile("inverse_dynamics"), np.random.default_rng(7)
    for _ in range(5):
        source = {n: mapped(tmp_path, n, rng.normal(size=(600_000, 6)), "c") for n in ("q", "qd", "qdd")}
        before = {name: np.array(value) for name, value in source.items()}
        ls.stream(f, source, tmp_path / "tau.npy")
        np.testing.assert_array_equal(np.load(tmp_path / "tau.npy"), f(*before.values()))
        for name, value in before.items():
            np.testing.assert_array_equal(source[name], value)


def test_a_masked_array_is_no_source(robot: ls.Robot, tmp_path: Path):
    source = np.ma.masked_array(np.zeros((9, 6)), mask=np.eye(9, 6, dtype=bool))
    with pytest.raises(ArgumentError, match="masked"):
        ls.stream(robot.compile("gravity_forces"), {"q": source}, tmp_path / "g.npy")
    with pytest.raises(ArgumentError):
        ls.stream(robot.compile("gravity_forces"), {"q": [[1.0], [1.0, 2.0]]}, tmp_path / "g.npy")
    assert not list(tmp_path.iterdir())


def test_a_sink_that_a_source_array_maps_is_refused(robot: ls.Robot, tmp_path: Path):
    """Its rows would go to a file without a name."""
    values = np.ones((9, 6))
    array = mapped(tmp_path, "q", values, "r+")
    with pytest.raises(ArgumentError, match="is a source as well"):
        ls.stream(robot.compile("gravity_forces"), {"q": array[2:]}, tmp_path / "q_r+.npy")
    np.testing.assert_array_equal(np.load(tmp_path / "q_r+.npy"), values)


def test_rows_without_bound(robot: ls.Robot, given: dict[str, np.ndarray], tmp_path: Path):
    """More rows at a time than there are need no memory; more than fit into memory are refused."""
    f = robot.compile("inverse_dynamics")
    write_csv(tmp_path / "in.csv", table(given))
    for source in (saved(tmp_path, given), tmp_path / "in.csv"):
        assert ls.stream(f, source, tmp_path / "tau.npy", rows=10**15) == ROWS
        np.testing.assert_array_equal(np.load(tmp_path / "tau.npy"), f(*given.values()))
    endless = {name: np.broadcast_to(values[0], (10**13, 6)) for name, values in given.items()}
    with pytest.raises(ArgumentError, match="GiB"):
        ls.stream(f, endless, tmp_path / "tau.npy", rows=10**13)


def test_parquet_that_holds_no_numbers(robot: ls.Robot, tmp_path: Path):
    pyarrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    f, path, sink = robot.compile("gravity_forces"), tmp_path / "in.parquet", tmp_path / "g.npy"
    good = [pyarrow.array(np.arange(3.0) + k) for k in range(6)]
    names = [f"q.{k}" for k in range(6)]
    bad = {
        "text": pyarrow.array(["1", "2", "3"]), "lists": pyarrow.array([[1.0], [2.0], [3.0]]),
        "timestamps": pyarrow.array([1, 2, 3], pyarrow.timestamp("s")), "booleans": pyarrow.array([True, False, True]),
        "nothing": pyarrow.nulls(3), "records": pyarrow.array([{"a": 1.0}] * 3),
    }  # fmt: skip
    for column in bad.values():
        parquet.write_table(pyarrow.table([*good[:5], column], names=names), path)
        with pytest.raises(ArgumentError, match=r"q\.5"):
            ls.stream(f, path, sink)
    parquet.write_table(pyarrow.table([*good, good[0]], names=[*names, "q.0"]), path)
    with pytest.raises(ArgumentError, match=r"'q\.0' occurs twice"):
        ls.stream(f, path, sink)
    assert not sink.exists()
    mixed = [good[0].cast("float32"), good[1].cast("int64"), good[2].cast("uint8"), *good[3:]]
    parquet.write_table(pyarrow.table(mixed, names=names), path)
    ls.stream(f, path, sink)
    np.testing.assert_array_equal(np.load(sink), f(np.arange(3.0)[:, None] + np.arange(6)))
    parquet.write_table(pyarrow.table([pyarrow.array([0.0, None, 2.0]), *good[1:]], names=names), path)
    ls.stream(f, path, sink)
    assert np.isnan(np.load(sink)).any(axis=1).tolist() == [False, True, False]
    whole = path.read_bytes()
    path.write_bytes(whole[:40] + bytes(len(whole[40:90])) + whole[90:])
    with pytest.raises(ArgumentError, match="Parquet"):
        ls.stream(f, path, sink)
