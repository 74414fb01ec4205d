"""Chains of any length from a seed: general geometry, inertias that a rigid body can have."""

from __future__ import annotations

import numpy as np

from linksweep.description.assembly import Part, assemble
from linksweep.description.model import Inertial, Joint, Model, Placement
from linksweep.errors import ArgumentError
from linksweep.support.messages import is_one_of, shown


def chain_model(n: int, seed: int = 0, joints: str = "R") -> Model:
    """A serial chain of `n` links of random general geometry, the same for the same arguments.

    Joint i stands at Rx(alpha) Tx(a) Rz(theta) Tz(d) in its parent (modified DH) with nothing special about
    any number. `joints` is "R" (all revolute) or "mixed" (a third prismatic, at least one of each kind from n
    = 2).
    """
    check_count(n, "n")
    if not is_one_of(joints, ("R", "mixed")):
        raise ArgumentError(f"joints is {shown(joints)}, expected 'R' or 'mixed': choose one of them.")
    if isinstance(seed, bool) or not isinstance(seed, (int, np.integer)) or seed < 0:
        raise ArgumentError(f"seed is {shown(seed)}, expected an integer of zero or more: give one.")
    random = np.random.default_rng(int(seed))
    alpha, theta = random.uniform(-np.pi, np.pi, (2, n))
    a, d = random.uniform(0.1, 0.4, (2, n)) * random.choice((-1.0, 1.0), (2, n))
    mass = random.uniform(0.5, 2.0, n)
    com = random.uniform(-0.15, 0.15, (n, 3))
    inertia = _random_inertias(random, mass)
    prismatic = _random_kinds(random, n) if joints == "mixed" else np.zeros(n, dtype=bool)

    rotation = _rotations(alpha, theta)
    position = np.stack([a, -np.sin(alpha) * d, np.cos(alpha) * d], axis=1)
    parts = [
        Part(
            f"link{i + 1}",
            f"link{i}" if i else "base",
            Joint(
                f"joint{i + 1}",
                "prismatic" if slides else "revolute",
                placement=Placement(_nested(turn), tuple(shift)),  # type: ignore[arg-type]
            ),
            Inertial(weight, tuple(centre), _nested(moments)),  # type: ignore[arg-type]
        )
        for i, (slides, turn, shift, weight, centre, moments) in enumerate(
            zip(
                *(array.tolist() for array in (prismatic, rotation, position, mass, com, inertia)),
                strict=True,
            )
        )
    ]
    parts.append(Part("tool", f"link{n}", Joint("tool mount", "fixed")))
    return assemble(f"chain{n}", parts, base="base")


def check_count(n: int, what: str) -> None:
    if isinstance(n, bool) or not isinstance(n, (int, np.integer)) or n < 1:
        raise ArgumentError(f"{what} is {shown(n)}, expected an integer of one or more: say how many links.")


def _random_kinds(random: np.random.Generator, n: int) -> np.ndarray:
    prismatic = random.random(n) < 1 / 3
    if n > 1 and not prismatic.any():
        prismatic[n // 2] = True
    if prismatic.all():
        prismatic[0] = False
    return prismatic


def _random_inertias(random: np.random.Generator, mass: np.ndarray) -> np.ndarray:
    """(n, 3, 3) full inertias of bodies whose mass spreads by 0.05 to 0.15 m along random directions."""
    n = len(mass)
    spread = random.uniform(0.05, 0.15, (n, 3)) ** 2 * mass[:, None]
    turn, _ = np.linalg.qr(random.normal(size=(n, 3, 3)))
    second_moment = np.einsum("nij,nj,nkj->nik", turn, spread, turn)
    inertia = spread.sum(axis=1)[:, None, None] * np.eye(3) - second_moment
    return (inertia + inertia.transpose(0, 2, 1)) / 2


def _rotations(alpha: np.ndarray, theta: np.ndarray) -> np.ndarray:
    """(n, 3, 3): Rx(alpha) Rz(theta)."""
    ca, sa, ct, st = np.cos(alpha), np.sin(alpha), np.cos(theta), np.sin(theta)
    zero = np.zeros_like(alpha)
    rows = [[ct, -st, zero], [ca * st, ca * ct, -sa], [sa * st, sa * ct, ca]]
    return np.moveaxis(np.array(rows), 2, 0)


def _nested(rows: list[list[float]]) -> tuple[tuple[float, ...], ...]:
    return tuple(tuple(row) for row in rows)
