"""Robot: a description and the methods that users call."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Literal, Unpack, overload

import numpy as np
from numpy.typing import ArrayLike, DTypeLike

from ..backends.symbolic import LIMIT, Options, Symbolic
from ..backends.threads import checked_threads, default_threads
from ..catalogue.defaults import default_method
from ..catalogue.details import Details
from ..catalogue.parameters import parameter_sets
from ..catalogue.requests import CLOSED, PUBLIC, methods_of
from ..compiled.function import CompiledFunction, Recipe, chosen_backend, make_function
from ..description.assembly import with_payload
from ..description.constraints import Constraint, Spring
from ..description.couplings import coupled
from ..description.model import Coupling, Frame, Model
from ..description.snapping import snapped
from ..description.tips import tips
from ..errors import ArgumentError, ModelWarning, warn_user
from ..mechanism import coordinates
from ..mechanism.canonical import CanonicalModel
from ..support import settings
from ..support.lazy import lazy
from ..support.messages import listing, shown
from ..support.numbers import Named, checked_dtype, checked_flag, real_vectors
from ..tracing.count import Counts, count
from ..tracing.program import Program
from . import editing, joint_numbers, parameters, singular
from .closed_chains import Choice, ClosedChain, Mobility, checked_ties
from .constraints import CLOSES
from .core import Core, Extras, Item, Items, extras, listed, refuse_out
from .couplings import expansion
from .derivatives import Derivatives, Slopes
from .factor import Factor, factor
from .formulas import NUMBERS_INSTEAD, Formulas
from .joint_numbers import JointLimits
from .operational_space import OperationalSpace, as_key, manipulability, operational_inertia, operational_space

if TYPE_CHECKING:
    from ..analysis.base_parameters import BaseParameters
    from ..analysis.wrench import MomentumObserver, Wrench
    from ..explain import Explanation
    from ..formats.dh_writer import DHTable
    from ..motion import Branches, Followed, InverseKinematics, Path
    from ..viewer import Viewer
    from .options import Flags, FollowOptions, Row, SearchOptions, TableOptions, TracingOptions, ViewOptions


class Robot:
    """A robot: a frozen description, and its dynamics as compiled functions of NumPy arrays.

    Arrays have any leading batch shape, written (...), and broadcast; float32 in gives float32 out. Coordinates follow
    `joint_names`, rows of f_ext follow `link_names`. SI units, radians, everything in the base frame unless said
    otherwise, spatial vectors [angular; linear] and [moment; force].

    Parameters
    ----------
    model : Model
        The description, from `linksweep.load`, `linksweep.robots` or `Robot.from_dh`.
    """

    snapping: Mapping[str, float] = MappingProxyType({})  # what `snapped` moved

    def __init__(self, model: Model):
        if not isinstance(model, Model):
            raise ArgumentError(
                f"Robot got {type(model).__name__}, expected a Model: use linksweep.load, linksweep.robots or "
                f"Robot.from_dh."
            )
        self.model = model
        self._core = Core.of(model)
        self._call = self._core.call  # every method below comes to machine code in one step
        if not self.has_inertia:
            warn_user(
                f"{model.name} has no mass or inertia at all: poses and Jacobians can be computed, dynamics cannot.",
                ModelWarning,
            )
        elif self.singular_joints:
            warn_user(
                f"{model.name}: no inertia moves with joint {listing(self.singular_joints, quoted=False)}, so its "
                f"acceleration is not determined; inverse dynamics works, forward dynamics does not.",
                ModelWarning,
            )

    @classmethod
    def from_dh(cls, rows: Iterable[Row], convention: str | None = None, **options: Unpack[TableOptions]) -> Robot:
        """A chain from Denavit-Hartenberg rows.

        Parameters
        ----------
        rows : one for each joint, base first
            (alpha, a, d, theta) in radians and metres, or a mapping of these and of `joint` ("revolute", ...), `name`,
            `link`, `mass`, `com`, `inertia` about it, `armature`, `damping`, `friction`, `torque_offset` and limits.
        convention : "modified" or "standard"
            Must be said.
        **options
            name, gravity (3,), base, tool and mount (a Placement each), base_inertial (an Inertial).
        """
        from ..formats.dh import from_dh

        return cls(from_dh(rows, convention, **options))

    # ---- What it is

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
        return self._core.joint_names

    @property
    def link_names(self) -> tuple[str, ...]:
        """The moving links, each in the place of the joint that carries it."""
        return self._core.link_names

    @property
    def frames(self) -> tuple[Frame, ...]:
        """Every named place: its name, the link that carries it, and where it stands on that link."""
        return self.model.frames

    @property
    def frame_names(self) -> tuple[str, ...]:
        """The names of `frames`, in their order."""
        return self._core.frame_names

    @property
    def gravity(self) -> tuple[float, float, float]:
        """The acceleration of things that fall, in the base frame (m/s^2)."""
        return self.model.gravity

    @property
    def tips(self) -> tuple[str, ...]:
        """The ends of its chains: the outermost frames of the moving links that carry no other one."""
        return tips(self.model)

    @property
    def tip(self) -> str:
        """The only one of `tips`; an error that lists them where there are several."""
        return joint_numbers.only_tip(self.model)

    @property
    def ee(self) -> str:
        """The frame of the tool, where there is only one that can be meant, see docs/conventions.md."""
        return joint_numbers.only_tool(self.model)

    @property
    def limits(self) -> JointLimits:
        """Bounds of each coordinate, lower and upper (nq,), and of each rate, velocity and effort (nv,)."""
        return joint_numbers.limits_of(self.model)

    @property
    def masses(self) -> np.ndarray:
        """The mass of each moving link (links,), in kg and in the order of `link_names`."""
        return np.array([self.model.links[i].inertial.mass for i in self.model.document_order], dtype=float)

    @property
    def damping(self) -> np.ndarray:
        """Viscous damping at each rate (nv,), N m s or N s/m."""
        return joint_numbers.of_rates(self.model, "damping")

    @property
    def friction(self) -> np.ndarray:
        """Coulomb friction at each rate (nv,), N m or N."""
        return joint_numbers.of_rates(self.model, "friction")

    @property
    def armature(self) -> np.ndarray:
        """The motor inertia seen at each rate (nv,), kg m^2 or kg."""
        return joint_numbers.of_rates(self.model, "armature")

    @property
    def actuated(self) -> tuple[str, ...]:
        """The joints that have motors, in the order of `joint_names`: all but free ones by default."""
        pairs = zip(self.joint_names, self.canonical.joints, strict=True)
        return tuple(name for name, link in pairs if link.actuated)

    @lazy
    def undriven_joints(self) -> tuple[str, ...]:
        """Joints that can move while all motors stand still: passive ones that no constraint determines.

        Of a robot with constraints, as found at poses that meet them; empty where there is none to be found.
        """
        return self._closed.undriven()

    @property
    def torque_offset(self) -> np.ndarray:
        """The constant torque that each drive makes besides (nv,), N m or N; part of `dissipation=True`."""
        return joint_numbers.of_rates(self.model, "torque_offset")

    @property
    def has_inertia(self) -> bool:
        """Whether any link has mass: without it there are poses and Jacobians, but no dynamics."""
        return self._core.has_inertia

    @property
    def canonical(self) -> CanonicalModel:
        """The links in the frames in which the recursions run."""
        return self._core.canonical

    def __repr__(self) -> str:
        return f"<Robot {self.name}: {self.nv} joints, {len(self.frame_names)} frames>"

    def _repr_html_(self) -> str:
        return joint_numbers.html_of(self.model)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Robot) and self.model == other.model

    def __hash__(self) -> int:
        return hash(self.model)

    def __reduce__(self) -> tuple[Callable[[Model, dict[str, float]], Robot], tuple[Model, dict[str, float]]]:
        return _restore, (self.model, dict(self.snapping))

    # ---- Another robot from this one

    def _edited(self, model: Model) -> Robot:
        return self if model is self.model else Robot(model)

    def with_gravity(self, gravity: Sequence[float]) -> Robot:
        """The same robot under another gravity.

        Parameters
        ----------
        gravity : (3,)
            An acceleration in the base frame (m/s^2).
        """
        return Robot(editing.with_gravity(self.model, gravity))

    def with_payload(
        self, link: str, mass: float, com: Sequence[float] = (0, 0, 0), inertia: ArrayLike | None = None
    ) -> Robot:
        """The same robot with a body fixed to it.

        Parameters
        ----------
        link : name of a link or frame
        mass : kg
        com : (3,)
            The body's mass centre in that frame (m).
        inertia : (3,), (6,) or (3, 3)
            About the mass centre, along that frame's axes (kg m^2); None is a point mass.
        """
        return Robot(with_payload(self.model, link, mass, com, np.zeros((3, 3)) if inertia is None else inertia))

    def with_limits(
        self,
        lower: Named | None = None,
        upper: Named | None = None,
        velocity: Named | None = None,
        effort: Named | None = None,
    ) -> Robot:
        """The same robot with other limits; what is not given stays.

        Parameters
        ----------
        lower, upper : {joint: number}, a number for all joints, or an array
            Of positions (rad, m): one number for each joint, or for each coordinate as `limits` gives them; infinity
            is no limit.
        velocity, effort : the same
            Sizes, one number for each joint or rate (rad/s, m/s; N m, N).
        """
        given = {"lower": lower, "upper": upper, "velocity": velocity, "effort": effort}
        return self._edited(joint_numbers.with_limits(self.model, given))

    def with_dissipation(
        self, damping: Named | None = None, friction: Named | None = None, torque_offset: Named | None = None
    ) -> Robot:
        """The same robot with other damping, Coulomb friction or torque offsets; what is omitted stays.

        Parameters
        ----------
        damping, friction : {joint: number}, a number for all, or an array
            One number for each joint or rate (N m s, N s/m; N m, N).
        torque_offset : the same
            A constant torque (N m, N) of any sign that the drive makes besides: `inverse_dynamics(...,
            dissipation=True)` adds it, and `forward_dynamics` takes it off the torques.
        """
        given = {"damping": damping, "friction": friction, "torque_offset": torque_offset}
        return self._edited(joint_numbers.with_sizes(self.model, given))

    def with_armature(self, armature: Named) -> Robot:
        """The same robot with other motor inertias.

        Parameters
        ----------
        armature : {joint: number}, a number for all, or an array as `armature`
            kg m^2 or kg, at the joint.
        """
        return self._edited(joint_numbers.with_sizes(self.model, {"armature": armature}))

    def with_actuated(self, joints: Sequence[str] | str) -> Robot:
        """The same robot with motors at these joints only; the others are passive.

        Controllers give no torque to passive joints. Inverse dynamics of a robot with constraints gives the torques of
        the motors. All other functions stay as they are.

        Parameters
        ----------
        joints : names
            Some of `joint_names`; free joints have no motors.
        """
        return self._edited(editing.with_actuated(self.model, joints))

    def with_inertia(self, inertia: Named) -> Robot:
        """The same robot with other bodies.

        Parameters
        ----------
        inertia : {link: body}, or (links, 10) in the order of `link_names`
            A body is ten numbers in the frame that bears the link's name, as `linksweep.body` makes them and as
            `standard_parameters` begins with.
        """
        return self._edited(joint_numbers.with_inertia(self.model, inertia))

    def with_base(self, base: str) -> Robot:
        """The same robot on a "floating" or a "fixed" base.

        A floating base is a link on a free joint, "root_joint", whose coordinates come first; the new base is "world".
        Gravity keeps its direction in the world.
        """
        return self._edited(editing.with_base(self.model, base))

    def lock(
        self, joints: str | Iterable[str] | Mapping[str, ArrayLike], at: Named | Sequence[ArrayLike] | None = None
    ) -> Robot:
        """The same robot with joints held: their links are folded, with inertia and frames, into what carries them.

        Parameters
        ----------
        joints : a name, several, or {joint: coordinates}
        at : {joint: coordinates}, or one entry for each joint
            Where they are held; neutral where not said.
        """
        return self._edited(editing.lock(self.model, joints, at))

    def subchain(self, base: str, tip: str, fold: bool = True) -> Robot:
        """The serial chain from one link or frame, the new base, outward to another.

        Parameters
        ----------
        base, tip : names of links or frames
        fold : bool
            What branches off is locked at neutral and folded in with its inertia; False drops it.
        """
        return self._edited(editing.subchain(self.model, base, tip, fold))

    def placed(self, pose: ArrayLike) -> Robot:
        """The same robot with its base at `pose` (4, 4) in the world, in which poses, Jacobians and gravity then are.

        The world is its new base; its former base stays as a frame.
        """
        return self._edited(editing.placed(self.model, pose))

    def with_frame(self, name: str, on: str, pose: ArrayLike | None = None) -> Robot:
        """The same robot with one named frame more, at `pose` (4, 4) in the link or frame `on`."""
        return self._edited(editing.with_frame(self.model, name, on, pose))

    def snapped(self, tolerance: float = 1e-5) -> Robot:
        """The same robot with nearly special joint directions made exact, which saves operations.

        Inertias and positions stay. `.snapping` of the new robot says by what angle (rad) each joint that moved has
        turned.

        Parameters
        ----------
        tolerance : float
            Entries of joint rotations and axes this close to 0, 1 and -1 are meant so.
        """
        model, moved = snapped(self.model, tolerance)
        robot = self._edited(model)
        if robot is not self:
            robot.snapping = moved
        return robot

    def to_urdf(self, original: str | os.PathLike[str] | None = None) -> str:
        """URDF text of the same dynamics.

        Gravity is not part of it; motor inertia and torque offsets are attributes of our own. A link whose frame is not
        at its joint becomes a body "<link>_body" at the joint, with that frame on it.

        Parameters
        ----------
        original : path of the URDF file that the robot was loaded from
            Its text is returned with this robot's inertias, damping, friction and motor inertias; visuals, collisions,
            transmissions and comments stay. Inertias of links on fixed joints are merged into the link that carries
            them. Motor inertia is also written as `rotor_inertia` of <dynamics> and into actuators, for Drake.
        """
        if original is not None:
            from ..formats.urdf_edit import edited_urdf

            return edited_urdf(self.model, original)
        from ..formats.urdf_writer import to_urdf

        return to_urdf(self.model)

    def to_dh(self, convention: str | None = None, tip: str | None = None) -> DHTable:
        """Arguments of `Robot.from_dh` for a serial chain: its Denavit-Hartenberg rows, mount and tool.

        Parameters
        ----------
        convention : "modified" or "standard"
            Must be said.
        tip : name of a frame
            What the table calls "tool"; None: "tool", or the last frame of the last link.
        """
        from ..formats.dh_writer import to_dh

        return to_dh(self.model, convention, tip)

    # ---- Coordinates

    def neutral(self) -> np.ndarray:
        """The coordinates (nq,) at which nothing is moved: zeros, and unit quaternions."""
        return coordinates.neutral(self.canonical)

    def random(self, rng: np.random.Generator) -> np.ndarray:
        """Random coordinates (nq,): within finite limits, angles in [-pi, pi], uniform rotations."""
        return coordinates.random(self.canonical, self.model, rng)

    def normalize(self, q: ArrayLike) -> np.ndarray:
        """The same coordinates (..., nq) with quaternions of length 1."""
        return coordinates.normalize(self.canonical, q)

    def integrate(self, q: ArrayLike, v: ArrayLike, dt: ArrayLike = 1.0) -> np.ndarray:
        """Coordinates (..., nq) after moving from q with the constant rates v (..., nv) for a time dt (...), in s."""
        return coordinates.integrate(self.canonical, q, v, dt)

    def difference(self, q0: ArrayLike, q1: ArrayLike) -> np.ndarray:
        """The constant rates (..., nv) that lead from q0 to q1 in a time 1: integrate(q0, difference(q0, q1)) is q1."""
        return coordinates.difference(self.canonical, q0, q1)

    def coordinate_rates(self, q: ArrayLike, v: ArrayLike) -> np.ndarray:
        """dq/dt (..., nq) of the rates v (..., nv): q' = Omega(q) v, (b.3)-(b.5) of Rodriguez & Kreutz."""
        return coordinates.coordinate_rates(self.canonical, q, v)

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
        """Joint torques and forces that produce the accelerations qdd.

        Parameters
        ----------
        q : (..., nq)
            Coordinates.
        qd, qdd : (..., nv)
            Rates and their derivatives.
        method : one of `methods("inverse_dynamics")`
            None takes the first of them (for details, "newton_euler").
        f_ext : (..., links, 6), or {frame: (..., 6)}
            What the environment applies: [moment; force] in each link's (or that) frame at its origin.
        out : (..., nv)
            An array that takes the result.
        dissipation : bool
            Add damping, Coulomb friction and torque offsets.
        base_motion : (..., 9)
            The base's angular velocity, angular acceleration and linear acceleration, in its own frame.
        details : bool
            Return (torques, details), the quantities that the method computes on its way, by name.
        **closed
            With constraints between frames: further options of `closed_inverse_dynamics`.

        Returns
        -------
        (..., nv)
            N m, N.
        """
        if f_ext is None and base_motion is None and dissipation is False and details is False and not closed:
            if method is None and (plain := self._core.plain[settings.backend].get("inverse_dynamics")) is not None:
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
        """Joint accelerations that torques produce.

        Parameters
        ----------
        q : (..., nq)
        qd, tau : (..., nv)
            Rates, and joint torques and forces (N m, N).
        method : one of `methods("forward_dynamics")`
            None takes the first of them (for details, "filter_smoother").
        f_ext, out, dissipation, base_motion, details
            As in `inverse_dynamics`.

        Returns
        -------
        (..., nv)
            rad/s^2, m/s^2.
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
        """Torques (..., nv) that hold the joints unaccelerated: centrifugal, Coriolis, gravity and external.

        Parameters
        ----------
        q, qd : (..., nq), (..., nv)
        method, f_ext, out, dissipation, base_motion
            As in `inverse_dynamics`.
        """
        return self._call("bias_forces", (q, qd), method, extras(f_ext, dissipation, base_motion), out)

    def gravity_forces(self, q: ArrayLike, method: str | None = None, out: np.ndarray | None = None) -> np.ndarray:
        """Torques (..., nv) that hold the robot still against gravity and the springs between frames, at q (..., nq):
        bias_forces(q, 0), the slope of potential_energy."""
        return self._call("gravity_forces", (q,), method, None, out)

    def mass_matrix(self, q: ArrayLike, method: str | None = None, out: np.ndarray | None = None) -> np.ndarray:
        """The joint-space inertia (..., nv, nv), armature included, at q (..., nq)."""
        return self._call("mass_matrix", (q,), method, None, out)

    def mass_matrix_inverse(self, q: ArrayLike, method: str | None = None, out: np.ndarray | None = None) -> np.ndarray:
        """The inverse of the mass matrix (..., nv, nv), element by element, without M, at q (..., nq)."""
        return self._call("mass_matrix_inverse", (q,), method, None, out)

    def coriolis_matrix(
        self, q: ArrayLike, qd: ArrayLike, method: str | None = None, out: np.ndarray | None = None
    ) -> np.ndarray:
        """C (..., nv, nv), by Christoffel's symbols where joints have one freedom: C qd are the velocity forces, and
        dM/dt - 2 C is skew, with M by the rates of joints (of a free base or a ball joint: in the body frame)."""
        return self._call("coriolis_matrix", (q, qd), method, None, out)

    def influence(self, q: ArrayLike, point: str | tuple[str, ArrayLike]) -> tuple[np.ndarray, np.ndarray]:
        """First- and second-order influence coefficients of a point.

        Parameters
        ----------
        q : (..., nq)
        point : a frame's name for its origin, or (frame, offset)
            offset (..., 3) in that frame (m).

        Returns
        -------
        G (..., 6, nv), H (..., 6, nv, nv)
            Rows are [angular; linear] in the base's directions: the point moves by G qd and is accelerated by
            G qdd + qd^T H qd; H[..., j, k] is the derivative of G[..., k] by coordinate j.
        """
        frame, offset = point if isinstance(point, tuple) and len(point) == 2 else (point, np.zeros(3, np.float32))
        requests = self._core.requests([("first_influence", frame), ("second_influence", frame)])
        return self._core.function(requests)(q, offset)

    def explicit_model(self, q: ArrayLike, method: str | None = None) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The equations of motion written out: tau_i = I*_ij qdd_j + qd_j P*_ijk qd_k + g_i.

        Parameters
        ----------
        q : (..., nq)
        method : "augmented_bodies", which is taken unless told, or "direct"

        Returns
        -------
        I* (..., nv, nv), P* (..., nv, nv, nv), g (..., nv)
        """
        # one method, so that I* and P* share their work
        own = default_method("inertia_power", self._core.canonical) if method is None else method
        requests = self._core.requests(("effective_inertia", "inertia_power"), own)
        gravity = "influence" if requests[0].method == "augmented_bodies" else None
        return self._core.function((*requests, *self._core.requests(["gravity_forces"], gravity)))(q)

    def articulated_inertia(self, q: ArrayLike, method: str | None = None, out: np.ndarray | None = None) -> np.ndarray:
        """The articulated-body inertia P (..., links, 6, 6) of each link: all that it carries, with those joints free.

        P is [[J, Y], [Y^T, rho]] at the origin and in the directions of the link's frame, rows in the order of
        `link_names`: an inertia J about the origin, a mass rho that differs by direction, and Y = C rho with the center
        of mass C. The link's own joint is locked.

        Parameters
        ----------
        q : (..., nq)
        method : "riccati", the default: Rodriguez 1987, (37)-(43); or "articulated_parameters": (84)
        """
        return self._call("articulated_inertia", (q,), method, None, out)

    def factor(self, q: ArrayLike) -> Factor:
        """The mass matrix as (I + H Phi L) D (I + H Phi L)^T, with `solve`, `logdet`, `colour`, `whiten`."""
        return factor(self._core, q)

    # ---- Functions and methods

    @property
    def functions(self) -> tuple[str, ...]:
        """What `compile` can be asked for."""
        return PUBLIC + CLOSED if self.model.constraints else PUBLIC

    def methods(self, function: str) -> tuple[str, ...]:
        """The methods by which this robot can compute a function; the first is the default."""
        return methods_of(self._core, function)

    def compile(
        self, functions: Items, *, method: str | None = None, f_ext: bool = False,
        dissipation: bool = False, base_motion: bool = False, dtype: DTypeLike | None = None,
        threads: int | None = None, rolled: bool | None = None, backend: str | None = None,
        base_parameters: bool | None = None, parameters: Sequence[str] = (),
    ) -> CompiledFunction:  # fmt: skip
        """A compiled function of one result, or of several that share their work; its arguments are `.inputs`.

        Parameters
        ----------
        functions : one of `functions`, or a list
            With its frame and reference where it has them, as ("jacobian", "tool") or ("jacobian", "tool", "local"),
            or ("derivative", one of these, input).
        method : one of `methods(function)`
        f_ext, base_motion : bool
            Take them as further arguments.
        dissipation : bool
            Add damping, Coulomb friction and torque offsets.
        dtype : "float64", "float32", or None to follow the arguments
        threads : int
            Split large batches over so many (None: LINKSWEEP_THREADS, or 1).
        rolled : bool
            As loops over the links (None: by size).
        backend : "llvm" or "interpreter"
        base_parameters : bool
            With regrouped inertias (None: wherever they serve).
        parameters : names
            Numbers of the robot to take as further arguments, as ("payload",) or ("payload:tool", "gravity"), see
            parameters.py; a payload is ten numbers, which `linksweep.body` makes.
        """
        threads = default_threads() if threads is None else threads
        asked = (
            method, f_ext, dissipation, base_motion, dtype, threads, rolled,
            settings.backend if backend is None else backend,
            base_parameters, tuple(parameters) if isinstance(parameters, list) else parameters,
        )  # fmt: skip
        wanted = tuple(functions) if isinstance(functions, list) else functions
        key: Hashable = ("compile", type(functions), wanted, *map(type, asked), *asked)  # 1 is no True
        try:
            found = self._core.compiled.get(key)
        except TypeError:  # something that cannot be hashed, and not be meant: it is said below
            key, found = None, None
        if found is not None:
            return found
        recipe = self.recipe(
            functions, method=method, f_ext=f_ext, dissipation=dissipation, base_motion=base_motion, rolled=rolled,
            base_parameters=base_parameters, parameters=parameters,
        )  # fmt: skip
        made = make_function(recipe, checked_dtype(dtype), checked_threads(threads), chosen_backend(backend))
        self._core.keep(key, made)
        return made

    def recipe(
        self, functions: Items, *, method: str | None = None, rolled: bool | None = None,
        base_parameters: bool | None = None, parameters: Sequence[str] = (), **options: Unpack[Flags],
    ) -> Recipe:  # fmt: skip
        """What `compile` compiles, checked: it can be traced and counted without being compiled.

        Parameters
        ----------
        functions, method, rolled, base_parameters, parameters, **options
            As of `compile`.
        """
        wanted = listed(functions)
        if not wanted:
            raise ArgumentError("compile got an empty list, expected at least one function: see robot.methods.")
        regrouped = None if base_parameters is None else checked_flag("base_parameters", base_parameters)
        sets = parameter_sets(self._core, parameters)
        requests = self._core.requests(wanted, method, rolled=rolled, parameters=sets, **options)
        return Recipe(self.canonical, requests, rolled, base_parameters=regrouped, parameters=sets)

    def operation_count(
        self, function: Items, method: str | None = None, base_parameters: bool | None = None,
        **options: Unpack[TracingOptions],
    ) -> Counts:  # fmt: skip
        """Operations for one sample, by the papers' convention: Counts(mul, add, div, sqrt, trig).

        Sines and cosines are listed apart, negation and work among constants are free.

        Parameters
        ----------
        function, method, base_parameters, **options
            As of `compile`.
        """
        return count(self.recipe(function, method=method, base_parameters=base_parameters, **options).trace())

    # ---- Places and bodies

    def pose(self, q: ArrayLike, frame: str, out: np.ndarray | None = None) -> np.ndarray:
        """The frame's homogeneous matrix (..., 4, 4) in the base frame, at q (..., nq)."""
        return self._call(("pose", frame), (q,), None, None, out)

    def poses(self, q: ArrayLike, out: np.ndarray | None = None) -> np.ndarray:
        """The homogeneous matrices (..., frames, 4, 4) of all frames, in the order of `frame_names`."""
        return self._call("poses", (q,), None, None, out)

    def jacobian(
        self,
        q: ArrayLike,
        frame: str,
        out: np.ndarray | None = None,
        *,
        reference: str = "world_aligned",
        point: ArrayLike | None = None,
    ) -> np.ndarray:
        """The frame's Jacobian (..., 6, nv): times qd it is the frame's velocity [angular; linear].

        Zero where no joint moves the frame, as the base's: the tool is `robot.ee`, not the last of `frame_names`.

        Parameters
        ----------
        q : (..., nq)
        frame : one of `frame_names`
        out : (..., 6, nv)
            An array that takes the result.
        reference : "world_aligned", "local" or "world"
            At the frame's origin along the base's axes; at its origin along its own axes; at the base's origin along
            the base's axes.
        point : (..., 3)
            In the frame (m), in the place of its origin; seen from the world it makes no difference.
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
        """The time derivative (..., 6, nv) of each entry of `jacobian` while the joints move with qd (..., nv)."""
        if point is None:
            return self._call(("jacobian_derivative", frame, reference), (q, qd), None, None, out)
        return self._call(("point_jacobian_derivative", frame, reference), (q, qd, point), None, None, out)

    def jacobians(self, q: ArrayLike, out: np.ndarray | None = None, *, reference: str = "world_aligned") -> np.ndarray:
        """The Jacobians (..., frames, 6, nv) of all frames, in the order of `frame_names`; see `jacobian`."""
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
        """The frame's velocity (..., 6), [angular; linear]: the Jacobian of the same reference times qd."""
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
        """The frame's acceleration (..., 6), the time derivative of `frame_velocity`; gravity is no part of it."""
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
        """dJ/dt qd (..., 6): the acceleration of the frame while no joint accelerates."""
        return self._call(("jacobian_bias", frame, reference), (q, qd), None, None, out)

    def center_of_mass(self, q: ArrayLike, out: np.ndarray | None = None) -> np.ndarray:
        """The mass centre (..., 3) of all moving links, in the base frame (m)."""
        return self._call("center_of_mass", (q,), None, None, out)

    def momentum(
        self, q: ArrayLike, qd: ArrayLike, out: np.ndarray | None = None, *, about: str = "center_of_mass"
    ) -> np.ndarray:
        """The momentum (..., 6) of all moving links, [angular; linear], along the base's axes.

        Parameters
        ----------
        q, qd : (..., nq), (..., nv)
        about : "center_of_mass" or "base"
            The angular part is about the mass centre (centroidal momentum), or about the base's origin.
        """
        return self._call(("momentum", about), (q, qd), None, None, out)

    def centroidal_momentum_matrix(self, q: ArrayLike, out: np.ndarray | None = None) -> np.ndarray:
        """The matrix (..., 6, nv) that takes qd to the momentum about the mass centre."""
        return self._call("centroidal_momentum_matrix", (q,), None, None, out)

    def kinetic_energy(self, q: ArrayLike, qd: ArrayLike, out: np.ndarray | None = None) -> np.ndarray:
        """qd^T M qd / 2 (...), motor inertias included, in J."""
        return self._call("kinetic_energy", (q, qd), None, None, out)

    def potential_energy(self, q: ArrayLike, out: np.ndarray | None = None) -> np.ndarray:
        """The energy (...) of all moving links against gravity, 0 with the mass centre at the base's origin, in J."""
        return self._call("potential_energy", (q,), None, None, out)

    # ---- Inverse kinematics

    def inverse_kinematics(
        self, target: ArrayLike, frame: str, q0: ArrayLike | None = None, **options: Unpack[SearchOptions]
    ) -> InverseKinematics:
        """Coordinates that put the frame at the targets: see `linksweep.motion.inverse_kinematics`.

        Parameters
        ----------
        target : (..., 4, 4)
            Poses in the base frame.
        frame : one of `frame_names`
        q0 : (..., nq)
            Where to start.
        **options
            position_only, limits, tolerance, restarts, iterations, seed.
        """
        from ..motion import inverse_kinematics

        return inverse_kinematics(self, target, frame, q0, **options)

    def inverse_kinematics_branches(
        self, target: ArrayLike, frame: str, q0: ArrayLike | None = None, *, limits: bool = True,
        tolerance: float = 1e-10,
    ) -> Branches:  # fmt: skip
        """All coordinates that put the frame at the targets, in closed form, for arms with a spherical wrist or three
        parallel axes: see `linksweep.motion.inverse_kinematics_branches`.

        Parameters
        ----------
        target : (..., 4, 4)
            Poses in the base frame.
        frame : one of `frame_names`
        q0 : (..., nq)
            Which turns of the joints are preferred, and which solution of a family.
        limits : bool
            Leave out solutions outside the joint limits.
        tolerance : m and rad
        """
        from ..motion import inverse_kinematics_branches

        return inverse_kinematics_branches(self, target, frame, q0, limits=limits, tolerance=tolerance)

    def follow(
        self, path: Path, frame: str, times: ArrayLike, q0: ArrayLike | None = None, **options: Unpack[FollowOptions]
    ) -> Followed:
        """The joint motion that leads the frame along a path: see `linksweep.motion.follow`.

        Parameters
        ----------
        path : a Line, an Arc, or what gives a FrameMotion at times
        frame : one of `frame_names`
        times : (k,)
            Increasing (s).
        q0 : (nq,)
            Where to look for the solution at the first time.
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
        """Omega = J M^-1 J^T (..., 6, 6): the acceleration of the frame for each unit of force at it.

        By recursion, in any pose.

        Parameters
        ----------
        q : (..., nq)
        frame : one of `frame_names`, or several
            Several give (..., 6 m, 6 m) with the blocks between them.
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
        """Lambda = (J M^-1 J^T)^-1 (..., 6, 6): the inertia that a force at the frame meets.

        Parameters
        ----------
        q, frame, reference
            As in `operational_inertia_inverse`.
        damping : float
            Added to the diagonal of Omega. Without it, a singular pose and fewer than six joints are an error, which
            says the rank.
        """
        omega = self.operational_inertia_inverse(q, frame, reference=reference)
        return operational_inertia(omega, frame, damping)

    def operational_space(
        self, q: ArrayLike, qd: ArrayLike, frames: str | Sequence[str], damping: float | None = None, *,
        reference: str = "world_aligned",
    ) -> OperationalSpace:  # fmt: skip
        """The operational space of one or several frames: see `OperationalSpace` for its fields.

        Parameters
        ----------
        q, qd : (..., nq), (..., nv)
        frames, damping, reference
            As in `operational_inertia`; without damping, what needs Lambda is NaN at singular poses.
        """
        return operational_space(self._core, q, qd, frames, damping, reference)

    def manipulability(
        self, q: ArrayLike, frame: str, *, rows: str = "all", reference: str = "world_aligned"
    ) -> np.ndarray:
        """Yoshikawa's measure (...), sqrt(det(J J^T)): 0 at a singular pose, and with fewer joints than rows.

        Parameters
        ----------
        q : (..., nq)
        frame, reference
            As in `jacobian`.
        rows : "all", "angular" or "linear"
            All six, mixing radians and metres, or three of them.
        """
        return manipulability(self.jacobian(q, frame, reference=reference), rows)

    # ---- Closed chains

    @lazy
    def _closed(self) -> ClosedChain:
        return ClosedChain(self._core)

    @property
    def constraints(self) -> tuple[Constraint, ...]:
        """The ties between its frames; see `with_constraints`."""
        return self.model.constraints

    def with_constraints(self, constraints: Constraint | Sequence[Constraint]) -> Robot:
        """The same robot, its coordinates unchanged, with these constraints between its frames besides its own.

        forward_dynamics, simulate and inverse_dynamics then know them; the mass matrix, bias forces and the operational
        space stay those of the tree. See `linksweep.Constraint`.
        """
        more = checked_ties(self.model, constraints, Constraint)
        return self._edited(replace(self.model, constraints=(*self.model.constraints, *more)))

    def without_constraints(self) -> Robot:
        """The tree alone, without the constraints between its frames; springs stay."""
        return self._edited(replace(self.model, constraints=()) if self.model.constraints else self.model)

    def with_springs(self, springs: Spring | Sequence[Spring]) -> Robot:
        """The same robot with springs and dampers between its frames, see `linksweep.Spring`.

        They act in inverse and forward dynamics, bias forces, gravity forces and energy.
        """
        more = checked_ties(self.model, springs, Spring)
        return self._edited(replace(self.model, springs=(*self.model.springs, *more)))

    def constraint_error(self, q: ArrayLike, out: np.ndarray | None = None) -> np.ndarray:
        """How far the pose is from meeting its constraints, (..., rows): metres, and radians along the axes of b."""
        return self._call("constraint_error", (q,), None, None, out)

    def constraint_jacobian(self, q: ArrayLike, out: np.ndarray | None = None) -> np.ndarray:
        """K (..., rows, nv): K qd are the rates of `constraint_error`, which the constraints hold at 0."""
        return self._call("constraint_jacobian", (q,), None, None, out)

    def constraint_bias(self, q: ArrayLike, qd: ArrayLike, out: np.ndarray | None = None) -> np.ndarray:
        """k = dK/dt qd (..., rows): accelerations meet K qdd + k = 0."""
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
        """What each constraint exerts on its frame a, (..., constraints, 6): [moment; force] at its origin, along the
        base's axes. Arguments as of `forward_dynamics`."""
        return self._call("constraint_forces", (q, qd, tau), None, Extras(f_ext, dissipation, base_motion))

    def project(self, q: ArrayLike, tolerance: float = CLOSES, iterations: int = 100) -> np.ndarray:
        """The pose (..., nq) that meets the constraints, reached from q by steps that are least in the metric M.

        An error reports the gap where no pose is found.

        Parameters
        ----------
        q : (..., nq)
        tolerance : float
            The gap that is allowed (m, rad). Constraints that are redundant but for the rounding of a file do not close
            to the default.
        iterations : int
            How many steps it may take.
        """
        return self._closed.project(q, tolerance, iterations)

    def project_velocity(self, q: ArrayLike, qd: ArrayLike, out: np.ndarray | None = None) -> np.ndarray:
        """The rates (..., nv) that the constraints allow, nearest to qd in the metric M: what an impact leaves."""
        return self._call("allowed_rates", (q, qd), None, None, out)

    def project_acceleration(self, q: ArrayLike, qd: ArrayLike, qdd: ArrayLike) -> np.ndarray:
        """The accelerations (..., nv) that the constraints allow at qd, nearest to qdd in the metric M."""
        return self.forward_dynamics(q, qd, self._closed.tree_torques(q, qd, qdd))

    def mobility(self, q: ArrayLike, tolerance: float | None = None) -> Mobility:
        """Rank, freedoms, redundant rows and singular poses of the constraints at one pose (nq,).

        Parameters
        ----------
        q : (nq,)
        tolerance : float
            Of singular values, as a part of the largest, below which a row says nothing new. None decides as forward
            dynamics and simulation do.
        """
        return self._closed.mobility(q, tolerance)

    def tangent_basis(self, q: ArrayLike, near: ArrayLike | None = None) -> np.ndarray:
        """An orthonormal basis (nv, freedoms) of the rates that the constraints allow at one pose.

        Parameters
        ----------
        q : (nq,)
        near : (nv, freedoms)
            A basis of before: the new one is turned, within the space that it spans, as near to it as it can be, which
            makes it continuous along a motion without singular poses. None: near to the unit vectors of the rates that
            can be chosen freely, found by pivoting.
        """
        return self._closed.tangent_basis(q, near)

    def tangent_mass_matrix(self, q: ArrayLike, near: ArrayLike | None = None) -> np.ndarray:
        """The mass matrix (freedoms, freedoms) on `tangent_basis`."""
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
        """Joint torques (..., nv) that produce qdd under the constraints; by details=True with the multipliers.

        Joints that are not actuated get exactly 0, and an error says so where the motion asks for more. Compiled by
        `compile("inverse_dynamics")`, there is no error: such a sample is NaN, and a qdd that breaks the constraints is
        taken for the nearest one that does not, in the metric M.

        Parameters
        ----------
        q, qd, qdd, f_ext, dissipation, base_motion, method, out
            As in `inverse_dynamics`; the method is that of the tree.
        actuated : names
            The joints with motors (None: those of `actuated`).
        weights : (nv,)
            Positive: where constraints leave a choice, torques are the nearest in the norm with these weights
        preferred : (nv,)
            to these (None: 0).
        tolerance : float
            How far qdd may be from meeting the constraints.
        """
        if checked_flag("details", details):
            refuse_out("inverse_dynamics", out)
        more, choice = Extras(f_ext, dissipation, base_motion), (actuated, weights, preferred, tolerance)
        found = self._closed.inverse_dynamics((q, qd, qdd), more, *choice, method, out)
        return (found["tau"], found) if details else found["tau"]

    # ---- Joints that follow others

    @property
    def couplings(self) -> tuple[Coupling, ...]:
        """Who follows whom; leaders follow none."""
        return self.model.couplings

    def with_couplings(self, couplings: Coupling | Sequence[Coupling]) -> Robot:
        """The same robot, some of whose joints follow others: its coordinates are those of the joints that lead.

        `linksweep.Coupling(joint, leader, multiplier, offset)` says q[joint] = multiplier q[leader] + offset. A leader
        may follow another joint. Rows of f_ext stay those of `link_names`, all links.
        """
        laws = [couplings] if isinstance(couplings, Coupling) else couplings
        return self._edited(coupled(self.model, laws))

    @lazy
    def uncoupled(self) -> Robot:
        """The robot in which every joint is free; itself, where none follows another."""
        return self._edited(replace(self.model, couplings=()) if self.model.couplings else self.model)

    def expand(self, q: ArrayLike) -> np.ndarray:
        """Coordinates (..., nq) of `uncoupled`: G q + c."""
        own = real_vectors("q", q, self.nq)
        to_q, _, shift = self._expansion
        return own @ to_q.T.astype(own.dtype) + shift.astype(own.dtype)

    def expand_rates(self, v: ArrayLike) -> np.ndarray:
        """Rates or accelerations (..., nv) of `uncoupled`: G v."""
        own = real_vectors("v", v, self.nv)
        return own @ self._expansion[1].T.astype(own.dtype)

    def reduce_forces(self, tau: ArrayLike) -> np.ndarray:
        """Joint forces (..., nv) that do the same work as these of `uncoupled`: G^T tau."""
        full = real_vectors("tau", tau, len(self._expansion[1]))
        return full @ self._expansion[1].astype(full.dtype)

    @lazy
    def _expansion(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        return expansion(self.canonical)

    # ---- Numbers of the robot

    @lazy
    def standard_parameters(self) -> np.ndarray:
        """(11 links): mass, m c (3) and inertia about the origin (xx, yy, zz, xy, xz, yz) of each link, in its frame
        and in document order; then the armature of each joint. Their names are `standard_parameter_names`."""
        return parameters.standard_parameters(self.model)

    @property
    def standard_parameter_names(self) -> tuple[str, ...]:
        """What each entry of `standard_parameters` is, such as "link1.m"."""
        return parameters.standard_parameter_names(self.model)

    def regressor(
        self, q: ArrayLike, qd: ArrayLike, qdd: ArrayLike, out: np.ndarray | None = None, packed: bool = False
    ) -> np.ndarray:
        """Y (..., nv, 11 links): joint forces are Y @ standard_parameters.

        Parameters
        ----------
        q : (..., nq)
        qd, qdd : (..., nv)
        packed : bool
            Only what is not zero by the structure of the robot (a link asks nothing of joints that do not move it),
            (..., count); `regressor_places` says where each number stands in Y.
        """
        return self._regressor(q, qd, qdd, out, packed)

    @lazy
    def _regressor(self) -> parameters.Regressor:
        return parameters.Regressor(self._core)

    @lazy
    def regressor_places(self) -> tuple[np.ndarray, np.ndarray]:
        """Row and column in Y of each number of `regressor(..., packed=True)`."""
        return parameters.regressor_places(self.canonical)

    def base_parameters(self, method: str = "symbolic") -> BaseParameters:
        """The fewest numbers on which joint forces depend, for this base and gravity, with the map from the standard
        ones. method: "symbolic" (Khalil's regrouping, then QR for what is left) or "numeric" (QR alone)."""
        from ..analysis.base_parameters import base_parameters

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
        out: Slopes | None = None,
        dissipation: bool = False,
        base_motion: ArrayLike | None = None,
    ) -> Slopes:
        """The derivatives (..., nv, nv) of the torques by q, by qd and by qdd, which is the mass matrix.

        By q they are along the rates of joints: entry [i, k] is what torque i changes by when joint k moves with rate
        1, also for free and ball joints. f_ext is fixed to the links.

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
        out: Slopes | None = None,
        dissipation: bool = False,
        base_motion: ArrayLike | None = None,
    ) -> Slopes:
        """The derivatives (..., nv, nv) of the accelerations by q, by qd and by tau, which is the inverse of M where
        there are no constraints.

        As -M^-1 times the derivatives of the torques, at the accelerations: in one program, or for large robots with M
        inverted by NumPy. Arguments as of `inverse_dynamics_derivatives`.
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
        """Walk a recursion link by link: each line's equation, formula and numbers, to print, show or save.

        Of a robot with constraints, the torques of its tree are explained, under a name that says so.

        Parameters
        ----------
        function : "inverse_dynamics", "forward_dynamics", "bias_forces" or "gravity_forces"
        method : as there; None takes that of `details=True`
        q, qd, qdd, tau : (nq,), (nv,)
            One sample, as the function takes them: q neutral unless given, the others 0.
        f_ext, dissipation, base_motion
            As in `inverse_dynamics`.
        symbols : bool
            Leave q and the others as symbols, so that every number is a SymPy expression, for small arms (extra
            `symbolic`).
        parameters, limit
            Which numbers of the robot are symbols then, and the limit of their size, as in `symbolic`.
        """
        given = {"q": q, "qd": qd, "qdd": qdd, "tau": tau}
        more = Extras(f_ext, dissipation, base_motion)
        return self._formulas.explain(function, method, given, more, symbols, parameters, limit)

    def symbolic(
        self, function: Item, method: str | None = None, *, parameters: Sequence[str] | None = None,
        simplify: bool = False, numbers: str = "rational", names: str = "numbers", limit: int | None = None,
    ) -> Symbolic:  # fmt: skip
        """A function such as "mass_matrix" or ("jacobian", "tool") as SymPy expressions, for small arms.

        Parameters
        ----------
        function : as of `compile`
        method : None takes the one that is shortest written out
        parameters : names
            Numbers of the robot to leave as symbols, as `compile` takes them; None: of an arm that stays in a plane its
            "dimensions" (L1, m1, c1, I1, g), of others none.
        simplify : bool
            Fractions of polynomials in the sines and cosines, equal terms together.
        numbers : "rational", exact fractions, or "float"
        names : "numbers" for symbols q1, qd1, qdd1, ..., or "joints" for q_<joint>
        limit : int
            Refuse what takes more operations written out (simplified: more terms).
        """
        if self.model.constraints and function == "inverse_dynamics":
            raise ArgumentError(
                f"symbolic: inverse_dynamics of {self.name} chooses torques under its constraints by comparisons, "
                f"expected a formula: take robot.without_constraints() for the torques of the tree."
            )
        letters = self._formulas.letters(parameters)

        def program(function: Item, method: str | None) -> Program:
            recipe = self.recipe(function, method=method, parameters=letters, rolled=False, base_parameters=False)
            return recipe.trace()

        options = Options(simplify, numbers, LIMIT if limit is None else limit, NUMBERS_INSTEAD if letters else "")
        return self._formulas.symbolic(program, self.methods, function, method, names, letters, options)

    # ---- Singular poses

    @property
    def singular_joints(self) -> tuple[str, ...]:
        """Joints that move no inertia at all, in any pose: their acceleration is not determined."""
        return self._core.singular_joints

    @property
    def can_be_singular(self) -> bool:
        """False where the description proves that no joint is singular in any pose (`singular`, of float64)."""
        return self._core.least_ratio <= singular.threshold()

    def singular(self, q: ArrayLike) -> np.ndarray:
        """Which joints are singular in the poses q: booleans (..., joints), in the order of `joint_names`.

        There a joint moves next to no inertia, its acceleration is not determined, and M has no inverse. The inertia D
        that it moves while the outer joints give way is then at most eps^(2/3) of what is there to be moved.
        """
        return singular.singular(self._core, q)

    def warn_if_singular(self, what: str, q: ArrayLike, where: Callable[[tuple[int, ...]], str] | None = None) -> bool:
        """One warning about the poses q (..., nq) if any is singular; where: says by its index which one."""
        return singular.warn_if_singular(self._core, what, q, where)

    # ---- Contact

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
        """The wrench on a frame that explains measured torques: (wrench, covariance, mismatch).

        Parameters
        ----------
        q, qd, tau : (..., nq), (..., nv), (..., nv)
        frame : one of `frame_names`
        qdd : (..., nv)
            0 unless given: for robots that hold still or move evenly.
        noise : one number or (nv,)
            Standard deviations of the torques, which weigh them and give the covariance.
        prior : one number or (6,)
            Standard deviations of the wrench as expected beforehand; needed where the joints do not show all of it.
        reference : as of Jacobians
        dissipation : bool
            With damping, friction and torque offsets in the model.

        Returns
        -------
        wrench (..., 6), covariance (..., 6, 6), mismatch (...)
            [moment; force] that the environment applies at the frame's origin, in the base's directions (or as
            `reference` says); what is left of the torques, squared, in deviations of the noise.
        """
        from ..analysis.wrench import wrench_from_torques

        return wrench_from_torques(self, q, qd, tau, frame, qdd, noise, prior, reference, dissipation)

    def momentum_observer(self, dt: float, gain: float = 50.0, dissipation: bool = False) -> MomentumObserver:
        """An observer of external torques by momentum, without accelerations: call it every dt with (q, qd, tau).

        Joints may be of any kind, a floating base among them: the torques are those along the rates.

        Parameters
        ----------
        dt : s
        gain : 1/s
            How fast it follows.
        dissipation : bool
            With damping, friction and torque offsets in the model.
        """
        from ..analysis.wrench import MomentumObserver

        return MomentumObserver(self, dt, gain, dissipation)

    # ---- In the browser

    def show(self, q: ArrayLike | None = None, t: ArrayLike | None = None, **options: Unpack[ViewOptions]) -> Viewer:
        """Show the robot in the browser.

        Parameters
        ----------
        q : (nq,), or (samples, nq)
        t : (samples,)
            Times of a motion (s).
        **options
            See `linksweep.viewer.show`.
        """
        from ..viewer import show

        return show(self, q, t, **options)


def _restore(model: Model, snapping: Mapping[str, float]) -> Robot:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ModelWarning)  # it was said when the robot was first made
        robot = Robot(model)
    robot.snapping = snapping
    return robot


def checked_robot(robot: object, caller: str) -> Robot:
    """The Robot that `caller` was given."""
    if not isinstance(robot, Robot):
        raise ArgumentError(f"{caller} got {shown(robot)}, expected a Robot: use linksweep.load or linksweep.robots.")
    return robot
