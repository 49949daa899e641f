"""Where the time of one output token goes: a bar for each strategy, stacked by part."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict

import altair as alt

from dashboard.charts.strategies import beside, by_strategy, columns, inline, layered, with_texts
from dashboard.rows.strategies import PartRow, TotalRow
from dashboard.theme import BASELINE, PART_COLOURS


def token_times(parts: Sequence[PartRow], totals: Sequence[TotalRow]) -> alt.LayerChart:
    """The bars, and beside each its sum and what binds it; the dashed line is the first row."""
    names = list(PART_COLOURS)
    time = alt.X("time_ms:Q").title("Time per output token (ms)")
    sums = {row.label: row.total for row in totals}
    rows = [{**asdict(row), "position": names.index(row.part)} for row in parts]
    bars = (
        alt.Chart(alt.InlineData(values=rows))
        .mark_bar()
        .encode(
            by_strategy(with_texts(sums)),
            time,
            alt.Color("part:N")
            .scale(domain=names, range=list(PART_COLOURS.values()))
            .legend(orient="top", title=None, symbolType="square", columns=columns(5, 2)),
            alt.Order("position:O"),
            tooltip=[
                alt.Tooltip("label:N").title("strategy"),
                alt.Tooltip("part:N"),
                alt.Tooltip("time_ms:Q").format(".2f").title("time per output token (ms)"),
                alt.Tooltip("meaning:N").title("what it is"),
            ],
        )
    )
    plain = alt.Chart(inline(totals[:1])).mark_rule(strokeDash=[4, 4], color=BASELINE).encode(time)
    return layered(bars, plain, beside(totals, sums))
