"""Singular configurations, in which accelerations are undetermined: detection and warnings.

A joint is singular if its articulated inertia D(k) is at most `threshold` times the inertia that it carries
(algorithms/mass_matrix/inertia_ratio.py). Rounding gives D(k) a relative error of about eps / ratio: at eps^(2/3) a
third of the digits is left. Most robots cannot come near, because D(k) is at least the link's own inertia about its
joint. If the model proves this, nothing is computed. For other robots, a call also computes one number per
configuration (`closeness`), and examines the joints only where it is large. It is a separate function, since a further
output of the same program would change the rounding of the result.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from ..algorithms.mass_matrix.inertia_ratio import half_trace
from ..errors import SingularWarning, warn_user
from ..functions.compiled import CompiledFunction, compiled, entry_before
from ..functions.computation import Computation, RobotFunction, Together, internal_function
from ..mechanism.coordinates import neutral, random
from ..mechanism.joints import JointInertia
from ..mechanism.sweeps import Unrolled
from ..model.model import BASE, Joint, Model
from ..support.lazy import lazy
from ..tracing.expression import number
from .constraints import FEW, SOLVED, WatchedConstraints, interpreted, warn_if_constraints_singular

if TYPE_CHECKING:
    from ..mechanism.canonical import CanonicalLink, CanonicalModel
    from .core import Core

SLIDE = 10.0  # m: assumed travel of a prismatic joint without limits


@functools.cache
def threshold(dtype: str = "float64") -> float:
    """Return the largest ratio of a singular joint: 3.7e-11 in float64, 2.4e-5 in float32."""
    return float(np.finfo(dtype).eps) ** (2.0 / 3.0)


def singular_joints(model: CanonicalModel, described: Model, names: Sequence[str]) -> tuple[str, ...]:
    """Return the joints that move no inertia in any configuration."""
    if all(_moves_own_inertia(link) for link in model.links):
        return ()  # D(k) >= H M(k) H^T + armature > 0 for every joint
    q = np.stack([neutral(model) + 0.0, random(model, described, np.random.default_rng(0))])
    inertia = Together((internal_function(model, "joint_inertia"),))
    pivots = compiled(inertia, "float64", 1, "interpreter")(q)
    scale = max(max(link.mass, *link.I[:3]) for link in model.links)
    zero = ~(np.abs(pivots) > 1e-13 * scale).any(axis=0)  # one of the configurations may be singular, with NaN
    return tuple(name for name, link in zip(names, model.joints, strict=True) if zero[link.rates].any())


def singular(core: Core, q: ArrayLike) -> np.ndarray:
    """Return which joints (..., joints) are singular at q."""
    ratio = inertia_ratio(core, q)
    return ratio <= threshold(ratio.dtype.name)


def inertia_ratio(core: Core, q: ArrayLike) -> np.ndarray:
    """Return the smallest ratio (..., joints) of each joint."""
    per_dof = core.function(core.internal("inertia_ratio"))(q)
    links = core.canonical.joints
    if len(links) == per_dof.shape[-1]:
        return per_dof
    parts = (per_dof[..., link.rates] for link in links)
    return np.stack([np.fmin.reduce(part, axis=-1) for part in parts], axis=-1)


def watched(core: Core, computation: Computation) -> Callable[..., np.ndarray]:
    """Return the function of a computation; it warns about singular configurations if the robot can have any."""
    if not isinstance(computation, RobotFunction):
        return core.function(computation)
    if core.model.constraints and computation.function in SOLVED:
        return WatchedConstraints(core, computation)
    if not computation.declared.invertible or core.least_ratio > threshold("float32"):
        return core.function(computation)
    function = core.function(computation)
    fallback = Watched(core, computation, function)
    # a robot that is never singular in float64 goes to machine code without being watched
    return entry_before(function, fallback) if core.least_ratio > threshold() else fallback


def warn_if_singular(
    core: Core, what: str, q: ArrayLike, where: Callable[[tuple[int, ...]], str] | None = None
) -> bool:
    """Issue one warning if any of the configurations q (..., nq) is singular; return whether it did.

    where: returns a description of a sample from its index.
    """
    if core.model.constraints:
        few, name = np.size(q) <= FEW * core.nq, "constraint_redundancy"
        redundancy = interpreted(core)(name, q) if few else core.call(name, (q,))
        if warn_if_constraints_singular(core, what, q, redundancy, where):
            return True
    if core.least_ratio > threshold("float32" if getattr(q, "dtype", None) == np.float32 else "float64"):
        return False
    ratio = inertia_ratio(core, q)
    least = threshold(ratio.dtype.name)
    samples = np.argwhere((ratio <= least).any(axis=-1))
    if not len(samples):
        return False
    first = tuple(samples[0].tolist())
    joints = [name for name, r in zip(core.joint_names, ratio[first], strict=True) if r <= least]
    sample = where(first) if where else f"in sample {first[0] if len(first) == 1 else first}"
    others = f" (and in {len(samples) - 1} more)" if len(samples) > 1 else ""
    warn_user(
        f"{what}: joint {', '.join(joints)} of {core.name} is singular{f' {sample}' if first else ''}{others}: "
        f"its effective inertia is {np.fmin.reduce(ratio[first]):.1e} of the inertia it carries, expected more than "
        f"{least:.1e}, so its acceleration is undetermined. robot.singular(q) finds such configurations; an armature "
        f"avoids them.",
        SingularWarning,
    )
    return True


class Watched:
    """A function of q and other inputs, with one warning for each call with a singular configuration."""

    def __init__(self, core: Core, computation: RobotFunction, function: CompiledFunction):
        self.core, self.name, self.function = core, computation.function, function
        self.axes = len(computation.declared.axes)
        names = [name for name in ("float64", "float32") if core.least_ratio <= threshold(name)]
        # largest closeness without a singular joint; a robot may be regular in float64 and singular in float32
        self.limits = {np.dtype(name): threshold(name) ** -2 for name in names}

    @lazy
    def _closeness(self) -> CompiledFunction:
        return self.core.function(self.core.internal("closeness"))

    def __call__(self, *args: ArrayLike, out: np.ndarray | None = None) -> np.ndarray:
        result = self.function(*args) if out is None else self.function(*args, out=out)
        limit = self.limits.get(result.dtype)
        if limit is None:
            return result
        q = args[0]
        closeness = self._closeness(q if getattr(q, "dtype", None) is result.dtype else np.asarray(q, result.dtype))
        far = closeness.item() < limit if closeness.ndim == 0 else closeness.size == 0 or closeness.max() < limit
        if not far:  # NaN is checked, too
            poses = np.broadcast_to(q, (*result.shape[: result.ndim - self.axes], np.shape(q)[-1]))
            warn_if_singular(self.core, self.name, poses.astype(result.dtype))
        return result


def least_ratio(model: CanonicalModel, neutral: np.ndarray, slides: Sequence[float]) -> float:
    """Return a lower bound of all ratios in any configuration, if no joint travels farther than `slides` (m).

    The pivots of D(k) are at least those of the link's own H M(k) H^T + R, because outer links add nothing negative.
    The carried inertia is at most that of all outer links at full stretch. Mimic joints count together with their
    leader: the links whose inner joints are all eliminated later move by H alone.
    """
    least = math.inf
    outer = [(0.0, 0.0)] * len(model.links)  # rotational inertia and mass of the outer links
    views = Unrolled(model, neutral.tolist()).links
    alone = _moved_alone(model) if model.is_coupled else None
    shared: dict[int, tuple[float, float]] = {}  # by velocity index: sums of pivots and sizes of coupled joints
    for index in reversed(range(len(views))):
        link, view = model.links[index], views[index]
        turning, mass = outer[index][0] + number(half_trace(view.M.I)), outer[index][1] + link.mass
        _, pivots = JointInertia(view.H_T, view.M @ view.H_T, link.armature).factor()
        for pivot, h in zip(pivots, view.H_T.columns, strict=True):
            size = number(h.angular.dot(h.angular) * turning + h.linear.dot(h.linear) * mass + link.armature)
            smallest = number(pivot)
            if not (smallest >= 0.0 and turning >= 0.0 and mass >= 0.0):  # unphysical inertias prove nothing
                return 0.0
            if alone is None or link.nv > 1:
                least = min(least, smallest / size if size > 0.0 else 0.0)
            else:
                moved, whole = shared.get(link.start, (0.0, 0.0))
                smallest = smallest if alone[index] else float(link.armature)
                shared[link.start] = moved + smallest, whole + size
        if link.parent != BASE:
            distance = math.hypot(*map(number, view.X.origin())) + slides[index]
            stretched = (math.sqrt(turning) + distance * math.sqrt(mass)) ** 2
            outer[link.parent] = outer[link.parent][0] + stretched, outer[link.parent][1] + mass
    return min([least, *(moved / whole if whole > 0.0 else 0.0 for moved, whole in shared.values())])


def _moved_alone(model: CanonicalModel) -> list[bool]:
    """Return for each link whether the velocities of all inner joints come before its own, and are 0 at its pivot."""
    order = {link.start: index for index, link in enumerate(model.links) if link.leads}
    last: list[int] = []  # for each link: the last velocity index that moves it
    alone = []
    for link in model.links:
        inner = -1 if link.parent == BASE else last[link.parent]
        alone.append(inner < order[link.start])
        last.append(max(inner, order[link.start]))
    return alone


def slide_of(joint: Joint) -> float:
    """Return the travel of a joint (m)."""
    travel = joint.type.travel(float(joint.limits.lower), float(joint.limits.upper), joint.pitch)
    return travel if travel < math.inf else SLIDE


def _moves_own_inertia(link: CanonicalLink) -> bool:
    """Return whether the link's own inertia makes the acceleration of its joint determined."""
    if link.armature > 0:
        return True
    turns, slides = link.I[2] > 0, link.mass > 0
    if link.nv == 1:
        return turns if link.type.turns else slides
    return slides and bool(np.linalg.eigvalsh(_matrix(link.I_com))[0] > 0)


def _matrix(six: Sequence[float]) -> np.ndarray:
    xx, yy, zz, xy, xz, yz = six
    return np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])
