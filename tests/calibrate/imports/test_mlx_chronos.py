from __future__ import annotations

import json
from typing import Any

import pytest

from calibrate.imports.mlx_chronos import read, recognises
from model.errors import InputError


def statistics(mean: float) -> dict[str, float]:
    return {"mean": mean, "stddev": 0.5, "min": mean - 1, "max": mean + 1}


RESULT: dict[str, Any] = {
    "hardware": {
        "chip": "Apple M5 Pro",
        "memory_gb": 64.0,
        "macos_version": "26.5",
        "thermal_state": "nominal",
    },
    "engine": {"name": "omlx", "version": "0.5.1"},
    "model": {"name": "walrus-9b-4bit", "quantization": "4bit", "reference_url": None},
    "metrics": {
        "ttft_cold": statistics(1.5),
        "tokens_per_second": statistics(60.0),
        "request_tokens_per_second": statistics(60.0),
        "decode_tokens_per_second": statistics(70.5),
        "token_count_source": "usage.completion_tokens",
    },
    "meta": {"chronos_version": "0.4.0", "timestamp": "2026-07-20T20:52:30Z"},
}


def changed(part: str, **values: Any) -> str:
    return json.dumps(RESULT | {part: RESULT[part] | values}, indent=2)


def test_a_result_is_a_plain_run_at_its_decode_rate() -> None:
    [row] = read(json.dumps(RESULT, indent=2), "a").rows
    assert {name: cell for name, cell in row.cells.items() if name != "notes"} == {
        "chip": "M5 Pro",
        "memory_gb": "64.0",
        "runtime": "omlx",
        "runtime_version": "0.5.1",
        "target_model": "walrus-9b",
        "quant": "4bit",
        "strategy": "plain",
        "batch": "1",
        "decode_tok_s": "70.5",
        "date": "2026-07-20",
        "task": "mlx-chronos baseline",
        "trust": "medium",
    }
    assert row.cells["notes"].startswith("decode alone; standard deviation 0.5 tok/s")


def test_an_older_result_has_the_rate_of_whole_requests() -> None:
    text = changed("metrics", decode_tokens_per_second=None, request_tokens_per_second=None)
    [row] = read(text, "a").rows
    assert row.cells["decode_tok_s"] == "60"
    assert row.cells["notes"].startswith("whole requests, prompt and overhead included")


def test_counted_words_are_trusted_less() -> None:
    [row] = read(changed("metrics", token_count_source="word_fallback"), "a").rows
    assert row.cells["trust"] == "low"
    assert "counted as words" in row.cells["notes"]


@pytest.mark.parametrize(
    ("text", "line"),
    [
        (json.dumps(RESULT, indent=2)[:-5], "a, line 47: is not whole JSON"),
        (json.dumps(RESULT | {"engine": None}), "a, line 1: has no engine"),
        (
            changed("metrics", decode_tokens_per_second={"mean": "?"}),
            "a, line 1, metrics, decode_tokens_per_second, mean: '?': is not a number",
        ),
    ],
)
def test_bad_output_is_one_line_with_its_place(text: str, line: str) -> None:
    assert recognises(text)
    with pytest.raises(InputError) as error:
        read(text, "a")
    assert str(error.value).startswith(line)
