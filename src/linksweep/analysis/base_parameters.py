"""Base parameters: the fewest numbers on which joint forces depend, and how they come from the standard ones.

Symbolic: Khalil's regrouping (regrouping.py), for revolute and sliding joints exact and by rule. What has no effect
under this gravity, or is a combination of others, is then found numerically, by a QR decomposition of the regressor at
random motions (Gautier 1990). Numeric: by that decomposition alone, for any tree.

They are not a Robot: masses vanish, inertias may be negative, and they hold for one base and one gravity.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike

from ..catalogue.parameters import TEN, placed
from ..catalogue.regrouping import regroup
from ..compiled.function import CompiledFunction
from ..description.model import Placement
from ..errors import ArgumentError
from ..robot.robot import Robot
from ..spatial.algebra import leaves
from ..support.messages import is_one_of, shown

# A column is kept if it stands out of those kept before by one of these parts of its natural size: the clear cases
# first, so that what tells two parameters apart only by 1e-6 of a radian is not taken for a direction of its own.
PARTS = (1e-3, 1e-5, 1e-7, 1e-9, 1e-11, 1e-12)  # the last one stands above rounding
# columns are kept in this order where they depend on one another: Khalil's choice
PREFERENCE = ("ZZ", "XX", "XY", "XZ", "YZ", "mx", "my", "mz", "m", "YY")


@dataclass(frozen=True)
class BaseParameters:
    """values = matrix @ robot.standard_parameters[:10 * links]: tau = regressor @ values + armature * qdd.

    names: quantity and link, as "ZZ1": XX ... YZ inertias about the origin of the link's canonical frame, MX, MY, MZ
    first moments, M masses; numbers count links in document order. matrix: (base, 10 links). standard: (10 links,
    base), standard parameters that have a base parameter of 1 and no other: matrix @ standard = 1.
    """

    robot: Robot
    names: tuple[str, ...]
    values: np.ndarray
    matrix: np.ndarray
    standard: np.ndarray
    armature: np.ndarray
    method: str

    def __post_init__(self) -> None:
        for array in (self.values, self.matrix, self.standard, self.armature):
            array.flags.writeable = False

    def regressor(self, q: ArrayLike, qd: ArrayLike, qdd: ArrayLike) -> np.ndarray:
        """Y (..., nv, base): what each base parameter asks of each joint."""
        return self.robot.regressor(q, qd, qdd)[..., : self.matrix.shape[1]] @ self.standard

    def inverse_dynamics(self, q: ArrayLike, qd: ArrayLike, qdd: ArrayLike) -> np.ndarray:
        """Joint forces (..., nv), from the base parameters and the armatures alone."""
        return self.regressor(q, qd, qdd) @ self.values + self.armature * np.asarray(qdd)

    def as_dict(self) -> dict[str, float]:
        return dict(zip(self.names, self.values.tolist(), strict=True))

    def __getitem__(self, name: str) -> float:
        """A base parameter by name; one that was regrouped or has no effect is 0."""
        if name in self.names:
            return float(self.values[self.names.index(name)])
        if name in _all_names(self.matrix.shape[1] // 10):
            return 0.0
        raise ArgumentError(
            f"there is no base parameter {shown(name)}, expected one such as {', '.join(self.names[:4])} (.names)."
        )

    def __len__(self) -> int:
        return len(self.names)

    def __repr__(self) -> str:
        return f"<BaseParameters of {self.robot.name}: {len(self)} of {self.matrix.shape[1]}, {self.method}>"


def base_parameters(robot: Robot, method: str = "symbolic") -> BaseParameters:
    """See the module. method: "symbolic", or "numeric"."""
    if not is_one_of(method, ("symbolic", "numeric")):
        raise ArgumentError(f"base_parameters: method is {shown(method)}, expected 'symbolic' or 'numeric'.")
    links = len(robot.canonical.links)
    to_canonical = _canonical_from_standard(robot)
    from_canonical = np.linalg.inv(to_canonical)
    grouped = _regrouping_matrix(robot) if method == "symbolic" else np.eye(10 * links)
    motions, sizes = _sampled_regressor(robot, from_canonical)
    order = _preferred(grouped)
    kept, shares = independent_columns(motions[:, order] / sizes[order])
    columns = [order[k] for k in kept]
    # beta = kept parameters, and what the dependent ones add to them
    selection = np.zeros((len(kept), 10 * links))
    selection[:, order] = shares * sizes[order] / sizes[columns][:, None]
    by_place = sorted(range(len(kept)), key=lambda row: _place(columns[row]))
    columns = [columns[row] for row in by_place]
    matrix = _clean((selection @ grouped @ to_canonical)[by_place], sizes[columns], sizes)
    names = _all_names(links)
    return BaseParameters(
        robot, tuple(names[column] for column in columns), matrix @ robot.standard_parameters[: 10 * links], matrix,
        from_canonical[:, columns], robot.armature, method,
    )  # fmt: skip


def independent_columns(motions: np.ndarray) -> tuple[list[int], np.ndarray]:
    """Columns on which all depend, earlier ones preferred; and the shares (kept, columns) that each has in them."""
    reduced = np.asarray(np.linalg.qr(motions, mode="r"))
    kept: list[int] = []
    basis = np.zeros((len(reduced), 0))
    for part in PARTS:
        rest = _without(basis, reduced)
        for column in range(reduced.shape[1]):
            if column in kept or np.linalg.norm(rest[:, column]) <= part:
                continue
            vector = _without(basis, rest[:, column])
            size = np.linalg.norm(vector)
            if size > part:
                kept.append(column)
                basis = np.column_stack([basis, vector / size])
                rest -= np.outer(basis[:, -1], basis[:, -1] @ rest)
    shares = np.linalg.solve(basis.T @ reduced[:, kept], basis.T @ reduced)
    shares[:, kept] = np.eye(len(kept))
    return kept, shares


def _without(basis: np.ndarray, vectors: np.ndarray) -> np.ndarray:
    """What of the vectors is orthogonal to the basis."""
    for _ in range(2):  # the first pass leaves rounding
        vectors = vectors - basis @ (basis.T @ vectors)
    return vectors


def _sampled_regressor(robot: Robot, from_canonical: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Inertial columns of the regressor at random motions, one under the other, and the natural size of each.

    A natural size is that on a moving base under gravity from anywhere, the largest of all links: what rounding is
    relative to. Motions go beyond the joints' limits, which may leave no room at all.
    """
    rng = np.random.default_rng(20)
    size = len(from_canonical)
    samples = max(20, -(-4 * size // robot.nv))
    q = robot.integrate(robot.neutral(), rng.uniform(-np.pi, np.pi, (samples, robot.nv)))
    qd, qdd = rng.normal(size=(2, samples, robot.nv))
    base = rng.normal(size=(samples, 9))
    directions = base[:, 6:] / np.linalg.norm(base[:, 6:], axis=1, keepdims=True)
    base[:, 6:] = np.linalg.norm(robot.gravity) * directions + np.array(robot.gravity)
    # once: not worth compiling
    function = CompiledFunction(robot.recipe("regressor", base_motion=True), "float64", 1, "interpreter")
    still, moving = (
        (function(q, qd, qdd, motion)[..., :size] @ from_canonical).reshape(-1, size)
        for motion in (np.zeros_like(base), base)
    )
    norms = np.linalg.norm(moving, axis=0).reshape(-1, 10)
    groups = [norms[:, :1].max(), *[norms[:, 1:4].max()] * 3, *[norms[:, 4:].max()] * 6]
    sizes = np.tile([norm or 1.0 for norm in groups], size // 10)
    return still, sizes


def _canonical_from_standard(robot: Robot) -> np.ndarray:
    """(10 links, 10 links): parameters in canonical frames from those in described frames."""
    links = robot.canonical.by_row
    matrix = np.zeros((10 * len(links), 10 * len(links)))
    for k, link in enumerate(links):
        own = Placement(link.axes, link.origin)  # type: ignore[arg-type]
        columns = [leaves(placed(own, row)) for row in np.eye(10).tolist()]
        matrix[10 * k : 10 * k + 10, 10 * k : 10 * k + 10] = np.array(columns, dtype=float).T
    return matrix


def _regrouping_matrix(robot: Robot) -> np.ndarray:
    """(10 links, 10 links): regrouped parameters from those in canonical frames, both in document order."""
    model = robot.canonical
    size = 10 * len(model.links)
    columns = []
    for column in range(size):
        unit = [0.0] * size
        unit[column] = 1.0
        links = tuple(
            replace(link, mass=ten[0], mp=tuple(ten[1:4]), I=tuple(ten[4:]))
            for link in model.links
            for ten in [unit[10 * link.row : 10 * link.row + 10]]
        )
        found = regroup(replace(model, links=links), khalil=True).by_row
        columns.append([x for link in found for x in (link.mass, *link.mp, *link.I)])
    return np.array(columns).T


def _preferred(grouped: np.ndarray) -> list[int]:
    """The columns that regrouping leaves, in the order in which they are kept."""
    left = [column for column in range(len(grouped)) if grouped[column].any()]
    return sorted(left, key=lambda column: (PREFERENCE.index(TEN[column % 10]), column))


def _all_names(links: int) -> list[str]:
    return [f"{quantity.upper()}{k + 1}" for k in range(links) for quantity in TEN]


def _place(column: int) -> tuple[int, int]:
    """Link by link, inertias before moments before masses."""
    link, quantity = divmod(column, 10)
    return link, (quantity + 6) % 10


def _clean(matrix: np.ndarray, rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
    """Without what rounding left of zeros and ones; rows, columns: natural sizes of the parameters."""
    rounded = np.round(matrix)
    return np.where(np.abs(matrix - rounded) * rows[:, None] < 1e-13 * columns, rounded, matrix) + 0.0
