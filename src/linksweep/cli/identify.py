"""`linksweep identify`: the parameters of a robot from logged torques."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from linksweep.cli.common import AsJson, AskedRobot, OutputFolder, complete_from, find_robot, names_a_robot
from linksweep.errors import ArgumentError

if TYPE_CHECKING:
    import numpy as np

    from linksweep.identification.fit import Fit, Validation
    from linksweep.robot.robot import Robot

METHODS = ("weighted", "ordinary", "huber", "ridge", "entropic", "log_cholesky")
UNKNOWN = "inertia,armature,viscous,coulomb,offset"


@names_a_robot
def identify(
    robot: AskedRobot,
    logs: Annotated[
        list[Path], typer.Argument(metavar="LOG...", help="CSV: t, q.NAME, tau.NAME and, if measured, qd.NAME.")
    ],
    output: OutputFolder = Path("out"),
    method: Annotated[
        str, typer.Option(metavar="METHOD", help=", ".join(METHODS) + ".", autocompletion=complete_from(METHODS))
    ] = "weighted",
    cutoff: Annotated[
        float | None, typer.Option(metavar="HZ", help="Low-pass cut-off; default: chosen by cross-validation.")
    ] = None,
    unknown: Annotated[
        str,
        typer.Option(
            metavar="NAMES", help="Unknown parameters; also coulomb_sides, stribeck, payload:FRAME, inertia:LINK."
        ),
    ] = UNKNOWN,
    drive: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=JOINT+JOINT", help="Drive that turns with several joints, as motor_6=joint_5+joint_6."
        ),
    ] = None,
    stribeck: Annotated[float | None, typer.Option(metavar="SPEED", help="Speed of Stribeck friction, rad/s.")] = None,
    slow: Annotated[
        float | None, typer.Option(metavar="SPEED", help="Ignore rows in which a drive is slower than this, rad/s.")
    ] = None,
    delay: Annotated[float, typer.Option(metavar="SECONDS", help="Delay of the torques.")] = 0.0,
    retime: Annotated[
        bool | None, typer.Option("--retime/--no-retime", help="Move rows of a polled log to the controller's clock.")
    ] = None,
    validate: Annotated[
        list[Path] | None, typer.Option(metavar="LOG", help="Log that is not fitted: report how well it is predicted.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Fit inertias, armatures and friction to logged torques: a report, plots, tables and the robot as URDF."""
    from linksweep.identification import identify as fitted

    if output.exists() and not output.is_dir():
        raise ArgumentError(f"The output {output} is a file, expected a folder: choose another.")
    if method not in METHODS:
        raise ArgumentError(f"--method is {method!r}, expected one of {', '.join(METHODS)}.")
    arm = find_robot(robot)
    read = [read_log_file(arm, path) for path in logs]
    others = {str(path): read_log_file(arm, path) for path in validate or []}
    names = tuple(name.strip() for name in unknown.split(",") if name.strip())
    t, q, tau, qd = (list(column) for column in zip(*read, strict=True))
    rates = None if any(one is None for one in qd) else qd  # where only some have velocities, none
    several = (t, q, tau, rates) if len(read) > 1 else read[0]
    fit = fitted(
        arm, *several, method=method, cutoff=cutoff, unknown=names, drives=_drives(drive), stribeck=stribeck,
        slow=slow, delay=delay, retime=retime,
    )  # fmt: skip
    validated = {name: fit.validate(*log) for name, log in others.items()}
    fit.report(output, validated)
    if as_json:
        print(json.dumps(_facts(fit, output, validated), indent=2, ensure_ascii=False, allow_nan=False))
    else:
        _print(fit, output, validated)


def read_log_file(arm: Robot, path: Path) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray | None]:
    """t, q, tau, and qd where the file has it."""
    from linksweep.tables import read_logged

    found = read_logged(path, arm.model, ("q", "tau"), optional="qd")
    return found["t"], found["q"], found["tau"], found.get("qd")


def _drives(words: list[str] | None) -> dict[str, dict[str, float]] | None:
    """From NAME=JOINT+2*JOINT-JOINT."""
    found = {}
    for word in words or []:
        name, equals, terms = word.partition("=")
        row: dict[str, float] = {}
        for term in terms.replace("-", "+-").split("+"):
            if not term.strip() and "+" in terms.replace("-", "+-"):
                continue
            sign = -1.0 if term.strip().startswith("-") else 1.0
            factor, star, joint = term.strip().lstrip("-").rpartition("*")
            try:
                row[joint.strip()] = sign * (float(factor) if star else 1.0)
            except ValueError:
                row = {}
                break
        if not equals or not name or not row:
            raise ArgumentError(f"--drive is {word!r}, expected NAME=JOINT+JOINT, such as motor_6=joint_5+joint_6.")
        found[name] = row
    return found or None


def _facts(fit: Fit, output: Path, validated: dict[str, Validation]) -> dict[str, object]:
    import math

    def number(x: float) -> float | None:
        return float(x) if math.isfinite(x) else None

    rows = zip(fit.names, fit.values, fit.deviations, fit.determined, strict=True)
    return {
        "robot": fit.columns.full.name,
        "method": fit.method,
        "rows": len(fit.samples),
        "cutoff": number(fit.cutoff),
        "condition": number(fit.condition),
        "rms": {name: number(x) for name, x in zip(fit.columns.robot.joint_names, fit.rms, strict=True)},
        "parameters": {
            name: {"value": float(value), "deviation": number(spread), "determined": bool(known)}
            for name, value, spread, known in rows
        },
        "validated": {
            path: {
                name: {"rms": number(x), "measured": number(size)}
                for name, x, size in zip(own.joints, own.rms, own.torque, strict=True)
            }
            for path, own in validated.items()
        },
        "remarks": dict(fit.remarks),
        "folder": str(output),
    }


def _print(fit: Fit, output: Path, validated: dict[str, Validation]) -> None:
    from linksweep.identification.report import percent

    band = "unfiltered" if fit.cutoff == float("inf") else f"{fit.cutoff:.4g} Hz"
    print(
        f"{fit.columns.full.name}: {int(fit.determined.sum())} of {len(fit.names)} base parameters from "
        f"{len(fit.samples):,} rows, {fit.method}, {band}, condition {fit.condition:.3g}"
    )
    for name, x, apart in zip(fit.columns.robot.joint_names, fit.rms, fit.validation.T, strict=True):
        known = apart[apart == apart]
        unseen = f" ({known.mean():.4g} cross-validated)" if len(known) else ""
        print(f"  {name}: RMS residual {x:.4g}{unseen}")
    for path, own in validated.items():
        print(f"{path}, not fitted:")
        for name, x, size in zip(own.joints, own.rms, own.torque, strict=True):
            print(f"  {name}: RMS residual {x:.4g}, {percent(x, size)} of {size:.4g}")
    print(f"Written into {output}: {' '.join(sorted(path.name for path in output.iterdir() if path.is_file()))}")
