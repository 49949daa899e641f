"""What a layer keeps of the past and what a row does with it: worked numbers, limits, arrays."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from model.network.mixer import AbstractMixer, Attention, LatentAttention, MixerKind, Recurrence
from model.network.target import load_target
from tests.model.machines import FULL, LATENT, STATE, UNFOLDING, WINDOWED

MIXERS: tuple[AbstractMixer, ...] = (FULL, WINDOWED, LATENT, STATE)
mixers = st.sampled_from(MIXERS)
contexts = st.integers(min_value=0, max_value=200_000)

LLAMA_8B = Attention(query_heads=32, kv_heads=8, head_dim=128)
DEEPSEEK_V3 = LatentAttention(
    query_heads=128, latent_dim=512, rope_dim=64, key_dim=128, value_dim=128, unfolding=UNFOLDING
)


def test_grouped_attention_by_hand() -> None:
    """8 key and 8 value heads of 128 in 2 bytes are 4,096 bytes a token; 32 heads multiply."""
    read = LLAMA_8B.cache_read(1000, 2.0)
    assert read.read_bytes == 1000 * 4096
    assert (read.depth, read.columns) == (1000, 32 * 256)
    assert LLAMA_8B.macs_per_row(1000) == 1000 * 32 * 256
    assert LLAMA_8B.kept_bytes(1000, 2.0) == 1000 * 4096


def test_a_value_head_may_have_a_width_of_its_own() -> None:
    narrow = Attention(query_heads=2, kv_heads=1, head_dim=192, value_dim=128)
    assert narrow.cached_elements_per_token() == 192 + 128
    assert narrow.macs_per_row(10) == 10 * 2 * (192 + 128)


def test_a_window_keeps_and_reads_no_more_than_itself() -> None:
    assert [WINDOWED.cached_tokens(context) for context in (0, 99, 100, 101, 10**6)] == [
        0,
        99,
        100,
        100,
        100,
    ]
    assert WINDOWED.kept_bytes(10**6, 2.0) == FULL.kept_bytes(100, 2.0)
    assert WINDOWED.cache_read(10**6, 2.0) == FULL.cache_read(100, 2.0)


def test_a_layer_that_borrows_a_cache_keeps_none_and_reads_it_all_the_same() -> None:
    borrower = Attention(query_heads=4, kv_heads=2, head_dim=64, owns_cache=False)
    assert borrower.kept_bytes(1000, 2.0) == 0
    assert borrower.kv_elements_per_token() == 0
    assert borrower.cache_read(1000, 2.0) == FULL.cache_read(1000, 2.0)


def test_latent_attention_by_hand() -> None:
    """DeepSeek V3: 512 + 64 numbers a token for all 128 heads (arXiv 2412.19437, table of sizes).

    One row scores 576 numbers and weighs 512 for each head. Several rows unfold 128 x (128 + 128)
    numbers a token, write and read them, and then multiply heads of 192 and 128.
    """
    one = DEEPSEEK_V3.cache_read(1000, 2.0)
    assert one.read_bytes == 1000 * 576 * 2
    assert one.columns == 128 * (576 + 512)
    several = DEEPSEEK_V3.unfolded_read(1000, 2.0)
    assert several.read_bytes == 1000 * (576 + 2 * 32_768) * 2
    assert several.columns == 128 * (192 + 128)


def test_a_latent_cache_that_is_kept_unfolded_saves_nothing() -> None:
    plain = LatentAttention(
        query_heads=16, latent_dim=512, rope_dim=64, key_dim=128, value_dim=128, unfolding=None
    )
    assert plain.kv_elements_per_token() == 576
    assert plain.cached_elements_per_token() == 16 * (192 + 128)
    assert plain.kept_bytes(10, 2.0) == 10 * 16 * 320 * 2.0
    heads = Attention(query_heads=16, kv_heads=16, head_dim=192, value_dim=128)
    assert plain.cache_read(10, 2.0) == heads.cache_read(10, 2.0)


def test_a_state_is_read_and_written_whatever_the_context() -> None:
    """4,096 numbers in 32 bits and 512 in 16: 17,408 bytes, in and out."""
    assert STATE.kept_bytes(0, 2.0) == STATE.kept_bytes(10**6, 2.0) == 4096 * 4 + 512 * 2
    assert STATE.cache_read(10**6, 2.0).read_bytes == 2 * 17_408
    assert STATE.macs_per_row(0) == STATE.macs_per_row(10**6) == 8192


def test_kinds() -> None:
    assert [mixer.kind for mixer in MIXERS] == [
        MixerKind.FULL,
        MixerKind.SLIDING,
        MixerKind.LATENT,
        MixerKind.RECURRENT,
    ]


@given(mixers, contexts, contexts)
def test_more_context_is_never_less_to_keep_read_or_multiply(
    mixer: AbstractMixer, near: int, far: int
) -> None:
    near, far = sorted((near, far))
    assert mixer.kept_bytes(near, 2.0) <= mixer.kept_bytes(far, 2.0)
    assert mixer.cache_read(near, 2.0).read_bytes <= mixer.cache_read(far, 2.0).read_bytes
    assert mixer.macs_per_row(near) <= mixer.macs_per_row(far)


@given(mixers, st.lists(contexts, min_size=1, max_size=5), st.sampled_from([0.5, 2.0, 4.0]))
def test_arrays_of_contexts_equal_scalar_calls(
    mixer: AbstractMixer, asked: list[int], width: float
) -> None:
    together = mixer.cache_read(np.array(asked, dtype=float), width)
    for index, context in enumerate(asked):
        alone = mixer.cache_read(context, width)
        assert np.broadcast_to(together.read_bytes, len(asked))[index] == alone.read_bytes
        assert np.broadcast_to(together.depth, len(asked))[index] == alone.depth
        assert together.columns == alone.columns
    kept = mixer.kept_bytes(np.array(asked, dtype=float), width)
    assert np.broadcast_to(kept, len(asked)).tolist() == [
        mixer.kept_bytes(context, width) for context in asked
    ]


def test_attention_over_nothing_is_nothing() -> None:
    for mixer in (FULL, WINDOWED, LATENT):
        assert mixer.kept_bytes(0, 2.0) == mixer.macs_per_row(0) == 0
        assert mixer.cache_read(0, 2.0).read_bytes == 0


@pytest.mark.parametrize(
    ("name", "layers_with_cache", "elements"),
    [("llama-3.1-8b", 32, 2 * 8 * 128), ("deepseek-v3", 61, 576), ("qwen3.8-27b", 16, 2 * 4 * 256)],
)
def test_shipped_models_keep_what_their_configs_say(
    name: str, layers_with_cache: int, elements: int
) -> None:
    """The hybrid keeps keys and values in every fourth of its 64 layers only."""
    assert load_target(name, "4bit").kv_bytes_per_token == 2 * layers_with_cache * elements


def test_only_recurrent_layers_of_a_hybrid_hold_a_state() -> None:
    layers = load_target("qwen3.8-27b", "4bit").architecture.layers
    states = [layer.mixer for layer in layers if isinstance(layer.mixer, Recurrence)]
    assert len(states) == 48
    assert all(state.state_bytes(2.0) > 0 for state in states)
