"""What a chart does without on a phone: the browser decides, so that it is the same chart."""

from __future__ import annotations

import altair as alt

NARROW = "width > 0 && windowSize()[0] < 640"
"""On a phone; a picture that is kept as a file has no window, and is wide.

A browser asks again when the chart's width changes, as this is named here, so when a window does.
"""


def columns(wide: int, narrow: int) -> alt.ExprRef:
    """Columns of a legend, fewer on a phone."""
    return alt.ExprRef(expr=f"{NARROW} ? {narrow} : {wide}")
