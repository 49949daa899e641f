"""The call beside a picture prints the picture's numbers; other files test it of other views."""

from __future__ import annotations

import json
import shlex
from typing import Any

import pytest

import tokroof
from dashboard.figure import Figure
from dashboard.figures.bottleneck import bottleneck
from dashboard.figures.calibration import drift_over_time, sample_residuals
from dashboard.figures.which_trick import share, which_trick
from dashboard.rows.strategies import REJECTED
from dashboard.selection import Selection
from model.commands.prediction_text import described

SELECTIONS = (
    Selection(),
    Selection(draft="", others=(("prompt-lookup", "0.4"), ("layer-skip", "0.9"))),
    Selection(target="qwen3-8b", draft="qwen3-0.6b", acceptance="", task="code", context=8192),
    Selection(machine="m4-max-40core-mlx-0.32", runtime="mlx-0.31", kv_format="8bit", memory=64),
    Selection(machine="h200-mlx-0.32.4", acceptance="0.9,0.8,0.7", target_format="8bit"),
    Selection(batch=4, memory=64, target="qwen3-4b", draft="qwen3-0.6b"),
)


def printed(figure: Figure, capsys: pytest.CaptureFixture[str]) -> Any:
    assert tokroof.main([*shlex.split(figure.command.text)[1:], "--json"]) == 0
    return json.loads(capsys.readouterr().out)


@pytest.mark.parametrize("selection", SELECTIONS)
def test_which_trick(selection: Selection, capsys: pytest.CaptureFixture[str]) -> None:
    figure = which_trick(selection)
    document = printed(figure, capsys)
    predictions, needs = document["predictions"], document["needs"]
    told = [(each["tokens_per_s"], *(each["interval_90"] or (None, None))) for each in predictions]
    shown = [(row.tokens_per_s, row.low_tokens_per_s, row.high_tokens_per_s) for row in figure.rows]
    assert shown[: len(told)] == told
    plain = predictions[0]["tokens_per_s"]
    reach = [
        tuple(end(point["speedup"] for point in each["curve"]) * plain for end in (min, max))
        for each in needs
        if each["fits"]
    ]
    assert [row[1:] for row in shown[len(told) :] if row[1] is not None] == reach
    assert len(figure.rows) == len(predictions) + len(needs)
    for each in needs:
        if each["strategy"] != "speculative" and each["needed_acceptance"] is not None:
            needed = share(each["needed_acceptance"])
            assert f"{described(each['strategy'], each['settings'])} from {needed}" in (
                figure.sentence
            )


@pytest.mark.parametrize("selection", SELECTIONS)
def test_bottleneck(selection: Selection, capsys: pytest.CaptureFixture[str]) -> None:
    figure = bottleneck(selection)
    fitting = [each for each in printed(figure, capsys)["predictions"] if each["fits"]]
    labels = [described(each["strategy"], each["settings"]) for each in fitting]
    assert list(dict.fromkeys(row.label for row in figure.rows)) == labels
    for label, each in zip(labels, fitting, strict=True):
        parts = {row.part: row.time_ms for row in figure.rows if row.label == label}
        per_token_ms = 1e3 / each["tokens_per_pass"]
        assert sum(parts.values()) == pytest.approx(each["round_s"] * per_token_ms)
        for part, part_s in each["parts_s"].items():
            # What was thrown away is told apart from what it is a part of.
            split = part in ("draft", "arithmetic") and REJECTED in parts
            assert split or parts[part] == pytest.approx(part_s * per_token_ms, rel=1e-12)


def test_residuals_and_drift(capsys: pytest.CaptureFixture[str]) -> None:
    measured = Selection(machine="h200-mlx-0.32.4")
    residuals, drift = sample_residuals(measured), drift_over_time(measured)
    assert residuals is not None
    assert drift is not None
    document = printed(residuals, capsys)
    assert [(row.probe, row.settings, row.rows, row.error_percent) for row in residuals.rows] == [
        (each["probe"], each["settings"], each["rows"], 100 * each["error"])
        for each in document["residuals"]
    ]
    assert printed(drift, capsys) == document
    assert [row.time_us for row in drift.rows] == [
        pytest.approx(1e6 * each["seconds"]) for each in document["reference"]
    ]
    assert f"drifted by {100 * document['drift']:.0f} %" in drift.sentence


def test_a_profile_without_samples_has_no_residuals_to_print(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert tokroof.main(["calibrate", "--residuals", "m3-10core-16gb"]) == 2
    shown = capsys.readouterr()
    assert "keeps no samples of its own" in shown.err
    assert shown.err.count("\n") == 1
