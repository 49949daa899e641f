"""What all charts of strategies share: one row for each on the same axis, and words beside it.

Rows keep the order they are given in. Titles of quantities end in their unit.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import altair as alt

from dashboard.charts.drawing import Row, flat, of
from dashboard.charts.narrow import NARROW

ROW_HEIGHT = 34
NAMES = alt.Axis(labelLimit=240, labelFlush=False, ticks=False, domain=False)


def in_order(records: Iterable[Any]) -> list[Row]:
    """Records as rows that know their place on the axis of strategies.

    A browser that gets other rows would put a new label below those it has, whatever their order.
    """
    return [{**row, "place": place} for place, row in enumerate(flat(records))]


def by_strategy(axis: alt.Axis | None = NAMES) -> alt.Y:
    """The axis that all charts of strategies share: one row for each, in the order of the rows."""
    order = alt.EncodingSortField(field="place", op="min", order="ascending")
    return alt.Y("label:N", axis=axis, sort=order, title=None).scale(type="band")


def with_texts(name: str, field: str) -> alt.Axis:
    """The names, and on a phone below each its text, which has no room beside the chart."""
    axis = NAMES.copy()
    axis.labelExpr = f"{NARROW} ? [datum.label, {_of_label(name, field)}] : datum.label"
    axis.labelOffset = alt.ExprRef(expr=f"{NARROW} ? -6 : 0")  # two lines about the middle
    return axis


def beside(name: str, field: str) -> alt.Chart:
    """A text for each label in a column right of the chart, as an axis: clear of every mark.

    Text marks do not follow the page's light or dark theme; the labels of an axis do.
    """
    axis = NAMES.copy()
    axis.orient, axis.labelExpr = "right", f"{NARROW} ? '' : {_of_label(name, field)}"
    return of(name).mark_point(opacity=0).encode(by_strategy(axis))


def _of_label(name: str, field: str) -> str:
    """The field of the row that has an axis' label: an expression of Vega."""
    rows = f"data('{name}')"
    return f"{rows}[indexof(pluck({rows}, 'label'), datum.label)]['{field}']"


def layered(*layers: alt.Chart) -> alt.LayerChart:
    """Layers on the same scales, the axis of strategies on either side."""
    return alt.LayerChart(
        layer=list(layers),
        height=alt.Step(ROW_HEIGHT),
        resolve=alt.Resolve(axis=alt.AxisResolveMap(y="independent")),
    )
