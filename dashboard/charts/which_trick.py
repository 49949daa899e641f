"""Every strategy on one axis of speed, with its interval, or with the range it could reach."""

from __future__ import annotations

from collections.abc import Sequence

import altair as alt

from dashboard.charts.drawing import Drawing, built_once, of
from dashboard.charts.strategies import beside, by_strategy, in_order, layered, with_texts
from dashboard.rows.strategies import StrategyRow
from dashboard.theme import BASELINE, by_colour

SPEED = "Output tokens per second (tok/s)"
ROWS = "strategies"


def speeds(rows: Sequence[StrategyRow]) -> Drawing:
    """A dot and its 90 % interval where a speed is predicted, a dashed range where it is not.

    The dashed line is plain decoding. What does not fit has no mark, and stands at the bottom.
    """
    fitting_first = sorted(rows, key=lambda row: row.low_tokens_per_s is None)
    return Drawing(chart=_speeds(), rows={ROWS: in_order(fitting_first)})


@built_once
def _speeds() -> alt.LayerChart:
    base = of(ROWS)
    speed = alt.X("tokens_per_s:Q").title(SPEED).scale(zero=True)
    tooltip = [
        alt.Tooltip("label:N").title("strategy"),
        alt.Tooltip("tokens_per_s:Q").format(".1f").title("speed (tok/s)"),
        alt.Tooltip("low_tokens_per_s:Q").format(".1f").title("from (tok/s)"),
        alt.Tooltip("high_tokens_per_s:Q").format(".1f").title("to (tok/s)"),
        alt.Tooltip("verdict:N"),
    ]
    predicted = base.transform_filter("isValid(datum.tokens_per_s)")
    interval = predicted.mark_rule(strokeWidth=4, strokeCap="round", opacity=0.45).encode(
        by_strategy(None),
        alt.X("low_tokens_per_s:Q").title(SPEED),
        alt.X2("high_tokens_per_s"),
        by_colour(),
        tooltip=tooltip,
    )
    estimate = predicted.mark_point(filled=True, size=110, opacity=1).encode(
        by_strategy(with_texts(ROWS, "verdict")), speed, by_colour(), tooltip=tooltip
    )
    unknown = base.transform_filter(
        "!isValid(datum.tokens_per_s) && isValid(datum.low_tokens_per_s)"
    )
    reach = unknown.mark_rule(strokeWidth=2, strokeDash=[2, 4]).encode(
        by_strategy(None),
        alt.X("low_tokens_per_s:Q").title(SPEED),
        alt.X2("high_tokens_per_s"),
        by_colour(),
        tooltip=[tooltip[0], *tooltip[2:]],  # it has no speed
    )
    first = base.transform_filter("datum.strategy == 'plain'")
    plain = first.mark_rule(strokeDash=[4, 4], color=BASELINE).encode(
        alt.X("tokens_per_s:Q").title(SPEED)
    )
    return layered(plain, interval, reach, estimate, beside(ROWS, "verdict"))
