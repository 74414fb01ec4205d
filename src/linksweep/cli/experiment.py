"""Experiment files in TOML for `linksweep simulate`: robot, motion, controllers, sampling, disturbances.

robot = "puma560"              # a bundled name, or a file beside this one
duration = 2.0
dt = 1e-3
q0 = [0, 0, 0, 0, 0, 0]        # or the motion's start
motion = "motion.toml"         # beside this file
dissipation = true
saturate = true                # by the description's efforts, or a list

[[controller]]
kind = "computed_torque"
kp = 100
kd = 20

[controller_robot]             # the robot that controllers compute with, if it differs
payload = { mass = 0.0 }

[sampling]
period = 0.004
delay = 0.001

[[push]]
frame = "link6"
wrench = [0, 0, 0, 10, 0, 0]
start = 1.0
end = 1.2

[[surface]]
frame = "link6"
point = [0, 0, -0.3]
friction = 0.4

[vary]                         # for `linksweep ensemble`: what differs from sample to sample
q0 = { normal = 0.05 }         # standard deviation; or uniform: the most that it goes either way
kp = { uniform = 0.2 }         # gains: a share of them
payloads = [0.0, 0.5, 1.0]     # masses (kg) held in `frame`
frame = "tool"
"""

from __future__ import annotations

import contextlib
import functools
import inspect
import operator
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NoReturn, cast

import typer

from linksweep.cli.common import AsJson, command, print_json, tool_frame
from linksweep.errors import ArgumentError, BackendError, LinksweepError, warn_user
from linksweep.support.messages import nearest, shown

if TYPE_CHECKING:
    from concurrent.futures import Executor

    import numpy as np

    from linksweep.motion.trajectories import Motion
    from linksweep.robot.robot import Robot
    from linksweep.simulation import Controller, Push, Rollouts, SampledController, Sampling, Simulation
    from linksweep.simulation.ensembles import Client
    from linksweep.simulation.run import SimulateOptions
    from linksweep.support.files import Table

KEYS = (
    "robot", "base", "actuated", "payload", "gravity", "motion", "q0", "qd0", "duration", "dt", "every", "integrator",
    "dissipation", "stops", "saturate", "controller", "controller_robot", "sampling", "title", "vary",
)  # fmt: skip
PROVIDED = ("controller_robot", "actuated", "path", "wrench")  # arguments of controllers that are no keys of a file
SAMPLING = ("period", "delay", "encoder", "rates", "q_noise", "qd_noise", "tau_noise", "seed", "effort", "effort_rate")
VARY = ("q0", "qd0", "kp", "kd", "payloads", "frame")
PAYLOAD = ("mass", "com", "inertia", "frame")
LARGEST = 1_000_000  # bytes


def is_experiment(name: str | None) -> bool:
    """Whether this names a TOML file whose first level says `robot`."""
    if name is None or Path(name).suffix.lower() != ".toml":
        return False
    try:
        text = Path(name).read_bytes()[:LARGEST].decode("utf-8-sig", "replace")
    except OSError:
        return False
    first = (line.partition("=")[0].strip() for line in text.split("\n[")[0].splitlines())
    return "robot" in first


@dataclass
class Experiment:
    """What a file asks for, ready to run."""

    path: Path
    robot: Robot
    reference: Motion | None
    controller: Controller | None
    sampling: tuple[float, Sampling] | None  # period, and what is between the controller and the robot
    start: tuple[np.ndarray, np.ndarray | None]
    options: Table
    vary: Table

    @property
    def torque(self) -> Controller | SampledController | None:
        """The controller, sampled if the file says so."""
        from linksweep.simulation import SampledController

        return self.controller if self.sampling is None else SampledController(self.controller, *self.sampling)

    def rollouts(self) -> Rollouts:
        """The experiment of an ensemble: see `linksweep.simulation.Rollouts`."""
        from linksweep.simulation import Rollouts

        vary = dict(self.vary)
        further = {"payloads": tuple(vary.pop("payloads", ())), "frame": vary.pop("frame", None)}
        options = cast("SimulateOptions", self.options)  # as the file has them: `simulate` checks them
        with _named(self.path):
            return Rollouts(self.robot, *self.start, self.torque, options, vary, **further)

    def run(self) -> Simulation:
        from linksweep.simulation import simulate

        with _named(self.path):
            return simulate(self.robot, *self.start, self.torque, **self.options)


@contextlib.contextmanager
def _named(path: Path) -> Iterator[None]:
    """Errors begin with the file's name."""
    try:
        yield
    except LinksweepError as error:
        text = str(error)
        raise ArgumentError(text if text.startswith(str(path)) else f"{path}: {text}") from error


def read_experiment(path: Path) -> Experiment:
    """The experiment of a file; every mistake is one sentence with the file's name."""
    try:
        if path.stat().st_size > LARGEST:
            raise ArgumentError(f"{path} is larger than {LARGEST:,} bytes, expected an experiment.")
        given = tomllib.loads(path.read_text(encoding="utf-8-sig"))
        with _named(path):
            return _Reader(path, given).experiment()
    except OSError as error:
        raise ArgumentError(f"{path} cannot be read ({error.strerror}), expected an experiment in TOML.") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError) as error:
        raise ArgumentError(f"{path} is not valid TOML ({error}), expected an experiment.") from error


def _with_current_names(path: Path, given: Table) -> Table:
    """Rename [[law]] to [[controller]], and what was [controller] to [controller_robot], with a warning."""
    renamed = dict(given)
    if isinstance(given.get("controller"), dict) and "controller_robot" not in given:
        renamed["controller_robot"] = renamed.pop("controller")
    if "law" in renamed and "controller" not in renamed:
        renamed["controller"] = renamed.pop("law")
    if renamed.keys() != given.keys():
        names = "[[law]] is now [[controller]], and the table [controller] is now [controller_robot]"
        warn_user(f"{path}: {names}; the former names will be removed in release 0.3.", DeprecationWarning)
    return renamed


class _Reader:
    def __init__(self, path: Path, given: Table):
        from linksweep.simulation.contacts import DISTURBANCES

        self.path, self.given = path, _with_current_names(path, given)
        self.known("", self.given, (*KEYS, *DISTURBANCES))

    def refuse(self, what: str) -> NoReturn:
        raise ArgumentError(f"{self.path}: {what}.")

    def known(self, where: str, table: Table, keys: tuple[str, ...]) -> Table:
        if not isinstance(table, dict):
            self.refuse(f"{where} is {shown(table)}, expected a table: write it as [{where}]")
        for key in table:
            if key not in keys:
                of = f" of [{where}]" if where else ""
                self.refuse(
                    f"the key {shown(key)}{of} is not known{nearest(key, keys)}, expected some of {', '.join(keys)}"
                )
        return table

    def tables(self, name: str) -> list[Table]:
        found = self.given.get(name, [])
        if not isinstance(found, list) or not all(isinstance(table, dict) for table in found):
            self.refuse(f"{name} is {shown(found)}, expected tables: write each as [[{name}]]")
        return found

    def experiment(self) -> Experiment:
        from linksweep.files.motion_files import read_motion
        from linksweep.simulation import JointStops, Push, Sampling, saturated
        from linksweep.simulation.contacts import DISTURBANCES
        from linksweep.simulation.ensembles import one_start

        given = self.given
        robot = self.payload(self.load(given.get("robot")), given.get("payload"))
        motion = given.get("motion")
        if motion is not None and (not isinstance(motion, str) or "\0" in motion):
            self.refuse(f"motion is {shown(motion)}, expected the name of a motion file beside this one")
        reference = None if motion is None else read_motion(self.path.parent / motion, robot.model)
        q0 = given.get("q0")
        if q0 is None:
            q0 = robot.neutral() if reference is None else reference(max(reference.start, 0.0)).q
        q0, qd0 = one_start(robot, q0, given.get("qd0"))
        controller_robot = None
        if "controller_robot" in given:
            table = self.known("controller_robot", given["controller_robot"], ("robot", "payload"))
            controller_robot = self.load(table["robot"] if "robot" in table else given.get("robot"))
            controller_robot = self.payload(controller_robot, table.get("payload"))
        world = [
            self.disturbance(name, kind, table) for name, kind in DISTURBANCES.items() for table in self.tables(name)
        ]
        pushes = [force for force in world if isinstance(force, Push)]
        terms = [
            self.controller(table, robot, controller_robot, reference, q0, pushes)
            for table in self.tables("controller")
        ]
        controller = functools.reduce(operator.add, terms) if terms else None
        if controller is not None and given.get("saturate") is not None and given["saturate"] is not False:
            controller = saturated(controller, None if given["saturate"] is True else given["saturate"])
        options = {k: given[k] for k in ("duration", "dt", "every", "integrator", "dissipation") if k in given}
        if "duration" not in options and reference is not None:
            options["duration"] = float(reference.end)
        sampling = None
        stops = given.get("stops")
        if stops is not None:
            world.append(JointStops() if stops == "inelastic" else JointStops.springs(stops))
        if "sampling" in given:
            table = dict(self.known("sampling", given["sampling"], SAMPLING))
            if "period" not in table:
                self.refuse("[sampling] has no period, expected seconds between two control updates")
            sampling = (table.pop("period"), Sampling(**table))
        if world:
            options["disturbance"] = functools.reduce(operator.add, world)
        return Experiment(self.path, robot, reference, controller, sampling, (q0, qd0), options, self.vary())

    def vary(self) -> Table:
        """q0 = { normal = 0.1 } as q0: ("normal", 0.1)."""
        found = dict(self.known("vary", self.given.get("vary", {}), VARY))
        for name, value in found.items():
            if name in ("payloads", "frame"):
                continue
            if not isinstance(value, dict) or len(value) != 1 or next(iter(value)) not in ("normal", "uniform"):
                self.refuse(f"[vary] {name} is {shown(value)}, expected {{ normal = size }} or {{ uniform = size }}")
            found[name] = next(iter(value.items()))
        if not isinstance(found.get("payloads", []), list):
            self.refuse(f"[vary] payloads is {shown(found['payloads'])}, expected a list of masses (kg)")
        return found

    def disturbance(self, name: str, kind: type[Controller], table: Table) -> Controller:
        """A push or a contact model; its keys are the arguments of its class."""
        parameters = inspect.signature(kind).parameters
        self.known(name, table, tuple(parameters))
        self.check_required(f"[[{name}]]", parameters, table)
        return kind(**table)

    def check_required(self, where: str, parameters: Mapping[str, inspect.Parameter], values: Table) -> None:
        for key, parameter in parameters.items():
            if parameter.default is parameter.empty and key not in values:
                self.refuse(f"{where} has no {key}, expected one: add it")

    def load(self, name: object) -> Robot:
        from linksweep import robots
        from linksweep.robot.loading import load

        if not isinstance(name, str):
            got = "the key robot is missing" if name is None else f"robot is {shown(name)}"
            self.refuse(f"{got}, expected a bundled name or a file beside this one")
        beside = self.path.parent / name
        found = load(
            name if name in robots.names() or not beside.exists() else str(beside),
            base=self.given.get("base", "fixed"),
            actuated=self.given.get("actuated"),
        )
        return found.with_gravity(self.given["gravity"]) if "gravity" in self.given else found

    def payload(self, robot: Robot, table: Table | None) -> Robot:
        if table is None:
            return robot
        self.known("payload", table, PAYLOAD)
        if not table.get("mass"):
            return robot
        frame = table["frame"] if "frame" in table else tool_frame(robot, "payload", 'frame = "{}"')
        return robot.with_payload(frame, table["mass"], table.get("com", (0, 0, 0)), table.get("inertia"))

    def controller(
        self, table: Table, robot: Robot, controller_robot: Robot | None, reference: Motion | None, start: np.ndarray,
        pushes: list[Push],
    ) -> Controller:  # fmt: skip
        """A controller. Its keys are the arguments of its class, completed by the motion and the pushes of the file."""
        from linksweep.simulation.controllers import CONTROLLERS

        kind = table.get("kind")
        if not isinstance(kind, str) or kind not in CONTROLLERS:
            known = ", ".join(CONTROLLERS)
            self.refuse(f"a controller has kind {shown(kind)}{nearest(kind, CONTROLLERS)}, expected one of {known}")
        parameters = inspect.signature(CONTROLLERS[kind]).parameters
        self.known("controller", table, ("kind", *(name for name in parameters if name not in PROVIDED)))
        values = {key: value for key, value in table.items() if key != "kind"}
        for key, value in values.items():
            if isinstance(parameters[key].default, bool) and not isinstance(value, bool):
                self.refuse(f"the controller {kind} has {key} {shown(value)}, expected true or false, without quotes")
        if "path" in parameters:
            if reference is None:
                self.refuse(f'the controller {kind} needs a motion, got none: add motion = "file.toml"')
            values["path"] = reference
        if "reference" in parameters:
            needed = parameters["reference"].default is inspect.Parameter.empty
            values.setdefault("reference", start if reference is None and needed else reference)
        if "target" in parameters and "frame" in values:
            values["target"] = self.target(kind, controller_robot or robot, values, start)
        if "wrench" in parameters and "frame" in values:  # the sensor measures the file's push on the frame
            felt = [push for push in pushes if push.frame == values["frame"]]
            if len(felt) != 1:
                frame = shown(values["frame"])
                self.refuse(f"the controller {kind} has {len(felt)} pushes on {frame}, expected one: add a [[push]]")
            values["wrench"] = felt[0]
        if "controller_robot" in parameters:
            values["controller_robot"] = controller_robot
        self.check_required(f"the controller {kind}", parameters, values)
        return CONTROLLERS[kind](**values)

    def target(self, kind: str, robot: Robot, values: Table, start: np.ndarray) -> np.ndarray:
        """The pose of a frame: the file's, the one at the start, or that moved to the file's position."""
        from linksweep.simulation.checks import real_array

        if values.get("target") is None:
            return robot.pose(start, values["frame"])
        pose = real_array(f"{kind}: target", values["target"])
        if pose.shape == (3,):
            pose, position = robot.pose(start, values["frame"]).copy(), pose
            pose[:3, 3] = position
        return pose


@command(
    "Simulate",
    "ensemble experiment.toml -o results --samples 1000",
    "ensemble experiment.toml -o results --samples 100000 --workers 4",
)
def ensemble(
    experiment: Annotated[
        Path, typer.Argument(metavar="EXPERIMENT", help="Experiment (.toml), as for `simulate`, with \\[vary].")
    ],
    output: Annotated[Path, typer.Option("--output", "-o", metavar="FOLDER", help="Folder for the results.")],
    samples: Annotated[int, typer.Option(metavar="N", min=1, help="Number of rollouts.")] = 1000,
    seed: Annotated[int, typer.Option(metavar="N", min=0, help="Seed of the random variations.")] = 0,
    chunk: Annotated[int, typer.Option(metavar="N", min=1, help="Rollouts computed together, in one file.")] = 10_000,
    workers: Annotated[int, typer.Option(metavar="N", min=0, help="Worker processes; 0: this process.")] = 0,
    scheduler: Annotated[
        str | None, typer.Option(metavar="ADDRESS", help="Dask scheduler, such as tcp://host:8786.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Run Monte-Carlo rollouts of an experiment with varied starts, gains and payloads.

    Results are Parquet files, one for each chunk. Interrupted runs resume where they stopped.
    """
    from linksweep.simulation import ensemble as run

    if workers and scheduler:
        raise ArgumentError("--workers and --scheduler exclude each other: leave one out.")
    rollouts = read_experiment(experiment).rollouts()
    with contextlib.ExitStack() as stack:
        client = stack.enter_context(_client(workers, scheduler)) if workers or scheduler else None
        result = run(rollouts, samples, output, client=client, seed=seed, chunk=chunk)
    if as_json:
        facts = {"folder": str(result.folder), "samples": result.samples, "chunks": len(result.files)}
        print_json({**facts, "computed": result.computed})
        return
    before = len(result.files) - result.computed
    reused = f", {before} of them from an earlier run" if before else ""
    print(f"{result.folder}: {result.samples} samples in {len(result.files)} chunks{reused}")


def _client(workers: int, scheduler: str | None) -> Executor | Client:
    if scheduler is None:
        import multiprocessing
        from concurrent.futures import ProcessPoolExecutor

        return ProcessPoolExecutor(workers, multiprocessing.get_context("spawn"))
    try:
        from distributed import Client as Connected  # pyright: ignore[reportMissingImports]
    except ImportError:
        raise BackendError(
            "A Dask cluster needs distributed, which is not installed: run pip install 'linksweep[dask]'."
        ) from None
    try:
        return Connected(scheduler, timeout=10)
    except (OSError, ValueError, TimeoutError) as reason:
        raise ArgumentError(
            f"The scheduler {scheduler} does not answer ({reason}), expected the address of a running Dask scheduler."
        ) from reason
