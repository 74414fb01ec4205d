"""MATLAB and Octave: a function file with help text, without toolboxes.

Inputs are vectors of either orientation, or matrices as NumPy has them; results are column vectors or matrices. With
dtype "float" everything is computed in `single`.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Iterator, Sequence

from ..tracing.expression import LARGE
from ..tracing.program import Array, Program
from .printer import ATOM, GLUE, Dialect, Expression, Function, Interface

_WORDS = """
    break case catch classdef continue else elseif end for function global if otherwise parfor persistent return spmd
    switch try while end_try_catch end_unwind_protect endfor endfunction endif endswitch endwhile do until
    unwind_protect unwind_protect_cleanup enumeration events methods properties arguments import true false
    pi eps Inf NaN inf nan ans nargin nargout varargin varargout abs atan2 cos error fliplr isequal ndims numel permute
    reshape sin single double size sqrt zeros pick own parent link first i
"""


class _Matlab(Dialect):
    language = "matlab"
    suffix = ".m"
    reserved = frozenset(_WORDS.split())
    integer = constant_integer = ""
    continuation = " ..."
    calling = "Inputs are vectors of either orientation, or matrices. Results are column vectors or matrices."

    def source(self, program: Program, interface: Interface) -> str:
        function, zero = self.function(program, interface), "" if interface.dtype == "double" else ", 'single'"
        text = "\n".join(function.lines)
        outputs = list(zip(function.outputs, program.outputs, strict=True))
        results = function.outputs[0] if len(outputs) == 1 else f"[{', '.join(function.outputs)}]"
        lines = [
            *self.wrapped(f"function {results} = {interface.name}({', '.join(function.inputs)})", ""),
            *self.heading(interface.about),
            *self._inputs(program, function, interface),
            *function.tables,
            *function.workspace,
            *(f"{self.indent}{name} = zeros({array.size}, 1{zero});" for name, array in outputs),
            *function.lines,
            *(f"{self.indent}{self._shaped(name, array)}" for name, array in outputs if len(array.shape) > 1),
            "end",
            *(self._pick() if "pick(" in text else ()),
            *(self._shift_function(function.shift) if function.shift else ()),
        ]
        return "\n".join(lines) + "\n"

    def _inputs(self, program: Program, function: Function, interface: Interface) -> Iterator[str]:
        """Check the number of elements; matrices become rows of elements in the order of NumPy."""
        for name, array in zip(function.inputs, program.inputs, strict=True):
            message = f"'{name} has %d elements, expected {array.size}'".replace(" ", GLUE)
            yield f"{self.indent}if numel({name}) ~= {array.size}"
            yield from self.wrapped(f"error('linksweep:size', {message}, numel({name}));", self.indent * 2)
            yield f"{self.indent}end"
            if len(array.shape) > 1:
                axes = " ".join(str(axis) for axis in range(len(array.shape), 0, -1))
                yield f"{self.indent}{name} = reshape(permute({name}, [{axes}]), 1, []);"
            if interface.dtype == "float":
                yield f"{self.indent}{name} = single({name});"

    def _shaped(self, name: str, array: Array) -> str:
        """The statement that gives a result its shape; elements are in the order of NumPy, last axis first."""
        axes = range(len(array.shape), 0, -1)
        reverse = " ".join(str(array.shape[axis - 1]) for axis in axes)
        return f"{name} = permute(reshape({name}, [{reverse}]), [{' '.join(map(str, axes))}]);"

    def _pick(self) -> list[str]:
        one, two = self.indent, self.indent * 2
        return ["", "function x = pick(condition, x, otherwise_x)", f"{one}if ~condition", f"{two}x = otherwise_x;",
                f"{one}end", "end"]  # fmt: skip

    def _shift_function(self, name: str) -> list[str]:
        one, two = self.indent, self.indent * 2
        return [
            "",
            f"function angle = {name}(angle, offset)",
            *self.comment(
                "A large angle is reduced to one turn, because its last digit would round the offset away.", one
            ),
            f"{one}if abs(angle) > {self.literal(LARGE, 'double')}",
            f"{two}angle = atan2(sin(angle), cos(angle));",
            f"{one}end",
            f"{one}angle = angle + offset;",
            "end",
        ]

    # ---- values ----

    def literal(self, value: float, dtype: str) -> str:
        return repr(float(value))

    def call(self, function: str, arguments: Sequence[str], dtype: str) -> str:
        if function == "fma":  # rounded twice: MATLAB has no fused multiply-add
            a, b, c = arguments
            return f"(({a}) * ({b}) + ({c}))"
        return f"{'abs' if function == 'fabs' else function}({', '.join(arguments)})"

    def choose(self, condition: Expression, if_true: Expression, if_false: Expression) -> tuple[str, int]:
        return f"pick({condition.text}, {if_true.text}, {if_false.text})", ATOM

    def element(self, array: str, index: str | int) -> str:
        """Elements are counted from 1."""
        text = str(index)
        head, _, last = text.rpartition(" + ")
        if text.isdigit():
            return f"{array}({int(text) + 1})"
        return f"{array}({head} + {int(last) + 1})" if head and last.isdigit() else f"{array}({text} + 1)"

    # ---- statements ----

    def declare(self, name: str, value: str, dtype: str, truth: bool) -> str:
        return f"{name}{GLUE}= {value};"

    def assign(self, target: str, value: str, add: bool) -> str:
        return f"{target} = {target} + {value};" if add else f"{target} = {value};"

    def table(self, name: str, values: Sequence[str], dtype: str) -> str:
        return f"{name} = [{', '.join(values)}];"

    def variable(self, name: str, size: int | None, dtype: str) -> str:
        return f"{name} = 0;" if size is None else f"{name} = zeros(1, {size});"

    # ---- control flow ----

    def block(self, lines: Iterable[str], indent: str) -> Iterator[str]:
        yield from (line.removeprefix(self.indent) for line in lines)

    def count_up(self, variable: str, count: int, lines: Iterable[str], indent: str) -> Iterator[str]:
        yield from (f"{indent}for {variable} = 0:{count - 1}", *lines, f"{indent}end")

    def count_down(self, variable: str, count: int, lines: Iterable[str], indent: str) -> Iterator[str]:
        yield from (f"{indent}for {variable} = {count - 1}:-1:0", *lines, f"{indent}end")

    def climb(self, variable: str, following: str, lines: Iterable[str], indent: str) -> Iterator[str]:
        step = f"{variable} = {following};"
        yield from (f"{indent}{step}", f"{indent}while {variable} >= 0", *lines, f"{indent}{self.indent}{step}")
        yield f"{indent}end"

    def skip_unless(self, value: str, allowed: Sequence[int], indent: str) -> Iterator[str]:
        condition = " && ".join(f"{value} ~= {number}" for number in allowed)
        yield from (*self.wrapped(f"if {condition}", indent), f"{indent}{self.indent}continue;", f"{indent}end")

    def switch(self, value: str, cases: Sequence[tuple[Sequence[int], Sequence[str]]], indent: str) -> Iterator[str]:
        yield f"{indent}switch {value}"
        for values, lines in cases[:-1]:
            yield from (f"{indent}case {{{', '.join(map(str, values))}}}", *lines)
        yield from (f"{indent}otherwise", *cases[-1][1], f"{indent}end")

    def clear(self, array: str, size: int, dtype: str) -> Iterator[str]:
        yield from ()  # results start as zeros

    # ---- comments and lines ----

    def comment(self, text: str, indent: str = "") -> list[str]:
        return textwrap.wrap(
            self.printable(text), self.width, initial_indent=f"{indent}% ", subsequent_indent=f"{indent}% ",
            break_long_words=False, break_on_hyphens=False,
        )  # fmt: skip

    def heading(self, about: Sequence[str]) -> list[str]:
        """Return the help text."""
        return [line for text in about for line in (self.comment(text) or ["%"])]


MATLAB = _Matlab()
