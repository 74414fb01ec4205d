"""Settings of the process: read from the environment once, changed by `use_backend`."""

from __future__ import annotations

import os

backend: str = os.environ.get("LINKSWEEP_BACKEND") or "llvm"


def use_backend(name: str) -> None:
    """What functions are compiled by from now on: machine code, or an interpreter.

    name: "llvm", machine code, or "interpreter", operation by operation over NumPy arrays. As the
    environment variable LINKSWEEP_BACKEND, which is read when linksweep is imported.
    """
    global backend
    backend = checked_backend(name)


def checked_backend(name: object) -> str:
    from linksweep.errors import BackendError
    from linksweep.support.messages import shown

    if not isinstance(name, str) or name not in ("llvm", "interpreter"):
        raise BackendError(
            f"the backend is {shown(name)}, expected 'llvm' or 'interpreter': set backend= or LINKSWEEP_BACKEND."
        )
    return str(name)
