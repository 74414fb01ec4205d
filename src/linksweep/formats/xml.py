"""A small XML reader that is safe with hostile files and knows line numbers.

Any document type declaration is refused at once, so there are no entities to expand and nothing outside the
file is ever opened; depth and number of elements are bounded.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from xml.parsers import expat

from linksweep.errors import DescriptionError
from linksweep.formats import check_size

DEEPEST = 200
MOST_ELEMENTS = 500_000


@dataclass(slots=True)
class Element:
    """A tag with its attributes, children and the line where it opens. Text between tags is not kept.

    start, stop: where in the bytes its opening and its closing tag begin; the same for one that closes itself.
    """

    tag: str
    attributes: dict[str, str]
    line: int
    children: list[Element] = field(default_factory=list)
    start: int = 0
    stop: int = 0

    def all(self, tag: str) -> Iterator[Element]:
        return (child for child in self.children if child.tag == tag)


def parse(data: bytes, source: str, encoding: str | None = None) -> Element:
    """The root element of the XML document `data`; `source` is named in errors.

    `encoding` overrides what the document says of itself.
    """
    check_size(len(data), source)
    if b"\0" in data[:1000] and not data.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise DescriptionError(f"{source}: this is a binary file, expected XML text: give the description itself.")
    body = data.lstrip(b" \t\r\n")
    lead = len(data) - len(body) if body.startswith(b"<?xml") else 0  # what XML does not allow there
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
            refuse(f"there are more than {MOST_ELEMENTS} elements, expected a robot: is this the right file?")
        if len(open_elements) >= DEEPEST:
            refuse(f"elements are nested deeper than {DEEPEST}, expected a robot: is this the right file?")
        element = Element(tag, attributes, parser.CurrentLineNumber + blank, [], parser.CurrentByteIndex + lead)
        (open_elements[-1].children if open_elements else roots).append(element)
        open_elements.append(element)

    def end(_tag: str) -> None:
        open_elements.pop().stop = parser.CurrentByteIndex + lead

    def refuse_declaration(*_: object) -> None:
        refuse("a document type or entity is declared, which is not read for safety: remove the declaration.")

    parser.StartElementHandler = start
    parser.EndElementHandler = end
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
