"""Compiled functions in JAX: values, transformations, types, and buffers that do not fit."""

from __future__ import annotations

import pickle
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from pin_models import random_robot
from scale import at_scale

import linksweep as ls
from linksweep.errors import ArgumentError, BackendError

jax = pytest.importorskip("jax", reason="linksweep.jax needs jax, which is not installed")
check_grads = pytest.importorskip("jax.test_util").check_grads
jnp = jax.numpy


@pytest.fixture(autouse=True)
def double():
    before = jax.config.jax_enable_x64
    jax.config.update("jax_enable_x64", True)
    yield
    jax.config.update("jax_enable_x64", before)


@pytest.fixture(scope="module")
def puma():
    return ls.robots.puma560()


@pytest.fixture(scope="module")
def forward(puma):
    from linksweep.jax import wrap

    return wrap(puma.compile("forward_dynamics"))


STATE = np.random.default_rng(0).uniform(-1, 1, (3, 50, 6))


def relative(a, b):
    return np.abs(np.asarray(a) - b).max() / np.abs(b).max()


def test_values_jit_vmap_and_batches(puma, forward):
    q, qd, tau = STATE
    expected = puma.forward_dynamics(q, qd, tau)
    for found in (
        forward(q, qd, tau), jax.jit(forward)(q, qd, tau), jax.vmap(forward)(q, qd, tau), forward(tau=tau, q=q, qd=qd)
    ):  # fmt: skip
        assert np.array_equal(found, expected)
    shared = jax.jit(jax.vmap(forward, (0, None, None)))(q, qd[0], tau[0])
    assert np.array_equal(shared, puma.forward_dynamics(q, qd[0], tau[0]))
    nested = jax.vmap(jax.vmap(forward, (0, None, None)), (None, 0, 0))(q, qd[:7], tau[:7])
    assert np.array_equal(nested, puma.forward_dynamics(q[None], qd[:7, None], tau[:7, None]))
    assert forward(q[None], qd[0], tau[:, None]).shape == (50, 50, 6)
    assert forward(q[:0], qd[:0], tau[:0]).shape == (0, 6)
    single = forward(*(x.astype(np.float32) for x in STATE))
    assert single.dtype == np.float32 and np.array_equal(single, puma.forward_dynamics(*STATE.astype(np.float32)))


def test_large_batches_in_threads_of_xla(puma, forward):
    """Enough work for several threads, in batches that are no whole number of blocks: the same numbers for all."""
    random = np.random.default_rng(4)
    compiled = puma.compile("forward_dynamics")
    for count in (4097, 30_011):
        q, qd, tau = random.uniform(-1, 1, (3, count, 6))
        assert np.array_equal(jax.jit(forward)(q, qd, tau), compiled(q, qd, tau))
        assert np.array_equal(jax.jit(jax.vmap(forward, (0, None, 0)))(q, qd[0], tau), compiled(q, qd[0], tau))
        single = [x.astype(np.float32) for x in (q, qd, tau)]
        assert np.array_equal(jax.jit(forward)(*single), puma.compile("forward_dynamics", dtype="float32")(*single))
    nested = jax.jit(jax.vmap(jax.vmap(forward, (0, None, None)), (None, 0, 0)))(q, qd[:3], tau[:3])
    assert np.array_equal(nested, compiled(q[None], qd[:3, None], tau[:3, None]))

    def loop(q, qd):
        turn = lambda state, _: ((state[0], forward(*state, tau)), None)  # noqa: E731
        return jax.lax.scan(turn, (q, qd), None, length=20)[0][1]

    scanned = jax.jit(loop)
    expected = qd
    for _ in range(20):
        expected = compiled(q, expected, tau)
    with ThreadPoolExecutor(4) as pool:
        for found in pool.map(lambda _: scanned(q, qd), range(8)):
            assert np.array_equal(found, expected, equal_nan=True)


def test_nothing_is_copied_by_vmap(forward):
    mapped = jax.jit(jax.vmap(forward, (0, None, None)))
    text = str(mapped.lower(STATE[0], STATE[1, 0], STATE[2, 0]).compile().as_text())
    assert "f64[1,6]" in text and "f64[50,6]" in text  # the shared rows stay one row


def test_derivatives(puma, forward):
    q, qd, tau = STATE[:, 0]
    expected = puma.forward_dynamics_derivatives(q, qd, tau)
    for transformed in (jax.jacfwd, jax.jacrev):
        for found, right in zip(jax.jit(transformed(forward, (0, 1, 2)))(q, qd, tau), expected, strict=True):
            assert relative(found, right) <= 1e-12
    slopes = jax.vmap(jax.grad(lambda q, tau: forward(q, qd, tau).sum()), (0, None))(STATE[0], tau)
    assert relative(slopes, puma.forward_dynamics_derivatives(STATE[0], qd, tau)[0].sum(-2)) <= 1e-12
    _, moved = jax.jvp(lambda q: forward(q, qd, tau), (q,), (qd,))
    assert relative(moved, expected[0] @ qd) <= 1e-12
    check_grads(forward, (q, qd, tau), order=2, atol=1e-2, rtol=1e-4)  # steps of 1e-4 in its differences


def test_hessian_against_nested_requests(puma):
    from linksweep.jax import wrap

    q, qd, qdd = STATE[:, 0]
    f = wrap(puma.compile("inverse_dynamics"))
    found = jax.jit(jax.hessian(f))(q, qd, qdd)
    right = puma.compile(("derivative", ("derivative", "inverse_dynamics", "q"), "q"))(q, qd, qdd)
    assert relative(found, right) <= 1e-11


def test_scan_and_loops(puma, forward):
    q, qd, tau = STATE[:, 0]

    def step(state, _):
        q, qd = state
        qd = qd + 1e-3 * forward(q, qd, tau)
        return (q + 1e-3 * qd, qd), q

    (_, _), path = jax.jit(lambda q, qd: jax.lax.scan(step, (q, qd), None, 100))(q, qd)
    for k in range(100):
        assert relative(path[k], q) <= 1e-12
        qd = qd + 1e-3 * puma.forward_dynamics(q, qd, tau)
        q = q + 1e-3 * qd
    slope = jax.grad(lambda tau: jax.lax.scan(step, tuple(STATE[:2, 0]), None, 10)[1][-1].sum())(tau)
    assert slope.shape == (6,) and np.isfinite(slope).all()


def test_several_results_parameters_and_quaternions(puma):
    from linksweep.jax import wrap

    both = wrap(puma.compile(["mass_matrix", ("pose", puma.ee)]))
    M, T = jax.jit(both)(STATE[0])
    assert np.array_equal(M, puma.mass_matrix(STATE[0])) and np.array_equal(T, puma.pose(STATE[0], puma.ee))
    loaded = wrap(puma.compile("inverse_dynamics", parameters=("payload",)))
    Y = jax.jacfwd(loaded, 3)(*STATE[:, 0], ls.body(1.0))
    assert relative(loaded(*STATE[:, 0], ls.body(2.0)), puma.inverse_dynamics(*STATE[:, 0]) + Y @ ls.body(2.0)) <= 1e-12
    free = random_robot(("free", "revolute"), seed=3)
    q = free.random(np.random.default_rng(1))
    qd = np.random.default_rng(2).normal(size=7)
    slope = jax.grad(wrap(free.compile("potential_energy")))(q)
    assert relative(slope @ free.coordinate_rates(q, qd), free.gravity_forces(q) @ qd) <= 1e-12


def test_what_does_not_fit(puma, forward):
    q, qd, tau = STATE[:, 0]
    for args in ((q[:5], qd, tau), (1.0, qd, tau), (q, qd), (STATE[0], STATE[1, :7], tau), (q * 1j, qd, tau)):
        with pytest.raises(ArgumentError, match="expected"):
            forward(*args)
        with pytest.raises(ArgumentError):
            jax.jit(forward)(*args)
    from linksweep.jax import wrap

    masked = np.ma.masked_array(q, mask=[True] + [False] * 5)
    for wrong in ("q", None, np.array(["1"] * 6), [None] * 6, object(), masked, jax.random.key(0), [[1.0], [1.0, 2.0]]):
        with pytest.raises(ArgumentError, match="forward_dynamics: q "):
            forward(wrong, qd, tau)
        with pytest.raises(ArgumentError, match="rollout: tau "):
            wrap(ls.rollout(puma, 0.01))(q, qd, wrong)
    with pytest.raises(BackendError, match="expected machine code"):
        wrap(puma.compile("mass_matrix", backend="interpreter"))
    with pytest.raises(BackendError, match="expected machine code"):
        wrap(ls.rollout(puma, 0.01, backend="interpreter"))
    with pytest.raises(ArgumentError, match="expected a compiled function"):
        wrap(puma)


def test_one_function_is_registered_once(puma, forward):
    """However often it is wrapped, also from a pickle."""
    from linksweep.jax import wrap
    from linksweep.jax.targets import _registered

    q, qd, tau = STATE[:, 0]
    forward(q, qd, tau)
    before = len(_registered)
    again, copied = wrap(puma.compile("forward_dynamics")), pickle.loads(pickle.dumps(forward))
    assert np.array_equal(again(q, qd, tau), copied(q, qd, tau)) and len(_registered) == before
    roll = wrap(ls.rollout(puma, 0.01))
    alike = pickle.loads(pickle.dumps(roll))
    assert all(np.array_equal(a, b) for a, b in zip(roll(q, qd, tau[None]), alike(q, qd, tau[None]), strict=True))


SHARDED = """
import os, re
os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=2"
import jax, numpy as np
jax.config.update("jax_enable_x64", True)
from jax.sharding import Mesh, NamedSharding, PartitionSpec
import linksweep as ls
from linksweep.jax import wrap
puma = ls.robots.puma560()
f, expected = wrap(puma.compile("forward_dynamics")), puma.forward_dynamics
q, qd, tau = np.random.default_rng(0).uniform(-1, 1, (3, 8, 6))
split = NamedSharding(Mesh(np.array(jax.devices()), ("x",)), PartitionSpec("x"))
shared = jax.vmap(f, (0, None, 0))
grad = jax.vmap(jax.grad(lambda *args: f(*args).sum()))
for function, args, right in (
    (f, (q, qd, tau), expected(q, qd, tau)),
    (f, (q, qd[0], tau), expected(q, qd[0], tau)),
    (shared, (q, qd[0], tau), expected(q, qd[0], tau)),
    (grad, (q, qd, tau), puma.forward_dynamics_derivatives(q, qd, tau)[0].sum(-2)),
):
    given = [jax.device_put(x, split) if x.ndim == 2 else x for x in args]
    found = jax.jit(function)(*given)
    text = jax.jit(function).lower(*given).compile().as_text()
    assert found.sharding.is_equivalent_to(split, 2) and not re.search("all-gather|all-to-all|permute", text)
    assert np.abs(found - right).max() <= 1e-12 * np.abs(right).max()
    whole = function(*args)
    assert np.array_equal(whole, found)
"""


def test_arrays_on_several_devices_stay_there():
    done = subprocess.run([sys.executable, "-c", SHARDED], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr[-3000:]


LOADED = """
import sys, pickle
import jax, numpy as np
jax.config.update("jax_enable_x64", True)
from jax.export import deserialize
forward, roll = pickle.load(open(sys.argv[1], "rb"))
exported = [deserialize(open(file, "rb").read()) for file in sys.argv[2:5]]
for wrapped, program in zip((forward, forward, roll), exported):
    wrapped.register(program)
q, qd, tau = np.random.default_rng(0).uniform(-1, 1, (3, 4, 6))
value, slope, pulled = exported[0].call(q, qd, tau), exported[1].call(q, qd, tau), exported[2].call(q, qd, tau[:, None])
assert np.array_equal(value, forward(q, qd, tau))
assert np.array_equal(slope, jax.grad(lambda q: forward(q, qd, tau).sum())(q))
assert np.array_equal(pulled, jax.grad(lambda t: roll(q, qd, t)[0].sum(), 0)(tau[:, None]))
"""


def test_export(puma, forward, tmp_path):
    """A program with its derivatives, called in a process that only registers the machine code."""
    pytest.importorskip("flatbuffers", reason="jax.export needs flatbuffers, which is not installed")
    from linksweep.jax import export, wrap

    roll, (batch,) = wrap(ls.rollout(puma, 0.01)), jax.export.symbolic_shape("batch")
    some, torques = jax.ShapeDtypeStruct((batch, 6), "float64"), jax.ShapeDtypeStruct((4, 1, 6), "float64")
    start = jax.ShapeDtypeStruct((4, 6), "float64")
    slope = jax.grad(lambda q, qd, tau: forward(q, qd, tau).sum())
    programs = [
        export(jax.jit(forward))(some, some, some),
        export(jax.jit(slope))(some, some, some),
        export(jax.jit(jax.grad(lambda q, qd, tau: roll(q, qd, tau)[0].sum(), 2)))(start, start, torques),
    ]
    (tmp_path / "wrapped").write_bytes(pickle.dumps((forward, roll)))
    files = [tmp_path / f"program{k}" for k in range(3)]
    for file, program in zip(files, programs, strict=True):
        file.write_bytes(program.serialize())
    command = [sys.executable, "-c", LOADED, str(tmp_path / "wrapped"), *map(str, files)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr[-3000:]


ABUSE = """
import sys
import jax, numpy as np
jax.config.update("jax_enable_x64", True)
import linksweep as ls
from linksweep.jax.targets import register
from linksweep.functions.frameworks import checked
name = register("test", checked(ls.robots.puma560().compile("forward_dynamics")), "float64")
rng, refused, right = np.random.default_rng(0), 0, 0
S = jax.ShapeDtypeStruct
for k in range(int(sys.argv[1])):
    lengths = rng.integers(0, 4, size=rng.integers(0, 5))
    shapes = [tuple(rng.choice([0, 1, 2, 5, 6, 7], size=n).tolist()) for n in lengths]
    kinds = [rng.choice(["float64", "float32", "int32", "complex64"]) for _ in shapes]
    out = [S(tuple(rng.choice([0, 1, 2, 6], size=rng.integers(0, 4)).tolist()), rng.choice(["float64", "float32"]))
           for _ in range(rng.integers(1, 3))]
    if k % 4 == 0:
        shapes, kinds, out = [(2, 6), (1, 6), (2, 6)], ["float64"] * 3, [S((2, 6), "float64")]
    if k % 4 == 1:
        out = [S((2, 6), "float64")]
        shapes, kinds = [(2, 6), (int(rng.integers(1, 4)), 6), (2, int(rng.integers(5, 8)))], ["float64"] * 3
    try:
        jax.block_until_ready(jax.ffi.ffi_call(name, out)(*(np.ones(s, t) for s, t in zip(shapes, kinds))))
        right += 1
    except Exception as error:
        assert "compiled for" in str(error), error
        refused += 1
print(right, refused)
"""


@pytest.mark.parametrize("calls", [120, pytest.param(at_scale(1_000, 10_000), marks=pytest.mark.slow)])
def test_buffers_of_any_shape_are_refused_and_never_read(calls: int):
    """The handler itself, behind the checks of `wrap`, in a process of its own."""
    done = subprocess.run([sys.executable, "-c", ABUSE, str(calls)], capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr[-2000:]
    right, refused = map(int, done.stdout.split())
    assert right >= calls // 4 and refused >= calls // 4
