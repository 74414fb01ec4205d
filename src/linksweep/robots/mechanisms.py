"""Generated mechanisms: planar and random chains, four-bar linkages in a row, and Andrews' squeezing mechanism.

N-four-bar: problem A02 of the IFToMM library of computational benchmarks. Andrews' mechanism: W. Schiehlen (ed.),
"Multibody Systems Handbook", 1990, and E. Hairer and G. Wanner, "Solving Ordinary Differential Equations II", 1996.
"""

from __future__ import annotations

import numpy as np

from ..errors import ArgumentError
from ..model.assembly import Part, assemble
from ..model.constraints import Constraint, Spring
from ..model.model import Inertial, Joint, Model, Placement
from ..model.quantities import as_number
from ..robot.robot import Robot
from ..support.checks import one_of, whole_number
from ..support.messages import shown


def planar_model(n: int, *, length: float = 1.0, mass: float = 1.0, gravity: float = 9.81) -> Model:
    """Return a chain of `n` equal links in a plane (Rodriguez 1987, section XII).

    The links are uniform rods along x at q = 0, with revolute joints about z and gravity along -y. Frame "tool" is the
    free end of the last rod.
    """
    whole_number("n", n, at_least=1)
    length, mass, gravity = (
        as_number(value, what) for value, what in ((length, "length"), (mass, "mass"), (gravity, "gravity"))
    )
    rod, end = _rod(length, mass), Placement(position=(length, 0.0, 0.0))
    parts = []
    for i in range(n):
        joint = Joint(f"joint{i + 1}", placement=end if i else Placement())
        parts.append(Part(f"link{i + 1}", f"link{i}" if i else "base", joint, rod))
    parts.append(Part("tool", f"link{n}", Joint("tool mount", "fixed", placement=end)))
    return assemble(f"planar{n}", parts, base="base", gravity=(0.0, -gravity, 0.0))


def _rod(length: float, mass: float) -> Inertial:
    """A uniform rod along x from the origin."""
    across = mass * length**2 / 12
    return Inertial(mass, (length / 2, 0.0, 0.0), ((0.0, 0.0, 0.0), (0.0, across, 0.0), (0.0, 0.0, across)))


def chain_model(n: int, seed: int = 0, joints: str = "R") -> Model:
    """Return a serial chain of `n` links with random general geometry and physically consistent inertias.

    Joint i is at Rx(alpha) Tx(a) Rz(theta) Tz(d) in its parent (modified DH).

    Parameters
    ----------
    n : int
        Number of links.
    seed : int
        Seed of the random geometry.
    joints : "R" or "mixed"
        All revolute, or a third prismatic, with at least one of each kind from n = 2.
    """
    whole_number("n", n, at_least=1)
    one_of("joints", joints, ("R", "mixed"))
    whole_number("seed", seed, at_least=0)
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


def _random_kinds(random: np.random.Generator, n: int) -> np.ndarray:
    prismatic = random.random(n) < 1 / 3
    if n > 1 and not prismatic.any():
        prismatic[n // 2] = True
    if prismatic.all():
        prismatic[0] = False
    return prismatic


def _random_inertias(random: np.random.Generator, mass: np.ndarray) -> np.ndarray:
    """Return inertias (n, 3, 3) of bodies whose mass spreads by 0.05 to 0.15 m along random directions."""
    n = len(mass)
    spread = random.uniform(0.05, 0.15, (n, 3)) ** 2 * mass[:, None]
    turn, _ = np.linalg.qr(random.normal(size=(n, 3, 3)))
    second_moment = np.einsum("nij,nj,nkj->nik", turn, spread, turn)
    inertia = spread.sum(axis=1)[:, None, None] * np.eye(3) - second_moment
    return (inertia + inertia.transpose(0, 2, 1)) / 2


def _rotations(alpha: np.ndarray, theta: np.ndarray) -> np.ndarray:
    """Return Rx(alpha) Rz(theta) (n, 3, 3)."""
    ca, sa, ct, st = np.cos(alpha), np.sin(alpha), np.cos(theta), np.sin(theta)
    zero = np.zeros_like(alpha)
    rows = [[ct, -st, zero], [ca * st, ca * ct, -sa], [sa * st, sa * ct, ca]]
    return np.moveaxis(np.array(rows), 2, 0)


def _nested(rows: list[list[float]]) -> tuple[tuple[float, ...], ...]:
    return tuple(tuple(row) for row in rows)


def four_bars(windows: int = 1, *, length: float = 1.0, mass: float = 1.0, gravity: float = 9.81) -> Robot:
    """Return four-bar linkages in a row with one degree of freedom.

    `windows` + 1 equal posts on the ground are joined at their tops by `windows` couplers. They move in the x-y plane
    about z axes, with gravity along -y. Angles of joints post0, post1, ... are measured from the x axis, those of
    coupler1, ... from their post: upright is post = pi/2, coupler = -pi/2. Frame "B0" is the top of the first post.
    """
    whole_number("windows", windows, at_least=1)
    for name, value in (("length", length), ("mass", mass), ("gravity", gravity)):
        if not isinstance(value, int | float | np.integer | np.floating) or not abs(value) < 1e100:
            raise ArgumentError(f"four_bars: {name} is {shown(value)}, expected a number below 1e100.")
    rod = _rod(length, mass)
    end = Placement(position=(length, 0.0, 0.0))
    parts, constraints = [], []
    for k in range(windows + 1):
        foot = Placement(position=(k * length, 0.0, 0.0))
        parts.append(Part(f"post{k}", "ground", Joint(f"post{k}", placement=foot), rod))
        parts.append(Part(f"B{k}", f"post{k}", Joint(f"top{k}", "fixed", placement=end)))
    for k in range(1, windows + 1):
        parts.append(Part(f"coupler{k}", f"post{k - 1}", Joint(f"coupler{k}", placement=end), rod))
        parts.append(Part(f"end{k}", f"coupler{k}", Joint(f"tip{k}", "fixed", placement=end)))
        constraints.append(Constraint("line", f"end{k}", f"B{k}", name=f"window {k}"))
    model = assemble(f"{windows}-four-bar", parts, base="ground", gravity=(0.0, -gravity, 0.0))
    return Robot(model).with_constraints(constraints)


def four_bars_upright(robot: Robot, speed: float = 1.0) -> tuple[np.ndarray, np.ndarray]:
    """Return q and qd with every post upright and the tops moving at `speed` (m/s) along x."""
    couplers = np.array([name.startswith("coupler") for name in robot.joint_names])
    return np.where(couplers, -np.pi / 2, np.pi / 2), np.where(couplers, speed, -speed)


def andrews() -> Robot:
    """Return Andrews' squeezing mechanism: seven bodies in a plane, three loops, a spring, no gravity.

    The joints are beta, Theta, gamma, Phi, delta, Omega and eps; a motor drives beta. See `ANDREWS_START`.
    """
    A, B = (-0.06934, -0.00227), (-0.03635, 0.03273)
    rr, d, da, ra, e, ea, zt = 0.007, 0.028, 0.0115, 0.00092, 0.02, 0.01421, 0.04
    ss, sa, sb, sc, sd, ta, tb = 0.035, 0.01874, 0.01043, 0.018, 0.02, 0.02308, 0.00916
    u, ua, ub, zf, fa = 0.04, 0.01228, 0.00449, 0.02, 0.01421
    bodies = {  # joint: parent, position on it, mass, moment of inertia, center of mass, position of the hub P
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
        tensor = ((inertia, 0.0, 0.0), (0.0, inertia, 0.0), (0.0, 0.0, inertia))  # only zz matters in the plane
        body = Inertial(mass, (*com, 0.0), tensor)
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
