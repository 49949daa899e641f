"""Speed over the context as lines with bands, and memory over it as a stack against its limit."""

from __future__ import annotations

from collections.abc import Sequence

import altair as alt

from dashboard.charts.strategies import columns, inline
from dashboard.rows.context import PARTS, MemoryRow, SpeedRow
from dashboard.theme import BASELINE, MEMORY_COLOURS, STRATEGY_COLOURS

HEIGHT = 340
SPEED, SIZE = "Output tokens per second (tok/s)", "Memory (GB)"
HEADROOM = 1.6
"""The stack is shown up to so many times the limit: what is far beyond it fits nowhere."""


def _context(contexts: Sequence[int]) -> alt.X:
    """The axis that both charts share: every doubling of the context is as wide."""
    ticks = [2**power for power in range(7, 21, 2) if min(contexts) <= 2**power <= max(contexts)]
    in_k = "datum.value < 1024 ? datum.value : datum.value / 1024 + 'k'"
    axis = alt.Axis(values=ticks, labelExpr=in_k, grid=False)
    return (
        alt.X("context:Q")
        .title("Context (tokens)")
        .scale(type="log", base=2, nice=False, domain=[min(contexts), max(contexts)])
        .axis(axis)
    )


def _here(context: float, x: alt.X) -> alt.Chart:
    """The context of the sidebar."""
    rows = alt.InlineData(values=[{"context": context}])
    return alt.Chart(rows).mark_rule(strokeDash=[4, 4], color=BASELINE, clip=True).encode(x)


def speeds(rows: Sequence[SpeedRow], contexts: Sequence[int], here: float) -> alt.LayerChart:
    """A line and its 90 % band for each strategy, as far as it fits; dashed: the context asked."""
    x = _context(contexts)
    names = list(dict.fromkeys(row.strategy for row in rows))
    colour = (
        alt.Color("strategy:N")
        .scale(domain=names, range=[STRATEGY_COLOURS[name] for name in names])
        .legend(orient="top", title=None, columns=3, symbolOpacity=1)
    )
    tooltip = [
        alt.Tooltip("label:N").title("strategy"),
        alt.Tooltip("context:Q").format(",").title("context (tokens)"),
        alt.Tooltip("tokens_per_s:Q").format(".1f").title("speed (tok/s)"),
        alt.Tooltip("low_tokens_per_s:Q").format(".1f").title("from (tok/s)"),
        alt.Tooltip("high_tokens_per_s:Q").format(".1f").title("to (tok/s)"),
    ]
    base, detail = alt.Chart(inline(rows)), alt.Detail("label:N")
    speed = alt.Y("tokens_per_s:Q").title(SPEED)
    band = base.mark_area(opacity=0.2).encode(
        x, alt.Y("low_tokens_per_s:Q").title(SPEED), alt.Y2("high_tokens_per_s"), colour, detail
    )
    line = base.mark_line(strokeWidth=2.5).encode(x, speed, colour, detail)
    dots = base.mark_point(filled=True, size=45, opacity=1).encode(
        x, speed, colour, tooltip=tooltip
    )
    return alt.LayerChart(layer=[_here(here, x), band, line, dots], height=HEIGHT)


def memory(rows: Sequence[MemoryRow], longest: int | None, here: float) -> alt.LayerChart:
    """The parts stacked over the context; thick line: the limit, dotted: where it is reached."""
    x = _context([row.context for row in rows])
    limit, top = rows[0].limit_gb, HEADROOM * rows[0].limit_gb
    parts = [part for part in PARTS if any(row.part == part for row in rows)]
    stack = (
        alt.Chart(alt.InlineData(values=[_stacked(row) for row in rows]))
        .mark_area(clip=True)
        .encode(
            x,
            alt.Y("size_gb:Q").title(SIZE).scale(domain=[0.0, top], nice=False).stack("zero"),
            alt.Color("part:N")
            .scale(domain=parts, range=[MEMORY_COLOURS[PARTS.index(part)] for part in parts])
            .legend(orient="top", title=None, symbolType="square", columns=columns(5, 2)),
            alt.Order("position:O"),
            tooltip=[
                alt.Tooltip("part:N"),
                alt.Tooltip("context:Q").format(",").title("context (tokens)"),
                alt.Tooltip("size_gb:Q").format(".2f").title("size (GB)"),
            ],
        )
    )
    edge = alt.Chart(alt.InlineData(values=[{"limit_gb": limit}]))
    layers = [
        stack,
        _here(here, x),
        edge.mark_rule(strokeWidth=3, color=BASELINE).encode(alt.Y("limit_gb:Q").title(SIZE)),
    ]
    if longest is not None:
        end = alt.Chart(alt.InlineData(values=[{"context": max(longest, 1)}]))
        layers.append(
            end.mark_rule(strokeDash=[2, 2], strokeWidth=2, color=BASELINE, clip=True).encode(x)
        )
    return alt.LayerChart(layer=layers, height=HEIGHT)


def _stacked(row: MemoryRow) -> dict[str, object]:
    return {
        "context": row.context,
        "part": row.part,
        "size_gb": row.size_gb,
        "position": PARTS.index(row.part),
    }
