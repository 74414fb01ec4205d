"""What messages suggest for a name that was not found: one wording, and no more work than a message is worth."""

from __future__ import annotations

import difflib
from typing import Any

import pytest

import linksweep as ls
from linksweep.errors import ArgumentError, DescriptionError
from linksweep.model import assembly
from linksweep.model.formats.urdf import read_urdf
from linksweep.support import messages as names
from linksweep.support.messages import listing, nearest, shown


def urdf(links: list[str], parent: str) -> str:
    """Every link hangs on the first one, and the last one on `parent`."""
    joints = [(name, links[0]) for name in links[1:-1]] + [(links[-1], parent)]
    return (
        '<robot name="r">'
        + "".join(f'<link name="{name}"/>' for name in links)
        + "".join(
            f'<joint name="to_{child}" type="continuous"><parent link="{on}"/><child link="{child}"/></joint>'
            for child, on in joints
        )
        + "</robot>"
    )


def test_a_file_of_many_long_names_is_not_compared_whole(monkeypatch: pytest.MonkeyPatch):
    """0.8 MB took 12.8 s: difflib compared every name of the file, character by character."""
    compared: list[int] = []
    set_seq1 = difflib.SequenceMatcher.set_seq1

    def counted(self: Any, a: Any) -> None:
        compared.append(len(a))
        set_seq1(self, a)

    monkeypatch.setattr(difflib.SequenceMatcher, "set_seq1", counted)
    links = [f"{k:05d}{'ab' * 90}" for k in range(2000)]
    with pytest.raises(DescriptionError, match=r"\(did you mean '0\d{4}abab"):
        read_urdf(urdf(links, "00000" + "ba" * 90))
    assert sum(map(bool, compared)) <= names.MAX_NAMES and max(compared) <= names.MAX_LENGTH


def test_one_wording_everywhere():
    arm = ls.robots.puma560()
    for call, kind in (
        (lambda: arm.pose([0.0] * 6, "tol"), ArgumentError),
        (lambda: arm.with_payload("tol", 1.0), ArgumentError),
        (lambda: arm.subchain("base", "tol"), ArgumentError),
    ):
        with pytest.raises(kind, match=r"'tol' \(did you mean 'tool'\?\)"):
            call()
    with pytest.raises(
        ArgumentError, match=r"no joint 'jiont2' \(did you mean 'joint2'\?\), expected some of 'joint1', "
    ):
        arm.lock("jiont2")
    assert assembly.nearest is names.nearest


def test_the_nearest_of_more_names_than_are_compared_is_found_by_length():
    known = [f"joint{k}" for k in range(5000)] + ["a_wholly_different_name"]
    assert nearest("a_wholy_different_name", known) == " (did you mean 'a_wholly_different_name'?)"
    assert nearest("zzz", known) == ""
    assert nearest(10**5000, ["x"]) == "" and nearest(None, []) == ""


@pytest.mark.parametrize("value", [10**5000, {"a": -(10**4999)}], ids=["integer", "inside"])
def test_what_cannot_be_printed_is_named(value: Any):
    assert shown(value) in ("a int too large to show", "a dict too large to show")


def test_what_is_nested_deep_is_named():
    deep: list[Any] = []
    for _ in range(100_000):
        deep = [deep]
    assert shown(deep) == "a list too large to show"
    while deep:  # taken apart from outside: the interpreter's own way recurses
        deep = deep.pop()


def test_listing_is_cut():
    assert listing(["a", "b"]) == "'a', 'b'"
    assert listing(f"n{k}" for k in range(12)).endswith("'n7' and 4 more")
    assert listing(["x" * 200]) == f"'{'x' * 56}..."
