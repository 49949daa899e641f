"""The cost of a pass over its rows: a line for each format and runtime, cliffs, and points."""

from __future__ import annotations

from collections.abc import Sequence

import altair as alt

from dashboard.charts.drawing import Drawing, built_once, flat, frame, of
from dashboard.rows.row_costs import LAW, RowCost
from dashboard.theme import BASELINE, SERIES_COLOURS

HEIGHT = 420
DASHES = ([1, 0], [6, 3], [2, 2], [8, 3, 2, 3])
CURVES, POINTS, CLIFFS = "curves", "points", "cliffs"
EDGES, LINEAR, ENDS = "edges", "linear", "ends"
COST = "Cost of a pass (passes of one row)"


def curves(rows: Sequence[RowCost], kernel_rows: Sequence[int]) -> Drawing:
    """Lines of what is predicted, triangles at cliffs, hollow points of what was measured.

    Vertical lines: from that row on another kernel serves the first curve's matrices. The dashed
    grey line is a pass that costs its rows: on it, checking saves nothing.
    """
    lines = [row for row in rows if row.kind == LAW]
    points = [row for row in rows if row.kind != LAW]
    formats = tuple(dict.fromkeys(row.format for row in lines))
    runtimes = tuple(dict.fromkeys(row.runtime for row in lines))
    most, highest = max(row.rows for row in lines), max(row.relative for row in rows)
    return Drawing(
        chart=_curves(formats, runtimes, measured=bool(points)),
        rows={
            CURVES: flat(lines),
            POINTS: flat(points),
            CLIFFS: flat(row for row in lines if row.cliff),
            EDGES: [{"rows": row - 0.5} for row in kernel_rows],
            LINEAR: [{"rows": row, "relative": row} for row in (1.0, min(most, highest))],
            ENDS: [{"rows": 1, "relative": 0.0}, {"rows": most, "relative": 1.05 * highest}],
        },
    )


@built_once
def _curves(formats: Sequence[str], runtimes: Sequence[str], *, measured: bool) -> alt.LayerChart:
    x = alt.X("rows:Q").title("Rows of a pass (tokens)").scale(zero=False, nice=False)
    y = alt.Y("relative:Q").title(COST).scale(nice=False)
    colour = (
        alt.Color("format:N")
        .scale(domain=list(formats), range=list(SERIES_COLOURS[: len(formats)]))
        .legend(orient="top", title=None, symbolType="stroke")
    )
    dash = (
        alt.StrokeDash("runtime:N")
        .scale(domain=list(runtimes), range=list(DASHES[: len(runtimes)]))
        .legend(orient="top", title=None)
    )
    tooltip = [
        alt.Tooltip("format:N"),
        alt.Tooltip("runtime:N"),
        alt.Tooltip("rows:Q").title("rows (tokens)"),
        alt.Tooltip("relative:Q").format(".2f").title("cost (passes of one row)"),
    ]
    layers = [
        frame(ENDS, x, y),
        of(LINEAR).mark_line(strokeDash=[4, 4], color=BASELINE, clip=True).encode(x, y),
        of(EDGES).mark_rule(color=BASELINE, opacity=0.5).encode(x),
        of(CURVES).mark_line(strokeWidth=2.5).encode(x, y, colour, dash),
    ]
    if measured:
        layers += _measured(x, y, colour, tooltip)
    time, why = alt.Tooltip("time_ms:Q").format(".2f").title("time (ms)"), alt.Tooltip("cliff:N")
    targets, cliffs = of(CURVES).mark_point(size=60, opacity=0), of(CLIFFS)
    triangles = cliffs.mark_point(shape="triangle-up", filled=True, size=90, opacity=1)
    layers += [
        targets.encode(x, y, tooltip=[*tooltip, time]),
        triangles.encode(x, y, colour, tooltip=[*tooltip, why.title("why")]),
    ]
    return alt.LayerChart(layer=layers, height=HEIGHT)


def _measured(
    x: alt.X, y: alt.Y, colour: alt.Color, tooltip: Sequence[alt.Tooltip]
) -> list[alt.Chart]:
    """What was measured, and a dotted line of the law of what was measured."""
    law = of(POINTS).transform_filter("isValid(datum.predicted)")
    kept_apart = alt.Detail(["what:N", "runtime:N", "source:N"])
    points = of(POINTS).mark_point(size=50, strokeWidth=1.5, opacity=0.9)
    return [
        law.mark_line(strokeDash=[1, 4], strokeWidth=2).encode(
            x, alt.Y("predicted:Q").title(COST), colour, kept_apart
        ),
        points.encode(
            x,
            y,
            colour,
            alt.Shape("kind:N").legend(orient="bottom", title=None),
            tooltip=[
                *tooltip,
                alt.Tooltip("predicted:Q").format(".2f").title("law (passes of one row)"),
                *map(alt.Tooltip, ("kind:N", "what:N", "source:N")),
            ],
        ),
    ]
