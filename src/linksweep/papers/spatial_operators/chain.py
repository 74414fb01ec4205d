"""A tree of links along the axes of the base, and the spatial operators that its sweeps define.

The paper writes its operators without coordinates. Here every vector is along the axes of the base, at the origin O(k)
of its link. Then phi(k+1, k) is [[1, l~], [0, 1]] as printed, without a rotation.

A causal operator (lower block triangular) is an inward sweep, from tip to base, in which `carry` takes a force from
link k to link k+1. Its adjoint is an outward sweep with the adjoint `carry_T`. A memoryless operator (block diagonal)
is a sweep that carries nothing. `per_link` holds further data of each link for these steps.

SpatialOperators, scipy LinearOperators that are closed under @, +, -, scalar multiples and .T, are these sweeps.
"""

from __future__ import annotations

import itertools
import numbers
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.sparse.linalg import LinearOperator

from ...algorithms.mass_matrix.factorization import Gain
from ...algorithms.rigid_body.kinematics import WORLD, poses
from ...errors import ArgumentError
from ...mechanism.canonical import CanonicalModel
from ...mechanism.joints import Coordinates, Span
from ...mechanism.sweeps import LinkView, PerLink, Records, Unrolled
from ...model.model import BASE
from ...spatial.algebra import ZERO_FORCE, ZERO_MOTION, Force, Inertia, Inward, Motion, Sym, Vec, leaves
from ...spatial.scalars import Values
from ...spatial.transforms import Pose, Shift
from ...support.checks import refuse_foreign

Operand = Any  # operands and results of scipy's LinearOperator: a number, an array, a matrix, another operator
Apply = Callable[[np.ndarray], np.ndarray]  # of (size,) or (size, columns)


class SpatialOperator(LinearOperator):
    """A real linear map, given by a function and its adjoint, of a vector or of several columns.

    Products and sums of SpatialOperators are SpatialOperators; with any other LinearOperator they are scipy's.
    """

    def __init__(self, name: str, shape: tuple[int, int], forward: Apply, adjoint: Apply):
        super().__init__(np.float64, shape)
        self.name = name
        self._forward = forward
        self._backward = adjoint

    def todense(self) -> np.ndarray:
        """The matrix, computed column by column."""
        return self.matmat(np.eye(self.shape[1]))

    def named(self, name: str) -> SpatialOperator:
        """The same operator under another name."""
        return SpatialOperator(name, self.shape, self._forward, self._backward)

    def matvec(self, x: Operand) -> Operand:
        return super().matvec(self._checked(x, self.shape[1], column=True))

    def rmatvec(self, x: Operand) -> Operand:
        return super().rmatvec(self._checked(x, self.shape[0], column=True))

    def matmat(self, X: Operand) -> Operand:
        return super().matmat(self._checked(X, self.shape[1]))

    def rmatmat(self, X: Operand) -> Operand:
        return super().rmatmat(self._checked(X, self.shape[0]))

    def dot(self, x: Operand) -> Operand:
        if isinstance(x, SpatialOperator):
            return self._times(x)
        refuse_foreign(f"{self.name}: the array", x)  # before scipy converts it
        return self._scaled(float(x)) if isinstance(x, numbers.Real) else super().dot(x)

    def __mul__(self, x: Operand) -> Operand:
        return self.dot(x)

    def __matmul__(self, x: Operand) -> Operand:
        return super().__matmul__(x)

    def __rmul__(self, x: Operand) -> Operand:
        return self._scaled(float(x)) if isinstance(x, numbers.Real) else super().__rmul__(x)

    def __truediv__(self, x: Operand) -> Operand:
        return self._scaled(1.0 / float(x)) if isinstance(x, numbers.Real) else super().__truediv__(x)

    def __neg__(self) -> SpatialOperator:
        return self._scaled(-1.0)

    def __add__(self, x: Operand) -> Operand:
        return self._plus(x) if isinstance(x, SpatialOperator) else super().__add__(x)

    def __sub__(self, x: Operand) -> Operand:
        return self + (-x)

    @property
    def T(self) -> SpatialOperator:
        return self._adjoint()

    @property
    def H(self) -> SpatialOperator:
        return self._adjoint()

    def __repr__(self) -> str:
        return f"<{self.shape[0]}x{self.shape[1]} spatial operator {self.name}>"

    def _matvec(self, x: np.ndarray) -> np.ndarray:
        return self._forward(x.reshape(-1))

    def _rmatvec(self, x: np.ndarray) -> np.ndarray:
        return self._backward(x.reshape(-1))

    def _matmat(self, X: np.ndarray) -> np.ndarray:
        return self._forward(X)

    def _rmatmat(self, X: np.ndarray) -> np.ndarray:
        return self._backward(X)

    def _adjoint(self) -> SpatialOperator:
        rows, columns = self.shape
        return SpatialOperator(_transposed(self.name), (columns, rows), self._backward, self._forward)

    def _transpose(self) -> SpatialOperator:
        return self._adjoint()  # the operators are real

    def _times(self, b: SpatialOperator) -> SpatialOperator:
        if self.shape[1] != b.shape[0]:
            raise ArgumentError(
                f"{self.name} {b.name}: {self.shape[0]}x{self.shape[1]} times {b.shape[0]}x{b.shape[1]}, expected as "
                f"many columns as rows."
            )
        a_forward, b_forward, a_adjoint, b_adjoint = self._forward, b._forward, self._backward, b._backward
        return SpatialOperator(
            f"{_grouped(self.name)} {_grouped(b.name)}",
            (self.shape[0], b.shape[1]),
            lambda x: a_forward(b_forward(x)),
            lambda y: b_adjoint(a_adjoint(y)),
        )

    def _plus(self, b: SpatialOperator) -> SpatialOperator:
        if self.shape != b.shape:
            raise ArgumentError(
                f"{self.name} + {b.name}: {self.shape[0]}x{self.shape[1]} plus {b.shape[0]}x{b.shape[1]}, expected the "
                f"same shape: I is the identity of spatial vectors, I_N that of joint vectors."
            )
        a_forward, b_forward, a_adjoint, b_adjoint = self._forward, b._forward, self._backward, b._backward
        name = f"{self.name} - {b.name[1:]}" if b.name.startswith("-") else f"{self.name} + {b.name}"
        return SpatialOperator(
            name, self.shape, lambda x: a_forward(x) + b_forward(x), lambda y: a_adjoint(y) + b_adjoint(y)
        )

    def _scaled(self, factor: float) -> SpatialOperator:
        forward, adjoint, factor = self._forward, self._backward, float(factor)
        name = f"-{_grouped(self.name)}" if factor == -1.0 else f"{factor:g} {_grouped(self.name)}"
        return SpatialOperator(name, self.shape, lambda x: forward(x) * factor, lambda y: adjoint(y) * factor)

    def _checked(self, x: Operand, size: int, column: bool = False) -> Operand:
        """x if it is (size,) or (size, 1), or (size, any) for several columns; a scipy matrix is left to scipy."""
        refuse_foreign(f"{self.name}: the array", x)
        if not hasattr(x, "shape"):
            x = np.asarray(x)
        fits = x.shape in ((size,), (size, 1)) if column else len(x.shape) == 2 and x.shape[0] == size
        if not fits:
            expected = f"({size},)" if column else f"({size}, columns)"
            raise ArgumentError(
                f"{self.name} got an array of shape {tuple(x.shape)}, expected {expected}: stack the links from tip to "
                f"base."
            )
        return x


def _grouped(name: str) -> str:
    return f"({name})" if " + " in name or " - " in name else name


def _transposed(name: str) -> str:
    simple = " " not in name
    return name.removesuffix("^T") if simple and name.endswith("^T") else f"{name if simple else f'({name})'}^T"


# ---- sweeps over links along the axes of the base -----------------------------------------------------------------


class TurnedLink:
    """A link as a step sees it, along the axes of the base at its own origin; a LinkView is in the link's frame."""

    __slots__ = ("H_T", "M", "_shift", "armature", "l")

    def __init__(self, link: LinkView, at: Pose, inner_origin: Vec):
        self.l = at.p - inner_origin  # l(k+1, k)
        self._shift = Shift(self.l)
        self.H_T = Span([Motion(at.turn(h.angular), at.turn(h.linear)) for h in link.H_T.columns])  # (2.16), (2.31)
        axes = np.array([list(at.x), list(at.y), list(at.z)])
        i = (axes.T @ np.array([list(row) for row in link.M.I.rows()]) @ axes).tolist()
        inertia = Sym(i[0][0], i[1][1], i[2][2], i[0][1], i[0][2], i[1][2])
        self.M = Inertia(link.M.mass, at.turn(link.M.mp), inertia)  # (2.15)
        self.armature = link.armature

    def phi(self, f: Inward) -> Inward:
        """phi(k+1, k): a Force or inertia of this link, at the origin of link k+1."""
        return self._shift.to_parent(f)

    def phi_T(self, motion: Motion) -> Motion:
        """phi^T(k+1, k): a Motion of link k+1, at the origin of this link."""
        return self._shift.to_link(motion)

    def H(self, f: Force) -> Coordinates:
        return self.H_T.transpose_times(f)


class TurnedChain(Unrolled):
    """The sweeps of `Unrolled` over links along the axes of the base; `poses` are those of the links' frames."""

    def __init__(self, model: CanonicalModel, q: Sequence[float]):
        super().__init__(model, q)
        self.poses = list(poses(self))
        # O(k+1) of the link that carries this one; O(N+1) is the origin of the base frame
        inner = [WORLD.p if link.parent == BASE else self.poses[link.parent].p for link in model.links]
        self.links: list[Any] = [TurnedLink(*of_link) for of_link in zip(self.links, self.poses, inner, strict=True)]
        sixes = (6,) * len(self.links)
        self.forces, self.motions = Stack(force, sixes), Stack(motion, sixes)
        self.joints = Stack(Coordinates, tuple(len(link.H_T.columns) for link in reversed(self.links)))


@dataclass(frozen=True, slots=True)
class Stack:
    """Converts vectors (sum of widths,), or matrices of them, to one record for each link.

    Blocks are in the paper's order, k = 1 ... N, outer links first. Records are in the order of the code, i = 0 ... n-1
    from base to tip, so k = n - i.
    """

    record: Callable[[Values], Force | Motion | Coordinates]
    widths: tuple[int, ...]

    @property
    def size(self) -> int:
        return sum(self.widths)

    def split(self, x: np.ndarray) -> Records[Any]:
        """Split a vector or several columns; scalars of the records are then numbers or arrays (columns,)."""
        x = np.asarray(x, dtype=np.result_type(x.dtype, np.float64))
        rows = x.tolist() if x.ndim == 1 else list(x)
        ends = list(itertools.accumulate(self.widths))
        blocks = zip(ends, self.widths, strict=True)
        return Records(self.record(rows[end - width : end]) for end, width in reversed(list(blocks)))


def join(records: Sequence[object], like: np.ndarray) -> np.ndarray:
    """Stack records of the links from tip to base, with as many columns as `like`."""
    rows = leaves(list(reversed(records)))
    dtype = np.result_type(like.dtype, np.float64)
    if like.ndim == 1:
        return np.array(rows, dtype=dtype)
    out = np.empty((len(rows), like.shape[1]), dtype=dtype)
    for i, row in enumerate(rows):
        out[i] = row  # a zero block is one number for all columns
    return out


def force(rows: Values) -> Force:
    return Force(Vec(*rows[:3]), Vec(*rows[3:]))


def motion(rows: Values) -> Motion:
    return Motion(Vec(*rows[:3]), Vec(*rows[3:]))


# ---- operators as sweeps ----------------------------------------------------------------------------------------

Carry = Callable[[TurnedLink, Any, Any], Any]  # (link, record, per-link data) -> record


def carry_phi(link: TurnedLink, f: Force, at: object) -> Force:
    return link.phi(f)  # (2.16)


def carry_phi_T(link: TurnedLink, v: Motion, at: object) -> Motion:
    return link.phi_T(v)


def carry_psi(link: TurnedLink, f: Force, at: Gain) -> Force:
    return link.phi(f - Span(at.G) @ link.H(f))  # (4.7) phi - L H, with L = phi G


def carry_psi_T(link: TurnedLink, v: Motion, at: Gain) -> Motion:
    v = link.phi_T(v)
    return v - link.H_T @ Span(at.G).transpose_times(v)


def carry_nothing(link: TurnedLink, f: Force, at: object) -> Force:
    return ZERO_FORCE


def carry_nothing_T(link: TurnedLink, v: Motion, at: object) -> Motion:
    return ZERO_MOTION


def identity(name: str, size: int) -> SpatialOperator:
    def copy(x: np.ndarray) -> np.ndarray:
        return x.astype(np.result_type(x.dtype, np.float64))

    return SpatialOperator(name, (size, size), copy, copy)


def causal(name: str, chain: TurnedChain, carry: Carry, carry_T: Carry, per_link: PerLink) -> SpatialOperator:
    """y(k) = x(k) + carry(k, k-1) y(k-1)."""

    def inward_step(link: TurnedLink, z: Force, x: Force, at: object) -> tuple[Force, Force]:
        y = z + x
        return y, carry(link, y, at)

    def outward_step(link: TurnedLink, inner: Motion, x: Motion, at: object) -> tuple[Motion, Motion]:
        y = carry_T(link, inner, at) + x
        return y, y

    return _swept(name, chain, inward_step, outward_step, per_link)


def strictly_causal(name: str, chain: TurnedChain, carry: Carry, carry_T: Carry, per_link: PerLink) -> SpatialOperator:
    """y(k) = x(k-1) + carry(k, k-1) y(k-1): x(k) does not enter y(k)."""

    def inward_step(link: TurnedLink, z: Force, x: Force, at: object) -> tuple[Force, Force]:
        return z, carry(link, z, at) + x

    def outward_step(link: TurnedLink, inner: Motion, x: Motion, at: object) -> tuple[Motion, Motion]:
        return inner, carry_T(link, inner, at) + x

    return _swept(name, chain, inward_step, outward_step, per_link)


def _swept(name: str, chain: TurnedChain, inward_step: Callable[..., tuple[Force, Force]],
           outward_step: Callable[..., tuple[Motion, Motion]], per_link: PerLink) -> SpatialOperator:  # fmt: skip
    def forward(x: np.ndarray) -> np.ndarray:
        y, _ = chain.inward(inward_step, ZERO_FORCE, chain.forces.split(x), per_link)
        return join(y, x)

    def adjoint(x: np.ndarray) -> np.ndarray:
        return join(chain.outward(outward_step, ZERO_MOTION, chain.motions.split(x), per_link), x)

    return SpatialOperator(name, (chain.forces.size, chain.forces.size), forward, adjoint)


def memoryless(
    name: str, chain: TurnedChain, forward: tuple[Stack, Carry], adjoint: tuple[Stack, Carry], per_link: PerLink
) -> SpatialOperator:
    """A block-diagonal operator; each direction is the stack of its argument and the map of one link."""

    def applied(stack: Stack, block: Carry) -> Apply:
        def step(link: Any, nothing: tuple[()], x: object, at: object) -> tuple[object, tuple[()]]:
            return block(link, x, at), nothing

        return lambda x: join(chain.outward(step, (), stack.split(x), per_link), x)

    return SpatialOperator(name, (adjoint[0].size, forward[0].size), applied(*forward), applied(*adjoint))


def from_tips(name: str, chain: TurnedChain, tips: Sequence[tuple[int, Shift]]) -> SpatialOperator:
    """The operator (6N, 6 for each frame) that maps a force at a frame to a force on its link.

    tips: the link of each frame, and the shift from the link's origin to the frame.
    """
    six = Stack(force, (6,) * len(tips))

    def forward(x: np.ndarray) -> np.ndarray:
        out: list[Force] = [ZERO_FORCE] * len(chain.links)
        for (link, shift), f in zip(tips, reversed(six.split(x)), strict=True):
            out[link] = out[link] + shift.to_parent(f)
        return join(out, x)

    def adjoint(x: np.ndarray) -> np.ndarray:
        moving = chain.motions.split(x)
        return join([shift.to_link(moving[link]) for link, shift in reversed(tips)], x)

    return SpatialOperator(name, (chain.forces.size, six.size), forward, adjoint)


def from_base(name: str, chain: TurnedChain) -> SpatialOperator:
    """The operator (6N, 6) that maps a motion of the base to the links attached to it."""
    one = Stack(motion, (6,))
    on_base = [link.parent == BASE for link in chain.model.links]

    def forward(x: np.ndarray) -> np.ndarray:
        given = one.split(x)[0]
        return join(
            [link.phi_T(given) if so else ZERO_MOTION for link, so in zip(chain.links, on_base, strict=True)], x
        )

    def adjoint(x: np.ndarray) -> np.ndarray:
        total = ZERO_FORCE
        for link, so, f in zip(chain.links, on_base, chain.forces.split(x), strict=True):
            total = total + link.phi(f) if so else total
        return join([total], x)

    return SpatialOperator(name, (chain.forces.size, 6), forward, adjoint)
