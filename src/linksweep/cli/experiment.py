"""An experiment as a file: robot, motion, laws, sampling, disturbances in TOML; what `linksweep simulate` runs.

robot = "puma560"              # a bundled name, or a file beside this one
duration = 2.0
dt = 1e-3
q0 = [0, 0, 0, 0, 0, 0]        # or the motion's start
motion = "motion.toml"         # beside this file
dissipation = true
saturate = true                # by the description's efforts, or a list

[[law]]
kind = "computed_torque"
kp = 100
kd = 20

[controller]                   # what the laws know, where that is not the robot
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
import operator
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn, cast

from linksweep.cli.common import tool_of
from linksweep.errors import ArgumentError, LinksweepError
from linksweep.support.messages import nearest, shown

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import ArrayLike

    from linksweep.motion.base import Motion
    from linksweep.robot.robot import Robot
    from linksweep.simulation import Push, Rollouts, Simulation
    from linksweep.simulation.laws import Law
    from linksweep.simulation.options import SimulateOptions
    from linksweep.support.files import Table

KEYS = (
    "robot", "base", "actuated", "payload", "gravity", "motion", "q0", "qd0", "duration", "dt", "every", "integrator",
    "dissipation", "stops", "saturate", "law", "controller", "sampling", "push", "surface", "title", "vary",
)  # fmt: skip
OF_FRAME = ("frame", "target", "stiffness", "damping", "posture", "kp_posture", "kd_posture", "gravity")
LAWS = {
    "pd": ("reference", "kp", "kd", "gravity"),
    "computed_torque": ("reference", "kp", "kd"),
    "gravity": (),
    "friction": ("friction", "damping", "width"),
    "feed_forward": (),
    "constant": ("tau",),
    "operational_space": (*OF_FRAME, "decoupled"),
    "admittance": (*OF_FRAME, "mass"),
}
SWITCHES = ("gravity", "decoupled")
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
    law: Law | None
    start: tuple[np.ndarray, np.ndarray | None]
    options: Table
    vary: Table

    def rollouts(self) -> Rollouts:
        """The experiment of an ensemble: see `linksweep.simulation.Rollouts`."""
        from linksweep.simulation import Rollouts

        vary = dict(self.vary)
        further = {"payloads": tuple(vary.pop("payloads", ())), "frame": vary.pop("frame", None)}
        options = cast("SimulateOptions", self.options)  # as the file has them: `simulate` checks them
        with _named(self.path):
            return Rollouts(self.robot, *self.start, self.law, options, vary, **further)

    def run(self) -> Simulation:
        from linksweep.simulation import simulate

        with _named(self.path):
            return simulate(self.robot, *self.start, self.law, **self.options)


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
        raise ArgumentError(f"{path} is no TOML ({error}), expected an experiment: correct that line.") from error


class _Reader:
    def __init__(self, path: Path, given: Table):
        self.path, self.given = path, given
        self.known("", given, KEYS)

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
        from linksweep.simulation import Push, Sampling, Surface, saturated
        from linksweep.simulation.rollouts import one_start
        from linksweep.tables.motion_files import read_motion

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
        own = None
        if "controller" in given:
            table = self.known("controller", given["controller"], ("robot", "payload"))
            own = self.load(table["robot"]) if "robot" in table else self.load(given.get("robot"))
            own = self.payload(own, table.get("payload"))
        pushes = [Push(**self.named("push", t, ("frame", "wrench"), ("start", "end"))) for t in self.tables("push")]
        laws = [self.law(table, robot, own, reference, q0, pushes) for table in self.tables("law")]
        law = functools.reduce(operator.add, laws) if laws else None
        if law is not None and given.get("saturate") is not None and given["saturate"] is not False:
            law = saturated(law, None if given["saturate"] is True else given["saturate"])
        options = {k: given[k] for k in ("duration", "dt", "every", "integrator", "dissipation") if k in given}
        options["stops"] = tuple(given["stops"]) if isinstance(given.get("stops"), list) else given.get("stops")
        if "duration" not in options and reference is not None:
            options["duration"] = float(reference.end)
        if "sampling" in given:
            table = dict(self.known("sampling", given["sampling"], SAMPLING))
            if "period" not in table:
                self.refuse("[sampling] has no period, expected seconds between two control instants")
            options |= {"control_period": table.pop("period"), "sampling": Sampling(**table)}
        keys = ("point", "normal", "stiffness", "damping", "friction", "width")
        world: list[Law] = [*pushes]
        world += [Surface(**self.named("surface", t, ("frame",), keys)) for t in self.tables("surface")]
        if world:
            options["disturbance"] = functools.reduce(operator.add, world)
        return Experiment(self.path, robot, reference, law, (q0, qd0), options, self.vary())

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

    def named(self, where: str, table: Table, needed: tuple[str, ...], further: tuple[str, ...]) -> Table:
        self.known(where, table, (*needed, *further))
        for key in needed:
            if key not in table:
                self.refuse(f"[[{where}]] has no {key}, expected one: add it")
        return table

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
        frame = table["frame"] if "frame" in table else tool_of(robot, "payload", 'frame = "{}"')
        return robot.with_payload(frame, table["mass"], table.get("com", (0, 0, 0)), table.get("inertia"))

    def law(
        self, table: Table, robot: Robot, own: Robot | None, reference: Motion | None, start: np.ndarray,
        pushes: list[Push],
    ) -> Law:  # fmt: skip
        from linksweep import simulation as sim
        from linksweep.simulation.checks import real_array

        kind = table.get("kind")
        if not isinstance(kind, str) or kind not in LAWS:
            self.refuse(f"a law has kind {shown(kind)}{nearest(kind, LAWS)}, expected one of {', '.join(LAWS)}")
        self.known("law", table, ("kind", *LAWS[kind]))
        values = {key: value for key, value in table.items() if key != "kind"}
        for key in SWITCHES:
            if not isinstance(values.get(key, True), bool):
                self.refuse(f"the law {kind} has {key} {shown(values[key])}, expected true or false, without quotes")
        if kind in ("pd", "computed_torque"):
            for key in ("kp", "kd"):
                if key not in values:
                    self.refuse(f"the law {kind} has no {key}, expected its gains: add it")
            wanted = values.pop("reference", start if reference is None else reference)
            return (sim.PD if kind == "pd" else sim.ComputedTorque)(wanted, **values, controller_robot=own)
        if kind == "gravity":
            return sim.GravityCompensation(controller_robot=own)
        if kind == "friction":
            return sim.FrictionCompensation(reference, **values, controller_robot=own)
        if kind == "constant":
            return sim.Constant(cast("ArrayLike", values.get("tau")))
        if kind == "feed_forward":
            if reference is None:
                self.refuse('the law feed_forward needs a motion, got none: add motion = "file.toml"')
            return sim.FeedForward(reference, controller_robot=own)
        for key in ("frame", "stiffness", "damping", *(("mass",) if kind == "admittance" else ())):
            if key not in values:
                self.refuse(f"the law {kind} has no {key}, expected one: add it")
        frame = values.pop("frame")
        target = values.pop("target", None)
        known = robot if own is None else own
        pose = known.pose(start, frame) if target is None else real_array(f"{kind}: target", target)
        if target is not None and pose.shape == (3,):  # a place: the frame keeps its direction
            pose, place = known.pose(start, frame).copy(), pose
            pose[:3, 3] = place
        if kind == "admittance":  # whose sensor reads the file's pushes on the frame
            felt = [push for push in pushes if push.frame == frame]
            if len(felt) != 1:
                self.refuse(f"the law admittance has {len(felt)} pushes on {frame!r}, expected one: add a [[push]]")
            gains = (values.pop("mass"), values.pop("stiffness"), values.pop("damping"))
            return sim.Admittance(frame, pose, *gains, felt[0], **values, controller_robot=own)
        return sim.OperationalSpace(
            frame, pose, values.pop("stiffness"), values.pop("damping"), **values, controller_robot=own
        )
