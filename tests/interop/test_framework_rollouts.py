"""Rollouts in JAX and PyTorch: values and gradients are those of `ls.rollout`, whatever is mapped, shared, compiled."""

# pyright: reportAttributeAccessIssue=false
from __future__ import annotations

import shutil
import subprocess
import sys
import warnings

import numpy as np
import pytest
from robots_for_tests import close, robot

import linksweep as ls
from linksweep.errors import ArgumentError

STEPS = 12
random = np.random.default_rng(0)
Q0, QD0, WAY = random.uniform(-1, 1, (3, 5, 3))
TAU, TAU_WAY = random.uniform(-1, 1, (2, STEPS, 5, 3))
W_Q, W_QD = random.uniform(-1, 1, (2, STEPS + 1, 5, 3))


@pytest.fixture(scope="module")
def roll():
    return ls.rollout(robot("mixed3"), 0.01)


@pytest.fixture
def jax():
    """JAX in float64."""
    jax = pytest.importorskip("jax", reason="linksweep.jax needs jax, which is not installed")
    before = jax.config.jax_enable_x64
    jax.config.update("jax_enable_x64", True)
    yield jax
    jax.config.update("jax_enable_x64", before)


@pytest.fixture
def torch():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of torch's own modules, at their import
        yield pytest.importorskip("torch", reason="linksweep.torch needs torch, which is not installed")


def differences(loss, step: float = 1e-4) -> float:
    """The slope at 0, by six points."""
    pairs = [loss(k * step) - loss(-k * step) for k in (1, 2, 3)]
    return float(45 * pairs[0] - 9 * pairs[1] + pairs[2]) / (60 * step)


def test_jax(jax, roll):
    from linksweep.jax import wrap

    f, jnp = wrap(roll), jax.numpy
    expected = roll(Q0, QD0, TAU)
    for found in (f(Q0, QD0, TAU), jax.jit(f)(Q0, QD0, TAU), jax.vmap(f, (0, 0, 1), 1)(Q0, QD0, TAU)):
        assert all(np.array_equal(a, b) for a, b in zip(found, expected, strict=True))

    def loss(q0, qd0, tau):
        q, qd = f(q0, qd0, tau)
        return (W_Q * q**2 + W_QD * jnp.sin(qd)).sum()

    slopes = jax.grad(loss, (0, 1, 2))
    found = jax.jit(slopes)(Q0, QD0, TAU)
    along = sum((np.asarray(s) * way).sum() for s, way in zip(found, (WAY, WAY, TAU_WAY), strict=True))
    by_differences = differences(lambda h: loss(Q0 + h * WAY, QD0 + h * WAY, TAU + h * TAU_WAY))
    assert abs(along - by_differences) <= 1e-8 * abs(by_differences)

    def one(q0, qd0, tau, w_q, w_qd):
        q, qd = f(q0, qd0, tau)
        return (w_q * q**2 + w_qd * jnp.sin(qd)).sum()

    each = jax.vmap(jax.grad(one, (0, 1, 2)), (0, 0, 1, 1, 1), (0, 0, 1))(Q0, QD0, TAU, W_Q, W_QD)
    assert all(close(a, b, 1e-12) for a, b in zip(each, found, strict=True))
    # Shared by the batch: the sum over it. Only some mapped, and twice.
    whole = jax.grad(loss, (0, 2))(Q0, QD0[0], TAU[:, :1]), jax.grad(loss, 1)(Q0, QD0[0], TAU)
    assert whole[0][1].shape == (STEPS, 1, 3) and whole[1].shape == (3,)
    apart = jax.grad(loss, 1)(Q0, np.broadcast_to(QD0[0], (5, 3)), TAU)
    assert close(whole[1], np.asarray(apart).sum(0), 1e-12)
    twice = jax.vmap(jax.vmap(f, (0, None, None)), (None, 0, 1))(Q0, QD0, TAU)
    assert np.array_equal(twice[0][2, 4], roll(Q0[4], QD0[2], TAU[:, 2])[0])
    # jacrev maps over weights alone
    J = jax.jacrev(lambda q0: f(q0, QD0[0], TAU[:, 0])[0][-1])(Q0[0])
    assert close(np.asarray(J)[1], jax.grad(lambda q0: f(q0, QD0[0], TAU[:, 0])[0][-1, 1])(Q0[0]), 1e-12)
    single = f(*(x.astype(np.float32) for x in (Q0, QD0, TAU)))
    assert single[0].dtype == np.float32 and close(single[0], expected[0], 1e-5)  # inputs rounded to float32
    assert f(Q0[:0], QD0[:0], TAU[:, :0])[0].shape == (STEPS + 1, 0, 3)


def test_jax_in_threads_of_xla(jax):
    """Enough work for several threads, by batches that are no whole number of blocks: the same numbers."""
    from linksweep.jax import wrap

    roll, random = ls.rollout(robot("puma560"), 1e-3, integrator="semi_implicit_euler"), np.random.default_rng(3)
    f = jax.jit(wrap(roll))
    pull = jax.jit(lambda given, weights: jax.vjp(wrap(roll), *given)[1](weights))
    for count, steps in ((301, 100), (37, 400), (1, 3000)):
        q, qd = random.uniform(-1, 1, (2, count, 6))
        given = q, qd, random.uniform(-1, 1, (steps, count, 6))
        w_q, w_qd = weights = tuple(random.uniform(-1, 1, (2, steps + 1, count, 6)))
        expected = (*roll(*given), *roll.vjp(*given, w_q, w_qd))
        found = (*f(*given), *pull(given, weights))
        assert all(np.array_equal(a, b) for a, b in zip(found, expected, strict=True))


ABUSE = """
import sys
import jax, numpy as np
jax.config.update("jax_enable_x64", True)
import linksweep as ls
from linksweep.jax.rollouts import JaxRollout
dtype, other = sys.argv[2:]
node = JaxRollout(ls.rollout(ls.robots.planar(2), 0.01))._node
made = states, gradients = [node.registered(what, dtype) for what in ("states", "gradients")]
S, rng, refused, right = jax.ShapeDtypeStruct, np.random.default_rng(0), 0, 0
whole = {
    states: ([(3, 2), (3, 2), (1, 1), (4, 3, 2)], [(5, 3, 2), (5, 3, 2)]),
    gradients: ([(5, 3, 2)] * 4 + [(1, 1), (4, 3, 2)], [(3, 2), (3, 2), (4, 3, 2)]),
}
for k in range(int(sys.argv[1])):
    name = made[k % 2]
    given, out = (list(x) for x in whole[name])
    kinds = [dtype] * (len(given) + len(out))
    if k % 3:
        place = rng.integers(len(kinds))
        shapes, at = (given, place) if place < len(given) else (out, place - len(given))
        what = rng.integers(4)
        if what == 0:
            kinds[place] = other
        elif what == 1:
            shapes[at] = tuple(rng.choice([0, 1, 2, 3, 4, 5], size=rng.integers(0, 4)).tolist())
        elif what == 2:
            axis = rng.integers(len(shapes[at]))
            shapes[at] = tuple(n + (rng.choice([-1, 1, 2]) if i == axis else 0) for i, n in enumerate(shapes[at]))
        else:
            del shapes[at], kinds[place]
    results = [S(shape, kind) for shape, kind in zip(out, kinds[len(given):])]
    arrays = [np.zeros(shape, kind) for shape, kind in zip(given, kinds)]
    try:
        jax.block_until_ready(jax.ffi.ffi_call(name, results)(*arrays))
        right += 1
    except jax.errors.JaxRuntimeError as error:
        assert "another type or shape" in str(error), error
        refused += 1
print(right, refused)
"""


@pytest.mark.parametrize("types", [("float64", "float32"), ("float32", "float64")])
def test_jax_refuses_buffers_of_other_shapes(jax, types: tuple[str, str], count: int = 150):
    """Only results that are written in full, or arguments that all rollouts share, may differ from what was meant."""
    command = [sys.executable, "-c", ABUSE, str(count), *types]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr[-2000:]
    right, refused = map(int, done.stdout.split())
    assert right >= count // 3 and refused >= count // 2


def test_jax_nan_stays_in_its_rollout(jax, roll):
    from linksweep.jax import wrap

    q0 = Q0.copy()
    q0[1, 0] = np.nan
    q = np.asarray(wrap(roll)(q0, QD0, TAU)[0])
    right = roll(Q0, QD0, TAU)[0]
    assert np.isnan(q[1:, 1]).all() and np.array_equal(q[:, [0, 2, 3, 4]], right[:, [0, 2, 3, 4]])


def test_jax_refuses_when_traced(jax, roll):
    from linksweep.jax import wrap

    f = wrap(roll)
    for args in (
        (Q0, QD0, TAU[..., :2]),
        (Q0, QD0, TAU[0, 0]),
        (Q0[:3], QD0, TAU),
        (1.0, QD0, TAU),
        (Q0 * 1j, QD0, TAU),
    ):
        with pytest.raises(ArgumentError, match="expected"):
            jax.jit(f)(*args)


LARGE = """
import sys
from concurrent.futures import ThreadPoolExecutor
import jax, numpy as np
jax.config.update("jax_enable_x64", sys.argv[1] == "float64")
import linksweep as ls
from linksweep.jax import wrap
f = wrap(ls.rollout(ls.robots.puma560(), 1e-3, integrator="semi_implicit_euler"))
q0, qd0 = np.random.default_rng(0).uniform(-1, 1, (2, 300, 6))
slope = jax.jit(jax.value_and_grad(lambda tau: sum((x ** 2).mean() for x in f(q0, qd0, tau))))

def descend(_):
    tau = jax.numpy.zeros((200, 300, 6))
    for _ in range(10):
        value, g = slope(tau)
        tau = tau - 10 * g  # not waited for: calls queue up
    return float(value)

with ThreadPoolExecutor(2) as pool:
    print(*pool.map(descend, range(2)))
"""


@pytest.mark.parametrize("cores", [(), ("taskset", "-c", "0")])
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_jax_large_arrays_do_not_wait_for_each_other(jax, dtype: str, cores: tuple[str, ...]):
    """Callbacks whose arguments are copied by the threads that run them have hung in JAX, on one core always."""
    if cores and shutil.which(cores[0]) is None:
        pytest.skip("taskset is not installed")
    command = [*cores, sys.executable, "-c", LARGE, dtype]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr[-2000:]
    values = [float(value) for value in done.stdout.split()]
    assert np.isfinite(values).all() and values[0] == values[1]


@pytest.mark.filterwarnings("ignore:.torch.jit:DeprecationWarning")  # which torch.func imports itself
def test_torch(torch, roll):
    from linksweep.torch import wrap

    f = wrap(roll)
    expected = roll(Q0, QD0, TAU)
    given = [torch.tensor(x) for x in (Q0, QD0, TAU)]
    mapped = torch.func.vmap(f, (0, 0, 1), 1)(*given)
    for found in (f(*given), mapped):
        assert all(np.array_equal(a, b) for a, b in zip(found, expected, strict=True))
    w_q, w_qd = torch.tensor(W_Q), torch.tensor(W_QD)

    def one(q0, qd0, tau, w_q, w_qd):
        q, qd = f(q0, qd0, tau)
        return (w_q * q**2 + w_qd * torch.sin(qd)).sum()

    def loss(*x):
        return one(x[0], x[1], x[2], w_q, w_qd)

    leaves = [x.clone().requires_grad_() for x in given]
    loss(*leaves).backward()
    found = [x.grad for x in leaves]
    along = sum(float((s * torch.tensor(way)).sum()) for s, way in zip(found, (WAY, WAY, TAU_WAY), strict=True))
    ways = [torch.tensor(way) for way in (WAY, WAY, TAU_WAY)]
    by_differences = differences(lambda h: loss(*(x + h * way for x, way in zip(given, ways, strict=True))))
    assert abs(along - by_differences) <= 1e-8 * abs(by_differences)
    each = torch.func.vmap(torch.func.grad(one, (0, 1, 2)), (0, 0, 1, 1, 1), (0, 0, 1))(*given, w_q, w_qd)
    assert all(close(a.numpy(), b.numpy(), 1e-12) for a, b in zip(each, found, strict=True))
    shared = torch.tensor(QD0[0], requires_grad=True)
    loss(given[0], shared, given[2]).backward()
    apart = torch.tensor(np.broadcast_to(QD0[0], (5, 3)).copy(), requires_grad=True)
    loss(given[0], apart, given[2]).backward()
    assert close(shared.grad.numpy(), apart.grad.sum(0).numpy(), 1e-12)
    J = torch.func.jacrev(lambda q0: f(q0, given[1][0], given[2][:, 0])[0][-1])(given[0][0])
    slope = torch.func.grad(lambda q0: f(q0, given[1][0], given[2][:, 0])[0][-1, 1])(given[0][0])
    assert close(J[1].numpy(), slope.numpy(), 1e-12)
    again = torch.tensor(TAU, requires_grad=True)
    compiled = torch.compile(lambda tau: loss(given[0], given[1], tau), fullgraph=True, backend="aot_eager")
    compiled(again).backward()
    assert close(again.grad.numpy(), found[2].numpy(), 1e-12)
    single = f(*(x.float() for x in given))
    assert single[0].dtype == torch.float32 and close(single[0].numpy(), expected[0], 1e-5)  # inputs rounded


def test_torch_refuses(torch, roll):
    from linksweep.torch import wrap

    f, (q0, qd0, tau) = wrap(roll), (torch.tensor(x) for x in (Q0, QD0, TAU))
    for args in (
        (q0, qd0, tau[..., :2]),
        (q0, qd0, tau[0, 0]),
        (q0[:3], qd0, tau),
        (Q0, qd0, tau),
        (q0.int(), qd0, tau),
    ):
        with pytest.raises(ArgumentError, match="expected"):
            f(*args)
    leaf = q0.clone().requires_grad_()
    (slope,) = torch.autograd.grad((f(leaf, qd0, tau)[0] ** 2).sum(), leaf, create_graph=True)
    with pytest.raises(ArgumentError, match="second derivatives"):
        slope.sum().backward()


def test_no_rollouts_at_all(roll):
    q, qd = roll(Q0[:0], QD0[:0], TAU[:, :0])
    assert q.shape == qd.shape == (STEPS + 1, 0, 3)
    assert roll.vjp(Q0[:0], QD0[:0], TAU[:, :0], q)[2].shape == (STEPS, 0, 3)
