"""Trajectories and results as files: what is read is what was written, and what is wrong is named with its line."""

from __future__ import annotations

import csv
import json
import sys
import tracemalloc
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import linksweep as ls
from linksweep.errors import ArgumentError, BackendError
from linksweep.files import block_columns, joint_columns, open_trajectory, write_table
from linksweep.files import csv_files as csv_reading
from linksweep.files.columns import find_columns
from linksweep.files.csv_files import _numbers
from linksweep.files.motion_files import read_motion
from linksweep.files.writing import csv_rows
from linksweep.robot.editing import with_base

MODEL = ls.robots.planar_model(2)
FLOATING = with_base(MODEL, "floating")
BLOCKS = ("q", "qd", "qdd")
HEADER = ["t", *(f"{block}.joint{k}" for block in BLOCKS for k in (1, 2))]
ROWS = [[0.1 * k, *(np.sin(k + np.arange(6)).tolist())] for k in range(8)]


def text_of(header: Sequence[str] = HEADER, rows: Sequence[Sequence[Any]] = ROWS, end: str = "\n") -> str:
    return end.join(",".join(map(str, row)) for row in (header, *rows)) + end


def read(path: Path, model: Any = MODEL, blocks: Sequence[str] = BLOCKS, spline: bool = False) -> np.ndarray:
    return np.concatenate(list(open_trajectory(path, model, blocks, spline)))


def changed(row: int, column: int, value: Any) -> str:
    """The table with one entry replaced."""
    rows = [list(entries) for entries in ROWS]
    rows[row][column] = value
    return text_of(rows=rows)


def test_columns_are_named_by_joint():
    assert joint_columns(MODEL, "qd") == ("qd.joint1", "qd.joint2")
    assert list(block_columns(MODEL, ("q", "tau"))) == ["t", "q", "tau"]
    for block, size in (("q", 7 + 2), ("qd", 6 + 2), ("tau", 6 + 2)):
        names = joint_columns(FLOATING, block)
        assert len(names) == len(set(names)) == size
    assert joint_columns(FLOATING, "q")[:4] == tuple(f"q.root_joint.q{axis}" for axis in "xyzw")


@pytest.mark.quick
@pytest.mark.parametrize(
    ("what", "text"),
    [
        ("plain", text_of()),
        ("Windows", text_of(end="\r\n")),
        ("byte order mark", "\ufeff" + text_of()),
        ("no last line end", text_of().rstrip("\n")),
        ("blank lines", text_of().replace("\n", "\n\n", 4) + "\n  \n"),
        ("spaces", text_of().replace(",", " , ")),
        ("quotes", text_of([f'"{name}"' for name in HEADER], [[f'"{x}"' for x in row] for row in ROWS])),
        ("another order", text_of(HEADER[::-1], [row[::-1] for row in ROWS])),
        ("further columns", text_of([*HEADER, "tau.joint1", "phase"], [[*row, "nan", "up"] for row in ROWS])),
    ],
)
def test_files_that_say_the_same(tmp_path: Path, what: str, text: str):
    (tmp_path / "a.csv").write_bytes(text.encode())
    np.testing.assert_array_equal(read(tmp_path / "a.csv"), ROWS, err_msg=what)


@given(st.lists(st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=3, max_size=3), min_size=1))
@settings(deadline=None, max_examples=200)
def test_numbers_survive_to_the_last_bit(rows: list[list[float]]):
    table = np.array(rows)
    text = csv_rows(table)
    found = _numbers(text.encode(), 3)
    assert found is not None
    np.testing.assert_array_equal(found.view(np.uint64), table.view(np.uint64))
    # and as Python itself reads them
    assert [[float(cell) for cell in row] for row in csv.reader(text.splitlines())] == rows


FIELDS = st.text("0123456789.-+eEnaifty _x", max_size=7) | st.floats().map(repr)
PAIRS = st.lists(st.tuples(FIELDS, FIELDS).map(",".join), max_size=4).map("\n".join)


@given(
    st.binary(max_size=60)
    | st.text("0123456789.,-+eEnaif \n\r\t\"'#_x", max_size=60).map(str.encode)
    | PAIRS.map(str.encode)
)
@settings(deadline=None, max_examples=500)
@pytest.mark.slow
def test_the_quick_parser_takes_nothing_that_python_does_not(text: bytes):
    found = _numbers(text, 2)
    if found is not None:
        rows = [[float(cell) for cell in line.split(b",")] for line in text.rstrip(b"\n").split(b"\n")]
        np.testing.assert_array_equal(found, rows)


def refused(path: Path, says: str, **options: Any) -> None:
    with pytest.raises(ArgumentError, match=says) as caught:
        read(path, **options)
    assert "\n" not in str(caught.value) and str(path) in str(caught.value)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "is empty, expected a header"),
        ("\n" + text_of(), "begins with an empty line"),
        (text_of(rows=[]), "no rows"),
        (text_of(HEADER[:-1], [row[:-1] for row in ROWS]), "no column 'qdd.joint2'"),
        (text_of([*HEADER[:1], "q.jiont1", *HEADER[2:]]), r"'q.jiont1' names no joint.*mean 'q.joint1'"),
        (text_of(["T", *HEADER[1:]]), r"no column 't' \(did you mean 'T'\?\)"),
        (text_of([*HEADER, "q.joint3"], [[*row, 1] for row in ROWS]), "'q.joint3' names no joint of planar2"),
        (text_of([*HEADER[:2], "q.joint1", *HEADER[3:]]), "'q.joint1' occurs twice"),
        (text_of(HEADER[:3], [row[:3] for row in ROWS]), "no column 'qd.joint1'.*--spline"),
        (text_of(rows=ROWS)[len(",".join(HEADER)) + 1 :], "line 1 holds numbers"),
        (text_of().replace(",", ";"), "separated by ';'"),
        (text_of().replace(",", "\t"), r"separated by '\\t'"),
        (text_of(end="\r"), "CR alone"),
        (changed(3, 0, 0.05), r"line 5: t is 0.05 after 0.2"),
        (changed(3, 0, ROWS[2][0]), r"line 5: t is 0.2 after 0.2"),
        (changed(4, 5, "nan"), "line 6: qdd.joint1 is nan"),
        (changed(4, 5, "1e999"), "line 6: qdd.joint1 is inf"),
        (changed(4, 5, "abc"), "line 6: qdd.joint1 is 'abc'"),
        (changed(4, 5, ""), "line 6: qdd.joint1 is ''"),
        (changed(4, 5, "1_0"), "line 6: qdd.joint1 is '1_0'"),
        (changed(4, 5, "0x1p3"), "line 6: qdd.joint1 is '0x1p3'"),
        (changed(4, 5, "1,5"), "line 6 has 8 values, expected 7"),
        (changed(4, 5, '"1'), "line 6 is not CSV"),
        (text_of().replace("\n", "\n\n\n", 2) + "9,1\n", "line 14 has 2 values"),
        (text_of(rows=[ROWS[0][:-1], [*ROWS[1], 1.0], *ROWS[2:]]), "line 2 has 6 values"),
    ],
)
def test_bad_tables(tmp_path: Path, text: str, says: str):
    (tmp_path / "a.csv").write_bytes(text.encode())
    refused(tmp_path / "a.csv", says)


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (text_of(["t", "Größe", *HEADER[2:]]).encode("latin-1"), "line 1: not UTF-8 text"),
        (text_of().encode() + b"9,\xe9,1,1,1,1,1\n", "line 10: not UTF-8 text"),
        (text_of().encode("utf-16"), "line 1: not UTF-8 text"),
        (bytes(1000), "line 1: binary data"),
        (text_of().encode() + b"9,\0", "line 10: binary data"),
        (b"\x89PNG\r\n\x1a\n\0\0", "not UTF-8 text"),
        (b"a" * 9_000_000, "not CSV"),
        (text_of().encode() + b"1" * 9_000_000, "line 10 has more than"),
    ],
)
def test_files_that_are_no_tables(tmp_path: Path, data: bytes, says: str):
    (tmp_path / "a.csv").write_bytes(data)
    refused(tmp_path / "a.csv", says)


def test_files_that_cannot_be_read(tmp_path: Path):
    refused(tmp_path / "a.csv", "cannot be read")
    refused(tmp_path / "a.toml", "cannot be read")
    (tmp_path / "b.csv").mkdir()
    refused(tmp_path / "b.csv", "cannot be read")
    (tmp_path / "a.xlsx").touch()
    refused(tmp_path / "a.xlsx", "ends in '.xlsx'")


def test_the_line_is_right_in_later_blocks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(csv_reading, "BLOCK", 2000)
    rows = [[float(k), *np.full(6, 0.5)] for k in range(2000)]
    rows[1500][3] = float("nan")
    (tmp_path / "a.csv").write_text(text_of(rows=rows))
    refused(tmp_path / "a.csv", "line 1502: qd.joint1 is nan")
    rows[1500][3] = 0.5
    (tmp_path / "a.csv").write_text(text_of(rows=rows))
    np.testing.assert_array_equal(read(tmp_path / "a.csv"), rows)
    rows[1234][0] = rows[1233][0]
    (tmp_path / "a.csv").write_text(text_of(rows=rows))
    refused(tmp_path / "a.csv", "line 1236: t is 1233.0 after 1233.0")


@pytest.mark.slow
def test_memory_does_not_grow_with_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(csv_reading, "BLOCK", 1 << 16)
    path, peaks = tmp_path / "a.csv", []
    for count in (10_000, 40_000):
        table = np.column_stack([np.arange(count), np.random.default_rng(0).uniform(size=(count, 6))])
        path.write_text(text_of(rows=[]) + csv_rows(table))
        tracemalloc.start()
        write_table(tmp_path / "b.csv", block_columns(MODEL, BLOCKS), open_trajectory(path, MODEL, BLOCKS), {})
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
        np.testing.assert_array_equal(read(tmp_path / "b.csv"), table)
    assert peaks[1] < 1.5 * peaks[0] < path.stat().st_size


def test_plain_joint_names_are_positions(tmp_path: Path):
    names = ["t", "joint2", "joint1", *HEADER[3:]]
    (tmp_path / "a.csv").write_text(text_of(names))
    np.testing.assert_array_equal(read(tmp_path / "a.csv"), np.array(ROWS)[:, [0, 2, 1, 3, 4, 5, 6]])
    requested = find_columns("a.csv", names, MODEL.name, block_columns(MODEL, ("q",)))
    assert [column.index for column in requested] == [0, 2, 1]


def test_a_spline_gives_the_derivatives_of_a_smooth_motion(tmp_path: Path):
    t = np.linspace(0.0, 2.0, 200)
    q = np.stack([np.sin(t), np.cos(2 * t)], axis=1)
    (tmp_path / "a.csv").write_text(text_of(["t", "joint1", "joint2"], np.column_stack([t, q]).tolist()))
    found = read(tmp_path / "a.csv", spline=True)
    np.testing.assert_array_equal(found[:, :3], np.column_stack([t, q]))
    exact = np.column_stack([np.cos(t), -2 * np.sin(2 * t), -np.sin(t), -4 * np.cos(2 * t)])
    # the spline's own error, with 100 samples per second: h^5 and h^4 of the derivatives
    np.testing.assert_allclose(found[:, 3:5], exact[:, :2], atol=1e-8)
    np.testing.assert_allclose(found[:, 5:], exact[:, 2:], atol=1e-5)
    (tmp_path / "b.csv").write_text(text_of(["t", "joint1", "joint2"], [row[:3] for row in ROWS[:5]]))
    refused(tmp_path / "b.csv", "5 rows, expected 6", spline=True)
    with pytest.raises(ArgumentError, match="quaternions"):
        read(tmp_path / "a.csv", FLOATING, spline=True)


# writing


def blocks() -> Iterator[np.ndarray]:
    yield np.array(ROWS[:5])
    yield np.array(ROWS[5:])


@pytest.mark.quick
@pytest.mark.parametrize("folder", [".", "new/folder"])
def test_csv_and_npz_hold_every_bit(tmp_path: Path, folder: str):
    columns, about = block_columns(MODEL, BLOCKS), {"robot": "planar2"}
    write_table(tmp_path / folder / "a.csv", columns, blocks(), about)
    np.testing.assert_array_equal(read(tmp_path / folder / "a.csv"), ROWS)
    write_table(tmp_path / folder / "a.NPZ", columns, blocks(), about)
    with np.load(tmp_path / folder / "a.NPZ") as file:
        np.testing.assert_array_equal(np.column_stack([file[name] for name in ("t", *BLOCKS)]), ROWS)
        assert file["t"].shape == (8,) and file["qd"].shape == (8, 2)
        assert file["columns"].tolist() == HEADER and json.loads(str(file["about"])) == about


def test_names_with_commas_survive(tmp_path: Path):
    columns = {"t": ("t",), "q": ('q.a,"b"', "q.[c]")}
    write_table(tmp_path / "a.csv", columns, [np.ones((1, 3))], {})
    with (tmp_path / "a.csv").open(newline="") as file:
        assert next(csv.reader(file)) == ["t", 'q.a,"b"', "q.[c]"]


@pytest.mark.parametrize("ending", [".csv", ".npz"])
def test_an_error_on_the_way_leaves_nothing(tmp_path: Path, ending: str):
    (tmp_path / f"a{ending}").write_text("old")

    def failing() -> Iterator[np.ndarray]:
        yield np.array(ROWS)
        raise ArgumentError("a bad row")

    with pytest.raises(ArgumentError, match="a bad row"):
        write_table(tmp_path / f"a{ending}", block_columns(MODEL, BLOCKS), failing(), {})
    assert [path.name for path in tmp_path.iterdir()] == [f"a{ending}"]
    assert (tmp_path / f"a{ending}").read_text() == "old"


@pytest.mark.parametrize(
    ("name", "says"),
    [("a", "ends in ''"), ("a.xlsx", "ends in '.xlsx'"), ("b.csv", "is a folder"), ("c/a.csv", "folder")],
)
def test_outputs_that_cannot_be(tmp_path: Path, name: str, says: str):
    (tmp_path / "b.csv").mkdir()
    (tmp_path / "c").touch()
    with pytest.raises(ArgumentError, match=says):
        write_table(tmp_path / name, block_columns(MODEL, BLOCKS), blocks(), {})


def test_parquet_needs_pyarrow(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(sys.modules, "pyarrow.parquet", None)
    with pytest.raises(BackendError, match="pip install pyarrow"):
        write_table(tmp_path / "a.parquet", block_columns(MODEL, BLOCKS), blocks(), {})
    assert list(tmp_path.iterdir()) == []


# with pyarrow, where it is installed


def test_parquet(tmp_path: Path):
    parquet = pytest.importorskip("pyarrow.parquet")
    write_table(tmp_path / "a.parquet", block_columns(MODEL, BLOCKS), blocks(), {"robot": "planar2"})
    table = parquet.read_table(tmp_path / "a.parquet")
    assert table.column_names == HEADER
    np.testing.assert_array_equal(np.column_stack([column.to_numpy() for column in table.columns]), ROWS)
    assert json.loads(table.schema.metadata[b"linksweep"]) == {"robot": "planar2"}


@pytest.mark.parametrize(
    ("find", "put", "says"),
    [
        ("", "", ""),
        ("\n4000.0,", "\n\n\n4000.0,", ""),
        ("\n4000.0,", '\n"4000.0",', ""),
        ("\n4000.0,", "\n4000.0,1,", "line 4002 has 8 values"),
        ("\n4000.0,", "\nnan,", "line 4002: t is nan"),
        ("\n4000.0,", "\n,", "line 4002: t is ''"),
        ("\n4000.0,", "\n3000.0,", "line 4002: t is 3000.0 after 3999.0"),
        ("\n4000.0,", "\n\n\n4.0,", "line 4004: t is 4.0 after 3999.0"),
    ],
)
def test_both_readers_say_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, find: str, put: str, says: str):
    pytest.importorskip("pyarrow.csv")
    monkeypatch.setattr(csv_reading, "BLOCK", 1 << 16)
    table = np.column_stack([np.arange(5000), np.random.default_rng(0).uniform(size=(5000, 6))])
    columns = block_columns(MODEL, BLOCKS)
    write_table(tmp_path / "a.csv", columns, [table], {})
    path = tmp_path / "b.csv"
    # pyarrow writes whole numbers without a point, Python with one
    path.write_text(text_of(rows=[]) + csv_rows(table).replace(find, put, 1))
    for hidden in (False, True):
        if hidden:
            monkeypatch.setitem(sys.modules, "pyarrow", None)
        if says:
            refused(path, says)
        else:
            np.testing.assert_array_equal(read(path), table)
        np.testing.assert_array_equal(read(tmp_path / "a.csv"), table)


# motions in TOML

MOTION = """
motion = "quintic"
times = [0.0, 2.0, 4.0]
samples = 5
[joints]
joint1 = [0.0, 1.0, -1.0]
joint2 = 0.5
"""


def motion(tmp_path: Path, text: str) -> np.ndarray:
    (tmp_path / "m.toml").write_text(text)
    return read(tmp_path / "m.toml")


def test_a_motion_goes_through_its_points(tmp_path: Path):
    table = motion(tmp_path, MOTION)
    np.testing.assert_array_equal(table[:, 0], [0, 1, 2, 3, 4])
    np.testing.assert_allclose(table[::2, 1], [0.0, 1.0, -1.0], atol=1e-15)
    np.testing.assert_array_equal(table[:, 2], 0.5)
    np.testing.assert_allclose(table[::2, 3:], 0.0, atol=1e-12)  # at rest at each point
    degrees = motion(tmp_path, MOTION.replace("samples", "degrees = true\nsamples"))
    np.testing.assert_allclose(degrees[:, 1:], np.radians(table[:, 1:]), rtol=1e-14, atol=1e-16)


@pytest.mark.parametrize(
    ("kind", "lines"),
    [
        ("quintic", "times = [0.0, 4.0]"),
        ("cubic_spline", "times = [0.0, 4.0]"),
        ("quintic_spline", 'times = [0.0, 4.0]\nends = "rest"'),
        ("cycloid", "duration = 4.0"),
        ("trapezoid", "velocity = 0.5\nacceleration = {joint1 = 1.0, joint2 = 2.0}"),
    ],
)
def test_every_kind_of_motion(tmp_path: Path, kind: str, lines: str):
    text = f'motion = "{kind}"\n{lines}\nstep = 0.0625\n[joints]\njoint1 = [0.0, 1.0]\njoint2 = [1.0, 0.5]\n'
    table = motion(tmp_path, text)
    np.testing.assert_allclose(np.diff(table[:, 0]), 0.0625, rtol=1e-12)
    np.testing.assert_allclose(table[0, 1:5], [0.0, 1.0, 0.0, 0.0], atol=1e-12)
    path = read_motion(tmp_path / "m.toml", MODEL)
    np.testing.assert_allclose(path(path.end).q, [1.0, 0.5], rtol=1e-12)
    # rates are derivatives of positions: Simpson's rule over each interval, an error of h^4; a trapezoid's rate has
    # kinks, and an interval with one in it is off by up to h^2 / 24 of the jump in acceleration
    middle = path(table[:-1, 0] + 0.03125)
    step = (table[:-1, 3:5] + 4 * middle.qd + table[1:, 3:5]) * 0.0625 / 6
    np.testing.assert_allclose(np.diff(table[:, 1:3], axis=0), step, atol=1e-4 if kind == "trapezoid" else 1e-7)


@pytest.mark.parametrize(
    ("find", "put", "says"),
    [
        ('"quintic"', '"quintc"', "did you mean 'quintic'"),
        ('motion = "quintic"\n', "", "no key 'motion'"),
        ("times", "time", "'time' .did you mean 'times'"),
        ("times = [0.0, 2.0, 4.0]\n", "", "no key 'times'"),
        ("[0.0, 2.0, 4.0]", "[4.0, 2.0, 0.0]", "increasing times"),
        ("[0.0, 2.0, 4.0]", "[0.0, 4.0]", "one time per point"),
        ("[0.0, 2.0, 4.0]", '[0.0, 2.0, "4"]', "expected real numbers"),
        ("samples = 5", "", "neither samples nor step"),
        ("samples = 5", "samples = 5\nstep = 0.1", "both samples and step"),
        ("samples = 5", "samples = 1", "samples = 1"),
        ("samples = 5", "samples = 5.5", "samples = 5.5"),
        ("samples = 5", "step = 0", "step = 0"),
        ("samples = 5", "step = 9.0", "step = 9"),
        ("samples = 5", "step = 1e-9", "step = 1e-09"),
        ("samples = 5", "samples = 5\ndegrees = 1", "degrees = 1"),
        ("joint1 =", "jiont1 =", "'jiont1' in .joints., no joint .did you mean 'joint1'"),
        ("joint2 = 0.5\n", "", "no 'joint2'"),
        ("joint2 = 0.5", "joint2 = [0.5, 0.6]", "2 positions of joint2 and 3 of joint1"),
        ("joint2 = 0.5", 'joint2 = "x"', "'x' as a position of joint2"),
        ("joint2 = 0.5", "joint2 = nan", "nan as a position of joint2"),
        ("[0.0, 1.0, -1.0]", "0.0", "no joint with several positions"),
        ("[joints]", "[joints", "is not TOML .*line 5"),
    ],
)
def test_bad_motions(tmp_path: Path, find: str, put: str, says: str):
    assert find in MOTION
    (tmp_path / "m.toml").write_text(MOTION.replace(find, put))
    refused(tmp_path / "m.toml", says)


def test_a_motion_has_no_torques(tmp_path: Path):
    (tmp_path / "m.toml").write_text(MOTION)
    refused(tmp_path / "m.toml", "no torques", blocks=("q", "qd", "tau"))
    refused(tmp_path / "m.toml", "its own derivatives", spline=True)
    refused(tmp_path / "m.toml", "joints of one coordinate", model=FLOATING)
