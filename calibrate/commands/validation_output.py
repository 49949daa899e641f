"""What `tokroof validate` says of runs: as JSON in its schema, and as text."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import Any

from calibrate.comparison import Comparison, Group, summarise
from calibrate.validation.score import Score
from calibrate.validation.summary import Regret, Summary
from model.commands.table import table

MOST_ROWS_SHOWN = 40
"""Rows that are printed one by one; of more, only groups are."""


def comparison_json(comparison: Comparison) -> dict[str, Any]:
    """One row in the schema of `validate --json`."""
    interval = comparison.interval_90
    return {
        "id": comparison.id,
        "label": comparison.label,
        "quantity": comparison.quantity,
        "measured": comparison.measured,
        "predicted": comparison.predicted,
        "interval_90": None if interval is None else list(interval),
        "error": comparison.error,
        "bound": None if comparison.bound is None else comparison.bound.value,
        "verdict": comparison.verdict,
        "refused": comparison.refused,
    }


def comparisons_json(comparisons: Sequence[Comparison]) -> dict[str, Any]:
    """Comparisons in the schema of `validate --json`."""
    return {
        "rows": [comparison_json(each) for each in comparisons],
        "groups": [asdict(group) for group in summarise(comparisons)],
    }


def scores_json(scores: Sequence[Score], summary: Summary) -> dict[str, Any]:
    """Scores in the schema of `validate --json`, with refusals by reason and the regret."""
    return {
        "rows": [comparison_json(each.comparison) for each in scores],
        "groups": [asdict(group) for group in summary.groups],
        "share_predicted": summary.share_predicted,
        "refusals": [asdict(each) for each in summary.refusals],
        "regret": asdict(summary.regret),
    }


def scores_text(scores: Sequence[Score], summary: Summary) -> str:
    """What was predicted and what not, errors by group, and the regret of advice on k."""
    parts = [
        f"{summary.runs} runs, {percent(summary.share_predicted)} predicted",
        *_rows(scores),
        *_refusals(summary),
        groups_text([group for group in summary.groups if group.predicted]),
        regret_text(summary.regret),
    ]
    return "\n\n".join(part for part in parts if part)


def _rows(scores: Sequence[Score]) -> Iterator[str]:
    if len(scores) <= MOST_ROWS_SHOWN:
        yield comparisons_text([each.comparison for each in scores])


def _refusals(summary: Summary) -> Iterator[str]:
    if summary.refusals:
        rows = [[each.reason, str(each.runs), each.explanation] for each in summary.refusals]
        yield table(["refused", "runs", "because"], rows)


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
    return table(header, rows) if rows else ""


def regret_text(regret: Regret) -> str:
    """One line on our advice on k; empty where no study tried several."""
    if not regret.sweeps:
        return ""
    return (
        f"advice on k, {regret.sweeps} sweeps: gives away {percent(regret.median)} of the best "
        f"measured speedup in the median, {percent(regret.worst)} at worst"
    )


def number(value: float | None) -> str:
    """Three significant digits."""
    return "" if value is None else f"{value:.3g}"


def percent(value: float | None, *, sign: bool = False) -> str:
    """A share in per cent."""
    if value is None:
        return ""
    return f"{100 * value:+.1f} %" if sign else f"{100 * value:.1f} %"
