"""The roofline: what could be computed at an intensity, and what the strategies' passes do."""

from __future__ import annotations

from collections.abc import Sequence

import altair as alt

from dashboard.charts.drawing import Drawing, built_once, flat, frame, of
from dashboard.charts.narrow import columns
from dashboard.rows.roofline import ArrowEnd, PassRow, RoofEnd
from dashboard.theme import BASELINE, STRATEGY_COLOURS

HEIGHT = 520
PASSES, PATH, ROOFS, ARROWS, ENDS = "passes", "path", "roofs", "arrows", "ends"
DASHES = ([1, 0], [6, 3], [2, 2], [8, 3, 2, 3])
INTENSITY, RATE = "Arithmetic intensity (FLOP/byte)", "Arithmetic done (FLOP/s)"


def roofline(
    strategies: Sequence[PassRow],
    path: Sequence[PassRow],
    roofs: Sequence[RoofEnd],
    arrows: Sequence[ArrowEnd],
) -> Drawing:
    """Grey lines: roofs by kernel. Thin line: the target's pass. Dots: strategies' passes."""
    rates = [each.flop_per_s for each in (*strategies, *path, *roofs)]
    names = dict.fromkeys(row.strategy for row in strategies)
    kernels = dict.fromkeys(end.kernel for end in roofs)
    return Drawing(
        chart=_roofline(tuple(names), tuple(kernels)),
        rows={
            PASSES: flat(strategies),
            PATH: flat(path),
            ROOFS: flat(roofs),
            ARROWS: flat(arrows),
            ENDS: [{"flop_per_s": end} for end in (min(rates) / 1.2, 1.4 * max(rates))],
        },
    )


@built_once
def _roofline(names: Sequence[str], kernels: Sequence[str]) -> alt.LayerChart:
    x = alt.X("flop_per_byte:Q").title(INTENSITY).scale(type="log", nice=False)
    y = alt.Y("flop_per_s:Q").title(RATE).scale(type="log", nice=False)
    x, y = x.axis(format="~s", tickCount=6), y.axis(format="~s", tickCount=5)
    colour = (
        alt.Color("strategy:N")
        .scale(domain=list(names), range=[STRATEGY_COLOURS[name] for name in names])
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
    walked = of(PATH)
    layers = [
        frame(ENDS, y),
        walked.mark_line(color=BASELINE, strokeWidth=1).encode(x, y, alt.Order("rows:Q")),
        walked.mark_point(color=BASELINE, filled=True, size=10, opacity=0.8).encode(
            x, y, tooltip=tooltip
        ),
    ]
    if kernels:
        dash = alt.StrokeDash("kernel:N")
        dash = dash.scale(domain=list(kernels), range=list(DASHES[: len(kernels)]))
        layers.append(
            of(ROOFS)
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
    width = alt.Size("width:Q").scale(None).legend(None)
    trail = of(ARROWS).mark_trail(opacity=0.5)
    dots = of(PASSES).mark_point(filled=True, size=130, opacity=1)
    layers += [
        trail.encode(x, y, alt.Detail("label:N"), colour, width, alt.Order("width:Q")),
        dots.encode(x, y, colour, tooltip=tooltip),
    ]
    return alt.LayerChart(layer=layers, height=HEIGHT)
