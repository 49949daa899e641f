"""`roofline`: every strategy that `predict` predicts, by the rows of its pass."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import tokroof

PAIR = ("llama-3.1-8b", "--format", "4bit", "--draft", "llama-3.2-1b", "--acceptance", "0.6")


@pytest.fixture(autouse=True)
def home(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("TOKROOF_HOME", str(tmp_path))


def answer(capsys: pytest.CaptureFixture[str], *arguments: str) -> dict[str, Any]:
    assert tokroof.main([*arguments, "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def test_every_predicted_strategy_has_a_point_of_its_rows(
    capsys: pytest.CaptureFixture[str],
) -> None:
    options = [*PAIR, "--strategy", "all"]
    points = answer(capsys, "roofline", *options)["points"]
    predictions = answer(capsys, "predict", *options)["predictions"]
    assert [each["strategy"] for each in points] == [each["strategy"] for each in predictions]
    for point, prediction in zip(points, predictions, strict=True):
        settings = prediction["settings"]
        expected = (settings.get("draft_length", 0) + 1) * settings.get("batch", 1)
        assert point["rows"] == expected


def test_a_strategy_lies_on_the_path_of_its_rows(capsys: pytest.CaptureFixture[str]) -> None:
    document = answer(capsys, "roofline", *PAIR)
    plain, drafted = document["points"]
    for point in (plain, drafted):
        on_path = document["path"][point["rows"] - 1]
        assert {name: point[name] for name in on_path} == on_path


def test_the_text_has_roofs_and_points(capsys: pytest.CaptureFixture[str]) -> None:
    assert tokroof.main(["roofline", *PAIR]) == 0
    shown = capsys.readouterr().out
    assert "kernel for rows" in shown
    assert "13 and more" in shown
    assert "speculative k=2" in shown


def test_what_does_not_fit_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert tokroof.main(["roofline", "llama-3.1-70b", "--format", "4bit"]) == 2
    shown = capsys.readouterr()
    assert "GB too much" in shown.err
    assert shown.out == ""
