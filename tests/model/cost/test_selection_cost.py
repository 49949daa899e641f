"""The price of attention over a selection, on machines that a person can follow."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from model.cost.cache_cost import with_arithmetic
from model.cost.cache_growth import growth_s
from model.cost.forward import forward_pass
from model.machine.row_law import RowLaw
from model.network.checkpoint import Checkpoint
from model.network.selection import Indexer, SelectedAttention
from tests.model.machines import block, flat_law, machine, network

INDEXER = Indexer(heads=8, key_dim=32, tokens_per_key=4, chosen_tokens=400, score_passes=0)
SELECTED = SelectedAttention(
    query_heads=4,
    entry_elements=64,
    head_columns=128,
    tokens_per_entry=4,
    window=100,
    indexer=INDEXER,
    copies_pools=False,
)
READING = machine(flat_law(bandwidth=1e9))


def kv_s(checkpoint: Checkpoint, context: int, rows: int = 1) -> float:
    return float(forward_pass(checkpoint, READING, rows=rows, context=context).kv_s)


def test_beyond_the_choice_only_keys_grow() -> None:
    """An entry is 128 bytes, a key of every 4 tokens 64."""
    sparse = network(block(SELECTED))
    attended = (100 + 100) * 128
    assert kv_s(sparse, 400) == pytest.approx(attended * 1e-9)
    assert kv_s(sparse, 4000) == pytest.approx((attended + 1000 * 64) * 1e-9)
    assert kv_s(sparse, 8000) - kv_s(sparse, 4000) == pytest.approx(1000 * 64e-9)


def test_each_row_chooses_for_itself() -> None:
    sparse = network(block(SELECTED))
    assert kv_s(sparse, 4000, rows=5) == pytest.approx(5 * kv_s(sparse, 4000))
    masked = network(block(replace(SELECTED, one_row_reads_all=True)))
    assert kv_s(masked, 4000) > kv_s(sparse, 4000)
    assert kv_s(masked, 4000, rows=5) == pytest.approx(kv_s(sparse, 4000, rows=5))


def test_a_pool_is_copied_whenever_an_entry_is_added() -> None:
    """Two pools of 16 and 8 numbers a token, in and out, every 4 tokens."""
    copied = network(block(replace(SELECTED, copies_pools=True)))
    kept = network(block(SELECTED))
    assert growth_s(kept, READING, context=1000) == 0
    pools = 1000 * (16 + 8) * 2
    assert growth_s(copied, READING, context=1000) == pytest.approx(2 * pools / 4 * 1e-9)


def test_arithmetic_without_a_rate_takes_that_of_several_rows() -> None:
    flat = flat_law(bandwidth=1e9).regimes[0]
    law = RowLaw(
        overlap=math.inf,
        rows_measured=8,
        regimes=(flat, replace(flat, first_row=2, flops_per_s=1e9)),
    )
    assert [each.flops_per_s for each in with_arithmetic(law).regimes] == [1e9, 1e9]
    measured = replace(law, regimes=(replace(flat, flops_per_s=2e9), law.regimes[1]))
    assert with_arithmetic(measured) is measured
    assert with_arithmetic(replace(law, regimes=(flat,))).regimes == (flat,)
