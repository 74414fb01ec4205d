"""SDF, the format of Gazebo, converted to MJCF by the package sdformat-mjcf where it is installed."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from pathlib import Path

from linksweep.errors import DescriptionError
from linksweep.model.model import Model

PROGRAM = "sdf2mjcf"  # of sdformat-mjcf; it needs Gazebo's Python bindings, which are not on PyPI
SECONDS = 120.0


def read_sdf(data: bytes, name: str, couple: bool) -> Model:
    """Return the Model of SDF text; messages call it `name`. Meshes of the file are not needed for dynamics."""
    from linksweep.model.formats.mjcf import read_mjcf

    program = shutil.which(PROGRAM)
    if program is None:
        raise DescriptionError(
            f"{name}: this is SDF, which is read through the program {PROGRAM} of the package sdformat-mjcf: install "
            "it (conda install -c conda-forge sdformat-mjcf), or convert the file to URDF or MJCF elsewhere."
        )
    with tempfile.TemporaryDirectory(prefix="linksweep-") as folder:
        source, target = Path(folder) / "robot.sdf", Path(folder) / "robot.xml"
        source.write_bytes(data)
        try:
            run = subprocess.run([program, str(source), str(target)], capture_output=True, timeout=SECONDS, check=False)
        except (OSError, subprocess.TimeoutExpired) as error:
            raise DescriptionError(f"{name}: {PROGRAM} did not convert it ({error}).") from None
        if run.returncode or not target.is_file():
            reason = " ".join(run.stderr.decode("utf-8", "replace").split())[-300:]
            raise DescriptionError(f"{name}: {PROGRAM} cannot convert it ({reason}).")
        try:
            return read_mjcf(target, root=Path(folder), couple=couple)
        except DescriptionError as error:
            raise DescriptionError(str(error).replace(str(target), name)) from None
