"""Forward dynamics of UR5 inside JAX: a call in a loop, a mapped batch, a scan, and what each takes to compile.

    python benchmarks/frameworks.py

No pure JAX package of rigid-body dynamics is among the test dependencies: these are our own figures, without a ratio.
"""

# pyright: reportMissingImports=false, reportAttributeAccessIssue=false
from __future__ import annotations

import time
from typing import Any

import jax
import numpy as np
from measure import alternate, example, load_quietly, time_of

from linksweep.jax import wrap


def main() -> None:
    jax.config.update("jax_enable_x64", True)
    robot = load_quietly(example("ur5_robot.urdf"))
    forward = wrap(robot.compile("forward_dynamics"))
    q, qd, tau = np.random.default_rng(0).uniform(-1, 1, (3, 4096, robot.nv))

    def step(state: Any, _: Any = None) -> Any:
        q, qd = state
        qd = qd + 1e-3 * forward(q, qd, tau[0])
        return (q + 1e-3 * qd, qd), None

    loop = jax.jit(lambda q, qd: jax.lax.fori_loop(0, 1000, lambda _, state: step(state)[0], (q, qd)))
    mapped = jax.jit(jax.vmap(forward))
    scan = jax.jit(jax.vmap(lambda q, qd: jax.lax.scan(step, (q, qd), None, 1000)[0]))
    sides: Any = (
        ("a step of fori_loop", 1000, loop, (q[0], qd[0])),
        ("vmap 4096, a sample", 4096, mapped, (q, qd, tau)),
        ("scan of 1000 steps, vmap 256, a step", 256_000, scan, (q[:256], qd[:256])),
    )
    for name, count, function, args in sides:
        began = time.perf_counter()
        jax.block_until_ready(function(*args))
        first = time.perf_counter() - began
        (best,) = alternate([lambda f=function, a=args: jax.block_until_ready(f(*a))], 3)
        print(f"{name}: {time_of(best / count)}; first call {first:.2f} s")


if __name__ == "__main__":
    main()
