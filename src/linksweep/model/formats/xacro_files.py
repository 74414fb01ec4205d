"""xacro files, expanded to URDF by the package `xacrodoc` (extra `ros`) in a process of its own.

xacro evaluates Python expressions of the file, so a xacro file can run code: load only files that you trust. The
separate process keeps xacro's global state out of this one and ends after `SECONDS`.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path

from linksweep.errors import ArgumentError, BackendError, DescriptionError
from linksweep.support.messages import shown

SECONDS = 60.0  # for one file; a robot takes less than one
_PROGRAM = "import sys; sys.path[:] = {path!r}; from linksweep.model.formats.xacro_files import main; main()"


def expand_xacro(data: bytes, name: str, file: Path | None, args: Mapping[str, object], packages: object = ()) -> bytes:
    """Return the URDF text of a xacro file or text; messages call it `name`.

    args: arguments of the file, {"prefix": "left_"}. packages: folders that contain ROS packages, before those of
    ROS_PACKAGE_PATH and AMENT_PREFIX_PATH and the package around the file.
    """
    request = {
        "text": data.decode("utf-8", "replace"),
        "file": None if file is None else os.path.abspath(file),
        "args": _checked_args(args),
        "folders": [*_checked_folders(packages), *_ament_folders()],
    }
    if find_spec("xacrodoc") is None:
        raise DescriptionError(
            f"{name}: this is xacro, a macro language, which needs the package xacrodoc: pip install 'linksweep[ros]', "
            "or expand it first (xacro robot.urdf.xacro > robot.urdf)."
        )
    program = _PROGRAM.format(path=[folder for folder in sys.path if folder])
    try:
        run = subprocess.run(
            [sys.executable, "-c", program],
            input=json.dumps(request).encode(),
            capture_output=True,
            timeout=SECONDS,
            check=False,
        )
        answer = json.loads(run.stdout)
    except subprocess.TimeoutExpired:
        raise DescriptionError(f"{name}: expanding the xacro file took more than {SECONDS:g} s.") from None
    except OSError as error:
        raise BackendError(f"{name}: the process that expands xacro cannot be started ({error.strerror}).") from None
    except ValueError:
        answer = {"error": "the process ended without a result"}
    if "error" in answer:
        raise DescriptionError(f"{name}: xacro cannot expand it ({shown_error(answer['error'])}).")
    return answer["urdf"].encode("utf-8", "surrogatepass")


def shown_error(text: object) -> str:
    return " ".join(str(text).split())[:300]


def _checked_args(args: object) -> dict[str, str]:
    if not isinstance(args, Mapping) or not all(isinstance(key, str) for key in args):
        raise ArgumentError(f"xacro_args is {shown(args)}, expected a mapping such as {{'prefix': 'left_'}}.")
    return {str(key): str(value).lower() if isinstance(value, bool) else str(value) for key, value in args.items()}


def _checked_folders(packages: object) -> list[str]:
    entries = [packages] if isinstance(packages, (str, os.PathLike)) else packages
    if not isinstance(entries, Sequence) or not all(
        isinstance(entry, (str, os.PathLike)) and os.path.isdir(entry) for entry in entries
    ):
        raise ArgumentError(f"packages is {shown(packages)}, expected existing folders that contain ROS packages.")
    return [os.path.abspath(entry) for entry in entries]


def _ament_folders() -> list[str]:
    prefixes = filter(None, os.environ.get("AMENT_PREFIX_PATH", "").split(os.pathsep))
    return [folder for prefix in prefixes if os.path.isdir(folder := os.path.join(prefix, "share"))]


def main() -> None:
    """Run in the child process: read a request from standard input and print the URDF, or the error, as JSON."""
    request = json.load(sys.stdin)
    output, sys.stdout = sys.stdout, sys.stderr  # xacro prints warnings
    try:
        from xacrodoc import XacroDoc, packages  # pyright: ignore[reportMissingImports]

        if request["folders"]:
            packages.look_in(request["folders"])
        options = {"subargs": request["args"], "resolve_packages": False}
        if request["file"] is not None:
            document = XacroDoc.from_file(request["file"], **options)
        else:
            document = XacroDoc.from_string(request["text"], **options)
        answer = {"urdf": document.to_urdf_string()}
    except Exception as error:  # whatever xacro or an expression of the file raises
        answer = {"error": f"{type(error).__name__}: {error}"}
    json.dump(answer, output)
