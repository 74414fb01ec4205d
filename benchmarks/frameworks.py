"""Forward dynamics of UR5 inside JAX against packages that are written in JAX, and the gradient of a rollout.

    pip install frax adam-robotics mujoco-mjx        (frax is the fastest of them)
    python benchmarks/frameworks.py [--quick] [--cores 1] [--rk4] [--peer frax] [--peer adam] [--peer mjx]

Every package gives its own forward dynamics, checked against ours; all run in this process and take turns. A call in a
loop, a mapped batch, a scan, what each takes to compile (ours from nothing, without the disk cache), and the gradient
of a loss through 1000 steps of 256 rollouts: theirs by JAX through a scan, ours by that and by
`wrap(ls.rollout(...))`. Steps are semi-implicit Euler's, or with --rk4 Runge and Kutta's, in float64.

All run on the same processors, those that the process may use (--cores takes fewer), in the threads of XLA's one pool,
ours too. The clock and the time of all processors are both printed; with --cores 1 they are the same but for what else
runs. Arrays of some megabytes are new memory at every call. What it takes to get that from the system is part of every
figure; GLIBC_TUNABLES=glibc.malloc.hugetlb=1 makes it cheaper for all.
"""

# pyright: reportMissingImports=false, reportAttributeAccessIssue=false
from __future__ import annotations

import argparse
import importlib.util
import os
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

# What frax recommends for the CPU; the others gain or do not care.
os.environ.setdefault("XLA_FLAGS", "--xla_cpu_multi_thread_eigen=false")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ.setdefault("JAX_ENABLE_X64", "1")
os.environ.setdefault("LINKSWEEP_CACHE", "off")

import jax
import jax.numpy as jnp
import numpy as np
from measure import example, heading, load_quietly, time_of

import linksweep as ls
from linksweep.jax import wrap

DT = 1e-3
PATIENCE = 60.0  # seconds: a side that has taken longer has had its turns
Forward = Callable[[Any, Any, Any], Any]


def frax(path: Path) -> Forward:
    import frax

    theirs = frax.Robot(str(path))
    return lambda q, qd, tau: theirs.forward_dynamics(q, qd, tau, None)


def adam(path: Path) -> Forward:
    """Its articulated bodies are those of a free base: a fixed one takes the mass matrix and the bias of the joints."""
    from adam.jax import KinDynComputations

    robot = load_quietly(path)
    theirs = KinDynComputations(str(path), list(robot.joint_names), gravity=np.array([*robot.gravity, 0, 0, 0]))
    theirs.rbdalgos.math.factory._device = None  # where jit of JAX 0.10 refuses what adam 0.5 passes on
    base, still = np.eye(4), np.zeros(6)

    def forward(q: Any, qd: Any, tau: Any) -> Any:
        M = theirs.mass_matrix(base, q)[6:, 6:]
        h = theirs.bias_force(base, q, still, qd)[6:]
        return jax.scipy.linalg.solve(M, tau - h, assume_a="pos")

    return forward


def mjx(path: Path) -> Forward:
    """Its whole pipeline of a step's first half, with contacts and constraints turned off."""
    import mujoco
    from mujoco import mjx

    model = mujoco.MjModel.from_xml_string(load_quietly(path).to_urdf())  # without the meshes, which it would load
    model.opt.disableflags |= int(mujoco.mjtDisableBit.mjDSBL_CONTACT | mujoco.mjtDisableBit.mjDSBL_CONSTRAINT)
    theirs = mjx.put_model(model)
    data = mjx.make_data(theirs)

    def forward(q: Any, qd: Any, tau: Any) -> Any:
        return mjx.forward(theirs, data.replace(qpos=q, qvel=qd, qfrc_applied=tau)).qacc

    return forward


PEERS = {"frax": ("frax", frax), "adam": ("adam", adam), "mjx": ("mujoco.mjx", mjx)}


def installed(module: str) -> bool:
    try:
        return importlib.util.find_spec(module) is not None
    except ModuleNotFoundError:
        return False


Taken = tuple[float, float]  # seconds by the clock, and of all processors: the latter whatever else runs


def timed(side: Callable[[], Any]) -> Taken:
    began = time.perf_counter(), time.process_time()
    jax.block_until_ready(side())
    return time.perf_counter() - began[0], time.process_time() - began[1]


def taking_turns(sides: dict[str, Callable[[], Any]], rounds: int, again: int = 0) -> dict[str, tuple[Taken, Taken]]:
    """Of the first call, which compiles, and the best of some more. again: compile so many times more, and take the
    best; our machine code is there from the first time on, and what is left is JAX's and XLA's work.

    Each turn has a call before the one that is timed: XLA frees the memory of the side before it after that has ended,
    which would be counted here (17 ms after a call with 80 MB), and caches are the side's own again.
    """
    first = {name: timed(side) for name, side in sides.items()}
    for _ in range(again):
        jax.clear_caches()
        first = {name: min(first[name], timed(side)) for name, side in sides.items()}
    turns: dict[str, list[Taken]] = {name: [] for name in sides}
    for _ in range(rounds):
        for name, side in sides.items():
            if sum(taken[0] for taken in turns[name]) < PATIENCE:
                timed(side)
                turns[name].append(timed(side))
    best = {name: tuple(map(min, zip(*taken, strict=True))) for name, taken in turns.items()}
    return {name: (first[name], best[name]) for name in sides}  # type: ignore[misc]


def report(what: str, count: int, found: dict[str, tuple[Taken, Taken]]) -> None:
    """Each side, and of the others the ratios to ours."""
    ours = {name: taken for name, taken in found.items() if name.startswith("linksweep")}
    for name, (first, best) in found.items():
        compiled = [a - b for a, b in zip(first, best, strict=True)]
        text = f"{time_of(best[0] / count)} ({time_of(best[1] / count)} of CPU), compiled in {compiled[0]:.2f} s"
        for own, (own_first, own_best) in ours.items() if name not in ours else ():
            text += (
                f"; {best[0] / own_best[0]:.0f}x the time, {best[1] / own_best[1]:.0f}x the CPU, "
                f"{compiled[0] / (own_first[0] - own_best[0]):.1f}x to compile of {own}"
            )
        print(f"{what}, {name}: {text}", flush=True)


def step_of(forward: Forward, rk4: bool = False) -> Any:
    def euler(state: Any, tau: Any) -> Any:
        q, qd = state
        qd = qd + DT * forward(q, qd, tau)
        q = q + DT * qd
        return (q, qd), (q, qd)

    def runge_kutta(state: Any, tau: Any) -> Any:
        q, v1 = state
        a1 = forward(q, v1, tau)
        v2 = v1 + 0.5 * DT * a1
        a2 = forward(q + 0.5 * DT * v1, v2, tau)
        v3 = v1 + 0.5 * DT * a2
        a3 = forward(q + 0.5 * DT * v2, v3, tau)
        v4 = v1 + DT * a3
        a4 = forward(q + DT * v3, v4, tau)
        after = q + DT / 6 * (v1 + 2 * (v2 + v3) + v4), v1 + DT / 6 * (a1 + 2 * (a2 + a3) + a4)
        return after, after

    return runge_kutta if rk4 else euler


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="fewer turns, and 100 steps in the place of 1000")
    parser.add_argument("--cores", type=int, help="processors for all sides (Linux); all unless told")
    parser.add_argument("--rk4", action="store_true", help="steps of the scan and the gradient by RK4")
    parser.add_argument("--peer", choices=PEERS, action="append", help="against these; frax unless told")
    options = parser.parse_args()
    if options.cores:  # before JAX counts them, which it does at the first array
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[: options.cores])
    rounds, steps = (3, 100) if options.quick else (9, 1000)
    path = example("ur5_robot.urdf")
    robot = load_quietly(path)
    q, qd, tau = map(jnp.asarray, np.random.default_rng(0).uniform(-1, 1, (3, 4096, robot.nv)))
    print(heading(), f"jax {jax.__version__}, {len(os.sched_getaffinity(0))} processors for all")
    forwards: dict[str, Forward] = {"linksweep": wrap(robot.compile("forward_dynamics"))}
    for name in options.peer or ["frax"]:
        module, make = PEERS[name]
        if not installed(module):
            print(f"{name} is not installed: figures are ours alone")
            continue
        forwards[name] = make(path)

    found = taking_turns({k: partial(jax.jit(f), q[0], qd[0], tau[0]) for k, f in forwards.items()}, rounds)
    for name, forward in forwards.items():
        error = np.abs(forward(q[0], qd[0], tau[0]) - forwards["linksweep"](q[0], qd[0], tau[0])).max()
        print(f"{name}: farthest from ours {error:.1e} rad/s2")
    report("one call", 1, found)

    def loop(forward: Forward) -> Any:
        step = step_of(forward)
        turn = lambda _, state: step(state, tau[0])[0]  # noqa: E731
        return jax.jit(lambda q, qd: jax.lax.fori_loop(0, steps, turn, (q, qd)))

    sides = {k: partial(loop(f), q[0], qd[0]) for k, f in forwards.items()}
    report("a step of fori_loop", steps, taking_turns(sides, rounds))
    sides = {k: partial(jax.jit(jax.vmap(f)), q, qd, tau) for k, f in forwards.items()}
    report("vmap 4096, a sample", 4096, taking_turns(sides, rounds))

    start, torques = (q[:256], qd[:256]), jnp.asarray(np.random.default_rng(1).uniform(-5, 5, (steps, 256, robot.nv)))

    def scanned(forward: Forward, kept: int = 1) -> Any:
        """By `lax.scan`; kept: 0 the state after the last step, 1 that after each."""

        def step(state: Any, tau: Any) -> Any:
            after, _ = step_of(jax.vmap(forward), options.rk4)(state, tau)
            return after, after if kept else None

        return lambda q, qd, taus: jax.lax.scan(step, (q, qd), taus)[kept]

    sides = {k: partial(jax.jit(scanned(f, kept=0)), *start, torques) for k, f in forwards.items()}
    found = taking_turns(sides, rounds, again=3)  # the machine code is that of the calls before
    report(f"scan of {steps} steps, 256 at a time, the last state, a step", 256 * steps, found)
    rolls: dict[str, Any] = {k: scanned(f) for k, f in forwards.items()}
    whole = wrap(ls.rollout(robot, DT, integrator="rk4" if options.rk4 else "semi_implicit_euler"))
    rolls = {"linksweep rollout": whole, **rolls}  # with the state before the first step, too
    sides = {k: partial(jax.jit(f), *start, torques) for k, f in rolls.items()}
    what = f"scan or rollout of {steps} steps, 256 at a time, every state, a step"
    report(what, 256 * steps, taking_turns(sides, rounds))
    slopes = {
        name: jax.jit(jax.grad(lambda taus, f=f: sum((x**2).sum() for x in f(*start, taus))))
        for name, f in rolls.items()
    }
    sides = {k: partial(f, torques) for k, f in slopes.items()}
    report(f"gradient through {steps} steps, 256 rollouts", 1, taking_turns(sides, rounds))
    ours, *others = (np.asarray(f(torques)) for f in slopes.values())
    print(f"gradients differ by {max(np.abs(x - ours).max() / np.abs(ours).max() for x in others):.1e} of the largest")


if __name__ == "__main__":
    main()
