"""Speculative decoding with a draft model: its rounds, its memory, and drafts it refuses."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from model.cost.forward import forward_pass
from model.errors import InputError
from model.progress.acceptance import Acceptance
from model.strategies.plain import Plain
from model.strategies.speculative import Speculative
from tests.model.machines import HOST, STATE, block, flat_law, machine, network, small

LINEAR = flat_law(bandwidth=1e15, flops=1e12, tile_rows=1.0)
FLAT = flat_law(bandwidth=1e9)
DRAFT = small("bf16", num_hidden_layers=1)
TARGET = small("bf16", num_hidden_layers=8)


def speculative(draft_length: int, acceptance: float) -> Speculative:
    return Speculative(
        draft=DRAFT,
        draft_length=draft_length,
        acceptance=Acceptance(by_position=(acceptance,)),
    )


@given(st.integers(min_value=1, max_value=16), st.floats(min_value=0, max_value=1))
def test_a_round_is_its_drafts_its_verify_and_its_waiting(k: int, acceptance: float) -> None:
    here = machine(FLAT, host=HOST)
    round_ = speculative(k, acceptance).round(TARGET, here, 64.0)
    parts = {name: float(part_s) for name, part_s in round_.parts_s}
    verify = forward_pass(TARGET, here, rows=k + 1, context=64.0)
    assert sum(parts.values()) == pytest.approx(float(round_.round_s), rel=1e-12)
    assert parts["weights"] == pytest.approx(float(verify.weights_s))
    assert parts["sync"] == HOST.sync_s
    assert parts["host"] >= -1e-12
    assert float(round_.lower_s) <= float(round_.round_s) * (1 + 1e-9)
    assert float(round_.round_s) <= float(round_.upper_s) * (1 + 1e-9)


def test_a_full_accept_makes_the_next_draft_pass_two_rows() -> None:
    here = machine(LINEAR)
    missed, accepted = (
        float(speculative(4, rate).round(TARGET, here, 0.0).round_s) for rate in (0.0, 1.0)
    )
    one, two = (
        float(forward_pass(DRAFT, here, rows=rows, context=0.0).device_s) for rows in (1, 2)
    )
    assert accepted - missed == pytest.approx(two - one)


@given(st.integers(min_value=1, max_value=16))
def test_the_target_as_its_own_draft_pays_a_pass_for_every_guess(k: int) -> None:
    """k + 1 passes for k + 1 tokens even where rows are free and every guess is right."""
    here = machine(FLAT)
    own = replace(speculative(k, 1.0), draft=TARGET)
    plain_s = float(Plain().round(TARGET, here, 0).round_s)
    assert float(own.round(TARGET, here, 0).round_s) == pytest.approx((k + 1) * plain_s)


def test_both_caches_make_room_for_what_stays() -> None:
    """8 and 1 layers of 512 bytes a token: two copies in 256 tokens, for 1.5 tokens a round."""
    room_s = dict(speculative(1, 0.5).round(TARGET, machine(FLAT), 1000).parts_s)["growth"]
    assert float(room_s) == pytest.approx(1.5 * 2 * 9 * 512 * 1000 / 256 / 1e9)


def test_weights_and_caches_of_both_are_resident() -> None:
    batch = replace(speculative(2, 0.5), sequences=4)
    assert batch.residents(TARGET) == ((TARGET, 4), (DRAFT, 4))
    assert batch.shared_cache_bytes(TARGET, 100.0) == 0.0
    assert (batch.rows, batch.batch, batch.baseline_batch) == (12, 4, 4)
    assert batch.settings["batch"] == 4


def test_either_network_may_be_one_that_cannot_be_rewound() -> None:
    recurrent = network(block(STATE), name="recurrent")
    assert speculative(2, 0.5).warnings(TARGET) == ()
    assert len(replace(speculative(2, 0.5), draft=recurrent).warnings(recurrent)) == 2


@pytest.mark.parametrize("draft_length", [0, -1, 65, 10**9])
def test_a_draft_length_no_round_has_is_refused(draft_length: int) -> None:
    with pytest.raises(InputError, match=f"draft length {draft_length}: is not a length"):
        speculative(draft_length, 0.5)


def test_a_draft_of_another_vocabulary_is_refused() -> None:
    stranger = replace(speculative(2, 0.5), draft=small(vocab_size=2048))
    with pytest.raises(InputError, match="has a vocabulary of 2048 tokens, small has 1024"):
        stranger.round(TARGET, machine(FLAT), 0.0)


def test_a_padded_vocabulary_of_the_same_family_is_taken() -> None:
    padded = replace(speculative(2, 0.5), draft=small(vocab_size=1032))
    assert float(padded.round(TARGET, machine(FLAT), 0.0).round_s) > 0
