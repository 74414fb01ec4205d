"""The four inertia updates of the filter on ill-conditioned chains: forward dynamics against 50 digits.

    python benchmarks/updates.py [--samples N] [--json FILE]

P^+ = P - P H^T D^-1 H P is computed as Rodriguez 1987 prints it, (43), in the forms (50) and (51), and by Bierman's
factors U diag(d) U^T. Here each runs compiled, as users call it, on chains whose masses differ by up to 1e8. The exact
result is that of the same algorithm over mpmath numbers, at the same doubles: what remains is rounding alone. (The
factored form starts from the inertia about the mass centre, the others from that about the joint: other doubles.)
"""

from __future__ import annotations

import argparse
import functools
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from typing import Any

import mpmath
import numpy as np
from measure import heading, table, write_json

import linksweep as ls
from linksweep.algorithms.forward.filter_smoother import filter_smoother
from linksweep.algorithms.forward.filter_smoother_ud import filter_smoother_ud
from linksweep.mechanism.bias import BaseMotion
from linksweep.mechanism.canonical import CanonicalModel
from linksweep.mechanism.joints import Coordinates
from linksweep.mechanism.sweeps import Records, Unrolled
from linksweep.spatial.algebra import ZERO_FORCE, ZERO_VEC, Vec

LINKS, SEED = 6, 3
DIGITS = 50
FORMS: dict[str, Callable[..., Any]] = {
    "filter_smoother": functools.partial(filter_smoother, update="43"),
    "filter_smoother_50": functools.partial(filter_smoother, update="50"),
    "filter_smoother_51": functools.partial(filter_smoother, update="51"),
    "filter_smoother_ud": filter_smoother_ud,
}
SHORT = {"filter_smoother": "(43)", "filter_smoother_50": "(50)", "filter_smoother_51": "(51)"}


class Digits:
    """An mpmath number that brings its own functions. A product with the plain number 0 is the plain number 0, as it is
    in a traced program: structural zeros stay structural."""

    __slots__ = ("x",)

    def __init__(self, x: Any):
        self.x = x.x if isinstance(x, Digits) else mpmath.mpf(x)

    def __add__(self, b: Any) -> Digits:
        return Digits(self.x + Digits(b).x)

    def __sub__(self, b: Any) -> Digits:
        return Digits(self.x - Digits(b).x)

    def __rsub__(self, b: Any) -> Digits:
        return Digits(Digits(b).x - self.x)

    def __mul__(self, b: Any) -> Any:
        return 0.0 if isinstance(b, float) and b == 0.0 else Digits(self.x * Digits(b).x)

    def __truediv__(self, b: Any) -> Digits:
        return Digits(self.x / Digits(b).x)

    def __rtruediv__(self, b: Any) -> Any:
        return 0.0 if isinstance(b, float) and b == 0.0 else Digits(Digits(b).x / self.x)

    def __neg__(self) -> Digits:
        return Digits(-self.x)

    def __gt__(self, b: Any) -> bool:
        return bool(self.x > Digits(b).x)

    __radd__, __rmul__ = __add__, __mul__

    def sin(self) -> Digits:
        return Digits(mpmath.sin(self.x))

    def cos(self) -> Digits:
        return Digits(mpmath.cos(self.x))


@dataclass
class Row:
    """Of one chain: condition of M; the error of accelerations that torques rounded to doubles bring, to compare with;
    for each form the largest errors of accelerations and of joint inertias D, and the smallest D found."""

    chain: str
    condition: float
    torques: float
    qdd: dict[str, float]
    D: dict[str, float]
    least: float


def scaled(masses: Any, spread: Any = None) -> ls.Robot:
    """The random chain with the mass of each link multiplied, and its inertia about the mass centre as well (and again
    by `spread`: small for links that are almost points)."""
    model = ls.robots.chain_model(LINKS, SEED)
    links = []
    for link, m, s in zip(model.links, masses, np.ones(LINKS) if spread is None else spread, strict=True):
        body = link.inertial
        inertia = tuple(tuple(float(m * s) * x for x in row) for row in body.inertia)
        links.append(replace(link, inertial=replace(body, mass=float(m) * body.mass, inertia=inertia)))
    return ls.Robot(replace(model, links=tuple(links)))


def chains() -> dict[str, ls.Robot]:
    ramp = np.linspace(0.0, 1.0, LINKS)
    found = {"equal masses": scaled(np.ones(LINKS))}
    for ratio in (1e4, 1e8):
        found[f"heavy tip, {ratio:.0e}"] = scaled(ratio**ramp)
        found[f"heavy base, {ratio:.0e}"] = scaled(ratio ** (1 - ramp))
    found["one heavy link in the middle, 1e+08"] = scaled(np.where(np.arange(LINKS) == LINKS // 2, 1e8, 1.0))
    found["every other link heavy, 1e+08"] = scaled(np.where(np.arange(LINKS) % 2, 1e8, 1.0))
    found["almost point masses, I_c times 1e-08"] = scaled(np.ones(LINKS), np.full(LINKS, 1e-8))
    point = np.where(np.arange(LINKS) == LINKS - 1, 1e-8, 1.0)
    found["heavy tip, 1e+08, almost points"] = scaled(1e8**ramp, np.full(LINKS, 1e-8))
    found["last link almost a point"] = scaled(np.ones(LINKS), point)
    return found


def many_digits(model: CanonicalModel) -> CanonicalModel:
    """The same doubles as numbers of many digits: else the last link, all constants, would be computed in doubles."""
    names = ("factors", "angle", "turn", "slide", "mass", "mp", "I", "com", "I_com", "armature")
    links = [replace(link, **{name: _exact(getattr(link, name)) for name in names}) for link in model.links]
    return replace(model, links=tuple(links))


def _exact(value: Any) -> Any:
    if isinstance(value, tuple):
        return tuple(_exact(x) for x in value)
    return Digits(value) if isinstance(value, float) and value not in (0.0, 1.0, -1.0) else value


def run(form: Callable[..., Any], model: CanonicalModel, number: Callable[..., Any], *state: Any) -> Any:
    """Accelerations and joint inertias D by one form, at q, qd, tau over the numbers that `number` makes."""
    q, qd, tau = ([number(float(x)) for x in vector] for vector in state)
    sweep = Unrolled(model, q)
    base = BaseMotion(ZERO_VEC, ZERO_VEC, Vec(*(-g for g in model.gravity)))
    result = form(sweep, sweep.split(qd), sweep.split(tau), sweep.same(ZERO_FORCE), base)
    rows = result.filtered.D  # of one-freedom joints: a number, or a block with a number in it
    inertias = [Coordinates(row[0] if isinstance(row, tuple) else row for row in block) for block in rows]
    return tuple([mpmath.mpf(getattr(x, "x", x)) for x in sweep.join(Records(y))] for y in (result.qdd, inertias))


def error(found: Any, exact: Any) -> float:
    """The largest difference, of the largest entry."""
    return float(max(abs(a - b) for a, b in zip(found, exact, strict=True)) / max(abs(b) for b in exact))


def entry_error(found: Any, exact: Any) -> float:
    """The largest relative difference of an entry."""
    return float(max(abs(a - b) / abs(b) for a, b in zip(found, exact, strict=True)))


def compared(name: str, robot: ls.Robot, samples: int) -> Row:
    random = np.random.default_rng(1)
    q, qd, qdd = random.uniform(-2, 2, (3, samples, LINKS))
    tau = robot.inverse_dynamics(q, qd, qdd)  # so that accelerations are of order 1: what is left of large torques
    found = {form: robot.forward_dynamics(q, qd, tau, method=form) for form in FORMS}
    found["composite"] = robot.forward_dynamics(q, qd, tau, method="composite")
    model, many = robot.canonical, many_digits(robot.canonical)
    errors, inertias, least = dict.fromkeys(found, 0.0), dict.fromkeys(FORMS, 0.0), np.inf
    for k in range(samples):
        state = (q[k], qd[k], tau[k])
        exact = {form: run(algorithm, many, Digits, *state) for form, algorithm in FORMS.items()}
        spread = max(error(exact[form][0], exact["filter_smoother"][0]) for form in list(FORMS)[:3])
        assert spread < 1e-20, "the forms (43), (50), (51) disagree at 50 digits"
        for form in found:
            errors[form] = max(errors[form], error(found[form][k], exact.get(form, exact["filter_smoother"])[0]))
        for form, algorithm in FORMS.items():
            D = run(algorithm, model, float, *state)[1]
            least = min(least, *(float(x) for x in D))
            inertias[form] = max(inertias[form], entry_error(D, exact[form][1]))
    inverse = robot.mass_matrix_inverse(q)
    moved = (np.abs(inverse) @ np.abs(tau)[:, :, None])[:, :, 0].max(axis=1) / np.abs(qdd).max(axis=1)
    condition = float(np.linalg.cond(robot.mass_matrix(q)).max())
    return Row(name, condition, float(moved.max() * 2.0**-53), errors, inertias, least)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--samples", type=int, default=50, help="random states of each chain")
    parser.add_argument("--json", metavar="FILE", help="write the rows, and what they ran on, here")
    options = parser.parse_args()

    mpmath.mp.dps = DIGITS
    print(heading())
    rows = [compared(name, robot, options.samples) for name, robot in chains().items()]
    forms = [SHORT.get(form, form.removeprefix("filter_smoother_").upper()) for form in FORMS]
    print(f"\nAccelerations: largest error, of the largest entry, {options.samples} states of {LINKS} revolute joints")
    cells = [(r.chain, f"{r.condition:.0e}", f"{r.torques:.0e}", *(f"{e:.1e}" for e in r.qdd.values())) for r in rows]
    print(table([("", "cond M", "torques", *forms, "composite"), *cells]))
    print("torques: the error that rounding the torques to doubles may bring, 1.1e-16 |M^-1| |tau|, to any method")
    print("\nJoint inertias D: largest relative error of an entry, over Python floats")
    print(table([("", *forms), *((r.chain, *(f"{e:.1e}" for e in r.D.values())) for r in rows)]))
    print(f"Smallest D of all runs: {min(r.least for r in rows):.1e}")
    write_json(options.json, [asdict(row) for row in rows])


if __name__ == "__main__":
    main()
