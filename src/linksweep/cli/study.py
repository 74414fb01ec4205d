"""`linksweep study`: the papers' experiments."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from linksweep.cli.common import DISAGREEMENT, AsJson, OutputFolder
from linksweep.studies import STUDIES


def _names(incomplete: str) -> list[tuple[str, str]]:
    return [(name, about) for name, about in STUDIES.items() if name.startswith(incomplete)]


def study(
    name: Annotated[
        str | None, typer.Argument(help=f"{', '.join(STUDIES)}; without it they are listed.", autocompletion=_names)
    ] = None,
    output: OutputFolder = Path("out"),
    as_json: AsJson = False,
) -> None:
    """Run an experiment of the papers: CSV, plots and a report; exit code 1 if a number is not the paper's."""
    from linksweep.studies import run

    if name is None:
        width = max(map(len, STUDIES))
        print(json.dumps(STUDIES, indent=2) if as_json else "\n".join(f"{n:{width}}  {a}" for n, a in STUDIES.items()))
        return
    written = run(name, output)
    if as_json:
        checks = [{"what": c.what, "value": c.value, "wanted": c.wanted, "ok": c.ok} for c in written.checks]
        facts = {"name": name, "ok": written.ok, "checks": checks, "files": list(map(str, written.files))}
        print(json.dumps(facts, indent=2, ensure_ascii=False, allow_nan=False))
    else:
        print(written)
    if not written.ok:
        raise typer.Exit(DISAGREEMENT)
