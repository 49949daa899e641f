"""Charts: functions from rows to `alt.Chart`; no Streamlit, no state, no numbers of their own.

Rows keep the order they are given in. Titles of quantities end in their unit.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from typing import Any

import altair as alt

from dashboard.present import PartRow, SpeedRow, TotalRow
from dashboard.theme import BASELINE, PART_COLOURS, STRATEGY_COLOURS

ROW_HEIGHT = 34
NAMES = alt.Axis(labelLimit=240, labelFlush=False, ticks=False, domain=False)


def speeds(rows: Sequence[SpeedRow]) -> alt.LayerChart:
    """Every strategy on one axis of speed: estimate, 90 % interval and verdict.

    The dashed line is the first row: the baseline.
    """
    base = alt.Chart(inline(rows))
    title = "Output tokens per second (tok/s)"
    speed = alt.X("tokens_per_s:Q").title(title).scale(zero=True)
    colour = (
        alt.Color("strategy:N")
        .scale(domain=list(STRATEGY_COLOURS), range=list(STRATEGY_COLOURS.values()))
        .legend(None)
    )
    tooltip = [
        alt.Tooltip("label:N").title("strategy"),
        alt.Tooltip("tokens_per_s:Q").format(".1f").title("speed (tok/s)"),
        alt.Tooltip("low_tokens_per_s:Q").format(".1f").title("90 % from (tok/s)"),
        alt.Tooltip("high_tokens_per_s:Q").format(".1f").title("90 % to (tok/s)"),
        alt.Tooltip("verdict:N"),
    ]
    interval = base.mark_rule(strokeWidth=4, strokeCap="round", opacity=0.45).encode(
        by_strategy(None),
        alt.X("low_tokens_per_s:Q").title(title),
        alt.X2("high_tokens_per_s"),
        colour,
        tooltip=tooltip,
    )
    estimate = base.mark_point(filled=True, size=110, opacity=1).encode(
        by_strategy(), speed, colour, tooltip=tooltip
    )
    return layered(
        baseline(rows[:1], speed), interval, estimate, beside(rows, [row.verdict for row in rows])
    )


def token_times(parts: Sequence[PartRow], totals: Sequence[TotalRow]) -> alt.LayerChart:
    """Where the time of one output token goes: a bar for each strategy, stacked by part.

    The dashed line is the first row: the baseline.
    """
    names = list(PART_COLOURS)
    time = alt.X("time_ms:Q").title("Time per output token (ms)")
    rows = [{**asdict(row), "position": names.index(row.part)} for row in parts]
    bars = (
        alt.Chart(alt.InlineData(values=rows))
        .mark_bar()
        .encode(
            by_strategy(),
            time,
            alt.Color("part:N")
            .scale(domain=names, range=list(PART_COLOURS.values()))
            .legend(orient="top", title=None, symbolType="square"),
            alt.Order("position:O"),
            tooltip=[
                alt.Tooltip("label:N").title("strategy"),
                alt.Tooltip("part:N"),
                alt.Tooltip("time_ms:Q").format(".2f").title("time per output token (ms)"),
            ],
        )
    )
    return layered(bars, baseline(totals[:1], time), beside(totals, [row.total for row in totals]))


def by_strategy(axis: alt.Axis | None = NAMES) -> alt.Y:
    """The axis that all charts of strategies share: one row for each, in the order of the rows."""
    return alt.Y("label:N", axis=axis, sort=None, title=None).scale(type="band")


def baseline(row: Sequence[SpeedRow] | Sequence[TotalRow], quantity: alt.X) -> alt.Chart:
    """A dashed line at the value of one row, across all."""
    return alt.Chart(inline(row)).mark_rule(strokeDash=[4, 4], color=BASELINE).encode(quantity)


def beside(rows: Sequence[SpeedRow] | Sequence[TotalRow], texts: list[str]) -> alt.Chart:
    """A text for each row in a column right of the chart, as an axis: clear of every mark.

    Text marks do not follow the page's light or dark theme; the labels of an axis do.
    """
    said = json.dumps({row.label: text for row, text in zip(rows, texts, strict=True)})
    axis = NAMES.copy()
    axis.orient, axis.labelExpr = "right", f"({said})[datum.label]"
    return alt.Chart(inline(rows)).mark_point(opacity=0).encode(by_strategy(axis))


def layered(*layers: alt.Chart) -> alt.LayerChart:
    """Layers on the same scales, the axis of strategies on either side."""
    return alt.LayerChart(
        layer=list(layers),
        height=alt.Step(ROW_HEIGHT),
        resolve=alt.Resolve(axis=alt.AxisResolveMap(y="independent")),
    )


def inline(rows: Iterable[Any]) -> alt.InlineData:
    """Records as the data of a chart, without pandas."""
    return alt.InlineData(values=[asdict(row) for row in rows])
