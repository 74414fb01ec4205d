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


# Lines whose formula the source does not show: matrices that a step calls `inner`, and tuples.
WRITTEN_OUT = {
    "Delta_plus = link.phi_T(inner)": r"{\Delta}^{+} = {\phi}^{T}\,{\Delta}_{\mathrm{inner}}\,\phi",
    "Omega_plus = link.phi_T(inner)": r"{\Omega}^{+} = {\phi}^{T}\,{\Omega}_{\mathrm{inner}}\,\phi",
    "V_plus = link.phi_T(parent[0])": r"{V}^{+} = {\phi}^{T}\,{V}_{\mathrm{inner}}",
    "n = local_bias_acceleration(link, V_plus, qd) + link.phi_T(parent[1])":
        r"n = {V}^{+} \times \left({H}^{T}\,\dot{q}\right) + {\phi}^{T}\,{n}_{\mathrm{inner}}",
    "rho = outer.rho + Sym(m, m, m, 0.0, 0.0, 0.0)": r"\rho = {\rho}_{\mathrm{outer}} + m\,I",
    "J = outer.J + link.M.I": r"J = {J}_{\mathrm{outer}} + I",
    "P = P.minus_outer(column * -weight, column)": r"P = \sum_i {d}_{i}\,{u}_{i}\,{u}_{i}^{T}",
    "b = classical_bias_force(link, at.V)":
        r"b = \begin{bmatrix}\omega \times I\,\omega \\ m\,\omega \times \left(\omega \times c\right)\end{bmatrix}",
    "c = 1.0 / kept.D[0] + G.dot(Delta_G)": r"c = {D}^{-1} + {G}^{T}\,{\Delta}^{+}\,G",
    "d = Delta_G - H * c": r"{d}^{T} = {\Delta}^{+}\,G - {H}^{T}\,c",
    "Delta = Delta_plus.minus_outer(H, d).minus_outer(Delta_G, H)":
        r"\Delta = {\Delta}^{+} - {H}^{T}\,d - {\Delta}^{+}\,G\,H",
    "return z - G @ link.H(z)": r"\left(I - G\,H\right)\,z",
    "return motion - H * G.dot(motion)": r"{\left(I - G\,H\right)}^{T}\,\lambda",
    "zero = Predicted(ZERO_FORCE, ZERO_ARTICULATED)": r"{z}^{+} = 0, \quad {P}^{+} = 0",
    "zero = Predicted(ZERO_FORCE, (ZERO_FORCE,) * 6, (0.0,) * 6)": r"{z}^{+} = 0, \quad U = 0, \quad d = 0",
    "start = State(base.w, base.dw, rotation_tensor(base.w, base.dw), base.a, ZERO_VEC)":
        r"{\omega}_{0}, \quad {\dot{\omega}}_{0}, \quad {\ddot{p}}_{0} = {\ddot{c}}_{0} - g",
    "Y = outer.Y + skew(link.M.mp)": r"Y = {Y}_{\mathrm{outer}} + m\,\tilde{c}",
    "a_link = Motion(ZERO_VEC, centripetal(parent.V.angular, link.X.origin()))":
        r"{a}_{\mathrm{link}} = \begin{bmatrix}0 \\ {\omega}_{\mathrm{inner}} \times "
        r"\left({\omega}_{\mathrm{inner}} \times l\right)\end{bmatrix}",
    "z_plus = z + G * innovation[0] + P_n": r"{z}^{+} = z + G\,\mathrm{innovation} + {P}^{+}\,n",
    "carried = link.phi_T(inner)": r"\mathrm{carried} = {\phi}^{T}\,{\lambda}_{\mathrm{inner}}",
    "carried = link.phi_T(inner) + at.a": r"\mathrm{carried} = {\phi}^{T}\,{\alpha}_{\mathrm{inner}} + a",
    "carried = link.phi_T(parent) + at.n": r"\mathrm{carried} = {\phi}^{T}\,{\lambda}_{\mathrm{inner}} + n",
    "moments, forces, accelerations = outer.moments, outer.forces, outer.accelerations": "",
    "z = outer": "",
    "w = w_inner + rate.angular":
        r"\omega = {A}^{T}\,{\omega}_{\mathrm{inner}} + {\left({H}^{T}\,\dot{q}\right)}_{\omega}",
    "dw = link.X.turn_back(inner.dw) + (joint.angular + acceleration.angular)":
        r"\dot{\omega} = {A}^{T}\,{\dot{\omega}}_{\mathrm{inner}} + {a}_{\omega} + "
        r"{\left({H}^{T}\,\ddot{q}\right)}_{\omega}",
    "pdd = pdd + (joint.linear + acceleration.linear)":
        r"\ddot{p} \leftarrow \ddot{p} + {a}_{v} + {\left({H}^{T}\,\ddot{q}\right)}_{v}",
    "dv = dv_foot + U @ link.offset + (joint.linear + acceleration.linear)":
        r"\dot{v} = {\dot{v}}_{\mathrm{foot}} + U\,\mathrm{offset} + {a}_{v} + {\left({H}^{T}\,\ddot{q}\right)}_{v}",
}  # fmt: skip
CALL = re.compile(r"\\mathrm\{[^{}]*\}\\,\\left\(")  # a function of the program, which says nothing in a formula


def formula_of(code: str) -> str:
    """The line in the papers' symbols, as LaTeX for Markdown.

    Empty for a part of a statement, a whole sweep, and a line that only calls a function or hands on a value.
    """
    from linksweep.explain.formula import equations, latex

    if code in WRITTEN_OUT:
        return WRITTEN_OUT[code] and f"${WRITTEN_OUT[code]}$"
    if "sweep." in code:
        return ""
    try:
        statements = ast.parse(code).body
    except SyntaxError:
        return ""
    trees = [tree for statement in statements for tree in equations(statement)]
    texts = [latex(tree) for tree in trees]
    if not trees or any("code" in str(tree) for tree in trees) or any(map(CALL.search, texts)):
        return ""
    if any(tree.kind in ("word", "symbol") for tree in trees):  # `return kept, nothing`
        return ""
    return ", ".join(f"${text}$" for text in texts).replace(r"\mathrm{parent}", r"\mathrm{inner}")
