"""1,000 broken files: each raises an error of linksweep or is a robot, none hangs, none crashes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import mutations
import pytest
from abuse_helpers import PATIENCE

COUNT, BATCH = 1000, 100


def run(first: int) -> list[dict]:
    """One batch in a process of its own: a crash is seen, and takes no other batch with it."""
    command = [sys.executable, str(Path(mutations.__file__)), str(first), str(first + BATCH)]
    environment = {**os.environ, "LINKSWEEP_BACKEND": "interpreter"}
    done = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=PATIENCE)
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    assert done.returncode == 0, f"mutant {first + len(lines)} ended the process: {done.stderr[-2000:]}"
    return lines


@pytest.mark.cases(1)
@pytest.mark.parametrize("first", range(0, COUNT, BATCH))
def test_every_mutant_is_refused_or_a_robot(first: int):
    """The limit of time leaves room for a machine whose processors are shared: none takes a second on one alone."""
    results = run(first)
    assert [line["index"] for line in results] == list(range(first, first + BATCH))
    problems = [f"{line['index']} {line['mutation']}: {line['problem']}" for line in results if line["problem"]]
    assert not problems, "\n".join(problems)
    assert max(line["took"] for line in results) < mutations.LIMIT


@pytest.mark.slow
def test_the_mutants_are_worth_it():
    """Every mutation occurs, and both outcomes do: mutants that are all refused at once would test little."""
    with ThreadPoolExecutor(2) as pool:
        results = [line for lines in pool.map(run, range(0, COUNT, 3 * BATCH)) for line in lines]
    known = {function.__name__ for function in mutations.COMMON + mutations.OF_XML + mutations.OF_TOML}
    assert {line["mutation"] for line in results} == known
    for suffix in (".urdf", ".toml", ".xml"):
        counts = Counter(line["result"] for line in results if line["suffix"] == suffix)
        assert counts["refused"] > 30 and counts["robot"] > 20, (suffix, counts)
    bombs = Counter(line["result"] for line in results if line["mutation"] == "bomb")
    assert set(bombs) == {"refused"}
