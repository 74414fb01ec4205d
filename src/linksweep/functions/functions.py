"""The table of all robot functions, as the modules of `catalog/` declare them."""

from __future__ import annotations

import pkgutil
from importlib import import_module

from . import catalog
from .catalog.dynamics import record_of as record_of
from .declaration import Function
from .declaration import Method as Method

ORDER = ("dynamics", "frames", "explicit", "factors", "closed_chains")  # in lists of functions; others follow by name


def _declared() -> dict[str, Function]:
    found = {module.name for module in pkgutil.iter_modules(catalog.__path__)}
    functions: dict[str, Function] = {}
    for name in (*ORDER, *sorted(found - {*ORDER})):
        declared = import_module(f"{catalog.__name__}.{name}").DECLARED
        if twice := functions.keys() & declared.keys():
            raise ValueError(f"functions/catalog/{name}.py declares {min(twice)} again")
        functions |= declared
    return functions


FUNCTIONS = _declared()
