"""Reports of the studies, which the build runs, as pages with their figures."""

from __future__ import annotations

import shutil
from pathlib import Path

from made import Made


def made(folder: Path) -> Made:
    from linksweep.papers import studies

    texts: dict[str, str] = {}
    files: dict[str, Path] = {}
    for name in studies.STUDIES:
        shutil.rmtree(folder / name, ignore_errors=True)
        written = studies.run(name, folder / name)
        assert written.ok, f"the study {name} did not meet its checks:\n{written}"
        for path in sorted((folder / name).iterdir()):
            if path.suffix == ".md":
                texts[f"studies/{name}.md"] = path.read_text(encoding="utf-8")
            else:
                files[f"studies/{path.name}"] = path
    return Made(texts, files)
