"""Random command lines, most of them wrong: each ends with a documented exit code and one sentence, never a traceback.

Every call begins as one that works and is short; one to three of its words are then changed. A call that still runs
after SECONDS of processor time is interrupted as by Ctrl-C. A failure shows the words of the call.
"""

from __future__ import annotations

import contextlib
import json
import random
import re
import shlex
import traceback
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
import typer
from abuse_helpers import interrupted
from command_line import ARM
from scale import at_scale

from linksweep.cli import BAD_INPUT, INTERRUPTED, app
from linksweep.cli.common import DISAGREEMENT

SECONDS = 2.0
RUNNING = {
    "info": ("info arm.urdf", "info puma560 --json", "info stanford --payload 1,0,0,0.1@link6 --gravity 0,0,-1"),
    "check": ("check arm.urdf --samples 1", "check RR --exact --trials 1"),
    "count": (
        "count arm.urdf --function gravity_forces", "count --general --joints RR --function mass_matrix",
        "count arm.urdf --function jacobian --frame tool --method all --json",
    ),
    "demo": ("demo -o notes.txt",),
    "export": (
        "export arm.urdf gravity_forces -o out.c", "export arm.urdf jacobian --frame tool -o out.c --dtype float",
        "export arm.urdf inverse_dynamics -o out.c --name f --f-ext --parameter payload",
        "export arm.urdf gravity_forces -o out.c --language casadi", "export experiment.toml --law -o law.c",
    ),
    "inverse": (
        "inverse arm.urdf -t motion.csv", "inverse arm.urdf -t motion.csv -o out.csv --with-inputs --json",
        "inverse arm.urdf -t move.toml -o out.npz", "inverse arm.urdf -t motion.csv --spline -o out.parquet",
    ),
    "forward": ("forward arm.urdf -t motion.csv", "forward arm.urdf -t motion.csv -o out.csv --method composite"),
    "simulate": (
        "simulate arm.urdf --duration 0.01 --dt 0.001", "simulate experiment.toml --json",
        "simulate arm.urdf --duration 0.01 --q0 0.1,0.2 --torque pd --kp 3 --kd 1 -o out.csv",
        "simulate arm.urdf --duration 0.01 --motion move.toml", "simulate arm.urdf --torque motion.csv --every 10",
        "simulate arm.urdf --duration 0.01 --integrator adaptive --qd0 j2=1 --dissipation",
    ),
    "ensemble": ("ensemble experiment.toml -o out --samples 3 --chunk 2 --seed 1",),
    "view": ("view arm.urdf", "view arm.urdf -t motion.csv --spline", "view arm.urdf --move", "view arm.urdf --plain"),
    "explain": (
        "explain arm.urdf", "explain arm.urdf forward_dynamics --q 0,1 --qd 0,0 --tau 1,1 --link a",
        "explain arm.urdf gravity_forces --symbols -o page.html",
    ),
    "identify": ("identify arm.urdf motion.csv -o fit --cutoff 5", "identify arm.urdf motion.csv --unknown inertia"),
    "excite": ("excite arm.urdf --duration 2 --harmonics 1 --no-floor --no-keep-out -o out.csv --rate 10",),
    "study": ("study", "study --json", "study planr -o notes.txt"),
    "bench": ("bench arm.urdf --function mass_matrix --batch 2",),
}  # fmt: skip
WORDS = (
    "nan", "inf", "-inf", "-1", "0", "-0.0", "1e308", "1e-308", "1e400", "", " ", "3", "2.5", "1_000", "0x10", "1,2",
    "1,2,3", "nan,nan", "1,,2", "j1=1", "j1=nan", "j9=1", "=", "j1=", "@", "1@tool", "1,0,0,0@tool", "é", "٣", "\u200b",
    "🤖", "\udcff", "a" * 300, "a\nb", "../..", "/", ".", "/dev/null", "/nonexistent/out.csv", "notes.txt", "folder",
    "folder.csv", "folder.urdf", "arm.urdf", "missing.urdf", "empty.urdf", "empty.csv", "broken.toml", "binary.csv",
    "ragged.csv", "text.csv", "motion.csv", "move.toml", "experiment.toml", "puma560", "stanford", "puma", "tool", "j1",
    "out.c", "out.csv", "out.npz", "out.parquet", "out.png", "out", "--", "-", "-x", "--json", "--help", "true", "None",
    "[]", "%s", "{}", "*", "jacobian", "inverse_dynamics", "kane", "x=j1+j2", "tool=0,0,0:1,1,1", "0,0,0:nan,1,1",
    "floating", "couple", "all", "c", "double", "int", "if", "RRR", "payload", "link6", "adaptive", "q", "\x00",
)  # fmt: skip
HUGE = ("9" * 30, "-" + "9" * 30, "1000000000")
SLOW = ("check", "demo", "identify", "excite", "bench")  # take a second where nothing is wrong
LONG = {"--scheduler", "--workers"}  # wait for a cluster, or start processes


def options() -> dict[str, list[str]]:
    commands = typer.main.get_group(app).commands
    return {
        name: [
            word for parameter in command.params if parameter.param_type_name == "option"
            for word in (*parameter.opts, *parameter.secondary_opts) if word not in LONG
        ]
        for name, command in commands.items()
    }  # fmt: skip


OPTIONS = options()


def mistyped(chance: random.Random, word: str) -> str:
    place = chance.randrange(len(word) + 1)
    return chance.choice((
        word[:place] + word[place + 1 :], word[:place] + chance.choice("aé-=.0 ") + word[place:], word.upper(), word * 2
    ))  # fmt: skip


def odd_call(chance: random.Random, name: str) -> list[str]:
    words = shlex.split(chance.choice(RUNNING[name]))
    for _ in range(chance.choice((0, 1, 1, 1, 1, 2, 3))):
        kind, place = chance.randrange(8), chance.randrange(len(words))
        value = chance.choice(HUGE if chance.random() < 0.05 else WORDS)
        if kind < 3:
            words += [chance.choice(OPTIONS[name]), value]
        elif kind < 5:
            words[max(place, 1) % len(words)] = value
        elif kind == 5:
            words[place] = mistyped(chance, words[place])
        elif kind == 6:
            del words[place]
            words = words or [name]
        else:
            words.insert(place, chance.choice((value, words[-1], chance.choice(OPTIONS[chance.choice(list(OPTIONS))]))))
    return [word for word in words if word not in ("--install-completion", "--show-completion")]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Files that a call may meet; nothing opens a browser or a server, or measures times."""
    import linksweep.support.timing
    from linksweep.robot.robot import Robot

    for name in ("folder", "folder.urdf", "folder.csv"):
        (tmp_path / name).mkdir()
    for name in ("empty.urdf", "empty.csv"):
        (tmp_path / name).touch()
    (tmp_path / "arm.urdf").write_text(ARM)
    (tmp_path / "notes.txt").write_text("hello\n")
    (tmp_path / "broken.toml").write_text("a = [")
    (tmp_path / "binary.csv").write_bytes(bytes(range(256)))
    (tmp_path / "ragged.csv").write_text("t,q.j1,q.j2,qd.j1,qd.j2,qdd.j1,qdd.j2\n0,1\n1,2,3,4,5,6,7,8\n")
    (tmp_path / "text.csv").write_text("t,q.j1,q.j2,tau.j1,tau.j2\n0,a,b,nan,c\n,,,,\n")
    blocks = [f"{block}.{joint}" for block in ("q", "qd", "qdd", "tau") for joint in ("j1", "j2")]
    t = np.arange(400) * 0.01
    phase = [2.0 * t + 0.3, 3.0 * t]
    table = np.stack([
        t, *map(np.sin, phase), 2 * np.cos(phase[0]), 3 * np.cos(phase[1]), -4 * np.sin(phase[0]),
        -9 * np.sin(phase[1]), *map(np.cos, phase),
    ], axis=1)  # fmt: skip
    rows = [",".join(map(repr, row)) for row in table.tolist()]
    (tmp_path / "motion.csv").write_text("\n".join([",".join(["t", *blocks]), *rows]) + "\n")
    joints = "j1 = [0, 0.1]\nj2 = [0, 0.2]\n"
    (tmp_path / "move.toml").write_text(f'motion = "quintic"\ntimes = [0, 0.1]\n[joints]\n{joints}')
    (tmp_path / "experiment.toml").write_text(
        'robot = "arm.urdf"\nduration = 0.004\ndt = 0.002\n[[controller]]\nkind = "pd"\nkp = 10\nkd = 1\n'
        "[vary]\nq0 = { normal = 0.1 }\n"
    )

    class Shown:
        scene = type("Scene", (), {"server": None})
        record = screenshot = wait = play = lambda self, *_: None

    @contextlib.contextmanager
    def show(*_: object, **__: object) -> Iterator[Shown]:
        yield Shown()

    def once(calls: list[Callable[[], object]], *_: object, **__: object) -> list[float]:
        for call in calls:
            call()
        return [1.0] * len(calls)

    monkeypatch.setattr(Robot, "show", show)
    monkeypatch.setattr("linksweep.viewer.server.directions", str)
    monkeypatch.setattr(linksweep.support.timing, "best_seconds", once)
    return tmp_path


def fault(run: Callable[..., tuple[int, str, str]], words: list[str], codes: dict[int, int]) -> str:
    """What is wrong with the end of a call; its exit code is counted."""
    with warnings.catch_warnings(), interrupted(SECONDS):
        warnings.simplefilter("ignore")
        try:
            code, out, err = run(*words)
        except (Exception, pytest.fail.Exception) as error:
            return "".join(traceback.format_exception(error)[-4:])
    if code not in codes:
        return f"exit code {code}: {err}"
    codes[code] += 1
    if code == BAD_INPUT:
        *said, last = err.strip("\n").split("\n")
        if not last.startswith("linksweep: ") or len(last) < 30 or re.search(r"Traceback|Error\(|\(None\)\.", last):
            return err
        if not all(line.startswith("linksweep: warning: ") for line in said):
            return err
    elif code == 0 and out.startswith("{"):
        json.loads(out)
    return ""


def ran_or_refused(run: Callable[..., tuple[int, str, str]], folder: Path, count: int, seed: int) -> None:
    chance, codes, faults = random.Random(seed), {0: 0, DISAGREEMENT: 0, BAD_INPUT: 0, INTERRUPTED: 0}, []
    names = [name for name in RUNNING for _ in range(1 if name in SLOW else 8)]
    kept = {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}
    for _ in range(count):
        words = odd_call(chance, chance.choice(names))
        found = fault(run, words, codes)
        if found:
            faults.append(f"{words}\n{found}")
        for name, content in kept.items():
            if not (folder / name).is_file() or (folder / name).read_bytes() != content:  # a call may write to it
                (folder / name).write_bytes(content)
    assert not faults, f"{len(faults)} faults:\n" + "\n".join(faults)
    assert codes[0] > count / 20 and codes[BAD_INPUT] > count / 4 and codes[INTERRUPTED] <= 1 + count / 100, codes


def test_odd_calls(run, folder: Path):
    ran_or_refused(run, folder, 40, 0)


# Ctrl-C may come while Python collects garbage, where an exception is reported and nothing else.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.slow
def test_many_odd_calls(run, folder: Path):
    ran_or_refused(run, folder, at_scale(400, 2000), 1)
