"""`linksweep view`: a robot in the browser, still, moving along a trajectory, or through its range."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from linksweep.cli.common import AskedRobot, find_robot, names_a_robot
from linksweep.cli.dynamics import Spline
from linksweep.errors import ArgumentError

if TYPE_CHECKING:
    import numpy as np

    from linksweep.robot.robot import Robot

SLOWEST, SHARE = 2.0, 0.7  # seconds for each piece of --move at least, and how much of a joint's range it goes through


@names_a_robot
def view(
    robot: AskedRobot,
    trajectory: Annotated[
        Path | None,
        typer.Option(
            "--trajectory", "-t", metavar="FILE", help="Samples (.csv), a motion (.toml) or a simulation (.npz)."
        ),
    ] = None,
    move: Annotated[
        bool, typer.Option("--move", help="Move the joints through their range, and plot the torques.")
    ] = False,
    spline: Spline = False,
    port: Annotated[int | None, typer.Option(help="The first free one from 8080 on unless said.")] = None,
    host: Annotated[
        str, typer.Option(help="127.0.0.1: this machine alone. 0.0.0.0: everybody who reaches it.")
    ] = "127.0.0.1",
    screenshot: Annotated[Path | None, typer.Option(metavar="FILE", help="Write a picture (.png), and end.")] = None,
    record: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write a page (.html) that plays without Python, and end.")
    ] = None,
    browser: Annotated[bool | None, typer.Option(help="Open a browser; where there is a screen unless said.")] = None,
    plain: Annotated[
        bool, typer.Option("--plain", help="Without shadows, for pages without graphics hardware.")
    ] = False,
) -> None:
    """Show a robot in the browser: sliders for its joints, or its motion with plots."""
    from linksweep.tables import check_place
    from linksweep.viewer.server import directions, viser_module

    viser_module()
    for path in filter(None, (screenshot, record)):
        check_place(path)
    if trajectory is not None and move:
        raise ArgumentError("--trajectory and --move are both given, expected one of them: leave one out.")
    arm = find_robot(robot)
    shown: dict[str, np.ndarray] = {}
    if trajectory is not None:
        shown = _along(arm, trajectory, spline)
    elif move:
        shown = _through_its_range(arm)
    q, t, tau, qd, qdd = (shown.get(name) for name in ("q", "t", "tau", "qd", "qdd"))
    once = screenshot is not None or record is not None
    opened = False if once else browser
    with arm.show(q, t, tau=tau, qd=qd, qdd=qdd, port=port, host=host, browser=opened, plain=plain) as viewer:
        if record is not None:
            viewer.record(record)
            print(f"wrote {record}")
        if screenshot is not None:
            viewer.screenshot(screenshot)
            print(f"wrote {screenshot}")
        if not once:
            if move:
                viewer.play()
            print(directions(viewer.scene.server), "(Ctrl-C ends it)", flush=True)
            viewer.wait()


def _along(arm: Robot, path: Path, spline: bool) -> dict[str, np.ndarray]:
    """What a trajectory holds: t and q, and where they are there qd, qdd and tau."""
    import numpy as np

    from linksweep.tables import joint_columns, open_trajectory
    from linksweep.tables.columns import header_of

    if path.suffix.lower() == ".npz":
        return _of_simulation(arm, path)
    blocks = ["q", "qd", "qdd"]
    if path.suffix.lower() != ".toml" and not spline:
        try:
            with path.open("rb") as file:
                names = set(header_of(path, file.readline(1 << 22)))
        except OSError as error:
            raise ArgumentError(
                f"The file {path} cannot be read ({error.strerror}), expected a trajectory: check the path."
            ) from None
        blocks = ["q", *(block for block in ("qd", "qdd", "tau") if names.issuperset(joint_columns(arm.model, block)))]
    table = np.concatenate(list(open_trajectory(path, arm.model, blocks, spline)))
    found = {"t": table[:, 0]}
    start = 1
    for block in blocks:
        width = arm.nq if block == "q" else arm.nv
        found[block] = table[:, start : start + width]
        start += width
    if "tau" not in found and {"qd", "qdd"} <= found.keys() and arm.has_inertia:
        found["tau"] = arm.inverse_dynamics(found["q"], found["qd"], found["qdd"])
    return found


def _of_simulation(arm: Robot, path: Path) -> dict[str, np.ndarray]:
    from linksweep.simulation import load

    run = load(path)
    if run.q.ndim != 2 or run.q.shape[1] != arm.nq:
        raise ArgumentError(
            f"{path} holds {run!r}, expected one rollout of {arm.nq} coordinates: use run.show() in Python."
        )
    return {"t": run.t, "q": run.q, "qd": run.qd, "qdd": run.qdd, "tau": run.tau}


def _through_its_range(arm: Robot) -> dict[str, np.ndarray]:
    """From neutral to one side of each joint's range, to the other, and back, at rest in between."""
    import numpy as np

    from linksweep.motion import Quintic

    start = arm.neutral()
    points = np.tile(start, (4, 1))
    seconds = SLOWEST
    for link, joint in zip(arm.canonical.joints, arm.model.joints, strict=True):
        for (place, _), entry in zip(link.pairs, link.type.coordinates, strict=False):
            reach = 1.2 if entry.turns else 0.3
            low, high = max(joint.limits.lower, -reach), min(joint.limits.upper, reach)
            low, high = min(low, high), max(low, high)
            middle, half = 0.5 * (low + high), 0.5 * SHARE * (high - low)
            points[:, place] = min(max(0.0, low), high), middle - half, middle + half, min(max(0.0, low), high)
            seconds = max(seconds, 1.875 * 2 * half / joint.limits.velocity)  # the peak rate of a quintic
    motion = Quintic(points, seconds * np.arange(4.0))
    t = np.linspace(motion.start, motion.end, 601)
    q, qd, qdd = motion(t)
    if arm.nq != arm.nv:  # those that stay neutral have other rates than coordinates
        velocity, acceleration, (qd, qdd) = qd, qdd, np.zeros((2, len(t), arm.nv))
        for place, rate in (pair for link in arm.canonical.links for pair in link.pairs):
            qd[:, rate], qdd[:, rate] = velocity[:, place], acceleration[:, place]
    found = {"t": t, "q": q, "qd": qd, "qdd": qdd}
    if arm.has_inertia:
        found["tau"] = arm.inverse_dynamics(q, qd, qdd)
    return found
