"""A slider changes rows and leaves charts alone, so that a browser need not draw them anew."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from dashboard.charts.drawing import Drawing
from dashboard.figure import Figure
from dashboard.figures.bottleneck import bottleneck
from dashboard.figures.break_even import BreakEvenSettings, break_even
from dashboard.figures.context import context_memory, context_speed
from dashboard.figures.diffusion import DiffusionSettings, diffusion
from dashboard.figures.layer_skip import SkipSettings, layer_skip
from dashboard.figures.roofline import roofline_figure
from dashboard.figures.row_costs import RowSettings, row_costs
from dashboard.figures.which_trick import which_trick
from dashboard.selection import Selection

FIGURES: dict[str, Callable[[Selection], Figure]] = {
    "which-trick": which_trick,
    "bottleneck": bottleneck,
    "roofline": roofline_figure,
    "break-even": lambda selection: break_even(selection, BreakEvenSettings()),
    "context-speed": context_speed,
    "context-memory": context_memory,
    "row-costs": lambda selection: row_costs(selection, RowSettings()),
    "layer-skip": lambda selection: layer_skip(selection, SkipSettings()),
    "diffusion": lambda selection: diffusion(
        replace(selection, target="llada2.0-mini", draft=""), DiffusionSettings()
    ),
}
OF_THE_DRAFT = ("which-trick", "bottleneck", "roofline", "break-even", "context-speed")
OF_THE_CONTEXT = tuple(FIGURES)


def drawn(name: str, selection: Selection) -> tuple[Drawing, str]:
    figure = FIGURES[name](selection)
    assert figure.chart is not None
    return figure.chart, figure.picture_name


@pytest.mark.parametrize(
    ("name", "before", "after"),
    [
        *(
            (name, Selection(acceptance="0.6"), Selection(acceptance="0.95"))
            for name in OF_THE_DRAFT
        ),
        *((name, Selection(context=1024), Selection(context=2048)) for name in OF_THE_CONTEXT),
        ("context-memory", Selection(memory=36), Selection(memory=64)),
    ],
)
def test_a_slider_changes_rows_alone(name: str, before: Selection, after: Selection) -> None:
    (one, one_shows), (other, other_shows) = drawn(name, before), drawn(name, after)
    assert one.chart == other.chart
    assert one_shows == other_shows
    assert one.rows != other.rows


def test_a_longer_picture_of_row_costs_is_the_same_chart() -> None:
    short, long = (row_costs(Selection(), RowSettings(most=most)).chart for most in (16, 64))
    assert short is not None
    assert long is not None
    assert short.chart == long.chart
    assert short.rows != long.rows


@pytest.mark.parametrize("name", FIGURES)
@pytest.mark.parametrize("acceptance", ["0.6", ""])
def test_a_column_holds_plain_values_of_one_kind(name: str, acceptance: str) -> None:
    for rows in drawn(name, Selection(acceptance=acceptance))[0].rows.values():
        for field in rows[0] if rows else ():
            kinds = {type(row[field]).__name__ for row in rows} - {"NoneType"}
            assert kinds <= {"str"} or kinds <= {"int", "float"}, (field, kinds)
