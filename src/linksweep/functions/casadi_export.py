"""Compiled functions for CasADi and acados: the exported C with Jacobian, exact Hessian and sparsity beside it.

Derivatives by q are by its numbers, as CasADi holds them.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ..backends.c import OPENING, C, External, Matrix, c_external, c_function, checked_name
from ..backends.printer import Interface, identifier
from ..errors import ArgumentError, BackendError
from ..support.disk_cache import DiskCache, make_key
from ..support.files import write_atomically
from ..support.messages import shown
from ..tracing.labels import labelled
from ..tracing.program import nonzeros
from .c_export import about, checked_path, write_text
from .frameworks import by_components, program_of, refuse_details

CasadiFunction = Any  # of CasADi, which is an extra and has no types

if TYPE_CHECKING:
    from ..tracing.program import Program
    from .c_export import RobotNames
    from .compiled import CompiledFunction

LONGEST = 32  # CasADi puts words before a name and behind it, and C tells 63 characters apart
OPTIMISED = 64_000  # characters of source: beyond, -O1 takes gcc seconds to minutes, and solvers gain a tenth by it
TAKEN = re.compile(r"(jac|fwd\d+|adj\d+)_|(null|jac|hess)$")  # names that mean something else to CasADi
OUT = "out_"  # before the name of a result that a derivative takes as an argument, and has no use for


def casadi_source(
    function: CompiledFunction, name: str | None = None, hessian: bool = True, robot: RobotNames | None = None
) -> str:
    """C for `casadi.external`: the function `name`, `jac_name` and, for exact Hessians, `jac_jac_name`."""
    refuse_details("casadi", function)
    return _Source(function, _checked_name(function, name, robot), robot).text(hessian)


class _Source:
    def __init__(self, function: CompiledFunction, name: str, robot: RobotNames | None):
        self.function, self.name = function, name
        self.computation = function.computation.with_varied_parameters()
        self.program = labelled(self.computation.trace)
        names, results = ([_word(word) for word in side] for side in C.parameters(self.program))
        self.shapes = [array.shape for array in self.program.inputs]
        self.inputs = [_matrix(n, _columns(_numbers(s))) for n, s in zip(names, self.shapes, strict=True)]
        self.results = [_matrix(n, _columns(places)) for n, places in zip(results, _places(self.program), strict=True)]
        links = tuple(link.name for link in self.computation.model.links)
        self.interface = Interface(name, "double", tuple(about(function, self.program, name, "double", robot)), links)

    def text(self, hessian: bool) -> str:
        slopes, first = self.first()
        taken = [*self.inputs, *_unused(self.results)]
        parts = [
            "\n".join(C.heading(self.interface.about)) + OPENING,
            *self.external("", "values", self.program, self.inputs, self.results),
            *self.external("jac_", "first", first, taken, slopes),
        ]
        if hessian:
            curvatures, second = self.second(slopes)
            parts += self.external("jac_jac_", "second", second, [*taken, *_unused(slopes)], curvatures)
        return "\n".join(parts)

    def external(
        self, prefix: str, order: str, program: Program, inputs: list[Matrix], outputs: list[Matrix]
    ) -> list[str]:  # fmt: skip
        """The function of plain arrays, and around it the one that CasADi calls."""
        inner = replace(self.interface, name=f"{self.name}_{order}", about=())
        takes, gives = (tuple(array.size for array in side) for side in (program.inputs, program.outputs))
        outer = External(f"{prefix}{self.name}", inner.name, takes, gives, tuple(inputs), tuple(outputs))
        return [c_function(program, inner, static=True), "", c_external(outer), ""]

    def first(self) -> tuple[list[Matrix], Program]:
        """Every result by every input: rows and columns in CasADi's order of elements."""
        program = self.derived([(by,) for by in self.function.inputs])
        found = iter(_places(program))
        made = [
            _matrix(f"jac_{result.name}_{by.name}", _folded(next(found), by.rows * by.columns))
            for result in self.results
            for by in self.inputs
        ]
        return made, program

    def second(self, slopes: list[Matrix]) -> tuple[list[Matrix], Program]:
        """Every block of the Jacobian by every argument of it. The order of two derivatives does not matter: one of
        both is computed."""
        names, n = self.function.inputs, len(self.inputs)
        pairs = [(a, b) for a in range(n) for b in range(a, n)]
        program = self.derived([(names[a], names[b]) for a, b in pairs])
        places = _places(program)
        made = []
        for block, slope in enumerate(slopes):
            k, a = divmod(block, n)
            axes = len(self.program.outputs[k].shape)
            for b, by in enumerate(self.inputs):
                found = places[k * len(pairs) + pairs.index((min(a, b), max(a, b)))]
                if a > b:
                    middle = axes + len(self.shapes[b])
                    order = [*range(axes), *range(middle, found.ndim), *range(axes, middle)]
                    found = found.transpose(order)
                made.append(_matrix(f"jac_{slope.name}_{by.name}", _folded(found, by.rows * by.columns)))
            for result in _unused(self.results):
                zeros = np.full((slope.rows * slope.columns, result.rows * result.columns), -1)
                made.append(_matrix(f"jac_{slope.name}_{result.name}", zeros))
        return made, program

    def derived(self, by: list[tuple[str, ...]]) -> Program:
        return program_of(self.function, by_components(self.function, by)).with_varied_parameters().trace()


def _numbers(shape: tuple[int, ...], start: int = 0) -> np.ndarray:
    return np.arange(start, start + int(np.prod(shape, dtype=int))).reshape(shape)


def _places(program: Program) -> list[np.ndarray]:
    """For each element of each result, which number it is of all that the program writes; -1 for zeros."""
    found, start = [], 0
    for array, elements in zip(program.outputs, nonzeros(program), strict=True):
        places = np.full(array.size, -1)
        places[elements] = start + np.array(elements, dtype=int)
        found.append(places.reshape(array.shape))
        start += array.size
    return found


def _columns(places: np.ndarray) -> np.ndarray:
    """As a matrix: a vector is a column; of more than two axes all but the last count rows, the first one fastest."""
    return _folded(places, places.shape[-1] if places.ndim > 1 else 1)


def _folded(places: np.ndarray, columns: int) -> np.ndarray:
    return places.reshape((-1, columns), order="F")


def _matrix(name: str, places: np.ndarray) -> Matrix:
    rows, columns = places.shape
    entries = [(int(i), j, int(places[i, j])) for j in range(columns) for i in np.flatnonzero(places[:, j] >= 0)]
    return Matrix(name, rows, columns, tuple(entries))


def _unused(matrices: list[Matrix]) -> list[Matrix]:
    return [Matrix(f"{OUT}{matrix.name}", matrix.rows, matrix.columns, ()) for matrix in matrices]


def _word(name: str) -> str:
    """A name as CasADi wants it: no two underscores behind each other."""
    return re.sub("_+", "_", identifier(name))


def _checked_name(function: CompiledFunction, name: str | None, robot: RobotNames | None) -> str:
    if name is None:
        stem = f"{robot.name}_" if robot is not None else ""
        chosen = _word(f"{stem}{function.name}")
        return (f"robot_{chosen}" if TAKEN.match(chosen) else chosen)[:LONGEST].rstrip("_")
    checked_name(name)
    if len(name) > LONGEST or name != _word(name) or TAKEN.match(name):
        raise ArgumentError(
            f"the name of the CasADi function is {shown(name)}, expected at most {LONGEST} characters, no two "
            f"underscores together, none at the end, and no jac_, fwd1_ or adj1_ in front."
        )
    return name


def export_casadi(
    function: CompiledFunction, path: str | Path, *, name: str | None = None, hessian: bool = True,
    robot: RobotNames | None = None,
) -> Path:  # fmt: skip
    """Write C for `casadi.external` to `path`, which ends in .c."""
    source_path = checked_path(path)
    source = casadi_source(function, name, hessian, robot)
    write_atomically(source_path, lambda file: write_text(file, source))
    return source_path


def casadi_function(
    function: CompiledFunction, name: str | None = None, *, hessian: bool = True, folder: str | Path | None = None
) -> CasadiFunction:
    """The function in CasADi, through the system's C compiler (CC, cc or gcc), or from the cache."""
    try:
        import casadi  # pyright: ignore[reportMissingImports]
    except ImportError as error:
        raise ImportError(
            "f.casadi needs the package casadi, which is not installed: pip install linksweep[casadi]"
        ) from error
    chosen = _checked_name(function, name, None)
    source, library = _built(function, chosen, hessian)
    with tempfile.TemporaryDirectory(prefix="linksweep-casadi-") as scratch:
        place = Path(scratch if folder is None else folder)
        source_path, library_path = checked_path(place / f"{chosen}.c"), place / f"{chosen}.so"
        write_atomically(source_path, lambda file: write_text(file, source))
        write_atomically(library_path, lambda file: _write_bytes(file, library))
        return casadi.external(chosen, str(library_path))  # which keeps it loaded, also without its file


def _write_bytes(file: Path, content: bytes) -> None:
    file.write_bytes(content)


def _built(function: CompiledFunction, name: str, hessian: bool) -> tuple[str, bytes]:
    """The source and the library made of it; the cache keeps both."""
    compiler, store = _compiler(), DiskCache()
    key = make_key(
        llvmlite="", llvm="", cpu="", features="", casadi=(name, hessian, compiler), recipe=function.computation
    )
    found = store.get(key)
    if found is not None:
        length = int(found[0]["source"])
        return found[1][:length].decode(), found[1][length:]
    source = casadi_source(function, name, hessian)
    with tempfile.TemporaryDirectory(prefix="linksweep-casadi-") as scratch:
        source_path, library_path = Path(scratch) / f"{name}.c", Path(scratch) / f"{name}.so"
        write_text(source_path, source)
        effort = "-O1" if len(source) <= OPTIMISED else "-O0"
        command = [*compiler, effort, "-shared", "-fPIC", "-o", str(library_path), str(source_path), "-lm"]
        done = subprocess.run(command, capture_output=True, text=True, errors="replace")
        if done.returncode:
            lines = done.stderr.splitlines()
            first = next((line for line in lines if "error" in line), lines[0] if lines else "no message")
            raise BackendError(f"{compiler[0]} did not compile {name}: {first}")
        library = library_path.read_bytes()
    store.put(key, {"source": len(source.encode())}, source.encode() + library)
    return source, library


def _compiler() -> list[str]:
    """The C compiler: what CC names, with its options, or else cc or gcc."""
    chosen = os.environ.get("CC", "").strip()
    if chosen:
        try:
            words = shlex.split(chosen)
        except ValueError:
            words = []
        if not words or shutil.which(words[0]) is None:
            raise BackendError(
                f"CC is {shown(chosen)}, which is not a program here, expected a C compiler such as gcc."
            )
        return words
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        raise BackendError(
            "f.casadi found no C compiler, expected cc, gcc or what CC names: install one, or export the C file "
            "(linksweep export --language casadi) and compile it elsewhere."
        )
    return [compiler]
