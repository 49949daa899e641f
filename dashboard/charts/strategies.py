"""What all charts of strategies share: one row for each on the same axis, and words beside it.

Rows keep the order they are given in. Titles of quantities end in their unit.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict
from typing import Any

import altair as alt

ROW_HEIGHT = 34
NARROW = "windowSize()[0] < 640"
"""On a phone; a picture that is kept as a file has no window, and is wide."""
NAMES = alt.Axis(labelLimit=240, labelFlush=False, ticks=False, domain=False)


def by_strategy(axis: alt.Axis | None = NAMES) -> alt.Y:
    """The axis that all charts of strategies share: one row for each, in the order of the rows."""
    return alt.Y("label:N", axis=axis, sort=None, title=None).scale(type="band")


def with_texts(texts: Mapping[str, str]) -> alt.Axis:
    """The names, and on a phone below each its text, which has no room beside the chart."""
    axis = NAMES.copy()
    axis.labelExpr = f"{NARROW} ? [datum.label, {_of_label(texts)}] : datum.label"
    axis.labelOffset = alt.ExprRef(expr=f"{NARROW} ? -6 : 0")  # two lines about the middle
    return axis


def _of_label(texts: Mapping[str, str]) -> str:
    return f"({json.dumps(dict(texts))})[datum.label]"


def columns(wide: int, narrow: int) -> alt.ExprRef:
    """Columns of a legend, fewer on a phone."""
    return alt.ExprRef(expr=f"{NARROW} ? {narrow} : {wide}")


def beside(rows: Iterable[Any], texts: Mapping[str, str]) -> alt.Chart:
    """A text for each label in a column right of the chart, as an axis: clear of every mark.

    Text marks do not follow the page's light or dark theme; the labels of an axis do.
    """
    axis = NAMES.copy()
    axis.orient, axis.labelExpr = "right", f"{NARROW} ? '' : {_of_label(texts)}"
    return alt.Chart(inline(rows)).mark_point(opacity=0).encode(by_strategy(axis))


def layered(*layers: alt.Chart) -> alt.LayerChart:
    """Layers on the same scales, the axis of strategies on either side."""
    return alt.LayerChart(
        layer=list(layers),
        height=alt.Step(ROW_HEIGHT),
        resolve=alt.Resolve(axis=alt.AxisResolveMap(y="independent")),
    )


def inline(rows: Iterable[Any]) -> alt.InlineData:
    """Records as the data of a chart, without pandas."""
    return alt.InlineData(values=[asdict(row) for row in rows])
