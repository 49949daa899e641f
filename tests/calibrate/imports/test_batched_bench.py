from __future__ import annotations

import json

import pytest

from calibrate.imports.batched_bench import read, recognises
from model.errors import InputError

TABLE = """\
llama-batched-bench -hf owner/walrus-9b-GGUF:Q8_0 -npp 512 -ntg 32 -npl 1,4 -c 8192

main: n_kv_max = 8192, n_batch = 2048, n_ubatch = 512, flash_attn = 1, is_pp_shared = 0, \
is_tg_separate = 0, n_gpu_layers = -1, n_threads = 8, n_threads_batch = 8

|    PP |     TG |    B |   N_KV |   T_PP s | S_PP t/s |   T_TG s | S_TG t/s |      T s |    S t/s |
|-------|--------|------|--------|----------|----------|----------|----------|----------|----------|
|   512 |     32 |    1 |    544 |    0.512 |  1000.00 |    0.800 |    40.00 |    1.312 |   414.63 |
|   512 |     32 |    4 |   2176 |    2.000 |  1024.00 |    1.280 |   100.00 |    3.280 |   663.41 |
"""
FIELDS = {
    "n_kv_max": 8192,
    "flash_attn": 1,
    "is_pp_shared": 0,
    "n_gpu_layers": 99,
    "pp": 512,
    "tg": 32,
    "pl": 4,
    "n_kv": 2176,
    "t_pp": 2.0,
    "speed_pp": 1024.0,
    "t_tg": 1.28,
    "speed_tg": 100.0,
}


def test_a_row_is_a_batch_with_the_rate_of_all_sequences() -> None:
    one, four = read(TABLE, "a").rows
    assert (one.cells["strategy"], one.cells["batch"]) == ("plain", "1")
    assert four.place == "line 8"
    assert {name: cell for name, cell in four.cells.items() if name != "notes"} == {
        "chip": "",
        "runtime": "llama.cpp",
        "target_model": "walrus-9b",
        "quant": "Q8_0",
        "strategy": "batch",
        "batch": "4",
        "context_tokens": "512",
        "decode_tok_s": "100",
        "task": "llama-batched-bench synthetic",
        "prefill_tok_s": "1024",
    }
    assert "PP 512, TG 32, B 4, flash_attn 1, is_pp_shared 0" in four.cells["notes"]


def test_json_lines_say_the_same() -> None:
    [row] = read(json.dumps(FIELDS) + "\n", "a").rows
    table = read(TABLE, "a").rows[1]
    same = ("strategy", "batch", "context_tokens", "decode_tok_s", "prefill_tok_s", "task")
    assert [row.cells[name] for name in same] == [table.cells[name] for name in same]


def test_sequences_one_after_the_other_are_plain() -> None:
    row = read(TABLE.replace("is_tg_separate = 0", "is_tg_separate = 1"), "a").rows[1]
    assert (row.cells["strategy"], row.cells["batch"]) == ("plain", "1")
    assert "one after the other" in row.cells["notes"]


def test_settings_hold_for_the_tables_below_them() -> None:
    second = TABLE.replace("flash_attn = 1", "flash_attn = 0").replace("40.00", "41.00")
    rows = read(TABLE + second, "a").rows
    assert ["flash_attn 1" in row.cells["notes"] for row in rows] == [True, True, False, False]


def test_no_prompt_has_no_rate() -> None:
    assert (
        "prefill_tok_s"
        not in read(json.dumps(FIELDS | {"pp": 0, "speed_pp": 0}), "a").rows[0].cells
    )


def test_sweep_bench_is_not_taken_for_it() -> None:
    assert not recognises("| PP | TG | N_KV | T_PP s | S_PP t/s | T_TG s | S_TG t/s |\n")


@pytest.mark.parametrize(
    ("text", "line"),
    [
        (TABLE.replace("100.00 |    3.280 |   663.41 |", "1"), "a, line 8: has 8 cells under 10"),
        (TABLE.replace("100.00", "inf"), "a, line 8, S_TG t/s: 'inf': is not a number"),
        (TABLE.replace("|    4 |", "|  4.5 |"), "a, line 8, B: '4.5': is no count"),
        (json.dumps({"speed_tg": 1.0}), "a, line 1: has no pp"),
        (json.dumps(FIELDS) + "\n" + json.dumps(FIELDS)[:-9], "a, line 2: is not whole JSON"),
    ],
)
def test_bad_output_is_one_line_with_its_place(text: str, line: str) -> None:
    with pytest.raises(InputError) as error:
        read(text, "a")
    assert str(error.value).startswith(line)
