from __future__ import annotations

import pytest

from calibrate.imports.blanks import Given
from calibrate.imports.registry import FORMATS, Imported, format_of, imported
from calibrate.imports.source import Source
from model.errors import InputError

LLAMA = (
    "| model | size | params | backend | ngl | test | t/s |\n|---|---|---|---|---|---|---|\n"
    "| walrus 9B Q4_0 | 5.00 GiB | 9.00 B | MTL,BLAS | -1 | tg128 | 60.25 ± 0.25 |\n"
)
MLX = (
    "% mlx_lm.generate --model mlx-community/Walrus-9B-4bit\n"
    "Prompt: 40 tokens, 200.5 tokens-per-sec\nGeneration: 600 tokens, 50.25 tokens-per-sec\n"
)
SAMPLES = {
    "llama-bench": LLAMA,
    "llama-batched-bench": '{"pp": 1, "tg": 1, "pl": 2, "speed_pp": 1.0, "speed_tg": 2.0}',
    "mlx_lm.benchmark": (
        "Timing with prompt_tokens=9, generation_tokens=9, batch_size=1.\n"
        "Trial 1:  prompt_tps=2.5, generation_tps=1.5, peak_memory=1.0\n"
    ),
    "mlx-lm": MLX,
    "mlx-chronos": '{"meta": {"chronos_version": "0.4.0"}}',
    "spec-bench": "Models,#Mean Accepted Tokens,Overall\nHats,2,1.5x\n",
}


def run(text: str, **given: str) -> Imported:
    return imported([Source(name="a", text=text)], Given(**given))


def refusal(text: str, **given: str) -> str:
    with pytest.raises(InputError) as error:
        run(text, **given)
    return str(error.value)


def test_every_format_has_a_sample_that_it_alone_recognises() -> None:
    assert set(SAMPLES) == set(FORMATS)
    for name, text in SAMPLES.items():
        assert format_of(Source(name="any name", text=text)).name == name


def test_an_unknown_text_lists_what_is_known() -> None:
    line = refusal("tokens: many\n")
    assert line == f"a: is in no known format; known: {', '.join(FORMATS)}"


def test_several_formats_are_refused_with_their_lines_unless_one_is_chosen() -> None:
    line = refusal(LLAMA + MLX)
    assert line.startswith("a: holds llama-bench (line 1) and mlx-lm (line 6); give one a file")
    both = Source(name="a", text=LLAMA + MLX)
    [chosen] = imported([both], Given(), only="mlx-lm").runs
    assert chosen.decode_tokens_per_s == 50.25
    with pytest.raises(InputError, match="holds no output of spec-bench"):
        format_of(both, "spec-bench")
    with pytest.raises(InputError, match="did you mean llama-bench"):
        format_of(both, "lama-bench")


def test_a_run_says_where_it_comes_from() -> None:
    [found] = run(MLX).runs
    assert (found.source, found.locator, found.trust) == ("a", "line 3", "medium")
    assert found.notes.startswith("imported from mlx-lm; 40 prompt")


def test_ids_are_made_from_what_was_measured() -> None:
    [first] = run(MLX).runs
    [moved] = imported([Source(name="b", text="\n\n" + MLX)], Given(chip="M3")).runs
    assert moved.id == first.id
    [faster] = run(MLX.replace("50.25", "50.26")).runs
    assert faster.id != first.id
    longer = run(MLX.replace("600 tokens", "700 tokens"))
    assert longer.runs[0].id != first.id


def test_the_same_run_is_kept_once() -> None:
    found = imported([Source(name="a", text=MLX), Source(name="b", text=MLX)], Given())
    assert len(found.runs) == 1
    assert found.left_out == ("b, line 3: the same run again, left out",)


def test_blanks_are_filled_and_said_to_be() -> None:
    [found] = run(MLX, chip="Apple M3 Max", gpu_cores="40", memory="64GB", date="2026-11").runs
    assert (found.chip, found.gpu_cores, found.date) == ("M3 Max", 40, "2026-11")
    assert found.memory_bytes == 64 * 2**30
    assert found.notes.endswith("given at import: chip, gpu_cores, memory_gb, date")


def test_what_is_stated_may_be_repeated_but_not_changed() -> None:
    assert run(MLX, quant="4BIT", model="mlx-community/walrus-9b-4bit").runs[0].quant == "4bit"
    assert refusal(MLX, quant="8bit") == (
        "--quant 8bit: is not what a, line 3 states (4bit); leave --quant out"
    )


def test_a_description_gives_way_to_a_name() -> None:
    assert run(LLAMA).runs[0].target == "walrus 9B"
    [named] = run(LLAMA, model="Walrus-9B-Instruct").runs
    assert named.target == "Walrus-9B-Instruct"
    assert "walrus 9B Q4_0" in named.notes


@pytest.mark.parametrize(
    ("given", "line"),
    [
        ({"chip": " "}, "--chip ' ': is empty"),
        ({"gpu_cores": "ten"}, "--gpu-cores: 'ten': is not a number"),
        ({"gpu_cores": "9.5"}, "--gpu-cores: '9.5': is no count"),
        ({"memory": "much"}, "--memory: 'much': is not a number"),
        ({"date": "29.11.2026"}, "--date 29.11.2026: is no date"),
        ({"date": "2026-13"}, "--date 2026-13: is no date"),
    ],
)
def test_an_impossible_value_is_refused(given: dict[str, str], line: str) -> None:
    assert refusal(MLX, **given).startswith(line)


def test_a_text_without_a_single_run_is_refused() -> None:
    line = refusal("Generation: 1 tokens, 50.25 tokens-per-sec\n")
    assert line == "a: holds no run of mlx-lm; a, line 1: 1 tokens have no decode rate, left out"


@pytest.mark.parametrize("name", SAMPLES)
def test_a_text_cut_anywhere_is_read_or_refused_in_one_line(name: str) -> None:
    text = SAMPLES[name]
    refusals: list[str] = []
    for end in range(len(text)):
        for damaged in (text[:end], text[:end] + "\x00\u2028|" + text[end + 1 :]):
            try:
                run(damaged)
            except InputError as error:
                refusals.append(str(error))
    assert refusals
    assert {len(line.splitlines()) for line in refusals} == {1}
