"""Estimate the payload of a PUMA from its motion, with a gradient through the rollout in JAX."""

import numpy as np

import linksweep as ls

try:
    import jax  # pyright: ignore[reportMissingImports]
    import jax.numpy as jnp  # pyright: ignore[reportMissingImports]

    from linksweep.jax import wrap
except ImportError:
    raise SystemExit(print("This example needs jax: pip install linksweep[jax]")) from None

jax.config.update("jax_enable_x64", True)
robot = ls.robots.puma560()
forward = wrap(robot.compile("forward_dynamics", parameters=("payload",)))
start, dt, steps = jnp.zeros(6), 0.01, 100
torques = jnp.asarray(np.random.default_rng(0).normal(0.0, 3.0, (steps, 6)) + robot.gravity_forces(np.zeros(6)))


def rollout(mass):
    """Where the joints are after each step, with a point mass in the tool's origin."""
    payload = jnp.zeros(10).at[0].set(mass)

    def step(state, tau):
        q, qd = state
        qd = qd + dt * forward(q, qd, tau, payload)
        q = q + dt * qd
        return (q, qd), q

    return jax.lax.scan(step, (start, jnp.zeros(6)), torques)[1]


true = 2.5
seen = rollout(true) + 1e-4 * np.random.default_rng(1).normal(size=(steps, 6))  # an encoder's noise
jacobian = jax.jit(jax.jacfwd(rollout))
mass = 0.5
for _ in range(8):  # Gauss and Newton
    error, J = seen - rollout(mass), jacobian(mass)
    mass = mass + float((J * error).sum() / (J * J).sum())
print(f"mass of the payload: {mass:.4f} kg, true {true} kg")
loss = jax.jit(jax.grad(lambda m: ((seen - rollout(m)) ** 2).sum()))
print(f"gradient of the squared error: {float(loss(0.5)):.3g} at the first guess, {float(loss(mass)):.1g} at the last")
assert abs(mass - true) < 0.01
