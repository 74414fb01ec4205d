"""Arms whose geometry and inertia are parameters instead of numbers: what the papers count operations of.

Link i stands at Rx(alpha) Tx(a) Rz(theta) Tz(d) in its parent (modified DH), with theta or d the joint's coordinate.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike

from linksweep.backends.symbolic import LIMIT, Options, Symbolic
from linksweep.errors import ArgumentError
from linksweep.functions.compiled import CompiledFunction, compiled
from linksweep.functions.computation import Together
from linksweep.functions.items import program
from linksweep.functions.parameters import Gravity, with_body
from linksweep.mechanism.canonical import CanonicalModel
from linksweep.model.model import IDENTITY3, ZERO3, Frame
from linksweep.robot.core import Item, Items, listed
from linksweep.robot.formulas import numbered, shortest
from linksweep.robot.robot import Robot
from linksweep.spatial.algebra import Inertia, Sym, Vec
from linksweep.spatial.scalars import Scalar, cos, sin
from linksweep.spatial.transforms import Screw
from linksweep.support.checks import refuse_foreign
from linksweep.support.lazy import lazy
from linksweep.tracing.count import Counts, count
from linksweep.tracing.program import Array, Program

PER_LINK = ("alpha", "a", "offset", "m", "cx", "cy", "cz", "XX", "YY", "ZZ", "XY", "XZ", "YZ")
TWISTS = {0: (1.0, 0.0), 90: (0.0, 1.0), -90: (0.0, -1.0), 180: (-1.0, 0.0)}  # degrees: cosine, sine, exact


@dataclass(frozen=True, slots=True)
class Geometry:
    """The parameters of a general arm, (links, 13): a row is PER_LINK.

    offset is d of a revolute joint and theta of a prismatic one; c is the center of mass and the inertia is about it.
    A twist that is not None replaces alpha.
    """

    twists: tuple[int | None, ...]
    shape: tuple[int, ...]
    name: str = "parameters"

    def apply(self, model: CanonicalModel, values: Sequence[Scalar]) -> CanonicalModel:
        links = []
        for k, (link, twist) in enumerate(zip(model.links, self.twists, strict=True)):
            alpha, a, offset, m, cx, cy, cz, *tensor = values[13 * k : 13 * k + 13]
            c, s = (cos(alpha), sin(alpha)) if twist is None else TWISTS[twist]
            slides = not link.type.turns
            turn, slide = ((cos(offset), sin(offset)), 0.0) if slides else ((1.0, 0.0), offset)
            link = replace(
                link, factors=(Screw(0, c, s, a),), quarters=0, angle=0.0, turn=turn, slide=slide, armature=0.0,
                axes=IDENTITY3, origin=ZERO3,
            )  # fmt: skip
            body = Inertia(m, Vec(cx * m, cy * m, cz * m), _about_origin(m, cx, cy, cz, tensor))
            links.append(replace(with_body(link, body), com=(cx, cy, cz), I_com=tuple(tensor)))
        frames = tuple(Frame(frame.name, frame.link) for frame in model.frames)
        return replace(model, links=tuple(links), frames=frames)


def _about_origin(m: Scalar, x: Scalar, y: Scalar, z: Scalar, tensor: Sequence[Scalar]) -> Sym:
    xx, yy, zz, xy, xz, yz = tensor
    xs, ys, zs = m * (x * x), m * (y * y), m * (z * z)
    return Sym(xx + (ys + zs), yy + (xs + zs), zz + (xs + ys), xy - m * (x * y), xz - m * (x * z), yz - m * (y * z))


class GeneralArm:
    """A serial arm of revolute (R) and prismatic (P) joints with its DH rows, inertias and gravity as arguments."""

    def __init__(self, joints: str = "RRRRRR", twist: str | Sequence[int | None] = "any"):
        if not isinstance(joints, str) or not joints or set(joints.upper()) - set("RP"):
            raise ArgumentError(
                f"joints is {joints!r}, expected letters R and P, one for each joint, such as 'RRPRRR'."
            )
        self.joints = joints.upper()
        self.twists = _checked_twists(twist, len(joints))

    @property
    def nv(self) -> int:
        return len(self.joints)

    @property
    def parameter_names(self) -> tuple[tuple[str, ...], ...]:
        """Names of the parameters, (links, 13)."""
        return tuple(tuple(f"{name}{i + 1}" for name in PER_LINK) for i in range(self.nv))

    def random(self, rng: np.random.Generator) -> np.ndarray:
        """Parameters (links, 13) of an arm that could be built."""
        n = self.nv
        alpha, offset = rng.uniform(-np.pi, np.pi, (2, n))
        alpha = np.array(
            [a if twist is None else np.deg2rad(twist) for a, twist in zip(alpha, self.twists, strict=True)]
        )
        spread = rng.uniform(0.01, 0.03, (n, 3))
        tensor = np.stack([spread.sum(1) - spread[:, k] for k in range(3)], 1)
        products = rng.uniform(-0.003, 0.003, (n, 3))
        columns = (alpha, rng.uniform(0.1, 0.4, n), offset, rng.uniform(0.5, 2.0, n))
        return np.column_stack([*columns, rng.uniform(-0.1, 0.1, (n, 3)), tensor, products])

    def robot(self, parameters: ArrayLike, gravity: Sequence[float] = (0.0, 0.0, -9.81)) -> Robot:
        """The robot with these numbers."""
        refuse_foreign("parameters", parameters)
        values = np.asarray(parameters, dtype=float)
        if values.shape != (self.nv, 13) or not np.isfinite(values).all():
            raise ArgumentError(
                f"parameters have shape {values.shape}, expected finite numbers ({self.nv}, 13): see parameter_names."
            )
        rows = []
        for kind, twist, row in zip(self.joints, self.twists, values.tolist(), strict=True):
            alpha, a, offset, m, cx, cy, cz, xx, yy, zz, xy, xz, yz = row
            fixed = {"theta": offset, "joint": "prismatic"} if kind == "P" else {"d": offset}
            rows.append(
                {"alpha": alpha if twist is None else np.deg2rad(twist), "a": a, **fixed, "mass": m,
                 "com": (cx, cy, cz), "inertia": (xx, yy, zz, xy, xz, yz)}
            )  # fmt: skip
        return Robot.from_dh(rows, "modified", name=f"general{self.joints}", gravity=gravity)

    def methods(self, function: str) -> tuple[str, ...]:
        return self._example.methods(function)

    def compile(
        self, functions: Items, *, method: str | None = None, base_parameters: bool | None = None,
        dtype: str | None = None,
    ) -> CompiledFunction:  # fmt: skip
        """A function of (q, ...), then `parameters` (links, 13) and `gravity` (3), for any arm of these joints."""
        return compiled(self.recipe(functions, method, base_parameters), dtype, 1, "llvm")

    def operation_count(
        self, function: Items, method: str | None = None, base_parameters: bool | None = None
    ) -> Counts:
        """Operations for one sample; those among parameters are done beforehand and not counted."""
        return count(self.recipe(function, method, base_parameters).trace())

    def recipe(self, functions: Items, method: str | None = None, base_parameters: bool | None = None) -> Together:
        wanted = listed(functions)
        sets = (Geometry(self.twists, (self.nv, 13)), Gravity())
        return program(
            self._example._core, wanted, method, rolled=False, base_parameters=base_parameters, parameters=sets
        )

    def symbolic(
        self, function: Item, method: str | None = None, *, simplify: bool = False, numbers: str = "rational",
        limit: int | None = None,
    ) -> Symbolic:  # fmt: skip
        """As `Robot.symbolic`, with `parameter_names` and gx, gy, gz for the numbers of the arm."""

        def program(function: Item, method: str | None) -> Program:
            return self.recipe(function, method, False).trace()

        def symbol_names(array: Array) -> Sequence[str]:
            rows = self.parameter_names if array.name == "parameters" else ()
            return [name for row in rows for name in row] or numbered(array)

        return shortest(
            program, self.methods, function, method, symbol_names, f"a general arm {self.joints}",
            Options(simplify, numbers, LIMIT if limit is None else limit),
        )  # fmt: skip

    @lazy
    def _example(self) -> Robot:
        """An arm of this kind: what joints, frames and methods there are."""
        return self.robot(self.random(np.random.default_rng(0)))

    def __repr__(self) -> str:
        return f"<GeneralArm {self.joints}, twists {', '.join('any' if t is None else str(t) for t in self.twists)}>"


def _checked_twists(twist: str | Sequence[int | None], n: int) -> tuple[int | None, ...]:
    if twist in ("any", "right"):
        return (None if twist == "any" else 90,) * n
    given = tuple(twist) if isinstance(twist, (list, tuple)) else ()
    if len(given) != n or any(t is not None and t not in TWISTS for t in given):
        raise ArgumentError(
            f"twist is {twist!r}, expected 'any', 'right' (90 degrees), or {n} entries of None, 0, 90, -90, 180."
        )
    return given
