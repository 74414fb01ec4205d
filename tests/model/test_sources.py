"""Robot models from text, open files, standard input, xacro and the package robot_descriptions."""

from __future__ import annotations

import io
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from error_checks import refused

import linksweep as ls
from linksweep.errors import ArgumentError, DescriptionError
from linksweep.loaders import load_robot_description
from linksweep.model.formats import xacro_files

URDF = """<?xml version="1.0" encoding="utf-8"?>
<robot name="arm">
  <link name="base"><inertial><mass value="9"/><inertia ixx="1" iyy="1" izz="1"/></inertial></link>
  <link name="upper"><inertial><mass value="2"/><inertia ixx="1" iyy="1" izz="1"/></inertial></link>
  <joint name="shoulder" type="continuous">
    <origin xyz="0 0 0.5"/><parent link="base"/><child link="upper"/><axis xyz="0 1 0"/>
  </joint>
</robot>
"""
MJCF = """<mujoco model="pendulum"><worldbody><body name="rod">
  <joint name="hinge" axis="0 1 0"/><inertial pos="0 0 -1" mass="2" diaginertia="1 1 1"/>
</body></worldbody></mujoco>"""
XACRO = """<robot name="arm" xmlns:xacro="http://www.ros.org/wiki/xacro">
  <xacro:arg name="prefix" default=""/>
  <xacro:arg name="mass" default="2"/>
  <xacro:property name="height" value="${1 / 2}"/>
  <xacro:macro name="limb" params="name mass">
    <link name="$(arg prefix)${name}">
      <inertial><mass value="${mass}"/><inertia ixx="1" iyy="1" izz="1"/></inertial>
    </link>
  </xacro:macro>
  <link name="base"><inertial><mass value="9"/><inertia ixx="1" iyy="1" izz="1"/></inertial></link>
  <xacro:limb name="upper" mass="$(arg mass)"/>
  <joint name="shoulder" type="continuous">
    <origin xyz="0 0 ${height}"/><parent link="base"/><child link="$(arg prefix)upper"/><axis xyz="0 1 0"/>
  </joint>
</robot>
"""
needs_xacro = pytest.mark.skipif(find_spec("xacro") is None, reason="the package xacro is not installed")
needs_mujoco = pytest.mark.skipif(find_spec("mujoco") is None, reason="the package mujoco is not installed")


def written(tmp_path: Path, name: str, text: str) -> Path:
    file = tmp_path / name
    file.write_text(text, encoding="utf-8")
    return file


@pytest.mark.quick
def test_urdf_text_is_the_file(tmp_path: Path):
    file = written(tmp_path, "arm.urdf", URDF)
    expected = ls.load(file)
    for source in (URDF, URDF.encode(), "\n  " + URDF, "\ufeff" + URDF, b"\xef\xbb\xbf" + URDF.encode()):
        assert ls.load(source) == expected
    for latin in (URDF.replace("utf-8", "iso-8859-1"), URDF.replace("utf-8", "utf-16")):
        assert ls.load(latin) == expected  # decoded already
    with open(file, encoding="utf-8") as text, open(file, "rb") as data:
        assert ls.load(text) == ls.load(data) == expected
    assert ls.load(io.StringIO(URDF)) == ls.load(io.BytesIO(URDF.encode())) == expected
    assert ls.load(URDF, base="floating").nv == 7


@needs_mujoco
def test_mjcf_text_is_the_file(tmp_path: Path):
    expected = ls.load(written(tmp_path, "pendulum.xml", MJCF))
    assert ls.load(MJCF) == ls.load(MJCF.encode()) == ls.load(io.StringIO(MJCF)) == expected
    include = MJCF.replace("<worldbody>", '<include file="other.xml"/><worldbody>')
    refused(DescriptionError, r"^robot model text, line 1: there is no file 'other.xml'", lambda: ls.load(include))


@pytest.mark.quick
@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("<robot><link", r"^robot model text, line 1, .*not valid XML"),
        (b"<gltf version='1.9'/>", r"^robot model text, line 1: .*root element is <gltf>"),
        (io.StringIO(""), "is empty"),
        (42, "the robot model is 42, expected a path, an open file, or text"),
        (b"arm.urdf", "the robot model is b'arm.urdf', expected a path"),
    ],
)
def test_text_that_is_no_robot(source: Any, message: str):
    refused(DescriptionError, message, lambda: ls.load(source))


@needs_xacro
def test_xacro_is_its_expanded_urdf(tmp_path: Path):
    file = written(tmp_path, "arm.urdf.xacro", XACRO)
    expected = ls.load(URDF)
    assert ls.load(file) == ls.load(XACRO) == ls.load(XACRO.encode()) == expected
    other = ls.load(file, xacro_args={"prefix": "left_", "mass": 3.5})
    assert other.link_names == ("left_upper",) and other.model.links[0].inertial.mass == 3.5


@needs_xacro
def test_xacro_includes_packages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    package = tmp_path / "share" / "arm_parts"
    package.mkdir(parents=True)
    written(package, "package.xml", "<package><name>arm_parts</name></package>")
    written(package, "arm.xacro", XACRO)
    text = '<robot name="arm" xmlns:xacro="x"><xacro:include filename="$(find arm_parts)/arm.xacro"/></robot>'
    file = written(tmp_path, "robot.xacro", text)
    expected = ls.load(URDF)
    assert ls.load(file, packages=tmp_path / "share") == ls.load(file, packages=[tmp_path / "share"]) == expected
    refused(DescriptionError, r"robot\.xacro: xacro cannot expand it \(.*arm_parts", lambda: ls.load(file))
    monkeypatch.setenv("AMENT_PREFIX_PATH", str(tmp_path))
    assert ls.load(file) == expected
    monkeypatch.delenv("AMENT_PREFIX_PATH")
    monkeypatch.setenv("ROS_PACKAGE_PATH", str(tmp_path / "share"))
    assert ls.load(file) == expected


@needs_xacro
def test_xacro_mistakes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    broken = written(tmp_path, "broken.xacro", XACRO.replace("${height}", "${hight}"))
    refused(DescriptionError, r"broken\.xacro: xacro cannot expand it \(.*hight", lambda: ls.load(broken))
    file = written(tmp_path, "arm.xacro", XACRO)
    refused(ArgumentError, "xacro_args is 'left', expected a mapping", lambda: ls.load(file, xacro_args="left"))  # type: ignore[arg-type]
    refused(
        ArgumentError, "packages is .*expected existing folders", lambda: ls.load(file, packages=tmp_path / "nowhere")
    )
    endless = written(tmp_path, "endless.xacro", XACRO.replace("1 / 2", "9 ** 9 ** 9"))
    monkeypatch.setattr(xacro_files, "SECONDS", 3.0)
    refused(DescriptionError, r"endless\.xacro: (xacro cannot|.*took more than)", lambda: ls.load(endless))


def test_xacro_without_its_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(xacro_files, "find_spec", lambda name: None)
    file = written(tmp_path, "arm.xacro", XACRO)
    refused(DescriptionError, r"arm\.xacro: this is xacro, .*pip install 'linksweep\[ros\]'", lambda: ls.load(file))


def test_standard_input():
    command = [sys.executable, "-m", "linksweep", "info", "-", "--json"]
    run = subprocess.run(command, input=URDF.encode(), capture_output=True, check=True)
    assert b'"shoulder"' in run.stdout


@needs_xacro
def test_xacro_on_the_command_line(tmp_path: Path):
    file = written(tmp_path, "arm.xacro", XACRO)
    command = [sys.executable, "-m", "linksweep", "info", str(file), "--json", "--xacro"]
    run = subprocess.run([*command, "prefix:=left_"], capture_output=True, check=True)
    assert b'"left_upper"' in run.stdout
    run = subprocess.run([*command, "prefix"], capture_output=True)
    assert run.returncode == 2 and b"--xacro is 'prefix', expected NAME:=VALUE" in run.stderr


def test_names_of_robot_descriptions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    module = ModuleType("robot_descriptions.arm_description")
    module.URDF_PATH = str(written(tmp_path, "arm.urdf", URDF))  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, module.__name__, module)
    expected = ls.load(URDF)
    assert ls.load("arm_description") == load_robot_description("arm_description") == expected
    floating = load_robot_description("arm_description", base="floating")
    assert floating == ls.load("arm_description", base="floating") and floating.nv == 7
    assert np.isfinite(floating.mass_matrix(floating.neutral())).all()


def test_names_that_robot_descriptions_does_not_have():
    expected = "not installed: pip install" if find_spec("robot_descriptions") is None else "has no model"
    refused(DescriptionError, expected, lambda: ls.load("rowboat_description"))
    refused(ArgumentError, "expected a name such as", lambda: load_robot_description("os.path"))


def test_sdf_is_converted_where_its_program_is_installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    file = written(tmp_path, "robot.sdf", "<sdf version='1.9'><model name='m'/></sdf>")
    monkeypatch.setenv("PATH", str(tmp_path))
    refused(DescriptionError, r"robot\.sdf: this is SDF.*sdformat-mjcf", lambda: ls.load(file))
    if find_spec("mujoco") is None:
        return
    target = written(tmp_path, "target.xml", MJCF)
    program = written(
        tmp_path, "sdf2mjcf", f"#!{sys.executable}\nimport shutil, sys\nshutil.copy({str(target)!r}, sys.argv[2])\n"
    )
    program.chmod(0o755)
    assert ls.load(file) == ls.load(MJCF)
    program.write_text("#!/bin/sh\necho broken >&2; exit 1\n")
    refused(DescriptionError, "sdf2mjcf cannot convert it", lambda: ls.load(file))


def test_uris(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    package = tmp_path / "workspace" / "src" / "arm description"
    (package / "urdf").mkdir(parents=True)
    written(package, "package.xml", "<package><name>arm_description_files</name></package>")
    file = written(package / "urdf", "arm.urdf", URDF)
    expected, uri = ls.load(URDF), "package://arm_description_files/urdf/arm.urdf"
    assert ls.load(uri, packages=tmp_path / "workspace") == ls.load(file.as_uri()) == expected
    refused(DescriptionError, "no such ROS package", lambda: ls.load(uri))
    monkeypatch.setenv("ROS_PACKAGE_PATH", str(tmp_path))
    assert ls.load(uri) == expected and ls.load(uri).model.source == str(file)
    refused(DescriptionError, "no such file", lambda: ls.load(uri.replace("arm.urdf", "leg.urdf")))
