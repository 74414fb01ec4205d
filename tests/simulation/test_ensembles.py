"""Ensembles: the same numbers wherever chunks run, each chunk once, and a run that was killed goes on."""

from __future__ import annotations

import json
import os
import pickle
import signal
import subprocess
import sys
import textwrap
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from abuse_helpers import PATIENCE
from robots_for_tests import robot

import linksweep as ls
from linksweep import ArgumentError
from linksweep.cli.experiment import read_experiment
from linksweep.simulation import ensembles

pytest.importorskip("pyarrow")
PD = ls.simulation.PD(np.zeros(6), 100.0, 20.0)
EXPERIMENT = """
robot = "puma560"
duration = 0.02
every = 5
q0 = [0, 0.3, 0, 0, 0, 0]
[[controller]]
kind = "pd"
kp = 100
kd = 20
[vary]
q0 = { normal = 0.05 }
qd0 = { uniform = 0.1 }
kp = { uniform = 0.2 }
payloads = [0.0, 1.5]
"""


def rollouts(**changes: Any) -> ls.simulation.Rollouts:
    options: dict[str, Any] = {
        "q0": np.zeros(6), "torque": PD, "options": {"duration": 0.02, "every": 5},
        "vary": {"q0": ("normal", 0.05), "kp": ("uniform", 0.2)}, "payloads": (0.0, 1.5),
    }  # fmt: skip
    return ls.simulation.Rollouts(**{"robot": ls.robots.puma560(), **options, **changes})


def drawn(rng: np.random.Generator, first: int, count: int) -> dict[str, Any]:
    return {"sample": first + np.arange(count), "x": rng.normal(size=(count, 2))}


def same(a: ls.simulation.Ensemble, b: ls.simulation.Ensemble) -> None:
    one, two = a.table(), b.table()
    assert list(one) == list(two)
    for name, values in one.items():
        np.testing.assert_array_equal(values, two[name])


def test_every_sample_once_and_by_the_seed(tmp_path: Path):
    found = ls.ensemble(drawn, 1050, tmp_path / "a", chunk=100)
    table = found.table()
    np.testing.assert_array_equal(table["sample"], np.arange(1050))
    assert len(found.files) == found.computed == 11 and len(np.unique(table["x.0"])) == 1050
    same(found, ls.ensemble(drawn, 1050, tmp_path / "b", chunk=100))
    other = ls.ensemble(drawn, 1050, tmp_path / "c", chunk=100, seed=1).table()
    assert not np.isin(other["x.0"], table["x.0"]).any()


def test_rollouts_are_the_simulations_that_they_say(tmp_path: Path):
    experiment = rollouts()
    table = ls.ensemble(experiment, 40, tmp_path, chunk=17).table()
    for k in (0, 1, 16, 17, 39):  # one by one, from what was drawn
        row = {name: np.array([table[f"{name}.{j}"][k] for j in range(6)]) for name in ("q0", "kp", "q", "tau_peak")}
        robot, mass = experiment.robot, (0.0, 1.5)[k % 2]
        assert table["payload"][k] == mass
        robot = robot.with_payload(robot.frame_names[-1], mass) if mass else robot
        law = ls.simulation.PD(np.zeros(6), 100.0 * row["kp"], 20.0)
        alone = ls.simulate(robot, row["q0"], None, law, 0.02, every=5)
        np.testing.assert_array_equal(alone.q[-1], row["q"])
        np.testing.assert_array_equal(np.abs(alone.tau).max(axis=0), row["tau_peak"])


def test_gains_reach_the_only_law_that_has_them(tmp_path: Path):
    sim = ls.simulation
    rest = sim.FrictionCompensation(damping=0.1)
    experiment = rollouts(torque=sim.saturated(rest + sim.saturated(PD, 90.0), 80.0), vary={"kp": ("uniform", 0.5)})
    table = ls.ensemble(experiment, 4, tmp_path, chunk=4).table()
    for k in range(4):
        factors, q = (np.array([table[f"{name}.{j}"][k] for j in range(6)]) for name in ("kp", "q"))
        law = sim.saturated(rest + sim.saturated(sim.PD(np.zeros(6), 100.0 * factors, 20.0), 90.0), 80.0)
        alone = ls.simulate(experiment._robot(k % 2), np.zeros(6), None, law, 0.02, every=5)
        np.testing.assert_array_equal(alone.q[-1], q)
    assert PD.kp == 100.0 and len(np.unique(table["kp.0"])) == 4


def test_payloads_are_held_in_the_tool(tmp_path: Path):
    """As in files of Universal Robots, the last frame stands on the base, where a payload would be lost."""
    (tmp_path / "arm.urdf").write_text(
        '<robot name="arm"><link name="base_link"/><link name="arm"><inertial><mass value="1"/><inertia ixx="1" '
        'iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial></link><link name="tool0"/><link name="base"/>'
        '<joint name="turn" type="continuous"><parent link="base_link"/><child link="arm"/><axis xyz="0 1 0"/></joint>'
        '<joint name="end" type="fixed"><parent link="arm"/><child link="tool0"/><origin xyz="0 0 1"/></joint>'
        '<joint name="foot" type="fixed"><parent link="base_link"/><child link="base"/></joint></robot>'
    )
    arm = ls.load(tmp_path / "arm.urdf")
    assert arm.frame_names[-1] == "base"
    held = rollouts(robot=arm, q0=np.zeros(1), torque=None, vary={}, payloads=(1.5,))
    assert held._robot(0) == arm.with_payload("tool0", 1.5)
    (tmp_path / "experiment.toml").write_text('robot = "arm.urdf"\npayload = { mass = 1.5 }\n[controller_robot]\n')
    assert read_experiment(tmp_path / "experiment.toml").robot == arm.with_payload("tool0", 1.5)


def test_an_executor_gives_the_same(tmp_path: Path):
    here = ls.ensemble(rollouts(), 300, tmp_path / "here", chunk=50)
    with ThreadPoolExecutor(2) as executor:
        same(here, ls.ensemble(rollouts(), 300, tmp_path / "there", chunk=50, client=executor))


def test_it_goes_on_where_it_was(tmp_path: Path):
    first = ls.ensemble(drawn, 500, tmp_path / "a", chunk=100)
    before = first.files[0].stat().st_mtime_ns
    first.files[1].unlink()
    first.files[4].unlink()
    again = ls.ensemble(drawn, 500, tmp_path / "a", chunk=100)
    assert again.computed == 2 and again.files[0].stat().st_mtime_ns == before
    same(again, ls.ensemble(drawn, 500, tmp_path / "b", chunk=100))


@pytest.mark.slow
def test_a_killed_run_goes_on(tmp_path: Path):
    """Killed without a chance to tidy up, in the midst of its chunks."""
    toml, folder = tmp_path / "experiment.toml", tmp_path / "out"
    toml.write_text(EXPERIMENT)
    script = textwrap.dedent(f"""
        import os, signal
        from linksweep.cli.experiment import read_experiment
        from linksweep.simulation import ensembles
        from pathlib import Path
        write = ensembles._write
        def watched(path, columns, about):
            if path.name == "part-000003.parquet":
                (path.parent / ".part-000003.half.parquet").write_bytes(b"PAR1")  # as a temporary file is left
                os.kill(os.getpid(), signal.SIGKILL)
            write(path, columns, about)
        ensembles._write = watched
        ensembles.ensemble(read_experiment(Path({str(toml)!r})).rollouts(), 200, {str(folder)!r}, chunk=20)
    """)
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=PATIENCE)
    assert run.returncode == -signal.SIGKILL, run.stderr
    assert len(list(folder.glob("part-*.parquet"))) == 3
    command = [sys.executable, "-m", "linksweep", "ensemble", str(toml), "--samples", "200", "--chunk", "20", "--json"]
    texts = []
    for place in (folder, tmp_path / "whole"):
        run = subprocess.run([*command, "-o", str(place)], capture_output=True, text=True, timeout=PATIENCE)
        assert run.returncode == 0, run.stderr
        texts.append(json.loads(run.stdout))
    assert [text["computed"] for text in texts] == [7, 10]
    names = [f"part-{k:06d}.parquet" for k in range(10)]
    assert [(folder / name).read_bytes() for name in names] == [(tmp_path / "whole" / n).read_bytes() for n in names]


@pytest.mark.slow
def test_two_dask_workers_and_one_is_killed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    distributed = pytest.importorskip("distributed", reason="clusters are those of Dask: pip install 'linksweep[dask]'")
    experiment = rollouts(options={"duration": 0.5, "every": 50})
    here = ls.ensemble(experiment, 4000, tmp_path / "here", chunk=100)
    write, written, pids = ensembles._write, [], []

    def watched(path: Path, columns: Any, about: Any) -> None:
        written.append(path.name)
        if len(written) == 3:
            os.kill(pids[0], signal.SIGKILL)
        write(path, columns, about)

    with (
        distributed.LocalCluster(n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None) as cluster,
        distributed.Client(cluster) as client,
    ):
        pids += list(client.run(os.getpid).values())
        assert len(pids) == 2 and os.getpid() not in pids
        monkeypatch.setattr(ensembles, "_write", watched)
        there = ls.ensemble(experiment, 4000, tmp_path / "there", chunk=100, client=client)
        left = client.run(os.getpid)
    assert pids[0] not in left.values()
    assert len(written) == len(set(written)) == 40
    same(here, there)


def test_compiled_functions_inside_dask_arrays():
    dask_array = pytest.importorskip("dask.array", reason="arrays are those of Dask: pip install 'linksweep[dask]'")
    robot = ls.robots.puma560()
    q = dask_array.random.default_rng(0).normal(size=(1000, 6), chunks=(300, 6))
    known = q.compute(scheduler="sync")
    f, M = robot.compile("inverse_dynamics"), robot.compile("mass_matrix")
    torques = dask_array.map_blocks(f, q, q, q, dtype=float).compute(scheduler="threads")
    np.testing.assert_array_equal(torques, f(known, known, known))
    matrices = dask_array.apply_gufunc(M, "(n)->(n,n)", q, output_dtypes=float).compute(scheduler="threads")
    np.testing.assert_array_equal(matrices, M(known))


def test_a_function_is_compiled_where_it_arrives(tmp_path: Path):
    """Another processor: its own code, whose last places may differ."""
    f = ls.robots.puma560().compile("forward_dynamics")
    (tmp_path / "f").write_bytes(pickle.dumps(f))
    script = "import pickle, numpy as np; f = pickle.load(open('f', 'rb')); print(*f(*[np.full(6, 0.3)] * 3))"
    env = {**os.environ, "LINKSWEEP_SIMD": "sse2" if os.uname().machine == "x86_64" else ""}
    run = subprocess.run([sys.executable, "-c", script], cwd=tmp_path, capture_output=True, text=True, env=env)
    there = np.array(run.stdout.split(), float)
    np.testing.assert_allclose(there, f(*[np.full(6, 0.3)] * 3), rtol=1e-11)


@pytest.mark.slow
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="needs limits on the size of files")
def test_a_full_disk_is_one_sentence(tmp_path: Path):
    (tmp_path / "experiment.toml").write_text(EXPERIMENT)
    script = textwrap.dedent("""
        import resource, signal, sys
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, 20_000))
        sys.argv = ["linksweep", "ensemble", "experiment.toml", "-o", "out", "--samples", "2000", "--chunk", "1000"]
        from linksweep.cli import main
        main()
    """)
    env = {**os.environ, "LINKSWEEP_CACHE": "off"}
    run = subprocess.run(
        [sys.executable, "-c", script], cwd=tmp_path, capture_output=True, text=True, timeout=PATIENCE, env=env
    )
    assert run.returncode == 2 and run.stderr.count("\n") == 1, run.stderr
    assert "part-000000.parquet cannot be written" in run.stderr
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == ["ensemble.json"]


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"experiment": 3}, "experiment is 3, expected a function"),
        ({"samples": 0}, "samples is 0, expected an integer of at least 1"),
        ({"chunk": 1.5}, "chunk is 1.5, expected an integer"),
        ({"seed": -1}, "seed is -1, expected an integer of at least 0"),
        ({"client": "tcp://here"}, "client is 'tcp://here', expected a dask.distributed Client"),
        ({"folder": 3}, "folder is 3, expected the path"),
        ({"experiment": lambda rng, first, count: None}, "returned None, expected columns"),
        ({"experiment": lambda rng, first, count: {"x": [1.0]}}, r"returned x of shape \(1,\), expected \(5,\)"),
    ],
)
def test_mistakes(change: dict[str, Any], says: str, tmp_path: Path):
    with pytest.raises(ArgumentError, match=says):
        ls.ensemble(**{"experiment": drawn, "samples": 5, "folder": tmp_path, "progress": False, **change})
    assert not list(tmp_path.glob("*.parquet"))


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"vary": {"q": ("normal", 0.1)}}, "a key is 'q'"),
        ({"vary": {"q0": 0.1}}, "vary: q0 is 0.1, expected"),
        ({"vary": {"q0": ("normal", -0.1)}}, "expected numbers of at least 0"),
        ({"torque": None}, "kp is a gain, expected a controller that has it"),
        ({"payloads": (-1.0,)}, "expected masses"),
        ({"payloads": ("a",)}, "payloads is .*, expected masses"),
        ({"payloads": np.ma.array([0.0, 1.0], mask=[True, False])}, "payloads is a masked array"),
        ({"vary": {"q0": ("normal", np.ma.array(np.ones(6), mask=True))}}, "vary: q0 is a masked array"),
        ({"payloads": ([1.0, 2.0], [3.0])}, "payloads is .*, expected masses"),
        ({"frame": "hand"}, "no link or frame 'hand'"),
        ({"robot": robot("urdf"), "q0": np.zeros(3)}, "no frame, .* 2 frames that may be its end effector"),
        ({"vary": {"q0": ("normal", [1.0, 2.0])}}, "expected numbers of at least 0: one, or 6"),
        ({"vary": {"q0": ("normal", [[1.0], [1.0, 2.0]])}}, "expected numbers of at least 0"),
        (
            {"torque": PD + ls.simulation.ComputedTorque(np.zeros(6), 1.0, 1.0)},
            r"kp is a gain of 2 controllers \(PD",
        ),
        ({"q0": np.zeros((2, 6))}, r"q0 has shape \(2, 6\), expected \(6,\)"),
        ({"options": {"every": 0}}, "every is 0, expected an integer"),
    ],
)
def test_mistakes_in_rollouts(change: dict[str, Any], says: str):
    with pytest.raises(ArgumentError, match=says):
        rollouts(**change)


def test_a_folder_is_for_one_ensemble(tmp_path: Path):
    ls.ensemble(rollouts(), 20, tmp_path, chunk=10)
    assert ls.ensemble(rollouts(), 20, tmp_path, chunk=10).computed == 0  # the same, made anew
    for change in ({"seed": 1}, {"chunk": 11}):
        with pytest.raises(ArgumentError, match="holds another ensemble"):
            ls.ensemble(**{"experiment": rollouts(), "samples": 20, "folder": tmp_path, "chunk": 10, **change})
    with pytest.raises(ArgumentError, match="holds another ensemble"):
        ls.ensemble(rollouts(payloads=(0.0, 2.0)), 20, tmp_path, chunk=10)


def test_the_former_name_of_torque():
    with pytest.warns(DeprecationWarning, match="torque="):
        former = rollouts(torque=None, vary={}, law=PD)
    assert former.torque is PD
    with pytest.warns(DeprecationWarning, match="torque"):
        assert getattr(former, "law") is PD  # noqa: B009  # not an attribute for type checkers
