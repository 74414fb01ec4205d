"""Files of simulations that somebody damaged, by accident or on purpose: refused in a sentence, or harmless.

Python -O removes every assert, so what guards memory must not be one.
"""

from __future__ import annotations

import ast
import dataclasses
import io
import json
import os
import random
import subprocess
import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scale import at_scale

import linksweep as ls
from linksweep.model.formats import stored
from linksweep.model.model import Model
from linksweep.simulation import load

PACKAGE = Path(ls.__file__).parent
ARRAYS = ("t", "q", "qd", "qdd", "tau")
OTHERS: tuple[Any, ...] = (
    -2, -1, 0, 1, 2, 3, 7, 10**9, 2**40, 10**30, 0.5, -1.0, 1e300, float("nan"), float("inf"), True, None, "", "x", "0",
    [], {}, [[]], [0, 0, 0], [1, 2], "revolute", "free", "spherical", "planar", "fixed", "a" * 300, {"name": "x"},
)  # fmt: skip


def robots() -> list[ls.Robot]:
    return [ls.robots.planar(2), ls.robots.chain(4, seed=1, joints="mixed"), ls.robots.puma560().with_base("floating")]


def whole(robot: ls.Robot) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    """The arrays and the metadata of a file that is fine."""
    buffer = io.BytesIO()
    run = ls.simulate(robot, robot.neutral(), None, None, 0.002)
    path = Path(os.environ.get("TMPDIR", "/tmp")) / f"whole-{os.getpid()}.npz"
    run.to_npz(path)
    buffer.write(path.read_bytes())
    path.unlink()
    buffer.seek(0)
    with np.load(buffer) as found:
        return {name: found[name] for name in ARRAYS}, json.loads(str(found["metadata"]))


def packed(arrays: dict[str, np.ndarray], metadata: Any) -> bytes:
    buffer = io.BytesIO()
    everything: dict[str, Any] = {**arrays, "metadata": np.array(json.dumps(metadata))}
    np.savez(buffer, **everything)
    return buffer.getvalue()


def places(data: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """The way to every entry of nested dicts and lists."""
    entries = data.items() if isinstance(data, dict) else enumerate(data) if isinstance(data, list) else ()
    found = [path] if path else []
    for key, value in entries:
        found += places(value, (*path, key))
    return found


def damaged_metadata(rng: random.Random, metadata: dict[str, Any]) -> dict[str, Any]:
    """One to three entries of the robot changed, deleted, repeated or exchanged; half of them in what counts links."""
    metadata = json.loads(json.dumps(metadata))
    for _ in range(rng.randint(1, 2)):
        ways = places(metadata["robot"])
        counting = [way for way in ways if way[-1] in ("parent", "link", "kind") or way[0] == "document_order"]
        way = rng.choice(counting if rng.random() < 0.5 and counting else ways)
        holder = metadata["robot"]
        for key in way[:-1]:
            holder = holder[key]
        action = rng.randrange(6)
        if isinstance(holder[way[-1]], float) and action < 4:
            holder[way[-1]] *= rng.uniform(0.5, 2.0)
        elif action == 0 and isinstance(holder, list):
            holder.insert(way[-1], json.loads(json.dumps(holder[way[-1]])))
        elif action == 1 and isinstance(holder, list):
            rng.shuffle(holder)
        elif action == 2:
            del holder[way[-1]]
        else:
            holder[way[-1]] = rng.choice(OTHERS)
    return metadata


def damaged_arrays(rng: random.Random, arrays: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    arrays = dict(arrays)
    name = rng.choice(ARRAYS)
    array = arrays[name]
    changes = [
        array[:0], array[..., :0], array[1:], array[..., :-1], array[None], array.ravel(),
        array.astype("float32"), array.astype("int64"), array.astype("complex128"), array.astype("U5"), array * np.nan,
        array.astype(">f8"), np.float64(1.0), np.zeros(3, [("a", "f8")]), np.broadcast_to(array, (3, *array.shape)),
    ]  # fmt: skip
    arrays[name] = np.asarray(rng.choice(changes))
    return arrays


def damaged_bytes(rng: random.Random, content: bytes) -> bytes:
    out = bytearray(content)
    for _ in range(rng.randint(1, 8)):
        out[rng.randrange(len(out))] = rng.randrange(256)
    return bytes(out[: rng.randrange(len(out))]) if rng.random() < 0.2 else bytes(out)


def damaged(rng: random.Random, arrays: dict[str, np.ndarray], metadata: dict[str, Any]) -> bytes:
    kind = rng.random()
    if kind < 0.7:
        return packed(arrays, damaged_metadata(rng, metadata))
    if kind < 0.85:
        return packed(damaged_arrays(rng, arrays), metadata)
    return damaged_bytes(rng, packed(arrays, metadata))


def use(simulation: ls.simulation.Simulation) -> None:
    """Machine code for the robot of the file, written out and as loops, over arrays of the file."""
    robot = simulation.robot
    assert simulation.energy.shape == simulation.q.shape[:-1]
    q, qd = np.zeros((3, robot.nq)), np.zeros((3, robot.nv))
    for rolled in (False, True):
        robot.compile(["inverse_dynamics", "mass_matrix"], rolled=rolled)(q, qd, qd)
    robot.jacobian(simulation.q, robot.frame_names[-1])


def fuzz(seed: int, count: int, file: str) -> None:
    """Read damaged files, and use the robots of those that can be read."""
    rng = random.Random(seed)
    warnings.simplefilter("ignore")
    fine = [whole(robot) for robot in robots()]
    refused = used = 0
    for _ in range(count):
        Path(file).write_bytes(damaged(rng, *rng.choice(fine)))
        try:
            simulation = load(file)
        except ls.LinksweepError as error:
            refused += 1
            assert "\n" not in str(error) and len(str(error)) < 1000, error
            continue
        try:
            use(simulation)
        except ls.LinksweepError:
            refused += 1
        else:
            used += 1
    assert refused > count // 4 and used > count // 50, (refused, used)
    print("done", __debug__)


def run_fuzz(optimised: bool, seed: int, count: int, folder: Path) -> None:
    code = f"import test_hostile_files as m; m.fuzz({seed}, {count}, {str(folder / 'file.npz')!r})"
    command = [sys.executable, *(["-O"] if optimised else []), "-X", "faulthandler", "-c", code]
    environment = {
        **os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path)), "LINKSWEEP_CACHE": str(folder / "cache"),
        "MALLOC_CHECK_": "3", "MALLOC_PERTURB_": "85",
    }  # fmt: skip
    done = subprocess.run(command, capture_output=True, text=True, timeout=3600, env=environment)
    assert done.returncode == 0, f"exit status {done.returncode}\n{done.stderr}"
    assert done.stdout.split() == ["done", str(not optimised)]


@pytest.mark.cases(1)
@pytest.mark.parametrize("optimised", [False, True], ids=["asserts", "no asserts"])
@pytest.mark.parametrize("seed", [0, 1])
def test_damaged_files_are_refused_or_harmless(seed: int, optimised: bool, tmp_path: Path):
    run_fuzz(optimised, seed, 40, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("optimised", [False, True], ids=["asserts", "no asserts"])
@pytest.mark.parametrize("seed", range(2, 12))
def test_many_damaged_files(seed: int, optimised: bool, tmp_path: Path):
    run_fuzz(optimised, seed, at_scale(60, 500), tmp_path)


@pytest.mark.parametrize(
    ("path", "value", "says"),
    [
        (("links", 1, "parent"), 1, "before its parent"),
        (("links", 1, "parent"), -2, "before its parent"),
        (("links", 1, "parent"), 0.0, "the number of a link"),
        (("document_order", 0), 1, "each of 2 links once"),
        (("document_order",), [], "each of 2 links once"),
        (("frames", 1, "link"), 2, "does not exist"),
        (("links", 0, "joint", "kind"), "crank", "is 'crank', expected 'revolute'"),
        (("links", 0, "joint", "kind"), "fixed", "expected one that moves"),
        (("links", 0, "joint", "axis"), [0, 0, 2], "unit vector"),
        (("links", 0, "joint", "axis"), [0, 0], "three numbers"),
        (("links", 0, "joint", "pitch"), 1e300, "finite numbers below"),
        (("links", 0, "joint", "limits", "lower"), float("nan"), "limits of joint"),
        (("links", 0, "joint", "placement", "rotation", 0, 0), 3.0, "rotation matrix"),
        (("links", 0, "inertial", "mass"), -1.0, "zero or more"),
        (("links", 0, "inertial", "mass"), "1", "real number"),
        (("links", 0, "inertial", "com"), None, "three numbers"),
        (("links", 1, "name"), "link1", "twice|name"),
        (("frames", 1, "placement", "position"), [0, 0, 1e200], "finite numbers below"),
        (("base_inertial", "mass"), -1.0, "zero or more"),
        (("gravity",), [0, 0, 1e200], "gravity"),
        (("links",), {}, "a list"),
        (("name",), 7, "a name"),
        (("speed",), 7, "expected name, links"),
    ],
)
def test_a_robot_from_a_file_is_checked(path: tuple[Any, ...], value: Any, says: str, tmp_path: Path):
    arrays, metadata = whole(ls.robots.planar(2))
    holder = metadata["robot"]
    if path == ("links", 1, "name"):
        value = holder["links"][0]["name"]
    for key in path[:-1]:
        holder = holder[key]
    holder[path[-1]] = value
    (tmp_path / "bad.npz").write_bytes(packed(arrays, metadata))
    with pytest.raises(ls.LinksweepError, match=says):
        load(tmp_path / "bad.npz")


def test_every_field_of_a_model_is_read():
    """A field that is added to the description is added to what files are checked for."""
    for kind, readers in stored.FIELDS.items():
        fields = tuple(f.name for f in dataclasses.fields(kind) if f.compare)  # where it came from is no part of it
        assert tuple(readers) == fields, kind
    for robot in robots():
        data = json.loads(json.dumps(stored.model_data(robot.model)))
        assert stored.model_from_data(data, "here") == robot.model


def test_a_model_is_a_tree_whoever_makes_it():
    model: Model = ls.robots.planar(2).model
    for change in (
        {"links": model.links[::-1]},
        {"document_order": (0, 0)},
        {"frames": (dataclasses.replace(model.frames[-1], link=9),)},
    ):
        with pytest.raises(ls.DescriptionError):
            dataclasses.replace(model, **change)


@pytest.mark.slow
def test_no_assert_guards_anything():
    """Those that are left tell a type checker what is known already: isinstance, or not None."""

    def narrows(test: ast.expr) -> bool:
        if isinstance(test, ast.Call):
            return isinstance(test.func, ast.Name) and test.func.id == "isinstance"
        return isinstance(test, ast.Compare) and [type(op) for op in test.ops] == [ast.IsNot]

    guards = [
        f"{path.relative_to(PACKAGE)}:{node.lineno}"
        for path in sorted(PACKAGE.rglob("*.py"))
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Assert) and not narrows(node.test)
    ]
    assert not guards, guards
