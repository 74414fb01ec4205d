"""Formulas as MathML, made when the site is built.

Browsers draw MathML themselves. So no page needs a script for its formulas, nothing is fetched, and a formula is there
when the page is.
"""

from __future__ import annotations

import ast
import html
import re

# Browsers without a font for mathematics draw accents into the letter: text above it stays above it.
ACCENTS = {"&#x002D9;": "·", "&#x000A8;": "··", "&#x0007E;": "~", "&#x0005E;": "^"}
ACCENT = re.compile(rf"<mo[^>]*>({'|'.join(ACCENTS)})</mo></mover>")
WRITTEN = re.compile(r'<(span|div) class="arithmatex">\\[\(\[](.*?)\\[\)\]]</\1>', re.DOTALL)


def as_mathml(page: str) -> str:
    """The page with $...$, which Markdown has marked, as MathML."""
    from latex2mathml.converter import convert

    def one(match: re.Match[str]) -> str:
        display = "block" if match[1] == "div" else "inline"
        return ACCENT.sub(
            lambda m: f"<mtext>{ACCENTS[m[1]]}</mtext></mover>",
            convert(html.unescape(match[2]).strip(), display=display),
        )

    return WRITTEN.sub(one, page)


def formula_of(code: str) -> str:
    """The line in the papers' symbols, as LaTeX for Markdown; nothing for a part of a statement or a whole sweep."""
    from linksweep.explain.formula import equations, latex

    if "sweep." in code:
        return ""
    try:
        statements = ast.parse(code).body
    except SyntaxError:
        return ""
    trees = [tree for statement in statements for tree in equations(statement)]
    if not trees or any("code" in str(tree) for tree in trees):
        return ""
    return ", ".join(f"${latex(tree)}$" for tree in trees)
