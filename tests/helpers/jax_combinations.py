"""A loss through compiled functions and rollouts under a transformation of JAX, with all of its derivatives.

    python jax_combinations.py function|rollout float32|float64 <file.npz>

It runs in a process of its own: JAX's types and its number of devices are fixed when it starts, and a hang must not
stop the tests. A quantity that raises an error of linksweep is stored as its message. `reference` computes the same in
NumPy, over numbers that carry their derivatives.
"""

# pyright: reportMissingImports=false
from __future__ import annotations

import functools
import os
import sys
from typing import Any

import jets
import numpy as np
from scipy.linalg import block_diag

TRANSFORMATIONS = ("jit", "vmap", "scan", "fori_loop", "lax.map", "shard_map")
QUANTITIES = ("value", "grad", "jacfwd", "hessian", "hvp", "grad of grad")
CHAINED = ("scan", "fori_loop")
ROBOTS = ("planar2", "mixed3")  # the Jacobian of the first is formed, that of the second is not
BATCH, STEPS, DT = 4, 5, 0.01


class Loss:
    """The parts of the loss over (BATCH, size) numbers: a sum over rows, or a chain of them. xp: jax.numpy or NumPy."""

    def __init__(self, kind: str, f: Any, n: int, xp: Any):
        random = np.random.default_rng(n)
        size = 3 * n if kind == "function" else (2 + STEPS) * n
        self.kind, self.f, self.n, self.xp = kind, f, n, xp
        self.x, self.weights = random.uniform(-1, 1, (BATCH, size)), random.uniform(-1, 1, n)
        self.way = random.uniform(-1, 1, (BATCH, size))

    def parts(self, x: Any) -> tuple[Any, Any, Any]:
        tau = x[2 * self.n :]
        return x[: self.n], x[self.n : 2 * self.n], tau if self.kind == "function" else tau.reshape(STEPS, self.n)

    def one(self, x: Any) -> Any:
        if self.kind == "function":
            return (self.xp.sin(0.1 * self.f(*self.parts(x))) * self.weights).sum()
        q, qd = self.f(*self.parts(x))
        return ((self.xp.sin(q) + 0.1 * qd * qd) * self.weights).sum()

    def start(self, x: Any) -> tuple[Any, Any]:
        return self.parts(x[0])[:2]

    def advanced(self, state: Any, x: Any) -> tuple[Any, Any]:
        """By a step, or by a rollout from where the last one ended."""
        q, qd = state
        if self.kind == "function":
            return q + 0.02 * qd, qd + 0.02 * self.f(q, qd, self.parts(x)[2])
        q, qd = self.f(q, qd, self.parts(x)[2])
        return q[-1], qd[-1]

    def end(self, state: Any) -> Any:
        return ((self.xp.sin(state[0]) + 0.1 * state[1] * state[1]) * self.weights).sum()


@functools.cache
def reference(kind: str, chained: bool, name: str) -> dict[str, np.ndarray]:
    """The quantities, of a rollout only the first two."""
    from robots_for_tests import robot

    bot = robot(name)
    forward = jets.forward_dynamics(bot)
    loss = Loss(kind, forward if kind == "function" else jets.rollout(forward, DT), bot.nv, np)
    if chained:
        x = jets.jets(loss.x)
        total = loss.end(functools.reduce(loss.advanced, x, loss.start(x)))
        value, grad, hessian = total.v, total.g, total.h
    else:
        rows = [loss.one(jets.jets(x)) for x in loss.x]
        value, grad = sum(row.v for row in rows), np.concatenate([row.g for row in rows])
        hessian = np.asarray(block_diag(*(row.h for row in rows)))
    shape = loss.x.shape
    first = {"value": np.asarray(value), "grad": grad.reshape(shape)}
    if kind == "rollout":
        return first
    product = (hessian @ loss.way.ravel()).reshape(shape)
    return first | {
        "jacfwd": first["grad"], "hessian": hessian.reshape(*shape, *shape), "hvp": product, "grad of grad": product
    }  # fmt: skip


def transformed(jax: Any, loss: Loss, transformation: str) -> Any:
    lax, one = jax.lax, loss.one

    def sharded(x):
        from jax.sharding import Mesh, PartitionSpec

        def local(x):
            return lax.psum(sum(one(x[k]) for k in range(len(x))), "device")

        mesh = Mesh(np.array(jax.devices()[:2]), ("device",))
        whole = jax.shard_map(local, mesh=mesh, in_specs=PartitionSpec("device"), out_specs=PartitionSpec())
        return jax.jit(whole)(x)

    def scanned(x):
        return loss.end(lax.scan(lambda state, row: (loss.advanced(state, row), None), loss.start(x), x)[0])

    def looped(x):
        return loss.end(lax.fori_loop(0, BATCH, lambda k, state: loss.advanced(state, x[k]), loss.start(x)))

    return {
        "jit": jax.jit(lambda x: sum(one(x[k]) for k in range(BATCH))),
        "vmap": lambda x: jax.vmap(one)(x).sum(),
        "scan": scanned,
        "fori_loop": looped,
        "lax.map": lambda x: lax.map(one, x).sum(),
        "shard_map": sharded,
    }[transformation]


def derivatives(jax: Any, loss: Any, way: Any) -> dict[str, Any]:
    grad = jax.grad(loss)
    return {
        "value": loss,
        "grad": grad,
        "jacfwd": jax.jacfwd(loss),
        "hessian": jax.hessian(loss),
        "hvp": lambda x: jax.jvp(grad, (x,), (way,))[1],
        "grad of grad": jax.grad(lambda x: (grad(x) * way).sum()),
    }


def main(kind: str, dtype: str, file: str) -> None:
    # Optimised code of XLA, which each program runs once, would take longer to compile than all else takes.
    flags = ("xla_force_host_platform_device_count=2", "xla_backend_optimization_level=0")
    os.environ["XLA_FLAGS"] = " ".join(f"--{flag}" for flag in flags)
    import jax

    jax.config.update("jax_enable_x64", dtype == "float64")
    from robots_for_tests import robot

    import linksweep as ls
    from linksweep.errors import LinksweepError
    from linksweep.jax import wrap

    results = {}
    for name in ROBOTS:
        bot = robot(name)
        f = wrap(bot.compile("forward_dynamics") if kind == "function" else ls.rollout(bot, DT))
        loss = Loss(kind, f, bot.nv, jax.numpy)
        x, way = (jax.numpy.asarray(x, dtype) for x in (loss.x, loss.way))
        for transformation in TRANSFORMATIONS:
            for quantity, function in derivatives(jax, transformed(jax, loss, transformation), way).items():
                key = f"{transformation} {name} {quantity}"
                try:
                    results[key] = np.asarray(jax.jit(function)(x))
                except LinksweepError as error:
                    results[key] = np.array(str(error))
    np.savez(file, **results)


if __name__ == "__main__":
    main(*sys.argv[1:])
