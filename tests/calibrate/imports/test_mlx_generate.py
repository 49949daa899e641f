from __future__ import annotations

import pytest

from calibrate.imports.mlx_generate import read, recognises
from model.errors import InputError

TEXT = """\
% mlx_lm.generate --model mlx-community/Walrus-9B-4bit --prompt "Say: Prompt: 12 tokens"
==========
Prompt and Generation are words that a model may say.
==========
Prompt: 40 tokens, 200.500 tokens-per-sec
Generation: 101 tokens, 50.250 tokens-per-sec
Peak memory: 5.500 GB
"""
BATCH = """\
[batch_generate] Finished processing 0/4 ...\n[batch_generate] Finished processing 4/4
[batch_generate] Prompt: 160 tokens, 900.000 tokens-per-sec
[batch_generate] Generation: 400 tokens, 120.000 tokens-per-sec
[batch_generate] Peak memory: 6.000 GB
"""


def test_a_pair_of_lines_is_a_plain_run() -> None:
    [row] = read(TEXT, "a").rows
    assert row.place == "line 6"
    # 101 tokens over the time of 100 of them: 1 % high.
    assert dict(row.cells) == {
        "runtime": "mlx-lm",
        "target_model": "Walrus-9B",
        "quant": "4bit",
        "strategy": "plain",
        "batch": "1",
        "decode_tok_s": "50.25",
        "prefill_tok_s": "200.5",
        "context_tokens": "40",
        "notes": "40 prompt + 101 generated tokens; its rate counts the first token, and is "
        "1.0 % high; mlx-community/Walrus-9B-4bit; peak memory 5.500 GB",
    }


def test_a_draft_model_makes_it_speculative() -> None:
    drafted = TEXT.replace("--prompt", "--draft-model mlx-community/Walrus-1B-4bit --prompt")
    cells = read(drafted, "a").rows[0].cells
    assert (cells["strategy"], cells["draft_model"], cells["k"]) == (
        "speculative",
        "Walrus-1B 4bit",
        "3",
    )
    assert "k is mlx-lm's own" in cells["notes"]
    told = drafted.replace("--draft-model", "--num-draft-tokens=5 --draft-model")
    assert read(told, "a").rows[0].cells["k"] == "5"


def test_without_a_command_the_notes_say_what_is_taken_for_granted() -> None:
    cells = read(TEXT.partition("\n")[2], "a").rows[0].cells
    assert cells["target_model"] == ""
    assert "taken as plain" in cells["notes"]


def test_lines_inside_a_log_or_a_quotation() -> None:
    quoted = TEXT.replace("Prompt: 40", "> \tPrompt: 40").replace(
        "Generation: 101", "2026-11-29 12:00:00,000 - INFO - Generation: 101"
    )
    assert read(quoted, "a").rows[0].cells["context_tokens"] == "40"


def test_rates_without_counts() -> None:
    old = "Prompt: 200.5 tokens-per-sec\nGeneration: 50.25 tokens-per-sec\n"
    cells = read(old, "a").rows[0].cells
    assert (cells["decode_tok_s"], cells["prefill_tok_s"]) == ("50.25", "200.5")
    assert "context_tokens" not in cells


def test_a_batch_shares_its_tokens() -> None:
    cells = read(BATCH, "a").rows[0].cells
    assert (cells["strategy"], cells["batch"], cells["context_tokens"]) == ("batch", "4", "40")
    unsized = "".join(BATCH.splitlines(keepends=True)[2:])
    cells = read(unsized, "a").rows[0].cells
    assert (cells["strategy"], cells["batch"]) == ("batch", "")
    assert "batch size not printed" in cells["notes"]


def test_what_has_no_decode_rate_is_left_out() -> None:
    text = TEXT.replace("101 tokens", "1 tokens") + "Prompt: 12 tokens, 80.5 tokens-per-sec\n"
    found = read(text, "a")
    assert found.rows == ()
    assert found.left_out == (
        "a, line 6: 1 tokens have no decode rate, left out",
        "a, line 8: a prompt without its generation, left out",
    )


@pytest.mark.parametrize(
    ("old", "new", "line"),
    [
        ("50.250", "50,250.5,1", "a, line 6: '50,250.5,1': has a comma that may be a decimal"),
        ("50.250", "fast", "a, line 6: 'fast': is not a number"),
        ("40 tokens", "4.5 tokens", "a, line 5: '4.5': is no count"),
    ],
)
def test_bad_output_is_one_line_with_its_place(old: str, new: str, line: str) -> None:
    text = TEXT.replace(old, new)
    assert recognises(text)
    with pytest.raises(InputError) as error:
        read(text, "a")
    assert str(error.value).startswith(line)
