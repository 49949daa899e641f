from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from calibrate.decode import decode, decode_plain
from calibrate.decoding.checks import check_vocabularies
from calibrate.decoding.loops import arm
from calibrate.decoding.lossless import compared, divergence, logit_gap
from calibrate.decoding.start import Start
from calibrate.networks import Network
from calibrate.run_settings import Settings
from model.errors import InputError
from tests.calibrate.decoding.networks import LLAMA, PROMPT, network


class Words:
    """A tokenizer that knows some words."""

    def __init__(self, *words: str) -> None:
        self._words = words
        self.vocab_size = len(words)

    def get_vocab(self) -> dict[str, int]:
        return {word: number for number, word in enumerate(self._words)}


@pytest.fixture(scope="module")
def llama() -> Network:
    return network(LLAMA)


def speaking(network: Network, name: str, *words: str) -> Network:
    tokenizer: Any = Words(*words)
    return replace(network, name=name, tokenizer=tokenizer)


class TestVocabularies:
    def test_the_same_words_in_another_order(self, llama: Network) -> None:
        target = speaking(llama, "target", "a", "b", "c")
        check_vocabularies(target, speaking(llama, "twin", "a", "b", "c"))
        with pytest.raises(InputError, match="draft other: numbers 2 tokens otherwise than target"):
            check_vocabularies(target, speaking(llama, "other", "a", "c", "b"))

    def test_fewer_words(self, llama: Network) -> None:
        target = speaking(llama, "target", "a", "b", "c")
        with pytest.raises(InputError, match="draft other: has 2 tokens and target has 3"):
            check_vocabularies(target, speaking(llama, "other", "a", "b"))


def test_a_prompt_beyond_what_the_network_takes(llama: Network) -> None:
    with pytest.raises(InputError, match="are beyond the 4096 that llama takes; give a shorter"):
        decode_plain(llama, [1] * 4090, 8)


def test_speculation_without_a_draft(llama: Network) -> None:
    with pytest.raises(InputError, match="run speculative: needs a draft"):
        arm(llama, Settings(strategy="speculative", draft_length=2))


class TestDivergence:
    def test_equal_outputs_have_none(self, llama: Network) -> None:
        plain = decode_plain(llama, PROMPT, 6)
        run = compared(decode(arm(llama, Settings(strategy="awaited")), Start(PROMPT), 6), plain)
        assert run.matches_plain is True
        assert divergence(run, plain, llama, PROMPT) is None

    def test_a_difference_is_placed_and_weighed(self, llama: Network) -> None:
        plain = decode_plain(llama, PROMPT, 6)
        other = (plain.output[3] + 1) % llama.vocab_size
        run = replace(plain, output=(*plain.output[:3], other, *plain.output[4:]))
        said = divergence(compared(run, plain), plain, llama, PROMPT)
        assert said is not None
        assert "differs from plain at token 3" in said
        text = [*PROMPT, *plain.output[:3]]
        gap = logit_gap(llama, text, plain.output[3], other)
        assert 1e-3 < gap < 2.0
        assert f"{gap:.1e}" in said
