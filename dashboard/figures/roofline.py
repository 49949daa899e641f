"""Roofline: which roof each strategy's pass is under, and how close it comes."""

from __future__ import annotations

from dataclasses import replace

from dashboard.answers import once
from dashboard.charts.roofline import roofline as drawn
from dashboard.figure import Figure, in_words
from dashboard.rows.roofline import PassRow, arrow_ends, path_rows, roof_ends, strategy_rows
from dashboard.rows.strategies import cautions, place
from dashboard.selection import Selection
from model.commands.roofline import Roofline, add_arguments, roofline
from model.cost.forward import Bound
from model.units import GB

TERA = 1e12
HELD_BY = {
    f"{Bound.MEMORY.value} roof": "memory",
    f"{Bound.COMPUTE.value} roof": "arithmetic",
    f"{Bound.OVERHEAD.value} roof": "overhead",
}
NOT_COMPARED = ("plain", "instead")
"""Another network has another pass, and does not move along this one's."""


@once
def roofline_figure(selection: Selection) -> Figure:
    """The figure of a selection.

    Raises:
        InputError: as predicting it does.
    """
    command = replace(selection.predict(), name="roofline")
    found = roofline(command.options(add_arguments))
    strategies, path = strategy_rows(found), path_rows(found)
    return Figure(
        name="roofline",
        sentence=sentence(found, strategies),
        chart=drawn(strategies, path, roof_ends(found), arrow_ends(strategies)),
        alternative=in_words("Passes under their roofs", [row.in_words for row in strategies]),
        reading="Thick grey lines: the most that a kernel could do for the matrices that hold most "
        "weights; it rises with the bandwidth until its arithmetic is the ceiling. Thin grey line: "
        "the target's pass from 1 row up. Dots: the pass that commits a strategy's tokens; the "
        "trail widens from plain decoding to it. Making the guesses is not in the picture.",
        rows=(*strategies, *path),
        command=command,
        where=place(found.answer),
        cautions=cautions(found.answer),
    )


def sentence(found: Roofline, strategies: tuple[PassRow, ...]) -> str:
    """How far plain decoding is below its roof, and where the strategies go."""
    plain, *others = strategies
    said = [f"**A plain pass is held back by {HELD_BY[plain.roof]}: it does {of_roof(plain)}**"]
    roof = found.roofs[0]
    if roof.bandwidth_bytes_per_s is not None and roof.flops_per_s is not None:
        ridge = roof.flops_per_s / roof.bandwidth_bytes_per_s
        said[0] += (
            f" at {plain.flop_per_byte:.1f} FLOP per byte read. With "
            f"{roof.bandwidth_bytes_per_s / GB:.0f} GB/s, arithmetic holds its kernel back from "
            f"{ridge:.1f} on"
        )
    said[0] += "."
    moved = [row for row in others if row.strategy not in NOT_COMPARED]
    said += [
        f"{row.label[0].upper()}{row.label[1:]} has passes of {row.rows} rows, at "
        f"{row.flop_per_byte:.1f} FLOP per byte, and does {of_roof(row)}."
        for row in moved
    ]
    return " ".join(said)


def of_roof(row: PassRow) -> str:
    """What a pass does, and the share of its roof that this is."""
    done = f"{row.flop_per_s / TERA:.2f} TFLOP/s"
    if row.roof_flop_per_s is None:
        return done
    return f"{done}, {100 * row.flop_per_s / row.roof_flop_per_s:.0f} % of its {row.roof}"
