"""The reference says of every argument what it is: docstrings taken apart, in the house's style and in NumPy's."""

from __future__ import annotations

import inspect
from typing import Any

import pytest
from docs_tools import load_tool

reference, docstrings = load_tool("reference"), load_tool("docstrings")


def test_arguments_in_sentences():
    doc = (
        "Do it.\n\nIt is done at once. t: (rows,) seconds. q, tau and qd: (rows, nv), in the\norder of joints; "
        "method: one of two: this, or that.\n\nNothing else happens."
    )
    prose, said = docstrings.parted(doc, ["t", "q", "qd", "tau", "method", "other"])
    assert prose == "Do it.\n\nIt is done at once.\n\nNothing else happens."
    assert said == {
        "t": "(rows,) seconds",
        "q": "(rows, nv), in the order of joints",
        "tau": "(rows, nv), in the order of joints",
        "qd": "(rows, nv), in the order of joints",
        "method": "one of two: this, or that",
    }


def test_arguments_in_numpys_sections():
    doc = (
        "Do it.\n\nParameters\n----------\nq : array_like, shape (..., nq)\n    Coordinates, in rad\n    or m.\n"
        "out : ndarray, optional\n    Where to.\n\nReturns\n-------\nndarray, shape (..., nv)\n    Torques.\n\n"
        "Notes\n-----\nSlow."
    )
    prose, said = docstrings.parted(doc, ["q", "out"])
    assert prose == "Do it.\n\nNotes: Slow."
    assert said["q"] == "array_like, shape (..., nq) Coordinates, in rad or m."
    assert said["out"] == "ndarray, optional Where to." and "Torques." in said["returns"]


def described(name: Any) -> tuple[list[str], list[str]]:
    """Arguments of a public name that something is said of, and the others."""
    given = docstrings.arguments(name.value)
    prose, said = docstrings.parted(reference.own_doc(name.value), given)
    common = docstrings.COMMON if name.full.startswith("Robot.") else docstrings.EVERYWHERE
    has = [a for a in given if said.get(a) or common.get(a) or a in prose or any(a in text for text in said.values())]
    return has, [a for a in given if a not in has]


TOP = [n for n in reference.names() if "." not in n.full and inspect.isfunction(n.value)]


@pytest.mark.cases(len(TOP))
@pytest.mark.parametrize("name", TOP, ids=lambda name: name.full)
def test_every_argument_of_the_packages_functions_is_described(name: Any):
    assert not described(name)[1]


def test_entries_show_them():
    (jacobian,) = (n for n in reference.names() if n.full == "Robot.jacobian")
    text = "\n".join(reference._entry(jacobian, []))
    assert "- `q`: (..., nq)" in text and "- `point`: (..., 3) A point in the frame (m)" in text
    assert "reference: str = 'world_aligned'" in text  # a string, not a name
    (contact,) = (n for n in reference.names() if n.full == "Contact")
    assert r"| `friction` | float Bound of \|tangential force\| /" in "\n".join(reference._entry(contact, []))
