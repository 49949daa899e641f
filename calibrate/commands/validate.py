"""`tokroof validate`: predictions beside measured runs, with errors by group."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from calibrate.comparison import Comparison, Group, compare_runs, summarise
from calibrate.run_record import Run, read_runs
from calibrate.run_strategy import PREDICTED
from model.commands import options as shared
from model.commands.table import table
from model.errors import InputError
from model.machine.profile import Header
from model.machine.profile_store import choose_profile


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of `validate`."""
    parser.add_argument("runs", metavar="RUNS", help="a file of runs, as `tokroof run` writes it")
    shared.add_machine(parser)


def execute(options: argparse.Namespace) -> int:
    """Compare and print."""
    choice = choose_profile(options.machine)
    runs = read_runs(Path(options.runs))
    comparisons = compare_runs(runs, choice.profile)
    if not comparisons:
        strategies = " or ".join(PREDICTED)
        raise InputError(options.runs, f"holds no {strategies} run", "record some by `tokroof run`")
    if options.json:
        print(json.dumps(as_json(comparisons), indent=2))
        return 0
    for note in (choice.note, *strangers(runs, choice.profile.header)):
        if note:
            print(note, file=sys.stderr)
    print(comparisons_text(comparisons))
    print()
    print(groups_text(summarise(comparisons)))
    return 0


def strangers(runs: Sequence[Run], header: Header) -> list[str]:
    """A line for each machine and runtime of the runs that is not the profile's."""
    here = (header.chip, header.runtime)
    seen = dict.fromkeys((run.environment.chip, run.environment.runtime) for run in runs)
    return [
        f"note: runs of {chip} ({runtime}) are compared with {header.chip} ({header.runtime})"
        for chip, runtime in seen
        if (chip, runtime) != here
    ]


def as_json(comparisons: Sequence[Comparison]) -> dict[str, Any]:
    """Comparisons in the schema of `validate --json`."""
    return {
        "rows": [
            {
                "id": each.id,
                "label": each.label,
                "quantity": each.quantity,
                "measured": each.measured,
                "predicted": each.predicted,
                "interval_90": None if each.interval_90 is None else list(each.interval_90),
                "error": each.error,
                "bound": None if each.bound is None else each.bound.value,
                "verdict": each.verdict,
                "refused": each.refused,
            }
            for each in comparisons
        ],
        "groups": [asdict(group) for group in summarise(comparisons)],
    }


def comparisons_text(comparisons: Sequence[Comparison]) -> str:
    """Predicted with interval beside measured, the bottleneck and the error of each."""
    rows = [
        [
            each.label,
            each.quantity,
            number(each.predicted),
            "" if each.interval_90 is None else "-".join(map(number, each.interval_90)),
            number(each.measured),
            percent(each.error, sign=True),
            "" if each.bound is None else each.bound.value,
            each.refused or each.verdict or "",
        ]
        for each in comparisons
    ]
    header = ["run", "quantity", "predicted", "90 %", "measured", "error", "bound", "verdict"]
    return table(header, rows)


def groups_text(groups: Sequence[Group]) -> str:
    """Errors by group."""
    rows = [
        [
            group.group,
            str(group.n),
            str(group.refused),
            percent(group.median_error),
            percent(group.p90_error),
            percent(group.worst_error),
            percent(group.coverage_90),
            percent(group.sign_accuracy),
        ]
        for group in groups
    ]
    header = ["group", "n", "refused", "median", "p90", "worst", "in 90 %", "sign"]
    return table(header, rows)


def number(value: float | None) -> str:
    """Three significant digits."""
    return "" if value is None else f"{value:.3g}"


def percent(value: float | None, *, sign: bool = False) -> str:
    """A share in per cent."""
    if value is None:
        return ""
    return f"{100 * value:+.1f} %" if sign else f"{100 * value:.1f} %"
