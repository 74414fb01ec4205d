"""Logs from tables, arrays, messages and ROS bags: all give the same signals; damaged files raise `ArgumentError`."""

from __future__ import annotations

import io
import subprocess
import sys
import zipfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from command_line import Outcome
from command_line import run as run  # a fixture

import linksweep as ls
from linksweep.errors import ArgumentError, LogWarning
from linksweep.files import bags, open_trajectory

ROBOT = ls.robots.puma560().lock(["joint4", "joint5", "joint6"])
NAMES = list(ROBOT.joint_names)
ROWS = 60
RNG = np.random.default_rng(0)
T = 0.01 * np.arange(ROWS)
SIGNALS = {name: RNG.normal(size=(ROWS, 3)) for name in ("q", "qd", "tau")}
EPOCH = 1_700_000_000_000_000_000  # ns


def check(log: ls.JointLog, rows: Any = slice(None), signals: Sequence[str] = ("q", "qd", "tau")) -> None:
    np.testing.assert_allclose(log.t, T[rows], atol=1e-6)
    for name in ("q", "qd", "qdd", "tau"):
        values = getattr(log, name)
        if name in signals:
            np.testing.assert_array_equal(values, SIGNALS[name][rows])
        else:
            assert values is None


# ---- tables


def columns_named(template: dict[str, str]) -> tuple[list[str], np.ndarray]:
    """A table with the joints in another order, columns named by templates such as {"q": "{}_pos"}."""
    order = [2, 0, 1]
    header = [template["t"], *(template[s].format(NAMES[k]) for s in ("q", "qd", "tau") for k in order)]
    return header, np.column_stack([T, *(SIGNALS[s][:, order] for s in ("q", "qd", "tau"))])


@pytest.mark.quick
@pytest.mark.parametrize(
    "template",
    [
        {"t": "t", "q": "q.{}", "qd": "qd.{}", "tau": "tau.{}"},
        {"t": "time", "q": "position.{}", "qd": "velocity.{}", "tau": "effort.{}"},
        {"t": "stamp", "q": "{}_pos", "qd": "{}_vel", "tau": "{}_torque"},
        {"t": "Time [s]", "q": "{}.position [rad]", "qd": "{}.velocity (rad/s)", "tau": "{}.effort [Nm]"},
        {"t": "__time", "q": "/joint_states/{}/position", "qd": "/joint_states/{}/velocity", "tau": "/a/{}/effort"},
        {"t": "timestamp", "q": "{}", "qd": "dq_{}", "tau": "torque_{}"},
    ],
    ids=lambda template: template["q"],
)
def test_names_of_columns(tmp_path: Path, template: dict[str, str]):
    header, table = columns_named(template)
    path = tmp_path / "a.csv"
    rows = "\n".join(",".join(map(repr, row)) for row in table.tolist())
    path.write_text(",".join(header) + "\n" + rows)
    check(ls.read_log(path, ROBOT))
    check(ls.read_log(dict(zip(header, table.T, strict=True)), ROBOT))
    table = np.concatenate(list(open_trajectory(path, ROBOT.model, ("q", "tau"))))
    np.testing.assert_array_equal(table[:, 1:], np.column_stack([SIGNALS["q"], SIGNALS["tau"]]))


def test_units_of_columns(tmp_path: Path):
    header = ["time [ms]", *(f"{n}_pos_deg" for n in NAMES), *(f"vel.{n} [rpm]" for n in NAMES)]
    header += [f"tau.{n} (mNm)" for n in NAMES]
    factors = np.array([1e3, *[180 / np.pi] * 3, *[30 / np.pi] * 3, *[1e3] * 3])
    table = np.column_stack([T, *SIGNALS.values()]) * factors
    path = tmp_path / "a.csv"
    path.write_text(",".join(header) + "\n" + "\n".join(",".join(map(repr, row)) for row in table.tolist()))
    log = ls.read_log(path, ROBOT)
    for name, values in {"t": T, **SIGNALS}.items():
        np.testing.assert_allclose(getattr(log, name), values, rtol=1e-12, atol=1e-15)
    found = np.concatenate(list(open_trajectory(path, ROBOT.model, ("q",))))
    np.testing.assert_allclose(found, np.column_stack([T, SIGNALS["q"]]), rtol=1e-12, atol=1e-15)
    path.write_text(path.read_text().replace("[rpm]", "[furlong]"))
    with pytest.raises(ArgumentError, match="furlong"):
        ls.read_log(path, ROBOT)


@pytest.mark.parametrize("unit", [1.0, 1e3, 1e6, 1e9])
def test_stamps_of_a_clock_count_from_the_first(unit: float):
    stamps = (1.7e9 + T) * unit
    log = ls.read_log({"stamp": stamps if unit < 1e9 else stamps.astype(np.int64), "q": SIGNALS["q"]}, ROBOT)
    np.testing.assert_allclose(log.t, T, atol=1e-6)


def test_rows_out_of_order_and_other_joints():
    order = RNG.permutation(ROWS)
    arrays = {"t": T[order], **{name: values[order] for name, values in SIGNALS.items()}}
    with pytest.warns(LogWarning, match="^order: "):
        check(ls.read_log(arrays, ROBOT))
    header, table = columns_named({"t": "t", "q": "q.{}", "qd": "qd.{}", "tau": "tau.{}"})
    columns = {**dict(zip(header, table.T, strict=True)), "q.gripper": T}
    with pytest.warns(LogWarning, match=r"^joints: .*q\.gripper"):
        check(ls.read_log(columns, ROBOT))
    del columns[f"tau.{NAMES[1]}"], columns["q.gripper"]
    with pytest.warns(LogWarning, match=rf"^incomplete: .*tau\.{NAMES[1]}"):
        check(ls.read_log(columns, ROBOT), signals=("q", "qd"))


@pytest.mark.parametrize(
    ("arrays", "says"),
    [
        ({"q": SIGNALS["q"]}, "no array of times"),
        ({"t": T}, "no column"),
        ({"t": T, "q": SIGNALS["q"][:, :2]}, "2 columns, expected 3"),
        ({"t": T, "q": SIGNALS["q"], "position": SIGNALS["q"]}, "occurs twice"),
        ({"t": T, "q": SIGNALS["q"], "joint_names": ["a", "b", "c"]}, "names no joint"),
        ({"t": T, "q": np.full((ROWS, 3), "a")}, "no column"),
        ({"t": T[:0], "q": SIGNALS["q"][:0]}, "no"),
    ],
)
def test_arrays_that_are_no_log(arrays: dict[str, Any], says: str):
    with pytest.raises(ArgumentError, match=says):
        ls.read_log(arrays, ROBOT)


# ---- files of arrays


def to_parquet(path: Path) -> None:
    pyarrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    header, table = columns_named({"t": "time", "q": "position.{}", "qd": "{}_vel", "tau": "tau.{}"})
    columns = [pyarrow.array((EPOCH + 1e9 * T).astype("datetime64[ns]")), *map(pyarrow.array, table.T[1:])]
    parquet.write_table(pyarrow.table(columns, names=header), path)


def to_npz(path: Path) -> None:
    order = [2, 0, 1]
    arrays: dict[str, Any] = {name: values[:, order] for name, values in SIGNALS.items()}
    np.savez(path, t=T, joint_names=[NAMES[k] for k in order], **arrays)


def to_hdf5(path: Path) -> None:
    h5py = pytest.importorskip("h5py")
    with h5py.File(path, "w") as file:
        group = file.create_group("joint_states")
        group["name"] = [NAMES[k] for k in (1, 2, 0)]
        group["stamp"] = EPOCH + (1e9 * T).astype(np.int64)
        for name, signal in (("position", "q"), ("velocity", "qd"), ("effort", "tau")):
            group[name] = SIGNALS[signal][:, [1, 2, 0]]
        group["external"] = h5py.ExternalLink("/etc/passwd", "/")


def to_mat(path: Path) -> None:
    from scipy.io import savemat

    names = np.array([NAMES[k] for k in (1, 0, 2)], dtype=object)
    signals = {name: values[:, [1, 0, 2]].T for name, values in SIGNALS.items()}
    savemat(path, {"log": {"time": T[:, None], "names": names, **signals}})


def to_linksweep_csv(path: Path) -> None:
    from linksweep.files import block_columns, write_table

    columns = block_columns(ROBOT.model, ("q", "qd", "tau"))
    write_table(path, columns, [np.column_stack([T, *SIGNALS.values()])], {})


WRITERS: dict[str, Callable[[Path], None]] = {
    ".parquet": to_parquet, ".npz": to_npz, ".h5": to_hdf5, ".mat": to_mat, ".csv": to_linksweep_csv,
}  # fmt: skip


@pytest.mark.quick
@pytest.mark.cases(5)
@pytest.mark.parametrize("ending", WRITERS)
def test_all_formats_give_the_same_signals(tmp_path: Path, ending: str):
    path = tmp_path / f"log{ending}"
    WRITERS[ending](path)
    check(ls.read_log(path, ROBOT))
    table = np.concatenate(list(open_trajectory(path, ROBOT.model, ("q", "tau"))))
    np.testing.assert_array_equal(table[:, 1:], np.column_stack([SIGNALS["q"], SIGNALS["tau"]]))


DAMAGE = """
import sys, warnings
from pathlib import Path
import numpy as np
import linksweep as ls
warnings.simplefilter("ignore")
robot = ls.robots.puma560().lock(["joint4", "joint5", "joint6"])
path = Path(sys.argv[1])
whole = path.read_bytes()
rng = np.random.default_rng(1)
copy = path.with_name("damaged" + path.suffix)
raised = 0
for k in range(int(sys.argv[2])):
    data = bytearray(whole)
    if k % 2:
        data = data[: int(rng.integers(0, len(data)))]
    else:
        for at in rng.integers(0, min(len(data), 3000), 5):
            data[at] = rng.choice([0, 255, 127, rng.integers(256)])
    copy.write_bytes(data)
    try:
        ls.read_log(copy, robot)
    except ls.ArgumentError as error:
        assert "\\n" not in str(error) and str(copy) in str(error), error
        raised += 1
print(raised)
"""


def damaged(path: Path, count: int) -> int:
    """Read damaged copies in a process of its own: either a log, or an error of one line that names the file."""
    command = [sys.executable, "-c", DAMAGE, str(path), str(count)]
    result = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert result.returncode == 0, result.stderr
    return int(result.stdout)


@pytest.mark.slow
@pytest.mark.parametrize("ending", [".parquet", ".npz", ".h5", ".mat"])
def test_damaged_arrays(tmp_path: Path, ending: str):
    path = tmp_path / f"log{ending}"
    WRITERS[ending](path)
    assert damaged(path, 40) >= 12


def test_arrays_with_objects_or_huge_sizes(tmp_path: Path):
    np.savez(tmp_path / "a.npz", t=T, q=SIGNALS["q"], extra=np.array([{"a": 1}], dtype=object))
    with pytest.raises(ArgumentError, match=r"a\.npz is damaged .*allow_pickle"):
        ls.read_log(tmp_path / "a.npz", ROBOT)
    header = io.BytesIO()
    np.lib.format.write_array_header_1_0(header, {"descr": "<f8", "fortran_order": False, "shape": (2**50, 3)})
    with zipfile.ZipFile(tmp_path / "b.npz", "w") as file:
        file.writestr("t.npy", header.getvalue())
    with pytest.raises(ArgumentError, match=r"b\.npz"):
        ls.read_log(tmp_path / "b.npz", ROBOT)
    h5py = pytest.importorskip("h5py")
    with h5py.File(tmp_path / "c.h5", "w") as file:
        file["t"] = T
        file.create_dataset("q", shape=(2**45, 3), dtype="f8", chunks=(1000, 3))
    with pytest.raises(ArgumentError, match=r"c\.h5.*GiB"):
        ls.read_log(tmp_path / "c.h5", ROBOT)
    from scipy.io import savemat

    objects = np.array([{"a": 1}, None, "text"], dtype=object)
    objects[1] = np.zeros(3)
    savemat(tmp_path / "d.mat", {"t": T, "q": objects})
    with pytest.raises(ArgumentError, match=r"d\.mat has no column"):
        ls.read_log(tmp_path / "d.mat", ROBOT)
    data = (tmp_path / "d.mat").read_bytes()
    (tmp_path / "e.mat").write_bytes(data[:132] + (2**31 - 8).to_bytes(4, "little") + data[136:])
    with pytest.raises(ArgumentError, match=r"e\.mat"):
        ls.read_log(tmp_path / "e.mat", ROBOT)


@pytest.mark.parametrize(
    "name", ["missing.csv", "missing.npz", "missing.mat", "missing.parquet", "missing.mcap", "a.xls"]
)
def test_files_that_cannot_be_read(tmp_path: Path, name: str):
    if name.endswith(".mcap"):
        pytest.importorskip("rosbags")
    with pytest.raises(ArgumentError, match=name):
        ls.read_log(tmp_path / name, ROBOT)
    with pytest.raises(ArgumentError, match="topic"):
        ls.read_log("log.csv", ROBOT, topic="/joint_states")


# ---- messages


def message(row: int, names: Sequence[int] = (2, 0, 1), efforts: bool = True) -> dict[str, Any]:
    nanoseconds = EPOCH + round(1e9 * T[row])
    return {
        "header": {"stamp": {"sec": nanoseconds // 10**9, "nanosec": nanoseconds % 10**9}, "frame_id": "base"},
        "name": [*(NAMES[k] for k in names), "gripper"],
        "position": [*SIGNALS["q"][row, list(names)], 0.5],
        "velocity": [*SIGNALS["qd"][row, list(names)], 0.5],
        "effort": [*SIGNALS["tau"][row, list(names)], 0.5] if efforts else [],
    }


@pytest.mark.quick
def test_dictionaries_in_the_form_of_messages():
    check(ls.read_log([message(row) for row in range(ROWS)], ROBOT))
    log = ls.read_log(message(3), ROBOT)
    assert log.t.tolist() == [0.0] and log.q is not None
    np.testing.assert_array_equal(log.q, SIGNALS["q"][3:4])
    with pytest.raises(ArgumentError, match="message 1"):
        ls.read_log([message(0), "text"], ROBOT)  # type: ignore[list-item]
    with pytest.raises(ArgumentError, match="no joint states of 'joint3'"):
        ls.read_log({"name": NAMES[:2], "position": [1.0, 2.0]}, ROBOT)


FORMATS = ("bag", "db3", "mcap")


def write_bag(
    path: Path, kind: str, messages: Sequence[tuple[str, int, dict[str, Any]]], big_endian: bool = False
) -> Path:
    """Write (topic, time of recording in ns, message) with the writers and serializers of rosbags."""
    pytest.importorskip("rosbags")
    from rosbags.rosbag1 import Writer as Writer1
    from rosbags.rosbag2 import StoragePlugin
    from rosbags.rosbag2 import Writer as Writer2
    from rosbags.typesys import Stores, get_typestore

    store = get_typestore(Stores.ROS1_NOETIC if kind == "bag" else Stores.ROS2_HUMBLE)
    state, header, stamp = (
        store.types[name] for name in (bags.JOINT_STATE, "std_msgs/msg/Header", "builtin_interfaces/msg/Time")
    )
    text = store.types["std_msgs/msg/String"]
    if kind == "bag":
        path, writer = path.with_suffix(".bag"), Writer1(path.with_suffix(".bag"))
    else:
        plugin = StoragePlugin.MCAP if kind == "mcap" else StoragePlugin.SQLITE3
        writer = Writer2(path, version=9, storage_plugin=plugin)
    with writer:
        kinds = {"/text": text, **{topic: state for topic, *_ in messages}}
        connections = {
            topic: writer.add_connection(topic, k.__msgtype__, typestore=store) for topic, k in kinds.items()
        }
        rows: list[tuple[str, int, Any]] = [("/text", EPOCH, text(data="hello"))]
        for number, (topic, time, fields) in enumerate(messages):
            counter = {"seq": number} if kind == "bag" else {}
            at = stamp(**fields["header"]["stamp"])
            head = header(stamp=at, frame_id=fields["header"]["frame_id"], **counter)
            values = {name: np.array(fields[name], dtype=float) for name in bags.SIGNALS}
            rows.append((topic, time, state(header=head, name=fields["name"], **values)))
        for topic, time, one in rows:
            if kind == "bag":
                data = store.serialize_ros1(one, one.__msgtype__)
            else:
                data = store.serialize_cdr(one, one.__msgtype__, little_endian=not big_endian)
            writer.write(connections[topic], time, data)
    return path


def recorded(row: int) -> int:
    return EPOCH + round(1e9 * T[row]) + 5_000_000


@pytest.mark.quick
@pytest.mark.cases(3)
@pytest.mark.parametrize("kind", FORMATS)
def test_bags_give_the_same_signals(tmp_path: Path, kind: str):
    path = write_bag(tmp_path / "a", kind, [("/joint_states", recorded(k), message(k)) for k in range(ROWS)])
    check(ls.read_log(path, ROBOT))
    check(ls.read_log(path, ROBOT, topic="/joint_states", stamps="received"))
    if kind != "bag":
        check(ls.read_log(next(path.glob(f"*.{kind}")), ROBOT))
    table = np.concatenate(list(open_trajectory(path, ROBOT.model, ("q", "qd", "tau"), topic="/joint_states")))
    np.testing.assert_array_equal(table[:, 1:], np.column_stack(list(SIGNALS.values())))
    with pytest.raises(ArgumentError, match="mean '/joint_states'"):
        ls.read_log(path, ROBOT, topic="/joint_state")
    with pytest.raises(ArgumentError, match="std_msgs/msg/String"):
        ls.read_log(path, ROBOT, topic="/text")
    with pytest.raises(ArgumentError, match="no joint states of 'joint4'"):
        ls.read_log(path, ls.robots.puma560())


@pytest.mark.cases(3)
@pytest.mark.parametrize("kind", FORMATS)
def test_bags_with_changing_messages(tmp_path: Path, kind: str):
    """Joints in several orders, frames of several lengths, stamps out of order, messages of another node."""
    rows = []
    for k in range(ROWS):
        one = message(k, ((2, 0, 1), (0, 1, 2), (1, 0, 2))[k % 3])
        one["header"]["frame_id"] = "base" * (k % 4)
        rows.append(("/joint_states", recorded(k), one))
        if k % 5 == 0:
            other = {**message(k), "name": ["finger"], "position": [1.0], "velocity": [], "effort": []}
            rows.append(("/joint_states", recorded(k), other))
    check(ls.read_log(write_bag(tmp_path / "a", kind, rows), ROBOT))
    stamps = [rows[k][2]["header"]["stamp"] for k in range(len(rows))]
    rows[3][2]["header"]["stamp"], rows[4][2]["header"]["stamp"] = stamps[4], stamps[3]
    with pytest.warns(LogWarning, match="^order: "):
        log = ls.read_log(write_bag(tmp_path / "b", kind, rows), ROBOT)
    np.testing.assert_allclose(log.t, T, atol=1e-9)


@pytest.mark.cases(3)
@pytest.mark.parametrize("kind", FORMATS)
def test_bags_without_efforts_or_stamps(tmp_path: Path, kind: str):
    rows = [("/joint_states", recorded(k), message(k, efforts=False)) for k in range(ROWS)]
    path = write_bag(tmp_path / "a", kind, rows)
    with pytest.warns(LogWarning, match="^efforts: "):
        check(ls.read_log(path, ROBOT), signals=("q", "qd"))
    with pytest.raises(ArgumentError, match="tau"), pytest.warns(LogWarning):
        next(open_trajectory(path, ROBOT.model, ("q", "tau")))
    for k, (_, _, one) in enumerate(rows):
        one["header"]["stamp"] = {"sec": 0, "nanosec": 0}
        one["effort"] = [] if k < 10 else message(k)["effort"]
    with pytest.warns(LogWarning, match="^stamps: "):
        log = ls.read_log(write_bag(tmp_path / "b", kind, rows), ROBOT)
    np.testing.assert_allclose(log.t, T, atol=1e-9)
    assert log.tau is not None and np.isnan(log.tau[:10]).all()
    np.testing.assert_array_equal(log.tau[10:], SIGNALS["tau"][10:])


@pytest.mark.cases(3)
@pytest.mark.parametrize("kind", FORMATS)
def test_bags_with_two_topics(tmp_path: Path, kind: str):
    both = [(topic, recorded(k), message(k)) for k in range(ROWS) for topic in ("/commands", "/joint_states")]
    path = write_bag(tmp_path / "a", kind, both)
    with pytest.raises(ArgumentError, match=r"'/commands', '/joint_states'.*topic"):
        ls.read_log(path, ROBOT)
    check(ls.read_log(path, ROBOT, topic="/joint_states"))
    # the joints of two nodes, on two topics, the second at half the rate
    rows = []
    for k in range(ROWS):
        rows.append(("/arm", recorded(k), message(k, (0, 1))))
        if k % 2 == 0:
            rows.append(("/wrist", recorded(k), message(k, (2,))))
    path = write_bag(tmp_path / "b", kind, rows)
    for topic in (None, ["/arm", "/wrist"]):
        log = ls.read_log(path, ROBOT, topic=topic)
        np.testing.assert_allclose(log.t, T[: ROWS - 1], atol=1e-9)
        assert log.q is not None
        np.testing.assert_array_equal(log.q[:, :2], SIGNALS["q"][: ROWS - 1, :2])
        exact = np.interp(T[: ROWS - 1], T[::2], SIGNALS["q"][::2, 2])
        np.testing.assert_allclose(log.q[:, 2], exact, rtol=1e-9, atol=1e-12)
    with pytest.raises(ArgumentError, match="'joint3'"):
        ls.read_log(path, ROBOT, topic="/arm")


def test_big_endian_messages(tmp_path: Path):
    rows = [("/joint_states", recorded(k), message(k)) for k in range(ROWS)]
    check(ls.read_log(write_bag(tmp_path / "a", "mcap", rows, big_endian=True), ROBOT))


def test_every_message_of_its_own_layout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(bags, "BATCH", 50)
    rows = [("/joint_states", recorded(k), message(k)) for k in range(ROWS)]
    for k, (_, _, one) in enumerate(rows):
        one["header"]["frame_id"] = "x" * (4 * k)
    check(ls.read_log(write_bag(tmp_path / "a", "db3", rows), ROBOT))


@pytest.mark.slow
@pytest.mark.parametrize("kind", FORMATS)
def test_damaged_bags(tmp_path: Path, kind: str):
    path = write_bag(tmp_path / "a", kind, [("/joint_states", recorded(k), message(k)) for k in range(ROWS)])
    assert damaged(path if kind == "bag" else next(path.glob(f"*.{kind}")), 60) >= 20


@pytest.mark.parametrize("cut", [1, 9, 30, 45, 60, 100])
def test_messages_that_end_early_or_lie_about_sizes(cut: int):
    from linksweep.files.bags import _layout

    text = b"".join(len(name).to_bytes(4, "little") + name.encode() for name in NAMES)
    counts = (3).to_bytes(4, "little")
    whole = bytes(12) + bytes(4) + counts + text + 3 * (counts + bytes(24))
    assert _layout(whole, True).names == tuple(NAMES)
    with pytest.raises(ArgumentError, match="ends after"):
        _layout(whole[: len(whole) - cut], True)
    with pytest.raises(ArgumentError, match="names"):
        _layout(bytes(16) + b"\xff\xff\xff\xff" + whole[20:], True)
    with pytest.raises(ArgumentError, match="CDR"):
        _layout(b"\x00\x07\x00\x00" + whole, False)


# ---- commands


@pytest.mark.quick
def test_commands_read_bags(run: Callable[..., Outcome], tmp_path: Path):
    path = write_bag(tmp_path / "a", "mcap", [("/joint_states", recorded(k), message(k)) for k in range(ROWS)])
    (tmp_path / "robot.urdf").write_text(ROBOT.to_urdf())
    robot, log = str(tmp_path / "robot.urdf"), ["-t", str(path), "--topic", "/joint_states"]
    output = tmp_path / "qdd.csv"
    assert run("forward", robot, *log, "-o", str(output)).code == 0
    table = np.loadtxt(output, delimiter=",", skiprows=1)
    position, velocity, effort = SIGNALS.values()
    accelerations = ROBOT.forward_dynamics(position, velocity, effort)
    np.testing.assert_allclose(table[:, 1:], accelerations, rtol=1e-6, atol=1e-6)
    assert run("inverse", robot, *log, "--spline").code == 0
    assert run("simulate", robot, "--torque", str(path), "--topic", "/joint_states", "--dt", "0.01").code == 0
    assert run("inverse", robot, "-t", str(path), "--topic", "/other", "--spline").code == 2
