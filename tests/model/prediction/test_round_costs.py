"""Costs of rounds as arrays: they say what the strategies say, one by one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from model.cost.cache_growth import growth_s
from model.errors import InputError
from model.machine.machine import Machine
from model.network.sublayers import middle_block
from model.prediction.round_costs import round_costs
from model.progress.acceptance import Acceptance
from model.strategies.drafted import AbstractDrafted
from model.strategies.layer_skip import LayerSkip
from model.strategies.plain import Plain
from model.strategies.prompt_lookup import PromptLookup
from model.strategies.speculative import Speculative
from model.units import Array
from tests.model.drafts import CatchingUp, FreeDraft
from tests.model.machines import HOST, flat_law, machine, small

DRAFT = small("bf16", num_hidden_layers=1)
TARGET = small("bf16", num_hidden_layers=8)
TILED = machine(flat_law(bandwidth=1e10, flops=1e11, tile_rows=5.0), host=HOST)
NEVER = Acceptance(by_position=(0.0,))

BUILDERS: tuple[Callable[[Acceptance, int, int, float], AbstractDrafted], ...] = (
    lambda acceptance, length, batch, _: Speculative(
        draft=DRAFT, draft_length=length, acceptance=acceptance, sequences=batch
    ),
    lambda acceptance, length, batch, _: CatchingUp(
        head=DRAFT, draft_length=length, acceptance=acceptance, sequences=batch
    ),
    lambda acceptance, length, batch, _: FreeDraft(
        draft_length=length, acceptance=acceptance, sequences=batch
    ),
    lambda acceptance, length, batch, _: LayerSkip(
        skipped=middle_block(TARGET.architecture, 0.5),
        draft_length=length,
        acceptance=acceptance,
        sequences=batch,
    ),
    lambda acceptance, length, batch, match: PromptLookup(
        draft_length=length, acceptance=acceptance, sequences=batch, match=match
    ),
)
builders = st.sampled_from(BUILDERS)
rates = st.floats(min_value=0, max_value=1)
draft_lengths = st.lists(st.integers(min_value=1, max_value=9), min_size=1, max_size=4)
contexts = st.lists(st.integers(min_value=0, max_value=20_000), min_size=1, max_size=3)
batches = st.integers(min_value=1, max_value=4)


def one_by_one(
    strategy: AbstractDrafted, lengths: list[int], asked: list[int], here: Machine
) -> tuple[Array, Array]:
    """Speedup and plain time saved by lengths and contexts, from whole strategies."""
    speedups, gains = np.zeros((2, len(lengths), len(asked)))
    for i, length in enumerate(lengths):
        each = strategy.with_length(length)
        for j, context in enumerate(asked):
            plain_s = float(Plain(sequences=each.batch).round(TARGET, here, context).round_s)
            round_s = float(each.round(TARGET, here, context).round_s)
            speedups[i, j] = each.tokens_per_pass * plain_s / round_s
            gains[i, j] = each.tokens_per_pass * plain_s - round_s
    return speedups, gains


@given(builders, st.lists(rates, min_size=1, max_size=5), draft_lengths, contexts, batches, rates)
def test_speedups_by_position_are_those_of_the_strategies(
    build: Callable[[Acceptance, int, int, float], AbstractDrafted],
    by_position: list[float],
    lengths: list[int],
    asked: list[int],
    batch: int,
    match: float,
) -> None:
    acceptance = Acceptance(by_position=tuple(by_position))
    strategy = build(acceptance, 1, batch, match)
    costs = round_costs(
        strategy, TARGET, TILED, context=np.array(asked, dtype=float), draft_lengths=lengths
    )
    expected, _ = one_by_one(strategy, lengths, asked, TILED)
    np.testing.assert_allclose(costs.speedup(acceptance), expected, rtol=1e-10)
    at_first = round_costs(strategy, TARGET, TILED, context=asked[0], draft_lengths=lengths)
    np.testing.assert_allclose(at_first.speedup(acceptance), expected[:, 0], rtol=1e-10)


@given(builders, st.lists(rates, min_size=1, max_size=4), draft_lengths, contexts, batches, rates)
def test_maps_over_acceptance_are_those_of_the_strategies(
    build: Callable[[Acceptance, int, int, float], AbstractDrafted],
    acceptances: list[float],
    lengths: list[int],
    asked: list[int],
    batch: int,
    match: float,
) -> None:
    costs = round_costs(
        build(NEVER, 1, batch, match),
        TARGET,
        TILED,
        context=np.array(asked, dtype=float),
        draft_lengths=lengths,
    )
    speedups = costs.speedup_map(np.array(acceptances))
    gains = costs.gain_s(np.array(acceptances))
    assert speedups.shape == gains.shape == (len(acceptances), len(lengths), len(asked))
    for index, rate in enumerate(acceptances):
        strategy = build(Acceptance(by_position=(rate,)), 1, batch, match)
        expected, gained = one_by_one(strategy, lengths, asked, TILED)
        np.testing.assert_allclose(speedups[index], expected, rtol=1e-9)
        np.testing.assert_allclose(gains[index], gained, rtol=1e-7, atol=1e-12)


@given(builders, st.lists(rates, min_size=1, max_size=4), draft_lengths, batches, rates)
def test_a_map_at_one_context_has_no_axis_for_it(
    build: Callable[[Acceptance, int, int, float], AbstractDrafted],
    acceptances: list[float],
    lengths: list[int],
    batch: int,
    match: float,
) -> None:
    strategy = build(NEVER, 1, batch, match)
    alone, of_one = (
        round_costs(strategy, TARGET, TILED, context=context, draft_lengths=lengths).speedup_map(
            np.array(acceptances)
        )
        for context in (700.0, np.array([700.0]))
    )
    assert alone.shape == (len(acceptances), len(lengths))
    np.testing.assert_allclose(alone, of_one[:, :, 0], rtol=1e-12)


def test_by_hand() -> None:
    """A flat machine at 1 GB/s and k = 2: rounds, catching up and growth in bytes.

    The draft's second row is free there; a trained head's rows too. So nothing is caught up, and
    every token that stays copies 9 layers of 512 bytes a token twice in 256.
    """
    here = machine(flat_law(bandwidth=1e9))
    strategy = BUILDERS[0](NEVER, 1, 1, 0.0)
    costs = round_costs(strategy, TARGET, here, context=1000.0, draft_lengths=(2,))

    def read_bytes(layers: int) -> int:
        """Per layer 512 bytes a token and 589,824 weights; 1,024 x 256 in the head."""
        return layers * (512 * 1000 + 2 * 589_824) + 2 * 1024 * 256

    room_s = 2 * 8 * 512 * 1000 / 256 / 1e9
    assert float(costs.missed_s[0]) == pytest.approx((2 * read_bytes(1) + read_bytes(8)) / 1e9)
    np.testing.assert_allclose(costs.catch_up_s, 0.0, atol=1e-15)
    assert float(costs.growth_s) == pytest.approx(room_s * 9 / 8)
    assert float(costs.plain_s) == pytest.approx(read_bytes(8) / 1e9 + room_s)
    assert costs.drafting == 1.0


def test_what_a_trained_head_catches_up_on_grows_with_every_token() -> None:
    """Each accepted token adds a row of the head to the next round, on a linear machine."""
    linear = machine(flat_law(bandwidth=1e15, flops=1e12, tile_rows=1.0))
    heads, models = (
        round_costs(build(NEVER, 1, 1, 0.0), TARGET, linear, context=0.0, draft_lengths=(4,))
        for build in (BUILDERS[1], BUILDERS[0])
    )
    row_s = 2 * (589_824 + 1024 * 256) / 1e12
    np.testing.assert_allclose(heads.catch_up_s[0], [row_s] * 4)
    np.testing.assert_allclose(models.catch_up_s[0], [0.0, 0.0, 0.0, row_s], atol=1e-18)


def test_growth_is_of_the_batch_and_of_both_caches() -> None:
    costs = round_costs(
        BUILDERS[0](NEVER, 1, 3, 0.0), TARGET, TILED, context=500.0, draft_lengths=(1, 2)
    )
    both_s = sum(
        float(growth_s(each, TILED, context=500.0, sequences=3)) for each in (TARGET, DRAFT)
    )
    assert float(costs.growth_s) == pytest.approx(both_s)
    assert float(costs.plain_s) == pytest.approx(
        float(Plain(sequences=3).round(TARGET, TILED, 500.0).round_s)
    )


@given(builders, batches, rates)
def test_no_speedup_exceeds_tokens_per_pass(
    build: Callable[[Acceptance, int, int, float], AbstractDrafted], batch: int, match: float
) -> None:
    costs = round_costs(
        build(NEVER, 1, batch, match), TARGET, TILED, context=100.0, draft_lengths=range(1, 9)
    )
    acceptances = np.linspace(0.0, 1.0, 11)
    for index, speedups in enumerate(costs.speedup_map(acceptances)):
        at = Acceptance(by_position=(float(acceptances[index]),))
        tokens = [build(at, k, batch, match).tokens_per_pass for k in range(1, 9)]
        assert np.all(speedups <= np.array(tokens) * (1 + 1e-9))


def test_refusals_are_those_of_the_strategies() -> None:
    strategy = BUILDERS[0](NEVER, 1, 1, 0.0)
    with pytest.raises(InputError, match=r"^draft length 65: "):
        round_costs(strategy, TARGET, TILED, context=0.0, draft_lengths=(1, 65))
    assert isinstance(strategy, Speculative)
    stranger = replace(strategy, draft=small(vocab_size=2048))
    with pytest.raises(InputError, match="has a vocabulary of 2048 tokens"):
        round_costs(stranger, TARGET, TILED, context=0.0, draft_lengths=(1,))
