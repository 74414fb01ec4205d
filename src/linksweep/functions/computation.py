"""Computations: everything that can be traced into a Program, compiled, exported, differentiated, counted or proved.

A `Computation` is frozen, hashable and picklable, and holds all that its Program depends on. `RobotFunction` is a
function of a robot by one of its methods. `Derivative`, `Jvp` and `Vjp` differentiate another computation, to any
depth. `Parametric` makes parameters of the robot model inputs. `Together` computes several results in one program,
which share their work. Controllers, simulation steps, observers and iterations of inverse kinematics are
computations, too: they define `name`, `inputs`, `outputs` and `values`, and everything else follows.

q moves along joint velocities, q' = Omega(q) v, so that derivatives with respect to q have nv columns for every joint,
as in Pinocchio. `coordinates=True` asks for derivatives with respect to the components of q instead.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple

from ..algorithms.closed_chain.swept import can_be_swept
from ..backends.ir import Until
from ..errors import ArgumentError
from ..mechanism.canonical import CanonicalModel
from ..support.messages import nearest, shown
from ..tracing.differentiate import Tangent, adjoints, derivative, differentiated
from ..tracing.expression import ONLINE, PARAMETER, Graph, Node, Operand
from ..tracing.passes import optimise
from ..tracing.program import Array, Program
from ..tracing.rolled import Rolled
from ..tracing.tracer import Tracer, UnrolledRun, parameter_places, unrolled_program
from .declaration import INPUTS, Axis, Function, Method
from .defaults import ROLL_ABOVE, WRITTEN_OUT, predicted_operations, with_still_frames
from .functions import FUNCTIONS
from .parameters import ParameterSet, regroup
from .swept_derivatives import can_be_rolled, trace_swept

Values = Sequence[Operand]  # of one output, flat
SLOT = -1  # place of a result that is read back and is not an output of the program


class Inputs(NamedTuple):
    """The inputs of a computation by their role, in the order in which they are passed."""

    own: tuple[Array, ...]
    vectors: tuple[tuple[Array, ...], ...] = ()  # tangents and weights: of the innermost product first
    parameters: tuple[Array, ...] = ()  # parameters of the robot model

    @property
    def all(self) -> tuple[Array, ...]:
        return (*self.own, *(array for level in self.vectors for array in level), *self.parameters)


class Computation:
    """Base of all computations. Subclasses are frozen dataclasses.

    They define `name`, `outputs`, `values`, and `inputs` or, where inputs have roles, `roles`.
    """

    if TYPE_CHECKING:

        @property
        def model(self) -> CanonicalModel:
            """The robot model."""
            ...

        @property
        def name(self) -> str:
            """The name of the compiled function."""
            ...

    @property
    def roles(self) -> Inputs:
        return Inputs(self.inputs)

    @property
    def inputs(self) -> tuple[Array, ...]:
        return self.roles.all

    @property
    def outputs(self) -> tuple[Array, ...]:
        raise NotImplementedError

    def values(self, tracing: Tracing) -> Sequence[Values]:
        """Return the values of each output, flat, from the inputs `tracing.leaves`."""
        raise NotImplementedError

    @property
    def components(self) -> tuple[Computation, ...]:
        """The computations that this one is made of."""
        return ()

    def trace(self) -> Program:
        """Return the Program, without fused multiply-adds."""
        return _trace(self, None, None)

    @property
    def quick_above(self) -> int | None:
        """The number of operations above which a program is optimised with less effort."""
        return None

    def loop(self) -> Until | None:
        """Return the loop that the program is one iteration of, if it is."""
        return None

    def each(self, change: Callable[[Computation], Computation]) -> Computation:
        """Return the computation with every part changed: all parts of `Together`, or this one."""
        return change(self)

    def with_varied_parameters(self) -> Computation:
        """Return the computation with parameters that may differ between the samples of a batch."""
        return self


@dataclass(frozen=True)
class RobotFunction(Computation):
    """A function of a robot by one of its methods, with its options; `FUNCTIONS` declares them."""

    model: CanonicalModel  # pyright: ignore[reportIncompatibleMethodOverride]
    function: str
    method: str = ""
    frame: str | tuple[str, ...] = ""  # several only if a function takes several
    reference: str = ""
    f_ext: bool = False
    dissipation: bool = False
    base_motion: bool = False

    @property
    def declared(self) -> Function:
        """Its declaration."""
        return FUNCTIONS[self.function]

    @property
    def declared_method(self) -> Method:
        """The declaration of its method."""
        return self.declared.all_methods[self.method]

    @property
    def frames(self) -> tuple[str, ...]:
        """Its frames, one or several."""
        return (self.frame,) if isinstance(self.frame, str) else self.frame

    @property
    def name(self) -> str:
        return self.function

    @property
    def inputs(self) -> tuple[Array, ...]:
        names = {*self.declared.inputs, *(name for name in ("f_ext", "base_motion") if getattr(self, name))}
        axes = {**INPUTS, **self.declared.shapes}
        return tuple(Array(name, self._shape(axes[name])) for name in sorted(names, key=input_order))

    @property
    def outputs(self) -> tuple[Array, ...]:
        return (Array(self.declared.result, self._shape(self.declared.axes)),)

    def _shape(self, axes: Sequence[Axis]) -> tuple[int, ...]:
        return tuple(axis if isinstance(axis, int) else self._size(axis) for axis in axes)

    def _size(self, axis: str) -> int:
        model = self.model
        match axis:
            case "q":
                return model.nq
            case "v":
                return model.nv
            case "six":
                return 6 * len(self.frames)
            case "rows":
                return sum(tie.rows for tie in model.ties)
            case "packed":
                return parameter_places(model, packed=True).size
            case "parameters":
                return 11 * len(model.links)
        return len({"links": model.links, "frames": model.frames, "ties": model.ties}[axis])

    def write(self, tracer: Tracer, output: int) -> None:
        """Trace the function on a tracer, as its output of this index."""
        self.declared.trace(tracer, self, output)

    def values(self, tracing: Tracing) -> Sequence[Values]:
        run = tracing.run(self.model)
        self.write(run, SLOT)
        return (run.results.pop(SLOT),)

    def evaluate(self, *arguments: Sequence[Operand], base_parameters: bool = True) -> list[Operand]:
        """Return the result, flat, from one sample of each input, over any scalar.

        base_parameters: use regrouped inertias wherever they give the same result.
        """
        run = UnrolledRun(regrouped(self) if base_parameters else self.model, self.inputs, arguments)
        self.write(run, SLOT)
        return list(run.results[SLOT])


def input_order(name: str) -> tuple[int, str]:
    """Return the sort key of an input: inputs that only one function has come before options."""
    order = list(INPUTS)
    return (order.index(name) if name in INPUTS else order.index("damping")), name


def internal_function(model: CanonicalModel, function: str) -> RobotFunction:
    """Return a function that is not public, by its first method."""
    return RobotFunction(model, function, next(iter(FUNCTIONS[function].methods)))


# ---- transformations


@dataclass(frozen=True)
class Transformation(Computation):
    """A computation made from another one."""

    of: Computation

    @property
    def model(self) -> CanonicalModel:
        return self.of.model

    @property
    def roles(self) -> Inputs:
        return self.of.roles

    @property
    def components(self) -> tuple[Computation, ...]:
        return (self.of,)

    def with_varied_parameters(self) -> Computation:
        return replace(self, of=self.of.with_varied_parameters())


@dataclass(frozen=True)
class Derivative(Transformation):
    """The partial derivatives of every output with respect to one input, (..., output shape, input shape).

    Their input axes have nv entries with respect to q, unless `coordinates` asks for those of its components.
    """

    wrt: str
    coordinates: bool = False

    def __post_init__(self) -> None:
        _check_differentiable(self.of, (self.wrt,))

    @property
    def name(self) -> str:
        return f"{self.of.name}_by_{self.wrt}"

    @property
    def outputs(self) -> tuple[Array, ...]:
        added = _directions(self.of, self.wrt, self.coordinates)
        return tuple(differentiated(output, self.wrt, added) for output in self.of.outputs)

    def values(self, tracing: Tracing) -> Sequence[Values]:
        inner, sizes = _flat(tracing.values(self.of))
        seeds, width = _seeds(tracing, self.model, self.wrt, self.coordinates)
        repeated = isinstance(self.of, Derivative) and (self.of.wrt, self.of.coordinates) == (
            self.wrt,
            self.coordinates,
        )
        entries = _second(self, inner, seeds, width) if repeated else derivative(inner, seeds, width)
        return _split(entries, [size * width for size in sizes])


@dataclass(frozen=True)
class Jvp(Transformation):
    """The derivatives of every output with respect to some inputs, times tangents of these (inputs v_<input>)."""

    wrt: tuple[str, ...]
    coordinates: bool = False

    def __post_init__(self) -> None:
        _check_differentiable(self.of, self.wrt)

    @property
    def name(self) -> str:
        return f"jvp_{'_'.join(self.wrt)}_of_{self.of.name}"

    @property
    def roles(self) -> Inputs:
        return _with_vectors(
            self.of, [Array(self._tangent(x), _directions(self.of, x, self.coordinates)) for x in self.wrt]
        )

    def _tangent(self, wrt: str) -> str:
        level = _level(self.of)
        return f"{('v', 'u')[level] if level < 2 else f'u{level}'}_{wrt}"

    @property
    def outputs(self) -> tuple[Array, ...]:
        return tuple(Array(f"jvp_{output.name}", output.shape) for output in self.of.outputs)

    def values(self, tracing: Tracing) -> Sequence[Values]:
        inner, sizes = _flat(tracing.values(self.of))
        along: dict[Node, Tangent] = {}
        for wrt in self.wrt:
            tangent = tracing.leaves[self._tangent(wrt)]
            for node, partials in _seeds(tracing, self.model, wrt, self.coordinates)[0].items():
                rate: Operand = 0.0
                for direction, partial in partials.items():
                    rate = rate + partial * tangent[direction]
                along[node] = {0: rate}
        return _split(derivative(inner, along, 1), sizes)


@dataclass(frozen=True)
class Vjp(Transformation):
    """Weights of all outputs, further inputs w_<output>, times the derivatives with respect to each of some inputs."""

    wrt: tuple[str, ...]
    coordinates: bool = False
    weights: tuple[str, ...] = ()  # names of the weights; () takes w_<output>

    def __post_init__(self) -> None:
        _check_differentiable(self.of, self.wrt)

    @property
    def name(self) -> str:
        return f"vjp_{'_'.join(self.wrt)}_of_{self.of.name}"

    @property
    def weight_names(self) -> tuple[str, ...]:
        return self.weights or tuple(f"w_{output.name}" for output in self.of.outputs)

    @property
    def roles(self) -> Inputs:
        named = zip(self.weight_names, self.of.outputs, strict=True)
        return _with_vectors(self.of, [Array(name, output.shape) for name, output in named])

    @property
    def outputs(self) -> tuple[Array, ...]:
        single = f"vjp_{self.of.outputs[0].name}_" if len(self.of.outputs) == 1 else "vjp_"
        return tuple(Array(f"{single}{x}", _directions(self.of, x, self.coordinates)) for x in self.wrt)

    def values(self, tracing: Tracing) -> Sequence[Values]:
        inner, _ = _flat(tracing.values(self.of))
        weights = [x for name in self.weight_names for x in tracing.leaves[name]]
        seeds = [_seeds(tracing, self.model, wrt, self.coordinates) for wrt in self.wrt]
        gradient = adjoints(inner, weights, {node: None for moved, _ in seeds for node in moved})
        results = []
        for moved, width in seeds:
            total: list[Operand] = [0.0] * width
            for node, partials in moved.items():
                for direction, partial in partials.items():
                    total[direction] = total[direction] + gradient[node] * partial
            results.append(total)
        return results


@dataclass(frozen=True)
class Parametric(Transformation):
    """A computation whose last inputs are parameters of the robot model; `varied` within a batch or shared by it."""

    sets: tuple[ParameterSet, ...]
    varied: bool = False

    @property
    def name(self) -> str:
        return self.of.name

    @property
    def roles(self) -> Inputs:
        level = ONLINE if self.varied else PARAMETER
        return self.of.roles._replace(parameters=tuple(Array(x.name, x.shape, level) for x in self.sets))

    @property
    def outputs(self) -> tuple[Array, ...]:
        return self.of.outputs

    def values(self, tracing: Tracing) -> Sequence[Values]:
        return tracing.with_parameters(self.sets).values(self.of)

    def with_varied_parameters(self) -> Computation:
        return replace(self, varied=True)


@dataclass(frozen=True)
class Widened(Transformation):
    """A computation with more inputs than it depends on, those of the program it is part of.

    Its derivatives with respect to inputs that it does not depend on are zero.
    """

    whole: Inputs

    @property
    def name(self) -> str:
        return self.of.name

    @property
    def roles(self) -> Inputs:
        return self.whole

    @property
    def outputs(self) -> tuple[Array, ...]:
        return self.of.outputs

    def values(self, tracing: Tracing) -> Sequence[Values]:
        return tracing.values(self.of)

    def with_varied_parameters(self) -> Computation:
        varied = tuple(replace(array, level=ONLINE) for array in self.whole.parameters)
        return replace(self, of=self.of.with_varied_parameters(), whole=self.whole._replace(parameters=varied))


@dataclass(frozen=True)
class Together(Computation):
    """Several computations in one program, which share their work.

    rolled: as loops over the links; None chooses by size. base_parameters: with regrouped inertias; None uses them
    wherever they give the same results.
    """

    parts: tuple[Computation, ...]
    rolled: bool | None = None
    base_parameters: bool | None = None

    def __post_init__(self) -> None:
        _check_options(self)

    @property
    def model(self) -> CanonicalModel:
        return self.parts[0].model

    @property
    def name(self) -> str:
        return "_and_".join(part.name for part in self.parts)

    @property
    def roles(self) -> Inputs:
        roles = [part.roles for part in self.parts]
        if len(roles) == 1:
            return roles[0]
        own = _merged(*(each.own for each in roles))
        if all(robot_function(part) for part in self.parts):
            own = tuple(sorted(own, key=lambda array: input_order(array.name)))
        levels = max(len(each.vectors) for each in roles)
        vectors = [_merged(*(each.vectors[k] for each in roles if k < len(each.vectors))) for k in range(levels)]
        return Inputs(own, tuple(vectors), _merged(*(each.parameters for each in roles)))

    @property
    def outputs(self) -> tuple[Array, ...]:
        return tuple(output for part in self.parts for output in part.outputs)

    @property
    def components(self) -> tuple[Computation, ...]:
        return self.parts

    def values(self, tracing: Tracing) -> Sequence[Values]:
        return [values for part in self.parts for values in tracing.values(part)]

    def trace(self) -> Program:
        return _trace(self, self.rolled, self.base_parameters)

    def each(self, change: Callable[[Computation], Computation]) -> Computation:
        return replace(self, parts=tuple(map(change, self.parts)), rolled=None)

    def with_varied_parameters(self) -> Computation:
        return replace(self, parts=tuple(part.with_varied_parameters() for part in self.parts))


def distinct_weights(parts: Sequence[Computation]) -> tuple[Computation, ...]:
    """Return these parts of one program with weights numbered if several different outputs have the same name."""
    names: dict[tuple[Computation, str], str] = {}

    def renamed(part: Computation) -> Computation:
        if not isinstance(part, Transformation):
            return part
        part = replace(part, of=renamed(part.of))
        if not isinstance(part, Vjp):
            return part
        weights = []
        for output in part.of.outputs:
            key, name = (part.of, output.name), f"w_{output.name}"
            taken = sum(other[1] == output.name for other in names if other != key)
            weights.append(names.setdefault(key, f"{name}_{taken + 1}" if taken else name))
        default = tuple(f"w_{output.name}" for output in part.of.outputs)
        return part if tuple(weights) == default else replace(part, weights=tuple(weights))

    return tuple(map(renamed, parts))


def _check_differentiable(of: Computation, wrt: Sequence[str]) -> None:
    inputs = [array.name for array in of.inputs]
    for name in wrt:
        if not isinstance(name, str) or name not in inputs:
            raise ArgumentError(
                f"{of.name} cannot be differentiated with respect to {shown(name)}{nearest(name, inputs)}, expected "
                f"one of its inputs {', '.join(inputs)}, or of parameters=(...)."
            )
    if len(set(wrt)) < len(wrt):
        raise ArgumentError(f"the product of {of.name} is with respect to {', '.join(wrt)}, expected each input once.")


def _level(of: Computation) -> int:
    """How many products a computation is made by already; at least one if it is a derivative."""
    return max(len(of.roles.vectors), int(is_transformed(of)))


def _with_vectors(of: Computation, arrays: Sequence[Array]) -> Inputs:
    roles, level = of.roles, _level(of)
    before = (*roles.vectors, *((),) * (level - len(roles.vectors)))
    return roles._replace(vectors=(*before, tuple(arrays)))


def _directions(of: Computation, wrt: str, coordinates: bool) -> tuple[int, ...]:
    """Return the axes that a derivative with respect to this input adds."""
    if wrt == "q" and not coordinates:
        return (of.model.nv,)
    return next(array.shape for array in of.inputs if array.name == wrt)


def _merged(*sides: Sequence[Array]) -> tuple[Array, ...]:
    """Return the arrays of all sides, each once, in the order of their first occurrence."""
    found: dict[str, Array] = {}
    for array in (array for side in sides for array in side):
        known = found.setdefault(array.name, array)
        if known.shape != array.shape:
            raise ArgumentError(
                f"the input {array.name} has shape {known.shape} in one function and {array.shape} in another, "
                f"expected one shape: compile them apart."
            )
    return tuple(found.values())


# ---- what a computation is made of


def parts_of(computation: Computation) -> tuple[Computation, ...]:
    """Return the computations whose outputs follow each other in the program of this one."""
    return computation.parts if isinstance(computation, Together) else (computation,)


def is_transformed(computation: Computation) -> bool:
    """Return whether it is a derivative or a product, and not the values of a function."""
    return source(computation) is not computation


def source(computation: Computation) -> Computation:
    """Return the computation that derivatives and products start from."""
    while isinstance(computation, Derivative | Jvp | Vjp):
        computation = computation.of
    return computation


def robot_function(computation: Computation) -> RobotFunction | None:
    """Return the function of a robot that a computation comes from, if it is a single one."""
    found = source(computation)
    while isinstance(found, Parametric | Widened):
        found = source(found.of)
    return found if isinstance(found, RobotFunction) else None


def robot_functions(computation: Computation) -> Iterator[RobotFunction]:
    """Iterate over the functions of a robot that a computation is made of."""
    if isinstance(computation, RobotFunction):
        yield computation
    for component in computation.components:
        yield from robot_functions(component)


def transformations(computation: Computation) -> Iterator[Computation]:
    """Iterate over the derivatives and products on the way to the source, the outermost first."""
    while isinstance(computation, Derivative | Jvp | Vjp):
        yield computation
        computation = computation.of


# ---- tracing


class Tracing:
    """A program that is being traced: its inputs as symbols, and the values of the computations it is made of.

    prepare: makes the model that algorithms see from the one of a computation.
    """

    def __init__(
        self, inputs: Sequence[Array], prepare: Callable[[CanonicalModel], CanonicalModel], is_differentiated: bool
    ):
        self.graph = Graph()
        self.inputs = tuple(inputs)
        self.leaves: Mapping[str, list[Operand]] = {
            array.name: [self.graph.leaf("input", (k, i), array.level) for i in range(array.size)]
            for k, array in enumerate(inputs)
        }
        self.prepare, self.is_differentiated = prepare, is_differentiated
        self.sets: tuple[ParameterSet, ...] = ()
        self._values: dict[Computation, Sequence[Values]] = {}
        self._runs: dict[CanonicalModel, UnrolledRun] = {}
        self._parametric: dict[tuple[ParameterSet, ...], Tracing] = {}

    def values(self, computation: Computation) -> Sequence[Values]:
        """Return the values of a computation, which is traced once."""
        found = self._values.get(computation)
        if found is None:
            found = self._values[computation] = computation.values(self)
        return found

    def run(self, model: CanonicalModel) -> UnrolledRun:
        """Return the run of algorithms of this robot over the inputs."""
        run = self._runs.get(model)
        if run is None:
            described = model
            for parameters in self.sets:
                described = parameters.apply(described, self.leaves[parameters.name])
            run = UnrolledRun(self.prepare(described), self.inputs, list(self.leaves.values()))
            run.differentiated = self.is_differentiated
            self._runs[model] = run
        return run

    def with_parameters(self, sets: tuple[ParameterSet, ...]) -> Tracing:
        """Return the tracing of the same program in which these parameters of the model are inputs."""
        if sets == self.sets:
            return self
        found = self._parametric.get(sets)
        if found is None:
            found = Tracing.__new__(Tracing)
            found.__dict__.update(self.__dict__, sets=sets, _values={}, _runs={}, _parametric={})
            self._parametric[sets] = found
        return found

    def of(self, computation: Computation) -> tuple[UnrolledRun, RobotFunction] | None:
        """Return a function of a robot, which may be parametric, and the run that traces it."""
        tracing = self
        while isinstance(computation, Parametric | Widened):
            if isinstance(computation, Parametric):
                tracing = tracing.with_parameters(computation.sets)
            computation = computation.of
        return (tracing.run(computation.model), computation) if isinstance(computation, RobotFunction) else None


def _trace(computation: Computation, rolled: bool | None, base_parameters: bool | None) -> Program:
    parts, outputs = parts_of(computation), computation.outputs
    functions = list(robot_functions(computation))
    loops = rolled is None and not computation.roles.parameters
    if rolled is None:
        rolled = wants_loops(parts) and not any(map(is_written_out, parts))

    has_derivatives = all(map(robot_function, parts)) and any(
        isinstance(each, Derivative) for part in parts for each in transformations(part)
    )

    def with_base_parameters(model: CanonicalModel) -> CanonicalModel:
        return regroup(model) if base_parameters is not False and may_regroup(functions) else model

    def prepare(model: CanonicalModel) -> CanonicalModel:
        prepared = with_base_parameters(model)
        return with_still_frames(prepared, [each.function for each in functions]) if has_derivatives else prepared

    name = "_".join(each.function if (each := robot_function(part)) else part.name for part in parts)
    groups: dict[Computation, dict[int, Computation]] = {}
    for k, part in enumerate(parts):
        groups.setdefault(source(part), {})[k] = part
    if rolled:
        tracer = Rolled(with_base_parameters(computation.model), computation.inputs)
        for group in groups.values():
            function = robot_function(next(iter(group.values())))
            assert function is not None
            swept = trace_swept(tracer, function, _derivatives(group), rolled=True, loops=False)
            for k, part in group.items():
                if k in swept:
                    continue
                if is_transformed(part):  # loops have the derivatives that sweeps have, and no other
                    raise ArgumentError(f"{part.name} cannot run as a loop over links: omit rolled.")
                function.write(tracer, k)
        return optimise(tracer.program(name, outputs))
    tracing = Tracing(computation.inputs, prepare, any(map(is_transformed, parts)))
    results: dict[int, list[Values]] = {}
    columns = None
    for origin, group in groups.items():
        swept: set[int] = set()
        found = tracing.of(origin)
        if found is not None:
            run, function = found
            run.columns = columns
            swept = trace_swept(run, function, _derivatives(group), rolled=False, loops=loops)
            results |= {k: [run.results.pop(k)] for k in swept}
            columns = run.columns
        results |= {k: list(tracing.values(part)) for k, part in group.items() if k not in swept}
    flat = [values for k in range(len(parts)) for values in results[k]]
    program = unrolled_program(tracing.graph, name, tracing.inputs, outputs, flat, columns)
    limit = computation.quick_above
    return optimise(program, quick=limit is not None and len(tracing.graph.nodes) > limit)


def _derivatives(group: Mapping[int, Computation]) -> dict[int, str | None]:
    """Return what analytical sweeps may compute of a group: the values (None), or the derivative by one input."""
    return {
        k: part.wrt if isinstance(part, Derivative) else None for k, part in group.items()
        if not is_transformed(part) or _is_first_derivative(part)
    }  # fmt: skip


def _is_first_derivative(part: Computation) -> bool:
    return isinstance(part, Derivative) and not part.coordinates and not is_transformed(part.of)


def _flat(outputs: Sequence[Values]) -> tuple[list[Operand], list[int]]:
    return [value for values in outputs for value in values], [len(values) for values in outputs]


def _split(flat: list[Operand], sizes: Sequence[int]) -> list[Values]:
    found, start = [], 0
    for size in sizes:
        found.append(flat[start : start + size])
        start += size
    return found


def _second(computation: Derivative, inner: list[Operand], seeds: Mapping[Node, Tangent], width: int) -> list[Operand]:
    """Differentiate a derivative with respect to the same input once more.

    The order of two derivatives does not matter, except for velocities of one joint.
    """
    along_velocities = computation.wrt == "q" and not computation.coordinates
    joint = _joint_of(computation.model) if along_velocities else list(range(width))
    entries: list[Operand] = [0.0] * (len(inner) * width)
    for i in range(width):
        chosen = [j for j in range(width) if j >= i or joint[j] == joint[i]]
        chosen_seeds = {node: {j: x for j, x in tangent.items() if j in set(chosen)} for node, tangent in seeds.items()}
        part = derivative(inner[i::width], chosen_seeds, width)
        for row in range(len(inner) // width):
            for j in chosen:
                entries[(row * width + i) * width + j] = part[row * width + j]
                if joint[j] != joint[i] or i == j:
                    entries[(row * width + j) * width + i] = part[row * width + j]
    return entries


def _seeds(tracing: Tracing, model: CanonicalModel, wrt: str, coordinates: bool) -> tuple[dict[Node, Tangent], int]:
    """Return the tangents of the nodes that an input moves, and the number of directions."""
    leaves = tracing.leaves[wrt]
    if wrt != "q" or coordinates:
        return {leaf: {i: 1.0} for i, leaf in enumerate(leaves) if isinstance(leaf, Node)}, len(leaves)
    seeds: dict[Node, Tangent] = {}
    for link in model.links:
        for node, slopes in link.type.slopes(leaves[link.coordinates]):
            assert isinstance(node, Node)
            seeds[node] = {link.start + f: slope for f, slope in enumerate(slopes) if slope is not None}
    return seeds, model.nv


def _joint_of(model: CanonicalModel) -> list[int]:
    """Return, for each velocity, the index of its joint."""
    found = [0] * model.nv
    for k, link in enumerate(model.joints):
        for f in range(link.nv):
            found[link.start + f] = k
    return found


# ---- loops over the links, and base parameters


def may_regroup(functions: Sequence[RobotFunction]) -> bool:
    """Return whether base parameters give the same results, and some result depends on inertia."""
    dynamic = [function for function in functions if function.declared.dynamics]
    return bool(dynamic) and all(function.declared_method.linear for function in dynamic)


def regrouped(*functions: RobotFunction) -> CanonicalModel:
    """Return the model by which these are computed by default: with base parameters if they give the same results."""
    model = functions[0].model
    return regroup(model) if may_regroup(functions) else model


def wants_loops(parts: Sequence[Computation]) -> bool:
    """Return whether a program of these is so large that it should run as loops over the links, if its methods can."""
    functions = [robot_function(part) for part in parts]
    if any(function is None for function in functions) or any(part.roles.parameters for part in parts):
        return False
    model = parts[0].model
    if model.is_coupled or any(is_transformed(part) and is_written_out(part) for part in parts):
        return False
    cost = 0.0
    for part, function in zip(parts, functions, strict=True):
        size = sum(output.size for output in part.outputs)
        has_derivative = any(isinstance(each, Derivative) for each in transformations(part))
        cost += predicted_operations(model, function.function if function else "", size, has_derivative)
    return len(model.links) > ROLL_ABOVE or cost > WRITTEN_OUT


def is_written_out(part: Computation) -> bool:
    """Return whether a computation cannot run as a loop over the links."""
    function = robot_function(part)
    if function is None or (function.model.ties and function.function == "inverse_dynamics"):
        return True
    if is_transformed(part):
        wrt = part.wrt if isinstance(part, Derivative) and _is_first_derivative(part) else ""
        return not can_be_rolled(function, wrt)
    method = function.declared_method
    return method.written_out and not (method.few_rows and can_be_swept(function.model))


def _check_options(program: Together) -> None:
    """Raise an ArgumentError for options with which the program cannot be traced."""
    functions = list(robot_functions(program))
    if program.base_parameters and not may_regroup(functions):
        names = ", ".join(f"{each.function} by {each.method!r}" for each in functions)
        declared = (each for each in FUNCTIONS.values() if each.public)
        linear = {name: None for each in declared for name, method in each.methods.items() if method.linear}
        raise ArgumentError(
            f"{names} cannot use base parameters: they serve inverse_dynamics, bias_forces, gravity_forces, "
            f"mass_matrix, coriolis_matrix and forward_dynamics by methods linear in them ({', '.join(linear)}): leave "
            f"base_parameters to None."
        )
    if not program.rolled:
        return
    if program.model.is_coupled:
        raise ArgumentError("robots with mimic joints cannot run as a loop over links: omit rolled.")
    if program.roles.parameters:
        raise ArgumentError("a loop over links cannot take parameters as inputs: omit rolled.")
    for part in program.parts:
        if is_written_out(part):
            function = robot_function(part)
            name = f"{function.function} by {function.method!r}" if function else part.name
            raise ArgumentError(
                f"{name}{', differentiated,' * is_transformed(part)} cannot run as a loop over links: omit rolled."
            )
