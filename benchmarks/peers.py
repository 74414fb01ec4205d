"""linksweep and every peer that is installed, in one run: by robot, by length, by batch.

    python benchmarks/peers.py [--quick] [--robot NAME ...] [--without PEER ...] [--json FILE] [--plots FOLDER]

Peers: Pinocchio from Python and in a C++ loop (native.py), MuJoCo from Python and its `rollout`, CasADi's generated C,
adam and MJX under JAX. Each must give the numbers of linksweep first; what is not installed, or gives others, is named
in a sentence. All sides of a row take turns, one thread each. LOSS marks a row where a peer is faster.
"""

# pyright: reportMissingImports=false, reportAttributeAccessIssue=false
from __future__ import annotations

import argparse
import ctypes
import importlib.metadata
import math
import os
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

os.environ.setdefault("XLA_FLAGS", "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1")

import native
import numpy as np
import pinocchio as pin
from measure import alternate, example, heading, load_quietly, table, time_of, write_json

import linksweep as ls
from linksweep.backends.interpreter import Interpreter
from linksweep.robot import conventions

ROBOTS = {"UR5": "ur5_robot.urdf", "Panda": "panda.urdf", "ANYmal": "anymal.urdf", "Talos": "talos_reduced.urdf"}
FUNCTIONS = ("inverse_dynamics", "forward_dynamics", "mass_matrix")
LENGTHS, BATCHES = (2, 4, 8, 16, 32, 64, 128), (1, 4, 16, 64, 256, 1024, 4096, 65_536)
BATCH, FEW = 4096, 256  # samples, and of peers that are called one by one
WHOLE = 64  # samples from which on a call of the C++ loop measures Pinocchio, and not ctypes (10 us)
TURN = 0.002  # seconds: short beside a time slice, so that a busy machine leaves good turns
JAX_UP_TO = 6  # joints; XLA takes minutes for many more
SAME = 1e-6  # of the largest result

Side = tuple[Callable[[], Any], int]  # one turn, and how many samples that is


class Case:
    """A robot, a function, its samples in our order and in Pinocchio's, and our result."""

    def __init__(self, robot: ls.Robot, model: Any, function: str, batch: int = BATCH) -> None:
        self.robot, self.model, self.function = robot, model, function
        rng = np.random.default_rng(0)
        q = np.stack([robot.random(rng) for _ in range(min(batch, BATCH))])
        self.q = np.resize(q, (batch, robot.nq))
        self.v, self.x = rng.uniform(-1, 1, (2, batch, robot.nv))
        self.compiled = robot.compile(function)
        self.args = (self.q,) if function == "mass_matrix" else (self.q, self.v, self.x)
        self.out = np.asarray(self.compiled(*self.args))
        few = slice(0, min(FEW, batch))
        self.theirs = tuple(
            np.ascontiguousarray(a)
            for a in conventions.to_pinocchio(robot, model, q=self.q[few], v=self.v[few], a=self.x[few])
        )

    def ours(self) -> Side:
        return lambda: self.compiled(*self.args, out=self.out), len(self.q)

    def check(self, found: Any, order: np.ndarray | None = None) -> None:
        """The first row of a peer against ours; order: where our joints are in the peer's."""
        mine, found = self.out[0], np.array(found, float)
        if self.function == "mass_matrix":
            found = found.reshape(mine.shape)
            found = np.triu(found) + np.triu(found, 1).T
            found = found if order is None else found[np.ix_(order, order)]
        elif order is not None:
            found = found[order]
        if not np.allclose(mine, found, rtol=0, atol=SAME * np.abs(mine).max()):
            raise native.Unavailable("gives other numbers")

    def pin_order(self) -> np.ndarray:
        return np.array([self.model.joints[self.model.getJointId(name)].idx_v for name in self.robot.joint_names])


# ---- the peers: each gives a side of a case, or raises with a sentence --------------------------------------------


def pinocchio_python(case: Case) -> Side:
    crba = lambda m, d, q, v, x: pin.crba(m, d, q)  # noqa: E731
    calls = {"inverse_dynamics": pin.rnea, "forward_dynamics": pin.aba, "mass_matrix": crba}
    call, model, data = calls[case.function], case.model, case.model.createData()
    rows = list(zip(*case.theirs, strict=True))
    case.check(call(model, data, *rows[0]), case.pin_order())
    return lambda: [call(model, data, *row) for row in rows], len(rows)


def pinocchio_native(case: Case) -> Side:
    side, (q, v, x) = native.Native(case.model), case.theirs
    found = side(case.function, q, v, x, case.out[0].size)
    assert found is not None
    first = found[0].reshape(case.out[0].shape).T if case.function == "mass_matrix" else found[0]  # columns in C++
    case.check(first, case.pin_order())
    return lambda: side(case.function, q, v, x), len(q)


def _mujoco_model(case: Case) -> tuple[Any, np.ndarray]:
    import mujoco

    try:
        model = mujoco.MjModel.from_xml_string(case.robot.to_urdf())
    except ValueError as error:
        raise native.Unavailable(f"refuses the URDF: {str(error).splitlines()[0]}") from None
    disabled = mujoco.mjtDisableBit.mjDSBL_CONSTRAINT | mujoco.mjtDisableBit.mjDSBL_CONTACT
    model.opt.disableflags |= int(disabled)
    model.dof_damping[:] = model.dof_frictionloss[:] = model.dof_armature[:] = 0.0
    return model, np.array([model.joint(name).dofadr[0] for name in case.robot.joint_names])


def mujoco_python(case: Case) -> Side:
    import mujoco

    model, order = _mujoco_model(case)
    data, few = mujoco.MjData(model), min(FEW, len(case.q))
    q, v, x = (np.empty((few, model.nv)) for _ in range(3))
    q[:, order], v[:, order], x[:, order] = case.q[:few], case.v[:few], case.x[:few]

    def one(q: np.ndarray, v: np.ndarray, x: np.ndarray) -> Any:
        data.qpos = q
        if case.function == "mass_matrix":
            mujoco.mj_kinematics(model, data)
            mujoco.mj_comPos(model, data)
            mujoco.mj_makeM(model, data) if hasattr(mujoco, "mj_makeM") else mujoco.mj_crb(model, data)
            return data
        data.qvel = v
        if case.function == "inverse_dynamics":
            data.qacc = x
            mujoco.mj_inverse(model, data)
            return data.qfrc_inverse
        data.qfrc_applied = x
        mujoco.mj_forward(model, data)
        return data.qacc

    found = one(q[0], v[0], x[0])
    if case.function == "mass_matrix":
        columns = []
        for unit in np.eye(model.nv):
            column = np.zeros(model.nv)
            mujoco.mj_mulM(model, data, column, unit)
            columns.append(column)
        found = np.array(columns)
    case.check(found, order)
    rows = list(zip(q, v, x, strict=True))
    return lambda: [one(*row) for row in rows], few


def mujoco_rollout(case: Case) -> Side:
    """A step of Euler's method for each sample, in MuJoCo's C loop: one forward dynamics and little else."""
    import mujoco
    from mujoco import rollout

    if case.function != "forward_dynamics":
        raise native.Unavailable("steps forward only")
    model, order = _mujoco_model(case)
    model.opt.timestep = 1e-6
    data, few = mujoco.MjData(model), FEW
    spec = int(mujoco.mjtState.mjSTATE_QFRC_APPLIED)
    start = np.zeros((few, mujoco.mj_stateSize(model, mujoco.mjtState.mjSTATE_FULLPHYSICS)))
    q, v, x = (np.empty((few, model.nv)) for _ in range(3))
    q[:, order], v[:, order], x[:, order] = case.q[:few], case.v[:few], case.x[:few]
    start[:, 1 : 1 + model.nq], start[:, 1 + model.nq : 1 + model.nq + model.nv] = q, v
    state = np.empty((few, 1, start.shape[1]))
    sensors = np.empty((few, 1, model.nsensordata))

    def run() -> None:
        rollout.rollout(model, data, start, x[:, None], control_spec=spec, nstep=1, state=state, sensordata=sensors)

    run()
    case.check((state[0, 0, 1 + model.nq : 1 + model.nq + model.nv] - v[0]) / model.opt.timestep, order)
    return run, few


def casadi_c(case: Case) -> Side:
    """C that CasADi writes for our expression, folded and shared, since the wheel of pin has no pinocchio.casadi."""
    import casadi

    program = case.robot.compile(case.function, rolled=False).program
    symbols = [casadi.SX.sym(array.name, array.size) for array in program.inputs]
    inputs = [_objects(symbol.elements()) for symbol in symbols]
    outputs = [np.empty((1, array.size), object) for array in program.outputs]
    Interpreter(program)(inputs, outputs)
    function = casadi.Function("peer", symbols, [casadi.vertcat(*outputs[0][0])])
    with tempfile.TemporaryDirectory() as folder:
        place = os.getcwd()
        os.chdir(folder)  # CasADi writes where it stands
        try:
            function.generate("peer.c", {"with_header": False})
        finally:
            os.chdir(place)
        source = Path(folder, "peer.c").read_text() + _CASADI_LOOP
        Path(folder, "all.c").write_text(source)
        options = ("-O3", "-march=native", "-ffp-contract=fast", "-fPIC", "-shared")
        command = ["gcc", *options, "all.c", "-o", "peer.so", "-lm"]
        run = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=native.PATIENCE)
        if run.returncode:
            raise native.Unavailable(f"gcc refuses its C: {run.stderr[:100]}")
        library = ctypes.CDLL(str(Path(folder, "peer.so")))
    array = np.ctypeslib.ndpointer(np.float64, flags="C")
    library.loop.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_long, ctypes.c_long, array, array, array, array]
    named = {"q": case.q, "qd": case.v, "qdd": case.x, "tau": case.x}
    args = [np.ascontiguousarray(named[a.name][:FEW]) for a in program.inputs]
    args += [args[0]] * (3 - len(args))
    out = np.empty((len(args[0]), case.out[0].size))
    sizes = [a.shape[1] for a in (*args, out)]
    call = lambda: library.loop(len(out), sizes[0], sizes[1], sizes[3], *args, out)  # noqa: E731
    call()
    case.check(out[0])
    return call, len(out)


_CASADI_LOOP = """
void loop(long count, long nq, long nv, long nout, const double *a, const double *b, const double *c, double *out) {
  static casadi_real w[200000];
  for (long k = 0; k < count; ++k) {
    const casadi_real *arg[8] = {a + k * nq, b + k * nv, c + k * nv};
    casadi_real *res[2] = {out + k * nout};
    peer(arg, res, 0, w, 0);
  }
}
"""


def _objects(items: list[Any]) -> np.ndarray:
    found = np.empty((1, len(items)), object)
    for k, item in enumerate(items):
        found[0, k] = item
    return found


def _jax(case: Case) -> Any:
    import jax

    if case.robot.nv > JAX_UP_TO:
        raise native.Unavailable("not tried: XLA compiles for minutes")
    jax.config.update("jax_enable_x64", True)
    return jax


def _mapped(case: Case, jax: Any, one: Callable[..., Any], order: np.ndarray | None, q: Any, v: Any, x: Any) -> Side:
    function = jax.jit(jax.vmap(one))
    given = [jax.numpy.asarray(a) for a in (q, v, x)]
    case.check(np.asarray(function(*given))[0], order)
    return lambda: function(*given).block_until_ready(), len(q)


def adam_jax(case: Case) -> Side:
    """Joint blocks of adam's floating-base formulas, the base at rest; forward dynamics by a solve with M."""
    jax = _jax(case)
    from adam.jax import KinDynComputations

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "robot.urdf")
        path.write_text(case.robot.to_urdf())
        dynamics = KinDynComputations(str(path), list(case.robot.joint_names))
    base, rest = np.eye(4), np.zeros(6)

    def one(q: Any, v: Any, x: Any) -> Any:
        M = dynamics.mass_matrix(base, q)[6:, 6:]
        if case.function == "mass_matrix":
            return M
        h = dynamics.bias_force(base, q, rest, v)[6:]
        return M @ x + h if case.function == "inverse_dynamics" else jax.numpy.linalg.solve(M, x - h)

    return _mapped(case, jax, one, None, case.q, case.v, case.x)


def mjx(case: Case) -> Side:
    if case.function == "mass_matrix":
        raise native.Unavailable("not compared")
    jax = _jax(case)
    from mujoco import mjx as package

    model, order = _mujoco_model(case)
    on_device = package.put_model(model)
    start = package.make_data(on_device)

    def one(q: Any, v: Any, x: Any) -> Any:
        data = start.replace(qpos=q, qvel=v)
        if case.function == "inverse_dynamics":
            return package.inverse(on_device, data.replace(qacc=x)).qfrc_inverse
        return package.forward(on_device, data.replace(qfrc_applied=x)).qacc

    q, v, x = (np.empty_like(a) for a in (case.q, case.v, case.x))
    q[:, order], v[:, order], x[:, order] = case.q, case.v, case.x
    return _mapped(case, jax, one, order, q, v, x)


PEERS: dict[str, tuple[str, Callable[[Case], Side]]] = {  # the package whose version is printed, and the side
    "pin": ("pin", pinocchio_python),
    "pin C++": ("pin", pinocchio_native),
    "MuJoCo": ("mujoco", mujoco_python),
    "rollout": ("mujoco", mujoco_rollout),
    "CasADi C": ("casadi", casadi_c),
    "adam, JAX": ("adam-robotics", adam_jax),
    "MJX": ("mujoco-mjx", mjx),
}


def sides_of(case: Case, peers: list[str], notes: dict[str, str]) -> dict[str, Side]:
    found = {"linksweep": case.ours()}
    for name in peers:
        try:
            found[name] = PEERS[name][1](case)
        except (ImportError, native.Unavailable) as error:
            notes[f"{name}, {case.robot.name} {case.function}"] = str(error)
        except Exception as error:  # a peer's own fault must not end the run
            notes[f"{name}, {case.robot.name} {case.function}"] = f"{type(error).__name__}: {str(error)[:150]}"
    return found


def per_sample(sides: dict[str, Side], rounds: int) -> dict[str, float]:
    seconds = alternate([run for run, _ in sides.values()], rounds, TURN)
    return {name: s / count for (name, (_, count)), s in zip(sides.items(), seconds, strict=True)}


# ---- the three tables --------------------------------------------------------------------------------------------


def robots(names: list[str], peers: list[str], rounds: int, notes: dict[str, str]) -> list[dict[str, Any]]:
    rows = []
    for name in names:
        path = example(ROBOTS[name])
        robot, model = load_quietly(path), pin.buildModelFromUrdf(str(path))
        for function in FUNCTIONS:
            case = Case(robot, model, function)
            times = per_sample(sides_of(case, peers, notes), rounds)
            rows.append({"robot": name, "function": function, "times": times})
            print(f"  {name} {function}: {time_of(times['linksweep'])}", flush=True)
    return rows


def lengths(peers: list[str], rounds: int, notes: dict[str, str], sizes: tuple[int, ...]) -> list[dict[str, Any]]:
    rows = []
    for n in sizes:
        robot = ls.robots.chain(n)
        model = pin.buildModelFromXML(robot.to_urdf())
        for function in FUNCTIONS[:2]:
            times = per_sample(sides_of(Case(robot, model, function, 1024), peers, notes), rounds)
            rows.append({"n": n, "function": function, "times": times})
    return rows


def batches(peers: list[str], rounds: int, notes: dict[str, str]) -> list[dict[str, Any]]:
    path = example(ROBOTS["UR5"])
    robot, model = load_quietly(path), pin.buildModelFromUrdf(str(path))
    rows = []
    for batch in BATCHES:
        for function in FUNCTIONS[:2]:
            loops = [peer for peer in peers if peer != "pin C++" or batch >= WHOLE]
            times = per_sample(sides_of(Case(robot, model, function, batch), loops, notes), rounds)
            rows.append({"batch": batch, "function": function, "times": times})
    return rows


def printed(rows: list[dict[str, Any]], title: Callable[[dict[str, Any]], str]) -> str:
    names = list(dict.fromkeys(name for row in rows for name in row["times"]))
    cells: list[tuple[str, ...]] = [("", *names, "least ratio", "")]
    for row in rows:
        times = row["times"]
        others = [t for name, t in times.items() if name != "linksweep"]
        ratio = min(others, default=math.inf) / times["linksweep"]
        shown = [time_of(times[name]) if name in times else "-" for name in names]
        cells.append((title(row), *shown, f"{ratio:.1f}x", "LOSS" if ratio < 1 else ""))
    return table(cells)


TABLES: dict[str, tuple[str, Callable[[dict[str, Any]], str]]] = {
    "robots": ("Robots, a sample of a batch of 4096", lambda row: f"{row['robot']}: {row['function']}"),
    "lengths": ("Chains of n links, a sample of a batch of 1024", lambda row: f"n = {row['n']}: {row['function']}"),
    "batches": ("UR5, a sample of a batch", lambda row: f"batch {row['batch']}: {row['function']}"),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--robot", nargs="*", choices=list(ROBOTS), default=list(ROBOTS))
    parser.add_argument("--table", nargs="*", choices=list(TABLES), default=list(TABLES))
    parser.add_argument("--without", nargs="*", choices=list(PEERS), default=[])
    parser.add_argument("--quick", action="store_true", help="few rounds and short chains: a first look and no result")
    parser.add_argument("--json", metavar="FILE")
    parser.add_argument("--plots", metavar="FOLDER")
    options = parser.parse_args()
    rounds = 3 if options.quick else 25
    peers = [name for name in PEERS if name not in options.without]
    print(heading() + "".join(f", {name} {v}" for name, v in _versions(peers)))
    print("one thread\n")
    notes: dict[str, str] = {}
    loops = [name for name in peers if name.startswith("pin")]
    made = {
        "robots": lambda: robots(options.robot, peers, rounds, notes),
        "lengths": lambda: lengths(loops, rounds, notes, LENGTHS[:4] if options.quick else LENGTHS),
        "batches": lambda: batches(loops, rounds, notes),
    }
    tables = {}
    for name in options.table:
        tables[name] = made[name]()
        heading_of, title = TABLES[name]
        print(f"\n{heading_of}\n{printed(tables[name], title)}", flush=True)
    print("\n" + "\n".join(f"{who}: {why}" for who, why in _grouped(notes).items()))
    flat = [{"table": name, **row} for name, rows in tables.items() for row in rows]
    write_json(options.json, flat)
    if options.plots:
        import drawn

        for path in drawn.save(flat, Path(options.plots)):
            print(path)


def _versions(peers: list[str]) -> list[tuple[str, str]]:
    found = []
    for name in dict.fromkeys(PEERS[peer][0] for peer in peers):
        try:
            found.append((name, importlib.metadata.version(name)))
        except importlib.metadata.PackageNotFoundError:
            continue
    return [pair for pair in found if pair[0] != "pin"]


def _grouped(notes: dict[str, str]) -> dict[str, str]:
    """Peers that are left out everywhere for one reason are named once."""
    reasons: dict[tuple[str, str], list[str]] = {}
    for who, why in notes.items():
        peer, _, where = who.partition(", ") if not who.startswith("adam") else ("adam, JAX", "", who[11:])
        reasons.setdefault((peer, why), []).append(where)
    return {(peer if len(where) > 3 else f"{peer}, {'; '.join(where)}"): why for (peer, why), where in reasons.items()}


if __name__ == "__main__":
    main()
