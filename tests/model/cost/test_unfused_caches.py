"""The price of caches that no fused kernel reads: quantized ones and latent ones."""

from __future__ import annotations

from dataclasses import replace

import pytest

from model.cost.cache_cost import cache_times
from model.cost.forward import forward_pass
from model.machine.machine import Machine
from model.network.checkpoint import Checkpoint
from model.network.mixer import Attention, LatentAttention
from tests.model.machines import (
    FULL,
    LATENT,
    NO_DEVICE,
    UNFOLDING,
    block,
    flat_law,
    machine,
    network,
)

READING = machine(flat_law(bandwidth=1e9))


def kv_s(
    checkpoint: Checkpoint, here: Machine, *, rows: int = 1, context: int = 0, sequences: int = 1
) -> float:
    cost = forward_pass(checkpoint, here, rows=rows, context=context, sequences=sequences)
    return float(cost.kv_s)


class TestQuantizedCaches:
    """Fewer bytes to keep, and one reading for each query head of a group."""

    ALONE = Attention(query_heads=2, kv_heads=2, head_dim=64)

    @pytest.mark.parametrize(("cache", "bits"), [("8bit", 8.5), ("4bit", 4.5)])
    def test_fewer_bytes_are_kept_and_read(self, cache: str, bits: float) -> None:
        whole = network(block(self.ALONE))
        quantized = network(block(self.ALONE), cache=cache)
        assert quantized.kv_cache_bytes(1000) == pytest.approx(
            whole.kv_cache_bytes(1000) * bits / 16
        )
        assert kv_s(quantized, READING, context=1000) == pytest.approx(
            kv_s(whole, READING, context=1000) * bits / 16
        )

    def test_query_heads_that_share_a_key_each_read_it(self) -> None:
        """Two query heads a group in 8.5 bits read 17 bits where the fused kernel reads 16."""
        whole, quantized = network(block(FULL)), network(block(FULL), cache="8bit")
        assert kv_s(quantized, READING, context=1000) == pytest.approx(
            kv_s(whole, READING, context=1000) * 17 / 16
        )

    def test_rows_of_a_quantized_cache_obey_the_law_of_its_format(self) -> None:
        """Arithmetic-bound: 2 heads of 64 + 64 over 1,000 tokens, once per row at 1 TFLOP/s."""
        linear = machine(flat_law(bandwidth=1e15, flops=1e12, tile_rows=1.0))
        quantized = network(block(self.ALONE), cache="8bit")
        for rows in (1, 5):
            ((_, time),) = cache_times(quantized, linear, rows=rows, context=1000)
            assert float(time.total_s) == pytest.approx(rows * 2 * 1000 * 2 * 128 / 1e12)

    def test_weights_and_states_are_as_they_were(self) -> None:
        for layer in (block(FULL), block(LATENT)):
            whole, quantized = network(layer), network(layer, cache="4bit")
            costs = [forward_pass(each, READING, rows=3, context=9) for each in (whole, quantized)]
            assert float(costs[0].weights_s) == float(costs[1].weights_s)


class TestLatentCaches:
    """One row attends to the latents, several unfold them."""

    def test_one_row_reads_latents_and_the_unfolding_matrices(self) -> None:
        """64 + 32 numbers a token, and 2 x 4 x 64 x 48 weights, in 16 bits at 1 GB/s."""
        weights_bytes = 2 * (4 * 64 * 48 * 2)
        assert kv_s(network(block(LATENT)), READING, context=1000) == pytest.approx(
            (1000 * 96 * 2 + weights_bytes) / 1e9
        )

    def test_several_rows_write_and_read_what_they_unfold(self) -> None:
        """And 2 x 4 heads x (48 + 48) numbers a token on top, however many rows."""
        weights_bytes = 2 * (4 * 64 * 48 * 2)
        for rows in (2, 8):
            assert kv_s(network(block(LATENT)), READING, context=1000, rows=rows) == pytest.approx(
                (1000 * (96 + 768) * 2 + weights_bytes) / 1e9
            )

    def test_unfolding_multiplies_every_cached_token(self) -> None:
        """Of 2 sequences of 1,000 tokens: 2,000 rows of 2 x 4 x 64 x 48 multiply-accumulates."""
        linear = machine(flat_law(bandwidth=1e15, flops=1e12, tile_rows=1.0))
        (_, keys), (_, values), _ = cache_times(
            network(block(LATENT)), linear, rows=2, context=1000, sequences=2
        )
        unfolding_s = float(keys.total_s + values.total_s)
        assert unfolding_s == pytest.approx(2000 * 2 * UNFOLDING.weights / 1e12)

    def test_rows_multiply_latents_or_what_they_unfold_to(self) -> None:
        """A score and a value of 4 heads: 96 and 64 wide for one row, 80 and 48 for several."""
        linear = machine(flat_law(bandwidth=1e15, flops=1e12, tile_rows=1.0))
        for rows, columns in ((1, 4 * (96 + 64)), (3, 4 * (80 + 48))):
            attention = cache_times(network(block(LATENT)), linear, rows=rows, context=1000)[-1][1]
            assert float(attention.total_s) == pytest.approx(rows * 2 * 1000 * columns / 1e12)

    def test_unfolding_is_two_kernels_more(self) -> None:
        """Beside attention and the 5 dense products of a layer and the head."""
        device = replace(NO_DEVICE, kernel_s=1.0)
        here = machine(flat_law(bandwidth=1e30), device=device)
        counts = [
            float(forward_pass(network(block(mixer)), here, rows=1, context=0).dispatch_s)
            for mixer in (FULL, LATENT)
        ]
        assert counts == [6.0, 8.0]

    def test_a_cache_that_is_kept_unfolded_has_no_step(self) -> None:
        unfolded = replace(LATENT, unfolding=None)
        assert isinstance(unfolded, LatentAttention)
        checkpoint = network(block(unfolded))
        one, two = (kv_s(checkpoint, READING, context=1000, rows=rows) for rows in (1, 2))
        assert one == two == pytest.approx(1000 * 4 * (48 + 32 + 48) * 2 / 1e9)
