"""Predicted against measured, and the errors of groups."""

from __future__ import annotations

from collections.abc import Sequence

import altair as alt

from dashboard.charts.drawing import Drawing, built_once, of
from dashboard.charts.narrow import columns
from dashboard.charts.strategies import beside, by_strategy, in_order, layered, with_texts
from dashboard.rows.evidence import EvidenceRow, GroupRow
from dashboard.theme import BASELINE, STRATEGY_COLOURS

DRAWN = ("id", "label", "whose", "measured", "predicted", "error_percent", "drawn_as", "fit")
BAND = 0.1
RUNS, EDGES, GROUPS = "runs", "edges", "groups"
OF_WHOM = alt.Legend(orient="top", title=None, symbolFillColor=BASELINE, symbolStrokeColor=BASELINE)
HEIGHT = 440


def predicted_against_measured(rows: Sequence[EvidenceRow], unit: str) -> Drawing:
    """A point for each run with both; equal on the line, within 10 % in the band."""
    drawn = [
        {name: getattr(row, name) for name in DRAWN}
        for row in rows
        if row.measured and row.predicted
    ]
    both = [row[name] for row in drawn for name in ("measured", "predicted")]
    ends = (min(both, default=1.0) / 1.2, max(both, default=1.0) * 1.2)
    present = tuple(
        name for name in STRATEGY_COLOURS if any(row["drawn_as"] == name for row in drawn)
    )
    several = len({row["whose"] for row in drawn}) > 1
    return Drawing(
        chart=_predicted_against_measured(unit, ends, present, several=several),
        rows={
            RUNS: drawn,
            EDGES: [{"at": at, "low": at * (1 - BAND), "high": at * (1 + BAND)} for at in ends],
        },
    )


@built_once
def _predicted_against_measured(
    unit: str, ends: tuple[float, float], present: Sequence[str], *, several: bool
) -> alt.LayerChart:
    x, y = f"Measured {unit}", f"Predicted {unit}"
    scale = alt.Scale(type="log", domain=list(ends), nice=False)
    across = alt.X("at:Q").scale(scale).title(x)
    band = (
        of(EDGES)
        .mark_area(color=BASELINE, opacity=0.25, clip=True)
        .encode(across, alt.Y("low:Q").scale(scale).title(y), alt.Y2("high"))
    )
    equal = (
        of(EDGES)
        .mark_line(color=BASELINE, strokeDash=[4, 4], clip=True)
        .encode(across, alt.Y("at:Q").scale(scale).title(y))
    )
    of_whom = OF_WHOM if several else None
    points = (
        of(RUNS)
        .mark_point(filled=True, opacity=0.6)
        .encode(
            alt.X("measured:Q").scale(scale).title(x).axis(format="~g"),
            alt.Y("predicted:Q").scale(scale).title(y).axis(format="~g"),
            alt.Color("drawn_as:N")
            .scale(domain=list(present), range=[STRATEGY_COLOURS[name] for name in present])
            .legend(orient="top", title=None, columns=columns(4, 2)),
            alt.Shape("whose:N")
            .scale(domain=["published", "yours"], range=["circle", "diamond"])
            .legend(of_whom),
            alt.Size("whose:N")
            .scale(domain=["published", "yours"], range=[36, 140])
            .legend(of_whom),
            tooltip=[
                alt.Tooltip("label:N").title("run"),
                alt.Tooltip("id:N"),
                alt.Tooltip("measured:Q").format(".3g").title(f"measured {unit}"),
                alt.Tooltip("predicted:Q").format(".3g").title(f"predicted {unit}"),
                alt.Tooltip("error_percent:Q").format("+.1f").title("error (%)"),
                alt.Tooltip("fit:N"),
            ],
        )
    )
    return alt.LayerChart(layer=[band, equal, points], height=HEIGHT)


def errors_by_group(rows: Sequence[GroupRow]) -> Drawing:
    """From the median error to that which nine of ten runs stay below, group by group."""
    said = [
        f"{row.predicted} of {row.runs}, {row.covered_percent:.0f} % in interval" for row in rows
    ]
    placed = zip(in_order(rows), said, strict=True)
    groups = [{**row, "said": text} for row, text in placed]
    return Drawing(chart=_errors_by_group(), rows={GROUPS: groups})


@built_once
def _errors_by_group() -> alt.LayerChart:
    base = of(GROUPS)
    title = "Error (% of what was measured)"
    tooltip = [
        alt.Tooltip("label:N").title("group"),
        alt.Tooltip("predicted:Q").title("runs predicted (count)"),
        alt.Tooltip("runs:Q").title("runs (count)"),
        alt.Tooltip("median_percent:Q").format(".1f").title("median error (%)"),
        alt.Tooltip("p90_percent:Q").format(".1f").title("p90 error (%)"),
        alt.Tooltip("covered_percent:Q").format(".1f").title("in the 90 % interval (%)"),
    ]
    # One group that is far off must not squeeze the others together.
    error = alt.X("median_percent:Q").title(title).scale(type="sqrt").axis(values=list(ERRORS))
    tail = base.mark_rule(strokeWidth=4, strokeCap="round", opacity=0.45, color=BASELINE).encode(
        by_strategy(None),
        error,
        alt.X2("p90_percent"),
        tooltip=tooltip,
    )
    median = base.mark_point(filled=True, size=90, opacity=1, color=GROUP).encode(
        by_strategy(with_texts(GROUPS, "said")),
        error,
        tooltip=tooltip,
    )
    return layered(tail, median, beside(GROUPS, "said"))


GROUP = "#4477AA"
ERRORS = (0, 1, 2, 5, 10, 20, 50, 100, 200, 500)
"""Where the axis of errors is labelled: narrowly where most of them are."""
