"""Kang: operations saved by augmented bodies (44 %), and actuator sizing for a constant tip speed by I*, P* and H."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from linksweep import robots
from linksweep.errors import ArgumentError
from linksweep.motion.trajectories import FloatArray
from linksweep.papers.operation_counts import explicit_totals
from linksweep.papers.published_counts import KANG, KANG_LI_TOTAL, KANG_PREVIOUS_TOTAL, KANG_PRINTED_TOTAL
from linksweep.papers.studies.report import Check, Study, at_most, markdown_table

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from linksweep.robot.robot import Robot

JOINTS = 6  # joints of the largest general arm
SIX = 6
SPEEDS = (0.25, 0.5, 0.75, 1.0, 1.25, 1.5)  # m/s
REGION = 0.4  # m/s: tip speed that the velocity limits must allow in every direction
STEP = 0.05  # m, of the grid of tip positions
REACH = 0.9  # m
OFFSET = 0.2435 - 0.0934  # m: of the arm's plane from the axis of joint 1
NEAR = (0.0, -0.8, 0.4, 0.0, 0.4, 0.0)  # rad: selects the nearest branch, with the elbow up


# ---- operation counts ---------------------------------------------------------------------------------------------


def operations(joints: int = JOINTS) -> dict[int, tuple[int, int]]:
    """Operations of I* and P* of general arms with n = 2 to `joints` revolute joints: (direct, augmented)."""
    if joints < 2:
        raise ArgumentError(f"the study kang got joints = {joints}, expected at least 2.")
    return {n: explicit_totals(n) for n in range(2, joints + 1)}


# ---- actuator sizing ---------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Sizing:
    """Poses of the arm with its tool pointing down, and the torques tau_i = v^T A_i v + g_i of a tip velocity v.

    cell (poses, 2): column and row of each pose on the grid x, z. eigenvalues (poses, 6, 3) and directions
    (poses, 6, 3, 3): eigenvalues and eigenvectors of A_i. velocities (poses, 6): the largest joint velocity for a tip
    speed of 1 m/s. by_velocity, by_torque (poses,): the tip speed that the velocity and torque limits allow in all
    directions.
    """

    robot: Robot
    x: FloatArray
    z: FloatArray
    cell: np.ndarray
    q: FloatArray
    g: FloatArray
    eigenvalues: FloatArray
    directions: FloatArray
    velocities: FloatArray
    by_velocity: FloatArray
    by_torque: FloatArray

    def torques(self, speed: float) -> FloatArray:
        """The largest torque of each joint over all directions, (poses, 6)."""
        ends = self.g[..., None] + speed**2 * self.eigenvalues[..., [0, 2]]
        return np.abs(ends).max(axis=-1)

    @property
    def region(self) -> np.ndarray:
        """Poses away from singular configurations: the velocity limits allow a tip speed of REGION."""
        return self.by_velocity >= REGION

    def needed(self, speed: float) -> tuple[FloatArray, FloatArray]:
        """The largest torque and velocity of each joint over these poses and all directions, (6,) each."""
        return self.torques(speed)[self.region].max(axis=0), speed * self.velocities[self.region].max(axis=0)


def torque_planes(robot: Robot, q: FloatArray, tip: str) -> tuple[FloatArray, FloatArray, FloatArray]:
    """A (..., n, 3, 3), g (..., n) and the joint velocities (..., n, 3) of a tip velocity without rotation.

    A tip velocity v needs qd = G^-1 [0; v], and qdd = -G^-1 (qd^T H qd) to stay constant, (3). With (8), every torque
    is a quadratic form in v.
    """
    G, H = robot.influence(q, tip)
    inertia, P, g = robot.explicit_model(q)
    inverse = np.linalg.inv(G)
    planes = P - np.einsum("...ir,...rjk->...ijk", inertia @ inverse, H)
    back = inverse[..., 3:]
    A = np.einsum("...ja,...ijk,...kb->...iab", back, planes, back)
    return (A + np.swapaxes(A, -1, -2)) / 2, g, back


def sizing(step: float = STEP) -> Sizing:
    robot = robots.puma560()
    x, z = (np.arange(low, REACH + step / 2, step) for low in (step, -REACH))
    cells = np.array([(i, k) for i in range(len(x)) for k in range(len(z))])
    target = np.tile(np.diag([1.0, -1.0, -1.0, 1.0]), (len(cells), 1, 1))
    target[:, 0, 3], target[:, 1, 3], target[:, 2, 3] = x[cells[:, 0]], OFFSET, z[cells[:, 1]]
    solution = robot.inverse_kinematics_branches(target, "tool", NEAR)
    reachable = (solution.count > 0) & ~solution.singular[:, 0]
    q, cell = solution.q[reachable, 0], cells[reachable]
    A, g, back = torque_planes(robot, q, "tool")
    eigenvalues, directions = np.linalg.eigh(A)
    velocities = np.linalg.norm(back, axis=-1)
    limits = robot.limits
    with np.errstate(divide="ignore", invalid="ignore"):
        upper = np.where(eigenvalues[..., 2] > 0, (limits.effort - g) / eigenvalues[..., 2], np.inf)
        lower = np.where(eigenvalues[..., 0] < 0, (limits.effort + g) / -eigenvalues[..., 0], np.inf)
    by_torque = np.sqrt(np.maximum(np.minimum(upper, lower), 0.0)).min(axis=-1)
    by_velocity = (limits.velocity / velocities).min(axis=-1)
    return Sizing(robot, x, z, cell, q, g, eigenvalues, directions, velocities, by_velocity, by_torque)


def tried(results: Sizing, speed: float, directions: int = 2000, poses: int = 5) -> float:
    """Largest ratio of Newton-Euler torques in random directions to the maximum given by the eigenvalues."""
    robot, rng = results.robot, np.random.default_rng(0)
    v = rng.normal(size=(directions, 3))
    v *= speed / np.linalg.norm(v, axis=1, keepdims=True)
    worst = []
    for pose in np.linspace(0, len(results.q) - 1, poses).astype(int):
        tau = _torques(robot, np.broadcast_to(results.q[pose], (directions, 6)), v)
        worst.append((np.abs(tau).max(axis=0) / results.torques(speed)[pose]).max())
    return float(max(worst))


def at_the_limit(results: Sizing) -> float:
    """Relative difference of the Newton-Euler torque and its limit, at the tip speed `by_torque`, worst direction."""
    limits = results.robot.limits.effort
    usable = np.flatnonzero((results.by_torque > 0.0) & np.isfinite(results.by_torque))
    speed = results.by_torque[usable]
    ends = results.g[usable][..., None] + (speed**2)[:, None, None] * results.eigenvalues[usable][..., [0, 2]]
    share = np.abs(ends) / limits[:, None]
    joint, end = np.unravel_index(share.reshape(len(usable), -1).argmax(axis=1), share.shape[1:])
    v = results.directions[usable, joint, :, 2 * end] * speed[:, None]
    tau = _torques(results.robot, results.q[usable], v)
    return float(np.abs(np.abs(tau[np.arange(len(usable)), joint]) / limits[joint] - 1.0).max())


def _torques(robot: Robot, q: FloatArray, v: FloatArray) -> FloatArray:
    """Newton-Euler torques of the joint motion that keeps the tip velocity v (poses, 3) constant."""
    G, H = robot.influence(q, "tool")
    qd = np.linalg.solve(G, np.concatenate([np.zeros_like(v), v], axis=1)[..., None])[..., 0]
    qdd = -np.linalg.solve(G, np.einsum("pj,prjk,pk->pr", qd, H, qd)[..., None])[..., 0]
    return robot.inverse_dynamics(q, qd, qdd, method="newton_euler")


# ---- the study -------------------------------------------------------------------------------------------------


def study(joints: int = JOINTS, step: float = STEP) -> Study:
    counted, results = operations(joints), sizing(step)
    direct, augmented = counted[max(counted)]
    saved = 1.0 - augmented / direct
    printed = 1.0 - KANG_PRINTED_TOTAL / KANG_PREVIOUS_TOTAL
    checks = [
        Check("operations saved, as printed", printed, "claimed: 44 %", bool(round(printed, 2) == 0.44)),
        Check(f"operations saved, traced, n = {max(counted)}", saved, "at least 44 %", saved >= 0.44 or joints < SIX),
        at_most("largest torque in 2000 random directions, over that by eigenvalues", tried(results, 1.0), 1.0 + 1e-9),
        at_most("relative torque error at the limiting tip speed", at_the_limit(results), 1e-9),
    ]
    if joints >= SIX:
        checks.append(Check("operations, n = 6, traced", counted[SIX][1], f"below Li's {KANG_LI_TOTAL}",
                            counted[SIX][1] < KANG_LI_TOTAL))  # fmt: skip
    rows = [[speed, *(x for part in results.needed(speed) for x in part.tolist())] for speed in SPEEDS]
    cells = np.column_stack(
        [results.x[results.cell[:, 0]], results.z[results.cell[:, 1]], results.by_velocity, results.by_torque]
    )
    tables = {
        "kang_operations": (
            ["n", "direct", "augmented_bodies", "kang"],
            [[n, *pair, int(KANG.total.mul(n) + KANG.total.add(n))] for n, pair in counted.items()],
        ),
        "kang_actuators": (
            ["tip speed (m/s)", *(f"{part}.{name}" for part in ("tau", "qd") for name in results.robot.joint_names)],
            rows,
        ),
        "kang_speeds": (["x", "z", "by_velocity", "by_torque"], cells),
    }
    return Study("kang", _report(counted, results), tables, _figures(counted, results), checks)


def _map(results: Sizing, values: FloatArray) -> FloatArray:
    """Values of the poses on the grid (z, x); NaN where the tip cannot reach."""
    table = np.full((len(results.z), len(results.x)), np.nan)
    table[results.cell[:, 1], results.cell[:, 0]] = values
    return table


def _figures(counted: dict[int, tuple[int, int]], results: Sizing) -> dict:
    from linksweep import plots

    n = list(counted)

    def totals() -> Figure:
        at_six = {name: [float(total) if k == SIX else np.nan for k in n] for name, total in (
            ("before, [10]: 5995", KANG_PREVIOUS_TOTAL), ("Li, [4]: 2528", KANG_LI_TOTAL))}  # fmt: skip
        curves = {
            "direct sums, traced": [pair[0] for pair in counted.values()],
            "augmented bodies, traced": [pair[1] for pair in counted.values()],
            "augmented bodies, Kang's steps": [float(KANG.total.mul(k) + KANG.total.add(k)) for k in n],
            **at_six,
        }
        return plots.lines(n, curves, markers=True, title="I* and P* of n revolute joints, general geometry",
                           x_label="joints", y_label="multiplications and additions")  # fmt: skip

    (left, low), (right, high) = results.cell.min(axis=0), results.cell.max(axis=0) + 1

    def speeds(values: FloatArray, title: str) -> Figure:
        return plots.heat(_map(results, values)[low:high, left:right], x=results.x[left:right], y=results.z[low:high],
                          title=title, x_label="x (m)", y_label="z (m)", label="tip speed (m/s)")  # fmt: skip

    limits = results.robot.limits
    torque, velocity = (np.array(part) for part in zip(*(results.needed(speed) for speed in SPEEDS), strict=True))
    shares = {
        f"torque, {name}": torque[:, k] / limits.effort[k] for k, name in enumerate(results.robot.joint_names[:3])
    }
    shares["velocity, the worst joint"] = (velocity / limits.velocity).max(axis=1)
    shares["limit"] = np.ones(len(SPEEDS))
    return {
        "kang_operations": ("Operations by number of joints.", totals),
        "kang_needed": (
            "Required torque and velocity of the first three joints over their limits, by tip speed.",
            lambda: plots.lines(
                SPEEDS, shares, markers=True, title="PUMA 560: actuators for a constant tip speed",
                x_label="tip speed (m/s)", y_label="needed / limit",
            ),
        ),
        "kang_by_torque": (
            "Tip speed that the torques allow in every direction. Joint 1 is at x = 0, the shoulder at z = 0.",
            lambda: speeds(results.by_torque, "Tip speed by torque limits"),
        ),
        "kang_by_velocity": (
            "Tip speed that the joints' velocities allow in every direction.",
            lambda: speeds(results.by_velocity, "Tip speed by velocity limits"),
        ),
    }  # fmt: skip


def _cell(x: float) -> str:
    return f"{x:.3g}" if x > 1e-9 else "0"


def _report(counted: dict[int, tuple[int, int]], results: Sizing) -> str:
    n = max(counted)
    direct, augmented = counted[n]
    steps = int(KANG.total.mul(SIX) + KANG.total.add(SIX))
    six = counted.get(SIX)
    claims = [
        ["Kang's reference [10]", KANG_PREVIOUS_TOTAL, ""],
        ["Kang, as printed", KANG_PRINTED_TOTAL, f"{1 - KANG_PRINTED_TOTAL / KANG_PREVIOUS_TOTAL:.1%}"],
        ["Kang, sum of its steps", steps, f"{1 - steps / KANG_PREVIOUS_TOTAL:.1%}"],
        ["Li, Kang's reference [4]", KANG_LI_TOTAL, ""],
    ]
    if six:
        claims += [["linksweep, `direct`", six[0], ""],
                   ["linksweep, `augmented_bodies`", six[1], f"{1 - six[1] / six[0]:.1%}"]]  # fmt: skip
    table = [[k, f"{a:,}", f"{b:,}", f"{1 - b / a:.1%}"] for k, (a, b) in counted.items()]
    limits, needed = results.robot.limits, [results.needed(speed) for speed in SPEEDS]
    torques, velocities = (
        [[name, f"{limit[k]:.3g}", *(_cell(pair[part][k]) for pair in needed)] for k, name in enumerate(names)]
        for names in (results.robot.joint_names,)
        for part, limit in enumerate((limits.effort, limits.velocity))
    )
    speeds = [f"{speed:g} m/s" for speed in SPEEDS]
    return f"""# Kang: augmented bodies, and actuators for a constant tip speed

H.-J. Kang, *Computationally Efficient KIC-Based Dynamic Modeling of Robot Manipulators*.

## Operations saved by augmented bodies

Kang replaces sums over links, (9) and (10), by generalized augmented bodies, (23)-(29), and claims "a 44 %
computational saving over the current optimized one". The comparison is with reference [10], a thesis that is not
available to us. Here both methods are traced on the same general arm by the same rules: zeros and ones are folded, and
equal expressions are computed once.

Multiplications and additions for six revolute joints of general geometry:

{markdown_table(["", "operations", "saved by augmented bodies"], claims)}

Kang prints 3362 in the introduction and 3363 in the conclusion; the steps of section 4.2 add up to {steps}. Li's
algorithm computes another form of the model, A φ̈ + B φ̇φ̇ + C φ̇², without H and P\\*.

{markdown_table(["joints", "direct sums", "augmented bodies", "saved"], table)}

{{figure:kang_operations}}

The direct sums grow with n⁴ and augmented bodies with n³. From four joints on the saving grows; at n = {n} it is
{1 - augmented / direct:.1%}.

## Actuators for a constant tip speed

The conclusion names an application of P\\*: "determining optimal actuator size under constant operational velocity of
the robot tip". It cites a thesis that is not available to us; the method below is our own. A tip velocity v needs joint
velocities G⁻¹v. To stay constant it needs accelerations −G⁻¹(q̇ᵀHq̇) by (3), and with (8) every torque is a quadratic
form vᵀAᵢv + gᵢ. Its largest value over all directions of v comes from the eigenvalues of Aᵢ, without a search.

The arm is a PUMA 560 whose tool points down, with its wrist at {len(results.q)} positions of a vertical plane,
{1e3 * (results.x[1] - results.x[0]):.0f} mm apart. These maps show the tip speed that the velocity limits and the
torque limits of its actuators allow in every direction:

{{figure:kang_by_velocity}}

{{figure:kang_by_torque}}

Near singular configurations the required joint velocity is unbounded. So the actuators are sized for the
{int(results.region.sum())} positions at which the present velocity limits allow {REGION:g} m/s in every direction.
Required torques (N m) of each joint, and its limit:

{markdown_table(["joint", "limit", *speeds], torques)}

Joint velocities (rad/s):

{markdown_table(["joint", "limit", *speeds], velocities)}

{{figure:kang_needed}}

The inertial part grows with the square of the speed. In this region the torque limits would allow
{results.by_torque[results.region].min():.2f} m/s in every direction, the velocity limits only {REGION:g} m/s. Faster
gears would serve this task better than larger motors.

Newton-Euler torques confirm the eigenvalues: no random direction needs a larger torque, and at the limiting tip speed
one torque reaches its limit in the worst direction.
"""
