"""Files of robot models: safe reading of files and XML, and warnings of what a format cannot store.

The XML reader raises at any document type declaration, so there are no entities to expand and no other file is opened.
Size, depth and number of elements are bounded. Elements have line numbers for messages.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Container, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from xml.parsers import expat

from linksweep.errors import ArgumentError, DescriptionError, ModelWarning, warn_user
from linksweep.model.model import Model
from linksweep.support.files import write_atomically
from linksweep.support.messages import listing, shown

LARGEST_FILE = 20_000_000
"""Bytes; the largest URDF of example-robot-data (tiago_dual) has 0.2 MB."""
DEEPEST = 200
MOST_ELEMENTS = 500_000


def read_bytes(file: Path, largest: int = LARGEST_FILE) -> bytes:
    """Return the content of a regular file; directories, devices, empty and very large files raise."""
    try:
        status = os.stat(file)
        if stat.S_ISDIR(status.st_mode):
            raise DescriptionError(f"{file}: this is a directory, expected a file with a robot model.")
        if not stat.S_ISREG(status.st_mode):
            raise DescriptionError(f"{file}: this is a device or pipe, expected a regular file.")
        check_size(status.st_size, str(file), largest)
        with open(file, "rb") as stream:
            data = stream.read(largest + 1)
    except FileNotFoundError:
        raise DescriptionError(f"{file}: there is no such file.") from None
    except DescriptionError:  # a ValueError too, but already a sentence
        raise
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise DescriptionError(f"{file}: the file cannot be read ({reason}): check name and permissions.") from None
    check_size(len(data), str(file), largest)
    return data


def check_size(size: int, source: str, largest: int = LARGEST_FILE) -> None:
    if size == 0:
        raise DescriptionError(f"{source}: the file or text is empty, expected a robot model.")
    if size > largest:
        raise DescriptionError(
            f"{source}: the robot model has {size / 1e6:.0f} MB, expected at most {largest / 1e6:.0f} MB."
        )


@dataclass(slots=True)
class Element:
    """A tag with its attributes, children, the line of its opening tag, and its text without that of its children.

    start, stop: byte offsets of its opening and closing tag; equal for a self-closing tag.
    """

    tag: str
    attributes: dict[str, str]
    line: int
    children: list[Element] = field(default_factory=list)
    start: int = 0
    stop: int = 0
    text: str = ""

    def all(self, tag: str) -> Iterator[Element]:
        return (child for child in self.children if child.tag == tag)


def parse(data: bytes, source: str, encoding: str | None = None) -> Element:
    """Return the root element of the XML document `data`; messages name `source`.

    `encoding` overrides the encoding declared in the document.
    """
    check_size(len(data), source)
    if b"\0" in data[:1000] and not data.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise DescriptionError(f"{source}: this is a binary file, expected XML text.")
    body = data.lstrip(b" \t\r\n")
    lead = len(data) - len(body) if body.startswith(b"<?xml") else 0  # blank lines, which XML does not allow there
    blank = data[:lead].count(b"\n")
    parser = expat.ParserCreate(encoding)
    open_elements: list[Element] = []
    roots: list[Element] = []
    count = 0

    def refuse(message: str) -> None:
        raise DescriptionError(f"{source}, line {parser.CurrentLineNumber + blank}: {message}")

    def start(tag: str, attributes: dict[str, str]) -> None:
        nonlocal count
        count += 1
        if count > MOST_ELEMENTS:
            refuse(f"there are more than {MOST_ELEMENTS} elements, expected a robot.")
        if len(open_elements) >= DEEPEST:
            refuse(f"elements are nested deeper than {DEEPEST}, expected a robot.")
        element = Element(tag, attributes, parser.CurrentLineNumber + blank, [], parser.CurrentByteIndex + lead)
        (open_elements[-1].children if open_elements else roots).append(element)
        open_elements.append(element)

    def end(_tag: str) -> None:
        open_elements.pop().stop = parser.CurrentByteIndex + lead

    def content(text: str) -> None:
        if open_elements and not text.isspace():
            open_elements[-1].text += text

    def refuse_declaration(*_: object) -> None:
        refuse("a document type or entity is declared, which is not allowed for safety.")

    parser.StartElementHandler = start
    parser.EndElementHandler = end
    parser.CharacterDataHandler = content
    parser.buffer_text = True
    parser.StartDoctypeDeclHandler = refuse_declaration
    parser.EntityDeclHandler = refuse_declaration
    parser.ExternalEntityRefHandler = refuse_declaration  # type: ignore[assignment]
    try:
        parser.Parse(data[lead:], True)
    except expat.ExpatError as error:
        reason = expat.ErrorString(error.code)
        raise DescriptionError(
            f"{source}, line {error.lineno + blank}, column {error.offset + 1}: this is not valid XML ({reason}): "
            "repair the file, which may be cut off or not XML at all."
        ) from None
    except (LookupError, ValueError) as error:  # the codec that the XML declaration names
        if isinstance(error, DescriptionError):
            raise
        raise DescriptionError(f"{source}: the encoding cannot be read ({error}): save the file as UTF-8.") from None
    return roots[0]


def write_text(path: str | os.PathLike[str] | None, text: str) -> str:
    """Write `text` to a file in one step, unless `path` is None, and return it."""
    if path is not None:
        if not isinstance(path, (str, os.PathLike)):
            raise ArgumentError(f"path is {shown(path)}, expected the name of a file.")
        write_atomically(Path(path), lambda file: _write_bytes(file, text.encode("utf-8")))
    return text


def _write_bytes(path: Path, data: bytes) -> None:
    path.write_bytes(data)


def check_xml_text(text: str) -> None:
    """Raise for characters that XML cannot contain."""
    if any((ord(c) < 32 and c not in "\t\n\r") or "\ud800" <= c <= "\udfff" or c in "\ufffe\uffff" for c in text):
        raise ArgumentError(f"the name {text!r} contains a character that XML cannot, expected printable text.")


# ---- warnings of what a format cannot store ------------------------------------------------------------------

GRAVITY = (0.0, 0.0, -9.81)  # the default of `load`


def warn_of_gravity(model: Model, what: str, function: str) -> None:
    """Warn of a gravity that differs from the default."""
    if model.gravity != GRAVITY:
        warn_user(
            f"{function}: {what} cannot store gravity, so that of {model.name!r}, {model.gravity}, is dropped, and "
            f"{GRAVITY} will be read: set it again with robot.with_gravity.",
            ModelWarning,
        )


def warn_of_ties(model: Model, what: str, function: str, written: Container[str] = ()) -> None:
    """Warn of constraints (but those of kinds in `written`), springs and passive joints, which are not written."""
    passive = [link.joint.name for link in model.links if not link.joint.actuated]
    if passive:
        warn_user(
            f"{function}: {what} cannot store that {listing(passive)} of {model.name!r} are passive: set it again with "
            f"robot.with_actuated.",
            ModelWarning,
        )
    left_out = [item.label for item in model.constraints if item.kind not in written]
    left_out += [f"spring {spring.a} - {spring.b or 'world'}" for spring in model.springs]
    if left_out:
        warn_user(
            f"{function}: {what} cannot store {listing(left_out)} of {model.name!r}, which are left out.",
            ModelWarning,
        )
