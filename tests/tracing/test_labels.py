"""Labelled traces: the same Program, every value with its link, its quantity and its equation."""

from __future__ import annotations

import inspect
import sys
import types
from collections.abc import Callable

import pytest
from robots_for_tests import robot

from linksweep.algorithms.inverse import newton_euler
from linksweep.functions.computation import RobotFunction, Together
from linksweep.tracing import labels
from linksweep.tracing.expression import LEAVES, Graph
from linksweep.tracing.labels import labelled
from linksweep.tracing.program import Label, Program


def tracing(name: str, request: tuple[str, str], rolled: bool = False) -> Callable[[], Program]:
    return lambda: Together((RobotFunction(robot(name).canonical, *request),), rolled).trace()


NEWTON_EULER = ("inverse_dynamics", "newton_euler")


@pytest.mark.parametrize("rolled", [False, True])
@pytest.mark.parametrize("request_", [NEWTON_EULER, ("forward_dynamics", "filter_smoother"),
                                      ("mass_matrix", "composite")])  # fmt: skip
def test_a_label_changes_nothing_else(request_: tuple[str, str], rolled: bool):
    plain = tracing("urdf", request_, rolled)()
    program = labelled(tracing("urdf", request_, rolled))
    assert not plain.labels
    lines = [line.partition("    #")[0] for line in str(program).splitlines()]
    assert lines == str(plain).splitlines()


def test_every_operation_has_a_label_and_most_have_a_name_and_an_equation():
    for request in (NEWTON_EULER, ("inverse_dynamics", "kane"), ("forward_dynamics", "filter_smoother")):
        program = labelled(tracing("puma560", request))
        nodes = [node for body in program.bodies() for node in body.nodes if node.op not in LEAVES]
        found = [program.labels[node] for node in nodes]
        assert all(label.link for label in found)
        in_steps = [label for label in found if label.step]
        assert len(in_steps) > 0.9 * len(found)
        assert all(label.equation and (label.quantity or label.target or label.statement) for label in in_steps)
        assert sum(1 for label in found if label.quantity) > 0.2 * len(found)  # the others stand inside of these


def test_what_a_label_says():
    program = labelled(tracing("puma560", NEWTON_EULER))
    by_name = {(label.link, label.quantity): label for label in program.labels.values()}
    alpha = by_name["link3", "alpha_angular_x"]
    assert alpha.equation == "(2.26)" and alpha.step == "outward step" and alpha.at == "link3"
    assert alpha.statement == "alpha = link.phi_T(parent.alpha + a_link) + a_joint + link.H_T @ qdd"
    assert alpha.statement in inspect.getsource(newton_euler)
    assert by_name["link2", "cos"].step == ""
    # what link 3 hands to link 2 is made in its own step, and named by the argument in which link 2 gets it
    assert by_name["link2", "outer_force_x"].at == "link3"
    # a line without a comment feeds the equation below it
    assert by_name["link3", "V_plus_angular_y"].equation == "(2.25)"
    assert str(alpha) == "link3 alpha_angular_x (2.26)" and str(Label(target="a", link="b")) == "b for a"
    assert "# link3 alpha_angular_x (2.26)" in str(program)


def test_pairs_name_both_links():
    program = labelled(tracing("puma560", ("mass_matrix", "composite")))
    pairs = {(label.link, label.of) for label in program.labels.values() if label.of}
    assert ("link2", "link4") in pairs and ("link1", "link6") in pairs
    assert all(int(link[4:]) < int(of[4:]) for link, of in pairs)


def test_tables_and_sums_of_loops_are_named():
    program = labelled(tracing("tree9", NEWTON_EULER, rolled=True))
    tables = {label.quantity for node, label in program.labels.items() if node.op == "table"}
    assert {"M_mp_x", "M_I_zz"} <= tables
    loads = {label.quantity for node, label in program.labels.items() if node.op == "load" and node.data[2] == "own"}
    assert "outer_moment_x" in loads


def test_an_ordinary_trace_is_left_alone():
    labelled(tracing("urdf", NEWTON_EULER))
    assert type(Graph()) is Graph and sys.getprofile() is None
    with pytest.raises(ZeroDivisionError):
        labelled(lambda: 1 / 0)  # type: ignore[arg-type, return-value]
    assert type(Graph()) is Graph and sys.getprofile() is None


def test_a_profiler_gets_its_place_back():
    def profile(frame: types.FrameType, event: str, arg: object) -> None:
        return

    sys.setprofile(profile)
    try:
        labelled(tracing("urdf", NEWTON_EULER))
        assert sys.getprofile() is profile
    finally:
        sys.setprofile(None)


def test_without_sources_there_are_names_but_no_equations(monkeypatch: pytest.MonkeyPatch):
    labels._statements.cache_clear()
    monkeypatch.setattr(labels.linecache, "getlines", lambda filename: [])
    try:
        program = labelled(tracing("urdf", NEWTON_EULER))
    finally:
        labels._statements.cache_clear()
    found = list(program.labels.values())
    assert any(label.quantity == "alpha_angular_x" for label in found)
    assert not any(label.equation or label.statement for label in found)
