"""`import linksweep` is quick because it imports next to nothing; every public name is there on demand."""

from __future__ import annotations

import subprocess
import sys

import pytest

import linksweep

HEAVY = {"numpy", "scipy", "llvmlite", "matplotlib", "pinocchio", "mujoco", "typer", "rich"}


def modules_after(code: str) -> set[str]:
    """Top-level names of everything a fresh interpreter has imported after running `code`."""
    report = "\nimport sys; print('\\n'.join({name.partition('.')[0] for name in sys.modules}))"
    run = subprocess.run([sys.executable, "-c", code + report], capture_output=True, text=True, check=True)
    return set(run.stdout.split())


@pytest.mark.quick
def test_import_brings_nothing_heavy():
    assert modules_after("import linksweep") & HEAVY == set()


def test_errors_bring_nothing_heavy():
    assert modules_after("import linksweep; linksweep.LinksweepError") & HEAVY == set()


def test_using_a_robot_brings_no_optional_package():
    code = "import linksweep; linksweep.robots.puma560().inverse_dynamics([0.0] * 6, [0.0] * 6, [0.0] * 6)"
    assert modules_after(code) & {"matplotlib", "pinocchio", "mujoco", "typer", "rich", "hypothesis"} == set()


@pytest.mark.quick
@pytest.mark.parametrize("name", linksweep.__all__)
def test_every_public_name_is_there(name: str):
    assert getattr(linksweep, name) is getattr(linksweep, name)
    assert name in dir(linksweep)


def test_star_import_gives_the_public_names():
    namespace: dict[str, object] = {}
    exec("from linksweep import *", namespace)
    assert set(linksweep.__all__) <= set(namespace)


def test_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="'linksweep' has no attribute 'rowboat'"):
        linksweep.rowboat  # noqa: B018  # pyright: ignore[reportAttributeAccessIssue]
