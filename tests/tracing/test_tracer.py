"""Both tracers are the one protocol: what the catalogue asks of a tracer, either has, with the same arguments."""

from __future__ import annotations

import inspect

import pytest

import linksweep as ls
from linksweep.functions.computation import RobotFunction
from linksweep.tracing.expression import Node
from linksweep.tracing.rolled import Rolled
from linksweep.tracing.tracer import Tracer, UnrolledRun, UnrolledTrace

ASKED = [name for name, member in inspect.getmembers(Tracer) if inspect.isfunction(member) and name[0] != "_"]


def accepted(*_: type[Tracer]) -> None:
    """For the type checker: it compares the classes with the protocol."""


accepted(Rolled, UnrolledTrace, UnrolledRun)


@pytest.mark.parametrize("tracer", [Rolled, UnrolledTrace, UnrolledRun])
def test_methods_and_arguments(tracer: type[Tracer]):
    assert {"read", "read_rows", "write", "outward", "inward", "pairs"} <= set(ASKED)
    for name in ASKED:
        wanted, own = (inspect.signature(getattr(owner, name)) for owner in (Tracer, tracer))
        assert list(own.parameters) == list(wanted.parameters), name


@pytest.mark.parametrize("tracer", [Rolled, UnrolledTrace])
def test_inputs_are_read_by_name(tracer: type[Rolled] | type[UnrolledTrace]):
    model = ls.robots.puma560().canonical
    made = tracer(model, RobotFunction(model, "inverse_dynamics", "newton_euler").inputs)
    first = [made.read(name)[0][0] for name in ("qd", "qdd")]
    assert [leaf.data[0] for leaf in first if isinstance(leaf, Node)] == [1, 2]
    with pytest.raises(StopIteration):
        made.read("tau")  # no input of it
