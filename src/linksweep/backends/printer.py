"""A Program as source text: one printer for all languages.

The printer decides what is written: names of variables, which values get a line of their own, comments with equations,
loops over links. A `Dialect` supplies the words of a language: literals, declarations, indexing, calls, control flow.
The defaults of `Dialect` suit languages with the syntax of C. `DIALECTS` lists the languages.

Nothing is reordered or regrouped. Brackets are where the Program has them, so that the text rounds as the Program does.
"""

from __future__ import annotations

import importlib
import re
import textwrap
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from ..errors import ArgumentError, BackendError
from ..support.messages import listing, nearest, shown
from ..tracing.expression import LEAVES, ONLINE, Node, Operand, measured_angle, number
from ..tracing.program import Add, Block, Body, Effect, Label, Loop, Output, PairLoop, PairOutput, Program, Store
from .loops import paired_outputs, unwritten

DIALECTS = {  # language: module and object
    "c": (".c", "C"),
    "javascript": (".javascript", "JAVASCRIPT"),
    "matlab": (".matlab", "MATLAB"),
    "opencl": (".gpu", "OPENCL"),
    "cuda": (".gpu", "CUDA"),
}
GLUE, WEAK = "\0", "\1"  # spaces at which no line is broken; a weak one only if there is no other way
LOOP_VARIABLES = frozenset(("own", "parent", "link", "first"))  # that the printer itself writes
LARGEST = 8  # operations in one expression before a value gets a line of its own
LONG_LINK = 20  # characters; a robot with longer link names gets numbers instead
CHOICE, COMPARISON, SUM, PRODUCT, SIGN, ATOM = range(6)  # precedence, loosest first
BINARY = {"add": ("+", SUM), "sub": ("-", SUM), "mul": ("*", PRODUCT), "div": ("/", PRODUCT)}


def dialect_named(language: object) -> Dialect:
    """Return the dialect of a language, such as "c"."""
    if not isinstance(language, str) or language not in DIALECTS:
        raise ArgumentError(
            f"the language is {shown(language)}{nearest(language, DIALECTS)}, expected {listing(DIALECTS)}."
        )
    module, attribute = DIALECTS[language]
    return getattr(importlib.import_module(module, __package__), attribute)


@dataclass(frozen=True, slots=True)
class Interface:
    """The interface of a printed function.

    name: of the function. dtype: "double" or "float". about: lines of the comment on top of the file. links: names of
    the links. values: of inputs that are constants, such as gains, by the name of the input.
    """

    name: str
    dtype: str = "double"
    about: tuple[str, ...] = ()
    links: tuple[str, ...] = ()
    values: tuple[tuple[str, tuple[float, ...]], ...] = ()


@dataclass(slots=True)
class Function:
    """A printed function, to be assembled by its dialect.

    tables: declarations of constants. workspace: declarations of variables that links keep values in. lines: the
    statements. shift: the name of the function that adds an offset to an angle, "" if it is not called.
    """

    inputs: list[str]
    outputs: list[str]
    tables: list[str] = field(default_factory=list[str])
    workspace: list[str] = field(default_factory=list[str])
    lines: list[str] = field(default_factory=list[str])
    shift: str = ""

    @property
    def unused(self) -> list[str]:
        """Inputs that no statement reads."""
        text = "\n".join(self.lines)
        return [name for name in self.inputs if not re.search(rf"\b{name}\b", text)]


class Dialect:
    """The words of a language. Subclasses define `source`, `literal`, `call` and, where they differ from C, the rest.

    integer, constant_integer: words before the name of an integer variable and of an integer constant. calling: the
    sentence about arguments in the comment on top of a file. Statements are printed with GLUE in place of spaces at
    which no line is broken.
    """

    language: str  # its key in DIALECTS
    suffix: str  # of a file
    types: tuple[str, ...] = ("double", "float")
    reserved: frozenset[str] = frozenset()  # words that no variable can be called, besides LOOP_VARIABLES
    reserved_pattern: re.Pattern[str] = re.compile(r"(?!)")
    longest_name = 63
    width = 100
    indent = "    "
    continuation = ""  # at the end of a line that the next one continues
    integer, constant_integer = "int ", "const int "
    rolled_above: int | None = None  # operations above which functions are printed as loops over links
    calling = (
        "Arrays are row by row and must not overlap. Inputs are not checked; a NaN or infinity spreads to results."
    )

    # ---- files and functions ----

    def source(self, program: Program, interface: Interface) -> str:
        """Return the text of a file that defines the function."""
        raise NotImplementedError

    def function(self, program: Program, interface: Interface) -> Function:
        """Print the body of the function."""
        return (_Rolled if program.rolled else _Unrolled)(program, interface, self).function()

    # ---- values ----

    def literal(self, value: float, dtype: str) -> str:
        """Return a number that reads back exactly."""
        raise NotImplementedError

    def call(self, function: str, arguments: Sequence[str], dtype: str) -> str:
        """Return a call of sin, cos, sqrt, fma, fabs or atan2."""
        raise NotImplementedError

    def choose(self, condition: Expression, if_true: Expression, if_false: Expression) -> tuple[str, int]:
        """Return an expression that has one of two values, and its precedence."""
        return f"{condition.within(ATOM)} ? {if_true.within(SUM)} : {if_false.within(SUM)}", CHOICE

    def element(self, array: str, index: str | int) -> str:
        """Return an element of an array, which is counted from 0.

        index: a number, or a text of signed integers, such as "own", "link + 1", "3 * link + 2" or "offset0[link] + 1".
        """
        return f"{array}[{index}]"

    def argument(self, array: str, index: str | int, shared: bool) -> str:
        """Return an element of an input or a result. shared: all samples of a batch have this one."""
        return self.element(array, index)

    # ---- statements ----

    def declare(self, name: str, value: str, dtype: str, truth: bool) -> str:
        """Return the declaration of a constant with its value. truth: the value is that of a comparison."""
        kind = "int" if truth else dtype
        return f"const{GLUE}{kind}{GLUE}{name}{GLUE}= {value};"

    def assign(self, target: str, value: str, add: bool) -> str:
        return f"{target} {'+=' if add else '='} {value};"

    def table(self, name: str, values: Sequence[str], dtype: str) -> str:
        """Return the declaration of a constant array. dtype: "int" for indices."""
        return f"static const {dtype} {name}[{len(values)}] = {{ {', '.join(values)} }};"

    def variable(self, name: str, size: int | None, dtype: str) -> str:
        """Return the declaration of an array of `size` zeros, or of a zero."""
        zero = self.literal(0.0, dtype)
        return f"{dtype} {name} = {zero};" if size is None else f"{dtype} {name}[{size}] = {{ {zero} }};"

    # ---- control flow: statements around lines that are indented already ----

    def block(self, lines: Iterable[str], indent: str) -> Iterator[str]:
        """Statements with names of their own."""
        yield from (f"{indent}{{", *lines, f"{indent}}}")

    def count_up(self, variable: str, count: int, lines: Iterable[str], indent: str) -> Iterator[str]:
        yield f"{indent}for ({self.integer}{variable} = 0; {variable} < {count}; ++{variable}) {{"
        yield from (*lines, f"{indent}}}")

    def count_down(self, variable: str, count: int, lines: Iterable[str], indent: str) -> Iterator[str]:
        yield f"{indent}for ({self.integer}{variable} = {count - 1}; {variable} >= 0; --{variable}) {{"
        yield from (*lines, f"{indent}}}")

    def climb(self, variable: str, following: str, lines: Iterable[str], indent: str) -> Iterator[str]:
        """Set `variable`, an integer with a sign, to `following`, a text of it, and repeat while it is not negative."""
        yield f"{indent}for ({variable} = {following}; {variable} >= 0; {variable} = {following}) {{"
        yield from (*lines, f"{indent}}}")

    def skip_unless(self, value: str, allowed: Sequence[int], indent: str) -> Iterator[str]:
        """Go on with the next turn of a loop unless the value is one of these."""
        condition = " && ".join(f"{value} != {number}" for number in allowed)
        yield from (*self.wrapped(f"if ({condition})", indent), f"{indent}{self.indent}continue;")

    def switch(self, value: str, cases: Sequence[tuple[Sequence[int], Sequence[str]]], indent: str) -> Iterator[str]:
        """Run the lines of the case that has the value; the last case is the default."""
        leave = f"{indent}{self.indent}break;"
        yield f"{indent}switch ({value}) {{"
        for values, lines in cases[:-1]:
            *before, label = (f"{indent}case {number}:" for number in values)
            yield from (*before, f"{label} {{", *lines, leave, f"{indent}}}")
        yield from (f"{indent}default: {{", *cases[-1][1], leave, f"{indent}}}", f"{indent}}}")

    def clear(self, array: str, size: int, dtype: str) -> Iterator[str]:
        """Set all elements of a result to 0."""
        yield f"{self.indent}for ({self.integer}i = 0; i < {size}; ++i)"
        yield f"{self.indent * 2}{self.element(array, 'i')} = {self.literal(0.0, dtype)};"

    # ---- comments and lines ----

    def comment(self, text: str, indent: str = "") -> list[str]:
        return self._wrapped(f"/* {self.printable(text)} */", indent, "   ")

    def heading(self, about: Sequence[str]) -> list[str]:
        """Return the comment on top of a file."""
        lines: list[str] = []
        for text in about:
            lines += [line.rstrip() for line in self.wrapped(self.printable(text), " * ")] if text else [" *"]
        return ["/*", *lines, " */", ""] if lines else []

    def printable(self, text: str) -> str:
        """Return text for a comment: ASCII on one line that neither ends nor begins a comment."""
        plain = "".join(c if " " <= c <= "~" else " " if c.isspace() else "?" for c in text).replace("\\", "/")
        # a space between any two of them: replacing pairs from the left would leave a trigraph of "???/"
        return re.sub(r"\*(?=/)|/(?=\*)|\?(?=\?)", lambda match: match[0] + " ", plain)

    def wrapped(self, text: str, indent: str) -> list[str]:
        """Return a statement, broken at spaces if it is too long."""
        return self._wrapped(text, indent, "    ")

    def _wrapped(self, text: str, indent: str, further: str) -> list[str]:
        lines = textwrap.wrap(
            text, self.width - len(self.continuation), initial_indent=indent, subsequent_indent=indent + further,
            break_long_words=False, break_on_hyphens=False,
        )  # fmt: skip
        if WEAK in text and any(len(line) > self.width for line in lines):
            return self._wrapped(text.replace(WEAK, " "), indent, further)
        lines = [f"{line}{self.continuation}" for line in lines[:-1]] + lines[-1:]
        return [line.replace(GLUE, " ").replace(WEAK, " ") for line in lines]

    # ---- names ----

    def names(self, taken: Iterable[str] = ()) -> Names:
        return Names(self, taken)

    def parameters(self, program: Program) -> tuple[list[str], list[str]]:
        """Return the names of inputs and outputs; an output with the name of an input gets the suffix _out."""
        names = self.names()
        inputs = [names.new(array.name) for array in program.inputs]
        outputs = [
            names.new(f"{array.name}_out" if identifier(array.name) in inputs else array.name)
            for array in program.outputs
        ]
        return inputs, outputs

    def link_names(self, links: Sequence[str]) -> dict[str, str]:
        """Return an identifier for each link: its name, or its number if some link has a long name."""
        if any(len(identifier(link)) > LONG_LINK for link in links):
            return {link: f"link{count}" for count, link in enumerate(links, 1)}
        names = self.names()
        return {link: names.new(link if link[:1].isalpha() else f"link_{link}") for link in links}

    def derived_name(self, name: str, suffix: str) -> str:
        """Return `name` with a suffix, shortened if it would be too long."""
        return self.names([name]).new(f"{name[: self.longest_name - len(suffix)]}{suffix}")


class Names:
    """Identifiers of a scope; each that is handed out is new."""

    def __init__(self, dialect: Dialect, taken: Iterable[str] = ()):
        self.dialect = dialect
        self.reserved = dialect.reserved | LOOP_VARIABLES
        self.taken = set(taken) | self.reserved
        self.last: dict[str, int] = {}

    def new(self, text: str) -> str:
        """Return the text as an identifier, with a number behind it if that is taken."""
        longest = self.dialect.longest_name
        stem = identifier(text)[:longest]
        if stem in self.reserved or self.dialect.reserved_pattern.fullmatch(stem):
            stem = f"{stem}_q"
        name, count = stem, self.last.get(stem, 1)
        while name in self.taken:
            count += 1
            name = f"{stem[: longest - 8]}_{count}"
        self.last[stem] = count
        self.taken.add(name)
        return name

    def numbered(self, stem: str) -> str:
        """Return stem1, stem2 and so on."""
        stem = identifier(stem)[: self.dialect.longest_name - 8]
        count = self.last.get(stem, 0)
        while (name := f"{stem}{count + 1}") in self.taken:
            count += 1
        self.last[stem] = count + 1
        self.taken.add(name)
        return name


def identifier(text: str) -> str:
    """Return the text with an underscore for every character that is not allowed in a name."""
    name = re.sub(r"[^0-9A-Za-z_]", "_", text).strip("_") or "x"
    return f"x{name}" if name[0].isdigit() else name


@dataclass(frozen=True, slots=True)
class Expression:
    text: str
    binding: int  # its precedence
    size: int = 0  # operations in it

    def within(self, binding: int) -> str:
        """Return the text as an operand of something with this precedence."""
        return self.text if self.binding >= binding else f"({self.text})"


class _BodyPrinter:
    """Prints a body: one line for each value that has a name or is used again, the others inside of those.

    address: returns what a leaf reads or an effect writes. links: identifiers of the links; None in a loop over links,
    where names of links have no meaning. shift: the function that adds an offset to an angle.
    """

    def __init__(
        self, program: Program, dialect: Dialect, dtype: str, names: Names, links: dict[str, str] | None,
        address: Callable[[Node | Effect], str], shift: str,
    ):  # fmt: skip
        self.program = program
        self.dialect = dialect
        self.dtype = dtype
        self.names = names
        self.links = links
        self.address = address
        self.shift = shift
        self.values: dict[Node, Expression] = {}
        self.angles: set[Operand] = set()
        self.last_remark: tuple[str, ...] = ()

    def lines(self, body: Body, indent: str) -> Iterator[str]:
        self.angles = {node.args[0] for node in body.nodes if node.op in ("sin", "cos")}
        uses = body.uses()
        written = {(e.array, e.slot): e.row if isinstance(e, Store) else "parent"
                   for e in body.effects if isinstance(e, (Store, Add))}  # fmt: skip
        results = {e.value: e for e in reversed(body.effects) if isinstance(e, Output) and isinstance(e.value, Node)}
        stored = set[Operand]()  # values in a loop over links, which are named by where they are stored
        if self.links is None:
            stored = {effect.value for effect in body.effects}
        for node in body.nodes:
            label = self.program.labels.get(node, Label())
            if node.op in LEAVES:
                self.values[node] = Expression(self.address(node), ATOM)
                if node.op != "load" or not _may_meet(node.data[2], written.get(node.data[:2])):
                    continue
            else:
                expression = self.values[node] = self._operation(node)
                named = label.quantity or node in results
                if node.op == "neg" and expression.size == 0:
                    continue
                if uses[node] == 1 and expression.size < LARGEST and (not named or node in stored):
                    continue
                yield from self._remarks(label, indent)
            yield from self._declaration(node, label, results.get(node), indent)
        if body.effects and indent == self.dialect.indent:
            yield ""
        for effect in body.effects:
            if isinstance(effect.value, Node) and effect.value in stored and self.values[effect.value].size:
                yield from self._remarks(self.program.labels.get(effect.value, Label()), indent)
            value = self._expression(effect.value).within(CHOICE)
            yield from self.dialect.wrapped(
                self.dialect.assign(self.address(effect), value, isinstance(effect, Add)), indent
            )

    def _expression(self, x: Operand) -> Expression:
        if isinstance(x, Node):
            return self.values[x]
        text = self.dialect.literal(number(x), self.dtype)
        return Expression(text, SIGN if text.startswith("-") else ATOM)

    def _declaration(self, node: Node, label: Label, result: Output | None, indent: str) -> Iterator[str]:
        name = self._name(label, result)
        text = self.dialect.declare(name, self.values[node].text, self.dtype, node.op == "lt")
        yield from self.dialect.wrapped(text, indent)
        self.values[node] = Expression(name, ATOM)

    def _name(self, label: Label, result: Output | None) -> str:
        """link3_alpha_angular_x; for an intermediate value of alpha, link3_alpha_t1."""
        links = self.links or {}
        link, of = links.get(label.link, ""), links.get(label.of, "")
        if not label.quantity and result is not None and len(result.where) == 1:
            array = self.program.outputs[result.output]
            return self.names.new("_".join(map(str, (array.name, *_indices(result.where[0], array.shape)))))
        quantity = label.quantity or label.target
        stem = "_".join(part for part in (link, quantity, of and f"of_{of}") if part)
        return self.names.new(stem) if label.quantity else self.names.numbered(f"{stem}_t" if stem else "t")

    def _remarks(self, label: Label, indent: str) -> Iterator[str]:
        """A heading at the first value of another link, a comment at the first value of another equation."""
        remark = (label.at, label.step, label.equation, label.statement)
        if remark[:2] != self.last_remark[:2] and (label.step or not self.last_remark):
            title = label.step or "joints"
            if self.links is None:
                yield from self.dialect.comment(f"---- {title} ----", indent)
            else:
                short = self.links.get(label.at, label.at)
                link = label.at if short == label.at else f"{short}, {label.at}"
                prefix = f"{link}: " if label.step and label.at else ""
                yield ""
                yield from self.dialect.comment(f"---- {prefix}{title} ----", indent)
        if remark != self.last_remark and (label.equation or label.statement):
            text = ": ".join(part for part in (label.equation, label.statement) if part)
            yield from self.dialect.comment(text, indent)
        self.last_remark = remark

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
            return Expression(*self.dialect.choose(*args), size)
        texts = [arg.within(CHOICE) for arg in args]
        if op in ("fma", "fms", "fnma"):
            negated = {"fms": 2, "fnma": 0}.get(op)
            texts = [f"-{arg.within(ATOM)}" if i == negated else text
                     for i, (arg, text) in enumerate(zip(args, texts, strict=True))]  # fmt: skip
            op = "fma"
        return Expression(self.dialect.call(op, texts, self.dtype), ATOM, size)


def _may_meet(read: str | int, written: str | int | None) -> bool:
    """Return whether a row that is read may be the one that is written, so that it must be read first."""
    return written is not None and (read == written or {read, written} not in ({"own", "parent"}, {"own", "base"}))


def _indices(element: int, shape: Sequence[int]) -> list[int]:
    indices: list[int] = []
    for size in reversed(shape):
        indices.insert(0, element % size)
        element //= size
    return indices


class _Unrolled:
    """Prints a program of blocks."""

    def __init__(self, program: Program, interface: Interface, dialect: Dialect):
        self.program = program
        self.dialect = dialect
        self.dtype = interface.dtype
        self.inputs, self.outputs = dialect.parameters(program)
        self.shift = dialect.derived_name(interface.name, "_shifted")
        self.names = dialect.names([*self.inputs, *self.outputs, interface.name, self.shift])
        self.links: dict[str, str] | None = dialect.link_names(interface.links)

    def function(self) -> Function:
        function = Function(self.inputs, self.outputs)
        self.fill(function)
        function.shift = self.shift if any(f"{self.shift}(" in line for line in function.lines) else ""
        return function

    def fill(self, function: Function) -> None:
        printer = self.body_printer(self.names)
        for step in self.program.steps:
            assert isinstance(step, Block)
            function.lines += printer.lines(step.body, self.dialect.indent)

    def body_printer(self, names: Names) -> _BodyPrinter:
        return _BodyPrinter(self.program, self.dialect, self.dtype, names, self.links, self.address, self.shift)

    def address(self, x: Node | Effect) -> str:
        """Return what a leaf reads, or an effect writes."""
        if isinstance(x, Node):
            if x.op != "input":
                raise BackendError(f"straight-line source cannot read a {x.op}: please report this.")
            shared = self.program.inputs[x.data[0]].level < ONLINE
            return self.dialect.argument(self.inputs[x.data[0]], self.index(x.data[1:]), shared)
        assert isinstance(x, Output)
        return self.dialect.argument(self.outputs[x.output], self.index(x.where), False)

    def index(self, where: Sequence[int]) -> str:
        (element,) = where
        return str(element)


class _Rolled(_Unrolled):
    """Prints a program with loops over links.

    Links count from 0. In arrays of kept values row 0 belongs to the base, and `own` is the row of the link.
    """

    def __init__(self, program: Program, interface: Interface, dialect: Dialect):
        super().__init__(program, interface, dialect)
        self.links = None
        self.tables: dict[str, str] = {}  # declarations by name
        self.rows = _rows_of_slots(program)
        self.slots = {
            key: self.names.new(f"carried_{name}" if self.rows.get(key) == {"base"} else f"{name}_of")
            for key, name in _slot_names(program).items()
        }
        self.starting = False  # in the first body of a loop over pairs, where both links are the same
        self.table_names = self._table_names()
        self.parents = self._integers("parents", [parent + 1 for parent in program.parents])
        self.kinds = self._integers("kinds", program.kinds)
        self.offsets = [self._integers(f"offset{k}", values) for k, values in enumerate(program.offsets)]

    def fill(self, function: Function) -> None:
        steps = [line for step in self.program.steps for line in self._step(step)]
        used = set(re.findall(r"\w+", "\n".join(steps)))
        dialect, rows = self.dialect, len(self.program.parents) + 1
        for name, declaration in self.tables.items():
            if name in used:
                function.tables += dialect.wrapped(declaration, dialect.indent)
        for key, name in self.slots.items():
            if name in used:  # a compiler cannot see that what is read was written before: it starts with zeros
                size = None if self.rows[key] == {"base"} else rows
                function.workspace.append(f"{dialect.indent}{dialect.variable(name, size, self.dtype)}")
        for output in paired_outputs(self.program):  # elements that no pair of links writes are zero
            if len(unwritten(self.program, output)):
                function.lines += dialect.clear(self.outputs[output], self.program.outputs[output].size, self.dtype)
        function.lines += steps

    def _step(self, step: Block | Loop | PairLoop) -> Iterator[str]:
        count, dialect = len(self.program.parents), self.dialect
        one, two, three = (dialect.indent * depth for depth in (1, 2, 3))
        if isinstance(step, Block):
            yield from dialect.block(self._body(step.body, two), one)
        elif isinstance(step, Loop):
            title = "from the base to the tips" if step.outward else "from the tips to the base"
            yield from dialect.comment("column by column, each a `link`" if self.program.columns else title, one)
            loop = dialect.count_up if step.outward else dialect.count_down
            yield from loop("link", count, self._choice(step.bodies, two), one)
        else:
            yield from dialect.comment("each link with itself, then with every link between it and the base", one)
            yield from dialect.count_up("first", count, self._pairs(step, two, three), one)

    def _pairs(self, step: PairLoop, indent: str, further: str) -> Iterator[str]:
        yield f"{indent}{self.dialect.assign(f'{self.dialect.integer}link', 'first', False)}"
        if len(step.kinds) < len(step.starts):
            yield from self.dialect.skip_unless(self.kinds.format("first"), step.kinds, indent)
        self.starting = True
        starts = [body if kind in step.kinds else Body((), ()) for kind, body in enumerate(step.starts)]
        yield from self._choice(starts, indent)
        self.starting = False
        yield from self.dialect.climb(
            "link", f"{self.parents.format('link')} - 1", self._choice(step.steps, further), indent
        )

    def _choice(self, bodies: Sequence[Body], indent: str) -> Iterator[str]:
        """The body of the link's kind; kinds with the same text share it."""
        kinds: dict[tuple[str, ...], list[int]] = {}
        for kind, body in enumerate(bodies):
            kinds.setdefault(tuple(self._body(body, indent + self.dialect.indent)), []).append(kind)
        if len(kinds) == 1:
            yield from (line.removeprefix(self.dialect.indent) for line in next(iter(kinds)))
            return
        cases = sorted(kinds.items(), key=lambda case: not case[0])  # what does nothing comes last
        yield from self.dialect.switch(self.kinds.format("link"), [(values, lines) for lines, values in cases], indent)

    def _body(self, body: Body, indent: str) -> Iterator[str]:
        lines = list(self.body_printer(self.dialect.names(self.names.taken)).lines(body, indent))
        text = "\n".join(lines)
        for name, value in (("own", "link + 1"), ("parent", self.parents.format("link"))):
            if self.dialect.element("", name) in text:
                yield f"{indent}{self.dialect.assign(f'{self.dialect.constant_integer}{name}', value, False)}"
        yield from lines

    def address(self, x: Node | Effect) -> str:
        if isinstance(x, Node) and x.op == "table":
            return self.dialect.element(self.table_names[x.data[0]], "link")
        if isinstance(x, Node) and x.op == "load":
            return self._kept((x.data[0], x.data[1]), x.data[2])
        if isinstance(x, (Node, Output)):
            return super().address(x)
        if isinstance(x, PairOutput):
            of_i, of_j, component = x.where
            offsets = self.offsets[of_i].format("link" if self.starting else "first"), self.offsets[of_j].format("link")
            index = " + ".join(offset for offset in offsets if offset != "0") or "0"
            return self.dialect.argument(self.outputs[x.output], _plus(index, component), False)
        return self._kept((x.array, x.slot), x.row if isinstance(x, Store) else "parent")

    def _kept(self, key: tuple[int, int], row: str | int) -> str:
        if self.rows[key] == {"base"}:
            return self.slots[key]
        return self.dialect.element(self.slots[key], row + 1 if isinstance(row, int) else 0 if row == "base" else row)

    def index(self, where: Sequence[int]) -> str:
        return str(where[0]) if len(where) == 1 else _plus(self.offsets[where[0]].format("link"), where[1])

    def _integers(self, name: str, values: Sequence[int]) -> str:
        """An integer of each link, as a text with {} for the link: a formula if there is one, else a table."""
        stride = values[1] - values[0] if len(values) > 1 else 0
        if all(value == values[0] + stride * link for link, value in enumerate(values)):
            scaled = {0: "", 1: "{}"}.get(stride, f"{stride} * {{}}")
            return _plus(scaled, values[0]) if scaled else str(values[0])
        name = self.names.new(name)
        self.tables[name] = self.dialect.table(name, [str(value) for value in values], "int")
        return self.dialect.element(name, "{}")

    def _table_names(self) -> list[str]:
        labels = {node.data[0]: label.quantity for node, label in self.program.labels.items() if node.op == "table"}
        names: list[str] = []
        for k, values in enumerate(self.program.tables):
            name = self.names.new(labels.get(k) or f"table{k}")
            literals = [self.dialect.literal(value, self.dtype) for value in values]
            self.tables[name] = self.dialect.table(name, literals, self.dtype)
            names.append(name)
        return names


def _plus(text: str, count: int) -> str:
    return text if count == 0 else f"{text} {'-' if count < 0 else '+'} {abs(count)}"


def _rows_of_slots(program: Program) -> dict[tuple[int, int], set[str | int]]:
    """Which rows of each (array, slot) the bodies read or write."""
    rows: dict[tuple[int, int], set[str | int]] = {}
    for body in program.bodies():
        for node in body.nodes:
            if node.op == "load":
                rows.setdefault(node.data[:2], set()).add(node.data[2])
        for effect in body.effects:
            if not isinstance(effect, (Output, PairOutput)):
                row = effect.row if isinstance(effect, Store) else "parent"
                rows.setdefault((effect.array, effect.slot), set()).add(row)
    return rows


def _slot_names(program: Program) -> dict[tuple[int, int], str]:
    """Name each (array, slot) after the quantity that is stored; a sum, after the argument that receives it."""
    names: dict[tuple[int, int], str] = {}
    for body in () if program.columns else program.bodies():  # a slot is another quantity in each column
        for node in body.nodes:
            if node.op == "load" and node.data[2] in ("own", "base") and node in program.labels:
                names.setdefault(node.data[:2], program.labels[node].quantity)
        for effect in body.effects:
            if not isinstance(effect, Store) or effect.row == "parent":
                continue
            if isinstance(effect.value, Node) and effect.value.op != "load":
                label = program.labels.get(effect.value)
                if label is not None and label.quantity:
                    names[effect.array, effect.slot] = label.quantity
    keys = [(array, slot) for array, slots in enumerate(program.arrays) for slot in range(slots)]
    return {key: names.get(key) or f"kept{key[0]}_{key[1]}" for key in keys}
