"""Robot: a description and the methods that users call."""

from __future__ import annotations

import functools
import os
import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from .assembly import with_payload
from .canonical import CanonicalModel, canonical
from .compiled import CompiledFunction, Recipe, chosen_backend, make_function
from .errors import ArgumentError, DescriptionError, ModelWarning, SingularError
from .external_forces import link_forces
from .functions import FUNCTIONS, Request
from .joints import KINDS
from .model import Model
from .names import nearest


class Robot:
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
        self._functions: dict[Any, CompiledFunction] = {}
        self._inverse: Any = None  # the default methods' functions, found without a look-up
        self._forward: Any = None
        if self.singular_joints:
            warnings.warn(
                f"{model.name}: no inertia moves with joint {', '.join(self.singular_joints)}, so its acceleration is "
                f"not determined; inverse dynamics works, forward dynamics does not.",
                ModelWarning,
                stacklevel=3,
            )

    @classmethod
    def from_dh(cls, rows: Sequence[Any], convention: str | None = None, **options: Any) -> Robot:
        """A chain from Denavit-Hartenberg rows; `convention` is "modified" or "standard" and must be said."""
        from .formats.dh import from_dh

        return cls(from_dh(rows, convention, **options))

    # the description

    @property
    def name(self) -> str:
        return self.model.name

    @property
    def nq(self) -> int:
        return sum(KINDS[link.joint.kind].nq for link in self.model.links)

    @property
    def nv(self) -> int:
        return sum(KINDS[link.joint.kind].nv for link in self.model.links)

    @property
    def joint_names(self) -> tuple[str, ...]:
        return tuple(self.model.links[i].joint.name for i in self.model.document_order)

    @property
    def link_names(self) -> tuple[str, ...]:
        """The moving links, each in the place of the joint that carries it."""
        return tuple(self.model.links[i].name for i in self.model.document_order)

    @property
    def frame_names(self) -> tuple[str, ...]:
        return tuple(frame.name for frame in self.model.frames)

    @property
    def gravity(self) -> tuple[float, float, float]:
        return self.model.gravity

    def with_gravity(self, gravity: Sequence[float]) -> Robot:
        """The same robot under another gravity, an acceleration in the base frame (m/s^2)."""
        vector = np.asarray(gravity, dtype=float) if _is_numbers(gravity) else np.array([])
        if vector.shape != (3,) or not np.isfinite(vector).all():
            raise ArgumentError(
                f"gravity is {gravity!r}, expected three finite numbers, an acceleration in the base frame such as "
                f"(0, 0, -9.81)."
            )
        return Robot(self.model.with_gravity(tuple(vector.tolist())))

    def with_payload(self, link: str, mass: float, com: Sequence[float] = (0, 0, 0), inertia: Any = None) -> Robot:
        """The same robot with a body fixed to a link or frame; com and inertia (about it) in that frame."""
        return Robot(with_payload(self.model, link, mass, com, np.zeros((3, 3)) if inertia is None else inertia))

    @functools.cached_property
    def canonical(self) -> CanonicalModel:
        """The links in the frames in which the recursions run."""
        return canonical(self.model)

    @functools.cached_property
    def singular_joints(self) -> tuple[str, ...]:
        """Joints that move no inertia at all, in any pose: their acceleration is not determined."""
        doubtful = [
            i
            for i, link in enumerate(self.canonical.links)
            if link.armature == 0 and (link.mass if link.kind == "prismatic" else link.I[2]) <= 0
        ]
        if not doubtful:
            return ()  # D(k) >= H M(k) H^T + armature > 0 for every joint
        q = np.random.default_rng(0).uniform(-3.0, 3.0, (2, self.nq))
        request = Request("joint_inertia", "factorization")
        joint_inertia = CompiledFunction(Recipe(self.canonical, (request,)), "float64", 1, "interpreter")(q)
        scale = max(max(link.mass, *link.I[:3]) for link in self.canonical.links)
        starts = [self.canonical.links[i].start for i in doubtful]
        zero = ~(np.abs(joint_inertia).max(axis=0) > 1e-13 * scale)
        return tuple(self.joint_names[k] for k in sorted(starts) if zero[k])

    # dynamics

    def inverse_dynamics(
        self, q: Any, qd: Any, qdd: Any, method: str = "newton_euler", f_ext: Any = None, out: Any = None,
        dissipation: bool = False,
    ) -> np.ndarray:  # fmt: skip
        """Joint torques and forces (..., nv) that produce the accelerations qdd.

        f_ext: what the environment applies, (..., links, 6) rows [moment; force] in each link's frame at its origin, or
        {frame: (..., 6)}. dissipation: add damping and Coulomb friction.
        """
        if self._inverse is not None and f_ext is None and out is None and method == "newton_euler" and not dissipation:
            return self._inverse(q, qd, qdd)
        return self._dynamics("inverse_dynamics", (q, qd, qdd), method, f_ext, out, dissipation)

    def forward_dynamics(
        self, q: Any, qd: Any, tau: Any, method: str = "filter_smoother", f_ext: Any = None, out: Any = None,
        dissipation: bool = False,
    ) -> np.ndarray:  # fmt: skip
        """Joint accelerations (..., nv) that the torques tau produce; arguments as of `inverse_dynamics`."""
        if (
            self._forward is not None
            and f_ext is None
            and out is None
            and method == "filter_smoother"
            and not dissipation
        ):
            return self._forward(q, qd, tau)
        return self._dynamics("forward_dynamics", (q, qd, tau), method, f_ext, out, dissipation)

    def bias_forces(
        self,
        q: Any,
        qd: Any,
        method: str = "newton_euler",
        f_ext: Any = None,
        out: Any = None,
        dissipation: bool = False,
    ) -> np.ndarray:
        """Torques (..., nv) that hold the joints unaccelerated: centrifugal, Coriolis, gravity and external."""
        return self._dynamics("bias_forces", (q, qd), method, f_ext, out, dissipation)

    def gravity_forces(self, q: Any, method: str = "newton_euler", out: Any = None) -> np.ndarray:
        """Torques (..., nv) that hold the robot still against gravity."""
        return self._dynamics("gravity_forces", (q,), method, None, out, False)

    def mass_matrix(self, q: Any, method: str = "composite", out: Any = None) -> np.ndarray:
        """The joint-space inertia (..., nv, nv), armature included."""
        return self._dynamics("mass_matrix", (q,), method, None, out, False)

    def pose(self, q: Any, frame: str, out: Any = None) -> np.ndarray:
        """The frame's homogeneous matrix (..., 4, 4) in the base frame."""
        return self._function((("pose", frame),))(q, out=out)

    def jacobian(self, q: Any, frame: str, out: Any = None) -> np.ndarray:
        """The frame's Jacobian (..., 6, nv): [angular; linear], at its origin, in the base's directions."""
        return self._function((("jacobian", frame),))(q, out=out)

    def methods(self, function: str) -> tuple[str, ...]:
        """The methods by which this robot can compute a function; the first is the default."""
        return tuple(name for name in self._checked_function(function).methods if name)

    def compile(
        self,
        functions: Any,
        *,
        method: str | None = None,
        f_ext: bool = False,
        dissipation: bool = False,
        dtype: Any = None,
        threads: int = 1,
        rolled: bool | None = None,
        backend: str | None = None,
    ) -> CompiledFunction:
        """A compiled function of one result, or of several that share their work.

        functions: a name such as "inverse_dynamics", a pair such as ("jacobian", "tool"), or a list of those; the
        inputs it takes are `.inputs`, in that order. f_ext: take external forces as last argument. dtype: "float64",
        "float32", or None to follow the arguments. threads: split large batches. rolled: as loops over the links
        (None: by size). backend: "llvm" or "interpreter".
        """
        several = isinstance(functions, list)
        wanted = functions if several else [functions]
        if not wanted:
            raise ArgumentError(
                "compile got an empty list of functions, expected at least one name: see robot.methods."
            )
        requests = tuple(self._request(item, method, f_ext, dissipation) for item in wanted)
        return self._compiled(requests, dtype, threads, rolled, backend)

    # how a call finds its function

    def _dynamics(
        self, function: str, args: tuple[Any, ...], method: str, f_ext: Any, out: Any, dissipation: bool
    ) -> np.ndarray:
        if f_ext is not None:
            args = (*args, self._forces(f_ext))
        compiled = self._function((function,), method, f_ext is not None, bool(dissipation))
        if f_ext is None and not dissipation:
            if function == "inverse_dynamics" and method == "newton_euler":
                self._inverse = compiled
            elif function == "forward_dynamics" and method == "filter_smoother":
                self._forward = compiled
        return compiled(*args) if out is None else compiled(*args, out=out)

    def _forces(self, f_ext: Any) -> Any:
        return link_forces(self.model, f_ext) if isinstance(f_ext, Mapping) else f_ext

    def _function(
        self,
        items: tuple[Any, ...],
        method: str | None = None,
        f_ext: bool = False,
        dissipation: bool = False,
    ) -> CompiledFunction:
        """The compiled function behind a method, made at first use."""
        key = (items, method, f_ext, dissipation, os.environ.get("LINKSWEEP_BACKEND"))
        try:
            return self._functions[key]
        except KeyError:
            pass
        except TypeError:  # an unhashable name: _request says so
            requests = tuple(self._request(item, method, f_ext, dissipation) for item in items)
            return self._compiled(requests, None, 1, None, None)
        requests = tuple(self._request(item, method, f_ext, dissipation) for item in items)
        found = self._functions[key] = self._compiled(requests, None, 1, None, None)
        return found

    def _compiled(
        self,
        requests: tuple[Request, ...],
        dtype: Any,
        threads: Any,
        rolled: bool | None,
        backend: str | None,
    ) -> CompiledFunction:
        from .backends.threads import checked_threads

        recipe = Recipe(self.canonical, requests, rolled)
        return make_function(recipe, _checked_dtype(dtype), checked_threads(threads), chosen_backend(backend))

    def _checked_function(self, name: Any) -> Any:
        public = [known for known, function in FUNCTIONS.items() if function.public]
        if not isinstance(name, str) or name not in public:
            raise ArgumentError(
                f"there is no function {name!r}{nearest(name, public)}: expected one of {', '.join(public)}."
            )
        return FUNCTIONS[name]

    def _request(self, item: Any, method: str | None, f_ext: bool, dissipation: bool) -> Request:
        """One function with its options, checked."""
        name: Any = item
        frame: Any = ""
        if isinstance(item, tuple) and len(item) == 2:
            name, frame = item
        function = self._checked_function(name)
        if function.needs_frame:
            self._check_frame(name, frame)
        elif frame:
            raise ArgumentError(f"{name} takes no frame, got {frame!r}: ask for it by its name alone.")
        methods = list(function.methods)
        if method is not None and methods != [""] and method not in methods:
            if any(method in other.methods for other in FUNCTIONS.values()) and function.shared:
                method = methods[0]
            else:
                raise ArgumentError(
                    f"{name} has no method {method!r}{nearest(method, methods)}: expected one of {', '.join(methods)}."
                )
        if function.dynamics:
            self._check_dynamics(name)
        chosen = methods[0] if method is None or methods == [""] else method
        f_ext, dissipation = bool(f_ext and function.takes), bool(dissipation and function.takes)
        return Request(name, chosen, frame, f_ext, dissipation)

    def _check_frame(self, name: str, frame: Any) -> None:
        if frame not in self.frame_names:
            known = self.frame_names
            shown = ", ".join(known[:8]) + (", ..." if len(known) > 8 else "")
            raise ArgumentError(
                f"{name}: {self.name} has no frame {frame!r}{nearest(frame, known)}: expected one of {shown} "
                f"(robot.frame_names)."
            )

    def _check_dynamics(self, function: str) -> None:
        if not self._has_inertia:
            raise DescriptionError(
                f"{function}: {self.name} has no mass or inertia at all, expected some in its description; only pose "
                f"and jacobian can be computed."
            )
        if FUNCTIONS[function].invertible and self.singular_joints:
            raise SingularError(
                f"{function}: no inertia moves with joint {', '.join(self.singular_joints)} of {self.name}, so its "
                f"acceleration is not determined: give the link beyond it an inertia, or the joint an armature."
            )

    @functools.cached_property
    def _has_inertia(self) -> bool:
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


def load(path: Any) -> Robot:
    """A robot from a file: URDF, or a DH table in TOML."""
    from .formats import load_model

    return Robot(load_model(path))


def _restore(model: Model) -> Robot:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ModelWarning)  # it was said when the robot was first made
        return Robot(model)


def _is_numbers(value: Any) -> bool:
    try:
        return np.asarray(value).dtype.kind in "iuf"
    except (TypeError, ValueError):
        return False


def _checked_dtype(dtype: Any) -> str | None:
    if dtype is None:
        return None
    try:
        name = np.dtype(dtype).name
    except TypeError:
        name = repr(dtype)
    if name not in ("float64", "float32"):
        raise ArgumentError(f"dtype is {name}, expected 'float64', 'float32', or None to follow the arguments.")
    return name
