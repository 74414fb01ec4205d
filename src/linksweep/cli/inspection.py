"""`linksweep info`, `check`, `explain` and `view`: look at a robot."""

from __future__ import annotations

import math
import sys
import textwrap
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final, TypedDict

import typer

from linksweep.cli.common import (
    DISAGREEMENT,
    AsJson,
    Dissipation,
    RobotArguments,
    Spline,
    Topic,
    command,
    complete_from,
    load_robot,
    method_option,
    print_json,
    print_written,
)
from linksweep.errors import ArgumentError

if TYPE_CHECKING:
    import numpy as np

    from linksweep.papers.exact import Proof
    from linksweep.robot.checking import Report
    from linksweep.robot.robot import Robot


# ---- info ------------------------------------------------------------------------------------------------------

WIDTH = 80
LIMITS: Final = ("lower", "upper", "velocity", "effort")
LOSSES: Final = ("damping", "friction", "armature", "torque_offset")


class JointFacts(TypedDict):
    name: str
    kind: str
    axis: list[float] | None
    parent: str
    link: str
    mass: float
    lower: float | None
    upper: float | None
    velocity: float | None
    effort: float | None
    damping: float
    friction: float
    armature: float
    torque_offset: float


class MimicFacts(TypedDict):
    joint: str
    leader: str
    multiplier: float
    offset: float


class ConstraintFacts(TypedDict):
    name: str
    kind: str
    a: str
    b: str | None
    rows: int


class Facts(TypedDict):
    name: str
    nq: int
    nv: int
    gravity: list[float]
    base: str
    joints: list[JointFacts]
    mimic: list[MimicFacts]
    constraints: list[ConstraintFacts]
    springs: int
    actuated: list[str]
    frames: list[str]
    tips: list[str]
    tool: str | None
    tools: list[str]
    methods: dict[str, list[str]]
    functions: list[str]
    groups: dict[str, list[str]]
    states: dict[str, list[float]]


@command("Inspect", "info puma560", "info arm.urdf --base floating --json")
def info(robot: RobotArguments, as_json: AsJson = False) -> None:
    """Show a robot's joints, limits, links, frames, functions and algorithms."""
    facts = _facts(load_robot(robot))
    if as_json:
        print_json(facts)
    else:
        print("\n".join(_lines(facts)))


def _facts(robot: Robot) -> Facts:
    """The content of `info` as plain JSON values. A missing limit is null; joints are in coordinate order."""
    from linksweep.model.model import tools

    model = robot.model
    joints: list[JointFacts] = []
    for index in model.document_order:
        link = model.links[index]
        joint, limits = link.joint, link.joint.limits
        joints.append(
            {
                "name": joint.name,
                "kind": joint.kind,
                "axis": [float(x) for x in joint.axis] if joint.type.has_axis else None,
                "parent": model.base if link.parent < 0 else model.links[link.parent].name,
                "link": link.name,
                "mass": link.inertial.mass,
                "lower": _finite(limits.lower),
                "upper": _finite(limits.upper),
                "velocity": _finite(limits.velocity),
                "effort": _finite(limits.effort),
                "damping": joint.damping,
                "friction": joint.friction,
                "armature": joint.armature,
                "torque_offset": joint.torque_offset,
            }
        )
    tool_frames = list(tools(model))
    return {
        "name": model.name,
        "nq": robot.nq,
        "nv": robot.nv,
        "gravity": list(map(float, robot.gravity)),
        "base": model.base,
        "joints": joints,
        "mimic": [
            {"joint": c.joint, "leader": c.leader, "multiplier": c.multiplier, "offset": c.offset}
            for c in robot.couplings
        ],
        "constraints": [
            {"name": c.label, "kind": c.kind, "a": c.a, "b": c.b or None, "rows": c.rows} for c in robot.constraints
        ],
        "springs": len(model.springs),
        "actuated": list(robot.actuated),
        "frames": list(robot.frame_names),
        "tips": list(robot.tips),
        "tool": tool_frames[0] if len(tool_frames) == 1 else None,
        "tools": tool_frames,
        "methods": {name: list(robot.methods(name)) for name in ("inverse_dynamics", "forward_dynamics")},
        "functions": list(robot.functions),
        "groups": {name: list(joints) for name, joints in robot.groups.items()},
        "states": {name: q.tolist() for name, q in robot.states.items()},
    }


def _finite(limit: float) -> float | None:
    return None if math.isinf(limit) else limit


def _lines(facts: Facts) -> list[str]:
    """Plain text that keeps every name whole in a pipe of any width."""
    joints = facts["joints"]
    mass = sum(joint["mass"] for joint in joints)
    limits = [
        (joint["name"], joint["kind"], _axis(joint["axis"]), *(_number(joint[key]) for key in LIMITS))
        for joint in joints
    ]
    bodies = [
        (joint["name"], joint["parent"], joint["link"], *(_number(joint[key]) for key in ("mass", *LOSSES)))
        for joint in joints
    ]
    couplings = [
        f"mimic joint {c['joint']} follows {c['leader']}: {c['multiplier']:.6g} q + {c['offset']:.6g}"
        for c in facts["mimic"]
    ]
    constraints = [
        f"constraint {c['name']}: {c['kind']} of {c['a']} and {c['b'] or 'the world'}, {c['rows']} "
        f"row{'s' if c['rows'] > 1 else ''}"
        for c in facts["constraints"]
    ]
    springs = [f"springs between frames: {facts['springs']}"] if facts["springs"] else []
    followers = {coupling["joint"] for coupling in facts["mimic"]}
    driven = {*followers, *facts["actuated"]}
    passive = [joint["name"] for joint in joints if joint["name"] not in driven]
    rows = sum(constraint["rows"] for constraint in facts["constraints"])
    dof = f"{facts['nv']} DOF" + (f" before {rows} rows of constraints" if rows else "")
    tool = [facts["tool"]] if facts["tool"] else [f"{len(facts['tools'])} candidates", *facts["tools"]]
    return [
        f"{facts['name']}: {len(joints)} joints, {dof}, moving mass {mass:.4g} kg",
        "",
        *_table(("joint", "kind", "axis", *LIMITS), limits, left=3),
        "",
        *_table(("joint", "parent", "link", "mass", *LOSSES), bodies, left=3),
        "",
        *couplings,
        *constraints,
        *springs,
        *(_listed("passive joints", passive) if passive else []),
        "gravity: " + " ".join(f"{x:g}" for x in facts["gravity"]) + " m/s²",
        *_listed("frames", facts["frames"]),
        *_listed("tip frames", facts["tips"]),
        *_listed("tool", tool),
        *(line for name, names in facts["groups"].items() for line in _listed(f"group {name}", names)),
        *(f"state {name}: " + " ".join(f"{x:.4g}" for x in q) for name, q in facts["states"].items()),
        *(line for name, methods in facts["methods"].items() for line in _listed(f"{name} by", _with_aliases(methods))),
        *_listed("functions", facts["functions"]),
    ]


def _with_aliases(methods: Sequence[str]) -> list[str]:
    from linksweep.functions.items import ALIASES

    aliases = {full: alias for alias, full in ALIASES.items()}
    return [f"{method} ({aliases[method]})" if method in aliases else method for method in methods]


def _axis(axis: Sequence[float] | None) -> str:
    return "–" if axis is None else " ".join(f"{x:.3g}" for x in axis)


def _number(value: float | None) -> str:
    return "–" if value is None else f"{value:.4g}"


def _table(headings: Sequence[str], rows: Sequence[Sequence[str]], left: int) -> list[str]:
    """Lines of columns as wide as their cells, the first `left` of them aligned left and the others right."""
    widths = [max(map(len, column)) for column in zip(headings, *rows, strict=True)]
    return [
        "  ".join(
            word.ljust(width) if k < left else word.rjust(width)
            for k, (word, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in (headings, *rows)
    ]


def _listed(heading: str, names: Sequence[str]) -> list[str]:
    return textwrap.wrap(
        f"{heading}: {', '.join(names)}", WIDTH, subsequent_indent="  ", break_long_words=False, break_on_hyphens=False
    )


# ---- check -----------------------------------------------------------------------------------------------------

SAMPLES = 20


@command("Inspect", "check arm.urdf", "check puma560 --exact")
def check(
    robot: RobotArguments,
    samples: Annotated[int | None, typer.Option(metavar="N", help=f"Random states; default: {SAMPLES}.")] = None,
    seed: Annotated[int, typer.Option(metavar="N", help="Seed of the random states.")] = 0,
    exact: Annotated[
        bool,
        typer.Option(
            "--exact", help="Prove equality in exact arithmetic. ROBOT may be a joint structure, such as 'F(RR)(RP)S'."
        ),
    ] = False,
    trials: Annotated[
        int | None,
        typer.Option(metavar="N", help="Trials of --exact; default: until the chance of an error is below 1e-12."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Check a robot model, and compare all algorithms with each other on random states.

    The exit code is 1 if algorithms disagree or the model is not physically realisable.
    """
    report: Report | Proof
    if exact:
        from linksweep.papers.exact import prove

        if samples is not None:
            raise ArgumentError("--samples does not apply to --exact: use --trials.")
        report = prove(_robot_or_structure(robot), trials=trials, seed=seed)
        title, headings = f"{report.name}: exact arithmetic", ("statement", "for", "degree", "chance")
    else:
        from linksweep.robot.checking import check as run_check

        if trials is not None:
            raise ArgumentError("--trials applies only to --exact: use --samples, or add --exact.")
        report = run_check(load_robot(robot), SAMPLES if samples is None else samples, seed)
        title = f"{report.robot}: {report.samples} states, differences scaled by conditioning"
        headings = ("function", "method", "furthest from", "difference")
    if as_json:
        print_json(report.as_dict())
    elif sys.stdout.isatty():
        _print_report(report, title, headings)
    else:
        print(report)
    if not report.ok:
        raise typer.Exit(DISAGREEMENT)


def _robot_or_structure(robot: RobotArguments) -> Robot | str:
    """The robot, or the letters of a joint structure if no file has that name."""
    name = robot.name or ""
    if not name or set(name) - set("RPHESF()") or Path(name).is_file():
        return load_robot(robot)
    if robot.changes:
        raise ArgumentError(f"{robot.changes[0]} does not apply to the joint structure {name}: leave it out.")
    return name


def _print_report(report: Report | Proof, title: str, headings: Sequence[str]) -> None:
    """Print the verdict, the table and the remarks in colour."""
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    console = Console()
    console.print(Text(report.verdict, style="bold green" if report.ok else "bold red"))
    table = Table(title=Text(title), title_justify="left")
    for heading in headings:
        table.add_column(heading, justify="right" if heading in ("difference", "degree", "chance") else "left")
    rows = report.rows()
    for index, (subject, *words, state) in enumerate(rows):
        repeated = index > 0 and subject == rows[index - 1][0]
        if index and not repeated and len(rows) > len({row[0] for row in rows}):
            table.add_section()
        style = "" if state in ("ok", "proved") else "bold red"
        table.add_row("" if repeated else Text(subject), *map(Text, words), style=style)
    if rows:
        console.print(table)
    for line in report.remarks():
        console.print(Text(line, style="red" if line.startswith(("error", "refuted")) else ""))


# ---- explain ---------------------------------------------------------------------------------------------------

EXPLAINED = ("inverse_dynamics", "forward_dynamics", "bias_forces", "gravity_forces")
VELOCITY, ACCELERATION = 0.5, 1.0  # of every joint in the example state, rad/s or m/s


@command(
    "Inspect",
    "explain puma560 inverse_dynamics --method rnea",
    "explain arm.urdf forward_dynamics --q 0.1,0.5 --link upper_arm -o page.html",
)
def explain(
    robot: RobotArguments,
    function: Annotated[
        str,
        typer.Argument(metavar="FUNCTION", help=f"{', '.join(EXPLAINED)}.", autocompletion=complete_from(EXPLAINED)),
    ] = "inverse_dynamics",
    method: Annotated[str | None, method_option("inverse_dynamics")] = None,
    q: Annotated[str | None, typer.Option(metavar="X,Y,...", help="Joint positions, rad or m.")] = None,
    qd: Annotated[str | None, typer.Option(metavar="X,Y,...", help="Joint velocities.")] = None,
    qdd: Annotated[str | None, typer.Option(metavar="X,Y,...", help="Joint accelerations.")] = None,
    tau: Annotated[str | None, typer.Option(metavar="X,Y,...", help="Joint torques.")] = None,
    link: Annotated[
        list[str] | None, typer.Option(metavar="NAME", help="Show only this link; may be repeated.")
    ] = None,
    dissipation: Dissipation = False,
    symbols: Annotated[
        bool, typer.Option("--symbols", help="Print symbolic expressions instead of numbers, for small arms.")
    ] = False,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", metavar="FILE", help="Write a page: .html, .md or .txt.")
    ] = None,
) -> None:
    """Show an algorithm step by step: equations and numbers of each link.

    Without --q, --qd, --qdd and --tau, an example state is used: bent joints that move and accelerate. If you give some
    of them, the others are 0 (q: the neutral configuration).
    """
    from linksweep.explain import check_suffix
    from linksweep.files import check_place

    if output is not None:
        check_suffix(output)
        check_place(output)
    texts = {"q": q, "qd": qd, "qdd": qdd, "tau": tau}
    state = {name: _numbers(name, text) for name, text in texts.items() if text is not None}
    arm = load_robot(robot)
    if not state and not symbols and function in EXPLAINED:
        state = _example_state(arm, function)
    explanation = arm.explain(
        function, method, q=state.get("q"), qd=state.get("qd"), qdd=state.get("qdd"), tau=state.get("tau"),
        dissipation=dissipation, symbols=symbols,
    )  # fmt: skip
    if link:
        explanation = explanation.of(*link)
    if output is None:
        print(explanation, end="")
    else:
        explanation.save(output)
        print_written(output)


def _example_state(arm: Robot, function: str) -> dict[str, Sequence[float]]:
    """A random configuration within the limits, rounded, with equal velocities and accelerations of all joints."""
    import numpy as np

    from linksweep.functions.functions import FUNCTIONS

    q = arm.random(np.random.default_rng(0))
    values = {"q": q.round(2) if arm.nq == arm.nv else q, "qd": [VELOCITY] * arm.nv, "qdd": [ACCELERATION] * arm.nv}
    return {name: values[name] for name in FUNCTIONS[function].inputs if name in values}


def _numbers(name: str, text: str) -> list[float]:
    try:
        return [float(word) for word in text.split(",")]
    except ValueError:
        raise ArgumentError(f"--{name} is {text!r}, expected numbers separated by commas, such as 0.1,-0.2.") from None


# ---- view ------------------------------------------------------------------------------------------------------

SEGMENT, SHARE = 2.0, 0.7  # minimum duration (s) of each segment of --move, and the share of a joint's range it covers


@command("Inspect", "view puma560 --move", "view arm.urdf -t motion.csv --record motion.html")
def view(
    robot: RobotArguments,
    trajectory: Annotated[
        Path | None,
        typer.Option(
            "--trajectory",
            "-t",
            metavar="FILE",
            help="Play a log (.csv, .parquet, .npz, .h5, .mat, ROS bag), a motion (.toml) or a simulation (.npz).",
        ),
    ] = None,
    move: Annotated[
        bool, typer.Option("--move", help="Move all joints through their range, and plot the torques.")
    ] = False,
    spline: Spline = False,
    topic: Topic = None,
    port: Annotated[int | None, typer.Option(metavar="PORT", help="Default: the first free port from 8080 on.")] = None,
    host: Annotated[
        str, typer.Option(metavar="ADDRESS", help="127.0.0.1 serves this machine only, 0.0.0.0 the whole network.")
    ] = "127.0.0.1",
    screenshot: Annotated[Path | None, typer.Option(metavar="FILE", help="Write an image (.png) and exit.")] = None,
    record: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write a page (.html) that plays without Python, and exit.")
    ] = None,
    browser: Annotated[bool | None, typer.Option(help="Open a browser; default: if there is a display.")] = None,
    plain: Annotated[bool, typer.Option("--plain", help="Omit shadows, for machines without a GPU.")] = False,
) -> None:
    """Show a robot in the browser with sliders for its joints, or play a motion with plots."""
    from linksweep.files import check_place
    from linksweep.viewer.server import directions, viser_module

    viser_module()
    for path in filter(None, (screenshot, record)):
        check_place(path)
    if trajectory is not None and move:
        raise ArgumentError("--trajectory and --move exclude each other: leave one out.")
    arm = load_robot(robot)
    signals: dict[str, np.ndarray] = {}
    if trajectory is not None:
        signals = _read_signals(arm, trajectory, spline, topic or None)
    elif move:
        signals = _range_motion(arm)
    q, t, tau, qd, qdd = (signals.get(name) for name in ("q", "t", "tau", "qd", "qdd"))
    interactive = screenshot is None and record is None
    opened = browser if interactive else False
    with arm.show(q, t, tau=tau, qd=qd, qdd=qdd, port=port, host=host, browser=opened, plain=plain) as viewer:
        if record is not None:
            viewer.record(record)
            print_written(record)
        if screenshot is not None:
            viewer.screenshot(screenshot)
            print_written(screenshot)
        if interactive:
            if move:
                viewer.play()
            print(directions(viewer.scene.server), "(stop with Ctrl-C)", flush=True)
            viewer.wait()


def _read_signals(arm: Robot, path: Path, spline: bool, topic: list[str] | None) -> dict[str, np.ndarray]:
    """Read t and q of a file, and qd, qdd and tau if it has them."""
    import numpy as np

    from linksweep.files import load_trajectory, open_trajectory

    if path.suffix.lower() == ".npz" and _is_simulation(path):
        return _read_simulation(arm, path)
    if path.suffix.lower() == ".toml" or spline:
        blocks = ("q", "qd", "qdd")
        table = np.concatenate(list(open_trajectory(path, arm.model, blocks, spline, topic)))
        ends = np.cumsum([1, arm.nq, arm.nv])
        signals: dict[str, np.ndarray] = dict(zip(("t", *blocks), np.split(table, ends, axis=1), strict=True))
        signals["t"] = table[:, 0]
    else:
        log = load_trajectory(path, arm.model, topic=topic)
        signals = {name: values for name, values in vars(log).items() if values is not None}
    if "tau" not in signals and {"qd", "qdd"} <= signals.keys() and arm.has_inertia:
        signals["tau"] = arm.inverse_dynamics(signals["q"], signals["qd"], signals["qdd"])
    return signals


def _is_simulation(path: Path) -> bool:
    """Whether a .npz file was written by `Simulation.to_npz`, or cannot be read at all."""
    import numpy as np

    try:
        with np.load(path, allow_pickle=False) as stored:
            return "metadata" in stored.files
    except Exception:
        return True  # its reader raises a message


def _read_simulation(arm: Robot, path: Path) -> dict[str, np.ndarray]:
    from linksweep.simulation import load

    run = load(path)
    if run.q.ndim != 2 or run.q.shape[1] != arm.nq:
        raise ArgumentError(
            f"{path} holds {run!r}, expected one rollout of {arm.nq} coordinates. In Python, use run.show()."
        )
    return {"t": run.t, "q": run.q, "qd": run.qd, "qdd": run.qdd, "tau": run.tau}


def _range_motion(arm: Robot) -> dict[str, np.ndarray]:
    """A motion from neutral to one side of each joint's range, to the other side, and back, at rest in between."""
    import numpy as np

    from linksweep.motion import Quintic

    points = np.tile(arm.neutral(), (4, 1))
    seconds = SEGMENT
    for link, joint in zip(arm.canonical.joints, arm.model.joints, strict=True):
        for (index, _), coordinate in zip(link.pairs, link.type.coordinates, strict=False):
            reach = 1.2 if coordinate.turns else 0.3
            low, high = sorted((max(joint.limits.lower, -reach), min(joint.limits.upper, reach)))
            middle, half, rest = 0.5 * (low + high), 0.5 * SHARE * (high - low), min(max(0.0, low), high)
            points[:, index] = rest, middle - half, middle + half, rest
            seconds = max(seconds, 1.875 * 2 * half / joint.limits.velocity)  # the peak velocity of a quintic
    motion = Quintic(points, seconds * np.arange(4.0))
    t = np.linspace(motion.start, motion.end, 601)
    q, qd, qdd = motion(t)
    if arm.nq != arm.nv:  # joints that stay neutral have more coordinates than velocities
        velocity, acceleration, (qd, qdd) = qd, qdd, np.zeros((2, len(t), arm.nv))
        for index, row in (pair for link in arm.canonical.links for pair in link.pairs):
            qd[:, row], qdd[:, row] = velocity[:, index], acceleration[:, index]
    signals = {"t": t, "q": q, "qd": qd, "qdd": qdd}
    if arm.has_inertia:
        signals["tau"] = arm.inverse_dynamics(q, qd, qdd)
    return signals
