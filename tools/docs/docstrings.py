"""Docstrings taken apart: what is said about a name as a whole, and about each of its arguments.

A docstring writes arguments as `q: (..., nq). method: ...`, sentence by sentence, or in the sections of NumPy's style.
The reference shows both as a list, in the order of the signature, with what all methods of a robot take said once.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Container, Iterable, Mapping
from typing import Any

COMMON = {  # arguments of Robot's methods that mean the same in each
    "q": "(..., nq), coordinates of the joints in rad or m, in the order of `joint_names`",
    "qd": "(..., nv), their rates in rad/s or m/s",
    "qdd": "(..., nv), their accelerations in rad/s² or m/s²",
    "tau": "(..., nv), joint forces in N m or N",
    "v": "(..., nv), rates in rad/s or m/s",
    "f_ext": "(..., links, 6), or {frame: (..., 6)}: [moment; force] in N m and N that the environment applies, in "
    "the frame of that name",
    "base_motion": "(..., 9), the base's angular velocity, angular acceleration and linear acceleration, in its frame",
    "dissipation": "with the joints' damping and Coulomb friction",
    "method": "one of `methods(function)`; None: the first of them, see [defaults](../defaults.md)",
    "frame": "the name of a frame, one of `frame_names`",
    "reference": '"world_aligned", at the frame\'s origin along the base\'s axes; "local", at its origin along its '
    'own; "world", at the base\'s origin',
    "out": "an array to write the result to, instead of a new one",
}
EVERYWHERE = {
    "robot": "a `Robot`",
    "dtype": '"float64" or "float32"',
    "threads": "how many a large batch is split over",
    "backend": '"llvm", machine code, or "interpreter"; None: that of `use_backend`',
    "path": "of the file",
    "seed": "of the random numbers",
    "title": "written above the figure",
    "x_label": "written below the axis",
    "y_label": "written beside the axis",
}
SECTION = re.compile(r"^(\w[\w ]*)\n-{3,}\n", re.MULTILINE)


def arguments(value: Any) -> dict[str, inspect.Parameter]:
    """Those of a function or class by name, without self."""
    if isinstance(value, (classmethod, staticmethod)):
        value = value.__func__
    if not callable(value):
        return {}
    try:
        found = inspect.signature(value).parameters
    except (TypeError, ValueError):
        return {}
    return {name: each for name, each in found.items() if name not in ("self", "cls")}


def parted(doc: str, names: Iterable[str]) -> tuple[str, dict[str, str]]:
    """What a docstring says as a whole, and of each of these names; some share what is said of them."""
    names = sorted(names, key=len, reverse=True)
    doc, said = _sections(doc)
    if not names:
        return doc, said
    one = "|".join(map(re.escape, names))
    item = re.compile(rf"(?:^|(?<=[.;)] ))((?:{one})(?:(?:, | and )(?:{one}))*): ")
    prose = []
    for paragraph in doc.split("\n\n"):
        flat = re.sub(r"\s*\n\s*", " ", paragraph).strip()
        pieces = item.split(flat)
        if len(pieces) == 1:
            prose.append(paragraph)
            continue
        prose.append(pieces[0].strip())
        for group, text in zip(pieces[1::2], pieces[2::2], strict=True):
            for name in re.split(r", | and ", group):
                said[name] = text.strip().rstrip(";.")
    return "\n\n".join(filter(None, prose)), said


def _sections(doc: str) -> tuple[str, dict[str, str]]:
    """NumPy's sections: Parameters and Returns as items, others as text."""
    parts = SECTION.split(doc)
    prose, said = [parts[0].strip()], {}
    for title, text in zip(parts[1::2], parts[2::2], strict=True):
        if title not in ("Parameters", "Returns", "Attributes"):
            prose.append(f"{title}: {text.strip()}")
            continue
        for head, body in re.findall(r"^(\S[^\n]*)\n((?:[ \t]+[^\n]*\n?|\n)*)", text + "\n", re.MULTILINE):
            name, _, kind = head.partition(" : ")
            what = " ".join(filter(None, (kind.strip(), " ".join(body.split()))))
            if title == "Returns":
                said["returns"] = what or head
            else:  # several arguments can share a description
                said |= {each.strip().lstrip("*"): what for each in name.split(",")}
    return "\n\n".join(prose), said


def listed(value: Any, said: Mapping[str, str], without: Container[str] = ()) -> str:
    """The arguments that something is said of as a list in Markdown, in the order of the signature."""
    rows = []
    for name, each in arguments(value).items():
        if name in said and name not in without:
            rows.append(f"- `{name}`{_default(each)}: {said[name]}")
    if said.get("returns"):
        rows.append(f"- returns: {said['returns']}")
    return "\n".join(rows)


def _default(each: inspect.Parameter) -> str:
    if each.default in (inspect.Parameter.empty, None) or not isinstance(each.default, (bool, int, float, str)):
        return ""
    return f" (`{each.default!r}`)"
