"""`tokroof validate` on published runs: its schema, its text, and every refusal in a line."""

from __future__ import annotations

import csv
import json
from dataclasses import replace
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest

import tokroof
from calibrate.commands.own_machine import is_of
from model.machine.profile_store import named_profile
from tests.calibrate.published.published_run import PLAIN, SPECULATIVE
from tests.calibrate.test_run_record import ENVIRONMENT

ROW_KEYS = {"id", "quantity", "measured", "predicted", "interval_90", "error", "refused"}
GROUP_KEYS = {
    *("group", "n", "predicted", "refused", "median_error", "p90_error"),
    *("coverage_90", "sign_accuracy"),
}
ROWS = (
    PLAIN,
    SPECULATIVE | {"id": "X2"},
    SPECULATIVE | {"id": "X3", "trust": "low"},
    PLAIN | {"id": "X4", "quant": "some mix"},
)


@pytest.fixture
def table(tmp_path: Path) -> str:
    path = tmp_path / "runs.csv"
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, list(SPECULATIVE), restval="")
        writer.writeheader()
        writer.writerows(ROWS)
    return str(path)


def document(capsys: pytest.CaptureFixture[str], *arguments: str) -> dict[str, Any]:
    assert tokroof.main(["validate", *arguments, "--json"]) == 0
    shown = capsys.readouterr()
    assert not shown.err
    return json.loads(shown.out)


def test_the_schema(table: str, capsys: pytest.CaptureFixture[str]) -> None:
    found = document(capsys, table, "--machine", "m3-10core-16gb")
    assert [row["id"] for row in found["rows"]] == ["X1", "X2", "X3", "X4"]
    assert [row["quantity"] for row in found["rows"]] == [
        *("tokens_per_s", "speedup", "speedup", "tokens_per_s")
    ]
    assert all(row.keys() >= ROW_KEYS for row in found["rows"])
    assert all(group.keys() >= GROUP_KEYS for group in found["groups"])
    plain, refused = found["rows"][0], found["rows"][2]
    assert plain["error"] == pytest.approx(plain["predicted"] / plain["measured"] - 1.0)
    assert plain["interval_90"][0] < plain["predicted"] < plain["interval_90"][1]
    assert plain["refused"] is None
    assert (refused["predicted"], refused["interval_90"], refused["error"]) == (None, None, None)
    assert refused["refused"] == "low trust: github:someone/something"
    assert found["share_predicted"] == 0.5
    assert {each["reason"]: each["runs"] for each in found["refusals"]} == {
        "low trust": 1,
        "unknown format": 1,
    }


def test_json_lines_give_the_same_as_csv(
    table: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = tmp_path / "runs.jsonl"
    lines.write_text("".join(json.dumps(row) + "\n" for row in ROWS))
    forced = ("--machine", "m3-10core-16gb")
    assert document(capsys, str(lines), *forced) == document(capsys, table, *forced)


def test_the_text_counts_and_explains_refusals(
    table: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert tokroof.main(["validate", table, "--machine", "m3-10core-16gb"]) == 0
    shown = capsys.readouterr().out
    assert "4 runs, 50.0 % predicted" in shown
    assert "the source is suspect, contaminated or contradicts itself" in shown
    assert "unnamed quantization" in shown
    assert "tokens_per_s, plain, chosen machine" in shown
    assert "X1" not in shown
    assert "M3 Llama-3.1-8B-Instruct 4bit speculative k=2" in shown


def test_every_run_finds_its_own_machine(table: str, capsys: pytest.CaptureFixture[str]) -> None:
    found = document(capsys, table)
    groups = {each["group"] for each in found["groups"]}
    assert {"tokens_per_s, chip M3 10-core", "tokens_per_s, runtime mlx-0.32"} <= groups
    assert not any("chosen machine" in each for each in groups)
    assert found["share_predicted"] == 0.5


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (["--held-out", "row"], "--held-out row: is no group of runs; one of model, chip, study"),
        (["--held-out", "chip", "--machine", "m3-10core-16gb"], "fits its own machines, and"),
        (["--machine", "m9"], "machine 'm9': is not known"),
        (["--any-machine"], "--any-machine: is for records of `tokroof run`; leave it out"),
    ],
)
def test_bad_options_are_one_line(
    table: str, capsys: pytest.CaptureFixture[str], arguments: list[str], line: str
) -> None:
    assert tokroof.main(["validate", table, *arguments]) == 2
    shown = capsys.readouterr()
    assert line in shown.err
    assert shown.err.count("\n") == 1
    assert not shown.out


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("id,chip\nR1,M3\n", "row 1: has no column runtime"),
        ("PK\x03\x04\n", "row 1: has no column id"),
        ('{"target_model": "llama"}\n', "row 1: has no column id"),
        ("", "holds no run that can be predicted"),
    ],
)
def test_a_file_of_something_else_is_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str, line: str
) -> None:
    path = tmp_path / "other"
    path.write_text(text)
    assert tokroof.main(["validate", str(path)]) == 2
    shown = capsys.readouterr()
    assert line in shown.err
    assert shown.err.count("\n") == 1


@pytest.mark.parametrize(
    ("chip", "device", "cores", "machine", "same"),
    [
        ("Apple M3", "metal", 10, "m3-10core-16gb", True),
        ("Apple M3", "metal", None, "m3-10core-16gb", True),
        ("Apple M3", "metal", 8, "m3-10core-16gb", False),
        ("Apple M3", "cpu", None, "m3-10core-16gb", False),
        ("Apple M3 Max", "metal", 40, "m3-10core-16gb", False),
        ("Apple M3 Max", "metal", 40, "m3-max-40core-mlx-0.32", True),
        ("NVIDIA H200", "cuda", None, "h200-mlx-0.32.4", True),
        ("NVIDIA H100", "cuda", None, "h200-mlx-0.32.4", False),
    ],
)
def test_a_run_is_of_a_machine_by_chip_back_end_and_cores(
    chip: str, device: str, cores: int | None, machine: str, same: bool
) -> None:
    here = replace(ENVIRONMENT, chip=chip, device=device, gpu_cores=cores)
    assert is_of(here, named_profile(machine).header) is same


NO_CUDNN, WITH_CUDNN = "h200-mlx-0.32.4-no-cudnn", "h200-mlx-0.32.4"


@pytest.mark.parametrize(
    ("runs", "machine", "how"),
    [
        ("no-cudnn-grid", WITH_CUDNN, "with MLX_CUDA_USE_CUDNN_SDPA=0"),
        ("with-cudnn", NO_CUDNN, "without MLX_CUDA_USE_CUDNN_SDPA"),
    ],
)
def test_runs_that_attend_otherwise_are_refused_unless_any_machine_will_do(
    capsys: pytest.CaptureFixture[str], runs: str, machine: str, how: str
) -> None:
    path = str(files("calibrate") / f"data/runs/h200-2026-11-30-{runs}.jsonl")
    command = ["validate", path, "--machine", machine]
    assert tokroof.main(command) == 2
    shown = capsys.readouterr()
    assert f"runs {how}: do not attend as {machine} does" in shown.err
    assert shown.err.count("\n") == 1
    assert tokroof.main([*command, "--any-machine"]) == 0
