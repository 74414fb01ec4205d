"""xacro files, expanded to URDF by the package `xacro` (extra `ros`) in a confined process (xacro_child.py).

xacro evaluates Python expressions of the file. The process restricts what an expression can contain, what files can be
read, time, memory and the size of the result, and it cannot write files, open connections or start programs.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path

from linksweep.errors import ArgumentError, BackendError, DescriptionError
from linksweep.model.formats.files import LARGEST_FILE
from linksweep.model.formats.packages import checked_folders, packages_around, search_folders
from linksweep.support.messages import shown

SECONDS = 60.0  # of processor time and of wall time for one file; a robot takes less than one
MEMORY = 2**30  # bytes, beside those of the interpreter
CHILD = Path(__file__).with_name("xacro_child.py")


def expand_xacro(
    data: bytes, name: str, file: Path | None, args: Mapping[str, object], packages: object = (),
    root: Path | None = None,
) -> bytes:  # fmt: skip
    """Return the URDF text of a xacro file or text; messages call it `name`.

    args: arguments of the file, {"prefix": "left_"}. packages: folders that contain ROS packages, before those of
    ROS_PACKAGE_PATH and AMENT_PREFIX_PATH. Files are included from these folders, `root`, and the ROS package around
    the file (its own folder if there is none).
    """
    path = None if file is None else os.path.abspath(file)
    around = packages_around(path) if path is not None else []
    folders = [] if path is None else around or [os.path.dirname(path)]
    installed = [*checked_folders(packages), *search_folders()]
    request = {
        "text": data.decode("utf-8", "replace"),
        "file": path,
        "args": _checked_args(args),
        "folders": [*folders, *([] if root is None else [os.path.abspath(root)])],
        "installed": installed,
        "find_in": [*installed, *around],
        "seconds": SECONDS,
        "memory": MEMORY,
        "largest": LARGEST_FILE,
    }
    if find_spec("xacro") is None:
        raise DescriptionError(
            f"{name}: this is xacro, a macro language, which needs the package xacro: pip install 'linksweep[ros]', "
            "or expand it first (xacro robot.urdf.xacro > robot.urdf)."
        )
    answer = _answer(request, name)
    if "error" in answer:
        raise DescriptionError(f"{name}: xacro cannot expand it ({' '.join(str(answer['error']).split())[:400]}).")
    return str(answer["urdf"]).encode("utf-8", "surrogatepass")


def _answer(request: dict[str, object], name: str) -> dict[str, object]:
    settings = json.dumps([folder for folder in sys.path if folder])
    try:
        child = subprocess.Popen(
            [sys.executable, "-I", "-X", "utf8", str(CHILD), settings], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL, start_new_session=True,
        )  # fmt: skip
    except OSError as error:
        raise BackendError(f"{name}: the process that expands xacro cannot be started ({error.strerror}).") from None
    assert child.stdin is not None
    assert child.stdout is not None
    late = threading.Event()

    def stop() -> None:
        late.set()
        child.kill()

    timer = threading.Timer(SECONDS, stop)
    timer.start()
    try:
        with child.stdout as output:
            try:
                with child.stdin as questions:
                    questions.write(json.dumps(request).encode())
            except OSError:
                pass  # the child ended early
            content = output.read(8 * LARGEST_FILE)  # JSON takes up to six characters for one
        answer = json.loads(content)
        return answer if isinstance(answer, dict) else {"error": "the process returned no result"}
    except ValueError:
        if late.is_set() or child.wait() == -24:  # SIGXCPU
            raise DescriptionError(f"{name}: expanding the xacro file took more than {SECONDS:g} s.") from None
        return {"error": "the process ended without a result"}
    finally:
        timer.cancel()
        child.kill()
        child.wait()


def _checked_args(args: object) -> dict[str, str]:
    if not isinstance(args, Mapping) or not all(isinstance(key, str) for key in args):
        raise ArgumentError(f"xacro_args is {shown(args)}, expected a mapping such as {{'prefix': 'left_'}}.")
    return {str(key): str(value).lower() if isinstance(value, bool) else str(value) for key, value in args.items()}
