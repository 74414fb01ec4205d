"""C of functions as CasADi loads them (`casadi.external`) and acados links them, around functions of plain arrays.

CasADi's matrices are stored column by column, without their structural zeros; `casadi_int` can be another type, as
acados wants it, by a macro.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from .c_names import wrapped

INDENT = "    "
OPENING = """
#include <math.h>

#ifndef casadi_real
#define casadi_real double
#endif
#ifndef casadi_int
#define casadi_int long long int
#endif
#ifndef CASADI_SYMBOL_EXPORT
#if defined(_WIN32)
#define CASADI_SYMBOL_EXPORT __declspec(dllexport)
#elif defined(__GNUC__)
#define CASADI_SYMBOL_EXPORT __attribute__((visibility("default")))
#else
#define CASADI_SYMBOL_EXPORT
#endif
#endif
"""


@dataclass(frozen=True, slots=True)
class Matrix:
    """An argument or a result: its name, size, and for each element that can differ from zero, column by column, its
    row, column, and which number it is of all that the function of plain arrays takes, or gives."""

    name: str
    rows: int
    columns: int
    entries: tuple[tuple[int, int, int], ...]

    def sparsity(self) -> list[int]:
        """As CasADi describes it: compressed columns, or a 1 where there are no zeros."""
        if len(self.entries) == self.rows * self.columns and self.entries:
            return [self.rows, self.columns, 1]
        starts = [sum(column < k for _, column, _ in self.entries) for k in range(self.columns + 1)]
        return [self.rows, self.columns, *starts, *(row for row, _, _ in self.entries)]


@dataclass(frozen=True, slots=True)
class External:
    """A function for CasADi: `calls` names the function of plain arrays, which takes and gives as many numbers as
    `takes` and `gives` say; arguments that it does not take come last and are not looked at."""

    name: str
    calls: str
    takes: tuple[int, ...]
    gives: tuple[int, ...]
    inputs: tuple[Matrix, ...]
    outputs: tuple[Matrix, ...]


def c_external(external: External) -> str:
    """The function and what CasADi asks about it."""
    lines = [*_patterns(external), *_call(external), *_answers(external)]
    return "\n".join(lines)


def _call(external: External) -> Iterator[str]:
    name, taken = external.name, sum(external.takes)
    for k, matrix in enumerate(external.outputs):
        if (places := [place for _, _, place in matrix.entries]) and not _run(places):
            yield from wrapped(f"static const int {name}_place{k}[] = {{ {', '.join(map(str, places))} }};", "")
    yield ""
    yield from wrapped(
        f"CASADI_SYMBOL_EXPORT int {name}(const casadi_real **arg, casadi_real **res, casadi_int *iw, casadi_real *w, "
        f"int mem)",
        "",
    )
    yield "{"
    yield f"{INDENT}int i;"
    yield f"{INDENT}(void)iw;"
    yield f"{INDENT}(void)mem;"
    places, start = [], 0
    for k, (size, matrix) in enumerate(zip(external.takes, external.inputs, strict=False)):
        order = [place for _, _, place in matrix.entries]
        places.append(f"w + {start}")
        if _run(order):
            yield f"{INDENT}for (i = 0; i < {size}; ++i)"
            yield f"{INDENT * 2}w[{start} + i] = arg[{k}] ? arg[{k}][i] : 0.0;"
        else:  # a matrix, row by row
            rows, columns = matrix.rows, matrix.columns
            yield f"{INDENT}for (i = 0; i < {size}; ++i)"
            yield (f"{INDENT * 2}w[{start} + i] = arg[{k}] ? arg[{k}][i % {columns} * {rows} + i / {columns}] : 0.0;")
        start += size
    for size in external.gives:
        places.append(f"w + {start}")
        start += size
    yield from wrapped(f"{external.calls}({', '.join(places)});", INDENT)
    for k, matrix in enumerate(external.outputs):
        if matrix.entries:
            order = [place for _, _, place in matrix.entries]
            where = f"{taken + order[0]} + i" if _run(order) else f"{taken} + {name}_place{k}[i]"
            yield f"{INDENT}if (res[{k}])"
            yield f"{INDENT * 2}for (i = 0; i < {len(order)}; ++i)"
            yield f"{INDENT * 3}res[{k}][i] = w[{where}];"
    yield f"{INDENT}return 0;"
    yield "}"


def _run(places: Sequence[int]) -> bool:
    """Whether these follow each other."""
    return all(b == a + 1 for a, b in itertools.pairwise(places))


def _patterns(external: External) -> Iterator[str]:
    for pattern, name in _named_patterns(external).items():
        yield from wrapped(f"static const casadi_int {name}[] = {{ {', '.join(map(str, pattern))} }};", "")


def _named_patterns(external: External) -> dict[tuple[int, ...], str]:
    found = dict.fromkeys(tuple(matrix.sparsity()) for matrix in (*external.inputs, *external.outputs))
    return {pattern: f"{external.name}_pattern{k}" for k, pattern in enumerate(found)}


def _answers(external: External) -> Iterator[str]:
    name, patterns = external.name, _named_patterns(external)
    for side, matrices in (("in", external.inputs), ("out", external.outputs)):
        yield from _one_line(f"casadi_int {name}_n_{side}(void)", f"return {len(matrices)};")
        for kind, question, answers in (
            ("const char *", "name", [f'"{matrix.name}"' for matrix in matrices]),
            ("const casadi_int *", "sparsity", [patterns[tuple(matrix.sparsity())] for matrix in matrices]),
        ):
            cases = [f"case {k}: return {answer};" for k, answer in enumerate(answers)]
            yield f"CASADI_SYMBOL_EXPORT {kind}{name}_{question}_{side}(casadi_int i)"
            yield from ("{", f"{INDENT}switch (i) {{", *(f"{INDENT}{case}" for case in cases))
            yield from (f"{INDENT}default: return 0;", f"{INDENT}}}", "}")
    sizes = {
        "arg": len(external.inputs), "res": len(external.outputs), "iw": 0,
        "w": sum(external.takes) + sum(external.gives),
    }  # fmt: skip
    arguments = ", ".join(f"casadi_int *sz_{of}" for of in sizes)
    yield f"CASADI_SYMBOL_EXPORT int {name}_work({arguments})"
    yield "{"
    for of, size in sizes.items():
        yield f"{INDENT}if (sz_{of})"
        yield f"{INDENT * 2}*sz_{of} = {size};"
    yield from (f"{INDENT}return 0;", "}")


def _one_line(prototype: str, body: str) -> Iterator[str]:
    yield from (f"CASADI_SYMBOL_EXPORT {prototype}", "{", f"{INDENT}{body}", "}")
