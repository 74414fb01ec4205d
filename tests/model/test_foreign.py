"""Masked arrays, PyTorch's tensors and JAX's tracers are refused in one sentence, wherever arrays come in."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from command_line import GRIPPER
from error_checks import refused

import linksweep as ls
from linksweep import motion, plots, simulation
from linksweep.errors import ArgumentError

PUMA: Any = ls.robots.puma560()
BODY: Any = ls.body
Z = np.zeros(6)
T = np.linspace(0.0, 1.0, 5)
MASKED = np.ma.masked_equal([0.0, 0.0, 9999.0, 0.0, 0.0, 0.0], 9999.0)


def fake(package: str, name: str) -> Any:
    """As good as one: it makes an array of zeros, silently."""
    kind = type(name, (), {"__module__": package, "__array__": lambda self, *a, **k: np.zeros(6)})
    return type("Child", (kind,), {"__module__": "somewhere"})()


@pytest.mark.parametrize(
    ("value", "says"),
    [
        (MASKED, "q is a masked array, .*np.ma.filled"),
        (np.ma.masked_array(np.zeros((4, 6))), "q is a masked array"),
        ([0.0, 0.0, np.ma.masked, 0.0, 0.0, 0.0], "q is a masked array"),
        ([[0.0] * 6, MASKED], "q is a masked array"),
        (fake("torch", "Tensor"), r"q is a PyTorch tensor, .*x.detach\(\).cpu\(\).numpy\(\)"),
        ([fake("torch", "Tensor")] * 6, "q is a PyTorch tensor"),
        (fake("jax._src.core", "Tracer"), r"q is a JAX tracer, .*np.asarray\(x\)"),
    ],
)
def test_functions_refuse(value: Any, says: str):
    refused(ArgumentError, f"inverse_dynamics: {says}", lambda: PUMA.inverse_dynamics(value, Z, Z))
    compiled = PUMA.compile("inverse_dynamics")
    refused(ArgumentError, says, lambda: compiled(value, Z, Z))
    refused(ArgumentError, says, lambda: compiled(qd=Z, qdd=Z, q=value))
    single = PUMA.compile("inverse_dynamics", dtype="float32", backend="interpreter")
    refused(ArgumentError, says, lambda: single(value, Z, Z))
    shared = PUMA.compile("inverse_dynamics", parameters=("payload",), backend="interpreter")
    refused(ArgumentError, says, lambda: shared(value, Z, Z, ls.body(1.0)))


def coupled(tmp_path: Path) -> Any:
    (tmp_path / "gripper.urdf").write_text(GRIPPER)
    return ls.load(tmp_path / "gripper.urdf", mimic="couple")


WHERE: dict[str, Callable[[Path], Any]] = {
    "forces by frame": lambda _: PUMA.inverse_dynamics(Z, Z, Z, f_ext={"tool": MASKED}),
    "forces": lambda _: PUMA.inverse_dynamics(Z, Z, Z, f_ext=np.ma.zeros((6, 6))),
    "base motion": lambda _: PUMA.inverse_dynamics(Z, Z, Z, base_motion=np.ma.zeros(9)),
    "out": lambda _: PUMA.gravity_forces(Z, out=np.ma.zeros(6)),
    "one of several out": lambda _: PUMA.compile(["mass_matrix", "gravity_forces"])(
        Z, out=(np.zeros((6, 6)), np.ma.zeros(6))
    ),
    "payload": lambda _: PUMA.compile("gravity_forces", parameters=("payload",), backend="interpreter")(
        Z, np.ma.zeros(10)
    ),
    "a point": lambda _: PUMA.jacobian(Z, "tool", point=np.ma.zeros(3)),
    "integrate": lambda _: PUMA.integrate(MASKED, Z),
    "dt": lambda _: PUMA.integrate(Z, Z, np.ma.masked_array(0.1)),
    "difference": lambda _: PUMA.difference(Z, MASKED),
    "gravity": lambda _: PUMA.with_gravity(np.ma.zeros(3)),
    "a payload's centre": lambda _: PUMA.with_payload("tool", 1.0, np.ma.zeros(3)),
    "a payload's mass": lambda _: PUMA.with_payload("tool", np.ma.masked_array(1.0)),
    "a payload's inertia": lambda _: PUMA.with_payload("tool", 1.0, inertia=np.ma.zeros((3, 3))),
    "body": lambda _: BODY(1.0, np.ma.zeros(3)),
    "lock": lambda _: PUMA.lock("joint1", at=[np.ma.masked_array(0.5)]),
    "limits": lambda _: PUMA.with_limits(MASKED),
    "factor": lambda _: PUMA.factor(Z).solve(MASKED),
    "simulate": lambda _: ls.simulate(PUMA, MASKED),
    "rates": lambda _: ls.simulate(PUMA, Z, MASKED),
    "torque": lambda _: ls.simulate(PUMA, Z, torque=MASKED),
    "a law": lambda _: simulation.PD(MASKED, 1.0, 1.0),
    "a torque function": lambda _: ls.simulate(PUMA, Z, torque=lambda t, q, qd: MASKED, duration=0.002),
    "dense": lambda _: ls.simulate(PUMA, Z, duration=0.01, integrator="adaptive").dense(np.ma.zeros(1)),  # type: ignore
    "points": lambda _: motion.Quintic(np.ma.zeros((2, 6)), [0.0, 1.0]),
    "times": lambda _: motion.Quintic(np.zeros((2, 6)), np.ma.masked_array([0.0, 1.0])),
    "inverse kinematics": lambda _: PUMA.inverse_kinematics(np.ma.masked_array(np.eye(4)), "tool"),
    "its start": lambda _: PUMA.inverse_kinematics(np.eye(4), "tool", MASKED),
    "operators": lambda _: ls.operators(PUMA, MASKED),
    "the paper's order": lambda _: ls.operators(PUMA, Z).to_paper(MASKED),
    "an operator": lambda _: ls.operators(PUMA, Z).H @ np.ma.zeros(36),
    "general arms": lambda _: ls.robots.general("RR").robot(np.ma.zeros((2, 13))),
    "coupled": lambda path: coupled(path).inverse_dynamics(np.ma.zeros(1), [0.0], [0.0]),
    "time series": lambda _: plots.time_series(PUMA, T, np.ma.zeros((5, 6))),
    "sketch": lambda _: plots.sketch(PUMA, MASKED),
    "animate": lambda path: plots.animate(PUMA, T, np.ma.zeros((5, 6)), path / "a.gif"),
    "lines": lambda _: plots.lines(T, {"a": np.ma.zeros(5)}),
    "phase": lambda _: plots.phase(PUMA, np.ma.zeros((5, 6)), np.zeros((5, 6))),
    "symbolic": lambda _: ls.robots.planar(2).symbolic("gravity_forces").lambdify()(np.ma.zeros(2)),
    "a DH row": lambda _: ls.Robot.from_dh([{"mass": 1.0, "com": np.ma.zeros(3)}], convention="modified"),
}


@pytest.mark.parametrize("where", WHERE)
def test_masked_arrays_are_refused_everywhere(where: str, tmp_path: Path):
    with pytest.raises(ArgumentError, match="is a masked array, whose masked entries would count as numbers"):
        WHERE[where](tmp_path)


def test_what_only_looks_alike_is_taken():
    class Tensor(np.ndarray):  # somebody else's
        pass

    tau = PUMA.inverse_dynamics(Z.view(Tensor), Z, Z)
    np.testing.assert_array_equal(tau, PUMA.inverse_dynamics(Z, Z, Z))
    np.testing.assert_array_equal(tau, PUMA.inverse_dynamics([0.0] * 6, (0,) * 6, np.zeros(6, np.int64)))


def test_nothing_is_imported_to_know_them():
    code = (
        "import sys, numpy as np, linksweep as ls\n"
        "ls.robots.puma560().gravity_forces([0.0] * 6)\n"
        "assert not {'torch', 'jax'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_torch():
    torch = pytest.importorskip("torch", reason="tensors are those of torch, which is not installed")
    for q in (torch.zeros(6), torch.zeros(6, requires_grad=True), torch.nn.Parameter(torch.zeros(6))):
        refused(ArgumentError, "q is a PyTorch tensor", lambda q=q: PUMA.gravity_forces(q))
        assert PUMA.gravity_forces(q.detach().cpu().numpy()).shape == (6,)


def test_jax():
    jax = pytest.importorskip("jax", reason="arrays are those of jax, which is not installed")
    for transform in (jax.jit, jax.vmap, jax.grad):
        with pytest.raises(ArgumentError, match="q is a JAX tracer"):
            transform(PUMA.gravity_forces)(jax.numpy.zeros((2, 6)) if transform is jax.vmap else jax.numpy.zeros(6))
    assert PUMA.gravity_forces(jax.numpy.zeros(6)).shape == (6,)  # numbers that are there are taken
