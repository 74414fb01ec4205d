"""C of straight-line code: one line for each value that has a name or is used again, the others inside of those.

Nothing is reordered or regrouped: brackets stand where the Program has them, so that C rounds as the Program does.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from ..tracing.expression import LEAVES, Node, Operand, measured_angle, number
from ..tracing.program import Add, Body, Effect, Label, Output, PairOutput, Program, Store
from .c_names import GLUE, WEAK, Names, comment, literal, wrapped

LARGEST = 8  # operations inside of one expression before a value gets a line of its own
CHOICE, COMPARISON, SUM, PRODUCT, SIGN, ATOM = range(6)  # what binds tighter is larger
BINARY = {"add": ("+", SUM), "sub": ("-", SUM), "mul": ("*", PRODUCT), "div": ("/", PRODUCT)}


@dataclass(frozen=True, slots=True)
class Expression:
    text: str
    binding: int
    size: int = 0  # operations in it

    def within(self, binding: int) -> str:
        return self.text if self.binding >= binding else f"({self.text})"


class BodyWriter:
    """Writes one body. `place` says what a leaf reads or an effect writes, `links` what a link is called, `shift` the
    function that adds an offset to an angle."""

    def __init__(
        self, program: Program, dtype: str, names: Names, links: dict[str, str] | None,
        place: Callable[[Node | Effect], str], shift: str,
    ):  # fmt: skip
        self.program = program
        self.dtype = dtype
        self.names = names
        self.links = links  # None: in a loop over the links no name of a link has a meaning
        self.place = place
        self.shift = shift
        self.values: dict[Node, Expression] = {}
        self.angles: set[Operand] = set()
        self.said: tuple[str, ...] = ()

    def lines(self, body: Body, indent: str) -> Iterator[str]:
        self.angles = {node.args[0] for node in body.nodes if node.op in ("sin", "cos")}
        uses = Counter(arg for node in body.nodes for arg in node.args if isinstance(arg, Node))
        uses.update(effect.value for effect in body.effects if isinstance(effect.value, Node))
        written = {(e.array, e.slot): e.row if isinstance(e, Store) else "parent"
                   for e in body.effects if isinstance(e, (Store, Add))}  # fmt: skip
        results = {e.value: e for e in reversed(body.effects) if isinstance(e, Output) and isinstance(e.value, Node)}
        kept = {} if self.links is not None else {effect.value for effect in body.effects}  # named by where it goes
        for node in body.nodes:
            label = self.program.labels.get(node, Label())
            if node.op in LEAVES:
                self.values[node] = Expression(self.place(node), ATOM)
                if node.op != "load" or not _meet(node.data[2], written.get(node.data[:2])):
                    continue
            else:
                found = self.values[node] = self._operation(node)
                named = label.quantity or node in results
                if node.op == "neg" and found.size == 0:
                    continue
                if uses[node] == 1 and found.size < LARGEST and (not named or node in kept):
                    continue
            if node.op not in LEAVES:
                yield from self._remarks(label, indent)
            yield from self._line(node, label, results.get(node), indent)
        if body.effects and indent == "    ":
            yield ""
        for effect in body.effects:
            if isinstance(effect.value, Node) and effect.value in kept and self.values[effect.value].size:
                yield from self._remarks(self.program.labels.get(effect.value, Label()), indent)
            yield from wrapped(f"{self.place(effect)} {'+=' if isinstance(effect, Add) else '='} "
                               f"{self.operand(effect.value, CHOICE)};", indent)  # fmt: skip

    def operand(self, x: Operand, binding: int) -> str:
        return self._expression(x).within(binding)

    def _expression(self, x: Operand) -> Expression:
        if isinstance(x, Node):
            return self.values[x]
        text = literal(number(x), self.dtype)
        return Expression(text, SIGN if text.startswith("-") else ATOM)

    def _line(self, node: Node, label: Label, result: Output | None, indent: str) -> Iterator[str]:
        name = self._name(label, result)
        kind = "int" if node.op == "lt" else self.dtype
        yield from wrapped(f"const{GLUE}{kind}{GLUE}{name}{GLUE}= {self.values[node].text};", indent)
        self.values[node] = Expression(name, ATOM)

    def _name(self, label: Label, result: Output | None) -> str:
        """link3_alpha_angular_x; for a value on the way to alpha, link3_alpha_t1."""
        link = "" if self.links is None else self.links.get(label.link, "")
        of = "" if self.links is None else self.links.get(label.of, "")
        if not label.quantity and result is not None and len(result.where) == 1:
            array = self.program.outputs[result.output]
            return self.names.new("_".join(map(str, (array.name, *_indices(result.where[0], array.shape)))))
        quantity = label.quantity or label.target
        stem = "_".join(part for part in (link, quantity, of and f"of_{of}") if part)
        return self.names.new(stem) if label.quantity else self.names.numbered(f"{stem}_t" if stem else "t")

    def _remarks(self, label: Label, indent: str) -> Iterator[str]:
        """A heading where another link begins, a line where another equation does."""
        said = (label.at, label.step, label.equation, label.statement)
        if said[:2] != self.said[:2] and (label.step or not self.said):
            title = label.step or "joints"
            if self.links is None:
                yield from comment(f"---- {title} ----", indent)
            else:
                short = self.links.get(label.at, label.at)
                called = label.at if short == label.at else f"{short}, {label.at}"
                yield ""
                yield from comment(f"---- {f'{called}: ' if label.step and label.at else ''}{title} ----", indent)
        if said != self.said and (label.equation or label.statement):
            text = ": ".join(part for part in (label.equation, label.statement) if part)
            yield from comment(text, indent)
        self.said = said

    def _operation(self, node: Node) -> Expression:
        args = [self._expression(arg) for arg in node.args]
        op, size = node.op, 1 + sum(arg.size for arg in args)
        if node in self.angles and measured_angle(node)[0] is not node:
            measured, offset = (self._expression(x).within(CHOICE) for x in measured_angle(node))
            return Expression(f"{self.shift}({measured}, {offset})", ATOM, size)
        if op in BINARY:
            sign, binding = BINARY[op]
            # what follows is bracketed even where it binds as tightly: a - (b + c), a * (b * c), a * (-b)
            right = args[1].within(ATOM if args[1].binding == SIGN and binding == PRODUCT else binding + 1)
            if binding == SUM and right.startswith("-"):  # a - -b: exactly a + b
                sign, right = "-+"[sign == "-"], right[1:]
            space = " " if binding == SUM else WEAK
            return Expression(f"{args[0].within(binding)}{space}{sign}{GLUE}{right}", binding, size)
        if op == "neg":
            return Expression(f"-{args[0].within(ATOM)}", SIGN, size - 1)
        if op == "lt":
            return Expression(f"{args[0].within(SUM)} < {args[1].within(SUM)}", COMPARISON, size)
        if op == "where":
            return Expression(
                f"{args[0].within(ATOM)} ? {args[1].within(SUM)} : {args[2].within(SUM)}", CHOICE, size
            )  # fmt: skip
        texts = [arg.within(CHOICE) for arg in args]
        if op in ("fma", "fms", "fnma"):
            negated = {"fms": 2, "fnma": 0}.get(op)
            texts = [f"-{arg.within(ATOM)}" if i == negated else text
                     for i, (arg, text) in enumerate(zip(args, texts, strict=True))]  # fmt: skip
            op = "fma"
        suffix = "f" if self.dtype == "float" else ""
        return Expression(f"{op}{suffix}({', '.join(texts)})", ATOM, size)


def _meet(read: str | int, written: str | int | None) -> bool:
    """Whether a row that is read may be the one that is written, so that it must be read first."""
    return written is not None and (read == written or {read, written} not in ({"own", "parent"}, {"own", "base"}))


def _indices(element: int, shape: Sequence[int]) -> list[int]:
    found: list[int] = []
    for size in reversed(shape):
        found.insert(0, element % size)
        element //= size
    return found


__all__ = ["BodyWriter", "PairOutput"]
