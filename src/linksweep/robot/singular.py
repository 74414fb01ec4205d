"""Poses in which accelerations are not determined: how they are judged, and who is told.

A joint is singular where its inertia D(k) is at most `threshold` times the inertia that is there to be moved
(algorithms/inertia_ratio.py). Rounding makes D(k) wrong by about eps / ratio of its value: at eps^(2/3) a third of the
digits is left. Most robots have no pose that comes near, because each link has some inertia of its own about its joint,
and D(k) is at least that: where the description proves it, nothing is computed. For the others a call computes, beside
its result, one number for each pose (`closeness`), and only where that is large the joints are looked at. It is a
function of its own: as a further output of the same program it would change the rounding of the result.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from ..algorithms.mass_matrix.inertia_ratio import half_trace
from ..catalogue.functions import FUNCTIONS, Request
from ..compiled.function import CompiledFunction, Recipe, chosen_backend, make_function
from ..description.model import BASE, Joint, Model
from ..errors import SingularWarning, warn_user
from ..mechanism.coordinates import neutral, random
from ..mechanism.joints import JointInertia
from ..mechanism.sweeps import Unrolled
from ..support.lazy import lazy
from ..tracing.expression import number
from .constraints import FEW, SOLVED, WatchedConstraints, interpreted, warn_if_constraints_singular

if TYPE_CHECKING:
    from ..mechanism.canonical import CanonicalLink, CanonicalModel
    from .core import Core

SLIDE = 10.0  # metres: as far as a joint without limits is taken to slide its link
RATIO, CLOSENESS = Request("inertia_ratio"), Request("closeness")


@functools.cache
def threshold(dtype: str = "float64") -> float:
    """The ratio at which a joint is singular, and below: 3.7e-11 in float64, 2.4e-5 in float32."""
    return float(np.finfo(dtype).eps) ** (2.0 / 3.0)


def singular_joints(model: CanonicalModel, described: Model, names: Sequence[str]) -> tuple[str, ...]:
    """Joints that move no inertia at all, in any pose: their acceleration is not determined."""
    if all(_moves_own_inertia(link) for link in model.links):
        return ()  # D(k) >= H M(k) H^T + armature > 0 for every joint
    q = np.stack([neutral(model) + 0.0, random(model, described, np.random.default_rng(0))])
    request = Request("joint_inertia", "factorization")
    pivots = CompiledFunction(Recipe(model, (request,)), "float64", 1, "interpreter")(q)
    scale = max(max(link.mass, *link.I[:3]) for link in model.links)
    zero = ~(np.abs(pivots) > 1e-13 * scale).any(axis=0)  # one pose may be singular, and then holds NaN
    return tuple(name for name, link in zip(names, model.joints, strict=True) if zero[link.rates].any())


def singular(core: Core, q: ArrayLike) -> np.ndarray:
    """Which joints are singular in the poses q: booleans (..., joints)."""
    ratio = inertia_ratio(core, q)
    return ratio <= threshold(ratio.dtype.name)


def inertia_ratio(core: Core, q: ArrayLike) -> np.ndarray:
    """The smallest ratio of each joint, (..., joints)."""
    by_rate = core.function((RATIO,))(q)
    links = core.canonical.joints
    if len(links) == by_rate.shape[-1]:
        return by_rate
    parts = (by_rate[..., link.rates] for link in links)
    return np.stack([np.fmin.reduce(part, axis=-1) for part in parts], axis=-1)


def watched(core: Core, request: Request) -> Callable[..., np.ndarray]:
    """The function of a request, which warns where a pose is singular if there can be one."""
    if core.model.constraints and request.function in SOLVED:
        return WatchedConstraints(core, request)
    if not FUNCTIONS[request.function].invertible or core.least_ratio > threshold("float32"):
        return core.function((request,))
    if core.least_ratio > threshold():
        behind = functools.partial(Watched, core, request)  # of what the fast entry for float64 does not take
        return make_function(Recipe(core.canonical, (request,)), None, 1, chosen_backend(None), behind)
    return Watched(core, request, core.function((request,)))


def warn_if_singular(
    core: Core, what: str, q: ArrayLike, where: Callable[[tuple[int, ...]], str] | None = None
) -> bool:
    """One warning about the poses q (..., nq) if any is singular; where: says by its index which one."""
    if core.model.constraints:
        few, name = np.size(q) <= FEW * core.nq, "constraint_redundancy"
        redundancy = interpreted(core)(name, q) if few else core.call(name, (q,))
        if warn_if_constraints_singular(core, what, q, redundancy, where):
            return True
    if core.least_ratio > threshold("float32" if getattr(q, "dtype", None) == np.float32 else "float64"):
        return False
    ratio = inertia_ratio(core, q)
    least = threshold(ratio.dtype.name)
    found = np.argwhere((ratio <= least).any(axis=-1))
    if not len(found):
        return False
    first = tuple(found[0].tolist())
    joints = [name for name, r in zip(core.joint_names, ratio[first], strict=True) if r <= least]
    sample = where(first) if where else f"in sample {first[0] if len(first) == 1 else first}"
    others = f" (and in {len(found) - 1} more)" if len(found) > 1 else ""
    warn_user(
        f"{what}: joint {', '.join(joints)} of {core.name} is singular{f' {sample}' if first else ''}{others}: "
        f"its effective inertia is {np.fmin.reduce(ratio[first]):.1e} of the inertia it carries, expected more than "
        f"{least:.1e}, so its acceleration is not determined: leave such poses out (robot.singular), or give it an "
        f"armature.",
        SingularWarning,
    )
    return True


class Watched:
    """A function of q and more, with one warning for each call that meets a singular pose."""

    def __init__(self, core: Core, request: Request, function: CompiledFunction):
        self.core, self.request, self.function = core, request, function
        self.axes = len(FUNCTIONS[request.function].axes)
        names = [name for name in ("float64", "float32") if core.least_ratio <= threshold(name)]
        # the closeness below which no joint is singular; a robot may be safe in float64 and not in float32
        self.limits = {np.dtype(name): threshold(name) ** -2 for name in names}

    @lazy
    def _closeness(self) -> CompiledFunction:
        return self.core.function((CLOSENESS,))

    def __call__(self, *args: ArrayLike, out: np.ndarray | None = None) -> np.ndarray:
        result = self.function(*args) if out is None else self.function(*args, out=out)
        limit = self.limits.get(result.dtype)
        if limit is None:
            return result
        q = args[0]
        closeness = self._closeness(q if getattr(q, "dtype", None) is result.dtype else np.asarray(q, result.dtype))
        far = closeness.item() < limit if closeness.ndim == 0 else closeness.size == 0 or closeness.max() < limit
        if not far:  # NaN is not far either, and not singular
            poses = np.broadcast_to(q, (*result.shape[: result.ndim - self.axes], np.shape(q)[-1]))
            warn_if_singular(self.core, self.request.function, poses.astype(result.dtype))
        return result


def least_ratio(model: CanonicalModel, neutral: np.ndarray, slides: Sequence[float]) -> float:
    """A bound that no ratio falls below in any pose, if no joint slides its link farther than `slides` says.

    The pivots of D(k) are at least those of the link's own H M(k) H^T + R, because outer links add nothing negative.
    The inertia that is there to be moved is at most that of all outer links at full stretch. Joints that share a rate
    (mimic joints) count together: the links whose inner joints are all eliminated later move by H alone.
    """
    least = math.inf
    outer = [(0.0, 0.0)] * len(model.links)  # rotational inertia and mass of the outer links
    views = Unrolled(model, neutral.tolist()).links
    alone = _moved_alone(model) if model.is_coupled else None
    shared: dict[int, tuple[float, float]] = {}  # by rate: the sums of pivots and sizes of coupled joints
    for index in reversed(range(len(views))):
        link, view = model.links[index], views[index]
        turning, mass = outer[index][0] + number(half_trace(view.M.I)), outer[index][1] + link.mass
        _, pivots = JointInertia(view.H_T, view.M @ view.H_T, link.armature).factor()
        for pivot, h in zip(pivots, view.H_T.columns, strict=True):
            size = number(h.angular.dot(h.angular) * turning + h.linear.dot(h.linear) * mass + link.armature)
            own = number(pivot)
            if not (own >= 0.0 and turning >= 0.0 and mass >= 0.0):  # doubtful numbers prove nothing
                return 0.0
            if alone is None or link.nv > 1:
                least = min(least, own / size if size > 0.0 else 0.0)
            else:
                moved, whole = shared.get(link.start, (0.0, 0.0))
                own = own if alone[index] else float(link.armature)
                shared[link.start] = moved + own, whole + size
        if link.parent != BASE:
            way = math.hypot(*map(number, view.X.origin())) + slides[index]
            stretched = (math.sqrt(turning) + way * math.sqrt(mass)) ** 2
            outer[link.parent] = outer[link.parent][0] + stretched, outer[link.parent][1] + mass
    return min([least, *(moved / whole if whole > 0.0 else 0.0 for moved, whole in shared.values())])


def _moved_alone(model: CanonicalModel) -> list[bool]:
    """Of each link: whether the rates of all inner joints come before its own, and are 0 while its pivot is taken."""
    order = {link.start: index for index, link in enumerate(model.links) if link.leads}
    last: list[int] = []  # of each link: the last of the rates that move it
    found = []
    for link in model.links:
        inner = -1 if link.parent == BASE else last[link.parent]
        found.append(inner < order[link.start])
        last.append(max(inner, order[link.start]))
    return found


def slide_of(joint: Joint) -> float:
    """How far a joint can slide its link (m)."""
    travel = joint.type.travel(float(joint.limits.lower), float(joint.limits.upper), joint.pitch)
    return travel if travel < math.inf else SLIDE


def _moves_own_inertia(link: CanonicalLink) -> bool:
    """Whether the link's own inertia is enough for its joint to be able to accelerate it."""
    if link.armature > 0:
        return True
    turns, slides = link.I[2] > 0, link.mass > 0
    if link.nv == 1:
        return turns if link.type.turns else slides
    return slides and bool(np.linalg.eigvalsh(_matrix(link.I_com))[0] > 0)


def _matrix(six: Sequence[float]) -> np.ndarray:
    xx, yy, zz, xy, xz, yz = six
    return np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])
