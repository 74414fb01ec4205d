"""Compiled functions in PyTorch: values, autograd, torch.func, torch.compile, and what does not fit."""

# pyright: reportAttributeAccessIssue=false
from __future__ import annotations

import functools
import pickle
import warnings

import jets
import numpy as np
import pytest
import robots_for_tests as oracle
from robots_for_tests import robot

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
    seen = []
    wrapped = inverse._rules
    own = wrapped.fast

    class Watched:
        def __call__(self, *args, **named):
            seen.extend(args)
            return own(*args, **named)

        def __getattr__(self, name):
            return getattr(own, name)

    monkeypatch.setattr(wrapped, "fast", Watched())
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


def test_second_derivatives_in_a_compiled_program():
    """One of the combinations below."""
    test_combination("compile", "hessian", "scalar")


def test_the_operator_as_torch_checks_it(inverse):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.library.opcheck(inverse._rules.operator.dispatched, tuple(tensors(True)))


def test_what_does_not_fit(inverse):
    q, qd, qdd = tensors()
    for args in (
        (q[:, :5], qd, qdd), (q, qd), (STATE[0], qd, qdd), (q.int(), qd, qdd), (q.half(), qd, qdd), (q[:3], qd, qdd),
        (q.to(torch.complex128), qd, qdd), (torch.tensor(1.0), qd, qdd), ("q", qd, qdd), (None, qd, qdd),
    ):  # fmt: skip
        with pytest.raises(ArgumentError, match="expected"):
            inverse(*args)


@pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors")
@pytest.mark.filterwarnings("ignore:Sparse")
@pytest.mark.parametrize("grad", [False, True])
@pytest.mark.parametrize(
    "made",
    [
        lambda x: x.to_sparse(),
        lambda x: x.to_sparse_csr(),
        lambda x: torch.nested.nested_tensor(list(x)),
        lambda x: torch.nested.nested_tensor(list(x), layout=torch.jagged),
    ],
)
def test_tensors_without_plain_memory(puma, inverse, made, grad: bool):
    q, qd, qdd = tensors()
    with pytest.raises(ArgumentError, match="expected a dense one"):
        inverse(made(q), qd.requires_grad_(grad), qdd)


def test_tensors_that_are_seen_through_a_sign(puma, inverse):
    q, qd, qdd = tensors()
    seen = torch.complex(q, -q).conj().imag  # is_neg
    assert seen.is_neg() and np.array_equal(inverse(seen, qd, qdd), inverse(q, qd, qdd))


def test_scalar_results(puma):
    """One state gives a scalar of shape (), with every kind of derivative."""
    from linksweep.torch import wrap

    energy, (q, qd) = wrap(puma.compile("kinetic_energy")), (torch.tensor(x[0]) for x in STATE[:2])
    assert energy(q, qd).shape == () and energy(q[None], qd).shape == (1,)
    assert energy(q.requires_grad_(), qd).shape == ()
    assert torch.func.grad(energy)(q.detach(), qd).shape == (6,)


def test_a_parameter_with_a_colon_in_its_name(puma):
    from linksweep.torch import wrap

    link = puma.link_names[-1]
    loaded = wrap(puma.compile("inverse_dynamics", parameters=(f"payload:{link}",)))
    state, body = [torch.tensor(x[0]) for x in STATE], torch.tensor(ls.body(1.0), requires_grad=True)
    loaded(*state, body).sum().backward()
    J = torch.func.jacfwd(loaded, 3)(*state, body.detach())
    assert torch.allclose(body.grad, J.sum(0), rtol=1e-12)
    assert torch.allclose(loaded(*state, 2 * body) - loaded(*state, body), J @ body, rtol=1e-11)


def test_without_gradients_the_dispatcher_is_left_out(inverse, monkeypatch):
    """It costs ten times what the rest of the call takes."""

    def entered(*_):
        raise AssertionError("entered")

    q, qd, qdd = tensors()
    expected = inverse(q, qd, qdd)
    monkeypatch.setattr(inverse._rules.operator, "dispatched", entered)
    assert torch.equal(inverse(q, qd, qdd), expected)
    with torch.no_grad():
        assert torch.equal(inverse(q.requires_grad_(), qd, qdd), expected)
    with torch.inference_mode():
        assert torch.equal(inverse(torch.nn.Parameter(q.detach()), qd, qdd), expected)
    for watched in (
        lambda: inverse(q, qd, qdd),
        lambda: torch.func.grad(lambda x: inverse(x, qd, qdd).sum())(qd),
        lambda: torch.func.vmap(inverse)(qd, qd, qdd),
        lambda: torch.func.jvp(lambda x: inverse(x, qd, qdd), (qd,), (qd,)),
    ):
        with pytest.raises(AssertionError, match="entered"):
            watched()


def test_pickle(inverse):
    """As a DataLoader with spawn needs it."""
    again = pickle.loads(pickle.dumps(inverse))
    assert torch.equal(again(*tensors()), inverse(*tensors())) and again._rules is inverse._rules


QUANTITIES: tuple[str, ...] = ("value", "grad", "hessian")


@pytest.mark.slow
@pytest.mark.parametrize("result", ["scalar", "vector"])
@pytest.mark.parametrize("quantity", QUANTITIES)
@pytest.mark.parametrize("way", ["eager", "compile", "func", "compile func", "func compile"])
def test_combination(way: str, quantity: str, result: str):
    """Against numbers that carry their derivatives, with results that are one number or several."""
    for name in ("planar2", "mixed3"):  # the Jacobian of the first is formed, that of the second is not
        loss, (q, expected) = case(name, result)
        x = torch.tensor(q)
        value, grad, hessian = loss, torch.func.grad(loss), torch.func.hessian(loss)
        compiled = functools.partial(torch.compile, fullgraph=True, backend="aot_eager")
        functions = {
            "eager": (value, autograd(loss), functools.partial(torch.autograd.functional.hessian, loss)),
            "compile": (compiled(value), autograd(compiled(value)), compiled(hessian)),
            "func": (value, grad, hessian),
            "compile func": (compiled(value), compiled(grad), compiled(hessian)),
            "func compile": (
                compiled(value), torch.func.grad(torch.compile(value, backend="aot_eager")),
                torch.func.hessian(torch.compile(value, backend="aot_eager")),
            ),
        }[way]  # fmt: skip
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of torch's own modules, at their import
            found = dict(zip(QUANTITIES, functions, strict=True))[quantity](x).detach().numpy()
        assert found.shape == expected[quantity].shape
        assert np.abs(found - expected[quantity]).max() <= 1e-8 * np.abs(expected[quantity]).max()


def autograd(loss):
    def grad(x):
        leaf = x.clone().requires_grad_()
        return torch.autograd.grad(loss(leaf), leaf)[0]

    return grad


def case(name: str, result: str):
    """A loss over (q, qd, tau) or (q, qd) of one state, where it is taken, and its derivatives there."""
    from linksweep.torch import wrap

    bot, n = robot(name), robot(name).nv
    random = np.random.default_rng(1)
    x, weights = random.uniform(-1, 1, 3 * n), random.uniform(-1, 1, n)
    f = wrap(bot.compile("forward_dynamics" if result == "vector" else "kinetic_energy"))
    plain, w = jets.forward_dynamics(bot), torch.tensor(weights)

    def loss(x):
        q, qd, tau = x[:n], x[n : 2 * n], x[2 * n :]
        return torch.sin(0.1 * f(q, qd, tau)) @ w if result == "vector" else f(q, qd) ** 2 + (tau**2).sum()

    y = jets.jets(x)
    q, qd, tau = y[:n], y[n : 2 * n], y[2 * n :]
    if result == "vector":
        right = (np.sin(0.1 * plain(q, qd, tau)) * weights).sum()
    else:
        energy = (qd * (oracle.mass_matrix(bot.model, q) * qd).sum(1)).sum() * 0.5
        right = energy * energy + (tau * tau).sum()
    return loss, (x, dict(zip(QUANTITIES, map(np.asarray, (right.v, right.g, right.h)), strict=True)))
