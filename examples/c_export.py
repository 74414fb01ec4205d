"""Export inverse dynamics to C, compile it with the system's C compiler, and compare it with the result in NumPy."""

import ctypes
import shutil
import subprocess
import tempfile
from pathlib import Path

import numpy as np

import linksweep as ls
from linksweep.functions.c_export import export_c

robot = ls.robots.puma560()
torques = robot.compile("inverse_dynamics")
with tempfile.TemporaryDirectory() as folder:
    source, header = export_c(torques, Path(folder) / "puma.c", name="puma_torques", robot=robot)
    print(source.read_text().splitlines()[1].strip(" *"), f"{torques.counts}")
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        print("No C compiler here: the files are", source.name, "and", header.name)
    else:
        library = Path(folder) / "puma.so"
        subprocess.run([compiler, "-std=c99", "-O2", "-shared", "-fPIC", "-o", library, source, "-lm"], check=True)
        q, qd, qdd = np.random.default_rng(0).uniform(-1, 1, (3, 6))
        tau = np.empty(6)
        ctypes.CDLL(str(library)).puma_torques(*(ctypes.c_void_p(x.ctypes.data) for x in (q, qd, qdd, tau)))
        print("torques from C (N m):", np.round(tau, 4))
        assert np.allclose(tau, torques(q, qd, qdd), rtol=1e-12, atol=1e-12)
