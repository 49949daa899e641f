"""A map of speedup over draft length and acceptance, with what is needed and what is had."""

from __future__ import annotations

from collections.abc import Sequence

import altair as alt

from dashboard.charts.drawing import Drawing, built_once, flat, of
from dashboard.rows.break_even import STEP_NAMES, Band, LengthRow
from dashboard.theme import SPEEDUP_COLOURS, STRATEGY_COLOURS

HEIGHT = 440
BANDS, LENGTHS = "bands", "lengths"
INK = "#111111"
"""Marks lie on the map's own colours, which are the same in the light and the dark theme."""


def speedups(map_bands: Sequence[Band], lengths: Sequence[LengthRow]) -> Drawing:
    """The map; a dark line at the acceptance needed, a dot with its range at the one that is had.

    The colours are steps, so that their edges are lines of equal speedup.
    """
    return Drawing(chart=_speedups(), rows={BANDS: flat(map_bands), LENGTHS: flat(lengths)})


@built_once
def _speedups() -> alt.LayerChart:
    length = alt.X("draft_length:O").title("Draft length k (tokens)").axis(labelAngle=0)
    length = length.scale(paddingInner=0.0, paddingOuter=0.0)
    acceptance = "Acceptance (probability)"
    band = (
        of(BANDS)
        .mark_rect(stroke=None)
        .encode(
            length,
            alt.Y("low:Q").title(acceptance).scale(domain=[0.0, 1.0], nice=False),
            alt.Y2("high"),
            alt.Color("speedup:N")
            .title("Speedup (times plain decoding)")
            .scale(domain=list(STEP_NAMES), range=list(SPEEDUP_COLOURS))
            .legend(orient="top", columns=3, titleLimit=300, symbolType="square"),
            tooltip=[
                alt.Tooltip("draft_length:O").title("draft length"),
                alt.Tooltip("low:Q").format(".2f").title("acceptance from (probability)"),
                alt.Tooltip("high:Q").format(".2f").title("acceptance to (probability)"),
                alt.Tooltip("speedup:N").title("speedup (times plain)"),
            ],
        )
    )
    layers = [band, *_needed(length, acceptance), *_had(length, acceptance)]
    return alt.LayerChart(layer=layers, height=HEIGHT)


def _needed(length: alt.X, title: str) -> list[alt.Chart]:
    """A thick line at what is needed, thin ones at the ends of its interval."""
    tooltip = [
        alt.Tooltip("draft_length:O").title("draft length"),
        alt.Tooltip("needed_acceptance:Q").format(".3f").title("acceptance needed (probability)"),
        alt.Tooltip("needed_low:Q").format(".3f").title("90 % from (probability)"),
        alt.Tooltip("needed_high:Q").format(".3f").title("to (probability)"),
        alt.Tooltip("best_speedup:Q").format(".2f").title("speedup at most (times plain)"),
    ]
    drawn = (("needed_low", 1.5), ("needed_high", 1.5), ("needed_acceptance", 4))
    return [
        of(LENGTHS)
        .transform_filter(f"isValid(datum.{name})")
        .mark_tick(orient="horizontal", bandSize=0, thickness=thickness, color=INK, opacity=1)
        .encode(length, alt.Y(f"{name}:Q").title(title), tooltip=tooltip)
        for name, thickness in drawn
    ]


def _had(length: alt.X, title: str) -> list[alt.Chart]:
    base = of(LENGTHS).transform_filter("isValid(datum.your_acceptance)")
    tooltip = [
        alt.Tooltip("draft_length:O").title("draft length"),
        alt.Tooltip("your_acceptance:Q").format(".3f").title("acceptance you have (probability)"),
        alt.Tooltip("your_low:Q").format(".3f").title("from (probability)"),
        alt.Tooltip("your_high:Q").format(".3f").title("to (probability)"),
        alt.Tooltip("your_speedup:Q").format(".2f").title("speedup (times plain)"),
    ]
    bar = base.mark_rule(color=INK, strokeWidth=2).encode(
        length, alt.Y("your_low:Q").title(title), alt.Y2("your_high"), tooltip=tooltip
    )
    dot = base.mark_point(
        filled=True, size=70, opacity=1, color=STRATEGY_COLOURS["speculative"], stroke=INK
    ).encode(length, alt.Y("your_acceptance:Q").title(title), tooltip=tooltip)
    return [bar, dot]
