"""`check`: whether all formulations agree on a robot, and whether its model is physically plausible.

`check` computes every function by every method that applies to the robot, on random states, and compares. The
recursions are independent derivations of the same mechanics. If they agree to rounding, they are correct for the given
parameters. model/lint.py checks whether these parameters are plausible.

Differences are relative and dimensionless for all joint types. Where M must be inverted they are divided by the effect
of rounding in M and in the torques, which is the conditioning of the problem.
With m_i = sqrt(M_ii), so that |M_ij| <= m_i m_j, and r_i = sum_j |M^-1|_ij m_j (docs/checking.md):

    torques              |difference| / the largest torque of the samples; Coriolis: that over the largest velocity
    mass matrix          |difference_ij| / (m_i m_j)
    its inverse          |difference_ij| / (r_i r_j)
    M M^-1 = 1           |difference_ij| / (m_i r_j)
    accelerations        |difference_i| / sum_j |M^-1|_ij (m_j sum_k m_k |qdd_k| + |bias_j| + |tau_j|)
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ..errors import ArgumentError
from ..functions.compiled import chosen_backend
from ..functions.defaults import ROLL_ABOVE
from ..functions.functions import FUNCTIONS
from ..model.lint import Finding, lint
from ..support.checks import whole_number
from ..support.display import html_table
from ..support.files import Facts
from .robot import Robot, checked_robot

if TYPE_CHECKING:
    from .options import Flags

TOLERANCE = 1e-10
TORQUES = ("inverse_dynamics", "bias_forces", "gravity_forces")
EXPLICIT = ("effective_inertia", "coriolis_matrix")
LARGEST_EXPLICIT = 12  # links: their programs grow with the cube
WITH_ALL_TERMS = ("inverse_dynamics", "forward_dynamics")
ALL_TERMS: Flags = {"f_ext": True, "dissipation": True, "base_motion": True}
LARGEST_SAMPLES = 100_000


@dataclass(frozen=True, slots=True)
class Difference:
    """Largest difference of a method from another method of the same function, or from an identity."""

    function: str
    method: str
    against: str
    value: float  # NaN where a result is not finite

    @property
    def ok(self) -> bool:
        """Whether the difference is within the tolerance."""
        return self.value <= TOLERANCE


@dataclass(frozen=True, slots=True)
class Skipped:
    """A function or method that was not compared, and the reason. method "": no method of the function."""

    function: str
    method: str
    reason: str


@dataclass(frozen=True)
class Report:
    """Result of `check`. `ok`: no difference beyond `tolerance` and no error in the model; warnings do not count."""

    robot: str
    samples: int
    seed: int
    tolerance: float
    differences: tuple[Difference, ...]
    skipped: tuple[Skipped, ...]
    findings: tuple[Finding, ...]
    singular: tuple[str, ...] = ()  # joints; accelerations are not compared in singular configurations
    singular_poses: int = 0

    @property
    def disagreements(self) -> tuple[Difference, ...]:
        """Differences beyond the tolerance."""
        return tuple(difference for difference in self.differences if not difference.ok)

    @property
    def errors(self) -> tuple[Finding, ...]:
        """Errors in the model."""
        return tuple(finding for finding in self.findings if finding.level == "error")

    @property
    def ok(self) -> bool:
        """Whether there are no differences beyond the tolerance and no errors in the model."""
        return not self.disagreements and not self.errors

    @property
    def worst(self) -> float:
        """Largest difference; NaN if a result is not finite, 0 if nothing was compared."""
        values = [difference.value for difference in self.differences]
        return float("nan") if any(map(math.isnan, values)) else max(values, default=0.0)

    @property
    def verdict(self) -> str:
        """The result in one sentence."""
        if self.disagreements:
            number = len(self.disagreements)
            result = f"{_count(number, 'result')} differ{'s' if number == 1 else ''} by more than {self.tolerance:g}"
        elif self.singular:
            joints = ", ".join(self.singular)
            poses = f"{self.singular_poses} of {_count(self.samples, 'configuration')}"
            result = f"joint {joints} is singular in {poses}; all other results agree to {self.worst:.1e}"
        elif self.differences:
            result = f"all formulations agree to {self.worst:.1e}"
        else:
            result = "nothing could be compared"
        counts = [(len(self.errors), "error"), (len(self.findings) - len(self.errors), "warning")]
        lint = " and ".join(_count(number, word) for number, word in counts if number)
        return f"{self.robot}: {result}; {lint or 'no remarks'} about the model."

    def as_dict(self) -> Facts:
        """Return the report as JSON values; a difference that is not finite is null."""
        return {
            "robot": self.robot,
            "ok": self.ok,
            "verdict": self.verdict,
            "samples": self.samples,
            "seed": self.seed,
            "tolerance": self.tolerance,
            "differences": [
                {
                    "function": d.function,
                    "method": d.method,
                    "against": d.against,
                    "difference": d.value if math.isfinite(d.value) else None,
                    "ok": d.ok,
                }
                for d in self.differences
            ],
            "singular": {"joints": list(self.singular), "poses": self.singular_poses},
            "skipped": [{"function": s.function, "method": s.method, "reason": s.reason} for s in self.skipped],
            "lint": [{"level": f.level, "what": f.what, "where": list(f.where)} for f in self.findings],
        }

    def _repr_html_(self) -> str:
        return html_table(
            f"{self.robot}: {self.samples} states", HEADINGS, self.rows(), [self.verdict, *self.remarks()]
        )

    def rows(self) -> list[tuple[str, str, str, str, str]]:
        """Return the table: function, method, the method furthest from it, the difference, and "ok" or "DIFFERS"."""
        return [
            (d.function, d.method, d.against, f"{d.value:.1e}", "ok" if d.ok else "DIFFERS") for d in self.differences
        ]

    def remarks(self) -> list[str]:
        """Return what was skipped and the remarks about the model, one line each."""
        skipped = [
            f"not compared: {s.function}{f' by {s.method}' if s.method else ''}, {s.reason}" for s in self.skipped
        ]
        return skipped + [str(finding) for finding in self.findings]

    def __str__(self) -> str:
        rows = [HEADINGS, *self.rows()]
        widths = [max(len(row[k]) for row in rows) for k in range(len(HEADINGS))]
        lines = ["  ".join(word.ljust(width) for word, width in zip(row, widths, strict=True)).rstrip() for row in rows]
        return "\n".join([self.verdict, *(lines if self.differences else []), *self.remarks()])


HEADINGS = ("function", "method", "furthest from", "difference", "")


def check(robot: Robot, samples: int = 20, seed: int = 0) -> Report:
    """Compare every method of every function on random states of the robot, and check its model for plausibility.

    States lie within finite joint limits. Inverse and forward dynamics are compared with external wrenches on every
    link, dissipation and a moving base. Accelerations and M^-1 are not compared where a joint is singular
    (`Robot.singular`), and the report lists these joints. A robot without forward dynamics raises no error.

    For a robot with constraints, these methods are compared on the kinematic tree. Constrained accelerations are
    compared with a dense solution at random configurations that satisfy the constraints, and with K qdd + k = 0.

    Parameters
    ----------
    robot : Robot
    samples : int
        Number of random states.
    seed : int
        Seed of the random states.

    Returns
    -------
    Report
    """
    checked_robot(robot, "check")
    whole_number("check: samples", samples, at_least=1, at_most=LARGEST_SAMPLES)
    whole_number("check: seed", seed, at_least=0, at_most=2**63)
    findings = lint(robot.model)
    fatal = any(finding.fatal for finding in findings)
    comparison = _Comparison(robot.without_constraints(), {} if fatal else random_states(robot, samples, seed))
    if fatal:
        reason = "because the model has invalid parameters"
        comparison.skipped.append(Skipped("dynamics", "", reason))
    else:
        findings = lint(robot.model, robot.singular_joints)
        comparison.run()
        if robot.constraints:
            _Closed(robot, comparison).run(samples, seed)
    singular = tuple(
        name
        for name, is_so in zip(robot.joint_names, np.asarray(comparison.singular.any(axis=0)), strict=True)
        if is_so
    )
    return Report(
        robot.name, samples, seed, TOLERANCE, tuple(comparison.differences), tuple(comparison.skipped), findings,
        singular, int(comparison.singular.any(axis=1).sum()),
    )  # fmt: skip


def random_states(robot: Robot, samples: int, seed: int) -> dict[str, np.ndarray]:
    """Return random q (samples, nq), qd, qdd (samples, nv), f_ext (samples, links, 6), base_motion (samples, 9)."""
    random = np.random.default_rng(seed)
    joints = robot.model.joints
    limits = [joint.limits.velocity for joint in joints for _ in range(joint.type.nv)]
    speed = np.array([min(limit, 3.0) if limit > 0 else 3.0 for limit in limits])
    return {
        "q": np.array([robot.random(random) for _ in range(samples)]),
        "qd": random.uniform(-1.0, 1.0, (samples, robot.nv)) * speed,
        "qdd": random.uniform(-5.0, 5.0, (samples, robot.nv)),
        "f_ext": random.uniform(-1.0, 1.0, (samples, len(robot.link_names), 6)),
        "base_motion": random.uniform(-1.0, 1.0, (samples, 9)),
    }


class _Comparison:
    """Results of all methods on the same states, and their differences."""

    def __init__(self, robot: Robot, states: dict[str, np.ndarray]):
        self.robot = robot
        self.states = states
        self.differences: list[Difference] = []
        self.skipped: list[Skipped] = []
        self.singular = np.zeros((len(states.get("q", ())), len(robot.joint_names)), bool)

    def run(self) -> None:
        if not self.robot.has_inertia:
            self.skipped.append(Skipped("dynamics", "", "the robot has no mass or inertia at all"))
            return
        with np.errstate(all="ignore"):  # results that are not finite are reported
            if self.robot.can_be_singular:
                self.singular = self.robot.singular(self.states["q"])
            self._torques()
            self._matrices()

    def _torques(self) -> None:
        results = {function: self._results(function) for function in TORQUES}
        self.states["tau"] = tau = next(iter(results["inverse_dynamics"].values()))
        largest = np.abs(tau).max()
        for function, values in results.items():
            self.compare(function, values, largest)
        bias, gravity = (next(iter(results[function].values())) for function in TORQUES[1:])
        if any(spring.damping for spring in self.robot.model.springs):  # dampers are odd in qd, and not part of C qd
            bias = 0.5 * (bias + self.robot.bias_forces(self.states["q"], -self.states["qd"]))
        coriolis = self._results("coriolis_matrix")
        self.compare("coriolis_matrix", coriolis, largest / np.abs(self.states["qd"]).max())
        for method, C in coriolis.items():
            torque = (C @ self.states["qd"][..., None])[..., 0]
            self.identity("C qd = bias - gravity", method, torque - (bias - gravity), largest)

    def _matrices(self) -> None:
        masses = self._results("mass_matrix")
        M = next(iter(masses.values()))
        m = np.sqrt(np.abs(np.diagonal(M, axis1=-2, axis2=-1)))
        self.compare("mass_matrix", masses, _outer(m, m))
        explicit = self._results("effective_inertia")
        if explicit:
            self.compare("effective_inertia", {**explicit, "mass_matrix": M}, _outer(m, m))
        determined = ~self.singular.any(axis=1)
        self.states = {name: values[determined] for name, values in self.states.items()}
        M, m = M[determined], m[determined]
        inverses, accelerations = self._results("mass_matrix_inverse"), self._results("forward_dynamics")
        if self.robot.singular_joints or not determined.any():
            return
        inverse = np.abs(next(iter(inverses.values())) if inverses else np.linalg.inv(M))
        articulated = self._results("articulated_inertia") if self.robot.methods("articulated_inertia") else {}
        if articulated:
            moments = np.diagonal(next(iter(articulated.values())), axis1=-2, axis2=-1)
            least = 1e-12 * moments.max()  # for links without mass
            size = np.sqrt(np.maximum(moments, least))
            # D >= 1 / (M^-1)_ii remains of M_ii after cancellation: division by it amplifies rounding by their ratio
            pivots = (m * m * np.diagonal(inverse, axis1=-2, axis2=-1)).max(axis=-1)
            self.compare("articulated_inertia", articulated, _outer(size, size) * pivots[:, None, None, None])
        reach = (inverse @ m[..., None])[..., 0]
        self.compare("mass_matrix_inverse", inverses, _outer(reach, reach))
        for method, value in inverses.items():
            self.identity("M M^-1 = 1", method, M @ value - np.eye(M.shape[-1]), _outer(m, reach))

        qdd, tau = self.states["qdd"], self.states["tau"]
        bias = self._computed("bias_forces", None, "interpreter", ALL_TERMS)
        torque = m * (m * np.abs(qdd)).sum(axis=-1, keepdims=True) + np.abs(bias) + np.abs(tau)
        scale = (inverse @ torque[..., None])[..., 0]
        self.compare("forward_dynamics", accelerations, scale)
        for method, value in accelerations.items():
            self.identity("forward after inverse", method, value - qdd, scale)

    def _results(self, function: str) -> dict[str, np.ndarray]:
        """Return the function by every method of the robot, and by the default one as machine code."""
        known = FUNCTIONS[function]
        if known.invertible and self.robot.singular_joints:
            joints = ", ".join(self.robot.singular_joints)
            self.skipped.append(Skipped(function, "", f"because no inertia moves with joint {joints}"))
            return {}
        if known.invertible and not len(self.states["q"]):
            self.skipped.append(Skipped(function, "", "because every configuration is singular"))
            return {}
        able, largest = self.robot.methods(function), LARGEST_EXPLICIT if function in EXPLICIT else ROLL_ABOVE
        options: Flags = ALL_TERMS if function in WITH_ALL_TERMS else {}
        results = {}
        for method, properties in known.methods.items():
            if method not in able:
                chain = properties.serial and not self.robot.canonical.is_serial
                needed = "a serial chain" if chain else "1-DOF joints"
                self.skipped.append(Skipped(function, method, f"which needs {needed}"))
            elif properties.written_out and len(self.robot.model.links) > largest:
                self.skipped.append(Skipped(function, method, f"which is unrolled, for at most {largest} links"))
            else:
                results[method] = self._computed(function, method, "interpreter", options)
        if chosen_backend(None) == "llvm" and results and function not in EXPLICIT:
            default = next(method for method in able if method in results)
            results[f"{default}, compiled"] = self._computed(function, default, "llvm", options)
        return results

    def _computed(self, function: str, method: str | None, backend: str, options: Flags) -> np.ndarray:
        compiled = self.robot.compile(function, method=method, backend=backend, **options)
        return compiled(*(self.states[name] for name in compiled.inputs))

    def compare(self, function: str, results: dict[str, np.ndarray], scale: float | np.ndarray) -> None:
        """Add one row for each method, with the other method from which it is furthest."""
        for method, value in results.items():
            others = {other: _largest(value - result, scale) for other, result in results.items() if other != method}
            if others:
                against = max(others, key=lambda other: (math.isnan(others[other]), others[other]))
                self.differences.append(Difference(function, method, against, others[against]))

    def identity(self, name: str, method: str, residual: np.ndarray, scale: np.ndarray) -> None:
        self.differences.append(Difference(name, method, "the identity", _largest(residual, scale)))


class _Closed:
    """Constrained dynamics at configurations that satisfy the constraints; adds rows to `comparison`."""

    def __init__(self, robot: Robot, comparison: _Comparison):
        self.robot, self.comparison = robot, comparison

    def run(self, samples: int, seed: int) -> None:
        skipped = self.comparison.skipped
        skipped.append(Skipped("constrained bias_forces, mass_matrix", "", "which are those of the tree"))
        if not self.robot.has_inertia or self.robot.singular_joints:
            skipped.append(Skipped("constrained dynamics", "", "because a joint moves no inertia"))
            return
        q = self._poses(random_states(self.robot, samples, seed)["q"])
        if not len(q):
            skipped.append(Skipped("constrained dynamics", "", "because no configuration satisfies the constraints"))
            return
        with np.errstate(all="ignore"):
            self._compare(q, np.random.default_rng(seed))

    def _poses(self, starts: np.ndarray) -> np.ndarray:
        configurations = []
        for start in starts:
            try:
                q = self.robot.project(start)
            except ArgumentError:
                continue
            if not (self.robot.can_be_singular and self.robot.singular(q).any()):
                configurations.append(q)
        return np.array(configurations)

    def _compare(self, q: np.ndarray, random: np.random.Generator) -> None:
        robot, compare = self.robot, self.comparison
        qd = robot.project_velocity(q, random.uniform(-1.0, 1.0, (len(q), robot.nv)))
        tau = random.uniform(-5.0, 5.0, (len(q), robot.nv))
        f_ext = random.uniform(-1.0, 1.0, (len(q), len(robot.link_names), 6))
        state = (q, qd, tau, f_ext)
        function = "constrained forward_dynamics"
        results = {"closed_chain": robot.compile("forward_dynamics", f_ext=True, backend="interpreter")(*state)}
        if chosen_backend(None) == "llvm":
            results["closed_chain, compiled"] = robot.compile("forward_dynamics", f_ext=True, backend="llvm")(*state)
        M, K, k = robot.mass_matrix(q), robot.constraint_jacobian(q), robot.constraint_bias(q, qd)
        root = np.linalg.cholesky(M)
        Y = np.swapaxes(np.linalg.solve(root, np.swapaxes(K, -1, -2)), -1, -2)  # K L^-T
        sizes = np.linalg.svd(Y, compute_uv=False)
        rank = sizes > 1e-9 * sizes.max(axis=-1, keepdims=True)
        worst = (sizes[:, 0] / np.where(rank, sizes, np.inf).min(axis=-1))[:, None]  # the condition of the constraints
        free = np.linalg.solve(root, (tau - robot.bias_forces(q, qd, f_ext=f_ext))[..., None])
        x = free - np.linalg.pinv(Y, rcond=1e-9) @ (Y @ free + k[..., None])
        dense = np.linalg.solve(np.swapaxes(root, -1, -2), x)[..., 0]
        inverse = np.abs(np.linalg.inv(M))
        scale = worst * (inverse @ np.abs(root @ np.abs(free)))[..., 0].max(axis=-1, keepdims=True)
        compare.compare(function, {**results, "dense solution": dense}, scale)
        largest = worst * (np.abs(K).max(axis=(-2, -1))[:, None] * scale + np.abs(k).max(axis=-1, keepdims=True))
        for method, qdd in results.items():
            compare.identity("K qdd + k = 0", method, np.einsum("nij,nj->ni", K, qdd) + k, largest)


def _largest(difference: np.ndarray, scale: float | np.ndarray) -> float:
    """Return the largest element in units of `scale`; zero differences count as zero for any scale."""
    relative = np.abs(difference) / np.where(difference == 0, 1.0, scale)
    return float(relative.max())


def _outer(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return a[..., :, None] * b[..., None, :]


def _count(number: int, word: str) -> str:
    return f"{number} {word}{'' if number == 1 else 's'}"


__all__ = ["Difference", "Finding", "Report", "Skipped", "check", "random_states"]
