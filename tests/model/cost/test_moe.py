"""Experts that a pass reads: limits of the routing, measured sharing, and what cannot be."""

from __future__ import annotations

import math
import re

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from model.cost.forward import forward_pass
from model.cost.moe import log_rising, unique_experts
from model.cost.weight_cost import grouped_arithmetic_s
from model.errors import InputError
from model.machine.kernels.grouping import Grouping
from model.machine.row_law import Product
from model.network.layer import Experts
from tests.model.machines import FULL, block, experts_of, flat_law, machine, network

rows_counts = st.integers(min_value=1, max_value=4096)


@st.composite
def mixtures(draw: st.DrawFn) -> Experts:
    """Any routing, with a share of common experts between chance and all."""
    num_experts = draw(st.integers(min_value=1, max_value=256))
    top_k = draw(st.integers(min_value=1, max_value=num_experts))
    chance = top_k / num_experts
    share = chance + draw(st.floats(min_value=0, max_value=1)) * (1 - chance)
    return experts_of(num_experts=num_experts, top_k=top_k, shared_choice=share)


def test_by_hand() -> None:
    """8 of 128: chance is 6.25 %, so a second row adds 8 x 0.9375 = 7.5 and 15.5 are read."""
    experts = experts_of(num_experts=128, top_k=8, shared_choice=8 / 128)
    assert unique_experts(experts, 1) == pytest.approx(8.0)
    assert unique_experts(experts, 2) == pytest.approx(15.5)
    assert unique_experts(experts, 10_000) == pytest.approx(128.0)


def test_neighbours_that_share_a_quarter_read_fewer() -> None:
    """25.7 % in common (mlx-lm PR 1485): the second row adds 8 x 0.743 = 5.944."""
    experts = experts_of(num_experts=128, top_k=8, shared_choice=0.257)
    assert unique_experts(experts, 1) == pytest.approx(8.0)
    assert unique_experts(experts, 2) == pytest.approx(13.944)


def test_llada_canvases_read_most_of_256_experts() -> None:
    """8 of 256 by chance on 32 and 128 tokens: 256 (1 - (31/32)^M) = 163.3 and 251.6."""
    experts = experts_of(num_experts=256, top_k=8, shared_choice=8 / 256)
    found = unique_experts(experts, np.array([1.0, 32.0, 128.0]))
    np.testing.assert_allclose(found, [8.0, 163.3, 251.6], atol=0.05)


@given(mixtures(), rows_counts)
def test_no_more_than_there_are_or_were_asked_for_and_no_fewer_than_one_row_reads(
    experts: Experts, rows: int
) -> None:
    found = float(unique_experts(experts, rows))
    most = min(experts.num_experts, experts.top_k * rows)
    assert experts.top_k * (1 - 1e-9) <= found <= most * (1 + 1e-9)
    assert found <= float(unique_experts(experts, rows + 1)) * (1 + 1e-12)


@given(st.integers(min_value=1, max_value=64), rows_counts)
def test_a_share_of_chance_is_no_share_and_a_share_of_one_reads_one_row_s_experts(
    top_k: int, rows: int
) -> None:
    chance = top_k / 64
    stated = experts_of(num_experts=64, top_k=top_k, shared_choice=chance)
    together = experts_of(num_experts=64, top_k=top_k, shared_choice=1.0)
    by_chance = 64 * (1 - (1 - chance) ** rows)
    assert unique_experts(stated, rows) == pytest.approx(by_chance)
    assert unique_experts(together, rows) == top_k


@given(mixtures(), rows_counts)
def test_rows_meet_experts_as_balls_are_drawn_from_an_urn_that_repeats_itself(
    experts: Experts, rows: int
) -> None:
    """Polya's urn: an expert missed i times is missed again with (n - a + i) / (n + i)."""
    share, chance = experts.shared_choice or 0.0, experts.top_k / experts.num_experts
    assume(chance + 1e-4 < share < 1.0)
    strength = (1 - share) / (share - chance)
    missed = math.prod((strength * (1 - chance) + i) / (strength + i) for i in range(rows))
    by_hand = experts.num_experts * (1 - missed)
    assert float(unique_experts(experts, rows)) == pytest.approx(by_hand, rel=1e-6)


@pytest.mark.parametrize("own", [1e-12, 1e-9, 1e-6, 1e-4, 3e-3, 0.3])
@pytest.mark.parametrize(("top_k", "rows"), [(1, 4096), (16, 186), (16, 2), (250, 4096)])
def test_nearly_equal_choices_are_told_apart_as_exactly_as_others(
    own: float, top_k: int, rows: int
) -> None:
    """By the logarithms of each row's misses, added up without loss."""
    chance = top_k / 256
    share = 1.0 - own * (1.0 - chance)
    experts = experts_of(num_experts=256, top_k=top_k, shared_choice=share)
    strength = (1.0 - share) / (share - chance)
    misses = (math.log1p(-strength * chance / (strength + i)) for i in range(1, rows))
    exact = -256 * math.expm1(math.log1p(-chance) + math.fsum(misses))
    assert float(unique_experts(experts, rows)) == pytest.approx(exact, rel=1e-7)


@pytest.mark.parametrize("own", [1e-16, 1e-13, 1e-10, 1e-7, 1e-4])
def test_a_further_row_never_reads_fewer_however_equal_the_choices_are(own: float) -> None:
    experts = experts_of(num_experts=190, top_k=16, shared_choice=1.0 - own)
    found = np.asarray(unique_experts(experts, np.arange(1.0, 2000.0)))
    assert np.all(found[:-1] <= found[1:] * (1 + 1e-15))


def test_sequences_of_a_batch_share_more_than_chance_unless_it_is_stated() -> None:
    """8 of 64 and a = 0.5: strength 4, so two sequences share 1.5 / 5 of their experts."""
    here = machine(flat_law(bandwidth=1e9, flops=1e15, tile_rows=1.0))

    def read_s(share: float | None, *, rows: int, sequences: int) -> float:
        mixture = network(block(FULL, experts_of(num_experts=64, top_k=8, shared_choice=share)))
        cost = forward_pass(mixture, here, rows=rows, context=0, sequences=sequences)
        return float(cost.weights_s)

    assert read_s(None, rows=1, sequences=2) == pytest.approx(read_s(0.3, rows=1, sequences=2))
    assert read_s(None, rows=2, sequences=1) == pytest.approx(read_s(0.125, rows=2, sequences=1))
    assert read_s(0.125, rows=1, sequences=2) == read_s(0.125, rows=2, sequences=1)


@given(st.integers(min_value=1, max_value=8), st.integers(min_value=2, max_value=16))
def test_the_law_is_what_drawing_experts_gives(top_k: int, rows: int) -> None:
    """Rows that choose 8 experts without repetition, independently of each other."""
    experts = experts_of(num_experts=8, top_k=top_k)
    generator = np.random.default_rng(1000 * top_k + rows)
    order = generator.random((4000, rows, 8)).argsort(axis=2)
    chosen = (order < top_k).any(axis=1).sum(axis=1)
    # Each expert is missed with this probability; that one is makes another less likely to be.
    missed = (1 - top_k / 8) ** rows
    error = (8 * missed * (1 - missed) / 4000) ** 0.5
    assert abs(float(chosen.mean()) - float(unique_experts(experts, rows))) <= 5 * error


def test_all_experts_chosen_cost_what_a_dense_mlp_of_their_width_costs() -> None:
    """8 experts of 128 columns are an MLP of 1,024; the router of 8 columns comes on top."""
    here = machine(flat_law(bandwidth=1e9))
    mixture = network(block(FULL, experts_of(num_experts=8, top_k=8)))
    bare = network(block(FULL, experts_of(num_experts=1, top_k=1)))
    for rows in (1, 7, 100):
        found = forward_pass(mixture, here, rows=rows, context=0).weights_s
        alone = forward_pass(bare, here, rows=rows, context=0).weights_s
        seven_more = 7 * (2 * 256 * 128 + 256) * 2 / 1e9
        assert float(found - alone) == pytest.approx(seven_more)


def test_more_sharing_reads_less_and_multiplies_as_much() -> None:
    here = machine(flat_law(bandwidth=1e9, flops=1e15, tile_rows=1.0))
    costs = [
        forward_pass(
            network(block(FULL, experts_of(num_experts=64, top_k=8, shared_choice=share))),
            here,
            rows=4,
            context=0,
        )
        for share in (None, 0.25, 0.5, 1.0)
    ]
    read_s = [float(cost.weights_s) for cost in costs]
    assert read_s == sorted(read_s, reverse=True)
    assert read_s[0] > 2 * read_s[-1]
    # Without overlap the two add up, so what is above reading is the arithmetic of all pairs.
    arithmetic_s = [float(cost.upper_s - cost.weights_s) for cost in costs]
    assert arithmetic_s == pytest.approx([arithmetic_s[0]] * 4)


def test_pairs_are_served_one_by_one_until_they_are_grouped() -> None:
    """512 rows of 2 in 8 experts are 1,024 pairs: at 1 TFLOP/s and 2 x 32,768 per pair and side.

    Grouped, each of 8 experts has 128 rows: 8 tiles of 16, of which every row is computed. The
    tiled kernel is the law's at 16 rows, here the same; so grouping changes nothing but padding.
    """
    law = flat_law(bandwidth=1e15, flops=1e12, tile_rows=1.0)
    checkpoint = network(block(None, experts_of(num_experts=8, top_k=2)))
    rule = Grouping(least_pairs=64, least_pairs_per_expert=4, tile_rows=16)
    apart, grouped = machine(law), machine(law, grouping=rule)
    for rows, ratio in ((8, 1.0), (512, 1.0), (513, 144 / 128.25)):
        times = [
            float(forward_pass(checkpoint, here, rows=rows, context=0).device_s)
            for here in (apart, grouped)
        ]
        dense_s = rows * 2 * (256 * 8 + 256 * 1024) / 1e12
        assert times[0] - dense_s == pytest.approx(rows * 2 * 2 * 2 * 32_768 / 1e12)
        assert (times[1] - dense_s) / (times[0] - dense_s) == pytest.approx(ratio)


def test_rows_of_a_grouped_expert_fill_tiles() -> None:
    """17 rows are two tiles of 16 at 1 TFLOP/s."""
    rule = Grouping(least_pairs=64, least_pairs_per_expert=4, tile_rows=16)
    expert = Product(read_bytes=0.0, depth=1000, columns=500)
    law = flat_law(bandwidth=1e15, flops=1e12)
    found = grouped_arithmetic_s(law, expert, rule, np.array([1.0, 16.0, 17.0]))
    np.testing.assert_allclose(found, [16e-6, 16e-6, 32e-6])


@pytest.mark.parametrize("share", [0.124, -0.1, 1.001])
def test_a_share_that_routing_cannot_have_is_refused(share: float) -> None:
    line = (
        f"shared experts {share:g}: is not possible for 8 of 64 experts; "
        "give a share from 0.125 (chance) to 1"
    )
    experts = experts_of(num_experts=64, top_k=8, shared_choice=share)
    with pytest.raises(InputError, match=f"^{re.escape(line)}$"):
        unique_experts(experts, 2)


@pytest.mark.parametrize("start", [0.5, 3.0, 999.0, 1000.0, 1e5])
@pytest.mark.parametrize("factors", [1, 2, 7, 64])
def test_a_product_of_rising_factors_is_their_sum_of_logarithms(start: float, factors: int) -> None:
    summed = math.fsum(math.log(start + i) for i in range(factors))
    assert log_rising(start, factors) == pytest.approx(summed, rel=1e-12)
