"""Attention over a selection: worked numbers, limits, and bytes that an engine wrote down."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from model.network.layer import Layer
from model.network.mixer import LatentAttention, MixerKind
from model.network.selection import Indexer, SelectedAttention, in_place
from model.network.target import load_target

INDEXER = Indexer(heads=64, key_dim=128, tokens_per_key=4, chosen_tokens=2048, score_passes=0)
SPARSE = SelectedAttention(
    query_heads=64,
    entry_elements=512,
    head_columns=1024,
    tokens_per_entry=4,
    window=128,
    indexer=INDEXER,
)
contexts = st.integers(min_value=0, max_value=500_000)
mixers = st.sampled_from(
    [
        SPARSE,
        replace(SPARSE, tokens_per_entry=None, indexer=None),
        replace(SPARSE, tokens_per_entry=128, indexer=None),
        replace(SPARSE, window=0, tokens_per_entry=1, one_row_reads_all=True),
        replace(SPARSE, indexer=replace(INDEXER, score_passes=8, keeps_tokens=True)),
    ]
)


def selected(name: str) -> list[SelectedAttention]:
    layers = load_target(name, "4bit").architecture.layers
    return [each.mixer for each in layers if isinstance(each.mixer, SelectedAttention)]


def test_what_is_read_and_kept_by_hand() -> None:
    """At 100,000 tokens: a window of 128 and 512 of 25,000 entries, and every key."""
    read = SPARSE.cache_read(100_000, 2.0)
    assert read.depth == 128 + 512
    assert read.read_bytes == (128 + 512) * 512 * 2
    assert read.columns == 64 * 1024
    index = INDEXER.read(100_000, 2.0)
    assert index == (25_000 * 128 * 2, 25_000, 64 * 128)
    assert SPARSE.kept_bytes(100_000, 2.0) == (128 * 512 + 25_000 * (512 + 128)) * 2
    assert SPARSE.macs_per_row(100_000) == 640 * 64 * 1024 + 25_000 * 64 * 128


def test_nothing_is_scored_while_the_choice_holds_everything() -> None:
    assert INDEXER.read(2048, 2.0).read_bytes == INDEXER.read(2048, 2.0).depth == 0
    assert INDEXER.read(2052, 2.0).depth == 513
    assert SPARSE.cache_read(2048, 2.0).depth == SPARSE.cache_read(10**6, 2.0).depth


def test_without_window_compression_and_indexer_it_is_latent_attention() -> None:
    plain = SelectedAttention(query_heads=64, entry_elements=512, head_columns=1024)
    latent = LatentAttention(
        query_heads=64,
        latent_dim=512,
        rope_dim=0,
        key_dim=256,
        value_dim=256,
        unfolding=load_target("deepseek-v3", "4bit").architecture.layers[0].unfolding,
    )
    assert plain.cache_read(1000, 2.0) == latent.cache_read(1000, 2.0)
    assert plain.kept_bytes(1000, 2.0) == latent.kept_bytes(1000, 2.0)


def test_scores_that_pass_through_memory_cost_more_than_the_keys() -> None:
    """A key of 128 is widened to 512 bytes, written and read; 64 scores of 4 bytes move 8 times."""
    unfused = replace(INDEXER, score_passes=8).read(100_000, 2.0)
    assert unfused.read_bytes == 25_000 * (256 + 2 * 512 + 8 * 64 * 4)
    blocked = replace(INDEXER, score_passes=8, block_keys=64, blocks_from=1024)
    assert blocked.scored_keys(4092) == 1023
    assert blocked.scored_keys(100_000) == pytest.approx(25_000 / 64 + 1024)


def test_a_single_row_may_read_what_it_does_not_choose() -> None:
    masked = replace(SPARSE, one_row_reads_all=True)
    assert masked.cache_read(100_000, 2.0).depth == 128 + 25_000
    assert masked.chosen_read(100_000, 2.0) == SPARSE.cache_read(100_000, 2.0)


@given(mixers, contexts, contexts)
def test_more_context_is_never_less_to_keep_read_or_multiply(
    mixer: SelectedAttention, one: int, other: int
) -> None:
    near, far = sorted((one, other))
    assert mixer.kept_bytes(near, 2.0) <= mixer.kept_bytes(far, 2.0)
    assert mixer.cache_read(near, 2.0).read_bytes <= mixer.cache_read(far, 2.0).read_bytes
    assert mixer.macs_per_row(near) <= mixer.macs_per_row(far)


@given(mixers, st.lists(contexts, min_size=1, max_size=4))
def test_arrays_of_contexts_equal_scalar_calls(mixer: SelectedAttention, asked: list[int]) -> None:
    several = np.array(asked, dtype=float)
    assert list(np.broadcast_to(mixer.kept_bytes(several, 2.0), len(asked))) == [
        mixer.kept_bytes(each, 2.0) for each in asked
    ]
    swept = np.broadcast_to(mixer.macs_per_row(several), len(asked))
    assert list(swept) == [mixer.macs_per_row(each) for each in asked]


def test_deepseek_v4_keeps_what_ds4_writes_of_it() -> None:
    """ds4's snapshots grow by 28,188,672 bytes each 2,048 tokens: caches in 32 bits, 4 for the id.

    github:antirez/ds4@8d57664, speed-bench/m2_ultra.csv: 52,184,460 and 80,373,132.
    """
    network = load_target("deepseek-v4-flash").architecture
    grown = network.kv_bytes(4096, 4) - network.kv_bytes(2048, 4)
    assert grown + 2048 * 4 == 80_373_132 - 52_184_460


def test_shipped_networks_choose_as_their_configs_say() -> None:
    flash = selected("deepseek-v4-flash")
    assert [each.tokens_per_entry for each in flash] == [None, None, *[4, 128] * 20, 4]
    assert {each.kind for each in flash} == {MixerKind.SLIDING, MixerKind.SELECTED}
    assert sum(each.indexer is not None for each in flash) == 21
    for name, layers, per_key in (("glm-5.3-flash", 11, 16), ("qwen3.8-flash-next", 12, 4)):
        found = selected(name)
        assert len(found) == layers
        indexers = [each.indexer for each in found if each.indexer is not None]
        assert {(each.tokens_per_key, each.chosen_tokens) for each in indexers} == {(per_key, 2048)}


def test_a_runtime_that_works_in_place_keeps_as_much() -> None:
    network = load_target("deepseek-v4-flash").architecture
    changed = in_place(network)
    assert changed.params == network.params
    assert changed.kv_bytes(50_000) == network.kv_bytes(50_000)
    mixers = [each.mixer for each in changed.layers]
    assert not any(each.copies_pools for each in mixers if isinstance(each, SelectedAttention))
    plain = load_target("qwen3.8-27b").architecture
    assert in_place(plain) == plain


def test_tables_of_a_layer_are_stored_and_not_read() -> None:
    """Three layers look experts up by token: 129,280 times 6 numbers, and biases by position."""
    flash = load_target("deepseek-v4-flash", "4bit")
    hashed, plain = flash.architecture.layers[2], flash.architecture.layers[4]
    assert isinstance(hashed, Layer)
    assert hashed.table_params - plain.table_params == 129_280 * 6
    assert plain.table_params == 4 * 1024 + 4 * 256
