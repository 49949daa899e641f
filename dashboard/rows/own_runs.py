"""Runs of one's own under the filters of published ones: what each has under a filter's name."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from calibrate.published.run_row import PublishedRun
from calibrate.run_record import Run
from calibrate.validation.which_runs import FILTERS, Where

PUBLISHED_AS = {
    "layer-skip": "selfspec",
    "prompt-lookup": "ngram",
    "canvas": "diffusion",
    "awaited": "plain",
}
"""What the strategies of `tokroof run` are called in the published table, where it is not alike."""


def passes(run: PublishedRun | Run, where: Where) -> bool:
    """Whether a run has all that is asked for; a record is asked as its published row would be."""
    return all(_value(run, name) == value for name, value in where)


def _value(run: PublishedRun | Run, name: str) -> str:
    return FILTERS[name](run) if isinstance(run, PublishedRun) else OF_A_RECORD[name](run)


def _strategy(run: Run) -> str:
    return PUBLISHED_AS.get(run.strategy, run.strategy)


def _chip(run: Run) -> str:
    """The chip with its cores, as published ones are called.

    A record of an Apple GPU whose cores were not told has the chip's name alone.
    """
    environment = run.environment
    name = environment.chip.removeprefix("Apple ")
    return f"{name} {environment.gpu_cores}-core" if environment.gpu_cores else name


def _runtime(run: Run) -> str:
    """The series of MLX, whose kernels hardly differ, and the back end where it is not Metal."""
    environment = run.environment
    series = "mlx-" + ".".join(environment.mlx.split(".")[:2])
    return series if environment.device == "metal" else f"{series}-{environment.device}"


OF_A_RECORD: Mapping[str, Callable[[Run], str]] = {
    "strategy": _strategy,
    "chip": _chip,
    "runtime": _runtime,
    "model": lambda run: run.target,
    "trust": lambda run: "high",
}
