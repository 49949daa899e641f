"""Architectures: worked numbers of real networks, and what holds for all of them."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from model import catalog
from model.architecture import Architecture, Attention, AttentionKind
from model.config import read_config


def shipped(name: str) -> Architecture:
    return read_config(catalog.architecture_config(name), name=name, source=name)


EVERY_NAME = catalog.architecture_names()


def test_llama_3_1_8b_by_hand() -> None:
    llama = shipped("llama-3.1-8b")
    attention = 4096 * 4096 + 2 * 4096 * 1024 + 4096 * 4096  # q, k and v, o
    mlp = 3 * 4096 * 14336
    table = 128256 * 4096
    assert llama.params == 32 * (attention + mlp) + 2 * table + 65 * 4096 == 8_030_261_248
    assert llama.active_params == llama.params
    assert llama.flops_per_row() == 2 * (32 * (attention + mlp) + table)
    assert llama.kv_bytes_per_token() == 32 * 2 * 8 * 128 * 2 == 131_072
    # A thousand tokens: a score and a value for 32 heads of 128, in 32 layers.
    assert llama.flops_per_row(1000) - llama.flops_per_row() == 32 * 2 * 2 * 32 * 128 * 1000
    assert llama.context_limit == 131_072


def test_llama_3_2_1b_reads_its_table_as_its_head() -> None:
    llama = shipped("llama-3.2-1b")
    layer = 2048 * 2048 + 2 * 2048 * 512 + 2048 * 2048 + 3 * 2048 * 8192
    assert llama.tied
    assert llama.head == llama.embedding
    assert llama.params == 16 * layer + 128256 * 2048 + 33 * 2048 == 1_235_814_400
    assert llama.flops_per_row() == 2 * (16 * layer + 128256 * 2048)


def test_qwen3_4b_has_heads_wider_than_its_share() -> None:
    qwen = shipped("qwen3-4b")
    (layer, repeats), *others = qwen.layer_kinds
    assert others == []
    assert repeats == 36
    # 32 heads of 128 are 4096 columns out of a hidden size of 2560, where a share would be 80.
    qkv, out, gate_up, down = layer.siblings
    assert [(each.columns, each.depth) for each in qkv.matrices] == [
        (4096, 2560),
        (1024, 2560),
        (1024, 2560),
    ]
    assert [(each.columns, each.depth) for each in out.matrices] == [(2560, 4096)]
    assert [each.name for each in gate_up.matrices] == ["mlp.gate_proj", "mlp.up_proj"]
    assert [(each.columns, each.depth) for each in down.matrices] == [(2560, 9728)]
    matrices = 2560 * (4096 + 2 * 1024 + 4096) + 3 * 2560 * 9728
    norms = 36 * (2 * 2560 + 2 * 128) + 2560
    assert qwen.params == 36 * matrices + 151936 * 2560 + norms == 4_022_468_096
    assert qwen.kv_bytes_per_token() == 36 * 2 * 8 * 128 * 2 == 147_456


def test_gemma_3_4b_remembers_a_window_in_most_layers() -> None:
    gemma = shipped("gemma-3-4b")
    kinds = [layer.attention.kind for layer in gemma.layers]
    assert kinds.count(AttentionKind.FULL) == 5
    assert [i for i, kind in enumerate(kinds) if kind is AttentionKind.FULL] == [5, 11, 17, 23, 29]
    per_layer = 2 * 4 * 256 * 2
    assert gemma.kv_bytes_per_token() == 34 * per_layer
    assert gemma.kv_bytes(1000) == 34 * 1000 * per_layer
    assert gemma.kv_bytes(8192) == (5 * 8192 + 29 * 1024) * per_layer
    # Attention, too, stops growing in a layer that slides: 8 heads of 256, two multiplications.
    grown = gemma.flops_per_row(8192) - gemma.flops_per_row(4096)
    assert grown == 5 * 4096 * 2 * 2 * 8 * 256


def test_qwen3_30b_a3b_by_hand() -> None:
    qwen = shipped("qwen3-30b-a3b")
    attention = 2048 * (4096 + 2 * 512 + 4096)
    expert = 3 * 2048 * 768
    router = 128 * 2048
    table = 151936 * 2048
    norms = 48 * (2 * 2048 + 2 * 128) + 2048
    layer = attention + router + 128 * expert
    assert qwen.params == 48 * layer + 2 * table + norms == 30_532_122_624
    assert qwen.active_params == qwen.params - 48 * 120 * expert == 3_353_032_704
    assert qwen.flops_per_row() == 2 * (48 * (attention + router + 8 * expert) + table)


def test_mixtral_8x7b_is_neither_8_nor_7_times_anything() -> None:
    mixtral = shipped("mixtral-8x7b")
    assert (mixtral.params, mixtral.active_params) == (46_702_792_704, 12_879_925_248)


def test_gpt_oss_alternates_and_starts_with_a_window() -> None:
    windows = [layer.attention.window for layer in shipped("gpt-oss-20b").layers]
    assert windows == [128, None] * 12


@pytest.mark.parametrize("name", EVERY_NAME)
def test_every_count_is_the_one_that_was_checked(name: str) -> None:
    config = catalog.architecture_config(name)
    architecture = shipped(name)
    assert architecture.params == config["_total_params"]
    assert architecture.active_params == config.get("_active_params", architecture.params)


@pytest.mark.parametrize("name", EVERY_NAME)
def test_layer_kinds_are_all_layers(name: str) -> None:
    architecture = shipped(name)
    assert sum(repeats for _, repeats in architecture.layer_kinds) == len(architecture.layers)
    assert len(architecture.layer_kinds) <= 2
    assert {layer for layer, _ in architecture.layer_kinds} == set(architecture.layers)


@pytest.mark.parametrize("name", EVERY_NAME)
def test_a_layer_names_each_matrix_once(name: str) -> None:
    for layer, _ in shipped(name).layer_kinds:
        names = [matrix.name for matrix in layer.matrices]
        assert len(set(names)) == len(names)


def test_equal_architectures_are_one_key() -> None:
    one, other = shipped("llama-3.1-405b"), shipped("llama-3.1-405b")
    assert one is not other
    assert {one: 1}[other] == 1
    assert one != shipped("llama-3.1-70b")


contexts = st.integers(0, 200_000)


@st.composite
def attentions(draw: st.DrawFn) -> Attention:
    window = draw(st.none() | st.integers(1, 8192))
    kv_heads = draw(st.integers(1, 16))
    return Attention(
        kind=AttentionKind.FULL if window is None else AttentionKind.SLIDING,
        query_heads=kv_heads * draw(st.integers(1, 8)),
        kv_heads=kv_heads,
        head_dim=draw(st.sampled_from([64, 128, 256])),
        window=window,
    )


@given(attentions(), contexts, contexts)
def test_more_context_is_never_less_to_read(attention: Attention, one: int, other: int) -> None:
    shorter, longer = sorted((one, other))
    assert attention.cached_tokens(shorter) <= attention.cached_tokens(longer)
    assert attention.cached_tokens(longer) <= longer


@given(attentions(), st.lists(contexts, min_size=1, max_size=5))
def test_an_array_of_contexts_is_each_of_them(attention: Attention, several: list[int]) -> None:
    swept = attention.macs_per_row(np.array(several, dtype=float))
    assert list(np.atleast_1d(swept)) == [attention.macs_per_row(each) for each in several]


def test_a_network_broadcasts_over_contexts() -> None:
    gemma = shipped("gemma-3-4b")
    several = np.array([0.0, 1000.0, 8192.0])
    assert list(np.atleast_1d(gemma.kv_bytes(several))) == [gemma.kv_bytes(c) for c in several]
    assert list(np.atleast_1d(gemma.flops_per_row(several))) == [
        gemma.flops_per_row(float(each)) for each in several
    ]


def test_scalar_counts_are_plain_numbers() -> None:
    gemma = shipped("gemma-3-4b")
    assert json.dumps([gemma.kv_bytes(100), gemma.flops_per_row(100), gemma.kv_bytes_per_token()])
