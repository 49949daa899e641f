"""A batch on MLX's CUDA back end, which tiles quantized products of each sequence on its own."""

from __future__ import annotations

from dataclasses import replace

import pytest

from model.cost.forward import forward_pass
from model.machine.profile_store import named_profile
from model.network.target import load_target
from model.network.weight_format import weight_format

H200 = named_profile("h200-mlx-0.32.4").machine
SHARED = replace(H200, dispatch=None)


@pytest.mark.parametrize("format_name", ["4bit", "8bit"])
def test_sixteen_sequences_of_quantized_weights_walk_them_apart(format_name: str) -> None:
    checkpoint = load_target("llama-3.1-8b", format_name)

    def device_s(batch: int) -> float:
        cost = forward_pass(checkpoint, H200, rows=1, context=128, sequences=batch)
        shared = forward_pass(checkpoint, SHARED, rows=1, context=128, sequences=batch)
        return float(cost.device_s / shared.device_s)

    assert device_s(7) == pytest.approx(1.0)  # a row costs a row, in whatever sequence
    assert 2.0 < device_s(16) < 16.0  # narrow matrices fill the device better


def test_sequences_of_16_bits_share_their_tiles() -> None:
    assert H200.tiled_apart_from(weight_format("bf16")) is None
    assert H200.tiled_apart_from(weight_format("4bit")) == 8


def test_one_sequence_is_as_it_was() -> None:
    checkpoint = load_target("llama-3.1-8b", "4bit")
    here, there = (
        forward_pass(checkpoint, machine, rows=16, context=128).device_s
        for machine in (H200, SHARED)
    )
    assert float(here) == float(there)


def test_a_share_of_new_shapes_is_charged_for() -> None:
    checkpoint = load_target("llama-3.1-8b", "4bit")
    new, known, half = (
        float(forward_pass(checkpoint, H200, rows=8, context=128, new_shapes=share).build_s)
        for share in (1.0, 0.0, 0.5)
    )
    assert new - known == pytest.approx(float(H200.host.reshape_s))
    assert half == pytest.approx((new + known) / 2)
