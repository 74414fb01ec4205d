"""MuJoCo in a separate process: a file that makes it crash, hang or fill the memory raises `DescriptionError`.

The process (mujoco_child.py) is started with the first file, imports MuJoCo once and compiles each file in a fork with
limits. It ends after `IDLE` seconds without a request. This interpreter never imports MuJoCo, so its global state (such
as the function that takes its warnings, one for all threads) is not changed.
"""

from __future__ import annotations

import atexit
import contextlib
import io
import json
import os
import signal
import subprocess
import sys
import threading
from importlib.util import find_spec
from pathlib import Path

import numpy as np

from linksweep.errors import BackendError, DescriptionError
from linksweep.support.files import Table

PROCESSOR = 60.0  # seconds that MuJoCo may compute for one file; mujoco_menagerie's slowest takes 6
WALL = 600.0  # seconds that it may take on a busy machine
MEMORY = 4 * 2**30  # bytes beside its own
IDLE = 30.0
LARGEST_ANSWER = 2**28
CHILD = Path(__file__).with_name("mujoco_child.py")


def compiled(file: Path) -> tuple[dict[str, np.ndarray], list[str]]:
    """Return the arrays of MuJoCo's compiled model of a file (`mujoco_child.extract`), and MuJoCo's warnings."""
    if find_spec("mujoco") is None:
        raise DescriptionError(
            f"{file}: MJCF is read by the mujoco package, which is not installed, expected it here: "
            "pip install 'linksweep[mjcf]'."
        )
    header, body = _PROCESS.ask(os.path.abspath(file))
    if header["status"] == "compiled":
        try:
            with np.load(io.BytesIO(body), allow_pickle=False) as arrays:
                return dict(arrays), header["messages"]
        except Exception:  # the answer is damaged
            header = {"status": "died", "signal": 0}
    if header["status"] == "missing":
        raise BackendError(f"{file}: MuJoCo cannot be imported ({header['reason']}).")
    if header["status"] == "refused":
        raise DescriptionError(
            f"{file}: MuJoCo cannot compile it ({header['reason'][:300]}), expected a valid MJCF model."
        )
    raise DescriptionError(f"{file}: MuJoCo {_death(header['signal'])}: correct or simplify the file.")


def _death(number: int) -> str:
    if number in (getattr(signal, "SIGXCPU", -1), signal.SIGKILL):
        return f"computed for more than {PROCESSOR:g} s on it, expected a robot"
    if number == signal.SIGALRM:
        return f"took more than {WALL:g} s for it, expected a robot"
    return "crashed on it, expected a model that it can compile"


class _Process:
    """The child, started at the first request and again if it has ended; it answers one request at a time."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.child: subprocess.Popen[bytes] | None = None

    def ask(self, file: str) -> tuple[Table, bytes]:
        question = {"file": file, "processor": PROCESSOR, "wall": WALL, "memory": MEMORY}
        with self.lock:
            for _ in range(2):  # the child may just be leaving
                try:
                    return self.answered(json.dumps(question).encode() + b"\n")
                except (OSError, EOFError, ValueError):
                    self.end()
                except BaseException:  # interrupted: its answer would be taken for that to the next question
                    self.end()
                    raise
        return {"status": "died", "signal": 0}, b""

    def answered(self, question: bytes) -> tuple[Table, bytes]:
        if self.child is None or self.child.poll() is not None:
            self.end()
            self.child = _started()
        asking, answering = self.child.stdin, self.child.stdout
        assert asking is not None
        assert answering is not None
        asking.write(question)
        asking.flush()
        line = answering.readline()
        if not line:
            raise EOFError
        header = json.loads(line)
        if header["bytes"] > LARGEST_ANSWER:
            raise ValueError("larger than any robot")
        body = answering.read(header["bytes"])
        if len(body) < header["bytes"]:
            raise EOFError
        return header, body

    def end(self) -> None:
        child, self.child = self.child, None
        if child is not None:
            if child.poll() is None:  # with what it forked to compile, which is in its group
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(child.pid, signal.SIGKILL)
            child.wait()
            for stream in (child.stdin, child.stdout):
                if stream is not None:
                    with contextlib.suppress(OSError):
                        stream.close()


def _started() -> subprocess.Popen[bytes]:
    settings = json.dumps({"path": [place for place in sys.path if place], "idle": IDLE})
    environment = os.environ | {"MUJOCO_GL": "disable", "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
    if not sys.executable:
        raise BackendError("MJCF is read in a separate process, but this interpreter has no program to start it with.")
    try:
        return subprocess.Popen(
            [sys.executable, "-I", str(CHILD), settings], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL, env=environment, start_new_session=True,
        )  # fmt: skip
    except OSError as error:
        raise BackendError(f"MJCF is read in a separate process, which cannot be started ({error.strerror}).") from None


def _forget() -> None:
    """In a fork of this process, forget the child and the lock, which belong to the parent."""
    global _PROCESS
    _PROCESS = _Process()


_PROCESS = _Process()
atexit.register(lambda: _PROCESS.end())
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)
