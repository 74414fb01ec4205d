"""JavaScript: an ES module with one function over typed arrays, without dependencies.

Arguments are the inputs and then the results, each flat, row by row. A result that is left out is a new Float64Array;
with all of them given, a call allocates nothing. The function returns its result, or an array of several.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..errors import ArgumentError
from ..tracing.expression import LARGE
from ..tracing.program import Program
from .printer import GLUE, Dialect, Interface

_WORDS = """
    abstract arguments async await boolean break byte case catch char class const continue debugger default delete do
    double else enum eval export extends false final finally float for function get goto if implements import in
    instanceof int interface let long native new null of package private protected public return set short static super
    switch synchronized this throw throws transient true try typeof undefined var void volatile while with yield
    Array Float64Array Infinity Int32Array Math NaN Number Object globalThis own parent link first
"""


class _JavaScript(Dialect):
    language = "javascript"
    suffix = ".mjs"
    types = ("double",)
    reserved = frozenset(_WORDS.split())
    integer, constant_integer = "let ", "const "

    def source(self, program: Program, interface: Interface) -> str:
        if interface.dtype not in self.types:
            raise ArgumentError(f"the dtype is {interface.dtype!r}, expected 'double', the only type of JavaScript.")
        function = self.function(program, interface)
        results = [
            f"{name}{GLUE}={GLUE}new{GLUE}Float64Array({array.size})"
            for name, array in zip(function.outputs, program.outputs, strict=True)
        ]
        returned = function.outputs[0] if len(results) == 1 else f"[{', '.join(function.outputs)}]"
        lines = [
            *self.heading(interface.about),
            *(line.removeprefix(self.indent) for line in (*function.tables, *function.workspace)),
            *(self._shift_function(function.shift) if function.shift else ()),
            *self.wrapped(f"export function {interface.name}({', '.join((*function.inputs, *results))}) {{", ""),
            *function.lines,
            *self.wrapped(f"return {returned};", self.indent),
            "}",
        ]
        return "\n".join(lines) + "\n"

    def _shift_function(self, name: str) -> list[str]:
        return [
            *self.comment("a large angle is reduced to a turn: its last place would round the offset away"),
            f"function {name}(angle, offset) {{",
            f"{self.indent}if (Math.abs(angle) > {self.literal(LARGE, 'double')})",
            f"{self.indent * 2}angle = Math.atan2(Math.sin(angle), Math.cos(angle));",
            f"{self.indent}return angle + offset;",
            "}",
            "",
        ]

    def literal(self, value: float, dtype: str) -> str:
        return repr(float(value))

    def call(self, function: str, arguments: Sequence[str], dtype: str) -> str:
        if function == "fma":  # rounded twice: JavaScript has no fused multiply-add
            a, b, c = arguments
            return f"(({a}) * ({b}) + ({c}))"
        return f"Math.{function}({', '.join(arguments)})"

    def declare(self, name: str, value: str, dtype: str, truth: bool) -> str:
        return f"const{GLUE}{name}{GLUE}= {value};"

    def table(self, name: str, values: Sequence[str], dtype: str) -> str:
        kind = "Int32Array" if dtype == "int" else "Float64Array"
        return f"const {name} = new {kind}([{', '.join(values)}]);"

    def variable(self, name: str, size: int | None, dtype: str) -> str:
        return f"let {name} = 0.0;" if size is None else f"const {name} = new Float64Array({size});"


JAVASCRIPT = _JavaScript()
