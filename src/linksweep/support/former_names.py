"""Former names of modules: importing one warns and gives the module that replaced it.

Scripts and pickles of release 0.1 keep working for one release.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Sequence
from importlib import import_module
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from importlib.util import find_spec
from types import ModuleType

# A module of a package below is the module of the same name in the new package, unless it is listed itself.
FORMER = {
    "linksweep.algorithms.whole_robot": "linksweep.algorithms.rigid_body",
    "linksweep.analysis": "linksweep.robot",
    "linksweep.catalogue": "linksweep.functions",
    "linksweep.compiled": "linksweep.functions",
    "linksweep.compiled.function": "linksweep.functions.compiled",
    "linksweep.counts": "linksweep.papers.operation_counts",
    "linksweep.counts.count_tables": "linksweep.papers.operation_counts",
    "linksweep.counts.counting": "linksweep.papers.operation_counts",
    "linksweep.counts.published_counts": "linksweep.papers.published_counts",
    "linksweep.description": "linksweep.model",
    "linksweep.exact": "linksweep.papers.exact",
    "linksweep.exact.statements": "linksweep.papers.exact.proof",
    "linksweep.formats": "linksweep.model.formats",
    "linksweep.functions.body_traces": "linksweep.functions.catalog.frames",
    "linksweep.functions.closed_chain_functions": "linksweep.functions.catalog.closed_chains",
    "linksweep.functions.dimensions": "linksweep.functions.parameters",
    "linksweep.functions.explicit_traces": "linksweep.functions.catalog.explicit",
    "linksweep.functions.factor_traces": "linksweep.functions.catalog.factors",
    "linksweep.functions.regrouping": "linksweep.functions.parameters",
    "linksweep.functions.table": "linksweep.functions.declaration",
    "linksweep.jax.handlers": "linksweep.jax.targets",
    "linksweep.motion.chains": "linksweep.motion.descents",
    "linksweep.motion.screws": "linksweep.motion.closed_form",
    "linksweep.identification.retiming": "linksweep.identification.log",
    "linksweep.papers.counts": "linksweep.papers.operation_counts",
    "linksweep.papers.counts.count_tables": "linksweep.papers.operation_counts",
    "linksweep.papers.counts.counting": "linksweep.papers.operation_counts",
    "linksweep.papers.counts.published_counts": "linksweep.papers.published_counts",
    "linksweep.papers.exact.statements": "linksweep.papers.exact.proof",
    "linksweep.papers.spatial_operators.linear": "linksweep.papers.spatial_operators.chain",
    "linksweep.plots.series": "linksweep.plots.charts",
    "linksweep.robot.observer": "linksweep.robot.wrench",
    "linksweep.robot.parameters": "linksweep.robot.properties",
    "linksweep.robots.closed_chains": "linksweep.robots.mechanisms",
    "linksweep.simulation.controller_function": "linksweep.simulation.controllers",
    "linksweep.simulation.laws": "linksweep.simulation.controllers",
    "linksweep.simulation.options": "linksweep.simulation.run",
    "linksweep.simulation.rollout_axes": "linksweep.simulation.gradient",
    "linksweep.simulation.step_program": "linksweep.simulation.fixed_step",
    "linksweep.spatial_operators": "linksweep.papers.spatial_operators",
    "linksweep.spatial_operators.linear": "linksweep.papers.spatial_operators.chain",
    "linksweep.studies": "linksweep.papers.studies",
    "linksweep.tables": "linksweep.files",
    "linksweep.viewer.bodies": "linksweep.viewer.visuals",
    "linksweep.viewer.recording": "linksweep.viewer.server",
}


def _replacement(name: str) -> str:
    """Return the present name of a module; a name may have changed twice."""
    package, _, module = name.rpartition(".")
    new = FORMER.get(name) or (f"{FORMER[package]}.{module}" if package in FORMER else name)
    return FORMER.get(new, new)


class FormerNames(MetaPathFinder):
    """Finds modules by their former names, after all other finders have failed."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        new = _replacement(fullname)
        if new == fullname or find_spec(new) is None:
            return None
        return ModuleSpec(fullname, _Alias(new), is_package=True)


class _Alias(Loader):
    """Makes a module whose attributes are those of another one."""

    def __init__(self, new: str):
        self.new = new

    def exec_module(self, module: ModuleType) -> None:
        message = f"{module.__name__} is now {self.new}; the former name will be removed in release 0.3."
        warnings.warn(message, DeprecationWarning, stacklevel=2)
        replacement = import_module(self.new)
        module.__dict__["__getattr__"] = lambda name: getattr(replacement, name)
        module.__doc__ = replacement.__doc__


def install() -> None:
    """Let imports find former names."""
    if not any(isinstance(finder, FormerNames) for finder in sys.meta_path):
        sys.meta_path.append(FormerNames())
