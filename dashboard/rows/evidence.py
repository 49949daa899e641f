"""Predictions beside measurements as rows of charts: run by run, and summed up by group."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import final

from calibrate.comparison import Comparison, Group, summary
from calibrate.published.run_row import PublishedRun
from calibrate.run_record import Run
from calibrate.validation.which_runs import FILTERS

PUBLISHED, YOURS = "published", "yours"
DRAWN_AS = {
    "plain": "plain",
    "batch": "batch",
    "speculative": "speculative",
    "mtp": "draft-head",
    "ngram": "prompt-lookup",
    "selfspec": "layer-skip",
    "diffusion": "diffusion",
}
"""The strategy whose colour a published name is drawn in."""
IN_THE_FIT = "in the fit"
GITHUB = re.compile(r"github:(?P<repository>[\w.-]+/[\w.-]+)(?:@(?P<commit>[0-9a-f]+))?\b")


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class EvidenceRow:
    """A run, its prediction with the 90 % interval, and where the run was published.

    Measured and predicted are tok/s, or times plain decoding where the quantity is speedup;
    `error_percent` is predicted over measured, less one. `refused` says why nothing is predicted.
    """

    id: str
    label: str
    whose: str
    quantity: str
    measured: float | None
    predicted: float | None
    low: float | None
    high: float | None
    error_percent: float | None
    in_interval: bool | None
    strategy: str
    drawn_as: str
    chip: str
    runtime: str
    model: str
    trust: str
    fit: str
    refused: str
    source: str
    locator: str


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class GroupRow:
    """Errors of the runs that share something, as absolute per cent of what was measured.

    `covered_percent` is the share of measurements within their 90 % interval.
    """

    label: str
    runs: int
    predicted: int
    median_percent: float
    p90_percent: float
    covered_percent: float

    @property
    def in_words(self) -> str:
        """The row for who cannot see the chart."""
        return f"{self.label} median {self.median_percent:.1f} %, p90 {self.p90_percent:.1f} %"


def evidence_row(run: PublishedRun | Run, found: Comparison, whose: str) -> EvidenceRow:
    """The row of a run; a record of `tokroof run` has no source but its own machine."""
    low, high = found.interval_90 or (None, None)
    if isinstance(run, Run):
        chip, runtime = run.environment.chip, run.environment.runtime
        model, trust, fit, source, locator = run.target, "high", "not " + IN_THE_FIT, "", run.date
    else:
        chip, runtime, model = (FILTERS[name](run) for name in ("chip", "runtime", "model"))
        trust, source, locator = run.trust, source_link(run.source), run.locator
        seen = any(name.endswith(f"{run.strategy}, {IN_THE_FIT}") for name in found.groups)
        fit = IN_THE_FIT if seen else "not " + IN_THE_FIT
    return EvidenceRow(
        id=found.id,
        label=found.label,
        whose=whose,
        quantity=found.quantity,
        measured=found.measured,
        predicted=found.predicted,
        low=low,
        high=high,
        error_percent=None if found.error is None else 100.0 * found.error,
        in_interval=None if found.error is None else found.covered,
        strategy=run.strategy,
        drawn_as=DRAWN_AS.get(run.strategy, "plain"),
        chip=chip,
        runtime=runtime,
        model=model,
        trust=trust,
        fit=fit,
        refused=found.refused or "",
        source=source,
        locator=locator,
    )


def group_rows(
    scored: Sequence[tuple[PublishedRun, Comparison]], group_of: Callable[[PublishedRun], str]
) -> tuple[GroupRow, ...]:
    """One row for each group with a prediction, those with the most of them first."""
    members: dict[str, list[Comparison]] = defaultdict(list)
    for run, found in scored:
        members[group_of(run)].append(found)
    groups = [summary(name, each) for name, each in members.items()]
    ranked = sorted(groups, key=lambda group: (-group.predicted, group.group))
    return tuple(row for group in ranked if (row := _group_row(group)) is not None)


def _group_row(group: Group) -> GroupRow | None:
    median, p90, covered = group.median_error, group.p90_error, group.coverage_90
    if median is None or p90 is None or covered is None:
        return None
    return GroupRow(
        label=group.group,
        runs=group.n,
        predicted=group.predicted,
        median_percent=100.0 * median,
        p90_percent=100.0 * p90,
        covered_percent=100.0 * covered,
    )


def source_link(source: str) -> str:
    """The address of a source; empty where it names none.

    >>> source_link("github:apple/ml-recurrent-drafter@bd8586bb README.md")
    'https://github.com/apple/ml-recurrent-drafter/tree/bd8586bb'
    >>> source_link("javascript:alert(1)")
    ''
    """
    if source.startswith(("https://", "http://")):
        return source.split()[0]
    found = GITHUB.match(source)
    if found is None:
        return ""
    tree = f"/tree/{found['commit']}" if found["commit"] else ""
    return f"https://github.com/{found['repository']}{tree}"
