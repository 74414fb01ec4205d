"""`linksweep identify`: parameters of a robot from logged positions and torques."""

from __future__ import annotations

import functools
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from linksweep.cli.common import (
    AsJson,
    OutputFolder,
    RobotArguments,
    Topic,
    check_choice,
    choice_option,
    command,
    load_robot,
    print_json,
    print_written,
)
from linksweep.errors import ArgumentError

if TYPE_CHECKING:
    from linksweep.identification.fit import Fit, Validation

METHODS = ("weighted", "ordinary", "huber", "ridge", "entropic", "log_cholesky")
STAMPS = ("header", "received")
UNKNOWN = "inertia,armature,viscous,coulomb,offset"


@command(
    "Identify",
    "identify puma560 log.csv -o identified",
    "identify arm.urdf log1.csv log2.csv --validate log3.csv --method log_cholesky",
    "identify arm.urdf run.mcap --topic /joint_states",
)
def identify(
    robot: RobotArguments,
    logs: Annotated[
        list[Path],
        typer.Argument(
            metavar="LOG",
            help="Log of t, q, tau and, if measured, qd: .csv, .parquet, .npz, .h5, .mat, or a ROS bag.",
        ),
    ],
    output: OutputFolder = Path("out"),
    method: Annotated[str, choice_option("Estimator", METHODS)] = "weighted",
    cutoff: Annotated[
        float | None,
        typer.Option(metavar="HZ", help="Cut-off of the low-pass filter; default: by cross-validation."),
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
        float | None, typer.Option(metavar="SPEED", help="Exclude rows in which a drive is slower, rad/s.")
    ] = None,
    delay: Annotated[
        float, typer.Option(metavar="SECONDS", help="Delay of the torques relative to the positions.")
    ] = 0.0,
    retime: Annotated[
        bool | None, typer.Option("--retime/--no-retime", help="Estimate the sampling times of a polled log.")
    ] = None,
    validate: Annotated[
        list[Path] | None, typer.Option(metavar="LOG", help="Further log to compare with predicted torques.")
    ] = None,
    topic: Topic = None,
    stamps: Annotated[str, choice_option("Times of ROS messages", STAMPS)] = "header",
    as_json: AsJson = False,
) -> None:
    """Identify inertias, armatures and friction from logged torques.

    Writes a report, plots, tables and the robot as URDF.
    """
    from linksweep.files import load_log
    from linksweep.identification import identify as identify_robot

    if output.exists() and not output.is_dir():
        raise ArgumentError(f"The output {output} is a file, expected a folder.")
    check_choice("--method", method, METHODS)
    check_choice("--stamps", stamps, STAMPS)
    arm = load_robot(robot)
    read = functools.partial(load_log, model=arm.model, required=("q", "tau"), topic=topic or None, stamps=stamps)
    recorded = [read(path) for path in logs]
    others = {str(path): read(path) for path in validate or []}
    names = tuple(name.strip() for name in unknown.split(",") if name.strip())
    fit = identify_robot(
        arm, recorded if len(recorded) > 1 else recorded[0], method=method, cutoff=cutoff, unknown=names,
        drives=_drives(drive), stribeck=stribeck, slow=slow, delay=delay, retime=retime,
    )  # fmt: skip
    validated = {name: fit.validate(log) for name, log in others.items()}
    fit.report(output, validated)
    if as_json:
        print_json(_facts(fit, output, validated))
    else:
        _print(fit, output, validated)


def _drives(words: list[str] | None) -> dict[str, dict[str, float]] | None:
    """Parse drives written as NAME=JOINT+2*JOINT-JOINT."""
    drives = {}
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
        drives[name] = row
    return drives or None


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
            name: {"value": float(value), "deviation": number(deviation), "determined": bool(determined)}
            for name, value, deviation, determined in rows
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

    cutoff = "unfiltered" if fit.cutoff == float("inf") else f"cut-off {fit.cutoff:.4g} Hz"
    print(
        f"{fit.columns.full.name}: {int(fit.determined.sum())} of {len(fit.names)} base parameters from "
        f"{len(fit.samples):,} rows, {fit.method}, {cutoff}, condition number {fit.condition:.3g}"
    )
    for name, x, parts in zip(fit.columns.robot.joint_names, fit.rms, fit.validation.T, strict=True):
        finite = parts[parts == parts]
        unseen = f" ({finite.mean():.4g} cross-validated)" if len(finite) else ""
        print(f"  {name}: RMS residual {x:.4g}{unseen}")
    for path, own in validated.items():
        print(f"{path}, not fitted:")
        for name, x, size in zip(own.joints, own.rms, own.torque, strict=True):
            print(f"  {name}: RMS residual {x:.4g}, {percent(x, size)} of {size:.4g}")
    print_written(*sorted(path for path in output.iterdir() if path.is_file()))
