"""From items as users write them to checked computations.

An item is the name of a robot function, or a tuple of a name, a frame and a reference; the reference may be omitted. It
may be ("derivative", item, input), ("jvp", item, inputs...) or ("vjp", item, input), where the inner item may be one of
these again. "coordinates" at the end asks for derivatives with respect to the components of q.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import cast

from ..errors import ArgumentError, DescriptionError, SingularError
from ..mechanism.canonical import CanonicalModel
from ..model.model import Model
from ..support.checks import checked_flag
from ..support.messages import listing, nearest, shown
from .computation import (
    Computation,
    Derivative,
    Jvp,
    Parametric,
    RobotFunction,
    Together,
    Transformation,
    Vjp,
    distinct_weights,
    is_transformed,
    robot_function,
    wants_loops,
)
from .declaration import Function, Item, Method
from .defaults import default_method
from .functions import FUNCTIONS
from .parameters import ParameterSet

DERIVATIVE, COORDINATES = "derivative", "coordinates"
PRODUCTS = ("jvp", "vjp")
PUBLIC = tuple(name for name, function in FUNCTIONS.items() if function.public)
CLOSED = tuple(name for name, function in FUNCTIONS.items() if function.closed)  # of robots with constraints, too
# common names of methods: recursive Newton-Euler, articulated-body and composite-rigid-body algorithm
ALIASES = {"rnea": "newton_euler", "aba": "filter_smoother", "crba": "composite"}


@dataclass(frozen=True, eq=False, repr=False)
class RobotModel:
    """A robot model with the names and facts that items are checked against."""

    model: Model
    canonical: CanonicalModel
    joint_names: tuple[str, ...]
    link_names: tuple[str, ...]
    frame_names: tuple[str, ...]
    has_inertia: bool
    singular_joints: tuple[str, ...]

    @property
    def name(self) -> str:
        return self.model.name


def known_function(name: object) -> Function:
    if not isinstance(name, str) or name not in PUBLIC + CLOSED:
        raise ArgumentError(
            f"unknown function {shown(name)}{nearest(name, PUBLIC)}: expected one of {', '.join(PUBLIC[:5])}, ... "
            f"(robot.functions)."
        )
    return FUNCTIONS[name]


def methods_of(robot: RobotModel, function: str) -> tuple[str, ...]:
    """The methods by which this robot can compute a function, the default first."""
    known = known_function(function)
    able = [name for name, method in _methods(robot, known).items() if name and not _hindrance(robot, method)]
    if not able:
        return ()
    default = default_method(function, robot.canonical, wants_loops([RobotFunction(robot.canonical, function)]))
    return (default, *(name for name in able if name != default))


def _methods(robot: RobotModel, function: Function) -> dict[str, Method]:
    """The methods of a function; where a robot has constraints, those that know them, if it matters."""
    if robot.model.constraints and function.closed_methods:
        return function.closed_methods
    return function.methods | function.coupled_methods if robot.model.couplings else function.methods


def _hindrance(robot: RobotModel, method: Method) -> str:
    """Why this robot cannot use a method; nothing if it can."""
    if method.serial and not robot.canonical.is_serial:
        return f"needs a serial chain, but {robot.name} branches"
    if method.single and not robot.canonical.is_single:
        return f"needs 1-DOF joints, but {robot.name} has others"
    if method.filters and robot.model.couplings:
        return f"does not support mimic joints, which {robot.name} has"
    return ""


def computations(
    robot: RobotModel, items: Sequence[Item], method: str | None = None, *, rolled: bool | None = None,
    parameters: Sequence[ParameterSet] = (), internal: bool = False, f_ext: bool = False, dissipation: bool = False,
    base_motion: bool = False,
) -> tuple[Computation, ...]:  # fmt: skip
    """Return the computation of each item of one program, checked.

    method: of the functions that have it; the others choose by default (defaults.py). rolled, parameters: as the
    program will be traced, on which the choice depends. internal: also functions that are not public.
    """
    flags = {"f_ext": f_ext, "dissipation": dissipation, "base_motion": base_motion}
    flags = {name: checked_flag(name, value) for name, value in flags.items()}
    parts = [_parsed(robot, item, internal, flags, tuple(parameters)) for item in items]
    loops = wants_loops(parts) if rolled is None else checked_flag("rolled", rolled)
    functions = [function for part in parts if (function := robot_function(part))]
    together = {function.function for function in functions}
    if method is None and not robot.model.constraints and any(map(_is_derivative_of_forward_dynamics, parts)):
        method = "composite"  # its derivatives need M in any case

    def with_method(part: Computation) -> Computation:
        if isinstance(part, RobotFunction):
            return replace(part, method=_chosen_method(robot, part.function, method, together, loops))
        assert isinstance(part, Transformation)
        return replace(part, of=with_method(part.of))

    return distinct_weights([with_method(part) for part in parts])


def program(
    robot: RobotModel, items: Sequence[Item], method: str | None = None, *, rolled: bool | None = None,
    base_parameters: bool | None = None, parameters: Sequence[ParameterSet] = (), f_ext: bool = False,
    dissipation: bool = False, base_motion: bool = False,
) -> Together:  # fmt: skip
    """Return the computation of all items in one program, checked."""
    parts = computations(
        robot, items, method, rolled=rolled, parameters=parameters, f_ext=f_ext, dissipation=dissipation,
        base_motion=base_motion,
    )  # fmt: skip
    return Together(parts, rolled, base_parameters)


def _is_derivative_of_forward_dynamics(part: Computation) -> bool:
    function = robot_function(part)
    found = function is not None and function.function == "forward_dynamics"
    while found and isinstance(part, Transformation):
        if isinstance(part, Derivative):
            return True
        part = part.of
    return False


def _parsed(
    robot: RobotModel, item: object, internal: bool, flags: dict[str, bool], parameters: tuple[ParameterSet, ...]
) -> Computation:
    """Return the computation of an item, its method still to be chosen."""
    if isinstance(item, tuple) and item and isinstance(item[0], str) and item[0] in (DERIVATIVE, *PRODUCTS):
        return _differentiated(robot, item, internal, flags, parameters)
    function_name, *further = item if isinstance(item, tuple) and item else (item,)
    if not internal:
        known_function(function_name)
    name = cast(str, function_name)
    function = FUNCTIONS[name]
    if function.closed and not robot.model.constraints:
        raise ArgumentError(f"{name}: {robot.name} has no constraints between frames: see with_constraints.")
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
    taken = {key: value and key in function.takes for key, value in flags.items()}
    part = RobotFunction(robot.canonical, name, "", frame, reference, **taken)
    return Parametric(part, parameters) if parameters else part


def _differentiated(
    robot: RobotModel, item: tuple[object, ...], internal: bool, flags: dict[str, bool],
    parameters: tuple[ParameterSet, ...],
) -> Computation:  # fmt: skip
    """Return the computation of ("derivative", item, input), ("jvp", item, inputs...) or ("vjp", item, input)."""
    kind, *rest = item
    coordinates = len(rest) > 2 and rest[-1] == COORDINATES
    wrt = tuple(rest[1:-1] if coordinates else rest[1:])
    if kind == DERIVATIVE and len(wrt) != 1:
        if len(wrt) == 2:
            raise ArgumentError(
                f"the derivative {shown(item)} ends in {shown(wrt[1])}, expected {COORDINATES!r} or nothing there."
            )
        raise ArgumentError(
            f"a derivative is {shown(item)}, expected ('derivative', function, input), such as ('derivative', "
            f"'inverse_dynamics', 'q')."
        )
    if not wrt or (kind == "vjp" and len(wrt) > 1):
        raise ArgumentError(
            f"a product with derivatives is {shown(item)}, expected ('vjp', function, input), each input in a request "
            f"of its own, or ('jvp', function, input, ...)."
        )
    of = _parsed(robot, rest[0], internal, flags, parameters)
    if is_transformed(of) and coordinates != getattr(of, COORDINATES):
        raise ArgumentError(
            f"the derivative {shown(item)} has 'coordinates' in one place only, expected in all or none."
        )
    names = cast(tuple[str, ...], wrt)  # checked by the transformation
    if kind == DERIVATIVE:
        return Derivative(of, names[0], coordinates)
    return Jvp(of, names, coordinates) if kind == "jvp" else Vjp(of, names, coordinates)


def _chosen_method(robot: RobotModel, name: str, method: object, together: Collection[str], loops: bool) -> str:
    """The function's method; `together` are the functions of the same program, some of which the name may be for."""
    function = FUNCTIONS[name]
    able = methods_of(robot, name) if function.public else tuple(function.methods)
    common = {alias: full for alias, full in ALIASES.items() if full in able}
    also = f" (also {', '.join(f'{alias} = {full}' for alias, full in common.items())})" if common else ""
    expected = f"expected one of {', '.join(able)}{also}" if able else "there is only one method: omit method="
    if not able and (reason := _hindrance(robot, next(iter(function.methods.values())))):
        raise ArgumentError(f"{name} {reason}; no method supports this.")
    if method is not None:
        if not isinstance(method, str):
            raise ArgumentError(f"{name}: method is {shown(method)}, {expected}.")
        full_name = ALIASES.get(method, method)
        if full_name in able:
            return full_name
        if method and full_name in function.methods:
            reason = (
                _hindrance(robot, function.methods[full_name]) or f"knows no constraints, and {robot.name} has some"
            )
            raise ArgumentError(f"{name}: method {method!r} {reason}: use one of {', '.join(able)}.")
        if not method or not any(full_name in FUNCTIONS[other].methods for other in together):
            raise ArgumentError(f"{name} has no method {shown(method)}{nearest(method, (*able, *common))}: {expected}.")
    return default_method(name, robot.canonical, loops) if function.public else able[0]


def _chosen_reference(name: str, function: Function, further: list[object]) -> str:
    if further and not function.references:
        takes = "nothing besides its frame" if function.needs_frame else "no frame"
        raise ArgumentError(f"{name} takes {takes}, got {shown(further[0])}.")
    if not further:
        return function.references[0] if function.references else ""
    reference = further[0]
    if len(further) > 1 or not isinstance(reference, str) or reference not in function.references:
        raise ArgumentError(
            f"{name} cannot be expressed in {shown(further[-1])}{nearest(further[-1], function.references)}: "
            f"expected one of {', '.join(function.references)}."
        )
    return reference


def _checked_frames(robot: RobotModel, name: str, frames: object, several: bool) -> str | tuple[str, ...]:
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


def _checked_frame(robot: RobotModel, name: str, frame: object) -> str:
    known = robot.frame_names
    if not isinstance(frame, str) or frame not in known:
        first = ", ".join(known[:8]) + (", ..." if len(known) > 8 else "")
        raise ArgumentError(
            f"{name}: {robot.name} has no frame {shown(frame)}{nearest(frame, known)}: expected one of {first} "
            f"(robot.frame_names)."
        )
    return frame


def _check_dynamics(robot: RobotModel, name: str, function: Function) -> None:
    if not robot.has_inertia:
        raise DescriptionError(
            f"{name}: {robot.name} has no mass or inertia at all, so only kinematics can be computed."
        )
    if function.invertible and robot.singular_joints:
        raise SingularError(
            f"{name}: no inertia moves with joint {listing(robot.singular_joints, quoted=False)} of {robot.name}, so "
            f"its acceleration is not determined: give the link beyond it an inertia, or the joint an armature."
        )
