"""`tokroof audit`: the table, the JSON, our own records, and a line for each broken file."""

from __future__ import annotations

import csv
import json
from dataclasses import replace
from pathlib import Path

import pytest

import tokroof
from calibrate.audit.own_runs import falling_rate, published_form
from calibrate.environment import Environment
from calibrate.run_file import append_run
from calibrate.run_record import Run
from tests.calibrate.audit.rows import DRAFTED, PLAIN

ENVIRONMENT = Environment(
    device="metal",
    chip="Apple M3",
    architecture="applegpu_g15g",
    memory_bytes=16 * 2**30,
    recommended_working_set_bytes=None,
    os="macOS 15.6",
    python="3.11.7",
    mlx="0.32.4",
    mlx_lm="0.32.2",
    mlx_variables=(),
)
OWN = Run(
    id="own",
    date="2026-11-29T12:00:00+00:00",
    strategy="plain",
    target="llama-3.1-8b",
    target_format="4bit",
    target_weights="random",
    draft="",
    draft_format="",
    draft_length=0,
    context_tokens=64,
    tokens=2,
    round_s=(0.05,) * 30,
    accepted=(0,) * 30,
    output=(5, 6),
    matches_plain=None,
    peak_memory_bytes=5_000_000_000,
    environment=ENVIRONMENT,
)
# A round of 2 accepted tokens in the time of a third of a pass.
TOO_FAST = replace(
    OWN,
    id="fast",
    strategy="speculative",
    draft="llama-3.2-1b",
    draft_format="4bit",
    draft_length=2,
    round_s=(0.016,) * 30,
    accepted=(2,) * 30,
)


@pytest.fixture
def table(tmp_path: Path) -> Path:
    path = tmp_path / "runs.csv"
    columns = sorted({*PLAIN, *DRAFTED})
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, columns)
        writer.writeheader()
        writer.writerow(PLAIN)
        writer.writerow(DRAFTED | {"tokens_per_pass": "4.01", "trust": "low"})
    return path


def test_text_shows_the_flags_and_a_summary(
    table: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert tokroof.main(["audit", str(table)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split() == ["rule", "run", "explanation"]
    assert "impossible/progress-above-draft       d    4.01 tokens per pass with k = 2" in lines[2]
    assert lines[-1] == "2 runs, 1 flagged, 2 flags"
    assert [line.split()[-4:] for line in lines if line.startswith("impossible")][2:] == [
        ["0", "0", "1", "1"],
        ["0", "0", "1", "1"],
    ]


def test_json_holds_id_rule_and_explanation(
    table: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert tokroof.main(["audit", str(table), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found.keys() == {"flags"}
    assert {flag["rule"] for flag in found["flags"]} == {
        "impossible/progress-above-acceptance",
        "impossible/progress-above-draft",
    }
    assert all(flag.keys() == {"id", "rule", "explanation"} for flag in found["flags"])


def test_json_lines_of_the_same_columns_are_read(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "runs.jsonl"
    path.write_text(json.dumps(PLAIN) + "\n" + json.dumps(PLAIN | {"id": "q"}) + "\n")
    assert tokroof.main(["audit", str(path)]) == 0
    assert capsys.readouterr().out == "2 runs, 0 flagged, 0 flags\n"


def test_own_records_are_judged_by_the_same_rules(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "own.jsonl"
    hot = replace(OWN, id="hot", round_s=(*(0.05,) * 15, *(0.07,) * 15))
    for run in (OWN, TOO_FAST, hot):
        append_run(path, run)
    assert tokroof.main(["audit", str(path), "--json"]) == 0
    flags = json.loads(capsys.readouterr().out)["flags"]
    # 3 tokens in 16 ms against one in 50 ms: 9.4 times as fast, and 3 is the most.
    assert [(flag["id"], flag["rule"]) for flag in flags] == [
        ("fast", "impossible/speedup-above-progress"),
        ("hot", "suspicious/falling-rate"),
    ]


def test_a_record_beside_its_plain_run_has_a_speedup() -> None:
    plain, fast = published_form((OWN, TOO_FAST))
    assert plain.baseline_tokens_per_s is None
    assert fast.baseline_tokens_per_s == pytest.approx(20.0)
    assert fast.tokens_per_pass == pytest.approx(3.0)
    assert published_form((TOO_FAST,))[0].baseline_tokens_per_s is None


def test_a_steady_or_short_run_does_not_fall() -> None:
    assert falling_rate(OWN) is None
    assert falling_rate(replace(OWN, round_s=(0.05, 0.09), accepted=(0, 0))) is None


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "is empty"),
        ("id,chip\n1,M3\n", "has no column runtime"),
        (",".join(PLAIN) + "\n", "has no rows"),
        (",".join(PLAIN) + "\n" + "x," * 40 + "\n", "more than the 16 columns"),
        ('{"id": 1', "is not JSON"),
        ('{"id": "a", "round_s": [0.1]}', "is missing"),
    ],
)
def test_a_malformed_file_gives_its_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str, said: str
) -> None:
    path = tmp_path / "bad"
    path.write_text(text)
    assert tokroof.main(["audit", str(path)]) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.count("\n") == 1
    assert said in printed.err


@pytest.mark.parametrize("name", ["missing", "."])
def test_what_cannot_be_opened_gives_its_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    assert tokroof.main(["audit", str(tmp_path / name)]) == 2
    assert "cannot be read" in capsys.readouterr().err


def test_an_awaited_run_is_no_slow_repeat_of_the_plain_one(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "own.jsonl"
    for run in (OWN, replace(OWN, id="awaited", strategy="awaited", round_s=(0.09,) * 30)):
        append_run(path, run)
    assert tokroof.main(["audit", str(path)]) == 0
    assert capsys.readouterr().out == "2 runs, 0 flagged, 0 flags\n"
