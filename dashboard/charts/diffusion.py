"""The speed of denoising over the length of the answer, a line for each progress."""

from __future__ import annotations

from collections.abc import Sequence

import altair as alt

from dashboard.charts.drawing import Drawing, built_once, flat, of
from dashboard.rows.plans import DiffusionRow
from dashboard.theme import BASELINE

RAMP = ("#4A7BB7", "#6EA6CD", "#CC9933", "#F67E4B", "#C02A1D")
"""From cold to hot, after Paul Tol's sunset; dashes and shapes say the same."""
HEIGHT = 380
ANSWERS, RIVAL = "answers", "rival"


def answer_speeds(rows: Sequence[DiffusionRow]) -> Drawing:
    """A line for each number of tokens fixed in a pass; the dashed line is the rival."""
    return Drawing(chart=_answer_speeds(), rows={ANSWERS: flat(rows), RIVAL: flat(rows[:1])})


@built_once
def _answer_speeds() -> alt.LayerChart:
    speed = "Speed (tok/s)"
    fixed = alt.Legend(title="Tokens fixed in a pass", orient="top")
    log = alt.Scale(type="log", nice=False)
    lines = (
        of(ANSWERS)
        .mark_line(point=alt.OverlayMarkDef(size=50, filled=True), strokeWidth=2)
        .encode(
            alt.X("answer_tokens:Q").scale(log).axis(format="~s").title("Answer (tokens)"),
            alt.Y("tokens_per_s:Q").scale(log).axis(format="~g").title(speed),
            alt.Color("committed_per_pass:O").scale(range=list(RAMP)).legend(fixed),
            tooltip=[
                alt.Tooltip("answer_tokens:Q").title("answer (tokens)"),
                alt.Tooltip("committed_per_pass:Q").title("fixed in a pass (tokens)"),
                alt.Tooltip("tokens_per_s:Q").format(".1f").title("speed (tok/s)"),
                alt.Tooltip("speedup:Q").format(".2f").title("against the rival (times)"),
                alt.Tooltip("tokens_per_pass:Q").format(".2f").title("useful in a pass (tokens)"),
                alt.Tooltip("needed_per_pass:Q").format(".1f").title("needed to tie (tokens)"),
                alt.Tooltip("passes:Q").format(".1f").title("passes (count)"),
            ],
        )
    )
    rival = (
        of(RIVAL)
        .mark_rule(strokeDash=[4, 4], strokeWidth=2, color=BASELINE)
        .encode(alt.Y("rival_tokens_per_s:Q").title(speed))
    )
    return alt.LayerChart(layer=[rival, lines], height=HEIGHT)
