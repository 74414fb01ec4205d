"""Run as a program by mujoco_process.py: compile MJCF files with MuJoCo, each in a separate process with limits.

    python -I mujoco_child.py '{"path": sys.path of the parent, "idle": seconds}'

A request is a line of JSON on standard input: {"file": ..., "processor": s, "wall": s, "memory": bytes}. The answer is
a line of JSON, {"status": ..., "bytes": n}, and n bytes of an NPZ file with what `extract` takes from MuJoCo's model.
MuJoCo is imported once; each request is served by a fork, which has nothing to lose. Nothing of linksweep is imported.
"""

from __future__ import annotations

import io
import json
import os
import signal
import sys
from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # a script by itself, which imports nothing of the package
    from linksweep.model.formats.mjcf_compiled import MjModel, MuJoCo
    from linksweep.support.files import Table

FIELDS = (
    "body_parentid", "body_jntadr", "body_jntnum", "body_pos", "body_quat", "body_ipos", "body_iquat", "body_mass",
    "body_inertia", "body_gravcomp", "body_mocapid",
    "jnt_type", "jnt_bodyid", "jnt_qposadr", "jnt_dofadr", "jnt_pos", "jnt_axis", "jnt_limited", "jnt_range",
    "jnt_actfrclimited", "jnt_actfrcrange", "jnt_stiffness", "jnt_stiffnesspoly", "qpos0",
    "dof_armature", "dof_damping", "dof_dampingpoly", "dof_frictionloss", "dof_jntid",
    "site_bodyid", "site_pos", "site_quat", "geom_contype", "geom_conaffinity", "npair", "nflex", "nplugin",
    "tendon_stiffness", "tendon_stiffnesspoly", "tendon_damping", "tendon_dampingpoly", "tendon_armature",
    "tendon_frictionloss", "tendon_limited", "eq_active0",
    "eq_type", "eq_obj1id", "eq_obj2id", "eq_objtype", "eq_data",
    "actuator_trntype", "actuator_trnid", "actuator_outadr", "actuator_gear", "actuator_armature", "actuator_damping",
    "actuator_dampingpoly", "actuator_biastype", "actuator_group", "actuator_plugin",
    "names", "name_bodyadr", "name_jntadr", "name_siteadr", "name_tendonadr", "name_eqadr", "name_actuatoradr",
)  # fmt: skip
OPTIONS = ("gravity", "density", "viscosity", "disableactuator")


def extract(model: MjModel) -> Table:
    """The arrays of an MjModel of which dynamics depends; those that its version does not have are left out."""
    import mujoco
    import numpy as np

    arrays = {name: np.array(np.frombuffer(model.names, np.uint8) if name == "names" else getattr(model, name))
             for name in FIELDS if hasattr(model, name)}  # fmt: skip
    arrays |= {f"opt_{name}": np.array(getattr(model.opt, name)) for name in OPTIONS if hasattr(model.opt, name)}
    for kind, flags in (("Disable", model.opt.disableflags), ("Enable", model.opt.enableflags)):
        bits = getattr(mujoco, f"mjt{kind}Bit").__members__.items()  # their numbers change with the version
        words = [name.split("_")[-1].lower() for name, bit in bits if "_" in name and int(flags) & int(bit.value)]
        arrays[f"{kind.lower()}d"] = np.array(words, dtype=str)
    return arrays


def answer(file: str) -> bytes:
    """Return the answer for one file."""
    import numpy as np

    mujoco: MuJoCo = import_module("mujoco")
    messages: list[str] = []
    mujoco.set_mju_user_warning(messages.append)  # else it writes MUJOCO_LOG.TXT into the working directory
    buffer = io.BytesIO()
    try:
        np.savez(buffer, **extract(mujoco.MjModel.from_xml_path(file)))
        return framed({"status": "compiled", "messages": messages}, buffer.getvalue())
    except Exception as error:  # whatever MuJoCo throws at it, the process ends here
        return framed({"status": "refused", "reason": " ".join(f"{error or type(error).__name__}".split())[:1000]})


def framed(header: Table, body: bytes = b"") -> bytes:
    return json.dumps(header | {"bytes": len(body)}).encode() + b"\n" + body


def limited(request: Table) -> None:
    """Limit the processor time, memory and files of this process."""
    import resource

    limits = {
        resource.RLIMIT_CPU: int(sum(os.times()[:2]) + request["processor"]) + 1,
        resource.RLIMIT_FSIZE: 0,
        resource.RLIMIT_CORE: 0,
    }
    if os.path.exists("/proc/self/statm"):  # elsewhere memory is not limited by this
        with open("/proc/self/statm", encoding="ascii") as stream:
            pages = int(stream.read().split()[0])
        limits[resource.RLIMIT_AS] = pages * resource.getpagesize() + request["memory"]
    for limit, value in limits.items():
        hard = resource.getrlimit(limit)[1]
        value = value if hard == resource.RLIM_INFINITY else min(value, hard)
        resource.setrlimit(limit, (value, hard))
    signal.setitimer(signal.ITIMER_REAL, request["wall"])


def in_fork(request: Table) -> bytes:
    """Return the answer of a fork, or the signal that ended it."""
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        try:
            os.close(reading)
            limited(request)
            with open(writing, "wb") as stream:
                stream.write(answer(request["file"]))
        finally:
            os._exit(0)
    os.close(writing)
    with open(reading, "rb") as stream:
        content = stream.read()
    _, status = os.waitpid(child, 0)
    header, newline, body = content.partition(b"\n")
    if newline and json.loads(header)["bytes"] == len(body):
        return content
    return framed({"status": "died", "signal": os.WTERMSIG(status) if os.WIFSIGNALED(status) else 0})


def requested(idle: float) -> Table | None:
    """Return the next request, or None after `idle` seconds without one."""
    import select

    line = b""
    while not line.endswith(b"\n"):
        if hasattr(os, "fork") and not select.select([0], [], [], idle)[0]:
            return None
        piece = os.read(0, 65536)
        if not piece:
            return None
        line += piece
    return json.loads(line)


def main() -> None:
    settings = json.loads(sys.argv[1])
    sys.path[:] = settings["path"]
    out = os.dup(1)
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # what MuJoCo prints is no answer
    with open(out, "wb") as stream:
        try:
            import mujoco  # noqa: F401
        except ImportError as error:
            stream.write(framed({"status": "missing", "reason": str(error)}))
            return
        while (request := requested(settings["idle"])) is not None:
            stream.write(in_fork(request) if hasattr(os, "fork") else answer(request["file"]))
            stream.flush()


if __name__ == "__main__":
    main()
