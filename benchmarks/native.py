"""Pinocchio's C++ called in a C++ loop: native_pinocchio.cpp, compiled here against the headers of the `pin` wheel.

    python benchmarks/native.py [--wheel] [FILE.so]     build it, once for many runs; LINKSWEEP_NATIVE=FILE.so uses it

All of Pinocchio is compiled for this processor, which takes g++ some minutes and three gigabytes. --wheel compiles the
loop alone and calls the library of the wheel, which is built for any processor: quicker to make, and slower.
Eigen comes from the package cmeel-eigen, from CasADi's wheel, or from the system. Where any of it is missing, `build`
raises Unavailable with a sentence. The model is the one of Pinocchio's Python side, number by number.
"""

from __future__ import annotations

import ctypes
import functools
import os
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

HERE = Path(__file__).parent
FLAGS = (
    "-std=c++17",
    "-DNDEBUG",
    "-fPIC",
    "-shared",
    "-DBOOST_MPL_LIMIT_LIST_SIZE=30",
    "-DBOOST_MPL_LIMIT_VECTOR_SIZE=30",
    "-DBOOST_FUSION_INVOKE_MAX_ARITY=12",
    "-DBOOST_MPL_CFG_NO_PREPROCESSED_HEADERS",
)  # the limits are those of pinocchioTargets.cmake
WHOLE = ("-O3", "-march=native", "-fno-gnu-unique", "-Wl,-Bsymbolic")  # nothing of the wheel's library is called
OF_WHEEL = ("-O2", "-DPINOCCHIO_ENABLE_TEMPLATE_INSTANTIATION")
KINDS = {f"JointModel{kind}{axis}" for kind in ("R", "P", "RUB") for axis in "XYZ"} | {
    "JointModelRevoluteUnaligned", "JointModelPrismaticUnaligned", "JointModelRevoluteUnboundedUnaligned",
    "JointModelSpherical", "JointModelFreeFlyer",
}  # fmt: skip
PATIENCE = 1800  # seconds for the compiler, which takes a minute or two of a whole core


class Unavailable(Exception):
    """Why there is no native side here, in a sentence."""


def includes() -> list[Path]:
    """The folders of Pinocchio's, Boost's and Eigen's headers."""
    places = [Path(p) for p in dict.fromkeys([*sys.path, sysconfig.get_paths()["purelib"], "/usr"]) if p]
    wanted = {
        "pinocchio/config.hpp": ("cmeel.prefix/include", "include"),
        "boost/version.hpp": ("cmeel.prefix/include", "include"),
        "Eigen/Core": ("cmeel.prefix/include/eigen3", "include/eigen3", "casadi/include/eigen3"),
    }
    found = []
    for header, folders in wanted.items():
        here = next((p / f for p in places for f in folders if (p / f / header).exists()), None)
        if here is None:
            raise Unavailable(f"there is no {header}: pip install pin cmeel-eigen")
        found.append(here)
    return list(dict.fromkeys(found))


def build(target: Path, wheel: bool = False) -> Path:
    compiler = shutil.which("g++") or shutil.which("c++")
    if compiler is None:
        raise Unavailable("there is no C++ compiler: install g++")
    found = includes()
    folders, libraries = [f"-I{folder}" for folder in found], found[0].parent / "lib"
    linked = (f"-L{libraries}", "-lpinocchio_default", f"-Wl,-rpath,{libraries}") if wheel else ()
    flags = (*FLAGS, *(OF_WHEEL if wheel else WHOLE))
    command = [compiler, *flags, *folders, str(HERE / "native_pinocchio.cpp"), *linked, "-o", str(target)]
    run = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE)
    if run.returncode:
        error = next((line for line in run.stderr.splitlines() if "error" in line), "no message")
        raise Unavailable(f"{compiler} refuses Pinocchio's headers: {error[:200]}")
    return target


@functools.cache
def library() -> ctypes.CDLL:
    """LINKSWEEP_NATIVE, or one that is built for this process alone."""
    given = os.environ.get("LINKSWEEP_NATIVE")
    if given:
        if not Path(given).exists():
            raise Unavailable(f"there is no {given}: build it with benchmarks/native.py")
        found = ctypes.CDLL(str(Path(given).absolute()))
    else:
        with tempfile.TemporaryDirectory(prefix="native-pinocchio-") as folder:  # loaded: the file may go
            found = ctypes.CDLL(str(build(Path(folder) / "native.so")))
    double, number, text = np.ctypeslib.ndpointer(np.float64, flags="C"), ctypes.c_long, ctypes.c_char_p
    found.make_robot.restype = ctypes.c_void_p
    found.make_robot.argtypes = [number, ctypes.POINTER(text), double, number, double]
    found.run.argtypes = [ctypes.c_void_p, text, number, double, double, double, ctypes.c_void_p, number]
    return found


class Native:
    """A Pinocchio model of Python as one of C++."""

    def __init__(self, model: Any, frame: str = "") -> None:
        """frame: the one that functions of a frame are asked for; the last one, if nothing is said."""
        joints = [model.joints[k] for k in range(1, model.njoints)]
        others = {joint.shortname() for joint in joints} - KINDS
        if others:
            raise Unavailable(f"native_pinocchio.cpp has no {', '.join(sorted(others))}: add it to joint_of")
        numbers = np.zeros((len(joints), 26))
        for k, joint in enumerate(joints):
            inertia, shape = model.inertias[k + 1], model.inertias[k + 1].inertia
            axis = np.asarray(joint.extract().axis if hasattr(joint, "extract") and _has_axis(joint) else (0, 0, 0))
            numbers[k] = np.concatenate([
                [model.parents[k + 1]], axis, _flat(model.jointPlacements[k + 1]), [inertia.mass], inertia.lever,
                [shape[0, 0], shape[0, 1], shape[1, 1], shape[0, 2], shape[1, 2], shape[2, 2]],
            ])  # fmt: skip
        frames = [frame for frame in model.frames if frame.type.name == "BODY"]  # as many as linksweep has
        frames.sort(key=lambda one: one.name == frame)  # C++ takes the last
        framed = np.array([[_parent(frame), *_flat(frame.placement)] for frame in frames])
        kinds = (ctypes.c_char_p * len(joints))(*(joint.shortname().encode() for joint in joints))
        self.nv = model.nv
        self.robot = library().make_robot(len(joints), kinds, numbers, len(frames), np.ascontiguousarray(framed))

    def __call__(self, function: str, q: Any, v: Any, x: Any, size: int = 0) -> np.ndarray | None:
        """Once for each row. `size` numbers of each result are given back, if that is not zero."""
        out = np.empty((len(q), size)) if size else None
        place = out.ctypes.data if out is not None else None
        if library().run(self.robot, function.encode(), len(q), q, v, x, place, size):
            raise KeyError(function)
        return out

    def has(self, function: str, q: Any, v: Any, x: Any) -> bool:
        return library().run(self.robot, function.encode(), 0, q, v, x, None, 0) == 0


def _has_axis(joint: Any) -> bool:
    return joint.shortname().endswith("Unaligned")


def _parent(frame: Any) -> int:
    return frame.parentJoint if hasattr(frame, "parentJoint") else frame.parent


def _flat(placement: Any) -> np.ndarray:
    return np.concatenate([placement.rotation.ravel(), placement.translation])


if __name__ == "__main__":
    try:
        given = [argument for argument in sys.argv[1:] if argument != "--wheel"]
        print(build(Path(given[0] if given else "native.so").absolute(), wheel="--wheel" in sys.argv))
    except Unavailable as reason:
        sys.exit(f"Pinocchio in C++: {reason}")
