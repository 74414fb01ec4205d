"""From what a user asks for to a checked Request: the function, its method, its frame, and whether this robot can."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Protocol, cast

from ..errors import ArgumentError, DescriptionError, SingularError
from ..support.messages import listing, nearest, shown
from ..support.numbers import checked_flag
from .defaults import default_method
from .functions import FUNCTIONS, Function, Method, Request, signature, wants_loops
from .table import Item

if TYPE_CHECKING:
    from ..description.model import Model
    from ..mechanism.canonical import CanonicalModel
    from .parameters import ParameterSet


DERIVATIVE, COORDINATES = "derivative", "coordinates"
PRODUCTS = ("jvp", "vjp")
PUBLIC = tuple(name for name, function in FUNCTIONS.items() if function.public)
CLOSED = tuple(name for name, function in FUNCTIONS.items() if function.closed)  # with constraints, these too


class Described(Protocol):
    """Of whom something is asked: a Robot, or its core."""

    @property
    def name(self) -> str: ...
    @property
    def model(self) -> Model: ...
    @property
    def canonical(self) -> CanonicalModel: ...
    @property
    def frame_names(self) -> tuple[str, ...]: ...
    @property
    def link_names(self) -> tuple[str, ...]: ...
    @property
    def has_inertia(self) -> bool: ...
    @property
    def singular_joints(self) -> tuple[str, ...]: ...


def known_function(name: object) -> Function:
    if not isinstance(name, str) or name not in PUBLIC + CLOSED:
        raise ArgumentError(
            f"there is no function {shown(name)}{nearest(name, PUBLIC)}: expected one of {', '.join(PUBLIC[:5])}, ... "
            f"(robot.functions)."
        )
    return FUNCTIONS[name]


def methods_of(robot: Described, function: str) -> tuple[str, ...]:
    """The methods by which this robot can compute a function, the default first."""
    known = known_function(function)
    able = [name for name, method in _methods(robot, known).items() if name and not _hindrance(robot, method)]
    if not able:
        return ()
    default = default_method(function, robot.canonical, wants_loops(robot.canonical, [Request(function)]))
    return (default, *(name for name in able if name != default))


def _methods(robot: Described, function: Function) -> dict[str, Method]:
    """The methods of a function; where a robot has constraints, those that know them, if it matters."""
    if robot.model.constraints and function.closed_methods:
        return function.closed_methods
    return function.methods | function.coupled_methods if robot.model.couplings else function.methods


def _hindrance(robot: Described, method: Method) -> str:
    """Why this robot cannot use a method; nothing if it can."""
    if method.serial and not robot.canonical.is_serial:
        return f"needs a serial chain, but {robot.name} branches"
    if method.single and not robot.canonical.is_single:
        return f"needs 1-DOF joints, but {robot.name} has others"
    if method.filters and robot.model.couplings:
        return f"takes one joint after the other, but joints of {robot.name} follow others"
    return ""


def make_request(robot: Described, item: Item, method: str | None, *, dissipation: bool = False) -> Request:
    """One function with its options, checked; arguments as of `make_requests`."""
    return make_requests(robot, [item], method, dissipation=dissipation)[0]


def make_requests(
    robot: Described, items: Sequence[Item], method: str | None, *, rolled: bool | None = None,
    parameters: Sequence[ParameterSet] = (), internal: bool = False, **options: bool,
) -> tuple[Request, ...]:  # fmt: skip
    """Functions of one program with their options, checked.

    An item is a name, or a tuple of a name, a frame and a reference, without those that the function does not have; the
    reference may be left out; or ("derivative", item, input), ("jvp", item, inputs...) or ("vjp", item, input). method:
    of those functions that have it, the others take their own; None leaves it to defaults.py. rolled, parameters: as
    the program will be traced, on which the choice depends.
    """
    requests = [_without_method(robot, item, internal, options, parameters) for item in items]
    loops = wants_loops(robot.canonical, requests, parameters) if rolled is None else checked_flag("rolled", rolled)
    together = {request.function for request in requests}
    slopes = any(request.by and request.function == "forward_dynamics" for request in requests)
    if method is None and slopes and not robot.model.constraints:
        method = "composite"  # its derivatives need M in any case
    return tuple(
        replace(request, method=_chosen_method(robot, request.function, method, together, loops))
        for request in requests
    )


def _without_method(
    robot: Described, item: object, internal: bool, options: dict[str, bool], parameters: Sequence[ParameterSet] = ()
) -> Request:
    if isinstance(item, tuple) and item and item[0] == DERIVATIVE:
        return _derivative(robot, item, internal, options, parameters)
    if isinstance(item, tuple) and item and isinstance(item[0], str) and item[0] in PRODUCTS:
        return _product(robot, item, internal, options, parameters)
    asked, *further = item if isinstance(item, tuple) and item else (item,)
    if not internal:
        known_function(asked)
    name = cast(str, asked)
    function = FUNCTIONS[name]
    if function.closed and not robot.model.constraints:
        raise ArgumentError(f"{name}: {robot.name} has no constraints between frames: give it some, with_constraints.")
    frame: str | tuple[str, ...] = ""
    if function.needs_frame:
        if not further:
            known = robot.frame_names
            raise ArgumentError(
                f"{name} needs a frame, got {name!r} alone, expected ({name!r}, {known[-1]!r}), also inside of a "
                f"derivative: frames are {listing(known)} (robot.frame_names)."
            )
        frame = _checked_frames(robot, name, further.pop(0), function.several)
    reference = _chosen_reference(name, function, further)
    if function.dynamics:
        _check_dynamics(robot, name, function)
    taken = {key: checked_flag(key, value) and key in function.takes for key, value in options.items()}
    return replace(Request(name, "", frame, reference), **taken)


def _derivative(
    robot: Described,
    item: tuple[object, ...],
    internal: bool,
    options: dict[str, bool],
    parameters: Sequence[ParameterSet],
) -> Request:
    """("derivative", of, by), by one of the inputs of any item; with "coordinates" behind, by the numbers of q."""
    if len(item) not in (3, 4):
        raise ArgumentError(
            f"a derivative is {shown(item)}, expected ('derivative', function, input), such as ('derivative', "
            f"'inverse_dynamics', 'q')."
        )
    of = _without_method(robot, item[1], internal, options, parameters)
    if len(item) == 4 and item[3] != COORDINATES:
        raise ArgumentError(
            f"the derivative of {of.function} ends in {shown(item[3])}, expected {COORDINATES!r} or nothing there."
        )
    by = _checked_inputs(robot, of, item[2:3], parameters)
    return of.differentiated(by, coordinates=_checked_coordinates(item, of, len(item) == 4))


def _checked_coordinates(item: object, of: Request, coordinates: bool) -> bool:
    """Whether derivatives are with respect to the components of q: alike in all parts of an item."""
    if of.slope and coordinates != of.coordinates:
        raise ArgumentError(
            f"the derivative {shown(item)} is by coordinates in one place only, expected in all or none."
        )
    return coordinates


def _product(
    robot: Described,
    item: tuple[object, ...],
    internal: bool,
    options: dict[str, bool],
    parameters: Sequence[ParameterSet],
) -> Request:
    """("jvp", of, inputs...) or ("vjp", of, input); with "coordinates" behind, by the numbers of q.

    A jvp may be of a derivative or a product, once.
    """
    kind, *rest = item
    moved = tuple(rest[1:-1] if rest and rest[-1] == COORDINATES else rest[1:])
    if not moved or (kind == "vjp" and len(moved) > 1):
        raise ArgumentError(
            f"a product with derivatives is {shown(item)}, expected ('vjp', function, input), each input in a request "
            f"of its own, or ('jvp', function, input, ...)."
        )
    of = _without_method(robot, rest[0], internal, options, parameters)
    if of.along or (of.slope and kind == "vjp"):
        raise ArgumentError(
            f"the {kind} is of {shown(rest[0], 120)}, expected a plain function, or for a jvp also one derivative or "
            f"product of it: ('jvp', ('vjp', function, input), inputs...) is a Hessian times a vector."
        )
    inputs = _checked_inputs(robot, of, moved, parameters)
    if len(set(inputs)) < len(inputs):
        raise ArgumentError(f"the jvp of {of.function} is by {', '.join(inputs)}, expected each input once.")
    coordinates = _checked_coordinates(item, of, rest[-1] == COORDINATES)
    if of.slope:
        return replace(of, along=inputs, coordinates=coordinates)
    return replace(of, product=str(kind), moved=inputs, coordinates=coordinates)


def _checked_inputs(
    robot: Described, of: Request, wanted: Sequence[object], parameters: Sequence[ParameterSet]
) -> tuple[str, ...]:
    found: list[str] = []
    inputs = [array.name for array in signature(robot.canonical, [of], parameters)[0]]
    for name in wanted:
        if not isinstance(name, str) or name not in inputs:
            raise ArgumentError(
                f"{of.function} cannot be differentiated by {shown(name)}{nearest(name, inputs)}, expected one of "
                f"its inputs {', '.join(inputs)}, or of parameters=(...)."
            )
        found.append(name)
    return tuple(found)


def _chosen_method(robot: Described, name: str, method: object, together: Collection[str], loops: bool) -> str:
    """The function's method; `together` are the functions of the same program, some of which the name may be for."""
    function = FUNCTIONS[name]
    able = methods_of(robot, name) if function.public else tuple(function.methods)
    expected = f"expected one of {', '.join(able)}" if able else "there is only one way: leave method out"
    if not able and (reason := _hindrance(robot, next(iter(function.methods.values())))):
        raise ArgumentError(f"{name} {reason}: there is no method for such a robot.")
    if method is not None:
        if not isinstance(method, str):
            raise ArgumentError(f"{name}: method is {shown(method)}, {expected}.")
        if method in able:
            return method
        if method and method in function.methods:
            reason = _hindrance(robot, function.methods[method]) or f"knows no constraints, and {robot.name} has some"
            raise ArgumentError(f"{name}: method {method!r} {reason}: use one of {', '.join(able)}.")
        if not method or not any(method in FUNCTIONS[other].methods for other in together):
            raise ArgumentError(f"{name} has no method {shown(method)}{nearest(method, able)}: {expected}.")
    return default_method(name, robot.canonical, loops) if function.public else able[0]


def _chosen_reference(name: str, function: Function, further: list[object]) -> str:
    if further and not function.references:
        takes = "nothing besides its frame" if function.needs_frame else "no frame"
        raise ArgumentError(f"{name} takes {takes}, got {shown(further[0])}: ask for it by its name alone.")
    if not further:
        return function.references[0] if function.references else ""
    wanted = further[0]
    if len(further) > 1 or not isinstance(wanted, str) or wanted not in function.references:
        raise ArgumentError(
            f"{name} cannot be seen from {shown(further[-1])}{nearest(further[-1], function.references)}: expected one "
            f"of {', '.join(function.references)}."
        )
    return wanted


def _checked_frames(robot: Described, name: str, frames: object, several: bool) -> str | tuple[str, ...]:
    """One frame, or several as a tuple, each once."""
    if not several or not isinstance(frames, (list, tuple)):
        return _checked_frame(robot, name, frames)
    for index, frame in enumerate(frames):
        _checked_frame(robot, name, frame)
        if frame in frames[:index]:
            raise ArgumentError(f"{name}: the frame {shown(frame)} is named twice, expected each frame once.")
    if not frames:
        raise ArgumentError(f"{name}: no frame is named, expected at least one of robot.frame_names.")
    return tuple(frames)


def _checked_frame(robot: Described, name: str, frame: object) -> str:
    known = robot.frame_names
    if not isinstance(frame, str) or frame not in known:
        first = ", ".join(known[:8]) + (", ..." if len(known) > 8 else "")
        raise ArgumentError(
            f"{name}: {robot.name} has no frame {shown(frame)}{nearest(frame, known)}: expected one of {first} "
            f"(robot.frame_names)."
        )
    return frame


def _check_dynamics(robot: Described, name: str, function: Function) -> None:
    if not robot.has_inertia:
        raise DescriptionError(
            f"{name}: {robot.name} has no mass or inertia at all, expected some in its description; only pose "
            f"and jacobian can be computed."
        )
    if function.invertible and robot.singular_joints:
        raise SingularError(
            f"{name}: no inertia moves with joint {listing(robot.singular_joints, quoted=False)} of {robot.name}, so "
            f"its acceleration is not determined: give the link beyond it an inertia, or the joint an armature."
        )
