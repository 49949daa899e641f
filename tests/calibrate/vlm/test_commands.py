"""`run diffusion` and `run draft-head`: recorded, validated, and refused in one line."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path
from typing import Any

import pytest

import tokroof
from calibrate.mlx_device import on_processor
from calibrate.run_file import read_runs
from calibrate.run_strategy import strategy_of
from model.machine.profile_store import named_profile
from model.strategies.block_diffusion import BlockDiffusion
from tests.calibrate.vlm.tiny import HEADS, LLADA, LLAMA, QWEN, needs_mlx_vlm, written

MACHINE = "m3-10core-16gb"


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOKROOF_HOME", str(tmp_path / "home"))


def validated(runs: str, capsys: pytest.CaptureFixture[str]) -> list[dict[str, Any]]:
    capsys.readouterr()
    anyway = ["--machine", MACHINE, "--any-machine"]
    assert tokroof.main(["validate", runs, *anyway, "--json"]) == 0
    return json.loads(capsys.readouterr().out)["rows"]


@needs_mlx_vlm
def test_answers_of_several_lengths_are_recorded_and_predicted(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    target, output = written(tmp_path, "llada", LLADA), str(tmp_path / "runs.jsonl")
    command = ["run", "diffusion", target, "--format", "4bit", "--context", "16"]
    command += ["--block", "8", "--answer", "8,20", "--steps", "4", "--output", output]
    assert tokroof.main(command) == 0
    shown = capsys.readouterr().out
    assert "answer=20: 15 passes, 3 of them to write the cache; 2.00 tokens" in shown
    runs = read_runs(Path(output))
    assert [(run.tokens, len(run.round_s)) for run in runs] == [(8, 5), (20, 15)]
    rows = validated(output, capsys)
    assert [row["quantity"] for row in rows] == ["tokens_per_s"] * 2
    assert all(row["refused"] is None for row in rows)
    assert rows[1]["label"].endswith("diffusion block=8 steps=4 answer=20")
    for run in runs:  # the prediction has the passes of the run, no more
        strategy, _, context = strategy_of(run, named_profile(MACHINE).machine)
        assert isinstance(strategy, BlockDiffusion)
        assert strategy.progress.passes(run.tokens) == pytest.approx(len(run.round_s))
        assert strategy.tokens_per_pass == pytest.approx(run.tokens_per_pass)
        assert context == 16


@needs_mlx_vlm
@pytest.mark.skipif(not on_processor(), reason="other back ends gather 16-bit experts")
def test_what_mlx_has_no_kernel_for_is_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    target, output = written(tmp_path, "llada", LLADA), tmp_path / "runs.jsonl"
    command = ["run", "diffusion", target, "--format", "bf16", "--context", "16"]
    command += ["--block", "8", "--answer", "8", "--steps", "4", "--output", str(output)]
    assert tokroof.main(command) == 2
    shown = capsys.readouterr().err.splitlines()[-1]
    assert "cannot be decoded on this device: [GatherMM" in shown
    assert not output.exists()


@needs_mlx_vlm
def test_a_head_is_recorded_beside_plain_decoding_and_predicted(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    target, output = written(tmp_path, "qwen", QWEN), str(tmp_path / "runs.jsonl")
    head = written(tmp_path, "mtp", HEADS["mtp"])
    command = ["run", "draft-head", target, "--format", "4bit", "--head", head]
    command += ["--head-format", "4bit", "--draft-length", "1,2", "--force-acceptance", "0.5"]
    command += ["--tokens", "12", "--context", "8", "--output", output]
    assert tokroof.main(command) == 0
    runs = read_runs(Path(output))
    assert [run.strategy for run in runs] == ["plain", "draft-head", "draft-head"]
    assert {run.draft for run in runs[1:]} == {head}
    rows = validated(output, capsys)
    assert [row["quantity"] for row in rows].count("speedup") == 2
    assert all(row["refused"] is None for row in rows)


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (["diffusion", "llada2.0-mini"], "run diffusion: needs a length of the block"),
        (["diffusion", "llada2.0-mini", "--block", "32"], "needs a length of the answer"),
        (
            ["diffusion", "llama-3.1-8b", "--block", "8", "--answer", "8"],
            "llama-3.1-8b: is no diffusion model",
        ),
        (
            ["diffusion", "llada2.0-mini", "--block", "8", "--answer", "8", "--steps", "9"],
            "--steps 9: is out of range",
        ),
        (
            ["diffusion", "llada2.0-mini", "--block", "8", "--answer", "8", "--tokens", "8"],
            "--tokens 8: is no setting of diffusion; give --answer",
        ),
        (
            ["diffusion", "llada2.0-mini", "--block", "8", "--answer", "8", "--committed", "0.5"],
            "--committed 0.5: cannot be fixed in every pass of a block of 8",
        ),
        (
            ["diffusion", "llada2.0-mini", "--block", "8", "--answer", "8", "--threshold", "2"],
            "--threshold 2: is not a probability",
        ),
        (["draft-head", "qwen3.5-4b"], "run draft-head: needs a head; add --head"),
        (
            ["draft-head", "qwen3.5-9b", "--head", "qwen3.5-4b-mtp"],
            "head qwen3.5-4b-mtp: reads states of 2560 numbers",
        ),
        (["plain", "llada2.0-mini", "--threshold", "0.9"], "--threshold 0.9: is no setting of pl"),
    ],
)
def test_bad_input_is_one_line_and_exit_two(
    capsys: pytest.CaptureFixture[str], arguments: list[str], line: str
) -> None:
    assert tokroof.main(["run", *arguments]) == 2
    shown = capsys.readouterr().err
    assert line in shown
    assert shown.count("\n") == 1


@pytest.mark.parametrize("strategy", ["diffusion", "draft-head"])
def test_without_the_extra_one_line_says_what_to_install(
    strategy: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    found = importlib.util.find_spec

    def missing(name: str, package: str | None = None) -> Any:
        return None if name == "mlx_vlm" else found(name, package)

    monkeypatch.setattr("importlib.util.find_spec", missing)
    arguments = {
        "diffusion": [written(tmp_path, "l", LLADA), "--block", "8", "--answer", "8"],
        "draft-head": [
            written(tmp_path, "q", QWEN),
            "--head",
            written(tmp_path, "m", HEADS["mtp"]),
        ],
    }[strategy]
    assert tokroof.main(["run", strategy, *arguments]) == 2
    shown = capsys.readouterr().err
    assert f"run {strategy}: needs mlx-vlm, which is not installed; run: make setup" in shown
    assert shown.count("\n") == 1


@needs_mlx_vlm
def test_a_target_without_layers_to_read_is_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    llama = written(tmp_path, "llama", LLAMA)
    head = written(tmp_path, "eagle3", HEADS["eagle3"])
    assert tokroof.main(["run", "draft-head", llama, "--head", head]) == 2
    shown = capsys.readouterr().err
    assert "llama.json: cannot run eagle3 heads in mlx-vlm" in shown
    assert shown.count("\n") == 1


@needs_mlx_vlm
def test_a_folder_with_weights_and_no_config_is_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "model.safetensors").write_bytes(b"x")
    command = ["run", "diffusion", str(tmp_path), "--block", "8", "--answer", "8"]
    assert tokroof.main(command) == 2
    shown = capsys.readouterr().err
    assert "is a folder without a config.json" in shown
    assert shown.count("\n") == 1
