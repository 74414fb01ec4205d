"""Base parameters: a minimal set of inertial parameters that determine the joint torques.

Symbolic: Khalil's regrouping rules (functions/parameters.py), exact for revolute and prismatic joints. Parameters
without effect under this gravity, and combinations of others, are then found by a QR decomposition of the regressor at
random motions (Gautier 1990). Numeric: by the QR decomposition alone, for any tree.

Base parameters do not describe rigid bodies: masses vanish, inertias may be negative, and they are valid for one base
and one gravity.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike

from ..errors import ArgumentError
from ..functions.compiled import compiled
from ..functions.parameters import TEN, placed, regroup
from ..model.model import Placement
from ..spatial.algebra import leaves
from ..support.checks import one_of
from ..support.messages import shown
from .robot import Robot

# A column is independent if its distance from the span of those chosen before is at least one of these fractions of its
# natural size. Clear cases come first, so that a difference of 1e-6 rad is not taken for a separate direction.
PARTS = (1e-3, 1e-5, 1e-7, 1e-9, 1e-11, 1e-12)  # the last one is above rounding
# order of preference among dependent columns: Khalil's choice
PREFERENCE = ("ZZ", "XX", "XY", "XZ", "YZ", "mx", "my", "mz", "m", "YY")


@dataclass(frozen=True)
class BaseParameters:
    """Base parameters of a robot, with tau = regressor @ values + armature * qdd.

    Attributes
    ----------
    robot : Robot
    names : names
        Quantity and link, such as "ZZ1": XX ... YZ are inertias about the origin of the link's canonical frame, MX, MY,
        MZ first moments, M masses. Links are numbered in the order of `link_names`.
    values : (base,)
        matrix @ robot.standard_parameters[:10 * links].
    matrix : (base, 10 links)
    standard : (10 links, base)
        Standard parameters of unit base parameters: matrix @ standard = 1.
    armature : (nv,)
    method : "symbolic" or "numeric"
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
        """Return the regressor Y (..., nv, base) of the base parameters."""
        return self.robot.regressor(q, qd, qdd)[..., : self.matrix.shape[1]] @ self.standard

    def inverse_dynamics(self, q: ArrayLike, qd: ArrayLike, qdd: ArrayLike) -> np.ndarray:
        """Return the joint torques (..., nv) from the base parameters and the armatures."""
        return self.regressor(q, qd, qdd) @ self.values + self.armature * np.asarray(qdd)

    def as_dict(self) -> dict[str, float]:
        """Return the base parameters by name."""
        return dict(zip(self.names, self.values.tolist(), strict=True))

    def __getitem__(self, name: str) -> float:
        """Return a base parameter by name; 0 for one that was regrouped or has no effect."""
        if name in self.names:
            return float(self.values[self.names.index(name)])
        if name in _all_names(self.matrix.shape[1] // 10):
            return 0.0
        raise ArgumentError(
            f"unknown base parameter {shown(name)}, expected one of .names, such as {', '.join(self.names[:4])}."
        )

    def __len__(self) -> int:
        return len(self.names)

    def __repr__(self) -> str:
        return f"<BaseParameters of {self.robot.name}: {len(self)} of {self.matrix.shape[1]}, {self.method}>"


def base_parameters(robot: Robot, method: str = "symbolic") -> BaseParameters:
    """See `Robot.base_parameters`."""
    one_of("base_parameters: method", method, ("symbolic", "numeric"))
    links = len(robot.canonical.links)
    to_canonical = _canonical_from_standard(robot)
    from_canonical = np.linalg.inv(to_canonical)
    grouped = _regrouping_matrix(robot) if method == "symbolic" else np.eye(10 * links)
    motions, sizes = _sampled_regressor(robot, from_canonical)
    order = _preferred(grouped)
    kept, shares = independent_columns(motions[:, order] / sizes[order])
    columns = [order[k] for k in kept]
    # beta: independent parameters, with the contributions of the dependent ones
    selection = np.zeros((len(kept), 10 * links))
    selection[:, order] = shares * sizes[order] / sizes[columns][:, None]
    by_place = sorted(range(len(kept)), key=lambda row: _sort_key(columns[row]))
    columns = [columns[row] for row in by_place]
    matrix = _clean((selection @ grouped @ to_canonical)[by_place], sizes[columns], sizes)
    names = _all_names(links)
    return BaseParameters(
        robot, tuple(names[column] for column in columns), matrix @ robot.standard_parameters[: 10 * links], matrix,
        from_canonical[:, columns], robot.armature, method,
    )  # fmt: skip


def independent_columns(motions: np.ndarray) -> tuple[list[int], np.ndarray]:
    """Return independent columns, earlier ones preferred, and coefficients (independent, columns) of all columns."""
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
    """Return the components of the vectors orthogonal to the basis."""
    for _ in range(2):  # the first pass leaves rounding
        vectors = vectors - basis @ (basis.T @ vectors)
    return vectors


def _sampled_regressor(robot: Robot, from_canonical: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the inertial columns of the regressor, stacked over random motions, and the natural size of each.

    The natural size is the largest over all links on a moving base, under gravity of any direction. Rounding is
    relative to it. Motions ignore joint limits, which may exclude any motion.
    """
    rng = np.random.default_rng(20)
    size = len(from_canonical)
    samples = max(20, -(-4 * size // robot.nv))
    q = robot.integrate(robot.neutral(), rng.uniform(-np.pi, np.pi, (samples, robot.nv)))
    qd, qdd = rng.normal(size=(2, samples, robot.nv))
    base = rng.normal(size=(samples, 9))
    directions = base[:, 6:] / np.linalg.norm(base[:, 6:], axis=1, keepdims=True)
    base[:, 6:] = np.linalg.norm(robot.gravity) * directions + np.array(robot.gravity)
    # evaluated once, which is not worth compiling
    function = compiled(robot.recipe("regressor", base_motion=True), "float64", 1, "interpreter")
    still, moving = (
        (function(q, qd, qdd, motion)[..., :size] @ from_canonical).reshape(-1, size)
        for motion in (np.zeros_like(base), base)
    )
    norms = np.linalg.norm(moving, axis=0).reshape(-1, 10)
    groups = [norms[:, :1].max(), *[norms[:, 1:4].max()] * 3, *[norms[:, 4:].max()] * 6]
    sizes = np.tile([norm or 1.0 for norm in groups], size // 10)
    return still, sizes


def _canonical_from_standard(robot: Robot) -> np.ndarray:
    """Return the matrix (10 links, 10 links) from parameters in link frames to those in canonical frames."""
    links = robot.canonical.by_row
    matrix = np.zeros((10 * len(links), 10 * len(links)))
    for k, link in enumerate(links):
        frame = Placement(link.axes, link.origin)  # type: ignore[arg-type]
        columns = [leaves(placed(frame, row)) for row in np.eye(10).tolist()]
        matrix[10 * k : 10 * k + 10, 10 * k : 10 * k + 10] = np.array(columns, dtype=float).T
    return matrix


def _regrouping_matrix(robot: Robot) -> np.ndarray:
    """Return the matrix (10 links, 10 links) from parameters in canonical frames to regrouped ones."""
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
        regrouped = regroup(replace(model, links=links), khalil=True).by_row
        columns.append([x for link in regrouped for x in (link.mass, *link.mp, *link.I)])
    return np.array(columns).T


def _preferred(grouped: np.ndarray) -> list[int]:
    """Return the columns that regrouping leaves, in the order of preference."""
    left = [column for column in range(len(grouped)) if grouped[column].any()]
    return sorted(left, key=lambda column: (PREFERENCE.index(TEN[column % 10]), column))


def _all_names(links: int) -> list[str]:
    return [f"{quantity.upper()}{k + 1}" for k in range(links) for quantity in TEN]


def _sort_key(column: int) -> tuple[int, int]:
    """Sort by link, then inertias, moments and mass."""
    link, quantity = divmod(column, 10)
    return link, (quantity + 6) % 10


def _clean(matrix: np.ndarray, rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
    """Round entries that are integers up to rounding errors; rows, columns: natural sizes of the parameters."""
    rounded = np.round(matrix)
    return np.where(np.abs(matrix - rounded) * rows[:, None] < 1e-13 * columns, rounded, matrix) + 0.0
