"""Numbers of a robot as arguments of a compiled function."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from robots_for_tests import robot

import linksweep as ls

PAYLOAD = (2.0, (0.1, -0.2, 0.3), (0.11, 0.12, 0.13))


def close(found: np.ndarray, expected: np.ndarray) -> bool:
    return bool(np.abs(found - expected).max() <= 1e-11 * max(1.0, np.abs(expected).max()))


@pytest.mark.quick
@pytest.mark.parametrize("function", ["inverse_dynamics", "forward_dynamics", "mass_matrix", "potential_energy"])
def test_a_payload(function: str):
    plain = ls.robots.puma560()
    compiled = plain.compile(function, parameters=("payload",))
    assert compiled.inputs[-1] == "payload"
    rng = np.random.default_rng(0)
    args = [rng.normal(size=(11, 6)) for _ in compiled.inputs[:-1]]
    assert close(compiled(*args, ls.body(*PAYLOAD)), plain.with_payload("tool", *PAYLOAD).compile(function)(*args))
    assert close(compiled(*args, np.zeros(10)), plain.compile(function)(*args))


def test_a_payload_for_each_sample():
    plain, rng = robot("urdf"), np.random.default_rng(1)
    compiled = plain.compile("inverse_dynamics", parameters=("payload:camera",))
    q, qd, qdd = rng.normal(size=(3, 5, plain.nv))
    bodies = np.stack([ls.body(m, (0.1, 0.0, m), (0.1, 0.1, 0.1)) for m in np.linspace(0.0, 3.0, 5)])
    found = compiled(q, qd, qdd, bodies)
    for k, m in enumerate(np.linspace(0.0, 3.0, 5)):
        loaded = plain.with_payload("camera", m, (0.1, 0.0, m), (0.1, 0.1, 0.1))
        assert close(found[k], loaded.inverse_dynamics(q[k], qd[k], qdd[k]))


@pytest.mark.parametrize("name", ["puma560", "mixed5", "tree9", "urdf"])
@pytest.mark.parametrize("method", ["newton_euler", "khalil_kleinfinger", "kane"])
def test_all_inertias_armatures_and_gravity(name: str, method: str):
    one, rng = robot(name), np.random.default_rng(2)
    compiled = one.compile("inverse_dynamics", method=method, parameters=("inertia", "armature", "gravity"))
    links = len(one.link_names)
    standard = one.standard_parameters
    q, qd, qdd = rng.normal(size=(3, 4, one.nv))
    found = compiled(q, qd, qdd, standard[: 10 * links].reshape(links, 10), standard[10 * links :], (1.0, 2.0, -8.0))
    if method == "kane" and (standard[: 10 * links : 10] == 0.0).any():
        assert np.isnan(found).any(axis=-1).all()  # it divides by a link's mass, and one has none: as documented
        return
    assert close(found, one.with_gravity((1.0, 2.0, -8.0)).inverse_dynamics(q, qd, qdd))


@pytest.mark.quick
def test_one_link():
    one, rng = ls.robots.puma560(), np.random.default_rng(3)
    compiled = one.compile("inverse_dynamics", parameters="inertia:link3")
    q, qd, qdd = rng.normal(size=(3, 6))
    ten = one.standard_parameters[20:30]
    assert close(compiled(q, qd, qdd, ten), one.inverse_dynamics(q, qd, qdd))
    # torques are affine in the parameters: twice the body, twice its share
    share = compiled(q, qd, qdd, ten) - compiled(q, qd, qdd, np.zeros(10))
    assert close(compiled(q, qd, qdd, 3 * ten) - compiled(q, qd, qdd, np.zeros(10)), 3 * share)
    assert close(share, one.regressor(q, qd, qdd)[:, 20:30] @ ten)


def test_work_among_parameters_is_not_counted():
    one = ls.robots.puma560()
    with_input = one.compile("inverse_dynamics", parameters=("payload",)).counts
    # the same arm with a payload of no special numbers
    loaded = one.with_payload("tool", 2.0, (0.1, -0.2, 0.3), [[0.1, 0.01, 0.02], [0.01, 0.2, 0.03], [0.02, 0.03, 0.15]])
    assert with_input == loaded.operation_count("inverse_dynamics")


def test_it_differentiates_pickles_and_threads():
    one, rng = ls.robots.stanford(), np.random.default_rng(4)
    compiled = one.compile("inverse_dynamics", parameters=("payload",), threads=2)
    q, qd, qdd = rng.normal(size=(3, 3000, 6))
    ten = ls.body(*PAYLOAD)
    whole = compiled(q, qd, qdd, ten)
    assert np.array_equal(pickle.loads(pickle.dumps(compiled))(q, qd, qdd, ten), whole)
    single = one.compile("inverse_dynamics", parameters=("payload",))
    by_payload = single.derivative("payload")(q[0], qd[0], qdd[0], ten)
    assert close(by_payload @ ten, whole[0] - one.inverse_dynamics(q[0], qd[0], qdd[0]))


@pytest.mark.parametrize("backend", ["llvm", "interpreter"])
def test_wrong_arguments(backend: str):
    compiled = ls.robots.puma560().compile("inverse_dynamics", parameters=("payload",), backend=backend)
    q = np.zeros((3, 6))
    for bad in (np.zeros(9), np.zeros((4, 10)), "a stone", None):
        with pytest.raises(ls.ArgumentError, match="payload"):
            compiled(q, q, q, bad)  # type: ignore[arg-type]
    with pytest.raises(ls.ArgumentError):
        compiled(q, q, q)
    assert np.isnan(compiled(q, q, q, np.full(10, np.nan))).all()


@pytest.mark.parametrize(("wanted", "sentence"), [
    (("paylod",), "there is no 'paylod'"),
    (("payload:hnad",), "has no frame 'hnad'"),
    (("payload:base",), "fixed to the base"),
    (("inertia:link9",), "has no link 'link9'"),
    (("gravity:x",), "there is no 'gravity:x'"),
    ((3,), "expected names"),
    (7, "expected names"),
    (("gravity", "gravity"), "names one twice"),
    (("payload:",), "names nothing behind its colon"),
    (("inertia:",), "names nothing behind its colon"),
    (("payload", "inertia"), "'inertia' replaces the body that 'payload' gives"),
    (("payload", "inertia:link6"), "'inertia:link6' replaces the body that 'payload' gives"),
    (("inertia:link2", "inertia"), "'inertia' replaces the body that 'inertia:link2' gives"),
])  # fmt: skip
def test_bad_names(wanted: object, sentence: str):
    with pytest.raises(ls.ArgumentError, match=sentence):
        ls.robots.puma560().compile("inverse_dynamics", parameters=wanted)  # type: ignore[arg-type]


@pytest.mark.quick
def test_an_inertia_and_a_payload_on_the_same_link():
    one = ls.robots.puma560()
    q, qd, qdd = np.random.default_rng(6).normal(size=(3, 4, 6))
    f = one.compile("inverse_dynamics", parameters=("inertia:link6", "payload"))
    host, load = ls.body(2.0, (0.1, 0.0, 0.2), (0.1, 0.1, 0.05)), ls.body(1.0, (0.0, 0.3, 0.0))
    bare = one.compile("inverse_dynamics", parameters=("inertia:link6",))
    expected = bare(q, qd, qdd, host) + (
        one.with_payload("tool", 1.0, (0.0, 0.3, 0.0)).inverse_dynamics(q, qd, qdd) - one.inverse_dynamics(q, qd, qdd)
    )
    assert np.abs(f(q, qd, qdd, host, load) - expected).max() <= 1e-12 * np.abs(expected).max()


def test_a_tree_asks_for_the_frame():
    with pytest.raises(
        ls.ArgumentError, match=r"4 frames that may be its tool, link7, .*expected the frame of the payload"
    ):
        robot("tree9").compile("inverse_dynamics", parameters=("payload",))


def test_loops_take_no_parameters():
    with pytest.raises(ls.ArgumentError, match="cannot take parameters"):
        ls.robots.chain(5).compile("inverse_dynamics", parameters=("gravity",), rolled=True)


def test_a_body():
    assert np.allclose(ls.body(2.0, (0, 0, 1), (1, 2, 3)), [2, 0, 0, 2, 3, 4, 3, 0, 0, 0])
    with pytest.raises(ls.LinksweepError, match="mass"):
        ls.body("heavy")  # type: ignore[arg-type]
