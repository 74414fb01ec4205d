"""Odd descriptions: names, numbers and files that nobody expects. Each is right, or one sentence says what is not."""

# Arguments that are wrong on purpose, or numbers over any scalar:
# pyright: reportArgumentType=false
from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import warnings
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import linksweep as ls
from linksweep.backends.c import C
from linksweep.errors import ArgumentError, DescriptionError, ModelWarning
from linksweep.model import assembly
from linksweep.model.assembly import Part, assemble
from linksweep.model.formats.dh import parse_toml
from linksweep.model.formats.urdf import read_urdf
from linksweep.model.model import Inertial, Joint, Limits, symmetric

BODY = Inertial(1.0, (0.1, 0.2, 0.3), symmetric(1.0, 1.1, 1.2))
URDF = """<robot name="r"><link name="base"/><link name="arm"><inertial><mass value="1"/>
<inertia ixx="1" iyy="1" izz="1"/></inertial></link>
<joint name="j" type="revolute"><parent link="base"/><child link="arm"/><axis xyz="0 0 1"/>
<limit lower="-1" upper="1" velocity="2" effort="3"/></joint></robot>"""
TOML = """name = "arm"
format = "dh"
convention = "modified"
[[links]]
name = "j"
mass = 1.0
inertia = [1.0, 1.0, 1.0]
"""
MJCF = '<mujoco model="m"><worldbody><body name="b"><joint name="j"/><geom size="1"/></body></worldbody></mujoco>'


def chain(*names: str, robot: str = "r") -> ls.Robot:
    """A serial arm with joints and links of these names."""
    parts = []
    for k, name in enumerate(names):
        parts.append(Part(name, names[k - 1] if k else "base", Joint(name, axis=(0.0, 1.0, 0.0)), BODY))
    return ls.Robot(assemble(robot, parts, base="base"))


def refused(call: Callable[[], Any], pattern: str) -> None:
    with pytest.raises((DescriptionError, ArgumentError), match=pattern) as caught:
        call()
    assert "\n" not in str(caught.value) and len(str(caught.value)) < 1000


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "COLUMNS": "200", "NO_COLOR": "1", "PYTHONUTF8": "1"}
    command = [sys.executable, "-m", "linksweep", *arguments]
    return subprocess.run(command, capture_output=True, encoding="utf-8", env=environment)


# ---- names ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("break_", ["\n", "\r", "\t", "\0", "\x1b[2J", "\u2028", "\x85", "\ud800"])
def test_names_are_one_line(break_: str, tmp_path: Path):
    name = f"a{break_}b"
    pattern = "contains a line break or another control character"
    refused(lambda: chain(name), pattern)
    refused(lambda: chain("j", robot=name), pattern)
    refused(lambda: ls.Robot.from_dh([{"name": name, "mass": 1.0}], "modified"), pattern)
    if break_ not in ("\0", "\ud800", "\x1b[2J"):  # which XML and TOML refuse themselves
        code = ord(break_)
        refused(lambda: read_urdf(URDF.replace('name="j"', f'name="a&#{code};b"')), pattern)
        refused(lambda: parse_toml(TOML.replace('"j"', f'"a\\u{code:04x}b"'), "t"), pattern)
        if code < 128:
            file = tmp_path / "m.xml"
            file.write_text(MJCF.replace('"j"', f'"a&#{code};b"'))
            refused(lambda: ls.load(file), pattern)


ODD_NAMES = ("$a^$", "_hidden", "???/", "*\\", "[/bold]", "/* x", "a*/b", "ü€😀", "??=??'", "%d", "a b", "{x}", "a;b,c")


@pytest.mark.slow
def test_odd_names_make_robots_files_and_plots(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Every name goes into a table, a CSV, a C file and URDF text, and comes back as it was."""
    monkeypatch.chdir(tmp_path)
    robot = chain(*ODD_NAMES, robot="$a^$ [bold] ???/")
    (tmp_path / "odd.urdf").write_text(robot.to_urdf(), encoding="utf-8")
    assert ls.load("odd.urdf").joint_names == robot.joint_names
    for command in (("info", "odd.urdf"), ("simulate", "odd.urdf", "--duration", "0.01")):
        done = run(*command)
        assert done.returncode == 0, done.stderr
        assert all(name in done.stdout for name in ("$a^$", "_hidden", "[/bold]"))


@pytest.mark.slow
def test_dollars_and_underscores_are_no_formula(tmp_path: Path):
    from linksweep import plots

    robot = chain("$a^$", "_hidden", "x$", robot="$a^$")
    t = np.linspace(0.0, 1.0, 4)
    q = np.outer(t, np.ones(3))
    figures = [plots.time_series(robot, t, q, "q"), plots.time_series(robot, t, q, "q", overlay=True)]
    figures += [plots.phase(robot, q, q), plots.sketch(robot, q[0])]
    for k, figure in enumerate(figures):
        plots.save(figure, tmp_path / f"{k}.svg")  # a formula that is none is an error here
    legend = figures[1].axes[0].get_legend()
    assert legend is not None
    assert [text.get_text().replace("\\", "").strip() for text in legend.get_texts()] == ["$a^$", "_hidden", "x$"]


def test_comments_of_c_end_where_they_should():
    rng = np.random.default_rng(0)
    letters = np.array(list("*/?\\\n é/=a"))
    for _ in range(20_000):
        text = "".join(rng.choice(letters, rng.integers(1, 9)))
        shown = C.printable(text)
        assert not re.search(r"\*/|/\*|\?\?|\\|[^ -~]", shown), (text, shown)


@pytest.mark.skipif(shutil.which("cc") is None, reason="there is no C compiler")
def test_c_of_odd_names_compiles_with_trigraphs(tmp_path: Path):
    from linksweep.functions.c_export import export_c

    robot = chain(*ODD_NAMES, robot="*\\ ???/")
    for method in ("inverse_dynamics", "mass_matrix"):
        source, _ = export_c(robot.compile(method, backend="interpreter"), tmp_path / f"{method}.c", robot=robot)
        flags = ["-std=c99", "-trigraphs", "-Wall", "-Wextra", "-pedantic", "-Werror"]
        done = subprocess.run(["cc", *flags, "-c", str(source), "-o", "/dev/null"], capture_output=True, text=True)
        assert done.returncode == 0, done.stderr


# ---- C files ----------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_files_that_were_not_generated_are_not_replaced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    command = ("export", "puma560", "gravity_forces", "-o", "g.c")
    assert run(*command).stdout == "wrote g.c g.h\n"
    assert run(*command).stdout == "wrote g.c g.h (replaced)\n"
    for name in ("g.h", "g.c"):
        kept, other = Path(name), Path({"g.h": "g.c", "g.c": "g.h"}[name])
        kept.write_text("int mine;\n")
        before = other.read_text()
        done = run(*command)
        assert done.returncode == 2 and f"{name} is there already and was not generated by linksweep" in done.stderr
        assert kept.read_text() == "int mine;\n" and other.read_text() == before
        kept.unlink()
        assert run(*command).returncode == 0


@pytest.mark.parametrize("name", ["a\nb.c", 'a".c', "a??=b.c", "a\\b.c"])
def test_names_of_c_files(name: str, tmp_path: Path):
    from linksweep.functions.c_export import export_c

    function = ls.robots.puma560().compile("gravity_forces", backend="interpreter")
    refused(lambda: export_c(function, tmp_path / name), "expected a name such as puma.c")
    assert not list(tmp_path.iterdir())


def test_a_c_file_with_letters_of_other_alphabets(tmp_path: Path):
    from linksweep.functions.c_export import export_c

    function = ls.robots.puma560().compile("gravity_forces", backend="interpreter")
    source, header = export_c(function, tmp_path / "größe.c", name="g")
    assert '#include "größe.h"' in source.read_text(encoding="utf-8") and header.exists()


# ---- limits, locks, singular poses ------------------------------------------------------------------------------


def test_crossed_limits_are_said():
    with pytest.warns(ModelWarning, match=r"the lower limit of joint 'j' is above the upper"):
        read_urdf(URDF.replace('lower="-1" upper="1"', 'lower="1" upper="-1"'))
    with pytest.warns(ModelWarning, match="'j' is above"):
        parse_toml(TOML + "lower = 2\nupper = 1\n", "t")
    part = Part("a", "base", Joint("j", limits=Limits(2.0, 1.0)), BODY)
    with pytest.warns(ModelWarning, match="'j' is above"):
        assemble("r", [part], base="base")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assemble("r", [replace(part, joint=Joint("j", limits=Limits(1.0, 1.0)))], base="base")
        locked = replace(part, link="f", joint=Joint("k", "fixed", limits=Limits(2.0, 1.0)))
        assemble("r", [replace(part, joint=Joint("j")), locked], base="base")


def test_lock_takes_a_mapping():
    robot = ls.robots.puma560()
    held = robot.lock({"joint2": 0.7, "joint4": -0.2})
    assert held == robot.lock(["joint2", "joint4"], at=[0.7, -0.2])
    q = np.array([0.1, 0.7, 0.3, -0.2, 0.5, 0.6])
    np.testing.assert_allclose(held.pose(q[[0, 2, 4, 5]], "tool"), robot.pose(q, "tool"), atol=1e-12)
    assert robot.lock({"joint2": None}) == robot.lock("joint2")
    refused(lambda: robot.lock({"joint2": 0.7}, at=[0.7]), "both in joints and in at=")
    refused(lambda: robot.lock({"jiont2": 0.7}), r"no joint 'jiont2' \(did you mean 'joint2'\?\)")
    refused(lambda: robot.lock({"joint2": "x"}), "joint 'joint2' is 'x', expected 1 finite number")
    refused(lambda: robot.lock({2: 0.7}), "expected names of joints")


PENDULUM = """<robot name="Pendulum">
<link name="base"><inertial><origin xyz="0 0 1"/><mass value="1"/>
<inertia ixx="0.02" iyy="0.01" izz="0"/></inertial></link>
<link name="arm"><inertial><origin xyz="0 0 -0.5"/><mass value="1"/><inertia ixx="0" iyy="0" izz="0"/></inertial></link>
<joint name="theta" type="continuous"><origin xyz="0 0 1"/><parent link="base"/><child link="arm"/>
<axis xyz="0 1 0"/></joint></robot>"""


def test_one_singular_pose_does_not_make_a_joint_singular(tmp_path: Path):
    """Drake's pendulum set free: all mass is on one line while it hangs, and nowhere else."""
    file = tmp_path / "pendulum.urdf"
    file.write_text(PENDULUM)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ModelWarning)
        robot = ls.load(file, base="floating")
    assert robot.singular_joints == ()
    rng = np.random.default_rng(1)
    q, qd, tau = robot.random(rng), *rng.uniform(-1, 1, (2, robot.nv))
    expected = np.linalg.solve(robot.mass_matrix(q), tau - robot.bias_forces(q, qd))
    np.testing.assert_allclose(robot.forward_dynamics(q, qd, tau), expected, rtol=1e-9)


# ---- TOML -------------------------------------------------------------------------------------------------------

DEEP = {
    "array": "[" * 400 + "]" * 400,
    "deeper array": "[" * 100_000 + "]" * 100_000,
    "table": "{a=" * 300 + "1" + "}" * 300,
    "digits": "9" * 5000,
    "hex digits": "0x" + "f" * 5000,
    "octal digits": "0o" + "7" * 9000,
}


@pytest.mark.parametrize("value", DEEP)
@pytest.mark.parametrize("key", ["mass", "com", "inertia", "alpha", "name", "link", "joint", "measured", "lower"])
def test_deep_and_long_values(key: str, value: str):
    text = re.sub(rf"^{key} = .*\n", "", TOML.replace('"arm"', '"robot"'), flags=re.MULTILINE)
    refused(lambda: parse_toml(text + f"{key} = {DEEP[value]}\n", "table"), "table")


@pytest.mark.parametrize("value", DEEP)
@pytest.mark.parametrize("key", ["name", "gravity", "convention", "angles", "base", "links", "format", "unknown"])
def test_deep_and_long_values_on_top(key: str, value: str):
    text = re.sub(rf"^{key} = .*\n", "", TOML, count=1, flags=re.MULTILINE)
    refused(lambda: parse_toml(f"{key} = {DEEP[value]}\n" + text, "table"), "table")


def test_dotted_keys_that_lead_deep():
    """tomllib takes the square of their length: two megabytes took more than nine minutes."""
    for key in (
        "a" + ".a" * 1_000_000,
        ".".join(['"a"'] * 300_000),
        ".".join(["'x y'"] * 300_000),
        "a" + " . a" * 300_000,
    ):
        for text in (f"{key} = 1\n" + TOML, TOML + f"com.x.{key} = 1\n", f"[{key}]\n", f"x = {{{key} = 1}}\n"):
            refused(lambda text=text: parse_toml(text, "table"), "table: a key has more than 32 parts")
    refused(lambda: parse_toml(TOML + "com.x" + ".a" * 20 + " = 1\n", "table"), "expected three numbers")
    assert parse_toml("# " + "two words. " * 1000 + "\n# " + "0.1, " * 1000 + "\n" + TOML, "table").name == "arm"


def test_more_links_than_any_robot(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(assembly, "MAX_LINKS", 2)
    refused(lambda: chain("a", "b", "c"), "there are 3 links, expected at most 2")
    assert chain("a", "b").nv == 2


def test_many_joints_without_inertia_are_cut_in_the_message():
    """Robots of thousands of them took minutes, and the warning named them all."""
    names = [f"j{k}" for k in range(300)]
    parts = [Part(name, names[k - 1] if k else "base", Joint(name)) for k, name in enumerate(names)]
    with pytest.warns(ModelWarning, match=r"no inertia moves with joint j0, j1, .*, j7 and 292 more, so"):
        robot = ls.Robot(assemble("r", [*parts, Part("tip", "base", Joint("tip"), BODY)], base="base"))
    with pytest.raises(ls.SingularError, match="j7 and 292 more of r"):
        robot.forward_dynamics(still := np.zeros(robot.nv), still, still)


# ---- files ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("number", ["1e31", "-1e308", "nan", "inf"])
def test_gravity_beyond_any_robot(number: str, tmp_path: Path):
    refused(lambda: parse_toml(f"gravity = [0, 0, {number}]\n" + TOML, "t"), "gravity")
    refused(lambda: ls.Robot.from_dh([(0, 0, 0, 0)], "modified", gravity=(0, float(number), 0)), "gravity is")
    file = tmp_path / "m.xml"
    file.write_text(MJCF.replace("<world", f'<option gravity="{number} 0 0"/><world'))
    refused(lambda: ls.load(file), r"gravity|compile")


GOOD = {".urdf": URDF, ".toml": TOML, ".xml": MJCF}


@pytest.mark.parametrize("suffix", GOOD)
def test_encodings_and_line_ends(suffix: str, tmp_path: Path):
    file, text = tmp_path / f"r{suffix}", GOOD[suffix]
    file.write_text(text)
    expected = ls.load(file)
    for data in (b"\xef\xbb\xbf" + text.encode(), text.replace("\n", "\r\n").encode()):
        file.write_bytes(data)
        assert ls.load(file) == expected
    if suffix == ".urdf":
        file.write_bytes(text.encode("utf-16"))
        assert ls.load(file) == expected
        declared = '<?xml version="1.0" encoding="latin-1"?>' + text.replace('"j"', '"größe"')
        file.write_bytes(declared.encode("latin-1"))
        assert ls.load(file).joint_names == ("größe",)
        for before in ("\n", "  \n\t\n"):  # as in pybullet's diff_ring.urdf
            file.write_text(before + '<?xml version="1.0"?>' + text)
            assert ls.load(file) == expected
        file.write_text('\n\n<?xml version="1.0"?>\n' + text.replace('name="arm"', 'nmae="arm"'))
        refused(lambda: ls.load(file), "line 4: <link> has no attribute 'name'")
    for data, pattern in (
        (b"", "the file or text is empty"),
        (b"\0" * 5000, "binary|not valid|no MuJoCo|TOML"),
        (os.urandom(5000), f"r{suffix}"),
        (b"\xff\xfe", f"r{suffix}"),
        (text.encode("utf-16-le"), f"r{suffix}"),
    ):
        file.write_bytes(data)
        refused(lambda: ls.load(file), pattern)


@pytest.mark.parametrize("suffix", GOOD)
def test_what_is_no_file(suffix: str, tmp_path: Path):
    folder = tmp_path / f"folder{suffix}"
    folder.mkdir()
    refused(lambda: ls.load(folder), "this is a directory")
    refused(lambda: ls.load(tmp_path / f"none{suffix}"), "there is no such file")
    for name, target in (("zero", "/dev/zero"), ("loop", f"loop{suffix}"), ("dangling", "nowhere")):
        (tmp_path / f"{name}{suffix}").symlink_to(target)
        refused(lambda name=name: ls.load(tmp_path / f"{name}{suffix}"), f"{name}{suffix}: ")
    os.mkfifo(tmp_path / f"pipe{suffix}")
    refused(lambda: ls.load(tmp_path / f"pipe{suffix}"), "device or pipe")
    (tmp_path / f"good{suffix}").write_text(GOOD[suffix])
    (tmp_path / f"link{suffix}").symlink_to(f"good{suffix}")
    assert ls.load(tmp_path / f"link{suffix}").nv == 1
    refused(lambda: ls.load(f"a\0b{suffix}"), "cannot be read")
    refused(lambda: ls.load("x" * 300 + suffix), "cannot be read")
    refused(lambda: ls.load("x" * 5000 + suffix), "the path has more than 4096 characters")
