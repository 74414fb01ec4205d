"""C99 source of a Program: one function of plain arrays, no dependency but math.h, no globals, no allocation.

A Program of loops becomes loops over static const tables; what its links keep stands in arrays on the stack.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

from ..errors import BackendError
from ..tracing.expression import LARGE, Node
from ..tracing.program import Block, Body, Effect, Loop, Output, PairLoop, PairOutput, Program, Store
from .c_body import BodyWriter
from .c_names import GLUE, LONGEST, Names, comment, identifier, link_names, literal, printable, wrapped
from .result_elements import paired_outputs, unwritten

INDENT = "    "


@dataclass(frozen=True, slots=True)
class Interface:
    """What a caller sees: the function's name and type, the lines that describe it, and the names of the links.

    values: of inputs that are constants, such as gains, by their names in the program.
    """

    name: str
    dtype: str = "double"
    about: tuple[str, ...] = ()
    links: tuple[str, ...] = ()
    values: tuple[tuple[str, tuple[float, ...]], ...] = ()


def c_header(program: Program, interface: Interface) -> str:
    guard = f"LINKSWEEP_{interface.name}_H"  # as it is written: names may differ by case alone
    return "\n".join(
        [
            *opening(interface),
            f"#ifndef {guard}",
            f"#define {guard}",
            "",
            "#ifdef __cplusplus",
            'extern "C" {',
            "#endif",
            "",
            *wrapped(f"{_prototype(program, interface, '')};", ""),
            *_constants_declared(program, interface),
            "",
            "#ifdef __cplusplus",
            "}",
            "#endif",
            "",
            f"#endif /* {guard} */",
            "",
        ]
    )


def c_source(program: Program, interface: Interface, header: str) -> str:
    """The source file; `header` is the name of the file that `c_header` goes to."""
    function = c_function(program, interface)
    return "\n".join(
        [
            *opening(interface),
            f'#include "{header}"',  # a name that was checked, see export_c
            "",
            *(["#include <math.h>", ""] if re.search(r"\b(sin|cos|sqrt|fma)f?\(", function) else []),
            function,
            "",
            *_constants_defined(program, interface),
        ]
    )


def constant_names(program: Program, interface: Interface) -> dict[str, str]:
    """Of each input whose value is known, by its name as a parameter: what the constant is called in C."""
    known, names = dict(interface.values), Names([interface.name, tuned_name(interface)])
    return {
        parameter: names.new(f"{interface.name}_{parameter}")
        for parameter, array in zip(parameters(program)[0], program.inputs, strict=True)
        if array.name in known
    }


def tuned_name(interface: Interface) -> str:
    return Names([interface.name]).new(f"{interface.name[: LONGEST - len('_tuned')]}_tuned")


def _constants_declared(program: Program, interface: Interface) -> list[str]:
    """The values of constants, and the function that takes them by itself."""
    called = constant_names(program, interface)
    if not called:
        return []
    sizes = dict(zip(parameters(program)[0], (array.size for array in program.inputs), strict=True))
    return [
        "",
        *comment(f"Values of the constants. Pass these to {interface.name}, or others."),
        *(f"extern const {interface.dtype} {name}[{sizes[parameter]}];" for parameter, name in called.items()),
        "",
        *comment(f"{interface.name} with these values."),
        *wrapped(f"{_prototype(program, interface, '', set(called))};", ""),
    ]


def _constants_defined(program: Program, interface: Interface) -> list[str]:
    called, known = constant_names(program, interface), dict(interface.values)
    if not called:
        return []
    inputs, outputs = parameters(program)
    lines = []
    for parameter, array in zip(inputs, program.inputs, strict=True):
        if parameter in called:
            numbers = ", ".join(literal(value, interface.dtype) for value in known[array.name])
            lines += wrapped(f"const {interface.dtype} {called[parameter]}[{array.size}] = {{ {numbers} }};", "")
    passed = ", ".join([*(called.get(name, name) for name in inputs), *outputs])
    return [
        *lines,
        "",
        *wrapped(_prototype(program, interface, f"restrict{GLUE}", set(called)), ""),
        "{",
        *wrapped(f"{interface.name}({passed});", INDENT),
        "}",
        "",
    ]


def c_function(program: Program, interface: Interface, static: bool = False) -> str:
    """The function alone, with the one that it calls."""
    inside = "\n".join((_Loops if program.rolled else _Straight)(program, interface).lines())
    shift = _shift(interface) if f"{shift_name(interface)}(" in inside else []
    unused = [name for name in parameters(program)[0] if not re.search(rf"\b{name}\b", inside)]
    prototype = f"{'static ' * static}{_prototype(program, interface, f'restrict{GLUE}')}"
    return "\n".join(
        [*shift, *wrapped(prototype, ""), "{", *(f"{INDENT}(void){name};" for name in unused), inside.lstrip("\n"), "}"]
    )


def shift_name(interface: Interface) -> str:
    return Names([interface.name]).new(f"{interface.name[: LONGEST - len('_shifted')]}_shifted")


def _shift(interface: Interface) -> list[str]:
    """The function that adds an offset to an angle."""
    dtype, f = interface.dtype, "f" if interface.dtype == "float" else ""
    return [
        *comment("a large angle is reduced to a turn: its last place would round the offset away", ""),
        *wrapped(f"static {dtype} {shift_name(interface)}({dtype} angle, {dtype} offset)", ""),
        "{",
        f"{INDENT}if (fabs{f}(angle) > {literal(LARGE, dtype)})",
        f"{INDENT * 2}angle = atan2{f}(sin{f}(angle), cos{f}(angle));",
        f"{INDENT}return angle + offset;",
        "}",
        "",
    ]


def parameters(program: Program) -> tuple[list[str], list[str]]:
    """The names of the function's inputs and results: a result that is called like an input is an _out."""
    names = Names()
    inputs = [names.new(array.name) for array in program.inputs]
    outputs = [
        names.new(f"{array.name}_out" if identifier(array.name) in inputs else array.name) for array in program.outputs
    ]
    return inputs, outputs


def stack_bytes(program: Program, dtype: str) -> int:
    """What the loops of a program keep for their links."""
    return sum(program.arrays) * (len(program.parents) + 1) * (4 if dtype == "float" else 8) if program.rolled else 0


def opening(interface: Interface) -> list[str]:
    lines = []
    for text in interface.about:
        lines += [line.rstrip() for line in wrapped(printable(text), " * ")] if text else [" *"]
    return ["/*", *lines, " */", ""] if lines else []


def _prototype(program: Program, interface: Interface, qualifier: str, without: Collection[str] = ()) -> str:
    """Of the function, or where arguments are left `without`, of the one that has their values."""
    inputs, outputs = parameters(program)
    arguments = [
        f"const{GLUE}{interface.dtype}{GLUE}{name}[{qualifier}{max(array.size, 1)}]"
        for name, array in zip(inputs, program.inputs, strict=True)
        if name not in without
    ]
    arguments += [
        f"{interface.dtype}{GLUE}{name}[{qualifier}{max(array.size, 1)}]"
        for name, array in zip(outputs, program.outputs, strict=True)
    ]
    return f"void {tuned_name(interface) if without else interface.name}({', '.join(arguments)})"


class _Straight:
    """A program of blocks."""

    def __init__(self, program: Program, interface: Interface):
        self.program = program
        self.dtype = interface.dtype
        self.inputs, self.outputs = parameters(program)
        self.shift = shift_name(interface)
        self.names = Names([*self.inputs, *self.outputs, interface.name, self.shift])
        self.links: dict[str, str] | None = link_names(interface.links)

    def lines(self) -> Iterator[str]:
        writer = self.writer(self.names)
        for step in self.program.steps:
            assert isinstance(step, Block)
            yield from writer.lines(step.body, INDENT)

    def writer(self, names: Names) -> BodyWriter:
        return BodyWriter(self.program, self.dtype, names, self.links, self.place, self.shift)

    def place(self, x: Node | Effect) -> str:
        """What a leaf reads, or an effect writes."""
        if isinstance(x, Node):
            if x.op != "input":
                raise BackendError(f"straight-line C cannot read a {x.op}: please report this.")
            return f"{self.inputs[x.data[0]]}[{self.element(x.data[1:])}]"
        assert isinstance(x, Output)
        return f"{self.outputs[x.output]}[{self.element(x.where)}]"

    def element(self, where: Sequence[int]) -> str:
        (element,) = where
        return str(element)


class _Loops(_Straight):
    """A program with loops. Links count from 0; in arrays of kept values row 0 is the base's, `own` is the link's."""

    def __init__(self, program: Program, interface: Interface):
        super().__init__(program, interface)
        self.links = None
        self.used: dict[str, str] = {}  # tables that some body reads, by their declaration
        self.rows = _rows_of_slots(program)
        self.slots = {
            key: self.names.new(f"carried_{name}" if self.rows.get(key) == {"base"} else f"{name}_of")
            for key, name in _slot_names(program).items()
        }
        self.starting = False  # in the first body of a sweep over pairs, where both links are the same
        self.tables = self._table_names()
        self.parents = self._integers("parents", [parent + 1 for parent in program.parents])
        self.kinds = self._integers("kinds", program.kinds)
        self.offsets = [self._integers(f"offset{k}", values) for k, values in enumerate(program.offsets)]

    def lines(self) -> Iterator[str]:
        steps = [line for step in self.program.steps for line in self._step(step)]
        text = "\n".join(steps)
        for name, declaration in self.used.items():
            if re.search(rf"\b{name}\b", text):
                yield from wrapped(declaration, INDENT)
        rows = len(self.program.parents) + 1
        for key, name in self.slots.items():
            if re.search(rf"\b{name}\b", text):
                zero = literal(0.0, self.dtype)  # a compiler cannot see that what is read was written before
                kept = f" = {zero}" if self.rows[key] == {"base"} else f"[{rows}] = {{ {zero} }}"
                yield f"{INDENT}{self.dtype} {name}{kept};"
        yield ""
        yield from self._cleared_results()
        yield from steps

    def _cleared_results(self) -> Iterator[str]:
        """Elements that no pair of links writes are zero."""
        for output in paired_outputs(self.program):
            if not len(unwritten(self.program, output)):
                continue
            size = self.program.outputs[output].size
            yield f"{INDENT}for (int i = 0; i < {size}; ++i)"
            yield f"{INDENT * 2}{self.outputs[output]}[i] = {literal(0.0, self.dtype)};"

    def _step(self, step: Block | Loop | PairLoop) -> Iterator[str]:
        count = len(self.program.parents)
        if isinstance(step, Block):
            yield f"{INDENT}{{"
            yield from self._body(step.body, INDENT * 2)
            yield f"{INDENT}}}"
        elif isinstance(step, Loop):
            way = "from the base to the tips" if step.outward else "from the tips to the base"
            yield from comment("column by column, each a `link`" if self.program.columns else way, INDENT)
            way = f"link = 0; link < {count}; ++link" if step.outward else f"link = {count - 1}; link >= 0; --link"
            yield f"{INDENT}for (int {way}) {{"
            yield from self._choice(step.bodies, INDENT * 2)
            yield f"{INDENT}}}"
        else:
            yield from comment("each link with itself, then with every link between it and the base", INDENT)
            yield f"{INDENT}for (int first = 0; first < {count}; ++first) {{"
            yield f"{INDENT * 2}int link = first;"
            if len(step.kinds) < len(step.starts):
                wanted = " && ".join(f"{self.kinds.format('first')} != {kind}" for kind in step.kinds)
                yield from wrapped(f"if ({wanted})", INDENT * 2)
                yield f"{INDENT * 3}continue;"
            self.starting = True
            starts = [body if kind in step.kinds else Body((), ()) for kind, body in enumerate(step.starts)]
            yield from self._choice(starts, INDENT * 2)
            self.starting = False
            up = f"{self.parents.format('link')} - 1"
            yield f"{INDENT * 2}for (link = {up}; link >= 0; link = {up}) {{"
            yield from self._choice(step.steps, INDENT * 3)
            yield f"{INDENT * 2}}}"
            yield f"{INDENT}}}"

    def _choice(self, bodies: Sequence[Body], indent: str) -> Iterator[str]:
        """The body of the link's kind; kinds that do the same share theirs."""
        kinds: dict[tuple[str, ...], list[int]] = {}
        for kind, body in enumerate(bodies):
            kinds.setdefault(tuple(self._body(body, indent + INDENT)), []).append(kind)
        if len(kinds) == 1:
            yield from (line.removeprefix(INDENT) for line in next(iter(kinds)))
            return
        yield f"{indent}switch ({self.kinds.format('link')}) {{"
        *others, (last, _) = sorted(kinds.items(), key=lambda group: not group[0])  # what does nothing comes last
        for lines, same in others:
            *before, label = (f"{indent}case {kind}:" for kind in same)
            yield from (*before, f"{label} {{", *lines, f"{indent + INDENT}break;", f"{indent}}}")
        yield from (f"{indent}default: {{", *last, f"{indent + INDENT}break;", f"{indent}}}", f"{indent}}}")

    def _body(self, body: Body, indent: str) -> Iterator[str]:
        lines = list(self.writer(Names(self.names.taken)).lines(body, indent))
        text = "\n".join(lines)
        if re.search(r"\[own\]", text):
            yield f"{indent}const int own = link + 1;"
        if re.search(r"\[parent\]", text):
            yield f"{indent}const int parent = {self.parents.format('link')};"
        yield from lines

    def place(self, x: Node | Effect) -> str:
        if isinstance(x, Node) and x.op == "table":
            return f"{self.tables[x.data[0]]}[link]"
        if isinstance(x, Node) and x.op == "load":
            return self._kept((x.data[0], x.data[1]), x.data[2])
        if isinstance(x, (Node, Output)):
            return super().place(x)
        if isinstance(x, PairOutput):
            return self._pair(x)
        return self._kept((x.array, x.slot), x.row if isinstance(x, Store) else "parent")

    def _kept(self, key: tuple[int, int], row: str | int) -> str:
        if self.rows[key] == {"base"}:
            return self.slots[key]
        return f"{self.slots[key]}[{row + 1 if isinstance(row, int) else 0 if row == 'base' else row}]"

    def _pair(self, x: PairOutput) -> str:
        of_i, of_j, component = x.where
        places = self.offsets[of_i].format("link" if self.starting else "first"), self.offsets[of_j].format("link")
        element = " + ".join(place for place in places if place != "0") or "0"
        return f"{self.outputs[x.output]}[{_plus(element, component)}]"

    def element(self, where: Sequence[int]) -> str:
        return str(where[0]) if len(where) == 1 else _plus(self.offsets[where[0]].format("link"), where[1])

    def _integers(self, name: str, values: Sequence[int]) -> str:
        """A number of each link, as a text with {} for the link: a formula where one is enough, else a table."""
        stride = values[1] - values[0] if len(values) > 1 else 0
        if all(value == values[0] + stride * link for link, value in enumerate(values)):
            scaled = {0: "", 1: "{}"}.get(stride, f"{stride} * {{}}")
            return _plus(scaled, values[0]) if scaled else str(values[0])
        name = self.names.new(name)
        self.used[name] = f"static const int {name}[{len(values)}] = {{ {', '.join(map(str, values))} }};"
        return f"{name}[{{}}]"

    def _table_names(self) -> list[str]:
        labels = {node.data[0]: label.quantity for node, label in self.program.labels.items() if node.op == "table"}
        found = []
        for k, values in enumerate(self.program.tables):
            name = self.names.new(labels.get(k) or f"table{k}")
            numbers = ", ".join(literal(value, self.dtype) for value in values)
            self.used[name] = f"static const {self.dtype} {name}[{len(values)}] = {{ {numbers} }};"
            found.append(name)
        return found


def _plus(text: str, number: int) -> str:
    return text if number == 0 else f"{text} {'-' if number < 0 else '+'} {abs(number)}"


def _rows_of_slots(program: Program) -> dict[tuple[int, int], set[str | int]]:
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
    """A kept value is called like what is stored; a sum, like the argument by which it comes in."""
    found: dict[tuple[int, int], str] = {}
    for body in () if program.columns else program.bodies():  # a slot is another quantity in each column
        for node in body.nodes:
            if node.op == "load" and node.data[2] in ("own", "base") and node in program.labels:
                found.setdefault(node.data[:2], program.labels[node].quantity)
        for effect in body.effects:
            if not isinstance(effect, Store) or effect.row == "parent":
                continue
            if isinstance(effect.value, Node) and effect.value.op != "load":
                label = program.labels.get(effect.value)
                if label is not None and label.quantity:
                    found[effect.array, effect.slot] = label.quantity
    keys = [(array, slot) for array, slots in enumerate(program.arrays) for slot in range(slots)]
    return {key: found.get(key) or f"kept{key[0]}_{key[1]}" for key in keys}
