"""Hash-consed nodes: one expression, one node, owned by one graph."""

from __future__ import annotations

import gc
import weakref

import pytest

from linksweep.spatial import scalars
from linksweep.tracing.expression import BINARY, COMMUTATIVE, ONLINE, PARAMETER, TERNARY, UNARY, Graph, Node
from linksweep.tracing.rules import RULES

pytestmark = pytest.mark.quick


@pytest.fixture
def graph() -> Graph:
    return Graph()


def leaves(graph: Graph, count: int = 4, level: int = ONLINE) -> list[Node]:
    return [graph.leaf("input", (0, i), level) for i in range(count)]


def test_equal_expressions_are_one_node(graph: Graph):
    x, y, z, _ = leaves(graph)
    assert graph.leaf("input", (0, 0)) is x
    for make in (
        lambda: x + y,
        lambda: x - y,
        lambda: x * y,
        lambda: x / y,
        lambda: -x,
        lambda: x.sin(),
        lambda: x.cos(),
        lambda: x.sqrt(),
        lambda: x < y,
        lambda: (x < y).where(y, z),
        lambda: (x + y) * scalars.sin(z) - 2.0 * x,
    ):
        first = make()
        count_before = len(graph.nodes)
        assert make() is first and len(graph.nodes) == count_before


def test_sums_and_products_commute(graph: Graph):
    x, y, z, _ = leaves(graph)
    assert x + y is y + x and x * y is y * x
    assert (x + y) * z is z * (y + x)
    assert x * 2.0 is 2.0 * x and x + 2.0 is 2.0 + x
    assert x - y is not y - x


def test_commutative_operands_stand_in_one_order(graph: Graph):
    x, y, _, _ = leaves(graph)
    node = y * x
    assert node.args == (x, y)
    assert (y + 2.0).args == (2.0, y), "numbers before nodes"
    assert set(COMMUTATIVE) == {"add", "mul"}


def test_comparisons_have_one_direction(graph: Graph):
    x, y, _, _ = leaves(graph)
    assert (x > y) is (y < x)
    assert (x > 0.0).args == (0.0, x)


def test_plain_numbers_on_either_side(graph: Graph):
    x = leaves(graph)[0]
    assert (1.5 - x).args == (1.5, x) and (1.5 / x).op != "sub"
    assert (1.0 / x).args == (1.0, x)


def test_graphs_do_not_share_nodes():
    a, b = Graph(), Graph()
    x, y = a.leaf("input", (0, 0)), b.leaf("input", (0, 0))
    assert x is not y and (x + 1.0) is not (y + 1.0)
    assert (x + 1.0).graph is a and (y + 1.0).graph is b


def test_nothing_outlives_its_graph():
    graph = Graph()
    x = graph.leaf("input", (0, 0))
    _ = x * x + 1.0
    watched = weakref.ref(graph)
    del graph, x, _
    gc.collect()
    assert watched() is None


def test_a_value_cannot_be_branched_on(graph: Graph):
    x, y, _, _ = leaves(graph)
    with pytest.raises(TypeError, match=r"use scalars\.where"):
        bool(x < y)
    with pytest.raises(TypeError, match=r"use scalars\.where"):
        if x:
            pass
    with pytest.raises(TypeError, match=r"use scalars\.where"):
        max(x, y)


def test_levels(graph: Graph):
    m = graph.leaf("input", (0, 0), PARAMETER)
    p = graph.leaf("input", (0, 1), PARAMETER)
    q = graph.leaf("input", (1, 0), ONLINE)
    assert (m * p).level == PARAMETER and (2.0 * m).level == PARAMETER and m.sin().level == PARAMETER
    assert (m * q).level == ONLINE and (m + q).level == ONLINE and q.cos().level == ONLINE
    assert (m < p).where(m, q).level == ONLINE


def test_orders_ascend_from_operands_to_results(graph: Graph):
    x, y, z, _ = leaves(graph)
    node = (x + y) * z
    assert all(arg.order < node.order for arg in node.args)
    assert repr(node) == f"%{node.order}"


def test_every_operation_that_needs_rules_has_an_entry():
    fused = {"fma", "fms", "fnma"}  # made by `fuse` alone, as they are
    assert set(RULES) == {*UNARY, *BINARY, *TERNARY} - fused


def test_make_applies_no_rule(graph: Graph):
    x = leaves(graph)[0]
    assert graph.make("add", x, 0.0).op == "add" and graph.apply("add", x, 0.0) is x
