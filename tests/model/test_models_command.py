"""`tokroof models`: the list, one model, and the same numbers as JSON."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

import tokroof
from model import catalog

KEYS = {
    *("name", "format", "params", "active_params", "total_bytes", "weight_bytes_per_token"),
    *("kv_bytes_per_token", "kept_kv_bytes_per_token", "state_bytes", "layers", "source"),
}


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    assert tokroof.main(["models", *arguments]) == 0
    captured = capsys.readouterr()
    assert captured.err == ""
    return captured.out


def test_the_list_has_a_line_for_each_model(capsys: pytest.CaptureFixture[str]) -> None:
    heading, *lines = run(capsys).splitlines()
    assert heading.split() == ["model", "params", "active", "layers", "4bit", "GB"]
    assert [line.split()[0] for line in lines] == list(catalog.architecture_names())
    (llama,) = (line for line in lines if line.startswith("llama-3.1-8b "))
    assert llama.split() == ["llama-3.1-8b", "8.03", "B", "8.03", "B", "32", "4.52"]
    assert {len(line) for line in lines} == {len(heading)}


def test_the_list_in_another_format(capsys: pytest.CaptureFixture[str]) -> None:
    lines = run(capsys, "--format", "8bit").splitlines()
    assert lines[0].endswith("8bit GB")
    (llama,) = (line for line in lines if line.startswith("llama-3.1-8b "))
    assert llama.endswith(" 8.53")


def test_one_model_for_a_person(capsys: pytest.CaptureFixture[str]) -> None:
    lines = run(capsys, "qwen3-30b-a3b", "--format", "4bit").splitlines()
    assert lines[0] == "qwen3-30b-a3b (qwen3_moe) in 4bit"
    rows = dict(line.strip().split("  ", 1) for line in lines[1:])
    assert {label: value.strip() for label, value in rows.items() if label != "source"} == {
        "parameters": "30.53 B",
        "active in a token": "3.35 B",
        "layers": "48",
        "weights in memory": "17.181 GB",
        "read for a token": "1.718 GB",
        "cache of a token": "98.3 kB",
        "context limit": "40960 tokens",
    }


def test_one_model_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    record = json.loads(run(capsys, "llama-3.1-8b", "--format", "4bit", "--json"))
    assert set(record) == KEYS
    assert record["params"] == 8_030_261_248
    assert record["total_bytes"] == 4_517_404_672
    assert record["weight_bytes_per_token"] == 4_221_902_848
    assert record["kv_bytes_per_token"] == 131_072
    assert record["layers"] == 32


def test_the_list_as_json_is_the_record_of_each(capsys: pytest.CaptureFixture[str]) -> None:
    listed = json.loads(run(capsys, "--json"))
    assert [record["name"] for record in listed] == list(catalog.architecture_names())
    alone = json.loads(run(capsys, "gemma-3-4b", "--json"))
    assert alone in listed
    assert all(set(record) == KEYS for record in listed)


def test_a_local_model_is_counted_like_a_shipped_one(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config = catalog.architecture_config("llama-3.2-1b")
    (tmp_path / "config.json").write_text(json.dumps(config), encoding="utf-8")
    record = json.loads(run(capsys, str(tmp_path), "--format", "4bit", "--json"))
    assert record["total_bytes"] == 695_242_752
    assert record["source"] == str(tmp_path / "config.json")


@pytest.mark.parametrize(
    "arguments",
    [["lama-3.1-8b"], ["llama-3.1-8b", "--format", "q5"], ["--format", "4.5bit"], ["none/such"]],
)
def test_bad_input_is_one_line_and_exit_2(
    arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert tokroof.main(["models", *arguments]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith("tokroof models: ")
    assert len(captured.err.splitlines()) == 1


def test_the_list_starts_light() -> None:
    listed = "import sys, tokroof; tokroof.main(['models']); print(*sys.modules)"
    result = subprocess.run(
        [sys.executable, "-c", listed],
        cwd=Path(tokroof.__file__).parent,
        capture_output=True,
        text=True,
        check=True,
    )
    loaded = set(result.stdout.splitlines()[-1].split())
    assert not loaded & {"mlx", "scipy", "urllib.request", "ssl"}
