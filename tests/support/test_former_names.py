"""Modules of release 0.1 can be imported by their former names, with a warning."""

from __future__ import annotations

import pytest
from abuse_helpers import run_python

FORMER = {
    "linksweep.description.model": "Limits",
    "linksweep.description.assembly": "assemble",
    "linksweep.compiled.c_export": "export_c",
    "linksweep.compiled.function": "CompiledFunction",
    "linksweep.analysis.conventions": "to_pinocchio",
    "linksweep.studies.kang": "torque_planes",
    "linksweep.robots.closed_chains": "four_bars_upright",
    "linksweep.exact": "prove",
    "linksweep.tables": "write_table",
}


@pytest.mark.cases(len(FORMER))
@pytest.mark.parametrize(("module", "name"), FORMER.items())
def test_former_modules_warn_and_give_the_same_objects(module: str, name: str):
    code = f"""
import importlib, warnings
import linksweep
with warnings.catch_warnings(record=True) as seen:
    warnings.simplefilter("always")
    from {module} import {name} as former
assert any(w.category is DeprecationWarning and "{module}" in str(w.message) for w in seen), seen
current = importlib.import_module(former.__module__)
assert getattr(current, "{name}") is former and not former.__module__.startswith("{module}.")
print("same")
"""
    assert run_python(code).strip() == "same"


def test_other_names_are_still_unknown():
    code = """
import warnings
warnings.simplefilter("ignore")
for name in ("linksweep.description.nothing", "linksweep.nothing"):
    try:
        __import__(name)
    except ModuleNotFoundError as error:
        print(error.name)
"""
    assert run_python(code).split() == ["linksweep.description.nothing", "linksweep.nothing"]
