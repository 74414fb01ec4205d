"""docs/howitworks.md walks through a first call; here the call is made, and the walk is what it does."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import linksweep

ROOT = Path(linksweep.__file__).parent
PAGE = Path(__file__).parents[2] / "docs" / "howitworks.md"
CALL = """
import sys
import numpy as np
import linksweep as ls

robot, zero, root, visited = ls.robots.puma560(), np.zeros(6), ls.__path__[0], {}

def visit(frame, event, _):
    if event == "call" and frame.f_code.co_filename.startswith(root):
        visited.setdefault(frame.f_code.co_filename[len(root) + 1 : -3])

sys.setprofile(visit)
robot.inverse_dynamics(zero, zero, zero)
sys.setprofile(None)
print(*visited, sep="\\n")
"""


def first_call(cache: Path) -> list[str]:
    """Modules in the order in which a first call, without a cache, enters them; support/ serves all and is left out."""
    environment = {"PYTHONPATH": str(ROOT.parent), "XDG_CACHE_HOME": str(cache), "PATH": "/usr/bin:/bin"}
    run = subprocess.run([sys.executable, "-c", CALL], capture_output=True, text=True, env=environment, check=True)
    return [module for module in run.stdout.split() if not module.startswith("support/")]


def meaning(module: str) -> str:
    """The first sentence of its docstring."""
    text = ast.get_docstring(ast.parse((ROOT / f"{module}.py").read_text())) or ""
    return text.split("\n\n")[0].replace("\n", " ").removesuffix(".").replace("|", "\\|")


def table(modules: list[str]) -> str:
    """One row for each stay in a room: the modules that the call enters there for the first time."""
    stays: list[list[str]] = []
    for module in modules:
        if not stays or stays[-1][-1].split("/")[0] != module.split("/")[0]:
            stays.append([])
        stays[-1].append(module)
    lines = ["| room | modules, in the order of their first visit |", "|---|---|"]
    for stay in stays:
        room = stay[0].split("/")[0]
        lines.append(f"| `{room}/` | " + "; ".join(f"`{m.split('/', 1)[1]}`: {meaning(m)}" for m in stay) + " |")
    return "\n".join(lines)


def test_the_page_walks_as_the_call_does(tmp_path: Path):
    page, walked = PAGE.read_text(), table(first_call(tmp_path))
    told = page.split("<!-- table: walk -->\n")[1].split("\n<!-- end -->")[0]
    assert told == walked, f"the walk of docs/howitworks.md is now\n{walked}"
