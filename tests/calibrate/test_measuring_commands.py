"""`run`, `validate`, `calibrate` and `demo`: real but tiny, and every refusal in a line."""

from __future__ import annotations

import json
from argparse import Namespace
from pathlib import Path
from typing import Any

import pytest

import tokroof
from calibrate.commands.calibrate import fitting_runs
from calibrate.commands.demo import DRAFT_LENGTHS, FAST_ARMS, FORMATS, SLOW_ARMS
from calibrate.environment import read_environment
from calibrate.host_witness import HostWitness
from calibrate.run_file import read_runs
from model.catalog import architecture_names
from model.errors import InputError
from model.machine.profile_file import read_profile
from model.network.target import load_target
from model.strategies.speculative import check_vocabulary

M3 = ("--machine", "m3-10core-16gb", "--any-machine")
"""A machine that these runs are not made on."""
TINY = {
    "model_type": "llama",
    "hidden_size": 64,
    "intermediate_size": 128,
    "num_attention_heads": 2,
    "num_key_value_heads": 1,
    "head_dim": 32,
    "vocab_size": 256,
    "num_hidden_layers": 2,
    "rms_norm_eps": 1e-5,
    "rope_theta": 10000.0,
    "tie_word_embeddings": True,
}


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TOKROOF_HOME", str(tmp_path / "home"))
    return tmp_path


@pytest.fixture
def tiny(tmp_path: Path) -> str:
    path = tmp_path / "tiny.json"
    path.write_text(json.dumps(TINY))
    return str(path)


def test_run_records_and_validate_reads(
    tiny: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    output = str(tmp_path / "runs.jsonl")
    command = ["run", "speculative", tiny, "--format", "4bit", "--draft", "same"]
    command += ["--draft-length", "1,2", "--tokens", "8", "--context", "4", "--output", output]
    assert tokroof.main(command) == 0
    shown = capsys.readouterr().out
    assert "output equals plain" in shown
    runs = read_runs(Path(output))
    assert [run.draft_length for run in runs] == [0, 1, 2]
    assert [run.tokens_per_pass for run in runs] == [1.0, 2.0, 3.0]
    assert runs[1].matches_plain is True
    assert tokroof.main(["validate", output, *M3, "--json"]) == 0
    document: dict[str, Any] = json.loads(capsys.readouterr().out)
    assert [row["quantity"] for row in document["rows"]] == [
        "tokens_per_s",
        "tokens_per_s",
        "speedup",
        "tokens_per_s",
        "speedup",
    ]
    row_keys = {"id", "quantity", "measured", "predicted", "interval_90", "error", "refused"}
    group_keys = {
        *("group", "n", "predicted", "refused", "median_error", "p90_error"),
        *("coverage_90", "sign_accuracy"),
    }
    assert all(row_keys <= row.keys() for row in document["rows"])
    assert all(group_keys <= group.keys() for group in document["groups"])


PLAN = """
about = "two arms"
[[stages]]
targets = ["{tiny}"]
formats = ["4bit"]
contexts = [8]
tokens = 4
[[stages.arms]]
strategy = "canvas"
canvases = [2]
[[stages.arms]]
strategy = "speculative"
draft = "same"
draft_lengths = [2]
acceptances = [0.5]
"""


def quiet_host(**_: object) -> HostWitness:
    return HostWitness(lambda: 1e-3)


def test_a_grid_stops_resumes_and_feeds_validate(
    tiny: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # However busy this computer is: of makes beside a slow host no drift would be told.
    monkeypatch.setattr("calibrate.decode.host_work_s", lambda: 1e-3)
    monkeypatch.setattr("calibrate.commands.run_grid.HostWitness", quiet_host)
    plan, output = tmp_path / "plan.toml", str(tmp_path / "runs.jsonl")
    plan.write_text(PLAN.format(tiny=tiny))
    command = ["run", "grid", str(plan), "--output", output]
    assert tokroof.main([*command, "--stop-after", "0.000001"]) == 0
    shown = capsys.readouterr()
    assert "0 of 4 runs are in" in shown.out
    assert "time is up: 4 runs are left" in shown.err
    assert tokroof.main(command) == 0
    shown = capsys.readouterr()
    assert "4 of 4 runs are in" in shown.out
    assert "drift of 1 repeated plain runs" in shown.out
    runs = read_runs(Path(output))
    assert [run.strategy for run in runs] == ["plain", "canvas", "speculative", "plain"]
    assert all(run.context_filled for run in runs)
    assert runs[2].draft == tiny
    assert tokroof.main(command) == 0
    assert "0 runs to do" in capsys.readouterr().err
    assert read_runs(Path(output)) == runs
    assert tokroof.main(["validate", output, *M3, "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)["rows"]
    assert len(rows) == 3 + 2  # of the plain run and its repeat the faster one
    assert all(row["refused"] is None for row in rows)


@pytest.mark.parametrize(
    ("arguments", "strategy", "said"),
    [
        (["--skip", "0.34", "--draft-length", "1"], "layer-skip", "skips 2 layers"),
        (["--skip-mlp", "1"], "layer-skip", "skips 0 attention and 1 MLP"),
        (["--draft-length", "1"], "prompt-lookup", "output equals plain"),
        (["--batch", "2"], "batch", "batch=2"),
        (["--canvas", "3"], "canvas", "canvas=3"),
    ],
)
def test_every_strategy_runs(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    arguments: list[str],
    strategy: str,
    said: str,
) -> None:
    deep = tmp_path / "deep.json"
    deep.write_text(json.dumps(TINY | {"num_hidden_layers": 6}))
    command = ["run", strategy, str(deep), "--format", "4bit", "--tokens", "5", "--context", "4"]
    assert tokroof.main([*command, *arguments]) == 0
    shown = capsys.readouterr()
    assert said in shown.out
    assert f"{deep} 4bit plain" in shown.out


def test_runs_of_another_machine_are_refused_or_compared_with_a_note(
    tiny: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    output = str(tmp_path / "runs.jsonl")
    command = ["run", "plain", tiny, "--format", "4bit", "--tokens", "4", "--context", "4"]
    assert tokroof.main([*command, "--output", output]) == 0
    capsys.readouterr()
    assert tokroof.main(["validate", output, "--machine", "m3-10core-16gb"]) == 2
    refused = capsys.readouterr()
    here = read_environment()
    assert f"runs.jsonl: runs on {here.chip} ({here.device}): are not of m3-10core" in refused.err
    assert "which is Apple M3, 10-core GPU (metal); give the --machine they" in refused.err
    assert (refused.err.count("\n"), refused.out) == (1, "")
    assert tokroof.main(["validate", output, *M3]) == 0
    shown = capsys.readouterr()
    assert "are compared with Apple M3, 10-core GPU (mlx-0.32)" in shown.err
    assert "tokens_per_s, plain" in shown.out


def test_awaited_runs_are_recorded_beside_plain_ones(
    tiny: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    output = str(tmp_path / "runs.jsonl")
    command = ["run", "awaited", tiny, "--format", "8bit", "--tokens", "4", "--context", "4"]
    assert tokroof.main([*command, "--output", output, "--json"]) == 0
    runs = json.loads(capsys.readouterr().out)
    assert [run["strategy"] for run in runs] == ["plain", "awaited"]
    # The model prices a loop that stays ahead; a fit must not take the other one for it.
    assert [run.strategy for run in fitting_runs(Namespace(runs=output, runs_of=None))] == ["plain"]
    with pytest.raises(InputError, match=r"--runs-of other: leaves no run; one of .*tiny"):
        fitting_runs(Namespace(runs=output, runs_of="other"))


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (["run", "sideways", "llama-3.1-8b"], "strategy 'sideways': is not known"),
        (["run", "speculative", "smollm2-135m"], "run speculative: needs a draft"),
        (["run", "plain", "smollm3-135m", "--format", "4bit"], "or smollm2-135m or"),
        (["run", "plain", "smollm2-135m", "--weights", "some"], "--weights some: is unknown"),
        (["run", "plain", "llama-3.1-8b", "--weights", "real"], "has no weights on this machine"),
        (["run", "plain", "llama-3.1-405b", "--format", "bf16"], "GB"),
        (
            ["run", "plain", "smollm-135m", "--format", "4bit", "--prompt", "Hi"],
            "needs real weights",
        ),
        (["run", "plain", "smollm2-135m", "--tokens", "1"], "--tokens 1: is out of range"),
        (["run", "plain", "smollm2-135m", "--skip", "0.5"], "--skip 0.5: is no setting of plain"),
        (["run", "batch", "smollm2-135m"], "run batch: needs a size"),
        (["run", "batch", "smollm2-135m", "--batch", "1"], "--batch 1: is out of range"),
        (["run", "layer-skip", "smollm2-135m"], "skipped layers: are not given"),
        (
            ["run", "layer-skip", "smollm2-135m", "--skip", "0.5", "--select", "luck"],
            "selection 'luck': is not known",
        ),
        (
            ["run", "prompt-lookup", "smollm2-135m", "--force-acceptance", "2"],
            "--force-acceptance 2: is not a probability",
        ),
        (
            ["run", "plain", "smollm2-135m", "--stop-after", "9"],
            "--stop-after 9: is for a plan of runs",
        ),
        (["run", "grid", "nowhere", "--output", "x"], "plan nowhere: no such file"),
        (["run", "grid", "accelerator"], "run grid: keeps its runs in a file"),
        (
            ["run", "batch", "smollm2-1.7b", "--batch", "512", "--context", "8000"],
            "batch of smollm2-1.7b 4bit: needs",
        ),
        (["validate", "nowhere.jsonl"], "nowhere.jsonl: cannot be read"),
        (["calibrate", "--mode", "slow"], "mode 'slow': is not known"),
        (["calibrate", "--formats", "9bit"], "format '9bit': is not a weight format"),
        (["calibrate", "--name", "../up"], "name '../up': cannot name a file"),
        (["calibrate", "--refit", "m3-10core-16gb"], "keeps no samples"),
        (["calibrate", "--refit", ""], "machine '': is not known"),
        (["calibrate", "--fresh", "--mode", "../x"], "mode '../x': is not known"),
        (["calibrate", "--runs", "nowhere.jsonl"], "nowhere.jsonl: cannot be read"),
        (["calibrate", "--runs-of", "qwen3-4b"], "--runs-of qwen3-4b: says which runs, and there"),
        (["calibrate", "--output", "."], "--output .: is a folder"),
        (["run", "plain", "smollm2-135m", "--output", "."], "--output .: is no file in a folder"),
        (["run", "plain", "smollm2-135m", "--output", "no/r.jsonl"], "--output no/r.jsonl: is no"),
        (["validate", "/dev/null"], "/dev/null: holds no run that can be predicted"),
    ],
)
def test_bad_input_is_one_line_and_exit_two(
    capsys: pytest.CaptureFixture[str], arguments: list[str], line: str
) -> None:
    assert tokroof.main(arguments) == 2
    shown = capsys.readouterr()
    assert line in shown.err
    assert shown.err.count("\n") == 1


def test_a_folder_with_weights_and_no_config_is_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "model.safetensors").write_bytes(b"x")
    assert tokroof.main(["run", "plain", str(tmp_path)]) == 2
    shown = capsys.readouterr().err
    assert f"{tmp_path}/config.json: cannot be read" in shown
    assert shown.count("\n") == 1


def test_a_run_in_a_grid_that_does_not_fit_is_passed_over(
    tiny: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("calibrate.campaign.conduct.free_bytes", lambda: 1000)
    plan, output = tmp_path / "plan.toml", tmp_path / "runs.jsonl"
    plan.write_text(PLAN.format(tiny=tiny))
    assert tokroof.main(["run", "grid", str(plan), "--output", str(output)]) == 1
    shown = capsys.readouterr()
    assert "0 of 4 runs are in" in shown.out
    assert "4 could not be made" in shown.out
    assert shown.err.splitlines()[-1].startswith("4 runs could not be made: ")
    assert "and 0.00 GB are free" in shown.err.splitlines()[-1]
    assert "plain: needs 0.32 GB with its caches and 0.00 GB are free" in shown.err
    assert not output.exists()


def test_a_file_that_is_no_runs_file_is_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    table = tmp_path / "runs.csv"
    table.write_text("id,chip\nR1,M3\n")
    assert tokroof.main(["validate", str(table)]) == 2
    assert "runs.csv, row 1: has no column runtime" in capsys.readouterr().err


def test_calibrate_measures_fits_and_writes(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """One format at the smallest sizes: the whole path, as a user runs it."""
    import calibrate.plan
    from calibrate.grid import WIDTHS

    monkeypatch.setattr(calibrate.plan, "SIZES", {"quick": ((min(WIDTHS),),)})
    monkeypatch.setattr(calibrate.plan, "SWEEPS", 1)
    output = tmp_path / "here.json"
    arguments = ["--name", "here", "--formats", "4bit", "--output", str(output), "--json"]
    assert tokroof.main(["calibrate", *arguments]) == 0
    shown = json.loads(capsys.readouterr().out)
    assert any(name.startswith("4bit.square.1.") for name in shown["constants"])
    profile = read_profile(output)
    assert profile.header.name == "here"
    assert profile.constants["sync_s"].value > 0
    assert not list((tmp_path / "home" / "sessions").iterdir())
    predicting = ["predict", "smollm2-135m", "--format", "4bit", "--machine", str(output)]
    assert tokroof.main([*predicting, "--json"]) == 0
    prediction = json.loads(capsys.readouterr().out)["predictions"][0]
    assert shown["constants"]["kernel_s"]["origin"] == "measured"
    assert prediction["origin"] == "prior"  # no probe sees what submitting costs a slow device
    assert 0.5 < prediction["tokens_per_s"] < 500


def test_the_demo_asks_for_what_the_catalog_has_and_the_profile_prices() -> None:
    for arm in (*SLOW_ARMS, *FAST_ARMS):
        target = load_target(arm.target, arm.format_name)
        assert target.architecture.name in architecture_names()
        if arm.draft:
            check_vocabulary(target, load_target(arm.draft, arm.draft_format))
            assert f"{load_target(arm.draft, arm.draft_format).weight_format.bits}bit" in FORMATS
    for arms in (SLOW_ARMS, FAST_ARMS):
        runs = sum(1 + len(DRAFT_LENGTHS) * bool(arm.draft) for arm in arms)
        assert runs >= 8
        assert any(arm.weights == "real" for arm in arms)


def test_what_is_refused_is_refused_before_anything_is_decoded(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    output = tmp_path / "runs.jsonl"
    command = ["run", "speculative", "smollm2-135m", "--draft", "qwen3-0.6b", "--tokens", "8"]
    assert tokroof.main([*command, "--weights", "random", "--output", str(output)]) == 2
    assert "tokens" in capsys.readouterr().err
    assert not output.exists()


def test_runs_are_not_added_to_a_file_of_something_else(
    tiny: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    output = tmp_path / "notes.txt"
    output.write_text("not a run\n")
    assert tokroof.main(["run", "plain", tiny, "--tokens", "8", "--output", str(output)]) == 2
    assert "notes.txt:1" in capsys.readouterr().err
    assert output.read_text() == "not a run\n"


def test_a_grid_refuses_what_its_plan_says(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    output = str(tmp_path / "runs.jsonl")
    assert tokroof.main(["run", "grid", "processor", "--tokens", "5", "--output", output]) == 2
    assert "--tokens 5: changes nothing in a grid" in capsys.readouterr().err
    assert tokroof.main(["run", "grid", "processor", "--output", "/proc/runs.jsonl"]) == 2
    assert "cannot be written" in capsys.readouterr().err
