"""The palette: a colour means a strategy in every chart, a part of a token's time in one.

Every two of a palette can be told apart with any kind of colour vision (a test computes it), on
white and on black. Most are from Paul Tol's "bright" scheme (technical note SRON/EPS/TN/09-002),
vermillion is from Okabe and Ito's. Overheads share a hue; each is a lighter shade.
"""

from __future__ import annotations

BASELINE = "#888888"

STRATEGY_COLOURS = {"plain": BASELINE, "speculative": "#D55E00"}

PART_COLOURS = {
    "weights": "#4477AA",
    "kv": "#66CCEE",
    "growth": "#C9EDF8",
    "arithmetic": "#CCBB44",
    "draft": STRATEGY_COLOURS["speculative"],  # what speculation adds
    "dispatch": "#AA3377",
    "host": "#C678A8",
    "sync": "#E3B5D0",
}
"""In the order in which they are stacked: reading, arithmetic, drafting, overheads."""
