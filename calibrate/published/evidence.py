"""The published evidence that is shipped: the one module of calibrate that opens packaged data."""

from __future__ import annotations

import csv
from collections.abc import Mapping
from functools import cache
from importlib.resources import as_file, files
from importlib.resources.abc import Traversable
from io import StringIO

from calibrate.published.read_runs import read_runs
from calibrate.published.run_row import PublishedRun

FOLDER = "published"


@cache
def shipped_runs() -> tuple[PublishedRun, ...]:
    """Every shipped run, in the order of the file."""
    with as_file(_file("runs.csv")) as path:
        return read_runs(path, name="shipped runs")


@cache
def row_costs() -> tuple[Mapping[str, str], ...]:
    """The shipped table of times by rows: kernels, passes and rounds, as text by column."""
    return _table("row_costs.csv")


@cache
def chip_facts() -> tuple[Mapping[str, str], ...]:
    """The shipped facts of chips and their numbers of cores, a source beside each, as text."""
    return _table("chips.csv")


@cache
def name_map() -> tuple[Mapping[str, str], ...]:
    """Which shipped network a name in the runs stands for, by role and target."""
    return _table("names.csv")


@cache
def format_map() -> tuple[Mapping[str, str], ...]:
    """Which weight formats a quantization in the runs stands for, by runtime."""
    return _table("formats.csv")


@cache
def engine_facts() -> tuple[Mapping[str, str], ...]:
    """What engines do with drafts that is not as the strategies assume, a source beside each."""
    return _table("engines.csv")


def _table(name: str) -> tuple[Mapping[str, str], ...]:
    return tuple(csv.DictReader(StringIO(_file(name).read_text(encoding="utf-8"))))


def _file(name: str) -> Traversable:
    return files("calibrate") / "data" / FOLDER / name
