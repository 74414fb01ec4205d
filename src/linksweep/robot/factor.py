"""The factors of the mass matrix, to solve and to sample with: sweeps over the links, matrices only on request."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import ArrayLike

from ..backends.threads import default_threads
from ..errors import ArgumentError
from ..functions.compiled import CompiledFunction, compiled
from ..functions.computation import Together, internal_function
from ..mechanism.canonical import CanonicalModel
from ..support.checks import as_array, refuse_foreign
from ..support.lazy import lazy
from .core import Core
from .singular import warn_if_singular

Run = Callable[..., np.ndarray]  # (function, q, vector), each with its batch


class Factor:
    """M = L D L^T with L = I + H Phi L and L_inverse = I - H Psi L (Rodriguez & Kreutz 1988, (4.11), (4.14)).

    D: (..., nv), the inertia that each joint sees with the outer joints free; a multi-DOF joint sees a block,
    and where there is one D is (..., nv, nv), block diagonal. `solve`, `colour` and `whiten` take vectors (..., nv)
    whose batch broadcasts with that of q, and sweep once over the links for each. L and L_inverse (..., nv, nv) are
    computed at first use: unit (block) triangular, lower if joints are ordered from tip to base. Arrays are read-only.
    """

    def __init__(self, q: ArrayLike, nv: int, blocks: Sequence[slice], run: Run):
        """blocks: the rates of each joint that has several."""
        self._nv, self._blocks, self._run = nv, tuple(blocks), run
        D = run("factor", q, np.ones(nv, np.float16))  # checks q; the result has its type
        self.q = _frozen(np.array(q, D.dtype))
        self.D = _frozen(self._block_diagonal() if blocks else D)

    def _block_diagonal(self) -> np.ndarray:
        widest = max(block.stop - block.start for block in self._blocks)
        chosen = np.zeros((widest, self._nv))  # row f: DOF f of every joint
        chosen[0] = 1.0
        for block in self._blocks:
            chosen[:, block] = np.eye(widest, block.stop - block.start)
        columns = self._of_each(chosen, "factor")
        D = np.zeros((*columns.shape[:-2], self._nv, self._nv), columns.dtype)
        each = np.arange(self._nv)
        D[..., each, each] = columns[..., 0, :]
        for block in self._blocks:
            D[..., block, block] = np.swapaxes(columns[..., : block.stop - block.start, block], -1, -2)
        return D

    def solve(self, b: ArrayLike) -> np.ndarray:
        """M^-1 b: (I - H Psi L)^T D^-1 (I - H Psi L) b, (4.16)."""
        return self._run("solve", self.q, self._checked(b))

    def colour(self, white: ArrayLike) -> np.ndarray:
        """(I + H Phi L) D^(1/2) w: vectors of covariance M from white ones, the innovations model (4.12)."""
        return self._run("colour", self.q, self._root_times(self._checked(white)))

    def whiten(self, y: ArrayLike) -> np.ndarray:
        """The reverse of `colour`: D^(-1/2) (I - H Psi L) y, (4.15)."""
        return self._root_solve(self._run("whiten", self.q, self._checked(y)))

    def logdet(self) -> np.ndarray:
        """log det M, the sum of those of D."""
        roots, blocks = self._roots
        total = np.log(roots).sum(axis=-1)
        for root in blocks:
            total = total + np.log(np.diagonal(root, axis1=-2, axis2=-1)).sum(axis=-1)
        return 2.0 * total

    @lazy
    def L(self) -> np.ndarray:
        """I + H Phi L, (..., nv, nv)."""
        return self._matrix("colour")

    @lazy
    def L_inverse(self) -> np.ndarray:
        """I - H Psi L, (..., nv, nv)."""
        return self._matrix("whiten")

    def _matrix(self, sweep: str) -> np.ndarray:
        """The sweep of every unit vector, as columns."""
        return _frozen(np.ascontiguousarray(np.swapaxes(self._of_each(np.eye(self._nv), sweep), -1, -2)))

    def _of_each(self, vectors: np.ndarray, function: str) -> np.ndarray:
        """Return a function of all these vectors (n, nv) at every configuration: (..., n, nv)."""
        return self._run(function, self.q[..., None, :], vectors.astype(self.q.dtype))

    @lazy
    def _roots(self) -> tuple[np.ndarray, list[np.ndarray]]:
        """D^(1/2): that of 1-DOF joints, 1 elsewhere; and of each block an upper triangular R, D = R R^T."""
        if not self._blocks:
            return np.sqrt(self.D), []
        single, blocks = np.sqrt(np.diagonal(self.D, axis1=-2, axis2=-1)), []
        for block in self._blocks:
            single[..., block] = 1.0
            reversed_root = np.linalg.cholesky(self.D[..., block, block][..., ::-1, ::-1])
            blocks.append(reversed_root[..., ::-1, ::-1])
        return single, blocks

    def _root_times(self, x: np.ndarray) -> np.ndarray:
        single, blocks = self._roots
        out = single * x
        for block, root in zip(self._blocks, blocks, strict=True):
            out[..., block] = (root @ out[..., block, None])[..., 0]
        return out

    def _root_solve(self, x: np.ndarray) -> np.ndarray:
        single, blocks = self._roots
        out = x / single
        for block, root in zip(self._blocks, blocks, strict=True):
            out[..., block] = np.linalg.solve(root, out[..., block, None])[..., 0]
        return out

    def __setstate__(self, state: dict[str, object]) -> None:
        self.__dict__.update(state)
        for value in state.values():
            if isinstance(value, np.ndarray):
                _frozen(value)

    def _checked(self, vector: ArrayLike) -> np.ndarray:
        refuse_foreign("factor: the vector", vector)
        array = as_array(vector)
        if array.dtype.kind not in "iufb" or array.ndim == 0 or array.shape[-1] != self._nv:
            raise ArgumentError(
                f"factor: got an array of shape {array.shape} and type {array.dtype}, expected (..., {self._nv}) "
                f"real numbers."
            )
        return array


class _Sweeps:
    """The compiled sweeps of one robot by name, each made at first use. They pickle without the robot.

    held: functions that live as long as the robot.
    """

    def __init__(self, model: CanonicalModel, held: set[CompiledFunction] | None = None):
        self._model, self._held = model, set() if held is None else held
        self._functions: dict[str, CompiledFunction] = {}

    def __call__(self, name: str, *args: ArrayLike) -> np.ndarray:
        function = self._functions.get(name)
        if function is None:
            function = compiled(Together((internal_function(self._model, name),)), None, default_threads())
            self._held.add(function)
            self._functions[name] = function
        return function(*args)

    def __reduce__(self) -> tuple[object, ...]:
        return _Sweeps, (self._model,)


def factor(core: Core, q: ArrayLike) -> Factor:
    """Return the factors of the mass matrix at q."""
    blocks = [link.rates for link in core.canonical.links]
    core.parts(["factor"], internal=True)  # raises if the robot has no inertia, or a joint moves none
    sweeps = _Sweeps(core.canonical, core.held)
    factors = Factor(q, core.nv, [block for block in blocks if block.stop - block.start > 1], sweeps)
    warn_if_singular(core, "factor", factors.q)
    return factors


def _frozen(array: np.ndarray) -> np.ndarray:
    array.flags.writeable = False
    return array
