"""Statements of an algorithm as formulas, in LaTeX and MathML.

The source is close to the papers: `V = link.phi_T(parent.V) + link.H_T @ qd` is V = phi^T V + H^T q'. It is parsed, and
names and calls are replaced by the symbols that they stand for. Other expressions are shown as source code.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from ..backends.symbolic import Expression

GREEK = {
    "alpha": "α", "zeta": "ζ", "nu": "ν", "rho": "ρ", "phi": "φ", "psi": "ψ", "tau": "τ", "Delta": "Δ", "costate": "λ",
    "w": "ω", "Omega": "Ω",
}  # fmt: skip
LATEX = {
    "α": r"\alpha", "ζ": r"\zeta", "ν": r"\nu", "ρ": r"\rho", "φ": r"\phi", "ψ": r"\psi", "τ": r"\tau", "Δ": r"\Delta",
    "λ": r"\lambda", "ω": r"\omega", "Ω": r"\Omega",
}  # fmt: skip
DOTTED = {"qd": ("q", 1), "qdd": ("q", 2), "dw": ("ω", 1), "dv": ("v", 1), "pdd": ("p", 2), "hd": ("h", 1)}
SAME_LINK = ("at", "kept", "free")  # records of earlier sweeps for the same link
INNER, OUTER = ("inner", "parent"), ("outer",)
OF_LINK = {"com": "c", "I_com": "I_c", "armature": "R", "M": "M", "H_T": "H_T", "foot": "foot", "offset": "offset"}
CONVERSIONS = ("articulated", "block", "columns", "rows", "elements")  # another form of the same quantity
WRAPPERS = ("Span", "Coordinates", "JointInertia.of")
MATRICES = ("P", "P_plus", "Delta", "Omega")  # symmetric 6 x 6 matrices: carried from link to link on both sides
PRODUCTS = {"P_H": ("P", "H_T"), "Delta_G": ("Delta", "G"), "Omega_G": ("Omega", "G")}  # names that stand for products


class Tree(NamedTuple):
    """A formula: its kind and parts. rank: its precedence (1 a sum, 2 a product, 3 anything that needs no brackets)."""

    kind: str
    parts: tuple[Tree | str | int, ...]
    rank: int = 3

    @property
    def text(self) -> str:
        """Text of a leaf."""
        return str(self.parts[0])

    @property
    def dots(self) -> int:
        """Order of the time derivative of a symbol."""
        return self.parts[1] if isinstance(self.parts[1], int) else 0


def equations(node: ast.stmt) -> list[Tree]:
    """Return the formulas of a statement, one for each assigned name; of a returned pair, the last value."""
    if isinstance(node, ast.Return) and node.value is not None:
        value = node.value.elts[-1] if isinstance(node.value, ast.Tuple) else node.value
        return [_built(value)]
    if not isinstance(node, ast.Assign):
        return [Tree("code", (" ".join(ast.unparse(node).split()),))]
    target, value = node.targets[-1], node.value
    if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple) and len(target.elts) == len(value.elts):
        pairs = list(zip(target.elts, value.elts, strict=True))
    else:
        pairs = [(target, value)]
    built = [(_built(left), _built(right)) for left, right in pairs]
    return [left if left == right else Tree("row", (left, _op("="), right), 0) for left, right in built]


def symbol(name: str) -> Tree:
    """Return the symbol of a name in the source: dw is a dotted omega, V_plus a V with a plus."""
    if name in PRODUCTS:
        return Tree("row", tuple(map(symbol, PRODUCTS[name])), 2)
    if name.startswith("ZERO_"):
        return Tree("number", ("0",))
    if name in DOTTED:
        return Tree("symbol", DOTTED[name])
    if name in GREEK or len(name) == 1:
        return Tree("symbol", (GREEK.get(name, name), 0))
    head, _, tail = name.partition("_")
    if head and tail:
        if tail == "plus":
            return Tree("sup", (symbol(head), _op("+")))
        if tail == "T":
            return Tree("sup", (symbol(head), Tree("symbol", ("T", 0))))
        if tail == "free":
            return Tree("sup", (symbol(head), _op("′")))
        return Tree("sub", (symbol(head), symbol(tail)))
    if len(name) == 2 and name[1].isdigit():
        return Tree("sub", (symbol(name[0]), Tree("number", (name[1],))))
    return Tree("word", (name,))


def _op(sign: str) -> Tree:
    return Tree("op", (sign,))


def _transposed(tree: Tree) -> Tree:
    return Tree("sup", (tree, symbol("T")))


def _built(node: ast.expr) -> Tree:
    try:
        return _Builder().of(node)
    except NotImplementedError:
        return Tree("code", (" ".join(ast.unparse(node).split()),))


class _Builder:
    def of(self, node: ast.expr) -> Tree:
        if isinstance(node, ast.Name):
            return symbol(node.id)
        if isinstance(node, ast.Constant) and isinstance(node.value, (int, float, str)):
            return Tree("number", (f"{node.value:g}" if isinstance(node.value, (int, float)) else str(node.value),))
        if isinstance(node, ast.BinOp):
            return self.binary(node)
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
            return Tree("row", (_op("−"), self.bracketed(node.operand, 2)), 1)
        if isinstance(node, ast.Attribute):
            return self.attribute(node)
        if isinstance(node, ast.Call) and not node.keywords:
            return self.call(node)
        if isinstance(node, ast.Subscript):
            return self.entry(node)
        if isinstance(node, ast.Tuple):
            return self.of(node.elts[0]) if len(node.elts) == 1 else self.listed(node.elts)
        raise NotImplementedError

    def bracketed(self, node: ast.expr, rank: int) -> Tree:
        """Return a formula, in brackets if its precedence is below `rank`."""
        tree = self.of(node)
        return tree if tree.rank >= rank else Tree("brackets", (tree,))

    def binary(self, node: ast.BinOp) -> Tree:
        left, right = node.left, node.right
        if isinstance(left, (ast.Tuple, ast.List)):  # repeated, no product
            raise NotImplementedError
        if isinstance(node.op, (ast.Add, ast.Sub)):
            plus = isinstance(node.op, ast.Add)
            return Tree("row", (self.of(left), _op("+" if plus else "−"), self.bracketed(right, 1 if plus else 2)), 1)
        if isinstance(node.op, (ast.Mult, ast.MatMult)):
            return Tree("row", (self.bracketed(left, 2), self.bracketed(right, 2)), 2)
        if isinstance(node.op, ast.Div):
            return Tree("fraction", (self.of(left), self.of(right)))
        raise NotImplementedError

    def attribute(self, node: ast.Attribute) -> Tree:
        value, name = node.value, node.attr
        if name in CONVERSIONS:
            return self.of(value)
        if name == "T":
            return _transposed(self.bracketed(value, 3))
        if isinstance(value, ast.Name):
            if value.id in SAME_LINK:
                return symbol(name)
            if value.id in INNER:
                return Tree("sub", (symbol(name), Tree("word", ("inner",))))
            if value.id in OUTER or value.id == "base":
                return Tree("sub", (symbol(name), Tree("word", (value.id,))))
            if value.id == "link" and name in OF_LINK:
                return symbol(OF_LINK[name])
            if symbol(name).kind != "word":
                return Tree("sub", (symbol(name), Tree("word", (value.id,))))
        if ast.unparse(value) in ("link.M", "M") and name in ("mass", "mp"):
            mass = Tree("symbol", ("m", 0))
            return mass if name == "mass" else Tree("row", (mass, symbol("c")), 2)
        return Tree("sub", (self.bracketed(value, 3), Tree("word", (name,))))

    def call(self, node: ast.Call) -> Tree:
        name, args = ast.unparse(node.func), node.args
        if name in WRAPPERS and len(args) == 1:
            return self.of(args[0])
        record = name[0].isupper() and name.isidentifier() and name not in ("JointInertia", "Sym")
        if record:
            return self.listed(args)
        known = self.known(name, args)
        if known is not None:
            return known
        if isinstance(node.func, ast.Attribute):
            of, method = node.func.value, node.func.attr
            if not args and method in CONVERSIONS:
                return self.of(of)
            if not args and name == "link.X.origin":
                return symbol("l")
            if method == "minus_outer" and len(args) == 2:
                product = Tree("row", (self.bracketed(args[0], 2), _transposed(self.bracketed(args[1], 3))), 2)
                return Tree("row", (self.of(of), _op("−"), product), 1)
            if len(args) == 1:
                product = self.method(of, method, args[0])
                if product is not None:
                    return product
        called = Tree("word", (name.removeprefix("link.").replace("_", " "),))
        args = [arg for arg in args if ast.unparse(arg) != "link"]
        commas = [part for arg in args for part in (_op(","), self.of(arg))][1:]
        return Tree("row", (called, Tree("brackets", (Tree("row", tuple(commas), 0),))), 2)

    def known(self, name: str, args: list[ast.expr]) -> Tree | None:
        """Return the formula of a known function, as in its docstring."""
        if name == "JointInertia" and len(args) == 3:  # H P H^T + R
            products = Tree("row", (symbol("H"), self.bracketed(args[1], 2)), 2)
            return Tree("row", (products, _op("+"), self.bracketed(args[2], 2)), 1)
        if name == "updated_inertia" and len(args) == 6:  # P - G (P H^T)^T
            product = Tree("row", (self.bracketed(args[4], 2), _transposed(self.bracketed(args[3], 3))), 2)
            return Tree("row", (self.of(args[1]), _op("−"), product), 1)
        if name == "rotation_tensor" and len(args) == 2:  # dw~ + w~ w~
            w, dw = (Tree("tilde", (self.of(arg),)) for arg in args)
            return Tree("row", (dw, _op("+"), Tree("row", (w, w), 2)), 1)
        if name == "local_bias_acceleration" and len(args) == 3:  # V x (H^T qd), the product of motions
            return self.crossed(self.of(args[1]), "×", symbol("H_T"), self.of(args[2]))
        if name == "local_bias_force" and len(args) == 2:  # V x* (M V)
            V = self.of(args[1])
            return self.crossed(V, "×*", symbol("M"), V)
        if name == "centripetal" and len(args) == 2:  # w x (w x p)
            w = self.of(args[0])
            return self.crossed(w, "×", w, _op("×"), self.of(args[1]))
        if name == "skew" and len(args) == 1:
            return Tree("tilde", (self.bracketed(args[0], 3),))
        if name == "product" and len(args) == 2:
            return Tree("row", (self.bracketed(args[0], 2), self.bracketed(args[1], 2)), 2)
        if name in ("map", "Sym"):
            raise NotImplementedError
        if name == "sandwich" and len(args) == 2:
            P = self.bracketed(args[0], 2)
            return Tree("row", (P, self.bracketed(args[1], 2), P), 2)
        return None

    @staticmethod
    def crossed(left: Tree, sign: str, *right: Tree) -> Tree:
        return Tree("row", (left, _op(sign), Tree("brackets", (Tree("row", right, 2),))), 2)

    def method(self, of: ast.expr, method: str, arg: ast.expr) -> Tree | None:
        """Return the product that a method call represents, if it is one."""
        whole = ast.unparse(of)
        if whole in ("link", "link.X") and method in ("phi", "phi_T", "H", "turn", "turn_back"):
            sign = {"turn": symbol("A"), "turn_back": symbol("A_T")}.get(method, symbol(method))
            if method in ("phi", "phi_T") and ast.unparse(arg).rpartition(".")[2] in MATRICES:
                other = symbol("phi_T" if method == "phi" else "phi")
                return Tree("row", (sign, self.bracketed(arg, 2), other), 2)
            return Tree("row", (sign, self.bracketed(arg, 2)), 2)
        if method in ("cross", "dot"):
            return Tree(
                "row", (self.bracketed(of, 2), _op("×" if method == "cross" else "·"), self.bracketed(arg, 3)), 2
            )
        if method == "transpose_times":
            return Tree("row", (_transposed(self.bracketed(of, 3)), self.bracketed(arg, 2)), 2)
        inverse = Tree("row", (_op("−"), Tree("number", ("1",))))
        if method == "over":
            return Tree("row", (self.bracketed(of, 2), Tree("sup", (self.bracketed(arg, 3), inverse))), 2)
        if method == "solve" and whole != "sweep":
            return Tree("row", (Tree("sup", (self.bracketed(of, 3), inverse)), self.bracketed(arg, 2)), 2)
        return None

    def entry(self, node: ast.Subscript) -> Tree:
        indices = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        if len(indices) == 1 and isinstance(indices[0], ast.Constant):
            first = indices[0].value == 0  # the only DOF of a joint
            return self.of(node.value) if first else Tree("sub", (self.of(node.value), self.of(indices[0])))
        return Tree("sub", (self.bracketed(node.value, 3), Tree("row", tuple(self.of(index) for index in indices))))

    def listed(self, nodes: list[ast.expr]) -> Tree:
        return Tree("column", tuple(self.of(node) for node in nodes))


@dataclass(frozen=True)
class Notation:
    """A notation for formulas, LaTeX or MathML: symbols with dots, other leaves, and compounds."""

    symbol: Callable[[str, int], str]
    leaves: Mapping[str, Callable[[str], str]]  # by kind
    part: str
    shapes: Mapping[str, str]  # by kind, with a field for each part
    column: tuple[str, str, str, str]  # begin, an entry, between two of them, end
    product: str  # between two factors
    row: str

    def written(self, tree: Tree) -> str:
        if tree.kind == "symbol":
            return self.symbol(tree.text, tree.dots)
        if tree.kind in self.leaves:
            return self.leaves[tree.kind](tree.text)
        inside = [self.part.format(self.written(part)) for part in tree.parts if isinstance(part, Tree)]
        if tree.kind == "column":
            begin, entry, between, end = self.column
            return begin + between.join(map(entry.format, inside)) + end
        if tree.kind == "row":
            return (self.product if tree.rank == 2 else self.row).join(inside)
        return self.shapes[tree.kind].format(*inside)


def latex(tree: Tree) -> str:
    """Return a formula in LaTeX."""
    return _LATEX.written(tree)


def mathml(tree: Tree) -> str:
    """Return a formula in MathML, which browsers render."""
    return _MATHML.written(tree)


def latex_of(expression: Expression) -> str:
    """Return a SymPy expression in LaTeX with the papers' symbols: qd2 is a dotted q with the subscript 2."""
    from ..backends.symbolic import sympy

    named = {}
    for each in expression.free_symbols:
        name = str(each)
        head = name.rstrip("0123456789")
        number = name[len(head) :]
        named[each] = f"{latex(symbol(head))}_{{{number}}}" if number else latex(symbol(head))
    return str(sympy().latex(expression, symbol_names=named))


def escaped(text: str) -> str:
    """Escape text for LaTeX."""
    for sign, written in (("\\", r"\backslash "), ("_", r"\_"), ("{", r"\{"), ("}", r"\}"), ("%", r"\%"), ("#", r"\#"),
                          ("&", r"\&"), ("$", r"\$"), ("^", r"\hat{}"), (" ", r"\ ")):  # fmt: skip
        text = text.replace(sign, written)
    return text


def _latex_symbol(letter: str, dots: int) -> str:
    return ("{}", r"\dot{{{}}}", r"\ddot{{{}}}")[dots].format(LATEX.get(letter, letter))


def _mathml_symbol(letter: str, dots: int) -> str:
    plain = f"<mi>{escape(letter)}</mi>"
    # no accent: browsers without a mathematics font would draw it into the letter
    return f"<mover>{plain}<mtext>{'·' * dots}</mtext></mover>" if dots else plain


_SIGNS = {"−": "-", "×": r"\times", "×*": r"\times^{*}", "·": r"\cdot", "′": r"\prime"}
_LATEX = Notation(
    symbol=_latex_symbol,
    leaves={
        "word": lambda text: rf"\mathrm{{{escaped(text)}}}",
        "code": lambda text: rf"\mathtt{{{escaped(text)}}}",
        "number": str,
        "op": lambda text: _SIGNS.get(text, text),
    },
    part="{}",
    shapes={
        "sub": "{{{}}}_{{{}}}",
        "sup": "{{{}}}^{{{}}}",
        "tilde": r"\tilde{{{}}}",
        "brackets": r"\left({}\right)",
        "fraction": r"\frac{{{}}}{{{}}}",
    },
    column=(r"\begin{bmatrix}", "{}", r" \\ ", r"\end{bmatrix}"),
    product=r"\,",
    row=" ",
)
_MATHML = Notation(
    symbol=_mathml_symbol,
    leaves={
        "word": lambda text: f"<mi mathvariant='normal'>{escape(text)}</mi>",
        "code": lambda text: f"<mtext>{escape(text)}</mtext>",
        "number": lambda text: f"<mn>{escape(text)}</mn>",
        "op": lambda text: f"<mo>{escape(text)}</mo>",
    },
    part="<mrow>{}</mrow>",
    shapes={
        "sub": "<msub>{}{}</msub>",
        "sup": "<msup>{}{}</msup>",
        "tilde": "<mover>{}<mtext>~</mtext></mover>",
        "brackets": "<mo>(</mo>{}<mo>)</mo>",
        "fraction": "<mfrac>{}{}</mfrac>",
    },
    column=("<mo>[</mo><mtable>", "<mtr><mtd>{}</mtd></mtr>", "", "</mtable><mo>]</mo>"),
    product="<mspace width='0.15em'/>",
    row="",
)
