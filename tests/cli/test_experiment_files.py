"""`linksweep simulate experiment.toml` and `linksweep export experiment.toml --law`."""

from __future__ import annotations

import json
import random
import warnings
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from command_line import ARM
from robots_for_tests import URDF
from scale import at_scale

import linksweep as ls
from linksweep.cli import experiment
from linksweep.cli.experiment import KEYS, is_experiment, read_experiment
from linksweep.errors import ArgumentError, LinksweepError
from linksweep.simulation import PD, Push, Sampling, saturated

PAGE = Path(__file__).parents[2] / "docs" / "control.md"
HEAD = 'robot = "puma560"\nduration = 0.1\nq0 = [0.1, -0.6, 0.7, 0.3, -0.4, 0.2]\n'

IN_SPACE = '[[controller]]\nkind = "operational_space"\nframe = "link6"\nstiffness = 50\ndamping = 5\n'
ADMITTANCE = IN_SPACE.replace("operational_space", "admittance") + "mass = 1\n"


def written(folder: Path, text: str) -> Path:
    path = folder / "experiment.toml"
    path.write_text(text)
    return path


def example() -> str:
    return PAGE.read_text("utf-8").split("```toml\n")[1].split("```")[0]


@pytest.mark.slow
def test_the_page_s_experiment_is_what_it_says(tmp_path: Path):
    path = written(tmp_path, example())
    assert is_experiment(str(path))
    run = read_experiment(path).run()
    robot = ls.robots.puma560()
    plant = robot.with_payload(robot.frame_names[-1], 2.0, (0, 0, 0.1))
    home = [0.1, -0.6, 0.7, 0.3, -0.4, 0.2]
    wanted = ls.simulate(
        plant,
        home,
        None,
        ls.simulation.SampledController(
            saturated(PD(home, 400.0, 40.0, controller_robot=robot), [200, 200, 150, 50, 50, 50]),
            0.004,
            Sampling(delay=0.001, encoder=0.0015),
        ),
        1.0,
        dissipation=True,
        disturbance=Push("link6", [0, 0, 0, 10, 0, 0], 0.5, 0.6),
    )
    assert np.array_equal(run.q, wanted.q) and run.robot == plant and np.abs(run.q[-1] - home).max() > 1e-3


@pytest.mark.slow
def test_the_commands(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    from typer.testing import CliRunner

    from linksweep.cli import app

    monkeypatch.chdir(tmp_path)
    joints = "\n".join(f"{name} = [0, 0.1]" for name in ls.robots.puma560().joint_names)
    (tmp_path / "move.toml").write_text(f'motion = "quintic"\ntimes = [0, 0.1]\n[joints]\n{joints}\n')
    laws = '[[controller]]\nkind = "computed_torque"\nkp = 100\nkd = 20\n'
    laws += '[[controller]]\nkind = "friction"\nfriction = 0.0\ndamping = 0.0\n'
    written(tmp_path, 'robot = "puma560"\nmotion = "move.toml"\n' + laws)
    call = CliRunner().invoke
    done = call(app, ["simulate", "experiment.toml", "--json", "-o", "run.csv"])
    assert done.exit_code == 0, done.output
    facts = json.loads(done.output)
    assert max(facts["tracking_error"]["largest"]) < 1e-6 and Path("run.csv").exists()
    done = call(app, ["simulate", "experiment.toml"])
    assert done.exit_code == 0 and "tracking error: rms" in done.output
    done = call(app, ["export", "experiment.toml", "--law", "-o", "law.c"])
    assert done.exit_code == 0 and "qdd_ref" in Path("law.h").read_text(), done.output
    for words, sentence in (
        (["simulate", "experiment.toml", "--duration", "3"], "got --duration beside it"),
        (["simulate", "experiment.toml", "--kp", "7", "--kd", "20", "-o", "a.csv"], "got --kp, --kd beside it"),
        (["simulate", "experiment.toml", "--integrator", "rk4"], "got --integrator beside it"),
        (["simulate", "experiment.toml", "--base", "fixed", "--payload", "1"], "got --base, --payload beside it"),
        (
            ["export", "experiment.toml", "-o", "a.c", "--payload", "1", "--language", "c"],
            "--language, --payload cannot",
        ),
        (["export", "experiment.toml", "--law", "-o", "a.c", "--f-ext", "--parameter", "gravity"], "--f-ext, --param"),
        (["export", "puma560", "--law", "-o", "law.c"], "expected only an experiment"),
        (["export", "puma560", "-o", "law.c"], "FUNCTION is missing"),
    ):
        done = call(app, words)
        assert isinstance(done.exception, ArgumentError) and sentence in str(done.exception), done.output


def test_gravity_is_the_world_s(tmp_path: Path):
    """Also for what the controller knows: without weight, what holds against gravity does nothing."""
    text = 'robot = "puma560"\nduration = 0.05\ngravity = [0, 0, 0]\n[[controller]]\nkind = "gravity"\n'
    for controller in ("", "[controller_robot]\n", '[controller_robot]\nrobot = "puma560"\n'):
        run = read_experiment(written(tmp_path, text + controller)).run()
        assert not run.q[-1].any() and not run.tau.any()


def test_a_payload_says_which_frames_may_hold_it(tmp_path: Path):
    (tmp_path / "arm.urdf").write_text(URDF)
    path = written(tmp_path, 'robot = "arm.urdf"\npayload = { mass = 2.0 }\n')
    wanted = (
        'payload names no frame and .* 2 that may be its tool, camera, side: write frame = "camera" or frame = "side"'
    )
    with pytest.raises(ArgumentError, match=wanted):
        read_experiment(path)
    path.write_text('robot = "arm.urdf"\npayload = { mass = 2.0, frame = "side" }\n')
    assert read_experiment(path).robot == ls.load(tmp_path / "arm.urdf").with_payload("side", 2.0)


@pytest.mark.slow
def test_the_pages_ensemble(tmp_path: Path):
    """The experiment of docs/control.md with the table of docs/scale.md: gains of a law that is saturated."""
    pytest.importorskip("pyarrow")
    vary = PAGE.with_name("scale.md").read_text("utf-8").split("```toml\n")[1].split("```")[0]
    rollouts = read_experiment(
        written(tmp_path, example().replace("duration = 1.0", "duration = 0.02") + vary)
    ).rollouts()
    table = ls.ensemble(rollouts, 6, tmp_path / "out").table()
    assert len(np.unique(table["kp.0"])) == 6 and len(np.unique(table["q.0"])) == 6


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ('dt = 3.0\n[[controller]]\nkind = "gravity"', "expected a whole number of steps"),
        ("[vary]\nkp = { normal = 0.1 }", "kp is a gain"),
        ('[vary]\npayloads = ["a"]', "expected masses"),
        ("[vary]\npayloads = [[1, 2], [3]]", "expected masses"),
        ("[vary]\nq0 = { normal = [1, 2] }", "one, or 6"),
        ("[sampling]\nperiod = 1e308", "control_period 1e.308 takes inf steps"),
        ("[sampling]\nperiod = 0.001\ndelay = 1e308", "delay 1e.308 takes inf steps"),
        ("[sampling]\nperiod = 0.001\nencoder = [[1]]", r"encoder has shape \(1, 1\)"),
        ("[sampling]\nperiod = 0.001\nq_noise = [1, 2]", r"q_noise has shape \(2,\), expected one number or \(6,\)"),
        ("[sampling]\nperiod = 0.001\ntau_noise = [[1]]", r"tau_noise has shape \(1, 1\)"),
        ('[sampling]\nperiod = 0.001\neffort = "true"', "effort is 'true'"),
        ("[sampling]\nperiod = 0.001\neffort = 1979-05-27", "effort is datetime.date"),
        ("[sampling]\nperiod = 0.001\neffort = [[1], [1, 2]]", "effort is "),
        (f"every = 1{'0' * 400}", "every"),
    ],
)
def test_what_fails_later_names_the_file(tmp_path: Path, text: str, sentence: str):
    path = written(tmp_path, HEAD + text)
    experiment = read_experiment(path)
    with pytest.raises(ArgumentError, match=sentence) as said:
        (experiment.rollouts if experiment.vary else experiment.run)()
    assert str(said.value).startswith(f"{path}: ") and "\n" not in str(said.value)


def test_a_robot_in_toml_is_no_experiment(tmp_path: Path):
    table = tmp_path / "arm.toml"
    table.write_text('name = "arm"\nformat = "dh"\nconvention = "modified"\n[[links]]\na = 1\nmass = 1\n')
    assert not is_experiment(str(table)) and not is_experiment("puma560") and not is_experiment(None)
    assert not is_experiment(str(tmp_path / "missing.toml"))


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("robot = 3", "robot is 3, expected a bundled name"),
        ('robot = "puma561"', "puma561"),
        (HEAD + "speed = 3", "the key 'speed' is not known"),
        (HEAD + "controller = 3", r"controller is 3, expected tables: write each as \[\[controller\]\]"),
        (HEAD + '[[controller]]\nkind = "pid"', "a controller has kind 'pid'"),
        (HEAD + "[[controller]]\nkind = []", r"a controller has kind \[\]"),
        (HEAD + "[[controller]]\nkind = {}", r"a controller has kind \{\}"),
        (HEAD + 'motion = "\\u0000"', "motion is"),
        (HEAD + f"[sampling]\nperiod = 0.1\ndelay = 1{'0' * 400}", "Sampling: delay is"),
        (HEAD + f"[[push]]\nframe = 'link6'\nwrench = [0, 0, 0, 1, 0, 0]\nend = 1{'0' * 400}", "Push: end is"),
        (HEAD + '[[controller]]\nkind = "pd"\nkp = 3', "the controller pd has no kd"),
        (HEAD + '[[controller]]\nkind = "pd"\nkp = 3\nkd = 2\nki = 1', "the key 'ki' of .controller. is not known"),
        (HEAD + '[[controller]]\nkind = "feed_forward"', "feed_forward needs a motion"),
        (HEAD + '[[controller]]\nkind = "operational_space"\nframe = "link6"', "operational_space has no stiffness"),
        (HEAD + "[sampling]\ndelay = 0.1", "has no period"),
        (HEAD + "[sampling]\nperiod = 0.1\nspeed = 1", "the key 'speed' of .sampling. is not known"),
        (HEAD + "[[push]]\nframe = 'link6'", "has no wrench"),
        (HEAD + 'motion = "missing.toml"', "missing.toml"),
        ('robot = "puma560"\nq0 = [[0, 0, 0, 0, 0, 0], [1, 0, 0, 0, 0, 0]]', r"q0 has shape \(2, 6\), expected \(6,\)"),
        (HEAD + "qd0 = [[0, 0, 0, 0, 0, 0]]", r"qd0 has shape \(1, 6\), expected \(6,\)"),
        (HEAD + "controller = [5]", r"controller is \[5\], expected tables"),
        (HEAD + "push = [5]", r"push is \[5\], expected tables"),
        (HEAD + IN_SPACE + 'target = "x"', "target is 'x', expected an array of real numbers"),
        (HEAD + IN_SPACE + "target = [[1, 2], [3]]", "target is .*, expected an array of real numbers"),
        (HEAD + IN_SPACE + "decoupled = 1", "has decoupled 1, expected true or false"),
        (HEAD + ADMITTANCE + '[[push]]\nframe = "link6"', "push.* has no wrench"),
        (HEAD + ADMITTANCE + '[[push]]\nframe = "link6"\nwrench = [0, 0, 0, 1, 0, 0]\nx = 1', "the key 'x' of .push."),
        (
            HEAD + '[[controller]]\nkind = "pd"\nkp = 3\nkd = 2\ngravity = "false"',
            "has gravity 'false', expected true or",
        ),
        (HEAD + "[", "is not valid TOML"),
    ],
)
def test_mistakes_are_one_sentence_with_the_file_s_name(tmp_path: Path, text: str, sentence: str):
    path = written(tmp_path, text)
    with pytest.raises(ArgumentError, match=sentence) as said:
        read_experiment(path)
    assert str(path.parent) in str(said.value) and "\n" not in str(said.value)


@pytest.mark.parametrize("law", [
    'kind = "gravity"', 'kind = "constant"\ntau = [1, 2, 3, 4, 5, 6]',
    'kind = "operational_space"\nframe = "link6"\nstiffness = 50\ndamping = 5\ntarget = [0.4, 0.1, 0.3]',
    'kind = "computed_torque"\nkp = 10\nkd = 5\nreference = [0, 0, 0, 0, 0, 0]',
])  # fmt: skip
def test_every_kind_of_law_runs(tmp_path: Path, law: str):
    run = read_experiment(written(tmp_path, HEAD + "[[controller]]\n" + law)).run()
    assert run.finite and run.q.shape == (101, 6)


# ---- values that do not belong there: an error of ours or a run, and never anything else ---------------------------

VALUES = (
    "[]", "{}", '""', '"true"', "1e308", "-1", "0", "nan", "inf", "-inf", "true", "false", "[[1]]", '[1, "a"]',
    "[1, [2]]", "1979-05-27", "07:32:00", f"1{'0' * 400}", '"x"', "[nan, 0]", "[true, false]", "{ a = 1 }",
    "[{ a = 1 }]", "1e-308", "[1e308, 1e308]", '"\\u0000"', "9223372036854775808", "[[0, 0], [0, 0]]", "-0.0", "0.5",
    "3", "[1, 2, 3]", '"tool"', '"puma560"', "[1e-300, 1]", "[[1, 2], [3]]", f'"{"a" * 300}"', "1e15", "[0.1, 0.1]",
    "[0, 0, 0, 1, 0, 0]",
)  # fmt: skip
TABLES = {
    "[sampling]": ({"period": "0.002"}, experiment.SAMPLING),
    "[[push]]": ({"frame": '"tool"', "wrench": "[0, 0, 0, 1, 0, 0]"}, ("frame", "wrench", "start", "end")),
    "[[surface]]": (
        {"frame": '"tool"', "point": "[0, 0, -3]"},
        ("frame", "point", "normal", "stiffness", "damping", "friction", "width"),
    ),
    "[vary]": ({"q0": "{ normal = 0.1 }"}, experiment.VARY),
    "[payload]": ({"mass": "1.0"}, experiment.PAYLOAD),
    "[controller_robot]": ({}, ("robot", "payload")),
}
GAINS = {
    "pd": {"kp": "10", "kd": "1"}, "computed_torque": {"kp": "10", "kd": "1"}, "friction": {"friction": "0.1"},
    "constant": {"tau": "[0, 0]"}, "gravity": {}, "feed_forward": {},
    "operational_space": {"frame": '"tool"', "stiffness": "5", "damping": "1"},
    "admittance": {"frame": '"tool"', "stiffness": "5", "damping": "1", "mass": "1"},
}  # fmt: skip
OF_FRAME = ("target", "posture", "kp_posture", "kd_posture", "gravity")
KEYS_OF = {
    "pd": ("reference", "gravity"), "computed_torque": ("reference",), "friction": ("damping", "width"),
    "constant": (), "gravity": (), "feed_forward": (), "operational_space": (*OF_FRAME, "decoupled"),
    "admittance": OF_FRAME,
}  # fmt: skip


def odd_experiment(chance: random.Random) -> str:
    """A file that would run, but for one or two of its values."""
    tables: dict[str, tuple[dict[str, str], Sequence[str]]] = {
        "": ({"robot": '"arm.urdf"', "duration": "0.004", "dt": "0.002"}, KEYS)
    }
    tables |= {name: (dict(own), keys) for name, (own, keys) in TABLES.items() if chance.random() < 0.3}
    if chance.random() < 0.5:
        kind = chance.choice(list(GAINS))
        tables["[[controller]]"] = ({"kind": f'"{kind}"', **GAINS[kind]}, ("kind", *GAINS[kind], *KEYS_OF[kind]))
    for _ in range(chance.choice((1, 1, 1, 2))):
        own, keys = chance.choice(list(tables.values()))
        own[chance.choice(keys)] = chance.choice(VALUES)
    lines = []
    for name, (own, _) in tables.items():
        taken = {other.strip("[]") for other in tables}
        lines += [name, *(f"{key} = {value}" for key, value in own.items() if name or key not in taken)]
    return "\n".join(lines) + "\n"


def ran_or_refused(folder: Path, count: int, seed: int) -> None:
    chance, ran = random.Random(seed), 0
    (folder / "arm.urdf").write_text(ARM)
    for _ in range(count):
        text = odd_experiment(chance)
        path = written(folder, text)
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                found = read_experiment(path)
                if found.vary and chance.random() < 0.7:
                    found.rollouts()(np.random.default_rng(0), 0, 3)
                else:
                    found.run()
            ran += 1
        except LinksweepError as error:
            assert "\n" not in str(error), text
        except Exception as error:
            raise AssertionError(text) from error
    assert ran


def test_odd_experiments(tmp_path: Path):
    ran_or_refused(tmp_path, 60, 0)


@pytest.mark.slow
def test_many_odd_experiments(tmp_path: Path):
    ran_or_refused(tmp_path, at_scale(500, 2000), 1)


def test_former_names_of_tables(tmp_path: Path):
    gains = 'kind = "pd"\nkp = 3\nkd = 2\n'
    with pytest.warns(DeprecationWarning, match="controller_robot"):
        former = read_experiment(
            written(tmp_path, HEAD + "[[law]]\n" + gains + "[controller]\npayload = { mass = 1 }\n")
        )
    names = "[controller_robot]\npayload = { mass = 1 }\n"
    current = read_experiment(written(tmp_path, HEAD + "[[controller]]\n" + gains + names))
    assert np.array_equal(former.run().q, current.run().q)
