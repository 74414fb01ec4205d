"""Compiled functions in PyTorch: values, autograd, torch.func, torch.compile, and what does not fit."""

# pyright: reportAttributeAccessIssue=false
from __future__ import annotations

import warnings

import numpy as np
import pytest

import linksweep as ls
from linksweep.errors import ArgumentError

torch = pytest.importorskip("torch", reason="linksweep.torch needs torch, which is not installed")

pytestmark = pytest.mark.filterwarnings("ignore:.torch.jit:DeprecationWarning")  # which torch.func imports itself
STATE = np.random.default_rng(0).uniform(-1, 1, (3, 5, 6))


@pytest.fixture(scope="module")
def puma():
    return ls.robots.puma560()


@pytest.fixture(scope="module")
def inverse(puma):
    from linksweep.torch import wrap

    return wrap(puma.compile("inverse_dynamics"))


def tensors(grad: bool = False):
    return [torch.tensor(x, requires_grad=grad) for x in STATE]


def test_values(puma, inverse):
    expected = puma.inverse_dynamics(*STATE)
    assert np.array_equal(inverse(*tensors()), expected)
    q, qd, qdd = tensors()
    assert np.array_equal(inverse(qdd=qdd, q=q, qd=qd), expected)
    assert np.array_equal(inverse(q, qd[0], qdd[0]), puma.inverse_dynamics(STATE[0], STATE[1, 0], STATE[2, 0]))
    assert inverse(q[:, None], qd, qdd).shape == (5, 5, 6)
    single = inverse(*(x.float() for x in tensors()))
    assert single.dtype == torch.float32 and np.array_equal(single, puma.inverse_dynamics(*STATE.astype(np.float32)))


def test_memory_is_shared(inverse, monkeypatch):
    from linksweep.interop.torch_functions import _made

    seen = []
    wrapped = next(w for w in _made.values() if w.outer is inverse)
    own = wrapped.function

    class Watched:
        def __call__(self, *args, **named):
            seen.extend(args)
            return own(*args, **named)

        def __getattr__(self, name):
            return getattr(own, name)

    monkeypatch.setattr(wrapped, "function", Watched())
    q, qd, qdd = tensors()
    inverse(q, qd, qdd)
    assert [x.ctypes.data for x in seen] == [t.data_ptr() for t in (q, qd, qdd)]


def test_gradients(puma, inverse):
    assert torch.autograd.gradcheck(inverse, tensors(True))
    q, qd, qdd = (torch.tensor(x[0], requires_grad=True) for x in STATE)
    assert torch.autograd.gradgradcheck(inverse, (q, qd, qdd))
    shared = torch.tensor(STATE[1, 0], requires_grad=True)
    assert torch.autograd.gradcheck(lambda v: inverse(*[torch.tensor(STATE[0]), v, torch.tensor(STATE[2])]), (shared,))
    q = torch.tensor(STATE[0], requires_grad=True)
    inverse(q, *(torch.tensor(x) for x in STATE[1:])).sum().backward()
    assert np.abs(q.grad.numpy() - puma.inverse_dynamics_derivatives(*STATE)[0].sum(-2)).max() <= 1e-11


def test_functions_of_functions(puma, inverse):
    q, qd, qdd = (torch.tensor(x[0]) for x in STATE)
    expected = puma.inverse_dynamics_derivatives(*STATE[:, 0])
    for transformed in (torch.func.jacrev, torch.func.jacfwd):
        for k in range(3):
            found = transformed(inverse, k)(q, qd, qdd)
            assert np.abs(found.numpy() - expected[k]).max() <= 1e-11
    _, moved = torch.func.jvp(lambda q: inverse(q, qd, qdd), (q,), (qd,))
    assert np.abs(moved.numpy() - expected[0] @ STATE[1, 0]).max() <= 1e-11
    many = torch.tensor(STATE[0])
    slopes = torch.func.vmap(torch.func.grad(lambda q, a: inverse(q, qd, a).sum()), (0, None))(many, qdd)
    right = puma.inverse_dynamics_derivatives(STATE[0], STATE[1, 0], STATE[2, 0])[0].sum(-2)
    assert np.abs(slopes.numpy() - right).max() <= 1e-11
    hessian = torch.func.hessian(lambda q: inverse(q, qd, qdd)[1])(q)
    second = puma.compile(("derivative", ("derivative", "inverse_dynamics", "q"), "q"))(*STATE[:, 0])[1]
    assert np.abs(hessian.numpy() - second).max() <= 1e-10


def test_compile(inverse):
    def loss(q, qd, qdd):
        return (inverse(q, qd, qdd) ** 2).sum()

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of torch's own modules, at their import
        compiled = torch.compile(loss, fullgraph=True, backend="aot_eager")
        a, b = tensors(True), tensors(True)
        loss(*a).backward()
        compiled(*b).backward()
    for x, y in zip(a, b, strict=True):
        assert torch.allclose(x.grad, y.grad, rtol=1e-12)


def test_the_operator_as_torch_checks_it(inverse):
    from linksweep.interop.torch_functions import _made

    wrapped = next(w for w in _made.values() if w.outer is inverse)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.library.opcheck(wrapped.operator, tuple(tensors(True)))


def test_what_does_not_fit(inverse):
    q, qd, qdd = tensors()
    for args in (
        (q[:, :5], qd, qdd), (q, qd), (STATE[0], qd, qdd), (q.int(), qd, qdd), (q.half(), qd, qdd), (q[:3], qd, qdd),
        (q.to(torch.complex128), qd, qdd), (torch.tensor(1.0), qd, qdd),
    ):  # fmt: skip
        with pytest.raises(ArgumentError, match="expected"):
            inverse(*args)
