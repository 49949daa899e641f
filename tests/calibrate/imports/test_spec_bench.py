from __future__ import annotations

import json
from typing import Any

import pytest

from calibrate.imports.found import run_of
from calibrate.imports.spec_bench import read, recognises, with_baselines
from model.errors import InputError

BOARD = """\
## Leaderboard on Walrus

- Device: a single NVIDIA Walrus 9000 GPU (48GB) with 12 CPU cores
- Testing environment: Pytorch 9.1, under CUDA 12.1
- Experimental Settings: Walrus-7B-v1, greedy decoding, FP16 precision, batch size = 1

| Models | Translation | Summa-rization | #Mean Accepted Tokens | Overall |
| ------ | :---------: | :------------: | :-------------------: | :-----: |
| [Hats[V2]](https://example.org/hats)🏅 | **1.50x** | 2.00x | **3.25** | **1.75x** |
| [PLD](https://example.org/pld) | 1.10x | 1.90x | 1.50 | 1.40x |
"""


def answer(model_id: str, category: str, tokens: int, time_s: float, *lengths: int) -> str:
    choice: dict[str, Any] = {
        "index": 0,
        "turns": ["text"],
        "decoding_steps": [len(lengths)],
        "new_tokens": [tokens],
        "wall_time": [time_s],
        "accept_lengths": lengths,
    }
    record = {"question_id": 81, "category": category, "model_id": model_id, "choices": [choice]}
    return json.dumps(record) + "\n"


ANSWERS = (
    answer("walrus-7b-sps-68m-float16-temp-0.0", "writing", 6, 0.1, 3, 3)
    + answer("walrus-7b-sps-68m-float16-temp-0.0", "math", 4, 0.1, 2, 2)
    + answer("walrus-7b-sps-68m-float16-temp-0.0", "qa", 4, 0.2, 1, 1, 2)
)
VANILLA = answer("walrus-7b-vanilla-float16-temp-0.0", "qa", 3, 0.3, 1, 1, 1)


def test_a_method_is_a_run_overall_and_one_for_each_task() -> None:
    rows = read(BOARD, "a").rows
    assert [row.cells["task"] for row in rows[:3]] == [
        "Spec-Bench translation",
        "Spec-Bench summarization",
        "Spec-Bench overall",
    ]
    assert {name: cell for name, cell in rows[2].cells.items() if name != "notes"} == {
        "chip": "NVIDIA Walrus 9000",
        "memory_gb": "48",
        "runtime": "Spec-Bench",
        "runtime_version": "Pytorch 9.1, under CUDA 12.1",
        "target_model": "Walrus-7B-v1",
        "quant": "fp16",
        "strategy": "speculative",
        "draft_model": "Hats[V2]",
        "batch": "1",
        "tokens_per_pass": "3.25",
        "speedup": "1.75",
        "task": "Spec-Bench overall",
    }
    assert "tokens_per_pass" not in rows[0].cells
    assert {row.cells["strategy"] for row in rows[3:]} == {"ngram"}


def test_a_heading_below_the_settings_names_the_model() -> None:
    text = BOARD.replace("Walrus-7B-v1, greedy", "greedy").replace(
        "\n| Models", "\n### W-13B\n| Models"
    )
    assert {row.cells["target_model"] for row in read(text, "a").rows} == {"W-13B"}


def test_a_leaderboard_as_csv() -> None:
    text = "Models,Translation,#Mean Accepted Tokens,Overall\nHats,1.5x,3.25,1.75x\nHares,,2,1.5\n"
    rows = read(text, "a").rows
    found = [(row.place, row.cells["draft_model"], row.cells["speedup"]) for row in rows]
    assert found == [
        ("line 2", "Hats", "1.5"),
        ("line 2", "Hats", "1.75"),
        ("line 3", "Hares", "1.5"),
    ]


def test_answers_are_gathered_by_task_as_spec_bench_does() -> None:
    overall, conversation, questions = read(ANSWERS, "a").rows
    # Rates 60, 40 and 20 tok/s, their mean 40; rounds 3 3 2 2 1 1 2, their mean 2.
    assert (overall.cells["decode_tok_s"], overall.cells["tokens_per_pass"]) == ("40", "2")
    assert overall.cells["target_model"] == "walrus-7b"
    assert overall.cells["quant"] == "fp16"
    assert overall.cells["draft_model"] == "sps-68m-float16-temp-0.0"
    # Writing and math are one task, the conversation: (60 + 40) / 2.
    assert (conversation.cells["task"], conversation.cells["decode_tok_s"]) == (
        "Spec-Bench mt_bench",
        "50",
    )
    assert questions.cells["tokens_per_pass"] == "1.333333333"


def test_a_name_that_is_not_spec_benchs_is_kept_whole() -> None:
    [row] = read(answer("my-walrus", "qa", 4, 0.2, 2, 2), "a").rows
    assert (row.cells["target_model"], row.cells["strategy"]) == ("my-walrus", "speculative")
    [row] = read(answer("my-walrus", "qa", 2, 0.2, 1, 1), "a").rows
    assert row.cells["strategy"] == "plain"


def test_plain_decoding_of_the_same_task_gives_the_speedup() -> None:
    only_qa = ANSWERS.splitlines(keepends=True)[2]
    rows = [*read(only_qa, "a").rows, *read(VANILLA, "b").rows]
    drafted, plain = with_baselines([run_of(row, "spec-bench", "a", {}) for row in rows])
    assert plain.strategy == "plain"
    assert plain.speedup is None
    # 4 tokens in 0.2 s against 3 in 0.3 s.
    assert drafted.baseline_tokens_per_s == pytest.approx(10.0)
    assert drafted.speedup == pytest.approx(2.0)


def test_of_several_baselines_none_is_chosen() -> None:
    second = answer("walrus-7b-vanilla-float16-temp-1.0", "qa", 3, 0.2, 1, 1, 1)
    rows = [row for text in (ANSWERS, VANILLA, second) for row in read(text, "a").rows]
    runs = with_baselines([run_of(row, "spec-bench", "a", {}) for row in rows])
    assert {run.speedup for run in runs} == {None}


def test_a_question_that_failed_is_left_out() -> None:
    failed = ANSWERS.replace('"text"', '"ERROR"', 1)
    found = read(failed, "a")
    assert found.left_out == ("a, line 1: a question without an answer, left out",)
    assert found.rows[0].cells["decode_tok_s"] == "30"


@pytest.mark.parametrize(
    ("text", "line"),
    [
        (BOARD.replace(" | 1.40x |", ""), "a, line 10: has 4 cells under 5 columns"),
        (BOARD.replace("1.40x", "1,40x"), "a, line 10, Overall: '1,40x': has a comma"),
        (ANSWERS + ANSWERS[:40], "a, line 4: is not whole JSON"),
        (ANSWERS.replace('"wall_time": [0.1]', '"wall_time": 0.1'), "a, line 1: has no wall_time"),
        (ANSWERS.replace("[3, 3]", '[3, "3"]'), "a, line 1, accept_lengths: is no list of num"),
        (ANSWERS.replace('"choices"', '"choice"'), "a, line 1: has no choices"),
    ],
)
def test_bad_output_is_one_line_with_its_place(text: str, line: str) -> None:
    assert recognises(text)
    with pytest.raises(InputError) as error:
        read(text, "a")
    assert str(error.value).startswith(line)
