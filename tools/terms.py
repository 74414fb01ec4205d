"""List private vocabulary in texts that users read, to be replaced by the field's terms.

    python tools/terms.py            # counts by term and file
    python tools/terms.py --lines    # every place

It reads README.md, the pages of docs/, and the string literals of src/linksweep, docstrings of private names left out.
A tool for authors, not a test: some hits are intended.
"""

from __future__ import annotations

import argparse
import ast
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
TERMS = {
    "freedom(s)": r"(?<!of )(?<!-)\bfreedoms?\b",
    "rates (of joints)": r"\bjoint rates\b|\brates of (the )?joints\b|\balong (the )?rates\b|\bq and rates\b",
    "numbers of": r"\bnumbers of (q|the robot|a robot|a body|a joint|the model)\b",
    "slope": r"\bslopes?\b",
    "by q": r"\b(derivatives?|differentiated|gradients?) by\b",
    "tie": r"\bties?\b(?! for)|\btied\b",
    "stands": r"\bstands? (at|in|on|for|where|there|here|beside|behind|below|above)\b",
    "written out": r"\bwritten out\b",
    "law": r"\blaws?\b(?! of)(?<!control law)(?<!control laws)",
    "asked for": r"\basked for\b|\bwhat is asked\b",
    "who": r"(?<!users )(?<!readers )(?<!authors )(?<!engineers )(?<!everyone )\bwho\b|\bwhom\b",  # not of people
    "so many": r"\bso many\b",
    "unless said": r"\bunless said\b|\bnothing (else )?is said\b|\bmust be said\b",
    "is no": r"(?<!there )\bis no (?!longer|more|less|greater|larger|smaller|need)\b|\bhas no place\b",
    "figures (numbers)": r"\bfigures? (behind|of a run|here was|was printed)\b",
    "picture": r"\bpictures?\b",
    "mass centre": r"\bmass cent(re|er)s?\b",
    "description": r"\b(robot|its|the) descriptions?\b(?! file)",
    "whole robots": r"\bwhole robots\b",
    "left over": r"\bleft over\b|\bleftover\b",
    "lively": r"\blively\b",
    "moments, instants": r"\binstants?\b",
    "least, most": r"\bleast (ratio|inertia|value)\b|\bmost kept\b",
    "refused": r"\b(is|are) refused\b|\brefuses\b",
    "room, house": r"\brooms?\b|\bhouse\b|\broads?\b|\bdoors?\b",
    "nobody": r"\bnobody\b|\bbelieved?s?\b|\bbelieves\b",
}
PATTERNS = {name: re.compile(pattern, re.IGNORECASE) for name, pattern in TERMS.items()}


def texts() -> Iterator[tuple[str, int, str]]:
    """File, line and text of everything that a user may read, code on pages left out."""
    for page in (ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))):
        fenced = False
        for number, line in enumerate(page.read_text(encoding="utf-8").splitlines(), 1):
            if line.lstrip().startswith("```"):
                fenced = not fenced
            elif not fenced:
                yield str(page.relative_to(ROOT)), number, re.sub(r"`[^`]*`|\]\([^)]*\)", "", line)
    for path in sorted((ROOT / "src" / "linksweep").rglob("*.py")):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        private = {id(doc) for doc in _private_docstrings(tree)}
        for node in ast.walk(tree):
            if not isinstance(node, ast.Constant) or not isinstance(node.value, str) or id(node) in private:
                continue
            for offset, line in enumerate(node.value.splitlines()):
                yield str(path.relative_to(ROOT)), node.lineno + offset, re.sub(r"`[^`]*`", "", line)


def _private_docstrings(tree: ast.AST) -> Iterator[ast.Constant]:
    """Docstrings of modules and of names with a leading underscore, which no reference page shows."""
    for node in ast.walk(tree):
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)) and node.body:
            first, hidden = node.body[0], isinstance(node, ast.Module) or node.name.startswith("_")
            if hidden and isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant):
                yield first.value


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--lines", action="store_true", help="print every place")
    lines = parser.parse_args().lines
    by_term: Counter[str] = Counter()
    by_file: Counter[str] = Counter()
    for file, number, text in texts():
        for name, pattern in PATTERNS.items():
            for match in pattern.finditer(text):
                by_term[name] += 1
                by_file[file] += 1
                if lines:
                    print(f"{file}:{number}: {match[0]}: {text.strip()[:110]}")
    print(f"{by_term.total()} in all")
    for name, count in by_term.most_common():
        print(f"{count:5} {name}")
    for file, count in by_file.most_common(40):
        print(f"{count:5} {file}")


if __name__ == "__main__":
    main()
