"""Every option, flag and field of MuJoCo's model that changes dynamics: applied as MuJoCo does, or named in a warning.

docs/mjcf.md has the table, and MuJoCo itself says what is in it.
"""

from __future__ import annotations

import fnmatch
import importlib
import re
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import linksweep as ls
from linksweep.errors import ModelWarning
from linksweep.model.formats.mjcf import model_from_mujoco
from linksweep.model.formats.mjcf_compiled import LEFT_OUT
from linksweep.robot import conventions

mujoco: Any = importlib.import_module("mujoco")
mujoco.set_mju_user_warning(lambda message: None)
PAGE = (Path(__file__).parents[2] / "docs" / "mjcf.md").read_text(encoding="utf-8")
TESTED = (4, 0)  # the version of MuJoCo that the page speaks of
SAYING = "left out are"

ROWS = [line for line in map(str.strip, PAGE.splitlines()) if line.startswith("| `") or line.startswith("| a")]
NAMED = {name for row in ROWS for name in re.findall(r"`([^`]+)`", row.split(" | ")[0])}
CLOSE = (
    "actuator_",
    "body_",
    "dof_",
    "jnt_",
    "tendon_",
    "eq_",
    "opt.",
    "<flag",
)  # each by its own name, not by a pattern


def fields() -> list[str]:
    model = mujoco.MjModel.from_xml_string("<mujoco/>")
    public = [name for name in dir(model) if not name.startswith("_")]
    views = {name for name in public if callable(getattr(model, name))} | {"opt"}
    flags = [
        f"<flag {name.split('_')[1].lower()}>"
        for kind in (mujoco.mjtDisableBit, mujoco.mjtEnableBit)
        for name in kind.__members__
        if "_" in name
    ]
    options = [f"opt.{name}" for name in dir(model.opt) if not name.startswith("_")]
    return sorted({name for name in public if name not in views} | set(flags) | set(options))


def test_the_table_has_every_field_and_flag():
    patterns = {name for name in NAMED if "*" in name}
    missing = [
        name
        for name in fields()
        if name not in NAMED
        and (name.startswith(CLOSE) or not any(fnmatch.fnmatchcase(name, pattern) for pattern in patterns))
    ]
    version = tuple(int(word) for word in mujoco.__version__.split(".")[:2])
    if missing and version > TESTED:
        pytest.skip(f"MuJoCo {mujoco.__version__} has new fields, which docs/mjcf.md does not know: {missing}")
    assert not missing


def test_the_table_has_nothing_that_mujoco_has_not():
    known = fields()
    old = [name for name in NAMED if not fnmatch.filter(known, name) and name != "opt"]
    assert not old, "MuJoCo has no such field"


def test_the_table_has_the_words_of_every_warning():
    quoted = [words for row in ROWS for words in re.findall(r'"([^"]+)"', row)]
    assert sorted(quoted) == sorted(LEFT_OUT)


# ---- applied ----------------------------------------------------------------------------------------------------

ARM = """
<mujoco>
  <option gravity="1 2 -9"{option}>{flag}</option>
  <worldbody>
    <body name="a" pos="0 0 0.2">
      <joint name="j1" type="hinge" axis="0 1 0" damping="0.3" armature="0.02" frictionloss="0.1" limited="true"
        range="-100 100" actuatorfrcrange="-3 5" actuatorfrclimited="true" {joint}/>
      <geom size="0.1" pos="0.1 0 0.1" contype="0" conaffinity="0"/>
      <body name="b" pos="0.3 0 0" {body}>
        <joint name="j2" type="slide" axis="1 0 1" damping="0.2" armature="0.5"/>
        <geom type="box" size="0.1 0.2 0.1" contype="0" conaffinity="0"/>
        <site name="s"/>
        <body name="c" pos="0 0.2 0.1">
          <joint name="j3" type="ball" armature="0.01" damping="0.05"/>
          <geom type="capsule" size="0.1 0.2" pos="0.1 0.2 0.3" contype="0" conaffinity="0"/>
        </body>
      </body>
    </body>
    {world}
  </worldbody>
  {more}
</mujoco>
"""
MOTORS = """
<actuator>
  <motor name="m1" joint="j1" gear="10" armature="0.003" damping="0.002"/>
  <motor name="m2" joint="j1" gear="-3" armature="0.1"/>
  <motor name="m3" joint="j2" gear="5" damping="0.04"/>
  <motor name="m4" joint="j3" gear="0.5 2 3" armature="0.2"/>
</actuator>
"""


def arm(tmp_path: Path, **holes: str) -> Path:
    file = tmp_path / "arm.xml"
    file.write_text(ARM.format(**(dict.fromkeys(("option", "flag", "joint", "body", "world", "more"), "") | holes)))
    return file


def said(path: Path) -> tuple[ls.Robot, list[str]]:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", ModelWarning)
        robot = ls.load(path)
    return robot, [str(warning.message) for warning in caught]


def agrees(robot: ls.Robot, path: Path) -> None:
    """Accelerations of MuJoCo, all its features on, are ours with dissipation; friction's constraint is left to it."""
    model = mujoco.MjModel.from_xml_path(str(path))
    data, rng = mujoco.MjData(model), np.random.default_rng(0)
    friction = {link.joint.name: link.joint.friction for link in robot.model.links}
    names = [model.joint(int(j)).name for j in model.dof_jntid]
    for _ in range(3):
        q, v = robot.random(rng), rng.uniform(-1, 1, robot.nv)
        tau = rng.uniform(-1, 1, robot.nv)
        data.qpos, data.qvel = conventions.to_mujoco(robot, model, q=q, v=v)
        data.qfrc_applied = conventions.to_mujoco(robot, model, q=q, tau=tau)[1]
        mujoco.mj_forward(model, data)
        without = robot.model
        from dataclasses import replace

        links = tuple(replace(link, joint=replace(link.joint, friction=0.0)) for link in without.links)
        smooth = ls.Robot(replace(without, links=links))
        qdd = smooth.forward_dynamics(q, v, tau, dissipation=True)
        theirs = conventions.from_mujoco(robot, model, q=data.qpos, v=data.qvel, a=data.qacc_smooth)[2]
        np.testing.assert_allclose(qdd, theirs, rtol=1e-9, atol=1e-9 * np.abs(theirs).max())
    # a friction constraint stands for each freedom with friction, and nothing else constrains
    mujoco.mj_resetData(model, data)
    mujoco.mj_forward(model, data)
    rubbing = {names[data.efc_id[k]] for k in range(data.nefc) if data.efc_type[k] == 1}
    assert data.nefc == sum(data.efc_type == 1) and rubbing == {name for name in friction if friction[name]}


FLAGS = ("gravity", "damper", "frictionloss", "limit", "constraint", "spring", "contact", "actuation", "eulerdamp")


@pytest.mark.parametrize("flags", [(), *((flag,) for flag in FLAGS), ("spring", "damper"), FLAGS])
@pytest.mark.parametrize("motors", ["", MOTORS], ids=["bare", "motors"])
def test_flags_and_motors_are_followed(flags: tuple[str, ...], motors: str, tmp_path: Path):
    flag = "<flag " + " ".join(f'{name}="disable"' for name in flags) + "/>" if flags else ""
    path = arm(tmp_path, flag=flag, more=motors)
    robot, sayings = said(path)
    assert not sayings
    agrees(robot, path)
    assert robot.gravity == ((0.0, 0.0, 0.0) if "gravity" in flags else (1.0, 2.0, -9.0))
    first = robot.model.links[0].joint
    off = {"limit", "constraint"} & set(flags)
    assert np.isinf(first.limits.upper) if off else first.limits.upper == pytest.approx(np.deg2rad(100))
    assert first.limits.effort == 5.0
    assert first.armature == pytest.approx(0.02 + (0.003 * 100 + 0.1 * 9 if motors else 0.0))
    assert first.friction == (0.0 if {"frictionloss", "constraint"} & set(flags) else 0.1)
    damping = 0.3 + (0.002 * 100 if motors else 0.0)
    assert first.damping == pytest.approx(0.0 if "damper" in flags else damping)


# ---- left out ---------------------------------------------------------------------------------------------------

GHOST = 'contype="0" conaffinity="0"'  # touches nothing
TENDON = '<tendon><fixed name="t" {}><joint joint="j1" coef="1"/><joint joint="j2" coef="2"/></fixed></tendon>'
FLOOR = '<geom name="floor" type="plane" size="1 1 1"/><geom name="ball" size="0.1" pos="0 0 3"/>'
MOCAP = f'<body name="hand" mocap="true"><body name="x"><joint name="jx"/><geom size="1" {GHOST}/></body></body>'
FREE = f'<body name="f"><joint name="jf" type="free" armature="0.3"/><geom size="0.2" {GHOST}/></body>'
SERVO = '<actuator><position name="p" joint="j1" kp="3"/><motor name="m" joint="j2"/></actuator>'
GRID = "".join(f'<config key="{key}" value="7 7"/>' for key in ("size", "fov"))
PLUGIN = f'<plugin plugin="mujoco.sensor.touch_grid"><instance name="i">{GRID}</instance></plugin>'
WELD = '<equality><weld name="w" body1="a" body2="c" active="{}"/></equality>'
BENT = '<equality><joint name="w" joint1="j1" joint2="j2" polycoef="0 1 0.5 0 0"/></equality>'
# words of the warning: what brings it about, who is named, what turns it off
CASES: dict[str, tuple[dict[str, str], str, dict[str, str]]] = {
    "the springs of joints": ({"joint": 'stiffness="2"'}, "'j1'", {"flag": "<flag spring='disable'/>"}),
    "the nonlinear damping of joints": (
        {"more": '<actuator><motor name="m" joint="j1" damping="0.1 0.2"/></actuator>'}, "'j1'",
        {"flag": "<flag damper='disable'/>"},
    ),
    "the world's axes, along which armature and friction of free joints act,": ({"world": FREE}, "'jf'", {}),
    "the ranges of ball joints": (
        {"world": '<body><joint name="jb" type="ball" limited="true" range="0 1"/><geom size=".1" contype="0" '
         'conaffinity="0"/></body>'}, "'jb'", {"flag": "<flag limit='disable'/>"},
    ),
    "the gravity compensation of bodies": ({"body": 'gravcomp="1"'}, "'b'", {"flag": "<flag gravity='disable'/>"}),
    "a surrounding fluid": ({"option": ' density="1.2"'}, "", {"flag": "<flag spring='disable' damper='disable'/>"}),
    "the forces of tendons": ({"more": TENDON.format('stiffness="3"')}, "'t'", {"flag": "<flag spring='disable'/>"}),
    "the armature of tendons": ({"more": TENDON.format('armature="3"')}, "'t'", {}),
    "the equality constraints": ({"more": BENT}, "'w'", {"flag": "<flag equality='disable'/>"}),
    "the actuators with a force of their own": ({"more": SERVO}, "'p'", {"flag": "<flag actuation='disable'/>"}),
    "the contacts of geoms": ({"world": FLOOR}, r"\(2\)", {"flag": "<flag contact='disable'/>"}),
    "the sites that bodies share their names with": (
        {"world": '<site name="b" pos="0 0 1"/>'}, "'b'", {},
    ),
    "deformable bodies": (
        {"world": '<body name="sheet"><flexcomp name="cloth" type="grid" count="3 3 1" spacing=".1 .1 .1" dim="2" '
         f'radius=".01"><contact {GHOST}/></flexcomp></body>'}, "", {},
    ),
    "plugins": ({"more": f"<extension>{PLUGIN}</extension>"}, "", {}),
    "the motion of mocap bodies": ({"world": MOCAP}, "'hand'", {}),
}  # fmt: skip
NOT_FROM_A_FILE = "the armature, damping and friction of all but the first degree of freedom of joints"


def test_every_warning_has_a_case():
    assert {*CASES, NOT_FROM_A_FILE} == {*LEFT_OUT}


@pytest.mark.parametrize("words", CASES)
def test_what_is_left_out_is_named(words: str, tmp_path: Path):
    holes, who, off = CASES[words]
    sayings = [saying for saying in said(arm(tmp_path, **holes))[1] if SAYING in saying]
    if words == "plugins" and not sayings:
        pytest.skip("this MuJoCo has no such plugin")
    assert len(sayings) == 1 and re.search(f"{SAYING} .*{re.escape(words)} ?{who}", sayings[0]), sayings
    assert "'m'" not in sayings[0], "a motor has no force of its own"
    if off:
        path = arm(tmp_path, **(holes | off))
        robot, sayings = said(path)
        assert not sayings
        agrees(robot, path)


@pytest.mark.parametrize(
    ("holes", "option"),
    [
        ({"more": TENDON.format("")}, ""),  # it only transmits
        ({"more": WELD.format("false")}, ""),
        ({"more": SERVO.replace("<position", "<position group='2'")}, " actuatorgroupdisable='2'"),
        ({"body": 'gravcomp="1"'}, " gravity='0 0 0'"),
        ({"world": '<body name="fixed" gravcomp="1"><geom size="1" contype="0" conaffinity="0"/></body>'}, ""),
        ({"world": '<body name="m" mocap="true"><geom size="1" contype="0" conaffinity="0"/></body>'}, ""),
        ({"world": '<geom name="alone" size="1"/>'}, ""),
        ({}, " wind='3 0 0'"),
    ],
    ids=["tendon", "inactive", "group", "weightless", "fixed", "mocap", "alone", "wind"],
)
def test_what_does_nothing_is_not_named(holes: dict[str, str], option: str, tmp_path: Path):
    path = arm(tmp_path, **holes)
    path.write_text(path.read_text().replace('gravity="1 2 -9"', "" if "gravity" in option else 'gravity="1 2 -9"'))
    path.write_text(path.read_text().replace("<option ", f"<option {option} "))
    robot, sayings = said(path)
    assert not sayings
    agrees(robot, path)


def test_rotors_of_actuators_on_free_joints_are_named(tmp_path: Path):
    """As the same armature is where the joint has it."""
    world = f'<body name="f"><freejoint name="jf"/><geom size="0.2" {GHOST}/></body>'
    path = arm(tmp_path, world=world, more='<actuator><motor joint="jf" gear="1" armature=".5"/></actuator>')
    assert any("armature and friction of free joints act, 'jf'" in saying for saying in said(path)[1])


def test_a_site_in_the_place_of_its_namesake_is_its_frame(tmp_path: Path):
    path = arm(tmp_path, world=f'<body name="k"><joint name="js"/><geom size="0.2" {GHOST}/><site name="k"/></body>')
    robot, sayings = said(path)
    assert not sayings and robot.frame_names.count("k") == 1


def test_freedoms_that_differ_are_named(tmp_path: Path):
    model = mujoco.MjModel.from_xml_path(str(arm(tmp_path)))
    model.dof_armature[-1] = 7.0
    with pytest.warns(ModelWarning, match=re.escape(f"{NOT_FROM_A_FILE} 'j3'")):
        model_from_mujoco(model)


def test_a_model_compiled_by_the_user_is_that_of_the_file(tmp_path: Path):
    path = arm(tmp_path, more=MOTORS)
    mine = model_from_mujoco(mujoco.MjModel.from_xml_path(str(path)), name="arm")
    assert mine == ls.load(path).model
