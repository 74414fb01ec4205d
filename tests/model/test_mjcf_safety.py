"""MJCF files that would crash, hang or fill the process, or read what they should not: one sentence each."""

# Arguments that are wrong on purpose, or numbers over any scalar:
# pyright: reportArgumentType=false
from __future__ import annotations

import contextlib
import importlib
import os
import signal
import sys
import threading
import time
import warnings
from pathlib import Path
from typing import Any

import pytest
from abuse_helpers import run_python

import linksweep as ls
from linksweep.errors import ArgumentError, BackendError, DescriptionError, ModelWarning
from linksweep.model.formats import mjcf_files, mujoco_process

mujoco: Any = importlib.import_module("mujoco")
mujoco.set_mju_user_warning(lambda message: None)  # else it leaves MUJOCO_LOG.TXT where the tests run
BODY = '<body name="b"><joint name="j"/><geom size="1"/></body>'
PLAIN = f"<mujoco><worldbody>{BODY}</worldbody></mujoco>"


def attaching(file: str, more: str = "") -> str:
    return (
        f'<mujoco><asset><model name="m" file="{file}" {more}/></asset><worldbody>{BODY}<body name="c">'
        '<attach model="m" prefix="p_"/></body></worldbody></mujoco>'
    )


def written(folder: Path, **files: str) -> Path:
    """Files by their names; the path of the first one."""
    for name, text in files.items():
        (folder / f"{name}.xml").write_text(text)
    return folder / f"{next(iter(files))}.xml"


def refused(path: Path, pattern: str, **options: Any) -> None:
    with pytest.raises(DescriptionError, match=pattern) as caught:
        ls.load(path, **options)
    assert "\n" not in str(caught.value) and len(str(caught.value)) < 1000


# ---- what MuJoCo would follow -----------------------------------------------------------------------------------

MESH = '<mujoco><asset><mesh name="a" file="{}"/></asset><worldbody>{}</worldbody></mujoco>'
FOLLOWED = {
    "attaches itself": ({"a": attaching("a.xml")}, r"line 1: 'a\.xml' attaches itself"),
    "attaches what attaches it": ({"a": attaching("b.xml"), "b": attaching("./a.xml")}, r"b\.xml, line 1.*attaches"),
    "attaches from above": ({"a": attaching("../secret.xml")}, r"'\.\./secret\.xml' lies outside of .*root='"),
    "attaches by another way up": ({"a": attaching("..\\\\secret.xml")}, "lies outside of"),
    "attaches by a link": ({"a": attaching("link.xml")}, "lies outside of"),
    "attaches absolutely": ({"a": attaching("/etc/hostname")}, "lies outside of"),
    "attaches a URI": ({"a": attaching("http://127.0.0.1:9/a.xml")}, "is not a path"),
    "attaches an archive": ({"a": attaching("b.xml", 'content_type="application/zip"'), "b": PLAIN}, "expected XML"),
    "attaches what is not XML": ({"a": attaching("data.bin")}, r"data\.bin.*(not valid XML|binary file)"),
    "attaches what includes from above": (
        {"a": attaching("b.xml"), "b": '<mujoco><include file="../secret.xml"/></mujoco>'}, "lies outside of",
    ),
    "attaches copies of copies": (
        {"a": attaching("b.xml"), "b": PLAIN.replace(BODY, f'<replicate count="1e9">{BODY}</replicate>')},
        "asks for count",
    ),
    "attaches entities": ({"a": attaching("b.xml"), "b": "<!DOCTYPE m><mujoco/>"}, "document type"),
    "attaches over and over": (
        {f"f{k}": attaching(f"f{k + 1}.xml").replace("</asset>", f'<model name="n" file="f{k + 1}.xml"/></asset>')
         for k in range(30)} | {"f30": PLAIN}, "over and over",
    ),
    "includes in capitals": ({"a": '<mujoco><INCLUDE file="../secret.xml"/></mujoco>'}, "lies outside of"),
    "includes itself by another name": ({"a": '<mujoco><include file="./x/../a.xml"/></mujoco>'}, "includes itself"),
    "includes in a ring": (
        {"a": '<mujoco><include file="b.xml"/></mujoco>', "b": '<mujoco><include file="a.xml"/></mujoco>'},
        "includes itself",
    ),
    "keys": ({"a": f'<mujoco><size nkey="2000000000"/><worldbody>{BODY}</worldbody></mujoco>'}, "asks for nkey"),
    "user data": ({"a": PLAIN.replace("<world", '<size nuser_geom="2000000000"/><world')}, "asks for nuser_geom"),
    "a pipe as mesh": ({"a": MESH.format("pipe.obj", BODY)}, "is empty, a device or a pipe"),
    "a pipe in a folder": (
        {"a": MESH.format("pipe.obj", BODY).replace("<asset>", '<compiler meshdir="sub"/><asset>')},
        "a device or a pipe",
    ),
    "a pipe as texture": (
        {"a": f'<mujoco><asset><texture name="t" fileup="pipe.obj"/></asset><worldbody>{BODY}</worldbody></mujoco>'},
        "a device or a pipe",
    ),
    "a pipe in an attached model": (
        {"a": attaching("b.xml"), "b": MESH.format("pipe.obj", BODY)}, "a device or a pipe",
    ),
    "endless zeros": ({"a": MESH.format("/dev/zero", BODY)}, "a device or a pipe"),
    "what the kernel makes up": ({"a": MESH.format("/proc/kmsg", BODY)}, "is empty, a device or a pipe"),
    "a URI as mesh": ({"a": MESH.format("file:///etc/hostname", BODY)}, "is not a path"),
}  # fmt: skip


@pytest.mark.parametrize("what", FOLLOWED)
def test_what_a_file_leads_to_is_looked_at_first(what: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Nothing of it gets as far as MuJoCo."""
    monkeypatch.setattr(mujoco_process._PROCESS, "ask", lambda file: pytest.fail("MuJoCo was asked"))
    (tmp_path / "secret.xml").write_text(PLAIN)
    folder = tmp_path / "own"
    (folder / "sub").mkdir(parents=True)
    for place in (folder, folder / "sub"):
        os.mkfifo(place / "pipe.obj")
    (folder / "link.xml").symlink_to(tmp_path / "secret.xml")
    (folder / "data.bin").write_bytes(os.urandom(100))
    files, pattern = FOLLOWED[what]
    refused(written(folder, **files), pattern)


def test_root_allows_what_stands_below_it(tmp_path: Path):
    """metaworld and d4rl include what stands beside the description's folder."""
    own, beside = tmp_path / "own", tmp_path / "beside"
    own.mkdir()
    beside.mkdir()
    (beside / "part.xml").write_text(f"<mujocoinclude>{BODY}</mujocoinclude>")
    (beside / "model.xml").write_text(PLAIN.replace('"j"', '"k"'))
    including = written(own, a='<mujoco><worldbody><include file="../beside/part.xml"/></worldbody></mujoco>')
    refused(including, f"allow a folder above with root='{tmp_path}'")
    assert ls.load(including, root=tmp_path).joint_names == ("j",)
    assert ls.load(including, root=str(tmp_path)) == ls.load(including, root=tmp_path.parent)
    attached = written(own, b=attaching("../beside/model.xml"))
    refused(attached, "lies outside of")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ModelWarning)
        assert ls.load(attached, root=tmp_path).joint_names == ("j", "p_k")
    with pytest.raises(ArgumentError, match=r"root is .*, expected a folder that contains"):
        ls.load(including, root=beside)
    with pytest.raises(ArgumentError, match="root is 3, expected a folder"):
        ls.load(including, root=3)


def test_meshes_may_stand_beside_unless_root_says_where(tmp_path: Path):
    own = tmp_path / "own"
    own.mkdir()
    corners = ["0 0 0", "1 0 0", "0 1 0", "0 0 1"]
    (tmp_path / "m.obj").write_text("".join(f"v {c}\n" for c in corners) + "f 1 3 2\nf 1 2 4\nf 1 4 3\nf 2 3 4\n")
    body = '<body name="b"><joint name="j"/><geom type="mesh" mesh="a"/></body>'
    path = written(own, a=MESH.format("../m.obj", body))
    assert ls.load(path) == ls.load(path, root=tmp_path)
    refused(path, "lies outside of", root=own)


def test_a_file_may_be_included_by_two_models(tmp_path: Path):
    shared = '<mujocoinclude><body name="s{}"><joint/><geom size="1"/></body></mujocoinclude>'
    one = '<mujoco><worldbody><include file="shared.xml"/></worldbody></mujoco>'
    path = written(tmp_path, a=attaching("b.xml").replace(BODY, '<include file="shared.xml"/>'), b=one, shared=shared)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ModelWarning)
        assert ls.load(path).nv == 2


# ---- the process ------------------------------------------------------------------------------------------------


@pytest.fixture
def own_process(monkeypatch: pytest.MonkeyPatch):
    process = mujoco_process._Process()
    monkeypatch.setattr(mujoco_process, "_PROCESS", process)
    yield process
    process.end()


@pytest.mark.slow
@pytest.mark.cases(1)
@pytest.mark.parametrize(
    ("text", "pattern"),
    [
        (attaching("a.xml"), r"a\.xml: MuJoCo (crashed|computed|cannot)"),
        (f'<mujoco><size nkey="2000000000"/><worldbody>{BODY}</worldbody></mujoco>', "computed for more than 2 s"),
        (f'<mujoco><size nuser_body="2000000000"/><worldbody>{BODY}</worldbody></mujoco>', "cannot compile it"),
        (f'<mujoco><size memory="100G"/><worldbody>{BODY}</worldbody></mujoco>', "memory"),
    ],
    ids=["crash", "hang", "memory", "arena"],
)
def test_mujoco_may_die(
    text: str, pattern: str, tmp_path: Path, own_process: Any, monkeypatch: pytest.MonkeyPatch
):  # fmt: skip
    """Behind the checks: what they let through costs a sentence, and the next file is read."""
    monkeypatch.setattr(mjcf_files, "check_files", lambda file, root: None)
    monkeypatch.setattr("linksweep.model.formats.mjcf.check_files", lambda file, root: None)
    monkeypatch.setattr(mujoco_process, "PROCESSOR", 2.0)
    refused(written(tmp_path, a=text), pattern)
    child = own_process.child
    assert ls.load(written(tmp_path, b=PLAIN)).joint_names == ("j",)
    assert own_process.child is child, "the process is the same, only its fork died"
    assert not list(tmp_path.glob("*.TXT")) and not Path("MUJOCO_LOG.TXT").exists()


@pytest.mark.slow
def test_a_process_that_is_gone_is_started_again(tmp_path: Path, own_process: Any, monkeypatch: pytest.MonkeyPatch):
    path = written(tmp_path, a=PLAIN)
    ls.load(path)
    first = own_process.child
    first.kill()
    first.wait()
    assert ls.load(path).nv == 1 and own_process.child is not first
    monkeypatch.setattr(mujoco_process, "IDLE", 0.05)
    own_process.end()
    ls.load(path)
    own_process.child.wait(60)  # nobody asks
    assert own_process.child.returncode == 0
    assert ls.load(path).nv == 1


@pytest.mark.slow
def test_an_interrupted_question_is_not_answered_to_the_next(tmp_path: Path, own_process: Any):
    a, b = written(tmp_path, a=PLAIN), written(tmp_path, b=PLAIN.replace('"j"', '"k"'))
    ls.load(a)
    answered = own_process.answered

    def interrupted(question: bytes) -> Any:
        answered(question)
        raise KeyboardInterrupt

    own_process.answered = interrupted
    with pytest.raises(KeyboardInterrupt):
        ls.load(a)
    own_process.answered = answered
    assert ls.load(b).joint_names == ("k",)


@pytest.mark.slow
def test_ctrl_c_ends_the_call_and_not_the_reader(tmp_path: Path, own_process: Any):
    """A signal that comes while MuJoCo computes."""
    hanging = written(tmp_path, a=f'<mujoco><size nkey="2000000000"/><worldbody>{BODY}</worldbody></mujoco>')
    ls.load(written(tmp_path, b=PLAIN))
    timer = threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        mujoco_process.compiled(hanging)
    timer.join()
    assert ls.load(tmp_path / "b.xml").nv == 1


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="needs /proc, which this system has not")
def test_what_computes_goes_with_the_call(tmp_path: Path, own_process: Any):
    """The fork that compiles does not live on when the question is interrupted."""
    slow = '<compiler><lengthrange mode="all" timestep="1e-9" inttotal="1e9"/></compiler>'
    motor = '<actuator><motor joint="j"/></actuator>'
    hanging = written(
        tmp_path, a=PLAIN.replace("<worldbody>", f"{slow}<worldbody>").replace("</mujoco>", f"{motor}</mujoco>")
    )
    ls.load(written(tmp_path, b=PLAIN))
    child = mujoco_process._PROCESS.child
    assert child is not None

    def forks() -> list[int]:
        found = []
        for entry in Path("/proc").iterdir():
            with contextlib.suppress(OSError, ValueError):
                words = (entry / "stat").read_text().rpartition(")")[2].split()
                if int(words[2]) == child.pid and words[0] != "Z":
                    found.append(int(entry.name))
        return found

    def interrupt() -> None:
        patience = time.monotonic() + 60
        while len(forks()) < 2 and time.monotonic() < patience:
            time.sleep(0.01)
        seen.append(len(forks()))
        os.kill(os.getpid(), signal.SIGINT)

    seen: list[int] = []
    thread = threading.Thread(target=interrupt)
    thread.start()
    with pytest.raises(KeyboardInterrupt):
        mujoco_process.compiled(hanging)
    thread.join()
    patience = time.monotonic() + 60
    while forks() and time.monotonic() < patience:
        time.sleep(0.01)
    assert seen == [2] and not forks()


@pytest.mark.slow
def test_threads_load_what_they_asked_for(tmp_path: Path):
    """And MuJoCo's function that takes warnings, one for all threads, stays the user's."""
    paths = [written(tmp_path, **{f"f{k}": PLAIN.replace('"j"', f'"j{k}"')}) for k in range(8)]
    before = mujoco.get_mju_user_warning()
    found: dict[int, list[str]] = {k: [] for k in range(8)}

    def load(k: int) -> None:
        for _ in range(5):
            found[k].append(ls.load(paths[k]).joint_names[0])

    threads = [threading.Thread(target=load, args=(k,)) for k in range(8)]
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(interval)
    assert found == {k: [f"j{k}"] * 5 for k in range(8)}
    assert mujoco.get_mju_user_warning() is before


@pytest.mark.slow
def test_a_fork_has_a_process_of_its_own(tmp_path: Path):
    path = written(tmp_path, a=PLAIN)
    code = f"""
import os, linksweep as ls
ls.load({str(path)!r})
child = os.fork()
if not child:
    os._exit(0 if ls.load({str(path)!r}).nv == 1 else 1)
assert os.waitpid(child, 0)[1] == 0
assert ls.load({str(path)!r}).nv == 1
"""
    run_python(code)


@pytest.mark.slow
def test_nothing_is_left_and_mujoco_is_not_imported(tmp_path: Path):
    path = written(tmp_path, a=PLAIN)
    code = f"""
import sys, linksweep as ls
from linksweep.model.formats import mujoco_process
ls.load({str(path)!r})
assert "mujoco" not in sys.modules
print(mujoco_process._PROCESS.child.pid)
"""
    number = int(run_python(code))
    deadline = time.monotonic() + 60
    while Path(f"/proc/{number}/status").exists() and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not Path(f"/proc/{number}/status").exists()


def test_where_no_process_can_be_started_a_sentence_says_so(
    tmp_path: Path, own_process: Any, monkeypatch: pytest.MonkeyPatch
):
    def none(*_: Any, **__: Any) -> Any:
        raise OSError(11, "Resource temporarily unavailable")

    monkeypatch.setattr(mujoco_process.subprocess, "Popen", none)
    with pytest.raises(BackendError, match=r"cannot be started .Resource temporarily unavailable"):
        ls.load(written(tmp_path, a=PLAIN))
    monkeypatch.setattr(sys, "executable", "")
    with pytest.raises(BackendError, match="no program to start it with"):
        ls.load(tmp_path / "a.xml")
