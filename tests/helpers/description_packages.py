"""Description files of other packages, here and in Pinocchio or MuJoCo; run by test_description_packages.py.

    python description_packages.py < lines of JSON [file, root]        one line of JSON for each robot that was compared

URDF goes to Pinocchio, on a fixed and on a floating base, and MJCF to MuJoCo. "error" is the largest difference of
torques at random states and accelerations, relative to the largest element. Where we say nothing of
MuJoCo's forces, all of them are compared: "rest" is what passive forces, actuators without control and constraints do
beside damping and friction.
"""

from __future__ import annotations

import importlib
import json
import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np

import linksweep as ls
from linksweep.robot import conventions

SAMPLES = 2
EQUALITY, FRICTION = 0, 1  # mjtConstraint
SAME_FRAME, SAME_AXES = 1, 3  # mjtSameFrame


def loaded(path: Path, base: str, root: str | None) -> tuple[ls.Robot, list[str]]:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        robot = ls.load(path, base=base, root=root)
    return robot, [str(warning.message) for warning in caught]


def relative(ours: np.ndarray, theirs: np.ndarray, least: float = 1e-300) -> float:
    return float(np.abs(ours - theirs).max() / max(np.abs(theirs).max(), least))


def against_pinocchio(path: Path, base: str) -> dict[str, Any]:
    pin: Any = importlib.import_module("pinocchio")
    root = (pin.JointModelFreeFlyer(),) if base == "floating" else ()
    try:
        model = pin.buildModelFromUrdf(str(path), *root, mimic=False)
    except (ValueError, RuntimeError) as error:
        return {"peer": f"refuses: {error}"[:200]}
    if model.nv == len(root) * 6:
        return {"peer": "no joint"}
    robot, said = loaded(path, base, None)
    rng = np.random.default_rng(0)
    q = np.stack([robot.random(rng) for _ in range(SAMPLES)])
    v, a = rng.uniform(-1, 1, (2, SAMPLES, robot.nv))
    tau = robot.compile("inverse_dynamics", backend="interpreter")(q, v, a)
    states = zip(*conventions.to_pinocchio(robot, model, q=q, v=v, a=a), strict=True)
    theirs = np.array([pin.rnea(model, model.createData(), *state) for state in states])
    error = relative(conventions.to_pinocchio(robot, model, tau=tau), theirs, 1e-12)
    return {"peer": "pinocchio", "nv": robot.nv, "error": error, "said": said}


def against_mujoco(path: Path, root: str) -> dict[str, Any]:
    mujoco: Any = importlib.import_module("mujoco")
    mujoco.set_mju_user_warning(lambda message: None)
    try:
        model = mujoco.MjModel.from_xml_path(str(path))
    except (ValueError, RuntimeError, mujoco.FatalError) as error:
        return {"peer": f"refuses: {error}"[:200]}
    if not model.njnt:
        return {"peer": "no joint"}
    robot, said = loaded(path, "fixed", root)
    data, rng = mujoco.MjData(model), np.random.default_rng(0)
    ours = robot.without_constraints().compile("inverse_dynamics", backend="interpreter")  # M qdd + bias of the tree
    read = (EQUALITY, FRICTION) if robot.constraints else (FRICTION,)
    damping = np.concatenate([[link.joint.damping] * n for link, n in _freedoms(robot)])
    error = rest = 0.0
    for _ in range(SAMPLES):
        q, (v, a) = robot.random(rng), rng.uniform(-1, 1, (2, robot.nv))
        data.qpos, data.qvel, qacc = conventions.to_mujoco(robot, model, q=q, v=v, a=a)
        mujoco.mj_forward(model, data)
        inertial = np.empty(model.nv)
        mujoco.mj_mulM(model, data, inertial, qacc)

        def seen(forces: np.ndarray) -> np.ndarray:
            return conventions.from_mujoco(robot, model, q=data.qpos, tau=forces)[1]

        # where these are left out, the warning says so, and they are all that may differ
        if not any(words in saying for words in ("armature of tendons", "free joints act") for saying in said):
            error = max(error, relative(ours(q, v, a), seen(inertial + data.qfrc_bias), 1e-3))
        if not any("left out" in saying for saying in said):
            forces = seen(data.qfrc_passive + data.qfrc_actuator) + damping * v
            rest = max(rest, float(np.abs(forces).max()), float((~np.isin(data.efc_type, read)).sum()))
    error = max(0.0, error - _overlooked(model))
    return {"peer": "mujoco", "nv": robot.nv, "error": error, "rest": rest, "said": said}


def _overlooked(model: Any) -> float:
    """MuJoCo takes a mass centre, or principal axes, for the body's own where they are within 1e-6; we do not."""
    centre = np.abs(model.body_ipos[model.body_sameframe == SAME_FRAME]).max(initial=0.0)
    axes = np.abs(model.body_iquat[np.isin(model.body_sameframe, (SAME_FRAME, SAME_AXES)), 1:]).max(initial=0.0)
    return float(max(centre, 2.0 * axes))


def _freedoms(robot: ls.Robot) -> list[tuple[Any, int]]:
    from linksweep.joints import KINDS

    links = [robot.model.links[i] for i in robot.model.document_order]
    return [(link, KINDS[link.joint.kind].nv) for link in links]


def main() -> None:
    for line in sys.stdin:
        name, root = json.loads(line)
        print(json.dumps({"begun": name}), flush=True)
        path = Path(name)
        urdf = b"<mujoco" not in path.read_bytes() or path.suffix == ".urdf"
        for base in ("fixed", "floating") if urdf else ("fixed",):
            try:
                found = against_pinocchio(path, base) if urdf else against_mujoco(path, root)
            except ls.LinksweepError as error:
                found = {"peer": "pinocchio" if urdf else "mujoco", "refused": str(error)}
            except Exception as error:
                found = {"peer": "pinocchio" if urdf else "mujoco", "problem": f"{type(error).__name__}: {error}"[:300]}
            print(json.dumps({"file": name, "base": base} | found), flush=True)


if __name__ == "__main__":
    main()
