"""Report of a fit in Markdown, with tables, plots and the robot as files."""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from linksweep.errors import ArgumentError, LinksweepError
from linksweep.support.files import write_atomically

if TYPE_CHECKING:
    from linksweep.identification.fit import Fit, Validation

MAX_ROWS = 10_000  # of a plot of torques
FIGURES = {
    "torques": "Measured and predicted torques, and their difference where rows were used.",
    "spectra": "Amplitude densities of the measured torques and of the residual; dotted: the cut-off.",
    "parameters": "Parameters, scaled to torque at a reference motion (2 rad/s, 6 rad/s² in every joint), with 95 % "
    "confidence intervals.",
}


def report(fit: Fit, out: str | Path | None, validated: Mapping[str, Validation] | None = None) -> str:
    """Return the report; with a folder `out`, write report.md, parameters.csv, robot.urdf and plots into it.

    validated: results of `fit.validate` by the names of their logs.
    """
    lines = [*_head(fit), *_remarks(fit), *_torques(fit), *_validated(validated), *_parameters(fit), *_bodies(fit)]
    if out is None:
        return "\n".join(lines)
    folder = Path(out)
    if folder.exists() and not folder.is_dir():
        raise ArgumentError(f"The output {folder} is a file, expected a folder.")
    lines += [
        "## Files",
        "",
        "[parameters.csv](parameters.csv): every parameter with its standard deviation and confidence interval.",
        "",
    ]
    _write_parameters(fit, folder / "parameters.csv")
    lines += _write_robot(fit, folder)
    if find_spec("matplotlib") is not None:
        for name, caption in FIGURES.items():
            _draw(fit, name, folder / f"{name}.png")
            lines += [f"![{caption}]({name}.png)", "", caption, ""]
    else:
        lines += ["No plots: Matplotlib is not installed (pip install 'linksweep[plot]').", ""]
    text = "\n".join(lines)
    _write(folder / "report.md", text)
    return text


def _write_robot(fit: Fit, folder: Path) -> list[str]:
    """Write the robot as URDF (an edited copy of its file, if it was loaded from URDF), and motor inertias as SRDF."""
    full = getattr(fit.robot, "robot", fit.robot)
    source, lines = full.model.source, []
    try:
        if source.lower().endswith(".urdf") and Path(source).is_file():
            from linksweep.model.formats.urdf_edit import edited_urdf

            try:
                text = edited_urdf(full.model, source, folder)
                lines = [f"[robot.urdf](robot.urdf): {source} with these inertias, friction and motor inertias.", ""]
            except LinksweepError as reason:
                lines = [f"{source} is not kept in robot.urdf: {reason}", ""]
        if not lines or "not kept" in lines[0]:
            text = full.to_urdf()
            lines += ["[robot.urdf](robot.urdf): the robot with these parameters.", ""]
        _write(folder / "robot.urdf", text)
    except LinksweepError as reason:  # a joint type that URDF lacks
        return [f"No URDF of the robot: {reason}", ""]
    if full.armature.any():
        from linksweep.model.formats.urdf import to_srdf

        _write(folder / "robot.srdf", to_srdf(full.model))
        lines += [
            "[robot.srdf](robot.srdf): motor inertias, which URDF cannot store, for Pinocchio "
            "(`pinocchio.loadRotorParameters`).",
            "",
        ]
    return lines


def _write(path: Path, text: str) -> None:
    def write(to: Path) -> None:
        to.write_text(text, encoding="utf-8")

    write_atomically(path, write)


def _table(header: list[str], rows: Sequence[Sequence[object]]) -> list[str]:
    table = [header, [":--", *["--:"] * (len(header) - 1)], *rows]
    return ["| " + " | ".join(str(entry).replace("|", "\\|") for entry in line) + " |" for line in table] + [""]


def _head(fit: Fit) -> list[str]:
    s, samples = fit.settings, fit.samples
    filtering = f"low-pass filtered at {fit.cutoff:.4g} Hz" if np.isfinite(fit.cutoff) else "not filtered"
    chosen = " (chosen by cross-validation)" if s["cutoff_chosen"] else ""
    segments = len(samples.bounds)
    return [
        f"# {fit.columns.full.name}: parameters from {len(samples):,} rows of a log",
        "",
        f"Log: {len(samples) * s['dt']:.4g} s at {1 / s['dt']:.4g} Hz in {segments} segment{'s' * (segments > 1)}. "
        f"Positions are {filtering}{chosen}. {s['every']} row{'s' * (s['every'] > 1)} per equation, "
        f"{s['sums']:,} equations in all. Method: {fit.method}. The log determines {int(fit.determined.sum())} of "
        f"{len(fit.names)} base parameters; condition number {fit.condition:.4g}.",
        "",
    ]


def _remarks(fit: Fit) -> list[str]:
    if not fit.remarks:
        return []
    return ["## Remarks", "", *(f"- **{name}**: {text}" for name, text in fit.remarks.items()), ""]


def _torques(fit: Fit) -> list[str]:
    samples = fit.samples
    rows = []
    unseen = [float(np.mean(x[np.isfinite(x)])) if np.isfinite(x).any() else np.nan for x in fit.validation.T]
    for k, name in enumerate(fit.columns.robot.joint_names):
        used = samples.weight[:, k] > 0
        rms = float(np.sqrt(np.mean(np.square(samples.tau[used, k])))) if used.any() else np.nan
        rows.append([name, f"{rms:.4g}", f"{fit.rms[k]:.4g}", percent(fit.rms[k], rms), f"{unseen[k]:.4g}",
                     f"{100 * used.mean():.3g} %"])  # fmt: skip
    part = "trajectory" if max(samples.trajectory) else "fifth of the log"
    return [
        "## Torques",
        "",
        f"RMS values in N m (N). Cross-validated: each {part} predicted by a fit without it.",
        "",
        *_table(["joint", "measured", "residual", "relative", "cross-validated", "rows used"], rows),
    ]


def _validated(validated: Mapping[str, Validation] | None) -> list[str]:
    lines = []
    for name, result in (validated or {}).items():
        rows = [
            [joint, f"{result.torque[k]:.4g}", f"{result.rms[k]:.4g}", percent(result.rms[k], result.torque[k])]
            for k, joint in enumerate(result.joints)
        ]
        lines += [
            f"## Validation: {name}", "", "RMS values in N m (N) of torques that were not fitted.", "",
            *_table(["joint", "measured", "residual", "relative"], rows),
        ]  # fmt: skip
    return lines


def percent(part: float, whole: float) -> str:
    """Return a share as "12 %", or as ">100 %"."""
    if not (np.isfinite(part) and np.isfinite(whole)) or whole == 0.0:
        return ""
    share = 100.0 * abs(part / whole)
    return ">100 %" if share > 100.0 else f"{share:.3g} %"


def _parameters(fit: Fit) -> list[str]:
    essential = set(fit.essential())
    prior = fit.grouping.matrix @ fit.columns.prior
    rows = []
    for k, name in enumerate(fit.names):
        known = bool(fit.determined[k])
        deviation = fit.deviations[k]
        relative = percent(deviation, fit.values[k]) if known else ""
        rows.append([
            name + ("" if not known else " *" * (name in essential)), f"{fit.values[k]:.5g}" if known else "unknown",
            f"{deviation:.2g}" if known else "", relative, f"{prior[k]:.5g}", fit.grouping.text(name),
        ])  # fmt: skip
    return [
        "## Base parameters",
        "",
        "SI units. Standard deviations account for autocorrelated residuals. * essential: torques are predicted worse "
        "without it. Unknown: not determined by the log; the value is that of the model.",
        "",
        *_table(["parameter", "value", "st. dev.", "relative", "model", "groups"], rows),
    ]


def _bodies(fit: Fit) -> list[str]:
    physical = fit.physical_parameters
    lines = [
        "## The robot",
        "",
        "Physically consistent parameters nearest to those of the model. Parameters that torques do not determine keep "
        "the values of the model. "
        f"RMS residuals: {', '.join(f'{x:.4g}' for x in fit.robot_rms)} N m.",
        "",
    ]
    robot = getattr(fit.robot, "robot", fit.robot)
    rows = []
    links = {robot.model.links[i].name: robot.model.links[i].inertial for i in robot.model.document_order}
    for owner, smallest in physical.smallest.items():
        body = links.get(owner)
        if body is not None:
            com = " ".join(f"{x:.4g}" for x in body.com)
            rows.append([owner, f"{body.mass:.4g}", com, f"{smallest:.2g}"])
    if rows:
        lines += _table(["link", "mass", "center of mass", "smallest eigenvalue of the pseudo-inertia"], rows)
    joints = [
        [name, *(f"{x[k]:.4g}" for x in (robot.armature, robot.damping, robot.friction, robot.torque_offset))]
        for k, name in enumerate(robot.joint_names)
    ]
    lines += _table(["joint", "armature", "damping", "friction", "torque offset"], joints)
    if physical.invented:
        lines += [
            f"The model's inertia of {', '.join(physical.invented)} is missing or not physically consistent. The fit "
            "started from a small ball, or from a consistent inertia nearby.", "",
        ]  # fmt: skip
    if physical.left_out:
        lines += [f"A Robot cannot store {', '.join(physical.left_out)}; `fit.predict` uses them.", ""]
    return lines


def _write_parameters(fit: Fit, path: Path) -> None:
    low, high = fit.interval().T

    def write(to: Path) -> None:
        with to.open("w", newline="", encoding="utf-8") as file:
            writer = csv.writer(file, lineterminator="\n")
            writer.writerow(["parameter", "value", "deviation", "low_95", "high_95", "determined", "groups"])
            for k, name in enumerate(fit.names):
                columns = (fit.values[k], fit.deviations[k], low[k], high[k])
                writer.writerow(
                    [name, *(repr(float(x)) for x in columns), bool(fit.determined[k]), fit.grouping.text(name)]
                )

    write_atomically(path, write)


def _draw(fit: Fit, name: str, path: Path) -> None:
    from linksweep import plots

    robot, samples = fit.columns.robot, fit.samples
    if name == "torques":
        t, measured, predicted = _plot_rows(fit)
        part = "" if len(samples) <= MAX_ROWS else f", first {MAX_ROWS:,} of {len(samples):,} rows"
        figure = plots.fitted_torques(robot, t, measured, predicted, f"{robot.name}: torques{part}")
    elif name == "spectra":
        frequencies, densities = _spectra(fit)
        cutoff = fit.cutoff if np.isfinite(fit.cutoff) else None
        figure = plots.spectra(robot, frequencies, densities, title=f"{robot.name}: spectra", cutoff=cutoff)
    else:
        sizes = fit.grouping.sizes
        prior = (fit.grouping.matrix @ fit.columns.prior) * sizes
        half = 0.5 * np.diff(fit.interval(), axis=1)[:, 0] * sizes
        figure = plots.intervals(
            fit.names, fit.values * sizes, half, prior, title=f"{robot.name}: base parameters",
            x_label="torque at a reference motion (N m)",
        )  # fmt: skip
    plots.save(figure, path)


def _plot_rows(fit: Fit) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return increasing times and the torques of the first rows, with NaN between segments."""
    samples = fit.samples
    times, measured, predicted, start = [], [], [], 0.0
    gap = np.full((1, samples.tau.shape[1]), np.nan)
    for a, b in samples.bounds:
        b = min(b, MAX_ROWS)
        if a >= b:
            continue
        t = samples.t[a:b]
        t = t + max(0.0, start - t[0])  # the next trajectory may start at t = 0 again
        start = t[-1] + samples.dt
        times += [t, [start]]
        measured += [samples.tau[a:b], gap]
        predicted += [np.where(samples.weight[a:b] > 0, fit.predicted[a:b], np.nan), gap]
    return np.concatenate(times)[:-1], np.concatenate(measured)[:-1], np.concatenate(predicted)[:-1]


def _spectra(fit: Fit) -> tuple[np.ndarray, dict[str, np.ndarray]]:
    """Return frequencies and amplitude densities of the longest segment, by Welch's method."""
    from scipy.signal import welch

    a, b = max(fit.samples.bounds, key=lambda bounds: bounds[1] - bounds[0])
    b = min(b, a + 200_000)
    size = min(b - a, 4096, max(64, (b - a) // 4))
    residual = np.where(fit.samples.weight[a:b] > 0, fit.samples.tau[a:b] - fit.predicted[a:b], 0.0)
    curves = {}
    for name, values in (("measured", fit.samples.tau[a:b]), ("residual", residual)):
        frequencies, power = welch(values, 1.0 / fit.samples.dt, nperseg=size, axis=0)
        curves[name] = np.sqrt(power[1:])
    return frequencies[1:], curves
