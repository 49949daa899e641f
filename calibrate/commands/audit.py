"""`tokroof audit`: which measured runs are impossible or suspicious, and why."""

from __future__ import annotations

import argparse
import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from calibrate import run_file
from calibrate.audit.own_runs import falling_rate, published_form
from calibrate.audit.rules import Flag, audit
from calibrate.published.read_runs import read_runs
from calibrate.published.run_row import TRUSTS, PublishedRun
from model.commands.table import table

OWN_FIELD = b'"round_s"'
"""A field that every run record of ours has, and no published row."""
FALLING = "suspicious/falling-rate"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of `audit`."""
    parser.add_argument(
        "runs",
        metavar="RUNS",
        help="published runs as CSV or JSON lines, or the file that `tokroof run` writes",
    )
    parser.add_argument("--json", action="store_true", help="print JSON")


def execute(options: argparse.Namespace) -> int:
    """Read, judge, print. Flags are findings, not failures: the exit status is 0."""
    runs, flags = audited(Path(options.runs))
    if options.json:
        print(json.dumps({"flags": [asdict(flag) for flag in flags]}, indent=2))
        return 0
    if flags:
        rows = [[flag.rule, flag.id, flag.explanation] for flag in flags]
        print(table(["rule", "run", "explanation"], rows))
        print()
        print(summary(runs, flags))
        print()
    flagged = len({flag.id for flag in flags})
    print(f"{len(runs)} runs, {flagged} flagged, {len(flags)} flags")
    return 0


def audited(path: Path) -> tuple[Sequence[PublishedRun], Sequence[Flag]]:
    """The runs of a file and their flags, whichever of the two kinds of file it is.

    Raises:
        InputError: the file cannot be read as what it looks like.
    """
    if not holds_own_records(path):
        runs = read_runs(path)
        return runs, audit(runs)
    records = run_file.read_runs(path)
    runs = published_form(records)
    fallen = ((record.id, falling_rate(record)) for record in records)
    falling = [
        Flag(id=name, rule=FALLING, explanation=explanation)
        for name, explanation in fallen
        if explanation is not None
    ]
    return runs, (*audit(runs), *falling)


def holds_own_records(path: Path) -> bool:
    """Whether the first line that is not empty is a run record; the readers say what is wrong."""
    try:
        with path.open("rb") as file:
            first = next((line for line in file if line.strip()), b"")
    except OSError:
        return False
    return first.lstrip().startswith(b"{") and OWN_FIELD in first


def summary(runs: Sequence[PublishedRun], flags: Sequence[Flag]) -> str:
    """Flags by rule and by how far the rows were trusted before."""
    trust = {run.id: run.trust for run in runs}
    counts = Counter((flag.rule, trust[flag.id]) for flag in flags)
    rules = sorted({flag.rule for flag in flags})
    rows = [
        [rule, *(str(counts[rule, each]) for each in TRUSTS), str(sum_of(counts, rule))]
        for rule in rules
    ]
    return table(["rule", *(f"{each} trust" for each in TRUSTS), "all"], rows)


def sum_of(counts: Counter[tuple[str, str]], rule: str) -> int:
    """All flags of one rule."""
    return sum(counts[rule, each] for each in TRUSTS)
