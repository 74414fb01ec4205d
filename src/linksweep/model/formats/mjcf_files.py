"""Which files MuJoCo would open for an MJCF description, looked at before MuJoCo sees any of them.

A description includes others (`<include>`), attaches whole models (`<model file>`), and names meshes, pictures and
height fields. XML must stand inside one folder and pass the checks of xml.py; meshes and pictures must be regular files
of bearable size, and stand inside too where a folder was named. MuJoCo looks for a name in several places, and here all
of them count.
https://mujoco.readthedocs.io/en/stable/XMLreference.html
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path

from linksweep.errors import DescriptionError
from linksweep.model.formats.files import LARGEST_FILE, Element, parse, read_bytes
from linksweep.support.messages import shown

MOST_COPIES = 10_000  # what one element may multiply into: hostile files ask for 1e9 of them
LARGEST_GRID = 20_000_000
LARGEST_DATA = 500_000_000  # bytes of a mesh or picture
MOST_FILES = 1_000  # counted each time that one is read: models that each attach the next one twice grow as 2^n
MOST_BYTES = 5 * LARGEST_FILE
XML_TYPES = ("", "text/xml", "application/xml")


@dataclass
class _Unit:
    """A model with all that it includes; MuJoCo looks for its files from the folder of its first one."""

    file: Path
    above: tuple[Path, ...] = ()  # the models that attach it, outermost first
    folders: set[str] = field(default_factory=lambda: {""})  # meshdir and the like
    data: list[tuple[str, Path, str]] = field(default_factory=list)  # name, folder of the file that says it, where


def check_files(file: Path, root: Path | None = None) -> None:
    """Refuse what would hang, fill memory or be read outside of `root`.

    By default that is the file's own folder, and holds for XML only: files often have their meshes beside them.
    """
    first = _real(file)
    allowed = first.parent if root is None else _real(root)
    _Checker(file, first, allowed, confined=root is not None).check()


class _Checker:
    def __init__(self, file: Path, first: Path, allowed: Path, confined: bool):
        self.file, self.first, self.allowed = file, first, allowed
        self.confined = confined  # meshes and pictures too
        self.files = self.bytes = 0

    def check(self) -> None:
        waiting = [_Unit(self.first)]
        while waiting:
            unit = waiting.pop()
            waiting.extend(self.unit(unit))
            for name, folder, where in unit.data:
                self.data(unit, name, folder, where)

    def unit(self, unit: _Unit) -> Iterator[_Unit]:
        """Look through the files of one model; the models that it attaches."""
        files: list[tuple[Path, tuple[Path, ...]]] = [(unit.file, ())]
        while files:
            path, through = files.pop()
            source = str(self.file if path == self.first else path)
            top = self.parsed(path, source)
            roots = ("mujoco",) if path == self.first else ("mujoco", "robot")  # a URDF may be attached
            if path == unit.file and top.tag not in roots:
                raise DescriptionError(f"{source}: the root element is <{top.tag}>, expected <mujoco>: is this MJCF?")
            for element in _elements(top, source):
                where, tag = f"{source}, line {element.line}", element.tag.lower()  # MuJoCo reads <Include> too
                name = element.attributes.get("file", "")
                if tag == "include" and name:
                    other = self.resolved(unit, name, path.parent, where)
                    if other in (unit.file, path, *through):
                        raise DescriptionError(f"{where}: {shown(name)} includes itself.")
                    files.append((other, (*through, path)))
                elif tag == "model" and name:
                    if (kind := element.attributes.get("content_type", "")) not in XML_TYPES:
                        raise DescriptionError(f"{where}: {shown(name)} is {shown(kind)}, expected XML: convert it.")
                    other = self.resolved(unit, name, path.parent, where)
                    if other in (unit.file, *unit.above):
                        raise DescriptionError(f"{where}: {shown(name)} attaches itself.")
                    yield _Unit(other, (*unit.above, unit.file))
                else:
                    _note(unit, element, path.parent, where)

    def parsed(self, path: Path, source: str) -> Element:
        data = read_bytes(path)
        self.files += 1
        self.bytes += len(data)
        if self.files > MOST_FILES or self.bytes > MOST_BYTES:
            raise DescriptionError(
                f"{self.file}: more than {MOST_FILES} files or {MOST_BYTES / 1e6:.0f} MB are included or attached, "
                "expected a robot: is something included over and over?"
            )
        return parse(data, source)

    def resolved(self, unit: _Unit, name: str, folder: Path, where: str) -> Path:
        """The XML file that MuJoCo takes: from the model's folder, else from that of the file that names it."""
        for place in (self.placed(base, name, where, True) for base in (unit.file.parent, folder)):
            if place.exists():
                return place
        raise DescriptionError(f"{where}: there is no file {shown(name)}, expected one to include.")

    def data(self, unit: _Unit, name: str, folder: Path, where: str) -> None:
        """Check a mesh or image in all places where MuJoCo may look for it; MuJoCo reports missing files."""
        names = {name, name.replace("\\", "/").rsplit("/", 1)[-1]}  # the latter with strippath
        for base, inside, word in product({unit.file.parent, folder}, unit.folders, names):
            place = self.placed(base, f"{inside}/{word}" if inside else word, where, self.confined)
            try:
                status = os.stat(place)
            except OSError:
                continue
            if stat.S_ISDIR(status.st_mode):
                continue
            if (
                not stat.S_ISREG(status.st_mode) or status.st_size == 0
            ):  # what /proc holds is empty, and may wait for ever
                raise DescriptionError(
                    f"{where}: {shown(name)} is empty, a device or a pipe, expected a regular file: save it to a file."
                )
            if status.st_size > LARGEST_DATA:
                raise DescriptionError(
                    f"{where}: {shown(name)} has {status.st_size / 1e6:.0f} MB, expected at most "
                    f"{LARGEST_DATA / 1e6:.0f} MB."
                )

    def placed(self, base: Path, name: str, where: str, confined: bool) -> Path:
        """Return the path of a name. A confined name must not lead to a file outside of the allowed folder."""
        plain = name.replace("\\", "/")  # as MuJoCo does
        if ":/" in plain or "\0" in plain:
            raise DescriptionError(f"{where}: {shown(name)} is not a path, expected a file beside the MJCF file.")
        path = _real(base / plain)
        if confined and not path.is_relative_to(self.allowed) and path.exists():
            above = os.path.commonpath([path, self.allowed])
            raise DescriptionError(
                f"{where}: {shown(name)} lies outside of {shown(os.fspath(self.allowed), 200)}, expected all files of "
                f"the model inside it: copy it there, or allow a folder above with root={above!r}."
            )
        return path


def _real(path: Path) -> Path:
    """Without .. as MuJoCo takes them, by name, then without links."""
    return Path(os.path.realpath(os.path.normpath(os.path.abspath(path))))


def _elements(top: Element, source: str) -> Iterator[Element]:
    """Every element, unless it would be copied too often."""
    waiting = [(top, 1.0)]
    while waiting:
        element, copies = waiting.pop()
        copies = _checked_copies(element, copies, source)
        waiting.extend((child, copies) for child in element.children)
        yield element


def _note(unit: _Unit, element: Element, folder: Path, where: str) -> None:
    """The files that an element names, and where MuJoCo is told to look for them."""
    for key, value in element.attributes.items():
        if key.lower() in ("assetdir", "meshdir", "texturedir") and value:
            unit.folders.add(value)
        elif key.lower().startswith("file") and value:  # also fileup, filename
            unit.data.append((value.removeprefix("package://"), folder, where))


def _checked_copies(element: Element, copies: float, source: str) -> float:
    """How many times the children of an element that is itself made so many times are made.

    MuJoCo makes whatever number is asked for, however long it takes.
    """
    tag = element.tag.lower()
    asked = [("nrow", "ncol"), ("width", "height"), ("count",)]
    if tag == "size":
        asked += [(key,) for key in element.attributes if key.startswith(("nkey", "nuser"))]
    for keys in asked:
        most = MOST_COPIES if len(keys) == 1 else LARGEST_GRID
        total = copies if keys == ("count",) else 1.0
        for word in (word for key in keys for word in element.attributes.get(key, "").split()):
            try:
                total *= max(abs(float(word)), 1.0)
            except ValueError:
                total = float("nan")
        if not total <= most:
            raise DescriptionError(
                f"{source}, line {element.line}: <{element.tag}> asks for {' x '.join(keys)} = "
                f"{' '.join(element.attributes.get(key, '') for key in keys)[:40]!r}, expected at most {most} in all."
            )
        if keys == ("count",) and tag == "replicate":
            copies = total
    return copies
