"""`predict`, `break-even` and `machines`: the schema, the numbers, and every refusal in a line."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import tokroof
from model.catalog import packaged_profile_text
from model.machine.profile_store import choose_profile, machine_names

PAIR = ["llama-3.1-8b", "--format", "4bit", "--draft", "llama-3.2-1b"]
DRAFT_TOO_LARGE = ["qwen3-14b", "--format", "4bit", "--draft", "qwen3-8b"]
PREDICTION_KEYS = {
    "strategy",
    "settings",
    "tokens_per_s",
    "interval_90",
    "speedup",
    "speedup_interval_90",
    "sustained_tokens_per_s",
    "sustained_interval_90",
    "tokens_per_pass",
    "progress",
    "round_s",
    "parts_s",
    "bound",
    "verdict",
    "fits",
    "working_set_bytes",
    "origin",
    "warnings",
}


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TOKROOF_HOME", str(tmp_path))
    return tmp_path


def answer(capsys: pytest.CaptureFixture[str], *arguments: str) -> Any:
    assert tokroof.main([*arguments, "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def test_predict_answers_in_the_schema(capsys: pytest.CaptureFixture[str]) -> None:
    document = answer(capsys, "predict", *PAIR, "--draft-length", "4", "--acceptance", "0.7")
    assert {"target", "machine", "context", "predictions"} <= document.keys()
    plain, speculative = document["predictions"]
    assert plain.keys() == PREDICTION_KEYS
    assert [plain["strategy"], speculative["strategy"]] == ["plain", "speculative"]
    assert speculative["settings"]["draft_length"] == 4
    for prediction in (plain, speculative):
        total = sum(prediction["parts_s"].values())
        assert total == pytest.approx(prediction["round_s"], rel=1e-9)


def test_without_an_acceptance_the_answer_is_what_it_would_have_to_be(
    capsys: pytest.CaptureFixture[str],
) -> None:
    document = answer(capsys, "predict", *PAIR)
    assert [each["strategy"] for each in document["predictions"]] == ["plain"]
    (needed,) = document["needs"]
    assert needed["strategy"] == "speculative"
    solved = answer(capsys, "break-even", *PAIR)["break_even"]
    least = min(row["break_even_acceptance"] for row in solved)
    assert needed["needed_acceptance"] == pytest.approx(least)
    speedups = [point["speedup"] for point in needed["curve"]]
    assert speedups == sorted(speedups)
    assert speedups[0] < 1.0 < speedups[-1]


def test_without_a_draft_length_the_best_one_is_taken(capsys: pytest.CaptureFixture[str]) -> None:
    chosen = answer(capsys, "predict", *PAIR, "--acceptance", "0.7")["predictions"][1]
    for length in ("1", "2", "3", "4"):
        other = answer(capsys, "predict", *PAIR, "--acceptance", "0.7", "--draft-length", length)
        assert chosen["speedup"] >= other["predictions"][1]["speedup"]


def test_the_four_names_of_acceptance_agree(capsys: pytest.CaptureFixture[str]) -> None:
    asked = {
        "--acceptance": "0.8",
        "--accepted-fraction": "0.5904",
        "--tokens-per-pass": "3.3616",
        "--draft-share": str(2.3616 / 3.3616),
    }
    speeds = [
        answer(capsys, "predict", *PAIR, "--draft-length", "4", flag, value)["predictions"][1]
        for flag, value in asked.items()
    ]
    for each in speeds:
        assert each["tokens_per_s"] == pytest.approx(speeds[0]["tokens_per_s"], rel=1e-6)


def test_break_even_is_where_predict_says_one(capsys: pytest.CaptureFixture[str]) -> None:
    document = answer(capsys, "break-even", *PAIR, "--draft-length", "3")
    needed = document["break_even"][0]["break_even_acceptance"]
    predicted = answer(
        capsys, "predict", *PAIR, "--draft-length", "3", "--acceptance", str(needed)
    )["predictions"][1]
    assert predicted["speedup"] == pytest.approx(1.0, abs=1e-6)


def test_machines_lists_constants_with_unit_and_origin(capsys: pytest.CaptureFixture[str]) -> None:
    machines = answer(capsys, "machines")
    assert "m3-10core-16gb" in [machine["name"] for machine in machines]
    for machine in machines:
        assert {"name", "chip", "runtime", "origin", "n_samples", "constants"} <= machine.keys()
        for constant in machine["constants"].values():
            assert constant.keys() == {"value", "stderr", "unit", "origin"}


def test_text_answers_are_readable(capsys: pytest.CaptureFixture[str]) -> None:
    assert tokroof.main(["predict", *PAIR, "--acceptance", "0.7", "--draft-length", "2"]) == 0
    shown = capsys.readouterr()
    assert "speculative k=2" in shown.out
    assert "was never calibrated" in shown.err
    assert tokroof.main(["break-even", *PAIR, "--acceptance", "0.7"]) == 0
    assert "best: k=2" in capsys.readouterr().out
    alone = ["break-even", *PAIR, "--acceptance", "0.7", "--draft-length", "4"]
    assert tokroof.main(alone) == 0
    assert " (0.93-1.53), cannot tell\n" in capsys.readouterr().out
    assert tokroof.main(["machines", "m3-10core-16gb"]) == 0
    assert "affine.wide.1.flops_per_s" in capsys.readouterr().out


def test_a_strategy_alone_without_an_acceptance_says_what_it_needs(
    capsys: pytest.CaptureFixture[str],
) -> None:
    asked = ["predict", *PAIR[:3], "--strategy", "prompt-lookup"]
    assert tokroof.main(asked) == 0
    heading, constants, *lines = capsys.readouterr().out.splitlines()
    assert heading.endswith("1024 tokens of context")
    assert constants == "constants: 1 published, 28 prior"
    assert lines[-1].startswith("prompt-lookup: wins from 0.07 (k=1); ")
    document = answer(capsys, *asked)
    assert document["predictions"] == []
    assert [each["strategy"] for each in document["needs"]] == ["prompt-lookup"]


def test_a_bare_acceptance_is_the_draft_models_where_one_is_asked_about(
    capsys: pytest.CaptureFixture[str],
) -> None:
    asked = ["--strategy", "speculative,prompt-lookup", "--acceptance", "0.7"]
    document = answer(capsys, "predict", *PAIR, *asked)
    (prediction,) = document["predictions"]
    assert prediction["strategy"] == "speculative"
    assert [each["strategy"] for each in document["needs"]] == ["prompt-lookup"]


def test_a_head_that_drafts_blocks_takes_an_acceptance_by_name(
    capsys: pytest.CaptureFixture[str],
) -> None:
    head = ["--strategy", "draft-head", "--head", "qwen3.5-4b-dflash"]
    asked = ["predict", "qwen3.5-4b", "--format", "4bit", *head]
    named = answer(capsys, *asked, "--acceptance-of", "block-drafter=0.9")["predictions"]
    assert named == answer(capsys, *asked, "--acceptance", "0.9")["predictions"]
    assert [each["strategy"] for each in named] == ["block-drafter"]


def test_several_beams_are_predicted_from_their_tokens_per_pass(
    capsys: pytest.CaptureFixture[str],
) -> None:
    head = ["--strategy", "draft-head", "--head", "llama-3.1-8b-eagle3", "--draft-length", "4"]
    asked = ["predict", *PAIR[:3], *head, "--tokens-per-pass", "3"]
    (chain,) = answer(capsys, *asked)["predictions"]
    (tree,) = answer(capsys, *asked, "--beams", "3")["predictions"]
    (packed,) = answer(capsys, *asked, "--beams", "3", "--tree-rows", "7")["predictions"]
    assert tree["settings"]["verified_rows"] == 13
    assert packed["settings"]["verified_rows"] == 7
    assert chain["round_s"] < packed["round_s"] < tree["round_s"]
    assert chain["tokens_per_pass"] == pytest.approx(3.0)
    assert tree["tokens_per_pass"] == chain["tokens_per_pass"]
    assert "acceptance" not in tree["settings"]
    share = answer(capsys, *asked[:-2], "--draft-share", str(2 / 3), "--beams", "3")
    assert share["predictions"][0]["round_s"] == pytest.approx(tree["round_s"])


def test_beams_of_no_named_head_leave_heads_out_of_all(capsys: pytest.CaptureFixture[str]) -> None:
    refused = answer(capsys, "predict", *PAIR[:3], "--strategy", "all", "--beams", "3")["refused"]
    reasons = {each["strategy"]: each["reason"] for each in refused}
    assert reasons["draft-head"].startswith("--beams 3: is of one head, and none is named")


def test_another_network_instead_has_the_cache_that_is_asked_for(
    capsys: pytest.CaptureFixture[str],
) -> None:
    asked = ["predict", *PAIR[:3], "--kv-format", "8bit"]
    same = ["--strategy", "plain,instead", "--instead", "llama-3.1-8b"]
    document = answer(capsys, *asked, *same)
    plain, instead = document["predictions"]
    assert document["kv_format"] == "8bit"
    assert instead["parts_s"] == plain["parts_s"]
    assert tokroof.main(asked) == 0
    assert ", cache in 8bit\n" in capsys.readouterr().out


@pytest.mark.parametrize("changed", [[], ["--runtime", "mlx-0.30", "--memory", "24"]])
def test_the_best_of_break_even_is_what_predict_says(
    changed: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    asked = [*PAIR, "--acceptance", "0.7", *changed]
    document = answer(capsys, "break-even", *asked)
    best, predicted = document["best"], answer(capsys, "predict", *asked)
    chosen = predicted["predictions"][1]
    assert document["runtime"] == predicted["runtime"]
    assert best["draft_length"] == chosen["settings"]["draft_length"]
    assert best["speedup"] == pytest.approx(chosen["speedup"], rel=1e-9)
    assert best["speedup_interval_90"] == pytest.approx(chosen["speedup_interval_90"], rel=1e-9)
    assert best["verdict"] == chosen["verdict"]


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (["predict", "lama-3.1-8b"], "did you mean llama-3.1-8b"),
        (["predict", "llama-3.1-8b", "--machine", "m3-10core"], "did you mean m3-10core-16gb"),
        (["predict", "llama-3.1-8b", "--machine", "nowhere/p.json"], "is no such file"),
        (["predict", *PAIR, "--acceptance", "1.5"], "acceptance 1.5: is not a probability"),
        (["predict", *PAIR, "--acceptance", "-0.1"], "acceptance -0.1: is not a probability"),
        (["predict", *PAIR[:3], "--acceptance", "0.5"], "--acceptance 0.5: describes a draft, and"),
        (["predict", *PAIR[:3], "--draft-length", "999"], "--draft-length 999: describes a draft"),
        (
            ["predict", *PAIR[:3], "--draft-format", "4bit"],
            "--draft-format 4bit: describes a draft",
        ),
        (["predict", *PAIR, "--draft-format", "", "--acceptance", "0.5"], "format '': is not a"),
        (["models", "--format", ""], "format '': is not a weight format"),
        (["predict", *PAIR, "--acceptance", "0.5,,0.5"], "--acceptance '': is not a number"),
        (["predict", *PAIR, "--acceptance", "often"], "--acceptance often: is not a number"),
        (["predict", *PAIR, "--acceptance", "nan"], "--acceptance nan: is not a number"),
        (["predict", *PAIR, "--acceptance", "0.5", "--draft-length", "0"], "--draft-length 0: is"),
        (
            ["predict", *PAIR, "--acceptance", "0.5", "--draft-length", "1000000000"],
            "give a whole number 1..64",
        ),
        (["predict", *PAIR, "--draft-share", "0.5"], "depends on the draft length"),
        (
            ["predict", *PAIR, "--acceptance", "0.5", "--context", "many"],
            "--context many: is not a whole",
        ),
        (["predict", "llama-3.1-8b", "--context", "999999"], "is beyond the 131072 tokens"),
        (
            ["predict", "llama-3.1-8b", "--draft", "qwen3-0.6b", "--acceptance", "0.5"],
            "has a vocabulary of 151936 tokens",
        ),
        (["predict", "llama-3.1-70b", "--format", "4bit"], "GB too much"),
        (["break-even", *DRAFT_TOO_LARGE], "qwen3-14b 4bit beside qwen3-8b 4bit on m3-10core-16gb"),
        (
            ["break-even", *PAIR[:3], "--draft", "smollm2-135m", "--context", "8193"],
            "is beyond the 8192 tokens of smollm2-135m",
        ),
        (["predict", "llama-3.1-8b", "--format", "9bit"], "format '9bit': is not a weight format"),
        (["machines", "m4"], "machine 'm4': is not known"),
    ],
)
def test_bad_input_is_one_line_and_exit_two(
    capsys: pytest.CaptureFixture[str], arguments: list[str], line: str
) -> None:
    assert tokroof.main(arguments) == 2
    shown = capsys.readouterr()
    assert line in shown.err
    assert shown.err.count("\n") == 1
    assert shown.out == ""


def test_what_does_not_fit_says_so_in_json_too(capsys: pytest.CaptureFixture[str]) -> None:
    assert tokroof.main(["predict", "llama-3.1-70b", "--format", "4bit", "--json"]) == 2
    shown = capsys.readouterr()
    prediction = json.loads(shown.out)["predictions"][0]
    assert prediction["fits"] is False
    assert prediction["tokens_per_s"] is None
    assert "GB too much" in shown.err


def test_the_last_calibration_is_the_default_machine(home: Path) -> None:
    folder = home / "profiles"
    folder.mkdir()
    text = packaged_profile_text("m3-10core-16gb").replace('"m3-10core-16gb"', '"mine"', 1)
    (folder / "mine.json").write_text(text)
    choice = choose_profile(None)
    assert choice.profile.header.name == "mine"
    assert choice.note == "machine: last calibration, mine"
    assert machine_names()[0] == "mine"
    assert choose_profile("MINE").profile.header.name == "mine"


def test_a_calibration_hides_a_packaged_profile_and_broken_links_are_passed_over(
    home: Path,
) -> None:
    folder = home / "profiles"
    folder.mkdir()
    (folder / "m3-10core-16gb.json").write_text(packaged_profile_text("h200-mlx-0.32.4"))
    (folder / "gone.json").symlink_to(folder / "nowhere")
    assert machine_names().count("m3-10core-16gb") == 1
    assert "gone" not in machine_names()
    assert choose_profile("m3-10core-16gb").profile.header.chip == "NVIDIA H200"


def test_sampling_at_a_temperature_lowers_what_exact_match_accepts(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """0.8 of a target whose samples agree half of the time is 0.4."""
    sampled = answer(capsys, "predict", *PAIR, "--acceptance", "0.8", "--collision", "0.5")
    greedy = answer(capsys, "predict", *PAIR, "--acceptance", "0.4")
    assert sampled["predictions"] == greedy["predictions"]


def test_a_collision_that_is_no_probability_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert tokroof.main(["predict", *PAIR, "--acceptance", "0.8", "--collision", "2"]) == 2
    assert "collision probability 2.0: is not a probability" in capsys.readouterr().err
