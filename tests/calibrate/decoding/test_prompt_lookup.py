from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from calibrate.decode import decode, decode_plain
from calibrate.decoding.loops import arm
from calibrate.decoding.prompt_lookup import Text
from calibrate.decoding.start import Start
from calibrate.networks import Network
from calibrate.run_settings import Settings
from tests.calibrate.decoding.networks import LLAMA, PROMPT, network


@pytest.fixture(scope="module")
def llama() -> Network:
    return network(LLAMA)


def lookup(length: int, **rest: Any) -> Settings:
    return Settings(strategy="prompt-lookup", draft_length=length, ngram=3, **rest)


def searched(tokens: list[int], ngram: int, count: int) -> list[int]:
    """The continuation by looking everywhere, the last place first."""
    for length in range(min(ngram, len(tokens)), 0, -1):
        ending = tokens[-length:]
        for place in range(len(tokens) - length - 1, -1, -1):
            if tokens[place : place + length] == ending:
                text = list(tokens)
                for index in range(count):
                    text.append(text[place + length + index])
                return text[len(tokens) :]
    return []


class TestText:
    @given(st.lists(st.integers(0, 3), min_size=1, max_size=30), st.integers(1, 4))
    def test_it_finds_what_a_search_everywhere_finds(self, tokens: list[int], ngram: int) -> None:
        assert Text(tokens, ngram).continuation(5) == searched(tokens, ngram, 5)

    def test_a_longer_match_wins_over_a_later_one(self) -> None:
        text = [1, 2, 3, 9, 3, 8, 1, 2, 3]
        assert Text(text, ngram=3).continuation(1) == [9]
        assert Text(text, ngram=1).continuation(1) == [8]


class TestDecoding:
    @pytest.mark.parametrize("length", [1, 3])
    def test_nothing_is_lost(self, llama: Network, length: int) -> None:
        plain = decode_plain(llama, PROMPT, 30)
        run = decode(arm(llama, lookup(length)), Start(PROMPT), 30)
        assert run.output == plain.output
        assert set(run.proposed) <= {0, length}
        assert len(run.proposed) == len(run.round_s)

    def test_a_round_without_a_match_has_one_row_and_one_token(self, llama: Network) -> None:
        run = decode(arm(llama, lookup(3)), Start((1, 2, 3, 4, 5)), 30)
        unmatched = [a for a, p in zip(run.accepted, run.proposed, strict=True) if not p]
        assert 0.0 < run.match < 1.0
        assert set(unmatched) == {0}
        assert len(run.drafting) == len(run.accepted) - len(unmatched)

    def test_forced_rounds_always_draft(self, llama: Network) -> None:
        settings = lookup(2, forced_acceptance=1.0)
        run = decode(arm(llama, settings), Start((1, 2, 3, 4, 5)), 30)
        assert set(run.accepted) == {2}
        assert run.match == 1.0
