"""The break-even view: the command's own numbers, bands that cover the map, and clear refusals."""

from __future__ import annotations

import json
import shlex
from itertools import groupby, pairwise
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

import tokroof
from dashboard.drafts import drafts_for
from dashboard.figures.break_even import BreakEvenSettings, break_even
from dashboard.rows.break_even import STEP_NAMES, bands, needed_text
from dashboard.selection import Selection
from model.errors import InputError

APP = Path(__file__).parent.parent.parent / "dashboard" / "app.py"


def opened(**settings: str) -> AppTest:
    """The view as a link with these settings opens it."""
    app = AppTest.from_file(str(APP), default_timeout=60)
    for key, value in settings.items():
        app.query_params[key] = value
    return app.run().switch_page("views/break_even.py").run()


def test_its_numbers_are_the_commands(capsys: pytest.CaptureFixture[str]) -> None:
    figure = break_even(Selection(), BreakEvenSettings(spread=0.05))
    assert tokroof.main([*shlex.split(figure.command.text)[1:], "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    speedups = [speedup for row in document["map"] for speedup in row["speedups"]]
    assert [row.speedup for row in figure.rows] == speedups
    best = document["best"]["draft_length"]
    [had] = [each for each in document["have"] if each["draft_length"] == best]
    [row] = [each for each in document["break_even"] if each["draft_length"] == best]
    needed = needed_text(row["break_even_acceptance"], row["needed_low"], row["needed_high"])
    assert f"You have {had['acceptance']:.2f} ± 0.05, you need {needed}" in figure.sentence
    drawn = {cell.draft_length: (cell.needed_low, cell.needed_high) for cell in figure.rows}
    assert drawn == {
        each["draft_length"]: (each["needed_low"], each["needed_high"])
        for each in document["break_even"]
    }


def test_where_what_is_had_and_what_is_needed_overlap_it_says_so() -> None:
    near = break_even(Selection(acceptance="0.4"), BreakEvenSettings())
    sure = break_even(Selection(acceptance="0.9"), BreakEvenSettings())
    assert "may win or lose" in near.sentence
    assert "may win or lose" not in sure.sentence


def test_the_bands_of_a_length_cover_all_acceptances_and_hold_every_cell() -> None:
    cells = break_even(Selection(), BreakEvenSettings()).rows
    edges = [float(name.split()[-1]) for name in STEP_NAMES[:-1]]
    drawn = bands(cells)
    for length, of_length in groupby(drawn, key=lambda band: band.draft_length):
        found = list(of_length)
        assert (found[0].low, found[-1].high) == (0.0, 1.0)
        for below, above in pairwise(found):
            assert below.high == above.low
            assert below.speedup != above.speedup
        for cell in cells:
            if cell.draft_length == length:
                names = {b.speedup for b in found if b.low <= cell.acceptance <= b.high}
                assert STEP_NAMES[sum(cell.speedup >= edge for edge in edges)] in names


def test_published_acceptances_stand_in_and_where_there_are_none_it_says_so() -> None:
    published = break_even(Selection(task="mixed", acceptance=""), BreakEvenSettings())
    assert "--task mixed" in published.command.text
    assert "You have" in published.sentence
    without = break_even(Selection(task="code", acceptance=""), BreakEvenSettings(spread=0.1))
    assert "--task" not in without.command.text
    assert "You need" in without.sentence
    assert any("tasks that have one" in line for line in without.cautions)


def test_where_no_acceptance_wins_it_says_so() -> None:
    alike = Selection(target="llama-3.2-1b", target_format="4bit", draft_format="bf16")
    figure = break_even(alike, BreakEvenSettings(longest=4))
    assert "No acceptance makes llama-3.2-1b pay" in figure.sentence


def test_a_longer_map_keeps_the_shorter_one() -> None:
    short = break_even(Selection(), BreakEvenSettings(longest=4)).rows
    long = break_even(Selection(), BreakEvenSettings(longest=8)).rows
    assert [row for row in long if row.draft_length <= 4] == list(short)


@pytest.mark.parametrize(
    ("selection", "says"),
    [
        (Selection(draft=""), "choose one under Draft: llama-3.2-1b, llama-3.2-3b"),
        (Selection(draft="qwen3-0.6b"), "vocabulary"),
        (Selection(target="qwen3-14b", draft="qwen3-8b"), "does not fit"),
        (Selection(task="code", target="qwen3-14b", draft="qwen3-8b"), "does not fit"),
    ],
)
def test_a_draft_that_cannot_be_is_refused(selection: Selection, says: str) -> None:
    with pytest.raises(InputError, match=says):
        break_even(selection, BreakEvenSettings())


def test_drafts_are_named_by_size_and_speak_the_targets_tokens() -> None:
    assert drafts_for("llama-3.1-8b") == ("llama-3.2-1b", "llama-3.2-3b")
    assert drafts_for("smollm2-135m") == ()


def test_the_view_opens_with_a_links_settings() -> None:
    app = opened(acceptance="0.8")
    assert not app.exception
    assert app.header[0].value.startswith("Break-even")
    expected = break_even(Selection(acceptance="0.8"), BreakEvenSettings())
    assert app.markdown[0].value == expected.sentence
    app.slider(key="spread").set_value(0.1).run()
    assert "You have 0.80 ± 0.10" in app.markdown[0].value


@pytest.mark.parametrize("settings", [{"draft": "none"}, {"draft": "qwen3-0.6b"}])
def test_a_refusal_is_one_message_and_no_chart(settings: dict[str, str]) -> None:
    app = opened(**settings)
    assert not app.exception
    assert len(app.error) == 1
    assert not app.get("vega_lite_chart")


def test_a_link_with_settings_that_cannot_be_opens_on_the_usual_ones() -> None:
    app = opened(longest="7", spread="much")
    assert not app.exception
    assert len(app.get("vega_lite_chart")) == 1
