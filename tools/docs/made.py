"""What a part of the build adds to the site, kept until the sources that it comes from change."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parent.parent.parent


class Made(NamedTuple):
    """texts: Markdown of pages, by address. files: figures and other files, by address."""

    texts: dict[str, str]
    files: dict[str, Path]


def kept(folder: Path, make: Callable[[Path], Made], sources: tuple[str, ...]) -> Made:
    """What `make` makes in the folder, or made there when these files, and those of the package, were the same."""
    note, digest = folder / "made.json", digest_of(sources)
    if note.exists():
        found = json.loads(note.read_text(encoding="utf-8"))
        files = {uri: Path(path) for uri, path in found["files"].items()}
        if found["sources"] == digest and all(path.exists() for path in files.values()):
            return Made(found["texts"], files)
    folder.mkdir(parents=True, exist_ok=True)
    made = make(folder)
    paths = {uri: str(path) for uri, path in made.files.items()}
    note.write_text(json.dumps({"sources": digest, "texts": made.texts, "files": paths}), encoding="utf-8")
    return made


def digest_of(sources: tuple[str, ...]) -> str:
    digest = hashlib.sha256()
    for source in ("src/linksweep", *sources):
        path = ROOT / source
        for file in sorted(path.rglob("*")) if path.is_dir() else [path]:
            if file.is_file() and "__pycache__" not in file.parts:
                digest.update(str(file.relative_to(ROOT)).encode() + file.read_bytes())
    return digest.hexdigest()
