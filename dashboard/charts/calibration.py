"""Constants with their error bars, residuals by rows, and the reference kernel over time."""

from __future__ import annotations

from collections.abc import Sequence

import altair as alt

from dashboard.charts.drawing import Drawing, built_once, flat, of
from dashboard.charts.narrow import NARROW, columns
from dashboard.rows.calibration import ConstantRow, ReferenceRow, ResidualRow
from dashboard.theme import BASELINE

ORIGIN_COLOURS = {
    "measured": "#4477AA",
    "published": "#228833",
    "spec sheet": "#CCBB44",
    "prior": "#CC6677",
}
"""How sure a number can be, from cold to warm."""
PROBE_COLOURS = {
    "linear": "#4477AA",
    "attention": "#66CCEE",
    "layers": "#AA3377",
    "host": "#CCBB44",
}
ROW_HEIGHT = 17
SHORT = f"{NARROW} ? replace(datum.label, /_(bytes_per_)?s$|_per_s$/, '') : datum.label"
"""A phone has no room for the units; the table has them."""
CONSTANTS, SAMPLES, VISITS, EXACT = "constants", "samples", "visits", "exact"


def constants(rows: Sequence[ConstantRow]) -> Drawing:
    """Each constant over its own value in the profile, and the other profile's beside it."""
    drawn = [row for row in rows if row.relative]
    profiles = tuple(dict.fromkeys(row.profile for row in drawn))
    return Drawing(chart=_constants(profiles), rows={CONSTANTS: flat(drawn)})


@built_once
def _constants(profiles: Sequence[str]) -> alt.LayerChart:
    title = "Over its value here (times)"
    compared = len(profiles) > 1
    scale = alt.Scale(type="log") if compared else alt.Scale(zero=False)
    base = of(CONSTANTS)
    name = alt.Y("label:N", sort=None, title=None).axis(
        labelLimit=260,
        labelOverlap=False,
        ticks=False,
        domain=False,
        labelExpr=SHORT,
        labelFlush=False,
    )
    colour = (
        alt.Color("origin:N")
        .scale(domain=list(ORIGIN_COLOURS), range=list(ORIGIN_COLOURS.values()))
        .legend(orient="top", title="Origin", columns=columns(4, 1), symbolOpacity=1)
    )
    tooltip = [
        alt.Tooltip("label:N").title("constant"),
        alt.Tooltip("meaning:N").title("what it is"),
        alt.Tooltip("profile:N"),
        alt.Tooltip("value:Q").format(".4~s").title("value (SI unit)"),
        alt.Tooltip("unit:N"),
        alt.Tooltip("stderr:Q").format(".2~s").title("standard error (SI unit)"),
        alt.Tooltip("origin:N"),
        alt.Tooltip("relative:Q").format(".3g").title("over its value here (times)"),
    ]
    # An interval that reaches 0 has no end on a logarithmic axis.
    whole = base.transform_filter("datum.low > 0")
    interval = whole.mark_rule(strokeWidth=3, opacity=0.5).encode(
        name,
        alt.X("low:Q").scale(scale).title(title).axis(orient="top"),
        alt.X2("high"),
        colour,
        tooltip=tooltip,
    )
    legend = None
    if compared:
        legend = alt.Legend(
            orient="top",
            title="Profile",
            columns=1,
            labelLimit=320,
            symbolFillColor=BASELINE,
            symbolStrokeColor=BASELINE,
        )
    point = base.mark_point(filled=True, opacity=1, size=50).encode(
        name,
        alt.X("relative:Q").scale(scale).title(title).axis(format="~g", orient="top"),
        colour,
        alt.Shape("profile:N")
        .scale(domain=list(profiles), range=["circle", "diamond"][: len(profiles)])
        .legend(legend),
        tooltip=tooltip,
    )
    return alt.LayerChart(layer=[interval, point], height=alt.Step(ROW_HEIGHT))


def residual_points(rows: Sequence[ResidualRow]) -> Drawing:
    """A point for each sample; the dashed line is a prediction without error."""
    return Drawing(chart=_residual_points(), rows={SAMPLES: flat(rows), EXACT: [{"exact": 0.0}]})


@built_once
def _residual_points() -> alt.LayerChart:
    points = (
        of(SAMPLES)
        .mark_point(filled=True, opacity=0.6, size=34)
        .encode(
            alt.X("rows:Q").scale(type="log").axis(format="~s").title("Rows of the pass (tokens)"),
            alt.Y("error_percent:Q").title("Predicted over measured, less one (%)"),
            alt.Color("probe:N")
            .scale(domain=list(PROBE_COLOURS), range=list(PROBE_COLOURS.values()))
            .legend(orient="top", title="Probe"),
            tooltip=[
                alt.Tooltip("probe:N"),
                alt.Tooltip("settings:N"),
                alt.Tooltip("measured_us:Q").format(".4~g").title("measured (us)"),
                alt.Tooltip("predicted_us:Q").format(".4~g").title("predicted (us)"),
                alt.Tooltip("error_percent:Q").format("+.1f").title("error (%)"),
            ],
        )
    )
    exact = (
        of(EXACT)
        .mark_rule(strokeDash=[4, 4], color=BASELINE)
        .encode(alt.Y("exact:Q").title("Predicted over measured, less one (%)"))
    )
    return alt.LayerChart(layer=[exact, points], height=300)


def reference_over_time(rows: Sequence[ReferenceRow]) -> Drawing:
    """One kernel, visited again and again."""
    return Drawing(chart=_reference_over_time(), rows={VISITS: flat(rows)})


@built_once
def _reference_over_time() -> alt.Chart:
    return (
        of(VISITS)
        .properties(height=180)
        .mark_line(point=True, color=PROBE_COLOURS["linear"])
        .encode(
            alt.X("at_min:Q").title("Since the calibration began (min)"),
            alt.Y("time_us:Q").scale(zero=True).title("Reference kernel (us)"),
            tooltip=[
                alt.Tooltip("at_min:Q").format(".1f").title("since it began (min)"),
                alt.Tooltip("time_us:Q").format(".4~g").title("time (us)"),
            ],
        )
    )
