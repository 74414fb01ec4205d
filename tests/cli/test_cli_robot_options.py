"""How a robot is loaded, wherever one is named: --base, --mimic, --payload, --gravity; and one spelling of --output."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from command_line import GRIPPER, table_of
from command_line import run_process as command
from robots_for_tests import URDF

import linksweep as ls
from linksweep.cli import COMMANDS, app

NAMED = (
    "info",
    "check",
    "count",
    "convert",
    "export",
    "inverse",
    "forward",
    "simulate",
    "view",
    "explain",
    "identify",
    "excite",
    "bench",
)


def commands() -> dict[str, set[str]]:
    """The options of every command."""
    import typer.main

    group = typer.main.get_command(app)
    return {name: {word for p in group.commands[name].params for word in p.opts} for name in COMMANDS}  # type: ignore


def test_wherever_a_robot_is_named():
    for name, options in commands().items():
        known = {"--base", "--mimic", "--payload", "--gravity"} & options
        assert known == ({"--base", "--mimic", "--payload", "--gravity"} if name in NAMED else set()), name


def test_output_has_one_spelling():
    for name, options in commands().items():
        assert ("--output" in options) == ("-o" in options) and "--out" not in options, name
    assert {name for name, options in commands().items() if "-o" in options} == {
        "convert", "demo", "ensemble", "excite", "explain", "export", "identify", "inverse", "forward", "simulate",
        "study",
    }  # fmt: skip


def test_the_former_spelling_is_understood_but_not_shown(run):
    assert run("demo", "--out", "a").code == 0 and Path("a/puma560.csv").exists()
    assert run("export", "puma560", "gravity_forces", "--out=g.c").code == 0 and Path("g.c").exists()
    assert run("inverse", "puma560", "-t", "a/puma560.csv", "--out", "tau.csv").code == 0 and Path("tau.csv").exists()
    shown = run("demo", "--help").out
    assert "--output" in shown and "--out " not in shown


@pytest.mark.slow
def test_payload_gravity_and_base_reach_the_numbers(run):
    assert run("demo", "-o", ".").code == 0
    names, table = table_of(Path("puma560.csv"))
    q, qd, qdd = (table[:, [names.index(f"{b}.joint{k}") for k in range(1, 7)]] for b in ("q", "qd", "qdd"))
    options = ("--payload", "2,0,0.1,0.2", "--gravity", "1,2,-9")
    assert run("inverse", "puma560", "-t", "puma560.csv", "-o", "tau.csv", *options).code == 0
    loaded = ls.load("puma560").with_gravity((1, 2, -9)).with_payload("tool", 2.0, (0, 0.1, 0.2))
    np.testing.assert_array_equal(table_of(Path("tau.csv"))[1][:, 1:], loaded.inverse_dynamics(q, qd, qdd))
    assert run("inverse", "puma560", "-t", "puma560.csv", "-o", "tau.csv", "--payload", "2@link3").code == 0
    loaded = ls.load("puma560").with_payload("link3", 2.0)
    np.testing.assert_array_equal(table_of(Path("tau.csv"))[1][:, 1:], loaded.inverse_dynamics(q, qd, qdd))
    facts = json.loads(run("info", "puma560", "--base", "floating", "--gravity", "0,0,0", "--json").out)
    assert (facts["nq"], facts["nv"], facts["gravity"]) == (13, 12, [0.0, 0.0, 0.0])
    assert facts["joints"][0]["name"] == "root_joint" and facts["joints"][0]["axis"] is None


@pytest.mark.slow
@pytest.mark.cases(1)
@pytest.mark.parametrize(
    "words",
    [
        "check puma560 --samples 2 --base floating",
        "count stanford --function gravity_forces --payload 1 --json",
        "export stanford gravity_forces -o g.c --gravity 0,0,-1.62",
        "simulate puma560 --duration 0.01 --base floating --gravity 0,0,0 --json",
        "bench stanford --function mass_matrix --batch 8 --payload 1 --json",
    ],
)
def test_the_other_commands_take_them(run, words: str):
    outcome = run(*words.split())
    assert outcome.code == 0, outcome.err


def test_gravity_is_in_the_c_file(run):
    for name, gravity in (("earth.c", "0,0,-9.81"), ("moon.c", "0,0,-1.62")):
        assert run("export", "puma560", "gravity_forces", "-o", name, f"--gravity={gravity}").code == 0
    assert run("export", "puma560", "gravity_forces", "-o", "plain.c").code == 0
    moon, earth, plain = (Path(name).read_text().replace(name[:-2], "x") for name in ("moon.c", "earth.c", "plain.c"))
    assert earth == plain != moon


def test_coupled_joints(run):
    Path("gripper.urdf").write_text(GRIPPER)
    facts = json.loads(run("info", "gripper.urdf", "--mimic", "couple", "--json").out)
    assert (facts["nv"], len(facts["joints"])) == (1, 2)
    assert facts["mimic"] == [{"joint": "follow", "leader": "open", "multiplier": -1.0, "offset": 0.1}]
    assert "follow follows open: -1 q + 0.1" in run("info", "gripper.urdf", "--mimic", "couple").out
    Path("m.csv").write_text("t,q.open,qd.open,qdd.open\n0,0.1,0.2,0.3\n1,1.5,0.5,0.6\n")
    outcome = run("inverse", "gripper.urdf", "-t", "m.csv", "-o", "tau.csv", "--mimic", "couple", "--with-inputs")
    assert outcome.code == 0, outcome.err
    assert "beyond limits: open: position 1.5 rad at 1 s" in outcome.out
    names, table = table_of(Path("tau.csv"))
    assert names == ["t", "q.open", "qd.open", "qdd.open", "tau.open"]
    coupled: Any = ls.load("gripper.urdf", mimic="couple")
    wanted = coupled.inverse_dynamics(*(table[:, k : k + 1] for k in (1, 2, 3)))
    np.testing.assert_array_equal(table[:, 4:], wanted)
    assert run("forward", "gripper.urdf", "-t", "tau.csv", "-o", "qdd.csv", "--mimic", "couple").code == 0
    np.testing.assert_allclose(table_of(Path("qdd.csv"))[1][:, 1:], table[:, 3:4], rtol=1e-12)
    for words in (("simulate", "--duration", "0.01"), ("check",), ("export", "inverse_dynamics", "-o", "a.c")):
        name, *more = words
        assert run(name, "gripper.urdf", *more, "--mimic", "couple").code == 0


def test_an_ambiguous_payload_says_which_frames_there_are(run):
    Path("arm.urdf").write_text(URDF)
    outcome = run("inverse", "arm.urdf", "-t", "m.csv", "--payload", "2")
    assert (
        outcome.code == 2
        and "2 that may be its tool, camera, side: write --payload 2@camera or --payload 2@side." in outcome.err
    )


def test_load_takes_bundled_names():
    assert ls.load("puma560") == ls.robots.puma560() and ls.load("stanford") == ls.robots.stanford()
    assert ls.load("puma560", base="floating") == ls.robots.puma560().with_base("floating")
    with pytest.raises(ls.DescriptionError, match="did you mean 'puma560'"):
        ls.load("Puma560")


def test_load_says_what_a_folder_is(tmp_path: Path):
    for folder in (tmp_path, str(tmp_path)):
        with pytest.raises(ls.DescriptionError, match="this is a directory, expected a file"):
            ls.load(folder)


# ---- info


LONG = URDF.replace('"slide"', '"the_slide_with_a_name_that_is_longer_than_a_column_of_an_80_column_table"').replace(
    '"hand"', '"the_hand_with_a_name_that_is_longer_than_a_column_of_an_80_column_table"'
)


def test_info_shows_every_name_whole_in_a_narrow_pipe(tmp_path: Path):
    (tmp_path / "long.urdf").write_text(LONG)
    result = command("info", str(tmp_path / "long.urdf"), COLUMNS="80")
    assert result.returncode == 0, result.stderr
    one = ls.load(tmp_path / "long.urdf")
    words = result.stdout.replace(",", " ").split()
    for name in (*one.joint_names, *one.link_names, *one.frame_names, *one.tips):
        assert name in words, name


@pytest.mark.slow
def test_simulate_shows_every_name_whole_in_a_narrow_pipe(tmp_path: Path):
    (tmp_path / "long.urdf").write_text(LONG)
    result = command("simulate", str(tmp_path / "long.urdf"), "--duration", "0.01", COLUMNS="80")
    assert result.returncode == 0, result.stderr
    assert f"qd.{ls.load(tmp_path / 'long.urdf').joint_names[0]} " in result.stdout and "…" not in result.stdout


def test_info_shows_limits_damping_friction_and_axis(run):
    Path("arm.urdf").write_text(URDF)
    lines = run("info", "arm.urdf").out.splitlines()
    assert lines[0] == "sample: 3 joints, 3 DOF, moving mass 5.3 kg"
    assert lines[2].split() == ["joint", "kind", "axis", "lower", "upper", "velocity", "effort"]
    assert lines[3].split() == ["slide", "prismatic", "0", "1", "0", "-1", "1", "2", "9"]
    assert lines[4].split() == ["turn", "revolute", "0", "0.6", "0.8", "–", "–", "–", "–"]
    assert lines[7].split() == ["joint", "parent", "link", "mass", "damping", "friction", "armature", "torque_offset"]
    assert lines[8].split() == ["slide", "arm", "hand", "1.5", "0.4", "0.2", "0", "0"]
    facts = json.loads(run("info", "arm.urdf", "--json").out)
    assert facts["joints"][0] == {
        "name": "slide", "kind": "prismatic", "axis": [0.0, 1.0, 0.0], "parent": "arm", "link": "hand", "mass": 1.5,
        "lower": -1.0, "upper": 1.0, "velocity": 2.0, "effort": 9.0, "damping": 0.4, "friction": 0.2, "armature": 0.0,
        "torque_offset": 0.0,
    }  # fmt: skip
    assert facts["tips"] == ["camera", "side"] and facts["tool"] is None and facts["tools"] == ["camera", "side"]


def test_help_still_imports_nothing_heavy():
    code = "import sys; import linksweep.cli; assert 'numpy' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_help_texts_have_no_holes(run):
    """rich takes words in brackets for markup."""
    assert "with [vary]." in " ".join(run("ensemble", "--help").out.split())
