"""Base parameters: the fewest numbers on which joint forces depend, and how they come from the standard ones.

Symbolic: Khalil's regrouping (regrouping.py), for revolute and sliding joints exact and by rule. What has no effect
under this gravity, or is a combination of others, is then found numerically, by a QR decomposition of the regressor at
random motions (Gautier 1990). Numeric: by that decomposition alone, for any tree.

They are not a Robot: masses vanish, inertias may be negative, and they hold for one base and one gravity.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from .compiled import CompiledFunction
from .errors import ArgumentError
from .model import Placement
from .names import shown
from .parameters import TEN, placed
from .regrouping import regroup
from .spatial import leaves

if TYPE_CHECKING:
    from .robot import Robot

RANK = 1e-9  # of the largest pivot; independent columns of random motions stand well above it
# columns are kept in this order where they depend on one another: Khalil's choice
PREFERENCE = ("ZZ", "XX", "XY", "XZ", "YZ", "mx", "my", "mz", "m", "YY")


@dataclass(frozen=True)
class BaseParameters:
    """values = matrix @ robot.standard_parameters[:10 * links]: tau = regressor @ values + armature * qdd.

    names: quantity and link, as "ZZ1": XX ... YZ inertias about the origin of the link's canonical frame, MX, MY, MZ
    first moments, M masses; numbers count links in document order. matrix: (base, 10 links).
    """

    robot: Robot
    names: tuple[str, ...]
    values: np.ndarray
    matrix: np.ndarray
    armature: np.ndarray
    method: str

    def regressor(self, q: Any, qd: Any, qdd: Any) -> np.ndarray:
        """Y (..., nv, base): what each base parameter asks of each joint."""
        standard = self.robot.regressor(q, qd, qdd)[..., : self.matrix.shape[1]]
        # any standard parameters that have these base parameters will do: the least ones
        return standard @ np.linalg.pinv(self.matrix)

    def inverse_dynamics(self, q: Any, qd: Any, qdd: Any) -> np.ndarray:
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
    if method not in ("symbolic", "numeric"):
        raise ArgumentError(f"base_parameters: method is {shown(method)}, expected 'symbolic' or 'numeric'.")
    links = len(robot.canonical.links)
    to_canonical = _canonical_from_standard(robot)
    grouped = _regrouping_matrix(robot) if method == "symbolic" else np.eye(10 * links)
    motions = _sampled_regressor(robot, 10 * links) @ np.linalg.inv(to_canonical)
    order = _preferred(robot, grouped)
    kept, dependent = _independent(motions[:, order])
    # beta = kept parameters, and what the dependent ones add to them
    selection = np.zeros((len(kept), 10 * links))
    selection[np.arange(len(kept)), [order[k] for k in kept]] = 1.0
    for column, shares in dependent.items():
        selection[:, order[column]] = shares
    names = _all_names(links)
    by_place = sorted(range(len(kept)), key=lambda row: _place(order[kept[row]]))
    matrix = _clean((selection @ grouped @ to_canonical)[by_place])
    standard = robot.standard_parameters
    return BaseParameters(
        robot, tuple(names[order[kept[row]]] for row in by_place), matrix @ standard[: 10 * links], matrix,
        robot.armatures, method,
    )  # fmt: skip


def _independent(motions: np.ndarray) -> tuple[list[int], dict[int, np.ndarray]]:
    """The columns that do not depend on earlier ones; of the others, how they depend on those that are kept."""
    upper = np.linalg.qr(motions, mode="r")
    scale = np.abs(upper).max()
    kept: list[int] = []
    dependent: dict[int, np.ndarray] = {}
    basis = np.zeros((0, motions.shape[0]))
    for column in range(motions.shape[1]):
        vector = motions[:, column]
        rest = vector - basis.T @ (basis @ vector)
        rest = rest - basis.T @ (basis @ rest)  # once more: the first pass leaves rounding
        size = np.linalg.norm(rest)
        if size > RANK * scale:
            kept.append(column)
            basis = np.vstack([basis, rest / size])
        else:
            dependent[column] = np.zeros(0)
    for column in dependent:
        dependent[column] = np.linalg.lstsq(motions[:, kept], motions[:, column], rcond=None)[0]
    return kept, dependent


def _sampled_regressor(robot: Robot, columns: int) -> np.ndarray:
    """The regressor's inertial columns at random motions, one under the other, scaled alike."""
    rng = np.random.default_rng(20)
    samples = max(20, -(-4 * columns // robot.nv))
    q = np.stack([robot.random(rng) for _ in range(samples)])
    qd, qdd = rng.normal(size=(2, samples, robot.nv))
    function = CompiledFunction(robot.recipe("regressor"), "float64", 1, "interpreter")  # once: not worth compiling
    return function(q, qd, qdd)[..., :columns].reshape(-1, columns)


def _canonical_from_standard(robot: Robot) -> np.ndarray:
    """(10 links, 10 links): parameters in canonical frames from those in described frames."""
    links = sorted(robot.canonical.links, key=lambda link: link.row)
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
        found = sorted(regroup(replace(model, links=links), khalil=True).links, key=lambda link: link.row)
        columns.append([x for link in found for x in (link.mass, *link.mp, *link.I)])
    return np.array(columns).T


def _preferred(robot: Robot, grouped: np.ndarray) -> list[int]:
    """The columns that regrouping leaves, in the order in which they are kept."""
    left = [column for column in range(len(grouped)) if grouped[column].any()]
    return sorted(left, key=lambda column: (PREFERENCE.index(TEN[column % 10]), column))


def _all_names(links: int) -> list[str]:
    return [f"{quantity.upper()}{k + 1}" for k in range(links) for quantity in TEN]


def _place(column: int) -> tuple[int, int]:
    """Link by link, inertias before moments before masses."""
    link, quantity = divmod(column, 10)
    return link, (quantity + 6) % 10


def _clean(matrix: np.ndarray) -> np.ndarray:
    """Without what least squares left of zeros and ones."""
    rounded = np.round(matrix)
    return np.where(np.abs(matrix - rounded) < 1e-12, rounded, matrix) + 0.0
