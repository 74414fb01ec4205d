"""Robot: a description and the methods that users call."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ..analysis.factor import FactorMethods
from ..analysis.singular import SingularMethods
from ..backends.threads import checked_threads, default_threads
from ..catalogue.defaults import DETAILED, default_method
from ..catalogue.details import Details
from ..catalogue.functions import Request
from ..catalogue.parameters import parameter_sets
from ..catalogue.requests import CLOSED, DERIVATIVE, PUBLIC, checked_flag, make_request, make_requests, methods_of
from ..compiled.function import CompiledFunction, Recipe, builtin_of, chosen_backend, make_function
from ..description.assembly import with_payload
from ..description.external_forces import link_forces
from ..description.model import Frame, Model
from ..errors import ArgumentError, ModelWarning
from ..mechanism.canonical import CanonicalModel, canonical
from ..mechanism.coordinates import CoordinateMethods
from ..support import settings
from ..support.foreign import refuse_foreign
from ..support.lazy import Once, lazy
from ..support.messages import listing, shown
from ..support.numbers import Named
from .analysis_methods import AnalysisMethods
from .checks import checked_dtype, is_numbers
from .constraint_methods import ConstraintMethods
from .contact_methods import ContactMethods
from .coupling_methods import CouplingMethods
from .derivative_methods import DerivativeMethods
from .edit_methods import EditMethods
from .kinematics_methods import KinematicsMethods
from .parameter_methods import ParameterMethods
from .view_methods import ViewMethods

MOST_KEPT = 64  # functions of `compile`: one that is asked for again is there


class Robot(
    AnalysisMethods, CoordinateMethods, ConstraintMethods, DerivativeMethods, ParameterMethods, EditMethods,
    KinematicsMethods, FactorMethods, SingularMethods, ContactMethods, ViewMethods, CouplingMethods,
):  # fmt: skip
    """A robot arm: a frozen description, and its dynamics as compiled functions of NumPy arrays.

    Arrays have any leading batch shape and broadcast; float32 in gives float32 out. Coordinates follow `joint_names`,
    rows of f_ext follow `link_names`.
    """

    def __init__(self, model: Model):
        if not isinstance(model, Model):
            raise ArgumentError(
                f"Robot got {type(model).__name__}, expected a Model: use linksweep.load, linksweep.robots or "
                f"Robot.from_dh."
            )
        self.model = model
        self._functions: Once[Any] = Once()  # behind methods, some of them watched
        self._plain: dict[Any, Callable[..., Any]] = {}  # what calls without options come to, of this backend:
        self._backend = settings.backend
        self._compiled: dict[Any, CompiledFunction] = {}  # what `compile` gave last, by what it was asked
        if self.singular_joints:
            warnings.warn(
                f"{model.name}: no inertia moves with joint {listing(self.singular_joints, quoted=False)}, so its "
                f"acceleration is not determined; inverse dynamics works, forward dynamics does not.",
                ModelWarning,
                stacklevel=3,
            )

    @classmethod
    def from_dh(cls, rows: Sequence[Any], convention: str | None = None, **options: Any) -> Robot:
        """A chain from Denavit-Hartenberg rows; `convention` is "modified" or "standard" and must be said."""
        from ..formats.dh import from_dh

        return cls(from_dh(rows, convention, **options))

    # the description

    @property
    def name(self) -> str:
        """The name in its description."""
        return self.model.name

    @property
    def nq(self) -> int:
        """How many coordinates q has: one for each freedom, four for a ball joint, seven for a free one."""
        return self.model.nq

    @property
    def nv(self) -> int:
        """How many rates it has: entries of qd, qdd and tau."""
        return self.model.nv

    @property
    def joint_names(self) -> tuple[str, ...]:
        """The joints that have coordinates, in their order: all but those that follow others (`couplings`)."""
        return tuple(joint.name for joint in self.model.joints)

    @property
    def link_names(self) -> tuple[str, ...]:
        """The moving links, each in the place of the joint that carries it."""
        return tuple(self.model.links[i].name for i in self.model.document_order)

    @property
    def frames(self) -> tuple[Frame, ...]:
        """Every named place: its name, the link that carries it, and where it stands on that link."""
        return self.model.frames

    @property
    def frame_names(self) -> tuple[str, ...]:
        """The names of `frames`, in their order."""
        return tuple(frame.name for frame in self.model.frames)

    @property
    def gravity(self) -> tuple[float, float, float]:
        """The acceleration of things that fall, in the base frame (m/s^2)."""
        return self.model.gravity

    def with_gravity(self, gravity: Sequence[float]) -> Robot:
        """The same robot under another gravity, an acceleration in the base frame (m/s^2)."""
        refuse_foreign("gravity", gravity)
        vector = np.asarray(gravity, dtype=float) if is_numbers(gravity) else np.array([])
        if vector.shape != (3,) or not np.isfinite(vector).all():
            raise ArgumentError(
                f"gravity is {shown(gravity)}, expected three finite numbers, an acceleration in the base frame such "
                f"as (0, 0, -9.81)."
            )
        return Robot(self.model.with_gravity(tuple(vector.tolist())))

    def with_payload(self, link: str, mass: float, com: Sequence[float] = (0, 0, 0), inertia: Any = None) -> Robot:
        """The same robot with a body fixed to a link or frame; com and inertia (about it) in that frame."""
        return Robot(with_payload(self.model, link, mass, com, np.zeros((3, 3)) if inertia is None else inertia))

    def _edited(self, model: Model) -> Robot:
        return self if model is self.model else Robot(model)

    @lazy
    def canonical(self) -> CanonicalModel:
        """The links in the frames in which the recursions run."""
        return canonical(self.model)

    # dynamics

    def inverse_dynamics(
        self,
        q: ArrayLike,
        qd: ArrayLike,
        qdd: ArrayLike,
        method: str | None = None,
        f_ext: Named | None = None,
        out: np.ndarray | None = None,
        dissipation: bool = False,
        base_motion: ArrayLike | None = None,
        details: bool = False,
        **closed: Any,
    ) -> Any:
        """Joint torques and forces (..., nv) that produce the accelerations qdd.

        method: one of `methods("inverse_dynamics")`; None takes the first of them (for details, "newton_euler"). f_ext:
        what the environment applies, (..., links, 6) rows [moment; force] in each link's frame at its origin, or
        {frame: (..., 6)}. dissipation: add damping and Coulomb friction. base_motion: (..., 9), the base's angular
        velocity, angular acceleration and linear acceleration, in its own frame. details: return (torques, details),
        the quantities that the method computes on its way, by name. With constraints between frames, see
        `closed_inverse_dynamics`, which takes further options.
        """
        if f_ext is None and base_motion is None and dissipation is False and details is False and not closed:
            if method is None and self._backend is settings.backend and "inverse_dynamics" in self._plain:
                plain = self._plain["inverse_dynamics"]  # of a control loop: benchmarks/one_call.py
                return plain(q, qd, qdd) if out is None else plain(q, qd, qdd, out=out)
            if not self.model.constraints:
                return self._dynamics("inverse_dynamics", (q, qd, qdd), method, (), out)
        if closed or self.model.constraints:
            return self.closed_inverse_dynamics(q, qd, qdd, f_ext, dissipation, base_motion, details, **closed)
        options = _options(f_ext, dissipation, base_motion)
        if details:
            return self._details("inverse_dynamics", (q, qd, qdd), method, options, out)
        return self._dynamics("inverse_dynamics", (q, qd, qdd), method, options, out)

    def forward_dynamics(
        self,
        q: ArrayLike,
        qd: ArrayLike,
        tau: ArrayLike,
        method: str | None = None,
        f_ext: Named | None = None,
        out: np.ndarray | None = None,
        dissipation: bool = False,
        base_motion: ArrayLike | None = None,
        details: bool = False,
    ) -> Any:
        """Joint accelerations (..., nv) that the torques tau produce.

        method: one of `methods("forward_dynamics")`; None takes the first of them (for details, "filter_smoother");
        the other arguments are those of `inverse_dynamics`.
        """
        if f_ext is None and base_motion is None and dissipation is False and details is False:
            return self._dynamics("forward_dynamics", (q, qd, tau), method, (), out)
        options = _options(f_ext, dissipation, base_motion)
        if details:
            inner = self._closed_details if self.model.constraints else self._details
            return inner("forward_dynamics", (q, qd, tau), method, options, out)
        return self._dynamics("forward_dynamics", (q, qd, tau), method, options, out)

    def bias_forces(
        self,
        q: ArrayLike,
        qd: ArrayLike,
        method: str | None = None,
        f_ext: Named | None = None,
        out: np.ndarray | None = None,
        dissipation: bool = False,
        base_motion: ArrayLike | None = None,
    ) -> np.ndarray:
        """Torques (..., nv) that hold the joints unaccelerated: centrifugal, Coriolis, gravity and external."""
        return self._dynamics("bias_forces", (q, qd), method, _options(f_ext, dissipation, base_motion), out)

    def gravity_forces(self, q: ArrayLike, method: str | None = None, out: np.ndarray | None = None) -> np.ndarray:
        """Torques (..., nv) that hold the robot still against gravity."""
        return self._dynamics("gravity_forces", (q,), method, (), out)

    def mass_matrix(self, q: ArrayLike, method: str | None = None, out: np.ndarray | None = None) -> np.ndarray:
        """The joint-space inertia (..., nv, nv), armature included."""
        return self._dynamics("mass_matrix", (q,), method, (), out)

    def mass_matrix_inverse(self, q: ArrayLike, method: str | None = None, out: np.ndarray | None = None) -> np.ndarray:
        """The inverse of the mass matrix (..., nv, nv), element by element, without M."""
        return self._dynamics("mass_matrix_inverse", (q,), method, (), out)

    def influence(self, q: ArrayLike, point: str | tuple[str, ArrayLike]) -> tuple[np.ndarray, np.ndarray]:
        """First- and second-order influence coefficients G (..., 6, nv) and H (..., 6, nv, nv) of a point.

        Rows are [angular; linear] in the base's directions: the point moves by G qd and is accelerated by
        G qdd + qd^T H qd; H[..., j, k] is the derivative of G[..., k] by coordinate j. point: a frame's name for its
        origin, or (frame, offset) with an offset (..., 3) in that frame.
        """
        frame, offset = point if isinstance(point, tuple) and len(point) == 2 else (point, np.zeros(3, np.float32))
        names = ("first_influence", "second_influence")
        requests = make_requests(self, [(name, frame) for name in names], None)
        return self._function(requests)(q, offset)

    def explicit_model(self, q: ArrayLike, method: str | None = None) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """I* (..., nv, nv), P* (..., nv, nv, nv), g (..., nv): tau_i = I*_ij qdd_j + qd_j P*_ijk qd_k + g_i.

        method: "augmented_bodies", for serial chains, or "direct".
        """
        requests = make_requests(self, ("effective_inertia", "inertia_power"), method)
        gravity = "influence" if requests[0].method == "augmented_bodies" else None
        return self._function((*requests, make_request(self, "gravity_forces", gravity)))(q)

    def coriolis_matrix(
        self, q: ArrayLike, qd: ArrayLike, method: str | None = None, out: np.ndarray | None = None
    ) -> np.ndarray:
        """C (..., nv, nv), by Christoffel's symbols where joints have one freedom: C qd are the velocity forces, and
        dM/dt - 2 C is skew, with M by the rates of joints (of a free base or a ball joint: in the body frame)."""
        return self._dynamics("coriolis_matrix", (q, qd), method, (), out)

    @property
    def functions(self) -> tuple[str, ...]:
        """What `compile` can be asked for."""
        return PUBLIC + CLOSED if self.model.constraints else PUBLIC

    def methods(self, function: str) -> tuple[str, ...]:
        """The methods by which this robot can compute a function; the first is the default."""
        return methods_of(self, function)

    def compile(
        self, functions: Any, *, method: str | None = None, f_ext: bool = False, dissipation: bool = False,
        base_motion: bool = False, dtype: Any = None, threads: int | None = None, rolled: bool | None = None,
        backend: str | None = None, base_parameters: bool | None = None, parameters: Sequence[str] = (),
    ) -> CompiledFunction:  # fmt: skip
        """A compiled function of one result, or of several that share their work.

        functions: a name such as "inverse_dynamics", with its frame and reference where it has them, as ("jacobian",
        "tool") or ("jacobian", "tool", "local"), or ("derivative", one of these, input), or a list of those; the inputs
        it takes are `.inputs`, in that order. f_ext, base_motion: take them as further arguments. dtype: "float64",
        "float32", or None to follow the arguments. threads: split large batches over so many (None: LINKSWEEP_THREADS,
        or 1). rolled: as loops over the links (None: by size). backend: "llvm" or "interpreter". base_parameters: with
        regrouped inertias (None: wherever they serve). parameters: numbers of the robot to take as further arguments,
        as ("payload",) or ("payload:tool", "gravity"), see parameters.py; a payload is ten numbers, which
        `linksweep.body` makes.
        """
        threads = default_threads() if threads is None else threads
        asked = (
            method, f_ext, dissipation, base_motion, dtype, threads, rolled, backend or settings.backend,
            base_parameters, tuple(parameters) if isinstance(parameters, list) else parameters,
        )  # fmt: skip
        wanted = tuple(functions) if isinstance(functions, list) else functions
        key = ("compile", type(functions), wanted, *map(type, asked), *asked)  # 1 is no True
        try:
            found = self._compiled.get(key)
        except TypeError:  # something that cannot be hashed, and not be meant: it is said below
            key, found = None, None
        if found is not None:
            return found
        recipe = self.recipe(
            functions, method=method, f_ext=f_ext, dissipation=dissipation, base_motion=base_motion, rolled=rolled,
            base_parameters=base_parameters, parameters=parameters,
        )  # fmt: skip
        made = make_function(recipe, checked_dtype(dtype), checked_threads(threads), chosen_backend(backend))
        if key is not None:
            self._compiled[key] = made
            if len(self._compiled) > MOST_KEPT:
                self._compiled.pop(next(iter(self._compiled)), None)
        return made

    def recipe(
        self, functions: Any, *, method: str | None = None, rolled: bool | None = None,
        base_parameters: bool | None = None, parameters: Sequence[str] = (), **options: bool,
    ) -> Recipe:  # fmt: skip
        """What `compile` compiles, checked: it can be traced and counted without being compiled."""
        wanted = functions if isinstance(functions, list) else [functions]
        if not wanted:
            raise ArgumentError("compile got an empty list, expected at least one function: see robot.methods.")
        if self.model.constraints and any(_names(item, "inverse_dynamics") for item in wanted):
            raise ArgumentError(
                f"compile: constraints of {self.name} leave the torques of inverse_dynamics open, expected a choice "
                f"among them: use the method robot.inverse_dynamics, which makes one, or "
                f"robot.without_constraints().compile for the torques of the tree."
            )
        regrouped = None if base_parameters is None else checked_flag("base_parameters", base_parameters)
        sets = parameter_sets(self, parameters)
        requests = make_requests(self, wanted, method, rolled=rolled, parameters=sets, **options)
        return Recipe(self.canonical, requests, rolled, base_parameters=regrouped, parameters=sets)

    # how a call finds its function

    def _dynamics(
        self, item: Any, args: tuple[Any, ...], method: str | None, options: tuple[Any, ...], out: Any
    ) -> np.ndarray:
        if method is None and not options and self._backend is settings.backend:
            try:
                plain = self._plain.get(item)
            except TypeError:  # a name that cannot be hashed: the request says what is wrong with it
                plain = None
            if plain is not None:  # here come the calls of a control loop: benchmarks/one_call.py
                return plain(*args) if out is None else plain(*args, out=out)
        compiled = self._function_of(item, method, options)
        if options:
            args = (*args, *self._extra_arguments(options))
        return compiled(*args) if out is None else compiled(*args, out=out)

    def _function_of(self, item: Any, method: str | None, options: tuple[Any, ...]) -> Callable[..., Any]:
        f_ext, dissipation, base_motion = options or (None, False, None)
        given = (f_ext is not None, checked_flag("dissipation", dissipation), base_motion is not None)
        backend = settings.backend
        key = (item, backend, method, *given)
        try:
            compiled = self._functions.get(key)
        except TypeError:
            compiled = None
        if compiled is None:
            compiled = self._functions[key] = self._watched(self._request(item, method, options))
        if method is None and not options:
            if self._backend is not backend:
                self._backend, self._plain = backend, {}
            self._plain[item] = builtin_of(compiled)
        return compiled

    def _details(
        self, item: str, args: tuple[Any, ...], method: str | None, options: tuple[Any, ...], out: Any
    ) -> tuple[np.ndarray, Details]:
        if out is not None:
            raise ArgumentError(f"{item}: out= does not go with details=True: take the arrays that are returned.")
        if method is None:
            method = default_method(item, self.canonical) if self.model.couplings else DETAILED[item]
        request = self._request(item, method, options)
        key = ("details", request, settings.backend)

        def make() -> CompiledFunction:
            recipe = Recipe(canonical(self.model, described_frames=True), (request,), details=True)
            return make_function(recipe, None, default_threads(), chosen_backend(None))

        function = self._functions.made(key, make)
        arrays = function(*args, *self._extra_arguments(options))
        if item == "forward_dynamics":
            self.warn_if_singular(item, args[0])
        return arrays[0], Details(zip(function.outputs, arrays, strict=True))

    def _request(self, item: Any, method: str | None, options: tuple[Any, ...]) -> Request:
        f_ext, dissipation, base_motion = options or (None, False, None)
        return make_request(
            self, item, method, f_ext=f_ext is not None, dissipation=dissipation, base_motion=base_motion is not None
        )

    def _extra_arguments(self, options: tuple[Any, ...]) -> tuple[Any, ...]:
        """External forces by link, and the base's motion, where they are given."""
        if not options:
            return ()
        f_ext, _, base_motion = options
        forces = link_forces(self.model, f_ext) if isinstance(f_ext, Mapping) else f_ext
        return tuple(extra for extra in (forces, base_motion) if extra is not None)

    def _function(self, requests: tuple[Request, ...]) -> CompiledFunction:
        """The function behind a method, compiled at first use."""
        key = (requests, settings.backend)
        return self._functions.made(
            key, lambda: make_function(Recipe(self.canonical, requests), None, default_threads(), chosen_backend(None))
        )

    @lazy
    def has_inertia(self) -> bool:
        """Whether any link has mass: without it there are poses and Jacobians, but no dynamics."""
        return any(
            link.joint.armature or link.inertial.mass or any(any(row) for row in link.inertial.inertia)
            for link in self.model.links
        )

    def __repr__(self) -> str:
        return f"<Robot {self.name}: {self.nv} joints, {len(self.frame_names)} frames>"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Robot) and self.model == other.model

    def __hash__(self) -> int:
        return hash(self.model)

    def __reduce__(self) -> tuple[Any, ...]:
        return _restore, (self.model,)


def _names(item: Any, function: str) -> bool:
    """Whether an item of `compile` asks for this function, or a derivative of it."""
    while isinstance(item, tuple) and len(item) > 1 and item[0] == DERIVATIVE:
        item = item[1]
    return item == function or (isinstance(item, tuple) and bool(item) and item[0] == function)


def _restore(model: Model) -> Robot:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ModelWarning)  # it was said when the robot was first made
        return Robot(model)


def _options(f_ext: Any, dissipation: Any, base_motion: Any) -> tuple[Any, ...]:
    return () if f_ext is None and base_motion is None and dissipation is False else (f_ext, dissipation, base_motion)
