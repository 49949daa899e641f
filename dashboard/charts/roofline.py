"""The roofline: what could be computed at an intensity, and what the strategies' passes do."""

from __future__ import annotations

from collections.abc import Sequence

import altair as alt

from dashboard.charts.strategies import columns, inline
from dashboard.rows.roofline import ArrowEnd, PassRow, RoofEnd
from dashboard.theme import BASELINE, STRATEGY_COLOURS

HEIGHT = 520
DASHES = ([1, 0], [6, 3], [2, 2], [8, 3, 2, 3])
INTENSITY, RATE = "Arithmetic intensity (FLOP/byte)", "Arithmetic done (FLOP/s)"


def roofline(
    strategies: Sequence[PassRow],
    path: Sequence[PassRow],
    roofs: Sequence[RoofEnd],
    arrows: Sequence[ArrowEnd],
) -> alt.LayerChart:
    """Grey lines: roofs by kernel. Thin line: the target's pass. Dots: strategies' passes."""
    x = alt.X("flop_per_byte:Q").title(INTENSITY).scale(type="log", nice=False)
    rates = [each.flop_per_s for each in (*strategies, *path, *roofs)]
    y = alt.Y("flop_per_s:Q").title(RATE)
    y = y.scale(type="log", nice=False, domain=[min(rates) / 1.2, 1.4 * max(rates)])
    x, y = x.axis(format="~s", tickCount=6), y.axis(format="~s", tickCount=5)
    names = list(dict.fromkeys(row.strategy for row in strategies))
    colour = (
        alt.Color("strategy:N")
        .scale(domain=names, range=[STRATEGY_COLOURS[name] for name in names])
        .legend(
            orient="top", title=None, symbolType="circle", columns=columns(4, 3), symbolOpacity=1
        )
    )
    tooltip = [
        alt.Tooltip("label:N").title("pass"),
        alt.Tooltip("rows:Q").title("rows (tokens)"),
        alt.Tooltip("flop_per_byte:Q").format(".2f").title("intensity (FLOP/byte)"),
        alt.Tooltip("flop_per_s:Q").format(".3s").title("done (FLOP/s)"),
        alt.Tooltip("roof_flop_per_s:Q").format(".3s").title("attainable (FLOP/s)"),
        alt.Tooltip("roof:N"),
    ]
    walked = alt.Chart(inline(path))
    layers = [
        walked.mark_line(color=BASELINE, strokeWidth=1).encode(x, y, alt.Order("rows:Q")),
        walked.mark_point(color=BASELINE, filled=True, size=10, opacity=0.8).encode(
            x, y, tooltip=tooltip
        ),
    ]
    if roofs:
        kernels = list(dict.fromkeys(end.kernel for end in roofs))
        dash = alt.StrokeDash("kernel:N").scale(domain=kernels, range=list(DASHES[: len(kernels)]))
        layers.append(
            alt.Chart(inline(roofs))
            .mark_line(color=BASELINE, strokeWidth=2.5)
            .encode(
                x,
                y,
                dash.legend(orient="bottom", title=None, columns=1, labelLimit=240),
                tooltip=[
                    alt.Tooltip("kernel:N"),
                    alt.Tooltip("flop_per_s:Q").format(".3s").title("attainable (FLOP/s)"),
                ],
            )
        )
    if arrows:
        layers.append(
            alt.Chart(inline(arrows))
            .mark_trail(opacity=0.5)
            .encode(
                x,
                y,
                alt.Detail("label:N"),
                colour,
                alt.Size("width:Q").scale(None).legend(None),
                alt.Order("width:Q"),
            )
        )
    dots = alt.Chart(inline(strategies)).mark_point(filled=True, size=130, opacity=1)
    layers.append(dots.encode(x, y, colour, tooltip=tooltip))
    return alt.LayerChart(layer=layers, height=HEIGHT)
