"""`linksweep inverse`, `forward`, `export`, `convert` and `bench`: functions along trajectories, files, speed."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NotRequired, TypedDict

import typer

from linksweep.cli.common import (
    AsJson,
    Dissipation,
    OutputFile,
    Plot,
    RobotArguments,
    Spline,
    Topic,
    check_apart,
    check_choice,
    check_outputs,
    choice_option,
    command,
    complete_function,
    load_robot,
    method_option,
    new_table,
    print_json,
    print_written,
)
from linksweep.cli.experiment import is_experiment, read_experiment
from linksweep.errors import ArgumentError, LinksweepError

if TYPE_CHECKING:
    import numpy as np

    from linksweep.files.limit_watch import LimitWatch
    from linksweep.model.model import Model
    from linksweep.robot.options import Flags
    from linksweep.robot.robot import Robot

# ---- inverse and forward ---------------------------------------------------------------------------------------

INPUTS = {"inverse_dynamics": ("q", "qd", "qdd"), "forward_dynamics": ("q", "qd", "tau")}
RESULTS = {"inverse_dynamics": "tau", "forward_dynamics": "qdd"}


def _dynamics_command(name: str, function: str, about: str, *examples: str) -> Callable[..., None]:
    """Register `linksweep inverse` or `linksweep forward`; `about` is its help."""
    files = "Samples (.csv, .parquet, .npz, .h5, .mat), a ROS bag"
    files += ", or a motion (.toml)." if function == "inverse_dynamics" else "."

    def compute(
        robot: RobotArguments,
        trajectory: Path,
        output: OutputFile = None,
        method: str | None = None,
        plot: Plot = None,
        as_json: AsJson = False,
        dissipation: Dissipation = False,
        spline: Spline = False,
        topic: Topic = None,
        with_inputs: Annotated[bool, typer.Option("--with-inputs", help="Write the input columns as well.")] = False,
    ) -> None:
        _compute(function, robot, trajectory, output, method, plot, as_json, dissipation, spline, topic, with_inputs)

    annotations = compute.__annotations__
    annotations["trajectory"] = Annotated[Path, typer.Option("--trajectory", "-t", metavar="FILE", help=files)]
    annotations["method"] = Annotated[str | None, method_option(function)]
    compute.__name__, compute.__doc__ = name, about
    return command("Compute", *examples)(compute)


inverse = _dynamics_command(
    "inverse", "inverse_dynamics", "Compute joint torques along a trajectory of t, q, qd and qdd.",
    "inverse puma560 -t motion.toml -o torques.csv", "inverse arm.urdf -t motion.csv --method rnea --plot torques.png",
)  # fmt: skip
forward = _dynamics_command(
    "forward", "forward_dynamics", "Compute joint accelerations along a trajectory of t, q, qd and tau.",
    "forward puma560 -t torques.csv -o accelerations.npz", "forward arm.urdf -t log.csv --method aba --dissipation",
)  # fmt: skip


def _compute(
    function: str, robot: RobotArguments, trajectory: Path, output: Path | None, method: str | None, plot: Path | None,
    as_json: bool, dissipation: bool, spline: bool, topic: list[str] | None, with_inputs: bool,
) -> None:  # fmt: skip
    """Evaluate `function` along a trajectory; write, plot or print the result once it is complete."""
    from linksweep.cli.results import Summary
    from linksweep.files import block_columns, open_trajectory, write_table
    from linksweep.files.limit_watch import LimitWatch
    from linksweep.functions.items import ALIASES

    check_outputs(output, plot, trajectory=True)
    with_inputs = with_inputs or (output is not None and output.suffix.lower() == ".yaml")
    if output is not None:
        check_apart(output, trajectory, "the trajectory")
    arm = load_robot(robot)
    inputs, result = INPUTS[function], RESULTS[function]
    if arm.constraints and function == "inverse_dynamics":  # the method distributes the torques over the motors
        evaluate = functools.partial(arm.inverse_dynamics, dissipation=dissipation)
    else:
        evaluate = arm.compile(function, method=method, dissipation=dissipation, dtype="float64")
    blocks = open_trajectory(trajectory, arm.model, inputs, spline, topic or None)
    columns = block_columns(arm.model, (*inputs, result) if with_inputs else (result,))
    method = ALIASES.get(method, method) if method else arm.methods(function)[0]
    about = {"robot": arm.name, "function": function, "method": method}
    summary = Summary(arm, result, columns, about, keep_rows=as_json and output is None, keep_curve=plot is not None)
    limits = LimitWatch(arm.model)
    warn = arm.warn_if_singular if result == "qdd" else None
    computed = summary.watch(_evaluate(arm.model, limits, warn, evaluate, blocks, inputs, result, with_inputs))
    if output is None:
        for _ in computed:
            pass
    else:
        write_table(output, columns, computed, about)
    if plot is not None:
        summary.plot(plot)
    summary.print(as_json, output, plot, limits)


def _evaluate(
    model: Model, limits: LimitWatch, warn: Callable[..., bool] | None, evaluate: Callable[..., np.ndarray],
    blocks: Iterator[np.ndarray], inputs: tuple[str, ...], result: str, with_inputs: bool,
) -> Iterator[np.ndarray]:  # fmt: skip
    """Yield for each block of t and inputs a block of t, the inputs if requested, and the result."""
    import numpy as np

    from linksweep.files import joint_columns
    from linksweep.files.limit_watch import QUANTITIES

    ends = np.cumsum([1, *(len(joint_columns(model, block)) for block in inputs)])
    names = joint_columns(model, result)
    for values in blocks:
        arguments = {block: values[:, a:b] for block, (a, b) in zip(inputs, pairwise(ends), strict=True)}
        with np.errstate(over="ignore", invalid="ignore"):
            computed = evaluate(*arguments.values())
        if warn is not None and warn("forward", arguments["q"], functools.partial(_time, values)):
            warn = None  # once for all blocks
        if not np.isfinite(computed).all():
            row, column = np.argwhere(~np.isfinite(computed))[0]
            singular = ", or the configuration is singular" if result == "qdd" else ""
            raise ArgumentError(
                f"At t = {values[row, 0]} {names[column]} is {computed[row, column]}, expected a finite number: "
                f"the values of the trajectory are too large there, or a quaternion is zero{singular}."
            )
        watched = {block: x for block, x in {**arguments, result: computed}.items() if block in QUANTITIES}
        limits.add(values[:, 0], **watched)
        yield np.concatenate([values if with_inputs else values[:, :1], computed], axis=1)


def _time(values: np.ndarray, index: tuple[int, ...]) -> str:
    return f"at t = {values[index[0], 0]:g}"


# ---- export ----------------------------------------------------------------------------------------------------

CONTROLLER_OPTIONS = ("--controller", "--law", "--output", "--name", "--dtype")


@command(
    "Compute",
    "export puma560 inverse_dynamics -o puma.c",
    "export arm.urdf jacobian --frame tool0 --dtype float -o jacobian.c",
)
def export(
    robot: RobotArguments,
    output: Annotated[
        Path, typer.Option("--output", "-o", metavar="FILE", help="File: .c (and .h beside it), .mjs, .m, .cl or .cu.")
    ],
    function: Annotated[
        str | None,
        typer.Argument(
            metavar="FUNCTION", help="Function, such as inverse_dynamics, mass_matrix or jacobian.",
            autocompletion=complete_function,
        ),
    ] = None,
    law: Annotated[
        bool,
        typer.Option("--controller", "--law", help="Export the controller of an experiment (.toml in place of ROBOT)."),
    ] = False,
    language: Annotated[
        str,
        typer.Option(metavar="NAME", help="c, javascript, matlab, opencl, cuda, or casadi."),
    ] = "c",
    method: Annotated[str | None, method_option()] = None,
    dtype: Annotated[str, typer.Option(metavar="TYPE", help="double or float.")] = "double",
    frame: Annotated[str | None, typer.Option(metavar="FRAME", help="Frame of pose, jacobian and the like.")] = None,
    name: Annotated[str | None, typer.Option(metavar="NAME", help="Name of the exported function.")] = None,
    f_ext: Annotated[bool, typer.Option("--f-ext", help="Add external wrenches on the links as an input.")] = False,
    dissipation: Dissipation = False,
    base_motion: Annotated[bool, typer.Option("--base-motion", help="Add the motion of the base as an input.")] = False,
    parameter: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="Make a parameter of the robot an input: payload, gravity, ..."),
    ] = None,
) -> None:  # fmt: skip
    """Export a robot function as source code: C99, JavaScript, MATLAB, OpenCL, CUDA, or C for CasADi."""
    from linksweep.backends.printer import DIALECTS
    from linksweep.functions.c_export import export_source
    from linksweep.functions.casadi_export import export_casadi
    from linksweep.functions.functions import FUNCTIONS

    if law or (function is None and is_experiment(robot.name)):
        _export_controller(robot, function, output, name, dtype)
        return
    if function is None:
        raise ArgumentError(
            f"FUNCTION is missing: write linksweep export {robot.name} inverse_dynamics -o FILE.c, or --controller "
            f"with an experiment."
        )
    if robot.name in FUNCTIONS and function not in FUNCTIONS:
        raise ArgumentError(
            f"ROBOT is {robot.name!r} and FUNCTION is {function!r}, expected the other order: linksweep export "
            f"{function} {robot.name}."
        )
    check_choice("--language", language, (*DIALECTS, "casadi"))
    if frame is None and function in FUNCTIONS and FUNCTIONS[function].needs_frame:
        raise ArgumentError(f"{function} needs --frame (`linksweep info` lists the frames).")
    arm = load_robot(robot)
    flags: Flags = {"f_ext": f_ext, "dissipation": dissipation, "base_motion": base_motion}
    item = function if frame is None else (function, frame)
    # the interpreter, because nothing is called that would have to be compiled
    compiled = arm.compile(item, method=method, backend="interpreter", parameters=tuple(parameter or ()), **flags)
    for flag, requested in flags.items():
        if requested and flag not in FUNCTIONS[function].takes:
            raise ArgumentError(f"--{flag.replace('_', '-')} does not apply to {function}: leave it out.")
    replaced = output.exists() or (language == "c" and output.with_suffix(".h").exists())
    if language == "casadi":
        if dtype != "double":
            raise ArgumentError(f"--dtype is {dtype!r}, expected double, the only type of CasADi.")
        written: tuple[Path, ...] = (export_casadi(compiled, output, name=name, robot=arm),)
    else:
        written = export_source(compiled, output, language, name=name, dtype=dtype, robot=arm)
    print_written(*written, about=" (replaced)" if replaced else "")


def _export_controller(robot: RobotArguments, function: str | None, output: Path, name: str | None, dtype: str) -> None:
    """Export the controller of an experiment for the robot that it drives."""
    file = robot.name
    if function is not None or not is_experiment(file):
        raise ArgumentError(
            f"--controller got {file!r}, expected only an experiment, a .toml with robot and [[controller]]: linksweep "
            f"export experiment.toml --controller -o controller.c."
        )
    others = [option for option in robot.typed_options if option not in CONTROLLER_OPTIONS]
    if others:
        raise ArgumentError(
            f"{', '.join(others)} cannot be combined with the experiment {file}, expected only "
            f"{', '.join(CONTROLLER_OPTIONS[2:])}."
        )
    experiment = read_experiment(Path(str(file)))
    if experiment.controller is None:
        raise ArgumentError(f"{file} has no [[controller]] to export.")
    replaced = output.exists() or output.with_suffix(".h").exists()
    written = experiment.controller.to_c(
        output, experiment.robot, name=name, dtype=dtype, dissipation=bool(experiment.options.get("dissipation"))
    )
    print_written(*written, about=" (replaced)" if replaced else "")


# ---- convert ---------------------------------------------------------------------------------------------------

FORMATS = (".urdf", ".xml", ".mjcf")


@command(
    "Compute",
    "convert arm.urdf -o arm.xml",
    "convert arm.urdf.xacro --xacro prefix:=left_ --payload 2@tool0 -o arm.urdf",
)
def convert(
    robot: RobotArguments,
    output: Annotated[
        Path, typer.Option("--output", "-o", metavar="FILE", help="The file to write: .urdf, or .xml for MJCF.")
    ],
    plain: Annotated[
        bool, typer.Option("--plain", help="Write dynamics only, without the visuals and comments of a URDF file.")
    ] = False,
) -> None:
    """Write a robot as URDF or MJCF, with its payload and other changes.

    From URDF to URDF, everything else in the file stays as it was written.
    """
    suffix = output.suffix.lower()
    if suffix not in FORMATS:
        raise ArgumentError(f"The output {output} ends in {output.suffix!r}, expected {', '.join(FORMATS)}.")
    arm = load_robot(robot)
    source = arm.model.source
    replaced = output.exists()
    if source:
        check_apart(output, Path(source), "the robot model")
    if suffix == ".urdf":
        arm.to_urdf(original=not plain and source.lower().endswith(".urdf"), path=output)
    else:
        arm.to_mjcf(output)
    print_written(output, about=" (replaced)" if replaced else "")


# ---- bench -----------------------------------------------------------------------------------------------------

PINOCCHIO = {
    "inverse_dynamics": "rnea", "forward_dynamics": "aba", "mass_matrix": "crba",
    "mass_matrix_inverse": "computeMinverse",
}  # fmt: skip
MEASURED = tuple(PINOCCHIO)


class Row(TypedDict):
    """Measurements of one method; Pinocchio is measured with single calls only."""

    function: str
    method: str
    per_second: NotRequired[float]
    single_per_second: float
    mul: NotRequired[int]
    add: NotRequired[int]


@command("Compute", "bench puma560", "bench arm.urdf --function forward_dynamics --batch 1024 --threads 4")
def bench(
    robot: RobotArguments,
    function: Annotated[str | None, choice_option("Measure one function only", MEASURED)] = None,
    batch: Annotated[int, typer.Option(metavar="N", min=1, max=1_000_000, help="Samples in one call.")] = 4096,
    threads: Annotated[int, typer.Option(metavar="N", min=1, help="Threads for a batch.")] = 1,
    as_json: AsJson = False,
) -> None:
    """Measure evaluations per second of every method, and of Pinocchio if it is installed."""
    if function is not None:
        check_choice("--function", function, MEASURED)
    arm = load_robot(robot)
    rows = [row for name in MEASURED if function in (None, name) for row in _measured(arm, name, batch, threads)]
    if as_json:
        print_json({"robot": arm.name, "batch": batch, "threads": threads, "rows": rows})
    else:
        _print_rows(arm.name, batch, threads, rows)


def _measured(arm: Robot, function: str, batch: int, threads: int) -> list[Row]:
    """Measure each method in a batch and one sample at a time; count its operations."""
    import numpy as np

    from linksweep.support.timing import best_seconds

    rng = np.random.default_rng(0)
    q = np.stack([arm.random(rng) for _ in range(batch)])
    others = rng.uniform(-1.0, 1.0, (2, batch, arm.nv))  # qd, and qdd or tau
    args = (q, *others) if function in INPUTS else (q,)
    one = tuple(x[0].copy() for x in args)
    methods = arm.methods(function)
    batched = [arm.compile(function, method=method, dtype="float64", threads=threads) for method in methods]
    single = [arm.compile(function, method=method, dtype="float64") for method in methods]
    batches = best_seconds([functools.partial(f, *args) for f in batched])
    pinocchio = _pinocchio(arm, function, one)
    singles = best_seconds([*(functools.partial(f, *one) for f in single), *([pinocchio] if pinocchio else [])])
    rows: list[Row] = [
        {
            "function": function,
            "method": method,
            "per_second": batch / batches[k],
            "single_per_second": 1.0 / singles[k],
            "mul": batched[k].counts.mul,
            "add": batched[k].counts.add,
        }
        for k, method in enumerate(methods)
    ]
    if pinocchio is not None:
        rows.append({"function": function, "method": "Pinocchio", "single_per_second": 1.0 / singles[-1]})
    return rows


def _pinocchio(arm: Robot, function: str, args: tuple[np.ndarray, ...]) -> Callable[[], object] | None:
    """A call of Pinocchio from Python for the same robot; None if it is not installed or cannot model the robot."""
    import numpy as np

    try:
        import pinocchio as module
    except ImportError:
        return None
    try:
        model = module.buildModelFromXML(arm.with_gravity((0.0, 0.0, -9.81)).to_urdf())  # URDF has no gravity
    except (LinksweepError, ValueError):
        return None  # a joint type that URDF does not have
    if model.nv != arm.nv:
        return None
    # in its coordinates: an angle without limits is cosine and sine there
    args = (module.integrate(model, module.neutral(model), np.ones(arm.nv)), *args[1:])
    data, pinocchio = model.createData(), getattr(module, PINOCCHIO[function])
    return lambda: pinocchio(model, data, *args)


def _print_rows(name: str, batch: int, threads: int, rows: list[Row]) -> None:
    from rich.console import Console
    from rich.text import Text

    title = f"{name}: evaluations per second, {threads} thread{'s' * (threads > 1)}, float64"
    table = new_table(title, ("method", f"batch of {batch}", "one at a time", "mul", "add"))
    for index, row in enumerate(rows):
        if index == 0 or row["function"] != rows[index - 1]["function"]:
            table.add_section()
            table.add_row(Text(row["function"], style="bold"))
        batched = f"{row['per_second']:,.0f}" if "per_second" in row else ""
        counts = (str(row["mul"]), str(row["add"])) if "mul" in row and "add" in row else ("", "")
        table.add_row(f"  {row['method']}", batched, f"{row['single_per_second']:,.0f}", *counts)
    Console().print(table)
