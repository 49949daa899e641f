"""Speed over the context as lines with bands, and memory over it as a stack against its limit."""

from __future__ import annotations

from collections.abc import Sequence

import altair as alt

from dashboard.charts.drawing import Drawing, built_once, flat, of
from dashboard.charts.narrow import columns
from dashboard.rows.context import PARTS, MemoryRow, SpeedRow
from dashboard.theme import BASELINE, MEMORY_COLOURS, STRATEGY_COLOURS

HEIGHT = 340
SPEEDS, STACK, LIMIT, HERE, END = "speeds", "stack", "limit", "here", "end"
SPEED, SIZE = "Output tokens per second (tok/s)", "Memory (GB)"
HEADROOM = 1.6
"""The stack is shown up to so many times the limit: what is far beyond it fits nowhere."""


def _context(ends: tuple[int, int]) -> alt.X:
    """The axis that both charts share: every doubling of the context is as wide."""
    shortest, longest = ends
    ticks = [2**power for power in range(7, 21, 2) if shortest <= 2**power <= longest]
    in_k = "datum.value < 1024 ? datum.value : datum.value / 1024 + 'k'"
    axis = alt.Axis(values=ticks, labelExpr=in_k, grid=False)
    return (
        alt.X("context:Q")
        .title("Context (tokens)")
        .scale(type="log", base=2, nice=False, domain=[shortest, longest])
        .axis(axis)
    )


def _here(x: alt.X) -> alt.Chart:
    """The context of the sidebar."""
    return of(HERE).mark_rule(strokeDash=[4, 4], color=BASELINE, clip=True).encode(x)


def speeds(rows: Sequence[SpeedRow], contexts: Sequence[int], here: float) -> Drawing:
    """A line and its 90 % band for each strategy, as far as it fits; dashed: the context asked."""
    names = tuple(dict.fromkeys(row.strategy for row in rows))
    return Drawing(
        chart=_speeds(names, (min(contexts), max(contexts))),
        rows={SPEEDS: flat(rows), HERE: [{"context": here}]},
    )


@built_once
def _speeds(names: Sequence[str], ends: tuple[int, int]) -> alt.LayerChart:
    x = _context(ends)
    colour = (
        alt.Color("strategy:N")
        .scale(domain=list(names), range=[STRATEGY_COLOURS[name] for name in names])
        .legend(orient="top", title=None, columns=3, symbolOpacity=1)
    )
    tooltip = [
        alt.Tooltip("label:N").title("strategy"),
        alt.Tooltip("context:Q").format(",").title("context (tokens)"),
        alt.Tooltip("tokens_per_s:Q").format(".1f").title("speed (tok/s)"),
        alt.Tooltip("low_tokens_per_s:Q").format(".1f").title("from (tok/s)"),
        alt.Tooltip("high_tokens_per_s:Q").format(".1f").title("to (tok/s)"),
    ]
    base, detail = of(SPEEDS), alt.Detail("label:N")
    speed = alt.Y("tokens_per_s:Q").title(SPEED)
    band = base.mark_area(opacity=0.2).encode(
        x, alt.Y("low_tokens_per_s:Q").title(SPEED), alt.Y2("high_tokens_per_s"), colour, detail
    )
    line = base.mark_line(strokeWidth=2.5).encode(x, speed, colour, detail)
    dots = base.mark_point(filled=True, size=45, opacity=1).encode(
        x, speed, colour, tooltip=tooltip
    )
    return alt.LayerChart(layer=[_here(x), band, line, dots], height=HEIGHT)


def memory(rows: Sequence[MemoryRow], longest: int | None, here: float) -> Drawing:
    """The parts stacked over the context; thick line: the limit, dotted: where it is reached."""
    contexts = [row.context for row in rows]
    parts = tuple(part for part in PARTS if any(row.part == part for row in rows))
    limit_gb = rows[0].limit_gb
    return Drawing(
        chart=_memory(parts, (min(contexts), max(contexts))),
        rows={
            STACK: [{**row, "position": PARTS.index(row["part"])} for row in flat(rows)],
            LIMIT: [{"limit_gb": limit_gb, "top_gb": HEADROOM * limit_gb}],
            HERE: [{"context": here}],
            END: [] if longest is None else [{"context": max(longest, 1)}],
        },
    )


@built_once
def _memory(parts: Sequence[str], ends: tuple[int, int]) -> alt.LayerChart:
    x = _context(ends)
    # A browser first compiles the chart, then gets its rows.
    top_gb = alt.ExprRef(expr=f"length(data('{LIMIT}')) ? data('{LIMIT}')[0].top_gb : 1")
    size = alt.Y("size_gb:Q").title(SIZE).scale(domainMin=0.0, domainMax=top_gb, nice=False)
    stack = (
        of(STACK)
        .mark_area(clip=True)
        .encode(
            x,
            size.stack("zero"),
            alt.Color("part:N")
            .scale(domain=list(parts), range=[MEMORY_COLOURS[PARTS.index(part)] for part in parts])
            .legend(orient="top", title=None, symbolType="square", columns=columns(5, 2)),
            alt.Order("position:O"),
            tooltip=[
                alt.Tooltip("part:N"),
                alt.Tooltip("context:Q").format(",").title("context (tokens)"),
                alt.Tooltip("size_gb:Q").format(".2f").title("size (GB)"),
            ],
        )
    )
    limit = of(LIMIT).mark_rule(strokeWidth=3, color=BASELINE)
    end = of(END).mark_rule(strokeDash=[2, 2], strokeWidth=2, color=BASELINE, clip=True)
    return alt.LayerChart(
        layer=[stack, _here(x), limit.encode(alt.Y("limit_gb:Q").title(SIZE)), end.encode(x)],
        height=HEIGHT,
    )
