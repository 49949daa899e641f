"""`rows`: curves by format and release, measured points of the same chip, refusals in a line."""

from __future__ import annotations

import json
from pathlib import Path
from statistics import median
from typing import Any

import pytest

import tokroof
from calibrate.published.evidence import row_costs
from calibrate.row_points import published_runtime, row_points, same_chip
from model.cost.forward import forward_pass
from model.machine.profile_store import choose_profile
from model.machine.row_law import Product
from model.network.target import load_target

LLAMA = load_target("llama-3.1-8b", "4bit")


@pytest.fixture(autouse=True)
def home(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("TOKROOF_HOME", str(tmp_path))


def answer(capsys: pytest.CaptureFixture[str], *options: str) -> dict[str, Any]:
    assert tokroof.main(["rows", "llama-3.1-8b", *options, "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def test_every_format_and_release_has_a_curve(capsys: pytest.CaptureFixture[str]) -> None:
    asked = ("--format", "8bit,4bit", "--runtimes", "own,mlx-0.30", "--most", "12")
    curves = answer(capsys, *asked)["curves"]
    assert [(each["format"], each["runtime"]) for each in curves] == [
        ("8bit", "mlx-0.32"), ("4bit", "mlx-0.32"), ("8bit", "mlx-0.30.6"), ("4bit", "mlx-0.30.6"),
    ]  # fmt: skip
    for curve in curves:
        assert [row["rows"] for row in curve["rows"]] == list(range(1, 13))
        for row in curve["rows"]:
            assert row["relative"] == pytest.approx(row["seconds"] / curve["rows"][0]["seconds"])
    own, old = curves[1]["rows"], curves[3]["rows"]
    assert own[0] == old[0]
    assert own[4]["relative"] < old[4]["relative"]


def test_a_release_that_is_the_machines_own_is_not_said_twice(
    capsys: pytest.CaptureFixture[str],
) -> None:
    document = answer(capsys, "--format", "4bit", "--runtimes", "own,mlx-0.32")
    assert len(document["curves"]) == 1


def test_a_batch_is_priced_as_its_verify_passes_are(capsys: pytest.CaptureFixture[str]) -> None:
    asked = ("--machine", "m3-max-40core-mlx-0.32", "--format", "4bit", "--most", "6")
    document = answer(capsys, *asked, "--batch", "3")
    machine = choose_profile("m3-max-40core-mlx-0.32").profile.machine
    for row in document["curves"][0]["rows"]:
        of_each = forward_pass(LLAMA, machine, rows=row["rows"], context=1024.0, sequences=3)
        assert row["seconds"] == pytest.approx(float(of_each.device_s), rel=1e-12)
    # What others measured is of one sequence.
    assert document["measured"] == []
    assert answer(capsys, *asked)["measured"]


def test_a_memory_size_says_what_fits_and_changes_no_curve(
    capsys: pytest.CaptureFixture[str],
) -> None:
    small = answer(capsys, "--format", "bf16", "--memory", "16")
    large = answer(capsys, "--format", "bf16", "--memory", "64")
    assert small["curves"] == large["curves"]
    assert any("does not fit" in note for note in small["notes"])
    assert not any("does not fit" in note for note in large["notes"])


def test_points_are_of_the_chip_cold_and_of_mlx() -> None:
    profile = choose_profile("m3-max-40core-mlx-0.32").profile
    points = row_points(profile, LLAMA, most_rows=32)
    assert points
    sources = {row["source"] for row in row_costs() if row["chip"] == "M3 Max"}
    for point in points:
        assert point.source in sources
        assert 1 < point.rows <= 32
        assert point.relative > 0.9
    assert ("4bit", "mlx-0.32", 4, 1.279) in {
        (point.format, point.runtime, point.rows, point.relative) for point in points
    }


def test_a_calibrated_machine_has_its_own_points() -> None:
    profile = choose_profile("h200-mlx-0.32.4").profile
    points = row_points(profile, LLAMA, most_rows=64)
    assert {point.what for point in points} == {"4096 -> 28672"}
    assert {point.format for point in points} == {"4bit", "8bit", "bf16"}
    [five] = [point for point in points if (point.format, point.rows) == ("4bit", 5)]
    assert five.relative == pytest.approx(5.0, rel=0.2)


def test_the_law_prices_the_matrix_that_was_measured() -> None:
    profile = choose_profile("h200-mlx-0.32.4").profile
    points = row_points(profile, LLAMA, most_rows=16)
    law = profile.machine.law(LLAMA.weight_format, depth=4096, columns=28672)
    read_bytes = LLAMA.weight_format.matrix_bytes(28672, 4096)
    product = Product(read_bytes=read_bytes, depth=4096, columns=28672)
    errors: list[float] = []
    for point in points:
        assert point.predicted is not None
        errors.append(abs(point.predicted / point.relative - 1.0))
        if point.format == "4bit":
            ratio = law.time(product, point.rows).total_s / law.time(product, 1).total_s
            assert point.predicted == pytest.approx(float(ratio))
    assert median(errors) < 0.06


def test_a_chip_that_nobody_measured_has_none(capsys: pytest.CaptureFixture[str]) -> None:
    assert answer(capsys, "--format", "4bit")["measured"] == []


def test_kernels_that_mlx_would_not_choose_are_left_out() -> None:
    row = {"runtime": "mlx", "runtime_version": "0.32.0 MLX_METAL_GPU_ARCH=applegpu_g15d"}
    assert published_runtime(row) is None
    assert published_runtime({**row, "runtime_version": "0.32.0"}) == "mlx-0.32"
    assert published_runtime({**row, "runtime_version": "2026-08"}) == "mlx-0.32"
    assert published_runtime({"runtime": "llama.cpp Metal", "runtime_version": "2026"}) is None


def test_a_chip_is_the_same_in_name_and_cores() -> None:
    assert not same_chip("Apple M3, 10-core GPU", {"chip": "M3 Max", "gpu_cores": ""})
    assert same_chip("Apple M4, 10-core GPU", {"chip": "M4", "gpu_cores": "10"})


def test_the_text_names_the_cliffs(capsys: pytest.CaptureFixture[str]) -> None:
    assert tokroof.main(["rows", "llama-3.1-8b", "--format", "8bit"]) == 0
    shown = capsys.readouterr().out
    assert "5 rows cost 1.07, row 6 0.98 more (a tile is added)" in shown


@pytest.mark.parametrize(
    ("options", "line"),
    [
        (["--format", "9bit"], "format '9bit': is not a weight format"),
        (["--runtimes", "mlx-9.9"], "is not known"),
        (["--most", "1"], "--most 1: is out of range"),
        (["--batch", "0"], "--batch 0: is out of range"),
        (["--memory", "much"], "--memory much"),
        (["--machine", "h200-mlx-0.32.4", "--memory", "64"], "does not apply to h200"),
        (["--context", "999999"], "is beyond the 131072 tokens"),
        (["--machine", "h200-mlx-0.32.4", "--runtimes", "mlx-0.30"], "has no table"),
    ],
)
def test_a_refusal_is_one_line(
    options: list[str], line: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert tokroof.main(["rows", "llama-3.1-8b", *options]) == 2
    shown = capsys.readouterr()
    assert line in shown.err
    assert shown.err.count("\n") == 1
    assert shown.out == ""


def test_one_release_that_cannot_be_priced_leaves_the_others(
    capsys: pytest.CaptureFixture[str],
) -> None:
    document = answer(capsys, "--machine", "h200-mlx-0.32.4", "--runtimes", "own,mlx-0.30")
    assert len(document["curves"]) == 1
    assert "has no table" in document["refused"][0]
