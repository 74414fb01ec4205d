"""A DH table in TOML.

    name = "arm"
    format = "dh"
    convention = "modified"      # or "standard": must be said
    angles = "degrees"           # or "radians", which is the default
    gravity = [0, 0, -9.81]

    [[links]]                    # one per joint, base first; keys as in `from_dh`
    alpha = -90
    a = 0.4
    mass = 2.5

With `angles = "degrees"`, alpha and theta are in degrees, and so are lower, upper and velocity of revolute and
universal joints.
"""

from __future__ import annotations

import math
import os
import re
import tomllib
from pathlib import Path

from linksweep.description.model import Model
from linksweep.description.quantities import as_number, as_vector
from linksweep.errors import DescriptionError
from linksweep.formats import read_bytes
from linksweep.formats.dh import JOINTS, from_dh
from linksweep.joints import KINDS
from linksweep.support.files import Table
from linksweep.support.messages import listing, nearest, shown

LARGEST_TABLE = 5_000_000
# tomllib takes the square of the number of parts of one key
LONG_KEY = re.compile(
    r"""(?<![\w-])(?:(?:[\w-]{1,200}+|"[^"\n]{0,200}+"|'[^'\n]{0,200}+')[ \t]{0,9}+\.[ \t]{0,9}+){32}"""
)
KEYS = ("name", "format", "convention", "angles", "gravity", "base", "links")
ANGLES = ("alpha", "theta")
JOINT_ANGLES = ("lower", "upper", "velocity")


def read_toml(path: str | os.PathLike[str]) -> Model:
    """The Model of a DH table in a TOML file."""
    source = os.fspath(path)
    data = read_bytes(Path(source), LARGEST_TABLE)
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise DescriptionError(
            f"{source}: byte {error.start} is not UTF-8, expected TOML text: save the file as UTF-8."
        ) from None
    return parse_toml(text, source)


def parse_toml(text: str, source: str) -> Model:
    """The Model of a DH table in TOML text; `source` is named in errors."""
    if LONG_KEY.search(text):
        raise DescriptionError(f"{source}: a key has more than 32 parts, expected a table of links: shorten it.")
    try:
        table = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise DescriptionError(f"{source}: this is not valid TOML ({error}): repair the file.") from None
    except (RecursionError, ValueError) as error:  # very deep nesting; integers of thousands of digits
        raise DescriptionError(
            f"{source}: this TOML cannot be read ({type(error).__name__}): simplify or shorten its values."
        ) from None
    for key in table:
        if key not in KEYS:
            raise DescriptionError(
                f"{source}: the key {shown(key)} is not known{nearest(key, KEYS)}, expected some of "
                f"{listing(KEYS)}: correct the key."
            )
    _one_of(table, "format", ("dh",), source)
    angles = _one_of(table, "angles", ("radians", "degrees"), source, default="radians")
    rows = table.get("links")
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        raise DescriptionError(f"{source}: 'links' is not a list of tables, expected [[links]] once per joint: add it.")
    if angles == "degrees":
        rows = [_in_radians(row, f"{source}: DH row {number}") for number, row in enumerate(rows, start=1)]
    convention = table.get("convention")
    if "convention" in table and not isinstance(convention, str):
        raise DescriptionError(
            f"{source}: 'convention' is {shown(convention)}, expected 'modified' or 'standard': write it."
        )
    return from_dh(
        rows,
        convention,
        name=_text(table, "name", "robot", source),
        gravity=as_vector(table.get("gravity", (0.0, 0.0, -9.81)), f"{source}: 'gravity'"),
        base=_text(table, "base", "base", source),
        source=source,
    )


def _one_of(table: Table, key: str, known: tuple[str, ...], source: str, default: str | None = None) -> str:
    value = table.get(key, default)
    if value not in known:
        choices = " or ".join(repr(k) for k in known)
        raise DescriptionError(f'{source}: {key!r} is {shown(value)}, expected {choices}: write {key} = "{known[0]}".')
    return value


def _text(table: Table, key: str, default: str, source: str) -> str:
    value = table.get(key, default)
    if not isinstance(value, str) or not value:
        raise DescriptionError(f"{source}: {key!r} is {shown(value)}, expected text: put it in quotes.")
    return value


def _in_radians(row: Table, where: str) -> Table:
    joint = row.get("joint", "revolute")
    kind = KINDS.get(JOINTS.get(joint, "")) if isinstance(joint, str) else None
    turned = ANGLES + JOINT_ANGLES if kind is None or all(rate.turns for rate in kind.rates) else ANGLES
    return {key: math.radians(as_number(v, f"{where}: {key!r}")) if key in turned else v for key, v in row.items()}
