"""Robot: a robot model and the functions that users call on it."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Literal, Unpack, overload

import numpy as np
from numpy.typing import ArrayLike, DTypeLike

from ..backends.symbolic import LIMIT, Options, Symbolic
from ..backends.threads import checked_threads, default_threads
from ..errors import ArgumentError, ModelWarning, warn_user
from ..functions.compiled import CompiledFunction, chosen_backend, compiled
from ..functions.computation import Computation, Together
from ..functions.defaults import default_method
from ..functions.details import Details
from ..functions.items import CLOSED, PUBLIC, methods_of, program
from ..functions.parameters import parameter_sets
from ..mechanism import coordinates
from ..mechanism.canonical import CanonicalModel
from ..model.assembly import snapped, with_payload
from ..model.constraints import Constraint, Spring, coupled
from ..model.model import Coupling, Frame, Model, tips
from ..model.semantics import EndEffector, JointData
from ..support import settings
from ..support.checks import Named, checked_dtype, checked_flag, real_array
from ..support.lazy import lazy
from ..support.messages import listing, shown
from ..tracing.count import Counts, count
from ..tracing.program import Program
from . import editing, properties, singular
from .closed_chains import Choice, ClosedChain, Mobility, checked_connections
from .constraints import CLOSES
from .core import Core, Extras, Item, Items, argument_key, declared_call, extras, listed, refuse_out
from .derivatives import Derivatives, Partials
from .factor import Factor, factor
from .formulas import NUMBERS_INSTEAD, Formulas
from .operational_space import OperationalSpace, as_key, manipulability, operational_inertia, operational_space
from .properties import JointLimits, expansion

if TYPE_CHECKING:
    from ..explain import Explanation
    from ..model.formats.dh import DHTable
    from .base_parameters import BaseParameters
    from .options import Flags, FollowOptions, FramePath, Row, SearchOptions, TableOptions, TracingOptions, ViewOptions
    from .wrench import MomentumObserver, Wrench


class Robot:
    """An immutable robot model with kinematics and dynamics as compiled functions of NumPy arrays.

    Arrays have any leading batch shape, written (...), and broadcast; float32 inputs give float32 results. Coordinates
    follow `joint_names`, rows of f_ext follow `link_names`. Units are SI and radians. Quantities are in the base frame
    by default. Spatial vectors are [angular; linear] and [moment; force].

    Parameters
    ----------
    model : Model
        Usually not constructed directly: use `linksweep.load`, `linksweep.robots` or `Robot.from_dh`.

    Examples
    --------
    >>> import linksweep as ls
    >>> robot = ls.robots.puma560()
    >>> robot.mass_matrix(robot.neutral()).shape
    (6, 6)
    """

    snapping: Mapping[str, float] = MappingProxyType({})  # rotation of each joint (rad) by `snapped`

    def __init__(self, model: Model):
        if not isinstance(model, Model):
            raise ArgumentError(
                f"Robot got {type(model).__name__}, expected a Model; use linksweep.load, linksweep.robots or "
                f"Robot.from_dh."
            )
        self.model = model
        self._core = Core.of(model)
        self._call = self._core.call  # one step from a method to machine code
        if not self.has_inertia:
            warn_user(
                f"{model.name} has no mass or inertia at all: poses and Jacobians can be computed, dynamics cannot.",
                ModelWarning,
            )
        elif self.singular_joints:
            warn_user(
                f"{model.name}: no inertia moves with joint {listing(self.singular_joints, quoted=False)}, so its "
                f"acceleration is undetermined; inverse dynamics works, forward dynamics does not.",
                ModelWarning,
            )

    @classmethod
    def from_dh(cls, rows: Iterable[Row], convention: str | None = None, **options: Unpack[TableOptions]) -> Robot:
        """Return a serial chain from Denavit-Hartenberg rows.

        Parameters
        ----------
        rows : sequence, one row for each joint, base first
            (alpha, a, d, theta) in radians and meters, or a mapping of these and of `joint` ("revolute", ...), `name`,
            `link`, `mass`, `com`, `inertia` about the center of mass, `armature`, `damping`, `friction`,
            `torque_offset` and limits.
        convention : "modified" or "standard"
            Required.
        **options
            name, gravity (3,), base, tool and mount (a Placement each), base_inertial (an Inertial).

        Returns
        -------
        Robot

        Examples
        --------
        >>> arm = Robot.from_dh([{"a": 0, "mass": 1, "com": (0.5, 0, 0)}, {"a": 1, "mass": 1, "com": (0.5, 0, 0)}],
        ...                     convention="modified")
        >>> arm.nv
        2
        """
        from ..model.formats.dh import from_dh

        return cls(from_dh(rows, convention, **options))

    # ---- Names and properties

    @property
    def name(self) -> str:
        """Name of the robot in its model."""
        return self.model.name

    @property
    def nq(self) -> int:
        """Number of coordinates in q: 1 for a 1-DOF joint, 4 for a ball joint, 7 for a free joint."""
        return self.model.nq

    @property
    def nv(self) -> int:
        """Number of degrees of freedom: length of qd, qdd and tau."""
        return self.model.nv

    @property
    def joint_names(self) -> tuple[str, ...]:
        """Names of the joints with coordinates, in the order of q: all but mimic joints (see `couplings`)."""
        return self._core.joint_names

    @property
    def link_names(self) -> tuple[str, ...]:
        """Names of the moving links, in the order of the joints that move them."""
        return self._core.link_names

    @property
    def frames(self) -> tuple[Frame, ...]:
        """All named frames: name, link, and placement on the link."""
        return self.model.frames

    @property
    def frame_names(self) -> tuple[str, ...]:
        """Names of all frames."""
        return self._core.frame_names

    @property
    def gravity(self) -> tuple[float, float, float]:
        """Gravitational acceleration in the base frame (m/s^2)."""
        return self.model.gravity

    @property
    def tips(self) -> tuple[str, ...]:
        """Tip frames: the outermost frames of the leaf links."""
        return tips(self.model)

    @property
    def tip(self) -> str:
        """The tip frame; raises an error with a list of them if there are several."""
        return properties.only_tip(self.model)

    @property
    def ee(self) -> str:
        """Name of the end-effector frame: of the SRDF file, or if it is unambiguous (docs/conventions.md)."""
        return properties.only_tool(self.model)

    @property
    def end_effectors(self) -> dict[str, EndEffector]:
        """End effectors of the SRDF file by name, each with its link, group and parent group."""
        return {end.name: end for end in self.model.semantics.end_effectors if end.link in self.frame_names}

    @property
    def groups(self) -> dict[str, tuple[str, ...]]:
        """Groups of the SRDF file: the names of their joints, in the order of `joint_names`."""
        return {
            name: tuple(joint for joint in self.joint_names if joint in joints)
            for name, joints in self.model.semantics.groups
        }

    @property
    def states(self) -> dict[str, np.ndarray]:
        """Named configurations of the SRDF file (nq,); joints that a state does not list are neutral.

        A name that several groups use is the combination of their states, and each is also listed as "group/name".
        """
        return properties.states_of(self.model)

    @property
    def joint_data(self) -> dict[str, JointData]:
        """Drives in the URDF file by joint: gear ratio, rotor inertia, soft limits, calibration."""
        return {name: data for name, data in self.model.semantics.joint_data if name in self._core.joint_names}

    @property
    def limits(self) -> JointLimits:
        """Joint limits: positions lower and upper (nq,), velocity and effort (nv,)."""
        return properties.limits_of(self.model)

    @property
    def masses(self) -> np.ndarray:
        """Mass of each moving link (links,), in kg, in the order of `link_names`."""
        return np.array([self.model.links[i].inertial.mass for i in self.model.document_order], dtype=float)

    @property
    def damping(self) -> np.ndarray:
        """Viscous joint damping (nv,), N m s/rad or N s/m."""
        return properties.per_velocity(self.model, "damping")

    @property
    def friction(self) -> np.ndarray:
        """Coulomb friction of joints (nv,), N m or N."""
        return properties.per_velocity(self.model, "friction")

    @property
    def armature(self) -> np.ndarray:
        """Motor inertia reflected to the joints (nv,), kg m^2 or kg."""
        return properties.per_velocity(self.model, "armature")

    @property
    def actuated(self) -> tuple[str, ...]:
        """Names of the joints with motors, in the order of `joint_names`: by default all but free joints."""
        pairs = zip(self.joint_names, self.canonical.joints, strict=True)
        return tuple(name for name, link in pairs if link.actuated)

    @lazy
    def undriven_joints(self) -> tuple[str, ...]:
        """Joints that can move while all motors are locked: passive joints that no constraint determines.

        For a robot with constraints, this is determined at configurations that satisfy them. Empty if none is found.
        """
        return self._closed.undriven()

    @property
    def torque_offset(self) -> np.ndarray:
        """Constant torque offset of each drive (nv,), N m or N, included with `dissipation=True`."""
        return properties.per_velocity(self.model, "torque_offset")

    @property
    def has_inertia(self) -> bool:
        """Whether any link has mass or inertia; without it there are kinematics but no dynamics."""
        return self._core.has_inertia

    @property
    def canonical(self) -> CanonicalModel:
        """The model in canonical link frames, as the recursions use it."""
        return self._core.canonical

    def __repr__(self) -> str:
        return f"<Robot {self.name}: {self.nv} DOF, {len(self.joint_names)} joints, {len(self.frame_names)} frames>"

    def _repr_html_(self) -> str:
        return properties.html_of(self.model)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Robot) and self.model == other.model

    def __hash__(self) -> int:
        return hash(self.model)

    def __reduce__(self) -> tuple[Callable[[Model, dict[str, float]], Robot], tuple[Model, dict[str, float]]]:
        return _restore, (self.model, dict(self.snapping))

    if TYPE_CHECKING:  # methods that __getattr__ returns; type checkers report other attributes that do not exist
        center_of_mass_jacobian: Callable[..., np.ndarray]
        effective_inertia: Callable[..., np.ndarray]
        inertia_power: Callable[..., np.ndarray]
        packed_regressor: Callable[..., np.ndarray]
        point_jacobian: Callable[..., np.ndarray]
        point_jacobian_derivative: Callable[..., np.ndarray]
    else:

        def __getattr__(self, name: str) -> Callable[..., np.ndarray]:
            """Return the method of a declared function (functions/catalog/) that has none in this class."""
            if hasattr(type(self), name):  # a property that raised, such as robot.ee: its own message counts
                return object.__getattribute__(self, name)
            if name.startswith("_") or name not in self.functions:
                raise AttributeError(f"'Robot' object has no attribute {name!r}", name=name, obj=self)
            return declared_call(self._core, name)

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *self.functions})

    # ---- Modified copies

    def _edited(self, model: Model) -> Robot:
        return self if model is self.model else Robot(model)

    def with_gravity(self, gravity: Sequence[float]) -> Robot:
        """Return a copy with another gravity.

        Parameters
        ----------
        gravity : (3,)
            Acceleration in the base frame (m/s^2).
        """
        return Robot(editing.with_gravity(self.model, gravity))

    def with_payload(
        self, link: str, mass: float, com: Sequence[float] = (0, 0, 0), inertia: ArrayLike | None = None
    ) -> Robot:
        """Return a copy with a payload attached to a link or frame.

        Parameters
        ----------
        link : str
            Name of a link or frame.
        mass : float
            In kg.
        com : (3,)
            Center of mass in that frame (m).
        inertia : (3,), (6,) or (3, 3)
            About the center of mass, along the axes of that frame (kg m^2). A point mass by default.
        """
        return Robot(with_payload(self.model, link, mass, com, np.zeros((3, 3)) if inertia is None else inertia))

    def with_limits(
        self,
        lower: Named | None = None,
        upper: Named | None = None,
        velocity: Named | None = None,
        effort: Named | None = None,
    ) -> Robot:
        """Return a copy with other joint limits. Limits that are omitted stay.

        Parameters
        ----------
        lower, upper : {joint: number}, float, or array
            Position limits (rad, m): by joint name, one for all joints, one for each joint, or for each coordinate as
            in `limits`. Infinity means no limit.
        velocity, effort : {joint: number}, float, or array
            Largest absolute values (rad/s, m/s; N m, N), one for each joint or degree of freedom.
        """
        limits = {"lower": lower, "upper": upper, "velocity": velocity, "effort": effort}
        return self._edited(properties.with_limits(self.model, limits))

    def with_dissipation(
        self, damping: Named | None = None, friction: Named | None = None, torque_offset: Named | None = None
    ) -> Robot:
        """Return a copy with other damping, Coulomb friction or torque offsets. Values that are omitted stay.

        Parameters
        ----------
        damping, friction : {joint: number}, float, or array
            Viscous damping (N m s/rad, N s/m) and Coulomb friction (N m, N), for each joint or degree of freedom.
        torque_offset : {joint: number}, float, or array
            Constant torque (N m, N) of any sign. `inverse_dynamics(..., dissipation=True)` adds it, `forward_dynamics`
            subtracts it from the torques.
        """
        parameters = {"damping": damping, "friction": friction, "torque_offset": torque_offset}
        return self._edited(properties.with_joint_parameters(self.model, parameters))

    def with_armature(self, armature: Named) -> Robot:
        """Return a copy with other motor inertias.

        Parameters
        ----------
        armature : {joint: number}, float, or array
            Motor inertia reflected to the joint (kg m^2 or kg).
        """
        return self._edited(properties.with_joint_parameters(self.model, {"armature": armature}))

    def with_actuated(self, joints: Sequence[str] | str) -> Robot:
        """Return a copy with motors at these joints only; all others are passive.

        Controllers apply no torque to passive joints. With constraints, inverse dynamics returns the torques of the
        motors. All other functions are unaffected.

        Parameters
        ----------
        joints : names
            Some of `joint_names`. Free joints cannot have motors.
        """
        return self._edited(editing.with_actuated(self.model, joints))

    def with_inertia(self, inertia: Named) -> Robot:
        """Return a copy with other inertial parameters of links.

        Parameters
        ----------
        inertia : {link: (10,)}, or (links, 10) in the order of `link_names`
            Mass, first moment (3) and inertia about the origin (6) in the frame named after the link, as returned by
            `linksweep.body` and as in `standard_parameters`.
        """
        return self._edited(properties.with_inertia(self.model, inertia))

    def with_base(self, base: str) -> Robot:
        """Return a copy with a floating or a fixed base.

        A floating base is a link on a free joint, "root_joint", whose coordinates come first, and the new base frame is
        "world". Gravity keeps its direction in the world.

        Parameters
        ----------
        base : "floating" or "fixed"
        """
        return self._edited(editing.with_base(self.model, base))

    def lock(
        self, joints: str | Iterable[str] | Mapping[str, ArrayLike], at: Named | Sequence[ArrayLike] | None = None
    ) -> Robot:
        """Return a copy with joints locked. Their links, with inertia and frames, become part of their parent link.

        Parameters
        ----------
        joints : name, names, or {joint: coordinates}
        at : {joint: coordinates}, or one entry for each joint
            Positions at which they are locked. Neutral by default.
        """
        return self._edited(editing.lock(self.model, joints, at))

    def subchain(self, base: str, tip: str, fold: bool = True) -> Robot:
        """Return the serial chain between two links or frames.

        Parameters
        ----------
        base, tip : names of links or frames
            `base` becomes the fixed base; `tip` must be further out.
        fold : bool
            Lock branches at their neutral position and add their inertia to the chain. False drops them.
        """
        return self._edited(editing.subchain(self.model, base, tip, fold))

    def placed(self, pose: ArrayLike) -> Robot:
        """Return a copy with its base at `pose` (4, 4) in the world.

        The world is the new base frame, in which poses, Jacobians and gravity are expressed. The former base remains as
        a frame.
        """
        return self._edited(editing.placed(self.model, pose))

    def with_frame(self, name: str, on: str, pose: ArrayLike | None = None) -> Robot:
        """Return a copy with one more frame, at `pose` (4, 4) relative to the link or frame `on`."""
        return self._edited(editing.with_frame(self.model, name, on, pose))

    def snapped(self, tolerance: float = 1e-5) -> Robot:
        """Return a copy whose joint directions are rounded to exact axes where they nearly are, which saves operations.

        Inertias and positions stay. `.snapping` of the new robot has the angle (rad) by which each changed joint was
        rotated.

        Parameters
        ----------
        tolerance : float
            Entries of joint rotations and axes this close to 0, 1 and -1 are rounded.
        """
        model, moved = snapped(self.model, tolerance)
        robot = self._edited(model)
        if robot is not self:
            robot.snapping = moved
        return robot

    def to_urdf(
        self, original: str | os.PathLike[str] | bool | None = None, *, path: str | os.PathLike[str] | None = None
    ) -> str:
        """Return the robot as URDF text, and write it to `path`.

        URDF cannot store gravity. Motor inertia and torque offsets become attributes specific to linksweep. A link
        whose frame is not at its joint becomes a body "<link>_body" at the joint, with that frame attached.

        Parameters
        ----------
        original : path, or True
            The URDF file from which the robot was loaded, which `True` finds by itself. Its text is returned with this
            robot's inertias, damping, friction, motor inertias, limits, joint origins and further frames; visuals,
            collisions, materials, transmissions, comments and the order stay. Inertias of links on fixed joints are
            merged into their parent where they differ. Motor inertia is also written as `rotor_inertia` of <dynamics>
            and into actuators, for Drake. A floating base is not part of the file.
        path : path
            The .urdf file to write, if any. Relative file names of meshes are changed to fit its folder.
        """
        from ..model.formats.files import write_text

        if original is None or original is False:
            from ..model.formats.urdf import to_urdf

            return write_text(path, to_urdf(self.model))
        from ..model.formats.urdf_edit import edited_urdf

        model = self.model
        if original is True:
            if not model.source:
                raise ArgumentError(f"{model.name} was not loaded from a file; name the URDF file as original=.")
            original = model.source
        if model.links[0].joint.name == editing.ROOT_JOINT and model.base == editing.WORLD and len(model.links) > 1:
            model = editing.with_base(model, "fixed")
        return write_text(path, edited_urdf(model, original, None if path is None else os.path.dirname(path) or "."))

    def to_mjcf(self, path: str | os.PathLike[str] | None = None) -> str:
        """Return the robot as MJCF text for MuJoCo, and write it to `path`.

        It has bodies, joints with limits, armature, damping and friction, a motor for each actuated joint, frames as
        sites, and equalities for constraints and mimic joints. Geometry is not written. MuJoCo orders coordinates
        depth first: convert them with `linksweep.conventions`.

        Parameters
        ----------
        path : path
            The .xml file to write, if any.
        """
        from ..model.formats.files import write_text
        from ..model.formats.mjcf_write import to_mjcf

        return write_text(path, to_mjcf(self.model))

    def to_dh(self, convention: str | None = None, tip: str | None = None) -> DHTable:
        """Return the Denavit-Hartenberg table of a serial chain, as arguments of `Robot.from_dh`.

        Parameters
        ----------
        convention : "modified" or "standard"
            Required.
        tip : name of a frame
            The frame that becomes "tool" of the table. By default "tool", or the last frame of the last link.
        """
        from ..model.formats.dh import to_dh

        return to_dh(self.model, convention, tip)

    # ---- Coordinates

    def neutral(self) -> np.ndarray:
        """Return the neutral coordinates (nq,): zeros and identity quaternions."""
        return coordinates.neutral(self.canonical)

    def random(self, rng: np.random.Generator) -> np.ndarray:
        """Return random coordinates (nq,): within finite limits, angles in [-pi, pi], uniform rotations."""
        return coordinates.random(self.canonical, self.model, rng)

    def normalize(self, q: ArrayLike) -> np.ndarray:
        """Return coordinates (..., nq) with quaternions normalized to length 1."""
        return coordinates.normalize(self.canonical, q)

    def integrate(self, q: ArrayLike, v: ArrayLike, dt: ArrayLike = 1.0) -> np.ndarray:
        """Return coordinates (..., nq) after moving from q with constant velocity v (..., nv) for dt (...) seconds."""
        return coordinates.integrate(self.canonical, q, v, dt)

    def difference(self, q0: ArrayLike, q1: ArrayLike) -> np.ndarray:
        """Return the constant velocity (..., nv) that leads from q0 to q1 in 1 s: the inverse of `integrate`."""
        return coordinates.difference(self.canonical, q0, q1)

    def coordinate_rates(self, q: ArrayLike, v: ArrayLike) -> np.ndarray:
        """Return dq/dt (..., nq) for velocities v (..., nv): q' = Omega(q) v, (b.3)-(b.5) of Rodriguez & Kreutz."""
        return coordinates.coordinate_rates(self.canonical, q, v)

    def pack(
        self, names: Mapping[str, ArrayLike] | Sequence[str], values: ArrayLike | None = None, *,
        default: ArrayLike | None = None, quantity: str = "q",
    ) -> np.ndarray:  # fmt: skip
        """Return a vector in the order of `joint_names` from values by joint name.

        Parameters
        ----------
        names : {joint: value} or names
            A mapping of joint names to values (...), with (..., n) for a joint of n coordinates. Or names in any order,
            as in a log; names of other joints are ignored. A dictionary in the form of a JointState message, with
            `name`, `position`, `velocity` and `effort`, is accepted too.
        values : (..., len(names))
            The values of `names` if it is a list.
        default : number, or (..., nq) or (..., nv)
            Values of the other joints. By default every joint is required.
        quantity : "q", "qd", "qdd" or "tau"
            Positions have nq components, the others nv.

        Returns
        -------
        (..., nq) or (..., nv) array
        """
        return properties.packed(self.model, names, values, default, quantity)

    def unpack(self, vector: ArrayLike, quantity: str = "q") -> dict[str, np.ndarray]:
        """Return {joint: value} of coordinates (..., nq), or of another quantity (..., nv): the inverse of `pack`.

        A joint with n > 1 coordinates, such as a floating base, has an array (..., n).
        """
        return properties.unpacked(self.model, vector, quantity)

    # ---- Dynamics

    @overload
    def inverse_dynamics(
        self, q: ArrayLike, qd: ArrayLike, qdd: ArrayLike, method: str | None = None, f_ext: Named | None = None,
        out: np.ndarray | None = None, dissipation: bool = False, base_motion: ArrayLike | None = None,
        details: Literal[False] = False, **closed: Unpack[Choice],
    ) -> np.ndarray: ...  # fmt: skip
    @overload
    def inverse_dynamics(
        self, q: ArrayLike, qd: ArrayLike, qdd: ArrayLike, method: str | None = None, f_ext: Named | None = None,
        out: np.ndarray | None = None, dissipation: bool = False, base_motion: ArrayLike | None = None, *,
        details: Literal[True], **closed: Unpack[Choice],
    ) -> tuple[np.ndarray, Details]: ...  # fmt: skip
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
        **closed: Unpack[Choice],
    ) -> np.ndarray | tuple[np.ndarray, Details]:
        """Return the joint torques and forces that produce the accelerations qdd (RNEA and equivalent methods).

        Parameters
        ----------
        q : (..., nq)
            Coordinates.
        qd, qdd : (..., nv)
            Velocities and accelerations.
        method : one of `methods("inverse_dynamics")`
            By default the first of them (with `details`, "newton_euler").
        f_ext : (..., links, 6), or {frame: (..., 6)}
            External wrenches [moment; force] in each link's (or that) frame at its origin.
        out : (..., nv)
            Array for the result.
        dissipation : bool
            Include damping, Coulomb friction and torque offsets.
        base_motion : (..., 9)
            Angular velocity, angular acceleration and linear acceleration of the base, in its frame.
        details : bool
            Also return the intermediate quantities of the method, by name.
        **closed
            With constraints between frames: further options of `closed_inverse_dynamics`.

        Returns
        -------
        tau : (..., nv)
            In N m and N. With `details`, a tuple (tau, details).

        Examples
        --------
        >>> import linksweep as ls
        >>> robot = ls.robots.planar(1, length=2.0)
        >>> robot.inverse_dynamics([0.0], [0.0], [0.0]).round(2)
        array([9.81])
        """
        if f_ext is None and base_motion is None and dissipation is False and details is False and not closed:
            if method is None and (plain := self._core.calls[settings.backend].get("inverse_dynamics")) is not None:
                return plain(q, qd, qdd) if out is None else plain(q, qd, qdd, out=out)  # of a control loop
            if not self.model.constraints:
                return self._call("inverse_dynamics", (q, qd, qdd), method, None, out)
        details = checked_flag("details", details)
        if closed or self.model.constraints:
            for name in closed:
                if name not in Choice.__annotations__:
                    raise TypeError(f"Robot.inverse_dynamics() got an unexpected keyword argument {name!r}")
            given = (q, qd, qdd, f_ext, dissipation, base_motion)
            if details:
                return self.closed_inverse_dynamics(*given, details=True, method=method, out=out, **closed)
            return self.closed_inverse_dynamics(*given, method=method, out=out, **closed)
        inner = self._core.details if details else self._call
        return inner("inverse_dynamics", (q, qd, qdd), method, extras(f_ext, dissipation, base_motion), out)

    @overload
    def forward_dynamics(
        self, q: ArrayLike, qd: ArrayLike, tau: ArrayLike, method: str | None = None, f_ext: Named | None = None,
        out: np.ndarray | None = None, dissipation: bool = False, base_motion: ArrayLike | None = None,
        details: Literal[False] = False,
    ) -> np.ndarray: ...  # fmt: skip
    @overload
    def forward_dynamics(
        self, q: ArrayLike, qd: ArrayLike, tau: ArrayLike, method: str | None = None, f_ext: Named | None = None,
        out: np.ndarray | None = None, dissipation: bool = False, base_motion: ArrayLike | None = None, *,
        details: Literal[True],
    ) -> tuple[np.ndarray, Details]: ...  # fmt: skip
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
    ) -> np.ndarray | tuple[np.ndarray, Details]:
        """Return the joint accelerations that torques produce (ABA and equivalent methods).

        Parameters
        ----------
        q : (..., nq)
        qd, tau : (..., nv)
            Velocities, and joint torques and forces (N m, N).
        method : one of `methods("forward_dynamics")`
            By default the first of them (with `details`, "filter_smoother").
        f_ext, out, dissipation, base_motion, details
            As in `inverse_dynamics`.

        Returns
        -------
        qdd : (..., nv)
            In rad/s^2 and m/s^2. With `details`, a tuple (qdd, details).

        Warns
        -----
        SingularWarning
            If a joint moves next to no inertia, or if constraints are singular, in some configuration.
        """
        if f_ext is None and base_motion is None and dissipation is False and details is False:
            return self._call("forward_dynamics", (q, qd, tau), method, None, out)
        more, details = extras(f_ext, dissipation, base_motion), checked_flag("details", details)
        if details and self.model.constraints:
            return self._closed.forward_details((q, qd, tau), method, more, out)
        return (self._core.details if details else self._call)("forward_dynamics", (q, qd, tau), method, more, out)

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
        """Return the torques (..., nv) at zero acceleration: centrifugal, Coriolis, gravity and external forces.

        Parameters
        ----------
        q, qd : (..., nq), (..., nv)
        method, f_ext, out, dissipation, base_motion
            As in `inverse_dynamics`.
        """
        return self._call("bias_forces", (q, qd), method, extras(f_ext, dissipation, base_motion), out)

    def gravity_forces(self, q: ArrayLike, method: str | None = None, out: np.ndarray | None = None) -> np.ndarray:
        """Return the torques (..., nv) that compensate gravity and springs between frames at q (..., nq).

        They are the gradient of `potential_energy`.
        """
        return self._call("gravity_forces", (q,), method, None, out)

    def mass_matrix(self, q: ArrayLike, method: str | None = None, out: np.ndarray | None = None) -> np.ndarray:
        """Return the joint-space mass matrix (..., nv, nv), including armature, at q (..., nq) (CRBA)."""
        return self._call("mass_matrix", (q,), method, None, out)

    def mass_matrix_inverse(self, q: ArrayLike, method: str | None = None, out: np.ndarray | None = None) -> np.ndarray:
        """Return the inverse of the mass matrix (..., nv, nv) at q (..., nq), computed without M."""
        return self._call("mass_matrix_inverse", (q,), method, None, out)

    def coriolis_matrix(
        self, q: ArrayLike, qd: ArrayLike, method: str | None = None, out: np.ndarray | None = None
    ) -> np.ndarray:
        """Return the Coriolis matrix C (..., nv, nv), from Christoffel symbols for 1-DOF joints.

        C qd are the Coriolis and centrifugal forces, and dM/dt - 2 C is skew-symmetric. For a floating base and ball
        joints this holds for velocities in the body frame.
        """
        return self._call("coriolis_matrix", (q, qd), method, None, out)

    def influence(self, q: ArrayLike, point: str | tuple[str, ArrayLike]) -> tuple[np.ndarray, np.ndarray]:
        """Return the first- and second-order kinematic influence coefficients (Jacobian and Hessian) of a point.

        Parameters
        ----------
        q : (..., nq)
        point : name of a frame, or (frame, offset)
            The origin of the frame, or a point with offset (..., 3) in that frame (m).

        Returns
        -------
        G, H : (..., 6, nv), (..., 6, nv, nv)
            Rows are [angular; linear] along the base axes. The velocity of the point is G qd, its acceleration
            G qdd + qd^T H qd. H[..., j, k] is the derivative of G[..., k] with respect to coordinate j.
        """
        frame, offset = point if isinstance(point, tuple) and len(point) == 2 else (point, np.zeros(3, np.float32))
        parts = self._core.parts([("first_influence", frame), ("second_influence", frame)])
        return self._core.function(*parts)(q, offset)

    def explicit_model(self, q: ArrayLike, method: str | None = None) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return the coefficients of the explicit equations of motion tau_i = I*_ij qdd_j + qd_j P*_ijk qd_k + g_i.

        Parameters
        ----------
        q : (..., nq)
        method : "augmented_bodies" (default) or "direct"

        Returns
        -------
        I*, P*, g : (..., nv, nv), (..., nv, nv, nv), (..., nv)
        """
        # one method, so that I* and P* share their work
        chosen = default_method("inertia_power", self._core.canonical) if method is None else method
        parts = self._core.parts(("effective_inertia", "inertia_power"), chosen)
        gravity = "influence" if chosen == "augmented_bodies" else None
        return self._core.function(*parts, *self._core.parts(["gravity_forces"], gravity))(q)

    def articulated_inertia(self, q: ArrayLike, method: str | None = None, out: np.ndarray | None = None) -> np.ndarray:
        """Return the articulated-body inertia P (..., links, 6, 6) of each link, in the order of `link_names`.

        It is the inertia of a link and all links that it carries, with their joints free and its own joint locked.
        P is [[J, Y], [Y^T, rho]] at the origin and along the axes of the link frame: an inertia J about the origin, a
        direction-dependent mass rho, and Y = C rho with the center of mass C.

        Parameters
        ----------
        q : (..., nq)
        method : "riccati" (default; Rodriguez 1987, (37)-(43)) or "articulated_parameters" ((84))
        """
        return self._call("articulated_inertia", (q,), method, None, out)

    def factor(self, q: ArrayLike) -> Factor:
        """Return the factorization (I + H Phi L) D (I + H Phi L)^T of M, which solves systems with M: see `Factor`."""
        return factor(self._core, q)

    # ---- Functions and methods

    @property
    def functions(self) -> tuple[str, ...]:
        """Names of all functions that `compile` accepts."""
        return PUBLIC + CLOSED if self.model.constraints else PUBLIC

    def methods(self, function: str) -> tuple[str, ...]:
        """Return the names of the methods that can compute a function for this robot; the first is the default."""
        return methods_of(self._core, function)

    def compile(
        self, functions: Items | Computation, *, method: str | None = None, f_ext: bool = False,
        dissipation: bool = False, base_motion: bool = False, dtype: DTypeLike | None = None,
        threads: int | None = None, rolled: bool | None = None, backend: str | None = None,
        base_parameters: bool | None = None, parameters: Sequence[str] = (),
    ) -> CompiledFunction:  # fmt: skip
        """Return a compiled function of one result, or of several that share their work.

        The arguments of the function are listed in its attribute `inputs`.

        Parameters
        ----------
        functions : one of `functions`, or a list
            With frame and reference where needed, as ("jacobian", "tool") or ("jacobian", "tool", "local"); or
            ("derivative", one of these, input). A Computation is compiled as it is.
        method : one of `methods(function)`
        f_ext, base_motion : bool
            Take them as further arguments.
        dissipation : bool
            Include damping, Coulomb friction and torque offsets.
        dtype : "float64" or "float32"
            By default that of the arguments.
        threads : int
            Number of threads for large batches. By default LINKSWEEP_THREADS, or 1.
        rolled : bool
            Generate loops over the links instead of unrolled code. By default this depends on the size of the robot.
        backend : "llvm" or "interpreter"
        base_parameters : bool
            Use regrouped inertias, which need fewer operations. By default wherever possible.
        parameters : names
            Parameters of the robot that become further arguments, such as ("payload",) or ("payload:tool", "gravity"):
            see docs/parameters.md. A payload is the array (10,) of `linksweep.body`.

        Returns
        -------
        CompiledFunction

        Raises
        ------
        ArgumentError
            If a function, frame, method or parameter does not exist for this robot.

        Examples
        --------
        >>> import linksweep as ls
        >>> robot = ls.robots.planar(2)
        >>> both = robot.compile(["mass_matrix", ("pose", "tool")], backend="interpreter")
        >>> M, T = both([0.1, 0.2])
        >>> M.shape, T.shape
        ((2, 2), (4, 4))
        """
        thread_count = default_threads() if threads is None else checked_threads(threads)
        how = (checked_dtype(dtype), thread_count, chosen_backend(backend))
        options = {
            "method": method, "f_ext": f_ext, "dissipation": dissipation, "base_motion": base_motion, "rolled": rolled,
            "base_parameters": base_parameters, "parameters": parameters,
        }  # fmt: skip

        def make() -> CompiledFunction:
            if not isinstance(functions, Computation):
                computation = self.recipe(functions, **options)
            elif changed := [name for name, value in options.items() if value is not None and value not in (False, ())]:
                raise ArgumentError(
                    f"compile: {changed[0]} is an option of the functions of a robot; {functions.name} is a "
                    f"Computation, which is compiled as it is."
                )
            else:
                computation = functions
            return compiled(computation, *how)

        key = (argument_key(functions), *map(argument_key, options.values()), *how)
        return self._core.recently_compiled(key, make)

    def recipe(
        self, functions: Items, *, method: str | None = None, rolled: bool | None = None,
        base_parameters: bool | None = None, parameters: Sequence[str] = (), **options: Unpack[Flags],
    ) -> Together:  # fmt: skip
        """Return the checked computation behind `compile`, which can be traced and counted without compiling it.

        Parameters
        ----------
        functions, method, rolled, base_parameters, parameters, **options
            As in `compile`.
        """
        items = listed(functions)
        if not items:
            raise ArgumentError("compile got an empty list, expected at least one of robot.functions.")
        regrouped = None if base_parameters is None else checked_flag("base_parameters", base_parameters)
        sets = parameter_sets(self._core, parameters)
        return program(self._core, items, method, rolled=rolled, base_parameters=regrouped, parameters=sets, **options)

    def operation_count(
        self, function: Items, method: str | None = None, base_parameters: bool | None = None,
        **options: Unpack[TracingOptions],
    ) -> Counts:  # fmt: skip
        """Return the number of operations for one sample, as Counts(mul, add, div, sqrt, trig).

        As in the papers, sines and cosines are counted separately, and negations and operations on constants are free.

        Parameters
        ----------
        function, method, base_parameters, **options
            As in `compile`.
        """
        return count(self.recipe(function, method=method, base_parameters=base_parameters, **options).trace())

    # ---- Kinematics, momentum and energy

    def pose(self, q: ArrayLike, frame: str, out: np.ndarray | None = None) -> np.ndarray:
        """Return the pose of a frame in the base frame, a homogeneous matrix (..., 4, 4), at q (..., nq)."""
        return self._call(("pose", frame), (q,), None, None, out)

    def poses(self, q: ArrayLike, out: np.ndarray | None = None) -> np.ndarray:
        """Return the poses of all frames, homogeneous matrices (..., frames, 4, 4) in the order of `frame_names`."""
        return self._call("poses", (q,), None, None, out)

    def forward_kinematics(self, q: ArrayLike, frame: str | None = None, out: np.ndarray | None = None) -> np.ndarray:
        """Return the pose of a frame, or of all frames: the same as `pose` and `poses`.

        Parameters
        ----------
        q : (..., nq)
        frame : one of `frame_names`
            All frames by default.
        out : (..., 4, 4) or (..., frames, 4, 4)
            Array for the result.

        Returns
        -------
        (..., 4, 4) or (..., frames, 4, 4)
            Homogeneous matrices in the base frame.

        Examples
        --------
        >>> import linksweep as ls
        >>> ls.robots.planar(2).forward_kinematics([0.0, 0.0], "tool")[:3, 3]
        array([2., 0., 0.])
        """
        return self.poses(q, out) if frame is None else self.pose(q, frame, out)

    def jacobian(
        self,
        q: ArrayLike,
        frame: str,
        out: np.ndarray | None = None,
        *,
        reference: str = "world_aligned",
        point: ArrayLike | None = None,
    ) -> np.ndarray:
        """Return the geometric Jacobian (..., 6, nv) of a frame: J qd is its velocity [angular; linear].

        It is zero for a frame that no joint moves, such as the base. The end effector is `robot.ee`, which need not be
        the last of `frame_names`.

        Parameters
        ----------
        q : (..., nq)
        frame : one of `frame_names`
        out : (..., 6, nv)
            Array for the result.
        reference : "world_aligned", "local" or "world"
            Velocity of the frame's origin along the base axes; of its origin along its own axes; or of the point at the
            base's origin along the base axes.
        point : (..., 3)
            A point in the frame (m) instead of its origin. It makes no difference for "world".
        """
        if point is None:
            return self._call(("jacobian", frame, reference), (q,), None, None, out)
        return self._call(("point_jacobian", frame, reference), (q, point), None, None, out)

    def jacobian_derivative(
        self,
        q: ArrayLike,
        qd: ArrayLike,
        frame: str,
        out: np.ndarray | None = None,
        *,
        reference: str = "world_aligned",
        point: ArrayLike | None = None,
    ) -> np.ndarray:
        """Return the time derivative (..., 6, nv) of `jacobian` for joint velocities qd (..., nv)."""
        if point is None:
            return self._call(("jacobian_derivative", frame, reference), (q, qd), None, None, out)
        return self._call(("point_jacobian_derivative", frame, reference), (q, qd, point), None, None, out)

    def jacobians(self, q: ArrayLike, out: np.ndarray | None = None, *, reference: str = "world_aligned") -> np.ndarray:
        """Return the Jacobians (..., frames, 6, nv) of all frames, in the order of `frame_names`: see `jacobian`."""
        return self._call(("jacobians", reference), (q,), None, None, out)

    def frame_velocity(
        self,
        q: ArrayLike,
        qd: ArrayLike,
        frame: str,
        out: np.ndarray | None = None,
        *,
        reference: str = "world_aligned",
    ) -> np.ndarray:
        """Return the velocity (..., 6) of a frame, [angular; linear]: the Jacobian of the same reference times qd."""
        return self._call(("frame_velocity", frame, reference), (q, qd), None, None, out)

    def frame_acceleration(
        self,
        q: ArrayLike,
        qd: ArrayLike,
        qdd: ArrayLike,
        frame: str,
        out: np.ndarray | None = None,
        *,
        reference: str = "world_aligned",
    ) -> np.ndarray:
        """Return the acceleration (..., 6) of a frame: the time derivative of `frame_velocity`, without gravity."""
        return self._call(("frame_acceleration", frame, reference), (q, qd, qdd), None, None, out)

    def jacobian_bias(
        self,
        q: ArrayLike,
        qd: ArrayLike,
        frame: str,
        out: np.ndarray | None = None,
        *,
        reference: str = "world_aligned",
    ) -> np.ndarray:
        """Return dJ/dt qd (..., 6), the acceleration of a frame at zero joint acceleration."""
        return self._call(("jacobian_bias", frame, reference), (q, qd), None, None, out)

    def center_of_mass(self, q: ArrayLike, out: np.ndarray | None = None) -> np.ndarray:
        """Return the center of mass (..., 3) of all moving links in the base frame (m)."""
        return self._call("center_of_mass", (q,), None, None, out)

    def momentum(
        self, q: ArrayLike, qd: ArrayLike, out: np.ndarray | None = None, *, about: str = "center_of_mass"
    ) -> np.ndarray:
        """Return the momentum (..., 6) of all moving links, [angular; linear], along the base axes.

        Parameters
        ----------
        q, qd : (..., nq), (..., nv)
        about : "center_of_mass" or "base"
            Reference point of the angular part: the center of mass (centroidal momentum), or the base's origin.
        """
        return self._call(("momentum", about), (q, qd), None, None, out)

    def centroidal_momentum_matrix(self, q: ArrayLike, out: np.ndarray | None = None) -> np.ndarray:
        """Return the matrix (..., 6, nv) that maps qd to the centroidal momentum."""
        return self._call("centroidal_momentum_matrix", (q,), None, None, out)

    def kinetic_energy(self, q: ArrayLike, qd: ArrayLike, out: np.ndarray | None = None) -> np.ndarray:
        """Return the kinetic energy (...), qd^T M qd / 2 including motor inertias, in J."""
        return self._call("kinetic_energy", (q, qd), None, None, out)

    def potential_energy(self, q: ArrayLike, out: np.ndarray | None = None) -> np.ndarray:
        """Return the potential energy (...) of gravity and springs in J; gravity counts from the base's origin."""
        return self._call("potential_energy", (q,), None, None, out)

    # ---- Inverse kinematics

    def inverse_kinematics(
        self, target: ArrayLike, frame: str, q0: ArrayLike | None = None, **options: Unpack[SearchOptions]
    ):
        """Return coordinates at which a frame has the target poses: see `linksweep.motion.inverse_kinematics`.

        Parameters
        ----------
        target : (..., 4, 4)
            Poses in the base frame.
        frame : one of `frame_names`
        q0 : (..., nq)
            Initial guess.
        **options
            position_only, limits, tolerance, restarts, iterations, seed.

        Returns
        -------
        InverseKinematics
            With fields q, solved, reason and errors. A target out of reach is not an error.
        """
        from ..motion import inverse_kinematics

        return inverse_kinematics(self, target, frame, q0, **options)

    def inverse_kinematics_branches(
        self, target: ArrayLike, frame: str, q0: ArrayLike | None = None, *, limits: bool = True,
        tolerance: float = 1e-10,
    ):  # fmt: skip
        """Return all coordinates at which a frame has the target poses, in closed form.

        For 6-DOF arms with a spherical wrist or three parallel axes: see
        `linksweep.motion.inverse_kinematics_branches`.

        Parameters
        ----------
        target : (..., 4, 4)
            Poses in the base frame.
        frame : one of `frame_names`
        q0 : (..., nq)
            Preferred coordinates, which select whole turns of joints and one of a family of solutions.
        limits : bool
            Omit solutions outside the joint limits.
        tolerance : float
            In m and rad.
        """
        from ..motion import inverse_kinematics_branches

        return inverse_kinematics_branches(self, target, frame, q0, limits=limits, tolerance=tolerance)

    def follow(
        self, path: FramePath, frame: str, times: ArrayLike, q0: ArrayLike | None = None,
        **options: Unpack[FollowOptions],
    ):  # fmt: skip
        """Return the joint trajectory that moves a frame along a path: see `linksweep.motion.follow`.

        Parameters
        ----------
        path : Line, Arc, or a function of times that returns a FrameMotion
        frame : one of `frame_names`
        times : (k,)
            Increasing times (s).
        q0 : (nq,)
            Initial guess for the solution at the first time.
        **options
            position_only, limits, tolerance.
        """
        from ..motion import follow

        return follow(self, frame, path, times, q0, **options)

    # ---- Operational space

    def operational_inertia_inverse(
        self,
        q: ArrayLike,
        frame: str | Sequence[str],
        out: np.ndarray | None = None,
        *,
        reference: str = "world_aligned",
    ) -> np.ndarray:
        """Return Omega = J M^-1 J^T (..., 6, 6): the acceleration of a frame per unit wrench at it.

        It is computed by recursion and exists in every configuration.

        Parameters
        ----------
        q : (..., nq)
        frame : one of `frame_names`, or several
            m frames give (..., 6 m, 6 m) with the coupling blocks.
        reference : as in `jacobian`
        """
        return self._call(("operational_inertia_inverse", as_key(frame), reference), (q,), None, None, out)

    def operational_inertia(
        self,
        q: ArrayLike,
        frame: str | Sequence[str],
        damping: float | None = None,
        *,
        reference: str = "world_aligned",
    ) -> np.ndarray:
        """Return the operational-space inertia Lambda = (J M^-1 J^T)^-1 (..., 6, 6) of a frame.

        Parameters
        ----------
        q, frame, reference
            As in `operational_inertia_inverse`.
        damping : float
            Added to the diagonal of Omega.

        Raises
        ------
        SingularError
            Without damping, in a singular configuration, and for fewer than six joints.
        """
        omega = self.operational_inertia_inverse(q, frame, reference=reference)
        return operational_inertia(omega, frame, damping)

    def operational_space(
        self, q: ArrayLike, qd: ArrayLike, frames: str | Sequence[str], damping: float | None = None, *,
        reference: str = "world_aligned",
    ) -> OperationalSpace:  # fmt: skip
        """Return the operational-space dynamics of one or several frames, for operational-space control (OSC).

        Parameters
        ----------
        q, qd : (..., nq), (..., nv)
        frames, damping, reference
            As in `operational_inertia`. Without damping, quantities that need Lambda are NaN at singular
            configurations.

        Returns
        -------
        OperationalSpace
        """
        return operational_space(self._core, q, qd, frames, damping, reference)

    def manipulability(
        self, q: ArrayLike, frame: str, *, rows: str = "all", reference: str = "world_aligned"
    ) -> np.ndarray:
        """Return Yoshikawa's manipulability measure (...), sqrt(det(J J^T)).

        It is 0 at a singular configuration, and with fewer joints than rows.

        Parameters
        ----------
        q : (..., nq)
        frame, reference
            As in `jacobian`.
        rows : "all", "angular" or "linear"
            All six rows of J, which mixes radians and meters, or three of them.
        """
        return manipulability(self.jacobian(q, frame, reference=reference), rows)

    # ---- Closed chains

    @lazy
    def _closed(self) -> ClosedChain:
        return ClosedChain(self._core)

    @property
    def constraints(self) -> tuple[Constraint, ...]:
        """Constraints between frames: see `with_constraints`."""
        return self.model.constraints

    def with_constraints(self, constraints: Constraint | Sequence[Constraint]) -> Robot:
        """Return a copy with further constraints between its frames, for closed kinematic chains.

        The coordinates stay the same. `forward_dynamics`, `inverse_dynamics` and `simulate` include the constraints.
        Mass matrix, bias forces and operational space remain those of the kinematic tree.

        Parameters
        ----------
        constraints : Constraint, or several
            See `linksweep.Constraint`.
        """
        more = checked_connections(self.model, constraints, Constraint)
        return self._edited(replace(self.model, constraints=(*self.model.constraints, *more)))

    def without_constraints(self) -> Robot:
        """Return a copy without constraints: the kinematic tree. Springs stay."""
        return self._edited(replace(self.model, constraints=()) if self.model.constraints else self.model)

    def with_springs(self, springs: Spring | Sequence[Spring]) -> Robot:
        """Return a copy with further springs and dampers between its frames: see `linksweep.Spring`.

        They act in inverse and forward dynamics, bias forces, gravity forces and potential energy.
        """
        more = checked_connections(self.model, springs, Spring)
        return self._edited(replace(self.model, springs=(*self.model.springs, *more)))

    def constraint_error(self, q: ArrayLike, out: np.ndarray | None = None) -> np.ndarray:
        """Return the constraint residuals (..., rows), in m and in rad along the axes of frame b."""
        return self._call("constraint_error", (q,), None, None, out)

    def constraint_jacobian(self, q: ArrayLike, out: np.ndarray | None = None) -> np.ndarray:
        """Return the constraint Jacobian K (..., rows, nv): the constraints require K qd = 0."""
        return self._call("constraint_jacobian", (q,), None, None, out)

    def constraint_bias(self, q: ArrayLike, qd: ArrayLike, out: np.ndarray | None = None) -> np.ndarray:
        """Return k = dK/dt qd (..., rows): the constraints require K qdd + k = 0."""
        return self._call("constraint_bias", (q, qd), None, None, out)

    def constraint_forces(
        self,
        q: ArrayLike,
        qd: ArrayLike,
        tau: ArrayLike,
        f_ext: Named | None = None,
        dissipation: bool = False,
        base_motion: ArrayLike | None = None,
    ) -> np.ndarray:
        """Return the wrench of each constraint on its frame a (..., constraints, 6).

        It is [moment; force] at the origin of frame a along the base axes. Arguments are those of `forward_dynamics`.
        """
        return self._call("constraint_forces", (q, qd, tau), None, Extras(f_ext, dissipation, base_motion))

    def project(self, q: ArrayLike, tolerance: float = CLOSES, iterations: int = 100) -> np.ndarray:
        """Return coordinates (..., nq) that satisfy the constraints, by damped Gauss-Newton steps from q.

        Parameters
        ----------
        q : (..., nq)
        tolerance : float
            Largest constraint residual (m, rad). Redundant constraints with values rounded in a file may not reach the
            default.
        iterations : int
            Maximum number of steps.

        Raises
        ------
        ArgumentError
            If no such configuration is found, with the remaining residual.
        """
        return self._closed.project(q, tolerance, iterations)

    def project_velocity(self, q: ArrayLike, qd: ArrayLike, out: np.ndarray | None = None) -> np.ndarray:
        """Return the velocities (..., nv) consistent with the constraints and nearest to qd in the metric M.

        They are the velocities after an impact.
        """
        return self._call("allowed_rates", (q, qd), None, None, out)

    def project_acceleration(self, q: ArrayLike, qd: ArrayLike, qdd: ArrayLike) -> np.ndarray:
        """Return the accelerations (..., nv) consistent with the constraints, nearest to qdd in the metric M."""
        return self.forward_dynamics(q, qd, self._closed.tree_torques(q, qd, qdd))

    def mobility(self, q: ArrayLike, tolerance: float | None = None) -> Mobility:
        """Return rank, degrees of freedom, redundant rows and singularity of the constraints at one configuration.

        Parameters
        ----------
        q : (nq,)
        tolerance : float
            Relative size of singular values below which a row counts as redundant. By default rows are judged as in
            forward dynamics and simulation.

        Returns
        -------
        Mobility

        Examples
        --------
        >>> import linksweep as ls
        >>> robot = ls.robots.four_bars()
        >>> robot.mobility(robot.project([1.5, 1.6, -1.5])).degrees_of_freedom
        1
        """
        return self._closed.mobility(q, tolerance)

    def tangent_basis(self, q: ArrayLike, near: ArrayLike | None = None) -> np.ndarray:
        """Return an orthonormal basis (nv, dof) of the velocities that the constraints allow at one configuration.

        Parameters
        ----------
        q : (nq,)
        near : (nv, dof)
            A previous basis. The new one is rotated within its span as near to it as possible, which makes it
            continuous along a motion without singular configurations. By default it is near the unit vectors of
            independent velocities, which are found by pivoting.
        """
        return self._closed.tangent_basis(q, near)

    def tangent_mass_matrix(self, q: ArrayLike, near: ArrayLike | None = None) -> np.ndarray:
        """Return the mass matrix (dof, dof) on `tangent_basis`."""
        basis = self.tangent_basis(q, near)
        return basis.T @ self.mass_matrix(q) @ basis

    @overload
    def closed_inverse_dynamics(
        self, q: ArrayLike, qd: ArrayLike, qdd: ArrayLike, f_ext: Named | None = None, dissipation: bool = False,
        base_motion: ArrayLike | None = None, details: Literal[False] = False, *, method: str | None = None,
        out: np.ndarray | None = None, **choice: Unpack[Choice],
    ) -> np.ndarray: ...  # fmt: skip
    @overload
    def closed_inverse_dynamics(
        self, q: ArrayLike, qd: ArrayLike, qdd: ArrayLike, f_ext: Named | None = None, dissipation: bool = False,
        base_motion: ArrayLike | None = None, *, details: Literal[True], method: str | None = None,
        out: np.ndarray | None = None, **choice: Unpack[Choice],
    ) -> tuple[np.ndarray, Details]: ...  # fmt: skip
    def closed_inverse_dynamics(
        self,
        q: ArrayLike,
        qd: ArrayLike,
        qdd: ArrayLike,
        f_ext: Named | None = None,
        dissipation: bool = False,
        base_motion: ArrayLike | None = None,
        details: bool = False,
        *,
        method: str | None = None,
        out: np.ndarray | None = None,
        actuated: Sequence[str] | None = None,
        weights: ArrayLike | None = None,
        preferred: ArrayLike | None = None,
        tolerance: float = 1e-6,
    ) -> np.ndarray | tuple[np.ndarray, Details]:
        """Return the joint torques (..., nv) that produce qdd under the constraints.

        Torques of passive joints are exactly 0. The function of `compile("inverse_dynamics")` raises no errors: it
        returns NaN where the motors cannot produce the motion, and replaces a qdd that violates the constraints by the
        nearest consistent one in the metric M.

        Parameters
        ----------
        q, qd, qdd, f_ext, dissipation, base_motion, method, out
            As in `inverse_dynamics`. The method is that for the kinematic tree.
        details : bool
            Return (tau, details) with the Lagrange multipliers.
        actuated : names
            The joints with motors. By default those of the robot.
        weights, preferred : (nv,)
            If the torques are not unique, they are nearest to `preferred` (0 by default) in the norm with these
            positive weights (1 by default).
        tolerance : float
            Largest relative residual of the constraints in qdd.

        Raises
        ------
        ArgumentError
            If qdd violates the constraints, or if the motors cannot produce it.
        """
        if checked_flag("details", details):
            refuse_out("inverse_dynamics", out)
        more, choice = Extras(f_ext, dissipation, base_motion), (actuated, weights, preferred, tolerance)
        results = self._closed.inverse_dynamics((q, qd, qdd), more, *choice, method, out)
        return (results["tau"], results) if details else results["tau"]

    # ---- Mimic joints

    @property
    def couplings(self) -> tuple[Coupling, ...]:
        """Couplings of mimic joints to their leaders."""
        return self.model.couplings

    def with_couplings(self, couplings: Coupling | Sequence[Coupling]) -> Robot:
        """Return a copy with mimic joints. It has the coordinates of the leaders only.

        Rows of f_ext remain those of `link_names`, all links.

        Parameters
        ----------
        couplings : Coupling, or several
            `linksweep.Coupling(joint, leader, multiplier, offset)` means q[joint] = multiplier q[leader] + offset. A
            leader may be a mimic joint itself.
        """
        return self._edited(coupled(self.model, [couplings] if isinstance(couplings, Coupling) else couplings))

    @lazy
    def uncoupled(self) -> Robot:
        """The robot without couplings, in which every joint is independent; itself, if it has no mimic joints."""
        return self._edited(replace(self.model, couplings=()) if self.model.couplings else self.model)

    def expand(self, q: ArrayLike) -> np.ndarray:
        """Return the coordinates (..., nq) of `uncoupled`: G q + c."""
        reduced = real_array("q", q, (..., self.nq))
        to_q, _, shift = self._expansion
        return reduced @ to_q.T.astype(reduced.dtype) + shift.astype(reduced.dtype)

    def expand_rates(self, v: ArrayLike) -> np.ndarray:
        """Return velocities or accelerations (..., nv) of `uncoupled`: G v."""
        reduced = real_array("v", v, (..., self.nv))
        return reduced @ self._expansion[1].T.astype(reduced.dtype)

    def reduce_forces(self, tau: ArrayLike) -> np.ndarray:
        """Return the joint forces (..., nv) that do the same work as those of `uncoupled`: G^T tau."""
        full = real_array("tau", tau, (..., len(self._expansion[1])))
        return full @ self._expansion[1].astype(full.dtype)

    @lazy
    def _expansion(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        return expansion(self.canonical)

    # ---- Inertial parameters

    @lazy
    def standard_parameters(self) -> np.ndarray:
        """Standard inertial parameters (11 links).

        Mass, first moment m c (3) and inertia about the origin (xx, yy, zz, xy, xz, yz) of each link in its frame, in
        the order of `link_names`; then the armature of each joint. Their names are `standard_parameter_names`.
        """
        return properties.standard_parameters(self.model)

    @property
    def standard_parameter_names(self) -> tuple[str, ...]:
        """Names of the entries of `standard_parameters`, such as "link1.m"."""
        return properties.standard_parameter_names(self.model)

    def regressor(
        self, q: ArrayLike, qd: ArrayLike, qdd: ArrayLike, out: np.ndarray | None = None, packed: bool = False
    ) -> np.ndarray:
        """Return the regressor Y (..., nv, 11 links): joint torques are Y @ standard_parameters.

        Parameters
        ----------
        q : (..., nq)
        qd, qdd : (..., nv)
        packed : bool
            Return only the structurally nonzero entries (..., count). `regressor_places` has their rows and columns.
        """
        if checked_flag("regressor: packed", packed) and self.model.couplings:
            raise ArgumentError(
                f"regressor: {self.name} has mimic joints, so its regressor cannot be packed: omit packed, or use "
                f"robot.uncoupled."
            )
        return self._call("packed_regressor" if packed else "regressor", (q, qd, qdd), None, None, out)

    @lazy
    def regressor_places(self) -> tuple[np.ndarray, np.ndarray]:
        """Row and column in Y of each entry of `regressor(..., packed=True)`."""
        return properties.regressor_places(self.canonical)

    def base_parameters(self, method: str = "symbolic") -> BaseParameters:
        """Return a minimal set of inertial parameters that determine the joint torques, for this base and gravity.

        Parameters
        ----------
        method : "symbolic" or "numeric"
            Khalil's regrouping rules followed by a QR decomposition, or the QR decomposition alone.
        """
        from .base_parameters import base_parameters

        return base_parameters(self, method)

    # ---- Derivatives

    @lazy
    def _derivatives(self) -> Derivatives:
        return Derivatives(self._core)

    def inverse_dynamics_derivatives(
        self,
        q: ArrayLike,
        qd: ArrayLike,
        qdd: ArrayLike,
        f_ext: Named | None = None,
        out: Partials | None = None,
        dissipation: bool = False,
        base_motion: ArrayLike | None = None,
    ) -> Partials:
        """Return the derivatives (..., nv, nv) of the torques with respect to q, qd and qdd (the mass matrix).

        Derivatives with respect to q are taken along joint velocities: entry [i, k] is the change of torque i per unit
        of velocity k, also for free and ball joints. f_ext is fixed to the links.

        Parameters
        ----------
        q, qd, qdd, f_ext, dissipation, base_motion
            As in `inverse_dynamics`.
        out : three arrays (..., nv, nv)
        """
        return self._derivatives.of_inverse((q, qd, qdd), extras(f_ext, dissipation, base_motion), out)

    def forward_dynamics_derivatives(
        self,
        q: ArrayLike,
        qd: ArrayLike,
        tau: ArrayLike,
        f_ext: Named | None = None,
        out: Partials | None = None,
        dissipation: bool = False,
        base_motion: ArrayLike | None = None,
    ) -> Partials:
        """Return the derivatives (..., nv, nv) of the accelerations with respect to q, qd and tau.

        The last is the inverse of M for a robot without constraints. They are -M^-1 times the derivatives of the
        torques: in one program, or for large robots with M inverted by NumPy. Arguments are those of
        `inverse_dynamics_derivatives`.
        """
        return self._derivatives.of_forward((q, qd, tau), extras(f_ext, dissipation, base_motion), out)

    # ---- Formulas

    @lazy
    def _formulas(self) -> Formulas:
        return Formulas(self._core)

    def explain(
        self,
        function: str,
        method: str | None = None,
        *,
        q: ArrayLike | None = None,
        qd: ArrayLike | None = None,
        qdd: ArrayLike | None = None,
        tau: ArrayLike | None = None,
        f_ext: Named | None = None,
        dissipation: bool = False,
        base_motion: ArrayLike | None = None,
        symbols: bool = False,
        parameters: Sequence[str] | None = None,
        limit: int | None = None,
    ) -> Explanation:
        """Explain a recursion link by link: equation, formula and values of each line, to print, show or save.

        For a robot with constraints, the torques of its kinematic tree are explained.

        Parameters
        ----------
        function : "inverse_dynamics", "forward_dynamics", "bias_forces" or "gravity_forces"
        method : one of `methods(function)`
            By default that of `details=True`.
        q, qd, qdd, tau : (nq,), (nv,)
            One sample. Neutral q and zeros by default.
        f_ext, dissipation, base_motion
            As in `inverse_dynamics`.
        symbols : bool
            Leave q, qd, qdd and tau as symbols, so that values are SymPy expressions, for small arms (extra
            `symbolic`).
        parameters, limit
            Parameters of the robot that are symbols too, and the size limit of expressions: see `symbolic`.
        """
        sample = {"q": q, "qd": qd, "qdd": qdd, "tau": tau}
        more = Extras(f_ext, dissipation, base_motion)
        return self._formulas.explain(function, method, sample, more, symbols, parameters, limit)

    def symbolic(
        self, function: Item, method: str | None = None, *, parameters: Sequence[str] | None = None,
        simplify: bool = False, numbers: str = "rational", names: str = "numbers", limit: int | None = None,
    ) -> Symbolic:  # fmt: skip
        """Return a function such as "mass_matrix" or ("jacobian", "tool") as SymPy expressions, for small arms.

        Parameters
        ----------
        function : as in `compile`
        method : one of `methods(function)`
            By default the one with the shortest expressions.
        parameters : names
            Parameters of the robot that become symbols, as in `compile`. By default "dimensions" (L1, m1, c1, I1, g)
            for a planar arm, and none for others.
        simplify : bool
            Collect terms as rational functions of sines and cosines.
        numbers : "rational" or "float"
            Constants as exact fractions or as floats.
        names : "numbers" or "joints"
            Symbols q1, qd1, qdd1, ... or q_<joint>.
        limit : int
            Largest number of operations (simplified: of terms); a larger expression raises `ArgumentError`.
        """
        if self.model.constraints and function == "inverse_dynamics":
            raise ArgumentError(
                f"symbolic: inverse_dynamics of {self.name} has constraints and is not a closed formula; use "
                f"robot.without_constraints() for the torques of the kinematic tree."
            )
        letters = self._formulas.letters(parameters)

        def program(function: Item, method: str | None) -> Program:
            recipe = self.recipe(function, method=method, parameters=letters, rolled=False, base_parameters=False)
            return recipe.trace()

        options = Options(simplify, numbers, LIMIT if limit is None else limit, NUMBERS_INSTEAD if letters else "")
        return self._formulas.symbolic(program, self.methods, function, method, names, letters, options)

    # ---- Singular configurations

    @property
    def singular_joints(self) -> tuple[str, ...]:
        """Joints that move no inertia in any configuration, so that their acceleration is undetermined."""
        return self._core.singular_joints

    @property
    def can_be_singular(self) -> bool:
        """False if the model proves that no joint is singular in any configuration (see `singular`, in float64)."""
        return self._core.least_ratio <= singular.threshold()

    def singular(self, q: ArrayLike) -> np.ndarray:
        """Return which joints (..., joints) are singular at q, in the order of `joint_names`.

        A singular joint moves almost no inertia, so its acceleration is undetermined and M is singular to working
        precision: its articulated inertia D is at most eps^(2/3) of the inertia that it carries.
        """
        return singular.singular(self._core, q)

    def warn_if_singular(self, what: str, q: ArrayLike, where: Callable[[tuple[int, ...]], str] | None = None) -> bool:
        """Issue one SingularWarning if any of the configurations q (..., nq) is singular; return whether it did.

        Parameters
        ----------
        what : str
            Beginning of the message.
        q : (..., nq)
        where : function
            Returns a description of a sample from its index.
        """
        return singular.warn_if_singular(self._core, what, q, where)

    # ---- External wrenches

    def wrench_from_torques(
        self,
        q: ArrayLike,
        qd: ArrayLike,
        tau: ArrayLike,
        frame: str,
        qdd: ArrayLike | None = None,
        *,
        noise: ArrayLike = 1.0,
        prior: ArrayLike | None = None,
        reference: str = "world_aligned",
        dissipation: bool = False,
    ) -> Wrench:
        """Estimate the external wrench on a frame from measured joint torques, by weighted least squares.

        Parameters
        ----------
        q, qd, tau : (..., nq), (..., nv), (..., nv)
        frame : one of `frame_names`
        qdd : (..., nv)
            Zero by default, for robots at rest or at constant velocity.
        noise : float or (nv,)
            Standard deviations of the torques.
        prior : float or (6,)
            Prior standard deviations of the wrench, needed if the joints do not observe all of it.
        reference : as in `jacobian`
        dissipation : bool
            Include damping, friction and torque offsets in the model.

        Returns
        -------
        Wrench
            wrench (..., 6): [moment; force] on the robot at the frame's origin, along the base axes or those of
            `reference`; covariance (..., 6, 6); mismatch (...): squared residual in standard deviations.
        """
        from .wrench import wrench_from_torques

        return wrench_from_torques(self, q, qd, tau, frame, qdd, noise, prior, reference, dissipation)

    def momentum_observer(self, dt: float, gain: float = 50.0, dissipation: bool = False) -> MomentumObserver:
        """Return a momentum observer of external torques, which needs no accelerations.

        Call it every dt with (q, qd, tau). All joint types are supported, including a floating base.

        Parameters
        ----------
        dt : float
            Sampling time (s).
        gain : float
            Observer bandwidth (1/s).
        dissipation : bool
            Include damping, friction and torque offsets in the model.
        """
        from .wrench import MomentumObserver

        return MomentumObserver(self, dt, gain, dissipation)

    # ---- Viewer

    def show(self, q: ArrayLike | None = None, t: ArrayLike | None = None, **options: Unpack[ViewOptions]):
        """Show the robot in the browser.

        Parameters
        ----------
        q : (nq,), or (samples, nq)
            A configuration, or a trajectory.
        t : (samples,)
            Times of a trajectory (s).
        **options
            See `linksweep.viewer.show`.
        """
        from ..viewer import show

        return show(self, q, t, **options)


def _restore(model: Model, snapping: Mapping[str, float]) -> Robot:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ModelWarning)  # already issued when the robot was first made
        robot = Robot(model)
    robot.snapping = snapping
    return robot


def checked_robot(robot: object, caller: str) -> Robot:
    """Return `robot`; raise ArgumentError if it is not a Robot."""
    if not isinstance(robot, Robot):
        raise ArgumentError(f"{caller} got {shown(robot)}, expected a Robot: use linksweep.load or linksweep.robots.")
    return robot
