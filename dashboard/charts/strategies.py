"""What all charts of strategies share: one row for each on the same axis, and words beside it.

Rows keep the order they are given in. Titles of quantities end in their unit.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import altair as alt

from dashboard.charts.drawing import Row, flat, of

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


def beside(name: str, field: str) -> alt.Chart:
    """A text for each label in a column right of the chart, as an axis: clear of every mark.

    Text marks do not follow the page's light or dark theme; the labels of an axis do.
    """
    axis, rows = NAMES.copy(), f"data('{name}')"
    axis.orient = "right"
    axis.labelExpr = f"{rows}[indexof(pluck({rows}, 'label'), datum.label)]['{field}']"
    return of(name).mark_point(opacity=0).encode(by_strategy(axis))


def layered(*layers: alt.Chart) -> alt.LayerChart:
    """Layers on the same scales, the axis of strategies on either side."""
    return alt.LayerChart(
        layer=list(layers),
        height=alt.Step(ROW_HEIGHT),
        resolve=alt.Resolve(axis=alt.AxisResolveMap(y="independent")),
    )
