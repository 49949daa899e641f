"""How well does it predict? Predictions beside what was measured, run by run and by group."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import final

from calibrate.comparison import SPEEDUP, THROUGHPUT, Comparison, Group, summary
from calibrate.published.run_row import PublishedRun
from calibrate.validation.which_runs import FILTERS, Where
from dashboard.answers import once
from dashboard.charts.evidence import errors_by_group, predicted_against_measured
from dashboard.command import Command
from dashboard.figure import Figure, in_words, literally
from dashboard.rows.evidence import (
    IN_THE_FIT,
    PUBLISHED,
    YOURS,
    EvidenceRow,
    GroupRow,
    evidence_row,
    group_rows,
)
from dashboard.rows.own_runs import passes
from dashboard.scores import OwnFile, own_comparisons, shipped_scores
from dashboard.selection import Selection

MOST_GROUPS = 30
ENOUGH = 10
"""Predicted runs from which a group is called best or worst: a few may be good or bad by luck."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class EvidenceSettings:
    """Which runs are shown, and what their errors are grouped by."""

    quantity: str = THROUGHPUT
    where: Where = ()
    by: str = "chip"
    own: OwnFile | None = None

    @property
    def filters(self) -> Where:
        """What a run must have; one quantity, for two have no axis in common."""
        return (("quantity", self.quantity), *self.where)

    @property
    def command(self) -> Command:
        """`tokroof validate` of the same runs."""
        where = tuple(("--where", f"{name}={value}") for name, value in self.filters)
        return Command(name="validate", settings=where)


@once
def evidence(selection: Selection, settings: EvidenceSettings) -> Figure:
    """Predicted against measured.

    Raises:
        InputError: no run is left, or the file of one's own is none of runs.
    """
    scored = shipped_scores(settings.filters)
    rows = [evidence_row(run, each.comparison, PUBLISHED) for run, each in scored]
    own: list[EvidenceRow] = []
    cautions: tuple[str, ...] = ()
    if settings.own is not None:
        pairs = own_comparisons(settings.own, selection.machine)
        of_quantity = [(run, each) for run, each in pairs if each.quantity == settings.quantity]
        mine = [(run, each) for run, each in of_quantity if passes(run, settings.where)]
        own = [evidence_row(run, each, YOURS) for run, each in mine]
        found = [each for _, each in mine]
        cautions = (of_own(settings.own.name, found, hidden=len(of_quantity) - len(found)),)
    total = summary("", [each.comparison for _, each in scored])
    fitted = sum(row.fit == IN_THE_FIT and row.predicted is not None for row in rows)
    shown = (*own, *rows)
    unit = UNITS[settings.quantity]
    drawn = any(row.measured and row.predicted for row in shown)
    return Figure(
        name="evidence",
        sentence=sentence(total, fitted),
        chart=predicted_against_measured(shown, unit) if drawn else None,
        alternative=in_words(f"Predicted against measured {unit}", [in_short(total)]),
        reading="A point is a run. On the dashed line it was predicted exactly, in the band within "
        "10 %; above it the prediction is too fast. Every strategy is given the progress that the "
        "run really had. Your own runs are diamonds; what is filtered holds for them too.",
        rows=shown,
        command=settings.command,
        cautions=cautions,
    )


def sentence(total: Group, fitted: int) -> str:
    """How far off the predictions are, how many there are, and how many are no test."""
    if total.median_error is None or total.p90_error is None or total.coverage_90 is None:
        return f"**None of these {total.n} runs is predicted:** each lacks something it would need."
    said = (
        f"**Half of the {total.predicted} predictions are within "
        f"{100 * total.median_error:.1f} % of what was measured, nine of ten within "
        f"{100 * total.p90_error:.1f} %.** {100 * total.coverage_90:.0f} % of the measurements lie "
        "in the 90 % interval."
    )
    if total.sign_accuracy is not None:
        said += f" Win or loss is told right in {100 * total.sign_accuracy:.0f} %."
    said += f" {fitted} of the {total.predicted} were in the fit."
    if total.refused:
        said += f" {total.refused} of {total.n} runs are refused: a number would be a guess."
    return said


def in_short(total: Group) -> str:
    """The errors for who cannot see the picture."""
    if total.median_error is None or total.p90_error is None:
        return f"none of {total.n} runs is predicted"
    return (
        f"{total.predicted} of {total.n} runs predicted, median error "
        f"{100 * total.median_error:.1f} %, p90 {100 * total.p90_error:.1f} %"
    )


def of_own(name: str, found: Sequence[Comparison], *, hidden: int) -> str:
    """The same of a file that a person brought, with the call that prints it."""
    text = in_short(summary("", found)) if found else "no run of this quantity passes the filter"
    left_out = f"; the filter hides {hidden} more" if hidden else ""
    return f"{name}: {text}{left_out}; `tokroof validate FILE` prints its rows"


@once
def errors(selection: Selection, settings: EvidenceSettings) -> Figure:
    """The errors of the same shipped runs by group.

    Raises:
        InputError: no run is left.
    """
    del selection
    pairs: list[tuple[PublishedRun, Comparison]] = [
        (run, each.comparison) for run, each in shipped_scores(settings.filters)
    ]
    found = group_rows(pairs, FILTERS[settings.by])
    rows = found[:MOST_GROUPS]
    unseen = len(found) - len(rows)
    return Figure(
        name="errors-by-group",
        sentence=extremes(rows, settings.by),
        chart=errors_by_group(rows) if rows else None,
        alternative=in_words(f"Error by {settings.by}", [row.in_words for row in rows]),
        reading="Dot: median error. Bar: up to the error that nine of ten runs stay below. In "
        "words: how many runs are predicted, and how many of them lie in their 90 % interval. "
        "Small errors are drawn wider than large ones. Groups with most runs first."
        + (f" Groups that are not shown, with fewer runs: {unseen}." if unseen else ""),
        rows=rows,
        command=settings.command,
    )


def extremes(groups: Sequence[GroupRow], by: str) -> str:
    """The groups that are predicted best and worst."""
    if not groups:
        return "**Nothing is predicted here.**"
    many = [row for row in groups if row.predicted >= ENOUGH] or groups
    best = min(many, key=lambda row: row.median_percent)
    worst = max(many, key=lambda row: row.median_percent)
    if best is worst:
        return f"**{literally(best.label)}: median error {best.median_percent:.1f} %.**"
    among = f", of groups with at least {ENOUGH} runs" if len(many) < len(groups) else ""
    return (
        f"**By {by}{among}, {literally(best.label)} is predicted best (median error "
        f"{best.median_percent:.1f} %) and {literally(worst.label)} worst "
        f"({worst.median_percent:.1f} %).**"
    )


UNITS = {THROUGHPUT: "speed (tok/s)", SPEEDUP: "speedup (times plain)"}
