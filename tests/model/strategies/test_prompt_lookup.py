"""Prompt lookup: a draft without passes, and rounds that find nothing to copy."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from model.cost.cache_growth import growth_s
from model.cost.forward import forward_pass
from model.cost.pipeline import awaited_s
from model.errors import InputError
from model.progress.acceptance import Acceptance
from model.strategies.prompt_lookup import PromptLookup
from tests.model.drafts import FreeDraft
from tests.model.machines import HOST, STATE, block, flat_law, machine, network, small

TILED = flat_law(bandwidth=1e10, flops=1e11, tile_rows=5.0)
TARGET = small("bf16", num_hidden_layers=8)
shares = st.floats(min_value=0, max_value=1)
lengths = st.integers(min_value=1, max_value=16)
contexts = st.integers(min_value=0, max_value=20_000)


def lookup(k: int, acceptance: float, match: float, sequences: int = 1) -> PromptLookup:
    return PromptLookup(
        draft_length=k,
        acceptance=Acceptance(by_position=(acceptance,)),
        match=match,
        sequences=sequences,
    )


@given(lengths, shares, contexts)
def test_without_a_match_it_is_awaited_plain_decoding(
    k: int, acceptance: float, context: int
) -> None:
    here = machine(TILED, host=HOST)
    never = lookup(k, acceptance, 0.0)
    one = forward_pass(TARGET, here, rows=1, context=context)
    expected_s = float(awaited_s([one], HOST.sync_s))
    expected_s += float(growth_s(TARGET, here, context=context))
    assert never.tokens_per_pass == 1.0
    assert float(never.round(TARGET, here, context).round_s) == pytest.approx(expected_s)


@given(lengths, shares, contexts)
def test_with_a_match_every_time_it_is_a_free_draft(
    k: int, acceptance: float, context: int
) -> None:
    here = machine(TILED, host=HOST)
    always = lookup(k, acceptance, 1.0)
    free = FreeDraft(draft_length=k, acceptance=Acceptance(by_position=(acceptance,)))
    assert always.tokens_per_pass == free.tokens_per_pass
    found, expected = (each.round(TARGET, here, context) for each in (always, free))
    for name in ("round_s", "lower_s", "upper_s"):
        assert float(getattr(found, name)) == pytest.approx(float(getattr(expected, name)))


@given(lengths, shares, shares, contexts)
def test_rounds_and_tokens_are_means_over_matches(
    k: int, acceptance: float, match: float, context: int
) -> None:
    here = machine(TILED, host=HOST)
    found, always, never = (lookup(k, acceptance, each) for each in (match, 1.0, 0.0))
    tokens = match * always.tokens_per_pass + (1 - match)
    assert found.tokens_per_pass == pytest.approx(tokens)
    seconds = [
        float(each.rounds(TARGET, here, context)[0].round_s) for each in (found, always, never)
    ]
    assert seconds[0] == pytest.approx(match * seconds[1] + (1 - match) * seconds[2])


def test_nothing_is_drafted_and_nothing_more_is_in_memory() -> None:
    here = machine(TILED, host=HOST)
    strategy = lookup(4, 0.5, 0.5)
    parts = dict(strategy.round(TARGET, here, 100).parts_s)
    assert float(parts["draft"]) == 0.0
    assert strategy.residents(TARGET) == ((TARGET, 1),)
    assert strategy.shared_cache_bytes(TARGET, 100.0) == 0.0
    assert strategy.settings == {"draft_length": 4, "acceptance": [0.5], "match": 0.5}


def test_one_match_of_a_batch_makes_the_pass_wide_for_all() -> None:
    """Of 3 sequences that match half the time, one does in 7 of 8 rounds."""
    linear = machine(flat_law(bandwidth=1e15, flops=1e12, tile_rows=1.0))
    wide, narrow = (
        float(forward_pass(TARGET, linear, rows=rows, context=0, sequences=3).device_s)
        for rows in (5, 1)
    )
    batch = lookup(4, 0.5, 0.5, sequences=3)
    assert float(batch.round(TARGET, linear, 0).round_s) == pytest.approx((7 * wide + narrow) / 8)
    assert batch.tokens_per_pass == lookup(4, 0.5, 0.5).tokens_per_pass


def test_a_target_with_states_is_warned_of() -> None:
    (line,) = lookup(1, 0.5, 1.0).warnings(network(block(STATE), name="recurrent"))
    assert line.startswith("recurrent has recurrent layers")


@pytest.mark.parametrize("match", [-0.01, 1.01, float("nan")])
def test_a_match_that_is_no_share_is_refused(match: float) -> None:
    line = f"^match {match:g}: is not a share of rounds; give a number in \\[0, 1\\]$"
    with pytest.raises(InputError, match=line):
        lookup(4, 0.5, match)


def test_a_length_and_a_batch_are_checked_too() -> None:
    with pytest.raises(InputError, match=r"^draft length 0: "):
        lookup(0, 0.5, 1.0)
    with pytest.raises(InputError, match=r"^batch 0: "):
        lookup(1, 0.5, 1.0, sequences=0)
