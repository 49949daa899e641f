"""The cost of a pass over its rows: a line for each format and runtime, cliffs, and points."""

from __future__ import annotations

from collections.abc import Sequence

import altair as alt

from dashboard.charts.strategies import inline
from dashboard.rows.row_costs import LAW, RowCost
from dashboard.theme import BASELINE, SERIES_COLOURS

HEIGHT = 420
DASHES = ([1, 0], [6, 3], [2, 2], [8, 3, 2, 3])
COST = "Cost of a pass (passes of one row)"


def curves(rows: Sequence[RowCost], kernel_rows: Sequence[int]) -> alt.LayerChart:
    """Lines of what is predicted, triangles at cliffs, hollow points of what was measured.

    Vertical lines: from that row on another kernel serves the first curve's matrices. The dashed
    grey line is a pass that costs its rows: on it, checking saves nothing.
    """
    lines = [row for row in rows if row.kind == LAW]
    points = [row for row in rows if row.kind != LAW]
    cliffs = [row for row in lines if row.cliff]
    formats = list(dict.fromkeys(row.format for row in lines))
    runtimes = list(dict.fromkeys(row.runtime for row in lines))
    most, highest = max(row.rows for row in lines), max(row.relative for row in rows)
    x = alt.X("rows:Q").title("Rows of a pass (tokens)").scale(domain=[1, most], nice=False)
    y = alt.Y("relative:Q").title(COST).scale(domain=[0.0, 1.05 * highest], nice=False)
    colour = (
        alt.Color("format:N")
        .scale(domain=formats, range=list(SERIES_COLOURS[: len(formats)]))
        .legend(orient="top", title=None, symbolType="stroke")
    )
    dash = (
        alt.StrokeDash("runtime:N")
        .scale(domain=runtimes, range=list(DASHES[: len(runtimes)]))
        .legend(orient="top", title=None)
    )
    tooltip = [
        alt.Tooltip("format:N"),
        alt.Tooltip("runtime:N"),
        alt.Tooltip("rows:Q").title("rows (tokens)"),
        alt.Tooltip("relative:Q").format(".2f").title("cost (passes of one row)"),
    ]
    line = alt.Chart(inline(lines)).mark_line(strokeWidth=2.5).encode(x, y, colour, dash)
    targets = (
        alt.Chart(inline(lines))
        .mark_point(size=60, opacity=0)
        .encode(x, y, tooltip=[*tooltip, alt.Tooltip("time_ms:Q").format(".2f").title("time (ms)")])
    )
    ends = alt.InlineData(values=[{"rows": r, "relative": r} for r in (1, min(most, highest))])
    layers = [alt.Chart(ends).mark_line(strokeDash=[4, 4], color=BASELINE, clip=True).encode(x, y)]
    if kernel_rows:
        edges = alt.InlineData(values=[{"rows": row - 0.5} for row in kernel_rows])
        layers.append(alt.Chart(edges).mark_rule(color=BASELINE, opacity=0.5).encode(x))
    layers.append(line)
    lawful = [row for row in points if row.predicted is not None]
    if lawful:
        layers.append(
            alt.Chart(inline(lawful))
            .mark_line(strokeDash=[1, 4], strokeWidth=2)
            .encode(
                x,
                alt.Y("predicted:Q").title(COST),
                colour,
                alt.Detail(["what:N", "runtime:N", "source:N"]),
            )
        )
    if points:
        layers.append(
            alt.Chart(inline(points))
            .mark_point(size=50, strokeWidth=1.5, opacity=0.9)
            .encode(
                x,
                y,
                colour,
                alt.Shape("kind:N").legend(orient="bottom", title=None),
                tooltip=[
                    *tooltip,
                    alt.Tooltip("predicted:Q").format(".2f").title("law (passes of one row)"),
                    *map(alt.Tooltip, ("kind:N", "what:N", "source:N")),
                ],
            )
        )
    layers.append(targets)
    if cliffs:
        layers.append(
            alt.Chart(inline(cliffs))
            .mark_point(shape="triangle-up", filled=True, size=90, opacity=1)
            .encode(x, y, colour, tooltip=[*tooltip, alt.Tooltip("cliff:N").title("why")])
        )
    return alt.LayerChart(layer=layers, height=HEIGHT)
