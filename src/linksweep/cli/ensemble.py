"""`linksweep ensemble`: an experiment many times over, here or on a cluster."""

from __future__ import annotations

import contextlib
import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from linksweep.cli.common import AsJson
from linksweep.cli.experiment import read_experiment
from linksweep.errors import ArgumentError, BackendError

if TYPE_CHECKING:
    from concurrent.futures import Executor

    from linksweep.simulation.ensembles import Client


def ensemble(
    experiment: Annotated[
        Path, typer.Argument(metavar="EXPERIMENT", help="A .toml, as `simulate` runs, with \\[vary].")
    ],
    output: Annotated[Path, typer.Option("--output", "-o", metavar="FOLDER", help="For the results; goes on there.")],
    samples: Annotated[int, typer.Option(min=1, help="How many.")] = 1000,
    seed: Annotated[int, typer.Option(min=0, help="Of what is drawn.")] = 0,
    chunk: Annotated[int, typer.Option(min=1, help="Samples that are computed together, and in one file.")] = 10_000,
    workers: Annotated[int, typer.Option(min=0, help="Processes here; 0: this one.")] = 0,
    scheduler: Annotated[
        str | None, typer.Option(metavar="ADDRESS", help="Of a Dask cluster, such as tcp://host:8786.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Monte-Carlo: starts, gains and payloads of an experiment vary; results as Parquet files, one for each chunk.

    Interrupted runs resume where they stopped.
    """
    from linksweep.simulation import ensemble as run

    if workers and scheduler:
        raise ArgumentError("--workers and --scheduler are both given, expected one: leave one out.")
    rollouts = read_experiment(experiment).rollouts()
    with contextlib.ExitStack() as stack:
        client = stack.enter_context(_client(workers, scheduler)) if workers or scheduler else None
        found = run(rollouts, samples, output, client=client, seed=seed, chunk=chunk)
    facts = {"folder": str(found.folder), "samples": found.samples, "chunks": len(found.files)}
    if as_json:
        print(json.dumps({**facts, "computed": found.computed}, indent=2))
        return
    before = len(found.files) - found.computed
    there = f", {before} of them were there" if before else ""
    print(f"{found.folder}: {found.samples} samples in {len(found.files)} chunks{there}")


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
            f"The scheduler {scheduler} does not answer ({reason}), expected a Dask scheduler: start it, or check the "
            "address."
        ) from reason
