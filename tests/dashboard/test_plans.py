"""The planners' pictures hold the numbers of `tokroof plan`, and say what cannot be planned."""

from __future__ import annotations

import json
import shlex
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest
from streamlit.testing.v1 import AppTest

import tokroof
from dashboard.figure import Figure
from dashboard.figures.diffusion import DiffusionSettings, denoisers, denoises, diffusion
from dashboard.figures.layer_skip import SkipSettings, layer_skip
from dashboard.presets import NO_DRAFT, PRESETS
from dashboard.selection import Selection
from model.errors import InputError

APP = str(Path(__file__).parent.parent.parent / "dashboard" / "app.py")
LLADA = Selection(target="llada2.0-mini", draft="")


def plan(figure: Figure, capsys: pytest.CaptureFixture[str]) -> list[dict[str, Any]]:
    """What the figure's command prints."""
    assert tokroof.main([*shlex.split(figure.command.text)[1:], "--json"]) == 0
    return json.loads(capsys.readouterr().out)["plan"]


def test_layer_skip_is_the_command_line_s(capsys: pytest.CaptureFixture[str]) -> None:
    figure = layer_skip(Selection(), SkipSettings(measured="0.25=0.7,0.5=0.06"))
    rows = [asdict(row) for row in figure.rows]
    for row in rows:
        row["skip_fraction"] = row.pop("skipped_percent") / 100.0
    assert rows == plan(figure, capsys)


def test_a_cell_that_no_acceptance_wins_is_at_most_a_tie() -> None:
    rows = layer_skip(Selection(), SkipSettings()).rows
    assert all((row.needed_acceptance is None) == (row.speedup_at_most <= 1.0) for row in rows)
    assert all(row.speedup is None for row in rows)


def test_acceptances_that_were_measured_give_a_speedup_below_the_most() -> None:
    figure = layer_skip(Selection(), SkipSettings(measured="0.125=0.8,0.25=0.7"))
    known = [row for row in figure.rows if row.speedup is not None]
    assert {row.skipped_percent for row in known} == {6.25, 12.5, 18.75, 25.0}
    assert all(row.speedup < row.speedup_at_most for row in known)
    assert "With the measured acceptances" in figure.sentence


def test_a_machine_where_more_rows_cost_more_says_no() -> None:
    figure = layer_skip(Selection(machine="m1-8core-mlx-0.32"), SkipSettings())
    winnable = any(row.needed_acceptance is not None for row in figure.rows)
    assert figure.sentence.startswith("**No:") is not winnable


@pytest.mark.parametrize("measured", ["0.25", "0.25=x", "2=0.5", "0.5=2", "=", ","])
def test_a_measured_point_that_cannot_be_is_one_message(measured: str) -> None:
    with pytest.raises(InputError):
        layer_skip(Selection(), SkipSettings(measured=measured))


def test_diffusion_is_the_command_line_s(capsys: pytest.CaptureFixture[str]) -> None:
    figure = diffusion(LLADA, DiffusionSettings(cached=True, rival="qwen3-4b"))
    assert "--block-cache" in figure.command.text
    rows = [asdict(row) for row in figure.rows]
    for row in rows:
        assert row.pop("speedup") == row["tokens_per_s"] / row["rival_tokens_per_s"]
    assert rows == plan(figure, capsys)


def test_more_tokens_fixed_in_a_pass_are_never_slower() -> None:
    rows = diffusion(LLADA, DiffusionSettings()).rows
    for tokens in {row.answer_tokens for row in rows}:
        speeds = [row.tokens_per_s for row in rows if row.answer_tokens == tokens]
        assert speeds == sorted(speeds)


def test_a_row_above_the_tie_is_one_faster_than_the_rival() -> None:
    for row in diffusion(LLADA, DiffusionSettings()).rows:
        assert (row.speedup > 1.0) == (row.tokens_per_pass > row.needed_per_pass)


def test_answers_stop_where_the_target_s_context_does() -> None:
    full = Selection(target="llada-8b", draft="", context=4000)
    longest = max(row.answer_tokens for row in diffusion(full, DiffusionSettings()).rows)
    assert longest == 64


def test_a_target_that_is_no_diffusion_model_is_told_apart() -> None:
    assert denoises(LLADA)
    assert not denoises(Selection())
    with pytest.raises(InputError, match="is no diffusion model"):
        diffusion(Selection(), DiffusionSettings())


def test_what_no_plan_takes_is_said() -> None:
    figure = layer_skip(Selection(batch=4, kv_format="8bit"), SkipSettings())
    assert len([each for each in figure.cautions if each.startswith("a plan ")]) == 2


def opened(view: str, **settings: str) -> AppTest:
    app = AppTest.from_file(APP, default_timeout=60)
    for key, value in settings.items():
        app.query_params[key] = value
    return app.switch_page(f"views/{view}.py").run()


def test_the_skip_view_opens_and_takes_measured_points() -> None:
    app = opened("layer_skip", measured="0.125 = 0.8, 0.25 = 0.7", cells="nonsense")
    assert not app.exception
    assert not app.error
    assert app.header[0].value.startswith("Layer skip")
    assert "With the measured acceptances" in app.markdown[0].value
    app.text_input(key="measured").set_value("a quarter").run()
    assert len(app.error) == 1
    assert not app.exception


def test_the_diffusion_view_sets_a_diffusion_model_against_a_target_that_is_none() -> None:
    app = opened("diffusion")
    assert not app.exception
    assert not app.error
    assert "llama-3.1-8b" in app.markdown[0].value.replace("\\", "")
    assert set(app.selectbox(key="denoiser").options) == set(denoisers())
    app.selectbox(key="denoiser").set_value("dream-v0-7b").run()
    against = diffusion(Selection(target="dream-v0-7b"), DiffusionSettings(rival="llama-3.1-8b"))
    assert app.markdown[0].value == against.sentence
    assert len(app.get("vega_lite_chart")) == 1


def test_the_diffusion_view_of_a_diffusion_model_asks_for_a_rival() -> None:
    app = opened("diffusion", target="llada2.0-mini", draft="none", rival="qwen3-4b")
    assert not app.exception
    assert not app.error
    own = diffusion(LLADA, DiffusionSettings(rival="qwen3-4b"))
    assert app.markdown[0].value == own.sentence


@pytest.mark.parametrize(
    ("target", "says"),
    [("llama-3.1-70b", "does not fit"), ("hf:some/model", "nothing is fetched unasked")],
)
def test_a_target_that_cannot_be_the_rival_is_one_message(target: str, says: str) -> None:
    app = opened("diffusion", target=target)
    assert not app.exception
    [message] = app.error
    assert says in message.value.replace("\\", "")


@pytest.mark.parametrize("name", PRESETS)
def test_a_preset_puts_the_controls_where_the_article_has_them(name: str) -> None:
    app = opened("bottleneck", acceptance="0.9")
    app.selectbox(key="preset").set_value(name).run()
    assert not app.exception
    assert not app.error
    wanted = PRESETS[name]
    chosen = app.session_state["selection"]
    assert chosen.target == wanted["target"]
    assert chosen.runtime == wanted["runtime"]
    assert chosen.context == wanted["context"]
    assert chosen.draft == ("" if wanted["draft"] == NO_DRAFT else wanted["draft"])
    assert chosen.acceptance in ("", Selection().acceptance)
