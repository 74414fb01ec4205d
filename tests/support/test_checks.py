"""The argument checks that all packages share: what they return, and one form of message."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from error_checks import refused

from linksweep.errors import ArgumentError, DescriptionError
from linksweep.support.checks import (
    check_memory,
    names,
    one_of,
    real_array,
    real_number,
    whole_number,
)

pytestmark = pytest.mark.quick


def test_arrays_are_returned_as_floats():
    assert real_array("q", [1, 2], (2,)).dtype == np.float64
    kept = np.zeros((5, 6), np.float32)
    assert real_array("q", kept, (..., 6)) is kept
    assert real_array("q", kept, (..., 6), dtype=float).dtype == np.float64
    assert real_array("points", [[1.0, 2.0, 3.0]], ("n", 3)).shape == (1, 3)
    assert real_array("x", [np.inf])[0] == np.inf
    assert real_array("x", True).shape == ()


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: real_array("q", np.zeros(5), (..., 6)), r"^q has shape \(5,\), expected \(\.\.\., 6\)\.$"),
        (lambda: real_array("q", 1.0, (..., 6)), r"^q has shape \(\), expected \(\.\.\., 6\)\.$"),
        (lambda: real_array("com", np.zeros((3, 1)), (3,)), r"^com has shape \(3, 1\), expected \(3,\)\.$"),
        (lambda: real_array("points", np.zeros(3), ("n", 3)), r"^points has shape \(3,\), expected \(n, 3\)\.$"),
        (lambda: real_array("q", "zero", (2,)), r"^q is <U4 of shape \(\), expected real numbers of shape \(2,\)\.$"),
        (lambda: real_array("q", [[1], [2, 3]]), r"^q is \[\[1\], \[2, 3\]\], expected real numbers\.$"),
        (lambda: real_array("q", [1j]), r"^q is complex128 of shape \(1,\), expected real numbers\.$"),
        (lambda: real_array("q", [np.nan], finite=True), r"^q contains NaN or infinity"),
        (lambda: real_number("dt", 0.0, above=0), r"^dt is 0\.0, expected a finite number above 0\.$"),
        (lambda: real_number("dt", np.inf), r"^dt is inf, expected a finite number\.$"),
        (lambda: real_number("dt", "1"), r"^dt is '1', expected a finite number\.$"),
        (lambda: real_number("dt", True), r"^dt is True, expected"),
        (lambda: real_number("share", 2, at_least=0, at_most=1), r"expected a finite number from 0 to 1\.$"),
        (lambda: real_number("x", 1, above=0, below=0.5), r"expected a finite number above 0 and below 0\.5\.$"),
        (lambda: whole_number("n", 0, at_least=1), r"^n is 0, expected an integer of at least 1\.$"),
        (lambda: whole_number("n", 1.0), r"^n is 1\.0, expected an integer\.$"),
        (lambda: whole_number("n", True), r"^n is True, expected an integer\.$"),
        (lambda: one_of("base", "floatng", ("fixed", "floating")),
         r"^base is 'floatng' \(did you mean 'floating'\?\), expected 'fixed' or 'floating'\.$"),
        (lambda: one_of("kind", [1], ("a", "b", "c")), r"^kind is \[1\], expected one of 'a', 'b', 'c'\.$"),
        (lambda: names("frames", ["tool", 3]), r"^frames contains 3, expected names\.$"),
        (lambda: check_memory("q", (10**12, 6)), r"^q of shape \(1000000000000, 6\) needs .* GiB, but this machine"),
    ],
)  # fmt: skip
def test_messages(call: Callable[[], object], message: str):
    refused(ArgumentError, message, call)


def test_numbers_and_names_are_returned():
    assert real_number("x", np.float32(2.0), at_least=0) == 2.0
    assert real_number("x", np.inf, finite=False) == np.inf
    assert whole_number("n", np.int64(3), at_least=1, at_most=3) == 3
    assert one_of("base", "fixed", {"fixed": 1}) == "fixed"
    assert names("frames", "tool") == ["tool"] and names("frames", ("a", "b")) == ["a", "b"]


def test_error_class():
    refused(DescriptionError, "mass is 'x'", lambda: real_number("mass", "x", error=DescriptionError))
