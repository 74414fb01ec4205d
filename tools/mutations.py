"""Seed faults into copies of the sources and report which tier of tests catches each one.

`make test-all` runs this after the tests. Each fault replaces a text that occurs once in its file. The tests of the
fault's own files then run on the faulty copy, tier by tier (quick, test, test-all), until one fails. Only a failing
test counts as a catch; an import error, a crash or a hang does not. At the end all tests that failed run once more on
an unchanged copy, where they must pass.

    python tools/mutations.py                            # all faults, two at a time
    python tools/mutations.py --only kane-external-moment
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
TIERS = {"quick": "quick and not slow", "test": "not quick and not slow", "test-all": "slow"}
REQUIRED = {"quick": 30, "test": 38, "test-all": 40}  # faults caught by this tier and those before it
TIMEOUT = 300.0  # seconds for one tier of one fault
PLUGIN = """\
def pytest_runtest_logreport(report):
    if report.failed:
        with open("failed_tests", "a") as file:
            print(report.nodeid, file=file)
"""  # records the tests that fail, and not the files that cannot be imported


@dataclass(frozen=True)
class Fault:
    """One change of the sources: `old`, which occurs exactly once in `file`, becomes `new`."""

    name: str
    about: str
    file: str  # below src/linksweep
    old: str
    new: str
    tests: tuple[str, ...]  # files below tests that must catch it


FAULTS = (
    # ---- algorithms --------------------------------------------------------------------------------------------
    Fault(
        "newton-euler-centripetal", "a sign: centripetal acceleration of a link's origin",
        "algorithms/inverse/newton_euler.py",
        "link.phi_T(parent.alpha + a_link)",
        "link.phi_T(parent.alpha - a_link)",
        ("algorithms/test_conformance.py",),
    ),
    Fault(
        "kane-external-moment", "a sign: moment of an external force",
        "algorithms/inverse/kane.py",
        "k = hd + link.com.cross(u) - f_ext.moment",
        "k = hd + link.com.cross(u) + f_ext.moment",
        ("algorithms/test_conformance.py",),
    ),
    Fault(
        "khalil-second-moment", "an index: second moment of mass in the inertial moment",
        "algorithms/inverse/khalil_kleinfinger.py",
        "(x.y * J.yz - z.y * J.xy)",
        "(x.y * J.xz - z.y * J.xy)",
        ("algorithms/test_conformance.py",),
    ),
    Fault(
        "fd3-gain", "a sign: innovation added to the predicted force",
        "algorithms/forward/fd3.py",
        "y_plus = y + G @ innovation",
        "y_plus = y - G @ innovation",
        ("algorithms/test_conformance.py",),
    ),
    Fault(
        "mass-matrix-armature", "a missing term: armature on the diagonal",
        "algorithms/mass_matrix/composite_inertia.py",
        "row[freedom] = row[freedom] + link.armature",
        "row[freedom] = row[freedom]",
        ("algorithms/test_invariants.py", "algorithms/test_conformance.py"),
    ),
    Fault(
        "coriolis-lower-triangle", "a sign: lower triangle of the Coriolis matrix",
        "algorithms/explicit/coriolis_matrix.py",
        "[m.dot(d) + b.dot(s.angular) for s, d",
        "[m.dot(d) - b.dot(s.angular) for s, d",
        ("algorithms/test_coriolis_matrix.py",),
    ),
    Fault(
        "inverse-derivative-force", "a sign: force of the subtree in the derivative with respect to q",
        "algorithms/inverse/inverse_derivatives.py",
        "by_q = [own + cross_force(s, tree.f)",
        "by_q = [own - cross_force(s, tree.f)",
        ("tracing/test_derivatives.py",),
    ),
    Fault(
        "forward-derivative-base", "a swapped cross product: derivative with respect to the pose of a floating base",
        "algorithms/forward/forward_derivatives.py",
        "cross(s, a_p)) for s in S)",
        "cross(a_p, s)) for s in S)",
        ("tracing/test_derivatives.py",),
    ),
    Fault(
        "regressor-transposed", "a transposed matrix: acceleration tensor in the regressor",
        "algorithms/rigid_body/regressor.py",
        "dv, U = at.turn(moving.dv), moving.U.T",
        "dv, U = at.turn(moving.dv), moving.U",
        ("algorithms/test_regressor.py",),
    ),
    Fault(
        "closed-velocities", "a sign: projection of velocities onto the constraints",
        "functions/catalog/closed_chains.py",
        "mechanism.solve(None, [-rate for rate in mechanism.rates(qd)])",
        "mechanism.solve(None, [rate for rate in mechanism.rates(qd)])",
        ("analysis/test_closed_motion.py",),
    ),
    # ---- spatial algebra, joints, mechanism --------------------------------------------------------------------
    Fault(
        "inertia-product-shift", "a wrong point: product of inertia seen from a shifted origin",
        "spatial/algebra.py",
        "self.I.xz - (p.x * self.mp.z + mp.x * p.z)",
        "self.I.xz - (p.x * mp.z + mp.x * p.z)",
        ("spatial/test_spatial.py",),
    ),
    Fault(
        "coriolis-transposed", "a transposed matrix: B of a moving body times a motion",
        "spatial/algebra.py",
        "_trace(self.K) - self.K @ w, w.cross(self.l))",
        "_trace(self.K) - self.K.transpose_times(w), w.cross(self.l))",
        ("algorithms/test_coriolis_matrix.py",),
    ),
    Fault(
        "free-joint-path", "a sign: path of a free joint that turns while it moves",
        "joints/groups.py",
        "return v + once * (sinc * sinc * 0.5)",
        "return v - once * (sinc * sinc * 0.5)",
        ("joints/test_coordinates.py",),
    ),
    Fault(
        "canonical-center-of-mass", "a wrong frame: center of mass after the origin moved along the axis",
        "mechanism/canonical.py",
        "_array(inertial.com) - np.array([0.0, 0.0, lift])",
        "_array(inertial.com) + np.array([0.0, 0.0, lift])",
        ("mechanism/test_canonical.py",),
    ),
    Fault(
        "moving-joint-bias", "a missing term: w x v of a joint that turns and slides",
        "mechanism/bias.py",
        "twice = V_plus.angular + V_plus.angular + own.angular",
        "twice = V_plus.angular + V_plus.angular",
        ("joints/test_joints.py",),
    ),
    # ---- tracing -----------------------------------------------------------------------------------------------
    Fault(
        "rule-difference", "a sign: the rule (x - y) - x = -y",
        "tracing/rules.py",
        'return g.apply("neg", a.args[1]) if a.args[0] is b',
        'return a.args[1] if a.args[0] is b',
        ("tracing/test_rules.py",),
    ),
    Fault(
        "fused-difference", "a sign: a product less something, fused",
        "tracing/passes.py",
        'name = "fma" if node.op == "add" else "fms"',
        'name = "fma" if node.op == "add" else "fnma"',
        ("tracing/test_passes.py",),
    ),
    Fault(
        "factored-sign", "a sign: a negative factor taken out of a sum",
        "tracing/passes.py",
        "inner.append((minus != flipped, x.args[1 - place]))",
        "inner.append((minus, x.args[1 - place]))",
        ("tracing/test_factoring.py",),
    ),
    Fault(
        "quotient-derivative", "a sign: derivative of a quotient with respect to its divisor",
        "tracing/differentiate.py",
        "return 1.0 / args[1], -(node / args[1])",
        "return 1.0 / args[1], node / args[1]",
        ("tracing/test_differentiate.py",),
    ),
    Fault(
        "adjoint-sum", "a missing term: adjoint of a value that is used twice",
        "tracing/differentiate.py",
        "totals[node] = totals[node] + term if node in totals else term",
        "totals[node] = term",
        ("tracing/test_products.py",),
    ),
    Fault(
        "rolled-mirror", "a transposed block: mirrored elements of joints with several degrees of freedom, rolled",
        "tracing/rolled.py",
        "PairOutput(output, (rows, self.starts, b * side + a), value)",
        "PairOutput(output, (rows, self.starts, a * side + b), value)",
        ("algorithms/test_coriolis_matrix.py",),
    ),
    # ---- backends ----------------------------------------------------------------------------------------------
    Fault(
        "emitter-poison", "an off-by-one: the last input is not checked for NaN",
        "backends/emitter.py",
        "for i, column in enumerate(columns):\n            sums[i % 4]",
        "for i, column in enumerate(columns[:-1]):\n            sums[i % 4]",
        ("backends/test_bits.py",),
    ),
    Fault(
        "parts-place-reused", "an off-by-one: a place of the workspace is reused while it is read",
        "backends/parts.py",
        "for past in sorted(k for k in ending if k < begin):",
        "for past in sorted(k for k in ending if k <= begin):",
        ("backends/test_parts.py",),
    ),
    Fault(
        "loops-sum-of-children", "a missing term: sum over the children of a link",
        "backends/loops.py",
        'self.emit(f"fadd {self.vector} {self.load_work(place)}, {value}"))',
        'self.emit(f"fadd {self.vector} {self.constant(0.0)}, {value}"))',
        ("tracing/test_rolled.py",),
    ),
    Fault(
        "trig-far-offset", "a sign: cosine of a large angle with an offset",
        "backends/trig.py",
        '("cos", "sin", "fsub")',
        '("cos", "sin", "fadd")',
        ("backends/test_trig.py",),
    ),
    Fault(
        "c-fused-difference", "a wrong operand: fused difference in exported C",
        "backends/printer.py",
        'negated = {"fms": 2, "fnma": 0}.get(op)',
        'negated = {"fms": 0, "fnma": 0}.get(op)',
        ("backends/test_c_source.py",),
    ),
    Fault(
        "rollout-feed", "an index: sampled inputs where not every step is recorded",
        "backends/rollout.py",
        '"  %s = add i64 %begun, %j",',
        '"  %s = add i64 %r, %j",',
        ("simulation/test_simulation.py",),
    ),
    # ---- formats -----------------------------------------------------------------------------------------------
    Fault(
        "urdf-inertia-axes", "a wrong frame: axes of a URDF inertia",
        "model/formats/urdf.py",
        "Inertial(mass, origin.position, rotated(moments, origin.rotation))",
        "Inertial(mass, origin.position, moments)",
        ("model/test_urdf.py",),
    ),
    Fault(
        "urdf-writer-roll", "a sign: roll angle in written URDF",
        "model/formats/urdf_loops.py",
        "c * second[1] - s * first[1])",
        "c * second[1] + s * first[1])",
        ("model/test_writers.py",),
    ),
    Fault(
        "mjcf-joint-offset", "a wrong frame: inertia of an MJCF body whose joint is not at its origin",
        "model/formats/mjcf.py",
        "inertial = _inertial(compiled, body, anchor)",
        "inertial = _inertial(compiled, body, (0.0, 0.0, 0.0))",
        ("model/test_mjcf.py",),
    ),
    Fault(
        "dh-standard-frame", "a wrong frame: inertia in a standard DH table",
        "model/formats/dh.py",
        "inertial = moved(_inertial(values, where), after)",
        "inertial = _inertial(values, where)",
        ("model/test_dh.py",),
    ),
    Fault(
        "toml-degrees", "a dropped unit conversion: velocity limits in degrees",
        "model/formats/dh.py",
        'JOINT_ANGLES = ("lower", "upper", "velocity")',
        'JOINT_ANGLES = ("lower", "upper")',
        ("model/test_toml.py",),
    ),
    # ---- simulation --------------------------------------------------------------------------------------------
    Fault(
        "rk4-stage", "an index: derivative of the third Runge-Kutta stage",
        "simulation/integrators.py",
        "q3, v3 = _along(q, half, r2), _along(qd, half, a2)",
        "q3, v3 = _along(q, half, r2), _along(qd, half, a1)",
        ("simulation/test_simulation.py",),
    ),
    Fault(
        "pd-damping", "a sign: velocity in PD control",
        "simulation/controllers.py",
        "kp * e + kd * (v_ref - v)",
        "kp * e + kd * (v_ref + v)",
        ("simulation/test_simulation_laws.py",),
    ),
    Fault(
        "stop-damping", "a sign: damping of an elastic joint limit stop",
        "simulation/friction.py",
        "push = k * (upper - q[i]) - d * qd[j]",
        "push = k * (upper - q[i]) + d * qd[j]",
        ("simulation/test_friction_rest.py",),
    ),
    Fault(
        "friction-share", "a sign: friction already applied to a joint that moves backwards",
        "simulation/friction.py",
        "down = rest - p * (1.0 - s), rest + p * (1.0 + s)",
        "down = rest - p * (1.0 - s), rest + p * (1.0 - s)",
        ("simulation/test_friction_rest.py",),
    ),
    # ---- inverse kinematics and motion -------------------------------------------------------------------------
    Fault(
        "ik-rotation-error", "a transposed matrix: rotation error of inverse kinematics",
        "motion/descents.py",
        "_sum(target[i, :3] * pose[j, :3])",
        "_sum(target[j, :3] * pose[i, :3])",
        ("motion/test_inverse_kinematics.py",),
    ),
    Fault(
        "quintic-acceleration", "a sign: acceleration of a quintic motion",
        "motion/trajectories.py",
        "return 60.0 * u * w * (w - u)",
        "return 60.0 * u * w * (u - w)",
        ("motion/test_motion.py",),
    ),
    # ---- identification ----------------------------------------------------------------------------------------
    Fault(
        "estimate-prior", "a missing term: torques that the prior explains",
        "identification/estimate.py",
        "towards = left.T @ (target - root @ prior)",
        "towards = left.T @ target",
        ("identification/test_estimates.py",),
    ),
    Fault(
        "instruments-transposed", "a transposed matrix: instruments times regressor",
        "identification/estimate.py",
        "ZX += Z @ X.T",
        "ZX += X @ Z.T",
        ("identification/test_estimates.py",),
    ),
)  # fmt: skip


@dataclass(frozen=True)
class Outcome:
    """The tier and the test that caught a fault, or why none did."""

    tier: str = ""
    test: str = ""
    problem: str = ""
    seconds: float = 0.0


def misplaced(faults: Sequence[Fault], root: Path = ROOT) -> dict[str, int]:
    """How often the text of a fault occurs, for faults whose text does not occur exactly once."""

    def count(fault: Fault) -> int:
        source = _source(root, fault)
        return source.read_text(encoding="utf-8").count(fault.old) if source.is_file() else 0

    return {fault.name: count(fault) for fault in faults if count(fault) != 1}


def _source(root: Path, fault: Fault) -> Path:
    return root / "src" / "linksweep" / fault.file


@contextmanager
def copied() -> Iterator[Path]:
    """A copy of the project in which sources may be changed. It shares the cache of compiled objects with this one."""
    with tempfile.TemporaryDirectory(prefix="linksweep-mutation-") as folder:
        root = Path(folder)
        (ROOT / "build").mkdir(exist_ok=True)
        for name in ("src", "tests"):
            shutil.copytree(ROOT / name, root / name)  # with bytecode, which keeps its date
        for entry in ROOT.iterdir():
            if entry.name not in ("src", "tests") and not entry.name.startswith("."):
                (root / entry.name).symlink_to(entry)
        yield root


def seed(fault: Fault, root: Path) -> None:
    source = _source(root, fault)
    source.write_text(source.read_text(encoding="utf-8").replace(fault.old, fault.new), encoding="utf-8")
    for bytecode in source.parent.glob(f"__pycache__/{source.stem}.*.pyc"):  # dates have whole seconds
        bytecode.unlink()


def run_tests(root: Path, marks: str, tests: Sequence[str], *options: str) -> tuple[int | None, list[str], str]:
    """The exit status of pytest (None after a timeout), the tests that failed, and its last words."""
    (root / "failed_tests").write_text("")
    (root / "record_failures.py").write_text(PLUGIN)
    command = [sys.executable, "-m", "pytest", "-q", "--tb=no", "-p", "no:cacheprovider", "-p", "record_failures"]
    environment = {**os.environ, "PYTHONPATH": str(root / "src")}
    try:
        done = subprocess.run(
            [*command, *options, "-m", marks, *tests], cwd=root, env=environment, capture_output=True, text=True,
            timeout=TIMEOUT,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        return None, [], "timeout"
    printed = (done.stdout + done.stderr).strip().splitlines() or ["no output"]
    return done.returncode, (root / "failed_tests").read_text().splitlines(), printed[-1]


def caught(fault: Fault) -> Outcome:
    """Run the tests of a fault on a faulty copy, tier by tier, until one fails."""
    began = time.monotonic()
    with copied() as root:
        seed(fault, root)
        for tier, marks in TIERS.items():
            status, failed, last = run_tests(root, marks, [f"tests/{file}" for file in fault.tests], "-x")
            seconds = time.monotonic() - began
            if status == 1 and failed:
                return Outcome(tier, failed[0], seconds=seconds)
            if status not in (0, 5):  # 5: no test of this tier
                return Outcome(problem=f"pytest ended with status {status}: {last}", seconds=seconds)
    return Outcome(problem="all tests pass", seconds=seconds)


def fail_anyway(tests: Sequence[str]) -> list[str]:
    """Which of these tests fail without any fault, so that they prove nothing."""
    if not tests:
        return []
    with copied() as root:
        status, failed, last = run_tests(root, "slow or not slow", sorted(set(tests)))
    if status not in (0, 1):
        raise SystemExit(f"the tests that caught faults cannot run without faults, pytest ended with {status}: {last}")
    return failed


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", metavar="NAME", action="append", help="run this fault only; may be repeated")
    parser.add_argument("--jobs", type=int, default=2, metavar="N", help="faults at the same time (default: 2)")
    options = parser.parse_args()
    unknown = {*(options.only or ())} - {fault.name for fault in FAULTS}
    if unknown:
        parser.error(f"unknown fault {', '.join(sorted(unknown))}, expected one of {', '.join(f.name for f in FAULTS)}")
    faults = [fault for fault in FAULTS if not options.only or fault.name in options.only]
    if wrong := misplaced(faults):
        for name, count in wrong.items():
            print(f"{name}: its text occurs {count} times in the sources, expected once; update tools/mutations.py")
        return 1

    width = max(len(fault.name) for fault in faults)
    outcomes: dict[str, Outcome] = {}
    with ThreadPoolExecutor(max_workers=max(1, options.jobs)) as pool:
        for fault, outcome in zip(faults, pool.map(caught, faults), strict=True):
            outcomes[fault.name] = outcome
            what = outcome.test or f"NOT CAUGHT ({fault.about}): {outcome.problem}"
            print(f"{fault.name:{width}}  {outcome.tier or '-':8}  {outcome.seconds:5.1f} s  {what}", flush=True)
    unproved = fail_anyway([outcome.test for outcome in outcomes.values() if outcome.test])
    for test in unproved:
        print(f"{test} fails without a fault too: it catches nothing")

    tiers = Counter(outcome.tier for outcome in outcomes.values() if outcome.tier and outcome.test not in unproved)
    bad, total = bool(unproved), 0
    for tier, least in REQUIRED.items():
        total += tiers[tier]
        least = len(faults) if tier == "test-all" else 0 if options.only else least
        bad |= total < least
        print(f"caught up to {tier}: {total} of {len(faults)}" + (f", expected {least}" if total < least else ""))
    return int(bad)


if __name__ == "__main__":
    sys.exit(main())
