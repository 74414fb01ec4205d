"""Ensembles that go on: what made a part is recognized, parts are verified, killed and damaged runs end right."""

# pyright: reportArgumentType=false
from __future__ import annotations

import dataclasses
import functools
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import textwrap
import threading
import time
import tracemalloc
import types
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from abuse_helpers import PATIENCE, run_python
from scale import at_scale

import linksweep as ls
from linksweep import ArgumentError
from linksweep.support.fingerprint import fingerprint

pytest.importorskip("pyarrow")


def drawn(rng: np.random.Generator, first: int, count: int, scale: float = 1.0) -> dict[str, Any]:
    return {"sample": first + np.arange(count), "x": scale * rng.normal(size=(count, 2)), "y": rng.uniform(size=count)}


def same(a: ls.simulation.Ensemble, b: ls.simulation.Ensemble) -> None:
    one, two = a.table(), b.table()
    assert list(one) == list(two)
    for name, values in one.items():
        np.testing.assert_array_equal(values, two[name])


# ---- what made it ---------------------------------------------------------------------------------------------------


@dataclasses.dataclass
class Scaled:
    """An experiment with a state."""

    scale: float
    matrix: np.ndarray | None = None

    def __call__(self, rng: np.random.Generator, first: int, count: int) -> dict[str, Any]:
        return drawn(rng, first, count, self.scale)

    def method(self, rng: np.random.Generator, first: int, count: int) -> dict[str, Any]:
        return self(rng, first, count)


class Slots:
    __slots__ = ("scale",)

    def __init__(self, scale: float):
        self.scale = scale

    def __call__(self, rng: np.random.Generator, first: int, count: int) -> dict[str, Any]:
        return drawn(rng, first, count, self.scale)


class Cached:
    @functools.cached_property
    def scale(self) -> float:
        return 2.0

    def __call__(self, rng: np.random.Generator, first: int, count: int) -> dict[str, Any]:
        return drawn(rng, first, count, self.scale)


def closure(value: Any) -> Any:
    def experiment(rng: np.random.Generator, first: int, count: int) -> dict[str, Any]:
        return {"x": np.full(count, np.sum(value))}

    return experiment


def from_text(text: str, **known: Any) -> Any:
    """A function as a notebook or a changed file would have it."""
    space: dict[str, Any] = {"np": np, **known}
    exec(textwrap.dedent(text), space)
    return space["experiment"]


def default(scale: Any = 1.0) -> Any:
    def experiment(rng: np.random.Generator, first: int, count: int, scale: Any = scale, *, more: Any = 0) -> Any:
        return drawn(rng, first, count, scale)

    return experiment


BODY = "def experiment(rng, first, count):\n    return {'x': %s}"
READS = BODY % "np.full(count, helper(3.0))"
MAKERS: dict[str, Any] = {
    "function": lambda: drawn,
    "partial": lambda: functools.partial(drawn, scale=2.0),
    "partial_other_value": lambda: functools.partial(drawn, scale=3.0),
    "partial_of_partial": lambda: functools.partial(functools.partial(drawn, scale=2.0), scale=4.0),
    "lambda": lambda: lambda rng, first, count: drawn(rng, first, count, 2.0),
    "lambda_other_constant": lambda: lambda rng, first, count: drawn(rng, first, count, 3.0),
    "closure": lambda: closure(1.0),
    "closure_other_value": lambda: closure(2.0),
    "closure_array": lambda: closure(np.arange(6.0)),
    "closure_other_array": lambda: closure(np.arange(6.0) + 1e-12),
    "closure_other_shape": lambda: closure(np.arange(6.0).reshape(2, 3)),
    "closure_other_type": lambda: closure(np.arange(6.0, dtype=np.float32)),
    "closure_dict": lambda: closure({"a": 1, "b": {2, 3}}),
    "closure_other_dict": lambda: closure({"a": 1, "b": {2, 4}}),
    "closure_robot": lambda: closure(ls.robots.puma560()),
    "closure_other_robot": lambda: closure(ls.robots.puma560().with_payload("link6", 1.0)),
    "closure_compiled": lambda: closure(ls.robots.puma560().compile("mass_matrix")),
    "closure_other_compiled": lambda: closure(ls.robots.puma560().compile("gravity_forces")),
    "closure_digits": lambda: closure(10**5000),
    "closure_no_text": lambda: closure(np.array(["", ""])),
    "closure_times": lambda: closure(np.array(["2026-01-01"], "datetime64[s]")),
    "closure_objects": lambda: closure(np.array([1, "a", None], object)),
    "closure_generator": lambda: closure(np.random.default_rng(1)),
    "closure_other_generator": lambda: closure(np.random.default_rng(2)),
    "default": lambda: default(1.0),
    "default_other": lambda: default(2.0),
    "instance": lambda: Scaled(2.0),
    "instance_other": lambda: Scaled(3.0),
    "instance_array": lambda: Scaled(2.0, np.eye(2)),
    "instance_other_array": lambda: Scaled(2.0, np.eye(3)),
    "method": lambda: Scaled(2.0).method,
    "method_other": lambda: Scaled(3.0).method,
    "slots": lambda: Slots(2.0),
    "slots_other": lambda: Slots(3.0),
    "text": lambda: from_text(BODY % "rng.normal(size=count)"),
    "text_other_call": lambda: from_text(BODY % "rng.uniform(size=count)"),
    "text_other_constant": lambda: from_text(BODY % "rng.normal(size=count) + 1"),
    "text_other_operator": lambda: from_text(BODY % "rng.normal(size=count) - 1"),
    "global": lambda: from_text(BODY % "np.full(count, gain)", gain=1.0),
    "global_other": lambda: from_text(BODY % "np.full(count, gain)", gain=2.0),
    "global_in_comprehension": lambda: from_text(BODY % "np.array([gain for _ in range(count)])", gain=1.0),
    "global_in_comprehension_other": lambda: from_text(BODY % "np.array([gain for _ in range(count)])", gain=2.0),
    "helper": lambda: from_text(READS, helper=from_text("def experiment(x): return x + 1")),
    "helper_other_code": lambda: from_text(READS, helper=from_text("def experiment(x): return x + 2")),
    "helper_other_global": lambda: from_text(READS, helper=from_text("def experiment(x): return x + g", g=1)),
    "helper_another_global": lambda: from_text(READS, helper=from_text("def experiment(x): return x + g", g=2)),
    "helper_cached": lambda: from_text(READS, helper=functools.lru_cache(lambda x: x + 1)),
    "helper_cached_other": lambda: from_text(READS, helper=functools.lru_cache(lambda x: x + 2)),
    "class": lambda: from_text("class experiment:\n def __call__(self, rng, first, count): return {'x': 1}")(),
    "class_other": lambda: from_text("class experiment:\n def __call__(self, rng, first, count): return {'x': 2}")(),
    "class_attribute": lambda: from_text("class experiment:\n a = 1\n def __call__(self, *x): return self.a")(),
    "class_other_attribute": lambda: from_text("class experiment:\n a = 2\n def __call__(self, *x): return self.a")(),
    "rollouts": lambda: rollouts(),
    "rollouts_other_law": lambda: rollouts(torque=ls.simulation.PD(np.zeros(6), 100.0, 21.0)),
    "rollouts_function": lambda: rollouts(torque=lambda t, q, qd: -qd, vary={}),
    "rollouts_other_function": lambda: rollouts(torque=lambda t, q, qd: -2 * qd, vary={}),
    "rollouts_policy": lambda: rollouts(torque=ls.simulation.Policy(lambda t, q, qd: -qd), vary={}, options={}),
    "rollouts_other_policy": lambda: rollouts(
        torque=ls.simulation.Policy(lambda t, q, qd: -2 * qd), vary={}, options={}
    ),
    "rollouts_payloads": lambda: rollouts(payloads=(0.0, 2.5)),
}


def rollouts(**changes: Any) -> ls.simulation.Rollouts:
    options: dict[str, Any] = {
        "q0": np.zeros(6), "torque": ls.simulation.PD(np.zeros(6), 100.0, 20.0),
        "options": {"duration": 0.02, "every": 5}, "vary": {"q0": ("normal", 0.05)}, "payloads": (0.0, 1.5),
    }  # fmt: skip
    return ls.simulation.Rollouts(**{"robot": ls.robots.puma560(), **options, **changes})


def test_fingerprints_tell_experiments_apart():
    found = {name: json.dumps(fingerprint(make()), sort_keys=True) for name, make in MAKERS.items()}
    by_print: dict[str, list[str]] = {}
    for name, text in found.items():
        by_print.setdefault(text, []).append(name)
    assert [names for names in by_print.values() if len(names) > 1] == []
    again = {name: json.dumps(fingerprint(make()), sort_keys=True) for name, make in MAKERS.items()}
    assert again == found  # made anew


def print_fingerprints() -> None:
    print(json.dumps({name: fingerprint(make()) for name, make in MAKERS.items()}, sort_keys=True))


def test_fingerprints_are_the_same_in_every_process():
    import test_ensemble_resume as own

    code = "import test_ensemble_resume as m; m.print_fingerprints()"
    other = json.loads(run_python(code, PYTHONHASHSEED="1"))
    # pytest rewrites asserts, and this module's own functions with them: none is in an experiment
    assert {name: fingerprint(make()) for name, make in own.MAKERS.items()} == other


def test_comments_names_and_places_do_not_count():
    plain = from_text("def experiment(rng, first, count):\n    a = rng.normal(size=count)\n    return {'x': a}")
    other = from_text(
        '''\n\n\ndef experiment(rng, first, count):
            """Draw."""
            # a comment
            value = rng.normal(size=count)

            return {'x': value}
        ''',
        unused=3.0,
    )
    assert fingerprint(plain) == fingerprint(other)


def test_values_computed_from_others_do_not_count():
    experiment = Cached()
    before = fingerprint(experiment)
    assert experiment.scale == 2.0 and fingerprint(experiment) == before


@pytest.mark.parametrize("value", [threading.Lock(), sys.stdout, (x for x in ())], ids=["lock", "file", "generator"])
def test_what_cannot_be_read_is_said(value: Any, tmp_path: Path):
    with pytest.raises(ArgumentError, match=r"variable value.*fingerprint"):
        ls.ensemble(closure(value), 4, tmp_path / "a", progress=False)
    named = closure(value)
    named.fingerprint = "one"
    with pytest.raises((ArgumentError, TypeError)):  # of what the experiment returns
        ls.ensemble(named, 4, tmp_path / "b", progress=False)
    assert (tmp_path / "b" / "ensemble.json").exists()


@pytest.mark.slow
def test_modules_of_the_user(tmp_path: Path):
    """An experiment that reads another module: its functions, its values, and what it imports itself."""
    (tmp_path / "helpers_of_user.py").write_text("SCALE = 1.0\nUNUSED = 3\ndef scaled(x):\n    return SCALE * x\n")
    (tmp_path / "imported_later.py").write_text("def offset():\n    return 1.0\n")
    text = """
        import helpers_of_user as h
        def experiment(rng, first, count):
            from imported_later import offset
            return {"x": h.scaled(rng.normal(size=count)) + h.SCALE + offset()}
    """
    script = (
        "import sys, json; sys.path.insert(0, sys.argv[1]); space = {}; exec(sys.argv[2], space);"
        "from linksweep.support.fingerprint import fingerprint as f;"
        "first = f(space['experiment']); h = space['h']; h.SCALE = 2.0; second = f(space['experiment']); h.SCALE = 1.0;"
        "h.UNUSED = 4; third = f(space['experiment']); print(json.dumps([first, second, third]))"
    )

    def found() -> list[Any]:
        shutil.rmtree(tmp_path / "__pycache__", ignore_errors=True)
        command = [sys.executable, "-c", script, str(tmp_path), textwrap.dedent(text)]
        run = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE)
        assert run.returncode == 0, run.stderr
        return json.loads(run.stdout)

    first, second, third = found()
    assert first != second and first == third
    (tmp_path / "helpers_of_user.py").write_text("SCALE = 1.0\ndef scaled(x):\n    # the same\n    return SCALE * x\n")
    assert found()[0] == first
    (tmp_path / "helpers_of_user.py").write_text("SCALE = 1.0\ndef scaled(x):\n    return 2 * SCALE * x\n")
    assert found()[0] != first
    (tmp_path / "helpers_of_user.py").write_text("SCALE = 1.0\ndef scaled(x):\n    return SCALE * x\n")
    (tmp_path / "imported_later.py").write_text("def offset():\n    return 2.0\n")
    assert found()[0] != first


@pytest.mark.parametrize(
    ("one", "two"),
    [
        ("partial", "partial_other_value"), ("lambda", "lambda_other_constant"), ("instance", "instance_other"),
        ("closure", "closure_other_value"), ("text", "text_other_constant"), ("helper", "helper_other_code"),
        ("method", "method_other"), ("rollouts_function", "rollouts_other_function"), ("function", "partial"),
    ],
)  # fmt: skip
def test_another_experiment_does_not_go_on(one: str, two: str, tmp_path: Path):
    chunk: dict[str, Any] = {"chunk": 10, "progress": False}
    first = ls.ensemble(MAKERS[one](), 30, tmp_path, **chunk)
    before = first.table()
    first.files[1].unlink()  # it would be mixed
    with pytest.raises(ArgumentError, match="holds another ensemble"):
        ls.ensemble(MAKERS[two](), 30, tmp_path, **chunk)
    assert not first.files[1].exists()
    again = ls.ensemble(MAKERS[one](), 30, tmp_path, **chunk)
    assert again.computed == 1
    for name, values in again.table().items():
        np.testing.assert_array_equal(values, before[name])


def test_a_fingerprint_of_ones_own(tmp_path: Path):
    first, second = closure(1.0), closure(2.0)
    first.fingerprint = second.fingerprint = "means"
    assert ls.ensemble(first, 4, tmp_path, progress=False).computed == 1
    assert ls.ensemble(second, 4, tmp_path, progress=False).computed == 0
    second.fingerprint = "other means"
    with pytest.raises(ArgumentError, match="holds another ensemble"):
        ls.ensemble(second, 4, tmp_path, progress=False)


# ---- parts are verified ---------------------------------------------------------------------------------------------


def flipped(path: Path, share: float) -> None:
    data = bytearray(path.read_bytes())
    place = min(int(share * len(data)), len(data) - 1)
    data[place] ^= 0x10
    path.write_bytes(data)


def linked(path: Path, other: Path) -> None:
    path.unlink()
    path.symlink_to(other)


DAMAGE: dict[str, Any] = {
    "empty": lambda path, other: path.write_bytes(b""),
    "garbage": lambda path, other: path.write_bytes(b"PAR1" + bytes(range(256)) + b"PAR1"),
    "text": lambda path, other: path.write_text("part"),
    "cut": lambda path, other: path.write_bytes(path.read_bytes()[:-200]),
    "longer": lambda path, other: path.write_bytes(path.read_bytes() + b"\0"),
    "zeros": lambda path, other: path.write_bytes(path.read_bytes()[:-4000] + bytes(4000)),
    "copy": lambda path, other: path.write_bytes(other.read_bytes()),
    "link": linked,
    "link_to_itself": lambda path, other: linked(path, path),
    "link_to_nothing": lambda path, other: linked(path, path.with_name("nothing")),
    "gone": lambda path, other: path.unlink(),
    **{f"flip_{k}": functools.partial(lambda share, path, other: flipped(path, share), k / 23) for k in range(24)},
}


@pytest.mark.parametrize("damage", DAMAGE)
def test_a_damaged_part_is_computed_again(damage: str, tmp_path: Path):
    whole = ls.ensemble(drawn, 250, tmp_path / "whole", chunk=100, progress=False)
    found = ls.ensemble(drawn, 250, tmp_path / "damaged", chunk=100, progress=False)
    other = found.files[2].read_bytes()
    DAMAGE[damage](found.files[1], found.files[2])
    if damage != "gone":
        with pytest.raises(ArgumentError, match="missing or damaged"):
            found.table()
    again = ls.ensemble(drawn, 250, tmp_path / "damaged", chunk=100, progress=False)
    assert again.computed == 1 and not again.files[1].is_symlink()
    same(again, whole)
    assert [path.read_bytes() for path in again.files] == [path.read_bytes() for path in whole.files]
    assert again.files[2].read_bytes() == other


def test_parts_of_another_ensemble_are_not_taken(tmp_path: Path):
    """Whole files with good checksums, of another seed, experiment or size."""
    whole = ls.ensemble(drawn, 300, tmp_path / "whole", chunk=100, progress=False)
    for k, change in enumerate(({"seed": 1}, {"experiment": functools.partial(drawn, scale=2.0)}, {"samples": 250})):
        arguments = {"experiment": drawn, "samples": 300, **change}
        other = ls.ensemble(folder=tmp_path / f"other{k}", chunk=100, progress=False, **arguments)
        for place in (1, 2):
            shutil.copy(other.files[place], whole.files[place])
        again = ls.ensemble(drawn, 300, tmp_path / "whole", chunk=100, progress=False)
        assert again.computed == (1 if "samples" in change else 2)
        same(again, ls.ensemble(drawn, 300, tmp_path / f"new{k}", chunk=100, progress=False))


def test_files_that_only_look_like_parts_are_left_alone(tmp_path: Path):
    names = ["part-000007.parquet", "part-.parquet", "part-1.parquet", "part-000001.parquet.bak", "part-000001"]
    first = ls.ensemble(drawn, 250, tmp_path, chunk=100, progress=False)
    for name in names:
        (tmp_path / name).write_bytes(b"mine")
    again = ls.ensemble(drawn, 250, tmp_path, chunk=100, progress=False)
    assert again.computed == 0
    same(first, again)
    assert all((tmp_path / name).read_bytes() == b"mine" for name in names)


def test_a_folder_with_a_damaged_description_is_refused(tmp_path: Path):
    ls.ensemble(drawn, 250, tmp_path, chunk=100, progress=False)
    about = tmp_path / "ensemble.json"
    text = about.read_text()
    for damaged in ("", "{", "[]", "3", text[:-40], text.replace('"seed": 0', '"seed": 1')):
        about.write_text(damaged)
        with pytest.raises(ArgumentError):
            ls.ensemble(drawn, 250, tmp_path, chunk=100, progress=False)
    about.write_text(text)
    assert ls.ensemble(drawn, 250, tmp_path, chunk=100, progress=False).computed == 0


# ---- more samples ---------------------------------------------------------------------------------------------------


def test_samples_are_extended(tmp_path: Path):
    ls.ensemble(drawn, 250, tmp_path / "a", chunk=100, progress=False)
    longer = ls.ensemble(drawn, 620, tmp_path / "a", chunk=100, progress=False)
    assert longer.computed == 5 and longer.samples == 620  # the third was not complete
    same(longer, ls.ensemble(drawn, 620, tmp_path / "b", chunk=100, progress=False))
    fewer = ls.ensemble(drawn, 500, tmp_path / "a", chunk=100, progress=False)
    assert fewer.computed == 0 and len(fewer.table()["y"]) == 500
    with pytest.raises(ArgumentError, match="at least 600"):
        ls.ensemble(drawn, 550, tmp_path / "a", chunk=100, progress=False)
    same(longer, ls.ensemble(drawn, 620, tmp_path / "a", chunk=100, progress=False))


class Enough(Exception):
    pass


def three_chunks(rng: np.random.Generator, first: int, count: int) -> dict[str, Any]:
    if first >= 3 * count:
        raise Enough
    return {"x": np.zeros(count)}


def test_many_samples_take_no_memory(tmp_path: Path):
    with pytest.raises(ArgumentError, match="fewer samples or a larger chunk"):
        ls.ensemble(drawn, 10**18, tmp_path, progress=False)
    with pytest.raises(ArgumentError, match="smaller chunk"):
        ls.ensemble(drawn, 10**18, tmp_path, chunk=10**18, progress=False)
    with pytest.raises(ArgumentError, match="smaller chunk"):
        ls.ensemble(rollouts(), 10**9, tmp_path, chunk=10**9, progress=False)
    tracemalloc.start()
    with pytest.raises(Enough):
        ls.ensemble(three_chunks, 10**11, tmp_path / "a", chunk=10**4, progress=False)
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert most < 2**23
    assert sorted(path.name for path in (tmp_path / "a").glob("part-*")) == [f"part-00000{k}.parquet" for k in range(3)]


# ---- columns --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("columns", "says"),
    [
        ({"x": np.ma.array(np.zeros(4), mask=[False, True, False, False])}, "masked"),
        ({"x": ["a"] * 4}, "expected real numbers"),
        ({"x": [[1.0], [1.0, 2.0], [3.0], [4.0]]}, "expected real numbers"),
        ({"x": np.zeros(4) * 1j}, "expected real numbers"),
        ({"x": np.full(4, 2**60)}, "beyond 2"),
        ({"x": np.zeros((4, 2)), "x.1": np.zeros(4)}, "two columns 'x.1'"),
    ],
)
def test_columns_that_a_file_cannot_hold(columns: dict[str, Any], says: str, tmp_path: Path):
    with pytest.raises(ArgumentError, match=says):
        ls.ensemble(lambda rng, first, count: columns, 4, tmp_path, progress=False)
    assert not list(tmp_path.glob("part-*"))


def test_columns_that_change_are_said(tmp_path: Path):
    found = ls.ensemble(lambda rng, first, count: {f"x{first}": np.zeros(count)}, 4, tmp_path, chunk=2, progress=False)
    with pytest.raises(ArgumentError, match="same columns"):
        found.table()


def test_what_cannot_be_pickled_is_not_sent(tmp_path: Path):
    with ProcessPoolExecutor(1) as executor, pytest.raises(ArgumentError, match="pickled"):
        ls.ensemble(lambda rng, first, count: {}, 4, tmp_path, client=executor, progress=False)


# ---- killed again and again, and damaged in between ----------------------------------------------------------------

RUN = """
import time
import numpy as np
import linksweep as ls

def experiment(rng, first, count):
    time.sleep(0.004)
    return {"sample": first + np.arange(count), "x": rng.normal(size=(count, 3)), "y": rng.uniform(size=count)}

if __name__ == "__main__":
    import sys
    print(ls.ensemble(experiment, SAMPLES, sys.argv[1], chunk=50, seed=3, progress=False).computed)
"""


def killed_and_damaged(folder: Path, kills: int, samples: int) -> None:
    """Kill so many runs at random times, damaging parts in between."""
    chance, done, longest = random.Random(kills), 0, 1.0
    script, out = folder / "run.py", folder / "out"
    script.write_text(RUN.replace("SAMPLES", str(samples)))
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    while done < kills:
        process = subprocess.Popen([sys.executable, str(script), str(out)], stdout=subprocess.PIPE, env=env)
        began = time.monotonic()
        time.sleep(chance.uniform(0.3, longest))
        if process.poll() is None:
            process.kill()
            done += 1
            longest = min(longest + 0.2, 4.0)
        else:
            longest = max(0.8 * (time.monotonic() - began), 0.5)
        process.communicate()
        parts = sorted(out.glob("part-*.parquet"))
        for path in chance.sample(parts, min(len(parts), chance.randrange(4))):
            DAMAGE[chance.choice(list(DAMAGE))](path, chance.choice(parts))


def finished(folder: Path, kills: int, samples: int) -> None:
    killed_and_damaged(folder, kills, samples)
    run = subprocess.run(
        [sys.executable, str(folder / "run.py"), str(folder / "out")], capture_output=True, text=True, timeout=PATIENCE,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
    )  # fmt: skip
    assert run.returncode == 0, run.stderr
    space = types.ModuleType("__main__")
    exec(RUN.partition("if __name__")[0].replace("time.sleep(0.004)", "pass"), vars(space))
    whole = ls.ensemble(vars(space)["experiment"], samples, folder / "whole", chunk=50, seed=3, progress=False)
    parts = [folder / "out" / path.name for path in whole.files]
    found = dataclasses.replace(whole, folder=folder / "out", files=tuple(parts))
    same(found, whole)
    np.testing.assert_array_equal(found.table()["sample"], np.arange(samples))


def test_killed_and_damaged_runs_end_right(tmp_path: Path):
    finished(tmp_path, 1, 1000)


@pytest.mark.slow
def test_many_killed_and_damaged_runs_end_right(tmp_path: Path):
    finished(tmp_path, at_scale(10, 50), at_scale(4_000, 10_000))


def test_what_killed_runs_leave_is_removed(tmp_path: Path):
    found = ls.ensemble(drawn, 250, tmp_path, chunk=100, progress=False)
    old, new = tmp_path / ".part-000001.abc.parquet", tmp_path / ".part-000001.def.parquet"
    for path in (old, new):
        path.write_bytes(b"PAR1")
    os.utime(old, (0, 0))
    same(found, ls.ensemble(drawn, 250, tmp_path, chunk=100, progress=False))
    assert not old.exists() and new.exists()  # another run may be writing it


@pytest.mark.skipif(os.name != "posix", reason="signals")
def test_an_interrupted_run_goes_on(tmp_path: Path):
    calls = []

    def experiment(rng: np.random.Generator, first: int, count: int) -> dict[str, Any]:
        if first == 200 and not os.environ.get("LINKSWEEP_TEST_GO_ON"):
            os.kill(os.getpid(), signal.SIGINT)
        return drawn(rng, first, count)

    with pytest.raises(KeyboardInterrupt):
        ls.ensemble(experiment, 500, tmp_path / "a", chunk=100, progress=False)
    calls.append(len(list((tmp_path / "a").glob("part-*"))))
    os.environ["LINKSWEEP_TEST_GO_ON"] = "1"
    try:
        found = ls.ensemble(experiment, 500, tmp_path / "a", chunk=100, progress=False)
    finally:
        del os.environ["LINKSWEEP_TEST_GO_ON"]
    assert calls == [2] and found.computed == 3
    same(found, ls.ensemble(drawn, 500, tmp_path / "b", chunk=100, progress=False))
