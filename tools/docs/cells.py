"""Python cells that are run, and what they show: of notebooks and of the reference."""

from __future__ import annotations

import ast
import contextlib
import io
from typing import Any, NamedTuple


class Shown(NamedTuple):
    """kind: "text", "html", "latex" or "png"."""

    kind: str
    content: Any


def run(code: str, namespace: dict[str, Any], name: str = "cell") -> list[Shown]:
    """Run the code in the namespace: what it prints, and its last expression, as a notebook would show them."""
    tree = ast.parse(code, filename=name)
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    if code.rstrip().endswith(";") and last is not None:
        tree.body.append(last)
        last = None
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed), _short_arrays():
        exec(compile(tree, name, "exec"), namespace)
        value = eval(compile(ast.Expression(last.value), name, "eval"), namespace) if last is not None else None
        found = [] if value is None else [shown(value)]
    return ([Shown("text", printed.getvalue().rstrip("\n"))] if printed.getvalue().strip() else []) + found


def shown(value: Any) -> Shown:
    if hasattr(value, "savefig"):
        buffer = io.BytesIO()
        value.savefig(buffer, format="png", dpi=110)
        return Shown("png", buffer.getvalue())
    latex = getattr(value, "_repr_latex_", lambda: None)()
    if latex:
        return Shown("latex", latex.strip().strip("$").strip())
    page = getattr(value, "_repr_html_", lambda: None)()
    return Shown("html", page) if page else Shown("text", repr(value))


@contextlib.contextmanager
def _short_arrays() -> Any:
    import numpy as np

    with np.printoptions(precision=4, suppress=True, linewidth=100, threshold=60, edgeitems=3):
        yield
