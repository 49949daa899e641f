"""A picture in two halves: how it is drawn, built once, and its rows, which a slider changes.

A browser that is given the same chart with other rows moves its marks; given another chart it
compiles it and draws it all anew. So whatever depends on numbers is among the rows: ends of an
axis, words beside it, positions. Only what seldom changes (the names in a legend) shapes a chart.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, fields
from functools import lru_cache
from typing import Any, ParamSpec, TypeAlias, final

import altair as alt

Chart: TypeAlias = alt.Chart | alt.LayerChart
Row: TypeAlias = dict[str, Any]
Shape = ParamSpec("Shape")


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Drawing:
    """A chart and its rows.

    Attributes:
        chart: The Vega-Lite specification as JSON; its data are names.
        rows: Numbers, texts and None by field, under the names of the chart's data.
    """

    chart: str
    rows: Mapping[str, list[Row]]

    def to_dict(self) -> dict[str, Any]:
        """The specification with the rows in it."""
        return {**json.loads(self.chart), "datasets": dict(self.rows)}


def built_once(build: Callable[Shape, Chart]) -> Callable[Shape, str]:
    """A function's chart as JSON, built once for each shape; tests hold it to the schema."""

    @lru_cache(maxsize=32)
    def kept(*shape: Shape.args, **named: Shape.kwargs) -> str:
        return json.dumps(build(*shape, **named).to_dict(validate=False))

    def built(*shape: Shape.args, **named: Shape.kwargs) -> str:
        return kept(*shape, **named)

    return built


def of(name: str) -> alt.Chart:
    """A chart of the rows of that name."""
    return alt.Chart(alt.NamedData(name=name))


def frame(name: str, *axes: alt.X | alt.Y) -> alt.Chart:
    """Marks that nobody sees, at the ends that axes shall reach."""
    return of(name).mark_point(opacity=0, aria=False).encode(*axes)


def flat(records: Iterable[Any]) -> list[Row]:
    """Records as rows; `asdict` would copy every value."""
    found = list(records)
    names = [field.name for field in fields(found[0])] if found else []
    return [{name: getattr(record, name) for name in names} for record in found]
