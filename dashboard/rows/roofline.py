"""The roofline as rows: the passes of strategies, the target's pass row by row, and the roofs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

from model.commands.roofline import Roofline, rows_text
from model.prediction.roofline import PassPoint

PATH = "the target's pass"


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class PassRow:
    """A pass: FLOP per byte, and FLOP/s attained and attainable (None: never seen to bind).

    `strategy` is empty for the target's own pass at other numbers of rows.
    """

    label: str
    strategy: str
    rows: int
    flop_per_byte: float
    flop_per_s: float
    roof_flop_per_s: float | None
    roof: str

    @property
    def in_words(self) -> str:
        """The row for who cannot see the chart."""
        share = ""
        if self.roof_flop_per_s is not None:
            share = f", {100 * self.flop_per_s / self.roof_flop_per_s:.0f} % of its {self.roof}"
        return (
            f"{self.label} {self.rows} rows, {self.flop_per_byte:.2f} FLOP/byte, "
            f"{self.flop_per_s / 1e12:.3f} TFLOP/s{share}"
        )


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class RoofEnd:
    """An end of a straight piece of a kernel's roof in the picture."""

    kernel: str
    flop_per_byte: float
    flop_per_s: float


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class ArrowEnd:
    """An end of the way from plain decoding to a strategy; `width` grows towards the strategy."""

    label: str
    strategy: str
    flop_per_byte: float
    flop_per_s: float
    width: float


def strategy_rows(found: Roofline) -> tuple[PassRow, ...]:
    """The pass of each strategy, plain decoding first."""
    return tuple(_row(each.label, each.strategy, each.point) for each in found.points)


def path_rows(found: Roofline) -> tuple[PassRow, ...]:
    """The target's pass from one row up."""
    return tuple(_row(PATH, "", point) for point in found.path)


def _row(label: str, strategy: str, point: PassPoint) -> PassRow:
    return PassRow(
        label=label,
        strategy=strategy,
        rows=point.rows,
        flop_per_byte=point.intensity,
        flop_per_s=point.attained_flops_per_s,
        roof_flop_per_s=point.roof_flops_per_s,
        roof=f"{point.under.value} roof",
    )


def roof_ends(found: Roofline) -> tuple[RoofEnd, ...]:
    """The roof of every kernel over the intensities of the picture, with the ridge between."""
    shown = [row.flop_per_byte for row in (*strategy_rows(found), *path_rows(found))]
    least, most = min(shown) / 1.5, max(shown) * 1.5
    ends: list[RoofEnd] = []
    for roof in found.roofs:
        bandwidth, flops = roof.bandwidth_bytes_per_s, roof.flops_per_s
        if bandwidth is None and flops is None:
            continue
        corners = [least, most]
        if bandwidth is not None and flops is not None and least < flops / bandwidth < most:
            corners.insert(1, flops / bandwidth)
        kernel = f"kernel for {rows_text(roof)} rows"
        ends += [
            RoofEnd(kernel=kernel, flop_per_byte=corner, flop_per_s=roof.attainable(corner))
            for corner in corners
        ]
    return tuple(ends)


def arrow_ends(rows: tuple[PassRow, ...]) -> tuple[ArrowEnd, ...]:
    """The way from plain decoding to every other strategy."""
    plain, *others = rows
    return tuple(
        ArrowEnd(
            label=other.label,
            strategy=other.strategy,
            flop_per_byte=end.flop_per_byte,
            flop_per_s=end.flop_per_s,
            width=width,
        )
        for other in others
        for end, width in ((plain, 0.5), (other, 5.0))
    )
