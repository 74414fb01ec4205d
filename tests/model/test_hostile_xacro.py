"""xacro files that try to read, write, run or exhaust something: an error, or nothing happens.

Each attack is tried on the layer that should refuse it. The second layer (the audit hook) is tested without the first,
with arbitrary Python code in the confined process.
"""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import textwrap
from importlib.util import find_spec
from pathlib import Path

import pytest
from error_checks import refused

import linksweep as ls
from linksweep.errors import DescriptionError
from linksweep.model.formats import xacro_child, xacro_files

pytestmark = [
    pytest.mark.skipif(find_spec("xacro") is None, reason="the package xacro is not installed"),
]
ROBOT = """<robot name="arm" xmlns:xacro="http://www.ros.org/wiki/xacro">
  {}
  <link name="base"/>
  <link name="upper"><inertial><mass value="2"/><inertia ixx="1" iyy="1" izz="1"/></inertial></link>
  <joint name="shoulder" type="continuous">
    <origin xyz="0 0 0.5"/><parent link="base"/><child link="upper"/><axis xyz="0 1 0"/>
  </joint>
</robot>
"""
CODE = "exec(&quot;import os; os.system('touch {mark}')&quot;)"
CHAIN = "().__class__.__base__.__subclasses__()"
WIDE = CHAIN.replace("_", "&#xFF3F;")
ATTACKS = {
    # includes
    "include of an absolute path": '<xacro:include filename="{secret}"/>',
    "include through parents": '<xacro:include filename="../outside/secret.xml"/>',
    "include through a link": '<xacro:include filename="link.xml"/>',
    "include by a pattern": '<xacro:include filename="../outside/*.xml"/>',
    "YAML outside": '<xacro:property name="x" value="${{xacro.load_yaml(\'{secret}\')}}"/><a b="${{x}}"/>',
    # commands by builtins, which xacro leaves to $(eval)
    "eval of exec": f'<xacro:property name="x" value="{CODE}"/><a b="$(eval ${{{{x}}}})"/>',
    "eval of open": '<xacro:property name="x" value="open(\'{mark}\', \'w\')"/><a b="$(eval ${{x}})"/>',
    "wide underscores": f'<xacro:property name="x" value="{WIDE}"/><a b="$(eval ${{{{x}}}})"/>',
    # attributes by which Python code escapes from a restricted namespace
    "attributes in a lambda": f'<a b="${{{{(lambda: {CHAIN})()}}}}"/>',
    "attributes in a comprehension": f'<a b="${{{{[{CHAIN} for i in (1,)]}}}}"/>',
    "attributes by format": '<xacro:property name="x" value="{{0.__class__}}"/><a b="${{x.format(1)}}"/>',
    "frames of a generator": '<a b="${{(i for i in (1,)).gi_frame.f_builtins}}"/>',
    "vars of a type": "<a b=\"${{python.vars(python.type(1))['__class__']}}\"/>",
    "a new class": '<a b="${{python.type(python.type(1))}}"/>',
    # entities
    "an external entity": None,
}


@pytest.fixture
def folders(tmp_path: Path) -> tuple[Path, Path, Path]:
    """The folder of the robot, a file outside it that is valid xacro, and a file that no attack may create."""
    (tmp_path / "outside").mkdir()
    (tmp_path / "robot").mkdir()
    secret = tmp_path / "outside" / "secret.xml"
    secret.write_text("<robot><link name='secret'/></robot>")
    (tmp_path / "robot" / "link.xml").symlink_to(secret)
    return tmp_path / "robot", secret, tmp_path / "mark"


@pytest.mark.cases(4)
@pytest.mark.parametrize("attack", ATTACKS)
def test_attacks(folders: tuple[Path, Path, Path], attack: str):
    folder, secret, mark = folders
    line = ATTACKS[attack]
    text = ROBOT.format("" if line is None else line.format(secret=secret, mark=mark))
    if line is None:
        text = f'<!DOCTYPE r [<!ENTITY x SYSTEM "file://{secret}">]>' + text.replace("<link", "&x;<link", 1)
    file = folder / "arm.xacro"
    file.write_text(text, encoding="utf-8")
    if attack == "include by a pattern":  # matches nothing that can be read
        with contextlib.suppress(DescriptionError):
            assert ls.load(file).link_names == ("upper",)
    else:
        refused(DescriptionError, "allowed|is not defined|invalid character", lambda: ls.load(file))
    assert not mark.exists()


def test_inclusion_from_allowed_folders(folders: tuple[Path, Path, Path]):
    folder, secret, _ = folders
    secret.write_text("<robot xmlns:xacro='x'><xacro:property name='height' value='0.25'/></robot>")
    file = folder / "arm.xacro"
    text = ROBOT.format('<xacro:include filename="../outside/secret.xml"/>').replace("0 0 0.5", "0 0 ${height}")
    file.write_text(text)
    refused(DescriptionError, "outside of the allowed folders", lambda: ls.load(file))
    assert ls.load(file, root=folder.parent).model.links[0].joint.placement.position == (0.0, 0.0, 0.25)
    (folder.parent / "package.xml").write_text("<package><name>arm_parts</name></package>")
    assert ls.load(file).model.links[0].joint.placement.position == (0.0, 0.0, 0.25)


@pytest.mark.slow
@pytest.mark.parametrize(
    "line",
    [
        '<a b="${9 ** 9 ** 9}"/>',
        '<a b="${[0] * 10 ** 10}"/>',
        '<a b="${len(str(10 ** 4000) * 10 ** 7)}"/>',
        '<xacro:macro name="m" params="n"><xacro:m n="${n}"/><xacro:m n="${n}"/></xacro:macro><xacro:m n="1"/>',
        "".join(
            f'<xacro:macro name="m{k}"><xacro:m{k + 1}/><xacro:m{k + 1}/><xacro:m{k + 1}/></xacro:macro>'
            for k in range(40)
        )
        + '<xacro:macro name="m40"><link name="x"/></xacro:macro><xacro:m0/>',
        f'<a b="${{{"(" * 3000}1{")" * 3000}}}"/>',
    ],
)
def test_exhaustion(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, line: str):
    monkeypatch.setattr(xacro_files, "SECONDS", 2.0)
    file = tmp_path / "arm.xacro"
    file.write_text(ROBOT.replace("{}", line))
    refused(DescriptionError, "xacro", lambda: ls.load(file))


def test_size_of_the_result(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(xacro_files, "LARGEST_FILE", 1000)
    file = tmp_path / "arm.xacro"
    file.write_text(ROBOT.replace("{}", "<a b=\"${'x' * 2000}\"/>"))
    refused(DescriptionError, "expected at most", lambda: ls.load(file))


CONFINED = """
import json, os, sys, socket, subprocess, ctypes, types, shutil
sys.path[:] = {path!r}
from linksweep.model.formats import xacro_child
xacro_child.limit_resources(20, 2**30)
xacro_child.install_hook([{folder!r}], [])
print(open({inside!r}).read())
refused = []
def attempt(name, action):
    try:
        action()
    except BaseException as error:
        refused.append(name)
attempt("system", lambda: os.system("touch {mark}"))
attempt("popen", lambda: subprocess.run(["touch", {mark!r}]))
attempt("fork", os.fork)
attempt("exec", lambda: os.execv("/bin/touch", ["touch", {mark!r}]))
attempt("spawn", lambda: os.posix_spawn("/bin/touch", ["touch", {mark!r}], {{}}))
attempt("write", lambda: open({mark!r}, "w"))
attempt("write inside", lambda: open({inside!r}, "a"))
attempt("os.open", lambda: os.open({mark!r}, os.O_CREAT | os.O_WRONLY))
attempt("read", lambda: open({outside!r}).read())
attempt("list", lambda: os.listdir({parent!r}))
attempt("remove", lambda: os.remove({inside!r}))
attempt("rename", lambda: os.rename({inside!r}, {mark!r}))
attempt("mkdir", lambda: os.mkdir({mark!r}))
attempt("symlink", lambda: os.symlink({outside!r}, {mark!r}))
attempt("rmtree", lambda: shutil.rmtree({folder!r}))
attempt("socket", lambda: socket.create_connection(("127.0.0.1", 9), 1))
attempt("datagram", lambda: socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b"x", ("127.0.0.1", 9)))
attempt("ctypes", lambda: ctypes.CDLL(None).getpid())
attempt("import", lambda: __import__("sqlite3"))
attempt("code", lambda: (lambda: 0).__code__.replace(co_code=b""))
attempt("kill", lambda: os.kill(os.getppid(), 0))
print(json.dumps(refused))
os._exit(0)
"""


def test_arbitrary_code_in_the_confined_process(folders: tuple[Path, Path, Path]):
    folder, secret, mark = folders
    inside = folder / "inside.txt"
    inside.write_text("readable")
    program = CONFINED.format(
        path=[entry for entry in sys.path if entry], folder=str(folder), inside=str(inside), outside=str(secret),
        parent=str(secret.parent), mark=str(mark),
    )  # fmt: skip
    run = subprocess.run([sys.executable, "-u", "-c", textwrap.dedent(program)], capture_output=True, check=False)
    lines = run.stdout.decode().splitlines()
    assert lines and lines[0] == "readable", run.stderr.decode()
    assert len(json.loads(lines[1])) == CONFINED.count("attempt(") - 1
    assert not mark.exists() and inside.read_text() == "readable"


@pytest.mark.skipif(sys.platform != "linux", reason="Landlock is part of Linux")
def test_the_kernel_forbids_writing_by_itself(tmp_path: Path):
    """The third layer without the others: memory and files are limited by the kernel."""
    program = (
        f"import os, sys; sys.path[:] = {[entry for entry in sys.path if entry]!r}\n"
        "from linksweep.model.formats import xacro_child\n"
        "xacro_child.limit_resources(5, 2**28)\n"
        f"try:\n    os.write(os.open({str(tmp_path / 'mark')!r}, os.O_CREAT | os.O_WRONLY), b'x')\n"
        "except OSError: print('refused')\n"
        "try:\n    bytearray(2**30)\nexcept MemoryError: print('refused')\n"
    )
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, check=False)
    mark = tmp_path / "mark"
    assert run.stdout.decode().split() == ["refused", "refused"] or run.returncode < 0, run.stderr.decode()
    assert not mark.exists() or mark.stat().st_size == 0


def test_expressions_that_robots_use():
    for text in (
        "2*pi",
        "[i**2 for i in range(3)]",
        "'a' if x else 'b'",
        "(lambda a: a+1)(2)",
        "d.f_max",
        "_x",
        "f'{a:.3f}'",
    ):
        assert xacro_child.checked_expression(text)
    assert os.path.isfile(xacro_files.CHILD)
