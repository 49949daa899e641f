"""Working sets: what must be resident, worked by hand, and the refusal beyond the limit."""

from __future__ import annotations

import re

import pytest

from model.errors import InputError
from model.network.sublayers import Half, Sublayer
from model.prediction.memory import BUFFER_BYTES, check_fits, feasibility
from model.progress.acceptance import Acceptance
from model.strategies.base import AbstractStrategy
from model.strategies.layer_skip import LayerSkip
from model.strategies.plain import Plain
from model.strategies.prompt_lookup import PromptLookup
from model.strategies.replacement import Replacement
from model.strategies.speculative import Speculative
from tests.model.machines import STATE, WINDOWED, block, flat_law, machine, network, small

LAW = flat_law(bandwidth=1e11)
SMALL = small()
WEIGHT_BYTES = SMALL.total_bytes
CACHE_BYTES = 2 * 2 * 2 * 64 * 2
"""Of a token: keys and values of 2 layers with 2 heads of 64 entries in 16 bits."""


def test_weights_caches_and_buffers_add_up() -> None:
    both = feasibility([(SMALL, 1), (SMALL, 1)], machine(LAW), context=100)
    assert both.working_set_bytes == BUFFER_BYTES + 2 * (WEIGHT_BYTES + 100 * CACHE_BYTES)


def test_what_just_fits_is_not_refused() -> None:
    needed = int(BUFFER_BYTES) + 1 + WEIGHT_BYTES + 100 * CACHE_BYTES
    exact = machine(LAW, recommended_working_set_bytes=needed)
    check_fits([SMALL], exact, context=100)
    with pytest.raises(InputError, match="does not fit"):
        check_fits([SMALL], exact, context=101)


def test_a_device_that_states_no_limit_keeps_a_third_for_the_rest() -> None:
    assert feasibility([], machine(LAW, memory_bytes=9), context=0).limit_bytes == 6.0


def test_the_refusal_names_all_that_would_have_to_fit_together() -> None:
    crowded = machine(LAW, recommended_working_set_bytes=10**8)
    line = (
        "small bf16 beside small bf16 on test: does not fit: needs 0.3 GB of 0.1 GB, "
        "0.2 GB too much; give fewer bits, a smaller model or a shorter context"
    )
    with pytest.raises(InputError, match=f"^{re.escape(line)}$"):
        check_fits([SMALL, SMALL], crowded, context=0)


HALF = Acceptance(by_position=(0.5,))
NARROW = small("4bit", num_hidden_layers=1)
"""A draft: 512 bytes of cache a token."""


def needed_bytes(strategy: AbstractStrategy, context: float = 100) -> float:
    """Beyond the buffers."""
    found = feasibility(
        strategy.residents(SMALL),
        machine(LAW),
        context=context,
        shared_cache_bytes=strategy.shared_cache_bytes(SMALL, context),
    )
    return found.working_set_bytes - BUFFER_BYTES


def test_a_draft_model_brings_weights_and_a_cache() -> None:
    strategy = Speculative(draft=NARROW, draft_length=2, acceptance=HALF)
    draft_bytes = NARROW.total_bytes + 100 * 512
    assert needed_bytes(strategy) == needed_bytes(Plain()) + draft_bytes


def test_a_draft_of_the_target_s_layers_brings_a_cache_alone() -> None:
    """One of two layers' attention is skipped: the draft keeps half a cache of its own."""
    strategy = LayerSkip(
        skipped=frozenset({Sublayer(layer=0, half=Half.MIXER)}), draft_length=2, acceptance=HALF
    )
    assert needed_bytes(strategy) == WEIGHT_BYTES + 1.5 * 100 * CACHE_BYTES


def test_a_search_brings_nothing() -> None:
    strategy = PromptLookup(draft_length=8, acceptance=HALF, match=0.5)
    assert needed_bytes(strategy) == needed_bytes(Plain())


@pytest.mark.parametrize("sequences", [1, 7])
def test_a_batch_keeps_a_cache_for_each_sequence_and_the_weights_once(sequences: int) -> None:
    plain = Plain(sequences=sequences)
    assert needed_bytes(plain) == WEIGHT_BYTES + sequences * 100 * CACHE_BYTES
    drafted = Speculative(draft=NARROW, draft_length=2, acceptance=HALF, sequences=sequences)
    assert needed_bytes(drafted) == needed_bytes(plain) + NARROW.total_bytes + sequences * 51_200
    skipping = LayerSkip(
        skipped=frozenset({Sublayer(layer=1, half=Half.MLP)}),
        draft_length=2,
        acceptance=HALF,
        sequences=sequences,
    )
    assert needed_bytes(skipping) == WEIGHT_BYTES + 2 * sequences * 100 * CACHE_BYTES


def test_what_takes_the_target_s_place_leaves_no_target() -> None:
    assert needed_bytes(Replacement(other=NARROW)) == NARROW.total_bytes + 51_200


def test_a_quantized_cache_takes_its_bits() -> None:
    """8 bits and a scale and bias of 16 in every 64: 8.5 of 16."""
    whole = network(block(WINDOWED), block(STATE))
    quantized = network(block(WINDOWED), cache="8bit")
    found = feasibility([(quantized, 3)], machine(LAW), context=50)
    cache_bytes = 3 * 50 * 512 * 8.5 / 16
    assert found.working_set_bytes == BUFFER_BYTES + quantized.total_bytes + cache_bytes
    # A window keeps no more than itself, a state the same at any context.
    near, far = (
        feasibility([(whole, 1)], machine(LAW), context=context).working_set_bytes
        for context in (100, 10_000)
    )
    assert near == far == BUFFER_BYTES + whole.total_bytes + 100 * 512 + 4096 * 4 + 512 * 2
