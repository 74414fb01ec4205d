"""LLVM IR text of straight-line code: samples side by side in the lanes of a vector.

No fast-math flag anywhere: what is fused was fused in the Program.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from itertools import count

from ..errors import BackendError
from ..tracing.expression import ONLINE, Node, Operand, measured_angle, number
from ..tracing.program import Body, Output, Program
from .target import Target
from .transpose import chunks, load_columns, store_chunk, store_part

Rows = Sequence[Sequence[str]] | dict[int, list[str]]  # of each output, or of some: a pointer for each lane

LONG = 1500  # operations of straight-line code, beyond which it is cut into pieces:
PIECE = 300  # LLVM's time grows faster than a block's length. C of Talos: 5.6 s to compile in one, 1.9 s in pieces
CHUNKS = 4  # of results, written between two labels: LLVM would move loads and shuffles of many to the front, and spill
# them. In turns with 64: M^-1 of Talos on a free base 662 ns against 887, compiled in 0.8 s against 1.9; its Jacobians
# 3966 against 4355, 1.9 s against 4.5; Panda's regressor 226 against 262, 0.2 s against 0.5; small results alike
_BINARY = {"add": "fadd", "sub": "fsub", "mul": "fmul", "div": "fdiv"}


EARLY = 1000  # operations, from which on results are written as soon as they are known, and their lines fetched ahead,
# where there are 16 registers. Batch 4096, in turns with late stores: Panda's inverse and forward derivatives 276 ns
# against 345 and 500 against 570, second derivatives of UR5 292 against 410; no difference where all results stay in
# the second cache. With 32 registers late stores are better: 138 against 151, 208 against 216 and 242 against 247
STORED = 0.4  # results for each operation, from which on they are written in the order of memory
FETCHED = 256  # bytes of a result, from which on its lines are fetched ahead
Chunk = tuple[int, int, list[Operand]]  # output, first element, values


def straight_body(program: Program) -> Body:
    """The one body of a program without loops."""
    (body,) = program.bodies()
    return body


def mostly_stored(program: Program) -> bool:
    """Whether writing the results takes more time than computing them."""
    operations = sum(len(body.nodes) for body in program.bodies())
    return sum(array.size for array in program.outputs) >= STORED * operations


def chunks_by_step(program: Program, body: Body, work: Sequence[Node], lanes: int) -> dict[int, list[Chunk]]:
    """What is written together, by the step of `work` after which all of it is known; -1: by none of them."""
    steps = {node: step for step, node in enumerate(work)}
    results: list[list[Operand]] = [[0.0] * array.size for array in program.outputs]
    for effect in body.effects:
        assert isinstance(effect, Output)
        results[effect.output][effect.where[0]] = effect.value
    found: dict[int, list[Chunk]] = {-1: []}
    for output, values in enumerate(results):
        for start, width in chunks(len(values), lanes):
            part = values[start : start + width]
            known = max(steps.get(value, -1) if isinstance(value, Node) else -1 for value in part)
            found.setdefault(known, []).append((output, start, part))
    return found


class Emitter:
    """Writes the operations of a Program on vectors of lanes."""

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
        self.out_strides: list[str] = []
        self.names = count()
        self.values: dict[Node, str] = {}  # of a straight-line program
        self.workspace = 0  # vectors that a call needs besides its arrays
        self.constants: dict[float, int] = {}  # by their place in memory
        self.trig: set[str] = set()  # of trig.py, as they are called
        self.declarations = {
            f"declare {self.vector} @llvm.fma.{self.suffix}({self.vector}, {self.vector}, {self.vector})",
            f"declare {self.vector} @llvm.sqrt.{self.suffix}({self.vector})",
            "declare void @llvm.prefetch.p0(ptr, i32, i32, i32)",
        }

    def globals(self) -> list[str]:
        kept = ", ".join(f"{self.vector} {self.constant(value)}" for value in self.constants)
        size = f"[{len(self.constants)} x {self.vector}]"
        return [f"@constants = internal unnamed_addr constant {size} [{kept}], align 64"] if self.constants else []

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

    def constant(self, value: float) -> str:
        return f"splat ({self.scalar} {self.literal(value)})"

    def literal(self, value: float) -> str:
        """A float written exactly: LLVM takes the bits of a double, also for float."""
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
        """Each lane's row: lanes beyond the last sample repeat it when reading, and write to the spare row."""
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
        """Work among parameters: once for the call, before any sample."""
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
        """One group of samples: each lane reads and writes its own row. Answers with the poison of its inputs."""
        loaded = [load_columns(self, rows[k], array.size) for k, array in enumerate(self.program.inputs)]
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
        """The cache lines that the next group writes: in an order which no processor foresees."""
        found = []
        for k, array in enumerate(self.program.outputs):
            if array.size * self.bytes >= FETCHED:
                step = self.emit(f"mul i64 {self.out_strides[k]}, {self.lanes}")
                for row in out_rows[k]:
                    ahead = self.emit(f"getelementptr {self.scalar}, ptr {row}, i64 {step}")
                    found += [(ahead, offset) for offset in range(0, array.size * self.bytes, 64)]
        return found

    def prefetch(self, row: str, offset: int) -> None:
        place = self.emit(f"getelementptr i8, ptr {row}, i64 {offset}")
        self.do(f"call void @llvm.prefetch.p0(ptr {place}, i32 1, i32 3, i32 1)")

    def store_ready(self, ready: Sequence[Chunk], out_rows: Rows) -> None:
        """Write what is computed by now: sooner or later it would have to leave its register."""
        for output, start, values in ready:
            if all(not isinstance(value, Node) and value == 0.0 for value in values):  # most of a Jacobian
                for row in out_rows[output]:
                    store_part(self, row, start, "zeroinitializer", len(values))
                continue
            store_chunk(self, out_rows[output], start, [self.operand(value, self.values) for value in values])

    def cut(self, position: int, length: int) -> None:
        """Begin another basic block in long code. LLVM cannot know that the branch is always taken, and leaves it."""
        if length > LONG and position and position % PIECE == 0:
            self.begin_piece()

    def begin_piece(self) -> None:
        name = self.fresh("piece")
        self.do(f"br i1 {self.emit('icmp sge i64 %n, 0')}, label %{name}, label %done")
        self.label(name)

    def poison(self, columns: Sequence[str]) -> str:
        """0 in each lane, or NaN where any input is not finite: x * 0 added up, in four chains."""
        sums = [self.constant(0.0)] * 4
        for i, column in enumerate(columns):
            sums[i % 4] = self.fma(column, self.constant(0.0), sums[i % 4])
        pairs = [self.emit(f"fadd {self.vector} {sums[i]}, {sums[i + 1]}") for i in (0, 2)]
        return self.emit(f"fadd {self.vector} {pairs[0]}, {pairs[1]}")

    def operand(self, x: Operand, values: dict[Node, str]) -> str:
        return values[x] if isinstance(x, Node) else self.repeated(number(x))

    def repeated(self, value: float) -> str:
        """A number in all lanes. AVX2 has no operand that repeats one from memory: there it stands in memory W times,
        so that an operation takes it from there. In turns with broadcasts: 427 ns against 434 for Panda's forward
        derivatives, 214 against 222 for UR5's second ones."""
        if self.target.vector_bytes != 32 or value == 0.0:
            return self.constant(value)
        place = self.constants.setdefault(value, len(self.constants))
        return self.emit(
            f"load {self.vector}, ptr getelementptr ({self.vector}, ptr @constants, i64 {place}), align 32"
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
        """Sine and cosine of one angle come from one evaluation; both nodes get their value."""
        v = self.vector
        measured, offset = measured_angle(node.args[0])
        name, given = "sincos", f"{v} {self.operand(measured, values)}"
        if isinstance(offset, Node) or offset != 0.0:
            name, given = "sincos_shifted", f"{given}, {v} {self.operand(offset, values)}"
        self.trig.add(name)
        pair = self.emit(f"call {{ {v}, {v} }} @{name}({given})")
        for position, name in enumerate(("sin", "cos")):
            twin = node.graph.nodes.get((name, node.args[0]))
            if twin is not None:
                values[twin] = self.emit(f"extractvalue {{ {v}, {v} }} {pair}, {position}")
