from __future__ import annotations

import json
from pathlib import Path

import pytest

import tokroof
from calibrate.published.read_runs import read_runs

TEXT = """\
% mlx_lm.generate --model mlx-community/Walrus-9B-4bit
Prompt: 40 tokens, 200.500 tokens-per-sec
Generation: 600 tokens, 50.250 tokens-per-sec
Generation: 1 tokens, 9.000 tokens-per-sec
"""


@pytest.fixture
def log(tmp_path: Path) -> Path:
    path = tmp_path / "a.log"
    path.write_text(TEXT)
    return path


def test_without_an_output_it_prints_a_table(log: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert tokroof.main(["import", str(log), "--chip", "M3 Max"]) == 0
    captured = capsys.readouterr()
    header, row = captured.out.splitlines()
    assert header.split()[:3] == ["chip", "model", "quant"]
    assert row.startswith("M3 Max  Walrus-9B   4bit  plain")
    assert row.split()[-4:] == ["1", "40", "200.5", "50.25"]
    assert captured.err == f"note: {log}, line 4: 1 tokens have no decode rate, left out\n"


def test_json_has_every_column(log: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert tokroof.main(["import", str(log), "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert answer["files"] == [{"file": str(log), "format": "mlx-lm"}]
    assert answer["runs"][0]["decode_tok_s"] == 50.25
    assert answer["runs"][0]["chip"] is None
    assert len(answer["left_out"]) == 1


@pytest.mark.parametrize("name", ["runs.csv", "runs.jsonl"])
def test_an_output_is_read_as_runs_and_grows_by_appending(
    log: Path, tmp_path: Path, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    output = tmp_path / name
    assert tokroof.main(["import", str(log), "--output", str(output)]) == 0
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.splitlines()[-1] == f"note: 1 runs written to {output}"
    second = tmp_path / "b.log"
    second.write_text(TEXT.replace("50.25", "49.75"))
    again = ["import", str(log), str(second), "--output", str(output)]
    assert tokroof.main([*again, "--append"]) == 0
    line = f"note: 1 runs added to {output}, 1 already there"
    assert capsys.readouterr().err.splitlines()[-1] == line
    assert [run.decode_tokens_per_s for run in read_runs(output)] == [50.25, 49.75]
    before = output.read_bytes()
    assert tokroof.main(again) == 2
    assert "exists; add --append or --force" in capsys.readouterr().err
    assert output.read_bytes() == before
    assert tokroof.main(["import", str(second), "--output", str(output), "--force"]) == 0
    assert [run.decode_tokens_per_s for run in read_runs(output)] == [49.75]


def test_appending_to_nothing_writes(log: Path, tmp_path: Path) -> None:
    output = tmp_path / "runs.csv"
    assert tokroof.main(["import", str(log), "--output", str(output), "--append"]) == 0
    assert len(read_runs(output)) == 1


@pytest.mark.parametrize(
    ("words", "wrong"),
    [
        (["{log}", "--output", "{log}"], "ends in neither .csv nor .jsonl"),
        (["{folder}/none.log"], "no such file"),
        (["{log}", "--output", "{folder}/d.csv"], "is a folder"),
        (["{folder}/c.csv", "--output", "{folder}/c.csv", "--force"], "is also read"),
        (["{log}", "--append"], "says how to write, and nothing is written; add --output"),
        (["{log}", "--date", "soon"], "is no date"),
        (["{log}", "--only", "spec-bench"], "holds no output of spec-bench"),
    ],
)
def test_bad_input_is_one_line_and_nothing_is_written(
    log: Path,
    tmp_path: Path,
    words: list[str],
    wrong: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    (tmp_path / "d.csv").mkdir()
    (tmp_path / "c.csv").write_text(TEXT)
    before = sorted(tmp_path.iterdir())
    filled = [word.format(log=log, folder=tmp_path) for word in words]
    assert tokroof.main(["import", *filled]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert wrong in captured.err
    assert len(captured.err.splitlines()) == 1
    assert sorted(tmp_path.iterdir()) == before
