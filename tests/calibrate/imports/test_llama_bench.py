from __future__ import annotations

import csv
import io
import json
from typing import Any

import pytest

from calibrate.imports.found import Found
from calibrate.imports.llama_bench import read, recognises
from model.errors import InputError

TABLE = """\
$ llama-bench -m ggufs/Walrus-9B-Instruct-Q4_K_M.gguf -fa 1 -d 0,512
ggml_metal_device_init: GPU name:   MTL0 (Apple M3 Max)
ggml_metal_device_init: GPU family: MTLGPUFamilyApple9  (1009)
| model                  |     size | params | backend  | ngl | fa |         test |            t/s |
| ---------------------- | -------: | -----: | -------- | --: | -: | -----------: | -------------: |
| walrus 9B Q4_K - Small | 5.00 GiB | 9.00 B | MTL,BLAS |  -1 |  1 |        pp512 | 1000.50 ± 2.50 |
| walrus 9B Q4_K - Small | 5.00 GiB | 9.00 B | MTL,BLAS |  -1 |  1 |        tg128 |   60.25 ± 0.25 |
| walrus 9B Q4_K - Small | 5.00 GiB | 9.00 B | MTL,BLAS |  -1 |  1 | pp512 @ d512 |  800.00 ± 1.00 |
| walrus 9B Q4_K - Small | 5.00 GiB | 9.00 B | MTL,BLAS |  -1 |  1 | tg128 @ d512 |   50.00 ± 0.10 |

build: abc123ef (7000)
"""


def entry(n_prompt: int, n_gen: int, avg_ts: float | None, **others: Any) -> dict[str, Any]:
    return {
        "build_commit": "abc123ef",
        "build_number": 7000,
        "cpu_info": "Accelerate, Apple M3 Max",
        "gpu_info": "Apple M3 Max",
        "backends": "MTL,BLAS",
        "model_filename": "ggufs/Walrus-9B-Instruct-Q4_K_M.gguf",
        "model_type": "walrus 9B Q4_K - Medium",
        "model_size": 5_000_000_000,
        "model_n_params": 9_000_000_000,
        "n_batch": 2048,
        "n_ubatch": 512,
        "type_k": "f16",
        "type_v": "f16",
        "n_gpu_layers": -1,
        "no_kv_offload": False,
        "n_prompt": n_prompt,
        "n_gen": n_gen,
        "n_depth": 0,
        "test_time": "2026-10-01T10:00:00Z",
        "avg_ns": 1,
        "stddev_ns": 1,
        "avg_ts": avg_ts,
        "stddev_ts": 0.5,
        "samples_ns": [1, 1],
        "samples_ts": [avg_ts, avg_ts],
        **others,
    }


def as_json(*entries: dict[str, Any]) -> str:
    return json.dumps(list(entries), indent=2)


def as_jsonl(*entries: dict[str, Any]) -> str:
    return "".join(json.dumps(each) + "\n" for each in entries)


def as_csv(*entries: dict[str, Any]) -> str:
    fields = [name for name in entries[0] if not name.startswith("samples")]
    stream = io.StringIO()
    writer = csv.DictWriter(stream, fields, quoting=csv.QUOTE_ALL, extrasaction="ignore")
    stream.write(",".join(fields) + "\n")
    for each in entries:
        writer.writerow({k: int(v) if isinstance(v, bool) else v for k, v in each.items()})
    return stream.getvalue().replace("\r\n", "\n")


def test_a_generation_is_a_plain_run_with_its_prompts_rate() -> None:
    found = read(TABLE, "a.md")
    assert found.left_out == ()
    assert [row.place for row in found.rows] == ["line 7", "line 9"]
    cells = found.rows[0].cells
    # 5 GiB = 5.36870912e9 bytes.
    assert {name: cell for name, cell in cells.items() if name != "notes"} == {
        "chip": "M3 Max",
        "runtime": "llama.cpp (Metal)",
        "runtime_version": "build abc123ef (7000)",
        "target_model": "Walrus-9B-Instruct",
        "target_params_b": "9",
        "quant": "Q4_K_S",
        "model_bytes_gb": "5.36870912",
        "strategy": "plain",
        "batch": "1",
        "context_tokens": "0",
        "date": "",
        "task": "llama-bench synthetic",
        "decode_tok_s": "60.25",
        "prefill_tok_s": "1000.5",
    }
    assert "prefill from pp512" in cells["notes"]
    assert "flash_attn 1" in cells["notes"]


def test_commas_between_thousands_and_units_are_understood() -> None:
    edited = TABLE.replace("1000.50", "**1,000.50**").replace("60.25 ± 0.25", "60.25 t/s")
    cells = read(edited, "a.md").rows[0].cells
    assert (cells["prefill_tok_s"], cells["decode_tok_s"]) == ("1000.5", "60.25")


def test_depth_is_the_context_and_takes_the_prompt_of_its_own_depth() -> None:
    cells = read(TABLE, "a.md").rows[1].cells
    assert (cells["context_tokens"], cells["prefill_tok_s"]) == ("512", "800")


def test_without_a_command_the_table_describes_the_model_only() -> None:
    bare = TABLE.partition("\n")[2]
    row = read(bare, "a.md").rows[0]
    assert row.cells["target_model"] == "walrus 9B"
    assert row.described == {"target_model"}
    assert read(TABLE, "a.md").rows[0].described == frozenset()


def test_the_old_spelling_of_tests_and_file_types() -> None:
    old = (
        "| model | size | params | backend | ngl | test | t/s |\n|---|---|---|---|---|---|---|\n"
        "| walrus 9B mostly Q4_0 | 512.00 MiB | 900.00 M | CUDA | 10 | tg 128 | 60.25 ± 0.25 |\n"
    )
    cells = read(old, "a.md").rows[0].cells
    assert (cells["quant"], cells["runtime"]) == ("Q4_0", "llama.cpp (CUDA)")
    # 512 MiB = 0.536870912e9 bytes.
    assert (cells["model_bytes_gb"], cells["target_params_b"]) == ("0.536870912", "0.9")
    assert "n_gpu_layers 10" in cells["notes"]


@pytest.mark.parametrize("spread", ["±", "Â±", "┬▒", "+/-"])
def test_a_spread_survives_the_wrong_code_page(spread: str) -> None:
    cells = read(TABLE.replace("±", spread), "a.md").rows[0].cells
    assert cells["decode_tok_s"] == "60.25"
    assert "standard deviation 0.25" in cells["notes"]


@pytest.mark.parametrize("form", [as_json, as_jsonl, as_csv])
def test_the_machine_formats_agree(form: Any) -> None:
    found: Found = read(form(entry(512, 0, 1000.5), entry(0, 128, 60.25)), "a")
    [row] = found.rows
    assert row.described == frozenset()
    assert row.cells["decode_tok_s"] == "60.25"
    assert row.cells["prefill_tok_s"] == "1000.5"
    assert row.cells["date"] == "2026-10-01"
    assert row.cells["model_bytes_gb"] == "5"
    assert row.cells["notes"] == (
        "tg128 at depth 0; walrus 9B Q4_K - Medium; standard deviation 0.5 tok/s; "
        "prefill from pp512"
    )


def test_lines_of_a_log_around_json_are_passed_over() -> None:
    text = "ggml_metal_init: loaded\n" + as_json(entry(0, 128, 60.25)) + "\n\nbuild done\n"
    assert recognises(text) > 1
    assert [row.place for row in read(text, "a").rows] == ["line 2, entry 1"]


def test_on_the_cpu_the_chip_is_the_cpus() -> None:
    text = as_json(entry(0, 128, 9.5, n_gpu_layers=0, cpu_info="AMD EPYC", gpu_info="RTX"))
    cells = read(text, "a").rows[0].cells
    assert (cells["runtime"], cells["chip"]) == ("llama.cpp (CPU)", "AMD EPYC")


def test_other_settings_are_no_pair_and_are_noted() -> None:
    text = as_json(entry(512, 0, 1000.5), entry(0, 128, 55.0, type_k="q8_0", no_kv_offload=True))
    prompt, generation = read(text, "a").rows
    assert "prefill_tok_s" not in generation.cells
    assert "type_k q8_0, no_kv_offload 1" in generation.cells["notes"]
    assert prompt.cells["prefill_tok_s"] == "1000.5"
    assert "decode_tok_s" not in prompt.cells


def test_a_further_prompt_is_a_run_without_a_decode_rate() -> None:
    found = read(as_json(entry(512, 0, 1000.5), entry(1024, 0, 900.0), entry(0, 128, 60.25)), "a")
    assert [row.cells.get("decode_tok_s") for row in found.rows] == [None, "60.25"]
    assert found.rows[0].cells["prefill_tok_s"] == "900"


def test_the_rate_of_both_is_left_out_and_named() -> None:
    found = read(as_json(entry(512, 128, 150.0), entry(0, 128, 60.25)), "a.json")
    assert len(found.rows) == 1
    line = "a.json, line 1, entry 1: pp512+tg128 is one rate of both, left out"
    assert found.left_out == (line,)


@pytest.mark.parametrize(
    ("text", "line"),
    [
        (as_json(entry(0, 128, 60.25))[:-40], "a, line 30: is not whole JSON"),
        (as_csv(entry(0, 128, 60.25))[:-40], "a, line 2: "),
        (TABLE.replace(" 60.25 ± 0.25 |", "").replace("|   \n", "|\n"), "a, line 7: has 7 cells"),
        (TABLE.replace("60.25 ±", "60,25 ±"), "a, line 7: '60,25': has a comma"),
        (TABLE.replace("tg128 |", "tg |"), "a, line 7: 'tg': is no test"),
        (TABLE.replace("60.25", "0.00"), "a, line 7: '0.00 ± 0.25': is no rate"),
        (TABLE.replace("5.00 GiB", "5.00 GO"), "a, line 6: '5.00 GO': has no unit"),
        (as_json(entry(0, 128, None)), "a, line 1, entry 1: has no avg_ts"),
        (as_json(entry(0, 128, float("nan"))), "a, line 1, entry 1, avg_ts: 'nan': is not a n"),
        (as_json(entry(0, -1, 60.25)), "a, line 1, entry 1, n_gen: '-1': is no count"),
    ],
)
def test_bad_output_is_one_line_with_its_place(text: str, line: str) -> None:
    assert recognises(text)
    with pytest.raises(InputError) as error:
        read(text, "a")
    assert str(error.value).startswith(line)
