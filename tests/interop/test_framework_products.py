"""Jacobians are not formed in JAX and PyTorch unless they are tiny: products instead, with the same results."""

from __future__ import annotations

import numpy as np
import pytest
from robots_for_tests import close, robot

import linksweep as ls
from linksweep.functions import frameworks as derived

STATE = np.random.default_rng(0).uniform(-1, 1, (3, 4, 3))
ITEMS = ["forward_dynamics", "mass_matrix"]


@pytest.fixture
def jax():
    """JAX in float64."""
    jax = pytest.importorskip("jax", reason="linksweep.jax needs jax, which is not installed")
    before = jax.config.jax_enable_x64
    jax.config.update("jax_enable_x64", True)
    yield jax
    jax.config.update("jax_enable_x64", before)


def test_which_jacobians_are_large():
    two, arm = (bot.compile("forward_dynamics") for bot in (ls.robots.planar(2), robot("puma560")))
    assert not derived.by_products(two, two.inputs) and derived.by_products(arm, arm.inputs)
    assert not derived.by_products(robot("tree14").compile(("derivative", "gravity_forces", "q")), ("q",))


def test_jax(jax, monkeypatch: pytest.MonkeyPatch):
    from linksweep.jax import wrap

    function, (q, qd, tau) = robot("mixed3").compile(ITEMS), STATE

    def everything() -> list[np.ndarray]:
        f = wrap(function)

        def loss(q, qd, tau):
            qdd, M = f(q, qd, tau)
            return (qdd**2).sum() + (M**2).sum()

        def end(q):
            def step(state, _):
                q, qd = state
                return (q + 0.01 * qd, qd + 0.01 * f(q, qd, tau[0])[0]), None

            return jax.lax.scan(step, (q, qd[0]), None, length=5)[0][0].sum()

        slopes = jax.grad(loss, (0, 1, 2))
        return [
            *jax.vmap(slopes)(q, qd, tau),
            *jax.jit(jax.vmap(slopes, (0, None, None)))(q, qd[0], tau[0]),
            jax.grad(loss, 1)(q, qd[0], tau),  # shared by a batch
            jax.hessian(loss)(q[0], qd[0], tau[0]),
            jax.jit(jax.vmap(jax.hessian(loss)))(q, qd, tau),  # tangents are mapped, what they are of is not
            jax.jit(jax.vmap(jax.jacfwd(f)))(q, qd, tau)[0],
            jax.jacfwd(f)(q[0], qd[0], tau[0])[1],
            jax.jacrev(f, 1)(q[0], qd[0], tau[0])[0],
            jax.jit(jax.grad(end))(q[0]),
            jax.jvp(lambda x: f(x, qd, tau)[0], (q,), (qd,))[1],
        ]

    monkeypatch.setattr(derived, "SMALL", 10**6)
    whole = everything()
    monkeypatch.setattr(derived, "SMALL", 0)
    for found, expected in zip(everything(), whole, strict=True):
        assert close(found, expected, 1e-12)


def test_torch(monkeypatch: pytest.MonkeyPatch):
    torch = pytest.importorskip("torch", reason="linksweep.torch needs torch, which is not installed")
    from linksweep.torch import functions

    def everything(name: str) -> list[np.ndarray]:
        f = functions.wrap(robot(name).compile(ITEMS))
        q, qd, tau = (torch.tensor(x, requires_grad=True) for x in (STATE[0], STATE[1, 0], STATE[2]))
        qdd, M = f(q, qd, tau)
        slopes = torch.autograd.grad((qdd**2).sum() + (M**2).sum(), (q, qd, tau), create_graph=True)
        alone = torch.autograd.grad(f(q, qd, tau)[0].sum(), (q, qd, tau))  # nothing is asked of M
        again = torch.autograd.grad((slopes[0] ** 2).sum(), q)
        held = [x.detach() for x in (q, qd, tau)]
        mapped = torch.func.vmap(torch.func.grad(lambda x, t: (f(x, held[1], t)[0] ** 2).sum()))(held[0], held[2])
        return [x.detach().numpy() for x in (*slopes, *alone, *again, mapped)]

    monkeypatch.setattr(derived, "SMALL", 10**6)
    whole = everything("mixed3")
    monkeypatch.setattr(derived, "SMALL", 0)
    monkeypatch.setattr(functions, "_rules", _fresh(functions))
    for found, expected in zip(everything("mixed3"), whole, strict=True):
        assert close(found, expected, 1e-12)


def _fresh(module):
    """Wrapped functions that remember no choice: operators of other names."""
    made: dict[str, object] = {}

    def rules(function):
        name = f"products{len(made)}"
        made[name] = module._Function(function, name)
        return made[name]

    return rules
