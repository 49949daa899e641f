"""Plain decoding: one pass a token, pipelined; a batch shares the weights."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from model.cost.cache_growth import growth_s
from model.cost.forward import Bound, forward_pass
from model.errors import InputError
from model.strategies.plain import Plain
from tests.model.machines import (
    FULL,
    HOST,
    NO_DEVICE,
    STATE,
    block,
    flat_law,
    machine,
    network,
    small,
)

TARGET = small("bf16", num_hidden_layers=8)
FLAT = flat_law(bandwidth=1e9)
contexts = st.integers(min_value=0, max_value=100_000)
batches = st.integers(min_value=1, max_value=64)


def test_plain_is_one_pass_when_the_host_is_fast() -> None:
    here = machine(FLAT)
    plain = Plain().round(TARGET, here, 100.0)
    one = forward_pass(TARGET, here, rows=1, context=100.0)
    room = dict(plain.parts_s)["growth"]
    assert float(plain.round_s - room) == pytest.approx(float(one.device_s))
    assert plain.bound is Bound.MEMORY


def test_plain_with_a_slow_host_is_bound_by_overhead() -> None:
    slow = machine(flat_law(bandwidth=1e15), host=replace(HOST, build_pass_s=1.0))
    plain = Plain().round(TARGET, slow, 0.0)
    assert float(plain.round_s) == pytest.approx(1.0, rel=1e-3)
    assert plain.bound is Bound.OVERHEAD


def test_each_token_makes_room_for_itself() -> None:
    """8 layers of 512 bytes a token: 1,000 tokens are copied every 256, both ways, at 1 GB/s."""
    room_s = dict(Plain().round(TARGET, machine(FLAT), 1000).parts_s)["growth"]
    assert float(room_s) == pytest.approx(2 * 8 * 512 * 1000 / 256 / 1e9)


@given(contexts, batches, st.sampled_from([1.0, 5.0, float("inf")]))
def test_parts_sum_and_lie_between_the_bounds(
    context: int, sequences: int, tile_rows: float
) -> None:
    law = flat_law(bandwidth=1e11, flops=1e12, tile_rows=tile_rows)
    here = machine(law, host=HOST, device=replace(NO_DEVICE, layer_s=1e-5))
    found = Plain(sequences=sequences).round(TARGET, here, context)
    total_s = sum(float(part_s) for _, part_s in found.parts_s)
    assert total_s == pytest.approx(float(found.round_s), rel=1e-12)
    assert all(float(part_s) >= -1e-15 for _, part_s in found.parts_s)
    assert float(found.lower_s) <= total_s * (1 + 1e-12)
    assert total_s <= float(found.upper_s) * (1 + 1e-12)


@given(contexts)
def test_a_batch_of_one_is_plain(context: int) -> None:
    here = machine(FLAT, host=HOST)
    assert Plain(sequences=1) == Plain()
    alone = forward_pass(TARGET, here, rows=1, context=context)
    plain_s = float(Plain().round(TARGET, here, context).round_s)
    room_s = float(growth_s(TARGET, here, context=context))
    assert plain_s == pytest.approx(max(float(alone.device_s), float(alone.host_s)) + room_s)


@given(contexts, batches)
def test_a_batch_reads_weights_once_and_caches_for_each(context: int, sequences: int) -> None:
    here = machine(FLAT)
    one, many = (
        dict(Plain(sequences=each).round(TARGET, here, context).parts_s) for each in (1, sequences)
    )
    assert float(many["weights"]) == float(one["weights"])
    for name in ("kv", "growth"):
        assert float(many[name]) == pytest.approx(sequences * float(one[name]))


def test_what_a_batch_buys_shrinks_with_the_context() -> None:
    """Weights are shared and caches are not: throughput of 16 goes from 16 times to little."""
    here = machine(FLAT)
    gains: list[float] = []
    for context in (0, 1000, 100_000):
        one, many = (
            float(Plain(sequences=each).round(TARGET, here, context).round_s) for each in (1, 16)
        )
        gains.append(16 * one / many)
    assert gains[0] == pytest.approx(16)
    assert gains == sorted(gains, reverse=True)
    assert gains[-1] < 1.5


def test_batches_compare_with_a_single_sequence() -> None:
    assert Plain(sequences=8).baseline_batch == 1
    assert (Plain().name, Plain(sequences=8).name) == ("plain", "batch")
    assert Plain(sequences=8).settings == {"batch": 8}
    assert Plain(sequences=8).residents(TARGET) == ((TARGET, 8),)
    assert Plain().shared_cache_bytes(TARGET, 100.0) == 0.0
    assert Plain().warnings(TARGET) == ()


@given(st.lists(contexts, min_size=1, max_size=5), batches)
def test_arrays_of_contexts_equal_scalar_calls(asked: list[int], sequences: int) -> None:
    here = machine(flat_law(bandwidth=1e11, flops=1e12, tile_rows=5.0), host=HOST)
    target = network(block(FULL), block(STATE))
    plain = Plain(sequences=sequences)
    together = plain.round(target, here, np.array(asked, dtype=float))
    alone = [plain.round(target, here, context) for context in asked]
    np.testing.assert_allclose(
        np.broadcast_to(together.round_s, len(asked)),
        [float(each.round_s) for each in alone],
        rtol=1e-12,
    )
    np.testing.assert_allclose(
        np.broadcast_to(together.upper_s, len(asked)),
        [float(each.upper_s) for each in alone],
        rtol=1e-12,
    )


@pytest.mark.parametrize("sequences", [0, -3, 1025])
def test_a_batch_that_cannot_be_is_refused(sequences: int) -> None:
    line = f"^batch {sequences}: is out of range; give a whole number from 1 to 1024$"
    with pytest.raises(InputError, match=line):
        Plain(sequences=sequences)
