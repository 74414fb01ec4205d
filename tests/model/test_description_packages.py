"""Every description file of the packages that are installed: it agrees with its peer, or a sentence says why not.

    PYTHONPATH=folder/of/packages python tests/model/test_description_packages.py        prints the table alone

Packages count when they can be found, whether or not they could be imported: `pip install --no-deps --target folder
pybullet dm_control robosuite metaworld drake` is enough. LINKSWEEP_DESCRIPTIONS names further folders, with colons.
"""

from __future__ import annotations

import contextlib
import importlib.metadata
import json
import os
import subprocess
import sys
import threading
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

PROGRAM = Path(__file__).parents[1] / "helpers" / "description_packages.py"
PACKAGES = (
    "pybullet", "dm_control", "robosuite", "robosuite_models", "metaworld", "drake", "mujoco-mjx", "brax", "gymnasium",
    "gymnasium-robotics", "d4rl", "playground", "mani_skill", "safety-gymnasium", "MyoSuite", "fancy-gym", "gym-aloha",
    "gym-xarm", "rtb-data", "upkie_description", "jvrc_description", "example-robot-data",
)  # fmt: skip
BAR = 1e-9  # of the largest element; the loader makes rotation entries within 1e-11 of 0 and 1 exact
OBJECTS = "random_urdfs"  # a thousand things without joints


def files_of(package: str) -> list[tuple[str, str]]:
    """Description files, with the folder that holds all that they include."""
    try:
        found = importlib.metadata.files(package) or []
    except importlib.metadata.PackageNotFoundError:
        return []
    chosen = [f for f in found if f.suffix.lower() in (".urdf", ".xml", ".mjcf") and OBJECTS not in f.parts]
    return sorted((str(f.locate()), str(Path(str(f.locate())).parents[len(f.parts) - 2])) for f in chosen)


def folders() -> dict[str, list[tuple[str, str]]]:
    named = [Path(name) for name in os.environ.get("LINKSWEEP_DESCRIPTIONS", "").split(os.pathsep) if name]
    return {
        folder.name: sorted((str(f), str(folder)) for f in folder.rglob("*") if f.suffix in (".urdf", ".xml", ".mjcf"))
        for folder in named
    }


SOURCES = {package: files for package in PACKAGES if (files := files_of(package))} | folders()


def compared(files: list[tuple[str, str]]) -> list[dict[str, Any]]:
    """What becomes of each; a peer that crashes on a file is started again behind it."""
    results: list[dict[str, Any]] = []
    while files:
        child = subprocess.Popen(
            [sys.executable, str(PROGRAM)], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL, text=True,
        )  # fmt: skip
        assert child.stdin and child.stdout
        lines = "".join(json.dumps(file) + "\n" for file in files)
        feeder = threading.Thread(target=_feed, args=(child, lines), daemon=True)
        feeder.start()
        begun = ""
        for line in child.stdout:
            result = json.loads(line)
            begun = result.get("begun", begun)
            if "begun" not in result:
                results.append(result)
        feeder.join()
        child.stdout.close()
        if not child.wait():
            break
        results.append({"file": begun, "base": "fixed", "peer": f"crashes ({child.returncode})"})
        files = files[[file for file, _ in files].index(begun) + 1 :]
    return results


def _feed(child: subprocess.Popen[str], lines: str) -> None:
    assert child.stdin
    with contextlib.suppress(OSError), child.stdin:  # it crashed: what is left is fed to the next one
        child.stdin.write(lines)


def outcome(result: dict[str, Any]) -> str:
    """One of the columns of the table, or what is wrong."""
    if result["peer"] not in ("pinocchio", "mujoco"):
        return "no joint" if result["peer"] == "no joint" else "not read there"
    if "refused" in result:
        fine = result["refused"] and "\n" not in result["refused"] and len(result["refused"]) < 1000
        return "refused" if fine else f"no sentence: {result['refused']!r}"
    if "problem" in result:
        return result["problem"]
    if not result["error"] <= BAR:
        return f"differs by {result['error']:.1e}, said: {result['said']}"
    if not result.get("rest", 0.0) <= BAR:
        return f"forces of {result['rest']:.1e} that nothing was said of"
    return "agrees, warned" if result["said"] else "agrees"


COLUMNS = ("agrees", "agrees, warned", "refused", "not read there", "no joint")


def row(package: str, counts: Counter[str], worst: float) -> str:
    cells = [str(counts[column]) for column in COLUMNS]
    return (
        f"| {package} | "
        + " | ".join([*cells, str(sum(counts[c] for c in counts if c not in COLUMNS))])
        + f" | {worst:.0e} |"
    )


def judged(package: str) -> tuple[str, dict[str, str], list[dict[str, Any]]]:
    """The package's row of the table, and what is wrong, by file."""
    results = compared(SOURCES[package])
    outcomes = [outcome(result) for result in results]
    wrong = {f"{r['file']} ({r['base']})": o for r, o in zip(results, outcomes, strict=True) if o not in COLUMNS}
    worst = max((r["error"] for r in results if "error" in r), default=0.0)
    return row(package, Counter(outcomes), worst), wrong, results


@pytest.mark.slow
@pytest.mark.parametrize("package", SOURCES)
def test_every_description_agrees_or_a_sentence_says_why_not(package: str, capsys: pytest.CaptureFixture[str]):
    line, wrong, _ = judged(package)
    with capsys.disabled():
        print(f"\n{line}")
    assert not wrong, wrong


def main() -> None:
    print("| package | " + " | ".join((*COLUMNS, "wrong", "largest error")) + " |")
    print("|---" * (len(COLUMNS) + 3) + "|")
    problems: dict[str, str] = {}
    refusals: list[str] = []
    for package in sys.argv[1:] or SOURCES:
        line, wrong, results = judged(package)
        print(line, flush=True)
        problems |= wrong
        refusals += [f"refused ({r['base']}): {r['refused']}" for r in results if "refused" in r]
    for where, what in problems.items():
        print(f"WRONG {where}: {what}")
    print("\n".join(refusals))


if __name__ == "__main__":
    main()
