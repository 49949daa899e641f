"""The palette: a colour means a strategy in every chart, a part of a token's time in one.

Every two of a palette can be told apart with any kind of colour vision (a test computes it), on
white and on black. Most are from Paul Tol's schemes (technical note SRON/EPS/TN/09-002),
vermillion is from Okabe and Ito's. Overheads share a hue; each is a lighter shade.
"""

from __future__ import annotations

import altair as alt

BASELINE = "#888888"

STRATEGY_COLOURS = {
    "plain": BASELINE,
    "speculative": "#D55E00",
    "draft-head": "#EE3377",
    "block-drafter": "#882255",
    "layer-skip": "#117733",
    "prompt-lookup": "#EE8866",
    "diffusion": "#FFAABB",
    "batch": "#0077BB",
    "instead": "#77AADD",
}

PART_COLOURS = {
    "weights": "#4477AA",
    "kv": "#66CCEE",
    "growth": "#C9EDF8",
    "arithmetic": "#CCBB44",
    "draft": STRATEGY_COLOURS["speculative"],  # what drafting adds
    "rejected work": "#5C2900",
    "dispatch": "#AA3377",
    "host": "#C678A8",
    "sync": "#E3B5D0",
}
"""In the order in which they are stacked: reading, arithmetic, drafting, overheads."""


def by_colour(field: str = "strategy:N") -> alt.Color:
    """A colour for each strategy; the labels beside the marks are the legend."""
    domain, colours = list(STRATEGY_COLOURS), list(STRATEGY_COLOURS.values())
    return alt.Color(field).scale(domain=domain, range=colours).legend(None)


SPEEDUP_COLOURS = (
    *("#762A83", "#9970AB", "#C2A5CF"),  # loses
    "#D9D9D9",  # a tie
    *("#ACD39E", "#5AAE61", "#1B7837", "#00441B"),  # wins
)
"""Of maps of speedup, from the slowest step to the fastest: Tol's PRGn."""


SERIES_COLOURS = ("#6699CC", "#BB5566", "#997700", "#DDCC77")
"""Of weight formats and the like, in the order in which they are asked for; no strategy's."""

MEMORY_COLOURS = (
    PART_COLOURS["weights"],
    PART_COLOURS["draft"],
    PART_COLOURS["kv"],
    "#F7B97F",
    PART_COLOURS["dispatch"],
)
"""Of what lies in memory: a target's weights and a draft's, their caches, and buffers."""
