"""A cell for each share of skipped layers and draft length, coloured by what is asked of it."""

from __future__ import annotations

from collections.abc import Sequence

import altair as alt

from dashboard.charts.drawing import Drawing, built_once, flat, of
from dashboard.rows.plans import SkipRow
from dashboard.theme import BASELINE

SHOWN = {
    "needed_acceptance": "Acceptance needed (probability)",
    "speedup_at_most": "Speedup at most (times plain)",
    "speedup": "Speedup as measured (times plain)",
}
"""What the cells can be coloured by."""
CELL = 30
PLANS = "plans"


def skip_cells(rows: Sequence[SkipRow], shown: str) -> Drawing:
    """The heat map; a grey cell has no such number."""
    return Drawing(chart=_skip_cells(shown), rows={PLANS: flat(rows)})


@built_once
def _skip_cells(shown: str) -> alt.LayerChart:
    base = of(PLANS).encode(
        alt.X("skipped_percent:O").title("Skipped layers (% of all)").axis(labelAngle=0),
        alt.Y("draft_length:O", sort="descending").title("Draft length (tokens)"),
        tooltip=[
            alt.Tooltip("skipped_percent:Q").format(".4g").title("skipped (%)"),
            alt.Tooltip("draft_length:Q").title("draft length (tokens)"),
            alt.Tooltip("needed_acceptance:Q").format(".3f").title("acceptance needed (0 to 1)"),
            alt.Tooltip("speedup_at_most:Q").format(".2f").title("speedup at most (times)"),
            alt.Tooltip("acceptance:Q").format(".3f").title("acceptance measured (0 to 1)"),
            alt.Tooltip("speedup:Q").format(".2f").title("speedup with it (times)"),
        ],
    )
    scale = alt.Scale(scheme="purplegreen", domainMid=1.0)
    if shown == "needed_acceptance":
        scale = alt.Scale(scheme="viridis", domain=[0.0, 1.0], reverse=True)
    colour = (
        alt.Color(f"{shown}:Q")
        .scale(scale)
        # A gradient would refer to the address of the page, which a slider changes.
        .legend(
            type="symbol",
            symbolType="square",
            title=SHOWN[shown],
            titleLimit=300,
            orient="top",
            tickCount=6,
        )
    )
    empty = base.mark_rect(color=BASELINE, opacity=0.25)
    cells = base.transform_filter(f"isValid(datum.{shown})").mark_rect().encode(colour)
    return alt.LayerChart(layer=[empty, cells], height=alt.Step(CELL))
