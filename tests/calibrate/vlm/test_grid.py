"""A plan with diffusion and heads: made, resumed, compared and predicted like its other runs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import tokroof
from calibrate.campaign.conduct import Conductor
from calibrate.campaign.plan import planned_runs, read_plan
from calibrate.run_file import read_runs
from model.errors import InputError
from tests.calibrate.vlm.tiny import HEADS, LLADA, QWEN, needs_mlx_vlm, written

pytestmark = needs_mlx_vlm
PLAN = """
about = "what mlx-lm and mlx-vlm decode"

[[stages]]
targets = ["{llada}"]
formats = ["4bit"]
contexts = [16]

[[stages.arms]]
strategy = "diffusion"
blocks = [8]
answers = [8, 16]
steps = [2]

[[stages]]
targets = ["{qwen}"]
formats = ["4bit"]
contexts = [16]
tokens = 12

[[stages.arms]]
strategy = "draft-head"
head = "{head}"
draft_lengths = [1]

[[stages]]
targets = ["{qwen}"]
formats = ["4bit"]
contexts = [16]
tokens = 4
"""


@pytest.fixture
def plan(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv("TOKROOF_HOME", str(tmp_path / "home"))
    names = {"llada": LLADA, "qwen": QWEN, "head": HEADS["mtp"]}
    places = {name: written(tmp_path, name, config) for name, config in names.items()}
    file = tmp_path / "plan.toml"
    file.write_text(PLAN.format(**places))
    return str(file)


def grid(plan: str, output: Path, *, status: int = 0) -> list[tuple[str, int, str]]:
    """What was decoded, how many tokens of it, and whose loop it was."""
    assert tokroof.main(["run", "grid", plan, "--output", str(output)]) == status
    made = read_runs(output) if output.exists() else ()
    return [(run.strategy, run.tokens, run.library.split(" ")[0]) for run in made]


def test_all_are_made_once_and_validated(
    plan: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    output = tmp_path / "runs.jsonl"
    answers = [("diffusion", tokens, "mlx-vlm") for tokens in (8, 16, 8)]
    head = [("plain", 12, "mlx-vlm"), ("draft-head", 12, "mlx-vlm"), ("plain", 12, "mlx-vlm")]
    plain = [("plain", 4, "")] * 2
    assert grid(plan, output) == answers + head + plain
    assert "8 of 8 runs are in" in capsys.readouterr().out
    # Interrupted before the fourth, it goes on there; with nothing left, it makes nothing.
    lines = output.read_text().splitlines(keepends=True)
    output.write_text("".join(lines[:3]))
    assert grid(plan, output) == answers + head + plain
    assert grid(plan, output) == answers + head + plain
    assert read_runs(output)[4].matches_plain is not None
    capsys.readouterr()
    command = ["validate", str(output), "--machine", "m3-10core-16gb", "--any-machine", "--json"]
    assert tokroof.main(command) == 0
    rows: list[dict[str, Any]] = json.loads(capsys.readouterr().out)["rows"]
    assert all(row["refused"] is None for row in rows)
    kinds = sorted((row["quantity"], row["label"].split(" ")[2]) for row in rows)
    assert ("speedup", "draft-head") in kinds
    assert kinds.count(("tokens_per_s", "diffusion")) == 2
    assert kinds.count(("tokens_per_s", "plain")) == 2  # one by each library


def test_a_run_that_does_not_fit_is_refused_before_anything_is_opened(
    plan: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("calibrate.campaign.conduct_mlx_vlm.free_bytes", lambda: 1000)
    first = planned_runs(read_plan(plan))[0]
    with pytest.raises(InputError, match=r"diffusion block=8 steps=2 answer=8: needs .* GB"):
        Conductor(print).run(first)


def test_without_mlx_vlm_the_other_runs_are_made(
    plan: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("calibrate.vlm.library.PACKAGE", "mlx_vlm_that_is_not_there")
    assert grid(plan, tmp_path / "runs.jsonl", status=1) == [("plain", 4, "")] * 2
    shown = capsys.readouterr()
    assert "answer=8: the run: needs mlx-vlm, which is not installed" in shown.err
    assert "6 could not be made" in shown.out
