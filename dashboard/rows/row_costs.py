"""The cost of a pass by its rows: curves, and measured points beside them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

from calibrate.commands.rows import PricedRows, Series
from calibrate.row_points import same_series

LAW = "predicted pass"


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class RowCost:
    """What some rows cost in passes of one row: predicted, or measured of what and by whom.

    `predicted` is what the law says of a measured matrix, `cliff`
    says why the row costs far more than those before it; empty where it does not.
    """

    format: str
    runtime: str
    rows: int
    relative: float
    predicted: float | None
    time_ms: float | None
    kind: str
    what: str
    cliff: str
    source: str


def cost_rows(priced: PricedRows) -> tuple[RowCost, ...]:
    """Every curve's rows, the main curve first, and the measured points."""
    predicted = [row for series in priced.series for row in _curve(series)]
    measured = [
        RowCost(
            format=point.format,
            runtime=_series_of(point.runtime, priced),
            rows=point.rows,
            relative=point.relative,
            predicted=point.predicted,
            time_ms=None,
            kind=f"measured {point.kind}",
            what=point.what,
            cliff="",
            source=point.source,
        )
        for point in priced.points
    ]
    return (*predicted, *measured)


def _curve(series: Series) -> list[RowCost]:
    why = {cliff.row: cliff.reason for cliff in series.curve.cliffs}
    return [
        RowCost(
            format=series.format,
            runtime=series.runtime,
            rows=rows,
            relative=relative,
            predicted=None,
            time_ms=1e3 * seconds,
            kind=LAW,
            what="",
            cliff=why.get(rows, ""),
            source="",
        )
        for rows, (relative, seconds) in enumerate(
            zip(series.curve.relative, series.curve.seconds, strict=True), start=1
        )
    ]


def _series_of(runtime: str, priced: PricedRows) -> str:
    """The runtime of a curve as it is written there."""
    return next(each.runtime for each in priced.series if same_series(each.runtime, runtime))
