from __future__ import annotations

import pytest

from calibrate.imports.mlx_benchmark import read, recognises
from model.errors import InputError

TEXT = """\
% mlx_lm.benchmark --model mlx-community/Walrus-9B-4bit -p 2048 -g 101 -n 2
Running warmup..
Timing with prompt_tokens=2048, generation_tokens=101, batch_size=1.
Trial 1:  prompt_tps=400.000, generation_tps=50.000, peak_memory=5.500, total_time=7.1
Trial 2:  prompt_tps=402.000, generation_tps=52.000, peak_memory=5.600, total_time=7.0
Averages: prompt_tps=401.000, generation_tps=51.000, peak_memory=5.550
"""


def test_averages_are_a_plain_run() -> None:
    [row] = read(TEXT, "a").rows
    assert row.place == "line 6"
    # 101 tokens over the time of 100 of them: 1 % high.
    assert dict(row.cells) == {
        "runtime": "mlx-lm (mlx_lm.benchmark)",
        "target_model": "Walrus-9B",
        "quant": "4bit",
        "strategy": "plain",
        "batch": "1",
        "context_tokens": "2048",
        "prefill_tok_s": "401",
        "decode_tok_s": "51",
        "task": "mlx_lm.benchmark synthetic",
        "notes": "2048 prompt + 101 generated tokens; 2 trials; peak memory 5.550 GB; "
        "its rate counts the first token, and is 1.0 % high; mlx-community/Walrus-9B-4bit",
    }


def test_cut_off_before_the_averages_the_trials_stand_in() -> None:
    [row] = read(TEXT[: TEXT.index("Averages")], "a").rows
    assert row.cells["decode_tok_s"] == "51"
    assert "cut off before its averages" in row.cells["notes"]


def test_a_batch_has_the_rate_of_all_sequences() -> None:
    [row] = read(TEXT.replace("batch_size=1", "batch_size=8"), "a").rows
    assert (row.cells["strategy"], row.cells["batch"]) == ("batch", "8")
    assert "first token" not in row.cells["notes"]


def test_the_wording_before_batches() -> None:
    old = "Timing with prompt_tokens=2048 and generation_tokens=101.\n" + TEXT.partition("1.\n")[2]
    [row] = read(old, "a").rows
    assert (row.cells["context_tokens"], row.cells["batch"]) == ("2048", "1")
    assert "2048 prompt + 101 generated" in row.cells["notes"]


def test_averages_alone_take_their_sizes_from_the_command() -> None:
    text = (
        "mlx_lm.benchmark --model mlx-community/Walrus-9B-4bit \\\n  -p 128 -g 100 -b 16\n\n"
        "Averages: prompt_tps=944.5, generation_tps=301.5, peak_memory=46.9\n"
    )
    [row] = read(text, "a").rows
    assert (row.cells["batch"], row.cells["context_tokens"]) == ("16", "128")
    assert row.cells["target_model"] == "Walrus-9B"


def test_each_benchmark_of_a_log_has_its_own_command() -> None:
    rows = read(TEXT + TEXT.replace("Walrus-9B-4bit", "Walrus-9B-8bit"), "a").rows
    assert [row.cells["quant"] for row in rows] == ["4bit", "8bit"]


def test_a_benchmark_without_a_trial_is_left_out() -> None:
    text = TEXT + "Timing with prompt_tokens=4096, generation_tokens=100, batch_size=1.\n"
    found = read(text, "a")
    assert len(found.rows) == 1
    assert found.left_out == ("a, line 7: a benchmark without a trial, left out",)


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("Averages: prompt_tps=9.5, generation_tps=3.5\n", 'a, line 1: has no "Timing with" line'),
        (TEXT.replace("51.000", "nan"), "a, line 6, generation_tps: 'nan': is not a number"),
        (TEXT.replace("prompt_tokens=2048", "prompt_tokens=many"), "a, line 3, prompt_tokens: "),
        (TEXT.replace(", generation_tps=51.000", ""), "a, line 6, generation_tps: '': is not a n"),
    ],
)
def test_bad_output_is_one_line_with_its_place(text: str, line: str) -> None:
    assert recognises(text)
    with pytest.raises(InputError) as error:
        read(text, "a")
    assert str(error.value).startswith(line)
