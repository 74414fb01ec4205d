"""Closed mechanisms with published motions: N four-bars in a row, and Andrews' squeezing mechanism.

N-four-bar: problem A02 of the IFToMM library of computational benchmarks. Andrews' mechanism: W. Schiehlen (ed.),
"Multibody Systems Handbook", 1990, and E. Hairer and G. Wanner, "Solving Ordinary Differential Equations II", 1996.
"""

from __future__ import annotations

import numpy as np

from ..description.assembly import Part, assemble
from ..description.constraints import Constraint, Spring
from ..description.model import Inertial, Joint, Placement
from ..errors import ArgumentError
from ..robot.robot import Robot
from ..support.messages import shown
from .random_chains import check_count


def four_bars(windows: int = 1, *, length: float = 1.0, mass: float = 1.0, gravity: float = 9.81) -> Robot:
    """`windows` + 1 equal rods stand side by side on the ground, `windows` rods join their tops: one freedom.

    In the x-y plane, turning about z, gravity along -y. Joints post0, post1, ... and coupler1, ... turn from the x
    axis, and from their post; upright is post = pi/2, coupler = -pi/2. Frame "B0" is the first post's top.
    """
    check_count(windows, "windows")
    for name, value in (("length", length), ("mass", mass), ("gravity", gravity)):
        if not isinstance(value, int | float | np.integer | np.floating) or not abs(value) < 1e100:
            raise ArgumentError(f"four_bars: {name} is {shown(value)}, expected a number below 1e100.")
    across = mass * length**2 / 12
    rod = Inertial(mass, (length / 2, 0.0, 0.0), ((0.0, 0.0, 0.0), (0.0, across, 0.0), (0.0, 0.0, across)))
    end = Placement(position=(length, 0.0, 0.0))
    parts, ties = [], []
    for k in range(windows + 1):
        foot = Placement(position=(k * length, 0.0, 0.0))
        parts.append(Part(f"post{k}", "ground", Joint(f"post{k}", placement=foot), rod))
        parts.append(Part(f"B{k}", f"post{k}", Joint(f"top{k}", "fixed", placement=end)))
    for k in range(1, windows + 1):
        parts.append(Part(f"coupler{k}", f"post{k - 1}", Joint(f"coupler{k}", placement=end), rod))
        parts.append(Part(f"end{k}", f"coupler{k}", Joint(f"tip{k}", "fixed", placement=end)))
        ties.append(Constraint("line", f"end{k}", f"B{k}", name=f"window {k}"))
    model = assemble(f"{windows}-four-bar", parts, base="ground", gravity=(0.0, -gravity, 0.0))
    return Robot(model).with_constraints(ties)


def four_bars_upright(robot: Robot, speed: float = 1.0) -> tuple[np.ndarray, np.ndarray]:
    """q and qd with every post upright and the tops moving with `speed` along x."""
    couplers = np.array([name.startswith("coupler") for name in robot.joint_names])
    return np.where(couplers, -np.pi / 2, np.pi / 2), np.where(couplers, speed, -speed)


def andrews() -> Robot:
    """Andrews' squeezing mechanism: seven bodies in a plane, three loops, a spring; no gravity.

    Joints beta, Theta, gamma, Phi, delta, Omega, eps; a motor drives beta. See `ANDREWS_START`.
    """
    A, B = (-0.06934, -0.00227), (-0.03635, 0.03273)
    rr, d, da, ra, e, ea, zt = 0.007, 0.028, 0.0115, 0.00092, 0.02, 0.01421, 0.04
    ss, sa, sb, sc, sd, ta, tb = 0.035, 0.01874, 0.01043, 0.018, 0.02, 0.02308, 0.00916
    u, ua, ub, zf, fa = 0.04, 0.01228, 0.00449, 0.02, 0.01421
    bodies = {  # joint: parent, where on it, mass, moment of inertia, mass centre, where the hub P is
        "beta": ("ground", (0.0, 0.0), 0.04325, 2.194e-6, (ra, 0.0), None),
        "Theta": ("K_beta", (rr, 0.0), 0.00365, 4.410e-7, (-da, 0.0), (-d, 0.0)),
        "gamma": ("ground", B, 0.02373, 5.255e-6, (sb, -sa), (0.0, -ss)),
        "Phi": ("K_delta", (zt, 0.0), 0.00706, 5.667e-7, (0.0, ea - e), (0.0, -e)),
        "delta": ("ground", A, 0.07050, 1.169e-5, (ta, -tb), None),
        "Omega": ("K_eps", (0.0, -u), 0.00706, 5.667e-7, (zf - fa, 0.0), (zf, 0.0)),
        "eps": ("ground", A, 0.05498, 1.912e-5, (ua, -ub), None),
    }
    parts = []
    for joint, (parent, at, mass, inertia, com, hub) in bodies.items():
        turning = ((inertia, 0.0, 0.0), (0.0, inertia, 0.0), (0.0, 0.0, inertia))  # only zz is met in the plane
        body = Inertial(mass, (*com, 0.0), turning)
        parts.append(Part(f"K_{joint}", parent, Joint(joint, placement=Placement(position=(*at, 0.0))), body))
        if hub is not None:
            mount = Joint(f"P_{joint} mount", "fixed", placement=Placement(position=(*hub, 0.0)))
            parts.append(Part(f"P_{joint}", f"K_{joint}", mount))
    for name, parent, at in (("D", "K_gamma", (sd, -sc)), ("C", "ground", (0.014, 0.072))):
        parts.append(Part(name, parent, Joint(f"{name} mount", "fixed", placement=Placement(position=(*at, 0.0)))))
    robot = Robot(assemble("Andrews", parts, base="ground", gravity=(0.0, 0.0, 0.0)))
    robot = robot.with_springs([Spring("D", "C", 4530.0, 0.07785)])
    return robot.with_constraints([Constraint("line", "P_Theta", f"P_{other}") for other in ("gamma", "Phi", "Omega")])


ANDREWS_START = np.array([
    -0.0617138900142764496, 0.0, 0.4552798191630703803, 0.2226683901658858847, 0.4873649795438425502,
    -0.2226683901658858847, 1.2305474445498211925,
])  # fmt: skip
ANDREWS_MOTOR = 0.033  # N m on beta
