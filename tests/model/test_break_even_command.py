"""`break-even`: the map, what is had against what is needed, and the refusals of its options."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

import tokroof
from model.progress.acceptance import tokens_per_pass
from model.progress.published import published_progress

PAIR = ("llama-3.1-8b", "--format", "4bit", "--draft", "llama-3.2-1b")


@pytest.fixture(autouse=True)
def home(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("TOKROOF_HOME", str(tmp_path))


def solved(capsys: pytest.CaptureFixture[str], *options: str) -> dict[str, Any]:
    assert tokroof.main(["break-even", *PAIR, *options, "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def test_the_map_wins_above_what_is_needed_and_nowhere_below(
    capsys: pytest.CaptureFixture[str],
) -> None:
    document = solved(capsys, "--map", "0.05", "--longest", "16")
    needed = [row["break_even_acceptance"] for row in document["break_even"]]
    assert len(needed) == 16
    assert [row["acceptance"] for row in document["map"]] == [
        pytest.approx(0.05 * i) for i in range(21)
    ]
    for row in document["map"]:
        for need, speedup in zip(needed, row["speedups"], strict=True):
            assert (speedup > 1.0) == (row["acceptance"] > need)
    best = [row["best_speedup"] for row in document["break_even"]]
    assert document["map"][-1]["speedups"] == pytest.approx(best)


def test_what_is_needed_lies_in_its_interval_and_other_machines_have_others(
    capsys: pytest.CaptureFixture[str],
) -> None:
    prior = solved(capsys)["break_even"]
    fitted = solved(capsys, "--machine", "m4-pro-20core-mlx-0.32")["break_even"]
    for row in (*prior, *fitted):
        assert 0.0 <= row["needed_low"] < row["break_even_acceptance"] < row["needed_high"] <= 1.0
    assert prior != fitted


def test_a_step_that_does_not_divide_one_still_ends_there(
    capsys: pytest.CaptureFixture[str],
) -> None:
    rows = solved(capsys, "--map", "0.3", "--draft-length", "2")["map"]
    assert [row["acceptance"] for row in rows] == [0.0, 0.3, 0.6, 0.9, 1.0]


def test_what_is_had_by_position_is_the_one_number_that_commits_as_many_tokens(
    capsys: pytest.CaptureFixture[str],
) -> None:
    had = solved(capsys, "--acceptance", "0.8,0.4")["have"]
    assert had[0]["acceptance"] == pytest.approx(0.8)
    assert tokens_per_pass(had[1]["acceptance"], 2) == pytest.approx(1 + 0.8 + 0.8 * 0.4)
    assert [each["low"] for each in had] == [each["acceptance"] for each in had]


def test_a_spread_is_a_range_that_stays_a_probability(capsys: pytest.CaptureFixture[str]) -> None:
    document = solved(capsys, "--acceptance", "0.95", "--spread", "0.1")
    for had in document["have"]:
        assert (had["low"], had["high"]) == (pytest.approx(0.85), 1.0)
    assert document["best"] == solved(capsys, "--acceptance", "0.95")["best"]


def test_a_task_takes_the_published_acceptance_of_each_draft_length(
    capsys: pytest.CaptureFixture[str],
) -> None:
    document = solved(capsys, "--task", "mixed")
    for had in document["have"]:
        published = published_progress("draft-model", "mixed", had["draft_length"])
        assert published.acceptance is not None
        assert had["acceptance"] == pytest.approx(published.acceptance.by_position[0])
        assert had["low"] <= had["acceptance"] <= had["high"]
        assert had["pairs"] == published.tokens_per_pass.pairs
    speedups = [had["speedup"] for had in document["have"]]
    assert document["best"]["speedup"] == pytest.approx(max(speedups))


def test_the_text_says_what_is_had_and_what_is_needed(capsys: pytest.CaptureFixture[str]) -> None:
    options = ["--acceptance", "0.7", "--spread", "0.05", "--map", "0.5"]
    assert tokroof.main(["break-even", *PAIR, *options]) == 0
    shown = capsys.readouterr().out
    assert "acceptance   k=1" in shown
    last = shown.splitlines()[-1]
    assert re.search(
        r"you have 0.70 \(0.65 to 0.75\), you need 0.\d\d \(0.\d\d to 0.\d\d; k=", last
    )


def test_a_batch_shares_the_weights_and_so_gains_less_from_a_draft(
    capsys: pytest.CaptureFixture[str],
) -> None:
    alone, batch = solved(capsys), solved(capsys, "--batch", "4")
    for one, four in zip(alone["break_even"][1:], batch["break_even"][1:], strict=True):
        assert four["best_speedup"] < one["best_speedup"]


def test_a_quantized_cache_is_the_one_that_predict_prices(
    capsys: pytest.CaptureFixture[str],
) -> None:
    options = [*PAIR, "--acceptance", "0.7", "--kv-format", "8bit", "--context", "8192", "--json"]
    assert tokroof.main(["predict", *options]) == 0
    predicted = json.loads(capsys.readouterr().out)["predictions"][1]
    assert tokroof.main(["break-even", *options]) == 0
    best = json.loads(capsys.readouterr().out)["best"]
    assert best["speedup"] == pytest.approx(predicted["speedup"], rel=1e-9)


@pytest.mark.parametrize(
    ("options", "line"),
    [
        (["--spread", "0.1"], "--spread 0.1: is of no acceptance"),
        (["--acceptance", "0.5", "--spread", "2"], "--spread 2: is not a share"),
        (["--task", "mixed", "--spread", "0.1"], "a task has a spread of its own"),
        (["--task", "mixed", "--acceptance", "0.5"], "is given beside an acceptance"),
        (["--task", "code"], "tasks that have one: mixed"),
        (["--task", "knitting"], "'knitting'"),
        (["--longest", "4", "--draft-length", "2"], "is given beside --draft-length"),
        (["--longest", "0"], "--longest 0: is out of range"),
        (["--map", "0"], "--map 0: is no step of the map"),
        (["--batch", "0"], "--batch 0: is out of range"),
        (["--batch", "200", "--context", "8192"], "does not fit"),
    ],
)
def test_a_refusal_is_one_line(
    options: list[str], line: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert tokroof.main(["break-even", *PAIR, *options]) == 2
    shown = capsys.readouterr()
    assert line in shown.err
    assert shown.err.count("\n") == 1
    assert shown.out == ""
