"""Universal and cylindrical joints against two 1-DOF joints in series with a massless link between them.

Coordinates are the same in both, so that whatever is asked of one can be asked of the other.
"""

# pyright: reportArgumentType=false
from __future__ import annotations

import ctypes
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pin_models import random_inertial, random_placement

import linksweep as ls
from linksweep.errors import DescriptionError
from linksweep.files.columns import joint_columns
from linksweep.functions.c_export import export_c
from linksweep.joints import KINDS, kind_of
from linksweep.mechanism.canonical import aligning_rotation
from linksweep.model.assembly import Part, assemble
from linksweep.model.formats.dh import from_dh
from linksweep.model.model import Joint, Limits, Placement
from linksweep.simulation import simulate

AXIS = tuple((np.array([1.0, -2.0, 0.5]) / np.sqrt(5.25)).tolist())
NONE = Limits()
NEW = ("universal", "cylindrical")


def robots(kind: str, armature: float = 0.0, limits: Limits = NONE) -> tuple[ls.Robot, ls.Robot]:
    """A chain R, kind, kind, P, and the same with one degree of freedom each."""
    rng = np.random.default_rng(7)
    at, bodies = [random_placement(rng) for _ in range(5)], [random_inertial(rng) for _ in range(4)]
    losses = {"damping": 0.3, "friction": 0.2, "armature": armature}
    whole, series = [], []
    second = "revolute" if kind == "universal" else "prismatic"
    for k, axis in ((1, AXIS), (2, (0.0, 1.0, 0.0))):
        joint = Joint(f"j{k}", kind, axis, at[k], **losses, limits=limits)
        across = tuple(aligning_rotation(axis)[:, 0].tolist()) if kind == "universal" else axis
        inner = replace(joint, name=f"j{k}.1", kind="revolute")
        outer = replace(joint, name=f"j{k}.2", kind=second, axis=across, placement=Placement())
        parent = "first" if k == 1 else "link1"
        whole.append(Part(f"link{k}", parent, joint, bodies[k]))
        series += [Part(f"cross{k}", parent, inner), Part(f"link{k}", f"cross{k}", outer, bodies[k])]
    first = Part("first", "base", Joint("first", "revolute", AXIS, at[0]), bodies[0])
    last = Part("last", "link2", Joint("last", "prismatic", placement=at[3]), bodies[3])
    tool = Part("tool", "last", Joint("mount", "fixed", placement=at[4]))
    found = [ls.Robot(assemble("r", [first, *middle, last, tool], base="base")) for middle in (whole, series)]
    return found[0], found[1]


def close(a: Any, b: Any, times: float = 1e-12) -> None:
    scale = max(1.0, float(np.abs(b).max()))
    assert np.allclose(a, b, rtol=0, atol=times * scale), float(np.abs(np.asarray(a) - b).max()) / scale


def state(seed: int = 0) -> Any:
    return np.random.default_rng(seed).uniform(-1, 1, (3, 4, 6))


@pytest.mark.slow
@pytest.mark.cases(1)
@pytest.mark.parametrize("kind", NEW)
@pytest.mark.parametrize("armature", [0.0, 0.2])
def test_dynamics_by_every_method(kind: str, armature: float):
    one, two = robots(kind, armature)
    assert (one.nq, one.nv, len(one.link_names)) == (6, 6, 4) and two.nv == 6
    q, qd, qdd = state()
    tau = two.inverse_dynamics(q, qd, qdd, "newton_euler", dissipation=True)
    for method in one.methods("inverse_dynamics"):
        close(one.inverse_dynamics(q, qd, qdd, method, dissipation=True), tau)
    for method in one.methods("forward_dynamics"):
        close(one.forward_dynamics(q, qd, tau, method, dissipation=True), qdd, 1e-9)
    M = two.mass_matrix(q)
    for method in one.methods("mass_matrix"):
        close(one.mass_matrix(q, method), M)
    close(one.mass_matrix_inverse(q) @ M, np.broadcast_to(np.eye(6), M.shape), 1e-9)
    close(one.kinetic_energy(q, qd), two.kinetic_energy(q, qd))
    close(one.momentum(q, qd), two.momentum(q, qd))
    for options in ({"rolled": True}, {"base_parameters": True}):
        close(one.compile("inverse_dynamics", **options)(q, qd, qdd), two.inverse_dynamics(q, qd, qdd))


@pytest.mark.cases(1)
@pytest.mark.parametrize("kind", NEW)
def test_kinematics_and_their_rates(kind: str):
    one, two = robots(kind)
    q, qd, _ = state(1)
    close(one.pose(q, "tool"), two.pose(q, "tool"))
    for reference in ("world_aligned", "local", "world"):
        close(one.jacobian(q, "tool", reference=reference), two.jacobian(q, "tool", reference=reference))
        rate = one.jacobian_derivative(q, qd, "tool", reference=reference)
        close(rate, two.jacobian_derivative(q, qd, "tool", reference=reference))


@pytest.mark.cases(1)
@pytest.mark.parametrize("kind", NEW)
@pytest.mark.parametrize("function", ["inverse_dynamics", "forward_dynamics"])
@pytest.mark.slow
def test_derivatives(kind: str, function: str):
    one, two = robots(kind, 0.1)
    q, qd, x = (row[0] for row in state(2))
    last = "qdd" if function == "inverse_dynamics" else "tau"
    for by in ("q", "qd", last):
        request = ("derivative", function, by)
        close(one.compile([request])(q, qd, x), two.compile([request])(q, qd, x), 1e-9)


@pytest.mark.quick
@pytest.mark.parametrize("kind", NEW)
def test_coordinates(kind: str):
    one, two = robots(kind, limits=Limits(-0.5, 0.25, 2.0, 3.0))
    q, v, _ = state(3)
    close(one.integrate(q, v, 0.3), q + 0.3 * v)
    close(one.difference(q, q + v), v)
    close(one.coordinate_rates(q, v), v)
    assert (one.neutral() == 0).all() and (one.normalize(q) == q).all()
    drawn = np.array([one.random(np.random.default_rng(k)) for k in range(50)])
    inside = (np.abs(drawn[:, 1:5] + 0.125) <= 0.375).all()
    assert inside == (kind == "universal")  # a cylindrical joint has no limits
    if kind == "universal":
        assert np.array_equal(one.limits.lower, two.limits.lower) and np.array_equal(one.limits.upper, two.limits.upper)


@pytest.mark.cases(1)
@pytest.mark.parametrize("kind", NEW)
@pytest.mark.parametrize("integrator", ["rk4", "semi_implicit_euler"])
def test_simulation(kind: str, integrator: str):
    one, two = robots(kind, 0.1)
    q, qd, _ = (row[0] for row in state(4))
    runs = [simulate(r, q, qd, duration=0.2, integrator=integrator) for r in (one, two)]
    close(runs[0].q, runs[1].q, 1e-10)
    close(runs[0].qd, runs[1].qd, 1e-10)


@pytest.mark.parametrize("kind", NEW)
def test_inverse_kinematics(kind: str):
    one, _ = robots(kind)
    q = 0.4 * state(5)[0, 0]
    found = one.inverse_kinematics(one.pose(q, "tool"), "tool", seed=1)
    assert found.solved
    close(one.pose(found.q, "tool"), one.pose(q, "tool"), 1e-8)


@pytest.mark.parametrize("kind", NEW)
def test_lock_at_a_pose(kind: str):
    one, _ = robots(kind)
    q, qd, qdd = (row[0] for row in state(6))
    locked = one.lock(["j2"], at={"j2": q[3:5]})
    rest = [0, 1, 2, 5]
    qd, qdd = (np.where(np.isin(range(6), rest), x, 0.0) for x in (qd, qdd))
    close(locked.inverse_dynamics(q[rest], qd[rest], qdd[rest]), one.inverse_dynamics(q, qd, qdd)[rest])


@pytest.mark.skipif(shutil.which("gcc") is None, reason="no C compiler here")
@pytest.mark.parametrize("kind", NEW)
def test_c_export(kind: str, tmp_path: Path):
    one, two = robots(kind)
    source, _ = export_c(one.compile("inverse_dynamics"), tmp_path / "arm.c", name="arm")
    library = tmp_path / "arm.so"
    subprocess.run(["gcc", "-O1", "-shared", "-fPIC", "-o", library, source, "-lm"], check=True)
    arrays = [np.ascontiguousarray(row[0]) for row in state(8)]
    tau = np.zeros(6)
    ctypes.CDLL(str(library)).arm(*(x.ctypes.data_as(ctypes.c_void_p) for x in (*arrays, tau)))
    close(tau, two.inverse_dynamics(*arrays))


@pytest.mark.cases(1)
@pytest.mark.parametrize("text", ["RUP", "U(C)(RU)", "CUR"])
def test_exact_proofs(text: str):
    proof = ls.prove(text)
    assert proof.ok and not proof.refuted, proof.refuted


def test_tables_and_counts():
    for kind, names in (("universal", ("1", "2")), ("cylindrical", ("angle", "z"))):
        one, two = robots(kind)
        assert joint_columns(one.model, "q")[1:3] == tuple(f"q.j1.{name}" for name in names)
        ours, theirs = (r.operation_count("inverse_dynamics") for r in (one, two))
        # beyond a universal joint, whose coordinates belong to the described frame, no cheaper one can be chosen
        more = 1.25 if kind == "universal" else 1.0
        assert ours.mul + ours.add <= more * (theirs.mul + theirs.add) and ours.trig == theirs.trig, (ours, theirs)


def test_dh_rows_have_them():
    row = {"alpha": 0.3, "a": 0.2, "mass": 1.0, "com": (0.1, 0.0, 0.2), "inertia": (0.1, 0.2, 0.3)}
    rows = [{**row, "joint": "C", "d": 0.4, "theta": 0.2}, {**row, "joint": "universal"}]
    one = ls.Robot(from_dh(rows, "modified"))
    assert [joint.kind for joint in one.model.joints] == ["cylindrical", "universal"] and one.nv == 4
    turned = ls.Robot(from_dh([{**row, "d": 0.4, "theta": 0.2}], "modified")).pose([0.7], "link1")
    slid = one.pose([0.7, 0.25, 0.0, 0.0], "link1")
    close(slid[:3, :3], turned[:3, :3])
    close(slid[:3, 3], turned[:3, 3] + 0.25 * turned[:3, 2])


def test_an_unknown_kind_is_an_error():
    assert all(kind_of(name) is kind for name, kind in KINDS.items())
    for name in ("revolut", None, ["free"]):
        with pytest.raises(DescriptionError, match="unknown joint type"):
            kind_of(name)  # type: ignore[arg-type]
    with pytest.raises(DescriptionError, match="did you mean 'revolute'"):
        _ = Joint("j", "revolut").type
