"""`context`: the speeds of `predict` at every context, and what fits."""

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


def test_a_speed_is_what_predict_says_at_that_context(capsys: pytest.CaptureFixture[str]) -> None:
    plain, drafted = answer(capsys, "context", *PAIR)["strategies"]
    asked = [*PAIR, "--draft-length", "2", "--context", "4096"]
    predictions = answer(capsys, "predict", *asked)["predictions"]
    for followed, prediction in zip((plain, drafted), predictions, strict=True):
        [here] = [each for each in followed["contexts"] if each["context"] == 4096]
        assert here["tokens_per_s"] == pytest.approx(prediction["tokens_per_s"], rel=1e-12)
        assert here["interval_90"] == pytest.approx(prediction["interval_90"], rel=1e-12)
        assert here["working_set_bytes"] == prediction["working_set_bytes"]


def test_a_speed_ends_where_memory_is_full(capsys: pytest.CaptureFixture[str]) -> None:
    for followed in answer(capsys, "context", *PAIR)["strategies"]:
        assert followed["memory_is_full"]
        for each in followed["contexts"]:
            assert each["fits"] == (each["context"] <= followed["longest_context"])
            assert (each["tokens_per_s"] is None) == (not each["fits"])
        speeds = [each["tokens_per_s"] for each in followed["contexts"] if each["fits"]]
        assert speeds == sorted(speeds, reverse=True)


def test_contexts_end_at_the_limit_of_the_network(capsys: pytest.CaptureFixture[str]) -> None:
    [plain] = answer(capsys, "context", "llama-3-8b", "--format", "4bit")["strategies"]
    assert [each["context"] for each in plain["contexts"]][-1] == 8192
    assert plain["longest_context"] == 8192
    assert not plain["memory_is_full"]


def test_the_best_are_tricks_and_not_batches_or_other_networks(
    capsys: pytest.CaptureFixture[str],
) -> None:
    options = [*PAIR, "--strategy", "all"]
    everything = answer(capsys, "context", *options)["strategies"]
    assert {"batch", "instead"} < {each["strategy"] for each in everything}
    best = answer(capsys, "context", *options, "--best", "2")["strategies"]
    assert [each["strategy"] for each in best] == ["plain", "speculative"]
    assert len(answer(capsys, "context", *options, "--best", "0")["strategies"]) == 1


def test_a_target_that_does_not_fit_is_an_answer(capsys: pytest.CaptureFixture[str]) -> None:
    assert tokroof.main(["context", "llama-3.1-70b", "--format", "4bit"]) == 0
    assert "plain: does not fit: needs" in capsys.readouterr().out


def test_the_text_says_how_many_tokens_fit(capsys: pytest.CaptureFixture[str]) -> None:
    assert tokroof.main(["context", *PAIR]) == 0
    shown = capsys.readouterr().out
    assert "tokens fit, then memory is full (limit 11.5 GB)" in shown


@pytest.mark.parametrize(
    ("options", "line"),
    [(["--best", "-1"], "--best -1: is out of range"), (["--context", "9999999"], "is beyond")],
)
def test_a_refusal_is_one_line(
    options: list[str], line: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert tokroof.main(["context", *PAIR, *options]) == 2
    shown = capsys.readouterr()
    assert line in shown.err
    assert shown.err.count("\n") == 1
