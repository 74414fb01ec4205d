"""Mistakes that users make raise an error of linksweep that names what is wrong and what is allowed."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from abuse_helpers import robot, run_python
from error_checks import refused

import linksweep as ls
from linksweep.errors import ArgumentError, BackendError, DescriptionError, LinksweepError, SingularError

PUMA = ls.robots.puma560()
Q = np.zeros(6)
ROW = {"alpha": 0.1, "a": 0.2, "mass": 1.0, "inertia": (0.1, 0.1, 0.1)}
URDF = """<robot name="r"><link name="base"/>
<link name="arm"><inertial><mass value="1"/>
<inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial></link>
<joint name="j" type="revolute"><parent link="base"/><child link="arm"/><axis xyz="0 0 1"/></joint></robot>
"""


def load(tmp_path: Path, name: str, content: str | bytes) -> Callable[[], Any]:
    file = tmp_path / name
    file.write_bytes(content.encode() if isinstance(content, str) else content)
    return lambda: ls.load(file)


def inverse(*args: Any, **options: Any) -> Callable[[], Any]:
    return lambda: PUMA.inverse_dynamics(*args, **options)


# ---- arrays


ARRAYS = {
    "seven positions": (
        (np.zeros(7), Q, Q),
        {},
        r"q has 7 entries in its last axis \(shape \(7,\)\), expected 6 .*pass",
    ),
    "five velocities": ((Q, [0.0] * 5, Q), {}, r"qd has 5 entries .*, expected 6 \(one per velocity\), pass an array"),
    "transposed": ((np.zeros((6, 100)), Q, Q), {}, r"q has 100 entries .*shape \(6, 100\)\), expected 6"),
    "a number": ((1.0, Q, Q), {}, r"q has shape \(\), expected \(\.\.\., 6\)"),
    "nothing": ((None, Q, Q), {}, r"q is None, expected numbers of shape \(\.\.\., 6\), pass an array"),
    "batches": ((np.zeros((3, 6)), np.zeros((4, 6)), Q), {}, r"q \(3,\), qd \(4,\), .*do not broadcast .*reshape"),
    "complex": ((Q + 1j, Q, Q), {}, r"q holds complex numbers \(dtype complex128\), expected real .*convert"),
    "objects": ((Q.astype(object), Q, Q), {}, r"q holds Python objects \(dtype object\), expected real numbers"),
    "text": ((["1"] * 6, Q, Q), {}, r"q holds text \(dtype <U1\), expected real numbers"),
    "dates": ((Q, Q, Q.astype("M8[s]")), {}, r"qdd holds dates .*expected real numbers"),
    "records": ((Q, Q, np.zeros(6, [("x", float)])), {}, r"qdd holds records .*expected real numbers"),
    "forces": ((Q, Q, Q), {"f_ext": np.zeros((5, 6))}, r"f_ext has shape \(5, 6\), expected \(\.\.\., 6, 6\)"),
    "out's shape": (
        (Q, Q, Q),
        {"out": np.empty(5)},
        r"out is a float64 array of shape \(5,\), expected .*\(6,\), pass",
    ),
    "out's type": ((Q, Q, Q), {"out": np.empty(6, "f4")}, r"out is a float32 array .*expected a float64 array"),
    "out is a list": ((Q, Q, Q), {"out": [0.0] * 6}, r"out is a list, expected a float64 array"),
    "out is read-only": ((Q, Q, Q), {"out": np.broadcast_to(0.0, 6)}, r"out is read-only, expected .*pass np\.empty"),
    "too large": ((np.broadcast_to(Q, (2**45, 6)), Q, Q), {}, r"batch shape \(35184372088832,\) .*split the batch"),
}


@pytest.mark.parametrize("case", ARRAYS)
def test_arrays(case: str):
    args, options, pattern = ARRAYS[case]
    refused(ArgumentError, pattern, inverse(*args, **options))
    if not options:
        compiled = PUMA.compile("inverse_dynamics", rolled=True)
        refused(ArgumentError, pattern, lambda: compiled(*args))  # type: ignore[arg-type]


def test_ragged_rows():
    rows: Any = [[0.0] * 6, [0.0] * 5]
    refused(ArgumentError, r"q \(a list\) does not make an array of numbers, expected", inverse(rows, Q, Q), cause=True)


def test_number_of_arguments():
    compiled = PUMA.compile("inverse_dynamics")
    refused(ArgumentError, r"got 2 arguments, expected 3 \(q, qd, qdd\), pass qdd too", lambda: compiled(Q, Q))
    refused(ArgumentError, r"got 4 arguments, expected 3 .*leave out the last 1", lambda: compiled(Q, Q, Q, Q))


# ---- names


def test_unknown_methods():
    refused(
        ArgumentError, r"no method 'newton_euller' \(did you mean 'newton_euler'\?\): expected one of khalil",
        inverse(Q, Q, Q, method="newton_euller"),
    )  # fmt: skip
    for method in (3, ["kane"], Q, object()):
        refused(ArgumentError, r"method .*expected one of khalil_kleinfinger", inverse(Q, Q, Q, method=method))
        if "details" in inspect.signature(PUMA.inverse_dynamics).parameters:
            refused(ArgumentError, r"method .*expected one of", inverse(Q, Q, Q, method=method, details=True))
    refused(
        ArgumentError, r"expected one of composite, filter_smoother", lambda: PUMA.forward_dynamics(Q, Q, Q, method="x")
    )
    refused(ArgumentError, r"no method 'x'", lambda: PUMA.compile("inverse_dynamics", method="x"))


def test_methods_that_need_a_chain():
    tree = robot("tree5")
    for name in set(PUMA.methods("forward_dynamics")) - set(tree.methods("forward_dynamics")):
        refused(
            ArgumentError, rf"'{name}' needs a serial chain, but tree5 branches: use one of",
            lambda name=name: tree.forward_dynamics(*np.zeros((3, 5)), method=name),
        )  # fmt: skip


def test_unknown_functions():
    refused(
        ArgumentError, r"unknown function 'inverse_dynamic' \(did you mean 'inverse_dynamics'\?\): expected one of",
        lambda: PUMA.compile("inverse_dynamic"),
    )  # fmt: skip
    unknown: Any
    for unknown in (None, 3, ("nothing", "tool"), Q, object()):
        refused(ArgumentError, r"unknown function", lambda unknown=unknown: PUMA.compile(unknown))
        refused(ArgumentError, r"unknown function", lambda unknown=unknown: PUMA.methods(unknown))
    refused(ArgumentError, r"empty list.*, expected at least one", lambda: PUMA.compile([]))


def test_unknown_frames():
    pattern = r"puma560 has no frame 'tol' \(did you mean 'tool'\?\): expected one of .* \(robot\.frame_names\)"
    refused(ArgumentError, pattern, lambda: PUMA.pose(Q, "tol"))
    refused(ArgumentError, pattern, lambda: PUMA.jacobian(Q, "tol"))
    frame: Any
    for frame in ("", None, 3, ["tool"], np.zeros((3, 3)), "x\ny"):
        refused(ArgumentError, r"has no frame", lambda frame=frame: PUMA.pose(Q, frame))
        refused(ArgumentError, r"has no frame", lambda frame=frame: PUMA.compile(("jacobian", frame)))
    refused(ArgumentError, r"pose needs a frame", lambda: PUMA.compile("pose"))
    refused(ArgumentError, r"takes no frame, got 'tool'", lambda: PUMA.compile(("inverse_dynamics", "tool")))
    refused(ArgumentError, r"has no link or frame 'tol'", lambda: PUMA.with_payload("tol", 1.0))


def test_forces_at_frames():
    refused(ArgumentError, r"no frame 'tol' \(did you mean 'tool'\?\)", inverse(Q, Q, Q, f_ext={"tol": Q}))
    refused(ArgumentError, r"'base' is on the base, expected a frame of a moving", inverse(Q, Q, Q, f_ext={"base": Q}))
    force: Any
    for force in (np.zeros(5), 3.0, None, "abc", [[1.0], [1.0, 2.0]], Q + 1j):
        pattern = r"f_ext of frame 'tool' (has shape|is) .*expected .*\(\.\.\., 6\)"
        refused(ArgumentError, pattern, inverse(Q, Q, Q, f_ext={"tool": force}))
    uneven = {"tool": np.zeros((3, 6)), "link1": np.zeros((2, 6))}
    refused(ArgumentError, r"tool \(3, 6\), link1 \(2, 6\)\) do not broadcast together", inverse(Q, Q, Q, f_ext=uneven))
    huge = {"tool": np.broadcast_to(Q, (2**45, 6))}
    refused(ArgumentError, r"expected batch shapes that .*fit into memory", inverse(Q, Q, Q, f_ext=huge))


# ---- options of compile


def test_options():
    refused(
        ArgumentError, r"dtype is float16, expected 'float64'", lambda: PUMA.compile("mass_matrix", dtype="float16")
    )
    refused(ArgumentError, r"dtype is .*expected 'float64'", lambda: PUMA.compile("mass_matrix", dtype="floaty"))
    refused(
        ArgumentError,
        r"threads is 0, expected an integer of at least 1",
        lambda: PUMA.compile("mass_matrix", threads=0),
    )
    refused(BackendError, r"backend is 'gcc', expected 'llvm'", lambda: PUMA.compile("mass_matrix", backend="gcc"))
    compiled = PUMA.compile("inverse_dynamics")
    refused(
        ArgumentError,
        r"differentiated with respect to 'x': expected one of q, qd, qdd",
        lambda: compiled.derivative("x"),
    )
    gravity: Any
    for gravity in ((0, 0), "down", (0, 0, np.nan), None, (0, 0, 1j), np.zeros((3, 3)), [[1], [2, 3]]):
        refused(
            ArgumentError,
            r"gravity is .*expected three finite numbers",
            lambda gravity=gravity: PUMA.with_gravity(gravity),
        )
    refused(ArgumentError, r"Robot got str, expected a Model", lambda: ls.Robot("puma560"))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("name", "pattern"), [("LINKSWEEP_BACKEND", "'gcc', expected 'llvm'"), ("LINKSWEEP_SIMD", "'gcc'")]
)
def test_settings_of_the_environment(name: str, pattern: str):
    code = "import linksweep as ls\ntry: ls.robots.planar(1).mass_matrix([0.0])\nexcept ls.BackendError as e: print(e)"
    environment: dict[str, Any] = {name: "gcc"}
    printed = run_python(code, **environment)
    assert pattern in printed and printed.count("\n") == 1


# ---- robots


def test_no_inertia_is_no_zero_torque():
    arm = _massless()
    pattern = r"robot has no mass or inertia at all, so only kinematics"
    z = np.zeros(2)
    refused(DescriptionError, pattern, lambda: arm.inverse_dynamics(z, z, z))
    refused(DescriptionError, pattern, lambda: arm.forward_dynamics(z, z, z))
    for name in ("mass_matrix", "bias_forces", "gravity_forces", "inverse_dynamics"):
        refused(DescriptionError, pattern, lambda name=name: arm.compile(name))
    assert arm.pose(z, "tool").shape == (4, 4) and arm.jacobian(z, "tool").shape == (6, 2)


def _massless() -> ls.Robot:
    with pytest.warns(ls.ModelWarning, match="no mass or inertia at all"):
        return ls.Robot.from_dh([(0.1, 0.2, 0.3, 0.4)] * 2, convention="modified")


def test_accelerations_that_are_not_determined():
    rows = [ROW, {"alpha": 0.3, "a": 0.1}]
    with pytest.warns(ls.ModelWarning, match="no inertia moves with joint joint2"):
        arm = ls.Robot.from_dh(rows, convention="standard")
    z = np.zeros(2)
    assert np.isfinite(arm.inverse_dynamics(z, z, z)).all()
    pattern = r"no inertia moves with joint joint2 of robot, so its acceleration is not determined: give the link"
    refused(SingularError, pattern, lambda: arm.forward_dynamics(z, z, z))


@pytest.mark.parametrize("convention", [None, "", "dh", "Modified", 1])
def test_dh_without_convention(convention: Any):
    pattern = r"convention is .*, expected 'modified' \(Craig\) or 'standard'; there is no default"
    refused(DescriptionError, pattern, lambda: ls.Robot.from_dh([ROW], convention=convention))


def test_dh_without_convention_is_no_default():
    refused(DescriptionError, r"convention is None, expected", lambda: ls.Robot.from_dh([ROW]))


WRONG_ROWS = {
    "negative mass": ({"mass": -1.0}, r"'?mass.* -1\.0, expected"),
    "negative inertia": ({"inertia": (-1.0, 1.0, 1.0)}, r"inertia.*-1.*expected"),
    "mass is NaN": ({"mass": np.nan}, r"mass.* nan, expected"),
    "mass is infinite": ({"mass": np.inf}, r"mass.* inf, expected"),
    "com is NaN": ({"com": (0, np.nan, 0)}, r"com.*nan.*expected"),
    "inertia is NaN": ({"inertia": (1, 1, np.nan)}, r"inertia.*nan.*expected"),
    "angle is NaN": ({"alpha": np.nan}, r"'alpha' is nan, expected a finite number"),
    "length is infinite": ({"a": -np.inf}, r"'a' is -inf, expected a finite number"),
    "mass is text": ({"mass": "heavy"}, r"'mass' is 'heavy', expected a real number"),
    "mass is complex": ({"mass": 1j}, r"'mass' is 1j, expected a real number"),
    "two numbers for com": ({"com": (0, 1)}, r"'com' is 2 values, expected three numbers"),
    "unknown key": ({"mas": 1.0}, r"the key 'mas' is not known.*mass"),
    "unknown joint": ({"joint": "ball"}, r"'joint' is 'ball', expected"),
    "asymmetric": ({"inertia": [[1, 0.5, 0], [0, 1, 0], [0, 0, 1]]}, r"expected a symmetric matrix"),
    "negative armature": ({"armature": -0.1}, r"armature.*-0\.1.*expected"),
    "negative friction": ({"friction": -0.1}, r"friction.*-0\.1.*expected"),
}


@pytest.mark.parametrize("case", WRONG_ROWS)
def test_numbers_of_a_description(case: str):
    change, pattern = WRONG_ROWS[case]
    refused(DescriptionError, pattern, lambda: ls.Robot.from_dh([ROW, {**ROW, **change}], convention="modified"))


def test_payloads():
    refused(DescriptionError, r"-1\.0, expected", lambda: PUMA.with_payload("tool", -1.0))
    refused(DescriptionError, r"nan.*expected", lambda: PUMA.with_payload("tool", np.nan))
    refused(DescriptionError, r"expected three numbers", lambda: PUMA.with_payload("tool", 1.0, com=(1, 2)))


# ---- files


def test_files_that_are_not_there(tmp_path: Path):
    refused(DescriptionError, r"no such file", lambda: ls.load(tmp_path / "x.urdf"))
    refused(DescriptionError, r"no such file", lambda: ls.load(tmp_path / "x.toml"))
    refused(DescriptionError, r"suffix '\.stl' is not known, expected \.urdf", load(tmp_path, "x.stl", "x"))
    refused(DescriptionError, r"the robot model is None, expected a path", lambda: ls.load(None))  # type: ignore[arg-type]
    folder = tmp_path / "folder.urdf"
    folder.mkdir()
    refused(DescriptionError, r"this is a directory, expected a file", lambda: ls.load(folder))
    refused(DescriptionError, r"the file or text is empty, expected a robot", load(tmp_path, "empty.urdf", ""))
    refused(DescriptionError, r"not valid TOML", load(tmp_path, "x.toml", "name = "))
    refused(DescriptionError, r"convention is None", load(tmp_path, "y.toml", 'format = "dh"\n[[links]]\na = 1.0\n'))


def test_the_file_that_the_hostile_ones_start_from_is_fine(tmp_path: Path):
    assert load(tmp_path, "r.urdf", URDF)().joint_names == ("j",)


BOMB = "<!DOCTYPE r [<!ENTITY a0 'x'>" + "".join(f"<!ENTITY a{i} '{f'&a{i - 1};' * 10}'>" for i in range(1, 12)) + "]>"
HOSTILE = {
    "document type": ("<!DOCTYPE robot>" + URDF, r"line 1: a document type or entity is declared"),
    "entity bomb": (BOMB + URDF.replace('name="r"', 'name="&a11;"'), r"document type or entity is declared"),
    "external entity": (
        "<!DOCTYPE r [<!ENTITY e SYSTEM 'file:///etc/passwd'>]>" + URDF.replace('name="r"', 'name="&e;"'),
        r"document type or entity is declared",
    ),
    "external document type": ("<!DOCTYPE r SYSTEM 'http://localhost:1/x.dtd'>" + URDF, r"document type or entity"),
    "undeclared entity": (URDF.replace('name="r"', 'name="&e;"'), r"not valid XML \(undefined entity\)"),
    "deep nesting": ("<robot>" + "<a>" * 100_000, r"nested deeper than 200, expected a robot"),
    "cut off": (URDF[:150], r"not valid XML .*repair the file"),
    "no XML": ("hello", r"not valid XML"),
    "binary": (b"\x7fELF\0\0\0", r"binary file, expected XML text"),
    "a hundred megabytes": (b"<a>" * 33_000_000, r"has 99 MB, expected at most 20 MB"),
    "negative mass": (URDF.replace('mass value="1"', 'mass value="-1"'), r"mass of .*'arm' is -1\.0, expected"),
    "NaN": (URDF.replace('mass value="1"', 'mass value="nan"'), r"line 2: 'value' of <mass> is 'nan', expected"),
    "infinite": (URDF.replace('ixx="1"', 'ixx="1e999"'), r"line 3: 'ixx' of <inertia> is '1e999', expected a finite"),
    "no number": (URDF.replace('xyz="0 0 1"', 'xyz="0 0 z"'), r"line 4: 'xyz' of <axis> is 'z', expected a finite"),
    "zero axis": (URDF.replace('xyz="0 0 1"', 'xyz="0 0 0"'), r"axis.*expected"),
    "unknown link": (URDF.replace('child link="arm"', 'child link="amr"'), r"names the child link 'amr', which is not"),
    "unknown type": (URDF.replace('"revolute"', '"revolt"'), r"type 'revolt', expected"),
}  # fmt: skip


@pytest.mark.parametrize("case", HOSTILE)
def test_broken_and_hostile_files(tmp_path: Path, case: str):
    content, pattern = HOSTILE[case]
    refused(DescriptionError, pattern, load(tmp_path, "robot.urdf", content))


def test_classes():
    """Each is an error of linksweep and one that Python programmers expect."""
    assert issubclass(DescriptionError, (LinksweepError, ValueError)) and issubclass(ArgumentError, ValueError)
    assert issubclass(SingularError, ArithmeticError) and issubclass(BackendError, RuntimeError)
    for kind in (DescriptionError, ArgumentError, SingularError, BackendError):
        assert issubclass(kind, LinksweepError) and getattr(ls, kind.__name__) is kind


def test_python_s_own_signature_errors_stay():
    wrong: Any = PUMA.compile("inverse_dynamics")
    with pytest.raises(ArgumentError, match="there is no argument 'output', expected q, qd, qdd, or out"):
        wrong(Q, Q, Q, output=Q)
    anything: Any = PUMA
    with pytest.raises(TypeError):
        anything.inverse_dynamics(Q)


# ---- warnings name the line that led to them ------------------------------------------------------------------------


def places(call: Any) -> set[str]:
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        call()
    assert said
    return {warning.filename for warning in said}


def test_warnings_point_at_the_caller(tmp_path: Path):
    inertia = '<inertial><mass value="1"/><inertia ixx="9" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial>'
    joint = '<parent link="base"/><child link="arm"/><limit lower="2" upper="1" effort="1" velocity="1"/>'
    text = (
        f'<robot name="r"><link name="base"/><link name="arm">{inertia}</link>'
        f'<joint name="j" type="revolute">{joint}</joint></robot>'
    )
    path = tmp_path / "r.urdf"
    path.write_text(text)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        robot = ls.load(path)
    light = tmp_path / "light.urdf"
    light.write_text(text.replace(inertia, ""))
    for call in (
        lambda: ls.load(path),
        lambda: ls.load(light),
        lambda: ls.load(path).with_base("floating"),
        lambda: robot.with_gravity((0, 0, -1.62)).to_urdf(),
    ):
        assert places(call) == {__file__}


def test_what_python_calls_through_is_passed_over():
    """A function of this package that is decorated by a context manager."""
    space: dict[str, Any] = {}
    own = str(Path(ls.__file__).with_name("own.py"))
    code = (
        "import contextlib, functools\nfrom linksweep.errors import warn_user\n"
        "@contextlib.contextmanager\ndef held():\n    yield\n"
        "@held()\ndef inner():\n    warn_user('said', UserWarning)\n"
        "@functools.singledispatch\ndef outer(x):\n    inner()\n"
    )
    exec(compile(code, own, "exec"), space)
    assert places(lambda: space["outer"](1)) == {__file__}
