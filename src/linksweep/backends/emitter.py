"""LLVM IR of straight-line code: W samples side by side in the lanes of a vector.

A sample's row is contiguous in memory, but an operation needs the same entry of W rows in one vector. Rows are read in
chunks of w entries, w a power of two, so that nothing beyond a row is touched. W/w rows side by side fill a vector, and
log2(w) stages of two-source shuffles transpose all w x w squares at once. Compared with single loads and insertions
this saves a fifth of UR5's inverse dynamics in float64 and a third in float32.

There is no fast-math flag: multiply-adds that are fused were fused in the Program.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import count

from ..errors import BackendError
from ..tracing.expression import ONLINE, Node, Operand, measured_angle, number
from ..tracing.program import Body, Output, Program
from .target import Target

Rows = Sequence[Sequence[str]] | dict[int, list[str]]  # of each output, or of some: a pointer for each lane
Chunk = tuple[int, int, list[Operand]]  # output, first element, values

LONG = 1500  # operations of straight-line code, beyond which it is cut into basic blocks of
PIECE = 300  # operations: LLVM's time grows faster than a block's length. C of Talos: 5.6 s in one, 1.9 s in pieces
CHUNKS = 4  # of results, written between two labels: LLVM would move loads and shuffles of many to the front, and spill
# them. Compared with 64: M^-1 of floating-base Talos 662 ns instead of 887, compiled in 0.8 s instead of 1.9; its
# Jacobians 3966 instead of 4355, 1.9 s instead of 4.5; Panda's regressor 226 instead of 262, 0.2 s instead of 0.5
EARLY = 1000  # operations, from which on results are written as soon as they are computed, and their lines prefetched,
# if there are 16 registers. Batch 4096, compared with late stores: Panda's inverse and forward derivatives 276 ns
# instead of 345 and 500 instead of 570, second derivatives of UR5 292 instead of 410; no difference while all results
# stay in the second cache. With 32 registers late stores are better: 138, 208 and 242 instead of 151, 216 and 247
STORED = 0.4  # results for each operation, from which on they are written in the order of memory
PREFETCHED = 256  # bytes of a result, from which on its lines are prefetched
COMPARISONS = ("lt",)  # truth values are not kept in memory: they are computed again where they are needed
_BINARY = {"add": "fadd", "sub": "fsub", "mul": "fmul", "div": "fdiv"}


def straight_body(program: Program) -> Body:
    """Return the only body of a program without loops."""
    (body,) = program.bodies()
    return body


def mostly_stored(program: Program) -> bool:
    """Return whether writing the results takes more time than computing them."""
    operations = sum(len(body.nodes) for body in program.bodies())
    return sum(array.size for array in program.outputs) >= STORED * operations


def chunks_by_step(program: Program, body: Body, work: Sequence[Node], lanes: int) -> dict[int, list[Chunk]]:
    """Return the chunks of results by the index in `work` of the last value that they need; -1 if they need none."""
    steps = {node: step for step, node in enumerate(work)}
    results: list[list[Operand]] = [[0.0] * array.size for array in program.outputs]
    for effect in body.effects:
        assert isinstance(effect, Output)
        results[effect.output][effect.where[0]] = effect.value
    ready: dict[int, list[Chunk]] = {-1: []}
    for output, values in enumerate(results):
        for start, width in chunks(len(values), lanes):
            part = values[start : start + width]
            last = max(steps.get(value, -1) if isinstance(value, Node) else -1 for value in part)
            ready.setdefault(last, []).append((output, start, part))
    return ready


class Emitter:
    """Emits a Program as operations on vectors of lanes.

    `lines` is the text of the function that is emitted now. `values` maps nodes to the IR values that hold them.
    """

    def __init__(self, program: Program, dtype: str, target: Target):
        self.program = program
        self.dtype = dtype
        self.target = target
        self.lanes = target.lanes(dtype)
        self.scalar = "float" if dtype == "float32" else "double"
        self.bytes = 4 if dtype == "float32" else 8
        self.vector = f"<{self.lanes} x {self.scalar}>"
        self.suffix = f"v{self.lanes}f{8 * self.bytes}"
        self.lines: list[str] = []
        self.functions: list[str] = []  # text of functions that the kernel calls
        self.out_strides: list[str] = []
        self.names = count()
        self.values: dict[Node, str] = {}  # of a straight-line program, and of parameters
        self.workspace = 0  # vectors that a call needs besides its arrays
        self.constants: dict[float, int] = {}  # index of a number in @constants
        self.trig: set[str] = set()  # functions of trig.py that are called
        self.declarations = {
            f"declare {self.vector} @llvm.fma.{self.suffix}({self.vector}, {self.vector}, {self.vector})",
            f"declare {self.vector} @llvm.sqrt.{self.suffix}({self.vector})",
            "declare void @llvm.prefetch.p0(ptr, i32, i32, i32)",
        }

    def globals(self) -> list[str]:
        """Return everything that the kernel refers to: constants, then functions."""
        return [*self.constant_globals(), *self.functions]

    def constant_globals(self) -> list[str]:
        values = ", ".join(f"{self.vector} {self.constant(value)}" for value in self.constants)
        size = f"[{len(self.constants)} x {self.vector}]"
        return [f"@constants = internal unnamed_addr constant {size} [{values}], align 64"] if self.constants else []

    def emit(self, operation: str) -> str:
        name = f"%v{next(self.names)}"
        self.lines.append(f"  {name} = {operation}")
        return name

    def do(self, operation: str) -> None:
        self.lines.append(f"  {operation}")

    def label(self, name: str) -> None:
        self.lines.append(f"{name}:")

    def fresh(self, stem: str) -> str:
        return f"{stem}{next(self.names)}"

    @contextmanager
    def loop(self, stem: str, first: int, step: int, condition: str, blocks: bool = False) -> Iterator[str]:
        """Emit a loop around the operations of the `with` block, and yield its name.

        The index is %<name>_i. It starts with `first` and grows by `step` while `condition` holds for the next one,
        such as "slt 8". blocks: the body has several basic blocks and ends with a branch to %<name>_end.
        """
        name = self.fresh(stem)
        last = f"{name}_end" if blocks else name
        self.do(f"br label %{name}_in")
        self.label(f"{name}_in")
        self.do(f"br label %{name}")
        self.label(name)
        self.do(f"%{name}_i = phi i64 [ {first}, %{name}_in ], [ %{name}_next, %{last} ]")
        yield name
        if blocks:
            self.label(last)
        comparison, bound = condition.split()
        self.do(f"%{name}_next = add i64 %{name}_i, {step}")
        self.do(f"%{name}_more = icmp {comparison} i64 %{name}_next, {bound}")
        self.do(f"br i1 %{name}_more, label %{name}, label %{name}_out")
        self.label(f"{name}_out")

    @contextmanager
    def function(self, name: str, arguments: str) -> Iterator[None]:
        """Emit the operations of the `with` block as a function of its own."""
        outside, self.lines = self.lines, [f"define internal void {name}({arguments}) noinline {{"]
        yield
        self.functions += [*self.lines, "  ret void", "}"]
        self.lines = outside

    def constant(self, value: float) -> str:
        return f"splat ({self.scalar} {self.literal(value)})"

    def literal(self, value: float) -> str:
        """Return a number exactly: LLVM takes the bits of a double, also for float."""
        if self.dtype == "float32":
            try:
                value = struct.unpack("<f", struct.pack("<f", value))[0]  # the native "f" would make it infinite
            except OverflowError:
                raise BackendError(
                    f"{value!r} in the robot's description does not fit into float32: compile with dtype='float64'."
                ) from None
        return f"0x{struct.unpack('>Q', struct.pack('>d', value))[0]:016X}"

    def splat(self, scalar: str) -> str:
        first = self.emit(f"insertelement {self.vector} poison, {self.scalar} {scalar}, i64 0")
        return self.emit(
            f"shufflevector {self.vector} {first}, {self.vector} poison, <{self.lanes} x i32> zeroinitializer"
        )

    def pointer(self, array: str, k: int) -> str:
        return self.emit(f"load ptr, ptr {self.emit(f'getelementptr ptr, ptr {array}, i64 {k}')}")

    def integer(self, array: str, k: int) -> str:
        return self.emit(f"load i64, ptr {self.emit(f'getelementptr i64, ptr {array}, i64 {k}')}")

    def rows(self, base: str, stride: str, spare: str | None) -> list[str]:
        """Return a pointer to each lane's row. Lanes beyond the last sample read its row and write to the spare row."""
        rows = []
        for lane in range(self.lanes):
            index = self.emit(f"add i64 %s, {lane}") if lane else "%s"
            inside = self.emit(f"icmp slt i64 {index}, %n") if lane else "true"
            clamped = self.emit(f"select i1 {inside}, i64 {index}, i64 %last")
            offset = self.emit(f"mul i64 {clamped}, {stride}")
            row = self.emit(f"getelementptr {self.scalar}, ptr {base}, i64 {offset}")
            rows.append(self.emit(f"select i1 {inside}, ptr {row}, ptr {spare}") if spare and lane else row)
        return rows

    def prologue(self, bases: Sequence[tuple[str, str]]) -> None:
        """Emit the operations on parameters, which run once per call."""
        values = self.values
        for body in self.program.bodies():
            for node in body.nodes:
                if node.level < ONLINE and node not in values:
                    if node.op == "input":
                        place = self.emit(
                            f"getelementptr {self.scalar}, ptr {bases[node.data[0]][0]}, i64 {node.data[1]}"
                        )
                        values[node] = self.splat(self.emit(f"load {self.scalar}, ptr {place}"))
                    else:
                        self.operation(node, values)

    def run(self, rows: list[list[str]], out_rows: list[list[str]]) -> str:
        """Emit the program for one group of samples, with a row for each lane. Return the poison of the inputs."""
        loaded = [self.load_columns(rows[k], array.size) for k, array in enumerate(self.program.inputs)]
        poison = self.poison([column for columns in loaded for column in columns])
        body = straight_body(self.program)
        for node in body.nodes:
            if node.op == "input" and node.level == ONLINE:
                self.values[node] = loaded[node.data[0]][node.data[1]]
        work = [node for node in body.nodes if node.op != "input" and node.level == ONLINE]
        early = len(work) >= EARLY and self.target.registers == 16 and not mostly_stored(self.program)
        ready = chunks_by_step(self.program, body, work if early else (), self.lanes)
        ahead = self.lines_ahead(out_rows) if early else []
        for step, node in enumerate(work):
            self.cut(step, len(work))
            for place in ahead[len(ahead) * step // len(work) : len(ahead) * (step + 1) // len(work)]:
                self.prefetch(*place)
            self.operation(node, self.values)
            self.store_ready(ready.get(step, ()), out_rows)
        for k in range(0, len(ready[-1]), CHUNKS):
            if k:
                self.begin_piece()
            self.store_ready(ready[-1][k : k + CHUNKS], out_rows)
        return poison

    def lines_ahead(self, out_rows: list[list[str]]) -> list[tuple[str, int]]:
        """Return (row, offset) of the cache lines that the next group writes; hardware cannot predict their order."""
        places = []
        for k, array in enumerate(self.program.outputs):
            if array.size * self.bytes >= PREFETCHED:
                step = self.emit(f"mul i64 {self.out_strides[k]}, {self.lanes}")
                for row in out_rows[k]:
                    ahead = self.emit(f"getelementptr {self.scalar}, ptr {row}, i64 {step}")
                    places += [(ahead, offset) for offset in range(0, array.size * self.bytes, 64)]
        return places

    def prefetch(self, row: str, offset: int) -> None:
        place = self.emit(f"getelementptr i8, ptr {row}, i64 {offset}")
        self.do(f"call void @llvm.prefetch.p0(ptr {place}, i32 1, i32 3, i32 1)")

    def store_ready(self, ready: Sequence[Chunk], out_rows: Rows) -> None:
        """Emit stores of chunks whose values are computed."""
        for output, start, values in ready:
            if all(not isinstance(value, Node) and value == 0.0 for value in values):  # most of a Jacobian
                for row in out_rows[output]:
                    self.store_part(row, start, "zeroinitializer", len(values))
                continue
            self.store_chunk(out_rows[output], start, [self.operand(value, self.values) for value in values])

    def cut(self, position: int, length: int) -> None:
        """Begin another basic block in long code. LLVM cannot see that the branch is always taken, and keeps it."""
        if length > LONG and position and position % PIECE == 0:
            self.begin_piece()

    def begin_piece(self) -> None:
        name = self.fresh("piece")
        self.do(f"br i1 {self.emit('icmp sge i64 %n, 0')}, label %{name}, label %done")
        self.label(name)

    def poison(self, columns: Sequence[str]) -> str:
        """Return 0 in each lane, or NaN if an input of the lane is not finite: the sum of x * 0, in four chains."""
        sums = [self.constant(0.0)] * 4
        for i, column in enumerate(columns):
            sums[i % 4] = self.fma(column, self.constant(0.0), sums[i % 4])
        pairs = [self.emit(f"fadd {self.vector} {sums[i]}, {sums[i + 1]}") for i in (0, 2)]
        return self.emit(f"fadd {self.vector} {pairs[0]}, {pairs[1]}")

    def operand(self, x: Operand, values: dict[Node, str]) -> str:
        if not isinstance(x, Node):
            return self.repeated(number(x))
        if x not in values:
            if x.op in COMPARISONS:
                self.operation(x, values)
            else:
                values[x] = self.reload(x)
        return values[x]

    def reload(self, x: Node) -> str:
        """Load a value that this function did not compute."""
        raise BackendError(f"{x} is read before it is computed: please report this.")

    def repeated(self, value: float) -> str:
        """Return a number in all lanes.

        AVX2 has no operand that repeats a number from memory. There it is in memory W times. Compared with broadcasts:
        427 ns instead of 434 for Panda's forward derivatives, 214 instead of 222 for UR5's second derivatives.
        """
        if self.target.vector_bytes != 32 or value == 0.0:
            return self.constant(value)
        index = self.constants.setdefault(value, len(self.constants))
        return self.emit(
            f"load {self.vector}, ptr getelementptr ({self.vector}, ptr @constants, i64 {index}), align 32"
        )

    def fma(self, a: str, b: str, c: str) -> str:
        if not self.target.fma:
            product = self.emit(f"fmul {self.vector} {a}, {b}")
            return self.emit(f"fadd {self.vector} {product}, {c}")
        v = self.vector
        return self.emit(f"call {v} @llvm.fma.{self.suffix}({v} {a}, {v} {b}, {v} {c})")

    def operation(self, node: Node, values: dict[Node, str]) -> None:
        op, v = node.op, self.vector
        if op in ("sin", "cos"):
            if node not in values:
                self.sincos(node, values)
            return
        args = [self.operand(arg, values) for arg in node.args]
        if op in _BINARY:
            text = self.emit(f"{_BINARY[op]} {v} {args[0]}, {args[1]}")
        elif op == "neg":
            text = self.emit(f"fneg {v} {args[0]}")
        elif op in ("fma", "fms", "fnma"):
            if op == "fms":
                args[2] = self.emit(f"fneg {v} {args[2]}")
            elif op == "fnma":
                args[0] = self.emit(f"fneg {v} {args[0]}")
            text = self.fma(*args)
        elif op == "sqrt":
            text = self.emit(f"call {v} @llvm.sqrt.{self.suffix}({v} {args[0]})")
        elif op == "lt":
            text = self.emit(f"fcmp olt {v} {args[0]}, {args[1]}")
        elif op == "where":
            text = self.emit(f"select <{self.lanes} x i1> {args[0]}, {v} {args[1]}, {v} {args[2]}")
        else:
            raise BackendError(f"there is no machine code for {op!r}: please report this.")
        values[node] = text

    def sincos(self, node: Node, values: dict[Node, str]) -> None:
        """Emit one evaluation of sine and cosine of an angle, and set the values of both nodes."""
        v = self.vector
        measured, offset = measured_angle(node.args[0])
        name, arguments = "sincos", f"{v} {self.operand(measured, values)}"
        if isinstance(offset, Node) or offset != 0.0:
            name, arguments = "sincos_shifted", f"{arguments}, {v} {self.operand(offset, values)}"
        self.trig.add(name)
        pair = self.emit(f"call {{ {v}, {v} }} @{name}({arguments})")
        for position, name in enumerate(("sin", "cos")):
            twin = node.graph.nodes.get((name, node.args[0]))
            if twin is not None:
                values[twin] = self.emit(f"extractvalue {{ {v}, {v} }} {pair}, {position}")

    # ---- transposition between rows of samples and vectors of lanes ----

    def load_columns(self, rows: Sequence[str], size: int) -> list[str]:
        """Return a vector for each of the `size` entries of these rows, one row per lane."""
        columns: list[str] = []
        for start, width in chunks(size, self.lanes):
            parts = [self._load(row, start, width) for row in rows]
            groups = [[parts[i + g * width] for g in range(self.lanes // width)] for i in range(width)]
            vectors = [self._concatenate(group, width) for group in groups]
            columns += self._transpose(vectors, width)
        return columns

    def store_columns(self, rows: Sequence[str], columns: Sequence[str]) -> None:
        """Store a vector for each entry into the rows, one row per lane."""
        for start, width in chunks(len(columns), self.lanes):
            self.store_chunk(rows, start, columns[start : start + width])

    def store_chunk(self, rows: Sequence[str], start: int, columns: Sequence[str]) -> None:
        """Store the entries of one chunk, from `start` on."""
        width = len(columns)
        for i, vector in enumerate(self._transpose(list(columns), width)):
            for g in range(self.lanes // width):
                self.store_part(rows[i + g * width], start, self._extract(vector, g * width, width), width)

    def store_part(self, row: str, start: int, part: str, width: int) -> None:
        """Store `width` entries of one row, from `start` on."""
        place = self.emit(f"getelementptr {self.scalar}, ptr {row}, i64 {start}")
        self.do(f"store <{width} x {self.scalar}> {part}, ptr {place}, align {self.bytes}")

    def _load(self, row: str, start: int, width: int) -> str:
        place = self.emit(f"getelementptr {self.scalar}, ptr {row}, i64 {start}")
        return self.emit(f"load <{width} x {self.scalar}>, ptr {place}, align {self.bytes}")

    def _concatenate(self, parts: Sequence[str], width: int) -> str:
        while len(parts) > 1:
            kind = f"<{width} x {self.scalar}>"
            width *= 2
            parts = [
                self.emit(f"shufflevector {kind} {a}, {kind} {b}, {_mask(range(width))}")
                for a, b in zip(parts[::2], parts[1::2], strict=True)
            ]
        return parts[0]

    def _extract(self, vector: str, start: int, width: int) -> str:
        if width == self.lanes:
            return vector
        mask = _mask(range(start, start + width))
        return self.emit(f"shufflevector {self.vector} {vector}, {self.vector} poison, {mask}")

    def _transpose(self, vectors: list[str], width: int) -> list[str]:
        """Transpose the width x width squares that are side by side in the lanes."""
        distance = 1
        while distance < width:
            for i in range(width):
                if i & distance == 0:
                    a, b = vectors[i], vectors[i + distance]
                    low = [p if p & distance == 0 else self.lanes + p - distance for p in range(self.lanes)]
                    high = [p + distance if p & distance == 0 else self.lanes + p for p in range(self.lanes)]
                    both = f"{self.vector} {a}, {self.vector} {b}"
                    vectors[i] = self.emit(f"shufflevector {both}, {_mask(low)}")
                    vectors[i + distance] = self.emit(f"shufflevector {both}, {_mask(high)}")
            distance *= 2
        return vectors


def chunks(size: int, lanes: int) -> list[tuple[int, int]]:
    """Return (start, width) of the chunks of a row: powers of two, none wider than a vector."""
    chunks, start, width = [], 0, lanes
    while start < size:
        while width > size - start:
            width //= 2
        chunks.append((start, width))
        start += width
    return chunks


def _mask(indices: Sequence[int]) -> str:
    return f"<{len(indices)} x i32> <{', '.join(f'i32 {i}' for i in indices)}>"
