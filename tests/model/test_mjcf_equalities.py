"""MJCF's equalities: connect and weld as constraints, linear joint equalities as couplings, against MuJoCo itself."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import linksweep as ls
from linksweep.errors import ModelWarning

mujoco: Any = pytest.importorskip("mujoco")

BODIES = """<worldbody>
  <body name="arm" pos="0 0 1"><joint name="shoulder" axis="0 1 0.2" ref="0.3"/>
    <geom size="0.1" pos="0.2 0 0" mass="1"/>
    <body name="fore" pos="0.5 0 0" euler="10 20 30"><joint name="elbow" axis="0 1 0" pos="0.1 0 0"/>
      <geom size="0.12" pos="0 0.1 0.1" mass="2"/><site name="grip" pos="0.1 0.2 0.3" euler="5 6 7"/>
      <body name="hand" pos="0 0 0.3"><geom size="0.05" mass="0.3"/></body></body></body>
  <body name="box" pos="1 0.2 0.5" euler="4 50 6"><freejoint name="loose"/>
    <geom size="0.1 0.2 0.3" type="box" mass="3"/>
    <site name="handle" pos="-0.1 0.2 0.1" euler="9 8 70"/></body>
  <body name="rail" pos="0 1 0"><joint name="slide" type="slide" axis="0 0 1" damping="0.3"/>
    <geom size="0.1" mass="1"/></body>
</worldbody>"""
EQUALITIES = {
    "connect": '<connect name="pin" body1="fore" body2="box" anchor="0.1 0.2 0.3"/>',
    "connect to the world": '<connect body1="hand" anchor="0.1 0.2 0.3"/>',
    "connect sites": '<connect name="pin" site1="grip" site2="handle"/>',
    "weld": '<weld name="held" body1="hand" body2="box"/>',
    "weld with a pose": '<weld body1="fore" body2="box" relpose="0.1 0.2 0.3 0.7 0.1 0 0" anchor="0.4 0.5 0.6"/>',
    "weld sites": '<weld site1="grip" site2="handle"/>',
    "weld to the world": '<weld body1="box"/>',
    "world first": '<weld body1="world" body2="box"/>',
    "two": '<connect body1="hand" body2="box" anchor="0 0 0"/><connect body1="box" anchor="0 0.1 0"/>',
}
SIZES = {"connect": 3, "weld": 6}


@pytest.fixture(autouse=True)
def interpreted(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("linksweep.support.settings.backend", "interpreter")


def written(tmp_path: Path, equality: str) -> Path:
    path = tmp_path / "mechanism.xml"
    option = '<option><flag contact="disable"/></option>'
    path.write_text(f"<mujoco>{option}{BODIES}<equality>{equality}</equality></mujoco>")
    return path


def turned_rows(data: Any, size: int) -> np.ndarray:
    """MuJoCo's rows of the equalities, dense."""
    rows = np.zeros((data.nefc, size))
    if data.efc_J.size == rows.size:
        return np.array(data.efc_J).reshape(rows.shape)
    mujoco.mju_sparse2dense(rows, data.efc_J, data.efc_J_rownnz, data.efc_J_rowadr, data.efc_J_colind)
    return rows


@pytest.mark.parametrize("case", list(EQUALITIES))
def test_accelerations_as_a_dense_kkt_with_mujocos_own_jacobian(case: str, tmp_path: Path):
    """M, bias and J from MuJoCo; dJ/dt qd by differences of its J along the motion: 1e-6, which is theirs."""
    path = written(tmp_path, EQUALITIES[case])
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # nothing is left out
        robot = ls.load(path)
    model = mujoco.MjModel.from_xml_path(str(path))
    data = mujoco.MjData(model)
    rng = np.random.default_rng(1)
    assert sum(tie.rows for tie in robot.constraints) == sum(
        SIZES["weld" if kind else "connect"] for kind in model.eq_type
    )
    q = robot.neutral()
    mine = ls.conventions.from_mujoco(robot, model, q=model.qpos0.copy())
    q[:] = mine
    if "pose" not in case and "sites" not in case:
        assert np.abs(robot.constraint_error(q)).max() < 1e-12  # as MuJoCo compiles it, met where it is described
    q = robot.project(robot.integrate(q, 0.05 * rng.normal(size=robot.nv)))
    qd = robot.project_velocity(q, rng.normal(size=robot.nv))
    tau = rng.normal(size=robot.nv)

    def at(qpos: np.ndarray, qvel: np.ndarray) -> np.ndarray:
        data.qpos, data.qvel = qpos, qvel
        mujoco.mj_forward(model, data)
        return turned_rows(data, model.nv)

    qpos, qvel, force = (
        ls.conventions.to_mujoco(robot, model, q=q),
        ls.conventions.to_mujoco(robot, model, q=q, v=qd)[1],
        ls.conventions.to_mujoco(robot, model, q=q, tau=tau)[1],
    )
    J = at(qpos, qvel)
    assert np.abs(data.efc_pos).max() < 1e-9  # its error of the pose that ours projects to
    assert np.abs(J @ qvel).max() < 1e-9  # and of the rates
    M, h = np.zeros((model.nv, model.nv)), np.array(data.qfrc_bias)
    mujoco.mj_fullM(model, M, data.qM) if mujoco.__version__ < "4" else mujoco.mj_fullM(model, data, M)
    step, moved = 1e-6, qpos.copy()
    mujoco.mj_integratePos(model, moved, qvel, step)
    ahead = at(moved, qvel) @ qvel
    moved = qpos.copy()
    mujoco.mj_integratePos(model, moved, qvel, -step)
    drift = (ahead - at(moved, qvel) @ qvel) / (2.0 * step)
    dense = np.block([[M, J.T], [J, np.zeros((len(J), len(J)))]])
    wanted = np.linalg.lstsq(dense, np.concatenate([force - h, -drift]), rcond=1e-12)[0][: model.nv]
    found = robot.forward_dynamics(q, qd, tau)
    theirs = ls.conventions.to_mujoco(robot, model, q=q, v=qd, a=found)[2]
    assert np.abs(theirs - wanted).max() < 1e-6 * np.abs(wanted).max()


def test_joint_equalities_are_followed_on_request(tmp_path: Path):
    path = written(tmp_path, '<joint name="gear" joint1="elbow" joint2="shoulder" polycoef="0.1 -2 0 0 0"/>')
    with pytest.warns(ModelWarning, match="the equality constraints 'gear'"):
        assert ls.load(path).nv == 9
    robot = ls.load(path, mimic="couple")
    model = mujoco.MjModel.from_xml_path(str(path))
    data = mujoco.MjData(model)
    assert robot.nv == 8 and "elbow" not in robot.joint_names
    q = robot.neutral()
    q[0] = 0.7
    data.qpos = ls.conventions.to_mujoco(robot.uncoupled, model, q=robot.expand(q))
    mujoco.mj_forward(model, data)
    assert np.abs(data.efc_pos).max() < 1e-12


@pytest.mark.parametrize(
    ("equality", "name"),
    [
        ('<joint name="bent" joint1="elbow" joint2="shoulder" polycoef="0 1 0.5 0 0"/>', "bent"),
        ('<joint name="still" joint1="elbow"/>', "still"),
        ('<connect name="same" body1="fore" body2="hand" anchor="0 0 0"/>', "same"),
    ],
)
def test_what_is_no_constraint_is_said(equality: str, name: str, tmp_path: Path):
    with pytest.warns(ModelWarning, match=f"the equality constraints '{name}'"):
        robot = ls.load(written(tmp_path, equality), mimic="couple")
    assert robot.constraints == () and robot.couplings == ()


def test_what_is_not_active_is_not_there(tmp_path: Path):
    assert ls.load(written(tmp_path, '<weld body1="box" active="false"/>')).constraints == ()
