"""Two PUMA 560 carry a box along a line and squeeze it: torques, contact forces and slip of a soft finger."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from linksweep import robots
from linksweep.errors import LinksweepError
from linksweep.functions.parameters import body
from linksweep.motion import FrameMotion, JointMotion, Line, NormalSpline, follow
from linksweep.motion.trajectories import FloatArray
from linksweep.papers.studies.report import Check, Study, at_most, markdown_table, time_table
from linksweep.robot.grasps import Contact, Grasp, GraspDynamics

if TYPE_CHECKING:
    from linksweep.robot.robot import Robot

# both arms, their contacts, their motions, and the box's
Parts = tuple["tuple[Robot, Robot]", tuple[FloatArray, FloatArray], tuple[JointMotion, JointMotion], FrameMotion]
MASS, INERTIA = 6.0, (0.10, 0.06, 0.12)
HALF = 0.15  # of the box along y, m
APART = 0.75  # of each base from the middle, m
FROM, TO = (0.35, 0.0, 0.10), (0.50, 0.0, 0.30)
DURATION, SAMPLES = 2.0, 101
SQUEEZE = 60.0  # N, held
FRICTION, SPIN = 0.6, 0.05
LOOSE = 25.0  # N: not enough for the finger


@dataclass(frozen=True, slots=True)
class Results:
    """Motions of the box and of both arms, and for each grasp the torques of both arms and the resulting dynamics."""

    arms: tuple[Robot, Robot]
    t: FloatArray
    box: FrameMotion
    motions: tuple[JointMotion, JointMotion]
    held: tuple[list[FloatArray], GraspDynamics]
    finger: tuple[list[FloatArray], GraspDynamics]
    loose: tuple[list[FloatArray], GraspDynamics]

    @property
    def acceleration(self) -> FloatArray:
        return self.box[2]

    def squeeze(self, r: GraspDynamics) -> FloatArray:
        """The internal force along y on the box by the right arm, (samples,)."""
        return r.internal_forces[:, 1, 4]


def contact_frames() -> tuple[FloatArray, FloatArray]:
    """Contact frames of the left arm, on the side +y, and of the right arm; z is the inward normal, x the box's."""
    frames = []
    for side in (1.0, -1.0):
        frame = np.eye(4)
        z = np.array([0.0, -side, 0.0])
        x = np.array([1.0, 0.0, 0.0])
        frame[:3, :3] = np.column_stack([x, np.cross(z, x), z])
        frame[:3, 3] = 0.0, side * HALF, 0.0
        frames.append(frame)
    return frames[0], frames[1]


def compute(samples: int = SAMPLES, squeeze: float = SQUEEZE, loose: float = LOOSE) -> Results:
    places = [np.eye(4), np.eye(4)]
    places[0][1, 3], places[1][1, 3] = APART, -APART
    puma = robots.puma560()
    arms = puma.placed(places[0]), puma.placed(places[1])
    t = np.linspace(0.0, DURATION, samples)
    start, end = np.eye(4), np.eye(4)
    start[:3, 3], end[:3, 3] = FROM, TO
    law = NormalSpline([[0.0], [1.0]], [0.0, DURATION])
    box = Line(start, end, law)(t)
    contacts = contact_frames()
    left, right = (_joints(arm, Line(start @ at, end @ at, law), t) for arm, at in zip(arms, contacts, strict=True))
    motions = left, right
    parts = arms, contacts, motions, box
    return Results(
        arms, t, box, motions, _carried(parts, "rigid", squeeze),
        _carried(parts, "soft_finger", squeeze), _carried(parts, "soft_finger", loose),
    )  # fmt: skip


def _joints(arm: Robot, path: Line, t: FloatArray) -> JointMotion:
    for seed in range(20):  # the first branch that reaches the end of the path
        followed = follow(arm, "tool", path, t, arm.random(np.random.default_rng(seed)), limits=False)
        if followed.solved.all():
            return followed.motion
    raise LinksweepError("the two_arms study: a PUMA cannot follow its side of the box along the line.")


def _carried(parts: Parts, model: str, squeeze: float) -> tuple[list[FloatArray], GraspDynamics]:
    """The torques that move the box along the line with this internal force, and the forward dynamics of these."""
    arms, (left, right), motions, (pose, twist, acceleration) = parts
    limits: dict[str, float] = {} if model == "rigid" else {"friction": FRICTION, "spin": SPIN}
    grasp = Grasp(
        body(MASS, (0, 0, 0), INERTIA),
        [Contact(arms[0], "tool", left), Contact(arms[1], "tool", right, model, **limits)],
    )
    q, qd, qdd = ([motion[k] for motion in motions] for k in range(3))
    internal = np.zeros((2, 6))
    internal[0, 4], internal[1, 4] = -squeeze, squeeze
    tau, _ = grasp.inverse_dynamics(q, qd, pose, twist, acceleration, internal=internal, qdd=qdd)
    return tau, grasp.forward_dynamics(q, qd, tau, pose, twist)


def study(samples: int = SAMPLES, squeeze: float = SQUEEZE, loose: float = LOOSE) -> Study:
    results = compute(samples, squeeze, loose)
    checks: list[Check] = []
    for name, (_, r) in (("welded", results.held), ("with a finger", results.finger)):
        scale = max(1.0, float(np.abs(results.acceleration).max()))
        apart = np.abs(r.object_acceleration - results.acceleration).max() / scale
        checks.append(at_most(f"{name}: relative error of the box's acceleration", apart, 1e-9))
        residual = _newton(results, r)
        checks.append(at_most(f"{name}: residual of the box's equations of motion (N, N m)", residual, 1e-9))
        error = np.abs(results.squeeze(r) - squeeze).max()
        checks.append(at_most(f"{name}: error of the internal force of {squeeze:g} N", error, 1e-8))
        power = np.einsum("ski,ski->s", r.internal_forces, _contact_twists(results))
        checks.append(at_most(f"{name}: power of the internal forces (W)", np.abs(power).max(), 1e-9))
    grip, slip = results.finger[1].margins[:, 1], results.loose[1].margins[:, 1]
    turns, turns_loose = results.finger[1].spin_margins[:, 1], results.loose[1].spin_margins[:, 1]
    for what, margin in ((f"force margin of the finger at {squeeze:g} N (N)", grip.min()),
                        (f"moment margin of the finger at {squeeze:g} N (N m)", turns.min())):  # fmt: skip
        checks.append(Check(f"smallest {what}", float(margin), "above 0", bool(margin > 0)))
    checks.append(
        Check(
            f"smallest force margin of the finger at {loose:g} N (N)",
            float(slip.min()),
            "below 0",
            bool(slip.min() < 0),
        )
    )
    names = [f"{side}.{joint}" for side in ("left", "right") for joint in robots.puma560().joint_names]
    q, tau = (np.hstack(two) for two in ([m.q for m in results.motions], results.held[0]))
    header, rows = time_table(results.t, names, q=q, tau=tau)
    header += ["squeeze", "margin", "margin_loose", "spin_margin", "spin_margin_loose"]
    columns = [rows, results.squeeze(results.held[1]), grip, slip, turns, turns_loose]
    tables = {"two_arms": (header, np.column_stack(columns))}
    return Study("two_arms", _report(results, squeeze, loose), tables, _figures(results, squeeze, loose), checks)


def _contact_twists(results: Results) -> FloatArray:
    """[angular; linear] of both contacts on the box, along the world's axes; the box does not turn."""
    return np.stack([results.box[1]] * 2, axis=1)


def _newton(results: Results, r: GraspDynamics) -> float:
    force = r.contact_forces[..., 3:].sum(axis=1)
    moment = r.contact_forces[..., :3].sum(axis=1)
    for c, at in enumerate(contact_frames()):
        moment = moment + np.cross(at[:3, 3], r.contact_forces[:, c, 3:])  # the box keeps the world's directions
    expected = MASS * (results.acceleration[:, 3:] - np.array([0.0, 0.0, -9.81]))
    return max(float(np.abs(force - expected).max()), float(np.abs(moment).max()))


def _figures(results: Results, squeeze: float, loose: float) -> dict:
    from linksweep import plots

    torques = [plots.Channel(f"τ{digit}", "N m") for digit in "₁₂₃₄₅₆"]
    margins = [plots.Channel(f"held with {force:g} N", "N") for force in (squeeze, loose)]
    grips = np.column_stack([results.finger[1].margins[:, 1], results.loose[1].margins[:, 1]])
    return {
        "two_arms_torques": (
            "Torques of the left arm.",
            lambda: plots.panels(torques, results.t, results.held[0][0], "Two arms: torques of the left one"),
        ),
        "two_arms_margin": (
            "Distance of the finger's force from the boundary of its friction cone; below 0 it would slip.",
            lambda: plots.overlaid(margins, results.t, grips, "Two arms: force margin of the finger"),
        ),
    }


def _report(results: Results, squeeze: float, loose: float) -> str:
    slips = results.loose[1].slipping[:, 1]
    first = float(results.t[int(slips.argmax())]) if slips.any() else float("nan")
    rows = [
        [name, f"{force:g}", f"{np.abs(np.hstack(tau)).max():.3f}", f"{r.margins[:, 1].min():.3f}",
         f"{r.spin_margins[:, 1].min():.3f}", "would slip" if r.slipping[:, 1].any() else "holds"]
        for name, force, (tau, r) in (
            ("both welded", squeeze, results.held), ("right one a finger", squeeze, results.finger),
            ("right one a finger", loose, results.loose),
        )
    ]  # fmt: skip
    slip_text = (
        f"With {loose:g} N the finger would slip from t = {first:.2f} s on, {100 * slips.mean():.0f} % of the samples: "
        f"its force leaves the cone |t| ≤ {FRICTION:g} n, |m| ≤ {SPIN:g} n."
        if slips.any()
        else f"With {loose:g} N the finger holds as well."
    )
    columns = [
        "contacts",
        "squeeze (N)",
        "largest torque (N m)",
        "smallest force margin (N)",
        "smallest moment margin (N m)",
    ]
    table = markdown_table([*columns, ""], rows)
    return f"""# Two arms carry a box

Two PUMA 560 stand {2 * APART:g} m apart and hold a box of {MASS:g} kg between them. They lift it along a straight line,
{DURATION:g} s from rest to rest, {len(results.t)} samples. A constant internal force squeezes the box without
accelerating it. The torques come from inverse dynamics of the grasp, accelerations and contact forces from its forward
dynamics. This is the problem of Part II of G. Rodriguez and K. Kreutz 1988, of which only the table of contents is
available to us; the method is our own.

{table}

{slip_text} The solution keeps the contact closed anyway;
`slipping`, `margins` and `spin_margins` report the violation.

{{figure:two_arms_torques}}

{{figure:two_arms_margin}}
"""
