"""The view of rows: the command's own numbers, every cliff marked, other settings beside it."""

from __future__ import annotations

import json
import shlex
from dataclasses import replace
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

import tokroof
from dashboard.figures.row_costs import RowSettings, row_costs
from dashboard.rows.row_costs import LAW
from dashboard.selection import Selection
from model.errors import InputError
from model.machine.profile_store import named_profile

APP = Path(__file__).parent.parent.parent / "dashboard" / "app.py"
M3_MAX = Selection(machine="m3-max-40core-mlx-0.32")


def opened(**settings: str) -> AppTest:
    """The view as a link with these settings opens it."""
    app = AppTest.from_file(str(APP), default_timeout=60)
    for key, value in settings.items():
        app.query_params[key] = value
    return app.run().switch_page("views/row_costs.py").run()


def test_its_numbers_are_the_commands(capsys: pytest.CaptureFixture[str]) -> None:
    figure = row_costs(M3_MAX, RowSettings(formats=("bf16",), runtimes=("mlx-0.30",), most=16))
    assert tokroof.main([*shlex.split(figure.command.text)[1:], "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    curves = [row["relative"] for curve in document["curves"] for row in curve["rows"]]
    assert [row.relative for row in figure.rows if row.kind == LAW] == curves
    points = [point["relative"] for point in document["measured"]]
    assert [row.relative for row in figure.rows if row.kind != LAW] == points
    assert points
    cliffs = [(row.format, row.runtime, row.rows) for row in figure.rows if row.cliff]
    assert cliffs == [
        (curve["format"], curve["runtime"], cliff["row"])
        for curve in document["curves"]
        for cliff in curve["cliffs"]
    ]


def test_the_sentence_names_the_cheap_rows_and_the_cliff() -> None:
    figure = row_costs(Selection(target_format="8bit"), RowSettings())
    by_rows = {row.rows: row.relative for row in figure.rows}
    assert f"A pass of 5 rows costs {by_rows[5]:.2f} times a pass of one" in figure.sentence
    assert f"the 6th row adds {by_rows[6] - by_rows[5]:.2f}" in figure.sentence
    assert "up to 4 draft tokens are cheap" in figure.sentence
    assert "a tile is added" in figure.sentence
    assert f"10 ({by_rows[10]:.2f})" in figure.sentence


def test_where_each_row_costs_alike_there_is_no_cliff() -> None:
    figure = row_costs(Selection(runtime="mlx-0.30"), RowSettings(most=16))
    assert "No row costs far more than those before it, up to 16 rows" in figure.sentence


def test_what_is_not_in_the_picture_is_said() -> None:
    cautions = row_costs(Selection(machine="h200-mlx-0.32.4"), RowSettings()).cautions
    planned_s = float(named_profile("h200-mlx-0.32.4").machine.host.reshape_s)
    assert any(f"costs the host {1e3 * planned_s:.1f} ms more" in line for line in cautions)
    alone = row_costs(Selection(), RowSettings()).cautions
    assert any("nobody measured rows" in line for line in alone)


def test_a_batch_is_priced_as_a_batch_and_memory_says_what_fits(
    capsys: pytest.CaptureFixture[str],
) -> None:
    selection = Selection(batch=4, memory=24, target_format="4bit")
    figure = row_costs(selection, RowSettings(formats=("bf16",), most=8))
    assert tokroof.main([*shlex.split(figure.command.text)[1:], "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["batch"] == 4
    curves = [row["relative"] for curve in document["curves"] for row in curve["rows"]]
    assert [row.relative for row in figure.rows] == curves
    alone = row_costs(replace(selection, batch=1), RowSettings(formats=("bf16",), most=8))
    assert [row.relative for row in alone.rows] != curves
    assert "4 sequences side by side" in figure.where
    small = row_costs(replace(selection, memory=16), RowSettings(formats=("bf16",), most=8))
    assert any("bf16 does not fit" in line for line in small.cautions)
    assert not any("does not fit" in line for line in figure.cautions)


def test_the_view_opens_with_a_links_settings() -> None:
    app = opened(target_format="8bit", most="16")
    assert not app.exception
    assert app.header[0].value == "What does checking more tokens cost?"
    settings = RowSettings(formats=("4bit", "8bit", "bf16"), most=16)
    assert app.markdown[0].value == row_costs(Selection(target_format="8bit"), settings).sentence


@pytest.mark.parametrize(
    "settings", [{"runtimes": "mlx-9.9"}, {"formats": "9bit"}, {"most": "5"}, {"draft": "none"}]
)
def test_a_link_with_settings_that_cannot_be_opens_on_the_usual_ones(
    settings: dict[str, str],
) -> None:
    app = opened(**settings)
    assert not app.exception
    assert len(app.get("vega_lite_chart")) == 1


def test_a_target_that_is_not_known_is_refused() -> None:
    with pytest.raises(InputError, match="did you mean llama"):
        row_costs(Selection(target="lama-3.1-8b"), RowSettings())
