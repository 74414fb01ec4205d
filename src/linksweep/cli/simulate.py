"""`linksweep simulate`: forward dynamics integrated in time."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeAlias

import typer

from linksweep.cli.common import (
    AsJson,
    Dissipation,
    OutputFile,
    RobotArguments,
    Topic,
    check_apart,
    check_choice,
    check_outputs,
    choice_option,
    command,
    load_robot,
    method_option,
    new_table,
    print_json,
    print_whole,
    print_written,
)
from linksweep.cli.experiment import is_experiment, read_experiment
from linksweep.errors import ArgumentError
from linksweep.support.messages import nearest, shown

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import ArrayLike

    from linksweep.files.limit_watch import LimitWatch
    from linksweep.motion.trajectories import Motion
    from linksweep.robot.robot import Robot
    from linksweep.simulation import Controller, Integrator, Simulation
    from linksweep.simulation.controllers import Reference
    from linksweep.simulation.result import TrackingError

LAWS = {
    "zero": "no torques",
    "pd": "springs and dampers towards the start or along --motion, and gravity held",
    "computed_torque": "inverse dynamics with feedback, the same",
    "feed_forward": "inverse dynamics along --motion, without feedback",
}
INTEGRATORS = ("rk4", "semi_implicit_euler", "adaptive")
REPORTS = ("--output", "--plot", "--show", "--json")  # what an experiment leaves to the command line
PLOTTED = ("q", "qd", "qdd", "tau")
Plain: TypeAlias = "float | list[Plain] | None"  # numbers as JSON has them


def _laws(incomplete: str) -> list[tuple[str, str]]:
    return [(law, about) for law, about in LAWS.items() if law.startswith(incomplete)]


@command(
    "Simulate",
    "simulate puma560 --duration 2 --q0 joint2=-0.5 --dissipation --plot fall.png",
    "simulate arm.urdf --torque computed_torque --motion motion.toml -o run.npz",
)
def simulate(
    robot: RobotArguments,
    duration: Annotated[
        float | None, typer.Option(metavar="SECONDS", help="Duration; default: that of --motion or --torque, or 1 s.")
    ] = None,
    dt: Annotated[float, typer.Option(metavar="SECONDS", help="Time step.")] = 1e-3,
    q0: Annotated[
        str | None,
        typer.Option(metavar="NUMBERS", help="Initial positions: 0.1,0.2,... for all joints, or joint2=0.5,..."),
    ] = None,
    qd0: Annotated[str | None, typer.Option(metavar="NUMBERS", help="Initial velocities, as --q0.")] = None,
    torque: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help=f"Controller: {', '.join(LAWS)}, or a log with tau (.csv, .npz, ROS bag, ...); default: "
            "feed_forward with --motion, else zero.",
            autocompletion=_laws,
        ),
    ] = None,
    topic: Topic = None,
    motion: Annotated[Path | None, typer.Option(metavar="FILE", help="Reference motion (.toml).")] = None,
    kp: Annotated[float, typer.Option(metavar="GAIN", help="Stiffness of pd and computed_torque.")] = 100.0,
    kd: Annotated[float, typer.Option(metavar="GAIN", help="Damping of pd and computed_torque.")] = 20.0,
    integrator: Annotated[str, choice_option("Integrator", INTEGRATORS)] = "rk4",
    method: Annotated[str | None, method_option("forward_dynamics")] = None,
    every: Annotated[int, typer.Option(metavar="N", help="Record every N-th step.")] = 1,
    dissipation: Dissipation = False,
    output: OutputFile = None,
    plot: Annotated[Path | None, typer.Option(metavar="FILE", help="Plot --show as .png, .svg or .pdf.")] = None,
    show: Annotated[str, choice_option("Plotted quantity", PLOTTED)] = "q",
    as_json: AsJson = False,
) -> None:
    """Simulate a robot, or an experiment (.toml in place of ROBOT).

    The result is t, q, qd, qdd, tau and energy, as a file, a plot and a summary. An experiment names the robot, its
    motion, controllers, sampling and disturbances.
    """
    from linksweep.files.motion_files import read_motion
    from linksweep.simulation import simulate as run

    check_outputs(output, plot)
    check_choice("--show", show, PLOTTED)
    if is_experiment(robot.name):
        beside = [option for option in robot.typed_options if option not in REPORTS]
        if beside:
            raise ArgumentError(
                f"{robot.name} is an experiment, which says all itself, got {', '.join(beside)} beside it: write "
                f"that there."
            )
        experiment = read_experiment(Path(str(robot.name)))
        _finish(experiment.run(), experiment.reference, output, plot, show, as_json)
        return
    named = torque or ("zero" if motion is None else "feed_forward")
    idle = [option for option in robot.typed_options if option in ("--kp", "--kd")]
    if idle and named not in ("pd", "computed_torque"):
        raise ArgumentError(
            f"--torque is {shown(named)}, which has no {' and no '.join(idle)}, expected pd or computed_torque: choose "
            f"one of these, or leave the gains out."
        )
    if output is not None and torque is not None:
        check_apart(output, Path(torque), "the file of torques")
    arm = load_robot(robot)
    path = None if motion is None else read_motion(motion, arm.model)
    start, rates = arm.neutral(), None
    if path is not None:
        start, rates, _ = path(max(path.start, 0.0))
    if q0 is not None:
        start = _numbers(arm, "q", q0)
    if qd0 is not None:
        rates = _numbers(arm, "qd", qd0)
    law = _law(arm, named, path, start, (kp, kd), topic or None)
    if duration is None:
        times = getattr(law, "times", None)
        duration = float(times[-1]) if times is not None else path.end if path else 1.0
    found = run(
        arm, start, rates, law, duration, dt=dt, integrator=_integrator(integrator, method), every=every,
        dissipation=dissipation,
    )  # fmt: skip
    _finish(found, None, output, plot, show, as_json)


def _finish(
    found: Simulation, reference: Reference | None, output: Path | None, plot: Path | None, show: str, as_json: bool
) -> None:
    """Files, picture and summary of a run; with a reference, how well it was followed."""
    from linksweep.files.limit_watch import LimitWatch

    if output is not None:
        {".csv": found.to_csv, ".npz": found.to_npz, ".parquet": found.to_parquet}[output.suffix.lower()](output)
    if plot is not None:
        from linksweep import plots

        plots.save(found.plot(show, reference if show == "q" else None), plot)
    watch = LimitWatch(found.robot.model, simulated=True)
    watch.add(found.t, q=found.q, qd=found.qd, tau=found.tau)
    tracking = None
    if reference is not None and found.finite.all():
        tracking = found.tracking_error(reference)
    _print(found, watch, as_json, output, plot, tracking)


def _integrator(name: str, method: str | None) -> Integrator:
    """The integrator that --integrator and --method name."""
    from dataclasses import replace

    from linksweep.simulation.integrators import as_integrator

    return replace(as_integrator(name), method=method)


def _law(
    arm: Robot,
    torque: str,
    path: Motion | None,
    start: np.ndarray,
    gains: tuple[float, float],
    topic: list[str] | None,
) -> Controller | None:
    """The law that --torque names."""
    from linksweep.simulation import PD, ComputedTorque, FeedForward, Sampled

    if torque not in LAWS and (Path(torque).suffix or Path(torque).is_dir()):
        if path is not None:
            raise ArgumentError("--torque is a file and --motion is given, expected one of them: leave one out.")
        return Sampled(*_samples(arm, Path(torque), topic))
    if torque not in LAWS:
        raise ArgumentError(
            f"--torque is {shown(torque)}{nearest(torque, LAWS)}, expected {', '.join(LAWS)}, or a file."
        )
    if torque == "feed_forward":
        if path is None:
            raise ArgumentError("--torque feed_forward needs a motion to follow: give --motion FILE.toml.")
        return FeedForward(path)
    if torque == "zero":
        return None
    return (PD if torque == "pd" else ComputedTorque)(start if path is None else path, *gains)


def _samples(arm: Robot, path: Path, topic: list[str] | None) -> tuple[np.ndarray, np.ndarray]:
    """Return torques (samples, nv) and their times from a log."""
    import numpy as np

    from linksweep.files import open_trajectory

    table = np.concatenate(list(open_trajectory(path, arm.model, ("tau",), topic=topic)))
    return table[:, 1:], table[:, 0]


def _numbers(arm: Robot, block: str, text: str) -> np.ndarray:
    """Coordinates or rates from `0.1,0.2,...` in joint order or from `joint2=0.5,...`."""
    import numpy as np

    from linksweep.files import joint_columns

    names = [column.removeprefix(f"{block}.") for column in joint_columns(arm.model, block)]
    values = arm.neutral() if block == "q" else np.zeros(arm.nv)
    words = [word.strip() for word in text.split(",")]
    option = f"--{block}0"
    if not any("=" in word for word in words):
        if len(words) != len(names):
            raise ArgumentError(
                f"{option} has {len(words)} numbers, expected {len(names)}, one for each of {', '.join(names[:6])}, or "
                f"pairs such as {names[0]}=0.5."
            )
        words = [f"{name}={word}" for name, word in zip(names, words, strict=True)]
    given = [word.rpartition("=")[0] for word in words]
    for word in words:
        name, _, number = word.rpartition("=")
        if name not in names:
            raise ArgumentError(
                f"{option} names {shown(name or word)}{nearest(name, names)}, expected joints of {arm.name}: "
                f"{', '.join(names[:6])}."
            )
        if given.count(name) > 1:
            raise ArgumentError(f"{option} names {shown(name)} twice, expected once: remove one.")
        try:
            values[names.index(name)] = float(number)
        except ValueError:
            raise ArgumentError(f"{option} has {shown(number)} for {name}, expected a number.") from None
    return values


def _print(
    found: Simulation, watch: LimitWatch, as_json: bool, output: Path | None, plot: Path | None,
    tracking: TrackingError | None,
) -> None:  # fmt: skip
    import numpy as np

    energy = found.energy
    kept = found.settings["torque"].startswith("Zero") and not found.settings["dissipation"]
    facts: dict[str, object] = {
        "robot": found.robot.name,
        **found.settings,
        "moments": len(found.t),
        "finite": bool(found.finite.all()),
        "final": {name: _plain(getattr(found, name)[-1]) for name in ("t", "q", "qd")},
        "energy": {
            "start": _plain(energy[0]),
            "end": _plain(energy[-1]),
            "drift": _plain(found.energy_drift) if kept else None,
        },
        "limit_crossings": [{"joint": c.joint, "bound": c.bound, "t": c.time} for c in found.limit_crossings],
        **watch.as_dict(),
        **(_tracked(tracking) if tracking is not None else {}),
        "output": None if output is None else str(output),
        "plot": None if plot is None else str(plot),
    }
    if as_json:
        print_json(facts)
        return
    from rich.text import Text

    from linksweep.files import joint_columns

    settings = f"{facts['integrator']}, dt {facts['dt']:g} s, torque {facts['torque']}"
    title = f"{found.robot.name}: {found.t[-1]:g} s, {len(found.t)} samples ({settings})"
    table = new_table(title, ("", "initial", "final", "min", "max"))
    for block in ("q", "qd"):
        for name, column in zip(joint_columns(found.robot.model, block), getattr(found, block).T, strict=True):
            table.add_row(Text(name), *(f"{x:.6g}" for x in (column[0], column[-1], column.min(), column.max())))
        table.add_section()
    table.add_row("energy", *(f"{x:.6g}" for x in (energy[0], energy[-1], energy.min(), energy.max())))
    print_whole(table)
    if kept and np.isfinite(found.energy_drift):
        print(f"energy drift over the range of potential energy: {float(found.energy_drift):.1e}")
    if tracking is not None:
        print(f"tracking error: rms {max(tracking.rms):.3g}, largest {max(tracking.largest):.3g} (rad, m)")
    for line in watch.lines():
        print(line)
    print_written(output, plot)


def _tracked(error: TrackingError) -> dict[str, object]:
    return {"tracking_error": {"rms": _plain(error.rms), "largest": _plain(error.largest)}}


def _plain(value: ArrayLike) -> Plain:
    """A float or a list of them, null for what JSON has no number for."""
    import numpy as np

    array = np.asarray(value, dtype=float)
    if array.ndim:
        return [_plain(entry) for entry in array]
    return float(array) if np.isfinite(array) else None
