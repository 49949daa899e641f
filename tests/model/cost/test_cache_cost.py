"""The price of the past: caches, states, quantized and latent caches, batches, and growth."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from model.cost.cache_cost import cache_times
from model.cost.cache_growth import growth_s
from model.cost.forward import forward_pass
from model.machine.kernels.attention import VectorAttention
from model.machine.machine import Machine
from model.machine.row_law import Regime, RowLaw
from model.network.checkpoint import Checkpoint
from model.network.mixer import Attention
from tests.model.machines import (
    FULL,
    LATENT,
    STATE,
    WINDOWED,
    block,
    flat_law,
    machine,
    network,
)

READING = machine(flat_law(bandwidth=1e9))
ROWS_AND_BYTES = flat_law(bandwidth=1e11, flops=1e12, tile_rows=5.0)

networks = st.sampled_from(
    [
        network(block(FULL), block(FULL)),
        network(block(FULL), block(WINDOWED)),
        network(block(LATENT)),
        network(block(STATE), block(FULL)),
    ]
)
rows_counts = st.integers(min_value=1, max_value=64)
contexts = st.integers(min_value=0, max_value=50_000)


def kv_s(
    checkpoint: Checkpoint, here: Machine, *, rows: int = 1, context: int = 0, sequences: int = 1
) -> float:
    cost = forward_pass(checkpoint, here, rows=rows, context=context, sequences=sequences)
    return float(cost.kv_s)


class TestReading:
    """Bytes once for a group of rows and once for each sequence."""

    def test_keys_and_values_of_every_layer_are_read_once(self) -> None:
        """2 layers of 2 x 2 heads x 64 in 16 bits: 1,024 bytes a token, at 1 GB/s."""
        two = network(block(FULL), block(FULL))
        assert kv_s(two, READING, context=1000) == pytest.approx(1000 * 1024 / 1e9)
        assert kv_s(two, READING, context=1000, rows=7) == pytest.approx(1000 * 1024 / 1e9)

    def test_a_window_stops_the_growth_of_the_price(self) -> None:
        sliding = network(block(WINDOWED))
        prices = [kv_s(sliding, READING, context=context) for context in (50, 100, 200)]
        assert prices == pytest.approx([50 * 512e-9, 100 * 512e-9, 100 * 512e-9])

    def test_the_past_of_a_state_costs_the_same_at_every_context(self) -> None:
        """4,096 numbers in 32 bits and 512 in 16, in and out: 34,816 bytes."""
        recurrent = network(block(STATE))
        for context in (0, 1, 10**6):
            assert kv_s(recurrent, READING, context=context) == pytest.approx(34_816e-9)

    def test_rows_share_the_reading_of_a_state_and_not_its_arithmetic(self) -> None:
        """Attention that reads its cache again for every row says nothing of a state."""
        again = flat_law(bandwidth=1e9, flops=1e9, tile_rows=1.0)
        again = replace(again, regimes=(replace(again.regimes[0], reread=1.0),))
        times = [
            cache_times(network(block(STATE)), machine(again), rows=rows, context=0)[0][1]
            for rows in (1, 4)
        ]
        assert float(times[1].memory_s) == float(times[0].memory_s) == pytest.approx(34_816e-9)
        assert float(times[1].arithmetic_s) == pytest.approx(4 * 2 * 8192 / 1e9)

    @given(networks, contexts, st.integers(min_value=1, max_value=32))
    def test_a_batch_reads_weights_once_and_every_cache(
        self, checkpoint: Checkpoint, context: int, sequences: int
    ) -> None:
        one = forward_pass(checkpoint, READING, rows=1, context=context)
        batch = forward_pass(checkpoint, READING, rows=1, context=context, sequences=sequences)
        together = forward_pass(checkpoint, READING, rows=sequences, context=context)
        assert float(batch.weights_s) == float(one.weights_s) == float(together.weights_s)
        # The matrices that unfold a latent cache are weights, and read once.
        unfolding_s = sum(
            2e-9 * matrix.weights
            for layer in checkpoint.architecture.layers
            if layer.unfolding is not None
            for matrix in layer.unfolding.matrices
        )
        kept_s = float(one.kv_s) - unfolding_s
        assert float(batch.kv_s) - unfolding_s == pytest.approx(sequences * kept_s, abs=1e-15)

    @given(networks, rows_counts, contexts)
    def test_a_batch_of_one_is_no_batch(
        self, checkpoint: Checkpoint, rows: int, context: int
    ) -> None:
        here = machine(ROWS_AND_BYTES)
        alone = forward_pass(checkpoint, here, rows=rows, context=context)
        one = forward_pass(checkpoint, here, rows=rows, context=context, sequences=1)
        assert float(one.device_s) == float(alone.device_s)

    @given(networks, rows_counts, st.lists(contexts, min_size=1, max_size=4))
    def test_arrays_of_contexts_and_of_rows_equal_scalar_calls(
        self, checkpoint: Checkpoint, rows: int, asked: list[int]
    ) -> None:
        here = machine(ROWS_AND_BYTES)
        over_rows = np.array([[1.0], [float(rows)]])
        together = forward_pass(
            checkpoint, here, rows=over_rows, context=np.array(asked, dtype=float), sequences=3
        )
        for i, row in enumerate((1, rows)):
            for j, context in enumerate(asked):
                alone = forward_pass(checkpoint, here, rows=row, context=context, sequences=3)
                for name in ("weights_s", "kv_s", "arithmetic_s", "lower_s", "upper_s"):
                    found = np.broadcast_to(getattr(together, name), (2, len(asked)))[i, j]
                    expected = float(getattr(alone, name))
                    assert float(found) == pytest.approx(expected, rel=1e-12, abs=1e-18)

    @given(networks, rows_counts, contexts)
    def test_arrays_over_draws_equal_one_call_for_each(
        self, checkpoint: Checkpoint, rows: int, context: int
    ) -> None:
        drawn = machine(flat_law(bandwidth=np.array([1e11, 2e11]), flops=np.array([1e12, 3e12])))
        together = forward_pass(checkpoint, drawn, rows=rows, context=context).device_s
        alone = [
            float(forward_pass(checkpoint, machine(law), rows=rows, context=context).device_s)
            for law in (
                flat_law(bandwidth=1e11, flops=1e12),
                flat_law(bandwidth=2e11, flops=3e12),
            )
        ]
        np.testing.assert_allclose(together, alone, rtol=1e-12)

    @given(networks, rows_counts, contexts, contexts)
    def test_more_context_is_never_faster(
        self, checkpoint: Checkpoint, rows: int, near: int, far: int
    ) -> None:
        near, far = sorted((near, far))
        here = machine(ROWS_AND_BYTES)
        times = [
            float(forward_pass(checkpoint, here, rows=rows, context=context).device_s)
            for context in (near, far)
        ]
        assert times[0] <= times[1] * (1 + 1e-12)

    @given(networks, rows_counts, contexts)
    def test_more_bandwidth_and_more_arithmetic_are_never_slower(
        self, checkpoint: Checkpoint, rows: int, context: int
    ) -> None:
        laws = [
            flat_law(bandwidth=bandwidth, flops=flops, tile_rows=5.0)
            for bandwidth, flops in ((1e11, 1e12), (2e11, 1e12), (1e11, 2e12))
        ]
        base, wider, quicker = (
            float(forward_pass(checkpoint, machine(law), rows=rows, context=context).device_s)
            for law in laws
        )
        assert max(wider, quicker) <= base * (1 + 1e-12)


class TestKernels:
    """The law that attention obeys follows from the heads."""

    def test_the_vector_kernel_is_left_the_sooner_the_more_heads_share_a_key(self) -> None:
        """32 query rows at most: 8 rows of 4 heads, 4 rows of 8 (mlx 0.32, Metal)."""
        vector = Regime(
            first_row=1,
            tile_rows=1.0,
            pads=False,
            bandwidth_bytes_per_s=1e11,
            flops_per_s=1e12,
            reread=1.0,
        )
        law = RowLaw(
            overlap=float("inf"),
            rows_measured=16,
            regimes=(vector, replace(vector, first_row=9, tile_rows=32.0, reread=0.0)),
        )
        rule = VectorAttention(most_rows=8, most_query_rows=32, head_dims=(64,))
        here = machine(flat_law(bandwidth=1e11), attention=law, vector_attention=rule)
        for group, last_row in ((4, 8), (8, 4)):
            heads = Attention(query_heads=2 * group, kv_heads=2, head_dim=64)
            checkpoint = network(block(heads))
            one, last, following = (
                kv_s(checkpoint, here, context=4096, rows=rows)
                for rows in (1, last_row, last_row + 1)
            )
            assert last == pytest.approx(last_row * one)
            assert following == pytest.approx(one)

    def test_rows_that_no_kernel_takes_are_priced_by_the_score(self) -> None:
        """8 heads at 1,000 tokens are 8,000 scores, 12 bytes each, however wide the heads are."""
        by_score = Regime(
            first_row=1,
            tile_rows=4.0,
            pads=True,
            bandwidth_bytes_per_s=1e9,
            flops_per_s=float("inf"),
            reread=1.0,
        )
        law = RowLaw(overlap=float("inf"), rows_measured=16, regimes=(by_score,))
        rule = VectorAttention(most_rows=3, head_dims=(64, 128), fused_beyond=False)
        here = replace(READING, unfused_attention=law, vector_attention=rule)
        for head_dim in (64, 128):
            heads = Attention(query_heads=8, kv_heads=2, head_dim=head_dim)
            checkpoint = network(block(heads))
            fused = kv_s(checkpoint, READING, context=1000, rows=3)
            asked = np.array([3, 4, 8])
            [(count, time)] = cache_times(checkpoint, here, rows=asked, context=1000)
            assert count == 1
            assert np.asarray(time.total_s).tolist() == pytest.approx([fused, 96e-6, 192e-6])

    def test_beyond_the_contexts_of_one_pass_two_are_priced_by_a_law_of_their_own(self) -> None:
        rule = VectorAttention(
            most_rows=3, head_dims=(64,), fused_beyond=False, one_pass_to_context=1024
        )
        here = replace(READING, vector_attention=rule, two_pass_attention=flat_law(bandwidth=4e9))
        checkpoint = network(block(FULL))
        contexts = np.array([1023, 1024])  # and the row itself
        [(_, time)] = cache_times(checkpoint, here, rows=1, context=contexts)
        one, two = (kv_s(checkpoint, READING, context=each) for each in (1023, 1024))
        assert np.asarray(time.total_s).tolist() == pytest.approx([one, two / 4])


class TestGrowth:
    """Copying a cache to make room, spread over the 256 tokens that the room is for."""

    @given(contexts, st.integers(min_value=1, max_value=32))
    def test_a_token_pays_for_two_copies_of_the_cache_in_256(
        self, context: int, sequences: int
    ) -> None:
        checkpoint = network(block(FULL), block(LATENT))
        kept_bytes = float(checkpoint.kv_cache_bytes(context))
        found = growth_s(checkpoint, READING, context=context, sequences=sequences)
        assert float(found) == pytest.approx(sequences * 2 * kept_bytes / 256 / 1e9)

    def test_by_hand(self) -> None:
        """8,192 tokens of 512 bytes are 4.19 MB: 8.4 MB a copy, 32.8 us of every token."""
        found = growth_s(network(block(FULL)), READING, context=8192)
        assert float(found) == pytest.approx(32.768e-6)

    def test_a_full_window_and_a_state_grow_no_more(self) -> None:
        asked = np.array([50.0, 100.0, 101.0, 10_000.0])
        room = np.broadcast_to(growth_s(network(block(WINDOWED)), READING, context=asked), 4)
        np.testing.assert_allclose(room, [50 * 4e-9, 100 * 4e-9, 0.0, 0.0])
        assert float(growth_s(network(block(STATE)), READING, context=10**6)) == 0.0

    def test_a_quantized_cache_copies_fewer_bytes(self) -> None:
        whole, quantized = network(block(FULL)), network(block(FULL), cache="4bit")
        rooms = [float(growth_s(each, READING, context=1000)) for each in (whole, quantized)]
        assert rooms[1] == pytest.approx(rooms[0] * 4.5 / 16)

    def test_a_stack_that_is_run_twice_has_twice_the_caches(self) -> None:
        once = network(block(FULL))
        twice = replace(once, architecture=replace(once.architecture, loops=2, name="twice"))
        rooms = [float(growth_s(each, READING, context=1000)) for each in (once, twice)]
        assert rooms[1] == pytest.approx(2 * rooms[0])
        reading = [kv_s(each, READING, context=1000) for each in (once, twice)]
        assert reading[1] == pytest.approx(2 * reading[0])
