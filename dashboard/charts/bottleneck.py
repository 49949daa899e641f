"""Where the time of one output token goes: a bar for each strategy, stacked by part."""

from __future__ import annotations

from collections.abc import Sequence

import altair as alt

from dashboard.charts.drawing import Drawing, built_once, flat, of
from dashboard.charts.narrow import columns
from dashboard.charts.strategies import beside, by_strategy, in_order, layered, with_texts
from dashboard.rows.strategies import PartRow, TotalRow
from dashboard.theme import BASELINE, PART_COLOURS

PARTS, TOTALS = "parts", "totals"


def token_times(parts: Sequence[PartRow], totals: Sequence[TotalRow]) -> Drawing:
    """The bars, and beside each its sum and what binds it; the dashed line is the first row."""
    stacking, sums = list(PART_COLOURS), in_order(totals)
    places = {row["label"]: row["place"] for row in sums}
    stacked = [
        {**row, "place": places[row["label"]], "position": stacking.index(row["part"])}
        for row in flat(parts)
    ]
    return Drawing(chart=_token_times(), rows={PARTS: stacked, TOTALS: sums})


@built_once
def _token_times() -> alt.LayerChart:
    time = alt.X("time_ms:Q").title("Time per output token (ms)")
    bars = (
        of(PARTS)
        .mark_bar()
        .encode(
            by_strategy(with_texts(TOTALS, "total")),
            time,
            alt.Color("part:N")
            .scale(domain=list(PART_COLOURS), range=list(PART_COLOURS.values()))
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
    first = of(TOTALS).transform_filter("datum.place == 0")
    plain = first.mark_rule(strokeDash=[4, 4], color=BASELINE).encode(time)
    return layered(bars, plain, beside(TOTALS, "total"))
